/* anthropic.h - the dialect of /v1/messages, and /v1/messages/count_tokens. */
#ifndef SERVER_ANTHROPIC_H
#define SERVER_ANTHROPIC_H
#include "server/call.h"

extern const dialect anthropic_messages;

/* {"input_tokens": n} for a body of /v1/messages, whose max_tokens may be missing. */
bool anthropic_count_tokens(const service *s, str body, buf *out, api_error *e);
#endif
