/*
 * Which ops end a kernel, whatever the plan.
 *
 * A kernel grows from one op, its END, towards its operands (kernel_search.c): all that it holds
 * leads to that op within the kernel, so that no two ops end the same one. An op of the program of
 * all devices ends a kernel in the program of each device, or what moves its result does, if
 *
 *   - it is a reduction that no kernel takes in, however it is divided: not one of rows, or of rows
 *     that are longer than a kernel holds;
 *   - or it is elementwise, and only products, loops and the computation's results read it. What
 *     stands before a product in its kernel is transposed, repeated or made wider, no more.
 *
 * A product may be in the kernel that an elementwise op ends, its EPILOGUE. Then the kernel is the
 * product's, and the op is not counted. That is excluded where
 *
 *   - the ops from the product to the end read more arrays than an epilogue may, which is counted
 *     along the way that reads fewest: inputs and other products' results, for other arrays may be
 *     made in the kernel;
 *   - or a sum of what the product computes returns to an op of the way, for each row, as in a layer
 *     norm, or as a single number, as the norm of all gradients: no kernel holds both, for it would
 *     wait for the kernel of the sum, which waits for it.
 *
 * What follows from the scores of attention or of a loss may be in their kernels, and is left out.
 *
 * Such a kernel writes its end, and reads at least as much as the cheapest cut between the end and
 * inputs, products and results of loops: what it does not read at such a place it must read before.
 */
#include "fuse/kernel_ends.h"
#include "rewrite/rewrite.h"

#include <math.h>
#include <string.h>

#define MAX_PRODUCTS 16 /* that are looked at behind one end */
#define MAX_BARRED 24   /* ops from a sum back that are barred */

/* ---- what follows from scores ------------------------------------------------------------ */

/* Regions of scores end at single numbers (score_regions.c). */
static void mark_scores(end_finder *f, const sw_computation *c)
{
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i];
		const sw_op *op = op_of(f, id);
		f->of_scores[id] = f->scores[id];
		for (uint32_t k = 0; k < op->n_operands && !is_product(f, id); k++)
			f->of_scores[id] |=
				elements_of(f, op->operands[k]) > 1 &&
				f->of_scores[f->program->values.data[op->operands[k]].op];
	}
}

/* ---- parts ------------------------------------------------------------------------------- */

/* Return into how many parts these dimensions of an op's first operand may be cut together. */
static double parts_of(const end_finder *f, sw_id id, sw_ints dims)
{
	int64_t stride;
	bool in_time = sw_ints_has(dims, sw_rule_dim_with(f->parts->rules[id], false, 0,
	                                                  f->parts->split[id], &stride));
	return (double)f->parts->devices * (in_time ? (double)f->parts->microbatches : 1);
}

/* Return whether each part keeps more than `left` elements of these dimensions. */
static bool keeps(const end_finder *f, sw_id id, sw_ints dims, double left)
{
	sw_shape x = sw_value_shape(f->program, op_of(f, id)->operands[0]);
	double elements = 1;
	for (int32_t i = 0; i < dims.n; i++)
		elements *= (double)x.dims[dims.v[i]];
	return elements > left * parts_of(f, id, dims);
}

/* ---- reductions -------------------------------------------------------------------------- */

typedef struct some_dims {
	int32_t n;
	int64_t v[SW_MAX_RANK];
} some_dims;

static bool keeps_some(const end_finder *f, sw_id id, const some_dims *dims, double left)
{
	return keeps(f, id, (sw_ints){.n = dims->n, .v = dims->v}, left);
}

/* Add the dimensions in [from, to) that are reduced, or those that are not. */
static some_dims list_dims(sw_ints reduced, int32_t from, int32_t to, bool are_reduced)
{
	some_dims list = {0};
	for (int32_t d = from; d < to; d++)
		if (sw_ints_has(reduced, d) == are_reduced)
			list.v[list.n++] = d;
	return list;
}

/* Return whether the reduction goes through no rows that a kernel takes: behind a dimension that is
 * reduced there is one that stays, or rows are too long. */
static bool reduces_alone(const end_finder *f, sw_id id)
{
	const sw_op *op = op_of(f, id);
	int32_t rank = sw_value_shape(f->program, op->operands[0]).rank;
	sw_ints reduced = op->attrs->dims.dims;
	bool alone = !f->rules->reduces;
	for (int32_t cut = 1; cut < rank && !alone; cut++) {
		some_dims outer = list_dims(reduced, 0, cut, true),
			  inner = list_dims(reduced, cut, rank, false);
		alone = keeps_some(f, id, &outer, 1) && keeps_some(f, id, &inner, 1);
	}
	int32_t first = rank;
	while (first > 0 && sw_ints_has(reduced, first - 1))
		first--;
	some_dims row = list_dims(reduced, first, rank, true);
	return alone || keeps_some(f, id, &row, (double)f->rules->max_row);
}

bool stays_reduction(const end_finder *f, sw_id id)
{
	return keeps(f, id, op_of(f, id)->attrs->dims.dims, 1);
}

/* ---- who reads the end ------------------------------------------------------------------- */

/* A product that contracts few elements may become a multiply, which takes others in. */
bool stays_product(const end_finder *f, sw_id id)
{
	const sw_op *op = op_of(f, id);
	if (op->opcode == SW_OP_CONVOLUTION)
		return true;
	return keeps(f, id, op->attrs->dot.lhs_contracting, 1);
}

/* Return whether no reader takes the value in. *n: its readers, and results. */
static bool is_read_apart(const end_finder *f, sw_id value, int32_t *n)
{
	*n += f->returned[value];
	for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++) {
		sw_id user = f->users.ops[u];
		const sw_op *op = op_of(f, user);
		if (op->opcode == SW_OP_WHILE)
			++*n;
		else if (is_product(f, user) && !f->shares_kernel[user] && stays_product(f, user))
			++*n;
		else if (sw_fuse_role_of(f->program, user) != SW_FUSE_FREE ||
		         !is_read_apart(f, op->first_result, n))
			return false;
	}
	return true;
}

/* ---- epilogues --------------------------------------------------------------------------- */

/* Return the elementwise op of as many elements that gives the operand; SW_NO_ID: it is another. */
static sw_id behind(const end_finder *f, sw_id operand, int64_t elements)
{
	sw_id from = sw_fuse_source(f->program, operand);
	bool same = sw_fuse_keeps_elements(f->program, op_of(f, from)) &&
		    elements_of(f, operand) == elements;
	return same ? from : SW_NO_ID;
}

/* Return whether the product is in no kernel with the end at hand, which waits for another kernel that
 * waits for it. (Other ops may be there as copies.) */
static bool is_barred(const end_finder *f, sw_id id)
{
	return f->barred[id] == f->end + 1 || (f->before[id] & f->numbers);
}

/* Bar the value, and what leads to it element by element, as many ops back as `depth`. */
static void bar(end_finder *f, sw_id value, int32_t depth)
{
	sw_id from = sw_fuse_source(f->program, value);
	const sw_op *op = op_of(f, from);
	if (depth == 0 || f->barred[from] == f->end + 1)
		return;
	f->barred[from] = f->end + 1;
	for (uint32_t k = 0; k < op->n_operands && sw_fuse_keeps_elements(f->program, op); k++)
		bar(f, op->operands[k], depth - 1);
}

/* Bar what is reduced to the numbers of each row that a broadcast repeats. */
static void bar_reduced(end_finder *f, sw_id value, int32_t depth)
{
	sw_id from = sw_fuse_source(f->program, value);
	const sw_op *op = op_of(f, from);
	if (depth == 0)
		return;
	if (sw_fuse_role_of(f->program, from) == SW_FUSE_REDUCE) {
		if (stays_reduction(f, from))
			bar(f, op->operands[0], MAX_BARRED);
		return;
	}
	if (op->opcode != SW_OP_BROADCAST && !sw_fuse_keeps_elements(f->program, op))
		return;
	for (uint32_t k = 0; k < op->n_operands; k++)
		bar_reduced(f, op->operands[k], depth - 1);
}

/* Return whether no kernel holds both a product and this op: it is a kernel of its own, or of rows. */
static bool parts_kernels(const end_finder *f, sw_id id)
{
	switch (sw_fuse_role_of(f->program, id)) {
	case SW_FUSE_BORDER:
	case SW_FUSE_ALONE:
		return true;
	case SW_FUSE_REDUCE:
		return stays_reduction(f, id);
	case SW_FUSE_DOT:
		return stays_product(f, id);
	default:
		return false;
	}
}

/* Set the bit of a single number for all ops that lead to it by way of one that parts kernels. */
static void find_before(end_finder *f, sw_id number, uint64_t bit)
{
	SW_VEC(sw_id) left = {0};
	sw_vec_push(&left, number);
	f->passed[number] |= bit;
	while (left.len > 0) {
		sw_id id = left.data[--left.len];
		const sw_op *op = op_of(f, id);
		bool before = (f->before[id] & bit) || parts_kernels(f, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = f->program->values.data[op->operands[k]].op;
			uint64_t *marks = before ? f->before : f->passed;
			if (!((marks[from] | f->before[from]) & bit))
				sw_vec_push(&left, from);
			marks[from] |= bit;
		}
	}
	sw_vec_clear(&left);
}

/* The end needs this single number, so that all before it is barred. Of the first MAX_NUMBERS. */
static void need_number(end_finder *f, sw_id value)
{
	sw_id from = sw_fuse_source(f->program, value);
	int32_t i = 0;
	while (i < f->n_numbers && f->number[i] != from)
		i++;
	if (i == MAX_NUMBERS)
		return;
	uint64_t bit = UINT64_C(1) << i;
	if (i == f->n_numbers) {
		f->number[f->n_numbers++] = from;
		find_before(f, from, bit);
	}
	f->numbers |= bit;
}

/* Add the op to the way, whose ops descend, if there is a place. */
static void add_to_way(end_finder *f, sw_id id)
{
	int32_t at = f->n;
	while (at > 0 && f->way[at - 1] < id)
		at--;
	if ((at > 0 && f->way[at - 1] == id) || f->n == MAX_WAY)
		return;
	memmove(f->way + at + 1, f->way + at, sizeof(*f->way) * (size_t)(f->n - at));
	f->way[at] = id;
	f->n++;
}

/* Bar what the operand of an op of the way needs by way of sums. */
static void bar_behind(end_finder *f, sw_id operand)
{
	const sw_op *op = op_of(f, sw_fuse_source(f->program, operand));
	sw_id repeated = op->opcode == SW_OP_BROADCAST ? op->operands[0] : operand;
	if (elements_of(f, repeated) == 1)
		need_number(f, repeated);
	else if (op->opcode == SW_OP_BROADCAST)
		bar_reduced(f, repeated, 4);
}

/* Find the ops of the end's size that lead to it element by element. */
static void find_way(end_finder *f, sw_id end)
{
	int64_t elements = elements_of(f, op_of(f, end)->first_result);
	f->end = end;
	f->numbers = 0;
	f->way[0] = end;
	f->n = 1;
	for (int32_t i = 0; i < f->n; i++) {
		const sw_op *op = op_of(f, f->way[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = behind(f, op->operands[k], elements);
			bar_behind(f, op->operands[k]);
			if (from != SW_NO_ID)
				add_to_way(f, from);
		}
	}
}

/* Return whether a result of a product may come to the value through ops that keep elements in their
 * order: a broadcast and a reduction do where a part has no more elements after or before them. */
static bool may_be_of_product(const end_finder *f, sw_id value, int32_t depth)
{
	sw_id from = sw_fuse_source(f->program, value);
	const sw_op *op = op_of(f, from);
	if (is_product(f, from))
		return true;
	if (sw_fuse_role_of(f->program, from) == SW_FUSE_REDUCE && stays_reduction(f, from))
		return false;
	bool goes_on = op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_REDUCE ||
		       sw_fuse_keeps_elements(f->program, op);
	bool may = goes_on && depth == 0;
	for (uint32_t k = 0; k < op->n_operands && goes_on && depth > 0; k++)
		may = may || may_be_of_product(f, op->operands[k], depth - 1);
	return may;
}

bool may_repeat_nothing(const end_finder *f, sw_id id)
{
	const sw_op *op = op_of(f, id);
	sw_shape y = sw_value_shape(f->program, op->first_result);
	int64_t stride;
	int32_t in_time = sw_rule_dim_with(f->parts->rules[id], true, 0, f->parts->split[id], &stride);
	double parts = (double)f->parts->devices, repeats = 1;
	for (int32_t d = 0; d < y.rank; d++) {
		if (sw_ints_has(op->attrs->dims.dims, d))
			continue;
		repeats *= (double)y.dims[d];
		parts *= d == in_time ? (double)f->parts->microbatches : 1;
	}
	return repeats <= parts;
}

/* Return whether the op may hold a product in the kernel that reads it, whichever that is. */
static bool may_hold_product(const end_finder *f, sw_id id)
{
	const sw_op *op = op_of(f, id);
	if (is_product(f, id))
		return !stays_product(f, id);
	if (sw_fuse_role_of(f->program, id) == SW_FUSE_REDUCE)
		return !stays_reduction(f, id);
	return op->opcode == SW_OP_BROADCAST && may_repeat_nothing(f, id) &&
	       may_be_of_product(f, op->operands[0], 4);
}

/* What the way from a product to an op reads beside: the fewest arrays. */
typedef struct way_cost {
	double fewest; /* INFINITY: the product does not reach it */
	bool input;    /* an array is read for it that the product's kernel does not compute */
} way_cost;

/* A kernel with the product computes no other product. */
static way_cost cost_of_operand(const end_finder *f, const way_cost *of, sw_id product,
                                sw_id operand, int64_t elements)
{
	sw_id from = sw_fuse_source(f->program, operand);
	const sw_op *op = op_of(f, from);
	bool same = elements_of(f, operand) == elements;
	if (f->place[from] && same)
		return of[f->place[from] - 1];
	bool left_out = same && sw_fuse_keeps_elements(f->program, op);
	if (from == product || may_hold_product(f, from) || left_out)
		return (way_cost){.fewest = 0};
	bool array = same && elements > 1 &&
	             (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_WHILE ||
	              is_product(f, from));
	return (way_cost){.fewest = INFINITY, .input = array};
}

static way_cost cost_of_op(const end_finder *f, const way_cost *of, sw_id product, sw_id id)
{
	const sw_op *op = op_of(f, id);
	int64_t elements = elements_of(f, op->first_result);
	way_cost r = {.fewest = INFINITY};
	for (uint32_t k = 0; k < op->n_operands; k++) {
		way_cost x = cost_of_operand(f, of, product, op->operands[k], elements);
		for (uint32_t j = 0; j < op->n_operands; j++)
			x.fewest += j != k && cost_of_operand(f, of, product, op->operands[j],
			                                      elements)
			                              .input;
		r.fewest = fmin(r.fewest, x.fewest);
		r.input |= x.input;
	}
	return r;
}

/* Return the arrays that the way from a product to the end reads beside it; SW_NO_ID: from one that
 * is hidden behind an op. */
static double fewest_beside(const end_finder *f, sw_id product)
{
	way_cost of[MAX_WAY] = {0};
	for (int32_t i = f->n; i-- > 0;)
		of[i] = cost_of_op(f, of, product, f->way[i]);
	return of[0].fewest;
}

/* List the products that ops of the way read and that are not barred; return how many, or -1: too
 * many. */
static int32_t list_products(const end_finder *f, sw_id products[MAX_PRODUCTS])
{
	int32_t n = 0;
	for (int32_t i = 0; i < f->n; i++) {
		const sw_op *op = op_of(f, f->way[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = sw_fuse_source(f->program, op->operands[k]);
			bool known = !is_product(f, from) || is_barred(f, from);
			for (int32_t p = 0; p < n && !known; p++)
				known = products[p] == from;
			if (!known && n == MAX_PRODUCTS)
				return -1;
			if (!known)
				products[n++] = from;
		}
	}
	return n;
}

static bool find_no_epilogue(end_finder *f, sw_id end)
{
	double limit = SW_MAX(f->rules->dot_epilogue, f->rules->convolution_epilogue);
	sw_id products[MAX_PRODUCTS];
	find_way(f, end);
	for (int32_t i = 0; i < f->n; i++)
		f->place[f->way[i]] = i + 1;
	int32_t n = list_products(f, products);
	bool none = n >= 0 && fewest_beside(f, SW_NO_ID) > limit;
	for (int32_t p = 0; p < n && none; p++)
		none = fewest_beside(f, products[p]) > limit;
	for (int32_t i = 0; i < f->n; i++)
		f->place[f->way[i]] = 0;
	f->n = 0;
	return none;
}

bool is_no_epilogue(end_finder *f, sw_id end)
{
	enum { NOT_ASKED, NO, YES };
	if (f->rules->dot_epilogue < 0 && f->rules->convolution_epilogue < 0)
		return true;
	if (f->apart[end] == NOT_ASKED)
		f->apart[end] = find_no_epilogue(f, end) ? YES : NO;
	return f->apart[end] == YES;
}

/* ---- ends -------------------------------------------------------------------------------- */

static bool may_be_prologue(const end_finder *f, const sw_op *op)
{
	return op->opcode == SW_OP_COPY ||
	       (op->opcode == SW_OP_CONVERT &&
	        bytes_of(f, op->operands[0]) <= bytes_of(f, op->first_result));
}

static bool is_end(end_finder *f, sw_id id)
{
	const sw_op *op = op_of(f, id);
	int32_t n = 0;
	if (op->n_results != 1 || !is_float(f, op->first_result) || f->of_scores[id])
		return false;
	if (sw_fuse_role_of(f->program, id) == SW_FUSE_REDUCE)
		return reduces_alone(f, id);
	if (!f->rules->loops || !sw_fuse_is_elementwise(op) || may_be_prologue(f, op) ||
	    f->cheap[id] || !is_read_apart(f, op->first_result, &n) || n == 0)
		return false;
	return is_no_epilogue(f, id);
}

static void find_in(end_finder *f, const sw_computation *computation, const sw_fuse_least *least)
{
	mark_scores(f, computation);
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		least->products[id] = is_product(f, id) && stays_product(f, id) &&
				      is_float(f, op_of(f, id)->operands[0]);
		if (is_end(f, id))
			least->end_bytes[id] = bytes_of(f, op_of(f, id)->first_result) +
					       least_read(f, &id, 1);
	}
	find_links(f, computation, least);
}

sw_fuse_least sw_fuse_find_least(const sw_program *program, sw_fusion device,
                                 const sw_fuse_parts *parts, const bool *shares_kernel,
                                 const bool *scores, sw_arena *arena)
{
	size_t n = program->ops.len + 1;
	sw_fuse_least least = {.end_bytes = SW_NEW_N(arena, double, n),
	                       .link_bytes = SW_NEW_N(arena, double, n),
	                       .launches = SW_NEW_N(arena, bool, n),
	                       .products = SW_NEW_N(arena, bool, n)};
	for (size_t i = 0; i < n; i++)
		least.end_bytes[i] = least.link_bytes[i] = NAN;
	if (device == SW_FUSION_NONE)
		return least;
	sw_arena scratch;
	sw_arena_init(&scratch);
	end_finder f = {.program = program,
	                .rules = sw_fuse_rules_of(device),
	                .parts = parts,
	                .shares_kernel = shares_kernel,
	                .scores = scores,
	                .users = sw_program_users(program, &scratch),
	                .returned = sw_fuse_mark_returned(program, &scratch),
	                .cheap = sw_fuse_mark_cheap(program, &scratch),
	                .of_scores = SW_NEW_N(&scratch, bool, n),
	                .place = SW_NEW_N(&scratch, int32_t, n),
	                .barred = SW_NEW_N(&scratch, sw_id, n),
	                .before = SW_NEW_N(&scratch, uint64_t, n),
	                .passed = SW_NEW_N(&scratch, uint64_t, n),
	                .apart = SW_NEW_N(&scratch, uint8_t, n)};
	bool *planned = SW_NEW_N(&scratch, bool, program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	for (size_t c = 0; c < program->computations.len; c++)
		if (planned[c])
			find_in(&f, &program->computations.data[c], &least);
	sw_arena_clear(&scratch);
	return least;
}
