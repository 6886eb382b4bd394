/* From when to when the versions of each value are there. */
#include "search/live_versions.h"

#include <math.h>
#include <stdlib.h>

/* ---- uses ------------------------------------------------------------------------------- */

/* A region takes what it reads before its first op. */
static int32_t reading_point(const sw_lives *l, sw_id id)
{
	const sw_op *op = sw_op_at(l->plan->program, id);
	if (!sw_is_region(op))
		return l->roles->point[id];
	sw_id inside = l->plan->program->computations.data[op->called[0]].ops.data[0];
	return SW_MAX(l->roles->point[inside] - 1, 0);
}

static void add_use(sw_lives *l, sw_id value, sw_id op, uint32_t layout, int32_t point)
{
	sw_vec_push(&l->uses,
	            ((sw_use){.value = value, .op = op, .layout = layout, .point = point}));
}

static void add_uses_of_op(sw_lives *l, sw_id id)
{
	const sw_op *op = sw_op_at(l->plan->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	if (sw_plan_op_layouts(l->plan, id, layouts, layouts + op->n_operands))
		for (uint32_t k = 0; k < op->n_operands; k++)
			add_use(l, op->operands[k], id, sw_layouts_id(&l->layouts, &layouts[k]),
			        reading_point(l, id));
	free(layouts);
}

/* A computation's results, as it ends: a region's before those of the region are there, which
 * mostly lie where these do. */
static void add_uses_of_end(sw_lives *l, int32_t c, const uint32_t *layouts)
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

static void find_uses(sw_lives *l)
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

/* In the order in which they begin; now: of each layout that there has been, its last one. */
typedef struct life_list {
	SW_VEC(sw_life) all;
	SW_VEC(uint32_t) now;
} life_list;

static void life_list_clear(life_list *list)
{
	sw_vec_clear(&list->all);
	sw_vec_clear(&list->now);
}

static sw_life *latest(const life_list *list, uint32_t layout)
{
	for (size_t i = 0; i < list->now.len; i++) {
		sw_life *l = &list->all.data[list->now.data[i]];
		if (l->layout == layout)
			return l;
	}
	return NULL;
}

static void touch(life_list *list, uint32_t layout, int32_t point)
{
	sw_life *l = latest(list, layout);
	l->end = SW_MAX(l->end, point + 1);
}

static void begin_life(life_list *list, uint32_t layout, int32_t point)
{
	uint32_t number = (uint32_t)list->all.len;
	size_t i = 0;
	while (i < list->now.len && list->all.data[list->now.data[i]].layout != layout)
		i++;
	if (i < list->now.len)
		list->now.data[i] = number;
	else
		sw_vec_push(&list->now, number);
	sw_vec_push(&list->all, ((sw_life){layout, point, point + 1}));
}

static bool is_entry_input(const sw_program *program, const sw_op *op)
{
	return op->opcode == SW_OP_PARAMETER && op->computation == program->entry;
}

/* As it leaves its op; results of local ops are moved to how they are kept at once. */
static void begin_value(const sw_lives *l, sw_id value, life_list *list)
{
	const sw_program *program = l->plan->program;
	sw_id id = program->values.data[value].op;
	const sw_op *op = sw_op_at(program, id);
	uint32_t produced = l->plan->produced[value], kept = l->plan->materialised[value];
	int32_t point = l->roles->point[id];
	bool given = op->opcode == SW_OP_PARAMETER || sw_is_region(op);
	begin_life(list, produced, is_entry_input(program, op) ? 0 : point);
	if (is_entry_input(program, op))
		touch(list, produced, l->roles->n_points - 1);
	if (!given && kept != produced)
		begin_life(list, kept, point);
}

/* As partition's read_value. True if what was there already is taken. */
static bool read_use(const sw_lives *l, const sw_use *use, life_list *list)
{
	uint32_t produced = l->plan->produced[use->value], kept = l->plan->materialised[use->value];
	bool there = latest(list, use->layout) && (!use->regathers || use->layout == produced);
	if (there) {
		touch(list, use->layout, use->point);
		return true;
	}
	uint32_t from = use->layout == kept ? produced : kept;
	if (!latest(list, from)) {
		touch(list, produced, use->point);
		begin_life(list, kept, use->point);
	}
	touch(list, from, use->point);
	begin_life(list, use->layout, use->point);
	return false;
}

/* Does it lie where something else does? */
static bool is_there_anyhow(const sw_lives *l, sw_id value, uint32_t layout)
{
	sw_id shown = l->roles->alias_of[value];
	if (layout != l->plan->produced[value])
		return false;
	return l->roles->in_place[value] ||
	       (shown != SW_NO_ID &&
	        (l->plan->produced[shown] == layout || l->plan->materialised[shown] == layout));
}

static int64_t bytes_of(const sw_lives *l, sw_id value, uint32_t layout)
{
	if (is_there_anyhow(l, value, layout))
		return 0;
	return sw_layout_local_bytes(&l->plan->cluster->atoms,
	                             sw_value_shape(l->plan->program, value),
	                             &l->layouts.items.data[layout]);
}

/* O(readers of the value * layouts in which it is read). */
static void live(const sw_lives *l, sw_id value, life_list *list)
{
	const sw_program *program = l->plan->program;
	if (!l->roles->planned[sw_op_at(program, program->values.data[value].op)->computation])
		return;
	begin_value(l, value, list);
	for (uint32_t i = l->first[value]; i < l->first[value + 1]; i++)
		read_use(l, &l->uses.data[i], list);
	for (size_t i = 0; i < list->all.len; i++)
		list->all.data[i].end = SW_MIN(list->all.data[i].end, l->roles->n_points);
}

void sw_lives_walk(sw_lives *l, sw_id value, sw_see_life *see, void *context)
{
	life_list list = {0};
	live(l, value, &list);
	for (size_t i = 0; i < list.all.len; i++) {
		const sw_life *life = &list.all.data[i];
		see(context, life->begin, life->end, bytes_of(l, value, life->layout));
	}
	life_list_clear(&list);
}

static bool same_life(const sw_life *a, const sw_life *b)
{
	return a->layout == b->layout && a->begin == b->begin && a->end == b->end;
}

/* What is alike in front of the first difference and behind the last is left as it is: all but a
 * life or two. */
void sw_lives_set(sw_lives *l, sw_use *use, bool regathers, sw_see_life *see, void *context)
{
	life_list before = {0}, after = {0};
	live(l, use->value, &before);
	use->regathers = regathers;
	live(l, use->value, &after);
	size_t n = before.all.len, m = after.all.len, i = 0;
	while (i < n && i < m && same_life(&before.all.data[i], &after.all.data[i]))
		i++;
	while (n > i && m > i && same_life(&before.all.data[n - 1], &after.all.data[m - 1])) {
		n--;
		m--;
	}
	for (size_t k = i; k < n; k++) {
		const sw_life *life = &before.all.data[k];
		see(context, life->begin, life->end, -bytes_of(l, use->value, life->layout));
	}
	for (size_t k = i; k < m; k++) {
		const sw_life *life = &after.all.data[k];
		see(context, life->begin, life->end, bytes_of(l, use->value, life->layout));
	}
	life_list_clear(&before);
	life_list_clear(&after);
}

/* ---- gaps ------------------------------------------------------------------------------- */

static double moving_s(const sw_lives *l, const sw_use *use)
{
	uint32_t produced = l->plan->produced[use->value], kept = l->plan->materialised[use->value];
	uint32_t from = use->layout == kept ? produced : kept;
	const sw_path *path = sw_path_cache_get(
		l->paths, sw_value_shape(l->plan->program, use->value),
		&l->layouts.items.data[from], &l->layouts.items.data[use->layout]);
	return path ? l->roles->trips[use->op] * path->seconds : INFINITY;
}

/* With all kept. */
static void find_gaps(sw_lives *l, sw_id value)
{
	life_list list = {0};
	begin_value(l, value, &list);
	for (uint32_t i = l->first[value]; i < l->first[value + 1]; i++) {
		sw_use *use = &l->uses.data[i];
		const sw_life *had = latest(&list, use->layout);
		use->since = had ? had->end - 1 : use->point;
		bool moved = use->layout != l->plan->produced[value];
		bool gap = read_use(l, use, &list) && moved && use->since + 1 < use->point;
		if (!gap || use->op == SW_NO_ID)
			continue;
		use->seconds = moving_s(l, use);
		use->may = isfinite(use->seconds);
	}
	life_list_clear(&list);
}

void sw_lives_init(sw_lives *l, const sw_plan *plan, const sw_roles *roles, sw_path_cache *paths)
{
	*l = (sw_lives){.plan = plan, .roles = roles, .paths = paths};
	sw_arena_init(&l->arena);
	sw_layouts_copy(&l->layouts, &plan->layouts);
	find_uses(l);
	for (sw_id v = 0; v < plan->program->values.len; v++)
		if (l->first[v + 1] > l->first[v] + 1)
			find_gaps(l, v);
}

void sw_lives_clear(sw_lives *l)
{
	sw_vec_clear(&l->uses);
	sw_layouts_clear(&l->layouts);
	sw_arena_clear(&l->arena);
}

/* ---- bytes per point ------------------------------------------------------------------- */

void sw_demand_init(sw_demand *d, int32_t points, sw_arena *arena)
{
	*d = (sw_demand){.n = points, .leaves = 1};
	while (d->leaves < points)
		d->leaves *= 2;
	d->most = SW_NEW_N(arena, int64_t, 2 * d->leaves);
	d->all = SW_NEW_N(arena, int64_t, 2 * d->leaves);
}

/* The node covers [low, high). */
static void add_below(sw_demand *d, int32_t node, int32_t low, int32_t high, int32_t begin,
                      int32_t end, int64_t bytes)
{
	if (begin <= low && high <= end) {
		d->most[node] += bytes;
		d->all[node] += bytes;
		return;
	}
	int32_t middle = low + (high - low) / 2;
	if (begin < middle)
		add_below(d, 2 * node, low, middle, begin, end, bytes);
	if (end > middle)
		add_below(d, 2 * node + 1, middle, high, begin, end, bytes);
	d->most[node] = d->all[node] + SW_MAX(d->most[2 * node], d->most[2 * node + 1]);
}

static int64_t most_below(const sw_demand *d, int32_t node, int32_t low, int32_t high,
                          int32_t begin, int32_t end)
{
	int64_t left = INT64_MIN, right = INT64_MIN;
	if (begin <= low && high <= end)
		return d->most[node];
	int32_t middle = low + (high - low) / 2;
	if (begin < middle)
		left = most_below(d, 2 * node, low, middle, begin, end);
	if (end > middle)
		right = most_below(d, 2 * node + 1, middle, high, begin, end);
	return d->all[node] + SW_MAX(left, right);
}

void sw_demand_add(sw_demand *d, int32_t begin, int32_t end, int64_t bytes)
{
	if (begin < end)
		add_below(d, 1, 0, d->leaves, begin, end, bytes);
}

int64_t sw_demand_most(const sw_demand *d, int32_t begin, int32_t end)
{
	return begin < end ? most_below(d, 1, 0, d->leaves, begin, end) : 0;
}
