/* dtype.h - the element types of tensor files, and conversion between them and f32.
 *
 * All formats are little-endian, as are all supported machines. Data may sit at any byte offset. */
#ifndef PACK_DTYPE_H
#define PACK_DTYPE_H
#include "base/error.h"
#include "base/str.h"

/* Every type name that the safetensors format defines. */
typedef enum dtype {
    DTYPE_BOOL,
    DTYPE_F4,
    DTYPE_F6_E2M3,
    DTYPE_F6_E3M2,
    DTYPE_U8,
    DTYPE_I8,
    DTYPE_F8_E5M2,
    DTYPE_F8_E4M3,
    DTYPE_F8_E8M0,
    DTYPE_I16,
    DTYPE_U16,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_I32,
    DTYPE_U32,
    DTYPE_F32,
    DTYPE_C64,
    DTYPE_F64,
    DTYPE_I64,
    DTYPE_U64,
    DTYPE_COUNT
} dtype;

const char *dtype_name(dtype t); /* "BF16" */
bool dtype_from_name(str name, dtype *out);
int dtype_bits(dtype t);      /* 4 .. 64 */
bool dtype_is_float(dtype t); /* F16, BF16 or F32: what weights may be */

/* n values of type t (F16, BF16 or F32) at p, exactly. */
void dtype_decode(dtype t, const void *p, int64_t n, float *out);
/* The reverse, rounding to nearest even; overflow gives infinity. */
void dtype_encode(dtype t, const float *in, int64_t n, void *p);
/* f rounded to type t and back; f itself for F32. */
float dtype_round(dtype t, float f);

float dtype_f16_to_f32(uint16_t h);  /* exact, subnormals and NaN included */
uint16_t dtype_f32_to_f16(float f);  /* nearest even */
uint16_t dtype_f32_to_bf16(float f); /* nearest even; NaN stays NaN */
static inline float dtype_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t dtype_f32_to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float dtype_bf16_to_f32(uint16_t b)
{
    return dtype_f32_from_bits((uint32_t)b << 16);
}
#endif
