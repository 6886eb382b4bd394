/* Loops over chunks of rows that divide the batch take every n-th row, if it does not matter which
 * rows are in a chunk; sums of whole numbers stay the same to the bit. */
#include "rewrite/programs.h"

/* 4 sequences of 6 tokens in 3 chunks of 8 rows, weights w; (i, x, w, sum, more): of each chunk the
 * body computes y = x w for each row, and `next` what is carried: `sums`, and `stack`, f32[3,8]. */
#define ELEMENTS "(s32[], f32[3,8,2], f32[2], f32[], f32[3,8])"
#define LOOP(from, next)                                                                           \
	"HloModule m\n"                                                                            \
	"sum { sa = f32[] parameter(0)\n sb = f32[] parameter(1)\n ROOT ss = f32[] add(sa, sb) "   \
	"}\n"                                                                                      \
	"max { ma = f32[] parameter(0)\n mb = f32[] parameter(1)\n ROOT mm = f32[] maximum(ma, "   \
	"mb) }\n"                                                                                  \
	"more { t = " ELEMENTS " parameter(0)\n"                                                   \
	"  i = s32[] get-tuple-element(t), index=0\n three = s32[] constant(3)\n"                  \
	"  ROOT less = pred[] compare(i, three), direction=LT }\n"                                 \
	"body { t = " ELEMENTS " parameter(0)\n"                                                   \
	"  i = s32[] get-tuple-element(t), index=0\n"                                              \
	"  x = f32[3,8,2] get-tuple-element(t), index=1\n"                                         \
	"  w = f32[2] get-tuple-element(t), index=2\n"                                             \
	"  sum.1 = f32[] get-tuple-element(t), index=3\n"                                          \
	"  stack = f32[3,8] get-tuple-element(t), index=4\n"                                       \
	"  zero = s32[] constant(0)\n one = s32[] constant(1)\n two = s32[] constant(2)\n"         \
	"  none = f32[] constant(0)\n j = s32[] add(i, one)\n down = s32[] subtract(two, "         \
	"i)\n" next "  ROOT r = " ELEMENTS " tuple(j, x, w, sums, filled) }\n"                     \
	"ENTRY e { a = " from "\n w = f32[2] parameter(1)\n  x = f32[3,8,2] reshape(a)\n"          \
	"  zero = s32[] constant(0)\n none = f32[] constant(0)\n"                                  \
	"  begin = f32[3,8] broadcast(none), dimensions={}\n"                                      \
	"  t = " ELEMENTS " tuple(zero, x, w, none, begin)\n"                                      \
	"  out = " ELEMENTS " while(t), condition=more, body=body\n"                               \
	"  loss = f32[] get-tuple-element(out), index=3\n"                                         \
	"  all = f32[3,8] get-tuple-element(out), index=4\n two = f32[] constant(2)\n"             \
	"  twos = f32[3,8] broadcast(two), dimensions={}\n twice = f32[3,8] multiply(all, twos)\n" \
	"  flat = f32[24] reshape(twice)\n ROOT results = (f32[], f32[24]) tuple(loss, flat) }\n"
#define BATCH "f32[4,6,2] parameter(0)"
#define TAKE(at)                                                                                   \
	"  part1 = f32[1,8,2] dynamic-slice(x, " at ", zero, zero), "                              \
	"dynamic_slice_sizes={1,8,2}\n  part = f32[8,2] reshape(part1)\n"                          \
	"  y = f32[8] dot(part, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
#define FILL(at)                                                                                   \
	"  y1 = f32[1,8] reshape(y)\n"                                                             \
	"  filled = f32[3,8] dynamic-update-slice(stack, y1, " at ", zero)\n"
#define TOTAL(y, by)                                                                               \
	"  term = f32[] reduce(" y ", none), dimensions={0}, to_apply=" by "\n"                    \
	"  sums = f32[] add(sum.1, term)\n"

static const struct {
	const char *name, *text;
	bool turned;
} cases[] = {
	{"the same of each row, and sums over all",
         LOOP(BATCH, TAKE("i") FILL("i") TOTAL("y", "sum")), true},
	{"from the last chunk to the first",
         LOOP(BATCH, TAKE("down") FILL("down") TOTAL("y", "sum")), true},
	{"rows are put at the place of others",
         LOOP(BATCH, TAKE("i") FILL("down") TOTAL("y", "sum")), false},
	{"sums of what is computed of each row",
         LOOP(BATCH,
              TAKE("i") FILL("i") "  z = f32[8] maximum(y, y)\n  q = f32[8] multiply(z, y)\n" TOTAL(
		      "q", "sum")),
         true},
	{"the largest of a chunk", LOOP(BATCH, TAKE("i") FILL("i") TOTAL("y", "max")), false},
	{"the square of a chunk's sum",
         LOOP(BATCH, TAKE("i") FILL("i") "  part.2 = f32[] reduce(y, none), dimensions={0}, "
                                         "to_apply=sum\n  term = f32[] multiply(part.2, part.2)\n"
                                         "  sums = f32[] add(sum.1, term)\n"),
         false},
	{"half of a chunk's sum",
         LOOP(BATCH, TAKE("i") FILL("i") "  part.2 = f32[] reduce(y, none), dimensions={0}, "
                                         "to_apply=sum\n  half = f32[] constant(0.5)\n"
                                         "  term = f32[] multiply(part.2, half)\n"
                                         "  sums = f32[] add(sum.1, term)\n"),
         true},
	{"the sum so far is multiplied",
         LOOP(BATCH, TAKE("i") FILL("i") "  part.2 = f32[] reduce(y, none), dimensions={0}, "
                                         "to_apply=sum\n  sum.3 = f32[] add(sum.1, sum.1)\n"
                                         "  sums = f32[] add(sum.3, part.2)\n"),
         false},
	{"rows that are multiplied by their place in the chunk",
         LOOP(BATCH, TAKE("i") FILL("i") "  place = f32[8] iota(), iota_dimension=0\n"
                                         "  z = f32[8] multiply(y, place)\n" TOTAL("z", "sum")),
         false},
	{"rows that are multiplied by the number of the chunk",
         LOOP(BATCH, TAKE("i") FILL("i") "  c = f32[] convert(i)\n"
                                         "  cs = f32[8] broadcast(c), dimensions={}\n"
                                         "  z = f32[8] multiply(y, cs)\n" TOTAL("z", "sum")),
         false},
	{"chunks of whole sequences",
         LOOP("f32[6,4,2] parameter(0)", TAKE("i") FILL("i") TOTAL("y", "sum")), false},
	{"chunks that are a dimension",
         LOOP("f32[3,4,2,2] parameter(0)", TAKE("i") FILL("i") TOTAL("y", "sum")), false},
};

static void fill(sw_tensor tensor, sw_rng *rng)
{
	for (int64_t e = 0; e < sw_shape_elements(tensor.shape); e++)
		sw_element_set(tensor.shape.type, sw_tensor_data(tensor), e,
		               (double)sw_rng_below(rng, 9) - 4);
}

/* Has the loop the rows of a chunk first? */
static bool is_turned(const sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		if (op->opcode != SW_OP_DYNAMIC_SLICE)
			continue;
		return sw_value_shape(program, op->operands[0]).dims[0] == 8;
	}
	fail_msg("nothing is sliced");
	return false;
}

static void loops_over_rows_take_every_nth(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		print_message("%s\n", cases[i].name);
		sw_program *out = same_canonical(cases[i].text, 5, fill);
		assert_int_equal(is_turned(out), cases[i].turned);
		sw_program_free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_over_rows_take_every_nth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
