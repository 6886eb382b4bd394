/*
 * YAML: libyaml's events made into a tree with places.
 *
 * The reader takes what configuration files need: one document of scalars, sequences and mappings
 * with scalar keys. Anchors, aliases and tags are refused with a message that names them, rather
 * than half understood.
 */
#include "base/base.h"

#include <string.h>
#include <yaml.h>

#define MAX_DEPTH 64 /* recursion limit of the reader; real files nest five deep */

typedef SW_VEC(const sw_yaml *) node_list;

typedef struct reader {
	yaml_parser_t parser;
	const char *text; /* finds the line of a bad byte */
	sw_arena *arena;
	sw_error *err;
} reader;

static sw_status read_node(reader *r, yaml_event_t *event, int depth, const sw_yaml **node);

/* ---- errors ----------------------------------------------------------------------------- */

static sw_status fail_here(const reader *r, yaml_mark_t mark, const char *message)
{
	return sw_fail_at(r->err, SW_ERR_INPUT, "", (int)mark.line + 1, (int)mark.column + 1, "%s",
	                  message);
}

/* Report bytes that are not characters, for which libyaml gives an offset and no line. */
static sw_status bad_byte(const reader *r)
{
	int line = 1;
	for (size_t i = 0; i < r->parser.problem_offset; i++)
		line += r->text[i] == '\n';
	return sw_fail_at(r->err, SW_ERR_INPUT, "", line, 0, "bad YAML: %s", r->parser.problem);
}

static sw_status syntax_error(const reader *r)
{
	const yaml_parser_t *p = &r->parser;
	if (p->error == YAML_MEMORY_ERROR)
		return sw_fail(r->err, SW_ERR_IO, "not enough memory to read the YAML document");
	if (p->error == YAML_READER_ERROR)
		return bad_byte(r);
	return sw_fail_at(r->err, SW_ERR_INPUT, "", (int)p->problem_mark.line + 1,
	                  (int)p->problem_mark.column + 1, "bad YAML: %s%s%s",
	                  p->problem ? p->problem : "unknown trouble", p->context ? " " : "",
	                  p->context ? p->context : "");
}

static sw_status next_event(reader *r, yaml_event_t *event)
{
	return yaml_parser_parse(&r->parser, event) ? SW_OK : syntax_error(r);
}

/* ---- nodes ------------------------------------------------------------------------------ */

static sw_status refuse_decoration(const reader *r, const yaml_event_t *event, const void *anchor,
                                   const void *tag)
{
	if (anchor)
		return fail_here(r, event->start_mark,
		                 "anchors (&name) are not supported: write the value out");
	if (tag)
		return fail_here(r, event->start_mark,
		                 "tags (!name) are not supported: write the plain value");
	return SW_OK;
}

static sw_yaml *new_node(const reader *r, sw_yaml_kind kind, yaml_mark_t mark)
{
	sw_yaml *node = SW_NEW(r->arena, sw_yaml);
	node->kind = kind;
	node->line = (int)mark.line + 1;
	node->column = (int)mark.column + 1;
	return node;
}

static const sw_yaml **keep(const reader *r, const node_list *list)
{
	return sw_arena_copy(r->arena, list->data, list->len * sizeof(*list->data));
}

static sw_status read_scalar(reader *r, const yaml_event_t *event, const sw_yaml **node)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	sw_status status =
		refuse_decoration(r, event, event->data.scalar.anchor, event->data.scalar.tag);
	if (status != SW_OK)
		return status;
	if (memchr(value, 0, length))
		return fail_here(r, event->start_mark, "a zero byte in a text is not supported");
	sw_yaml *scalar = new_node(r, SW_YAML_SCALAR, event->start_mark);
	scalar->text = sw_arena_text_n(r->arena, value, length);
	*node = scalar;
	return SW_OK;
}

static sw_status read_items(reader *r, int depth, node_list *items)
{
	for (;;) {
		yaml_event_t event;
		sw_status status = next_event(r, &event);
		if (status != SW_OK)
			return status;
		if (event.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&event);
			return SW_OK;
		}
		const sw_yaml *item = NULL;
		status = read_node(r, &event, depth, &item);
		if (status != SW_OK)
			return status;
		sw_vec_push(items, item);
	}
}

static sw_status read_sequence(reader *r, const yaml_event_t *event, int depth,
                               const sw_yaml **node)
{
	sw_status status = refuse_decoration(r, event, event->data.sequence_start.anchor,
	                                     event->data.sequence_start.tag);
	if (status != SW_OK)
		return status;
	sw_yaml *sequence = new_node(r, SW_YAML_SEQUENCE, event->start_mark);
	node_list items = {0};
	status = read_items(r, depth + 1, &items);
	sequence->count = items.len;
	sequence->items = keep(r, &items);
	sw_vec_clear(&items);
	*node = sequence;
	return status;
}

/* Refuse a key that stands twice. The map gives each key its line, which the message names. */
static sw_status check_key(const reader *r, const sw_yaml *key, sw_map *lines)
{
	if (key->kind != SW_YAML_SCALAR)
		return sw_fail_at(r->err, SW_ERR_INPUT, "", key->line, key->column,
		                  "a key must be a plain word, not a list or a mapping");
	uint32_t line = sw_map_put(lines, key->text, strlen(key->text), (uint32_t)key->line);
	if (line != SW_ABSENT)
		return sw_fail_at(r->err, SW_ERR_INPUT, "", key->line, key->column,
		                  "key \"%s\" is given twice, first in line %u", key->text,
		                  (unsigned)line);
	return SW_OK;
}

static sw_status read_value(reader *r, int depth, const sw_yaml **value)
{
	yaml_event_t event;
	sw_status status = next_event(r, &event);
	return status == SW_OK ? read_node(r, &event, depth, value) : status;
}

static sw_status read_pairs(reader *r, int depth, node_list *keys, node_list *values, sw_map *lines)
{
	for (;;) {
		yaml_event_t event;
		sw_status status = next_event(r, &event);
		if (status != SW_OK)
			return status;
		if (event.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&event);
			return SW_OK;
		}
		const sw_yaml *key = NULL, *value = NULL;
		status = read_node(r, &event, depth, &key);
		if (status == SW_OK)
			status = check_key(r, key, lines);
		if (status == SW_OK)
			status = read_value(r, depth, &value);
		if (status != SW_OK)
			return status;
		sw_vec_push(keys, key);
		sw_vec_push(values, value);
	}
}

static sw_status read_mapping(reader *r, const yaml_event_t *event, int depth, const sw_yaml **node)
{
	sw_status status = refuse_decoration(r, event, event->data.mapping_start.anchor,
	                                     event->data.mapping_start.tag);
	if (status != SW_OK)
		return status;
	sw_yaml *mapping = new_node(r, SW_YAML_MAPPING, event->start_mark);
	node_list keys = {0}, values = {0};
	sw_map lines = {0};
	status = read_pairs(r, depth + 1, &keys, &values, &lines);
	mapping->count = values.len;
	mapping->items = keep(r, &values);
	mapping->keys = keep(r, &keys);
	sw_vec_clear(&keys);
	sw_vec_clear(&values);
	sw_map_clear(&lines);
	*node = mapping;
	return status;
}

/* Read a node. Takes over the event. */
static sw_status read_node(reader *r, yaml_event_t *event, int depth, const sw_yaml **node)
{
	sw_status status;
	if (depth > MAX_DEPTH)
		status = fail_here(r, event->start_mark, "nested too deeply: at most 64 levels");
	else if (event->type == YAML_SCALAR_EVENT)
		status = read_scalar(r, event, node);
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		status = read_sequence(r, event, depth, node);
	else if (event->type == YAML_MAPPING_START_EVENT)
		status = read_mapping(r, event, depth, node);
	else
		status = fail_here(r, event->start_mark,
		                   "aliases (*name) are not supported: write the value out");
	yaml_event_delete(event);
	return status;
}

/* ---- the document ----------------------------------------------------------------------- */

/* Read one event, which must be of this type; `message` is the error otherwise. */
static sw_status expect(reader *r, yaml_event_type_t type, const char *message)
{
	yaml_event_t event;
	sw_status status = next_event(r, &event);
	if (status != SW_OK)
		return status;
	if (event.type != type)
		status = fail_here(r, event.start_mark, message);
	yaml_event_delete(&event);
	return status;
}

static sw_status read_document(reader *r, const sw_yaml **root)
{
	sw_status status =
		expect(r, YAML_STREAM_START_EVENT, "expected the start of a YAML document");
	if (status == SW_OK)
		status = expect(r, YAML_DOCUMENT_START_EVENT, "the YAML document is empty");
	if (status == SW_OK)
		status = read_value(r, 1, root);
	if (status == SW_OK)
		status =
			expect(r, YAML_DOCUMENT_END_EVENT, "expected the end of the YAML document");
	if (status == SW_OK)
		status = expect(r, YAML_STREAM_END_EVENT,
		                "expected one YAML document, found a second");
	return status;
}

sw_status sw_yaml_parse(const char *text, size_t length, sw_arena *arena, const sw_yaml **root,
                        sw_error *err)
{
	reader r = {.text = text, .arena = arena, .err = err};
	const sw_yaml *found = NULL;
	if (!yaml_parser_initialize(&r.parser))
		return sw_fail(err, SW_ERR_IO, "not enough memory to read the YAML document");
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
	sw_status status = read_document(&r, &found);
	yaml_parser_delete(&r.parser);
	if (status == SW_OK)
		*root = found;
	return status;
}

sw_status sw_yaml_read(const char *path, sw_arena *arena, const sw_yaml **root, sw_error *err)
{
	char *text = NULL;
	size_t length = 0;
	sw_status status = sw_file_read_most(path, SW_MAX_YAML_BYTES, &text, &length, err);
	if (status != SW_OK)
		return status;
	status = sw_yaml_parse(text, length, arena, root, err);
	free(text);
	return sw_error_in_file(err, status, path);
}

const sw_yaml *sw_yaml_get(const sw_yaml *mapping, const char *key)
{
	if (!mapping || mapping->kind != SW_YAML_MAPPING)
		return NULL;
	for (size_t i = 0; i < mapping->count; i++)
		if (strcmp(mapping->keys[i]->text, key) == 0)
			return mapping->items[i];
	return NULL;
}
