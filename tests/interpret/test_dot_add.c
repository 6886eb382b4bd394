/* Fusions of a product and an addend give what the two ops give, of whole numbers: where the addend
 * dies, where it is read later, where it is the product's operand too, for little and large
 * products, with shapes in between, in an arena or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"
#include "interpret/kernel.h"

typedef struct dot_add_case {
	const char *name, *text; /* %s: the type */
	bool found;
} dot_add_case;

#define DOT(a, b, n)                                                                               \
	"dot(" a ", " b "), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT s = "          \
	"%s[" n "] add("
#define ENTRY(n) "ENTRY e { x = %s[" n "] parameter(0) y = %s[" n "] parameter(1) "
#define FUSED(n)                                                                                   \
	"HloModule m\nf { a = %s[" n "] parameter(0) b = %s[" n "] parameter(1) "                  \
	"c = %s[" n "] parameter(2) d = %s[" n "] " DOT("a", "b", n)
#define CALL "%s[40,40] fusion("

static const dot_add_case cases[] = {
	{"the addend dies",
         FUSED("40,40") "c, d) }\n" ENTRY("40,40") "z = %s[40,40] multiply(x, y) ROOT r = " CALL
                                                   "x, y, z), kind=kOutput, calls=f }",
         true},
	{"the addend is read later",
         FUSED("40,40") "d, c) }\n" ENTRY("40,40") "z = %s[40,40] multiply(x, y) r = " CALL
                                                   "x, y, z), kind=kOutput, calls=f ROOT q = "
                                                   "%s[40,40] subtract(r, z) }",
         true},
	{"the addend is an operand",
         FUSED("40,40") "d, c) }\n" ENTRY("40,40") "z = %s[40,40] multiply(x, y) ROOT r = " CALL
                                                   "x, z, z), kind=kOutput, calls=f }",
         true},
	{"the addend is an input",
         FUSED("40,40") "d, c) }\n" ENTRY("40,40") "ROOT r = " CALL
                                                   "x, x, y), kind=kOutput, calls=f }",
         true},
	{"little",
         FUSED("5,5") "c, d) }\n" ENTRY("5,5") "ROOT r = %s[5,5] fusion(x, y, x), "
                                               "kind=kOutput, calls=f }",
         true},
	{"the addend is the product's own operand",
         FUSED("5,5") "a, d) }\n" ENTRY("5,5") "ROOT r = %s[5,5] fusion(x, y, x), kind=kOutput, "
                                               "calls=f }",
         false},
	{"other shapes",
         "HloModule m\nf { a = %s[1,40,40] parameter(0) g = %s[40,40] reshape(a) "
         "b = %s[40,40] parameter(1) c = %s[40,40] parameter(2) d = %s[40,40] " DOT(
		 "g", "b", "40,40") "c, d) }\n" ENTRY("40,40") "w = %s[1,40,40] reshape(x) z = "
                                                               "%s[40,40] multiply(x, y) "
                                                               "ROOT r = " CALL
                                                               "w, y, z), kind=kOutput, calls=f }",
         true},
};

static void check(sw_status status, const sw_error *err, const char *name)
{
	if (status != SW_OK)
		fail_msg("%s: %s:%d:%d: %s", name, err->file, err->line, err->column, err->message);
}

static sw_program *read_case(const dot_add_case *c, const char *type)
{
	char text[2000], *to = text;
	sw_program *program;
	sw_error err = {0};
	for (const char *from = c->text; *from; from++) {
		if (strncmp(from, "%s", 2) == 0) {
			to += sprintf(to, "%s", type);
			from++;
		} else {
			*to++ = *from;
		}
	}
	check(sw_read_hlo(text, (size_t)(to - text), "test", &program, &err), &err, c->name);
	return program;
}

/* Run with inputs of small whole numbers. plain: the fusion's ops one by one. */
static void run_case(const dot_add_case *c, const sw_program *program, bool placed, bool plain,
                     double *out, int64_t n)
{
	sw_error err = {0};
	sw_interpreter *it;
	sw_tensor in[2], result;
	sw_placement *placement = placed ? sw_placement_new(program) : NULL;
	sw_interpret_options options = {.blas_threads = 2, .placement = placement};
	check(sw_interpreter_new(program, &options, &it, &err), &err, c->name);
	for (size_t k = 0; k < program->computations.len; k++)
		for (size_t i = 0; i < it->plans[k].n_ops; i++) {
			sw_plan_op *op = &it->plans[k].ops[i];
			if (plain && op->kernel.run == sw_kernel_dot_add)
				op->kernel = sw_kernels[SW_OP_FUSION];
		}
	for (uint32_t i = 0; i < 2; i++) {
		sw_shape shape = sw_value_shape(
			program,
			sw_op_at(program, sw_entry(program)->parameters.data[i])->first_result);
		if (placed)
			check(sw_interpreter_input(it, i, &in[i], &err), &err, c->name);
		else
			check(sw_tensor_new(shape, true, &in[i], &err), &err, c->name);
		for (int64_t e = 0; e < n; e++)
			sw_element_set(shape.type, sw_tensor_data(in[i]), e,
			               (double)((e * (3 + i) + e / 7) % 11) - 5);
	}
	check(sw_interpret(it, in, 2, &result, 1, &err), &err, c->name);
	for (int64_t e = 0; e < n; e++)
		out[e] = sw_element_get(result.shape.type, sw_tensor_data(result), e);
	sw_tensor_drop(&result);
	sw_interpreter_free(it);
	sw_placement_free(placement);
}

static bool has_kernel(const sw_program *program)
{
	sw_dot_add found;
	for (size_t i = 0; i < program->ops.len; i++)
		if (sw_dot_add_find(program, sw_op_at(program, (sw_id)i), &found))
			return true;
	return false;
}

static void sums_are_those_of_the_ops(void **state)
{
	(void)state;
	static double want[1600], got[1600];
	static const char *const types[] = {"f32", "f64"};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		for (int t = 0; t < 2; t++) {
			sw_program *program = read_case(&cases[i], types[t]);
			const sw_computation *entry = sw_entry(program);
			int64_t n =
				sw_shape_elements(sw_value_shape(program, entry->results.data[0]));
			assert_int_equal(has_kernel(program), cases[i].found);
			run_case(&cases[i], program, false, true, want, n);
			for (int placed = 0; placed < 2; placed++) {
				run_case(&cases[i], program, placed, false, got, n);
				if (memcmp(got, want, sizeof(double) * (size_t)n) != 0)
					fail_msg("%s, %s, %s", cases[i].name, types[t],
					         placed ? "in an arena" : "without an arena");
			}
			sw_program_free(program);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_those_of_the_ops)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
