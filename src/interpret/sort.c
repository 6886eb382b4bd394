/*
 * sort and topk. Rows are sorted by index with a merge sort, which is stable; then every operand is
 * read in the new order. A comparator that is a single comparison of one pair of parameters calls
 * that comparison; any other elementwise comparator runs as a computation, one pair at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "interpret/kernel.h"

typedef struct sorter {
	sw_call *call;
	sw_error *err;
	sw_status status;
	uint32_t k; /* number of operands */
	int64_t base, stride;
	/* the comparison of operand `key` if the comparator is a single one, or NULL */
	sw_binary_fn *compare;
	uint32_t key;
	bool swapped;    /* the comparator compares (second, first) */
	sw_tensor *pair; /* single elements: 2 per operand */
} sorter;

/* ---- comparing -------------------------------------------------------------------------- */

static int64_t parameter_number(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	return op->opcode == SW_OP_PARAMETER && op->n_results == 1 ? op->attrs->parameter.number
	                                                           : -1;
}

static void find_single_comparison(const sw_program *program, int32_t computation, sorter *s)
{
	const sw_computation *c = &program->computations.data[computation];
	const sw_op *op = sw_op_at(program, program->values.data[c->results.data[0]].op);
	if (op->opcode != SW_OP_COMPARE)
		return;
	int64_t x = parameter_number(program, op->operands[0]),
		y = parameter_number(program, op->operands[1]);
	if (x < 0 || y < 0 || x == y || x / 2 != y / 2)
		return;
	const char *type = op->attrs->compare.type;
	s->compare = sw_find_compare(op->attrs->compare.direction,
	                             type && strcmp(type, "TOTALORDER") == 0,
	                             sw_value_shape(program, op->operands[0]).type);
	s->key = (uint32_t)(x / 2);
	s->swapped = x > y;
}

static const char *element(const sorter *s, uint32_t operand, int64_t i)
{
	sw_tensor x = s->call->in[operand];
	return (const char *)sw_tensor_data(x) +
	       (s->base + i * s->stride) * sw_type_bytes(x.shape.type);
}

static bool comes_before(sorter *s, int64_t i, int64_t j)
{
	uint8_t before = 0;
	if (s->compare) {
		const char *x = element(s, s->key, s->swapped ? j : i),
			   *y = element(s, s->key, s->swapped ? i : j);
		s->compare(1, x, 0, y, 0, &before);
		return before;
	}
	sw_tensor answer = {0};
	for (uint32_t k = 0; k < s->k; k++) {
		size_t bytes = s->pair[2 * k].buffer->bytes;
		memcpy(sw_tensor_data(s->pair[2 * k]), element(s, k, i), bytes);
		memcpy(sw_tensor_data(s->pair[2 * k + 1]), element(s, k, j), bytes);
	}
	if (s->status == SW_OK)
		s->status = sw_interpret_lanes(s->call->interpreter, s->call->op->called[0], 1,
		                               s->pair, &answer, s->err);
	if (s->status == SW_OK)
		before = *(const uint8_t *)sw_tensor_data(answer);
	sw_pool_drop(&s->call->interpreter->pool, &answer);
	return before;
}

/* ---- sorting ---------------------------------------------------------------------------- */

/* Sort order[0 .. n) using other[0 .. n) as scratch memory. */
static void merge_sort(sorter *s, int64_t *order, int64_t *other, int64_t n)
{
	for (int64_t width = 1; width < n; width *= 2) {
		for (int64_t begin = 0; begin < n; begin += 2 * width) {
			int64_t middle = SW_MIN(begin + width, n),
				end = SW_MIN(begin + 2 * width, n);
			int64_t i = begin, j = middle;
			for (int64_t at = begin; at < end; at++) {
				bool right = i == middle ||
				             (j < end && comes_before(s, order[j], order[i]));
				other[at] = right ? order[j++] : order[i++];
			}
		}
		memcpy(order, other, (size_t)n * sizeof *order);
	}
}

static void put_in_order(const sorter *s, uint32_t operand, const int64_t *order, int64_t n)
{
	sw_tensor out = s->call->out[operand];
	size_t bytes = (size_t)sw_type_bytes(out.shape.type);
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)sw_tensor_data(out) + (size_t)(s->base + i * s->stride) * bytes,
		       element(s, operand, order[i]), bytes);
}

/* Sort every row along `dimension`. A row starts at each offset whose index in that dimension is
 * 0. */
static void sort_rows(sorter *s, sw_shape shape, int64_t dimension, int64_t *order)
{
	int64_t n = shape.dims[dimension], inner = 1, outer = 1;
	for (int64_t d = 0; d < shape.rank; d++) {
		inner *= d > dimension ? shape.dims[d] : 1;
		outer *= d < dimension ? shape.dims[d] : 1;
	}
	s->stride = inner;
	for (int64_t row = 0; row < outer * inner && s->status == SW_OK; row++) {
		s->base = row / inner * n * inner + row % inner;
		for (int64_t i = 0; i < n; i++)
			order[i] = i;
		merge_sort(s, order, order + n, n);
		for (uint32_t k = 0; k < s->k; k++)
			put_in_order(s, k, order, n);
	}
}

static sw_status make_pairs(sorter *s)
{
	s->pair = sw_alloc(sizeof *s->pair * 2 * s->k);
	for (uint32_t i = 0; s->status == SW_OK && i < 2 * s->k; i++)
		s->status = sw_scratch_new(s->call->interpreter,
		                           (sw_shape){s->call->in[i / 2].shape.type, 0, 0, NULL},
		                           &s->pair[i], s->err);
	return s->status;
}

int64_t sw_workspace_sort(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	int64_t n = sw_value_shape(program, op->first_result).dims[op->attrs->sort.dimension],
		twice;
	int64_t workspace = sw_workspace_lanes(program, op->called[0], 1);
	for (uint32_t i = 0; i < op->n_operands; i++)
		workspace = sw_workspace_add(workspace, 2 * SW_ALIGNMENT);
	return sw_mul_i64(n, 2, &twice)
	               ? sw_workspace_add(workspace, sw_workspace_elements(twice, SW_S64))
	               : INT64_MAX;
}

sw_status sw_kernel_sort(sw_call *call, sw_error *err)
{
	sorter s = {.call = call, .err = err, .k = call->op->n_operands};
	sw_shape shape = call->shapes[0];
	int64_t dimension = call->op->attrs->sort.dimension, twice = 2 * shape.dims[dimension];
	sw_tensor order = {0};
	find_single_comparison(call->program, call->op->called[0], &s);
	s.status = make_pairs(&s);
	for (uint32_t i = 0; s.status == SW_OK && i < s.k; i++)
		s.status = sw_result_new(call, i, err);
	if (s.status == SW_OK)
		s.status = sw_scratch_new(call->interpreter, (sw_shape){SW_S64, 1, 0, &twice},
		                          &order, err);
	if (s.status == SW_OK)
		sort_rows(&s, shape, dimension, sw_tensor_data(order));
	for (uint32_t i = 0; i < 2 * s.k; i++)
		sw_pool_drop(&call->interpreter->pool, &s.pair[i]);
	sw_pool_drop(&call->interpreter->pool, &order);
	free(s.pair);
	return s.status;
}

/* ---- topk ------------------------------------------------------------------------------- */

bool sw_prepare_topk(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_direction direction = op->attrs->topk.largest ? SW_GT : SW_LT;
	plan->impl.binary = sw_find_compare(direction, true, sw_operand_type(program, op, 0));
	return plan->impl.binary != NULL && op->n_results == 2;
}

int64_t sw_workspace_topk(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	sw_shape shape = sw_value_shape(program, op->operands[0]);
	int64_t twice;
	return sw_mul_i64(shape.dims[shape.rank - 1], 2, &twice)
	               ? sw_workspace_elements(twice, SW_S64)
	               : INT64_MAX;
}

/* Return the first k of each row in the total order, ties by index: values and s32 positions. */
sw_status sw_kernel_topk(sw_call *call, sw_error *err)
{
	sorter s = {
		.call = call, .err = err, .k = 1, .stride = 1, .compare = call->plan->impl.binary};
	sw_shape shape = call->in[0].shape;
	int64_t n = shape.dims[shape.rank - 1], k = call->op->attrs->topk.k, twice = 2 * n;
	int64_t rows = n ? sw_shape_elements(shape) / n : 0;
	size_t bytes = (size_t)sw_type_bytes(shape.type);
	sw_tensor scratch = {0};
	sw_status status = sw_result_new(call, 0, err);
	if (status == SW_OK)
		status = sw_result_new(call, 1, err);
	if (status == SW_OK)
		status = sw_scratch_new(call->interpreter, (sw_shape){SW_S64, 1, 0, &twice},
		                        &scratch, err);
	for (int64_t row = 0; status == SW_OK && row < rows; row++) {
		int64_t *order = sw_tensor_data(scratch);
		s.base = row * n;
		for (int64_t i = 0; i < n; i++)
			order[i] = i;
		merge_sort(&s, order, order + n, n);
		for (int64_t i = 0; i < k; i++) {
			int64_t at = row * k + i;
			memcpy((char *)sw_tensor_data(call->out[0]) + (size_t)at * bytes,
			       element(&s, 0, order[i]), bytes);
			sw_convert_elements(SW_S64, &order[i], call->shapes[1].type,
			                    (char *)sw_tensor_data(call->out[1]) +
			                            at * sw_type_bytes(call->shapes[1].type),
			                    1);
		}
	}
	sw_pool_drop(&call->interpreter->pool, &scratch);
	return status;
}
