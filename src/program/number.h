/*
 * number: elements of literals as doubles, for every element type, f4 and f8 included.
 *
 * Exact from element to double (64-bit integers apart, which round). From double to element: floats
 * round to nearest even; beyond the largest number they become infinity, or what the type has
 * instead (NaN; f4e2m1fn: the largest number); integers are cut to their range, NaN is 0.
 */
#ifndef SW_NUMBER_H
#define SW_NUMBER_H

#include "program/program.h"

/* Element `index` of an array; of a complex one its real part. */
double sw_number_get(sw_type type, const void *data, int64_t index);
void sw_number_set(sw_type type, void *data, int64_t index, double value);
/* Integers and pred, exactly: unsigned ones as their bits. */
int64_t sw_integer_get(sw_type type, const void *data, int64_t index);
void sw_integer_set(sw_type type, void *data, int64_t index, int64_t value);
/* Bits of a float element, and how many of them are the mantissa's. */
uint64_t sw_float_bits(sw_type type, const void *data, int64_t index);
int sw_float_mantissa_bits(sw_type type);
/* Smallest and largest value of an integer type; u64 ends at INT64_MAX here. */
void sw_integer_range(sw_type type, int64_t *low, int64_t *high);

#endif
