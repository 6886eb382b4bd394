/*
 * The readers of each value, and the layouts at both ends of an edge: in which layouts the
 * decisions that make a value give it, and those that read it take it. All of them are announced to
 * the path cache, which then finds the paths between them side by side.
 */
#include "model/internal.h"

#include <stdlib.h>

/* ---- readers ---------------------------------------------------------------------------- */

/* Call `visit` for every use of a value by a decision. */
typedef void visit_reader(sw_readers *r, sw_id value, sw_value_reader use);
static void visit_readers(const sw_model *m, sw_readers *r, visit_reader *visit)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_program *program = roles->program;
	for (uint32_t s = 0; s < m->decisions.len; s++) {
		const sw_decision *decision = &m->decisions.data[s];
		if (decision->kind == SW_DECISION_OP) {
			const sw_op *op = sw_op_at(program, decision->index);
			for (uint32_t k = 0; k < op->n_operands; k++)
				visit(r, op->operands[k],
				      (sw_value_reader){s, k, roles->trips[decision->index],
				                        roles->point[decision->index]});
		} else if (decision->kind == SW_DECISION_BOUNDARY) {
			const sw_boundary *boundary = &roles->boundaries.data[decision->index];
			for (uint32_t k = 0; k < boundary->n_reads; k++)
				visit(r, boundary->reads[k].value,
				      (sw_value_reader){s, 0, boundary->reads[k].trips,
				                        boundary->reads[k].point});
		} else if (decision->kind == SW_DECISION_OUTPUT) {
			visit(r, sw_entry(program)->results.data[decision->index],
			      (sw_value_reader){s, 0, 1, roles->n_points - 1});
		}
	}
}

static void count_reader(sw_readers *r, sw_id value, sw_value_reader use)
{
	(void)use;
	r->start[value + 2]++;
}

static void list_reader(sw_readers *r, sw_id value, sw_value_reader use)
{
	r->list[r->start[value + 1]++] = use;
}

void sw_readers_init(sw_readers *r, const sw_model *m)
{
	size_t n = m->analysis->program->values.len;
	r->start = sw_alloc(sizeof(uint32_t) * (n + 2));
	visit_readers(m, r, count_reader);
	for (size_t v = 0; v < n; v++)
		r->start[v + 2] += r->start[v + 1];
	r->list = sw_alloc(sizeof(sw_value_reader) * (r->start[n + 1] + 1));
	visit_readers(m, r, list_reader);
}

void sw_readers_clear(sw_readers *r)
{
	free(r->start);
	free(r->list);
}

/* ---- layouts of one end of an edge ------------------------------------------------------ */

sw_layout_list sw_layouts_at(const sw_model *m, sw_edge_end e)
{
	const sw_strategy_table *p = sw_model_strategy_table(m, e.table);
	if (e.out)
		return (sw_layout_list){p->out + e.which, p->n_out, p->n};
	return (sw_layout_list){p->in + e.which, p->n_in, p->n};
}

sw_edge_end sw_end_of_producer(const sw_model *m, sw_id value)
{
	return (sw_edge_end){m->decisions.data[m->index.producer[value]].table,
	                     m->index.result_of[value], true};
}

sw_edge_end sw_end_of_reader(const sw_model *m, const sw_value_reader *use)
{
	return (sw_edge_end){m->decisions.data[use->decision].table, use->operand, false};
}

uint32_t *sw_number_layouts(const sw_model *m, sw_layout_list l)
{
	const sw_layout *layouts = m->memo->layouts.items.data;
	uint32_t *numbers = sw_alloc(sizeof(*numbers) * ((size_t)l.n + 1));
	for (int32_t i = 0; i < l.n; i++)
		numbers[i] = sw_path_cache_layout(m->paths, &layouts[l.list[(uint32_t)i * l.step]]);
	return numbers;
}

/* Announce the layouts of this end to the path cache. Only those of this mesh are announced, so
 * that the cost of a conversion does not depend on the meshes before it. */
static void expect_end(sw_model *m, uint32_t shape, sw_edge_end e)
{
	const uint32_t key[] = {shape, (uint32_t)e.table, e.which, e.out};
	if (sw_map_put(&m->index.expected, key, sizeof(key), 0) != SW_ABSENT)
		return;
	sw_layout_list l = sw_layouts_at(m, e);
	uint32_t *numbers = sw_number_layouts(m, l);
	for (int32_t i = 0; i < l.n; i++)
		sw_path_cache_expect(m->paths, shape, numbers[i]);
	free(numbers);
}

void sw_readers_expect(sw_model *m, const sw_readers *r)
{
	const sw_program *program = m->analysis->program;
	sw_path_cache_begin(m->paths);
	for (sw_id v = 0; v < program->values.len; v++) {
		if (r->start[v] == r->start[v + 1])
			continue;
		uint32_t shape = sw_path_cache_shape(m->paths, sw_value_shape(program, v));
		expect_end(m, shape, sw_end_of_producer(m, v));
		for (uint32_t i = r->start[v]; i < r->start[v + 1]; i++)
			expect_end(m, shape, sw_end_of_reader(m, &r->list[i]));
	}
}
