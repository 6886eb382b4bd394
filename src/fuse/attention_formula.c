/* Follows values between the products of attention as polynomials; see the header. */
#include "fuse/attention_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/number.h"

/* ---- what is known of a value ------------------------------------------------------------ */

typedef enum known_kind {
	UNKNOWN,
	PRODUCT, /* factor * the product, perhaps masked */
	MAXIMUM, /* rowmax of a PRODUCT */
	FINITE,  /* whether a MAXIMUM is finite, which it is */
	SHIFTED, /* factor * (PRODUCT - its MAXIMUM) */
	TERMS,   /* a polynomial */
	LOWERED, /* factor * PRODUCT - factor * rowsum(do o), of arrays that still have to be told */
} known_kind;

enum { MOST_TERMS = 6 };

typedef struct term {
	double factor;
	int8_t e, z, d, r;
} term;

/* What a dimension of a value is: one of the batch, what the product's left or right operand has
 * alone, of one element, or repeated. */
typedef enum side { BATCH_0, BATCH_1, LEFT, RIGHT, SINGLE, REPEATED } side;

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
	side keys; /* of MAXIMUM and SHIFTED, and of what is masked */
	outside_sum lowered;
	uint8_t sides[SW_MAX_RANK];
	term terms[MOST_TERMS];
} known;

/* A dot of two arrays of heads. */
typedef struct product {
	sw_id op;
	sw_heads left, right;
} product;

typedef struct softmax {
	int32_t of; /* the product */
	side keys;  /* LEFT or RIGHT */
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
	sw_id *loop; /* per computation: the while whose body it is; SW_NO_ID */
	sw_id first; /* value */
	size_t n;
	uint32_t *known; /* per value - first: 1 + index into list; 0: UNKNOWN */
	SW_VEC(known) list;
	SW_VEC(product) products;
	SW_VEC(softmax) softmaxes;
} follower;

static const sw_op *op_of(const follower *f, sw_id value)
{
	return sw_op_at(f->program, f->program->values.data[value].op);
}

static sw_shape shape_of(const follower *f, sw_id value)
{
	return sw_value_shape(f->program, value);
}

static known *known_of(const follower *f, sw_id value)
{
	static known nothing;
	uint32_t at = value >= f->first && value - f->first < f->n ? f->known[value - f->first] : 0;
	return at ? &f->list.data[at - 1] : &nothing;
}

static void set_known(follower *f, sw_id value, known k)
{
	sw_vec_push(&f->list, k);
	f->known[value - f->first] = (uint32_t)f->list.len;
}

/* Set to[i] to the dimension of the result that dimension i of the operand becomes, -1 if it has one
 * element; return false if the reshape does more than drop and insert such dimensions. */
static bool map_reshape(sw_shape from, sw_shape into, int8_t to[SW_MAX_RANK])
{
	int32_t i = 0, j = 0;
	memset(to, -1, SW_MAX_RANK);
	for (;; i++, j++) {
		for (; i < from.rank && from.dims[i] == 1;)
			i++;
		for (; j < into.rank && into.dims[j] == 1;)
			j++;
		if (i == from.rank || j == into.rank)
			return i == from.rank && j == into.rank;
		if (from.dims[i] != into.dims[j])
			return false;
		to[i] = (int8_t)j;
	}
}

/* ---- constants and masks ------------------------------------------------------------------ */

/* Return what a value is without barriers, and outside of the loops that carry it from iteration to
 * iteration as it is: constants and masks are often computed before a loop. */
static sw_id unmoved(const follower *f, sw_id value)
{
	for (;;) {
		const sw_value *v = &f->program->values.data[value];
		const sw_op *op = sw_op_at(f->program, v->op);
		if (op->opcode == SW_OP_OPT_BARRIER) {
			value = op->operands[v->index];
			continue;
		}
		sw_id loop = op->opcode == SW_OP_PARAMETER ? f->loop[op->computation] : SW_NO_ID;
		const sw_computation *body = &f->program->computations.data[op->computation];
		if (loop == SW_NO_ID || body->results.data[v->index] != value)
			return value;
		value = sw_op_at(f->program, loop)->operands[v->index];
	}
}

/* Return whether all elements are one number. */
static bool is_uniform(const follower *f, sw_id value, double *number)
{
	const sw_op *op = op_of(f, unmoved(f, value));
	switch (op->opcode) {
	case SW_OP_CONSTANT: {
		sw_literal literal = op->attrs->constant;
		if (sw_shape_elements(literal.shape) != 1)
			return false;
		*number = sw_number_get(literal.shape.type, literal.data, 0);
		return true;
	}
	case SW_OP_BROADCAST:
	case SW_OP_CONVERT:
	case SW_OP_RESHAPE:
		return is_uniform(f, op->operands[0], number);
	default:
		return false;
	}
}

/* A value that counts along dimensions: constant + sum over d of factor[d] * (index along d). */
typedef struct count {
	double constant, factor[SW_MAX_RANK];
} count;

static bool find_count(const follower *f, sw_id value, count *c);

static bool count_broadcast(const follower *f, const sw_op *op, count *c)
{
	count x;
	sw_ints dims = op->attrs->dims.dims;
	if (!find_count(f, op->operands[0], &x))
		return false;
	c->constant = x.constant;
	for (int32_t i = 0; i < dims.n; i++)
		c->factor[dims.v[i]] = x.factor[i];
	return true;
}

static bool count_sum(const follower *f, const sw_op *op, double sign, count *c)
{
	count x, y;
	if (!find_count(f, op->operands[0], &x) || !find_count(f, op->operands[1], &y))
		return false;
	c->constant = x.constant + sign * y.constant;
	for (int32_t d = 0; d < SW_MAX_RANK; d++)
		c->factor[d] = x.factor[d] + sign * y.factor[d];
	return true;
}

static bool find_count(const follower *f, sw_id value, count *c)
{
	const sw_op *op = op_of(f, value = unmoved(f, value));
	*c = (count){0};
	if (is_uniform(f, value, &c->constant))
		return true;
	switch (op->opcode) {
	case SW_OP_IOTA:
		c->factor[op->attrs->iota.dimension] = 1;
		return true;
	case SW_OP_CONVERT:
		return find_count(f, op->operands[0], c);
	case SW_OP_BROADCAST:
		return count_broadcast(f, op, c);
	case SW_OP_RESHAPE: {
		count x;
		int8_t to[SW_MAX_RANK];
		if (!find_count(f, op->operands[0], &x) ||
		    !map_reshape(shape_of(f, op->operands[0]), shape_of(f, value), to))
			return false;
		c->constant = x.constant;
		for (int32_t d = 0; d < SW_MAX_RANK; d++)
			if (to[d] >= 0)
				c->factor[to[d]] = x.factor[d];
		return true;
	}
	case SW_OP_ADD:
		return count_sum(f, op, 1, c);
	case SW_OP_SUBTRACT:
		return count_sum(f, op, -1, c);
	default:
		return false;
	}
}

/* A mask that is true where the index along `row` is at least that along `column`, or false there
 * if `inverse`. */
typedef struct triangle {
	int32_t row, column;
	bool inverse;
} triangle;

/* Read row - column + constant >= 0 out of a comparison; both directions, strict or not. */
static bool compared(const follower *f, const sw_op *op, triangle *t)
{
	count c;
	if (!count_sum(f, op, -1, &c))
		return false;
	t->row = t->column = -1;
	for (int32_t d = 0; d < SW_MAX_RANK; d++) {
		if (c.factor[d] == 1 && t->row < 0)
			t->row = d;
		else if (c.factor[d] == -1 && t->column < 0)
			t->column = d;
		else if (c.factor[d] != 0)
			return false;
	}
	if (t->row < 0 || t->column < 0)
		return false;
	switch (op->attrs->compare.direction) {
	case SW_GE:
		t->inverse = false;
		return c.constant == 0;
	case SW_GT: /* row - column + constant > 0 */
		t->inverse = false;
		return c.constant == 1;
	case SW_LT:
		t->inverse = true;
		return c.constant == 0;
	case SW_LE:
		t->inverse = true;
		return c.constant == 1;
	default:
		return false;
	}
}

/* A comparison the other way round is of column - row. */
static bool compared_either(const follower *f, const sw_op *op, triangle *t)
{
	sw_op turned = *op;
	sw_id operands[] = {op->operands[1], op->operands[0]};
	sw_attrs attrs = *op->attrs;
	static const sw_direction other[] = {[SW_EQ] = SW_EQ, [SW_NE] = SW_NE, [SW_GE] = SW_LE,
	                                     [SW_GT] = SW_LT, [SW_LE] = SW_GE, [SW_LT] = SW_GT};
	if (compared(f, op, t))
		return true;
	attrs.compare.direction = other[op->attrs->compare.direction];
	turned.operands = operands;
	turned.attrs = &attrs;
	return compared(f, &turned, t);
}

static bool find_triangle(const follower *f, sw_id value, triangle *t)
{
	const sw_op *op = op_of(f, value = unmoved(f, value));
	double yes, no;
	switch (op->opcode) {
	case SW_OP_COMPARE:
		return compared_either(f, op, t);
	case SW_OP_NOT:
		if (!find_triangle(f, op->operands[0], t))
			return false;
		t->inverse = !t->inverse;
		return true;
	case SW_OP_SELECT:
		if (!is_uniform(f, op->operands[1], &yes) || !is_uniform(f, op->operands[2], &no) ||
		    (yes != 0) == (no != 0) || !find_triangle(f, op->operands[0], t))
			return false;
		t->inverse ^= yes == 0;
		return true;
	case SW_OP_RESHAPE: {
		int8_t to[SW_MAX_RANK];
		if (!find_triangle(f, op->operands[0], t) ||
		    !map_reshape(shape_of(f, op->operands[0]), shape_of(f, value), to) ||
		    to[t->row] < 0 || to[t->column] < 0)
			return false;
		t->row = to[t->row];
		t->column = to[t->column];
		return true;
	}
	case SW_OP_BROADCAST:
		if (!find_triangle(f, op->operands[0], t))
			return false;
		t->row = (int32_t)op->attrs->dims.dims.v[t->row];
		t->column = (int32_t)op->attrs->dims.dims.v[t->column];
		return true;
	default:
		return false;
	}
}

/* ---- moves -------------------------------------------------------------------------------- */

static void move_convert(follower *f, const sw_op *op)
{
	known k = *known_of(f, op->operands[0]);
	if (k.kind != UNKNOWN)
		set_known(f, op->first_result, k);
}

static void move_reshape(follower *f, const sw_op *op)
{
	known k = *known_of(f, op->operands[0]), moved = k;
	sw_shape from = shape_of(f, op->operands[0]);
	int8_t to[SW_MAX_RANK];
	if (k.kind == UNKNOWN || !map_reshape(from, shape_of(f, op->first_result), to))
		return;
	memset(moved.sides, SINGLE, sizeof(moved.sides));
	for (int32_t i = 0; i < from.rank; i++)
		if (to[i] >= 0)
			moved.sides[to[i]] = k.sides[i];
	set_known(f, op->first_result, moved);
}

static void move_transpose(follower *f, const sw_op *op)
{
	known k = *known_of(f, op->operands[0]), moved = k;
	sw_ints dims = op->attrs->dims.dims;
	if (k.kind == UNKNOWN)
		return;
	for (int32_t d = 0; d < dims.n; d++)
		moved.sides[d] = k.sides[dims.v[d]];
	set_known(f, op->first_result, moved);
}

static void move_broadcast(follower *f, const sw_op *op)
{
	known k = *known_of(f, op->operands[0]), moved = k;
	sw_ints dims = op->attrs->dims.dims;
	sw_shape to = shape_of(f, op->first_result);
	if (k.kind == UNKNOWN)
		return;
	for (int32_t d = 0; d < to.rank; d++)
		moved.sides[d] = to.dims[d] == 1 ? SINGLE : REPEATED;
	for (int32_t i = 0; i < dims.n; i++)
		moved.sides[dims.v[i]] = k.sides[i];
	set_known(f, op->first_result, moved);
}

/* ---- sides -------------------------------------------------------------------------------- */

/* Give the sides of two values that an op joins, as those of the first. to: for each side of a
 * product of the second value what it is of the first one's; NULL: they are the same. Return false
 * if they do not fit. */
static bool join_sides(const known *x, const known *y, const uint8_t *to, int32_t rank,
                       uint8_t *sides)
{
	for (int32_t d = 0; d < rank; d++) {
		uint8_t a = x->sides[d], b = y->sides[d];
		if (to && b <= RIGHT)
			b = to[b];
		sides[d] = a == REPEATED ? b : a;
		if (a != REPEATED && b != REPEATED && a != b)
			return false;
	}
	return true;
}

/* Find what the sides of product y are of x, dimension by dimension. Where x is repeated along one
 * dimension, that is its keys. */
static bool match_sides(const known *x, const known *y, int32_t rank, side keys, uint8_t to[4])
{
	int repeated = -1;
	memset(to, REPEATED, 4);
	for (int32_t d = 0; d < rank; d++) {
		uint8_t a = x->sides[d], b = y->sides[d];
		if ((a == SINGLE) != (b == SINGLE) && a != REPEATED && b != REPEATED)
			return false;
		if (b > RIGHT)
			continue;
		if (a == REPEATED) {
			if (repeated >= 0)
				return false;
			repeated = b;
		} else {
			to[b] = a;
		}
	}
	for (int b = 0; b < 4; b++)
		if (repeated >= 0 && to[b] == keys)
			return false;
	if (repeated >= 0)
		to[repeated] = (uint8_t)keys;
	return true;
}

static bool has_side(const known *k, int32_t rank, side s)
{
	for (int32_t d = 0; d < rank; d++)
		if (k->sides[d] == s)
			return true;
	return false;
}

/* ---- polynomials -------------------------------------------------------------------------- */

static bool add_term(known *k, term t)
{
	for (int i = 0; i < k->n_terms; i++) {
		term *x = &k->terms[i];
		if (x->e != t.e || x->z != t.z || x->d != t.d || x->r != t.r)
			continue;
		double sum = x->factor + t.factor;
		if (fabs(sum) <= 1e-12 * (fabs(x->factor) + fabs(t.factor)))
			*x = k->terms[--k->n_terms];
		else
			x->factor = sum;
		return true;
	}
	if (k->n_terms == MOST_TERMS)
		return false;
	k->terms[k->n_terms++] = t;
	return true;
}

static bool multiply_terms(const known *x, const known *y, known *both)
{
	both->n_terms = 0;
	for (int i = 0; i < x->n_terms; i++)
		for (int j = 0; j < y->n_terms; j++) {
			const term *a = &x->terms[i], *b = &y->terms[j];
			term t = {a->factor * b->factor, (int8_t)(a->e + b->e),
			          (int8_t)(a->z + b->z), (int8_t)(a->d + b->d),
			          (int8_t)(a->r + b->r)};
			if (abs(t.e) > 4 || abs(t.z) > 8 || t.d > 1 || t.r > 1 ||
			    !add_term(both, t))
				return false;
		}
	return true;
}

static bool invert(const known *x, known *inverse)
{
	const term *t = &x->terms[0];
	*inverse = *x;
	if (x->n_terms != 1 || t->factor == 0 || t->d || t->r)
		return false;
	inverse->terms[0] = (term){1 / t->factor, (int8_t)-t->e, (int8_t)-t->z, 0, 0};
	return true;
}

/* Take a product that meets the terms of a softmax for its D. */
static bool as_terms(follower *f, const known *with, const known *x, int32_t rank, known *terms)
{
	softmax *s = &f->softmaxes.data[with->of];
	uint8_t to[4];
	*terms = *x;
	if (x->kind == TERMS)
		return x->of == with->of;
	if ((x->kind != PRODUCT && x->kind != LOWERED) || x->of == s->of ||
	    !match_sides(with, x, rank, s->keys, to))
		return false;
	if (s->d_of >= 0 && (s->d_of != x->of || memcmp(to, s->d_to, 4) != 0))
		return false;
	s->d_of = x->of;
	memcpy(s->d_to, to, 4);
	for (int32_t d = 0; d < rank; d++)
		if (terms->sides[d] <= RIGHT)
			terms->sides[d] = to[terms->sides[d]];
	terms->kind = TERMS;
	terms->of = with->of;
	terms->n_terms = 1;
	terms->terms[0] = (term){.factor = x->factor, .d = 1};
	if (x->kind == PRODUCT)
		return true;
	if (s->is_lowered && memcmp(&s->lowered, &x->lowered, sizeof(s->lowered)) != 0)
		return false;
	s->is_lowered = true;
	s->lowered = x->lowered;
	return add_term(terms, (term){.factor = -x->factor, .r = 1});
}

/* ---- ops that join two values --------------------------------------------------------------- */

static void scale(follower *f, const sw_op *op, const known *x, double by)
{
	known k = *x;
	k.factor *= by;
	for (int i = 0; i < k.n_terms; i++)
		k.terms[i].factor *= by;
	if (k.kind != MAXIMUM && k.kind != FINITE)
		set_known(f, op->first_result, k);
}

static void combine_terms(follower *f, const sw_op *op, const known *x, const known *y)
{
	int32_t rank = shape_of(f, op->first_result).rank;
	known a, b, c;
	const known *with = x->kind == TERMS ? x : y;
	if (!as_terms(f, with, x, rank, &a) || !as_terms(f, with, y, rank, &b))
		return;
	c = a;
	if (!join_sides(&a, &b, NULL, rank, c.sides))
		return;
	switch (op->opcode) {
	case SW_OP_DIVIDE: {
		known inverse;
		if (!invert(&b, &inverse) || !multiply_terms(&a, &inverse, &c))
			return;
		break;
	}
	case SW_OP_MULTIPLY:
		if (!multiply_terms(&a, &b, &c))
			return;
		break;
	default:
		for (int i = 0; i < b.n_terms; i++) {
			term t = b.terms[i];
			t.factor *= op->opcode == SW_OP_SUBTRACT ? -1 : 1;
			if (!add_term(&c, t))
				return;
		}
	}
	set_known(f, op->first_result, c);
}

static void shift(follower *f, const sw_op *op, const known *x, const known *y)
{
	known k = *x;
	int32_t rank = shape_of(f, op->first_result).rank;
	if (x->of != y->of || x->factor != y->factor || x->masked != y->masked ||
	    !join_sides(x, y, NULL, rank, k.sides))
		return;
	k.kind = SHIFTED;
	k.keys = y->keys;
	set_known(f, op->first_result, k);
}

/* Return the array before conversions, barriers and transpositions. */
static sw_heads bare(const follower *f, sw_heads h)
{
	for (;;) {
		const sw_op *op = op_of(f, h.value);
		switch (op->opcode) {
		case SW_OP_CONVERT:
		case SW_OP_COPY:
		case SW_OP_OPT_BARRIER:
			h.value = op->operands[f->program->values.data[h.value].index];
			break;
		case SW_OP_TRANSPOSE: {
			const int64_t *v = op->attrs->dims.dims.v;
			h.value = op->operands[0];
			for (int i = 0; i < 2; i++)
				h.batch[i] = h.batch[i] < 0 ? -1 : (int32_t)v[h.batch[i]];
			h.position = (int32_t)v[h.position];
			h.depth = (int32_t)v[h.depth];
			break;
		}
		default:
			return h;
		}
	}
}

/* Set dims[d] to the dimension of a product, before it was summed over one of its dimensions, that
 * dimension d of the value is; -1: the value is repeated along it. */
static bool find_sum(const follower *f, sw_id value, outside_sum *sum, int8_t *dims)
{
	const sw_op *op = op_of(f, value);
	int8_t inner[SW_MAX_RANK];
	sw_shape shape = shape_of(f, value);
	memset(dims, -1, SW_MAX_RANK);
	switch (op->opcode) {
	case SW_OP_CONVERT:
		return find_sum(f, op->operands[0], sum, dims);
	case SW_OP_BROADCAST:
		if (!find_sum(f, op->operands[0], sum, inner))
			return false;
		for (int32_t i = 0; i < op->attrs->dims.dims.n; i++)
			dims[op->attrs->dims.dims.v[i]] = inner[i];
		return true;
	case SW_OP_RESHAPE: {
		sw_shape from = shape_of(f, op->operands[0]);
		int8_t to[SW_MAX_RANK];
		if (!find_sum(f, op->operands[0], sum, inner) || !map_reshape(from, shape, to))
			return false;
		for (int32_t i = 0; i < from.rank; i++)
			if (to[i] >= 0)
				dims[to[i]] = inner[i];
		return true;
	}
	case SW_OP_REDUCE:
		if (op->n_operands != 2 || op->attrs->dims.dims.n != 1 ||
		    sw_computation_monoid(f->program, op->called[0]) != SW_MONOID_SUM)
			return false;
		sum->over = (int32_t)op->attrs->dims.dims.v[0];
		for (int32_t d = 0; d < shape.rank; d++)
			dims[d] = (int8_t)(d + (d >= sum->over));
		sum->of = bare(f, (sw_heads){.value = op->operands[0], .batch = {-1, -1}}).value;
		/* the dimensions are those of the operand itself */
		return op_of(f, op->operands[0])->opcode != SW_OP_TRANSPOSE &&
		       op_of(f, sum->of)->opcode == SW_OP_MULTIPLY;
	default:
		return false;
	}
}

/* do v^T - rowsum(do o), before it is known that they are these. */
static void lower(follower *f, const sw_op *op, const known *x)
{
	known k = *x;
	int8_t dims[SW_MAX_RANK];
	k.kind = LOWERED;
	memset(&k.lowered, -1, sizeof(k.lowered));
	if (x->factor != 1 || x->masked || !find_sum(f, op->operands[1], &k.lowered, dims))
		return;
	for (int32_t d = 0; d < shape_of(f, op->first_result).rank; d++)
		if (x->sides[d] <= RIGHT)
			k.lowered.dims[x->sides[d]] = dims[d];
	set_known(f, op->first_result, k);
}

static void follow_binary(follower *f, const sw_op *op)
{
	const known x = *known_of(f, op->operands[0]), y = *known_of(f, op->operands[1]);
	bool times = op->opcode == SW_OP_MULTIPLY, difference = op->opcode == SW_OP_SUBTRACT;
	double number;
	if (x.kind == UNKNOWN && y.kind == UNKNOWN)
		return;
	if (x.kind == TERMS || y.kind == TERMS) {
		if (x.kind != UNKNOWN && y.kind != UNKNOWN) {
			combine_terms(f, op, &x, &y);
			return;
		}
		if (op->opcode == SW_OP_DIVIDE && x.kind == UNKNOWN &&
		    is_uniform(f, op->operands[0], &number)) {
			known inverse;
			if (invert(&y, &inverse))
				scale(f, op, &inverse, number);
			return;
		}
	}
	if (x.kind == UNKNOWN && times && is_uniform(f, op->operands[0], &number))
		scale(f, op, &y, number);
	else if (y.kind == UNKNOWN && (times || op->opcode == SW_OP_DIVIDE) &&
	         is_uniform(f, op->operands[1], &number) && number != 0)
		scale(f, op, &x, times ? number : 1 / number);
	else if (difference && x.kind == PRODUCT && y.kind == MAXIMUM)
		shift(f, op, &x, &y);
	else if (difference && x.kind == PRODUCT && y.kind == UNKNOWN)
		lower(f, op, &x);
	else if (op->opcode == SW_OP_MAXIMUM && (x.kind == MAXIMUM) != (y.kind == MAXIMUM) &&
	         is_uniform(f, op->operands[x.kind == MAXIMUM], &number) && number <= -1e30)
		set_known(f, op->first_result, x.kind == MAXIMUM ? x : y);
}

static void follow_unary(follower *f, const sw_op *op)
{
	known k = *known_of(f, op->operands[0]);
	switch (op->opcode) {
	case SW_OP_NEGATE:
		if (k.kind == TERMS || k.kind == PRODUCT)
			scale(f, op, &k, -1);
		return;
	case SW_OP_IS_FINITE:
		if (k.kind == MAXIMUM) {
			k.kind = FINITE;
			set_known(f, op->first_result, k);
		}
		return;
	default:
		return;
	}
}

/* An exponential begins a softmax; the keys are what its maximum was taken over. */
static void begin_softmax(follower *f, const sw_op *op)
{
	known k = *known_of(f, op->operands[0]);
	int32_t rank = shape_of(f, op->first_result).rank;
	if (k.kind != SHIFTED || !has_side(&k, rank, LEFT) || !has_side(&k, rank, RIGHT))
		return;
	softmax s = {.of = k.of,
	             .keys = k.keys,
	             .d_of = -1};
	s.formula.scale = k.factor;
	s.formula.causal = k.masked;
	s.formula.o.value = s.formula.d_q.value = s.formula.d_k.value = s.formula.d_v.value =
		s.formula.d_o.value = s.d_v_by.value = SW_NO_ID;
	sw_vec_push(&f->softmaxes, s);
	k.kind = TERMS;
	k.of = (int32_t)f->softmaxes.len - 1;
	k.n_terms = 1;
	k.terms[0] = (term){.factor = 1, .e = 1};
	set_known(f, op->first_result, k);
}

/* ---- masks ---------------------------------------------------------------------------------- */

/* Is the mask true for the queries that see the key? */
static bool is_causal(const follower *f, sw_id mask, const known *k, side keys, bool *inverse)
{
	triangle t;
	side queries = keys == LEFT ? RIGHT : LEFT;
	if (!find_triangle(f, mask, &t))
		return false;
	*inverse = t.inverse;
	return k->sides[t.row] == queries && k->sides[t.column] == keys;
}

static void follow_select(follower *f, const sw_op *op)
{
	const known x = *known_of(f, op->operands[1]), y = *known_of(f, op->operands[2]),
		    mask = *known_of(f, op->operands[0]);
	known k = x.kind != UNKNOWN ? x : y;
	bool first = x.kind != UNKNOWN, inverse;
	double number;
	if ((x.kind != UNKNOWN) == (y.kind != UNKNOWN) ||
	    !is_uniform(f, op->operands[first ? 2 : 1], &number))
		return;
	if (mask.kind == FINITE && k.kind == MAXIMUM && first && mask.of == k.of) {
		set_known(f, op->first_result, k);
		return;
	}
	if (k.kind == PRODUCT && !k.masked && number <= -1e4) {
		/* which side the keys are will be told by the maximum: a triangle tells it first */
		bool right = is_causal(f, op->operands[0], &k, RIGHT, &inverse);
		if (!right && !is_causal(f, op->operands[0], &k, LEFT, &inverse))
			return;
		k.masked = true;
		k.keys = right ? RIGHT : LEFT;
		if (inverse != first)
			set_known(f, op->first_result, k);
	} else if (k.kind == TERMS && number == 0) {
		/* where the mask hides a score its exponential is 0 */
		const softmax *s = &f->softmaxes.data[k.of];
		if (s->formula.causal && is_causal(f, op->operands[0], &k, s->keys, &inverse) &&
		    inverse != first)
			set_known(f, op->first_result, k);
	}
}

/* ---- reductions ----------------------------------------------------------------------------- */

static known without(const known *k, sw_ints dims, int32_t rank)
{
	known rest = *k;
	int32_t n = 0;
	for (int32_t d = 0; d < rank; d++)
		if (!sw_ints_has(dims, d))
			rest.sides[n++] = k->sides[d];
	return rest;
}

/* The dimensions of one element do not matter: return the side that is reduced, SINGLE: none. */
static side reduced_side(const known *k, sw_ints dims)
{
	side found = SINGLE;
	for (int32_t i = 0; i < dims.n; i++) {
		if (k->sides[dims.v[i]] == SINGLE)
			continue;
		if (found != SINGLE)
			return REPEATED;
		found = (side)k->sides[dims.v[i]];
	}
	return found;
}

static void follow_reduce(follower *f, const sw_op *op)
{
	const known k = *known_of(f, op->operands[0]);
	sw_shape shape = shape_of(f, op->operands[0]);
	sw_monoid monoid = sw_computation_monoid(f->program, op->called[0]);
	double init;
	if (k.kind == UNKNOWN || op->n_operands != 2 || !is_uniform(f, op->operands[1], &init))
		return;
	known rest = without(&k, op->attrs->dims.dims, shape.rank);
	side over = reduced_side(&k, op->attrs->dims.dims);
	if (over == SINGLE) {
		if ((init == 0 && monoid == SW_MONOID_SUM) ||
		    (init <= -1e30 && monoid == SW_MONOID_MAX))
			set_known(f, op->first_result, rest);
		return;
	}
	if (k.kind == PRODUCT && monoid == SW_MONOID_MAX && init <= -1e30 &&
	    (over == LEFT || over == RIGHT) && (!k.masked || k.keys == over)) {
		rest.kind = MAXIMUM;
		rest.keys = over;
		set_known(f, op->first_result, rest);
		return;
	}
	if (k.kind != TERMS || monoid != SW_MONOID_SUM || init != 0 ||
	    over != f->softmaxes.data[k.of].keys)
		return;
	rest.n_terms = 0;
	for (int i = 0; i < k.n_terms; i++) {
		term t = k.terms[i];
		if (t.e != 1 || t.d + t.r > 1)
			return;
		t = (term){t.factor, 0, (int8_t)(t.z + 1), 0, (int8_t)(t.d + t.r)};
		if (!add_term(&rest, t))
			return;
	}
	set_known(f, op->first_result, rest);
}

/* ---- products ------------------------------------------------------------------------------- */

/* The dimensions of a dot's operand. */
static sw_ints batch_of(const sw_op *op, uint32_t operand)
{
	return operand ? op->attrs->dot.rhs_batch : op->attrs->dot.lhs_batch;
}

static sw_ints contracted_of(const sw_op *op, uint32_t operand)
{
	return operand ? op->attrs->dot.rhs_contracting : op->attrs->dot.lhs_contracting;
}

static bool is_free(const sw_op *op, uint32_t operand, int32_t d)
{
	return !sw_ints_has(batch_of(op, operand), d) && !sw_ints_has(contracted_of(op, operand), d);
}

/* Return which dimension of the dot's result a free dimension of an operand becomes. */
static int32_t result_dim(const follower *f, const sw_op *op, uint32_t operand, int32_t dim)
{
	int32_t at = batch_of(op, 0).n;
	for (uint32_t k = 0; k <= operand; k++)
		for (int32_t d = 0; d < shape_of(f, op->operands[k]).rank; d++) {
			if (k == operand && d == dim)
				return at;
			at += is_free(op, k, d);
		}
	return -1;
}

/* Pick the one of the dimensions that has more than one element, or the first one if none has; -1:
 * there are several, or none at all. */
static int32_t pick(sw_shape shape, const int32_t *dims, int32_t n)
{
	int32_t picked = -1;
	for (int32_t i = 0; i < n; i++) {
		if (shape.dims[dims[i]] == 1)
			continue;
		if (picked >= 0)
			return -1;
		picked = dims[i];
	}
	return picked >= 0 || n == 0 ? picked : dims[0];
}

static int32_t picked_free(const follower *f, const sw_op *op, uint32_t operand)
{
	sw_shape shape = shape_of(f, op->operands[operand]);
	int32_t dims[SW_MAX_RANK], n = 0;
	for (int32_t d = 0; d < shape.rank; d++)
		if (is_free(op, operand, d))
			dims[n++] = d;
	return pick(shape, dims, n);
}

static int32_t picked_contracted(const follower *f, const sw_op *op, uint32_t operand)
{
	sw_ints list = contracted_of(op, operand);
	int32_t dims[SW_MAX_RANK];
	for (int32_t i = 0; i < list.n; i++)
		dims[i] = (int32_t)list.v[i];
	return pick(shape_of(f, op->operands[operand]), dims, list.n);
}

/* Set places[0] and [1] to those in the dot's lists of batch dimensions that matter: all of up to
 * two, else those of more than one element. The rest is -1. Return false if there are more, or none. */
static bool pick_batch(const follower *f, const sw_op *op, int32_t places[2])
{
	sw_ints batch = batch_of(op, 0);
	int32_t n = 0;
	places[0] = places[1] = -1;
	for (int32_t i = 0; i < batch.n; i++) {
		if (batch.n > 2 && shape_of(f, op->operands[0]).dims[batch.v[i]] == 1)
			continue;
		if (n == 2)
			return false;
		places[n++] = i;
	}
	return n > 0;
}

static bool is_of_heads(const follower *f, const sw_op *op)
{
	int32_t places[2];
	return pick_batch(f, op, places) && picked_contracted(f, op, 0) >= 0 &&
	       picked_contracted(f, op, 1) >= 0 && picked_free(f, op, 0) >= 0 &&
	       picked_free(f, op, 1) >= 0;
}

/* An operand of a product of heads. It contracts the depth, or the positions. */
static sw_heads heads_of(const follower *f, const sw_op *op, uint32_t operand, bool contracts_depth)
{
	int32_t other = picked_free(f, op, operand), contracted = picked_contracted(f, op, operand);
	int32_t places[2];
	pick_batch(f, op, places);
	sw_heads h = {.value = op->operands[operand],
	              .position = contracts_depth ? other : contracted,
	              .depth = contracts_depth ? contracted : other};
	for (int i = 0; i < 2; i++)
		h.batch[i] = places[i] < 0 ? -1 : (int32_t)batch_of(op, operand).v[places[i]];
	return h;
}

static void begin_product(follower *f, const sw_op *op)
{
	product p = {.op = f->program->values.data[op->first_result].op,
	             .left = heads_of(f, op, 0, true),
	             .right = heads_of(f, op, 1, true)};
	known k = {.kind = PRODUCT, .of = (int32_t)f->products.len, .factor = 1};
	sw_shape shape = shape_of(f, op->first_result);
	int32_t places[2];
	pick_batch(f, op, places);
	memset(k.sides, SINGLE, sizeof(k.sides));
	for (int i = 0; i < 2; i++)
		if (places[i] >= 0)
			k.sides[places[i]] = (uint8_t)(BATCH_0 + i);
	k.sides[result_dim(f, op, 0, p.left.position)] = LEFT;
	k.sides[result_dim(f, op, 1, p.right.position)] = RIGHT;
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] == 1)
			k.sides[d] = SINGLE;
	sw_vec_push(&f->products, p);
	set_known(f, op->first_result, k);
}

/* Return whether the terms are factor * P. */
static bool is_softmax(const known *k, double *factor)
{
	const term *t = k->terms;
	*factor = t->factor;
	return k->n_terms == 1 && t->e == 1 && t->z == -1 && !t->d && !t->r;
}

/* Return whether they are factor * dS. */
static bool is_derivative(const known *k, double *factor)
{
	const term *d = &k->terms[0], *r = &k->terms[1];
	if (k->n_terms == 2 && d->r)
		d = &k->terms[1], r = &k->terms[0];
	*factor = d->factor;
	return k->n_terms == 2 && d->e == 1 && d->z == -1 && d->d == 1 && !d->r && r->e == 1 &&
	       r->z == -1 && !r->d && r->r == 1 && fabs(d->factor + r->factor) <= 1e-9 * fabs(d->factor);
}

/* The result of a product of scores, operand `scores` of the dot, with heads. `by` is the other
 * operand. Batch dimensions of one element stand where there is room. */
static bool result_of(const follower *f, const sw_op *op, uint32_t scores, const known *k,
                      sw_heads *result, sw_heads *by)
{
	sw_ints batch = batch_of(op, scores), other = batch_of(op, !scores);
	*by = heads_of(f, op, !scores, false);
	*result = (sw_heads){.value = op->first_result,
	                     .batch = {-1, -1},
	                     .position = result_dim(f, op, scores, picked_free(f, op, scores)),
	                     .depth = result_dim(f, op, !scores, by->depth)};
	by->batch[0] = by->batch[1] = -1;
	for (int pass = 0; pass < 2; pass++)
		for (int32_t i = 0; i < batch.n; i++) {
			uint8_t s = k->sides[batch.v[i]];
			if ((s == SINGLE) != (pass == 1))
				continue;
			if (s == SINGLE && result->batch[0] >= 0 && result->batch[1] >= 0)
				continue;
			if (s == SINGLE)
				s = result->batch[0] < 0 ? BATCH_0 : BATCH_1;
			if (s > BATCH_1 || result->batch[s] >= 0)
				return false;
			result->batch[s] = i;
			by->batch[s] = (int32_t)other.v[i];
		}
	return true;
}

static bool same_heads(const follower *f, const sw_heads *x, const sw_heads *y)
{
	sw_heads a = bare(f, *x), b = bare(f, *y);
	for (int i = 0; i < 2 && a.value == b.value; i++) { /* of one element: any will do */
		sw_shape shape = shape_of(f, a.value);
		a.batch[i] = a.batch[i] >= 0 && shape.dims[a.batch[i]] == 1 ? -1 : a.batch[i];
		b.batch[i] = b.batch[i] >= 0 && shape.dims[b.batch[i]] == 1 ? -1 : b.batch[i];
	}
	return a.value == b.value && a.position == b.position && a.depth == b.depth &&
	       a.batch[0] == b.batch[0] && a.batch[1] == b.batch[1];
}

/* Set what is found first; twice is once too often. */
static void found(softmax *s, sw_heads *place, sw_heads what)
{
	s->failed |= place->value != SW_NO_ID;
	*place = what;
}

static const sw_heads *side_of(const product *p, side s)
{
	return s == LEFT ? &p->left : &p->right;
}

/* A product of scores ends them. */
static void end_product(follower *f, const sw_op *op, uint32_t scores)
{
	const known *k = known_of(f, op->operands[scores]);
	softmax *s = &f->softmaxes.data[k->of];
	side queries = s->keys == LEFT ? RIGHT : LEFT, over;
	const product *p = &f->products.data[s->of];
	sw_heads result, by;
	double factor;
	if (!is_of_heads(f, op) || !result_of(f, op, scores, k, &result, &by)) {
		s->failed = true;
		return;
	}
	over = (side)k->sides[picked_contracted(f, op, scores)];
	if (is_softmax(k, &factor) && factor == 1) {
		if (over == s->keys) {
			found(s, &s->formula.o, result);
			s->formula.v = by;
		} else if (over == queries) {
			found(s, &s->formula.d_v, result);
			s->d_v_by = by;
		} else
			s->failed = true;
	} else if (is_derivative(k, &factor)) {
		bool to_q = over == s->keys;
		if (!same_heads(f, &by, side_of(p, to_q ? s->keys : queries)) ||
		    (!to_q && over != queries)) {
			s->failed = true;
			return;
		}
		found(s, to_q ? &s->formula.d_q : &s->formula.d_k, result);
		s->d_scales[!to_q] = factor;
	} else
		s->failed = true;
}

static void follow_dot(follower *f, const sw_op *op)
{
	bool left = known_of(f, op->operands[0])->kind == TERMS,
	     right = known_of(f, op->operands[1])->kind == TERMS;
	if (left != right)
		end_product(f, op, right);
	else if (!left && is_of_heads(f, op))
		begin_product(f, op);
}

/* ---- the pass ------------------------------------------------------------------------------- */

static void follow(follower *f, const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_CONVERT:
	case SW_OP_COPY:
		move_convert(f, op);
		break;
	case SW_OP_RESHAPE:
		move_reshape(f, op);
		break;
	case SW_OP_TRANSPOSE:
		move_transpose(f, op);
		break;
	case SW_OP_BROADCAST:
		move_broadcast(f, op);
		break;
	case SW_OP_OPT_BARRIER:
		for (uint32_t i = 0; i < op->n_results; i++) {
			known k = *known_of(f, op->operands[i]);
			if (k.kind != UNKNOWN)
				set_known(f, op->first_result + i, k);
		}
		break;
	case SW_OP_MULTIPLY:
	case SW_OP_DIVIDE:
	case SW_OP_ADD:
	case SW_OP_SUBTRACT:
	case SW_OP_MAXIMUM:
		follow_binary(f, op);
		break;
	case SW_OP_NEGATE:
	case SW_OP_IS_FINITE:
		follow_unary(f, op);
		break;
	case SW_OP_EXPONENTIAL:
		begin_softmax(f, op);
		break;
	case SW_OP_SELECT:
		follow_select(f, op);
		break;
	case SW_OP_REDUCE:
		follow_reduce(f, op);
		break;
	case SW_OP_DOT:
		follow_dot(f, op);
		break;
	default:
		break;
	}
}

/* Return whether what the derivative subtracts is rowsum(do o), if it subtracts no sum of scores. */
static bool is_lowered_by_output(const follower *f, const softmax *s, side queries)
{
	const sw_attention_formula *a = &s->formula;
	const outside_sum *sum = &s->lowered;
	if (!s->is_lowered)
		return true;
	if (a->o.value == SW_NO_ID)
		return false;
	const sw_op *op = op_of(f, sum->of);
	sw_heads x = {.value = op->operands[0],
	              .batch = {sum->dims[BATCH_0], sum->dims[BATCH_1]},
	              .position = sum->dims[queries],
	              .depth = sum->over},
		 y = x;
	y.value = op->operands[1];
	if (x.position < 0)
		return false;
	return (same_heads(f, &x, &a->d_o) && same_heads(f, &y, &a->o)) ||
	       (same_heads(f, &y, &a->d_o) && same_heads(f, &x, &a->o));
}

/* Complete what was found of a softmax; return whether it is attention. */
static bool complete(const follower *f, softmax *s)
{
	sw_attention_formula *a = &s->formula;
	const product *p = &f->products.data[s->of];
	side queries = s->keys == LEFT ? RIGHT : LEFT;
	bool derived = a->d_q.value != SW_NO_ID && a->d_k.value != SW_NO_ID &&
	               a->d_v.value != SW_NO_ID && s->d_of >= 0;
	a->q = *side_of(p, queries);
	a->k = *side_of(p, s->keys);
	if (s->failed)
		return false;
	if (derived) {
		const product *d = &f->products.data[s->d_of];
		bool left = s->d_to[LEFT] == queries && s->d_to[RIGHT] == s->keys;
		if (!left && !(s->d_to[RIGHT] == queries && s->d_to[LEFT] == s->keys))
			return false;
		a->d_o = left ? d->left : d->right;
		sw_heads v = left ? d->right : d->left;
		if (s->d_to[BATCH_0] == BATCH_1 || s->d_to[BATCH_1] == BATCH_0)
			return false;
		if (a->o.value != SW_NO_ID && !same_heads(f, &v, &a->v))
			return false;
		a->v = v;
		a->d_scale = s->d_scales[0];
		if (fabs(s->d_scales[1] - a->d_scale) > 1e-9 * fabs(a->d_scale) ||
		    !same_heads(f, &a->d_o, &s->d_v_by) || 
		    !is_lowered_by_output(f, s, left ? LEFT : RIGHT))
			return false;
		return true;
	}
	return a->o.value != SW_NO_ID && a->d_q.value == SW_NO_ID && a->d_k.value == SW_NO_ID &&
	       a->d_v.value == SW_NO_ID;
}

/* Return the operand without a conversion from a type of fewer bits, which keeps every number. */
static void take_narrow(const follower *f, sw_heads *h)
{
	while (h->value != SW_NO_ID && op_of(f, h->value)->opcode == SW_OP_CONVERT) {
		sw_id from = op_of(f, h->value)->operands[0];
		sw_type type = shape_of(f, from).type;
		if ((type != SW_BF16 && type != SW_F16) || shape_of(f, h->value).type != SW_F32)
			return;
		h->value = from;
	}
}

static void find_loops(follower *f)
{
	const sw_program *p = f->program;
	f->loop = sw_alloc((p->computations.len + 1) * sizeof(*f->loop));
	for (size_t c = 0; c < p->computations.len; c++)
		f->loop[c] = SW_NO_ID;
	for (sw_id id = 0; id < p->ops.len; id++)
		if (p->ops.data[id].opcode == SW_OP_WHILE)
			f->loop[p->ops.data[id].called[1]] = id;
}

void sw_attention_formulas_find(const sw_program *program, int32_t computation,
                                sw_attention_formulas *list)
{
	const sw_computation *c = &program->computations.data[computation];
	follower f = {.program = program, .first = SW_NO_ID};
	sw_id end = 0;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(program, c->ops.data[i]);
		if (op->n_results == 0)
			continue;
		f.first = SW_MIN(f.first, op->first_result);
		end = SW_MAX(end, op->first_result + op->n_results);
	}
	f.n = end > f.first ? end - f.first : 0;
	find_loops(&f);
	f.known = sw_alloc((f.n + 1) * sizeof(*f.known));
	for (size_t i = 0; i < c->ops.len; i++)
		follow(&f, sw_op_at(program, c->ops.data[i]));
	for (size_t i = 0; i < f.softmaxes.len; i++) {
		sw_attention_formula *a = &f.softmaxes.data[i].formula;
		if (!complete(&f, &f.softmaxes.data[i]))
			continue;
		a->computation = computation;
		take_narrow(&f, &a->q);
		take_narrow(&f, &a->k);
		take_narrow(&f, &a->v);
		take_narrow(&f, &a->d_o);
		sw_vec_push(list, *a);
	}
	free(f.known);
	free(f.loop);
	sw_vec_clear(&f.list);
	sw_vec_clear(&f.products);
	sw_vec_clear(&f.softmaxes);
}
