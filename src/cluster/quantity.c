/* Numbers with units. One table gives the units that are read and printed. */
#include "cluster/quantity.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* value = number * times / over: division makes 20 us the double nearest to 20e-6. */
typedef struct unit {
	const char *name;
	double times, over;
	bool printed;
} unit;

#define KI 1024.0
static const unit second_units[] = {{"s", 1, 1, true},
                                    {"ms", 1, 1e3, true},
                                    {"us", 1, 1e6, true},
                                    {"ns", 1, 1e9, true},
                                    {NULL, 0, 0, false}};
static const unit byte_units[] = {{"TiB", KI *KI *KI *KI, 1, true},
                                  {"GiB", KI *KI *KI, 1, true},
                                  {"MiB", KI *KI, 1, true},
                                  {"KiB", KI, 1, true},
                                  {"TB", 1e12, 1, false},
                                  {"GB", 1e9, 1, false},
                                  {"MB", 1e6, 1, false},
                                  {"kB", 1e3, 1, false},
                                  {"KB", 1e3, 1, false},
                                  {"B", 1, 1, true},
                                  {NULL, 0, 0, false}};
static const unit speed_units[] = {{"TB/s", 1e12, 1, true},
                                   {"GB/s", 1e9, 1, true},
                                   {"MB/s", 1e6, 1, true},
                                   {"kB/s", 1e3, 1, true},
                                   {"KB/s", 1e3, 1, false},
                                   {"B/s", 1, 1, true},
                                   {"TiB/s", KI *KI *KI *KI, 1, false},
                                   {"GiB/s", KI *KI *KI, 1, false},
                                   {"MiB/s", KI *KI, 1, false},
                                   {"KiB/s", KI, 1, false},
                                   {"Tb/s", 1e12, 8, false},
                                   {"Gb/s", 1e9, 8, false},
                                   {"Mb/s", 1e6, 8, false},
                                   {"kb/s", 1e3, 8, false},
                                   {"b/s", 1, 8, false},
                                   {NULL, 0, 0, false}};
static const unit flop_units[] = {{"PFLOP/s", 1e15, 1, true}, {"TFLOP/s", 1e12, 1, true},
                                  {"GFLOP/s", 1e9, 1, true},  {"MFLOP/s", 1e6, 1, true},
                                  {"FLOP/s", 1, 1, true},     {NULL, 0, 0, false}};
static const unit no_units[] = {{NULL, 0, 0, false}};

static const struct {
	const unit *units;
	const char *example, *known;
} kinds[] = {
	[SW_QUANTITY_NUMBER] = {no_units, "a plain number such as 0.7", "none"},
	[SW_QUANTITY_SECONDS] = {second_units, "a time such as 20 us", "s, ms, us, ns"},
	[SW_QUANTITY_BYTES] = {byte_units, "a size such as 16 GiB",
                               "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"},
	[SW_QUANTITY_BYTES_PER_S] = {speed_units, "a bandwidth such as 25 GB/s or 200 Gb/s",
                                     "B/s or b/s with k, M, G, T, or Ki, Mi, Gi, Ti before B"},
	[SW_QUANTITY_FLOPS] = {flop_units, "a rate such as 50 GFLOP/s",
                               "FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s"},
};

const char *quantity_example(sw_quantity kind)
{
	return kinds[kind].example;
}

/* strtod would accept "inf", "nan" and hexadecimal too. */
static bool starts_decimal(const char *text)
{
	text += *text == '-' || *text == '+';
	text += *text == '.';
	return isdigit((unsigned char)*text) &&
	       !(text[0] == '0' && (text[1] == 'x' || text[1] == 'X'));
}

static const unit *find_unit(const char *name, sw_quantity kind)
{
	for (const unit *u = kinds[kind].units; u->name; u++)
		if (strcmp(u->name, name) == 0)
			return u;
	return NULL;
}

static void strip_end(char *text)
{
	size_t length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		text[--length] = 0;
}

static const char *say(char message[256], const char *format, const char *a, const char *b)
{
	snprintf(message, 256, format, a, b);
	return message;
}

const char *quantity_parse(const char *text, sw_quantity kind, double *value, char message[256])
{
	char *end, name[64];
	if (!starts_decimal(text))
		return say(message, "expected %s, found \"%.60s\"", kinds[kind].example, text);
	double number = strtod(text, &end);
	end += strspn(end, " \t");
	snprintf(name, sizeof(name), "%s", end);
	strip_end(name);
	if (name[0]) {
		const unit *found = find_unit(name, kind);
		if (!found && kind == SW_QUANTITY_NUMBER)
			return say(message, "expected %s, found \"%.60s\"", kinds[kind].example,
			           text);
		if (!found)
			return say(message, "unknown unit \"%.60s\"; known are %s", name,
			           kinds[kind].known);
		number = number * found->times / found->over;
	}
	if (!isfinite(number))
		return say(message, "\"%.60s\" is too large%s", text, "");
	*value = number;
	return NULL;
}

/* ---- printing --------------------------------------------------------------------------- */

static bool reads_back(const char *text, sw_quantity kind, double value)
{
	double again;
	char message[256];
	return !quantity_parse(text, kind, &again, message) && again == value;
}

/* Print with the fewest digits that read back with this unit and need no exponent; return false if
 * no number of digits does. */
static bool print_with(double value, sw_quantity kind, const unit *u, char *text, size_t room)
{
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, room, "%.*g%s%s", digits, u ? value * u->over / u->times : value,
		         u ? " " : "", u ? u->name : "");
		if (reads_back(text, kind, value) && !(u && strchr(text, 'e')))
			return true;
	}
	return false;
}

void quantity_print(double value, sw_quantity kind, sw_text *text)
{
	char best[64], tried[64];
	if (!print_with(value, kind, NULL, best, sizeof(best)))
		snprintf(best, sizeof(best), "%.17g", value);
	for (const unit *u = kinds[kind].units; u->name; u++) {
		if (!u->printed || value * u->over / u->times < 1)
			continue;
		if (print_with(value, kind, u, tried, sizeof(tried))) {
			sw_text_add(text, tried);
			return;
		}
	}
	sw_text_add(text, best);
}

static void add_rate(sw_text *text, double per_s, const char *of_what)
{
	sw_text_add_count(text, per_s);
	sw_text_add(text, of_what);
}

void sw_quantity_add(double value, sw_quantity quantity, sw_text *text)
{
	switch (quantity) {
	case SW_QUANTITY_NUMBER:
		sw_text_addf(text, "%.4g", value);
		return;
	case SW_QUANTITY_SECONDS:
		sw_text_add_seconds(text, value);
		return;
	case SW_QUANTITY_BYTES:
		sw_text_add_bytes(text, value);
		return;
	case SW_QUANTITY_BYTES_PER_S:
		add_rate(text, value, "B/s");
		return;
	case SW_QUANTITY_FLOPS:
		add_rate(text, value, "FLOP/s");
	}
}

double quantity_round(double value, sw_quantity kind, int digits)
{
	const unit *u = kinds[kind].units;
	char text[64], message[256];
	double rounded = value;
	while (u->name && (!u->printed || value * u->over / u->times < 1))
		u++;
	snprintf(text, sizeof(text), "%.*g %s", digits,
	         u->name ? value * u->over / u->times : value, u->name ? u->name : "");
	return quantity_parse(text, kind, &rounded, message) ? value : rounded;
}
