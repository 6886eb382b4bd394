/* Small programs whose step time is known in closed form. */
#include "interpret/interpret.h"
#include "simulate/plays.h"

#include <math.h>

#define TWO "{name: device, count: 2, latency: 0, bandwidth: 4}"
/* Devices 0 | 1 2 | 3 4 5. */
#define UNEQUAL                                                                                    \
	"{name: node, count: 3, latency: 0, bandwidth: 4}, {name: device, count: [1, 2, 3], "      \
	"latency: 0, "                                                                             \
	"bandwidth: 40}"
#define GATHER(NAME, SIZE, WHOLE)                                                                  \
	NAME " { " NAME ".x = f32[" SIZE "] parameter(0)\n ROOT " NAME ".g = f32[" WHOLE           \
	     "] all-gather(" NAME ".x), channel_id=1, replica_groups={}, dimensions={0}, "         \
	     "use_global_device_ids=true }\n"
#define COUNT_TO(NAME, TRIPS)                                                                      \
	NAME " { " NAME ".s = (s64[], f32[10]) parameter(0)\n " NAME                               \
	     ".i = s64[] get-tuple-element(" NAME ".s), index=0\n"                                 \
	     " " NAME ".n = s64[] constant(" TRIPS ")\n ROOT " NAME ".l = pred[] compare(" NAME    \
	     ".i, " NAME ".n), direction=LT }\n"

/* ---- one kernel, one collective --------------------------------------------------------- */

static void collectives_beside_kernels_are_hidden(void **state)
{
	(void)state;
	static const int kernels[] = {0, 4, 1000};
	for (size_t i = 0; i < SW_COUNT(kernels); i++) {
		sw_text text = {0};
		scene s;
		sw_text_addf(
			&text,
			"HloModule m, num_partitions=2\n" GATHER(
				"gather", "10",
				"20") "ENTRY main { x = f32[10] parameter(0)\n y = f32[%d] "
				      "parameter(1)\n"
				      "  s = ((f32[10]), f32[20]) async-start(x), calls=gather\n"
				      "  k = f32[%d] negate(y)\n  d = f32[20] async-done(s)\n"
				      "  ROOT t = (f32[%d], f32[20]) tuple(k, d) }\n",
			kernels[i], kernels[i], kernels[i]);
		play_scene(&s, TWO, text.data);
		double k = kernels[i], c = seconds_of(&s, "s");
		assert_true(c > 4 && c < 1000);
		assert_seconds(s.played.step_time_s, fmax(k, c));
		assert_breakdown(&s.played.ranks[1], k, fmax(0, c - k), 0, fmin(k, c));
		scene_clear(&s);
		sw_text_clear(&text);
	}
}

/* The cases: a kernel that ends beside the collective, one that goes on after it, and two that
 * share it; a second collective waits for the first, and takes its share too. */
static void kernels_beside_collectives_are_slower(void **state)
{
	(void)state;
	static const struct {
		const char *kernels;
		double seconds, collectives; /* of kernels by themselves; that are beside them */
	} cases[] = {
		{"  k = f32[4] negate(y)\n", 4, 1},
		{"  k = f32[4] negate(y)\n  k2 = f32[1000] negate(z)\n", 1004, 1},
		{"  s2 = ((f32[10]), f32[60]) async-start(x), calls=again\n  k = f32[1000] "
	         "negate(z)\n"
	         "  d2 = f32[60] async-done(s2)\n",
	         1000, 2},
	};
	const double share = 0.25;
	for (size_t i = 0; i < 2 * SW_COUNT(cases); i++) {
		sw_text text = {0};
		scene s;
		sw_text_addf(&text,
		             "HloModule m, num_partitions=6\n" GATHER("gather", "10", "60")
		                     GATHER("again", "10",
		                            "60") "ENTRY main { x = f32[10] parameter(0)\n y = "
		                                  "f32[4] parameter(1)\n z = f32[1000] "
		                                  "parameter(2)\n"
		                                  "  s = ((f32[10]), f32[60]) async-start(x), "
		                                  "calls=gather\n%s  d = f32[60] "
		                                  "async-done(s)\n"
		                                  "  ROOT n = f32[60] negate(d) }\n",
		             cases[i / 2].kernels);
		play_sharing_scene(
			&s, i % 2 ? UNEQUAL : "{name: device, count: 6, latency: 0, bandwidth: 4}",
			share, text.data);
		double k = cases[i / 2].seconds,
		       beside = cases[i / 2].collectives * seconds_of(&s, "s");
		double together = fmin(k / (1 - share), k + share * beside);
		assert_true(beside > 6 && beside < 500);
		assert_seconds(s.played.step_time_s, fmax(together, beside) + 60);
		assert_seconds(s.played.ranks[0].compute_s, together + 60);
		scene_clear(&s);
		sw_text_clear(&text);
	}
}

static void a_blocking_collective_hides_nothing(void **state)
{
	(void)state;
	scene s;
	play_scene(
		&s, TWO,
		"HloModule m, num_partitions=2\nENTRY main { x = f32[10] parameter(0)\n y = f32[7] "
		"parameter(1)\n"
		"  g = f32[20] all-gather(x), channel_id=1, replica_groups={}, dimensions={0}, "
		"use_global_device_ids=true\n"
		"  k = f32[7] negate(y)\n  ROOT t = (f32[7], f32[20]) tuple(k, g) }\n");
	assert_seconds(s.played.step_time_s, 7 + seconds_of(&s, "g"));
	assert_breakdown(&s.played.mean, 7, seconds_of(&s, "g"), 0, 0);
	scene_clear(&s);
}

/* The program waits for the second one first: it ends after both. */
static void collectives_run_in_the_order_of_their_starts(void **state)
{
	(void)state;
	scene s;
	play_scene(&s, TWO,
	           "HloModule m, num_partitions=2\n" GATHER("gather", "10", "20") GATHER(
			   "small", "3",
			   "6") "ENTRY main { x = f32[10] parameter(0)\n y = f32[3] parameter(1)\n"
	                        "  s1 = ((f32[10]), f32[20]) async-start(x), calls=gather\n"
	                        "  s2 = ((f32[3]), f32[6]) async-start(y), calls=small\n"
	                        "  d2 = f32[6] async-done(s2)\n  k = f32[6] negate(d2)\n  d1 = "
	                        "f32[20] async-done(s1)\n"
	                        "  ROOT t = (f32[6], f32[20]) tuple(k, d1) }\n");
	double c = seconds_of(&s, "s1") + seconds_of(&s, "s2");
	assert_seconds(s.played.step_time_s, c + 6);
	assert_breakdown(&s.played.ranks[0], 6, c, 0, 0);
	scene_clear(&s);
}

/* ---- unequal devices -------------------------------------------------------------------- */

/* Devices 4 and 5 share a node, whose links are ten times as fast. The link of the node of 1 and 2
 * carries two groups. */
static void groups_take_the_time_of_their_own_links(void **state)
{
	(void)state;
	scene s;
	play_scene(
		&s, UNEQUAL,
		"HloModule m, num_partitions=6\nENTRY main { x = f32[10] parameter(0)\n ROOT g = "
		"f32[20] all-gather(x), "
		"channel_id=1, replica_groups={{0,1},{2,3},{4,5}}, dimensions={0}, "
		"use_global_device_ids=true }\n");
	double c = seconds_of(&s, "g"), inside = c * (40.0 / 40) / (2 * 40.0 / 4);
	assert_seconds(s.played.step_time_s, c);
	for (int r = 0; r < 4; r++)
		assert_breakdown(&s.played.ranks[r], 0, c, 0, 0);
	for (int r = 4; r < 6; r++)
		assert_breakdown(&s.played.ranks[r], 0, inside, c - inside, 0);
	assert_breakdown(&s.played.mean, 0, (4 * c + 2 * inside) / 6, 2 * (c - inside) / 6, 0);
	scene_clear(&s);
}

/* Members that arrive early wait for the others: that is idle time, not communication. */
static void a_collective_begins_when_its_last_member_arrives(void **state)
{
	(void)state;
	scene s;
	play_scene(&s, UNEQUAL,
	           "HloModule m, num_partitions=6\nENTRY main { x = f32[10] parameter(0)\n g = "
	           "f32[20] "
	           "all-gather(x), "
	           "channel_id=1, replica_groups={{0,1},{2,3},{4,5}}, dimensions={0}, "
	           "use_global_device_ids=true\n"
	           "  ROOT h = f32[120] all-gather(g), channel_id=2, replica_groups={}, "
	           "dimensions={0}, "
	           "use_global_device_ids=true }\n");
	double c = seconds_of(&s, "g"), inside = c / 20, last = seconds_of(&s, "h");
	assert_seconds(s.played.step_time_s, c + last);
	assert_breakdown(&s.played.ranks[0], 0, c + last, 0, 0);
	assert_breakdown(&s.played.ranks[5], 0, inside + last, c - inside, 0);
	scene_clear(&s);
}

#define NODES_2_2_1(BANDWIDTH)                                                                     \
	"{name: node, count: 3, latency: 0, bandwidth: " BANDWIDTH "}, "                           \
	"{name: device, count: [2, 2, 1], latency: 0, bandwidth: 4000}"

/* Send f32[n] and f32[m] from node 0 to node 1 at once. */
static void check_shared_link(const char *levels, int n, int m, double first, double both)
{
	sw_text text = {0};
	scene s;
	sw_text_addf(
		&text,
		"HloModule m, num_partitions=5\nENTRY main { x = f32[%d] parameter(0)\n y = "
		"f32[%d] "
		"parameter(1)\n"
		"  p = f32[%d] collective-permute(x), channel_id=1, source_target_pairs={{0,2}}\n"
		"  q = f32[%d] collective-permute(y), channel_id=2, source_target_pairs={{1,3}}\n"
		"  ROOT t = (f32[%d], f32[%d]) tuple(p, q) }\n",
		n, m, n, m, n, m);
	play_scene(&s, levels, text.data);
	assert_seconds(s.played.ranks[0].exposed_comm_s, first);
	assert_seconds(s.played.ranks[2].exposed_comm_s, first);
	assert_seconds(s.played.ranks[1].exposed_comm_s, both);
	assert_seconds(s.played.step_time_s, both);
	assert_breakdown(&s.played.ranks[4], 0, 0, both, 0);
	scene_clear(&s);
	sw_text_clear(&text);
}

/* At 4 bytes a second. The cost model gives a permute on these atoms 1.5 times the seconds of its
 * message alone. */
static void two_that_share_a_link_take_twice_as_long(void **state)
{
	(void)state;
	check_shared_link(NODES_2_2_1("4"), 8, 8, 2 * 8, 2 * 8);
	check_shared_link(NODES_2_2_1("4"), 8, 16, 2 * 8, 2 * 8 + 1.5 * 8);
}

static void the_slowest_link_of_a_path_is_shared(void **state)
{
	(void)state;
	check_shared_link(NODES_2_2_1("[2, 4, 4]"), 8, 8, 2 * 16, 2 * 16);
	check_shared_link(NODES_2_2_1("[4, 2, 4]"), 8, 8, 2 * 16, 2 * 16);
	check_shared_link(NODES_2_2_1("[4, 4, 2]"), 8, 8, 16,
	                  16); /* the cost model includes node 2, which is not on the path */
}

/* ---- loops and branches ----------------------------------------------------------------- */

#define BODY(NAME, INSIDE)                                                                         \
	NAME " { " NAME ".s = (s64[], f32[10]) parameter(0)\n " NAME                               \
	     ".i = s64[] get-tuple-element(" NAME ".s), index=0\n " NAME                           \
	     ".x = f32[10] get-tuple-element(" NAME ".s), index=1\n " NAME                         \
	     ".one = s64[] constant(1)\n " NAME ".next = s64[] add(" NAME ".i, " NAME              \
	     ".one)\n" INSIDE " ROOT " NAME ".t = (s64[], f32[10]) tuple(" NAME ".next, " NAME     \
	     ".y) }\n"
#define LOOP(NAME, X, BODY, COND)                                                                  \
	NAME ".zero = s64[] constant(0)\n " NAME ".in = (s64[], f32[10]) tuple(" NAME ".zero, " X  \
	     ")\n " NAME ".w = (s64[], f32[10]) while(" NAME ".in), condition=" COND               \
	     ", body=" BODY "\n " NAME " = f32[10] get-tuple-element(" NAME ".w), index=1\n"
#define SUM                                                                                        \
	"sum { sa = f32[] parameter(0)\n sb = f32[] parameter(1)\n ROOT sc = f32[] add(sa, sb) "   \
	"}\n"
#define REDUCE(NAME, X)                                                                            \
	NAME " = f32[10] all-reduce(" X                                                            \
	     "), channel_id=7, replica_groups={}, use_global_device_ids=true, to_apply=sum\n"

/* The seconds of counting, per iteration: the body's add; and the compare, which runs once more. */
#define ADD_S (24 / 8.0)
#define COMPARE_S (17 / 8.0)

static void without_overlap_the_step_is_the_sum(void **state)
{
	(void)state;
	static const char *const clusters[] = {TWO, UNEQUAL};
	for (size_t i = 0; i < SW_COUNT(clusters); i++) {
		scene s;
		sw_program_cost cost;
		play_scene(&s, clusters[i],
		           "HloModule m\n" SUM COUNT_TO("ic", "1000") BODY(
				   "ib", "ib.k = f32[10] negate(ib.x)\n" REDUCE("ib.y", "ib.k"))
		                   COUNT_TO("oc", "30")
		                           BODY("ob", LOOP("ob.y", "ob.x", "ib",
		                                           "ic")) "ENTRY main { x = f32[10] "
		                                                  "parameter(0)\n" LOOP(
									  "y", "x", "ob",
									  "oc") " ROOT z = "
		                                                                "f32[10] "
		                                                                "negate(y) }\n");
		sw_cost_program(&s.cluster, s.program, &cost);
		assert_true(cost.compute_s > 30 * 1000 * (ADD_S + COMPARE_S) &&
		            cost.communication_s > 30 * 1000);
		assert_seconds(s.played.step_time_s, cost.step_time_s);
		assert_breakdown(&s.played.ranks[1], cost.compute_s, cost.communication_s, 0, 0);
		assert_int_equal(s.played.peak_bytes, sw_placement_bytes(s.program));
		scene_clear(&s);
	}
}

#define REDUCED                                                                                    \
	"reduced { reduced.x = f32[10] parameter(0)\n ROOT " REDUCE("reduced.y", "reduced.x") " }" \
											      "\n"

/* A collective that begins before the loop ends in its first iteration, which is therefore longer
 * than the others. */
static void skipped_iterations_overlap_as_played_ones(void **state)
{
	(void)state;
	scene s;
	play_scene(&s, TWO,
	           "HloModule m, num_partitions=2\n" SUM GATHER(
			   "gather", "5000", "10000") REDUCED COUNT_TO("c", "1000000")
	                   BODY("b", "b.a = ((f32[10]), f32[10]) async-start(b.x), calls=reduced\n "
	                             "b.k = f32[10] negate(b.x)\n"
	                             " b.d = f32[10] async-done(b.a)\n b.y = f32[10] add(b.d, "
	                             "b.k)\n") "ENTRY main { x = f32[10] parameter(0)\n u = "
	                                       "f32[5000] parameter(1)\n"
	                                       "  a = ((f32[5000]), f32[10000]) async-start(u), "
	                                       "calls=gather\n" LOOP(
						       "y", "x", "b",
						       "c") "  d = f32[10000] async-done(a)\n ROOT "
	                                                    "t = (f32[10], f32[10000]) tuple(y, d) "
	                                                    "}\n");
	double before = seconds_of(&s, "a"), c = seconds_of(&s, "b.a"), k = 10 + ADD_S, add = 15,
	       trips = 1e6;
	assert_true(before > COMPARE_S + k);
	/* The body's add is listed before its start. */
	double iteration = ADD_S + fmax(c, 10) + add + COMPARE_S;
	assert_seconds(s.played.step_time_s,
	               before + c + add + COMPARE_S + (trips - 1) * iteration);
	assert_seconds(s.played.mean.compute_s, COMPARE_S + trips * (k + add + COMPARE_S));
	scene_clear(&s);
}

static void more_iterations_than_can_be_counted_take_no_longer_to_play(void **state)
{
	(void)state;
	static const char *const clusters[] = {TWO, UNEQUAL};
	for (size_t i = 0; i < SW_COUNT(clusters); i++) {
		scene s;
		play_scene(&s, clusters[i],
		           "HloModule m\n" SUM COUNT_TO("c", "9000000000000000000")
		                   BODY("b", REDUCE("b.y", "b.x")) "ENTRY main { x = f32[10] "
		                                                   "parameter(0)\n" LOOP(
									   "y", "x", "b",
									   "c") " ROOT z = f32[10] "
		                                                                "negate(y) }\n");
		assert_seconds(s.played.step_time_s,
		               9e18 * (seconds_of(&s, "b.y") + ADD_S + COMPARE_S));
		scene_clear(&s);
	}
}

static void the_most_expensive_branch_is_taken(void **state)
{
	(void)state;
	scene s;
	play_scene(&s, TWO,
	           "HloModule m, num_partitions=2\n" SUM "yes { k = f32[10] parameter(0)\n " REDUCE(
			   "kr",
			   "k") " ROOT kn = f32[10] negate(kr) }\n"
	                        "no { n = f32[10] parameter(0)\n ROOT nn = f32[10] negate(n) }\n"
	                        "ENTRY main { p = pred[] parameter(0)\n x = f32[10] parameter(1)\n"
	                        "  ROOT c = f32[10] conditional(p, x, x), true_computation=yes, "
	                        "false_computation=no }\n");
	assert_seconds(s.played.step_time_s, seconds_of(&s, "kr") + 10);
	scene_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_beside_kernels_are_hidden),
		cmocka_unit_test(kernels_beside_collectives_are_slower),
		cmocka_unit_test(a_blocking_collective_hides_nothing),
		cmocka_unit_test(collectives_run_in_the_order_of_their_starts),
		cmocka_unit_test(groups_take_the_time_of_their_own_links),
		cmocka_unit_test(a_collective_begins_when_its_last_member_arrives),
		cmocka_unit_test(two_that_share_a_link_take_twice_as_long),
		cmocka_unit_test(the_slowest_link_of_a_path_is_shared),
		cmocka_unit_test(without_overlap_the_step_is_the_sum),
		cmocka_unit_test(skipped_iterations_overlap_as_played_ones),
		cmocka_unit_test(more_iterations_than_can_be_counted_take_no_longer_to_play),
		cmocka_unit_test(the_most_expensive_branch_is_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
