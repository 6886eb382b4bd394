/*
 * The constants of the schedule that change its results: their values, units and meaning.
 */
#ifndef SW_SCHEDULE_LIMITS_H
#define SW_SCHEDULE_LIMITS_H

#include "base/limits.h"

/* X(name, value, unit, meaning, evidence): docs/limits.md says how it was measured. */
#define SW_SCHEDULE_LIMITS(X)                                                                      \
	X(late_stretch, 2, "times a collective's seconds",                                         \
	  "by which candidate orders are timed once more, and merged in two of the five ways",     \
	  "halved: 2/26, worst +0.01 %; doubled: 1/26, worst +1.65 %")                             \
	X(late_weight, 0.25, "share", "of that late time in the time that candidates compare by",   \
	  "halved: 1/26, < 0.01 %; doubled: 2/26, worst +0.11 %, both of 0.5; at 0.5 a given "      \
	  "merging of gradients was 5 % quicker in one of 126 cases")                              \
	X(min_gain, 1e-4, "of seconds",                                                            \
	  "of the kernels, below which the search stops, and of the incumbent, that a merging of " \
	  "collectives must save",                                                                 \
	  "halved: 0/26; doubled: 1/26, < 0.01 %")                                                 \
	X(small_share, 0.5, "of a collective's seconds",                                           \
	  "that it may add at most to a collective which it joins", "halved: 0/7; doubled: 0/7")   \
	X(merge_work, 1 << 20, "groups of reductions",                                              \
	  "of a class that are tried to find those of which the last ends soonest", "not measured") \
	X(prefetch_lead, 2, "times a collective's seconds",                                        \
	  "from a prefetch to its deadline, when starts are inserted between kernels",             \
	  "halved: 0/7, cpu x1.19; doubled: 0/7")                                                  \
	X(earliest_start_lead, 1.25, "times a collective's seconds",                               \
	  "from a start to its deadline, in the order by earliest start",                          \
	  "halved: 0/7; doubled: 0/7")                                                             \
	X(deferred_lead, 1.5, "times a collective's seconds",                                      \
	  "from a gather to its deadline, and from a reduction to its readers, in the order that " \
	  "defers",                                                                                \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(deferred_tight_lead, 1, "times a collective's seconds",                                  \
	  "for the same, once the memory of that order was exceeded",                              \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(lookahead_edges, 100, "edges per task",                                                  \
	  "looked at by the orders by least work, which then take collectives as they stand",      \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(max_refits, 3, "schedules",                                                              \
	  "within an interpolated memory allowance before it falls to refit_last_share",           \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(refit_share, 0.9, "of an allowance", "that the next attempt gets at most",               \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(refit_min_share, 0.5, "of an allowance", "that the next attempt gets at least",          \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(refit_last_share, 1. / 16, "of an allowance", "that attempts after max_refits get",      \
	  "halved: 0/14; doubled: 0/14")

typedef struct sw_schedule_limits {
	SW_SCHEDULE_LIMITS(SW_LIMIT_FIELD)
} sw_schedule_limits;

extern const sw_schedule_limits sw_schedule_default_limits;
extern const sw_limit_row sw_schedule_limit_rows[];
extern const size_t sw_schedule_n_limits;

#endif
