/* One leaf: the program rewritten in some way, and the best plan of that. */
#include "plan/leaves.h"

#include <math.h>
#include <string.h>

static bool rewrites_nothing(const sw_rewrites *rewrites)
{
	return rewrites->padding.multiple == 0 && !rewrites->remat && rewrites->microbatches < 2;
}

static sw_status make_program(const sw_leaves *list, sw_leaf *leaf, sw_error *err)
{
	sw_remat_device device = sw_plan_remat_device(list->cluster, list->canonical);
	sw_status status = sw_rewrite_in_order(list->canonical, list->sidecar, &leaf->rewrites, device,
	                                       &leaf->program, &leaf->padded, err);
	if (rewrites_nothing(&leaf->rewrites))
		leaf->program = list->canonical;
	leaf->hash = status == SW_OK ? sw_program_hash(leaf->program) : 0;
	return status;
}

sw_status sw_leaves_add(sw_leaves *list, const sw_rewrites *rewrites, uint64_t meshes, size_t *number,
                        sw_error *err)
{
	if (list->items.len > 0 && sw_leaves_left_s(list) <= 0) {
		list->timed_out = true;
		return SW_NO;
	}
	sw_leaf next = {.rewrites = sw_rewrites_copy(rewrites, &list->arena), .meshes = meshes};
	sw_status status = make_program(list, &next, err);
	if (status != SW_OK) {
		sw_leaf_clear(list, &next);
		return status;
	}
	for (*number = 0; *number < list->items.len; ++*number)
		if (list->items.data[*number].hash == next.hash)
			break;
	if (*number < list->items.len) {
		list->items.data[*number].meshes |= meshes;
		sw_leaf_clear(list, &next);
		return SW_OK;
	}
	if (rewrites->padding.multiple > 0 && meshes == SW_ALL_MESHES)
		next.map =
			sw_rewrite_pad_map(list->canonical, rewrites->padding, next.program, &list->arena);
	sw_vec_push(&list->items, next);
	return SW_OK;
}

static void free_plan(const sw_leaves *list, sw_plan *plan)
{
	if (plan && plan->program == list->canonical)
		plan->program = NULL;
	sw_plan_free(plan);
}

void sw_leaf_clear(const sw_leaves *list, sw_leaf *leaf)
{
	if (leaf->program != list->canonical)
		sw_program_free(leaf->program);
	free_plan(list, leaf->plan);
	free_plan(list, leaf->least);
	sw_vec_clear(&leaf->padded);
}

sw_leaf *sw_leaves_best(const sw_leaves *list)
{
	sw_leaf *best = NULL;
	for (size_t i = 0; i < list->items.len; i++) {
		sw_leaf *l = &list->items.data[i];
		if (l->plan &&
		    (!best || l->plan->predicted.step_time_s < best->plan->predicted.step_time_s))
			best = l;
	}
	return best;
}

int64_t sw_leaves_memory(const sw_leaves *list)
{
	int64_t asked = list->options->memory_bytes;
	return asked > 0 ? asked : list->cluster->device.memory_bytes;
}

double sw_leaves_left_s(const sw_leaves *list)
{
	double limit_s = list->options->time_limit_s;
	return limit_s > 0 ? limit_s - (sw_now_s() - list->start_s) : INFINITY;
}

double sw_leaf_roofline_s(const sw_leaves *list, const sw_leaf *leaf)
{
	sw_program_cost cost;
	sw_cost_program(list->cluster, leaf->program, &cost);
	return cost.compute_s / (double)list->cluster->n_devices;
}

/* ---- searching ---------------------------------------------------------------------------------------------------- */

static void add_mesh(sw_meshes *meshes, const sw_mesh *mesh, bool freed, const char *words)
{
	sw_mesh added = *mesh;
	size_t length = strlen(added.name);
	added.freed = freed;
	snprintf(added.name + length, sizeof(added.name) - length, "%s%s", words ? words : "",
	         freed ? ", untied" : "");
	sw_vec_push(meshes, added);
}

/* The leaf's meshes, whose names say how it is rewritten; behind them, if repeated layers are not to be tied, those once more that search, or are
 * all there is. numbers: room for two of each. */
static void choose_meshes(const sw_leaf *leaf, bool untied, sw_meshes *meshes, size_t *numbers)
{
	sw_meshes chosen = {0};
	sw_text words = {0};
	sw_rewrites_add_words(&leaf->rewrites, &words);
	for (int freed = 0; freed <= untied; freed++)
		for (size_t i = 0; i < meshes->len; i++) {
			const sw_mesh *mesh = &meshes->data[i];
			bool wanted = leaf->meshes == SW_ALL_MESHES || (i < 64 && leaf->meshes >> i & 1);
			if (!wanted || (freed && !mesh->search && meshes->len > 1))
				continue;
			numbers[chosen.len] = i;
			add_mesh(&chosen, mesh, freed, words.data);
		}
	sw_vec_clear(meshes);
	*meshes = chosen;
	sw_text_clear(&words);
}

typedef struct listener {
	sw_leaves *list;
	const sw_leaf *leaf;
	const size_t *numbers; /* of the meshes that are searched */
} listener;

static void note_need(void *context, size_t mesh, const sw_plan *plan, double model_s)
{
	const listener *s = context;
	sw_leaves_note_need(s->list, s->leaf, s->numbers[mesh], plan, model_s);
}

/* By the model, which bounds are bounds of. */
static double known_s(const sw_leaves *list)
{
	const sw_leaf *best = sw_leaves_best(list);
	return best ? best->plan->model_s : INFINITY;
}

/* Meshes whose plans take longer than the best by more are not tried again in other leaves. */
#define SLOW 1.5

static void note_slow(sw_leaf *leaf, const sw_plan *plan, const size_t *numbers)
{
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const sw_alternative *a = &plan->alternatives.data[i];
		bool slow = a->bound_s > 0 ||
		            (a->feasible && a->step_time_s > SLOW * plan->predicted.step_time_s);
		if (slow && numbers[i] < 64)
			leaf->slow |= UINT64_C(1) << numbers[i];
	}
}

/* What was found goes to the leaf; its program with it. */
static void take_result(const sw_leaves *list, sw_leaf *leaf, sw_status status, sw_plan *plan)
{
	leaf->bound_s = plan->lower_bound_s;
	leaf->model_bound_s = plan->model_bound_s;
	if (status == SW_OK)
		leaf->plan = plan;
	else if (status == SW_NO && plan->predicted.peak_bytes > 0)
		leaf->least = plan;
	else
		plan->program = NULL; /* still the leaf's */
	if (leaf->plan || leaf->least)
		leaf->program = NULL;
	else
		free_plan(list, plan);
}

/* So much longer than the time limit the first strategy of a leaf may take: something is to be tried. */
#define GRACE_S 1

static sw_status search_meshes(sw_leaves *list, sw_leaf *leaf, const sw_meshes *meshes,
                               const size_t *numbers, const sw_plan_options *options, sw_error *err)
{
	listener s = {list, leaf, numbers};
	bool has_parts = leaf->map.n > 1; /* which contenders may need without the others */
	sw_plan *plan = sw_plan_new(leaf->program, list->program_path, list->cluster);
	plan->strategy = options->strategy;
	plan->merge_bytes = options->strategy.merge_bytes;
	plan->paths = list->paths;
	sw_planner planner;
	sw_planner_init(&planner, plan, list->sidecar);
	planner.known_s = known_s(list);
	if (list->options->time_limit_s > 0)
		planner.last_s = list->start_s + list->options->time_limit_s + GRACE_S;
	planner.untied = options->untied;
	if (options->threads > 0)
		planner.threads = options->threads;
	planner.unlimited = leaf->unlimited;
	if (has_parts)
		planner.slack = SW_FAR_BEHIND;
	sw_status status = sw_pins_resolve(options->pins, &planner, list->sidecar, err);
	if (status != SW_OK && leaf != list->items.data)
		status = SW_NO; /* a rewrite has left nothing of what is pinned */
	if (status == SW_OK)
		status = sw_plan_search(&planner, meshes, options, has_parts ? note_need : NULL, &s, plan,
		                        err);
	if (status == SW_OK)
		status = sw_pins_check(&planner, plan, err);
	leaf->free = planner.free;
	leaf->left_out = planner.left_out;
	sw_planner_clear(&planner);
	plan->paths = NULL;
	if (status == SW_OK)
		note_slow(leaf, plan, numbers);
	take_result(list, leaf, status, plan);
	return status;
}

/* Back to before it was searched. */
static void take_back(const sw_leaves *list, sw_leaf *leaf)
{
	sw_plan *plan = leaf->plan ? leaf->plan : leaf->least;
	if (plan) {
		leaf->program = plan->program;
		plan->program = NULL;
		free_plan(list, plan);
	}
	leaf->plan = leaf->least = NULL;
}

static sw_status search(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err)
{
	sw_meshes meshes = {0};
	take_back(list, leaf);
	sw_plan_options own = *list->options;
	sw_roles roles;
	sw_roles_init(&roles, leaf->program, list->sidecar);
	sw_status status = sw_meshes_of(list->cluster, &own.strategy, &roles, leaf->rewrites.microbatches,
	                                &meshes, err);
	sw_roles_clear(&roles);
	if (status == SW_OK)
		status = sw_pins_cut(own.pins, list->cluster, &meshes, err);
	if (status != SW_OK) {
		sw_vec_clear(&meshes);
		return status;
	}
	own.time_limit_s = time_limit_s;
	sw_meshes_limit(&meshes, list->canonical, list->scope, sizeof(list->scope));
	size_t *numbers = sw_alloc((2 * meshes.len + 1) * sizeof(*numbers));
	bool untied = own.untied && sw_repeats_are_tied(leaf->program, false);
	choose_meshes(leaf, untied, &meshes, numbers);
	status = search_meshes(list, leaf, &meshes, numbers, &own, err);
	free(numbers);
	sw_vec_clear(&meshes);
	return status;
}

sw_status sw_leaf_search(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err)
{
	leaf->unlimited = false;
	return search(list, leaf, time_limit_s, err);
}

sw_status sw_leaf_search_free(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err)
{
	leaf->unlimited = true;
	return search(list, leaf, time_limit_s, err);
}
