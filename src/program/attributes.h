/*
 * attributes: the one table of the attributes of each opcode: their names in HLO text, the form of
 * their values, and the member of sw_attrs that holds them. The reader, the printer, equality and
 * the hash all use it, so that none of them treats an opcode by name.
 *
 * Not in the table: parameter's number and constant's literal (they stand in the parentheses),
 * loop.trip_count (inferred, not written), operand_arity (follows from the operands), and
 * attributes that no stage interprets, which are sw_extra.
 */
#ifndef SW_ATTRIBUTES_H
#define SW_ATTRIBUTES_H

#include "program/program.h"

/* The form of a value in the text, and the type of the member at `offset` of sw_attrs. */
typedef enum sw_attribute_kind {
	SW_ATTRIBUTE_INT,          /* 3                           int64_t */
	SW_ATTRIBUTE_INT_LIST1,    /* {3}: a list of just one     int64_t; absent: fallback */
	SW_ATTRIBUTE_BOOL,         /* true                        bool */
	SW_ATTRIBUTE_REAL,         /* 0.001                       double */
	SW_ATTRIBUTE_INTS,         /* {0,1}                       sw_ints */
	SW_ATTRIBUTE_WORD,         /* TOTALORDER, a bare word     const char *, NULL if absent */
	SW_ATTRIBUTE_STRING,       /* "Sharding", see below       const char *, NULL if absent */
	SW_ATTRIBUTE_DIRECTION,    /* LT                          sw_direction */
	SW_ATTRIBUTE_SLICE,        /* {[0:4], [0:8:2]}            sw_ints start, limit, stride */
	SW_ATTRIBUTE_PADDING,      /* 0_1x0_0_2 low_high_interior sw_ints low, high, interior */
	SW_ATTRIBUTE_WINDOW,       /* {size=3x3 stride=2x2 ...}   sw_window; absent: rank 0 */
	SW_ATTRIBUTE_DIM_LABELS,   /* b01f_01io->b01f             convolution's nine positions */
	SW_ATTRIBUTE_GROUPS,       /* {{0,1},{2,3}}, see below    sw_groups */
	SW_ATTRIBUTE_PAIRS,        /* {{0,1},{1,0}}               sw_ints: 0, 1, 1, 0 */
	SW_ATTRIBUTE_COMPUTATION,  /* %max.3                      op->called[offset] */
	SW_ATTRIBUTE_COMPUTATIONS, /* {%a, %b}                    op->called, all of them */
} sw_attribute_kind;
/* STRING is unescaped in memory; in the text escapes are as in C: \n \r \t \" \' \\ \ooo (op_name
 * too). GROUPS is written {{0,1},{2,3}}, {}, [2,4]<=[8], [4,2]<=[2,4]T(1,0) or mesh[...] {...},
 * which becomes the iota form when it is read. */

typedef enum sw_attribute_use {
	SW_ATTRIBUTE_REQUIRED,
	/* absent: `fallback` for INT, INT_LIST1, BOOL, empty or NULL for others; not printed when
	 * it has that value */
	SW_ATTRIBUTE_OPTIONAL,
	SW_ATTRIBUTE_ALWAYS, /* may be absent like OPTIONAL, but is always printed */
	SW_ATTRIBUTE_ALIAS,  /* another spelling: read, but not printed */
} sw_attribute_use;

typedef struct sw_attribute {
	const char *name;
	sw_attribute_kind kind;
	sw_attribute_use use;
	size_t offset;    /* in sw_attrs; COMPUTATION: index in op->called */
	int64_t fallback; /* value of INT, INT_LIST1, BOOL when absent */
} sw_attribute;

/* Does the attribute name computations? */
static inline bool sw_attribute_is_call(const sw_attribute *attribute)
{
	return attribute->kind == SW_ATTRIBUTE_COMPUTATION ||
	       attribute->kind == SW_ATTRIBUTE_COMPUTATIONS;
}

/* Return the attributes of an opcode, in the order in which they are printed; *n may be 0. */
const sw_attribute *sw_attributes_of(sw_opcode opcode, size_t *n);
/* Return the attribute of this name, or NULL if the opcode has none; the caller then keeps it as
 * sw_extra. */
const sw_attribute *sw_attribute_find(sw_opcode opcode, const char *name, size_t length);
/* Return whether ops of this opcode must have attrs (parameter, constant, custom-call and unknown
 * included). */
bool sw_opcode_has_attrs(sw_opcode opcode);
/* Zero *attrs and set every fallback value (trip_count -1, feature_groups 1 ...). */
void sw_attrs_init(sw_opcode opcode, sw_attrs *attrs);
/* Return the attribute's member of *attrs, to be cast to the type of its kind. Not for
 * computations. */
static inline void *sw_attribute_member(const sw_attribute *attribute, sw_attrs *attrs)
{
	return (char *)attrs + attribute->offset;
}

/* Append bytes that are equal iff the attributes are (called computations are not included). */
void sw_attributes_key(sw_opcode opcode, const sw_attrs *attrs, sw_text *key);

/* Convert between sw_direction and its words ("LT"). */
const char *sw_direction_name(sw_direction direction);
bool sw_direction_find(const char *name, size_t length, sw_direction *direction);

/* A `conditional` on a pred is written with true_computation (called[0]) and false_computation
 * (called[1]); one on an index with branch_computations. Both are in the table; the printer selects
 * one. */

#endif
