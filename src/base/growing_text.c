/* Growing strings, and numbers in the form that people read. */
#include "base/base.h"

#include <math.h>
#include <string.h>

void sw_text_clear(sw_text *text)
{
	free(text->data);
	*text = (sw_text){0};
}

void sw_text_add(sw_text *text, const char *string)
{
	sw_text_add_n(text, string, strlen(string));
}

void sw_text_add_n(sw_text *text, const char *string, size_t length)
{
	sw_vec_reserve(text, text->len + length + 1);
	if (length)
		memcpy(text->data + text->len, string, length);
	text->len += length;
	text->data[text->len] = '\0';
}

void sw_text_addf(sw_text *text, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		return;
	sw_vec_reserve(text, text->len + (size_t)length + 1);
	va_start(args, format);
	vsnprintf(text->data + text->len, (size_t)length + 1, format, args);
	va_end(args);
	text->len += (size_t)length;
}

/* Return the bytes of the UTF-8 character that begins here, 0 if none does. Surrogates and overlong
 * forms are not characters. */
static size_t character_bytes(const unsigned char *c, size_t left, uint32_t *code)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {
		{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	for (size_t n = 1; n <= SW_COUNT(forms) && n <= left; n++) {
		if ((c[0] & forms[n - 1].mask) != forms[n - 1].lead)
			continue;
		*code = c[0] & (unsigned char)~forms[n - 1].mask;
		for (size_t i = 1; i < n; i++) {
			if ((c[i] & 0xc0) != 0x80)
				return 0;
			*code = *code << 6 | (c[i] & 0x3f);
		}
		bool surrogate = *code >= 0xd800 && *code < 0xe000;
		return *code >= forms[n - 1].least && *code <= 0x10ffff && !surrogate ? n : 0;
	}
	return 0;
}

size_t sw_utf8_length(const char *string, size_t length)
{
	uint32_t code;
	size_t at = 0;
	for (size_t n = 1; n && at < length; at += n)
		n = character_bytes((const unsigned char *)string + at, length - at, &code);
	return at;
}

static bool is_printable(uint32_t code)
{
	static const uint32_t hidden[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x200e, 0x200f},
	                                     {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
	for (size_t i = 0; i < SW_COUNT(hidden); i++)
		if (code >= hidden[i][0] && code <= hidden[i][1])
			return false;
	return true;
}

size_t sw_printable_length(const char *string, size_t length)
{
	uint32_t code = 0;
	size_t at = 0;
	for (size_t n; at < length; at += n) {
		n = character_bytes((const unsigned char *)string + at, length - at, &code);
		if (!n || !is_printable(code))
			break;
	}
	return at;
}

static void add_byte(sw_text *text, char byte, bool lines)
{
	static const char letters[] = {['\n'] = 'n', ['\t'] = 't', ['\r'] = 'r'};
	unsigned char code = (unsigned char)byte;
	if (lines && (byte == '\n' || byte == '\t'))
		sw_text_add_n(text, &byte, 1);
	else if (code < sizeof(letters) && letters[code])
		sw_text_addf(text, "\\%c", letters[code]);
	else
		sw_text_addf(text, "\\x%02x", code);
}

void sw_text_add_printable(sw_text *text, const char *string, bool lines)
{
	size_t left = strlen(string);
	for (size_t n; left; string += n, left -= n) {
		n = sw_printable_length(string, left);
		sw_text_add_n(text, string, n);
		if (n == 0) {
			add_byte(text, *string, lines);
			n = 1;
		}
	}
}

void sw_text_cut(const char *string, char *to, size_t capacity)
{
	size_t length = sw_utf8_length(string, strnlen(string, capacity - 1));
	memcpy(to, string, length);
	to[length] = '\0';
}

/* Add the value with one decimal, in the largest unit that leaves at least 1.0 before it; whole
 * values in units[0] have no decimal. The threshold is where one decimal would round up to the next
 * unit. */
static void add_scaled(sw_text *text, double value, double base, const char *const units[],
                       size_t count)
{
	double size = fabs(value);
	size_t unit = 0;
	while (unit + 1 < count && size >= (unit ? base - 0.05 : base)) {
		size /= base;
		unit++;
	}
	int decimals = unit == 0 && size == floor(size) ? 0 : 1;
	sw_text_addf(text, "%s%.*f%s", value < 0 ? "-" : "", decimals, size, units[unit]);
}

static bool add_not_finite(sw_text *text, double value)
{
	if (isfinite(value))
		return false;
	sw_text_add(text, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
	return true;
}

void sw_text_add_bytes(sw_text *text, double bytes)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
	if (!add_not_finite(text, bytes))
		add_scaled(text, bytes, 1024, units, SW_COUNT(units));
}

void sw_text_add_count(sw_text *text, double count)
{
	static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
	if (!add_not_finite(text, count))
		add_scaled(text, count, 1000, units, SW_COUNT(units));
}

void sw_text_add_amount(sw_text *text, double count, const char *unit)
{
	sw_text_add_count(text, count);
	bool bare = text->len && text->data[text->len - 1] >= '0' && text->data[text->len - 1] <= '9';
	sw_text_addf(text, "%s%s", bare ? " " : "", unit);
}

void sw_text_add_seconds(sw_text *text, double seconds)
{
	double size = fabs(seconds);
	if (add_not_finite(text, seconds))
		return;
	if (size == 0)
		sw_text_add(text, "0 s");
	else if (size >= 0.99995)
		sw_text_addf(text, "%.1f s", seconds);
	else if (size >= 0.99995e-3)
		sw_text_addf(text, "%.1f ms", seconds * 1e3);
	else if (size >= 0.095e-6)
		sw_text_addf(text, "%.1f us", seconds * 1e6);
	else
		sw_text_addf(text, "%.2g us", seconds * 1e6);
}
