/* CSV as RFC 4180 has it: commas, quotes, a heading; no line breaks within cells. */
#include "measured.h"

#include <stdlib.h>
#include <string.h>

/* Move *at behind a cell and its comma, and return the cell's text; *last: it ended its line. */
static const char *take_cell(table *t, const char **at, const char *end, bool *last)
{
	sw_text cell = {0};
	bool quoted = *at < end && **at == '"';
	const char *p = *at + quoted;
	for (; p < end && (quoted || (*p != ',' && *p != '\n')); p++) {
		if (quoted && *p == '"' && (p + 1 == end || p[1] != '"'))
			break;
		p += quoted && *p == '"';
		if (*p != '\r')
			sw_text_add_n(&cell, p, 1);
	}
	while (quoted && p < end && *p != ',' && *p != '\n')
		p++;
	*last = p == end || *p == '\n';
	*at = p < end ? p + 1 : end;
	const char *kept = sw_arena_printf(&t->arena, "%s", cell.data ? cell.data : "");
	sw_text_clear(&cell);
	return kept;
}

typedef SW_VEC(const char *) cell_list;

static void take_line(table *t, const char **at, const char *end, cell_list *cells)
{
	bool last = false;
	cells->len = 0;
	while (!last)
		sw_vec_push(cells, take_cell(t, at, end, &last));
}

static sw_status add_row(table *t, int line, const cell_list *from, cell_list *all, sw_error *err)
{
	if ((int32_t)from->len != t->n_columns)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s:%d: %d cells where the heading has %d: give every row a cell "
		               "per column",
		               t->path, line, (int)from->len, t->n_columns);
	for (size_t i = 0; i < from->len; i++)
		sw_vec_push(all, from->data[i]);
	t->n_rows++;
	return SW_OK;
}

static const char **copy_cells(table *t, const cell_list *cells)
{
	const char **copy = SW_NEW_N(&t->arena, const char *, cells->len + 1);
	if (cells->len)
		memcpy(copy, cells->data, sizeof(*copy) * cells->len);
	return copy;
}

sw_status table_read(const char *path, table *t, sw_error *err)
{
	char *data;
	size_t length;
	*t = (table){.path = path};
	sw_status status = sw_file_read(path, &data, &length, err);
	if (status != SW_OK)
		return status;
	sw_arena_init(&t->arena);
	const char *at = data, *end = data + length;
	cell_list line = {0}, all = {0};
	take_line(t, &at, end, &line);
	t->n_columns = (int32_t)line.len;
	t->columns = copy_cells(t, &line);
	for (int number = 2; status == SW_OK && at < end; number++) {
		take_line(t, &at, end, &line);
		if (line.len > 1 || line.data[0][0])
			status = add_row(t, number, &line, &all, err);
	}
	t->cells = copy_cells(t, &all);
	sw_vec_clear(&line);
	sw_vec_clear(&all);
	free(data);
	return status;
}

void table_clear(table *t)
{
	sw_arena_clear(&t->arena);
}

int32_t table_column(const table *t, const char *name)
{
	for (int32_t i = 0; i < t->n_columns; i++)
		if (!strcmp(t->columns[i], name))
			return i;
	return -1;
}

const char *table_cell(const table *t, int32_t row, const char *name)
{
	int32_t column = table_column(t, name);
	return column < 0 ? NULL : t->cells[(size_t)row * (size_t)t->n_columns + (size_t)column];
}

void table_add_cell(sw_text *line, const char *cell)
{
	bool quoted = strpbrk(cell, ",\"") != NULL;
	if (line->len)
		sw_text_add(line, ",");
	if (quoted)
		sw_text_add(line, "\"");
	for (const char *p = cell; *p; p++)
		sw_text_addf(line, *p == '"' ? "\"%c" : "%c", *p);
	if (quoted)
		sw_text_add(line, "\"");
}
