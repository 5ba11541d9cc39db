/* turns.c - see turns.h. */
#include "compute/cpu/turns.h"
#include <string.h>
#include "base/banned.h"

/* A fraction of one, 128 bits, least significant limb first; results are truncated. */
typedef struct frac {
    uint32_t w[4];
} frac;

static frac multiply(frac a, frac b) /* high half of the product */
{
    uint32_t r[8] = { 0 };
    for (int i = 0; i < 4; i++) {
        uint64_t c = 0;
        for (int j = 0; j < 4; j++) {
            c += (uint64_t)a.w[i] * b.w[j] + r[i + j];
            r[i + j] = (uint32_t)c;
            c >>= 32;
        }
        r[i + 4] = (uint32_t)c;
    }
    frac f;
    memcpy(f.w, r + 4, sizeof f.w);
    return f;
}
static int compare(frac a, frac b)
{
    for (int i = 3; i >= 0; i--)
        if (a.w[i] != b.w[i]) return a.w[i] > b.w[i] ? 1 : -1;
    return 0;
}
static frac power(frac g, int n) /* n >= 1; about 2 log2(n) truncations of 2^-128 */
{
    frac r = g;
    int top = 0;
    while (n >> (top + 1)) top++;
    for (int b = top - 1; b >= 0; b--) {
        r = multiply(r, r);
        if (n >> b & 1) r = multiply(r, g);
    }
    return r;
}
static void set_bit(frac *f, int bit)
{
    f->w[bit / 32] |= 1u << (bit % 32);
}

/* 1 / theta for a double theta = m 2^e with m odd, by long division, one bit at a time */
static frac invert(double theta)
{
    uint64_t u;
    memcpy(&u, &theta, sizeof u);
    int e = (int)(u >> 52 & 0x7ff) - 1075;
    uint64_t m = (u & 0xfffffffffffffu) | 0x10000000000000u;
    while (!(m & 1)) {
        m >>= 1;
        e++;
    }
    frac inverse = { { 0, 0, 0, 0 } };
    uint64_t rest = 1;
    for (int i = 0; i < -e; i++) rest <<= 1; /* theta > 1, so m > 2^-e */
    for (int bit = 127 - (e > 0 ? e : 0); bit >= 0; bit--) {
        rest <<= 1;
        if (rest >= m) {
            rest -= m;
            set_bit(&inverse, bit);
        }
    }
    return inverse;
}
bool turns_init(turns *t, double theta, int dim)
{
    if (dim < 2 || dim % 2 || dim / 2 > TURNS_MAX_HALF || !(theta > 1.0) || theta > 0x1p60)
        return false;
    /* step = theta^(-2/dim): the largest fraction whose power half is at most 1/theta, found bit by
     * bit */
    const frac inverse = invert(theta);
    frac step = { { 0, 0, 0, 0 } };
    t->half = dim / 2;
    for (int bit = 127; bit >= 0; bit--) {
        frac f = step;
        set_bit(&f, bit);
        if (compare(power(f, t->half), inverse) <= 0) step = f;
    }
    /* 1/(2 pi) */
    static const frac radian = { { 0x7d4d3770u, 0x7f09d5f4u, 0x9391054au, 0x28be60dbu } };
    for (int i = 0; i < t->half; i++) {
        const frac f = i == 0 ? radian : multiply(radian, power(step, i));
        memcpy(t->turn[i], f.w, sizeof f.w);
    }
    return true;
}

/* sin and cos of a in [-pi/4, pi/4]: Taylor series, truncated below 2^-54 */
static double sin_taylor(double a)
{
    const double z = a * a;
    double p = 1.0 / 355687428096000.0; /* 1/17! */
    p = p * z - 1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return a + a * (z * p);
}
static double cos_taylor(double a)
{
    const double z = a * a;
    double p = 1.0 / 20922789888000.0; /* 1/16! */
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    p = p * z - 0.5;
    return 1.0 + z * p;
}
void turns_row(const turns *t, uint32_t position, float *cosine, float *sine)
{
    for (int i = 0; i < t->half; i++) {
        uint32_t w[4];
        uint64_t c = 0;
        for (int j = 0; j < 4; j++) { /* position * turn modulo one turn, exact */
            c += (uint64_t)t->turn[i][j] * position;
            w[j] = (uint32_t)c;
            c >>= 32;
        }
        const uint64_t high = (uint64_t)w[3] << 32 | w[2], low = (uint64_t)w[1] << 32 | w[0];
        const uint64_t quarter = (high + (UINT64_C(1) << 61)) >> 62; /* the nearest quarter turn */
        const int64_t rest = (int64_t)(high - (quarter << 62));      /* in [-2^61, 2^61) */
        const double part = (double)rest * 0x1p-64 + (double)(int64_t)(low >> 11) * 0x1p-117;
        const double angle = part * 0x1.921fb54442d18p+2; /* 2 pi */
        const float s = (float)sin_taylor(angle), k = (float)cos_taylor(angle);
        switch (quarter & 3) {
        case 0:
            cosine[i] = k;
            sine[i] = s;
            break;
        case 1:
            cosine[i] = -s;
            sine[i] = k;
            break;
        case 2:
            cosine[i] = -k;
            sine[i] = -s;
            break;
        default:
            cosine[i] = s;
            sine[i] = -k;
            break;
        }
    }
}
