/* Sides and shapes as text: they read back, and what does not parse is named. */
#include "crossmesh/transfers.h"

#include <string.h>

#include "test.h"

static const struct {
	const char *shape, *text, *printed;
} good[] = {
	{"f32[8,6]", "S0R@2x2:0-3", "[S0 B]@2x2:0-3"},
	{"f32[8,6]", "S01R@2x2:0-3", "[S0 S0]@2x2:0-3"},
	{"f32[8,6]", "S10R@2x2:0-3", "[S0/2 S0/4]@2x2:0-3"},
	{"f32[8,6]", "RS0@3x1:0,2,4", "[S1 B]@3x1:0,2,4"},
	{"f32[8,6]", "RR@4-7", "[B]@4:4-7"},
	{"f32[8,6]", "RR@3", "[B]@1:3"},
	{"f32[8,6]", "RR@2x2:6,7,0-1", "[B B]@2x2:6-7,0-1"},
	{"f32[7,6]", "S0R@2x2:0-3", "[S0 B]@2x2:0-3"},
	{"f32[7,6]", "S0S1+P2@2x2x2:0-7", "[S0 S1 P(sum)]@2x2x2:0-7"},
	{"f32[7,6]", "RR+P10(max)@2x2:0-3", "[P(max) P(max)]@2x2:0-3"},
	{"f32[8,6]", "[S0/1 B]@2x2:0-3", "[S0/1 B]@2x2:0-3"},
	{"f32[7,6]", "[S0/1 P(min)]@2x2:0-3", "[S0/1 P(min)]@2x2:0-3"},
	{"f32[]", "@2:0-1", "[B]@2:0-1"},
	{"f32[]", "+P0@2:0-1", "[P(sum)]@2:0-1"},
	{"bf16[5]", "S0@8:0-7", "[S0]@8:0-7"},
	{"f32[0,6]", "S0R@2:0-1", "[S0 B]@2:0-1"},
};

static void sides_read_back(void **state)
{
	(void)state;
	sw_cluster cluster = plain_cluster(2, 4);
	for (size_t i = 0; i < SW_COUNT(good); i++) {
		sw_arena arena;
		sw_shape shape;
		sw_crossmesh_side side, again;
		sw_error err = {0};
		sw_text text = {0}, twice = {0};
		sw_arena_init(&arena);
		assert_int_equal(sw_crossmesh_parse_shape(good[i].shape, &arena, &shape, &err),
		                 SW_OK);
		if (sw_crossmesh_parse_side(good[i].text, shape, &cluster, &arena, &side, &err))
			fail_msg("%s: %s", good[i].text, err.message);
		sw_crossmesh_print_side(&side, shape, &text);
		if (good[i].shape[4] != '0')
			assert_string_equal(text.data, good[i].printed);
		assert_int_equal(
			sw_crossmesh_parse_side(text.data, shape, &cluster, &arena, &again, &err),
			SW_OK);
		sw_crossmesh_print_side(&again, shape, &twice);
		assert_string_equal(twice.data, text.data);
		assert_true(sw_layout_equal(&side.layout, &again.layout));
		for (int32_t d = 0; d < shape.rank; d++)
			assert_int_equal(side.dims[d], again.dims[d]);
		sw_text_clear(&text);
		sw_text_clear(&twice);
		sw_arena_clear(&arena);
	}
	sw_cluster_clear(&cluster);
}

static const struct {
	const char *text, *message;
} bad[] = {
	{"S0R", "\"S0R\": expected a layout, @ and a mesh, such as S0RR@2x4:0-7"},
	{"S0@2x2:0-3",
         "layout \"S0\", character 3: expected S or R for each dimension of the shape"},
	{"S0RR@2x2:0-3", "layout \"S0RR\", character 4: expected the end, or +P"},
	{"SRR@2x2:0-3", "character 2: expected the number of an axis of the mesh, as in S0"},
	{"S2R@2x2:0-3", "character 2: the mesh has no such axis"},
	{"S0S0@2x2:0-3", "character 4: this axis is used twice"},
	{"S0R+P0@2x2:0-3", "character 6: this axis is used twice"},
	{"S0R+P1(mean)@2x2:0-3", "expected (sum), (product), (max), (min), (and) or (or)"},
	{"S0R+P@2x2:0-3", "character 6: expected the number of an axis of the mesh"},
	{"XR@2x2:0-3", "character 1: expected S or R for each dimension"},
	{"[S0]@2x2:0-3", "layout \"[S0]\": fewer states than the cluster has atoms"},
	{"[S2 B]@2x2:0-3", "layout \"[S2 B]\": the tensor has no such dimension"},
	{"[S0/3 S0/2]@2x2:0-3", "the digits of a dimension overlap, or do not divide it"},
	{"RR@2x2:0-4", "mesh \"2x2:0-4\": the grid has 4 places for 5 devices"},
	{"RR@2x2:0", "mesh \"2x2:0\": the grid has 4 places for 1 device"},
	{"RR@2x2:6-9", "device 9 is beyond the cluster, whose devices are 0 to 7"},
	{"RR@2x2:0,1,1,2", "device 1 twice"},
	{"RR@2y2:0-3", "expected : and devices after the grid, such as 2x4:0-7"},
	{"RR@0x2:0-3", "expected sizes of axes, such as 2x4"},
	{"RR@2x2:", "expected devices, such as 0-7 or 0-2,4-6"},
	{"RR@2x2:3-", "expected a device after -, as in 0-7"},
	{"RR@2x2:3-0", "expected ranges that ascend"},
	{"RR@2x2:0-3;", "expected a comma or the end"},
	{"RR@99999999999999999999:0", "expected sizes of axes"},
	{"RR@2147483647x2147483647x2147483647:0-3", "places for 4 devices"},
	{"RR@", "expected devices"},
};

static void bad_sides_are_named(void **state)
{
	(void)state;
	sw_cluster cluster = plain_cluster(2, 4);
	sw_arena arena;
	sw_shape shape;
	sw_arena_init(&arena);
	assert_int_equal(sw_crossmesh_parse_shape("f32[8,6]", &arena, &shape, NULL), SW_OK);
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_crossmesh_side side;
		sw_error err = {0};
		assert_int_equal(
			sw_crossmesh_parse_side(bad[i].text, shape, &cluster, &arena, &side, &err),
			SW_ERR_INPUT);
		if (!strstr(err.message, bad[i].message))
			fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].text, err.message,
			         bad[i].message);
	}
	sw_arena_clear(&arena);
	sw_cluster_clear(&cluster);
}

static void bad_shapes_are_named(void **state)
{
	static const char *const shapes[] = {
		"",        "f32",      "f33[2]",    "f32[2",
		"f32[2]x", "f32[2,,]", "token[]",   "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
		"f32[-1]", "f32[2 3]", "f32[2,3],", "f32[4611686018427387904,4]"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(shapes); i++) {
		sw_arena arena;
		sw_shape shape;
		sw_error err = {0};
		sw_arena_init(&arena);
		if (sw_crossmesh_parse_shape(shapes[i], &arena, &shape, &err) != SW_ERR_INPUT)
			fail_msg("shape \"%s\" is taken", shapes[i]);
		assert_non_null(strstr(err.message, "expected"));
		sw_arena_clear(&arena);
	}
}

static void sides_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	static const char *const pairs[][3] = {
		{"RR@0-3", "RR@3-5", "the meshes overlap: device 3 is in both"},
		{"RR+P0@0-1", "RR+P0(max)@2-3",
	         "combined by sum and the target's by max: expected one of them"},
	};
	sw_cluster cluster = plain_cluster(2, 4);
	for (size_t i = 0; i < SW_COUNT(pairs); i++) {
		sw_arena arena;
		sw_shape shape;
		sw_crossmesh_side from, to;
		sw_crossmesh_plan *plan;
		sw_error err = {0};
		sw_crossmesh_options options = sw_crossmesh_defaults();
		sw_arena_init(&arena);
		assert_int_equal(sw_crossmesh_parse_shape("f32[8,6]", &arena, &shape, NULL), SW_OK);
		assert_int_equal(
			sw_crossmesh_parse_side(pairs[i][0], shape, &cluster, &arena, &from, &err),
			SW_OK);
		assert_int_equal(
			sw_crossmesh_parse_side(pairs[i][1], shape, &cluster, &arena, &to, &err),
			SW_OK);
		assert_int_equal(
			sw_crossmesh_plan_make(&cluster, &from, &to, shape, &options, &plan, &err),
			SW_ERR_INPUT);
		assert_non_null(strstr(err.message, pairs[i][2]));
		sw_arena_clear(&arena);
	}
	sw_cluster_clear(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sides_read_back),
		cmocka_unit_test(bad_sides_are_named),
		cmocka_unit_test(bad_shapes_are_named),
		cmocka_unit_test(sides_that_do_not_fit_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
