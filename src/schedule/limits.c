/* The default of each limit, and the table of all of them. */
#include "schedule/limits.h"

const sw_schedule_limits sw_schedule_default_limits = {
	.late_stretch = 2,
	.late_weight = 0.5,
	.enough_share = 1e-4,
	.merge_saving_share = 1e-4,
	.small_share = 0.5,
	.prefetch_lead = 2,
	.earliest_start_lead = 1.25,
	.deferred_lead = 1.5,
	.deferred_tight_lead = 1,
	.lookahead_edges = 100,
	.max_refits = 3,
	.refit_share = 0.9,
	.refit_min_share = 0.5,
	.refit_last_share = 1. / 16,
};

#define REAL(name, unit)                                                                           \
	{                                                                                          \
#name, offsetof(sw_schedule_limits, name), SW_SCHEDULE_LIMIT_REAL, unit            \
	}
#define COUNT(name, unit)                                                                          \
	{                                                                                          \
#name, offsetof(sw_schedule_limits, name), SW_SCHEDULE_LIMIT_COUNT, unit           \
	}

const sw_schedule_limit_field sw_schedule_limit_fields[SW_SCHEDULE_N_LIMITS] = {
	REAL(late_stretch, "factor of a collective's seconds"),
	REAL(late_weight, "share of the time compared"),
	REAL(enough_share, "share of the kernels' seconds"),
	REAL(merge_saving_share, "share of the incumbent's seconds"),
	REAL(small_share, "share of a collective's seconds"),
	REAL(prefetch_lead, "factor of a collective's seconds"),
	REAL(earliest_start_lead, "factor of a collective's seconds"),
	REAL(deferred_lead, "factor of a collective's seconds"),
	REAL(deferred_tight_lead, "factor of a collective's seconds"),
	COUNT(lookahead_edges, "edges per task"),
	COUNT(max_refits, "attempts"),
	REAL(refit_share, "share of a memory allowance"),
	REAL(refit_min_share, "share of a memory allowance"),
	REAL(refit_last_share, "share of a memory allowance"),
};
