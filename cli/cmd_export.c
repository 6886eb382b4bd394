#include "cli.h"
#include "plan/shardings.h"

#include <string.h>

typedef json_t *export_function(const sw_plan *plan, const sw_sidecar *sidecar);
/* All values of --to. */
static const struct {
	const char *name;
	export_function *make;
} forms[] = {{"shardings", sw_plan_shardings}};

static sw_status find_form(const cli *c, export_function **make, sw_error *err)
{
	sw_text names = {0};
	const char *to = c->values.to;
	for (size_t i = 0; i < SW_COUNT(forms); i++) {
		if (to && strcmp(to, forms[i].name) == 0) {
			*make = forms[i].make;
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

static sw_status check_options(const cli *c, export_function **make, sw_error *err)
{
	sw_status status = find_form(c, make, err);
	if (status)
		return status;
	if (c->values.json && c->values.output && strcmp(c->values.output, "-") == 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "-o - and --json both need standard output: leave one out");
	return cli_check_writable(c, c->values.output, err);
}

static sw_status write_json(const char *path, const json_t *json, sw_error *err)
{
	sw_text text = {0};
	char *dump = json_dumps(json, JSON_INDENT(1));
	sw_text_addf(&text, "%s\n", dump);
	free(dump);
	sw_status status = sw_file_write(path, text.data, text.len, err);
	sw_text_clear(&text);
	return sw_error_in_file(err, status, path);
}

static sw_status export_plan(cli *c, sw_error *err)
{
	cli_plan loaded;
	export_function *make;
	sw_status status = check_options(c, &make, err);
	if (status == SW_OK)
		status = cli_load_plan(c, c->argument, false, &loaded, err);
	if (status)
		return status;
	json_t *json = make(loaded.plan, &loaded.sidecar);
	cli_plan_clear(&loaded);
	if (c->values.output || !c->values.json)
		status = write_json(c->values.output ? c->values.output : "-", json, err);
	if (status == SW_OK)
		c->result = json_incref(json);
	json_decref(json);
	return status;
}

static const char *const options[] = {"--to", "-o", NULL};
const cli_command cli_export = {
	.name = "export",
	.argument = "PLAN",
	.summary = "a plan for other tools: a mesh and PartitionSpecs of JAX",
	.details = "For each input and result of the program its spec, and in words what the spec "
		   "can't say of it.",
	.example = "shardwright export gpt.plan --to shardings -o gpt.shardings.json",
	.options = options,
	.run = export_plan,
};
