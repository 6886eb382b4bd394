/*
 * States that are stacks of layers, each layer a state of its own: pipeline stages have the layers
 * that they read, and no others.
 */
#include "rewrite/internal.h"

typedef struct stack_search {
	const sw_program *program;
	sw_users users;
	sw_variable_map map;
	int32_t axis; /* along which layers are read; SW_NO_AXIS: not known yet */
} stack_search;

int32_t sw_layer_axis(sw_shape part, sw_shape whole)
{
	int32_t axis = SW_NO_AXIS;
	for (int32_t d = 0; d < whole.rank; d++) {
		if (part.dims[d] == whole.dims[d])
			continue;
		if (axis != SW_NO_AXIS || part.dims[d] != 1)
			return SW_NO_AXIS;
		axis = d;
	}
	return axis;
}

/* Is each reader of a value, but for the update of its variable, one layer? */
static bool is_read_in_layers(stack_search *s, int32_t variable, sw_id value)
{
	sw_shape shape = sw_value_shape(s->program, value);
	for (uint32_t u = s->users.start[value]; u < s->users.start[value + 1]; u++) {
		sw_id id = s->users.ops[u];
		const sw_op *op = sw_op_at(s->program, id);
		if (s->map.of_op[id] == variable)
			continue;
		if (op->opcode == SW_OP_CONVERT) {
			if (!is_read_in_layers(s, variable, op->first_result))
				return false;
			continue;
		}
		if (op->opcode != SW_OP_SLICE)
			return false;
		int32_t axis = sw_layer_axis(sw_value_shape(s->program, op->first_result), shape);
		if (axis == SW_NO_AXIS || (s->axis != SW_NO_AXIS && s->axis != axis))
			return false;
		s->axis = axis;
	}
	return true;
}

static sw_status take_apart(const sw_program *in, const sw_sidecar *sidecar,
                            const sw_variable_forms *forms, sw_program **out,
                            sw_sidecar *out_sidecar, sw_error *err)
{
	sw_program *apart, *split;
	SW_TRY(sw_rewrite_variables(in, sidecar, forms, &apart, out_sidecar, err));
	sw_status status = sw_split_reductions(apart, &split, err);
	if (split || status != SW_OK)
		sw_program_free(apart);
	*out = split ? split : status == SW_OK ? apart : NULL;
	return status;
}

sw_status sw_rewrite_layers_apart(const sw_program *in, const sw_sidecar *sidecar, sw_program **out,
                                  sw_sidecar *out_sidecar, sw_error *err)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_state_view state = sw_state_view_of(in, sidecar, &arena);
	stack_search s = {.program = in,
	                  .users = sw_program_users(in, &arena),
	                  .map = sw_variables_map(&state, &arena)};
	sw_variable_form *list = SW_NEW_N(&arena, sw_variable_form, s.map.n + 1);
	sw_variable_forms forms = {.list = list};
	*out = NULL;
	for (uint32_t v = 0; v < s.map.n; v++) {
		sw_id input = state.inputs[s.map.input[v]];
		sw_shape shape = sw_value_shape(in, input);
		s.axis = SW_NO_AXIS;
		if (!is_read_in_layers(&s, (int32_t)v, input) || s.axis == SW_NO_AXIS ||
		    shape.dims[s.axis] > SW_MAX_VARIABLE_PARTS)
			continue;
		int64_t layers = shape.dims[s.axis];
		list[forms.n++] = (sw_variable_form){
			.input = s.map.input[v],
			.axis = s.axis,
			.sizes = sw_about_equal_parts(&arena, layers, layers)};
	}
	sw_forms_sort(list, forms.n);
	sw_status status = SW_OK;
	if (forms.n > 0)
		status = take_apart(in, sidecar, &forms, out, out_sidecar, err);
	sw_arena_clear(&arena);
	return status;
}
