/* gbnf.c - a grammar in GBNF becomes an automaton.
 *
 * The text is read into a tree of items, what rules need to be usable is worked out on it, and the
 * automaton is built from its end. Recursion is bounded by GBNF_GROUPS. */
#include <stdio.h>
#include <stdlib.h>
#include "base/arena.h"
#include "base/mem.h"
#include "engine/gbnf.h"
#include "base/banned.h"

enum { NO_LIMIT = -1, NAME_SLOTS = 4 * GBNF_RULES, LAST_CODE = 0x10ffff };

typedef enum item_kind {
    ITEM_TEXT,
    ITEM_CHARS,
    ITEM_RULE,
    ITEM_SEQUENCE,
    ITEM_CHOICE,
    ITEM_REPEAT
} item_kind;

typedef struct item item;
struct item {
    item_kind kind;
    item *prev, *next;  /* in the sequence or choice */
    item *inner, *last; /* first and last member; inner: what is repeated */
    int least, most;
    str text;
    const grammar_range *ranges;
    size_t n_ranges;
    int rule;
};

/* What is asked of items and rules. */
typedef enum property {
    EMPTY, /* it may stand for no text */
    ENDS,  /* some text of it ends */
    SOUND, /* it does not begin with itself */
    PROPERTIES
} property;

typedef struct production {
    str name;
    item *body; /* NULL: not defined yet */
    size_t at;  /* where it is defined, or was first used */
    bool has[PROPERTIES];
    int number; /* in the automaton */
} production;

typedef struct parser {
    str text;
    size_t at;
    arena mem;
    char *bytes;           /* of literals, decoded */
    grammar_range *ranges; /* of classes */
    size_t n_bytes, n_ranges;
    production rules[GBNF_RULES];
    int n_rules, groups;
    int slots[NAME_SLOTS]; /* hash of the name -> rule + 1 */
    grammar *g;
    error *e;
} parser;

/* ---- messages ---- */

static status fail_at(const parser *p, size_t at, const char *what)
{
    int line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        if (p->text.ptr[i] == '\n') {
            line++;
            column = 1;
        } else if (((uint8_t)p->text.ptr[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    return error_set(p->e, E_ARG, "grammar: line %d, column %d: %s", line, column, what);
}

static status fail_rule(const parser *p, size_t at, str name, const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "rule %.*s%s %s", name.len > 60 ? 60 : (int)name.len, name.ptr,
             name.len > 60 ? "..." : "", what);
    return fail_at(p, at, text);
}

static status found_other(const parser *p, const char *want)
{
    char text[160];
    uint32_t code;
    const size_t n = str_utf8_next(p->text, p->at, &code);
    if (n == 0) snprintf(text, sizeof text, "found the end of the text, want %s", want);
    else if (code == '\n' || code == '\r')
        snprintf(text, sizeof text, "found the end of the line, want %s", want);
    else if (code < 0x20 || code == 0x7f)
        snprintf(text, sizeof text, "found U+%04X, want %s", (unsigned)code, want);
    else snprintf(text, sizeof text, "found '%.*s', want %s", (int)n, p->text.ptr + p->at, want);
    return fail_at(p, p->at, text);
}

static status no_memory(const parser *p)
{
    return error_set(p->e, E_NOMEM, "grammar: no memory");
}

/* ---- reading ---- */

static char peek(const parser *p)
{
    return p->at < p->text.len ? p->text.ptr[p->at] : '\0';
}

static bool take(parser *p, const char *word)
{
    if (!str_starts(str_sub(p->text, p->at, p->text.len), str_from(word))) return false;
    p->at += strlen(word);
    return true;
}

/* Blanks and a comment; with `lines` also what follows on the next lines. */
static void skip_space(parser *p, bool lines)
{
    for (;;) {
        const char c = peek(p);
        if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) p->at++;
        else if (c == '#')
            while (p->at < p->text.len && peek(p) != '\n' && peek(p) != '\r') p->at++;
        else return;
    }
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static status read_name(parser *p, int *number)
{
    const size_t from = p->at;
    while (is_name_char(peek(p))) p->at++;
    if (p->at == from) return found_other(p, "the name of a rule");
    const str name = str_sub(p->text, from, p->at);
    size_t slot = (size_t)(str_hash(name) % NAME_SLOTS);
    for (; p->slots[slot]; slot = (slot + 1) % NAME_SLOTS) {
        *number = p->slots[slot] - 1;
        if (str_eq(p->rules[*number].name, name)) return OK;
    }
    if (p->n_rules == GBNF_RULES) return fail_at(p, from, "more than 1024 rules");
    *number = p->n_rules++;
    p->rules[*number] = (production){ .name = name, .at = from };
    p->slots[slot] = *number + 1;
    return OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static status read_code(parser *p, int digits, uint32_t *code)
{
    const size_t from = p->at;
    *code = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        const int d = hex_digit(peek(p));
        if (d < 0) return found_other(p, "a hexadecimal digit");
        *code = *code << 4 | (uint32_t)d;
    }
    if (*code <= LAST_CODE && (*code < 0xd800 || *code > 0xdfff)) return OK;
    return fail_at(p, from, "this code point does not exist");
}

/* One character of a literal or class, after its opening mark at `open`. */
static status read_char(parser *p, size_t open, uint32_t *code)
{
    const size_t n = str_utf8_next(p->text, p->at, code);
    if (n == 0) return fail_at(p, open, "what begins here is never closed");
    p->at += n;
    if (*code != '\\') return OK;
    const char c = peek(p);
    p->at++;
    switch (c) {
    case 'n': *code = '\n'; return OK;
    case 'r': *code = '\r'; return OK;
    case 't': *code = '\t'; return OK;
    case '\\':
    case '"':
    case '[':
    case ']': *code = (uint8_t)c; return OK;
    case 'x': return read_code(p, 2, code);
    case 'u': return read_code(p, 4, code);
    case 'U': return read_code(p, 8, code);
    default: p->at--; return found_other(p, "one of n r t \\ \" [ ] x u U after a backslash");
    }
}

static item *new_item(parser *p, item_kind kind)
{
    item *i = arena_alloc(&p->mem, sizeof *i);
    if (i) *i = (item){ .kind = kind };
    return i;
}

static status read_literal(parser *p, item *i)
{
    const size_t open = p->at++;
    i->kind = ITEM_TEXT;
    i->text.ptr = p->bytes + p->n_bytes;
    while (peek(p) != '"') {
        uint32_t code;
        TRY(read_char(p, open, &code));
        const size_t n = str_utf8_put(code, p->bytes + p->n_bytes);
        i->text.len += n;
        p->n_bytes += n;
    }
    p->at++;
    return OK;
}

static int by_start(const void *a, const void *b)
{
    const grammar_range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* All code points that are in none of the ranges; there is room for one more. */
static size_t invert(grammar_range *r, size_t n)
{
    size_t kept = 0;
    uint32_t next = 0;
    qsort(r, n, sizeof *r, by_start);
    for (size_t k = 0; k < n; k++) {
        const grammar_range one = r[k];
        if (one.from > next) r[kept++] = (grammar_range){ next, one.from - 1 };
        if (one.to >= next) next = one.to + 1;
    }
    if (next <= LAST_CODE) r[kept++] = (grammar_range){ next, LAST_CODE };
    return kept;
}

static status read_class(parser *p, item *i)
{
    const size_t open = p->at++;
    const bool inverted = take(p, "^");
    grammar_range *const ranges = p->ranges + p->n_ranges;
    size_t n = 0;
    while (peek(p) != ']') {
        grammar_range *r = &ranges[n++];
        const size_t from = p->at;
        TRY(read_char(p, open, &r->from));
        r->to = r->from;
        if (peek(p) != '-' || str_starts(str_sub(p->text, p->at, p->text.len), STR("-]"))) continue;
        p->at++;
        TRY(read_char(p, open, &r->to));
        if (r->to < r->from) return fail_at(p, from, "this range ends before it begins");
    }
    p->at++;
    if (inverted) n = invert(ranges, n);
    i->ranges = ranges;
    i->n_ranges = n;
    p->n_ranges += n;
    return n ? OK : fail_at(p, open, "this class has no character");
}

static status read_choice(parser *p, item **out);

static status read_group(parser *p, item **out)
{
    const size_t open = p->at++;
    if (++p->groups > GBNF_GROUPS) return fail_at(p, open, "groups nested deeper than 64");
    TRY(read_choice(p, out));
    p->groups--;
    return take(p, ")") ? OK : found_other(p, "an item, | or )");
}

static status read_item(parser *p, item **out)
{
    static const grammar_range any = { 0, LAST_CODE };
    const char c = peek(p);
    if (c == '(') return read_group(p, out);
    item *i = *out = new_item(p, ITEM_CHARS);
    if (!i) return no_memory(p);
    if (c == '"') return read_literal(p, i);
    if (c == '[') return read_class(p, i);
    if (c == '<' || c == '!')
        return fail_at(p, p->at, "tokens are not supported: a grammar describes text");
    if (c != '.') {
        i->kind = ITEM_RULE;
        return read_name(p, &i->rule);
    }
    p->at++;
    i->ranges = &any;
    i->n_ranges = 1;
    return OK;
}

static status read_count(parser *p, int *out)
{
    const size_t from = p->at;
    int n = 0;
    if (peek(p) < '0' || peek(p) > '9') return found_other(p, "a number");
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        n = 10 * n + (peek(p) - '0');
        if (n > GBNF_REPEAT) return fail_at(p, from, "more than 10000 repetitions");
    }
    *out = n;
    skip_space(p, false);
    return OK;
}

static status read_bounds(parser *p, item *i)
{
    const size_t open = p->at++;
    skip_space(p, false);
    TRY(read_count(p, &i->least));
    i->most = i->least;
    if (take(p, ",")) {
        i->most = NO_LIMIT;
        skip_space(p, false);
        if (peek(p) != '}') TRY(read_count(p, &i->most));
    }
    if (!take(p, "}")) return found_other(p, "}");
    if (i->most != NO_LIMIT && i->most < i->least)
        return fail_at(p, open, "the upper bound is below the lower one");
    return OK;
}

/* What stands after an item and repeats it; several apply one after another. */
static status read_repeats(parser *p, item **out)
{
    for (int n = 0;; n++) {
        skip_space(p, p->groups > 0);
        const char c = peek(p);
        if (c != '*' && c != '+' && c != '?' && c != '{') return OK;
        if (n == 8) return fail_at(p, p->at, "more than 8 repetitions of one another");
        item *i = new_item(p, ITEM_REPEAT);
        if (!i) return no_memory(p);
        i->inner = *out;
        i->least = c == '+';
        i->most = c == '?' ? 1 : NO_LIMIT;
        if (c == '{') TRY(read_bounds(p, i));
        else p->at++;
        *out = i;
    }
}

static void append(item *all, item *i)
{
    i->prev = all->last;
    if (all->last) all->last->next = i;
    else all->inner = i;
    all->last = i;
}

static bool begins_item(const parser *p)
{
    const char c = peek(p);
    return p->at < p->text.len && (is_name_char(c) || (c && strchr("\"[(.<!", c)));
}

static status read_sequence(parser *p, item **out)
{
    item *all = *out = new_item(p, ITEM_SEQUENCE);
    if (!all) return no_memory(p);
    skip_space(p, p->groups > 0);
    while (begins_item(p)) {
        item *i;
        TRY(read_item(p, &i));
        TRY(read_repeats(p, &i));
        append(all, i);
    }
    return OK;
}

static status read_choice(parser *p, item **out)
{
    item *all = *out = new_item(p, ITEM_CHOICE);
    if (!all) return no_memory(p);
    do {
        item *i;
        skip_space(p, true);
        TRY(read_sequence(p, &i));
        append(all, i);
    } while (take(p, "|"));
    return OK;
}

static status read_rule(parser *p)
{
    int number;
    const size_t from = p->at;
    TRY(read_name(p, &number));
    production *r = &p->rules[number];
    skip_space(p, false);
    if (!take(p, "::=")) return found_other(p, "::=");
    if (r->body) return fail_rule(p, from, r->name, "is defined a second time");
    TRY(read_choice(p, &r->body));
    r->at = from;
    if (p->at < p->text.len && peek(p) != '\n' && peek(p) != '\r')
        return found_other(p, "an item, |, or the end of the line");
    const item *first = r->body->inner;
    if (!first->inner && !first->next)
        return fail_rule(p, from, r->name, "has no body (an empty text is written \"\")");
    return OK;
}

static status read_rules(parser *p)
{
    uint32_t code;
    for (size_t at = 0; at < p->text.len;) {
        const size_t n = str_utf8_next(p->text, at, &code);
        if (n == 0) return fail_at(p, at, "this is not UTF-8");
        at += n;
    }
    for (;;) {
        skip_space(p, true);
        if (p->at == p->text.len) return OK;
        if (peek(p) == '|')
            return found_other(p, "a rule; an alternative goes on after a | at the end of a line");
        TRY(read_rule(p));
    }
}

/* ---- what rules must be ---- */

static bool has(const parser *p, const item *i, property what);

/* A rule that the item begins with and that is not known to be sound; -1: none. It begins with all
 * its alternatives, and with the members of a sequence up to the first that takes a character. */
static int unsound_beginning(const parser *p, const item *i)
{
    if (i->kind == ITEM_RULE) return p->rules[i->rule].has[SOUND] ? -1 : i->rule;
    for (const item *m = i->inner; m; m = m->next) {
        const int found = unsound_beginning(p, m);
        if (found >= 0) return found;
        if (i->kind == ITEM_SEQUENCE && !has(p, m, EMPTY)) break;
    }
    return -1;
}

/* By what is known of the rules so far. */
static bool has(const parser *p, const item *i, property what)
{
    const item *m = i->inner;
    if (what == SOUND) return unsound_beginning(p, i) < 0;
    switch (i->kind) {
    case ITEM_TEXT: return what == ENDS || i->text.len == 0;
    case ITEM_CHARS: return what == ENDS;
    case ITEM_RULE: return p->rules[i->rule].has[what];
    case ITEM_REPEAT: return i->least == 0 || has(p, m, what);
    case ITEM_SEQUENCE:
        while (m && has(p, m, what)) m = m->next;
        return !m;
    case ITEM_CHOICE: break;
    }
    while (m && !has(p, m, what)) m = m->next;
    return m != NULL;
}

/* Gives the property to every rule that has it because others have, in turns from either end. */
static void spread(parser *p, property what)
{
    bool changed = true;
    for (bool up = true; changed; up = !up) {
        changed = false;
        for (int k = 0; k < p->n_rules; k++) {
            production *r = &p->rules[up ? k : p->n_rules - 1 - k];
            if (r->has[what] || !has(p, r->body, what)) continue;
            r->has[what] = changed = true;
        }
    }
}

/* Going on from one unsound rule to the next ends in a circle. */
static status fail_recursion(const parser *p, int k)
{
    for (int n = 0; n < p->n_rules; n++) k = unsound_beginning(p, p->rules[k].body);
    return fail_rule(p, p->rules[k].at, p->rules[k].name, "begins with itself (left recursion)");
}

static status check_rules(parser *p, int *root)
{
    *root = -1;
    for (int k = 0; k < p->n_rules; k++) {
        const production *r = &p->rules[k];
        if (!r->body) return fail_rule(p, r->at, r->name, "is used and not defined");
        if (str_eq(r->name, STR("root"))) *root = k;
    }
    if (*root < 0) return fail_at(p, p->text.len, "there is no rule named root");
    spread(p, EMPTY);
    spread(p, ENDS);
    spread(p, SOUND);
    for (int k = p->n_rules - 1; k >= 0; k--) { /* rules come before what they use */
        const production *r = &p->rules[k];
        if (!r->has[ENDS]) return fail_rule(p, r->at, r->name, "stands for no text that ends");
        if (!r->has[SOUND]) return fail_recursion(p, k);
    }
    return OK;
}

/* ---- building ---- */

static int build(parser *p, const item *i, int next);

/* One round of a repetition: a call of its rule when it has one. */
static int build_round(parser *p, const item *inner, int rule, int next)
{
    return rule < 0 ? build(p, inner, next) : grammar_call(p->g, rule, next);
}

static int build_repeat(parser *p, const item *i, int next)
{
    int rule = -1, at = next;
    if (i->least > 1 || i->most > 1) { /* many copies: of a call */
        rule = grammar_rule(p->g);
        grammar_define(p->g, rule, build(p, i->inner, grammar_return(p->g)));
    }
    int rounds = i->least;
    if (i->most == NO_LIMIT) {
        at = grammar_loop(p->g);
        const int round = build_round(p, i->inner, rule, at);
        grammar_loop_set(p->g, at, round, next);
        if (rounds-- > 0) at = round;
    }
    for (int k = i->most; k > i->least; k--)
        at = grammar_either(p->g, build_round(p, i->inner, rule, at), next);
    for (; rounds > 0; rounds--) at = build_round(p, i->inner, rule, at);
    return at;
}

static int build(parser *p, const item *i, int next)
{
    switch (i->kind) {
    case ITEM_TEXT: return grammar_literal(p->g, i->text, next);
    case ITEM_CHARS: return grammar_chars(p->g, i->ranges, i->n_ranges, next);
    case ITEM_RULE: return grammar_call(p->g, p->rules[i->rule].number, next);
    case ITEM_REPEAT: return build_repeat(p, i, next);
    case ITEM_SEQUENCE:
        for (const item *m = i->last; m; m = m->prev) next = build(p, m, next);
        return next;
    case ITEM_CHOICE: break;
    }
    int all = build(p, i->inner, next);
    for (const item *m = i->inner->next; m; m = m->next)
        all = grammar_either(p->g, all, build(p, m, next));
    return all;
}

static status build_rules(parser *p, int root, bool blank_line)
{
    grammar *g = p->g;
    for (int k = 0; k < p->n_rules; k++) p->rules[k].number = grammar_rule(g);
    for (int k = 0; k < p->n_rules; k++)
        grammar_define(g, p->rules[k].number, build(p, p->rules[k].body, grammar_return(g)));
    int start = grammar_call(g, p->rules[root].number, grammar_return(g));
    if (blank_line) start = grammar_either(g, grammar_literal(g, STR("\n\n"), start), start);
    return grammar_finish(g, start, p->e);
}

static status compile(parser *p, bool blank_line)
{
    int root;
    /* Nothing decoded is longer than what it is written as. */
    p->bytes = arena_alloc(&p->mem, p->text.len + 4);
    p->ranges = arena_array(&p->mem, p->text.len + 1, sizeof *p->ranges);
    if (!p->bytes || !p->ranges) return no_memory(p);
    TRY(read_rules(p));
    TRY(check_rules(p, &root));
    TRY(grammar_new(&p->g, p->e));
    return build_rules(p, root, blank_line);
}

status gbnf_compile(grammar **out, str text, bool blank_line, error *e)
{
    if (text.len > GBNF_BYTES)
        return error_set(e, E_ARG, "grammar: found %zu bytes, want at most %d", text.len,
                         GBNF_BYTES);
    parser *p = mem_zalloc(sizeof *p);
    if (!p) return error_set(e, E_NOMEM, "grammar: no memory");
    p->text = text;
    p->e = e;
    arena_init(&p->mem, 0);
    const status s = compile(p, blank_line);
    if (s == OK) *out = p->g;
    else grammar_free(p->g);
    arena_free(&p->mem);
    mem_free(p);
    return s;
}
