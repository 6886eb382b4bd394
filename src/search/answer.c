/* The answer of a search: the incumbent with its alternatives and bounds, or the reason why there
 * is none. */
#include "search/internal.h"

#include <math.h>
#include <string.h>

/* ---- what else was considered ----------------------------------------------------------- */

/* Gather the alternatives of all variants: first those of the plan's own variant and of the program
 * as it is. */
static void gather_alternatives(const sw_search *s, size_t own, sw_plan *plan)
{
	plan->alternatives.len = 0;
	for (int others = 0; others < 2; others++)
		for (size_t i = 0; i < s->variants.len; i++) {
			const sw_variant *v = &s->variants.data[i];
			if ((i != 0 && i != own) != (others > 0))
				continue;
			for (size_t k = 0; k < v->entries.len; k++)
				sw_vec_push(&plan->alternatives, v->entries.data[k].line);
			if (v->untried.name[0])
				sw_vec_push(&plan->alternatives, v->untried);
		}
}

void sw_search_add_rows(const sw_search *s, sw_plan *plan)
{
	for (size_t i = 0; i < s->variants.len; i++) {
		const sw_variant *v = &s->variants.data[i];
		for (size_t k = 0; k < v->entries.len; k++)
			sw_plan_add_row(plan, &v->entries.data[k].line);
		if (v->untried.name[0])
			sw_plan_add_row(plan, &v->untried);
	}
}

static void add_warnings(const sw_search *s, sw_plan *plan)
{
	bool splits = false;
	int32_t missing[SW_OPCODE_COUNT] = {0};
	if (s->timed_out)
		sw_vec_push(&plan->warnings, SW_TIME_LIMIT_WARNING);
	for (size_t i = 0; i < plan->program->ops.len; i++) {
		for (int32_t a = 0; a < plan->strategies[i].n; a++)
			splits = splits || plan->strategies[i].atom[a].kind == SW_CHOICE_SPLIT;
		if (plan->rules[i]->missing)
			missing[plan->program->ops.data[i].opcode]++;
	}
	if (plan->cluster->n_devices > 1 && !splits)
		sw_vec_push(&plan->warnings,
		            sw_arena_printf(&plan->arena, "every device does the whole step: %s",
		                            plan->strategy.kind == SW_PLAN_AUTO
		                                    ? "nothing faster was found"
		                                    : "the devices divide nothing that this "
		                                      "strategy splits"));
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		if (missing[o] > 0)
			sw_vec_push(
				&plan->warnings,
				sw_arena_printf(
					&plan->arena,
					"%d '%s' ops run replicated: there is no rule for them yet",
					missing[o], sw_opcode_name((sw_opcode)o)));
}

/* ---- what was searched ------------------------------------------------------------------ */

static bool tries_memory(const sw_search *s)
{
	const sw_rewrites *first = &s->variants.data[0].rewrites;
	for (size_t i = 1; i < s->variants.len; i++) {
		const sw_rewrites *r = &s->variants.data[i].rewrites;
		if (r->padding.multiple == 0 &&
		    (r->microbatches != first->microbatches || (r->remat && !first->remat)))
			return true;
	}
	return false;
}

static bool tries_padding(const sw_search *s)
{
	for (size_t i = 1; i < s->variants.len; i++)
		if (s->variants.data[i].rewrites.padding.multiple > 0)
			return true;
	return false;
}

static void say_method(const sw_plan_options *options, sw_text *text)
{
	sw_method method = options->method;
	if (method == SW_METHOD_EXACT)
		return;
	sw_text_addf(text, "; solved by the method %s%s%s", sw_method_name(method),
	             method == SW_METHOD_SEGMENTS ? " (effort 2), whose bound is of one pass" : "",
	             sw_method_has_bound(method) ? "" : ", whose model has no bound");
}

/* Write which plans were searched: those of all variants, except for the splits that exceeded the
 * limits, counted in the variant that left out most. */
void sw_search_say_searched(const sw_search *s, sw_plan *plan)
{
	int64_t left_out = 0;
	sw_text text = {0};
	for (size_t i = 0; i < s->variants.len; i++)
		left_out = SW_MAX(left_out, s->variants.data[i].left_out);
	sw_text_add(&text, plan->strategy.kind == SW_PLAN_AUTO ? s->scope : "this strategy alone");
	if (s->tied && !s->asked.options->untied)
		sw_text_add(&text, ", repeated layers alike");
	if (tries_padding(s))
		sw_text_add(&text, ", with and without padding to a multiple of the devices");
	if (tries_memory(s))
		sw_text_add(&text, ", with the rematerialisation and microbatches that are listed");
	if (left_out > 0)
		sw_text_addf(&text, "; %lld splits of ops were left out", (long long)left_out);
	say_method(s->asked.options, &text);
	snprintf(plan->searched, sizeof(plan->searched), "%s", text.data);
	sw_text_clear(&text);
}

/* ---- bounds ----------------------------------------------------------------------------- */

/* Give the solver's bound on the mesh that is best by the model. */
static void gather_model_bounds(const sw_search *s, sw_plan *plan)
{
	plan->model_best_s = sw_search_has_incumbent(s) ? s->incumbent.model_s : INFINITY;
	plan->model_bound_s = 0;
	for (size_t i = 0; i < s->variants.len; i++)
		for (size_t k = 0; k < s->variants.data[i].entries.len; k++) {
			const sw_mesh_entry *e = &s->variants.data[i].entries.data[k];
			if (e->best_s > plan->model_best_s)
				continue;
			plan->model_best_s = e->best_s;
			plan->model_bound_s = SW_MIN(e->model_bound_s, e->best_s);
		}
	if (isinf(plan->model_best_s))
		plan->model_best_s = 0;
}

/* ---- the plan --------------------------------------------------------------------------- */

/* Give the plan its program, and the program before rewrites. */
static void take_program(sw_search *s, sw_variant *from, sw_plan *plan)
{
	if (plan->program != s->canonical)
		plan->original = s->canonical;
	for (size_t i = 0; i < s->variants.len; i++) {
		sw_plan *other = s->variants.data[i].plan;
		if (other != plan && other->program == s->canonical)
			other->program = NULL;
	}
	if (from->written)
		from->written->taken = true;
	plan->program_hash = sw_program_hash(s->canonical);
	sw_search_owner(s)->canonical_taken = true;
	plan->rewrites = sw_rewrites_copy(&from->rewrites, &plan->arena);
	plan->padded = from->padded;
	from->padded = (sw_padded_list){0};
}

static void restore(const sw_search *s, const sw_candidate_plan *c, sw_plan *plan)
{
	sw_snapshot_restore(&c->snapshot, &s->strategies, plan);
	snprintf(plan->chosen, sizeof(plan->chosen), "%s", c->name);
	plan->predicted = c->cost;
	plan->model_s = c->model_s;
}

/* Take the plan of a variant, with everything known of the search. */
static sw_plan *take_plan(sw_search *s, size_t number)
{
	sw_variant *v = sw_search_variant(s, number);
	sw_plan *plan = v->plan;
	plan->undivided = sw_search_owner(s)->undivided;
	sw_search_owner(s)->undivided = NULL;
	gather_alternatives(s, number, plan);
	gather_model_bounds(s, plan);
	sw_search_say_searched(s, plan);
	sw_certify(s, plan);
	add_warnings(s, plan);
	take_program(s, v, plan);
	plan->paths = NULL;
	plan->schedule_limits = NULL;
	plan->passes = NULL;
	v->plan = NULL;
	return plan;
}

static sw_status check_pins(const sw_search *s, const sw_plan *plan)
{
	sw_analysis analysis;
	sw_analysis_options how = {.no_overlap = true, .limits = s->asked.model_limits};
	if (!s->asked.options->pins)
		return SW_OK;
	sw_analysis_init(&analysis, plan, s->asked.sidecar, how);
	sw_status status =
		sw_pins_resolve(s->asked.options->pins, &analysis, s->asked.sidecar, s->err);
	if (status == SW_OK)
		status = sw_pins_check(&analysis, plan, s->err);
	sw_analysis_clear(&analysis);
	return status;
}

/* ---- none ------------------------------------------------------------------------------- */

/* A model counts up to this many seconds of an op, 46 days: more than that forbids a choice. */
#define LONGEST_S (4e18 * SW_COST_UNIT_S)

static sw_status too_slow(const sw_search *s, double step_s)
{
	sw_text step = {0};
	sw_text_add_seconds(&step, step_s);
	sw_status status = sw_fail(
		s->err, SW_NO,
		"the ops of a step take %s on one device, and the planner counts up to %.0f days "
		"of an op: check the sizes of the program, the trips of its loops, and the figures "
		"of the device",
		step.data, LONGEST_S / 86400);
	sw_text_clear(&step);
	return status;
}

static sw_status nothing_found(const sw_search *s)
{
	sw_program_cost whole;
	sw_cost_program(s->asked.cluster, s->canonical, &whole);
	if (whole.compute_s > LONGEST_S)
		return too_slow(s, whole.compute_s);
	sw_text have = {0};
	int64_t memory = sw_search_memory(s);
	sw_text_add_bytes(&have, (double)memory);
	sw_status status = sw_fail(
		s->err, SW_NO, "no plan that fits in %s (%lld bytes) per device was found%s",
		have.data, (long long)memory,
		s->timed_out ? " within the time limit: give it more time, or memory"
			     : ": use more devices, devices with more memory, or a smaller batch");
	sw_text_clear(&have);
	return status;
}

/* Return how much any plan takes at least, as far as it is known. */
static int64_t least_share(const sw_search *s)
{
	int64_t share = s->hopeless_bytes ? s->hopeless_bytes : INT64_MAX;
	for (size_t i = 0; i < s->variants.len && !s->hopeless_bytes; i++)
		share = SW_MIN(share, s->variants.data[i].share_bytes);
	return share;
}

/* Write it if it shows that nothing fits. */
static void say_share(const sw_search *s, sw_text *text)
{
	int64_t share = least_share(s);
	if (share <= sw_search_memory(s))
		return;
	sw_text_add(text, "; however it is split it takes ");
	sw_text_add_bytes(text, (double)share);
	sw_text_addf(text, " (%lld bytes) at least", (long long)share);
}

static sw_status nothing_fits(const sw_search *s, const sw_plan *least)
{
	int64_t memory = sw_search_memory(s), needs = least->predicted.peak_bytes;
	sw_text have = {0}, need = {0}, more = {0}, share = {0};
	say_share(s, &share);
	sw_text_add_bytes(&have, (double)memory);
	sw_text_add_bytes(&need, (double)needs);
	sw_text_add_bytes(&more, (double)(needs - memory));
	sw_status status =
		sw_fail(s->err, SW_NO,
	                "no plan fits in %s (%lld bytes) per device; the least that was found "
	                "needs %s (%lld bytes), %s more (%s)%s: "
	                "use more devices, devices with more memory, or a smaller batch",
	                have.data, (long long)memory, need.data, (long long)needs, more.data,
	                least->chosen, share.data ? share.data : "");
	sw_text_clear(&have);
	sw_text_clear(&need);
	sw_text_clear(&more);
	sw_text_clear(&share);
	return status;
}

/* Make a plan as small as possible: during the search, plans far from fitting were not costed with
 * every memory saving. */
static sw_status shrink(const sw_search *s, sw_plan *plan)
{
	sw_program_cost cached;
	sw_roles roles;
	sw_roles_init(&roles, plan->program, s->asked.sidecar);
	sw_costing c = {.options = s->asked.options,
	                .limits = s->asked.limits,
	                .roles = &roles,
	                .paths = s->paths,
	                .plan = plan,
	                .memory_bytes = sw_search_memory(s),
	                .deadline_s = sw_search_last_s(s),
	                .doubt = INFINITY};
	sw_status status = sw_costing_fit(&c, &cached, &plan->predicted, s->err);
	sw_roles_clear(&roles);
	return status;
}

/* A smallest plan that turned out to fit is an incumbent like others. */
static sw_status take_smallest(sw_search *s, sw_variant *v)
{
	sw_candidate_plan *c = &v->least;
	sw_alternative *line = &v->entries.data[c->entry].line;
	c->cost = v->plan->predicted;
	if (!s->asked.options->no_overlap)
		SW_TRY(sw_simulate_plan(v->plan, &c->cost, &c->cost.step_time_s, s->err));
	sw_snapshot_clear(&c->snapshot);
	sw_snapshot_take(&c->snapshot, v->plan, &s->strategies);
	line->feasible = true;
	line->untried = SW_UNTRIED_NOT;
	line->step_time_s = c->cost.step_time_s;
	line->compute_s = c->cost.compute_s;
	line->communication_s = c->cost.communication_s;
	line->payload_bytes = c->cost.payload_bytes;
	line->peak_bytes = c->cost.peak_bytes;
	line->bound_s = 0;
	s->incumbent = *c;
	*c = (sw_candidate_plan){0};
	return SW_OK;
}

/* No plan that was costed fits: make the one that needs least as small as possible, and take it if
 * it fits then; or say why there is none. */
static sw_status answer_smallest(sw_search *s)
{
	sw_variant *v = sw_variant_least(s);
	if (s->timed_out || !v)
		return nothing_found(s);
	restore(s, &v->least, v->plan);
	SW_TRY(shrink(s, v->plan));
	if (v->plan->predicted.peak_bytes <= sw_search_memory(s))
		return take_smallest(s, v);
	sw_status status = nothing_fits(s, v->plan);
	if (s->asked.options->least_share)
		*s->asked.options->least_share = least_share(s);
	if (s->asked.options->least)
		*s->asked.options->least = take_plan(s, (size_t)(v - s->variants.data));
	return status;
}

sw_status sw_search_answer(sw_search *s, sw_plan **plan)
{
	if (!sw_search_has_incumbent(s))
		SW_TRY(answer_smallest(s));
	size_t number = s->incumbent.variant;
	restore(s, &s->incumbent, sw_search_variant(s, number)->plan);
	SW_TRY(check_pins(s, sw_search_variant(s, number)->plan));
	*plan = take_plan(s, number);
	return SW_OK;
}
