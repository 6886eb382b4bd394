/* Errors: one line each, kept in the caller's sw_error. */
#include "base/base.h"

#include <string.h>

/* Make all bytes printable, because an error is one line even when it quotes a key or a name that
 * holds a line break or moves the cursor. */
static void keep_to_one_line(char *message, size_t capacity)
{
	size_t length = strlen(message);
	if (sw_printable_length(message, length) == length)
		return;
	sw_text text = {0};
	sw_text_add_printable(&text, message, false);
	snprintf(message, capacity, "%s", text.data);
	sw_text_clear(&text);
}

/* Fill *err. The arguments may point into *err (an error that is being reworded), so they are read
 * in full before anything is overwritten. */
static sw_status fill(sw_error *err, sw_status code, const char *file, int line, int column,
                      const char *format, va_list args)
{
	if (!err)
		return code;
	sw_error fresh = {.code = code, .line = line, .column = column};
	vsnprintf(fresh.message, sizeof(fresh.message), format, args);
	keep_to_one_line(fresh.message, sizeof(fresh.message));
	snprintf(fresh.file, sizeof(fresh.file), "%s", file ? file : "");
	*err = fresh;
	return code;
}

sw_status sw_fail(sw_error *err, sw_status code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fill(err, code, "", 0, 0, format, args);
	va_end(args);
	return code;
}

sw_status sw_fail_at(sw_error *err, sw_status code, const char *file, int line, int column,
                     const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fill(err, code, file, line, column, format, args);
	va_end(args);
	return code;
}

sw_status sw_error_in_file(sw_error *err, sw_status code, const char *file)
{
	if (err && code != SW_OK && file && !err->file[0])
		snprintf(err->file, sizeof(err->file), "%s", file);
	return code;
}

const char *sw_status_name(sw_status code)
{
	static const char *const names[] = {
		[SW_OK] = "ok",
		[SW_NO] = "no",
		[SW_ERR_INPUT] = "bad-input",
		[SW_ERR_IO] = "io",
		[SW_ERR_INTERNAL] = "internal",
	};
	return (size_t)code < SW_COUNT(names) ? names[code] : "unknown";
}

int sw_status_exit_code(sw_status code)
{
	return code == SW_OK ? 0 : code == SW_NO ? 1 : 2;
}
