/*
 * The pairwise problem: a node per decision, and one per materialised layout, of each value that
 * has several readers or a distant one. Edges carry redistribution time, nodes kernel time, spans
 * the bytes that a value occupies from its op to its last reader.
 */
#include "model/internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One use of a value as an operand of a decision, `trips` times per step. */
typedef struct value_reader {
	uint32_t decision, operand;
	double trips;
	int32_t point;
} value_reader;

typedef struct readers { /* per value: list[start[v] .. start[v + 1]) */
	uint32_t *start;
	value_reader *list;
} readers;

static int64_t to_cost(double seconds)
{
	double units = seconds / SW_COST_UNIT_S;
	return isfinite(units) && units < 4e18 ? llround(units) : SW_FORBIDDEN;
}

/* Has the deadline passed? This is asked between pieces of work that take milliseconds at most.
 * `done` is the part of the model that is built, in [0, 1]. */
static bool deadline_passed(sw_model *m, double done)
{
	const sw_watch *watch = &m->watch;
	if (watch->progress)
		sw_progress_update(watch->progress, watch->done + watch->share * done, "%s",
		                   watch->mesh);
	m->late = m->late || (watch->deadline_s > 0 && sw_now_s() > watch->deadline_s);
	return m->late;
}

/* ---- decisions -------------------------------------------------------------------------- */

static void set_producer(sw_model *m, sw_id value, uint32_t decision, uint32_t result)
{
	m->index.producer[value] = decision;
	m->index.result_of[value] = result;
}

/* Return the node of a tie key: that of an earlier member, or a new one. */
static int32_t node_of_tie(sw_model *m, const sw_tie_key *tie)
{
	uint32_t fresh = (uint32_t)m->index.nodes.len;
	uint32_t number = tie->kind == SW_TIE_NONE
	                          ? fresh
	                          : sw_map_intern(&m->index.node_of_tie, tie, sizeof(*tie), fresh);
	if (number == fresh)
		sw_vec_push(&m->index.nodes, ((sw_model_node){.table = tie->table}));
	return (int32_t)number;
}

/* Look a strategy table up by equivalence class before it is looked up by options. */
static int32_t table_of_decision(sw_model *m, sw_decision_kind kind, uint32_t index)
{
	uint32_t class = sw_decision_equivalence(m->memo, kind, index);
	while (m->index.table_of_class.len <= class)
		sw_vec_push(&m->index.table_of_class, -1);
	if (m->index.table_of_class.data[class] < 0)
		m->index.table_of_class.data[class] =
			sw_strategy_table_of(m->memo, m->mesh, kind, index);
	return m->index.table_of_class.data[class];
}

static uint32_t add_decision(sw_model *m, sw_decision_kind kind, uint32_t index)
{
	const sw_analysis *analysis = m->analysis;
	sw_decision decision = {
		.kind = (uint8_t)kind, .index = index, .table = table_of_decision(m, kind, index)};
	sw_tie_key tie = sw_tie_of_decision(analysis, m->mesh, &decision);
	decision.node = node_of_tie(m, &tie);
	m->index.nodes.data[decision.node].trips +=
		kind == SW_DECISION_OP ? analysis->roles.trips[index] : 1;
	sw_vec_push(&m->decisions, decision);
	return (uint32_t)m->decisions.len - 1;
}

/* A state's output is one node with the input that it replaces, for they have one layout. */
static void add_output(sw_model *m, uint32_t index)
{
	const sw_roles *roles = &m->analysis->roles;
	uint32_t decision = add_decision(m, SW_DECISION_OUTPUT, index);
	if (roles->output_input[index] < 0)
		return;
	const sw_decision *input =
		&m->decisions.data[m->index.producer[roles->inputs[roles->output_input[index]]]];
	assert(input->table == m->decisions.data[decision].table);
	m->decisions.data[decision].node = input->node;
	/* Drop the output's own node, which is the last. */
	m->index.nodes.len--;
}

/* The part of the time of a model and its solution that listing the decisions takes, and that
 * adding the edges takes; it moves the progress bar only. */
#define DECISIONS_SHARE 0.3

static void add_decisions(sw_model *m)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_program *program = roles->program;
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		set_producer(m, roles->inputs[i], add_decision(m, SW_DECISION_INPUT, i), 0);
	for (uint32_t i = 0; i < roles->boundaries.len; i++) {
		uint32_t decision = add_decision(m, SW_DECISION_BOUNDARY, i);
		for (uint32_t k = 0; k < roles->boundaries.data[i].n_values; k++)
			set_producer(m, roles->boundaries.data[i].values[k], decision, 0);
	}
	for (uint32_t id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (deadline_passed(m, DECISIONS_SHARE * id / (double)program->ops.len))
			return;
		if (!roles->planned[op->computation] || op->opcode == SW_OP_PARAMETER ||
		    sw_is_region(op))
			continue;
		uint32_t decision = add_decision(m, SW_DECISION_OP, id);
		for (uint32_t k = 0; k < op->n_results; k++)
			set_producer(m, op->first_result + k, decision, k);
	}
	for (uint32_t i = 0; i < sw_entry(program)->results.len; i++)
		add_output(m, i);
}

/* Give each node the kernel time of its decisions; materialised layouts cost nothing. */
static void add_nodes(sw_model *m)
{
	for (size_t i = 0; i < m->index.nodes.len; i++) {
		const sw_strategy_table *table =
			&m->memo->tables.data[m->index.nodes.data[i].table];
		int64_t *cost = sw_alloc(sizeof(int64_t) * (size_t)table->n);
		for (int32_t k = 0; k < table->n; k++)
			cost[k] =
				table->seconds
					? to_cost(table->seconds[k] * m->index.nodes.data[i].trips)
					: 0;
		sw_problem_add_node(&m->problem, table->n, cost);
		free(cost);
	}
}

/* ---- readers ---------------------------------------------------------------------------- */

/* Call `visit` for every use of a value by a decision. */
typedef void visit_reader(readers *r, sw_id value, value_reader use);
static void visit_readers(const sw_model *m, readers *r, visit_reader *visit)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_program *program = roles->program;
	for (uint32_t s = 0; s < m->decisions.len; s++) {
		const sw_decision *decision = &m->decisions.data[s];
		if (decision->kind == SW_DECISION_OP) {
			const sw_op *op = sw_op_at(program, decision->index);
			for (uint32_t k = 0; k < op->n_operands; k++)
				visit(r, op->operands[k],
				      (value_reader){s, k, roles->trips[decision->index],
				                     roles->point[decision->index]});
		} else if (decision->kind == SW_DECISION_BOUNDARY) {
			const sw_boundary *boundary = &roles->boundaries.data[decision->index];
			for (uint32_t k = 0; k < boundary->n_reads; k++)
				visit(r, boundary->reads[k].value,
				      (value_reader){s, 0, boundary->reads[k].trips,
				                     boundary->reads[k].point});
		} else if (decision->kind == SW_DECISION_OUTPUT) {
			visit(r, sw_entry(program)->results.data[decision->index],
			      (value_reader){s, 0, 1, roles->n_points - 1});
		}
	}
}

static void count_reader(readers *r, sw_id value, value_reader use)
{
	(void)use;
	r->start[value + 2]++;
}

static void list_reader(readers *r, sw_id value, value_reader use)
{
	r->list[r->start[value + 1]++] = use;
}

static void readers_init(readers *r, const sw_model *m)
{
	size_t n = m->analysis->program->values.len;
	r->start = sw_alloc(sizeof(uint32_t) * (n + 2));
	visit_readers(m, r, count_reader);
	for (size_t v = 0; v < n; v++)
		r->start[v + 2] += r->start[v + 1];
	r->list = sw_alloc(sizeof(value_reader) * (r->start[n + 1] + 1));
	visit_readers(m, r, list_reader);
}

static void readers_clear(readers *r)
{
	free(r->start);
	free(r->list);
}

/* ---- layouts of one end of an edge ------------------------------------------------------ */

/* One end of an edge: an operand or a result of the decisions of a strategy table. */
typedef struct edge_end {
	int32_t table;
	uint32_t which;
	bool out;
} edge_end;

/* A layout number per candidate: entry i is list[i * step]. */
typedef struct layout_list {
	const uint32_t *list;
	uint32_t step;
	int32_t n;
} layout_list;

static layout_list layouts_of(const sw_model *m, edge_end e)
{
	const sw_strategy_table *p = sw_model_strategy_table(m, e.table);
	if (e.out)
		return (layout_list){p->out + e.which, p->n_out, p->n};
	return (layout_list){p->in + e.which, p->n_in, p->n};
}

static edge_end produced_by(const sw_model *m, sw_id value)
{
	return (edge_end){m->decisions.data[m->index.producer[value]].table,
	                  m->index.result_of[value], true};
}

static edge_end read_by(const sw_model *m, const value_reader *use)
{
	return (edge_end){m->decisions.data[use->decision].table, use->operand, false};
}

static layout_list produced_layouts(const sw_model *m, sw_id value)
{
	return layouts_of(m, produced_by(m, value));
}

/* Return the numbers of the layouts in the path cache, allocated. */
static uint32_t *number_layouts(const sw_model *m, layout_list l)
{
	const sw_layout *layouts = m->memo->layouts.items.data;
	uint32_t *numbers = sw_alloc(sizeof(*numbers) * ((size_t)l.n + 1));
	for (int32_t i = 0; i < l.n; i++)
		numbers[i] = sw_path_cache_layout(m->paths, &layouts[l.list[(uint32_t)i * l.step]]);
	return numbers;
}

/* Announce the layouts of this end to the path cache. Only those of this mesh are announced, so
 * that the cost of a conversion does not depend on the meshes before it. */
static void expect_end(sw_model *m, uint32_t shape, edge_end e)
{
	const uint32_t key[] = {shape, (uint32_t)e.table, e.which, e.out};
	if (sw_map_put(&m->index.expected, key, sizeof(key), 0) != SW_ABSENT)
		return;
	layout_list l = layouts_of(m, e);
	uint32_t *numbers = number_layouts(m, l);
	for (int32_t i = 0; i < l.n; i++)
		sw_path_cache_expect(m->paths, shape, numbers[i]);
	free(numbers);
}

static void expect_layouts(sw_model *m, const readers *r)
{
	const sw_program *program = m->analysis->program;
	sw_path_cache_begin(m->paths);
	for (sw_id v = 0; v < program->values.len; v++) {
		if (r->start[v] == r->start[v + 1])
			continue;
		uint32_t shape = sw_path_cache_shape(m->paths, sw_value_shape(program, v));
		expect_end(m, shape, produced_by(m, v));
		for (uint32_t i = r->start[v]; i < r->start[v + 1]; i++)
			expect_end(m, shape, read_by(m, &r->list[i]));
	}
}

/* ---- tables ----------------------------------------------------------------------------- */

/* Seconds of each conversion from a layout of one list to a layout of another. */
typedef struct sw_conversion {
	uint32_t shape; /* number in the path cache */
	layout_list from, to;
	double *seconds; /* [from][to]; NULL: not computed yet */
} sw_conversion;

static void key_list(sw_text *key, layout_list l)
{
	sw_text_add_n(key, (const char *)&l.n, sizeof(l.n));
	for (int32_t i = 0; i < l.n; i++)
		sw_text_add_n(key, (const char *)&l.list[(uint32_t)i * l.step], sizeof(uint32_t));
}

/* Return the number of the conversion between these lists, which several pairs of strategy tables
 * may share. */
static uint32_t find_conversion(sw_model *m, uint32_t shape, layout_list from, layout_list to)
{
	sw_text key = {0};
	sw_text_add_n(&key, (const char *)&shape, sizeof(shape));
	key_list(&key, from);
	key_list(&key, to);
	uint32_t fresh = (uint32_t)m->index.conversions.len;
	uint32_t number = sw_map_intern(&m->index.conversion_of_lists, key.data, key.len, fresh);
	if (number == fresh)
		sw_vec_push(&m->index.conversions,
		            ((sw_conversion){.shape = shape, .from = from, .to = to}));
	sw_text_clear(&key);
	return number;
}

static uint32_t conversion_between(sw_model *m, sw_shape shape, edge_end from, edge_end to)
{
	uint32_t number = sw_path_cache_shape(m->paths, shape);
	const uint32_t key[] = {number,   (uint32_t)from.table, from.which,
	                        from.out, (uint32_t)to.table,   to.which,
	                        to.out};
	uint32_t conversion = sw_map_get(&m->index.conversion_of_ends, key, sizeof(key));
	if (conversion == SW_ABSENT) {
		conversion = find_conversion(m, number, layouts_of(m, from), layouts_of(m, to));
		sw_map_put(&m->index.conversion_of_ends, key, sizeof(key), conversion);
	}
	return conversion;
}

static void time_conversion(sw_model *m, sw_conversion *conversion)
{
	uint32_t *rows = number_layouts(m, conversion->from),
		 *columns = number_layouts(m, conversion->to);
	conversion->seconds =
		SW_NEW_N(&m->arena, double, (size_t)conversion->from.n *(size_t)conversion->to.n);
	sw_path_cache_seconds(m->paths, conversion->shape, rows, conversion->from.n, columns,
	                      conversion->to.n, conversion->seconds);
	free(rows);
	free(columns);
}

/* Round windows down to powers of two, so that there are few cost tables. */
static double round_window(double seconds)
{
	int exponent;
	return seconds > 0 && frexp(seconds, &exponent) > 0 ? ldexp(0.5, exponent) : 0;
}

/* Does the conversion make partial sums (P) on an atom where the value was not partial? */
static bool makes_term(const sw_model *m, uint32_t from, uint32_t to)
{
	const sw_layout *a = &m->memo->layouts.items.data[from],
			*b = &m->memo->layouts.items.data[to];
	for (int32_t i = 0; b->monoid != SW_MONOID_NONE && i < b->n; i++)
		if (b->state[i].kind == SW_STATE_P && a->state[i].kind != SW_STATE_P)
			return true;
	return false;
}

/* A path includes a kernel or two around its collectives: one kernel overhead of it is never
 * hidden. */
static double movement_cost_s(const sw_model *m, sw_movement movement, double path_s)
{
	const sw_analysis *analysis = m->analysis;
	double collectives_s = fmax(path_s - analysis->cluster->device.kernel_overhead_s, 0);
	double hidden_s = fmin(movement.trips * collectives_s, movement.window_s);
	return isfinite(path_s) ? movement.count * (movement.trips * path_s -
	                                            (1 - analysis->overlap_weight) * hidden_s)
	                        : path_s;
}

static int32_t cost_table_of(sw_model *m, uint32_t number, sw_movement movement)
{
	struct {
		sw_movement movement;
		uint64_t conversion;
	} key = {movement, number};
	uint32_t table = sw_map_get(&m->index.cost_tables, &key, sizeof(key));
	if (table != SW_ABSENT)
		return (int32_t)table;
	sw_conversion *conversion = &m->index.conversions.data[number];
	if (!conversion->seconds)
		time_conversion(m, conversion);
	size_t n = (size_t)conversion->from.n * (size_t)conversion->to.n;
	int64_t *cost = sw_alloc(sizeof(int64_t) * n);
	for (size_t i = 0; i < n; i++) {
		uint32_t from = conversion->from
		                        .list[i / (size_t)conversion->to.n * conversion->from.step],
			 to = conversion->to
		                      .list[i % (size_t)conversion->to.n * conversion->to.step];
		double term_s = movement.term_s > 0 && makes_term(m, from, to)
		                        ? movement.count * movement.trips * movement.term_s
		                        : 0;
		cost[i] = to_cost(movement_cost_s(m, movement, conversion->seconds[i]) + term_s);
	}
	table = (uint32_t)sw_problem_add_table(&m->problem, conversion->from.n, conversion->to.n,
	                                       cost);
	sw_map_put(&m->index.cost_tables, &key, sizeof(key), table);
	free(cost);
	return (int32_t)table;
}

/* ---- materialised layouts and edges ----------------------------------------------------- */

static void add_distinct(uint32_t *list, int32_t *n, layout_list from)
{
	for (int32_t i = 0; i < from.n; i++) {
		uint32_t id = from.list[(uint32_t)i * from.step];
		int32_t k = 0;
		while (k < *n && list[k] != id)
			k++;
		if (k == *n)
			list[(*n)++] = id;
	}
}

/* A materialised layout is any in which the value is produced or read. */
static int32_t make_materialised_table(sw_model *m, const edge_end *ends, size_t n_ends)
{
	size_t most = 0;
	for (size_t i = 0; i < n_ends; i++)
		most += (size_t)layouts_of(m, ends[i]).n;
	uint32_t *list = sw_alloc(sizeof(uint32_t) * most);
	int32_t n = 0;
	for (size_t i = 0; i < n_ends; i++)
		add_distinct(list, &n, layouts_of(m, ends[i]));
	sw_memo *memo = m->memo;
	sw_text key = {0};
	sw_text_add(&key, "h");
	key_list(&key, (layout_list){list, 1, n});
	uint32_t next = (uint32_t)memo->tables.len;
	uint32_t number = sw_map_intern(&memo->table_index, key.data, key.len, next);
	if (number == next) {
		const uint32_t *copy =
			sw_arena_copy(&memo->arena, list, sizeof(uint32_t) * (size_t)n);
		sw_strategy_table table = {.n = n, .n_in = 1, .n_out = 1, .in = copy, .out = copy};
		sw_vec_push(&memo->tables, table);
	}
	sw_text_clear(&key);
	free(list);
	return (int32_t)number;
}

static int32_t materialised_table(sw_model *m, sw_id value, const value_reader *uses,
                                  uint32_t n_uses)
{
	edge_end *ends = sw_alloc(sizeof(*ends) * (n_uses + 1));
	ends[0] = produced_by(m, value);
	for (uint32_t i = 0; i < n_uses; i++)
		ends[i + 1] = read_by(m, &uses[i]);
	sw_text key = {0};
	for (uint32_t i = 0; i <= n_uses; i++) {
		const uint32_t numbers[] = {(uint32_t)ends[i].table, ends[i].which, ends[i].out};
		sw_text_add_n(&key, (const char *)numbers, sizeof(numbers));
	}
	uint32_t table = sw_map_get(&m->index.materialised_tables, key.data, key.len);
	if (table == SW_ABSENT) {
		table = (uint32_t)make_materialised_table(m, ends, n_uses + 1);
		sw_map_put(&m->index.materialised_tables, key.data, key.len, table);
	}
	sw_text_clear(&key);
	free(ends);
	return (int32_t)table;
}

/* Return the op before which a reader needs a value of this computation; SW_NO_ID: at its end. */
static sw_id reading_op(const sw_model *m, int32_t computation, const value_reader *use)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_decision *decision = &m->decisions.data[use->decision];
	sw_id op = decision->kind == SW_DECISION_OP ? decision->index
	           : decision->kind == SW_DECISION_BOUNDARY
	                   ? roles->boundaries.data[decision->index].region
	                   : SW_NO_ID;
	bool here = op != SW_NO_ID && sw_op_at(roles->program, op)->computation == computation;
	return here ? op : SW_NO_ID;
}

/* Constants are mostly the neutral element of the sum that they are added to. */
static bool is_constant(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	while (op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_RESHAPE)
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	return op->opcode == SW_OP_CONSTANT;
}

/* Describe the conversion of a value for this reader; use NULL: for all readers. */
static sw_movement move_value(const sw_model *m, sw_id value, double trips, const value_reader *use)
{
	const sw_analysis *analysis = m->analysis;
	sw_id from = analysis->program->values.data[value].op;
	sw_id to = use ? reading_op(m, sw_op_at(analysis->program, from)->computation, use) : from;
	double window_s = analysis->overlap ? sw_overlap_window_s(analysis->overlap, from, to) : 0;
	double term_s = is_constant(analysis->program, value)
	                        ? 0
	                        : analysis->cluster->device.kernel_overhead_s;
	return (sw_movement){trips, round_window(window_s), 1, term_s};
}

/* Merge edges between the same nodes that have the same conversion and equal movements. */
static void add_edge(sw_model *m, int32_t from, int32_t to, sw_shape shape, sw_movement movement,
                     edge_end a, edge_end b)
{
	struct {
		uint64_t from, to, conversion;
		sw_movement movement;
	} key = {(uint64_t)from, (uint64_t)to, conversion_between(m, shape, a, b), movement};
	uint32_t fresh = (uint32_t)m->index.edges.len;
	uint32_t number = sw_map_intern(&m->index.edge_index, &key, sizeof(key), fresh);
	if (number == fresh)
		sw_vec_push(&m->index.edges,
		            ((sw_model_edge){from, to, (uint32_t)key.conversion, movement}));
	else
		m->index.edges.data[number].movement.count++;
}

static void add_materialised(sw_model *m, sw_id value, const value_reader *uses, uint32_t n_uses,
                             double trips)
{
	sw_shape shape = sw_value_shape(m->analysis->program, value);
	sw_materialised materialised = {.value = value,
	                                .table = materialised_table(m, value, uses, n_uses)};
	sw_tie_key tie = sw_tie_of_materialised(m->analysis, m->mesh, &materialised);
	materialised.node = node_of_tie(m, &tie);
	edge_end in = {materialised.table, 0, false}, out = {materialised.table, 0, true};
	add_edge(m, m->decisions.data[m->index.producer[value]].node, materialised.node, shape,
	         move_value(m, value, trips, NULL), produced_by(m, value), in);
	for (uint32_t i = 0; i < n_uses; i++)
		add_edge(m, materialised.node, m->decisions.data[uses[i].decision].node, shape,
		         move_value(m, value, uses[i].trips, &uses[i]), out, read_by(m, &uses[i]));
	m->index.materialised_of[value] = (uint32_t)m->materialised.len;
	sw_vec_push(&m->materialised, materialised);
}

/* Is it a choice of its own in which layout the value is kept? It is where several ops read it; and
 * where it may be partial and its reader is not the next op, since it would be reduced while it
 * waits. */
static bool wants_materialised(const sw_model *m, sw_id value, const value_reader *uses,
                               uint32_t n_uses)
{
	const sw_analysis *analysis = m->analysis;
	bool waits =
		uses->point > analysis->roles.point[analysis->program->values.data[value].op] + 1;
	return n_uses > 1 || (waits && analysis->classes.partial[value] != 0);
}

static void find_edges(sw_model *m, const readers *r)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_program *program = m->analysis->program;
	for (sw_id v = 0; v < program->values.len; v++) {
		uint32_t n = r->start[v + 1] - r->start[v];
		const value_reader *uses = r->list + r->start[v];
		if (n == 0)
			continue;
		if (!wants_materialised(m, v, uses, n))
			add_edge(m, m->decisions.data[m->index.producer[v]].node,
			         m->decisions.data[uses->decision].node, sw_value_shape(program, v),
			         move_value(m, v, uses->trips, uses), produced_by(m, v),
			         read_by(m, uses));
		else
			add_materialised(m, v, uses, n, roles->trips[program->values.data[v].op]);
	}
}

static void add_edges(sw_model *m)
{
	for (size_t i = 0; i < m->index.edges.len; i++) {
		const sw_model_edge *edge = &m->index.edges.data[i];
		if (deadline_passed(m,
		                    DECISIONS_SHARE * (1 + (double)i / (double)m->index.edges.len)))
			return;
		sw_problem_add_edge(&m->problem, edge->from, edge->to,
		                    cost_table_of(m, edge->conversion, edge->movement));
	}
}

/* ---- memory ----------------------------------------------------------------------------- */

/* Add a span of the bytes of a value per layout. A value that may alias another buffer counts only
 * the bytes beyond those of its smallest layout. */
static void add_span(sw_model *m, int32_t node, sw_id value, layout_list layouts, int32_t begin,
                     int32_t end)
{
	sw_shape shape = sw_value_shape(m->analysis->program, value);
	int64_t *usage = sw_alloc(sizeof(int64_t) * (size_t)layouts.n), least = INT64_MAX;
	for (int32_t i = 0; i < layouts.n; i++) {
		usage[i] = sw_layout_local_bytes(
			&m->analysis->cluster->atoms, shape,
			&m->memo->layouts.items.data[layouts.list[(uint32_t)i * layouts.step]]);
		least = SW_MIN(least, usage[i]);
	}
	bool shared = m->analysis->roles.alias_of[value] != SW_NO_ID;
	for (int32_t i = 0; shared && i < layouts.n; i++)
		usage[i] -= least;
	sw_problem_add_span(&m->problem, node, begin, end, usage);
	free(usage);
}

/* Return the point at which a value becomes live: 0 for entry inputs, which are there from the
 * start. */
static int32_t birth_point(const sw_roles *roles, sw_id value)
{
	const sw_program *program = roles->program;
	sw_id id = program->values.data[value].op;
	const sw_op *op = sw_op_at(program, id);
	return op->opcode == SW_OP_PARAMETER && op->computation == program->entry
	               ? 0
	               : roles->point[id];
}

/* Return the point at which a value is converted to its materialised layout: for results of ops
 * when they are produced, for inputs and values of boundaries when they are first read. */
static int32_t conversion_point(const sw_model *m, sw_id value, const readers *r, int32_t begin,
                                int32_t end)
{
	int32_t first = end;
	if (m->decisions.data[m->index.producer[value]].kind == SW_DECISION_OP)
		return begin;
	for (uint32_t i = r->start[value]; i < r->start[value + 1]; i++)
		first = SW_MIN(first, SW_MAX(r->list[i].point, begin));
	return first;
}

/* Add spans for the memory that local ops need while they run. */
static void add_temporary_spans(sw_model *m)
{
	const sw_roles *roles = &m->analysis->roles;
	for (size_t s = 0; s < m->decisions.len; s++) {
		const sw_decision *decision = &m->decisions.data[s];
		const sw_strategy_table *table = &m->memo->tables.data[decision->table];
		int64_t most = 0;
		for (int32_t i = 0; table->temporary_bytes && i < table->n; i++)
			most = SW_MAX(most, table->temporary_bytes[i]);
		if ((double)most > m->analysis->limits->min_span_bytes)
			sw_problem_add_span(
				&m->problem, decision->node, roles->point[decision->index],
				roles->point[decision->index] + 1, table->temporary_bytes);
	}
}

static void add_spans(sw_model *m, const readers *r)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_program *program = m->analysis->program;
	for (sw_id v = 0; v < program->values.len; v++) {
		if (m->index.producer[v] == SW_NO_ID || roles->in_place[v] ||
		    (double)sw_shape_bytes(sw_value_shape(program, v)) <=
		            m->analysis->limits->min_span_bytes)
			continue;
		int32_t begin = birth_point(roles, v), end = roles->last_use[v];
		int32_t first = conversion_point(m, v, r, begin, end);
		bool materialised = m->index.materialised_of[v] != SW_NO_ID;
		add_span(m, m->decisions.data[m->index.producer[v]].node, v, produced_layouts(m, v),
		         begin, materialised ? SW_MIN(first + 1, end) : end);
		if (!materialised)
			continue;
		const sw_materialised *kept = &m->materialised.data[m->index.materialised_of[v]];
		add_span(m, kept->node, v, layouts_of(m, (edge_end){kept->table, 0, false}),
		         SW_MIN(first + 1, end), end);
	}
}

/* Could the program exceed the capacity even if every value were whole and lived forever? */
static bool memory_matters(const sw_program *program, int64_t capacity)
{
	double total = 0;
	for (size_t v = 0; v < program->values.len; v++)
		total += 2 * (double)sw_shape_bytes(program->values.data[v].shape);
	return total > (double)capacity;
}

/* ---- the whole -------------------------------------------------------------------------- */

const sw_strategy_table *sw_model_strategy_table(const sw_model *m, int32_t number)
{
	return m->tables ? &m->tables[number] : &m->memo->tables.data[number];
}

/* Copy the tables and layouts into the model: the memo's arrays may move when other models are
 * built. */
static void keep_tables(sw_model *m)
{
	const sw_memo *memo = m->memo;
	m->tables = sw_arena_copy(&m->arena, memo->tables.data,
	                          sizeof(sw_strategy_table) * memo->tables.len);
	m->n_layouts = memo->layouts.items.len;
	m->layouts = sw_arena_copy(&m->arena, memo->layouts.items.data,
	                           sizeof(sw_layout) * m->n_layouts);
}

bool sw_model_begin(sw_model *m, sw_memo *memo, const sw_watch *watch, const sw_mesh *mesh)
{
	*m = (sw_model){.analysis = memo->analysis, .memo = memo, .mesh = mesh};
	if (watch)
		m->watch = *watch;
	sw_arena_init(&m->arena);
	sw_problem_init(&m->problem);
	size_t n = memo->analysis->program->values.len;
	m->index.producer = SW_NEW_N(&m->arena, uint32_t, n + 1);
	m->index.result_of = SW_NEW_N(&m->arena, uint32_t, n + 1);
	m->index.materialised_of = SW_NEW_N(&m->arena, uint32_t, n + 1);
	for (size_t v = 0; v < n; v++)
		m->index.producer[v] = m->index.materialised_of[v] = SW_NO_ID;
	add_decisions(m);
	return !m->late;
}

double sw_model_kernels_s(const sw_model *m)
{
	double sum = 0;
	for (size_t i = 0; i < m->index.nodes.len; i++) {
		const sw_strategy_table *table =
			sw_model_strategy_table(m, m->index.nodes.data[i].table);
		double cheapest = table->seconds ? table->seconds[0] : 0;
		for (int32_t k = 1; table->seconds && k < table->n; k++)
			cheapest = fmin(cheapest, table->seconds[k]);
		sum += cheapest * m->index.nodes.data[i].trips;
	}
	return sum;
}

bool sw_model_finish(sw_model *m, int64_t memory_bytes)
{
	readers r;
	m->paths = sw_path_store_get(m->memo->paths, m->mesh->axes, m->mesh->n_axes);
	m->problem.capacity = memory_bytes;
	readers_init(&r, m);
	expect_layouts(m, &r);
	while (!deadline_passed(m, DECISIONS_SHARE) &&
	       sw_path_cache_find(m->paths, m->memo->threads))
		;
	find_edges(m, &r);
	add_nodes(m);
	add_edges(m);
	if (!m->late && memory_matters(m->analysis->program, memory_bytes)) {
		add_spans(m, &r);
		add_temporary_spans(m);
	}
	readers_clear(&r);
	keep_tables(m);
	return !m->late;
}

bool sw_model_init(sw_model *m, sw_memo *memo, const sw_mesh *mesh, int64_t memory_bytes)
{
	return sw_model_begin(m, memo, NULL, mesh) && sw_model_finish(m, memory_bytes);
}

void sw_model_clear(sw_model *m)
{
	sw_problem_clear(&m->problem);
	sw_vec_clear(&m->index.table_of_class);
	sw_vec_clear(&m->decisions);
	sw_vec_clear(&m->materialised);
	sw_vec_clear(&m->index.nodes);
	sw_vec_clear(&m->index.edges);
	sw_vec_clear(&m->index.conversions);
	sw_map_clear(&m->index.node_of_tie);
	sw_map_clear(&m->index.expected);
	sw_map_clear(&m->index.materialised_tables);
	sw_map_clear(&m->index.conversion_of_lists);
	sw_map_clear(&m->index.conversion_of_ends);
	sw_map_clear(&m->index.edge_index);
	sw_map_clear(&m->index.cost_tables);
	sw_arena_clear(&m->arena);
}

sw_problem sw_model_take_problem(sw_model *m)
{
	sw_problem problem = m->problem; /* the problem borrows nothing */
	sw_problem_init(&m->problem);
	sw_model_clear(m);
	return problem;
}

void sw_model_apply(const sw_model *m, const int32_t *assignment, sw_plan *plan)
{
	const sw_analysis *analysis = m->analysis;
	const sw_program *program = analysis->program;
	sw_layouts_set(&plan->layouts, m->layouts, m->n_layouts);
	for (size_t i = 0; i < program->ops.len; i++)
		plan->strategies[i] = sw_strategy_none(&analysis->cluster->atoms);
	for (size_t s = 0; s < m->decisions.len; s++) {
		const sw_decision *decision = &m->decisions.data[s];
		const sw_strategy_table *table = sw_model_strategy_table(m, decision->table);
		int32_t choice = assignment[decision->node];
		if (decision->kind == SW_DECISION_OP)
			sw_candidate_strategy(&analysis->cluster->atoms, m->mesh,
			                      analysis->rules[decision->index],
			                      &table->candidates[choice],
			                      &plan->strategies[decision->index]);
		else if (decision->kind == SW_DECISION_OUTPUT)
			plan->outputs[decision->index] = table->in[choice];
	}
	for (size_t v = 0; v < program->values.len; v++) {
		plan->produced[v] = plan->materialised[v] = 0;
		if (m->index.producer[v] == SW_NO_ID)
			continue;
		layout_list made = produced_layouts(m, (sw_id)v);
		plan->produced[v] =
			made.list[(uint32_t)
		                          assignment[m->decisions.data[m->index.producer[v]].node] *
		                  made.step];
		plan->materialised[v] = plan->produced[v];
		if (m->index.materialised_of[v] != SW_NO_ID) {
			const sw_materialised *materialised =
				&m->materialised.data[m->index.materialised_of[v]];
			plan->materialised[v] = sw_model_strategy_table(m, materialised->table)
			                                ->in[assignment[materialised->node]];
		}
	}
	plan->n_axes = m->mesh->n_axes;
	memcpy(plan->axes, m->mesh->axes, sizeof(plan->axes));
}
