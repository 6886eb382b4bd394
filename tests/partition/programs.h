/* Small training-like programs, written out by hand; what a dimension is shows in its size. */
#ifndef SW_TESTS_PARTITION_PROGRAMS_H
#define SW_TESTS_PARTITION_PROGRAMS_H

typedef struct small_program {
	const char *name, *text;
} small_program;

extern const char CONVOLUTIONS[];
extern const small_program SMALL_PROGRAMS[]; /* ended by a NULL name */

#endif
