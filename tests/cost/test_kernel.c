/* Seconds of single ops: the roofline of a device with 1 GB/s, 10 us per kernel, and 50 (f32) or
 * 200 (bf16) GFLOP/s for matmuls. */
#include "cost/clusters.h"

static const char text[] =
	"HloModule ops\n"
	"sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
	"twice { c = f32[1000] parameter(0)\n ROOT d = f32[1000] add(c, c) }\n"
	"ENTRY main {\n"
	"  x = f32[1000,1000] parameter(0)\n"
	"  y = f32[1000,1000] parameter(1)\n"
	"  v = f32[1000] parameter(2)\n"
	"  i = s32[10,1] parameter(3)\n"
	"  j = s32[] parameter(4)\n"
	"  u = f32[10,1000] parameter(5)\n"
	"  zero = f32[] constant(0)\n"
	"  matmul = f32[1000,1000] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  xb = bf16[1000,1000] convert(x)\n"
	"  matmul_bf16 = bf16[1000,1000] dot(xb, xb), lhs_contracting_dims={1}, "
	"rhs_contracting_dims={0}\n"
	"  matmul_wide = f32[1000,1000] dot(xb, xb), lhs_contracting_dims={1}, "
	"rhs_contracting_dims={0}\n"
	"  xd = f64[1000,1000] convert(x)\n"
	"  matmul_f64 = f64[1000,1000] dot(xd, xd), lhs_contracting_dims={1}, "
	"rhs_contracting_dims={0}\n"
	"  matvec = f32[1000] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  plus = f32[1000] add(v, v)\n"
	"  splat = f32[1000] broadcast(zero), dimensions={}\n"
	"  scaled = f32[1000] multiply(v, splat)\n"
	"  quotient = f32[1000] divide(v, v)\n"
	"  turned = f32[1000,1000] transpose(x), dimensions={1,0}\n"
	"  sums = f32[1000] reduce(x, zero), dimensions={1}, to_apply=sum\n"
	"  sums_of_columns = f32[1000] reduce(x, zero), dimensions={0}, to_apply=sum\n"
	"  flat = f32[1000000] reshape(x)\n"
	"  call = f32[1000] call(v), to_apply=twice\n"
	"  cumulative = f32[1000] reduce-window(v, zero), window={size=1000 pad=999_0}, "
	"to_apply=sum\n"
	"  row = f32[10,1000] dynamic-slice(x, j, j), dynamic_slice_sizes={10,1000}\n"
	"  updated = f32[1000,1000] dynamic-update-slice(x, u, j, j)\n"
	"  rows = f32[10,1000] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
	"start_index_map={0}, "
	"index_vector_dim=1, slice_sizes={1,1000}\n"
	"  added = f32[1000,1000] scatter(x, i, u), update_window_dims={1}, "
	"inserted_window_dims={0}, "
	"scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n"
	"  ROOT out = (f32[1000,1000], f32[1000]) tuple(matmul, matvec)\n"
	"}\n";

typedef struct kernel_case {
	const char *op;
	double seconds;
} kernel_case;

static void ops_follow_the_roofline(void **state)
{
	(void)state;
	const double overhead = 10e-6;
	const kernel_case cases[] = {
		{"matmul", 2e9 / 50e9 + overhead},
		{"matmul_bf16", 2e9 / 200e9 + overhead},
		{"matmul_wide", 2e9 / 200e9 + overhead},
		{"matmul_f64", 2e9 / 50e9 + overhead}, /* not in the file: runs at f32's rate */
		{"matvec", 4 * (1e6 + 2e3) / 1e9 + overhead},
		{"plus", 12e3 / 1e9 + overhead},
		{"scaled", 12e3 / 1e9 + overhead},
		{"xb", 6e6 / 1e9 + overhead},
		/* the vector rate: 6 operations per byte */
		{"cumulative", 500500 / 6e9 + overhead},
		{"row", 8e4 / 1e9 + overhead},
		{"updated", 8e4 / 1e9 + overhead},
		{"rows", (8e4 + 40) / 1e9 + overhead},
		{"added", (12e4 + 40) / 1e9 + overhead},
		{"x", 0},
		{"zero", 0},
		{"flat", 0},
		{"call", 0}, /* the ops of its body are counted by themselves */
	};
	const level_text levels[] = {{"2", 1e-3, 1e6, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	sw_program *program = read_text(text);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		print_message("%s\n", cases[i].op);
		assert_seconds(sw_cost_op(&c, program, find_op(program, cases[i].op)),
		               cases[i].seconds);
	}
	sw_program_free(program);
	sw_cluster_clear(&c);
}

static void a_fitted_family_replaces_the_roofline(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-3, 1e6, 0}};
	const struct {
		const char *op;
		sw_family family;
		double seconds;
	} cases[] = {
		{"matmul", SW_FAMILY_MATMUL, 1e-3 + 1e-4 + 2e9 / 1e9 + 12e6 / 1e8},
		/* the fit has no term of flops */
		{"plus", SW_FAMILY_ELEMENTWISE, 2e-3 + 1e4 / 5e9 + 2e3 / 5e8},
		{"scaled", SW_FAMILY_ELEMENTWISE,
	         2e-3 + 8e3 / 5e9}, /* cached; one operand is a single element */
		{"matvec", SW_FAMILY_MATMUL, 1e-3 + 1e-4 + 2e6 / 1e9 + 4 * (1e6 + 2e3) / 1e8},
		{"quotient", SW_FAMILY_TRANSCENDENTAL, (double)0.35F * 1000 / 1e6},
		{"row", SW_FAMILY_MOVE, 1e-6},          /* the whole array is one run */
		{"turned", SW_FAMILY_MOVE, 1e6 * 1e-6}, /* each element is a run */
		{"sums", SW_FAMILY_REDUCE, 1000 * 1e-3 + 1000 * 1e-6},
		{"sums_of_columns", SW_FAMILY_REDUCE, 1000 * 1e-6},
		/* the family has no fit: the roofline applies */
		{"rows", SW_FAMILY_INDEXED, (8e4 + 40) / 1e9 + 10e-6},
		{"flat", SW_FAMILY_COUNT, 0},
		{"call", SW_FAMILY_COUNT, 0},
	};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	c.device.cache_bytes = 1e4;
	c.device.kernels[SW_FAMILY_MATMUL] = (sw_kernel_fit){.given = true,
	                                                     .overhead_s = 1e-3,
	                                                     .call_s = 1e-4,
	                                                     .flops_per_s = 1e9,
	                                                     .bytes_per_s = 1e8,
	                                                     .cached_bytes_per_s = 1e8};
	c.device.kernels[SW_FAMILY_ELEMENTWISE] = (sw_kernel_fit){
		.given = true, .overhead_s = 2e-3, .bytes_per_s = 5e8, .cached_bytes_per_s = 5e9};
	c.device.kernels[SW_FAMILY_TRANSCENDENTAL] =
		(sw_kernel_fit){.given = true, .flops_per_s = 1e6};
	c.device.kernels[SW_FAMILY_MOVE] = (sw_kernel_fit){.given = true, .row_s = 1e-6};
	c.device.kernels[SW_FAMILY_REDUCE] =
		(sw_kernel_fit){.given = true, .call_s = 1e-3, .row_s = 1e-6};
	sw_program *program = read_text(text);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_id op = find_op(program, cases[i].op);
		print_message("%s\n", cases[i].op);
		assert_int_equal(sw_cost_family(program, op), cases[i].family);
		assert_seconds(sw_cost_op(&c, program, op), cases[i].seconds);
	}
	sw_program_free(program);
	sw_cluster_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_follow_the_roofline),
		cmocka_unit_test(a_fitted_family_replaces_the_roofline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
