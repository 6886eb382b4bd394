/* Compiled programs: fusions, bitcasts between layouts and asynchronous pairs become plain ops that
 * compute the same. */
#include "test.h"

#include <glob.h>
#include <string.h>

#include "interpret/interpret.h"
#include "rewrite/rewrite.h"

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d: %s", err->file, err->line, err->message);
}

static sw_program *canonical_of(sw_program *program)
{
	sw_program *canonical = NULL;
	sw_error err = {0};
	check(sw_rewrite_canonical(program, &canonical, &err), &err);
	sw_program_free(program);
	for (size_t i = 0; i < canonical->ops.len; i++) {
		sw_opcode opcode = (sw_opcode)canonical->ops.data[i].opcode;
		if (opcode == SW_OP_FUSION || opcode == SW_OP_ASYNC_START ||
		    opcode == SW_OP_ASYNC_DONE || opcode == SW_OP_COPY_START)
			fail_msg("'%s' is left", sw_opcode_name(opcode));
	}
	return canonical;
}

static void run(const sw_program *program, sw_tensor *inputs, uint32_t n, sw_tensor *outputs,
                uint32_t n_outputs)
{
	sw_interpreter *interpreter;
	sw_error err = {0};
	check(sw_interpreter_new(program, NULL, &interpreter, &err), &err);
	check(sw_interpret(interpreter, inputs, n, outputs, n_outputs, &err), &err);
	sw_interpreter_free(interpreter);
}

static sw_tensor take(const sw_tensor_file *file, const char *kind, uint32_t i)
{
	char name[32];
	snprintf(name, sizeof(name), "%s.%u", kind, i);
	const sw_tensor *tensor = sw_tensor_file_get(file, name);
	assert_non_null(tensor);
	return sw_tensor_keep(*tensor);
}

static void check_fixture(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char recorded[128];
	sw_program *program = NULL;
	sw_tensor_file file;
	sw_error err = {0};
	sw_tensor inputs[256], outputs[256];
	snprintf(recorded, sizeof(recorded), "tests/programs/%.*s.recorded.safetensors.gz",
	         (int)strcspn(name, "."), name);
	check(sw_read_program(path, &program, &err), &err);
	check(sw_tensor_file_read(recorded, &file, &err), &err);
	program = canonical_of(program);
	const sw_computation *entry = sw_entry(program);
	uint32_t n = (uint32_t)entry->parameters.len, n_outputs = (uint32_t)entry->results.len;
	assert_true(n <= 256 && n_outputs <= 256);
	for (uint32_t i = 0; i < n; i++)
		inputs[i] = take(&file, "input", i);
	run(program, inputs, n, outputs, n_outputs);
	for (uint32_t i = 0; i < n_outputs; i++) {
		sw_tensor theirs = take(&file, "output", i);
		sw_difference d = sw_tensor_compare(outputs[i], theirs);
		if (d.relative > 2e-6) /* as of the programs before compilation */
			fail_msg("%s: output %u is off by %g", path, i, d.relative);
		sw_tensor_drop(&theirs);
		sw_tensor_drop(&outputs[i]);
	}
	sw_tensor_file_clear(&file);
	sw_program_free(program);
}

static void compiled_steps_compute_what_was_recorded(void **state)
{
	glob_t found;
	(void)state;
	assert_int_equal(glob("tests/frontend/compiled/*.gz", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 3);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_fixture(found.gl_pathv[i]);
	globfree(&found);
}

/* ---- small ones ----------------------------------------------------------------------------- */

static sw_program *read_text(const char *text)
{
	sw_program *program = NULL;
	sw_error err = {0};
	check(sw_read_hlo(text, strlen(text), "text", &program, &err), &err);
	return program;
}

/* Run on 0, 1, 2, ... and compare with the numbers expected. */
static void check_text(const char *text, const float *expected, int64_t n)
{
	sw_program *program = canonical_of(read_text(text));
	sw_tensor in, out;
	sw_error err = {0};
	const sw_id *inputs;
	sw_arena arena;
	sw_arena_init(&arena);
	sw_program_inputs(program, program->entry, &arena, &inputs);
	check(sw_tensor_new(sw_value_shape(program, inputs[0]), true, &in, &err), &err);
	for (int64_t e = 0; e < n; e++)
		sw_element_set(SW_F32, sw_tensor_data(in), e, (double)e);
	run(program, &in, 1, &out, 1);
	assert_memory_equal(sw_tensor_data(out), expected, (size_t)n * sizeof(*expected));
	sw_tensor_drop(&out);
	sw_arena_clear(&arena);
	sw_program_free(program);
}

static void bitcasts_follow_the_layouts(void **state)
{
	static const float turned[] = {0, 3, 1, 4, 2, 5}, plain[] = {0, 1, 2, 3, 4, 5};
	(void)state;
	/* column-major [2,3] has the bytes of row-major [3,2] */
	check_text("HloModule m\nENTRY e {\n  p = f32[2,3]{0,1} parameter(0)\n"
	           "  ROOT b = f32[3,2]{1,0} bitcast(p)\n}\n",
	           turned, 6);
	check_text("HloModule m\nENTRY e {\n  p = f32[2,3]{1,0} parameter(0)\n"
	           "  ROOT b = f32[3,2]{0,1} bitcast(p)\n}\n",
	           turned, 6);
	check_text("HloModule m\nENTRY e {\n  p = f32[2,3]{1,0} parameter(0)\n"
	           "  ROOT b = f32[6]{0} bitcast(p)\n}\n",
	           plain, 6);
	check_text("HloModule m\nENTRY e {\n  p = f32[2,3]{0,1} parameter(0)\n"
	           "  ROOT b = f32[6]{0} bitcast(p)\n}\n",
	           turned, 6);
	check_text("HloModule m\nENTRY e {\n  p = f32[2,3]{0,1} parameter(0)\n"
	           "  ROOT b = f32[2,3,1]{0,1,2} bitcast(p)\n}\n",
	           plain, 6);
}

static void tiled_bitcasts_are_refused(void **state)
{
	sw_program *program = NULL;
	sw_error err = {0};
	const char *text = "HloModule m\nENTRY e {\n  p = f32[2,3]{1,0:T(8,128)} parameter(0)\n"
			   "  ROOT b = f32[6]{0:T(8)} bitcast(p)\n}\n";
	(void)state;
	assert_int_equal(sw_read_hlo(text, strlen(text), "text", &program, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "between tiled layouts is not read"));
}

static void pairs_become_plain_ops(void **state)
{
	static const float negated[] = {-0.0f, -1, -2, -3};
	(void)state;
	check_text(
		"HloModule m\ninner {\n  a = f32[4] parameter(0)\n  ROOT n = f32[4] negate(a)\n}\n"
		"ENTRY e {\n  p = f32[4]{0} parameter(0)\n"
		"  s = ((f32[4]), f32[4], u32[]) async-start(p), calls=inner\n"
		"  u = ((f32[4]), f32[4], u32[]) async-update(s), calls=inner\n"
		"  d = f32[4]{0} async-done(u), calls=inner\n"
		"  c = (f32[4], f32[4], u32[]) copy-start(d)\n"
		"  ROOT r = f32[4] copy-done(c)\n}\n",
		negated, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compiled_steps_compute_what_was_recorded),
		cmocka_unit_test(bitcasts_follow_the_layouts),
		cmocka_unit_test(tiled_bitcasts_are_refused),
		cmocka_unit_test(pairs_become_plain_ops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
