/*
 * The cluster file: units, parts and atoms, links, printing, and the files that come along.
 */
#include "cluster/cluster_texts.h"

#include "test.h"

#include <stdio.h>
#include <string.h>
#include <dirent.h>

/* ---- units ------------------------------------------------------------------------------ */

static const struct {
	const char *text;
	double bytes_per_s;
} bandwidths[] = {
	{"25 GB/s", 25e9},         {"25GB/s", 25e9},  {"200 Gb/s", 25e9},
	{"2.5e10", 2.5e10},        {"+1", 1},         {".5", 0.5},
	{"1 TB/s", 1e12},          {"3 MB/s", 3e6},   {"3 kB/s", 3e3},
	{"3 KB/s", 3e3},           {"8 B/s", 8},      {"8 b/s", 1},
	{"1 GiB/s", 1073741824.0}, {"1 Tb/s", 125e9}, {"800 Mb/s", 1e8},
	{"8 kb/s", 1e3},           {"1 KiB/s", 1024},
};
static const struct {
	const char *text;
	double seconds;
} times[] = {{"20 us", 20e-6}, {"20us", 20e-6}, {"3 ms", 3e-3}, {"7 ns", 7e-9},
             {"1.5 s", 1.5},   {"1e-6", 1e-6},  {"0", 0}};

static void units_are_understood(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bandwidths) + SW_COUNT(times); i++) {
		bool is_time = i >= SW_COUNT(bandwidths);
		size_t k = is_time ? i - SW_COUNT(bandwidths) : i;
		char text[1024];
		sw_cluster cluster;
		sw_error err;
		snprintf(text, sizeof(text),
		         HEAD
		         "levels:\n  - {name: a, count: 2, latency: %s, bandwidth: %s}\n" DEVICE,
		         is_time ? times[k].text : "1 us", is_time ? "1" : bandwidths[k].text);
		assert_int_equal(parse(text, &cluster, &err), SW_OK);
		if (is_time)
			assert_true(cluster.levels[0].latency_s == times[k].seconds);
		else
			assert_true(cluster.levels[0].bandwidth == bandwidths[k].bytes_per_s);
		sw_cluster_clear(&cluster);
	}
}

/* ---- atoms and places ------------------------------------------------------------------- */

static const struct {
	const char *counts[4]; /* of the levels, outermost first */
	int64_t devices;
	const char *atoms; /* size@level */
} shapes[] = {
	{{"1"}, 1, ""},
	{{"1", "2"}, 2, "2@1"},
	{{"2", "4"}, 8, "2@0 2@1 2@1"},
	{{"6", "10"}, 60, "3@0 2@0 5@1 2@1"},
	{{"7"}, 7, "7@0"},
	{{"2", "[1, 4]"}, 5, "5@0"},
	{{"2", "[2, 4]"}, 6, "3@0 2@1"},
	{{"2", "[4, 4]"}, 8, "2@0 2@1 2@1"},
	{{"3", "[1, 2, 1]", "4"}, 16, "2@0 2@0 2@2 2@2"},
	{{"2", "2", "[1, 2, 3, 2]", "3"}, 24, "2@0 2@0 2@0 3@3"},
	{{"2", "[1, 2]", "[2, 3, 3]"}, 8, "2@0 2@0 2@1"},
};

static void parse_counts(const char *const counts[4], sw_cluster *cluster)
{
	sw_text text = {0};
	sw_error err = {0};
	sw_text_add(&text, HEAD "levels:\n");
	for (int l = 0; l < 4 && counts[l]; l++)
		sw_text_addf(&text,
		             "  - {name: l%d, count: %s, latency: %d us, bandwidth: 1 GB/s}\n", l,
		             counts[l], l + 1);
	sw_text_add(&text, DEVICE);
	if (parse(text.data, cluster, &err) != SW_OK)
		fail_msg("%s", err.message);
	sw_text_clear(&text);
}

static void counts_become_atoms(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(shapes); i++) {
		sw_cluster cluster;
		sw_text text = {0};
		parse_counts(shapes[i].counts, &cluster);
		assert_int_equal(cluster.n_devices, shapes[i].devices);
		assert_int_equal(sw_atoms_devices(&cluster.atoms), shapes[i].devices);
		for (int32_t a = 0; a < cluster.atoms.n; a++)
			sw_text_addf(&text, "%s%d@%d", a ? " " : "", cluster.atoms.size[a],
			             cluster.atom_level[a]);
		if (strcmp(text.data ? text.data : "", shapes[i].atoms) != 0)
			fail_msg("shapes[%zu]: %s, expected %s", i, text.data, shapes[i].atoms);
		sw_text_clear(&text);
		sw_cluster_clear(&cluster);
	}
}

/* No two devices that differ in one atom only meet further out than the atom's level, and some meet
 * at it. */
static void atom_levels_are_the_outermost_crossed(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(shapes); i++) {
		sw_cluster c;
		parse_counts(shapes[i].counts, &c);
		for (int32_t a = 0; a < c.atoms.n; a++) {
			int32_t outermost = c.n_levels;
			for (int64_t x = 0; x < c.n_devices; x++) {
				for (int64_t y = 0; y < c.n_devices; y++) {
					bool only = x != y;
					for (int32_t b = 0; b < c.atoms.n; b++)
						if (b != a &&
						    sw_atoms_coordinate(&c.atoms, x, b) !=
						            sw_atoms_coordinate(&c.atoms, y, b))
							only = false;
					if (only)
						outermost =
							SW_MIN(outermost,
						               sw_cluster_meeting_level(&c, x, y));
				}
			}
			assert_int_equal(outermost, c.atom_level[a]);
		}
		sw_cluster_clear(&c);
	}
}

static void devices_meet_where_their_parts_differ(void **state)
{
	const char *const counts[4] = {"2", "[1, 2]", "[2, 3, 1]"};
	static const int32_t places[6][3] = {{0, 0, 0}, {0, 0, 1}, {1, 1, 2},
	                                     {1, 1, 3}, {1, 1, 4}, {1, 2, 5}};
	sw_cluster cluster;
	(void)state;
	parse_counts(counts, &cluster);
	assert_int_equal(cluster.n_devices, 6);
	assert_memory_equal(cluster.place, places, sizeof(places));
	assert_int_equal(cluster.levels[0].count, 2);
	assert_int_equal(cluster.levels[1].count, 0);
	assert_int_equal(sw_cluster_meeting_level(&cluster, 0, 2), 0);
	assert_int_equal(sw_cluster_meeting_level(&cluster, 2, 5), 1);
	assert_int_equal(sw_cluster_meeting_level(&cluster, 3, 4), 2);
	assert_int_equal(sw_cluster_meeting_level(&cluster, 3, 3), 3);
	sw_cluster_clear(&cluster);
}

/* ---- links ------------------------------------------------------------------------------ */

#define UNEQUAL_LINKS                                                                              \
	"levels:\n"                                                                                \
	"  - {name: node, count: 2, latency: 30 us, bandwidth: [3 GB/s, 2 GB/s], contention: "     \
	"0.25}\n"                                                                                  \
	"  - {name: device, count: [1, 2], latency: 5 us, bandwidth: [6 GB/s, 7 GB/s, 5 GB/s], "   \
	"flow_bandwidth: 4 GB/s}\n"

static void each_part_has_its_link(void **state)
{
	static const double nodes[2] = {3e9, 2e9}, devices[3] = {6e9, 7e9, 5e9};
	sw_cluster cluster;
	(void)state;
	assert_int_equal(parse(HEAD UNEQUAL_LINKS DEVICE, &cluster, NULL), SW_OK);
	assert_memory_equal(cluster.levels[0].part_bandwidth, nodes, sizeof(nodes));
	assert_memory_equal(cluster.levels[1].part_bandwidth, devices, sizeof(devices));
	assert_true(cluster.levels[0].bandwidth == 2e9 && cluster.levels[0].flow_bandwidth == 2e9);
	assert_true(cluster.levels[1].bandwidth == 5e9 && cluster.levels[1].flow_bandwidth == 4e9);
	assert_true(cluster.levels[0].contention == 0.25 && cluster.levels[1].contention == 0);
	sw_cluster_clear(&cluster);
}

static void a_list_of_equal_links_is_one_figure(void **state)
{
	sw_cluster one, list;
	(void)state;
	assert_int_equal(
		parse(HEAD "levels:\n  - {name: a, count: 2, latency: 0, bandwidth: 4}\n" DEVICE,
	              &one, NULL),
		SW_OK);
	assert_int_equal(
		parse(HEAD
	              "levels:\n  - {name: a, count: 2, latency: 0, bandwidth: [4, 4]}\n" DEVICE,
	              &list, NULL),
		SW_OK);
	assert_null(list.levels[0].part_bandwidth);
	assert_true(list.hash == one.hash);
	sw_cluster_clear(&one);
	sw_cluster_clear(&list);
}

/* ---- printing --------------------------------------------------------------------------- */

static void check_reads_back(const sw_cluster *cluster)
{
	sw_text text = {0}, again_text = {0};
	sw_cluster again;
	sw_error err = {0};
	sw_cluster_print(cluster, &text);
	if (sw_cluster_parse(text.data, text.len, "printed", &again, &err) != SW_OK)
		fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, text.data);
	sw_cluster_print(&again, &again_text);
	assert_string_equal(again_text.data, text.data);
	assert_true(again.hash == cluster->hash);
	assert_string_equal(again.name, cluster->name);
	assert_int_equal(again.n_devices, cluster->n_devices);
	assert_memory_equal(again.place, cluster->place,
	                    (size_t)(cluster->n_devices * cluster->n_levels) * sizeof(int32_t));
	sw_cluster_clear(&again);
	sw_text_clear(&text);
	sw_text_clear(&again_text);
}

static void printed_clusters_read_back(void **state)
{
	(void)state;
	sw_cluster cluster;
	for (size_t i = 0; i < SW_COUNT(shapes); i++) {
		parse_counts(shapes[i].counts, &cluster);
		check_reads_back(&cluster);
		sw_cluster_clear(&cluster);
	}
	assert_int_equal(parse(HEAD UNEQUAL_LINKS DEVICE, &cluster, NULL), SW_OK);
	assert_int_equal(cluster.device.fusion, SW_FUSION_LOOPS);
	uint64_t hash = cluster.hash;
	check_reads_back(&cluster);
	sw_cluster_clear(&cluster);
	for (int f = 0; f < SW_FUSION_COUNT; f++) {
		sw_text text = {0};
		sw_text_addf(&text,
		             HEAD UNEQUAL_LINKS "device: {name: cpu, memory: 2 GiB, "
		                                "memory_bandwidth: 8 GB/s, kernel_overhead: 1 us,\n"
		                                "  matmul_efficiency: 0.7, fusion: %s, "
		                                "flops: {f32: 50 GFLOP/s}}\n",
		             sw_fusion_name((sw_fusion)f));
		assert_int_equal(parse(text.data, &cluster, NULL), SW_OK);
		assert_int_equal(cluster.device.fusion, f);
		assert_true((cluster.hash == hash) == (f == SW_FUSION_LOOPS));
		check_reads_back(&cluster);
		sw_cluster_clear(&cluster);
		sw_text_clear(&text);
	}
}

/* Measured figures keep all their digits, and names may hold any printable text. */
static void any_figures_and_names_read_back(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		sw_cluster cluster;
		sw_error err = {0};
		assert_int_equal(parse(HEAD LEVELS DEVICE, &cluster, &err), SW_OK);
		sw_cluster same = cluster;
		same.name = i % 2 ? "a \"quoted\": name \\ # of two" : "- true";
		same.levels[0].latency_s = sw_random_unit(1, 0, i) * 1e-3;
		same.levels[0].bandwidth = sw_random_unit(1, 1, i) * 1e12;
		same.levels[0].flow_bandwidth = same.levels[0].bandwidth * sw_random_unit(1, 2, i);
		same.device.memory_bytes = (int64_t)(sw_random_bits(1, 3, i) >> 12);
		same.device.kernel_overhead_s = sw_random_unit(1, 4, i) * 1e-9;
		same.device.flops[SW_BF16] = sw_random_unit(1, 5, i) * 1e16;
		same.device.matmul_efficiency = sw_random_unit(1, 6, i);
		same.device.transfer_share = i % 3 ? sw_random_unit(1, 7, i) : 0;
		sw_text text = {0};
		sw_cluster again;
		sw_cluster_print(&same, &text);
		assert_int_equal(parse(text.data, &again, &err), SW_OK);
		assert_string_equal(again.name, same.name);
		assert_true(again.levels[0].latency_s == same.levels[0].latency_s);
		assert_true(again.levels[0].bandwidth == same.levels[0].bandwidth);
		assert_true(again.levels[0].flow_bandwidth == same.levels[0].flow_bandwidth);
		assert_int_equal(again.device.memory_bytes, same.device.memory_bytes);
		assert_true(again.device.kernel_overhead_s == same.device.kernel_overhead_s);
		assert_true(again.device.flops[SW_BF16] == same.device.flops[SW_BF16]);
		assert_true(again.device.matmul_efficiency == same.device.matmul_efficiency);
		assert_true(again.device.transfer_share == same.device.transfer_share);
		sw_cluster_clear(&again);
		sw_cluster_clear(&cluster);
		sw_text_clear(&text);
	}
}

static void the_hash_covers_figures_and_not_names(void **state)
{
	static const struct {
		const char *from, *to;
		bool same;
	} changes[] = {
		{"name: test", "name: other", true},
		{"name: cpu", "name: gpu", true},
		{"30 us", "31 us", false},
		{"6 GB/s", "7 GB/s", false},
		{"2 GiB", "3 GiB", false},
		{"0.7", "0.6", false},
		{"f32: 50", "f32: 51", false},
		{"{f32:", "{f64: 1, f32:", false},
		{"overhead: 1 us", "overhead: 2 us", false},
		{"device, count: 2", "device, count: 4", false},
		{"8 GB/s", "9 GB/s", false},
		{"2 GB/s}", "2 GB/s, flow_bandwidth: 1 GB/s}", false},
		{"2 GB/s}", "2 GB/s, contention: 0.1}", false},
		{"2 GB/s}", "2 GB/s, contention: 0}", true},
		{"2 GB/s}", "[2 GB/s, 3 GB/s]}", false},
		{"2 GB/s}", "[2 GB/s, 2 GB/s]}", true},
	};
	const char *text = HEAD LEVELS DEVICE;
	sw_cluster first;
	(void)state;
	assert_int_equal(parse(text, &first, NULL), SW_OK);
	for (size_t i = 0; i < SW_COUNT(changes); i++) {
		const char *at = strstr(text, changes[i].from);
		sw_text changed = {0};
		sw_cluster second;
		assert_non_null(at);
		sw_text_add_n(&changed, text, (size_t)(at - text));
		sw_text_add(&changed, changes[i].to);
		sw_text_add(&changed, at + strlen(changes[i].from));
		assert_int_equal(parse(changed.data, &second, NULL), SW_OK);
		assert_int_equal(second.hash == first.hash, changes[i].same);
		sw_cluster_clear(&second);
		sw_text_clear(&changed);
	}
	sw_cluster_clear(&first);
}

/* ---- the files that come along ---------------------------------------------------------- */

static const struct {
	const char *name;
	int64_t devices, memory;
	int32_t atoms;
} files[] = {
	{"local-1x2", 2, 2147483648, 1},
	{"local-1x4", 4, 2147483648, 2},
	{"local-2x2", 4, 2147483648, 2},
	{"local-2x4", 8, 2147483648, 3},
	{"unequal-1-4", 5, 2147483648, 1},
	{"lab-2x1", 2, 1073741824, 1},
	{"lab-4x1", 4, 1073741824, 2},
	{"lab-2x4", 8, 1073741824, 3},
	{"lab-5x4", 20, 536870912, 3},
	{"lab-unequal", 6, 1073741824, 2},
	{"a100-8x8", 64, 80000000000, 6},
	{"h100-16x8", 128, 80000000000, 7},
	{"piz-daint", 4096, 16000000000, 12},
	{"google-cloud-2x16", 32, 40000000000, 5},
	{"dgx-a100-2x8", 16, 40000000000, 4},
	{"aws-p3-8xlarge", 32, 16000000000, 5},
	{"autodist-a", 16, 12000000000, 4},
	{"autodist-b1", 16, 8000000000, 4},
	{"autodist-b4", 32, 16000000000, 5},
	{"autodist-b9", 5, 8000000000, 1},
	{"autodist-b10", 8, 8000000000, 3},
	{"autodist-b11", 16, 8000000000, 4},
	{"autodist-b12", 5, 16000000000, 1},
	{"perlmutter", 1024, 40000000000, 10},
	{"frontier", 1024, 64000000000, 10},
	{"rhino-m8", 16, 32000000000, 4},
	{"rhino-s1", 8, 32000000000, 3},
	{"h100-superpod", 1024, 80000000000, 10},
	{"h200-superpod", 1024, 141000000000, 10},
	{"h100-10000", 10000, 80000000000, 8},
	{"tpu-v5p", 1024, 102005473280, 10},
	{"h100-rented", 512, 84932978278, 9},
	{"h100-xla", 128, 80000000000, 7},
	{"h100-xla-cudnn", 128, 80000000000, 7},
	{"h200-xla", 128, 141000000000, 7},
	{"h100-infiniband", 512, 84932978278, 9},
	{"h100-infiniband-triton", 512, 84932978278, 9},
	{"a100-selene", 3072, 84932978278, 11},
};

static void shipped_files_are_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(files); i++) {
		char path[512];
		sw_cluster cluster;
		sw_error err = {0};
		snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s.yaml", files[i].name);
		if (sw_cluster_read(path, &cluster, &err) != SW_OK)
			fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.message);
		assert_string_equal(cluster.name, files[i].name);
		assert_string_equal(cluster.source, path);
		assert_int_equal(cluster.n_devices, files[i].devices);
		assert_int_equal(cluster.device.memory_bytes, files[i].memory);
		assert_int_equal(cluster.atoms.n, files[i].atoms);
		check_reads_back(&cluster);
		sw_cluster_clear(&cluster);
	}
}

static bool is_listed(const char *file)
{
	for (size_t i = 0; i < SW_COUNT(files); i++)
		if (strncmp(file, files[i].name, strlen(files[i].name)) == 0 &&
		    strcmp(file + strlen(files[i].name), ".yaml") == 0)
			return true;
	return false;
}

static void every_shipped_file_is_tested(void **state)
{
	DIR *folder = opendir(SW_SOURCE_DIR "/clusters");
	size_t n = 0;
	(void)state;
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		if (!is_listed(entry->d_name))
			fail_msg("clusters/%s is in no test", entry->d_name);
		n++;
	}
	closedir(folder);
	assert_int_equal(n, SW_COUNT(files));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_are_understood),
		cmocka_unit_test(counts_become_atoms),
		cmocka_unit_test(atom_levels_are_the_outermost_crossed),
		cmocka_unit_test(devices_meet_where_their_parts_differ),
		cmocka_unit_test(each_part_has_its_link),
		cmocka_unit_test(a_list_of_equal_links_is_one_figure),
		cmocka_unit_test(printed_clusters_read_back),
		cmocka_unit_test(any_figures_and_names_read_back),
		cmocka_unit_test(the_hash_covers_figures_and_not_names),
		cmocka_unit_test(shipped_files_are_good),
		cmocka_unit_test(every_shipped_file_is_tested),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
