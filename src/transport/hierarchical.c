/*
 * Hierarchical: reduce level by level, inside the parts first, then between them; gather in the
 * opposite order.
 *
 * Between the parts of a level, each element crosses a link once per other part, however many
 * members the parts have. An all-reduce over N parts sends 2 (N - 1) / N of its operand over a
 * part's link, which is the minimum; a flat ring over g ranks sends 2 (g - 1) / g. The members of a
 * part share the work of its link. Each round is a direct exchange. Contributions are combined in
 * the order of the parts. Lanes make the levels overlap: one lane is between the nodes while
 * another is inside them. (BlueConnect, Cho et al. 2019, does so for equal parts.)
 */
#include "transport/hierarchy.h"

#include <string.h>

typedef struct lane_plan {
	sw_holdings holdings;
	char *received; /* contributions of the sibling parts, one after the other */
} lane_plan;

typedef struct levels {
	const sw_task *task;
	sw_hierarchy hierarchy;
	int32_t lanes, reducing; /* rounds of reduction, which precede those of gathering */
	/* the two outermost parts exchange all they hold: as many bytes, in one round less */
	bool swap;
	lane_plan plans[SW_LANES];
	char *whole; /* partly combined elements, each in its place */
} levels;

static int32_t depth_of(const levels *v, int32_t round)
{
	return round < v->reducing ? v->reducing - 1 - round : round - v->reducing + v->swap;
}

/* Return the depth of the holdings that are combined between the parts of `depth`. */
static int32_t holding_depth(const levels *v, int32_t depth)
{
	return v->swap && depth == 0 ? 1 : depth;
}

/* ---- messages --------------------------------------------------------------------------- */

typedef void visit_fn(const levels *v, int32_t lane, int32_t depth, int32_t peer, int32_t sibling,
                      sw_lane *messages);

/* Call `visit` for every member of the sibling parts. Siblings are numbered in order, without this
 * rank's own part. */
static void visit_siblings(const levels *v, int32_t lane, int32_t depth, visit_fn *visit,
                           sw_lane *messages)
{
	const sw_hierarchy *h = &v->hierarchy;
	int32_t vrank = v->task->vrank, sibling = 0;
	for (int32_t t = h->begin[depth][vrank]; t < h->end[depth][vrank];
	     t = sw_hierarchy_next(h, depth, t)) {
		if (t == h->begin[depth + 1][vrank])
			continue;
		for (int32_t peer = t; peer < sw_hierarchy_next(h, depth, t); peer++)
			visit(v, lane, depth, peer, sibling, messages);
		sibling++;
	}
}

/* Return the offset of an element in a list of spans. */
static int64_t offset_in(const sw_element_spans *list, int64_t element)
{
	int64_t passed = 0;
	for (size_t i = 0; i < list->len; i++) {
		sw_element_span s = list->data[i];
		if (element >= s.begin && element < s.begin + s.length)
			return passed + element - s.begin;
		passed += s.length;
	}
	return passed;
}

static void send_spans(const levels *v, const sw_element_spans *spans, const char *base,
                       int32_t peer, sw_lane *messages)
{
	int64_t width = v->task->width;
	for (size_t i = 0; i < spans->len; i++)
		sw_lane_send(messages, sw_task_rank(v->task, peer),
		             base + spans->data[i].begin * width, spans->data[i].length * width);
}

/* Send the elements of the peer's holdings that this rank has combined; receive the elements of
 * this rank's holdings that the peer has combined. */
static void reduce_with(const levels *v, int32_t lane, int32_t depth, int32_t peer, int32_t sibling,
                        sw_lane *messages)
{
	const lane_plan *plan = &v->plans[lane];
	const sw_element_spans *mine =
		sw_holdings_at(&plan->holdings, holding_depth(v, depth), v->task->vrank);
	int64_t width = v->task->width, length = sw_spans_length(mine);
	const char *base = depth == v->reducing - 1 ? v->task->in : v->whole;
	sw_element_spans common = {0};
	sw_spans_common(sw_holdings_at(&plan->holdings, holding_depth(v, depth), peer),
	                sw_holdings_at(&plan->holdings, depth + 1, v->task->vrank), &common);
	send_spans(v, &common, base, peer, messages);
	sw_spans_common(mine, sw_holdings_at(&plan->holdings, depth + 1, peer), &common);
	for (size_t i = 0; i < common.len; i++)
		sw_lane_receive(messages, sw_task_rank(v->task, peer),
		                plan->received +
		                        (sibling * length + offset_in(mine, common.data[i].begin)) *
		                                width,
		                common.data[i].length * width);
	sw_vec_clear(&common);
}

/* Send the elements that this rank holds and the peer needs; receive those that the peer holds and
 * this rank needs. */
static void gather_with(const levels *v, int32_t lane, int32_t depth, int32_t peer, int32_t sibling,
                        sw_lane *messages)
{
	const sw_holdings *holdings = &v->plans[lane].holdings;
	int32_t vrank = v->task->vrank;
	int64_t width = v->task->width;
	sw_element_spans common = {0};
	(void)sibling;
	sw_spans_common(sw_holdings_at(holdings, depth, vrank),
	                sw_holdings_at(holdings, depth + 1, peer), &common);
	send_spans(v, &common, v->task->out, peer, messages);
	sw_spans_common(sw_holdings_at(holdings, depth, peer),
	                sw_holdings_at(holdings, depth + 1, vrank), &common);
	for (size_t i = 0; i < common.len; i++)
		sw_lane_receive(messages, sw_task_rank(v->task, peer),
		                v->task->out + common.data[i].begin * width,
		                common.data[i].length * width);
	sw_vec_clear(&common);
}

static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const levels *v = context;
	visit_siblings(v, lane, depth_of(v, round), round < v->reducing ? reduce_with : gather_with,
	               messages);
}

/* ---- combining -------------------------------------------------------------------------- */

/* Combine one span of this rank's holdings with the siblings' contributions, in the order of the
 * parts. */
static void combine_span(const levels *v, int32_t lane, int32_t depth, sw_element_span span,
                         int64_t offset, int64_t length)
{
	const sw_hierarchy *h = &v->hierarchy;
	const sw_task *t = v->task;
	const char *mine = (depth == v->reducing - 1 ? t->in : v->whole) + span.begin * t->width,
		   *sum = NULL;
	char *result = v->whole + span.begin * t->width;
	int32_t sibling = 0, vrank = t->vrank;
	bool used = false;
	for (int32_t p = h->begin[depth][vrank]; p < h->end[depth][vrank];
	     p = sw_hierarchy_next(h, depth, p)) {
		bool own = p == h->begin[depth + 1][vrank];
		const char *next =
			own ? mine
			    : v->plans[lane].received + (sibling++ * length + offset) * t->width;
		used = used || own;
		if (!sum)
			sum = next;
		else {
			char *to = used ? result : (char *)sum;
			sw_task_combine(t, sum, next, to, span.length);
			sum = to;
		}
	}
	if (sum != result && span.length)
		memcpy(result, sum, (size_t)(span.length * t->width));
}

static void complete(const void *context, int32_t round, int32_t lane)
{
	const levels *v = context;
	if (round >= v->reducing)
		return;
	int32_t depth = depth_of(v, round);
	const sw_element_spans *mine =
		sw_holdings_at(&v->plans[lane].holdings, holding_depth(v, depth), v->task->vrank);
	int64_t offset = 0, length = sw_spans_length(mine);
	for (size_t i = 0; i < mine->len; i++) {
		combine_span(v, lane, depth, mine->data[i], offset, length);
		offset += mine->data[i].length;
	}
}

/* ---- plans ------------------------------------------------------------------------------ */

/* Set the targets of a lane, that is, which elements each member holds at the end of the reduction.
 * In an all-reduce the shares follow the links; otherwise each member's target is a part of its
 * block. */
static void find_targets(const levels *v, int32_t lane, sw_element_span *targets)
{
	const sw_task *t = v->task;
	if (t->kind == SW_COLLECTIVE_ALL_REDUCE) {
		sw_hierarchy_share(&v->hierarchy,
		                   sw_span_part((sw_element_span){0, t->total}, v->lanes, lane),
		                   targets);
		return;
	}
	for (int32_t i = 0; i < t->n; i++)
		targets[i] = sw_span_part(sw_task_block(t, t->order[i]), v->lanes, lane);
}

/* Return the number of elements that the contributions of any round need. */
static int64_t contributions(const levels *v, const sw_holdings *holdings)
{
	const sw_hierarchy *h = &v->hierarchy;
	int32_t vrank = v->task->vrank;
	int64_t max = 0;
	for (int32_t d = 0; d < h->depths; d++) {
		int64_t siblings = -1;
		for (int32_t p = h->begin[d][vrank]; p < h->end[d][vrank];
		     p = sw_hierarchy_next(h, d, p))
			siblings++;
		max = SW_MAX(max, siblings * sw_spans_length(sw_holdings_at(
						     holdings, holding_depth(v, d), vrank)));
	}
	return max;
}

static void make_plans(levels *v)
{
	sw_element_span *targets = sw_alloc((size_t)v->task->n * sizeof(*targets));
	for (int32_t lane = 0; lane < v->lanes; lane++) {
		find_targets(v, lane, targets);
		sw_holdings_init(&v->plans[lane].holdings, &v->hierarchy, targets);
	}
	free(targets);
}

static sw_status allocate(levels *v, sw_carrier *c, int64_t whole, sw_error *err)
{
	int64_t bytes = whole, at = whole, sizes[SW_LANES];
	for (int32_t lane = 0; lane < v->lanes && v->reducing; lane++)
		bytes += sizes[lane] = contributions(v, &v->plans[lane].holdings) * v->task->width;
	char *scratch = sw_carrier_scratch(c, bytes);
	if (!scratch)
		return sw_scratch_refused(bytes, err);
	v->whole = whole ? scratch : v->task->out;
	for (int32_t lane = 0; lane < v->lanes && v->reducing; lane++) {
		v->plans[lane].received = scratch + at;
		at += sizes[lane];
	}
	return SW_OK;
}

/* `whole`: bytes for partly combined elements, 0 if the result can hold them. */
static sw_status run(sw_carrier *c, levels *v, int32_t gathering, int64_t whole, sw_error *err)
{
	const sw_task *t = v->task;
	v->lanes = sw_wave_lanes(t->total * t->width / t->n);
	make_plans(v);
	sw_status status = allocate(v, c, whole, err);
	if (status == SW_OK) {
		sw_wave wave = {&t->call, v->reducing + gathering, v->lanes, 1, v, fill, complete};
		status = sw_wave_run(c, &wave, err);
	}
	for (int32_t lane = 0; lane < v->lanes; lane++)
		sw_holdings_clear(&v->plans[lane].holdings);
	return status;
}

static bool has_two_parts(const sw_hierarchy *h)
{
	return sw_hierarchy_next(h, 0, sw_hierarchy_next(h, 0, 0)) == h->task->n;
}

static sw_status all_reduce(sw_carrier *c, const sw_task *task, sw_error *err)
{
	levels v = {.task = task};
	if (task->goes_whole)
		return sw_hierarchical_small_all_reduce(c, task, err);
	sw_hierarchy_init(&v.hierarchy, task);
	v.reducing = v.hierarchy.depths;
	v.swap = has_two_parts(&v.hierarchy);
	sw_status status = run(c, &v, v.hierarchy.depths - v.swap, 0, err);
	sw_hierarchy_clear(&v.hierarchy);
	return status;
}

static sw_status reduce_scatter(sw_carrier *c, const sw_task *task, sw_error *err)
{
	levels v = {.task = task};
	sw_element_span mine = sw_task_block(task, task->position);
	sw_hierarchy_init(&v.hierarchy, task);
	v.reducing = v.hierarchy.depths;
	sw_status status = run(c, &v, 0, SW_MAX(task->total * task->width, 1), err);
	if (status == SW_OK && mine.length)
		memcpy(task->out, v.whole + mine.begin * task->width,
		       (size_t)(mine.length * task->width));
	sw_hierarchy_clear(&v.hierarchy);
	return status;
}

static sw_status all_gather(sw_carrier *c, const sw_task *task, sw_error *err)
{
	levels v = {.task = task};
	sw_task_place_own(task);
	sw_hierarchy_init(&v.hierarchy, task);
	sw_status status = run(c, &v, v.hierarchy.depths, 0, err);
	sw_hierarchy_clear(&v.hierarchy);
	return status;
}

/* ---- broadcast -------------------------------------------------------------------------- */

/* A broadcast tree. In each part the root, if it is there, or else the first member receives the
 * data for the part. At each depth the number of parts that have the data doubles with every round:
 * part number k, counted from the root's part, gets it from number k - reach. */
typedef struct tree {
	const sw_task *task;
	const sw_hierarchy *hierarchy;
	int32_t depth, reach, root;
} tree;

/* Return the member that receives the data for the part of `depth` that contains `vrank`. */
static int32_t head_of(const tree *t, int32_t depth, int32_t vrank)
{
	const sw_hierarchy *h = t->hierarchy;
	bool has_root = t->root >= h->begin[depth][vrank] && t->root < h->end[depth][vrank];
	return has_root ? t->root : h->begin[depth][vrank];
}

static void fill_tree(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const tree *t = context;
	const sw_hierarchy *h = t->hierarchy;
	int32_t vrank = t->task->vrank, parts = 0, mine = 0, from = 0, *heads;
	(void)round;
	(void)lane;
	if (head_of(t, t->depth + 1, vrank) != vrank)
		return;
	heads = sw_alloc((size_t)t->task->n * sizeof(*heads));
	for (int32_t p = h->begin[t->depth][vrank]; p < h->end[t->depth][vrank];
	     p = sw_hierarchy_next(h, t->depth, p)) {
		heads[parts] = head_of(t, t->depth + 1, p);
		mine = heads[parts] == vrank ? parts : mine;
		from = heads[parts] == head_of(t, t->depth, vrank) ? parts : from;
		parts++;
	}
	int32_t number = sw_wrap(mine - from, parts);
	if (number < t->reach && number + t->reach < parts)
		sw_lane_send(messages,
		             sw_task_rank(t->task, heads[sw_wrap(mine + t->reach - parts, parts)]),
		             t->task->out, t->task->total * t->task->width);
	else if (number >= t->reach && number < 2 * t->reach)
		sw_lane_receive(messages,
		                sw_task_rank(t->task, heads[sw_wrap(mine - t->reach, parts)]),
		                t->task->out, t->task->total * t->task->width);
	free(heads);
}

static int32_t max_parts(const sw_hierarchy *h, int32_t depth)
{
	int32_t max = 0;
	for (int32_t i = 0; i < h->task->n;) {
		int32_t parts = 0, end = h->end[depth][i];
		for (; i < end; i = sw_hierarchy_next(h, depth, i))
			parts++;
		max = SW_MAX(max, parts);
	}
	return max;
}

/* Run the rounds at one depth, with reaches 1, 2, 4, ...: backwards where the broadcast is. */
static sw_status spread_at(sw_carrier *c, tree *t, bool back, sw_error *err)
{
	int32_t parts = max_parts(t->hierarchy, t->depth), rounds = 0;
	sw_status status = SW_OK;
	while (1 << rounds < parts)
		rounds++;
	for (int32_t r = 0; r < rounds && status == SW_OK; r++) {
		sw_wave wave = {&t->task->call, 1, 1, 1, t, fill_tree, NULL};
		t->reach = 1 << (back ? rounds - 1 - r : r);
		status = sw_broadcast_wave(c, t->task, &wave, err);
	}
	return status;
}

static sw_status broadcast(sw_carrier *c, const sw_task *task, sw_error *err)
{
	sw_hierarchy h;
	sw_status status = SW_OK;
	tree t = {.task = task, .hierarchy = &h};
	bool back = task->call.monoid != SW_MONOID_NONE;
	sw_hierarchy_init(&h, task);
	while (task->order[t.root] != 0)
		t.root++;
	for (int32_t d = 0; d < h.depths && status == SW_OK; d++) {
		t.depth = back ? h.depths - 1 - d : d;
		status = spread_at(c, &t, back, err);
	}
	sw_hierarchy_clear(&h);
	return status;
}

sw_algorithm_fn *const sw_hierarchical_functions[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_ALL_REDUCE] = all_reduce,
	[SW_COLLECTIVE_ALL_GATHER] = all_gather,
	[SW_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
	[SW_COLLECTIVE_ALL_TO_ALL] = sw_hierarchical_all_to_all,
	[SW_COLLECTIVE_BROADCAST] = broadcast,
};
