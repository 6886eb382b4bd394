/* Texts that are refused, and the place that the message points to. */
#include "frontend/helpers.h"

#include <string.h>

typedef struct error_case {
	const char *text;
	int line, column;
	const char *message;
} error_case;

static void check_all(const error_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_error(cases[i].text, cases[i].line, cases[i].column, cases[i].message);
}

#define M "HloModule m\n"

static void errors_in_the_frame(void **state)
{
	(void)state;
	static const error_case cases[] = {
		{"", 1, 1, "expected HloModule, found the end of the text"},
		{"  \n\n", 3, 1, "expected HloModule, found the end of the text"},
		{"HloModul m", 1, 1, "expected HloModule, found 'HloModul'"},
		{"HloModule", 1, 10, "expected the name of the module, found the end of the text"},
		{"HloModule m", 1, 12, "expected a computation, found the end of the text"},
		{"HloModule m, =3", 1, 14, "expected the name of an attribute, found '='"},
		{"HloModule m, num_partitions=0\n", 1, 29, "expected a count from 1, found 0"},
		{"HloModule m, num_partitions=x\n", 1, 29, "expected an integer, found 'x'"},
		{"HloModule m, num_partitions=9223372036854775808\n", 1, 29,
	         "the integer does not fit 64 bits"},
		{"HloModule m, a={(}\n", 1, 18, "expected ')', found '}'"},
		{"HloModule m, a={", 1, 16,
	         "expected '}' to close this bracket, found the end of the text"},
		{"HloModule m, a=\"x\n", 1, 16,
	         "expected \" to close this string, found the end of the text"},
		{M "FileNames\n1 x\n", 3, 3, "expected a string or '{', found 'x'"},
		{M "e {\n}\n", 3, 1, "expected an instruction, found '}'"},
		{M "e {\n  a = f32[] parameter(0)\n", 4, 1,
	         "expected an instruction or '}', found the end of the text"},
		{M "e (p: f32[]) f32[] {", 2, 14, "expected '->', found 'f32'"},
		{M "e (p: f32[]) -> f32[2] {\n ROOT p = f32[] parameter(0)\n}", 2, 17,
	         "the result of 'e' is not what its root has: give both the same shape"},
		{M "e {\n ROOT a = f32[] parameter(0)\n}\ne {\n ROOT a = f32[] parameter(0)\n}\n",
	         5, 1, "computation 'e' is defined twice"},
		{M "ENTRY e {\n ROOT a = f32[] parameter(0)\n}\nENTRY f {\n ROOT a = f32[] "
	           "parameter(0)\n}\n",
	         5, 7, "'f' is a second ENTRY"},
		{M "e {\n ROOT a = f32[] parameter(0)\n ROOT b = f32[] parameter(1)\n}\n", 4, 2,
	         "a second ROOT in this computation"},
		{M "e {\n a = f32[] parameter(0)\n b = f32[] parameter(2)\n}\n", 2, 1,
	         "computation 'e' has no parameter 1"},
		{M "e {\n a = f32[] parameter(0)\n b = f32[] parameter(0)\n}\n", 4, 22,
	         "parameter 0 stands twice in this computation"},
		{M "e {\n a = f32[] parameter(-1)\n}\n", 3, 22,
	         "expected the number of a parameter, from 0 to 99999"},
		{M "\x01", 2, 1, "expected a computation, found the byte 0x01"},
	};
	check_all(cases, SW_COUNT(cases));
}

static void errors_in_aliases(void **state)
{
	(void)state;
#define BODY                                                                                       \
	"\ne {\n a = f32[] parameter(0)\n b = (f32[], f32[]) parameter(1)\n ROOT r = (f32[]) "     \
	"tuple(a)\n}\n"
	static const error_case cases[] = {
		{"HloModule m, input_output_alias={ {0}: (0, {}, may-alias) " BODY, 2, 1,
	         "expected ',' or '}', found 'e'"},
		{"HloModule m, input_output_alias={ {0}: (0, {}, perhaps) }" BODY, 1, 48,
	         "expected may-alias or must-alias, found 'perhaps'"},
		{"HloModule m, input_output_alias={ {0}: (2, {}, may-alias) }" BODY, 1, 35,
	         "the entry has no parameter 2"},
		{"HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }" BODY, 1, 35,
	         "no array of the result is at this place"},
		{"HloModule m, input_output_alias={ {}: (0, {}, may-alias) }" BODY, 1, 35,
	         "no array of the result is at this place"},
		{"HloModule m, input_output_alias={ {0}: (0, {}), {0}: (1, {2}) }" BODY, 1, 49,
	         "no array of parameter 1 is at this place"},
		{"HloModule m, input_output_alias={ {0}: (0, {}), {0}: (1, {0}) }" BODY, 1, 49,
	         "this output has an alias already"},
		{"HloModule m, buffer_donor={ (1, {}) }" BODY, 1, 29,
	         "no array of parameter 1 is at this place"},
	};
	check_error(
		"HloModule m, input_output_alias={ {}: (0, {}) }\ne {\n a = f32[2] parameter(0)\n"
		" ROOT b = f32[1] slice(a), slice={[0:1]}\n}\n",
		1, 35, "the sizes of this output and this input differ");
#undef BODY
	check_all(cases, SW_COUNT(cases));
}

#define E M "e {\n a = f32[2] parameter(0)\n "

static void errors_in_instructions(void **state)
{
	(void)state;
	static const error_case cases[] = {
		{E "b f32[2] negate(a)\n}", 4, 4, "expected '=', found 'f32'"},
		{E "b = f31[2] negate(a)\n}", 4, 6,
	         "expected a shape such as f32[2,3], found 'f31'"},
		{E "b = f32 negate(a)\n}", 4, 10, "expected '[', found 'negate'"},
		{E "b = f32[2 negate(a)\n}", 4, 12, "expected ',' or ']', found 'negate'"},
		{E "b = f32[-2] negate(a)\n}", 4, 10, "expected a size, found -2"},
		{E "b = f32[?] negate(a)\n}", 4, 10,
	         "a dimension of unknown size ('?') is not supported"},
		{E "b = f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] negate(a)\n}", 4, 42,
	         "the shape has more than 16 dimensions"},
		{E "b = f32[4000000000,4000000000] negate(a)\n}", 4, 6,
	         "the size of this shape in bytes does not fit 63 bits"},
		{E "b = (f32[2] negate(a)\n}", 4, 14, "expected ',' or ')', found 'negate'"},
		{E "b = f32[2]{1,(0} negate(a)\n}", 4, 17, "expected ')', found '}'"},
		{E "b = f32[2]\n}", 5, 1, "expected an opcode, found '}'"},
		{E "b = f32[2] negate\n}", 5, 1, "expected '(', found '}'"},
		{E "b = f32[2] negate(c)\n}", 4, 20,
	         "'c' is not defined above in this computation"},
		{E "b = f32[2] negate(%b)\n}", 4, 20,
	         "'b' is not defined above in this computation"},
		{E "b = f32[2] negate(a\n}", 5, 1, "expected ',' or ')', found '}'"},
		{E "b = f32[2] negate(a,)\n}", 4, 22, "expected an operand, found ')'"},
		{E "b = f32[2] negate()\n}", 4, 13, "negate needs 1 operand, found 0"},
		{E "b = f32[2] add(a)\n}", 4, 13, "add needs 2 operands, found 1"},
		{E "b = f32[2] add(a, f32[3] a)\n}", 4, 20,
	         "this operand is f32[2], the text says f32[3]"},
		{E "a = f32[2] negate(a)\n}", 4, 2, "'a' is defined twice in this computation"},
		{E "b = f32[3] negate(a)\n}", 4, 13,
	         "negate 'b': its result 0 is f32[2], but f32[3] was declared"},
		{E "b = f32[2] negate(constant(1))\n}", 4, 20,
	         "expected a shape before this constant"},
		{E "b = f32[2] broadcast(f32[] constant(1))\n}", 4, 13,
	         "broadcast needs the attribute dimensions"},
		{E "b = f32[2] reverse(a), dimensions={0}, dimensions={0}\n}", 4, 41,
	         "the attribute dimensions stands twice"},
		{E "b = f32[2] reverse(a), dimensions=0\n}", 4, 36, "expected '{', found '0'"},
		{E "b = f32[2] reverse(a), =0\n}", 4, 25,
	         "expected the name of an attribute, found '='"},
		{E "b = f32[2] reverse(a), x=\n}", 5, 1, "expected a value, found '}'"},
		{E "b = pred[2] compare(a, a), direction=XX\n}", 4, 39,
	         "expected EQ, NE, GE, GT, LE or LT, found 'XX'"},
		{E "b = f32[] get-tuple-element(a), index=0\n}", 4, 30,
	         "expected a tuple, found an array"},
		{E "t = (f32[2]) tuple(a)\n b = f32[2] get-tuple-element(t), index=1\n}", 5, 13,
	         "the tuple has 1 elements, found index=1"},
		{E "t = (f32[2]) tuple(a)\n b = f32[2] get-tuple-element(t)\n}", 5, 13,
	         "get-tuple-element needs the attribute index, from 0"},
		{E "t = (f32[2]) tuple(a)\n b = f32[3] get-tuple-element(t), index=0\n}", 5, 13,
	         "this element is f32[2], the text says f32[3]"},
		{E "t = (f32[2], f32[2]) tuple(a)\n}", 4, 23,
	         "this tuple has 1 leaves, the text says 2"},
		{E "b = f32[2] negate(a), control-predecessors={z}\n}", 4, 46,
	         "'z' is not defined above in this computation"},
		{E "b = f32[2] negate(a), metadata={op_name=\"x\n}", 4, 42,
	         "expected '\"' to close this string, found the end of the text"},
	};
	check_all(cases, SW_COUNT(cases));
}

static void errors_in_called_computations(void **state)
{
	(void)state;
	static const error_case cases[] = {
		{E "b = f32[2] call(a), to_apply=g\n}", 4, 31,
	         "expected a computation that is defined above, found 'g'"},
		{E "b = f32[2] call(a), to_apply=%e\n}", 4, 31, "computation 'e' calls itself"},
		{E "b = f32[2] call(a)\n}", 4, 13, "call needs the attribute to_apply"},
		{E "b = f32[2] call(a), to_apply=\n}", 5, 1,
	         "expected the name of a computation, found '}'"},
		{M "f {\n p = f32[] parameter(0)\n}\ne {\n a = f32[2] parameter(0)\n b = f32[] "
	           "call(a), "
	           "to_apply=f\n}",
	         7, 12,
	         "call 'b': computation 'f': expected parameter 0 to be f32[2], found f32[]"},
	};
	check_all(cases, SW_COUNT(cases));
}

static void errors_in_literals(void **state)
{
	(void)state;
	static const error_case cases[] = {
		{M "e {\n c = s8[] constant(128)\n}", 3, 20, "128 does not fit s8"},
		{M "e {\n c = u8[] constant(-1)\n}", 3, 20, "-1 does not fit u8"},
		{M "e {\n c = s4[] constant(8)\n}", 3, 20, "8 does not fit s4"},
		{M "e {\n c = u64[] constant(18446744073709551616)\n}", 3, 21,
	         "the integer does not fit 64 bits"},
		{M "e {\n c = s32[] constant(1.5)\n}", 3, 22, "expected ')', found '.5'"},
		{M "e {\n c = f32[] constant(1e39)\n}", 3, 21, "1e39 does not fit f32"},
		{M "e {\n c = f16[] constant(65520)\n}", 3, 21, "65520 does not fit f16"},
		{M "e {\n c = f8e4m3fn[] constant(inf)\n}", 3, 26, "inf does not fit f8e4m3fn"},
		{M "e {\n c = f4e2m1fn[] constant(nan)\n}", 3, 26, "nan does not fit f4e2m1fn"},
		{M "e {\n c = f32[] constant(nan(0x800000))\n}", 3, 21,
	         "f32 has no NaN with this payload"},
		{M "e {\n c = f32[] constant(x)\n}", 3, 21, "expected a number, found 'x'"},
		{M "e {\n c = pred[] constant(2)\n}", 3, 22, "expected true or false, found '2'"},
		{M "e {\n c = f32[2] constant({1})\n}", 3, 24, "expected ',', found '}'"},
		{M "e {\n c = f32[2] constant({1,2,3})\n}", 3, 26,
	         "expected '}' behind 2 elements, found ','"},
		{M "e {\n c = f32[2,2] constant({1,2,3,4})\n}", 3, 25, "expected '{', found '1'"},
		{M "e {\n c = f32[1000000000] constant({1})\n}", 3, 31,
	         "expected 1000000000 elements, found the end of the text"},
		{M "e {\n c = token[] constant(1)\n}", 3, 23, "a token can't be a constant"},
		{M "e {\n c = c64[] constant((1,2)\n}", 4, 1, "expected ')', found '}'"},
	};
	check_all(cases, SW_COUNT(cases));
}

static void errors_in_windows_and_groups(void **state)
{
	(void)state;
#define W                                                                                          \
	M "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n z = f32[] add(x, y)\n}\n"     \
	  "e {\n a = f32[8] parameter(0)\n i = f32[] constant(0)\n "
#define RW W "b = f32[8] reduce-window(a, i), to_apply=add, window="
#define AR W "b = f32[8] all-reduce(a), to_apply=add, replica_groups="
	static const error_case cases[] = {
		{RW "{size=x}\n}", 10, 61, "expected an integer, found 'x'"},
		{RW "{size=3 stride=1x1}\n}", 10, 70, "stride has 2 dimensions, the window has 1"},
		{RW "{size=3 pad=1}\n}", 10, 68, "expected '_' and the padding behind, found '}'"},
		{RW "{size=3 stride=0}\n}", 10, 70, "stride can't be 0"},
		{RW "{width=3}\n}", 10, 56,
	         "expected size, stride, pad, lhs_dilate, rhs_dilate, rhs_reversal or '}', found "
	         "'width'"},
		{AR "3\n}", 10, 57, "expected replica groups: '{', '[' or mesh, found '3'"},
		{AR "{{0,-1}}\n}", 10, 58, "a rank can't be negative"},
		{AR "{{},{}}\n}", 10, 57, "the groups are empty, or their sizes differ too much"},
		{AR "[2,2]<=[5]\n}", 10, 57,
	         "both sides of <= must count the same ranks, from 1 to 1048576"},
		{AR "[2,2]<=[2,2]T(0,0)\n}", 10, 57,
	         "expected a permutation of 2 dimensions behind T"},
		{AR "[4]<=[4]\n}", 10, 57, "expected [groups,members] before <=, found 1 numbers"},
		{AR "mesh['x'=2] {'y'}\n}", 10, 70, "the mesh has no axis 'y'"},
		{AR "mesh['x'=2] {'x','x'}\n}", 10, 74,
	         "this axis overlaps another, or does not divide the mesh"},
		{AR "mesh['x'=8] {'x':(3)2}\n}", 10, 70,
	         "this axis overlaps another, or does not divide the mesh"},
	};
	check_all(cases, SW_COUNT(cases));
#undef AR
#undef RW
#undef W
}

static void nesting_is_bounded(void **state)
{
	(void)state;
	sw_text text = {0};
	sw_text_add(&text, E "b = f32[2] ");
	for (int i = 0; i < 5000; i++)
		sw_text_add(&text, "negate(");
	check_error(text.data, 4, 13 + 7 * 101, "operands nest deeper than 100");
	text.len = 0;
	sw_text_add(&text, E "b = ");
	for (int i = 0; i < 5000; i++)
		sw_text_add(&text, "(");
	check_error(text.data, 4, 106, "tuples nest deeper than 100");
	text.len = 0;
	sw_text_add(&text, E "b = f32[2] negate(a), x=");
	for (int i = 0; i < 5000; i++)
		sw_text_add(&text, "[");
	check_error(text.data, 4, 26 + 256, "brackets nest deeper than 256");
	sw_text_clear(&text);
}

/* Every prefix of a good text is refused with an error, or is a good text itself. */
static void truncated_text_is_refused(void **state)
{
	(void)state;
	char *text = NULL;
	size_t length = 0;
	sw_error err = {0};
	assert_int_equal(sw_file_read("tests/frontend/snippets/syntax.hlo", &text, &length, &err),
	                 SW_OK);
	size_t accepted = 0;
	for (size_t n = 0; n < length; n++) {
		sw_program *program = NULL;
		/* allocated exactly, so that the address sanitizer sees a step too far */
		char *copy = malloc(n ? n : 1);
		memcpy(copy, text, n);
		if (sw_read_hlo(copy, n, "", &program, &err) == SW_OK) {
			accepted++;
			sw_program_free(program);
		} else {
			assert_true(err.message[0] && err.line > 0 && err.column > 0);
		}
		free(copy);
	}
	assert_true(accepted < 50);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_in_the_frame),
		cmocka_unit_test(errors_in_aliases),
		cmocka_unit_test(errors_in_instructions),
		cmocka_unit_test(errors_in_called_computations),
		cmocka_unit_test(errors_in_literals),
		cmocka_unit_test(errors_in_windows_and_groups),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(truncated_text_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
