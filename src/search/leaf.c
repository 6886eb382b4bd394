/* One leaf: the program rewritten in some way, and the best plan of that. */
#include "search/leaves.h"

#include <math.h>
#include <string.h>

#include "interpret/interpret.h"

static bool rewrites_nothing(const sw_rewrites *rewrites)
{
	return rewrites->padding.multiple == 0 && !rewrites->remat && rewrites->microbatches < 2;
}

static sw_status make_program(const sw_leaves *list, sw_leaf *leaf, sw_error *err)
{
	sw_remat_device device = sw_plan_remat_device(list->cluster, list->canonical);
	sw_status status = sw_rewrite_in_order(list->canonical, list->sidecar, &leaf->rewrites,
	                                       device, &leaf->program, &leaf->padded, err);
	if (rewrites_nothing(&leaf->rewrites))
		leaf->program = list->canonical;
	if (status != SW_OK)
		return status;
	leaf->hash = sw_program_hash(leaf->program);
	leaf->share_bytes = sw_least_share_bytes(leaf->program, list->cluster->n_devices);
	return SW_OK;
}

sw_status sw_leaves_add(sw_leaves *list, const sw_rewrites *rewrites, uint64_t meshes,
                        size_t *number, sw_error *err)
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
		next.map = sw_rewrite_pad_map(list->canonical, rewrites->padding, next.program,
		                              &list->arena);
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

/* ---- searching -------------------------------------------------------------------------- */

static void add_mesh(sw_meshes *meshes, const sw_mesh *mesh, bool freed, const char *words)
{
	sw_mesh added = *mesh;
	size_t length = strlen(added.name);
	added.freed = freed;
	snprintf(added.name + length, sizeof(added.name) - length, "%s%s", words ? words : "",
	         freed ? ", untied" : "");
	sw_vec_push(meshes, added);
}

/* The leaf's meshes, whose names say how it is rewritten; behind them, if repeated layers are not
 * to be tied, those once more that search, or are all there is. numbers: room for two of each. */
static void choose_meshes(const sw_leaf *leaf, bool untied, sw_meshes *meshes, size_t *numbers)
{
	sw_meshes chosen = {0};
	sw_text words = {0};
	sw_rewrites_add_words(&leaf->rewrites, &words);
	for (int freed = 0; freed <= untied; freed++)
		for (size_t i = 0; i < meshes->len; i++) {
			const sw_mesh *mesh = &meshes->data[i];
			bool wanted =
				leaf->meshes == SW_ALL_MESHES || (i < 64 && leaf->meshes >> i & 1);
			if (!wanted || (leaf->unlimited && mesh->tight) ||
			    (freed && !mesh->search && meshes->len > 1))
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

/* Searches whose plans take longer than the best by more are not made again in other leaves; nor
 * are fixed strategies of which no plan takes less than that. */
#define SLOW 1.5

static uint64_t bit_of(size_t mesh)
{
	return mesh < 64 ? UINT64_C(1) << mesh : 0;
}

/* The same of a leaf that was searched as if memory were no matter, whatever fits; and what is left
 * to be looked for, as what was found does not fit, or was not measured. */
static void note_tried(sw_leaf *leaf, const sw_meshes *meshes, const size_t *numbers)
{
	double best_s = INFINITY;
	for (size_t i = 0; i < meshes->len; i++)
		best_s = fmin(best_s, leaf->tried[i].model_s);
	for (size_t i = 0; i < meshes->len; i++) {
		const sw_tried *tried = &leaf->tried[i];
		const sw_mesh *mesh = &meshes->data[i];
		uint64_t bit = bit_of(numbers[i]);
		double seconds = mesh->search ? tried->model_s : tried->least_s;
		if (seconds > SLOW * best_s && !mesh->freed)
			leaf->slow |= bit;
		if (tried->exceeds || tried->put_off)
			leaf->open |= bit ? bit : SW_ALL_MESHES;
	}
}

static void note_slow(sw_leaf *leaf, const sw_plan *plan, const sw_meshes *meshes,
                      const size_t *numbers)
{
	double slow_s = SLOW * plan->predicted.step_time_s;
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const sw_alternative *a = &plan->alternatives.data[i];
		bool given_up = a->bound_s > 0, open = leaf->open & bit_of(numbers[i]);
		if (!strcmp(a->name, plan->chosen))
			leaf->won = numbers[i];
		if ((given_up && meshes->data[i].search && !open) || a->bound_s > slow_s ||
		    (!given_up && a->feasible && a->step_time_s > slow_s))
			leaf->slow |= bit_of(numbers[i]);
	}
}

/* What was found goes to the leaf; its program with it. */
static void take_result(const sw_leaves *list, sw_leaf *leaf, sw_status status, sw_plan *plan)
{
	leaf->bound_s = plan->lower_bound_s;
	leaf->model_bound_s = plan->model_bound_s;
	leaf->model_best_s = plan->model_best_s;
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

/* Of the meshes that are searched: what is known of them, or is to be. */
static sw_tried *tried_of(const sw_leaf *leaf, const sw_meshes *meshes, const size_t *numbers)
{
	if (!leaf->unlimited && !leaf->tried)
		return NULL;
	sw_tried *tried = sw_alloc((meshes->len + 1) * sizeof(*tried));
	for (size_t i = 0; i < meshes->len; i++)
		tried[i] = leaf->unlimited || meshes->data[i].freed || meshes->data[i].tight
		                   ? (sw_tried){.model_s = INFINITY,
		                                .bound_s = INFINITY,
		                                .least_s = INFINITY}
		                   : leaf->tried[numbers[i]];
	return tried;
}

/* So much longer than the time limit the first strategy of a leaf may take: something is to be
 * tried. */
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
	const sw_leaf *best = sw_leaves_best(list);
	if (best) {
		planner.known_s = leaf->spare_bytes > 0
		                          ? INFINITY
		                          : best->plan->model_s; /* which bounds are bounds of */
		planner.known_step_s = best->plan->predicted.step_time_s;
	}
	if (list->options->time_limit_s > 0)
		planner.last_s = list->start_s + list->options->time_limit_s + GRACE_S;
	planner.untied = options->untied;
	if (options->threads > 0)
		planner.threads = options->threads;
	planner.unlimited = leaf->unlimited;
	planner.far = leaf->far && !leaf->unlimited;
	planner.tried = tried_of(leaf, meshes, numbers);
	if (has_parts)
		planner.tolerance = SW_FAR_BEHIND;
	sw_status status = sw_pins_resolve(options->pins, &planner, list->sidecar, err);
	if (status != SW_OK && leaf != list->items.data)
		status = SW_NO; /* a rewrite has left nothing of what is pinned */
	if (status == SW_OK)
		status = sw_plan_search(&planner, meshes, options, has_parts ? note_need : NULL, &s,
		                        plan, err);
	if (status == SW_OK)
		status = sw_pins_check(&planner, plan, err);
	leaf->open = 0;
	if (leaf->unlimited) {
		leaf->free = planner.free;
		leaf->free_s = planner.free_s;
		leaf->tried = sw_arena_copy(&list->arena, planner.tried,
		                            meshes->len * sizeof(*planner.tried));
		leaf->far = status != SW_OK &&
		            (double)leaf->free.peak_bytes >
		                    SW_FAR_TOO_LARGE * (double)sw_leaves_memory(list);
		note_tried(leaf, meshes, numbers);
	}
	free(planner.tried);
	leaf->left_out = planner.left_out;
	sw_planner_clear(&planner);
	plan->paths = NULL;
	if (status == SW_OK)
		note_slow(leaf, plan, meshes, numbers);
	take_result(list, leaf, status, plan);
	return status;
}

/* What was found of a leaf; its program is the plan's. */
typedef struct found {
	sw_plan *plan, *least;
} found;

/* Back to before it was searched, but for what was found. */
static found take_back(sw_leaf *leaf)
{
	found f = {leaf->plan, leaf->least};
	sw_plan *plan = f.plan ? f.plan : f.least;
	if (plan)
		leaf->program = plan->program;
	leaf->plan = leaf->least = NULL;
	return f;
}

/* Is what was found before better than what was found now? */
static bool is_better(found before, const sw_leaf *now)
{
	if (!before.plan && !before.least)
		return false;
	if (!before.plan || !now->plan)
		return before.plan ? true
		                   : !now->plan && (!now->least ||
		                                    before.least->predicted.peak_bytes <
		                                            now->least->predicted.peak_bytes);
	return before.plan->predicted.step_time_s < now->plan->predicted.step_time_s;
}

/* Keeps the better one of what was found before and now. */
static void take_better(const sw_leaves *list, sw_leaf *leaf, found before)
{
	found worse = before;
	if (is_better(before, leaf)) {
		worse = (found){leaf->plan, leaf->least};
		leaf->plan = before.plan;
		leaf->least = before.least;
		leaf->program = NULL;
	}
	sw_plan *plan = worse.plan ? worse.plan : worse.least;
	if (plan)
		plan->program = NULL;
	free_plan(list, plan);
}

typedef SW_VEC(sw_alternative) alternatives;

/* Of the search before. */
static void keep_alternatives(const sw_leaf *leaf, alternatives *kept)
{
	const sw_plan *plan = leaf->plan ? leaf->plan : leaf->least;
	for (size_t i = 0; plan && i < plan->alternatives.len; i++)
		sw_vec_push(kept, plan->alternatives.data[i]);
}

/* Of meshes that were not searched again what is known stays: that they were tried, and what bounds
 * their plans. */
static void add_known(sw_leaf *leaf, const alternatives *before, const sw_meshes *all)
{
	sw_plan *plan = leaf->plan ? leaf->plan : leaf->least;
	for (size_t i = 0; i < all->len && i < 64; i++) {
		if (leaf->meshes >> i & 1)
			continue;
		if (all->data[i].search) {
			leaf->bound_s = fmin(leaf->bound_s, leaf->tried[i].least_s);
			leaf->model_bound_s = fmin(leaf->model_bound_s, leaf->tried[i].bound_s);
		}
		if (plan && i < before->len)
			sw_vec_push(&plan->alternatives, before->data[i]);
	}
}

/* They are still to be looked at. */
static void open_tight(sw_leaf *leaf, const sw_meshes *all)
{
	for (size_t i = 0; i < all->len; i++)
		leaf->open |= all->data[i].tight ? bit_of(i) : 0;
}

static sw_status search_chosen(sw_leaves *list, sw_leaf *leaf, const sw_meshes *all,
                               const alternatives *before, const sw_plan_options *options,
                               sw_error *err)
{
	sw_meshes chosen = {0};
	size_t *numbers = sw_alloc((2 * all->len + 1) * sizeof(*numbers));
	bool untied = options->untied && sw_equivalence_is_tied(leaf->program, false);
	for (size_t i = 0; i < all->len; i++)
		sw_vec_push(&chosen, all->data[i]);
	choose_meshes(leaf, untied, &chosen, numbers);
	sw_status status = search_meshes(list, leaf, &chosen, numbers, options, err);
	if (leaf->unlimited && leaf->free.peak_bytes > sw_leaves_memory(list))
		open_tight(leaf, all);
	if (leaf->tried && !leaf->unlimited)
		add_known(leaf, before, all);
	sw_vec_clear(&chosen);
	free(numbers);
	return status;
}

static sw_status search(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err)
{
	sw_meshes meshes = {0};
	alternatives before = {0};
	keep_alternatives(leaf, &before);
	found earlier = take_back(leaf);
	sw_plan_options own = *list->options;
	sw_roles roles;
	sw_roles_init(&roles, leaf->program, list->sidecar);
	sw_status status = sw_meshes_of(list->cluster, &own.strategy, &roles,
	                                leaf->rewrites.microbatches, &meshes, err);
	sw_roles_clear(&roles);
	if (status == SW_OK)
		status = sw_pins_cut(own.pins, list->cluster, &meshes, err);
	if (status == SW_OK) {
		own.time_limit_s = time_limit_s;
		own.spare_bytes = leaf->spare_bytes;
		sw_meshes_limit(&meshes, list->canonical, list->scope, sizeof(list->scope));
		status = search_chosen(list, leaf, &meshes, &before, &own, err);
	}
	take_better(list, leaf, earlier);
	sw_vec_clear(&before);
	sw_vec_clear(&meshes);
	return status == SW_NO && leaf->plan ? SW_OK : status;
}

bool sw_leaf_is_too_large(const sw_leaves *list, const sw_leaf *leaf)
{
	return leaf->share_bytes > sw_leaves_memory(list);
}

/* That nothing fits is all that is to be known, once something else does. */
sw_status sw_leaf_search(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err)
{
	leaf->unlimited = false;
	if (sw_leaf_is_too_large(list, leaf) && sw_leaves_best(list))
		return SW_NO;
	return search(list, leaf, time_limit_s, err);
}

sw_status sw_leaf_search_free(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err)
{
	leaf->unlimited = true;
	return search(list, leaf, time_limit_s, err);
}

/* ---- room for the schedule -------------------------------------------------------------- */

/* Of the plan that was found with less memory all that is known of its leaf beside it: its own line
 * is new. */
static void keep_known(sw_plan *plan, const alternatives *before, const sw_plan *known)
{
	sw_alternative own = {0};
	for (size_t i = 0; i < plan->alternatives.len; i++)
		if (!strcmp(plan->alternatives.data[i].name, plan->chosen))
			own = plan->alternatives.data[i];
	plan->alternatives.len = 0;
	for (size_t i = 0; i < before->len; i++)
		sw_vec_push(&plan->alternatives,
		            strcmp(before->data[i].name, plan->chosen) ? before->data[i] : own);
	plan->lower_bound_s = fmin(known->lower_bound_s, plan->predicted.step_time_s);
	plan->model_bound_s = known->model_bound_s;
	plan->model_best_s = fmin(known->model_best_s, plan->model_best_s);
	sw_plan_set_gaps(plan);
}

sw_status sw_leaf_search_with_room(sw_leaves *list, sw_leaf *leaf, int64_t spare_bytes,
                                   double time_limit_s, sw_error *err)
{
	const sw_leaf was = *leaf;
	const sw_plan known = {.lower_bound_s = leaf->plan->lower_bound_s,
	                       .model_bound_s = leaf->plan->model_bound_s,
	                       .model_best_s = leaf->plan->model_best_s};
	alternatives before = {0};
	if (was.won >= 64)
		return SW_OK;
	keep_alternatives(leaf, &before);
	leaf->meshes = UINT64_C(1) << was.won;
	leaf->spare_bytes = spare_bytes;
	leaf->unlimited = false;
	sw_status status = search(list, leaf, time_limit_s, err);
	if (leaf->plan && leaf->plan != was.plan)
		keep_known(leaf->plan, &before, &known);
	leaf->meshes = was.meshes;
	leaf->spare_bytes = 0;
	leaf->slow = was.slow;
	leaf->won = was.won;
	leaf->bound_s = was.bound_s;
	leaf->model_bound_s = was.model_bound_s;
	leaf->left_out = was.left_out;
	sw_vec_clear(&before);
	return status;
}
