/* Keys of a mapping: checked to be known, present and given once, with the figures among them read.
 */
#include "cluster/fields.h"

#include "cluster/figures.h"

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

sw_status field_name(const sw_yaml *node, const char *where, sw_arena *arena, const char **name,
                     sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_SCALAR, where, "a name", err);
	if (status == SW_OK && !node->text[0])
		return field_bad(err, node, where, "must not be empty");
	if (status == SW_OK &&
	    sw_printable_length(node->text, strlen(node->text)) != strlen(node->text))
		return field_bad(err, node, where, "expected printable characters");
	if (status == SW_OK)
		*name = sw_arena_text(arena, node->text);
	return status;
}

/* ---- keys ------------------------------------------------------------------------------- */

static bool is_known(const mapping *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->fields[i].key, key) == 0)
			return true;
	return m->figures && figure_find(m->figures, key);
}

static sw_status unknown_key(const sw_yaml *key, const mapping *m, const char *where, sw_error *err)
{
	sw_text known = {0};
	sw_nearest nearest = {.word = key->text};
	for (size_t i = 0; i < m->n; i++) {
		sw_text_addf(&known, "%s%s", known.len ? ", " : "", m->fields[i].key);
		sw_nearest_try(&nearest, m->fields[i].key);
	}
	for (size_t i = 0; m->figures && i < m->figures->n; i++) {
		sw_text_addf(&known, "%s%s", known.len ? ", " : "", m->figures->rows[i].key);
		sw_nearest_try(&nearest, m->figures->rows[i].key);
	}
	sw_status status =
		sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
	                   "%s: unknown key \"%s\"%s; known are %s", where, key->text,
	                   sw_nearest_hint(&nearest).text, known.data);
	sw_text_clear(&known);
	return status;
}

static sw_status require_key(const sw_yaml *node, const char *key, bool optional, const char *where,
                             sw_error *err)
{
	if (optional || sw_yaml_get(node, key))
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column, "%s: missing key \"%s\"",
	                  where, key);
}

sw_status mapping_check(const sw_yaml *node, const mapping *m, const char *where, sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_MAPPING, where, "a mapping", err);
	if (status != SW_OK)
		return status;
	for (size_t i = 0; i < node->count; i++)
		if (!is_known(m, node->keys[i]->text))
			return unknown_key(node->keys[i], m, where, err);
	for (size_t i = 0; i < m->n && status == SW_OK; i++)
		status = require_key(node, m->fields[i].key, m->fields[i].optional, where, err);
	for (size_t i = 0; m->figures && i < m->figures->n && status == SW_OK; i++)
		status = require_key(node, m->figures->rows[i].key, m->figures->rows[i].optional,
		                     where, err);
	return status;
}

/* ---- figures ---------------------------------------------------------------------------- */

/* The smallest rate that is accepted, per second: with less, transfers would take longer than any
 * time that is counted, so the number must be a typing error. */
#define SLOWEST 1e-3
#define LONGEST_S 1e6

/* Return NULL, or the error of a number of this quantity. */
static const char *find_fault(const sw_figure *f, double value)
{
	bool rate = f->quantity == SW_QUANTITY_BYTES_PER_S || f->quantity == SW_QUANTITY_FLOPS;
	if (value < 0)
		return "must not be negative";
	if (value == 0 && !f->may_be_zero)
		return "must be more than zero";
	if (rate && value > 0 && value < SLOWEST)
		return "must be at least 0.001 per second";
	if (f->quantity == SW_QUANTITY_SECONDS && value > LONGEST_S)
		return "must not be more than 1000000 s";
	if (f->range && (value < f->least || value > f->most))
		return f->range;
	return NULL;
}

static sw_status read_number(const sw_yaml *node, const sw_figure *f, const char *where,
                             double *value, sw_error *err)
{
	char message[256];
	sw_status status =
		field_expect(node, SW_YAML_SCALAR, where, quantity_example(f->quantity), err);
	if (status != SW_OK)
		return status;
	const char *wrong = quantity_parse(node->text, f->quantity, value, message);
	if (!wrong)
		wrong = find_fault(f, *value);
	return wrong ? field_bad(err, node, where, wrong) : SW_OK;
}

sw_status figure_read(const sw_yaml *node, const sw_figure *figure, void *of, const char *where,
                      sw_error *err)
{
	double value;
	sw_status status = read_number(node, figure, where, &value, err);
	if (status == SW_OK)
		figure_set(figure, of, value);
	return status;
}

/* A list has a figure for each part. A list of equal figures means the same as one figure. */
static sw_status read_parts(const sw_yaml *node, const sw_figure *figure, void *of, int64_t n_parts,
                            const char *where, sw_arena *arena, sw_error *err)
{
	if ((int64_t)node->count != n_parts)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "%s: %zu %ss for %lld parts of the level", where, node->count,
		                  figure->words, (long long)n_parts);
	double *each = SW_NEW_N(arena, double, n_parts);
	for (size_t i = 0; i < node->count; i++) {
		char path[MAX_PATH_BYTES];
		snprintf(path, sizeof(path), "%.200s[%zu]", where, i);
		sw_status status = read_number(node->items[i], figure, path, &each[i], err);
		if (status != SW_OK)
			return status;
	}
	figure_set_parts(figure, of, each, n_parts);
	return SW_OK;
}

static sw_status check_ceiling(const sw_yaml *node, const sw_figures *figures,
                               const sw_figure *figure, const void *of, const char *where,
                               sw_error *err)
{
	const sw_figure *ceiling = figure_ceiling(figures, figure);
	if (!ceiling || sw_figure_value(figure, of) <= sw_figure_value(ceiling, of))
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
	                  "%s: is more than the %s%s", where,
	                  sw_figure_parts(ceiling, of) ? "least " : "", ceiling->words);
}

sw_status figures_read(const sw_yaml *node, const sw_figures *figures, void *of, int64_t n_parts,
                       const char *where, sw_arena *arena, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < figures->n && status == SW_OK; i++) {
		const sw_figure *figure = &figures->rows[i];
		const sw_yaml *value = sw_yaml_get(node, figure->key);
		char path[MAX_PATH_BYTES];
		snprintf(path, sizeof(path), "%.200s.%s", where, figure->key);
		if (!value)
			figure_leave_out(figures, figure, of);
		else if (figure->each && value->kind == SW_YAML_SEQUENCE)
			status = read_parts(value, figure, of, n_parts, path, arena, err);
		else
			status = figure_read(value, figure, of, path, err);
		if (value && status == SW_OK)
			status = check_ceiling(value, figures, figure, of, path, err);
	}
	return status;
}
