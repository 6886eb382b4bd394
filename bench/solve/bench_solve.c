/*
 * The solver on problems like the planner's, of growing size.
 *
 *     bench_solve [--work N] [--threads N] [largest number of nodes]
 *
 * A problem is a training step of a residual network: per layer a chain of operators with a skip
 * connection, run forward and backward, parameters read by both and by an update, and one hub (the
 * step count) read by every update. Strategies are layouts on a few atoms; an edge costs a
 * redistribution, so that tables repeat. Activations live from forward to backward, parameters for
 * the whole step. First there is no capacity, then one at a share of what that solution used above
 * the least possible.
 */
#include <stdlib.h>
#include <string.h>

#include "solve/solve.h"

enum { STATES = 3 }; /* per atom: whole, split on the first, split on the second dimension */

typedef struct layouts {
	int atoms, count;
} layouts;

typedef struct builder {
	sw_problem problem;
	sw_rng rng;
	int32_t moment;
	int32_t last_moment;
} builder;

static layouts layouts_on(int atoms)
{
	layouts l = {atoms, 1};
	for (int a = 0; a < atoms; a++)
		l.count *= STATES;
	return l;
}

static int state_of(int layout, int atom)
{
	for (; atom > 0; atom--)
		layout /= STATES;
	return layout % STATES;
}

static int splits(layouts l, int layout)
{
	int n = 0;
	for (int a = 0; a < l.atoms; a++)
		n += state_of(layout, a) != 0;
	return n;
}

/* Outer atoms (large numbers) are slower; gathering costs more than moving a split. */
static int64_t redistribution(layouts l, int from, int to, int64_t bytes)
{
	int64_t cost = 0, share = bytes;
	for (int a = 0; a < l.atoms; a++) {
		int x = state_of(from, a), y = state_of(to, a);
		if (x != y && x != 0)
			cost += 100 + (y == 0 ? 2 : 1) * share * (1 + 3 * (a == l.atoms - 1)) / 2;
		if (y != 0)
			share /= 2;
	}
	return cost;
}

/* What a consumer wants of a parameter: whole where it splits the batch (state 1). */
static int wanted(layouts l, int layout)
{
	int want = 0, power = 1;
	for (int a = 0; a < l.atoms; a++, power *= STATES)
		want += power * (state_of(layout, a) == 1 ? 0 : state_of(layout, a));
	return want;
}

static void join_as(builder *b, int32_t from, int32_t to, layouts l, int64_t bytes, bool parameter)
{
	int64_t *cost = malloc((size_t)(l.count * l.count) * sizeof *cost);
	for (int i = 0; i < l.count; i++)
		for (int j = 0; j < l.count; j++)
			cost[i * l.count + j] = redistribution(l, i, parameter ? wanted(l, j) : j, bytes);
	sw_problem_add_edge(&b->problem, from, to,
	                    sw_problem_add_table(&b->problem, l.count, l.count, cost));
	free(cost);
}

static void join(builder *b, int32_t from, int32_t to, layouts l, int64_t bytes)
{
	join_as(b, from, to, l, bytes, false);
}

/* An operator: work shrinks with every split; splitting the dimension `whole` by an atom costs a
 * reduction of the result. */
static int32_t add_op(builder *b, layouts l, int64_t work, int64_t reduced_bytes, int whole)
{
	int64_t cost[81];
	for (int i = 0; i < l.count; i++) {
		cost[i] = work >> splits(l, i);
		for (int a = 0; a < l.atoms; a++)
			if (state_of(i, a) == whole)
				cost[i] += 100 + (reduced_bytes * (1 + 3 * (a == l.atoms - 1)) >> splits(l, i));
	}
	b->moment++;
	return sw_problem_add_node(&b->problem, l.count, cost);
}

static void live(builder *b, int32_t node, layouts l, int32_t begin, int32_t end, int64_t bytes)
{
	int64_t usage[81];
	for (int i = 0; i < l.count; i++)
		usage[i] = bytes >> splits(l, i);
	sw_problem_add_span(&b->problem, node, begin, end, usage);
}

#define OPS 8
#define PARAMETER_BYTES 90000

typedef struct layer {
	int32_t input, parameter[2], forward[OPS];
} layer;

static int64_t op_bytes(int op)
{
	static const int64_t bytes[OPS] = {60000, 60000, 240000, 240000, 240000, 60000, 60000, 60000};
	return bytes[op];
}

static int32_t add_forward(builder *b, layouts l, layer *made, int32_t input)
{
	int32_t before = input;
	made->input = input;
	for (int p = 0; p < 2; p++)
		made->parameter[p] = add_op(b, l, 0, 0, -1);
	for (int op = 0; op < OPS; op++) {
		bool heavy = op == 2 || op == 5;
		made->forward[op] = add_op(b, l, heavy ? 800000 : 4000, heavy ? op_bytes(op) : 0, 2);
		join(b, before, made->forward[op], l, op_bytes(op));
		if (heavy)
			join_as(b, made->parameter[op == 5], made->forward[op], l, PARAMETER_BYTES, true);
		before = made->forward[op];
	}
	join(b, input, before, l, op_bytes(0)); /* the residual connection */
	return before;
}

static int32_t add_backward(builder *b, layouts l, const layer *made, int32_t gradient, int32_t hub, int32_t end)
{
	int32_t before = gradient;
	for (int op = OPS; op-- > 0;) {
		bool heavy = op == 2 || op == 5;
		int32_t back = add_op(b, l, heavy ? 800000 : 4000, heavy ? op_bytes(op) : 0, 2);
		join(b, before, back, l, op_bytes(op));
		join(b, made->forward[op], back, l, op_bytes(op));
		live(b, made->forward[op], l, made->forward[op], b->moment, op_bytes(op));
		if (heavy) {
			int32_t weight = add_op(b, l, 800000, PARAMETER_BYTES, 1), update = add_op(b, l, 9000, 0, -1);
			join(b, before, weight, l, op_bytes(op));
			join(b, weight, update, l, PARAMETER_BYTES);
			join_as(b, made->parameter[op == 5], back, l, PARAMETER_BYTES, true);
			join(b, made->parameter[op == 5], update, l, PARAMETER_BYTES);
			join(b, hub, update, l, 16);
			live(b, made->parameter[op == 5], l, 0, end, 3 * PARAMETER_BYTES);
		}
		before = back;
	}
	join(b, gradient, before, l, op_bytes(0));
	return before;
}

/* Every layout split on all atoms: the least that can be used. */
static int64_t least_peak(const sw_problem *problem)
{
	sw_evaluation value;
	int32_t *x = calloc(problem->nodes.len, sizeof *x);
	for (size_t n = 0; n < problem->nodes.len; n++)
		x[n] = problem->nodes.data[n].strategies - 1;
	sw_problem_evaluate(problem, x, &value);
	free(x);
	return value.peak_usage;
}

static void make_problem(builder *b, int layers, int atoms)
{
	layouts l = layouts_on(atoms);
	layer *made = calloc((size_t)layers, sizeof *made);
	int32_t end = layers * (OPS * 2 + 8) + 8;
	memset(b, 0, sizeof *b);
	sw_problem_init(&b->problem);
	int32_t hub = add_op(b, l, 0, 0, -1), value = add_op(b, l, 1000, 0, -1);
	for (int k = 0; k < layers; k++)
		value = add_forward(b, l, &made[k], value);
	value = add_op(b, l, 500000, 40000, 2);
	join(b, made[layers - 1].forward[OPS - 1], value, l, 40000);
	for (int k = layers; k-- > 0;)
		value = add_backward(b, l, &made[k], value, hub, end);
	free(made);
}

static void add_row(sw_table *table, const sw_problem *problem, int percent, const sw_solution *solution)
{
	static const char *const answers[] = {"optimal", "feasible", "infeasible", "unknown"};
	double cost = (double)solution->cost;
	sw_table_cell(table, "%zu", problem->nodes.len);
	sw_table_cell(table, "%zu", problem->edges.len);
	sw_table_cell(table, "%d", problem->nodes.data[0].strategies);
	sw_table_cell(table, percent < 100 ? "%d %%" : "none", percent);
	sw_table_cell(table, "%d", solution->nodes_left);
	sw_table_cell(table, "%d", solution->edges_left);
	sw_table_cell(table, "%lld", (long long)solution->cost);
	sw_table_cell(table, "%lld", (long long)solution->lower_bound);
	sw_table_cell(table, "%.4f %%", cost > 0 ? 100 * (cost - (double)solution->lower_bound) / cost : 0);
	sw_table_cell(table, "%s", answers[solution->answer]);
	sw_table_cell(table, "%.0f", (double)solution->work / 1e6);
	sw_table_cell(table, "%.2f", solution->seconds);
	sw_table_cell(table, "%.0f", (double)sw_peak_memory_bytes() / 1048576.0);
}

/* Returns the peak of the assignment found. */
static int64_t solve_one(sw_table *table, const sw_problem *problem, int percent, const sw_solve_options *options)
{
	sw_solution solution;
	sw_error err;
	if (sw_solve(problem, options, &solution, &err)) {
		fprintf(stderr, "%s\n", err.message);
		exit(1);
	}
	add_row(table, problem, percent, &solution);
	int64_t peak = solution.peak_usage;
	sw_solution_clear(&solution);
	return peak;
}

/* Without capacity first; then with shares of what that solution uses above the least. */
static void measure(sw_table *table, int layers, int atoms, const sw_solve_options *options)
{
	static const int percents[] = {80, 40, 10};
	builder b;
	make_problem(&b, layers, atoms);
	int64_t free_peak = solve_one(table, &b.problem, 100, options), least = least_peak(&b.problem);
	for (size_t p = 0; p < SW_COUNT(percents); p++) {
		b.problem.capacity = least + (free_peak - least) * percents[p] / 100;
		solve_one(table, &b.problem, percents[p], options);
	}
	sw_problem_clear(&b.problem);
}

int main(int argc, char **argv)
{
	static const char *const headings[] = {"nodes", "edges", "strategies", "capacity", "nodes left",
	                                       "edges left", "cost", "bound", "gap", "answer",
	                                       "work (M)", "seconds", "peak MiB"};
	static const int layers[] = {50, 200, 800, 2700};
	sw_solve_options options = {.quiet = true};
	int64_t largest = 60000;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--work") && i + 1 < argc)
			options.work_limit = atoll(argv[++i]);
		else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
			options.threads = atoi(argv[++i]);
		else
			largest = atoll(argv[i]);
	}
	sw_table table;
	sw_table_init(&table, (int)SW_COUNT(headings), headings);
	for (int atoms = 2; atoms <= 3; atoms++)
		for (size_t k = 0; k < SW_COUNT(layers); k++)
			if (layers[k] * 22 <= largest)
				measure(&table, layers[k], atoms, &options);
	sw_text text = {0};
	sw_table_add_to(&table, &text);
	fputs(text.data, stdout);
	sw_text_clear(&text);
	sw_table_clear(&table);
	return 0;
}
