/*
 * infer_case: cases of shape inference.
 */
#ifndef SW_TESTS_PROGRAM_INFER_CASE_H
#define SW_TESTS_PROGRAM_INFER_CASE_H

#include "program/attributes.h"
#include "program/helpers.h"

typedef struct infer_case {
	sw_opcode opcode;
	const char *operands; /* shapes */
	const char *expected; /* result shapes, or "!part of the message" */
	sw_attrs attrs;
	const char *called;   /* descriptions, see helpers.h */
	const char *declared; /* result shapes; NULL: inferred */
} infer_case;

#define CASE(name, shapes, result) .opcode = SW_OP_##name, .operands = shapes, .expected = result
#define DIMS(...) .attrs.dims.dims = LIST(__VA_ARGS__)

void check_case(const infer_case *c);
/* A test of all cases of a table. */
#define TEST_OF(table)                                                                             \
	static void infers_##table(void **state)                                                   \
	{                                                                                          \
		(void)state;                                                                       \
		for (size_t i = 0; i < SW_COUNT(table); i++)                                       \
			check_case(&table[i]);                                                     \
	}

#endif
