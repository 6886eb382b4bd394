/* Print results, remarks and errors. */
#define _GNU_SOURCE /* vasprintf */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_speaks(const cli *c)
{
	return !c->transport || c->transport->rank == 0;
}

/* Return whether all lines are printable, so that they are shown as they are. */
static bool is_printable(const sw_text *text)
{
	for (size_t at = 0; at < text->len; at++) {
		at += sw_printable_length(text->data + at, text->len - at);
		if (at < text->len && text->data[at] != '\n' && text->data[at] != '\t')
			return false;
	}
	return true;
}

/* What is printable takes no memory, which may be short once a file was written. */
void cli_print(const cli *c, sw_text *text)
{
	if (cli_speaks(c) && !c->values.json && text->len && is_printable(text)) {
		fwrite(text->data, 1, text->len, stdout);
	} else if (cli_speaks(c) && !c->values.json && text->len) {
		sw_text shown = {0};
		sw_text_add_printable(&shown, text->data, true);
		fwrite(shown.data, 1, shown.len, stdout);
		sw_text_clear(&shown);
	}
	sw_text_clear(text);
}

void cli_note(const cli *c, const char *format, ...)
{
	if (!cli_speaks(c) || c->values.quiet)
		return;
	va_list args;
	char *line = NULL;
	sw_text shown = {0};
	va_start(args, format);
	if (vasprintf(&line, format, args) >= 0)
		sw_text_add_printable(&shown, line, true);
	va_end(args);
	fprintf(stderr, "shardwright: %s\n", shown.data ? shown.data : "");
	sw_text_clear(&shown);
	free(line);
}

/* Is it one and the same file? */
static bool same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;
	return a && b && stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && S_ISREG(of_a.st_mode) &&
	       of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* The options that name files: those that are read, with lists of [NAME=]FILE, and written. A folder
 * stands for the files directly in it. */
#define AT(member) offsetof(cli_values, member)
static const size_t read_files[] = {AT(cluster), AT(pin),  AT(sync), AT(diff),
                                    AT(load),    AT(eval), AT(to),   AT(costs)};
static const size_t read_lists[] = {AT(data), AT(eval_data)};
static const size_t written_files[] = {AT(output), AT(trace), AT(log),
                                       AT(plot),   AT(ways),  AT(trials_file)};

static const char *value_at(const cli *c, size_t offset)
{
	return *(const char *const *)((const char *)&c->values + offset);
}

/* Is the file the other one, or directly in it? */
static bool is_of(const char *file, const char *other)
{
	struct stat of_folder, of_other;
	const char *slash = strrchr(file, '/');
	if (same_file(file, other))
		return true;
	if (!other || stat(other, &of_other) != 0 || !S_ISDIR(of_other.st_mode))
		return false;
	sw_text folder = {0};
	sw_text_addf(&folder, "%.*s.", slash ? (int)(slash - file) + 1 : 0, file);
	bool inside = stat(folder.data, &of_folder) == 0 && of_folder.st_dev == of_other.st_dev &&
	              of_folder.st_ino == of_other.st_ino;
	sw_text_clear(&folder);
	return inside && access(file, F_OK) == 0;
}

static bool is_sidecar_of(const char *path, const char *program)
{
	sw_text sidecar = {0};
	if (program)
		sw_sidecar_path(program, &sidecar);
	bool is = same_file(path, sidecar.data);
	sw_text_clear(&sidecar);
	return is;
}

/* Return the input of the command that this output would replace, NULL: none. */
static const char *replaced_input(const cli *c, const char *path)
{
	if (is_of(path, c->argument))
		return c->argument;
	for (size_t i = 0; i < SW_COUNT(read_files); i++)
		if (is_of(path, value_at(c, read_files[i])))
			return value_at(c, read_files[i]);
	for (size_t i = 0; i < SW_COUNT(read_lists); i++) {
		const cli_list *list = (const cli_list *)((const char *)&c->values + read_lists[i]);
		for (size_t k = 0; k < list->len; k++) {
			const char *name = strchr(list->data[k], '=');
			if (same_file(path, list->data[k]) || (name && same_file(path, name + 1)))
				return list->data[k];
		}
	}
	return is_sidecar_of(path, c->argument) || is_sidecar_of(path, c->values.eval)
	               ? "a program's sidecar"
	               : NULL;
}

sw_status cli_check_spared(const cli *c, const char *program, sw_error *err)
{
	for (size_t i = 0; i < SW_COUNT(written_files); i++) {
		const char *path = value_at(c, written_files[i]);
		if (path && (same_file(path, program) || is_sidecar_of(path, program)))
			return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
			                  "cannot write: this file is an input, of the plan's "
			                  "program %s; choose another name",
			                  program);
	}
	return SW_OK;
}

/* Does another option name the same file to write, which may not be there yet? */
static bool is_written_twice(const cli *c, const char *path)
{
	int count = 0;
	for (size_t i = 0; i < SW_COUNT(written_files); i++) {
		const char *other = value_at(c, written_files[i]);
		count += other && (!strcmp(path, other) || same_file(path, other));
	}
	return count > 1;
}

sw_status cli_check_writable(const cli *c, const char *path, sw_error *err)
{
	if (!path || strcmp(path, "-") == 0 || !cli_speaks(c))
		return SW_OK;
	const char *input = replaced_input(c, path);
	if (input)
		return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
		                  "cannot write: this file is an input, %s; choose another name",
		                  input);
	if (is_written_twice(c, path))
		return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
		                  "cannot write: two options name this file; choose another name "
		                  "for one of them");
	int reason = sw_file_why_not_writable(path);
	return reason ? sw_fail_at(err, SW_ERR_IO, path, 0, 0, "cannot write: %s", strerror(reason))
	              : SW_OK;
}

static json_t *error_json(const sw_error *err)
{
	return json_pack("{s:{s:s, s:s, s:s, s:i, s:i}}", "error", "code",
	                 sw_status_name(err->code), "message", err->message, "file", err->file,
	                 "line", err->line, "column", err->column);
}

void cli_print_error(const cli *c, bool json, const sw_error *err)
{
	if (!cli_speaks(c))
		return;
	sw_text place = {0};
	if (err->file[0]) {
		sw_text_add_printable(&place, err->file, false);
		if (err->line)
			sw_text_addf(&place, ":%d", err->line);
		if (err->line && err->column)
			sw_text_addf(&place, ":%d", err->column);
		sw_text_add(&place, ": ");
	}
	fprintf(stderr, "shardwright: %s%s\n", place.data ? place.data : "", err->message);
	sw_text_clear(&place);
	json_t *object = json ? error_json(err) : NULL;
	/* a name that is not UTF-8 can't be printed as JSON */
	if (json && !object)
		object = json_pack("{s:{s:s, s:s}}", "error", "code", sw_status_name(err->code),
		                   "message", "see standard error");
	if (object) {
		json_dumpf(object, stdout, JSON_INDENT(1));
		putchar('\n');
		json_decref(object);
	}
	fflush(NULL);
}

json_t *cli_json_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}
