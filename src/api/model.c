/* model.c - see model.h. */
#include "api/model.h"
#include <math.h>
#include <stdio.h>
#include "base/mem.h"
#include "base/sysmem.h"
#include "base/banned.h"

typedef struct watcher {
    const ingot_model_options *options;
    const char *what;
} watcher;

static void tell(void *arg, uint64_t done, uint64_t total)
{
    const watcher *w = arg;
    w->options->progress(w->options->progress_arg, w->what, done, total);
}

static void note(void *arg, const char *text)
{
    const watcher *w = arg;
    w->options->notice(w->options->progress_arg, text);
}

static const char *mapped(const load_report *r)
{
    return r->path[0] ? r->path : NULL;
}

/* A folder may lack one of the two text parts: whoever needs it later is told why it is missing. */
static void open_text(ingot_model *m, const char *folder)
{
    if (tokenizer_open(&m->tokenizer, folder, &m->tokenizer_error)) m->tokenizer = NULL;
    if (chat_open(&m->chat, folder, &m->chat_error)) m->chat = NULL;
    m->tagged_calls = m->chat && chat_writes_tags(m->chat);
    m->think_open = m->think_close = m->call_open = m->call_close = -1;
    if (!m->tokenizer) return;
    m->think_open = tokenizer_id(m->tokenizer, STR("<think>"));
    m->think_close = tokenizer_id(m->tokenizer, STR("</think>"));
    m->call_open = tokenizer_id(m->tokenizer, STR("<tool_call>"));
    m->call_close = tokenizer_id(m->tokenizer, STR("</tool_call>"));
    m->info.n_token = tokenizer_vocab_size(m->tokenizer);
}

static status open_packs(ingot_model *m, const ingot_model_options *o, error *e)
{
    TRY(pack_open(&m->king_pack, o->king, NULL, e));
    if (pack_get_kind(m->king_pack) == PACK_DRAFTER)
        return error_set(e, E_UNSUPPORTED, "%s: found a drafter, want a king", o->king);
    if (!o->drafter) return OK;
    TRY(pack_open(&m->drafter_pack, o->drafter, o->drafter_config, e));
    const drafter_config *d = pack_drafter(m->drafter_pack);
    if (!d) return error_set(e, E_UNSUPPORTED, "%s: found a king, want a drafter", o->drafter);
    const status s = config_check_pair(d, pack_king(m->king_pack), e);
    return s ? error_prefix(e, s, "%s", o->drafter) : OK;
}

static status load_models(ingot_model *m, const ingot_model_options *o, compute *c, error *e)
{
    compute_mode mode = COMPUTE_INT8;
    if (o->mode && strcmp(o->mode, "f32") == 0) mode = COMPUTE_F32;
    else if (o->mode && strcmp(o->mode, "int8") != 0)
        return error_set(e, E_ARG, "mode: found %s, want int8 or f32", o->mode);
    m->mode = mode;
    watcher w = { o, "king" };
    const load_options options = { .mode = mode,
                                   .folder = o->tiles,
                                   .tiles = o->keep_tiles ? LOAD_KEEP : LOAD_FIND,
                                   .progress = o->progress ? tell : NULL,
                                   .notice = o->notice ? note : NULL,
                                   .arg = &w };
    TRY(king_open(&m->king, m->king_pack, c, &options, e));
    w.what = "drafter";
    if (m->drafter_pack) TRY(drafter_open(&m->drafter, m->drafter_pack, m->king, c, &options, e));
    return OK;
}

static void fill_info(ingot_model *m, const compute *c)
{
    ingot_model_info *i = &m->info;
    const king_config *k = king_get_config(m->king);
    const generation_config *g = &pack_config(m->king_pack)->generation;
    i->king = pack_folder(m->king_pack);
    i->drafter = m->drafter_pack ? pack_folder(m->drafter_pack) : NULL;
    i->identity = pack_identity(m->king_pack);
    snprintf(m->tier, sizeof m->tier, "%s", compute_tier(c));
    i->tier = m->tier;
    i->threads = compute_threads(c);
    i->threads_why = m->why;
    i->n_layer = k->n_layer;
    i->n_embd = k->n_embd;
    i->n_vocab = k->n_vocab;
    i->max_context = k->max_positions;
    i->max_block = m->drafter ? drafter_get_config(m->drafter)->block : 1;
    i->king_bytes = king_tile_bytes(m->king);
    i->drafter_bytes = m->drafter ? drafter_tile_bytes(m->drafter) : 0;
    i->king_tiles = mapped(king_load_report(m->king));
    i->drafter_tiles = m->drafter ? mapped(drafter_load_report(m->drafter)) : NULL;
    i->temperature = (float)g->temperature;
    i->top_p = (float)g->top_p;
    if (i->top_p < INGOT_TOP_P_LEAST) i->top_p = INGOT_TOP_P_LEAST; /* to a pack 0 is no "off" */
    i->top_k = g->top_k;
    i->min_p = (float)g->min_p;
    i->presence_penalty = (float)g->presence_penalty;
    i->repetition_penalty = (float)g->repetition_penalty;
}

/* Refused before anything is loaded: tiles take about what the weights take in their files. */
static status check_memory(const ingot_model *m, error *e)
{
    const double of_king = (double)pack_text_bytes(m->king_pack) * 1e-9;
    const double of_drafter = m->drafter_pack ? (double)pack_text_bytes(m->drafter_pack) * 1e-9 : 0;
    const double room = (double)sysmem_available() * 1e-9;
    if (of_king + of_drafter <= room) return OK;
    return error_set(e, E_NOMEM,
                     "%s: weights take %.2f GB and those of the drafter %.2f GB, %.2f GB are "
                     "available; a machine with more memory, or a smaller drafter, is needed",
                     m->folder, of_king, of_drafter, room);
}

/* Every id of the tokenizer must have its row in the embedding. */
static status check_vocabulary(const ingot_model *m, error *e)
{
    const int n_vocab = pack_king(m->king_pack)->n_vocab;
    if (m->info.n_token <= n_vocab) return OK;
    return error_set(e, E_FORMAT, "%s/tokenizer.json: found %d tokens, want at most the king's %d",
                     m->folder, m->info.n_token, n_vocab);
}

static status open_models(ingot_model *m, const ingot_model_options *o, error *e)
{
    TRY(check_memory(m, e));
    const compute_options options = { .cpu = m->cpu, .threads = o->threads };
    compute *c;
    TRY(compute_open(&c, &options, e));
    if (o->threads > 0) snprintf(m->why, sizeof m->why, "as asked for");
    else (void)pool_default_threads(m->why, sizeof m->why);
    const status s = load_models(m, o, c, e);
    if (s == OK) fill_info(m, c);
    compute_close(c);
    return s;
}

status model_vocabulary(ingot_model *m, const tokmask_vocabulary **out, error *e)
{
    status s = OK;
    pthread_mutex_lock(&m->lock);
    if (!m->vocabulary) {
        const int32_t calls[] = { m->call_open, m->call_close };
        s = tokmask_vocabulary_new(&m->vocabulary, m->tokenizer, m->info.n_token, calls, 2, e);
    }
    *out = m->vocabulary;
    pthread_mutex_unlock(&m->lock);
    return s;
}

status model_open(ingot_model *m, const ingot_model_options *o, error *e)
{
    pthread_mutex_init(&m->lock, NULL);
    if (!o->king) return error_set(e, E_ARG, "king: no folder given");
    m->folder = mem_strndup(o->king, strlen(o->king));
    if (o->cpu) m->cpu = mem_strndup(o->cpu, strlen(o->cpu));
    if (!m->folder || (o->cpu && !m->cpu)) return error_set(e, E_NOMEM, "%s: no memory", o->king);
    m->info = (ingot_model_info){ .king = m->folder,
                                  .temperature = NAN,
                                  .top_p = NAN,
                                  .top_k = -1,
                                  .min_p = NAN,
                                  .presence_penalty = NAN,
                                  .repetition_penalty = NAN };
    open_text(m, o->king);
    if (o->text_only) return OK;
    TRY(open_packs(m, o, e)); /* first, so that a folder that is no king is called that */
    if (!m->tokenizer) {
        *e = m->tokenizer_error;
        return e->code;
    }
    TRY(check_vocabulary(m, e));
    return open_models(m, o, e);
}

void model_close(ingot_model *m)
{
    if (m->drafter) drafter_close(m->drafter);
    if (m->king) king_close(m->king);
    if (m->drafter_pack) pack_close(m->drafter_pack);
    if (m->king_pack) pack_close(m->king_pack);
    tokmask_vocabulary_free(m->vocabulary);
    pthread_mutex_destroy(&m->lock);
    chat_free(m->chat);
    tokenizer_close(m->tokenizer);
    mem_free(m->cpu);
    mem_free(m->folder);
    mem_free(m);
}
