/* The exported programs of a folder, by the columns that rows share with them. */
#include "measured.h"

#include <stdlib.h>
#include <string.h>

sw_status library_open(const char *folder, library *l, sw_error *err)
{
	sw_text path = {0};
	*l = (library){.folder = folder};
	sw_text_addf(&path, "%s/programs.json", folder);
	sw_status status = sw_json_read(path.data, &l->index, err);
	if (status == SW_OK && !json_is_array(l->index))
		status = sw_fail(err, SW_ERR_INPUT, "%s: expected a list of programs", path.data);
	sw_text_clear(&path);
	return status;
}

void library_close(library *l)
{
	for (size_t i = 0; i < l->subjects.len; i++) {
		sw_sidecar_clear(&l->subjects.data[i]->sidecar);
		sw_program_free(l->subjects.data[i]->program);
		free(l->subjects.data[i]);
	}
	sw_vec_clear(&l->subjects);
	json_decref(l->index);
}

/* Return whether each of the program's columns is in the row, with the same text. */
static bool matches(json_t *columns, const table *t, int32_t row)
{
	const char *key;
	json_t *value;
	json_object_foreach(columns, key, value)
	{
		const char *cell = table_cell(t, row, key), *text = json_string_value(value);
		if (!cell || !text || strcmp(cell, text) != 0)
			return false;
	}
	return json_object_size(columns) > 0;
}

static sw_status read_subject(library *l, const char *path, subject **s, sw_error *err)
{
	subject *new = sw_alloc(sizeof(*new));
	*new = (subject){0};
	snprintf(new->path, sizeof(new->path), "%s", path);
	sw_status status = sw_read_program(path, &new->program, err);
	if (status == SW_OK)
		status = sw_sidecar_find(path, new->program, &new->sidecar, err);
	sw_vec_push(&l->subjects, new);
	*s = new;
	return status;
}

static sw_status open_subject(library *l, const char *name, subject **s, sw_error *err)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s.hlo.gz", l->folder, name);
	for (size_t i = 0; i < l->subjects.len; i++)
		if (!strcmp(l->subjects.data[i]->path, path)) {
			*s = l->subjects.data[i];
			return SW_OK;
		}
	return read_subject(l, path, s, err);
}

sw_status library_find(library *l, const table *t, int32_t row, subject **s, sw_error *err)
{
	size_t i;
	json_t *entry;
	json_array_foreach(l->index, i, entry)
	{
		const char *name = json_string_value(json_object_get(entry, "program"));
		if (name && matches(json_object_get(entry, "columns"), t, row))
			return open_subject(l, name, s, err);
	}
	return sw_fail(err, SW_NO,
	               "%s:%d: %s has no program of this shape: tools/export_programs.py "
	               "--measured %s --out %s makes one",
	               t->path, row + 2, l->folder, t->path, l->folder);
}
