/* options.c - see options.h. */
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"

static const option *next_option(const options_command *c, int *table, int *at)
{
    while (*table < OPTIONS_MAX_TABLES && c->tables[*table]) {
        const option *o = &c->tables[*table][*at];
        if (o->kind != OPTION_END) {
            (*at)++;
            return o;
        }
        (*table)++;
        *at = 0;
    }
    return NULL;
}

static int edit_distance(const char *a, const char *b)
{
    enum { MAX = 40 };
    int row[MAX + 1];
    const int n = (int)strlen(b);
    if (strlen(a) > MAX || n > MAX) return MAX;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int above = row[j];
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[n];
}

const char *options_nearest(const char *name, const char *const *candidates, int n)
{
    const char *nearest = NULL;
    int best = 4;
    for (int i = 0; i < n; i++) {
        const int d = edit_distance(name, candidates[i]);
        if (d < best && 2 * d <= (int)strlen(name)) { /* half of it is right */
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}

static status unknown(const options_command *c, const char *arg, str name, error *e)
{
    const char *names[128];
    int n = 0;
    int table = 0, at = 0;
    for (const option *o; n < 128 && (o = next_option(c, &table, &at));) names[n++] = o->name;
    char text[64];
    snprintf(text, sizeof text, "%.*s", STR_ARG(name));
    const char *near = options_nearest(text, names, n);
    if (near)
        return error_set(e, E_ARG, "%s: unknown option %s, did you mean --%s?", c->name, arg, near);
    return error_set(e, E_ARG, "%s: unknown option %s (see `ingot help %s`)", c->name, arg,
                     c->name);
}

static status set_number(const option *o, const char *text, error *e)
{
    int64_t i;
    double d;
    size_t size;
    if (o->kind == OPTION_INT) {
        bool whole = str_to_i64(str_from(text), &i);
        if (!whole && str_to_size(str_from(text), &size) && size <= INT32_MAX) { /* 32K */
            whole = true;
            i = (int64_t)size;
        }
        if (!whole || (double)i < o->min || (double)i > o->max)
            return error_set(e, E_ARG, "--%s: found %s, want a whole number from %.0f to %.0f",
                             o->name, text, o->min, o->max);
        *(int *)o->value = (int)i;
    } else {
        if (!str_to_f64(str_from(text), &d) || !(d >= o->min && d <= o->max))
            return error_set(e, E_ARG, "--%s: found %s, want a number from %g to %g", o->name, text,
                             o->min, o->max);
        *(double *)o->value = d;
    }
    return OK;
}

static status set_value(const option *o, const char *text, error *e)
{
    option_list *list = o->value;
    size_t size;
    char *end;
    switch (o->kind) {
    case OPTION_INT:
    case OPTION_REAL: return set_number(o, text, e);
    case OPTION_TEXT: *(const char **)o->value = text; return OK;
    case OPTION_U64:
        errno = 0;
        *(uint64_t *)o->value = strtoull(text, &end, 10);
        if (errno || end == text || *end || *text == '-')
            return error_set(e, E_ARG, "--%s: found %s, want a whole number below 2^64", o->name,
                             text);
        return OK;
    case OPTION_SIZE:
        if (!str_to_size(str_from(text), &size))
            return error_set(e, E_ARG, "--%s: found %s, want a size such as 512M or 8G", o->name,
                             text);
        if ((double)size < o->min)
            return error_set(e, E_ARG, "--%s: found %s, want at least %.0f bytes", o->name, text,
                             o->min);
        *(uint64_t *)o->value = size;
        return OK;
    case OPTION_LIST:
        if (list->n == OPTION_LIST_MAX)
            return error_set(e, E_ARG, "--%s: given more than %d times", o->name, list->n);
        list->items[list->n++] = text;
        return OK;
    default: return error_set(e, E_BUG, "--%s: no such kind of option", o->name);
    }
}

enum { MOST_OPTIONS = 128 };

/* One option at argv[*i]; *i ends on the last word used. `seen`: options that had their value. */
static status parse_option(const options_command *c, int argc, char **argv, int *i,
                           bool seen[MOST_OPTIONS], bool *help, error *e)
{
    const char *arg = argv[*i];
    const bool is_long = arg[1] == '-';
    const char *equals = strchr(arg, '=');
    const str name = is_long
                         ? (str){ arg + 2, equals ? (size_t)(equals - arg - 2) : strlen(arg + 2) }
                         : (str){ arg + 1, 1 };
    if (str_eq(name, STR("help")) || (!is_long && arg[1] == 'h')) {
        *help = true;
        return OK;
    }
    const option *o;
    int number = 0;
    for (int table = 0, at = 0; (o = next_option(c, &table, &at)); number++)
        if (is_long ? str_eq(name, str_from(o->name)) : o->letter == arg[1]) break;
    if (!o) return unknown(c, arg, is_long ? name : str_from(arg + 1), e);
    if (o->given) *o->given = true;
    const char *value = is_long ? (equals ? equals + 1 : NULL) : (arg[2] ? arg + 2 : NULL);
    if (o->kind == OPTION_FLAG || o->kind == OPTION_OFF) {
        if (value) return error_set(e, E_ARG, "--%s: takes no value, found \"%s\"", o->name, value);
        *(bool *)o->value = o->kind == OPTION_FLAG;
        return OK;
    }
    if (!value) {
        if (*i + 1 >= argc)
            return error_set(e, E_ARG, "--%s: no value, want %s", o->name, o->argument);
        value = argv[++*i];
    }
    CHECK(number < MOST_OPTIONS);
    if (seen[number] && o->kind != OPTION_LIST)
        return error_set(e, E_ARG, "--%s: given twice, want one value", o->name);
    seen[number] = true;
    return set_value(o, value, e);
}

status options_parse(const options_command *c, int argc, char **argv, bool *help, error *e)
{
    int positional = 0;
    bool only_positional = false, seen[MOST_OPTIONS] = { false };
    *help = false;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (!only_positional && strcmp(arg, "--") == 0) {
            only_positional = true;
        } else if (!only_positional && arg[0] == '-' && arg[1]) {
            TRY(parse_option(c, argc, argv, &i, seen, help, e));
            if (*help) return OK;
        } else if (positional < c->max_positional) {
            *c->positional[positional++] = arg;
        } else if (c->rest) {
            c->rest->items = argv; /* what is behind i was used up */
            argv[c->rest->n++] = argv[i];
        } else {
            return error_set(e, E_ARG, "%s: unexpected argument \"%s\" (usage: ingot %s %s)",
                             c->name, arg, c->name, c->usage);
        }
    }
    if (positional < c->min_positional)
        return error_set(e, E_ARG, "%s: too few arguments (usage: ingot %s %s)", c->name, c->name,
                         c->usage);
    return OK;
}

enum { HELP_COLUMN = 35, HELP_WIDTH = 100 };

/* The words of `text` from column `at` on, and a line end; further lines begin at `indent`. */
static void put_text(FILE *out, const char *text, int at, int indent)
{
    for (bool first = true; *text; first = false) {
        const int n = (int)strcspn(text, " ");
        if (!first && at + 1 + n > HELP_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", n, text);
        at += n;
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void put_option(FILE *out, const option *o)
{
    char left[96];
    int used = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name)
                         : snprintf(left, sizeof left, "      --%s", o->name);
    if (o->argument) used += snprintf(left + used, sizeof left - (size_t)used, " %s", o->argument);
    if (used < HELP_COLUMN) fprintf(out, "%-*s", HELP_COLUMN, left);
    else fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
    put_text(out, o->help, HELP_COLUMN, HELP_COLUMN);
}

void options_help(const options_command *c, FILE *out)
{
    fprintf(out, "ingot %s - %s\n\nusage: ingot %s %s\n", c->name, c->summary, c->name, c->usage);
    if (c->details) {
        fputc('\n', out);
        put_text(out, c->details, 0, 0);
    }
    for (int t = 0; t < OPTIONS_MAX_TABLES && c->tables[t]; t++) {
        fputc('\n', out);
        for (const option *o = c->tables[t]; o->kind != OPTION_END; o++) put_option(out, o);
    }
}

status options_block(const char *text, int *block, error *e)
{
    int64_t n;
    if (strcmp(text, "auto") == 0) {
        *block = 0;
        return OK;
    }
    if (!str_to_i64(str_from(text), &n) || n < 0 || n > 1000)
        return error_set(e, E_ARG, "--block: found %s, want auto or a number of rows", text);
    *block = n == 0 ? 1 : (int)n; /* no rows to draft is plain decoding */
    return OK;
}
