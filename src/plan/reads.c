/* The readers of a plan that re-gather a value. */
#include "plan/plan.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const sw_read *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

bool sw_plan_regathers(const sw_plan *plan, sw_id value, sw_id op)
{
	sw_read key = {value, op};
	return plan->regathered.len > 0 &&
	       bsearch(&key, plan->regathered.data, plan->regathered.len, sizeof(key), by_value) !=
	               NULL;
}

void sw_reads_sort(sw_reads *reads)
{
	size_t n = 0;
	if (reads->len > 0)
		qsort(reads->data, reads->len, sizeof(sw_read), by_value);
	for (size_t i = 0; i < reads->len; i++)
		if (n == 0 || by_value(&reads->data[n - 1], &reads->data[i]) != 0)
			reads->data[n++] = reads->data[i];
	reads->len = n;
}

void sw_reads_copy(sw_reads *to, const sw_reads *from)
{
	to->len = 0;
	for (size_t i = 0; i < from->len; i++)
		sw_vec_push(to, from->data[i]);
}
