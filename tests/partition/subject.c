#include "partition/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ----------------------------------------------------------------------------- */

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
	case SW_FILL_VALUES:
		return fill->values[element];
	}
	return 0;
}

static sw_tensor filled(sw_shape shape, const sw_fill *fill, uint64_t input)
{
	sw_tensor tensor;
	sw_error err = {0};
	check(sw_tensor_new(shape, false, &tensor, &err), &err);
	for (int64_t e = 0; e < sw_shape_elements(shape); e++)
		sw_element_set(shape.type, sw_tensor_data(tensor), e,
		               draw(fill, input, (uint64_t)e));
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
		s->inputs[i] = filled(sw_value_shape(s->program, s->values[i]),
		                      &s->sidecar.inputs[i].random, i);
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
			*fill = (sw_fill){.kind = SW_FILL_NORMAL, .a = 0, .b = 0.5};
		else if (fill->kind == SW_FILL_INTEGERS)
			*fill = (sw_fill){.kind = SW_FILL_INTEGERS, .a = -1, .b = 8};
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

/* ---- comparing -------------------------------------------------------------------------- */

/* Return a device's part of a tensor, with zeros where the plan pads it. */
static sw_tensor cut(const sw_plan *plan, sw_tensor small, sw_id value, sw_shape local,
                     const sw_layout *layout, int64_t device)
{
	sw_tensor part, whole;
	sw_shape shape = sw_value_shape(plan->program, value);
	sw_error err = {0};
	check(sw_tensor_new(local, false, &part, &err), &err);
	check(sw_tensor_new(shape, true, &whole, &err), &err);
	sw_shape_embed(small.shape, sw_tensor_data(small), shape, sw_tensor_data(whole));
	sw_layout_cut(&plan->cluster->atoms, shape, layout, device, sw_type_bytes(shape.type),
	              sw_tensor_data(whole), sw_tensor_data(part));
	sw_tensor_drop(&whole);
	return part;
}

/* Write zeros to the padding of a device's part of an output. */
static void clear_padding(const sw_plan *plan, sw_tensor small, sw_id value,
                          const sw_layout *layout, int64_t device, sw_tensor part)
{
	sw_tensor ones;
	sw_error err = {0};
	check(sw_tensor_new(small.shape, false, &ones, &err), &err);
	memset(sw_tensor_data(ones), 1, ones.buffer->bytes);
	sw_tensor marks = cut(plan, ones, value, part.shape, layout, device);
	for (size_t i = 0; i < (size_t)sw_shape_bytes(part.shape); i++)
		((char *)sw_tensor_data(part))[i] *= ((char *)sw_tensor_data(marks))[i];
	sw_tensor_drop(&ones);
	sw_tensor_drop(&marks);
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
				cut(plan, s->inputs[i], whole[i], sw_value_shape(local, parts[i]),
			            sw_plan_layout(plan, plan->produced[whole[i]]), d);
	sw_arena_clear(&arena);
	return inputs;
}

static void compare_output(const subject *s, const sw_plan *plan, const execution *e, uint32_t i,
                           double tolerance, const char *what)
{
	sw_id value = sw_entry(plan->program)->results.data[i];
	const sw_layout *layout = sw_plan_layout(plan, plan->outputs[i]);
	assert_int_equal(sw_layout_partial_atoms(layout), 0);
	for (int64_t d = 0; d < e->n_devices; d++) {
		sw_tensor got = e->outputs[d * e->n_outputs + i],
			  wanted = cut(plan, s->outputs[i], value, got.shape, layout, d);
		clear_padding(plan, s->outputs[i], value, layout, d, got);
		sw_difference difference = sw_tensor_compare(got, wanted);
		sw_tensor_drop(&wanted);
		if (!(difference.relative <= tolerance))
			fail_msg("%s, %s on %lld devices: output %u on device %lld is off by %g",
			         s->name, what, (long long)e->n_devices, i, (long long)d,
			         difference.relative);
	}
}

/* Does the program have a conditional? Then the cost is that of the most expensive branch, and
 * another may run. */
static bool branches(const sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++)
		if (program->ops.data[i].opcode == SW_OP_CONDITIONAL)
			return true;
	return false;
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
	assert_true(e.payload_bytes <= cost.payload_bytes);
	if (!branches(local))
		assert_int_equal(e.payload_bytes, cost.payload_bytes);
	assert_true(sw_least_share_bytes(plan->program, plan->cluster->n_devices) <=
	            sw_placement_bytes(local));
	execution_clear(&e);
	free(inputs);
	sw_program_free(local);
}
