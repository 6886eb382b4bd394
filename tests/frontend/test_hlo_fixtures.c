/* Whole programs: read -> print -> read is the identity, on every fixture and snippet file. */
#include "frontend/helpers.h"

#include <glob.h>
#include <string.h>

static void check_file(const char *path)
{
	sw_program *program = NULL;
	sw_error err = {0};
	if (sw_read_program(path, &program, &err) != SW_OK)
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.message);
	check_round_trip(program, path);
	sw_program_free(program);
}

static size_t check_files(const char *pattern)
{
	glob_t found;
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_file(found.gl_pathv[i]);
	size_t n = found.gl_pathc;
	globfree(&found);
	return n;
}

static void all_fixtures_survive_printing(void **state)
{
	(void)state;
	assert_true(check_files("tests/programs/*.hlo.gz") > 0);
}

static void all_snippets_survive_printing(void **state)
{
	(void)state;
	assert_true(check_files("tests/frontend/snippets/*.hlo") >= 2);
}

static void the_opcode_snippets_have_every_opcode(void **state)
{
	(void)state;
	sw_program *program = NULL;
	sw_error err = {0};
	bool seen[SW_OPCODE_COUNT] = {false};
	assert_int_equal(sw_read_program("tests/frontend/snippets/opcodes.hlo", &program, &err),
	                 SW_OK);
	for (size_t i = 0; i < program->ops.len; i++)
		seen[program->ops.data[i].opcode] = true;
	seen[SW_OP_TUPLE] = seen[SW_OP_GET_TUPLE_ELEMENT] = true;
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		if (!seen[o])
			fail_msg("opcodes.hlo has no %s", sw_opcode_name((sw_opcode)o));
	sw_program_free(program);
}

static void every_fixture_has_a_sidecar_that_fits(void **state)
{
	(void)state;
	glob_t found;
	assert_int_equal(glob("tests/programs/*.hlo.gz", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		sw_program *program = NULL;
		sw_sidecar sidecar;
		sw_error err = {0};
		assert_int_equal(sw_read_program(found.gl_pathv[i], &program, &err), SW_OK);
		if (sw_sidecar_find(found.gl_pathv[i], program, &sidecar, &err) != SW_OK)
			fail_msg("%s: %s", err.file, err.message);
		assert_true(sidecar.learning_rate > 0);
		assert_int_equal(sidecar.outputs[sidecar.n_outputs - 1].role, SW_ROLE_LOSS);
		sw_sidecar_clear(&sidecar);
		sw_program_free(program);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fixtures_survive_printing),
		cmocka_unit_test(all_snippets_survive_printing),
		cmocka_unit_test(the_opcode_snippets_have_every_opcode),
		cmocka_unit_test(every_fixture_has_a_sidecar_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
