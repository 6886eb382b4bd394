/*
 * No plan that we can find is quicker than the bound: random plans, fixed strategies, what the
 * search returns, rewritten programs, and descents from all of these. SW_CASES is the number of
 * attacks, SW_SEED the first seed; each violation is printed with its seed.
 */
#include "bound/campaign.h"

#include <stdlib.h>

#include "bound/programs.h"

#ifdef __SANITIZE_ADDRESS__
/* Sanitizers make each attack ten times as slow. */
#define DEFAULT_ATTACKS 200
#else
#define DEFAULT_ATTACKS 2000
#endif

#define SEEDS_PER_KIND 9
#define THIN_CASES 6

static const effort QUICK = {.random = 2, .draws = 10, .moves = 6, .planned = 80, .recorded = 90};

static uint64_t first_seed(void)
{
	const char *seed = getenv("SW_SEED");
	return seed ? strtoull(seed, NULL, 10) : 1;
}

static void no_plan_is_quicker_than_the_bound(void **state)
{
	const char *cases = getenv("SW_CASES");
	campaign c;
	(void)state;
	campaign_init(&c, 1, QUICK);
	campaign_run(&c, first_seed(), cases ? strtoll(cases, NULL, 10) : DEFAULT_ATTACKS);
	campaign_print(&c);
	assert_int_equal(c.attacker.violations, 0);
	campaign_clear(&c);
}

/* Each of these was below a bound of its time: running totals, whose blocks take less than their
 * share; loops that run no iteration; branches; and values that padding makes equal. */
static void the_programs_that_beat_a_bound_are_attacked_again(void **state)
{
	static const char *const kinds[] = {"running total", "loop", "branches", "sources"};
	static const char *const sites[] = {"6 free", "2x4 work", "3x2 fitted"};
	campaign c;
	(void)state;
	campaign_init(&c, 1, (effort){.random = 2, .draws = 16, .moves = 6});
	for (size_t k = 0; k < SW_COUNT(kinds); k++)
		for (uint64_t seed = 1; seed <= SEEDS_PER_KIND; seed++)
			campaign_kind(&c, seed, kinds[k], sites[seed % SW_COUNT(sites)],
			              seed % 2 ? SW_FUSION_NONE
			                       : (sw_fusion)(seed / 2 % SW_FUSION_COUNT));
	campaign_print(&c);
	assert_int_equal(c.attacker.violations, 0);
	campaign_clear(&c);
}

/* Where links are thin a step is what they carry: fixed strategies, descents and what the search
 * finds come near the bound of kernels and messages together. */
static void what_thin_links_carry_is_attacked(void **state)
{
	static const char *const sites[] = {"2x2 thin", "4x2 thin",   "8 thin",
	                                    "6x2 thin", "2x2x2 thin", "512 thin"};
	const char *cases = getenv("SW_THIN_CASES");
	campaign c;
	(void)state;
	campaign_init(&c, 1, (effort){.random = 2, .draws = 1, .moves = 20, .planned = 1});
	for (uint64_t i = 0; i < (cases ? strtoull(cases, NULL, 10) : THIN_CASES); i++)
		campaign_kind(&c, first_seed() + i, "training", sites[i % SW_COUNT(sites)],
		              i % 2 ? SW_FUSION_NONE : (sw_fusion)(1 + i / 2 % (SW_FUSION_COUNT - 1)));
	campaign_print(&c);
	assert_int_equal(c.attacker.violations, 0);
	campaign_clear(&c);
}

/* More ops than the search looks at one by one. */
static void long_chains_of_dots_are_attacked_too(void **state)
{
	int sizes[211];
	sw_text text = {0};
	campaign c;
	(void)state;
	for (int i = 0; i < 211; i++)
		sizes[i] = i % 3 ? 48 : i % 2 ? 64 : 5;
	campaign_init(&c, 1, (effort){.random = 2, .draws = 4, .moves = 4});
	write_chain(&text, 210, 24, sizes);
	campaign_text(&c, 1, "210 dots", text.data, "2x4 free", SW_FUSION_NONE);
	campaign_print(&c);
	assert_int_equal(c.attacker.violations, 0);
	sw_text_clear(&text);
	campaign_clear(&c);
}

/* Six dots that eight devices divide evenly, and a bound that is a fifth too high: plans of ops, of
 * kernels and of whole steps are found below it, however devices fuse. The seed gives a quick host. */
static void a_bound_that_is_too_high_is_found_out(sw_fusion fusion)
{
	static const int sizes[] = {64, 512, 128, 512, 64, 128, 512};
	sw_text text = {0};
	campaign c;
	campaign_init(&c, 1.2, (effort){.random = 3, .draws = 12, .moves = 30, .planned = 1});
	c.attacker.silent = true;
	write_chain(&text, 6, 64, sizes);
	campaign_text(&c, 3, "six dots", text.data, "2x4 work", fusion);
	assert_true(c.attacker.violations > 0);
	assert_true(fusion != SW_FUSION_NONE || c.attacker.op.ratio < 1);
	assert_true((fusion == SW_FUSION_NONE ? c.attacker.kernels : c.attacker.fused).ratio < 1);
	assert_true(c.attacker.step.ratio < 1);
	sw_text_clear(&text);
	campaign_clear(&c);
}

static void bounds_that_are_too_high_are_found_out(void **state)
{
	(void)state;
	for (int fusion = 0; fusion < SW_FUSION_COUNT; fusion++)
		a_bound_that_is_too_high_is_found_out((sw_fusion)fusion);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_plan_is_quicker_than_the_bound),
		cmocka_unit_test(the_programs_that_beat_a_bound_are_attacked_again),
		cmocka_unit_test(what_thin_links_carry_is_attacked),
		cmocka_unit_test(long_chains_of_dots_are_attacked_too),
		cmocka_unit_test(bounds_that_are_too_high_are_found_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
