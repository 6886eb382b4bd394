/*
 * number: elements of literals as doubles, for every element type, f4 and f8 included.
 *
 * The conversion from element to double is exact, except that 64-bit integers are rounded. In the
 * conversion from double to element, floats round to nearest even; beyond the largest number they
 * become infinity, or its substitute in types without infinity (NaN; f4e2m1fn: the largest number);
 * integers are clamped to their range, and NaN becomes 0.
 */
#ifndef SW_NUMBER_H
#define SW_NUMBER_H

#include "program/program.h"

/* Return element `index` of an array; of a complex element its real part. */
double sw_number_get(sw_type type, const void *data, int64_t index);
void sw_number_set(sw_type type, void *data, int64_t index, double value);
/* Get or set an integer or pred element exactly; unsigned ones as their bits. */
int64_t sw_integer_get(sw_type type, const void *data, int64_t index);
void sw_integer_set(sw_type type, void *data, int64_t index, int64_t value);
/* Return the bits of a float element, and how many bits the mantissa of its type has. */
uint64_t sw_float_bits(sw_type type, const void *data, int64_t index);
int sw_float_mantissa_bits(sw_type type);
/* Return the smallest and the largest value of an integer type; u64 ends at INT64_MAX here. */
void sw_integer_range(sw_type type, int64_t *low, int64_t *high);

#endif
