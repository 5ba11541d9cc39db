/* openai.h - the dialects of /v1/chat/completions and /v1/completions, and the shapes of
 * /v1/models. */
#ifndef SERVER_OPENAI_H
#define SERVER_OPENAI_H
#include "server/call.h"

extern const dialect openai_chat, openai_completion;

/* {"error": {"message", "type", "param", "code"}} */
void openai_error(const api_error *e, buf *out);
void openai_model(const service *s, buf *out);
void openai_models(const service *s, buf *out);

/* ---- for the dialects that translate into a chat ---- */
/* A tool whose name, description and schema (under `parameters`) lie flat. */
void openai_put_tool(jsonw *w, const json_node *tool, const char *parameters);
/* The value of a response_format from one whose schema lies flat. */
void openai_put_schema(jsonw *w, const json_node *format);
/* The value of a tool_choice that names its tool. */
void openai_put_tool_choice(jsonw *w, const json_node *wanted);
#endif
