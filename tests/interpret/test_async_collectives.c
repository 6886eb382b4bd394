/* Asynchronous collectives: the buffers that the caller's `begin` receives. */
#include "test.h"

#include <string.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"

typedef struct partner {
	int begun, finished;
	size_t bytes;
	float first, last;
} partner;

static sw_status perform(void *context, const sw_program *program, sw_id op, const sw_tensor *in,
                         sw_tensor *out, sw_error *err)
{
	(void)context, (void)program, (void)op, (void)in, (void)out;
	return sw_fail(err, SW_ERR_INTERNAL, "it was to be begun");
}

static sw_status begin(void *context, const sw_program *program, sw_id op, const sw_tensor *in,
                       sw_tensor *out, uint64_t *ticket, sw_error *err)
{
	(void)program, (void)op, (void)err;
	partner *p = context;
	const float *data = sw_tensor_data(in[0]);
	p->bytes = in[0].buffer->bytes;
	p->first = data[0];
	p->last = data[p->bytes / sizeof(float) - 1];
	memcpy(sw_tensor_data(out[0]), data, p->bytes);
	*ticket = 7;
	p->begun++;
	return SW_OK;
}

static sw_status finish(void *context, uint64_t ticket, sw_error *err)
{
	(void)err;
	partner *p = context;
	assert_int_equal(ticket, 7);
	p->finished++;
	return SW_OK;
}

/* A splat used to be passed to `begin` unexpanded. */
static void a_splat_is_expanded_before_a_collective_begins(void **state)
{
	static const char text[] =
		"HloModule step, num_partitions=2\n"
		"sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) "
		"}\n"
		"begun { v = f32[64] parameter(0)\n"
		"  ROOT w = f32[64] all-reduce(v), replica_groups={{0,1}}, to_apply=sum }\n"
		"ENTRY main { x = f32[] parameter(0)\n y = f32[64] broadcast(x), dimensions={}\n"
		"  t = ((f32[64]), f32[64]) async-start(y), calls=begun\n ROOT z = f32[64] "
		"async-done(t) "
		"}\n";
	(void)state;
	partner p = {0};
	sw_program *program;
	sw_interpreter *it;
	sw_error err = {0};
	sw_tensor in, out;
	sw_interpret_options options = {
		.collective = perform, .collective_context = &p, .begin = begin, .finish = finish};
	assert_int_equal(sw_read_hlo(text, strlen(text), "test.hlo", &program, &err), SW_OK);
	assert_int_equal(sw_tensor_new((sw_shape){.type = SW_F32}, true, &in, &err), SW_OK);
	*(float *)sw_tensor_data(in) = 3;
	assert_int_equal(sw_interpreter_new(program, &options, &it, &err), SW_OK);
	assert_int_equal(sw_interpret(it, &in, 1, &out, 1, &err), SW_OK);
	assert_int_equal(p.begun, 1);
	assert_int_equal(p.finished, 1);
	assert_int_equal(p.bytes, 64 * sizeof(float));
	assert_true(p.first == 3 && p.last == 3);
	assert_true(((const float *)sw_tensor_data(out))[63] == 3);
	sw_tensor_drop(&out);
	sw_interpreter_free(it);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_splat_is_expanded_before_a_collective_begins)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
