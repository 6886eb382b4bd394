/*
 * lexer: a cursor over the bytes of a program's text, without tokens made ahead of time.
 *
 * The grammar is regular enough that each rule knows what may follow, so a rule asks the cursor for
 * it: a word, a number, a given character. White space and comments may stand between any two of
 * those, and each of these functions skips them first. The text need not end with a zero. Errors
 * say "expected WHAT, found WHAT IS THERE" with line and column, which are counted only then.
 */
#ifndef SW_FRONTEND_LEXER_H
#define SW_FRONTEND_LEXER_H

#include "base/base.h"

typedef struct sw_span {
	const char *start;
	size_t length;
} sw_span;

typedef struct sw_lexer {
	const char *begin, *end, *at;
	const char *file;
	const char *counted; /* the place that `line` belongs to */
	int line;
	sw_error *err;
} sw_lexer;

#define SW_LEX_MAX_DEPTH 256 /* of brackets in a value that is skipped */

enum { SW_CHAR_SPACE = 1, SW_CHAR_WORD = 2, SW_CHAR_DIGIT = 4 };
extern const unsigned char sw_char_classes[256];

static inline bool sw_char_is(char c, int classes)
{
	return (sw_char_classes[(unsigned char)c] & classes) != 0;
}

static inline bool sw_span_is(sw_span span, const char *word)
{
	size_t i = 0;
	while (i < span.length && word[i] && span.start[i] == word[i])
		i++;
	return i == span.length && !word[i];
}

void sw_lex_init(sw_lexer *lexer, const char *text, size_t length, const char *file, sw_error *err);

/* ---- white space, comments and single characters ---------------------------------------- */

/* Skip white space and comments. A comment that is not closed ends the text. */
void sw_lex_skip_comments(sw_lexer *lexer);

static inline void sw_lex_skip(sw_lexer *lexer)
{
	while (lexer->at < lexer->end && sw_char_is(*lexer->at, SW_CHAR_SPACE))
		lexer->at++;
	if (lexer->at < lexer->end && *lexer->at == '/')
		sw_lex_skip_comments(lexer);
}

/* Return the next byte, 0 at the end. */
static inline char sw_lex_here(const sw_lexer *lexer)
{
	return lexer->at < lexer->end ? *lexer->at : '\0';
}

/* Skip white space and comments and return the next character, 0 at the end. */
static inline char sw_lex_peek(sw_lexer *lexer)
{
	sw_lex_skip(lexer);
	return sw_lex_here(lexer);
}

static inline bool sw_lex_take(sw_lexer *lexer, char c)
{
	if (sw_lex_peek(lexer) != c || lexer->at == lexer->end)
		return false;
	lexer->at++;
	return true;
}

/* Take "->", "<=" and similar texts. */
bool sw_lex_take_text(sw_lexer *lexer, const char *text);
/* Take a character, which must be next. what: its description in the message, NULL for the
 * character itself. */
sw_status sw_lex_expect(sw_lexer *lexer, char c, const char *what);
sw_status sw_lex_expect_text(sw_lexer *lexer, const char *text);

/* ---- words, numbers, values ------------------------------------------------------------- */

/* Take a word of letters, digits, '_', '.' and '-', but not the '-' of "->". Its length is 0 if
 * there is none. */
sw_span sw_lex_word(sw_lexer *lexer);
/* Return the next word like sw_lex_word, without moving past it. */
sw_span sw_lex_peek_word(sw_lexer *lexer);
/* Take a word with or without a '%' before it. */
sw_status sw_lex_name(sw_lexer *lexer, const char *what, sw_span *name);
sw_status sw_lex_int(sw_lexer *lexer, int64_t *value);
/* Take an int that begins at the cursor, without white space before it (inside of `3x3` and
 * `0_1`). */
sw_status sw_lex_int_here(sw_lexer *lexer, int64_t *value);
sw_status sw_lex_real(sw_lexer *lexer, double *value);
sw_status sw_lex_bool(sw_lexer *lexer, bool *value);
/* Take a string and return the text between the quotes, with its escapes unchanged. */
sw_status sw_lex_string(sw_lexer *lexer, sw_span *raw);
/* Take the text from an opening bracket, which must be next, to the one that closes it, both
 * included. */
sw_status sw_lex_balanced(sw_lexer *lexer, sw_span *raw);
/* Take any value: words, strings and bracketed parts, up to a comma or another character that ends
 * it. */
sw_status sw_lex_value(sw_lexer *lexer, sw_span *raw);

/* Append a string to text with \" \\ \' \n \r \t, \ooo and \xhh replaced by the bytes they stand
 * for. */
void sw_lex_unescape(sw_span raw, sw_text *text);

/* ---- places and errors ------------------------------------------------------------------ */

/* Return the line of a place, which must be behind all places of earlier calls. All calls together
 * are linear in the text. */
int sw_lex_line(sw_lexer *lexer, const char *place);
/* Fail with SW_ERR_INPUT at `place`. */
sw_status sw_lex_fail(sw_lexer *lexer, const char *place, const char *format, ...) SW_PRINTF(3, 4);
/* Fail with "expected WHAT, found ..." at the next character that is not skipped. */
sw_status sw_lex_expected(sw_lexer *lexer, const char *what);

#endif
