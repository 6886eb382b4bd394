/* decimal: numbers written in base ten, at speed. */
#ifndef SW_FRONTEND_DECIMAL_H
#define SW_FRONTEND_DECIMAL_H

#include "base/base.h"

/* Reads `[+-]digits[.digits][e[+-]digits]`, "inf" or "nan" with a sign or without, from the start
 * of [at, end). The nearest double, ties to even. Returns how many bytes it used, 0 if no number
 * stands there; a number that is too large becomes infinite. */
size_t sw_decimal_read(const char *at, const char *end, double *value);

#endif
