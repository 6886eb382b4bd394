/*
 * What seconds of kernels and of messages cost at each place of a step, by what a plan's step waits
 * for.
 *
 * A device has two streams, of kernels and of collectives. Where a step waits for its collectives, a
 * second less of a kernel beside them gains nothing; where they hide, a second less of them gains
 * nothing. Both happen in one step: of data parallelism with sums of gradients that take longer than
 * the backward pass, the forward pass hides what gathers parameters, and the backward pass is hidden
 * by the sums. So the kernels of a computation are cut into spans of equal seconds, in their order,
 * and what a plan sends is played against them: a message may begin when all kernels before what it
 * sends have run, and is due when no kernel is left but those behind its reader (overlap_window.c).
 * Messages are sent one by one, those that are due first first, which finishes each when it is due if
 * any order does. With K(i) the seconds of the kernels of span i, and M(i, j) those of the messages
 * that may begin at span i at the earliest and are due before span j, or stop a kernel of the spans
 * between, span j begins at
 *
 *     S(j) = max(S(j - 1) + K(j - 1), max over i < j of S(i) + M(i, j))
 *
 * and going back from the end along what each maximum is tells which spans are HELD UP by messages.
 * Of the plans that were played, the share that holds a span up is the price of a second of messages
 * there, and the rest that of a second of kernels; a message costs the least price between its begin
 * and where it is due.
 */
#include "model/internal.h"

#include "partition/partition.h"

#include <math.h>
#include <stdlib.h>

/* Prices are multiples of this, so that there are few cost tables. */
#define PRICE_STEP 0.25

/* What is sent on the way to one computation's kernels. */
typedef struct traffic {
	double begun[SW_PRICE_SPANS][SW_PRICE_SPANS + 1]; /* [begins][due]: seconds; begins < due */
	double stops[SW_PRICE_SPANS];                     /* of messages that no span can hide */
	double seconds;
} traffic;

/* ---- what a plan sends ------------------------------------------------------------------- */

/* The spans beside which something may be sent: from the first to the one before `due`. */
typedef struct spans {
	int32_t first, due;
	bool hides; /* else no span is wholly within the window: it is the one in which that ends */
} spans;

static int32_t span_at(double seconds, double all_s)
{
	double place = all_s > 0 ? seconds / all_s * SW_PRICE_SPANS : 0;
	return (int32_t)fmin(fmax(place, 0), SW_PRICE_SPANS);
}

static spans spans_of(sw_overlap_span window)
{
	double rounding = window.all_s * 1e-9, span_s = window.all_s / SW_PRICE_SPANS;
	int32_t first = span_at(window.begin_s + span_s - rounding, window.all_s),
		due = span_at(window.end_s + rounding, window.all_s),
		last = SW_MIN(due, SW_PRICE_SPANS - 1);
	return first < due ? (spans){first, due, true} : (spans){last, last + 1, false};
}

static void add_message(traffic *t, sw_overlap_span window, double seconds)
{
	spans beside = spans_of(window);
	t->seconds += seconds;
	if (beside.hides)
		t->begun[beside.first][beside.due] += seconds;
	else
		t->stops[beside.first] += seconds;
}

/* Add what the local ops of an origin send. */
static void add_origin(const sw_analysis *a, const sw_program *local, const sw_origin *o, sw_id end,
                       traffic *of)
{
	const sw_program *program = a->program;
	sw_id maker = o->value != SW_NO_ID ? program->values.data[o->value].op : o->op, to = o->op;
	if (maker == SW_NO_ID)
		return;
	int32_t c = sw_op_at(program, maker)->computation;
	if (to != SW_NO_ID && sw_op_at(program, to)->computation != c)
		to = SW_NO_ID;
	double trips = o->op != SW_NO_ID ? a->roles.trips[o->op] : a->roles.trips[maker], seconds = 0;
	for (sw_id id = o->first; id < end; id++)
		seconds += sw_cost_collective_op_seconds(a->cluster, local, id) * trips;
	sw_overlap_span window = sw_overlap_span_of(a->overlap, maker, to);
	if (o->value == SW_NO_ID)
		window.end_s = window.begin_s; /* the op itself exchanges it */
	if (seconds > 0)
		add_message(&of[c], window, seconds);
}

static sw_status list_traffic(const sw_analysis *a, const sw_plan *plan, traffic *of, sw_error *err)
{
	sw_program *local = NULL;
	sw_origins origins = {0};
	sw_status status = sw_partition_with_origins(plan, &local, &origins, err);
	for (size_t i = 0; status == SW_OK && i < origins.items.len; i++)
		add_origin(a, local, &origins.items.data[i],
		           i + 1 < origins.items.len ? origins.items.data[i + 1].first
		                                     : (sw_id)local->ops.len,
		           of);
	sw_origins_clear(&origins);
	sw_program_free(local);
	return status;
}

/* ---- which spans are held up ------------------------------------------------------------- */

/* Count the spans of a computation that messages hold up; span_s: the seconds of a span's kernels.
 * Return the seconds of those that nothing holds up. */
static double play(const traffic *t, double span_s, double *held)
{
	double starts[SW_PRICE_SPANS + 1] = {0};
	int32_t from[SW_PRICE_SPANS + 1]; /* the span from which messages are sent until it; -1: none */
	for (int32_t j = 1; j <= SW_PRICE_SPANS; j++) {
		double sent_s = 0;
		starts[j] = starts[j - 1] + span_s + t->stops[j - 1];
		from[j] = -1;
		for (int32_t i = j - 1; i >= 0; i--) {
			sent_s += t->stops[i];
			for (int32_t due = i + 1; due <= j; due++)
				sent_s += t->begun[i][due];
			if (starts[i] + sent_s > starts[j]) {
				starts[j] = starts[i] + sent_s;
				from[j] = i;
			}
		}
	}
	double free_s = 0;
	for (int32_t j = SW_PRICE_SPANS; j > 0;) {
		int32_t begin = from[j] >= 0 ? from[j] : j - 1;
		free_s += from[j] >= 0 ? 0 : span_s;
		for (int32_t i = begin; i < j; i++)
			held[i] += from[j] >= 0;
		j = begin;
	}
	return free_s;
}

sw_status sw_prices_add(sw_prices *prices, const sw_analysis *a, const sw_plan *plan,
                        const sw_program_cost *cost, sw_error *err)
{
	size_t n = a->program->computations.len;
	traffic *of = sw_alloc(sizeof(*of) * (n + 1));
	if (!prices->held)
		prices->held = sw_alloc(sizeof(*prices->held) * (n + 1));
	sw_status status = list_traffic(a, plan, of, err);
	double all_s = sw_overlap_all_s(a->overlap, a->program->entry),
	       scale = all_s > 0 ? cost->compute_s / all_s : 0;
	prices->free_s = 0;
	for (size_t c = 0; status == SW_OK && c < n; c++) {
		double span_s = scale * sw_overlap_all_s(a->overlap, (int32_t)c) / SW_PRICE_SPANS;
		if (of[c].seconds > 0)
			prices->free_s =
				fmax(prices->free_s, play(&of[c], span_s, prices->held[c]));
	}
	prices->plays += status == SW_OK;
	free(of);
	return status;
}

void sw_prices_clear(sw_prices *prices)
{
	free(prices->held);
	*prices = (sw_prices){0};
}

/* ---- prices ------------------------------------------------------------------------------ */

static double rounded_price(const sw_analysis *a, double share)
{
	return fmax(round(share / PRICE_STEP) * PRICE_STEP, a->limits->min_overlap_weight);
}

/* Return the least share of the plans in which messages hold up one of the spans within a window of
 * the op's computation. */
static double least_held(const sw_analysis *a, sw_id op, sw_overlap_span window)
{
	const double *held = a->prices->held[sw_op_at(a->program, op)->computation];
	spans within = spans_of(window);
	double least = held[within.first];
	for (int32_t i = within.first; i < within.due; i++)
		least = fmin(least, held[i]);
	return least / a->prices->plays;
}

double sw_message_price(const sw_analysis *a, sw_id from, sw_id to)
{
	return rounded_price(a, least_held(a, from, sw_overlap_span_of(a->overlap, from, to)));
}

double sw_kernel_price(const sw_analysis *a, sw_id op)
{
	sw_overlap_span around = sw_overlap_span_of(a->overlap, op, op);
	around.begin_s = around.end_s = (around.begin_s + around.end_s) / 2;
	return rounded_price(a, 1 - least_held(a, op, around));
}
