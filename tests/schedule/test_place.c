/* Placements that come out alike are given, and so played, once. */
#include "schedule/internal.h"
#include "schedule/scheduled.h"

#include <math.h>

/* The gather's results take more than its operand, so that slack decides when it begins; those of the sum do not. */
#define PROGRAM(collective, result)                                                                        \
	"HloModule m, num_partitions=4\n"                                                                  \
	"add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"       \
	"ENTRY e {\n"                                                                                      \
	"  p = f32[1024]{0} parameter(0)\n"                                                                \
	"  q = f32[4096]{0} parameter(1)\n"                                                                \
	"  n = f32[1024]{0} negate(p)\n"                                                                   \
	"  k1 = f32[4096]{0} exponential(q)\n"                                                             \
	"  k2 = f32[4096]{0} exponential(k1)\n"                                                            \
	"  k3 = f32[4096]{0} exponential(k2)\n"                                                            \
	"  k4 = f32[4096]{0} exponential(k3)\n"                                                            \
	"  k5 = f32[4096]{0} exponential(k4)\n"                                                            \
	"  c = " result "{0} " collective "\n"                                                             \
	"  d = " result "{0} negate(c)\n"                                                                  \
	"  ROOT r = (f32[4096]{0}, " result "{0}) tuple(k5, d)\n}\n"

static size_t count_placements(const char *hlo)
{
	static const double slacks[] = {2, INFINITY};
	const uint32_t *orders[SW_COUNT(slacks)];
	scheduled s;
	sw_arena arena;
	sw_task_source source;
	sw_tasks graph;
	uint32_t n;
	open_local(hlo, &s);
	sw_arena_init(&arena);
	sw_task_source_init(&source, &s.cluster, s.local, SW_OVERLAP_ALL, &arena);
	sw_tasks_make(&source, s.local->entry, &arena, &graph);
	const uint32_t *kernels = sw_order_kept(&graph, &arena, &n);
	size_t placements = sw_place_halves(&graph, kernels, n, slacks, SW_COUNT(slacks),
	                                    (sw_allowance){1e9, INFINITY}, &arena, orders);
	sw_arena_clear(&arena);
	close_scheduled(&s);
	return placements;
}

static void slack_is_tried_where_something_grows(void **state)
{
	(void)state;
	assert_int_equal(count_placements(PROGRAM("all-reduce(n), replica_groups={{0,1,2,3}}, "
	                                          "use_global_device_ids=true, channel_id=1, to_apply=add",
	                                          "f32[1024]")),
	                 1);
	assert_int_equal(
		count_placements(PROGRAM("all-gather(n), replica_groups={{0,1,2,3}}, dimensions={0}, "
	                                 "use_global_device_ids=true, channel_id=1",
	                                 "f32[4096]")),
		2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(slack_is_tried_where_something_grows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
