/* error.h - how every function of ingot reports failure.
 *
 * A function that can fail returns `status` and takes `error *e` last (may be NULL); OK is 0. The
 * message is written once, where the failure is seen: "what: where: found X, want Y"; upper layers
 * pass it on or put a prefix before it. CHECK guards our own promises at module boundaries in all
 * builds, ASSERT in debug builds; neither is reachable from outside (files, requests, command
 * lines). */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H
#include <stddef.h>

typedef enum status {
    OK = 0,
    E_ARG,         /* the caller's request is wrong: option, parameter, range */
    E_IO,          /* the operating system or the network said no */
    E_FORMAT,      /* a file or message breaks its format */
    E_UNSUPPORTED, /* well formed, but not something this program can do */
    E_NOMEM,
    E_LIMIT, /* a stated limit is exceeded: context, size, time */
    E_CANCELLED,
    E_AGAIN, /* not now: nothing yet, or the queue is full */
    E_BUG    /* a promise of ours is broken */
} status;

typedef struct error {
    status code;
    char text[512]; /* one line, NUL-terminated; cut with "..." when longer */
} error;

/* Writes the message and returns `code`, so that failing is one statement. */
status error_set(error *e, status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the message already there and returns `code`: return error_prefix(e, s,
 * "%s", path). */
status error_prefix(error *e, status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *error_name(status code); /* "argument", "io", ... */
#ifdef __clang_analyzer__            /* it cannot see from here that both return `code` */
#define error_set(e, code, ...) (error_set(e, code, __VA_ARGS__), (code))
#define error_prefix(e, code, ...) (error_prefix(e, code, __VA_ARGS__), (code))
#endif

#define TRY(expr)                  \
    do {                           \
        status try_s_ = (expr);    \
        if (try_s_) return try_s_; \
    } while (0)
/* `s` is the status variable that the exit label returns. */
#define TRY_GOTO(s, expr, label) \
    do {                         \
        (s) = (expr);            \
        if (s) goto label;       \
    } while (0)

_Noreturn void error_check_failed(const char *cond, const char *file, int line);
#define CHECK(cond) ((cond) ? (void)0 : error_check_failed(#cond, __FILE__, __LINE__))
#ifdef INGOT_DEBUG
#define ASSERT(cond) CHECK(cond)
#else
#define ASSERT(cond) ((void)0)
#endif
#endif
