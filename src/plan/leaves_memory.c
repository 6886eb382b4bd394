/*
 * Leaves that take less memory, for more time: activations computed again (remat), the batch in turns (microbatches), both.
 *
 * They are tried only where memory is in the way: where the quickest plan of the program as it is would need more than there is. Predictions
 * order them: the peak is taken to be in proportion to that of one device by liveness, of which m microbatches have the activations of one and the sums of
 * gradients besides; the time is that of the quickest plan, with what is computed again and the overhead of the kernels of each turn. Of these choices only those are kept
 * that no other beats in both, a CHAIN from quick to small. The search begins at the first that should fit. If it does not, its peak corrects
 * the predictions of the others; once one fits, its neighbours are tried on both sides as long as that makes plans faster: the quicker
 * ones must split state more, the smaller ones less. So a handful of searches is made; what they bound is no faster is given up early.
 */
#include "plan/leaves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Searches beyond the first; where nothing fits yet, the last one is of the smallest choice. */
#define MOST_LEAVES 8
/* A choice is one only if it takes so much less than all quicker ones. */
#define WORTH 0.97
/* What would be faster by less if memory were no matter is not looked for. */
#define FAST_ENOUGH 1.005
#define MOST_MICROBATCHES 256

typedef struct choice {
	sw_rewrites rewrites;
	double seconds, bytes; /* predicted, of one device of the cluster */
	bool tried;
	size_t leaf; /* of the list, if it is one */
	bool is_leaf;
} choice;

typedef struct chain {
	sw_leaves *list;
	sw_arena arena;
	sw_remat_points points;
	sw_remat_policy_list policies;
	sw_phases phases;
	double state_bytes, sum_bytes; /* inputs that stay; the trained ones among them */
	double turn_s;                 /* what a turn more takes */
	SW_VEC(choice) items;
	int32_t searches;
	sw_error *err;
} chain;

/* ---- choices ------------------------------------------------------------------------------------------------ */

static void count_state(chain *x)
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
static double peak_of(const chain *x, const sw_remat_policy *policy, int32_t microbatches)
{
	double peak = (double)policy->peak_bytes;
	if (microbatches < 2)
		return peak;
	return x->state_bytes + x->sum_bytes + SW_MAX(peak - x->state_bytes, 0) / microbatches;
}

static void add_choice(chain *x, const sw_remat_policy *policy, int32_t microbatches)
{
	const sw_leaf *first = &x->list->items.data[0];
	double devices = (double)x->list->cluster->n_devices;
	choice c = {.rewrites = {.remat = policy->what.again ? policy->name : NULL,
	                         .microbatches = microbatches < 2 ? 0 : microbatches}};
	c.bytes = peak_of(x, policy, microbatches);
	c.seconds = first->free.step_time_s + policy->added_s / devices +
	            (SW_MAX(microbatches, 1) - 1) * x->turn_s;
	sw_vec_push(&x->items, c);
}

static bool is_asked(const sw_plan_options *options, const char *policy, int64_t microbatches)
{
	return (!options->remat || !strcmp(options->remat, policy)) &&
	       (options->microbatches == 0 || options->microbatches == microbatches);
}

static bool is_power_of_two(int64_t n)
{
	return (n & (n - 1)) == 0;
}

/* Powers of two, unless the batch has none. */
static bool is_candidate(const chain *x, int64_t microbatches)
{
	bool other = x->phases.batch % 2 != 0 || x->list->options->microbatches > 1;
	return microbatches <= MOST_MICROBATCHES && (other || is_power_of_two(microbatches));
}

static void list_choices(chain *x)
{
	for (size_t p = 0; p < x->policies.len; p++) {
		const sw_remat_policy *policy = &x->policies.data[p];
		if (is_asked(x->list->options, policy->name, 1))
			add_choice(x, policy, 1);
		for (int32_t i = 0; i < x->phases.possible.n; i++) {
			int64_t m = x->phases.possible.v[i];
			if (is_candidate(x, m) && is_asked(x->list->options, policy->name, m))
				add_choice(x, policy, (int32_t)m);
		}
	}
}

static int by_seconds(const void *a, const void *b)
{
	const choice *x = a, *y = b;
	int order = (x->seconds > y->seconds) - (x->seconds < y->seconds);
	return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool same_rewrites(const sw_rewrites *a, const sw_rewrites *b)
{
	return SW_MAX(a->microbatches, 1) == SW_MAX(b->microbatches, 1) && !a->remat == !b->remat &&
	       (!a->remat || !strcmp(a->remat, b->remat));
}

/* From one device to one of the cluster, in the proportion of the first leaf; which is the first of the chain, tried. */
static void keep_gainers(chain *x)
{
	const sw_leaf *first = &x->list->items.data[0];
	size_t n = 0;
	double least = INFINITY, scale = 1;
	for (size_t i = 0; i < x->items.len; i++)
		if (same_rewrites(&x->items.data[i].rewrites, &first->rewrites)) {
			scale = (double)first->free.peak_bytes / SW_MAX(x->items.data[i].bytes, 1);
			x->items.data[i].tried = x->items.data[i].is_leaf = true;
		}
	qsort(x->items.data, x->items.len, sizeof(choice), by_seconds);
	for (size_t i = 0; i < x->items.len; i++) {
		choice c = x->items.data[i];
		if (!c.tried && c.bytes > WORTH * least)
			continue;
		least = SW_MIN(least, c.bytes);
		c.bytes *= scale;
		x->items.data[n++] = c;
	}
	x->items.len = n;
}

static sw_status chain_init(chain *x, sw_leaves *list, sw_error *err)
{
	const sw_program *program = list->canonical;
	*x = (chain){.list = list, .err = err};
	sw_arena_init(&x->arena);
	x->turn_s = list->cluster->device.kernel_overhead_s * (double)sw_entry(program)->ops.len;
	count_state(x);
	sw_phases_init(&x->phases, program, list->sidecar);
	sw_remat_points_init(&x->points, program);
	sw_status status =
		sw_remat_policies(&x->points, sw_plan_remat_device(list->cluster, program), &x->policies, err);
	if (status != SW_OK)
		return status;
	list_choices(x);
	keep_gainers(x);
	return SW_OK;
}

static void chain_clear(chain *x)
{
	sw_vec_clear(&x->items);
	sw_vec_clear(&x->policies);
	sw_remat_points_clear(&x->points);
	sw_phases_clear(&x->phases);
	sw_arena_clear(&x->arena);
}

/* ---- trying them --------------------------------------------------------------------------------------------- */

static sw_status search(chain *x, size_t number)
{
	sw_leaves *list = x->list;
	sw_leaf *leaf = &list->items.data[number];
	double left_s = sw_leaves_left_s(list);
	const sw_leaf *best = sw_leaves_best(list);
	leaf->bound_s = leaf->roofline_s = sw_leaf_roofline_s(list, leaf);
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
static sw_status try_choice(chain *x, size_t i)
{
	choice *c = &x->items.data[i];
	sw_error why = {0};
	if (c->tried)
		return SW_OK;
	c->tried = true;
	sw_status status = sw_leaves_add(x->list, &c->rewrites, SW_ALL_MESHES, &c->leaf, &why);
	c->is_leaf = status == SW_OK;
	if (status == SW_OK)
		status = search(x, c->leaf);
	else if (status != SW_NO && x->err)
		*x->err = why;
	return status == SW_NO ? SW_OK : status;
}

static const sw_leaf *leaf_of(const chain *x, size_t i)
{
	const choice *c = &x->items.data[i];
	return c->is_leaf ? &x->list->items.data[c->leaf] : NULL;
}

static bool fits(const chain *x, size_t i)
{
	return leaf_of(x, i) && leaf_of(x, i)->plan;
}

static bool is_best(const chain *x, size_t i)
{
	return fits(x, i) && leaf_of(x, i) == sw_leaves_best(x->list);
}

/* The first behind `i` that should fit; the last if none should. */
static size_t first_fitting(const chain *x, size_t i, double memory_bytes)
{
	do
		i++;
	while (i + 1 < x->items.len && x->items.data[i].bytes > memory_bytes);
	return i;
}

/* What is predicted to need as much as would fit, where choice `i` was found to need more. */
static double corrected(const chain *x, size_t i)
{
	double memory = (double)sw_leaves_memory(x->list);
	const sw_leaf *leaf = leaf_of(x, i);
	if (!leaf || !leaf->least)
		return memory;
	double factor = x->items.data[i].bytes / (double)leaf->least->predicted.peak_bytes;
	return memory * SW_MIN(factor, 1.0);
}

/* *found: one that fits, else the number of choices. */
static sw_status find_fitting(chain *x, size_t *found)
{
	sw_status status = SW_OK;
	double memory = (double)sw_leaves_memory(x->list);
	size_t i = 0, last = x->items.len - 1;
	if (fits(x, 0)) {
		*found = 0;
		return SW_OK;
	}
	*found = x->items.len;
	while (status == SW_OK && i < last && *found == x->items.len) {
		i = x->searches + 1 >= MOST_LEAVES ? last : first_fitting(x, i, memory);
		status = try_choice(x, i);
		memory = SW_MIN(memory, corrected(x, i));
		if (fits(x, i))
			*found = i;
	}
	return status;
}

/* From one that fits, towards quicker choices and towards smaller ones, as long as that is faster. */
static sw_status climb(chain *x, size_t from)
{
	sw_status status = SW_OK;
	for (size_t i = from; status == SW_OK && i-- > 1 && x->searches < MOST_LEAVES;) {
		status = try_choice(x, i);
		if (!is_best(x, i))
			break;
	}
	for (size_t i = from + 1; status == SW_OK && i < x->items.len && x->searches < MOST_LEAVES; i++) {
		status = try_choice(x, i);
		if (!is_best(x, i))
			break;
	}
	return status;
}

static bool is_in_the_way(const sw_leaves *list)
{
	const sw_leaf *first = &list->items.data[0];
	return first->free.step_time_s > 0 && first->free.peak_bytes > sw_leaves_memory(list) &&
	       (!first->plan ||
	        first->plan->predicted.step_time_s > FAST_ENOUGH * first->free.step_time_s);
}

static bool is_open(const sw_plan_options *options)
{
	return !options->remat || options->microbatches == 0;
}

sw_status sw_leaves_save_memory(sw_leaves *list, sw_error *err)
{
	chain x;
	size_t found;
	if (!is_open(list->options) || !is_in_the_way(list))
		return SW_OK;
	sw_status status = chain_init(&x, list, err);
	if (status == SW_OK && x.items.len > 1)
		status = find_fitting(&x, &found);
	if (status == SW_OK && x.items.len > 1 && found < x.items.len)
		status = climb(&x, found);
	chain_clear(&x);
	return status;
}
