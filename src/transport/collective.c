/*
 * The collective ops of a partitioned program, mapped to the transport's functions.
 *
 * The transport works on whole blocks. The blocks of a collective along any dimension but the first
 * are interleaved: viewed as [outer][n][chunk], block i is [outer][i][chunk]. They are packed
 * before the transport is called, or unpacked afterwards.
 */
#include "transport/ragged.h"
#include "transport/worker.h"

#include <string.h>

typedef struct work {
	sw_transport *t;
	const sw_program *program;
	const sw_op *op;
	sw_opcode opcode; /* of a start op, the collective that it starts */
	const sw_attrs *attrs;
	int32_t *ranks; /* this rank's group */
	int32_t n, position;
	sw_monoid monoid;
} work;

/* ---- groups ----------------------------------------------------------------------------- */

static void read_group(work *w, const sw_groups *groups, int64_t group)
{
	w->n = 0;
	for (int64_t m = 0; m < groups->group_size; m++) {
		int64_t id = sw_groups_member(groups, group, m);
		if (id == w->t->rank)
			w->position = w->n;
		if (id >= 0)
			w->ranks[w->n++] = (int32_t)id;
	}
}

static bool group_has(const sw_groups *groups, int64_t group, int64_t rank)
{
	for (int64_t m = 0; m < groups->group_size; m++)
		if (sw_groups_member(groups, group, m) == rank)
			return true;
	return false;
}

static sw_status check_ranks(const work *w, sw_error *err)
{
	for (int32_t i = 0; i < w->n; i++)
		if (w->ranks[i] >= w->t->size)
			return sw_fail(err, SW_ERR_INPUT,
			               "%s: its groups name rank %d, and there are %d ranks",
			               w->op->name, w->ranks[i], w->t->size);
	return SW_OK;
}

/* Find this rank's group; without groups it consists of all ranks, in order. */
static sw_status find_group(work *w, sw_error *err)
{
	const sw_groups *groups = &w->attrs->collective.groups;
	w->ranks = sw_alloc(sizeof(*w->ranks) * (size_t)SW_MAX(groups->group_size, w->t->size));
	if (groups->n_groups == 0) {
		for (w->n = 0; w->n < w->t->size; w->n++)
			w->ranks[w->n] = w->n;
		w->position = w->t->rank;
		return SW_OK;
	}
	for (int64_t g = 0; g < groups->n_groups; g++) {
		if (group_has(groups, g, w->t->rank)) {
			read_group(w, groups, g);
			return check_ranks(w, err);
		}
	}
	/* This rank is in no group and gets zeros. */
	if (w->opcode == SW_OP_COLLECTIVE_BROADCAST)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT, "%s: rank %d is in none of its groups", w->op->name,
	               w->t->rank);
}

/* ---- packing ---------------------------------------------------------------------------- */

/* A tensor divided into n blocks along a dimension: [outer][n][chunk_bytes]. When packed, block i
 * is `stride_bytes` after block i - 1. */
typedef struct blocks {
	int64_t outer, chunk_bytes, stride_bytes;
	int32_t n;
} blocks;

static blocks blocks_along(sw_shape shape, int64_t dimension, int32_t n)
{
	blocks b = {.outer = 1, .chunk_bytes = sw_type_bytes(shape.type), .n = n};
	for (int32_t d = 0; d < shape.rank; d++) {
		if (d < dimension)
			b.outer *= shape.dims[d];
		else
			b.chunk_bytes *= shape.dims[d];
	}
	b.chunk_bytes /= n;
	b.stride_bytes = b.outer * b.chunk_bytes;
	return b;
}

static bool is_packed(const blocks *b)
{
	return b->outer == 1 || b->n == 1;
}

/* Copy between the tensor and its packed blocks. */
static void copy_blocks(const blocks *b, const char *from, char *to, bool pack)
{
	size_t chunk = (size_t)b->chunk_bytes;
	for (int64_t o = 0; o < b->outer; o++) {
		for (int64_t i = 0; i < b->n; i++) {
			int64_t in_tensor = (o * b->n + i) * b->chunk_bytes,
				in_blocks = i * b->stride_bytes + o * b->chunk_bytes;
			memcpy(to + (pack ? in_blocks : in_tensor),
			       from + (pack ? in_tensor : in_blocks), chunk);
		}
	}
}

static int64_t blocks_bytes(const blocks *b)
{
	return b->outer * b->n * b->chunk_bytes;
}

static sw_status new_buffer(const blocks *b, char **buffer, sw_error *err)
{
	*buffer = sw_try_alloc((size_t)SW_MAX(blocks_bytes(b), 1));
	if (*buffer)
		return SW_OK;
	return sw_fail(err, SW_ERR_IO, "no memory for %lld bytes to pack a collective",
	               (long long)blocks_bytes(b));
}

/* Set *packed to the tensor's data if its blocks are contiguous already, otherwise to a new buffer,
 * which is also returned in *owned. */
static sw_status pack(const blocks *b, const void *tensor, const void **packed, char **owned,
                      sw_error *err)
{
	*packed = tensor;
	if (is_packed(b))
		return SW_OK;
	sw_status status = new_buffer(b, owned, err);
	if (status == SW_OK)
		copy_blocks(b, tensor, *owned, true);
	*packed = *owned;
	return status;
}

/* ---- one tensor ------------------------------------------------------------------------- */

static sw_status refuse_dimension(const work *w, sw_error *err)
{
	return sw_fail(err, SW_ERR_INPUT, "%s: %d ranks can't share its dimension %lld",
	               w->op->name, w->n, (long long)w->attrs->collective.dimension);
}

/* Check that this rank's group divides the dimension of `whole` into shares like `part`. If groups
 * have unequal sizes, this fails for some of them. */
static sw_status check_shares(const work *w, sw_shape whole, sw_shape part, sw_error *err)
{
	int64_t dimension = w->attrs->collective.dimension;
	if (dimension < 0 || dimension >= whole.rank || whole.dims[dimension] % w->n ||
	    sw_shape_bytes(whole) != sw_shape_bytes(part) * w->n)
		return refuse_dimension(w, err);
	return SW_OK;
}

/* Bring the root that the op has been given to the front of the group. Return false if it has none.
 */
static bool root_first(const work *w)
{
	sw_owner root = sw_op_root(w->op);
	for (int32_t i = 0; i < w->n && root.n > 0; i++)
		if (sw_owner_is(&root, w->ranks[i])) {
			int32_t first = w->ranks[0];
			w->ranks[0] = w->ranks[i];
			w->ranks[i] = first;
			return true;
		}
	return false;
}

static sw_status all_reduce(const work *w, sw_tensor in, sw_tensor out, sw_error *err)
{
	const sw_transport_ops *ops = w->t->ops;
	return (root_first(w) ? ops->group_reduce : ops->all_reduce)(
		w->t, w->ranks, w->n, w->monoid, in.shape.type, sw_tensor_data(in),
		sw_tensor_data(out), sw_shape_elements(in.shape), err);
}

static sw_status all_gather(const work *w, sw_tensor in, sw_tensor out, sw_error *err)
{
	sw_status status = check_shares(w, out.shape, in.shape, err);
	if (status)
		return status;
	blocks b = blocks_along(out.shape, w->attrs->collective.dimension, w->n);
	char *buffer = NULL;
	if (!is_packed(&b) && (status = new_buffer(&b, &buffer, err)))
		return status;
	status = w->t->ops->all_gather(w->t, w->ranks, w->n, sw_tensor_data(in),
	                               buffer ? buffer : sw_tensor_data(out),
	                               sw_shape_bytes(in.shape), err);
	if (status == SW_OK && buffer)
		copy_blocks(&b, buffer, sw_tensor_data(out), false);
	free(buffer);
	return status;
}

static sw_status reduce_scatter(const work *w, sw_tensor in, sw_tensor out, sw_error *err)
{
	char *buffer = NULL;
	const void *packed = NULL;
	sw_status status = check_shares(w, in.shape, out.shape, err);
	if (status)
		return status;
	blocks b = blocks_along(in.shape, w->attrs->collective.dimension, w->n);
	status = pack(&b, sw_tensor_data(in), &packed, &buffer, err);
	if (status == SW_OK)
		status = w->t->ops->reduce_scatter(w->t, w->ranks, w->n, w->monoid, in.shape.type,
		                                   packed, sw_tensor_data(out),
		                                   sw_shape_elements(out.shape), err);
	free(buffer);
	return status;
}

/* Send block i along the dimension to member i, and put the block from member i in its place. */
static sw_status all_to_all(const work *w, sw_tensor in, sw_tensor out, sw_error *err)
{
	char *sent = NULL, *received = NULL;
	const void *packed = NULL;
	sw_status status = SW_OK;
	int64_t dimension = w->attrs->collective.dimension;
	if (dimension >= in.shape.rank || in.shape.dims[dimension] % w->n)
		return refuse_dimension(w, err);
	blocks b = blocks_along(in.shape, w->attrs->collective.dimension, w->n);
	status = pack(&b, sw_tensor_data(in), &packed, &sent, err);
	if (status == SW_OK && !is_packed(&b))
		status = new_buffer(&b, &received, err);
	if (status == SW_OK)
		status = w->t->ops->all_to_all(w->t, w->ranks, w->n, packed,
		                               received ? received : sw_tensor_data(out),
		                               blocks_bytes(&b) / b.n, err);
	if (status == SW_OK && received)
		copy_blocks(&b, received, sw_tensor_data(out), false);
	free(sent);
	free(received);
	return status;
}

/* Broadcast from the group's root, or else from its first member; a rank that is in no group gets
 * zeros. */
static sw_status broadcast(const work *w, sw_tensor in, sw_tensor out, sw_error *err)
{
	int64_t bytes = sw_shape_bytes(in.shape);
	root_first(w);
	if (w->n)
		return w->t->ops->group_broadcast(w->t, w->ranks, w->n, sw_tensor_data(in),
		                                  sw_tensor_data(out), bytes, err);
	memset(sw_tensor_data(out), 0, (size_t)bytes);
	return SW_OK;
}

/* ---- several tensors in one collective -------------------------------------------------- */

static bool can_be_packed(const work *w, const sw_tensor *in)
{
	bool one = w->op->n_operands > 1 && !sw_op_has_root(w->op) &&
	           (w->opcode == SW_OP_ALL_REDUCE || w->opcode == SW_OP_ALL_GATHER ||
	            w->opcode == SW_OP_REDUCE_SCATTER);
	for (uint32_t i = 1; one && i < w->op->n_operands; i++)
		one = in[i].shape.type == in[0].shape.type;
	return one;
}

/* Copy between the tensors and one buffer of the form [members][the blocks of all tensors for the
 * member], for n members. */
static void copy_all(const work *w, const sw_tensor *tensors, char *all, int64_t member_bytes,
                     int32_t n, bool pack)
{
	for (uint32_t i = 0; i < w->op->n_operands; i++) {
		blocks b = blocks_along(tensors[i].shape,
		                        n > 1 ? w->attrs->collective.dimension : 0, n);
		char *data = sw_tensor_data(tensors[i]);
		b.stride_bytes = member_bytes;
		copy_blocks(&b, pack ? data : all, pack ? all : data, pack);
		all += b.outer * b.chunk_bytes;
	}
}

static sw_status perform_packed(const work *w, sw_type type, const char *in, char *out,
                                int64_t bytes, sw_error *err)
{
	const sw_transport_ops *ops = w->t->ops;
	int64_t elements = bytes / sw_type_bytes(type);
	switch (w->opcode) {
	case SW_OP_ALL_GATHER:
		return ops->all_gather(w->t, w->ranks, w->n, in, out, bytes, err);
	case SW_OP_REDUCE_SCATTER:
		return ops->reduce_scatter(w->t, w->ranks, w->n, w->monoid, type, in, out, elements,
		                           err);
	default:
		return ops->all_reduce(w->t, w->ranks, w->n, w->monoid, type, in, out, elements,
		                       err);
	}
}

static sw_status perform_together(const work *w, const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	bool gathers = w->opcode == SW_OP_ALL_GATHER, scatters = w->opcode == SW_OP_REDUCE_SCATTER;
	blocks all_in = {.outer = 1, .n = scatters ? w->n : 1},
	       all_out = {.outer = 1, .n = gathers ? w->n : 1};
	char *sent = NULL, *received = NULL;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < w->op->n_operands && status == SW_OK; i++) {
		sw_shape part = scatters ? out[i].shape : in[i].shape,
			 whole = gathers ? out[i].shape : in[i].shape;
		status = gathers || scatters ? check_shares(w, whole, part, err) : SW_OK;
		all_in.chunk_bytes = all_out.chunk_bytes += sw_shape_bytes(part);
	}
	int64_t bytes = all_in.chunk_bytes;
	if (status == SW_OK)
		status = new_buffer(&all_in, &sent, err);
	if (status == SW_OK)
		status = new_buffer(&all_out, &received, err);
	if (status == SW_OK)
		copy_all(w, in, sent, bytes, all_in.n, true);
	if (status == SW_OK)
		status = perform_packed(w, in[0].shape.type, sent, received, bytes, err);
	if (status == SW_OK)
		copy_all(w, out, received, bytes, all_out.n, false);
	free(sent);
	free(received);
	return status;
}

/* ---- all-to-all of a list: operand i goes to member i ----------------------------------- */

static sw_status all_to_all_list(const work *w, const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	if ((int64_t)w->op->n_operands != w->n)
		return sw_fail(err, SW_ERR_INPUT, "%s: %u operands for groups of %d ranks",
		               w->op->name, w->op->n_operands, w->n);
	blocks b = {.outer = 1, .chunk_bytes = sw_shape_bytes(in[0].shape), .n = w->n};
	char *sent = NULL, *received = NULL;
	sw_status status = new_buffer(&b, &sent, err);
	if (status == SW_OK)
		status = new_buffer(&b, &received, err);
	for (int32_t i = 0; i < w->n && status == SW_OK && b.chunk_bytes; i++)
		memcpy(sent + i * b.chunk_bytes, sw_tensor_data(in[i]), (size_t)b.chunk_bytes);
	if (status == SW_OK)
		status = w->t->ops->all_to_all(w->t, w->ranks, w->n, sent, received, b.chunk_bytes,
		                               err);
	for (int32_t i = 0; i < w->n && status == SW_OK && b.chunk_bytes; i++)
		memcpy(sw_tensor_data(out[i]), received + i * b.chunk_bytes, (size_t)b.chunk_bytes);
	free(sent);
	free(received);
	return status;
}

/* ---- permute ---------------------------------------------------------------------------- */

static void find_partners(const work *w, int32_t *target, int32_t *source)
{
	sw_ints pairs = w->attrs->collective.pairs;
	*target = *source = -1;
	for (int32_t i = 0; i + 1 < pairs.n; i += 2) {
		if (pairs.v[i] == w->t->rank)
			*target = (int32_t)pairs.v[i + 1];
		if (pairs.v[i + 1] == w->t->rank)
			*source = (int32_t)pairs.v[i];
	}
}

static sw_status check_partners(const work *w, int32_t target, int32_t source, sw_error *err)
{
	if (target < w->t->size && source < w->t->size)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT, "%s: its pairs name rank %d, and there are %d ranks",
	               w->op->name, SW_MAX(target, source), w->t->size);
}

static sw_status permute_all(const work *w, const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	int32_t target, source;
	find_partners(w, &target, &source);
	sw_status status = check_partners(w, target, source, err);
	for (uint32_t i = 0; i < w->op->n_operands && status == SW_OK; i++) {
		int64_t bytes = sw_shape_bytes(in[i].shape);
		status = w->t->ops->permute(w->t, target, source, sw_tensor_data(in[i]),
		                            sw_tensor_data(out[i]), bytes, err);
		if (status == SW_OK && target >= 0 && target != w->t->rank)
			w->t->traffic.payload_bytes +=
				sw_collective_payload_bytes(SW_OP_COLLECTIVE_PERMUTE, bytes, 2);
	}
	return status;
}

/* ---- the driver ------------------------------------------------------------------------- */

static void count_payload(const work *w, const sw_tensor *in)
{
	/* count a ragged-all-to-all's rows, not its lists of offsets and sizes */
	uint32_t n = w->opcode == SW_OP_RAGGED_ALL_TO_ALL ? 1 : w->op->n_operands;
	sw_opcode counted = sw_op_has_root(w->op) ? sw_op_counted_as(w->op) : w->opcode;
	for (uint32_t i = 0; i < n; i++)
		w->t->traffic.payload_bytes +=
			sw_collective_payload_bytes(counted, sw_shape_bytes(in[i].shape), w->n);
}

static sw_status perform(const work *w, sw_tensor in, sw_tensor out, sw_error *err)
{
	switch (w->opcode) {
	case SW_OP_COLLECTIVE_BROADCAST:
		return broadcast(w, in, out, err);
	case SW_OP_ALL_REDUCE:
		return all_reduce(w, in, out, err);
	case SW_OP_ALL_GATHER:
		return all_gather(w, in, out, err);
	case SW_OP_REDUCE_SCATTER:
		return reduce_scatter(w, in, out, err);
	case SW_OP_ALL_TO_ALL:
		return all_to_all(w, in, out, err);
	default:
		return sw_fail(err, SW_ERR_INPUT, "%s: no transport performs %s", w->op->name,
		               sw_op_opcode_name(w->op));
	}
}

static sw_status find_monoid(work *w, sw_error *err)
{
	if (w->opcode != SW_OP_ALL_REDUCE && w->opcode != SW_OP_REDUCE_SCATTER)
		return SW_OK;
	w->monoid = sw_computation_monoid(w->program, w->op->called[0]);
	if (w->monoid == SW_MONOID_NONE)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s: its reduction is none of sum, product, max, min, and, or",
		               w->op->name);
	return SW_OK;
}

static sw_status perform_in_group(work *w, const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	sw_status status = find_group(w, err);
	sw_carrier *carrier = (sw_carrier *)w->t;
	carrier->said = w->attrs->collective.sending.algorithm;
	if (status == SW_OK)
		status = find_monoid(w, err);
	if (status == SW_OK && w->opcode == SW_OP_ALL_TO_ALL && w->attrs->collective.dimension < 0)
		status = all_to_all_list(w, in, out, err);
	else if (status == SW_OK && w->opcode == SW_OP_RAGGED_ALL_TO_ALL)
		status = sw_ragged_all_to_all(w->t, w->op->name, w->ranks, w->n, in, out[0], err);
	else if (status == SW_OK && can_be_packed(w, in))
		status = perform_together(w, in, out, err);
	else
		for (uint32_t i = 0; i < w->op->n_operands && status == SW_OK; i++)
			status = perform(w, in[i], out[i], err);
	if (status == SW_OK)
		count_payload(w, in);
	carrier->said = 0;
	free(w->ranks);
	return status;
}

/* A start op performs the whole collective; its done op does nothing. */
static sw_opcode started(sw_opcode opcode)
{
	switch (opcode) {
	case SW_OP_ALL_REDUCE_START:
		return SW_OP_ALL_REDUCE;
	case SW_OP_ALL_GATHER_START:
		return SW_OP_ALL_GATHER;
	case SW_OP_COLLECTIVE_PERMUTE_START:
		return SW_OP_COLLECTIVE_PERMUTE;
	default:
		return opcode;
	}
}

uint32_t sw_collective_outputs(const sw_op *op)
{
	return started(op->opcode) == op->opcode ? op->n_results : op->n_operands;
}

static void report_to_watch(sw_transport *t, const sw_program *program, sw_id op, double begin,
                            double end)
{
	const sw_carrier *c = (const sw_carrier *)t;
	if (c->watch)
		c->watch(c->watch_context, program, op, begin, end);
}

sw_status sw_collective_perform(sw_transport *t, const sw_program *program, sw_id op,
                                const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	work w = {.t = t,
	          .program = program,
	          .op = sw_op_at(program, op),
	          .opcode = started(sw_op_at(program, op)->opcode),
	          .attrs = sw_op_at(program, op)->attrs};
	double begin = sw_now_s();
	sw_status status;
	if (w.opcode == SW_OP_COLLECTIVE_PERMUTE)
		status = permute_all(&w, in, out, err);
	else
		status = perform_in_group(&w, in, out, err);
	double end = sw_now_s();
	t->traffic.collectives++;
	t->traffic.seconds += end - begin;
	report_to_watch(t, program, op, begin, end);
	return status;
}
