/* How Nanotron sums gradients in DistributedDataParallel (bench/measured). */
#include "test.h"

#include "../../bench/measured/ddp.c"
#include "../../bench/measured/zero1.c"

#define DEVICES 16
#define ROWS 4096

/* A weight's gradient: a kernel, and its sum over all devices. */
static void add_sum(sw_program *p, sw_type type, int64_t rows, sw_id *sum)
{
	const sw_groups all = {.n_groups = 0}; /* of all */
	sw_id g = sw_emit_parameter(p, p->entry, sw_build_shape(p, type, (int64_t[]){rows, ROWS}, 2), "g");
	*sum = sw_emit_collective(p, p->entry, SW_OP_ALL_REDUCE, SW_MONOID_SUM,
	                          sw_emit_unary(p, p->entry, SW_OP_NEGATE, g), 0, &all);
}

static sw_program *summing(sw_type type, const int64_t *rows, size_t n)
{
	sw_program *p = sw_program_new("step");
	sw_id sums[8];
	p->num_partitions = DEVICES;
	p->entry = sw_build_computation(p, "main");
	for (size_t i = 0; i < n; i++)
		add_sum(p, type, rows[i], &sums[i]);
	sw_build_results(p, p->entry, sums, (uint32_t)n, true);
	return p;
}

static void read_cluster(sw_cluster *cluster)
{
	sw_error err;
	assert_int_equal(sw_cluster_read(SW_SOURCE_DIR "/clusters/h100-rented.yaml", cluster, &err), SW_OK);
	assert_int_equal(sw_cluster_take(cluster, "16", &err), SW_OK);
	cluster->device.launch_interval_s = 0;
	cluster->device.transfer_share = 0;
}

static double all_reduce(const sw_cluster *cluster, int64_t bytes)
{
	return sw_cost_collective((void *)cluster, SW_MOVE_ALL_REDUCE,
	                          data_atoms(&(configuration){.tp = 1}, &cluster->atoms), bytes);
}

/* Return the seconds beyond the kernels. */
static double reduced(const configuration *c, const sw_cluster *cluster, const sw_program *p)
{
	reducer r = {.cluster = cluster,
	             .program = p,
	             .c = c,
	             .data = data_atoms(c, &cluster->atoms),
	             .loop = SW_NO_ID,
	             .last_use = SW_NO_ID};
	return reduced_seconds(&r);
}

/* Of 16, 16, 32 and 8 MiB the first two are a bucket, the third is one, and the last what is left, while
 * short kernels run: sums are behind one another, twice as large as the weights. */
static void buckets_have_25_mib_of_weights(void **state)
{
	static const int64_t rows[] = {2048, 2048, 4096, 1024};
	const int64_t row = SUM_BYTES * ROWS;
	const configuration c = {.nanotron = true, .ddp = true, .dp = DEVICES, .tp = 1};
	sw_cluster cluster;
	(void)state;
	read_cluster(&cluster);
	double all = 2 * all_reduce(&cluster, 4096 * row) + all_reduce(&cluster, 1024 * row);
	static const sw_type types[] = {SW_BF16, SW_F32};
	for (size_t i = 0; i < SW_COUNT(types); i++) {
		sw_program *p = summing(types[i], rows, SW_COUNT(rows));
		double seconds = reduced(&c, &cluster, p);
		assert_true(seconds > 0.9 * all && seconds <= all);
		sw_program_free(p);
	}
	sw_cluster_clear(&cluster);
}

/* The table of tokens is summed once, behind its second use, where it is tied. */
static void a_tied_table_is_summed_once(void **state)
{
	static const int64_t rows[] = {8192, 4096, 8192};
	const int64_t row = SUM_BYTES * ROWS;
	configuration c = {
		.nanotron = true, .ddp = true, .dp = DEVICES, .tp = 1, .llama = {.vocab = 8192, .hidden = ROWS}};
	sw_cluster cluster;
	(void)state;
	read_cluster(&cluster);
	sw_program *p = summing(SW_BF16, rows, SW_COUNT(rows));
	double two = 2 * all_reduce(&cluster, 8192 * row) + all_reduce(&cluster, 4096 * row),
	       one = two - all_reduce(&cluster, 8192 * row), seconds = reduced(&c, &cluster, p);
	assert_true(seconds > 0.9 * two && seconds <= two);
	c.tied = 1;
	seconds = reduced(&c, &cluster, p);
	assert_true(seconds > 0.9 * one && seconds <= one);
	sw_program_free(p);
	sw_cluster_clear(&cluster);
}

/* One queue of launches: kernels behind an all-reduce wait for the one before it, those before it do not. */
static void launches_behind_an_all_reduce_wait_for_the_one_before(void **state)
{
	const int64_t elements = BUCKET_BYTES / WEIGHT_BYTES;
	const configuration c = {.dp = DEVICES, .tp = 1};
	sw_cluster cluster;
	(void)state;
	read_cluster(&cluster);
	double sum_s = all_reduce(&cluster, SUM_BYTES * elements);
	reducer r = {.cluster = &cluster, .c = &c, .data = data_atoms(&c, &cluster.atoms), .last_use = SW_NO_ID};
	add_gradient(&r, 0, elements);
	compute(&r, sum_s / 4);
	assert_true(fabs(r.now_s - sum_s / 4) < 1e-9); /* beside the first */
	add_gradient(&r, 1, elements);
	assert_true(fabs(r.now_s - sum_s) < 1e-9);
	compute(&r, 2 * sum_s);
	assert_true(fabs(r.ends_s - 2 * sum_s) < 1e-9 && fabs(r.now_s - 3 * sum_s) < 1e-9);
	cluster.device.transfer_share = 0.5;
	add_gradient(&r, 2, elements);
	compute(&r, sum_s); /* at half its speed while the third is under way */
	assert_true(fabs(r.now_s - 4.5 * sum_s) < 1e-9);
	sw_cluster_clear(&cluster);
}

static void only_ddp_has_buckets(void **state)
{
	static const configuration others[] = {{.nanotron = true, .dp = DEVICES, .tp = 1, .zero = 1},
	                                       {.ddp = true, .dp = DEVICES, .tp = 1}};
	sw_cluster cluster;
	(void)state;
	read_cluster(&cluster);
	sw_program *p = summing(SW_BF16, (int64_t[]){ROWS}, 1);
	const device_program d = {.program = p, .loop = SW_NO_ID};
	for (size_t i = 0; i < SW_COUNT(others); i++)
		assert_true(ddp_seconds(&others[i], &d, &cluster) == 0);
	/* one gradient in bf16 is summed in f32 */
	const configuration c = {.nanotron = true, .ddp = true, .dp = DEVICES, .tp = 1};
	double more = all_reduce(&cluster, SUM_BYTES * ROWS * ROWS) -
	              all_reduce(&cluster, WEIGHT_BYTES * ROWS * ROWS);
	assert_true(fabs(ddp_seconds(&c, &d, &cluster) - more) < 0.01 * more);
	sw_program_free(p);
	sw_cluster_clear(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_have_25_mib_of_weights), cmocka_unit_test(a_tied_table_is_summed_once),
		cmocka_unit_test(launches_behind_an_all_reduce_wait_for_the_one_before),
		cmocka_unit_test(only_ddp_has_buckets)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
