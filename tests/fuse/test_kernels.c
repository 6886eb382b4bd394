/* Kernels of every fixture, on every kind of device: each op has one owner, what a kernel reads is
 * stored or held, and the written program verifies. */
#include "fuse/softmaxes.h"

#include <glob.h>
#include <string.h>

#include "frontend/frontend.h"
#include "fuse/internal.h"

/* Per op: how many kernels hold it, as owner or as copy. */
static void check_members(const sw_kernels *k, const uint32_t *holder_of, uint32_t kernel)
{
	const sw_kernel_ops *ops = &k->list.data[kernel];
	const sw_program *p = k->program;
	for (uint32_t i = 0; i < ops->n_ops; i++) {
		const sw_op *op = sw_op_at(p, ops->ops[i]);
		assert_true(i == 0 || ops->ops[i - 1] < ops->ops[i]);
		for (uint32_t o = 0; o < op->n_operands; o++) {
			sw_id from = p->values.data[op->operands[o]].op;
			if (holder_of[from] != kernel + 1 && !k->stored[op->operands[o]])
				fail_msg("%s: %s reads %s, which is neither stored nor held", p->name,
				         op->name, sw_op_at(p, from)->name);
		}
	}
	for (uint32_t i = 0; i < ops->n_results; i++)
		assert_int_equal(k->owner[p->values.data[ops->results[i]].op], kernel);
}

static void check_kernels(const sw_kernels *k)
{
	const sw_program *p = k->program;
	uint32_t *holder = sw_alloc(sizeof(uint32_t) * (p->ops.len + 1));
	for (uint32_t n = 0; n < k->list.len; n++) {
		for (uint32_t i = 0; i < k->list.data[n].n_ops; i++)
			holder[k->list.data[n].ops[i]] = n + 1;
		check_members(k, holder, n);
	}
	const sw_computation *entry = sw_entry(p);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_fuse_role role = sw_fuse_role_of(p, entry->ops.data[i]);
		bool owned = k->owner[entry->ops.data[i]] != SW_NO_ID;
		if (role == SW_FUSE_BORDER)
			assert_false(owned);
		else if (role != SW_FUSE_FREE)
			assert_true(owned);
	}
	for (size_t i = 0; i < entry->results.len; i++)
		assert_true(k->stored[entry->results.data[i]]);
	free(holder);
}

static size_t check_program(const char *path, sw_fusion device)
{
	char name[128];
	snprintf(name, sizeof(name), "%s", strrchr(path, '/') + 1);
	*strstr(name, ".hlo.gz") = '\0';
	sw_program *program = read_fixture("tests/programs", name), *fused = NULL;
	sw_kernels kernels;
	sw_error err;
	sw_kernels_find(&kernels, program, device);
	check_kernels(&kernels);
	size_t n = kernels.list.len;
	sw_kernels_clear(&kernels);
	assert_int_equal(sw_fuse(program, device, &fused, &err), SW_OK);
	if (sw_program_verify(fused, &err) != SW_OK)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(sw_entry(fused)->results.len, sw_entry(program)->results.len);
	sw_program_free(fused);
	sw_program_free(program);
	return n;
}

static void every_fixture_is_cut_into_kernels(void **state)
{
	(void)state;
	glob_t found;
	assert_int_equal(glob(SW_SOURCE_DIR "/tests/programs/*-tiny*.hlo.gz", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		size_t alone = check_program(found.gl_pathv[i], SW_FUSION_NONE);
		for (int device = SW_FUSION_LOOPS; device < SW_FUSION_COUNT; device++)
			assert_true(check_program(found.gl_pathv[i], (sw_fusion)device) < alone);
	}
	globfree(&found);
}

/* ---- small programs whose kernels are known ---------------------------------------------- */

#define HEAD "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"

static size_t count_of(const char *text, sw_fused_kernel kind, sw_fusion device)
{
	sw_program *program = read_hlo(text);
	sw_kernels kernels;
	sw_kernels_find(&kernels, program, device);
	check_kernels(&kernels);
	size_t n = (size_t)count_kernels(&kernels, kind);
	sw_kernels_clear(&kernels);
	sw_program_free(program);
	return n;
}

/* A row's mean is read by the elements of the row: one kernel. A column's is not. */
static void reductions_of_rows_join_their_readers(void **state)
{
	(void)state;
	static const char rows[] = HEAD
		"ENTRY e { x = f32[64,128] parameter(0) z = f32[] constant(0)\n"
		" s = f32[64] reduce(x, z), dimensions={1}, to_apply=add\n"
		" b = f32[64,128] broadcast(s), dimensions={0}\n"
		" ROOT d = f32[64,128] divide(x, b) }";
	static const char columns[] = HEAD
		"ENTRY e { x = f32[64,128] parameter(0) z = f32[] constant(0)\n"
		" y = f32[64,128] exponential(x)\n"
		" s = f32[128] reduce(y, z), dimensions={0}, to_apply=add\n"
		" b = f32[64,128] broadcast(s), dimensions={1}\n"
		" ROOT d = f32[64,128] divide(x, b) }";
	assert_int_equal(count_of(rows, SW_FUSED_REDUCE, SW_FUSION_LOOPS), 1);
	assert_int_equal(count_of(rows, SW_FUSED_LOOP, SW_FUSION_LOOPS), 0);
	assert_int_equal(count_of(columns, SW_FUSED_REDUCE, SW_FUSION_LOOPS), 1);
	assert_int_equal(count_of(columns, SW_FUSED_LOOP, SW_FUSION_LOOPS), 1);
}

/* What several kernels cut out of an array is cut out by each of them: none reads more for it. */
static void slices_are_cut_out_by_their_readers(void **state)
{
	(void)state;
	static const char text[] = HEAD
		"ENTRY e { x = f32[800] parameter(0) y = f32[100] parameter(1) z = f32[] constant(0)\n"
		" s = f32[100] slice(x), slice={[100:200]}\n q = f32[100] multiply(s, s)\n"
		" n = f32[] reduce(q, z), dimensions={0}, to_apply=add\n"
		" u = f32[100] multiply(s, y)\n ROOT t = (f32[], f32[100]) tuple(n, u) }";
	assert_int_equal(count_of(text, SW_FUSED_REDUCE, SW_FUSION_XLA_GPU), 1);
	assert_int_equal(count_of(text, SW_FUSED_LOOP, SW_FUSION_XLA_GPU), 1);
	assert_int_equal(count_of(text, SW_FUSED_COUNT, SW_FUSION_XLA_GPU), 0);
}

/* A compiler computes only those elements that are gathered, in the gather's kernel; a framework's
 * gather reads an array. */
static void what_is_gathered_is_computed_on_the_way(void **state)
{
	(void)state;
	static const char text[] = HEAD
		"ENTRY e { x = f32[1000] parameter(0) i = s32[64,1] parameter(1)\n"
		" y = f32[1000] parameter(2) a = f32[1000] add(x, y)\n"
		" ROOT g = f32[64] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, "
		"start_index_map={0}, index_vector_dim=1, slice_sizes={1} }";
	assert_int_equal(count_of(text, SW_FUSED_INDEXED, SW_FUSION_XLA_GPU), 1);
	assert_int_equal(count_of(text, SW_FUSED_COUNT, SW_FUSION_XLA_GPU), 0);
	assert_int_equal(count_of(text, SW_FUSED_COUNT, SW_FUSION_TORCH), 2);
}

/* What is computed from places alone is computed in each kernel that reads it, however many ops that
 * takes, and is stored by none. */
static void what_reads_no_array_is_repeated(void **state)
{
	(void)state;
	sw_text text = {0};
	static const sw_fusion devices[] = {SW_FUSION_LOOPS, SW_FUSION_XLA_GPU, SW_FUSION_TORCH,
	                                    SW_FUSION_TORCH_CALLS};
	sw_text_add(&text, HEAD "ENTRY e { x = f32[64,128] parameter(0) z = f32[] constant(0)\n"
	                        " i0 = s32[64,128] iota(), iota_dimension=0\n"
	                        " j = s32[64,128] iota(), iota_dimension=1\n");
	for (int k = 0; k < 30; k++)
		sw_text_addf(&text, " i%d = s32[64,128] add(i%d, j)\n", k + 1, k);
	sw_text_add(&text, " f = f32[64,128] convert(i30)\n y0 = f32[64,128] add(x, f)\n");
	for (int k = 0; k < 10; k++)
		sw_text_addf(&text,
		             " p%d = f32[128] reduce(y%d, z), dimensions={0}, to_apply=add\n"
		             " b%d = f32[64,128] broadcast(p%d), dimensions={1}\n"
		             " y%d = f32[64,128] add(b%d, f)\n",
		             k, k, k, k, k + 1, k);
	sw_text_add(&text, " ROOT e = f32[64,128] exponential(y10) }");
	for (size_t d = 0; d < SW_COUNT(devices); d++) {
		sw_program *program = read_hlo(text.data), *fused = NULL;
		sw_error err;
		assert_int_equal(sw_fuse(program, devices[d], &fused, &err), SW_OK);
		const sw_computation *entry = sw_entry(fused);
		size_t stored = 0; /* beside the columns' sums */
		for (size_t i = 0; i < entry->ops.len; i++) {
			const sw_op *op = sw_op_at(fused, entry->ops.data[i]);
			for (uint32_t r = 0; r < op->n_results && op->opcode == SW_OP_FUSION; r++)
				stored += sw_value_shape(fused, op->first_result + r).rank == 2;
		}
		if (stored != 1)
			fail_msg("device %zu stores %zu arrays, not the result alone", d, stored);
		sw_program_free(fused);
		sw_program_free(program);
	}
	sw_text_clear(&text);
}

/* What several kernels read repeated is repeated in each of them, and stored by none: a view in eager
 * frameworks. */
static void repeated_values_are_not_stored(void **state)
{
	(void)state;
	static const sw_fusion devices[] = {SW_FUSION_XLA_GPU, SW_FUSION_TORCH,
	                                    SW_FUSION_TORCH_CALLS};
	static const char text[] = HEAD
		"ENTRY e { x = f32[64,128] parameter(0) v = f32[128] parameter(1)\n"
		" w = f32[128,128] parameter(2) b = f32[64,128] broadcast(v), dimensions={1}\n"
		" s = f32[64,128] multiply(x, b)\n"
		" p = f32[64,128] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		" ROOT t = f32[64,128] multiply(p, b) }";
	for (size_t d = 0; d < SW_COUNT(devices); d++) {
		sw_program *program = read_hlo(text), *fused = NULL;
		sw_error err;
		assert_int_equal(sw_fuse(program, devices[d], &fused, &err), SW_OK);
		const sw_computation *entry = sw_entry(fused);
		for (size_t i = 0; i < entry->ops.len; i++)
			assert_true(sw_op_at(fused, entry->ops.data[i])->opcode != SW_OP_BROADCAST);
		sw_program_free(fused);
		sw_program_free(program);
	}
}

static const char product_text[] = HEAD
		"ENTRY e { x = f32[64,128] parameter(0) w = f32[128,32] parameter(1)\n"
		" v = f32[32] parameter(2) r = f32[64,32] parameter(3)\n"
		" p = f32[64,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		" b = f32[64,32] broadcast(v), dimensions={1}\n"
		" s = f32[64,32] add(p, b)\n t = f32[64,32] tanh(s)\n"
		" ROOT u = f32[64,32] add(t, r) }";

static void products_take_bias_and_activation(void **state)
{
	(void)state;
	assert_int_equal(count_of(product_text, SW_FUSED_DOT, SW_FUSION_XLA_GPU), 1);
	assert_int_equal(count_of(product_text, SW_FUSED_LOOP, SW_FUSION_XLA_GPU), 0);
	assert_int_equal(count_of(product_text, SW_FUSED_DOT, SW_FUSION_XLA_CPU), 0);
	assert_int_equal(count_of(product_text, SW_FUSED_LOOP, SW_FUSION_XLA_CPU), 1);
}

/* An eager framework's product adds a bias, and nothing else is computed by its kernel. */
static void eager_products_take_a_bias_alone(void **state)
{
	(void)state;
	static const char bias[] = HEAD
		"ENTRY e { x = f32[64,128] parameter(0) w = f32[128,32] parameter(1)\n"
		" v = f32[32] parameter(2)\n"
		" p = f32[64,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		" b = f32[64,32] broadcast(v), dimensions={1}\n"
		" ROOT s = f32[64,32] add(p, b) }";
	static const char sum[] = HEAD
		"ENTRY e { x = f32[64,128] parameter(0) w = f32[128,32] parameter(1)\n"
		" r = f32[64,32] parameter(2)\n"
		" p = f32[64,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		" ROOT s = f32[64,32] add(p, r) }";
	assert_int_equal(count_of(bias, SW_FUSED_DOT, SW_FUSION_TORCH), 1);
	assert_int_equal(count_of(bias, SW_FUSED_LOOP, SW_FUSION_TORCH), 0);
	assert_int_equal(count_of(product_text, SW_FUSED_LOOP, SW_FUSION_TORCH), 1);
	assert_int_equal(count_of(sum, SW_FUSED_DOT, SW_FUSION_TORCH), 0);
	assert_int_equal(count_of(sum, SW_FUSED_DOT, SW_FUSION_XLA_GPU), 1);
}

/* This system's kernels run by tiles or op by op: of what a product takes along the ops are one
 * kernel again. */
static void what_a_product_takes_is_one_loop_inside(void **state)
{
	(void)state;
	sw_error err = {0};
	sw_program *program = read_hlo(product_text), *fused;
	assert_int_equal(sw_fuse(program, SW_FUSION_LOOPS, &fused, &err), SW_OK);
	int kernels[SW_FUSED_COUNT] = {0}, alone = 0;
	for (size_t i = 0; i < fused->ops.len; i++) {
		const sw_op *op = sw_op_at(fused, (sw_id)i);
		if (sw_fused_kernel_of(op) == SW_FUSED_COUNT)
			continue;
		kernels[sw_fused_kernel_of(op)]++;
		const sw_computation *inside = &fused->computations.data[op->called[0]];
		for (size_t k = 0; k < inside->ops.len; k++)
			alone += sw_fused_kernel_of(op) == SW_FUSED_DOT &&
			         sw_op_at(fused, inside->ops.data[k])->opcode != SW_OP_PARAMETER;
	}
	assert_int_equal(kernels[SW_FUSED_DOT], 1);
	assert_int_equal(kernels[SW_FUSED_LOOP], 1);
	assert_int_equal(alone, 2); /* the product and the loop */
	sw_program_free(fused);
	sw_program_free(program);
}

/* A number that nothing reads is computed, alone if need be: what it reads is stored. */
static void what_nothing_reads_is_a_kernel(void **state)
{
	(void)state;
	static const char text[] = HEAD
		"ENTRY e { x = f32[] parameter(0) y = f32[64] parameter(1)\n"
		" a = f32[] add(x, x)\n dead = f32[] multiply(a, x)\n"
		" b = f32[64] broadcast(a), dimensions={}\n"
		" ROOT s = f32[64] add(b, y) }";
	for (int device = SW_FUSION_LOOPS; device < SW_FUSION_COUNT; device++) {
		sw_program *program = NULL, *fused = NULL;
		sw_error err = {0};
		/* the canonical form has no such ops; partitioned programs may */
		assert_int_equal(sw_read_hlo(text, strlen(text), "test", &program, &err), SW_OK);
		if (sw_fuse(program, (sw_fusion)device, &fused, &err) != SW_OK)
			fail_msg("%s: %s", sw_fusion_name((sw_fusion)device), err.message);
		sw_program_free(fused);
		sw_program_free(program);
	}
}

/* Were a joined to b's reader, that kernel would wait for itself through the gather. */
static void kernels_do_not_wait_for_themselves(void **state)
{
	(void)state;
	static const char text[] = HEAD
		"ENTRY e { x = f32[64] parameter(0) i = s32[64,1] parameter(1)\n"
		" a = f32[64] tanh(x)\n"
		" g = f32[64] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, "
		"start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
		" ROOT s = f32[64] add(a, g) }";
	for (int device = SW_FUSION_LOOPS; device < SW_FUSION_COUNT; device++)
		assert_int_equal(count_of(text, SW_FUSED_LOOP, (sw_fusion)device), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fixture_is_cut_into_kernels),
		cmocka_unit_test(reductions_of_rows_join_their_readers),
		cmocka_unit_test(slices_are_cut_out_by_their_readers),
		cmocka_unit_test(what_is_gathered_is_computed_on_the_way),
		cmocka_unit_test(what_reads_no_array_is_repeated),
		cmocka_unit_test(repeated_values_are_not_stored),
		cmocka_unit_test(products_take_bias_and_activation),
		cmocka_unit_test(eager_products_take_a_bias_alone),
		cmocka_unit_test(what_a_product_takes_is_one_loop_inside),
		cmocka_unit_test(what_nothing_reads_is_a_kernel),
		cmocka_unit_test(kernels_do_not_wait_for_themselves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
