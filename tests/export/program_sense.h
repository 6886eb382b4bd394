/* What a program computes, whatever the order of its ops. */
#ifndef SW_TESTS_PROGRAM_SENSE_H
#define SW_TESTS_PROGRAM_SENSE_H

#include "program/program.h"

/* Return a hash of what the entry's results are made of: opcodes, attributes, constants, shapes and
 * computations, back to the inputs. Names, the order of ops and that of the operands of
 * sums and the like have no part in it. Linear. */
uint64_t sw_program_sense(const sw_program *program);

#endif
