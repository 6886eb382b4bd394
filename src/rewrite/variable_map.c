/*
 * The variables of a program, and the ops that update each.
 *
 * From the result that replaces a parameter or a moment the walk goes back through ops of the same
 * shape, element by element, to the state that they read: all of that, and the ops on the way, is
 * of one variable. What several variables share (a gradient that two of them read) is of none. An
 * op of another kind ends the walk: what it gives is the variable's gradient, or a term of it.
 */
#include <string.h>

#include "base/sets.h"
#include "rewrite/rewrite.h"

#define OF_NONE (-1)
#define OF_SEVERAL (-2)

typedef struct variable_finder {
	const sw_state_view *state;
	uint32_t *variable; /* per input: inputs of one variable are one set (base/sets.h) */
	int32_t *of_op;     /* per op: input of the walk that came by; OF_NONE, OF_SEVERAL */
	int32_t *reads;     /* per op: likewise, of what ended the walk */
	int32_t *input_of;  /* per op: the input that a parameter is; OF_NONE */
	bool *changed;      /* per input: its walk met something else than state and constants */
	SW_VEC(sw_id) open;
} variable_finder;

/* The input that stands for the variable of another. */
static int32_t root_of(variable_finder *f, int32_t input)
{
	return (int32_t)sw_sets_root(f->variable, (uint32_t)input);
}

static void unite(variable_finder *f, int32_t a, int32_t b)
{
	sw_sets_join(f->variable, (uint32_t)a, (uint32_t)b);
}

/* Broadcasts and barriers keep elements, too: a walk goes on only where shapes are the same. */
static bool is_elementwise(const sw_op *op)
{
	return sw_opcode_is_elementwise((sw_opcode)op->opcode) || op->opcode == SW_OP_BROADCAST ||
	       op->opcode == SW_OP_OPT_BARRIER;
}

static bool is_state(const variable_finder *f, int32_t input)
{
	sw_role role = f->state->role[input];
	sw_shape shape = sw_value_shape(f->state->program, f->state->inputs[input]);
	const sw_op *op = sw_op_at(f->state->program,
	                           f->state->program->values.data[f->state->inputs[input]].op);
	return (role == SW_ROLE_PARAMETER || role == SW_ROLE_MOMENT ||
	        role == SW_ROLE_SUM_RESIDUAL) &&
	       shape.rank > 0 && op->n_results == 1;
}

/* Look at a value that the walk of `input` has reached. */
static void reach(variable_finder *f, int32_t input, sw_id value, sw_shape shape)
{
	sw_id id = f->state->program->values.data[value].op;
	const sw_op *op = sw_op_at(f->state->program, id);
	if (!sw_shape_same_dims(sw_value_shape(f->state->program, value), shape))
		return;
	if (f->input_of[id] >= 0) {
		if (is_state(f, f->input_of[id]))
			unite(f, input, f->input_of[id]);
		else
			f->changed[input] = true;
		return;
	}
	if (!is_elementwise(op) || op->n_results != 1) {
		f->reads[id] =
			f->reads[id] == OF_NONE || f->reads[id] == input ? input : OF_SEVERAL;
		f->changed[input] = f->changed[input] || op->n_operands > 0;
		return;
	}
	if (f->of_op[id] == input)
		return;
	f->of_op[id] = f->of_op[id] == OF_NONE ? input : OF_SEVERAL;
	sw_vec_push(&f->open, id);
}

static void walk(variable_finder *f, int32_t input, sw_id result)
{
	sw_shape shape = sw_value_shape(f->state->program, f->state->inputs[input]);
	reach(f, input, result, shape);
	while (f->open.len > 0) {
		const sw_op *op = sw_op_at(f->state->program, f->open.data[--f->open.len]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			reach(f, input, op->operands[k], shape);
	}
}

/* Walks of one variable may meet: what OF_SEVERAL of the same variable reached is its own. The
 * walks are repeated with what they stand for. */
static void walk_all(variable_finder *f)
{
	const sw_computation *entry = sw_entry(f->state->program);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < f->state->program->ops.len; i++)
			f->of_op[i] = f->reads[i] = OF_NONE;
		for (size_t o = 0; o < entry->results.len; o++) {
			int32_t input = f->state->input_of_output[o];
			if (input >= 0 && is_state(f, input))
				walk(f, pass ? root_of(f, input) : input, entry->results.data[o]);
		}
	}
}

/* Is the op made of constants and parameters alone? Canonical form makes equal ones one, so that the
 * zeros of an update may be those of an activation; exp(p) and the norm of p are read by what comes
 * after them and by their derivatives. */
static bool is_made_anywhere(const variable_finder *f, sw_id id, const bool *anywhere)
{
	const sw_program *program = f->state->program;
	const sw_op *op = sw_op_at(program, id);
	if (f->input_of[id] >= 0)
		return f->state->role[f->input_of[id]] == SW_ROLE_PARAMETER;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (!anywhere[program->values.data[op->operands[k]].op])
			return false;
	return true;
}

static bool is_read_elsewhere(variable_finder *f, const sw_users *users, sw_id op)
{
	sw_id value = sw_op_at(f->state->program, op)->first_result;
	for (uint32_t u = users->start[value]; u < users->start[value + 1]; u++) {
		int32_t of = f->of_op[users->ops[u]];
		if (of < 0 || root_of(f, of) != root_of(f, f->of_op[op]))
			return true;
	}
	return false;
}

/* What all can make that read it is of no variable: its owner would send it. */
static void drop_made_anywhere(variable_finder *f, sw_arena *scratch)
{
	const sw_program *program = f->state->program;
	const sw_computation *entry = sw_entry(program);
	sw_users users = sw_program_users(program, scratch);
	bool *anywhere = SW_NEW_N(scratch, bool, program->ops.len + 1);
	for (size_t i = 0; i < entry->ops.len; i++)
		anywhere[entry->ops.data[i]] = is_made_anywhere(f, entry->ops.data[i], anywhere);
	/* readers come after what they read */
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id op = entry->ops.data[i];
		if (anywhere[op] && f->of_op[op] >= 0 && is_read_elsewhere(f, &users, op))
			f->of_op[op] = OF_SEVERAL;
	}
}

/* Number the variables by their first inputs. */
static void number_variables(variable_finder *f, sw_arena *arena, sw_variable_map *map)
{
	const sw_state_view *state = f->state;
	int32_t *number = SW_NEW_N(arena, int32_t, state->n_inputs + 1);
	uint32_t *input = SW_NEW_N(arena, uint32_t, state->n_inputs + 1);
	int32_t *of_input = SW_NEW_N(arena, int32_t, state->n_inputs + 1);
	bool *trained = SW_NEW_N(arena, bool, state->n_inputs + 1);
	for (uint32_t i = 0; i < state->n_inputs; i++) {
		of_input[i] = -1;
		if (!is_state(f, (int32_t)i))
			continue;
		uint32_t root = (uint32_t)root_of(f, (int32_t)i);
		if (root == i) {
			number[i] = (int32_t)map->n;
			input[map->n++] = i;
		}
		of_input[i] = number[root];
		trained[number[root]] = trained[number[root]] || f->changed[i];
		uint32_t *shown = &input[number[root]];
		if (state->role[i] == SW_ROLE_PARAMETER && state->role[*shown] != SW_ROLE_PARAMETER)
			*shown = i;
	}
	size_t ops = state->program->ops.len;
	int32_t *of_op = SW_NEW_N(arena, int32_t, ops + 1),
		*of_end = SW_NEW_N(arena, int32_t, ops + 1);
	for (size_t i = 0; i < ops; i++) {
		of_op[i] = f->of_op[i] >= 0 ? number[root_of(f, f->of_op[i])] : -1;
		of_end[i] = f->reads[i] >= 0 ? number[root_of(f, f->reads[i])] : -1;
	}
	map->input = input;
	map->trained = trained;
	map->of_input = of_input;
	map->of_op = of_op;
	map->of_end = of_end;
}

/* ---- what goes with a parameter --------------------------------------------------------- */

/* What is read for two variables is read for both. */
static int32_t join(int32_t a, int32_t b)
{
	return a == OF_NONE || a == b ? b : b == OF_NONE ? a : OF_SEVERAL;
}

/* For whom is a result made: for the variable with a parameter whose state it is, or with which its
 * own variable goes; counters and losses are for all. */
static int32_t made_for(const variable_finder *f, const sw_variable_map *map, const int32_t *goes_with,
                        size_t output)
{
	int32_t input = f->state->input_of_output[output],
		variable = input < 0 ? -1 : map->of_input[input];
	if (variable < 0)
		return OF_SEVERAL;
	return f->state->role[map->input[variable]] == SW_ROLE_PARAMETER ? variable
	                                                                : goes_with[variable];
}

/* Write for which variable each value is read. */
static void find_readers(const variable_finder *f, const sw_variable_map *map,
                         const int32_t *goes_with, int32_t *read_for)
{
	const sw_program *program = f->state->program;
	const sw_computation *entry = sw_entry(program);
	for (size_t v = 0; v < program->values.len; v++)
		read_for[v] = OF_NONE;
	for (size_t o = 0; o < entry->results.len; o++) {
		int32_t *of = &read_for[entry->results.data[o]];
		*of = join(*of, made_for(f, map, goes_with, o));
	}
	for (size_t i = entry->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(program, entry->ops.data[i]);
		int32_t of = OF_NONE;
		for (uint32_t r = 0; r < op->n_results; r++)
			of = join(of, read_for[op->first_result + r]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			read_for[op->operands[k]] = join(read_for[op->operands[k]], of);
	}
}

/* Find with which parameters the variables without one go, until nothing changes: statistics may be
 * read by others that updates read. */
static const int32_t *find_company(const variable_finder *f, const sw_variable_map *map,
                                   sw_arena *arena, sw_arena *scratch)
{
	int32_t *goes_with = SW_NEW_N(arena, int32_t, map->n + 1),
		*found = SW_NEW_N(scratch, int32_t, map->n + 1),
		*read_for = SW_NEW_N(scratch, int32_t, f->state->program->values.len + 1);
	bool changed = false;
	for (uint32_t v = 0; v < map->n; v++) {
		goes_with[v] = OF_NONE;
		changed = changed || f->state->role[map->input[v]] != SW_ROLE_PARAMETER;
	}
	while (changed) {
		changed = false;
		find_readers(f, map, goes_with, read_for);
		for (uint32_t v = 0; v < map->n; v++)
			found[v] = OF_NONE;
		for (uint32_t i = 0; i < f->state->n_inputs; i++)
			if (map->of_input[i] >= 0)
				found[map->of_input[i]] = join(found[map->of_input[i]],
				                               read_for[f->state->inputs[i]]);
		for (uint32_t v = 0; v < map->n; v++) {
			if (f->state->role[map->input[v]] == SW_ROLE_PARAMETER)
				continue;
			changed = changed || found[v] != goes_with[v];
			goes_with[v] = found[v];
		}
	}
	for (uint32_t v = 0; v < map->n; v++)
		goes_with[v] = SW_MAX(goes_with[v], -1);
	return goes_with;
}

static const bool *list_shared(const variable_finder *f, sw_arena *arena)
{
	size_t ops = f->state->program->ops.len;
	bool *shared = SW_NEW_N(arena, bool, ops + 1);
	for (size_t i = 0; i < ops; i++)
		shared[i] = f->of_op[i] == OF_SEVERAL;
	return shared;
}

sw_variable_map sw_variables_map(const sw_state_view *state, sw_arena *arena)
{
	sw_variable_map map = {0};
	size_t ops = state->program->ops.len;
	sw_arena scratch;
	sw_arena_init(&scratch);
	variable_finder f = {.state = state,
	                     .variable = SW_NEW_N(&scratch, uint32_t, state->n_inputs + 1),
	                     .of_op = SW_NEW_N(&scratch, int32_t, ops + 1),
	                     .reads = SW_NEW_N(&scratch, int32_t, ops + 1),
	                     .input_of = SW_NEW_N(&scratch, int32_t, ops + 1),
	                     .changed = SW_NEW_N(&scratch, bool, state->n_inputs + 1)};
	for (size_t i = 0; i < ops; i++)
		f.input_of[i] = OF_NONE;
	sw_sets_init(f.variable, state->n_inputs);
	for (uint32_t i = 0; i < state->n_inputs; i++)
		f.input_of[state->program->values.data[state->inputs[i]].op] = (int32_t)i;
	walk_all(&f);
	map.shared = list_shared(&f, arena);
	drop_made_anywhere(&f, &scratch);
	number_variables(&f, arena, &map);
	map.goes_with = find_company(&f, &map, arena, &scratch);
	sw_vec_clear(&f.open);
	sw_arena_clear(&scratch);
	return map;
}

static const int32_t *renumber(const int32_t *of, size_t n, const int32_t *number, sw_arena *arena)
{
	int32_t *list = SW_NEW_N(arena, int32_t, n + 1);
	for (size_t i = 0; i < n; i++)
		list[i] = of[i] >= 0 ? number[of[i]] : of[i];
	return list;
}

/* Return the map of those of the variables that are kept. */
static sw_variable_map some_variables(const sw_state_view *state, sw_variable_map all,
                                      const bool *kept, sw_arena *arena)
{
	sw_variable_map map = {0};
	int32_t *number = SW_NEW_N(arena, int32_t, all.n + 1);
	uint32_t *input = SW_NEW_N(arena, uint32_t, all.n + 1);
	bool *trained = SW_NEW_N(arena, bool, all.n + 1);
	for (uint32_t i = 0; i < all.n; i++) {
		number[i] = kept[i] ? (int32_t)map.n : -1;
		trained[map.n] = all.trained[i];
		input[map.n] = all.input[i];
		map.n += kept[i];
	}
	size_t ops = state->program->ops.len;
	map.input = input;
	map.trained = trained;
	map.of_input = renumber(all.of_input, state->n_inputs, number, arena);
	map.of_op = renumber(all.of_op, ops, number, arena);
	map.of_end = renumber(all.of_end, ops, number, arena);
	map.shared = all.shared;
	return map;
}

sw_variable_map sw_trained_variables(const sw_state_view *state, sw_arena *arena)
{
	sw_variable_map all = sw_variables_map(state, arena);
	return some_variables(state, all, all.trained, arena);
}

const sw_variable_form *sw_form_of(const sw_variable_forms *forms, const sw_sidecar *sidecar,
                                   uint32_t input)
{
	const sw_fill_part *part = sidecar->inputs[input].init.part;
	for (size_t i = 0; i < forms->n; i++)
		if (forms->list[i].input == (part ? part->input : input))
			return &forms->list[i];
	return NULL;
}

sw_variable_map sw_served_variables(const sw_state_view *state, const sw_sidecar *sidecar,
                                    const sw_variable_forms *forms, sw_arena *arena)
{
	sw_variable_map all = sw_variables_map(state, arena);
	bool *kept = SW_NEW_N(arena, bool, all.n + 1);
	for (uint32_t i = 0; i < all.n; i++) {
		const sw_variable_form *form = sw_form_of(forms, sidecar, all.input[i]);
		kept[i] = all.trained[i] && state->role[all.input[i]] == SW_ROLE_PARAMETER && form &&
		          form->codec.kind == SW_CODEC_TERMS;
	}
	return some_variables(state, all, kept, arena);
}

sw_state_view sw_state_view_of(const sw_program *program, const sw_sidecar *sidecar,
                               sw_arena *arena)
{
	sw_state_view state = {.program = program};
	size_t n_outputs = sw_entry(program)->results.len;
	state.n_inputs = sw_program_inputs(program, program->entry, arena, &state.inputs);
	sw_role *role = SW_NEW_N(arena, sw_role, state.n_inputs + 1);
	int32_t *input_of_output = SW_NEW_N(arena, int32_t, n_outputs + 1);
	for (uint32_t i = 0; i < state.n_inputs; i++)
		role[i] = sidecar->inputs[i].role;
	for (size_t o = 0; o < n_outputs; o++)
		input_of_output[o] = -1;
	for (size_t a = 0; a < program->aliases.len; a++)
		input_of_output[program->aliases.data[a].output] =
			(int32_t)program->aliases.data[a].input;
	state.role = role;
	state.input_of_output = input_of_output;
	return state;
}
