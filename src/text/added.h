/* added.h - added tokens: texts that are one id, found before (or after) normalization.
 *
 * Filled from the two files, then finished, then immutable. The search is the reference library's:
 * leftmost match, the longest one there; then the flags of the token decide whether it counts and
 * how much white space it swallows. */
#ifndef TEXT_ADDED_H
#define TEXT_ADDED_H
#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"

typedef struct added_token {
    int32_t id;
    str content;
    bool special;     /* hidden when decoding */
    bool lstrip;      /* swallows white space before it */
    bool rstrip;      /* ... and after it */
    bool single_word; /* not recognised inside a word */
    bool normalized;  /* looked for in the normalized text */
} added_token;

/* A trie over bytes: nodes[0] is unused, 0 means none. */
typedef struct added_node {
    uint32_t child, sibling;
    int32_t item; /* index of the token that ends here; -1: none */
    uint8_t byte;
} added_node;

typedef struct added_trie {
    added_node *nodes;
    uint32_t n, cap;
    uint32_t first[256]; /* root: node by first byte */
} added_trie;

typedef struct added {
    arena mem;
    added_token *items; /* by id once finished */
    size_t n, cap;
    map by_text;       /* content -> index */
    added_trie raw;    /* tokens looked for in the text as it came */
    added_trie normal; /* tokens looked for in the normalized text */
} added;

void added_init(added *a);
void added_free(added *a);
/* `added_tokens` of tokenizer.json (an array) and `added_tokens_decoder` of tokenizer_config.json
 * (an object of ids); a token that is in both must be the same. NULL or null adds nothing. */
status added_read_array(added *a, const json_node *list, error *e);
status added_read_object(added *a, const json_node *object, error *e);
status added_finish(added *a, bool nfc, error *e);
const added_token *added_by_id(const added *a, int32_t id);
const added_token *added_by_text(const added *a, str text);

/* Walks over the tokens in one text; start with a, trie, shown_only and text set. */
typedef struct added_walk {
    const added *a;
    const added_trie *trie;
    bool shown_only;
    str text;
    size_t at;    /* the search goes on here */
    size_t taken; /* text up to here belongs to the tokens found so far */
    const added_token *token;
    str before; /* the text between this token and the one before it */
} added_walk;
/* Finds the next token; false when there is none left, `before` is then the rest of the text. As in
 * the reference library, a token that begins within white space which the one before it swallowed
 * is found all the same unless it has lstrip, and text goes on where the later one ends. */
bool added_next(added_walk *w);
#endif
