/* Sums of data that a loop carries get a loop of their own, and the results stay the same to the
 * bit. */
#include "rewrite/programs.h"

/* A loop of 4 iterations over rows of x and of a mask, with weights w, which the step replaces:
 * (i, x, w, mask, loss, count, ...). `more` are types of further elements, `next` their ops, and
 * `results` the body's last results. */
#define ELEMENTS(more) "(s32[], f32[4,3], f32[3], f32[4,3], f32[], f32[]" more ")"
#define STEP(more, begins, next, results, reads)                                                   \
	"HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }\n"                            \
	"sum { sa = f32[] parameter(0)\n sb = f32[] parameter(1)\n ROOT ss = f32[] add(sa, sb) "   \
	"}\n"                                                                                      \
	"more { t = " ELEMENTS(                                                                    \
		more) " parameter(0)\n"                                                            \
		      "  i = s32[] get-tuple-element(t), index=0\n four = s32[] constant(4)\n"     \
		      "  ROOT less = pred[] compare(i, four), direction=LT }\n"                    \
		      "body { t = " ELEMENTS(                                                      \
			      more) " parameter(0)\n"                                              \
				    "  i = s32[] get-tuple-element(t), index=0\n x = f32[4,3] "    \
	                            "get-tuple-element(t), index=1\n"                              \
				    "  w = f32[3] get-tuple-element(t), index=2\n"                 \
				    "  mask = f32[4,3] get-tuple-element(t), index=3\n"            \
				    "  loss = f32[] get-tuple-element(t), index=4\n"               \
				    "  count = f32[] get-tuple-element(t), index=5\n"              \
				    "  zero = s32[] constant(0)\n one = s32[] constant(1)\n none " \
	                            "= f32[] constant(0)\n"                                        \
				    "  j = s32[] add(i, one)\n"                                    \
				    "  row1 = f32[1,3] dynamic-slice(x, i, zero), "                \
	                            "dynamic_slice_sizes={1,3}\n"                                  \
				    "  row = f32[3] reshape(row1)\n"                               \
				    "  part1 = f32[1,3] dynamic-slice(mask, i, zero), "            \
	                            "dynamic_slice_sizes={1,3}\n"                                  \
				    "  part = f32[3] reshape(part1)\n"                             \
				    "  kept = f32[3] multiply(row, part)\n"                        \
				    "  term = f32[] dot(kept, w), lhs_contracting_dims={0}, "      \
	                            "rhs_contracting_dims={0}\n"                                   \
				    "  losses = f32[] add(loss, term)\n"                           \
				    "  these = f32[] reduce(part, none), dimensions={0}, "         \
	                            "to_apply=sum\n" next "  ROOT r = " ELEMENTS(                  \
					    more) " tuple(j, x, w, mask, losses, " results ") }\n" \
						  "ENTRY e { x = f32[4,3] parameter(0)\n w = "     \
	                                          "f32[3] parameter(1)\n"                          \
						  "  mask = f32[4,3] parameter(2)\n zero = s32[] " \
	                                          "constant(0)\n none = f32[] constant(0)\n"       \
						  "  stack = f32[4] broadcast(none), "             \
	                                          "dimensions={}\n"                                \
						  "  t = " ELEMENTS(                               \
							  more) " tuple(zero, x, w, mask, none, "  \
	                                                        "none" begins ")\n"                \
								"  out = " ELEMENTS(               \
									more) " while(t), "        \
	                                                                      "condition=more, "   \
	                                                                      "body=body\n"        \
									      "  loss = f32[] "    \
	                                                                      "get-tuple-element(" \
	                                                                      "out), index=4\n"    \
									      "  count = f32[] "   \
	                                                                      "get-tuple-element(" \
	                                                                      "out), "             \
	                                                                      "index=5\n" reads    \
									      "  mean = f32[] "    \
	                                                                      "divide(of, "        \
	                                                                      "by.2)\n by = "      \
	                                                                      "f32[3] "            \
	                                                                      "broadcast(mean), "  \
	                                                                      "dimensions={}\n"    \
									      "  next = f32[3] "   \
	                                                                      "subtract(w, by)\n"  \
									      "  ROOT results = "  \
	                                                                      "(f32[3], f32[]) "   \
	                                                                      "tuple(next, mean) " \
	                                                                      "}\n"
#define LOSS "  of = f32[] copy(loss)\n"
#define COUNT "  by.2 = f32[] copy(count)\n"
#define COUNTS "  counts = f32[] add(count, these)\n"

static const struct {
	const char *name, *text;
	size_t loops;
} cases[] = {
	{"the count has a loop of its own", STEP("", "", COUNTS, "counts", LOSS COUNT), 2},
	{"a count that follows from the loss has none",
         STEP("", "", "  both = f32[] add(these, term)\n counts = f32[] add(count, both)\n",
              "counts", LOSS COUNT),
         1},
	{"a count that is weighted by the loss so far has none",
         STEP("", "", "  both = f32[] multiply(these, loss)\n counts = f32[] add(count, both)\n",
              "counts", LOSS COUNT),
         1},
	{"a product of data alone goes along",
         STEP("", "",
              "  square = f32[] dot(part, part), lhs_contracting_dims={0}, "
              "rhs_contracting_dims={0}\n"
              "  counts = f32[] add(count, square)\n",
              "counts", LOSS COUNT),
         2},
	{"a product that both need is not computed twice",
         STEP(", f32[]", ", none",
              "  square = f32[] dot(part, part), lhs_contracting_dims={0}, "
              "rhs_contracting_dims={0}\n"
              "  counts = f32[] add(count, square)\n"
              "  other = f32[] get-tuple-element(t), index=6\n"
              "  scaled = f32[] multiply(term, square)\n others = f32[] add(other, scaled)\n",
              "counts, others",
              "  other = f32[] get-tuple-element(out), index=6\n"
              "  of = f32[] add(loss, other)\n" COUNT),
         1},
	{"two sums go together",
         STEP(", f32[]", ", none",
              COUNTS "  other = f32[] get-tuple-element(t), index=6\n"
                     "  more.2 = f32[] multiply(counts, counts)\n"
                     "  others = f32[] add(other, more.2)\n",
              "counts, others",
              "  other = f32[] get-tuple-element(out), index=6\n"
              "  by.2 = f32[] add(count, other)\n" LOSS),
         2},
	{"a stack of data stays, as what is read of it may be one iteration's",
         STEP(", f32[4]", ", stack",
              "  both = f32[] add(these, term)\n counts = f32[] add(count, both)\n"
              "  all = f32[4] get-tuple-element(t), index=6\n one1 = f32[1] reshape(these)\n"
              "  filled = f32[4] dynamic-update-slice(all, one1, i)\n",
              "counts, filled",
              "  all = f32[4] get-tuple-element(out), index=6\n"
              "  total = f32[] reduce(all, none), dimensions={0}, to_apply=sum\n"
              "  of = f32[] add(loss, total)\n" COUNT),
         1},
};

static void fill(sw_tensor tensor, sw_rng *rng)
{
	for (int64_t e = 0; e < sw_shape_elements(tensor.shape); e++)
		sw_element_set(tensor.shape.type, sw_tensor_data(tensor), e, sw_rng_unit(rng));
}

static void sums_of_data_have_their_own_loop(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		print_message("%s\n", cases[i].name);
		sw_program *out = same_canonical(cases[i].text, 3, fill);
		assert_int_equal(count_opcode(out, SW_OP_WHILE), cases[i].loops);
		sw_program_free(out);
	}
}

/* Where nothing is state, nothing is known before the model runs. */
static void loops_of_inference_stay(void **state)
{
	(void)state;
	sw_program *program = read_text(cases[0].text), *out;
	program->aliases.len = 0;
	out = canonical(program);
	assert_int_equal(count_opcode(out, SW_OP_WHILE), 1);
	sw_program_free(out);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_data_have_their_own_loop),
		cmocka_unit_test(loops_of_inference_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
