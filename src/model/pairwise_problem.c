/*
 * The pairwise problem of one mesh: a node per decision, and one per materialised layout, of each
 * value that has several readers or a distant one. Edges carry redistribution time, nodes kernel
 * time, spans the bytes that a value occupies from its op to its last reader. An assignment of the
 * problem becomes the decisions of a plan.
 */
#include "model/internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

int32_t sw_model_node_of(sw_model *m, const sw_tie_key *tie)
{
	uint32_t fresh = (uint32_t)m->index.nodes.len;
	uint32_t number = tie->kind == SW_TIE_NONE
	                          ? fresh
	                          : sw_map_intern(&m->index.node_of_tie, tie, sizeof(*tie), fresh);
	if (number == fresh)
		sw_vec_push(&m->index.nodes, ((sw_model_node){.table = tie->table}));
	return (int32_t)number;
}

/* Look a strategy table up by equivalence class before it is looked up by options. Decisions of one
 * class differ in what a plan has them do. */
static int32_t table_of_decision(sw_model *m, sw_decision_kind kind, uint32_t index)
{
	if (m->near)
		return sw_strategy_table_of(m->memo, m->mesh, m->near, kind, index);
	uint32_t class = sw_decision_equivalence(m->memo, kind, index);
	while (m->index.table_of_class.len <= class)
		sw_vec_push(&m->index.table_of_class, -1);
	if (m->index.table_of_class.data[class] < 0)
		m->index.table_of_class.data[class] =
			sw_strategy_table_of(m->memo, m->mesh, NULL, kind, index);
	return m->index.table_of_class.data[class];
}

static uint32_t add_decision(sw_model *m, sw_decision_kind kind, uint32_t index)
{
	sw_decision decision = {
		.kind = (uint8_t)kind, .index = index, .table = table_of_decision(m, kind, index)};
	sw_vec_push(&m->decisions, decision);
	return (uint32_t)m->decisions.len - 1;
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
		add_decision(m, SW_DECISION_OUTPUT, i);
}

/* Return the input that an output replaces; NULL: the decision is no such output. They have one
 * layout, so they are one node. */
static const sw_decision *replaced_input(const sw_model *m, const sw_decision *d)
{
	const sw_roles *roles = &m->analysis->roles;
	if (d->kind != SW_DECISION_OUTPUT || roles->output_input[d->index] < 0)
		return NULL;
	sw_id input = roles->inputs[roles->output_input[d->index]];
	return &m->decisions.data[m->index.producer[input]];
}

/* Return how often a decision's kernel runs in a step, each second at its price. */
static double priced_trips(const sw_analysis *a, const sw_decision *d)
{
	if (d->kind != SW_DECISION_OP)
		return 1;
	return a->roles.trips[d->index] * (a->prices ? sw_kernel_price(a, d->index) : 1);
}

/* Decide whether layers are tied, and give each decision its node. */
static void number_nodes(sw_model *m)
{
	double candidates = 0;
	for (size_t i = 0; i < m->decisions.len; i++)
		candidates += m->memo->tables.data[m->decisions.data[i].table].n;
	m->tied = sw_layers_are_tied(m->analysis, m->mesh, candidates);
	m->memo->tied = m->memo->tied || m->tied;
	for (size_t i = 0; i < m->decisions.len; i++) {
		sw_decision *d = &m->decisions.data[i];
		const sw_decision *input = replaced_input(m, d);
		sw_tie_key tie = sw_tie_of_decision(m, d);
		assert(!input || input->table == d->table);
		d->node = input ? input->node : sw_model_node_of(m, &tie);
		if (!input)
			m->index.nodes.data[d->node].trips += priced_trips(m->analysis, d);
	}
}

/* Give each node the kernel time of its decisions; materialised layouts cost nothing. */
static void add_nodes(sw_model *m)
{
	for (size_t i = 0; i < m->index.nodes.len; i++) {
		const sw_strategy_table *table =
			&m->memo->tables.data[m->index.nodes.data[i].table];
		int64_t *cost = sw_alloc(sizeof(int64_t) * (size_t)table->n);
		for (int32_t k = 0; k < table->n; k++)
			cost[k] = table->seconds
			                  ? sw_cost_from_seconds(table->seconds[k] *
			                                         m->index.nodes.data[i].trips)
			                  : 0;
		sw_problem_add_node(&m->problem, table->n, cost);
		free(cost);
	}
}

/* ---- materialised layouts and edges ----------------------------------------------------- */

static void add_edges(sw_model *m)
{
	for (size_t i = 0; i < m->index.edges.len; i++) {
		const sw_model_edge *edge = &m->index.edges.data[i];
		if (deadline_passed(m,
		                    DECISIONS_SHARE * (1 + (double)i / (double)m->index.edges.len)))
			return;
		sw_problem_add_edge(&m->problem, edge->from, edge->to,
		                    sw_conversion_cost_table(m, edge->conversion, edge->movement));
	}
}

/* ---- memory ----------------------------------------------------------------------------- */

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

static void set_overlap(sw_model *m)
{
	const sw_analysis *analysis = m->analysis;
	const sw_cluster *cluster = analysis->cluster;
	uint32_t atoms = sw_mesh_atoms(m->mesh);
	m->overlap_weight = analysis->overlap_weight;
	m->copies = 1;
	if (!m->mesh->copied || !analysis->overlap)
		return;
	m->copies = (double)cluster->n_devices / (double)sw_atoms_group_size(&cluster->atoms, atoms);
	m->overlap_weight = sw_overlap_weight(&analysis->roles, cluster, atoms, analysis->limits);
}

bool sw_model_begin(sw_model *m, sw_memo *memo, const sw_watch *watch, const sw_mesh *mesh,
                    const sw_near_plan *near)
{
	*m = (sw_model){.analysis = memo->analysis,
	                .memo = memo,
	                .mesh = mesh,
	                .near = sw_is_near_plan(near, mesh) ? near : NULL};
	set_overlap(m);
	if (watch)
		m->watch = *watch;
	sw_arena_init(&m->arena);
	sw_problem_init(&m->problem);
	size_t n = memo->analysis->program->values.len;
	m->index.producer = SW_NEW_N(&m->arena, uint32_t, n + 1);
	m->index.result_of = SW_NEW_N(&m->arena, uint32_t, n + 1);
	m->index.materialised_of = SW_NEW_N(&m->arena, uint32_t, n + 1);
	m->index.rest_of = SW_NEW_N(&m->arena, uint32_t, n + 1);
	for (size_t v = 0; v < n; v++)
		m->index.producer[v] = m->index.materialised_of[v] = m->index.rest_of[v] = SW_NO_ID;
	add_decisions(m);
	if (!m->late)
		number_nodes(m);
	return !m->late;
}

/* Mark the nodes of ops that repeat a number: their parts are as large as readers need. */
static bool *mark_made(const sw_model *m)
{
	const sw_program *program = m->analysis->program;
	bool *made = sw_alloc(m->index.nodes.len + 1);
	for (size_t i = 0; i < m->decisions.len; i++) {
		const sw_decision *d = &m->decisions.data[i];
		made[d->node] |= d->kind == SW_DECISION_OP &&
		                 sw_repeats_number(program, sw_op_at(program, d->index));
	}
	return made;
}

double sw_model_kernels_s(const sw_model *m)
{
	double sum = 0;
	bool *made = mark_made(m);
	for (size_t i = 0; i < m->index.nodes.len; i++) {
		const sw_strategy_table *table =
			sw_model_strategy_table(m, m->index.nodes.data[i].table);
		if (made[i])
			continue;
		double cheapest = table->seconds ? table->seconds[0] : 0;
		for (int32_t k = 1; table->seconds && k < table->n; k++)
			cheapest = fmin(cheapest, table->seconds[k]);
		sum += cheapest * m->index.nodes.data[i].trips;
	}
	free(made);
	return sum;
}

double sw_model_pairs(const sw_model *m)
{
	double pairs = 0;
	for (size_t i = 0; i < m->index.nodes.len; i++) {
		int32_t n = sw_model_strategy_table(m, m->index.nodes.data[i].table)->n;
		pairs += (double)n * n;
	}
	return pairs;
}

bool sw_model_finish(sw_model *m, int64_t memory_bytes)
{
	sw_readers r;
	m->paths = sw_path_store_get(m->memo->paths, m->mesh->axes, m->mesh->n_axes);
	m->problem.capacity = memory_bytes;
	sw_readers_init(&r, m);
	sw_readers_expect(m, &r);
	while (!deadline_passed(m, DECISIONS_SHARE) &&
	       sw_path_cache_find(m->paths, m->memo->threads))
		;
	sw_find_edges(m, &r);
	add_nodes(m);
	add_edges(m);
	if (!m->late && memory_matters(m->analysis->program, memory_bytes)) {
		sw_add_value_spans(m, &r);
		sw_add_workspace_spans(m);
	}
	sw_readers_clear(&r);
	keep_tables(m);
	return !m->late;
}

bool sw_model_init(sw_model *m, sw_memo *memo, const sw_mesh *mesh, int64_t memory_bytes)
{
	return sw_model_begin(m, memo, NULL, mesh, NULL) && sw_model_finish(m, memory_bytes);
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

/* Return the materialised layout of a value that is produced in this one. */
static uint32_t kept_layout(const sw_model *m, const int32_t *assignment, sw_id value,
                            uint32_t produced)
{
	bool is_partial = m->layouts[produced].monoid != SW_MONOID_NONE;
	uint32_t number = m->index.rest_of[value];
	if (number == SW_NO_ID || !is_partial)
		number = m->index.materialised_of[value];
	if (number == SW_NO_ID)
		return produced;
	const sw_materialised *kept = &m->materialised.data[number];
	return sw_model_strategy_table(m, kept->table)->in[assignment[kept->node]];
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
		sw_layout_list made = sw_layouts_at(m, sw_end_of_producer(m, (sw_id)v));
		plan->produced[v] =
			made.list[(uint32_t)
		                          assignment[m->decisions.data[m->index.producer[v]].node] *
		                  made.step];
		plan->materialised[v] = kept_layout(m, assignment, (sw_id)v, plan->produced[v]);
	}
	plan->n_axes = m->mesh->n_axes;
	memcpy(plan->axes, m->mesh->axes, sizeof(plan->axes));
	sw_place_owners(m, plan);
}
