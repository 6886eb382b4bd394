#include "cli.h"
#include "export/export.h"
#include "pipelined/stage_programs.h"
#include "plan/shardings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What is written: `text` of -o, `beside` in a file beside it (empty: none), and what --json
 * prints. */
typedef struct exported {
	sw_text text, beside;
	json_t *json;
} exported;

typedef sw_status export_function(cli *c, const cli_plan *loaded, exported *out, sw_error *err);
typedef struct export_form {
	const char *name;
	export_function *make;
	const char *ending; /* of the file beside; NULL: none */
} export_form;

static void add_json(sw_text *text, const json_t *json)
{
	char *dump = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	sw_text_addf(text, "%s\n", dump);
	free(dump);
}

static void lose(json_t *json, const char *format, ...) SW_PRINTF(2, 3);
static void lose(json_t *json, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	json_array_append_new(json_object_get(json, "lost"), json_vsprintf(format, arguments));
	va_end(arguments);
}

/* Say what the module with annotations has not of the plan. */
static void say_losses(json_t *json, const sw_sharding_losses *lost)
{
	lose(json,
	     "partial sums, which the module leaves open (%lld of %lld values inside of the "
	     "step), and runs dealt out in turn, where it cuts blocks (%lld)",
	     (long long)lost->partial_sums, (long long)lost->values, (long long)lost->dealt_out);
	lose(json, "the kinds of collectives and the order of ops, which the compiler chooses");
	if (lost->padded)
		lose(json, "the module takes and gives arrays of the plan's padded shapes");
}

static sw_status make_shardings(cli *c, const cli_plan *loaded, exported *out, sw_error *err)
{
	sw_sharding_losses lost;
	(void)err;
	out->json = sw_plan_shardings(loaded->plan, &loaded->sidecar);
	sw_error refused = {0};
	if (sw_export_annotated(loaded->plan, &out->beside, &lost, &refused) == SW_OK) {
		say_losses(out->json, &lost);
	} else {
		lose(out->json, "there is no module with annotations: %s", refused.message);
		sw_text_clear(&out->beside);
	}
	if (loaded->plan->shares.n)
		lose(out->json,
		     "unequal shares of the batch: parts of the cluster would do the same "
		     "microbatches, all of them");
	add_json(&out->text, out->json);
	const json_t *words;
	size_t i;
	json_array_foreach(json_object_get(out->json, "lost"), i, words)
		cli_note(c, "not in the shardings: %s", json_string_value(words));
	return SW_OK;
}

static sw_export_attention attention_of(const cli *c)
{
	const char *word = c->values.attention;
	if (!word)
		return SW_ATTENTION_AS_READ;
	return strcmp(word, "ops") == 0 ? SW_ATTENTION_OPS : SW_ATTENTION_CUDNN;
}

static void say_attention(const cli *c, uint32_t calls)
{
	if (calls > 0)
		cli_note(c, "%u calls of cuDNN's attention: the module runs on NVIDIA's devices only "
		            "(--attention ops: anywhere)", calls);
	else if (attention_of(c) == SW_ATTENTION_CUDNN)
		cli_note(c, "no attention is written as calls: docs/commands.md says of which there are");
}

static sw_status make_stablehlo(cli *c, const cli_plan *loaded, exported *out, sw_error *err)
{
	uint32_t calls;
	SW_TRY(sw_export_plan(loaded->plan, &loaded->sidecar, attention_of(c), &out->text,
	                      &out->json, &calls, err));
	say_attention(c, calls);
	add_json(&out->beside, out->json);
	return SW_OK;
}

static sw_status make_json(cli *c, const cli_plan *loaded, exported *out, sw_error *err)
{
	(void)c;
	SW_TRY(sw_export_everything(loaded->plan, &loaded->sidecar, &out->json, err));
	add_json(&out->text, out->json);
	return SW_OK;
}

static sw_status make_torch(cli *c, const cli_plan *loaded, exported *out, sw_error *err)
{
	(void)c;
	SW_TRY(sw_export_torch(loaded->plan, &loaded->sidecar, &out->json, err));
	sw_export_torch_print(out->json, &out->text);
	return SW_OK;
}

static sw_status make_megatron(cli *c, const cli_plan *loaded, exported *out, sw_error *err)
{
	(void)c;
	SW_TRY(sw_export_frameworks(loaded->plan, &loaded->sidecar, &out->json, err));
	sw_export_frameworks_print(out->json, &out->text);
	return SW_OK;
}

/* All values of --to. */
static const export_form forms[] = {
	{"shardings", make_shardings, ".sharded.mlir"},
	{"stablehlo", make_stablehlo, ".placement.json"},
	{"torch", make_torch, NULL},
	{"megatron", make_megatron, NULL},
	{"json", make_json, NULL},
};

static sw_status find_form(const cli *c, const export_form **form, sw_error *err)
{
	sw_text names = {0};
	const char *to = c->values.to;
	for (size_t i = 0; i < SW_COUNT(forms); i++) {
		if (to && strcmp(to, forms[i].name) == 0) {
			*form = &forms[i];
			sw_text_clear(&names);
			return SW_OK;
		}
		sw_text_addf(&names, "%s%s", i ? ", " : "", forms[i].name);
	}
	sw_status status =
		to ? sw_fail(err, SW_ERR_INPUT, "--to %s: a plan is exported to: %s", to,
	                     names.data)
		   : sw_fail(err, SW_ERR_INPUT, "export needs --to FORM, one of: %s", names.data);
	sw_text_clear(&names);
	return status;
}

static sw_status check_attention(const cli *c, const export_form *form, sw_error *err)
{
	const char *word = c->values.attention;
	if (word && form->make != make_stablehlo)
		return sw_fail(err, SW_ERR_INPUT, "--attention goes with --to stablehlo, not %s",
		               form->name);
	if (word && strcmp(word, "ops") != 0 && strcmp(word, "cudnn") != 0)
		return sw_fail(err, SW_ERR_INPUT, "--attention %s: it is ops or cudnn", word);
	return SW_OK;
}

static sw_status check_options(const cli *c, const export_form **form, sw_error *err)
{
	SW_TRY(find_form(c, form, err));
	SW_TRY(check_attention(c, *form, err));
	if (c->values.json && c->values.output && strcmp(c->values.output, "-") == 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "-o - and --json both need standard output: leave one out");
	return cli_check_writable(c, c->values.output, err);
}

/* Return NAME.placement.json for NAME.mlir. */
static const char *path_beside(cli *c, const char *path, const char *ending)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	size_t length = dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
	return sw_arena_printf(&c->arena, "%.*s%s", (int)length, path, ending);
}

static sw_status write_file(const char *path, const sw_text *text, sw_error *err)
{
	return sw_error_in_file(err, sw_file_write(path, text->data, text->len, err), path);
}

static sw_status write_all(cli *c, const export_form *form, const exported *out, sw_error *err)
{
	const char *output = c->values.output;
	if (output || !c->values.json)
		SW_TRY(write_file(output ? output : "-", &out->text, err));
	if (out->beside.len > 0 && output && strcmp(output, "-") != 0)
		SW_TRY(write_file(path_beside(c, output, form->ending), &out->beside, err));
	return SW_OK;
}

static bool has_owners(const sw_plan *plan)
{
	for (size_t i = 0; i < plan->layouts.items.len; i++)
		if (sw_layout_owned_atoms(&plan->layouts.items.data[i]))
			return true;
	return false;
}

/* Only our own says that some devices hold an array and the others nothing of it, and the arrays of
 * all are those of the program as it was read. */
static sw_status check_forms(const sw_plan *plan, const export_form *form, sw_error *err)
{
	const struct {
		bool has;
		const char *what, *mend;
	} foreign[] = {
		{sw_forms_served(&plan->forms), "variables that their owners serve",
	         "whose variables are not stale"},
		{sw_forms_code(&plan->forms), "gradients in codes", "without --codec"},
		{plan->undivided, "variables in parts", "without"},
		{has_owners(plan) && form->make != make_json, "owners",
	         "of another strategy than ps, parallax, random, ways or sync, or --to json"},
	};
	for (size_t i = 0; i < SW_COUNT(foreign); i++)
		if (foreign[i].has)
			return sw_fail(err, SW_ERR_INPUT,
			               "the plan has %s, which other systems have no words for: "
			               "export one %s",
			               foreign[i].what, foreign[i].mend);
	return SW_OK;
}

/* ---- plans with stages ------------------------------------------------------------------- */

static sw_status check_staged(const cli *c, const export_form *form, sw_error *err)
{
	const char *output = c->values.output;
	if (form->make != make_stablehlo)
		return sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                  "a plan with stages is exported --to stablehlo alone, not %s; name "
		                  "the plan of one of its stages, such as that with .stage0 behind "
		                  "its name",
		                  form->name);
	if (output ? strcmp(output, "-") == 0 : !c->values.json)
		return sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                  "a plan with stages is exported as several modules: -o NAME.json "
		                  "says where, NAME.PIECE.mlir beside it");
	return SW_OK;
}

/* Write the index, and the modules beside it; the index last, so that what it names is there. */
static sw_status write_modules(cli *c, const sw_stage_modules *modules, sw_error *err)
{
	const char *output = c->values.output;
	sw_text index = {0};
	if (!output)
		return SW_OK;
	const char *slash = strrchr(output, '/');
	for (size_t i = 0; i < modules->list.len; i++) {
		const sw_stage_module *m = &modules->list.data[i];
		const char *path = sw_arena_printf(&c->arena, "%.*s%s",
		                                   slash ? (int)(slash + 1 - output) : 0, output,
		                                   m->file);
		SW_TRY(write_file(path, &m->text, err));
	}
	char *dump = json_dumps(modules->index, JSON_COMPACT);
	sw_text_addf(&index, "%s\n", dump);
	free(dump);
	sw_status status = write_file(output, &index, err);
	sw_text_clear(&index);
	return status;
}

static sw_status make_modules(cli *c, const export_form *form, const sw_pipelined *plan,
                              sw_stage_modules *modules, sw_error *err)
{
	const char *output = c->values.output ? c->values.output : "step";
	const char *slash = strrchr(output, '/');
	sw_stage_programs programs;
	for (int32_t s = 0; s < plan->n_stages; s++)
		SW_TRY(check_forms(plan->stages[plan->stages[s].like].plan, form, err));
	SW_TRY(sw_stage_programs_init(&programs, plan, err));
	sw_status status = sw_export_stages(&programs, attention_of(c),
	                                    path_beside(c, slash ? slash + 1 : output, ""), modules,
	                                    err);
	sw_stage_programs_clear(&programs);
	return status;
}

static sw_status export_stages(cli *c, const export_form *form, sw_error *err)
{
	sw_pipelined *plan;
	sw_stage_modules modules = {0};
	SW_TRY(check_staged(c, form, err));
	SW_TRY(sw_pipelined_load(c->argument, &plan, err));
	sw_status status = sw_error_in_file(err, make_modules(c, form, plan, &modules, err), c->argument);
	if (status == SW_OK)
		say_attention(c, modules.n_calls);
	if (status == SW_OK)
		status = write_modules(c, &modules, err);
	if (status == SW_OK)
		c->result = json_incref(modules.index);
	sw_stage_modules_clear(&modules);
	sw_pipelined_free(plan);
	return status;
}

/* ---- plans ------------------------------------------------------------------------------- */

static sw_status export_whole(cli *c, const export_form *form, sw_error *err)
{
	cli_plan loaded;
	exported out = {0};
	SW_TRY(cli_load_plan(c, c->argument, false, &loaded, err));
	sw_status status = check_forms(loaded.plan, form, err);
	if (status == SW_OK)
		status = form->make(c, &loaded, &out, err);
	status = sw_error_in_file(err, status, c->argument);
	cli_plan_clear(&loaded);
	if (status == SW_OK)
		status = write_all(c, form, &out, err);
	if (status == SW_OK)
		c->result = json_incref(out.json);
	json_decref(out.json);
	sw_text_clear(&out.text);
	sw_text_clear(&out.beside);
	return status;
}

static sw_status export_plan(cli *c, sw_error *err)
{
	const export_form *form = NULL;
	SW_TRY(check_options(c, &form, err));
	return sw_pipelined_is_file(c->argument) ? export_stages(c, form, err)
	                                         : export_whole(c, form, err);
}

static const char *const options[] = {"--to", "--attention", "-o", NULL};
const cli_command cli_export = {
	.name = "export",
	.argument = "PLAN",
	.summary = "a plan for JAX, PyTorch, Megatron-LM and others, or as data",
	.details = "--to stablehlo writes the program of one device with its collectives, for JAX "
		   "to compile, and beside it NAME.placement.json, which says how arrays are "
		   "placed; of a plan with stages a module per piece, and an index of the calls "
		   "of a step. --to shardings writes for each input and result its spec, and in "
		   "words what the spec can't say of it, and beside it NAME.sharded.mlir, the "
		   "program with the layouts of all values as annotations. --to torch writes "
		   "placements of DTensor as Python, --to megatron the settings of Megatron-LM, "
		   "NeMo, MaxText and TorchTitan, --to json all that is known.",
	.example = "shardwright export gpt.plan --to stablehlo -o gpt.mlir",
	.options = options,
	.run = export_plan,
};
