/* handle.h - what stands behind the opaque handles of the public header; of a model: model.h. */
#ifndef API_HANDLE_H
#define API_HANDLE_H
#include "api/model.h"
#include "api/reader.h"

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
