/* Layouts by number: equal layouts have equal numbers. */
#include "plan/plan.h"

#include <stdlib.h>

/* Write the key that tells layouts apart, without padding bytes and unused atoms. Returns bytes. */
static size_t layout_key(const sw_layout *layout, int64_t *key)
{
	size_t n = 0;
	key[n++] = (int64_t)layout->monoid << 32 | layout->n;
	for (int32_t a = 0; a < layout->n; a++) {
		key[n++] = (int64_t)layout->state[a].kind << 8 | (uint8_t)layout->state[a].dim;
		key[n++] = layout->state[a].stride;
	}
	return n * sizeof(*key);
}

uint32_t sw_layouts_id(sw_layouts *layouts, const sw_layout *layout)
{
	int64_t key[1 + 2 * SW_MAX_ATOMS];
	size_t bytes = layout_key(layout, key);
	uint32_t fresh = (uint32_t)layouts->items.len;
	uint32_t id = sw_map_intern(&layouts->index, key, bytes, fresh);
	if (id == fresh)
		sw_vec_push(&layouts->items, *layout);
	return id;
}

uint32_t sw_layouts_find(const sw_layouts *layouts, const sw_layout *layout)
{
	int64_t key[1 + 2 * SW_MAX_ATOMS];
	size_t bytes = layout_key(layout, key);
	return sw_map_get(&layouts->index, key, bytes);
}

void sw_layouts_set(sw_layouts *layouts, const sw_layout *items, size_t n)
{
	sw_layouts_clear(layouts);
	for (size_t i = 0; i < n; i++)
		sw_layouts_id(layouts, &items[i]);
}

void sw_layouts_copy(sw_layouts *to, const sw_layouts *from)
{
	sw_layouts_set(to, from->items.data, from->items.len);
}

void sw_layouts_clear(sw_layouts *layouts)
{
	sw_map_clear(&layouts->index);
	sw_vec_clear(&layouts->items);
}
