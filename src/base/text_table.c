/* Tables for people. A column is right-aligned if every cell below its heading is a number
 * (possibly with a unit) or empty. */
#include "base/base.h"

#include <ctype.h>
#include <string.h>

static void add_cell(sw_table *table, const char *string)
{
	char *copy = sw_alloc(strlen(string) + 1);
	strcpy(copy, string);
	sw_vec_push(&table->cells, copy);
}

void sw_table_init(sw_table *table, int columns, const char *const headings[])
{
	*table = (sw_table){.columns = columns};
	for (int i = 0; i < columns; i++)
		add_cell(table, headings[i]);
}

void sw_table_cell(sw_table *table, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	size_t capacity = length > 0 ? (size_t)length + 1 : 1;
	char *cell = sw_alloc(capacity);
	va_start(args, format);
	vsnprintf(cell, capacity, format, args);
	va_end(args);
	sw_vec_push(&table->cells, cell);
}

void sw_table_cell_number(sw_table *table, sw_text_add_number *add, double number)
{
	sw_text cell = {0};
	add(&cell, number);
	sw_table_cell(table, "%s", cell.data ? cell.data : "");
	sw_text_clear(&cell);
}

void sw_table_clear(sw_table *table)
{
	for (size_t i = 0; i < table->cells.len; i++)
		free(table->cells.data[i]);
	sw_vec_clear(&table->cells);
}

/* Return the number of characters, not bytes: the continuation bytes of UTF-8 have no width. */
static size_t width_of(const char *cell)
{
	size_t width = 0;
	for (; *cell; cell++)
		width += ((unsigned char)*cell & 0xC0) != 0x80;
	return width;
}

/* Return whether a cell is a number: "12", "-1.5e3", "3.4 MiB", "7%", "2.1x", "inf"; not "8x4", not
 * "2nd". */
static bool is_number(const char *cell)
{
	char *rest;
	strtod(cell, &rest);
	if (rest == cell)
		return false;
	if (*rest == '\0' || strcmp(rest, "%") == 0 || strcmp(rest, "x") == 0)
		return true;
	if (*rest != ' ')
		return false;
	while (*++rest)
		if (!isalpha((unsigned char)*rest) && *rest != '/')
			return false;
	return true;
}

static size_t column_width(const sw_table *table, size_t column)
{
	size_t width = 0;
	for (size_t i = column; i < table->cells.len; i += (size_t)table->columns)
		width = SW_MAX(width, width_of(table->cells.data[i]));
	return width;
}

static bool column_is_numeric(const sw_table *table, size_t column)
{
	bool any = false;
	for (size_t i = column + (size_t)table->columns; i < table->cells.len;
	     i += (size_t)table->columns) {
		const char *cell = table->cells.data[i];
		if (!cell[0])
			continue;
		if (!is_number(cell))
			return false;
		any = true;
	}
	return any;
}

static void drop_trailing_blanks(sw_text *text)
{
	while (text->len && text->data[text->len - 1] == ' ')
		text->data[--text->len] = '\0';
}

static void add_cell_to(sw_text *text, const char *cell, size_t width, bool right)
{
	int blanks = (int)(width - width_of(cell));
	if (right)
		sw_text_addf(text, "%*s%s", blanks, "", cell);
	else
		sw_text_addf(text, "%s%*s", cell, blanks, "");
}

void sw_table_add_to(const sw_table *table, sw_text *text)
{
	size_t columns = (size_t)table->columns, cells = table->cells.len;
	if (!columns)
		return;
	size_t *width = sw_alloc(columns * sizeof(*width));
	bool *right = sw_alloc(columns * sizeof(*right));
	for (size_t c = 0; c < columns; c++) {
		width[c] = column_width(table, c);
		right[c] = column_is_numeric(table, c);
	}
	for (size_t row = 0; row < cells; row += columns) {
		for (size_t c = 0; c < columns && row + c < cells; c++) {
			if (c)
				sw_text_add(text, "  ");
			add_cell_to(text, table->cells.data[row + c], width[c], right[c]);
		}
		drop_trailing_blanks(text);
		sw_text_add(text, "\n");
	}
	free(width);
	free(right);
}
