/* Problems that were solved (solved.h), found by a hash of 128 bits. */
#include "search/solved.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem_key {
	uint64_t half[2];
} problem_key;

typedef struct solved_problem {
	problem_key key;
	bool done, kept; /* kept: `solution` is the answer; else whoever waits solves it again */
	size_t n_nodes;
	sw_solution solution;
} solved_problem;

struct sw_solved {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	SW_VEC(solved_problem) list;
	int64_t reused;
};

sw_solved *sw_solved_new(void)
{
	sw_solved *solved = sw_alloc(sizeof(*solved));
	pthread_mutex_init(&solved->lock, NULL);
	pthread_cond_init(&solved->changed, NULL);
	return solved;
}

void sw_solved_free(sw_solved *solved)
{
	if (!solved)
		return;
	for (size_t i = 0; i < solved->list.len; i++)
		sw_solution_clear(&solved->list.data[i].solution);
	sw_vec_clear(&solved->list);
	pthread_cond_destroy(&solved->changed);
	pthread_mutex_destroy(&solved->lock);
	free(solved);
}

/* ---- keys ------------------------------------------------------------------------------- */

static void add_bytes(problem_key *key, const void *data, size_t bytes)
{
	for (int h = 0; h < 2; h++)
		key->half[h] = sw_hash_bytes(data, bytes, key->half[h]);
}

static void add_numbers(problem_key *key, const int64_t *numbers, int64_t n)
{
	add_bytes(key, numbers, (size_t)n * sizeof(*numbers));
}

#define ADD(key, ...)                                                                              \
	add_numbers(key, (const int64_t[]){__VA_ARGS__},                                           \
	            (int64_t)SW_COUNT(((const int64_t[]){__VA_ARGS__})))

static void add_problem(problem_key *key, const sw_problem *p)
{
	ADD(key, (int64_t)p->nodes.len, (int64_t)p->spans.len, (int64_t)p->tables.len,
	    (int64_t)p->edges.len, p->points, p->capacity);
	for (size_t i = 0; i < p->nodes.len; i++) {
		const sw_problem_node *node = &p->nodes.data[i];
		ADD(key, node->strategies, p->tied_to.data[i]);
		add_numbers(key, node->cost, node->strategies);
	}
	for (size_t i = 0; i < p->spans.len; i++) {
		const sw_usage_span *span = &p->spans.data[i];
		ADD(key, span->node, span->begin, span->end);
		add_numbers(key, span->usage, p->nodes.data[span->node].strategies);
	}
	for (size_t i = 0; i < p->tables.len; i++) {
		const sw_cost_table *table = &p->tables.data[i];
		ADD(key, table->rows, table->columns);
		add_numbers(key, table->cost, (int64_t)table->rows * table->columns);
	}
	for (size_t i = 0; i < p->edges.len; i++) {
		const sw_edge *edge = &p->edges.data[i];
		ADD(key, edge->from, edge->to, edge->table);
	}
}

static problem_key key_of(sw_method method, const sw_problem *problem, const sw_solve_options *o)
{
	problem_key key = {{0, 1}};
	add_problem(&key, problem);
	ADD(&key, (int64_t)method, o->work_limit, o->gap_work, o->cutoff, (int64_t)o->seed,
	    o->n_starts);
	add_bytes(&key, &o->gap, sizeof(o->gap));
	for (int i = 0; i < o->n_starts; i++)
		add_bytes(&key, o->starts[i], problem->nodes.len * sizeof(*o->starts[i]));
	return key;
}

/* ---- answers ---------------------------------------------------------------------------- */

static sw_solution copy_of(const sw_solution *solution, size_t n_nodes)
{
	sw_solution copy = *solution;
	if (copy.assignment) {
		copy.assignment = sw_alloc((n_nodes + 1) * sizeof(*copy.assignment));
		memcpy(copy.assignment, solution->assignment, n_nodes * sizeof(*copy.assignment));
	}
	return copy;
}

/* Return the place of a problem in the list, which grows; with the lock. SIZE_MAX: it is new. */
static size_t find(const sw_solved *solved, problem_key key)
{
	for (size_t i = 0; i < solved->list.len; i++)
		if (memcmp(&solved->list.data[i].key, &key, sizeof(key)) == 0)
			return i;
	return SIZE_MAX;
}

/* Wait for the answer of a problem; with the lock. False: it is the caller's to find. */
static bool take(sw_solved *solved, size_t i, sw_solution *solution)
{
	while (!solved->list.data[i].done)
		pthread_cond_wait(&solved->changed, &solved->lock);
	const solved_problem *p = &solved->list.data[i];
	if (p->kept)
		*solution = copy_of(&p->solution, p->n_nodes);
	solved->reused += p->kept;
	return p->kept;
}

static void put(sw_solved *solved, size_t i, const sw_solution *solution, bool keep)
{
	pthread_mutex_lock(&solved->lock);
	solved_problem *p = &solved->list.data[i];
	p->done = true;
	p->kept = keep;
	if (keep)
		p->solution = copy_of(solution, p->n_nodes);
	pthread_cond_broadcast(&solved->changed);
	pthread_mutex_unlock(&solved->lock);
}

sw_status sw_solved_solve(sw_solved *solved, sw_method method, const sw_problem *problem,
                          const sw_solve_options *options, sw_solution *solution, sw_error *err)
{
	problem_key key = key_of(method, problem, options);
	pthread_mutex_lock(&solved->lock);
	size_t i = find(solved, key);
	bool is_new = i == SIZE_MAX, known = !is_new && take(solved, i, solution);
	if (is_new) {
		i = solved->list.len;
		sw_vec_push(&solved->list,
		            ((solved_problem){.key = key, .n_nodes = problem->nodes.len}));
	}
	pthread_mutex_unlock(&solved->lock);
	if (known)
		return SW_OK;
	sw_status status = sw_solve_by(method, problem, options, solution, err);
	if (is_new)
		put(solved, i, solution, status == SW_OK && !solution->timed_out);
	return status;
}

int64_t sw_solved_reused(sw_solved *solved)
{
	pthread_mutex_lock(&solved->lock);
	int64_t reused = solved->reused;
	pthread_mutex_unlock(&solved->lock);
	return reused;
}
