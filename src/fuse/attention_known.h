/* attention_known: what attention_terms.c and attention_formula.c share: what is known of each
 * value. */
#ifndef SW_FUSE_ATTENTION_KNOWN_H
#define SW_FUSE_ATTENTION_KNOWN_H

#include "fuse/attention_formula.h"
#include "fuse/triangles.h"

typedef enum known_kind {
	UNKNOWN,
	PRODUCT, /* factor * the product, perhaps masked */
	MAXIMUM, /* rowmax of a PRODUCT */
	FINITE,  /* whether a MAXIMUM is finite, which it is */
	SHIFTED, /* factor * (PRODUCT - its MAXIMUM) */
	TERMS,   /* a polynomial */
	LOWERED, /* factor * PRODUCT - factor * rowsum(do o), of arrays that still have to be told
	          */
} known_kind;

enum { MOST_TERMS = 6 };

typedef struct term {
	double factor;
	int8_t e, z, d, r;
} term;

/* What a dimension of a value is: one of the batch, what the product's left or right operand has
 * alone, of one element, or repeated. */
typedef enum score_side { BATCH_0, BATCH_1, LEFT, RIGHT, SINGLE, REPEATED } score_side;

/* A sum of products of two arrays that are no scores, repeated along scores: of which value, over
 * which of its dimensions, and which of them are the sides of the product. */
typedef struct outside_sum {
	sw_id of;
	int32_t over;
	int8_t dims[4]; /* per side; -1: none */
} outside_sum;

typedef struct known {
	known_kind kind;
	uint8_t n_terms;
	bool masked;
	int32_t of; /* the product; of TERMS: the softmax */
	double factor;
	score_side keys; /* of MAXIMUM and SHIFTED, and of what is masked */
	outside_sum lowered;
	uint8_t sides[SW_MAX_RANK];
	term terms[MOST_TERMS];
} known;

/* A dot of two arrays of heads. */
typedef struct head_product {
	sw_heads left, right;
} head_product;

typedef struct softmax {
	int32_t of;      /* the product */
	score_side keys; /* LEFT or RIGHT */
	bool failed;
	int32_t d_of;    /* the product do v^T, -1: none */
	uint8_t d_to[4]; /* the sides of that product, as those of `of` */
	bool is_lowered;
	outside_sum lowered; /* what the derivative subtracts, if it is no sum of scores */
	sw_attention_formula formula;
	double d_scales[2];
	sw_heads d_v_by; /* the other operand of the product that gives d_v */
} softmax;

typedef struct follower {
	const sw_program *program;
	sw_sources sources;
	sw_id first; /* value */
	size_t n;
	uint32_t *known; /* per value - first: 1 + index into list; 0: UNKNOWN */
	SW_VEC(known) list;
	SW_VEC(head_product) products;
	SW_VEC(softmax) softmaxes;
} follower;

static inline const sw_op *op_of(const follower *f, sw_id value)
{
	return sw_op_at(f->program, f->program->values.data[value].op);
}

static inline sw_shape shape_of(const follower *f, sw_id value)
{
	return sw_value_shape(f->program, value);
}

static inline known *known_of(const follower *f, sw_id value)
{
	static known nothing;
	uint32_t at = value >= f->first && value - f->first < f->n ? f->known[value - f->first] : 0;
	return at ? &f->list.data[at - 1] : &nothing;
}

static inline void set_known(follower *f, sw_id value, known k)
{
	sw_vec_push(&f->list, k);
	f->known[value - f->first] = (uint32_t)f->list.len;
}

/* Follow an op that is no dot from what is known of its operands. */
void sw_attention_follow(follower *f, const sw_op *op);
/* Return the array of heads before conversions, barriers and transpositions. */
sw_heads sw_heads_bare(const follower *f, sw_heads h);

#endif
