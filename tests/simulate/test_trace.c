/* Trace files are valid JSON whatever the names are; times are in microseconds; processes and
 * threads have names. */
#include "test.h"

#include "simulate/trace.h"

#include <string.h>
#include <unistd.h>

static const char *path(void)
{
	return SW_BINARY_DIR "/tests/simulate_trace.json";
}

static json_t *written(const sw_trace *trace)
{
	sw_error err;
	json_t *root;
	if (sw_trace_write(trace, "a \"title\"", path(), &err) != SW_OK ||
	    sw_json_read(path(), &root, &err) != SW_OK)
		fail_msg("%s: %s", err.file, err.message);
	unlink(path());
	return root;
}

/* Return the i-th event with this phase; NULL: there are no more. */
static const json_t *event(const json_t *root, const char *phase, size_t i)
{
	size_t k;
	const json_t *item, *events = json_object_get(root, "traceEvents");
	json_array_foreach(
		events, k,
		item) if (strcmp(json_string_value(json_object_get(item, "ph")), phase) == 0 &&
	                  i-- == 0) return item;
	return NULL;
}

static double number(const json_t *item, const char *key)
{
	return json_number_value(json_object_get(item, key));
}

static const char *text(const json_t *item, const char *key)
{
	return json_string_value(json_object_get(item, key));
}

static void an_event_has_its_place_time_and_bytes(void **state)
{
	(void)state;
	sw_trace trace = {0};
	sw_trace_add(&trace, &(sw_trace_event){3, SW_TRACK_COLLECTIVES, "ar", "all-reduce", 4096,
	                                       1.5e-3, 2.25e-3});
	sw_trace_add(&trace, &(sw_trace_event){3, SW_TRACK_KERNELS, "k", "dot", -1, 0, 1.5e-3});
	json_t *root = written(&trace);
	const json_t *e = event(root, "X", 0);
	assert_string_equal(text(e, "name"), "ar");
	assert_string_equal(text(e, "cat"), "all-reduce");
	assert_true(number(e, "pid") == 3 && number(e, "tid") == SW_TRACK_COLLECTIVES);
	assert_true(number(e, "ts") == 1500 && number(e, "dur") == 750);
	assert_true(number(json_object_get(e, "args"), "bytes") == 4096);
	assert_null(json_object_get(event(root, "X", 1), "args"));
	assert_null(event(root, "X", 2));
	assert_string_equal(text(json_object_get(event(root, "M", 0), "args"), "name"), "rank 3");
	assert_string_equal(text(json_object_get(event(root, "M", 3), "args"), "name"),
	                    "collectives");
	assert_null(event(root, "M", 5)); /* one rank: its name, its place and three threads */
	assert_string_equal(text(json_object_get(root, "otherData"), "title"), "a \"title\"");
	json_decref(root);
	sw_trace_clear(&trace);
}

static void any_name_is_valid_json(void **state)
{
	(void)state;
	static const struct {
		const char *name, *read;
	} cases[] = {
		{"a\"b\\c", "a\"b\\c"},
		{"line\nfeed\x01", "line\nfeed\x01"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"\xe6\x96\x87\xf0\x9f\x98\x80", "\xe6\x96\x87\xf0\x9f\x98\x80"},
		{"cut\xc3", "cut?"},
		{"\xff stray \x80", "? stray ?"},
		{"", ""},
	};
	sw_trace trace = {0};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		sw_trace_add(&trace, &(sw_trace_event){0, SW_TRACK_KERNELS, cases[i].name, "add",
		                                       -1, (double)i, (double)i + 1});
	json_t *root = written(&trace);
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		assert_string_equal(text(event(root, "X", i), "name"), cases[i].read);
	json_decref(root);
	sw_trace_clear(&trace);
}

static void disjoint_events_are_disjoint_in_the_file(void **state)
{
	(void)state;
	sw_trace trace = {0};
	double begin = 0;
	for (int i = 0; i < 1000; i++) {
		double end = begin + 1e-9 * sw_random_unit(1, 2, (uint64_t)i);
		sw_trace_add(&trace,
		             &(sw_trace_event){0, SW_TRACK_KERNELS, "k", "add", -1, begin, end});
		begin = end;
	}
	json_t *root = written(&trace);
	const json_t *events = json_object_get(root, "traceEvents"), *item;
	size_t k;
	long long last = 0;
	json_array_foreach(events, k, item)
	{
		if (strcmp(text(item, "ph"), "X") != 0)
			continue;
		long long ns = (long long)(number(item, "ts") * 1e3 + 0.5);
		assert_true(ns >= last);
		last = ns + (long long)(number(item, "dur") * 1e3 + 0.5);
	}
	assert_true(last > 400 && last < 600);
	json_decref(root);
	sw_trace_clear(&trace);
}

static void an_empty_trace_and_a_large_one_are_valid(void **state)
{
	(void)state;
	static const int sizes[] = {0, 20000};
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		sw_trace trace = {0};
		for (int k = 0; k < sizes[i]; k++)
			sw_trace_add(&trace, &(sw_trace_event){k % 4, SW_TRACK_WAITS, "wait",
			                                       "all-gather-done", k, k, k + 1});
		json_t *root = written(&trace);
		size_t metadata = sizes[i] ? 4 * 5 : 0;
		assert_int_equal(json_array_size(json_object_get(root, "traceEvents")),
		                 (size_t)sizes[i] + metadata);
		json_decref(root);
		sw_trace_clear(&trace);
	}
}

static void a_file_that_cannot_be_written_is_one_clear_line(void **state)
{
	(void)state;
	sw_trace trace = {0};
	sw_error err;
	assert_int_equal(sw_trace_write(&trace, "t", "/nowhere/trace.json", &err), SW_ERR_IO);
	assert_string_equal(err.message, "cannot write: No such file or directory");
	assert_string_equal(err.file, "/nowhere/trace.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_has_its_place_time_and_bytes),
		cmocka_unit_test(any_name_is_valid_json),
		cmocka_unit_test(disjoint_events_are_disjoint_in_the_file),
		cmocka_unit_test(an_empty_trace_and_a_large_one_are_valid),
		cmocka_unit_test(a_file_that_cannot_be_written_is_one_clear_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
