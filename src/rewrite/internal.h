/* What the files of this folder share. */
#ifndef SW_REWRITE_INTERNAL_H
#define SW_REWRITE_INTERNAL_H

#include "rewrite/rewrite.h"

/* Source, aliases, donors, paddings, partitions: what a program has besides its computations. */
void sw_rewrite_copy_frame(const sw_program *in, sw_program *out);

/* ---- pad_classes.c: which dimensions are padded ----------------------------------------- */

/* A PLACE is a dimension of a value; places that must be of one size are a class. Computations that
 * are not PLANNED (those of reductions, comparisons) are copied as they are. */
typedef struct sw_pad_classes {
	sw_arena arena;
	const sw_program *program;
	const sw_rule **rules; /* per op; NULL where not planned */
	/* per computation: the entry, and what its loops and conditionals run */
	bool *planned;
	const uint32_t *first; /* per value: its first place */
	const int64_t *size;   /* per place: padded, or the true one */
	/* per place: of its class, -1 if the multiple and share pad nothing there */
	const int32_t *number;
	int32_t n; /* classes */
	bool any;  /* is anything padded? */
} sw_pad_classes;
/* False if a padded value would be larger than memory can be addressed: then nothing must be
 * padded. */
bool sw_pad_classes_init(sw_pad_classes *classes, const sw_program *program, sw_pad_rule rule,
                         sw_padded_list *list);
void sw_pad_classes_clear(sw_pad_classes *classes);

/* The shape of a value with its padding; its dims are `dims`. */
sw_shape sw_pad_shape(const sw_pad_classes *classes, sw_id value, int64_t dims[SW_MAX_RANK]);
bool sw_pad_is_padded(const sw_pad_classes *classes, sw_id value, int32_t dim);

/* What an op does with padding in a dimension of an operand or result. Equal numbers from 0 on:
 * these dimensions are one, and may be padded together; below the op's number of factors it is that
 * factor (not for barriers). */
#define SW_PAD_WHOLE (-1) /* it needs, or gives, the true size */
#define SW_PAD_FREE (-2)  /* it bears any padding here, on its own */
int32_t sw_pad_link(const sw_pad_classes *classes, sw_id op, bool result, uint32_t index,
                    int32_t dim);
/* The dimensions (bits) of an operand or result that are padded, but for this op must not be. */
uint32_t sw_pad_whole_dims(const sw_pad_classes *classes, sw_id op, bool result, uint32_t index);

/* ---- pad_facts.c: what lies in the padding ---------------------------------------------- */

typedef struct sw_pad_fact {
	bool known;
	uint64_t data[2]; /* one element of the value's type */
} sw_pad_fact;
typedef struct sw_pad_facts {
	const sw_pad_classes *classes;
	sw_pad_fact *places; /* per place: whatever has an index beyond the true size there */
	sw_pad_fact *splats; /* per value: every element */
} sw_pad_facts;
void sw_pad_facts_init(sw_pad_facts *facts, sw_pad_classes *classes);
/* Finds what holds for the results of an op from its operands. */
void sw_pad_learn(sw_pad_facts *facts, sw_id op);
/* Does the padding of the value along dim hold this monoid's neutral element? */
bool sw_pad_is_neutral(const sw_pad_facts *facts, sw_id value, int32_t dim, sw_monoid monoid);

#endif
