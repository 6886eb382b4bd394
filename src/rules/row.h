/*
 * row: a row of the rule table, and the helpers of the functions that rows name. For the files of
 * this folder and their tests; all other folders include rules.h. docs/rules.md shows how to add an
 * opcode.
 *
 * A row states for its opcode
 *   describe   the function that adds its factors, and where they stand, to the rule being built
 *   passes     which operands may be partial sums (maxima, ...) so that the results are partial
 *   localize   the function that writes the op for one device; NULL: the same op and attributes on
 *              local shapes
 * Rows stand in the file of their family; rule.c lists the families.
 */
#ifndef SW_RULES_ROW_H
#define SW_RULES_ROW_H

#include "rules/rules.h"

/* ---- building a rule -------------------------------------------------------------------- */

typedef struct sw_rule_builder {
	const sw_program *program;
	const sw_op *op;
	sw_arena *arena;
	sw_rule *rule;
	sw_factor *factors;
	sw_linearity *linearities;
	sw_dim_map **operands, **results;
	int32_t factor_capacity, linearity_capacity;
} sw_rule_builder;

void sw_rule_builder_init(sw_rule_builder *builder, const sw_program *program, sw_id op,
                          sw_arena *arena);
/* Sort the maps and assert that they are well formed: in each dimension the factors' ranges of
 * digits nest. */
const sw_rule *sw_rule_builder_finish(sw_rule_builder *builder);

sw_shape sw_rule_operand_shape(const sw_rule_builder *builder, int32_t operand);
sw_shape sw_rule_result_shape(const sw_rule_builder *builder, int32_t result);

/* Add a factor and return its number; -1 if its size is below 2: there is nothing to split, and
 * placing factor -1 does nothing. */
int32_t sw_rule_add_parallel(sw_rule_builder *builder, int64_t size);
int32_t sw_rule_add_reduced(sw_rule_builder *builder, int64_t size, sw_monoid monoid);
/* State that the local op communicates on the factor's atoms. */
void sw_rule_exchanges(sw_rule_builder *builder, int32_t factor, sw_exchange exchange);
/* State that the local op is a sum over the REDUCED factor that can be taken panel by panel
 * (sw_local_streamed). */
void sw_rule_streams(sw_rule_builder *builder, int32_t factor);
/* State that the operands [first, first + n) must be P on the atoms of the REDUCED factor, because
 * they count once. */
void sw_rule_join(sw_rule_builder *builder, int32_t factor, int32_t first, int32_t n);
void sw_rule_place_operand(sw_rule_builder *builder, int32_t factor, int32_t operand, int32_t dim,
                           int64_t stride);
void sw_rule_place_result(sw_rule_builder *builder, int32_t factor, int32_t result, int32_t dim,
                          int64_t stride);
/* Record why something stays whole; the first reason is kept. */
void sw_rule_whole(sw_rule_builder *builder, const char *why);

/* ---- monoids ---------------------------------------------------------------------------- */

#define SW_MONOID_BIT(monoid) (1u << (monoid))
#define SW_PASS_SUM SW_MONOID_BIT(SW_MONOID_SUM)
#define SW_PASS_MAX SW_MONOID_BIT(SW_MONOID_MAX)
#define SW_PASS_MIN SW_MONOID_BIT(SW_MONOID_MIN)
#define SW_PASS_AND SW_MONOID_BIT(SW_MONOID_AND)
#define SW_PASS_OR SW_MONOID_BIT(SW_MONOID_OR)
/* Nondecreasing ops pass max and min; pure moves pass every monoid. */
#define SW_PASS_ORDER (SW_PASS_MAX | SW_PASS_MIN)
#define SW_PASS_ANY (SW_PASS_SUM | SW_PASS_ORDER | SW_PASS_AND | SW_PASS_OR)

/* Add a linearity of the operands marked true, for those monoids that the types allow: a sum is not
 * narrowed to a shorter float (it would round each term), nor widened from an integer (its terms
 * may wrap); an order survives where every value does. */
void sw_rule_add_linearity(sw_rule_builder *builder, const bool *operands, uint32_t monoids);
/* The same, where P(m) becomes P(becomes[m]) for each m whose becomes[m] is not NONE. */
void sw_rule_add_linearity_as(sw_rule_builder *builder, const bool *operands,
                              const sw_monoid becomes[SW_MONOID_OR + 1]);
void sw_rule_add_linearity_all(sw_rule_builder *builder, uint32_t monoids);
/* The same, by a pattern of '1' (P) and '0' (B), one per operand. */
void sw_rule_add_linearity_text(sw_rule_builder *builder, const char *pattern, uint32_t monoids);
/* Return the monoid by which a computation of n pairs combines each of them, if a layout can hold
 * it for the types of the first n operands; NONE if there is none, or if the pairs have different
 * ones. */
sw_monoid sw_rule_combines(const sw_rule_builder *builder, int32_t computation, int32_t n);
/* Return the opposite end of the order: max for min, and for or, and the reverse; a sum is its own
 * dual. */
sw_monoid sw_monoid_dual(sw_monoid monoid);

/* ---- writing the local op --------------------------------------------------------------- */

/* One digit of a dimension: coordinate c of the atom holds the indices with (i / stride) mod size
 * == c. */
typedef struct sw_digit {
	int64_t stride, size;
	int32_t atom;
} sw_digit;
/* List the digits of a dimension of a layout, descending; `digits` has space for SW_MAX_ATOMS. */
int32_t sw_rule_digits(const sw_atoms *atoms, const sw_layout *layout, int32_t dim,
                       sw_digit *digits);

typedef struct sw_local_op {
	const sw_localize *in;
	const sw_op *op;
	sw_program *out;
	int32_t computation; /* of out */
	const sw_atoms *atoms;
	sw_layout *operands, *results;
	sw_shape *shapes; /* local, of the results, in out's arena */
	sw_attrs attrs;   /* a copy whose lists are in out's arena; hooks change it */
	int32_t *called;  /* computations of out, in the op's order; hooks change them */
	sw_arena arena;   /* for this call */
} sw_local_op;

typedef sw_status sw_localize_hook(sw_local_op *local, sw_id *results, sw_error *err);

/* Return a whole shape, of the program that is localised. */
sw_shape sw_local_operand_whole(const sw_local_op *local, int32_t operand);
sw_shape sw_local_result_whole(const sw_local_op *local, int32_t result);
/* Return the local extent of a dimension of an operand. */
int64_t sw_local_operand_extent(const sw_local_op *local, int32_t operand, int32_t dim);
/* Emit the op itself with local->attrs on the given operands. */
sw_status sw_local_emit(sw_local_op *local, const sw_id *operands, sw_id *results, sw_error *err);

/* Return a number, or a scalar of the program, broadcast to x's shape in x's type. */
sw_id sw_local_like(sw_local_op *local, sw_id x, double value);
sw_id sw_local_scalar_like(sw_local_op *local, sw_id x, sw_id scalar);
static inline sw_id sw_local_binary(sw_local_op *local, sw_opcode opcode, sw_id x, sw_id y)
{
	return sw_emit_binary(local->out, local->computation, opcode, x, y);
}
static inline sw_id sw_local_with_number(sw_local_op *local, sw_opcode opcode, sw_id x, int64_t y)
{
	return sw_local_binary(local, opcode, x, sw_local_like(local, x, (double)y));
}

/* Return the positions of this device's elements along a dimension of the whole: [extent], the
 * local extent. */
sw_id sw_local_positions(sw_local_op *local, const sw_layout *layout, int32_t dim, int64_t extent,
                         sw_type type);

/* ---- parts of a local op that communicate (exchange.c) ---------------------------------- */

/* The blocks of a dimension under a layout: the digits of its factors with an exchange. They tile
 * their factor from the top (unless they FLIP), and may stand above other digits. */
typedef struct sw_blocks {
	int32_t n; /* atoms, by descending digit */
	int32_t atom[SW_MAX_ATOMS];
	int64_t count; /* 1: the dimension is whole */
} sw_blocks;
sw_blocks sw_exchange_blocks(const sw_local_op *local, const sw_layout *layout, int32_t dim);
/* Return the number of this device's block: s32[]. */
sw_id sw_blocks_index(sw_local_op *local, const sw_blocks *blocks);
/* Send x between blocks: block c receives x of block source[c], zeros where that is -1. No block is
 * the source of two. Nothing is emitted if every block keeps its x. */
sw_id sw_blocks_permute(sw_local_op *local, const sw_blocks *blocks, sw_id x,
                        const int64_t *source);
/* Return every block's x, joined along `dim` in the order of the blocks. */
sw_id sw_blocks_gather(sw_local_op *local, const sw_blocks *blocks, sw_id x, int32_t dim);
/* Return the rows [start + c*step, + length) of x on block c. */
sw_id sw_blocks_cut(sw_local_op *local, const sw_blocks *blocks, sw_id x, int32_t dim,
                    int64_t start, int64_t step, int64_t length);

/*
 * The positions of a split dimension that a block needs: block c needs [start + c*step, start +
 * c*step + length), where element i of the whole dimension stands at position i*dilation and
 * everything else is `fill`. Output blocks of o windows of stride a and padding l have start -l,
 * step o*a, length (o - 1)*a + extent of the window; a slice is a window of extent 1.
 */
typedef struct sw_reach {
	int64_t start, step, length, dilation;
	sw_id fill; /* scalar; SW_NO_ID: zeros will do */
	/* out: the padding that turns the returned rows into those positions */
	int64_t low, interior, high;
} sw_reach;
/* Fetch the rows that the reach covers, those of the neighbours included. x: this device's block of
 * the whole dimension. */
sw_id sw_blocks_fetch(sw_local_op *local, const sw_blocks *blocks, sw_id x, int32_t dim,
                      sw_reach *reach);

/* ---- looped local ops (panel_loops.c) -------------------------------------------------------- */

/* The digit of a factor that counts the iterations of the loop: below all digits that devices
 * hold. */
typedef struct sw_panels {
	int32_t factor;
	int64_t stride, count;
} sw_panels;
/* Find the panels of a factor; return false if the digits of it that the devices hold do not nest,
 * or if the part below them is not divisible by the number of panels. */
bool sw_strategy_panels(const sw_rule *rule, const sw_atoms *atoms, const sw_strategy *strategy,
                        int32_t factor, sw_panels *panels);
/* The hook of an op that is a sum over a factor that streams: it writes the op itself, or a loop
 * that adds up panels. */
sw_localize_hook sw_local_streamed;

/* ---- windows (slide.c) ------------------------------------------------------------------ */

/* Add the factor of a dimension along which a window slides; -1: the dimension stays whole (and the
 * reason is recorded). PARALLEL: the factor stands in the input and the output. REDUCED by
 * `over_places` (NONE: not possible): it stands in the input and, if there is one, the kernel. In a
 * dimension of n elements it stands at stride n / size. It exchanges a HALO unless no block looks
 * into another; no_halo: why a halo is not possible, or NULL. */
int32_t sw_rule_add_slide(sw_rule_builder *builder, const sw_window_dim *w, int64_t input,
                          int64_t output, sw_monoid over_places, const char *no_halo);
/* Fetch the rows that the local windows along `dim` cover; x is this device's part of the operand,
 * and *w becomes the local window. windows: the local extent of the output; fill: the value outside
 * the whole dimension, a scalar, or SW_NO_ID if zeros will do. */
sw_id sw_local_slide(sw_local_op *local, int32_t operand, sw_id x, int32_t dim, int64_t windows,
                     sw_id fill, sw_window_dim *w);

/* ---- rows ------------------------------------------------------------------------------- */

/* by the type of operand 0; FLOAT: real or complex */
typedef enum sw_pass_when { SW_WHEN_ALWAYS, SW_WHEN_FLOAT, SW_WHEN_PRED } sw_pass_when;

typedef struct sw_pass_row {
	const char *operands; /* pattern; "*": all; NULL: no more */
	uint32_t monoids;
	sw_pass_when when;
	bool reverses; /* the op decreases: each monoid becomes its dual */
} sw_pass_row;

typedef struct sw_rule_row {
	sw_opcode opcode;
	void (*describe)(sw_rule_builder *builder);
	sw_localize_hook *localize;
	sw_pass_row passes[6];
} sw_rule_row;

/* The neutral element of a sum of floats: +0 would change the sign of -0. */
#define SW_SUM_NEUTRAL (-0.0)

/* A row reads {ROW(ADD, elementwise), PASSES({"11", SW_PASS_SUM, SW_WHEN_ALWAYS}),
 * LOCAL(local_add)}. */
#define ROW(NAME, how) .opcode = SW_OP_##NAME, .describe = (how)
#define PASSES(...) .passes = {__VA_ARGS__}
#define LOCAL(hook) .localize = (hook)

typedef struct sw_rule_family {
	const char *name;
	const sw_rule_row *rows;
	size_t n;
} sw_rule_family;

extern const sw_rule_family sw_rules_elementwise, sw_rules_contract, sw_rules_dots, sw_rules_reduce,
	sw_rules_window, sw_rules_shape, sw_rules_affine, sw_rules_index, sw_rules_source,
	sw_rules_random, sw_rules_region, sw_rules_linalg;

/* Return the row of an opcode; NULL: there is none. */
const sw_rule_row *sw_rule_row_of(sw_opcode opcode);
/* Return the families in order, ended by NULL. */
const sw_rule_family *const *sw_rule_families(void);
/* Describe a row that deliberately has no factors: the planner decides (parameters, loops), or
 * every device does the whole op. */
void sw_rule_describe_nothing(sw_rule_builder *builder);
void sw_rule_describe_replicated(sw_rule_builder *builder);

#endif
