/* The overlap window: the kernels that may run beside a redistribution; and the cost weight of
 * communication. */
#include "planned/planned.h"

#include "model/model.h"

#include <math.h>

#define DEVICES "4"
#define SIZE "f32[256,256]"
#define DOT(NAME, A, B)                                                                            \
	"  " NAME " = " SIZE " dot(" A ", " B                                                      \
	"), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"

typedef struct window {
	planned p;
	sw_program *program; /* canonical */
	sw_roles roles;
	sw_sidecar sidecar;
	sw_overlap *overlap;
	double dot_s; /* seconds of any one of them, divided by the devices */
} window;

static sw_id op_named(const window *s, const char *name)
{
	return (sw_id)(find_op(s->program, name) - s->program->ops.data);
}

static void open_window(const char *hlo, window *s)
{
	sw_error err = {0};
	open_text(hlo, DEVICES, &s->p);
	check(sw_rewrite_canonical(s->p.program, &s->program, &err), &err);
	sw_sidecar_default(s->program, &s->sidecar);
	sw_roles_init(&s->roles, s->program, &s->sidecar);
	s->overlap = sw_overlap_new(&s->roles, &s->p.cluster, &sw_model_default_limits);
	s->dot_s = sw_cost_op(&s->p.cluster, s->program, op_named(s, "side")) / 4;
}

static void close_window(window *s)
{
	sw_overlap_free(s->overlap);
	sw_roles_clear(&s->roles);
	sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	close_planned(&s->p);
}

/* Check that the window has the time of this number of dots. to: NULL for the computation's end. */
static void assert_window(const window *s, const char *from, const char *to, double dots)
{
	double window_s =
		sw_overlap_window_s(s->overlap, op_named(s, from), to ? op_named(s, to) : SW_NO_ID);
	if (fabs(window_s - dots * s->dot_s) > 0.01 * s->dot_s)
		fail_msg("from %s to %s: %g dots, expected %g", from, to ? to : "the end",
		         window_s / s->dot_s, dots);
}

static void kernels_independent_of_both_ends_are_in_the_window(void **state)
{
	window s;
	(void)state;
	open_window("HloModule chain\nENTRY main {\n  x = " SIZE " parameter(0)\n  w = " SIZE
	            " parameter(1)\n" DOT("a", "x", "w") DOT("b", "a", "w") DOT("c", "b", "w")
	                    DOT("side", "x", "x") "  ROOT r = (" SIZE ", " SIZE
	                                          ") tuple(c, side)\n}\n",
	            &s);
	assert_window(&s, "a", "b", 1); /* neighbours in the chain: only the other dot */
	assert_window(&s, "a", "a", 1);
	assert_window(&s, "x", "c", 3); /* an input that is read late */
	assert_window(&s, "x", "a", 1); /* and one that is read at once */
	assert_window(&s, "a", "c", 2); /* b is not before a, nor does c lead to it */
	assert_window(&s, "c", NULL, 1);
	assert_window(&s, "side", NULL, 3);
	close_window(&s);
}

static void a_loop_counts_with_all_its_iterations(void **state)
{
	window s;
	(void)state;
	open_window("HloModule loop\n"
	            "body {\n  p = (s32[], " SIZE
	            ") parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
	            "  y = " SIZE " get-tuple-element(p), index=1\n  one = s32[] constant(1)\n"
	            "  j = s32[] add(i, one)\n" DOT("inner", "y", "y") DOT(
			    "next", "inner",
			    "inner") "  ROOT t = (s32[], " SIZE ") tuple(j, next)\n}\n"
	                             "until {\n  q = (s32[], " SIZE
	                             ") parameter(0)\n  k = s32[] get-tuple-element(q), index=0\n"
	                             "  n = s32[] constant(5)\n  ROOT l = pred[] compare(k, n), "
	                             "direction=LT\n}\n"
	                             "ENTRY main {\n  x = " SIZE
	                             " parameter(0)\n  zero = s32[] constant(0)\n"
	                             "  begin = (s32[], " SIZE ") tuple(zero, x)\n"
	                             "  loop = (s32[], " SIZE
	                             ") while(begin), condition=until, body=body\n"
	                             "  out = " SIZE " get-tuple-element(loop), index=1\n" DOT(
					     "side", "x", "x") "  ROOT r = (" SIZE ", " SIZE
	                                                       ") tuple(out, side)\n}\n",
	            &s);
	assert_window(&s, "side", NULL, 2 * 5);
	assert_window(&s, "inner", "next", 0);
	close_window(&s);
}

static double weight_with_batch(int batch)
{
	char *text = write_blocks(1, batch, 64, 64, 4);
	planned p;
	open_text(text, DEVICES, &p);
	sw_roles roles;
	sw_roles_init(&roles, p.program, &p.sidecar);
	double weight = sw_overlap_weight(&roles, &p.cluster, (1u << p.cluster.atoms.n) - 1,
	                                  &sw_model_default_limits);
	sw_roles_clear(&roles);
	close_planned(&p);
	free(text);
	return weight;
}

static void communication_weighs_less_where_kernels_take_longer(void **state)
{
	(void)state;
	double before = 1, least = weight_with_batch(1 << 14);
	for (int batch = 4; batch <= 1 << 14; batch *= 16) {
		double weight = weight_with_batch(batch);
		assert_true(weight > 0 && weight <= before);
		before = weight;
	}
	assert_true(least < weight_with_batch(4));
	assert_true(weight_with_batch(1 << 16) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_independent_of_both_ends_are_in_the_window),
		cmocka_unit_test(a_loop_counts_with_all_its_iterations),
		cmocka_unit_test(communication_weighs_less_where_kernels_take_longer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
