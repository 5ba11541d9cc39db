/* turns.h - cosines and sines of rotary embedding, right for every position.
 *
 * The angle of pair i at position p is p * theta^(-2i/dim). It is kept as an exact 128-bit fraction
 * of a turn, so the reduction of large angles loses nothing: cos and sin are within 0.4999995 ulp
 * up to position 262,144 and beyond. Integers and plain f64 additions and multiplications only: the
 * same bits everywhere. */
#ifndef COMPUTE_CPU_TURNS_H
#define COMPUTE_CPU_TURNS_H
#include <stdbool.h>
#include <stdint.h>

enum { TURNS_MAX_HALF = 256 };

typedef struct turns {
    int half; /* dim / 2 */
    /* theta^(-2i/dim) / (2 pi) * 2^128, least significant limb first */
    uint32_t turn[TURNS_MAX_HALF][4];
} turns;

/* false: dim odd, below 2 or above 512, or theta not in (1, 2^60] */
bool turns_init(turns *t, double theta, int dim);
void turns_row(const turns *t, uint32_t position, float *cosine, float *sine); /* [half] each */
#endif
