/* The meanings of names: one hash table over the text's own bytes; nothing is copied. */
#include "frontend/hlo.h"

#include <stdlib.h>
#include <string.h>

void sw_hlo_names_clear(sw_hlo_names *names)
{
	sw_vec_clear(&names->symbols);
	free(names->slots);
	*names = (sw_hlo_names){0};
}

static void grow(sw_hlo_names *names)
{
	uint64_t *old = names->slots;
	size_t old_cap = names->cap;
	names->cap = old_cap ? old_cap * 2 : 1024;
	names->slots = sw_alloc(names->cap * sizeof(*names->slots));
	size_t mask = names->cap - 1;
	for (size_t i = 0; i < old_cap; i++) {
		if (!old[i])
			continue;
		size_t slot = (old[i] >> 32) & mask;
		while (names->slots[slot])
			slot = (slot + 1) & mask;
		names->slots[slot] = old[i];
	}
	free(old);
}

static sw_hlo_symbol *add_symbol(sw_hlo_names *names, sw_span name)
{
	sw_hlo_symbol symbol = {.name = name, .defined_in = -1, .computation = -1};
	sw_vec_push(&names->symbols, symbol);
	return &names->symbols.data[names->symbols.len - 1];
}

sw_hlo_symbol *sw_hlo_symbol_of(sw_hlo_names *names, sw_span name)
{
	if (2 * (names->symbols.len + 1) > names->cap)
		grow(names);
	uint64_t hash = sw_hash_bytes(name.start, name.length, 0) & 0xffffffffu;
	size_t mask = names->cap - 1;
	for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
		uint64_t held = names->slots[slot];
		if (!held) {
			sw_hlo_symbol *symbol = add_symbol(names, name);
			names->slots[slot] = hash << 32 | names->symbols.len;
			return symbol;
		}
		sw_hlo_symbol *symbol = &names->symbols.data[(held & 0xffffffffu) - 1];
		if (held >> 32 == hash && symbol->name.length == name.length &&
		    memcmp(symbol->name.start, name.start, name.length) == 0)
			return symbol;
	}
}
