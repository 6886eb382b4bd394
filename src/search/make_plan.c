/*
 * The driver: one loop.
 *
 * The queue holds meshes of a variant of the program, each with an optimistic bound. The loop takes
 * the most promising ones, models and solves them, costs the plans that may be quickest, and
 * simulates those as they would be scheduled. The quickest is the incumbent, against which
 * everything else is pruned. When the queue is empty, a neighbour of the variants searched so far
 * enters it: the same variant within memory, one with more activations recomputed, with more
 * microbatches, with memory reserved for the schedule, or with dimensions padded.
 */
#include "search/internal.h"

#include <math.h>
#include <string.h>

#include "bound/bound.h"
#include "simulate/served_play.h"

/* ---- questions -------------------------------------------------------------------------- */

int64_t sw_search_memory(const sw_search *s)
{
	int64_t asked = s->asked.options->memory_bytes;
	return asked > 0 ? asked : sw_cost_memory_bytes(&s->asked.cluster->device);
}

double sw_search_left_s(const sw_search *s)
{
	return s->end_s - sw_now_s();
}

double sw_search_share_s(const sw_search *s, double share)
{
	return sw_search_left_s(s) * (s->lender ? 1 : share);
}

/* The first mesh may take so much longer than the time limit, so that some plan is found. */
#define GRACE_S 1

double sw_search_last_s(const sw_search *s)
{
	return isfinite(s->end_s) ? s->end_s + (s->lender ? 0 : GRACE_S) : 0;
}

bool sw_search_has_incumbent(const sw_search *s)
{
	return s->incumbent.snapshot.strategies != NULL;
}

const sw_mesh *sw_search_incumbent_mesh(const sw_search *s)
{
	return &sw_search_variant(s, s->incumbent.variant)->entries.data[s->incumbent.entry].mesh;
}

sw_search *sw_search_owner(sw_search *s)
{
	return s->lender ? s->lender : s;
}

double sw_search_best_s(const sw_search *s)
{
	return sw_search_has_incumbent(s) ? s->incumbent.cost.step_time_s : INFINITY;
}

double sw_search_limit_s(const sw_search *s)
{
	double best_s = sw_search_best_s(s);
	return s->rival_s > 0 ? fmin(best_s, s->rival_s) : best_s;
}

void sw_search_ask_rival(sw_search *s)
{
	const sw_plan_rival *rival = s->asked.options->rival;
	if (!rival || s->rival_s > 0 || isfinite(s->end_s) || !sw_search_has_incumbent(s))
		return;
	const sw_variant *v = sw_search_variant(s, s->incumbent.variant);
	s->rival_s = rival->step_s(rival->context, s->incumbent.cost.step_time_s, v->rewrites.remat);
}

sw_variant *sw_search_variant(const sw_search *s, size_t number)
{
	return &s->variants.data[number];
}

/* ---- the loop --------------------------------------------------------------------------- */

static sw_status propose_as_asked(sw_search *s)
{
	const sw_plan_options *o = s->asked.options;
	bool none = !o->remat || !strcmp(o->remat, "none");
	sw_rewrites rewrites = {.remat = none ? NULL : o->remat,
	                        .microbatches = o->microbatches > 1 ? o->microbatches : 0};
	sw_mesh_set all = {.rest = true};
	size_t number;
	sw_status status = sw_variant_add(s, &rewrites, &all, &number, s->err);
	if (status == SW_OK)
		status = sw_search_probe_memory(s, &number);
	if (status == SW_OK && s->hopeless_bytes)
		return sw_wave_open(s, number, SW_MEMORY_LIMITED, sw_search_left_s(s));
	return status == SW_OK ? sw_wave_open(s, number, SW_MEMORY_UNCONSTRAINED,
	                                      sw_search_share_s(
						      s, s->asked.limits->unconstrained_share))
	                       : status;
}

/* Is no further wave opened? */
static bool is_over(const sw_search *s)
{
	bool found = sw_search_has_incumbent(s);
	return s->hopeless_bytes || (s->asked.options->any && found) ||
	       (s->yields && s->timed_out && !found);
}

sw_status sw_search_advance(sw_search *s)
{
	sw_wave_start(s);
	while (sw_queue_take(s)) {
		SW_TRY(sw_batch_search(s));
		sw_certify_begin(s);
	}
	SW_TRY(sw_candidates_select(s));
	sw_wave_close(s);
	return is_over(s) ? SW_OK : sw_propose(s);
}

/* ---- the whole -------------------------------------------------------------------------- */

void sw_search_clear(sw_search *s)
{
	sw_certify_end(s);
	sw_wave_free(s);
	for (size_t i = 0; i < s->variants.len; i++)
		sw_variant_clear(s, &s->variants.data[i]);
	sw_vec_clear(&s->variants);
	sw_vec_clear(&s->proposals.needs);
	sw_prices_clear(&s->proposals.reprice.prices);
	sw_candidate_clear(&s->incumbent);
	sw_snapshot_clear(&s->proposals.coarse.snapshot);
	sw_strategy_set_clear(&s->strategies);
	sw_saving_end(s);
	if (!s->lender) {
		sw_variants_free_written(s);
		if (!s->canonical_taken)
			sw_program_free(s->canonical);
		sw_program_free(s->undivided);
		sw_sidecar_clear(&s->own_sidecar);
		sw_saving_grid_free(s->saving_grid);
		sw_solved_free(s->solved);
	}
	sw_arena_clear(&s->arena);
}

/* Give the variables the forms that the strategy, or the user, asks for. */
static sw_status give_forms(sw_search *s)
{
	const sw_plan_options *o = s->asked.options;
	sw_program *divided;
	const sw_forms_request request = {.program = s->canonical,
	                                  .sidecar = s->asked.sidecar,
	                                  .strategy = &o->strategy,
	                                  .sync = o->sync,
	                                  .codec = o->codec,
	                                  .devices = s->asked.cluster->n_devices};
	SW_TRY(sw_forms_asked(&request, &s->arena, &s->forms, s->err));
	if (s->forms.n == 0)
		return SW_OK;
	SW_TRY(sw_rewrite_variables(s->canonical, s->asked.sidecar, &s->forms, &divided,
	                            &s->own_sidecar, s->err));
	s->undivided = s->canonical;
	s->canonical = divided;
	s->asked.sidecar = &s->own_sidecar;
	return SW_OK;
}

/* Where variables are served, see that the step can be cut so, and how quickly steps follow each
 * other in the long run. */
static sw_status play_stale(sw_plan *plan, const sw_sidecar *sidecar, sw_error *err)
{
	sw_served served;
	sw_served_play play = {0};
	if (!sw_forms_served(&plan->forms))
		return SW_OK;
	sw_status status = sw_served_cut(plan, sidecar, &served, err);
	if (status == SW_OK) {
		sw_error unplayed;
		if (sw_served_play_steps(plan->cluster, &served, NULL, &play, &unplayed) == SW_OK)
			plan->stale_step_s = play.step_time_s;
		else
			sw_vec_push(&plan->warnings, sw_arena_text(&plan->arena, unplayed.message));
	}
	sw_served_play_clear(&play);
	sw_served_clear(&served);
	return status;
}

const sw_search_limits *sw_search_limits_of(const sw_plan_options *options)
{
	return options->limits.search ? options->limits.search : &sw_search_default_limits;
}

static sw_status prepare(sw_search *s, const sw_plan_request *r)
{
	s->solved = sw_solved_new();
	SW_TRY(sw_rewrite_canonical(r->program, &s->canonical, s->err));
	return give_forms(s);
}

static void borrow(sw_search *s, const sw_search *lender)
{
	s->solved = lender->solved;
	s->canonical = lender->canonical;
	s->forms = lender->forms;
	s->asked.sidecar = lender->asked.sidecar;
}

sw_status sw_search_begin(sw_search *s, const sw_plan_request *r, double end_s,
                          sw_search *lender, sw_error *err)
{
	const sw_plan_options *options = r->options;
	*s = (sw_search){.asked = {.options = options,
	                           .limits = sw_search_limits_of(options),
	                           .model_limits = options->limits.model
	                                                   ? options->limits.model
	                                                   : &sw_model_default_limits,
	                           .sidecar = r->sidecar,
	                           .cluster = r->cluster,
	                           .program_path = r->path},
	                 .paths = options->paths,
	                 .start_s = sw_now_s(),
	                 .end_s = end_s,
	                 .lender = lender,
	                 .err = err};
	sw_arena_init(&s->arena);
	if (options->strategy.stages)
		return sw_fail(err, SW_ERR_INPUT,
		               "pp= in a strategy: this is planned without stages of a pipeline");
	if (lender)
		borrow(s, lender);
	else
		SW_TRY(prepare(s, r));
	return propose_as_asked(s);
}

sw_status sw_search_finish(sw_search *s, sw_plan **plan)
{
	const sw_sidecar *sidecar = s->asked.sidecar;
	*plan = NULL;
	sw_status status = sw_search_answer(s, plan);
	if (status == SW_OK)
		status = play_stale(*plan, sidecar, s->err);
	if (status != SW_OK) {
		sw_plan_free(*plan);
		*plan = NULL;
	}
	if (*plan)
		(*plan)->planning_s = sw_now_s() - s->start_s;
	return status;
}

double sw_search_end_s(const sw_plan_options *options)
{
	return options->time_limit_s > 0 ? sw_now_s() + options->time_limit_s : INFINITY;
}

static sw_status search(const sw_plan_request *r, sw_plan **plan, sw_error *err)
{
	sw_search s;
	*plan = NULL;
	sw_status status = sw_search_begin(&s, r, sw_search_end_s(r->options), NULL, err);
	while (status == SW_OK && s.wave)
		status = sw_search_advance(&s);
	if (status == SW_OK)
		status = sw_search_finish(&s, plan);
	sw_search_clear(&s);
	return status;
}

/* ---- rows of the table ------------------------------------------------------------------ */

void sw_plan_add_to_name(sw_plan *plan, const char *words)
{
	sw_text name = {0};
	sw_text_addf(&name, "%s, %s", plan->chosen, words);
	sw_text_cut(name.data, plan->chosen, sizeof(plan->chosen));
	sw_text_clear(&name);
}

void sw_plan_list_itself(sw_plan *plan)
{
	const sw_program_cost *cost = &plan->predicted;
	sw_alternative row = {.feasible = true,
	                      .step_time_s = cost->step_time_s,
	                      .compute_s = cost->compute_s,
	                      .communication_s = cost->communication_s,
	                      .payload_bytes = cost->payload_bytes,
	                      .peak_bytes = cost->peak_bytes};
	snprintf(row.name, sizeof(row.name), "%s", plan->chosen);
	sw_vec_push(&plan->alternatives, row);
	for (size_t i = plan->alternatives.len; --i > 0;)
		plan->alternatives.data[i] = plan->alternatives.data[i - 1];
	plan->alternatives.data[0] = row;
}

static bool has_row(const sw_plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->alternatives.len; i++)
		if (strcmp(plan->alternatives.data[i].name, name) == 0)
			return true;
	return false;
}

void sw_plan_add_row(sw_plan *plan, const sw_alternative *row)
{
	if (!has_row(plan, row->name))
		sw_vec_push(&plan->alternatives, *row);
}

/* ---- of two plans the quicker one ------------------------------------------------------- */

/* Of a plan and another, which may be NULL, keep one, with what was looked at for both and the time
 * that it took. Returns it. */
static sw_plan *keep(sw_plan *plan, sw_plan *other)
{
	for (size_t i = 0; other && i < other->alternatives.len; i++)
		sw_plan_add_row(plan, &other->alternatives.data[i]);
	plan->planning_s += other ? other->planning_s : 0;
	sw_plan_free(other);
	return plan;
}

static sw_plan_request with_options(const sw_plan_request *r, const sw_plan_options *options)
{
	sw_plan_request other = *r;
	other.options = options;
	return other;
}

/* Search all meshes, or those of the strategy that is asked for. */
static sw_status search_one(const sw_plan_request *r, sw_plan **plan, sw_error *err)
{
	const sw_plan_options *o = r->options;
	bool may_race = o->time_limit_s > 0 && o->strategy.kind == SW_PLAN_AUTO && !o->mesh;
	return (may_race ? sw_search_in_time : search)(r, plan, err);
}

/* ---- plans with owners, too ------------------------------------------------------------- */

/* Say of the quicker of two plans that ways were searched, too. */
static void add_searched(sw_plan *plan, const sw_plan *other)
{
	sw_text searched = {0};
	bool ways = other->strategy.kind == SW_PLAN_WAYS;
	sw_text_addf(&searched, "ways of synchronising variables; %s",
	             ways ? plan->searched : other->searched);
	sw_text_cut(searched.data, plan->searched, sizeof(plan->searched));
	sw_text_clear(&searched);
}

/* Search for plans with owners and without, and take the quicker one. Each of the searches has half
 * of the time. */
static sw_status search_both(const sw_plan_request *r, sw_plan **plan, sw_error *err)
{
	sw_plan_options without = *r->options, with = *r->options;
	sw_plan *other = NULL;
	sw_error ignored = {0};
	without.strategy.owners = SW_OWNERS_NONE;
	with.strategy = (sw_plan_strategy){.kind = SW_PLAN_WAYS, .owners = SW_OWNERS_ANY};
	with.mesh = NULL;
	with.least = NULL;
	without.time_limit_s /= 2;
	with.time_limit_s /= 2;
	sw_plan_request one = with_options(r, &without);
	sw_status status = search_one(&one, plan, err);
	if (status != SW_OK && status != SW_NO)
		return status;
	one = with_options(r, &with);
	if (search(&one, &other, &ignored) != SW_OK)
		return status;
	bool wins = !*plan || other->predicted.step_time_s < (*plan)->predicted.step_time_s;
	sw_plan *best = wins ? other : *plan, *rest = wins ? *plan : other;
	if (rest)
		add_searched(best, rest);
	best->strategy = r->options->strategy;
	*plan = keep(best, rest);
	return SW_OK;
}

/* Plan for owners of this rule, and values of variables that may be so old. */
static sw_status search_stale(const sw_plan_request *r, sw_owners_rule owners, int64_t stale,
                              sw_plan **plan, sw_error *err)
{
	sw_plan_options asked = *r->options;
	const sw_plan_request one = with_options(r, &asked);
	asked.strategy = (sw_plan_strategy){.kind = SW_PLAN_PS,
	                                    .owners = owners,
	                                    .proxy = true,
	                                    .has_stale = true,
	                                    .stale = stale};
	asked.mesh = NULL;
	asked.least = NULL;
	return search(&one, plan, err);
}

/* Seconds from one step to the next, in the long run where that is another time. */
static double long_run_s(const sw_plan *plan)
{
	return plan->stale_step_s > 0 ? plan->stale_step_s : plan->predicted.step_time_s;
}

/* Take the quickest plan whose variables may be stale, if it is allowed, possible and quicker. One
 * owner of all can do what several can't: clip gradients by the norm of all. Who allows any age
 * allows a bound, too. */
static void try_stale(const sw_plan_request *r, sw_plan **plan)
{
	const sw_plan_options *options = r->options;
	static const sw_owners_rule owners[] = {SW_OWNERS_BALANCED, SW_OWNERS_ONE};
	const int64_t stales[] = {options->allowed_stale, (int64_t)sw_search_limits_of(options)->bound_within_any};
	size_t n_stales = options->allowed_stale == SW_STALE_ANY ? 2 : 1;
	bool possible = false;
	sw_error why = {0};
	for (size_t i = 0; i < SW_COUNT(owners) * n_stales; i++) {
		sw_plan *other = NULL;
		if (search_stale(r, owners[i / n_stales], stales[i % n_stales], &other, &why) !=
		    SW_OK)
			continue;
		possible = true;
		bool wins = other->stale_step_s > 0 && other->stale_step_s < long_run_s(*plan);
		*plan = wins ? keep(other, *plan) : keep(*plan, other);
	}
	if (!possible)
		sw_vec_push(&(*plan)->warnings,
		            sw_arena_printf(&(*plan)->arena, "what --allow lets be can't be: %s",
		                            why.message));
}

/* ---- unequal shares ---------------------------------------------------------------------- */

static bool may_share(const sw_plan_options *options, const sw_cluster *cluster)
{
	bool asked = options->sharing == SW_SHARES_AUTO ||
	             (options->sharing == SW_SHARES_DEFAULT &&
	              options->strategy.kind == SW_PLAN_AUTO);
	return asked && cluster->n_kinds > 1 && !(options->pins && options->pins->n) && !options->sync &&
	       !options->codec.kind && !options->mesh && options->microbatches != 1;
}

/* Search for plans in which devices of several kinds have unequal shares of the batch, and take one
 * that is quicker. The bound holds for them, too. */
static void try_unequal(const sw_plan_request *r, sw_plan **plan)
{
	sw_error why = {0};
	sw_plan *other = NULL, *equal = *plan;
	double limit_s = long_run_s(equal);
	if (sw_search_shares(r, limit_s, &other, &why) != SW_OK || !other)
		return;
	if (other->predicted.step_time_s >= limit_s) {
		*plan = keep(equal, other);
		return;
	}
	sw_bound_state(other, equal->lower_bound_s, false);
	snprintf(other->searched, sizeof(other->searched), "unequal shares of the batch; %.400s",
	         equal->searched);
	*plan = keep(other, equal);
}

/* Plan with the shares that the user said. */
static sw_status plan_listed(const sw_plan_request *r, sw_plan **plan, sw_error *err)
{
	SW_TRY(sw_search_shares(r, INFINITY, plan, err));
	sw_bound_certify(*plan, r->sidecar);
	return SW_OK;
}

/* Make all searches that the options ask for, which share the paths that they find. */
static sw_status search_all(const sw_plan_request *r, sw_plan **plan, sw_error *err)
{
	const sw_plan_options *options = r->options;
	bool both = options->strategy.kind == SW_PLAN_AUTO && options->strategy.owners,
	     shares = may_share(options, r->cluster);
	sw_plan_options half = *options;
	half.time_limit_s /= shares ? 2 : 1;
	const sw_plan_request one = with_options(r, &half);
	double end_s = sw_search_end_s(&half);
	SW_TRY((both ? search_both : search_one)(&one, plan, err));
	if (options->allows_stale && r->cluster->n_devices > 1)
		try_stale(r, plan);
	sw_search_try_apart(*plan, options, end_s);
	if (shares)
		try_unequal(&one, plan);
	return SW_OK;
}

sw_status sw_plan_make(const sw_program *program, const char *program_path,
                       const sw_sidecar *sidecar, const sw_cluster *cluster,
                       const sw_plan_options *options, sw_plan **plan, sw_error *err)
{
	sw_plan_options own = *options;
	const sw_plan_request r = {program, program_path, sidecar, cluster, &own};
	*plan = NULL;
	if (options->allows_stale && options->strategy.kind != SW_PLAN_AUTO)
		return sw_fail(err, SW_ERR_INPUT,
		               "--allow lets --strategy auto take what changes the training; other "
		               "strategies say it themselves, as ps:stale=4 does");
	if (options->sharing == SW_SHARES_LISTED)
		return plan_listed(&r, plan, err);
	if (!options->paths)
		own.paths = sw_path_store_new(cluster);
	sw_status status = search_all(&r, plan, err);
	if (!options->paths)
		sw_path_store_free(own.paths);
	return status;
}
