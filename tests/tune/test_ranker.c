/*
 * The simulator that learns from the order of trials: it finds functions that are drawn at random,
 * from few trials, and knows when it does not.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "tune/tune.h"

#define GROUP 7
#define MOST 400

/* A prior that is worth a trial, so that what is learned is all that counts. */
static sw_tune_limits keen(void)
{
	sw_tune_limits limits = sw_tune_default_limits;
	limits.ridge = 1;
	return limits;
}

/* ---- trials of a function that is drawn ---------------------------------------------------- */

typedef double truth_fn(const double *x, uint64_t seed);

/* A weight per feature: what a linear simulator can learn. */
static double linear_truth(const double *x, uint64_t seed)
{
	double sum = 0;
	for (uint64_t f = 0; f < SW_WAYS_FEATURES; f++)
		sum += 0.2 * sw_random_normal(seed, 1, f) * x[f];
	return sum;
}

/* Two features that are slow unless they go together: trees can learn that. */
static double stepped_truth(const double *x, uint64_t seed)
{
	size_t a = sw_random_bits(seed, 2, 0) % 8, b = 8 + sw_random_bits(seed, 2, 1) % 8,
	       c = 16 + sw_random_bits(seed, 2, 2) % 8;
	return fabs(x[a]) + (x[b] > 0.5 && x[c] < 0.5 ? 1.0 : 0.0);
}

static void draw_examples(truth_fn *truth, uint64_t seed, double noise, sw_example *list, size_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		list[i] = (sw_example){.group = GROUP, .features = {.seconds = 1}};
		for (uint64_t f = 0; f < SW_WAYS_FEATURES; f++)
			list[i].features.x[f] = sw_random_normal(seed, 100 + i, f);
		list[i].seconds =
			exp(truth(list[i].features.x, seed) + noise * sw_random_normal(seed, 3, i));
	}
}

static double accuracy_of(const sw_ranker *ranker, const sw_example *list, size_t n)
{
	double scores[MOST], seconds[MOST];
	sw_ranking_accuracy sum = {0};
	for (size_t i = 0; i < n; i++) {
		scores[i] = sw_ranker_score(ranker, &list[i]);
		seconds[i] = list[i].seconds;
	}
	sw_ranking_count(scores, seconds, n, 0.005, &sum);
	assert_true(sum.pairs > 0);
	return sum.right;
}

/* Mean over functions: learned from n trials, asked about 100 others. */
static double learned(sw_ranker_kind kind, truth_fn *truth, size_t n, double noise)
{
	double sum = 0;
	const int functions = 5;
	for (uint64_t s = 0; s < (uint64_t)functions; s++) {
		sw_example list[MOST];
		draw_examples(truth, 40 + s, noise, list, n + 100);
		sw_tune_limits limits = keen();
		sw_ranker *ranker = sw_ranker_learn(kind, list, n, GROUP, &limits);
		sum += accuracy_of(ranker, &list[n], 100);
		sw_ranker_free(ranker);
	}
	return sum / functions;
}

static void linear_functions_are_learned(void **state)
{
	(void)state;
	assert_true(learned(SW_RANKER_LINEAR, linear_truth, 150, 0) > 0.95);
	assert_true(learned(SW_RANKER_LINEAR, linear_truth, 150, 0.2) > 0.9);
	assert_true(learned(SW_RANKER_TREES, linear_truth, 150, 0) > 0.75);
}

static void trees_learn_what_is_not_linear(void **state)
{
	(void)state;
	double trees = learned(SW_RANKER_TREES, stepped_truth, 250, 0),
	       linear = learned(SW_RANKER_LINEAR, stepped_truth, 250, 0);
	if (trees < linear + 0.1 || trees < 0.8)
		fail_msg("trees order %.2f of the pairs, a linear function %.2f", trees, linear);
}

static void more_trials_teach_more(void **state)
{
	(void)state;
	static const sw_ranker_kind kinds[] = {SW_RANKER_LINEAR, SW_RANKER_TREES};
	for (size_t k = 0; k < SW_COUNT(kinds); k++) {
		double few = learned(kinds[k], linear_truth, 12, 0),
		       many = learned(kinds[k], linear_truth, 200, 0);
		assert_true(few > 0.5);
		assert_true(many > few + 0.05);
	}
}

static void noise_teaches_nothing(void **state)
{
	(void)state;
	for (int k = 0; k < SW_RANKER_COUNT; k++) {
		double right = learned((sw_ranker_kind)k, linear_truth, 60, 1e3);
		assert_true(right > 0.4 && right < 0.6);
	}
}

/* ---- priors ----------------------------------------------------------------------------- */

/* Without trials scores rank as the model does. */
static void the_prior_ranks_before_there_are_trials(void **state)
{
	(void)state;
	sw_example list[50];
	draw_examples(linear_truth, 9, 0, list, 50);
	for (size_t i = 0; i < 50; i++)
		list[i].features.seconds = list[i].model_s = list[i].seconds;
	for (int k = SW_RANKER_PREDEFINED; k < SW_RANKER_COUNT; k++) {
		sw_ranker *ranker =
			sw_ranker_learn((sw_ranker_kind)k, NULL, 0, GROUP, &sw_tune_default_limits);
		assert_true(accuracy_of(ranker, list, 50) == 1);
		sw_ranker_free(ranker);
	}
}

/* A model that ranks the wrong way round is unlearned. */
static void trials_count_more_than_a_wrong_prior(void **state)
{
	(void)state;
	sw_tune_limits limits = keen();
	sw_example list[300];
	draw_examples(linear_truth, 10, 0, list, 300);
	for (size_t i = 0; i < 300; i++) {
		list[i].features.seconds = pow(list[i].seconds, -0.1);
		list[i].features.x[0] = log(list[i].features.seconds);
	}
	sw_ranker *ranker = sw_ranker_learn(SW_RANKER_LINEAR, list, 200, GROUP, &limits);
	assert_true(accuracy_of(ranker, &list[200], 100) > 0.9);
	sw_ranker_free(ranker);
}

/* Our model, which is right but for noise, and what the predefined one gets wrong. */
static void both_know_what_the_model_knows(void **state)
{
	(void)state;
	sw_example list[300];
	draw_examples(linear_truth, 11, 0, list, 300);
	for (uint64_t i = 0; i < 300; i++)
		list[i].model_s = list[i].seconds * exp(0.3 * sw_random_normal(5, 6, i));
	double right[2];
	static const sw_ranker_kind kinds[2] = {SW_RANKER_ANALYTIC, SW_RANKER_BOTH};
	for (int k = 0; k < 2; k++) {
		sw_ranker *ranker =
			sw_ranker_learn(kinds[k], list, 200, GROUP, &sw_tune_default_limits);
		right[k] = accuracy_of(ranker, &list[200], 100);
		sw_ranker_free(ranker);
	}
	assert_true(right[0] > 0.75);
	assert_true(right[1] > right[0]);
}

/* ---- groups ----------------------------------------------------------------------------- */

/* Trials of another program, all in the reverse order, do not drown its own; where there are none
 * of its own they teach. */
static void trials_of_others_teach_less(void **state)
{
	(void)state;
	sw_example list[MOST], own[200];
	draw_examples(linear_truth, 12, 0, list, 300);
	for (size_t i = 0; i < 200; i++)
		own[i] = list[i];
	sw_ranker *ranker =
		sw_ranker_learn(SW_RANKER_LINEAR, own, 200, GROUP + 1, &sw_tune_default_limits);
	assert_true(accuracy_of(ranker, &list[200], 100) > 0.85);
	sw_ranker_free(ranker);
	for (size_t i = 100; i < 200; i++) {
		own[i].group = GROUP + 1;
		own[i].seconds = 1 / own[i].seconds;
	}
	ranker = sw_ranker_learn(SW_RANKER_LINEAR, own, 200, GROUP, &sw_tune_default_limits);
	assert_true(accuracy_of(ranker, &list[200], 100) > 0.8);
	sw_ranker_free(ranker);
}

/* Seconds of different programs are never compared: these orders contradict each other only if they
 * are. */
static void pairs_are_of_one_group(void **state)
{
	(void)state;
	sw_example list[MOST];
	draw_examples(linear_truth, 13, 0, list, 300);
	for (size_t i = 0; i < 200; i++) {
		list[i].group = GROUP + i % 2;
		list[i].seconds *= i % 2 ? 1000 : 1;
	}
	sw_ranker *ranker =
		sw_ranker_learn(SW_RANKER_LINEAR, list, 200, GROUP, &sw_tune_default_limits);
	assert_true(accuracy_of(ranker, &list[200], 100) > 0.9);
	sw_ranker_free(ranker);
}

static void what_does_not_fit_is_slowest(void **state)
{
	(void)state;
	sw_tune_limits limits = keen();
	sw_example list[120];
	draw_examples(linear_truth, 14, 0, list, 120);
	for (size_t i = 0; i < 120; i++) {
		bool large = list[i].features.x[5] > 0.5;
		list[i].seconds = large ? INFINITY : 1 + 0.001 * (double)(i % 3);
	}
	sw_ranker *ranker = sw_ranker_learn(SW_RANKER_LINEAR, list, 80, GROUP, &limits);
	assert_true(accuracy_of(ranker, &list[80], 40) > 0.85);
	sw_ranker_free(ranker);
}

/* ---- fidelity --------------------------------------------------------------------------- */

static void the_fidelity_is_where_the_order_is_known(void **state)
{
	(void)state;
	/* the slow ones are known; the three with the highest scores are all wrong */
	static const double scores[] = {-6, -5, -4, -3, 1, 2, 3}, seconds[] = {9, 8, 7, 6, 1, 2, 3};
	size_t at = sw_fidelity_trial(scores, seconds, 7, 0.95, 0.005);
	assert_int_equal(at, 3);
	/* all right: up to the last that has another one above it */
	static const double known[] = {7, 6, 5, 4, 3, 2, 1};
	assert_int_equal(sw_fidelity_trial(scores, known, 7, 0.95, 0.005), 5);
	/* nothing is known */
	static const double wrong[] = {1, 2, 3, 4, 5, 6, 7};
	assert_int_equal(sw_fidelity_trial(scores, wrong, 7, 0.8, 0.005), 7);
	assert_int_equal(sw_fidelity_trial(scores, known, 1, 0.8, 0.005), 1);
	assert_int_equal(sw_fidelity_trial(scores, known, 0, 0.8, 0.005), 0);
}

static void ties_are_half_right(void **state)
{
	(void)state;
	static const double scores[] = {1, 1, 1}, seconds[] = {1, 2, 3};
	sw_ranking_accuracy sum = {0};
	sw_ranking_count(scores, seconds, 3, 0.005, &sum);
	assert_int_equal(sum.pairs, 3);
	assert_true(sum.right == 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linear_functions_are_learned),
		cmocka_unit_test(trees_learn_what_is_not_linear),
		cmocka_unit_test(more_trials_teach_more),
		cmocka_unit_test(noise_teaches_nothing),
		cmocka_unit_test(the_prior_ranks_before_there_are_trials),
		cmocka_unit_test(trials_count_more_than_a_wrong_prior),
		cmocka_unit_test(both_know_what_the_model_knows),
		cmocka_unit_test(trials_of_others_teach_less),
		cmocka_unit_test(pairs_are_of_one_group),
		cmocka_unit_test(what_does_not_fit_is_slowest),
		cmocka_unit_test(the_fidelity_is_where_the_order_is_known),
		cmocka_unit_test(ties_are_half_right),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
