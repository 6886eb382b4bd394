#include "helpers.h"

#include <string.h>

static sw_arena arena;

static const sw_yaml *parse(const char *text)
{
	const sw_yaml *root = NULL;
	sw_error err = {0};
	if (sw_yaml_parse(text, strlen(text), &arena, &root, &err) != SW_OK)
		fail_msg("%d:%d: %s", err.line, err.column, err.message);
	return root;
}

static void expect_scalar(const sw_yaml *node, const char *text, int line, int column)
{
	assert_non_null(node);
	assert_int_equal(node->kind, SW_YAML_SCALAR);
	assert_string_equal(node->text, text);
	assert_int_equal(node->line, line);
	assert_int_equal(node->column, column);
}

static void a_document_is_a_tree_with_places(void **state)
{
	(void)state;
	const sw_yaml *root = parse("# a cluster\n"
	                            "nodes: 4\n"
	                            "links:\n"
	                            "  - {name: nic, gbps: 200}\n"
	                            "  - name: \"nv link\"\n"
	                            "    gbps: 900\n"
	                            "empty:\n");
	assert_int_equal(root->kind, SW_YAML_MAPPING);
	assert_int_equal(root->count, 3);
	assert_int_equal(root->line, 2);
	expect_scalar(root->keys[1], "links", 3, 1);
	expect_scalar(sw_yaml_get(root, "nodes"), "4", 2, 8);
	expect_scalar(sw_yaml_get(root, "empty"), "", 7, 7);
	const sw_yaml *links = sw_yaml_get(root, "links");
	assert_int_equal(links->kind, SW_YAML_SEQUENCE);
	assert_int_equal(links->count, 2);
	assert_int_equal(links->line, 4);
	assert_int_equal(links->column, 3);
	expect_scalar(sw_yaml_get(links->items[0], "gbps"), "200", 4, 23);
	expect_scalar(sw_yaml_get(links->items[1], "name"), "nv link", 5, 11);
}

static void a_missing_key_is_null(void **state)
{
	(void)state;
	const sw_yaml *root = parse("a: [1]\n");
	assert_null(sw_yaml_get(root, "b"));
	assert_null(sw_yaml_get(sw_yaml_get(root, "a"), "b"));
	assert_null(sw_yaml_get(NULL, "b"));
}

static void other_roots_are_documents_too(void **state)
{
	(void)state;
	expect_scalar(parse("word\n"), "word", 1, 1);
	assert_int_equal(parse("[]")->count, 0);
	assert_int_equal(parse("{}")->count, 0);
	assert_int_equal(parse("--- [1, 2]\n...\n")->count, 2);
}

static void unsupported_syntax_is_named_with_its_place(void **state)
{
	(void)state;
	static const struct {
		const char *yaml;
		int line, column;
		const char *message;
	} cases[] = {
		{"", 1, 1, "the YAML document is empty"},
		{"# nothing\n", 2, 1, "the YAML document is empty"},
		{"a: 1\nb: 2\na: 3\n", 3, 1, "key \"a\" is given twice, first in line 1"},
		{"x:\n  - {k: 1, k: 2}\n", 2, 12, "key \"k\" is given twice, first in line 2"},
		{"a: &n 1\nb: *n\n", 1, 4, "anchors (&name) are not supported"},
		{"a: &n [1]\n", 1, 4, "anchors (&name) are not supported"},
		{"a: &n {b: 1}\n", 1, 4, "anchors (&name) are not supported"},
		{"a: 1\nb: *n\n", 2, 4, "aliases (*name) are not supported"},
		{"a: !!int 1\n", 1, 4, "tags (!name) are not supported"},
		{"a: !own [1]\n", 1, 4, "tags (!name) are not supported"},
		{"? [1]\n: 2\n", 1, 3, "a key must be a plain word"},
		{"{{a: 1}: 2}\n", 1, 2, "a key must be a plain word"},
		{"a: 1\n---\nb: 2\n", 2, 1, "expected one YAML document, found a second"},
		{"a: \"x\\0y\"\n", 1, 4, "a zero byte"},
		{"a: [1, 2\nb: 3\n", 2, 2, "bad YAML: did not find expected ',' or ']'"},
		{"a: 1\n  b: 2\n", 2, 4,
	         "bad YAML: mapping values are not allowed in this context"},
		{"a: \"x\n", 2, 1, "bad YAML: found unexpected end of stream"},
		{"\tx: 1\n", 1, 1, "bad YAML: found character that cannot start any token"},
		{"a: 1\nb: \xff\n", 2, 0, "bad YAML: invalid leading UTF-8 octet"},
		{"a: 1\nb: \x01\n", 2, 0, "bad YAML: control characters are not allowed"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		const sw_yaml *root = NULL;
		sw_error err = {0};
		sw_status status =
			sw_yaml_parse(cases[i].yaml, strlen(cases[i].yaml), &arena, &root, &err);
		assert_error(status, &err, SW_ERR_INPUT, cases[i].line, cases[i].column,
		             cases[i].message);
		assert_null(root);
	}
}

/* Parse nested lists with a word in the innermost: there are `depth` nodes from the root to the
 * word. */
static sw_status parse_nested(int depth, sw_error *err)
{
	sw_text text = {0};
	for (int i = 1; i < depth; i++)
		sw_text_add(&text, "[");
	sw_text_add(&text, "x");
	for (int i = 1; i < depth; i++)
		sw_text_add(&text, "]");
	const sw_yaml *root;
	sw_status status = sw_yaml_parse(text.data, text.len, &arena, &root, err);
	sw_text_clear(&text);
	return status;
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	sw_error err;
	assert_int_equal(parse_nested(64, &err), SW_OK);
	assert_error(parse_nested(65, &err), &err, SW_ERR_INPUT, 1, 65, "nested too deeply");
	assert_error(parse_nested(5000, &err), &err, SW_ERR_INPUT, 1, 65, "nested too deeply");
}

static void a_large_mapping_is_read_in_reasonable_time(void **state)
{
	(void)state;
	sw_text text = {0};
	for (int i = 0; i < 20000; i++)
		sw_text_addf(&text, "key%d: %d\n", i, i);
	assert_int_equal(parse(text.data)->count, 20000);
	sw_text_clear(&text);
}

static void a_file_is_named_in_its_errors(void **state)
{
	(void)state;
	const sw_yaml *root = NULL;
	sw_error err;
	scratch_write("good.yaml", "a: 1\n", 5);
	assert_int_equal(sw_yaml_read(scratch_path("good.yaml"), &arena, &root, &err), SW_OK);
	expect_scalar(sw_yaml_get(root, "a"), "1", 1, 4);
	scratch_write("bad.yaml", "a: 1\na: 2\n", 10);
	sw_status status = sw_yaml_read(scratch_path("bad.yaml"), &arena, &root, &err);
	assert_error(status, &err, SW_ERR_INPUT, 2, 1, "key \"a\" is given twice");
	assert_string_equal(err.file, scratch_path("bad.yaml"));
	status = sw_yaml_read(scratch_path("none.yaml"), &arena, &root, &err);
	assert_error(status, &err, SW_ERR_IO, 0, 0, "cannot read: No such file or directory");
	assert_string_equal(err.file, scratch_path("none.yaml"));
}

static int clear(void **state)
{
	(void)state;
	scratch_remove();
	sw_arena_clear(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_is_a_tree_with_places),
		cmocka_unit_test(a_missing_key_is_null),
		cmocka_unit_test(other_roots_are_documents_too),
		cmocka_unit_test(unsupported_syntax_is_named_with_its_place),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(a_large_mapping_is_read_in_reasonable_time),
		cmocka_unit_test(a_file_is_named_in_its_errors),
	};
	return cmocka_run_group_tests(tests, NULL, clear);
}
