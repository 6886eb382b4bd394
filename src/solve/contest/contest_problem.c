/* The reader of contest problems: lists and pairs are collected in the order of the text, whatever
 * it is, and then put together. */
#include "solve/contest_problem.h"
#include "solve/contest/interned_lists.h"
#include "solve/problem/adopt_numbers.h"

#include <string.h>

#define MAX_ROWS (INT32_MAX / 2)
#define PROGRESS_AFTER_S 1.0
#define ROWS_PER_CHECK 1024 /* between two checks of the clock */

typedef struct number_pair {
	int64_t first, second;
	sw_json_place place;
} number_pair;

typedef struct number_row {
	int32_t list;
	sw_json_place place;
} number_row;

typedef SW_VEC(number_pair) number_pair_list;
typedef SW_VEC(number_row) number_row_list;

typedef struct contest_reader {
	sw_json_stream *json;
	const sw_source *source;
	sw_problem *problem;
	number_lists lists;
	sw_numbers numbers; /* of the present row */
	number_pair_list intervals, ends;
	number_row_list costs, usages, tables;
	sw_json_place nodes_place, edges_place;
	sw_progress progress;
	int64_t rows_read;
} contest_reader;

/* ---- objects with known members --------------------------------------------------------- */

typedef struct contest_member {
	const char *key;
	bool (*read)(contest_reader *r);
	bool optional;
} contest_member;

static const contest_member *find_member(const contest_member *members, int count, const char *key)
{
	for (int i = 0; i < count; i++)
		if (strcmp(members[i].key, key) == 0)
			return &members[i];
	return NULL;
}

static bool check_complete(contest_reader *r, const contest_member *members, int count,
                           unsigned seen)
{
	for (int i = 0; i < count; i++)
		if (!members[i].optional && !(seen & 1u << i))
			return sw_json_stream_fail(r->json, NULL,
			                           "its \"%s\" is missing (docs/formats.md)",
			                           members[i].key);
	return true;
}

static bool read_members(contest_reader *r, const contest_member *members, int count)
{
	const char *key;
	unsigned seen = 0;
	bool good = sw_json_enter_object(r->json);
	while (good && sw_json_next_key(r->json, &key)) {
		const contest_member *m = find_member(members, count, key);
		unsigned bit = m ? 1u << (m - members) : 0;
		if (seen & bit)
			return sw_json_stream_fail(r->json, NULL,
			                           "this key is there twice: leave one out");
		seen |= bit;
		good = m ? m->read(r) : sw_json_skip(r->json);
	}
	return good && check_complete(r, members, count, seen);
}

/* ---- rows ------------------------------------------------------------------------------- */

static void show_progress(contest_reader *r)
{
	double now = sw_now_s();
	if (now - r->progress.started_s > PROGRESS_AFTER_S)
		sw_progress_update(&r->progress, sw_source_fraction(r->source),
		                   "%zu edges, %d different lists",
		                   SW_MAX(r->tables.len, r->ends.len), (int)r->lists.lists.len);
}

static bool count_row(contest_reader *r, size_t so_far)
{
	if (++r->rows_read % ROWS_PER_CHECK == 0)
		show_progress(r);
	return so_far < MAX_ROWS ||
	       sw_json_stream_fail(r->json, NULL, "more than %d of them", MAX_ROWS);
}

static bool read_pairs(contest_reader *r, number_pair_list *list, const char *expected)
{
	bool good = sw_json_enter_array(r->json);
	while (good && sw_json_next_item(r->json)) {
		number_pair p = {.place = sw_json_stream_place(r->json)};
		good = sw_json_take_ints(r->json, &r->numbers) && count_row(r, list->len);
		if (good && r->numbers.len != 2)
			return sw_json_stream_fail(r->json, NULL, "%zu numbers, expected two: %s",
			                           r->numbers.len, expected);
		if (!good)
			return false;
		p.first = r->numbers.data[0];
		p.second = r->numbers.data[1];
		sw_vec_push(list, p);
	}
	return good;
}

static bool mark_forbidden(contest_reader *r)
{
	int64_t least = 0;
	for (size_t i = 0; i < r->numbers.len; i++) {
		int64_t cost = r->numbers.data[i];
		least = SW_MIN(least, cost);
		r->numbers.data[i] = cost >= SW_CONTEST_FORBIDDEN ? SW_FORBIDDEN : cost;
	}
	return least >= -SW_CONTEST_FORBIDDEN ||
	       sw_json_stream_fail(r->json, NULL, "cost %lld is below -9e17: choose a larger unit",
	                           (long long)least);
}

static bool check_usages(contest_reader *r)
{
	int64_t least = 0;
	for (size_t i = 0; i < r->numbers.len; i++)
		least = SW_MIN(least, r->numbers.data[i]);
	return least >= 0 ||
	       sw_json_stream_fail(r->json, NULL, "usage %lld is negative, expected 0 or more",
	                           (long long)least);
}

static bool read_rows(contest_reader *r, number_row_list *list, bool (*check)(contest_reader *r))
{
	bool good = sw_json_enter_array(r->json);
	while (good && sw_json_next_item(r->json)) {
		number_row added = {.place = sw_json_stream_place(r->json)};
		good = sw_json_take_ints(r->json, &r->numbers) && count_row(r, list->len) &&
		       check(r);
		if (!good)
			return false;
		added.list =
			number_lists_intern(&r->lists, r->numbers.data, (int64_t)r->numbers.len);
		sw_vec_push(list, added);
	}
	return good;
}

/* ---- the parts of the text -------------------------------------------------------------- */

static bool read_intervals(contest_reader *r)
{
	return read_pairs(r, &r->intervals, "[begin, end]");
}

static bool read_node_costs(contest_reader *r)
{
	return read_rows(r, &r->costs, mark_forbidden);
}

static bool read_usages(contest_reader *r)
{
	return read_rows(r, &r->usages, check_usages);
}

static bool read_edge_nodes(contest_reader *r)
{
	return read_pairs(r, &r->ends, "[node, node]");
}

static bool read_edge_costs(contest_reader *r)
{
	return read_rows(r, &r->tables, mark_forbidden);
}

static bool read_nodes(contest_reader *r)
{
	static const contest_member members[] = {{"intervals", read_intervals, false},
	                                         {"costs", read_node_costs, false},
	                                         {"usages", read_usages, false}};
	r->nodes_place = sw_json_stream_place(r->json);
	return read_members(r, members, SW_COUNT(members));
}

static bool read_edges(contest_reader *r)
{
	static const contest_member members[] = {{"nodes", read_edge_nodes, false},
	                                         {"costs", read_edge_costs, false}};
	r->edges_place = sw_json_stream_place(r->json);
	return read_members(r, members, SW_COUNT(members));
}

static bool read_limit(contest_reader *r)
{
	if (sw_json_take_null(r->json))
		return true;
	if (!sw_json_take_int(r->json, &r->problem->capacity))
		return false;
	return r->problem->capacity >= 0 ||
	       sw_json_stream_fail(r->json, NULL,
	                           "%lld is negative, expected 0 or more, or null for no limit",
	                           (long long)r->problem->capacity);
}

static bool read_problem(contest_reader *r)
{
	static const contest_member members[] = {{"nodes", read_nodes, false},
	                                         {"edges", read_edges, false},
	                                         {"usage_limit", read_limit, true}};
	return read_members(r, members, SW_COUNT(members));
}

static bool read_document(contest_reader *r)
{
	static const contest_member members[] = {{"problem", read_problem, false}};
	return read_members(r, members, SW_COUNT(members)) && sw_json_finish(r->json);
}

/* ---- putting together ------------------------------------------------------------------- */

static const number_list *list_of(const contest_reader *r, const number_row *of)
{
	return &r->lists.lists.data[of->list];
}

static bool check_counts(contest_reader *r)
{
	size_t intervals = r->intervals.len, costs = r->costs.len, usages = r->usages.len;
	if (intervals != costs || usages != costs)
		return sw_json_stream_fail(
			r->json, &r->nodes_place,
			"problem.nodes: %zu intervals, %zu costs and %zu usages, expected equally "
			"many: one each per node",
			intervals, costs, usages);
	if (r->ends.len != r->tables.len)
		return sw_json_stream_fail(r->json, &r->edges_place,
		                           "problem.edges: %zu nodes and %zu costs, expected "
		                           "equally many: one each per edge",
		                           r->ends.len, r->tables.len);
	return true;
}

static bool add_node(contest_reader *r, size_t n)
{
	const number_row *costs = &r->costs.data[n], *usages = &r->usages.data[n];
	const number_list *cost = list_of(r, costs), *usage = list_of(r, usages);
	if (cost->count < 1 || cost->count > INT32_MAX)
		return sw_json_stream_fail(
			r->json, &costs->place,
			"problem.nodes.costs[%zu]: %lld strategies, expected at least one", n,
			(long long)cost->count);
	if (usage->count != cost->count)
		return sw_json_stream_fail(r->json, &usages->place,
		                           "problem.nodes.usages[%zu]: %lld usages, expected %lld: "
		                           "one per cost of the node",
		                           n, (long long)usage->count, (long long)cost->count);
	problem_adopt_node(r->problem, (int32_t)cost->count, cost->numbers);
	return true;
}

/* The points of an empty interval have no meaning, and are not checked. */
static bool add_interval(contest_reader *r, size_t n)
{
	const number_pair *interval = &r->intervals.data[n];
	if (interval->first >= interval->second)
		return true;
	if (interval->first < 0 || interval->second > INT32_MAX)
		return sw_json_stream_fail(
			r->json, &interval->place,
			"problem.nodes.intervals[%zu]: [%lld, %lld], expected points from 0 to "
			"2147483647",
			n, (long long)interval->first, (long long)interval->second);
	problem_adopt_span(r->problem, (int32_t)n, (int32_t)interval->first,
	                   (int32_t)interval->second, list_of(r, &r->usages.data[n])->numbers);
	return true;
}

static bool check_node(contest_reader *r, size_t e, int64_t node, const sw_json_place *place)
{
	return (node >= 0 && (size_t)node < r->problem->nodes.len) ||
	       sw_json_stream_fail(
		       r->json, place,
		       "problem.edges.nodes[%zu]: node %lld does not exist: there are %zu, counted "
		       "from 0",
		       e, (long long)node, r->problem->nodes.len);
}

/* Most lists have one shape only; then the table made last is the right one. */
static int32_t shape(contest_reader *r, number_list *list, int32_t rows, int32_t columns)
{
	if (list->table < 0 || r->problem->tables.data[list->table].rows != rows)
		list->table = problem_adopt_table(r->problem, rows, columns, list->numbers);
	return list->table;
}

static bool add_edge(contest_reader *r, size_t e)
{
	const number_pair *ends = &r->ends.data[e];
	const number_row *costs = &r->tables.data[e];
	if (!check_node(r, e, ends->first, &ends->place) ||
	    !check_node(r, e, ends->second, &ends->place))
		return false;
	int32_t from = (int32_t)ends->first, to = (int32_t)ends->second;
	int32_t rows = r->problem->nodes.data[from].strategies,
		columns = r->problem->nodes.data[to].strategies;
	number_list *list = &r->lists.lists.data[costs->list];
	if (list->count != (int64_t)rows * columns)
		return sw_json_stream_fail(
			r->json, &costs->place,
			"problem.edges.costs[%zu]: %lld costs, expected %lld: node %d has %d "
			"strategies, node %d has %d",
			e, (long long)list->count, (long long)rows * columns, from, rows, to,
			columns);
	sw_problem_add_edge(r->problem, from, to, shape(r, list, rows, columns));
	return true;
}

static bool put_together(contest_reader *r)
{
	bool good = check_counts(r);
	for (size_t n = 0; good && n < r->costs.len; n++)
		good = add_node(r, n) && add_interval(r, n);
	for (size_t e = 0; good && e < r->tables.len; e++)
		good = add_edge(r, e);
	return good;
}

/* ---- reading ---------------------------------------------------------------------------- */

static void reader_clear(contest_reader *r)
{
	number_lists_clear(&r->lists);
	sw_vec_clear(&r->numbers);
	sw_vec_clear(&r->intervals);
	sw_vec_clear(&r->ends);
	sw_vec_clear(&r->costs);
	sw_vec_clear(&r->usages);
	sw_vec_clear(&r->tables);
}

static sw_status read_source(sw_problem *problem, sw_source *source, bool quiet, sw_error *err)
{
	contest_reader r = {.problem = problem, .source = source};
	r.json = sw_json_stream_new(source, err);
	r.lists.arena = &problem->arena;
	sw_progress_start(&r.progress, "read", quiet);
	if (read_document(&r))
		put_together(&r);
	sw_progress_end(&r.progress);
	sw_status status = sw_json_stream_free(r.json);
	reader_clear(&r);
	if (status == SW_OK)
		status = sw_problem_check(problem, err);
	if (status)
		sw_problem_clear(problem);
	return status;
}

sw_status sw_problem_read(sw_problem *problem, const char *path, bool quiet, sw_error *err)
{
	sw_source *source;
	sw_problem_init(problem);
	sw_status status = sw_source_open(path, &source, err);
	if (status)
		return status;
	status = read_source(problem, source, quiet, err);
	sw_source_close(source);
	return sw_error_in_file(err, status, path);
}

sw_status sw_problem_parse(sw_problem *problem, const char *data, size_t length, sw_error *err)
{
	sw_source *source = sw_source_memory(data, length);
	sw_problem_init(problem);
	if (!source)
		return sw_fail(err, SW_ERR_IO, "not enough memory to unpack the gzip data");
	sw_status status = read_source(problem, source, true, err);
	sw_source_close(source);
	return status;
}
