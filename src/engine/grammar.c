/* grammar.c - a language over bytes.
 *
 * A thread of the automaton is a stack of nodes: where it stands, and where each rule it is in
 * returns to. Stacks are interned, and so are sets of them: the states. */
#include <stdlib.h>
#include "base/mem.h"
#include "engine/grammar.h"
#include "base/banned.h"

enum {
    UNKNOWN = -2,
    MAX_STACKS = 1 << 18,
    MAX_SETS = 4096,
    MAX_THREADS = 1 << 14, /* of a state, and nodes met on the way to it */
    MAX_MEMBERS = 1 << 22, /* threads of all states */
    MAX_WORK = 1 << 28     /* threads looked at in a run: some seconds at worst */
};

typedef enum node_kind { NODE_SET, NODE_SPLIT, NODE_CALL, NODE_RETURN } node_kind;
typedef struct node {
    node_kind kind;
    int next, other; /* other: second branch, rule, or index of the set */
} node;

typedef struct stack {
    int node, below, depth; /* below: -1 at the bottom */
} stack;

typedef struct gstate {
    int first, count; /* stacks in `members` */
    bool accepts;
} gstate;

/* Where a thread may come to without a byte. */
typedef struct place {
    int node, below;
    unsigned stamp; /* in `met`: of the state it was met for */
} place;

/* Growing arrays; each has room for cap elements. */
typedef struct array {
    void *ptr;
    size_t len, cap, bytes;
} array;

enum {
    STACK_SLOTS = 2 * MAX_STACKS,
    STATE_SLOTS = 4 * GRAMMAR_STATES,
    PLACE_SLOTS = 4 * MAX_THREADS
};

struct grammar {
    array nodes, sets, rules, stacks, states, members, table; /* table: [states * 256] */
    int *stack_slots, *state_slots;                           /* hash -> index + 1 */
    /* the state being made */
    int threads[MAX_THREADS], n_threads;
    place todo[MAX_THREADS], met[PLACE_SLOTS];
    int n_todo, n_met;
    unsigned stamp;
    bool accepting;
    int64_t work;
    status failed;
};

static void *push(grammar *g, array *a, size_t n, size_t most)
{
    if (a->len + n > most) {
        g->failed = E_LIMIT;
        return NULL;
    }
    if (a->len + n > a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 64;
        while (cap < a->len + n) cap *= 2;
        void *ptr = mem_resize(a->ptr, cap * a->bytes);
        if (!ptr) {
            g->failed = E_NOMEM;
            return NULL;
        }
        a->ptr = ptr;
        a->cap = cap;
    }
    void *at = (char *)a->ptr + a->len * a->bytes;
    a->len += n;
    return at;
}

static node *node_at(const grammar *g, int i)
{
    return (node *)g->nodes.ptr + i;
}

static stack *stack_at(const grammar *g, int i)
{
    return (stack *)g->stacks.ptr + i;
}

static gstate *state_at(const grammar *g, int i)
{
    return (gstate *)g->states.ptr + i;
}

status grammar_new(grammar **out, error *e)
{
    grammar *g = mem_zalloc(sizeof *g);
    if (!g) return error_set(e, E_NOMEM, "grammar: no memory");
    g->nodes.bytes = sizeof(node);
    g->sets.bytes = sizeof(grammar_set);
    g->rules.bytes = g->members.bytes = g->table.bytes = sizeof(int);
    g->stacks.bytes = sizeof(stack);
    g->states.bytes = sizeof(gstate);
    g->stack_slots = mem_array(STACK_SLOTS, sizeof *g->stack_slots);
    g->state_slots = mem_array(STATE_SLOTS, sizeof *g->state_slots);
    if (!g->stack_slots || !g->state_slots) {
        grammar_free(g);
        return error_set(e, E_NOMEM, "grammar: no memory");
    }
    *out = g;
    return OK;
}

void grammar_free(grammar *g)
{
    if (!g) return;
    array *const all[] = { &g->nodes,  &g->sets,    &g->rules, &g->stacks,
                           &g->states, &g->members, &g->table };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_free(all[i]->ptr);
    mem_free(g->stack_slots);
    mem_free(g->state_slots);
    mem_free(g);
}

/* ---- building ---- */

static int add_node(grammar *g, node_kind kind, int next, int other)
{
    node *n = push(g, &g->nodes, 1, GRAMMAR_NODES);
    if (!n) return 0;
    *n = (node){ kind, next, other };
    return (int)g->nodes.len - 1;
}

void grammar_set_add(grammar_set *s, int from, int to)
{
    for (int b = from; b <= to; b++) s->bits[b >> 5] |= 1u << (b & 31);
}

int grammar_bytes(grammar *g, const grammar_set *set, int next)
{
    const grammar_set *known = g->sets.ptr;
    for (size_t i = 0; i < g->sets.len; i++)
        if (memcmp(&known[i], set, sizeof *set) == 0) return add_node(g, NODE_SET, next, (int)i);
    grammar_set *s = push(g, &g->sets, 1, MAX_SETS);
    if (!s) return 0;
    *s = *set;
    return add_node(g, NODE_SET, next, (int)g->sets.len - 1);
}

int grammar_byte(grammar *g, char c, int next)
{
    grammar_set s = { { 0 } };
    grammar_set_add(&s, (uint8_t)c, (uint8_t)c);
    return grammar_bytes(g, &s, next);
}

static int bytes_between(grammar *g, int from, int to, int next)
{
    grammar_set s = { { 0 } };
    grammar_set_add(&s, from, to);
    return grammar_bytes(g, &s, next);
}

static bool all_are(const uint8_t *bytes, int n, uint8_t value)
{
    for (int i = 0; i < n; i++)
        if (bytes[i] != value) return false;
    return true;
}

/* Sequences of n bytes between two of that length, in UTF-8: those that begin like the first, those
 * that begin like the last, and between them any continuation. */
static int sequences_between(grammar *g, const uint8_t *from, const uint8_t *to, int n, int next)
{
    static const uint8_t least[4] = { 0x80, 0x80, 0x80, 0x80 },
                         most[4] = { 0xbf, 0xbf, 0xbf, 0xbf };
    int low = from[0], high = to[0], first = -1, last = -1;
    if (n == 1) return bytes_between(g, low, high, next);
    if (low == high)
        return bytes_between(g, low, low, sequences_between(g, from + 1, to + 1, n - 1, next));
    if (!all_are(from + 1, n - 1, 0x80)) {
        first = bytes_between(g, low, low, sequences_between(g, from + 1, most, n - 1, next));
        low++;
    }
    if (!all_are(to + 1, n - 1, 0xbf)) {
        last = bytes_between(g, high, high, sequences_between(g, least, to + 1, n - 1, next));
        high--;
    }
    int all = -1;
    if (low <= high)
        all = bytes_between(g, low, high, sequences_between(g, least, most, n - 1, next));
    if (first >= 0) all = all < 0 ? first : grammar_either(g, first, all);
    if (last >= 0) all = all < 0 ? last : grammar_either(g, all, last);
    return all;
}

int grammar_chars(grammar *g, const grammar_range *ranges, size_t n, int next)
{
    /* What is encoded alike: one byte, two, three before and after the surrogates, four. */
    static const grammar_range alike[] = { { 0x80, 0x7ff },
                                           { 0x800, 0xd7ff },
                                           { 0xe000, 0xffff },
                                           { 0x10000, 0x10ffff } };
    grammar_set ascii = { { 0 } };
    int all = -1;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].from < 0x80)
            grammar_set_add(&ascii, (int)ranges[i].from,
                            ranges[i].to < 0x80 ? (int)ranges[i].to : 0x7f);
        for (size_t k = 0; k < sizeof alike / sizeof *alike; k++) {
            const uint32_t from = ranges[i].from > alike[k].from ? ranges[i].from : alike[k].from;
            const uint32_t to = ranges[i].to < alike[k].to ? ranges[i].to : alike[k].to;
            char first[4], last[4];
            if (from > to) continue;
            const int len = (int)str_utf8_put(from, first);
            str_utf8_put(to, last);
            const int one =
                sequences_between(g, (const uint8_t *)first, (const uint8_t *)last, len, next);
            all = all < 0 ? one : grammar_either(g, all, one);
        }
    }
    const grammar_set none = { { 0 } };
    if (all >= 0 && memcmp(&ascii, &none, sizeof none) == 0) return all;
    const int one = grammar_bytes(g, &ascii, next);
    return all < 0 ? one : grammar_either(g, one, all);
}

int grammar_literal(grammar *g, str text, int next)
{
    for (size_t i = text.len; i-- > 0;) next = grammar_byte(g, text.ptr[i], next);
    return next;
}

int grammar_either(grammar *g, int a, int b)
{
    return add_node(g, NODE_SPLIT, a, b);
}

int grammar_loop(grammar *g)
{
    return add_node(g, NODE_SPLIT, 0, 0);
}

void grammar_loop_set(grammar *g, int loop, int body, int next)
{
    if (g->failed) return;
    node_at(g, loop)->next = body;
    node_at(g, loop)->other = next;
}

int grammar_rule(grammar *g)
{
    int *r = push(g, &g->rules, 1, GRAMMAR_NODES);
    if (!r) return 0;
    *r = -1;
    return (int)g->rules.len - 1;
}

int grammar_return(grammar *g)
{
    return add_node(g, NODE_RETURN, 0, 0);
}

void grammar_define(grammar *g, int rule, int start)
{
    if (!g->failed) ((int *)g->rules.ptr)[rule] = start;
}

int grammar_call(grammar *g, int rule, int next)
{
    return add_node(g, NODE_CALL, next, rule);
}

/* ---- running ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static int intern_stack(grammar *g, int at, int below)
{
    size_t slot = (size_t)(mix(mix(0, (uint64_t)at), (uint64_t)(below + 1)) % STACK_SLOTS);
    for (; g->stack_slots[slot]; slot = (slot + 1) % STACK_SLOTS) {
        const stack *s = stack_at(g, g->stack_slots[slot] - 1);
        if (s->node == at && s->below == below) return g->stack_slots[slot] - 1;
    }
    stack *s = push(g, &g->stacks, 1, MAX_STACKS);
    if (!s) return -1;
    *s = (stack){ at, below, below < 0 ? 1 : stack_at(g, below)->depth + 1 };
    g->stack_slots[slot] = (int)g->stacks.len;
    return (int)g->stacks.len - 1;
}

/* A place is gone on from once in each state, so that empty repetitions end. */
static void go_to(grammar *g, int at, int below)
{
    size_t slot = (size_t)(mix(mix(1, (uint64_t)at), (uint64_t)(below + 1)) % PLACE_SLOTS);
    for (; g->met[slot].stamp == g->stamp; slot = (slot + 1) % PLACE_SLOTS)
        if (g->met[slot].node == at && g->met[slot].below == below) return;
    if (g->n_met == MAX_THREADS || g->work >= MAX_WORK) {
        g->failed = E_LIMIT;
        return;
    }
    g->met[slot] = g->todo[g->n_todo++] = (place){ at, below, g->stamp };
    g->n_met++;
    g->work++;
}

/* A call at the end of a rule takes its place, so that lists may be written as right recursion; any
 * other nests, and one that nests too deep is dropped. */
static void enter_rule(grammar *g, const node *call, int below)
{
    int back = below;
    if (node_at(g, call->next)->kind != NODE_RETURN) {
        if (below >= 0 && stack_at(g, below)->depth >= GRAMMAR_DEPTH) return;
        back = intern_stack(g, call->next, below);
        if (back < 0) return;
    }
    go_to(g, ((const int *)g->rules.ptr)[call->other], back);
}

/* Follows what consumes no byte from (at, below): threads that stand before a byte are added to the
 * state being made. */
static void follow(grammar *g, int at, int below)
{
    go_to(g, at, below);
    while (g->n_todo > 0 && !g->failed) {
        const place p = g->todo[--g->n_todo];
        const node d = *node_at(g, p.node);
        if (d.kind == NODE_SET) {
            const int s = intern_stack(g, p.node, p.below);
            if (s >= 0) g->threads[g->n_threads++] = s;
        } else if (d.kind == NODE_SPLIT) {
            go_to(g, d.other, p.below);
            go_to(g, d.next, p.below);
        } else if (d.kind == NODE_CALL) {
            enter_rule(g, &d, p.below);
        } else if (p.below < 0) {
            g->accepting = true;
        } else {
            const stack back = *stack_at(g, p.below);
            go_to(g, back.node, back.below);
        }
    }
}

static bool same_members(const grammar *g, const gstate *s)
{
    if (s->count != g->n_threads || s->accepts != g->accepting) return false;
    return s->count == 0 || memcmp((const int *)g->members.ptr + s->first, g->threads,
                                   (size_t)s->count * sizeof(int)) == 0;
}

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* The state of the collected threads. */
static int intern_state(grammar *g)
{
    if (g->n_threads == 0 && !g->accepting) return GRAMMAR_DEAD;
    qsort(g->threads, (size_t)g->n_threads, sizeof *g->threads, by_number);
    uint64_t h = g->accepting;
    for (int i = 0; i < g->n_threads; i++) h = mix(h, (uint64_t)g->threads[i]);
    size_t slot = (size_t)(h % STATE_SLOTS);
    for (; g->state_slots[slot]; slot = (slot + 1) % STATE_SLOTS)
        if (same_members(g, state_at(g, g->state_slots[slot] - 1))) return g->state_slots[slot] - 1;
    const int first = (int)g->members.len;
    if (g->n_threads > 0) {
        int *members = push(g, &g->members, (size_t)g->n_threads, MAX_MEMBERS);
        if (!members) return GRAMMAR_DEAD;
        memcpy(members, g->threads, (size_t)g->n_threads * sizeof *members);
    }
    int *row = push(g, &g->table, 256, (size_t)GRAMMAR_STATES * 256);
    gstate *s = push(g, &g->states, 1, GRAMMAR_STATES);
    if (!row || !s) return GRAMMAR_DEAD;
    for (int b = 0; b < 256; b++) row[b] = UNKNOWN;
    *s = (gstate){ first, g->n_threads, g->accepting };
    g->state_slots[slot] = (int)g->states.len;
    return (int)g->states.len - 1;
}

static void begin_state(grammar *g)
{
    g->n_threads = g->n_todo = g->n_met = 0;
    g->stamp++;
    g->accepting = false;
}

/* Which nodes lead to the end of their rule: what follows is mostly built first, so few rounds
 * do. */
static bool every_rule_ends(grammar *g, int start)
{
    const int *rules = g->rules.ptr;
    bool *ends = mem_array(g->nodes.len, sizeof *ends), all, changed = true;
    if (!ends) {
        g->failed = E_NOMEM;
        return true;
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < g->nodes.len; i++) {
            const node *n = node_at(g, (int)i);
            const bool is = n->kind == NODE_RETURN  ? true
                            : n->kind == NODE_SET   ? ends[n->next]
                            : n->kind == NODE_SPLIT ? ends[n->next] || ends[n->other]
                                                    : ends[n->next] && ends[rules[n->other]];
            changed |= is != ends[i];
            ends[i] = is;
        }
    }
    all = ends[start];
    for (size_t i = 0; i < g->rules.len; i++) all &= ends[rules[i]];
    mem_free(ends);
    return all;
}

status grammar_finish(grammar *g, int start, error *e)
{
    if (!g->failed && !every_rule_ends(g, start))
        return error_set(e, E_ARG, "grammar: a part of it stands for no text that ends");
    begin_state(g);
    if (!g->failed) follow(g, start, -1);
    const int first = g->failed ? GRAMMAR_DEAD : intern_state(g);
    if (!g->failed && first == GRAMMAR_DEAD)
        return error_set(e, E_ARG, "grammar: it allows no text at all");
    return grammar_status(g, e);
}

status grammar_status(const grammar *g, error *e)
{
    if (g->failed == E_LIMIT)
        return error_set(e, E_ARG, "grammar: too large (%d nodes, %d states)", (int)g->nodes.len,
                         (int)g->states.len);
    return g->failed ? error_set(e, g->failed, "grammar: no memory") : OK;
}

int grammar_next(grammar *g, int state, uint8_t byte)
{
    if (state == GRAMMAR_DEAD) return GRAMMAR_DEAD;
    const size_t cell = (size_t)state * 256 + byte;
    const int known = ((const int *)g->table.ptr)[cell];
    if (known != UNKNOWN) return known;
    begin_state(g);
    const gstate s = *state_at(g, state);
    g->work += s.count;
    for (int i = 0; i < s.count && !g->failed; i++) {
        const stack t = *stack_at(g, ((const int *)g->members.ptr)[s.first + i]);
        const node *d = node_at(g, t.node);
        const grammar_set *set = (const grammar_set *)g->sets.ptr + d->other;
        if (set->bits[byte >> 5] >> (byte & 31) & 1) follow(g, d->next, t.below);
    }
    const int next = g->failed ? GRAMMAR_DEAD : intern_state(g);
    ((int *)g->table.ptr)[cell] = next;
    return next;
}

/* The stack `at` of an earlier `from`, interned anew. */
static int copy_stack(grammar *g, const stack *from, int at)
{
    int nodes[GRAMMAR_DEPTH + 2], n = 0, below = -1; /* a call's return at each depth, and a node */
    for (; at >= 0; at = from[at].below) nodes[n++] = from[at].node;
    while (n > 0) below = intern_stack(g, nodes[--n], below);
    return below;
}

void grammar_keep(grammar *g, int *const *states, int n)
{
    array stacks = g->stacks, members = g->members, kept = g->states;
    g->stacks = (array){ .bytes = stacks.bytes };
    g->members = (array){ .bytes = members.bytes };
    g->states = (array){ .bytes = kept.bytes };
    g->table.len = 0;
    memset(g->stack_slots, 0, STACK_SLOTS * sizeof *g->stack_slots);
    memset(g->state_slots, 0, STATE_SLOTS * sizeof *g->state_slots);
    g->failed = OK;
    int start = GRAMMAR_START; /* the first: its number stays */
    for (int i = -1; i < n && !g->failed; i++) {
        int *state = i < 0 ? &start : states[i];
        if (*state == GRAMMAR_DEAD) continue;
        const gstate *s = (const gstate *)kept.ptr + *state;
        begin_state(g);
        g->accepting = s->accepts;
        for (int k = 0; k < s->count && !g->failed; k++)
            g->threads[g->n_threads++] =
                copy_stack(g, stacks.ptr, ((const int *)members.ptr)[s->first + k]);
        if (!g->failed) *state = intern_state(g);
    }
    mem_free(stacks.ptr);
    mem_free(members.ptr);
    mem_free(kept.ptr);
}

bool grammar_accepts(const grammar *g, int state)
{
    return state >= 0 && state_at(g, state)->accepts;
}
