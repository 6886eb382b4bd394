/*
 * hlo: declarations shared by the files of the HLO text reader. Private to this folder.
 *
 * hlo_read.c is the driver. hlo_module.c reads the header, the tables and the frames of
 * computations; hlo_instruction.c one instruction; hlo_shape.c, hlo_literal.c, hlo_attributes.c,
 * hlo_window.c and hlo_groups.c the parts of it; hlo_names.c maps names to their meanings.
 *
 * Tuples exist only here. A name refers to a NODE: the values of its leaves, and the tree of their
 * nesting. tuple() and get-tuple-element() make nodes of existing values.
 *
 * All functions that return sw_status report through the lexer's error.
 */
#ifndef SW_FRONTEND_HLO_H
#define SW_FRONTEND_HLO_H

#include "frontend/lexer.h"
#include "program/attributes.h"
#include "program/program.h"

#define SW_HLO_MAX_PARAMETERS 100000 /* of one computation */
#define SW_HLO_MAX_NESTING 100       /* of tuples in tuples, and of operands in operands */

/* The nesting of a tuple. flat: all children are arrays, and `branches` is NULL. */
typedef struct sw_hlo_tree {
	uint32_t children, leaves;
	bool flat;
	const struct sw_hlo_branch *branches;
} sw_hlo_tree;
typedef struct sw_hlo_branch {
	const sw_hlo_tree *tree; /* NULL: an array */
	uint32_t first_leaf;
} sw_hlo_branch;

/* The order of an array's dimensions in memory, where it is not the usual one: from minor to major,
 * four bits for each (a rank is at most 16), and whether it has tiles. 0: as usual. */
typedef struct sw_hlo_layout {
	uint64_t minor_to_major;
	bool tiled;
} sw_hlo_layout;

/* A shape that was read: its leaves are reader->leaves[first .. first + n). */
typedef struct sw_hlo_shape {
	const sw_hlo_tree *tree; /* NULL: an array, n is 1 */
	size_t first;
	uint32_t n;
} sw_hlo_shape;

typedef struct sw_hlo_node {
	const sw_hlo_tree *tree; /* NULL: an array */
	const sw_id *values;     /* NULL: first, first + 1, ... */
	sw_id first, op;         /* op: SW_NO_ID for tuple and get-tuple-element */
	uint32_t n;
} sw_hlo_node;

typedef struct sw_hlo_operand {
	const char *place;
	sw_hlo_node node;
} sw_hlo_operand;

typedef struct sw_hlo_symbol {
	sw_span name;
	uint32_t node;
	int32_t defined_in;  /* the computation in which it means `node`; -1: none */
	int32_t computation; /* -1: there is no computation of this name */
} sw_hlo_symbol;

typedef struct sw_hlo_names {
	SW_VEC(sw_hlo_symbol) symbols;
	uint64_t *slots; /* hash in the upper half, symbol + 1 in the lower; 0: free */
	size_t cap;
} sw_hlo_names;

/* A pair of input_output_alias, or a donor. Its leaves can be found only after the entry was
 * read. */
typedef struct sw_hlo_binding {
	const char *place;
	bool donor, must;
	int64_t parameter;
	size_t output_path, n_output, input_path, n_input; /* in reader->paths */
} sw_hlo_binding;

#define SW_HLO_DIMS_CACHE 1024

typedef struct sw_hlo {
	sw_lexer lexer;
	sw_program *program;
	sw_arena scratch; /* trees and lists of values; freed when the text is read */
	sw_hlo_names names;

	int32_t computation; /* being read */
	bool entry_known;
	SW_VEC(sw_hlo_node) nodes;      /* nodes of the computation being read */
	SW_VEC(sw_hlo_node) parameters; /* its parameters by number; n == UINT32_MAX: not seen */
	SW_VEC(sw_hlo_node) inputs;     /* parameters of the entry */
	/* root: of the computation being read; output: of the entry */
	sw_hlo_node root, output;

	SW_VEC(sw_hlo_binding) bindings;
	SW_VEC(int64_t) paths;

	/* stacks: a function pops what it pushed */
	SW_VEC(sw_shape) leaves;
	SW_VEC(sw_hlo_branch) branches;
	SW_VEC(sw_hlo_operand) operands;
	SW_VEC(sw_id) ids;
	SW_VEC(int64_t) ints;
	SW_VEC(int32_t) called;
	SW_VEC(sw_literal) literals;

	sw_text name, op_name; /* names of the op being built, ended by a zero */
	sw_hlo_layout layout;  /* of the array that was read last */
	/* layouts of the arrays that have a name, by value, as far as they were needed */
	SW_VEC(sw_hlo_layout) layouts;
	size_t expanded; /* number of leaves of all operands so far */
	sw_ints dims_cache[SW_HLO_DIMS_CACHE];
} sw_hlo;

/* An instruction, or an operand that is a nested instruction, while it is read. */
typedef struct sw_hlo_op {
	const char *place; /* place of the opcode */
	sw_span name;      /* length 0: nested */
	sw_span spelling;
	sw_opcode opcode;
	bool has_shape;
	sw_hlo_shape shape;
	sw_hlo_layout layout;             /* of an array */
	size_t first_operand, n_operands; /* in reader->operands */
	sw_attrs attrs;
	uint64_t seen;       /* bit i: sw_attributes_of(opcode)[i] was given */
	int64_t tuple_index; /* index of a get-tuple-element; -1: not given */
	sw_span op_name;     /* as written; length 0: none */
	sw_extra *extras, **last_extra;
	const sw_id *control;
} sw_hlo_op;

/* ---- hlo_names.c ------------------------------------------------------------------------ */

void sw_hlo_names_clear(sw_hlo_names *names);
/* Return the symbol of a name, which is made if it is new. The pointer is valid until the next
 * call. */
sw_hlo_symbol *sw_hlo_symbol_of(sw_hlo_names *names, sw_span name);

/* ---- hlo_shape.c ------------------------------------------------------------------------ */

/* Read a shape. before_body: a '{' behind the shape may open a computation rather than a layout. */
sw_status sw_hlo_read_shape(sw_hlo *reader, bool before_body, sw_hlo_shape *shape);
/* Pop the shape's leaves; it must be the last shape that was read. */
void sw_hlo_drop_shape(sw_hlo *reader, sw_hlo_shape shape);
/* Make a tree of the children on top of reader->branches, from first_branch on, and pop them. */
const sw_hlo_tree *sw_hlo_make_tree(sw_hlo *reader, size_t first_branch, uint32_t leaves);
/* Return an equal list in the program's arena, which may be shared with earlier ones. */
sw_ints sw_hlo_keep_dims(sw_hlo *reader, const int64_t *dims, int32_t n);
/* Set *child to child `index` of a tuple's node. Return false if there is none. */
bool sw_hlo_child(sw_hlo_node node, int64_t index, sw_hlo_node *child);
sw_id sw_hlo_leaf(const sw_hlo_node *node, uint32_t leaf);

/* ---- hlo_literal.c ---------------------------------------------------------------------- */

/* Read a literal of this array shape. */
sw_status sw_hlo_read_literal(sw_hlo *reader, sw_shape shape, sw_literal *literal);

/* ---- hlo_attributes.c, hlo_window.c, hlo_groups.c --------------------------------------- */

/* Read `, name=value` until no comma follows; then check that no required attribute is missing. */
sw_status sw_hlo_read_attributes(sw_hlo *reader, sw_hlo_op *op);
/* Append to a list of extras. *last points to the link that the next one is stored in. */
void sw_hlo_add_extra(sw_hlo *reader, sw_span name, sw_span text, sw_extra ***last);
/* Push `{1,2,3}` onto reader->ints. */
sw_status sw_hlo_push_ints(sw_hlo *reader);
/* Pop reader->ints down to `first` into a list of the program's arena. */
sw_ints sw_hlo_pop_ints(sw_hlo *reader, size_t first);
sw_status sw_hlo_read_ints(sw_hlo *reader, sw_ints *list);

sw_status sw_hlo_read_window(sw_hlo *reader, sw_window *window);
sw_status sw_hlo_read_dim_labels(sw_hlo *reader, sw_attrs *attrs);
sw_status sw_hlo_read_slice(sw_hlo *reader, sw_attrs *attrs);
sw_status sw_hlo_read_padding(sw_hlo *reader, sw_attrs *attrs);
sw_status sw_hlo_read_groups(sw_hlo *reader, sw_groups *groups);

/* ---- hlo_bitcast.c ---------------------------------------------------------------------- */

/* Read a layout as it stands in the text, braces included. */
sw_hlo_layout sw_hlo_layout_of(sw_span text, int32_t rank);
/* Remember the layout of a value. */
void sw_hlo_keep_layout(sw_hlo *reader, sw_id value, sw_hlo_layout layout);
/* A bitcast keeps bytes in memory, not indices: write it as a transposition to the order in memory,
 * a bitcast between usual layouts, and a transposition back, as far as they are not the usual
 * order. `x` is the operand; *x becomes the operand of the bitcast, and *shape its result's. */
sw_status sw_hlo_before_bitcast(sw_hlo *reader, const sw_hlo_op *op, sw_id *x, sw_shape *shape);
sw_status sw_hlo_after_bitcast(sw_hlo *reader, const sw_hlo_op *op, sw_id *x);

/* ---- hlo_instruction.c ------------------------------------------------------------------ */

/* Read `[ROOT] name = shape opcode(operands), attributes`. *root: whether ROOT was given. */
sw_status sw_hlo_read_instruction(sw_hlo *reader, sw_hlo_node *node, bool *root);

/* ---- hlo_read.c ------------------------------------------------------------------------- */

/* Refuse a program whose values take more than 2^60 bytes together. */
sw_status sw_frontend_check_bytes(const sw_program *program, const char *file, sw_error *err);

/* ---- hlo_module.c ----------------------------------------------------------------------- */

sw_status sw_hlo_read_header(sw_hlo *reader);
sw_status sw_hlo_skip_tables(sw_hlo *reader);
sw_status sw_hlo_read_computation(sw_hlo *reader);
/* Make a custom call that is a constraint of a sharding a copy, annotated (hlo_sharding.c). */
void sw_hlo_take_constraint(sw_hlo *reader, sw_hlo_op *op);
/* Turn the header's aliases and donors into leaves of the entry. */
sw_status sw_hlo_bind_aliases(sw_hlo *reader);

#endif
