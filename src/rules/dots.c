/*
 * Dots with more than two operands. They have a dot's letters: batch, free, contracted. The other
 * operands have some of these letters too:
 *   ragged-dot(lhs, rhs, sizes)           a dimension of lhs is divided into consecutive groups
 *   scaled-dot(lhs, rhs, scales of both)  one element of a scale holds for a block of its operand
 */
#include "rules/row.h"

typedef struct letter {
	int64_t size;
	int32_t dim[2]; /* of lhs and rhs; -1: not there */
	int32_t result; /* -1: contracted */
} letter;

typedef struct letters {
	int32_t n;
	letter list[2 * SW_MAX_RANK];
} letters;

static void add_letter(letters *all, int64_t size, int64_t lhs, int64_t rhs, int32_t result)
{
	all->list[all->n++] =
		(letter){.size = size, .dim = {(int32_t)lhs, (int32_t)rhs}, .result = result};
}

/* Add the free dimensions of one side; return the next dimension of the result. */
static int32_t add_free(letters *all, sw_shape shape, int32_t side, sw_ints batch,
                        sw_ints contracting, sw_ints group, int32_t next)
{
	for (int32_t d = 0; d < shape.rank; d++)
		if (!sw_ints_has(batch, d) && !sw_ints_has(contracting, d) &&
		    !sw_ints_has(group, d))
			add_letter(all, shape.dims[d], side ? -1 : d, side ? d : -1, next++);
	return next;
}

/* List the letters. next: the first dimension of the result that belongs to a letter. */
static letters letters_of(const sw_rule_builder *b, int32_t next)
{
	sw_shape lhs = sw_rule_operand_shape(b, 0), rhs = sw_rule_operand_shape(b, 1);
	sw_ints lb = b->op->attrs->dot.lhs_batch, rb = b->op->attrs->dot.rhs_batch;
	sw_ints lc = b->op->attrs->dot.lhs_contracting, rc = b->op->attrs->dot.rhs_contracting;
	letters all = {.n = 0};

	for (int32_t i = 0; i < lb.n; i++)
		add_letter(&all, lhs.dims[lb.v[i]], lb.v[i], rb.v[i], next++);
	next = add_free(&all, lhs, 0, lb, lc, (sw_ints){0}, next);
	add_free(&all, rhs, 1, rb, rc, b->op->attrs->dot.rhs_group, next);
	for (int32_t i = 0; i < lc.n; i++)
		add_letter(&all, lhs.dims[lc.v[i]], lc.v[i], rc.v[i], -1);
	return all;
}

/* Place the digits [stride, stride*size) of a letter, on both sides and in the result; return -1 if
 * it is contracted and its terms cannot be partial. */
static int32_t place_letter(sw_rule_builder *b, const letter *x, int64_t stride, int64_t size)
{
	sw_monoid sum = sw_rule_splittable(sw_rule_result_shape(b, 0).type, SW_MONOID_SUM);
	int32_t factor = -1;

	if (x->result >= 0)
		factor = sw_rule_add_parallel(b, size);
	else if (sum)
		factor = sw_rule_add_reduced(b, size, sum);
	for (int32_t side = 0; side < 2; side++)
		if (x->dim[side] >= 0)
			sw_rule_place_operand(b, factor, side, x->dim[side], stride);
	if (x->result >= 0)
		sw_rule_place_result(b, factor, 0, x->result, stride);
	return factor;
}

/* Add that the op is linear in this operand. */
static void pass_sum(sw_rule_builder *b, int32_t operand)
{
	bool *operands = SW_NEW_N(b->arena, bool, b->rule->n_operands);

	operands[operand] = true;
	sw_rule_add_linearity(b, operands, SW_PASS_SUM);
}

/* ---- scaled-dot ------------------------------------------------------------------------- */

/* Return how many elements of the letter share one element of the side's scale: all, if there is no
 * scale. */
static int64_t scale_block(const sw_rule_builder *b, const letter *x, int32_t side)
{
	sw_shape scale = {.rank = 0};

	if (x->dim[side] >= 0 && side + 2 < b->rule->n_operands)
		scale = sw_rule_operand_shape(b, side + 2);
	return scale.rank == 0 || scale.dims[x->dim[side]] == 0
	               ? x->size
	               : x->size / scale.dims[x->dim[side]];
}

/* Digits below a block are in the operand alone, those above it in its scale too. */
static void scaled_letter(sw_rule_builder *b, const letter *x)
{
	int64_t block[2] = {scale_block(b, x, 0), scale_block(b, x, 1)};
	int64_t cuts[4] = {1, SW_MIN(block[0], block[1]), SW_MAX(block[0], block[1]), x->size};

	if (x->size == 0 || cuts[2] % cuts[1] != 0) {
		sw_rule_whole(
			b, "a dimension whose scales hold for blocks that do not nest stays whole");
		return;
	}
	for (int i = 0; i < 3; i++) {
		int32_t factor = place_letter(b, x, cuts[i], cuts[i + 1] / cuts[i]);
		for (int32_t side = 0; side < 2; side++)
			if (cuts[i] >= block[side] && block[side] < x->size)
				sw_rule_place_operand(b, factor, side + 2, x->dim[side],
				                      cuts[i] / block[side]);
	}
}

static void scaled_dot(sw_rule_builder *b)
{
	letters all = letters_of(b, 0);

	for (int32_t i = 0; i < all.n; i++)
		scaled_letter(b, &all.list[i]);
	for (int32_t i = 0; i < b->rule->n_operands; i++)
		pass_sum(b, i);
}

/* ---- ragged-dot ------------------------------------------------------------------------- */

/* Return the dimension of the sizes that belongs to a letter of lhs, if there is a list of sizes
 * for each of its indices: this holds for batch letters and for letters of the ragged one's kind
 * (contracted or not) that stand before it. -1: none. */
static int32_t sizes_dim(const sw_rule_builder *b, const letters *all, int32_t at, int32_t ragged)
{
	bool contracted = all->list[ragged].result < 0;
	int32_t before = 0;

	for (int32_t i = 0; i < ragged; i++) {
		bool batch = all->list[i].dim[0] >= 0 && all->list[i].dim[1] >= 0 &&
		             all->list[i].result >= 0;
		bool kin = (all->list[i].result < 0) == contracted && all->list[i].dim[0] >= 0;
		if (!batch && !kin)
			continue;
		if (i == at)
			return sw_rule_operand_shape(b, 2).rank > 1 ? before : -1;
		before++;
	}
	return -1;
}

static void ragged_dot(sw_rule_builder *b)
{
	int64_t dimension = b->op->attrs->dot.lhs_ragged.v[0];
	bool contracted = sw_ints_has(b->op->attrs->dot.lhs_contracting, dimension);
	/* If the ragged dimension is contracted, the groups come first in the result. */
	letters all = letters_of(b, contracted ? 1 : 0);
	int32_t ragged = 0;

	for (int32_t i = 0; i < all.n; i++)
		if (all.list[i].dim[0] == dimension)
			ragged = i;
	for (int32_t i = 0; i < all.n; i++) {
		if (i == ragged && sw_rule_operand_shape(b, 2).rank == SW_MAX_RANK)
			/* running_sums needs one more dimension. */
			continue;
		int32_t factor = place_letter(b, &all.list[i], 1, all.list[i].size);
		int32_t d = sizes_dim(b, &all, i, ragged);
		if (d >= 0)
			sw_rule_place_operand(b, factor, 2, d, 1);
	}
	pass_sum(b, 0);
	pass_sum(b, 1);
	sw_rule_whole(
		b,
		"the groups of a ragged-dot stay whole: which rows they have is known at run time");
}

/* Return where each group ends: the sums of the sizes up to it, [.., g] = sum over h <= g of x[..,
 * h]. */
static sw_id running_sums(sw_local_op *local, sw_id x)
{
	sw_program *out = local->out;
	int32_t c = local->computation;
	sw_shape shape = sw_value_shape(out, x);
	int64_t dims[SW_MAX_RANK], where[SW_MAX_RANK], last = shape.rank;

	for (int32_t d = 0; d < shape.rank; d++) {
		dims[d] = shape.dims[d];
		where[d] = d + 1 < shape.rank ? d : d + 1;
	}
	dims[last] = dims[last - 1];
	sw_shape square = sw_build_shape(out, shape.type, dims, shape.rank + 1);
	sw_id all = sw_emit_broadcast(out, c, x, square, where);
	sw_id before = sw_emit_compare(out, c, SW_LE, sw_emit_iota(out, c, square, last),
	                               sw_emit_iota(out, c, square, last - 1));
	all = sw_emit_select(out, c, before, all, sw_local_like(local, all, 0));
	return sw_emit_reduce(out, c, SW_MONOID_SUM, all, sw_emit_scalar(out, c, shape.type, 0),
	                      &last, 1);
}

/* Return how many of the first x indices of the dimension this device has. */
static sw_id owned_before(sw_local_op *local, sw_id x, const sw_digit *digits, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		int64_t t = digits[i].stride, period = t * digits[i].size;
		sw_id first = sw_local_with_number(
			local, SW_OP_MULTIPLY,
			sw_local_scalar_like(local, x,
		                             sw_coordinate(local->in->coordinates, digits[i].atom)),
			t);
		sw_id rest = sw_local_binary(
			local, SW_OP_SUBTRACT,
			sw_local_with_number(local, SW_OP_REMAINDER, x, period), first);
		rest = sw_local_with_number(local, SW_OP_MINIMUM,
		                            sw_local_with_number(local, SW_OP_MAXIMUM, rest, 0), t);
		x = sw_local_with_number(local, SW_OP_MULTIPLY,
		                         sw_local_with_number(local, SW_OP_DIVIDE, x, period), t);
		x = sw_local_binary(local, SW_OP_ADD, x, rest);
	}
	return x;
}

/* Elements keep their order when digits are taken out, so groups still follow one another: each has
 * the elements of it that the device owns. */
static sw_id local_sizes(sw_local_op *local, sw_id sizes, const sw_digit *digits, int32_t n,
                         int64_t extent)
{
	sw_type type = sw_value_shape(local->out, sizes).type;
	sw_id x = sw_emit_convert(local->out, local->computation, sizes, SW_S64), end, begin;

	end = running_sums(local, x);
	begin = sw_local_with_number(local, SW_OP_MINIMUM,
	                             sw_local_binary(local, SW_OP_SUBTRACT, end, x), extent);
	end = sw_local_with_number(local, SW_OP_MINIMUM, end, extent);
	x = sw_local_binary(local, SW_OP_SUBTRACT, owned_before(local, end, digits, n),
	                    owned_before(local, begin, digits, n));
	return sw_emit_convert(local->out, local->computation, x, type);
}

static sw_status local_ragged_dot(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t dim = (int32_t)local->op->attrs->dot.lhs_ragged.v[0];
	int32_t n = sw_rule_digits(local->atoms, &local->operands[0], dim, digits);
	sw_id operands[3] = {local->in->operands[0], local->in->operands[1],
	                     local->in->operands[2]};

	if (n > 0)
		operands[2] = local_sizes(local, operands[2], digits, n,
		                          sw_local_operand_whole(local, 0).dims[dim]);
	return sw_local_emit(local, operands, results, err);
}

static const sw_rule_row rows[] = {
	/* passes sums of either side */
	{ROW(RAGGED_DOT, ragged_dot), LOCAL(local_ragged_dot)},
	/* passes sums of any operand */
	{ROW(SCALED_DOT, scaled_dot)},
};

const sw_rule_family sw_rules_dots = {"dots", rows, SW_COUNT(rows)};
