/* Element types, and the words for types, monoids and directions. */
#include "program/program.h"

#include <string.h>

#include "program/attributes.h"
#include "program/internal.h"

typedef struct type_row {
	const char *name;
	size_t length;
	int bits;
	sw_type_kind kind;
} type_row;

static const type_row types[SW_TYPE_COUNT] = {
#define X(name, spelling, bits, kind) {spelling, sizeof(spelling) - 1, bits, SW_KIND_##kind},
	SW_TYPES(X)
#undef X
};

static const char *const monoids[] = {"none", "sum", "product", "max", "min", "and", "or"};
static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};

const char *sw_type_name(sw_type type)
{
	return types[type].name;
}

sw_type_kind sw_type_kind_of(sw_type type)
{
	return types[type].kind;
}

int64_t sw_type_bytes(sw_type type)
{
	return (types[type].bits + 7) / 8;
}

int sw_type_bits(sw_type type)
{
	return types[type].bits;
}

static bool is_word(const char *word, const char *text, size_t length)
{
	return strlen(word) == length && memcmp(word, text, length) == 0;
}

bool sw_type_find(const char *name, size_t length, sw_type *type)
{
	for (int t = 0; t < SW_TYPE_COUNT; t++) {
		if (types[t].length == length && memcmp(types[t].name, name, length) == 0) {
			*type = (sw_type)t;
			return true;
		}
	}
	return false;
}

const char *sw_monoid_name(sw_monoid monoid)
{
	return monoids[monoid];
}

const char *sw_direction_name(sw_direction direction)
{
	return directions[direction];
}

bool sw_direction_find(const char *name, size_t length, sw_direction *direction)
{
	for (size_t d = 0; d < SW_COUNT(directions); d++) {
		if (is_word(directions[d], name, length)) {
			*direction = (sw_direction)d;
			return true;
		}
	}
	return false;
}
