/* The cluster files of real machines (clusters/): the cost model derives from each file what the
 * file's source says of the machine. */
#include "cost/clusters.h"

#include <math.h>

#define GB 1000000000

static void read_machine(sw_cluster *cluster, const char *name, const char *part)
{
	char path[512];
	sw_error err = {0};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s.yaml", name);
	sw_status status = sw_cluster_read(path, cluster, &err);
	if (status == SW_OK && part)
		status = sw_cluster_take(cluster, part, &err);
	if (status != SW_OK)
		fail_msg("%s: %s", name, err.message);
}

static void assert_about(const char *what, double actual, double expected, double tolerance)
{
	if (!(fabs(actual - expected) <= tolerance * expected))
		fail_msg("%s: %.6g, and the source says %.6g", what, actual, expected);
}

/* ---- links ------------------------------------------------------------------------------ */

/* Return the atoms that step across the outermost level, and those of each inner level until a
 * group has `inner` members in an outermost part. */
static uint32_t group_atoms(const sw_cluster *cluster, int64_t inner)
{
	uint32_t atoms = atoms_of_level(cluster, 0);
	for (int32_t a = 0; a < cluster->atoms.n && inner > 1; a++)
		if (cluster->atom_level[a] > 0 && inner % cluster->atoms.size[a] == 0) {
			atoms |= UINT32_C(1) << a;
			inner /= cluster->atoms.size[a];
		}
	assert_true(inner == 1);
	return atoms;
}

static double without_latency(const sw_cluster *cluster, sw_algorithm algorithm,
                              sw_collective_kind kind, uint32_t atoms)
{
	return sw_cost_algorithm(cluster, algorithm, kind, atoms, GB) -
	       sw_cost_algorithm(cluster, algorithm, kind, atoms, 0);
}

/* Return the bytes per second of a ring, from the seconds of its all-reduce: AxoNN equation 3,
 * AutoDDL table 2. */
static double ring_bandwidth(const sw_cluster *cluster, uint32_t atoms)
{
	double g = (double)sw_atoms_group_size(&cluster->atoms, atoms);
	return 2 * (g - 1) / g * GB /
	       without_latency(cluster, SW_ALGORITHM_RING, SW_COLLECTIVE_ALL_REDUCE, atoms);
}

/* Rings over all nodes with `members` devices in each; the other devices form rings of their own,
 * which leave the node, too. */
static const struct {
	const char *name;
	int64_t members;
	double bandwidth;
	const char *source;
} rings[] = {
	{"piz-daint", 1, 8.5e9, "AutoDDL 5.2.1: 8.5 to 10 GB/s per node"},
	{"google-cloud-2x16", 16, 12.5e9, "AutoDDL 5.3.1: 100 Gb/s"},
	{"dgx-a100-2x8", 8, 12.5e9, "AutoDDL 5.3.1: 100 Gb/s"},
	{"aws-p3-8xlarge", 4, 1.25e9, "cross-mesh resharding 5: 10 Gb/s"},
	{"aws-p3-8xlarge", 1, 1.25e9 / 4,
         "the same, shared by four: section 3, bottleneck at hosts"},
	{"autodist-a", 1, 5e9, "AutoDist 3: 40GbE"},
	{"autodist-b1", 4, 1.25e9, "AutoDist 3: 10GbE of single flows"},
	{"autodist-b1", 1, 3.125e9 / 4, "AutoDist 3: 25GbE, by four"},
	{"autodist-b4", 4, 1.25e9, "AutoDist 3: 10GbE of single flows"},
	{"autodist-b4", 1, 1.25e9, "AutoDist 3: 50GbE by four is more than 10GbE of a flow"},
	{"perlmutter", 4, 100e9, "AxoNN VI and equation 10: 4 x 200 Gb/s, one ring"},
	{"perlmutter", 2, 50e9, "AxoNN equation 10: by two"},
	{"perlmutter", 1, 25e9, "AxoNN equation 10: by four, no more than the GPUs of a node"},
	{"frontier", 8, 100e9, "AxoNN VI and equation 10: 4 x 200 Gb/s, one ring"},
	{"frontier", 4, 50e9, "AxoNN equation 10: by two"},
	{"frontier", 2, 25e9, "AxoNN equation 10: by four"},
	{"frontier", 1, 12.5e9, "AxoNN equation 10: by eight"},
	{"rhino-m8", 8, 12.5e9, "Rhino 7.1: 100G RoCE"},
	{"rhino-s1", 1, 12.5e9, "Rhino 7.1: 100G RoCE"},
	{"h100-superpod", 1, 50e9, "SuperPOD: eight rails of 400 Gb/s"},
	{"h200-superpod", 1, 50e9, "SuperPOD: eight rails of 400 Gb/s"},
	{"tpu-v5p", 1, 6.25e9, "Google: 50 Gb/s per chip between slices"},
};

static void rings_between_nodes_have_the_bandwidth_that_the_source_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(rings); i++) {
		sw_cluster cluster;
		read_machine(&cluster, rings[i].name, NULL);
		assert_about(rings[i].source,
		             ring_bandwidth(&cluster, group_atoms(&cluster, rings[i].members)),
		             rings[i].bandwidth, 1e-9);
		sw_cluster_clear(&cluster);
	}
}

/* Check AxoNN equation 10 for all grids of GPUs, on 64 to 1024 of them. */
static void axonn_equation_10_holds_at_all_its_sizes(void **state)
{
	static const char *const names[] = {"perlmutter", "frontier"}, *const sizes[] = {
									       "64", "128", "256",
									       "512", "1024"};
	static const int64_t node[] = {4, 8};
	(void)state;
	for (size_t n = 0; n < SW_COUNT(names); n++)
		for (size_t s = 0; s < SW_COUNT(sizes); s++) {
			sw_cluster cluster;
			read_machine(&cluster, names[n], sizes[s]);
			/* G_0 ... G_(i-1) */
			for (int64_t inside = 1; inside <= 2 * node[n]; inside *= 2) {
				uint32_t atoms = 0;
				for (int32_t a = 0; a < cluster.atoms.n; a++)
					if (sw_atoms_stride(&cluster.atoms, a) >= inside)
						atoms |= UINT32_C(1) << a;
				assert_about("AxoNN equation 10", ring_bandwidth(&cluster, atoms),
				             4 * 25e9 / (double)SW_MIN(node[n], inside), 1e-9);
			}
			sw_cluster_clear(&cluster);
		}
}

/* Return the bytes per second of a part's link, from the seconds in which all g devices send to
 * each other, `here` of them in the part, which is one of `peers`. Messages in one piece take 1.5
 * times as long as the link would, and streams from more than one other part slow each other
 * (forms.c, UNPIPELINED and INCAST). */
static double link_bandwidth(const sw_cluster *cluster, uint32_t atoms, double here, double peers)
{
	double g = (double)sw_atoms_group_size(&cluster->atoms, atoms);
	double leaving = here * (g - here) * GB / g;
	double seconds =
		without_latency(cluster, SW_ALGORITHM_DIRECT, SW_COLLECTIVE_ALL_TO_ALL, atoms);
	return 1.5 * (1 + 0.1 * fmax(peers - 2, 0)) * leaving / seconds;
}

/* Two whole nodes, or slices; of unequal ones, the slower decides. */
static const struct {
	const char *name, *part;
	double here, bandwidth;
	const char *source;
} nodes[] = {
	{"aws-p3-8xlarge", "8", 4, 1.25e9, "cross-mesh resharding 5: 10 Gb/s"},
	{"autodist-b1", "8", 4, 25e9 / 8, "AutoDist table 1, B1: 25 GbE"},
	{"autodist-b4", "8", 4, 50e9 / 8, "AutoDist table 1, B5: 50 GbE"},
	{"autodist-b9", "5", 1, 10e9 / 8, "AutoDist table 1, B9: 10/25 GbE"},
	{"autodist-b12", "5", 1, 25e9 / 8, "AutoDist table 1, B12: 25/50 GbE"},
	{"autodist-b10", "8", 4, 25e9 / 8, "AutoDist table 1, B10: 25/50 GbE"},
	{"autodist-b11", "8", 4, 25e9 / 8, "AutoDist table 1, B11: 25/50 GbE"},
	{"perlmutter", "8", 4, 4 * 200e9 / 8, "AxoNN VI: four NICs of 200 Gb/s"},
	{"frontier", "16", 8, 4 * 200e9 / 8, "AxoNN VI: four NICs of 200 Gb/s"},
	{"rhino-m8", "16", 8, 100e9 / 8, "Rhino 7.1: 100G RoCE"},
	{"h100-superpod", "16", 8, 8 * 400e9 / 8, "SuperPOD: eight rails of 400 Gb/s"},
	{"h200-superpod", "16", 8, 8 * 400e9 / 8, "SuperPOD: eight rails of 400 Gb/s"},
	{"tpu-v5p", "1024", 512, 512 * 50e9 / 8, "Google: 50 Gb/s for each of 512 chips"},
};

static void nodes_send_as_much_as_the_source_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(nodes); i++) {
		sw_cluster cluster;
		read_machine(&cluster, nodes[i].name, nodes[i].part);
		uint32_t all = (UINT32_C(1) << cluster.atoms.n) - 1;
		assert_about(nodes[i].source, link_bandwidth(&cluster, all, nodes[i].here, 2),
		             nodes[i].bandwidth, 1e-9);
		sw_cluster_clear(&cluster);
	}
}

/* Devices of one node; data sheets give NVLink for both directions together. */
static const struct {
	const char *name, *part;
	double bandwidth;
	const char *source;
} insides[] = {
	{"google-cloud-2x16", "16", 600e9 / 2, "AutoDDL 5.3.1: NVLink, 600 GB/s per GPU"},
	{"dgx-a100-2x8", "8", 600e9 / 2, "AutoDDL 5.3.1: NVLink, 600 GB/s per GPU"},
	{"autodist-b1", "4", 16 * 8e9 * 128 / 130 / 8, "PCIe 3.0 x16: 8 GT/s, 128b/130b"},
	{"autodist-b4", "4", 16 * 8e9 * 128 / 130 / 8, "PCIe 3.0 x16: 8 GT/s, 128b/130b"},
	{"autodist-b10", "4", 16 * 8e9 * 128 / 130 / 8, "PCIe 3.0 x16: 8 GT/s, 128b/130b"},
	{"autodist-b11", "4", 16 * 8e9 * 128 / 130 / 8, "PCIe 3.0 x16: 8 GT/s, 128b/130b"},
	{"perlmutter", "4", 600e9 / 2,
         "NVIDIA: A100, NVLink 600 GB/s; NERSC: 12 links of 25 GB/s each way"},
	{"rhino-m8", "8", 300e9 / 2, "NVIDIA: V100, NVLink 300 GB/s"},
	{"h100-superpod", "8", 900e9 / 2, "NVIDIA: H100, NVLink 900 GB/s"},
	{"h200-superpod", "8", 900e9 / 2, "NVIDIA: H200, NVLink 900 GB/s"},
};

static void devices_of_a_node_send_as_much_as_the_source_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(insides); i++) {
		sw_cluster cluster;
		read_machine(&cluster, insides[i].name, insides[i].part);
		uint32_t all = (UINT32_C(1) << cluster.atoms.n) - 1;
		assert_about(insides[i].source,
		             link_bandwidth(&cluster, all, 1, (double)cluster.n_devices),
		             insides[i].bandwidth, 1e-3);
		sw_cluster_clear(&cluster);
	}
}

/* Seconds of a message that has the links for itself. */
static const struct {
	const char *name;
	int64_t from, to;
	double seconds; /* for 1 GB */
	const char *source;
} messages[] = {
	{"aws-p3-8xlarge", 0, 4, 0.8, "cross-mesh resharding 5.1.1: 1 GB over 10 Gb/s"},
	{"autodist-b1", 0, 4, 0.8, "AutoDist 3: 10 Gb/s of a single flow"},
	{"aws-p3-8xlarge", 0, 1, 1 / 25., "NVIDIA: a link of NVLink 2, 25 GB/s"},
	{"autodist-b9", 1, 2, 1 / 15.75, "PCIe 3.0 x16: 8 GT/s, 128b/130b"},
	{"autodist-b12", 1, 2, 1 / 15.75, "PCIe 3.0 x16: 8 GT/s, 128b/130b"},
	{"autodist-b9", 0, 1, 0.8, "AutoDist 3: 10 Gb/s of the smaller node and of a single flow"},
	{"autodist-b10", 0, 4, 0.8, "AutoDist 3: 10 Gb/s of a single flow"},
	{"autodist-b11", 4, 8, 0.8, "AutoDist 3: 10 Gb/s of a single flow"},
	{"autodist-b12", 0, 1, 0.8, "AutoDist 3: 10 Gb/s of a single flow"},
	{"h100-superpod", 0, 8, 1 / 50., "SuperPOD: a rail of 400 Gb/s"},
	{"h200-superpod", 0, 8, 1 / 50., "SuperPOD: a rail of 400 Gb/s"},
	{"perlmutter", 0, 1, 1 / 100., "NERSC: four NVLinks of 25 GB/s between two GPUs"},
	{"frontier", 0, 1, 1 / 200., "OLCF: 200 GB/s between the GCDs of an MI250X"},
	{"frontier", 0, 2, 1 / 100., "OLCF: 50 to 100 GB/s between different ones"},
	{"rhino-m8", 0, 1, 1 / 25., "NVIDIA: a link of NVLink 2, 25 GB/s"},
};

static void messages_take_as_long_as_the_source_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(messages); i++) {
		sw_cluster cluster;
		read_machine(&cluster, messages[i].name, NULL);
		assert_about(messages[i].source,
		             sw_cost_pair(&cluster, messages[i].from, messages[i].to, GB),
		             messages[i].seconds, 0.01);
		sw_cluster_clear(&cluster);
	}
}

/* Two nodes exchange half of the data that they sum, and send the other half: the operand crosses
 * each link once. */
static void an_all_reduce_of_1_gb_over_100_gb_s_takes_80_ms(void **state)
{
	static const char *const names[] = {"google-cloud-2x16", "dgx-a100-2x8", "rhino-m8"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		sw_cluster cluster;
		read_machine(&cluster, names[i], NULL);
		uint32_t all = (UINT32_C(1) << cluster.atoms.n) - 1;
		sw_collective_choice choice =
			sw_cost_choose(&cluster, SW_COLLECTIVE_ALL_REDUCE, all, GB);
		assert_int_equal(choice.algorithm, SW_ALGORITHM_HIERARCHICAL);
		assert_about("1 GB over 100 Gb/s", choice.seconds, 8e9 / 100e9, 0.02);
		sw_cluster_clear(&cluster);
	}
}

/* Google's figure is for a chip's six links, both directions together: two links per axis, which a
 * ring along the axis has for itself. */
static void rings_along_the_axes_of_a_tpu_pod_have_all_its_links(void **state)
{
	sw_cluster cluster;
	double sum = 0;
	(void)state;
	read_machine(&cluster, "tpu-v5p", "512");
	for (int32_t axis = 1; axis <= 3; axis++)
		sum += 2 * ring_bandwidth(&cluster, atoms_of_level(&cluster, axis));
	assert_about("Google: interconnect of a chip", sum, 1200e9, 1e-9);
	sw_cluster_clear(&cluster);
}

/* Where two nodes have different links, the exchange is done when the slower one is. */
static void unequal_nodes_wait_for_the_slower_link(void **state)
{
	static const struct {
		const char *name;
		double bandwidth;
	} cases[] = {{"autodist-b9", 1.25e9}, {"autodist-b12", 1.25e9}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_cluster cluster;
		read_machine(&cluster, cases[i].name, NULL);
		assert_about("AutoDist table 1", ring_bandwidth(&cluster, 1), cases[i].bandwidth,
		             1e-9);
		sw_cluster_clear(&cluster);
	}
}

/* B10: four rings over two nodes of 25 and 50 Gb/s have a quarter of the slower link. */
static void four_rings_share_the_slower_of_two_links(void **state)
{
	static const char *const names[] = {"autodist-b10", "autodist-b11"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		sw_cluster cluster;
		read_machine(&cluster, names[i], NULL);
		assert_about("AutoDist table 1", ring_bandwidth(&cluster, group_atoms(&cluster, 1)),
		             3.125e9 / 4, 1e-9);
		sw_cluster_clear(&cluster);
	}
}

/* ---- devices ---------------------------------------------------------------------------- */

/* Sums over the devices of a part, as sources give them. */
static const struct {
	const char *name, *part;
	sw_type type;
	double flops, memory_bytes; /* 0: the source does not give it */
	const char *source;
} sums[] = {
	{"piz-daint", "1", SW_F32, 9.3e12, 16e9, "AutoDDL 5.2.1, NVIDIA"},
	{"google-cloud-2x16", "1x16", SW_F16, 5e15, 16 * 40e9,
         "NVIDIA: 5 PFLOP/s in DGX A100's 8 with sparsity, so in 16 without"},
	{"dgx-a100-2x8", "8", SW_F16, 2.5e15, 320e9,
         "NVIDIA: DGX A100, 320 GB; 5 PFLOP/s with sparsity"},
	{"aws-p3-8xlarge", "4", SW_F16, 500e12, 64e9,
         "AWS: p3.8xlarge, 64 GB; NVIDIA: 125 TFLOP/s"},
	{"autodist-a", "1", SW_F32, 3072 * 2 * 1075e6, 12e9,
         "NVIDIA: GTX TITAN X, 3072 cores at 1075 MHz, 12 GB"},
	{"autodist-b1", "2", SW_F32, 9.65e12, 16e9,
         "NVIDIA: a board of two M60 GPUs, 9.65 TFLOP/s, 16 GB"},
	{"autodist-b4", "4", SW_F16, 260e12, 64e9, "AWS: g4dn.12xlarge, 64 GB; NVIDIA: 65 TFLOP/s"},
	{"autodist-b9", "5", SW_F32, 5 * 2048 * 2 * 1178e6, 40e9,
         "NVIDIA: M60, 2048 cores at 1178 MHz, 8 GB"},
	{"autodist-b10", "4", SW_F32, 2 * 9.65e12, 32e9,
         "AWS: g3.16xlarge, 32 GB; NVIDIA: 9.65 TFLOP/s for two"},
	{"autodist-b11", "4", SW_F32, 2 * 9.65e12, 32e9,
         "AWS: g3.16xlarge, 32 GB; NVIDIA: 9.65 TFLOP/s for two"},
	{"autodist-b12", "5", SW_F32, 5 * 2560 * 2 * 1590e6, 80e9,
         "NVIDIA: T4, 2560 cores at 1590 MHz, 16 GB"},
	{"rhino-s1", "1", SW_F32, 5120 * 2 * 1601e6, 32e9,
         "NVIDIA: V100S, 5120 cores at 1601 MHz, 32 GB"},
	{"perlmutter", "1024", SW_BF16, 182e15 / 0.57, 256 * 160e9,
         "AxoNN abstract: 182 PFLOP/s are 57 % of 1024 GPUs"},
	{"frontier", "2", SW_BF16, 383e12, 128e9, "AMD: MI250X, 383 TFLOP/s; AxoNN VI: 128 GB"},
	{"rhino-m8", "8", SW_F32, 8 * 15.6e12, 8 * 32e9, "Rhino 7.1, 7.2"},
	{"h100-superpod", "8", SW_F8E4M3FN, 32e15 / 2, 640e9,
         "NVIDIA: DGX H100, 32 PFLOP/s with sparsity, 640 GB"},
	{"h200-superpod", "8", SW_F8E4M3FN, 32e15 / 2, 1128e9,
         "NVIDIA: DGX H200, 32 PFLOP/s with sparsity, 1128 GB"},
	{"tpu-v5p", "512", SW_BF16, 512 * 459e12, 512 * 95 * 0x1p30, "Google: 8x8x8"},
};

static void devices_add_up_to_the_whole_that_the_source_gives(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(sums); i++) {
		sw_cluster cluster;
		read_machine(&cluster, sums[i].name, sums[i].part);
		double n = (double)cluster.n_devices;
		assert_about(sums[i].source, n * cluster.device.flops[sums[i].type], sums[i].flops,
		             0.015);
		assert_about(sums[i].source, n * (double)cluster.device.memory_bytes,
		             sums[i].memory_bytes, 1e-9);
		sw_cluster_clear(&cluster);
	}
}

/* A step's utilization includes all its waiting, so it is less than that of matmuls alone. */
static void matmuls_reach_more_than_whole_steps(void **state)
{
	static const struct {
		const char *name;
		double utilization;
	} steps[] = {{"perlmutter", 0.67 /* AxoNN table III */},
	             {"rhino-m8", 0.759 /* Rhino 7.2 */}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(steps); i++) {
		sw_cluster cluster;
		read_machine(&cluster, steps[i].name, NULL);
		assert_true(cluster.device.matmul_efficiency > steps[i].utilization);
		sw_cluster_clear(&cluster);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_between_nodes_have_the_bandwidth_that_the_source_says),
		cmocka_unit_test(axonn_equation_10_holds_at_all_its_sizes),
		cmocka_unit_test(nodes_send_as_much_as_the_source_says),
		cmocka_unit_test(devices_of_a_node_send_as_much_as_the_source_says),
		cmocka_unit_test(messages_take_as_long_as_the_source_says),
		cmocka_unit_test(an_all_reduce_of_1_gb_over_100_gb_s_takes_80_ms),
		cmocka_unit_test(rings_along_the_axes_of_a_tpu_pod_have_all_its_links),
		cmocka_unit_test(unequal_nodes_wait_for_the_slower_link),
		cmocka_unit_test(four_rings_share_the_slower_of_two_links),
		cmocka_unit_test(devices_add_up_to_the_whole_that_the_source_gives),
		cmocka_unit_test(matmuls_reach_more_than_whole_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
