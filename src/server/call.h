/* call.h - one API call, from the parsed request to the last byte: what the dialects share.
 *
 * A worker parses (dialect->parse) and submits; the loop thread then drains the requests' events
 * into the choices and, when streaming, into bytes. A dialect only translates: it holds no state
 * beyond the call. */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H
#include "base/buf.h"
#include "base/jsonw.h"
#include "ingot/ingot.h"
#include "server/fields.h"

enum {
    CALL_MAX_PROMPTS = 16,
    CALL_MAX_CHOICES = 8,
    CALL_MAX_STOP = 4,
    CALL_MAX_OUTPUT = 256 << 20
};

typedef struct call call;

/* What is served; constant while the server runs. */
typedef struct service {
    ingot_model *model;
    ingot_engine *engine;
    ingot_model_info info;
    const char *name;    /* the served model's id */
    const char *drafter; /* its folder's name; NULL without one */
    int64_t created;     /* when it was loaded */
    int context, room;   /* positions of a choice; choices that run and wait */
    bool reasoning_both; /* `reasoning` beside `reasoning_content` */
} service;

typedef struct dialect {
    const char *prompt_field, *limit_field; /* named when the context is exceeded */
    const char *schema_field;               /* named when its schema is refused */
    const char *call_prefix;                /* begins the ids of tool calls */
    /* Reads the body into the call's prompts and sampling; false: e says why. */
    bool (*parse)(call *c, const json_node *body, api_error *e);
    /* Bytes of a stream: its opening, one event, its end. */
    void (*begin)(call *c, buf *out);
    void (*event)(call *c, int prompt, const ingot_event *ev, buf *out);
    void (*end)(call *c, buf *out);
    /* The end of a stream that failed. */
    void (*fail)(call *c, const api_error *e, buf *out);
    /* The whole reply as one JSON value. */
    void (*whole)(call *c, buf *out);
    /* The JSON body of an error. */
    void (*error)(const api_error *e, buf *out);
} dialect;

typedef struct tool_call {
    char id[40];
    char *name;
    buf arguments;
} tool_call;

/* A run of one kind of output, in the order in which it came. */
typedef struct part {
    ingot_event_kind kind; /* INGOT_THINKING, INGOT_TEXT or INGOT_TOOL_BEGIN */
    size_t from, len;      /* bytes of the reasoning or of the content */
    int call;              /* which one, for a tool call */
} part;

/* A place between tokens: the characters before it, and the bytes that the last of them lacks. */
typedef struct text_place {
    size_t chars;
    int owed;
} text_place;

/* One answer as it grows. */
typedef struct choice {
    buf content, reasoning;
    buf logprobs; /* elements of a JSON array, separated by commas */
    tool_call *calls;
    int n_calls;
    bool ended;
    ingot_finish finish;
    char *stop; /* the stop string that ended it, or NULL */
    ingot_usage usage;
    part *parts;
    int n_parts;
    int n_told;       /* parts that a stream has begun */
    text_place place; /* of the next token in a stream of the old completions */
} choice;

struct call {
    const dialect *dialect;
    const service *service;
    arena mem;
    json_doc *doc, *translated;
    /* parsed */
    ingot_prompt prompts[CALL_MAX_PROMPTS];
    int n_prompts;
    ingot_sampling sampling;
    const char *stop[CALL_MAX_STOP];
    bool stream, include_usage, return_progress, legacy; /* legacy: the old completions shape */
    /* identity */
    char id[48];
    int64_t created;
    /* running: request r answers prompt r with sampling.n choices */
    ingot_request *requests[CALL_MAX_PROMPTS];
    choice *choices; /* [n_prompts * n] */
    int n_choices, n_ended;
    int progress_done, progress_total;
    int sequence; /* events sent, for streams that number them */
};

void call_init(call *c, const dialect *d, const service *s, const char *id_prefix);
void call_free(call *c); /* releases the requests */
/* Parses the body, fills defaults, submits every prompt. On false nothing runs and e is the
 * answer. */
bool call_start(call *c, str body, api_error *e);
/* Takes every event that is there; *out receives stream bytes when streaming. False: an engine
 * error ended the call (e filled). */
bool call_drain(call *c, buf *out, api_error *e);
/* Fills e with a 503: what was to be sent is not whole, for want of memory. Returns false. */
bool call_outgrown(api_error *e);
bool call_done(const call *c);
void call_cancel(call *c);

/* Parses alone; call_start does it too. */
bool call_parse(call *c, str body, api_error *e);

/* ---- for the dialects ---- */
/* Parses a body that was translated into that of another dialect; the call keeps it. */
bool call_parse_translated(call *c, const dialect *d, const buf *text, api_error *e);
str call_part_text(const choice *k, const part *p); /* of a tool call: its arguments */
str call_arguments(const tool_call *t);             /* JSON text */
int call_n(const call *c);                          /* choices per prompt */
/* Appends a random id such as "call_8f3a..." */
void call_make_id(char *out, size_t cap, const char *prefix);
/* "stop": one string or up to four; nothing else. */
bool call_parse_stop(call *c, const json_node *body, const char *key, api_error *e);
/* temperature, top_p, top_k, min_p, penalties, seed, logit_bias, grammar, block: the fields all
 * dialects share. */
bool call_parse_sampling(call *c, const json_node *body, api_error *e);
/* Writes these members of a body into one that is translated. */
void call_copy_sampling(jsonw *w, const json_node *body);
/* Checks tools in the OpenAI form and applies tool_choice; fills the prompt's tools. */
bool call_parse_tools(call *c, const json_node *tools, const json_node *tool_choice, api_error *e);
void call_sum_usage(const call *c, ingot_usage *sum);
void call_write_timings(jsonw *w, const ingot_usage *u);
api_error call_error_of(ingot_status s, const ingot_error *from);
/* Reserves an SSE event: "data: " is written; the caller writes JSON and call_event_end. */
void call_event_begin(buf *out, const char *name);
void call_event_end(buf *out);
#endif
