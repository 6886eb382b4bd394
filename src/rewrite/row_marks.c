/* Ops that do the same with each row, whatever order the rows are in. */
#include "frontend/sharding.h"
#include "rewrite/sorted_rows.h"

/* Return the factor that a dimension of an operand is; -1: it is several, or part of one. */
static int32_t factor_of(const sw_row_marks *x, const sw_op *op, const sw_rule *rule, uint32_t k)
{
	sw_shape shape = sw_value_shape(x->in, op->operands[k]);
	int32_t dim = x->of[op->operands[k]].dim;
	if (dim < 0 || (int32_t)k >= rule->n_operands || dim >= rule->operand_ranks[k])
		return -1;
	const sw_dim_map *map = &rule->operands[k][dim];
	bool whole = map->n == 1 && map->refs[0].stride == 1 &&
	             rule->factors[map->refs[0].factor].size == shape.dims[dim];
	return whole ? map->refs[0].factor : -1;
}

/* Return whether what the op does with the rows hangs on where they are: it takes those that an
 * index says, or puts something there. */
static bool takes_some(const sw_row_marks *x, const sw_op *op, const sw_rule *rule, int32_t rows)
{
	bool indexed = op->opcode == SW_OP_GATHER || op->opcode == SW_OP_SCATTER;
	for (uint32_t k = 0; k < op->n_operands && indexed; k++) {
		const sw_sorted_value *v = &x->of[op->operands[k]];
		bool operand = op->opcode == SW_OP_GATHER ? k == 0 : k < op->n_operands / 2;
		if (operand && v->sort != SW_NO_ID &&
		    sw_ints_has(op->attrs->index.start_index_map, v->dim))
			return true;
	}
	return op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE &&
	       !(sw_rule_has_factor(rule, false, 0, rows) &&
	         sw_rule_has_factor(rule, false, 1, rows));
}

/* Return whether the op reduces over all rows, in whatever order they are. */
static bool takes_all(const sw_op *op, const sw_factor *rows)
{
	return rows->monoid != SW_MONOID_NONE &&
	       (op->opcode == SW_OP_REDUCE || op->opcode == SW_OP_DOT ||
	        op->opcode == SW_OP_SCATTER);
}

/* Return whether an operand has elements for each row, which are not all the same. */
static bool differs(const sw_row_marks *x, const sw_op *op, const sw_rule *rule, uint32_t k,
                    int32_t rows)
{
	int64_t stride;
	int32_t dim = sw_rule_dim_with(rule, false, (int32_t)k, rows, &stride);
	const sw_op *made = sw_made_by(x->in, op->operands[k]);
	bool repeated =
		made->opcode == SW_OP_BROADCAST && !sw_ints_has(made->attrs->dims.dims, dim);
	bool number = sw_is_number(x->in, op->operands[k]) ||
	              (x->is_number && x->is_number[op->operands[k]]);
	return dim >= 0 && !repeated && !number;
}

bool sw_mark_rows(sw_row_marks marks, sw_id id, sw_id sort)
{
	const sw_row_marks *x = &marks;
	const sw_op *op = sw_op_at(x->in, id);
	const sw_rule *rule = x->rules[id];
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	int32_t rows = -1;
	if (class == SW_CLASS_RANDOM || op->opcode == SW_OP_CUSTOM_CALL || sw_op_sharding(op))
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		if (x->of[op->operands[k]].sort == SW_NO_ID)
			continue;
		int32_t factor = factor_of(x, op, rule, k);
		if (factor < 0 || (rows >= 0 && factor != rows))
			return false;
		rows = factor;
	}
	const sw_factor *factor = &rule->factors[rows];
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (x->of[op->operands[k]].sort == SW_NO_ID && differs(x, op, rule, k, rows))
			return false;
	if (factor->exchange != SW_EXCHANGE_NONE || takes_some(x, op, rule, rows))
		return false;
	if (factor->kind == SW_FACTOR_REDUCED)
		return takes_all(op, factor);
	for (uint32_t r = 0; r < op->n_results; r++) {
		int64_t stride;
		int32_t dim = sw_rule_dim_with(rule, true, (int32_t)r, rows, &stride);
		if (dim < 0 || stride != 1 ||
		    sw_value_shape(x->in, op->first_result + r).dims[dim] != factor->size)
			return false;
		x->of[op->first_result + r] = (sw_sorted_value){sort, (int8_t)dim};
	}
	return true;
}
