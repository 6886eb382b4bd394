/*
 * The part of inspect about microbatches: the numbers that are possible, and the loops that a step
 * becomes.
 */
#include "cli.h"

/* ---- text ------------------------------------------------------------------------------- */

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

void cli_inspect_microbatches(const sw_program *program, const sw_sidecar *sidecar, sw_text *text,
                              json_t *json)
{
	sw_phases phases;
	sw_phases_init(&phases, program, sidecar);
	add_phases(program, &phases, text);
	json_object_set_new(json, "microbatches", phases_json(program, &phases));
	sw_phases_clear(&phases);
}
