/*
 * lexer: a cursor over the bytes of a program's text, without tokens made ahead of time.
 *
 * The grammar is regular enough that each rule knows what may follow, so the cursor is asked for
 * it: a word, a number, a given character. White space and comments stand between any two of those
 * and are skipped by whoever asks. The text need not end with a zero. Errors say "expected WHAT,
 * found WHAT IS THERE" with line and column, which are counted only then.
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
	const char *counted; /* `line` is that of this place */
	int line;
	sw_error *err;
} sw_lexer;

/* Ends a function that returns sw_status when a step of it fails. */
#define SW_TRY(step)                                                                               \
	do {                                                                                       \
		sw_status try_ = (step);                                                           \
		if (try_ != SW_OK)                                                                 \
			return try_;                                                               \
	} while (0)

#define SW_LEX_MAX_DEPTH 256 /* of brackets in a value that is only skipped */

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

/* A comment that is not closed ends the text. */
void sw_lex_skip_comments(sw_lexer *lexer);

static inline void sw_lex_skip(sw_lexer *lexer)
{
	while (lexer->at < lexer->end && sw_char_is(*lexer->at, SW_CHAR_SPACE))
		lexer->at++;
	if (lexer->at < lexer->end && *lexer->at == '/')
		sw_lex_skip_comments(lexer);
}

/* The next character as it stands; 0 at the end. */
static inline char sw_lex_here(const sw_lexer *lexer)
{
	return lexer->at < lexer->end ? *lexer->at : '\0';
}

/* The next character that is not skipped; 0 at the end. */
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

/* Takes "->", "<=" and the like. */
bool sw_lex_take_text(sw_lexer *lexer, const char *text);
/* what: for the message, NULL for the character itself. */
sw_status sw_lex_expect(sw_lexer *lexer, char c, const char *what);
sw_status sw_lex_expect_text(sw_lexer *lexer, const char *text);

/* ---- words, numbers, values ------------------------------------------------------------- */

/* Letters, digits, '_', '.' and '-', but not the '-' of "->". Length 0 if there is none. */
sw_span sw_lex_word(sw_lexer *lexer);
/* As sw_lex_word, without moving. */
sw_span sw_lex_peek_word(sw_lexer *lexer);
/* A word with a '%' before it or not. */
sw_status sw_lex_name(sw_lexer *lexer, const char *what, sw_span *name);
sw_status sw_lex_int(sw_lexer *lexer, int64_t *value);
/* An int that stands right here: no white space before it (inside of `3x3` and `0_1`). */
sw_status sw_lex_int_here(sw_lexer *lexer, int64_t *value);
sw_status sw_lex_real(sw_lexer *lexer, double *value);
sw_status sw_lex_bool(sw_lexer *lexer, bool *value);
/* What stands between the quotes, escapes as they are. */
sw_status sw_lex_string(sw_lexer *lexer, sw_span *raw);
/* From an opening bracket, which must be next, to the one that closes it, both included. */
sw_status sw_lex_balanced(sw_lexer *lexer, sw_span *raw);
/* Any value: words, strings and bracketed parts, up to a comma or whatever else ends it. */
sw_status sw_lex_value(sw_lexer *lexer, sw_span *raw);

/* Appends to text; \" \\ \' \n \r \t, \ooo and \xhh become the bytes they stand for. */
void sw_lex_unescape(sw_span raw, sw_text *text);

/* ---- places and errors ------------------------------------------------------------------ */

/* Line of a place that lies behind all places asked for before. Linear over the whole text. */
int sw_lex_line(sw_lexer *lexer, const char *place);
/* Fails with SW_ERR_INPUT at `place`. */
sw_status sw_lex_fail(sw_lexer *lexer, const char *place, const char *format, ...) SW_PRINTF(3, 4);
/* "expected WHAT, found ..." at the next thing that is not skipped. */
sw_status sw_lex_expected(sw_lexer *lexer, const char *what);

#endif
