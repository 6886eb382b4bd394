/*
 * Explain: a plan as tables for people. Repeated layers are folded: lines that are equal but for numbers in their names
 * become one, with a count.
 */
#include "plan/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINES ((size_t)12) /* of a table that is not whole */

/* One line of a folded table, and what it sums up. */
typedef struct fold_line {
	char *name, *detail;
	int64_t count;
	double weight; /* the table is sorted by it, largest first */
} fold_line;
typedef struct fold {
	size_t most_lines;
	sw_arena arena;
	sw_map index;
	SW_VEC(fold_line) lines;
} fold;

/* Something of this weight that occurs so many times. */
static void fold_add(fold *f, const char *name, const char *detail, int64_t times, double weight)
{
	sw_text key = {0};
	for (const char *c = name; *c; c++) {
		bool digit = isdigit((unsigned char)*c),
		     before = key.len > 0 && key.data[key.len - 1] == '*';
		if (digit && before)
			continue;
		sw_text_add_n(&key, digit ? "*" : c, 1);
	}
	size_t name_length = key.len;
	sw_text_add(&key, "\n");
	sw_text_add(&key, detail);
	uint32_t next = (uint32_t)f->lines.len;
	uint32_t line = sw_map_intern(&f->index, key.data, key.len, next);
	if (line == next) {
		fold_line fresh = {.name = sw_arena_text_n(&f->arena, key.data, name_length),
		                   .detail = sw_arena_text(&f->arena, detail)};
		sw_vec_push(&f->lines, fresh);
	}
	f->lines.data[line].count += times;
	f->lines.data[line].weight += (double)times * weight;
	sw_text_clear(&key);
}

static int by_weight(const void *a, const void *b)
{
	const fold_line *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	int order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->detail, y->detail);
}

static void fold_print(fold *f, const char *what, void (*weight)(sw_text *, double),
                       const char *weight_name, const char *detail_name, sw_text *text)
{
	const char *const headings[] = {what, "count", weight_name, detail_name};
	sw_table table;
	sw_table_init(&table, 4, headings);
	if (f->lines.len > 0)
		qsort(f->lines.data, f->lines.len, sizeof(fold_line), by_weight);
	for (size_t i = 0; i < f->lines.len && i < f->most_lines; i++) {
		const fold_line *line = &f->lines.data[i];
		sw_text amount = {0};
		weight(&amount, line->weight);
		sw_table_cell(&table, "%s", line->name);
		sw_table_cell(&table, "%lld", (long long)line->count);
		sw_table_cell(&table, "%s", amount.data);
		sw_table_cell(&table, "%s", line->detail);
		sw_text_clear(&amount);
	}
	sw_table_add_to(&table, text);
	if (f->lines.len > f->most_lines)
		sw_text_addf(text, "  ... and %zu more\n", f->lines.len - f->most_lines);
	sw_text_add(text, "\n");
	sw_table_clear(&table);
	sw_map_clear(&f->index);
	sw_vec_clear(&f->lines);
	sw_arena_clear(&f->arena);
}

/* ---- layouts in words ------------------------------------------------------------------------------------------ */

/* The state of an axis if all its atoms agree on kind and dimension; NULL otherwise. */
static const sw_state *axis_state(const sw_layout *layout, uint32_t atoms)
{
	const sw_state *first = NULL;
	for (int32_t a = 0; a < layout->n; a++) {
		if (!(atoms >> a & 1))
			continue;
		const sw_state *s = &layout->state[a];
		if (first && (s->kind != first->kind || s->dim != first->dim))
			return NULL;
		first = first ? first : s;
	}
	return first;
}

/* "whole", "dim 0 over x and y", "dim 0 over x, partial sum over y", ... */
static void layout_words(const sw_plan *plan, sw_shape shape, const sw_layout *layout, sw_text *text)
{
	size_t before = text->len;
	const sw_state *last = NULL; /* the one in words so far that an equal one joins */
	for (int32_t i = 0; i < plan->n_axes; i++) {
		const sw_state *s = axis_state(layout, plan->axes[i].atoms);
		if (!s) {
			text->len = before;
			sw_layout_print(&plan->cluster->atoms, shape, layout, text);
			return;
		}
		if (s->kind == SW_STATE_B)
			continue;
		bool joins = last && last->kind == s->kind && last->dim == s->dim;
		sw_text_add(text, joins || !last ? "" : ", ");
		if (joins)
			sw_text_addf(text, " and %s", plan->axes[i].name);
		else if (s->kind == SW_STATE_S)
			sw_text_addf(text, "dim %d over %s", s->dim, plan->axes[i].name);
		else
			sw_text_addf(text, "partial %s over %s", sw_monoid_name(layout->monoid),
			             plan->axes[i].name);
		last = s;
	}
	if (!last)
		sw_text_add(text, "whole");
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static void explain_head(const sw_plan *plan, sw_text *text)
{
	sw_text_add(text, "strategy   ");
	sw_plan_strategy_print(&plan->strategy, text);
	if (plan->strategy.kind == SW_PLAN_AUTO)
		sw_text_addf(text, " (chosen: %s)", plan->chosen);
	sw_text_addf(text, "\ncluster    %s, %lld devices; mesh", plan->cluster->name,
	             (long long)plan->cluster->n_devices);
	for (int32_t i = 0; i < plan->n_axes; i++)
		sw_text_addf(text, " %s=%lld", plan->axes[i].name, (long long)plan->axes[i].size);
	sw_text_add(text, plan->n_axes ? "" : " none");
	sw_text_add(text, "\n");
	sw_plan_explain_rewrites(plan, text);
	sw_text_add(text, "step       ");
	sw_text_add_seconds(text, plan->predicted.step_time_s);
	sw_text_add(text, " predicted; ");
	sw_text_add_seconds(text, plan->predicted.compute_s + plan->predicted.communication_s);
	sw_text_add(text, " without overlap: ");
	sw_text_add_seconds(text, plan->predicted.compute_s);
	sw_text_add(text, " compute + ");
	sw_text_add_seconds(text, plan->predicted.communication_s);
	sw_text_addf(text, " communication in %lld collectives\npayload    ",
	             (long long)plan->predicted.collectives);
	sw_text_add_bytes(text, (double)plan->predicted.payload_bytes);
	sw_text_addf(text, " (%lld bytes) per step and rank\nmemory     ",
	             (long long)plan->predicted.payload_bytes);
	sw_text_add_bytes(text, (double)plan->predicted.peak_bytes);
	sw_text_add(text, " at the peak, per device\n");
	if (plan->model_s > 0) {
		sw_text_addf(text, "gap        %.2f %%: ", plan->gap * 100);
		sw_text_add_seconds(text, plan->model_s);
		sw_text_add(text, " in the model that is searched, where nothing takes less than ");
		sw_text_add_seconds(text, plan->lower_bound_s);
		sw_text_addf(text, "\nsearched   %s%s\n",
		             plan->strategy.kind == SW_PLAN_AUTO ? "" : "this strategy alone; ",
		             plan->scope);
	}
	sw_text_add(text, "\n");
}

static void explain_inputs(const sw_plan *plan, size_t most_lines, sw_text *text)
{
	const sw_program *program = plan->program;
	fold f = {.most_lines = most_lines};
	const sw_computation *entry = sw_entry(program);
	for (size_t i = 0; i < entry->parameters.len; i++) {
		const sw_op *op = sw_op_at(program, entry->parameters.data[i]);
		for (uint32_t k = 0; k < op->n_results; k++) {
			sw_id value = op->first_result + k;
			sw_shape shape = sw_value_shape(program, value);
			const sw_layout *layout = sw_plan_layout(plan, plan->produced[value]);
			sw_text detail = {0};
			sw_shape_print(shape, &detail);
			sw_text_add(&detail, "  ");
			layout_words(plan, shape, layout, &detail);
			fold_add(&f, op->name, detail.data, 1,
			         (double)sw_layout_local_bytes(&plan->cluster->atoms, shape, layout));
			sw_text_clear(&detail);
		}
	}
	fold_print(&f, "input", sw_text_add_bytes, "per device", "layout", text);
}

/* How often each computation runs in a step; loops of unknown length once, branches each time; 0: only from ops that are no
 * regions. Freed by free(). */
static int64_t *count_trips(const sw_program *program)
{
	int64_t *trips = sw_alloc(sizeof(*trips) * (program->computations.len + 1));
	SW_VEC(int32_t) open = {0};
	trips[program->entry] = 1;
	sw_vec_push(&open, program->entry);
	while (open.len > 0) {
		int32_t c = open.data[--open.len];
		const sw_computation *computation = &program->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++) {
			const sw_op *op = sw_op_at(program, computation->ops.data[i]);
			bool loop = op->opcode == SW_OP_WHILE;
			for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++) {
				int64_t times = loop ? SW_MAX(op->attrs->loop.trip_count, 1) : 1;
				trips[op->called[k]] = trips[c] * times;
				sw_vec_push(&open, op->called[k]);
			}
		}
	}
	sw_vec_clear(&open);
	return trips;
}

static void explain_dots(const sw_plan *plan, size_t most_lines, sw_text *text)
{
	const sw_program *program = plan->program;
	fold f = {.most_lines = most_lines};
	int64_t *trips = count_trips(program);
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		sw_layout layouts[3];
		if ((op->opcode != SW_OP_DOT && op->opcode != SW_OP_CONVOLUTION) ||
		    !sw_plan_op_layouts(plan, id, layouts, layouts + 2))
			continue;
		sw_text detail = {0};
		for (uint32_t k = 0; k < 3; k++) {
			sw_shape shape =
				sw_value_shape(program, k < 2 ? op->operands[k] : op->first_result);
			sw_text_add(&detail, k == 1 ? " * " : k == 2 ? " -> " : "");
			sw_shape_print(shape, &detail);
			sw_text_add(&detail, " ");
			layout_words(plan, shape, &layouts[k], &detail);
		}
		fold_add(&f, op->name, detail.data, trips[op->computation],
		         sw_op_flops(program, id) /
		                 (double)sw_strategy_share(&plan->cluster->atoms, &plan->strategies[id]));
		sw_text_clear(&detail);
	}
	fold_print(&f, "matmul", sw_text_add_count, "FLOP per device", "left * right -> result", text);
	free(trips);
}

static void explain_collectives(const sw_plan *plan, const sw_program *local, size_t most_lines,
                                sw_text *text)
{
	fold f = {.most_lines = most_lines};
	int64_t *trips = count_trips(local);
	for (sw_id id = 0; id < local->ops.len; id++) {
		const sw_op *op = sw_op_at(local, id);
		if (sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE || op->n_operands == 0)
			continue;
		uint32_t mask = 0;
		sw_text detail = {0};
		sw_shape shape = sw_value_shape(local, op->operands[0]);
		sw_cost_group_atoms(&plan->cluster->atoms, &op->attrs->collective.groups, &mask);
		int64_t group = op->opcode == SW_OP_COLLECTIVE_PERMUTE
		                        ? 2
		                        : sw_atoms_group_size(&plan->cluster->atoms, mask);
		sw_shape_print(shape, &detail);
		sw_text_addf(&detail, " in groups of %lld", (long long)group);
		fold_add(&f, sw_op_opcode_name(op), detail.data, trips[op->computation],
		         (double)sw_collective_payload_bytes((sw_opcode)op->opcode, sw_shape_bytes(shape),
		                                             group));
		sw_text_clear(&detail);
	}
	if (f.lines.len > 0)
		fold_print(&f, "collective", sw_text_add_bytes, "payload", "operand, on each device", text);
	free(trips);
}

static void explain_alternatives(const sw_plan *plan, sw_text *text)
{
	const char *const headings[] = {"considered", "step",   "compute", "communication",
	                                "payload",    "memory", ""};
	sw_table table;
	if (plan->alternatives.len == 0)
		return;
	sw_table_init(&table, 7, headings);
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const sw_alternative *a = &plan->alternatives.data[i];
		const double seconds[] = {a->step_time_s, a->compute_s, a->communication_s};
		sw_table_cell(&table, "%s", a->name);
		sw_text cell = {0};
		for (size_t k = 0; k < 5; k++) {
			cell.len = 0;
			if (k < 3)
				sw_text_add_seconds(&cell, seconds[k]);
			else
				sw_text_add_bytes(&cell,
				                  (double)(k == 3 ? a->payload_bytes : a->peak_bytes));
			sw_table_cell(&table, "%s",
			              a->feasible || (k == 4 && a->peak_bytes > 0) ? cell.data : "-");
		}
		sw_text given_up = {0};
		sw_text_add(&given_up, "given up: at least ");
		sw_text_add_seconds(&given_up, a->bound_s);
		sw_text_clear(&cell);
		sw_table_cell(&table, "%s",
		              a->bound_s > 0                   ? given_up.data
		              : !a->feasible                   ? "does not fit in memory"
		              : !strcmp(a->name, plan->chosen) ? "chosen"
		                                               : "");
		sw_text_clear(&given_up);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

void sw_plan_explain(const sw_plan *plan, const sw_program *local, bool whole_tables, sw_text *text)
{
	size_t most_lines = whole_tables ? SIZE_MAX : MOST_LINES;
	explain_head(plan, text);
	explain_inputs(plan, most_lines, text);
	explain_dots(plan, most_lines, text);
	if (local)
		explain_collectives(plan, local, most_lines, text);
	explain_alternatives(plan, text);
	for (size_t i = 0; i < plan->warnings.len; i++)
		sw_text_addf(text, "%swarning: %s\n", i == 0 ? "\n" : "", plan->warnings.data[i]);
}
