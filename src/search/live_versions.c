/* The live ranges of the versions of each value. */
#include "search/live_versions.h"

#include <math.h>
#include <stdlib.h>

/* ---- uses ------------------------------------------------------------------------------- */

/* A region takes its operands before its first op. */
static int32_t reading_point(const sw_version_ranges *l, sw_id id)
{
	const sw_op *op = sw_op_at(l->plan->program, id);
	if (!sw_is_region(op))
		return l->roles->point[id];
	sw_id inside = l->plan->program->computations.data[op->called[0]].ops.data[0];
	return SW_MAX(l->roles->point[inside] - 1, 0);
}

static void add_use(sw_version_ranges *l, sw_id value, sw_id op, uint32_t layout, int32_t point)
{
	sw_vec_push(&l->uses, ((sw_use){.value = value,
	                                .op = op,
	                                .layout = layout,
	                                .point = point,
	                                .regathers = sw_plan_regathers(l->plan, value, op)}));
}

static void add_uses_of_op(sw_version_ranges *l, sw_id id)
{
	const sw_op *op = sw_op_at(l->plan->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	if (sw_plan_op_layouts(l->plan, id, layouts, layouts + op->n_operands))
		for (uint32_t k = 0; k < op->n_operands; k++)
			add_use(l, op->operands[k], id, sw_layouts_id(&l->layouts, &layouts[k]),
			        reading_point(l, id));
	free(layouts);
}

/* Add the results of a computation as uses at its end. Those of a region end before the region's
 * own results begin, which mostly alias them. */
static void add_uses_of_end(sw_version_ranges *l, int32_t c, const uint32_t *layouts)
{
	const sw_computation *computation = &l->plan->program->computations.data[c];
	int32_t last = l->roles->point[computation->ops.data[computation->ops.len - 1]];
	int32_t end = c == (int32_t)l->plan->program->entry ? last + 1 : last;
	for (size_t i = 0; i < computation->results.len; i++)
		add_use(l, computation->results.data[i], SW_NO_ID, layouts[i], end);
}

static int by_value(const void *a, const void *b)
{
	const sw_use *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	return x->layout < y->layout ? -1 : x->layout > y->layout;
}

static void find_uses(sw_version_ranges *l)
{
	const sw_program *program = l->plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (!l->roles->planned[op->computation] || op->opcode == SW_OP_PARAMETER)
			continue;
		add_uses_of_op(l, id);
		for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++)
			add_uses_of_end(l, (int32_t)op->called[k],
			                sw_plan_called_results(l->plan, op, k));
	}
	add_uses_of_end(l, program->entry, l->plan->outputs);
	if (l->uses.len > 0)
		qsort(l->uses.data, l->uses.len, sizeof(sw_use), by_value);
	l->first = SW_NEW_N(&l->arena, uint32_t, program->values.len + 2);
	for (size_t i = 0; i < l->uses.len; i++)
		l->first[l->uses.data[i].value + 1]++;
	for (size_t v = 0; v < program->values.len; v++)
		l->first[v + 1] += l->first[v];
}

/* ---- lives ------------------------------------------------------------------------------ */

/* all: by their begin; now: the last range of each layout */
typedef struct range_list {
	SW_VEC(sw_version_range) all;
	SW_VEC(uint32_t) now;
} range_list;

static void range_list_clear(range_list *list)
{
	sw_vec_clear(&list->all);
	sw_vec_clear(&list->now);
}

static sw_version_range *latest(const range_list *list, uint32_t layout)
{
	for (size_t i = 0; i < list->now.len; i++) {
		sw_version_range *l = &list->all.data[list->now.data[i]];
		if (l->layout == layout)
			return l;
	}
	return NULL;
}

static void extend_range(range_list *list, uint32_t layout, int32_t point)
{
	sw_version_range *l = latest(list, layout);
	l->end = SW_MAX(l->end, point + 1);
}

static void begin_range(range_list *list, uint32_t layout, int32_t point)
{
	uint32_t number = (uint32_t)list->all.len;
	size_t i = 0;
	while (i < list->now.len && list->all.data[list->now.data[i]].layout != layout)
		i++;
	if (i < list->now.len)
		list->now.data[i] = number;
	else
		sw_vec_push(&list->now, number);
	sw_vec_push(&list->all, ((sw_version_range){layout, point, point + 1}));
}

static bool is_entry_input(const sw_program *program, const sw_op *op)
{
	return op->opcode == SW_OP_PARAMETER && op->computation == program->entry;
}

/* Begin the version that the op produces; results of local ops are converted to their materialised
 * layout at once. */
static void begin_value_ranges(const sw_version_ranges *l, sw_id value, range_list *list)
{
	const sw_program *program = l->plan->program;
	sw_id id = program->values.data[value].op;
	const sw_op *op = sw_op_at(program, id);
	uint32_t produced = l->plan->produced[value], materialised = l->plan->materialised[value];
	int32_t point = l->roles->point[id];
	bool is_parameter = op->opcode == SW_OP_PARAMETER || sw_is_region(op);
	begin_range(list, produced, is_entry_input(program, op) ? 0 : point);
	if (is_entry_input(program, op))
		extend_range(list, produced, l->roles->n_points - 1);
	if (!is_parameter && materialised != produced)
		begin_range(list, materialised, point);
}

/* Follow partition's read_value. Return true if the version that is read was live already. */
static bool read_use(const sw_version_ranges *l, const sw_use *use, range_list *list)
{
	uint32_t produced = l->plan->produced[use->value],
		 materialised = l->plan->materialised[use->value];
	bool live = latest(list, use->layout) && (!use->regathers || use->layout == produced);
	if (live) {
		extend_range(list, use->layout, use->point);
		return true;
	}
	uint32_t from = use->layout == materialised ? produced : materialised;
	if (!latest(list, from)) {
		extend_range(list, produced, use->point);
		begin_range(list, materialised, use->point);
	}
	extend_range(list, from, use->point);
	begin_range(list, use->layout, use->point);
	return false;
}

/* Does the version share the buffer of another one, so that it takes no bytes? */
static bool shares_buffer(const sw_version_ranges *l, sw_id value, uint32_t layout)
{
	sw_id alias = l->roles->alias_of[value];
	if (layout != l->plan->produced[value])
		return false;
	return l->roles->in_place[value] ||
	       (alias != SW_NO_ID &&
	        (l->plan->produced[alias] == layout || l->plan->materialised[alias] == layout));
}

static int64_t bytes_of(const sw_version_ranges *l, sw_id value, uint32_t layout)
{
	if (shares_buffer(l, value, layout))
		return 0;
	return sw_layout_local_bytes(&l->plan->cluster->atoms,
	                             sw_value_shape(l->plan->program, value),
	                             &l->layouts.items.data[layout]);
}

/* List the live ranges of a value. O(readers of the value * layouts in which it is read). */
static void list_ranges(const sw_version_ranges *l, sw_id value, range_list *list)
{
	const sw_program *program = l->plan->program;
	if (!l->roles->planned[sw_op_at(program, program->values.data[value].op)->computation])
		return;
	begin_value_ranges(l, value, list);
	for (uint32_t i = l->first[value]; i < l->first[value + 1]; i++)
		read_use(l, &l->uses.data[i], list);
	for (size_t i = 0; i < list->all.len; i++)
		list->all.data[i].end = SW_MIN(list->all.data[i].end, l->roles->n_points);
}

void sw_version_ranges_walk(sw_version_ranges *l, sw_id value, sw_visit_version *visit,
                            void *context)
{
	range_list list = {0};
	list_ranges(l, value, &list);
	for (size_t i = 0; i < list.all.len; i++) {
		const sw_version_range *range = &list.all.data[i];
		visit(context, range->begin, range->end, bytes_of(l, value, range->layout));
	}
	range_list_clear(&list);
}

static bool same_range(const sw_version_range *a, const sw_version_range *b)
{
	return a->layout == b->layout && a->begin == b->begin && a->end == b->end;
}

/* Ranges before the first difference and after the last one stay as they are: that is all but one
 * or two. */
void sw_version_ranges_set(sw_version_ranges *l, sw_use *use, bool regathers,
                           sw_visit_version *visit, void *context)
{
	range_list before = {0}, after = {0};
	list_ranges(l, use->value, &before);
	use->regathers = regathers;
	list_ranges(l, use->value, &after);
	size_t n = before.all.len, m = after.all.len, i = 0;
	while (i < n && i < m && same_range(&before.all.data[i], &after.all.data[i]))
		i++;
	while (n > i && m > i && same_range(&before.all.data[n - 1], &after.all.data[m - 1])) {
		n--;
		m--;
	}
	for (size_t k = i; k < n; k++) {
		const sw_version_range *range = &before.all.data[k];
		visit(context, range->begin, range->end, -bytes_of(l, use->value, range->layout));
	}
	for (size_t k = i; k < m; k++) {
		const sw_version_range *range = &after.all.data[k];
		visit(context, range->begin, range->end, bytes_of(l, use->value, range->layout));
	}
	range_list_clear(&before);
	range_list_clear(&after);
}

/* ---- gaps ------------------------------------------------------------------------------- */

static double regather_s(const sw_version_ranges *l, const sw_use *use)
{
	uint32_t produced = l->plan->produced[use->value],
		 materialised = l->plan->materialised[use->value];
	uint32_t from = use->layout == materialised ? produced : materialised;
	const sw_path *path = sw_path_cache_get(
		l->paths, sw_value_shape(l->plan->program, use->value),
		&l->layouts.items.data[from], &l->layouts.items.data[use->layout]);
	return path ? l->roles->trips[use->op] * path->seconds : INFINITY;
}

/* Find the gaps before the uses of a value, with everything cached. A single number, which thousands
 * of ops may read, takes no room. */
static void find_gaps(sw_version_ranges *l, sw_id value)
{
	if (sw_value_shape(l->plan->program, value).rank == 0)
		return;
	range_list list = {0};
	begin_value_ranges(l, value, &list);
	for (uint32_t i = l->first[value]; i < l->first[value + 1]; i++) {
		sw_use *use = &l->uses.data[i];
		const sw_version_range *previous = latest(&list, use->layout);
		use->previous_point = previous ? previous->end - 1 : use->point;
		bool moved = use->layout != l->plan->produced[value];
		bool gap = read_use(l, use, &list) && moved && use->previous_point + 1 < use->point;
		if (!gap || use->op == SW_NO_ID)
			continue;
		use->seconds = regather_s(l, use);
		use->can_regather = isfinite(use->seconds);
	}
	range_list_clear(&list);
}

void sw_version_ranges_init(sw_version_ranges *l, const sw_plan *plan, const sw_roles *roles,
                            sw_path_cache *paths)
{
	*l = (sw_version_ranges){.plan = plan, .roles = roles, .paths = paths};
	sw_arena_init(&l->arena);
	sw_layouts_copy(&l->layouts, &plan->layouts);
	find_uses(l);
	for (sw_id v = 0; v < plan->program->values.len; v++)
		if (l->first[v + 1] > l->first[v] + 1)
			find_gaps(l, v);
}

void sw_version_ranges_clear(sw_version_ranges *l)
{
	sw_vec_clear(&l->uses);
	sw_layouts_clear(&l->layouts);
	sw_arena_clear(&l->arena);
}

/* ---- bytes per point -------------------------------------------------------------------- */

void sw_demand_init(sw_demand *d, int32_t points, sw_arena *arena)
{
	*d = (sw_demand){.n = points, .leaves = 1};
	while (d->leaves < points)
		d->leaves *= 2;
	d->max = SW_NEW_N(arena, int64_t, 2 * d->leaves);
	d->added = SW_NEW_N(arena, int64_t, 2 * d->leaves);
}

/* The node covers [low, high). */
static void add_below(sw_demand *d, int32_t node, int32_t low, int32_t high, int32_t begin,
                      int32_t end, int64_t bytes)
{
	if (begin <= low && high <= end) {
		d->max[node] += bytes;
		d->added[node] += bytes;
		return;
	}
	int32_t middle = low + (high - low) / 2;
	if (begin < middle)
		add_below(d, 2 * node, low, middle, begin, end, bytes);
	if (end > middle)
		add_below(d, 2 * node + 1, middle, high, begin, end, bytes);
	d->max[node] = d->added[node] + SW_MAX(d->max[2 * node], d->max[2 * node + 1]);
}

static int64_t max_below(const sw_demand *d, int32_t node, int32_t low, int32_t high, int32_t begin,
                         int32_t end)
{
	int64_t left = INT64_MIN, right = INT64_MIN;
	if (begin <= low && high <= end)
		return d->max[node];
	int32_t middle = low + (high - low) / 2;
	if (begin < middle)
		left = max_below(d, 2 * node, low, middle, begin, end);
	if (end > middle)
		right = max_below(d, 2 * node + 1, middle, high, begin, end);
	return d->added[node] + SW_MAX(left, right);
}

void sw_demand_add(sw_demand *d, int32_t begin, int32_t end, int64_t bytes)
{
	if (begin < end)
		add_below(d, 1, 0, d->leaves, begin, end, bytes);
}

int64_t sw_demand_max(const sw_demand *d, int32_t begin, int32_t end)
{
	return begin < end ? max_below(d, 1, 0, d->leaves, begin, end) : 0;
}
