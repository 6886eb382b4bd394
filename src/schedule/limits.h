/*
 * The constants of the schedule that change its results: their values, units and meaning.
 */
#ifndef SW_SCHEDULE_LIMITS_H
#define SW_SCHEDULE_LIMITS_H

#include "base/limits.h"

/* X(name, value, unit, meaning) */
#define SW_SCHEDULE_LIMITS(X)                                                                      \
	X(late_stretch, 2, "times a collective's seconds",                                         \
	  "by which candidate orders are timed once more, and merged in two of the five ways")     \
	X(late_weight, 0.5, "share", "of that late time in the time that candidates compare by")   \
	X(enough_share, 1e-4, "of the kernels' seconds",                                           \
	  "by which the incumbent may exceed them for the search to stop")                         \
	X(merge_saving_share, 1e-4, "of the incumbent's seconds",                                  \
	  "that a merging of collectives must save the stream of collectives")                     \
	X(small_share, 0.5, "of a collective's seconds",                                           \
	  "that it may add at most to a collective which it joins")                                \
	X(prefetch_lead, 2, "times a collective's seconds",                                        \
	  "from a prefetch to its deadline, when starts are inserted between kernels")             \
	X(earliest_start_lead, 1.25, "times a collective's seconds",                               \
	  "from a start to its deadline, in the order by earliest start")                          \
	X(deferred_lead, 1.5, "times a collective's seconds",                                      \
	  "from a gather to its deadline, and from a reduction to its readers, in the order that " \
	  "defers")                                                                                \
	X(deferred_tight_lead, 1, "times a collective's seconds",                                  \
	  "for the same, once the memory of that order was exceeded")                              \
	X(lookahead_edges, 100, "edges per task",                                                  \
	  "looked at by the orders by least work, which then take collectives as they stand")      \
	X(max_refits, 3, "schedules",                                                              \
	  "within an interpolated memory allowance before it falls to refit_last_share")           \
	X(refit_share, 0.9, "of an allowance", "that the next attempt gets at most")               \
	X(refit_min_share, 0.5, "of an allowance", "that the next attempt gets at least")          \
	X(refit_last_share, 1. / 16, "of an allowance", "that attempts after max_refits get")

typedef struct sw_schedule_limits {
	SW_SCHEDULE_LIMITS(SW_LIMIT_FIELD)
} sw_schedule_limits;

extern const sw_schedule_limits sw_schedule_default_limits;
extern const sw_limit_row sw_schedule_limit_rows[];
extern const size_t sw_schedule_n_limits;

#endif
