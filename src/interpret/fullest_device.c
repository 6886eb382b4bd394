/*
 * Of a program with owners, the device whose arena is largest. Devices that own the same values are
 * of one class, and run the same program; each class is looked at once.
 */
#include "interpret/placement.h"

#include <stdlib.h>

/* How many classes are placed, those whose live values are largest: so many, and more where all of
 * them together have so few ops. */
#define PLACED_CLASSES 3
#define PLACED_OPS 20000

typedef struct device_class {
	int64_t device, live_bytes;
} device_class;

static int by_live_bytes(const void *a, const void *b)
{
	const device_class *x = a, *y = b;
	if (x->live_bytes != y->live_bytes)
		return x->live_bytes < y->live_bytes ? 1 : -1;
	return x->device > y->device ? 1 : -1;
}

static int64_t arena_bytes(const sw_program *program, int64_t device, int64_t enough_bytes)
{
	sw_program *own = sw_program_of_device(program, device, NULL);
	int64_t bytes = sw_placement_bytes_near(own, enough_bytes);
	sw_program_free(own);
	return bytes;
}

sw_fullest sw_fullest_device(const sw_program *program, int64_t enough_bytes)
{
	sw_arena arena;
	sw_map seen = {0};
	SW_VEC(device_class) classes = {0};
	sw_fullest fullest = {0};
	sw_arena_init(&arena);
	sw_owners owners = sw_program_owners(program, &arena);
	bool *is_in = SW_NEW_N(&arena, bool, owners.n);
	for (int64_t d = 0; d < program->num_partitions; d++) {
		for (int32_t k = 0; k < owners.n; k++)
			is_in[k] = sw_owner_is(&owners.sets[k], d);
		uint32_t fresh = (uint32_t)classes.len;
		if (sw_map_intern(&seen, is_in, (size_t)owners.n, fresh) == fresh)
			sw_vec_push(&classes,
			            ((device_class){
					    d, sw_program_device_bytes(program, &owners, d)}));
	}
	qsort(classes.data, classes.len, sizeof(*classes.data), by_live_bytes);
	size_t placed = SW_MAX(PLACED_CLASSES, PLACED_OPS / (program->ops.len + 1));
	for (size_t i = 0; i < classes.len && i < placed; i++) {
		/* what is no more than the largest so far needn't be known more closely */
		int64_t d = classes.data[i].device,
			bytes = arena_bytes(program, d,
		                            SW_MAX(enough_bytes, fullest.arena_bytes));
		if (bytes > fullest.arena_bytes)
			fullest = (sw_fullest){d, bytes};
	}
	sw_vec_clear(&classes);
	sw_map_clear(&seen);
	sw_arena_clear(&arena);
	return fullest;
}
