/*
 * Ranks that go on with old values of variables: how old they are, whom a straggler keeps waiting,
 * and what is learnt.
 */
#include "fixtures.h"
#include "partition/served.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sw_run_result train(const fixture *f, const sw_data *data, sw_run_options options)
{
	sw_run_result result;
	sw_error err = {0};
	sw_sidecar own = {0}; /* of variables in parts */
	options.quiet = true;
	options.blas_threads = 1;
	if (f->plan->undivided && sw_plan_sidecar(f->plan, &f->sidecar, &own, &err))
		fail_msg("%s", err.message);
	if (sw_run_train_local(f->plan, f->plan->undivided ? &own : &f->sidecar, data, &options,
	                       &result, &err))
		fail_msg("%s", err.message);
	if (f->plan->undivided)
		sw_sidecar_clear(&own);
	return result;
}

/* ---- versions --------------------------------------------------------------------------- */

/* A program whose every update takes 1 from w, whatever the data are, and whose loss is the mean of
 * w as the rank has it that has some rows of the batch: so the losses count the
 * versions that this rank computes with. Without a bound a term takes 1/2. */
static const char COUNTER[] =
	"HloModule count, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	"add {\n"
	"  a = f32[] parameter(0)\n"
	"  b = f32[] parameter(1)\n"
	"  ROOT c = f32[] add(a, b)\n"
	"}\n"
	"ENTRY main {\n"
	"  w = f32[4] parameter(0)\n"
	"  x = f32[8,4] parameter(1)\n"
	"  zero = f32[] constant(0)\n"
	"  one = f32[] constant(1)\n"
	"  ones = f32[8,4] broadcast(one), dimensions={}\n"
	"  nothing = f32[8,4] subtract(x, x)\n"
	"  units = f32[8,4] add(nothing, ones)\n"
	"  gradient = f32[4] reduce(units, zero), dimensions={0}, to_apply=add\n"
	"  eighth = f32[] constant(0.125)\n"
	"  eighths = f32[4] broadcast(eighth), dimensions={}\n"
	"  change = f32[4] multiply(gradient, eighths)\n"
	"  next = f32[4] subtract(w, change)\n"
	"  copies = f32[8,4] broadcast(w), dimensions={1}\n"
	"  read = f32[8,4] add(copies, nothing)\n"
	"  row = s32[8,4] iota(), iota_dimension=0\n"
	"  first = s32[] constant(%d)\n"
	"  firsts = s32[8,4] broadcast(first), dimensions={}\n"
	"  behind = s32[] constant(%d)\n"
	"  behinds = s32[8,4] broadcast(behind), dimensions={}\n"
	"  above = pred[8,4] compare(row, firsts), direction=GE\n"
	"  below = pred[8,4] compare(row, behinds), direction=LT\n"
	"  here = pred[8,4] and(above, below)\n"
	"  zeros = f32[8,4] broadcast(zero), dimensions={}\n"
	"  picked = f32[8,4] select(here, read, zeros)\n"
	"  sum = f32[] reduce(picked, zero), dimensions={0,1}, to_apply=add\n"
	"  share = f32[] constant(%g)\n"
	"  loss = f32[] multiply(sum, share)\n"
	"  ROOT out = (f32[4], f32[]) tuple(next, loss)\n"
	"}\n";

/* Plan it to count the versions that one of the ranks computes with. */
static void init_counter(fixture *f, int ranks, int seen, const char *strategy)
{
	char text[sizeof(COUNTER) + 64];
	int rows = 8 / ranks;
	snprintf(text, sizeof(text), COUNTER, rows * seen, rows * seen + rows, 0.25 / rows);
	fixture_init_text(f, text, ranks, strategy);
}

/* Return by how much w had become less at a step. */
static double version_at(const sw_run_result *result, int64_t step)
{
	return result->losses[0] - result->losses[step];
}

static void count_versions(const char *strategy, int64_t stale, int seen, int slow)
{
	fixture f;
	int64_t steps = 30;
	double oldest = 0;
	init_counter(&f, 2, seen, strategy);
	sw_run_result result = train(
		&f, NULL, (sw_run_options){.steps = steps, .slow_rank = slow, .slow_s = 2e-3});
	assert_true(result.served && result.steps == steps);
	for (int64_t t = 0; t < steps; t++) {
		double version = version_at(&result, t), age = (double)t - version;
		if (fabs(version - round(version)) > 1e-3 || age < -1e-3 ||
		    age > (double)stale + 1e-3)
			fail_msg("%s, rank %d, step %d: version %g", strategy, seen, (int)t,
			         version);
		oldest = fmax(oldest, age);
	}
	assert_true(result.oldest <= stale);
	assert_true(result.mean_age <= (double)stale);
	/* in each step rank 0 sends w, and rank 1 its term of the gradient */
	assert_int_equal(result.payload_bytes, 4 * sizeof(float));
	/* the rank that does not sleep runs ahead, as far as it may */
	if (seen != slow) {
		assert_true(fabs(oldest - (double)stale) < 1e-3);
		assert_int_equal(result.oldest, stale);
	}
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

static void no_value_is_older_than_the_bound(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++)
		for (int seen = 0; seen < 2; seen++) {
			count_versions("ps:stale=1", 1, seen, slow);
			count_versions("ps:stale=4", 4, seen, slow);
		}
}

/* Rank 0 sleeps as chance has it, and rank 1 in each step. */
static void sleep_by_chance(void *context, const sw_run_step *step)
{
	sw_rng *rng = context;
	(void)step;
	if (sw_rng_below(rng, 3) == 0)
		sw_sleep_until(sw_now_s() + 1e-3 * (double)sw_rng_below(rng, 6));
}

static void no_value_is_older_than_the_bound_however_ranks_are_delayed(void **state)
{
	(void)state;
	for (int seen = 0; seen < 4; seen++) {
		fixture f;
		sw_rng rng = {17 + (uint64_t)seen, 0};
		int64_t steps = 60, stale = seen + 1;
		char strategy[32];
		snprintf(strategy, sizeof(strategy), "ps:stale=%d", (int)stale);
		init_counter(&f, 4, seen, strategy);
		sw_run_result result = train(&f, NULL,
		                             (sw_run_options){.steps = steps,
		                                              .slow_rank = 1,
		                                              .slow_s = 1e-3,
		                                              .on_step = sleep_by_chance,
		                                              .context = &rng});
		for (int64_t t = 0; t < steps; t++) {
			double age = (double)t - version_at(&result, t);
			if (age < -1e-3 || age > (double)stale + 1e-3)
				fail_msg("rank %d, step %d: %g steps old", seen, (int)t, age);
		}
		assert_true(result.oldest <= stale);
		sw_run_result_clear(&result);
		fixture_clear(&f);
	}
}

/* Each rank has its own terms in what it reads, and the fast one does not wait for the slow one. */
static void without_a_bound_a_rank_waits_for_its_own_updates(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		fixture f;
		int64_t steps = 30;
		init_counter(&f, 2, 1 - slow, "ps:stale=any");
		sw_run_result result =
			train(&f, NULL,
		              (sw_run_options){.steps = steps, .slow_rank = slow, .slow_s = 5e-3});
		for (int64_t t = 0; t < steps; t++)
			assert_true(2 * version_at(&result, t) >= (double)t - 1e-3);
		/* the slow rank has done few of its steps */
		assert_true(version_at(&result, steps - 1) < 0.75 * (double)steps);
		assert_true(result.oldest > 4);
		sw_run_result_clear(&result);
		fixture_clear(&f);
	}
}

/* ---- the synchronous run ---------------------------------------------------------------- */

#define STEPS 6

/* served: the plan is run by its owners' threads, which wait for all terms. */
static sw_run_result train_six(const char *program, int devices, const char *strategy, bool served)
{
	fixture f;
	fixture_init(&f, program, devices, strategy);
	assert_true(sw_forms_served(&f.plan->forms) == served);
	assert_false(sw_forms_stale(&f.plan->forms));
	sw_run_result result = train(&f, NULL, (sw_run_options){.steps = STEPS, .seed = 3});
	assert_true(result.served == served);
	assert_int_equal(result.oldest, 0);
	fixture_clear(&f);
	return result;
}

/* Compare the run of a plan without staleness with that of one where nothing may be stale, and with
 * that of owners' threads; rough: losses of these differ by so much of themselves at most. */
static void compare(const char *program, int devices, const char *synchronous, const char *owners,
                    double rough)
{
	char none[64], served[64];
	snprintf(none, sizeof(none), "ps:%sstale=0", owners);
	snprintf(served, sizeof(served), "ps:%sserved", owners);
	sw_run_result a = train_six(program, devices, synchronous, false),
		      b = train_six(program, devices, none, false),
		      c = train_six(program, devices, served, true);
	for (size_t i = 0; i < STEPS; i++)
		if (a.losses[i] != b.losses[i] ||
		    !(fabs(a.losses[i] - c.losses[i]) <= rough * fabs(a.losses[i])))
			fail_msg("%s, %s on %d, step %d: %.17g, %.17g, %.17g", program, served,
			         devices, (int)i, a.losses[i], b.losses[i], c.losses[i]);
	sw_run_result_clear(&a);
	sw_run_result_clear(&b);
	sw_run_result_clear(&c);
}

/* Owners add up terms in the order of the ranks; the synchronous runs do so by halves, from a rank
 * that their plans choose. These are the same additions on two ranks. */
static void compare_with_synchronous(const char *program, int devices, const char *synchronous,
                                     const char *owners)
{
	compare(program, devices, synchronous, owners, devices == 2 ? 0 : 1e-5);
}

/* What is made of all elements of a variable in parts, owners add up part by part. */
static void compare_roughly(const char *program, int devices, const char *synchronous,
                            const char *owners)
{
	compare(program, devices, synchronous, owners, 1e-5);
}

static void no_staleness_is_the_synchronous_run_bit_for_bit(void **state)
{
	(void)state;
	static const int sizes[] = {2, 4, 8};
	for (size_t k = 0; k < SW_COUNT(sizes); k++) {
		compare_with_synchronous("mlp", sizes[k], "ps:proxy", "");
		compare_with_synchronous("mlp", sizes[k], "ps:balanced,proxy",
		                         "balanced,");
	}
	compare_with_synchronous("gpt-tiny", 4, "ps:balanced,proxy", "balanced,");
	compare_with_synchronous("gpt-tiny", 2, "ps:uneven,proxy", "uneven,");
	compare_with_synchronous("gpt-tiny-clip", 2, "ps:proxy", "");
	/* owners tell each other what the norm of all gradients is made of */
	compare_with_synchronous("gpt-tiny-clip", 2, "ps:balanced,proxy", "balanced,");
	compare_with_synchronous("mlp-clip", 8, "ps:balanced,proxy", "balanced,");
	/* of variables in parts, too, part by part */
	compare_roughly("gpt-tiny-clip", 2, "ps:uneven,proxy", "uneven,");
	compare_roughly("mamba-tiny", 2, "ps:partitioned,proxy", "partitioned,");
	compare_with_synchronous("ncf-tiny", 2, "ps:balanced,proxy", "balanced,");
	compare_with_synchronous("dlrm-tiny", 2, "ps:balanced,proxy", "balanced,");
	compare_with_synchronous("lstm-lm-tiny", 2, "ps:proxy", "");
	/* the tokens that count are counted by every device */
	compare_with_synchronous("bert-tiny", 2, "ps:balanced,proxy", "balanced,");
	/* positions are no rows of the batch, however equal the numbers of both */
	compare_with_synchronous("t5-tiny", 2, "ps:balanced,proxy", "balanced,");
	/* two biases of a sum have one gradient, which is clipped */
	compare_with_synchronous("unet-tiny", 2, "ps:proxy", "");
	/* what is made of all rows of the batch: statistics, and the places of experts */
	compare_with_synchronous("resnet-tiny", 2, "ps:balanced,proxy", "balanced,");
	compare_with_synchronous("moe-mixtral-tiny", 2, "ps:balanced,proxy", "balanced,");
}

/* Of tables the indices and rows of a rank's part of the batch are sent, and nothing else is. A batch
 * norm's sums are sent besides. */
static void a_step_sends_what_was_counted(void **state)
{
	(void)state;
	static const char *const programs[] = {"dlrm-tiny", "ncf-tiny", "mlp", "resnet-tiny"};
	for (size_t k = 0; k < SW_COUNT(programs); k++) {
		fixture f;
		sw_served served;
		sw_error err = {0};
		int64_t sent = 0, terms = 0;
		fixture_init(&f, programs[k], 2, "ps:balanced,served");
		if (sw_served_cut(f.plan, &f.sidecar, &served, &err))
			fail_msg("%s", err.message);
		for (uint32_t p = 0; p < served.n_ports; p++) {
			const sw_port *port = &served.ports[p];
			sent += port->sent_bytes;
			terms += port->term_bytes;
		}
		assert_true(served.in_step == (k == 3)); /* its payload has collectives */
		if (k < 2)
			assert_true(sent * 2 < terms);
		else if (k == 2)
			assert_int_equal(sent, terms);
		sw_run_result result = train(&f, NULL, (sw_run_options){.steps = 3});
		assert_int_equal(result.payload_bytes, sw_served_payload(&served, 2));
		sw_run_result_clear(&result);
		sw_served_clear(&served);
		fixture_clear(&f);
	}
}

/* ---- a straggler ------------------------------------------------------------------------ */

/* much longer than a step, under a sanitizer too */
#define SLEEP_S 150e-3

static double step_of_others(const char *strategy, double *of_straggler)
{
	fixture f;
	fixture_init(&f, "mlp", 2, strategy);
	sw_run_result result =
		train(&f, NULL, (sw_run_options){.steps = 8, .slow_rank = 1, .slow_s = SLEEP_S});
	double seconds = result.step_time_s;
	*of_straggler = result.slowest_step_s;
	assert_true(*of_straggler >= SLEEP_S);
	sw_run_result_clear(&result);
	fixture_clear(&f);
	return seconds;
}

static void a_straggler_keeps_only_those_waiting_who_may_not_go_on(void **state)
{
	(void)state;
	double straggler;
	assert_true(step_of_others("ps:stale=0", &straggler) >= 0.9 * SLEEP_S);
	assert_true(step_of_others("ps:stale=1", &straggler) >= 0.9 * SLEEP_S);
	assert_true(step_of_others("ps:stale=20", &straggler) < 0.5 * straggler);
	assert_true(step_of_others("ps:stale=any", &straggler) < 0.5 * straggler);
	/* variables that the straggler owns are served while it sleeps */
	assert_true(step_of_others("ps:balanced,stale=any", &straggler) < 0.5 * straggler);
}

/* ---- learning --------------------------------------------------------------------------- */

static double last_losses(const sw_run_result *result)
{
	double sum = 0;
	for (int64_t i = result->steps - 20; i < result->steps; i++)
		sum += result->losses[i] / 20;
	return sum;
}

static void text_is_learnt_with_old_values(void **state)
{
	(void)state;
	static const struct {
		const char *strategy;
		double most; /* of the mean of the last 20 losses of 90, which begin at 4.1 */
	} cases[] = {{"ps:balanced,stale=4", 2}, {"ps:balanced,stale=any", 2}};
	char text[4000];
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "abcdefgh"[i % 8] - 'a';
	const char *path = scratch_file("a", text, sizeof(text));
	sw_data data;
	sw_error err;
	assert_int_equal(sw_data_open(&path, 1, 64, 17, &data, &err), SW_OK);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		fixture f;
		fixture_init(&f, "gpt-tiny", 4, cases[i].strategy);
		sw_run_result result = train(&f, &data, (sw_run_options){.steps = 90});
		print_message("%s: %.3f, then %.3f\n", cases[i].strategy, result.losses[0],
		              last_losses(&result));
		assert_true(result.losses[0] > 4);
		assert_true(last_losses(&result) < cases[i].most);
		sw_run_result_clear(&result);
		fixture_clear(&f);
	}
	sw_data_close(&data);
	scratch_clear();
}

/* ---- ending ----------------------------------------------------------------------------- */

typedef struct stopper {
	atomic_bool stop;
	int64_t next;
} stopper;

static void stop_at_third(void *context, const sw_run_step *step)
{
	stopper *s = context;
	assert_int_equal(step->step, s->next++);
	if (step->step == 2)
		s->stop = true;
}

/* The run returns only if all ranks end after the same step. */
static void a_stop_ends_all_ranks(void **state)
{
	(void)state;
	static const char *const strategies[] = {"ps:stale=1", "ps:balanced,stale=5",
	                                         "ps:stale=any", "ps:balanced,stale=any"};
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		fixture f;
		stopper s = {0};
		fixture_init(&f, "mlp", 4, strategies[i]);
		sw_run_result result = train(&f, NULL,
		                             (sw_run_options){.steps = 100000,
		                                              .on_step = stop_at_third,
		                                              .context = &s,
		                                              .stop = &s.stop});
		assert_true(result.steps >= 3 && result.steps < 100000);
		assert_int_equal(s.next, result.steps);
		sw_run_result_clear(&result);
		fixture_clear(&f);
	}
}

static void zero_steps_run_nothing(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, "mlp", 2, "ps:stale=2");
	sw_run_result result = train(&f, NULL, (sw_run_options){.steps = 0});
	assert_int_equal(result.steps, 0);
	sw_run_result_clear(&result);
	fixture_clear(&f);
}

/* ---- what can't be ---------------------------------------------------------------------- */

static void refused(const fixture *f, sw_run_options options, const char *words)
{
	sw_run_result result;
	sw_error err = {0};
	options.steps = 2;
	assert_int_equal(sw_run_train_local(f->plan, &f->sidecar, NULL, &options, &result, &err),
	                 SW_ERR_INPUT);
	if (!strstr(err.message, words))
		fail_msg("%s", err.message);
}

static void what_needs_all_ranks_at_one_step_is_refused(void **state)
{
	(void)state;
	fixture f;
	sw_trace trace = {0};
	fixture_init(&f, "mlp", 2, "ps:stale=2");
	refused(&f, (sw_run_options){.paced = true}, "--pace looks at a step of all ranks");
	refused(&f, (sw_run_options){.check_nan = true}, "--check-nan");
	refused(&f, (sw_run_options){.trace = &trace}, "--trace");
	fixture_clear(&f);
	sw_trace_clear(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_value_is_older_than_the_bound),
		cmocka_unit_test(no_value_is_older_than_the_bound_however_ranks_are_delayed),
		cmocka_unit_test(without_a_bound_a_rank_waits_for_its_own_updates),
		cmocka_unit_test(no_staleness_is_the_synchronous_run_bit_for_bit),
		cmocka_unit_test(a_step_sends_what_was_counted),
		cmocka_unit_test(a_straggler_keeps_only_those_waiting_who_may_not_go_on),
		cmocka_unit_test(text_is_learnt_with_old_values),
		cmocka_unit_test(a_stop_ends_all_ranks),
		cmocka_unit_test(zero_steps_run_nothing),
		cmocka_unit_test(what_needs_all_ranks_at_one_step_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
