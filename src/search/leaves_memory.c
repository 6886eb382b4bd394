/*
 * Leaves that take less memory, for more time: activations computed again (remat), the batch in
 * iterations (microbatches), both.
 *
 * They are tried only where memory is in the way: where the quickest plan of the program as it is
 * would need more than there is. The choices are a grid of policies and numbers of microbatches.
 * Predictions order them: the peak is taken to be in proportion to that of one device by liveness,
 * of which m microbatches have the activations of one and the sums of gradients besides; the time
 * is that of the quickest plan, with what is computed again and the overhead of the kernels of each
 * iteration. The search begins at the quickest choice that should fit. If it does not, its peak
 * corrects the predictions; once one fits, its neighbours in the grid are tried as long as that
 * makes plans faster: what takes more memory must split more, what takes less may split less. So a
 * handful of searches is made; meshes that were slow in the best of them are left out of the next.
 */
#include "search/leaves.h"

#include <math.h>
#include <string.h>

/* Searches beyond the first; where nothing fits yet, the last one is of the smallest choice. */
#define MOST_LEAVES 8
#define MOST_MICROBATCHES 256

typedef struct choice {
	sw_rewrites rewrites;
	double seconds, bytes; /* predicted, of one device of the cluster */
	bool tried;
	size_t leaf; /* of the list, if it is one */
	bool is_leaf;
} choice;

typedef struct grid {
	sw_leaves *list;
	sw_arena arena;
	sw_remat_points points;
	/* rows: each takes longer and less memory than the one before */
	sw_remat_policy_list policies;
	sw_phases phases;
	SW_VEC(int32_t)
	/* columns, of microbatches, ascending; the first is 1 unless it was not asked for */
	counts;
	choice *items; /* [row][column] */
	size_t n;
	double state_bytes, sum_bytes; /* inputs that stay; the trained ones among them */
	double iteration_s;            /* what a iteration more takes */
	int32_t searches;
	sw_error *err;
} grid;

/* ---- choices ---------------------------------------------------------------------------- */

static void count_state(grid *x)
{
	const sw_program *program = x->list->canonical;
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, &x->arena, &inputs);
	for (uint32_t i = 0; i < n; i++) {
		sw_role role = x->list->sidecar->inputs[i].role;
		double bytes = (double)sw_shape_bytes(sw_value_shape(program, inputs[i]));
		x->state_bytes += bytes;
		x->sum_bytes += role == SW_ROLE_PARAMETER ? bytes : 0;
	}
}

/* Of one device that does everything. */
static double peak_of(const grid *x, const sw_remat_policy *policy, int32_t microbatches)
{
	double peak = (double)policy->peak_bytes;
	if (microbatches < 2)
		return peak;
	return x->state_bytes + x->sum_bytes + SW_MAX(peak - x->state_bytes, 0) / microbatches;
}

static bool is_asked(const sw_plan_options *options, const char *policy)
{
	return !options->remat || !strcmp(options->remat, policy);
}

static void choose_rows(grid *x)
{
	size_t n = 0;
	for (size_t i = 0; i < x->policies.len; i++)
		if (is_asked(x->list->options, x->policies.data[i].name))
			x->policies.data[n++] = x->policies.data[i];
	x->policies.len = n;
}

/* Weight gradients as soon as can be cost nothing: without there is the first leaf alone. */
static bool is_idle(const grid *x, size_t row)
{
	const sw_remat_policy *policies = x->policies.data;
	return !policies[row].what.again && row + 1 < x->policies.len &&
	       policies[row + 1].added_flops == 0;
}

/* Powers of two, unless the batch has none. */
static bool is_candidate(const grid *x, int64_t microbatches)
{
	int32_t asked = x->list->options->microbatches;
	bool is_power = (microbatches & (microbatches - 1)) == 0;
	if (asked > 0)
		return microbatches == asked;
	return microbatches <= MOST_MICROBATCHES && (is_power || x->phases.batch % 2 != 0);
}

static void choose_columns(grid *x)
{
	if (is_candidate(x, 1))
		sw_vec_push(&x->counts, 1);
	for (int32_t i = 0; i < x->phases.possible.n; i++)
		if (is_candidate(x, x->phases.possible.v[i]))
			sw_vec_push(&x->counts, (int32_t)x->phases.possible.v[i]);
}

static choice choice_of(const grid *x, const sw_remat_policy *policy, int32_t microbatches)
{
	const sw_leaf *first = &x->list->items.data[0];
	double devices = (double)x->list->cluster->n_devices, iterations_more = microbatches - 1;
	return (choice){.rewrites = {.remat = policy->what.again ? policy->name : NULL,
	                             .microbatches = microbatches < 2 ? 0 : microbatches},
	                .bytes = peak_of(x, policy, microbatches),
	                .seconds = first->free.step_time_s + policy->added_s / devices +
	                           iterations_more * x->iteration_s};
}

/* From one device that does everything to one of the cluster: in the proportion of the first leaf.
 */
static double scale_of(const grid *x, const sw_remat_policy *none)
{
	const sw_leaf *first = &x->list->items.data[0];
	const sw_remat_policy *policy = none;
	for (size_t i = 0; i < x->policies.len; i++)
		if (first->rewrites.remat &&
		    !strcmp(x->policies.data[i].name, first->rewrites.remat))
			policy = &x->policies.data[i];
	return (double)first->free.peak_bytes /
	       SW_MAX(peak_of(x, policy, SW_MAX(first->rewrites.microbatches, 1)), 1);
}

static bool is_first_leaf(const grid *x, const sw_rewrites *r)
{
	const sw_rewrites *first = &x->list->items.data[0].rewrites;
	return SW_MAX(r->microbatches, 1) == SW_MAX(first->microbatches, 1) &&
	       !r->remat == !first->remat && (!r->remat || !strcmp(r->remat, first->remat));
}

static void fill(grid *x, double scale)
{
	size_t columns = x->counts.len;
	x->n = x->policies.len * columns;
	x->items = SW_NEW_N(&x->arena, choice, x->n + 1);
	for (size_t i = 0; i < x->n; i++) {
		choice *c = &x->items[i];
		*c = choice_of(x, &x->policies.data[i / columns], x->counts.data[i % columns]);
		c->bytes *= scale;
		c->is_leaf = is_first_leaf(x, &c->rewrites);
		c->tried = c->is_leaf || is_idle(x, i / columns);
	}
}

static sw_status grid_init(grid *x, sw_leaves *list, sw_error *err)
{
	const sw_program *program = list->canonical;
	*x = (grid){.list = list, .err = err};
	sw_arena_init(&x->arena);
	x->iteration_s =
		list->cluster->device.kernel_overhead_s * (double)sw_entry(program)->ops.len;
	count_state(x);
	sw_phases_init(&x->phases, program, list->sidecar);
	sw_remat_points_init(&x->points, program);
	sw_status status = sw_remat_policies(
		&x->points, sw_plan_remat_device(list->cluster, program), &x->policies, err);
	if (status != SW_OK)
		return status;
	sw_remat_policy none = x->policies.data[0];
	choose_rows(x);
	choose_columns(x);
	fill(x, scale_of(x, &none));
	return SW_OK;
}

static void grid_clear(grid *x)
{
	sw_vec_clear(&x->counts);
	sw_vec_clear(&x->policies);
	sw_remat_points_clear(&x->points);
	sw_phases_clear(&x->phases);
	sw_arena_clear(&x->arena);
}

/* ---- trying them ------------------------------------------------------------------------ */

static sw_status search(grid *x, size_t number)
{
	sw_leaves *list = x->list;
	sw_leaf *leaf = &list->items.data[number];
	double left_s = sw_leaves_left_s(list);
	const sw_leaf *best = sw_leaves_best(list);
	leaf->model_bound_s = leaf->bound_s = leaf->roofline_s = sw_leaf_roofline_s(list, leaf);
	if (best && leaf->bound_s >= best->plan->predicted.step_time_s)
		return SW_OK;
	if (left_s <= 0) {
		list->timed_out = true;
		return SW_OK;
	}
	x->searches++;
	return sw_leaf_search(list, leaf, isfinite(left_s) ? left_s / 3 : 0, x->err);
}

/* A choice that a pass refuses after all is one that does not fit. */
static sw_status try_choice(grid *x, size_t i)
{
	choice *c = &x->items[i];
	sw_error why = {0};
	if (c->tried)
		return SW_OK;
	c->tried = true;
	const sw_leaf *best = sw_leaves_best(x->list);
	uint64_t slow = x->list->items.data[0].slow | (best ? best->slow : 0);
	sw_status status =
		sw_leaves_add(x->list, &c->rewrites, SW_ALL_MESHES & ~slow, &c->leaf, &why);
	c->is_leaf = status == SW_OK;
	if (status == SW_OK)
		status = search(x, c->leaf);
	else if (status != SW_NO && x->err)
		*x->err = why;
	return status == SW_NO ? SW_OK : status;
}

static const sw_leaf *leaf_of(const grid *x, size_t i)
{
	const choice *c = &x->items[i];
	return c->is_leaf ? &x->list->items.data[c->leaf] : NULL;
}

static bool fits(const grid *x, size_t i)
{
	return leaf_of(x, i) && leaf_of(x, i)->plan;
}

/* ---- one that fits ---------------------------------------------------------------------- */

/* The quickest untried one that should fit; else the smallest; the number of choices if there is
 * none. */
static size_t most_promising(const grid *x, double memory_bytes, bool smallest)
{
	size_t best = x->n;
	for (size_t i = 0; i < x->n; i++) {
		const choice *c = &x->items[i], *b = best < x->n ? &x->items[best] : NULL;
		if (c->tried)
			continue;
		bool small = c->bytes <= memory_bytes && !smallest,
		     best_small = b && b->bytes <= memory_bytes && !smallest;
		if (!b || (small && !best_small) || (small && c->seconds < b->seconds) ||
		    (!small && !best_small && c->bytes < b->bytes))
			best = i;
	}
	return best;
}

/* What is predicted to need as much as would fit, where choice `i` was found to need more. */
static double corrected(const grid *x, size_t i)
{
	double memory = (double)sw_leaves_memory(x->list);
	const sw_leaf *leaf = leaf_of(x, i);
	if (!leaf || !leaf->least)
		return memory;
	double factor = x->items[i].bytes / (double)leaf->least->predicted.peak_bytes;
	return memory * SW_MIN(factor, 1.0);
}

static bool is_smallest(const grid *x, size_t i)
{
	for (size_t k = 0; k < x->n; k++)
		if (x->items[k].bytes < x->items[i].bytes)
			return false;
	return true;
}

/* Once the smallest does not fit, none will. */
static sw_status find_fitting(grid *x)
{
	sw_status status = SW_OK;
	double memory = (double)sw_leaves_memory(x->list);
	while (status == SW_OK && !sw_leaves_best(x->list)) {
		size_t i = most_promising(x, memory, x->searches + 1 >= MOST_LEAVES / 2);
		if (i == x->n)
			break;
		status = try_choice(x, i);
		memory = SW_MIN(memory, corrected(x, i));
		if (!fits(x, i) && is_smallest(x, i))
			break;
	}
	return status;
}

/* ---- a faster one ----------------------------------------------------------------------- */

/* A choice of the grid whose plan is the best; the number of choices if it is another leaf. */
static size_t best_choice(const grid *x)
{
	size_t i = 0;
	while (i < x->n && (!leaf_of(x, i) || leaf_of(x, i) != sw_leaves_best(x->list)))
		i++;
	return i;
}

#define NEARLY 1.25

/* Does nothing fit? Some of what was given up as too slow might, if what needs least is not far
 * from it. */
static bool is_too_large(const grid *x, const sw_leaf *leaf)
{
	const sw_plan *least = leaf->least;
	bool all = true;
	if (sw_leaf_is_too_large(x->list, leaf))
		return true;
	for (size_t i = 0; least && i < least->alternatives.len; i++)
		all = all && least->alternatives.data[i].bound_s == 0;
	return least && (all || (double)least->predicted.peak_bytes >
	                                NEARLY * (double)sw_leaves_memory(x->list));
}

/* Has one that needs no more memory been found not to fit? */
static bool cannot_fit(const grid *x, size_t row, size_t column)
{
	size_t columns = x->counts.len;
	for (size_t i = 0; i < x->n; i++)
		if (i / columns >= row && i % columns >= column && leaf_of(x, i) &&
		    is_too_large(x, leaf_of(x, i)))
			return true;
	return false;
}

/* The next neighbour to be tried: first what does the same with more computed again and fewer
 * iterations. The number of choices: none. */
static size_t next_neighbour(const grid *x, size_t at)
{
	static const int moves[][2] = {{1, -1}, {1, 0}, {0, -1}, {-1, 0}, {0, 1}, {-1, 1}};
	size_t columns = x->counts.len;
	for (size_t k = 0; k < SW_COUNT(moves); k++) {
		size_t row = at / columns + (size_t)moves[k][0],
		       column = at % columns + (size_t)moves[k][1];
		if (row < x->policies.len && column < columns &&
		    !x->items[row * columns + column].tried && !cannot_fit(x, row, column))
			return row * columns + column;
	}
	return x->n;
}

static sw_status climb(grid *x)
{
	sw_status status = SW_OK;
	while (status == SW_OK && x->searches < MOST_LEAVES) {
		size_t at = best_choice(x), next = at < x->n ? next_neighbour(x, at) : x->n;
		if (next == x->n)
			break;
		status = try_choice(x, next);
	}
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static bool is_open(const sw_plan_options *options)
{
	return !options->remat || options->microbatches == 0;
}

sw_status sw_leaves_save_memory(sw_leaves *list, sw_error *err)
{
	grid x;
	if (!is_open(list->options) || sw_leaves_left_s(list) <= 0) {
		list->timed_out = list->timed_out || is_open(list->options);
		return SW_OK;
	}
	sw_status status = grid_init(&x, list, err);
	if (status == SW_OK)
		status = find_fitting(&x);
	if (status == SW_OK)
		status = climb(&x);
	grid_clear(&x);
	return status;
}
