/* The kernels of a region, in order: each op stands in the first one that needs it. */
#include "fuse/scores.h"

static const sw_op *op_at(const sw_scores *s, const sw_score_op *x)
{
	return sw_op_at(s->regions->f->program, x->op);
}

/* What an operand of an op comes from: an op of the region, perhaps by way of other devices. */
typedef struct operand_source {
	const sw_score_op *op; /* NULL: none */
	bool elsewhere;        /* ops that are none of the region lie between */
} operand_source;

/* Return the value that comes before this one on the way back to an op with a role: the operand of
 * an all-reduce, of a row statistic that the kernels don't need, or what the value follows from. */
static sw_id step_back(const sw_scores *s, sw_id value)
{
	const sw_score_regions *r = s->regions;
	const sw_value *v = &r->f->program->values.data[value];
	const sw_op *op = sw_op_at(r->f->program, v->op);
	if (sw_score_region_of(r, value) == SW_NO_ID)
		return r->values[value - r->first_value].from;
	if (op->opcode == SW_OP_ALL_REDUCE)
		return op->operands[v->index];
	bool kept = op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_TRANSPOSE ||
	            (op->opcode == SW_OP_REDUCE &&
	             sw_score_axes_of(r, value).n == sw_score_axes_of(r, op->operands[0]).n) ||
	            sw_fuse_is_elementwise(op);
	for (uint32_t i = 0; kept && i < op->n_operands; i++)
		if (sw_score_region_of(r, op->operands[i]) == s->region)
			return op->operands[i];
	return SW_NO_ID;
}

static operand_source source_of(const sw_scores *s, sw_id value)
{
	operand_source source = {sw_score_op_of(s, value), false};
	while (!source.op) {
		value = step_back(s, value);
		if (value == SW_NO_ID || sw_score_region_of(s->regions, value) != s->region)
			return source;
		source = (operand_source){sw_score_op_of(s, value), true};
	}
	return source;
}

/* Return the source of an operand. A dot multiplies with what is no row statistic: only values of
 * the region itself count. */
static operand_source source_at(const sw_scores *s, const sw_op *op, uint32_t operand)
{
	if (op->opcode == SW_OP_DOT)
		return (operand_source){sw_score_op_of(s, op->operands[operand]), false};
	return source_of(s, op->operands[operand]);
}

/* ---- what each op depends on ------------------------------------------------------------ */

static uint32_t seed_bit(const sw_scores *s, uint32_t index)
{
	for (int32_t i = 0; i < s->n_seeds; i++)
		if (s->seeds[i].index == index)
			return 1u << i;
	return 0;
}

static void find_dependencies(sw_scores *s, uint32_t index)
{
	sw_score_op *x = &s->ops[index];
	const sw_op *op = op_at(s, x);
	x->seeds = seed_bit(s, index);
	x->soft = op->opcode == SW_OP_EXPONENTIAL ||
	          (op->opcode == SW_OP_REDUCE && x->role == SW_SCORE_ROW &&
	           sw_computation_monoid(s->regions->f->program, op->called[0]) == SW_MONOID_SUM);
	for (uint32_t i = 0; i < op->n_operands; i++) {
		const sw_score_op *y = source_at(s, op, i).op;
		if (y) {
			x->seeds |= y->seeds;
			x->soft |= y->soft;
		}
	}
}

/* The dot of the derivative, dO v^T, first meets the softmax where an op combines it with something
 * soft that doesn't depend on it. (Scores that are sums of dots meet before the softmax.) */
static void find_late(sw_scores *s, const sw_score_op *x)
{
	const sw_op *op = op_at(s, x);
	for (uint32_t i = 0; i < op->n_operands; i++) {
		const sw_score_op *y = source_at(s, op, i).op;
		if (!y || y->soft || y->role != SW_SCORE_FULL)
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			const sw_score_op *z = source_at(s, op, k).op;
			if (!z || !z->soft || (z->seeds & y->seeds))
				continue;
			for (int32_t seed = 0; seed < s->n_seeds; seed++)
				s->seeds[seed].late |= y->seeds >> seed & 1;
		}
	}
}

static uint32_t late_seeds(const sw_scores *s)
{
	uint32_t late = 0;
	for (int32_t i = 0; i < s->n_seeds; i++)
		late |= (uint32_t)s->seeds[i].late << i;
	return late;
}

/* ---- stages ----------------------------------------------------------------------------- */

/* An op is possible when its operands are, or a kernel later, where other devices are between. */
static void set_earliest(sw_scores *s, sw_score_op *x, int32_t least)
{
	const sw_op *op = op_at(s, x);
	x->earliest = least;
	for (uint32_t i = 0; i < op->n_operands; i++) {
		operand_source y = source_at(s, op, i);
		if (y.op)
			x->earliest = SW_MAX(x->earliest, y.op->earliest + y.elsewhere);
	}
}

/* Return whether an op belongs to the derivative, as products over queries, or over the batch, do. */
static bool is_derived(const sw_scores *s, const sw_score_op *x, uint32_t late,
                       sw_score_passes passes)
{
	bool dot = op_at(s, x)->opcode == SW_OP_DOT;
	switch (passes) {
	case SW_SCORES_MULTIPLIED:
		return x->role == SW_SCORE_QUERIES || (x->role == SW_SCORE_SUM && dot) ||
		       (x->seeds & late);
	case SW_SCORES_TWICE:
		return x->role > SW_SCORE_ROW;
	default:
		return false;
	}
}

static void set_all_earliest(sw_scores *s, uint32_t late, sw_score_passes passes)
{
	for (uint32_t i = 0; i < s->n; i++) {
		sw_score_op *x = &s->ops[i];
		if (x->role == SW_SCORE_APART || is_derived(s, x, late, passes))
			continue;
		set_earliest(s, x, 0);
		s->base = SW_MAX(s->base, x->earliest + 1);
	}
	for (uint32_t i = 0; i < s->n; i++)
		if (s->ops[i].role != SW_SCORE_APART && is_derived(s, &s->ops[i], late, passes))
			set_earliest(s, &s->ops[i], s->base);
}

/* A value that others read, and what ends the region, is computed as early as possible; all else
 * when it is first needed. */
static void set_stages(sw_scores *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->ops[i].stage = s->ops[i].outside || s->ops[i].role > SW_SCORE_ROW
		                          ? s->ops[i].earliest
		                          : INT32_MAX;
	for (uint32_t i = s->n; i-- > 0;) {
		const sw_score_op *x = &s->ops[i];
		const sw_op *op = op_at(s, x);
		if (x->role == SW_SCORE_APART)
			continue;
		s->n_stages = SW_MAX(s->n_stages, x->stage + 1);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_score_op *y = (sw_score_op *)sw_score_op_of(s, op->operands[k]);
			if (y)
				y->stage = SW_MIN(y->stage, x->stage);
		}
	}
}

void sw_scores_find_late(sw_scores *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->ops[i].role != SW_SCORE_APART)
			find_dependencies(s, i);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->ops[i].role == SW_SCORE_FULL)
			find_late(s, &s->ops[i]);
}

void sw_scores_set_stages(sw_scores *s, sw_score_passes passes)
{
	set_all_earliest(s, late_seeds(s), passes);
	set_stages(s);
}
