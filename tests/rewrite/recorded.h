/* Programs of the fixtures on the inputs that were recorded with them. */
#ifndef TEST_REWRITE_RECORDED_H
#define TEST_REWRITE_RECORDED_H

#include "test.h"

#include "interpret/interpret.h"

void assert_ok(sw_status status, const sw_error *err);

typedef struct recorded {
	sw_tensor_file file;
} recorded;
/* Read the recording of a program's file NAME.hlo.gz. */
recorded read_recorded(const char *path);
void recorded_clear(recorded *inputs);
/* Check that one step of both programs gives the same outputs, bit for bit; a failure's message
 * contains `what`. */
/* Fail unless both programs compute the same results on the recorded inputs: relative to the largest
 * element of each, within the tolerance; below 0: to the bit. */
void assert_near(const sw_program *a, const sw_program *b, const recorded *inputs,
                 double tolerance, const char *what);
void assert_same_bits(const sw_program *a, const sw_program *b, const recorded *inputs,
                      const char *what);

#endif
