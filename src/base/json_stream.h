/*
 * json_stream: what the files of the JSON stream share. Private to src/base.
 */
#ifndef SW_BASE_JSON_STREAM_H
#define SW_BASE_JSON_STREAM_H

#include "base/base.h"

#define SW_JSON_WINDOW ((size_t)64 << 10) /* bytes */
/* Bytes that can be looked at from the start of a token; zeros follow the end of the text. */
#define SW_JSON_AHEAD 32
#define SW_JSON_DEPTH 64        /* of nested objects and arrays */
#define SW_JSON_KEY_CAPACITY 40 /* bytes of a key, with its zero */

typedef struct sw_json_level {
	char close; /* the character that ends it: ']' or '}' */
	bool fresh; /* nothing was read from it yet */
	int64_t item;
	char key[SW_JSON_KEY_CAPACITY];
} sw_json_level;

struct sw_json_stream {
	sw_source *source;
	sw_error *err;
	sw_status status;
	bool all_read;
	const char *at, *end;       /* the unread part of the window; *end is a zero */
	int64_t before, line_start; /* offsets in the text of the window and of the current line */
	int line, depth;
	sw_json_level levels[SW_JSON_DEPTH];
	char window[SW_JSON_WINDOW + SW_JSON_AHEAD];
};

/* ---- json_stream.c ---------------------------------------------------------------------- */

/* Return the offset of the current byte in the text. */
int64_t sw_json_offset(const sw_json_stream *s);
sw_json_place sw_json_here(const sw_json_stream *s);
/* Record an error at the current place, with the path of the value. Return false. */
bool SW_PRINTF(2, 3) sw_json_fail(sw_json_stream *s, const char *format, ...);
/* The same: `what` was expected, and something else found. */
bool sw_json_expected(sw_json_stream *s, const char *what);
/* Move the unread rest to the start of the window and read more of the text behind it. */
void sw_json_fill(sw_json_stream *s);
/* Skip white space and return the next byte, 0 at the end of the text. */
char sw_json_pass_space(sw_json_stream *s);

static inline void sw_json_look_ahead(sw_json_stream *s)
{
	if (s->end - s->at < SW_JSON_AHEAD && !s->all_read)
		sw_json_fill(s);
}

/* Return the next byte, 0 at the end of the text. */
static inline char sw_json_peek(sw_json_stream *s)
{
	if (s->at == s->end && !s->all_read)
		sw_json_fill(s);
	return *s->at;
}

/* ---- json_numbers.c --------------------------------------------------------------------- */

#define SW_JSON_DIGITS 24 /* significant digits: more than a 64-bit integer can have */

/* A number is digits x 10^scale, with neither leading nor trailing zeros. */
typedef struct sw_json_number {
	bool negative, cut; /* cut: further non-zero digits were dropped */
	int n_digits;
	char digits[SW_JSON_DIGITS];
	int64_t scale;
} sw_json_number;

static inline bool sw_json_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read a number of any form. */
bool sw_json_take_number(sw_json_stream *s, sw_json_number *n);

#endif
