/*
 * Links: values beside the ends that kernels without products must write, whatever the plan.
 *
 * A kernel is convex: were an op of it computed from another of it by way of a product that is none
 * of it, it would wait for itself. So what follows from an op by ops that are no products, and by no
 * way through one, is all that may be in its kernel behind it: what is WITHIN REACH.
 *
 * An op of two or more arrays that a product reads is stored, since no product takes it in
 * (is_prologue of kernel_search.c). No product is in the kernel that writes it if none can be in a
 * kernel that ends with the op, or with any op within reach through ops which keep elements in their
 * order, since that kernel is an epilogue only as long as all of it does (keeps_order). Such an op is a
 * LINK. Its kernel writes it, and reads what it is computed from. If an end is within reach, the kernel
 * may be that of the end, whose reads are counted; of several ends it is that of one.
 *
 * What the computation returns is stored, too. If all within reach of such an op leads to one end, its
 * kernel is no other end's, and no link's without that end within reach: all that is returned on the
 * way to an end, and it, are one group, whose kernels write all of it and read what all of it is
 * computed from (as an optimizer's moments and parameter). Its bytes are the end's.
 */
#include "fuse/kernel_ends.h"

#include <math.h>

#define MAX_REACH 32768 /* ops from the first to the last that are looked at for one op */
#define MAX_GROUP 8
#define MAX_RETURNED_WAY 64 /* ops behind an end that are looked at for what is returned */

enum { NEAR = 1, BEYOND = 2, IN_ORDER = 4, LEADS_ON = 8 };

typedef struct linker {
	end_finder *f;
	const sw_computation *computation;
	const sw_fuse_least *least;
	int32_t *at;      /* per op: its place in the computation */
	int32_t *last;    /* per op: the place of its last reader that is no product */
	uint8_t *reached; /* per op, of the op at hand: NEAR: within reach; BEYOND: by way of a product;
	                   * IN_ORDER: by ops that keep elements in order; LEADS_ON: to others near */
	SW_VEC(sw_id) list; /* the ops with a mark in `reached`, the op at hand first */
	sw_id *end;     /* per op: the end + 1 whose group has the op within reach, or which it is */
	bool *grouped;  /* per op: its bytes are the end's */
	double *read;   /* per op that is an end: what its group reads */
	int32_t *alike; /* per class of twins: ops in it */
} linker;

static bool is_border(const linker *l, sw_id id)
{
	return (is_product(l->f, id) && stays_product(l->f, id)) ||
	       sw_fuse_role_of(l->f->program, id) == SW_FUSE_BORDER;
}

static void place_ops(linker *l)
{
	const sw_program *program = l->f->program;
	for (size_t i = 0; i < l->computation->ops.len; i++) {
		sw_id id = l->computation->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		l->at[id] = l->last[id] = (int32_t)i;
		for (uint32_t k = 0; k < op->n_operands && !is_border(l, id); k++)
			l->last[program->values.data[op->operands[k]].op] = (int32_t)i;
	}
}

/* ---- what is within reach ---------------------------------------------------------------- */

static void mark(linker *l, sw_id id, uint8_t marks)
{
	if (!l->reached[id])
		sw_vec_push(&l->list, id);
	l->reached[id] |= marks;
}

static void forget_reach(linker *l)
{
	for (size_t i = 0; i < l->list.len; i++)
		l->reached[l->list.data[i]] = 0;
	l->list.len = 0;
}

/* Mark an op by what its operands are marked with; return whether it is near. */
static bool reach_op(linker *l, sw_id id)
{
	const sw_op *op = op_of(l->f, id);
	uint8_t marks = 0;
	for (uint32_t k = 0; k < op->n_operands; k++)
		marks |= l->reached[l->f->program->values.data[op->operands[k]].op];
	if (!marks)
		return false;
	if ((marks & BEYOND) || is_border(l, id)) {
		mark(l, id, BEYOND);
		return false;
	}
	mark(l, id, NEAR);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id from = l->f->program->values.data[op->operands[k]].op;
		l->reached[from] |= l->reached[from] ? LEADS_ON : 0;
	}
	return true;
}

/* Mark what is within reach of an op, up to the last reader of what is. Return false if that is too
 * far. */
static bool reach(linker *l, sw_id from)
{
	int32_t until = l->last[from];
	mark(l, from, NEAR);
	for (int32_t i = l->at[from] + 1; i <= until; i++) {
		sw_id id = l->computation->ops.data[i];
		if (reach_op(l, id))
			until = SW_MAX(until, l->last[id]);
		if (i - l->at[from] > MAX_REACH)
			return false;
	}
	return true;
}

static bool is_near(const linker *l, sw_id id)
{
	return (l->reached[id] & NEAR) && !(l->reached[id] & BEYOND);
}

/* ---- no product in the kernel ------------------------------------------------------------ */

/* Return whether the op reads something that keeps the order of the op at hand. */
static bool reads_in_order(const linker *l, sw_id id)
{
	const sw_op *op = op_of(l->f, id);
	bool reads = false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		reads |= l->reached[l->f->program->values.data[op->operands[k]].op] & IN_ORDER;
	return reads;
}

/* Return whether a kernel that ends with the op, which reads the op at hand in order, may be an
 * epilogue with it. Sets whether it keeps the order itself. */
static bool may_end_epilogue(linker *l, sw_id id, bool *in_order)
{
	const end_finder *f = l->f;
	const sw_op *op = op_of(f, id);
	sw_fuse_role role = sw_fuse_role_of(f->program, id);
	*in_order = role == SW_FUSE_FREE || sw_fuse_keeps_elements(f->program, op);
	if (role == SW_FUSE_REDUCE)
		return !stays_reduction(f, id);
	if (op->opcode == SW_OP_BROADCAST)
		return may_repeat_nothing(f, id);
	if (is_product(f, id)) /* which may be a multiply */
		return true;
	return role != SW_FUSE_FREE && *in_order && !is_no_epilogue(l->f, id);
}

/* Return whether no product is in the kernel that writes the op at hand, the first of the list. */
static bool is_apart(linker *l)
{
	sw_id first = l->list.data[0];
	bool in_order = false;
	if (!sw_fuse_keeps_elements(l->f->program, op_of(l->f, first)))
		return true;
	if (!is_no_epilogue(l->f, first))
		return false;
	l->reached[first] |= IN_ORDER;
	for (size_t i = 1; i < l->list.len; i++) {
		sw_id id = l->list.data[i];
		if (!is_near(l, id) || !reads_in_order(l, id))
			continue;
		if (may_end_epilogue(l, id, &in_order))
			return false;
		l->reached[id] |= in_order ? IN_ORDER : 0;
	}
	return true;
}

/* ---- groups ------------------------------------------------------------------------------ */

/* Two operands at least, of which no product takes the result; no other op becomes equal to it. */
static bool may_be_stored(const linker *l, sw_id id)
{
	const end_finder *f = l->f;
	const sw_op *op = op_of(f, id);
	return op->n_results == 1 && op->n_operands >= 2 && is_float(f, op->first_result) &&
	       (sw_fuse_is_elementwise(op) || op->opcode == SW_OP_CONCATENATE) &&
	       !f->of_scores[id] && !f->cheap[id] && elements_of(f, op->first_result) > 1 &&
	       l->alike[f->parts->twins[id]] == 1 && isnan(l->least->end_bytes[id]);
}

/* Return whether all that is within reach of the op at hand leads to the end, and is in no other
 * group. */
static bool leads_to(const linker *l, sw_id end)
{
	bool leads = is_near(l, end);
	for (size_t i = 0; i < l->list.len && leads; i++) {
		sw_id id = l->list.data[i];
		if (is_near(l, id))
			leads = (id == end || (l->reached[id] & LEADS_ON)) &&
				(!l->end[id] || l->end[id] == end + 1);
	}
	return leads;
}

/* Return whether the op belongs to the group of the end; then all within its reach does. */
static bool joins(linker *l, sw_id id, sw_id end)
{
	bool does = l->f->returned[op_of(l->f, id)->first_result] && may_be_stored(l, id) &&
		    reach(l, id) && leads_to(l, end) && is_apart(l);
	for (size_t i = 0; i < l->list.len && does; i++)
		if (is_near(l, l->list.data[i]))
			l->end[l->list.data[i]] = end + 1;
	forget_reach(l);
	return does;
}

/* Count the group of an end: it, and what is returned on the ways to it. */
static void count_group(linker *l, sw_id end)
{
	const end_finder *f = l->f;
	sw_id way[MAX_RETURNED_WAY] = {end}, group[MAX_GROUP] = {end};
	int32_t n_way = 1, n = 1;
	double bytes = bytes_of(f, op_of(f, end)->first_result);
	for (int32_t i = 0; i < n_way; i++) {
		const sw_op *op = op_of(f, way[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = f->program->values.data[op->operands[k]].op;
			bool known = !sw_fuse_is_elementwise(op_of(f, from)) ||
				     n_way == MAX_RETURNED_WAY;
			for (int32_t j = 0; j < n_way && !known; j++)
				known = way[j] == from;
			if (known)
				continue;
			way[n_way++] = from;
			if (n < MAX_GROUP && joins(l, from, end)) {
				group[n++] = from;
				l->grouped[from] = true;
				bytes += bytes_of(f, op_of(f, from)->first_result);
			}
		}
	}
	l->read[end] = least_read(f, group, n);
	l->least->end_bytes[end] = bytes + l->read[end];
}

/* ---- links ------------------------------------------------------------------------------- */

/* Return whether a product that has a kernel of its own reads the value. */
static bool is_read_by_product(const linker *l, sw_id value)
{
	const end_finder *f = l->f;
	bool is_read = false;
	for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1] && !is_read; u++) {
		sw_id user = f->users.ops[u];
		if (sw_fuse_role_of(f->program, user) == SW_FUSE_FREE)
			is_read = is_read_by_product(l, op_of(f, user)->first_result);
		else
			is_read = is_product(f, user) && stays_product(f, user) &&
				  !f->shares_kernel[user];
	}
	return is_read;
}

/* Count the op at hand, a link: what its kernel reads more than one of an end within reach. */
static void count_link(linker *l)
{
	sw_id link = l->list.data[0];
	double counted = 0;
	bool alone = true;
	for (size_t i = 0; i < l->list.len; i++) {
		sw_id id = l->list.data[i];
		if (!is_near(l, id) || !l->end[id])
			continue;
		counted = fmax(counted, l->read[l->end[id] - 1]);
		alone = false;
	}
	l->least->link_bytes[link] = bytes_of(l->f, op_of(l->f, link)->first_result) +
				     fmax(least_read(l->f, &link, 1) - counted, 0);
	l->least->launches[link] = alone;
}

void find_links(end_finder *f, const sw_computation *computation, const sw_fuse_least *least)
{
	size_t n = f->program->ops.len + 1;
	sw_arena arena;
	sw_arena_init(&arena);
	linker l = {.f = f,
	            .computation = computation,
	            .least = least,
	            .at = SW_NEW_N(&arena, int32_t, n),
	            .last = SW_NEW_N(&arena, int32_t, n),
	            .reached = SW_NEW_N(&arena, uint8_t, n),
	            .end = SW_NEW_N(&arena, sw_id, n),
	            .grouped = SW_NEW_N(&arena, bool, n),
	            .read = SW_NEW_N(&arena, double, n),
	            .alike = SW_NEW_N(&arena, int32_t, n)};
	place_ops(&l);
	for (sw_id id = 0; id + 1 < n; id++)
		l.alike[f->parts->twins[id]]++;
	for (size_t i = 0; i < computation->ops.len; i++)
		if (!isnan(least->end_bytes[computation->ops.data[i]]))
			l.end[computation->ops.data[i]] = computation->ops.data[i] + 1;
	for (size_t i = 0; i < computation->ops.len; i++)
		if (!isnan(least->end_bytes[computation->ops.data[i]]))
			count_group(&l, computation->ops.data[i]);
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		if (may_be_stored(&l, id) && !l.grouped[id] &&
		    is_read_by_product(&l, op_of(f, id)->first_result) && reach(&l, id) &&
		    is_apart(&l))
			count_link(&l);
		forget_reach(&l);
	}
	sw_vec_clear(&l.list);
	sw_arena_clear(&arena);
}
