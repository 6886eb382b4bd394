/* Rematerialisation: the points found in a training step, the results under every policy, and the
 * memory that it saves. */
#include "rewrite/programs.h"
#include "rewrite/recorded.h"

#include <glob.h>
#include <string.h>

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"

static const sw_remat_device device = {.flops_per_s = 100e12, .bytes_per_s = 1e12};

typedef struct fixture {
	sw_program *program; /* canonical */
	sw_remat_points points;
	sw_remat_policy_list policies;
} fixture;

static void fixture_init(fixture *f, const char *path)
{
	sw_error err;
	sw_program *program = read_file(path);
	f->program = canonical(program);
	sw_program_free(program);
	sw_remat_points_init(&f->points, f->program);
	assert_ok(sw_remat_policies(&f->points, device, &f->policies, &err), &err);
}

static void fixture_named(fixture *f, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), PROGRAMS "%s.hlo.gz", name);
	fixture_init(f, path);
}

static void fixture_clear(fixture *f)
{
	sw_vec_clear(&f->policies);
	sw_remat_points_clear(&f->points);
	sw_program_free(f->program);
}

static const sw_remat_policy *find_policy(const fixture *f, const char *name)
{
	for (size_t i = 0; i < f->policies.len; i++)
		if (strcmp(f->policies.data[i].name, name) == 0)
			return &f->policies.data[i];
	return NULL;
}

static const sw_remat_policy *policy(const fixture *f, const char *name)
{
	const sw_remat_policy *found = find_policy(f, name);
	if (!found)
		fail_msg("%s has no policy '%s'", f->program->name, name);
	return found;
}

static sw_program *rematerialised(const fixture *f, const sw_remat_policy *policy)
{
	sw_program *out;
	sw_error err;
	assert_ok(sw_rewrite_remat(f->program, &policy->what, &out, &err), &err);
	return out;
}

/* ---- results ---------------------------------------------------------------------------- */

static void check_bits(const char *path)
{
	fixture f;
	recorded inputs = read_recorded(path);
	fixture_init(&f, path);
	for (size_t i = 1; i < f.policies.len; i++) {
		char what[600];
		sw_program *out = rematerialised(&f, &f.policies.data[i]);
		snprintf(what, sizeof(what), "%s, %s", path, f.policies.data[i].name);
		assert_non_null(out);
		assert_same_bits(f.program, out, &inputs, what);
		sw_program_free(out);
	}
	recorded_clear(&inputs);
	fixture_clear(&f);
}

static void every_policy_gives_the_same_bits(void **state)
{
	(void)state;
	glob_t found;
	assert_int_equal(glob(PROGRAMS "*.recorded.safetensors.gz", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[512];
		snprintf(path, sizeof(path), "%.*s.hlo.gz",
		         (int)(strlen(found.gl_pathv[i]) - strlen(".recorded.safetensors.gz")),
		         found.gl_pathv[i]);
		check_bits(path);
	}
	globfree(&found);
}

/* Policies that gain nothing give the same bits, too. */
static void every_row_of_the_table_gives_the_same_bits(void **state)
{
	fixture f;
	recorded inputs = read_recorded(PROGRAMS "gpt-tiny.hlo.gz");
	(void)state;
	fixture_named(&f, "gpt-tiny");
	for (size_t i = 0; sw_remat_policy_name(i); i++) {
		sw_error err;
		sw_program *out;
		assert_ok(sw_rewrite_remat_policy(f.program, sw_remat_policy_name(i), device, &out,
		                                  &err),
		          &err);
		assert_same_bits(f.program, out, &inputs, sw_remat_policy_name(i));
		sw_program_free(out);
	}
	recorded_clear(&inputs);
	fixture_clear(&f);
}

/* Copies are not equal to the originals: a second canonical pass changes nothing. */
static void copies_are_not_merged_again(void **state)
{
	(void)state;
	static const char *const names[] = {"gpt-tiny", "gpt-124m", "unet-tiny",
	                                    "gpt-dropout-tiny"};
	for (size_t n = 0; n < SW_COUNT(names); n++) {
		fixture f;
		fixture_named(&f, names[n]);
		for (size_t i = 1; i < f.policies.len; i++) {
			sw_program *out = rematerialised(&f, &f.policies.data[i]),
				   *again = canonical(out);
			assert_same_program(again, out);
			sw_program_free(again);
			sw_program_free(out);
		}
		fixture_clear(&f);
	}
}

/* ---- the points that are found ---------------------------------------------------------- */

/* In a decoder only the residual stream is alive behind each attention and each MLP, and once more
 * behind the last norm. */
static void a_transformer_is_narrow_behind_attention_and_mlp(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int layers;
	} cases[] = {
		{"gpt-tiny", 2}, {"gpt", 2}, {"gpt-124m", 12}, {"llama3-8b", 32}, {"gpt-175b", 96}};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		fixture f;
		sw_program *program;
		char path[512];
		snprintf(path, sizeof(path), PROGRAMS "%s.hlo.gz", cases[i].name);
		program = read_file(path);
		f.program = canonical(program);
		sw_remat_points_init(&f.points, f.program);
		assert_int_equal(f.points.n_segments, 1 + 2 * cases[i].layers);
		sw_remat_points_clear(&f.points);
		sw_program_free(f.program);
		sw_program_free(program);
	}
}

/* Count the values of the flow that are kept with every `every`-th narrow place. */
static int count_critical(const fixture *f, int32_t every)
{
	int n = 0;
	for (sw_id v = 0; v < f->program->values.len; v++)
		n += f->points.segment[f->program->values.data[v].op] >= 0 &&
		     sw_remat_is_critical(&f->points, v, every);
	return n;
}

static void one_value_is_critical_between_layers(void **state)
{
	(void)state;
	fixture f;
	fixture_named(&f, "gpt-124m");
	assert_int_equal(count_critical(&f, 1), 25);
	assert_int_equal(count_critical(&f, 2), 13);
	assert_int_equal(count_critical(&f, 25), 1);
	fixture_clear(&f);
}

/* Equal layers give equal segments; the first holds the embedding too, the last only a norm. */
static void segments_repeat_as_layers_do(void **state)
{
	(void)state;
	fixture f;
	int ops[25] = {0};
	fixture_named(&f, "gpt-124m");
	for (sw_id id = 0; id < f.program->ops.len; id++)
		if (f.points.segment[id] >= 0)
			ops[f.points.segment[id]]++;
	for (int s = 3; s < 24; s++)
		assert_int_equal(ops[s], ops[s - 2]);
	fixture_clear(&f);
}

/* ---- memory ----------------------------------------------------------------------------- */

static int64_t largest_value(const fixture *f)
{
	int64_t largest = 0;
	for (sw_id v = 0; v < f->program->values.len; v++)
		if (f->points.segment[f->program->values.data[v].op] >= 0)
			largest = SW_MAX(largest, sw_shape_bytes(sw_value_shape(f->program, v)));
	return largest;
}

/* The kept values are the critical ones. Side values, and values that the head of the network
 * reads, are few. */
static void blocks_keep_the_critical_values(void **state)
{
	(void)state;
	fixture f;
	fixture_named(&f, "vit");
	int64_t critical = 0;
	for (sw_id v = 0; v < f.program->values.len; v++)
		if (f.points.segment[f.program->values.data[v].op] >= 0 &&
		    sw_remat_is_critical(&f.points, v, 1))
			critical += sw_shape_bytes(sw_value_shape(f.program, v));
	int64_t kept = policy(&f, "blocks")->kept_bytes;
	assert_true(kept <= critical + critical / 10);
	assert_true(kept >= critical - critical / 10);
	fixture_clear(&f);
}

static void check_peak_falls(const char *name)
{
	fixture f;
	fixture_named(&f, name);
	const sw_remat_policy *none = &f.policies.data[0];
	assert_string_equal(none->name, "none");
	assert_int_equal(none->peak_bytes, sw_program_peak_bytes(f.program, f.program->entry));
	/* Only values that are no longer kept can have disappeared; some of the largest values are
	 * alive while one segment is executed. */
	const sw_remat_policy *cheap = policy(&f, "elementwise");
	int64_t freed = none->kept_bytes - cheap->kept_bytes;
	assert_true(cheap->peak_bytes <= none->peak_bytes - freed + 10 * largest_value(&f));
	assert_true((double)cheap->peak_bytes < 0.51 * (double)none->peak_bytes);
	assert_true(cheap->added_flops < 0.01 * sw_program_flops(f.program));
	for (size_t i = 1; i < f.policies.len; i++) {
		assert_true(f.policies.data[i].peak_bytes < f.policies.data[i - 1].peak_bytes);
		/* A forward pass is a third of the step, and is computed again at most once. */
		assert_true(f.policies.data[i].added_flops <= 0.35 * sw_program_flops(f.program));
	}
	fixture_clear(&f);
}

static void the_peak_falls_with_every_policy(void **state)
{
	(void)state;
	check_peak_falls("gpt");
	check_peak_falls("gpt-124m");
}

/* ---- small programs --------------------------------------------------------------------- */

static void check_nothing(const char *hlo)
{
	sw_program *program = read_text(hlo), *c = canonical(program), *out;
	sw_remat_points points;
	sw_remat_policy_list policies;
	sw_error err;
	sw_remat_points_init(&points, c);
	assert_int_equal(points.n_segments, 0);
	assert_ok(sw_remat_policies(&points, device, &policies, &err), &err);
	assert_int_equal(policies.len, 1);
	assert_ok(sw_rewrite_remat(c, &policies.data[0].what, &out, &err), &err);
	assert_null(out);
	sw_vec_clear(&policies);
	sw_remat_points_clear(&points);
	sw_program_free(c);
	sw_program_free(program);
}

static void programs_that_do_not_train_are_not_changed(void **state)
{
	(void)state;
	check_nothing("HloModule m\nENTRY e { x = f32[8] parameter(0)\n y = f32[8] tanh(x)\n"
	              " ROOT z = f32[8] multiply(x, y) }\n");
	check_nothing("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	              "ENTRY e { w = f32[8] parameter(0)\n x = f32[8] parameter(1)\n"
	              " s = f32[8] add(w, x)\n ROOT r = (f32[8]) tuple(s) }\n");
}

#define LAYERS 4

/* Write a step of LAYERS layers that choose between two values by `mask`, which is pred[8,8]; its
 * backward pass is no true one, but has the form of one. */
static sw_program *masked_step(const char *mask)
{
	sw_text t = {0};
	sw_text_add(&t, "HloModule m, input_output_alias={ ");
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&t, "%s{%d}: (%d, {}, may-alias)", l ? ", " : "", l, l);
	sw_text_addf(&t, " }\nENTRY e {\n%s", mask);
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&t, "w%d = f32[8,8] parameter(%d)\n", l, l);
	sw_text_addf(&t, "h0 = f32[8,8] parameter(%d)\n", LAYERS);
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&t,
		             "a%d = f32[8,8] dot(h%d, w%d), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n"
		             "b%d = f32[8,8] tanh(a%d)\nc%d = f32[8,8] sine(b%d)\nd%d = f32[8,8] "
		             "cosine(c%d)\n"
		             "h%d = f32[8,8] select(mask, d%d, a%d)\n",
		             l, l, l, l, l, l, l, l, l, l + 1, l, l);
	sw_text_addf(&t, "g%d = f32[8,8] multiply(h%d, h%d)\n", LAYERS, LAYERS, LAYERS);
	for (int l = LAYERS; l-- > 0;)
		sw_text_addf(
			&t,
			"p%d = f32[8,8] multiply(g%d, d%d)\nq%d = f32[8,8] multiply(p%d, c%d)\n"
			"r%d = f32[8,8] multiply(q%d, b%d)\ns%d = f32[8,8] multiply(r%d, a%d)\n"
			"t%d = f32[8,8] select(mask, s%d, g%d)\n"
			"dw%d = f32[8,8] dot(h%d, t%d), lhs_contracting_dims={0}, "
			"rhs_contracting_dims={0}\n"
			"n%d = f32[8,8] subtract(w%d, dw%d)\n"
			"g%d = f32[8,8] dot(t%d, w%d), lhs_contracting_dims={1}, "
			"rhs_contracting_dims={1}\n",
			l, l + 1, l, l, l, l, l, l, l, l, l, l, l, l, l + 1, l, l, l, l, l, l, l, l,
			l);
	sw_text_add(
		&t,
		"ROOT out = (f32[8,8], f32[8,8], f32[8,8], f32[8,8]) tuple(n0, n1, n2, n3) }\n");
	sw_program *program = read_text(t.data);
	sw_text_clear(&t);
	return program;
}

#define IOTA_MASK                                                                                  \
	"i = s32[8,8] iota(), iota_dimension=0\nj = s32[8,8] iota(), iota_dimension=1\n"           \
	"mask = pred[8,8] compare(i, j), direction=GE\n"
#define RANDOM_MASK                                                                                \
	"zero = f32[] constant(0)\none = f32[] constant(1)\nhalf = f32[] constant(0.5)\n"          \
	"u = f32[8,8] rng(zero, one), distribution=rng_uniform\n"                                  \
	"halves = f32[8,8] broadcast(half), dimensions={}\nmask = pred[8,8] compare(u, halves), "  \
	"direction=LT\n"

static void fixture_text(fixture *f, sw_program *program)
{
	sw_error err;
	f->program = canonical(program);
	sw_program_free(program);
	sw_remat_points_init(&f->points, f->program);
	assert_ok(sw_remat_policies(&f->points, device, &f->policies, &err), &err);
}

static void run_on_small_numbers(const sw_program *program, sw_tensor *outputs)
{
	sw_interpreter *interpreter;
	sw_interpret_options options = {.blas_threads = 1};
	sw_tensor inputs[LAYERS + 1];
	sw_rng rng = {.seed = 1};
	sw_error err;
	sw_shape shape = {.type = SW_F32, .rank = 2, .dims = (const int64_t[]){8, 8}};
	for (int i = 0; i <= LAYERS; i++) {
		assert_ok(sw_tensor_new(shape, true, &inputs[i], &err), &err);
		for (int64_t e = 0; e < 64; e++)
			sw_element_set(SW_F32, sw_tensor_data(inputs[i]), e,
			               (double)sw_rng_below(&rng, 64) / 128);
	}
	assert_ok(sw_interpreter_new(program, &options, &interpreter, &err), &err);
	assert_ok(sw_interpret(interpreter, inputs, LAYERS + 1, outputs, LAYERS, &err), &err);
	sw_interpreter_free(interpreter);
}

/* A mask of two-dimensional iotas is made again from one-dimensional ones. */
static void masks_are_made_again(void **state)
{
	(void)state;
	fixture f;
	sw_tensor before[LAYERS], after[LAYERS];
	fixture_text(&f, masked_step(IOTA_MASK));
	sw_program *out = rematerialised(&f, policy(&f, "elementwise")), *again = canonical(out);
	assert_same_program(again, out);
	assert_true(count_opcode(out, SW_OP_COMPARE) > 1);
	assert_true(count_opcode(out, SW_OP_DOT) == count_opcode(f.program, SW_OP_DOT));
	run_on_small_numbers(f.program, before);
	run_on_small_numbers(out, after);
	for (int i = 0; i < LAYERS; i++) {
		assert_memory_equal(sw_tensor_data(before[i]), sw_tensor_data(after[i]),
		                    64 * sizeof(float));
		sw_tensor_drop(&before[i]);
		sw_tensor_drop(&after[i]);
	}
	sw_program_free(again);
	sw_program_free(out);
	fixture_clear(&f);
}

/* A random number drawn a second time would be another number. */
static void random_numbers_without_a_state_are_kept(void **state)
{
	(void)state;
	fixture f;
	fixture_text(&f, masked_step(RANDOM_MASK));
	assert_true(f.policies.len > 1);
	for (size_t i = 1; i < f.policies.len; i++) {
		sw_program *out = rematerialised(&f, &f.policies.data[i]);
		assert_int_equal(count_opcode(out, SW_OP_RNG), 1);
		sw_program_free(out);
	}
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_gives_the_same_bits),
		cmocka_unit_test(every_row_of_the_table_gives_the_same_bits),
		cmocka_unit_test(copies_are_not_merged_again),
		cmocka_unit_test(a_transformer_is_narrow_behind_attention_and_mlp),
		cmocka_unit_test(one_value_is_critical_between_layers),
		cmocka_unit_test(segments_repeat_as_layers_do),
		cmocka_unit_test(blocks_keep_the_critical_values),
		cmocka_unit_test(the_peak_falls_with_every_policy),
		cmocka_unit_test(programs_that_do_not_train_are_not_changed),
		cmocka_unit_test(masks_are_made_again),
		cmocka_unit_test(random_numbers_without_a_state_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
