/* The driver: from two sides to a plan. */
#include "crossmesh/kind_stock.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-12 /* relative, of sums of the same numbers in another order */

/* ---- names ------------------------------------------------------------------------------ */

static const char *const strategy_names[] = {
	[SW_CROSSMESH_SEND_RECV] = "send-recv",
	[SW_CROSSMESH_LOCAL_ALL_GATHER] = "local-all-gather",
	[SW_CROSSMESH_GLOBAL_ALL_GATHER] = "global-all-gather",
	[SW_CROSSMESH_BROADCAST] = "broadcast",
	[SW_CROSSMESH_AUTO] = "auto",
};
static const char *const order_names[] = {
	[SW_CROSSMESH_NAIVE] = "naive",       [SW_CROSSMESH_GREEDY] = "greedy",
	[SW_CROSSMESH_DFS] = "dfs",           [SW_CROSSMESH_RANDOM] = "random",
	[SW_CROSSMESH_ENSEMBLE] = "ensemble",
};

const char *sw_crossmesh_strategy_name(sw_crossmesh_strategy strategy)
{
	return strategy_names[strategy];
}

const char *sw_crossmesh_order_name(sw_crossmesh_order order)
{
	return order_names[order];
}

static sw_status parse_name(const char *what, const char *const *names, size_t n, const char *text,
                            int *number, sw_error *err)
{
	sw_text all = {0};
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], text) == 0) {
			*number = (int)i;
			sw_text_clear(&all);
			return SW_OK;
		}
		sw_text_addf(&all, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", names[i]);
	}
	sw_status status = sw_fail(err, SW_ERR_INPUT, "%s %s: expected %s", what, text, all.data);
	sw_text_clear(&all);
	return status;
}

sw_status sw_crossmesh_parse_strategy(const char *text, sw_crossmesh_strategy *strategy,
                                      sw_error *err)
{
	int number = 0;
	sw_status status = parse_name("strategy", strategy_names, SW_COUNT(strategy_names), text,
	                              &number, err);
	*strategy = (sw_crossmesh_strategy)number;
	return status;
}

sw_status sw_crossmesh_parse_order(const char *text, sw_crossmesh_order *order, sw_error *err)
{
	int number = 0;
	sw_status status =
		parse_name("order", order_names, SW_COUNT(order_names), text, &number, err);
	*order = (sw_crossmesh_order)number;
	return status;
}

sw_crossmesh_options sw_crossmesh_defaults(void)
{
	return (sw_crossmesh_options){.strategy = SW_CROSSMESH_AUTO,
	                              .order = SW_CROSSMESH_ENSEMBLE};
}

/* ---- orders ----------------------------------------------------------------------------- */

static void run_ensemble(transfer_search *s, task_order *best)
{
	task_order naive = order_new(s, SW_CROSSMESH_NAIVE);
	order_greedy(s, best);
	order_naive(s, &naive);
	order_take_if_better(s, best, &naive);
	order_drawn(s, best);
	if (s->ways->n <= SW_CROSSMESH_DFS_TASKS && !order_is_good_enough(s, best)) {
		s->work_limit += s->work;
		order_depth(s, best);
	}
}

static task_order find_order(transfer_search *s, sw_crossmesh_order order)
{
	task_order best = order_new(s, order);
	switch (order) {
	case SW_CROSSMESH_NAIVE:
		order_naive(s, &best);
		break;
	case SW_CROSSMESH_GREEDY:
		order_greedy(s, &best);
		break;
	case SW_CROSSMESH_DFS:
		order_naive(s, &best);
		order_depth(s, &best);
		best.by = order;
		break;
	case SW_CROSSMESH_RANDOM:
		order_naive(s, &best);
		order_drawn(s, &best);
		best.by = order;
		break;
	default:
		best.by = SW_CROSSMESH_GREEDY;
		run_ensemble(s, &best);
	}
	return best;
}

/* ---- attempts --------------------------------------------------------------------------- */

/* One strategy with one number of pieces. */
typedef struct transfer_attempt {
	sw_crossmesh_strategy strategy;
	int32_t pieces;
	task_list tasks;
	ways_list ways;
	task_order order;
} transfer_attempt;

typedef struct plan_maker {
	const sw_cluster *cluster;
	const sw_crossmesh_options *options;
	sw_crossmesh_plan *plan;
	slice_list slices;
	link_table links;
	double stop_at_s;
	bool found;
	transfer_attempt best;
} plan_maker;

/* Return seconds that no order is below: what each link must carry by any options. */
static double least_s(const ways_list *ways, sw_arena *arena)
{
	kind_stock stock = stock_new(ways, arena);
	double most = 0;
	for (int32_t l = 0; l < ways->links->n; l++)
		most = SW_MAX(most, stock.least[l]);
	return most;
}

/* Return false, with a.order unset, if no order can be better than the best so far. */
static bool attempt(plan_maker *m, sw_crossmesh_strategy strategy, int32_t pieces,
                    transfer_attempt *a)
{
	sw_arena *arena = &m->plan->arena;
	*a = (transfer_attempt){.strategy = strategy, .pieces = pieces};
	a->tasks = tasks_make(m->cluster, &m->slices, m->plan->shape, pieces, arena);
	a->ways = ways_make(&m->links, &m->slices, &a->tasks, strategy, m->options->chunks, arena);
	if (m->found && least_s(&a->ways, arena) >= m->best.order.seconds)
		return false;
	transfer_search search = {.ways = &a->ways,
	                          .bound_s = m->plan->bound.seconds,
	                          .work_limit = m->options->work_limit ? m->options->work_limit
	                                                               : SW_CROSSMESH_WORK,
	                          .stop_at_s = m->stop_at_s,
	                          .seed = m->options->seed,
	                          .arena = arena,
	                          .line = timeline_new(&m->links, arena)};
	a->order = find_order(&search, m->options->order);
	m->plan->work += search.work;
	return true;
}

static bool good_enough(const plan_maker *m)
{
	return m->found &&
	       m->best.order.seconds <= m->plan->bound.seconds * (1 + SW_CROSSMESH_TOLERANCE);
}

/* Try more and more pieces while the bound is far, and until two numbers in a row were not worth
 * it. */
static void try_strategy(plan_maker *m, sw_crossmesh_strategy strategy)
{
	static const int32_t numbers[] = {1, 2, 3, 4, 6, SW_CROSSMESH_PIECES};
	int32_t in_vain = 0;
	for (size_t i = 0; i < SW_COUNT(numbers) && in_vain < 2; i++) {
		transfer_attempt a;
		int32_t pieces = m->options->pieces ? m->options->pieces : numbers[i];
		if (i > 0 && (int64_t)m->slices.n * pieces > SW_CROSSMESH_TASKS)
			return;
		in_vain++;
		if (attempt(m, strategy, pieces, &a) &&
		    (!m->found ||
		     a.order.seconds < m->best.order.seconds * (1 - SW_CROSSMESH_TOLERANCE / 4))) {
			m->best = a;
			in_vain = 0;
		}
		m->found = true;
		if (m->options->pieces || good_enough(m) ||
		    (m->stop_at_s > 0 && sw_now_s() > m->stop_at_s))
			return;
	}
}

/* The broadcast first: mostly it is as quick as can be. */
static void try_all(plan_maker *m)
{
	if (m->options->strategy != SW_CROSSMESH_AUTO) {
		try_strategy(m, m->options->strategy);
		return;
	}
	for (int s = SW_CROSSMESH_STRATEGIES - 1; s >= 0 && !good_enough(m); s--)
		try_strategy(m, (sw_crossmesh_strategy)s);
}

/* ---- the plan --------------------------------------------------------------------------- */

typedef struct started_phase {
	sw_crossmesh_phase phase;
	int32_t number; /* in the order of placing */
} started_phase;

static int by_start(const void *a, const void *b)
{
	const started_phase *x = a, *y = b;
	if (x->phase.start_s != y->phase.start_s)
		return x->phase.start_s > y->phase.start_s ? 1 : -1;
	return x->number - y->number;
}

static int32_t count_phases(const transfer_attempt *a)
{
	int32_t n = 0;
	for (int32_t i = 0; i < a->ways.n; i++) {
		const placed_task *placed = &a->order.placed[i];
		n += a->ways.tasks[placed->task].options[placed->option].n_phases;
	}
	return n;
}

/* Play the order once more, and note when each phase begins. */
static int32_t list_started(plan_maker *m, started_phase *list)
{
	timeline line = timeline_new(&m->links, &m->plan->arena);
	int32_t n = 0;
	for (int32_t i = 0; i < m->best.ways.n; i++) {
		const placed_task *placed = &m->best.order.placed[i];
		const task_option *option =
			&m->best.ways.tasks[placed->task].options[placed->option];
		double *starts = SW_NEW_N(&m->plan->arena, double, SW_MAX(option->n_phases, 1));
		int32_t first = n;
		timeline_place(&line, option, starts);
		for (int32_t p = 0; p < option->n_phases; p++, n++) {
			list[n] = (started_phase){option->phases[p], n};
			list[n].phase.task = placed->task;
			list[n].phase.start_s = starts[p];
			if (list[n].phase.after >= 0)
				list[n].phase.after += first;
		}
	}
	return n;
}

/* Sort by start; `after` follows. */
static void write_phases(plan_maker *m)
{
	sw_crossmesh_plan *plan = m->plan;
	int32_t n = count_phases(&m->best);
	started_phase *list = SW_NEW_N(&plan->arena, started_phase, SW_MAX(n, 1));
	sw_crossmesh_phase *phases = SW_NEW_N(&plan->arena, sw_crossmesh_phase, SW_MAX(n, 1));
	int32_t *at = SW_NEW_N(&plan->arena, int32_t, SW_MAX(n, 1));
	list_started(m, list);
	qsort(list, (size_t)n, sizeof(*list), by_start);
	for (int32_t i = 0; i < n; i++)
		at[list[i].number] = i;
	for (int32_t i = 0; i < n; i++) {
		phases[i] = list[i].phase;
		if (phases[i].after >= 0)
			phases[i].after = at[phases[i].after];
		for (int32_t l = 0; l < phases[i].n_links; l++)
			m->links.links[phases[i].links[l].link].busy_s +=
				phases[i].links[l].share * phases[i].links[l].held_s;
	}
	plan->n_phases = n;
	plan->phases = phases;
}

static void write_plan(plan_maker *m)
{
	sw_crossmesh_plan *plan = m->plan;
	plan->strategy = m->best.strategy;
	plan->order = m->best.order.by;
	plan->pieces = m->best.pieces;
	plan->seconds = m->best.order.seconds;
	plan->n_slices = m->slices.n;
	plan->slices = m->slices.slices;
	plan->n_tasks = m->best.tasks.n;
	plan->tasks = m->best.tasks.tasks;
	plan->n_links = m->links.n;
	plan->links = m->links.links;
	write_phases(m);
}

sw_status sw_crossmesh_plan_make(const sw_cluster *cluster, const sw_crossmesh_side *from,
                                 const sw_crossmesh_side *to, sw_shape shape,
                                 const sw_crossmesh_options *options, sw_crossmesh_plan **plan,
                                 sw_error *err)
{
	sw_status status = sw_crossmesh_check(cluster, from, to, shape, err);
	if (status)
		return status;
	sw_crossmesh_plan *p = sw_alloc(sizeof(*p));
	plan_maker m = {.cluster = cluster, .options = options, .plan = p};
	sw_arena_init(&p->arena);
	p->from = *from;
	p->to = *to;
	p->shape = shape;
	p->shape.dims =
		sw_arena_copy(&p->arena, shape.dims, (size_t)shape.rank * sizeof(*shape.dims));
	m.slices = slices_find(from, to, shape, &p->arena);
	m.links = links_make(cluster, from, to, &p->arena);
	p->bound = bound_of(cluster, from, to, &m.slices, &m.links, shape, &p->arena);
	m.stop_at_s = options->time_limit_s > 0 ? sw_now_s() + options->time_limit_s : 0;
	try_all(&m);
	write_plan(&m);
	*plan = p;
	return SW_OK;
}

void sw_crossmesh_plan_free(sw_crossmesh_plan *plan)
{
	if (!plan)
		return;
	sw_arena_clear(&plan->arena);
	free(plan);
}

double sw_crossmesh_gap(const sw_crossmesh_plan *plan)
{
	double gap = plan->bound.seconds > 0 ? plan->seconds / plan->bound.seconds - 1 : 0;
	return fabs(gap) < ROUNDING ? 0 : gap;
}

double sw_crossmesh_phase_end(const sw_crossmesh_phase *phase)
{
	return phase->start_s + phase->seconds;
}
