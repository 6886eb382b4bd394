/*
 * The search for kernels. The ops of a computation are visited from the last to the first; each
 * joins the kernels that read it, if these can take it, or begins one of its own. So kernels grow
 * from their results towards their operands, and an op is looked at once.
 *
 * Joining the only node that reads an op makes no cycle. An op that others read, too, is stored:
 * it joins a node only if that one is HIGHER than all others that read it, so that no way leads
 * from them back to the node. Of an op that several nodes could take, each gets a copy, where
 * reading its operands again moves fewer bytes than writing it and reading it; or where it is made
 * of constants and single numbers alone, like a causal mask.
 */
#include "fuse/internal.h"
#include "cost/cost.h"
#include "fuse/score_kernels.h"
#include "rewrite/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* Uses beyond which an op is stored without a further look, and readers that are looked at for the
 * same: bounds of the work per op. */
#define MAX_USES 16384
#define MAX_READERS 1024     /* of an op that reads no array in full */
#define MAX_COPIED_READERS 8 /* of any other one */
/* An op that is computed from constants and single numbers is cheap up to this many ops. */
#define MAX_CHEAP_OPS 12

static sw_fuse_node *node_at(const sw_fuser *f, uint32_t node)
{
	return &f->nodes.data[node];
}

static int64_t elements_of(const sw_program *program, sw_id value)
{
	return sw_shape_elements(sw_value_shape(program, value));
}

static double bytes_of(const sw_program *program, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(program, value));
}

bool sw_fuse_holds(const sw_fuser *f, uint32_t node, sw_id op)
{
	if (f->node[op] == node)
		return true;
	for (uint32_t c = f->copied[op]; c; c = f->copies.data[c - 1].next)
		if (f->copies.data[c - 1].node == node)
			return true;
	return false;
}

sw_id sw_fuse_source(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	while ((op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST) && op->n_operands == 1)
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	return (sw_id)(op - program->ops.data);
}

/* ---- the uses of an op ------------------------------------------------------------------- */

static void add_use(sw_fuser *f, sw_id user, uint32_t operand, uint32_t node)
{
	sw_vec_push(&f->uses, ((sw_fuse_use){user, operand, node}));
}

static void list_uses_of(sw_fuser *f, sw_id value)
{
	f->returns = f->returns || f->returned[value];
	for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++) {
		sw_id user = f->users.ops[u];
		const sw_op *op = sw_op_at(f->program, user);
		if (f->uses.len > MAX_USES)
			return;
		if (sw_fuse_role_of(f->program, user) == SW_FUSE_FREE) {
			list_uses_of(f, op->first_result);
			continue;
		}
		for (uint32_t k = 0; k < op->n_operands; k++) {
			if (op->operands[k] != value)
				continue;
			if (f->node[user] != SW_NO_ID)
				add_use(f, user, k, f->node[user]);
			for (uint32_t c = f->copied[user]; c; c = f->copies.data[c - 1].next)
				add_use(f, user, k, f->copies.data[c - 1].node);
		}
	}
}

/* List the uses of all results of an op; f->returns: the computation returns one of them. */
void sw_fuse_list_uses(sw_fuser *f, const sw_op *op)
{
	f->uses.len = 0;
	f->returns = false;
	for (uint32_t r = 0; r < op->n_results; r++)
		list_uses_of(f, op->first_result + r);
}

/* The nodes that read an op; n > MAX_READERS: there are more. */
typedef struct readers {
	uint32_t n;
	uint32_t node[MAX_READERS];
} readers;

static readers readers_of(const sw_fuser *f)
{
	readers r = {0};
	if (f->uses.len > MAX_USES)
		return (readers){.n = MAX_READERS + 1};
	for (size_t i = 0; i < f->uses.len && r.n <= MAX_READERS; i++) {
		uint32_t k = 0;
		while (k < r.n && r.node[k] != f->uses.data[i].node)
			k++;
		if (k == r.n && r.n++ < MAX_READERS)
			r.node[k] = f->uses.data[i].node;
	}
	return r;
}

/* ---- nodes ------------------------------------------------------------------------------- */

static int32_t height_above(const sw_fuser *f, uint32_t but)
{
	int32_t height = 0;
	for (size_t i = 0; i < f->uses.len; i++)
		if (f->uses.data[i].node != but)
			height = SW_MAX(height, node_at(f, f->uses.data[i].node)->height + 1);
	return height;
}

/* Where not all uses were listed, take the greatest height of all. */
static int32_t height_of(const sw_fuser *f)
{
	if (f->uses.len <= MAX_USES)
		return height_above(f, SW_NO_ID);
	int32_t height = 0;
	for (uint32_t i = 0; i < f->nodes.len; i++)
		height = SW_MAX(height, f->nodes.data[i].height + 1);
	return height;
}

static uint32_t node_new(sw_fuser *f, sw_id id, sw_fused_kernel kind, bool border)
{
	const sw_op *op = sw_op_at(f->program, id);
	sw_fuse_node node = {.kind = (uint8_t)kind,
	                     .border = border,
	                     .computation = op->computation,
	                     .height = height_of(f)};
	sw_vec_push(&node.members, id);
	for (uint32_t r = 0; r < op->n_results; r++)
		node.elements =
			SW_MAX(node.elements, elements_of(f->program, op->first_result + r));
	f->node[id] = (uint32_t)f->nodes.len;
	sw_vec_push(&f->nodes, node);
	return f->node[id];
}

static void join(sw_fuser *f, sw_id id, uint32_t node)
{
	sw_vec_push(&node_at(f, node)->members, id);
	if (f->node[id] == SW_NO_ID) {
		f->node[id] = node;
		return;
	}
	sw_vec_push(&f->copies, ((sw_fuse_copy){node, f->copied[id]}));
	f->copied[id] = (uint32_t)f->copies.len;
}

/* ---- which node can take which op -------------------------------------------------------- */

/* Return whether the node reads `value` already, other than through `op`. */
static bool reads(const sw_fuser *f, uint32_t node, sw_id value, sw_id but)
{
	uint32_t end = SW_MIN(f->users.start[value + 1], f->users.start[value] + MAX_USES);
	for (uint32_t u = f->users.start[value]; u < end; u++)
		if (f->users.ops[u] != but && sw_fuse_holds(f, node, f->users.ops[u]))
			return true;
	return false;
}

/* Bytes that an op reads of an operand: of a slice what is cut out, of a broadcast what is repeated,
 * since it is a part of what reads it. */
static double read_bytes(const sw_fuser *f, const sw_op *reader, uint32_t k)
{
	const sw_program *program = f->program;
	sw_id value = reader->operands[k];
	const sw_op *op = sw_op_at(program, sw_fuse_source(program, value));
	double bytes = bytes_of(program, value);
	if (k == 0 && (reader->opcode == SW_OP_SLICE || reader->opcode == SW_OP_DYNAMIC_SLICE))
		bytes = bytes_of(program, reader->first_result);
	return op->opcode == SW_OP_BROADCAST && !f->rules->counts_repeats
	               ? SW_MIN(bytes, bytes_of(program, op->operands[0]))
	               : bytes;
}

/* Bytes that the node reads in addition if it gets a copy of `op`. */
static double further_bytes(const sw_fuser *f, uint32_t node, sw_id id)
{
	const sw_op *op = sw_op_at(f->program, id);
	double bytes = 0;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id source = sw_fuse_source(f->program, op->operands[k]);
		bool read = reads(f, node, op->operands[k], id) || f->cheap[source] ||
		            sw_fuse_holds(f, node, source);
		bytes += read ? 0 : read_bytes(f, op, k);
	}
	return bytes;
}

/* Return the arrays of the node's size that it reads, other than the results of `but`. */
static int32_t full_operands(const sw_fuser *f, uint32_t node, sw_id but)
{
	const sw_fuse_node *n = node_at(f, node);
	int32_t count = 0;
	for (size_t i = 0; i < n->members.len; i++) {
		const sw_op *op = sw_op_at(f->program, n->members.data[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id source = sw_fuse_source(f->program, op->operands[k]);
			count += source != but && !f->cheap[source] &&
			         elements_of(f->program, op->operands[k]) == n->elements &&
			         !sw_fuse_holds(f, node, source);
		}
	}
	return count;
}

/* What a library's product can read in place of its operand: it is transposed, repeated, or made
 * wider on the way. */
static bool is_prologue(const sw_program *program, const sw_op *op)
{
	if (op->opcode == SW_OP_CONVERT)
		return bytes_of(program, op->operands[0]) <= bytes_of(program, op->first_result);
	return op->opcode == SW_OP_TRANSPOSE || op->opcode == SW_OP_BROADCAST;
}

static bool dot_takes(const sw_fuser *f, sw_id id, sw_fuse_use use)
{
	const sw_op *op = sw_op_at(f->program, id);
	const sw_fuse_node *n = node_at(f, use.node);
	if (sw_fuse_role_of(f->program, use.user) == SW_FUSE_DOT || !n->flat)
		return is_prologue(f->program, op);
	if (op->opcode == SW_OP_BROADCAST)
		return elements_of(f->program, op->operands[0]) < n->elements;
	return sw_fuse_is_elementwise(op) && op->n_operands == 1;
}

/* Updates and indices are computed on the way; the array that changes is not. */
static bool indexed_takes(const sw_fuser *f, sw_id id, sw_fuse_use use)
{
	const sw_op *op = sw_op_at(f->program, id), *user = sw_op_at(f->program, use.user);
	bool gathered = use.operand == 0 && user->opcode == SW_OP_GATHER;
	return use.operand > 0 || sw_fuse_role_of(f->program, use.user) == SW_FUSE_MAP ||
	       (gathered && f->rules->gathers_computed && !sw_fuse_is_slow(op));
}

/* A value that is computed again for each element that repeats it must be quick. */
static bool loop_takes(const sw_fuser *f, sw_id id, sw_fuse_use use)
{
	const sw_op *op = sw_op_at(f->program, id), *user = sw_op_at(f->program, use.user);
	bool repeated =
		user->opcode == SW_OP_BROADCAST && elements_of(f->program, op->first_result) > 1;
	return !repeated || node_at(f, use.node)->row || !sw_fuse_is_slow(op);
}

static bool takes_map(const sw_fuser *f, sw_id id, sw_fuse_use use)
{
	switch (node_at(f, use.node)->kind) {
	case SW_FUSED_LOOP:
	case SW_FUSED_REDUCE:
		return loop_takes(f, id, use);
	case SW_FUSED_DOT:
		return dot_takes(f, id, use);
	case SW_FUSED_INDEXED:
		return f->rules->indexed && indexed_takes(f, id, use);
	default:
		return false;
	}
}

/* Return whether the node adds a bias to what it reads, and does nothing else. */
static bool adds_bias(const sw_fuser *f, uint32_t node)
{
	const sw_fuse_node *n = node_at(f, node);
	for (size_t i = 0; i < n->members.len; i++) {
		sw_opcode opcode = (sw_opcode)sw_op_at(f->program, n->members.data[i])->opcode;
		if (opcode != SW_OP_ADD && opcode != SW_OP_CONVERT && opcode != SW_OP_BROADCAST)
			return false;
	}
	return true;
}

static bool takes_dot(const sw_fuser *f, sw_id id, uint32_t node)
{
	const sw_fuse_node *n = node_at(f, node);
	const sw_op *op = sw_op_at(f->program, id);
	return n->kind == SW_FUSED_LOOP && n->flat &&
	       n->elements == elements_of(f->program, op->first_result) &&
	       (!f->rules->adds_bias_alone || adds_bias(f, node)) &&
	       full_operands(f, node, id) <= (op->opcode == SW_OP_DOT
	                                              ? f->rules->dot_epilogue
	                                              : f->rules->convolution_epilogue);
}

/* Return whether the node can take the op. *row: elements of the rows that a reduction brings. */
static bool takes(sw_fuser *f, sw_fuse_role role, sw_id id, uint32_t node, int64_t *row)
{
	const sw_fuse_node *n = node_at(f, node);
	*row = 0;
	if (n->border || n->kind == SW_FUSED_COUNT || n->members.len >= f->rules->max_ops ||
	    f->owners.runs[id] != f->owners.runs[n->members.data[0]])
		return false;
	if (role == SW_FUSE_REDUCE)
		return f->rules->reduces &&
		       (n->kind == SW_FUSED_LOOP || n->kind == SW_FUSED_REDUCE) &&
		       sw_fuse_rows_agree(f, id, node, row);
	if (role == SW_FUSE_DOT)
		return takes_dot(f, id, node);
	bool all = role == SW_FUSE_MAP && f->rules->loops;
	for (size_t i = 0; i < f->uses.len && all; i++)
		if (f->uses.data[i].node == node)
			all = takes_map(f, id, f->uses.data[i]);
	return all;
}

/* ---- visiting an op ---------------------------------------------------------------------- */

/* A node is flat as long as its members keep the order of elements; broadcasts are, at its edge. */
static bool keeps_order(const sw_op *op)
{
	return sw_fuse_is_elementwise(op) || op->opcode == SW_OP_BROADCAST ||
	       op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION;
}

static void settle(sw_fuser *f, sw_fuse_role role, sw_id id, uint32_t node, int64_t row)
{
	const sw_op *op = sw_op_at(f->program, id);
	join(f, id, node);
	sw_fuse_node *n = node_at(f, node);
	bool prologue = n->kind == SW_FUSED_DOT;
	n->flat = n->flat && (keeps_order(op) || prologue);
	if (role == SW_FUSE_DOT)
		n->kind = SW_FUSED_DOT;
	if (role != SW_FUSE_REDUCE)
		return;
	n->kind = SW_FUSED_REDUCE;
	n->flat = false;
	n->row = row;
	n->elements = elements_of(f->program, op->operands[0]);
}

static uint32_t begin(sw_fuser *f, sw_fuse_role role, sw_id id)
{
	static const uint8_t kinds[] = {
		[SW_FUSE_BORDER] = SW_FUSED_COUNT,    [SW_FUSE_MAP] = SW_FUSED_LOOP,
		[SW_FUSE_REDUCE] = SW_FUSED_REDUCE,   [SW_FUSE_DOT] = SW_FUSED_DOT,
		[SW_FUSE_INDEXED] = SW_FUSED_INDEXED, [SW_FUSE_ALONE] = SW_FUSED_COUNT};
	const sw_op *op = sw_op_at(f->program, id);
	uint32_t node = node_new(f, id, (sw_fused_kernel)kinds[role], role == SW_FUSE_BORDER);
	node_at(f, node)->flat = role == SW_FUSE_MAP && keeps_order(op);
	if (role == SW_FUSE_REDUCE)
		node_at(f, node)->elements = elements_of(f->program, op->operands[0]);
	return node;
}

/* Return whether copies in all of its readers move fewer bytes than storing the op. */
static bool copies_pay(const sw_fuser *f, sw_id id, const readers *r)
{
	const sw_op *op = sw_op_at(f->program, id);
	double again = 0, once = 0;
	if (f->cheap[id])
		return true;
	bool of_none = f->array[id] == SW_NO_ID,
	     of_several = f->array[id] == id && op->opcode != SW_OP_BROADCAST; /* which stores nothing */
	if (f->rules->copies == SW_FUSE_COPY_NONE ||
	    (f->rules->copies == SW_FUSE_COPY_OF_ONE_ARRAY && of_several) ||
	    (sw_fuse_is_slow(op) && (of_none || !f->rules->copies_slow)))
		return false;
	for (uint32_t k = 0; k < r->n; k++)
		again += further_bytes(f, r->node[k], id);
	for (uint32_t k = 0; k < op->n_operands; k++)
		once += f->cheap[sw_fuse_source(f->program, op->operands[k])]
		                ? 0
		                : read_bytes(f, op, k);
	return again < once + (double)r->n * bytes_of(f->program, op->first_result);
}

/* Return the node that may hold the op although others read it: the highest of those that take it,
 * if it is higher than all others. */
static uint32_t host_of(sw_fuser *f, sw_fuse_role role, sw_id id, const readers *r, int64_t *row)
{
	const sw_op *op = sw_op_at(f->program, id);
	uint32_t best = SW_NO_ID;
	int64_t rows;
	for (uint32_t k = 0; k < r->n; k++)
		if ((best == SW_NO_ID ||
		     node_at(f, r->node[k])->height > node_at(f, best)->height) &&
		    takes(f, role, id, r->node[k], &rows)) {
			best = r->node[k];
			*row = rows;
		}
	if (best == SW_NO_ID || height_above(f, best) > node_at(f, best)->height)
		return SW_NO_ID;
	bool whole = role != SW_FUSE_MAP ||
	             (sw_fuse_is_elementwise(op) &&
	              elements_of(f->program, op->first_result) == node_at(f, best)->elements);
	return whole ? best : SW_NO_ID;
}

/* Give a copy to each reader that can take one; return whether all can. */
static bool copy_into_readers(sw_fuser *f, sw_fuse_role role, sw_id id, const readers *r)
{
	bool taken[MAX_READERS], all = !f->returns && r->n > 0;
	int64_t row;
	for (uint32_t k = 0; k < r->n; k++)
		all = (taken[k] = takes(f, role, id, r->node[k], &row)) && all;
	if (!all)
		begin(f, role, id);
	for (uint32_t k = 0; k < r->n; k++)
		if (taken[k])
			settle(f, role, id, r->node[k], 0);
	return all;
}

static bool all_take(sw_fuser *f, sw_fuse_role role, sw_id id, const readers *r, int64_t *row)
{
	bool all = !f->returns && r->n > 0;
	for (uint32_t k = 0; k < r->n && all; k++)
		all = takes(f, role, id, r->node[k], row);
	return all;
}

static void visit(sw_fuser *f, sw_id id)
{
	sw_fuse_role role = sw_fuse_role_of(f->program, id);
	int64_t row = 0;
	if (f->node[id] != SW_NO_ID || role == SW_FUSE_FREE)
		return;
	sw_fuse_list_uses(f, sw_op_at(f->program, id));
	readers r = readers_of(f);
	if (role == SW_FUSE_BORDER || role == SW_FUSE_ALONE || role == SW_FUSE_INDEXED ||
	    r.n > (f->cheap[id] || f->array[id] == SW_NO_ID ? MAX_READERS : MAX_COPIED_READERS)) {
		begin(f, role, id);
		return;
	}
	if (r.n == 1 && all_take(f, role, id, &r, &row)) {
		settle(f, role, id, r.node[0], row);
		return;
	}
	bool copied = role == SW_FUSE_MAP &&
	              (f->cheap[id] ||
	               (r.n > 1 && all_take(f, role, id, &r, &row) && copies_pay(f, id, &r)));
	if (copied) {
		copy_into_readers(f, role, id, &r);
		return;
	}
	uint32_t host = host_of(f, role, id, &r, &row);
	if (host == SW_NO_ID)
		begin(f, role, id);
	else
		settle(f, role, id, host, row);
}

/* ---- before and after the search --------------------------------------------------------- */

/* Mark the ops that are computed from constants, iotas and single numbers by few quick ops. */
const bool *sw_fuse_mark_cheap(const sw_program *program, sw_arena *arena)
{
	bool *cheap = SW_NEW_N(arena, bool, program->ops.len + 1);
	uint16_t *ops = SW_NEW_N(arena, uint16_t, program->ops.len + 1);
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		sw_fuse_role role = sw_fuse_role_of(program, id);
		uint32_t n = 1;
		bool is_cheap =
			(role == SW_FUSE_MAP && !sw_fuse_is_slow(op)) || role == SW_FUSE_FREE;
		for (uint32_t k = 0; k < op->n_operands && is_cheap; k++) {
			sw_id from = program->values.data[op->operands[k]].op;
			if (cheap[from])
				n += ops[from];
			else
				is_cheap = elements_of(program, op->operands[k]) <= 1;
		}
		cheap[id] = is_cheap && n <= MAX_CHEAP_OPS;
		ops[id] = (uint16_t)SW_MIN(n, MAX_CHEAP_OPS + 1);
	}
	return cheap;
}

/* What an op reads, beside single numbers and what is cheap: `one` array, element by element; itself
 * computed from none (OF_NONE); repeated (REPEATED); or several, or otherwise (SEVERAL). */
typedef enum array_kinds { OF_NONE = 1, REPEATED = 2, SEVERAL = 4 } array_kinds;

static unsigned arrays_of(const sw_program *program, const bool *cheap, const sw_id *array,
                          const sw_op *op, sw_id *one)
{
	unsigned kinds = 0;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id from = sw_fuse_source(program, op->operands[k]);
		if (cheap[from] || elements_of(program, op->operands[k]) == 1)
			continue;
		if (array[from] == SW_NO_ID)
			kinds |= OF_NONE;
		else if (sw_op_at(program, from)->opcode == SW_OP_BROADCAST)
			kinds |= REPEATED;
		else if (*one == SW_NO_ID || *one == array[from])
			*one = array[from];
		else
			kinds |= SEVERAL;
	}
	return kinds;
}

static const sw_id *find_arrays(const sw_program *program, const bool *cheap, sw_arena *arena)
{
	sw_id *array = SW_NEW_N(arena, sw_id, program->ops.len + 1);
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		bool repeats = op->opcode == SW_OP_BROADCAST;
		array[id] = id;
		if (!repeats && !sw_fuse_is_elementwise(op))
			continue;
		sw_id one = SW_NO_ID;
		unsigned kinds = arrays_of(program, cheap, array, op, &one);
		bool of_one = one != SW_NO_ID && !repeats && !(kinds & (OF_NONE | SEVERAL)),
		     of_none = one == SW_NO_ID && !(kinds & (REPEATED | SEVERAL));
		if (of_one || of_none)
			array[id] = one;
	}
	return array;
}

const bool *sw_fuse_mark_returned(const sw_program *program, sw_arena *arena)
{
	bool *returned = SW_NEW_N(arena, bool, program->values.len + 1);
	for (size_t c = 0; c < program->computations.len; c++)
		for (size_t i = 0; i < program->computations.data[c].results.len; i++)
			returned[program->computations.data[c].results.data[i]] = true;
	return returned;
}

void sw_fuse_add(sw_fuser *f, sw_fused_kernel kind, int32_t computation, const sw_id *ops,
                 uint32_t n_ops, const sw_id *owned, uint32_t n_owned)
{
	uint32_t node = (uint32_t)f->nodes.len, next = n_owned;
	sw_vec_push(&f->nodes, ((sw_fuse_node){.kind = (uint8_t)kind,
	                                       .border = true,
	                                       .height = -1,
	                                       .computation = computation}));
	for (uint32_t i = n_ops; i-- > 0;) {
		bool owns = next > 0 && owned[next - 1] == ops[i];
		next -= owns;
		sw_vec_push(&node_at(f, node)->members, ops[i]);
		if (owns) {
			f->node[ops[i]] = node;
			continue;
		}
		sw_vec_push(&f->copies, ((sw_fuse_copy){node, f->copied[ops[i]]}));
		f->copied[ops[i]] = (uint32_t)f->copies.len;
	}
}

void sw_fuse_note_add(sw_fuser *f, sw_id op, const char *text)
{
	const char *copy = sw_arena_text(&f->kernels->arena, text);
	sw_vec_push(&f->kernels->notes, ((sw_fuse_note){op, copy}));
}

/* The height of a claimed node grows as its members are passed. */
static void raise_claimed(sw_fuser *f, sw_id id)
{
	uint32_t node = f->node[id];
	if (node == SW_NO_ID || sw_fuse_role_of(f->program, id) == SW_FUSE_FREE)
		return;
	sw_fuse_list_uses(f, sw_op_at(f->program, id));
	int32_t height = f->uses.len > MAX_USES ? height_of(f) : height_above(f, node);
	node_at(f, node)->height = SW_MAX(node_at(f, node)->height, height);
}

static void search_computation(sw_fuser *f, int32_t c)
{
	const sw_computation *computation = &f->program->computations.data[c];
	size_t claimed = f->nodes.len;
	sw_fuse_attention(f, c);
	sw_fuse_cross_entropy(f, c);
	bool any = f->nodes.len > claimed;
	for (size_t i = computation->ops.len; i-- > 0;) {
		sw_id id = computation->ops.data[i];
		if (any && f->node[id] != SW_NO_ID)
			raise_claimed(f, id);
		else
			visit(f, id);
	}
}

static sw_fuser fuser_new(sw_kernels *kernels, sw_fusion device, sw_arena *arena)
{
	const sw_program *program = kernels->program;
	sw_fuser f = {.kernels = kernels,
	              .program = program,
	              .owners = sw_program_owners(program, arena),
	              .device = device,
	              .rules = sw_fuse_rules_of(device),
	              .users = sw_program_users(program, arena),
	              .returned = sw_fuse_mark_returned(program, arena),
	              .cheap = sw_fuse_mark_cheap(program, arena)};
	f.array = find_arrays(program, f.cheap, arena);
	f.node = SW_NEW_N(arena, uint32_t, program->ops.len + 1);
	f.copied = SW_NEW_N(arena, uint32_t, program->ops.len + 1);
	f.mark = SW_NEW_N(arena, uint8_t, program->ops.len + 1);
	memset(f.node, 0xff, sizeof(*f.node) * program->ops.len);
	return f;
}

static void fuser_clear(sw_fuser *f)
{
	for (size_t i = 0; i < f->nodes.len; i++)
		sw_vec_clear(&f->nodes.data[i].members);
	sw_vec_clear(&f->nodes);
	sw_vec_clear(&f->copies);
	sw_vec_clear(&f->uses);
}

/* Find kernels in the computations that are marked. */
static void find_in(sw_kernels *kernels, const sw_program *program, sw_fusion device,
                    const bool *planned)
{
	sw_arena scratch;
	*kernels = (sw_kernels){.program = program};
	sw_arena_init(&kernels->arena);
	sw_arena_init(&scratch);
	sw_fuser f = fuser_new(kernels, device, &scratch);
	for (int32_t c = 0; c < (int32_t)program->computations.len; c++)
		if (planned[c])
			search_computation(&f, c);
	sw_fuse_list_kernels(&f, planned);
	fuser_clear(&f);
	sw_arena_clear(&scratch);
}

void sw_kernels_find(sw_kernels *kernels, const sw_program *program, sw_fusion device)
{
	bool *planned = sw_alloc(program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	find_in(kernels, program, device, planned);
	free(planned);
}

static bool has_products(const sw_op *op)
{
	sw_fused_kernel kernel = sw_fused_kernel_of(op);
	return kernel != SW_FUSED_COUNT && kernel != SW_FUSED_LOOP && kernel != SW_FUSED_REDUCE &&
	       kernel != SW_FUSED_INDEXED;
}

void sw_kernels_find_inside(sw_kernels *kernels, const sw_program *program, sw_fusion device)
{
	bool *planned = sw_alloc(program->computations.len + 1);
	for (size_t i = 0; i < program->ops.len; i++)
		if (has_products(&program->ops.data[i]))
			sw_mark_planned(program, program->ops.data[i].called[0], planned);
	find_in(kernels, program, device, planned);
	free(planned);
}

/* Mark the dots of a computation's regions with a softmax, if the device has kernels for it; as
 * attention where it is not one over a vocabulary, as scores where their results are of the region. */
static void mark_softmaxes(sw_fuser *f, int32_t computation, bool *attention, bool *shares_kernel,
                           bool *scores)
{
	sw_score_regions regions;
	sw_score_regions_find(&regions, f, computation);
	for (uint32_t r = 0; r < regions.list.len; r++) {
		const sw_score_region *region = &regions.list.data[r];
		sw_scores found;
		if (region->same != r || !region->softmax)
			continue;
		sw_scores_analyse(&found, &regions, r);
		bool vocabulary = !found.refused.text && sw_score_is_vocabulary(&found),
		     fuses = vocabulary ? sw_score_rule_of(f->device)->cross_entropy
					: sw_score_runs_attention(f);
		for (uint32_t i = 0; i < region->n_ops; i++) {
			const sw_op *op = sw_op_at(f->program, region->ops[i]);
			if (op->opcode != SW_OP_DOT || !fuses)
				continue;
			attention[region->ops[i]] |= !vocabulary;
			shares_kernel[region->ops[i]] = true;
			scores[region->ops[i]] |=
				sw_score_region_of(&regions, op->first_result) == r;
		}
	}
	sw_score_regions_clear(&regions);
}

void sw_fuse_mark_softmaxes(const sw_program *program, sw_fusion device, bool *attention,
                            bool *shares_kernel, bool *scores)
{
	sw_kernels kernels = {.program = program};
	sw_arena scratch;
	for (size_t i = 0; i < program->ops.len; i++)
		attention[i] = shares_kernel[i] = sw_cost_may_be_attention(&program->ops.data[i]);
	if (device == SW_FUSION_NONE)
		return;
	sw_arena_init(&kernels.arena);
	sw_arena_init(&scratch);
	sw_fuser f = fuser_new(&kernels, device, &scratch);
	bool *planned = SW_NEW_N(&scratch, bool, program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	for (int32_t c = 0; c < (int32_t)program->computations.len; c++)
		if (planned[c])
			mark_softmaxes(&f, c, attention, shares_kernel, scores);
	fuser_clear(&f);
	sw_arena_clear(&scratch);
	sw_kernels_clear(&kernels);
}

void sw_kernels_clear(sw_kernels *kernels)
{
	for (size_t c = 0; kernels->order && c < kernels->program->computations.len; c++)
		sw_vec_clear(&kernels->order[c]);
	sw_vec_clear(&kernels->list);
	sw_vec_clear(&kernels->notes);
	sw_arena_clear(&kernels->arena);
}
