/*
 * Numbers of a JSON stream. Such texts are mostly lists of numbers, so plain integers have a fast
 * path.
 */
#include "base/json_stream.h"

/* Read one or more digits; each digit behind the point lowers the scale by one. */
static bool take_digits(sw_json_stream *s, sw_json_number *n, bool behind_point)
{
	if (!sw_json_is_digit(sw_json_peek(s)))
		return sw_json_expected(s, "a digit");
	for (; sw_json_is_digit(sw_json_peek(s)); s->at++) {
		bool fits = n->n_digits < SW_JSON_DIGITS, zero = *s->at == '0';
		if (fits && (n->n_digits || !zero))
			n->digits[n->n_digits++] = *s->at;
		n->cut |= !fits && !zero;
		n->scale += (fits ? 0 : 1) - (behind_point ? 1 : 0);
	}
	return true;
}

static bool take_exponent(sw_json_stream *s, sw_json_number *n)
{
	int64_t exponent = 0;
	s->at++;
	bool negative = sw_json_peek(s) == '-';
	if (negative || *s->at == '+')
		s->at++;
	if (!sw_json_is_digit(sw_json_peek(s)))
		return sw_json_expected(s, "the digits of an exponent");
	for (; sw_json_is_digit(sw_json_peek(s)); s->at++)
		exponent = SW_MIN(exponent * 10 + (*s->at - '0'), 1000000000);
	n->scale += negative ? -exponent : exponent;
	return true;
}

bool sw_json_take_number(sw_json_stream *s, sw_json_number *n)
{
	*n = (sw_json_number){.negative = sw_json_peek(s) == '-'};
	s->at += n->negative;
	if (sw_json_peek(s) == '0') {
		s->at++;
		if (sw_json_is_digit(sw_json_peek(s)))
			return sw_json_fail(s, "a number must not begin with 0");
	} else if (!take_digits(s, n, false)) {
		return false;
	}
	if (sw_json_peek(s) == '.') {
		s->at++;
		if (!take_digits(s, n, true))
			return false;
	}
	if ((sw_json_peek(s) | 0x20) == 'e' && !take_exponent(s, n))
		return false;
	while (n->n_digits && n->digits[n->n_digits - 1] == '0' && !n->cut) {
		n->n_digits--;
		n->scale++;
	}
	return true;
}

/* Set *value. Return false if the number is not an integer, or (*large) not one of 64 bits. */
static bool number_value(const sw_json_number *n, int64_t *value, bool *large)
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
	sw_json_number n;
	bool large;
	sw_json_place place = sw_json_here(s);
	if (*s->at != '-' && !sw_json_is_digit(*s->at))
		return sw_json_expected(s, "an integer");
	if (!sw_json_take_number(s, &n))
		return false;
	if (number_value(&n, value, &large))
		return true;
	s->at -= SW_MIN(sw_json_offset(s) - s->line_start + 1 - place.column, s->at - s->window);
	return sw_json_fail(s,
	                    large ? "this number is beyond 64 bits: choose a larger unit"
	                          : "expected an integer, found a number with a fraction: choose a "
	                            "smaller unit");
}

/* ---- integers --------------------------------------------------------------------------- */

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
 * its end, or NULL if it has another form. At least SW_JSON_AHEAD bytes must be readable. There are
 * no branches that depend on the number of digits up to 7. */
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
	sw_json_pass_space(s);
	sw_json_look_ahead(s);
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
	while (s->end - at > SW_JSON_AHEAD && *at == ',' && (after = plain_int(at + 1, &value))) {
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
	sw_json_level *l = &s->levels[s->depth - 1];
	while (sw_json_next_item(s)) {
		if (!sw_json_take_int(s, &value))
			return false;
		sw_vec_push(list, value);
		take_plain_ints(s, list);
		l->item = (int64_t)list->len - 1;
	}
	return s->status == SW_OK;
}
