/* Reading the contest's problems: good files, in any order; bad ones, with the place of the
 * error. */
#include "small_problems.h"
#include "test.h"

#include <string.h>
#include <zlib.h>

#include "solve/contest_problem.h"

static void read_file(sw_problem *problem, const char *name)
{
	char path[300];
	sw_error err;
	snprintf(path, sizeof(path), "%s/tests/problems/%s", SW_SOURCE_DIR, name);
	if (sw_problem_read(problem, path, true, &err) != SW_OK)
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
}

static void parse(sw_problem *problem, const char *text)
{
	sw_error err;
	if (sw_problem_parse(problem, text, strlen(text), &err) != SW_OK)
		fail_msg("%d:%d: %s", err.line, err.column, err.message);
}

/* ---- good files ------------------------------------------------------------------------- */

static void assert_numbers(const int64_t *numbers, const int64_t *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(numbers[i], expected[i]);
}

static void the_example_is_read_as_it_stands(void **state)
{
	(void)state;
	sw_problem p;
	read_file(&p, "example.json");
	assert_int_equal(p.nodes.len, 5);
	assert_int_equal(p.edges.len, 5);
	assert_int_equal(p.spans.len, 5);
	assert_int_equal(p.capacity, 50);
	assert_int_equal(p.points, 150);
	assert_int_equal(p.nodes.data[2].strategies, 3);
	assert_numbers(p.nodes.data[2].cost, (const int64_t[]){25, 45, 35}, 3);
	const sw_usage_span *span = &p.spans.data[3];
	assert_true(span->node == 3 && span->begin == 110 && span->end == 140);
	assert_numbers(span->usage, (const int64_t[]){10, 10}, 2);
	const sw_edge *edge = &p.edges.data[2];
	const sw_cost_table *table = &p.tables.data[edge->table];
	assert_true(edge->from == 1 && edge->to == 3 && table->rows == 2 && table->columns == 2);
	assert_numbers(table->cost, (const int64_t[]){90, 10, 20, 80}, 4);
	sw_problem_clear(&p);
}

static void the_solver_finds_the_optimum_of_small_files(void **state)
{
	(void)state;
	static const char *const names[] = {"example.json", "unordered.json", "infeasible.json",
	                                    "forbidden.json"};
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		sw_problem p;
		sw_solution solution;
		small_optimum optimum;
		const sw_solve_options options = {.quiet = true};
		read_file(&p, names[i]);
		small_problem_solve(&p, &optimum);
		assert_int_equal(sw_solve(&p, &options, &solution, NULL), SW_OK);
		assert_int_equal(solution.answer,
		                 optimum.feasible ? SW_SOLVED_OPTIMAL : SW_SOLVED_INFEASIBLE);
		assert_int_equal(optimum.feasible, i < 2);
		if (optimum.feasible)
			assert_int_equal(solution.cost, optimum.cost);
		sw_solution_clear(&solution);
		sw_problem_clear(&p);
	}
}

/* Loops, parallel edges, empty intervals, forbidden entries in all spellings, no limit, unknown
 * keys. */
static void every_feature_of_the_format_is_read(void **state)
{
	(void)state;
	sw_problem p;
	read_file(&p, "unordered.json");
	assert_int_equal(p.nodes.len, 3);
	assert_int_equal(p.capacity, INT64_MAX);
	assert_int_equal(p.spans.len, 1); /* the second span has no usage, the third is empty */
	assert_int_equal(p.points, 9);
	assert_numbers(p.nodes.data[1].cost, (const int64_t[]){3, SW_FORBIDDEN, 0}, 3);
	assert_int_equal(p.edges.data[0].from, p.edges.data[0].to);
	const int64_t *loop = p.tables.data[p.edges.data[0].table].cost,
		      *spellings = p.tables.data[p.edges.data[1].table].cost,
		      *last = p.tables.data[p.edges.data[3].table].cost;
	assert_numbers(loop, (const int64_t[]){0, SW_FORBIDDEN, SW_FORBIDDEN, 0}, 4);
	assert_numbers(spellings, (const int64_t[]){1, 2, 3, 4, 5, 6}, 6);
	assert_numbers(last, (const int64_t[]){-1, 0, 0, 1, 2, SW_FORBIDDEN}, 6);
	sw_problem_clear(&p);
}

/* Four edges with the same six numbers, of which two are 2 x 3 and two 3 x 2; two nodes with one
 * list. */
static void equal_lists_are_stored_once(void **state)
{
	(void)state;
	sw_problem p;
	parse(&p, "{\"problem\": {\"edges\": {\"costs\": "
	          "[[1,2,3,4,5,6],[1,2,3,4,5,6],[1,2,3,4,5,6],[1,2,3,4,5,6]],"
	          "\"nodes\": [[0,1],[1,0],[0,1],[1,2]]},"
	          "\"nodes\": {\"costs\": [[7,8],[1,1,1],[7,8]], \"usages\": [[7,8],[1,1,1],[0,0]],"
	          "\"intervals\": [[0,1],[0,1],[0,1]]}}}");
	assert_int_equal(p.tables.len, 2);
	assert_int_equal(p.edges.data[0].table, p.edges.data[2].table);
	assert_int_equal(p.edges.data[1].table, p.edges.data[3].table);
	assert_ptr_equal(p.tables.data[0].cost, p.tables.data[1].cost);
	assert_ptr_equal(p.nodes.data[0].cost, p.nodes.data[2].cost);
	assert_ptr_equal(p.nodes.data[0].cost, p.spans.data[0].usage);
	const int64_t same[6] = {1, 2, 3, 4, 5, 6};
	assert_int_equal(sw_problem_add_table(&p, 2, 3, same), p.edges.data[0].table);
	sw_problem_clear(&p);
}

static void assert_equal_problems(const sw_problem *a, const sw_problem *b)
{
	assert_int_equal(a->nodes.len, b->nodes.len);
	assert_int_equal(a->edges.len, b->edges.len);
	assert_int_equal(a->spans.len, b->spans.len);
	assert_int_equal(a->capacity, b->capacity);
	for (size_t n = 0; n < a->nodes.len; n++) {
		assert_int_equal(a->nodes.data[n].strategies, b->nodes.data[n].strategies);
		assert_numbers(a->nodes.data[n].cost, b->nodes.data[n].cost,
		               (size_t)a->nodes.data[n].strategies);
	}
	for (size_t e = 0; e < a->edges.len; e++) {
		const sw_cost_table *x = &a->tables.data[a->edges.data[e].table],
				    *y = &b->tables.data[b->edges.data[e].table];
		assert_int_equal(a->edges.data[e].from, b->edges.data[e].from);
		assert_int_equal(a->edges.data[e].to, b->edges.data[e].to);
		assert_true(x->rows == y->rows && x->columns == y->columns);
		assert_numbers(x->cost, y->cost, (size_t)x->rows * (size_t)x->columns);
	}
}

static const char *const node_parts[] = {
	"\"intervals\": [[0, 3], [2, 5], [4, 4]]",
	"\"costs\": [[1, 2], [3, 4, 5], [6]]",
	"\"usages\": [[1, 2], [3, 3, 3], [0]]",
};
static const char *const edge_parts[] = {
	"\"nodes\": [[0, 1], [1, 2]]",
	"\"costs\": [[0, 1, 2, 3, 4, 5], [7, 8, 9]]",
};

/* Write the parts in one of 6 x 2 x 6 orders. */
static void write_in_order(sw_text *text, int order)
{
	static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
	                                 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	const int *nodes = orders[order % 6], *top = orders[order / 12 % 6];
	char parts[3][200];
	snprintf(parts[0], sizeof(parts[0]), "\"nodes\": {%s, %s, %s}", node_parts[nodes[0]],
	         node_parts[nodes[1]], node_parts[nodes[2]]);
	snprintf(parts[1], sizeof(parts[1]), "\"edges\": {%s, %s}", edge_parts[order / 6 % 2],
	         edge_parts[1 - order / 6 % 2]);
	snprintf(parts[2], sizeof(parts[2]), "\"usage_limit\": 5");
	sw_text_addf(text, "{\"problem\": {%s, %s, %s}}", parts[top[0]], parts[top[1]],
	             parts[top[2]]);
}

static void keys_may_come_in_any_order(void **state)
{
	(void)state;
	sw_problem first, other;
	for (int order = 0; order < 72; order++) {
		sw_text text = {0};
		write_in_order(&text, order);
		parse(order ? &other : &first, text.data);
		sw_text_clear(&text);
		if (!order)
			continue;
		assert_equal_problems(&first, &other);
		sw_problem_clear(&other);
	}
	sw_problem_clear(&first);
}

static void the_instances_of_the_contest_have_their_sizes(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t nodes, edges, tables;
	} cases[] = {{"asplos-2025-iopddl-B.json.gz", 816, 1096, 402},
	             {"asplos-2025-iopddl-G.json.gz", 816, 1023, 448}};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_problem p;
		read_file(&p, cases[i].name);
		assert_int_equal(p.nodes.len, cases[i].nodes);
		assert_int_equal(p.edges.len, cases[i].edges);
		assert_int_equal(p.tables.len, cases[i].tables);
		assert_int_equal(p.capacity, 14392528);
		sw_problem_clear(&p);
	}
}

/* ---- bad files -------------------------------------------------------------------------- */

/* A good text in which one thing is replaced. */
static char *good_text_with(const char *from, const char *to)
{
	sw_text good = {0}, bad = {0};
	write_in_order(&good, 0);
	const char *at = strstr(good.data, from);
	if (!at)
		fail_msg("no %s in %s", from, good.data);
	sw_text_addf(&bad, "%.*s%s%s", (int)(at - good.data), good.data, to, at + strlen(from));
	sw_text_clear(&good);
	return bad.data;
}

static void expect_refusal(const char *text, size_t length, const char *words)
{
	sw_problem p;
	sw_error err = {0};
	sw_status status = sw_problem_parse(&p, text, length, &err);
	assert_int_equal(status, SW_ERR_INPUT);
	assert_int_equal(err.code, SW_ERR_INPUT);
	assert_int_equal(p.nodes.len, 0);
	if (!strstr(err.message, words))
		fail_msg("'%s' is missing in: %s", words, err.message);
}

/* A replacement in the good text, and words of the error. */
static const struct {
	const char *from, *to, *words;
} bad_files[] = {
	/* no JSON */
	{"{\"problem\"", "<html>", "expected an object, found '<'"},
	{"[3, 4, 5]", "[3, 4 5]", "problem.nodes.costs[1][1]: expected ',' or ']', found a number"},
	{"[3, 4, 5]", "[3, 4,, 5]", "problem.nodes.costs[1][2]: expected an integer, found ','"},
	{"5}}", "5}} {}", "expected the end of the text, found an object"},
	{"5}}", "5}", "problem: expected ',' or '}', found the end of the text"},
	{"5}}", "5, \"x\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
         "nested more than"},
	/* missing, twice, of another kind */
	{"\"problem\"", "\"Problem\"", "its \"problem\" is missing"},
	{"\"nodes\"", "\"knots\"", "problem: its \"nodes\" is missing"},
	{"\"edges\"", "\"hedges\"", "problem: its \"edges\" is missing"},
	{"\"intervals\"", "\"interval\"", "problem.nodes: its \"intervals\" is missing"},
	{"\"usages\"", "\"costs2\"", "problem.nodes: its \"usages\" is missing"},
	{"\"usages\"", "\"costs\"", "problem.nodes.costs: this key is there twice"},
	{"\"usage_limit\"", "\"edges\"", "problem.edges: this key is there twice"},
	{"[[0, 1], [1, 2]]", "{}", "problem.edges.nodes: expected an array, found an object"},
	{"[[0, 1], [1, 2]]", "[0, 1, 1, 2]",
         "problem.edges.nodes[0]: expected an array, found a number"},
	{"[3, 4, 5]", "[3, \"4\", 5]",
         "problem.nodes.costs[1][1]: expected an integer, found a string"},
	{"[3, 4, 5]", "null", "problem.nodes.costs[1]: expected an array, found null"},
	{"\"usage_limit\": 5", "\"usage_limit\": \"5\"",
         "problem.usage_limit: expected an integer"},
	/* ragged */
	{"[4, 4]]", "[4, 4], [5, 6]]", "problem.nodes: 4 intervals, 3 costs and 3 usages"},
	{", [6]]", "]", "problem.nodes: 3 intervals, 2 costs and 3 usages"},
	{"[[1, 2], [3, 3, 3], [0]]", "[]", "problem.nodes: 3 intervals, 3 costs and 0 usages"},
	{", [1, 2]]", "]", "problem.edges: 1 nodes and 2 costs"},
	{"[3, 3, 3]", "[3, 3]", "problem.nodes.usages[1]: 2 usages, expected 3"},
	{"[7, 8, 9]", "[7, 8]",
         "problem.edges.costs[1]: 2 costs, expected 3: node 1 has 3 strategies, node 2 has "
         "1"},
	{"[7, 8, 9]", "[]", "problem.edges.costs[1]: 0 costs, expected 3"},
	{"[4, 4]]", "[4, 4, 4]]",
         "problem.nodes.intervals[2]: 3 numbers, expected two: [begin, end]"},
	{"[[0, 1]", "[[0]", "problem.edges.nodes[0]: 1 numbers, expected two: [node, node]"},
	{", [6]]", ", []]", "problem.nodes.costs[2]: 0 strategies, expected at least one"},
	/* numbers */
	{"[[0, 1]", "[[0, 3]",
         "problem.edges.nodes[0]: node 3 does not exist: there are 3, counted from 0"},
	{"[[0, 1]", "[[-1, 1]", "problem.edges.nodes[0]: node -1 does not exist"},
	{"[3, 3, 3]", "[3, -3, 3]", "problem.nodes.usages[1]: usage -3 is negative"},
	{"[3, 4, 5]", "[3, 4, 5.5]",
         "problem.nodes.costs[1][2]: expected an integer, found a number with a fraction"},
	{"[3, 4, 5]", "[3, 4, 1e19]", "problem.nodes.costs[1][2]: this number is beyond 64 bits"},
	{"[3, 4, 5]", "[3, 9223372036854775808, 5]",
         "problem.nodes.costs[1][1]: this number is beyond 64 bits"},
	{"[3, 4, 5]", "[3, -9e17, -1e18]",
         "problem.nodes.costs[1]: cost -1000000000000000000 is below -9e17"},
	{"[3, 4, 5]", "[3, 4, NaN]", "problem.nodes.costs[1][2]: expected an integer, found 'N'"},
	{"[0, 3]", "[-1, 3]", "problem.nodes.intervals[0]: [-1, 3], expected points from 0"},
	{"[0, 3]", "[0, 2147483648]",
         "problem.nodes.intervals[0]: [0, 2147483648], expected points from 0"},
	{"\"usage_limit\": 5", "\"usage_limit\": -5", "problem.usage_limit: -5 is negative"},
};

static void a_bad_file_gives_one_clear_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bad_files); i++) {
		char *text = good_text_with(bad_files[i].from, bad_files[i].to);
		expect_refusal(text, strlen(text), bad_files[i].words);
		free(text);
	}
}

static void usages_that_sum_to_too_much_are_refused(void **state)
{
	(void)state;
	static const char text[] =
		"{\"problem\": {\"nodes\": {\"intervals\": [[0,1],[0,1]], \"costs\": [[1],[1]],"
		"\"usages\": [[1500000000000000000],[1500000000000000000]]},"
		"\"edges\": {\"nodes\": [], \"costs\": []}, \"usage_limit\": 9000000000000000000}}";
	expect_refusal(text, strlen(text), "sum to more than 2^61; choose a larger unit");
}

static void errors_have_the_line_and_the_column(void **state)
{
	(void)state;
	sw_problem p;
	sw_error err = {0};
	char path[300];
	static const char text[] =
		"{\"problem\": {\n"
		" \"edges\": {\"nodes\": [[0, 0]], \"costs\": [\n"
		"   [1, 2]]},\n"
		" \"nodes\": {\"intervals\": [[0, 1]], \"costs\": [[1]], \"usages\": [[1]]}}}";
	assert_int_equal(sw_problem_parse(&p, text, strlen(text), &err), SW_ERR_INPUT);
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 4);
	assert_string_equal(err.file, "");
	snprintf(path, sizeof(path), "%s/tests/problems/README.md", SW_SOURCE_DIR);
	assert_int_equal(sw_problem_read(&p, path, true, &err), SW_ERR_INPUT);
	assert_string_equal(err.file, path);
	assert_int_equal(sw_problem_read(&p, "no/such/file", true, &err), SW_ERR_IO);
	assert_string_equal(err.file, "no/such/file");
}

static void a_truncated_text_is_refused_at_every_length(void **state)
{
	(void)state;
	sw_text text = {0};
	write_in_order(&text, 17);
	for (size_t cut = 0; cut < text.len; cut++)
		expect_refusal(text.data, cut, "the");
	sw_text_clear(&text);
}

/* ---- gzip ------------------------------------------------------------------------------- */

static unsigned char *gzip(const char *text, size_t length, size_t *packed_length)
{
	z_stream stream = {.next_in = (Bytef *)text, .avail_in = (uInt)length};
	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
	                 Z_OK);
	size_t room = deflateBound(&stream, length) + 64;
	unsigned char *packed = malloc(room);
	stream.next_out = packed;
	stream.avail_out = (uInt)room;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	*packed_length = stream.total_out;
	deflateEnd(&stream);
	return packed;
}

static void gzip_is_recognised_by_its_bytes_and_may_have_several_members(void **state)
{
	(void)state;
	sw_text text = {0};
	sw_problem plain, packed;
	size_t first, second;
	write_in_order(&text, 0);
	unsigned char *a = gzip(text.data, 100, &first),
		      *b = gzip(text.data + 100, text.len - 100, &second);
	unsigned char *both = sw_alloc(first + second + 20);
	memcpy(both, a, first);
	memcpy(both + first, b, second);
	parse(&plain, text.data);
	for (size_t padding = 0; padding <= 20; padding += 20) {
		assert_int_equal(
			sw_problem_parse(&packed, (char *)both, first + second + padding, NULL),
			SW_OK);
		assert_equal_problems(&plain, &packed);
		sw_problem_clear(&packed);
	}
	both[first + second] = 'x';
	expect_refusal((char *)both, first + second + 1, "gzip data");
	sw_problem_clear(&plain);
	sw_text_clear(&text);
	free(a);
	free(b);
	free(both);
}

static void truncated_gzip_is_refused_at_every_length(void **state)
{
	(void)state;
	sw_text text = {0};
	size_t length;
	write_in_order(&text, 0);
	unsigned char *packed = gzip(text.data, text.len, &length);
	for (size_t cut = 0; cut < length; cut++)
		expect_refusal((char *)packed, cut,
		               cut < 2 ? "expected an object" : "truncated gzip data");
	for (size_t at = length - 8; at < length; at++) {
		packed[at] ^= 1;
		expect_refusal((char *)packed, length, "corrupt gzip data");
		packed[at] ^= 1;
	}
	free(packed);
	sw_text_clear(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_is_read_as_it_stands),
		cmocka_unit_test(the_solver_finds_the_optimum_of_small_files),
		cmocka_unit_test(every_feature_of_the_format_is_read),
		cmocka_unit_test(equal_lists_are_stored_once),
		cmocka_unit_test(keys_may_come_in_any_order),
		cmocka_unit_test(the_instances_of_the_contest_have_their_sizes),
		cmocka_unit_test(a_bad_file_gives_one_clear_line),
		cmocka_unit_test(usages_that_sum_to_too_much_are_refused),
		cmocka_unit_test(errors_have_the_line_and_the_column),
		cmocka_unit_test(a_truncated_text_is_refused_at_every_length),
		cmocka_unit_test(gzip_is_recognised_by_its_bytes_and_may_have_several_members),
		cmocka_unit_test(truncated_gzip_is_refused_at_every_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
