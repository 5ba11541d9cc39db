/* state.h - what a king remembers of one sequence, and how rows are taken back.
 *
 * Attention keys and values live in pages of KV_PAGE positions from a pool, reference-counted,
 * copied on write. The recurrent state is never written by provisional rows: their pass leaves a
 * tape (k, delta, g, conv input), commit marks how many rows stay, and the next pass applies those
 * rows with the same operations in the same order. Hence any sequence of begin and commit equals
 * the kept rows appended one at a time, bit for bit. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H
#include "compute/compute.h"
#include "pack/config.h"

enum { STATE_MAX_PROVISIONAL = 16 }; /* rows of a pass that may be taken back */

/* ---- pages ---- */
typedef struct state_pool state_pool;
status state_pool_new(state_pool **out, const kv_layout *layout, int n_pages, error *e);
void state_pool_free(state_pool *p); /* every page must be back */
int state_pool_free_pages(const state_pool *p);
int state_pool_pages(const state_pool *p); /* all of them, free or not */
const kv_layout *state_pool_layout(const state_pool *p);

/* ---- sequence ---- */
typedef struct state state;
typedef struct state_snap state_snap;
typedef enum row_kind { ROWS_FINAL, ROWS_PROVISIONAL } row_kind;

/* max_positions bounds the page table. */
status state_new(state **out, const king_config *kc, state_pool *kv, int max_positions, error *e);
void state_free(state *s);
void state_reset(state *s);                /* back to position 0 */
int state_len(const state *s);             /* committed positions */
size_t state_bytes(const king_config *kc); /* of one sequence without its pages */

/* Makes room for rows at positions len.. (E_LIMIT when the pool has no page or the table is full:
 * nothing changed). Provisional rows: at most STATE_MAX_PROVISIONAL. */
status state_begin(state *s, int rows, row_kind kind, error *e);
/* Ends what state_begin began: 0 <= keep <= rows; FINAL rows: keep == rows. keep 0 without a pass
 * takes begin back. */
void state_commit(state *s, int keep);

/* A snapshot holds the committed rows; cheap to restore into any state of the same king and pool.
 * Taking it applies pending rows first. */
status state_snapshot(state *s, compute *c, state_snap **out, error *e);
status state_restore(state *s, const state_snap *p, error *e);
void state_snap_free(state_snap *p);
int state_snap_len(const state_snap *p);
size_t state_snap_bytes(const state_snap *p); /* own memory, shared pages not counted */
int state_snap_pages(const state_snap *p);
/* Pages that are the same memory. */
int state_snap_shared(const state_snap *a, const state_snap *b);
/* A snapshot as bytes for a disk tier, little-endian. Room for one of `len` positions is taken from
 * the pool (E_LIMIT when it has too few pages); fill touches nothing but that room, so that another
 * thread may do it, and checks every size of what write wrote. */
typedef status state_put_fn(void *arg, const void *bytes, size_t n, error *e);
typedef status state_get_fn(void *arg, void *bytes, size_t n, error *e);
status state_snap_write(const state_snap *p, state_put_fn *put, void *arg, error *e);
uint64_t state_snap_file_bytes(const state_snap *p); /* that write puts */
size_t state_snap_room_bytes(const king_config *kc, const state_pool *kv, int len); /* pages too */
status state_snap_room(state_snap **out, const king_config *kc, state_pool *kv, int len, error *e);
status state_snap_fill(state_snap *p, state_get_fn *get, void *arg, error *e);

/* Values for tests and capture of model layer `layer`, pending rows applied:
 * recurrent [n_v_head, v_dim, k_dim] and conv [taps-1, channels], valid until the next pass;
 * keys (roped) or values [n_kv_head, len, head_dim]. */
void state_peek_gdn(state *s, compute *c, int layer, const float **recurrent, const float **conv);
void state_peek_kv(const state *s, int layer, bool values, float *out);

/* ---- for the layers of a pass, between state_begin and state_commit ---- */

/* `gdn` counts gated delta net layers; each of these functions is called once per pass and layer,
 * in this order. */
gdn_shape state_gdn_shape(const king_config *kc);
/* row: where this sequence begins in the pass. */
conv_job state_conv_job(state *s, int gdn, int row);
/* x: its conv input rows [rows, channels]. */
void state_conv_keep(state *s, int gdn, const float *x);
gdn_job state_gdn_job(state *s, int gdn, int row);
attn_job state_attn_job(const state *s, int row);
state_pool *state_get_pool(const state *s);
int state_rows(const state *s); /* of the pass that has begun; 0 outside */
void state_passed(state *s);    /* every layer has run: pending rows are applied */
#endif
