/* ternary.c - see ternary.h. */
#include "pack/ternary.h"
#include <string.h>
#include "base/banned.h"

void ternary_put_pq2(const uint8_t codes[TERNARY_CODES], uint16_t d, uint8_t block[TERNARY_PQ2])
{
    memcpy(block, &d, sizeof d);
    memcpy(block + sizeof d, codes, TERNARY_CODES);
}

void ternary_get_pq2(const uint8_t block[TERNARY_PQ2], uint8_t codes[TERNARY_CODES], uint16_t *d)
{
    memcpy(d, block, sizeof *d);
    memcpy(codes, block + sizeof *d, TERNARY_CODES);
}

/* Where element e lies: byte, and the number of its base 3 digit from the top. The first 80 fill 16
 * bytes in five sweeps, the next 40 fill 8 bytes, the last 8 two bytes of four digits. */
static void place(int e, int *byte, int *digit)
{
    if (e < 80) {
        *byte = e & 15;
        *digit = e >> 4;
    } else if (e < 120) {
        *byte = 16 + ((e - 80) & 7);
        *digit = (e - 80) >> 3;
    } else {
        *byte = 24 + ((e - 120) & 1);
        *digit = (e - 120) >> 1;
    }
}

static const unsigned powers[5] = { 1, 3, 9, 27, 81 };

bool ternary_put_ptq1(const uint8_t codes[TERNARY_CODES], uint16_t d, uint8_t block[TERNARY_PTQ1])
{
    unsigned sums[26] = { 0 };
    for (int e = 0; e < TERNARY_GROUP; e++) {
        const unsigned code = (unsigned)codes[e / 4] >> 2 * (e % 4) & 3u;
        int byte, digit;
        if (code == 3) return false;
        place(e, &byte, &digit);
        sums[byte] += code * powers[4 - digit];
    }
    /* the fraction sum / 243 in 1/256, rounded up: the digits come out by multiplication */
    for (int i = 0; i < 26; i++) block[i] = (uint8_t)((sums[i] * 256 + 242) / 243);
    memcpy(block + 26, &d, sizeof d);
    return true;
}

void ternary_get_ptq1(const uint8_t block[TERNARY_PTQ1], uint8_t codes[TERNARY_CODES], uint16_t *d)
{
    memset(codes, 0, TERNARY_CODES);
    for (int e = 0; e < TERNARY_GROUP; e++) {
        int byte, digit;
        place(e, &byte, &digit);
        const unsigned code = (block[byte] * powers[digit] & 255u) * 3 >> 8;
        codes[e / 4] = (uint8_t)(codes[e / 4] | code << 2 * (e % 4));
    }
    memcpy(d, block + 26, sizeof *d);
}
