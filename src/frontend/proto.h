/*
 * proto: declarations shared by the files of the protobuf reader. Private to this folder.
 *
 * A serialised HloModuleProto is written as HLO text, which the reader of HLO text reads: both have
 * one table of attributes, and one verifier. The fields are those of XLA's hlo.proto and
 * xla_data.proto; others are skipped.
 *
 * Bytes that are no protobuf set the reader's status once, and everything after that is empty; so
 * callers ask for the status at the end of an instruction.
 */
#ifndef SW_FRONTEND_PROTO_H
#define SW_FRONTEND_PROTO_H

#include "program/attributes.h"
#include "program/program.h"

/* The bytes of a message, a string, or a packed list. */
typedef struct sw_bytes {
	const unsigned char *at, *end;
} sw_bytes;

typedef struct sw_proto_field {
	uint32_t number; /* 0: the message has ended */
	uint8_t wire;    /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
	uint64_t value;  /* of wire 0, 1 and 5 */
	sw_bytes bytes;  /* of wire 2 */
} sw_proto_field;

typedef SW_VEC(uint64_t) sw_proto_numbers;

typedef struct sw_proto {
	const unsigned char *begin;
	const char *file;
	sw_error *err;
	sw_status status;
	sw_text *text;          /* HLO text, appended to */
	sw_map names;           /* ids of the computation's instructions -> numbers in `spans` */
	sw_map computations;    /* ids of computations -> numbers in `spans` */
	SW_VEC(sw_bytes) spans; /* names; empty: the id is the name */
} sw_proto;

/* ---- proto_wire.c: messages --------------------------------------------------------------- */

/* Take the next field of a message. */
sw_proto_field sw_proto_next(sw_proto *p, sw_bytes *message);
/* Return the last field of this number; number 0 if there is none. */
sw_proto_field sw_proto_find(sw_proto *p, sw_bytes message, uint32_t number);
int64_t sw_proto_int(sw_proto *p, sw_bytes message, uint32_t number);    /* 0 if absent */
sw_bytes sw_proto_bytes(sw_proto *p, sw_bytes message, uint32_t number); /* empty if absent */
/* Append the numbers of a repeated field, packed or not; `wire` 0, 1 or 5. */
void sw_proto_list(sw_proto *p, sw_bytes message, uint32_t number, uint8_t wire,
                   sw_proto_numbers *list);
/* Set the status, unless it is set, with "byte N: ..." for a place in the file. */
void sw_proto_fail(sw_proto *p, const unsigned char *at, const char *format, ...) SW_PRINTF(3, 4);

/* ---- proto_names.c: what things are called in the text ------------------------------------ */

/* Remember the name of an id; names that HLO text does not have, and long ones, are not kept. */
void sw_proto_name(sw_proto *p, sw_map *map, int64_t id, sw_bytes name);
/* Append the name of an id. Fails if the map has none. */
void sw_proto_add_name(sw_proto *p, const sw_map *map, int64_t id, const unsigned char *at);
/* Append "..." with escapes. */
void sw_proto_add_string(sw_proto *p, sw_bytes string);

/* ---- proto_shape.c: shapes and literals --------------------------------------------------- */

void sw_proto_add_shape(sw_proto *p, sw_bytes shape);
/* Append the elements of a LiteralProto as in `constant(...)`. */
void sw_proto_add_literal(sw_proto *p, sw_bytes literal);

/* ---- proto_attributes.c ------------------------------------------------------------------- */

/* Append `, name=value` for each attribute that the opcode has in the table. */
void sw_proto_add_attributes(sw_proto *p, sw_opcode opcode, sw_bytes instruction);
/* Append `{1,2}`. */
void sw_proto_add_ints(sw_proto *p, sw_bytes message, uint32_t number);

/* ---- proto_sharding.c ---------------------------------------------------------------------- */

/* Append the annotation of an instruction, if it has one, and the module's meshes. */
void sw_proto_add_sharding(sw_proto *p, sw_bytes instruction);
void sw_proto_add_meshes(sw_proto *p, sw_bytes module);

#endif
