/*
 * Small collectives are begun as one: several of a kind, among the same devices, then take the latency of one.
 *
 * The starts of a group stand where the last of them stood, its dones where the first stood; so nobody may wait for one before the last can
 * begin. What joins a group, or what it joins, is SMALL: it takes mostly latency. While a group waits for its stream nothing is lost by
 * joining it (QUEUED); what need not wait for anybody may still be held back until others of its kind come (HELD). Where the plan says how many
 * bytes are to be merged (Horovod's fusion buffer), all-reduces are held back until there are so many, however long they take.
 */
#include "schedule/internal.h"

#include <string.h>

typedef struct group {
	uint32_t first, last; /* starts */
	int64_t bytes;
	double seconds;
} group;

typedef struct combiner {
	const sw_cluster *cluster;
	const sw_tasks *graph;
	sw_task *tasks;
	const sw_stream_span *spans;
	bool held;
	int64_t merge_bytes; /* 0: not said */
	SW_VEC(group) groups;
	SW_VEC(int32_t) open; /* nobody has waited for them yet */
	int32_t *group_of;    /* per start */
	double now_s;
} combiner;

/* ---- what may be one ---------------------------------------------------------------------------------------- */

static bool same_ints(sw_ints a, sw_ints b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, sizeof(*a.v) * (size_t)a.n) == 0);
}

static bool same_groups(const sw_groups *a, const sw_groups *b)
{
	if (a->n_groups != b->n_groups || a->group_size != b->group_size)
		return false;
	if (!a->list && !b->list && same_ints(a->reshape, b->reshape) &&
	    same_ints(a->transpose, b->transpose))
		return true;
	for (int64_t g = 0; g < a->n_groups; g++)
		for (int64_t m = 0; m < a->group_size; m++)
			if (sw_groups_member(a, g, m) != sw_groups_member(b, g, m))
				return false;
	return true;
}

static sw_monoid monoid_of(const sw_program *program, const sw_op *op)
{
	return op->n_called ? sw_computation_monoid(program, op->called[0]) : SW_MONOID_NONE;
}

static sw_type type_of(const sw_program *program, const sw_op *op)
{
	return sw_value_shape(program, op->operands[0]).type;
}

static bool can_combine(const sw_op *op)
{
	return (op->opcode == SW_OP_ALL_REDUCE || op->opcode == SW_OP_ALL_GATHER ||
	        op->opcode == SW_OP_REDUCE_SCATTER) &&
	       op->n_operands == 1 && !op->control;
}

static bool are_alike(const sw_program *program, const sw_op *a, const sw_op *b)
{
	return a->opcode == b->opcode && a->attrs->collective.dimension == b->attrs->collective.dimension &&
	       type_of(program, a) == type_of(program, b) &&
	       monoid_of(program, a) == monoid_of(program, b) &&
	       same_groups(&a->attrs->collective.groups, &b->attrs->collective.groups);
}

/* ---- groups ------------------------------------------------------------------------------------------------- */

static double seconds_of(const combiner *c, uint32_t start, int64_t *bytes)
{
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t own_bytes;
	sw_cost_collective_op(c->cluster, c->graph->program, c->tasks[start].op, &kind, &atoms, &own_bytes);
	*bytes += own_bytes;
	return sw_cost_choose(c->cluster, kind, atoms, *bytes).seconds;
}

/* Takes less than half of its seconds when it comes to what takes `rest_s` without it. */
static bool is_small(double own_s, double rest_s, double together_s)
{
	return together_s - rest_s < own_s / 2;
}

static bool may_join(const combiner *c, const group *g, uint32_t start, int64_t together_bytes,
                     double together_s)
{
	if (c->merge_bytes > 0)
		return together_bytes <= c->merge_bytes &&
		       sw_op_at(c->graph->program, c->tasks[start].op)->opcode == SW_OP_ALL_REDUCE;
	double own_s = c->tasks[start].seconds;
	bool small = is_small(own_s, g->seconds, together_s),
	     small_group = is_small(g->seconds, own_s, together_s);
	bool queued = c->spans[g->first].begin_s >= c->now_s;
	return c->held ? small && small_group : queued && (small || small_group);
}

static bool try_join(combiner *c, int32_t number, uint32_t start)
{
	group *g = &c->groups.data[number];
	const sw_program *program = c->graph->program;
	if (!are_alike(program, sw_op_at(program, c->tasks[start].op),
	               sw_op_at(program, c->tasks[g->first].op)))
		return false;
	int64_t bytes = g->bytes;
	double seconds = seconds_of(c, start, &bytes);
	if (!may_join(c, g, start, bytes, seconds))
		return false;
	c->tasks[g->last].with = start;
	c->tasks[start].joined = true;
	*g = (group){g->first, start, bytes, seconds};
	c->group_of[start] = number;
	return true;
}

static void take_start(combiner *c, uint32_t start)
{
	if (!c->tasks[start].split || !can_combine(sw_op_at(c->graph->program, c->tasks[start].op)))
		return;
	for (size_t i = 0; i < c->open.len; i++)
		if (try_join(c, c->open.data[i], start))
			return;
	group alone = {start, start, 0, c->tasks[start].seconds};
	seconds_of(c, start, &alone.bytes);
	c->group_of[start] = (int32_t)c->groups.len;
	sw_vec_push(&c->open, (int32_t)c->groups.len);
	sw_vec_push(&c->groups, alone);
}

static void close_group(combiner *c, int32_t number)
{
	size_t left = 0;
	for (size_t i = 0; i < c->open.len; i++)
		if (c->open.data[i] != number)
			c->open.data[left++] = c->open.data[i];
	c->open.len = left;
}

static void form_groups(combiner *c, const uint32_t *order)
{
	for (uint32_t i = 0; i < c->graph->n; i++) {
		uint32_t t = order[i];
		if (c->tasks[t].kind == SW_TASK_START)
			take_start(c, t);
		else
			c->now_s = c->spans[t].end_s;
		if (c->tasks[t].kind == SW_TASK_DONE)
			close_group(c, c->group_of[c->tasks[t].partner]);
	}
}

/* The stream has it all at its first start. */
static void share_seconds(combiner *c)
{
	for (size_t i = 0; i < c->groups.len; i++) {
		const group *g = &c->groups.data[i];
		for (uint32_t t = g->first; t != SW_NO_TASK; t = c->tasks[t].with)
			c->tasks[t].seconds = 0;
		c->tasks[g->first].seconds = g->seconds;
	}
}

/* ---- the order ---------------------------------------------------------------------------------------------- */

/* Of a group all starts at the last of them, and all dones at the first. */
static uint32_t *gather_groups(const combiner *c, const uint32_t *order, sw_arena *arena)
{
	uint32_t *gathered = SW_NEW_N(arena, uint32_t, c->graph->n + 1), n = 0;
	bool *waited = SW_NEW_N(arena, bool, c->groups.len + 1);
	for (uint32_t i = 0; i < c->graph->n; i++) {
		const sw_task *task = &c->tasks[order[i]];
		bool start = task->kind == SW_TASK_START, done = task->kind == SW_TASK_DONE;
		int32_t number = start || done ? c->group_of[start ? order[i] : task->partner] : -1;
		if (number < 0) {
			gathered[n++] = order[i];
			continue;
		}
		if (start ? order[i] != c->groups.data[number].last : waited[number])
			continue;
		waited[number] = done;
		for (uint32_t t = c->groups.data[number].first; t != SW_NO_TASK; t = c->tasks[t].with)
			gathered[n++] = start ? t : c->tasks[t].partner;
	}
	return gathered;
}

uint32_t *sw_order_combine(const sw_cluster *cluster, const sw_tasks *graph, const uint32_t *order,
                           bool held, int64_t merge_bytes, sw_arena *arena, sw_tasks *combined)
{
	combiner c = {.cluster = cluster, .graph = graph, .held = held, .merge_bytes = merge_bytes};
	sw_stream_span *spans = SW_NEW_N(arena, sw_stream_span, graph->n + 1);
	sw_streams_play(graph, order, spans);
	c.spans = spans;
	c.tasks = sw_arena_copy(arena, graph->tasks, sizeof(sw_task) * graph->n);
	c.group_of = SW_NEW_N(arena, int32_t, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		c.group_of[t] = -1;
	form_groups(&c, order);
	share_seconds(&c);
	*combined = *graph;
	combined->tasks = c.tasks;
	uint32_t *gathered = gather_groups(&c, order, arena);
	sw_vec_clear(&c.groups);
	sw_vec_clear(&c.open);
	return gathered;
}
