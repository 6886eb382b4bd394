/*
 * Which inputs have the batch, and in which dimension.
 *
 * The batch is the leading dimension of the data, with three exceptions. What is taken row by row
 * has no rows of the batch there: the words of a key of random numbers and a table that is indexed
 * have none at all, and what a loop takes apart, such as sequences that begin with time or the
 * parts of a batch whose gradients are added up, has the batch behind that dimension. Where the loop
 * carries something on from row to row, all that has this dimension has the batch behind it, also
 * what is read along, as what sequences are compared with. One row, as of a mask, is none beside
 * inputs that have more. And the batch leads in most of what is made of it: a dimension that the
 * rules carry to others that stand behind the batch, as those of positions do (a mask, a table of
 * rotations), or into weights, as that of classes or of the members of an ensemble, is none.
 */
#include "base/sets.h"
#include "rewrite/time.h"

#include <stdlib.h>

/* How the leading dimension of a value is read. */
typedef enum batch_reading {
	READ_ROWS,   /* row by row */
	READ_SINGLY, /* by index, or word by word: as a table, or a key */
	READ_ALONG,  /* along */
} batch_reading;

static bool is_words(sw_shape shape)
{
	return sw_type_kind_of(shape.type) == SW_KIND_UNSIGNED && sw_type_bytes(shape.type) >= 4;
}

/* Of two keys beside each other words are taken along either dimension. */
static batch_reading read_by_slice(sw_shape from, sw_shape part)
{
	bool words = is_words(from);
	if (part.dims[0] == 1)
		return words || part.rank == 1 ? READ_SINGLY : READ_ROWS;
	for (int32_t d = 1; d < part.rank && words; d++)
		if (part.dims[d] == 1 && from.dims[d] > 1)
			return READ_SINGLY;
	return READ_ALONG;
}

/* A gather that takes single rows where its indices say. */
static bool gathers_rows(const sw_op *op, uint32_t k)
{
	const sw_attrs *a = op->attrs;
	bool rows = false;
	for (int32_t i = 0; i < a->index.start_index_map.n; i++)
		rows = rows || a->index.start_index_map.v[i] == 0;
	return k == 0 && rows && a->index.slice_sizes.v[0] == 1;
}

static batch_reading read_by_op(const sw_program *program, const sw_op *op, uint32_t k,
                          const uint8_t *of)
{
	sw_shape from = sw_value_shape(program, op->operands[k]);
	if (sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_RANDOM)
		return READ_SINGLY;
	switch ((sw_opcode)op->opcode) {
	case SW_OP_SLICE:
		return read_by_slice(from, sw_value_shape(program, op->first_result));
	case SW_OP_DYNAMIC_SLICE:
		return k == 0 && sw_value_shape(program, op->first_result).dims[0] == 1 ? READ_ROWS
		                                                                        : READ_ALONG;
	case SW_OP_GATHER:
		return gathers_rows(op, k) ? READ_SINGLY : READ_ALONG;
	case SW_OP_RESHAPE:
	case SW_OP_TRANSPOSE:
		return is_words(from) ? of[op->first_result] : READ_ALONG;
	default:
		return READ_ALONG;
	}
}

/* Return how a loop, or branches, read their operand k. */
static batch_reading read_by_region(const sw_program *program, const sw_op *op, uint32_t k,
                              const uint8_t *of)
{
	uint32_t at = op->opcode == SW_OP_CONDITIONAL, n;
	batch_reading most = k < at ? READ_ALONG : READ_ROWS;
	for (uint32_t c = 0; c < op->n_called; c++) {
		sw_id first = sw_region_parameters(program, op, c, &n);
		at = op->opcode == SW_OP_WHILE ? 0 : at;
		if (k >= at && k < at + n)
			most = SW_MAX(most, (batch_reading)of[first + k - at]);
		at += n;
	}
	return most;
}

/* What a computation hands back is read; what a loop carries on unchanged is not. */
static void mark_handed_back(const sw_program *program, uint8_t *of)
{
	for (size_t c = 0; c < program->computations.len; c++) {
		const sw_computation *from = &program->computations.data[c];
		for (size_t i = 0; i < from->results.len && (int32_t)c != program->entry; i++) {
			sw_id value = from->results.data[i];
			const sw_op *op = sw_op_at(program, program->values.data[value].op);
			if (op->opcode != SW_OP_PARAMETER || value - op->first_result != (sw_id)i)
				of[value] = READ_ALONG;
		}
	}
}

/* Find how each value is read. O(ops), for each level of regions. */
static uint8_t *find_readings(const sw_program *program, sw_arena *arena)
{
	uint8_t *of = SW_NEW_N(arena, uint8_t, program->values.len + 1);
	for (size_t v = 0; v < program->values.len; v++) {
		sw_shape shape = sw_value_shape(program, (sw_id)v);
		of[v] = shape.rank > 0 && shape.dims[0] > 1 ? READ_ROWS : READ_ALONG;
	}
	mark_handed_back(program, of);
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = program->ops.len; i-- > 0;) {
			const sw_op *op = sw_op_at(program, (sw_id)i);
			bool region = op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL;
			for (uint32_t k = 0; k < op->n_operands; k++) {
				batch_reading r = region ? read_by_region(program, op, k, of)
				                   : read_by_op(program, op, k, of);
				changed |= r > of[op->operands[k]];
				of[op->operands[k]] = (uint8_t)SW_MAX((batch_reading)of[op->operands[k]], r);
			}
		}
	}
	return of;
}

/* ---- dimensions that the rules carry into each other ------------------------------------ */

typedef struct dims {
	const sw_program *program;
	sw_arena *arena;
	bool *planned;   /* per computation */
	bool *uniform;   /* per value: all elements are alike, so that it carries nothing */
	uint32_t *first; /* per value: the node of its dimension 0 */
	uint32_t *nodes; /* sets of them (base/sets.h) */
} dims;

static uint32_t class_of(dims *d, sw_id value, int32_t dim)
{
	return sw_sets_root(d->nodes, d->first[value] + (uint32_t)dim);
}

static void join(dims *d, sw_id a, int32_t dim_a, sw_id b, int32_t dim_b)
{
	if (!d->uniform[a] && !d->uniform[b])
		sw_sets_join(d->nodes, d->first[a] + (uint32_t)dim_a, d->first[b] + (uint32_t)dim_b);
}

static void join_values(dims *d, sw_id a, sw_id b)
{
	sw_shape shape = sw_value_shape(d->program, a);
	for (int32_t i = 0; i < shape.rank; i++)
		join(d, a, i, b, i);
}

/* Join the dimensions whose outermost part is the factor. */
static void join_factor(dims *d, const sw_op *op, const sw_rule *rule, int32_t factor)
{
	sw_id value = SW_NO_ID;
	int32_t dim = 0;
	for (int32_t i = 0; i < rule->n_operands + rule->n_results; i++) {
		bool result = i >= rule->n_operands;
		int32_t k = result ? i - rule->n_operands : i;
		const sw_dim_map *map = result ? rule->results[k] : rule->operands[k];
		int32_t rank = result ? rule->result_ranks[k] : rule->operand_ranks[k];
		sw_id of = result ? op->first_result + (sw_id)k : op->operands[k];
		for (int32_t at = 0; at < rank; at++) {
			if (d->uniform[of] || map[at].n == 0 || map[at].refs[0].factor != factor)
				continue;
			if (value != SW_NO_ID)
				join(d, value, dim, of, at);
			value = of;
			dim = at;
		}
	}
}

static void join_region(dims *d, const sw_op *op)
{
	uint32_t at = op->opcode == SW_OP_CONDITIONAL, n;
	for (uint32_t c = 0; c < op->n_called; c++) {
		const sw_computation *called = &d->program->computations.data[op->called[c]];
		sw_id first = sw_region_parameters(d->program, op, c, &n);
		at = op->opcode == SW_OP_WHILE ? 0 : at;
		for (uint32_t k = 0; k < n; k++)
			join_values(d, op->operands[at + k], first + k);
		for (uint32_t k = 0; k < op->n_results && called->results.len == op->n_results; k++)
			join_values(d, op->first_result + k, called->results.data[k]);
		for (uint32_t k = 0; k < op->n_results && op->opcode == SW_OP_WHILE; k++)
			join_values(d, op->first_result + k, first + k);
		at += n;
	}
}

static bool is_uniform(const dims *d, const sw_op *op)
{
	bool all = op->n_operands > 0 && sw_opcode_is_elementwise((sw_opcode)op->opcode);
	if (op->opcode == SW_OP_CONSTANT)
		return true;
	if (op->opcode == SW_OP_BROADCAST)
		return d->uniform[op->operands[0]];
	for (uint32_t k = 0; k < op->n_operands; k++)
		all = all && d->uniform[op->operands[k]];
	return all && op->n_results == 1;
}

/* Return the number of nodes. */
static uint32_t find_dims(dims *d)
{
	uint32_t n = 0;
	for (size_t v = 0; v < d->program->values.len; v++) {
		d->first[v] = n;
		n += (uint32_t)sw_value_shape(d->program, (sw_id)v).rank;
	}
	d->nodes = SW_NEW_N(d->arena, uint32_t, n + 1);
	sw_sets_init(d->nodes, n);
	for (size_t i = 0; i < d->program->ops.len; i++) {
		const sw_op *op = sw_op_at(d->program, (sw_id)i);
		d->uniform[op->first_result] = op->n_results && is_uniform(d, op);
	}
	for (size_t i = 0; i < d->program->ops.len; i++) {
		const sw_op *op = sw_op_at(d->program, (sw_id)i);
		if (!d->planned[op->computation])
			continue;
		if (op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL) {
			join_region(d, op);
			continue;
		}
		const sw_rule *rule = sw_rule_make(d->program, (sw_id)i, d->arena);
		for (int32_t f = 0; f < rule->n_factors; f++)
			join_factor(d, op, rule, f);
	}
	return n;
}

/* ---- sequences -------------------------------------------------------------------------- */

static uint32_t count_reads(const sw_program *program, const sw_computation *body, sw_id value)
{
	uint32_t n = 0;
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(program, body->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			n += op->operands[k] == value;
	}
	return n;
}

/* Is what a loop carries a sum over its rows, which no row reads? */
static bool adds_up(const sw_program *program, const sw_computation *body, sw_id carried, sw_id next)
{
	const sw_op *op = sw_op_at(program, program->values.data[next].op);
	return op->opcode == SW_OP_ADD &&
	       (op->operands[0] == carried || op->operands[1] == carried) &&
	       count_reads(program, body, carried) == 1;
}

/* Does a loop carry something on from one row to the next, beside counts, sums, and stacks of what it
 * makes of each? Then the order of the rows counts. */
static bool carries_on(const sw_program *program, const sw_op *loop)
{
	uint32_t n;
	sw_id first = sw_region_parameters(program, loop, 1, &n);
	const sw_computation *body = &program->computations.data[loop->called[1]];
	for (uint32_t k = 0; k < n; k++) {
		sw_id next = body->results.data[k];
		sw_shape shape = sw_value_shape(program, next);
		const sw_op *op = sw_op_at(program, program->values.data[next].op);
		bool stacks = op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE &&
		              op->operands[0] == first + k;
		bool counts = shape.rank == 0 && sw_type_kind_of(shape.type) != SW_KIND_FLOAT;
		if (next != first + k && !stacks && !counts &&
		    !adds_up(program, body, first + k, next))
			return true;
	}
	return false;
}

/* Mark what loops take row by row in order, whatever else reads it. Return whether there is any. */
static bool find_sequences(const sw_program *program, bool *sequence)
{
	bool any = false;
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *loop = sw_op_at(program, (sw_id)i);
		if (loop->opcode != SW_OP_WHILE || !carries_on(program, loop))
			continue;
		uint32_t n;
		sw_id first = sw_region_parameters(program, loop, 1, &n);
		const sw_computation *body = &program->computations.data[loop->called[1]];
		for (size_t k = 0; k < body->ops.len; k++) {
			const sw_op *op = sw_op_at(program, body->ops.data[k]);
			sw_id of = op->n_operands ? op->operands[0] : SW_NO_ID;
			if (op->opcode != SW_OP_DYNAMIC_SLICE || of < first || of >= first + n ||
			    sw_value_shape(program, op->first_result).dims[0] != 1 ||
			    sw_value_shape(program, of).dims[0] == 1)
				continue;
			sequence[loop->operands[of - first]] = any = true;
		}
	}
	return any;
}

/* Per class of dimensions: how long the sequences are that have it first, 0: none has. A slice that leaves
 * a part of a sequence is of one, as where each word is to tell the next. */
static int64_t *sequence_classes(dims *d, const bool *sequence, uint32_t n_nodes)
{
	const sw_program *program = d->program;
	int64_t *length = SW_NEW_N(d->arena, int64_t, n_nodes + 1);
	for (size_t v = 0; v < program->values.len; v++)
		if (sequence[v] && !d->uniform[v])
			length[class_of(d, (sw_id)v, 0)] = sw_value_shape(program, (sw_id)v).dims[0];
	for (size_t i = program->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(program, (sw_id)i);
		if (op->opcode != SW_OP_SLICE || !d->planned[op->computation])
			continue;
		sw_shape part = sw_value_shape(program, op->first_result),
			 whole = sw_value_shape(program, op->operands[0]);
		if (part.rank > 0 && part.dims[0] < whole.dims[0] && part.dims[0] > 1 &&
		    length[class_of(d, op->first_result, 0)] == part.dims[0])
			length[class_of(d, op->operands[0], 0)] = whole.dims[0];
	}
	return length;
}

/* Let the batch stand behind the dimension through which a loop goes, also in what only others read. */
static void pass_over_sequences(dims *d, const bool *sequence, const sw_id *inputs, uint32_t n,
                                uint32_t n_nodes, int32_t *dim)
{
	const int64_t *length = sequence_classes(d, sequence, n_nodes);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(d->program, inputs[i]);
		if (dim[i] == 0 && length[class_of(d, inputs[i], 0)] == shape.dims[0])
			dim[i] = shape.rank > 1 ? 1 : -1;
	}
}

/* Add the bytes of all values in which the dimension, or what it is carried to, leads, less those in
 * which it stands behind others. */
static double leads(dims *d, sw_id value, int32_t dim)
{
	uint32_t class = class_of(d, value, dim);
	double bytes = 0;
	for (size_t v = 0; v < d->program->values.len; v++) {
		sw_shape shape = sw_value_shape(d->program, (sw_id)v);
		bool first = true;
		for (int32_t i = 0; i < shape.rank && !d->uniform[v]; i++) {
			bool is = class_of(d, (sw_id)v, i) == class;
			bytes += is ? (double)sw_shape_bytes(shape) * (first ? 1 : -1) : 0;
			first = first && shape.dims[i] == 1;
		}
	}
	return bytes;
}

/* Is the dimension, or one that it is carried to, in an input that is no data, such as weights? */
static bool is_of_state(dims *d, const sw_id *inputs, uint32_t n, const bool *data, sw_id value,
                        int32_t dim)
{
	uint32_t class = class_of(d, value, dim);
	for (uint32_t i = 0; i < n; i++)
		for (int32_t k = 0; k < sw_value_shape(d->program, inputs[i]).rank && !data[i]; k++)
			if (class_of(d, inputs[i], k) == class)
				return true;
	return false;
}

/* Take from the inputs those that are marked, unless that leaves none. */
static void drop_marked(const bool *marked, uint32_t n, int32_t *dim)
{
	bool any = false;
	for (uint32_t i = 0; i < n; i++)
		any = any || (dim[i] >= 0 && !marked[i]);
	for (uint32_t i = 0; i < n; i++)
		if (any && marked[i])
			dim[i] = -1;
}

/* Take from the inputs those whose dimension is one of state, then those where it mostly stands behind
 * others. */
static void drop_followers(dims *d, const sw_id *inputs, uint32_t n, const bool *data, int32_t *dim)
{
	bool *marked = SW_NEW_N(d->arena, bool, n + 1);
	for (uint32_t i = 0; i < n; i++)
		marked[i] = dim[i] >= 0 && is_of_state(d, inputs, n, data, inputs[i], dim[i]);
	drop_marked(marked, n, dim);
	for (uint32_t i = 0; i < n; i++)
		marked[i] = dim[i] >= 0 && leads(d, inputs[i], dim[i]) < 0;
	drop_marked(marked, n, dim);
}

static int32_t batch_dim(sw_shape shape, batch_reading r)
{
	if (r == READ_SINGLY || shape.rank == 0)
		return -1;
	return r == READ_ALONG ? 0 : shape.rank > 1 ? 1 : -1;
}

static bool differ(const sw_program *program, const sw_id *inputs, uint32_t n, const int32_t *dim)
{
	int64_t size = 0;
	bool differs = false;
	for (uint32_t i = 0; i < n; i++) {
		if (dim[i] < 0)
			continue;
		int64_t of = sw_value_shape(program, inputs[i]).dims[dim[i]];
		differs = differs || dim[i] > 0 || (size && of != size);
		size = of;
	}
	return differs;
}

/* Look at what the dimensions of the inputs become, where these alone do not say which has the batch. */
static void settle_dims(const sw_program *program, const sw_id *inputs, uint32_t n, const bool *data,
                        int32_t *dim, sw_arena *arena)
{
	bool *sequence = SW_NEW_N(arena, bool, program->values.len + 1);
	bool sequences = find_sequences(program, sequence);
	if (!sequences && !differ(program, inputs, n, dim))
		return;
	dims d = {.program = program, .arena = arena};
	d.planned = SW_NEW_N(arena, bool, program->computations.len + 1);
	d.uniform = SW_NEW_N(arena, bool, program->values.len + 1);
	d.first = SW_NEW_N(arena, uint32_t, program->values.len + 1);
	sw_mark_planned(program, program->entry, d.planned);
	uint32_t n_nodes = find_dims(&d);
	pass_over_sequences(&d, sequence, inputs, n, n_nodes, dim);
	if (differ(program, inputs, n, dim))
		drop_followers(&d, inputs, n, data, dim);
}

int64_t sw_find_batch(const sw_program *program, const sw_id *inputs, uint32_t n, int32_t *dim)
{
	sw_arena arena;
	int64_t batch = 0;
	sw_arena_init(&arena);
	const uint8_t *of = find_readings(program, &arena);
	bool *data = SW_NEW_N(&arena, bool, n + 1);
	for (uint32_t i = 0; i < n; i++)
		data[i] = dim[i] >= 0;
	for (uint32_t i = 0; i < n; i++)
		if (data[i])
			dim[i] = batch_dim(sw_value_shape(program, inputs[i]), of[inputs[i]]);
	settle_dims(program, inputs, n, data, dim, &arena);
	for (uint32_t i = 0; i < n; i++)
		if (dim[i] >= 0 && sw_value_shape(program, inputs[i]).dims[dim[i]] > 1)
			batch = sw_gcd(sw_value_shape(program, inputs[i]).dims[dim[i]], batch);
	for (uint32_t i = 0; i < n && batch; i++)
		if (dim[i] >= 0 && sw_value_shape(program, inputs[i]).dims[dim[i]] == 1)
			dim[i] = -1;
	sw_arena_clear(&arena);
	return SW_MAX(batch, 1);
}
