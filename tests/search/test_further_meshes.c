/* Meshes that are searched only where the bound leaves something to gain: parts of the cluster, and
 * the mesh of the best plan with an axis cut in two. */
#include "planned/planned.h"

#include <string.h>

#include "generate/generate.h"
#include "search/search.h"

static double plan_with(planned *p, sw_plan_options options)
{
	options.quiet = true;
	options.remat = "none";
	options.microbatches = 1;
	return plan_under(p, options, "auto");
}

static double auto_s(planned *p, const sw_model_limits *limits)
{
	return plan_with(p, (sw_plan_options){.limits.model = limits});
}

static const sw_alternative *alternative_named(const sw_plan *plan, const char *words)
{
	for (size_t i = 0; i < plan->alternatives.len; i++)
		if (strstr(plan->alternatives.data[i].name, words))
			return &plan->alternatives.data[i];
	return NULL;
}

/* On a random program: what a part of a cluster takes, and what the whole. */
typedef struct comparison {
	uint64_t seed;
	generate_options options;
	const char *cluster, *part;
	sw_fusion fusion;
	double slack; /* of the step */
} comparison;

static void compare_with_part(const comparison *c)
{
	generated g;
	planned p;
	sw_text text = {0};
	sw_error err;
	generate_program(c->seed, &c->options, &g);
	sw_program_print(g.program, &text);
	open_text(text.data, c->cluster, &p);
	p.cluster.device.fusion = c->fusion;
	double all_s = auto_s(&p, NULL);
	assert_non_null(alternative_named(p.plan, "copied 2 times"));
	check(sw_cluster_take(&p.cluster, c->part, &err), &err);
	double part_s = auto_s(&p, NULL);
	if (all_s > part_s * (1 + 1e-9 + c->slack))
		fail_msg("program %d: %g s on all, %g s on a part", (int)c->seed, all_s, part_s);
	close_planned(&p);
	sw_text_clear(&text);
	generated_clear(&g);
}

/* Two devices of this program's four took 1.6 % less than all four. */
static void a_part_of_the_cluster_is_not_quicker(void **state)
{
	(void)state;
	compare_with_part(&(comparison){.seed = 5,
	                                .options = {.ops = 100, .max_elements = 100000, .only = "dot"},
	                                .cluster = "local-2x2.yaml",
	                                .part = "1x2",
	                                .fusion = SW_FUSION_LOOPS});
}

/* Two devices took 4.4 % less while what they send counted for as much as if it went through the links
 * of all four. */
static void a_part_of_the_cluster_is_planned_as_if_it_was_all(void **state)
{
	(void)state;
	compare_with_part(&(comparison){.seed = 8,
	                                .options = {.ops = 66, .max_elements = 100000},
	                                .cluster = "local-2x2.yaml",
	                                .part = "1x2",
	                                .fusion = SW_FUSION_LOOPS});
}

/* Two devices took 2.4 % less while a device of a part needed one kernel more to find its coordinate. */
static void a_part_of_the_cluster_needs_no_more_kernels(void **state)
{
	(void)state;
	compare_with_part(&(comparison){.seed = 20,
	                                .options = {.ops = 16, .max_elements = 100000},
	                                .cluster = "local-2x2.yaml",
	                                .part = "1x2",
	                                .fusion = SW_FUSION_NONE});
}

/* Four devices took 0.14 % less while nothing was padded for a part. They still take 0.04 % less: other
 * neighbours are tried of their plan. */
static void a_part_of_the_cluster_is_padded_for(void **state)
{
	(void)state;
	compare_with_part(&(comparison){.seed = 57,
	                                .options = {.ops = 100, .max_elements = 100000, .only = "dot"},
	                                .cluster = "local-2x4.yaml",
	                                .part = "1x4",
	                                .fusion = SW_FUSION_NONE,
	                                .slack = 5e-4});
}

/* Where kernels fuse, ZeRO-3 within a node of this program's two is quicker than what the model of ops
 * finds for both: two of the eight devices took 14 % less than all eight. */
static void a_fused_step_on_a_part_is_not_quicker(void **state)
{
	planned p;
	sw_error err;
	(void)state;
	open_fixture("mlp-clip", "lab-2x4.yaml", &p);
	assert_true(p.cluster.device.fusion != SW_FUSION_NONE);
	double all_s = auto_s(&p, NULL);
	check(sw_cluster_take(&p.cluster, "1x2", &err), &err);
	double part_s = auto_s(&p, NULL);
	assert_true(all_s <= part_s * (1 + 1e-9));
	close_planned(&p);
}

/* Momentum's update of a weight, whose sizes are 5 times powers of two. */
static const char updates[] =
	"HloModule updates, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) "
	"}\n"
	"ENTRY main {\n"
	" w = f32[640,1280] parameter(0)\n m = f32[640,1280] parameter(1)\n"
	" x = f32[25,8,640] parameter(2)\n y = f32[25,8,1280] parameter(3)\n"
	" g = f32[640,1280] dot(x, y), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}\n"
	" s = f32[640,1280] sine(m)\n a = f32[640,1280] add(s, g)\n"
	" b = f32[640,1280] sqrt(a)\n c = f32[640,1280] divide(a, b)\n"
	" v = f32[640,1280] subtract(w, c)\n"
	" ROOT r = (f32[640,1280], f32[640,1280]) tuple(v, a)\n}\n";

/* Links are so quick that only kernels count. 25 devices divide no dimension of the weight; five
 * divide one, beside ten that divide the other; but meshes of three axes have no budget. */
static void an_axis_is_cut_where_its_parts_divide_more(void **state)
{
	static const char cluster[] =
		"version: 1\nname: nodes\nlevels:\n"
		"  - {name: node, count: 125, latency: 0.01 us, bandwidth: 100 TB/s}\n"
		"  - {name: device, count: 2, latency: 0.01 us, bandwidth: 100 TB/s}\n"
		"device:\n  name: core\n  fusion: none\n  memory: 64 GiB\n"
		"  memory_bandwidth: 8 GB/s\n  kernel_overhead: 1 us\n"
		"  matmul_efficiency: 1\n  flops: {f32: 1 TFLOP/s}\n";
	sw_model_limits few = sw_model_default_limits, none = few;
	planned p;
	sw_error err;
	(void)state;
	few.three_axes_work = none.three_axes_work = 0;
	few.wide_work = none.wide_work = few.grids_work = none.grids_work = 0;
	none.refine_work = 0;
	open_text(updates, "1", &p);
	sw_cluster_clear(&p.cluster);
	check(sw_cluster_parse(cluster, strlen(cluster), "nodes.yaml", &p.cluster, &err), &err);
	auto_s(&p, &none);
	assert_null(alternative_named(p.plan, "z="));
	auto_s(&p, &few);
	const sw_alternative *two = alternative_named(p.plan, "search x=25 y=10"),
			     *three = alternative_named(p.plan, "search x=5 y=5 z=10");
	assert_non_null(two);
	assert_non_null(three);
	assert_true(two->feasible && three->feasible);
	assert_true(three->step_time_s < 0.5 * two->step_time_s);
	close_planned(&p);
}

/* Where the plan on two axes waits for collectives, one of them is cut evenly: of products one after
 * the other 16 devices send least as a cuboid. */
static void an_axis_is_cut_where_collectives_take_long(void **state)
{
	static const char dots[] =
		"HloModule dots\n"
		"ENTRY main {\n"
		" x = f32[1024,1024] parameter(0)\n w = f32[1024,1024] parameter(1)\n"
		" v = f32[1024,1024] parameter(2)\n"
		" a = f32[1024,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		" b = f32[1024,1024] sine(a)\n"
		" c = f32[1024,1024] dot(b, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		" d = f32[1024,1024] sine(c)\n"
		" e = f32[1024,1024] dot(d, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
		" f = f32[1024,1024] sine(e)\n"
		" ROOT g = f32[1024,1024] dot(f, d), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n";
	sw_model_limits few = sw_model_default_limits, none = few;
	planned p;
	(void)state;
	few.three_axes_work = none.three_axes_work = 0;
	few.wide_work = none.wide_work = few.grids_work = none.grids_work = 0;
	none.refine_work = 0;
	open_text(dots, "dgx-a100-2x8.yaml", &p);
	double two_axes_s = auto_s(&p, &none);
	assert_null(alternative_named(p.plan, "z="));
	double three_axes_s = auto_s(&p, &few);
	assert_non_null(alternative_named(p.plan, "search x=2 y=2 z=4"));
	assert_true(three_axes_s < 0.95 * two_axes_s);
	close_planned(&p);
}

static void fixed_strategies_are_searched_beside_the_mesh_that_is_asked_for(void **state)
{
	(void)state;
	planned p;
	open_fixture("mlp", "local-2x2.yaml", &p);
	double alone_s = plan_with(&p, (sw_plan_options){.mesh = "search x=2 y=2"});
	assert_non_null(alternative_named(p.plan, "search x=2 y=2"));
	assert_null(alternative_named(p.plan, "dp"));
	double both_s = plan_with(&p, (sw_plan_options){.mesh = "search x=2 y=2", .with_fixed = true});
	assert_non_null(alternative_named(p.plan, "search x=2 y=2"));
	assert_null(alternative_named(p.plan, "copied"));
	assert_non_null(alternative_named(p.plan, "dp"));
	assert_true(both_s <= alone_s * (1 + 1e-9));
	close_planned(&p);
}

static int rows_too_laborious(const sw_plan *plan)
{
	int n = 0;
	for (size_t i = 0; i < plan->alternatives.len; i++)
		n += plan->alternatives.data[i].untried == SW_UNTRIED_WORK;
	return n;
}

/* Of llama-gqa-tiny on lab-2x4 one grid of AxoNN took 42 of 52 seconds to model and reduce, and was not
 * solved within the work that further meshes get. Here no mesh can be. */
static void further_meshes_that_could_not_be_solved_are_left_out(void **state)
{
	(void)state;
	planned p;
	sw_search_limits limits = sw_search_default_limits;
	open_fixture("mlp", "lab-2x4.yaml", &p);
	auto_s(&p, NULL);
	assert_int_equal(rows_too_laborious(p.plan), 0);
	assert_non_null(alternative_named(p.plan, "copied 2 times"));
	limits.hurried_sweeps = 1e12;
	plan_with(&p, (sw_plan_options){.limits.search = &limits});
	assert_true(rows_too_laborious(p.plan) > 0);
	assert_int_equal(alternative_named(p.plan, "copied 2 times")->untried, SW_UNTRIED_WORK);
	assert_true(alternative_named(p.plan, "zero3")->feasible);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_of_the_cluster_is_not_quicker),
		cmocka_unit_test(a_part_of_the_cluster_is_planned_as_if_it_was_all),
		cmocka_unit_test(a_part_of_the_cluster_needs_no_more_kernels),
		cmocka_unit_test(a_part_of_the_cluster_is_padded_for),
		cmocka_unit_test(a_fused_step_on_a_part_is_not_quicker),
		cmocka_unit_test(an_axis_is_cut_where_its_parts_divide_more),
		cmocka_unit_test(an_axis_is_cut_where_collectives_take_long),
		cmocka_unit_test(fixed_strategies_are_searched_beside_the_mesh_that_is_asked_for),
		cmocka_unit_test(further_meshes_that_could_not_be_solved_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
