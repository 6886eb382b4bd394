/* Types, shapes, groups of ranks, opcodes, the table of attributes. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"
#include "program/helpers.h"
#include "test.h"

static void finds_every_type_by_its_name(void **state)
{
	(void)state;
	for (int t = 0; t < SW_TYPE_COUNT; t++) {
		sw_type found;
		const char *name = sw_type_name((sw_type)t);
		assert_true(sw_type_find(name, strlen(name), &found));
		assert_int_equal(found, t);
		assert_false(sw_type_find(name, strlen(name) - 1, &found) && found == (sw_type)t);
	}
	sw_type found;
	assert_false(sw_type_find("f33", 3, &found));
}

static void gives_bytes_of_types(void **state)
{
	(void)state;
	const struct {
		sw_type type;
		int64_t bytes;
	} cases[] = {
		{SW_PRED, 1},   {SW_S4, 1},    {SW_U1, 1},    {SW_F4E2M1FN, 1},
		{SW_F8E5M2, 1}, {SW_BF16, 2},  {SW_F32, 4},   {SW_S64, 8},
		{SW_C64, 8},    {SW_C128, 16}, {SW_TOKEN, 0},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		assert_int_equal(sw_type_bytes(cases[i].type), cases[i].bytes);
}

static void finds_every_opcode_by_its_name(void **state)
{
	(void)state;
	for (int o = 0; o < SW_OP_UNKNOWN; o++) {
		sw_opcode found;
		const char *name = sw_opcode_name((sw_opcode)o);
		assert_true(sw_opcode_find(name, strlen(name), &found));
		assert_int_equal(found, o);
	}
	sw_opcode found;
	assert_false(sw_opcode_find("?", 1, &found));
	assert_false(sw_opcode_find("adds", 4, &found));
	assert_int_equal(sw_opcode_operands(SW_OP_DOT), 2);
	assert_int_equal(sw_opcode_operands(SW_OP_CALL), SW_ANY);
	assert_int_equal(sw_opcode_class(SW_OP_WHILE), SW_CLASS_REGION);
}

static void prints_shapes(void **state)
{
	(void)state;
	const int64_t dims[] = {2, 30, 0};
	sw_text text = {0};
	sw_shape_print((sw_shape){.type = SW_BF16, .rank = 3, .bounded = 2, .dims = dims}, &text);
	sw_shape_print((sw_shape){.type = SW_PRED}, &text);
	assert_string_equal(text.data, "bf16[2,<=30,0]pred[]");
	assert_int_equal(sw_shape_elements((sw_shape){.type = SW_BF16, .rank = 2, .dims = dims}),
	                 60);
	assert_int_equal(sw_shape_bytes((sw_shape){.type = SW_BF16, .rank = 2, .dims = dims}), 120);
	assert_int_equal(sw_shape_bytes((sw_shape){.type = SW_F32}), 4);
	sw_text_clear(&text);
}

static void compares_shapes(void **state)
{
	(void)state;
	const int64_t a[] = {2, 3}, b[] = {2, 3}, c[] = {3, 2};
	sw_shape x = {.type = SW_F32, .rank = 2, .dims = a},
		 y = {.type = SW_F32, .rank = 2, .dims = b};
	assert_true(sw_shape_equal(x, y));
	y.dims = c;
	assert_false(sw_shape_equal(x, y));
	y.dims = b;
	y.bounded = 1;
	assert_false(sw_shape_equal(x, y));
}

typedef struct member_case {
	sw_groups groups;
	int64_t expected[8]; /* members of all groups in order */
} member_case;

static const int64_t listed[] = {0, 2, 1, 3};
static const member_case member_cases[] = {
	{{2, 2, listed, {0}, {0}}, {0, 2, 1, 3}},
	{{2, 4, NULL, LIST(8), {0}}, {0, 1, 2, 3, 4, 5, 6, 7}},
	{{4, 2, NULL, LIST(2, 4), LIST(1, 0)}, {0, 4, 1, 5, 2, 6, 3, 7}},
	{{2, 4, NULL, LIST(2, 2, 2), LIST(1, 0, 2)}, {0, 1, 4, 5, 2, 3, 6, 7}},
	{{4, 2, NULL, LIST(2, 2, 2), LIST(2, 1, 0)}, {0, 4, 2, 6, 1, 5, 3, 7}},
};

static void gives_members_of_groups(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(member_cases); i++) {
		const sw_groups *g = &member_cases[i].groups;
		for (int64_t k = 0; k < g->n_groups * g->group_size; k++)
			assert_int_equal(sw_groups_member(g, k / g->group_size, k % g->group_size),
			                 member_cases[i].expected[k]);
	}
	sw_groups all = {0};
	assert_int_equal(sw_groups_member(&all, 0, 5), 5);
}

static void counts_payload(void **state)
{
	(void)state;
	const struct {
		sw_opcode opcode;
		int64_t bytes, group, expected;
	} cases[] = {
		{SW_OP_ALL_GATHER, 100, 4, 300},         {SW_OP_REDUCE_SCATTER, 100, 4, 75},
		{SW_OP_ALL_REDUCE, 100, 4, 150},         {SW_OP_ALL_TO_ALL, 100, 4, 75},
		{SW_OP_REDUCE_SCATTER, 10, 3, 7},        {SW_OP_ALL_REDUCE, 10, 3, 14},
		{SW_OP_ALL_REDUCE, 100, 1, 0},           {SW_OP_ALL_GATHER, 100, 1, 0},
		{SW_OP_COLLECTIVE_PERMUTE, 100, 2, 100}, {SW_OP_ADD, 100, 4, 0},
		{SW_OP_ALL_REDUCE_DONE, 100, 4, 0},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		assert_int_equal(sw_collective_payload_bytes(cases[i].opcode, cases[i].bytes,
		                                             cases[i].group),
		                 cases[i].expected);
}

static void has_a_table_of_attributes(void **state)
{
	(void)state;
	const sw_attribute *row = sw_attribute_find(SW_OP_CONVOLUTION, "feature_group_count", 19);
	assert_non_null(row);
	assert_int_equal(row->kind, SW_ATTRIBUTE_INT);
	assert_null(sw_attribute_find(SW_OP_CONVOLUTION, "feature_group", 13));
	sw_attrs attrs;
	sw_attrs_init(SW_OP_CONVOLUTION, &attrs);
	assert_int_equal(attrs.convolution.feature_groups, 1);
	assert_int_equal(*(int64_t *)sw_attribute_member(row, &attrs), 1);
	sw_attrs_init(SW_OP_WHILE, &attrs);
	assert_int_equal(attrs.loop.trip_count, -1);
	sw_attrs_init(SW_OP_ALL_TO_ALL, &attrs);
	assert_int_equal(attrs.collective.dimension, -1);
	assert_true(sw_opcode_has_attrs(SW_OP_PARAMETER));
	assert_true(sw_opcode_has_attrs(SW_OP_ALL_REDUCE));
	assert_false(sw_opcode_has_attrs(SW_OP_CALL));
	assert_false(sw_opcode_has_attrs(SW_OP_ADD));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_type_by_its_name),
		cmocka_unit_test(gives_bytes_of_types),
		cmocka_unit_test(finds_every_opcode_by_its_name),
		cmocka_unit_test(prints_shapes),
		cmocka_unit_test(compares_shapes),
		cmocka_unit_test(gives_members_of_groups),
		cmocka_unit_test(counts_payload),
		cmocka_unit_test(has_a_table_of_attributes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
