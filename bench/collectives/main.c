/*
 * The five collectives on a cluster: ours, the MPI library's, and the bound of the links.
 *
 *   mpirun -n N bench/collectives [--cluster FILE] [--min BYTES] [--max BYTES]
 *                                 [--time-limit S] [--json] [-v]
 *   tools/lab run -- bench/collectives --cluster clusters/lab-2x4.yaml
 *
 * The size is that of the whole, V: the operand of an all-reduce, reduce-scatter, all-to-all or
 * broadcast, the result of an all-gather. Ours uses the algorithm that sw_cost_choose takes on the
 * cluster (-v: each one that there is, too). Runs of ours and theirs alternate; a figure is the
 * median over them, of the slowest rank.
 *
 * The bound is the greatest rate of the links of the outermost level, without latency and devices,
 * with k parts of s_p devices (g in all) and links of w_p bytes per second each way:
 *
 *     all-reduce       max(V / min w, 2 (k - 1) V / sum w)
 *                      every part sends V and receives V; all messages together are 2 (k - 1) V
 *                      (Patarasuk and Yuan, 2009, theorem 1)
 *     all-gather       max over p of (1 - s_p / g) V / w_p
 *                      a part receives the others' shards; (k - 1) V / sum w in all
 *     reduce-scatter   the same, reversed in time
 *     all-to-all       max over p of s_p (g - s_p) / g V / w_p
 *     broadcast        V / min w
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "transport/transport.h"

#define MAX_RUNS 30
#define KINDS 5 /* the first five of sw_collective_kind */
#define MIN_BYTES 1024

typedef struct settings {
	const char *cluster, *only;
	int64_t min_bytes, max_bytes;
	double limit_s;
	bool json, verbose;
} settings;

typedef struct bench {
	settings how;
	sw_cluster cluster;
	sw_transport *t;
	char *in, *out;
	double began_s;
} bench;

typedef struct samples {
	int n;
	double seconds[MAX_RUNS];
} samples;

/* ---- one run ---------------------------------------------------------------------------- */

static sw_status ours(const bench *b, sw_collective_kind kind, int64_t bytes, sw_error *err)
{
	sw_transport *t = b->t;
	const sw_transport_ops *ops = t->ops;
	int64_t block = bytes / t->size;
	switch (kind) {
	case SW_COLLECTIVE_ALL_REDUCE:
		return ops->all_reduce(t, t->everyone, t->size, SW_MONOID_SUM, SW_F32, b->in,
		                       b->out, bytes / 4, err);
	case SW_COLLECTIVE_ALL_GATHER:
		return ops->all_gather(t, t->everyone, t->size, b->in, b->out, block, err);
	case SW_COLLECTIVE_REDUCE_SCATTER:
		return ops->reduce_scatter(t, t->everyone, t->size, SW_MONOID_SUM, SW_F32, b->in,
		                           b->out, block / 4, err);
	case SW_COLLECTIVE_ALL_TO_ALL:
		return ops->all_to_all(t, t->everyone, t->size, b->in, b->out, block, err);
	default:
		return ops->group_broadcast(t, t->everyone, t->size, b->in, b->out, bytes, err);
	}
}

static void theirs(const bench *b, sw_collective_kind kind, int64_t bytes)
{
	int block = (int)(bytes / b->t->size);
	switch (kind) {
	case SW_COLLECTIVE_ALL_REDUCE:
		MPI_Allreduce(b->in, b->out, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case SW_COLLECTIVE_ALL_GATHER:
		MPI_Allgather(b->in, block, MPI_BYTE, b->out, block, MPI_BYTE, MPI_COMM_WORLD);
		break;
	case SW_COLLECTIVE_REDUCE_SCATTER:
		MPI_Reduce_scatter_block(b->in, b->out, block / 4, MPI_FLOAT, MPI_SUM,
		                         MPI_COMM_WORLD);
		break;
	case SW_COLLECTIVE_ALL_TO_ALL:
		MPI_Alltoall(b->in, block, MPI_BYTE, b->out, block, MPI_BYTE, MPI_COMM_WORLD);
		break;
	default:
		MPI_Bcast(b->out, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		break;
	}
}

/* The implementation: THEIRS, or an algorithm to force; SW_ALGORITHM_COUNT: the chosen one. */
#define THEIRS (-1)

/* Return the seconds of the slowest rank. */
static sw_status time_run(const bench *b, int implementation, sw_collective_kind kind,
                          int64_t bytes, double *seconds, sw_error *err)
{
	sw_status status = SW_OK;
	if (implementation != THEIRS)
		sw_transport_tune(b->t, &b->cluster, (sw_algorithm)implementation);
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = sw_now_s();
	if (implementation == THEIRS)
		theirs(b, kind, bytes);
	else
		status = ours(b, kind, bytes, err);
	double mine = sw_now_s() - begin;
	if (status == SW_OK)
		MPI_Allreduce(&mine, seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return status;
}

static double median(samples *s)
{
	return s->n ? sw_median(s->seconds, (size_t)s->n) : 0;
}

/* ---- the bound -------------------------------------------------------------------------- */

static double link_bound(const sw_cluster *c, sw_collective_kind kind, double v)
{
	int32_t l = 0, n = c->n_levels;
	while (l + 1 < n && c->place[(c->n_devices - 1) * n + l] == c->place[l])
		l++;
	double g = (double)c->n_devices, parts = 0, sum = 0, least = 0, most_in = 0, most_pairs = 0;
	for (int64_t d = 0, size; d < c->n_devices; d += size, parts++) {
		size = 1;
		while (d + size < c->n_devices &&
		       c->place[(d + size) * n + l] == c->place[d * n + l])
			size++;
		const double *links = c->levels[l].part_bandwidth;
		double w = links ? links[c->place[d * n + l]] : c->levels[l].bandwidth,
		       s = (double)size;
		sum += w;
		least = least > 0 ? SW_MIN(least, w) : w;
		most_in = SW_MAX(most_in, (1 - s / g) * v / w);
		most_pairs = SW_MAX(most_pairs, s * (g - s) / g * v / w);
	}
	if (parts < 2)
		return 0;
	switch (kind) {
	case SW_COLLECTIVE_ALL_REDUCE:
		return SW_MAX(v / least, 2 * (parts - 1) * v / sum);
	case SW_COLLECTIVE_ALL_TO_ALL:
		return most_pairs;
	case SW_COLLECTIVE_BROADCAST:
		return v / least;
	default:
		return SW_MAX(most_in, (parts - 1) * v / sum);
	}
}

/* ---- a row ------------------------------------------------------------------------------ */

typedef struct row {
	sw_collective_kind kind;
	int64_t bytes;
	sw_collective_choice choice;
	double bound_s, ours_s, theirs_s, each_s[SW_ALGORITHM_COUNT];
	int runs;
} row;

/* Rank 0's clock decides for all ranks whether there is time for another round. */
static bool goes_on(double until_s)
{
	int more = sw_now_s() < until_s;
	MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return more;
}

static sw_status measure(const bench *b, row *r, double until_s, sw_error *err)
{
	samples all[SW_ALGORITHM_COUNT + 2] = {{0}};
	r->runs =
		/* The first round is not counted: it allocates memory and opens connections. */

		-1;
	sw_status status = SW_OK;
	do {
		for (int implementation = THEIRS;
		     implementation <= SW_ALGORITHM_COUNT && status == SW_OK; implementation++) {
			bool forced =
				implementation != THEIRS && implementation < SW_ALGORITHM_COUNT;
			if (forced && (!b->how.verbose ||
			               !sw_algorithm_serves((sw_algorithm)implementation, r->kind)))
				continue;
			samples *s = &all[implementation + 1];
			status = time_run(b, implementation, r->kind, r->bytes, &s->seconds[s->n],
			                  err);
			s->n += r->runs >= 0;
		}
		r->runs++;
	} while (status == SW_OK && (r->runs < 1 || (r->runs < MAX_RUNS && goes_on(until_s))));
	r->theirs_s = median(&all[0]);
	r->ours_s = median(&all[SW_ALGORITHM_COUNT + 1]);
	for (int a = 0; a < SW_ALGORITHM_COUNT; a++)
		r->each_s[a] = median(&all[a + 1]);
	return status;
}

static void predict(const bench *b, row *r)
{
	int64_t operand = r->kind == SW_COLLECTIVE_ALL_GATHER ? r->bytes / b->t->size : r->bytes;
	uint32_t all = (uint32_t)((UINT64_C(1) << b->cluster.atoms.n) - 1);
	r->choice = sw_cost_choose(&b->cluster, r->kind, all, operand);
	r->bound_s = link_bound(&b->cluster, r->kind, (double)r->bytes);
}

/* ---- reports ---------------------------------------------------------------------------- */

static void add_cells(sw_table *table, const row *r, bool verbose)
{
	const double seconds[] = {r->ours_s, r->theirs_s, r->choice.seconds, r->bound_s};
	sw_table_cell(table, "%s", sw_collective_name(r->kind));
	sw_table_cell_number(table, sw_text_add_bytes, (double)r->bytes);
	sw_table_cell(table, "%s", sw_algorithm_name(r->choice.algorithm));
	for (int i = 0; i < 4; i++)
		sw_table_cell_number(table, sw_text_add_seconds, seconds[i]);
	sw_table_cell(table, "%.0f", 100 * r->bound_s / r->ours_s);
	sw_table_cell(table, "%.0f", 100 * r->bound_s / r->theirs_s);
	sw_table_cell(table, "%.2f", r->theirs_s / r->ours_s);
	sw_table_cell(table, "%d", r->runs);
	for (int a = 0; a < SW_ALGORITHM_COUNT && verbose; a++) {
		if (r->each_s[a] > 0)
			sw_table_cell(table, "%.2f", r->each_s[a] / r->ours_s);
		else
			sw_table_cell(table, "-");
	}
}

static void print_table(const bench *b, const row *rows, int n)
{
	static const char *const headings[] = {
		"collective", "size",       "algorithm",    "ours",         "MPI's", "predicted",
		"bound",      "% of bound", "MPI's %",      "MPI's / ours", "runs",  "direct",
		"ring",       "halving",    "hierarchical", "chain"};
	sw_table table;
	sw_text text = {0};
	sw_table_init(&table, b->how.verbose ? 16 : 11, headings);
	for (int i = 0; i < n; i++)
		add_cells(&table, &rows[i], b->how.verbose);
	sw_table_add_to(&table, &text);
	printf("%s, %d ranks%s\n%s", b->cluster.name, b->t->size,
	       b->how.verbose ? "; by each algorithm: its time / ours" : "", text.data);
	sw_table_clear(&table);
	sw_text_clear(&text);
}

static json_t *row_object(const row *r)
{
	json_t *each = json_object();
	for (sw_algorithm a = 0; a < SW_ALGORITHM_COUNT; a++)
		if (r->each_s[a] > 0)
			json_object_set_new(each, sw_algorithm_name(a), json_real(r->each_s[a]));
	return json_pack("{s:s, s:I, s:s, s:b, s:f, s:f, s:f, s:f, s:i, s:o}", "collective",
	                 sw_collective_name(r->kind), "bytes", (json_int_t)r->bytes, "algorithm",
	                 sw_algorithm_name(r->choice.algorithm), "measured", r->choice.measured,
	                 "seconds", r->ours_s, "mpi_s", r->theirs_s, "predicted_s",
	                 r->choice.seconds, "bound_s", r->bound_s, "runs", r->runs, "algorithms",
	                 each);
}

static void print_json(const bench *b, const row *rows, int n)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(list, row_object(&rows[i]));
	json_t *all = json_pack("{s:s, s:i, s:o}", "cluster", b->cluster.name, "ranks", b->t->size,
	                        "rows", list);
	json_dumpf(all, stdout, JSON_INDENT(1));
	printf("\n");
	json_decref(all);
}

/* ---- the driver ------------------------------------------------------------------------- */

static bool is_wanted(const bench *b, sw_collective_kind kind)
{
	return !b->how.only || !strcmp(b->how.only, sw_collective_name(kind));
}

static int count_rows(const bench *b)
{
	int n = 0;
	for (int64_t bytes = b->how.min_bytes; bytes <= b->how.max_bytes; bytes *= 4)
		for (sw_collective_kind kind = 0; kind < KINDS; kind++)
			n += is_wanted(b, kind);
	return n;
}

static sw_status warm_up(const bench *b, sw_error *err)
{
	sw_status status = SW_OK;
	double seconds;
	for (sw_collective_kind kind = 0; kind < KINDS && status == SW_OK; kind++)
		for (int implementation = THEIRS;
		     implementation <= SW_ALGORITHM_DIRECT && status == SW_OK; implementation++)
			status = time_run(b, implementation, kind, MIN_BYTES * (int64_t)b->t->size,
			                  &seconds, err);
	return status;
}

/* Divide the time among the sizes: the large ones come last and get whatever the small ones leave.
 */
static sw_status run_all(const bench *b, row *rows, int *n, sw_error *err)
{
	int total = count_rows(b);
	sw_progress progress;
	sw_status status = warm_up(b, err);
	sw_progress_start(&progress, "collectives", b->t->rank != 0);
	for (int64_t bytes = b->how.min_bytes; bytes <= b->how.max_bytes; bytes *= 4) {
		for (sw_collective_kind kind = 0; kind < KINDS && status == SW_OK; kind++) {
			double end_s = b->began_s + b->how.limit_s, now_s = sw_now_s();
			if (!is_wanted(b, kind) || !goes_on(end_s))
				continue;
			row *r = &rows[(*n)++];
			*r = (row){.kind = kind,
			           .bytes = bytes / (4 * b->t->size) * (4 * b->t->size)};
			predict(b, r);
			sw_progress_update(&progress, (double)(*n - 1) / total, "%s of %lld bytes",
			                   sw_collective_name(kind), (long long)r->bytes);
			status = measure(b, r,
			                 now_s + SW_MIN((end_s - now_s) / (total - *n + 1),
			                                b->how.limit_s / total),
			                 err);
		}
	}
	sw_progress_end(&progress);
	return status;
}

static bool parse(int argc, char **argv, settings *how)
{
	*how = (settings){.cluster = "clusters/lab-4x1.yaml",
	                  .min_bytes = MIN_BYTES,
	                  .max_bytes = 64 << 20,
	                  .limit_s = 60};
	for (int i = 1; i < argc; i++) {
		bool has_value = i + 1 < argc;
		if (!strcmp(argv[i], "--json"))
			how->json = true;
		else if (!strcmp(argv[i], "-v"))
			how->verbose = true;
		else if (!strcmp(argv[i], "--cluster") && has_value)
			how->cluster = argv[++i];
		else if (!strcmp(argv[i], "--min") && has_value)
			how->min_bytes = atoll(argv[++i]);
		else if (!strcmp(argv[i], "--max") && has_value)
			how->max_bytes = atoll(argv[++i]);
		else if (!strcmp(argv[i], "--only") && has_value)
			how->only = argv[++i];
		else if (!strcmp(argv[i], "--time-limit") && has_value)
			how->limit_s = atof(argv[++i]);
		else
			return false;
	}
	bool known = !how->only;
	for (sw_collective_kind kind = 0; kind < KINDS; kind++)
		known = known || !strcmp(how->only, sw_collective_name(kind));
	return known && how->min_bytes >= MIN_BYTES && how->max_bytes >= how->min_bytes &&
	       how->max_bytes <= 1 << 30 && how->limit_s > 0;
}

static sw_status prepare(bench *b, sw_error *err)
{
	sw_status status = sw_cluster_read(b->how.cluster, &b->cluster, err);
	if (status)
		return status;
	if (b->cluster.n_devices != b->t->size)
		return sw_fail(
			err, SW_ERR_INPUT,
			"%s has %lld devices, and there are %d ranks: start as many, or name "
			"another cluster",
			b->how.cluster, (long long)b->cluster.n_devices, b->t->size);
	b->in = sw_alloc((size_t)b->how.max_bytes + 4096);
	b->out = sw_alloc((size_t)b->how.max_bytes + 4096);
	return SW_OK;
}

static sw_status bench_all(bench *b, sw_error *err)
{
	row *rows = sw_alloc((size_t)(count_rows(b) + 1) * sizeof(*rows));
	int n = 0, wanted = count_rows(b);
	sw_status status = run_all(b, rows, &n, err);
	if (status == SW_OK && b->t->rank == 0) {
		if (b->how.json)
			print_json(b, rows, n);
		else
			print_table(b, rows, n);
		if (n < wanted)
			fprintf(stderr,
			        "collectives: the time limit left out the %d largest of %d; "
			        "--time-limit "
			        "gives more\n",
			        wanted - n, wanted);
	}
	free(rows);
	return status;
}

int main(int argc, char **argv)
{
	bench b = {.began_s = sw_now_s()};
	sw_error err = {0};
	if (!parse(argc, argv, &b.how)) {
		fprintf(stderr, "usage: collectives [--cluster FILE] [--min BYTES] [--max BYTES] "
		                "[--only COLLECTIVE] [--time-limit S] [--json] [-v]\n");
		return 2;
	}
	sw_status status = sw_transport_mpi(&b.t, &err);
	if (status == SW_OK)
		status = prepare(&b, &err);
	if (status == SW_OK)
		status = bench_all(&b, &err);
	if (status && (!b.t || b.t->rank == 0))
		fprintf(stderr, "collectives: %s%s%s\n", err.file, err.file[0] ? ": " : "",
		        err.message);
	if (b.t)
		b.t->ops->free(b.t);
	free(b.in);
	free(b.out);
	sw_cluster_clear(&b.cluster);
	return sw_status_exit_code(status);
}
