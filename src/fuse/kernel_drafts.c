/* Drafts become kernels: who owns what was borrowed, and in which order kernels can run. */
#include "fuse/kernel_drafts.h"

#include <string.h>

/* What is known of an op of the computation. */
typedef struct draft_claim {
	uint32_t owner;    /* draft; SW_NO_ID */
	uint32_t borrower; /* the first draft that borrowed it; SW_NO_ID */
	bool read;         /* a draft that doesn't have it reads it */
} draft_claim;

typedef struct finisher {
	sw_kernel_drafts *d;
	const sw_program *program;
	draft_claim *claims; /* by op - first_op */
	uint32_t *stamp;     /* by op - first_op: the draft last looked at that has the op, + 1 */
	bool *dropped;       /* per draft */
	/* the drafts that read a value from outside: readers[start[v] .. start[v + 1]) */
	uint32_t *start, *readers;
	uint32_t *waits; /* per node (ops, then drafts): operands that are not computed yet */
} finisher;

/* ---- the list --------------------------------------------------------------------------- */

void sw_kernel_drafts_init(sw_kernel_drafts *d, sw_fuser *f, int32_t computation)
{
	const sw_computation *c = &f->program->computations.data[computation];
	sw_id last_op = 0, last_value = 0;
	memset(d, 0, sizeof(*d));
	d->f = f;
	d->computation = computation;
	d->first_op = d->first_value = SW_NO_ID;
	sw_arena_init(&d->arena);
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, c->ops.data[i]);
		d->first_op = SW_MIN(d->first_op, c->ops.data[i]);
		last_op = SW_MAX(last_op, c->ops.data[i]);
		d->first_value = SW_MIN(d->first_value, op->first_result);
		last_value = SW_MAX(last_value, op->first_result + op->n_results);
	}
	d->n_ops = c->ops.len ? last_op + 1 - d->first_op : 0;
	d->n_values = c->ops.len ? last_value - d->first_value : 0;
}

void sw_kernel_drafts_clear(sw_kernel_drafts *d)
{
	sw_vec_clear(&d->list);
	sw_arena_clear(&d->arena);
}

void sw_kernel_drafts_add(sw_kernel_drafts *d, sw_kernel_draft draft)
{
	draft.ops = sw_arena_copy(&d->arena, draft.ops, sizeof(*draft.ops) * draft.n);
	sw_vec_push(&d->list, draft);
}

/* ---- reads from outside ----------------------------------------------------------------- */

static draft_claim *claim_of(const finisher *x, sw_id op)
{
	return &x->claims[op - x->d->first_op];
}

static sw_id op_of(const finisher *x, sw_id value)
{
	return x->program->values.data[value].op;
}

typedef void visit_read(finisher *x, uint32_t draft, sw_id value);

/* Visit each operand of the draft's ops that the draft doesn't compute. */
static void visit_reads(finisher *x, uint32_t draft, visit_read *visit)
{
	const sw_kernel_draft *k = &x->d->list.data[draft];
	for (uint32_t i = 0; i < k->n; i++)
		x->stamp[k->ops[i].op - x->d->first_op] = draft + 1;
	for (uint32_t i = 0; i < k->n; i++) {
		const sw_op *op = sw_op_at(x->program, k->ops[i].op);
		for (uint32_t o = 0; o < op->n_operands; o++)
			if (x->stamp[op_of(x, op->operands[o]) - x->d->first_op] != draft + 1)
				visit(x, draft, op->operands[o]);
	}
}

static void visit_all_reads(finisher *x, visit_read *visit)
{
	memset(x->stamp, 0, sizeof(*x->stamp) * x->d->n_ops);
	for (uint32_t k = 0; k < x->d->list.len; k++)
		if (!x->dropped[k])
			visit_reads(x, k, visit);
}

static void mark_read(finisher *x, uint32_t draft, sw_id value)
{
	(void)draft;
	claim_of(x, op_of(x, value))->read = true;
}

static void count_reader(finisher *x, uint32_t draft, sw_id value)
{
	x->start[value - x->d->first_value + 1]++;
	x->waits[x->d->n_ops + draft]++;
}

static void place_reader(finisher *x, uint32_t draft, sw_id value)
{
	x->readers[--x->start[value - x->d->first_value + 1]] = draft;
}

/* List the readers of each value, and count what each draft waits for. */
static void list_readers(finisher *x)
{
	uint32_t n = x->d->n_values;
	memset(x->start, 0, sizeof(*x->start) * (n + 2));
	visit_all_reads(x, count_reader);
	for (uint32_t v = 0; v <= n; v++)
		x->start[v + 1] += x->start[v];
	x->readers = SW_NEW_N(&x->d->arena, uint32_t, x->start[n + 1]);
	visit_all_reads(x, place_reader);
}

/* ---- who owns what ---------------------------------------------------------------------- */

static void claim_parts(finisher *x)
{
	for (uint32_t i = 0; i < x->d->n_ops; i++)
		x->claims[i] = (draft_claim){SW_NO_ID, SW_NO_ID, false};
	for (uint32_t k = 0; k < x->d->list.len; k++) {
		const sw_kernel_draft *draft = &x->d->list.data[k];
		for (uint32_t i = 0; i < draft->n && !x->dropped[k]; i++) {
			draft_claim *claim = claim_of(x, draft->ops[i].op);
			if (draft->ops[i].part == SW_DRAFT_OWNED)
				claim->owner = k;
			else if (draft->ops[i].part == SW_DRAFT_BORROWED &&
			         claim->borrower == SW_NO_ID)
				claim->borrower = k;
		}
	}
}

static bool all_users_claimed(const finisher *x, const sw_op *op)
{
	const sw_users *users = &x->d->f->users;
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		if (x->d->f->returned[value])
			return false;
		for (uint32_t u = users->start[value]; u < users->start[value + 1]; u++)
			if (claim_of(x, users->ops[u])->owner == SW_NO_ID)
				return false;
	}
	return true;
}

/* What only drafts read, each of which borrowed it, belongs to the first of them. */
static void absorb(finisher *x)
{
	const sw_computation *c = &x->program->computations.data[x->d->computation];
	claim_parts(x);
	visit_all_reads(x, mark_read);
	for (size_t i = c->ops.len; i-- > 0;) {
		draft_claim *claim = claim_of(x, c->ops.data[i]);
		if (claim->owner == SW_NO_ID && claim->borrower != SW_NO_ID && !claim->read &&
		    all_users_claimed(x, sw_op_at(x->program, c->ops.data[i])))
			claim->owner = claim->borrower;
	}
}

/* ---- order ------------------------------------------------------------------------------ */

typedef struct ready_list {
	SW_VEC(uint32_t) nodes; /* op - first_op, or n_ops + draft */
} ready_list;

static void become_ready(finisher *x, ready_list *ready, uint32_t node)
{
	if (--x->waits[node] == 0)
		sw_vec_push(&ready->nodes, node);
}

static void finish_op(finisher *x, ready_list *ready, sw_id id)
{
	const sw_op *op = sw_op_at(x->program, id);
	const sw_users *users = &x->d->f->users;
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		uint32_t at = value - x->d->first_value + 1;
		for (uint32_t u = users->start[value]; u < users->start[value + 1]; u++)
			if (claim_of(x, users->ops[u])->owner == SW_NO_ID)
				become_ready(x, ready, users->ops[u] - x->d->first_op);
		for (uint32_t k = x->start[at]; k < x->start[at + 1]; k++)
			become_ready(x, ready, x->d->n_ops + x->readers[k]);
	}
}

static void finish_node(finisher *x, ready_list *ready, uint32_t node)
{
	if (node < x->d->n_ops) {
		finish_op(x, ready, x->d->first_op + node);
		return;
	}
	const sw_kernel_draft *draft = &x->d->list.data[node - x->d->n_ops];
	for (uint32_t i = 0; i < draft->n; i++)
		if (claim_of(x, draft->ops[i].op)->owner == node - x->d->n_ops)
			finish_op(x, ready, draft->ops[i].op);
}

/* Count what each node waits for; each waits for one thing more, so that all are started alike. */
static void start_nodes(finisher *x, ready_list *ready)
{
	const sw_computation *c = &x->program->computations.data[x->d->computation];
	uint32_t n = (uint32_t)x->d->list.len;
	memset(x->waits, 0, sizeof(*x->waits) * (x->d->n_ops + n));
	list_readers(x);
	for (size_t i = 0; i < c->ops.len; i++)
		if (claim_of(x, c->ops.data[i])->owner == SW_NO_ID)
			x->waits[c->ops.data[i] - x->d->first_op] =
				sw_op_at(x->program, c->ops.data[i])->n_operands + 1;
	for (uint32_t k = 0; k < n; k++)
		x->waits[x->d->n_ops + k] += !x->dropped[k];
	for (size_t i = 0; i < c->ops.len; i++)
		if (claim_of(x, c->ops.data[i])->owner == SW_NO_ID)
			become_ready(x, ready, c->ops.data[i] - x->d->first_op);
	for (uint32_t k = 0; k < n; k++)
		if (!x->dropped[k])
			become_ready(x, ready, x->d->n_ops + k);
}

/* Return the first draft that never becomes ready, as it waits for what it computes itself;
 * SW_NO_ID if all do. */
static uint32_t find_stuck(finisher *x)
{
	ready_list ready = {0};
	start_nodes(x, &ready);
	while (ready.nodes.len)
		finish_node(x, &ready, ready.nodes.data[--ready.nodes.len]);
	sw_vec_clear(&ready.nodes);
	for (uint32_t k = 0; k < x->d->list.len; k++)
		if (!x->dropped[k] && x->waits[x->d->n_ops + k] > 0)
			return k;
	return SW_NO_ID;
}

static void drop_group(finisher *x, uint32_t stuck, const char *why)
{
	const sw_kernel_draft *draft = &x->d->list.data[stuck];
	if (why)
		sw_vec_push(&x->d->f->kernels->notes, ((sw_fuse_note){draft->about, why}));
	for (uint32_t k = 0; k < x->d->list.len; k++)
		x->dropped[k] |= x->d->list.data[k].group == draft->group;
}

/* ---- kernels ---------------------------------------------------------------------------- */

static void add_kernel(finisher *x, uint32_t k)
{
	const sw_kernel_draft *draft = &x->d->list.data[k];
	sw_id *ops = SW_NEW_N(&x->d->arena, sw_id, draft->n);
	sw_id *owned = SW_NEW_N(&x->d->arena, sw_id, draft->n);
	uint32_t n_owned = 0;
	for (uint32_t i = 0; i < draft->n; i++) {
		ops[i] = draft->ops[i].op;
		if (claim_of(x, ops[i])->owner == k)
			owned[n_owned++] = ops[i];
	}
	sw_fuse_add(x->d->f, draft->kind, x->d->computation, ops, draft->n, owned, n_owned);
}

void sw_kernel_drafts_finish(sw_kernel_drafts *d, const char *why)
{
	finisher x = {.d = d, .program = d->f->program};
	if (d->list.len == 0)
		return;
	x.claims = SW_NEW_N(&d->arena, draft_claim, d->n_ops);
	x.stamp = SW_NEW_N(&d->arena, uint32_t, d->n_ops);
	x.dropped = SW_NEW_N(&d->arena, bool, d->list.len);
	x.start = SW_NEW_N(&d->arena, uint32_t, d->n_values + 2);
	x.waits = SW_NEW_N(&d->arena, uint32_t, d->n_ops + d->list.len);
	absorb(&x);
	for (uint32_t stuck; (stuck = find_stuck(&x)) != SW_NO_ID;) {
		drop_group(&x, stuck, why);
		absorb(&x);
	}
	for (uint32_t k = 0; k < d->list.len; k++)
		if (!x.dropped[k])
			add_kernel(&x, k);
}
