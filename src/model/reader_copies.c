/*
 * What readers hold beside what is kept. The spans of a problem count a value as it is kept; a
 * reader that needs it in another layout has a copy of it while it runs, which is a matter of two
 * nodes, and spans are one node's. Near a plan that is known it is nearly one: the value is likely
 * to be kept as it was there.
 */
#include "model/internal.h"

#include <stdlib.h>

static int64_t bytes_in(const sw_model *m, sw_shape shape, uint32_t layout)
{
	const sw_memo *p = m->memo;
	return sw_layout_local_bytes(&p->analysis->cluster->atoms, shape,
	                             &p->layouts.items.data[layout]);
}

/* Of the op's operands together, per candidate, beyond what is kept; returns the most. */
static int64_t count_copies(const sw_model *m, const sw_decision *decision, const sw_plan *near,
                            int64_t *usage)
{
	const sw_program *program = m->analysis->program;
	const sw_strategy_table *strategy_table =
		&m->memo->strategy_tables.data[decision->strategy_table];
	const sw_op *op = sw_op_at(program, decision->index);
	int64_t most = 0;
	for (int32_t i = 0; i < strategy_table->n; i++) {
		usage[i] = 0;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_shape shape = sw_value_shape(program, op->operands[k]);
			int64_t read = bytes_in(
				m, shape,
				strategy_table->in[(uint32_t)i * strategy_table->n_in + k]);
			usage[i] += SW_MAX(
				read - bytes_in(m, shape, near->materialised[op->operands[k]]), 0);
		}
		most = SW_MAX(most, usage[i]);
	}
	return most;
}

void sw_model_count_copies(sw_model *m, const sw_plan *near)
{
	const sw_roles *roles = &m->analysis->roles;
	double small_bytes = (double)m->problem.capacity / m->analysis->limits->copy_parts;
	for (size_t s = 0; s < m->decisions.len; s++) {
		const sw_decision *decision = &m->decisions.data[s];
		if (decision->kind != SW_DECISION_OP)
			continue;
		int64_t *usage =
			sw_alloc(sizeof(*usage) *
		                 (size_t)m->memo->strategy_tables.data[decision->strategy_table].n);
		int32_t point = roles->point[decision->index];
		if ((double)count_copies(m, decision, near, usage) > small_bytes)
			sw_problem_add_span(&m->problem, decision->node, point, point + 1, usage);
		free(usage);
	}
}
