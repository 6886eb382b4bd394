/* Questions about an analysed region, and about what its dots read. */
#include "fuse/scores.h"

sw_id sw_score_origin(const sw_program *program, sw_id value)
{
	for (;;) {
		const sw_value *v = &program->values.data[value];
		const sw_op *op = sw_op_at(program, v->op);
		switch (op->opcode) {
		case SW_OP_ALL_GATHER:
		case SW_OP_BROADCAST:
		case SW_OP_CONVERT:
		case SW_OP_COPY:
		case SW_OP_DYNAMIC_SLICE:
		case SW_OP_OPT_BARRIER:
		case SW_OP_RESHAPE:
		case SW_OP_TRANSPOSE:
			break;
		default:
			return value;
		}
		value = op->operands[op->n_results > 1 ? v->index : 0];
	}
}

const sw_op *sw_score_seed_op(const sw_scores *s, int32_t seed)
{
	return sw_op_at(s->regions->f->program, s->ops[s->seeds[seed].index].op);
}

int64_t sw_score_contracted(const sw_program *program, const sw_op *dot)
{
	sw_shape shape = sw_value_shape(program, dot->operands[0]);
	sw_ints dims = dot->attrs->dot.lhs_contracting;
	int64_t size = 1;
	for (int32_t i = 0; i < dims.n; i++)
		size *= shape.dims[dims.v[i]];
	return size;
}

bool sw_score_has_role(const sw_scores *s, sw_score_role role)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->ops[i].role == role)
			return true;
	return false;
}

/* Return whether a dot of the region, of two operands, multiplies scores with a value. */
static bool multiplies(const sw_program *p, const sw_op *dot, sw_id value)
{
	return sw_score_origin(p, dot->operands[0]) == value ||
	       sw_score_origin(p, dot->operands[1]) == value;
}

/* Return whether the dot multiplies scores with what was there before them: what else it reads was
 * computed before the op `first`. */
static bool multiplies_earlier(const sw_scores *s, const sw_op *dot, sw_id first)
{
	const sw_program *p = s->regions->f->program;
	for (uint32_t k = 0; k < 2; k++)
		if (!sw_score_op_of(s, dot->operands[k]) &&
		    p->values.data[sw_score_origin(p, dot->operands[k])].op > first)
			return false;
	return true;
}

/* Does the region pick a score of each row by an index, or add something there, as losses do? */
static bool has_labels(const sw_scores *s)
{
	const sw_program *p = s->regions->f->program;
	for (uint32_t i = 0; i < s->n; i++) {
		const sw_op *op = sw_op_at(p, s->ops[i].op);
		if (s->ops[i].role == SW_SCORE_ROW && op->opcode == SW_OP_GATHER)
			return true;
		for (uint32_t k = 0; k < op->n_operands && s->ops[i].role == SW_SCORE_FULL; k++) {
			sw_id origin = sw_score_origin(p, op->operands[k]);
			if (sw_op_at(p, p->values.data[origin].op)->opcode == SW_OP_SCATTER)
				return true;
		}
	}
	return false;
}

/* Is each product that computes scores one of rows with a weight, as where a loss is differentiated
 * along a direction, and scores have tangents? */
static bool has_weights(const sw_scores *s)
{
	const sw_program *p = s->regions->f->program;
	for (int32_t i = 0; i < s->n_seeds; i++) {
		const sw_op *dot = sw_score_seed_op(s, i);
		sw_id keys = sw_score_origin(p, dot->operands[s->seeds[i].key_side]);
		if (dot->attrs->dot.lhs_batch.n > 0 ||
		    sw_op_at(p, p->values.data[keys].op)->opcode != SW_OP_PARAMETER)
			return false;
	}
	return true;
}

/* Attention contracts queries with derivatives of what its scores were multiplied with, which come
 * later, or its derivative begins with a product of these. */
bool sw_score_is_vocabulary(const sw_scores *s)
{
	const sw_program *p = s->regions->f->program;
	const sw_op *dot = sw_score_seed_op(s, 0);
	sw_id keys = sw_score_origin(p, dot->operands[s->seeds[0].key_side]),
	      last = s->ops[s->seeds[s->n_seeds - 1].index].op;
	if (has_weights(s) && has_labels(s))
		return true;
	for (int32_t i = 0; i < s->n_seeds; i++)
		if (s->seeds[i].late)
			return false;
	bool same = dot->attrs->dot.lhs_batch.n == 0 && s->n_seeds == 1, derived = false,
	     earlier = true;
	for (uint32_t i = 0; i < s->n; i++) {
		const sw_op *op = sw_op_at(p, s->ops[i].op);
		if (s->ops[i].role == SW_SCORE_KEYS)
			same &= multiplies(p, op, keys);
		if (s->ops[i].role != SW_SCORE_QUERIES)
			continue;
		derived = true;
		earlier &= multiplies_earlier(s, op, last);
	}
	return same || (derived && earlier);
}
