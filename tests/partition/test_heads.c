/* A fused projection that is split by heads: slice, reshape and attention need no
 * redistribution. */
#include "partition/subject.h"

#define TOLERANCE 2e-5

/* 4 heads of 4, of 8 tokens. The columns of the weights are 3 x heads x 4, or heads x 3 x 4. */
#define ATTENTION                                                                                  \
	"  s = f32[4,8,8] dot(qh, kh), lhs_batch_dims={1}, rhs_batch_dims={1}, "                   \
	"lhs_contracting_dims={2}, rhs_contracting_dims={2}\n"                                     \
	"  o = f32[4,8,4] dot(s, vh), lhs_batch_dims={0}, rhs_batch_dims={1}, "                    \
	"lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"                                     \
	"  t = f32[8,4,4] transpose(o), dimensions={1,0,2}\n"                                      \
	"  f = f32[8,16] reshape(t)\n"                                                             \
	"  ROOT y = f32[8,16] dot(f, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
#define PROJECTION                                                                                 \
	"HloModule m\nENTRY e {\n  x = f32[8,16] parameter(0)\n  w = f32[16,48] parameter(1)\n"    \
	"  p = f32[16,16] parameter(2)\n"                                                          \
	"  a = f32[8,48] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"

typedef struct projection {
	const char *name, *text;
	int64_t top; /* of the digit of the heads in the columns of w */
} projection;

static const projection projections[] = {
	{"parts of heads",
         PROJECTION
         "  q = f32[8,16] slice(a), slice={[0:8], [0:16]}\n  qh = f32[8,4,4] reshape(q)\n"
         "  k = f32[8,16] slice(a), slice={[0:8], [16:32]}\n  kh = f32[8,4,4] reshape(k)\n"
         "  v = f32[8,16] slice(a), slice={[0:8], [32:48]}\n  vh = f32[8,4,4] "
         "reshape(v)\n" ATTENTION,
         16},
	{"heads of parts",
         PROJECTION "  r = f32[8,4,3,4] reshape(a)\n"
                    "  q = f32[8,4,1,4] slice(r), slice={[0:8], [0:4], [0:1], [0:4]}\n  qh = "
                    "f32[8,4,4] reshape(q)\n"
                    "  k = f32[8,4,1,4] slice(r), slice={[0:8], [0:4], [1:2], [0:4]}\n  kh = "
                    "f32[8,4,4] reshape(k)\n"
                    "  v = f32[8,4,1,4] slice(r), slice={[0:8], [0:4], [2:3], [0:4]}\n"
                    "  vh = f32[8,4,4] reshape(v)\n" ATTENTION,
         48},
};

/* Choose the weights' layouts at rest: w is split by heads along its columns, p along its rows. */
static void place_weights(sw_plan *plan, const sw_atoms *atoms, int64_t top)
{
	const sw_computation *entry = sw_entry(plan->program);
	uint32_t all = (1u << atoms->n) - 1;

	for (int i = 1; i <= 2; i++) {
		sw_id value = sw_op_at(plan->program, entry->parameters.data[i])->first_result;
		sw_layout layout = sw_layout_replicated(atoms);
		assert_true(sw_layout_split(atoms, &layout, all, i == 1, i == 1 ? top : 16));
		plan->materialised[value] = plan->produced[value] =
			sw_layouts_id(&plan->layouts, &layout);
	}
}

/* Return the strategy that follows the layout of the last operand that is split. */
static sw_strategy follow(const sw_plan *plan, const sw_atoms *atoms, const sw_op *op,
                          const sw_rule *rule)
{
	sw_strategy strategy = sw_strategy_none(atoms);

	for (uint32_t k = 0; k < op->n_operands; k++) {
		const sw_layout *layout = sw_plan_layout(plan, plan->produced[op->operands[k]]);
		uint32_t mask = sw_layout_split_atoms(layout, -1), wanted = mask;
		if (!mask)
			continue;
		sw_rule_match(rule, atoms, false, (int32_t)k, layout, &mask, &strategy);
		assert_int_equal(mask, wanted);
	}
	return strategy;
}

static sw_plan *plan_of_heads(const subject *s, const sw_cluster *cluster, int64_t top)
{
	sw_layout operands[4], result;
	sw_error err = {0};
	sw_plan *plan;

	check(sw_plan_replicated(s->program, cluster, &plan, &err), &err);
	place_weights(plan, &cluster->atoms, top);
	const sw_computation *entry = sw_entry(plan->program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(plan->program, id);
		if (op->opcode == SW_OP_PARAMETER)
			continue;
		plan->strategies[id] = follow(plan, &cluster->atoms, op, plan->rules[id]);
		assert_false(sw_strategy_exchanges(plan->rules[id], &plan->strategies[id]));
		assert_true(sw_rule_layouts(plan->program, id, plan->rules[id], &cluster->atoms,
		                            &plan->strategies[id], operands, &result));
		for (uint32_t k = 0; k < op->n_operands; k++)
			assert_true(sw_layout_equal(
				&operands[k],
				sw_plan_layout(plan, plan->produced[op->operands[k]])));
		plan->materialised[op->first_result] = plan->produced[op->first_result] =
			sw_layouts_id(&plan->layouts, &result);
	}
	return plan;
}

/* The only collective left is the all-reduce of the partial sums of y. */
static void assert_one_sum(const sw_plan *plan)
{
	sw_program *local;
	sw_error err = {0};
	int collectives = 0;

	check(sw_partition(plan, &local, &err), &err);
	for (size_t i = 0; i < local->ops.len; i++) {
		const sw_op *op = sw_op_at(local, (sw_id)i);
		if (sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE)
			continue;
		collectives++;
		assert_int_equal(op->opcode, SW_OP_ALL_REDUCE);
		assert_int_equal(sw_shape_bytes(sw_value_shape(local, op->operands[0])),
		                 8 * 16 * 4);
	}
	assert_int_equal(collectives, 1);
	sw_program_free(local);
}

static void heads_of_a_fused_projection_stay_where_they_are(void **state)
{
	static const char *const clusters[] = {"2", "4", "2,2"};
	(void)state;

	for (size_t i = 0; i < SW_COUNT(projections); i++)
		for (size_t c = 0; c < SW_COUNT(clusters); c++) {
			subject s;
			sw_cluster cluster;
			subject_from_text(projections[i].name, projections[i].text, &s);
			make_cluster(clusters[c], &cluster);
			sw_plan *plan = plan_of_heads(&s, &cluster, projections[i].top);
			assert_one_sum(plan);
			compare_with_serial(&s, plan, TOLERANCE, projections[i].name);
			sw_plan_free(plan);
			sw_cluster_clear(&cluster);
			subject_clear(&s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_of_a_fused_projection_stay_where_they_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
