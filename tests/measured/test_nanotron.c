/* How the sweep's Nanotron cuts, refuses and looks for messages (bench/measured). */
#include "test.h"

#include <math.h>

#include "../../bench/measured/nanotron.c"

sw_id input_named(const subject *s, const char *beginning, const char **name)
{
	(void)s;
	(void)beginning;
	*name = NULL;
	return SW_NO_ID;
}

static const llama small = {16, 2048, 32, 32, 8192, 131072},
		   large = {32, 4096, 32, 32, 14336, 131072};

/* The head of the smaller Llama counts as four of its layers, so that shares are whole numbers of them. */
static void first_stages_have_more_layers(void **state)
{
	static const struct {
		const llama *model;
		int64_t stages, first, last; /* layers */
	} cases[] = {{&small, 2, 10, 6}, {&small, 4, 5, 1},  {&small, 8, 3, 0},
	             {&large, 2, 18, 14}, {&large, 8, 5, 2}, {&large, 16, 3, 0}};
	int64_t given[64];
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		int64_t n = cases[i].model->layers, first = 0, last = 0;
		give_blocks(cases[i].model, cases[i].stages, LATE, given);
		for (int64_t k = 0; k < n; k++) {
			first += given[k] == 0;
			last += given[k] == cases[i].stages - 1;
		}
		assert_int_equal(first, cases[i].first);
		assert_int_equal(last, cases[i].last);
		assert_int_equal(given[n + HEAD], cases[i].stages - 1);
		assert_int_equal(given[n + LOSS], cases[i].stages - 1);
	}
}

/* Six messages of a tenth of a second for each neighbour and microbatch. */
static void an_early_version_looks_for_messages(void **state)
{
	static const struct {
		bool ddp;
		int64_t gpus, dp, pp, microbatches;
		double seconds;
	} cases[] = {{true, 32, 4, 2, 64, 38.4}, {true, 64, 8, 8, 32, 38.4},
	             {false, 64, 8, 8, 32, 0},   {true, 8, 4, 2, 64, 0},
	             {true, 128, 32, 2, 8, 0},   {true, 16, 16, 1, 8, 0},
	             {true, 32, 2, 8, 128, 0}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		const configuration c = {.nanotron = true,
		                         .ddp = cases[i].ddp,
		                         .gpus = cases[i].gpus,
		                         .dp = cases[i].dp,
		                         .pp = cases[i].pp,
		                         .microbatches = cases[i].microbatches};
		assert_true(fabs(looking_seconds(&c) - cases[i].seconds) < 1e-9);
	}
}

static void what_cannot_run_is_refused(void **state)
{
	(void)state;
	configuration c = {
		.nanotron = true, .llama = small, .gpus = 16, .dp = 8, .pp = 2, .microbatches = 32};
	assert_null(nanotron_refuses(&c));
	c.ddp = true;
	assert_null(nanotron_refuses(&c)); /* the tables are two */
	c.tied = 1;
	assert_non_null(nanotron_refuses(&c));
	c.gpus = 8; /* one node */
	assert_null(nanotron_refuses(&c));
	c.pp = 16; /* the smaller Llama has no 16 blocks that are worth a stage */
	assert_non_null(nanotron_refuses(&c));
	c.pp = 8;
	c.microbatches = 6;
	assert_non_null(nanotron_refuses(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(first_stages_have_more_layers),
	                                   cmocka_unit_test(an_early_version_looks_for_messages),
	                                   cmocka_unit_test(what_cannot_run_is_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
