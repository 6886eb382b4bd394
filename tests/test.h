/* Included by every test: cmocka, after the headers that it needs, and base. */
#ifndef SW_TEST_H
#define SW_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#endif
