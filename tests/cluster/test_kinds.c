/* Devices of several kinds: their figures, those of a part of the cluster, and refused files. */
#include "cluster/cluster.h"

#include <string.h>

#include "test.h"

#define HEAD "version: 1\nname: test\nlevels:\n"
#define NODES(count, kinds)                                                                        \
	"  - {name: node, count: " count ", latency: 1 us, bandwidth: 1 GB/s" kinds "}\n"
#define GPUS "  - {name: gpu, count: 2, latency: 1 us, bandwidth: 2 GB/s}\n"
#define FIGURES(memory, overhead, flops)                                                           \
	"memory: " memory ", memory_bandwidth: 8 GB/s, kernel_overhead: " overhead                 \
	", matmul_efficiency: 0.5, flops: {f32: " flops "}"
#define SLOW "  - {name: slow, " FIGURES("1 GiB", "1 us", "1 TFLOP/s") "}\n"
#define FAST "  - {name: fast, " FIGURES("4 GiB", "2 us", "3 TFLOP/s, bf16: 9 TFLOP/s") "}\n"
#define FOUR HEAD NODES("4", ", device: [slow, fast, fast, slow]") GPUS "device:\n" SLOW FAST

static void parse(const char *text, sw_cluster *cluster)
{
	sw_error err = {0};
	if (sw_cluster_parse(text, strlen(text), "c.yaml", cluster, &err) != SW_OK)
		fail_msg("%s", err.message);
}

static void each_device_has_its_figures(void **state)
{
	(void)state;
	sw_cluster c;
	parse(FOUR, &c);
	assert_int_equal(c.n_kinds, 2);
	for (int64_t d = 0; d < 8; d++)
		assert_string_equal(sw_cluster_device_of(&c, d)->name,
		                    d / 2 == 1 || d / 2 == 2 ? "fast" : "slow");
	assert_true(sw_cluster_of_kind(&c, 1).device.flops[SW_F32] == 3e12);
	assert_int_equal(sw_cluster_kind_atoms(&c), 3); /* of 2 x 2 x 2 the nodes' two */
	sw_cluster_clear(&c);
}

/* What holds for the one device that stands for all holds for each. */
static void one_stands_for_all(void **state)
{
	(void)state;
	sw_cluster c;
	parse(FOUR, &c);
	assert_true(c.device.flops[SW_F32] == 1e12 && c.device.flops[SW_BF16] == 1e12);
	assert_true(c.device.kernel_overhead_s == 2e-6);
	assert_int_equal(c.device.memory_bytes, INT64_C(1) << 30);
	sw_device best = sw_cluster_of_fastest(&c).device;
	assert_true(best.flops[SW_F32] == 3e12 && best.flops[SW_BF16] == 9e12);
	assert_true(best.kernel_overhead_s == 1e-6);
	assert_int_equal(best.memory_bytes, INT64_C(4) << 30);
	sw_cluster_clear(&c);
}

static void a_part_keeps_its_kinds(void **state)
{
	(void)state;
	static const struct {
		const char *what, *same_as;
	} parts[] = {
		{"8", FOUR},
		{"2", HEAD NODES("1", "") GPUS "device: {name: slow, " FIGURES(
			      "1 GiB", "1 us", "1 TFLOP/s") "}\n"},
		{"4", HEAD NODES("2", ", device: [slow, fast]") GPUS "device:\n" SLOW FAST},
		{"4x1", HEAD NODES("4", ", device: [slow, fast, fast, slow]")
	                "  - {name: gpu, count: 1, latency: 1 us, bandwidth: 2 GB/s}\n"
	                "device:\n" SLOW FAST},
	};
	for (size_t i = 0; i < SW_COUNT(parts); i++) {
		sw_cluster c, same;
		sw_error err = {0};
		parse(FOUR, &c);
		parse(parts[i].same_as, &same);
		assert_int_equal(sw_cluster_take(&c, parts[i].what, &err), SW_OK);
		assert_int_equal(c.hash, same.hash);
		sw_cluster_clear(&c);
		sw_cluster_clear(&same);
	}
}

static void slices_of_other_kinds_are_unlike(void **state)
{
	(void)state;
	sw_cluster c;
	parse(FOUR, &c);
	assert_int_equal(sw_cluster_first_unlike(&c, 0, 6, 2), 8); /* both slow */
	assert_int_equal(sw_cluster_first_unlike(&c, 0, 2, 2), 2);
	sw_cluster_clear(&c);
}

static void what_is_printed_reads_back(void **state)
{
	(void)state;
	static const char *const texts[] = {
		FOUR, HEAD NODES("2", "") "  - {name: gpu, count: 2, latency: 1 us, bandwidth: 2 "
	                                  "GB/s, device: [slow, fast, fast, slow]}\n"
	                                  "device:\n" SLOW FAST};
	for (size_t i = 0; i < SW_COUNT(texts); i++) {
		sw_cluster c, again;
		sw_text text = {0};
		parse(texts[i], &c);
		sw_cluster_print(&c, &text);
		parse(text.data, &again);
		assert_int_equal(c.hash, again.hash);
		sw_cluster_print_differences(&c, &again, &text);
		sw_cluster_clear(&c);
		sw_cluster_clear(&again);
		sw_text_clear(&text);
	}
}

static void other_kinds_are_another_cluster(void **state)
{
	(void)state;
	sw_cluster a, b;
	sw_text text = {0};
	parse(FOUR, &a);
	parse(HEAD NODES("4", ", device: [slow, fast, fast, fast]") GPUS "device:\n" SLOW FAST, &b);
	assert_int_not_equal(a.hash, b.hash);
	sw_cluster_print_differences(&a, &b, &text);
	assert_non_null(strstr(text.data, "kinds of parts"));
	sw_text_clear(&text);
	sw_cluster_clear(&a);
	sw_cluster_clear(&b);
}

static const struct {
	const char *text, *words;
} refused[] = {
	{HEAD NODES("2", ", device: [slow, slow, fast]") GPUS "device:\n" SLOW FAST,
         "levels[0].device: 3 names for 2 parts"},
	{HEAD NODES("2", ", device: [slow, quick]") GPUS "device:\n" SLOW FAST,
         "levels[0].device: expected the name of one of the cluster's devices"},
	{HEAD NODES("2", ", device: slow") GPUS "device:\n" SLOW FAST,
         "levels[0].device: expected a list of names"},
	{HEAD NODES("2", "") GPUS "device:\n" SLOW FAST,
         "device: a list of kinds needs a level with the kind of each of its parts"},
	{HEAD NODES("2", ", device: [slow, fast]") GPUS "device: {name: slow, " FIGURES(
		 "1 GiB", "1 us", "1 TFLOP/s") "}\n",
         "levels[0].device: needs a list of kinds"},
	{HEAD NODES("2", ", device: [slow, slow]") GPUS "device:\n" SLOW SLOW,
         "device[1].name: \"slow\" names device[0] already"},
	{HEAD NODES("2", ", device: [slow, fast]") GPUS
         "device:\n" SLOW "  - {name: fast, fusion: none, " FIGURES("1 GiB", "1 us", "1e12") "}\n",
         "device[1]: fusion must be given for all kinds or none"},
	{HEAD NODES("2", ", device: [slow, fast]") GPUS
         "device:\n" SLOW "  - {name: fast, cache: 1 MB, " FIGURES("1 GiB", "1 us", "1e12") "}\n",
         "device[1]: cache must be given for all kinds or none"},
	{HEAD NODES("2", ", device: [slow, fast]") GPUS "device: []\n",
         "device: a list of kinds needs a level"},
	{HEAD NODES("2", ", device: [slow, fast]") "  - {name: gpu, count: 2, latency: 1 us, "
                                                   "bandwidth: 2 GB/s, device: [slow, fast, slow, "
                                                   "fast]}\ndevice:\n" SLOW FAST,
         "device: one level can say it, not two"},
};

static void bad_kinds_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(refused); i++) {
		sw_cluster c;
		sw_error err = {0};
		assert_int_equal(sw_cluster_parse(refused[i].text, strlen(refused[i].text),
		                                  "c.yaml", &c, &err),
		                 SW_ERR_INPUT);
		if (!strstr(err.message, refused[i].words))
			fail_msg("'%s' is not said, but '%s'", refused[i].words, err.message);
		assert_true(err.line > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_device_has_its_figures),
		cmocka_unit_test(one_stands_for_all),
		cmocka_unit_test(a_part_keeps_its_kinds),
		cmocka_unit_test(slices_of_other_kinds_are_unlike),
		cmocka_unit_test(what_is_printed_reads_back),
		cmocka_unit_test(other_kinds_are_another_cluster),
		cmocka_unit_test(bad_kinds_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
