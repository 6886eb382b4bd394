/* Interpreted programs that communicate: broadcasts, ragged exchanges, and asynchronous
 * collectives. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

static sw_status run(sw_transport *t, const char *text, sw_tensor *inputs, uint32_t n_inputs,
                     sw_tensor *outputs, uint32_t n_outputs, sw_error *err)
{
	sw_program *program = NULL;
	sw_interpreter *interpreter = NULL;
	sw_interpret_options options = {.partition_id = (uint32_t)t->rank,
	                                .blas_threads = 1,
	                                .collective = sw_transport_collective,
	                                .collective_context = t};
	sw_status status = sw_read_hlo(text, strlen(text), "test", &program, err);
	if (status == SW_OK)
		status = sw_interpreter_new(program, &options, &interpreter, err);
	if (status == SW_OK)
		status = sw_interpret(interpreter, inputs, n_inputs, outputs, n_outputs, err);
	sw_interpreter_free(interpreter);
	sw_program_free(program);
	return status;
}

static sw_status expect(const char *what, const float *got, int64_t i, float wanted, sw_error *err)
{
	if (got[i] == wanted)
		return SW_OK;
	return sw_fail(err, SW_NO, "%s: element %lld is %g, not %g", what, (long long)i,
	               (double)got[i], (double)wanted);
}

/* ---- pairs ------------------------------------------------------------------------------ */

static const char pairs_text[] =
	"HloModule m, num_partitions=%d\n"
	"add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
	"sum {\n  v = f32[3] parameter(0)\n  ROOT s = f32[3] all-reduce(v), channel_id=5, "
	"replica_groups={}, "
	"to_apply=add\n}\n"
	"ENTRY e {\n"
	"  id = u32[] partition-id()\n"
	"  mine = f32[] convert(id)\n"
	"  x = f32[3] broadcast(mine), dimensions={}\n"
	"  last = f32[3] collective-broadcast(x), channel_id=1, replica_groups={{%s}}\n"
	"  g = (f32[3], f32[%d]) all-gather-start(x), channel_id=2, replica_groups={}, "
	"dimensions={0}\n"
	"  r = f32[3] all-reduce-start(x), channel_id=3, replica_groups={}, to_apply=add\n"
	"  p = (f32[3], f32[3], u32[]) collective-permute-start(x), channel_id=4, "
	"source_target_pairs={%s}\n"
	"  a = ((f32[3]), f32[3], s32[]) async-start(x), calls=sum\n"
	"  gathered = f32[%d] all-gather-done(g)\n"
	"  reduced = f32[3] all-reduce-done(r)\n"
	"  permuted = f32[3] collective-permute-done(p)\n"
	"  summed = f32[3] async-done(a), calls=sum\n"
	"  ROOT all = (f32[3], f32[%d], f32[3], f32[3], f32[3]) tuple(last, gathered, reduced, "
	"permuted, "
	"summed)\n"
	"}\n";

/* The groups list ranks from the last to the first; each rank sends to the next. */
static void write_pairs(int32_t size, sw_text *text)
{
	sw_text members = {0}, ring = {0};
	for (int32_t r = 0; r < size; r++) {
		sw_text_addf(&members, "%s%d", r ? "," : "", size - 1 - r);
		sw_text_addf(&ring, "%s{%d,%d}", r ? "," : "", r, (r + 1) % size);
	}
	sw_text_addf(text, pairs_text, size, members.data, 3 * size, ring.data, 3 * size, 3 * size);
	sw_text_clear(&members);
	sw_text_clear(&ring);
}

static sw_status run_pairs(sw_transport *t, void *context, sw_error *err)
{
	enum { OUTPUTS = 5 };
	static const char *const names[] = {"collective-broadcast", "all-gather", "all-reduce",
	                                    "permute", "async"};
	(void)context;
	sw_text text = {0};
	sw_tensor outputs[OUTPUTS];
	int32_t n = t->size;
	float sum = (float)(n * (n - 1) / 2),
	      wanted[] = {(float)(n - 1), 0, sum, (float)((t->rank + n - 1) % n), sum};
	write_pairs(n, &text);
	sw_status status = run(t, text.data, NULL, 0, outputs, OUTPUTS, err), checked = status;
	sw_text_clear(&text);
	for (int o = 0; status == SW_OK && o < OUTPUTS; o++) {
		for (int64_t i = 0;
		     checked == SW_OK && i < (int64_t)(outputs[o].buffer->bytes / sizeof(float));
		     i++)
			checked = expect(names[o], sw_tensor_data(outputs[o]), i,
			                 o == 1 ? (float)(i / 3) : wanted[o], err);
		sw_tensor_drop(&outputs[o]);
	}
	return checked;
}

static void a_start_and_its_done_return_the_result(void **state)
{
	(void)state;
	run_everywhere(run_pairs, NULL);
}

/* Collectives of several operands, which travel as one message, are compared with collectives of
 * each operand alone: along a dimension other than the first, with different sizes. Sizes are
 * placeholders: N is the number of ranks; A and C are along the collective's dimension, G and H are
 * gathered. */
static const char several_text[] =
	"HloModule m, num_partitions=$N\n"
	"add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
	"ENTRY e {\n"
	"  id = u32[] partition-id()\n"
	"  mine = f32[] convert(id)\n"
	"  i = f32[2,$A,3] iota(), iota_dimension=1\n"
	"  j = f32[2,$C] iota(), iota_dimension=1\n"
	"  mi = f32[2,$A,3] broadcast(mine), dimensions={}\n"
	"  mj = f32[2,$C] broadcast(mine), dimensions={}\n"
	"  x = f32[2,$A,3] add(i, mi)\n"
	"  y = f32[2,$C] multiply(j, mj)\n"
	"  s = (f32[2,$A,3], f32[2,$C]) all-reduce(x, y), replica_groups=[1,$N]<=[$N], "
	"to_apply=add\n"
	"  g = (f32[2,$G,3], f32[2,$H]) all-gather(x, y), replica_groups=[1,$N]<=[$N], "
	"dimensions={1}\n"
	"  r = (f32[2,2,3], f32[2,1]) reduce-scatter(x, y), replica_groups=[1,$N]<=[$N], "
	"dimensions={1}, "
	"to_apply=add\n"
	"  s0 = f32[2,$A,3] get-tuple-element(s), index=0\n"
	"  s1 = f32[2,$C] get-tuple-element(s), index=1\n"
	"  g0 = f32[2,$G,3] get-tuple-element(g), index=0\n"
	"  g1 = f32[2,$H] get-tuple-element(g), index=1\n"
	"  r0 = f32[2,2,3] get-tuple-element(r), index=0\n"
	"  r1 = f32[2,1] get-tuple-element(r), index=1\n"
	"  t0 = f32[2,$A,3] all-reduce(x), replica_groups=[1,$N]<=[$N], to_apply=add\n"
	"  t1 = f32[2,$C] all-reduce(y), replica_groups=[1,$N]<=[$N], to_apply=add\n"
	"  h0 = f32[2,$G,3] all-gather(x), replica_groups=[1,$N]<=[$N], dimensions={1}\n"
	"  h1 = f32[2,$H] all-gather(y), replica_groups=[1,$N]<=[$N], dimensions={1}\n"
	"  q0 = f32[2,2,3] reduce-scatter(x), replica_groups=[1,$N]<=[$N], dimensions={1}, "
	"to_apply=add\n"
	"  q1 = f32[2,1] reduce-scatter(y), replica_groups=[1,$N]<=[$N], dimensions={1}, "
	"to_apply=add\n"
	"  ROOT all = (f32[2,$A,3], f32[2,$C], f32[2,$G,3], f32[2,$H], f32[2,2,3], f32[2,1], "
	"f32[2,$A,3], "
	"f32[2,$C], "
	"f32[2,$G,3], f32[2,$H], f32[2,2,3], f32[2,1]) tuple(s0, s1, g0, g1, r0, r1, t0, t1, h0, "
	"h1, q0, "
	"q1)\n"
	"}\n";

static void write_several(int32_t n, sw_text *text)
{
	for (const char *at = several_text; *at; at++) {
		if (*at != '$') {
			sw_text_add_n(text, at, 1);
			continue;
		}
		at++;
		int32_t size = *at == 'N' || *at == 'C' ? n
		               : *at == 'A'             ? 2 * n
		               : *at == 'G'             ? 2 * n * n
		                                        : n * n;
		sw_text_addf(text, "%d", size);
	}
}

static sw_status run_several(sw_transport *t, void *context, sw_error *err)
{
	enum { OUTPUTS = 12, PAIRS = OUTPUTS / 2 };
	(void)context;
	int64_t n = t->size;
	/* the shapes are freed with the program */
	const int64_t elements[PAIRS] = {12 * n, 2 * n, 12 * n * n, 2 * n * n, 12, 2};
	sw_text text = {0};
	sw_tensor outputs[OUTPUTS];
	write_several(t->size, &text);
	sw_status status = run(t, text.data, NULL, 0, outputs, OUTPUTS, err), checked = status;
	sw_text_clear(&text);
	for (int o = 0; checked == SW_OK && o < PAIRS; o++) {
		const float *alone = sw_tensor_data(outputs[PAIRS + o]);
		for (int64_t i = 0; checked == SW_OK && i < elements[o]; i++)
			checked = expect("as one", sw_tensor_data(outputs[o]), i, alone[i], err);
	}
	for (int o = 0; status == SW_OK && o < OUTPUTS; o++)
		sw_tensor_drop(&outputs[o]);
	return checked;
}

static void several_operands_travel_as_one(void **state)
{
	(void)state;
	run_everywhere(run_several, NULL);
}

/* A run that is stopped after a collective was begun. */
typedef struct stopped {
	sw_transport *t;
	atomic_bool stop;
	int drained;
} stopped;

static sw_status begin_and_stop(void *context, const sw_program *program, sw_id op,
                                const sw_tensor *in, sw_tensor *out, uint64_t *ticket,
                                sw_error *err)
{
	stopped *s = context;
	s->stop = true;
	return sw_transport_begin(s->t, program, op, in, out, ticket, err);
}

static sw_status never_finish(void *context, uint64_t ticket, sw_error *err)
{
	(void)context, (void)ticket;
	return sw_fail(err, SW_NO, "it goes on after the stop");
}

static void drain(void *context)
{
	stopped *s = context;
	s->drained++;
	sw_transport_drain(s->t);
}

static const char stopped_text[] =
	"HloModule m, num_partitions=%d\n"
	"add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
	"sum {\n  v = f32[50000] parameter(0)\n  ROOT s = f32[50000] all-reduce(v), channel_id=5, "
	"replica_groups={}, to_apply=add\n}\n"
	"ENTRY e {\n"
	"  one = f32[] constant(1)\n"
	"  x = f32[50000] broadcast(one), dimensions={}\n"
	"  a = ((f32[50000]), f32[50000], s32[]) async-start(x), calls=sum\n"
	"  y = f32[50000] negate(x)\n"
	"  z = f32[50000] async-done(a), calls=sum\n"
	"  ROOT all = (f32[50000], f32[50000]) tuple(y, z)\n"
	"}\n";

/* The address sanitizer detects a buffer that is freed while the transport still uses it. */
static sw_status stop_with_open_pair(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	stopped s = {.t = t};
	sw_text text = {0};
	sw_tensor outputs[2];
	sw_program *program = NULL;
	sw_interpreter *interpreter = NULL;
	sw_interpret_options options = {.blas_threads = 1,
	                                .collective = sw_transport_collective,
	                                .begin = begin_and_stop,
	                                .finish = never_finish,
	                                .drain = drain,
	                                .collective_context = &s,
	                                .stop = &s.stop};
	sw_text_addf(&text, stopped_text, t->size);
	sw_status status = sw_read_hlo(text.data, text.len, "test", &program, err);
	if (status == SW_OK)
		status = sw_interpreter_new(program, &options, &interpreter, err);
	if (status == SW_OK && (sw_interpret(interpreter, NULL, 0, outputs, 2, err) != SW_ERR_IO ||
	                        !strstr(err->message, "stopped before") || s.drained != 1))
		status = sw_fail(err, SW_NO, "drained %d times: %s", s.drained, err->message);
	sw_interpreter_free(interpreter);
	sw_program_free(program);
	sw_text_clear(&text);
	return status;
}

static void an_error_frees_buffers_only_after_the_drain(void **state)
{
	(void)state;
	run_everywhere(stop_with_open_pair, NULL);
}

/* ---- ragged ----------------------------------------------------------------------------- */

static const char ragged_text[] = "HloModule m, num_partitions=%d\n"
				  "ENTRY e {\n"
				  "  in = f32[%d,2] parameter(0)\n"
				  "  out = f32[%d,2] parameter(1)\n"
				  "  from = s32[%d] parameter(2)\n"
				  "  sent = s32[%d] parameter(3)\n"
				  "  to = s32[%d] parameter(4)\n"
				  "  received = s32[%d] parameter(5)\n"
				  "  ROOT r = f32[%d,2] ragged-all-to-all(in, out, from, sent, to, "
				  "received), channel_id=1, replica_groups={{%s}}\n"
				  "}\n";

/* Rank r has two rows for and from each rank, and sends (r + 2 q) mod 3 of them to rank q. */
static int32_t rows_between(int32_t from, int32_t to)
{
	return (from + 2 * to) % 3;
}

/* dims: {2 size, 2, size}; the shapes of the inputs point into it. */
static sw_status make_inputs(int32_t size, int32_t rank, const int64_t *dims, sw_tensor inputs[6],
                             sw_error *err)
{
	sw_status status = SW_OK;
	for (int i = 0; i < 6 && status == SW_OK; i++)
		status = sw_tensor_new((sw_shape){i < 2 ? SW_F32 : SW_S32, i < 2 ? 2 : 1, 0,
		                                  i < 2 ? dims : dims + 2},
		                       true, &inputs[i], err);
	for (int32_t q = 0; q < size && status == SW_OK; q++) {
		int32_t *list[4], numbers[4] = {2 * q, rows_between(rank, q), 2 * rank,
		                                rows_between(q, rank)};
		for (int i = 0; i < 4; i++) {
			list[i] = sw_tensor_data(inputs[2 + i]);
			list[i][q] = numbers[i];
		}
		for (int32_t e = 0; e < 4; e++) {
			((float *)sw_tensor_data(inputs[0]))[4 * q + e] =
				(float)(1000 * rank + 10 * q + e);
			((float *)sw_tensor_data(inputs[1]))[4 * q + e] = -1;
		}
	}
	return status;
}

static sw_status run_ragged(sw_transport *t, void *context, sw_error *err)
{
	const int32_t *spoil = context;
	int32_t n = t->size;
	sw_text text = {0}, members = {0};
	sw_tensor inputs[6] = {{.buffer = NULL}}, output = {.buffer = NULL};
	for (int32_t r = 0; r < n; r++)
		sw_text_addf(&members, "%s%d", r ? "," : "", r);
	sw_text_addf(&text, ragged_text, n, 2 * n, 2 * n, n, n, n, n, 2 * n, members.data);
	const int64_t dims[] = {2 * n, 2, n};
	sw_status status = make_inputs(n, t->rank, dims, inputs, err);
	if (status == SW_OK && spoil)
		((int32_t *)sw_tensor_data(inputs[*spoil]))[0] += 2 * n;
	if (status == SW_OK)
		status = run(t, text.data, inputs, 6, &output, 1, err);
	for (int32_t q = 0; q < n; q++)
		for (int32_t e = 0; e < 4 && status == SW_OK; e++)
			status = expect("ragged-all-to-all", sw_tensor_data(output), 4 * q + e,
			                e / 2 < rows_between(q, t->rank)
			                        ? (float)(1000 * q + 10 * t->rank + e)
			                        : -1,
			                err);
	if (output.buffer)
		sw_tensor_drop(&output);
	sw_text_clear(&text);
	sw_text_clear(&members);
	return status;
}

static void ragged_rows_reach_their_destinations(void **state)
{
	(void)state;
	run_everywhere(run_ragged, NULL);
}

static void rows_out_of_range_are_refused(void **state)
{
	(void)state;
	static const struct {
		int32_t input;
		const char *says;
	} cases[] = {{2, "sends rows that are not there"},
	             {4, "no place in its result"},
	             {5, "other numbers of rows arrive than it expects"}};
	if (sw_transport_under_mpi())
		skip();
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		outcome result;
		int32_t input = cases[i].input;
		run_ranks(2, true, run_ragged, &input, &result);
		assert_int_not_equal(result.status[0], SW_OK);
		if (!strstr(result.error[0].message, cases[i].says) &&
		    !strstr(result.error[1].message, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", result.error[0].message,
			         cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_and_its_done_return_the_result),
		cmocka_unit_test(several_operands_travel_as_one),
		cmocka_unit_test(an_error_frees_buffers_only_after_the_drain),
		cmocka_unit_test(ragged_rows_reach_their_destinations),
		cmocka_unit_test(rows_out_of_range_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, end_ranks);
}
