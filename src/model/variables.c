/*
 * The variables of a program (rewrite/variable_map.c), what each is like, and the way in which it
 * is synchronised.
 */
#include "model/ways.h"

#include <stdlib.h>

#include "model/internal.h"
#include "rewrite/rewrite.h"

static bool cuts(const sw_variables *v, const sw_variable_map *map, const sw_program *program,
                 sw_id op)
{
	return map->of_end[op] >= 0 && v->list[map->of_end[op]].part &&
	       sw_op_at(program, op)->opcode == SW_OP_SLICE;
}

static void find_cuts(const sw_roles *roles, sw_variables *v, const sw_variable_map *map)
{
	const sw_program *program = roles->program;
	bool any = false, *cuts_part = SW_NEW_N(v->arena, bool, program->ops.len + 1);
	for (uint32_t i = 0; i < v->n; i++)
		any = any || v->list[i].part;
	if (!any)
		return;
	sw_arena scratch;
	sw_arena_init(&scratch);
	sw_users users = sw_program_users(program, &scratch);
	for (size_t i = 0; i < program->ops.len; i++) {
		if (!cuts(v, map, program, (sw_id)i))
			continue;
		sw_id value = sw_op_at(program, (sw_id)i)->operands[0];
		cuts_part[i] = true;
		for (uint32_t u = users.start[value]; u < users.start[value + 1]; u++)
			cuts_part[i] = cuts_part[i] && cuts(v, map, program, users.ops[u]);
	}
	v->cuts_part = cuts_part;
	sw_arena_clear(&scratch);
}

/* ---- codes ------------------------------------------------------------------------------ */

/* What is known of a value: it is made of the sum of rounded gradients, on the way to its own code;
 * of the terms of a gradient; or of codes of them behind their barrier. */
typedef enum code_state { NO_CODE, OF_SUM, OF_TERMS, OF_CODES } code_state;

static code_state made_of(const sw_op *op, const uint8_t *of)
{
	code_state state = op->opcode == SW_OP_TERMS ? OF_TERMS : NO_CODE;
	for (uint32_t k = 0; k < op->n_operands; k++)
		state = SW_MAX(state, (code_state)of[op->operands[k]]);
	return state;
}

/* Codes are decoded where they are read, up to the op that adds them up: else what is sent would be
 * no codes. A sum that
 * is rounded once more may be so in parts. */
static void find_decoding(const sw_program *program, sw_variables *v)
{
	const sw_computation *entry = sw_entry(program);
	bool *decodes = SW_NEW_N(v->arena, bool, program->ops.len + 1);
	bool *after_sum = SW_NEW_N(v->arena, bool, program->ops.len + 1);
	uint8_t *of = sw_alloc(program->values.len + 1);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		code_state state = made_of(op, of);
		decodes[id] = state == OF_CODES;
		after_sum[id] = state == OF_SUM;
		if (op->opcode == SW_OP_OPT_BARRIER)
			state = state == OF_TERMS ? OF_CODES : NO_CODE;
		else if (state == OF_CODES && op->opcode == SW_OP_REDUCE)
			state = OF_SUM;
		else if (state == OF_CODES && op->opcode == SW_OP_SCATTER)
			state = NO_CODE;
		for (uint32_t r = 0; r < op->n_results; r++)
			of[op->first_result + r] = (uint8_t)state;
	}
	free(of);
	v->decodes = decodes;
	v->after_sum = after_sum;
}

static void list_variables(const sw_roles *roles, const sw_sidecar *sidecar,
                           const sw_variable_forms *forms, sw_variables *v)
{
	const sw_program *program = roles->program;
	sw_state_view state = {.program = program,
	                       .n_inputs = roles->n_inputs,
	                       .inputs = roles->inputs,
	                       .role = roles->input_role,
	                       .input_of_output = roles->output_input};
	sw_variable_map map = sw_variables_map(&state, v->arena);
	v->n = map.n;
	v->of_input = map.of_input;
	v->of_op = map.of_op;
	v->list = SW_NEW_N(v->arena, sw_variable, map.n + 1);
	for (uint32_t i = 0; i < map.n; i++) {
		const sw_fill_part *part = sidecar->inputs[map.input[i]].init.part;
		v->list[i].input = map.input[i];
		v->list[i].trained = map.trained[i];
		v->list[i].part = part && part->axis >= 0;
		v->list[i].parameter = roles->input_role[map.input[i]] == SW_ROLE_PARAMETER;
		const sw_variable_form *form = sw_form_of(forms, sidecar, map.input[i]);
		v->list[i].goes_with = map.goes_with[i];
		v->list[i].served = v->list[i].trained && v->list[i].parameter && form &&
		                    form->codec.kind == SW_CODEC_TERMS;
	}
	for (uint32_t i = 0; i < roles->n_inputs; i++) {
		if (map.of_input[i] < 0)
			continue;
		sw_variable *variable = &v->list[map.of_input[i]];
		if (variable->trained)
			variable->bytes +=
				sw_shape_bytes(sw_value_shape(program, roles->inputs[i]));
	}
	int32_t *of_scatter = SW_NEW_N(v->arena, int32_t, program->ops.len + 1);
	for (size_t i = 0; i < program->ops.len; i++) {
		bool scatters = sw_op_at(program, (sw_id)i)->opcode == SW_OP_SCATTER;
		of_scatter[i] = scatters ? map.of_end[i] : -1;
		if (of_scatter[i] >= 0)
			v->list[of_scatter[i]].sparse = true;
	}
	v->of_scatter = of_scatter;
	v->of_end = map.of_end;
	find_cuts(roles, v, &map);
}

/* Does some dimension divide by the devices? */
static bool divides(sw_shape shape, int64_t devices)
{
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] % devices == 0)
			return true;
	return false;
}

void sw_ways_build(const sw_plan_strategy *strategy, sw_variable *variables, uint32_t n,
                   int64_t devices)
{
	static sw_ways_builder *const builders[SW_OWNERS_COUNT] = {
		[SW_OWNERS_NONE] = sw_ways_all_reduce,
		[SW_OWNERS_FILE] = sw_ways_all_reduce,
		[SW_OWNERS_ANY] = sw_ways_any,
		[SW_OWNERS_ONE] = sw_ways_one,
		[SW_OWNERS_BALANCED] = sw_ways_balanced,
		[SW_OWNERS_PARTITIONED] = sw_ways_partitioned,
		[SW_OWNERS_PARALLAX] = sw_ways_parallax,
		[SW_OWNERS_RANDOM] = sw_ways_random,
	};
	builders[strategy->owners](variables, n, devices);
	for (uint32_t i = 0; i < n; i++)
		variables[i].way.proxy = strategy->proxy;
	sw_ways_disown(variables, n);
}

void sw_ways_disown(sw_variable *variables, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (variables[i].way.kind == SW_WAY_OWNED && !variables[i].trained)
			variables[i].way = (sw_way){.kind = SW_WAY_ALL_REDUCE};
}

void sw_ways_serve(sw_variable *variables, uint32_t n)
{
	bool any = false;
	for (uint32_t i = 0; i < n; i++)
		any = any || variables[i].served;
	for (uint32_t i = 0; any && i < n; i++) {
		sw_variable *with =
			variables[i].goes_with >= 0 ? &variables[variables[i].goes_with] : NULL;
		if (with && with->served) {
			with->way.open = false;
			variables[i].way = (sw_way){.kind = SW_WAY_OWNED, .owner = with->way.owner};
		} else if (variables[i].way.kind == SW_WAY_OWNED && !variables[i].parameter)
			variables[i].way = (sw_way){.kind = SW_WAY_ALL_REDUCE};
	}
}

void sw_variables_find(sw_analysis *a, const sw_plan *plan, const sw_sidecar *sidecar)
{
	const sw_plan_strategy *strategy = &plan->strategy;
	a->variables = (sw_variables){.arena = &a->arena};
	bool coded = false;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		coded = coded || a->roles.input_role[i] == SW_ROLE_RESIDUAL;
	if (strategy->owners == SW_OWNERS_NONE && strategy->parts == SW_PARTS_NONE && !coded)
		return;
	list_variables(&a->roles, sidecar, &plan->forms, &a->variables);
	if (coded)
		find_decoding(a->program, &a->variables);
	sw_find_whole_batch(a, &a->variables);
	for (uint32_t i = 0; i < a->variables.n; i++)
		a->variables.list[i].divides = divides(
			sw_value_shape(a->program, a->roles.inputs[a->variables.list[i].input]),
			a->cluster->n_devices);
	sw_ways_build(strategy, a->variables.list, a->variables.n, a->cluster->n_devices);
	sw_ways_serve(a->variables.list, a->variables.n);
}
