/*
 * runnable: what the tests of fixed strategies share.
 */
#ifndef SW_TESTS_SEARCH_RUNNABLE_H
#define SW_TESTS_SEARCH_RUNNABLE_H

#include "layout/layout.h"

static const char *const RUNNABLE[] = {"mlp", "mlp-bf16", "gpt-tiny", "gpt-tiny-scan",
                                       "gpt-tiny-clip"};

static inline bool splits(const sw_layout *layout)
{
	return sw_layout_split_atoms(layout, -1) != 0;
}

#endif
