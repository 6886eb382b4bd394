/*
 * Copies that readers hold of their operands. The spans of a problem count a value in its
 * materialised layout; a reader that needs another layout holds a copy while it runs. Those bytes
 * depend on two nodes, but a span belongs to one. Near a known plan one node suffices: the value is
 * likely to keep the materialised layout that it has there.
 */
#include "model/internal.h"

#include <stdlib.h>

static int64_t bytes_in(const sw_model *m, sw_shape shape, uint32_t layout)
{
	const sw_memo *memo = m->memo;
	return sw_layout_local_bytes(&memo->analysis->cluster->atoms, shape,
	                             &memo->layouts.items.data[layout]);
}

/* Count the bytes of the op's operands beyond their materialised layouts, per candidate; return the
 * maximum. */
static int64_t count_copies(const sw_model *m, const sw_decision *decision, const sw_plan *nearby,
                            int64_t *usage)
{
	const sw_program *program = m->analysis->program;
	const sw_strategy_table *table = &m->memo->tables.data[decision->table];
	const sw_op *op = sw_op_at(program, decision->index);
	int64_t max_bytes = 0;
	for (int32_t i = 0; i < table->n; i++) {
		usage[i] = 0;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_shape shape = sw_value_shape(program, op->operands[k]);
			int64_t read = bytes_in(m, shape, table->in[(uint32_t)i * table->n_in + k]);
			usage[i] += SW_MAX(
				read - bytes_in(m, shape, nearby->materialised[op->operands[k]]),
				0);
		}
		max_bytes = SW_MAX(max_bytes, usage[i]);
	}
	return max_bytes;
}

void sw_model_count_copies(sw_model *m, const sw_plan *nearby)
{
	const sw_roles *roles = &m->analysis->roles;
	const double min_bytes = m->analysis->limits->min_span_bytes;
	for (size_t s = 0; s < m->decisions.len; s++) {
		const sw_decision *decision = &m->decisions.data[s];
		if (decision->kind != SW_DECISION_OP)
			continue;
		int64_t *usage =
			sw_alloc(sizeof(*usage) * (size_t)m->memo->tables.data[decision->table].n);
		int32_t point = roles->point[decision->index];
		if ((double)count_copies(m, decision, nearby, usage) > min_bytes)
			sw_problem_add_span(&m->problem, decision->node, point, point + 1, usage);
		free(usage);
	}
}
