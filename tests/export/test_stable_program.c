/* The StableHLO writer: what is written reads back as the same program. */
#include "test.h"

#include <glob.h>
#include <string.h>

#include "export/export.h"
#include "frontend/frontend.h"
#include "export/program_sense.h"
#include "rewrite/rewrite.h"

static sw_program *canonical(sw_program *program, const char *path)
{
	sw_program *out = NULL;
	sw_error err = {0};
	if (sw_rewrite_canonical(program, &out, &err) != SW_OK)
		fail_msg("%s: %s", path, err.message);
	sw_program_free(program);
	return out;
}

static sw_program *write_and_read(const sw_program *program, const char *path)
{
	sw_text text = {0};
	sw_error err = {0};
	sw_program *back = NULL;
	if (sw_export_program(program, &text, &err) != SW_OK)
		fail_msg("%s: %s", path, err.message);
	if (sw_read_stablehlo(text.data, text.len, path, &back, &err) != SW_OK)
		fail_msg("%s: %d:%d: %s", path, err.line, err.column, err.message);
	sw_text_clear(&text);
	return back;
}

static void check_program(const char *path)
{
	sw_program *read = NULL;
	sw_error err = {0};
	if (sw_read_program(path, &read, &err) != SW_OK)
		fail_msg("%s: %s", path, err.message);
	sw_program *back = canonical(write_and_read(read, path), path);
	sw_program *plain = canonical(read, path);
	if (plain->ops.len != back->ops.len || sw_program_sense(plain) != sw_program_sense(back))
		fail_msg("%s: %zu ops became others, %zu", path, plain->ops.len, back->ops.len);
	sw_program_free(plain);
	sw_program_free(back);
}

static void every_program_reads_back_equal(void **state)
{
	(void)state;
	glob_t found;
	assert_int_equal(glob("tests/programs/*.hlo.gz", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_program(found.gl_pathv[i]);
	globfree(&found);
}

/* Calls of LAPACK keep their configuration, and say that their matrices are column-major. */
static void calls_of_lapack_are_written(void **state)
{
	(void)state;
	const char *hlo =
		"HloModule m\nENTRY e {\n a = f32[2,4,3] parameter(0)\n b = f32[3,3] parameter(1)\n"
		" q = (f32[2,4,3], f32[2,3]) custom-call(a), "
	        "custom_call_target=\"lapack_sgeqrf_ffi\", "
		"api_version=API_VERSION_TYPED_FFI, backend_config={}\n"
		" q0 = f32[2,4,3] get-tuple-element(q), index=0\n"
		" w = (f32[3,3], f32[3], s32[]) custom-call(b), "
	        "custom_call_target=\"lapack_ssyevd_ffi\", "
		"api_version=API_VERSION_TYPED_FFI, backend_config={mode = 86 : ui8, uplo = 76 : "
	        "ui8}\n"
		" w1 = f32[3] get-tuple-element(w), index=1\n"
		" ROOT t = (f32[2,4,3], f32[3]) tuple(q0, w1)\n}\n";
	static const char *const wanted[] = {
		"call_target_name = \"lapack_ssyevd_ffi\", api_version = 4 : i32, backend_config = "
		"{mode = 86 : ui8, uplo = 76 : ui8}",
		"operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = "
	        "[dense<[1, "
		"2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>]",
		"dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>]",
	};
	sw_text text = {0};
	sw_error err = {0};
	sw_program *program = NULL;
	assert_int_equal(sw_read_hlo(hlo, strlen(hlo), "lapack", &program, &err), SW_OK);
	assert_int_equal(sw_export_program(program, &text, &err), SW_OK);
	for (size_t i = 0; i < SW_COUNT(wanted); i++)
		if (!strstr(text.data, wanted[i]))
			fail_msg("expected '%s' in %s", wanted[i], text.data);
	sw_program *back = canonical(write_and_read(program, "lapack"), "lapack"),
		   *plain = canonical(program, "lapack");
	assert_int_equal(sw_program_sense(plain), sw_program_sense(back));
	sw_program_free(plain);
	sw_program_free(back);
	sw_text_clear(&text);
}

static void what_stablehlo_lacks_is_refused(void **state)
{
	static const char *const cases[][2] = {
		{"a = f32[4] parameter(0)\n ROOT c = f32[4] custom-call(a), "
	         "custom_call_target=\"x\"",
	         "custom-call 'c': a call of x is not exported to StableHLO"},
		{"a = f32[8] parameter(0)\n ROOT t = (f32[2], s32[2]) topk(a), k=2, largest=false",
	         "topk 't': the k smallest are not exported to StableHLO"},
		{"a = f32[<=8] parameter(0)\n ROOT n = f32[<=8] negate(a)",
	         "parameter 'a': sizes that are known when it runs are not exported"},
		{"ROOT c = f32[2] constant({...})", "constant 'c': its elements are not in the"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_text hlo = {0}, text = {0};
		sw_error err = {0};
		sw_program *program = NULL;
		sw_text_addf(&hlo, "HloModule m\nENTRY e {\n %s\n}\n", cases[i][0]);
		if (sw_read_hlo(hlo.data, hlo.len, "f", &program, &err) != SW_OK)
			fail_msg("%s: %s", cases[i][0], err.message);
		assert_int_equal(sw_export_program(program, &text, &err), SW_ERR_INPUT);
		if (!strstr(err.message, cases[i][1]))
			fail_msg("expected '%s', found '%s'", cases[i][1], err.message);
		sw_program_free(program);
		sw_text_clear(&hlo);
		sw_text_clear(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_program_reads_back_equal),
		cmocka_unit_test(calls_of_lapack_are_written),
		cmocka_unit_test(what_stablehlo_lacks_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
