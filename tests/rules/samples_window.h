/* Samples of windows, each from a line of text. */
#ifndef SW_TESTS_RULES_SAMPLES_WINDOW_H
#define SW_TESTS_RULES_SAMPLES_WINDOW_H

#include "rules/brute.h"

/* result: "f32[4]" or "(f32[4], s32[4])"; operands: shapes with blanks between them; op:
 * "convolution"; attributes may name the computations of samples_window.c. */
void window_sample(brute_sample *sample, const char *result, const char *operands, const char *op,
                   const char *attributes);

bool brute_convolution(brute_sample *sample, int variant);

#endif
