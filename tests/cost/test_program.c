/* Programs with collectives, as a partitioner writes them: seconds, payload and counts. */
#include "cost/clusters.h"

static const level_text two_by_four[] = {{"2", 1e-3, 1e6, 0}, {"4", 1e-4, 1e7, 0}};

static double seconds(const sw_cluster *c, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	return sw_cost_collective((void *)c, kind, atoms, bytes);
}

static void cost_text(const char *text, sw_cluster *c, sw_program_cost *cost)
{
	sw_program *program = read_text(text);
	make_cluster(c, two_by_four, SW_COUNT(two_by_four));
	sw_cost_program(c, program, cost);
	sw_program_free(program);
}

#define SUM "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"

/* The collectives work over atoms 0 (nodes), 1 and 2 (devices). */
static void collectives_in_a_loop_count_once_per_trip(void **state)
{
	(void)state;
	const char *text =
		"HloModule step, num_partitions=8\n" SUM
		"cond { cs = (s32[], f32[64]) parameter(0)\n ci = s32[] get-tuple-element(cs), "
		"index=0\n"
		"  cn = s32[] constant(3)\n ROOT less = pred[] compare(ci, cn), direction=LT }\n"
		"body { bs = (s32[], f32[64]) parameter(0)\n bi = s32[] get-tuple-element(bs), "
		"index=0\n"
		"  bx = f32[64] get-tuple-element(bs), index=1\n one = s32[] constant(1)\n next = "
		"s32[] "
		"add(bi, one)\n"
		"  r = f32[64] all-reduce(bx), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, "
		"use_global_device_ids=true, to_apply=sum\n"
		"  q = f32[64] collective-permute(r), channel_id=2, "
		"source_target_pairs={{0,1},{1,0}}\n"
		"  ROOT bt = (s32[], f32[64]) tuple(next, q) }\n"
		"ENTRY main { x = f32[64] parameter(0)\n zero = s32[] constant(0)\n t = (s32[], "
		"f32[64]) "
		"tuple(zero, x)\n"
		"  w = (s32[], f32[64]) while(t), condition=cond, body=body\n"
		"  y = f32[64] get-tuple-element(w), index=1\n"
		"  ROOT g = f32[512] all-gather(y), channel_id=3, replica_groups=[1,8]<=[8], "
		"dimensions={0}, "
		"use_global_device_ids=true }\n";
	sw_cluster c;
	sw_program_cost cost;
	cost_text(text, &c, &cost);
	assert_int_equal(cost.collectives, 3 * 2 + 1);
	assert_int_equal(cost.payload_bytes, 3 * (2 * 192 + 256) + 7 * 256);
	double communication = 3 * (seconds(&c, SW_MOVE_ALL_REDUCE, 6, 256) +
	                            seconds(&c, SW_MOVE_PERMUTE, 4, 256)) +
	                       seconds(&c, SW_MOVE_ALL_GATHER, 7, 256);
	/* `next` in each iteration; `less` in the condition, once more than the body */
	double compute = 3 * (12 / 1e9 + 10e-6) + 4 * (9 / 1e9 + 10e-6);
	assert_seconds(cost.communication_s, communication);
	assert_seconds(cost.compute_s, compute);
	assert_seconds(cost.step_time_s, compute + communication);
	sw_cluster_clear(&c);
}

static void payload_is_that_of_the_rank_that_sends_most(void **state)
{
	(void)state;
	const char *text = "HloModule step, num_partitions=8\n"
			   "ENTRY main { x = f32[64] parameter(0)\n y = f32[32] parameter(1)\n"
			   "  p = f32[64] collective-permute(x), channel_id=1, "
			   "source_target_pairs={{0,1},{2,2}}\n"
			   "  q = f32[64] collective-permute(p), channel_id=2, "
			   "source_target_pairs={{2,3},{3,4}}\n"
			   "  r = f32[32] collective-permute(y), channel_id=3, "
			   "source_target_pairs={{3,2},{1,0}}\n"
			   "  ROOT t = (f32[64], f32[32]) tuple(q, r) }\n";
	sw_cluster c;
	sw_program_cost cost;
	cost_text(text, &c, &cost);
	assert_int_equal(cost.payload_bytes,
	                 /* rank 3; the bytes that rank 2 sends itself are not counted */
	                 256 + 128);
	assert_int_equal(cost.collectives, 3);
	sw_cluster_clear(&c);
}

static void every_kind_of_collective_has_its_payload(void **state)
{
	(void)state;
	const char *text =
		"HloModule step, num_partitions=8\n" SUM
		"ENTRY main { x = f32[64] parameter(0)\n y = f32[64,4] parameter(1)\n"
		"  rs = f32[32] reduce-scatter(x), channel_id=1, "
		"replica_groups=[4,2]<=[2,4]T(1,0), "
		"dimensions={0}, "
		"use_global_device_ids=true, to_apply=sum\n"
		"  aa = f32[64,4] all-to-all(y), channel_id=2, "
		"replica_groups={{0,1,2,3},{4,5,6,7}}, "
		"dimensions={1}\n"
		"  ar = (f32[64], f32[64,4]) all-reduce(x, aa), channel_id=3, replica_groups={}, "
		"use_global_device_ids=true, to_apply=sum\n"
		"  v = f32[64] get-tuple-element(ar), index=0\n"
		"  odd = f32[64] all-reduce(v), channel_id=4, "
		"replica_groups={{0,5},{1,4},{2,7},{3,6}}, "
		"use_global_device_ids=true, to_apply=sum\n"
		"  ROOT t = (f32[32], f32[64]) tuple(rs, odd) }\n";
	sw_cluster c;
	sw_program_cost cost;
	cost_text(text, &c, &cost);
	assert_int_equal(cost.payload_bytes, 128 + 768 + 2 * (224 + 896) + 256);
	/* The groups of the last op are not a set of atoms, so it costs as much as over all atoms.
	 */
	assert_seconds(cost.communication_s, seconds(&c, SW_MOVE_REDUCE_SCATTER, 1, 256) +
	                                             seconds(&c, SW_MOVE_ALL_TO_ALL, 6, 1024) +
	                                             seconds(&c, SW_MOVE_ALL_REDUCE, 7, 1280) +
	                                             seconds(&c, SW_MOVE_ALL_REDUCE, 7, 256));
	sw_cluster_clear(&c);
}

static void the_longest_branch_counts_and_a_shared_call_counts_twice(void **state)
{
	(void)state;
	const char *text =
		"HloModule step, num_partitions=8\n" SUM
		"shared { h = f32[64] parameter(0)\n ROOT hr = f32[64] all-reduce(h), "
		"channel_id=1, "
		"replica_groups={}, "
		"use_global_device_ids=true, to_apply=sum }\n"
		"yes { k = f32[64] parameter(0)\n k1 = f32[64] call(k), to_apply=shared\n"
		"  ROOT k2 = f32[64] call(k1), to_apply=shared }\n"
		"no { n = f32[64] parameter(0)\n ROOT nn = f32[64] negate(n) }\n"
		"ENTRY main { p = pred[] parameter(0)\n x = f32[64] parameter(1)\n"
		"  ROOT c = f32[64] conditional(p, x, x), true_computation=yes, "
		"false_computation=no }\n";
	sw_cluster c;
	sw_program_cost cost;
	cost_text(text, &c, &cost);
	assert_int_equal(cost.collectives, 2);
	assert_int_equal(cost.payload_bytes, 2 * 2 * 224);
	assert_seconds(cost.communication_s, 2 * seconds(&c, SW_MOVE_ALL_REDUCE, 7, 256));
	assert_seconds(cost.compute_s, 512 / 1e9 + 10e-6);
	sw_cluster_clear(&c);
}

static void the_peak_is_that_of_liveness(void **state)
{
	(void)state;
	const char *text =
		"HloModule m\nENTRY main { x = f32[64] parameter(0)\n y = f32[64] negate(x)\n"
		"  ROOT z = f32[64] add(y, y) }\n";
	sw_cluster c;
	sw_program_cost cost;
	cost_text(text, &c, &cost);
	sw_program *program = read_text(text);
	assert_int_equal(cost.peak_bytes, sw_program_peak_bytes(program, program->entry));
	assert_true(cost.peak_bytes >= 512);
	assert_int_equal(cost.payload_bytes, 0);
	assert_true(cost.communication_s == 0);
	sw_program_free(program);
	sw_cluster_clear(&c);
}

/* Trip counts come from the text: large ones must not overflow. */
static void counts_that_do_not_fit_stay_at_the_largest(void **state)
{
	(void)state;
	const char *text =
		"HloModule step, num_partitions=8\n" SUM
		"cond { cs = (s64[], f32[64]) parameter(0)\n ci = s64[] get-tuple-element(cs), "
		"index=0\n"
		"  cn = s64[] constant(9000000000000000000)\n ROOT less = pred[] compare(ci, cn), "
		"direction=LT }\n"
		"body { bs = (s64[], f32[64]) parameter(0)\n bi = s64[] get-tuple-element(bs), "
		"index=0\n"
		"  bx = f32[64] get-tuple-element(bs), index=1\n one = s64[] constant(1)\n next = "
		"s64[] "
		"add(bi, one)\n"
		"  r = f32[64] all-reduce(bx), channel_id=1, replica_groups={}, "
		"use_global_device_ids=true, to_apply=sum\n"
		"  q = f32[64] collective-permute(r), channel_id=2, "
		"source_target_pairs={{0,1},{1,0}}\n"
		"  ROOT bt = (s64[], f32[64]) tuple(next, q) }\n"
		"ENTRY main { x = f32[64] parameter(0)\n zero = s64[] constant(0)\n t = (s64[], "
		"f32[64]) "
		"tuple(zero, x)\n"
		"  ROOT w = (s64[], f32[64]) while(t), condition=cond, body=body }\n";
	sw_cluster c;
	sw_program_cost cost;
	cost_text(text, &c, &cost);
	assert_true(cost.payload_bytes == INT64_MAX);
	assert_true(cost.collectives == INT64_MAX);
	assert_true(cost.communication_s > 1e9);
	sw_cluster_clear(&c);
}

/* An asynchronous collective costs as much as the collective that it starts, once. */
static void an_async_start_costs_as_much_as_its_collective(void **state)
{
	(void)state;
	const char *text =
		"HloModule step, num_partitions=8\n" SUM
		"begun { p = f32[64] parameter(0)\n ROOT r = f32[64] all-reduce(p), channel_id=1, "
		"replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=sum }\n"
		"ENTRY main { x = f32[64] parameter(0)\n"
		"  begin = ((f32[64]), f32[64]) async-start(x), calls=begun\n"
		"  done = f32[64] async-done(begin)\n"
		"  copies = f32[64] collective-broadcast(done), "
		"replica_groups={{0,4},{1,5},{2,6},{3,7}}\n"
		"  ROOT minus = f32[64] negate(copies) }\n";
	sw_cluster c;
	sw_program_cost cost;
	cost_text(text, &c, &cost);
	sw_program *program = read_text(text);
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
	assert_true(sw_cost_collective_op(&c, program, find_op(program, "begin"), &kind, &atoms,
	                                  &bytes));
	assert_int_equal(kind, SW_COLLECTIVE_ALL_REDUCE);
	assert_int_equal(atoms, 6);
	assert_int_equal(bytes, 256);
	assert_true(sw_cost_collective_op(&c, program, find_op(program, "copies"), &kind, &atoms,
	                                  &bytes));
	assert_int_equal(kind, SW_COLLECTIVE_BROADCAST);
	assert_int_equal(atoms, 1);
	assert_false(sw_cost_collective_op(&c, program, find_op(program, "done"), &kind, &atoms,
	                                   &bytes));
	assert_false(sw_cost_collective_op(&c, program, find_op(program, "minus"), &kind, &atoms,
	                                   &bytes));
	double begun = sw_cost_collective_op_seconds(&c, program, find_op(program, "begin"));
	assert_seconds(begun, seconds(&c, SW_MOVE_ALL_REDUCE, 6, 256));
	assert_int_equal(cost.collectives, 2);
	assert_seconds(
		cost.communication_s,
		begun + sw_cost_collective_op_seconds(&c, program, find_op(program, "copies")));
	sw_program_free(program);
	sw_cluster_clear(&c);
}

/* Over atoms of 2 devices each, two devices differ in the atoms of the bits in which their numbers
 * differ, the outermost atom being the highest bit. */
static uint32_t atoms_of_bits(int difference)
{
	return (uint32_t)((difference >> 2 & 1) | (difference >> 1 & 1) << 1 |
	                  (difference & 1) << 2);
}

static void a_permute_works_over_the_atoms_in_which_any_pair_differs(void **state)
{
	sw_cluster c;
	(void)state;
	make_cluster(&c, two_by_four, SW_COUNT(two_by_four));
	assert_int_equal(c.atoms.n, 3);
	for (int first = 0; first < 8; first++)
		for (int second = 0; second < 8; second++) {
			char text[256];
			if (second == first) /* no device is a target twice */
				continue;
			snprintf(text, sizeof(text),
			         "HloModule step, num_partitions=8\nENTRY main { x = f32[64] "
			         "parameter(0)\n ROOT p = f32[64] collective-permute(x), "
			         "channel_id=1, source_target_pairs={{1,%d},{6,%d}} }\n",
			         first, second);
			sw_program *program = read_text(text);
			sw_collective_kind kind;
			uint32_t atoms;
			int64_t bytes;
			assert_true(sw_cost_collective_op(&c, program, find_op(program, "p"), &kind,
			                                  &atoms, &bytes));
			assert_int_equal(atoms,
			                 atoms_of_bits(1 ^ first) | atoms_of_bits(6 ^ second));
			sw_program_free(program);
		}
	sw_cluster_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_in_a_loop_count_once_per_trip),
		cmocka_unit_test(an_async_start_costs_as_much_as_its_collective),
		cmocka_unit_test(a_permute_works_over_the_atoms_in_which_any_pair_differs),
		cmocka_unit_test(payload_is_that_of_the_rank_that_sends_most),
		cmocka_unit_test(every_kind_of_collective_has_its_payload),
		cmocka_unit_test(the_longest_branch_counts_and_a_shared_call_counts_twice),
		cmocka_unit_test(the_peak_is_that_of_liveness),
		cmocka_unit_test(counts_that_do_not_fit_stay_at_the_largest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
