/*
 * The strategies that rules allow: factor counts by op, positions of digits, strategies, cuts.
 */
#include "rules/brute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdio.h>

/* ---- no fewer factors than expected ----------------------------------------------------- */

typedef struct expectation {
	brute_variant *variants;
	sw_opcode opcode;
	int variant;
	int32_t parallel, reduced, linearities;
} expectation;

/* Variants are those of the samples; the comment names the op. */
static const expectation expectations[] = {
	{brute_elementwise, SW_OP_ADD, 1, 2, 0, 1},      /* f32[4,6] */
	{brute_elementwise, SW_OP_MULTIPLY, 4, 3, 0, 2}, /* f32[3,4,2] */
	{brute_elementwise, SW_OP_MULTIPLY, 3, 1, 0, 2}, /* f32[1,8] */
	{brute_elementwise, SW_OP_DIVIDE, 1, 2, 0, 1},   /* f32 */
	{brute_elementwise, SW_OP_DIVIDE, 6, 2, 0, 0},   /* s32 */
	{brute_elementwise, SW_OP_TANH, 1, 2, 0, 1},
	{brute_elementwise, SW_OP_SINE, 1, 2, 0, 0},
	/* f32: sum; max and min become each other */
	{brute_elementwise, SW_OP_NEGATE, 1, 2, 0, 2},
	{brute_elementwise, SW_OP_NEGATE, 6, 2, 0, 1},    /* s32: the least is its own negative */
	{brute_elementwise, SW_OP_ADD, 16, 2, 0, 2},      /* f32 + constant */
	{brute_elementwise, SW_OP_ADD, 20, 2, 0, 1},      /* f32 + infinity */
	{brute_elementwise, SW_OP_SUBTRACT, 17, 2, 0, 2}, /* constant - f32 */
	{brute_elementwise, SW_OP_COMPARE, 2, 1, 0, 0},   /* f32: NaN */
	{brute_elementwise, SW_OP_COMPARE, 8, 2, 0, 2},   /* s32 >= */
	{brute_elementwise, SW_OP_COMPARE, 6, 1, 0, 0},   /* s32 == */
	{brute_elementwise, SW_OP_MAXIMUM, 1, 2, 0, 3},   /* f32: both; either */
	{brute_elementwise, SW_OP_AND, 1, 2, 0, 3},       /* pred: both; either */
	{brute_elementwise, SW_OP_CLAMP, 4, 1, 0, 3},     /* each */
	{brute_elementwise, SW_OP_CONVERT, 0, 2, 0, 1},   /* f32 -> f64 */
	{brute_elementwise, SW_OP_CONVERT, 7, 2, 0, 1},   /* pred -> f32: or becomes max */
	{brute_elementwise, SW_OP_SELECT, 8, 1, 0, 1},    /* scalar predicate */
	/* f32[4,6], f32[4,3,2]: they share the 4 */
	{brute_elementwise, SW_OP_OPT_BARRIER, 1, 4, 0, 1},
	{brute_contract, SW_OP_DOT, 0, 2, 1, 2},         /* [4,6] x [6,8] */
	{brute_contract, SW_OP_DOT, 2, 3, 1, 2},         /* with a batch */
	{brute_contract, SW_OP_DOT, 8, 4, 1, 2},         /* two batches */
	{brute_contract, SW_OP_DOT, 4, 0, 2, 2},         /* two contractions */
	{brute_contract, SW_OP_CONVOLUTION, 0, 3, 1, 2}, /* batch, out, space, in */
	{brute_contract, SW_OP_CONVOLUTION, 1, 3, 1, 2}, /* strided */
	/* feature groups of one: batch, group, out, space */
	{brute_contract, SW_OP_CONVOLUTION, 2, 4, 0, 2},
	{brute_contract, SW_OP_CONVOLUTION, 3, 4, 1, 2}, /* batch groups: the same, in */
	/* a kernel as large as the input: batch, out, space */
	{brute_contract, SW_OP_CONVOLUTION, 4, 2, 1, 2},
	/* a batch of one: out, two of space, in */
	{brute_contract, SW_OP_CONVOLUTION, 8, 3, 1, 2},
	/* gradient of a kernel: out, in, two of space */
	{brute_contract, SW_OP_CONVOLUTION, 11, 2, 3, 2},
	{brute_reduce, SW_OP_REDUCE, 0, 1, 1, 1},
	{brute_reduce, SW_OP_REDUCE, 2, 0, 2, 1},
	{brute_reduce, SW_OP_REDUCE, 10, 2, 0, 0}, /* product */
	{brute_reduce, SW_OP_REDUCE, 14, 2, 0, 0}, /* arg-max */
	{brute_reduce, SW_OP_REDUCE, 17, 1, 1, 0}, /* two sums */
	{brute_reduce, SW_OP_REDUCE, 18, 2, 0, 0}, /* a sum and a product */
	{brute_reduce, SW_OP_SORT, 0, 1, 0, 0},
	{brute_reduce, SW_OP_TOPK, 0, 3, 0, 0},
	{brute_reduce, SW_OP_BATCH_NORM_TRAINING, 0, 1, 0, 0},
	{brute_reduce, SW_OP_BATCH_NORM_INFERENCE, 0, 3, 0, 0},
	{brute_window, SW_OP_REDUCE_WINDOW, 0, 3, 0, 1},  /* a running total */
	{brute_window, SW_OP_REDUCE_WINDOW, 1, 3, 0, 1},  /* a pool */
	{brute_window, SW_OP_REDUCE_WINDOW, 13, 1, 1, 1}, /* a pool of everything */
	{brute_window, SW_OP_REDUCE_WINDOW, 14, 0, 2, 1}, /* of everything, and strided */
	/* nearly everything, but by 3: its output */
	{brute_window, SW_OP_REDUCE_WINDOW, 15, 1, 0, 1},
	/* what may not commute, in two dimensions */
	{brute_window, SW_OP_REDUCE_WINDOW, 26, 1, 0, 0},
	{brute_window, SW_OP_SELECT_AND_SCATTER, 0, 3, 0, 1},
	{brute_window, SW_OP_SELECT_AND_SCATTER, 1, 2, 0, 1},  /* padded */
	{brute_window, SW_OP_SELECT_AND_SCATTER, 15, 0, 0, 1}, /* padded integers */
	{brute_shapes, SW_OP_BROADCAST, 1, 2, 0, 1},
	{brute_shapes, SW_OP_TRANSPOSE, 1, 3, 0, 1},
	{brute_shapes, SW_OP_RESHAPE, 0, 2, 0, 1}, /* [12] -> [3,4] */
	{brute_shapes, SW_OP_RESHAPE, 2, 1, 0, 1}, /* [6,4] -> [8,3]: only 24 = 2 * 12 is common */
	{brute_shapes, SW_OP_REVERSE, 0, 2, 0, 1},
	{brute_shapes, SW_OP_BITCAST, 0, 1, 0, 0},         /* u8[48] -> u32[12] */
	{brute_shapes, SW_OP_BITCAST_CONVERT, 2, 2, 0, 0}, /* u32[6,2] -> u16[6,2,2] */
	{brute_shapes, SW_OP_GET_DIMENSION_SIZE, 0, 2, 0, 0},
	{brute_affine, SW_OP_SLICE, 0, 1, 0, 1},
	{brute_affine, SW_OP_SLICE, 10, 0, 0, 1}, /* one element */
	{brute_affine, SW_OP_SLICE, 15, 1, 0, 1}, /* [1, 11) of 12: two blocks */
	{brute_affine, SW_OP_SLICE, 16, 2, 0, 1}, /* [2, 18) of 24: blocks over a digit of 2 */
	{brute_affine, SW_OP_PAD, 0, 1, 0, 1},
	{brute_affine, SW_OP_PAD, 17, 1, 0, 1}, /* a shift by one */
	{brute_affine, SW_OP_CONCATENATE, 2, 2, 0, 1},
	{brute_affine, SW_OP_CONCATENATE, 3, 1, 0, 1}, /* 3 and 1 */
	{brute_index, SW_OP_GATHER, 0, 2, 1, 1},       /* batch, row; indexed */
	{brute_index, SW_OP_GATHER, 3, 2, 1, 1},       /* batching dims */
	{brute_index, SW_OP_GATHER, 5, 1, 2, 1},       /* two indexed */
	{brute_index, SW_OP_GATHER, 7, 2, 1, 1},       /* a part of 3 of 8 */
	{brute_index, SW_OP_GATHER, 16, 1, 2, 1},      /* two parts */
	{brute_index, SW_OP_GATHER, 21, 1, 0, 1},      /* of the highest rank */
	{brute_index, SW_OP_SCATTER, 0, 2, 1, 0},      /* two operands, one monoid */
	{brute_index, SW_OP_SCATTER, 1, 2, 1, 1},      /* rows and indexed; updates */
	{brute_index, SW_OP_SCATTER, 3, 3, 0, 1},      /* batching dims */
	{brute_index, SW_OP_SCATTER, 6, 2, 0, 1},      /* overwrites */
	{brute_index, SW_OP_SCATTER, 16, 2, 1, 1},     /* two parts; updates */
	/* windows that overwrite, after their updates */
	{brute_index, SW_OP_SCATTER, 18, 2, 0, 1},
	{brute_index, SW_OP_SCATTER, 19, 1, 0, 1}, /* and before */
	{brute_index, SW_OP_DYNAMIC_SLICE, 0, 1, 1, 1},
	{brute_index, SW_OP_DYNAMIC_UPDATE_SLICE, 1, 2, 0, 1},
	{brute_source, SW_OP_IOTA, 1, 2, 0, 0},
	{brute_source, SW_OP_CONSTANT, 1, 2, 0, 0},
	{brute_linalg, SW_OP_TRIANGULAR_SOLVE, 0, 2, 0, 1},
	{brute_dots, SW_OP_RAGGED_DOT, 0, 2, 1, 2}, /* rows in groups; columns; contraction */
	{brute_dots, SW_OP_RAGGED_DOT, 2, 2, 1, 2}, /* contracted in groups */
	{brute_dots, SW_OP_RAGGED_DOT, 4, 3, 1, 2}, /* sizes for each batch */
	/* contraction: below both blocks, between, above */
	{brute_dots, SW_OP_SCALED_DOT, 0, 2, 3, 4},
	{brute_dots, SW_OP_SCALED_DOT, 2, 2, 0, 4}, /* blocks that do not nest */
	{brute_random, SW_OP_RNG_BIT_GENERATOR, 1, 3, 0, 0},
	{brute_elementwise, SW_OP_MAP, 0, 2, 0, 0},
};

static void rules_offer_what_the_definition_permits(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(expectations); i++) {
		const expectation *e = &expectations[i];
		brute_sample sample;
		sw_arena arena;
		int32_t n[2] = {0};

		brute_init(&sample);
		sw_arena_init(&arena);
		assert_true(e->variants(&sample, e->opcode, e->variant));
		const sw_rule *rule = sw_rule_make(sample.program, sample.op, &arena);
		for (int32_t f = 0; f < rule->n_factors; f++)
			n[rule->factors[f].kind == SW_FACTOR_REDUCED]++;
		if (n[0] != e->parallel || n[1] != e->reduced ||
		    rule->n_linearities != e->linearities || rule->missing) {
			sw_text text = {0};
			sw_rule_print(sample.program, sample.op, rule, &text);
			fprintf(stderr, "%s", text.data);
			sw_text_clear(&text);
			fail_msg("%s variant %d: expected %d parallel, %d reduced, %d linearities",
			         sw_opcode_name(e->opcode), e->variant, e->parallel, e->reduced,
			         e->linearities);
		}
		sw_arena_clear(&arena);
		brute_clear(&sample);
	}
}

/* ---- where digits lie ------------------------------------------------------------------- */

static void factor_at_and_dim_of_are_inverse(void **state)
{
	static const struct {
		brute_variant *variants;
		sw_opcode opcode;
	} rows[] = {{brute_contract, SW_OP_DOT}, {brute_shapes, SW_OP_RESHAPE},
	            {brute_affine, SW_OP_SLICE}, {brute_affine, SW_OP_PAD},
	            {brute_index, SW_OP_GATHER}, {brute_index, SW_OP_SCATTER}};
	int64_t checked = 0;
	(void)state;

	for (size_t i = 0; i < SW_COUNT(rows); i++)
		for (int variant = 0;; variant++) {
			brute_sample sample;
			sw_arena arena;
			brute_init(&sample);
			if (!rows[i].variants(&sample, rows[i].opcode, variant)) {
				brute_clear(&sample);
				break;
			}
			sw_arena_init(&arena);
			const sw_rule *rule = sw_rule_make(sample.program, sample.op, &arena);
			for (int32_t v = 0; v < rule->n_operands; v++) {
				sw_shape shape = sw_value_shape(sample.program, sample.operands[v]);
				for (int32_t d = 0; d < shape.rank; d++)
					for (int64_t top = 1; top <= shape.dims[d]; top++) {
						int32_t factor, dim;
						int64_t inner, back;
						if (!sw_rule_factor_at(rule, false, v, d, top,
						                       &factor, &inner))
							continue;
						assert_true(sw_rule_dim_of(rule, false, v, factor,
						                           inner, &dim, &back));
						assert_int_equal(dim, d);
						assert_int_equal(back, top);
						checked++;
					}
			}
			sw_arena_clear(&arena);
			brute_clear(&sample);
		}
	assert_true(checked > 100);
}

static void a_block_split_of_a_dot_is_found_from_any_side(void **state)
{
	brute_sample sample;
	sw_arena arena;
	sw_atoms atoms = {2, {2, 2}};
	sw_layout operands[2], result;
	(void)state;

	brute_init(&sample);
	sw_arena_init(&arena);
	assert_true(brute_contract(&sample, SW_OP_DOT, 0)); /* [4,6] x [6,8] */
	const sw_rule *rule = sw_rule_make(sample.program, sample.op, &arena);
	sw_strategy strategy = sw_strategy_none(&atoms), matched;
	int32_t factor, contracted;
	int64_t top;
	assert_true(sw_rule_factor_at(rule, true, 0, 1, 8, &factor, &top));
	assert_int_equal(top, 8);
	assert_false(sw_strategy_split(&atoms, rule, &strategy, 3, factor, 6));
	assert_true(sw_strategy_split(&atoms, rule, &strategy, 3, factor, top));
	assert_int_equal(sw_strategy_share(&atoms, &strategy), 4);
	sw_strategy uneven = sw_strategy_none(&atoms);
	assert_true(sw_rule_factor_at(rule, false, 0, 1, 6, &contracted, &top));
	uneven.atom[0] = (sw_choice){.kind = SW_CHOICE_SPLIT,
	                             .index = (int16_t)contracted,
	                             .stride = 2}; /* 4 does not divide 6 */
	assert_false(sw_rule_layouts(sample.program, sample.op, rule, &atoms, &uneven, operands,
	                             &result));
	assert_true(sw_rule_layouts(sample.program, sample.op, rule, &atoms, &strategy, operands,
	                            &result));
	assert_int_equal(result.state[0].stride, 4);
	assert_int_equal(result.state[1].stride, 2);
	assert_int_equal(operands[0].state[0].kind, SW_STATE_B);
	uint32_t mask = 3;
	sw_rule_match(rule, &atoms, false, 1, &operands[1], &mask, &matched);
	assert_int_equal(mask, 3);
	assert_true(sw_strategy_equal(&matched, &strategy));
	sw_arena_clear(&arena);
	brute_clear(&sample);
}

static void partial_results_match_the_reduced_factor(void **state)
{
	brute_sample sample;
	sw_arena arena;
	sw_atoms atoms = {3, {2, 2, 3}};
	sw_layout layout = sw_layout_replicated(&atoms), operands[2], result;
	sw_strategy strategy;
	uint32_t mask = 7;
	(void)state;

	brute_init(&sample);
	sw_arena_init(&arena);
	/* a contraction of 6, which has digits of 2 and 3 */
	assert_true(brute_contract(&sample, SW_OP_DOT, 0));
	const sw_rule *rule = sw_rule_make(sample.program, sample.op, &arena);
	for (int a = 0; a < 3; a++)
		layout.state[a] = (sw_state){.kind = SW_STATE_P};
	layout.monoid = SW_MONOID_SUM;
	sw_rule_match(rule, &atoms, true, 0, &layout, &mask, &strategy);
	assert_int_equal(mask, 7);
	assert_int_equal(strategy.atom[0].kind, SW_CHOICE_SPLIT);
	/* there is no second digit of 2 */
	assert_int_equal(strategy.atom[1].kind, SW_CHOICE_PASS);
	assert_int_equal(strategy.atom[2].kind, SW_CHOICE_SPLIT);
	assert_true(sw_rule_layouts(sample.program, sample.op, rule, &atoms, &strategy, operands,
	                            &result));
	assert_true(sw_layout_equal(&result, &layout));
	sw_arena_clear(&arena);
	brute_clear(&sample);
}

/* Only the opcode that the list does not know has no row. */
static void every_opcode_has_a_row(void **state)
{
	(void)state;
	for (int opcode = 0; opcode < SW_OPCODE_COUNT; opcode++)
		if (!sw_rule_row_of((sw_opcode)opcode) != (opcode == SW_OP_UNKNOWN))
			fail_msg("the row of %s", sw_opcode_name((sw_opcode)opcode));
}

static void unknown_opcodes_are_replicated_and_reported(void **state)
{
	brute_sample sample;
	sw_arena arena;
	(void)state;

	brute_init(&sample);
	sw_arena_init(&arena);
	brute_operand(&sample, "f32[4,6]", 0, 9);
	sw_attrs attrs = {.unknown = {.spelling = "something"}};
	brute_op(&sample, SW_OP_UNKNOWN, &attrs, "f32[4,6]");
	const sw_rule *rule = sw_rule_make(sample.program, sample.op, &arena);
	assert_true(rule->missing);
	assert_int_equal(rule->n_factors, 0);
	assert_string_equal(rule->whole, "no rule for something");
	sw_arena_clear(&arena);
	brute_clear(&sample);
}

/* ---- cuts ------------------------------------------------------------------------------- */

/* Cut the part that `layout` gives to the atoms of the mask out of the part that the other atoms
 * leave, on every device. */
static void check_cut(const sw_atoms *atoms, const sw_layout *layout, uint32_t mask)
{
	static const int64_t dims[2] = {24, 36};
	sw_shape whole = {.type = SW_S32, .rank = 2, .dims = dims};
	sw_layout before = *layout;
	int64_t before_dims[2], after_dims[2];
	sw_error err = {0};

	for (int32_t a = 0; a < atoms->n; a++)
		if (mask >> a & 1)
			before.state[a] = (sw_state){.kind = SW_STATE_B};
	sw_layout_local_dims(atoms, whole, &before, before_dims);
	sw_layout_local_dims(atoms, whole, layout, after_dims);
	sw_program *program = sw_program_new("cut");
	int32_t c = sw_build_computation(program, "main");
	sw_id x = sw_emit_parameter(program, c, sw_build_shape(program, SW_S32, before_dims, 2),
	                            NULL);
	sw_coordinates coordinates;
	sw_coordinates_init(&coordinates, program, c, atoms);
	x = sw_emit_cut(&coordinates, x, whole, layout, mask);
	sw_build_results(program, c, &x, 1, false);
	program->entry = c;
	assert_int_equal(sw_program_verify(program, &err), SW_OK);

	sw_tensor all, in, out, expected;
	assert_int_equal(sw_tensor_new(whole, true, &all, &err), SW_OK);
	for (int32_t i = 0; i < 24 * 36; i++)
		((int32_t *)sw_tensor_data(all))[i] = i;
	for (int64_t d = 0; d < sw_atoms_devices(atoms); d++) {
		sw_interpret_options options = {.partition_id = (uint32_t)d};
		sw_interpreter *interpreter;
		assert_int_equal(
			sw_tensor_new((sw_shape){.type = SW_S32, .rank = 2, .dims = before_dims},
		                      true, &in, &err),
			SW_OK);
		assert_int_equal(
			sw_tensor_new((sw_shape){.type = SW_S32, .rank = 2, .dims = after_dims},
		                      true, &expected, &err),
			SW_OK);
		sw_layout_cut(atoms, whole, &before, d, 4, sw_tensor_data(all), sw_tensor_data(in));
		sw_layout_cut(atoms, whole, layout, d, 4, sw_tensor_data(all),
		              sw_tensor_data(expected));
		assert_int_equal(sw_interpreter_new(program, &options, &interpreter, &err), SW_OK);
		assert_int_equal(sw_interpret(interpreter, &in, 1, &out, 1, &err), SW_OK);
		assert_int_equal(sw_tensor_compare(out, expected).first_bad, -1);
		sw_interpreter_free(interpreter);
		sw_tensor_drop(&out);
		sw_tensor_drop(&expected);
	}
	sw_tensor_drop(&all);
	sw_program_free(program);
}

static void cuts_agree_with_the_layout(void **state)
{
	sw_atoms atoms = {4, {2, 3, 2, 2}};
	int32_t at[4] = {0}, a;
	sw_state states[32] = {{.kind = SW_STATE_B}};
	int64_t checked = 0;
	int32_t n = 1;
	(void)state;

	static const int64_t strides[2][5] = {{12, 8, 4, 2, 1}, {18, 12, 6, 3, 1}};
	for (int8_t d = 0; d < 2; d++)
		for (int i = 0; i < 5; i++)
			states[n++] =
				(sw_state){.kind = SW_STATE_S, .dim = d, .stride = strides[d][i]};
	int64_t dims[2] = {24, 36};
	sw_shape whole = {.type = SW_S32, .rank = 2, .dims = dims};
	do {
		sw_layout layout = sw_layout_replicated(&atoms);
		for (a = 0; a < 4; a++)
			layout.state[a] = states[at[a]];
		if (sw_layout_valid(&atoms, whole, &layout) && ++checked % 7 == 0)
			for (uint32_t mask = 1; mask < 16; mask += 2)
				if ((sw_layout_split_atoms(&layout, -1) & mask) == mask)
					check_cut(&atoms, &layout, mask);
		for (a = 0; a < 4 && ++at[a] == n; a++)
			at[a] = 0;
	} while (a < 4);
	assert_true(checked > 500);
}

/* ---- texts ------------------------------------------------------------------------------ */

static void rules_and_strategies_print(void **state)
{
	brute_sample sample;
	sw_arena arena;
	sw_atoms atoms = {3, {2, 2, 3}};
	sw_text text = {0};
	(void)state;

	brute_init(&sample);
	sw_arena_init(&arena);
	assert_true(brute_contract(&sample, SW_OP_DOT, 0));
	const sw_rule *rule = sw_rule_make(sample.program, sample.op, &arena);
	sw_rule_print(sample.program, sample.op, rule, &text);
	assert_string_equal(text.data, "dot dot\n"
	                               "  f0 = 4 parallel\n"
	                               "  f1 = 8 parallel\n"
	                               "  f2 = 6 sum streams\n"
	                               "  operand 0 f32[4,6] [f0] [f2]\n"
	                               "  operand 1 f32[6,8] [f2] [f1]\n"
	                               "  result 0 f32[4,8] [f0] [f1]\n"
	                               "  passes {0} sum\n"
	                               "  passes {1} sum\n");
	sw_text_clear(&text);
	sw_strategy strategy = sw_strategy_none(&atoms);
	assert_true(sw_strategy_split(&atoms, rule, &strategy, 1, 0, 4));
	strategy.atom[2] = (sw_choice){.kind = SW_CHOICE_PASS, .monoid = SW_MONOID_SUM, .index = 1};
	sw_strategy_print(&atoms, rule, &strategy, &text);
	assert_string_equal(text.data, "[f0/2 - pass-sum{1}]");
	sw_text_clear(&text);
	sw_arena_clear(&arena);
	brute_clear(&sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_offer_what_the_definition_permits),
		cmocka_unit_test(factor_at_and_dim_of_are_inverse),
		cmocka_unit_test(a_block_split_of_a_dot_is_found_from_any_side),
		cmocka_unit_test(partial_results_match_the_reduced_factor),
		cmocka_unit_test(every_opcode_has_a_row),
		cmocka_unit_test(unknown_opcodes_are_replicated_and_reported),
		cmocka_unit_test(cuts_agree_with_the_layout),
		cmocka_unit_test(rules_and_strategies_print),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
