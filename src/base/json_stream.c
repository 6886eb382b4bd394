/*
 * JSON in one pass through a window of 64 KiB: objects, arrays and strings are read here, numbers
 * in json_numbers.c.
 */
#include "base/json_stream.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ----------------------------------------------------------------------------- */

int64_t sw_json_offset(const sw_json_stream *s)
{
	return s->before + (s->at - s->window);
}

sw_json_place sw_json_here(const sw_json_stream *s)
{
	int64_t column = sw_json_offset(s) - s->line_start + 1;
	return (sw_json_place){s->line, (int)SW_MIN(column, INT_MAX)};
}

/* Add the path of the current value, "problem.edges.costs[17][3]: "; nothing at the top. */
static void add_path(const sw_json_stream *s, sw_text *text)
{
	for (int i = 0; i < s->depth; i++) {
		const sw_json_level *l = &s->levels[i];
		if (l->close == ']') {
			sw_text_addf(text, "[%lld]", (long long)l->item);
		} else if (l->key[0]) {
			sw_text_add(text, text->len ? "." : "");
			sw_text_add_printable(text, l->key, false);
		}
	}
	if (text->len)
		sw_text_add(text, ": ");
}

/* How far behind an error gzip data are looked at: a fraction of a second. */
#define MOST_UNPACKED ((size_t)256 << 20)

/* Return whether the gzip data are damaged. Damaged gzip data unpack to strange texts, and the
 * error about the gzip data explains those better. */
static bool packing_is_broken(sw_json_stream *s)
{
	size_t got = 1, seen = 0;
	sw_status status = SW_OK;
	for (; status == SW_OK && got && seen < MOST_UNPACKED && sw_source_is_gzip(s->source);
	     seen += got)
		status = sw_source_read(s->source, s->window, SW_JSON_WINDOW, &got, s->err);
	if (status)
		s->status = status;
	return status != SW_OK;
}

static void record(sw_json_stream *s, sw_json_place place, bool with_path, const char *format,
                   va_list args)
{
	sw_text text = {0};
	char message[400];
	if (s->status)
		return;
	vsnprintf(message, sizeof(message), format, args);
	if (with_path)
		add_path(s, &text);
	if (!packing_is_broken(s))
		s->status = sw_fail_at(s->err, SW_ERR_INPUT, "", place.line, place.column, "%s%s",
		                       text.len ? text.data : "", message);
	sw_text_clear(&text);
	s->at = s->end = s->window;
	s->window[0] = '\0';
	s->all_read = true;
}

bool SW_PRINTF(2, 3) sw_json_fail(sw_json_stream *s, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	record(s, sw_json_here(s), true, format, args);
	va_end(args);
	return false;
}

bool sw_json_stream_fail(sw_json_stream *s, const sw_json_place *place, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	record(s, place ? *place : sw_json_here(s), !place, format, args);
	va_end(args);
	return false;
}

/* ---- the window ------------------------------------------------------------------------- */

void sw_json_fill(sw_json_stream *s)
{
	size_t left = (size_t)(s->end - s->at), got = 1;
	s->before += s->at - s->window;
	memmove(s->window, s->at, left);
	while (left < SW_JSON_AHEAD && got && !s->status) {
		s->status = sw_source_read(s->source, s->window + left, SW_JSON_WINDOW - left, &got,
		                           s->err);
		left += got;
	}
	s->all_read = !got || s->status;
	s->at = s->window;
	s->end = s->window + left;
	memset(s->window + left, 0, SW_JSON_AHEAD);
}

static bool at_end(sw_json_stream *s)
{
	return !sw_json_peek(s) && s->at == s->end;
}

static void end_line(sw_json_stream *s)
{
	s->line += s->line < INT_MAX;
	s->line_start = sw_json_offset(s) + 1;
}

char sw_json_pass_space(sw_json_stream *s)
{
	for (;; s->at++) {
		char c = sw_json_peek(s);
		if (c > ' ' || !(c == ' ' || c == '\t' || c == '\n' || c == '\r'))
			return c;
		if (c == '\n')
			end_line(s);
	}
}

/* Describe what stands at the current place, in words. */
static const char *found(sw_json_stream *s, char text[16])
{
	static const struct {
		char first;
		const char *words;
	} kinds[] = {{'{', "an object"}, {'[', "an array"}, {'"', "a string"},
	             {'t', "true"},      {'f', "false"},    {'n', "null"}};
	char c = *s->at;
	for (size_t i = 0; i < SW_COUNT(kinds); i++)
		if (c == kinds[i].first)
			return kinds[i].words;
	if (at_end(s))
		return "the end of the text";
	if ((c >= '0' && c <= '9') || c == '-')
		return "a number";
	snprintf(text, 16, c > ' ' && c <= '~' ? "'%c'" : "byte 0x%02x", (unsigned char)c);
	return text;
}

bool sw_json_expected(sw_json_stream *s, const char *what)
{
	char text[16];
	return sw_json_fail(s, "expected %s, found %s", what, found(s, text));
}

/* ---- strings ---------------------------------------------------------------------------- */

static const char *hex_digits(const char *at, unsigned *value)
{
	*value = 0;
	for (int i = 0; i < 4; i++, at++) {
		char c = *at, lower = (char)(c | 0x20);
		if (c >= '0' && c <= '9')
			*value = *value * 16 + (unsigned)(c - '0');
		else if (lower >= 'a' && lower <= 'f')
			*value = *value * 16 + (unsigned)(lower - 'a' + 10);
		else
			return NULL;
	}
	return at;
}

/* Read an escape. Keys are only compared with names in ASCII, so every other character is replaced
 * by one that cannot be in such a name. */
static bool take_escape(sw_json_stream *s, char *c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	unsigned code;
	sw_json_look_ahead(s);
	const char *at = s->at + 1, *name = *at ? strchr(from, *at) : NULL;
	if (name) {
		*c = to[name - from];
		s->at = at + 1;
		return true;
	}
	const char *after = *at == 'u' ? hex_digits(at + 1, &code) : NULL;
	if (!after && s->end - s->at < 6 && !memchr(s->at, '"', (size_t)(s->end - s->at)))
		return sw_json_fail(s, "the text ends in a string");
	if (!after)
		return sw_json_fail(s, "bad escape in a string");
	*c = code && code < 0x80 ? (char)code : '\x7f';
	s->at = after;
	return true;
}

/* Read a string; it is cut if it does not fit. */
static bool take_string(sw_json_stream *s, char *out, size_t capacity)
{
	size_t length = 0;
	out[0] = '\0';
	for (s->at++;;) {
		char c = sw_json_peek(s);
		if (c == '"')
			break;
		if ((unsigned char)c < ' ')
			return sw_json_fail(
				s, at_end(s)
					   ? "the text ends in a string"
					   : "control character in a string: write it as \\u00XX");
		if (c == '\\' ? !take_escape(s, &c) : (s->at++, false))
			return false;
		if (length + 1 < capacity)
			out[length++] = c;
		out[length] = '\0';
	}
	s->at++;
	return true;
}

/* ---- objects and arrays ----------------------------------------------------------------- */

static bool enter(sw_json_stream *s, char open, char close, const char *what)
{
	if (s->status)
		return false;
	if (sw_json_pass_space(s) != open)
		return sw_json_expected(s, what);
	if (s->depth == SW_JSON_DEPTH)
		return sw_json_fail(s, "nested more than %d deep", SW_JSON_DEPTH);
	sw_json_level *l = &s->levels[s->depth++];
	l->close = close;
	l->fresh = true;
	l->item = -1;
	l->key[0] = '\0';
	s->at++;
	return true;
}

bool sw_json_enter_object(sw_json_stream *s)
{
	return enter(s, '{', '}', "an object");
}

bool sw_json_enter_array(sw_json_stream *s)
{
	return enter(s, '[', ']', "an array");
}

bool sw_json_next_item(sw_json_stream *s)
{
	if (s->status)
		return false;
	sw_json_level *l = &s->levels[s->depth - 1];
	char c = sw_json_pass_space(s);
	if (c == l->close) {
		s->at++;
		s->depth--;
		return false;
	}
	if (!l->fresh && c != ',')
		return sw_json_expected(s, l->close == ']' ? "',' or ']'" : "',' or '}'");
	if (!l->fresh)
		s->at++;
	l->fresh = false;
	l->item++;
	return true;
}

bool sw_json_next_key(sw_json_stream *s, const char **key)
{
	if (!sw_json_next_item(s))
		return false;
	sw_json_level *l = &s->levels[s->depth - 1];
	*key = l->key;
	if (sw_json_pass_space(s) != '"')
		return sw_json_expected(s, "a key in quotes");
	if (!take_string(s, l->key, SW_JSON_KEY_CAPACITY))
		return false;
	if (sw_json_pass_space(s) != ':')
		return sw_json_expected(s, "':' after the key");
	s->at++;
	return true;
}

/* ---- other values ----------------------------------------------------------------------- */

static bool take_word(sw_json_stream *s, const char *word)
{
	for (; *word; word++, s->at++)
		if (sw_json_peek(s) != *word)
			return sw_json_fail(s, at_end(s) ? "the text ends in a word"
			                                 : "expected true, false or null");
	return true;
}

bool sw_json_take_null(sw_json_stream *s)
{
	return !s->status && sw_json_pass_space(s) == 'n' && take_word(s, "null");
}

static bool skip_object(sw_json_stream *s)
{
	const char *key;
	sw_json_enter_object(s);
	while (sw_json_next_key(s, &key))
		sw_json_skip(s);
	return s->status == SW_OK;
}

static bool skip_array(sw_json_stream *s)
{
	sw_json_enter_array(s);
	while (sw_json_next_item(s))
		sw_json_skip(s);
	return s->status == SW_OK;
}

/* Skip a value. Recursive through objects and arrays, at most SW_JSON_DEPTH deep. */
bool sw_json_skip(sw_json_stream *s)
{
	char nothing[1];
	sw_json_number n;
	if (s->status)
		return false;
	char c = sw_json_pass_space(s);
	switch (c) {
	case '{':
		return skip_object(s);
	case '[':
		return skip_array(s);
	case '"':
		return take_string(s, nothing, sizeof(nothing));
	case 't':
		return take_word(s, "true");
	case 'f':
		return take_word(s, "false");
	case 'n':
		return take_word(s, "null");
	default:
		return c == '-' || sw_json_is_digit(c) ? sw_json_take_number(s, &n)
		                                       : sw_json_expected(s, "a value");
	}
}

bool sw_json_finish(sw_json_stream *s)
{
	if (s->status)
		return false;
	sw_json_pass_space(s);
	return at_end(s) ? s->status == SW_OK : sw_json_expected(s, "the end of the text");
}

sw_json_place sw_json_stream_place(sw_json_stream *s)
{
	if (!s->status)
		sw_json_pass_space(s);
	return sw_json_here(s);
}

/* ---- opening and closing ---------------------------------------------------------------- */

sw_json_stream *sw_json_stream_new(sw_source *source, sw_error *err)
{
	sw_json_stream *s = sw_alloc(sizeof(*s));
	s->source = source;
	s->err = err;
	s->line = 1;
	s->at = s->end = s->window;
	return s;
}

sw_status sw_json_stream_free(sw_json_stream *s)
{
	sw_status status = s->status;
	free(s);
	return status;
}
