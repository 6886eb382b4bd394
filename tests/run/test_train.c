/* Training: the losses of every plan are those of one device, for any number of ranks. */
#include "fixtures.h"

#include <math.h>
#include <string.h>

static sw_run_result train(const fixture *f, const sw_data *data, int64_t steps, uint64_t seed)
{
	sw_run_result result;
	sw_error err = {0};
	sw_run_options options = {.steps = steps, .seed = seed, .quiet = true, .blas_threads = 1};
	if (sw_run_train_local(f->plan, &f->sidecar, data, &options, &result, &err))
		fail_msg("%s", err.message);
	assert_int_equal(result.steps, steps);
	return result;
}

/* f32 sums in another order change a loss by about 1e-7 of it; AdamW's steps amplify that a little
 * each time. */
static void assert_same_losses(const sw_run_result *a, const sw_run_result *b)
{
	for (int64_t i = 0; i < a->steps; i++) {
		assert_true(isfinite(a->losses[i]));
		if (fabs(a->losses[i] - b->losses[i]) > 1e-5 * fabs(a->losses[i]))
			fail_msg("step %d: loss %.9g, not %.9g", (int)i, b->losses[i],
			         a->losses[i]);
	}
}

static void compare_with_serial(const char *program, int devices, const char *strategy)
{
	fixture serial, parallel;
	fixture_init(&serial, program, 1, "dp");
	fixture_init(&parallel, program, devices, strategy);
	sw_run_result a = train(&serial, NULL, 4, 3), b = train(&parallel, NULL, 4, 3);
	assert_same_losses(&a, &b);
	assert_int_equal(a.payload_bytes, 0);
	assert_int_equal(b.payload_bytes, parallel.plan->predicted.payload_bytes);
	/* There are no wire bytes without payload: 3 and 7 ranks cannot divide any of these sizes
	 * without padding, and padding may not pay. */
	assert_true((b.wire_bytes > 0) == (b.payload_bytes > 0));
	assert_true(b.peak_bytes > 0 && b.peak_bytes <= a.peak_bytes);
	sw_run_result_clear(&a);
	sw_run_result_clear(&b);
	fixture_clear(&serial);
	fixture_clear(&parallel);
}

static void losses_equal_the_serial_ones_on_every_number_of_ranks(void **state)
{
	(void)state;
	static const int sizes[] = {1, 2, 3, 4, 7, 8};
	for (size_t i = 0; i < SW_COUNT(sizes); i++)
		compare_with_serial("mlp", sizes[i], "zero3");
}

static void losses_equal_the_serial_ones_under_every_strategy(void **state)
{
	(void)state;
	static const char *const strategies[] = {"dp", "zero1", "zero3", "megatron:tp=2"};
	for (size_t i = 0; i < SW_COUNT(strategies); i++)
		compare_with_serial("gpt-tiny-scan-clip", 4, strategies[i]);
}

static void text_is_learnt(void **state)
{
	(void)state;
	char text[4000];
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "abcdefgh"[i % 8] - 'a';
	const char *path = scratch_file("a", text, sizeof(text));
	sw_data data;
	sw_error err;
	fixture f;
	assert_int_equal(sw_data_open(&path, 1, 64, 17, &data, &err), SW_OK);
	fixture_init(&f, "gpt-tiny", 2, "dp");
	sw_run_result result = train(&f, &data, 150, 0);
	assert_true(result.losses[0] > 4 && result.losses[149] < 1);
	assert_true(result.tokens_per_s > 0);
	sw_run_result_clear(&result);
	sw_data_close(&data);
	fixture_clear(&f);
	scratch_clear();
}

static void the_seed_decides_the_run(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, "mlp", 2, "dp");
	sw_run_result a = train(&f, NULL, 2, 1), b = train(&f, NULL, 2, 1),
		      c = train(&f, NULL, 2, 2);
	assert_memory_equal(a.losses, b.losses, 2 * sizeof(double));
	assert_true(a.losses[0] != c.losses[0]);
	assert_true(a.losses[0] != a.losses[1]);
	sw_run_result_clear(&a);
	sw_run_result_clear(&b);
	sw_run_result_clear(&c);
	fixture_clear(&f);
}

typedef struct stopper {
	atomic_bool stop;
	int64_t calls;
} stopper;

static void stop_at_third(void *context, const sw_run_step *step)
{
	stopper *s = context;
	assert_true(isfinite(step->loss) && step->seconds > 0);
	s->calls++;
	s->stop = step->step == 2;
}

static void a_stop_ends_the_run_after_the_same_step_everywhere(void **state)
{
	(void)state;
	fixture f;
	stopper s = {0};
	sw_run_result result;
	sw_error err;
	sw_run_options options = {.steps = 50,
	                          .blas_threads = 1,
	                          .on_step = stop_at_third,
	                          .context = &s,
	                          .stop = &s.stop};
	fixture_init(&f, "mlp", 3, "dp");
	assert_int_equal(sw_run_train_local(f.plan, &f.sidecar, NULL, &options, &result, &err),
	                 SW_OK);
	assert_int_equal(result.steps, 3);
	assert_int_equal(s.calls, 3);
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

static void zero_steps_run_nothing(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, "mlp", 2, "dp");
	sw_run_result result = train(&f, NULL, 0, 0);
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

static void a_plan_for_another_number_of_ranks_is_refused(void **state)
{
	(void)state;
	fixture f;
	sw_transport *transport;
	sw_run_result result;
	sw_error err;
	sw_run_options options = {.steps = 1};
	fixture_init(&f, "mlp", 2, "dp");
	assert_int_equal(sw_transport_local(1, &transport, &err), SW_OK);
	assert_int_equal(sw_run_train(f.plan, &f.sidecar, NULL, transport, &options, &result, &err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "the plan is for 2 devices and there are 1 ranks"));
	transport->ops->free(transport);
	fixture_clear(&f);
}

static void data_for_a_program_without_tokens_is_refused(void **state)
{
	(void)state;
	fixture f;
	sw_data data = {.tokens = 3, .bytes = (const uint8_t *)"abc"};
	sw_run_result result;
	sw_error err;
	sw_run_options options = {.steps = 1};
	fixture_init(&f, "mlp", 2, "dp");
	assert_int_equal(sw_run_train_local(f.plan, &f.sidecar, &data, &options, &result, &err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "no input for tokens"));
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_equal_the_serial_ones_on_every_number_of_ranks),
		cmocka_unit_test(losses_equal_the_serial_ones_under_every_strategy),
		cmocka_unit_test(text_is_learnt),
		cmocka_unit_test(the_seed_decides_the_run),
		cmocka_unit_test(a_stop_ends_the_run_after_the_same_step_everywhere),
		cmocka_unit_test(zero_steps_run_nothing),
		cmocka_unit_test(a_plan_for_another_number_of_ranks_is_refused),
		cmocka_unit_test(data_for_a_program_without_tokens_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
