/*
 * Includes the header named by SW_TEMPLATE once for each real element type. No include guard: it is
 * meant to be included again for another template. The template sees
 *
 *   TAG       f32, s8, ...: FN(name) is name_TAG
 *   T, C      the stored type and the type to compute with; LOAD(t) gives a C, STORE(c) a T
 *   ACC       the type to sum in
 *   BITS      the unsigned type as wide as T
 *   WIDE      the unsigned type in which integers wrap without undefined behaviour
 *   REAL      1 for floating point: bf16, f16, f32, f64; DOUBLE 1 for f64
 *   SIGNED    1 for s8 .. s64;  LOGICAL 1 for pred
 *   MATH(f)   the function f of <math.h> for C, only if REAL
 *   CLONES    SW_CLONES for the types of training, nothing for the others
 */
#define SW_PASTE_(a, b) a##_##b
#define SW_PASTE(a, b) SW_PASTE_(a, b)
#define FN(name) SW_PASTE(name, TAG)

#define LOAD(x) (x)
#define STORE(x) ((T)(x))
#define REAL 0
#define DOUBLE 0

#define TAG pred
#define T uint8_t
#define C uint8_t
#define ACC uint8_t
#define BITS uint8_t
#define WIDE uint32_t
#define SIGNED 0
#define LOGICAL 1
#define CLONES SW_CLONES
#include SW_TEMPLATE
#undef TAG
#undef T
#undef C
#undef ACC
#undef BITS
#undef WIDE
#undef SIGNED
#undef LOGICAL
#undef CLONES

#define LOGICAL 0
#define C T
#define ACC T
#define WIDE uint32_t

#define CLONES
#define SIGNED 1
#define TAG s8
#define T int8_t
#define BITS uint8_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#define TAG s16
#define T int16_t
#define BITS uint16_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#undef SIGNED
#define SIGNED 0
#define TAG u8
#define T uint8_t
#define BITS uint8_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#define TAG u16
#define T uint16_t
#define BITS uint16_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#undef SIGNED
#undef CLONES

#define CLONES SW_CLONES
#define BITS uint32_t
#define SIGNED 1
#define TAG s32
#define T int32_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef SIGNED
#define SIGNED 0
#define TAG u32
#define T uint32_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#undef WIDE
#undef SIGNED
#undef CLONES

#define CLONES
#define WIDE uint64_t
#define BITS uint64_t
#define SIGNED 1
#define TAG s64
#define T int64_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef SIGNED
#define SIGNED 0
#define TAG u64
#define T uint64_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#undef WIDE
#undef LOAD
#undef STORE
#undef REAL
#undef C
#undef ACC
#undef CLONES

#define REAL 1
#define WIDE uint32_t
#define C float
#define MATH(name) name##f
#define CLONES SW_CLONES
#define T uint16_t
#define BITS uint16_t
#define ACC float
#define TAG bf16
#define LOAD(x) sw_f32_of_bf16(x)
#define STORE(x) sw_bf16_of_f32(x)
#include SW_TEMPLATE
#undef TAG
#undef LOAD
#undef STORE
#undef CLONES
#define CLONES
#define TAG f16
#define LOAD(x) sw_f32_of_f16(x)
#define STORE(x) sw_f16_of_f32(x)
#include SW_TEMPLATE
#undef TAG
#undef LOAD
#undef STORE
#undef T
#undef BITS
#undef ACC
#undef CLONES

#define LOAD(x) (x)
#define STORE(x) (x)
#define ACC double
#define CLONES SW_CLONES
#define TAG f32
#define T float
#define BITS uint32_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#undef C
#undef MATH
#undef DOUBLE
#undef CLONES

#define CLONES
#define DOUBLE 1
#define C double
#define MATH(name) name
#define TAG f64
#define T double
#define BITS uint64_t
#include SW_TEMPLATE
#undef TAG
#undef T
#undef BITS
#undef C
#undef MATH
#undef DOUBLE
#undef CLONES
#undef LOAD
#undef STORE
#undef ACC
#undef REAL
#undef WIDE
#undef SIGNED
#undef LOGICAL
#undef FN
#undef SW_PASTE
#undef SW_PASTE_
#undef SW_TEMPLATE
