#include "ranks.h"

#include <pthread.h>
#include <string.h>

/* Calls are written (x->fail)(...), as cmocka has a macro named fail. */

/* MPI starts once per process, and cmocka can keep the transport only in a variable. */
static sw_transport *mpi;

typedef struct rank_thread {
	sw_transport *transport;
	rank_body *body;
	void *context;
	bool tell;
	outcome *result;
} rank_thread;

static void *sit(void *argument)
{
	rank_thread *s = argument;
	int32_t rank = s->transport->rank;
	s->result->status[rank] = s->body(s->transport, s->context, &s->result->error[rank]);
	if (s->result->status[rank] && s->tell)
		(s->transport->ops->fail)(s->transport, &s->result->error[rank]);
	s->transport->ops->free(s->transport);
	return NULL;
}

void run_ranks(int32_t size, bool tell, rank_body *body, void *context, outcome *result)
{
	sw_transport *transports[MAX_RANKS];
	rank_thread seats[MAX_RANKS];
	pthread_t threads[MAX_RANKS];
	*result = (outcome){.size = size};
	assert_int_equal(sw_transport_local(size, transports, NULL), SW_OK);
	for (int32_t r = 0; r < size; r++) {
		seats[r] = (rank_thread){transports[r], body, context, tell, result};
		assert_int_equal(pthread_create(&threads[r], NULL, sit, &seats[r]), 0);
	}
	for (int32_t r = 0; r < size; r++)
		pthread_join(threads[r], NULL);
}

static void run_mpi(rank_body *body, void *context)
{
	sw_error err = {0};
	if (!mpi)
		assert_int_equal(sw_transport_mpi(&mpi, &err), SW_OK);
	if (body(mpi, context, &err)) {
		(mpi->ops->fail)(mpi, &err);
		fail_msg("rank %d: %s", mpi->rank, err.message);
	}
}

int run_case(const rank_case *cases, size_t n, const char *name)
{
	sw_transport *t;
	sw_error err = {0};
	sw_status status = sw_transport_mpi(&t, &err);
	for (size_t i = 0; i < n && status == SW_OK; i++)
		if (strcmp(cases[i].name, name) == 0)
			status = cases[i].body(t, NULL, &err);
	if (status) {
		(t->ops->fail)(t, &err);
		printf("told rank %d: %s\n", t->rank, err.message);
		fflush(stdout);
	}
	t->ops->free(t);
	return sw_status_exit_code(status);
}

void run_everywhere(rank_body *body, void *context)
{
	static const int32_t sizes[] = {1, 2, 3, 4, 7, 8};
	outcome result;
	if (sw_transport_under_mpi()) {
		run_mpi(body, context);
		return;
	}
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		run_ranks(sizes[i], true, body, context, &result);
		for (int32_t r = 0; r < sizes[i]; r++)
			if (result.status[r])
				fail_msg("rank %d of %d: %s", r, sizes[i], result.error[r].message);
	}
}

/* ---- clusters and algorithms ------------------------------------------------------------ */

typedef struct topology {
	int32_t size;
	const char *counts[3];
} topology;

static const topology topologies[] = {
	{1, {"1"}},
	{2, {"2"}},
	{2, {"2", "1"}},
	{3, {"3"}},
	{3, {"2", "[1, 2]"}},
	{4, {"4"}},
	{4, {"2", "2"}},
	{5, {"5"}},
	{5, {"2", "[1, 4]"}},
	{6, {"3", "[1, 2, 3]"}},
	{6, {"2", "3"}},
	{7, {"7"}},
	{7, {"3", "[1, 2, 4]"}},
	{8, {"2", "4"}},
	{8, {"2", "2", "2"}},
	{8, {"4", "[2, 1, 3, 2]"}},
	{8, {"2", "[1, 2]", "[4, 1, 3]"}},
};

static void read_topology(const topology *t, sw_cluster *cluster)
{
	sw_text text = {0};
	sw_error err;
	sw_text_add(&text, "version: 1\nname: test\nlevels:\n");
	for (int l = 0; l < 3 && t->counts[l]; l++)
		sw_text_addf(&text,
		             "  - {name: l%d, count: %s, latency: 1 us, bandwidth: %d GB/s}\n", l,
		             t->counts[l], l + 1);
	sw_text_add(
		&text,
		"device: {name: d, memory: 1 GiB, memory_bandwidth: 1 GB/s, kernel_overhead: 1 us,"
		" matmul_efficiency: 0.5, flops: {f32: 1 GFLOP/s}}\n");
	if (sw_cluster_parse(text.data, text.len, "test.yaml", cluster, &err) != SW_OK)
		fail_msg("%s\n%s", err.message, text.data);
	sw_text_clear(&text);
}

typedef struct tuned {
	rank_body *body;
	void *context;
	const sw_cluster *cluster;
	sw_algorithm algorithm;
} tuned;

static sw_status run_tuned(sw_transport *t, void *context, sw_error *err)
{
	const tuned *u = context;
	sw_transport_tune(t, u->cluster, u->algorithm);
	sw_status status = u->body(t, u->context, err);
	sw_transport_tune(t, NULL, SW_ALGORITHM_COUNT);
	if (status)
		sw_fail(err, status, "%s: %s", sw_algorithm_name(u->algorithm), err->message);
	return status;
}

static void run_on_cluster(const topology *t, rank_body *body, void *context)
{
	/* a slow part, a part that is too slow to get a share of an all-reduce, and fast ones */
	static const double links[] = {1e9, 4e8, 1e9, 3e9, 1e9, 1e9, 1e9, 1e9};
	sw_cluster cluster;
	outcome result;
	read_topology(t, &cluster);
	cluster.levels[0].part_bandwidth = links;
	for (sw_algorithm a = 0; a < SW_ALGORITHM_COUNT; a++) {
		tuned u = {body, context, &cluster, a};
		if (sw_transport_under_mpi()) {
			run_mpi(run_tuned, &u);
			continue;
		}
		run_ranks(t->size, true, run_tuned, &u, &result);
		for (int32_t r = 0; r < t->size; r++)
			if (result.status[r])
				fail_msg("rank %d of %d (%s, %s): %s", r, t->size, t->counts[0],
				         t->counts[1], result.error[r].message);
	}
	sw_cluster_clear(&cluster);
}

void run_by_every_algorithm(rank_body *body, void *context)
{
	bool under_mpi = sw_transport_under_mpi();
	if (under_mpi && !mpi)
		assert_int_equal(sw_transport_mpi(&mpi, NULL), SW_OK);
	for (size_t i = 0; i < SW_COUNT(topologies); i++)
		if (!under_mpi || topologies[i].size == mpi->size)
			run_on_cluster(&topologies[i], body, context);
}

int end_ranks(void **state)
{
	(void)state;
	if (mpi)
		mpi->ops->free(mpi);
	mpi = NULL;
	return 0;
}

static int32_t first_of(int kind, int32_t size, int32_t rank)
{
	return kind == 2 && rank >= size / 2 ? size / 2
	       : kind == 3                   ? rank % 2
	       : kind == 4                   ? rank
	                                     : 0;
}

bool make_group(int kind, int32_t size, int32_t rank, int32_t *ranks, int32_t *n, int32_t *position)
{
	static const int32_t counts[GROUP_KINDS] = {1, 1, 2, 2, 0};
	int32_t length = counts[kind] ? size / counts[kind] : 1, step = kind == 3 ? 2 : 1;
	if (counts[kind] == 2 && (size < 4 || size % 2))
		return false;
	*n = length;
	for (int32_t i = 0; i < length; i++)
		ranks[i] = first_of(kind, size, rank) + i * step;
	for (int32_t i = 0; kind == 1 && i < length; i++)
		ranks[i] = length - 1 - i;
	for (int32_t i = 0; i < length; i++)
		if (ranks[i] == rank)
			*position = i;
	return true;
}
