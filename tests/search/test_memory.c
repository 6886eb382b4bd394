/* The memory that the problem counts, compared with that of the partitioned program. */
#include "planned/planned.h"

#include "model/model.h"
#include "search/live_versions.h"

#define DEVICES "4"

/* The plan of one mesh that is cheapest without a memory limit. */
typedef struct counted {
	planned p;
	sw_plan *plan;
	sw_analysis analysis;
	sw_memo memo;
	sw_meshes meshes;
	sw_model model;
	sw_solution solution;
	int64_t arena_bytes;
} counted;

static void open_counted(const char *hlo, const char *strategy, counted *c)
{
	sw_error err = {0};
	sw_program *program;
	sw_plan_strategy parsed;
	sw_program_cost cost;
	*c = (counted){0};
	open_text(hlo, DEVICES, &c->p);
	check(sw_rewrite_canonical(c->p.program, &program, &err), &err);
	check(sw_plan_strategy_parse(strategy, &parsed, &err), &err);
	c->plan = sw_plan_new(program, c->p.path, &c->p.cluster);
	sw_analysis_init(&c->analysis, c->plan, &c->p.sidecar,
	                 (sw_analysis_options){.no_overlap = true});
	sw_memo_init(&c->memo, &c->analysis, c->plan, 0);
	check(sw_meshes_of(&c->p.cluster, &parsed, &sw_model_default_limits, &c->analysis.roles, 1,
	                   &c->meshes, &err),
	      &err);
	assert_true(sw_model_init(&c->model, &c->memo, &c->meshes.data[0], 1));
	c->model.problem.capacity = INT64_MAX;
	check(sw_solve(&c->model.problem, &(sw_solve_options){.quiet = true}, &c->solution, &err),
	      &err);
	sw_model_apply(&c->model, c->solution.assignment, c->plan);
	check(sw_partition_measure(c->plan, &cost, &err), &err);
	c->model.problem.capacity = c->arena_bytes = cost.peak_bytes;
}

static void close_counted(counted *c)
{
	sw_solution_clear(&c->solution);
	sw_model_clear(&c->model);
	sw_vec_clear(&c->meshes);
	sw_memo_clear(&c->memo);
	sw_analysis_clear(&c->analysis);
	sw_plan_free(c->plan);
	close_planned(&c->p);
}

/* Return the counted bytes per byte of the arena. */
static double count(const counted *c)
{
	sw_evaluation value;
	sw_problem_evaluate(&c->model.problem, c->solution.assignment, &value);
	return (double)value.peak_usage / (double)c->arena_bytes;
}

static const char accumulation[] =
	"HloModule accumulation, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	"condition {\n"
	"  p.1 = (s32[], f32[256,256], f32[256,256], f32[4,8,256]) parameter(0)\n"
	"  i.1 = s32[] get-tuple-element(p.1), index=0\n"
	"  n.1 = s32[] constant(4)\n"
	"  ROOT less.1 = pred[] compare(i.1, n.1), direction=LT\n"
	"}\n"
	"body {\n"
	"  p.2 = (s32[], f32[256,256], f32[256,256], f32[4,8,256]) parameter(0)\n"
	"  i.2 = s32[] get-tuple-element(p.2), index=0\n"
	"  sum.2 = f32[256,256] get-tuple-element(p.2), index=1\n"
	"  w.2 = f32[256,256] get-tuple-element(p.2), index=2\n"
	"  all.2 = f32[4,8,256] get-tuple-element(p.2), index=3\n"
	"  zero.2 = s32[] constant(0)\n"
	"  slab.2 = f32[1,8,256] dynamic-slice(all.2, i.2, zero.2, zero.2), "
	"dynamic_slice_sizes={1,8,256}\n"
	"  x.2 = f32[8,256] reshape(slab.2)\n"
	"  y.2 = f32[8,256] dot(x.2, w.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  dy.2 = f32[8,256] tanh(y.2)\n"
	"  g.2 = f32[256,256] dot(x.2, dy.2), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	"  more.2 = f32[256,256] add(sum.2, g.2)\n"
	"  late.2 = f32[8,256] dot(dy.2, w.2), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
	"  next.2 = f32[4,8,256] broadcast(late.2), dimensions={1,2}\n"
	"  one.2 = s32[] constant(1)\n"
	"  j.2 = s32[] add(i.2, one.2)\n"
	"  ROOT r.2 = (s32[], f32[256,256], f32[256,256], f32[4,8,256]) tuple(j.2, more.2, w.2, "
	"next.2)\n"
	"}\n"
	"ENTRY main {\n"
	"  w = f32[256,256] parameter(0)\n"
	"  batch = f32[32,256] parameter(1)\n"
	"  x = f32[4,8,256] reshape(batch)\n"
	"  i = s32[] constant(0)\n"
	"  zero = f32[] constant(0)\n"
	"  none = f32[256,256] broadcast(zero), dimensions={}\n"
	"  t = (s32[], f32[256,256], f32[256,256], f32[4,8,256]) tuple(i, none, w, x)\n"
	"  done = (s32[], f32[256,256], f32[256,256], f32[4,8,256]) while(t), condition=condition, "
	"body=body\n"
	"  g = f32[256,256] get-tuple-element(done), index=1\n"
	"  new_w = f32[256,256] subtract(w, g)\n"
	"  ROOT result = (f32[256,256]) tuple(new_w)\n"
	"}\n";

/* A weight, the sum of its gradients, and one iteration's gradient: three matrices; the sum is not
 * counted both as a parameter and as a result of the body. */
static void spans_count_a_carried_value_once(void **state)
{
	counted c;
	(void)state;
	open_counted(accumulation, "dp", &c);
	assert_true(c.arena_bytes >= 3 * 256 * 256 * 4);
	assert_true(c.arena_bytes < 4 * 256 * 256 * 4);
	assert_true(count(&c) > 0.9);
	assert_true(count(&c) < 1.1);
	close_counted(&c);
}

static void add_life(void *context, int32_t begin, int32_t end, int64_t bytes)
{
	sw_demand_add(context, begin, end, bytes);
}

/* Live ranges, by which shared values are chosen, agree: a value that a loop carries, or that
 * aliases one of its caller, is not counted twice, nor are a loop's results besides the buffers in
 * which they were carried. */
static void live_ranges_count_a_carried_value_once(void **state)
{
	counted c;
	sw_version_ranges ranges;
	sw_demand demand;
	(void)state;
	open_counted(accumulation, "dp", &c);
	sw_path_store *store = sw_path_store_new(&c.p.cluster);
	sw_version_ranges_init(&ranges, c.plan, &c.analysis.roles,
	                       sw_path_store_get(store, c.plan->axes, c.plan->n_axes));
	sw_demand_init(&demand, c.analysis.roles.n_points, &ranges.arena);
	for (sw_id v = 0; v < c.plan->program->values.len; v++)
		sw_version_ranges_walk(&ranges, v, add_life, &demand);
	const sw_op *loop = find_op(c.plan->program, "done");
	int32_t done = c.analysis.roles.point[loop - c.plan->program->ops.data];
	double most = (double)sw_demand_max(&demand, 0, done + 1);
	assert_true(most > 0.9 * (double)c.arena_bytes);
	assert_true(most < 1.1 * (double)c.arena_bytes);
	sw_version_ranges_clear(&ranges);
	sw_path_store_free(store);
	close_counted(&c);
}

static const char product[] =
	"HloModule product, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	"ENTRY main {\n"
	"  w = f32[256,256] parameter(0)\n"
	"  x = f32[8,256] parameter(1)\n"
	"  y = f32[8,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  new_w = f32[256,256] negate(w)\n"
	"  ROOT result = (f32[256,256], f32[8,256]) tuple(new_w, y)\n"
	"}\n";

/* A weight that is split at rest is whole while a dot reads it. */
static void copies_are_counted_near_a_plan(void **state)
{
	counted c;
	(void)state;
	open_counted(product, "zero3", &c);
	double before = count(&c);
	sw_model_count_copies(&c.model, c.plan);
	assert_true(before < 0.6);
	assert_true(count(&c) > 0.8);
	assert_true(count(&c) < 1.1);
	close_counted(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_count_a_carried_value_once),
		cmocka_unit_test(live_ranges_count_a_carried_value_once),
		cmocka_unit_test(copies_are_counted_near_a_plan),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
