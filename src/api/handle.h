/* handle.h - what stands behind the opaque handles of the public header. */
#ifndef API_HANDLE_H
#define API_HANDLE_H
#include "api/reader.h"
#include "engine/engine.h"
#include "ingot/ingot.h"
#include "pack/pack.h"
#include "text/chat.h"

/* Immutable once it is open. */
struct ingot_model {
    char *folder;
    tokenizer *tokenizer; /* NULL: tokenizer_error says why (text_only models may lack it) */
    error tokenizer_error;
    chat *chat; /* NULL: chat_error says why */
    error chat_error;
    pack *king_pack, *drafter_pack;
    king *king;       /* NULL when only the text parts are open */
    drafter *drafter; /* NULL: none was asked for */
    compute_mode mode;
    char *cpu;                                              /* tier as asked for, NULL: the best */
    int32_t think_open, think_close, call_open, call_close; /* -1: no such token */
    bool tagged_calls; /* the template writes calls as <function=NAME> */
    ingot_model_info info;
    char why[128], tier[32];
    pthread_mutex_t lock;           /* of what is made when it is first needed */
    tokmask_vocabulary *vocabulary; /* NULL: no constrained request has come yet */
};

/* Opens the parts; on failure what was opened is closed and *m is to be freed with handle_close. */
status handle_open(ingot_model *m, const ingot_model_options *o, error *e);
void handle_close(ingot_model *m);
/* The ordered vocabulary that constraints need. Thread-safe. */
status handle_vocabulary(ingot_model *m, const tokmask_vocabulary **out, error *e);

struct ingot_engine {
    ingot_model *model;
    engine *engine;
    int context, total_context;
    void (*wake)(void *arg, ingot_request *r);
    void *wake_arg;
    uint64_t bytes;
};

struct ingot_request {
    request *request;
    reader readers[REQUEST_MAX_CHOICES];
    events events; /* of the choice whose output was taken last */
    int n, turn, ended;
    uint64_t seen;
};
#endif
