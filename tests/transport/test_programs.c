/* Collective ops of a program, on any dimension and with every form of group, against the
 * definition of each element. */
#include "ranks.h"

#include <string.h>

#define RANK 3

/* ---- groups: every form that HLO has ---------------------------------------------------- */

typedef enum group_form { EMPTY, IOTA, IOTA_TRANSPOSED, LIST, RAGGED, FORMS } group_form;

/* The groups of a form for `size` ranks, and this rank's group, by the definition of the form. */
typedef struct group {
	sw_groups groups;
	int64_t numbers[2 * MAX_RANKS], reshape[2], transpose[2];
	int32_t ranks[MAX_RANKS], n, position;
} group;

static int64_t list_entry(group_form form, int32_t size, int32_t i)
{
	int32_t half = form == RAGGED ? size - 1 : size / 2;
	int32_t row = i / half, column = i % half;
	if (form == LIST)
		return row * half + (half - 1 - column);
	return row == 0 ? column + 1 : column == 0 ? 0 : -1;
}

static bool make_groups(group_form form, int32_t size, int32_t rank, group *g)
{
	*g = (group){.reshape = {size, 2}, .transpose = {1, 0}};
	if ((form == RAGGED && size < 3) || (form != RAGGED && form != EMPTY && size % 2))
		return false;
	int32_t half = form == EMPTY ? size : form == RAGGED ? size - 1 : size / 2;
	g->groups = (sw_groups){.n_groups = form == EMPTY ? 0 : 2, .group_size = half};
	if (form == IOTA || form == IOTA_TRANSPOSED)
		g->groups.reshape = (sw_ints){1, g->reshape};
	if (form == IOTA_TRANSPOSED) {
		g->reshape[0] = half;
		g->groups.reshape.n = 2;
		g->groups.transpose = (sw_ints){2, g->transpose};
	}
	for (int32_t i = 0; i < 2 * half && (form == LIST || form == RAGGED); i++) {
		g->numbers[i] = list_entry(form, size, i);
		g->groups.list = g->numbers;
	}
	for (int32_t i = 0; i < (form == EMPTY ? 1 : 2) * half; i++) {
		int32_t member = i % half, row = i / half;
		int64_t id = form == IOTA_TRANSPOSED         ? 2 * member + row
		             : form == EMPTY || form == IOTA ? i
		                                             : g->numbers[i];
		if (member == 0 && g->n && g->ranks[g->position] == rank)
			return true;
		g->n = member == 0 ? 0 : g->n;
		if (id == rank)
			g->position = g->n;
		if (id >= 0)
			g->ranks[g->n++] = (int32_t)id;
	}
	return true;
}

/* ---- expected elements ------------------------------------------------------------------ */

static float element(int32_t rank, const int64_t *index)
{
	return (float)(rank * 4096 + index[0] * 256 + index[1] * 16 + index[2]);
}

static float expected(sw_opcode opcode, const group *g, int64_t dimension, int64_t extent,
                      const int64_t *index)
{
	int64_t at[RANK] = {index[0], index[1], index[2]};
	int64_t chunk = opcode == SW_OP_ALL_GATHER ? extent : extent / g->n,
		block = index[dimension] / chunk;
	float sum = 0;
	switch (opcode) {
	case SW_OP_ALL_GATHER:
		at[dimension] = index[dimension] % chunk;
		return element(g->ranks[block], at);
	case SW_OP_ALL_TO_ALL:
		at[dimension] = g->position * chunk + index[dimension] % chunk;
		return element(g->ranks[block], at);
	case SW_OP_REDUCE_SCATTER:
		at[dimension] += g->position * chunk;
		break;
	default:
		break;
	}
	for (int32_t i = 0; i < g->n; i++)
		sum += element(g->ranks[i], at);
	return sum;
}

static sw_status compare(const sw_program *p, sw_opcode opcode, const group *g, int64_t dimension,
                         int64_t extent, sw_tensor got, sw_error *err)
{
	const float *data = sw_tensor_data(got);
	int64_t index[RANK], k = 0;
	const int64_t *dims = got.shape.dims;
	for (index[0] = 0; index[0] < dims[0]; index[0]++)
		for (index[1] = 0; index[1] < dims[1]; index[1]++)
			for (index[2] = 0; index[2] < dims[2]; index[2]++, k++) {
				float wanted = expected(opcode, g, dimension, extent, index);
				if (data[k] != wanted)
					return sw_fail(err, SW_NO,
					               "%s along %lld: element %lld is %g, not %g",
					               sw_op_opcode_name(&p->ops.data[1]),
					               (long long)dimension, (long long)k,
					               (double)data[k], (double)wanted);
			}
	return SW_OK;
}

/* ---- running one op --------------------------------------------------------------------- */

static void fill(sw_tensor tensor, int32_t rank)
{
	float *data = sw_tensor_data(tensor);
	int64_t index[RANK];
	const int64_t *dims = tensor.shape.dims;
	for (index[0] = 0; index[0] < dims[0]; index[0]++)
		for (index[1] = 0; index[1] < dims[1]; index[1]++)
			for (index[2] = 0; index[2] < dims[2]; index[2]++)
				*data++ = element(rank, index);
}

/* Perform the op that makes `result` on this rank's operand; the caller frees *out. */
static sw_status perform(sw_transport *t, const sw_program *p, sw_id result, sw_tensor *out,
                         sw_error *err)
{
	const sw_op *op = sw_op_at(p, p->values.data[result].op);
	sw_tensor in;
	sw_status status = sw_tensor_new(sw_value_shape(p, op->operands[0]), false, &in, err);
	if (status == SW_OK)
		status = sw_tensor_new(sw_value_shape(p, result), false, out, err);
	if (status)
		return status;
	fill(in, t->rank);
	status = sw_transport_collective(t, p, p->values.data[result].op, &in, out, err);
	sw_tensor_drop(&in);
	return status;
}

static sw_status check_payload(const sw_transport *t, sw_opcode opcode, int64_t before,
                               int64_t bytes, int32_t n, sw_error *err)
{
	int64_t counted = t->traffic.payload_bytes - before,
		wanted = sw_collective_payload_bytes(opcode, bytes, n);
	if (counted == wanted)
		return SW_OK;
	return sw_fail(err, SW_NO, "%s: %lld bytes of payload, not %lld", sw_opcode_name(opcode),
	               (long long)counted, (long long)wanted);
}

static sw_status run_op(sw_transport *t, sw_opcode opcode, const group *g, int64_t dimension,
                        sw_error *err)
{
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	p->num_partitions = t->size; /* the number of ranks of the group of all ranks */
	int64_t dims[RANK] = {g->n, g->n, g->n}, before = t->traffic.payload_bytes;
	dims[dimension] = 2 * g->n;
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, dims, RANK), "x");
	sw_id y = sw_emit_collective(p, c, opcode, SW_MONOID_SUM, x, dimension, &g->groups);
	sw_tensor out = {0};
	sw_status status = perform(t, p, y, &out, err);
	if (status == SW_OK)
		status = compare(p, opcode, g, dimension, dims[dimension], out, err);
	if (status == SW_OK)
		status = check_payload(t, opcode, before, sw_shape_bytes(sw_value_shape(p, x)),
		                       g->n, err);
	if (out.buffer)
		sw_tensor_drop(&out);
	sw_program_free(p);
	return status;
}

static sw_status run_all_ops(sw_transport *t, void *context, sw_error *err)
{
	static const sw_opcode opcodes[] = {SW_OP_ALL_REDUCE, SW_OP_ALL_GATHER,
	                                    SW_OP_REDUCE_SCATTER, SW_OP_ALL_TO_ALL};
	(void)context;
	group g;
	sw_status status = SW_OK;
	for (group_form form = 0; form < FORMS; form++)
		for (size_t i = 0; i < SW_COUNT(opcodes) && make_groups(form, t->size, t->rank, &g);
		     i++)
			for (int64_t dimension = 0; dimension < RANK && status == SW_OK;
			     dimension++)
				if (form != RAGGED || opcodes[i] == SW_OP_ALL_REDUCE)
					status = run_op(t, opcodes[i], &g, dimension, err);
	return status;
}

static void every_op_along_every_dimension_in_every_group(void **state)
{
	(void)state;
	run_everywhere(run_all_ops, NULL);
}

/* Ranks 0 -> 1 -> 2 ...: the last sends nothing, the first gets zeros. */
static sw_status run_permute(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	int64_t pairs[2 * MAX_RANKS], dims[RANK] = {2, 3, 4}, index[RANK] = {1, 2, 3},
				      before = t->traffic.payload_bytes;
	for (int32_t r = 0; r + 1 < t->size; r++) {
		pairs[2 * r] = r;
		pairs[2 * r + 1] = r + 1;
	}
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, dims, RANK), "x");
	sw_id y = sw_emit_permute(p, c, x, pairs, t->size - 1);
	sw_tensor out = {0};
	sw_status status = perform(t, p, y, &out, err);
	float wanted = t->rank ? element(t->rank - 1, index) : 0;
	if (status == SW_OK && ((float *)sw_tensor_data(out))[23] != wanted)
		status = sw_fail(err, SW_NO, "the last element is %g",
		                 (double)((float *)sw_tensor_data(out))[23]);
	int64_t sent = t->rank + 1 < t->size ? 96 : 0;
	if (status == SW_OK && t->traffic.payload_bytes - before != sent)
		status = sw_fail(err, SW_NO, "%lld bytes of payload",
		                 (long long)(t->traffic.payload_bytes - before));
	if (out.buffer)
		sw_tensor_drop(&out);
	sw_program_free(p);
	return status;
}

static void a_permute_counts_bytes_on_senders_only(void **state)
{
	(void)state;
	run_everywhere(run_permute, NULL);
}

/* ---- algorithms that a plan says -------------------------------------------------------- */

/* Sum up, over all ranks, numbers whose sum depends on the order, by the algorithm that the op says (as in
 * sw_sending), or that is forced. */
static sw_status sum_by(sw_transport *t, uint32_t said, sw_algorithm force, sw_tensor *out,
                        int64_t *wire_bytes, sw_error *err)
{
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	p->num_partitions = t->size;
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, (int64_t[]){1000}, 1), "x");
	sw_id y = sw_emit_collective(p, c, SW_OP_ALL_REDUCE, SW_MONOID_SUM, x, 0, &(sw_groups){0});
	sw_op *op = &p->ops.data[p->values.data[y].op];
	sw_attrs attrs = *op->attrs;
	attrs.collective.sending.algorithm = said;
	op->attrs = &attrs;
	sw_tensor in = {0};
	sw_status status = sw_tensor_new(sw_value_shape(p, x), false, &in, err);
	if (status == SW_OK)
		status = sw_tensor_new(sw_value_shape(p, y), false, out, err);
	for (int32_t i = 0; status == SW_OK && i < 1000; i++)
		((float *)sw_tensor_data(in))[i] = 1 / (float)(3 + 7 * t->rank + i);
	int64_t before = t->traffic.wire_bytes;
	sw_transport_tune(t, NULL, force);
	if (status == SW_OK)
		status = sw_transport_collective(t, p, p->values.data[y].op, &in, out, err);
	sw_transport_tune(t, NULL, SW_ALGORITHM_COUNT);
	*wire_bytes = t->traffic.wire_bytes - before;
	if (in.buffer)
		sw_tensor_drop(&in);
	sw_program_free(p);
	return status;
}

/* What an op says is what is done: the bits of the sum, and what is sent, are those of the algorithm. */
static sw_status sum_as_said(sw_transport *t, void *context, sw_error *err)
{
	static const sw_algorithm algorithms[] = {SW_ALGORITHM_DIRECT, SW_ALGORITHM_RING,
	                                          SW_ALGORITHM_HALVING};
	sw_tensor said[SW_COUNT(algorithms)], forced = {0};
	memset(said, 0, sizeof(said));
	sw_status status = SW_OK;
	bool differ = t->size < 4;
	(void)context;
	for (size_t i = 0; i < SW_COUNT(algorithms) && status == SW_OK; i++) {
		int64_t sent, expected;
		status = sum_by(t, 1 + (uint32_t)algorithms[i], SW_ALGORITHM_COUNT, &said[i], &sent, err);
		if (status == SW_OK)
			status = sum_by(t, 0, algorithms[i], &forced, &expected, err);
		if (status == SW_OK && (sent != expected || memcmp(sw_tensor_data(said[i]),
		                                                   sw_tensor_data(forced), 4000) != 0))
			status = sw_fail(err, SW_NO, "%s is said, and not done",
			                 sw_algorithm_name(algorithms[i]));
		differ = differ || (status == SW_OK && memcmp(sw_tensor_data(said[i]),
		                                              sw_tensor_data(said[0]), 4000) != 0);
		if (forced.buffer)
			sw_tensor_drop(&forced);
	}
	for (size_t i = 0; i < SW_COUNT(algorithms); i++)
		if (said[i].buffer)
			sw_tensor_drop(&said[i]);
	return status == SW_OK && !differ
	               ? sw_fail(err, SW_NO, "all algorithms give the same bits: nothing is tested")
	               : status;
}

static void an_algorithm_that_a_plan_says_is_taken(void **state)
{
	(void)state;
	run_everywhere(sum_as_said, NULL);
}

/* ---- rejected ops ----------------------------------------------------------------------- */

static sw_status groups_of_others(sw_transport *t, void *context, sw_error *err)
{
	const sw_groups *groups = context;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	int64_t dims[RANK] = {4, 4, 4};
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, dims, RANK), "x");
	sw_id y = sw_emit_collective(p, c, SW_OP_ALL_REDUCE, SW_MONOID_SUM, x, 0, groups);
	sw_tensor out = {0};
	sw_status status = perform(t, p, y, &out, err);
	if (out.buffer)
		sw_tensor_drop(&out);
	sw_program_free(p);
	return status;
}

static void groups_that_do_not_fit_the_ranks_are_refused(void **state)
{
	(void)state;
	if (sw_transport_under_mpi())
		skip();
	static const struct {
		int64_t list[4];
		const char *message;
	} cases[] = {
		{{0, 1, 2, 3}, "all-reduce: its groups name rank 2, and there are 2 ranks"},
		{{2, 3, 4, 5}, "all-reduce: rank 0 is in none of its groups"},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		outcome result;
		sw_groups groups = {.n_groups = 1, .group_size = 4, .list = cases[i].list};
		run_ranks(2, true, groups_of_others, &groups, &result);
		assert_int_equal(result.status[0], SW_ERR_INPUT);
		assert_non_null(strstr(result.error[0].message, strchr(cases[i].message, ':')));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_along_every_dimension_in_every_group),
		cmocka_unit_test(a_permute_counts_bytes_on_senders_only),
		cmocka_unit_test(an_algorithm_that_a_plan_says_is_taken),
		cmocka_unit_test(groups_that_do_not_fit_the_ranks_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, end_ranks);
}
