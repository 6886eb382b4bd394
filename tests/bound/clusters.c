#include "bound/clusters.h"

#include <string.h>

#include "test.h"

/* PLAIN: a processor and links that take times of the same size. FREE: links that cost nothing, so
 * that the step is its kernels. WORK: free links and kernels without overhead, so that only shares
 * count. FITTED: a calibrated processor with free links. TILED: WORK, with products in small tiles.
 * THIN: a quick processor behind thin links between the outermost parts, so that the step is what
 * they carry. Which ops share a kernel is another matter (ground_of). */
typedef enum device_kind { PLAIN, FREE, WORK, FITTED, TILED, THIN } device_kind;

static const struct {
	const char *name, *counts; /* of the levels, or a file */
	device_kind device;
} rows[N_SITES] = {
	{"2 plain", "2", PLAIN},
	{"2x2 work", "2,2", WORK},
	{"3 work", "3", WORK},
	{"6 free", "6", FREE},
	{"12 work", "12", WORK},
	{"2x3 plain", "2,3", PLAIN},
	{"2x4 free", "2,4", FREE},
	{"2x4 work", "2,4", WORK},
	{"2x2x2 work", "2,2,2", WORK},
	{"2x4 fitted", "2,4", FITTED},
	{"3x2 fitted", "3,2", FITTED},
	{"16 work", "16", WORK},
	{"2x4 tiled", "2,4", TILED},
	{"3x2 tiled", "3,2", TILED},
	{"12 tiled", "12", TILED},
	{"2x2 thin", "2,2", THIN},
	{"4x2 thin", "4,2", THIN},
	{"8 thin", "8", THIN},
	{"6x2 thin", "6,2", THIN},
	{"2x2x2 thin", "2,2,2", THIN},
	{"512 thin", "512", THIN},
	{"[1,2,3]", "3,[1, 2, 3]", PLAIN},
	{"lab-unequal", "lab-unequal.yaml", PLAIN},
};

static void add_levels(sw_text *text, const char *counts, device_kind device)
{
	int level = 0;
	while (*counts) {
		size_t n = *counts == '[' ? strcspn(counts, "]") + 1 : strcspn(counts, ",");
		if (device == THIN && level == 0)
			sw_text_addf(text,
			             "  - {name: level0, count: %.*s, latency: 0 us, bandwidth: 2 "
			             "GB/s}\n",
			             (int)n, counts);
		else if (device != PLAIN)
			sw_text_addf(text,
			             "  - {name: level%d, count: %.*s, latency: 0 us, bandwidth: "
			             "%d000 TB/s}\n",
			             level, (int)n, counts, 100 + level);
		else
			sw_text_addf(text,
			             "  - {name: level%d, count: %.*s, latency: %d us, bandwidth: "
			             "%d GB/s}\n",
			             level, (int)n, counts, 30 - 5 * level, 2 + level);
		counts += n;
		counts += *counts == ',';
		level++;
	}
}

/* A calibrated device: each family has a fit with all of its terms. */
static void fit_kernels(sw_device *device)
{
	device->cache_bytes = 1 << 20;
	for (int32_t f = 0; f < SW_FAMILY_COUNT; f++)
		device->kernels[f] = (sw_kernel_fit){.given = true,
		                                     .overhead_s = 1e-7 * (1 + f),
		                                     .flops_per_s = 1e9 * (1 + f),
		                                     .bytes_per_s = 8e9,
		                                     .cached_bytes_per_s = 5e10,
		                                     .call_s = 2e-8,
		                                     .row_s = 1e-9 * f};
}

static sw_status parse(const char *counts, device_kind device, sw_cluster *cluster, sw_error *err)
{
	sw_text text = {0};
	sw_text_add(&text, "version: 1\nname: ground\nlevels:\n");
	add_levels(&text, counts, device);
	sw_text_addf(&text,
	             "device:\n  name: core\n  memory: 64 GiB\n  memory_bandwidth: %s GB/s\n  "
	             "kernel_overhead: %s us\n  matmul_efficiency: 0.7\n"
	             "  flops: {f32: %s GFLOP/s, f64: 20 GFLOP/s}\n",
	             device == THIN ? "500" : "8", device == WORK || device >= TILED ? "0" : "1",
	             device == THIN ? "500" : "50");
	if (device == TILED)
		sw_text_add(&text, "  tile: 4\n  processors: 3\n  tile_depth: 2\n");
	sw_status status = sw_cluster_parse(text.data, text.len, "ground.yaml", cluster, err);
	sw_text_clear(&text);
	if (status == SW_OK && device == FITTED)
		fit_kernels(&cluster->device);
	return status;
}

void sites_init(site *sites)
{
	for (int32_t i = 0; i < N_SITES; i++) {
		char path[512];
		sw_error err = {0};
		site *s = &sites[i];
		*s = (site){.name = rows[i].name};
		snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s", rows[i].counts);
		sw_status status = strstr(path, ".yaml") ? sw_cluster_read(path, &s->cluster, &err)
		                                         : parse(rows[i].counts, rows[i].device,
		                                                 &s->cluster, &err);
		if (status != SW_OK)
			fail_msg("%s: %s", s->name, err.message);
		s->paths = sw_path_store_new(&s->cluster);
	}
}

/* Attention as fast as other products, slower, or faster, of short heads as well as of long ones; a
 * host that is quick, or takes longer than small kernels. */
static void set_fusion(sw_device *device, sw_fusion fusion, uint64_t seed)
{
	static const double efficiencies[] = {0, 0.3, 0.95};
	sw_rng rng = {sw_random_bits(seed, 12, 0), 0};
	device->fusion = fusion;
	device->attention_efficiency = efficiencies[sw_rng_below(&rng, SW_COUNT(efficiencies))];
	device->attention_gradient_efficiency =
		efficiencies[sw_rng_below(&rng, SW_COUNT(efficiencies))];
	device->attention_depth = sw_rng_below(&rng, 2) ? 16 : 0;
	device->launch_interval_s = sw_rng_below(&rng, 4) ? 0 : 30e-6;
}

ground ground_of(const site *s, sw_fusion fusion, uint64_t seed)
{
	ground g = {.cluster = s->cluster, .paths = s->paths};
	assert_int_equal(s->cluster.n_kinds, 0);
	snprintf(g.name, sizeof(g.name), "%s, %s", s->name, sw_fusion_name(fusion));
	set_fusion(&g.cluster.device, fusion, seed);
	return g;
}

void sites_forget(site *sites)
{
	for (int32_t i = 0; i < N_SITES; i++) {
		sw_path_store_free(sites[i].paths);
		sites[i].paths = sw_path_store_new(&sites[i].cluster);
	}
}

void sites_clear(site *sites)
{
	for (int32_t i = 0; i < N_SITES; i++) {
		sw_path_store_free(sites[i].paths);
		sw_cluster_clear(&sites[i].cluster);
	}
}
