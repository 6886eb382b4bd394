/*
 * sharding: the annotations by which a program says how an array is cut among devices.
 *
 * Whatever the format, an annotation is kept as the extra `sharding` of a parameter, or of a copy
 * that stands for a constraint, in the words of HLO text (`{devices=[2,1,4]<=[8]
 * last_tile_dim_replicate}`). Planning takes it as a pin (model/annotations.c).
 */
#ifndef SW_FRONTEND_SHARDING_H
#define SW_FRONTEND_SHARDING_H

#include "frontend/lexer.h"
#include "program/program.h"

#define SW_SHARDING_DIGITS 64
#define SW_SHARDING_DEVICES ((int64_t)1 << 20)

/* A part of a dimension's index that is a part of the device's number: devices whose
 * (number / stride) mod size is c hold the c-th block. */
typedef struct sw_sharding_digit {
	int32_t dim;
	int64_t size, stride;
} sw_sharding_digit;

typedef enum sw_sharding_kind {
	SW_SHARDING_OPEN,  /* says nothing, or is not understood */
	SW_SHARDING_TILED, /* cut as the digits say; without any, whole on every device */
	SW_SHARDING_MANUAL /* inside shard_map, where values are a device's own */
} sw_sharding_kind;
typedef struct sw_sharding {
	sw_sharding_kind kind;
	int64_t n_devices; /* 0: however many there are */
	/* bit d: dimension d may be cut further, over devices that cut nothing */
	uint32_t open;
	int32_t n;
	sw_sharding_digit digits[SW_SHARDING_DIGITS]; /* those of a dimension: major first */
} sw_sharding;

/* Read the sharding of an array in the words of HLO text. O(length + devices that are listed). */
sw_sharding sw_sharding_parse(const char *text, int32_t rank);
/* Append in the words of HLO text what Shardy says of an array: `#sdy.sharding<@mesh, [{"x"}, {}]>`
 * over the axes of `<["x"=2, "y"=4]>`, with `unspecified_dims=[1]` behind it for open dimensions;
 * `{unknown}` where all are open and nothing is cut, or it is not understood. */
void sw_sharding_of_sdy(sw_span mesh, sw_span sharding, sw_text *text);
/* Append the words of a constraint with the dimensions that its configuration leaves open,
 * `unspecified_dims=[1]`; `{unknown}` where they do not go together. */
void sw_sharding_add_open(const char *words, sw_span config, sw_text *text);
/* Return the name of the mesh that a sharding of Shardy refers to by `@`; length 0: none. */
sw_span sw_sharding_mesh(sw_span sharding);

/* Return the annotation of a parameter or a constraint, in the words of HLO text; NULL: none. */
const char *sw_op_sharding(const sw_op *op);
/* Take all annotations out of a program, which is then planned without them. */
void sw_sharding_drop(sw_program *program);
/* Take the annotations out of results that replace an input, which lies as the input's annotation
 * says, and out of constraints of scalars; count the annotations that have no form. The readers
 * call this when a program's state is known. */
void sw_sharding_settle(sw_program *program);

/* Does a custom call with this target begin or end a part that is written for one device of
 * several, as shard_map and pmap do? */
bool sw_sharding_is_manual(const char *target);
/* Is it a constraint: the same array, annotated? */
bool sw_sharding_is_constraint(const char *target);

#endif
