/* The products of attention, and what they make of it; see the header. */
#include "fuse/attention_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/attention_known.h"

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
	return !sw_ints_has(batch_of(op, operand), d) &&
	       !sw_ints_has(contracted_of(op, operand), d);
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
 * two, else those of more than one element. The rest is -1. Return false if there are more, or
 * none. */
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
	head_product p = {heads_of(f, op, 0, true), heads_of(f, op, 1, true)};
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
	       r->z == -1 && !r->d && r->r == 1 &&
	       fabs(d->factor + r->factor) <= 1e-9 * fabs(d->factor);
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
	sw_heads a = sw_heads_bare(f, *x), b = sw_heads_bare(f, *y);
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

static const sw_heads *side_of(const head_product *p, score_side s)
{
	return s == LEFT ? &p->left : &p->right;
}

/* A product of scores ends them. */
static void end_product(follower *f, const sw_op *op, uint32_t scores)
{
	const known *k = known_of(f, op->operands[scores]);
	softmax *s = &f->softmaxes.data[k->of];
	score_side queries = s->keys == LEFT ? RIGHT : LEFT, over;
	const head_product *p = &f->products.data[s->of];
	sw_heads result, by;
	double factor;
	if (!is_of_heads(f, op) || !result_of(f, op, scores, k, &result, &by)) {
		s->failed = true;
		return;
	}
	over = (score_side)k->sides[picked_contracted(f, op, scores)];
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

/* ---- the formula ------------------------------------------------------------------------------
 */

/* Return whether what the derivative subtracts is rowsum(do o), if it subtracts no sum of scores.
 */
static bool is_lowered_by_output(const follower *f, const softmax *s, score_side queries)
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
	const head_product *p = &f->products.data[s->of];
	score_side queries = s->keys == LEFT ? RIGHT : LEFT;
	bool derived = a->d_q.value != SW_NO_ID && a->d_k.value != SW_NO_ID &&
	               a->d_v.value != SW_NO_ID && s->d_of >= 0;
	a->q = *side_of(p, queries);
	a->k = *side_of(p, s->keys);
	if (s->failed)
		return false;
	if (derived) {
		const head_product *d = &f->products.data[s->d_of];
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
	sw_sources_open(&f.sources, program);
	f.known = sw_alloc((f.n + 1) * sizeof(*f.known));
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(program, c->ops.data[i]);
		if (op->opcode == SW_OP_DOT)
			follow_dot(&f, op);
		else
			sw_attention_follow(&f, op);
	}
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
	sw_sources_close(&f.sources);
	sw_vec_clear(&f.list);
	sw_vec_clear(&f.products);
	sw_vec_clear(&f.softmaxes);
}
