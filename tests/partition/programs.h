/* Small training-like programs, written by hand; the size of a dimension shows its meaning. */
#ifndef SW_TESTS_PARTITION_PROGRAMS_H
#define SW_TESTS_PARTITION_PROGRAMS_H

typedef struct small_program {
	const char *name, *text;
} small_program;

extern const char MATMUL_CHAIN[], EMBEDDING[], REDUCTIONS[], ATTENTION[], CONVOLUTIONS[];
extern const small_program SMALL_PROGRAMS[]; /* ended by a NULL name */

#endif
