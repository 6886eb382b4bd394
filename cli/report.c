/* Saying things: results, remarks, errors. */
#include "cli.h"

#include <string.h>

bool cli_speaks(const cli *c)
{
	return !c->transport || c->transport->rank == 0;
}

void cli_print(const cli *c, sw_text *text)
{
	if (cli_speaks(c) && !c->values.json && text->len)
		fwrite(text->data, 1, text->len, stdout);
	sw_text_clear(text);
}

void cli_note(const cli *c, const char *format, ...)
{
	if (!cli_speaks(c) || c->values.quiet)
		return;
	va_list args;
	va_start(args, format);
	fputs("shardwright: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static json_t *error_json(const sw_error *err)
{
	return json_pack("{s:{s:s, s:s, s:s, s:i, s:i}}", "error", "code", sw_status_name(err->code),
	                 "message", err->message, "file", err->file, "line", err->line, "column",
	                 err->column);
}

void cli_print_error(const cli *c, bool json, const sw_error *err)
{
	if (!cli_speaks(c))
		return;
	sw_text place = {0};
	if (err->file[0]) {
		sw_text_add(&place, err->file);
		if (err->line)
			sw_text_addf(&place, ":%d", err->line);
		if (err->line && err->column)
			sw_text_addf(&place, ":%d", err->column);
		sw_text_add(&place, ": ");
	}
	fprintf(stderr, "shardwright: %s%s\n", place.data ? place.data : "", err->message);
	sw_text_clear(&place);
	json_t *object = json ? error_json(err) : NULL;
	/* A name that is no UTF-8 has no JSON. */
	if (json && !object)
		object = json_pack("{s:{s:s, s:s}}", "error", "code", sw_status_name(err->code), "message",
		                   "see standard error");
	if (object) {
		json_dumpf(object, stdout, JSON_INDENT(1));
		putchar('\n');
		json_decref(object);
	}
	fflush(NULL);
}
