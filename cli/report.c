/* Print results, remarks and errors. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* A file is written beside the old one and then renamed to it, so its folder must be writable. */
static int why_not_writable(const char *path)
{
	struct stat info;
	const char *slash = strrchr(path, '/');
	if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
		return EISDIR;
	if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
		return access(path, W_OK) == 0 ? 0 : errno;
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int reason = access(folder, W_OK | X_OK) == 0 ? 0 : errno;
	free(folder);
	return reason;
}

sw_status cli_check_writable(const cli *c, const char *path, sw_error *err)
{
	int reason = path && strcmp(path, "-") && cli_speaks(c) ? why_not_writable(path) : 0;
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
