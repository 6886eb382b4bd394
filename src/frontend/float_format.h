/* float_format: the bits of floating-point types, from f4 to f64. */
#ifndef SW_FRONTEND_FLOAT_FORMAT_H
#define SW_FRONTEND_FLOAT_FORMAT_H

#include "program/program.h"

/* Stores the element of `type` that is nearest to value, ties to even. false: the type has no such
 * value (too large, or an infinity or NaN that it lacks). An infinite value is stored where there is
 * one, a finite value never becomes infinite. */
bool sw_float_store(sw_type type, double value, void *out);
/* The NaN whose mantissa bits are `payload`; false if it isn't one. */
bool sw_float_store_nan(sw_type type, bool negative, uint64_t payload, void *out);

#endif
