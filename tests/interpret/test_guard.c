/* In builds with the address sanitizer, an op can access only those bytes of an arena that it
 * uses. */
#include "test.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

#include <string.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"

/* w and z are reduced, w asynchronously around z. Neither reduction uses x. */
static const char text[] =
	"HloModule step, num_partitions=2\n"
	"sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
	"begun { v = f32[64] parameter(0)\n"
	"  ROOT u = f32[64] all-reduce(v), replica_groups={{0,1}}, to_apply=sum }\n"
	"ENTRY main { x = f32[64] parameter(0)\n w = f32[64] negate(x)\n z = f32[64] add(x, w)\n"
	"  t = ((f32[64]), f32[64]) async-start(w), calls=begun\n"
	"  y = f32[64] all-reduce(z), replica_groups={{0,1}}, to_apply=sum\n"
	"  d = f32[64] async-done(t)\n ROOT r = f32[64] add(d, y) }\n";

typedef struct watch {
	sw_interpreter *interpreter;
	sw_tensor begun[2];
	int looks;
} watch;

static bool is_open(sw_tensor tensor)
{
	return !__asan_region_is_poisoned(sw_tensor_data(tensor), tensor.buffer->bytes);
}

static bool is_closed(const sw_tensor *tensor)
{
	const char *data = sw_tensor_data(*tensor);
	for (size_t i = 0; i < tensor->buffer->bytes; i++)
		if (!__asan_address_is_poisoned(data + i))
			return false;
	return true;
}

static sw_tensor input(const watch *w)
{
	sw_tensor x;
	assert_int_equal(sw_interpreter_input(w->interpreter, 0, &x, NULL), SW_OK);
	return x;
}

static sw_status perform(void *context, const sw_program *program, sw_id op, const sw_tensor *in,
                         sw_tensor *out, sw_error *err)
{
	(void)program, (void)op, (void)err;
	watch *w = context;
	sw_tensor x = input(w);
	assert_true(is_open(in[0]) && is_open(out[0]));
	assert_true(is_open(w->begun[0]) && is_open(w->begun[1]));
	assert_true(is_closed(&x));
	memcpy(sw_tensor_data(out[0]), sw_tensor_data(in[0]), in[0].buffer->bytes);
	w->looks++;
	return SW_OK;
}

static sw_status begin(void *context, const sw_program *program, sw_id op, const sw_tensor *in,
                       sw_tensor *out, uint64_t *ticket, sw_error *err)
{
	(void)program, (void)op, (void)ticket, (void)err;
	watch *w = context;
	w->begun[0] = in[0];
	w->begun[1] = out[0];
	return SW_OK;
}

static sw_status finish(void *context, uint64_t ticket, sw_error *err)
{
	(void)ticket, (void)err;
	watch *w = context;
	assert_true(is_open(w->begun[0]) && is_open(w->begun[1]));
	memset(sw_tensor_data(w->begun[1]), 0, w->begun[1].buffer->bytes);
	return SW_OK;
}

static void only_the_bytes_of_an_op_are_accessible(void **state)
{
	(void)state;
	watch w = {0};
	sw_program *program;
	sw_error err = {0};
	assert_int_equal(sw_read_hlo(text, strlen(text), "test.hlo", &program, &err), SW_OK);
	sw_placement *placement = sw_placement_new(program);
	sw_interpret_options options = {.collective = perform,
	                                .collective_context = &w,
	                                .begin = begin,
	                                .finish = finish,
	                                .placement = placement};
	assert_int_equal(sw_interpreter_new(program, &options, &w.interpreter, &err), SW_OK);
	for (int step = 1; step <= 2; step++) {
		sw_tensor in = input(&w), out;
		memset(sw_tensor_data(in), 0, in.buffer->bytes);
		assert_int_equal(sw_interpret(w.interpreter, &in, 1, &out, 1, &err), SW_OK);
		assert_true(is_open(out));
		assert_int_equal(w.looks, step);
	}
	sw_interpreter_free(w.interpreter);
	sw_placement_free(placement);
	sw_program_free(program);
}
#else
static void only_the_bytes_of_an_op_are_accessible(void **state)
{
	(void)state;
	skip();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_bytes_of_an_op_are_accessible)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
