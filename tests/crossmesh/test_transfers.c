/* Random transfers: every element arrives, by every strategy and order, within the model and not
 * below the bound. */
#include "crossmesh/transfers.h"

#include <math.h>

#include "test.h"

#define CASES 400

static uint64_t first_seed(void)
{
	const char *given = getenv("SW_SEED");
	return given ? strtoull(given, NULL, 10) : 1;
}

static sw_crossmesh_options draw_options(sw_rng *rng)
{
	return (sw_crossmesh_options){
		.strategy = (sw_crossmesh_strategy)sw_rng_below(rng, SW_CROSSMESH_STRATEGIES + 1),
		.order = (sw_crossmesh_order)sw_rng_below(rng, SW_CROSSMESH_ORDERS),
		.chunks = (int32_t)sw_rng_below(rng, 4),
		.pieces = (int32_t)sw_rng_below(rng, 4),
		.work_limit = 2000,
		.seed = sw_rng_bits(rng)};
}

static void check_drawn(uint64_t seed, bool partial)
{
	sw_rng rng = {.seed = seed};
	transfer t = transfer_drawn(&rng, partial);
	for (int i = 0; i < 4; i++) {
		sw_crossmesh_options options = draw_options(&rng);
		sw_crossmesh_plan *plan = plan_of(&t, &options);
		check_plan(&t, plan);
		check_model(plan);
		if (plan->seconds < plan->bound.seconds * (1 - 1e-12))
			fail_msg("seed %llu: %s: %g s, below the bound %g s",
			         (unsigned long long)seed, t.text.data, plan->seconds,
			         plan->bound.seconds);
		sw_crossmesh_plan_free(plan);
	}
	transfer_clear(&t);
}

static void every_element_arrives(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)first_seed());
	for (uint64_t i = 0; i < CASES; i++)
		check_drawn(first_seed() + i, false);
}

static void every_sum_arrives(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < CASES; i++)
		check_drawn(first_seed() + CASES + i, true);
}

/* The slices, counted from the definition: one for each pair of parts with an element in common. */
static void slices_are_those_of_the_definition(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < CASES; i++) {
		sw_rng rng = {.seed = first_seed() + 3 * CASES + i};
		transfer t = transfer_drawn(&rng, true);
		sw_crossmesh_options options = sw_crossmesh_defaults();
		sw_crossmesh_plan *plan = plan_of(&t, &options);
		int64_t elements = 0;
		for (int32_t s = 0; s < plan->n_slices; s++) {
			elements += plan->slices[s].elements;
			assert_true(plan->slices[s].elements > 0);
			for (int32_t q = 0; q < s; q++)
				assert_true(plan->slices[s].source_part !=
				                    plan->slices[q].source_part ||
				            plan->slices[s].target_part !=
				                    plan->slices[q].target_part);
		}
		assert_int_equal(elements, sw_shape_elements(t.shape));
		sw_crossmesh_plan_free(plan);
		transfer_clear(&t);
	}
}

static void plans_are_the_same_again(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 50; i++) {
		sw_rng rng = {.seed = first_seed() + 5 * CASES + i};
		transfer t = transfer_drawn(&rng, true);
		sw_crossmesh_options options = sw_crossmesh_defaults();
		sw_crossmesh_plan *a = plan_of(&t, &options), *b = plan_of(&t, &options);
		sw_text of_a = {0}, of_b = {0};
		sw_crossmesh_print_phases(a, 0, &of_a);
		sw_crossmesh_print_phases(b, 0, &of_b);
		assert_string_equal(of_a.data, of_b.data);
		assert_true(a->seconds == b->seconds && a->work == b->work);
		sw_text_clear(&of_a);
		sw_text_clear(&of_b);
		sw_crossmesh_plan_free(a);
		sw_crossmesh_plan_free(b);
		transfer_clear(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_arrives),
		cmocka_unit_test(every_sum_arrives),
		cmocka_unit_test(slices_are_those_of_the_definition),
		cmocka_unit_test(plans_are_the_same_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
