/* Print results, remarks and errors. */
#define _GNU_SOURCE /* vasprintf */
#include "cli.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

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

/* Return the input of the command that this output would replace, NULL: none. */
static const char *replaced_input(const cli *c, const char *path)
{
	const cli_values *v = &c->values;
	const char *inputs[] = {c->argument, v->cluster, v->pin, v->diff};
	for (size_t i = 0; i < SW_COUNT(inputs); i++)
		if (same_file(path, inputs[i]))
			return inputs[i];
	for (size_t i = 0; i < v->data.len; i++)
		if (same_file(path, v->data.data[i]))
			return v->data.data[i];
	sw_text sidecar = {0};
	if (c->argument)
		sw_sidecar_path(c->argument, &sidecar);
	bool is_sidecar = same_file(path, sidecar.data);
	sw_text_clear(&sidecar);
	return is_sidecar ? "the program's sidecar" : NULL;
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
