/* template.c - chat templates: compiling and rendering. */
#include "text/template.h"

#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "text/jinja_eval.h"
#include "text/template_values.h"

#include "base/banned.h"

struct template
{
    arena mem;
    const char *name;
    jinja_node *root;
};

status template_compile(template **out, str source, const char *name, error *e)
{
    *out = NULL;
    if (source.len > TEMPLATE_MAX_SOURCE) {
        return error_set(e, E_LIMIT, "%s: %zu bytes, want at most %d", name, source.len,
                         TEMPLATE_MAX_SOURCE);
    }
    template *t = mem_zalloc(sizeof *t);
    if (!t) return error_set(e, E_NOMEM, "%s: out of memory", name);
    arena_init(&t->mem, 0);
    t->name = arena_strdup(&t->mem, str_from(name));
    status s = t->name ? jinja_parse_run(&t->root, &t->mem, source, t->name, e)
                       : error_set(e, E_NOMEM, "%s: out of memory", name);
    if (s) {
        template_free(t);
        return s;
    }
    *out = t;
    return OK;
}

void template_free(template *t)
{
    if (!t) return;
    arena_free(&t->mem);
    mem_free(t);
}

const char *template_fault_name(template_fault fault)
{
    static const char *const names[] = { "ok", "syntax", "raise", "runtime" };
    return names[fault];
}

/* Civil time here and now, as seconds since 1970 of the same civil time in UTC. */
static int64_t local_now(void)
{
    const time_t now = (time_t)clock_wall_s();
    struct tm at;
    return localtime_r(&now, &at) ? (int64_t)timegm(&at) : (int64_t)now;
}

status template_render_values(const template *t, const jinja_dict *variables, jinja_run *r,
                              buf *out)
{
    jinja_text text;
    jinja_text_init(&text, r);
    TRY(jinja_eval_template(r, t->root, variables, &text));
    const size_t before = out->len;
    buf_add(out, jinja_text_view(&text));
    if (out->failed) {
        out->len = before;
        r->fault = TEMPLATE_RUNTIME;
    }
    return buf_status(out, t->name, r->e);
}

void template_begin(jinja_run *r, const template *t, int64_t now_s, error *e)
{
    jinja_run_init(r, t->name, now_s == TEMPLATE_NOW ? local_now() : now_s, e);
}

status template_render(const template *t, const json_node *variables, int64_t now_s, buf *out,
                       template_fault *fault, error *e)
{
    jinja_run r;
    jinja_value root;
    template_begin(&r, t, now_s, e);
    const bool object = json_kind(variables) == JSON_OBJECT;
    status s = object ? jinja_value_from_json(&r, variables, &root)
                      : jinja_value_dict(&r, JINJA_DICT, &root);
    if (!s) s = template_render_values(t, root.dict, &r, out);
    if (fault) *fault = r.fault;
    jinja_run_free(&r);
    return s;
}
