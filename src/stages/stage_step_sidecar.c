/* What is known of the inputs and results of a stage's step. */
#include "stages/stage_step.h"

static const char *crossing_name(const sw_program *program, sw_id value, const char *how,
                                 sw_arena *arena)
{
	return sw_arena_printf(arena, "%s.%s", how,
	                       sw_op_at(program, program->values.data[value].op)->name);
}

/* Has the value the shape of a parameter? Then it is a term of its gradient. inputs [n]: those of
 * the whole step, as its sidecar has them. */
static bool is_like_parameter(const sw_program *program, sw_id value, const sw_sidecar *whole,
                              const sw_id *inputs, uint32_t n)
{
	sw_shape shape = sw_value_shape(program, value);
	for (uint32_t i = 0; i < n && i < whole->n_inputs; i++) {
		sw_shape parameter = sw_value_shape(program, inputs[i]);
		parameter.type = shape.type;
		if (whole->inputs[i].role == SW_ROLE_PARAMETER && sw_shape_equal(parameter, shape))
			return true;
	}
	return false;
}

/* What comes in is small enough, in a random test, that nothing overflows. What comes once a step has
 * no batch, nor has a term of a gradient: it is like a parameter that is frozen. */
static sw_input_info crossing_input(const sw_program *program, const sw_stage_port *port,
                                    const sw_sidecar *whole, const sw_id *inputs,
                                    uint32_t n, sw_arena *arena)
{
	sw_type type = sw_value_shape(program, port->value).type;
	bool has_batch = port->kind == SW_PORT_MICROBATCHES &&
	                 !is_like_parameter(program, port->value, whole, inputs, n);
	sw_role role = has_batch ? SW_ROLE_DATA : SW_ROLE_PARAMETER;
	sw_fill fill = sw_type_kind_of(type) == SW_KIND_FLOAT
	                       ? (sw_fill){.kind = SW_FILL_NORMAL, .a = 0, .b = 0.02}
	                       : (sw_fill){.kind = SW_FILL_INTEGERS, .a = 0, .b = 2};
	return (sw_input_info){.name = crossing_name(program, port->value, "received", arena),
	                       .role = role,
	                       .init = fill,
	                       .random = fill,
	                       .arrives = true};
}

void sw_stage_step_sidecar(const sw_stage_step *step, const sw_stages *stages,
                           const sw_sidecar *whole, sw_sidecar *sidecar)
{
	const sw_program *program = stages->program;
	*sidecar = (sw_sidecar){.learning_rate = whole->learning_rate,
	                        .n_inputs = step->n_inputs,
	                        .n_outputs = step->n_results,
	                        .tokens_input = -1};
	sw_arena *arena = &sidecar->arena;
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, arena, &inputs);
	sidecar->inputs = SW_NEW_N(arena, sw_input_info, step->n_inputs + 1);
	sidecar->outputs = SW_NEW_N(arena, sw_output_info, step->n_results + 1);
	for (uint32_t i = 0; i < step->n_inputs; i++) {
		const sw_stage_port *port = &step->inputs[i];
		sw_input_info *info = &sidecar->inputs[i];
		if (port->kind == SW_PORT_WHOLE) {
			*info = whole->inputs[port->leaf];
			info->name = sw_arena_text(arena, info->name);
		} else
			*info = crossing_input(program, port, whole, inputs, n, arena);
	}
	for (uint32_t i = 0; i < step->n_results; i++) {
		const sw_stage_port *port = &step->results[i];
		sw_output_info *info = &sidecar->outputs[i];
		*info = (sw_output_info){NULL, SW_ROLE_OTHER, -1};
		if (port->kind == SW_PORT_WHOLE)
			*info = whole->outputs[port->leaf];
		info->name = port->kind == SW_PORT_WHOLE
		                     ? sw_arena_text(arena, info->name)
		                     : crossing_name(program, port->value, "sent", arena);
		info->input = (int32_t)sw_input_of_output(step->program, i);
	}
}
