/*
 * Leaves of the search: the program as it is, and padded in ways that may pay.
 *
 * First whole programs: dimensions padded to the next multiple of the devices where that adds next to nothing, and where it adds
 * more. What is padded and not split costs masks and longer loops; so for each contender of these, if it is not far behind,
 * the program is padded once more in those classes alone whose padding its dots need, and that contender is made again.
 * O(contenders) searches more; contenders that need the same classes share one, and what cannot be faster is not searched.
 */
#include "plan/internal.h"

#include <math.h>
#include <string.h>

/* At most this part of a dimension is added to it. */
static const int64_t shares[] = {16, 2};
/* Contenders that take longer than the best by more are not made again. */
#define FAR_BEHIND 2.0
/* A plan of the unpadded program that is as near to the bound of its kernels is left alone. */
#define CLOSE 1.05
#define ALL_MESHES UINT64_MAX

typedef struct leaf {
	sw_program *program; /* the plan's once there is one */
	sw_pad_rule rule;
	sw_padded_list padded;
	uint64_t hash;              /* of a padded program */
	uint64_t meshes;            /* of the strategy's meshes, by number: those to be searched */
	sw_pad_map map;             /* whole padded programs */
	sw_plan *plan;              /* NULL: nothing fits in memory */
	double roofline_s, bound_s; /* below all its plans */
} leaf;

/* The classes that a contender of a whole padded program needs. */
typedef struct need {
	sw_pad_rule rule;
	size_t mesh;
	double step_time_s;
} need;

typedef struct leaves {
	sw_arena arena;
	SW_VEC(leaf) items;
	SW_VEC(need) needs;
	const char *program_path;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_plan_options *options;
	sw_path_store *paths;
	double start_s;
	bool timed_out;  /* some leaf was not searched at all */
	char scope[192]; /* what the meshes leave out */
} leaves;

static const sw_program *program_of(const leaf *l)
{
	return l->program ? l->program : l->plan->program;
}

/* A leaf more; its meshes go to an earlier one of the same program if there is one. */
static sw_status add_leaf(leaves *list, sw_pad_rule rule, uint64_t meshes, sw_error *err)
{
	const sw_program *whole = program_of(&list->items.data[0]);
	leaf next = {.rule = rule, .meshes = meshes};
	sw_status status = sw_rewrite_pad(whole, rule, &next.program, &next.padded, err);
	bool known = status != SW_OK || !next.program;
	next.hash = known ? 0 : sw_program_hash(next.program);
	for (size_t i = 1; i < list->items.len && !known; i++) {
		known = list->items.data[i].hash == next.hash;
		list->items.data[i].meshes |= known ? meshes : 0;
	}
	if (known) {
		sw_program_free(next.program);
		sw_vec_clear(&next.padded);
		return status;
	}
	if (meshes == ALL_MESHES)
		next.map = sw_rewrite_pad_map(whole, rule, next.program, &list->arena);
	sw_vec_push(&list->items, next);
	return SW_OK;
}

static sw_status add_whole_leaves(leaves *list, sw_program *canonical, sw_error *err)
{
	sw_status status = SW_OK;
	sw_vec_push(&list->items, ((leaf){.program = canonical, .meshes = ALL_MESHES}));
	for (size_t i = 0; i < SW_COUNT(shares) && status == SW_OK; i++) {
		sw_pad_rule rule = {.multiple = list->cluster->n_devices, .share = shares[i]};
		status = add_leaf(list, rule, ALL_MESHES, err);
	}
	return status;
}

static void clear(leaves *list)
{
	for (size_t i = 0; i < list->items.len; i++) {
		sw_program_free(list->items.data[i].program);
		sw_plan_free(list->items.data[i].plan);
		sw_vec_clear(&list->items.data[i].padded);
	}
	sw_vec_clear(&list->items);
	sw_vec_clear(&list->needs);
	sw_path_store_free(list->paths);
	sw_arena_clear(&list->arena);
}

/* ---- what a contender needs --------------------------------------------------------------------------------- */

typedef struct listener {
	leaves *list;
	const leaf *leaf;
	const size_t *numbers; /* of the meshes that are searched */
} listener;

/* The classes of which a dimension is split here into parts that do not divide its true size. */
static void mark_needed(const leaf *l, const sw_plan *plan, sw_id value, const sw_layout *layout,
                        bool *needed)
{
	for (int32_t d = 0; d < sw_value_shape(plan->program, value).rank; d++) {
		size_t place = (size_t)value * SW_MAX_RANK + (size_t)d;
		int64_t parts =
			sw_atoms_group_size(&plan->cluster->atoms, sw_layout_split_atoms(layout, d));
		if (l->map.number[place] >= 0 && l->map.size[place] % parts != 0)
			needed[l->map.number[place]] = true;
	}
}

/* By what costs most: as dots and convolutions take and leave their values. */
static void find_needed(const leaf *l, const sw_plan *plan, bool *needed)
{
	const sw_program *program = plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		sw_layout layouts[3];
		if ((op->opcode != SW_OP_DOT && op->opcode != SW_OP_CONVOLUTION) ||
		    !sw_plan_op_layouts(plan, id, layouts, layouts + 2))
			continue;
		mark_needed(l, plan, op->operands[0], &layouts[0], needed);
		mark_needed(l, plan, op->operands[1], &layouts[1], needed);
		mark_needed(l, plan, op->first_result, &layouts[2], needed);
	}
}

static void note_need(void *context, size_t mesh, const sw_plan *plan, double step_time_s)
{
	const listener *s = context;
	int32_t n = s->leaf->map.n;
	bool *needed = sw_alloc((size_t)n + 1);
	int64_t *classes = SW_NEW_N(&s->list->arena, int64_t, n + 1);
	need found = {.rule = s->leaf->rule, .mesh = s->numbers[mesh], .step_time_s = step_time_s};
	find_needed(s->leaf, plan, needed);
	for (int32_t c = 0; c < n; c++)
		if (needed[c])
			classes[found.rule.classes.n++] = c;
	found.rule.classes.v = classes;
	free(needed);
	if (found.rule.classes.n > 0 && found.rule.classes.n < n)
		sw_vec_push(&s->list->needs, found);
}

/* ---- searching ------------------------------------------------------------------------------------------------ */

/* The leaf's meshes, whose names say how it is padded. */
static void choose_meshes(const leaf *l, sw_meshes *meshes, size_t *numbers)
{
	size_t kept = 0;
	for (size_t i = 0; i < meshes->len; i++) {
		if (l->meshes != ALL_MESHES && !(i < 64 && l->meshes >> i & 1))
			continue;
		sw_mesh *mesh = &meshes->data[kept];
		*mesh = meshes->data[i];
		numbers[kept++] = i;
		size_t length = strlen(mesh->name);
		if (l->padded.len > 0)
			snprintf(mesh->name + length, sizeof(mesh->name) - length, ", padded 1/%lld%s",
			         (long long)l->rule.share, l->rule.classes.n > 0 ? " in part" : "");
	}
	meshes->len = kept;
}

static leaf *best_leaf(const leaves *list)
{
	leaf *best = NULL;
	for (size_t i = 0; i < list->items.len; i++) {
		leaf *l = &list->items.data[i];
		if (l->plan &&
		    (!best || l->plan->predicted.step_time_s < best->plan->predicted.step_time_s))
			best = l;
	}
	return best;
}

/* By the model, which bounds are bounds of. */
static double known_s(const leaves *list)
{
	const leaf *best = best_leaf(list);
	return best ? best->plan->model_s : INFINITY;
}

static sw_status search_meshes(leaves *list, leaf *l, const sw_meshes *meshes, const size_t *numbers,
                               const sw_plan_options *options, sw_error *err)
{
	listener s = {list, l, numbers};
	sw_plan *plan = sw_plan_new(l->program, list->program_path, list->cluster);
	plan->strategy = options->strategy;
	plan->paths = list->paths;
	sw_planner planner;
	sw_planner_init(&planner, plan, list->sidecar);
	planner.known_s = known_s(list);
	planner.untied = options->untied;
	if (l->map.n > 0)
		planner.slack = FAR_BEHIND;
	sw_status status =
		sw_plan_search(&planner, meshes, options, l->map.n > 0 ? note_need : NULL, &s, plan, err);
	sw_planner_clear(&planner);
	plan->paths = NULL;
	l->bound_s = plan->lower_bound_s;
	if (status == SW_OK) {
		l->plan = plan;
		l->program = NULL;
	} else {
		plan->program = NULL; /* still the leaf's */
		sw_plan_free(plan);
	}
	return status;
}

/* SW_NO if nothing fits in memory: then the leaf has no plan. */
static sw_status search_leaf(leaves *list, leaf *l, const sw_plan_options *options, sw_error *err)
{
	sw_meshes meshes = {0};
	sw_roles roles;
	sw_roles_init(&roles, l->program, list->sidecar);
	sw_status status = sw_meshes_of(list->cluster, &options->strategy, &roles, &meshes, err);
	sw_roles_clear(&roles);
	if (status != SW_OK)
		return status;
	sw_meshes_limit(&meshes, program_of(&list->items.data[0]), list->scope, sizeof(list->scope));
	size_t *numbers = sw_alloc((meshes.len + 1) * sizeof(*numbers));
	choose_meshes(l, &meshes, numbers);
	status = search_meshes(list, l, &meshes, numbers, options, err);
	free(numbers);
	sw_vec_clear(&meshes);
	return status;
}

/* No plan of the program takes less: its kernels' time on one device, shared by all. */
static double roofline_s(const leaves *list, const sw_program *program)
{
	sw_program_cost cost;
	sw_cost_program(list->cluster, program, &cost);
	return cost.compute_s / (double)list->cluster->n_devices;
}

/* Can the leaf, with the parts of it that are tried after it, not be faster than what is there? If several sizes are padded, a part may be
 * little slower than the unpadded program: then nothing is tried where that has come close to its own bound. */
static bool is_hopeless(const leaves *list, const leaf *l)
{
	const leaf *best = best_leaf(list), *whole = &list->items.data[0];
	if (l == whole || !best)
		return false;
	double best_s = best->plan->predicted.step_time_s;
	if (l->padded.len == 1 || l->meshes != ALL_MESHES)
		return l->bound_s >= best_s;
	return best_s <= CLOSE * whole->roofline_s;
}

/* Leaves from `first` on; each gets an equal share of the time that is left, of which `reserve` shares stay. That nothing fits in memory
 * is said of the program as it is. */
static sw_status search_leaves(leaves *list, size_t first, size_t reserve, sw_error *err)
{
	for (size_t i = first; i < list->items.len; i++) {
		leaf *l = &list->items.data[i];
		sw_plan_options own = *list->options;
		double left_s = own.time_limit_s - (sw_now_s() - list->start_s);
		if (own.time_limit_s > 0)
			own.time_limit_s = SW_MAX(1e-3, left_s / (double)(list->items.len - i + reserve));
		l->bound_s = l->roofline_s = roofline_s(list, l->program);
		if (is_hopeless(list, l))
			continue;
		if (i > 0 && own.time_limit_s > 0 && left_s <= 0) {
			list->timed_out = true;
			continue;
		}
		sw_error other = {0};
		sw_status status = search_leaf(list, l, &own, i == 0 ? err : &other);
		if (status == SW_OK || status == SW_NO)
			continue;
		if (i > 0 && err)
			*err = other;
		return status;
	}
	return SW_OK;
}

static bool same_rule(sw_pad_rule a, sw_pad_rule b)
{
	return a.multiple == b.multiple && a.share == b.share && a.classes.n == b.classes.n &&
	       memcmp(a.classes.v, b.classes.v, sizeof(int64_t) * (size_t)a.classes.n) == 0;
}

/* A leaf per set of classes that contenders need which are not far behind, with the meshes of these. */
static sw_status add_part_leaves(leaves *list, sw_error *err)
{
	const leaf *best = best_leaf(list);
	double limit_s = best ? FAR_BEHIND * best->plan->predicted.step_time_s : INFINITY;
	sw_status status = SW_OK;
	for (size_t i = 0; i < list->needs.len && status == SW_OK; i++) {
		const need *first = &list->needs.data[i];
		uint64_t meshes = 0;
		bool seen = false;
		for (size_t k = 0; k < list->needs.len; k++) {
			const need *other = &list->needs.data[k];
			if (!same_rule(first->rule, other->rule))
				continue;
			seen = seen || k < i;
			if (other->mesh < 64 && other->step_time_s <= limit_s)
				meshes |= UINT64_C(1) << other->mesh;
		}
		if (meshes && !seen)
			status = add_leaf(list, first->rule, meshes, err);
	}
	return status;
}

/* ---- the answer ----------------------------------------------------------------------------------------------- */

/* Of the program as it is, and of the best leaf, all that was considered; of another leaf what won it. */
static void gather_alternatives(const leaves *list, sw_plan *plan)
{
	SW_VEC(sw_alternative) all = {0};
	for (size_t i = 0; i < list->items.len; i++) {
		const sw_plan *other = list->items.data[i].plan;
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

/* A bound that holds for all leaves. */
static void gather_bounds(const leaves *list, sw_plan *plan)
{
	plan->lower_bound_s = plan->predicted.step_time_s; /* it may be a little below the model's */
	for (size_t i = 0; i < list->items.len; i++)
		plan->lower_bound_s = SW_MIN(plan->lower_bound_s, list->items.data[i].bound_s);
	plan->gap = plan->model_s > 0 ? 1 - plan->lower_bound_s / plan->model_s : 0;
	snprintf(plan->scope, sizeof(plan->scope), "%s%s%s", list->scope,
	         sw_repeats_are_tied(plan->program, list->options->untied) ? ", repeated layers alike" : "",
	         list->items.len > 1 ? ", with and without padding to a multiple of the devices" : "");
}

/* That time ran out is worth a word, whichever leaf it was in. */
static void gather_warnings(const leaves *list, sw_plan *plan)
{
	if (list->timed_out && plan->warnings.len == 0)
		sw_vec_push(&plan->warnings, SW_TIME_LIMIT_WARNING);
	for (size_t i = 0; i < list->items.len && plan->warnings.len == 0; i++) {
		const sw_plan *other = list->items.data[i].plan;
		for (size_t k = 0; other && other != plan && k < other->warnings.len; k++)
			sw_vec_push(&plan->warnings, sw_arena_text(&plan->arena, other->warnings.data[k]));
	}
}

/* The plan of a padded program keeps the program as it was. */
static void take_unpadded(leaves *list, leaf *from, sw_plan *plan)
{
	leaf *whole = &list->items.data[0];
	sw_program **program = whole->program ? &whole->program : &whole->plan->program;
	plan->unpadded = *program;
	*program = NULL;
	plan->padding = from->rule;
	plan->padding.classes.v = sw_arena_copy(&plan->arena, from->rule.classes.v,
	                                        sizeof(int64_t) * (size_t)from->rule.classes.n);
	plan->padded = from->padded;
	from->padded = (sw_padded_list){0};
}

static sw_plan *take_plan(leaves *list, uint64_t hash)
{
	leaf *best = best_leaf(list);
	sw_plan *plan = best->plan;
	gather_alternatives(list, plan);
	gather_bounds(list, plan);
	gather_warnings(list, plan);
	plan->program_hash = hash;
	best->plan = NULL;
	if (best != list->items.data)
		take_unpadded(list, best, plan);
	return plan;
}

sw_status sw_plan_leaves(sw_program *canonical, const char *program_path, const sw_sidecar *sidecar,
                         const sw_cluster *cluster, const sw_plan_options *options, sw_plan **plan,
                         sw_error *err)
{
	leaves list = {.program_path = program_path,
	               .sidecar = sidecar,
	               .cluster = cluster,
	               .options = options,
	               .paths = sw_path_store_new(cluster),
	               .start_s = sw_now_s()};
	uint64_t hash = sw_program_hash(canonical);
	sw_arena_init(&list.arena);
	sw_status status = add_whole_leaves(&list, canonical, err);
	size_t wholes = list.items.len;
	if (status == SW_OK)
		status = search_leaves(&list, 0, wholes > 1, err);
	if (status == SW_OK)
		status = add_part_leaves(&list, err);
	if (status == SW_OK)
		status = search_leaves(&list, wholes, 0, err);
	if (status == SW_OK && !best_leaf(&list))
		status = SW_NO; /* err says it of the first leaf */
	if (status == SW_OK)
		*plan = take_plan(&list, hash);
	clear(&list);
	return status;
}
