/* model.h - a model: folders become a tokenizer, a template, a king and a drafter that fit
 * together. */
#ifndef API_MODEL_H
#define API_MODEL_H
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

/* Opens the parts; on failure what was opened is closed and *m is to be freed with model_close. */
status model_open(ingot_model *m, const ingot_model_options *o, error *e);
void model_close(ingot_model *m);
/* The ordered vocabulary that constraints need. Thread-safe. */
status model_vocabulary(ingot_model *m, const tokmask_vocabulary **out, error *e);
#endif
