/* cmd_bench.c - `ingot bench`: speed as ratios measured in one run, with the memory's own speed
 * beside them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/sysmem.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/draftbench.h"
#include "cli/servebench.h"
#include "cli/setup.h"
#include "cli/svg.h"
#include "tools/passbench.h"
#include "tools/timing.h"
#include "base/banned.h"

enum { MOST_OUTPUT = 1 << 24, MOST_TURNS = 64 };

typedef struct bench {
    setup base;
    const char *what, *lengths, *depths, *against, *plot;
    int turns, cooldown_s, max_tokens;
    passbench_result pass;
    draftbench_result draft;
    servebench_result serve;
    bool has_draft, has_serve;
    double peer_s, own_s; /* --against: medians of whole runs */
} bench;

/* ---- measuring ---- */

/* "0,4096" */
static status numbers_of(const char *name, const char *text, int *out, int *n, error *e)
{
    str rest = str_from(text);
    *n = 0;
    while (rest.len) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        const size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        int64_t v;
        if (*n == PASSBENCH_MOST || !str_to_i64((str){ rest.ptr, len }, &v) || v < 0 || v > 1 << 24)
            return error_set(e, E_ARG, "--%s: found %s, want up to %d numbers with commas between",
                             name, text, PASSBENCH_MOST);
        out[(*n)++] = (int)v;
        rest = str_sub(rest, comma ? len + 1 : len, rest.len);
    }
    return OK;
}

static bool wants(const bench *b, const char *part)
{
    return strcmp(b->what, "all") == 0 || strcmp(b->what, part) == 0;
}

static status measure_passes(bench *b, error *e)
{
    passbench_options o = { .king = b->base.king_path,
                            .cpu = b->base.cpu,
                            .kv_type = b->base.kv_type,
                            .threads = b->base.threads,
                            .turns = b->turns,
                            .cooldown_s = b->cooldown_s,
                            .rows = wants(b, "rows"),
                            .prefill = wants(b, "prefill"),
                            .decode = wants(b, "decode"),
                            .progress = progress_run,
                            .progress_arg = &b->base.bar };
    setup_tiles(&b->base, &o.tiles);
    TRY(numbers_of("lengths", b->lengths, o.lengths, &o.n_lengths, e));
    TRY(numbers_of("depths", b->depths, o.depths, &o.n_depths, e));
    const status s = passbench_run(&o, &b->pass, e);
    progress_clear(&b->base.bar);
    return s;
}

/* What is measured through the public interface, as users get it. */
static status measure_requests(bench *b, error *e)
{
    const draftbench_options o = { b->turns, b->max_tokens };
    ingot_engine_options eo = INGOT_INIT(ingot_engine_options);
    b->has_draft = wants(b, "draft") && b->base.drafter_path[0];
    b->has_serve = wants(b, "serve");
    if (strcmp(b->what, "draft") == 0 && !b->has_draft)
        return error_set(e, E_ARG, "bench: --what draft wants a --drafter");
    if (!b->has_draft && !b->has_serve) return OK;
    eo.parallel = b->has_serve ? SERVEBENCH_MOST : 1;
    TRY(setup_open(&b->base, false, e));
    TRY(setup_start(&b->base, &eo, e));
    if (b->has_draft) TRY(draftbench_run(&b->base, &o, &b->draft, e));
    if (b->has_serve) TRY(servebench_run(&b->base, b->turns, b->max_tokens, &b->serve, e));
    return OK;
}

static status time_command(const char *command, double *seconds, error *e)
{
    const int64_t start = clock_ns();
    const int code = system(command);
    *seconds = (double)(clock_ns() - start) * 1e-9;
    return code == 0 ? OK
                     : error_set(e, E_IO, "--against: \"%s\" ended with code %d", command, code);
}

/* The other program and this one (a plain answer, loading included) in turns. */
static status measure_against(bench *b, error *e)
{
    double peer[MOST_TURNS], own[MOST_TURNS];
    char self[3 * 4096], dir[4096];
    if (!b->against) return OK;
    TRY(file_executable_dir(dir, sizeof dir, e));
    snprintf(self, sizeof self,
             "'%s/ingot' generate --quiet --king '%s' --no-drafter --raw -p Hello -n %d >/dev/null",
             dir, b->base.king_path, b->max_tokens);
    for (int turn = 0; turn < b->turns; turn++) {
        TRY(time_command(self, &own[turn], e));
        TRY(time_command(b->against, &peer[turn], e));
    }
    b->peer_s = timing_of(peer, b->turns).median;
    b->own_s = timing_of(own, b->turns).median;
    return OK;
}

/* ---- derived figures ---- */

static double decode_gb_s(const bench *b, int i)
{
    const double bytes =
        (double)b->pass.pass_bytes + (double)b->pass.kv_token_bytes * b->pass.depths[i];
    return bytes / b->pass.decode[i].seconds * 1e-9;
}

static double prefill_gmac_s(const bench *b, int i)
{
    return b->pass.macs_per_token * b->pass.lengths[i] / b->pass.prefill[i].seconds * 1e-9;
}

static double row_cost(const bench *b, int n)
{
    return b->pass.rows[n].seconds / b->pass.rows[1].seconds;
}

static double verify_cost(const bench *b, int i)
{
    return b->pass.verify[i].seconds / b->pass.decode[i].seconds;
}

static const char *block_name(const draftbench_figure *f, char text[16])
{
    if (f->block == INGOT_BLOCK_AUTO) return "auto";
    if (f->block == INGOT_BLOCK_PLAIN) return "plain";
    snprintf(text, 16, "%d", f->block);
    return text;
}

/* ---- text ---- */

static void print_passes(const bench *b)
{
    const passbench_result *r = &b->pass;
    printf("machine  %s kernels, %d threads, read bandwidth %.1f GB/s\n", r->tier, r->threads,
           r->read_gb_s);
    if (wants(b, "rows")) {
        printf("\nrows of a verify pass\n  rows       ms   cost  spread\n");
        for (int n = 1; n <= PASSBENCH_ROWS; n++)
            printf("  %4d %8.2f %6.2f %6.1f %%\n", n, r->rows[n].seconds * 1e3, row_cost(b, n),
                   100 * r->rows[n].spread);
    }
    if (r->n_lengths) printf("\nprefill\n  tokens    tok/s   GMAC/s  spread\n");
    for (int i = 0; i < r->n_lengths; i++)
        printf("  %6d %8.1f %8.1f %6.1f %%\n", r->lengths[i], r->lengths[i] / r->prefill[i].seconds,
               prefill_gmac_s(b, i), 100 * r->prefill[i].spread);
    if (r->n_depths)
        printf("\ndecode, plain\n   depth    tok/s    GB/s  of read  spread  cost of %d rows\n",
               PASSBENCH_BLOCK);
    for (int i = 0; i < r->n_depths; i++)
        printf("  %6d %8.2f %7.2f %6.0f %% %6.1f %% %15.2f\n", r->depths[i],
               1 / r->decode[i].seconds, decode_gb_s(b, i), 100 * decode_gb_s(b, i) / r->read_gb_s,
               100 * r->decode[i].spread, verify_cost(b, i));
}

static void print_drafts(const bench *b)
{
    char text[16];
    const draftbench_result *r = &b->draft;
    printf("\ndrafting\n  block    tok/s  ratio  tokens/step  accepted  by position\n");
    for (int i = 0; i < r->n_blocks; i++) {
        const draftbench_figure *f = &r->blocks[i];
        printf("  %5s %8.2f %6.2f %12.2f %7.0f %%  ", block_name(f, text), f->tok_s, f->ratio,
               f->tokens_per_step, 100 * f->acceptance);
        for (int k = 0; k < f->n_positions; k++) printf(" %.0f", 100 * f->by_position[k]);
        putchar('\n');
    }
    printf("\nauto against plain, by prompt\n");
    for (int p = 0; p < DRAFTBENCH_PROMPTS; p++)
        printf("  %5.2f  %3.0f %% accepted  %s\n", r->auto_ratio[p], 100 * r->auto_acceptance[p],
               r->prompts[p]);
}

static void print_text(const bench *b)
{
    char peak[32];
    print_passes(b);
    if (b->has_draft) print_drafts(b);
    if (b->has_serve) printf("\nrequests at once\n  count    tok/s  ratio  spread\n");
    for (int i = 0; b->has_serve && i < SERVEBENCH_COUNTS; i++)
        printf("  %5d %8.2f %6.2f %6.1f %%\n", servebench_counts[i], b->serve.tok_s[i],
               b->serve.tok_s[i] / b->serve.tok_s[0], 100 * b->serve.spread[i]);
    if (b->against)
        printf("\nagainst  %.2f s, this program %.2f s: %.2f times as fast\n", b->peer_s, b->own_s,
               b->peer_s / b->own_s);
    progress_bytes(peak, sysmem_peak_rss());
    printf("\nmemory   %s at the most\n", peak);
}

/* ---- JSON ---- */

static void member(jsonw *w, const char *key, double v)
{
    jsonw_member_fixed(w, key, v, 6);
}

static void json_passes(const bench *b, jsonw *w)
{
    const passbench_result *r = &b->pass;
    jsonw_member_object(w, "machine");
    jsonw_member_text(w, "tier", r->tier);
    jsonw_member_i64(w, "threads", r->threads);
    jsonw_end_object(w);
    jsonw_member_object(w, "king");
    jsonw_member_text(w, "folder", b->base.king_path);
    jsonw_member_i64(w, "pass_bytes", (int64_t)r->pass_bytes);
    jsonw_end_object(w);
    jsonw_member_object(w, "read");
    member(w, "gb_s", r->read_gb_s);
    member(w, "spread", r->read_spread);
    jsonw_member_i64(w, "threads", r->threads);
    jsonw_end_object(w);
    jsonw_member_array(w, "rows");
    for (int n = 1; wants(b, "rows") && n <= PASSBENCH_ROWS; n++) {
        jsonw_object(w);
        jsonw_member_i64(w, "rows", n);
        member(w, "ms", r->rows[n].seconds * 1e3);
        member(w, "cost", row_cost(b, n));
        member(w, "spread", r->rows[n].spread);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_member_array(w, "prefill");
    for (int i = 0; i < r->n_lengths; i++) {
        jsonw_object(w);
        jsonw_member_i64(w, "tokens", r->lengths[i]);
        member(w, "tok_s", r->lengths[i] / r->prefill[i].seconds);
        member(w, "gmac_s", prefill_gmac_s(b, i));
        member(w, "spread", r->prefill[i].spread);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_member_array(w, "decode");
    for (int i = 0; i < r->n_depths; i++) {
        jsonw_object(w);
        jsonw_member_i64(w, "depth", r->depths[i]);
        member(w, "tok_s", 1 / r->decode[i].seconds);
        member(w, "gb_s", decode_gb_s(b, i));
        member(w, "bandwidth_share", decode_gb_s(b, i) / r->read_gb_s);
        member(w, "spread", r->decode[i].spread);
        jsonw_member_i64(w, "verify_rows", PASSBENCH_BLOCK);
        member(w, "verify_ms", r->verify[i].seconds * 1e3);
        member(w, "verify_cost", verify_cost(b, i));
        member(w, "verify_spread", r->verify[i].spread);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void json_drafts(const bench *b, jsonw *w)
{
    char text[16];
    jsonw_member_array(w, "draft");
    for (int i = 0; b->has_draft && i < b->draft.n_blocks; i++) {
        const draftbench_figure *f = &b->draft.blocks[i];
        jsonw_object(w);
        jsonw_member_text(w, "block", block_name(f, text));
        member(w, "tok_s", f->tok_s);
        member(w, "ratio", f->ratio);
        member(w, "tokens_per_step", f->tokens_per_step);
        member(w, "acceptance", f->acceptance);
        jsonw_member_array(w, "by_position");
        for (int k = 0; k < f->n_positions; k++) jsonw_fixed(w, f->by_position[k], 6);
        jsonw_end_array(w);
        member(w, "spread", f->spread);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_member_array(w, "prompts");
    for (int p = 0; b->has_draft && p < DRAFTBENCH_PROMPTS; p++) {
        jsonw_object(w);
        jsonw_member_text(w, "prompt", b->draft.prompts[p]);
        member(w, "ratio", b->draft.auto_ratio[p]);
        member(w, "acceptance", b->draft.auto_acceptance[p]);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void json_serve(const bench *b, jsonw *w)
{
    jsonw_member_array(w, "serve");
    for (int i = 0; b->has_serve && i < SERVEBENCH_COUNTS; i++) {
        jsonw_object(w);
        jsonw_member_i64(w, "requests", servebench_counts[i]);
        member(w, "tok_s", b->serve.tok_s[i]);
        member(w, "ratio", b->serve.tok_s[i] / b->serve.tok_s[0]);
        member(w, "spread", b->serve.spread[i]);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static status print_json(const bench *b, error *e)
{
    buf out;
    jsonw w;
    buf_init(&out, MOST_OUTPUT);
    jsonw_init(&w, &out);
    jsonw_object(&w);
    json_passes(b, &w);
    json_drafts(b, &w);
    json_serve(b, &w);
    if (b->against) {
        jsonw_member_object(&w, "against");
        member(&w, "seconds", b->peer_s);
        member(&w, "own_seconds", b->own_s);
        jsonw_end_object(&w);
    }
    jsonw_member_object(&w, "memory");
    jsonw_member_u64(&w, "rss_peak", sysmem_peak_rss());
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    buf_char(&out, '\n');
    const status s = buf_status(&out, "bench", e);
    if (s == OK) fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    return s;
}

/* ---- the picture ---- */

static void add_point(svg_line *l, double x, double y)
{
    if (l->n == SVG_MOST_POINTS) return;
    l->x[l->n] = x;
    l->y[l->n++] = y;
}

static status write_plot(const bench *b, error *e)
{
    svg_chart charts[3] = { { .title = "cost of a pass, by rows",
                              .x_label = "rows",
                              .y_label = "times one row",
                              .n = 1 },
                            { .title = "decode, by depth",
                              .x_label = "positions before",
                              .y_label = "tokens a second",
                              .n = 1 },
                            { .title = "drafting, by block",
                              .x_label = "rows of a block",
                              .y_label = "times plain",
                              .n = 2 } };
    int n = 0;
    charts[0].lines[0].name = "verify pass";
    for (int i = 1; wants(b, "rows") && i <= PASSBENCH_ROWS; i++)
        add_point(&charts[0].lines[0], i, row_cost(b, i));
    charts[1].lines[0].name = "plain";
    for (int i = 0; i < b->pass.n_depths; i++)
        add_point(&charts[1].lines[0], b->pass.depths[i], 1 / b->pass.decode[i].seconds);
    charts[2].lines[0].name = "speed";
    charts[2].lines[1].name = "tokens a step";
    for (int i = 0; b->has_draft && i < b->draft.n_blocks; i++) {
        const draftbench_figure *f = &b->draft.blocks[i];
        if (f->block == INGOT_BLOCK_AUTO) continue;
        add_point(&charts[2].lines[0], f->block, f->ratio);
        add_point(&charts[2].lines[1], f->block, f->tokens_per_step);
    }
    svg_chart shown[3];
    for (int i = 0; i < 3; i++)
        if (charts[i].lines[0].n > 1) shown[n++] = charts[i];
    buf out;
    char heading[128];
    snprintf(heading, sizeof heading, "ingot %s, %s, %d threads, reads %.1f GB/s", ingot_version(),
             b->pass.tier, b->pass.threads, b->pass.read_gb_s);
    buf_init(&out, MOST_OUTPUT);
    svg_write(&out, heading, shown, n);
    status s = buf_status(&out, b->plot, e);
    if (s == OK) s = file_write(b->plot, buf_view(&out), e);
    buf_free(&out);
    return s;
}

static status run(void *arg, error *e)
{
    static const char *const parts[] = { "all",    "read",  "rows", "prefill",
                                         "decode", "draft", "serve" };
    bench *b = arg;
    bool known = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        known |= strcmp(b->what, parts[i]) == 0;
    if (!known)
        return error_set(e, E_ARG,
                         "--what: found %s, want all, read, rows, prefill, decode, draft or serve",
                         b->what);
    TRY(setup_resolve(&b->base, e));
    TRY(measure_passes(b, e));
    TRY(measure_requests(b, e));
    TRY(measure_against(b, e));
    if (b->plot) TRY(write_plot(b, e));
    if (b->base.json) return print_json(b, e);
    print_text(b);
    return OK;
}

int cmd_bench(int argc, char **argv)
{
    bench b = { .what = "all",
                .lengths = "128,512",
                .depths = "0,4096,16384,32768",
                .turns = 5,
                .max_tokens = 64 };
    setup_init(&b.base);
    const option own[] = {
        { OPTION_TEXT, "what", 0, &b.what, "all|read|rows|prefill|decode|draft|serve",
          "what to measure (default all)", 0, 0, NULL },
        { OPTION_INT, "repeat", 0, &b.turns, "N", "turns of each measurement (default 5)", 1,
          MOST_TURNS, NULL },
        { OPTION_INT, "cooldown", 0, &b.cooldown_s, "S", "rest between the parts", 0, 3600, NULL },
        { OPTION_TEXT, "lengths", 0, &b.lengths, "N,N,...",
          "prompt lengths of prefill (default 128,512)", 0, 0, NULL },
        { OPTION_TEXT, "depths", 0, &b.depths, "N,N,...",
          "positions before a decode (default 0,4096,16384,32768)", 0, 0, NULL },
        { OPTION_INT, "max-tokens", 'n', &b.max_tokens, "N",
          "tokens of an answer of the draft and serve parts (default 64)", 2, 1 << 20, NULL },
        { OPTION_TEXT, "against", 0, &b.against, "COMMAND",
          "time another program's command in turns with this one", 0, 0, NULL },
        { OPTION_TEXT, "plot", 0, &b.plot, "FILE.svg", "draw the figures", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "bench",
        .usage = "[--king K] [--drafter D] [options]",
        .summary = "measure speed, with the memory's own beside it",
        .details =
            "Each part is warmed up and measured in turns; figures are medians, with the spread "
            "(largest less smallest, "
            "over the median) beside them. What the model's context cannot hold is left out.",
        .tables = { own, b.base.model_options, b.base.engine_options, b.base.output_options },
    };
    const int code = command_run(&c, argc, argv, run, &b);
    setup_close(&b.base);
    return code;
}
