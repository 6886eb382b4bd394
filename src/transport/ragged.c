/*
 * ragged-all-to-all as two exchanges of equal blocks: first each member tells the others how many
 * rows it sends and where they go, then it sends the rows, padded to the largest number of rows
 * that any member sends to another.
 */
#include "transport/ragged.h"

#include <string.h>

#include "program/number.h"

typedef struct ragged_exchange {
	sw_transport *t;
	const char *name;
	const int32_t *ranks;
	int32_t n;
	int64_t pieces; /* per member */
	int64_t row_bytes, in_rows, out_rows;
	const sw_tensor *in;
	int64_t *sent_counts, *received_counts; /* [n][pieces][2]: first row and number of rows */
	int64_t block_rows;
	char *sent, *received;
} ragged_exchange;

enum { INPUT, OUTPUT, INPUT_OFFSETS, SEND_SIZES, OUTPUT_OFFSETS, RECEIVE_SIZES };

static int64_t number(const ragged_exchange *x, int list, int64_t i)
{
	return sw_integer_get(x->in[list].shape.type, sw_tensor_data(x->in[list]), i);
}

static sw_status bad(const ragged_exchange *x, const char *what, sw_error *err)
{
	return sw_fail(err, SW_ERR_INPUT, "%s: %s", x->name, what);
}

static int64_t row_bytes(sw_shape shape)
{
	int64_t bytes = sw_type_bytes(shape.type);
	for (int32_t d = 1; d < shape.rank; d++)
		bytes *= shape.dims[d];
	return bytes;
}

static sw_status describe(ragged_exchange *x, sw_error *err)
{
	sw_shape in = x->in[INPUT].shape, out = x->in[OUTPUT].shape;
	int64_t numbers = sw_shape_elements(x->in[INPUT_OFFSETS].shape);
	if (in.rank < 1 || in.rank != out.rank || in.type != out.type ||
	    row_bytes(in) != row_bytes(out))
		return bad(x,
		           "what is sent and what is received differ by more than their number of "
		           "rows",
		           err);
	for (int list = SEND_SIZES; list <= RECEIVE_SIZES; list++) {
		if (sw_shape_elements(x->in[list].shape) != numbers)
			return bad(x, "its lists of offsets and sizes differ in length", err);
	}
	if (numbers % x->n)
		return bad(x,
		           "its lists of offsets and sizes do not divide by the ranks of a group",
		           err);
	x->pieces = numbers / x->n;
	x->row_bytes = row_bytes(in);
	x->in_rows = in.dims[0];
	x->out_rows = out.dims[0];
	return SW_OK;
}

static bool lies_in(int64_t begin, int64_t rows, int64_t all)
{
	return begin >= 0 && rows >= 0 && rows <= all && begin <= all - rows;
}

static sw_status tell(ragged_exchange *x, sw_error *err)
{
	int64_t numbers = x->n * x->pieces, bytes = 2 * x->pieces * (int64_t)sizeof(int64_t);
	x->sent_counts = sw_alloc((size_t)numbers * 2 * sizeof(int64_t) + 1);
	x->received_counts = sw_alloc((size_t)numbers * 2 * sizeof(int64_t) + 1);
	for (int64_t i = 0; i < numbers; i++) {
		x->sent_counts[2 * i] = number(x, OUTPUT_OFFSETS, i);
		x->sent_counts[2 * i + 1] = number(x, SEND_SIZES, i);
		if (!lies_in(number(x, INPUT_OFFSETS, i), x->sent_counts[2 * i + 1], x->in_rows))
			return bad(x, "it sends rows that are not there", err);
	}
	sw_status status = x->t->ops->all_to_all(x->t, x->ranks, x->n, x->sent_counts,
	                                         x->received_counts, bytes, err);
	for (int64_t i = 0; status == SW_OK && i < numbers; i++) {
		if (!lies_in(x->received_counts[2 * i], x->received_counts[2 * i + 1], x->out_rows))
			status = bad(x, "rows arrive that have no place in its result", err);
		else if (x->received_counts[2 * i + 1] != number(x, RECEIVE_SIZES, i))
			status = bad(x, "other numbers of rows arrive than it expects", err);
	}
	return status;
}

static int64_t rows_for(const ragged_exchange *x, int32_t member)
{
	int64_t rows = 0;
	for (int64_t p = 0; p < x->pieces; p++)
		rows += x->sent_counts[2 * (member * x->pieces + p) + 1];
	return rows;
}

/* Find the largest block of all members. */
static sw_status agree_on_block(ragged_exchange *x, sw_error *err)
{
	int64_t mine = 0;
	for (int32_t m = 0; m < x->n; m++)
		mine = SW_MAX(mine, rows_for(x, m));
	return x->t->ops->all_reduce(x->t, x->ranks, x->n, SW_MONOID_MAX, SW_S64, &mine,
	                             &x->block_rows, 1, err);
}

static sw_status move_rows(ragged_exchange *x, char *out, sw_error *err)
{
	int64_t block = x->block_rows * x->row_bytes, all;
	if (!sw_mul_i64(block, x->n, &all))
		return bad(x, "too many rows", err);
	x->sent = sw_try_alloc((size_t)all + 1);
	x->received = sw_try_alloc((size_t)all + 1);
	if (!x->sent || !x->received)
		return sw_fail(err, SW_ERR_IO, "%s: no memory for %lld bytes of rows", x->name,
		               (long long)all);
	for (int32_t m = 0; m < x->n; m++) {
		char *to = x->sent + m * block;
		for (int64_t i = m * x->pieces; i < (m + 1) * x->pieces; i++) {
			size_t bytes = (size_t)(x->sent_counts[2 * i + 1] * x->row_bytes);
			memcpy(to,
			       (const char *)sw_tensor_data(x->in[INPUT]) +
			               number(x, INPUT_OFFSETS, i) * x->row_bytes,
			       bytes);
			to += bytes;
		}
	}
	sw_status status =
		x->t->ops->all_to_all(x->t, x->ranks, x->n, x->sent, x->received, block, err);
	for (int32_t m = 0; status == SW_OK && m < x->n; m++) {
		const char *from = x->received + m * block;
		for (int64_t i = m * x->pieces; i < (m + 1) * x->pieces; i++) {
			size_t bytes = (size_t)(x->received_counts[2 * i + 1] * x->row_bytes);
			memcpy(out + x->received_counts[2 * i] * x->row_bytes, from, bytes);
			from += bytes;
		}
	}
	return status;
}

sw_status sw_ragged_all_to_all(sw_transport *t, const char *name, const int32_t *ranks, int32_t n,
                               const sw_tensor in[6], sw_tensor out, sw_error *err)
{
	ragged_exchange x = {.t = t, .name = name, .ranks = ranks, .n = n, .in = in};
	memcpy(sw_tensor_data(out), sw_tensor_data(in[OUTPUT]), (size_t)sw_shape_bytes(out.shape));
	sw_status status = describe(&x, err);
	if (status == SW_OK)
		status = tell(&x, err);
	if (status == SW_OK)
		status = agree_on_block(&x, err);
	if (status == SW_OK && x.block_rows && x.row_bytes)
		status = move_rows(&x, sw_tensor_data(out), err);
	free(x.sent_counts);
	free(x.received_counts);
	free(x.sent);
	free(x.received);
	return status;
}
