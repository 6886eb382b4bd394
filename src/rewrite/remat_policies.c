/*
 * Rematerialisation: which ops are worth computing again.
 *
 * Within a segment the values that are kept are a cheapest cut, in bytes, between the values that
 * are available anyway (critical values, inputs) and those that late ops read; the result of an op
 * too expensive to be computed again is available only if it is kept. Pytorch's AOTAutograd
 * partitions a joint graph in the same way (He and Yu, "Transcending runtime-memory tradeoffs in
 * checkpointing by being fusion aware", MLSys 2023).
 */
#include "rewrite/rewrite.h"

#include <string.h>

#include "rewrite/min_cut.h"

/* A side value is computed again if that moves at most this many times its bytes: masks and
 * converted weights qualify, random numbers do not. */
#define MAX_SIDE_COST 64

typedef enum remat_level {
	NOTHING,      /* nothing is computed again */
	ELEMENTWISE,  /* ops that neither contract nor sort nor loop */
	MEMORY_BOUND, /* ops that take longer to move than to compute */
	EVERYTHING,   /* all ops that are repeatable */
} remat_level;

/* The costs of an op. */
typedef struct recompute_price {
	double flops, bytes;
	bool repeatable;
} recompute_price;

typedef struct chooser {
	const sw_remat_points *points;
	const sw_program *program;
	sw_remat_device device;
	sw_arena arena;
	const recompute_price *prices;
	/* per op: computed again in every policy but "none" and "early gradients" */
	const bool *sides;
	const bool *late; /* per op: late ops read it */
	sw_users users;
} chooser;

/* ---- prices ----------------------------------------------------------------------------- */

static bool is_repeatable_opcode(const sw_op *op)
{
	switch (sw_opcode_class((sw_opcode)op->opcode)) {
	case SW_CLASS_COLLECTIVE:
		return false;
	case SW_CLASS_RANDOM:
		return op->opcode == SW_OP_RNG_BIT_GENERATOR;
	case SW_CLASS_OTHER:
		return op->opcode == SW_OP_OPT_BARRIER;
	default:
		return true;
	}
}

/* Find the ops that can be repeated. Callees come first. */
static bool *find_repeatable(const sw_program *program, sw_arena *arena)
{
	bool *ops = SW_NEW_N(arena, bool, program->ops.len + 1);
	bool *computations = SW_NEW_N(arena, bool, program->computations.len + 1);
	for (size_t c = 0; c < program->computations.len; c++) {
		const sw_computation *computation = &program->computations.data[c];
		computations[c] = true;
		for (size_t i = 0; i < computation->ops.len; i++) {
			sw_id id = computation->ops.data[i];
			const sw_op *op = sw_op_at(program, id);
			ops[id] = is_repeatable_opcode(op);
			for (uint32_t k = 0; k < op->n_called; k++)
				ops[id] &= computations[op->called[k]];
			computations[c] &= ops[id];
		}
	}
	return ops;
}

static bool is_candidate(const sw_remat_points *points, sw_id op)
{
	return points->roles[op] == SW_REMAT_SIDE || points->roles[op] == SW_REMAT_FLOW;
}

static const recompute_price *find_prices(const sw_remat_points *points, sw_arena *arena)
{
	const sw_program *program = points->program;
	const bool *repeatable = find_repeatable(program, arena);
	recompute_price *prices = SW_NEW_N(arena, recompute_price, program->ops.len + 1);
	for (sw_id id = 0; id < program->ops.len; id++)
		if (is_candidate(points, id))
			prices[id] = (recompute_price){sw_op_flops(program, id),
			                               sw_op_bytes(program, id), repeatable[id]};
	return prices;
}

/* Return whether the op takes more than a pass over its operands and results. */
static bool is_expensive_opcode(const sw_op *op)
{
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	switch (op->opcode) {
	case SW_OP_DOT:
	case SW_OP_SCALED_DOT:
	case SW_OP_RAGGED_DOT:
	case SW_OP_CONVOLUTION:
	case SW_OP_SORT:
	case SW_OP_TOPK:
		return true;
	default:
		return class == SW_CLASS_REGION || class == SW_CLASS_LINALG;
	}
}

static bool is_too_expensive(const chooser *x, sw_id id, remat_level level)
{
	const sw_op *op = sw_op_at(x->program, id);
	recompute_price p = x->prices[id];
	bool contracts = op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION;
	if (!p.repeatable || level == NOTHING)
		return true;
	if (level == EVERYTHING || !is_expensive_opcode(op))
		return false;
	return level == ELEMENTWISE || !contracts ||
	       p.flops / x->device.flops_per_s > p.bytes / x->device.bytes_per_s;
}

/* ---- side ops --------------------------------------------------------------------------- */

static int64_t result_bytes(const sw_program *program, const sw_op *op)
{
	int64_t bytes = 0;
	for (uint32_t r = 0; r < op->n_results; r++)
		bytes += sw_shape_bytes(sw_value_shape(program, op->first_result + r));
	return bytes;
}

/* Return the bytes moved to compute the op from inputs and constants; infinite where it must not be
 * computed again. Shared operands count once for each reader. */
static double side_cost(const chooser *x, sw_id id, const double *cost)
{
	const sw_op *op = sw_op_at(x->program, id);
	double total = x->prices[id].bytes;
	if (is_too_expensive(x, id, ELEMENTWISE) ||
	    (op->opcode == SW_OP_IOTA && sw_value_shape(x->program, op->first_result).rank < 2))
		return 1.0 / 0.0;
	for (uint32_t k = 0; k < op->n_operands; k++)
		total += cost[x->program->values.data[op->operands[k]].op];
	return total;
}

static const bool *choose_sides(const chooser *x, sw_arena *arena)
{
	const sw_computation *entry = sw_entry(x->program);
	double *cost = SW_NEW_N(arena, double, x->program->ops.len + 1);
	bool *sides = SW_NEW_N(arena, bool, x->program->ops.len + 1);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(x->program, id);
		if (x->points->roles[id] != SW_REMAT_SIDE)
			continue;
		cost[id] = side_cost(x, id, cost);
		sides[id] = cost[id] <= MAX_SIDE_COST * (double)result_bytes(x->program, op);
		/* A kept value costs its readers nothing. */
		if (!sides[id])
			cost[id] = 0;
	}
	return sides;
}

/* ---- cuts ------------------------------------------------------------------------------- */

/* The ops of one segment, or of several that are treated as one. */
typedef struct piece {
	const chooser *x;
	int32_t every, segments;
	const sw_id *ops;
	int32_t n;
	const int32_t *number; /* per op: its place in ops, valid if ops[number] is the op */
	remat_level level;
} piece;

static int32_t node_in(int32_t i)
{
	return 2 + 2 * i;
}

static bool is_kept_anyway(const piece *p, sw_id op)
{
	const sw_op *o = sw_op_at(p->x->program, op);
	for (uint32_t r = 0; r < o->n_results; r++)
		if (sw_remat_is_critical(p->x->points, o->first_result + r, p->every))
			return true;
	return false;
}

/* Return the op's number in the piece, -1 if it lies elsewhere or is kept anyway. */
static int32_t number_of(const piece *p, sw_id op)
{
	int32_t i = p->number[op];
	return i >= 0 && i < p->n && p->ops[i] == op && !is_kept_anyway(p, op) ? i : -1;
}

static void add_node(const piece *p, int32_t i, sw_cut *cut)
{
	const sw_op *op = sw_op_at(p->x->program, p->ops[i]);
	sw_cut_add(cut, node_in(i), node_in(i) + 1, SW_MAX(result_bytes(p->x->program, op), 1));
	if (p->x->late[p->ops[i]])
		sw_cut_add(cut, node_in(i) + 1, SW_CUT_SINK, SW_CUT_NEVER);
	if (is_too_expensive(p->x, p->ops[i], p->level)) {
		sw_cut_add(cut, SW_CUT_SOURCE, node_in(i), SW_CUT_NEVER);
		return;
	}
	for (uint32_t k = 0; k < op->n_operands; k++) {
		int32_t from = number_of(p, p->x->program->values.data[op->operands[k]].op);
		if (from >= 0)
			sw_cut_add(cut, node_in(from) + 1, node_in(i), SW_CUT_NEVER);
	}
}

static void cut_piece(const piece *p, bool *again)
{
	sw_cut cut;
	bool *behind = sw_alloc(2 + 2 * (size_t)p->n);
	sw_cut_init(&cut, 2 + 2 * p->n);
	for (int32_t i = 0; i < p->n; i++)
		if (!is_kept_anyway(p, p->ops[i]))
			add_node(p, i, &cut);
	if (sw_cut_solve(&cut, behind))
		for (int32_t i = 0; i < p->n; i++)
			again[p->ops[i]] = behind[node_in(i)] && behind[node_in(i) + 1];
	sw_cut_clear(&cut);
	free(behind);
}

/* ---- policies --------------------------------------------------------------------------- */

/* A policy is a row here and nothing else: inspect, plan --remat and the search take
 * them all from this table. */
typedef struct recipe {
	const char *name;
	/* How much the first `part` of `parts` of the segments, whose copies come when most else is
	 * freed, compute again, and how much the others do. */
	remat_level first, rest;
	int32_t part, parts;
	int32_t every; /* keeps every so-manieth critical value */
} recipe;

static const recipe recipes[] = {
	/* Weight gradients are computed as soon as can be; so in all that follow. */
	{"early gradients", NOTHING, NOTHING, 1, 1, 1},
	{"elementwise", ELEMENTWISE, ELEMENTWISE, 1, 1, 1},
	/* Attention's contractions are computed again, a layer's are not. */
	{"memory-bound", MEMORY_BOUND, MEMORY_BOUND, 1, 1, 1},
	/* AxoNN and Megatron call "blocks" activation checkpointing. */
	{"blocks 1/4", EVERYTHING, ELEMENTWISE, 1, 4, 1},
	{"blocks 1/2", EVERYTHING, ELEMENTWISE, 1, 2, 1},
	{"blocks 3/4", EVERYTHING, ELEMENTWISE, 3, 4, 1},
	{"blocks", EVERYTHING, EVERYTHING, 1, 1, 1},
	{"blocks of 2", EVERYTHING, EVERYTHING, 1, 1, 2},
	{"blocks of 4", EVERYTHING, EVERYTHING, 1, 1, 4},
};

/* List flow ops by segment: those of segment s are ops[start[s] .. start[s + 1]). */
static sw_id *list_segments(const chooser *x, sw_arena *arena, int32_t *start)
{
	const sw_computation *entry = sw_entry(x->program);
	int32_t n = x->points->n_segments;
	sw_id *ops = SW_NEW_N(arena, sw_id, entry->ops.len + 1);
	int32_t *next = SW_NEW_N(arena, int32_t, n + 2);
	for (size_t i = 0; i < entry->ops.len; i++)
		if (x->points->segment[entry->ops.data[i]] >= 0)
			start[x->points->segment[entry->ops.data[i]] + 1]++;
	for (int32_t s = 0; s < n; s++)
		next[s + 1] = start[s + 1] += start[s];
	for (size_t i = 0; i < entry->ops.len; i++)
		if (x->points->segment[entry->ops.data[i]] >= 0)
			ops[next[x->points->segment[entry->ops.data[i]]]++] = entry->ops.data[i];
	return ops;
}

static sw_remat apply_recipe(const chooser *x, const recipe *r, sw_arena *to)
{
	int32_t n = x->points->n_segments, pieces = (n + r->every - 1) / r->every;
	bool *again = SW_NEW_N(to, bool, x->program->ops.len + 1);
	sw_arena arena;
	sw_arena_init(&arena);
	int32_t *start = SW_NEW_N(&arena, int32_t, n + 2);
	int32_t *number = SW_NEW_N(&arena, int32_t, x->program->ops.len + 1);
	const sw_id *ops = list_segments(x, &arena, start);
	if (r->first != NOTHING)
		memcpy(again, x->sides, x->program->ops.len);
	for (int32_t k = 0; k < pieces; k++) {
		int32_t begin = start[k * r->every], end = start[SW_MIN((k + 1) * r->every, n)];
		piece p = {.x = x,
		           .every = r->every,
		           .ops = ops + begin,
		           .n = end - begin,
		           .number = number};
		for (int32_t i = begin; i < end; i++)
			number[ops[i]] = i - begin;
		p.level = k < (pieces * r->part + r->parts - 1) / r->parts ? r->first : r->rest;
		cut_piece(&p, again);
	}
	sw_arena_clear(&arena);
	return (sw_remat){.points = x->points, .again = again, .every = r->every};
}

/* Count the bytes of activations that are still kept: values that late ops, or copies, read and
 * that are not computed again. */
static int64_t count_kept(const chooser *x, const bool *again)
{
	int64_t bytes = 0;
	for (sw_id v = 0; v < x->program->values.len; v++) {
		sw_id op = x->program->values.data[v].op;
		bool read = false;
		if (!is_candidate(x->points, op) || again[op])
			continue;
		for (uint32_t u = x->users.start[v]; u < x->users.start[v + 1] && !read; u++)
			read = x->points->roles[x->users.ops[u]] == SW_REMAT_LATE ||
			       again[x->users.ops[u]];
		bytes += read ? sw_shape_bytes(sw_value_shape(x->program, v)) : 0;
	}
	return bytes;
}

/* ---- estimates -------------------------------------------------------------------------- */

static double op_seconds(const sw_program *program, sw_id id, sw_remat_device device)
{
	return SW_MAX(sw_op_flops(program, id) / device.flops_per_s,
	              sw_op_bytes(program, id) / device.bytes_per_s);
}

static double program_seconds(const sw_program *program, sw_remat_device device)
{
	double seconds = 0;
	for (size_t i = 0; i < sw_entry(program)->ops.len; i++)
		seconds += op_seconds(program, sw_entry(program)->ops.data[i], device);
	return seconds;
}

static void estimate(const chooser *x, const sw_program *out, sw_remat_policy *policy)
{
	const sw_program *in = x->program;
	policy->peak_bytes = sw_program_peak_bytes(out, out->entry);
	policy->kept_bytes = count_kept(x, policy->what.again);
	policy->added_flops = sw_program_flops(out) - sw_program_flops(in);
	policy->added_bytes = sw_program_bytes(out) - sw_program_bytes(in);
	policy->added_s = program_seconds(out, x->device) - program_seconds(in, x->device);
}

/* ---- the list --------------------------------------------------------------------------- */

static int by_seconds(const void *a, const void *b)
{
	const sw_remat_policy *x = a, *y = b;
	return (x->added_s > y->added_s) - (x->added_s < y->added_s);
}

/* Drop each policy that does not lower the peak of those that cost less. The first is "none". */
static void drop_dominated(sw_remat_policy_list *list)
{
	size_t n = 1;
	int64_t peak = list->data[0].peak_bytes;
	qsort(list->data + 1, list->len - 1, sizeof(*list->data), by_seconds);
	for (size_t i = 1; i < list->len; i++) {
		sw_remat_policy policy = list->data[i];
		if (policy.peak_bytes >= peak)
			continue;
		peak = policy.peak_bytes;
		list->data[n++] = policy;
	}
	list->len = n;
}

static sw_status add_policies(const chooser *x, sw_arena *arena, sw_remat_policy_list *list,
                              sw_error *err)
{
	for (size_t i = 0; i < SW_COUNT(recipes); i++) {
		sw_remat_policy policy = {.name = recipes[i].name,
		                          .what = apply_recipe(x, &recipes[i], arena)};
		sw_program *out;
		sw_status status = sw_rewrite_remat(x->program, &policy.what, &out, err);
		if (status != SW_OK)
			return status;
		if (!out)
			continue;
		estimate(x, out, &policy);
		sw_program_free(out);
		sw_vec_push(list, policy);
	}
	return SW_OK;
}

static const bool *find_late(const chooser *x, sw_arena *arena)
{
	bool *late = SW_NEW_N(arena, bool, x->program->ops.len + 1);
	for (sw_id v = 0; v < x->program->values.len; v++)
		for (uint32_t u = x->users.start[v]; u < x->users.start[v + 1]; u++)
			late[x->program->values.data[v].op] |=
				x->points->roles[x->users.ops[u]] == SW_REMAT_LATE;
	return late;
}

static void chooser_init(chooser *x, const sw_remat_points *points, sw_remat_device device)
{
	*x = (chooser){.points = points, .program = points->program, .device = device};
	sw_arena_init(&x->arena);
	x->users = sw_program_users(x->program, &x->arena);
	x->prices = find_prices(points, &x->arena);
	x->sides = choose_sides(x, &x->arena);
	x->late = find_late(x, &x->arena);
}

sw_status sw_remat_policies(sw_remat_points *points, sw_remat_device device,
                            sw_remat_policy_list *list, sw_error *err)
{
	const sw_program *program = points->program;
	sw_status status = SW_OK;
	*list = (sw_remat_policy_list){0};
	sw_vec_push(list,
	            ((sw_remat_policy){.name = "none",
	                               .what = {.points = points, .every = 1},
	                               .peak_bytes = sw_program_peak_bytes(program, program->entry),
	                               .kept_bytes = points->kept_bytes}));
	if (points->n_segments > 0) {
		chooser x;
		chooser_init(&x, points, device);
		status = add_policies(&x, &points->arena, list, err);
		drop_dominated(list);
		sw_arena_clear(&x.arena);
	}
	return status;
}

/* ---- one policy ------------------------------------------------------------------------- */

const char *sw_remat_policy_name(size_t i)
{
	return i < SW_COUNT(recipes) ? recipes[i].name : NULL;
}

static const recipe *find_recipe(const char *name)
{
	for (size_t i = 0; i < SW_COUNT(recipes); i++)
		if (strcmp(recipes[i].name, name) == 0)
			return &recipes[i];
	return NULL;
}

static sw_status no_such_policy(const char *name, sw_error *err)
{
	sw_text names = {0};
	for (size_t i = 0; i < SW_COUNT(recipes); i++)
		sw_text_addf(&names, "%s'%s'", i ? ", " : "", recipes[i].name);
	sw_status status =
		sw_fail(err, SW_ERR_INPUT, "there is no rematerialisation policy '%s', only %s",
	                name, names.data);
	sw_text_clear(&names);
	return status;
}

static sw_status apply_policy(sw_remat_points *points, const recipe *r, sw_remat_device device,
                              sw_program **out, sw_error *err)
{
	if (points->n_segments == 0)
		return SW_OK;
	chooser x;
	chooser_init(&x, points, device);
	sw_remat what = apply_recipe(&x, r, &points->arena);
	sw_arena_clear(&x.arena);
	return sw_rewrite_remat(points->program, &what, out, err);
}

sw_status sw_rewrite_remat_policy(const sw_program *in, const char *policy, sw_remat_device device,
                                  sw_program **out, sw_error *err)
{
	const recipe *r = find_recipe(policy);
	sw_remat_points points;
	*out = NULL;
	if (!r)
		return no_such_policy(policy, err);
	sw_remat_points_init(&points, in);
	sw_status status = apply_policy(&points, r, device, out, err);
	sw_remat_points_clear(&points);
	if (status == SW_OK && !*out)
		status = sw_fail(err, SW_NO,
		                 "rematerialisation '%s' finds nothing to compute again in '%s'",
		                 policy, in->name);
	return status;
}
