/*
 * Kernels and messages together.
 *
 * A step is no shorter than its kernels, K, and no shorter than what its collectives move between
 * the parts of the outermost level, C; so it is no shorter than w K + (1 - w) C for each w in [0,
 * 1], and no plan is better than the least of these sums over all ways to divide all products. The
 * ways of two products are coupled where the result of one reaches the other (flows.h): its
 * partial sums must be added up, and all parts that read it must get it. That is a problem for
 * src/solve, whose lower bound is the bound here.
 */
#include "bound/joint.h"

#include <math.h>
#include <string.h>

#include "solve/solve.h"

#define MAX_PROBES 4 /* with a little work; then the best with more */
#define FIRST_WEIGHT 0.75 /* then one of these, by the slope */
#define LESSER_WEIGHT 0.5
#define HIGHEST_WEIGHT 0.95
#define LOWEST_WEIGHT 0.25
#define NEAR 0.03 /* weights are no nearer to each other */
#define WORTH_MORE 0.01 /* by so much of itself another weight must be able to raise the bound */
#define COST_UNIT 1e-12 /* seconds; costs are rounded down to it */
/* How long the solver works: table entries visited, and a gap. A good weight is found with a little
 * work. */
typedef struct effort {
	int64_t work;
	double gap;
} effort;
static const effort PROBE = {100000000, 0.02}, FULL = {600000000, 0.005};

static int64_t cost_of(double seconds)
{
	return (int64_t)(seconds / COST_UNIT);
}

/* Return the seconds of the kernels of one of the ways that may be best. */
static double kernels_of(const joint_product *p, int32_t way)
{
	return p->kind->ways[p->ways[way]].kernels_s;
}

/* Return how many messages an element of a channel takes for two of these ways. */
static double messages_of(const joint *j, const channel *c, int32_t source, int32_t sink)
{
	const message_table *x = c->table;
	int32_t row = x->of[0][j->products[c->ends[0]].ways[source]],
		column = x->of[1][j->products[c->ends[1]].ways[sink]];
	return x->messages[row * x->n[1] + column];
}

static void add_products(const joint *j, const joint_piece *piece, double weight, sw_problem *problem)
{
	SW_VEC(int64_t) cost = {0};
	for (int32_t p = 0; p < piece->n_products; p++) {
		const joint_product *product = &j->products[piece->products[p].product];
		cost.len = 0;
		for (int32_t w = 0; w < product->n_ways; w++)
			sw_vec_push(&cost, cost_of(weight * piece->products[p].share *
			                           kernels_of(product, w)));
		sw_problem_add_node(problem, product->n_ways, cost.data);
	}
	sw_vec_clear(&cost);
}

/* Costs of a node, or of an edge's table. */
typedef SW_VEC(int64_t) cost_list;

/* Add a node for what late readers read of product number `of`: itself, where the node has its way,
 * or a copy that is computed again in another. Returns the node. */
static int32_t add_copy(const joint *j, const piece_product *p, int32_t of, double weight,
                        sw_problem *problem, cost_list *cost)
{
	const joint_product *product = &j->products[p->product];
	int32_t n = product->n_ways;
	cost->len = 0;
	for (int32_t w = 0; w < n; w++)
		sw_vec_push(cost, 0);
	int32_t node = sw_problem_add_node(problem, n, cost->data);
	cost->len = 0;
	for (int32_t a = 0; a < n; a++)
		for (int32_t b = 0; b < n; b++)
			sw_vec_push(cost, a == b ? 0
			                         : cost_of(weight * p->share *
			                                   kernels_of(product, b)));
	sw_problem_add_edge(problem, of, node, sw_problem_add_table(problem, n, n, cost->data));
	return node;
}

static void add_channel(const joint *j, const piece_channel *at, int32_t source, double weight,
                        sw_problem *problem, cost_list *cost)
{
	const channel *c = &j->channels[at->channel];
	int32_t n = j->products[c->ends[0]].n_ways, m = j->products[c->ends[1]].n_ways;
	cost->len = 0;
	for (int32_t a = 0; a < n; a++)
		for (int32_t b = 0; b < m; b++)
			sw_vec_push(cost, cost_of(weight * at->share * c->message_s *
			                          messages_of(j, c, a, b)));
	sw_problem_add_edge(problem, source, at->ends[1],
	                    sw_problem_add_table(problem, n, m, cost->data));
}

/* Add the channels, with the copies that they come from: one more node each. */
static void add_channels(const joint *j, const joint_piece *piece, double weight, double of_messages,
                         sw_problem *problem)
{
	cost_list cost = {0};
	int32_t *copy = sw_alloc(sizeof(*copy) * (size_t)(piece->n_products + 1));
	for (int32_t p = 0; p < piece->n_products; p++) {
		const piece_product *of = &piece->products[p];
		copy[p] = j->products[of->product].is_copied
			          ? add_copy(j, of, p, weight, problem, &cost)
			          : p;
	}
	for (int32_t i = 0; i < piece->n_channels; i++) {
		const piece_channel *c = &piece->channels[i];
		int32_t source =
			j->channels[c->channel].may_read_copy ? copy[c->ends[0]] : c->ends[0];
		add_channel(j, c, source, of_messages, problem, &cost);
	}
	free(copy);
	sw_vec_clear(&cost);
}

/* Kernels and messages of a choice of ways, in seconds. */
typedef struct ways_cost {
	double kernels_s, messages_s;
} ways_cost;

/* For a weight, what no plan's weighted sum is below, and a choice of ways whose sum is little more:
 * the best bound of the weight lies between. */
typedef struct between {
	double least_s;
	bool found; /* a choice of ways */
	ways_cost most;
} between;

/* Return what the messages count beside kernels of this weight. A collective in flight takes a share
 * of the device, so that a step is no shorter than K + share C, either: weight it with C. */
static double weight_of_messages(const joint *j, double weight)
{
	return 1 - weight * (1 - j->cluster->device.transfer_share);
}

static double weighted(const joint *j, double weight, ways_cost cost)
{
	return weight * cost.kernels_s + weight_of_messages(j, weight) * cost.messages_s;
}

/* Return the kernels and the messages of an assignment of the problem of a piece, whose nodes are the
 * products and then the copies of some. */
static ways_cost cost_of_ways(const joint *j, const joint_piece *piece, const int32_t *ways)
{
	ways_cost cost = {0};
	int32_t *read = sw_alloc(sizeof(*read) * (size_t)(piece->n_products + 1)); /* by late readers */
	for (int32_t p = 0, copy = piece->n_products; p < piece->n_products; p++) {
		const joint_product *product = &j->products[piece->products[p].product];
		double share = piece->products[p].share;
		read[p] = product->is_copied ? ways[copy++] : ways[p];
		cost.kernels_s += share * kernels_of(product, ways[p]);
		cost.kernels_s += read[p] != ways[p] ? share * kernels_of(product, read[p]) : 0;
	}
	for (int32_t i = 0; i < piece->n_channels; i++) {
		const piece_channel *at = &piece->channels[i];
		const channel *c = &j->channels[at->channel];
		int32_t from = (c->may_read_copy ? read : ways)[at->ends[0]];
		cost.messages_s +=
			at->share * c->message_s * messages_of(j, c, from, ways[at->ends[1]]);
	}
	free(read);
	return cost;
}

/* Add what a piece and those that are like it count. Returns whether it was bounded. */
static bool add_piece(const joint *j, const joint_piece *piece, double weight, double of_messages,
                      const sw_solve_options *how, between *sum)
{
	sw_problem problem;
	sw_solution solution;
	sw_error err;
	sw_problem_init(&problem);
	add_products(j, piece, weight, &problem);
	add_channels(j, piece, weight, of_messages, &problem);
	bool solved = sw_solve(&problem, how, &solution, &err) == SW_OK;
	sw_problem_clear(&problem);
	if (!solved)
		return false;
	sum->found &= solution.answer == SW_SOLVED_OPTIMAL || solution.answer == SW_SOLVED_FEASIBLE;
	sum->least_s += piece->times * (double)solution.lower_bound * COST_UNIT;
	if (sum->found) {
		ways_cost cost = cost_of_ways(j, piece, solution.assignment);
		sum->most.kernels_s += piece->times * cost.kernels_s;
		sum->most.messages_s += piece->times * cost.messages_s;
	}
	sw_solution_clear(&solution);
	return true;
}

static between with_weights(const joint *j, double weight, double of_messages, effort how_long,
                            int threads)
{
	between b = {.least_s = weight * j->rest_s, .found = true, .most = {.kernels_s = j->rest_s}};
	sw_solve_options how = {.work_limit = how_long.work / j->n_pieces,
	                        .gap = how_long.gap,
	                        .threads = threads,
	                        .quiet = true};
	for (int32_t i = 0; i < j->n_pieces; i++)
		if (!add_piece(j, &j->pieces[i], weight, of_messages, &how, &b))
			return (between){0};
	return b;
}

static between with_weight(const joint *j, double weight, effort how_long, int threads)
{
	return with_weights(j, weight, weight_of_messages(j, weight), how_long, threads);
}

/* What is known of the bounds of all weights. The best bound is concave in the weight; the cost of
 * each choice of ways is a line that no bound is above. */
typedef struct weights_known {
	double bound_s, weight; /* the greatest that was proved, and its weight */
	int n;
	ways_cost lines[MAX_PROBES + 2];
	double tried[MAX_PROBES + 2]; /* the weight of each */
} weights_known;

static void probe(const joint *j, double weight, effort how_long, int threads, weights_known *known)
{
	between b = with_weight(j, weight, how_long, threads);
	if (b.found) {
		known->tried[known->n] = weight;
		known->lines[known->n++] = b.most;
	}
	if (b.least_s > known->bound_s) {
		known->bound_s = b.least_s;
		known->weight = weight;
	}
}

/* Return the least of the lines at a weight; INFINITY: there is none. */
static double least_line(const joint *j, const weights_known *known, double weight)
{
	double least_s = INFINITY;
	for (int i = 0; i < known->n; i++)
		least_s = fmin(least_s, weighted(j, weight, known->lines[i]));
	return least_s;
}

/* Return the weight for which the least line is highest: one where two lines cross, or one of the
 * ends. */
static double highest_weight(const joint *j, const weights_known *known)
{
	double low_s = least_line(j, known, LOWEST_WEIGHT),
	       high_s = least_line(j, known, HIGHEST_WEIGHT),
	       highest = high_s > low_s ? HIGHEST_WEIGHT : LOWEST_WEIGHT, highest_s = fmax(high_s, low_s);
	for (int a = 0; a < known->n; a++)
		for (int b = 0; b < a; b++) {
			const ways_cost *x = &known->lines[a], *y = &known->lines[b];
			double at_0 = weighted(j, 0, *x) - weighted(j, 0, *y),
			       at_1 = weighted(j, 1, *x) - weighted(j, 1, *y),
			       weight = at_0 * at_1 < 0 ? at_0 / (at_0 - at_1) : highest,
			       least_s = least_line(j, known, weight);
			if (least_s > highest_s && weight >= LOWEST_WEIGHT && weight <= HIGHEST_WEIGHT) {
				highest = weight;
				highest_s = least_s;
			}
		}
	return highest;
}

/* Return the weight to probe next; 0: none is worth it. */
static double next_weight(const joint *j, const weights_known *known)
{
	double weight = highest_weight(j, known);
	if (least_line(j, known, weight) <= (1 + WORTH_MORE) * known->bound_s)
		return 0;
	if (known->n == 1)
		return weight > FIRST_WEIGHT ? HIGHEST_WEIGHT : LESSER_WEIGHT;
	for (int i = 0; i < known->n; i++)
		if (fabs(weight - known->tried[i]) < NEAR)
			return 0;
	return weight;
}

/* Find a good weight with a little work for each of a few: next comes that at which the choices that
 * were found leave most room (Kelley's cutting planes, of a concave function). Then bound the best
 * with more work, and another one where that leaves room. A weight of 1 gives the kernels alone. */
static double with_best_weight(const joint *j, double kernels_s, int threads)
{
	weights_known known = {.bound_s = kernels_s, .weight = 1};
	double weight = FIRST_WEIGHT;
	for (int i = 0; i < MAX_PROBES && weight > 0; i++) {
		probe(j, weight, PROBE, threads, &known);
		weight = known.n > i ? next_weight(j, &known) : 0;
	}
	if (known.weight < 1)
		probe(j, known.weight, FULL, threads, &known);
	weight = next_weight(j, &known);
	if (weight > 0)
		probe(j, weight, FULL, threads, &known);
	return known.bound_s;
}

double sw_bound_joint_weighted_s(const sw_bound_marked *m, double weight)
{
	joint j;
	double bound_s = sw_joint_find(&j, m) ? with_weights(&j, weight, 1 - weight, FULL, 1).least_s
	                                   : weight * m->kernels_s;
	sw_joint_clear(&j);
	return bound_s;
}

double sw_bound_joint_step_s(const sw_bound_marked *m, int threads)
{
	joint j;
	double bound_s =
		sw_joint_find(&j, m) ? with_best_weight(&j, m->kernels_s, threads) : m->kernels_s;
	sw_joint_clear(&j);
	return bound_s;
}
