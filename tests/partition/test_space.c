/* A training step of convolutions and a pool, whose images are split into blocks of rows in every
 * op. */
#include "partition/programs.h"
#include "partition/subject.h"

/* Sums in another order, in f32. */
#define TOLERANCE 2e-5

/* Give all atoms to the blocks of the one factor that they divide. */
static void split_rows(const sw_atoms *atoms, const sw_rule *rule, sw_strategy *strategy)
{
	int64_t devices = sw_atoms_devices(atoms);

	for (int32_t f = 0; f < rule->n_factors; f++)
		if (rule->factors[f].size % devices == 0)
			assert_true(sw_strategy_split(atoms, rule, strategy, (1u << atoms->n) - 1,
			                              f, rule->factors[f].size));
}

static sw_plan *plan_of_rows(const subject *s, const sw_cluster *cluster, int *exchanges)
{
	sw_layout operands[8], results[8];
	sw_error err = {0};
	sw_plan *plan;

	check(sw_plan_replicated(s->program, cluster, &plan, &err), &err);
	const sw_computation *entry = sw_entry(plan->program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(plan->program, id);
		const sw_rule *rule = plan->rules[id];
		split_rows(&cluster->atoms, rule, &plan->strategies[id]);
		assert_true(sw_rule_layouts(plan->program, id, rule, &cluster->atoms,
		                            &plan->strategies[id], operands, results));
		for (uint32_t r = 0; r < op->n_results && op->opcode != SW_OP_PARAMETER; r++)
			plan->materialised[op->first_result + r] =
				plan->produced[op->first_result + r] =
					sw_layouts_id(&plan->layouts, &results[r]);
		*exchanges += sw_strategy_exchanges(rule, &plan->strategies[id]);
	}
	return plan;
}

/* Count the collectives of the partitioned program. The only gathers are those of the output that
 * is split: no op needs a whole image. */
static void count_collectives(const sw_plan *plan, int64_t *permutes, int64_t *gathers)
{
	sw_program *local;
	sw_error err = {0};

	check(sw_partition(plan, &local, &err), &err);
	for (size_t i = 0; i < local->ops.len; i++) {
		*permutes += sw_op_at(local, (sw_id)i)->opcode == SW_OP_COLLECTIVE_PERMUTE;
		*gathers += sw_op_at(local, (sw_id)i)->opcode == SW_OP_ALL_GATHER;
	}
	sw_program_free(local);
}

static void a_step_of_convolutions_split_over_rows_gives_the_serial_results(void **state)
{
	static const char *const clusters[] = {"2", "4", "2,2"};
	(void)state;

	for (size_t c = 0; c < SW_COUNT(clusters); c++) {
		subject s;
		sw_cluster cluster;
		int64_t permutes = 0, gathers = 0;
		int exchanges = 0;
		subject_from_text("convolutions", CONVOLUTIONS, &s);
		make_cluster(clusters[c], &cluster);
		sw_plan *plan = plan_of_rows(&s, &cluster, &exchanges);
		assert_int_equal(exchanges, 8); /* six convolutions, the pool and its gradient */
		count_collectives(plan, &permutes, &gathers);
		assert_in_range(permutes, 8, 16);
		assert_int_equal(gathers, 1);
		compare_with_serial(&s, plan, TOLERANCE, "rows");
		sw_plan_free(plan);
		sw_cluster_clear(&cluster);
		subject_clear(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_of_convolutions_split_over_rows_gives_the_serial_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
