/* The list of opcodes as data. */
#include "program/program.h"

#include <string.h>

typedef struct opcode_row {
	const char *name;
	size_t length;
	int operands;
	sw_op_class class;
} opcode_row;

static const opcode_row rows[SW_OPCODE_COUNT] = {
#define X(name, spelling, operands, class)                                                         \
	{spelling, sizeof(spelling) - 1, operands, SW_CLASS_##class},
	SW_OPCODES(X)
#undef X
};

const char *sw_opcode_name(sw_opcode opcode)
{
	return rows[opcode].name;
}

sw_op_class sw_opcode_class(sw_opcode opcode)
{
	return rows[opcode].class;
}

bool sw_opcode_is_elementwise(sw_opcode opcode)
{
	sw_op_class class = sw_opcode_class(opcode);
	return class == SW_CLASS_UNARY || class == SW_CLASS_BINARY || class == SW_CLASS_TERNARY;
}

int sw_opcode_operands(sw_opcode opcode)
{
	return rows[opcode].operands;
}

bool sw_opcode_find(const char *name, size_t length, sw_opcode *opcode)
{
	for (int o = 0; o < SW_OP_UNKNOWN; o++) {
		if (rows[o].length == length && memcmp(rows[o].name, name, length) == 0) {
			*opcode = (sw_opcode)o;
			return true;
		}
	}
	return false;
}

const char *sw_op_opcode_name(const sw_op *op)
{
	if (op->opcode == SW_OP_UNKNOWN && op->attrs && op->attrs->unknown.spelling)
		return op->attrs->unknown.spelling;
	return sw_opcode_name((sw_opcode)op->opcode);
}
