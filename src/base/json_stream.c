/* JSON in one pass through a window of 64 KiB. Such texts are mostly lists of numbers, so plain
 * integers have a fast path. */
#include "base/base.h"

#include <limits.h>
#include <string.h>

#define WINDOW ((size_t)64 << 10) /* bytes */
/* Bytes that can be looked at from the start of a token; zeros follow the end of the text. */
#define AHEAD 32
#define MAX_DEPTH 64    /* of nested objects and arrays */
#define KEY_CAPACITY 40 /* bytes of a key, with its zero */

typedef struct level {
	char close; /* the character that ends it: ']' or '}' */
	bool fresh; /* nothing was read from it yet */
	int64_t item;
	char key[KEY_CAPACITY];
} level;

struct sw_json_stream {
	sw_source *source;
	sw_error *err;
	sw_status status;
	bool all_read;
	const char *at, *end;       /* the unread part of the window; *end is a zero */
	int64_t before, line_start; /* offsets in the text of the window and of the current line */
	int line, depth;
	level levels[MAX_DEPTH];
	char window[WINDOW + AHEAD];
};

/* ---- errors ----------------------------------------------------------------------------- */

static int64_t offset(const sw_json_stream *s)
{
	return s->before + (s->at - s->window);
}

static sw_json_place here(const sw_json_stream *s)
{
	int64_t column = offset(s) - s->line_start + 1;
	return (sw_json_place){s->line, (int)SW_MIN(column, INT_MAX)};
}

static void add_key(sw_text *text, const char *key)
{
	for (; *key; key++)
		sw_text_addf(text, "%c", *key > ' ' && *key <= '~' ? *key : '?');
}

/* Add the path of the current value, "problem.edges.costs[17][3]: "; nothing at the top. */
static void add_path(const sw_json_stream *s, sw_text *text)
{
	for (int i = 0; i < s->depth; i++) {
		const level *l = &s->levels[i];
		if (l->close == ']') {
			sw_text_addf(text, "[%lld]", (long long)l->item);
		} else if (l->key[0]) {
			sw_text_add(text, text->len ? "." : "");
			add_key(text, l->key);
		}
	}
	if (text->len)
		sw_text_add(text, ": ");
}

/* Return whether the gzip data are damaged. Damaged gzip data unpack to strange texts, and the
 * error about the gzip data explains those better. */
static bool packing_is_broken(sw_json_stream *s)
{
	size_t got = 1;
	sw_status status = SW_OK;
	while (status == SW_OK && got && sw_source_is_gzip(s->source))
		status = sw_source_read(s->source, s->window, WINDOW, &got, s->err);
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

static bool SW_PRINTF(2, 3) fail(sw_json_stream *s, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	record(s, here(s), true, format, args);
	va_end(args);
	return false;
}

bool sw_json_stream_fail(sw_json_stream *s, const sw_json_place *place, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	record(s, place ? *place : here(s), !place, format, args);
	va_end(args);
	return false;
}

/* ---- the window ------------------------------------------------------------------------- */

/* Move the unread rest to the start of the window and read more of the text behind it. */
static void fill(sw_json_stream *s)
{
	size_t left = (size_t)(s->end - s->at), got = 1;
	s->before += s->at - s->window;
	memmove(s->window, s->at, left);
	while (left < AHEAD && got && !s->status) {
		s->status =
			sw_source_read(s->source, s->window + left, WINDOW - left, &got, s->err);
		left += got;
	}
	s->all_read = !got || s->status;
	s->at = s->window;
	s->end = s->window + left;
	memset(s->window + left, 0, AHEAD);
}

static void look_ahead(sw_json_stream *s)
{
	if (s->end - s->at < AHEAD && !s->all_read)
		fill(s);
}

/* Return the next byte, 0 at the end of the text. */
static char peek(sw_json_stream *s)
{
	if (s->at == s->end && !s->all_read)
		fill(s);
	return *s->at;
}

static bool at_end(sw_json_stream *s)
{
	return !peek(s) && s->at == s->end;
}

static void end_line(sw_json_stream *s)
{
	s->line += s->line < INT_MAX;
	s->line_start = offset(s) + 1;
}

/* Skip white space and return the next byte, 0 at the end of the text. */
static char pass_space(sw_json_stream *s)
{
	for (;; s->at++) {
		char c = peek(s);
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

static bool expected(sw_json_stream *s, const char *what)
{
	char text[16];
	return fail(s, "expected %s, found %s", what, found(s, text));
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
	look_ahead(s);
	const char *at = s->at + 1, *name = *at ? strchr(from, *at) : NULL;
	if (name) {
		*c = to[name - from];
		s->at = at + 1;
		return true;
	}
	const char *after = *at == 'u' ? hex_digits(at + 1, &code) : NULL;
	if (!after && s->end - s->at < 6 && !memchr(s->at, '"', (size_t)(s->end - s->at)))
		return fail(s, "the text ends in a string");
	if (!after)
		return fail(s, "bad escape in a string");
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
		char c = peek(s);
		if (c == '"')
			break;
		if ((unsigned char)c < ' ')
			return fail(s,
			            at_end(s)
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

/* ---- numbers ---------------------------------------------------------------------------- */

#define MAX_DIGITS 24 /* significant digits: more than a 64-bit integer can have */

/* A number is digits x 10^scale, with neither leading nor trailing zeros. */
typedef struct number {
	bool negative, cut; /* cut: further non-zero digits were dropped */
	int n_digits;
	char digits[MAX_DIGITS];
	int64_t scale;
} number;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read one or more digits; each digit behind the point lowers the scale by one. */
static bool take_digits(sw_json_stream *s, number *n, bool behind_point)
{
	if (!is_digit(peek(s)))
		return expected(s, "a digit");
	for (; is_digit(peek(s)); s->at++) {
		bool fits = n->n_digits < MAX_DIGITS, zero = *s->at == '0';
		if (fits && (n->n_digits || !zero))
			n->digits[n->n_digits++] = *s->at;
		n->cut |= !fits && !zero;
		n->scale += (fits ? 0 : 1) - (behind_point ? 1 : 0);
	}
	return true;
}

static bool take_exponent(sw_json_stream *s, number *n)
{
	int64_t exponent = 0;
	s->at++;
	bool negative = peek(s) == '-';
	if (negative || *s->at == '+')
		s->at++;
	if (!is_digit(peek(s)))
		return expected(s, "the digits of an exponent");
	for (; is_digit(peek(s)); s->at++)
		exponent = SW_MIN(exponent * 10 + (*s->at - '0'), 1000000000);
	n->scale += negative ? -exponent : exponent;
	return true;
}

static bool take_number(sw_json_stream *s, number *n)
{
	*n = (number){.negative = peek(s) == '-'};
	s->at += n->negative;
	if (peek(s) == '0') {
		s->at++;
		if (is_digit(peek(s)))
			return fail(s, "a number must not begin with 0");
	} else if (!take_digits(s, n, false)) {
		return false;
	}
	if (peek(s) == '.') {
		s->at++;
		if (!take_digits(s, n, true))
			return false;
	}
	if ((peek(s) | 0x20) == 'e' && !take_exponent(s, n))
		return false;
	while (n->n_digits && n->digits[n->n_digits - 1] == '0' && !n->cut) {
		n->n_digits--;
		n->scale++;
	}
	return true;
}

/* Set *value. Return false if the number is not an integer, or (*large) not one of 64 bits. */
static bool number_value(const number *n, int64_t *value, bool *large)
{
	uint64_t magnitude = 0, most = (uint64_t)INT64_MAX + n->negative;
	*large = false;
	*value = 0;
	if (!n->n_digits)
		return true;
	if (n->scale < 0)
		return false;
	*large = true;
	if (n->n_digits + n->scale > 19)
		return false;
	for (int64_t i = 0; i < n->n_digits + n->scale; i++)
		magnitude = magnitude * 10 + (uint64_t)(i < n->n_digits ? n->digits[i] - '0' : 0);
	*value = n->negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return magnitude <= most;
}

static bool take_any_int(sw_json_stream *s, int64_t *value)
{
	number n;
	bool large;
	sw_json_place place = here(s);
	if (*s->at != '-' && !is_digit(*s->at))
		return expected(s, "an integer");
	if (!take_number(s, &n))
		return false;
	if (number_value(&n, value, &large))
		return true;
	s->at -= SW_MIN(offset(s) - s->line_start + 1 - place.column, s->at - s->window);
	return fail(s, large ? "this number is beyond 64 bits: choose a larger unit"
	                     : "expected an integer, found a number with a fraction: choose a "
	                       "smaller unit");
}

/* Load eight bytes, the first in the lowest place, on a machine of any byte order. */
static inline uint64_t load_eight(const char *at)
{
	const unsigned char *b = (const unsigned char *)at;
	return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
	       (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
	       (uint64_t)b[7] << 56;
}

/* Combine eight digits 0 to 9, one per byte, the first in the lowest place: pairs, then fours, then
 * all eight (Lemire, "Number parsing at a gigabyte per second", 2021, section 3). */
static inline uint64_t join_eight(uint64_t digits)
{
	const uint64_t pair = UINT64_C(0x000000ff000000ff);
	digits = digits * 10 + (digits >> 8);
	return ((digits & pair) * UINT64_C(0x000f424000000064) +
	        (digits >> 16 & pair) * UINT64_C(0x0000271000000001)) >>
	       32;
}

/* Set the top bit of each byte that is more than 9. The bits above the first such byte may be
 * wrong. */
static inline uint64_t mark_others(uint64_t digits)
{
	return ((digits + UINT64_C(0x7676767676767676)) | digits) & UINT64_C(0x8080808080808080);
}

/* Read an integer without sign, fraction or exponent that is followed by a comma or bracket. Return
 * its end, or NULL if it has another form. At least AHEAD bytes must be readable. There are no
 * branches that depend on the number of digits up to 7. */
static inline const char *plain_int(const char *at, int64_t *value)
{
	static const uint32_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
	const char *p = at;
	uint64_t v = 0, digits, others;
	while (!(others = mark_others(digits = load_eight(p) ^ UINT64_C(0x3030303030303030)))) {
		v = v * 100000000 + join_eight(digits);
		p += 8;
		if (p - at > 16)
			return NULL;
	}
	int left = __builtin_ctzll(others) / 8;
	if (left)
		v = v * power[left] + join_eight(digits << (64 - 8 * left));
	p += left;
	*value = (int64_t)v;
	bool plain = p > at && p - at <= 19 && v <= INT64_MAX && (*at != '0' || p - at == 1);
	return plain && (*p == ',' || *p == ']') ? p : NULL;
}

bool sw_json_take_int(sw_json_stream *s, int64_t *value)
{
	if (s->status)
		return false;
	pass_space(s);
	look_ahead(s);
	const char *after = plain_int(s->at, value);
	if (!after)
		return take_any_int(s, value);
	s->at = after;
	return true;
}

/* Read plain ",17" items as long as the window holds them; take_any_int reads the rest. */
static void take_plain_ints(sw_json_stream *s, sw_numbers *list)
{
	const char *at = s->at, *after;
	int64_t value;
	while (s->end - at > AHEAD && *at == ',' && (after = plain_int(at + 1, &value))) {
		sw_vec_push(list, value);
		at = after;
	}
	s->at = at;
}

bool sw_json_take_ints(sw_json_stream *s, sw_numbers *list)
{
	int64_t value;
	list->len = 0;
	if (!sw_json_enter_array(s))
		return false;
	level *l = &s->levels[s->depth - 1];
	while (sw_json_next_item(s)) {
		if (!sw_json_take_int(s, &value))
			return false;
		sw_vec_push(list, value);
		take_plain_ints(s, list);
		l->item = (int64_t)list->len - 1;
	}
	return s->status == SW_OK;
}

/* ---- objects and arrays ----------------------------------------------------------------- */

static bool enter(sw_json_stream *s, char open, char close, const char *what)
{
	if (s->status)
		return false;
	if (pass_space(s) != open)
		return expected(s, what);
	if (s->depth == MAX_DEPTH)
		return fail(s, "nested more than %d deep", MAX_DEPTH);
	level *l = &s->levels[s->depth++];
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
	level *l = &s->levels[s->depth - 1];
	char c = pass_space(s);
	if (c == l->close) {
		s->at++;
		s->depth--;
		return false;
	}
	if (!l->fresh && c != ',')
		return expected(s, l->close == ']' ? "',' or ']'" : "',' or '}'");
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
	level *l = &s->levels[s->depth - 1];
	*key = l->key;
	if (pass_space(s) != '"')
		return expected(s, "a key in quotes");
	if (!take_string(s, l->key, KEY_CAPACITY))
		return false;
	if (pass_space(s) != ':')
		return expected(s, "':' after the key");
	s->at++;
	return true;
}

/* ---- other values ----------------------------------------------------------------------- */

static bool take_word(sw_json_stream *s, const char *word)
{
	for (; *word; word++, s->at++)
		if (peek(s) != *word)
			return fail(s, at_end(s) ? "the text ends in a word"
			                         : "expected true, false or null");
	return true;
}

bool sw_json_take_null(sw_json_stream *s)
{
	return !s->status && pass_space(s) == 'n' && take_word(s, "null");
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

/* Skip a value. Recursive through objects and arrays, at most MAX_DEPTH deep. */
bool sw_json_skip(sw_json_stream *s)
{
	char nothing[1];
	number n;
	if (s->status)
		return false;
	char c = pass_space(s);
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
		return c == '-' || is_digit(c) ? take_number(s, &n) : expected(s, "a value");
	}
}

bool sw_json_finish(sw_json_stream *s)
{
	if (s->status)
		return false;
	pass_space(s);
	return at_end(s) ? s->status == SW_OK : expected(s, "the end of the text");
}

sw_json_place sw_json_stream_place(sw_json_stream *s)
{
	if (!s->status)
		pass_space(s);
	return here(s);
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
