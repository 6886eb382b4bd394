/* Microbatches: the looped program computes the results of the original; tests of the ops that
 * loop, and of the reasons for which a program is refused. */
#include "rewrite/looped.h"

#include <string.h>

static void assert_allowed(const looped *l)
{
	if (!l->after)
		fail_msg("%s: %s", l->name, l->refusal.message);
}

/* Count the loops of the entry that have this trip count. */
static int32_t loops_of(const sw_program *program, int64_t trips)
{
	int32_t n = 0;
	for (size_t i = 0; i < sw_entry(program)->ops.len; i++) {
		const sw_op *op = sw_op_at(program, sw_entry(program)->ops.data[i]);
		n += op->opcode == SW_OP_WHILE && op->attrs->loop.trip_count == trips;
	}
	return n;
}

/* ---- results ---------------------------------------------------------------------------- */

static void every_small_fixture_gives_the_same(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int32_t counts[3];
	} cases[] = {
		{"mlp", {32}},
		{"mlp-bf16", {2, 4}},
		{"mlp-clip", {4}},
		{"gpt-tiny", {2, 8}},
		{"gpt-tiny-clip", {4}},
		{"gpt-tiny-scan", {2, 4}},
		{"gpt-tiny-scan-clip", {4}},
		{"gpt-dropout-tiny", {2, 4}},
		{"llama-gqa-tiny", {4}},
		{"bert-tiny", {2, 4}},
		{"bert-tiny-clip", {4}},
		{"dnabert-tiny", {2}},
		{"t5-tiny", {2}},
		{"t5-tiny-clip", {4}},
		{"vit-tiny", {2, 4}},
		{"lstm-lm-tiny", {2, 4}},
		{"mamba-tiny", {2, 4}},
		{"mamba-tiny-associative", {4}},
		{"moe-gshard-tiny", {2, 4}},
		{"moe-mixtral-tiny-scan", {2}},
		{"dlrm-tiny", {2, 4}},
		{"ncf-tiny", {2, 4}},
		{"odd-tiny", {3, 6}},
		{"resnet-tiny", {2}},
		{"vgg-tiny", {2, 4}},
		{"unet-tiny", {2}},
		{"forward-forward-tiny", {4}},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		for (size_t k = 0; k < SW_COUNT(cases[i].counts) && cases[i].counts[k]; k++) {
			looped l;
			looped_init(&l, cases[i].name, cases[i].counts[k]);
			assert_allowed(&l);
			assert_equal_results(&l);
			looped_clear(&l);
		}
}

/* ---- small programs --------------------------------------------------------------------- */

#define STATE(outputs) "HloModule m, input_output_alias={ " outputs " }\n"
#define REDUCERS                                                                                   \
	"%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] "           \
	"parameter(1)\n"                                                                           \
	"  ROOT %s = f32[] add(%a, %b)\n}\n"                                                       \
	"%max (c: f32[], d: f32[]) -> f32[] {\n  %c = f32[] parameter(0)\n  %d = f32[] "           \
	"parameter(1)\n"                                                                           \
	"  ROOT %t = f32[] maximum(%c, %d)\n}\n"

/* Check that the looped program gives the same numbers and has this many loops. */
static void assert_loops(const char *hlo, int32_t microbatches, int32_t loops)
{
	looped l;
	looped_init_text(&l, hlo, microbatches);
	assert_allowed(&l);
	assert_int_equal(loops_of(l.after, microbatches), loops);
	assert_equal_results(&l);
	looped_clear(&l);
}

static void results_with_the_batch_are_stored_in_place(void **state)
{
	(void)state;
	assert_loops(
		"HloModule m\nENTRY %e (x: f32[12,5]) -> (f32[3,12], f32[24,5], f32[12,5]) {\n"
		"  %x = f32[12,5] parameter(0)\n  %d = f32[12,5] sine(%x)\n"
		"  %t = f32[5,12] transpose(%d), dimensions={1,0}\n"
		"  %s = f32[3,12] slice(%t), slice={[1:4], [0:12]}\n"
		"  %b = f32[12,2,5] broadcast(%d), dimensions={0,2}\n  %r = f32[24,5] reshape(%b)\n"
		"  ROOT %o = (f32[3,12], f32[24,5], f32[12,5]) tuple(%s, %r, %d)\n}\n",
		4, 1);
}

/* A sum, a maximum and a logical or are each accumulated by their own operation. */
static void each_monoid_is_accumulated_as_such(void **state)
{
	(void)state;
	assert_loops(
		"HloModule m\n" REDUCERS "%or (e: pred[], f: pred[]) -> pred[] {\n  %e = pred[] "
		"parameter(0)\n  %f = pred[] parameter(1)\n"
		"  ROOT %u = pred[] or(%e, %f)\n}\n"
		"ENTRY %m (x: f32[12,5]) -> (f32[5], f32[5], pred[5], f32[5]) {\n  %x = f32[12,5] "
		"parameter(0)\n"
		"  %i = f32[] constant(1.5)\n  %l = f32[] constant(-inf)\n  %n = pred[] "
		"constant(false)\n"
		"  %k = f32[12,5] broadcast(%i), dimensions={}\n  %p = pred[12,5] compare(%x, %k), "
		"direction=GT\n"
		"  %a = f32[5] reduce(%x, %i), dimensions={0}, to_apply=%add\n"
		"  %b = f32[5] reduce(%x, %l), dimensions={0}, to_apply=%max\n"
		"  %c = pred[5] reduce(%p, %n), dimensions={0}, to_apply=%or\n  %d = f32[5] "
		"negate(%b)\n"
		"  ROOT %o = (f32[5], f32[5], pred[5], f32[5]) tuple(%a, %b, %c, %d)\n}\n",
		6, 1);
}

#define CENTRED                                                                                    \
	"ENTRY %e (x: f32[12,5], w: f32[5]) -> (f32[5]) {\n"                                       \
	"  %x = f32[12,5] parameter(0)\n  %w = f32[5] parameter(1)\n"                              \
	"  %z = f32[] constant(0)\n  %n = f32[] constant(0.083333333)\n"                           \
	"  %y = f32[12,5] exponential(%x)\n"                                                       \
	"  %a = f32[5] reduce(%y, %z), dimensions={0}, to_apply=%add\n"                            \
	"  %k = f32[5] broadcast(%n), dimensions={}\n  %mean = f32[5] multiply(%a, %k)\n"          \
	"  %m = f32[12,5] broadcast(%mean), dimensions={1}\n"                                      \
	"  %c = f32[12,5] subtract(%y, %m)\n  %q = f32[12,5] multiply(%c, %c)\n"                   \
	"  %v = f32[5] reduce(%q, %z), dimensions={0}, to_apply=%add\n"                            \
	"  %u = f32[5] add(%w, %v)\n  ROOT %o = (f32[5]) tuple(%u)\n}\n"

/* A variance needs the mean of the whole batch: a value read by both loops is stored by the
 * first. */
static void a_statistic_of_the_batch_makes_two_loops(void **state)
{
	(void)state;
	const char *hlo = STATE("{0}: (1, {}, may-alias)") REDUCERS CENTRED;
	looped l;
	sw_phases phases;
	assert_loops(hlo, 3, 2);
	looped_init_text(&l, hlo, 2);
	sw_phases_init(&phases, l.before, &l.sidecar);
	assert_int_equal(phases.n, 2);
	assert_int_equal(phases.phases[0].n_sums, 1);
	assert_int_equal(phases.phases[0].stored_bytes, 12 * 5 * 4);
	assert_int_equal(phases.phases[1].n_leaving, 1);
	assert_string_equal(sw_op_at(l.before, phases.phases[1].leaving[0].reader)->name, "u");
	sw_phases_clear(&phases);
	looped_clear(&l);
}

/* rng-bit-generator runs by position in the loop; its state is advanced outside. */
static void random_numbers_are_those_of_the_whole(void **state)
{
	(void)state;
	static const char *const algorithms[] = {"rng_three_fry", "rng_philox"};
	for (size_t i = 0; i < SW_COUNT(algorithms); i++) {
		char hlo[1024];
		snprintf(
			hlo, sizeof(hlo),
			STATE("{1}: (1, {}, may-alias)") "ENTRY %%e (x: u32[12,5], s: u64[2]) -> "
							 "(u32[12,5], u64[2]) {\n"
							 "  %%x = u32[12,5] parameter(0)\n  %%s = "
							 "u64[2] "
							 "parameter(1)\n"
							 "  %%g = (u64[2], u32[12,5]) "
							 "rng-bit-generator(%%s), algorithm=%s\n"
							 "  %%n = u64[2] get-tuple-element(%%g), "
							 "index=0\n  %%b = u32[12,5] "
							 "get-tuple-element(%%g), index=1\n"
							 "  %%y = u32[12,5] xor(%%x, %%b)\n  ROOT "
							 "%%o = "
							 "(u32[12,5], u64[2]) tuple(%%y, %%n)\n}\n",
			algorithms[i]);
		assert_loops(hlo, 4, 1);
	}
}

/* The words of a key, which a step is given anew, are no rows of the batch; nor is what a generator
 * begins with. */
static void a_key_among_the_data_has_no_batch(void **state)
{
	(void)state;
	assert_loops("HloModule m\nENTRY %e (x: u32[12,5], k: u32[2], s: u64[2]) -> u32[12,5] {\n"
	             "  %x = u32[12,5] parameter(0)\n  %k = u32[2] parameter(1)\n"
	             "  %s = u64[2] parameter(2)\n"
	             "  %a = u32[1] slice(%k), slice={[0:1]}\n  %p = u32[] reshape(%a)\n"
	             "  %c = u32[1] slice(%k), slice={[1:2]}\n  %q = u32[] reshape(%c)\n"
	             "  %m = u32[] xor(%p, %q)\n  %w = u32[12,5] broadcast(%m), dimensions={}\n"
	             "  %y = u32[12,5] xor(%x, %w)\n"
	             "  %g = (u64[2], u32[12,5]) rng-bit-generator(%s), algorithm=rng_philox\n"
	             "  %b = u32[12,5] get-tuple-element(%g), index=1\n"
	             "  ROOT %r = u32[12,5] xor(%y, %b)\n}\n",
	             4, 1);
}

/* Nor are the words of a key that a loop reads, or those of two keys beside each other. */
static void a_key_that_a_loop_reads_has_no_batch(void **state)
{
	(void)state;
	assert_loops("HloModule m\n"
	             "%body (p: (s32[], u32[12,5], u32[2])) -> (s32[], u32[12,5], u32[2]) {\n"
	             "  %p = (s32[], u32[12,5], u32[2]) parameter(0)\n"
	             "  %i = s32[] get-tuple-element(%p), index=0\n"
	             "  %x = u32[12,5] get-tuple-element(%p), index=1\n"
	             "  %k = u32[2] get-tuple-element(%p), index=2\n"
	             "  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n"
	             "  %a = u32[1] slice(%k), slice={[1:2]}\n  %b = u32[] reshape(%a)\n"
	             "  %m = u32[12,5] broadcast(%b), dimensions={}\n"
	             "  %y = u32[12,5] xor(%x, %m)\n"
	             "  ROOT %r = (s32[], u32[12,5], u32[2]) tuple(%j, %y, %k)\n}\n"
	             "%test (q: (s32[], u32[12,5], u32[2])) -> pred[] {\n"
	             "  %q = (s32[], u32[12,5], u32[2]) parameter(0)\n"
	             "  %i = s32[] get-tuple-element(%q), index=0\n"
	             "  %three = s32[] constant(3)\n"
	             "  ROOT %c = pred[] compare(%i, %three), direction=LT\n}\n"
	             "ENTRY %e (x: u32[12,5], k: u32[2], s: u32[4]) -> u32[12,5] {\n"
	             "  %x = u32[12,5] parameter(0)\n  %k = u32[2] parameter(1)\n"
	             "  %s = u32[4] parameter(2)\n  %z = s32[] constant(0)\n"
	             "  %t = (s32[], u32[12,5], u32[2]) tuple(%z, %x, %k)\n"
	             "  %l = (s32[], u32[12,5], u32[2]) while(%t), condition=%test, body=%body\n"
	             "  %y = u32[12,5] get-tuple-element(%l), index=1\n"
	             "  %h = u32[2,2] reshape(%s)\n  %c = u32[2,1] slice(%h), slice={[0:2], [0:1]}\n"
	             "  %d = u32[2] reshape(%c)\n  %e = u32[1] slice(%d), slice={[0:1]}\n"
	             "  %f = u32[] reshape(%e)\n  %g = u32[12,5] broadcast(%f), dimensions={}\n"
	             "  ROOT %r = u32[12,5] xor(%y, %g)\n}\n",
	             4, 1);
}

/* Check that the batch is 12, and in these dimensions of the inputs, of which the first is state. */
static void assert_batch(const char *hlo, const int32_t *found)
{
	looped l;
	const sw_id *inputs;
	int32_t dim[8] = {-1};
	sw_arena arena;
	sw_arena_init(&arena);
	looped_init_text(&l, hlo, 2);
	uint32_t n = sw_program_inputs(l.before, l.before->entry, &arena, &inputs);
	assert_int_equal(sw_find_batch(l.before, inputs, n, dim), 12);
	assert_memory_equal(dim, found, n * sizeof(*found));
	sw_arena_clear(&arena);
	looped_clear(&l);
}

/* Rows that indices take of a table, weights of classes and rotations of positions come with the batch,
 * and have none; where a loop goes through time, the batch stands behind it. */
static void tables_among_the_data_have_no_batch(void **state)
{
	static const char *const hlo =
		STATE("{0}: (0, {}, may-alias)") REDUCERS
		"ENTRY %e (w: f32[7], x: f32[12,5,7], i: s32[12,1], t: f32[9], p: f32[5], c: f32[7]) -> "
		"(f32[7]) {\n"
		"  %w = f32[7] parameter(0)\n  %x = f32[12,5,7] parameter(1)\n"
		"  %i = s32[12,1] parameter(2)\n  %t = f32[9] parameter(3)\n"
		"  %p = f32[5] parameter(4)\n  %c = f32[7] parameter(5)\n  %z = f32[] constant(0)\n"
		"  %g = f32[12] gather(%t, %i), offset_dims={}, collapsed_slice_dims={0}, "
		"start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
		"  %r = f32[12,5,7] broadcast(%g), dimensions={0}\n"
		"  %q = f32[12,5,7] broadcast(%p), dimensions={1}\n"
		"  %d = f32[12,5,7] broadcast(%c), dimensions={2}\n"
		"  %a = f32[12,5,7] multiply(%x, %q)\n  %b = f32[12,5,7] multiply(%a, %r)\n"
		"  %y = f32[12,5,7] multiply(%b, %d)\n  %s = f32[12,5,7] sine(%y)\n"
		"  %u = f32[7] reduce(%s, %z), dimensions={0,1}, to_apply=%add\n"
		"  %v = f32[7] subtract(%w, %u)\n"
		"  ROOT %o = (f32[7]) tuple(%v)\n}\n";
	static const int32_t found[] = {-1, 0, 0, -1, -1, -1};
	(void)state;
	assert_loops(hlo, 4, 1);
	assert_batch(hlo, found);
}

/* Each member of an ensemble has a rate of its own: members are those of weights, and no batch. */
static void members_of_an_ensemble_are_no_batch(void **state)
{
	static const char *const hlo =
		STATE("{0}: (0, {}, may-alias)") REDUCERS
		"ENTRY %e (w: f32[4,5], x: f32[12,5], r: f32[4]) -> (f32[4,5]) {\n"
		"  %w = f32[4,5] parameter(0)\n  %x = f32[12,5] parameter(1)\n"
		"  %r = f32[4] parameter(2)\n"
		"  %y = f32[4,12] dot(%w, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
		"  %g = f32[4,5] dot(%y, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  %s = f32[4,5] broadcast(%r), dimensions={0}\n  %h = f32[4,5] multiply(%g, %s)\n"
		"  %v = f32[4,5] subtract(%w, %h)\n  ROOT %o = (f32[4,5]) tuple(%v)\n}\n";
	static const int32_t found[] = {-1, 0, -1};
	(void)state;
	assert_loops(hlo, 4, 1);
	assert_batch(hlo, found);
}

/* Nor are they where they stand before the batch in all that is made of both. */
static void members_before_the_batch_are_none(void **state)
{
	static const char *const hlo =
		STATE("{0}: (0, {}, may-alias)") REDUCERS
		"ENTRY %e (w: f32[4,5], x: f32[12,5], r: f32[4,12]) -> (f32[4,5]) {\n"
		"  %w = f32[4,5] parameter(0)\n  %x = f32[12,5] parameter(1)\n"
		"  %r = f32[4,12] parameter(2)\n"
		"  %y = f32[4,12] dot(%w, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
		"  %m = f32[4,12] multiply(%y, %r)\n  %k = f32[4,12] sine(%m)\n"
		"  %g = f32[4,5] dot(%k, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  %v = f32[4,5] subtract(%w, %g)\n  ROOT %o = (f32[4,5]) tuple(%v)\n}\n";
	static const int32_t found[] = {-1, 0, -1};
	(void)state;
	assert_loops(hlo, 4, 1);
	assert_batch(hlo, found);
}

/* Frozen weights that are scaled by a number are weights, and no batch. */
static void frozen_weights_that_are_scaled_are_no_batch(void **state)
{
	static const char *const hlo =
		STATE("{0}: (0, {}, may-alias)") REDUCERS
		"ENTRY %e (w: f32[5,7], x: f32[12,5], q: s8[5,7]) -> (f32[5,7]) {\n"
		"  %w = f32[5,7] parameter(0)\n  %x = f32[12,5] parameter(1)\n"
		"  %q = s8[5,7] parameter(2)\n  %c = f32[] constant(0.5)\n"
		"  %f = f32[5,7] convert(%q)\n  %b = f32[5,7] broadcast(%c), dimensions={}\n"
		"  %d = f32[5,7] multiply(%f, %b)\n"
		"  %y = f32[12,7] dot(%x, %d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  %z = f32[12,7] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  %s = f32[12,7] add(%y, %z)\n"
		"  %g = f32[5,7] dot(%x, %s), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
		"  %v = f32[5,7] subtract(%w, %g)\n  ROOT %o = (f32[5,7]) tuple(%v)\n}\n";
	static const int32_t found[] = {-1, 0, -1};
	(void)state;
	assert_loops(hlo, 4, 1);
	assert_batch(hlo, found);
}

/* A loop over time takes rows of time: the batch is behind it. */
static void where_time_leads_the_batch_is_behind_it(void **state)
{
	static const char *const hlo =
		STATE("{0}: (0, {}, may-alias)") REDUCERS
		"%body (p: (s32[], f32[12,5], f32[3,12,5])) -> (s32[], f32[12,5], f32[3,12,5]) {\n"
		"  %p = (s32[], f32[12,5], f32[3,12,5]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%p), index=0\n"
		"  %h = f32[12,5] get-tuple-element(%p), index=1\n"
		"  %x = f32[3,12,5] get-tuple-element(%p), index=2\n"
		"  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n"
		"  %z = s32[] constant(0)\n"
		"  %a = f32[1,12,5] dynamic-slice(%x, %i, %z, %z), dynamic_slice_sizes={1,12,5}\n"
		"  %b = f32[12,5] reshape(%a)\n  %c = f32[12,5] add(%h, %b)\n"
		"  %n = f32[12,5] sine(%c)\n"
		"  ROOT %r = (s32[], f32[12,5], f32[3,12,5]) tuple(%j, %n, %x)\n}\n"
		"%test (q: (s32[], f32[12,5], f32[3,12,5])) -> pred[] {\n"
		"  %q = (s32[], f32[12,5], f32[3,12,5]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%q), index=0\n  %three = s32[] constant(3)\n"
		"  ROOT %c = pred[] compare(%i, %three), direction=LT\n}\n"
		"ENTRY %e (w: f32[5], x: f32[3,12,5], y: f32[12,5]) -> (f32[5]) {\n"
		"  %w = f32[5] parameter(0)\n  %x = f32[3,12,5] parameter(1)\n"
		"  %y = f32[12,5] parameter(2)\n  %z = s32[] constant(0)\n"
		"  %f = f32[] constant(0)\n  %s = f32[12,5] broadcast(%w), dimensions={1}\n"
		"  %t = (s32[], f32[12,5], f32[3,12,5]) tuple(%z, %s, %x)\n"
		"  %l = (s32[], f32[12,5], f32[3,12,5]) while(%t), condition=%test, body=%body\n"
		"  %h = f32[12,5] get-tuple-element(%l), index=1\n"
		"  %d = f32[12,5] subtract(%h, %y)\n  %q = f32[12,5] multiply(%d, %d)\n"
		"  %u = f32[5] reduce(%q, %f), dimensions={0}, to_apply=%add\n"
		"  %v = f32[5] subtract(%w, %u)\n  ROOT %o = (f32[5]) tuple(%v)\n}\n";
	static const int32_t found[] = {-1, 1, 0};
	(void)state;
	assert_loops(hlo, 4, 1);
	assert_batch(hlo, found);
}

/* So it is where the sequence is read as a whole, too, and of what it is compared with, or a part of that. */
static void what_a_sequence_is_compared_with_has_the_batch_behind_time(void **state)
{
	static const char *const hlo =
		STATE("{0}: (0, {}, may-alias)") REDUCERS
		"%body (p: (s32[], f32[12,5], f32[9,12,5])) -> (s32[], f32[12,5], f32[9,12,5]) {\n"
		"  %p = (s32[], f32[12,5], f32[9,12,5]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%p), index=0\n"
		"  %h = f32[12,5] get-tuple-element(%p), index=1\n"
		"  %x = f32[9,12,5] get-tuple-element(%p), index=2\n"
		"  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n"
		"  %z = s32[] constant(0)\n"
		"  %a = f32[1,12,5] dynamic-slice(%x, %i, %z, %z), dynamic_slice_sizes={1,12,5}\n"
		"  %b = f32[12,5] reshape(%a)\n  %c = f32[12,5] add(%h, %b)\n"
		"  %n = f32[12,5] sine(%c)\n"
		"  ROOT %r = (s32[], f32[12,5], f32[9,12,5]) tuple(%j, %n, %x)\n}\n"
		"%test (q: (s32[], f32[12,5], f32[9,12,5])) -> pred[] {\n"
		"  %q = (s32[], f32[12,5], f32[9,12,5]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%q), index=0\n  %nine = s32[] constant(9)\n"
		"  ROOT %c = pred[] compare(%i, %nine), direction=LT\n}\n"
		"ENTRY %e (w: f32[5], x: f32[9,12,5], a: f32[10,12,5]) -> (f32[5]) {\n"
		"  %w = f32[5] parameter(0)\n  %x = f32[9,12,5] parameter(1)\n"
		"  %a = f32[10,12,5] parameter(2)\n  %z = s32[] constant(0)\n"
		"  %y = f32[9,12,5] slice(%a), slice={[1:10], [0:12], [0:5]}\n"
		"  %f = f32[] constant(0)\n  %s = f32[12,5] broadcast(%w), dimensions={1}\n"
		"  %t = (s32[], f32[12,5], f32[9,12,5]) tuple(%z, %s, %x)\n"
		"  %l = (s32[], f32[12,5], f32[9,12,5]) while(%t), condition=%test, body=%body\n"
		"  %h = f32[12,5] get-tuple-element(%l), index=1\n"
		"  %d = f32[9,12,5] subtract(%x, %y)\n  %q = f32[9,12,5] multiply(%d, %d)\n"
		"  %u = f32[5] reduce(%q, %f), dimensions={0,1}, to_apply=%add\n"
		"  %k = f32[5] reduce(%h, %f), dimensions={0}, to_apply=%add\n"
		"  %m = f32[5] add(%u, %k)\n"
		"  %v = f32[5] subtract(%w, %m)\n  ROOT %o = (f32[5]) tuple(%v)\n}\n";
	static const int32_t found[] = {-1, 1, 1};
	(void)state;
	assert_loops(hlo, 4, 1);
	assert_batch(hlo, found);
}

/* Rows that a loop only adds up are no sequence: their order does not count. */
static void rows_that_are_added_up_are_no_sequence(void **state)
{
	static const char *const hlo =
		STATE("{0}: (0, {}, may-alias)") REDUCERS
		"%body (p: (s32[], f32[5], f32[12,5])) -> (s32[], f32[5], f32[12,5]) {\n"
		"  %p = (s32[], f32[5], f32[12,5]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%p), index=0\n"
		"  %h = f32[5] get-tuple-element(%p), index=1\n"
		"  %x = f32[12,5] get-tuple-element(%p), index=2\n"
		"  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n"
		"  %z = s32[] constant(0)\n"
		"  %a = f32[1,5] dynamic-slice(%x, %i, %z), dynamic_slice_sizes={1,5}\n"
		"  %b = f32[5] reshape(%a)\n  %s = f32[5] sine(%b)\n  %c = f32[5] add(%h, %s)\n"
		"  ROOT %r = (s32[], f32[5], f32[12,5]) tuple(%j, %c, %x)\n}\n"
		"%test (q: (s32[], f32[5], f32[12,5])) -> pred[] {\n"
		"  %q = (s32[], f32[5], f32[12,5]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%q), index=0\n  %n = s32[] constant(12)\n"
		"  ROOT %c = pred[] compare(%i, %n), direction=LT\n}\n"
		"ENTRY %e (w: f32[5], x: f32[12,5], y: f32[12]) -> (f32[5]) {\n"
		"  %w = f32[5] parameter(0)\n  %x = f32[12,5] parameter(1)\n"
		"  %y = f32[12] parameter(2)\n  %z = s32[] constant(0)\n"
		"  %f = f32[] constant(0)\n"
		"  %t = (s32[], f32[5], f32[12,5]) tuple(%z, %w, %x)\n"
		"  %l = (s32[], f32[5], f32[12,5]) while(%t), condition=%test, body=%body\n"
		"  %h = f32[5] get-tuple-element(%l), index=1\n"
		"  %s = f32[12,5] broadcast(%y), dimensions={0}\n"
		"  %q = f32[12,5] multiply(%x, %s)\n"
		"  %u = f32[5] reduce(%q, %f), dimensions={0}, to_apply=%add\n"
		"  %v = f32[5] subtract(%h, %u)\n  ROOT %o = (f32[5]) tuple(%v)\n}\n";
	static const int32_t found[] = {-1, 0, 0};
	(void)state;
	assert_batch(hlo, found);
}

/* Branches have operands that are split, and return terms of a sum; a barrier has values of all
 * kinds. */
static void branches_and_barriers_are_in_the_loop(void **state)
{
	(void)state;
	assert_loops(
		STATE("{1}: (1, {}, may-alias)") REDUCERS
		"%one (p: (f32[12,5], f32[5])) -> (f32[12,5], f32[5]) {\n  %p = (f32[12,5], "
		"f32[5]) "
		"parameter(0)\n"
		"  %x = f32[12,5] get-tuple-element(%p), index=0\n  %w = f32[5] "
		"get-tuple-element(%p), index=1\n"
		"  %z = f32[] constant(0)\n  %y = f32[12,5] sine(%x)\n"
		"  %g = f32[5] reduce(%y, %z), dimensions={0}, to_apply=%add\n"
		"  ROOT %r = (f32[12,5], f32[5]) tuple(%y, %g)\n}\n"
		"%two (q: (f32[12,5], f32[5])) -> (f32[12,5], f32[5]) {\n"
		"  ROOT %q = (f32[12,5], f32[5]) parameter(0)\n}\n"
		"ENTRY %e (x: f32[12,5], w: f32[5]) -> (f32[12,5], f32[5]) {\n"
		"  %x = f32[12,5] parameter(0)\n  %w = f32[5] parameter(1)\n"
		"  %b = (f32[12,5], f32[5]) opt-barrier(%x, %w)\n"
		"  %s = f32[1] slice(%w), slice={[0:1]}\n  %f = f32[] reshape(%s)\n  %z = f32[] "
		"constant(0)\n"
		"  %i = pred[] compare(%f, %z), direction=GT\n"
		"  %c = (f32[12,5], f32[5]) conditional(%i, %b, %b), true_computation=%one, "
		"false_computation=%two\n"
		"  %y = f32[12,5] get-tuple-element(%c), index=0\n  %g = f32[5] "
		"get-tuple-element(%c), index=1\n"
		"  %u = f32[5] add(%g, %w)\n"
		"  ROOT %o = (f32[12,5], f32[5]) tuple(%y, %u)\n}\n",
		4, 1);
}

/* A step that updates only if a number of the gradients' sum is finite; `gradient` is what the branch
 * makes of the sum %g. */
#define IF_FINITE(gradient)                                                                        \
	STATE("{0}: (1, {}, may-alias)") REDUCERS                                                  \
	"%update (p: (f32[5], f32[5])) -> (f32[5], f32[5]) {\n"                                    \
	"  %p = (f32[5], f32[5]) parameter(0)\n"                                                   \
	"  %w = f32[5] get-tuple-element(%p), index=0\n"                                           \
	"  %g = f32[5] get-tuple-element(%p), index=1\n"                                           \
	"  %h = f32[5] " gradient "\n  %u = f32[5] subtract(%w, %h)\n"                             \
	"  ROOT %r = (f32[5], f32[5]) tuple(%u, %h)\n}\n"                                          \
	"%stay (q: f32[5]) -> (f32[5], f32[5]) {\n  %q = f32[5] parameter(0)\n"                    \
	"  ROOT %r = (f32[5], f32[5]) tuple(%q, %q)\n}\n"                                          \
	"ENTRY %e (x: f32[12,5], w: f32[5]) -> (f32[5], f32[5]) {\n"                               \
	"  %x = f32[12,5] parameter(0)\n  %w = f32[5] parameter(1)\n"                              \
	"  %z = f32[] constant(0)\n  %y = f32[12,5] sine(%x)\n"                                    \
	"  %g = f32[5] reduce(%y, %z), dimensions={0}, to_apply=%add\n"                            \
	"  %q = f32[5] multiply(%g, %g)\n"                                                         \
	"  %n = f32[] reduce(%q, %z), dimensions={0}, to_apply=%add\n"                             \
	"  %f = pred[] is-finite(%n)\n"                                                            \
	"  %t = (f32[5], f32[5]) tuple(%w, %g)\n"                                                  \
	"  %c = (f32[5], f32[5]) conditional(%f, %t, %w), true_computation=%update, "              \
	"false_computation=%stay\n"                                                               \
	"  %a = f32[5] get-tuple-element(%c), index=0\n"                                           \
	"  %b = f32[5] get-tuple-element(%c), index=1\n"                                           \
	"  ROOT %o = (f32[5], f32[5]) tuple(%a, %b)\n}\n"

/* Whether gradients are finite is known of their sums: the branches that update, or don't, take sums,
 * and run once, behind the only loop, whether they are linear in them or not. */
static void branches_that_wait_for_sums_read_sums(void **state)
{
	(void)state;
	assert_loops(IF_FINITE("negate(%g)"), 4, 1);
	assert_loops(IF_FINITE("multiply(%g, %g)"), 4, 1);
}

/* A layer that is computed again reads its weights behind a barrier, beside activations: what is
 * made of such a weight alone stands outside of the loop. */
static void weights_behind_a_barrier_are_read_outside_of_the_loop(void **state)
{
	(void)state;
	assert_loops(STATE("{1}: (1, {}, may-alias)")
	             "ENTRY %e (x: f32[12,5], w: f32[5,5]) -> (f32[12,5], f32[5,5]) {\n"
	             "  %x = f32[12,5] parameter(0)\n  %w = f32[5,5] parameter(1)\n"
	             "  %b = (f32[12,5], f32[5,5]) opt-barrier(%x, %w)\n"
	             "  %y = f32[12,5] get-tuple-element(%b), index=0\n"
	             "  %v = f32[5,5] get-tuple-element(%b), index=1\n"
	             "  %s = f32[5,5] sine(%v)\n"
	             "  %d = f32[12,5] dot(%y, %s), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={0}\n"
	             "  %g = f32[5,5] dot(%d, %y), lhs_contracting_dims={0}, "
	             "rhs_contracting_dims={0}\n"
	             "  %u = f32[5,5] add(%g, %s)\n"
	             "  ROOT %o = (f32[12,5], f32[5,5]) tuple(%d, %u)\n}\n",
	             4, 1);
}

/* A loop over time carries what is the same in all microbatches, too, such as a key; what is made
 * of it alone comes after that loop over microbatches, and before the next, which reads it. */
static void what_a_loop_hands_on_unsplit_is_known_after_the_microbatches(void **state)
{
	(void)state;
	assert_loops(STATE("{1}: (1, {}, may-alias)")
	             "%body (p: (s32[], f32[12,5], f32[5])) -> (s32[], f32[12,5], f32[5]) {\n"
	             "  %p = (s32[], f32[12,5], f32[5]) parameter(0)\n"
	             "  %i = s32[] get-tuple-element(%p), index=0\n"
	             "  %x = f32[12,5] get-tuple-element(%p), index=1\n"
	             "  %k = f32[5] get-tuple-element(%p), index=2\n"
	             "  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n"
	             "  %n = f32[5] sine(%k)\n"
	             "  %m = f32[12,5] broadcast(%n), dimensions={1}\n"
	             "  %y = f32[12,5] multiply(%x, %m)\n"
	             "  ROOT %r = (s32[], f32[12,5], f32[5]) tuple(%j, %y, %n)\n}\n"
	             "%test (q: (s32[], f32[12,5], f32[5])) -> pred[] {\n"
	             "  %q = (s32[], f32[12,5], f32[5]) parameter(0)\n"
	             "  %i = s32[] get-tuple-element(%q), index=0\n"
	             "  %three = s32[] constant(3)\n"
	             "  ROOT %c = pred[] compare(%i, %three), direction=LT\n}\n"
	             "ENTRY %e (x: f32[12,5], w: f32[5]) -> (f32[12,5], f32[5]) {\n"
	             "  %x = f32[12,5] parameter(0)\n  %w = f32[5] parameter(1)\n"
	             "  %z = s32[] constant(0)\n"
	             "  %t = (s32[], f32[12,5], f32[5]) tuple(%z, %x, %w)\n"
	             "  %l = (s32[], f32[12,5], f32[5]) while(%t), condition=%test, body=%body\n"
	             "  %y = f32[12,5] get-tuple-element(%l), index=1\n"
	             "  %k = f32[5] get-tuple-element(%l), index=2\n"
	             "  %u = f32[5] cosine(%k)\n"
	             "  %m = f32[12,5] broadcast(%u), dimensions={1}\n"
	             "  %h = f32[12,5] multiply(%y, %m)\n"
	             "  ROOT %o = (f32[12,5], f32[5]) tuple(%h, %u)\n}\n",
	             4, 2);
}

/* ---- refusals --------------------------------------------------------------------------- */

static void assert_refused(const char *hlo, int32_t microbatches, sw_status code,
                           const char *message)
{
	looped l;
	looped_init_text(&l, hlo, microbatches);
	assert_null(l.after);
	assert_int_equal(l.refusal.code, code);
	assert_string_equal(l.refusal.message, message);
	looped_clear(&l);
}

/* What no iteration reads may wait for all of them: here the order of the losses of all rows, and the
 * rows that a queue takes, which the next step reads. */
static void what_no_iteration_reads_waits_for_all(void **state)
{
	(void)state;
	assert_loops("HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, "
	             "may-alias) }\n" REDUCERS
	             "%less (a: f32[], b: f32[]) -> pred[] {\n  %a = f32[] parameter(0)\n"
	             "  %b = f32[] parameter(1)\n"
	             "  ROOT %c = pred[] compare(%a, %b), direction=LT\n}\n"
	             "ENTRY %e (w: f32[5,5], q: f32[20,5], x: f32[12,5]) -> (f32[5,5], f32[20,5], "
	             "f32[12]) {\n"
	             "  %w = f32[5,5] parameter(0)\n  %q = f32[20,5] parameter(1)\n"
	             "  %x = f32[12,5] parameter(2)\n  %z = f32[] constant(0)\n"
	             "  %n = s32[] constant(3)\n  %o = s32[] constant(0)\n"
	             "  %y = f32[12,5] dot(%x, %w), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={0}\n"
	             "  %l = f32[12] reduce(%y, %z), dimensions={1}, to_apply=%add\n"
	             "  %s = f32[12] sort(%l), dimensions={0}, to_apply=%less\n"
	             "  %u = f32[20,5] dynamic-update-slice(%q, %y, %n, %o)\n"
	             "  %g = f32[5,5] dot(%x, %y), lhs_contracting_dims={0}, "
	             "rhs_contracting_dims={0}\n"
	             "  %v = f32[5,5] subtract(%w, %g)\n"
	             "  ROOT %t = (f32[5,5], f32[20,5], f32[12]) tuple(%v, %u, %s)\n}\n",
	             4, 1);
}

/* What compares all rows of two towers is divided by rows of one of them, behind the loop that makes the
 * other; sums over its columns wait, too. */
static void pairs_of_rows_have_loops_of_their_own(void **state)
{
	(void)state;
	assert_loops("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n" REDUCERS
	             "ENTRY %e (w: f32[5,5], x: f32[12,5], y: f32[12,5]) -> (f32[5,5], f32[]) {\n"
	             "  %w = f32[5,5] parameter(0)\n  %x = f32[12,5] parameter(1)\n"
	             "  %y = f32[12,5] parameter(2)\n  %z = f32[] constant(0)\n"
	             "  %a = f32[12,5] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	             "  %b = f32[12,5] dot(%y, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	             "  %l = f32[12,12] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
	             "  %t = f32[12,12] tanh(%l)\n"
	             "  %c = f32[12] reduce(%t, %z), dimensions={0}, to_apply=%add\n"
	             "  %cs = f32[12,12] broadcast(%c), dimensions={1}\n"
	             "  %d = f32[12,12] subtract(%t, %cs)\n"
	             "  %da = f32[12,5] dot(%d, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	             "  %db = f32[12,5] dot(%d, %a), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	             "  %ga = f32[5,5] dot(%x, %da), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	             "  %gb = f32[5,5] dot(%y, %db), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	             "  %g = f32[5,5] add(%ga, %gb)\n  %v = f32[5,5] subtract(%w, %g)\n"
	             "  %o = f32[] reduce(%t, %z), dimensions={0,1}, to_apply=%add\n"
	             "  ROOT %r = (f32[5,5], f32[]) tuple(%v, %o)\n}\n",
	             4, 4);
}

/* The order of all rows' norms, in which later loops read them, takes little of the work. */
static void loops_read_what_ran_between_them(void **state)
{
	(void)state;
	assert_loops("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n" REDUCERS
	             "%less (a: f32[], b: f32[]) -> pred[] {\n  %a = f32[] parameter(0)\n"
	             "  %b = f32[] parameter(1)\n"
	             "  ROOT %c = pred[] compare(%a, %b), direction=LT\n}\n"
	             "ENTRY %e (w: f32[5,5], x: f32[12,5]) -> (f32[5,5]) {\n"
	             "  %w = f32[5,5] parameter(0)\n  %x = f32[12,5] parameter(1)\n"
	             "  %z = f32[] constant(0)\n"
	             "  %y = f32[12,5] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	             "  %l = f32[12] reduce(%y, %z), dimensions={1}, to_apply=%add\n"
	             "  %s = f32[12] sort(%l), dimensions={0}, to_apply=%less\n"
	             "  %ss = f32[12,5] broadcast(%s), dimensions={0}\n"
	             "  %d = f32[12,5] subtract(%y, %ss)\n"
	             "  %g = f32[5,5] dot(%x, %d), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	             "  %v = f32[5,5] subtract(%w, %g)\n"
	             "  ROOT %r = (f32[5,5]) tuple(%v)\n}\n",
	             4, 2);
}

static void a_refusal_names_the_op_and_the_path_to_it(void **state)
{
	(void)state;
	assert_refused(
		"HloModule m\nENTRY %e (x: f32[12,5]) -> f32[12,5] {\n  %x = f32[12,5] "
		"parameter(0)\n"
		"  %y = f32[12,5] sine(%x)\n  %r = f32[12,5] reverse(%y), dimensions={0}\n"
		"  %q = f32[12,12] dot(%r, %r), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={1}\n"
		"  %p = f32[12,5] dot(%q, %r), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={0}\n"
		"  ROOT %s = f32[12,5] add(%p, %y)\n}\n",
		2, SW_NO,
		"2 microbatches are not possible: reverse 'r': dimension 0 of operand 0 has the "
		"microbatches, and each "
		"needs others' elements (flip); the batch comes to it by x -> y -> r");
	assert_refused(
		"HloModule m\nENTRY %e (x: f32[12,5]) -> f32[12,5] {\n  %x = f32[12,5] "
		"parameter(0)\n"
		"  %r = f32[5,5] slice(%x), slice={[0:5], [0:5]}\n"
		"  %a = f32[5,5] dot(%r, %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  %b = f32[5,5] dot(%a, %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  %c = f32[5,5] dot(%b, %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  ROOT %s = f32[12,5] dot(%x, %c), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={0}\n}\n",
		3, SW_NO,
		"3 microbatches are not possible: slice 'r': dimension 0 of operand 0 has the "
		"microbatches, and can't be "
		"split there: a slice or a padding between extents without a common divisor stays "
		"whole; the batch comes to "
		"it by x -> r");
}

static void a_number_that_does_not_divide_the_batch_is_bad_input(void **state)
{
	(void)state;
	const char *hlo = "HloModule m\nENTRY %e (x: f32[12,5]) -> f32[12,5] {\n  %x = f32[12,5] "
			  "parameter(0)\n"
			  "  ROOT %r = f32[12,5] sine(%x)\n}\n";
	assert_refused(hlo, 5, SW_ERR_INPUT,
	               "5 microbatches: expected 2 or more that divide the batch, which is 12");
	assert_refused(hlo, 1, SW_ERR_INPUT,
	               "1 microbatches: expected 2 or more that divide the batch, which is 12");
	assert_refused("HloModule m\nENTRY %e (t: f32[12,5]) -> f32[3,5] {\n"
	               "  %t = f32[12,5] parameter(0)\n  %i = s32[3] iota(), iota_dimension=0\n"
	               "  ROOT %r = f32[3,5] gather(%t, %i), offset_dims={1}, "
	               "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
	               "slice_sizes={1,5}\n}\n",
	               3, SW_ERR_INPUT,
	               "3 microbatches: no input has rows of a batch, and what a step draws or "
	               "picks out of tables is not divided: take 1");
}

static void a_sort_of_all_tokens_refuses(void **state)
{
	(void)state;
	looped l;
	looped_init(&l, "moe-mixtral-tiny", 2);
	assert_null(l.after);
	assert_non_null(strstr(
		l.refusal.message,
		"2 microbatches are not possible: sort 'sort.11': it puts rows of all microbatches in "
		"one order, as where experts have a capacity: sort the rows of each sample by "
		"themselves"));
	assert_non_null(strstr(l.refusal.message, "the batch comes to it by data_0_"));
	looped_clear(&l);
}

/* ---- structure -------------------------------------------------------------------------- */

static sw_phases phases_of(const char *fixture, looped *l)
{
	sw_phases phases;
	looped_init(l, fixture, 2);
	sw_phases_init(&phases, l->before, &l->sidecar);
	return phases;
}

/* Clipping is a norm of sums: all of it stands after the only loop, which contains no optimizer
 * op. */
static void clipping_is_applied_after_one_loop(void **state)
{
	(void)state;
	looped l;
	sw_phases phases = phases_of("gpt-tiny-clip", &l);
	assert_int_equal(phases.batch, 8);
	assert_int_equal(phases.possible.n, 3);
	assert_int_equal(phases.possible.v[2], 8);
	assert_int_equal(phases.n, 1);
	assert_true(phases.phases[0].flops > 0.97 * phases.flops);
	assert_int_equal(phases.phases[0].n_leaving, phases.phases[0].n_sums);
	for (sw_id id = 0; id < l.before->ops.len; id++) {
		const sw_op *op = sw_op_at(l.before, id);
		if (op->computation == l.before->entry && op->opcode == SW_OP_DOT)
			assert_int_equal(phases.part[id], SW_PART_BODY);
		if (op->computation == l.before->entry && op->opcode == SW_OP_SQRT)
			assert_int_equal(phases.part[id], SW_PART_APPLY);
	}
	sw_phases_clear(&phases);
	looped_clear(&l);
}

/* A mean over masked positions divides by a sum over the batch, which is made of data alone: that needs
 * no loop. */
static void a_weighted_mean_counts_before_the_loop(void **state)
{
	(void)state;
	looped l;
	sw_phases phases = phases_of("bert-tiny", &l);
	assert_int_equal(phases.n, 1);
	assert_true(phases.hoisted > 0);
	assert_int_equal(phases.phases[0].stored_bytes, 0);
	assert_true(phases.phases[0].flops > 0.97 * phases.flops);
	assert_int_equal(loops_of(l.after, 2), 1);
	sw_phases_clear(&phases);
	looped_clear(&l);
}

static void memory_falls_and_work_does_not_grow(void **state)
{
	(void)state;
	static const char *const fixtures[] = {"gpt", "gpt-scan", "gpt-dropout-tiny"};
	for (size_t i = 0; i < SW_COUNT(fixtures); i++) {
		looped l;
		looped_init(&l, fixtures[i], 4);
		assert_allowed(&l);
		int64_t before = sw_program_peak_bytes(l.before, l.before->entry),
			after = sw_program_peak_bytes(l.after, l.after->entry);
		if (2 * after > before)
			fail_msg("%s: peak memory %lld, was %lld", l.name, (long long)after,
			         (long long)before);
		assert_true(sw_program_flops(l.after) < 1.02 * sw_program_flops(l.before));
		looped_clear(&l);
	}
}

/* The gradient of an embedding is added to the carried sum, not to zeros first. */
static void rows_are_added_to_the_carried_sum(void **state)
{
	(void)state;
	looped l;
	size_t scatters = 0;
	looped_init(&l, "ncf-tiny", 4);
	assert_allowed(&l);
	for (sw_id id = 0; id < l.after->ops.len; id++) {
		const sw_op *op = sw_op_at(l.after, id);
		if (op->opcode != SW_OP_SCATTER)
			continue;
		scatters++;
		assert_int_equal(
			sw_op_at(l.after, l.after->values.data[op->operands[0]].op)->opcode,
			SW_OP_PARAMETER);
	}
	assert_int_equal(scatters, 4);
	looped_clear(&l);
}

/* ---- planned ---------------------------------------------------------------------------- */

static void loops_are_planned_and_partitioned(void **state)
{
	(void)state;
	static const char *const fixtures[] = {"mlp-clip", "gpt-tiny"}, *const strategies[] = {
										"dp", "auto"};
	for (size_t i = 0; i < SW_COUNT(fixtures); i++)
		for (size_t k = 0; k < SW_COUNT(strategies); k++) {
			looped l;
			looped_init(&l, fixtures[i], 4);
			assert_allowed(&l);
			assert_equal_when_planned(&l, SW_SOURCE_DIR "/clusters/local-2x2.yaml",
			                          strategies[k], 1.01);
			looped_clear(&l);
		}
}

static void any_plan_of_a_looped_program_holds(void **state)
{
	(void)state;
	static const char *const fixtures[] = {"mlp-clip", "ncf-tiny"};
	for (size_t i = 0; i < SW_COUNT(fixtures); i++) {
		looped l;
		looped_init(&l, fixtures[i], 2);
		assert_allowed(&l);
		for (uint64_t seed = 0; seed < 2; seed++)
			assert_equal_under_random_plan(&l, SW_SOURCE_DIR "/clusters/local-2x2.yaml",
			                               seed);
		looped_clear(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_small_fixture_gives_the_same),
		cmocka_unit_test(results_with_the_batch_are_stored_in_place),
		cmocka_unit_test(each_monoid_is_accumulated_as_such),
		cmocka_unit_test(a_statistic_of_the_batch_makes_two_loops),
		cmocka_unit_test(random_numbers_are_those_of_the_whole),
		cmocka_unit_test(a_key_among_the_data_has_no_batch),
		cmocka_unit_test(a_key_that_a_loop_reads_has_no_batch),
		cmocka_unit_test(tables_among_the_data_have_no_batch),
		cmocka_unit_test(members_of_an_ensemble_are_no_batch),
		cmocka_unit_test(members_before_the_batch_are_none),
		cmocka_unit_test(frozen_weights_that_are_scaled_are_no_batch),
		cmocka_unit_test(where_time_leads_the_batch_is_behind_it),
		cmocka_unit_test(what_a_sequence_is_compared_with_has_the_batch_behind_time),
		cmocka_unit_test(rows_that_are_added_up_are_no_sequence),
		cmocka_unit_test(branches_and_barriers_are_in_the_loop),
		cmocka_unit_test(branches_that_wait_for_sums_read_sums),
		cmocka_unit_test(weights_behind_a_barrier_are_read_outside_of_the_loop),
		cmocka_unit_test(what_a_loop_hands_on_unsplit_is_known_after_the_microbatches),
		cmocka_unit_test(what_no_iteration_reads_waits_for_all),
		cmocka_unit_test(pairs_of_rows_have_loops_of_their_own),
		cmocka_unit_test(loops_read_what_ran_between_them),
		cmocka_unit_test(a_refusal_names_the_op_and_the_path_to_it),
		cmocka_unit_test(a_number_that_does_not_divide_the_batch_is_bad_input),
		cmocka_unit_test(a_sort_of_all_tokens_refuses),
		cmocka_unit_test(clipping_is_applied_after_one_loop),
		cmocka_unit_test(a_weighted_mean_counts_before_the_loop),
		cmocka_unit_test(memory_falls_and_work_does_not_grow),
		cmocka_unit_test(rows_are_added_to_the_carried_sum),
		cmocka_unit_test(loops_are_planned_and_partitioned),
		cmocka_unit_test(any_plan_of_a_looped_program_holds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
