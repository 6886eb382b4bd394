/*
 * The variables of a program, and the ops that update each.
 *
 * From the result that replaces a parameter or a moment the walk goes back through ops of the same
 * shape, element by element, to the state that they read: all of that, and the ops on the way, is
 * of one variable. What several variables share (a gradient that two of them read) is of none. An
 * op of another kind ends the walk; where that is a scatter, the gradient is sparse.
 */
#include "model/ways.h"

#include <string.h>

#include "rewrite/rewrite.h"

#define OF_NONE (-1)
#define OF_SEVERAL (-2)

typedef struct variable_finder {
	const sw_analysis *a;
	sw_variables *v;
	int32_t *of_input; /* the input that stands for the variable of each, by union-find */
	int32_t *of_op;    /* per op: input of the walk that came by; OF_NONE, OF_SEVERAL */
	int32_t *reads;    /* per op: likewise, of what ended the walk */
	int32_t *input_of; /* per op: the input that a parameter is; OF_NONE */
	SW_VEC(sw_id) open;
} variable_finder;

static int32_t root_of(variable_finder *f, int32_t input)
{
	while (f->of_input[input] != input)
		input = f->of_input[input] = f->of_input[f->of_input[input]];
	return input;
}

static void unite(variable_finder *f, int32_t a, int32_t b)
{
	int32_t x = root_of(f, a), y = root_of(f, b);
	f->of_input[SW_MAX(x, y)] = SW_MIN(x, y);
}

static bool same_dims(sw_shape a, sw_shape b)
{
	return a.rank == b.rank &&
	       (a.rank == 0 || !memcmp(a.dims, b.dims, sizeof(*a.dims) * (size_t)a.rank));
}

/* Broadcasts keep elements, too: a walk goes on only where shapes are the same. */
static bool is_elementwise(const sw_op *op)
{
	return sw_opcode_is_elementwise((sw_opcode)op->opcode) || op->opcode == SW_OP_BROADCAST;
}

static bool is_state(const variable_finder *f, int32_t input)
{
	sw_role role = f->a->roles.input_role[input];
	sw_shape shape = sw_value_shape(f->a->program, f->a->roles.inputs[input]);
	const sw_op *op =
		sw_op_at(f->a->program, f->a->program->values.data[f->a->roles.inputs[input]].op);
	return (role == SW_ROLE_PARAMETER || role == SW_ROLE_MOMENT) && shape.rank > 0 &&
	       op->n_results == 1;
}

/* Look at a value that the walk of `input` has reached. */
static void reach(variable_finder *f, int32_t input, sw_id value, sw_shape shape)
{
	sw_id id = f->a->program->values.data[value].op;
	const sw_op *op = sw_op_at(f->a->program, id);
	if (!same_dims(sw_value_shape(f->a->program, value), shape))
		return;
	if (f->input_of[id] >= 0) {
		if (is_state(f, f->input_of[id]))
			unite(f, input, f->input_of[id]);
		return;
	}
	if (!is_elementwise(op) || op->n_results != 1) {
		f->reads[id] =
			f->reads[id] == OF_NONE || f->reads[id] == input ? input : OF_SEVERAL;
		return;
	}
	if (f->of_op[id] == input)
		return;
	f->of_op[id] = f->of_op[id] == OF_NONE ? input : OF_SEVERAL;
	sw_vec_push(&f->open, id);
}

static void walk(variable_finder *f, int32_t input, sw_id result)
{
	sw_shape shape = sw_value_shape(f->a->program, f->a->roles.inputs[input]);
	reach(f, input, result, shape);
	while (f->open.len > 0) {
		const sw_op *op = sw_op_at(f->a->program, f->open.data[--f->open.len]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			reach(f, input, op->operands[k], shape);
	}
}

/* Walks of one variable may meet: what OF_SEVERAL of the same variable reached is its own. The
 * walks are repeated with what they stand for. */
static void walk_all(variable_finder *f)
{
	const sw_roles *roles = &f->a->roles;
	const sw_computation *entry = sw_entry(f->a->program);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < f->a->program->ops.len; i++)
			f->of_op[i] = f->reads[i] = OF_NONE;
		for (size_t o = 0; o < entry->results.len; o++) {
			int32_t input = roles->output_input[o];
			if (input >= 0 && is_state(f, input))
				walk(f, pass ? root_of(f, input) : input, entry->results.data[o]);
		}
	}
}

static void list_variables(variable_finder *f)
{
	const sw_roles *roles = &f->a->roles;
	sw_variables *v = f->v;
	int32_t *number = SW_NEW_N(f->v->arena, int32_t, roles->n_inputs + 1);
	v->list = SW_NEW_N(v->arena, sw_variable, roles->n_inputs + 1);
	v->of_input = SW_NEW_N(v->arena, int32_t, roles->n_inputs + 1);
	for (uint32_t i = 0; i < roles->n_inputs; i++) {
		v->of_input[i] = -1;
		if (!is_state(f, (int32_t)i))
			continue;
		uint32_t root = (uint32_t)root_of(f, (int32_t)i);
		if (root == i) {
			number[i] = (int32_t)v->n;
			v->list[v->n++] = (sw_variable){.input = i};
		}
		sw_variable *variable = &v->list[number[root]];
		v->of_input[i] = number[root];
		variable->bytes += sw_shape_bytes(sw_value_shape(roles->program, roles->inputs[i]));
		if (roles->input_role[i] == SW_ROLE_PARAMETER &&
		    roles->input_role[variable->input] != SW_ROLE_PARAMETER)
			variable->input = i;
	}
	v->of_op = SW_NEW_N(v->arena, int32_t, roles->program->ops.len + 1);
	v->of_scatter = SW_NEW_N(v->arena, int32_t, roles->program->ops.len + 1);
	for (size_t i = 0; i < roles->program->ops.len; i++) {
		v->of_op[i] = f->of_op[i] >= 0 ? number[root_of(f, f->of_op[i])] : -1;
		v->of_scatter[i] = -1;
		if (f->reads[i] < 0 || sw_op_at(roles->program, (sw_id)i)->opcode != SW_OP_SCATTER)
			continue;
		v->of_scatter[i] = number[root_of(f, f->reads[i])];
		v->list[v->of_scatter[i]].sparse = true;
	}
}

/* Does some dimension divide by the devices? */
static bool divides(sw_shape shape, int64_t devices)
{
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] % devices == 0)
			return true;
	return false;
}

static sw_ways_builder *builder_of(const sw_plan_strategy *strategy)
{
	static sw_ways_builder *const builders[SW_OWNERS_COUNT] = {
		[SW_OWNERS_FILE] = sw_ways_all_reduce,
		[SW_OWNERS_ANY] = sw_ways_any,
		[SW_OWNERS_ONE] = sw_ways_one,
		[SW_OWNERS_BALANCED] = sw_ways_balanced,
		[SW_OWNERS_PARTITIONED] = sw_ways_partitioned,
		[SW_OWNERS_PARALLAX] = sw_ways_parallax,
		[SW_OWNERS_RANDOM] = sw_ways_random,
	};
	return builders[strategy->owners];
}

void sw_variables_find(sw_analysis *a, const sw_plan_strategy *strategy)
{
	const sw_program *program = a->program;
	a->variables = (sw_variables){.arena = &a->arena};
	if (strategy->owners == SW_OWNERS_NONE)
		return;
	sw_arena scratch;
	sw_arena_init(&scratch);
	variable_finder f = {.a = a,
	                     .v = &a->variables,
	                     .of_input = SW_NEW_N(&scratch, int32_t, a->roles.n_inputs + 1),
	                     .of_op = SW_NEW_N(&scratch, int32_t, program->ops.len + 1),
	                     .reads = SW_NEW_N(&scratch, int32_t, program->ops.len + 1),
	                     .input_of = SW_NEW_N(&scratch, int32_t, program->ops.len + 1)};
	for (size_t i = 0; i < program->ops.len; i++)
		f.input_of[i] = OF_NONE;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		f.of_input[i] = (int32_t)i;
		f.input_of[program->values.data[a->roles.inputs[i]].op] = (int32_t)i;
	}
	walk_all(&f);
	list_variables(&f);
	for (uint32_t i = 0; i < a->variables.n; i++)
		a->variables.list[i].divides = divides(
			sw_value_shape(program, a->roles.inputs[a->variables.list[i].input]),
			a->cluster->n_devices);
	builder_of(strategy)(a->variables.list, a->variables.n, a->cluster->n_devices);
	for (uint32_t i = 0; i < a->variables.n; i++)
		a->variables.list[i].way.proxy = strategy->proxy;
	sw_vec_clear(&f.open);
	sw_arena_clear(&scratch);
}
