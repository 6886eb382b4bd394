/* Serialised HLO: it gives the program of the text; damaged and hostile bytes are refused in a
 * line. */
#include "frontend/helpers.h"

#include <glob.h>
#include <string.h>

static sw_program *read_file(const char *path)
{
	sw_program *program = NULL;
	sw_error err = {0};
	if (sw_read_program(path, &program, &err) != SW_OK)
		fail_msg("%s: %s", err.file, err.message);
	return program;
}

static void protobufs_give_the_programs_of_the_text(void **state)
{
	glob_t found;
	(void)state;
	assert_int_equal(glob("tests/frontend/protobuf/*.pb.gz", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 5);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i], *name = strrchr(path, '/') + 1;
		char text[128];
		sw_error err = {0};
		snprintf(text, sizeof(text), "tests/programs/%.*s.hlo.gz", (int)strcspn(name, "."),
		         name);
		sw_program *a = read_file(path), *b = read_file(text);
		if (!sw_program_equal(a, b, &err))
			fail_msg("%s: %s", path, err.message);
		assert_int_equal(sw_program_hash(a), sw_program_hash(b));
		sw_program_free(a);
		sw_program_free(b);
	}
	globfree(&found);
}

/* ---- bytes written by hand ------------------------------------------------------------------ */

static void add_varint(sw_text *m, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		sw_text_add_n(m, &(char){(char)(value | 128)}, 1);
	sw_text_add_n(m, &(char){(char)value}, 1);
}

static void add_int(sw_text *m, uint32_t field, uint64_t value)
{
	add_varint(m, field << 3);
	add_varint(m, value);
}

static void add_bytes(sw_text *m, uint32_t field, const char *bytes, size_t n)
{
	add_varint(m, field << 3 | 2);
	add_varint(m, n);
	sw_text_add_n(m, bytes, n);
}

static void add_string(sw_text *m, uint32_t field, const char *string)
{
	add_bytes(m, field, string, strlen(string));
}

/* Append the message, and clear it. */
static void add_message(sw_text *m, uint32_t field, sw_text *inner)
{
	add_bytes(m, field, inner->data ? inner->data : "", inner->len);
	sw_text_clear(inner);
}

static void add_shape(sw_text *m, uint64_t type, const uint64_t *dims, size_t n)
{
	sw_text shape = {0};
	add_int(&shape, 2, type);
	for (size_t i = 0; i < n; i++)
		add_int(&shape, 3, dims[i]);
	add_message(m, 3, &shape);
}

/* An instruction on f32[4]; operand 0: none. */
static void add_instruction(sw_text *computation, const char *opcode, uint64_t id, uint64_t operand,
                            uint64_t type, const uint64_t *dims, size_t n)
{
	sw_text i = {0};
	add_string(&i, 1, opcode);
	add_string(&i, 2, opcode);
	add_shape(&i, type, dims, n);
	add_int(&i, 35, id);
	if (operand)
		add_int(&i, 36, operand);
	add_message(computation, 2, &i);
}

static void end_module(sw_text *computation, uint64_t root, sw_text *module)
{
	add_string(computation, 1, "main");
	add_int(computation, 5, 9);
	add_int(computation, 6, root);
	add_string(module, 1, "module");
	add_string(module, 2, "main");
	add_message(module, 3, computation);
	add_int(module, 6, 9);
}

static sw_status read_bytes(const char *bytes, size_t n, sw_error *err)
{
	sw_program *program = NULL;
	*err = (sw_error){0};
	sw_status status = sw_read_hlo_proto(bytes, n, "file", &program, err);
	sw_program_free(program);
	return status;
}

static void check_refused(sw_text *module, const char *words)
{
	sw_error err;
	assert_int_equal(read_bytes(module->data, module->len, &err), SW_ERR_INPUT);
	if (!strstr(err.message, words) || strchr(err.message, '\n'))
		fail_msg("said: %s", err.message);
	sw_text_clear(module);
}

static const uint64_t four[] = {4};
#define F32 11

static void a_module_by_hand_is_read(void **state)
{
	sw_text c = {0}, module = {0};
	sw_program *program = NULL;
	sw_error err = {0};
	(void)state;
	add_instruction(&c, "parameter", 1, 0, F32, four, 1);
	add_instruction(&c, "negate", 2, 1, F32, four, 1);
	end_module(&c, 2, &module);
	assert_int_equal(sw_read_hlo_proto(module.data, module.len, "file", &program, &err), SW_OK);
	assert_int_equal(program->ops.len, 2);
	assert_int_equal(program->ops.data[1].opcode, SW_OP_NEGATE);
	sw_program_free(program);
	sw_text_clear(&module);
}

/* An instruction that reads itself, or a later one. */
static void circles_are_refused(void **state)
{
	(void)state;
	for (uint64_t operand = 1; operand <= 2; operand++) {
		sw_text c = {0}, module = {0};
		add_instruction(&c, "negate", 1, operand, F32, four, 1);
		add_instruction(&c, "negate", 2, 1, F32, four, 1);
		end_module(&c, 2, &module);
		check_refused(&module, operand == 1 ? "not defined" : "defined before, found 2");
	}
}

static void huge_dimensions_are_refused(void **state)
{
	static const uint64_t huge[] = {UINT64_C(1) << 40, UINT64_C(1) << 40}, negative[] = {-1};
	(void)state;
	sw_text c = {0}, module = {0};
	add_instruction(&c, "parameter", 1, 0, F32, huge, 2);
	end_module(&c, 1, &module);
	check_refused(&module, "");
	add_instruction(&c, "parameter", 1, 0, F32, negative, 1);
	end_module(&c, 1, &module);
	check_refused(&module, "");
	add_instruction(&c, "parameter", 1, 0, 99, four, 1);
	end_module(&c, 1, &module);
	check_refused(&module, "type number 99 is not known");
}

static void deep_tuples_are_refused(void **state)
{
	sw_text c = {0}, i = {0}, shape = {0}, module = {0};
	(void)state;
	for (int depth = 0; depth < 5000; depth++) {
		sw_text outer = {0};
		add_int(&outer, 2, 13);
		add_message(&outer, 4, &shape);
		shape = outer;
	}
	add_string(&i, 1, "p");
	add_string(&i, 2, "parameter");
	add_message(&i, 3, &shape);
	add_message(&c, 2, &i);
	end_module(&c, 0, &module);
	check_refused(&module, "nested more than 100 deep");
}

static void a_constant_needs_its_elements(void **state)
{
	static const uint64_t dims[] = {UINT64_C(1) << 62, 4};
	sw_text c = {0}, i = {0}, literal = {0}, shape = {0}, module = {0};
	(void)state;
	add_int(&shape, 2, F32);
	add_int(&shape, 3, dims[0]);
	add_int(&shape, 3, dims[1]);
	add_message(&literal, 1, &shape);
	add_string(&literal, 8, "12345678");
	add_string(&i, 1, "c");
	add_string(&i, 2, "constant");
	add_shape(&i, F32, four, 1);
	add_message(&i, 8, &literal);
	add_message(&c, 2, &i);
	end_module(&c, 0, &module);
	check_refused(&module, "has not the elements of its shape");
}

/* A column-major constant is read in the order of its indices. */
static void layouts_of_constants_are_undone(void **state)
{
	sw_text c = {0}, i = {0}, literal = {0}, shape = {0}, layout = {0}, module = {0};
	sw_program *program = NULL;
	sw_error err = {0};
	(void)state;
	add_int(&shape, 2, 6);
	add_int(&shape, 3, 2);
	add_int(&shape, 3, 3);
	sw_text again = {0};
	sw_text_add_n(&again, shape.data, shape.len);
	add_int(&layout, 1, 0);
	add_int(&layout, 1, 1);
	add_message(&shape, 5, &layout);
	add_message(&literal, 1, &shape);
	add_bytes(&literal, 3, "\1\4\2\5\3\6", 6);
	add_string(&i, 1, "c");
	add_string(&i, 2, "constant");
	add_message(&i, 3, &again);
	add_message(&i, 8, &literal);
	add_message(&c, 2, &i);
	end_module(&c, 0, &module);
	assert_int_equal(sw_read_hlo_proto(module.data, module.len, "file", &program, &err), SW_OK);
	assert_memory_equal(program->ops.data[0].attrs->constant.data, "\1\2\3\4\5\6", 6);
	sw_program_free(program);
	sw_text_clear(&module);
}

/* No end of a file crashes the reader; only a cut between the last fields leaves a program. */
static void truncated_files_are_refused(void **state)
{
	char *text = NULL;
	size_t length = 0, read = 0;
	sw_error err = {0};
	(void)state;
	assert_int_equal(sw_file_read("tests/frontend/protobuf/mlp.pb.gz", &text, &length, &err),
	                 SW_OK);
	size_t step = length / 400 + 1;
	for (size_t n = 0; n < length; n += step) {
		sw_status status = read_bytes(text, n, &err);
		assert_true(status == SW_OK || status == SW_ERR_INPUT);
		assert_true(status == SW_OK || err.message[0]);
		read += status == SW_OK;
	}
	assert_true(read < 20);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protobufs_give_the_programs_of_the_text),
		cmocka_unit_test(a_module_by_hand_is_read),
		cmocka_unit_test(circles_are_refused),
		cmocka_unit_test(huge_dimensions_are_refused),
		cmocka_unit_test(deep_tuples_are_refused),
		cmocka_unit_test(a_constant_needs_its_elements),
		cmocka_unit_test(layouts_of_constants_are_undone),
		cmocka_unit_test(truncated_files_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
