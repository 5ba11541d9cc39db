/* ternary.h - the ternary blocks of GGUF files: 128 weights and their f16 scale d.
 *
 * Codes are two bits each, four a byte, lowest first, and stand for (code - 1) * d: the 32 bytes
 * are those of an MLX affine 2-bit group, whose scale is d and whose bias is -d. PQ2_0 stores them
 * as they are behind d; PTQ1_0 stores five codes a byte in base 3 before d, and has no code 3.
 * (PrismML-Eng/llama.cpp, ggml/src/ggml-common.h, ggml-quants.c.) */
#ifndef PACK_TERNARY_H
#define PACK_TERNARY_H
#include <stdbool.h>
#include <stdint.h>

enum { TERNARY_GROUP = 128, TERNARY_CODES = 32, TERNARY_PQ2 = 34, TERNARY_PTQ1 = 28 }; /* bytes */

void ternary_put_pq2(const uint8_t codes[TERNARY_CODES], uint16_t d, uint8_t block[TERNARY_PQ2]);
void ternary_get_pq2(const uint8_t block[TERNARY_PQ2], uint8_t codes[TERNARY_CODES], uint16_t *d);
/* False when a code is 3: the block holds nothing of use then. */
bool ternary_put_ptq1(const uint8_t codes[TERNARY_CODES], uint16_t d, uint8_t block[TERNARY_PTQ1]);
void ternary_get_ptq1(const uint8_t block[TERNARY_PTQ1], uint8_t codes[TERNARY_CODES], uint16_t *d);
#endif
