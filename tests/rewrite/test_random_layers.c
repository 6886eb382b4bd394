/*
 * Random programs with a loop over layers forward, which stacks up what it computes, and one back
 * that takes it apart: their canonical form has no loop, and computes the same bit for bit.
 */
#include "rewrite/programs.h"

#include <stdlib.h>
#include <string.h>

#include "interpret/interpret.h"

typedef struct writer {
	sw_text text;
	sw_rng rng;
	int layers, rows, width;
	bool back;  /* the second loop runs from the last layer to the first */
	bool names; /* indices wrap as JAX writes them */
} writer;

static bool chance(writer *w, int percent)
{
	return sw_rng_below(&w->rng, 100) < percent;
}

static int between(writer *w, int low, int high)
{
	return low + (int)sw_rng_below(&w->rng, high - low + 1);
}

#define DOT "lhs_contracting_dims={1}, rhs_contracting_dims={0}"

/* The index of iteration `i`, in lines that end with the scalar `NAMEx`. */
static void write_index(writer *w, const char *name, bool back)
{
	sw_text *t = &w->text;
	if (back)
		sw_text_addf(t, "  %sl = s32[] constant(%d)\n  %sr = s32[] subtract(%sl, %si)\n",
		             name, w->layers - 1, name, name, name);
	else
		sw_text_addf(t, "  %sl = s32[] constant(0)\n  %sr = s32[] add(%si, %sl)\n", name,
		             name, name, name);
	sw_text_addf(t, "  %sz = s32[] constant(0)\n", name);
	if (!w->names) {
		sw_text_addf(t, "  %sx = s32[] add(%sr, %sz)\n", name, name, name);
		return;
	}
	sw_text_addf(t,
	             "  %sn = s32[] constant(%d)\n  %sv = pred[] compare(%sr, %sz), direction=LT\n"
	             "  %sq = s32[] add(%sr, %sn)\n  %sx = s32[] select(%sv, %sq, %sr)\n",
	             name, w->layers, name, name, name, name, name, name, name, name, name, name);
}

static const char *unary(writer *w)
{
	static const char *const ops[] = {"tanh", "negate", "cosine", "abs"};
	return ops[between(w, 0, 3)];
}

static void write_condition(writer *w, const char *name, const char *state)
{
	sw_text_addf(
		&w->text,
		"%sc { %scp = %s parameter(0)\n  %sci = s32[] get-tuple-element(%scp), index=0\n"
		"  %scn = s32[] constant(%d)\n"
		"  ROOT %scz = pred[] compare(%sci, %scn), direction=LT }\n",
		name, name, state, name, name, name, w->layers, name, name, name);
}

/* h, w, stack -> tanh(h w[i]), w, stack with h at i */
static void write_forward(writer *w, const char *state)
{
	sw_text *t = &w->text;
	int n = w->layers, r = w->rows, d = w->width;
	sw_text_addf(t, "fb { fp = %s parameter(0)\n", state);
	sw_text_addf(t,
	             "  fi = s32[] get-tuple-element(fp), index=0\n"
	             "  fh = f32[%d,%d] get-tuple-element(fp), index=1\n"
	             "  fw = f32[%d,%d,%d] get-tuple-element(fp), index=2\n"
	             "  fs = f32[%d,%d,%d] get-tuple-element(fp), index=3\n",
	             r, d, n, d, d, n, r, d);
	write_index(w, "f", false);
	sw_text_addf(t,
	             "  fa = f32[1,%d,%d] dynamic-slice(fw, fx, fz, fz), "
	             "dynamic_slice_sizes={1,%d,%d}\n  fe = f32[%d,%d] reshape(fa)\n"
	             "  fd = f32[%d,%d] dot(fh, fe), " DOT "\n  fo = f32[%d,%d] %s(fd)\n"
	             "  fu = f32[1,%d,%d] reshape(%s)\n"
	             "  ft = f32[%d,%d,%d] dynamic-update-slice(fs, fu, fx, fz, fz)\n"
	             "  fk = s32[] constant(1)\n  fj = s32[] add(fi, fk)\n"
	             "  ROOT fy = %s tuple(fj, fo, fw, ft) }\n",
	             d, d, d, d, d, d, r, d, r, d, unary(w), r, d, chance(w, 50) ? "fh" : "fo", n,
	             r, d, state);
	write_condition(w, "f", state);
}

/* g, w, stack, sums -> g w[i]^T + stack[i], w, stack, sums with stack[i]^T g at i */
static void write_backward(writer *w, const char *state)
{
	sw_text *t = &w->text;
	int n = w->layers, r = w->rows, d = w->width;
	sw_text_addf(t, "bb { bp = %s parameter(0)\n", state);
	sw_text_addf(t,
	             "  bi = s32[] get-tuple-element(bp), index=0\n"
	             "  bh = f32[%d,%d] get-tuple-element(bp), index=1\n"
	             "  bw = f32[%d,%d,%d] get-tuple-element(bp), index=2\n"
	             "  bs = f32[%d,%d,%d] get-tuple-element(bp), index=3\n"
	             "  bg = f32[%d,%d,%d] get-tuple-element(bp), index=4\n",
	             r, d, n, d, d, n, r, d, n, d, d);
	write_index(w, "b", w->back);
	sw_text_addf(t,
	             "  ba = f32[1,%d,%d] dynamic-slice(bw, bx, bz, bz), "
	             "dynamic_slice_sizes={1,%d,%d}\n  be = f32[%d,%d] reshape(ba)\n"
	             "  bc = f32[1,%d,%d] dynamic-slice(bs, bx, bz, bz), "
	             "dynamic_slice_sizes={1,%d,%d}\n  bf = f32[%d,%d] reshape(bc)\n",
	             d, d, d, d, d, d, r, d, r, d, r, d);
	sw_text_addf(t,
	             "  bd = f32[%d,%d] dot(bh, be), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={1}\n  bo = f32[%d,%d] add(bd, bf)\n"
	             "  bm = f32[%d,%d] dot(bf, bh), lhs_contracting_dims={0}, "
	             "rhs_contracting_dims={0}\n  bu = f32[1,%d,%d] reshape(bm)\n"
	             "  bt = f32[%d,%d,%d] dynamic-update-slice(bg, bu, bx, bz, bz)\n"
	             "  bk = s32[] constant(1)\n  bj = s32[] add(bi, bk)\n"
	             "  ROOT by = %s tuple(bj, bo, bw, bs, bt) }\n",
	             r, d, r, d, d, d, d, d, n, d, d, state);
	write_condition(w, "b", state);
}

static void write_program(writer *w)
{
	sw_text forward = {0}, backward = {0}, *t = &w->text;
	int n = w->layers, r = w->rows, d = w->width;
	sw_text_addf(&forward, "(s32[], f32[%d,%d], f32[%d,%d,%d], f32[%d,%d,%d])", r, d, n, d, d,
	             n, r, d);
	sw_text_addf(&backward, "(s32[], f32[%d,%d], f32[%d,%d,%d], f32[%d,%d,%d], f32[%d,%d,%d])",
	             r, d, n, d, d, n, r, d, n, d, d);
	sw_text_add(t, "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n");
	write_forward(w, forward.data);
	write_backward(w, backward.data);
	sw_text_addf(t,
	             "ENTRY e { w = f32[%d,%d,%d] parameter(0)\n  x = f32[%d,%d] parameter(1)\n"
	             "  o = s32[] constant(0)\n  q = f32[] constant(%d)\n"
	             "  s = f32[%d,%d,%d] broadcast(q), dimensions={}\n"
	             "  g = f32[%d,%d,%d] broadcast(q), dimensions={}\n",
	             n, d, d, r, d, between(w, 0, 2), n, r, d, n, d, d);
	sw_text_addf(t,
	             "  ft0 = %s tuple(o, x, w, s)\n  fl = %s while(ft0), condition=fc, body=fb\n",
	             forward.data, forward.data);
	sw_text_addf(t,
	             "  h = f32[%d,%d] get-tuple-element(fl), index=1\n"
	             "  k = f32[%d,%d,%d] get-tuple-element(fl), index=3\n",
	             r, d, n, r, d);
	if (chance(w, 30)) /* what is stacked up is changed on the way */
		sw_text_addf(t, "  kk = f32[%d,%d,%d] %s(k)\n", n, r, d, unary(w));
	else
		sw_text_addf(t, "  kk = f32[%d,%d,%d] copy(k)\n", n, r, d);
	sw_text_addf(
		t,
		"  bt0 = %s tuple(o, h, w, kk, g)\n  bl = %s while(bt0), condition=bc, body=bb\n"
		"  y = f32[%d,%d] get-tuple-element(bl), index=1\n"
		"  v = f32[%d,%d,%d] get-tuple-element(bl), index=4\n"
		"  u = f32[%d,%d,%d] subtract(w, v)\n"
		"  ROOT r = (f32[%d,%d,%d], f32[%d,%d]) tuple(u, y) }\n",
		backward.data, backward.data, r, d, n, d, d, n, d, d, n, d, d, r, d);
	sw_text_clear(&forward);
	sw_text_clear(&backward);
}

/* ---- running ---------------------------------------------------------------------------- */

static void need(sw_status status, const sw_error *err, const char *text)
{
	if (status != SW_OK)
		fail_msg("%s\n%s", err->message, text);
}

static void run(const sw_program *program, uint64_t seed, sw_tensor outputs[2], const char *text)
{
	sw_error err = {0};
	sw_interpreter *interpreter;
	const sw_interpret_options options = {.blas_threads = 1};
	sw_tensor inputs[2];
	sw_arena arena;
	const sw_id *values;
	sw_arena_init(&arena);
	sw_program_inputs(program, program->entry, &arena, &values);
	for (int i = 0; i < 2; i++) {
		sw_shape shape = sw_value_shape(program, values[i]);
		sw_rng rng = {.seed = seed, .next = (uint64_t)i << 32};
		need(sw_tensor_new(shape, false, &inputs[i], &err), &err, text);
		for (int64_t e = 0; e < sw_shape_elements(shape); e++)
			sw_element_set(shape.type, sw_tensor_data(inputs[i]), e,
			               2 * sw_rng_unit(&rng) - 1);
	}
	need(sw_interpreter_new(program, &options, &interpreter, &err), &err, text);
	need(sw_interpret(interpreter, inputs, 2, outputs, 2, &err), &err, text);
	sw_interpreter_free(interpreter);
	sw_arena_clear(&arena);
}

static void check_seed(uint64_t seed)
{
	writer w = {.rng = {.seed = seed}};
	w.layers = between(&w, 1, 5);
	w.rows = between(&w, 1, 4);
	w.width = between(&w, 1, 6);
	w.back = chance(&w, 70);
	w.names = chance(&w, 50);
	write_program(&w);
	sw_program *program = read_text(w.text.data), *out = canonical(program);
	sw_tensor given[2], written[2];
	if (count_opcode(out, SW_OP_WHILE) > 0)
		fail_msg("seed %llu: a loop is left\n%s", (unsigned long long)seed, w.text.data);
	run(program, seed, given, w.text.data);
	run(out, seed, written, w.text.data);
	for (int i = 0; i < 2; i++) {
		if (memcmp(sw_tensor_data(given[i]), sw_tensor_data(written[i]),
		           (size_t)sw_shape_bytes(given[i].shape)) != 0)
			fail_msg("seed %llu: result %d differs\n%s", (unsigned long long)seed, i,
			         w.text.data);
		sw_tensor_drop(&given[i]);
		sw_tensor_drop(&written[i]);
	}
	sw_program_free(program);
	sw_program_free(out);
	sw_text_clear(&w.text);
}

static void loops_written_out_compute_the_same(void **state)
{
	const char *first = getenv("SW_SEED"), *n = getenv("SW_CASES");
	uint64_t seed = first ? strtoull(first, NULL, 10) : 1,
		 cases = n ? strtoull(n, NULL, 10) : 300;
	(void)state;
	print_message("seeds from %llu on: %llu\n", (unsigned long long)seed,
	              (unsigned long long)cases);
	for (uint64_t i = 0; i < cases; i++)
		check_seed(seed + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(loops_written_out_compute_the_same)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
