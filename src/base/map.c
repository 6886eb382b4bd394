/* A hash map from bytes to numbers: open addressing, linear probing, at most three quarters full.
 */
#include "base/base.h"

#include <string.h>

struct sw_map_slot {
	const void *key; /* NULL: free */
	size_t key_bytes;
	uint64_t hash;
	uint32_t value;
};

void sw_map_clear(sw_map *map)
{
	free(map->slots);
	sw_arena_clear(&map->keys);
	*map = (sw_map){0};
}

/* Return the slot that holds the key, or the free one where it would be inserted. cap is a power of
 * two. */
static sw_map_slot *find(const sw_map *map, const void *key, size_t key_bytes, uint64_t hash)
{
	size_t mask = map->cap - 1;
	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		sw_map_slot *slot = &map->slots[i];
		if (!slot->key)
			return slot;
		if (slot->hash == hash && slot->key_bytes == key_bytes &&
		    (key_bytes == 0 || memcmp(slot->key, key, key_bytes) == 0))
			return slot;
	}
}

static void grow(sw_map *map)
{
	sw_map old = *map;
	map->cap = old.cap ? old.cap * 2 : 16;
	map->slots = sw_alloc(map->cap * sizeof(*map->slots));
	for (size_t i = 0; i < old.cap; i++) {
		const sw_map_slot *slot = &old.slots[i];
		if (slot->key)
			*find(map, slot->key, slot->key_bytes, slot->hash) = *slot;
	}
	free(old.slots);
}

/* Return the slot of the key, which is inserted without a value if it was absent. */
static sw_map_slot *enter(sw_map *map, const void *key, size_t key_bytes)
{
	if (4 * (map->len + 1) > 3 * map->cap)
		grow(map);
	uint64_t hash = sw_hash_bytes(key, key_bytes, 0);
	sw_map_slot *slot = find(map, key, key_bytes, hash);
	if (!slot->key) {
		*slot = (sw_map_slot){.key = sw_arena_copy(&map->keys, key, key_bytes),
		                      .key_bytes = key_bytes,
		                      .hash = hash,
		                      .value = SW_ABSENT};
		map->len++;
	}
	return slot;
}

uint32_t sw_map_get(const sw_map *map, const void *key, size_t key_bytes)
{
	if (!map->len)
		return SW_ABSENT;
	const sw_map_slot *slot = find(map, key, key_bytes, sw_hash_bytes(key, key_bytes, 0));
	return slot->key ? slot->value : SW_ABSENT;
}

uint32_t sw_map_put(sw_map *map, const void *key, size_t key_bytes, uint32_t value)
{
	sw_map_slot *slot = enter(map, key, key_bytes);
	uint32_t earlier = slot->value;
	slot->value = value;
	return earlier;
}

uint32_t sw_map_intern(sw_map *map, const void *key, size_t key_bytes, uint32_t value)
{
	sw_map_slot *slot = enter(map, key, key_bytes);
	if (slot->value == SW_ABSENT)
		slot->value = value;
	return slot->value;
}
