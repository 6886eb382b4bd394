/* How Nanotron synchronises under ZeRO-1 (bench/measured). */
#include "test.h"

#include "../../bench/measured/zero1.c"

#define DEVICES 8
#define ROWS 8192

/* A gradient in f32 is scattered, and a weight in bf16 gathered. */
static sw_program *synchronises(void)
{
	const sw_groups all = {.n_groups = 0}; /* of all */
	sw_program *p = sw_program_new("step");
	p->num_partitions = DEVICES;
	p->entry = sw_build_computation(p, "main");
	sw_id gradient = sw_emit_parameter(p, p->entry, sw_build_shape(p, SW_F32, (int64_t[]){ROWS, ROWS}, 2), "g");
	sw_id weight = sw_emit_parameter(
		p, p->entry, sw_build_shape(p, SW_BF16, (int64_t[]){ROWS / DEVICES, ROWS}, 2), "w");
	sw_id results[] = {
		sw_emit_unary(p, p->entry, SW_OP_NEGATE,
	                      sw_emit_collective(p, p->entry, SW_OP_REDUCE_SCATTER, SW_MONOID_SUM, gradient, 0,
	                                         &all)),
		sw_emit_collective(p, p->entry, SW_OP_ALL_GATHER, SW_MONOID_NONE, weight, 0, &all)};
	sw_build_results(p, p->entry, results, 2, true);
	return p;
}

static void read_cluster(sw_cluster *cluster)
{
	sw_error err;
	assert_int_equal(sw_cluster_read(SW_SOURCE_DIR "/clusters/h100-rented.yaml", cluster, &err), SW_OK);
	assert_int_equal(sw_cluster_take(cluster, "8", &err), SW_OK);
}

static void one_array_is_reduced_and_one_gathered(void **state)
{
	(void)state;
	sw_cluster cluster;
	read_cluster(&cluster);
	cluster.device.launch_interval_s = 0;
	sw_program *p = synchronises();
	const int64_t bytes = 2 * (int64_t)ROWS * ROWS;
	const uint32_t all = data_atoms(&(configuration){.tp = 1}, &cluster.atoms);
	device_program d = {.program = p, .loop = SW_NO_ID};
	sw_vec_push(&d.weights, bytes / 2);
	sw_vec_push(&d.weights, bytes / 2);
	const configuration c = {.nanotron = true, .zero = 1, .dp = DEVICES, .tp = 1};
	double planned = sw_cost_collective(&cluster, SW_MOVE_REDUCE_SCATTER, all, 2 * bytes) +
	                 sw_cost_collective(&cluster, SW_MOVE_ALL_GATHER, all, bytes / DEVICES),
	       own = sw_cost_collective(&cluster, SW_MOVE_ALL_REDUCE, all, 2 * bytes) +
	             sw_cost_collective(&cluster, SW_MOVE_ALL_GATHER, all, bytes / DEVICES) +
	             GATHERED * (double)bytes / cluster.device.memory_bandwidth + 2 * DEVICES * SLICE_S;
	assert_true(fabs(zero1_seconds(&c, &d, &cluster) - (own - planned)) < 0.01 * own);
	const configuration others[] = {{.nanotron = true, .zero = 0, .dp = DEVICES, .tp = 1},
	                                {.nanotron = true, .zero = 1, .dp = 1, .tp = DEVICES},
	                                {.zero = 1, .dp = DEVICES, .tp = 1}};
	for (size_t i = 0; i < SW_COUNT(others); i++)
		assert_true(zero1_seconds(&others[i], &d, &cluster) == 0);
	sw_vec_clear(&d.weights);
	sw_program_free(p);
	sw_cluster_clear(&cluster);
}

static void data_parallelism_is_over_the_outer_devices(void **state)
{
	static const struct {
		int64_t tp, copies;
	} cases[] = {{1, 64}, {2, 32}, {8, 8}, {32, 2}, {64, 1}};
	(void)state;
	sw_error err;
	sw_cluster cluster;
	assert_int_equal(sw_cluster_read(SW_SOURCE_DIR "/clusters/h100-rented.yaml", &cluster, &err), SW_OK);
	assert_int_equal(sw_cluster_take(&cluster, "64", &err), SW_OK);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		uint32_t atoms = data_atoms(&(configuration){.tp = cases[i].tp}, &cluster.atoms);
		assert_int_equal(sw_atoms_group_size(&cluster.atoms, atoms), cases[i].copies);
	}
	sw_cluster_clear(&cluster);
}

/* The plan launches a kernel and two collectives. */
static void launches_behind_the_loop_count_where_the_host_is_behind(void **state)
{
	(void)state;
	sw_cluster cluster;
	read_cluster(&cluster);
	sw_program *p = synchronises();
	const device_program looped = {.program = p, .loop = 0}, single = {.program = p, .loop = SW_NO_ID};
	cluster.device.launch_interval_s = 1;
	assert_true(fabs(launches_behind_s(&looped, &cluster) - 3) < 1e-4); /* less the kernel */
	assert_true(launches_behind_s(&single, &cluster) == 0);
	cluster.device.launch_interval_s = 0;
	assert_true(launches_behind_s(&looped, &cluster) == 0);
	sw_program_free(p);
	sw_cluster_clear(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_array_is_reduced_and_one_gathered),
		cmocka_unit_test(data_parallelism_is_over_the_outer_devices),
		cmocka_unit_test(launches_behind_the_loop_count_where_the_host_is_behind)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
