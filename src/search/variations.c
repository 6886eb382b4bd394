/*
 * Variations of the best plans, judged by their played steps.
 *
 * The model does not know which collectives a schedule merges and hides, so that of plans that take
 * nearly as long by the model one may be quicker by some per cent when it is played. A MOVE gives
 * one parameter another layout at rest, and lets the solver choose everything else anew. The moves
 * that cost least by the model are played for the incumbent's mesh and those that come near it;
 * from the best one on, other moves are made beside it, until none is quicker. So a pin of a
 * parameter hardly ever makes a step quicker.
 *
 * Where variables may have any way, the solver's own choice of ways may be far behind one way for all, of
 * which a schedule merges what is sent. So another descent begins in the quickest plan of one way for all:
 * a move gives one variable the way that it has in another such plan, and ends in MIXED ways.
 *
 * The work is bounded by `variation_ops`: large programs are not varied, small ones some dozen
 * times.
 */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Programs of which fewer plays are affordable are not varied: few moves among many parameters find
 * nothing, and listing them takes long. So many solutions for each play list the moves. */
enum { LEAST_PLAYS = 10, TRIES_PER_PLAY = 4 };

typedef struct rest_move {
	int32_t node, strategy; /* of a parameter at rest; in mixed ways: a variable, and whose way it gets */
	double model_s;
	int32_t *assignment; /* owned */
} rest_move;

/* What is varied of a mesh: its model, with the moves that were made. */
typedef struct varied_mesh {
	sw_mesh_search *m;
	bool mixes; /* each variable has the way of one of the uniform meshes */
	sw_mixed_ways mixed;
	size_t *way_of; /* [variables], owned: which */
	double model_s; /* of its best assignment */
	SW_VEC(rest_move) moves;
} varied_mesh;

typedef struct variation {
	sw_search *s;
	varied_mesh *meshes;
	size_t n;
	sw_mesh_search **uniform; /* the meshes of one way for all, whose decisions are listed */
	size_t n_uniform;
	int64_t plays; /* that are left */
} variation;

/* ---- solving ---------------------------------------------------------------------------- */

/* Find the best assignment by the model as it is now; the caller frees it. NULL: there is none. */
static int32_t *best_assignment(const sw_search *s, const sw_mesh_search *m, double *model_s)
{
	const sw_problem *problem = &m->work.model.problem;
	sw_solve_options how = {.work_limit = (int64_t)s->asked.limits->variation_work,
	                        .gap = s->asked.limits->solver_gap,
	                        .threads = 1,
	                        .quiet = true};
	sw_solution solution;
	sw_error ignored;
	int32_t *assignment = NULL;
	if (sw_solve_by(s->asked.options->method, problem, &how, &solution, &ignored) != SW_OK)
		return NULL;
	if (solution.answer == SW_SOLVED_OPTIMAL || solution.answer == SW_SOLVED_FEASIBLE) {
		assignment = sw_alloc(sizeof(int32_t) * (problem->nodes.len + 1));
		memcpy(assignment, solution.assignment, sizeof(int32_t) * problem->nodes.len);
		*model_s = (double)solution.cost * SW_COST_UNIT_S;
	}
	sw_solution_clear(&solution);
	return assignment;
}

/* Forbid all strategies of a node but one. The costs are in the model's arena. */
static void fix_node(sw_mesh_search *m, int32_t node, int32_t strategy)
{
	sw_problem_node *of = &m->work.model.problem.nodes.data[node];
	int64_t *cost = SW_NEW_N(&m->work.model.arena, int64_t, of->strategies);
	for (int32_t i = 0; i < of->strategies; i++)
		cost[i] = i == strategy ? of->cost[i] : SW_FORBIDDEN;
	of->cost = cost;
}

/* ---- moves ------------------------------------------------------------------------------ */

static void clear_moves(varied_mesh *x)
{
	for (size_t i = 0; i < x->moves.len; i++)
		free(x->moves.data[i].assignment);
	x->moves.len = 0;
}

/* Parameters that follow each other make equal moves. */
static bool is_listed(const varied_mesh *x, const int32_t *assignment)
{
	size_t bytes = sizeof(*assignment) * x->m->work.model.problem.nodes.len;
	for (size_t i = 0; i < x->moves.len; i++)
		if (memcmp(x->moves.data[i].assignment, assignment, bytes) == 0)
			return true;
	return false;
}

/* Make a move, after which the solver is free to choose what is not fixed. */
static void make_move(const variation *v, varied_mesh *x, int32_t node, int32_t strategy)
{
	if (!x->mixes) {
		fix_node(x->m, node, strategy);
		return;
	}
	x->way_of[node] = (size_t)strategy;
	sw_mixed_ways_give(&x->mixed, (uint32_t)node, &v->uniform[strategy]->work.model);
}

/* List a move, if a plan with it comes near; the model is as it was then. */
static void try_move(const variation *v, varied_mesh *x, int32_t node, int32_t strategy)
{
	rest_move move = {.node = node, .strategy = strategy};
	if (x->mixes) {
		int32_t way = (int32_t)x->way_of[node];
		make_move(v, x, node, strategy);
		move.assignment = best_assignment(v->s, x->m, &move.model_s);
		make_move(v, x, node, way);
	} else {
		sw_problem_node *of = &x->m->work.model.problem.nodes.data[node];
		const int64_t *before = of->cost;
		make_move(v, x, node, strategy);
		move.assignment = best_assignment(v->s, x->m, &move.model_s);
		of->cost = before;
	}
	if (move.assignment && move.model_s <= v->s->asked.limits->variation_near * x->model_s &&
	    !is_listed(x, move.assignment))
		sw_vec_push(&x->moves, move);
	else
		free(move.assignment);
}

/* List the moves of mixed ways: of each variable, the ways that it has not, of the largest first. */
static void list_ways(const variation *v, varied_mesh *x)
{
	const sw_variables *variables = &x->m->work.model.analysis->variables;
	int64_t tries = TRIES_PER_PLAY * v->plays;
	sw_keyed *largest = sw_alloc(sizeof(*largest) * (variables->n + 1));
	int32_t *best = best_assignment(v->s, x->m, &x->model_s);
	clear_moves(x);
	for (uint32_t i = 0; i < variables->n; i++)
		largest[i] = (sw_keyed){-(double)variables->list[i].bytes, i};
	qsort(largest, variables->n, sizeof(*largest), sw_compare_keyed);
	for (uint32_t k = 0; best && tries > 0 && k < variables->n; k++)
		for (size_t u = 0; u < v->n_uniform; u++)
			if (u != x->way_of[largest[k].number]) {
				try_move(v, x, (int32_t)largest[k].number, (int32_t)u);
				tries--;
			}
	free(largest);
	free(best);
}

/* List the moves of a mesh: of each parameter, a few other layouts at rest. */
static void list_moves(const variation *v, varied_mesh *x)
{
	if (x->mixes) {
		list_ways(v, x);
		return;
	}
	const sw_model *model = &x->m->work.model;
	int32_t *best = best_assignment(v->s, x->m, &x->model_s);
	bool *seen = sw_alloc(model->problem.nodes.len + 1);
	int64_t tries = TRIES_PER_PLAY * v->plays;
	clear_moves(x);
	for (size_t d = 0; best && tries > 0 && d < model->decisions.len; d++) {
		const sw_decision *decision = &model->decisions.data[d];
		const sw_problem_node *of = &model->problem.nodes.data[decision->node];
		int64_t left = (int64_t)v->s->asked.limits->variation_layouts;
		if (decision->kind != SW_DECISION_INPUT || seen[decision->node] ||
		    model->analysis->roles.input_role[decision->index] != SW_ROLE_PARAMETER)
			continue;
		seen[decision->node] = true;
		for (int32_t i = 0; i < of->strategies && left > 0; i++)
			if (i != best[decision->node] && of->cost[i] != SW_FORBIDDEN) {
				try_move(v, x, decision->node, i);
				left--;
				tries--;
			}
	}
	free(seen);
	free(best);
}

static int by_model(const void *a, const void *b)
{
	const rest_move *x = a, *y = b;
	if (x->model_s != y->model_s)
		return x->model_s < y->model_s ? -1 : 1;
	return x->node != y->node ? (x->node > y->node) - (x->node < y->node)
	                          : (x->strategy > y->strategy) - (x->strategy < y->strategy);
}

/* ---- playing ---------------------------------------------------------------------------- */

/* Cost the plan of a move. */
static sw_status cost_move(const variation *v, varied_mesh *x, size_t number)
{
	sw_mesh_search *m = x->m;
	const rest_move *move = &x->moves.data[number];
	m->found = (sw_found){.feasible = true,
	                      .model_s = move->model_s,
	                      .cached_s = move->model_s,
	                      .costed_bytes = INT64_MAX};
	m->move = number + 1;
	sw_model_apply(&m->work.model, move->assignment, m->sketch);
	sw_mesh_search_cost(m, v->s);
	if (m->status != SW_OK && v->s->err)
		*v->s->err = m->err;
	m->found.feasible = m->found.cost.peak_bytes <= v->s->wave->memory_bytes;
	return m->status;
}

/* Are the figures of two plans those of one move, of parameters that are alike? */
static bool is_alike(const sw_found *a, const sw_found *b)
{
	return a->model_s == b->model_s && a->cost.compute_s == b->cost.compute_s &&
	       a->cost.communication_s == b->cost.communication_s &&
	       a->cost.payload_bytes == b->cost.payload_bytes &&
	       a->cost.peak_bytes == b->cost.peak_bytes;
}

/* Enter the cheapest moves of a mesh as candidates, as many as its share of the plays. */
static sw_status enter_moves(variation *v, varied_mesh *x, int64_t share)
{
	sw_found last = {0};
	if (x->moves.len > 0)
		qsort(x->moves.data, x->moves.len, sizeof(*x->moves.data), by_model);
	for (size_t i = 0; i < x->moves.len && share > 0; i++) {
		SW_TRY(cost_move(v, x, i));
		if (is_alike(&x->m->found, &last))
			continue;
		last = x->m->found;
		sw_candidates_enter(v->s, x->m);
		share--;
		v->plays--;
	}
	return SW_OK;
}

/* Return the mesh of which a move became the incumbent; NULL: there is none. */
static varied_mesh *winner(const variation *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->s->incumbent.move > 0 && v->s->incumbent.entry == v->meshes[i].m->entry)
			return &v->meshes[i];
	return NULL;
}

static sw_status descend(variation *v)
{
	sw_search *s = v->s;
	sw_status status = SW_OK;
	for (size_t i = 0; i < v->n && status == SW_OK; i++) {
		list_moves(v, &v->meshes[i]);
		status = enter_moves(v, &v->meshes[i], v->plays / (int64_t)(v->n - i));
	}
	while (status == SW_OK && s->wave->candidates.len > 0) {
		double before_s = s->incumbent.cost.step_time_s;
		s->incumbent.move = 0;
		status = sw_candidates_select(s);
		varied_mesh *x = winner(v);
		double gain_s = before_s - s->incumbent.cost.step_time_s;
		if (status != SW_OK || !x || v->plays <= 0 ||
		    gain_s < s->asked.limits->variation_gain * before_s)
			break;
		const rest_move *made = &x->moves.data[s->incumbent.move - 1];
		make_move(v, x, made->node, made->strategy);
		list_moves(v, x);
		status = enter_moves(v, x, v->plays);
	}
	return status;
}

/* ---- the meshes ------------------------------------------------------------------------- */

static bool begin_mesh(variation *v, varied_mesh *x, sw_mesh_search *m)
{
	sw_search *s = v->s;
	const sw_watch watch = {.progress = &s->wave->progress, .mesh = m->mesh->name};
	*x = (varied_mesh){.m = m};
	m->attempt = m->first_attempt = 0;
	sw_mesh_search_list(m, s->wave, &watch);
	sw_mesh_search_build(m, s, &watch);
	m->sketch = sw_plan_sketch(sw_search_variant(s, s->wave->variant)->plan);
	return m->work.built;
}

/* Let each variable of the mesh begin in the way of the quickest of the uniform ones. */
static void begin_mixed(const variation *v, varied_mesh *x, size_t quickest)
{
	uint32_t n = x->m->work.model.analysis->variables.n;
	x->mixes = true;
	x->way_of = sw_alloc(sizeof(*x->way_of) * (n + 1));
	sw_mixed_ways_init(&x->mixed, &x->m->work.model);
	for (uint32_t i = 0; i < n; i++)
		make_move(v, x, (int32_t)i, (int32_t)quickest);
}

static void end_mesh(varied_mesh *x)
{
	clear_moves(x);
	free(x->way_of);
	sw_vec_clear(&x->moves);
	sw_plan_sketch_free(x->m->sketch);
	x->m->sketch = NULL;
}

/* May a variation of the plan on a line of the alternatives be much quicker than the incumbent? It
 * must come near it, and wait for collectives, which another choice may hide or merge better. */
static bool may_win(const sw_search *s, const sw_alternative *line)
{
	const sw_search_limits *limits = s->asked.limits;
	double best_s = s->incumbent.cost.step_time_s;
	return line->feasible && line->bound_s == 0 &&
	       line->step_time_s <= limits->variation_behind * best_s &&
	       line->compute_s < (1 - limits->variation_waits) * best_s;
}

/* Has each variable its own way on the mesh? */
static bool has_own_ways(const sw_mesh *mesh)
{
	return mesh->n_axes > 0 && mesh->use[0]->ways == SW_WAYS_OWN;
}

static const sw_alternative *line_of(const sw_search *s, const sw_mesh_search *m)
{
	return &sw_search_variant(s, s->wave->variant)->entries.data[m->entry].line;
}

/* Is the plan on a line that of a mesh which is varied already? */
static bool is_repeated(const variation *v, const sw_alternative *line)
{
	for (size_t i = 0; i < v->n; i++) {
		const sw_alternative *other = line_of(v->s, v->meshes[i].m);
		if (other->step_time_s == line->step_time_s && other->compute_s == line->compute_s)
			return true;
	}
	return false;
}

/* Do all variables have one way on the mesh, over the axes of the other one? */
static bool is_uniform(const sw_mesh *mesh, const sw_mesh *own)
{
	bool same = own && mesh != own && mesh->n_axes == own->n_axes && !mesh->copied && !mesh->search;
	for (int32_t i = 0; same && i < mesh->n_axes; i++)
		same = mesh->axes[i].atoms == own->axes[i].atoms;
	return same;
}

/* List the decisions of the meshes of one way for all; return the quickest of those that a variation
 * may make quicker than the incumbent, and that are quicker than the own ways; SIZE_MAX: there is none. */
static size_t list_uniform(variation *v, const sw_mesh_search *own)
{
	sw_search_wave *w = v->s->wave;
	size_t quickest = SIZE_MAX;
	double least_s = line_of(v->s, own)->feasible ? line_of(v->s, own)->step_time_s : INFINITY;
	for (size_t i = 0; i < w->queue.n; i++) {
		sw_mesh_search *m = &w->queue.storage[i];
		const sw_watch watch = {.progress = &w->progress, .mesh = m->mesh->name};
		const sw_alternative *line = line_of(v->s, m);
		if (!is_uniform(m->mesh, own->mesh))
			continue;
		if (!m->work.listed) {
			m->attempt = m->first_attempt = 0;
			sw_mesh_search_list(m, w, &watch);
		}
		if (may_win(v->s, line) && line->step_time_s < least_s) {
			least_s = line->step_time_s;
			quickest = v->n_uniform;
		}
		v->uniform[v->n_uniform++] = m;
	}
	return quickest;
}

static sw_status vary_wave(sw_search *s, int64_t plays)
{
	sw_search_wave *w = s->wave;
	variation v = {.s = s, .plays = plays};
	sw_mesh_search *own = NULL;
	v.meshes = sw_alloc(sizeof(*v.meshes) * (w->queue.n + 1));
	v.uniform = sw_alloc(sizeof(*v.uniform) * (w->queue.n + 1));
	for (size_t i = 0; i < w->queue.n; i++) {
		sw_mesh_search *m = &w->queue.storage[i];
		own = has_own_ways(m->mesh) ? m : own;
		if (!has_own_ways(m->mesh) && may_win(s, line_of(s, m)) && !is_repeated(&v, line_of(s, m)))
			v.n += begin_mesh(&v, &v.meshes[v.n], m);
	}
	if (own) {
		size_t quickest = list_uniform(&v, own);
		bool begins = quickest != SIZE_MAX || may_win(s, line_of(s, own));
		if (begins && begin_mesh(&v, &v.meshes[v.n], own) && ++v.n && quickest != SIZE_MAX)
			begin_mixed(&v, &v.meshes[v.n - 1], quickest);
	}
	sw_status status = v.n > 0 ? descend(&v) : SW_OK;
	for (size_t i = 0; i < v.n; i++)
		end_mesh(&v.meshes[i]);
	free(v.meshes);
	free(v.uniform);
	return status;
}

/* Want the meshes of which a variation may win; those with equal plans count once. Where variables may have
 * any way, want those of one way for all, too. */
static void want_near(const sw_search *s, sw_variant *v)
{
	const sw_mesh *own = NULL;
	bool any = false;
	sw_mesh_set_reset(&v->meshes.wanted, false);
	for (size_t i = 0; i < v->entries.len; i++) {
		const sw_mesh_entry *e = &v->entries.data[i];
		if (e->mesh.untied)
			continue;
		own = has_own_ways(&e->mesh) ? &e->mesh : own;
		any = any || may_win(s, &e->line);
		if (may_win(s, &e->line) && !sw_variant_wants_equal(v, i, e))
			sw_mesh_set_put(&v->meshes.wanted, e->number, true);
	}
	for (size_t i = 0; any && own && i < v->entries.len; i++) {
		const sw_mesh_entry *e = &v->entries.data[i];
		if (!e->mesh.untied && (&e->mesh == own || is_uniform(&e->mesh, own)))
			sw_mesh_set_put(&v->meshes.wanted, e->number, true);
	}
}

/* Does a file of ways leave some to the search? */
static bool leaves_choice(const sw_sync *sync)
{
	for (size_t i = 0; sync && i < sync->n; i++)
		if (sync->list[i].way.kind == SW_WAY_ANY)
			return true;
	return false;
}

static bool is_asked_for(const sw_search *s)
{
	const sw_plan_options *o = s->asked.options;
	bool choice = o->strategy.kind == SW_PLAN_AUTO || o->strategy.kind == SW_PLAN_WAYS ||
	              leaves_choice(o->sync);
	return sw_search_has_incumbent(s) && choice && !o->no_overlap &&
	       o->method == SW_METHOD_EXACT && isinf(s->end_s) && !s->lender;
}

sw_status sw_propose_variations(sw_search *s)
{
	s->proposals.step++;
	if (!is_asked_for(s))
		return SW_OK;
	size_t number = s->incumbent.variant;
	sw_variant *v = sw_search_variant(s, number);
	int64_t plays =
		(int64_t)(s->asked.limits->variation_ops / (double)v->plan->program->ops.len);
	want_near(s, v);
	if (plays < LEAST_PLAYS || !sw_mesh_set_has_any(&v->meshes.wanted))
		return SW_OK;
	sw_status status = sw_wave_open(s, number, SW_MEMORY_VARIED, sw_search_left_s(s));
	if (status == SW_OK)
		status = vary_wave(s, plays);
	sw_wave_free(s);
	return status;
}
