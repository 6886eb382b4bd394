/*
 * Merge small collectives: several of a kind, among the same devices, then take the latency of one.
 *
 * A merge group begins when the last of its members can, and all readers wait for the whole group;
 * so no task may wait for a member before the last one can begin. A collective is SMALL if it takes
 * mostly latency; what joins a group, or the group that it joins, must be small. Joining costs
 * nothing while the group queues for its stream (QUEUED); a collective that need not queue may
 * still be deferred until others of its kind come (DEFERRED). Reductions may instead be cut into the
 * groups by which the last of them ends soonest (SOONEST). Where the plan gives how much to
 * merge (the fusion buffer of Horovod, the chunks of AutoDist), all-reduces are deferred until they
 * are that much, whatever time they take. All-reduces of the plan's merge groups are merged by
 * themselves, before orders are searched.
 */
#include "schedule/internal.h"

#include <math.h>
#include <string.h>

typedef struct merge_group {
	uint32_t first, last; /* starts */
	int64_t bytes, ops;
	double seconds;
} merge_group;

typedef SW_VEC(sw_task_edge) edge_list;
typedef SW_VEC(sw_id) op_list;

/* The collective that a start begins. equivalence_class: a number that is equal for collectives
 * that can be merged; -1: can't be merged. */
typedef struct merge_candidate {
	int32_t equivalence_class;
	sw_collective_kind kind;
	uint32_t atoms, algorithm; /* as in sw_sending */
	int64_t bytes;
} merge_candidate;

typedef struct combiner {
	const sw_cluster *cluster;
	const sw_tasks *graph;
	sw_schedule_task *tasks;
	const sw_stream_span *spans;
	const sw_schedule_limits *limits;
	sw_merge_way way;
	SW_VEC(merge_group) groups;
	SW_VEC(int32_t) open;        /* indices of groups of which no member was waited for */
	merge_candidate *candidates; /* per start */
	int32_t *group_of;           /* per start */
	double now_s;
} combiner;

/* ---- what can be merged ----------------------------------------------------------------- */

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

static uint32_t group_of_plan(const sw_op *op)
{
	return op->attrs->collective.sending.merge_group;
}

/* Those that begin one after the other, or by different algorithms, are not one. */
static bool same_sending(sw_sending a, sw_sending b)
{
	return a.merge_group == b.merge_group && a.algorithm == b.algorithm && a.order == b.order;
}

/* The same devices must run both. */
static bool are_mergeable(const sw_program *program, const sw_owners *owners, const sw_op *a,
                          const sw_op *b)
{
	return a->opcode == b->opcode &&
	       same_sending(a->attrs->collective.sending, b->attrs->collective.sending) &&
	       owners->runs[a - program->ops.data] == owners->runs[b - program->ops.data] &&
	       a->attrs->collective.dimension == b->attrs->collective.dimension &&
	       type_of(program, a) == type_of(program, b) &&
	       monoid_of(program, a) == monoid_of(program, b) &&
	       same_groups(&a->attrs->collective.groups, &b->attrs->collective.groups);
}

/* Return the equivalence class of an op; `classes` holds one op of each class. */
static int32_t class_of(const sw_program *program, const sw_owners *owners, const sw_op *op,
                        op_list *classes)
{
	for (size_t i = 0; i < classes->len; i++)
		if (are_mergeable(program, owners, op, sw_op_at(program, classes->data[i])))
			return (int32_t)i;
	sw_vec_push(classes, (sw_id)(op - program->ops.data));
	return (int32_t)classes->len - 1;
}

/* Returns the number of classes. */
static int32_t list_merge_candidates(combiner *c, sw_arena *arena)
{
	const sw_program *program = c->graph->program;
	sw_owners owners = sw_program_owners(program, arena);
	op_list classes = {0};
	c->candidates = SW_NEW_N(arena, merge_candidate, c->graph->n + 1);
	for (uint32_t t = 0; t < c->graph->n; t++) {
		const sw_schedule_task *task = &c->tasks[t];
		merge_candidate *what = &c->candidates[t];
		if (task->kind != SW_TASK_START)
			continue;
		bool can = task->split &&
		           sw_cost_collective_op(c->cluster, program, task->op, &what->kind,
		                                 &what->atoms, &what->bytes) &&
		           can_combine(sw_op_at(program, task->op), what->kind) &&
		           (group_of_plan(sw_op_at(program, task->op)) > 0) == c->way.groups;
		what->algorithm = can ? sw_cost_sending(program, task->op).algorithm : 0;
		what->equivalence_class =
			can ? class_of(program, &owners, sw_op_at(program, task->op), &classes)
			    : -1;
	}
	int32_t n_classes = (int32_t)classes.len;
	sw_vec_clear(&classes);
	return n_classes;
}

/* ---- groups ----------------------------------------------------------------------------- */

static double seconds_of(const combiner *c, const merge_candidate *what, int64_t bytes)
{
	return sw_cost_choose_said(c->cluster, what->algorithm, what->kind, what->atoms, bytes).seconds;
}

/* True if a collective of own_s adds less than the share small_share of that to one of rest_s,
 * together taking together_s. */
static bool is_small(const combiner *c, double own_s, double rest_s, double together_s)
{
	return together_s - rest_s < c->limits->small_share * own_s;
}

static bool may_join(const combiner *c, const merge_group *g, uint32_t start,
                     int64_t together_bytes, double together_s)
{
	sw_merge merge = c->way.merge;
	uint32_t group = group_of_plan(sw_op_at(c->graph->program, c->tasks[start].op));
	if (c->way.groups)
		return group > merge.n_groups || merge.groups[group - 1].bytes == 0 ||
		       together_bytes <= merge.groups[group - 1].bytes;
	if (sw_merge_is_given(merge))
		return (merge.bytes == 0 || together_bytes <= merge.bytes) &&
		       (merge.ops == 0 || g->ops < merge.ops) &&
		       sw_op_at(c->graph->program, c->tasks[start].op)->opcode == SW_OP_ALL_REDUCE;
	double own_s = c->tasks[start].seconds;
	bool small = is_small(c, own_s, g->seconds, together_s),
	     small_group = is_small(c, g->seconds, own_s, together_s);
	bool queued = c->spans[g->first].begin_s >= c->now_s;
	return c->way.deferred ? small && small_group : queued && (small || small_group);
}

/* Put a start into a group, which then takes so long. */
static void join(combiner *c, int32_t number, uint32_t start, double seconds)
{
	merge_group *g = &c->groups.data[number];
	c->tasks[g->last].next_merged = start;
	c->tasks[start].absorbed = true;
	c->group_of[start] = number;
	*g = (merge_group){g->first, start, g->bytes + c->candidates[start].bytes, g->ops + 1, seconds};
}

/* Make a group of one start, and return its number. */
static int32_t begin_group(combiner *c, uint32_t start)
{
	int32_t number = c->group_of[start] = (int32_t)c->groups.len;
	sw_vec_push(&c->groups, ((merge_group){start, start, c->candidates[start].bytes, 1,
	                                       c->tasks[start].seconds}));
	return number;
}

static bool try_join(combiner *c, int32_t number, uint32_t start)
{
	const merge_group *g = &c->groups.data[number];
	const merge_candidate *what = &c->candidates[start];
	if (what->equivalence_class != c->candidates[g->first].equivalence_class)
		return false;
	int64_t bytes = g->bytes + what->bytes;
	double seconds = seconds_of(c, what, bytes);
	if (!may_join(c, g, start, bytes, seconds))
		return false;
	join(c, number, start, seconds);
	return true;
}

static void group_start(combiner *c, uint32_t start)
{
	if (c->candidates[start].equivalence_class < 0 || c->group_of[start] >= 0)
		return;
	for (size_t i = 0; i < c->open.len; i++)
		if (try_join(c, c->open.data[i], start))
			return;
	sw_vec_push(&c->open, begin_group(c, start));
}

static void close_group(combiner *c, int32_t number)
{
	size_t left = 0;
	for (size_t i = 0; i < c->open.len; i++)
		if (c->open.data[i] != number)
			c->open.data[left++] = c->open.data[i];
	c->open.len = left;
}

/* Walk the order; a start joins the first open group that it may join, or opens one. */
static void form_groups(combiner *c, const uint32_t *order)
{
	for (uint32_t i = 0; i < c->graph->n; i++) {
		uint32_t t = order[i];
		if (c->tasks[t].kind == SW_TASK_START)
			group_start(c, t);
		else
			c->now_s = c->spans[t].end_s;
		if (c->tasks[t].kind == SW_TASK_DONE)
			close_group(c, c->group_of[c->tasks[t].partner]);
	}
}

/* ---- groups of reductions that end soonest ---------------------------------------------- */

/* The reductions of a class, in the order of their starts: when each can begin, and the place in
 * the order of the first op that waits for it. */
typedef struct reduction_start {
	uint32_t start, place, waited;
	double ready_s;
} reduction_start;
typedef SW_VEC(reduction_start) reduction_list;

static bool reduces(sw_collective_kind kind)
{
	return kind == SW_COLLECTIVE_ALL_REDUCE || kind == SW_COLLECTIVE_REDUCE_SCATTER;
}

/* place: per task, where it stands in the order. */
static void list_reductions(const combiner *c, const uint32_t *order, const uint32_t *place,
                            int32_t equivalence_class, reduction_list *list)
{
	double ready_s = 0;
	list->len = 0;
	for (uint32_t i = 0; i < c->graph->n; i++) {
		uint32_t t = order[i];
		if (c->tasks[t].kind != SW_TASK_START)
			ready_s = c->spans[t].end_s;
		else if (c->candidates[t].equivalence_class == equivalence_class)
			sw_vec_push(list,
			            ((reduction_start){t, i, place[c->tasks[t].partner], ready_s}));
	}
}

/* Cut r[0..n) into runs, each one collective that begins when its last member is ready and the run
 * before it has ended, such that the last run ends soonest; from[j] is the first of the run that
 * ends before j. Exact for one class with the stream to itself, by dynamic programming over where
 * runs end, as in MG-WFBP (Shi et al. 2019); no run is longer than the window. O(n * window). */
static void cut_runs(const combiner *c, const reduction_start *r, size_t n, size_t window,
                     size_t *from, double *end_s)
{
	end_s[0] = 0;
	for (size_t j = 1; j <= n; j++) {
		int64_t bytes = 0;
		uint32_t waited = UINT32_MAX;
		end_s[j] = INFINITY;
		for (size_t i = j; i-- > 0 && j - i <= window;) {
			const merge_candidate *what = &c->candidates[r[i].start];
			waited = SW_MIN(waited, r[i].waited);
			bytes += what->bytes;
			double seconds = i + 1 == j ? c->tasks[r[i].start].seconds
			                            : seconds_of(c, what, bytes);
			if (waited < r[j - 1].place || r[j - 1].ready_s + seconds >= end_s[j])
				break;
			double s = fmax(end_s[i], r[j - 1].ready_s) + seconds;
			if (s < end_s[j]) {
				end_s[j] = s;
				from[j] = i;
			}
		}
	}
}

static void group_run(combiner *c, const reduction_start *r, size_t n)
{
	int32_t number = begin_group(c, r[0].start);
	for (size_t i = 1; i < n; i++) {
		int64_t bytes = c->groups.data[number].bytes + c->candidates[r[i].start].bytes;
		join(c, number, r[i].start, seconds_of(c, &c->candidates[r[i].start], bytes));
	}
}

static void group_soonest(combiner *c, const uint32_t *order, int32_t n_classes, sw_arena *arena)
{
	uint32_t *place = SW_NEW_N(arena, uint32_t, c->graph->n + 1);
	size_t *from = SW_NEW_N(arena, size_t, c->graph->n + 1);
	double *end_s = SW_NEW_N(arena, double, c->graph->n + 1);
	reduction_list list = {0};
	for (uint32_t i = 0; i < c->graph->n; i++)
		place[order[i]] = i;
	for (int32_t k = 0; k < n_classes; k++) {
		list_reductions(c, order, place, k, &list);
		size_t n = list.len;
		if (n <= 1 || !reduces(c->candidates[list.data[0].start].kind))
			continue;
		cut_runs(c, list.data, n, (size_t)SW_MAX(c->limits->merge_work / (double)n, 1),
		         from, end_s);
		for (size_t j = n; j > 0; j = from[j])
			group_run(c, list.data + from[j], j - from[j]);
	}
	sw_vec_clear(&list);
}

/* ---- the merged graph ------------------------------------------------------------------- */

/* Give the first start the group's seconds. It waits for the operands of all others, and the
 * readers of their results wait for its done. */
static void join_halves(combiner *c, uint32_t first, double seconds, edge_list *links)
{
	c->tasks[first].seconds = seconds;
	for (uint32_t t = c->tasks[first].next_merged; t != SW_NO_TASK;
	     t = c->tasks[t].next_merged) {
		sw_schedule_task *start = &c->tasks[t], *done = &c->tasks[start->partner];
		start->seconds = 0;
		start->kind = done->kind = SW_TASK_KERNEL;
		start->absorbed = done->absorbed = true;
		sw_vec_push(links, ((sw_task_edge){t, first}));
		sw_vec_push(links, ((sw_task_edge){c->tasks[first].partner, start->partner}));
	}
}

/* Build the merged graph. Returns its task numbers, indexed by those of the given graph. */
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

typedef struct kernel_lister {
	const sw_tasks *graph;
	bool *listed;
	uint32_t *kernels, n;
} kernel_lister;

static void list_kernel(kernel_lister *l, uint32_t t)
{
	const sw_schedule_task *task = &l->graph->tasks[t];
	if (!l->listed[t] && sw_task_computes(task))
		l->kernels[l->n++] = t;
	l->listed[t] = true;
}

static bool is_later_half(const sw_tasks *graph, uint32_t t)
{
	return graph->tasks[t].absorbed && graph->tasks[t].partner < t;
}

/* List the kernels in the given order; later halves of absorbed collectives come right before the
 * kernels that read them. */
static uint32_t *list_kernels(const sw_tasks *graph, const uint32_t *order, const uint32_t *number,
                              sw_arena *arena, uint32_t *n)
{
	const sw_task_list *before = &graph->before;
	kernel_lister l = {graph, SW_NEW_N(arena, bool, graph->n + 1),
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
                           sw_merge_way way, const sw_schedule_limits *limits, sw_arena *arena,
                           sw_tasks *combined, uint32_t *n)
{
	combiner c = {.cluster = cluster, .graph = graph, .way = way, .limits = limits};
	sw_stream_span *spans = SW_NEW_N(arena, sw_stream_span, graph->n + 1);
	sw_streams_play(graph, order, way.stretch, spans);
	c.spans = spans;
	c.tasks = sw_arena_copy(arena, graph->tasks, sizeof(sw_schedule_task) * graph->n);
	c.group_of = SW_NEW_N(arena, int32_t, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		c.group_of[t] = -1;
	int32_t n_classes = list_merge_candidates(&c, arena);
	if (way.soonest)
		group_soonest(&c, order, n_classes, arena);
	form_groups(&c, order);
	const uint32_t *number = make_graph(&c, arena, combined);
	sw_vec_clear(&c.groups);
	sw_vec_clear(&c.open);
	return combined->n_starts < graph->n_starts
	               ? list_kernels(combined, order, number, arena, n)
	               : NULL;
}
