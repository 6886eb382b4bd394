/*
 * Annotations of shardings in HLO text. XLA writes a constraint as a custom call of one operand,
 * with `sharding={...}`, or with Shardy's words in frontend_attributes; here it is a copy.
 */
#include "frontend/hlo.h"
#include "frontend/sharding.h"

#include <string.h>

static const char *extra_named(const sw_extra *extras, const char *name)
{
	for (const sw_extra *e = extras; e; e = e->next)
		if (strcmp(e->name, name) == 0)
			return e->text;
	return NULL;
}

/* Return what stands behind `name=` in `{a="x",name="y"}`, up to the bracket's end; length 0: it
 * does not. */
static sw_span behind(const char *text, const char *name)
{
	const char *at = text ? strstr(text, name) : NULL;
	if (!at)
		return (sw_span){"", 0};
	at += strlen(name);
	return (sw_span){at, strlen(at)};
}

/* Shardy's sharding of one value, in the words of HLO text. */
static void add_sdy(sw_hlo *reader, const sw_extra *extras, sw_text *text)
{
	sw_error ignored = {0};
	sw_text words = {0}, name = {0}, meshes = {0};
	sw_lexer lexer;
	sw_span raw = behind(extra_named(extras, "frontend_attributes"), "xla.sdy.sharding="), mesh;
	sw_lex_init(&lexer, raw.start, raw.length, "", &ignored);
	if (sw_lex_peek(&lexer) == '"' && sw_lex_string(&lexer, &raw) == SW_OK)
		sw_lex_unescape(raw, &words);
	raw = (sw_span){words.data ? words.data : "", words.len};
	mesh = sw_sharding_mesh(raw);
	sw_text_addf(&name, "%.*s = #sdy.mesh", (int)SW_MIN(mesh.length, 100), mesh.start);
	const char *all = extra_named(reader->program->extras, "frontend_attributes");
	if (all)
		sw_lex_unescape((sw_span){all, strlen(all)}, &meshes);
	mesh = behind(meshes.data, name.data);
	sw_sharding_of_sdy(mesh, raw, text);
	sw_text_clear(&words);
	sw_text_clear(&name);
	sw_text_clear(&meshes);
}

void sw_hlo_take_constraint(sw_hlo *reader, sw_hlo_op *op)
{
	if (op->opcode != SW_OP_CUSTOM_CALL || op->n_operands != 1 ||
	    !sw_sharding_is_constraint(op->attrs.custom.target) || !op->has_shape ||
	    op->shape.tree || reader->operands.data[op->first_operand].node.tree)
		return;
	sw_text text = {0};
	const char *words = extra_named(op->extras, "sharding");
	const char *config = extra_named(op->extras, "backend_config");
	const char *open = config ? strstr(config, "unspecified_dims=[") : NULL;
	const char *end = open ? strchr(open, ']') : NULL;
	if (words && end)
		sw_sharding_add_open(words, (sw_span){open, (size_t)(end + 1 - open)}, &text);
	else if (words)
		sw_text_add(&text, words);
	else
		add_sdy(reader, op->extras, &text);
	sw_span name = {"sharding", 8};
	op->opcode = SW_OP_COPY;
	op->extras = NULL;
	op->last_extra = &op->extras;
	sw_hlo_add_extra(reader, name, (sw_span){text.data, text.len}, &op->last_extra);
	sw_text_clear(&text);
}
