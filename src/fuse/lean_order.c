#include "fuse/lean_order.h"

#include "rewrite/rewrite.h"

#define MAX_GROUP 32             /* ops that are pulled forward at once */
#define MAX_PARENTS 8            /* groups of one another that are tried for an op */
#define MAX_SMALL 256            /* small ops that are looked at for one group */
#define KEPT (UINT32_C(1) << 31) /* added to the reads of what is never freed */
#define MAX_USERS 64 /* readers of a value that are looked at when one of them has run */

typedef struct order_writer {
	const sw_program *program;
	sw_users users;
	/* per value: the one whose bytes it has (itself, but for views), and how many reads of
	 * those bytes have not been done, with KEPT if they are never freed */
	sw_id *holder;
	uint32_t *reads;
	bool *done;      /* per op */
	sw_id *parent;   /* per op: the only one that reads it, SW_NO_ID */
	uint32_t *place; /* per op: in the given order */
	sw_id *order;
	size_t n;
	SW_VEC(sw_id) fewer; /* values that fewer ops read now than before */
} order_writer;

static bool is_view(const sw_op *op)
{
	return op->n_results == 1 && op->n_operands == 1 &&
	       (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST);
}

static bool stays(const sw_op *op)
{
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	return op->control || op->n_operands == 0 || class == SW_CLASS_COLLECTIVE ||
	       class == SW_CLASS_RANDOM || class == SW_CLASS_OTHER || sw_is_region(op);
}

static double result_bytes(const order_writer *w, const sw_op *op)
{
	double bytes = 0;
	for (uint32_t r = 0; r < op->n_results; r++)
		if (w->holder[op->first_result + r] == op->first_result + r)
			bytes += (double)sw_shape_bytes(
				sw_value_shape(w->program, op->first_result + r));
	return bytes;
}

/* ---- groups ------------------------------------------------------------------------------- */

/* Return the one op that reads the op's results; SW_NO_ID: there are several, or none, or a result
 * is kept. */
static sw_id only_reader(const order_writer *w, const sw_op *op)
{
	sw_id reader = SW_NO_ID;
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		if (w->reads[w->holder[value]] & KEPT)
			return SW_NO_ID;
		for (uint32_t u = w->users.start[value]; u < w->users.start[value + 1]; u++) {
			if (reader != SW_NO_ID && reader != w->users.ops[u])
				return SW_NO_ID;
			reader = w->users.ops[u];
		}
	}
	return reader;
}

static void find_parents(order_writer *w, const sw_computation *c)
{
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i], reader = only_reader(w, sw_op_at(w->program, id));
		bool apart = reader == SW_NO_ID || stays(sw_op_at(w->program, id)) ||
		             stays(sw_op_at(w->program, reader));
		w->parent[id] = apart ? SW_NO_ID : reader;
	}
}

/* An op, and what only it reads and has not run. */
typedef struct group {
	uint32_t n;
	sw_id ops[MAX_GROUP]; /* the op itself first */
} group;

static bool is_in(const group *g, sw_id id)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->ops[i] == id)
			return true;
	return false;
}

/* Return false if there are too many. */
static bool collect(const order_writer *w, sw_id first, group *g)
{
	*g = (group){.n = 1, .ops = {first}};
	for (uint32_t i = 0; i < g->n; i++) {
		const sw_op *op = sw_op_at(w->program, g->ops[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = w->program->values.data[op->operands[k]].op;
			if (w->done[from] || w->parent[from] != g->ops[i] || is_in(g, from))
				continue;
			if (g->n == MAX_GROUP)
				return false;
			g->ops[g->n++] = from;
		}
	}
	return true;
}

/* ---- running ------------------------------------------------------------------------------ */

static void run(order_writer *w, sw_id id)
{
	const sw_op *op = sw_op_at(w->program, id);
	w->done[id] = true;
	w->order[w->n++] = id;
	for (uint32_t r = 0; r < op->n_results; r++)
		sw_vec_push(&w->fewer, op->first_result + r);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_vec_push(&w->fewer, op->operands[k]);
		w->reads[w->holder[op->operands[k]]] -= !is_view(op);
	}
}

/* An op that can be run along with those that read it: it takes hardly any time. */
static bool is_small(const sw_program *program, const sw_op *op)
{
	if (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_CONSTANT)
		return true;
	if (op->control || op->n_results != 1 || sw_is_region(op))
		return false;
	bool of_one = op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_RESHAPE ||
	              sw_shape_elements(sw_value_shape(program, op->first_result)) <= 1;
	for (uint32_t k = 0; k < op->n_operands; k++)
		of_one = of_one && sw_shape_elements(sw_value_shape(program, op->operands[k])) <= 1;
	return of_one && op->n_operands > 0 &&
	       sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE &&
	       sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_RANDOM &&
	       sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_OTHER;
}

/* Return whether the op that gives a value has run, or can run now with small ones before it. At
 * most *left small ones are looked at. */
static bool can_be_had(const order_writer *w, sw_id value, int *left)
{
	sw_id id = w->program->values.data[value].op;
	const sw_op *op = sw_op_at(w->program, id);
	if (w->done[id])
		return true;
	bool can = (*left)-- > 0 && is_small(w->program, op);
	for (uint32_t k = 0; k < op->n_operands && can; k++)
		can = can_be_had(w, op->operands[k], left);
	return can;
}

static void run_small(order_writer *w, sw_id value)
{
	sw_id id = w->program->values.data[value].op;
	const sw_op *op = sw_op_at(w->program, id);
	if (w->done[id])
		return;
	for (uint32_t k = 0; k < op->n_operands; k++)
		run_small(w, op->operands[k]);
	run(w, id);
}

/* Return whether what the group reads from outside can be had. */
static bool is_ready(const order_writer *w, const group *g)
{
	int left = MAX_SMALL;
	for (uint32_t i = 0; i < g->n; i++) {
		const sw_op *op = sw_op_at(w->program, g->ops[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (!is_in(g, w->program->values.data[op->operands[k]].op) &&
			    !can_be_had(w, op->operands[k], &left))
				return false;
	}
	return true;
}

static uint32_t reads_in(const order_writer *w, const group *g, sw_id holder)
{
	uint32_t reads = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		const sw_op *op = sw_op_at(w->program, g->ops[i]);
		for (uint32_t k = 0; k < op->n_operands && !is_view(op); k++)
			reads += w->holder[op->operands[k]] == holder;
	}
	return reads;
}

/* Return the bytes that are free once the group has run, less those of its result and of what is
 * run along with it. Values that begin and end in the group don't count. */
static double freed_bytes(const order_writer *w, const group *g)
{
	const sw_program *program = w->program;
	sw_id seen[MAX_GROUP * 4];
	double bytes = -result_bytes(w, sw_op_at(program, g->ops[0]));
	uint32_t n_seen = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		const sw_op *op = sw_op_at(program, g->ops[i]);
		for (uint32_t k = 0; k < op->n_operands && !is_view(op); k++) {
			sw_id holder = w->holder[op->operands[k]];
			sw_id from = program->values.data[holder].op;
			bool again = is_in(g, from);
			for (uint32_t s = 0; s < n_seen && !again; s++)
				again = seen[s] == holder;
			if (again || n_seen == SW_COUNT(seen))
				continue;
			seen[n_seen++] = holder;
			double size = (double)sw_shape_bytes(sw_value_shape(program, holder));
			if (!w->done[from] && sw_op_at(program, from)->opcode != SW_OP_PARAMETER)
				bytes -= size;
			else if (reads_in(w, g, holder) == w->reads[holder])
				bytes += size;
		}
	}
	return bytes;
}

/* Sort a few ops by their place. */
static void sort(const order_writer *w, group *g)
{
	for (uint32_t i = 1; i < g->n; i++) {
		sw_id id = g->ops[i];
		uint32_t at = i;
		for (; at > 0 && w->place[g->ops[at - 1]] > w->place[id]; at--)
			g->ops[at] = g->ops[at - 1];
		g->ops[at] = id;
	}
}

static void run_group(order_writer *w, group *g)
{
	sort(w, g);
	for (uint32_t i = 0; i < g->n; i++) {
		const sw_op *op = sw_op_at(w->program, g->ops[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			run_small(w, op->operands[k]);
		run(w, g->ops[i]);
	}
}

/* Run the op, or the nearest of those that it is read by alone, if that frees more than it takes.
 */
static void pull(order_writer *w, sw_id id)
{
	group g;
	for (int n = 0; n < MAX_PARENTS && id != SW_NO_ID; n++, id = w->parent[id]) {
		if (w->done[id] || stays(sw_op_at(w->program, id)) || !collect(w, id, &g) ||
		    !is_ready(w, &g))
			return;
		if (freed_bytes(w, &g) > 0) {
			run_group(w, &g);
			return;
		}
	}
}

/* Run an op, and all that can be pulled forward then. */
static void run_in_turn(order_writer *w, sw_id id)
{
	run(w, id);
	while (w->fewer.len > 0) {
		sw_id value = w->fewer.data[--w->fewer.len];
		uint32_t start = w->users.start[value], end = w->users.start[value + 1];
		for (uint32_t u = start; u < SW_MIN(end, start + MAX_USERS); u++)
			if (!w->done[w->users.ops[u]])
				pull(w, w->users.ops[u]);
	}
}

/* ---- reads -------------------------------------------------------------------------------- */

static void keep(order_writer *w, sw_id value)
{
	w->reads[w->holder[value]] |= KEPT;
}

/* Inputs of the step that no output replaces stay where they are. */
static void keep_inputs(order_writer *w, const sw_computation *c)
{
	uint32_t leaf = 0;
	for (size_t i = 0; i < c->parameters.len; i++) {
		const sw_op *op = sw_op_at(w->program, c->parameters.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++, leaf++)
			if (sw_output_of_input(w->program, leaf) < 0)
				keep(w, op->first_result + r);
	}
}

static void count_reads(order_writer *w, int32_t computation)
{
	const sw_computation *c = &w->program->computations.data[computation];
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(w->program, c->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++) {
			w->holder[op->first_result + r] =
				is_view(op) ? w->holder[op->operands[0]] : op->first_result + r;
			w->reads[op->first_result + r] = 0;
		}
		for (uint32_t k = 0; k < op->n_operands; k++)
			w->reads[w->holder[op->operands[k]]] += !is_view(op);
	}
	for (size_t i = 0; i < c->results.len; i++)
		keep(w, c->results.data[i]);
	if (computation == w->program->entry)
		keep_inputs(w, c);
}

/* Return the most bytes that are live if the ops run in this order. */
static double peak_of(order_writer *w, int32_t c, const sw_id *order, size_t n)
{
	double live = 0, most = 0;
	count_reads(w, c);
	for (size_t i = 0; i < n; i++) {
		const sw_op *op = sw_op_at(w->program, order[i]);
		live += result_bytes(w, op);
		most = SW_MAX(most, live);
		for (uint32_t k = 0; k < op->n_operands && !is_view(op); k++) {
			sw_id holder = w->holder[op->operands[k]];
			if (--w->reads[holder] == 0)
				live -= (double)sw_shape_bytes(sw_value_shape(w->program, holder));
		}
	}
	return most;
}

static void order_computation(order_writer *w, int32_t c, sw_kernel_order *order)
{
	const sw_computation *computation = &w->program->computations.data[c];
	const sw_id *given = computation->ops.data;
	size_t n = computation->ops.len;
	w->n = 0;
	for (size_t i = 0; i < n; i++)
		w->place[given[i]] = (uint32_t)i;
	count_reads(w, c);
	find_parents(w, computation);
	for (size_t i = 0; i < n; i++)
		if (!w->done[given[i]])
			run_in_turn(w, given[i]);
	bool leaner = peak_of(w, c, w->order, n) < peak_of(w, c, given, n);
	for (size_t i = 0; i < n; i++)
		sw_vec_push(order, leaner ? w->order[i] : given[i]);
}

void sw_lean_orders(const sw_program *program, const bool *wanted, sw_kernel_order *orders)
{
	sw_arena arena;
	sw_arena_init(&arena);
	size_t values = program->values.len + 1, ops = program->ops.len + 1;
	order_writer w = {.program = program,
	                  .users = sw_program_users(program, &arena),
	                  .holder = SW_NEW_N(&arena, sw_id, values),
	                  .reads = SW_NEW_N(&arena, uint32_t, values),
	                  .done = SW_NEW_N(&arena, bool, ops),
	                  .parent = SW_NEW_N(&arena, sw_id, ops),
	                  .place = SW_NEW_N(&arena, uint32_t, ops),
	                  .order = SW_NEW_N(&arena, sw_id, ops)};
	for (int32_t c = 0; c < (int32_t)program->computations.len; c++)
		if (wanted[c])
			order_computation(&w, c, &orders[c]);
	sw_vec_clear(&w.fewer);
	sw_arena_clear(&arena);
}
