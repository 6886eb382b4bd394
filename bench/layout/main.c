/*
 * The time of the search for redistribution paths, and the paths that it finds.
 *
 *   bench/layout [--pairs N] [--seed N]
 *
 * Random pairs of layouts of one f32 tensor on clusters of 4 devices to a node, under levels of
 * switches. "runs": neighbouring atoms mostly share a state, as in plans; "free": each atom has its
 * own. "alone" is sw_redistribute; "cached" is one cache for all pairs, which share prices and
 * bounds. Times are processor time per pair; "slowest" is of the pairs alone. "vs gather" is the
 * benefit of the search: the time of reducing and gathering everything, then slicing (transposes
 * not counted), divided by the time of the paths found, both summed. "moves" is the mean number.
 * Everything but the times depends on the seed only.
 */
#include "cost/cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct workload {
	const char *name;
	bool runs;
	sw_cluster cluster;
	sw_shape shape;
	int64_t pairs;
	uint64_t seed;
} workload;

typedef struct figures {
	double alone_s, slowest_s, cached_s; /* of the processor */
	double path_s, plain_s;              /* of the model */
	int64_t moves;
} figures;

static double cpu_now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- subjects --------------------------------------------------------------------------- */

/* Make a cluster of nodes of four devices under levels of switches with these counts, outermost
 * first. */
static sw_status make_cluster(const char *counts, sw_cluster *cluster, sw_error *err)
{
	sw_text text = {0};
	sw_text_add(&text, "version: 1\nname: bench\nlevels:\n");
	for (int32_t l = 0; counts[l]; l++)
		sw_text_addf(
			&text,
			"  - {name: switch%d, count: %c, latency: %d us, bandwidth: %d GB/s}\n", l,
			counts[l], 20 - l, 10 + 5 * l);
	sw_text_add(
		&text,
		"  - {name: node, count: 4, latency: 5 us, bandwidth: 200 GB/s}\n"
		"device:\n  name: gpu\n  memory: 16 GiB\n  memory_bandwidth: 1000 GB/s\n"
		"  kernel_overhead: 4 us\n  matmul_efficiency: 0.5\n  flops: {f32: 10 TFLOP/s}\n");
	sw_status status = sw_cluster_parse(text.data, text.len, "bench", cluster, err);
	sw_text_clear(&text);
	return status;
}

static sw_layout random_layout(sw_rng *rng, const workload *w)
{
	const sw_atoms *atoms = &w->cluster.atoms;
	sw_layout layout = sw_layout_replicated(atoms);
	int64_t top[SW_MAX_RANK], choice = 0;
	for (int32_t dim = 0; dim < w->shape.rank; dim++)
		top[dim] = w->shape.dims[dim];
	for (int32_t a = 0; a < atoms->n; a++) {
		if (a == 0 || !w->runs || sw_rng_below(rng, 2) == 0)
			choice = sw_rng_below(rng, w->shape.rank + 2);
		if (choice == w->shape.rank)
			layout.state[a].kind = SW_STATE_P;
		else if (choice < w->shape.rank &&
		         sw_layout_split(atoms, &layout, 1u << a, (int32_t)choice, top[choice]))
			top[choice] /= atoms->size[a];
	}
	layout.monoid = sw_layout_partial_atoms(&layout) ? SW_MONOID_SUM : SW_MONOID_NONE;
	return layout;
}

/* ---- measuring -------------------------------------------------------------------------- */

static uint32_t changed_atoms(const sw_layout *from, const sw_layout *to, sw_state_kind begins)
{
	uint32_t mask = 0;
	for (int32_t a = 0; a < from->n; a++) {
		sw_state f = from->state[a], t = to->state[a];
		if (f.kind == begins &&
		    (f.kind != t.kind || f.dim != t.dim || f.stride != t.stride))
			mask |= 1u << a;
	}
	return mask;
}

/* Return the path that reduces everything that changes, then gathers it, then slices it. */
static double by_way_of_b_s(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                            const sw_layout *to)
{
	uint32_t partial = changed_atoms(from, to, SW_STATE_P),
		 split = changed_atoms(from, to, SW_STATE_S);
	int64_t bytes = sw_layout_local_bytes(how->atoms, shape, from);
	double seconds =
		partial ? how->seconds(how->context, SW_MOVE_ALL_REDUCE, partial, bytes) : 0;
	if (split)
		seconds += how->seconds(how->context, SW_MOVE_ALL_GATHER, split, bytes);
	bool slices = false;
	for (int32_t a = 0; a < to->n; a++)
		slices = slices ||
		         (to->state[a].kind == SW_STATE_S &&
		          ((partial | split | changed_atoms(from, to, SW_STATE_B)) >> a & 1));
	if (slices)
		seconds += how->local_overhead_s +
		           2 * (double)sw_layout_local_bytes(how->atoms, shape, to) /
		                   how->local_bandwidth;
	return seconds;
}

static sw_status measure(workload *w, figures *sum, sw_error *err)
{
	sw_redistribution how = {&w->cluster.atoms,
	                         sw_cost_collective,
	                         &w->cluster,
	                         w->cluster.device.memory_bandwidth,
	                         w->cluster.device.kernel_overhead_s,
	                         0, false};
	sw_path_cache *cache = sw_path_cache_new(&how);
	sw_status status = SW_OK;
	sw_rng rng = {w->seed, 0};
	for (int64_t i = 0; i < w->pairs && status == SW_OK; i++) {
		sw_layout from = random_layout(&rng, w), to = random_layout(&rng, w);
		sw_path path;
		double begin = cpu_now_s();
		status = sw_redistribute(&how, w->shape, &from, &to, &path, err);
		double middle = cpu_now_s();
		sw_path_cache_get(cache, w->shape, &from, &to);
		sum->cached_s += cpu_now_s() - middle;
		sum->alone_s += middle - begin;
		sum->slowest_s = fmax(sum->slowest_s, middle - begin);
		sum->path_s += path.seconds;
		sum->plain_s += by_way_of_b_s(&how, w->shape, &from, &to);
		sum->moves += path.n;
	}
	sw_path_cache_free(cache);
	return status;
}

static void add_row(sw_table *table, const workload *w, const figures *sum)
{
	double pairs = (double)w->pairs;
	sw_table_cell(table, "%d", w->cluster.atoms.n);
	sw_table_cell(table, "%lld", (long long)w->cluster.n_devices);
	sw_table_cell(table, "%s", w->name);
	sw_table_cell(table, "%.1f", sum->alone_s / pairs * 1e6);
	sw_table_cell(table, "%.0f", sum->slowest_s * 1e6);
	sw_table_cell(table, "%.1f", sum->cached_s / pairs * 1e6);
	sw_table_cell(table, "%.2f", (double)sum->moves / pairs);
	sw_table_cell(table, "%.4f", sum->path_s / pairs * 1e3);
	sw_table_cell(table, "%.3f", sum->plain_s / sum->path_s);
}

static sw_status measure_all(int64_t pairs, uint64_t seed, sw_table *table, sw_error *err)
{
	static const int64_t dims[] = {1536, 96, 1024};
	static const char *const clusters[] = {"", "2", "22", "322", "2222", "22222", "44444"};
	for (size_t c = 0; c < SW_COUNT(clusters); c++) {
		for (int runs = 1; runs >= 0; runs--) {
			workload w = {.name = runs ? "runs" : "free",
			              .runs = runs,
			              .pairs = pairs,
			              .seed = seed,
			              .shape = {.type = SW_F32, .rank = 3, .dims = dims}};
			figures sum = {0};
			sw_status status = make_cluster(clusters[c], &w.cluster, err);
			if (status != SW_OK)
				return status;
			status = measure(&w, &sum, err);
			if (status == SW_OK)
				add_row(table, &w, &sum);
			sw_cluster_clear(&w.cluster);
			if (status != SW_OK)
				return status;
		}
	}
	return SW_OK;
}

int main(int argc, char **argv)
{
	static const char *const headings[] = {"atoms",    "devices",    "layouts",
	                                       "alone us", "slowest us", "cached us",
	                                       "moves",    "path ms",    "vs gather"};
	int64_t pairs = 400, seed = 1;
	for (int i = 1; i + 1 < argc; i += 2)
		*(strcmp(argv[i], "--pairs") == 0 ? &pairs : &seed) =
			strtoll(argv[i + 1], NULL, 10);
	sw_table table;
	sw_error err = {0};
	sw_table_init(&table, SW_COUNT(headings), headings);
	sw_status status = measure_all(pairs, (uint64_t)seed, &table, &err);
	sw_text text = {0};
	sw_table_add_to(&table, &text);
	printf("%s", text.data ? text.data : "");
	if (status != SW_OK)
		fprintf(stderr, "%s\n", err.message);
	sw_text_clear(&text);
	sw_table_clear(&table);
	return status == SW_OK ? 0 : 1;
}
