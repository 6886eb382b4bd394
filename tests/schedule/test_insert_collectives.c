/* Equal insertions of starts and dones are returned once; and the bytes of an order are those of
 * the arena. */
#include "schedule/internal.h"
#include "schedule/scheduled.h"

#include <math.h>

/* The gather's results are larger than its operand, so that the lead time decides when it begins;
 * the results of the all-reduce are not. */
#define PROGRAM(collective, result)                                                                \
	"HloModule m, num_partitions=4\n"                                                          \
	"add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, "      \
	"b)\n}\n"                                                                                  \
	"ENTRY e {\n"                                                                              \
	"  p = f32[1024]{0} parameter(0)\n"                                                        \
	"  q = f32[4096]{0} parameter(1)\n"                                                        \
	"  n = f32[1024]{0} negate(p)\n"                                                           \
	"  k1 = f32[4096]{0} exponential(q)\n"                                                     \
	"  k2 = f32[4096]{0} exponential(k1)\n"                                                    \
	"  k3 = f32[4096]{0} exponential(k2)\n"                                                    \
	"  k4 = f32[4096]{0} exponential(k3)\n"                                                    \
	"  k5 = f32[4096]{0} exponential(k4)\n"                                                    \
	"  c = " result "{0} " collective "\n"                                                     \
	"  d = " result "{0} negate(c)\n"                                                          \
	"  ROOT r = (f32[4096]{0}, " result "{0}) tuple(k5, d)\n}\n"

static size_t count_insertions(const char *hlo)
{
	static const double leads[] = {2, INFINITY};
	const uint32_t *orders[SW_COUNT(leads)];
	scheduled s;
	sw_arena arena;
	sw_task_source source;
	sw_tasks graph;
	uint32_t n;
	open_local(hlo, &s);
	sw_arena_init(&arena);
	sw_task_source_init(&source, &s.cluster, s.local, SW_OVERLAP_ALL, &arena);
	sw_tasks_make(&source, s.local->entry, &arena, &graph);
	const uint32_t *kernels = sw_order_program(&graph, &sw_schedule_default_limits, &arena, &n);
	size_t insertions =
		sw_insert_collectives(&graph, kernels, n, leads, SW_COUNT(leads),
	                              (sw_memory_allowance){1e9, INFINITY}, &arena, orders);
	sw_arena_clear(&arena);
	close_scheduled(&s);
	return insertions;
}

static void lead_times_differ_only_where_a_collective_grows(void **state)
{
	(void)state;
	assert_int_equal(
		count_insertions(PROGRAM("all-reduce(n), replica_groups={{0,1,2,3}}, "
	                                 "use_global_device_ids=true, channel_id=1, to_apply=add",
	                                 "f32[1024]")),
		1);
	assert_int_equal(count_insertions(PROGRAM(
				 "all-gather(n), replica_groups={{0,1,2,3}}, dimensions={0}, "
				 "use_global_device_ids=true, channel_id=1",
				 "f32[4096]")),
	                 2);
}

/* Return the peak bytes of the program's order; the figures of the computations that it calls are
 * filled on the way. */
static double count_bytes(sw_task_source *source, int32_t computation, sw_arena *arena)
{
	const sw_computation *c = &source->program->computations.data[computation];
	sw_tasks graph;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(source->program, c->ops.data[i]);
		for (uint16_t k = 0; sw_runs_computations(op) && k < op->n_called; k++)
			count_bytes(source, op->called[k], arena);
	}
	sw_tasks_make(source, computation, arena, &graph);
	uint32_t *order = SW_NEW_N(arena, uint32_t, graph.n + 1);
	for (uint32_t t = 0; t < graph.n; t++)
		order[t] = t;
	double bytes = sw_order_bytes(&graph, order, arena);
	sw_tasks_figure(source, &graph, 0, bytes, &source->figures[computation]);
	return bytes;
}

/* Values that share a buffer, results that are written over operands, and state that is carried in
 * place are counted once. */
static void bytes_are_counted_as_in_the_arena(void **state)
{
	static const struct {
		const char *name, *strategy, *remat;
		int32_t microbatches;
	} cases[] = {{"gpt", "zero3", "blocks", 4},
	             {"gpt", "dp", "none", 1},
	             {"gpt-scan", "zero3", "none", 1},
	             {"moe-mixtral-tiny", "zero1", "none", 1}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		scheduled s;
		sw_arena arena;
		sw_task_source source;
		assert_true(open_op_by_op(cases[i].name, "local-2x4", cases[i].strategy,
		                           cases[i].remat, cases[i].microbatches, &s));
		sw_arena_init(&arena);
		sw_task_source_init(&source, &s.cluster, s.local, SW_OVERLAP_ALL, &arena);
		double bytes = count_bytes(&source, s.local->entry, &arena);
		sw_placement *placement = sw_placement_new(s.local);
		double live = (double)placement->live_bytes;
		if (fabs(bytes - live) > 0.03 * live)
			fail_msg("%s, %s: %.0f bytes, of which the arena says %.0f", cases[i].name,
			         cases[i].strategy, bytes, live);
		sw_placement_free(placement);
		sw_arena_clear(&arena);
		close_scheduled(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lead_times_differ_only_where_a_collective_grows),
		cmocka_unit_test(bytes_are_counted_as_in_the_arena)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
