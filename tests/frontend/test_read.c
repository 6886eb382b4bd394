/* The files that are read, and how others are refused. */
#include "frontend/helpers.h"

#include <string.h>
#include <unistd.h>

#define PATH SW_BINARY_DIR "/test-read.hlo"

typedef struct file_case {
	const char *content;
	size_t length;       /* 0: strlen */
	const char *message; /* the beginning of the message */
} file_case;

static const file_case refused[] = {
	{"", 0, "the file is empty; expected HLO text"},
	{" \n// nothing\n", 0, "the file is empty; expected HLO text"},
	{"module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n}\n", 0,
         "the module has no function"},
	{"#loc = loc(unknown)\nmodule {}\n", 0, "the module has no function"},
	{"func.func public @main() {\n}\n", 0, "this region does not end with a return"},
	{"# A heading\n", 0, "expected HLO text, which begins with HloModule"},
	{"\"builtin.module\"() ({\n}) : () -> ()\n", 0, "the module has no function"},
	{"ML\xefR\x0dStableHLO", 0, "this is MLIR bytecode"},
	{"\n\x06jit_f.\x12\x04main\x1a\x02\x08\x01", 0, "expected an instruction, found '}'"},
	{"\x08\x01\x00\x00", 4, "byte 2: this is no serialised HloModuleProto"},
	{"{\"version\": 3}\n", 0, "this is JSON, perhaps a plan or a sidecar"},
	{"HloModule m, is_scheduled=true, num_partitions=2\nENTRY e {\n"
         "  ROOT a = f32[4] parameter(0), sharding={devices=[2]<=[2]}\n}\n",
         0, "this program is already written for several devices"},
	{"ENTRY e {\n}\n", 0, "expected HLO text, which begins with HloModule"},
};

static void other_formats_are_told_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(refused); i++) {
		const file_case *c = &refused[i];
		sw_program *program = NULL;
		sw_error err = {0};
		size_t length = c->length ? c->length : strlen(c->content);
		assert_int_equal(sw_file_write(PATH, c->content, length, &err), SW_OK);
		assert_int_equal(sw_read_program(PATH, &program, &err), SW_ERR_INPUT);
		assert_string_equal(err.file, PATH);
		if (strncmp(err.message, c->message, strlen(c->message)) != 0)
			fail_msg("expected %s\n   found %s", c->message, err.message);
	}
	unlink(PATH);
}

static void errors_name_the_file(void **state)
{
	(void)state;
	static const char text[] = "HloModule m\ne {\n  a = f99[] parameter(0)\n}\n";
	sw_program *program = NULL;
	sw_error err = {0};
	assert_int_equal(sw_file_write(PATH, text, sizeof(text) - 1, &err), SW_OK);
	assert_int_equal(sw_read_program(PATH, &program, &err), SW_ERR_INPUT);
	assert_string_equal(err.file, PATH);
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 7);
	unlink(PATH);
	assert_int_equal(sw_read_program(PATH, &program, &err), SW_ERR_IO);
	assert_string_equal(err.file, PATH);
	assert_null(program);
}

static void plain_and_packed_files_are_the_same_program(void **state)
{
	(void)state;
	char *text = NULL;
	size_t length = 0;
	sw_program *packed = NULL, *plain = NULL;
	sw_error err = {0};
	assert_int_equal(sw_file_read("tests/programs/mlp.hlo.gz", &text, &length, &err), SW_OK);
	assert_int_equal(sw_file_write(PATH, text, length, &err), SW_OK);
	assert_int_equal(sw_read_program("tests/programs/mlp.hlo.gz", &packed, &err), SW_OK);
	assert_int_equal(sw_read_program(PATH, &plain, &err), SW_OK);
	assert_true(sw_program_equal(packed, plain, &err));
	assert_string_equal(plain->source, PATH);
	assert_int_equal(packed->aliases.len, 19);
	sw_program_free(packed);
	sw_program_free(plain);
	free(text);
	unlink(PATH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_formats_are_told_apart),
		cmocka_unit_test(errors_name_the_file),
		cmocka_unit_test(plain_and_packed_files_are_the_same_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
