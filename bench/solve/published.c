/* The table published.tsv. */
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool field_value(const char *text, int64_t *value)
{
	char *end;
	*value = strcmp(text, "-") ? strtoll(text, &end, 10) : -1;
	return !strcmp(text, "-") || *end == '\0';
}

static bool line_parse(const char *line, published_result *k)
{
	char field[5][32];
	int64_t limit;
	if (sscanf(line, "%63s %31s %31s %31s %31s %31s", k->name, field[0], field[1], field[2],
	           field[3], field[4]) != 6)
		return false;
	bool good = field_value(field[0], &limit) && field_value(field[1], &k->contest) &&
	            field_value(field[2], &k->best) && field_value(field[3], &k->bound) &&
	            field_value(field[4], &k->xla);
	k->limit_s = (double)limit;
	return good;
}

sw_status published_read(const char *path, published_list *list, sw_error *err)
{
	FILE *file = fopen(path, "re");
	char line[512];
	sw_status status = SW_OK;
	if (!file)
		return sw_fail_at(err, SW_ERR_IO, path, 0, 0, "cannot be opened");
	for (int n = 1; status == SW_OK && fgets(line, sizeof line, file); n++) {
		published_result k;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (line_parse(line, &k))
			sw_vec_push(list, k);
		else
			status = sw_fail_at(err, SW_ERR_INPUT, path, n, 1,
			                    "expected a name and five numbers or '-'");
	}
	fclose(file);
	return status;
}

const published_result *published_find(const published_list *list, const char *stem)
{
	for (size_t i = 0; i < list->len; i++) {
		const char *name = list->data[i].name, *dash = strrchr(name, '-');
		if (!strcmp(stem, name) || (dash && !strcmp(stem, dash + 1)))
			return &list->data[i];
	}
	return NULL;
}
