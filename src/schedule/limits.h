/*
 * Every constant of `schedule` that changes which schedule a program gets. A benchmark that asks
 * what a constant is worth passes its own limits in sw_schedule_options, and walks the fields by
 * sw_schedule_limit_fields.
 */
#ifndef SW_SCHEDULE_LIMITS_H
#define SW_SCHEDULE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sw_schedule_limits {
	/* Factor: candidate orders are also timed with every collective taking so many times its
	 * predicted seconds, and are merged by that time in two of the five ways. */
	double late_stretch;
	/* Share, 0..1: weight of that late time in the time by which candidates are compared. */
	double late_weight;
	/* Share of the kernels' seconds: stop the search once the incumbent exceeds them by no
	 * more. */
	double enough_share;
	/* Share of the incumbent's seconds: skip a merging of collectives that saves the stream of
	 * collectives less. */
	double merge_saving_share;
	/* Share of a collective's seconds: it is small, and may be merged, if it adds less than
	 * that to the collective that it joins. */
	double small_share;
	/* Factor of a collective's seconds: lead time of a prefetch before its deadline when starts
	 * are inserted between kernels. */
	double prefetch_lead;
	/* Factor of a collective's seconds: lead time before its deadline in the order by earliest
	 * start. */
	double earliest_start_lead;
	/* Factor of a collective's seconds: in the order that defers, the lead time of a gather
	 * before its deadline, and the time from a reduction's start to its readers. */
	double deferred_lead;
	/* Factor of a collective's seconds: lead time in the same order once its memory was
	 * exceeded. */
	double deferred_tight_lead;
	/* Edges per task: work budget of the orders by least work, after which they take
	 * collectives in program order. */
	int64_t lookahead_edges;
	/* Attempts: schedules made with an interpolated memory allowance before it falls to
	 * refit_last_share. */
	int64_t max_refits;
	/* Share: safety margin of an interpolated memory allowance, and the most that the next
	 * attempt gets of the last one's. */
	double refit_share;
	/* Share: the least that the next attempt gets of the last one's memory allowance. */
	double refit_min_share;
	/* Share: what attempts after max_refits get of the last one's memory allowance. */
	double refit_last_share;
} sw_schedule_limits;

extern const sw_schedule_limits sw_schedule_default_limits;

typedef enum sw_schedule_limit_type {
	SW_SCHEDULE_LIMIT_REAL, /* double */
	SW_SCHEDULE_LIMIT_COUNT /* int64_t */
} sw_schedule_limit_type;

typedef struct sw_schedule_limit_field {
	const char *name;
	size_t offset; /* in sw_schedule_limits */
	sw_schedule_limit_type type;
	const char *unit;
} sw_schedule_limit_field;

#define SW_SCHEDULE_N_LIMITS 14
extern const sw_schedule_limit_field sw_schedule_limit_fields[SW_SCHEDULE_N_LIMITS];

#endif
