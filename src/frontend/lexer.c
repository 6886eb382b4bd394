/* The cursor; lexer.h describes it. */
#include "frontend/lexer.h"

#include "frontend/decimal.h"

#include <stdlib.h>
#include <string.h>

#define S SW_CHAR_SPACE
#define W SW_CHAR_WORD
#define D (SW_CHAR_WORD | SW_CHAR_DIGIT)

const unsigned char sw_char_classes[256] = {
	['\t'] = S, ['\n'] = S, ['\v'] = S, ['\f'] = S, ['\r'] = S, [' '] = S, ['-'] = W, ['.'] = W,
	['_'] = W,  ['0'] = D,  ['1'] = D,  ['2'] = D,  ['3'] = D,  ['4'] = D, ['5'] = D, ['6'] = D,
	['7'] = D,  ['8'] = D,  ['9'] = D,  ['a'] = W,  ['b'] = W,  ['c'] = W, ['d'] = W, ['e'] = W,
	['f'] = W,  ['g'] = W,  ['h'] = W,  ['i'] = W,  ['j'] = W,  ['k'] = W, ['l'] = W, ['m'] = W,
	['n'] = W,  ['o'] = W,  ['p'] = W,  ['q'] = W,  ['r'] = W,  ['s'] = W, ['t'] = W, ['u'] = W,
	['v'] = W,  ['w'] = W,  ['x'] = W,  ['y'] = W,  ['z'] = W,  ['A'] = W, ['B'] = W, ['C'] = W,
	['D'] = W,  ['E'] = W,  ['F'] = W,  ['G'] = W,  ['H'] = W,  ['I'] = W, ['J'] = W, ['K'] = W,
	['L'] = W,  ['M'] = W,  ['N'] = W,  ['O'] = W,  ['P'] = W,  ['Q'] = W, ['R'] = W, ['S'] = W,
	['T'] = W,  ['U'] = W,  ['V'] = W,  ['W'] = W,  ['X'] = W,  ['Y'] = W, ['Z'] = W,
};

#undef S
#undef W
#undef D

void sw_lex_init(sw_lexer *lexer, const char *text, size_t length, const char *file, sw_error *err)
{
	*lexer = (sw_lexer){.begin = text,
	                    .end = text + length,
	                    .at = text,
	                    .file = file,
	                    .counted = text,
	                    .line = 1,
	                    .err = err};
}

/* ---- white space, comments and single characters ---------------------------------------- */

static bool skip_comment(sw_lexer *lexer)
{
	const char *at = lexer->at, *end = lexer->end;
	if (end - at < 2 || at[0] != '/' || (at[1] != '*' && at[1] != '/'))
		return false;
	bool block = at[1] == '*';
	for (at += 2; at < end; at++) {
		if (!block && *at == '\n')
			break;
		if (block && *at == '*' && end - at >= 2 && at[1] == '/') {
			at += 2;
			break;
		}
	}
	lexer->at = at;
	return true;
}

void sw_lex_skip_comments(sw_lexer *lexer)
{
	while (skip_comment(lexer))
		while (lexer->at < lexer->end && sw_char_is(*lexer->at, SW_CHAR_SPACE))
			lexer->at++;
}

bool sw_lex_take_text(sw_lexer *lexer, const char *text)
{
	size_t length = strlen(text);
	sw_lex_skip(lexer);
	if ((size_t)(lexer->end - lexer->at) < length || memcmp(lexer->at, text, length) != 0)
		return false;
	lexer->at += length;
	return true;
}

sw_status sw_lex_expect(sw_lexer *lexer, char c, const char *what)
{
	if (sw_lex_take(lexer, c))
		return SW_OK;
	char quoted[] = {'\'', c, '\'', '\0'};
	return sw_lex_expected(lexer, what ? what : quoted);
}

sw_status sw_lex_expect_text(sw_lexer *lexer, const char *text)
{
	if (sw_lex_take_text(lexer, text))
		return SW_OK;
	char quoted[32];
	snprintf(quoted, sizeof(quoted), "'%s'", text);
	return sw_lex_expected(lexer, quoted);
}

/* ---- words and numbers ------------------------------------------------------------------ */

sw_span sw_lex_peek_word(sw_lexer *lexer)
{
	sw_lex_skip(lexer);
	const char *at = lexer->at, *end = lexer->end;
	while (at < end && sw_char_is(*at, SW_CHAR_WORD))
		at++;
	if (at > lexer->at && at < end && at[-1] == '-' && *at == '>')
		at--;
	return (sw_span){lexer->at, (size_t)(at - lexer->at)};
}

sw_span sw_lex_word(sw_lexer *lexer)
{
	sw_span word = sw_lex_peek_word(lexer);
	lexer->at += word.length;
	return word;
}

sw_status sw_lex_name(sw_lexer *lexer, const char *what, sw_span *name)
{
	sw_lex_take(lexer, '%');
	*name = sw_lex_word(lexer);
	return name->length ? SW_OK : sw_lex_expected(lexer, what);
}

sw_status sw_lex_int_here(sw_lexer *lexer, int64_t *value)
{
	const char *start = lexer->at, *at = start, *end = lexer->end;
	bool negative = at < end && *at == '-';
	at += negative;
	if (at == end || !sw_char_is(*at, SW_CHAR_DIGIT))
		return sw_lex_expected(lexer, "an integer");
	uint64_t magnitude = 0, limit = (uint64_t)INT64_MAX + negative;
	for (; at < end && sw_char_is(*at, SW_CHAR_DIGIT); at++) {
		uint64_t digit = (uint64_t)(*at - '0');
		if (magnitude > (limit - digit) / 10)
			return sw_lex_fail(lexer, start, "the integer does not fit 64 bits");
		magnitude = magnitude * 10 + digit;
	}
	lexer->at = at;
	*value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return SW_OK;
}

sw_status sw_lex_int(sw_lexer *lexer, int64_t *value)
{
	sw_lex_skip(lexer);
	return sw_lex_int_here(lexer, value);
}

sw_status sw_lex_real(sw_lexer *lexer, double *value)
{
	sw_lex_skip(lexer);
	size_t used = sw_decimal_read(lexer->at, lexer->end, value);
	if (!used)
		return sw_lex_expected(lexer, "a number");
	lexer->at += used;
	return SW_OK;
}

sw_status sw_lex_bool(sw_lexer *lexer, bool *value)
{
	sw_span word = sw_lex_peek_word(lexer);
	bool is_true = sw_span_is(word, "true") || sw_span_is(word, "1");
	if (!is_true && !sw_span_is(word, "false") && !sw_span_is(word, "0"))
		return sw_lex_expected(lexer, "true or false");
	lexer->at += word.length;
	*value = is_true;
	return SW_OK;
}

/* ---- values ----------------------------------------------------------------------------- */

/* Return the place behind the quote that closes the string at `at`; NULL if none does. */
static const char *skip_string(const char *at, const char *end)
{
	char quote = *at;
	for (at++; at < end; at++) {
		if (*at == quote)
			return at + 1;
		if (*at == '\\' && at + 1 < end)
			at++;
	}
	return NULL;
}

sw_status sw_lex_string(sw_lexer *lexer, sw_span *raw)
{
	if (sw_lex_peek(lexer) != '"')
		return sw_lex_expected(lexer, "a string in double quotes");
	const char *after = skip_string(lexer->at, lexer->end);
	if (!after)
		return sw_lex_fail(lexer, lexer->at,
		                   "expected '\"' to close this string, found the end of the text");
	*raw = (sw_span){lexer->at + 1, (size_t)(after - lexer->at - 2)};
	lexer->at = after;
	return SW_OK;
}

static char closing(char c)
{
	return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '\0';
}

/* Move over a string, a comment or a character inside of brackets. */
static sw_status skip_step(sw_lexer *lexer)
{
	char c = *lexer->at;
	if (c == '/' && skip_comment(lexer))
		return SW_OK;
	if (c != '"' && c != '\'') {
		lexer->at++;
		return SW_OK;
	}
	const char *after = skip_string(lexer->at, lexer->end);
	if (!after)
		return sw_lex_fail(lexer, lexer->at,
		                   "expected %c to close this string, found the end of the text",
		                   c);
	lexer->at = after;
	return SW_OK;
}

sw_status sw_lex_balanced(sw_lexer *lexer, sw_span *raw)
{
	char open[SW_LEX_MAX_DEPTH];
	int depth = 0;
	const char *start = lexer->at;
	while (lexer->at < lexer->end) {
		char c = *lexer->at;
		if (closing(c)) {
			if (depth == SW_LEX_MAX_DEPTH)
				return sw_lex_fail(lexer, lexer->at, "brackets nest deeper than %d",
				                   SW_LEX_MAX_DEPTH);
			open[depth++] = closing(c);
		} else if (c == ')' || c == ']' || c == '}') {
			if (depth == 0 || open[depth - 1] != c)
				return sw_lex_fail(lexer, lexer->at, "expected '%c', found '%c'",
				                   depth ? open[depth - 1] : '{', c);
			if (--depth == 0) {
				lexer->at++;
				*raw = (sw_span){start, (size_t)(lexer->at - start)};
				return SW_OK;
			}
		}
		SW_TRY(skip_step(lexer));
	}
	return sw_lex_fail(lexer, start,
	                   "expected '%c' to close this bracket, found the end of the text",
	                   closing(*start));
}

/* Return whether a value continues with c, right behind a part of it. */
static bool value_goes_on(char c)
{
	return sw_char_is(c, SW_CHAR_WORD) || closing(c) || strchr("<>=\"':|+*@#$%&!?~^", c);
}

sw_status sw_lex_value(sw_lexer *lexer, sw_span *raw)
{
	const char *start = (sw_lex_skip(lexer), lexer->at);
	const char *end = start;
	while (lexer->at < lexer->end && *lexer->at && value_goes_on(*lexer->at)) {
		sw_span part;
		if (closing(*lexer->at))
			SW_TRY(sw_lex_balanced(lexer, &part));
		else
			SW_TRY(skip_step(lexer));
		end = lexer->at;
		if (sw_lex_peek(lexer) != '{') /* `mesh['x'=2] {'x'}` is one value */
			lexer->at = end;
	}
	if (end == start)
		return sw_lex_expected(lexer, "a value");
	*raw = (sw_span){start, (size_t)(end - start)};
	return SW_OK;
}

/* Read up to `max` digits of a base. */
static size_t escaped_digits(const char *at, const char *end, int base, int max, unsigned *value)
{
	size_t used = 0;
	for (*value = 0; at + used < end && used < (size_t)max; used++) {
		char c = at[used];
		int digit = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		            : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                   : 99;
		if (digit >= base)
			break;
		*value = *value * (unsigned)base + (unsigned)digit;
	}
	return used;
}

/* Append one escape; `at` is behind the backslash. A zero byte, which C strings cannot hold, is
 * left as it was written. */
static const char *unescape_one(const char *at, const char *end, sw_text *text)
{
	static const char names[] = "nrtabfv", bytes[] = "\n\r\t\a\b\f\v";
	const char *name = *at ? strchr(names, *at) : NULL;
	unsigned value;
	if (name) {
		sw_text_add_n(text, bytes + (name - names), 1);
		return at + 1;
	}
	bool hex = *at == 'x';
	size_t used = hex ? escaped_digits(at + 1, end, 16, 2, &value)
	                  : escaped_digits(at, end, 8, 3, &value);
	if (used && value > 0 && value < 256) {
		char byte = (char)value;
		sw_text_add_n(text, &byte, 1);
		return at + hex + used;
	}
	if (used || hex)
		sw_text_add_n(text, "\\", 1);
	sw_text_add_n(text, at, 1);
	return at + 1;
}

void sw_lex_unescape(sw_span raw, sw_text *text)
{
	const char *at = raw.start, *end = at + raw.length;
	while (at < end) {
		const char *escape = memchr(at, '\\', (size_t)(end - at));
		const char *plain_end = escape && escape + 1 < end ? escape : end;
		sw_text_add_n(text, at, (size_t)(plain_end - at));
		at = plain_end < end ? unescape_one(plain_end + 1, end, text) : end;
	}
}

/* ---- places and errors ------------------------------------------------------------------ */

int sw_lex_line(sw_lexer *lexer, const char *place)
{
	for (const char *at = lexer->counted; at < place; at++) {
		at = memchr(at, '\n', (size_t)(place - at));
		if (!at)
			break;
		lexer->line += lexer->line < INT32_MAX;
	}
	lexer->counted = SW_MAX(place, lexer->counted);
	return lexer->line;
}

static void find_place(const sw_lexer *lexer, const char *place, int *line, int *column)
{
	int64_t lines = 1;
	const char *start = lexer->begin;
	for (const char *at = start; at < place; at++)
		if (*at == '\n') {
			lines++;
			start = at + 1;
		}
	*line = (int)SW_MIN(lines, INT32_MAX);
	*column = (int)SW_MIN(place - start + 1, INT32_MAX);
}

sw_status sw_lex_fail(sw_lexer *lexer, const char *place, const char *format, ...)
{
	char message[512];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	int line, column;
	find_place(lexer, place, &line, &column);
	return sw_fail_at(lexer->err, SW_ERR_INPUT, lexer->file, line, column, "%s", message);
}

sw_status sw_lex_expected(sw_lexer *lexer, const char *what)
{
	sw_lex_skip(lexer);
	const char *place = lexer->at;
	if (place == lexer->end)
		return sw_lex_fail(lexer, place, "expected %s, found the end of the text", what);
	sw_span word = sw_lex_peek_word(lexer);
	if (word.length)
		return sw_lex_fail(lexer, place, "expected %s, found '%.*s'%s", what,
		                   (int)SW_MIN(word.length, 60), word.start,
		                   word.length > 60 ? "..." : "");
	if ((unsigned char)*place < ' ' || (unsigned char)*place >= 0x7f)
		return sw_lex_fail(lexer, place, "expected %s, found the byte 0x%02x", what,
		                   (unsigned char)*place);
	return sw_lex_fail(lexer, place, "expected %s, found '%c'", what, *place);
}
