/* Random plans: valid, determined by the seed alone, and not all equal. */
#include "planned/planned.h"
#include "model/model.h"

static int set_up(void **state)
{
	planned *p = sw_alloc(sizeof(*p));
	open_fixture("lstm-lm-tiny", "12", p);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	close_planned(*state);
	free(*state);
	return 0;
}

static sw_plan *random_plan(const planned *p, uint64_t seed)
{
	sw_plan *plan;
	sw_error err = {0};
	check(sw_plan_random(p->program, "", &p->cluster, seed, false, &plan, &err), &err);
	check(sw_plan_verify(plan, &err), &err);
	return plan;
}

static bool same_layouts(const sw_plan *a, const sw_plan *b, const uint32_t *x, const uint32_t *y,
                         size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!sw_layout_equal(sw_plan_layout(a, x[i]), sw_plan_layout(b, y[i])))
			return false;
	return true;
}

static bool same_plan(const sw_plan *a, const sw_plan *b)
{
	size_t values = a->program->values.len;
	for (size_t i = 0; i < a->program->ops.len; i++)
		if (!sw_strategy_equal(&a->strategies[i], &b->strategies[i]))
			return false;
	return same_layouts(a, b, a->produced, b->produced, values) &&
	       same_layouts(a, b, a->materialised, b->materialised, values) &&
	       same_layouts(a, b, a->outputs, b->outputs, a->n_outputs);
}

static void the_seed_determines_the_plan(void **state)
{
	const planned *p = *state;
	sw_plan *plans[] = {random_plan(p, 7), random_plan(p, 7), random_plan(p, 8)};
	assert_true(same_plan(plans[0], plans[1]));
	assert_false(same_plan(plans[0], plans[2]));
	for (size_t i = 0; i < SW_COUNT(plans); i++)
		sw_plan_free(plans[i]);
}

/* Each kind of decision is made, in both ways. */
static void all_kinds_of_decisions_are_made(void **state)
{
	const planned *p = *state;
	int64_t choices[3] = {0}, moved = 0, partial_inside = 0, split_inputs = 0, finest = 0;
	for (uint64_t seed = 0; seed < 10; seed++) {
		sw_plan *plan = random_plan(p, seed);
		for (size_t i = 0; i < plan->program->ops.len; i++) {
			bool input = plan->program->ops.data[i].opcode == SW_OP_PARAMETER;
			for (int32_t a = 0; a < p->cluster.atoms.n; a++) {
				sw_choice choice = plan->strategies[i].atom[a];
				choices[choice.kind]++;
				finest += choice.kind == SW_CHOICE_SPLIT && choice.stride == 1;
			}
			for (uint32_t k = 0; input && k < plan->program->ops.data[i].n_results;
			     k++) {
				const sw_layout *layout = sw_plan_layout(
					plan,
					plan->produced[plan->program->ops.data[i].first_result +
				                       k]);
				partial_inside += sw_layout_partial_atoms(layout) != 0;
				split_inputs += sw_layout_split_atoms(layout, -1) != 0;
			}
		}
		for (size_t v = 0; v < plan->program->values.len; v++)
			moved += plan->materialised[v] != plan->produced[v];
		sw_plan_free(plan);
	}
	for (int k = 0; k < 3; k++)
		assert_true(choices[k] > 100);
	assert_true(moved > 100 && split_inputs > 100 && finest > 100);
	assert_true(partial_inside > 0); /* a value that a loop carries */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_seed_determines_the_plan),
		cmocka_unit_test(all_kinds_of_decisions_are_made),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
