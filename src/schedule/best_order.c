/*
 * Which order a computation gets.
 *
 * Of several orders that is taken which the streams finish first, as a mean of when collectives
 * take what they should and of when they are LATE; of equal ones the first: the program's own, each
 * done right after its start; then, for each order of kernels (the program's; one that lets them
 * hide collectives; one that begins sums as soon as it can; two that feed the stream of
 * collectives; one that moves hardly anything, for little memory, and less yet if that holds too
 * much) and each way of prefetching (in time; as early as there is room), starts and dones placed,
 * and the same where what would wait lets others pass; then all of these with collectives that were
 * small in the best so far begun as one; until hardly anything is waited for. All but the first
 * only if they hold no more than that and the memory to spare, and take no longer.
 */
#include <math.h>
#include <string.h>

#include "schedule/internal.h"

typedef struct choice {
	sw_order best;
	uint32_t *order; /* the best's */
	sw_arena *arena;
	double expected_s, most_s, room_bytes, spare_bytes;
	double enough_s; /* nothing is much better */
} choice;

/* What a collective beside kernels takes is the least certain number here: whoever comes last to it
 * is waited for by all. So of orders that hide as much, the one that leaves collectives the most
 * time: those too count that hide them if they take so many times what they should. */
#define LATE 2

static uint32_t *program_order(const sw_tasks *graph, sw_arena *arena)
{
	uint32_t *order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		order[t] = t;
	return order;
}

/* False where it would be better, and holds too much. */
static bool consider(choice *c, const sw_tasks *graph, const uint32_t *order, sw_arena *scratch)
{
	double seconds = sw_streams_play(graph, order, 1, NULL);
	if (seconds > c->most_s || seconds >= c->expected_s) /* as it is late, it takes no less */
		return true;
	double expected_s = (seconds + sw_streams_play(graph, order, LATE, NULL)) / 2;
	if (expected_s >= c->expected_s)
		return true;
	double bytes = sw_order_bytes(graph, order, scratch);
	if (bytes > c->room_bytes)
		return false;
	memcpy(c->order, order, sizeof(*order) * graph->n);
	c->best = (sw_order){graph, c->order, seconds, bytes};
	c->expected_s = expected_s;
	return true;
}

static const double slacks[] = {2, INFINITY};

/* With these kernels in this order, holding no more than `room_bytes` if that is possible. False
 * where one of the placements holds too much. */
static bool consider_within(choice *c, const sw_tasks *graph, const uint32_t *kernels, uint32_t n,
                            double room_bytes, bool slipped)
{
	const uint32_t *placed[SW_COUNT(slacks)];
	sw_arena scratch;
	sw_arena_init(&scratch);
	size_t n_placed =
		sw_place_halves(graph, kernels, n, slacks, SW_COUNT(slacks),
	                        (sw_allowance){c->spare_bytes, room_bytes}, &scratch, placed);
	bool all_fit = true;
	for (size_t i = 0; i < n_placed; i++) {
		all_fit = consider(c, graph, placed[i], &scratch) && all_fit;
		if (slipped)
			consider(c, graph, sw_order_slip(graph, placed[i], &scratch), &scratch);
	}
	sw_arena_clear(&scratch);
	return all_fit;
}

/* An order of kernels may itself hold more than the program's: then less is begun ahead. False if
 * that, too, holds too much. */
static bool consider_placed(choice *c, const sw_tasks *graph, const uint32_t *kernels, uint32_t n)
{
	return consider_within(c, graph, kernels, n, INFINITY, true) ||
	       consider_within(c, graph, kernels, n, c->room_bytes, false);
}

static double seconds_of(const sw_tasks *graph, sw_task_kind kind)
{
	double seconds = 0;
	for (uint32_t t = 0; t < graph->n; t++)
		seconds += graph->tasks[t].kind == kind ? graph->tasks[t].seconds : 0;
	return seconds;
}

/* What is saved for less than this of a step is not worth new orders. */
#define WORTH_ORDERING 1e-4

/* Hardly anything is waited for, even where collectives are late. */
static bool is_enough(const choice *c)
{
	return c->expected_s <= c->enough_s;
}

typedef uint32_t *order_fn(const sw_tasks *graph, sw_arena *arena, uint32_t *n);

static bool consider_order(choice *c, const sw_tasks *graph, order_fn *order)
{
	uint32_t n;
	sw_arena scratch;
	sw_arena_init(&scratch);
	const uint32_t *kernels = order(graph, &scratch, &n);
	bool fits = consider_placed(c, graph, kernels, n);
	sw_arena_clear(&scratch);
	return fits;
}

static void consider_all(choice *c, const sw_tasks *graph)
{
	static order_fn *const orders[] = {sw_order_kept, sw_order_hide, sw_order_early,
	                                   sw_order_feed_soon, sw_order_feed_much};
	for (size_t i = 0; i < SW_COUNT(orders) && !is_enough(c); i++)
		consider_order(c, graph, orders[i]);
	if (!is_enough(c) && !consider_order(c, graph, sw_order_due))
		consider_order(c, graph, sw_order_due_barely);
}

/* The last of n + 1 numbers, among the others. */
static bool is_known(const double *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (numbers[i] == numbers[n])
			return true;
	return false;
}

/* Of the best so far, collectives begun as one: the stream has less to do. Where it is said how
 * many bytes are to be merged, they are; else that all all-reduces are that nobody waits for in
 * between is one of the ways. Ways that come to the same are looked at once. */
static void consider_combined(choice *c, const sw_cluster *cluster, int64_t merge_bytes)
{
	static const struct {
		double stretch;
		bool held;
		int64_t bytes;
	} ways[] = {{1, false, 0},
	            {1, true, 0},
	            {LATE, false, 0},
	            {LATE, true, 0},
	            {1, false, INT64_MAX / 4}};
	sw_order single = c->best;
	single.order =
		sw_arena_copy(c->arena, single.order, sizeof(*single.order) * single.graph->n);
	double least_s = WORTH_ORDERING * single.seconds, saved_s[SW_COUNT(ways)];
	double starts_s = seconds_of(single.graph, SW_TASK_START);
	if (merge_bytes) {
		c->expected_s = c->most_s = INFINITY;
		least_s = -INFINITY;
	}
	for (size_t i = 0; i < (merge_bytes ? 1 : SW_COUNT(ways)) && !is_enough(c); i++) {
		sw_tasks *graph = SW_NEW(c->arena, sw_tasks);
		uint32_t n;
		const uint32_t *kernels = sw_order_combine(
			cluster, single.graph, single.order, ways[i].stretch, ways[i].held,
			merge_bytes ? merge_bytes : ways[i].bytes, c->arena, graph, &n);
		saved_s[i] = kernels ? starts_s - seconds_of(graph, SW_TASK_START) : -INFINITY;
		if (!kernels || saved_s[i] < least_s || is_known(saved_s, i))
			continue;
		consider_placed(c, graph, kernels, n);
		consider_all(c, graph);
	}
}

sw_order sw_order_choose(const sw_cluster *cluster, const sw_tasks *graph, double spare_bytes,
                         int64_t merge_bytes, sw_arena *arena)
{
	choice c = {.order = SW_NEW_N(arena, uint32_t, graph->n + 1),
	            .arena = arena,
	            .expected_s = INFINITY,
	            .most_s = INFINITY,
	            .room_bytes = INFINITY,
	            .spare_bytes = fmax(spare_bytes, 0),
	            .enough_s = (seconds_of(graph, SW_TASK_KERNEL) +
	                         seconds_of(graph, SW_TASK_BLOCKING)) *
	                        (1 + WORTH_ORDERING)};
	consider(&c, graph, program_order(graph, arena), arena);
	c.most_s = c.best.seconds;
	c.room_bytes = c.best.bytes + spare_bytes;
	if (graph->n_starts == 0)
		return c.best;
	consider_all(&c, graph);
	consider_combined(&c, cluster, merge_bytes);
	return c.best;
}
