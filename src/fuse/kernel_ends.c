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
 *     along the way that reads fewest: inputs alone, for other arrays may be made in the kernel;
 *   - or each way from a product to the end leads through an op that is reduced, and the reduction
 *     returns to a later op of the way, as in a layer norm: no kernel holds that op with the
 *     product, for it would wait for itself.
 *
 * What follows from the scores of attention or of a loss may be in their kernels, and is left out.
 *
 * Such a kernel writes its end, and reads at least as much as the cheapest cut between the end and
 * inputs, products and results of loops: what it does not read at such a place it must read before.
 */
#include "fuse/internal.h"
#include "rewrite/rewrite.h"

#include <math.h>
#include <string.h>

#define MAX_WAY 96 /* ops that are looked at behind one end; where there are more, it is none */

typedef struct end_finder {
	const sw_program *program;
	const sw_fuse_rules *rules;
	const sw_fuse_parts *parts;
	const bool *shares_kernel, *scores;
	sw_users users;
	const bool *returned, *cheap;
	bool *of_scores; /* per op: it follows from the scores of a softmax */
	/* behind the end at hand: its ops, by descending number */
	sw_id way[MAX_WAY];
	int32_t n;
	int32_t *place; /* per op: its place in `way` + 1, 0: it is not there */
	sw_id end;
	sw_id *barred; /* per op: the last end + 1 for which a later op of the way needs its sum */
} end_finder;

static const sw_op *op_of(const end_finder *f, sw_id id)
{
	return sw_op_at(f->program, id);
}

static int64_t elements_of(const end_finder *f, sw_id value)
{
	return sw_shape_elements(sw_value_shape(f->program, value));
}

static double bytes_of(const end_finder *f, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(f->program, value));
}

static bool is_float(const end_finder *f, sw_id value)
{
	return sw_type_kind_of(sw_value_shape(f->program, value).type) == SW_KIND_FLOAT;
}

static bool is_product(const end_finder *f, sw_id id)
{
	return sw_fuse_role_of(f->program, id) == SW_FUSE_DOT;
}

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

/* ---- who reads the end ------------------------------------------------------------------- */

/* A product that contracts few elements may become a multiply, which takes others in. */
static bool stays_product(const end_finder *f, sw_id id)
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
	bool same = sw_fuse_is_elementwise(op_of(f, from)) && elements_of(f, operand) == elements;
	return same ? from : SW_NO_ID;
}

static bool is_barred(const end_finder *f, sw_id id)
{
	return f->barred[id] == f->end + 1;
}

/* Bar the operand of the reduction that a broadcast repeats, or what single numbers of each row
 * were computed of. */
static void bar_reduced(end_finder *f, sw_id value, int32_t depth)
{
	const sw_op *op = op_of(f, sw_fuse_source(f->program, value));
	if (depth == 0)
		return;
	if (sw_fuse_role_of(f->program, (sw_id)(op - f->program->ops.data)) == SW_FUSE_REDUCE) {
		f->barred[sw_fuse_source(f->program, op->operands[0])] = f->end + 1;
		return;
	}
	if (op->opcode != SW_OP_BROADCAST && !sw_fuse_is_elementwise(op))
		return;
	for (uint32_t k = 0; k < op->n_operands; k++)
		bar_reduced(f, op->operands[k], depth - 1);
}

/* Add the op to the way, whose ops descend. Return false if there is no place. */
static bool add_to_way(end_finder *f, sw_id id)
{
	int32_t at = f->n;
	while (at > 0 && f->way[at - 1] < id)
		at--;
	if (at > 0 && f->way[at - 1] == id)
		return true;
	if (f->n == MAX_WAY)
		return false;
	memmove(f->way + at + 1, f->way + at, sizeof(*f->way) * (size_t)(f->n - at));
	f->way[at] = id;
	f->n++;
	return true;
}

/* Find the ops of the end's size that lead to it element by element, down to those that are
 * barred. Later ops come first, so that each has been barred before it is passed. */
static bool find_way(end_finder *f, sw_id end)
{
	int64_t elements = elements_of(f, op_of(f, end)->first_result);
	f->end = end;
	f->way[0] = end;
	f->n = 1;
	bool found = true;
	for (int32_t i = 0; i < f->n && found; i++) {
		const sw_op *op = op_of(f, f->way[i]);
		for (uint32_t k = 0; k < op->n_operands && !is_barred(f, f->way[i]); k++) {
			sw_id from = sw_fuse_source(f->program, op->operands[k]);
			if (op_of(f, from)->opcode == SW_OP_BROADCAST)
				bar_reduced(f, op_of(f, from)->operands[0], 4);
		}
		for (uint32_t k = 0; k < op->n_operands && !is_barred(f, f->way[i]) && found; k++) {
			sw_id from = behind(f, op->operands[k], elements);
			found = from == SW_NO_ID || add_to_way(f, from);
		}
	}
	return found;
}

/* What the way from a product to an op reads beside: the fewest arrays. */
typedef struct way_cost {
	double fewest; /* INFINITY: no product reaches it */
	bool input;    /* an array is read for it, with no product before */
} way_cost;

static way_cost cost_of_operand(const end_finder *f, const way_cost *of, sw_id operand,
                                int64_t elements)
{
	sw_id from = sw_fuse_source(f->program, operand);
	const sw_op *op = op_of(f, from);
	bool same = elements_of(f, operand) == elements;
	if (f->place[from] && same)
		return of[f->place[from] - 1];
	if (is_product(f, from))
		return (way_cost){.fewest = 0};
	bool array = same && elements > 1 &&
	             (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_WHILE);
	return (way_cost){.fewest = INFINITY, .input = array};
}

static way_cost cost_of_op(const end_finder *f, const way_cost *of, sw_id id)
{
	const sw_op *op = op_of(f, id);
	int64_t elements = elements_of(f, op->first_result);
	way_cost r = {.fewest = INFINITY};
	if (is_barred(f, id))
		return r;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		way_cost x = cost_of_operand(f, of, op->operands[k], elements);
		for (uint32_t j = 0; j < op->n_operands; j++)
			x.fewest +=
				j != k && cost_of_operand(f, of, op->operands[j], elements).input;
		r.fewest = fmin(r.fewest, x.fewest);
		r.input |= x.input;
	}
	return r;
}

/* Return whether no product can be in the kernel that the op ends. */
static bool is_no_epilogue(end_finder *f, sw_id end)
{
	int32_t limit = SW_MAX(f->rules->dot_epilogue, f->rules->convolution_epilogue);
	way_cost of[MAX_WAY] = {0};
	if (limit < 0)
		return true;
	bool found = find_way(f, end);
	for (int32_t i = 0; i < f->n; i++)
		f->place[f->way[i]] = i + 1;
	for (int32_t i = f->n; i-- > 0 && found;)
		of[i] = cost_of_op(f, of, f->way[i]);
	return found && of[0].fewest > limit;
}

static void forget_way(end_finder *f)
{
	for (int32_t i = 0; i < f->n; i++)
		f->place[f->way[i]] = 0;
	f->n = 0;
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* What is read at least to have a value: bytes, of which places (a bit for each, several places may
 * share one). */
typedef struct least_read {
	double bytes;
	uint64_t places;
} least_read;

static least_read read_for(const end_finder *f, sw_id value, int32_t *left);

/* Return what is read for all operands of an op: the sum, if they have no place in common. */
static least_read read_for_operands(const end_finder *f, const sw_op *op, int32_t *left)
{
	least_read all = {0};
	for (uint32_t k = 0; k < op->n_operands; k++) {
		least_read x = read_for(f, op->operands[k], left);
		all.bytes = all.places & x.places ? fmax(all.bytes, x.bytes) : all.bytes + x.bytes;
		all.places |= x.places;
	}
	return all;
}

static bool is_computed_whole(const end_finder *f, sw_id id)
{
	const sw_op *op = op_of(f, id);
	return sw_fuse_is_elementwise(op) || op->opcode == SW_OP_TRANSPOSE;
}

/* left: how many further ops are looked at. */
static least_read read_for(const end_finder *f, sw_id value, int32_t *left)
{
	sw_id from = sw_fuse_source(f->program, value);
	const sw_op *op = op_of(f, from);
	double bytes = bytes_of(f, value);
	if (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_WHILE ||
	    (is_product(f, from) && stays_product(f, from)))
		return (least_read){bytes, UINT64_C(1) << from % 64};
	if (--*left < 0)
		return (least_read){0};
	least_read x = {0};
	if (is_computed_whole(f, from))
		x = read_for_operands(f, op, left);
	else if (sw_fuse_role_of(f->program, from) == SW_FUSE_REDUCE)
		x = read_for(f, op->operands[0], left);
	x.bytes = fmin(x.bytes, bytes);
	return x;
}

static double moved_bytes(const end_finder *f, sw_id end)
{
	const sw_op *op = op_of(f, end);
	int32_t left = MAX_WAY;
	least_read x = sw_fuse_role_of(f->program, end) == SW_FUSE_REDUCE
	                       ? read_for(f, op->operands[0], &left)
	                       : read_for_operands(f, op, &left);
	return x.bytes + bytes_of(f, op->first_result);
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
	bool ends = is_no_epilogue(f, id);
	forget_way(f);
	return ends;
}

void sw_fuse_find_ends(const sw_program *program, sw_fusion device, const sw_fuse_parts *parts,
                       const bool *shares_kernel, const bool *scores, double *moved)
{
	sw_arena arena;
	for (size_t i = 0; i < program->ops.len; i++)
		moved[i] = NAN;
	if (device == SW_FUSION_NONE)
		return;
	sw_arena_init(&arena);
	size_t n = program->ops.len + 1;
	end_finder f = {.program = program,
	                .rules = sw_fuse_rules_of(device),
	                .parts = parts,
	                .shares_kernel = shares_kernel,
	                .scores = scores,
	                .users = sw_program_users(program, &arena),
	                .returned = sw_fuse_mark_returned(program, &arena),
	                .cheap = sw_fuse_mark_cheap(program, &arena),
	                .of_scores = SW_NEW_N(&arena, bool, n),
	                .place = SW_NEW_N(&arena, int32_t, n),
	                .barred = SW_NEW_N(&arena, sw_id, n)};
	bool *planned = SW_NEW_N(&arena, bool, program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	for (size_t c = 0; c < program->computations.len; c++) {
		const sw_computation *computation = &program->computations.data[c];
		if (!planned[c])
			continue;
		mark_scores(&f, computation);
		for (size_t i = 0; i < computation->ops.len; i++) {
			sw_id id = computation->ops.data[i];
			if (is_end(&f, id))
				moved[id] = moved_bytes(&f, id);
		}
	}
	sw_arena_clear(&arena);
}
