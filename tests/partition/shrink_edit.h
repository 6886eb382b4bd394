/*
 * shrink_edit: edits that make a trial smaller, for the files of shrink alone.
 */
#ifndef SW_TESTS_PARTITION_SHRINK_EDIT_H
#define SW_TESTS_PARTITION_SHRINK_EDIT_H

#include "partition/shrink.h"

/* Ways to make a trial smaller. */
typedef enum edit_kind {
	DROP_OUTPUT,       /* and everything that only it uses */
	CUT_OP,            /* an op of the entry: its results become inputs */
	UNROLL_ONCE,       /* a loop becomes its body, once; a conditional its first branch */
	CUT_INNER,         /* an op elsewhere: its results become zeros */
	DROP_CHOICE,       /* the choice of an atom in an op's strategy */
	DROP_MATERIALISED, /* a value stays in its produced layout */
	/* an atom in the layout of an input, a loop-carried value, or (index: behind the values) a
	 * result */
	DROP_STATE,
	DROP_ATOM, /* in the whole cluster: half as many devices, or fewer */
	EDIT_KIND_COUNT
} edit_kind;

typedef struct edit {
	edit_kind kind;
	uint32_t index; /* of the output; op; value; value, or number of values + result */
	int32_t atom;
} edit;

/* The program after an edit, and the origins of its parts. */
typedef struct rebuilt {
	const sw_program *in;
	sw_program *out;
	const edit *edit;
	bool *alive;  /* per value of `in` */
	sw_id *value; /* value of `in` -> value of `out` */
	int32_t *computation;
	SW_VEC(sw_id) op_from, value_from; /* of `out` -> of `in`; SW_NO_ID: new */
	SW_VEC(sw_id) inputs;              /* per input of `out`: the value of `in` that it was */
	SW_VEC(uint32_t) outputs;          /* per result of `out`: the result of `in` */
} rebuilt;

void rebuild(rebuilt *r, const sw_program *in, const edit *e);
void rebuilt_clear(rebuilt *r);

#endif
