/* Loops over layers are written out, what they stack up is seen through, and stacks of layers are
 * taken apart. */
#include "rewrite/programs.h"

#include <string.h>

/* A loop of TRIPS iterations that multiplies a carried h by a part of W, or by all of it. */
#define LOOP(trips, layers, factor)                                                                \
	"HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"                            \
	"body { bp = (s32[], f32[4,8], f32[" layers ",8,8], f32[8,8]) parameter(0)\n"              \
	"  bi = s32[] get-tuple-element(bp), index=0\n"                                            \
	"  bh = f32[4,8] get-tuple-element(bp), index=1\n"                                         \
	"  bw = f32[" layers ",8,8] get-tuple-element(bp), index=2\n"                              \
	"  bu = f32[8,8] get-tuple-element(bp), index=3\n"                                         \
	"  b0 = s32[] constant(0)\n  bn = s32[] constant(" layers ")\n  b1 = s32[] constant(1)\n"  \
	"  bl = pred[] compare(bi, b0), direction=LT\n  ba = s32[] add(bi, bn)\n"                  \
	"  bs = s32[] select(bl, ba, bi)\n"                                                        \
	"  bc = f32[1,8,8] dynamic-slice(bw, bs, b0, b0), dynamic_slice_sizes={1,8,8}\n"           \
	"  br = f32[8,8] reshape(bc)\n"                                                            \
	"  bd = f32[4,8] dot(bh, " factor                                                          \
	"), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"                                  \
	"  bt = f32[4,8] tanh(bd)\n  be = s32[] add(bi, b1)\n"                                     \
	"  ROOT bz = (s32[], f32[4,8], f32[" layers ",8,8], f32[8,8]) tuple(be, bt, bw, bu) }\n"   \
	"cond { cp = (s32[], f32[4,8], f32[" layers ",8,8], f32[8,8]) parameter(0)\n"              \
	"  ci = s32[] get-tuple-element(cp), index=0\n  cn = s32[] constant(" trips ")\n"          \
	"  ROOT cz = pred[] compare(ci, cn), direction=LT }\n"                                     \
	"ENTRY e { w = f32[" layers ",8,8] parameter(0)\n  x = f32[4,8] parameter(1)\n"            \
	"  u = f32[8,8] parameter(2)\n  z = s32[] constant(0)\n"                                   \
	"  t = (s32[], f32[4,8], f32[" layers ",8,8], f32[8,8]) tuple(z, x, w, u)\n"               \
	"  l = (s32[], f32[4,8], f32[" layers ",8,8], f32[8,8]) while(t), condition=cond, "        \
	"body=body\n"                                                                              \
	"  h = f32[4,8] get-tuple-element(l), index=1\n  v = f32[" layers ",8,8] negate(w)\n"      \
	"  ROOT r = (f32[" layers ",8,8], f32[4,8]) tuple(v, h) }\n"

#define DOT "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"

static const struct {
	const char *name, *text, *expected; /* expected NULL: a loop remains */
} cases[] = {
	{"a loop over layers is written out", LOOP("2", "2", "br"),
         "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
         "ENTRY e { w = f32[2,8,8] parameter(0)\n  x = f32[4,8] parameter(1)\n"
         "  u = f32[8,8] parameter(2)\n"
         "  c = f32[1,8,8] slice(w), slice={[0:1], [0:8], [0:8]}\n  cr = f32[8,8] reshape(c)\n"
         "  cd = f32[4,8] dot(x, cr), " DOT "  ct = f32[4,8] tanh(cd)\n"
         "  d = f32[1,8,8] slice(w), slice={[1:2], [0:8], [0:8]}\n  dr = f32[8,8] reshape(d)\n"
         "  dd = f32[4,8] dot(ct, dr), " DOT "  dt = f32[4,8] tanh(dd)\n"
         "  v = f32[2,8,8] negate(w)\n"
         "  ROOT r = (f32[2,8,8], f32[4,8]) tuple(v, dt) }\n"},
	{"a loop that reads the same weights in each iteration stays", LOOP("2", "2", "bu"), NULL},
	{"a loop over too many layers stays", LOOP("90000", "90000", "br"), NULL},
	{"a loop that ends at once is none over layers", LOOP("0", "2", "br"), NULL},

	{"a slice reads what was put there, through updates, conversions and concatenations",
         "HloModule m\n"
         "ENTRY e { a = f32[1,4] parameter(0)\n  b = f32[1,4] parameter(1)\n"
         "  z = f32[] constant(0)\n  s = f32[2,4] broadcast(z), dimensions={}\n"
         "  i = s32[] constant(0)\n  k = s32[] constant(1)\n"
         "  sa = f32[2,4] dynamic-update-slice(s, a, i, i)\n"
         "  sb = f32[2,4] dynamic-update-slice(sa, b, k, i)\n"
         "  q = f32[2,8] concatenate(sb, sa), dimensions={1}\n"
         "  h = bf16[2,8] convert(q)\n"
         "  c = bf16[1,4] dynamic-slice(h, i, i), dynamic_slice_sizes={1,4}\n"
         "  f = f32[1,2] slice(q), slice={[1:2], [1:3]}\n"
         "  ROOT r = (bf16[1,4], f32[1,2]) tuple(c, f) }\n",
         "HloModule m\n"
         "ENTRY e { a = f32[1,4] parameter(0)\n  b = f32[1,4] parameter(1)\n"
         "  c = bf16[1,4] convert(a)\n  f = f32[1,2] slice(b), slice={[0:1], [1:3]}\n"
         "  ROOT r = (bf16[1,4], f32[1,2]) tuple(c, f) }\n"},
	{"what an update overwrites in part is read from it",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n  a = f32[2] parameter(1)\n"
         "  k = s32[] constant(1)\n  s = f32[4] dynamic-update-slice(x, a, k)\n"
         "  f = f32[2] slice(s), slice={[2:4]}\n  g = f32[1] slice(s), slice={[3:4]}\n"
         "  ROOT r = (f32[2], f32[1]) tuple(f, g) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n  a = f32[2] parameter(1)\n"
         "  k = s32[] constant(1)\n  s = f32[4] dynamic-update-slice(x, a, k)\n"
         "  f = f32[2] slice(s), slice={[2:4]}\n  g = f32[1] slice(x), slice={[3:4]}\n"
         "  ROOT r = (f32[2], f32[1]) tuple(f, g) }\n"},
	{"a place beyond the end is moved into the array, as a dynamic slice does",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n  k = s32[] constant(9)\n"
         "  ROOT c = f32[2] dynamic-slice(x, k), dynamic_slice_sizes={2} }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n"
         "  ROOT c = f32[2] slice(x), slice={[2:4]} }\n"},
	{"integers that follow from constants are constants, but for what overflows",
         "HloModule m\n"
         "ENTRY e { a = s8[] constant(100)\n  b = s8[] constant(-3)\n"
         "  s = s8[] add(a, a)\n  d = s8[] subtract(b, a)\n  p = pred[] compare(d, b), "
         "direction=LT\n"
         "  m = s8[] select(p, a, b)\n  c = s32[] convert(m)\n"
         "  ROOT r = (s8[], s8[], pred[], s32[]) tuple(s, d, p, c) }\n",
         "HloModule m\n"
         "ENTRY e { a = s8[] constant(100)\n"
         "  s = s8[] add(a, a)\n  d = s8[] constant(-103)\n  p = pred[] constant(true)\n"
         "  c = s32[] constant(100)\n"
         "  ROOT r = (s8[], s8[], pred[], s32[]) tuple(s, d, p, c) }\n"},
};

static void each_case_has_its_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		print_message("%s\n", cases[i].name);
		sw_program *program = read_text(cases[i].text), *out = canonical(program);
		if (cases[i].expected) {
			sw_program *expected = read_text(cases[i].expected);
			sw_program_order_constants(expected);
			assert_same_program(out, expected);
			sw_program_free(expected);
		} else {
			assert_int_equal(count_opcode(out, SW_OP_WHILE), 1);
		}
		sw_program_free(program);
		sw_program_free(out);
	}
}

/* ---- stacks taken apart ----------------------------------------------------------------- */

static void assert_ok(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s", err->message);
}

static void check_apart(const char *fixture, uint32_t layers)
{
	sw_program *program = read_file(fixture), *out = canonical(program), *apart = NULL;
	sw_sidecar sidecar, own = {0};
	sw_error err;
	uint32_t parts = 0;
	assert_ok(sw_sidecar_find(fixture, program, &sidecar, &err), &err);
	assert_ok(sw_rewrite_layers_apart(out, &sidecar, &apart, &own, &err), &err);
	assert_int_equal(apart != NULL, layers > 0);
	for (uint32_t i = 0; apart && i < own.n_inputs; i++) {
		const sw_fill_part *part = own.inputs[i].init.part;
		if (!part || part->axis < 0)
			continue;
		assert_int_equal(part->axis, 0);
		assert_int_equal(part->size, layers);
		assert_true(strstr(part->whole, "blocks") != NULL);
		parts++;
	}
	if (apart) {
		assert_true(parts >= 3 * 12 * layers); /* a parameter has two moments */
		assert_int_equal(count_opcode(apart, SW_OP_DYNAMIC_UPDATE_SLICE), 0);
		assert_ok(sw_program_verify(apart, &err), &err);
	}
	sw_sidecar_clear(&sidecar);
	sw_sidecar_clear(&own);
	sw_program_free(apart);
	sw_program_free(out);
	sw_program_free(program);
}

static void stacks_of_layers_become_states_of_their_own(void **state)
{
	(void)state;
	check_apart("tests/programs/gpt-tiny-scan.hlo.gz", 2);
	check_apart("tests/programs/gpt-124m-scan.hlo.gz", 12);
	check_apart("tests/programs/gpt-tiny.hlo.gz", 0);
	check_apart("tests/programs/lstm-lm-tiny.hlo.gz", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case_has_its_form),
		cmocka_unit_test(stacks_of_layers_become_states_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
