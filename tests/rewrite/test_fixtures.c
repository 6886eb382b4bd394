/*
 * The canonical form of every fixture: it verifies, has fewer ops and no call, and gives the same
 * results bit for bit.
 */
#include "rewrite/programs.h"
#include "rewrite/recorded.h"

#include <glob.h>
#include <string.h>

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"

static glob_t list(const char *pattern)
{
	glob_t found;
	if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc == 0)
		fail_msg("no %s", pattern);
	return found;
}

/* ---- form ------------------------------------------------------------------------------- */

static void check_frame(const sw_program *in, const sw_program *out)
{
	sw_arena arena = {0};
	const sw_id *before, *after;
	uint32_t n = sw_program_inputs(in, in->entry, &arena, &before);
	assert_int_equal(sw_program_inputs(out, out->entry, &arena, &after), n);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(sw_shape_equal(sw_value_shape(in, before[i]),
		                           sw_value_shape(out, after[i])));
		assert_string_equal(sw_op_at(in, in->values.data[before[i]].op)->name,
		                    sw_op_at(out, out->values.data[after[i]].op)->name);
	}
	assert_int_equal(sw_entry(out)->results.len, sw_entry(in)->results.len);
	assert_int_equal(out->aliases.len, in->aliases.len);
	for (size_t i = 0; i < in->aliases.len; i++)
		assert_memory_equal(&out->aliases.data[i], &in->aliases.data[i], sizeof(sw_alias));
	sw_arena_clear(&arena);
}

/* Count the ops that a planner would see without this pass: each as often as it is called. */
static int64_t written_out(const sw_program *program, int32_t c)
{
	const sw_computation *computation = &program->computations.data[c];
	int64_t n = 0;
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(program, computation->ops.data[i]);
		n++;
		for (uint32_t k = 0; k < op->n_called; k++)
			n += written_out(program, op->called[k]);
	}
	return n;
}

static void check_form(const char *path)
{
	sw_program *program = read_file(path), *out;
	sw_error err;
	double begin = sw_now_s();
	assert_ok(sw_rewrite_canonical(program, &out, &err), &err);
	double seconds = sw_now_s() - begin;
	assert_ok(sw_program_verify(out, &err), &err);
	print_message("%-24s %7zu ops in the text, %7lld written out, %7zu canonical (entry %7zu), "
	              "%.3f s\n",
	              strrchr(path, '/') + 1, program->ops.len,
	              (long long)written_out(program, program->entry), out->ops.len,
	              sw_entry(out)->ops.len, seconds);
	bool layers = count_opcode(out, SW_OP_WHILE) < count_opcode(program, SW_OP_WHILE);
	assert_true(layers || written_out(out, out->entry) < written_out(program, program->entry));
	assert_true(layers || out->ops.len < program->ops.len);
	assert_int_equal(layers, strstr(path, "-scan") || strstr(path, "moe-mixtral.hlo"));
	assert_int_equal(count_opcode(out, SW_OP_CALL), 0);
	assert_int_equal(count_opcode(out, SW_OP_FUSION), 0);
	check_frame(program, out);
	sw_program *again = canonical(out);
	assert_same_program(again, out);
	sw_program_free(again);
	sw_program_free(out);
	sw_program_free(program);
}

static void every_fixture_has_a_smaller_canonical_form(void **state)
{
	(void)state;
	glob_t found = list(PROGRAMS "*.hlo.gz");
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_form(found.gl_pathv[i]);
	globfree(&found);
}

/* ---- results ---------------------------------------------------------------------------- */

static void check_results(const char *path)
{
	sw_program *program = read_file(path), *out = canonical(program);
	recorded inputs = read_recorded(path);
	/* products in the other order are summed up in another one */
	assert_near(program, out, &inputs, 5e-6, path);
	recorded_clear(&inputs);
	sw_program_free(out);
	sw_program_free(program);
}

static void recorded_fixtures_give_the_same_results(void **state)
{
	(void)state;
	glob_t found = list(PROGRAMS "*.recorded.safetensors.gz");
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[512];
		snprintf(path, sizeof(path), "%.*s.hlo.gz",
		         (int)(strlen(found.gl_pathv[i]) - strlen(".recorded.safetensors.gz")),
		         found.gl_pathv[i]);
		check_results(path);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fixture_has_a_smaller_canonical_form),
		cmocka_unit_test(recorded_fixtures_give_the_same_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
