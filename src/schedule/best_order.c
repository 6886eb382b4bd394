/*
 * The search for the order of a computation.
 *
 * Candidate orders are played on the two streams, once with collectives that take their predicted
 * seconds and once with LATE ones (stretched by late_stretch); the mean of both times, by
 * late_weight, is compared. The incumbent is replaced only by a smaller mean, so that of equal ones
 * the first stays. The candidates are, in this order: the program's own, each done right after its
 * start; then, for each order of kernels (order_*.c) and each lead time of prefetches
 * (prefetch_lead; as early as memory allows), starts and dones inserted between the kernels, and
 * the same with waits deferred; then the incumbent improved by order_justify.c; then all of these
 * again with collectives merged that are small in the incumbent. What the plan's merge groups hold
 * together is one collective from the beginning, and the order that it gives sums is kept. The search
 * stops when the incumbent waits for hardly anything, or, behind the first orders, if these are far
 * behind what another program takes; and before any merging if another program is quicker than that
 * can become. A candidate may hold no more than the program's own order and the spare memory, and take
 * no longer than the program's own order.
 */
#include <math.h>
#include <string.h>

#include "schedule/internal.h"

typedef struct order_search {
	sw_order best;
	uint32_t *order; /* of the incumbent */
	const sw_schedule_limits *limits;
	sw_arena *arena;
	double expected_s, max_s, max_bytes, spare_bytes;
	double enough_s; /* stop at this expected_s */
	sw_order_rivals rivals;
} order_search;

static uint32_t *program_order(const sw_tasks *graph, sw_arena *arena)
{
	uint32_t *order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		order[t] = t;
	return order;
}

/* Make the order the incumbent if it is better and fits. Returns false if it is better but holds
 * too much. */
static bool consider(order_search *c, const sw_tasks *graph, const uint32_t *order,
                     sw_arena *scratch)
{
	double seconds = sw_streams_play(graph, order, 1, NULL);
	if (seconds > c->max_s || seconds >= c->expected_s) /* no late time is smaller */
		return true;
	double late_s = sw_streams_play(graph, order, c->limits->late_stretch, NULL);
	double weight = c->limits->late_weight;
	double expected_s = (1 - weight) * seconds + weight * late_s;
	if (expected_s >= c->expected_s)
		return true;
	double bytes = sw_order_bytes(graph, order, scratch);
	if (bytes > c->max_bytes)
		return false;
	memcpy(c->order, order, sizeof(*order) * graph->n);
	c->best = (sw_order){graph, c->order, seconds, bytes};
	c->expected_s = expected_s;
	return true;
}

/* Consider the kernels in this order, holding no more than `max_bytes` if that is possible. Returns
 * false if one of the insertions is better but holds too much. */
static bool consider_within(order_search *c, const sw_tasks *graph, const uint32_t *kernels,
                            uint32_t n, double max_bytes, bool defers)
{
	const double leads[] = {c->limits->prefetch_lead, INFINITY};
	const uint32_t *placed[SW_COUNT(leads)];
	sw_arena scratch;
	sw_arena_init(&scratch);
	size_t n_placed = sw_insert_collectives(graph, kernels, n, leads, SW_COUNT(leads),
	                                        (sw_memory_allowance){c->spare_bytes, max_bytes},
	                                        &scratch, placed);
	bool all_fit = true;
	for (size_t i = 0; i < n_placed; i++) {
		all_fit = consider(c, graph, placed[i], &scratch) && all_fit;
		if (defers)
			consider(c, graph, sw_order_defer_waits(graph, placed[i], &scratch),
			         &scratch);
	}
	sw_arena_clear(&scratch);
	return all_fit;
}

/* Consider an order of kernels; one that holds more than the program's order is tried again with
 * less begun ahead. Returns false if that holds too much too. */
static bool consider_placed(order_search *c, const sw_tasks *graph, const uint32_t *kernels,
                            uint32_t n)
{
	return consider_within(c, graph, kernels, n, INFINITY, true) ||
	       consider_within(c, graph, kernels, n, c->max_bytes, false);
}

static double seconds_of(const sw_tasks *graph, sw_task_kind kind)
{
	double seconds = 0;
	for (uint32_t t = 0; t < graph->n; t++)
		seconds += graph->tasks[t].kind == kind ? graph->tasks[t].seconds : 0;
	return seconds;
}

/* True if the incumbent waits for hardly anything, even where collectives are late. */
static bool is_enough(const order_search *c)
{
	return c->expected_s <= c->enough_s;
}

static bool is_beaten(const order_search *c)
{
	return c->best.seconds > c->rivals.beaten_s;
}

static bool consider_order(order_search *c, const sw_tasks *graph, sw_kernel_order_fn *order)
{
	uint32_t n;
	sw_arena scratch;
	sw_arena_init(&scratch);
	const uint32_t *kernels = order(graph, c->limits, &scratch, &n);
	bool fits = consider_placed(c, graph, kernels, n);
	sw_arena_clear(&scratch);
	return fits;
}

static void consider_all(order_search *c, const sw_tasks *graph)
{
	static sw_kernel_order_fn *const orders[] = {sw_order_program, sw_order_backward,
	                                             sw_order_earliest_start, sw_order_least_work,
	                                             sw_order_least_work_ratio};
	for (size_t i = 0; i < SW_COUNT(orders) && !is_enough(c) && !(i && is_beaten(c)); i++)
		consider_order(c, graph, orders[i]);
	if (!is_enough(c) && !is_beaten(c) && !consider_order(c, graph, sw_order_deferred))
		consider_order(c, graph, sw_order_deferred_tight);
}

/* True if the last of n + 1 numbers is among the others. */
static bool is_repeated(const double *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (numbers[i] == numbers[n])
			return true;
	return false;
}

#define MERGE_WAYS 5
/* Orders in which it is seen which groups of reductions end soonest. */
static sw_kernel_order_fn *const early[] = {sw_order_earliest_start, sw_order_program,
                                            sw_order_least_work_ratio, sw_order_backward};

/* The ways to merge, by the times of an order; the seconds of collectives that each saves are
 * listed, so that ways that save the same are considered once. */
typedef struct order_merging {
	const sw_cluster *cluster;
	const sw_tasks *single; /* nothing is merged yet */
	double single_s;        /* of its collectives */
	double min_saved_s;
	double saved_s[2 * MERGE_WAYS + SW_COUNT(early)];
	size_t n;
} order_merging;

static void consider_ways(order_search *c, order_merging *m, const uint32_t *order,
                          const sw_merge_way *ways, size_t n_ways)
{
	for (size_t i = 0; i < n_ways && !is_enough(c); i++) {
		sw_tasks *graph = SW_NEW(c->arena, sw_tasks);
		uint32_t n;
		const uint32_t *kernels = sw_order_combine(m->cluster, m->single, order, ways[i],
		                                           c->limits, c->arena, graph, &n);
		double *saved_s = &m->saved_s[m->n++];
		*saved_s = kernels ? m->single_s - seconds_of(graph, SW_TASK_START) : -INFINITY;
		if (!kernels || *saved_s < m->min_saved_s || is_repeated(m->saved_s, m->n - 1))
			continue;
		consider_placed(c, graph, kernels, n);
		consider_all(c, graph);
	}
}

static double most_saved_s(const order_merging *m)
{
	double most_s = 0;
	for (size_t i = 0; i < m->n; i++)
		most_s = fmax(most_s, m->saved_s[i]);
	return most_s;
}

/* Consider collectives merged, which leaves their stream less to do, and all orders of the merged
 * graph. If the plan gives how much to merge, that is the only way; else one of the ways is to
 * merge all all-reduces for which no op waits in between. What may be merged is seen in an order:
 * in the incumbent, and in the program's with all waits as late as can be, if that saves more; which
 * groups of reductions end soonest, in several orders without waits. What is predicted grows no
 * longer by the last two. Where the plan gives how much, it is seen in the program's order without
 * waits, unless nothing fits then. */
static void consider_merged(order_search *c, const sw_cluster *cluster, sw_merge merge)
{
	double late = c->limits->late_stretch;
	const sw_merge_way given = {.stretch = 1, .merge = merge},
			   soonest = {.stretch = 1, .soonest = true}, faster[MERGE_WAYS] = {
		{.stretch = 1},
		{.stretch = 1, .deferred = true},
		{.stretch = late},
		{.stretch = late, .deferred = true},
		{.stretch = 1, .merge = {.bytes = INT64_MAX / 4}},
	};
	const sw_tasks *single = c->best.graph;
	const uint32_t *order =
		sw_arena_copy(c->arena, c->best.order, sizeof(*c->best.order) * single->n);
	const uint32_t *without_waits = sw_order_last_waits(single, NULL, c->limits, c->arena);
	double min_saved_s = c->limits->min_gain * c->best.seconds;
	order_merging m = {.cluster = cluster,
	             .single = single,
	             .single_s = seconds_of(single, SW_TASK_START),
	             .min_saved_s = min_saved_s};
	if (sw_merge_is_given(merge)) {
		c->expected_s = c->max_s = INFINITY;
		m.min_saved_s = -INFINITY;
		consider_ways(c, &m, without_waits, &given, 1);
		if (c->best.graph == single) /* that takes too much memory */
			consider_ways(c, &m, order, &given, 1);
		return;
	}
	consider_ways(c, &m, order, faster, MERGE_WAYS);
	m.min_saved_s += most_saved_s(&m);
	double max_s = c->max_s;
	c->max_s = c->best.seconds;
	consider_ways(c, &m, without_waits, faster, MERGE_WAYS);
	m.min_saved_s = min_saved_s;
	for (size_t i = 0; i < SW_COUNT(early); i++)
		consider_ways(c, &m,
		              sw_order_last_waits(single, early[i], c->limits, c->arena),
		              &soonest, 1);
	c->max_s = max_s;
}

/* Improve the incumbent by passes backwards and forwards over it, until they bring nothing. What is
 * predicted grows no longer, however much late collectives gain. */
static void justify(order_search *c)
{
	double before_s, max_s = c->max_s;
	do {
		sw_arena scratch;
		sw_arena_init(&scratch);
		const sw_tasks *graph = c->best.graph;
		uint32_t *order = sw_order_justify(graph, c->order, &scratch), n = 0;
		before_s = c->expected_s;
		c->max_s = c->best.seconds;
		consider(c, graph, order, &scratch);
		for (uint32_t t = 0; t < graph->n; t++)
			if (sw_task_computes(&graph->tasks[order[t]]))
				order[n++] = order[t];
		consider_placed(c, graph, order, n);
		sw_arena_clear(&scratch);
	} while (c->expected_s < before_s * (1 - c->limits->min_gain) && !is_enough(c));
	c->max_s = max_s;
}

/* Return the graph in which all-reduces of the plan's merge groups are one; where an op waits
 * between two of them, which is seen in an order that waits for nothing before it must, they are
 * several. */
static const sw_tasks *merge_groups(const sw_cluster *cluster, const sw_tasks *graph,
                                    sw_merge merge, const sw_schedule_limits *limits,
                                    sw_arena *arena)
{
	sw_merge_way way = {.stretch = 1, .groups = true, .merge = merge};
	sw_tasks *merged = SW_NEW(arena, sw_tasks);
	uint32_t n;
	if (merge.n_groups == 0)
		return graph;
	const uint32_t *order = sw_order_last_waits(graph, NULL, limits, arena);
	return sw_order_combine(cluster, graph, order, way, limits, arena, merged, &n) ? merged
										       : graph;
}

sw_order sw_order_best(const sw_cluster *cluster, const sw_tasks *single, double spare_bytes,
                       sw_order_rivals rivals, sw_merge merge, const sw_schedule_limits *limits,
                       sw_arena *arena)
{
	const sw_tasks *graph =
		sw_order_said(merge_groups(cluster, single, merge, limits, arena), arena);
	order_search c = {.order = SW_NEW_N(arena, uint32_t, graph->n + 1),
	                  .arena = arena,
	                  .limits = limits,
	                  .expected_s = INFINITY,
	                  .max_s = INFINITY,
	                  .max_bytes = INFINITY,
	                  .rivals = rivals,
	                  .spare_bytes = fmax(spare_bytes, 0),
	                  .enough_s = (seconds_of(graph, SW_TASK_KERNEL) +
	                               seconds_of(graph, SW_TASK_BLOCKING)) *
	                              (1 + limits->min_gain)};
	consider(&c, graph, program_order(graph, arena), arena);
	c.max_s = c.best.seconds;
	c.max_bytes = c.best.bytes + spare_bytes;
	if (graph->n_starts == 0)
		return c.best;
	consider_all(&c, graph);
	if (is_beaten(&c))
		return c.best;
	if (!is_enough(&c))
		justify(&c);
	if (c.best.seconds > rivals.unmerged_s && !sw_merge_is_given(merge))
		return c.best;
	consider_merged(&c, cluster, merge);
	if (!is_enough(&c))
		justify(&c);
	return c.best;
}
