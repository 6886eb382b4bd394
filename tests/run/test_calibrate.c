/* Calibration on in-process ranks: which points are measured, that it ends, and which cluster
 * results. */
#include "run/calibrate.h"

#include <math.h>
#include <string.h>

#include "run/ranks.h"
#include "test.h"

#define DEVICE                                                                                     \
	"device: {name: cpu, memory: 1 GiB, memory_bandwidth: 8 GB/s, kernel_overhead: 1 us, "     \
	"matmul_efficiency: 0.7, "                                                                 \
	"flops: {f32: 50 GFLOP/s, f64: 20 GFLOP/s}}\n"

typedef struct trial {
	const char *levels; /* NULL: derived from the ranks' hosts */
	sw_calibrate_options options;
	sw_status expected;
	/* of rank 0 */
	sw_status status;
	sw_cluster shape;
	sw_calibrate_result result;
	int32_t reports;
} trial;

static void count_reports(void *context, double fraction, const char *what)
{
	trial *t = context;
	assert_true(fraction >= 0 && what[0]);
	t->reports++;
}

static sw_status one_rank(void *context, sw_transport *transport, sw_error *err)
{
	trial *t = context;
	sw_cluster shape;
	sw_calibrate_result result;
	char text[1024];
	sw_status status;
	if (t->levels) {
		snprintf(text, sizeof(text), "version: 1\nname: test\nlevels:\n%s" DEVICE,
		         t->levels);
		status = sw_cluster_parse(text, strlen(text), "test.yaml", &shape, err);
	} else {
		status = sw_calibrate_shape(transport, &shape, err);
	}
	if (status != SW_OK)
		return status;
	status = sw_calibrate(transport, &shape, &t->options, &result, err);
	if (transport->rank == 0) {
		t->shape = shape;
		t->result = result;
		t->status = status;
		return SW_OK; /* all ranks have the same points */
	}
	sw_calibrate_result_clear(&result);
	sw_cluster_clear(&shape);
	return SW_OK;
}

static void run_trial(trial *t, int32_t ranks)
{
	sw_error err = {0};
	t->options.on_progress = count_reports;
	t->options.context = t;
	sw_status status = sw_ranks_run(ranks, one_rank, t, &err);
	if (status != SW_OK)
		fail_msg("%s", err.message);
	assert_int_equal(t->status, t->expected);
}

static void clear(trial *t)
{
	sw_calibrate_result_clear(&t->result);
	sw_cluster_clear(&t->shape);
}

/* Check that every collective was measured over every set of atoms at the smallest size, and that
 * the cluster reads back. */
static void check_result(const trial *t)
{
	const sw_calibrate_result *r = &t->result;
	uint32_t sets = (UINT32_C(1) << t->shape.atoms.n) - 1;
	bool seen[SW_COLLECTIVE_COUNT][1 << 3] = {{false}}, pair = false;
	for (size_t i = 0; i < r->links.len; i++) {
		const sw_link_point *p = &r->links.data[i];
		assert_true(p->seconds > 0 && p->seconds < 60 && p->deviation_s >= 0 &&
		            p->fitted_s > 0);
		assert_true(p->atoms <= sets && p->bytes > 0);
		seen[p->kind][p->atoms] = true;
		pair = pair || !p->atoms;
	}
	for (int kind = 0; kind < SW_COLLECTIVE_COUNT; kind++)
		for (uint32_t atoms = 1; atoms <= sets; atoms++)
			assert_true(seen[kind][atoms] ||
			            (kind == SW_COLLECTIVE_PERMUTE && t->shape.atoms.n > 1));
	assert_true(pair);
	sw_text text = {0};
	sw_cluster again;
	sw_error err;
	sw_cluster_print(&r->cluster, &text);
	if (sw_cluster_parse(text.data, text.len, "out.yaml", &again, &err) != SW_OK)
		fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, text.data);
	assert_int_equal(again.n_devices, t->shape.n_devices);
	assert_int_equal(again.calibration.n_points, r->cluster.calibration.n_points);
	assert_true(again.calibration.n_points >= 5);
	sw_cluster_clear(&again);
	sw_text_clear(&text);
}

static void links_are_measured_and_fitted(void **state)
{
	(void)state;
	static const struct {
		const char *levels;
		int32_t ranks;
	} cases[] = {
		{"  - {name: node, count: 2, latency: 30 us, bandwidth: 2 GB/s}\n"
	         "  - {name: device, count: 2, latency: 5 us, bandwidth: 6 GB/s}\n",
	         4},
		{"  - {name: node, count: 2, latency: 30 us, bandwidth: 2 GB/s}\n"
	         "  - {name: device, count: [1, 2], latency: 5 us, bandwidth: 6 GB/s}\n",
	         3},
		{NULL, 2},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		trial t = {.levels = cases[i].levels,
		           .options = {.time_limit_s = 1, .links = true}};
		run_trial(&t, cases[i].ranks);
		assert_true(t.result.seconds < 8);
		assert_true(t.reports > 0 && t.result.kernels.len == 0);
		assert_false(t.result.cluster.device.kernels[SW_FAMILY_MATMUL].given);
		check_result(&t);
		clear(&t);
	}
}

static void parts_of_an_unequal_cluster_have_links_of_their_own(void **state)
{
	(void)state;
	trial t = {.levels =
	                   "  - {name: node, count: 2, latency: 30 us, bandwidth: 2 GB/s}\n"
	                   "  - {name: device, count: [1, 2], latency: 5 us, bandwidth: 6 GB/s}\n",
	           .options = {.time_limit_s = 0.5, .links = true}};
	run_trial(&t, 3);
	int links = 0;
	for (int32_t i = 0; i < t.result.link_fit.n_parameters; i++) {
		const char *name = t.result.link_fit.parameters[i].name;
		links += strcmp(name, "node 0 bandwidth") == 0 ||
		         strcmp(name, "node 1 bandwidth") == 0;
	}
	assert_int_equal(links, 2);
	clear(&t);
}

/* The cluster states the share of the device that a collective takes; ranks that sleep lose nothing
 * to it. */
static void the_share_of_the_device_is_measured_unless_paced(void **state)
{
	(void)state;
	for (int paced = 0; paced < 2; paced++) {
		trial t = {.options = {.time_limit_s = 1, .links = true, .paced = paced}};
		run_trial(&t, 2);
		double share = t.result.transfer_share,
		       kept = t.result.cluster.device.transfer_share;
		assert_true(share >= 0 && share < 1 && (!paced || share == 0));
		assert_true(fabs(kept - share) <= 1e-3 * share);
		clear(&t);
	}
}

static void kernels_are_measured_and_fitted(void **state)
{
	(void)state;
	trial t = {.options = {.time_limit_s = 1, .kernels = true}};
	run_trial(&t, 1);
	assert_true(t.result.links.len == 0 && !t.result.cluster.calibration.date);
	bool f64 = false;
	for (size_t i = 0; i < t.result.kernels.len; i++) {
		const sw_kernel_point *p = &t.result.kernels.data[i];
		assert_true(p->seconds > 0 && p->work.bytes > 0 && p->fitted_s > 0);
		f64 = f64 || p->type == SW_F64;
	}
	assert_true(f64);
	for (int family = 0; family < SW_FAMILY_COUNT; family++)
		assert_true(t.result.cluster.device.kernels[family].given);
	const sw_device *device = &t.result.cluster.device;
	assert_true(device->flops[SW_F32] > 1e8 && device->matmul_efficiency > 0 &&
	            device->matmul_efficiency <= 1);
	assert_true(device->memory_bandwidth > 1e7 &&
	            device->memory_bytes == t.shape.device.memory_bytes);
	clear(&t);
}

static void another_number_of_ranks_is_refused(void **state)
{
	(void)state;
	trial t = {.levels = "  - {name: device, count: 3, latency: 5 us, bandwidth: 6 GB/s}\n",
	           .options = {.time_limit_s = 1, .links = true},
	           .expected = SW_ERR_INPUT};
	run_trial(&t, 2);
	clear(&t);
}

static void a_stop_ends_calibration_on_every_rank(void **state)
{
	(void)state;
	const atomic_bool stop = true;
	trial t = {.options = {.time_limit_s = 60, .links = true, .stop = &stop},
	           .expected = SW_NO};
	double begin = sw_now_s();
	run_trial(&t, 2);
	assert_true(sw_now_s() - begin < 10);
	clear(&t);
}

static void atoms_are_named_by_their_levels(void **state)
{
	(void)state;
	static const struct {
		const char *levels;
		uint32_t atoms;
		const char *text;
	} cases[] = {
		{"  - {name: node, count: 2, latency: 0, bandwidth: 1}\n  - {name: gpu, count: 4, "
	         "latency: "
	         "0, bandwidth: 1}\n",
	         1, "node"},
		{"  - {name: node, count: 2, latency: 0, bandwidth: 1}\n  - {name: gpu, count: 4, "
	         "latency: "
	         "0, bandwidth: 1}\n",
	         5, "node x gpu 2/2"},
		{"  - {name: node, count: 2, latency: 0, bandwidth: 1}\n  - {name: gpu, count: [1, "
	         "4], "
	         "latency: 0, bandwidth: 1}\n",
	         1, "devices 0/5"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		char text[1024];
		sw_cluster cluster;
		sw_error err;
		sw_text name = {0};
		snprintf(text, sizeof(text), "version: 1\nname: test\nlevels:\n%s" DEVICE,
		         cases[i].levels);
		assert_int_equal(sw_cluster_parse(text, strlen(text), "test.yaml", &cluster, &err),
		                 SW_OK);
		sw_calibrate_print_atoms(&cluster, cases[i].atoms, &name);
		assert_string_equal(name.data, cases[i].text);
		sw_text_clear(&name);
		sw_cluster_clear(&cluster);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_are_measured_and_fitted),
		cmocka_unit_test(parts_of_an_unequal_cluster_have_links_of_their_own),
		cmocka_unit_test(the_share_of_the_device_is_measured_unless_paced),
		cmocka_unit_test(kernels_are_measured_and_fitted),
		cmocka_unit_test(another_number_of_ranks_is_refused),
		cmocka_unit_test(a_stop_ends_calibration_on_every_rank),
		cmocka_unit_test(atoms_are_named_by_their_levels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
