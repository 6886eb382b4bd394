#include "cli.h"

#include <string.h>

/* ---- counting --------------------------------------------------------------------------- */

typedef struct opcode_count {
	const char *name;
	int64_t count;
	double flops, bytes;
} opcode_count;

typedef struct inspection {
	const sw_program *program;
	sw_program *canonical; /* the program that is planned; NULL if there is none */
	const sw_sidecar *sidecar;
	sw_arena arena;
	/* per computation: executions in one step; 0 where its cost is counted with its caller */
	double *times;
	SW_VEC(opcode_count) opcodes;
	SW_VEC(sw_id) loops;
	uint32_t n_inputs;
	const sw_id *inputs;
	double parameters, parameter_bytes, state_bytes;
} inspection;

/* Return how many times a called computation runs each time the op runs. Reducers and comparators
 * are counted with the op. */
static double count_calls(const sw_op *op, uint32_t called)
{
	switch (op->opcode) {
	case SW_OP_WHILE: {
		double trips =
			op->attrs->loop.trip_count < 0 ? 1 : (double)op->attrs->loop.trip_count;
		return called == 0 ? trips + 1 : trips;
	}
	case SW_OP_CALL:
	case SW_OP_FUSION:
	case SW_OP_CONDITIONAL:
		return 1;
	default:
		return 0;
	}
}

/* Callers come after callees, so one pass from the end visits each caller before its callees. */
static void count_times(inspection *x)
{
	const sw_program *p = x->program;
	x->times = SW_NEW_N(&x->arena, double, p->computations.len);
	x->times[p->entry] = 1;
	for (size_t c = p->computations.len; c-- > 0;) {
		const sw_computation *computation = &p->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++) {
			const sw_op *op = sw_op_at(p, computation->ops.data[i]);
			for (uint32_t k = 0; k < op->n_called; k++)
				x->times[op->called[k]] += x->times[c] * count_calls(op, k);
		}
	}
}

static opcode_count *find_opcode(inspection *x, const char *name)
{
	for (size_t i = 0; i < x->opcodes.len; i++)
		if (strcmp(x->opcodes.data[i].name, name) == 0)
			return &x->opcodes.data[i];
	sw_vec_push(&x->opcodes, ((opcode_count){.name = name}));
	return &x->opcodes.data[x->opcodes.len - 1];
}

static bool is_region(const sw_op *op)
{
	return op->n_called && count_calls(op, 0) > 0;
}

static void count_op(inspection *x, sw_id id)
{
	const sw_op *op = sw_op_at(x->program, id);
	double times = x->times[op->computation];
	opcode_count *row = find_opcode(x, sw_op_opcode_name(op));
	row->count++;
	if (!is_region(op)) {
		row->flops += times * sw_op_flops(x->program, id);
		row->bytes += times * sw_op_bytes(x->program, id);
	}
	if (op->opcode == SW_OP_WHILE)
		sw_vec_push(&x->loops, id);
}

static int compare_rows(const void *a, const void *b)
{
	const opcode_count *x = a, *y = b;
	if (x->flops != y->flops)
		return (x->flops < y->flops) - (x->flops > y->flops);
	if (x->bytes != y->bytes)
		return (x->bytes < y->bytes) - (x->bytes > y->bytes);
	return strcmp(x->name, y->name);
}

static void count_inputs(inspection *x)
{
	x->n_inputs = sw_program_inputs(x->program, x->program->entry, &x->arena, &x->inputs);
	for (uint32_t i = 0; i < x->n_inputs; i++) {
		sw_shape shape = sw_value_shape(x->program, x->inputs[i]);
		if (x->sidecar->inputs[i].role != SW_ROLE_PARAMETER)
			continue;
		x->parameters += (double)sw_shape_elements(shape);
		x->parameter_bytes += (double)sw_shape_bytes(shape);
	}
	for (size_t a = 0; a < x->program->aliases.len; a++)
		x->state_bytes += (double)sw_shape_bytes(
			sw_value_shape(x->program, x->inputs[x->program->aliases.data[a].input]));
}

static void measure(inspection *x)
{
	count_times(x);
	for (sw_id id = 0; id < x->program->ops.len; id++)
		count_op(x, id);
	if (x->opcodes.len)
		qsort(x->opcodes.data, x->opcodes.len, sizeof(*x->opcodes.data), compare_rows);
	count_inputs(x);
}

/* ---- text ------------------------------------------------------------------------------- */

static void add_amounts(const inspection *x, sw_text *text)
{
	const sw_program *p = x->program;
	sw_text_addf(text, "%s: %zu ops in %zu computations, ", p->name, p->ops.len,
	             p->computations.len);
	sw_text_add_count(text, sw_program_flops(p));
	sw_text_add(text, "FLOP per step\n");
	sw_text_addf(text, "  inputs      %u, of which state %zu (", x->n_inputs, p->aliases.len);
	sw_text_add_bytes(text, x->state_bytes);
	sw_text_add(text, ")\n  parameters  ");
	sw_text_add_count(text, x->parameters);
	sw_text_add(text, " (");
	sw_text_add_bytes(text, x->parameter_bytes);
	sw_text_add(text, ")\n  peak memory ");
	sw_text_add_bytes(text, (double)sw_program_peak_bytes(p, p->entry));
	sw_text_add(text, " on one device\n\n");
}

static void add_opcodes(const inspection *x, sw_text *text)
{
	static const char *const headings[] = {"opcode", "ops", "FLOP", "bytes"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < x->opcodes.len; i++) {
		const opcode_count *row = &x->opcodes.data[i];
		sw_table_cell(&table, "%s", row->name);
		sw_table_cell(&table, "%lld", (long long)row->count);
		sw_table_cell_number(&table, sw_text_add_count, row->flops);
		sw_table_cell_number(&table, sw_text_add_bytes, row->bytes);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static void add_loops(const inspection *x, sw_text *text)
{
	for (size_t i = 0; i < x->loops.len; i++) {
		const sw_op *op = sw_op_at(x->program, x->loops.data[i]);
		sw_text_addf(text, "%sloop %s: ", i ? "" : "\n", op->name);
		if (op->attrs->loop.trip_count < 0)
			sw_text_add(text, "unknown number of trips\n");
		else
			sw_text_addf(text, "%lld trips\n", (long long)op->attrs->loop.trip_count);
	}
}

/* ---- rules ------------------------------------------------------------------------------ */

/* Ops of one opcode that can't be split along some dimensions, for one reason. */
typedef struct obstacle {
	const char *opcode, *why, *example;
	const char *loses; /* dimensions of the example that can't be split */
	bool missing;
	int64_t count;
} obstacle;
typedef SW_VEC(obstacle) obstacles;

static obstacle *find_obstacle(obstacles *list, const char *opcode, const sw_rule *rule)
{
	for (size_t i = 0; i < list->len; i++)
		if (strcmp(list->data[i].why, rule->whole) == 0 &&
		    strcmp(list->data[i].opcode, opcode) == 0)
			return &list->data[i];
	sw_vec_push(list,
	            ((obstacle){.opcode = opcode, .why = rule->whole, .missing = rule->missing}));
	return &list->data[list->len - 1];
}

/* Append "f32[4,6] dim 0,1": the shape, and its dimensions of more than one element that have no
 * factor. */
static void add_lost(sw_shape shape, const sw_dim_map *maps, const char *what, int index,
                     sw_text *text)
{
	const char *comma = "";

	for (int32_t d = 0; d < shape.rank; d++) {
		if (maps[d].n > 0 || shape.dims[d] < 2)
			continue;
		if (!*comma) {
			sw_text_addf(text, "%s%s %d ", text->len ? "; " : "", what, index);
			sw_shape_print(shape, text);
			sw_text_add(text, " dim ");
		}
		sw_text_addf(text, "%s%d", comma, d);
		comma = ",";
	}
}

static const char *lost_dimensions(const sw_program *program, sw_id id, const sw_rule *rule,
                                   sw_arena *arena)
{
	const sw_op *op = sw_op_at(program, id);
	sw_text text = {0};

	for (int32_t i = 0; i < rule->n_operands; i++)
		add_lost(sw_value_shape(program, op->operands[i]), rule->operands[i], "operand", i,
		         &text);
	for (int32_t i = 0; i < rule->n_results; i++)
		add_lost(sw_value_shape(program, op->first_result + (sw_id)i), rule->results[i],
		         "result", i, &text);
	const char *lost = sw_arena_text(arena, text.len ? text.data : "");
	sw_text_clear(&text);
	return lost;
}

/* Look for obstacles in the program that is planned: the canonical form, or the program as it was
 * read where there is none. */
static void find_obstacles(inspection *x, obstacles *list)
{
	const sw_program *program = x->canonical ? x->canonical : x->program;

	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		const sw_rule *rule = sw_rule_make(program, id, &x->arena);
		if (!rule->whole)
			continue;
		obstacle *found =
			find_obstacle(list, sw_arena_text(&x->arena, sw_op_opcode_name(op)), rule);
		if (found->count++ == 0) {
			found->example = sw_arena_text(&x->arena, op->name);
			found->loses = lost_dimensions(program, id, rule, &x->arena);
		}
	}
}

static void add_rules(const obstacles *list, sw_text *text)
{
	static const char *const headings[] = {"opcode", "ops", "why", "such as", "which loses"};
	sw_table table;

	sw_text_add(text, list->len ? "\nwhat stays whole:\n" : "\nnothing has to stay whole\n");
	if (list->len == 0)
		return;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < list->len; i++) {
		const obstacle *o = &list->data[i];
		sw_table_cell(&table, "%s", o->opcode);
		sw_table_cell(&table, "%lld", (long long)o->count);
		sw_table_cell(&table, "%s", o->why);
		sw_table_cell(&table, "%s", o->example);
		sw_table_cell(&table, "%s", *o->loses ? o->loses : "nothing");
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

/* ---- microbatches ----------------------------------------------------------------------- */

static void add_possible(const sw_phases *phases, sw_text *text)
{
	sw_text_addf(text, "\nmicrobatches: batch %lld, ", (long long)phases->batch);
	if (phases->possible.n == 0)
		sw_text_add(text, "none possible");
	for (int32_t i = 0; i < phases->possible.n; i++)
		sw_text_addf(text, "%s%lld", i ? ", " : "possible ",
		             (long long)phases->possible.v[i]);
	sw_text_add(text, "\n");
	if (phases->refuses)
		sw_text_addf(text, "  %d: refused by %s %s: %s\n    by way of %s\n",
		             phases->refused, phases->opcode, phases->refuses, phases->why,
		             phases->path);
}

/* number of sums that are listed by name */
#define MAX_NAMED_SUMS 3

static void add_sums(const sw_program *program, const sw_phase *phase, sw_text *text)
{
	sw_text_addf(text, "%d sums (", phase->n_sums);
	sw_text_add_bytes(text, (double)phase->sum_bytes);
	sw_text_add(text, ")");
	for (int32_t i = 0; i < SW_MIN(phase->n_sums, MAX_NAMED_SUMS); i++) {
		sw_id op = program->values.data[phase->leaving[i].value].op;
		sw_text_addf(text, "%s%s", i ? ", " : ": ", sw_op_at(program, op)->name);
	}
	sw_text_add(text, phase->n_sums > MAX_NAMED_SUMS ? ", ..." : "");
}

static void add_phase(const sw_program *program, const sw_phases *phases, int32_t k, sw_text *text)
{
	const sw_phase *phase = &phases->phases[k];
	double share = phases->flops > 0 ? phase->flops / phases->flops : 0;
	sw_text_addf(text, "  loop %-3d    %d ops, %.1f %% of the FLOP; ", k + 1, phase->ops,
	             100 * share);
	add_sums(program, phase, text);
	if (phase->n_leaving > phase->n_sums) {
		sw_text_addf(text, "; %d stored (", phase->n_leaving - phase->n_sums);
		sw_text_add_bytes(text, (double)phase->stored_bytes);
		sw_text_add(text, ")");
	}
	sw_text_add(text, "\n");
}

/* number of loops that are listed one by one */
#define MAX_LISTED_LOOPS 6

static void add_phases(const sw_program *program, const sw_phases *phases, sw_text *text)
{
	add_possible(phases, text);
	if (phases->n == 0)
		return;
	sw_text_addf(text, "  hoisted     %d ops\n", phases->hoisted);
	for (int32_t k = 0; k < SW_MIN(phases->n, MAX_LISTED_LOOPS); k++)
		add_phase(program, phases, k, text);
	if (phases->n > MAX_LISTED_LOOPS)
		sw_text_addf(text, "  and %d more loops\n", phases->n - MAX_LISTED_LOOPS);
	if (phases->n > 1)
		sw_text_addf(text, "  between     %d ops\n", phases->between);
	sw_text_addf(text, "  apply       %d ops\n", phases->apply);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static json_t *opcodes_json(const inspection *x)
{
	json_t *list = json_array();
	for (size_t i = 0; i < x->opcodes.len; i++) {
		const opcode_count *row = &x->opcodes.data[i];
		json_array_append_new(list, json_pack("{s:s, s:I, s:f, s:f}", "opcode", row->name,
		                                      "ops", (json_int_t)row->count, "flops",
		                                      row->flops, "bytes", row->bytes));
	}
	return list;
}

static json_t *loops_json(const inspection *x)
{
	json_t *list = json_array();
	for (size_t i = 0; i < x->loops.len; i++) {
		const sw_op *op = sw_op_at(x->program, x->loops.data[i]);
		int64_t trips = op->attrs->loop.trip_count;
		json_array_append_new(list,
		                      json_pack("{s:s, s:o}", "name", op->name, "trips",
		                                trips < 0 ? json_null() : json_integer(trips)));
	}
	return list;
}

static json_t *rules_json(const obstacles *list)
{
	json_t *json = json_array();
	for (size_t i = 0; i < list->len; i++)
		json_array_append_new(
			json,
			json_pack("{s:s, s:s, s:b, s:I, s:s, s:s}", "opcode", list->data[i].opcode,
		                  "why", list->data[i].why, "missing", list->data[i].missing, "ops",
		                  (json_int_t)list->data[i].count, "example", list->data[i].example,
		                  "loses", list->data[i].loses));
	return json;
}

static json_t *leaving_json(const sw_program *program, const sw_phase *phase)
{
	json_t *list = json_array();
	for (int32_t i = 0; i < phase->n_leaving; i++) {
		const sw_leaving *leaving = &phase->leaving[i];
		json_t *reader = leaving->reader == SW_NO_ID
		                         ? json_null()
		                         : json_string(sw_op_at(program, leaving->reader)->name);
		json_t *sum = leaving->monoid == SW_MONOID_NONE
		                      ? json_null()
		                      : json_string(sw_monoid_name(leaving->monoid));
		const char *name = sw_op_at(program, program->values.data[leaving->value].op)->name;
		json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "op", name, "sum", sum,
		                                      "reader", reader));
	}
	return list;
}

static json_t *loops_of_json(const sw_program *program, const sw_phases *phases)
{
	json_t *list = json_array();
	for (int32_t k = 0; k < phases->n; k++) {
		const sw_phase *phase = &phases->phases[k];
		json_array_append_new(
			list, json_pack("{s:i, s:f, s:I, s:I, s:o}", "ops", phase->ops, "flops",
		                        phase->flops, "sum_bytes", (json_int_t)phase->sum_bytes,
		                        "stored_bytes", (json_int_t)phase->stored_bytes, "leaving",
		                        leaving_json(program, phase)));
	}
	return list;
}

static json_t *phases_json(const sw_program *program, const sw_phases *phases)
{
	json_t *possible = json_array(), *refusal = json_null();
	for (int32_t i = 0; i < phases->possible.n; i++)
		json_array_append_new(possible, json_integer(phases->possible.v[i]));
	if (phases->refuses)
		refusal = json_pack("{s:i, s:s, s:s, s:s, s:s}", "microbatches", phases->refused,
		                    "op", phases->refuses, "opcode", phases->opcode, "why",
		                    phases->why, "path", phases->path);
	return json_pack("{s:I, s:o, s:i, s:o, s:i, s:i, s:i, s:o}", "batch",
	                 (json_int_t)phases->batch, "possible", possible, "microbatches",
	                 phases->microbatches, "loops", loops_of_json(program, phases), "hoisted",
	                 phases->hoisted, "between", phases->between, "apply", phases->apply,
	                 "refusal", refusal);
}

static json_t *result_json(const inspection *x)
{
	const sw_program *p = x->program;
	return json_pack("{s:s, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
	                 "name", p->name, "ops", (json_int_t)p->ops.len, "computations",
	                 (json_int_t)p->computations.len, "flops", sw_program_flops(p), "bytes",
	                 sw_program_bytes(p), "inputs", (json_int_t)x->n_inputs, "parameters",
	                 (json_int_t)x->parameters, "parameter_bytes",
	                 (json_int_t)x->parameter_bytes, "state_bytes", (json_int_t)x->state_bytes,
	                 "aliases", (json_int_t)p->aliases.len, "peak_bytes",
	                 (json_int_t)sw_program_peak_bytes(p, p->entry), "loops", loops_json(x),
	                 "opcodes", opcodes_json(x));
}

/* ---- the command ------------------------------------------------------------------------ */

static void describe_phases(cli *c, const inspection *x, sw_text *text)
{
	sw_phases phases;
	if (!x->canonical)
		return;
	sw_phases_init(&phases, x->canonical, x->sidecar);
	add_phases(x->canonical, &phases, text);
	json_object_set_new(c->result, "microbatches", phases_json(x->canonical, &phases));
	sw_phases_clear(&phases);
}

static void describe(cli *c, inspection *x)
{
	sw_text text = {0};
	obstacles list = {0};
	add_amounts(x, &text);
	add_opcodes(x, &text);
	add_loops(x, &text);
	c->result = result_json(x);
	cli_inspect_remat(x->program, &text, c->result);
	describe_phases(c, x, &text);
	if (c->values.rules) {
		find_obstacles(x, &list);
		add_rules(&list, &text);
		json_object_set_new(c->result, "rules", rules_json(&list));
	}
	cli_print(c, &text);
	sw_vec_clear(&list);
}

static sw_status inspect(cli *c, sw_error *err)
{
	sw_program *program;
	sw_sidecar sidecar;
	if (cli_is_cluster(c->argument) && c->values.rules)
		return sw_fail(err, SW_ERR_INPUT,
		               "--rules is for programs, and %s is named as a cluster file is",
		               c->argument);
	if (cli_is_cluster(c->argument))
		return cli_inspect_cluster(c, err);
	if (c->values.parts || c->values.devices)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s is for cluster files, named .yaml or .yml, and %s is none",
		               c->values.parts ? "--parts" : "--devices", c->argument);
	sw_status status = cli_load_program(c->argument, &program, &sidecar, err);
	if (status)
		return status;
	inspection x = {.program = program, .sidecar = &sidecar};
	sw_error none;
	sw_arena_init(&x.arena);
	sw_rewrite_canonical(program, &x.canonical, &none);
	measure(&x);
	describe(c, &x);
	sw_vec_clear(&x.opcodes);
	sw_vec_clear(&x.loops);
	sw_arena_clear(&x.arena);
	sw_program_free(x.canonical);
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
	return SW_OK;
}

static const char *const options[] = {"--rules", "--parts", "--devices", NULL};
const cli_command cli_inspect = {
	.name = "inspect",
	.argument = "PROGRAM|FILE",
	.summary = "what a program consists of: ops, FLOPs, parameters, state, memory, loops, "
		   "microbatches; or a cluster",
	.details = "A file whose name ends in .yaml or .yml is a cluster file: its levels, "
		   "links, devices and atoms.",
	.example = "shardwright inspect tests/programs/gpt.hlo.gz --rules",
	.options = options,
	.run = inspect,
};
