/*
 * Windows split over space: random ones along one and two dimensions, under every strategy; and the
 * bytes that a halo moves.
 *
 *   SW_SEED=N runs other cases, SW_CASES=N runs N cases in all.
 */
#include "rules/samples_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const sw_atoms clusters[] = {{1, {2}},       {1, {3}},    {1, {4}},       {2, {2, 2}},
                                    {2, {2, 3}},    {2, {3, 2}}, {3, {2, 2, 2}}, {1, {6}},
                                    {3, {2, 3, 2}}, {2, {4, 2}}};

static int64_t from_environment(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoll(text, NULL, 10) : otherwise;
}

/* ---- random windows --------------------------------------------------------------------- */

static int64_t between(sw_rng *rng, int64_t low, int64_t high)
{
	return low + sw_rng_below(rng, high - low + 1);
}

/* A window over one or two dimensions. */
typedef struct frame {
	int n;
	int64_t input[2], output[2], size[2], stride[2], low[2], high[2], lhs_dilate[2],
		rhs_dilate[2], reversal[2];
} frame;

typedef enum kind { FORWARD, KERNEL_GRADIENT, POOL, RUNNING, SCATTER, N_KINDS } kind;

static int64_t output_of(const frame *f, int d)
{
	int64_t padded = (f->input[d] - 1) * f->lhs_dilate[d] + 1 + f->low[d] + f->high[d],
		extent = (f->size[d] - 1) * f->rhs_dilate[d] + 1;
	return padded < extent ? 0 : (padded - extent) / f->stride[d] + 1;
}

/* Return 1 most of the time, at most 3. */
static int64_t some_dilation(sw_rng *rng)
{
	int64_t dilation = between(rng, -3, 3);
	return SW_MAX(1, dilation);
}

static void draw_sliding(frame *f, int d, sw_rng *rng, kind what)
{
	int64_t most = what == KERNEL_GRADIENT ? f->input[d] : 5;

	f->size[d] = between(rng, what == KERNEL_GRADIENT && most > 4 ? most - 3 : 1, most);
	f->stride[d] = between(rng, 1, 3);
	f->low[d] = between(rng, -3, 5);
	f->high[d] = between(rng, -3, 5);
	f->lhs_dilate[d] = what == SCATTER ? 1 : some_dilation(rng);
	f->rhs_dilate[d] = what == SCATTER ? 1 : some_dilation(rng);
	f->reversal[d] = what <= KERNEL_GRADIENT && sw_rng_below(rng, 3) == 0;
}

static void draw_running(frame *f, int d, sw_rng *rng)
{
	bool forward = sw_rng_below(rng, 2) == 0, wider = sw_rng_below(rng, 4) == 0;

	f->size[d] = f->input[d] + (wider ? between(rng, 1, 3) : 0);
	f->stride[d] = f->lhs_dilate[d] = f->rhs_dilate[d] = 1;
	f->low[d] = forward ? f->size[d] - 1 : 0;
	f->high[d] = forward ? 0 : f->size[d] - 1;
}

static frame random_frame(sw_rng *rng, kind what)
{
	static const int64_t sizes[] = {2, 4, 6, 8, 9, 12, 12, 16};
	frame f = {.n = (int)between(rng, 1, 2)};

	for (int d = 0; d < f.n; d++) {
		f.input[d] = sizes[sw_rng_below(rng, SW_COUNT(sizes))];
		if (what == RUNNING && (d == 0 || sw_rng_below(rng, 2)))
			draw_running(&f, d, rng);
		else
			draw_sliding(&f, d, rng, what);
		f.output[d] = output_of(&f, d);
	}
	return f;
}

/* Add "f32[1,4,6,1]": the sizes between the marks. */
static void add_shape(sw_text *text, const char *type, const char *before, int n,
                      const int64_t *sizes, const char *after)
{
	sw_text_addf(text, "%s[%s%lld", type, before, (long long)sizes[0]);
	if (n > 1)
		sw_text_addf(text, ",%lld", (long long)sizes[1]);
	sw_text_addf(text, "%s]", after);
}

static void add_list(sw_text *text, const char *name, int n, const int64_t *list)
{
	sw_text_addf(text, " %s=%lld", name, (long long)list[0]);
	if (n > 1)
		sw_text_addf(text, "x%lld", (long long)list[1]);
}

static void add_window(sw_text *text, const frame *f)
{
	sw_text_addf(text, "window={pad=%lld_%lld", (long long)f->low[0], (long long)f->high[0]);
	if (f->n > 1)
		sw_text_addf(text, "x%lld_%lld", (long long)f->low[1], (long long)f->high[1]);
	add_list(text, "size", f->n, f->size);
	add_list(text, "stride", f->n, f->stride);
	add_list(text, "lhs_dilate", f->n, f->lhs_dilate);
	add_list(text, "rhs_dilate", f->n, f->rhs_dilate);
	add_list(text, "rhs_reversal", f->n, f->reversal);
	sw_text_add(text, "}, ");
}

/* The arguments of window_sample. */
typedef struct texts {
	sw_text result, operands, attributes;
} texts;

static const char *write_convolution(texts *t, const frame *f)
{
	add_shape(&t->result, "f32", "1,", f->n, f->output, ",1");
	add_shape(&t->operands, "f32", "1,", f->n, f->input, ",1");
	add_shape(&t->operands, " f32", "", f->n, f->size, ",1,1");
	sw_text_add(&t->attributes,
	            f->n == 1 ? "dim_labels=b0f_0io->b0f" : "dim_labels=b01f_01io->b01f");
	return "convolution";
}

static const char *write_reduction(texts *t, const frame *f, sw_rng *rng)
{
	static const char *const computations[] = {"add", "max", "multiply", "last"};
	int64_t which = sw_rng_below(rng, SW_COUNT(computations) + 1);
	bool several = which == SW_COUNT(computations);

	add_shape(&t->result, several ? "(f32" : "f32", "", f->n, f->output, "");
	add_shape(&t->operands, "f32", "", f->n, f->input, "");
	if (several) {
		add_shape(&t->result, ", s32", "", f->n, f->output, "");
		sw_text_add(&t->result, ")");
		add_shape(&t->operands, " s32", "", f->n, f->input, "");
	}
	sw_text_add(&t->operands, several ? " f32[] s32[]" : " f32[]");
	sw_text_addf(&t->attributes, "to_apply=%s", several ? "arg_max" : computations[which]);
	return "reduce-window";
}

static const char *write_scatter(texts *t, const frame *f, sw_rng *rng)
{
	static const char *const selects[] = {"ge", "gt", "le", "not_lt"}, *const scatters[] = {
										   "add", "max",
										   "min",
										   "multiply"};

	add_shape(&t->result, "f32", "", f->n, f->input, "");
	add_shape(&t->operands, "f32", "", f->n, f->input, "");
	add_shape(&t->operands, " f32", "", f->n, f->output, "");
	sw_text_add(&t->operands, " f32[]");
	sw_text_addf(&t->attributes, "select=%s, scatter=%s", selects[sw_rng_below(rng, 4)],
	             scatters[sw_rng_below(rng, 4)]);
	return "select-and-scatter";
}

static void write_random(brute_sample *s, kind what, sw_rng *rng)
{
	frame f = random_frame(rng, what);
	texts t = {{0}, {0}, {0}};

	add_window(&t.attributes, &f);
	const char *op = what <= KERNEL_GRADIENT ? write_convolution(&t, &f)
	                 : what == SCATTER       ? write_scatter(&t, &f, rng)
	                                         : write_reduction(&t, &f, rng);
	window_sample(s, t.result.data, t.operands.data, op, t.attributes.data);
	sw_text_clear(&t.result);
	sw_text_clear(&t.operands);
	sw_text_clear(&t.attributes);
}

static bool communicates(const brute_sample *s)
{
	sw_arena arena;
	bool any = false;

	sw_arena_init(&arena);
	const sw_rule *rule = sw_rule_make(s->program, s->op, &arena);
	for (int32_t f = 0; f < rule->n_factors; f++)
		any |= rule->factors[f].exchange != SW_EXCHANGE_NONE;
	sw_arena_clear(&arena);
	return any;
}

static void random_windows(kind what, int64_t usual)
{
	sw_rng rng = {.seed = (uint64_t)(from_environment("SW_SEED", 1) * 10 + what)};
	int64_t cases = from_environment("SW_CASES", usual * N_KINDS) / N_KINDS;
	brute_counts counts = {0};

	for (int64_t i = 0; i < cases;) {
		brute_sample s;
		brute_init(&s);
		write_random(&s, what, &rng);
		const sw_atoms *atoms = &clusters[sw_rng_below(&rng, SW_COUNT(clusters))];
		if (communicates(&s)) {
			brute_check(&s, atoms, 40, sw_rng_bits(&rng), &counts);
			i++;
		}
		brute_clear(&s);
	}
	print_message("%lld cases, %lld strategies accepted, %lld devices\n", (long long)cases,
	              (long long)counts.accepted, (long long)counts.devices);
	assert_true(counts.accepted > cases);
}

static void random_convolutions(void **state)
{
	(void)state;
	random_windows(FORWARD, 150);
}

static void random_kernel_gradients(void **state)
{
	(void)state;
	random_windows(KERNEL_GRADIENT, 100);
}

static void random_pools(void **state)
{
	(void)state;
	random_windows(POOL, 100);
}

static void random_running_totals(void **state)
{
	(void)state;
	random_windows(RUNNING, 100);
}

static void random_scatters(void **state)
{
	(void)state;
	random_windows(SCATTER, 100);
}

/* ---- windows that need no neighbour ----------------------------------------------------- */

static void windows_that_need_no_neighbour_split_without_an_exchange(void **state)
{
	static const struct {
		const char *result, *operands, *op, *attributes;
		bool communicates;
	} cases[] = {
		{"f32[1,8,2]", "f32[1,8,3] f32[1,3,2]", "convolution",
	         "window={size=1}, dim_labels=b0f_0io->b0f", false},
		{"f32[1,4,2]", "f32[1,8,3] f32[1,3,2]", "convolution",
	         "window={size=1 stride=2}, dim_labels=b0f_0io->b0f", false},
		{"f32[1,4,2]", "f32[1,8,3] f32[1,3,2]", "convolution",
	         "window={size=1 stride=2 pad=-1_0}, dim_labels=b0f_0io->b0f", false},
		{"f32[1,8,2]", "f32[1,4,3] f32[1,3,2]", "convolution",
	         "window={size=1 pad=1_0 lhs_dilate=2}, dim_labels=b0f_0io->b0f", false},
		{"f32[1,1,2]", "f32[1,8,3] f32[4,3,2]", "convolution",
	         "window={size=4 rhs_dilate=2 pad=0_-1}, dim_labels=b0f_0io->b0f", false},
		{"f32[1,2,2]", "f32[1,8,3] f32[4,3,2]", "convolution",
	         "window={size=4 stride=4}, dim_labels=b0f_0io->b0f", false},
		{"f32[1,8,2]", "f32[1,8,3] f32[2,3,2]", "convolution",
	         "window={size=2 pad=1_0}, dim_labels=b0f_0io->b0f", true},
		{"f32[1,8,2]", "f32[1,4,3] f32[1,3,2]", "convolution",
	         "window={size=1 pad=2_-1 lhs_dilate=2}, dim_labels=b0f_0io->b0f", true},
		{"f32[1,1,2]", "f32[1,8,3] f32[8,3,2]", "convolution",
	         "window={size=8 rhs_reversal=1}, dim_labels=b0f_0io->b0f", true},
		{"f32[4]", "f32[8] f32[]", "reduce-window",
	         "window={size=2 stride=2}, to_apply=max", false},
		{"f32[1]", "f32[8] f32[]", "reduce-window", "window={size=8}, to_apply=add", false},
		{"f32[4]", "f32[8] f32[]", "reduce-window",
	         "window={size=3 stride=2 pad=0_1}, to_apply=max", true},
		{"f32[8]", "f32[8] f32[]", "reduce-window", "window={size=8 pad=7_0}, to_apply=max",
	         true},
		{"f32[8]", "f32[8] f32[4] f32[]", "select-and-scatter",
	         "window={size=2 stride=2}, select=ge, scatter=add", false},
	};
	(void)state;

	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		brute_sample s;
		brute_init(&s);
		window_sample(&s, cases[i].result, cases[i].operands, cases[i].op,
		              cases[i].attributes);
		if (communicates(&s) != cases[i].communicates)
			fail_msg("%s %s", cases[i].op, cases[i].attributes);
		brute_clear(&s);
	}
}

static void absurd_windows_stay_whole(void **state)
{
	static const struct {
		const char *output, *window;
	} cases[] = {
		{"f32[1]", "size=1 stride=9223372036854775807"},
		{"f32[8]", "size=1 pad=-4611686018427387904_4611686018427387904"},
		{"f32[1]", "size=1 pad=-9223372036854775807_9223372036854775800"},
		{"f32[1]", "size=1 stride=9000000000000000000 lhs_dilate=1000000000000000000"},
		{"f32[9]", "size=4611686018427387904 pad=4611686018427387904_0"},
		{"f32[9]", "size=4611686018427387904 pad=0_4611686018427387904"},
		{"f32[0]", "size=2 rhs_dilate=9000000000000000000"},
	};
	(void)state;

	for (size_t i = 0; i < SW_COUNT(cases); i++)
		for (int gradient = 0; gradient < 2; gradient++) {
			brute_sample s;
			sw_arena arena;
			char attributes[160], operands[64];
			brute_init(&s);
			sw_arena_init(&arena);
			snprintf(attributes, sizeof(attributes), "window={%s}, %s", cases[i].window,
			         gradient ? "select=ge, scatter=add" : "to_apply=add");
			snprintf(operands, sizeof(operands),
			         gradient ? "f32[8] %s f32[]" : "f32[8] f32[]", cases[i].output);
			window_sample(&s, gradient ? "f32[8]" : cases[i].output, operands,
			              gradient ? "select-and-scatter" : "reduce-window",
			              attributes);
			assert_int_equal(sw_rule_make(s.program, s.op, &arena)->n_factors, 0);
			sw_arena_clear(&arena);
			brute_clear(&s);
		}
}

/* ---- bytes moved ------------------------------------------------------------------------ */

#define LABELS "dim_labels=b01f_01io->b01f"

/* Images of 16 rows of 5 * 3 numbers; only the rows can be split by 2 and 4. */
static void halos_move_the_rows_they_need_and_no_more(void **state)
{
	static const struct {
		const char *result, *operands, *op, *attributes;
		int64_t devices, elements; /* sent by the rank that sends most */
	} cases[] = {
		/* a row to each neighbour */
		{"f32[1,16,5,7]", "f32[1,16,5,3] f32[3,3,3,7]", "convolution",
	         "window={size=3x3 pad=1_1x1_1}, " LABELS, 2, 15},
		{"f32[1,16,5,7]", "f32[1,16,5,3] f32[3,3,3,7]", "convolution",
	         "window={size=3x3 pad=1_1x1_1}, " LABELS, 4, 30},
		/* the stride needs no row from one side, or from both */
		{"f32[1,8,5,7]", "f32[1,16,5,3] f32[3,3,3,7]", "convolution",
	         "window={size=3x3 stride=2x1 pad=0_1x1_1}, " LABELS, 4, 15},
		{"f32[1,8,5,7]", "f32[1,16,5,3] f32[1,1,3,7]", "convolution",
	         "window={size=1x1 stride=2x1}, " LABELS, 4, 0},
		{"f32[1,8,5,3]", "f32[1,16,5,3] f32[]", "reduce-window",
	         "window={size=1x2x1x1 stride=1x2x1x1}, to_apply=max", 4, 0},
		/* the gradient with respect to the kernel: rows of the input, not of the far larger
	         * output gradient */
		{"f32[3,3,3,7]", "f32[1,16,5,3] f32[1,16,5,7]", "convolution",
	         "window={size=16x5 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf", 4, 30},
		/* one total per block and column: a gather of 4 */
		{"f32[16,15]", "f32[16,15] f32[]", "reduce-window",
	         "window={size=16x1 pad=15_0x0_0}, to_apply=add", 4, 45},
	};
	(void)state;

	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_atoms atoms = {1, {(int32_t)cases[i].devices}};
		brute_counts counts = {0};
		brute_sample s;
		brute_init(&s);
		window_sample(&s, cases[i].result, cases[i].operands, cases[i].op,
		              cases[i].attributes);
		brute_check(&s, &atoms, 100, 1, &counts);
		assert_true(counts.executed > 1);
		if (counts.payload_bytes != 4 * cases[i].elements)
			fail_msg("%s on %lld devices moves %lld bytes", cases[i].attributes,
			         (long long)cases[i].devices, (long long)counts.payload_bytes);
		brute_clear(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_convolutions),
		cmocka_unit_test(random_kernel_gradients),
		cmocka_unit_test(random_pools),
		cmocka_unit_test(random_running_totals),
		cmocka_unit_test(random_scatters),
		cmocka_unit_test(windows_that_need_no_neighbour_split_without_an_exchange),
		cmocka_unit_test(absurd_windows_stay_whole),
		cmocka_unit_test(halos_move_the_rows_they_need_and_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
