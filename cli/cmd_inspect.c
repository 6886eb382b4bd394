/* inspect: what a program consists of. */
#include "cli.h"

#include <stdlib.h>
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
	sw_text_add_amount(text, sw_program_flops(p), "FLOP per step\n");
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

static sw_status describe_stages(cli *c, const inspection *x, sw_text *text, sw_error *err)
{
	if (!c->values.stages)
		return SW_OK;
	if (!x->canonical)
		return sw_fail(err, SW_ERR_INPUT,
		               "--stages: the program has collectives; give the one from which it "
		               "was made");
	return cli_inspect_stages(c, x->canonical, x->sidecar, text, c->result, err);
}

static sw_status describe(cli *c, inspection *x, sw_fusion fusion, sw_error *err)
{
	sw_text text = {0};
	add_amounts(x, &text);
	add_opcodes(x, &text);
	add_loops(x, &text);
	c->result = result_json(x);
	cli_inspect_state(x->program, x->sidecar, c->values.verbose, &text, c->result);
	cli_inspect_remat(x->program, &text, c->result);
	if (x->canonical)
		cli_inspect_microbatches(x->canonical, x->sidecar, &text, c->result);
	if (c->values.rules)
		cli_inspect_rules(x->canonical ? x->canonical : x->program, &text, c->result);
	if (c->values.kernels)
		cli_inspect_kernels(x->canonical ? x->canonical : x->program, fusion,
		                    c->values.verbose, &text, c->result);
	sw_status status = describe_stages(c, x, &text, err);
	if (status == SW_OK) {
		cli_print(c, &text);
		return SW_OK;
	}
	sw_text_clear(&text);
	json_decref(c->result);
	c->result = NULL;
	return status;
}

/* Refuse options that say nothing of the file. */
static sw_status check_options(const cli *c, sw_error *err)
{
	bool cluster = cli_is_cluster(c->argument);
	if (cluster && (c->values.rules || c->values.kernels || c->values.stages))
		return sw_fail(err, SW_ERR_INPUT,
		               "%s is for programs, and %s is named as a cluster file is",
		               c->values.rules     ? "--rules"
		               : c->values.kernels ? "--kernels"
		                                   : "--stages",
		               c->argument);
	if (c->values.microbatches && !c->values.stages)
		return sw_fail(err, SW_ERR_INPUT, "--microbatches goes with --stages: add it");
	if (!cluster && (c->values.parts || c->values.devices))
		return sw_fail(err, SW_ERR_INPUT,
		               "%s is for cluster files, named .yaml or .yml, and %s is none",
		               c->values.parts ? "--parts" : "--devices", c->argument);
	if (!c->values.kernels && (c->values.fusion || c->values.cluster))
		return sw_fail(err, SW_ERR_INPUT,
		               "%s says how the device of --kernels fuses: add it",
		               c->values.fusion ? "--fusion" : "--cluster");
	return SW_OK;
}

static sw_status inspect_program(cli *c, sw_error *err)
{
	sw_program *program;
	sw_sidecar sidecar;
	sw_fusion fusion;
	sw_status status = cli_find_fusion(c, &fusion, err);
	if (status == SW_OK)
		status = cli_load_program(c->argument, &program, &sidecar, err);
	if (status)
		return status;
	if (program->state_note)
		cli_note(c, "%s", program->state_note);
	inspection x = {.program = program, .sidecar = &sidecar};
	sw_error none;
	sw_arena_init(&x.arena);
	sw_rewrite_canonical(program, &x.canonical, &none);
	measure(&x);
	status = describe(c, &x, fusion, err);
	sw_vec_clear(&x.opcodes);
	sw_vec_clear(&x.loops);
	sw_arena_clear(&x.arena);
	sw_program_free(x.canonical);
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
	return status;
}

static sw_status inspect(cli *c, sw_error *err)
{
	sw_status status = check_options(c, err);
	if (status)
		return status;
	return cli_is_cluster(c->argument) ? cli_inspect_cluster(c, err) : inspect_program(c, err);
}

static const char *const options[] = {"--rules",   "--kernels", "--fusion",
                                      "--cluster", "--stages",  "--microbatches",
                                      "--parts",   "--devices", NULL};
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
