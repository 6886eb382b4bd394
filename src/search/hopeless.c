/*
 * Memory that is far too small: whatever is computed again, and in however many microbatches the
 * batch runs, the devices together have nowhere near the memory that the program holds at its peak.
 * Then only the choice that needs least is planned, so that the answer comes soon and says how much
 * is missing.
 */
#include "search/internal.h"

/* Find the choice with the least even share, from the one that should have it on. *share_bytes: 0
 * if some choice is not far too large, or if time is up. */
static void find_least(sw_search *s, sw_rewrites *least, int64_t *share_bytes)
{
	double enough = s->asked.limits->far_too_large * (double)sw_search_memory(s);
	*share_bytes = 0;
	size_t columns, n = sw_saving_choices(s, &columns);
	for (size_t i = n; i-- > 0;) {
		if (i % columns != 0 && i % columns != columns - 1)
			continue;
		sw_rewrites rewrites;
		int64_t share;
		double kernels_s;
		sw_status status = sw_saving_bound(s, i, &rewrites, &share, &kernels_s);
		if (status == SW_OK && (*share_bytes == 0 || share < *share_bytes)) {
			*share_bytes = share;
			*least = sw_rewrites_copy(&rewrites, &s->arena);
		}
		if ((status == SW_OK && (double)share <= enough) || sw_search_left_s(s) <= 0) {
			*share_bytes = 0;
			return;
		}
	}
}

sw_status sw_search_probe_memory(sw_search *s, size_t *number)
{
	const sw_variant *first = sw_search_variant(s, 0);
	int64_t share = first->share_bytes;
	sw_rewrites least = {0};
	sw_mesh_set all = {.rest = true};
	*number = 0;
	if (s->lender || (double)share <= s->asked.limits->far_too_large * (double)sw_search_memory(s) ||
	    sw_search_left_s(s) <= 0)
		return SW_OK;
	if (sw_saving_is_open(s)) {
		SW_TRY(sw_saving_begin(s));
		find_least(s, &least, &share);
		sw_saving_end(s);
	}
	s->hopeless_bytes = share;
	return share == 0 || !sw_saving_is_open(s)
	               ? SW_OK
	               : sw_variant_add(s, &least, &all, number, s->err);
}
