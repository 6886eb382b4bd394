/*
 * brute_trial: one sample under one strategy, for the files of brute alone.
 */
#ifndef SW_TESTS_RULES_BRUTE_TRIAL_H
#define SW_TESTS_RULES_BRUTE_TRIAL_H

#include "rules/brute.h"

typedef struct brute_trial {
	brute_sample *sample;
	const sw_atoms *atoms;
	const sw_rule *rule;
	sw_tensor whole[BRUTE_MAX_VALUES], expected[BRUTE_MAX_VALUES];
	sw_layout operands[BRUTE_MAX_VALUES], results[BRUTE_MAX_VALUES];
	const sw_strategy *strategy;
	sw_rng *rng;
	brute_counts *counts;
} brute_trial;

/* Print the trial and fail. */
void brute_fail(const brute_trial *t, const char *what);
/* Draw the whole operands. */
void brute_random_operands(brute_trial *t);
/* Run the sample's own program; return false if the interpreter does not implement the op. */
bool brute_expect(const brute_sample *s, const sw_tensor *in, sw_tensor *out, uint32_t n_out);
/* Run the strategy and compare. plain: partial operands are the whole on one device. */
void brute_execute(const brute_trial *t, bool plain);

#endif
