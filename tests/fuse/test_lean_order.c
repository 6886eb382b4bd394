/*
 * The order in which memory is freed soon: operands stand before what reads them, every op once,
 * and no more is live at the most than in the given order; in a step of JAX's, less.
 */
#include "fuse/lean_order.h"
#include "fuse/softmaxes.h"

#include <glob.h>
#include <string.h>

/* ---- what is live ------------------------------------------------------------------------ */

static bool is_view(const sw_op *op)
{
	return op->n_operands == 1 && op->n_results == 1 &&
	       (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST);
}

static bool is_replaced(const sw_program *program, uint32_t leaf)
{
	for (size_t a = 0; a < program->aliases.len; a++)
		if (program->aliases.data[a].input == leaf)
			return true;
	return false;
}

/* The most bytes that are live if the entry's ops run in this order: results from the op that gives
 * them on until the last that reads them or a view of them, results of the entry and inputs that
 * are not replaced for ever. */
static double most_live(const sw_program *program, const sw_id *order, size_t n)
{
	const sw_computation *entry = sw_entry(program);
	sw_id *holder = sw_alloc(sizeof(sw_id) * (program->values.len + 1));
	size_t *last = sw_alloc(sizeof(size_t) * (program->values.len + 1));
	double *freed = sw_alloc(sizeof(double) * (n + 1)), live = 0, most = 0;
	for (size_t i = 0; i < n; i++) {
		const sw_op *op = sw_op_at(program, order[i]);
		for (uint32_t r = 0; r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			holder[value] = is_view(op) ? holder[op->operands[0]] : value;
			last[holder[value]] = i;
		}
		for (uint32_t k = 0; k < op->n_operands; k++)
			last[holder[op->operands[k]]] = i;
	}
	for (size_t i = 0; i < entry->results.len; i++)
		last[holder[entry->results.data[i]]] = n;
	uint32_t leaf = 0;
	for (size_t i = 0; i < entry->parameters.len; i++) {
		const sw_op *op = sw_op_at(program, entry->parameters.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++, leaf++)
			if (!is_replaced(program, leaf))
				last[op->first_result + r] = n;
	}
	for (size_t i = 0; i < n; i++) {
		const sw_op *op = sw_op_at(program, order[i]);
		for (uint32_t r = 0; r < op->n_results && !is_view(op); r++) {
			double bytes = (double)sw_shape_bytes(
				sw_value_shape(program, op->first_result + r));
			live += bytes;
			freed[last[op->first_result + r]] += bytes;
		}
		most = SW_MAX(most, live);
		live -= freed[i];
	}
	free(holder);
	free(last);
	free(freed);
	return most;
}

/* ---- checks ------------------------------------------------------------------------------ */

static void check_order(const sw_program *program, const sw_id *order, size_t n)
{
	const sw_computation *entry = sw_entry(program);
	bool *done = sw_alloc(program->ops.len + 1);
	assert_int_equal(n, entry->ops.len);
	for (size_t i = 0; i < n; i++) {
		const sw_op *op = sw_op_at(program, order[i]);
		assert_false(done[order[i]]);
		assert_int_equal(op->computation, program->entry);
		for (uint32_t k = 0; k < op->n_operands; k++)
			assert_true(done[program->values.data[op->operands[k]].op]);
		done[order[i]] = true;
	}
	free(done);
}

static sw_kernel_order order_of(const sw_program *program)
{
	bool *wanted = sw_alloc(program->computations.len + 1);
	sw_kernel_order *orders =
		sw_alloc(sizeof(sw_kernel_order) * (program->computations.len + 1));
	wanted[program->entry] = true;
	sw_lean_orders(program, wanted, orders);
	sw_kernel_order order = orders[program->entry];
	free(orders);
	free(wanted);
	return order;
}

/* Return what the order's peak is of the given one's. */
static double share_of(const sw_program *program)
{
	const sw_computation *entry = sw_entry(program);
	size_t n = entry->ops.len;
	sw_kernel_order order = order_of(program);
	check_order(program, order.data, order.len);
	double share = most_live(program, order.data, n) / most_live(program, entry->ops.data, n);
	sw_vec_clear(&order);
	return share;
}

static void no_step_holds_more(void **state)
{
	(void)state;
	glob_t found;
	double least = 1;
	assert_int_equal(glob(SW_SOURCE_DIR "/tests/programs/*.hlo.gz", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char name[64];
		const char *file = strrchr(found.gl_pathv[i], '/') + 1;
		snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(".hlo.gz")), file);
		sw_program *program = read_fixture(SW_SOURCE_DIR "/tests/programs/", name);
		double share = share_of(program);
		printf("%.3f %s\n", share, name);
		if (share > 1)
			fail_msg("%s holds %.4f of what it does in its own order", name, share);
		least = SW_MIN(least, share);
		sw_program_free(program);
	}
	globfree(&found);
	assert_true(least < 0.7);
}

/* The gradient of a weight, which the program computes at its end, frees an activation and what is
 * derived from it. The input that no output replaces is never freed, so that nothing is gained by
 * reading it early. */
static void what_frees_most_is_pulled_forward(void **state)
{
	(void)state;
	sw_program *program = read_hlo(
		"HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
		"ENTRY e { w = f32[4,4] parameter(0)\n x = f32[64,4] parameter(1)\n"
		" a = f32[64,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		" b = f32[64,4] exponential(a)\n d = f32[64,4] multiply(b, b)\n"
		" e1 = f32[64,4] negate(d)\n f = f32[64,4] tanh(e1)\n"
		" late = f32[4,4] dot(a, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
		" early = f32[4,4] dot(x, f), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
		" s = f32[4,4] add(late, early)\n n = f32[4,4] add(w, s)\n"
		" ROOT r = (f32[4,4], f32[64,4]) tuple(n, f) }\n");
	sw_kernel_order order = order_of(program);
	check_order(program, order.data, order.len);
	size_t late = 0, tanh = 0;
	for (size_t i = 0; i < order.len; i++) {
		late = strcmp(sw_op_at(program, order.data[i])->name, "late") == 0 ? i : late;
		tanh = strcmp(sw_op_at(program, order.data[i])->name, "f") == 0 ? i : tanh;
	}
	assert_true(late < tanh);
	assert_true(share_of(program) < 1);
	sw_vec_clear(&order);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_step_holds_more),
		cmocka_unit_test(what_frees_most_is_pulled_forward),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
