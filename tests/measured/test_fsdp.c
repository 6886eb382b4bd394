/* What fully sharded data parallelism and Composer's optimizer move beside a plan (bench/measured). */
#include "test.h"

#include <math.h>

#include "../../bench/measured/fsdp.c"

static void copies_grow_with_weights_and_microbatches(void **state)
{
	(void)state;
	const double gradients = 18e6, part = 1e6 / 8, optimizer = 88 - 28;
	const struct {
		int64_t zero, microbatches;
		bool fsdp;
		double bytes;
	} cases[] = {{3, 1, true, gradients + part * (2 * 6 + optimizer)},
	             {3, 4, true, 4 * (gradients + part * 2 * 6) + part * optimizer},
	             {2, 1, true, gradients + part * (6 + optimizer)}, /* weights are gathered once */
	             {3, 4, false, 0}};
	sw_program *p = sw_program_new("step");
	int32_t entry = sw_build_computation(p, "main");
	sw_shape shape = sw_build_shape(p, SW_BF16, (int64_t[]){1000, 1000}, 2);
	sw_id inputs[] = {sw_emit_parameter(p, entry, shape, "w"), sw_emit_parameter(p, entry, shape, "m")};
	sw_build_results(p, entry, inputs, 2, true);
	p->entry = entry;
	sw_input_info of_inputs[] = {{.name = "params.w", .role = SW_ROLE_PARAMETER},
	                             {.name = "opt.mu.w", .role = SW_ROLE_MOMENT}};
	const subject s = {.program = p, .sidecar = {.n_inputs = 2, .inputs = of_inputs}};
	const sw_cluster cluster = {.device = {.memory_bandwidth = 1e9}};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		const configuration c = {.dp = 8, .zero = cases[i].zero, .microbatches = cases[i].microbatches,
		                         .fsdp = cases[i].fsdp};
		assert_true(fabs(fsdp_seconds(&s, &c, &cluster) * 1e9 - cases[i].bytes) < 1);
	}
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(copies_grow_with_weights_and_microbatches)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
