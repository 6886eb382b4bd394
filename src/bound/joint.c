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
#include "bound/bound.h"
#include "bound/flows.h"
#include "bound/marks.h"
#include "bound/products.h"

#include <math.h>
#include <string.h>

#include "model/model.h"
#include "program/attributes.h"
#include "solve/solve.h"

#define QUARTERS 4      /* weights tried at first */
#define COST_UNIT 1e-12 /* seconds; costs are rounded down to it */
#define MAX_ENTRIES 3e7 /* of all tables of the problem */
/* How long the solver works: table entries visited, and a gap. A good weight is found with a little
 * work. */
typedef struct effort {
	int64_t work;
	double gap;
} effort;
static const effort PROBE = {200000000, 0.02}, FULL = {600000000, 0.005};

/* What a way of a product means for one flow: for a source, in how many parts an element is (x) as
 * how many partial sums; for a sink, in how many parts it is read (x), as how many sums at most;
 * and into how many parts each class of dimensions is split (flows.h). */
typedef struct holding {
	double x, sums;
	int32_t split[SW_MAX_RANK]; /* per class */
} holding;

/* How many messages an element takes, for all ways of a source's kind and of a sink's. */
typedef struct message_table {
	int32_t n[2];           /* different holdings of source and sink */
	const uint16_t *of[2];  /* per way: its holding */
	const double *messages; /* [source][sink] */
} message_table;

typedef struct channel {
	int32_t ends[2]; /* products: source, sink */
	bool may_read_copy;
	const message_table *table;
	double message_s; /* one message per element, as a mean over the parts */
} channel;

typedef struct joint_product {
	sw_id op;
	const sw_product_kind *kind;
	bool is_copied; /* a sink may read a copy of it */
} joint_product;

typedef struct joint {
	sw_arena arena;
	const sw_cluster *cluster;
	bool coarse;   /* the ways of products are */
	double rest_s; /* the kernels of all ops but products */
	int32_t n_products, n_channels;
	joint_product *products;
	channel *channels;
} joint;

/* ---- messages --------------------------------------------------------------------------- */

/* Return what the way of a source, or of a sink for its operand, means for the flow. Copies of a
 * sink may each work on a sum of their own; state is one sum. */
static holding holding_in(const sw_bound_flow *flow, bool is_sink, const sw_product_kind *kind,
                          const sw_product_way *way)
{
	uint32_t which = is_sink ? flow->operand : 0;
	const sw_rule *rule = kind->rule;
	const sw_dim_map *dims = is_sink ? rule->operands[which] : rule->results[0];
	int32_t rank = is_sink ? rule->operand_ranks[which] : rule->result_ranks[0];
	bool coarse = way->passes[0] == 0;
	double passed = coarse ? 1 : way->passes[0] * way->passes[1];
	holding h = {.x = way->copies * passed, .sums = passed};
	if (is_sink)
		h.sums = flow->through_state ? 1 : coarse ? way->copies : way->passes[which];
	for (int32_t f = 0; f < rule->n_factors; f++) {
		if (sw_rule_has_factor(rule, !is_sink, (int32_t)which, f))
			continue;
		h.x *= way->parts[f];
		h.sums *= is_sink ? 1 : way->parts[f];
	}
	for (int32_t c = 0; c < flow->n_classes; c++)
		h.split[c] = 1;
	for (int32_t d = 0; d < rank; d++) {
		int8_t class = is_sink ? flow->sink_class[d] : flow->source_class[d];
		for (int32_t r = 0; r < dims[d].n; r++) {
			int32_t parts = way->parts[dims[d].refs[r].factor];
			if (class == SW_NO_CLASS)
				h.x *= parts; /* each reads another copy of the element */
			else if (class != SW_PLACED && flow->n_classes > 0)
				h.split[class] *= parts;
		}
	}
	return h;
}

/* Return how many messages each element takes at least, as a mean over the parts; README.md proves
 * that no sequence of moves takes fewer. */
static double messages(const sw_bound_flow *flow, const holding *source, const holding *sink)
{
	double summed = flow->summed ? source->sums - 1 : 0;
	if (source->sums > sink->sums)
		return fmax(summed, (source->sums - sink->sums) + (sink->x - sink->sums));
	double there = 1, needed = 1; /* of all elements, in a part: at the source, and read */
	for (int32_t c = 0; c < flow->n_classes && source->sums == 1; c++) {
		needed /= sink->split[c];
		there /= SW_MAX(source->split[c], sink->split[c]);
	}
	double missing = sink->x * (1 - there / needed);
	return fmax(fmax(missing, summed), sink->x - source->x);
}

/* ---- the problem ------------------------------------------------------------------------ */

/* What the ways of a product follow from. */
static void describe(const sw_program *program, sw_id id, const division *d, sw_text *key)
{
	const sw_op *op = sw_op_at(program, id);
	key->len = 0;
	sw_text_addf(key, "%d %d %d %lld %d;", op->opcode, d->attention, d->shares_kernel,
	             (long long)d->microbatches, d->split);
	for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
		sw_shape shape = sw_value_shape(
			program, i < op->n_operands ? op->operands[i]
						    : op->first_result + i - op->n_operands);
		sw_text_addf(key, "%d[", shape.type);
		for (int32_t k = 0; k < shape.rank; k++)
			sw_text_addf(key, "%lld,", (long long)shape.dims[k]);
	}
	sw_attributes_key((sw_opcode)op->opcode, op->attrs, key);
}

/* Find the ways of the products that may be ends of flows: those that no other op may become equal
 * to. Sets is_product. */
static void find_products(joint *j, division *d, int32_t level, const sw_bound_marked *m,
                          bool *is_product)
{
	const sw_bound_marks *marks = &m->marks;
	const sw_program *program = d->program;
	const sw_computation *entry = &program->computations.data[program->entry];
	int32_t *members = SW_NEW_N(&j->arena, int32_t, program->ops.len + 1);
	sw_map known = {0}; /* product by description */
	sw_text key = {0};
	sw_product_kind *kinds = SW_NEW_N(&j->arena, sw_product_kind, entry->ops.len + 1);
	j->products = SW_NEW_N(&j->arena, joint_product, entry->ops.len + 1);
	for (sw_id id = 0; id < program->ops.len; id++)
		members[marks->any.twins[id]]++;
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		if (!sw_is_dot(sw_op_at(program, id)) || members[marks->any.twins[id]] > 1)
			continue;
		sw_bound_loop_apply(&marks->any, marks, id, d);
		describe(program, id, d, &key);
		uint32_t like = sw_map_get(&known, key.data, key.len);
		if (like == SW_ABSENT) {
			like = (uint32_t)j->n_products;
			if (!sw_bound_product(d, level, j->coarse, id, m->rules[id], &j->arena,
			                      &kinds[like]))
				continue;
			sw_map_put(&known, key.data, key.len, like);
		}
		j->products[j->n_products++] = (joint_product){id, &kinds[like], false};
		is_product[id] = true;
	}
	sw_map_clear(&known);
	sw_text_clear(&key);
}

/* List the different holdings of a kind's ways. */
static int32_t list_holdings(joint *j, const sw_bound_flow *flow, bool is_sink,
                             const sw_product_kind *kind, holding *all, const uint16_t **of)
{
	uint16_t *number = SW_NEW_N(&j->arena, uint16_t, kind->n_ways);
	int32_t n = 0;
	for (int32_t w = 0; w < kind->n_ways; w++) {
		int32_t i = 0;
		all[n] = holding_in(flow, is_sink, kind, &kind->ways[w]);
		while (memcmp(&all[i], &all[n], sizeof(*all)) != 0)
			i++;
		number[w] = (uint16_t)i;
		n += i == n;
	}
	*of = number;
	return n;
}

static const message_table *make_table(joint *j, const sw_bound_flow *flow,
                                       const sw_product_kind *source, const sw_product_kind *sink)
{
	message_table *x = SW_NEW_N(&j->arena, message_table, 1);
	holding *from = sw_alloc(sizeof(*from) * (size_t)(source->n_ways + sink->n_ways + 2)),
		*to = from + source->n_ways + 1;
	x->n[0] = list_holdings(j, flow, false, source, from, &x->of[0]);
	x->n[1] = list_holdings(j, flow, true, sink, to, &x->of[1]);
	double *table = SW_NEW_N(&j->arena, double, (size_t)x->n[0] * (size_t)x->n[1]);
	for (int32_t a = 0; a < x->n[0]; a++)
		for (int32_t b = 0; b < x->n[1]; b++)
			table[a * x->n[1] + b] = messages(flow, &from[a], &to[b]);
	x->messages = table;
	free(from);
	return x;
}

/* The table of a flow, made once for flows that are alike. */
static const message_table *table_of(joint *j, const sw_bound_flow *flow,
                                     const sw_product_kind *source, const sw_product_kind *sink,
                                     sw_map *known, const message_table **tables)
{
	struct {
		const sw_product_kind *source, *sink;
		int32_t operand, through_state, summed, n_classes;
		int8_t classes[2][SW_MAX_RANK];
	} key;
	memset(&key, 0, sizeof(key));
	key.source = source;
	key.sink = sink;
	key.operand = (int32_t)flow->operand;
	key.through_state = flow->through_state;
	key.summed = flow->summed;
	key.n_classes = flow->n_classes;
	memcpy(key.classes[0], flow->source_class, sizeof(key.classes[0]));
	memcpy(key.classes[1], flow->sink_class, sizeof(key.classes[1]));
	uint32_t next = (uint32_t)known->len;
	uint32_t number = sw_map_intern(known, &key, sizeof(key), next);
	if (number == next)
		tables[next] = make_table(j, flow, source, sink);
	return tables[number];
}

static void set_channels(joint *j, const sw_bound_flow_list *flows, double parts, double bandwidth,
                         size_t n_ops)
{
	int32_t *number = SW_NEW_N(&j->arena, int32_t, n_ops + 1);
	const message_table **tables = SW_NEW_N(&j->arena, const message_table *, flows->n + 1);
	sw_map known = {0};
	j->channels = SW_NEW_N(&j->arena, channel, flows->n + 1);
	for (int32_t p = 0; p < j->n_products; p++)
		number[j->products[p].op] = p;
	for (size_t f = 0; f < flows->n; f++) {
		const sw_bound_flow *of = &flows->at[f];
		int32_t source = number[of->source], sink = number[of->sink];
		j->channels[j->n_channels++] =
			(channel){.ends = {source, sink},
		                  .may_read_copy = of->may_read_copy,
		                  .table = table_of(j, of, j->products[source].kind,
		                                    j->products[sink].kind, &known, tables),
		                  .message_s = of->bytes * of->share / parts / bandwidth};
		j->products[source].is_copied |= of->may_read_copy;
	}
	sw_map_clear(&known);
}

/* ---- the bound -------------------------------------------------------------------------- */

static int64_t cost_of(double seconds)
{
	return (int64_t)(seconds / COST_UNIT);
}

static void add_products(const joint *j, double weight, sw_problem *problem)
{
	SW_VEC(int64_t) cost = {0};
	for (int32_t p = 0; p < j->n_products; p++) {
		const sw_product_kind *kind = j->products[p].kind;
		cost.len = 0;
		for (int32_t w = 0; w < kind->n_ways; w++)
			sw_vec_push(&cost, cost_of(weight * kind->ways[w].kernels_s));
		sw_problem_add_node(problem, kind->n_ways, cost.data);
	}
	sw_vec_clear(&cost);
}

/* Costs of a node, or of an edge's table. */
typedef SW_VEC(int64_t) cost_list;

/* Add a node for what late readers read of a product: itself, where the node has its way, or a copy
 * that is computed again in another. Returns the node. */
static int32_t add_copy(const joint *j, int32_t p, double weight, sw_problem *problem,
                        cost_list *cost)
{
	const sw_product_kind *kind = j->products[p].kind;
	cost->len = 0;
	for (int32_t w = 0; w < kind->n_ways; w++)
		sw_vec_push(cost, 0);
	int32_t node = sw_problem_add_node(problem, kind->n_ways, cost->data);
	cost->len = 0;
	for (int32_t a = 0; a < kind->n_ways; a++)
		for (int32_t b = 0; b < kind->n_ways; b++)
			sw_vec_push(cost, a == b ? 0 : cost_of(weight * kind->ways[b].kernels_s));
	sw_problem_add_edge(problem, p, node,
	                    sw_problem_add_table(problem, kind->n_ways, kind->n_ways, cost->data));
	return node;
}

static void add_channel(const joint *j, const channel *c, int32_t source, double weight,
                        sw_problem *problem, cost_list *cost)
{
	const message_table *x = c->table;
	int32_t n = j->products[c->ends[0]].kind->n_ways, m = j->products[c->ends[1]].kind->n_ways;
	cost->len = 0;
	for (int32_t a = 0; a < n; a++)
		for (int32_t b = 0; b < m; b++)
			sw_vec_push(cost,
			            cost_of(weight * c->message_s *
			                    x->messages[x->of[0][a] * x->n[1] + x->of[1][b]]));
	sw_problem_add_edge(problem, source, c->ends[1],
	                    sw_problem_add_table(problem, n, m, cost->data));
}

/* Add the channels, with the copies that they come from: one more node each. */
static void add_channels(const joint *j, double weight, double of_messages, sw_problem *problem)
{
	cost_list cost = {0};
	int32_t *copy = sw_alloc(sizeof(*copy) * (size_t)(j->n_products + 1));
	for (int32_t p = 0; p < j->n_products; p++)
		copy[p] = j->products[p].is_copied ? add_copy(j, p, weight, problem, &cost) : p;
	for (int32_t i = 0; i < j->n_channels; i++) {
		const channel *c = &j->channels[i];
		int32_t source = c->may_read_copy ? copy[c->ends[0]] : c->ends[0];
		add_channel(j, c, source, of_messages, problem, &cost);
	}
	free(copy);
	sw_vec_clear(&cost);
}

/* For a weight, what no plan's weight K + of_messages C is below, and what that of some choice of ways
 * is: the best bound of the weight lies between. */
typedef struct between {
	double least_s, most_s;
} between;

static between with_weight(const joint *j, double weight, double of_messages, effort how_long,
                           int threads)
{
	between b = {0, INFINITY};
	sw_problem problem;
	sw_solution solution;
	sw_error err;
	sw_problem_init(&problem);
	add_products(j, weight, &problem);
	add_channels(j, weight, of_messages, &problem);
	sw_solve_options how = {.work_limit = how_long.work,
	                        .gap = how_long.gap,
	                        .threads = threads,
	                        .quiet = true};
	if (sw_solve(&problem, &how, &solution, &err) == SW_OK) {
		bool found = solution.answer == SW_SOLVED_OPTIMAL ||
			     solution.answer == SW_SOLVED_FEASIBLE;
		b.least_s = weight * j->rest_s + (double)solution.lower_bound * COST_UNIT;
		if (found)
			b.most_s = weight * j->rest_s + (double)solution.cost * COST_UNIT;
		sw_solution_clear(&solution);
	}
	sw_problem_clear(&problem);
	return b;
}

typedef struct weight_bounds {
	const joint *j;
	effort effort;
	int threads; /* of each */
	double weight[QUARTERS];
	between bound[QUARTERS];
} weight_bounds;

/* A collective in flight takes a share of the device, so that a step is no shorter than K + share
 * C, either: weight it with C. */
static void bound_one(void *context, int64_t i)
{
	weight_bounds *w = context;
	double of_messages = 1 - w->weight[i] * (1 - w->j->cluster->device.transfer_share);
	w->bound[i] = with_weight(w->j, w->weight[i], of_messages, w->effort, w->threads);
}

/* Bound the weights [first, first + n). */
static void bound_weights(weight_bounds *w, int first, int n, effort how_long, int threads)
{
	weight_bounds part = {.j = w->j, .effort = how_long, .threads = n > 1 ? 1 : threads};
	memcpy(part.weight, w->weight + first, sizeof(*part.weight) * (size_t)n);
	sw_parallel_for(n, sw_thread_count(threads), bound_one, &part);
	memcpy(w->bound + first, part.bound, sizeof(*part.bound) * (size_t)n);
}

/* Return where a parabola through three bounds is highest, those of weights a quarter apart. The
 * bound is concave in the weight, and the one in the middle is the highest. */
static double highest_between(const double *bound_s, double middle)
{
	double bend = 2 * bound_s[1] - bound_s[0] - bound_s[2];
	return bend > 0 ? middle + (bound_s[2] - bound_s[0]) / bend / 2 / QUARTERS : middle;
}

/* Find a good weight with a little work for each of a few, then try it and the best of these with
 * more. Without kernels, or without messages, the bound is known. The best bound is concave in the
 * weight: where it rises towards kernels alone, no lower weight is probed. */
static double with_best_weight(const joint *j, double kernels_s, int threads)
{
	weight_bounds w = {.j = j};
	for (int i = 1; i < QUARTERS; i++)
		w.weight[i - 1] = (double)i / QUARTERS;
	bound_weights(&w, QUARTERS - 2, 1, PROBE, threads);
	if (w.bound[QUARTERS - 2].most_s <= kernels_s)
		return kernels_s;
	bound_weights(&w, 0, QUARTERS - 2, PROBE, threads);
	double bound_s[QUARTERS + 1] = {0, [QUARTERS] = kernels_s};
	for (int i = 1; i < QUARTERS; i++)
		bound_s[i] = w.bound[i - 1].least_s;
	int best = 0;
	for (int i = 1; i <= QUARTERS; i++)
		best = bound_s[i] > bound_s[best] ? i : best;
	if (best == 0 || best == QUARTERS)
		return kernels_s;
	w.weight[0] = (double)best / QUARTERS;
	w.weight[1] = highest_between(bound_s + best - 1, w.weight[0]);
	bound_weights(&w, 0, 2, FULL, threads);
	return fmax(bound_s[best], fmax(w.bound[0].least_s, w.bound[1].least_s));
}

static double table_entries(const joint *j)
{
	double entries = 0;
	for (int32_t c = 0; c < j->n_channels; c++)
		entries += (double)j->products[j->channels[c].ends[0]].kind->n_ways *
		           j->products[j->channels[c].ends[1]].kind->n_ways;
	for (int32_t p = 0; p < j->n_products; p++)
		if (j->products[p].is_copied)
			entries += pow(j->products[p].kind->n_ways, 2);
	return entries;
}

/* Find products and flows; false: there are none, or too many ways. */
static bool joint_init(joint *j, const sw_bound_marked *m, int32_t level, bool coarse)
{
	const sw_program *program = m->program;
	*j = (joint){.cluster = m->cluster, .coarse = coarse, .rest_s = m->with_any_products_s};
	sw_arena_init(&j->arena);
	division d = division_of(m->cluster, program);
	bool *is_product = SW_NEW_N(&j->arena, bool, program->ops.len + 1);
	find_products(j, &d, level, m, is_product);
	for (int32_t p = 0; p < j->n_products; p++)
		j->rest_s -= j->products[p].kind->least_s;
	sw_bound_flow_list flows =
		sw_bound_flows(program, m->sidecar, m->rules, is_product, &j->arena);
	set_channels(j, &flows, (double)sw_cluster_parts(m->cluster, level),
	             m->cluster->levels[level].bandwidth, program->ops.len);
	return flows.n > 0 && table_entries(j) <= MAX_ENTRIES;
}

/* Find them, with coarse ways where others are too many. j: to be cleared in either case. */
static bool joint_find(joint *j, const sw_bound_marked *m)
{
	int32_t level;
	*j = (joint){0};
	sw_arena_init(&j->arena);
	if (!sw_bound_parts(m->cluster, &level))
		return false;
	for (int coarse = 0; coarse < 2; coarse++) {
		sw_arena_clear(&j->arena);
		if (joint_init(j, m, level, coarse))
			return true;
	}
	return false;
}

double sw_bound_joint_weighted_s(const sw_bound_marked *m, double weight)
{
	joint j;
	double bound_s = joint_find(&j, m) ? with_weight(&j, weight, 1 - weight, FULL, 1).least_s
	                                   : weight * m->kernels_s;
	sw_arena_clear(&j.arena);
	return bound_s;
}

double sw_bound_joint_step_s(const sw_bound_marked *m, int threads)
{
	joint j;
	double bound_s =
		joint_find(&j, m) ? with_best_weight(&j, m->kernels_s, threads) : m->kernels_s;
	sw_arena_clear(&j.arena);
	return bound_s;
}
