/* StableHLO: the programs that JAX prints give what their HLO text gives; syntax; errors with their
 * places. */
#include "frontend/helpers.h"

#include <glob.h>
#include <string.h>

#include "program/shapes.h"
#include "rewrite/rewrite.h"

static sw_program *read_file(const char *path)
{
	sw_program *program = NULL;
	sw_error err = {0};
	if (sw_read_program(path, &program, &err) != SW_OK)
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
	return program;
}

static sw_program *canonical_of(const char *path)
{
	sw_program *program = read_file(path), *canonical = NULL;
	sw_error err = {0};
	if (sw_rewrite_canonical(program, &canonical, &err) != SW_OK)
		fail_msg("%s: %s", path, err.message);
	sw_program_free(program);
	return canonical;
}

/* Compare the ops of two canonical programs, in their order; attributes depend on the version of
 * JAX that wrote the text. Ids of canonical programs count ops and values in order. */
static void check_same_order(const char *name, const sw_program *a, const sw_program *b)
{
	assert_int_equal(a->ops.len, b->ops.len);
	for (sw_id i = 0; i < a->ops.len; i++) {
		const sw_op *x = sw_op_at(a, i), *y = sw_op_at(b, i);
		bool same = x->opcode == y->opcode && x->n_operands == y->n_operands &&
		            x->n_results == y->n_results && x->first_result == y->first_result;
		for (uint32_t k = 0; same && k < x->n_operands; k++)
			same = x->operands[k] == y->operands[k];
		for (uint32_t k = 0; same && k < x->n_results; k++)
			same = sw_shape_equal(sw_value_shape(a, x->first_result + k),
			                      sw_value_shape(b, y->first_result + k));
		if (!same)
			fail_msg("%s: '%s' in HLO, '%s' in StableHLO", name, x->name, y->name);
	}
}

/* Compare the forms that are planned: op by op, or how often each opcode occurs. */
static void check_alike(const char *name, const char *stablehlo, bool same_order)
{
	char hlo[128];
	snprintf(hlo, sizeof(hlo), "tests/programs/%s.hlo.gz", name);
	sw_program *a = canonical_of(hlo), *b = canonical_of(stablehlo);
	int64_t counts[SW_OPCODE_COUNT] = {0};
	for (sw_id i = 0; i < a->ops.len; i++)
		counts[a->ops.data[i].opcode]++;
	for (sw_id i = 0; i < b->ops.len; i++)
		counts[b->ops.data[i].opcode]--;
	for (size_t o = 0; o < SW_OPCODE_COUNT; o++)
		if (counts[o])
			fail_msg("%s: %lld more '%s' in HLO than in StableHLO", name,
			         (long long)counts[o], sw_opcode_name((sw_opcode)o));
	assert_int_equal(a->aliases.len, b->aliases.len);
	for (size_t i = 0; i < a->aliases.len; i++)
		assert_memory_equal(&a->aliases.data[i].output, &b->aliases.data[i].output, 8);
	if (same_order)
		check_same_order(name, a, b);
	sw_program_free(a);
	sw_program_free(b);
}

static void both_forms_are_planned_as_one_program(void **state)
{
	(void)state;
	static const char *const names[] = {"mlp",          "gpt-tiny",
	                                    "bert-tiny",    "vgg-tiny",
	                                    "lstm-lm-tiny", "moe-mixtral-tiny-scan"};
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		char path[128];
		snprintf(path, sizeof(path), "tests/frontend/stablehlo/%s.mlir.gz", names[i]);
		check_alike(names[i], path, true);
	}
	check_alike("mlp", "tests/frontend/stablehlo/mlp-generic.mlir.gz", true);
	check_alike("gpt-dropout-tiny", "tests/frontend/stablehlo/gpt-dropout-tiny.mlir.gz", false);
}

static void every_program_is_read(void **state)
{
	(void)state;
	glob_t found;
	assert_int_equal(glob("tests/frontend/stablehlo/*.mlir.gz", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		sw_program_free(read_file(found.gl_pathv[i]));
	globfree(&found);
}

/* ---- syntax ----------------------------------------------------------------------------- */

#define MODULE(arguments, body) "func.func public @main(" arguments ") {\n" body "}\n"

typedef struct good_case {
	const char *text;
	const char *printed; /* a part of the program's HLO text */
} good_case;

static const good_case good[] = {
	{MODULE("%a: tensor<2x3xf32>",
                "  %0 = stablehlo.add %a, %a : tensor<2x3xf32>\n  return %0 : tensor<2x3xf32>\n"),
         "f32[2,3] add(%a, %a)"},
	{MODULE("%a: tensor<f32>",
                "  %0 = \"stablehlo.abs\"(%a) : (tensor<f32>) -> tensor<f32> loc(\"x\")\n"
                "  \"func.return\"(%0) : (tensor<f32>) -> ()\n"),
         "f32[] abs(%a)"},
	{MODULE("%a: tensor<4xf32>",
                "  %0 = stablehlo.slice %a [0:4:2] : (tensor<4xf32>) -> tensor<2xf32>\n"
                "  return %0 : tensor<2xf32>\n"),
         "slice={[0:4:2]}"},
	/* elements in each of their forms */
	{MODULE("", "  %0 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf32>\n"
                    "  return %0 : tensor<2xf32>\n"),
         "constant({1.5, -2})"},
	{MODULE("", "  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
                    "  return %0 : tensor<f32>\n"),
         "constant(-inf)"},
	{MODULE("", "  %0 = stablehlo.constant dense<\"0x01000000FFFFFFFF\"> : tensor<2xi32>\n"
                    "  return %0 : tensor<2xi32>\n"),
         "constant({1, -1})"},
	{MODULE("", "  %0 = stablehlo.constant dense<\"0x05\"> : tensor<3xi1>\n"
                    "  return %0 : tensor<3xi1>\n"),
         "constant({true, false, true})"},
	{MODULE("", "  %0 = stablehlo.constant dense<(1.0,2.0)> : tensor<complex<f32>>\n"
                    "  return %0 : tensor<complex<f32>>\n"),
         "constant((1, 2))"},
	/* a branch and a loop use what they were not given */
	{MODULE("%p: tensor<i1>, %a: tensor<f32>",
                "  %0 = \"stablehlo.if\"(%p) ({\n    stablehlo.return %a : tensor<f32>\n  }, {\n"
                "    %1 = stablehlo.negate %a : tensor<f32>\n"
                "    stablehlo.return %1 : tensor<f32>\n"
                "  }) : (tensor<i1>) -> tensor<f32>\n  return %0 : tensor<f32>\n"),
         "conditional(%p"},
	{MODULE("%n: tensor<i32>, %a: tensor<f32>",
                "  %0 = stablehlo.while(%i = %a) : tensor<f32>\n  cond {\n"
                "    %1 = stablehlo.compare LT, %i, %a, FLOAT : (tensor<f32>, tensor<f32>) -> "
                "tensor<i1>\n    stablehlo.return %1 : tensor<i1>\n  } do {\n"
                "    %1 = stablehlo.add %i, %a : tensor<f32>\n"
                "    stablehlo.return %1 : tensor<f32>\n  }\n  return %0 : tensor<f32>\n"),
         "(f32[], f32[]) while("},
	/* ops that few programs have */
	{MODULE("%a: tensor<3x3xf32>",
                "  %0 = stablehlo.cholesky %a, lower = true : tensor<3x3xf32>\n"
                "  return %0 : tensor<3x3xf32>\n"),
         "cholesky(%a), lower=true"},
	{MODULE("%a: tensor<3x3xf32>, %b: tensor<3x1xf32>",
                "  %0 = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = true, lower = true, "
                "transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : "
                "(tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>\n"
                "  return %0 : tensor<3x1xf32>\n"),
         "triangular-solve(%a, %b), left_side=true, lower=true"},
	{MODULE("%a: tensor<2x3xf32>, %s: tensor<3xf32>",
                "  %0 = \"stablehlo.batch_norm_inference\"(%a, %s, %s, %s, %s) <{epsilon = "
                "1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, "
                "tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>\n"
                "  return %0 : tensor<2x3xf32>\n"),
         "epsilon=0.001, feature_index=1"},
	/* LAPACK's letters are kept */
	{MODULE("%a: tensor<3x3xf32>",
                "  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {backend_config = \"\", "
                "mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<3x3xf32>) -> "
                "(tensor<3x3xf32>, tensor<i32>)\n  return %0#0 : tensor<3x3xf32>\n"),
         "backend_config={uplo = 76 : ui8}"},
	/* a composite is its decomposition; a return of nothing has a location */
	{
		MODULE(
			"%a: tensor<2xf32>",
			"  %0 = stablehlo.composite \"chlo.f\" %a {composite_attributes = {k = 3 : "
                        "i64}, "
			"decomposition = @f, version = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32> "
			"loc(#loc)\n  call @g() : () -> () loc(#loc)\n  return %0 : "
                        "tensor<2xf32>\n") "\n"
					   "func.func private @f(%a: tensor<2xf32>) -> "
                                           "tensor<2xf32> {\n"
					   "  %0 = stablehlo.sine %a : tensor<2xf32>\n  return %0 "
                                           ": tensor<2xf32>\n}\n"
					   "func.func private @g() {\n  return loc(#loc)\n}\n",
		"f32[2] sine(%a)"},
	/* CHLO's functions become ops of HLO */
	{MODULE("%a: tensor<2xf32>", "  %0 = chlo.erf_inv %a : tensor<2xf32> -> tensor<2xf32>\n"
                                     "  return %0 : tensor<2xf32>\n"),
         "log-plus-one("},
	{MODULE("%a: tensor<2xbf16>", "  %0 = chlo.lgamma %a : tensor<2xbf16> -> tensor<2xbf16>\n"
                                      "  return %0 : tensor<2xbf16>\n"),
         "f32[2] convert(%a)"},
	{MODULE("%a: tensor<2xf32>", "  %0 = chlo.is_pos_inf %a : tensor<2xf32> -> tensor<2xi1>\n"
                                     "  return %0 : tensor<2xi1>\n"),
         "direction=EQ"},
	{MODULE("%a: tensor<complex<f32>>",
                "  %0 = chlo.conj %a : tensor<complex<f32>> -> tensor<complex<f32>>\n"
                "  %1 = chlo.atan %0 : tensor<complex<f32>> -> tensor<complex<f32>>\n"
                "  return %1 : tensor<complex<f32>>\n"),
         "c64[] atanh("},
	/* annotations of shardings become copies, or are counted */
	{"module @m attributes {mhlo.num_partitions = 2 : i32} {\n  sdy.mesh @mesh = <[\"x\"=2]>\n"
         "  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) "
         "-> tensor<4xf32> {\n"
         "    %0 = sdy.sharding_constraint %a <@mesh, [{\"x\"}]> : tensor<4xf32>\n"
         "    %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, "
         "[{\"x\"}]>]>} : tensor<4xf32>\n    return %1 : tensor<4xf32>\n  }\n}\n",
         "negate(%copy)"},
};

static void syntax_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(good); i++) {
		sw_program *program = NULL;
		sw_error err = {0};
		sw_text text = {0};
		if (sw_read_stablehlo(good[i].text, strlen(good[i].text), "f.mlir", &program,
		                      &err) != SW_OK)
			fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, good[i].text);
		sw_program_print(program, &text);
		if (!strstr(text.data, good[i].printed))
			fail_msg("expected '%s' in\n%s", good[i].printed, text.data);
		sw_text_clear(&text);
		sw_program_free(program);
	}
}

#define RETURN_A "  return %a : tensor<f32>\n"

typedef struct bad_case {
	const char *text;
	const char *message; /* its beginning */
	int line, column;
} bad_case;

static const bad_case bad[] = {
	{"module {\n}\n", "the module has no function", 1, 1},
	{MODULE("%a: tensor<?xf32>", ""), "a dimension of unknown size ('?') is not supported", 1,
         35},
	{MODULE("%a: tensor<f32>", "  return %b : tensor<f32>\n"), "'%b' is not defined above", 2,
         11},
	{MODULE("%a: tensor<f32>", "  %0 = stablehlo.add %a : tensor<f32>\n" RETURN_A),
         "stablehlo.add: add: expected 2 operands, found 1", 2, 8},
	{MODULE("%a: tensor<f32>", "  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n" RETURN_A),
         "call: there is no function f", 2, 8},
	{MODULE("%a: tensor<f32>",
                "  %0 = \"func.call\"(%a) : (tensor<f32>) -> tensor<f32>\n" RETURN_A),
         "func.call: the call says no function: expected callee = @NAME", 2, 8},
	{MODULE("%a: tensor<f32>",
                "  %0 = call @main(%a) : (tensor<f32>) -> tensor<f32>\n" RETURN_A),
         "call: the function main calls itself", 2, 8},
	{MODULE("%a: tensor<f32>", "  %0 = stablehlo.constant dense<[1.0]> : tensor<2xf32>\n"),
         "expected ','", 2, 37},
	{MODULE("%a: tensor<f32>", "  %0 = stablehlo.constant dense<256> : tensor<ui8>\n"),
         "this integer does not fit u8", 2, 33},
	{MODULE("%a: tensor<f32>", "  %0 = stablehlo.negate %a : tensor<f32>\n"),
         "this region does not end with a return", 2, 8},
	{MODULE("%a: tensor<f32>", "  %0 = sdy.manual_computation(%a) : (tensor<f32>) -> "
                                   "tensor<f32>\n" RETURN_A),
         "sdy.manual_computation: this program is already written for several devices", 2, 8},
	{MODULE("%a: tensor<f32>", "  %0:2 = stablehlo.negate %a : tensor<f32>\n" RETURN_A),
         "2 results are named, and 1 types given", 2, 10},
	{MODULE("%a: tensor<f32>", "  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : "
                                   "(tensor<f32>) -> tensor<2xf32>\n" RETURN_A),
         "stablehlo.broadcast_in_dim: expected 0 dimensions, found 1", 2, 8},
	{MODULE("%a: tensor<f16>", "  %0 = stablehlo.broadcast_in_dim %a, dims = [] : "
                                   "(tensor<f16>) -> tensor<2xf32>\n"),
         "stablehlo.broadcast_in_dim: the result has another element type", 2, 8},
	{MODULE("%a: tensor<f32>",
                "  %0 = \"an op\"(%a) : (tensor<f32>) -> tensor<f32>\n" RETURN_A),
         "expected the name of an op in this string", 2, 8},
	{MODULE("%a: tensor<f32>", "  %0 = tuple(%a) : (tensor<f32>) -> tensor<f32>\n" RETURN_A),
         "tuple: this op is not known", 2, 8},
	{MODULE("%a: tensor<f32>, %b: tensor<2xf32>",
                "  %0 = chlo.zeta %a, %b : tensor<f32>, tensor<2xf32> -> tensor<f32>\n" RETURN_A),
         "chlo.zeta: the operands have different types", 2, 8},
	{MODULE("%a: tensor<f32>",
                "  %0 = chlo.erf_inv %a, %a : tensor<f32>, tensor<f32> -> tensor<f32>\n" RETURN_A),
         "chlo.erf_inv: expected 1 operand, found 2", 2, 8},
	{MODULE("%a: tensor<f32>", "  %0 = chlo.is_inf %a : tensor<f32> -> tensor<f32>\n" RETURN_A),
         "chlo.is_inf: the result has another type than the operand", 2, 8},
	{MODULE("%a: tensor<f32>", "  %0 = stablehlo.negate %a -> : tensor<f32>\n" RETURN_A),
         "expected a part of this op", 2, 28},
	{MODULE("%a: tensor<f32>", "  %0 = stablehlo.add %a, %a : tensor<f32\n" RETURN_A),
         "expected '>'", 3, 3},
};

static void errors_name_their_places(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_program *program = NULL;
		sw_error err = {0};
		assert_int_equal(sw_read_stablehlo(bad[i].text, strlen(bad[i].text), "f.mlir",
		                                   &program, &err),
		                 SW_ERR_INPUT);
		if (strncmp(err.message, bad[i].message, strlen(bad[i].message)) != 0 ||
		    err.line != bad[i].line || err.column != bad[i].column)
			fail_msg("expected %d:%d: %s\n   found %d:%d: %s", bad[i].line,
			         bad[i].column, bad[i].message, err.line, err.column, err.message);
	}
}

/* Every prefix of a program is refused, or is a program. */
static void every_prefix_is_read_or_refused(void **state)
{
	(void)state;
	const char *text = good[SW_COUNT(good) - 2].text;
	for (size_t n = 0; n < strlen(text); n++) {
		sw_program *program = NULL;
		sw_error err = {0};
		if (sw_read_stablehlo(text, n, "f.mlir", &program, &err) == SW_OK)
			sw_program_free(program);
		else
			assert_true(err.message[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_are_planned_as_one_program),
		cmocka_unit_test(every_program_is_read),
		cmocka_unit_test(syntax_is_read),
		cmocka_unit_test(errors_name_their_places),
		cmocka_unit_test(every_prefix_is_read_or_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
