/* Lists of numbers, of which equal ones are stored once. Private to solve. */
#ifndef SW_SOLVE_INTERNED_LISTS_H
#define SW_SOLVE_INTERNED_LISTS_H

#include "base/base.h"

typedef struct number_list {
	const int64_t *numbers; /* in the arena */
	int64_t count;
	int32_t table; /* for the caller's use; -1 at first */
} number_list;

typedef struct number_lists {
	sw_arena *arena; /* the caller's; the numbers outlive this struct */
	SW_VEC(number_list) lists;
	sw_map index;
} number_lists;

void number_lists_clear(number_lists *l);
/* Return the number of an equal list, or copy this one and number it. O(count). */
int32_t number_lists_intern(number_lists *l, const int64_t *numbers, int64_t count);

#endif
