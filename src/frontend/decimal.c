/*
 * Decimal numbers. Most have so few digits that mantissa and power of ten are both exact doubles,
 * and one multiplication or division rounds correctly (Clinger, "How to read floating point numbers
 * accurately", 1990, the fast case); the others go through strtod.
 */
#include "frontend/decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LENGTH 1024 /* bytes; a longer number is shortened before strtod reads it */

typedef struct decimal {
	uint64_t mantissa;  /* the first 19 significant digits */
	int64_t exponent;   /* power of ten */
	int digits;         /* number of significant digits in the mantissa */
	bool negative, cut; /* cut: there are more digits than the mantissa holds */
} decimal;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *read_digits(const char *at, const char *end, bool fraction, decimal *d)
{
	for (; at < end && is_digit(*at); at++) {
		if (d->digits < 19) {
			d->mantissa = d->mantissa * 10 + (uint64_t)(*at - '0');
			d->digits += d->mantissa != 0;
			d->exponent -= fraction;
		} else {
			d->cut = true;
			d->exponent += !fraction;
		}
	}
	return at;
}

/* Read an exponent; `at` is at the 'e'. Return `at` unmoved if no digits follow, since it is not an
 * exponent then. */
static const char *read_exponent(const char *at, const char *end, decimal *d)
{
	const char *digit = at + 1;
	bool negative = digit < end && *digit == '-';
	if (digit < end && (*digit == '-' || *digit == '+'))
		digit++;
	if (digit == end || !is_digit(*digit))
		return at;
	int64_t exponent = 0;
	for (; digit < end && is_digit(*digit); digit++)
		if (exponent < 100000)
			exponent = exponent * 10 + (*digit - '0');
	d->exponent += negative ? -exponent : exponent;
	return digit;
}

static const char *read_parts(const char *at, const char *end, decimal *d)
{
	const char *start = at;
	at = read_digits(at, end, false, d);
	size_t whole = (size_t)(at - start);
	if (at < end && *at == '.') {
		const char *point = at;
		at = read_digits(at + 1, end, true, d);
		if (whole == 0 && at == point + 1)
			return start;
	} else if (whole == 0) {
		return start;
	}
	return at < end && (*at == 'e' || *at == 'E') ? read_exponent(at, end, d) : at;
}

static bool exact(const decimal *d, double *value)
{
	static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
	                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
	                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	if (d->cut || d->mantissa >> 53 || d->exponent < -22 || d->exponent > 22)
		return false;
	double m = (double)d->mantissa;
	*value = d->exponent < 0 ? m / powers[-d->exponent] : m * powers[d->exponent];
	return true;
}

/* Convert by strtod. It needs a zero at the end, and may accept more than our grammar does ("0x",
 * other locales), so it is given a copy of just the number. */
static double by_library(const char *start, size_t length, const decimal *d)
{
	char text[MAX_LENGTH + 1];
	if (length > MAX_LENGTH) /* beyond MAX_LENGTH the first 19 digits and the exponent decide */
		length = (size_t)snprintf(text, sizeof(text), "%llue%lld",
		                          (unsigned long long)d->mantissa, (long long)d->exponent);
	else
		memcpy(text, start, length);
	text[length] = '\0';
	return strtod(text, NULL);
}

static size_t read_word(const char *at, const char *end, double *value)
{
	if (end - at < 3)
		return 0;
	if (memcmp(at, "inf", 3) == 0)
		*value = INFINITY;
	else if (memcmp(at, "nan", 3) == 0)
		*value = NAN;
	else
		return 0;
	return 3;
}

size_t sw_decimal_read(const char *at, const char *end, double *value)
{
	decimal d = {0};
	const char *start = at;
	if (at < end && (*at == '-' || *at == '+')) {
		d.negative = *at == '-';
		at++;
	}
	const char *first = at;
	at = read_parts(first, end, &d);
	if (at == first) {
		size_t used = read_word(first, end, value);
		at = first + used;
		if (!used)
			return 0;
	} else if (!exact(&d, value)) {
		*value = by_library(first, (size_t)(at - first), &d);
	}
	if (d.negative)
		*value = -*value;
	return (size_t)(at - start);
}
