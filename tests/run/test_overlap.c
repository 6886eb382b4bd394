/* Collectives that overlap with kernels compute the same; a paced run takes the predicted time and
 * returns no other results; a trace contains the activities of every rank. */
#include "fixtures.h"

#include <math.h>
#include <string.h>

#include "cost/cost.h"

static sw_run_result run(const fixture *f, sw_run_options options)
{
	sw_run_result result;
	sw_error err = {0};
	options.quiet = true;
	options.blas_threads = 1;
	if (sw_run_train_local(f->plan, &f->sidecar, NULL, &options, &result, &err))
		fail_msg("%s", err.message);
	return result;
}

/* ---- overlap ---------------------------------------------------------------------------- */

static int64_t count_starts(const sw_program *program)
{
	int64_t n = 0;
	for (sw_id id = 0; id < program->ops.len; id++)
		n += sw_async_collective(program, sw_op_at(program, id)) != SW_NO_ID;
	return n;
}

/* Collectives that are combined into one may use another algorithm than the separate ones. */
static void check_wire(const fixture *f, const sw_run_result *apart, const sw_run_result *beside)
{
	sw_program_cost a, b;
	sw_cost_program(f->plan->cluster, apart->program, &a);
	sw_cost_program(f->plan->cluster, beside->program, &b);
	assert_true(b.collectives <= a.collectives);
	if (a.collectives == b.collectives)
		assert_int_equal(apart->wire_bytes, beside->wire_bytes);
	else
		assert_true(beside->wire_bytes > 0);
}

static void compare_overlap(const char *program, int devices, const char *strategy)
{
	fixture f;
	fixture_init(&f, program, devices, strategy);
	sw_run_result apart = run(&f, (sw_run_options){.steps = 4, .seed = 3}),
		      beside = run(&f, (sw_run_options){
					       .steps = 4, .seed = 3, .overlap = SW_OVERLAP_ALL});
	assert_int_equal(count_starts(apart.program), 0);
	assert_true(count_starts(beside.program) > 0);
	assert_memory_equal(apart.losses, beside.losses, 4 * sizeof(double));
	assert_int_equal(apart.payload_bytes, beside.payload_bytes);
	check_wire(&f, &apart, &beside);
	sw_run_result_clear(&apart);
	sw_run_result_clear(&beside);
	fixture_clear(&f);
}

static void overlapped_collectives_give_the_same_bits(void **state)
{
	(void)state;
	static const char *const strategies[] = {"dp", "zero1", "zero3", "megatron:tp=2"};
	for (size_t i = 0; i < SW_COUNT(strategies); i++)
		compare_overlap("gpt-tiny-scan-clip", 4, strategies[i]);
	compare_overlap("gpt-tiny", 2, "dp");
	compare_overlap("gpt-tiny", 8, "zero3");
}

static void step_time_is_computing_plus_waiting(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, "gpt-tiny", 2, "dp");
	sw_run_result result =
		run(&f, (sw_run_options){.steps = 9, .overlap = SW_OVERLAP_ALL, .tune = true});
	assert_true(result.compute_s > 0 && result.exposed_comm_s > 0);
	assert_true(result.compute_s + result.exposed_comm_s < 3 * result.step_time_s);
	/* the system reports processor times */
	if (sw_thread_times_of(sw_thread_number()).cpu_s > 0)
		assert_true(result.cpu_s > 0 && result.transport_cpu_s > 0 &&
		            result.cpu_s < 3 * result.step_time_s);
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

/* ---- paced ------------------------------------------------------------------------------ */

/* Use a kernel overhead so large that the machine's own overhead is small beside it. */
static void a_paced_step_takes_the_modelled_time(void **state)
{
	(void)state;
	static const uint32_t overlaps[] = {0, SW_OVERLAP_ALL};
	fixture f;
	fixture_init(&f, "gpt-tiny", 4, "dp");
	f.cluster.device.kernel_overhead_s = 500e-6;
	for (size_t i = 0; i < SW_COUNT(overlaps); i++) {
		sw_program_cost cost;
		sw_run_result result = run(
			&f, (sw_run_options){.steps = 3, .overlap = overlaps[i], .paced = true});
		sw_cost_program(f.plan->cluster, result.program, &cost);
		assert_true(cost.compute_s > 0.02);
		if (result.compute_s < 0.97 * cost.compute_s ||
		    result.compute_s > 1.25 * cost.compute_s)
			fail_msg("%g s of compute, not %g s", result.compute_s, cost.compute_s);
		for (int64_t step = 0; step < result.steps; step++)
			assert_true(isnan(result.losses[step]));
		assert_int_equal(result.payload_bytes, f.plan->predicted.payload_bytes);
		sw_run_result_clear(&result);
	}
	fixture_clear(&f);
}

static void a_paced_run_takes_no_data(void **state)
{
	(void)state;
	fixture f;
	sw_data data = {.tokens = 100, .bytes = (const uint8_t *)"abc"};
	sw_run_result result;
	sw_error err;
	sw_run_options options = {.steps = 1, .paced = true};
	fixture_init(&f, "gpt-tiny", 2, "dp");
	assert_int_equal(sw_run_train_local(f.plan, &f.sidecar, &data, &options, &result, &err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "a paced run computes nothing and reads no data"));
	fixture_clear(&f);
}

/* The most expensive branch is taken, and loops run their trip counts: the collectives inside them
 * communicate. */
static void a_paced_run_goes_through_loops_and_branches(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, "gpt-tiny-scan-clip", 4, "zero3");
	sw_run_result result =
		run(&f, (sw_run_options){.steps = 2, .overlap = SW_OVERLAP_ALL, .paced = true});
	assert_int_equal(result.payload_bytes, f.plan->predicted.payload_bytes);
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

/* ---- traces ----------------------------------------------------------------------------- */

static bool names_op(const sw_program *program, const sw_trace_event *event)
{
	for (sw_id id = 0; id < program->ops.len; id++)
		if (sw_op_at(program, id)->name == event->name)
			return strcmp(sw_op_opcode_name(sw_op_at(program, id)), event->category) ==
			       0;
	return false;
}

/* Check that each rank's trace has as many collectives as the cost model counts, one after the
 * other, and at least one kernel and one wait. */
static void check_rank(const sw_trace *trace, int32_t rank, const sw_program *program,
                       int64_t collectives)
{
	int64_t counts[3] = {0};
	double over = 0;
	for (size_t i = 0; i < trace->events.len; i++) {
		const sw_trace_event *event = &trace->events.data[i];
		if (event->rank != rank)
			continue;
		counts[event->track]++;
		assert_true(names_op(program, event));
		assert_true(event->begin_s >= 0 && event->end_s >= event->begin_s);
		assert_int_equal(event->bytes >= 0, event->track != SW_TRACK_KERNELS);
		if (event->track == SW_TRACK_COLLECTIVES) {
			assert_true(event->begin_s >= over);
			over = event->end_s;
		}
	}
	assert_int_equal(counts[SW_TRACK_COLLECTIVES], collectives);
	assert_int_equal(counts[SW_TRACK_WAITS], collectives);
	assert_true(counts[SW_TRACK_KERNELS] > 0);
}

static void a_trace_has_the_last_step_of_every_rank(void **state)
{
	(void)state;
	enum { RANKS = 4 };
	fixture f;
	sw_trace trace = {0};
	sw_program_cost cost;
	fixture_init(&f, "gpt-tiny", RANKS, "zero3");
	sw_run_result result =
		run(&f, (sw_run_options){.steps = 3, .overlap = SW_OVERLAP_ALL, .trace = &trace});
	sw_cost_program(f.plan->cluster, result.program, &cost);
	for (int32_t rank = 0; rank < RANKS; rank++)
		check_rank(&trace, rank, result.program, cost.collectives);
	assert_int_equal(result.payload_bytes, f.plan->predicted.payload_bytes);
	sw_trace_clear(&trace);
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlapped_collectives_give_the_same_bits),
		cmocka_unit_test(step_time_is_computing_plus_waiting),
		cmocka_unit_test(a_paced_step_takes_the_modelled_time),
		cmocka_unit_test(a_paced_run_takes_no_data),
		cmocka_unit_test(a_paced_run_goes_through_loops_and_branches),
		cmocka_unit_test(a_trace_has_the_last_step_of_every_rank),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
