/* What kernels move and launch at least, on 16 devices that fuse: ends, what is returned with them,
 * and links. */
#include "planned/planned.h"

#include <math.h>

#include "bound/bound.h"

#define CLUSTER "dgx-a100-2x8.yaml"
#define FLOATS(n) (4. * (n))
#define ADD "add.f32 { a.1 = f32[] parameter(0) b.1 = f32[] parameter(1) ROOT s.1 = f32[] add(a.1, b.1) }\n"
#define DOT ", lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"

typedef struct read_program {
	planned p;
	sw_arena arena;
	sw_fuse_least least;
} read_program;

static void open(const char *hlo, read_program *r)
{
	open_text(hlo, CLUSTER, &r->p);
	sw_arena_init(&r->arena);
	r->least = sw_bound_least(r->p.program, &r->p.sidecar, &r->p.cluster, &r->arena);
}

static void close(read_program *r)
{
	sw_arena_clear(&r->arena);
	close_planned(&r->p);
}

static sw_id op_named(const read_program *r, const char *name)
{
	return (sw_id)(find_op(r->p.program, name) - r->p.program->ops.data);
}

static double end_bytes(const read_program *r, const char *name)
{
	return r->least.end_bytes[op_named(r, name)];
}

static double link_bytes(const read_program *r, const char *name)
{
	return r->least.link_bytes[op_named(r, name)];
}

/* Under Adam with clipping the gradient, which waits for the norm, the parameter and both moments are
 * read, and three of them are written, by however many kernels. */
static void an_update_moves_all_of_its_state(void **state)
{
	read_program r;
	(void)state;
	open("HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), "
	     "{2}: (2, {}, may-alias) }\n" ADD
	     "ENTRY e { w = f32[1024,1024] parameter(0) m = f32[1024,1024] parameter(1)\n"
	     " v = f32[1024,1024] parameter(2) x = f32[1024,1024] parameter(3)\n"
	     " zero = f32[] constant(0)\n"
	     " g = f32[1024,1024] dot(x, w)" DOT " q = f32[1024,1024] multiply(g, g)\n"
	     " n = f32[] reduce(q, zero), dimensions={0,1}, to_apply=add.f32\n"
	     " c = f32[] rsqrt(n)\n b = f32[1024,1024] broadcast(c), dimensions={}\n"
	     " l = f32[1024,1024] multiply(g, b) mo = f32[1024,1024] add(m, l)\n"
	     " sq = f32[1024,1024] multiply(l, l) vo = f32[1024,1024] add(v, sq)\n"
	     " rt = f32[1024,1024] sqrt(vo) st = f32[1024,1024] divide(mo, rt)\n"
	     " new = f32[1024,1024] subtract(w, st)\n"
	     " ROOT t = (f32[1024,1024], f32[1024,1024], f32[1024,1024]) tuple(new, mo, vo) }",
	     &r);
	assert_true(end_bytes(&r, "new") == FLOATS(7 * 1024 * 1024));
	assert_true(isnan(end_bytes(&r, "mo")) && isnan(link_bytes(&r, "mo")));
	close(&r);
}

/* Without the norm a moment may be the epilogue of the gradient's product, which hides its bytes. */
static void what_a_product_may_write_is_not_counted(void **state)
{
	read_program r;
	(void)state;
	open("HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }\n"
	     "ENTRY e { w = f32[1024,1024] parameter(0) m = f32[1024,1024] parameter(1)\n"
	     " x = f32[1024,1024] parameter(2) g = f32[1024,1024] dot(x, w)" DOT
	     " mo = f32[1024,1024] add(m, g) new = f32[1024,1024] subtract(w, mo)\n"
	     " ROOT t = (f32[1024,1024], f32[1024,1024]) tuple(new, mo) }",
	     &r);
	assert_true(end_bytes(&r, "new") == FLOATS(3 * 1024 * 1024));
	close(&r);
}

/* A kernel writes `v`, which is no epilogue, as it reads two arrays beside either product. It may be
 * that of the sum of its columns, whose reads are counted. Nothing but a sum of rows reads `u` beside a
 * product: its kernel is no other's. (What is state comes in no microbatches.) */
static const char links[] =
	"HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias), "
	"{2}: (2, {}, may-alias) }\n" ADD
	"ENTRY e { x = f32[4096,1024] parameter(0) a = f32[1024,1024] parameter(1)\n"
	" b = f32[1024,1024] parameter(2) zero = f32[] constant(0)\n"
	" p = f32[4096,1024] dot(x, a)" DOT " q = f32[4096,1024] dot(x, b)" DOT
	" pq = f32[4096,1024] multiply(p, q) v = f32[4096,1024] add(pq, x)\n"
	" s = f32[1024] reduce(v, zero), dimensions={0}, to_apply=add.f32\n"
	" y = f32[4096,1024] dot(v, a)" DOT " yx = f32[4096,1024] multiply(y, x)\n"
	" yq = f32[4096,1024] subtract(yx, q) u = f32[4096,1024] multiply(yq, x)\n"
	" r = f32[4096] reduce(u, zero), dimensions={1}, to_apply=add.f32\n"
	" z = f32[4096,1024] dot(u, b)" DOT
	" ROOT t = (f32[4096,1024], f32[1024,1024], f32[1024,1024], f32[1024], f32[4096], "
	"f32[4096,1024]) tuple(x, a, b, s, r, z) }";

static void kernels_between_products_are_links(void **state)
{
	const double n = FLOATS(4096 * 1024);
	read_program r;
	(void)state;
	open(links, &r);
	assert_true(end_bytes(&r, "s") == n + FLOATS(1024));
	assert_true(link_bytes(&r, "v") == 2 * n); /* pq and x are read, one of them was counted */
	assert_false(r.least.launches[op_named(&r, "v")]);
	assert_true(link_bytes(&r, "u") == 3 * n);
	assert_true(r.least.launches[op_named(&r, "u")]);
	close(&r);
}

/* The links of the chain v, u are added up. */
static void links_of_a_chain_are_added_up(void **state)
{
	read_program r;
	(void)state;
	open(links, &r);
	const sw_device *device = &r.p.cluster.device;
	const sw_rule *const *rules = sw_rules_make(r.p.program, &r.arena);
	const double moved = 6 * FLOATS(4096 * 1024) + FLOATS(1024), launches = 2;
	double products_s = 0, kernels_s = sw_bound_kernels_s(r.p.program, &r.p.sidecar, rules,
	                                                      &r.p.cluster, false);
	for (sw_id id = 0; id < r.p.program->ops.len; id++)
		if (sw_is_dot(sw_op_at(r.p.program, id)))
			products_s += sw_bound_op_s(&r.p.cluster, r.p.program, id, rules[id], false,
			                            false);
	double light_s = moved / (double)r.p.cluster.n_devices / device->memory_bandwidth +
			 launches * device->kernel_overhead_s;
	assert_true(fabs(kernels_s / (products_s + light_s) - 1) < 1e-9);
	close(&r);
}

/* A sum over 16 rows is none in a part of one row: then the update may be the epilogue of the product
 * whose rows were summed. Of 64 rows each part has several. */
static void a_sum_that_may_vanish_hides_no_product(void **state)
{
	(void)state;
	for (int rows = 16; rows <= 64; rows *= 4) {
		char text[1024];
		read_program r;
		snprintf(text, sizeof(text),
		         "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, "
		         "may-alias) }\n" ADD
		         "ENTRY e { b = f32[256] parameter(0) x = f32[%d,256] parameter(1)\n"
		         " w = f32[256,256] parameter(2) zero = f32[] constant(0)\n"
		         " p = f32[%d,256] dot(x, w)" DOT
		         " s = f32[256] reduce(p, zero), dimensions={0}, to_apply=add.f32\n"
		         " new = f32[256] subtract(b, s)\n"
		         " ROOT t = (f32[256], f32[%d,256]) tuple(new, x) }",
		         rows, rows, rows);
		open(text, &r);
		assert_int_equal(isnan(end_bytes(&r, "new")), rows == 16);
		close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_update_moves_all_of_its_state),
		cmocka_unit_test(what_a_product_may_write_is_not_counted),
		cmocka_unit_test(kernels_between_products_are_links),
		cmocka_unit_test(links_of_a_chain_are_added_up),
		cmocka_unit_test(a_sum_that_may_vanish_hides_no_product),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
