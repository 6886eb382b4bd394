/* Programs in one arena give the same bytes as with a pool, step after step, and no two values that
 * are live at the same time overlap. */
#include "test.h"

#include <glob.h>
#include <string.h>

#include "generate/generate.h"
#include "interpret/pack.h"
#include "interpret/placement.h"

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s", err->file, err->line, err->column, err->message);
}

/* ---- packing ---------------------------------------------------------------------------- */

static void buffers_live_at_the_same_time_never_overlap(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		sw_rng rng = {.seed = seed};
		size_t n = (size_t)sw_rng_below(&rng, 120);
		sw_packed b[120], again[120];
		for (size_t i = 0; i < n; i++) {
			int32_t begin = (int32_t)sw_rng_below(&rng, 50);
			b[i] = (sw_packed){64 * (1 + sw_rng_below(&rng, 40)), -1, begin,
			                   begin + (int32_t)sw_rng_below(&rng, 12)};
		}
		memcpy(again, b, sizeof b);
		int64_t total = sw_pack(b, n, 0);
		assert_true(total >= sw_packed_live(b, n));
		assert_int_equal(sw_pack(again, n, 0), total);
		for (size_t i = 0; i < n; i++) {
			assert_true(b[i].offset >= 0 && b[i].offset + b[i].bytes <= total);
			assert_int_equal(again[i].offset, b[i].offset);
			for (size_t j = 0; j < i; j++)
				assert_true(b[i].end < b[j].begin || b[j].end < b[i].begin ||
				            b[i].offset + b[i].bytes <= b[j].offset ||
				            b[j].offset + b[j].bytes <= b[i].offset);
		}
	}
}

static void a_packing_within_the_limit_is_not_improved(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		sw_rng rng = {.seed = seed};
		sw_packed b[60];
		for (size_t i = 0; i < SW_COUNT(b); i++) {
			int32_t begin = (int32_t)sw_rng_below(&rng, 50);
			b[i] = (sw_packed){64 * (1 + sw_rng_below(&rng, 9)), -1, begin,
			                   begin + (int32_t)sw_rng_below(&rng, 12)};
		}
		int64_t least = sw_pack(b, SW_COUNT(b), 0),
			rough = sw_pack(b, SW_COUNT(b), INT64_MAX);
		assert_true(rough >= least);
		for (size_t i = 0; i < SW_COUNT(b); i++)
			for (size_t j = 0; j < i; j++)
				assert_true(b[i].end < b[j].begin || b[j].end < b[i].begin ||
				            b[i].offset + b[i].bytes <= b[j].offset ||
				            b[j].offset + b[j].bytes <= b[i].offset);
		assert_int_equal(sw_pack(b, SW_COUNT(b), rough), rough);
		assert_int_equal(sw_pack(b, SW_COUNT(b), least), least);
		assert_int_equal(sw_pack(b, SW_COUNT(b), 1), least);
	}
}

/* List the buffers of a forward and a backward pass: saved activations live until the backward pass
 * needs them, beside buffers of similar size that live for a few program points. */
static size_t list_saved_and_brief(sw_rng *rng, sw_packed *b)
{
	enum { LAYERS = 12, POINTS = 8, SAVED = 3, END = 2 * LAYERS * POINTS };
	size_t n = 0;
	for (int32_t l = 0; l < LAYERS; l++)
		for (int32_t at = l * POINTS; at < l * POINTS + SAVED; at++)
			b[n++] = (sw_packed){64 * (33 + sw_rng_below(rng, 8)), -1, at, END - at};
	for (int32_t at = 0; at + 3 < END; at++)
		b[n++] = (sw_packed){64 * (40 + sw_rng_below(rng, 60)), -1, at,
		                     at + 1 + (int32_t)sw_rng_below(rng, 3)};
	return n;
}

static void long_live_ranges_are_packed_before_short_ones(void **state)
{
	int loose = 0;
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		sw_rng rng = {.seed = seed};
		sw_packed b[400];
		size_t n = list_saved_and_brief(&rng, b);
		loose += (double)sw_pack(b, n, 0) > 1.004 * (double)sw_packed_live(b, n);
	}
	if (loose > 6)
		fail_msg("%d of 50 take more than is live", loose);
}

/* The number of buffers exceeds what the greedy method packs. */
static void very_many_buffers_are_packed_quickly(void **state)
{
	(void)state;
	size_t n = 60000;
	sw_packed *b = sw_alloc(n * sizeof *b);
	sw_rng rng = {.seed = 7};
	for (size_t i = 0; i < n; i++) {
		bool large = i % 20 == 0;
		b[i] = (sw_packed){large ? 64 * (1000 + sw_rng_below(&rng, 50)) : 64, 0, (int32_t)i,
		                   (int32_t)i + (int32_t)sw_rng_below(&rng, large ? 3000 : 30)};
	}
	double begin = sw_now_s();
	int64_t total = sw_pack(b, n, 0), live = sw_packed_live(b, n);
	print_message("60000 buffers: %.3f s, packed / live %.4f\n", sw_now_s() - begin,
	              (double)total / (double)live);
	assert_true((double)total <= 1.25 * (double)live);
	free(b);
}

/* ---- running ---------------------------------------------------------------------------- */

static bool is_state(const sw_program *program, uint32_t output, uint32_t *input)
{
	for (size_t a = 0; a < program->aliases.len; a++)
		if (program->aliases.data[a].output == output) {
			*input = program->aliases.data[a].input;
			return true;
		}
	return false;
}

/* Run two steps, passing state from the first to the second. Return the last outputs as new
 * tensors. */
static void two_steps(const sw_program *program, const sw_placement *placement,
                      const sw_tensor *inputs, uint32_t n_inputs, sw_tensor *outputs,
                      uint32_t n_outputs)
{
	sw_error err = {0};
	sw_interpreter *it;
	sw_interpret_options options = {.placement = placement};
	sw_tensor *in = sw_alloc((n_inputs + 1) * sizeof *in),
		  *out = sw_alloc((n_outputs + 1) * sizeof *out);
	check(sw_interpreter_new(program, &options, &it, &err), &err);
	for (uint32_t i = 0; i < n_inputs; i++)
		in[i] = sw_tensor_keep(inputs[i]);
	for (int step = 0; step < 2; step++) {
		check(sw_interpret(it, in, n_inputs, out, n_outputs, &err), &err);
		for (uint32_t i = 0; i < n_inputs; i++)
			in[i] = sw_tensor_keep(inputs[i]);
		for (uint32_t i = 0; i < n_outputs; i++) {
			uint32_t input;
			bool carried = step == 0 && is_state(program, i, &input);
			if (carried) {
				sw_tensor_drop(&in[input]);
				in[input] = sw_tensor_keep(out[i]);
			}
			if (step == 1) {
				check(sw_tensor_new(out[i].shape, false, &outputs[i], &err), &err);
				memcpy(sw_tensor_data(outputs[i]), sw_tensor_data(out[i]),
				       out[i].buffer->bytes);
			}
			sw_tensor_drop(&out[i]);
		}
	}
	for (uint32_t i = 0; i < n_inputs; i++)
		sw_tensor_drop(&in[i]);
	if (placement)
		assert_int_equal(sw_interpreter_peak_bytes(it), placement->arena_bytes);
	sw_interpreter_free(it);
	free(in);
	free(out);
}

static void compare_with_pool(const char *name, const sw_program *program, const sw_tensor *inputs,
                              uint32_t n_inputs)
{
	uint32_t n = (uint32_t)sw_entry(program)->results.len;
	sw_tensor *pool = sw_alloc((n + 1) * sizeof *pool),
		  *arena = sw_alloc((n + 1) * sizeof *arena);
	sw_placement *placement = sw_placement_new(program);
	assert_true(placement->arena_bytes >= placement->live_bytes);
	assert_int_equal(sw_placement_bytes(program), placement->arena_bytes);
	assert_int_equal(sw_placement_bytes_near(program, placement->arena_bytes),
	                 placement->arena_bytes);
	assert_true(sw_placement_bytes_near(program, INT64_MAX) >= placement->arena_bytes);
	assert_int_equal(sw_placement_bytes_near(program, placement->arena_bytes - 1),
	                 placement->arena_bytes);
	two_steps(program, NULL, inputs, n_inputs, pool, n);
	two_steps(program, placement, inputs, n_inputs, arena, n);
	for (uint32_t i = 0; i < n; i++) {
		size_t bytes = pool[i].buffer->bytes;
		if (bytes != arena[i].buffer->bytes ||
		    (bytes &&
		     memcmp(sw_tensor_data(pool[i]), sw_tensor_data(arena[i]), bytes) != 0))
			fail_msg("%s: output %u differs", name, i);
		sw_tensor_drop(&pool[i]);
		sw_tensor_drop(&arena[i]);
	}
	sw_placement_free(placement);
	free(pool);
	free(arena);
}

static void random_programs_compute_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1500; seed++) {
		generated g;
		generate_options options = {.ops = seed % 3 ? 0 : 40, .undefined = true};
		char name[32];
		generate_program(seed, &options, &g);
		sw_tensor *inputs = sw_alloc((g.sidecar.n_inputs + 1) * sizeof *inputs);
		generated_fill(&g, seed, inputs);
		snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
		compare_with_pool(name, g.program, inputs, g.sidecar.n_inputs);
		for (uint32_t i = 0; i < g.sidecar.n_inputs; i++)
			sw_tensor_drop(&inputs[i]);
		free(inputs);
		generated_clear(&g);
	}
}

static void fixtures_compute_the_same(void **state)
{
	(void)state;
	glob_t found;
	assert_int_equal(glob(PROGRAMS "*.recorded.safetensors.gz", 0, NULL, &found), 0);
	for (size_t f = 0; f < found.gl_pathc; f++) {
		char path[512];
		size_t stem = strlen(found.gl_pathv[f]) - strlen(".recorded.safetensors.gz");
		sw_error err = {0};
		sw_program *program = NULL;
		sw_tensor_file file;
		sw_tensor inputs[512];
		uint32_t n = 0;
		snprintf(path, sizeof path, "%.*s.hlo.gz", (int)stem, found.gl_pathv[f]);
		check(sw_read_program(path, &program, &err), &err);
		check(sw_tensor_file_read(found.gl_pathv[f], &file, &err), &err);
		for (char key[32]; n < SW_COUNT(inputs); n++) {
			snprintf(key, sizeof key, "input.%u", n);
			const sw_tensor *tensor = sw_tensor_file_get(&file, key);
			if (!tensor)
				break;
			inputs[n] = *tensor;
		}
		compare_with_pool(path, program, inputs, n);
		sw_tensor_file_clear(&file);
		sw_program_free(program);
	}
	globfree(&found);
}

/* Pack all programs, including those that are too large to run here. */
static void programs_are_packed_tightly(void **state)
{
	(void)state;
	double sum = 0;
	glob_t found;
	assert_int_equal(glob(PROGRAMS "*.hlo.gz", 0, NULL, &found), 0);
	for (size_t f = 0; f < found.gl_pathc; f++) {
		sw_error err = {0};
		sw_program *program = NULL;
		check(sw_read_program(found.gl_pathv[f], &program, &err), &err);
		double begin = sw_now_s();
		sw_placement *p = sw_placement_new(program);
		double seconds = sw_now_s() - begin, live = (double)p->live_bytes,
		       arena = (double)p->arena_bytes;
		print_message(
			"%-32s %7zu ops %8.3f s  arena / live %.4f  arena / SSA liveness %.3f\n",
			strrchr(found.gl_pathv[f], '/') + 1, program->ops.len, seconds,
			arena / live,
			arena / (double)sw_program_peak_bytes(program, program->entry));
		assert_true(arena <= 1.04 * live);
		sum += arena / live;
		sw_placement_free(p);
		sw_program_free(program);
	}
	assert_true(sum <= 1.005 * (double)found.gl_pathc);
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_live_at_the_same_time_never_overlap),
		cmocka_unit_test(a_packing_within_the_limit_is_not_improved),
		cmocka_unit_test(long_live_ranges_are_packed_before_short_ones),
		cmocka_unit_test(very_many_buffers_are_packed_quickly),
		cmocka_unit_test(random_programs_compute_the_same),
		cmocka_unit_test(fixtures_compute_the_same),
		cmocka_unit_test(programs_are_packed_tightly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
