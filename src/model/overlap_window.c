/*
 * The overlap window: how long kernels can run beside the communication between an op and a reader
 * of its result.
 *
 * While that communication is in flight, all kernels that it depends on have run, and none that
 * depends on it has started. All other kernels of the computation may run beside it in some order:
 * those that neither the op depends on nor the reader leads to. So a collective between neighbours
 * of a chain has a window of almost nothing, that of a gradient has the rest of the backward pass,
 * and that of a weight has everything before its first use.
 *
 * Kernels count by their seconds on one device, divided by the number of devices. Only the
 * heaviest kernels of a computation count, as many as window_work allows for the ops of the
 * program; each is a bit of a row. Building takes O(ops * kernels + edges * kernels / 64) and a
 * query O(1), since the op's predecessors and the reader's successors are disjoint. Two collectives
 * that are hidden behind the same kernels both get the whole window.
 */
#include "model/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct heavy {
	sw_id op;
	double seconds;
} heavy;

struct sw_overlap {
	sw_arena arena;
	const sw_program *program;
	double *all_s; /* seconds of the heaviest kernels, per computation */
	/* seconds of the heaviest kernels, per op: its own; those of its predecessors and its own;
	 * those of its successors and its own */
	double *own_s, *before_s, *after_s;
};

/* Scratch space while the sums are computed. A row has a bit for each of the heaviest kernels. */
typedef struct rows {
	size_t n_kernels, n_words; /* of a row */
	/* per op: the row of its predecessors and that of its successors, itself in both */
	uint64_t *before, *after;
	double *seconds; /* of each bit, in the current computation */
} rows;

static uint64_t *row_of(const rows *r, uint64_t *of, sw_id op)
{
	return of + op * r->n_words;
}

static double kernel_s(const sw_roles *roles, const sw_cluster *cluster, sw_id id)
{
	double share = roles->kernel_share ? roles->kernel_share[id] : 1;
	return share * sw_cost_op(cluster, roles->program, id) * roles->trips[id] /
	       (double)cluster->n_devices;
}

static double computation_s(const sw_roles *roles, const sw_cluster *cluster, int32_t c);

/* Include all ops that a region runs. */
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

/* Give each of the heaviest kernels a bit, and set it in its own rows. */
static void set_bits(sw_overlap *o, rows *r, const sw_roles *roles, const sw_cluster *cluster,
                     int32_t c)
{
	const sw_computation *computation = &o->program->computations.data[c];
	heavy *list = sw_alloc(sizeof(*list) * (computation->ops.len + 1));
	for (size_t i = 0; i < computation->ops.len; i++)
		list[i] = (heavy){computation->ops.data[i],
		                  op_s(roles, cluster, computation->ops.data[i])};
	qsort(list, computation->ops.len, sizeof(*list), heaviest_first);
	memset(r->seconds, 0, sizeof(*r->seconds) * r->n_words * 64);
	for (size_t i = 0; i < computation->ops.len && i < r->n_kernels; i++) {
		r->seconds[i] = o->own_s[list[i].op] = list[i].seconds;
		o->all_s[c] += list[i].seconds;
		row_of(r, r->before, list[i].op)[i / 64] |= UINT64_C(1) << i % 64;
		row_of(r, r->after, list[i].op)[i / 64] |= UINT64_C(1) << i % 64;
	}
	free(list);
}

static void add_row(uint64_t *to, const uint64_t *from, size_t n_words)
{
	for (size_t w = 0; w < n_words; w++)
		to[w] |= from[w];
}

/* Operands stand before their readers: one pass forwards and one backwards reach everything. */
static void fill_rows(const sw_overlap *o, rows *r, int32_t c)
{
	const sw_computation *computation = &o->program->computations.data[c];
	size_t n = computation->ops.len;
	for (size_t i = 0; i < 2 * n; i++) {
		sw_id id = computation->ops.data[i < n ? i : 2 * n - 1 - i];
		const sw_op *op = sw_op_at(o->program, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id maker = o->program->values.data[op->operands[k]].op;
			if (i < n)
				add_row(row_of(r, r->before, id), row_of(r, r->before, maker),
				        r->n_words);
			else
				add_row(row_of(r, r->after, maker), row_of(r, r->after, id),
				        r->n_words);
		}
	}
}

SW_VECTORISED
static double sum_row(const uint64_t *bits, size_t n_words, const double *seconds)
{
	double sums[64] = {0}, sum = 0;
	for (size_t w = 0; w < n_words; w++)
		for (size_t i = 0; i < 64; i++)
			sums[i] += bits[w] >> i & 1 ? seconds[w * 64 + i] : 0;
	for (int i = 0; i < 64; i++)
		sum += sums[i];
	return sum;
}

static void sum_rows(sw_overlap *o, const rows *r, int32_t c)
{
	const sw_computation *computation = &o->program->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		o->before_s[id] = sum_row(row_of(r, r->before, id), r->n_words, r->seconds);
		o->after_s[id] = sum_row(row_of(r, r->after, id), r->n_words, r->seconds);
	}
}

static rows rows_new(size_t n_ops, size_t n_kernels)
{
	rows r = {.n_kernels = n_kernels, .n_words = (n_kernels + 63) / 64};
	r.before = sw_alloc(sizeof(*r.before) * r.n_words * n_ops);
	r.after = sw_alloc(sizeof(*r.after) * r.n_words * n_ops);
	r.seconds = sw_alloc(sizeof(*r.seconds) * r.n_words * 64);
	return r;
}

static void rows_free(rows *r)
{
	free(r->before);
	free(r->after);
	free(r->seconds);
}

sw_overlap *sw_overlap_new(const sw_roles *roles, const sw_cluster *cluster,
                           const sw_model_limits *limits)
{
	const sw_program *program = roles->program;
	size_t n = program->ops.len + 1;
	sw_overlap *o = sw_alloc(sizeof(*o));
	rows r = rows_new(n, SW_MIN(n, (size_t)(limits->window_work / (double)n)));
	o->program = program;
	sw_arena_init(&o->arena);
	o->all_s = SW_NEW_N(&o->arena, double, program->computations.len + 1);
	o->own_s = SW_NEW_N(&o->arena, double, n);
	o->before_s = SW_NEW_N(&o->arena, double, n);
	o->after_s = SW_NEW_N(&o->arena, double, n);
	for (size_t c = 0; c < program->computations.len; c++) {
		if (!roles->planned[c])
			continue;
		set_bits(o, &r, roles, cluster, (int32_t)c);
		fill_rows(o, &r, (int32_t)c);
		sum_rows(o, &r, (int32_t)c);
	}
	rows_free(&r);
	return o;
}

void sw_overlap_free(sw_overlap *o)
{
	if (!o)
		return;
	sw_arena_clear(&o->arena);
	free(o);
}

double sw_overlap_all_s(const sw_overlap *o, int32_t computation)
{
	return o->all_s[computation];
}

sw_overlap_span sw_overlap_span_of(const sw_overlap *o, sw_id from, sw_id to)
{
	double all_s = o->all_s[sw_op_at(o->program, from)->computation], behind_s = 0;
	if (to != SW_NO_ID)
		behind_s = from == to ? o->after_s[to] - o->own_s[to] : o->after_s[to];
	return (sw_overlap_span){
		.begin_s = o->before_s[from], .end_s = all_s - behind_s, .all_s = all_s};
}

double sw_overlap_window_s(const sw_overlap *o, sw_id from, sw_id to)
{
	sw_overlap_span span = sw_overlap_span_of(o, from, to);
	return SW_MAX(span.end_s - span.begin_s, 0);
}

/* Less than min_overlap_weight, and plans that communicate without need cost almost as little as
 * others. */
double sw_overlap_weight(const sw_roles *roles, const sw_cluster *cluster, uint32_t atoms,
                         const sw_model_limits *limits)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		if (roles->input_role[i] == SW_ROLE_PARAMETER)
			bytes += sw_shape_bytes(sw_value_shape(roles->program, roles->inputs[i]));
	double copies = (double)cluster->n_devices / (double)sw_atoms_group_size(&cluster->atoms, atoms);
	double kernels_s = copies * computation_s(roles, cluster, roles->program->entry);
	double reduce_s = sw_cost_collective((void *)cluster, SW_MOVE_ALL_REDUCE, atoms, bytes);
	double power = round(log2(reduce_s / kernels_s));
	return isfinite(power) ? fmin(fmax(exp2(power), limits->min_overlap_weight), 1) : 1;
}
