#include "cli.h"
#include "export/export.h"
#include "plan/shardings.h"

#include <string.h>

/* Write a plan in one form. Append the text of `-o` to `text`, and set *json to what --json
 * prints, which `-o` keeps in a file beside `text` if `beside` names one. */
typedef sw_status export_function(const cli_plan *loaded, sw_text *text, json_t **json,
                                  sw_error *err);
typedef struct export_form {
	const char *name;
	export_function *make;
	const char *beside; /* NULL: none; else the end of the other file's name */
} export_form;

static void add_json(sw_text *text, const json_t *json)
{
	char *dump = json_dumps(json, JSON_INDENT(1));
	sw_text_addf(text, "%s\n", dump);
	free(dump);
}

static sw_status make_shardings(const cli_plan *loaded, sw_text *text, json_t **json, sw_error *err)
{
	(void)err;
	*json = sw_plan_shardings(loaded->plan, &loaded->sidecar);
	add_json(text, *json);
	return SW_OK;
}

static sw_status make_stablehlo(const cli_plan *loaded, sw_text *text, json_t **json, sw_error *err)
{
	return sw_export_plan(loaded->plan, &loaded->sidecar, text, json, err);
}

/* All values of --to. */
static const export_form forms[] = {
	{"shardings", make_shardings, NULL},
	{"stablehlo", make_stablehlo, ".placement.json"},
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

static sw_status check_options(const cli *c, const export_form **form, sw_error *err)
{
	sw_status status = find_form(c, form, err);
	if (status)
		return status;
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

static sw_status write_beside(cli *c, const export_form *form, const json_t *json, sw_error *err)
{
	sw_text text = {0};
	add_json(&text, json);
	sw_status status = write_file(path_beside(c, c->values.output, form->beside), &text, err);
	sw_text_clear(&text);
	return status;
}

static sw_status write_all(cli *c, const export_form *form, const sw_text *text, const json_t *json,
                           sw_error *err)
{
	const char *output = c->values.output;
	sw_status status = SW_OK;
	if (output || !c->values.json)
		status = write_file(output ? output : "-", text, err);
	if (status == SW_OK && form->beside && output && strcmp(output, "-") != 0)
		status = write_beside(c, form, json, err);
	return status;
}

static sw_status export_plan(cli *c, sw_error *err)
{
	cli_plan loaded;
	const export_form *form = NULL;
	sw_text text = {0};
	json_t *json = NULL;
	sw_status status = check_options(c, &form, err);
	if (status == SW_OK)
		status = cli_load_plan(c, c->argument, false, &loaded, err);
	if (status)
		return status;
	status = sw_error_in_file(err, form->make(&loaded, &text, &json, err), c->argument);
	cli_plan_clear(&loaded);
	if (status == SW_OK)
		status = write_all(c, form, &text, json, err);
	if (status == SW_OK)
		c->result = json_incref(json);
	json_decref(json);
	sw_text_clear(&text);
	return status;
}

static const char *const options[] = {"--to", "-o", NULL};
const cli_command cli_export = {
	.name = "export",
	.argument = "PLAN",
	.summary = "a plan for JAX: the partitioned program, or a mesh and PartitionSpecs",
	.details = "--to stablehlo writes the program of one device with its collectives, for JAX "
		   "to compile, and beside it NAME.placement.json, which says how arrays are "
		   "placed. --to shardings writes for each input and result its spec, and in "
		   "words what the spec can't say of it.",
	.example = "shardwright export gpt.plan --to stablehlo -o gpt.mlir",
	.options = options,
	.run = export_plan,
};
