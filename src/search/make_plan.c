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
	double limit_s = s->asked.options->time_limit_s;
	return limit_s > 0 ? limit_s - (sw_now_s() - s->start_s) : INFINITY;
}

/* The first mesh may take so much longer than the time limit, so that some plan is found. */
#define GRACE_S 1

double sw_search_last_s(const sw_search *s)
{
	double limit_s = s->asked.options->time_limit_s;
	return limit_s > 0 ? s->start_s + limit_s + GRACE_S : 0;
}

bool sw_search_has_incumbent(const sw_search *s)
{
	return s->incumbent.snapshot.strategies != NULL;
}

sw_variant *sw_search_variant(const sw_search *s, size_t number)
{
	return &s->variants.data[number];
}

/* ---- the loop --------------------------------------------------------------------------- */

#define UNCONSTRAINED_SHARE 0.6

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
		return sw_wave_open(s, number, SW_MEMORY_LIMITED, o->time_limit_s);
	/* So much of the time goes to the memory-unconstrained search. */
	return status == SW_OK ? sw_wave_open(s, number, SW_MEMORY_UNCONSTRAINED,
	                                      o->time_limit_s * UNCONSTRAINED_SHARE)
	                       : status;
}

/* Is no further wave opened? */
static bool is_over(const sw_search *s)
{
	bool found = sw_search_has_incumbent(s);
	return s->hopeless_bytes || (s->asked.options->any && found) ||
	       (s->yields && s->timed_out && !found);
}

static sw_status run(sw_search *s)
{
	sw_status status = propose_as_asked(s);
	while (status == SW_OK && s->wave) {
		if (sw_queue_take(s)) {
			status = sw_batch_search(s);
		} else {
			status = sw_candidates_select(s);
			sw_wave_close(s);
			if (status == SW_OK && !is_over(s))
				status = sw_propose(s);
		}
	}
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static void clear(sw_search *s)
{
	sw_wave_free(s);
	for (size_t i = 0; i < s->variants.len; i++)
		sw_variant_clear(s, &s->variants.data[i]);
	sw_vec_clear(&s->variants);
	sw_vec_clear(&s->proposals.needs);
	sw_candidate_clear(&s->incumbent);
	sw_strategy_set_clear(&s->strategies);
	sw_saving_end(s);
	sw_program_free(s->canonical);
	sw_program_free(s->undivided);
	sw_sidecar_clear(&s->own_sidecar);
	sw_path_store_free(s->paths);
	sw_solved_free(s->solved);
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

/* hopes: NULL, or it receives the fixed strategies to search alone, as the search was cut short. */
static sw_status search(const sw_program *program, const char *program_path,
                        const sw_sidecar *sidecar, const sw_cluster *cluster,
                        const sw_plan_options *options, sw_plan **plan, sw_fixed_hopes *hopes,
                        sw_error *err)
{
	const sw_search_limits *limits = sw_search_limits_of(options);
	const sw_model_limits *model_limits =
		options->limits.model ? options->limits.model : &sw_model_default_limits;
	sw_search s = {.asked = {options, limits, model_limits, sidecar, cluster, program_path},
	               .start_s = sw_now_s(),
	               .yields = hopes != NULL,
	               .err = err};
	*plan = NULL;
	if (options->strategy.stages)
		return sw_fail(err, SW_ERR_INPUT,
		               "pp= in a strategy: this is planned without stages of a pipeline");
	sw_status status = sw_rewrite_canonical(program, &s.canonical, err);
	if (status != SW_OK)
		return status;
	sw_arena_init(&s.arena);
	status = give_forms(&s);
	if (status != SW_OK) {
		clear(&s);
		return status;
	}
	s.paths = sw_path_store_new(cluster);
	s.solved = sw_solved_new();
	status = run(&s);
	if (status == SW_OK)
		status = sw_search_answer(&s, plan);
	if (status == SW_OK && *plan)
		status = play_stale(*plan, s.asked.sidecar, err);
	if (status != SW_OK) {
		sw_plan_free(*plan);
		*plan = NULL;
	}
	if (*plan)
		(*plan)->planning_s = sw_now_s() - s.start_s;
	if (hopes)
		sw_cut_short_rank(&s, hopes);
	clear(&s);
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

/* ---- of two plans the quicker one ------------------------------------------------------- */

static bool has_row(const sw_plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->alternatives.len; i++)
		if (strcmp(plan->alternatives.data[i].name, name) == 0)
			return true;
	return false;
}

/* Of a plan and another, which may be NULL, keep one, with what was looked at for both and the time
 * that it took. Returns it. */
static sw_plan *keep(sw_plan *plan, sw_plan *other)
{
	for (size_t i = 0; other && i < other->alternatives.len; i++)
		if (!has_row(plan, other->alternatives.data[i].name))
			sw_vec_push(&plan->alternatives, other->alternatives.data[i]);
	plan->planning_s += other ? other->planning_s : 0;
	sw_plan_free(other);
	return plan;
}

/* ---- within a time limit ---------------------------------------------------------------- */

static bool has_warning(const sw_plan *plan, const char *warning)
{
	for (size_t i = 0; i < plan->warnings.len; i++)
		if (!strcmp(plan->warnings.data[i], warning))
			return true;
	return false;
}

/* Search for the plan of a fixed strategy alone in what is left of the time, and take it if it is
 * quicker than *plan, which may be NULL. */
static void try_fixed(const sw_program *program, const char *program_path,
                      const sw_sidecar *sidecar, const sw_cluster *cluster,
                      const sw_plan_options *options, const char *name, double left_s,
                      sw_plan **plan)
{
	sw_plan_options alone = *options;
	sw_plan *other = NULL;
	sw_error ignored = {0};
	alone.time_limit_s = left_s;
	alone.least = NULL;
	alone.least_share = NULL;
	if (sw_plan_strategy_parse(name, &alone.strategy, &ignored) != SW_OK ||
	    search(program, program_path, sidecar, cluster, &alone, &other, NULL, &ignored) != SW_OK)
		return;
	if (*plan && (*plan)->predicted.step_time_s <= other->predicted.step_time_s) {
		*plan = keep(*plan, other);
		return;
	}
	other->strategy = options->strategy;
	if (*plan)
		memcpy(other->searched, (*plan)->searched, sizeof(other->searched));
	if (!has_warning(other, SW_TIME_LIMIT_WARNING))
		sw_vec_push(&other->warnings, SW_TIME_LIMIT_WARNING);
	*plan = keep(other, *plan);
}

/* Search all meshes in half of the time. Where that is too short, search in what is left the most
 * promising fixed strategies alone, one after the other: what one of them reaches within the time
 * is then no quicker than what is answered. */
static sw_status search_in_time(const sw_program *program, const char *program_path,
                                const sw_sidecar *sidecar, const sw_cluster *cluster,
                                const sw_plan_options *options, sw_plan **plan, sw_error *err)
{
	double end_s = sw_now_s() + options->time_limit_s;
	sw_plan_options half = *options;
	sw_fixed_hopes hopes = {0};
	if (options->time_limit_s <= 0 || options->strategy.kind != SW_PLAN_AUTO || options->mesh)
		return search(program, program_path, sidecar, cluster, options, plan, NULL, err);
	half.time_limit_s /= 2;
	sw_status status = search(program, program_path, sidecar, cluster, &half, plan, &hopes, err);
	for (size_t i = 0; i < hopes.len && (status == SW_OK || status == SW_NO); i++) {
		double left_s = end_s - sw_now_s();
		if (left_s <= 0)
			break;
		try_fixed(program, program_path, sidecar, cluster, options, hopes.data[i].name,
		          left_s, plan);
	}
	sw_vec_clear(&hopes);
	return *plan ? SW_OK : status;
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
static sw_status search_both(const sw_program *program, const char *program_path,
                             const sw_sidecar *sidecar, const sw_cluster *cluster,
                             const sw_plan_options *options, sw_plan **plan, sw_error *err)
{
	sw_plan_options without = *options, with = *options;
	sw_plan *other = NULL;
	sw_error ignored = {0};
	without.strategy.owners = SW_OWNERS_NONE;
	with.strategy = (sw_plan_strategy){.kind = SW_PLAN_WAYS, .owners = SW_OWNERS_ANY};
	with.mesh = NULL;
	with.least = NULL;
	without.time_limit_s /= 2;
	with.time_limit_s /= 2;
	sw_status status =
		search_in_time(program, program_path, sidecar, cluster, &without, plan, err);
	if (status != SW_OK && status != SW_NO)
		return status;
	sw_status second = search(program, program_path, sidecar, cluster, &with, &other, NULL,
	                          &ignored);
	if (second != SW_OK)
		return status;
	bool wins = !*plan || other->predicted.step_time_s < (*plan)->predicted.step_time_s;
	sw_plan *best = wins ? other : *plan, *rest = wins ? *plan : other;
	if (rest)
		add_searched(best, rest);
	best->strategy = options->strategy;
	*plan = keep(best, rest);
	return SW_OK;
}

/* Plan for owners of this rule, and values of variables that may be so old. */
static sw_status search_stale(const sw_program *program, const char *program_path,
                              const sw_sidecar *sidecar, const sw_cluster *cluster,
                              const sw_plan_options *options, sw_owners_rule owners, int64_t stale,
                              sw_plan **plan, sw_error *err)
{
	sw_plan_options asked = *options;
	asked.strategy = (sw_plan_strategy){.kind = SW_PLAN_PS,
	                                    .owners = owners,
	                                    .proxy = true,
	                                    .has_stale = true,
	                                    .stale = stale};
	asked.mesh = NULL;
	asked.least = NULL;
	return search(program, program_path, sidecar, cluster, &asked, plan, NULL, err);
}

/* Seconds from one step to the next, in the long run where that is another time. */
static double long_run_s(const sw_plan *plan)
{
	return plan->stale_step_s > 0 ? plan->stale_step_s : plan->predicted.step_time_s;
}

/* Take the quickest plan whose variables may be stale, if it is allowed, possible and quicker. One
 * owner of all can do what several can't: clip gradients by the norm of all. Who allows any age
 * allows a bound, too. */
static void try_stale(const sw_program *program, const char *program_path,
                      const sw_sidecar *sidecar, const sw_cluster *cluster,
                      const sw_plan_options *options, sw_plan **plan)
{
	static const sw_owners_rule owners[] = {SW_OWNERS_BALANCED, SW_OWNERS_ONE};
	const int64_t stales[] = {options->allowed_stale, (int64_t)sw_search_limits_of(options)->bound_within_any};
	size_t n_stales = options->allowed_stale == SW_STALE_ANY ? 2 : 1;
	bool possible = false;
	sw_error why = {0};
	for (size_t i = 0; i < SW_COUNT(owners) * n_stales; i++) {
		sw_plan *other = NULL;
		if (search_stale(program, program_path, sidecar, cluster, options,
		                 owners[i / n_stales], stales[i % n_stales], &other, &why) != SW_OK)
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
static void try_unequal(const sw_program *program, const char *program_path,
                        const sw_sidecar *sidecar, const sw_cluster *cluster,
                        const sw_plan_options *options, sw_plan **plan)
{
	sw_error why = {0};
	sw_plan *other = NULL, *equal = *plan;
	double limit_s = long_run_s(equal);
	if (sw_search_shares(program, program_path, sidecar, cluster, options, limit_s, &other,
	                     &why) != SW_OK ||
	    !other)
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
static sw_status plan_listed(const sw_program *program, const char *program_path,
                             const sw_sidecar *sidecar, const sw_cluster *cluster,
                             const sw_plan_options *options, sw_plan **plan, sw_error *err)
{
	SW_TRY(sw_search_shares(program, program_path, sidecar, cluster, options, INFINITY, plan,
	                        err));
	sw_bound_certify(*plan, sidecar);
	return SW_OK;
}

sw_status sw_plan_make(const sw_program *program, const char *program_path,
                       const sw_sidecar *sidecar, const sw_cluster *cluster,
                       const sw_plan_options *options, sw_plan **plan, sw_error *err)
{
	bool both = options->strategy.kind == SW_PLAN_AUTO && options->strategy.owners;
	*plan = NULL;
	if (options->allows_stale && options->strategy.kind != SW_PLAN_AUTO)
		return sw_fail(err, SW_ERR_INPUT,
		               "--allow lets --strategy auto take what changes the training; other "
		               "strategies say it themselves, as ps:stale=4 does");
	if (options->sharing == SW_SHARES_LISTED)
		return plan_listed(program, program_path, sidecar, cluster, options, plan, err);
	bool shares = may_share(options, cluster);
	sw_plan_options half = *options;
	half.time_limit_s /= shares ? 2 : 1;
	SW_TRY((both ? search_both : search_in_time)(program, program_path, sidecar, cluster, &half,
	                                             plan, err));
	if (options->allows_stale && cluster->n_devices > 1)
		try_stale(program, program_path, sidecar, cluster, options, plan);
	sw_search_try_apart(*plan, options);
	if (shares)
		try_unequal(program, program_path, sidecar, cluster, &half, plan);
	return SW_OK;
}
