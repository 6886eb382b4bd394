/*
 * Slack: how long kernels can run beside the communication between an op and a reader of what it makes.
 *
 * While that is under way, what it waits for has run, and what waits for it has not. All other kernels of the computation may run beside it, in
 * some order: what neither the op needs nor the reader leads to. So a collective between neighbours of a chain has next to none;
 * that of a gradient has the rest of the backward pass; that of a weight all that runs before its first use.
 *
 * Kernels count by their seconds on one device, divided by all devices. Only the heaviest KERNELS of a computation count, each a bit of a row:
 * O((ops + edges) * KERNELS / 64), and O(KERNELS) for each new question. Communication that hides behind the same kernels is not looked at here.
 */
#include "plan/internal.h"

#include <math.h>
#include <stdlib.h>

/* Weights that sw_overlap_weight gives. Less than the least, and plans that communicate for nothing look as good as others. */
#define LEAST_WEIGHT 0.25
#define KERNELS 1024
#define WORDS (KERNELS / 64)

typedef struct row {
	uint64_t word[WORDS];
} row;

typedef struct heavy {
	sw_id op;
	double seconds;
} heavy;

struct sw_overlap {
	sw_arena arena;
	const sw_program *program;
	double (*seconds)[KERNELS]; /* per computation: of each bit */
	row *before, *after;        /* per op: what it needs, and what it leads to, itself in both */
	double *all_s;              /* per computation */
	sw_map asked;               /* (from, to) -> place in `answers`: each mesh's model asks the same */
	SW_VEC(double) answers;
};

static double kernel_s(const sw_roles *roles, const sw_cluster *cluster, sw_id id)
{
	return sw_cost_op(cluster, roles->program, id) * roles->trips[id] / (double)cluster->n_devices;
}

static double computation_s(const sw_roles *roles, const sw_cluster *cluster, int32_t c);

/* With all that a region runs. */
static double op_s(const sw_roles *roles, const sw_cluster *cluster, sw_id id)
{
	const sw_op *op = sw_op_at(roles->program, id);
	double seconds = kernel_s(roles, cluster, id);
	for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++)
		seconds += computation_s(roles, cluster, op->called[k]);
	return seconds;
}

static double computation_s(const sw_roles *roles, const sw_cluster *cluster, int32_t c)
{
	const sw_computation *computation = &roles->program->computations.data[c];
	double seconds = 0;
	for (size_t i = 0; i < computation->ops.len; i++)
		seconds += op_s(roles, cluster, computation->ops.data[i]);
	return seconds;
}

static int heaviest_first(const void *a, const void *b)
{
	const heavy *x = a, *y = b;
	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

/* The heaviest kernels become bits of their own rows. */
static void set_bits(sw_overlap *o, const sw_roles *roles, const sw_cluster *cluster, int32_t c)
{
	const sw_computation *computation = &o->program->computations.data[c];
	heavy *list = sw_alloc(sizeof(*list) * (computation->ops.len + 1));
	for (size_t i = 0; i < computation->ops.len; i++)
		list[i] = (heavy){computation->ops.data[i], op_s(roles, cluster, computation->ops.data[i])};
	qsort(list, computation->ops.len, sizeof(*list), heaviest_first);
	for (size_t i = 0; i < computation->ops.len && i < KERNELS; i++) {
		o->seconds[c][i] = list[i].seconds;
		o->all_s[c] += list[i].seconds;
		o->before[list[i].op].word[i / 64] |= UINT64_C(1) << i % 64;
		o->after[list[i].op].word[i / 64] |= UINT64_C(1) << i % 64;
	}
	free(list);
}

static void add_row(row *to, const row *from)
{
	for (int w = 0; w < WORDS; w++)
		to->word[w] |= from->word[w];
}

/* Operands stand before their readers. */
static void fill_rows(sw_overlap *o, int32_t c)
{
	const sw_computation *computation = &o->program->computations.data[c];
	size_t n = computation->ops.len;
	for (size_t i = 0; i < 2 * n; i++) {
		sw_id id = computation->ops.data[i < n ? i : 2 * n - 1 - i];
		const sw_op *op = sw_op_at(o->program, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id maker = o->program->values.data[op->operands[k]].op;
			if (i < n)
				add_row(&o->before[id], &o->before[maker]);
			else
				add_row(&o->after[maker], &o->after[id]);
		}
	}
}

sw_overlap *sw_overlap_new(const sw_roles *roles, const sw_cluster *cluster)
{
	const sw_program *program = roles->program;
	sw_overlap *o = sw_alloc(sizeof(*o));
	o->program = program;
	sw_arena_init(&o->arena);
	o->seconds = sw_arena_alloc(&o->arena, sizeof(*o->seconds) * (program->computations.len + 1));
	o->all_s = SW_NEW_N(&o->arena, double, program->computations.len + 1);
	o->before = SW_NEW_N(&o->arena, row, program->ops.len + 1);
	o->after = SW_NEW_N(&o->arena, row, program->ops.len + 1);
	for (size_t c = 0; c < program->computations.len; c++) {
		if (!roles->planned[c])
			continue;
		set_bits(o, roles, cluster, (int32_t)c);
		fill_rows(o, (int32_t)c);
	}
	return o;
}

void sw_overlap_free(sw_overlap *o)
{
	if (!o)
		return;
	sw_map_clear(&o->asked);
	sw_vec_clear(&o->answers);
	sw_arena_clear(&o->arena);
	free(o);
}

static double find_slack(const sw_overlap *o, sw_id from, sw_id to)
{
	int32_t c = sw_op_at(o->program, from)->computation;
	double seconds = o->all_s[c];
	for (int w = 0; w < WORDS; w++) {
		uint64_t bits = o->before[from].word[w];
		if (to != SW_NO_ID)
			bits |= o->after[to].word[w];
		for (; bits; bits &= bits - 1)
			seconds -= o->seconds[c][w * 64 + __builtin_ctzll(bits)];
	}
	return SW_MAX(seconds, 0);
}

double sw_overlap_slack_s(sw_overlap *o, sw_id from, sw_id to)
{
	const sw_id key[] = {from, to};
	uint32_t fresh = (uint32_t)o->answers.len;
	uint32_t number = sw_map_intern(&o->asked, key, sizeof(key), fresh);
	if (number == fresh)
		sw_vec_push(&o->answers, find_slack(o, from, to));
	return o->answers.data[number];
}

double sw_overlap_weight(const sw_roles *roles, const sw_cluster *cluster)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		if (roles->input_role[i] == SW_ROLE_PARAMETER)
			bytes += sw_shape_bytes(sw_value_shape(roles->program, roles->inputs[i]));
	uint32_t all = (1u << cluster->atoms.n) - 1;
	double kernels_s = computation_s(roles, cluster, roles->program->entry);
	double reduce_s = sw_cost_collective((void *)cluster, SW_MOVE_ALL_REDUCE, all, bytes);
	double power = round(log2(reduce_s / kernels_s));
	return isfinite(power) ? fmin(fmax(exp2(power), LEAST_WEIGHT), 1) : 1;
}
