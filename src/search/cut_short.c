/*
 * Within a time limit: a search of all meshes, and a race of searches of one fixed strategy each.
 *
 * A search of all meshes looks at every one of them before it refines any, by rewrites that save
 * memory, by padding or within memory. Where it is cut, some fixed strategy, planned alone, may come
 * further in the same time. So the search of all meshes has half of the time. If it was cut by then,
 * the fixed strategies are searched alone, beside each other, wave by wave, and the quickest plan of
 * all is the answer.
 *
 * The strategy whose step ought to be the shortest comes first, for half of the time that is left at
 * most, then the next one. Once all had theirs, the one that had least time comes next. One that was
 * searched to its end in the search of all meshes, or that can't be quicker than the best plan, comes
 * last.
 */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A fixed strategy, searched alone. */
typedef struct contender {
	sw_plan_options options;
	sw_search *search; /* owned; NULL: not begun */
	bool over;         /* there is nothing more to search */
	bool settled;      /* the search of all meshes played a plan of the program as asked */
	double expected_s; /* of its step, by the search of all meshes */
	double bound_s;    /* of its step, likewise */
	double spent_s;    /* on its search */
	double most_s;     /* to be spent before others come */
	sw_error err;
} contender;

typedef struct race {
	const sw_plan_request *request;
	sw_search *all; /* the search of all meshes */
	double end_s, last_s; /* of sw_now_s; last_s: if there is no plan before */
	SW_VEC(contender) list;
} race;

/* ---- what is known of a strategy -------------------------------------------------------- */

static bool is_settled(const sw_mesh_entry *e)
{
	return !e->timed_out && e->line.feasible && e->line.bound_s == 0;
}

/* Return the seconds of the quickest plan of a mesh that fits and was played, in whichever variant. */
static double played_s(const sw_search *s, size_t mesh)
{
	double best_s = INFINITY;
	for (size_t i = 0; i < s->variants.len; i++) {
		const sw_variant *v = &s->variants.data[i];
		for (size_t k = 0; k < v->entries.len; k++) {
			const sw_alternative *line = &v->entries.data[k].line;
			if (v->entries.data[k].number == mesh && line->feasible && line->bound_s == 0)
				best_s = fmin(best_s, line->step_time_s);
		}
	}
	return best_s;
}

/* Return the least bytes of a costed plan beyond those of its inputs; 0: none was costed. */
static int64_t activation_bytes(const sw_search *s)
{
	const sw_variant *v = sw_search_variant(s, 0);
	int64_t least = INT64_MAX;
	for (size_t i = 0; i < v->entries.len; i++) {
		const sw_mesh_entry *e = &v->entries.data[i];
		if (e->unconstrained.cost.peak_bytes > 0)
			least = SW_MIN(least, e->unconstrained.cost.peak_bytes - e->least_bytes);
	}
	return least == INT64_MAX ? 0 : SW_MAX(least, 0);
}

/* Computing all activations again takes the forward pass once more, a third of a step. */
#define FORWARD_SHARE (1.0 / 3)

/* Return the share of its peak by which the plan without a memory limit exceeds the memory, as costed,
 * or else as by the plans that were; 0: it fits. */
static double missing_share(const sw_search *s, const sw_mesh_entry *e)
{
	int64_t costed = e->unconstrained.cost.peak_bytes;
	double memory = (double)sw_search_memory(s),
	       peak = (double)(costed > 0 ? costed : e->least_bytes + activation_bytes(s));
	return peak > memory ? 1 - memory / peak : 0;
}

/* A plan that was played tells more than what may hide of one that was not, and that more than
 * kernels alone. */
static double expected_s(const sw_search *s, const sw_mesh_entry *e)
{
	double step_s = played_s(s, e->number);
	if (isfinite(step_s))
		return step_s;
	double least_s = e->unconstrained.hidden_s > 0 ? e->unconstrained.hidden_s : e->kernels_s;
	return least_s > 0 ? least_s * (1 + FORWARD_SHARE * missing_share(s, e)) : INFINITY;
}

static bool parse_strategy(const sw_mesh *mesh, sw_plan_strategy *strategy)
{
	char name[SW_NAME_BYTES];
	sw_error ignored;
	snprintf(name, sizeof(name), "%s", mesh->name);
	char *rewrites = strstr(name, ", ");
	if (rewrites)
		*rewrites = '\0';
	return sw_plan_strategy_parse(name, strategy, &ignored) == SW_OK;
}

static void enter(race *r, const sw_mesh_entry *e)
{
	double hidden_s = sw_cost_step_bound_s(&e->unconstrained.cached),
	       share = sw_tally_kernels_share(
		       r->all, &(sw_tally){.fused_share = r->all->fused_share});
	contender c = {.options = *r->request->options,
	               .settled = is_settled(e),
	               .expected_s = expected_s(r->all, e),
	               .bound_s = hidden_s > 0 ? hidden_s : share * e->kernels_s};
	c.options.least = NULL;
	c.options.least_share = NULL;
	if (parse_strategy(&e->mesh, &c.options.strategy))
		sw_vec_push(&r->list, c);
}

/* Enter the fixed strategies whose inputs alone do not exceed the memory. */
static void enter_all(race *r)
{
	const sw_variant *v = sw_search_variant(r->all, 0);
	for (size_t i = 0; i < v->entries.len; i++) {
		const sw_mesh_entry *e = &v->entries.data[i];
		if (!sw_mesh_is_free(&e->mesh) && !e->mesh.untied && !e->mesh.copied &&
		    e->least_bytes <= sw_search_memory(r->all))
			enter(r, e);
	}
}

/* ---- the race --------------------------------------------------------------------------- */

static double found_s(const contender *c)
{
	return c->search ? sw_search_best_s(c->search) : INFINITY;
}

static sw_search *leader_of(const race *r)
{
	sw_search *leader = r->all;
	for (size_t i = 0; i < r->list.len; i++)
		if (found_s(&r->list.data[i]) < sw_search_best_s(leader))
			leader = r->list.data[i].search;
	return leader;
}

static double end_of(const race *r)
{
	return sw_search_has_incumbent(leader_of(r)) ? r->end_s : r->last_s;
}

typedef enum turn { NEXT, LATER, LAST } turn;

static turn turn_of(const contender *c, double best_s)
{
	bool leads = isfinite(best_s) && found_s(c) <= best_s;
	if (!leads && (c->settled || c->bound_s >= best_s))
		return LAST;
	return c->search && c->spent_s >= c->most_s ? LATER : NEXT;
}

static bool comes_before(const contender *a, const contender *b, double best_s)
{
	turn a_turn = turn_of(a, best_s), b_turn = turn_of(b, best_s);
	if (a_turn != b_turn)
		return a_turn < b_turn;
	if (a_turn != NEXT && a->spent_s != b->spent_s)
		return a->spent_s < b->spent_s;
	return a->expected_s < b->expected_s;
}

/* Return the contender that is searched next; NULL: all were searched to the end. */
static contender *next_of(race *r)
{
	contender *next = NULL;
	double best_s = sw_search_best_s(leader_of(r));
	for (size_t i = 0; i < r->list.len; i++) {
		contender *c = &r->list.data[i];
		if (!c->over && (!next || comes_before(c, next, best_s)))
			next = c;
	}
	return next;
}

/* Search one more wave. A strategy that fails is left out: the answer needs none of them. */
static void advance(const race *r, contender *c)
{
	sw_plan_request request = *r->request;
	double begin_s = sw_now_s();
	sw_status status = SW_OK;
	request.options = &c->options;
	if (!c->search) {
		c->most_s = (end_of(r) - begin_s) / 2;
		c->search = sw_alloc(sizeof(*c->search));
		status = sw_search_begin(c->search, &request, end_of(r), r->all, &c->err);
	}
	if (status == SW_OK && c->search->wave)
		status = sw_search_advance(c->search);
	c->over = status != SW_OK || !c->search->wave;
	c->spent_s += sw_now_s() - begin_s;
}

static void run(race *r)
{
	bool any = r->request->options->any;
	enter_all(r);
	while (sw_now_s() < end_of(r) && !(any && sw_search_has_incumbent(leader_of(r)))) {
		contender *next = next_of(r);
		if (!next)
			break;
		advance(r, next);
	}
}

static void clear(race *r)
{
	for (size_t i = 0; i < r->list.len; i++) {
		sw_search *s = r->list.data[i].search;
		if (s)
			sw_search_clear(s);
		free(s);
	}
	sw_vec_clear(&r->list);
}

/* ---- the answer ------------------------------------------------------------------------- */

/* Give the plan of the quickest search, as found by a search of all meshes that was cut. */
static sw_status answer(race *r, sw_plan **plan, sw_error *err)
{
	sw_search *leader = leader_of(r);
	leader->timed_out = true;
	leader->err = err;
	SW_TRY(sw_search_finish(leader, plan));
	(*plan)->strategy = r->request->options->strategy;
	sw_search_say_searched(r->all, *plan);
	sw_search_add_rows(r->all, *plan);
	for (size_t i = 0; i < r->list.len; i++)
		if (r->list.data[i].search)
			sw_search_add_rows(r->list.data[i].search, *plan);
	(*plan)->planning_s = sw_now_s() - r->all->start_s;
	return SW_OK;
}

/* Let the strategies race after a search that was cut, unless memory is far too small for all. */
static sw_status run_race(const sw_plan_request *request, sw_search *all, double end_s,
                          sw_plan **plan, sw_error *err)
{
	race r = {.request = request, .all = all, .end_s = end_s, .last_s = sw_search_last_s(all)};
	if (all->timed_out && !all->hopeless_bytes)
		run(&r);
	sw_status status = r.list.len > 0 ? answer(&r, plan, err) : sw_search_finish(all, plan);
	clear(&r);
	return status;
}

sw_status sw_search_in_time(const sw_plan_request *request, sw_plan **plan, sw_error *err)
{
	double end_s = sw_search_end_s(request->options);
	sw_search all;
	*plan = NULL;
	sw_status status = sw_search_begin(&all, request, end_s - request->options->time_limit_s / 2,
	                                   NULL, err);
	all.yields = true;
	while (status == SW_OK && all.wave)
		status = sw_search_advance(&all);
	all.end_s = end_s;
	if (status == SW_OK)
		status = run_race(request, &all, end_s, plan, err);
	sw_search_clear(&all);
	return status;
}
