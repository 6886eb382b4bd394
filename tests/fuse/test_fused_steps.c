/* Recorded training steps, cut into kernels, give what they give op by op: in an arena, on three
 * threads. */
#include "test.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "fuse/fuse.h"
#include "interpret/interpret.h"

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"
#define SUFFIX ".recorded.safetensors.gz"

static void check(sw_status status, const sw_error *err, const char *name)
{
	if (status != SW_OK)
		fail_msg("%s: %s:%d: %s", name, err->file, err->line, err->message);
}

typedef struct step_run {
	sw_placement *placement;
	sw_interpreter *interpreter;
	sw_tensor *out;
	uint32_t n;
} step_run;

static void run(step_run *r, const sw_program *program, const sw_tensor_file *file,
                const char *name)
{
	sw_error err = {0};
	sw_arena arena;
	const sw_id *values;
	char key[32];
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *in = sw_alloc(sizeof *in * (n + 1));
	*r = (step_run){.placement = sw_placement_new(program),
	                .n = (uint32_t)sw_entry(program)->results.len};
	r->out = sw_alloc(sizeof *r->out * (r->n + 1));
	sw_interpret_options options = {.blas_threads = 3, .placement = r->placement};
	check(sw_interpreter_new(program, &options, &r->interpreter, &err), &err, name);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(key, sizeof key, "input.%u", i);
		in[i] = sw_tensor_keep(*sw_tensor_file_get(file, key));
	}
	check(sw_interpret(r->interpreter, in, n, r->out, r->n, &err), &err, name);
	free(in);
	sw_arena_clear(&arena);
}

static void step_run_clear(step_run *r)
{
	sw_interpreter_free(r->interpreter);
	sw_placement_free(r->placement);
	free(r->out);
}

/* Parameters of bf16 programs are f32; their gradients were rounded to bf16 on the way. */
static void compare(const char *name, sw_fusion device, int64_t *fusions,
                    int64_t *tiles)
{
	char path[512];
	sw_error err = {0};
	sw_program *program, *fused;
	sw_tensor_file file;
	step_run want, got;
	double tolerance = strstr(name, "bf16") ? 1e-2 : 1e-4;
	snprintf(path, sizeof path, PROGRAMS "%s.hlo.gz", name);
	check(sw_read_program(path, &program, &err), &err, name);
	snprintf(path, sizeof path, PROGRAMS "%s" SUFFIX, name);
	check(sw_tensor_file_read(path, &file, &err), &err, name);
	check(sw_fuse(program, device, &fused, &err), &err, name);
	for (size_t i = 0; i < fused->ops.len; i++) {
		const char *why;
		const sw_op *op = sw_op_at(fused, (sw_id)i);
		*fusions += op->opcode == SW_OP_FUSION;
		*tiles += op->opcode == SW_OP_FUSION && sw_tile_can_run(fused, op, &why);
	}
	run(&want, program, &file, name);
	run(&got, fused, &file, name);
	for (uint32_t i = 0; i < want.n; i++) {
		sw_difference d = sw_tensor_compare(got.out[i], want.out[i]);
		if (!(d.relative <= tolerance) && d.absolute > 1e-7)
			fail_msg("%s: output %u differs by %g", name, i, d.relative);
	}
	step_run_clear(&want);
	step_run_clear(&got);
	sw_tensor_file_clear(&file);
	sw_program_free(fused);
	sw_program_free(program);
}

static void fused_steps_give_what_their_ops_give(void **state)
{
	(void)state;
	glob_t found;
	int64_t fusions = 0, tiles = 0, with_products = 0, tiles_of_these = 0;
	assert_int_equal(glob(PROGRAMS "*" SUFFIX, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char name[128];
		const char *base = strrchr(found.gl_pathv[i], '/') + 1;
		snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - strlen(SUFFIX)), base);
		compare(name, SW_FUSION_XLA_CPU, &fusions, &tiles);
		compare(name, SW_FUSION_LOOPS, &with_products, &tiles_of_these);
	}
	globfree(&found);
	print_message("%lld of %lld fusions run tile by tile\n", (long long)tiles,
	              (long long)fusions);
	assert_true(10 * tiles > 8 * fusions);
	assert_true(with_products > tiles_of_these);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fused_steps_give_what_their_ops_give),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
