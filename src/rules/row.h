/*
 * row: what a row of the rule table is, and what the functions named in rows stand on. For the files of this
 * folder and their tests; everyone else reads rules.h. docs/rules.md shows how to add an opcode.
 *
 * A row says for its opcode
 *   describe   which factors there are and where they stand (it adds to the rule being built)
 *   passes     which operands may be partial sums (maxima, ...) so that the results are
 *   localize   what is written for one device; NULL: the same op and attributes on local shapes
 * Rows stand in the file of their family; rule.c lists the families.
 */
#ifndef SW_RULES_ROW_H
#define SW_RULES_ROW_H

#include "rules/rules.h"

/* ---- building a rule ------------------------------------------------------------------------------ */

typedef struct sw_rule_builder {
	const sw_program *program;
	const sw_op *op;
	sw_arena *arena;
	sw_rule *rule;
	sw_factor *factors;
	sw_passage *passages;
	sw_dim_map **operands, **results;
	int32_t factor_room, passage_room;
} sw_rule_builder;

void sw_rule_builder_init(sw_rule_builder *builder, const sw_program *program, sw_id op, sw_arena *arena);
/* Sorts the maps and asserts that they are well formed: in each dimension the factors' ranges of digits nest. */
const sw_rule *sw_rule_builder_finish(sw_rule_builder *builder);

sw_shape sw_rule_operand_shape(const sw_rule_builder *builder, int32_t operand);
sw_shape sw_rule_result_shape(const sw_rule_builder *builder, int32_t result);

/* A new factor; -1 if its size is below 2: there is nothing to split, and placing -1 does nothing. */
int32_t sw_rule_add_parallel(sw_rule_builder *builder, int64_t size);
int32_t sw_rule_add_reduced(sw_rule_builder *builder, int64_t size, sw_monoid monoid);
/* The operands [first, first + n) must be P on the atoms of the REDUCED factor: they count once. */
void sw_rule_join(sw_rule_builder *builder, int32_t factor, int32_t first, int32_t n);
void sw_rule_place_operand(sw_rule_builder *builder, int32_t factor, int32_t operand, int32_t dim,
                           int64_t stride);
void sw_rule_place_result(sw_rule_builder *builder, int32_t factor, int32_t result, int32_t dim,
                          int64_t stride);
/* Reports why something stays whole; the first reason is kept. */
void sw_rule_whole(sw_rule_builder *builder, const char *why);

/* ---- monoids ------------------------------------------------------------------------------------------ */

#define SW_MONOID_BIT(monoid) (1u << (monoid))
#define SW_PASS_SUM SW_MONOID_BIT(SW_MONOID_SUM)
#define SW_PASS_MAX SW_MONOID_BIT(SW_MONOID_MAX)
#define SW_PASS_MIN SW_MONOID_BIT(SW_MONOID_MIN)
#define SW_PASS_AND SW_MONOID_BIT(SW_MONOID_AND)
#define SW_PASS_OR SW_MONOID_BIT(SW_MONOID_OR)
/* Nondecreasing ops pass both ends of the order; pure moves pass whatever there is. */
#define SW_PASS_ORDER (SW_PASS_MAX | SW_PASS_MIN)
#define SW_PASS_ANY (SW_PASS_SUM | SW_PASS_ORDER | SW_PASS_AND | SW_PASS_OR)

/* Adds a passage of the operands marked true, for those monoids that the types bear: a sum is not narrowed to a shorter float
 * (it would round each term), nor widened from an integer (its terms may wrap); an order survives where every value does. */
void sw_rule_add_passage(sw_rule_builder *builder, const bool *operands, uint32_t monoids);
void sw_rule_add_passage_all(sw_rule_builder *builder, uint32_t monoids);
/* By a pattern of '1' (P) and '0' (B), one per operand. */
void sw_rule_add_passage_text(sw_rule_builder *builder, const char *pattern, uint32_t monoids);

/* ---- writing the local op ------------------------------------------------------------------------------ */

/* One digit of a dimension: coordinate c of the atom holds the indices with (i / stride) mod size == c. */
typedef struct sw_digit {
	int64_t stride, size;
	int32_t atom;
} sw_digit;
/* The digits of a dimension of a layout, descending; room for SW_MAX_ATOMS. */
int32_t sw_rule_digits(const sw_atoms *atoms, const sw_layout *layout, int32_t dim, sw_digit *digits);

typedef struct sw_local_op {
	const sw_localize *in;
	const sw_op *op;
	sw_program *out;
	int32_t computation; /* of out */
	const sw_atoms *atoms;
	sw_layout *operands, *results;
	sw_shape *shapes; /* local, of the results, in out's arena */
	sw_attrs attrs;   /* a copy whose lists are in out's arena; hooks change it */
	sw_arena arena;   /* for this call */
} sw_local_op;

typedef sw_status sw_localize_hook(sw_local_op *local, sw_id *results, sw_error *err);

/* Whole shapes, of the program that is localised. */
sw_shape sw_local_operand_whole(const sw_local_op *local, int32_t operand);
sw_shape sw_local_result_whole(const sw_local_op *local, int32_t result);
/* Local extent of a dimension of an operand. */
int64_t sw_local_operand_extent(const sw_local_op *local, int32_t operand, int32_t dim);
/* The op itself with local->attrs on the given operands. */
sw_status sw_local_emit(sw_local_op *local, const sw_id *operands, sw_id *results, sw_error *err);

/* Small things to write: a scalar broadcast to x's shape in x's type; an op with operands of equal shape. */
sw_id sw_local_like(sw_local_op *local, sw_id x, double value);
sw_id sw_local_scalar_like(sw_local_op *local, sw_id x, sw_id scalar);

/* ---- rows ----------------------------------------------------------------------------------------------- */

/* By the type of operand 0; FLOAT: real or complex. */
typedef enum sw_pass_when { SW_WHEN_ALWAYS, SW_WHEN_FLOAT, SW_WHEN_PRED } sw_pass_when;

typedef struct sw_pass_row {
	const char *operands; /* pattern; "*": all; NULL: no more */
	uint32_t monoids;
	sw_pass_when when;
} sw_pass_row;

typedef struct sw_rule_row {
	sw_opcode opcode;
	void (*describe)(sw_rule_builder *builder);
	sw_localize_hook *localize;
	sw_pass_row passes[3];
} sw_rule_row;

/* A row reads {ROW(ADD, elementwise), PASSES({"11", SW_PASS_SUM, SW_WHEN_ALWAYS}), LOCAL(local_add)}. */
#define ROW(NAME, how) .opcode = SW_OP_##NAME, .describe = (how)
#define PASSES(...) .passes = {__VA_ARGS__}
#define LOCAL(hook) .localize = (hook)

typedef struct sw_rule_family {
	const char *name;
	const sw_rule_row *rows;
	size_t n;
} sw_rule_family;

extern const sw_rule_family sw_rules_elementwise, sw_rules_contract, sw_rules_reduce, sw_rules_window,
	sw_rules_shape, sw_rules_affine, sw_rules_index, sw_rules_source, sw_rules_region, sw_rules_linalg;

/* NULL: no row. */
const sw_rule_row *sw_rule_row_of(sw_opcode opcode);
/* The families in order, ended by NULL. */
const sw_rule_family *const *sw_rule_families(void);
/* A row that deliberately has no factors: the planner decides (parameters, loops), or every device does the same. */
void sw_rule_describe_nothing(sw_rule_builder *builder);
void sw_rule_describe_replicated(sw_rule_builder *builder);

#endif
