/* ingot.h - the public interface of libingot: load a king and its drafter, generate text, exactly.
 *
 * A request's tokens depend on its prompt, its parameters and its seed alone: not on drafting,
 * other requests, chunking, cache hits, threads or CPU. A model is immutable and shared; an engine
 * may be used from any thread; a request belongs to one thread at a time, except ingot_cancel.
 * Strings are UTF-8. Option structs begin with `size`: set it to sizeof of the struct (INGOT_INIT
 * does), zero means "default" in every other field unless said. */
#ifndef INGOT_H
#define INGOT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef enum ingot_status {
    INGOT_OK,
    INGOT_E_ARG, /* the request is wrong: parameter, range, template refusal */
    INGOT_E_IO,
    INGOT_E_FORMAT, /* a file breaks its format */
    /* well formed, but not something this program can do; a drafter for another king */
    INGOT_E_UNSUPPORTED,
    INGOT_E_NOMEM,
    INGOT_E_LIMIT, /* a stated limit is exceeded: context, size, time */
    INGOT_E_CANCELLED,
    INGOT_E_AGAIN, /* nothing yet; of ingot_submit and ingot_score: the queue is full */
    INGOT_E_BUG
} ingot_status;

typedef struct ingot_error {
    ingot_status code;
    char text[512]; /* one line: what: where: found, wanted */
    /* with INGOT_E_LIMIT when prompt and output do not fit the context: tokens of the prompt and
     * positions of the context; else 0 */
    int n_prompt, n_context;
} ingot_error; /* may be NULL in every call */

typedef struct ingot_model ingot_model;
typedef struct ingot_engine ingot_engine;
typedef struct ingot_request ingot_request;

/* T x = INGOT_INIT(T); sets the size and zeroes the rest. */
#define INGOT_INIT(T) ((T){ .size = sizeof(T) })

const char *ingot_version(void);   /* "0.1.0" */
const char *ingot_cpu_tiers(void); /* tiers this CPU can run, best first: "avx512 avx2 ref" */

/* ---- model ---- */

typedef struct ingot_model_options {
    size_t size;
    const char *king;           /* folder */
    const char *drafter;        /* folder, or NULL: no drafting with a model */
    const char *drafter_config; /* config.json for a drafter folder that has none */
    bool text_only;   /* only tokenizer and template: for tokenize, detokenize, render, split */
    const char *cpu;  /* tier, or NULL: the best */
    int threads;      /* 0: physical cores this process may use */
    const char *mode; /* NULL or "int8"; "f32" for evaluation */
    /* in the caller's thread */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
    /* Folder of files of weights in the form they are computed with (`ingot prepare` makes them):
     * mapped and shared between processes, so that opening is instant. NULL: none is used. */
    const char *tiles;
    bool keep_tiles; /* write the files that the folder lacks; refused ones are always replaced */
    /* Opening goes on, but not as asked: such a file was refused or cannot be written. With
     * progress_arg, on the caller's thread. */
    void (*notice)(void *arg, const char *text);
} ingot_model_options;

ingot_status ingot_model_open(ingot_model **out, const ingot_model_options *o, ingot_error *e);
void ingot_model_close(ingot_model *m); /* after its engines are stopped */

typedef struct ingot_model_info {
    const char *king, *drafter; /* folder names; drafter NULL without one */
    const char *identity;       /* hex: of the king's content */
    const char *tier;
    const char *threads_why;
    int threads;
    int n_layer, n_embd, n_vocab;       /* n_vocab: rows of the head */
    int n_token;                        /* ids the tokenizer has: others are never sampled */
    int max_context;                    /* the model's own limit */
    int max_block;                      /* rows of the drafter's block; 1 without a drafter */
    uint64_t king_bytes, drafter_bytes; /* tiles in memory */
    float temperature, top_p;           /* the pack's own sampling defaults; NAN when it has none */
    int top_k;                          /* -1 when it has none */
    const char *king_tiles, *drafter_tiles; /* files that are mapped; NULL: made in memory */
    float min_p, presence_penalty, repetition_penalty; /* like temperature: NAN when it has none */
} ingot_model_info;
void ingot_model_get_info(const ingot_model *m, ingot_model_info *out);

/* ---- text: needs no engine; thread-safe ---- */

typedef struct ingot_text {
    char *ptr; /* NUL-terminated; free with ingot_text_free */
    size_t len;
} ingot_text;
typedef struct ingot_tokens {
    int32_t *ids; /* free with ingot_tokens_free */
    size_t len;
} ingot_tokens;
void ingot_text_free(ingot_text *t);
void ingot_tokens_free(ingot_tokens *t);

typedef enum ingot_special {
    INGOT_SPECIAL_ALL,   /* every added token is recognised in the text */
    INGOT_SPECIAL_SHOWN, /* only those that are shown when decoding (special false) */
    INGOT_SPECIAL_NONE
} ingot_special;
ingot_status ingot_tokenize(const ingot_model *m, const char *text, size_t len,
                            ingot_special special, ingot_tokens *out, ingot_error *e);
ingot_status ingot_detokenize(const ingot_model *m, const int32_t *ids, size_t n, bool hide_special,
                              ingot_text *out, ingot_error *e); /* invalid bytes become U+FFFD */
/* Borrowed bytes of one id ("" when it has none), exact; special tokens are hidden from people. */
const char *ingot_token_bytes(const ingot_model *m, int32_t id, size_t *len);
bool ingot_token_special(const ingot_model *m, int32_t id);

/* The same id by id, as a stream sends it: a piece is never a part of a character. */
typedef struct ingot_detok ingot_detok;
ingot_status ingot_detok_new(ingot_detok **out, const ingot_model *m, bool hide_special,
                             ingot_error *e);
ingot_status ingot_detok_put(ingot_detok *d, int32_t id, ingot_text *piece, ingot_error *e);
ingot_status ingot_detok_end(ingot_detok *d, ingot_text *piece, ingot_error *e);
void ingot_detok_free(ingot_detok *d);

typedef enum ingot_thinking {
    INGOT_THINKING_DEFAULT,
    INGOT_THINKING_ON,
    INGOT_THINKING_OFF
} ingot_thinking;

/* One of text, tokens, messages is set. JSON arguments are JSON text as the OpenAI API has it. */
typedef struct ingot_prompt {
    size_t size;
    const char *text; /* raw, no template */
    size_t text_len;
    const int32_t *tokens;
    size_t n_tokens;
    const char *messages; /* JSON array */
    const char *tools;    /* JSON array or NULL */
    /* NULL: the model decides; "required": it must call a tool; else: the function it must call */
    const char *tool_choice;
    ingot_thinking thinking;
    const char *reasoning_effort; /* NULL: not set */
    const char *template_args;    /* JSON object of further template variables, or NULL */
    bool no_generation_prompt;
    const char *template_text; /* instead of the folder's template */
} ingot_prompt;
ingot_status ingot_render(const ingot_model *m, const ingot_prompt *p, ingot_text *out,
                          ingot_error *e);

/* Renders a template with exactly these variables (JSON object), nothing added or checked.
 * template_text NULL: the folder's. *fault (may be NULL) is "syntax", "raise" (e->text is the
 * template's message alone) or "runtime". */
ingot_status ingot_render_bare(const ingot_model *m, const char *template_text,
                               const char *variables, ingot_text *out, const char **fault,
                               ingot_error *e);

/* ---- engine ---- */

#define INGOT_CACHE_AUTO UINT64_MAX

typedef struct ingot_engine_options {
    size_t size;
    int context;  /* positions per request; 0: what fits, at most the model's */
    int parallel; /* choices at once; 0: 1 */
    /* positions of all requests together, at least `context`; 0: parallel contexts, or as many as
     * fit. Memory is taken as requests grow; when it is used up, the youngest waits and goes on
     * later */
    int total_context;
    int queue;           /* choices waiting beyond those; 0: 64 */
    const char *kv_type; /* NULL or "f16"; "f32", "q8" */
    int chunk;           /* most prefill rows of one pass; 0: chosen */
    /* prefix cache; 0: none; INGOT_CACHE_AUTO: enough for one conversation as long as the context,
     * at least 1 GiB, where it is more at most half of the memory that is left */
    uint64_t cache_bytes;
    /* its disk tier, or NULL: a folder in which what ends a turn is kept beyond the engine's life,
     * for this king, drafter, kv_type and version alone; may be shared */
    const char *cache_dir;
    uint64_t cache_dir_bytes; /* of all files in it; 0: 16 GiB */
    /* engine thread: r has something to say; must not block */
    void (*wake)(void *arg, ingot_request *r);
    void *wake_arg;
} ingot_engine_options;

ingot_status ingot_engine_start(ingot_engine **out, ingot_model *m, const ingot_engine_options *o,
                                ingot_error *e);
/* Cancels what runs, waits, frees; requests must be released first. */
void ingot_engine_stop(ingot_engine *g);
int ingot_engine_context(const ingot_engine *g);
int ingot_engine_room(const ingot_engine *g); /* choices that run and wait, parallel + queue */
int ingot_engine_total_context(const ingot_engine *g);

/* Block of a step: rows verified, drafts + 1. */
enum { INGOT_BLOCK_AUTO = 0, INGOT_BLOCK_PLAIN = 1 };

typedef struct ingot_bias {
    int32_t id;
    float value;
} ingot_bias;

/* The least top_p: the likeliest token alone. What offers a top_p to people passes this for their
 * 0, which means the narrowest set to them and "off" in a zeroed struct. */
#define INGOT_TOP_P_LEAST 1e-30f

typedef struct ingot_sampling {
    size_t size;
    float temperature; /* < 1e-5: greedy */
    int top_k;         /* 0: off */
    float top_p;       /* 0 or 1: off; the narrowest set is INGOT_TOP_P_LEAST */
    float min_p;
    float presence_penalty, frequency_penalty;
    float repetition_penalty; /* 0.01 to 100; 0 or 1: off */
    const ingot_bias *bias;
    int n_bias;
    bool has_seed;
    uint64_t seed;           /* without has_seed one is drawn; see ingot_usage.seed */
    int max_tokens;          /* 0: to the end of the context */
    bool fit_context;        /* generate less than max_tokens where the context ends first */
    int block;               /* INGOT_BLOCK_AUTO, INGOT_BLOCK_PLAIN, 2.. */
    bool no_copy;            /* no prompt-lookup drafts */
    const char *const *stop; /* strings */
    int n_stop;
    bool ignore_eos;
    bool logprobs;       /* of the tokens; top_logprobs asks for them, too */
    int top_logprobs;    /* and of so many likeliest ids in each place, up to 20 */
    int n;               /* choices; 0: 1 */
    int thinking_budget; /* tokens; 0: none. The think block is closed when it is spent */
    const char *schema;  /* JSON Schema text that the answer (not the thought) obeys, or NULL */
    const char *grammar; /* GBNF text that it obeys instead (docs/constrained.md), or NULL */
    bool single_call;    /* end after the first tool call */
    bool raw;            /* events are plain text: no split into thinking and tool calls */
    bool show_special;   /* special tokens are part of the text */
} ingot_sampling;

/* INGOT_E_AGAIN: the queue is full. INGOT_E_LIMIT: it will never have room for so many choices. */
ingot_status ingot_submit(ingot_request **out, ingot_engine *g, const ingot_prompt *p,
                          const ingot_sampling *s, ingot_error *e);

typedef enum ingot_event_kind {
    INGOT_TEXT,           /* a piece of the answer */
    INGOT_THINKING,       /* a piece of the reasoning */
    INGOT_TOOL_BEGIN,     /* name in text; `tool` is its index */
    INGOT_TOOL_ARGUMENTS, /* a piece of the arguments, JSON text */
    INGOT_TOOL_END,
    INGOT_PROGRESS, /* queued, or prompt tokens done / total */
    INGOT_END       /* of one choice: finish and usage */
} ingot_event_kind;

typedef enum ingot_finish {
    INGOT_FINISH_STOP,
    INGOT_FINISH_LENGTH,
    INGOT_FINISH_TOOL_CALLS,
    INGOT_FINISH_CANCELLED,
    INGOT_FINISH_ERROR
} ingot_finish;

typedef struct ingot_logprob {
    int32_t id;
    float logprob;
    int n_top;
    const struct ingot_top {
        int32_t id;
        float logprob;
    } * top;
} ingot_logprob;

enum { INGOT_MAX_BLOCK = 16 };
typedef struct ingot_usage {
    int prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens;
    int decoded_tokens; /* of the completion, in decode_s: all but the first, which comes out of the
                           prompt's last row */
    double queue_s, prefill_s, decode_s;
    int steps; /* passes that decoded for this choice */
    int drafted, accepted;
    int copy_drafted, copy_accepted; /* of these, from the prompt-lookup drafter */
    int drafted_at[INGOT_MAX_BLOCK], accepted_at[INGOT_MAX_BLOCK]; /* by draft position, 0-based */
    int blocks[INGOT_MAX_BLOCK + 1]; /* steps run with that many rows */
    double plain_s;                  /* estimate of decode_s without drafting; 0: unknown */
    uint64_t seed;
    char sha256[65]; /* over the little-endian 32-bit ids of the completion */
} ingot_usage;

typedef struct ingot_event {
    ingot_event_kind kind;
    int choice;
    const char *text; /* all pointers are valid until the next call with this request */
    size_t len;
    int tool;
    int done, total; /* INGOT_PROGRESS; total 0: still queued, done = requests ahead */
    const ingot_logprob *logprobs; /* of the tokens that ended in this event */
    int n_logprobs;
    ingot_finish finish; /* INGOT_END ... */
    const ingot_usage *usage;
    const int32_t *ids; /* the completion's token ids, stop token excluded */
    int n_ids;
    int32_t stop_id;              /* the token that ended it, or -1 */
    const int32_t *step_accepted; /* accepted drafts of each step */
    const int32_t *step_block;    /* rows of each step */
    const char *stop;             /* stop string that ended it, or NULL */
    const char *error;            /* with INGOT_FINISH_ERROR */
} ingot_event;

/* Waits up to timeout_ms (-1: for ever). INGOT_OK: *ev is filled. INGOT_E_AGAIN: nothing yet.
 * INGOT_E_CANCELLED: every choice has ended and nothing more will come. */
ingot_status ingot_next(ingot_request *r, ingot_event *ev, int timeout_ms);
void ingot_cancel(ingot_request *r);  /* any thread; the choices end with INGOT_FINISH_CANCELLED */
void ingot_release(ingot_request *r); /* cancels if needed; r is gone */
const int32_t *ingot_prompt_ids(const ingot_request *r, int *n);

/* Where a choice (below ingot_sampling.n) is just now; never waits. */
typedef struct ingot_place {
    int queued; /* requests ahead of it; -1: it has started */
    int prompt_tokens, prompt_done;
    int tokens; /* put out so far */
    int block;  /* rows of its newest step; 0: none yet */
} ingot_place;
void ingot_request_place(const ingot_request *r, int choice, ingot_place *out);

/* Splits raw model output as the engine does; pieces may be cut anywhere. */
typedef struct ingot_splitter ingot_splitter;
typedef struct ingot_split_options {
    size_t size;
    bool start_in_thinking;
    const char *tools; /* JSON array or NULL */
} ingot_split_options;
ingot_status ingot_splitter_new(ingot_splitter **out, const ingot_model *m,
                                const ingot_split_options *o, ingot_error *e);
ingot_status ingot_splitter_put(ingot_splitter *s, const char *bytes, size_t n, ingot_error *e);
ingot_status ingot_splitter_end(ingot_splitter *s, ingot_finish finish, ingot_error *e);
/* INGOT_E_AGAIN: nothing more of what was put. */
ingot_status ingot_splitter_next(ingot_splitter *s, ingot_event *ev);
void ingot_splitter_free(ingot_splitter *s);

typedef struct ingot_stats {
    int running, queued;                  /* choices */
    uint64_t requests, cancelled, failed; /* choices */
    uint64_t preempted;                   /* times one was put back for want of memory */
    /* a prompt and its prefill count once, whatever the number of choices; cached_tokens are among
     * prompt_tokens */
    uint64_t prompt_tokens, cached_tokens, generated_tokens, reasoning_tokens;
    double prefill_s, decode_s, plain_s;
    uint64_t passes, pass_rows; /* of the king; rows of decoding and of prompts */
    uint64_t drafted, accepted, accepted_at[INGOT_MAX_BLOCK];
    uint64_t cache_lookups, cache_hits, cache_partial, cache_bytes;
    uint64_t cache_disk_loads, cache_disk_failures, cache_disk_bytes;
    int kv_pages_free, kv_pages_total;
    uint64_t king_bytes, drafter_bytes, engine_bytes;
} ingot_stats;
void ingot_engine_get_stats(ingot_engine *g, ingot_stats *out);

/* INGOT_UNSTABLE: what stands below may change between versions. */

/* Log-probability of each prompt token given those before it, [n - 1]; for perplexity. */
ingot_status ingot_score(ingot_engine *g, const ingot_prompt *p, float *logprob, int n,
                         ingot_error *e);

#ifdef __cplusplus
}
#endif
#endif
