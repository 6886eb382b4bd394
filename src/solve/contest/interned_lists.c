/* Interned lists: a map from hashes, in which lists with the same hash are numbered, so that keys
 * need not hold the lists themselves. */
#include "solve/contest/interned_lists.h"

#include <string.h>

void number_lists_clear(number_lists *l)
{
	sw_vec_clear(&l->lists);
	sw_map_clear(&l->index);
}

static bool equal(const number_list *list, const int64_t *numbers, int64_t count)
{
	return list->count == count &&
	       (!count || !memcmp(list->numbers, numbers, (size_t)count * sizeof *numbers));
}

int32_t number_lists_intern(number_lists *l, const int64_t *numbers, int64_t count)
{
	size_t bytes = (size_t)count * sizeof *numbers;
	uint64_t key[2] = {count ? sw_hash_bytes(numbers, bytes, 0) : 0, 0};
	uint32_t fresh = (uint32_t)l->lists.len;
	for (;; key[1]++) {
		uint32_t found = sw_map_intern(&l->index, key, sizeof key, fresh);
		if (found == fresh)
			break;
		if (equal(&l->lists.data[found], numbers, count))
			return (int32_t)found;
	}
	number_list added = {.count = count, .table = -1};
	added.numbers = count ? sw_arena_copy(l->arena, numbers, bytes) : NULL;
	sw_vec_push(&l->lists, added);
	return (int32_t)fresh;
}
