/* The tables of figures: each figure is printed and read back, named where it differs, hashed,
 * rounded; and no figure of a struct is missing from its table. */
#include "cluster/cluster.h"

#include <math.h>
#include <string.h>

#include "cluster/figures.h"
#include "test.h"

/* All figures are given, and may be halved. */
static const char everything[] =
	"version: 1\nname: test\nlevels:\n"
	"  - {name: node, count: 2, latency: 30 us, bandwidth: 2 GB/s, flow_bandwidth: 0.5 GB/s, "
	"contention: 0.25}\n"
	"  - {name: core, count: 2, latency: 5 us, bandwidth: 6 GB/s}\n"
	"device:\n  name: cpu\n  memory: 2 GiB\n  memory_bandwidth: 8 GB/s\n  strided_share: 0.5\n"
	"  kernel_overhead: 1 us\n  matmul_efficiency: 0.75\n  cache: 1 MiB\n"
	"  transfer_share: 0.125\n  tile: 128\n  processors: 100\n  tile_depth: 64\n"
	"  attention_efficiency: 0.5\n  attention_gradient_efficiency: 0.25\n  attention_depth: 16\n"
	"  launch_interval: 2 us\n  collective_overhead: 8 us\n  collective_launches: 0.5\n  stage_collective_launches: 4\n"
	"  reserved_memory: 64 MiB\n  prediction_error: 0.125\n  flops: {f32: 50 GFLOP/s}\n  kernels:\n"
	"    matmul: {overhead: 2 us, flops: 40 GFLOP/s, bandwidth: 5 GB/s, cached_bandwidth: "
	"9 GB/s, call: 3 us, row: 7 ns}\n";

typedef struct figure_table {
	const char *name; /* the owner of the figures, as the differences name it */
	const sw_figures *figures;
} figure_table;
static const figure_table tables[] = {
	{"node", &sw_level_figures},
	{"cpu", &sw_device_figures},
	{"matmul kernels", &sw_kernel_figures},
};

static void *struct_of(const figure_table *table, sw_cluster *cluster)
{
	if (table->figures == &sw_level_figures)
		return &cluster->levels[0];
	if (table->figures == &sw_device_figures)
		return &cluster->device;
	return &cluster->device.kernels[SW_FAMILY_MATMUL];
}

static void read_text(const char *text, sw_cluster *cluster)
{
	sw_error err = {0};
	if (sw_cluster_parse(text, strlen(text), "c.yaml", cluster, &err) != SW_OK)
		fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, text);
}

static void read_again(const sw_cluster *cluster, sw_cluster *again)
{
	sw_text text = {0};
	sw_cluster_print(cluster, &text);
	read_text(text.data, again);
	sw_text_clear(&text);
}

static void assert_differences(const sw_cluster *a, const sw_cluster *b, const char *expected)
{
	sw_text words = {0};
	sw_cluster_print_differences(a, b, &words);
	if (strcmp(words.data ? words.data : "", expected))
		fail_msg("'%s', expected '%s'", words.data ? words.data : "", expected);
	sw_text_clear(&words);
}

/* This figure is the only difference from the file: it is named, read back, and in the hash. */
static void check_change(const figure_table *table, const sw_figure *f, const sw_cluster *first,
                         sw_cluster *changed)
{
	sw_cluster again;
	char start[128];
	sw_text words = {0};
	read_again(changed, &again);
	if (sw_figure_value(f, struct_of(table, &again)) !=
	    sw_figure_value(f, struct_of(table, changed)))
		fail_msg("%s of %s is not read back", f->key, table->name);
	if (again.hash == first->hash)
		fail_msg("%s of %s is not in the hash", f->key, table->name);
	snprintf(start, sizeof(start), "%s of %s ", f->words, table->name);
	sw_cluster_print_differences(first, &again, &words);
	if (!words.data || strncmp(words.data, start, strlen(start)))
		fail_msg("'%s' does not begin with '%s'", words.data ? words.data : "", start);
	if (strstr(words.data, ", not ") != strrchr(words.data, ','))
		fail_msg("'%s' names more than %s", words.data, f->key);
	changed->hash = again.hash;
	assert_differences(changed, &again, "");
	sw_text_clear(&words);
	sw_cluster_clear(&again);
}

static void each_figure_is_printed_read_back_hashed_and_named(void **state)
{
	sw_cluster first;
	(void)state;
	read_text(everything, &first);
	for (size_t t = 0; t < SW_COUNT(tables); t++) {
		for (size_t i = 0; i < tables[t].figures->n; i++) {
			const sw_figure *f = &tables[t].figures->rows[i];
			sw_cluster changed = first;
			void *of = struct_of(&tables[t], &changed);
			if (!sw_figure_is_given(tables[t].figures, f, of))
				fail_msg("the file of this test leaves out %s", f->key);
			figure_set(f, of, sw_figure_value(f, of) / 2);
			check_change(&tables[t], f, &first, &changed);
			if (!f->optional)
				continue;
			figure_leave_out(tables[t].figures, f, of);
			check_change(&tables[t], f, &first, &changed);
		}
	}
	sw_cluster_clear(&first);
}

static void each_figure_but_sizes_is_rounded(void **state)
{
	sw_cluster first;
	sw_arena arena;
	(void)state;
	sw_arena_init(&arena);
	read_text(everything, &first);
	for (size_t t = 0; t < SW_COUNT(tables); t++) {
		for (size_t i = 0; i < tables[t].figures->n; i++) {
			const sw_figure *f = &tables[t].figures->rows[i];
			sw_cluster rounded = first;
			void *of = struct_of(&tables[t], &rounded);
			double value = sw_figure_value(f, of);
			bool is_size = f->quantity == SW_QUANTITY_BYTES;
			figure_set(f, of, value * (1 - 1e-6));
			sw_cluster_round(&rounded, 3, &arena);
			if ((sw_figure_value(f, of) == value) == is_size)
				fail_msg("%s of %s: %.10g", f->key, tables[t].name,
				         sw_figure_value(f, of));
		}
	}
	sw_cluster_clear(&first);
	sw_arena_clear(&arena);
}

/* A share just below 1 is not rounded to 1, which the file could not give. */
static void rounded_figures_stay_in_range(void **state)
{
	sw_cluster cluster, again;
	sw_arena arena;
	(void)state;
	sw_arena_init(&arena);
	read_text(everything, &cluster);
	cluster.device.transfer_share = 0.99999;
	cluster.levels[0].flow_bandwidth = 1.99999e9;
	sw_cluster_round(&cluster, 3, &arena);
	read_again(&cluster, &again);
	assert_true(again.device.transfer_share < 1 && again.device.transfer_share > 0.999);
	sw_cluster_clear(&again);
	sw_cluster_clear(&cluster);
	sw_arena_clear(&arena);
}

/* ---- lists, rates and families ---------------------------------------------------------- */

static void a_part_is_named(void **state)
{
	static const double links[2][2] = {{2e9, 3e9}, {2e9, 4e9}};
	sw_cluster a, b;
	(void)state;
	read_text(everything, &a);
	b = a;
	figure_set_parts(figure_find(&sw_level_figures, "bandwidth"), &a.levels[0], links[0], 2);
	assert_differences(&b, &a, "bandwidth of node 1 3 GB/s, not 2 GB/s");
	figure_set_parts(figure_find(&sw_level_figures, "bandwidth"), &b.levels[0], links[1], 2);
	assert_differences(&a, &b, "bandwidth of node 1 4 GB/s, not 3 GB/s");
	sw_cluster_clear(&a);
}

static void rates_and_families_are_named(void **state)
{
	sw_cluster a, b;
	(void)state;
	read_text(everything, &a);
	b = a;
	b.device.flops[SW_BF16] = 1e12;
	b.device.kernels[SW_FAMILY_MATMUL].given = false;
	b.device.kernels[SW_FAMILY_MOVE] = (sw_kernel_fit){.given = true, .overhead_s = 1};
	assert_differences(&a, &b,
	                   "bf16 of cpu 1 TFLOP/s, not 0, matmul kernels not measured, "
	                   "move kernels measured");
	sw_cluster_clear(&a);
}

/* ---- the tables ------------------------------------------------------------------------- */

/* Mark the bytes of each figure. An unmarked byte belongs to a member without a row. */
static void mark_figures(const sw_figures *figures, char *bytes)
{
	for (size_t i = 0; i < figures->n; i++) {
		memset(bytes + figures->rows[i].offset, 1, sizeof(double));
		if (figures->rows[i].each)
			memset(bytes + figures->rows[i].each, 1, sizeof(double *));
	}
}

#define MARK(bytes, type, member)                                                                  \
	memset((bytes) + offsetof(type, member), 1, sizeof(((type *)0)->member))

static void assert_covered(const char *name, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!bytes[i])
			fail_msg("the member at byte %zu of %s has no row in its table", i, name);
}

static void each_member_has_a_row(void **state)
{
	char level[sizeof(sw_level)] = {0}, device[sizeof(sw_device)] = {0},
	     kernel[sizeof(sw_kernel_fit)] = {0};
	(void)state;
	mark_figures(&sw_level_figures, level);
	MARK(level, sw_level, name);
	MARK(level, sw_level, count);
	assert_covered("sw_level", level, sizeof(level));
	mark_figures(&sw_device_figures, device);
	MARK(device, sw_device, name);
	MARK(device, sw_device, flops);
	MARK(device, sw_device, fusion);
	MARK(device, sw_device, collectives);
	MARK(device, sw_device, kernels);
	assert_covered("sw_device", device, sizeof(device));
	mark_figures(&sw_kernel_figures, kernel);
	memset(kernel, 1, offsetof(sw_kernel_fit, overhead_s)); /* `given`, and padding */
	assert_covered("sw_kernel_fit", kernel, sizeof(kernel));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_figure_is_printed_read_back_hashed_and_named),
		cmocka_unit_test(each_figure_but_sizes_is_rounded),
		cmocka_unit_test(rounded_figures_stay_in_range),
		cmocka_unit_test(a_part_is_named),
		cmocka_unit_test(rates_and_families_are_named),
		cmocka_unit_test(each_member_has_a_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
