/*
 * Small collectives are begun as one: several of a kind, among the same devices, then take the
 * latency of one.
 *
 * A group begins when the last of them can, and all wait for it as for one; so nobody may wait for
 * one before the last can begin. What joins a group, or what it joins, is SMALL: it takes mostly
 * latency. While a group waits for its stream nothing is lost by joining it (QUEUED); what need not
 * wait for anybody may still be held back until others of its kind come (HELD). Where the plan says
 * how many bytes are to be merged (Horovod's fusion buffer), all-reduces are held back until there
 * are so many, however long they take.
 */
#include "schedule/internal.h"

#include <string.h>

typedef struct group {
	uint32_t first, last; /* starts */
	int64_t bytes;
	double seconds;
} group;

typedef SW_VEC(sw_task_edge) edge_list;
typedef SW_VEC(sw_id) op_list;

/* What a start begins; `sort`: a number of those with whom it can be one, -1: with none. */
typedef struct begun {
	int32_t sort;
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
} begun;

typedef struct combiner {
	const sw_cluster *cluster;
	const sw_tasks *graph;
	sw_task *tasks;
	const sw_stream_span *spans;
	bool held;
	int64_t merge_bytes; /* 0: not said */
	SW_VEC(group) groups;
	SW_VEC(int32_t) open; /* nobody has waited for them yet */
	begun *begun;         /* per start */
	int32_t *group_of;    /* per start */
	double now_s;
} combiner;

/* ---- what may be one -------------------------------------------------------------------- */

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

static bool can_combine(const sw_op *op, sw_collective_kind kind)
{
	return sw_collective_combines(kind) && op->n_operands == 1 && !op->control;
}

static bool are_alike(const sw_program *program, const sw_op *a, const sw_op *b)
{
	return a->opcode == b->opcode &&
	       a->attrs->collective.dimension == b->attrs->collective.dimension &&
	       type_of(program, a) == type_of(program, b) &&
	       monoid_of(program, a) == monoid_of(program, b) &&
	       same_groups(&a->attrs->collective.groups, &b->attrs->collective.groups);
}

/* Of each sort one op is known. */
static int32_t sort_of(const sw_program *program, const sw_op *op, op_list *sorts)
{
	for (size_t i = 0; i < sorts->len; i++)
		if (are_alike(program, op, sw_op_at(program, sorts->data[i])))
			return (int32_t)i;
	sw_vec_push(sorts, (sw_id)(op - program->ops.data));
	return (int32_t)sorts->len - 1;
}

static void list_begun(combiner *c, sw_arena *arena)
{
	const sw_program *program = c->graph->program;
	op_list sorts = {0};
	c->begun = SW_NEW_N(arena, begun, c->graph->n + 1);
	for (uint32_t t = 0; t < c->graph->n; t++) {
		const sw_task *task = &c->tasks[t];
		begun *what = &c->begun[t];
		if (task->kind != SW_TASK_START)
			continue;
		bool can = task->split &&
		           sw_cost_collective_op(c->cluster, program, task->op, &what->kind,
		                                 &what->atoms, &what->bytes) &&
		           can_combine(sw_op_at(program, task->op), what->kind);
		what->sort = can ? sort_of(program, sw_op_at(program, task->op), &sorts) : -1;
	}
	sw_vec_clear(&sorts);
}

/* ---- groups ----------------------------------------------------------------------------- */

static double seconds_of(const combiner *c, const begun *what, int64_t bytes)
{
	return sw_cost_choose(c->cluster, what->kind, what->atoms, bytes).seconds;
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
	const begun *what = &c->begun[start];
	if (what->sort != c->begun[g->first].sort)
		return false;
	int64_t bytes = g->bytes + what->bytes;
	double seconds = seconds_of(c, what, bytes);
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
	if (c->begun[start].sort < 0)
		return;
	for (size_t i = 0; i < c->open.len; i++)
		if (try_join(c, c->open.data[i], start))
			return;
	group alone = {start, start, c->begun[start].bytes, c->tasks[start].seconds};
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

/* ---- the graph with them ---------------------------------------------------------------- */

/* The first start takes all the time; it waits for what the others read, and what reads theirs for
 * its done. */
static void join_halves(combiner *c, uint32_t first, double seconds, edge_list *links)
{
	c->tasks[first].seconds = seconds;
	for (uint32_t t = c->tasks[first].with; t != SW_NO_TASK; t = c->tasks[t].with) {
		sw_task *start = &c->tasks[t], *done = &c->tasks[start->partner];
		start->seconds = 0;
		start->kind = done->kind = SW_TASK_KERNEL;
		start->joined = done->joined = true;
		sw_vec_push(links, ((sw_task_edge){t, first}));
		sw_vec_push(links, ((sw_task_edge){c->tasks[first].partner, start->partner}));
	}
}

/* Returns its numbers of the given graph's tasks. */
static const uint32_t *make_graph(combiner *c, sw_arena *arena, sw_tasks *combined)
{
	edge_list links = {0};
	for (size_t i = 0; i < c->groups.len; i++)
		join_halves(c, c->groups.data[i].first, c->groups.data[i].seconds, &links);
	*combined = *c->graph;
	combined->tasks = c->tasks;
	combined->n_starts -= (uint32_t)links.len / 2;
	const uint32_t *number = sw_tasks_link(combined, links.data, links.len, arena);
	sw_vec_clear(&links);
	return number;
}

typedef struct lister {
	const sw_tasks *graph;
	bool *listed;
	uint32_t *kernels, n;
} lister;

static void list_kernel(lister *l, uint32_t t)
{
	const sw_task *task = &l->graph->tasks[t];
	if (!l->listed[t] && sw_task_computes(task))
		l->kernels[l->n++] = t;
	l->listed[t] = true;
}

static bool is_later_half(const sw_tasks *graph, uint32_t t)
{
	return graph->tasks[t].joined && graph->tasks[t].partner < t;
}

/* As in the order given, but for later halves of those that joined: right before what reads them.
 */
static uint32_t *list_kernels(const sw_tasks *graph, const uint32_t *order, const uint32_t *number,
                              sw_arena *arena, uint32_t *n)
{
	const sw_task_list *before = &graph->before;
	lister l = {graph, SW_NEW_N(arena, bool, graph->n + 1),
	            SW_NEW_N(arena, uint32_t, graph->n + 1), 0};
	for (uint32_t i = 0; i < graph->n; i++) {
		uint32_t t = number[order[i]];
		if (is_later_half(graph, t))
			continue;
		for (uint32_t k = before->start[t]; k < before->start[t + 1]; k++)
			if (is_later_half(graph, before->tasks[k]))
				list_kernel(&l, before->tasks[k]);
		list_kernel(&l, t);
	}
	for (uint32_t t = 0; t < graph->n; t++)
		list_kernel(&l, t);
	*n = l.n;
	return l.kernels;
}

uint32_t *sw_order_combine(const sw_cluster *cluster, const sw_tasks *graph, const uint32_t *order,
                           double stretch, bool held, int64_t merge_bytes, sw_arena *arena,
                           sw_tasks *combined, uint32_t *n)
{
	combiner c = {.cluster = cluster, .graph = graph, .held = held, .merge_bytes = merge_bytes};
	sw_stream_span *spans = SW_NEW_N(arena, sw_stream_span, graph->n + 1);
	sw_streams_play(graph, order, stretch, spans);
	c.spans = spans;
	c.tasks = sw_arena_copy(arena, graph->tasks, sizeof(sw_task) * graph->n);
	c.group_of = SW_NEW_N(arena, int32_t, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		c.group_of[t] = -1;
	list_begun(&c, arena);
	form_groups(&c, order);
	const uint32_t *number = make_graph(&c, arena, combined);
	sw_vec_clear(&c.groups);
	sw_vec_clear(&c.open);
	return combined->n_starts < graph->n_starts
	               ? list_kernels(combined, order, number, arena, n)
	               : NULL;
}
