/* Printing: whole programs line by line, tuples made again where the text needs them,
 * attributes. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"
#include "program/helpers.h"
#include "test.h"

static sw_id parameter(sw_program *p, int32_t c, const char *shape, const char *name)
{
	return sw_emit_parameter(p, c, shape_of(p, shape), name);
}

static void expect_program(sw_program *p, const char *expected)
{
	sw_error err = {0};
	if (sw_program_verify(p, &err) != SW_OK)
		fail_msg("verify: %s", err.message);
	char *text = program_text(p);
	assert_string_equal(text, expected);
	free(text);
	sw_program_free(p);
}

static void prints_a_program(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("step");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = parameter(p, c, "f32[4,6]", "x"), zero = sw_emit_scalar(p, c, SW_F32, 0);
	const int64_t one[] = {1};
	sw_id sum = sw_emit_reduce(p, c, SW_MONOID_SUM, x, zero, one, 1);
	p->ops.data[p->values.data[sum].op].op_name = "jit(f)/\"sum\"";
	finish(p, c, sum);
	p->num_partitions = 8;
	expect_program(
		p,
		"HloModule step, entry_computation_layout={(f32[4,6])->f32[4]}, num_partitions=8\n"
		"\n"
		"%sum_f32 (x.1: f32[], y: f32[]) -> f32[] {\n"
		"  %x.1 = f32[] parameter(0)\n"
		"  %y = f32[] parameter(1)\n"
		"  ROOT %add = f32[] add(%x.1, %y)\n"
		"}\n"
		"\n"
		"ENTRY %main (x: f32[4,6]) -> f32[4] {\n"
		"  %x = f32[4,6] parameter(0)\n"
		"  %constant = f32[] constant(0)\n"
		"  ROOT %reduce = f32[4] reduce(%x, %constant), dimensions={1}, to_apply=%sum_f32, "
		"metadata={op_name=\"jit(f)/\\\"sum\\\"\"}\n"
		"}\n");
}

static void prints_state(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("step");
	int32_t c = sw_build_computation(p, "main");
	sw_id w = parameter(p, c, "f32[4]", "w"), g = parameter(p, c, "f32[4]", "g");
	sw_id results[2] = {g, sw_emit_binary(p, c, SW_OP_ADD, w, g)};
	sw_build_results(p, c, results, 2, true);
	p->entry = c;
	sw_alias alias = {1, 0, true};
	sw_vec_push(&p->aliases, alias);
	sw_vec_push(&p->donors, 1);
	expect_program(
		p,
		"HloModule step, input_output_alias={ {1}: (0, {}, must-alias) }, buffer_donor={ "
		"(1, {}) }, "
		"entry_computation_layout={(f32[4], f32[4])->(f32[4], f32[4])}\n"
		"\n"
		"ENTRY %main (w: f32[4], g: f32[4]) -> (f32[4], f32[4]) {\n"
		"  %w = f32[4] parameter(0)\n"
		"  %g = f32[4] parameter(1)\n"
		"  %add = f32[4] add(%w, %g)\n"
		"  ROOT %tuple.1 = (f32[4], f32[4]) tuple(%g, %add)\n"
		"}\n");
}

/* A while op takes a tuple and its elements are used; the tuple is used as a whole where no element
 * is used by itself. */
static void prints_a_loop(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("loop");
	int32_t called[2] = {computation_of(p, "true s32[] f32[4]"),
	                     computation_of(p, "pass s32[] f32[4]")};
	int32_t c = sw_build_computation(p, "main");
	sw_id carried[2] = {parameter(p, c, "s32[]", "i"), parameter(p, c, "f32[4]", "x")};
	sw_id first = add_op(p, c,
	                     (sw_op_spec){.opcode = SW_OP_WHILE,
	                                  .operands = carried,
	                                  .n_operands = 2,
	                                  .called = called,
	                                  .n_called = 2});
	sw_id whole[2] = {first, first + 1};
	first = add_op(p, c,
	               (sw_op_spec){.opcode = SW_OP_WHILE,
	                            .operands = whole,
	                            .n_operands = 2,
	                            .called = called,
	                            .n_called = 2});
	finish(p, c, first + 1);
	expect_program(
		p, "HloModule loop, entry_computation_layout={(s32[], f32[4])->f32[4]}\n"
		   "\n"
		   "%condition (parameter: (s32[], f32[4])) -> pred[] {\n"
		   "  %parameter = (s32[], f32[4]) parameter(0)\n"
		   "  ROOT %constant = pred[] constant(true)\n"
		   "}\n"
		   "\n"
		   "%pass (parameter.1: (s32[], f32[4])) -> (s32[], f32[4]) {\n"
		   "  ROOT %parameter.1 = (s32[], f32[4]) parameter(0)\n"
		   "}\n"
		   "\n"
		   "ENTRY %main (i: s32[], x: f32[4]) -> f32[4] {\n"
		   "  %i = s32[] parameter(0)\n"
		   "  %x = f32[4] parameter(1)\n"
		   "  %tuple.1 = (s32[], f32[4]) tuple(%i, %x)\n"
		   "  %while = (s32[], f32[4]) while(%tuple.1), condition=%condition, body=%pass\n"
		   "  %while.1 = (s32[], f32[4]) while(%while), condition=%condition, body=%pass\n"
		   "  ROOT %get-tuple-element.2 = f32[4] get-tuple-element(%while.1), index=1\n"
		   "}\n");
}

static void prints_branches(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("branch");
	int32_t called[2] = {computation_of(p, "pass f32[4]"), computation_of(p, "each f32[4]")};
	int32_t c = sw_build_computation(p, "main");
	sw_id pred = parameter(p, c, "pred[]", "p"), index = parameter(p, c, "s32[]", "i"),
	      x = parameter(p, c, "f32[4]", "x");
	sw_id on_pred[3] = {pred, x, x}, on_index[3] = {index, x, x};
	sw_op_spec spec = {.opcode = SW_OP_CONDITIONAL,
	                   .operands = on_pred,
	                   .n_operands = 3,
	                   .called = called,
	                   .n_called = 2};
	sw_id a = add_op(p, c, spec);
	spec.operands = on_index;
	sw_id b = add_op(p, c, spec);
	finish(p, c, sw_emit_binary(p, c, SW_OP_ADD, a, b));
	char *text = program_text(p);
	assert_contains(
		text, "  %tuple.2 = (f32[4]) tuple(%x)\n"
		      "  %conditional = (f32[4]) conditional(%p, %tuple.2, %x), "
		      "true_computation=%pass, false_computation=%each\n"
		      "  %get-tuple-element.3 = f32[4] get-tuple-element(%conditional), index=0\n");
	assert_contains(text,
	                "conditional(%i, %tuple.4, %x), branch_computations={%pass, %each}\n");
	assert_contains(text,
	                "ROOT %add = f32[4] add(%get-tuple-element.3, %get-tuple-element.5)\n");
	free(text);
	sw_program_free(p);
}

/* Callees come first in the text even if they were made later. */
static void prints_callees_first(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("order");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = parameter(p, c, "f32[4]", "x"), zero = sw_emit_scalar(p, c, SW_F32, 0);
	const int64_t dim[] = {0};
	finish(p, c, sw_emit_reduce(p, c, SW_MONOID_MAX, x, zero, dim, 1));
	char *text = program_text(p);
	assert_true(strstr(text, "%max_f32 (") < strstr(text, "ENTRY %main"));
	free(text);
	sw_program_free(p);
}

/* A name that the printer makes must differ from the names of all ops. */
static void made_names_are_unique(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("names");
	int32_t c = sw_build_computation(p, "main");
	sw_id x[2] = {parameter(p, c, "f32[4]", "tuple.1"), parameter(p, c, "f32[4]", "tuple.2")};
	sw_build_results(p, c, x, 2, true);
	p->entry = c;
	char *text = program_text(p);
	assert_contains(text, "ROOT %tuple.3 = (f32[4], f32[4]) tuple(%tuple.1, %tuple.2)\n");
	free(text);
	sw_program_free(p);
}

/* ---- single lines ----------------------------------------------------------------------- */

typedef struct line_case {
	sw_opcode opcode;
	const char *operands, *expected;
	sw_attrs attrs;
	const char *called, *declared;
} line_case;

#define CASE(name, shapes, text) .opcode = SW_OP_##name, .operands = shapes, .expected = text
#define WINDOW(...)                                                                                \
	{                                                                                          \
		sizeof((sw_window_dim[]){__VA_ARGS__}) / sizeof(sw_window_dim), (sw_window_dim[])  \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const line_case line_cases[] = {
	{CASE(COMPARE, "f32[2] f32[2]",
              "%op = pred[2] compare(%parameter, %parameter.1), direction=GE, type=TOTALORDER"),
         .attrs.compare = {SW_GE, "TOTALORDER"}},
	{CASE(PAD, "f32[2,3] f32[]",
              "%op = f32[4,4] pad(%parameter, %parameter.1), padding=1_1x-1_0_1"),
         .attrs.pad = {LIST(1, -1), LIST(1, 0), LIST(0, 1)}},
	{CASE(CONVOLUTION, "f32[2,9,9,3] f32[3,3,3,16]",
              "window={size=3x3 stride=2x1 pad=1_0x0_0 lhs_dilate=1x2 rhs_dilate=1x3 "
              "rhs_reversal=0x1}, "
              "dim_labels=b01f_01io->b01f"),
         .attrs.convolution = {.window =
                                       WINDOW({3, 2, 1, 0, 1, 1, false}, {3, 1, 0, 0, 2, 3, true}),
                               .output_feature = 3,
                               .input_feature = 3,
                               .kernel_input = 2,
                               .kernel_output = 3,
                               .input_spatial = LIST(1, 2),
                               .kernel_spatial = LIST(0, 1),
                               .output_spatial = LIST(1, 2),
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(CONVOLUTION, "f32[4,3] f32[3,16]",
              "convolution(%parameter, %parameter.1), dim_labels=bf_io->bf"),
         .attrs.convolution = {.output_feature = 1,
                               .input_feature = 1,
                               .kernel_output = 1,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(GATHER, "f32[64,32] s32[8,16,1]",
              "offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, "
              "slice_sizes={1,32}, indices_are_sorted=true"),
         .attrs.index = {.offset = LIST(2),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 2,
                         .slice_sizes = LIST(1, 32),
                         .sorted = true}},
	{CASE(SORT, "f32[2,3]", "sort(%parameter), dimensions={1}, is_stable=true, to_apply=%less"),
         .attrs.sort = {1, true}, .called = "less f32"},
	{CASE(TOPK, "f32[9]", "%op = (f32[3], s32[3]) topk(%parameter), k=3, largest=false"),
         .attrs.topk = {3, false}},
	{CASE(ALL_REDUCE, "f32[2]", "all-reduce(%parameter), replica_groups={}, to_apply=%sum_f32"),
         .called = "sum f32"},
	{CASE(ALL_GATHER, "f32[2]",
              "channel_id=3, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}"),
         .attrs.collective = {.groups = {4, 2, NULL, LIST(2, 4), LIST(1, 0)}, .channel = 3}},
	{CASE(COLLECTIVE_BROADCAST, "f32[2]", "replica_groups={{0,1,2},{3}}"),
         .attrs.collective = {.groups = {2, 3, (int64_t[]){0, 1, 2, 3, -1, -1}, {0}, {0}}}},
	{CASE(CUSTOM_CALL, "f32[2] f32[2] s32[]",
              "%op = f32[2] custom-call(%parameter, (%parameter.1, %parameter.2)), "
              "custom_call_target=\"a\\\"b\""),
         .attrs.custom = {"a\"b", NULL, LIST(-1, 2)}, .declared = "f32[2]"},
	{CASE(UNKNOWN, "f32[2]", "%op = f32[2] new-op(%parameter), called_computations={%negate}"),
         .attrs.unknown.spelling = "new-op", .declared = "f32[2]", .called = "negate f32"},
	{CASE(BATCH_NORM_INFERENCE, "f32[2,3] f32[3] f32[3] f32[3] f32[3]",
              "epsilon=0.001, feature_index=1"),
         .attrs.batch_norm = {1e-3, 1}},
	{CASE(FFT, "f32[4,8]", "fft(%parameter), fft_type=RFFT, fft_length={8}"),
         .attrs.fft = {"RFFT", LIST(8)}},
	{CASE(TRIANGULAR_SOLVE, "f32[3,3] f32[3,7]",
              "left_side=true, lower=true, transpose_a=NO_TRANSPOSE"),
         .attrs.triangular_solve = {true, true, false, "NO_TRANSPOSE"}},
	{CASE(OPT_BARRIER, "f32[2] s32[]",
              "%op = (f32[2], s32[]) opt-barrier((%parameter, %parameter.1))")},
	{CASE(REDUCE_WINDOW, "f32[9] f32[]", "window={size=9 pad=8_0}, to_apply=%sum_f32"),
         .attrs.window.window = WINDOW({9, 1, 8, 0, 1, 1, false}), .called = "sum f32"},
};

static void prints_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(line_cases); i++) {
		const line_case *k = &line_cases[i];
		sw_program *p = sw_program_new("test");
		int32_t c = sw_build_computation(p, "main"), called[2];
		sw_id operands[8];
		sw_shape declared[4];
		sw_op_spec spec = {.opcode = k->opcode,
		                   .name = "op",
		                   .operands = operands,
		                   .called = called,
		                   .attrs = &k->attrs};
		spec.n_operands = parameters_of(p, c, k->operands, operands, 8);
		spec.n_called = computations_of(p, k->called, called, 2);
		spec.n_results = shapes_of(p, k->declared, declared, 4);
		spec.shapes = k->declared ? declared : NULL;
		char *text = op_text(p, add_op(p, c, spec));
		assert_contains(text, k->expected);
		assert_null(strchr(text, '\n'));
		free(text);
		sw_program_free(p);
	}
}

static void prints_extras_and_control(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = parameter(p, c, "f32[4]", "x");
	sw_extra sharding = {"sharding", "{replicated}", NULL}, kind = {"kind", "kLoop", &sharding};
	sw_id y = add_op(
		p, c,
		(sw_op_spec){
			.opcode = SW_OP_NEGATE, .operands = &x, .n_operands = 1, .extras = &kind});
	const sw_id control[] = {p->values.data[x].op, SW_NO_ID};
	p->ops.data[p->values.data[y].op].control = control;
	char *text = op_text(p, y);
	assert_string_equal(text, "%negate = f32[4] negate(%x), kind=kLoop, sharding={replicated}, "
	                          "control-predecessors={%x}");
	free(text);
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prints_a_program),     cmocka_unit_test(prints_state),
		cmocka_unit_test(prints_a_loop),        cmocka_unit_test(prints_branches),
		cmocka_unit_test(prints_callees_first), cmocka_unit_test(made_names_are_unique),
		cmocka_unit_test(prints_lines),         cmocka_unit_test(prints_extras_and_control),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
