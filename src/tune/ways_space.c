/* The variables of a program, and what is known of each before any ways are. */
#include <ctype.h>
#include <string.h>

#include "tune/internal.h"

/* ---- kinds ------------------------------------------------------------------------------ */

/* The name as a glob: numbers may be any, and the rest stands for itself. */
static char *glob_of(const char *name, sw_arena *arena)
{
	sw_text text = {0};
	for (const char *c = name; *c; c++) {
		if (strchr("*?[\\", *c))
			sw_text_addf(&text, "\\%c", *c);
		else if (!isdigit((unsigned char)*c))
			sw_text_add_n(&text, c, 1);
		else if (c == name || !isdigit((unsigned char)c[-1]))
			sw_text_add(&text, "*");
	}
	char *glob = sw_arena_text(arena, text.data ? text.data : "");
	sw_text_clear(&text);
	return glob;
}

static void find_kinds(sw_ways_space *space, sw_tuned_variable *variables)
{
	sw_map index = {0};
	space->kinds = SW_NEW_N(&space->arena, const char *, space->n + 1);
	for (uint32_t i = 0; i < space->n; i++) {
		char *glob = glob_of(variables[i].name, &space->arena);
		uint32_t kind = sw_map_intern(&index, glob, strlen(glob), space->n_kinds);
		if (kind == space->n_kinds)
			space->kinds[space->n_kinds++] = glob;
		variables[i].kind = kind;
	}
	sw_map_clear(&index);
}

/* ---- when each is read, and its gradient is there ---------------------------------------- */

typedef struct step_clock {
	const sw_program *program;
	sw_users users;
	const double *seconds;     /* per op of the entry, with what it calls */
	const double *from, *till; /* per op of the entry: shares of the step */
} step_clock;

static double start_clock(sw_ways_space *space, step_clock *clock, sw_arena *arena)
{
	const sw_program *program = space->program;
	const sw_computation *entry = sw_entry(program);
	size_t n = program->ops.len + 1;
	double *seconds = SW_NEW_N(arena, double, n), *from = SW_NEW_N(arena, double, n),
	       *till = SW_NEW_N(arena, double, n), sum = 0;
	sw_fused_seconds(space->cluster, program, space->cluster->n_devices, seconds);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id op = entry->ops.data[i];
		from[op] = sum;
		till[op] = sum += seconds[op];
	}
	for (size_t i = 0; i < entry->ops.len && sum > 0; i++) {
		from[entry->ops.data[i]] /= sum;
		till[entry->ops.data[i]] /= sum;
	}
	*clock = (step_clock){program, sw_program_users(program, arena), seconds, from, till};
	return sum;
}

/* Follow the parameter to its first readers, except for those that update it. */
static void time_reads(const step_clock *clock, const sw_variable_map *map, sw_id input,
                       sw_tuned_variable *variable)
{
	double first = 1, work = 0;
	for (uint32_t u = clock->users.start[input]; u < clock->users.start[input + 1]; u++) {
		sw_id op = clock->users.ops[u];
		if (map->of_op[op] >= 0)
			continue;
		first = SW_MIN(first, clock->from[op]);
		work += clock->till[op] - clock->from[op];
	}
	variable->read_at = first;
	variable->work = work;
}

/* Rows of gradients are the last operand of a scatter. */
static int64_t scattered_bytes(const sw_program *program, const sw_op *op, int64_t devices)
{
	return sw_shape_bytes(sw_value_shape(program, op->operands[op->n_operands - 1])) / devices;
}

/* Return the bytes of a device's part of what makes a gradient: of a scatter's indices and rows, or of a
 * product's operands. */
static int64_t made_of_bytes(const sw_program *program, const sw_op *maker, int64_t devices)
{
	int64_t bytes = 0;
	for (uint32_t k = maker->opcode == SW_OP_SCATTER; k < maker->n_operands; k++)
		bytes += sw_shape_bytes(sw_value_shape(program, maker->operands[k]));
	return SW_MAX(bytes / devices, 1);
}

static void time_gradients(sw_ways_space *space, const step_clock *clock,
                           const sw_variable_map *map, sw_tuned_variable *variables)
{
	for (sw_id id = 0; id < clock->program->ops.len; id++) {
		int32_t of = map->of_end[id];
		if (of < 0)
			continue;
		const sw_op *op = sw_op_at(clock->program, id);
		sw_tuned_variable *v = &variables[of];
		v->ready_at = SW_MAX(v->ready_at, clock->till[id]);
		sw_id maker = sw_gradient_maker(clock->program, id);
		if (maker != SW_NO_ID)
			v->made_of_bytes += made_of_bytes(clock->program, sw_op_at(clock->program, maker),
			                                  space->cluster->n_devices);
		if (op->opcode != SW_OP_SCATTER)
			continue;
		v->sparse = true;
		v->row_bytes += scattered_bytes(clock->program, op, space->cluster->n_devices);
	}
}

/* ---- orders ----------------------------------------------------------------------------- */

static const uint32_t *order(sw_ways_space *space, sw_keyed *list)
{
	uint32_t *order = SW_NEW_N(&space->arena, uint32_t, space->n + 1);
	qsort(list, space->n, sizeof(*list), sw_compare_keyed);
	for (uint32_t i = 0; i < space->n; i++)
		order[i] = list[i].number;
	return order;
}

static void find_orders(sw_ways_space *space, sw_arena *scratch)
{
	sw_keyed *list = SW_NEW_N(scratch, sw_keyed, space->n + 1);
	for (uint32_t i = 0; i < space->n; i++)
		list[i] = (sw_keyed){space->variables[i].read_at, i};
	space->by_read = order(space, list);
	for (uint32_t i = 0; i < space->n; i++)
		list[i] = (sw_keyed){space->variables[i].ready_at, i};
	space->by_ready = order(space, list);
}

/* ---- the space -------------------------------------------------------------------------- */

static void list_variables(sw_ways_space *space)
{
	const sw_program *program = space->program;
	sw_arena scratch;
	step_clock clock;
	sw_arena_init(&scratch);
	sw_state_view state = sw_state_view_of(program, space->sidecar, &scratch);
	sw_variable_map map = sw_trained_variables(&state, &scratch);
	space->kernels_s = start_clock(space, &clock, &scratch);
	space->n = map.n;
	sw_tuned_variable *list = SW_NEW_N(&space->arena, sw_tuned_variable, map.n + 1);
	for (uint32_t i = 0; i < map.n; i++) {
		sw_id value = state.inputs[map.input[i]];
		const char *name = space->sidecar->inputs[map.input[i]].name,
			   *own = sw_op_at(program, program->values.data[value].op)->name;
		list[i].input = map.input[i];
		list[i].named = name != NULL;
		list[i].name = sw_arena_text(&space->arena, name ? name : own);
		list[i].shape = sw_value_shape(program, value);
		list[i].gradient_bytes = sw_shape_bytes(list[i].shape);
		space->gradient_bytes += list[i].gradient_bytes;
		time_reads(&clock, &map, value, &list[i]);
	}
	for (uint32_t i = 0; i < state.n_inputs; i++)
		if (map.of_input[i] >= 0)
			list[map.of_input[i]].bytes +=
				sw_shape_bytes(sw_value_shape(program, state.inputs[i]));
	time_gradients(space, &clock, &map, list);
	find_kinds(space, list);
	space->variables = list;
	find_orders(space, &scratch);
	space->prices = sw_move_prices_new(space->cluster, &space->arena);
	sw_arena_clear(&scratch);
}

sw_status sw_ways_space_init(sw_ways_space *space, const sw_program *program,
                             const sw_sidecar *sidecar, const sw_cluster *cluster, int32_t n_codecs,
                             const sw_codec *codecs, sw_error *err)
{
	*space = (sw_ways_space){
		.sidecar = sidecar, .cluster = cluster, .n_codecs = n_codecs, .codecs = codecs, .gathers = true};
	SW_TRY(sw_rewrite_canonical(program, &space->program, err));
	sw_arena_init(&space->arena);
	space->program_hash = sw_program_hash(space->program);
	space->setting = cluster->hash;
	list_variables(space);
	if (space->n > 0 && cluster->n_devices > 1)
		return SW_OK;
	bool alone = space->n > 0;
	sw_ways_space_clear(space);
	return sw_fail(err, SW_ERR_INPUT, "%s",
	               alone ? "one device has nothing to synchronise: take a cluster of several"
	                     : "the program has no variables: no parameters that a step updates");
}

void sw_ways_space_clear(sw_ways_space *space)
{
	sw_program_free(space->program);
	sw_arena_clear(&space->arena);
	*space = (sw_ways_space){0};
}
