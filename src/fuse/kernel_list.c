/*
 * From the nodes of the search to the list of kernels: free ops are copied into the kernels that read
 * them, what is stored is marked, and the kernels of each computation get an order in which they can
 * run, as near to the program's as possible. Should nodes wait for each other in a circle (what a
 * recogniser claimed can end in one), those of several ops among them are dissolved.
 */
#include "fuse/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct lister {
	sw_fuser *f;
	uint32_t *kernel;  /* per node: its index in the list, SW_NO_ID */
	uint32_t *seen;    /* per op: the last gathering that took it */
	uint32_t gathered; /* number of gatherings */
	uint8_t *state;    /* per op: not begun, begun, done */
	bool *dissolved;   /* per node */
	SW_VEC(sw_id) ops; /* scratch */
	SW_VEC(sw_id) stack;
} lister;

static bool is_kernel(const lister *l, uint32_t node)
{
	const sw_fuse_node *n = &l->f->nodes.data[node];
	return !(n->border && n->kind == SW_FUSED_COUNT);
}

static bool is_fused(const lister *l, uint32_t node)
{
	return node != SW_NO_ID && is_kernel(l, node) && !l->dissolved[node] &&
	       l->f->nodes.data[node].members.len > 1;
}

static bool is_free(const lister *l, sw_id id)
{
	return sw_fuse_role_of(l->f->program, id) == SW_FUSE_FREE;
}

static int ascending(const void *a, const void *b)
{
	sw_id x = *(const sw_id *)a, y = *(const sw_id *)b;
	return x < y ? -1 : x > y;
}

/* ---- the ops of a kernel ----------------------------------------------------------------- */

static void add_free_operands(lister *l, sw_id id)
{
	const sw_op *op = sw_op_at(l->f->program, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id from = l->f->program->values.data[op->operands[k]].op;
		if (l->seen[from] == l->gathered || !is_free(l, from))
			continue;
		l->seen[from] = l->gathered;
		sw_vec_push(&l->ops, from);
		add_free_operands(l, from);
	}
}

/* Gather the ops of a fused node, with the free ops that they read. */
static void gather(lister *l, uint32_t node)
{
	const sw_fuse_node *n = &l->f->nodes.data[node];
	l->ops.len = 0;
	l->gathered++;
	for (size_t i = 0; i < n->members.len; i++) {
		l->seen[n->members.data[i]] = l->gathered;
		sw_vec_push(&l->ops, n->members.data[i]);
	}
	for (size_t i = 0; i < n->members.len; i++)
		add_free_operands(l, n->members.data[i]);
	qsort(l->ops.data, l->ops.len, sizeof(*l->ops.data), ascending);
}

static bool is_stored(lister *l, sw_id value)
{
	sw_fuser *f = l->f;
	sw_id id = f->program->values.data[value].op;
	sw_op one = *sw_op_at(f->program, id);
	one.first_result = value;
	one.n_results = 1;
	sw_fuse_list_uses(f, &one);
	if (f->returns)
		return true;
	for (size_t i = 0; i < f->uses.len; i++)
		if (!is_fused(l, f->uses.data[i].node) ||
		    !sw_fuse_holds(f, f->uses.data[i].node, id))
			return true;
	return false;
}

static void add_kernel(lister *l, uint32_t node)
{
	sw_fuser *f = l->f;
	const sw_fuse_node *n = &f->nodes.data[node];
	sw_arena *arena = &f->kernels->arena;
	sw_kernel_ops kernel = {.kind = (sw_fused_kernel)n->kind, .computation = n->computation};
	SW_VEC(sw_id) results = {0};
	gather(l, node);
	kernel.ops = sw_arena_copy(arena, l->ops.data, sizeof(sw_id) * l->ops.len);
	kernel.n_ops = (uint32_t)l->ops.len;
	for (uint32_t i = 0; i < kernel.n_ops; i++) {
		const sw_op *op = sw_op_at(f->program, kernel.ops[i]);
		for (uint32_t r = 0; f->node[kernel.ops[i]] == node && r < op->n_results; r++)
			if (f->kernels->stored[op->first_result + r])
				sw_vec_push(&results, op->first_result + r);
	}
	kernel.results = sw_arena_copy(arena, results.data, sizeof(sw_id) * results.len);
	kernel.n_results = (uint32_t)results.len;
	sw_vec_clear(&results);
	l->kernel[node] = (uint32_t)f->kernels->list.len;
	sw_vec_push(&f->kernels->list, kernel);
}

static void add_single(lister *l, sw_id id)
{
	sw_fuser *f = l->f;
	const sw_op *op = sw_op_at(f->program, id);
	sw_kernel_ops kernel = {.kind = SW_FUSED_COUNT, .computation = op->computation, .n_ops = 1};
	sw_id *results = SW_NEW_N(&f->kernels->arena, sw_id, op->n_results + 1);
	for (uint32_t r = 0; r < op->n_results; r++)
		results[r] = op->first_result + r;
	kernel.ops = sw_arena_copy(&f->kernels->arena, &id, sizeof(id));
	kernel.results = results;
	kernel.n_results = op->n_results;
	f->kernels->owner[id] = (uint32_t)f->kernels->list.len;
	sw_vec_push(&f->kernels->list, kernel);
}

/* ---- their order ------------------------------------------------------------------------- */

/* The op that stands for the item: the last op that a fused node owns, else the op itself. */
static sw_id item_of(const lister *l, sw_id id)
{
	uint32_t node = l->f->node[id];
	if (!is_fused(l, node))
		return id;
	const sw_fuse_node *n = &l->f->nodes.data[node];
	for (size_t i = 0; i < n->members.len; i++)
		if (l->f->node[n->members.data[i]] == node)
			return n->members.data[i];
	return id;
}

enum { NOT_BEGUN, BEGUN, DONE };

/* Push the items that must come before `id`'s. Return false if one of them waits for it. */
static bool push_before(lister *l, sw_id id, bool *any)
{
	const sw_program *program = l->f->program;
	uint32_t node = l->f->node[id];
	bool fused = is_fused(l, node), fine = true;
	if (fused)
		gather(l, node);
	size_t n = fused ? l->ops.len : 1;
	for (size_t i = 0; i < n && fine; i++) {
		sw_id member = fused ? l->ops.data[i] : id;
		const sw_op *op = sw_op_at(program, member);
		for (uint32_t k = 0; k < op->n_operands && fine; k++) {
			sw_id from = program->values.data[op->operands[k]].op;
			if (fused && l->seen[from] == l->gathered)
				continue;
			sw_id item = item_of(l, from);
			fine = l->state[item] != BEGUN;
			if (l->state[item] == NOT_BEGUN) {
				sw_vec_push(&l->stack, item);
				*any = true;
			}
		}
	}
	return fine;
}

/* Add an item to the order, behind all that it reads. Return false for a circle. */
static bool place(lister *l, sw_id id, sw_kernel_order *order)
{
	l->stack.len = 0;
	sw_vec_push(&l->stack, item_of(l, id));
	while (l->stack.len > 0) {
		sw_id item = l->stack.data[l->stack.len - 1];
		bool any = false;
		if (l->state[item] == NOT_BEGUN) {
			l->state[item] = BEGUN;
			if (!push_before(l, item, &any))
				return false;
			if (any)
				continue;
		}
		l->stack.len--;
		if (l->state[item] == BEGUN)
			sw_vec_push(order, item);
		l->state[item] = DONE;
	}
	return true;
}

/* Free ops stand where they are first read, or not at all. */
static bool order_computation(lister *l, int32_t c)
{
	const sw_computation *computation = &l->f->program->computations.data[c];
	sw_kernel_order *order = &l->f->kernels->order[c];
	bool fine = true;
	order->len = 0;
	for (size_t i = 0; i < computation->ops.len; i++)
		l->state[computation->ops.data[i]] = NOT_BEGUN;
	for (size_t i = 0; i < computation->ops.len && fine; i++) {
		sw_id id = computation->ops.data[i];
		if (!is_free(l, id) && item_of(l, id) == id)
			fine = place(l, id, order);
	}
	for (size_t i = 0; i < computation->results.len && fine; i++)
		fine = place(l, l->f->program->values.data[computation->results.data[i]].op, order);
	return fine;
}

/* Dissolve the fused nodes that were begun and not ended: the circle is among them. */
static void dissolve(lister *l, int32_t c)
{
	const sw_computation *computation = &l->f->program->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		if (l->state[id] == BEGUN && is_fused(l, l->f->node[id]))
			l->dissolved[l->f->node[id]] = true;
	}
}

/* A member that was only copied belongs to no other node once all of its nodes are dissolved; each
 * member is then an item of its own. */
static void list_computation(lister *l, int32_t c)
{
	sw_fuser *f = l->f;
	const sw_computation *computation = &f->program->computations.data[c];
	while (!order_computation(l, c))
		dissolve(l, c);
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, computation->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++)
			f->kernels->stored[op->first_result + r] =
				is_stored(l, op->first_result + r);
	}
	for (size_t i = 0; i < f->kernels->order[c].len; i++) {
		sw_id id = f->kernels->order[c].data[i];
		uint32_t node = f->node[id];
		if (is_fused(l, node))
			add_kernel(l, node);
		else if (node != SW_NO_ID && is_kernel(l, node))
			add_single(l, id);
	}
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		if (is_fused(l, f->node[id]))
			f->kernels->owner[id] = l->kernel[f->node[id]];
	}
}

void sw_fuse_list_kernels(sw_fuser *f, const bool *planned)
{
	sw_kernels *k = f->kernels;
	size_t n_ops = f->program->ops.len;
	sw_arena scratch;
	sw_arena_init(&scratch);
	lister l = {.f = f,
	            .kernel = SW_NEW_N(&scratch, uint32_t, f->nodes.len + 1),
	            .seen = SW_NEW_N(&scratch, uint32_t, n_ops + 1),
	            .state = SW_NEW_N(&scratch, uint8_t, n_ops + 1),
	            .dissolved = SW_NEW_N(&scratch, bool, f->nodes.len + 1)};
	k->owner = SW_NEW_N(&k->arena, uint32_t, n_ops + 1);
	k->stored = SW_NEW_N(&k->arena, bool, f->program->values.len + 1);
	k->order = SW_NEW_N(&k->arena, sw_kernel_order, f->program->computations.len + 1);
	memset(k->owner, 0xff, sizeof(*k->owner) * n_ops);
	for (int32_t c = 0; c < (int32_t)f->program->computations.len; c++)
		if (planned[c])
			list_computation(&l, c);
	sw_vec_clear(&l.ops);
	sw_vec_clear(&l.stack);
	sw_arena_clear(&scratch);
}
