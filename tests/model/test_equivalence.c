/* Ops are modelled as one only where they have the same candidates. */
#include "planned/planned.h"
#include "model/internal.h"

/* Adding a finite constant passes maxima and minima on, adding another value does not, although the
 * shapes are the same. On 64 A100 the one's choices were given to the other, of resnet50. */
static void sums_with_a_constant_are_not_other_sums(void **state)
{
	static const char hlo[] = "HloModule m\n"
				  "ENTRY main {\n"
				  "  x = f32[64] parameter(0)\n"
				  "  y = f32[64] parameter(1)\n"
				  "  c = f32[] constant(2)\n"
				  "  two = f32[64] broadcast(c), dimensions={}\n"
				  "  shifted = f32[64] add(x, two)\n"
				  "  sum = f32[64] add(x, y)\n"
				  "  other = f32[64] add(y, x)\n"
				  "  ROOT t = (f32[64], f32[64], f32[64]) tuple(shifted, sum, other)\n"
				  "}\n";
	planned p;
	sw_analysis a;
	sw_memo memo;
	sw_program *program;
	sw_error err = {0};
	(void)state;
	open_text(hlo, "4", &p);
	check(sw_rewrite_canonical(p.program, &program, &err), &err);
	sw_plan *plan = p.plan = sw_plan_new(program, p.path, &p.cluster);
	sw_analysis_init(&a, plan, &p.sidecar, (sw_analysis_options){0});
	sw_memo_init(&memo, &a, plan, 1);
	sw_id shifted = (sw_id)(find_op(program, "shifted") - program->ops.data),
	      sum = (sw_id)(find_op(program, "sum") - program->ops.data),
	      other = (sw_id)(find_op(program, "other") - program->ops.data);
	assert_true(plan->rules[shifted]->n_linearities > plan->rules[sum]->n_linearities);
	assert_int_not_equal(sw_op_equivalence(&memo, shifted), sw_op_equivalence(&memo, sum));
	assert_int_equal(sw_op_equivalence(&memo, other), sw_op_equivalence(&memo, sum));
	sw_memo_clear(&memo);
	sw_analysis_clear(&a);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_with_a_constant_are_not_other_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
