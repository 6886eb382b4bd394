/* The node that branch and bound splits next, and the halves of its strategies. */
#include "solve/limits.h"
#include "solve/steps/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_branch_limits *const limits = &default_limits.branch;

typedef struct branch_candidate {
	int32_t node;
	double score;
} branch_candidate;

/* Split a node's strategies at the average price of their usage, if the strategies in use are on
 * both sides of it; else into the strategy most in use and the others. Returns how undecided the
 * node is, 0 if not at all. */
static double split(const passing *b, int32_t v, const double *usage_price, bool *first)
{
	const core *c = b->c;
	const double *share = b->share + c->first[v];
	int32_t n = core_strategies(c, v), most = 0;
	double total = 0, average = 0, low = INFINITY, high = -INFINITY, below = 0;
	for (int32_t i = 0; i < n; i++) {
		total += share[i];
		average += share[i] * usage_price[i];
		most = share[i] > share[most] ? i : most;
	}
	if (n < 2 || total <= 0)
		return 0;
	average /= total;
	for (int32_t i = 0; i < n; i++)
		if (share[i] > limits->in_use * total) {
			low = SW_MIN(low, usage_price[i]);
			high = SW_MAX(high, usage_price[i]);
		}
	bool by_usage = high - low > limits->usage_tolerance * (fabs(high) + 1);
	for (int32_t i = 0; i < n; i++) {
		first[i] = by_usage ? usage_price[i] <= average : i == most;
		below += first[i] ? share[i] : 0;
	}
	double undecided = SW_MIN(below, total - below) / total;
	return undecided * (by_usage ? 1 + (high - low) : 1);
}

static void insert_candidate(branch_candidate *best, int32_t node, double score)
{
	for (int k = 0; k < limits->candidates; k++)
		if (score > best[k].score) {
			memmove(best + k + 1, best + k,
			        (size_t)(limits->candidates - 1 - k) * sizeof *best);
			best[k] = (branch_candidate){node, score};
			return;
		}
}

/* Rate a branching by the product of both gains, in which the smaller one counts most. */
static double branching_gain(double first, double second, double now, double upper)
{
	double a = SW_MAX(SW_MIN(first, upper) - now, limits->min_gain),
	       b = SW_MAX(SW_MIN(second, upper) - now, limits->min_gain);
	return a * b;
}

static void first_against_rest(bool *first, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		first[i] = i == 0;
}

/* Split every node; the candidates are those that the relaxation leaves most undecided. */
static void list_candidates(const passing *b, bool *first, branch_candidate *best)
{
	const core *c = b->c;
	double *usage_price = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *usage_price);
	core_price_usage(c, b->best_price, usage_price);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		int32_t at = c->first[v], n = core_strategies(c, v);
		double score = split(b, v, usage_price + at, first + at);
		if (score <= 0 && n > 1) { /* it may be needed if no other node has a score */
			first_against_rest(first + at, n);
			score = limits->min_score * (c->edge_first[v + 1] - c->edge_first[v] + 1);
		}
		insert_candidate(best, v, score);
	}
	free(usage_price);
}

/* Estimate the bound on each half of a node's strategies. `barred` is all false before and
 * after. */
static void probe_halves(passing *b, int32_t v, const bool *first, double upper, bool *barred,
                         double *half)
{
	const core *c = b->c;
	int32_t at = c->first[v], n = core_strategies(c, v);
	for (int side = 0; side < 2; side++) {
		for (int32_t i = 0; i < n; i++)
			barred[at + i] = first[at + i] == (side == 1);
		half[side] = bound_probe(b, barred, upper, limits->level * (upper - b->best),
		                         limits->probe_sweeps);
	}
	memset(barred + at, 0, (size_t)n);
}

static void take_branch(branching *chosen, const core *c, int32_t v, const bool *first)
{
	size_t n = (size_t)core_strategies(c, v);
	chosen->node = v;
	free(chosen->first);
	chosen->first = sw_alloc(n);
	memcpy(chosen->first, first + c->first[v], n);
}

/* Probe the candidates, and take the one whose halves raise the bound most. */
static void probe_candidates(passing *b, double upper, bool *first, const halt *h,
                             branching *chosen)
{
	const core *c = b->c;
	bool *barred = sw_alloc((size_t)c->n_strategies + 1);
	branch_candidate *best = sw_alloc((size_t)limits->candidates * sizeof *best);
	double most = -1;
	list_candidates(b, first, best);
	for (int k = 0; k < limits->candidates && best[k].score > 0 && !halted(h); k++) {
		double half[2];
		probe_halves(b, best[k].node, first, upper, barred, half);
		double gain = branching_gain(half[0], half[1], b->best, upper);
		if (!(gain > most)) /* also skips what is not a number */
			continue;
		most = gain;
		take_branch(chosen, c, best[k].node, first);
		chosen->promise[0] = half[0] + (double)c->constant;
		chosen->promise[1] = half[1] + (double)c->constant;
	}
	free(best);
	free(barred);
}

void solver_choose_branching(passing *b, double upper, const halt *h, branching *chosen)
{
	const core *c = b->c;
	bool *first = sw_alloc((size_t)c->n_strategies + 1);
	*chosen = (branching){.node = -1};
	probe_candidates(b, upper, first, h, chosen);
	if (chosen->node < 0 && !halted(h)) { /* no candidate has a score: split node 0 */
		first_against_rest(first, core_strategies(c, 0));
		take_branch(chosen, c, 0, first);
	}
	free(first);
}
