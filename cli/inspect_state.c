#include "cli.h"

typedef struct states {
	const sw_program *program;
	const sw_sidecar *sidecar;
} states;

static void add_row(const states *x, sw_alias alias, sw_table *table)
{
	sw_text shape = {0};
	sw_id value = sw_entry(x->program)->results.data[alias.output];
	sw_shape_print(sw_value_shape(x->program, value), &shape);
	sw_table_cell(table, "%u", alias.output);
	sw_table_cell(table, "%u", alias.input);
	sw_table_cell(table, "%s", x->sidecar->inputs[alias.input].name);
	sw_table_cell(table, "%s", sw_role_word(x->sidecar->inputs[alias.input].role));
	sw_table_cell(table, "%s", shape.data);
	sw_text_clear(&shape);
}

static void add_table(const states *x, sw_text *text)
{
	static const char *const headings[] = {"result", "replaces input", "name", "role", "type"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t a = 0; a < x->program->aliases.len; a++)
		add_row(x, x->program->aliases.data[a], &table);
	sw_text_add(text, "\n");
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

void cli_inspect_state(const sw_program *program, const sw_sidecar *sidecar, bool all,
                       sw_text *text, json_t *json)
{
	states x = {program, sidecar};
	json_t *list = json_array();
	for (size_t a = 0; a < program->aliases.len; a++) {
		sw_alias alias = program->aliases.data[a];
		const sw_input_info *input = &sidecar->inputs[alias.input];
		json_array_append_new(list, json_pack("{s:I, s:I, s:s, s:s}", "result",
		                                      (json_int_t)alias.output, "input",
		                                      (json_int_t)alias.input, "name", input->name,
		                                      "role", sw_role_word(input->role)));
	}
	json_object_set_new(json, "state", list);
	json_object_set_new(json, "state_note",
	                    program->state_note ? json_string(program->state_note) : json_null());
	if (all && program->aliases.len)
		add_table(&x, text);
}
