/* Asynchronous collectives: the same bits and bytes as synchronous ones, in every order, beside
 * other work, and when ranks fail. */
#include "ranks.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* ---- a program of collectives ----------------------------------------------------------- */

/* Op k has an operand of its own; the sizes are above and below that of one piece. */
#define KINDS 4
#define OPS 12
typedef struct bench {
	sw_transport *t;
	sw_program *program;
	sw_id ops[OPS];
	sw_tensor in[OPS], out[OPS], wanted[OPS];
} bench;

static sw_status fill(bench *b, int k, sw_id x, sw_id y, sw_error *err)
{
	sw_shape from = sw_value_shape(b->program, x), to = sw_value_shape(b->program, y);
	sw_status status = sw_tensor_new(from, false, &b->in[k], err);
	if (status == SW_OK)
		status = sw_tensor_new(to, true, &b->out[k], err);
	if (status == SW_OK)
		status = sw_tensor_new(to, true, &b->wanted[k], err);
	float *data = status ? NULL : sw_tensor_data(b->in[k]);
	for (int64_t e = 0; data && e < sw_shape_elements(from); e++)
		data[e] = (float)sw_random_normal((uint64_t)k, (uint64_t)b->t->rank, (uint64_t)e);
	return status;
}

static sw_status make_bench(bench *b, sw_transport *t, sw_error *err)
{
	static const sw_opcode opcodes[KINDS] = {SW_OP_ALL_REDUCE, SW_OP_ALL_GATHER,
	                                         SW_OP_REDUCE_SCATTER, SW_OP_ALL_TO_ALL};
	static const int64_t lengths[] = {1, 40, 900};
	*b = (bench){.t = t, .program = sw_program_new("test")};
	sw_program *p = b->program;
	int32_t c = sw_build_computation(p, "main");
	sw_groups everyone = {0};
	sw_status status = SW_OK;
	p->num_partitions = t->size;
	for (int k = 0; k < OPS && status == SW_OK; k++) {
		int64_t dims[] = {lengths[k % 3], t->size * 8};
		sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, dims, 2), "x");
		sw_id y = sw_emit_collective(p, c, opcodes[k % KINDS], SW_MONOID_SUM, x, 1,
		                             &everyone);
		b->ops[k] = p->values.data[y].op;
		status = fill(b, k, x, y, err);
	}
	return status;
}

static void drop(sw_tensor *tensor)
{
	if (tensor->buffer)
		sw_tensor_drop(tensor);
}

static void clear_bench(bench *b)
{
	for (int k = 0; k < OPS; k++) {
		drop(&b->in[k]);
		drop(&b->out[k]);
		drop(&b->wanted[k]);
	}
	sw_program_free(b->program);
}

static sw_status perform(bench *b, int k, sw_tensor *out, sw_error *err)
{
	return sw_transport_collective(b->t, b->program, b->ops[k], &b->in[k], out, err);
}

static sw_status begin(bench *b, int k, uint64_t *ticket, sw_error *err)
{
	sw_tensor in = b->in[k], out = b->out[k]; /* freed when begin returns */
	memset(sw_tensor_data(out), 0xee, out.buffer->bytes);
	return sw_transport_begin(b->t, b->program, b->ops[k], &in, &out, ticket, err);
}

static sw_status finish(bench *b, int k, uint64_t ticket, sw_error *err)
{
	sw_status status = sw_transport_finish(b->t, ticket, err);
	if (status == SW_OK && memcmp(sw_tensor_data(b->out[k]), sw_tensor_data(b->wanted[k]),
	                              b->wanted[k].buffer->bytes) != 0)
		status = sw_fail(err, SW_NO, "op %d: other bits than in one piece", k);
	return status;
}

/* ---- the same as synchronous ------------------------------------------------------------ */

static sw_status compare_traffic(const sw_traffic *a, const sw_traffic *b, int64_t times,
                                 sw_error *err)
{
	if (a->payload_bytes * times != b->payload_bytes ||
	    a->wire_bytes * times != b->wire_bytes || a->collectives * times != b->collectives)
		return sw_fail(
			err, SW_NO,
			"%lld, %lld bytes in %lld collectives, not %lld times %lld, %lld, %lld",
			(long long)b->payload_bytes, (long long)b->wire_bytes,
			(long long)b->collectives, (long long)times, (long long)a->payload_bytes,
			(long long)a->wire_bytes, (long long)a->collectives);
	return SW_OK;
}

/* Begin all collectives, and finish them in an order that differs between ranks. */
static sw_status finish_in_random_order(bench *b, uint64_t seed, sw_error *err)
{
	uint64_t tickets[OPS];
	int order[OPS];
	sw_rng rng = {.seed = seed * 64 + (uint64_t)b->t->rank};
	sw_status status = SW_OK;
	for (int k = 0; k < OPS && status == SW_OK; k++) {
		int other = (int)sw_rng_below(&rng, k + 1);
		order[k] = order[other];
		order[other] = k;
		status = begin(b, k, &tickets[k], err);
	}
	for (int i = 0; i < OPS && status == SW_OK; i++)
		status = finish(b, order[i], tickets[order[i]], err);
	return status;
}

static sw_status equal_bits(sw_transport *t, void *context, sw_error *err)
{
	enum { TIMES = 5 };
	(void)context;
	bench b;
	sw_status status = make_bench(&b, t, err);
	t->traffic = (sw_traffic){0};
	for (int k = 0; k < OPS && status == SW_OK; k++)
		status = perform(&b, k, &b.wanted[k], err);
	sw_traffic once = t->traffic;
	t->traffic = (sw_traffic){0};
	for (uint64_t i = 0; i < TIMES && status == SW_OK; i++)
		status = finish_in_random_order(&b, i, err);
	if (status == SW_OK)
		status = compare_traffic(&once, &t->traffic, TIMES, err);
	sw_transport_drain(t);
	clear_bench(&b);
	return status;
}

static void asynchronous_collectives_give_the_same_bits_and_bytes(void **state)
{
	(void)state;
	run_everywhere(equal_bits, NULL);
}

/* All ranks draw the same sequence of calls and begins; each rank draws for itself when it finishes
 * a collective. */
static sw_status interleave(bench *b, uint64_t seed, sw_error *err)
{
	uint64_t tickets[OPS];
	bool open[OPS] = {0};
	sw_rng all = {.seed = seed}, own = {.seed = seed * 64 + (uint64_t)b->t->rank};
	sw_status status = SW_OK;
	for (int i = 0; i < 200 && status == SW_OK; i++) {
		int k = (int)sw_rng_below(&all, OPS), mine = (int)sw_rng_below(&own, OPS);
		bool whole = sw_rng_below(&all, 3) == 0;
		if (open[k])
			status = finish(b, k, tickets[k], err);
		if (status == SW_OK)
			status = whole ? perform(b, k, &b->out[k], err)
			               : begin(b, k, &tickets[k], err);
		open[k] = !whole;
		if (open[mine] && status == SW_OK) {
			status = finish(b, mine, tickets[mine], err);
			open[mine] = false;
		}
	}
	for (int k = 0; k < OPS && status == SW_OK; k++)
		if (open[k])
			status = finish(b, k, tickets[k], err);
	return status;
}

static sw_status interleaved(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	bench b;
	sw_status status = make_bench(&b, t, err);
	for (int k = 0; k < OPS && status == SW_OK; k++)
		status = perform(&b, k, &b.wanted[k], err);
	for (uint64_t seed = 0; seed < 3 && status == SW_OK; seed++)
		status = interleave(&b, seed, err);
	sw_transport_drain(t);
	clear_bench(&b);
	return status;
}

static void synchronous_and_asynchronous_calls_mix(void **state)
{
	(void)state;
	run_everywhere(interleaved, NULL);
}

/* ---- beside other work ------------------------------------------------------------------ */

static void sleep_s(double seconds)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

typedef struct seen {
	atomic_int calls;
	double begin_s, end_s;
	sw_id op;
} seen;

static void watch(void *context, const sw_program *program, sw_id op, double begin_s, double end_s)
{
	(void)program;
	seen *s = context;
	s->begin_s = begin_s;
	s->end_s = end_s;
	s->op = op;
	atomic_fetch_add(&s->calls, 1);
}

/* Call no function of the transport until the watch has been called for everything begun; give up
 * after seconds. */
static sw_status wait_for_watch(seen *s, int calls, sw_error *err)
{
	double begin = sw_now_s();
	while (atomic_load(&s->calls) < calls) {
		if (sw_now_s() > begin + 20)
			return sw_fail(err, SW_NO, "nothing goes on: %d of %d calls of the watch",
			               s->calls, calls);
		sleep_s(0.001);
	}
	return SW_OK;
}

static sw_status progress(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	bench b;
	seen s = {0};
	uint64_t ticket;
	sw_status status = make_bench(&b, t, err);
	for (int k = 0; k < 2 && status == SW_OK; k++)
		status = perform(&b, k, &b.wanted[k], err);
	sw_transport_watch(t, watch, &s);
	for (int k = 0; k < 2 && status == SW_OK; k++)
		status = begin(&b, k, &ticket, err);
	if (status == SW_OK)
		status = wait_for_watch(&s, 2, err);
	double back = sw_now_s();
	if (status == SW_OK)
		status = finish(&b, 1, ticket, err);
	if (status == SW_OK &&
	    (s.calls != 2 || s.op != b.ops[1] || s.begin_s > s.end_s || s.end_s > back))
		status = sw_fail(err, SW_NO, "%d calls of the watch, the last for op %d", s.calls,
		                 (int)s.op);
	sw_transport_drain(t);
	sw_transport_watch(t, NULL, NULL);
	clear_bench(&b);
	return status;
}

static void begun_collectives_progress_while_the_rank_computes(void **state)
{
	(void)state;
	run_everywhere(progress, NULL);
}

/* ---- failures --------------------------------------------------------------------------- */

/* Once a collective has failed, those begun after it fail with the same message. */
static sw_status finish_failing(bench *b, const uint64_t *tickets, int n, sw_error *err)
{
	sw_error first = {0}, later = {0};
	for (int k = 0; k < n; k++) {
		sw_status status = sw_transport_finish(b->t, tickets[k], &later);
		if (first.code &&
		    (status != first.code || strcmp(later.message, first.message) != 0))
			return sw_fail(err, SW_NO, "op %d ended otherwise: %s", k, later.message);
		if (status)
			first = later;
	}
	*err = first;
	return first.code;
}

/* The last rank fails while the others wait for it, in begun collectives and in a synchronous
 * call. */
static sw_status last_rank_fails(sw_transport *t, void *context, sw_error *err)
{
	bool whole = context != NULL;
	bench b;
	uint64_t tickets[3];
	sw_status status = make_bench(&b, t, err);
	if (status == SW_OK && t->rank == t->size - 1)
		status = begin(&b, 0, &tickets[0], err);
	if (status == SW_OK && t->rank == t->size - 1) {
		sleep_s(0.02);
		status = sw_fail(err, SW_ERR_INPUT, "the disk is on fire");
		(t->ops->fail)(t, err);
		sw_transport_drain(t);
	} else {
		for (int k = 0; k < 3 && status == SW_OK; k++)
			status = begin(&b, k, &tickets[k], err);
		if (status == SW_OK)
			status = whole ? perform(&b, 3, &b.out[3], err)
			               : finish_failing(&b, tickets, 3, err);
		sw_transport_drain(t);
	}
	clear_bench(&b);
	return status;
}

static void assert_all_told(const outcome *result, const char *wanted)
{
	for (int32_t r = 0; r < result->size; r++)
		if (result->status[r] < SW_ERR_INPUT || !strstr(result->error[r].message, wanted))
			fail_msg("rank %d: \"%s\" lacks \"%s\"", r, result->error[r].message,
			         wanted);
}

static void a_failure_is_returned_by_every_later_finish(void **state)
{
	(void)state;
	static const int32_t sizes[] = {2, 3, 4, 7, 8};
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		outcome result;
		run_ranks(sizes[i], false, last_rank_fails, NULL, &result);
		assert_all_told(&result, "the disk is on fire");
		run_ranks(sizes[i], false, last_rank_fails, &result, &result);
		assert_all_told(&result, "the disk is on fire");
	}
}

/* All ranks begin the same collective except for one, which leaves without calling fail. */
static sw_status one_leaves(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	bench b;
	uint64_t ticket;
	sw_status status = make_bench(&b, t, err);
	if (status == SW_OK && t->rank) {
		status = begin(&b, 0, &ticket, err);
		if (status == SW_OK)
			status = sw_transport_finish(t, ticket, err);
	}
	clear_bench(&b);
	return status;
}

static void a_rank_that_leaves_is_named_by_finish(void **state)
{
	(void)state;
	outcome result;
	run_ranks(3, false, one_leaves, NULL, &result);
	assert_int_equal(result.status[0], SW_OK);
	for (int32_t r = 1; r < 3; r++) {
		assert_int_equal(result.status[r], SW_ERR_IO);
		assert_non_null(strstr(result.error[r].message, "rank 0 has left"));
	}
}

/* This rank cannot perform an op that the others can: they are told at once, though no rank calls
 * finish. */
static sw_status wrong_op(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	bench b;
	uint64_t ticket;
	sw_status status = make_bench(&b, t, err);
	if (status == SW_OK && t->rank == 0) {
		b.program->ops.data[b.ops[2]].opcode = SW_OP_ADD;
		status = begin(&b, 2, &ticket, err);
		sleep_s(0.05);
	} else if (status == SW_OK) {
		status = perform(&b, 2, &b.out[2], err);
	}
	sw_transport_drain(t);
	if (status == SW_OK)
		status = sw_transport_finish(t, ticket, err);
	clear_bench(&b);
	return status;
}

static void an_op_that_fails_on_one_rank_wakes_the_others(void **state)
{
	(void)state;
	outcome result;
	run_ranks(3, false, wrong_op, NULL, &result);
	assert_int_equal(result.status[0], SW_ERR_INPUT);
	for (int32_t r = 1; r < 3; r++) {
		assert_int_equal(result.status[r], SW_ERR_IO);
		assert_non_null(strstr(result.error[r].message, "rank 0:"));
	}
}

/* No rank finishes the begun collectives: they are performed before the ranks leave. */
static sw_status begin_and_leave(sw_transport *t, void *context, sw_error *err)
{
	bench *b = (bench *)context + t->rank;
	uint64_t ticket;
	sw_status status = make_bench(b, t, err);
	for (int k = 0; k < OPS && status == SW_OK; k++)
		status = perform(b, k, &b->wanted[k], err);
	for (int k = 0; k < OPS && status == SW_OK; k++)
		status = begin(b, k, &ticket, err);
	return status;
}

static void unfinished_collectives_complete_before_a_rank_leaves(void **state)
{
	(void)state;
	enum { RANKS = 4 };
	bench benches[RANKS];
	outcome result;
	run_ranks(RANKS, true, begin_and_leave, benches, &result);
	for (int32_t r = 0; r < RANKS; r++) {
		assert_int_equal(result.status[r], SW_OK);
		for (int k = 0; k < OPS; k++)
			assert_memory_equal(sw_tensor_data(benches[r].out[k]),
			                    sw_tensor_data(benches[r].wanted[k]),
			                    benches[r].wanted[k].buffer->bytes);
		clear_bench(&benches[r]);
	}
}

/* ---- the same under mpirun: one case per process, named by the argument ----------------- */

static const rank_case cases_of_one[] = {
	{"fails", last_rank_fails}, {"leaves", one_leaves}, {"op", wrong_op}};

int main(int argc, char **argv)
{
	const struct CMUnitTest everywhere[] = {
		cmocka_unit_test(asynchronous_collectives_give_the_same_bits_and_bytes),
		cmocka_unit_test(synchronous_and_asynchronous_calls_mix),
		cmocka_unit_test(begun_collectives_progress_while_the_rank_computes),
	};
	const struct CMUnitTest on_threads[] = {
		cmocka_unit_test(a_failure_is_returned_by_every_later_finish),
		cmocka_unit_test(a_rank_that_leaves_is_named_by_finish),
		cmocka_unit_test(an_op_that_fails_on_one_rank_wakes_the_others),
		cmocka_unit_test(unfinished_collectives_complete_before_a_rank_leaves),
	};
	if (argc > 1)
		return run_case(cases_of_one, SW_COUNT(cases_of_one), argv[1]);
	int failed = cmocka_run_group_tests(everywhere, NULL, end_ranks);
	return failed || sw_transport_under_mpi() ? failed
	                                          : cmocka_run_group_tests(on_threads, NULL, NULL);
}
