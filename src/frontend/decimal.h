/* decimal: a fast reader of decimal numbers. */
#ifndef SW_FRONTEND_DECIMAL_H
#define SW_FRONTEND_DECIMAL_H

#include "base/base.h"

/* Read `[+-]digits[.digits][e[+-]digits]`, "inf" or "nan", with or without a sign, from the start
 * of [at, end). *value is the nearest double, ties to even; a number that is too large becomes
 * infinite. Return how many bytes were used, 0 if there is no number. */
size_t sw_decimal_read(const char *at, const char *end, double *value);

#endif
