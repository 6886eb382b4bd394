#include "helpers.h"

#include <string.h>

static json_t *parse(const char *text)
{
	json_t *root = NULL;
	sw_error err = {0};
	sw_status status = sw_json_parse(text, strlen(text), &root, &err);
	if (status != SW_OK)
		fail_msg("%s", err.message);
	return root;
}

static void members_are_read_by_kind(void **state)
{
	(void)state;
	json_t *root =
		parse("{\"i\": -7, \"r\": 2.5, \"t\": \"text\", \"a\": [1, 2], \"o\": {\"x\": 1}}");
	int64_t i = 0;
	double r = 0, whole = 0;
	const char *t = NULL;
	json_t *a = NULL, *o = NULL;
	assert_int_equal(sw_json_get_int(root, "i", "", &i, NULL), SW_OK);
	assert_int_equal(i, -7);
	assert_int_equal(sw_json_get_real(root, "r", NULL, &r, NULL), SW_OK);
	assert_true(r == 2.5);
	assert_int_equal(sw_json_get_real(root, "i", "", &whole, NULL), SW_OK);
	assert_true(whole == -7);
	assert_int_equal(sw_json_get_text(root, "t", "", &t, NULL), SW_OK);
	assert_string_equal(t, "text");
	assert_int_equal(sw_json_get_array(root, "a", "", &a, NULL), SW_OK);
	assert_int_equal(json_array_size(a), 2);
	assert_int_equal(sw_json_get_object(root, "o", "", &o, NULL), SW_OK);
	assert_int_equal(json_object_size(o), 1);
	json_decref(root);
}

typedef enum kind { INT, REAL, TEXT, ARRAY, OBJECT } kind;

static sw_status get(kind what, const json_t *object, const char *key, const char *where,
                     sw_error *err)
{
	int64_t i;
	double r;
	const char *t;
	json_t *j;
	switch (what) {
	case INT:
		return sw_json_get_int(object, key, where, &i, err);
	case REAL:
		return sw_json_get_real(object, key, where, &r, err);
	case TEXT:
		return sw_json_get_text(object, key, where, &t, err);
	case ARRAY:
		return sw_json_get_array(object, key, where, &j, err);
	case OBJECT:
		return sw_json_get_object(object, key, where, &j, err);
	}
	return SW_ERR_INTERNAL;
}

static void wrong_members_are_named_with_their_path(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		kind what;
		const char *where, *message;
	} cases[] = {
		{"{}", INT, "", "k: missing, expected an integer"},
		{"{}", REAL, NULL, "k: missing, expected a number"},
		{"{}", TEXT, "inputs[3]", "inputs[3].k: missing, expected a string"},
		{"{}", ARRAY, "a.b", "a.b.k: missing, expected an array"},
		{"{}", OBJECT, "a", "a.k: missing, expected an object"},
		{"{\"k\": 2.5}", INT, "", "k: expected an integer, found a number with a fraction"},
		{"{\"k\": \"7\"}", INT, "a", "a.k: expected an integer, found a string"},
		{"{\"k\": true}", REAL, "a", "a.k: expected a number, found a boolean"},
		{"{\"k\": null}", TEXT, "a", "a.k: expected a string, found null"},
		{"{\"k\": {}}", ARRAY, "a", "a.k: expected an array, found an object"},
		{"{\"k\": []}", OBJECT, "a", "a.k: expected an object, found an array"},
		{"[1]", OBJECT, "a", "a: expected an object with \"k\", found an array"},
		{"[1]", INT, "", "top level: expected an object with \"k\", found an array"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		json_t *root = parse(cases[i].json);
		sw_error err = {0};
		sw_status status = get(cases[i].what, root, "k", cases[i].where, &err);
		assert_error(status, &err, SW_ERR_INPUT, 0, 0, "");
		assert_string_equal(err.message, cases[i].message);
		json_decref(root);
	}
}

static void null_is_not_an_object(void **state)
{
	(void)state;
	sw_error err;
	sw_status status = get(INT, NULL, "k", "a", &err);
	assert_error(status, &err, SW_ERR_INPUT, 0, 0,
	             "a: expected an object with \"k\", found nothing");
}

static void bad_json_is_named_with_its_place(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		int line, column;
		const char *message;
	} cases[] = {
		{"", 1, 1, "bad JSON: '[' or '{' expected near end of file"},
		{"{\n  \"a\": 1,\n  \"b\": }\n", 3, 8, "bad JSON: unexpected token near '}'"},
		{"{\"a\": 1, \"a\": 2}", 1, 12, "bad JSON: duplicate object key near '\"a\"'"},
		{"[1, 2", 1, 5, "bad JSON: ']' expected near end of file"},
		{"[1]\nx", 2, 1, "bad JSON: end of file expected near 'x'"},
		{"[123456789012345678901234567890]", 1, 31, "bad JSON: too big integer"},
		{"[\"\xff\"]", 1, 2, "bad JSON: unable to decode byte 0xff"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		json_t *root = NULL;
		sw_error err = {0};
		sw_status status = sw_json_parse(cases[i].json, strlen(cases[i].json), &root, &err);
		assert_error(status, &err, SW_ERR_INPUT, cases[i].line, cases[i].column,
		             cases[i].message);
		assert_null(root);
	}
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	enum { DEPTH = 200000 };
	char *text = sw_alloc(DEPTH);
	memset(text, '[', DEPTH);
	json_t *root = NULL;
	sw_error err;
	assert_int_equal(sw_json_parse(text, DEPTH, &root, &err), SW_ERR_INPUT);
	assert_contains(err.message, "maximum parsing depth reached");
	free(text);
}

static void a_file_is_named_in_its_errors(void **state)
{
	(void)state;
	json_t *root = NULL;
	sw_error err;
	scratch_write("good.json", "{\"a\": 1}", 8);
	assert_int_equal(sw_json_read(scratch_path("good.json"), &root, &err), SW_OK);
	assert_int_equal(json_integer_value(json_object_get(root, "a")), 1);
	json_decref(root);
	scratch_write("bad.json", "{\n]", 3);
	sw_status status = sw_json_read(scratch_path("bad.json"), &root, &err);
	assert_error(status, &err, SW_ERR_INPUT, 2, 1, "bad JSON: string or '}' expected near ']'");
	assert_string_equal(err.file, scratch_path("bad.json"));
	status = sw_json_read(scratch_path("none.json"), &root, &err);
	assert_error(status, &err, SW_ERR_IO, 0, 0, "cannot read: No such file or directory");
	assert_string_equal(err.file, scratch_path("none.json"));
}

static int remove_scratch(void **state)
{
	(void)state;
	scratch_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_read_by_kind),
		cmocka_unit_test(wrong_members_are_named_with_their_path),
		cmocka_unit_test(null_is_not_an_object),
		cmocka_unit_test(bad_json_is_named_with_its_place),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(a_file_is_named_in_its_errors),
	};
	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
