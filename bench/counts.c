/* counts.c - instructions of each kernel, counted exactly: the regression guard that noise cannot
 * touch.
 *
 * A child runs every kernel once between two stops, and the parent steps it from one to the other,
 * an instruction at a time: on the processor itself, so every instruction set that it has is
 * counted, AVX-512 and AMX too, which valgrind does not run. Output: CSV, counts of one call; a
 * matmul has 32 outputs of 512 inputs, other operations are as named. Linux. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "compute/compute.h"
#include "compute/cpu/features.h"

enum { N_OUT = 32, N_IN = 512, ROWS = 64, WIDTH = 1024, HEAD = 128, POSITIONS = 512 };

typedef struct place {
    compute *c;
    const cpu_ops *ops; /* of the same tier */
    float *x, *y;
    void *memory;
    act a;
    tile_matrix w;
    uint8_t *pages[POSITIONS / KV_PAGE + 1];
    kv_layout kv;
} place;

typedef struct tile_kind {
    const char *name;
    tile_type type;
    dtype scale;
    int group, code_bytes, scales; /* scales: bytes behind the codes of a tile */
} tile_kind;

static const tile_kind kinds[] = {
    { "t2", TILE_T2, DTYPE_F16, 128, 512, 32 }, { "a2", TILE_A2, DTYPE_F16, 64, 256, 64 },
    { "a4", TILE_A4, DTYPE_F16, 64, 512, 64 },  { "a8", TILE_A8, DTYPE_F16, 64, 1024, 64 },
    { "e4", TILE_E4, DTYPE_U8, 32, 256, 16 },   { "b16", TILE_B16, DTYPE_F32, 1, 32, 0 },
    { "f32", TILE_F32, DTYPE_F32, 1, 64, 0 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };
static const int row_counts[] = { 1, 2, 4, 8, 16, 64 };
enum {
    COUNTS = 6,
    FLOAT_COUNTS = 3
}; /* of them with float activations: more rows take these again */

static void *room(size_t bytes)
{
    void *p = mem_alloc(bytes);
    if (!p) exit(1);
    return p;
}

/* Codes of any value, scales about 0.01. */
static void make_tiles(place *p, const tile_kind *k)
{
    rng r = { 1 };
    p->w = (tile_matrix){ .type = k->type,
                          .scale_type = k->scale,
                          .n_out = N_OUT,
                          .n_in = N_IN,
                          .group = k->group,
                          .tile_bytes = (size_t)(k->code_bytes + k->scales) };
    p->w.strip_bytes = p->w.tile_bytes * (size_t)(N_IN / k->group);
    uint8_t *at = p->w.data = room(tile_bytes(&p->w));
    for (size_t tile = 0; tile < tile_bytes(&p->w) / p->w.tile_bytes; tile++) {
        for (int i = 0; i < k->code_bytes; i++) *at++ = (uint8_t)(rng_next(&r) & 0x3f);
        for (int i = 0; i < k->scales; i++) *at++ = k->type == TILE_E4 ? 120 : i % 2 ? 0x21 : 0;
    }
}

static void stop(void)
{
    raise(SIGUSR1); /* the parent sees it and does not deliver it */
}

static void count_matmul(place *p, const char *tier, const char *kind, int rows, compute_mode mode)
{
    const matmul_out o = { &p->w, p->y, N_OUT };
    compute_prepare(p->c, &p->a, p->memory, p->x, rows, N_IN, N_IN, NULL,
                    compute_needs(&p->w, mode));
    compute_matmul(p->c, &p->a, &o, 1, mode);
    printf("%s,matmul %s%s,%d,", tier, kind, mode == COMPUTE_F32 && p->w.group > 1 ? " float" : "",
           rows);
    fflush(stdout);
    stop();
    compute_matmul(p->c, &p->a, &o, 1, mode);
    stop();
}
static void count_matmuls(place *p, const char *tier)
{
    const bool ref = strcmp(tier, "ref") == 0;         /* takes the same for every row */
    const bool many = strstr("avx512 gfni amx", tier); /* has kernels for more than a batch */
    for (int k = 0; k < KINDS; k++) {
        const bool codes = kinds[k].group > 1;
        make_tiles(p, &kinds[k]);
        for (int i = 0; codes && i < (ref ? 1 : many ? COUNTS : COUNTS - 1); i++)
            count_matmul(p, tier, kinds[k].name, row_counts[i], COMPUTE_INT8);
        for (int i = 0; i < (ref ? !codes : FLOAT_COUNTS); i++)
            count_matmul(p, tier, kinds[k].name, row_counts[i], COMPUTE_F32);
        mem_free(p->w.data);
    }
}

typedef struct operation {
    const char *name;
    void (*run)(place *p);
} operation;

static void run_prepare(place *p)
{
    const rotation rot = { WIDTH, p->y }; /* signs: any values do for counting */
    compute_prepare(p->c, &p->a, p->memory, p->x, 1, WIDTH, WIDTH, &rot, ACT_G128);
}
static void run_norm(place *p)
{
    compute_rmsnorm(p->c, p->y, p->x, p->x, 1, WIDTH, 1e-6f);
}
static void run_swiglu(place *p)
{
    compute_swiglu(p->c, p->y, p->x, p->x + WIDTH, WIDTH);
}
static void run_gdn(place *p)
{
    const gdn_shape s = { 1, 1, HEAD, HEAD, 4 };
    const float g = 0.5f, beta = 0.5f;
    const gdn_job job = { .rows = 1, .state = p->x + 4096, .final = true };
    compute_gdn(p->c, &s, p->y, p->x, &g, &beta, &job, 1);
}
static void run_attention(place *p)
{
    const attn_shape s = { 6, INT32_MAX, true, 0.09f };
    const attn_job job = { .rows = 1,
                           .pos = POSITIONS,
                           .pages = p->pages,
                           .n_pages = POSITIONS / KV_PAGE + 1 };
    compute_kv_attend(p->c, &s, &p->kv, 0, p->y, p->x, 6 * HEAD, HEAD, p->x, p->x, &job, 1);
}

static void run_quantize(place *p)
{
    compute_prepare(p->c, &p->a, p->memory, p->x, 1, WIDTH, WIDTH, NULL, ACT_G64);
}
static void run_unrotate(place *p)
{
    p->ops->unrotate(p->y, p->x, p->x + WIDTH, WIDTH);
}
#define FUNCTION(name, f)                   \
    static void run_##name(place *p)        \
    {                                       \
        p->ops->eval(f, p->y, p->x, WIDTH); \
    }
FUNCTION(exp, CPU_EXP)
FUNCTION(sigmoid, CPU_SIGMOID)
FUNCTION(silu, CPU_SILU)
FUNCTION(softplus, CPU_SOFTPLUS)
FUNCTION(tanh, CPU_TANH)
static void run_softcap(place *p)
{
    p->ops->softcap(p->y, WIDTH, 30);
}
static void run_add(place *p)
{
    p->ops->add(p->y, p->x, WIDTH);
}
static void run_finite(place *p)
{
    p->ops->finite(p->x, WIDTH);
}
static void run_l2norm(place *p)
{
    p->ops->l2norm(p->y, HEAD, 1);
}
static void run_rope(place *p)
{
    p->ops->rope(p->y, p->x, p->x + HEAD, HEAD / 2);
}
static void run_gates(place *p)
{
    p->ops->gates(p->y, p->y + HEAD, p->x, p->x + HEAD, p->x + 2 * HEAD, p->x + 3 * HEAD, HEAD);
}
static void run_gated_norm(place *p)
{
    p->ops->gated_norm(p->y, p->x, p->x + HEAD, p->x + 2 * HEAD, HEAD, 1e-6f);
}
static void run_head_gate(place *p)
{
    p->ops->head_gate(p->y, p->x, HEAD);
}
static void run_conv(place *p)
{
    p->ops->conv(p->y, p->x, p->x + WIDTH, p->x + 4 * WIDTH, 4, WIDTH, 1, 0, WIDTH);
}
static void run_dynconv(place *p)
{
    p->ops->dynconv(p->y, p->x + 3 * WIDTH, WIDTH, p->x + 4 * WIDTH, p->x + 8 * WIDTH, 4, 16);
}
static void run_merge(place *p)
{
    p->ops->attend_merge(p->y, p->y + HEAD, p->x, p->y + HEAD, HEAD);
}
static void run_topk(place *p)
{
    int32_t ids[8];
    p->ops->topk(p->x, 4 * WIDTH, 8, ids, p->y);
}
static void run_argmax(place *p)
{
    p->ops->argmax(p->x, 4 * WIDTH);
}

static const operation operations[] = { { "rotate and quantize 1024", run_prepare },
                                        { "quantize 1024", run_quantize },
                                        { "unrotate 1024", run_unrotate },
                                        { "rmsnorm 1024", run_norm },
                                        { "swiglu 1024", run_swiglu },
                                        { "exp 1024", run_exp },
                                        { "sigmoid 1024", run_sigmoid },
                                        { "silu 1024", run_silu },
                                        { "softplus 1024", run_softplus },
                                        { "tanh 1024", run_tanh },
                                        { "softcap 1024", run_softcap },
                                        { "add 1024", run_add },
                                        { "finite 1024", run_finite },
                                        { "l2norm 128", run_l2norm },
                                        { "rope 128", run_rope },
                                        { "gates 128", run_gates },
                                        { "gated norm 128", run_gated_norm },
                                        { "head gate 128", run_head_gate },
                                        { "convolution 1024x4", run_conv },
                                        { "dynamic convolution 1024x4", run_dynconv },
                                        { "delta rule 128x128", run_gdn },
                                        { "merge of spans 128", run_merge },
                                        { "top 8 of 4096", run_topk },
                                        { "argmax 4096", run_argmax } };

static void count_one(place *p, const char *tier, const char *name, void (*run)(place *p))
{
    run(p);
    printf("%s,%s,1,", tier, name);
    fflush(stdout);
    stop();
    run(p);
    stop();
}

static void count_operations(place *p, const char *tier)
{
    static const char *const names[] = { "attention f16 6x512", "attention f32 6x512",
                                         "attention q8 6x512" };
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        count_one(p, tier, operations[i].name, operations[i].run);
    for (int type = KV_F16; type <= KV_Q8; type++) {
        if (compute_kv_layout(&p->kv, (kv_type)type, 1, 1, HEAD, NULL)) exit(1);
        for (int i = 0; i <= POSITIONS / KV_PAGE; i++) {
            p->pages[i] = room(p->kv.page_bytes);
            memset(p->pages[i], 0, p->kv.page_bytes);
        }
        count_one(p, tier, names[type], run_attention);
        for (int i = 0; i <= POSITIONS / KV_PAGE; i++) mem_free(p->pages[i]);
    }
}

/* The child: everything that is counted lies between an odd stop and the next. */
static void run_all(void)
{
    const size_t floats = 4096 + HEAD * HEAD + ROWS * N_IN;
    char tiers[128];
    snprintf(tiers, sizeof tiers, "%s", compute_tiers());
    place p = { .x = room(floats * sizeof(float)), .y = room(floats * sizeof(float)) };
    p.memory = room(compute_act_bytes(ROWS, WIDTH, ACT_F32 | ACT_G32 | ACT_G64 | ACT_G128));
    rng r = { 2 };
    stop();
    stop(); /* what the stops themselves cost */
    int at = 0;
    for (char *rest = tiers, *tier; (tier = strtok_r(rest, " ", &rest)) != NULL;) {
        if (compute_open(&p.c, &(compute_options){ tier, 1 }, NULL)) exit(1);
        p.ops = features_get()->tiers[at++];
        for (size_t i = 0; i < floats; i++) p.x[i] = 0.1f * (float)rng_normal(&r);
        for (size_t i = 0; i < floats; i++) p.y[i] = 1;
        if (strcmp(tier, "ref") != 0) count_operations(&p, tier); /* ref is not meant to be fast */
        count_matmuls(&p, tier);
        compute_close(p.c);
    }
    exit(0);
}

/* Parent and child on one: waking another processor for every instruction takes three times as
 * long. */
static void share_a_processor(void)
{
    cpu_set_t may, one;
    if (sched_getaffinity(0, sizeof may, &may)) return;
    int cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &may)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one); /* else it is only slow */
}

int main(void)
{
    share_a_processor();
    printf("tier,kernel,rows,instructions\n");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        run_all();
    }
    long steps = 0, base = -1;
    bool counting = false;
    int how, code = 1;
    while (child > 0 && waitpid(child, &how, 0) == child) {
        if (WIFEXITED(how)) {
            code = WEXITSTATUS(how);
            break;
        }
        if (!WIFSTOPPED(how)) break;
        const int signal = WSTOPSIG(how);
        const bool mark = signal == SIGUSR1;
        if (mark && counting && base < 0) base = steps;
        else if (mark && counting) printf("%ld\n", steps - base), fflush(stdout);
        if (mark) counting = !counting, steps = 0;
        else if (signal == SIGTRAP) steps++;
        const long passed_on = mark || signal == SIGTRAP ? 0 : signal;
        ptrace(counting ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, passed_on);
    }
    if (code) fprintf(stderr, "counts: the kernels did not run to their end\n");
    return code;
}
