/*
 * Metropolis-Hastings (AutoDDL, section 4.6): a chain in which an assignment S occurs with a
 * probability proportional to exp(-beta Cost(S)), and one that is forbidden or exceeds the capacity
 * never. Each step proposes another strategy for one node, and takes it if it is no worse, else
 * with the probability exp(-beta (Cost(new) - Cost(old))).
 *
 * The paper leaves the constant beta open. Here 1 / beta is the share limits->metropolis_heat of
 * the least cost so far, divided by the number of nodes: the cost of the whole then varies by about
 * that share, whatever its unit and however many nodes there are.
 */
#include "solve/methods/method_run.h"
#include "solve/limits.h"

#include <math.h>

static const solve_method_limits *const limits = &default_limits.method;

static double beta_of(const method_run *r)
{
	return r->w.n /
	       (limits->metropolis_heat * SW_MAX(fabs((double)(r->best.cost + r->g.constant)), 1));
}

static bool is_taken(method_run *r, const walk_value *from)
{
	const walk_value *to = &r->w.value;
	if (!walk_better(from, to))
		return true;
	if (to->forbidden > from->forbidden || to->over > from->over)
		return false;
	return sw_rng_unit(&r->rng) < exp(-beta_of(r) * (double)(to->cost - from->cost));
}

/* Propose another strategy for a random node that has several. */
static void propose(method_run *r, const int32_t *movable, int64_t n_movable)
{
	assignment_walk *w = &r->w;
	int32_t node = movable[sw_rng_below(&r->rng, n_movable)], before = w->nodes[node].choice;
	int32_t strategy = (int32_t)sw_rng_below(&r->rng, w->nodes[node].strategies - 1);
	walk_value from = w->value;
	walk_move(w, node, strategy + (strategy >= before));
	if (is_taken(r, &from))
		method_offer(r);
	else
		walk_move(w, node, before);
}

static void run_chain(method_run *r, const int32_t *movable, int64_t n_movable)
{
	int64_t since_best = 0;
	method_start(r);
	method_offer(r);
	while (since_best < limits->metropolis_patience * n_movable && !method_stopped(r)) {
		walk_value best = r->best;
		r->tried++;
		propose(r, movable, n_movable);
		since_best = walk_better(&r->best, &best) ? 0 : since_best + 1;
	}
}

sw_status method_metropolis(method_run *r, sw_error *err)
{
	int32_t *movable = SW_NEW_N(&r->g.arena, int32_t, r->w.n + 1);
	int64_t n = 0;
	(void)err;
	for (int32_t i = 0; i < r->w.n; i++)
		if (r->w.nodes[i].strategies > 1)
			movable[n++] = i;
	do
		run_chain(r, movable, n);
	while (n > 0 && !method_stopped(r));
	return SW_OK;
}
