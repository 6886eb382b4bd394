/* Find the shape of the cluster: which ranks share a host. */
#include "run/calibrate_parts.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Containers may share a host's name but not its network: then each of them is a node. */
static uint64_t hash_host(void)
{
	char name[256] = "";
	struct stat network;
	gethostname(name, sizeof(name) - 1);
	uint64_t hash = sw_hash_bytes(name, strlen(name), 0);
	return stat("/proc/self/ns/net", &network) == 0
	               ? sw_hash_u64(hash, (uint64_t)network.st_ino)
	               : hash;
}

sw_status calibrate_hosts(sw_transport *t, uint64_t *hosts, sw_error *err)
{
	uint64_t mine = hash_host();
	return t->ops->all_gather(t, t->everyone, t->size, &mine, hosts, sizeof(mine), err);
}

/* counts[n]: the number of ranks of each host, in the order of the ranks; n is returned in
 * *n_hosts. */
static sw_status count_hosts(const uint64_t *hosts, int32_t size, int32_t *counts, int32_t *n_hosts,
                             sw_error *err)
{
	int32_t n = 0;
	for (int32_t r = 0; r < size; r++) {
		if (r > 0 && hosts[r] == hosts[r - 1]) {
			counts[n - 1]++;
			continue;
		}
		for (int32_t before = 0; before < r; before++)
			if (hosts[before] == hosts[r])
				return sw_fail(
					err, SW_ERR_INPUT,
					"ranks %d and %d share a host, and ranks between them do "
					"not: start mpirun with --map-by slot",
					before, r);
		counts[n++] = 1;
	}
	*n_hosts = n;
	return SW_OK;
}

static bool are_equal(const int32_t *counts, int32_t n)
{
	for (int32_t i = 1; i < n; i++)
		if (counts[i] != counts[0])
			return false;
	return true;
}

/* Give every part a link of its own, all with the same guess. */
static void print_unequal(const int32_t *counts, int32_t n, sw_text *text)
{
	sw_text_addf(text,
	             "  - {name: node, count: %d, latency: 30 us, bandwidth: 1 GB/s}\n  - {name: "
	             "device, "
	             "count: [",
	             n);
	for (int32_t i = 0; i < n; i++)
		sw_text_addf(text, "%s%d", i ? ", " : "", counts[i]);
	sw_text_add(text, "], latency: 5 us, bandwidth: 5 GB/s}\n");
}

static void print_levels(const int32_t *counts, int32_t n, sw_text *text)
{
	sw_text_add(text, "levels:\n");
	if (!are_equal(counts, n)) {
		print_unequal(counts, n, text);
		return;
	}
	if (n > 1)
		sw_text_addf(text,
		             "  - {name: node, count: %d, latency: 30 us, bandwidth: 1 GB/s}\n", n);
	if (n == 1 || counts[0] > 1)
		sw_text_addf(text,
		             "  - {name: device, count: %d, latency: 5 us, bandwidth: 5 GB/s}\n",
		             counts[0]);
}

/* The memory of a device is the host's memory divided by the largest number of ranks on a host. */
static void print_shape(const int32_t *counts, int32_t n, sw_text *text)
{
	int32_t most = 1;
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
	for (int32_t i = 0; i < n; i++)
		most = SW_MAX(most, counts[i]);
	sw_text_add(text, "version: 1\nname: measured-");
	if (are_equal(counts, n))
		sw_text_addf(text, "%dx%d\n", n, counts[0]);
	for (int32_t i = 0; i < n && !are_equal(counts, n); i++)
		sw_text_addf(text, "%s%d%s", i ? "-" : "", counts[i], i + 1 < n ? "" : "\n");
	print_levels(counts, n, text);
	sw_text_addf(text,
	             "device:\n  name: cpu\n  memory: %.0f\n  memory_bandwidth: 10 GB/s\n  "
	             "kernel_overhead: 1 us\n"
	             "  matmul_efficiency: 0.8\n  flops: {f32: 50 GFLOP/s, f64: 25 GFLOP/s}\n",
	             memory / most);
}

/* All ranks use rank 0's text, since hosts may differ in memory. */
static sw_status share_text(sw_transport *t, sw_text *text, sw_error *err)
{
	int64_t length = (int64_t)text->len;
	sw_status status = t->ops->broadcast(t, 0, &length, sizeof(length), err);
	if (status != SW_OK)
		return status;
	char *shared = sw_alloc((size_t)length + 1);
	if (t->rank == 0)
		memcpy(shared, text->data, (size_t)length);
	status = t->ops->broadcast(t, 0, shared, length, err);
	sw_text_clear(text);
	sw_text_add_n(text, shared, (size_t)length);
	free(shared);
	return status;
}

sw_status sw_calibrate_shape(sw_transport *t, sw_cluster *cluster, sw_error *err)
{
	uint64_t *hosts = sw_alloc((size_t)t->size * sizeof(*hosts));
	int32_t *counts = sw_alloc((size_t)t->size * sizeof(*counts)), n = 0;
	sw_text text = {0};
	sw_status status = calibrate_hosts(t, hosts, err);
	if (status == SW_OK)
		status = count_hosts(hosts, t->size, counts, &n, err);
	if (status == SW_OK) {
		print_shape(counts, n, &text);
		status = share_text(t, &text, err);
	}
	if (status == SW_OK)
		status = sw_cluster_parse(text.data, text.len, "the shape of this job", cluster,
		                          err);
	sw_text_clear(&text);
	free(counts);
	free(hosts);
	return status;
}
