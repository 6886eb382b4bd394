/*
 * Leaves of the search: the program as it is, and rewritten in ways that may pay: with less memory
 * (activations computed again, microbatches), then, as the best of these is rewritten, with
 * padding. The best plan of all is the answer; where none fits in memory, the one that needs least
 * is what can be said.
 */
#include "search/leaves.h"

#include <math.h>
#include <string.h>

/* What is asked for is so in all leaves. */
static sw_rewrites asked(const sw_plan_options *options)
{
	bool none = !options->remat || !strcmp(options->remat, "none");
	return (sw_rewrites){.remat = none ? NULL : options->remat,
	                     .microbatches = options->microbatches > 1 ? options->microbatches : 0};
}

/* What would be faster by less if memory were no matter is not looked for. */
#define FAST_ENOUGH 1.005

static sw_status add_first(sw_leaves *list, sw_error *err)
{
	size_t number;
	sw_rewrites rewrites = asked(list->options);
	sw_status status = sw_leaves_add(list, &rewrites, SW_ALL_MESHES, &number, err);
	if (status == SW_OK)
		list->items.data[0].roofline_s = sw_leaf_roofline_s(list, &list->items.data[0]);
	return status;
}

/* Is the first leaf's quickest plan one that memory is too small for, and no other near it? */
static bool is_memory_in_the_way(const sw_leaves *list)
{
	const sw_leaf *first = &list->items.data[0], *best = sw_leaves_best(list);
	return first->free.peak_bytes > sw_leaves_memory(list) &&
	       (!best || best->plan->model_s > FAST_ENOUGH * first->free_s);
}

static bool is_near(const sw_leaves *list)
{
	const sw_leaf *first = &list->items.data[0];
	return (double)first->free.peak_bytes < SW_FAR_TOO_LARGE * (double)sw_leaves_memory(list) &&
	       !sw_leaf_is_too_large(list, first);
}

static sw_status search_first_in_memory(sw_leaves *list, sw_error *err)
{
	sw_leaf *first = &list->items.data[0];
	double left_s = sw_leaves_left_s(list);
	first->meshes &= first->open & ~first->slow;
	if (!first->meshes || left_s <= 0)
		return SW_OK;
	sw_status status = sw_leaf_search(list, first, isfinite(left_s) ? left_s / 2 : 0, err);
	return status == SW_NO ? SW_OK : status;
}

/* As it is the program is looked at first as if memory were no matter, which tells how far it is
 * from fitting: if it is near it is tried within memory before what saves some, else, and then for
 * little time, after. */
static sw_status search_plain_and_small(sw_leaves *list, sw_error *err)
{
	sw_leaf *first = &list->items.data[0];
	sw_status status = sw_leaf_search_free(list, first, list->options->time_limit_s / 3, err);
	if (status != SW_OK && status != SW_NO)
		return status;
	bool near = is_near(list);
	status = near ? search_first_in_memory(list, err) : SW_OK;
	if (status == SW_OK && is_memory_in_the_way(list))
		status = sw_leaves_save_memory(list, err);
	return status == SW_OK && !near ? search_first_in_memory(list, err) : status;
}

/* Plans that need less of the memory, or wait for so little, leave the schedule room enough. */
#define NEARLY_ALL 0.9
#define WORTH_ROOM 1.02

/* Would the plan be quicker if its schedule had all the memory that it asks for? */
static bool is_room_short(const sw_leaves *list, sw_plan *plan)
{
	const sw_program_cost *cost = &plan->predicted;
	double least_s = fmax(cost->compute_s, cost->communication_s), step_s;
	if (list->options->no_overlap || cost->step_time_s < WORTH_ROOM * least_s ||
	    (double)cost->peak_bytes < NEARLY_ALL * (double)sw_leaves_memory(list))
		return false;
	int64_t memory_bytes = plan->memory_bytes;
	sw_error err;
	plan->memory_bytes = INT64_MAX;
	sw_status status = sw_simulate_plan(plan, cost, &step_s, &err);
	plan->memory_bytes = memory_bytes;
	return status == SW_OK && cost->step_time_s > WORTH_ROOM * step_s;
}

#define PART_OF_MEMORY 16 /* is left to the schedule */

/* The model knows nothing of what is under way while kernels run, and fills the memory with what is
 * kept. Where collectives then wait for want of room, the same is searched with less of it, and
 * scheduled with all. */
static sw_status leave_room(sw_leaves *list, sw_error *err)
{
	sw_leaf *best = sw_leaves_best(list);
	double left_s = sw_leaves_left_s(list);
	if (!best || left_s <= 0 || !is_room_short(list, best->plan))
		return SW_OK;
	return sw_leaf_search_with_room(list, best, sw_leaves_memory(list) / PART_OF_MEMORY,
	                                isfinite(left_s) ? left_s : 0, err);
}

/* What needs least memory where nothing fits; NULL: nothing was found at all. */
static sw_leaf *least_leaf(const sw_leaves *list)
{
	sw_leaf *least = NULL;
	for (size_t i = 0; i < list->items.len; i++) {
		sw_leaf *l = &list->items.data[i];
		if (l->least &&
		    (!least || l->least->predicted.peak_bytes < least->least->predicted.peak_bytes))
			least = l;
	}
	return least;
}

static sw_status pad_best(sw_leaves *list, sw_error *err)
{
	const sw_leaf *best = sw_leaves_best(list);
	best = best ? best : least_leaf(list);
	best = best ? best : &list->items.data[0];
	return sw_leaves_pad(list, best->rewrites, best->roofline_s, err);
}

static void clear(sw_leaves *list)
{
	for (size_t i = 0; i < list->items.len; i++)
		sw_leaf_clear(list, &list->items.data[i]);
	sw_vec_clear(&list->items);
	sw_vec_clear(&list->needs);
	sw_program_free(list->canonical);
	sw_path_store_free(list->paths);
	sw_arena_clear(&list->arena);
}

/* ---- the answer ------------------------------------------------------------------------- */

/* Of the program as it is, and of the best leaf, all that was considered; of another leaf what won
 * it, or came nearest to fitting. */
static void gather_alternatives(const sw_leaves *list, sw_plan *plan)
{
	SW_VEC(sw_alternative) all = {0};
	for (size_t i = 0; i < list->items.len; i++) {
		const sw_leaf *leaf = &list->items.data[i];
		const sw_plan *other = leaf->plan ? leaf->plan : leaf->least;
		for (size_t k = 0; other && k < other->alternatives.len; k++)
			if (i == 0 || other == plan ||
			    !strcmp(other->alternatives.data[k].name, other->chosen))
				sw_vec_push(&all, other->alternatives.data[k]);
	}
	plan->alternatives.len = 0;
	for (size_t k = 0; k < all.len; k++)
		sw_vec_push(&plan->alternatives, all.data[k]);
	sw_vec_clear(&all);
}

static bool tries_memory(const sw_leaves *list)
{
	for (size_t i = 1; i < list->items.len; i++) {
		const sw_rewrites *first = &list->items.data[0].rewrites,
				  *r = &list->items.data[i].rewrites;
		if (r->padding.multiple == 0 &&
		    (r->microbatches != first->microbatches || (r->remat && !first->remat)))
			return true;
	}
	return false;
}

static bool tries_padding(const sw_leaves *list)
{
	for (size_t i = 1; i < list->items.len; i++)
		if (list->items.data[i].rewrites.padding.multiple > 0)
			return true;
	return false;
}

/* What all leaves are plans of, and what the one that leaves out most does. */
static void say_scope(const sw_leaves *list, sw_plan *plan)
{
	int64_t left_out = 0;
	sw_text text = {0};
	for (size_t i = 0; i < list->items.len; i++)
		left_out = SW_MAX(left_out, list->items.data[i].left_out);
	sw_text_add(&text, list->scope);
	sw_text_addf(&text, " in which communication %s",
	             !list->options->no_overlap
	                     ? "hides behind its devices' even share of the kernels "
	                       "that it does not wait for"
	                     : "does not hide behind kernels");
	if (sw_equivalence_is_tied(plan->program, list->options->untied))
		sw_text_add(&text, ", repeated layers alike");
	if (tries_padding(list))
		sw_text_add(&text, ", with and without padding to a multiple of the devices");
	if (tries_memory(list))
		sw_text_add(&text, ", with the rematerialisation and microbatches that are listed");
	if (left_out > 0)
		sw_text_addf(&text, "; %lld ways to split some op were left out",
		             (long long)left_out);
	snprintf(plan->scope, sizeof(plan->scope), "%s", text.data);
	sw_text_clear(&text);
}

/* A bound that holds for all leaves. */
static void gather_bounds(const sw_leaves *list, sw_plan *plan)
{
	/* it may be a little below the model's */
	plan->lower_bound_s = plan->predicted.step_time_s;
	for (size_t i = 0; i < list->items.len; i++) {
		const sw_leaf *leaf = &list->items.data[i];
		if (sw_leaf_is_too_large(list, leaf))
			continue;
		plan->lower_bound_s = SW_MIN(plan->lower_bound_s, leaf->bound_s);
		plan->model_bound_s = SW_MIN(plan->model_bound_s, leaf->model_bound_s);
		if (leaf->model_best_s > 0)
			plan->model_best_s = SW_MIN(plan->model_best_s, leaf->model_best_s);
	}
	if (isinf(plan->model_bound_s)) /* nothing fits */
		plan->model_bound_s = 0;
	sw_plan_set_gaps(plan);
	say_scope(list, plan);
}

/* That time ran out is worth a word, whichever leaf it was in. */
static void gather_warnings(const sw_leaves *list, sw_plan *plan)
{
	if (list->timed_out && plan->warnings.len == 0)
		sw_vec_push(&plan->warnings, SW_TIME_LIMIT_WARNING);
	for (size_t i = 0; i < list->items.len && plan->warnings.len == 0; i++) {
		const sw_plan *other = list->items.data[i].plan;
		for (size_t k = 0; other && other != plan && k < other->warnings.len; k++)
			sw_vec_push(&plan->warnings,
			            sw_arena_text(&plan->arena, other->warnings.data[k]));
	}
}

/* The plan keeps the program as it was before rewrites. */
static void take_program(sw_leaves *list, sw_leaf *from, sw_plan *plan)
{
	if (plan->program != list->canonical)
		plan->original = list->canonical;
	for (size_t i = 0; i < list->items.len; i++) { /* theirs it is no more */
		sw_leaf *leaf = &list->items.data[i];
		sw_plan *other = leaf->plan ? leaf->plan : leaf->least;
		if (leaf->program == list->canonical)
			leaf->program = NULL;
		if (other && other != plan && other->program == list->canonical)
			other->program = NULL;
	}
	list->canonical = NULL;
	plan->rewrites = sw_rewrites_copy(&from->rewrites, &plan->arena);
	plan->padded = from->padded;
	from->padded = (sw_padded_list){0};
}

static sw_plan *take_plan(sw_leaves *list, sw_leaf *from)
{
	sw_plan *plan = from->plan ? from->plan : from->least;
	gather_alternatives(list, plan);
	gather_bounds(list, plan);
	gather_warnings(list, plan);
	plan->program_hash = list->hash;
	take_program(list, from, plan);
	from->plan = from->least = NULL;
	return plan;
}

static sw_status nothing_found(const sw_leaves *list, sw_error *err)
{
	sw_text have = {0};
	sw_text_add_bytes(&have, (double)sw_leaves_memory(list));
	sw_status status = sw_fail(
		err, SW_NO, "no plan that fits in %s (%lld bytes) per device was found%s",
		have.data, (long long)sw_leaves_memory(list),
		list->timed_out
			? " within the time limit: give it more time, or memory"
			: ": use more devices, devices with more memory, or a smaller batch");
	sw_text_clear(&have);
	return status;
}

/* If it is known that nothing of what was tried can fit: by how much at least. */
static void say_share(const sw_leaves *list, sw_text *text)
{
	int64_t share = INT64_MAX;
	for (size_t i = 0; i < list->items.len; i++)
		share = SW_MIN(share, list->items.data[i].share_bytes);
	if (share <= sw_leaves_memory(list))
		return;
	sw_text_add(text, "; however it is split it takes ");
	sw_text_add_bytes(text, (double)share);
	sw_text_addf(text, " (%lld bytes) at least", (long long)share);
}

static sw_status nothing_fits(const sw_leaves *list, const sw_plan *least, sw_error *err)
{
	int64_t memory = sw_leaves_memory(list), needs = least->predicted.peak_bytes;
	sw_text have = {0}, need = {0}, more = {0}, share = {0};
	say_share(list, &share);
	sw_text_add_bytes(&have, (double)memory);
	sw_text_add_bytes(&need, (double)needs);
	sw_text_add_bytes(&more, (double)(needs - memory));
	sw_status status =
		sw_fail(err, SW_NO,
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

/* As little as it can do with: while plans are looked for that fit, those are not measured that are
 * far from that. */
static sw_status save_memory(const sw_leaves *list, sw_plan *plan, sw_error *err)
{
	sw_planner planner;
	plan->paths = list->paths;
	sw_planner_init(&planner, plan, list->sidecar);
	sw_status status = sw_plan_save_memory(&planner, list->options, plan, err);
	sw_planner_clear(&planner);
	plan->paths = NULL;
	return status;
}

static sw_status answer(sw_leaves *list, sw_plan **plan, sw_error *err)
{
	sw_leaf *best = sw_leaves_best(list), *least = least_leaf(list);
	if (best) {
		*plan = take_plan(list, best);
		return SW_OK;
	}
	if (list->timed_out || !least)
		return nothing_found(list, err);
	sw_status status = save_memory(list, least->least, err);
	if (status != SW_OK)
		return status;
	status = nothing_fits(list, least->least, err);
	if (list->options->least)
		*list->options->least = take_plan(list, least);
	return status;
}

sw_status sw_plan_leaves(sw_program *canonical, const char *program_path, const sw_sidecar *sidecar,
                         const sw_cluster *cluster, const sw_plan_options *options, sw_plan **plan,
                         sw_error *err)
{
	sw_leaves list = {.canonical = canonical,
	                  .hash = sw_program_hash(canonical),
	                  .program_path = program_path,
	                  .sidecar = sidecar,
	                  .cluster = cluster,
	                  .options = options,
	                  .paths = sw_path_store_new(cluster),
	                  .start_s = sw_now_s()};
	sw_arena_init(&list.arena);
	sw_status status = add_first(&list, err);
	if (status == SW_OK)
		status = search_plain_and_small(&list, err);
	if (status == SW_OK)
		status = leave_room(&list, err);
	if (status == SW_OK)
		status = pad_best(&list, err);
	if (status == SW_OK)
		status = answer(&list, plan, err);
	clear(&list);
	return status;
}
