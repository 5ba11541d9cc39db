/* reply.h - splits what the model writes into reasoning, content and tool calls, while it
 * arrives.
 *
 * The joined events are the same however the bytes are cut, and nothing sent is ever taken back:
 * a piece of a tag is held until it is known what it is. Both call forms are read:
 *   <tool_call> <function=NAME> (<parameter=KEY> VALUE </parameter>)* </function> </tool_call>
 *   <tool_call> {"name": NAME, "arguments": OBJECT} </tool_call>  (or a list of such)
 * Rules: <think> opens a thought only as the first text of a reply; a call inside an open
 * thought ends the thought; a value ends at the closing tag that the call's structure follows;
 * values are converted by the declared type, and what cannot be converted stays text; what is no
 * call of a declared tool (all of it when no tools are declared) is text. A call cut short after
 * its name is ended with its arguments closed to valid JSON. */
#ifndef TEXT_REPLY_H
#define TEXT_REPLY_H
#include "base/buf.h"
#include "base/json.h"

typedef enum reply_kind {
    REPLY_REASONING,      /* text: a piece of the thought, outer white space removed */
    REPLY_CONTENT,        /* text: a piece of the answer */
    REPLY_CALL_BEGIN,     /* index; text: the function's name */
    REPLY_CALL_ARGUMENTS, /* index; text: a piece of the arguments; they join to one JSON object */
    REPLY_CALL_END        /* index */
} reply_kind;

typedef struct reply_event {
    reply_kind kind;
    int index; /* of the call, from 0 */
    str text;  /* whole UTF-8 characters; valid until the sink returns */
} reply_event;

typedef status reply_sink(void *arg, const reply_event *event, error *e);

typedef struct reply reply;

/* `start_in_think`: the prompt ended inside an open think block (chat_prompt.in_think). `tools`:
 * the request's array, copied as far as needed; NULL or empty: no calls. The sink is called from
 * reply_put and reply_finish; a failure of it is passed on. */
status reply_new(reply **out, bool start_in_think, const json_node *tools, reply_sink *sink,
                 void *arg, error *e);
void reply_free(reply *r);
/* Feeds bytes, also those a stop-string search had held back. */
status reply_put(reply *r, str bytes, error *e);
/* The reply is over, for whatever reason: sends what is held and ends an open call. */
status reply_finish(reply *r, error *e);
int reply_calls(const reply *r); /* calls begun so far */
#endif
