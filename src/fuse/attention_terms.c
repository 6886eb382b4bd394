/* What follows between the products of attention: moves, polynomials, masks, sums over keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/attention_known.h"

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
	if (k.kind == UNKNOWN || !sw_map_reshape(from, shape_of(f, op->first_result), to))
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

/* Give the sides of what an op joins two values to. Return false if they do not fit. */
static bool join_sides(const known *x, const known *y, int32_t rank, uint8_t *sides)
{
	for (int32_t d = 0; d < rank; d++) {
		uint8_t a = x->sides[d], b = y->sides[d];
		sides[d] = a == REPEATED ? b : a;
		if (a != REPEATED && b != REPEATED && a != b)
			return false;
	}
	return true;
}

/* Find what the sides of product y are of x, dimension by dimension. Where x is repeated along one
 * dimension, that is its keys. */
static bool match_sides(const known *x, const known *y, int32_t rank, score_side keys,
                        uint8_t to[4])
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

static bool has_side(const known *k, int32_t rank, score_side s)
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
	if (!join_sides(&a, &b, rank, c.sides))
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
	case SW_OP_ADD:
	case SW_OP_SUBTRACT:
		for (int i = 0; i < b.n_terms; i++) {
			term t = b.terms[i];
			t.factor *= op->opcode == SW_OP_SUBTRACT ? -1 : 1;
			if (!add_term(&c, t))
				return;
		}
		break;
	default:
		return;
	}
	set_known(f, op->first_result, c);
}

static void shift(follower *f, const sw_op *op, const known *x, const known *y)
{
	known k = *x;
	int32_t rank = shape_of(f, op->first_result).rank;
	if (x->of != y->of || x->factor != y->factor || x->masked != y->masked ||
	    !join_sides(x, y, rank, k.sides))
		return;
	k.kind = SHIFTED;
	k.keys = y->keys;
	set_known(f, op->first_result, k);
}

sw_heads sw_heads_bare(const follower *f, sw_heads h)
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
	double init;
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
		if (!find_sum(f, op->operands[0], sum, inner) || !sw_map_reshape(from, shape, to))
			return false;
		for (int32_t i = 0; i < from.rank; i++)
			if (to[i] >= 0)
				dims[to[i]] = inner[i];
		return true;
	}
	case SW_OP_REDUCE:
		if (op->n_operands != 2 || op->attrs->dims.dims.n != 1 ||
		    sw_computation_monoid(f->program, op->called[0]) != SW_MONOID_SUM ||
		    !sw_is_uniform(&f->sources, op->operands[1], &init) || init != 0)
			return false;
		sum->over = (int32_t)op->attrs->dims.dims.v[0];
		for (int32_t d = 0; d < shape.rank; d++)
			dims[d] = (int8_t)(d + (d >= sum->over));
		sum->of = op->operands[0];
		while (op_of(f, sum->of)->opcode == SW_OP_CONVERT)
			sum->of = op_of(f, sum->of)->operands[0];
		return op_of(f, sum->of)->opcode == SW_OP_MULTIPLY;
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
		    sw_is_uniform(&f->sources, op->operands[0], &number)) {
			known inverse;
			if (invert(&y, &inverse))
				scale(f, op, &inverse, number);
			return;
		}
	}
	if (x.kind == UNKNOWN && times && sw_is_uniform(&f->sources, op->operands[0], &number))
		scale(f, op, &y, number);
	else if (y.kind == UNKNOWN && (times || op->opcode == SW_OP_DIVIDE) &&
	         sw_is_uniform(&f->sources, op->operands[1], &number) && number != 0)
		scale(f, op, &x, times ? number : 1 / number);
	else if (difference && x.kind == PRODUCT && y.kind == MAXIMUM)
		shift(f, op, &x, &y);
	else if (difference && x.kind == PRODUCT && y.kind == UNKNOWN)
		lower(f, op, &x);
	else if (op->opcode == SW_OP_MAXIMUM && (x.kind == MAXIMUM) != (y.kind == MAXIMUM) &&
	         sw_is_uniform(&f->sources, op->operands[x.kind == MAXIMUM], &number) &&
	         number <= -1e30)
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
	softmax s = {.of = k.of, .keys = k.keys, .d_of = -1};
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
static bool is_causal(const follower *f, sw_id mask, const known *k, score_side keys, bool *inverse)
{
	sw_triangle t;
	score_side queries = keys == LEFT ? RIGHT : LEFT;
	if (!sw_find_triangle(&f->sources, mask, &t))
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
	    !sw_is_uniform(&f->sources, op->operands[first ? 2 : 1], &number))
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
static score_side reduced_side(const known *k, sw_ints dims)
{
	score_side found = SINGLE;
	for (int32_t i = 0; i < dims.n; i++) {
		if (k->sides[dims.v[i]] == SINGLE)
			continue;
		if (found != SINGLE)
			return REPEATED;
		found = (score_side)k->sides[dims.v[i]];
	}
	return found;
}

static void follow_reduce(follower *f, const sw_op *op)
{
	const known k = *known_of(f, op->operands[0]);
	sw_shape shape = shape_of(f, op->operands[0]);
	sw_monoid monoid = sw_computation_monoid(f->program, op->called[0]);
	double init;
	if (k.kind == UNKNOWN || op->n_operands != 2 ||
	    !sw_is_uniform(&f->sources, op->operands[1], &init))
		return;
	known rest = without(&k, op->attrs->dims.dims, shape.rank);
	score_side over = reduced_side(&k, op->attrs->dims.dims);
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

/* ---- one op ------------------------------------------------------------------------------- */

void sw_attention_follow(follower *f, const sw_op *op)
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
	default:
		break;
	}
}
