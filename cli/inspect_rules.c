/*
 * The part of inspect about rules: the ops of a program that cannot be split along some dimensions.
 */
#include "cli.h"

#include <string.h>

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

static void find_obstacles(const sw_program *program, sw_arena *arena, obstacles *list)
{
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		const sw_rule *rule = sw_rule_make(program, id, arena);
		if (!rule->whole)
			continue;
		obstacle *found =
			find_obstacle(list, sw_arena_text(arena, sw_op_opcode_name(op)), rule);
		if (found->count++ == 0) {
			found->example = sw_arena_text(arena, op->name);
			found->loses = lost_dimensions(program, id, rule, arena);
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

void cli_inspect_rules(const sw_program *program, sw_text *text, json_t *json)
{
	obstacles list = {0};
	sw_arena arena;
	sw_arena_init(&arena);
	find_obstacles(program, &arena, &list);
	add_rules(&list, text);
	json_object_set_new(json, "rules", rules_json(&list));
	sw_vec_clear(&list);
	sw_arena_clear(&arena);
}
