/*
 * shapes: element types and shapes of tensors. program/program.h includes it.
 */
#ifndef SW_PROGRAM_SHAPES_H
#define SW_PROGRAM_SHAPES_H

#include "base/base.h"

/*  X(NAME, "spelling", bits, kind) */
#define SW_TYPES(X)                                                                                \
	X(PRED, "pred", 8, PRED)                                                                   \
	X(S1, "s1", 1, SIGNED)                                                                     \
	X(S2, "s2", 2, SIGNED)                                                                     \
	X(S4, "s4", 4, SIGNED)                                                                     \
	X(S8, "s8", 8, SIGNED)                                                                     \
	X(S16, "s16", 16, SIGNED)                                                                  \
	X(S32, "s32", 32, SIGNED)                                                                  \
	X(S64, "s64", 64, SIGNED)                                                                  \
	X(U1, "u1", 1, UNSIGNED)                                                                   \
	X(U2, "u2", 2, UNSIGNED)                                                                   \
	X(U4, "u4", 4, UNSIGNED)                                                                   \
	X(U8, "u8", 8, UNSIGNED)                                                                   \
	X(U16, "u16", 16, UNSIGNED)                                                                \
	X(U32, "u32", 32, UNSIGNED)                                                                \
	X(U64, "u64", 64, UNSIGNED)                                                                \
	X(F4E2M1FN, "f4e2m1fn", 4, FLOAT)                                                          \
	X(F8E5M2, "f8e5m2", 8, FLOAT)                                                              \
	X(F8E4M3, "f8e4m3", 8, FLOAT)                                                              \
	X(F8E4M3FN, "f8e4m3fn", 8, FLOAT)                                                          \
	X(F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, FLOAT)                                                \
	X(F8E3M4, "f8e3m4", 8, FLOAT)                                                              \
	X(F8E5M2FNUZ, "f8e5m2fnuz", 8, FLOAT)                                                      \
	X(F8E4M3FNUZ, "f8e4m3fnuz", 8, FLOAT)                                                      \
	X(F8E8M0FNU, "f8e8m0fnu", 8, FLOAT)                                                        \
	X(F16, "f16", 16, FLOAT)                                                                   \
	X(BF16, "bf16", 16, FLOAT)                                                                 \
	X(F32, "f32", 32, FLOAT)                                                                   \
	X(F64, "f64", 64, FLOAT)                                                                   \
	X(C64, "c64", 64, COMPLEX)                                                                 \
	X(C128, "c128", 128, COMPLEX)                                                              \
	X(TOKEN, "token", 0, TOKEN)                                                                \
	X(OPAQUE, "opaque", 0, TOKEN)

typedef enum sw_type {
#define X(name, spelling, bits, kind) SW_##name,
	SW_TYPES(X)
#undef X
		SW_TYPE_COUNT
} sw_type;

typedef enum sw_type_kind {
	SW_KIND_PRED,
	SW_KIND_SIGNED,
	SW_KIND_UNSIGNED,
	SW_KIND_FLOAT,
	SW_KIND_COMPLEX,
	SW_KIND_TOKEN
} sw_type_kind;

const char *sw_type_name(sw_type type);
sw_type_kind sw_type_kind_of(sw_type type);
bool sw_type_find(const char *name, size_t length, sw_type *type);
/* Return the bytes of one element in memory. Here a sub-byte type takes one byte, pred 1, token
 * 0. */
int64_t sw_type_bytes(sw_type type);
int sw_type_bits(sw_type type); /* bits of one element in HLO: pred 8, s4 4 */

#define SW_MAX_RANK 16 /* the reader refuses a larger rank with an error */

/* An array shape. dims are sizes, major first; never negative; dims == NULL when rank == 0. The
 * verifier guarantees that elements * bytes fits an int64_t. Bit d of `bounded` marks a dimension
 * written as `<=N`. */
typedef struct sw_shape {
	sw_type type;
	int32_t rank;
	uint32_t bounded;
	const int64_t *dims;
} sw_shape;

/* Return whether it is one number of a float type, as a loss is. */
static inline bool sw_shape_is_real_scalar(sw_shape shape)
{
	return shape.rank == 0 && sw_type_kind_of(shape.type) == SW_KIND_FLOAT;
}
int64_t sw_shape_elements(sw_shape shape);
int64_t sw_shape_bytes(sw_shape shape);
bool sw_shape_equal(sw_shape a, sw_shape b);
bool sw_shape_same_dims(sw_shape a, sw_shape b); /* ignores types and bounds */
void sw_shape_print(sw_shape shape, sw_text *text); /* as f32[2,3] */
/* Copy a dense array of shape `small` into the low corner of an array of shape `large`, whose other
 * elements stay as they are. Ranks and element sizes are equal, and no dimension of `small` is
 * larger. */
void sw_shape_embed(sw_shape small, const void *from, sw_shape large, void *to);
/* The inverse: copy the low corner of `large` into a dense array of shape `small`. */
void sw_shape_crop(sw_shape large, const void *from, sw_shape small, void *to);

#endif
