/* Layouts as values: equality, validity, splits, and their text. */
#include "layout/layouts.h"

#include <string.h>

#include "test.h"

static const struct {
	const char *atoms, *shape, *text;
} printed[] = {
	{"2,2", "4,6", "[B B]"},
	{"2,2", "4,6", "[S0 S0]"},
	{"2,2", "4,6", "[S0 S1]"},
	{"2,3", "12", "[S0 S0]"},
	{"2,3", "12", "[S0/2 S0/4]"}, /* the inner atom holds the major digit */
	{"2,3", "12", "[S0/1 B]"},
	{"2,3", "12", "[P(sum) S0]"},
	{"2,3", "12", "[O1 O2]"},
	{"2,3", "12", "[O0 S0]"},
	{"2,2,2", "8,8", "[P(max) S1/1 P(max)]"},
	{"2,2,2", "8", "[S0 S0 S0]"},
	{"2", "", "[B]"},
	{"", "4", "[]"},
};

static void text_reads_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(printed); i++) {
		int64_t dims[SW_MAX_RANK];
		sw_atoms atoms = parse_atoms(printed[i].atoms);
		sw_shape shape = parse_shape(printed[i].shape, dims);
		sw_layout layout;
		sw_error err;
		sw_text text = {0};
		assert_int_equal(sw_layout_parse(&atoms, shape, printed[i].text, &layout, &err),
		                 SW_OK);
		assert_true(sw_layout_valid(&atoms, shape, &layout));
		sw_layout_print(&atoms, shape, &layout, &text);
		assert_string_equal(text.data, printed[i].text);
		sw_text_clear(&text);
	}
}

static void every_layout_reads_back(void **state)
{
	static const char *const cases[][2] = {
		{"2,3,2", "12,4"}, {"2,2,2", "8,2"}, {"5,3", "5,3,15"}, {"3,2", "6"}};
	(void)state;
	for (size_t c = 0; c < SW_COUNT(cases); c++) {
		int64_t dims[SW_MAX_RANK];
		sw_atoms atoms = parse_atoms(cases[c][0]);
		sw_shape shape = parse_shape(cases[c][1], dims);
		layout_list all = {0};
		list_layouts(&atoms, shape, SW_MONOID_MIN, &all);
		for (size_t i = 0; i < all.len; i++) {
			sw_text text = {0};
			sw_layout again;
			sw_layout_print(&atoms, shape, &all.data[i], &text);
			assert_int_equal(sw_layout_parse(&atoms, shape, text.data, &again, NULL),
			                 SW_OK);
			assert_true(sw_layout_equal(&again, &all.data[i]));
			sw_text_clear(&text);
		}
		sw_vec_clear(&all);
	}
}

static const struct {
	const char *text, *message;
	int column;
} bad_texts[] = {
	{"S0 B", "expected [", 1},
	{"[S0]", "fewer states than the cluster has atoms", 4},
	{"[S0 B B]", "more states than the cluster has atoms", 7},
	{"[S0 B", "expected ] at the end", 6},
	{"[S0x B]", "expected a blank or ] after a state", 4},
	{"[S0 B] x", "expected nothing after ]", 8},
	{"[S B]", "expected the number of a dimension after S", 3},
	{"[S2 B]", "the tensor has no such dimension", 4},
	{"[S0/0 B]", "expected a stride of at least 1 after /", 6},
	{"[S0/ B]", "expected a stride of at least 1 after /", 5},
	{"[B S1/99999999999999999999]", "expected a stride of at least 1 after /", 25},
	{"[B S1]", "the dimension is not divisible by its atoms", 6},
	{"[X B]", "expected B, P(...), S with a dimension or O with a coordinate", 2},
	{"[P B]", "expected ( after P, as in P(sum)", 2},
	{"[O B]", "expected the owner's coordinate after O", 3},
	{"[O7 B]", "the atom has no such coordinate", 4},
	{"[P(mean) B]", "expected P(sum), P(product), P(max), P(min), P(and) or P(or)", 2},
	{"[P(sum) P(max)]", "all P of a layout have the same monoid", 9},
	{"[S0/1 S0/1]", "the digits of a dimension overlap, or do not divide it", 1},
	{"[S0/4 B]", "the digits of a dimension overlap, or do not divide it", 1},
};

static void bad_text_is_named(void **state)
{
	const int64_t dims[] = {12, 5};
	sw_atoms atoms = parse_atoms("2,2");
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bad_texts); i++) {
		sw_layout layout = sw_layout_replicated(&atoms);
		sw_error err = {0};
		char expected[512];
		assert_int_equal(sw_layout_parse(&atoms, make_shape(2, dims), bad_texts[i].text,
		                                 &layout, &err),
		                 SW_ERR_INPUT);
		snprintf(expected, sizeof(expected), "layout \"%s\": %s", bad_texts[i].text,
		         bad_texts[i].message);
		assert_string_equal(err.message, expected);
		assert_int_equal(err.column, bad_texts[i].column);
	}
}

/* ---- validity --------------------------------------------------------------------------- */

#define S(d, t)                                                                                    \
	{                                                                                          \
		SW_STATE_S, d, t                                                                   \
	}
#define B                                                                                          \
	{                                                                                          \
		SW_STATE_B, 0, 0                                                                   \
	}
#define P                                                                                          \
	{                                                                                          \
		SW_STATE_P, 0, 0                                                                   \
	}
static const struct {
	const char *atoms, *shape;
	sw_monoid monoid;
	sw_state state[3];
	bool valid;
} validity[] = {
	{"2,2", "4", SW_MONOID_NONE, {B, B}, true},
	{"2,2", "4", SW_MONOID_SUM, {B, B}, false},  /* a monoid and no P */
	{"2,2", "4", SW_MONOID_NONE, {P, B}, false}, /* a P and no monoid */
	{"2,2", "4", SW_MONOID_MAX, {P, P}, true},
	{"2,2", "4", SW_MONOID_NONE, {S(0, 2), S(0, 1)}, true},
	{"2,2", "4", SW_MONOID_NONE, {S(0, 1), S(0, 2)}, true},
	{"2,2", "4", SW_MONOID_NONE, {S(0, 2), S(0, 2)}, false}, /* the same digit twice */
	{"2,2", "4", SW_MONOID_NONE, {S(0, 4), B}, false},       /* beyond the extent */
	{"2,2", "4", SW_MONOID_NONE, {S(1, 1), B}, false},       /* no such dimension */
	{"2,2", "4", SW_MONOID_NONE, {S(-1, 1), B}, false},
	{"2,2", "4", SW_MONOID_NONE, {S(0, 0), B}, false},
	{"2,2", "4", SW_MONOID_NONE, {{SW_STATE_B, 1, 0}, B}, false}, /* not canonical */
	{"2,2", "4", SW_MONOID_NONE, {{SW_STATE_B, 0, 1}, B}, false},
	{"2,2", "4", SW_MONOID_NONE, {{4, 0, 0}, B}, false},
	{"2,2", "4", SW_MONOID_NONE, {{SW_STATE_O, 0, 1}, B}, true},
	{"2,2", "4", SW_MONOID_NONE, {{SW_STATE_O, 0, 2}, B}, false}, /* no such coordinate */
	{"2,2", "4", SW_MONOID_NONE, {{SW_STATE_O, 1, 1}, B}, false},
	{"2,3", "6", SW_MONOID_NONE, {S(0, 3), S(0, 1)}, true},
	{"2,3", "6", SW_MONOID_NONE, {S(0, 1), S(0, 2)}, true},
	{"2,3", "6", SW_MONOID_NONE, {S(0, 1), S(0, 1)}, false},
	{"2,3", "12", SW_MONOID_NONE, {S(0, 6), S(0, 2)}, true},
	{"2,3", "12", SW_MONOID_NONE, {S(0, 6), S(0, 1)}, true},
	{"2,3", "12", SW_MONOID_NONE, {S(0, 2), S(0, 1)}, false}, /* 3 does not divide 2 */
	{"2,3", "12", SW_MONOID_NONE, {S(0, 4), B}, false},       /* 8 does not divide 12 */
	{"2", "3", SW_MONOID_NONE, {S(0, 1)}, false},
	{"2", "0", SW_MONOID_NONE, {S(0, 1)}, false},
	{"2", "0", SW_MONOID_NONE, {B}, true},
};
#undef S
#undef B
#undef P

static void validity_follows_the_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(validity); i++) {
		int64_t dims[SW_MAX_RANK];
		sw_atoms atoms = parse_atoms(validity[i].atoms);
		sw_layout layout = {.monoid = validity[i].monoid, .n = atoms.n};
		memcpy(layout.state, validity[i].state, sizeof(validity[i].state));
		if (sw_layout_valid(&atoms, parse_shape(validity[i].shape, dims), &layout) !=
		    validity[i].valid)
			fail_msg("validity[%zu]", i);
	}
}

static void a_layout_for_other_atoms_is_not_valid(void **state)
{
	const int64_t dims[] = {4};
	sw_atoms two = parse_atoms("2,2"), three = parse_atoms("2,2,2");
	sw_layout layout = sw_layout_replicated(&two);
	(void)state;
	assert_true(sw_layout_valid(&two, make_shape(1, dims), &layout));
	assert_false(sw_layout_valid(&three, make_shape(1, dims), &layout));
}

/* ---- splits, equality ------------------------------------------------------------------- */

static void split_places_descending_digits(void **state)
{
	const int64_t dims[] = {24, 24};
	sw_atoms atoms = parse_atoms("2,3,2");
	sw_layout layout = sw_layout_replicated(&atoms), before = layout;
	sw_shape shape = make_shape(2, dims);
	(void)state;
	assert_true(sw_layout_split(&atoms, &layout, 5, 1, 24));
	assert_int_equal(layout.state[0].stride, 12);
	assert_int_equal(layout.state[2].stride, 6);
	assert_int_equal(layout.state[1].kind, SW_STATE_B);
	assert_true(sw_layout_split(&atoms, &layout, 2, 1, 6));
	assert_int_equal(layout.state[1].stride, 2);
	assert_true(sw_layout_valid(&atoms, shape, &layout));
	assert_int_equal(sw_layout_split_atoms(&layout, 1), 7);
	assert_int_equal(sw_layout_split_atoms(&layout, 0), 0);
	assert_int_equal(sw_layout_split_atoms(&layout, -1), 7);
	layout = before;
	assert_false(sw_layout_split(&atoms, &layout, 7, 0, 10));
	assert_true(sw_layout_equal(&layout, &before));
	assert_true(sw_layout_split(&atoms, &layout, 0, 0, 10));
}

/* A split that removes the last P removes the monoid too. */
static void split_keeps_the_form_canonical(void **state)
{
	const int64_t dims[] = {4};
	sw_atoms atoms = parse_atoms("2,2");
	sw_layout layout;
	(void)state;
	assert_int_equal(
		sw_layout_parse(&atoms, make_shape(1, dims), "[P(sum) P(sum)]", &layout, NULL),
		SW_OK);
	assert_int_equal(sw_layout_partial_atoms(&layout), 3);
	assert_true(sw_layout_split(&atoms, &layout, 1, 0, 4));
	assert_int_equal(layout.monoid, SW_MONOID_SUM);
	assert_true(sw_layout_split(&atoms, &layout, 2, 0, 2));
	assert_int_equal(layout.monoid, SW_MONOID_NONE);
	assert_true(sw_layout_valid(&atoms, make_shape(1, dims), &layout));
}

static void equal_layouts_have_equal_hashes_and_others_do_not(void **state)
{
	const int64_t dims[] = {12, 4};
	sw_atoms atoms = parse_atoms("2,3,2");
	layout_list all = {0};
	(void)state;
	list_layouts(&atoms, make_shape(2, dims), SW_MONOID_SUM, &all);
	for (size_t i = 0; i < all.len; i++) {
		sw_layout dirty;
		/* Struct padding and states of absent atoms must not count. */
		memset(&dirty, 0xa5, sizeof(dirty));
		dirty.monoid = all.data[i].monoid;
		dirty.n = all.data[i].n;
		for (int32_t a = 0; a < atoms.n; a++) {
			dirty.state[a].kind = all.data[i].state[a].kind;
			dirty.state[a].dim = all.data[i].state[a].dim;
			dirty.state[a].stride = all.data[i].state[a].stride;
		}
		assert_true(sw_layout_equal(&dirty, &all.data[i]));
		assert_true(sw_layout_hash(&dirty) == sw_layout_hash(&all.data[i]));
		for (size_t j = 0; j < i; j++) {
			assert_false(sw_layout_equal(&all.data[j], &all.data[i]));
			assert_true(sw_layout_hash(&all.data[j]) != sw_layout_hash(&all.data[i]));
		}
	}
	sw_vec_clear(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_reads_back),
		cmocka_unit_test(every_layout_reads_back),
		cmocka_unit_test(bad_text_is_named),
		cmocka_unit_test(validity_follows_the_rules),
		cmocka_unit_test(a_layout_for_other_atoms_is_not_valid),
		cmocka_unit_test(split_places_descending_digits),
		cmocka_unit_test(split_keeps_the_form_canonical),
		cmocka_unit_test(equal_layouts_have_equal_hashes_and_others_do_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
