#include "partition/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/internal.h"

/* ---- inputs ------------------------------------------------------------------------------------------------- */

static double draw(const sw_fill *fill, uint64_t input, uint64_t element)
{
	switch (fill->kind) {
	case SW_FILL_ZEROS:
		return 0;
	case SW_FILL_ONES:
		return 1;
	case SW_FILL_CONSTANT:
		return fill->a;
	case SW_FILL_NORMAL:
		return fill->a + fill->b * sw_random_normal(1, input, element);
	case SW_FILL_UNIFORM:
		return fill->a + (fill->b - fill->a) * sw_random_unit(1, input, element);
	case SW_FILL_INTEGERS:
		return floor(fill->a + (fill->b - fill->a) * sw_random_unit(1, input, element));
	}
	return 0;
}

static sw_tensor filled(sw_shape shape, const sw_fill *fill, uint64_t input)
{
	sw_tensor tensor;
	sw_error err = {0};
	check(sw_tensor_new(shape, false, &tensor, &err), &err);
	for (int64_t e = 0; e < sw_shape_elements(shape); e++)
		sw_element_set(shape.type, sw_tensor_data(tensor), e, draw(fill, input, (uint64_t)e));
	return tensor;
}

static void run_alone(subject *s)
{
	s->n_inputs = sw_program_inputs(s->program, s->program->entry, &s->arena, &s->values);
	s->n_outputs = (uint32_t)sw_entry(s->program)->results.len;
	s->inputs = SW_NEW_N(&s->arena, sw_tensor, s->n_inputs + 1);
	s->outputs = SW_NEW_N(&s->arena, sw_tensor, s->n_outputs + 1);
	sw_tensor *taken = SW_NEW_N(&s->arena, sw_tensor, s->n_inputs + 1);
	for (uint32_t i = 0; i < s->n_inputs; i++) {
		s->inputs[i] =
			filled(sw_value_shape(s->program, s->values[i]), &s->sidecar.inputs[i].random, i);
		taken[i] = sw_tensor_keep(s->inputs[i]);
	}
	execute_serial(s->program, taken, s->n_inputs, s->outputs);
}

void subject_from_text(const char *name, const char *hlo, subject *s)
{
	sw_error err = {0};
	*s = (subject){.name = name};
	check(sw_read_hlo(hlo, strlen(hlo), name, &s->program, &err), &err);
	sw_sidecar_default(s->program, &s->sidecar);
	for (uint32_t i = 0; i < s->sidecar.n_inputs; i++) {
		sw_fill *fill = &s->sidecar.inputs[i].random;
		if (fill->kind == SW_FILL_NORMAL)
			*fill = (sw_fill){SW_FILL_NORMAL, 0, 0.5};
		else if (fill->kind == SW_FILL_INTEGERS)
			*fill = (sw_fill){SW_FILL_INTEGERS, -1, 8};
	}
	run_alone(s);
}

void subject_from_fixture(const char *name, subject *s)
{
	char path[512];
	sw_error err = {0};
	*s = (subject){.name = name};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", name);
	check(sw_read_program(path, &s->program, &err), &err);
	check(sw_sidecar_find(path, s->program, &s->sidecar, &err), &err);
	run_alone(s);
}

void subject_clear(subject *s)
{
	for (uint32_t i = 0; i < s->n_inputs; i++)
		sw_tensor_drop(&s->inputs[i]);
	for (uint32_t i = 0; i < s->n_outputs; i++)
		sw_tensor_drop(&s->outputs[i]);
	sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	sw_arena_clear(&s->arena);
}

/* ---- comparing ------------------------------------------------------------------------------------------------ */

static sw_tensor cut(const sw_plan *plan, sw_tensor whole, sw_shape local, const sw_layout *layout,
                     int64_t device)
{
	sw_tensor part;
	sw_error err = {0};
	check(sw_tensor_new(local, false, &part, &err), &err);
	sw_layout_cut(&plan->cluster->atoms, whole.shape, layout, device, sw_type_bytes(whole.shape.type),
	              sw_tensor_data(whole), sw_tensor_data(part));
	return part;
}

static sw_tensor *cut_inputs(const subject *s, const sw_plan *plan, const sw_program *local)
{
	sw_arena arena = {0};
	const sw_id *whole, *parts;
	int64_t devices = plan->cluster->n_devices;
	assert_int_equal(sw_program_inputs(plan->program, plan->program->entry, &arena, &whole),
	                 s->n_inputs);
	assert_int_equal(sw_program_inputs(local, local->entry, &arena, &parts), s->n_inputs);
	sw_tensor *inputs = sw_alloc(sizeof(*inputs) * (size_t)devices * s->n_inputs);
	for (int64_t d = 0; d < devices; d++)
		for (uint32_t i = 0; i < s->n_inputs; i++)
			inputs[d * s->n_inputs + i] =
				cut(plan, s->inputs[i], sw_value_shape(local, parts[i]),
			            sw_plan_layout(plan, plan->produced[whole[i]]), d);
	sw_arena_clear(&arena);
	return inputs;
}

static void compare_output(const subject *s, const sw_plan *plan, const execution *e, uint32_t i,
                           double tolerance, const char *what)
{
	const sw_layout *layout = sw_plan_layout(plan, plan->outputs[i]);
	assert_int_equal(sw_layout_partial_atoms(layout), 0);
	for (int64_t d = 0; d < e->n_devices; d++) {
		sw_tensor got = e->outputs[d * e->n_outputs + i],
			  wanted = cut(plan, s->outputs[i], got.shape, layout, d);
		sw_difference difference = sw_tensor_compare(got, wanted);
		sw_tensor_drop(&wanted);
		if (!(difference.relative <= tolerance))
			fail_msg("%s, %s on %lld devices: output %u on device %lld is off by %g", s->name,
			         what, (long long)e->n_devices, i, (long long)d, difference.relative);
	}
}

void compare_with_serial(const subject *s, const sw_plan *plan, double tolerance, const char *what)
{
	sw_program *local;
	sw_error err = {0};
	sw_program_cost cost;
	execution e;
	check(sw_plan_verify(plan, &err), &err);
	sw_status status = sw_partition(plan, &local, &err);
	if (status != SW_OK)
		fail_msg("%s, %s: %s", s->name, what, err.message);
	assert_int_equal(sw_entry(local)->results.len, s->n_outputs);
	assert_int_equal(local->aliases.len, s->program->aliases.len);
	sw_tensor *inputs = cut_inputs(s, plan, local);
	execute(local, plan->cluster->n_devices, inputs, s->n_inputs, &e);
	for (uint32_t i = 0; i < s->n_outputs; i++)
		compare_output(s, plan, &e, i, tolerance, what);
	sw_cost_program(plan->cluster, local, &cost);
	assert_int_equal(e.payload_bytes, cost.payload_bytes);
	execution_clear(&e);
	free(inputs);
	sw_program_free(local);
}

/* ---- random plans ------------------------------------------------------------------------------------------------ */

static sw_mesh free_axes(const sw_atoms *atoms, int32_t first_inner)
{
	const int32_t ends[] = {0, first_inner, atoms->n};
	sw_mesh mesh = {.name = "random"};
	for (int i = 0; i < 2; i++) {
		sw_axis axis = {.name = {(char)('x' + mesh.n_axes)}};
		for (int32_t a = ends[i]; a < ends[i + 1]; a++)
			axis.atoms |= 1u << a;
		axis.size = sw_atoms_group_size(atoms, axis.atoms);
		mesh.use[mesh.n_axes] = SW_AXIS_FREE;
		if (axis.atoms)
			mesh.axes[mesh.n_axes++] = axis;
	}
	return mesh;
}

/* Is choice `x` of node v allowed, given the neighbours that have chosen already (choice >= 0)? */
static bool allowed(const sw_problem *problem, const int32_t *choice, int32_t v, int32_t x)
{
	if (problem->nodes.data[v].cost[x] == SW_FORBIDDEN)
		return false;
	for (size_t i = 0; i < problem->edges.len; i++) {
		const sw_edge *e = &problem->edges.data[i];
		const sw_cost_table *t = &problem->tables.data[e->table];
		int32_t other = e->from == v ? e->to : e->from;
		if ((e->from != v && e->to != v) || choice[other] < 0)
			continue;
		int32_t row = e->from == v ? x : choice[other], column = e->from == v ? choice[other] : x;
		if (t->cost[row * t->columns + column] == SW_FORBIDDEN)
			return false;
	}
	return true;
}

static void choose_at_random(const sw_problem *problem, sw_rng *rng, int32_t *choice)
{
	for (size_t v = 0; v < problem->nodes.len; v++)
		choice[v] = -1;
	for (size_t v = 0; v < problem->nodes.len; v++) {
		int32_t root = problem->tied_to.data[v];
		for (int attempt = 0; root == (int32_t)v && attempt < 30 && choice[v] < 0; attempt++) {
			int32_t x = (int32_t)sw_rng_below(rng, problem->nodes.data[v].strategies);
			choice[v] = allowed(problem, choice, (int32_t)v, x) ? x : -1;
		}
		if (root != (int32_t)v)
			choice[v] = choice[root];
		else
			choice[v] = SW_MAX(choice[v], 0);
	}
}

sw_plan *random_plan(const subject *s, const sw_cluster *cluster, int32_t first_inner, uint64_t seed)
{
	sw_error err = {0};
	sw_program *canonical;
	sw_planner planner;
	sw_model model;
	sw_evaluation value;
	sw_rng rng = {seed, 0};
	check(sw_rewrite_canonical(s->program, &canonical, &err), &err);
	sw_plan *plan = sw_plan_new(canonical, "", cluster);
	sw_mesh mesh = free_axes(&cluster->atoms, first_inner);
	sw_planner_init(&planner, plan, &s->sidecar);
	sw_model_init(&model, &planner, &mesh, INT64_MAX);
	int32_t *choice = sw_alloc(sizeof(int32_t) * (model.problem.nodes.len + 1));
	choose_at_random(&model.problem, &rng, choice);
	sw_problem_evaluate(&model.problem, choice, &value);
	if (value.allowed)
		sw_model_apply(&model, choice, plan);
	free(choice);
	sw_model_clear(&model);
	sw_planner_clear(&planner);
	if (value.allowed)
		return plan;
	sw_plan_free(plan);
	return NULL;
}
