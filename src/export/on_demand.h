/*
 * on_demand: a program is written again with other ops in place of some, each value when it is
 * needed first, since what takes the place of several ops may need values that stand behind the
 * first of them.
 */
#ifndef SW_EXPORT_ON_DEMAND_H
#define SW_EXPORT_ON_DEMAND_H

#include "program/program.h"

typedef enum sw_giving {
	SW_GIVEN,
	SW_GIVE_LATER, /* other values are needed first, which sw_on_demand_have asked for */
	SW_GIVE_FAILED,
} sw_giving;

typedef struct sw_on_demand sw_on_demand;
/* Write what gives a value of `in` into computation c of `out`, and set w->value of all that it
 * gives. */
typedef sw_giving sw_give(sw_on_demand *w, int32_t c, sw_id value);

struct sw_on_demand {
	const sw_program *in;
	sw_program *out;
	int32_t *computation; /* of `in` -> of `out`; -1: not written yet */
	sw_id *value;         /* of `in` -> of `out`; SW_NO_ID: not written yet */
	bool *begun;          /* per value of `in`: it was asked for what it needs */
	SW_VEC(sw_id) stack;  /* values of `in` that are being written */
	sw_give *give;
};

void sw_on_demand_open(sw_on_demand *w, const sw_program *in, sw_give *give);
/* Write the whole program, which the caller owns, and free all else. Fails if values need one
 * another: "the <what> can't be written". O(uses). */
sw_status sw_on_demand_close(sw_on_demand *w, sw_program **out, const char *what, sw_error *err);

/* For `give`: return whether all these values are written; ask for those that are not. */
bool sw_on_demand_have(sw_on_demand *w, const sw_id *values, uint32_t n);
/* For `give`: copy the op that gives the value. */
sw_giving sw_on_demand_copy(sw_on_demand *w, int32_t c, sw_id value);

/* Return whether one of the values is made of one of those `given`, or is one. */
bool sw_needs_given(const sw_program *program, const sw_id *values, uint32_t n, const sw_id *given,
                    uint32_t n_given);

#endif
