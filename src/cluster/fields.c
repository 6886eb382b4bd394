/* Keys of a mapping: known, present, given once, and the numbers among them read. */
#include "cluster/fields.h"

#include <string.h>

sw_status field_bad(sw_error *err, const sw_yaml *at, const char *where, const char *message)
{
	return sw_fail_at(err, SW_ERR_INPUT, "", at->line, at->column, "%s: %s", where, message);
}

static const char *kind_name(const sw_yaml *node)
{
	static const char *const names[] = {[SW_YAML_SCALAR] = "a plain value",
	                                    [SW_YAML_SEQUENCE] = "a list",
	                                    [SW_YAML_MAPPING] = "a mapping"};
	return names[node->kind];
}

sw_status field_expect(const sw_yaml *node, sw_yaml_kind kind, const char *where,
                       const char *expected, sw_error *err)
{
	if (node->kind == kind)
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
	                  "%s: expected %s, found %s", where, expected, kind_name(node));
}

/* ---- keys ------------------------------------------------------------------------------- */

static bool is_field(const field *fields, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].key, key) == 0)
			return true;
	return false;
}

static sw_status unknown_key(const sw_yaml *key, const field *fields, size_t n, const char *where,
                             sw_error *err)
{
	sw_text known = {0};
	for (size_t i = 0; i < n; i++)
		sw_text_addf(&known, "%s%s", i ? ", " : "", fields[i].key);
	sw_status status =
		sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
	                   "%s: unknown key \"%s\"; known are %s", where, key->text, known.data);
	sw_text_clear(&known);
	return status;
}

sw_status fields_check(const sw_yaml *node, const field *fields, size_t n, const char *where,
                       sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_MAPPING, where, "a mapping", err);
	if (status != SW_OK)
		return status;
	for (size_t i = 0; i < node->count; i++)
		if (!is_field(fields, n, node->keys[i]->text))
			return unknown_key(node->keys[i], fields, n, where, err);
	for (size_t i = 0; i < n; i++)
		if (!fields[i].optional && !sw_yaml_get(node, fields[i].key))
			return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
			                  "%s: missing key \"%s\"", where, fields[i].key);
	return SW_OK;
}

/* Per second: what takes longer to do than any time that is counted is a slip of the pen. */
#define SLOWEST 1e-3
#define LONGEST_S 1e6

sw_status field_read(const sw_yaml *node, const field *f, const char *where, sw_error *err)
{
	char message[256];
	sw_status status =
		field_expect(node, SW_YAML_SCALAR, where, quantity_example(f->kind), err);
	if (status != SW_OK)
		return status;
	const char *wrong = quantity_parse(node->text, f->kind, f->value, message);
	if (wrong)
		return field_bad(err, node, where, wrong);
	if (*f->value < 0)
		return field_bad(err, node, where, "must not be negative");
	if (*f->value == 0 && !f->may_be_zero)
		return field_bad(err, node, where, "must be more than zero");
	bool rate = f->kind == QUANTITY_BYTES_PER_S || f->kind == QUANTITY_FLOPS;
	if (rate && *f->value > 0 && *f->value < SLOWEST)
		return field_bad(err, node, where, "must be at least 0.001 per second");
	if (f->kind == QUANTITY_SECONDS && *f->value > LONGEST_S)
		return field_bad(err, node, where, "must not be more than 1000000 s");
	return SW_OK;
}

/* All keys of a mapping: known, present, and the quantities among them read. */
sw_status fields_read(const sw_yaml *node, const field *fields, size_t n, const char *where,
                      sw_error *err)
{
	sw_status status = fields_check(node, fields, n, where, err);
	for (size_t i = 0; i < n && status == SW_OK; i++) {
		const sw_yaml *value = sw_yaml_get(node, fields[i].key);
		char path[PATH_ROOM];
		if (!value || !fields[i].value)
			continue;
		snprintf(path, sizeof(path), "%s.%s", where, fields[i].key);
		status = field_read(value, &fields[i], path, err);
	}
	return status;
}

sw_status field_name(const sw_yaml *node, const char *where, sw_arena *arena, const char **name,
                     sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_SCALAR, where, "a name", err);
	if (status == SW_OK && !node->text[0])
		return field_bad(err, node, where, "must not be empty");
	if (status == SW_OK)
		*name = sw_arena_text(arena, node->text);
	return status;
}
