/* Orders against all orders and senders of small transfers, and the bound against all of them. */
#include "crossmesh/transfers.h"

#include <math.h>

#include "crossmesh/transfer_bound.h"
#include "test.h"

#define CASES 300
#define MAX_TASKS 5
#define MAX_SCHEDULES 40000

static uint64_t first_seed(void)
{
	const char *given = getenv("SW_SEED");
	return given ? strtoull(given, NULL, 10) : 1;
}

/* ---- all orders ------------------------------------------------------------------------- */

typedef struct all_orders {
	const ways_list *ways;
	timeline line;
	placed_task placed[MAX_TASKS];
	bool used[MAX_TASKS];
	double best;
} all_orders;

static void try_all(all_orders *a, int32_t depth)
{
	if (depth == a->ways->n) {
		timeline_reset(&a->line);
		for (int32_t i = 0; i < depth; i++)
			timeline_place(
				&a->line,
				&a->ways->tasks[a->placed[i].task].options[a->placed[i].option],
				NULL);
		a->best = fmin(a->best, a->line.end);
		return;
	}
	for (int32_t t = 0; t < a->ways->n; t++) {
		if (a->used[t])
			continue;
		a->used[t] = true;
		for (int32_t o = 0; o < a->ways->tasks[t].n; o++) {
			a->placed[depth] = (placed_task){t, o};
			try_all(a, depth + 1);
		}
		a->used[t] = false;
	}
}

static double count_schedules(const ways_list *ways)
{
	double n = 1;
	for (int32_t t = 0; t < ways->n; t++)
		n *= (t + 1) * ways->tasks[t].n;
	return n;
}

/* What the best order is held against. */
typedef struct small_case {
	transfer t;
	sw_arena arena;
	slice_list slices;
	link_table links;
	task_list tasks;
	ways_list ways;
} small_case;

static bool draw_case(sw_rng *rng, sw_crossmesh_strategy strategy, small_case *c)
{
	*c = (small_case){.t = transfer_drawn(rng, true)};
	sw_arena_init(&c->arena);
	c->slices = slices_find(&c->t.from, &c->t.to, c->t.shape, &c->arena);
	c->links = links_make(&c->t.cluster, &c->t.from, &c->t.to, &c->arena);
	c->tasks = tasks_make(&c->t.cluster, &c->slices, c->t.shape, 1, &c->arena);
	c->ways = ways_make(&c->links, &c->slices, &c->tasks, strategy, 0, &c->arena);
	return c->ways.n >= 2 && c->ways.n <= MAX_TASKS &&
	       count_schedules(&c->ways) <= MAX_SCHEDULES;
}

static void clear_case(small_case *c)
{
	sw_arena_clear(&c->arena);
	transfer_clear(&c->t);
}

static double best_of_all(small_case *c)
{
	all_orders all = {.ways = &c->ways, .best = INFINITY};
	all.line = timeline_new(&c->links, &c->arena);
	try_all(&all, 0);
	return all.best;
}

static double seconds_by(const small_case *c, sw_crossmesh_strategy strategy,
                         sw_crossmesh_order order)
{
	sw_crossmesh_options options = {.strategy = strategy, .order = order, .pieces = 1};
	sw_crossmesh_plan *plan = plan_of(&c->t, &options);
	double seconds = plan->seconds;
	sw_crossmesh_plan_free(plan);
	return seconds;
}

/* The depth-first search leaves a transfer only when it is as quick as can be, or 0.2 % from the
 * bound. The random search finds the best of nearly all. */
static void searches_find_the_best_order(void **state)
{
	int compared = 0, drawn_best = 0;
	(void)state;
	print_message("seed %llu\n", (unsigned long long)first_seed());
	for (uint64_t i = 0; compared < CASES; i++) {
		sw_rng rng = {.seed = first_seed() + i};
		sw_crossmesh_strategy strategy =
			i % 4 ? SW_CROSSMESH_BROADCAST : SW_CROSSMESH_SEND_RECV;
		small_case c;
		if (draw_case(&rng, strategy, &c)) {
			double best = best_of_all(&c), room = 1 + SW_CROSSMESH_TOLERANCE + 1e-9;
			double bound = bound_of(&c.t.cluster, &c.t.from, &c.t.to, &c.slices,
			                        &c.links, c.t.shape, &c.arena)
			                       .seconds;
			double all = seconds_by(&c, strategy, SW_CROSSMESH_ENSEMBLE);
			double drawn = seconds_by(&c, strategy, SW_CROSSMESH_RANDOM);
			if (bound > best * (1 + 1e-12))
				fail_msg("seed %llu: %s: the best order takes %g s, the bound is "
				         "%g s",
				         (unsigned long long)rng.seed, c.t.text.data, best, bound);
			bool few_phases = strategy == SW_CROSSMESH_BROADCAST;
			if (all > best * (few_phases ? room : 1.2))
				fail_msg("seed %llu: %s: ensemble %g s, best %g s",
				         (unsigned long long)rng.seed, c.t.text.data, all, best);
			drawn_best += drawn <= best * room;
			compared++;
		}
		clear_case(&c);
	}
	print_message("random finds the best of %d of %d\n", drawn_best, compared);
	assert_true(drawn_best >= compared * 9 / 10);
}

/* ---- senders ---------------------------------------------------------------------------- */

/* The maximum over all sets of hosts. */
static double least_by_sets(const send_demand *demands, int32_t n, const double *rates,
                            int32_t hosts)
{
	double most = 0;
	for (uint32_t set = 1; set < 1u << hosts; set++) {
		double rate = 0, bytes = 0;
		for (int32_t h = 0; h < hosts; h++)
			rate += set >> h & 1 ? rates[h] : 0;
		for (int32_t d = 0; d < n; d++) {
			bool inside = true;
			for (int32_t i = 0; i < demands[d].n; i++)
				inside = inside && (set >> demands[d].hosts[i] & 1);
			bytes += inside ? demands[d].bytes : 0;
		}
		most = fmax(most, bytes / rate);
	}
	return most;
}

static void the_least_to_send_is_that_of_the_worst_set(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2000; i++) {
		sw_rng rng = {.seed = first_seed() + i};
		int32_t n = 1 + (int32_t)sw_rng_below(&rng, 8),
			hosts = 1 + (int32_t)sw_rng_below(&rng, 7);
		int32_t lists[8][8];
		double rates[8], bytes;
		bool set[8] = {false};
		send_demand demands[8];
		for (int32_t h = 0; h < hosts; h++)
			rates[h] = 1 + (double)sw_rng_below(&rng, 5);
		for (int32_t d = 0; d < n; d++) {
			demands[d] =
				(send_demand){1 + (double)sw_rng_below(&rng, 100), 0, lists[d]};
			for (int32_t h = 0; h < hosts; h++)
				if (sw_rng_below(&rng, 3) == 0)
					lists[d][demands[d].n++] = h;
			if (demands[d].n == 0)
				lists[d][demands[d].n++] = (int32_t)sw_rng_below(&rng, hosts);
		}
		double found = send_least_s(demands, n, rates, hosts, set, &bytes);
		double expected = least_by_sets(demands, n, rates, hosts);
		if (fabs(found - expected) > 1e-9 * expected)
			fail_msg("seed %llu: %.12g, not %.12g", (unsigned long long)rng.seed, found,
			         expected);
	}
}

/* ---- cases by hand ---------------------------------------------------------------------- */

/* The bound in units of the whole tensor over one link of a node. */
static const struct {
	const char *from, *to;
	double bound;
} bounds[] = {
	{"S0R@2x2:0-3", "S0R@2x2:4-7", 0.5}, /* each node half */
	{"RR@2x2:0-3", "RR@2x2:4-7", 1},     /* each node all */
	{"S0R@4:0,2,4,6", "RR@1:8", 1},      /* all into one */
	{"RR@1:0", "S0R@4:2,4,6,8", 1},      /* all out of one */
	{"RR+P0@2:0,2", "RR@1:4", 1},        /* two terms, each out of its node */
	{"RR+P0@2:0,1", "RR@1:4", 1},        /* one node sends the sum once */
	{"S0R@2:0,2", "S0R@3:4,6,8", 0.5},   /* halves out, thirds in */
};

static void bounds_are_those_of_the_volumes(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bounds); i++) {
		transfer t = transfer_of(plain_cluster(5, 2), "f32[12000,1000]", bounds[i].from,
		                         bounds[i].to);
		sw_crossmesh_options options = sw_crossmesh_defaults();
		sw_crossmesh_plan *plan = plan_of(&t, &options);
		double unit = (double)sw_shape_bytes(t.shape) / 1000e6;
		if (fabs(plan->bound.seconds - bounds[i].bound * unit) > 1e-9 * unit)
			fail_msg("%s: the bound is %g, not %g", t.text.data,
			         plan->bound.seconds / unit, bounds[i].bound);
		assert_true(sw_crossmesh_gap(plan) < 0.02);
		sw_crossmesh_plan_free(plan);
		transfer_clear(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(searches_find_the_best_order),
		cmocka_unit_test(the_least_to_send_is_that_of_the_worst_set),
		cmocka_unit_test(bounds_are_those_of_the_volumes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
