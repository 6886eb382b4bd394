/* The classes of devices that take the same time for a program. */
#include "cost/cost.h"

#include <stdlib.h>

typedef SW_VEC(const sw_op *) loop_list;

/* List the loops that devices run unequally often. */
static void find_unequal_loops(const sw_program *program, loop_list *loops)
{
	for (size_t o = 0; o < program->ops.len; o++) {
		const sw_op *op = &program->ops.data[o];
		if (op->opcode == SW_OP_WHILE && op->attrs->loop.each.n)
			sw_vec_push(loops, op);
	}
}

static bool are_alike(const sw_cluster *cluster, const loop_list *loops, int64_t a, int64_t b)
{
	if (cluster->n_kinds && cluster->kind_of[a] != cluster->kind_of[b])
		return false;
	for (size_t i = 0; i < loops->len; i++)
		if (sw_op_trips_on(loops->data[i], a) != sw_op_trips_on(loops->data[i], b))
			return false;
	return true;
}

sw_device_classes sw_device_classes_of(const sw_cluster *cluster, const sw_program *program,
                                       sw_arena *arena)
{
	sw_device_classes c = {.n = 1};
	loop_list loops = {0};
	find_unequal_loops(program, &loops);
	int64_t n = cluster->n_kinds || loops.len ? cluster->n_devices : 1;
	int64_t *first = sw_alloc((size_t)n * sizeof(*first));
	int32_t *of = n > 1 ? SW_NEW_N(arena, int32_t, n) : NULL;
	for (int64_t d = 1; d < n; d++) {
		int32_t k = 0;
		while (k < c.n && !are_alike(cluster, &loops, first[k], d))
			k++;
		if (k == c.n)
			first[c.n++] = d;
		of[d] = k;
	}
	sw_device_class *list = SW_NEW_N(arena, sw_device_class, c.n);
	for (int32_t k = 0; k < c.n; k++)
		list[k] = (sw_device_class){
			.device = first[k],
			.cluster = cluster->n_kinds
		                           ? sw_cluster_of_kind(cluster, cluster->kind_of[first[k]])
		                           : *cluster};
	c.list = list;
	c.of = of;
	free(first);
	sw_vec_clear(&loops);
	return c;
}
