/* Where to cut: exactly, over all cuts of the positions. First the least possible largest load;
 * then, with no stage more than the tolerance above it, the fewest bytes that cross. Where a byte
 * has a price, so are cuts at narrow places alone, the narrower the fewer; those with the shortest
 * step are taken. */
#include <math.h>
#include <string.h>

#include "stages/internal.h"

/* A loop of the program that takes more than this share of a stage's even part stands against
 * stages: what is in it could be balanced, but it is one op. */
#define HUGE_SHARE 1.5

/* Cut k is behind a position from low[k] to high[k]. */
typedef struct stage_cutter {
	const sw_stage_finder *f;
	int32_t n, d;
	double *before_s;    /* [n + 1]: the load of the positions before each */
	const double *speed; /* [d] */
	int32_t *low, *high; /* [d - 1]; low -1: anywhere */
	double most_bytes;   /* that may cross a cut */
} stage_cutter;

static double cut_bytes(const stage_cutter *c, int32_t behind)
{
	return (double)c->f->up_bytes[behind] + (double)c->f->down_bytes[behind];
}

/* Seconds of stage k with the positions from `from` to `last`. */
static double stage_s(const stage_cutter *c, int32_t k, int32_t from, int32_t last)
{
	return (c->before_s[last + 1] - c->before_s[from]) / c->speed[k];
}

/* Is there a cut into at most d stages, none of which takes more than `most_s`? Greedily: each ends
 * at the last place at which it may. */
static bool can_cut(const stage_cutter *c, double most_s)
{
	int32_t from = 0;
	for (int32_t k = 0; k + 1 < c->d; k++) {
		int32_t place = from - 1;
		for (int32_t i = from; i <= c->high[k] && stage_s(c, k, from, i) <= most_s; i++)
			if (cut_bytes(c, i) <= c->most_bytes)
				place = i;
		if (place < c->low[k])
			return false;
		from = place + 1;
	}
	return stage_s(c, c->d - 1, from, c->n - 1) <= most_s;
}

static double slowest(const stage_cutter *c)
{
	double least = c->speed[0];
	for (int32_t k = 1; k < c->d; k++)
		least = SW_MIN(least, c->speed[k]);
	return least;
}

static double least_max(const stage_cutter *c)
{
	double low = 0, high = c->before_s[c->n] / slowest(c);
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;
		if (can_cut(c, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

static bool may_end(const stage_cutter *c, int32_t k, int32_t i)
{
	return k + 1 == c->d || (i >= c->low[k] && i <= c->high[k]);
}

/* best[i]: the fewest bytes with k stages, the last of which ends at position i; next[i]: with one
 * more, stage k. The first position of the last stage moves only on as i does, so a queue of
 * candidates suffices. */
static void extend(const stage_cutter *c, int32_t k, double most_s, const double *best,
                   double *next, int32_t *from)
{
	int32_t *queue = sw_alloc(sizeof(int32_t) * (size_t)(c->n + 1));
	int32_t head = 0, tail = 0;
	for (int32_t i = 0; i < c->n; i++) {
		next[i] = INFINITY;
		from[i] = -1;
		if (i > 0 && isfinite(best[i - 1]) && cut_bytes(c, i - 1) <= c->most_bytes) {
			double cost = best[i - 1] + cut_bytes(c, i - 1);
			while (tail > head &&
			       best[queue[tail - 1]] + cut_bytes(c, queue[tail - 1]) >= cost)
				tail--;
			queue[tail++] = i - 1;
		}
		while (tail > head && stage_s(c, k, queue[head] + 1, i) > most_s)
			head++;
		if (tail > head && may_end(c, k, i)) {
			from[i] = queue[head];
			next[i] = best[queue[head]] + cut_bytes(c, queue[head]);
		}
	}
	free(queue);
}

/* Returns false if there are no d stages that take at most so long. */
static bool cheapest_cuts(const stage_cutter *c, double most_s, int32_t *cuts)
{
	size_t n = (size_t)c->n, d = (size_t)c->d;
	double *best = sw_alloc(sizeof(double) * n), *next = sw_alloc(sizeof(double) * n);
	int32_t *from = sw_alloc(sizeof(int32_t) * n * d);
	for (int32_t i = 0; i < c->n; i++)
		best[i] = stage_s(c, 0, 0, i) <= most_s && may_end(c, 0, i) ? 0 : INFINITY;
	for (size_t k = 1; k < d; k++) {
		extend(c, (int32_t)k, most_s, best, next, from + k * n);
		double *other = best;
		best = next;
		next = other;
	}
	bool found = isfinite(best[n - 1]);
	int32_t at = c->n - 1;
	for (size_t k = d; found && k-- > 1;) {
		at = from[k * n + (size_t)at];
		cuts[k - 1] = at;
	}
	free(best);
	free(next);
	free(from);
	return found;
}

/* The cheapest cuts with little more than the least possible time; where stages would be empty then,
 * with more. */
static bool balanced_cuts(const stage_cutter *c, double least_s, int32_t *cuts)
{
	double most_s = least_s * (1 + SW_MAX(c->f->options.tolerance, 1e-9)),
	       all_s = c->before_s[c->n] / slowest(c);
	while (!cheapest_cuts(c, most_s, cuts)) {
		if (most_s > all_s)
			return false;
		most_s = most_s > 0 ? 2 * most_s : all_s;
	}
	return true;
}

/* About what a step takes (sw_stage_step_s), where a byte behind each stage takes so long. */
static double step_s(const stage_cutter *c, const int32_t *cuts, const double *byte_s)
{
	sw_stage_seconds seconds = {0};
	for (int32_t k = 0, from = 0; k < c->d; k++) {
		int32_t last = k < c->d - 1 ? cuts[k] : c->n - 1;
		double transfers_s =
			k < c->d - 1 ? cut_bytes(c, last) * byte_s[k] : 0;
		sw_stage_seconds_add(&seconds, stage_s(c, k, from, last) + transfers_s);
		from = last + 1;
	}
	return sw_stage_step_s(seconds, c->f->out->n_microbatches);
}

/* The largest of the smallest numbers of bytes at which there are at least so many places. */
static double narrowest(const stage_cutter *c, int32_t places)
{
	double low = 0, high = 0;
	for (int32_t i = 0; i < c->n - 1; i++)
		high = SW_MAX(high, cut_bytes(c, i));
	while (high - low > 1) {
		double middle = floor((low + high) / 2);
		int32_t n = 0;
		for (int32_t i = 0; i < c->n - 1; i++)
			n += cut_bytes(c, i) <= middle;
		if (n >= places)
			high = middle;
		else
			low = middle;
	}
	return high;
}

/* Cuts, and what a step takes with them, by each of the two prices of a byte. */
typedef struct cut_trial {
	int32_t *cuts;
	double whole_s, split_s;
} cut_trial;
typedef SW_VEC(cut_trial) cut_trials;

static void add_trial(const stage_cutter *c, cut_trials *trials, const int32_t *cuts)
{
	const sw_stage_options *o = &c->f->options;
	sw_vec_push(trials,
	            ((cut_trial){sw_arena_copy(&c->f->out->arena, cuts,
	                                       sizeof(int32_t) * (size_t)(c->d - 1)),
	                         step_s(c, cuts, o->byte_s), step_s(c, cuts, o->split_byte_s)}));
}

/* The cuts whose step is least far above the shortest, whichever price is the true one. */
static const int32_t *safest(const cut_trials *trials)
{
	double whole_s = INFINITY, split_s = INFINITY, least = INFINITY;
	const int32_t *cuts = NULL;
	for (size_t i = 0; i < trials->len; i++) {
		whole_s = fmin(whole_s, trials->data[i].whole_s);
		split_s = fmin(split_s, trials->data[i].split_s);
	}
	for (size_t i = 0; i < trials->len; i++) {
		const cut_trial *t = &trials->data[i];
		double far = fmax(t->whole_s * split_s, t->split_s * whole_s);
		if (far < least) {
			least = far;
			cuts = t->cuts;
		}
	}
	return cuts;
}

/* Replace the cuts by those at narrow places alone, if their step is shorter: at the d - 1 narrowest
 * ones, and at ever more. */
static void try_narrow(stage_cutter *c, int32_t *cuts)
{
	size_t bytes = sizeof(int32_t) * (size_t)(c->d - 1);
	int32_t *other = sw_alloc(sizeof(int32_t) * (size_t)c->d);
	double tolerance = SW_MAX(c->f->options.tolerance, 1e-9), before = -1;
	cut_trials trials = {0};
	add_trial(c, &trials, cuts);
	for (int64_t places = c->d - 1; places < c->n && c->d > 1; places *= 2) {
		c->most_bytes = narrowest(c, (int32_t)places);
		if (c->most_bytes > before &&
		    cheapest_cuts(c, least_max(c) * (1 + tolerance), other))
			add_trial(c, &trials, other);
		before = c->most_bytes;
	}
	const int32_t *best = safest(&trials);
	if (best)
		memcpy(cuts, best, bytes);
	sw_vec_clear(&trials);
	free(other);
}

/* ---- refusals --------------------------------------------------------------------------- */

static sw_status check_balance(const stage_cutter *c, sw_error *err)
{
	const sw_stage_finder *f = c->f;
	double total_s = c->before_s[c->n], share_s = total_s / c->d, quickest = 0;
	for (int32_t k = 0; k < c->d; k++)
		quickest = SW_MAX(quickest, c->speed[k]);
	int32_t worst = 0;
	for (int32_t i = 0; i < c->n; i++)
		if (c->before_s[i + 1] - c->before_s[i] >
		    c->before_s[worst + 1] - c->before_s[worst])
			worst = i;
	double worst_s = c->before_s[worst + 1] - c->before_s[worst];
	const sw_op *op = sw_op_at(f->program, f->ops[worst]);
	if (c->d == 1 || op->opcode != SW_OP_WHILE || worst_s <= HUGE_SHARE * share_s * quickest)
		return SW_OK;
	return sw_fail_at(err, SW_NO, f->program->source, op->line, 0,
	                  "no stages: %s '%s' with its backward pass is %.0f %% of the step, more "
	                  "than one of %d stages can have; it is a loop, which is not cut",
	                  sw_op_opcode_name(op), op->name, 100 * worst_s / total_s, c->d);
}

/* ---- loads ------------------------------------------------------------------------------ */

static void fill_loads(stage_cutter *c, const int32_t *cuts)
{
	sw_stages *out = c->f->out;
	sw_stage_load *loads = SW_NEW_N(&out->arena, sw_stage_load, c->d);
	int32_t s = 0;
	for (int32_t i = 0; i < c->n; i++) {
		loads[s].forward_s += c->f->position_forward_s[i];
		loads[s].backward_s += c->f->position_backward_s[i];
		loads[s].flops += c->f->position_flops[i];
		if (s < c->d - 1 && cuts[s] == i) {
			loads[s].forward_bytes = c->f->up_bytes[i];
			loads[s].backward_bytes = c->f->down_bytes[i];
			s++;
		}
	}
	out->loads = loads;
}

static void fill_stages(stage_cutter *c, const int32_t *cuts)
{
	const sw_stage_finder *f = c->f;
	int32_t *stage = SW_NEW_N(&f->out->arena, int32_t, f->program->ops.len),
		*of_position = SW_NEW_N(&f->out->arena, int32_t, c->n);
	for (int32_t i = 0, s = 0; i < c->n; i++) {
		of_position[i] = s;
		if (s < c->d - 1 && cuts[s] == i)
			s++;
	}
	for (size_t i = 0; i < f->program->ops.len; i++)
		stage[i] = -1;
	for (size_t i = 0; i < f->body->ops.len; i++) {
		sw_id id = f->body->ops.data[i];
		if (f->position[id] < 0)
			continue;
		int32_t s = of_position[f->position[id]];
		stage[id] = f->forward[id] ? s : 2 * c->d - 1 - s;
	}
	f->out->stage = stage;
	for (uint32_t k = 0; k < f->n_inner; k++) {
		sw_position_span span = f->parameters[k];
		f->out->n_parameters += span.last >= 0;
		f->out->n_shared +=
			span.last >= 0 && of_position[span.first] != of_position[span.last];
	}
}

static sw_status take_cuts(const stage_cutter *c, int32_t *cuts, sw_error *err)
{
	const int32_t *given = c->f->options.cuts;
	for (int32_t k = 0; k + 1 < c->d; k++) {
		int32_t least = SW_MAX(k ? given[k - 1] + 1 : 0, c->low[k]);
		if (given[k] < least || given[k] > c->high[k])
			return sw_fail(err, SW_ERR_INPUT,
			               "cuts[%d] is %d: expected ascending positions, this one from %d to %d",
			               k, given[k], least, c->high[k]);
		cuts[k] = given[k];
	}
	return SW_OK;
}

/* ---- pins ------------------------------------------------------------------------------- */

/* What an element of the loop begins with, before it was converted or transposed. */
static sw_id source_of(const sw_stage_finder *f, uint32_t element)
{
	sw_id value = f->loop->operands[element];
	const sw_op *op = sw_op_at(f->program, sw_maker_of(f->program, value));
	while (op->n_operands == 1 && op->opcode != SW_OP_WHILE) {
		value = op->operands[0];
		op = sw_op_at(f->program, sw_maker_of(f->program, value));
	}
	return value;
}

/* Per value of the entry: one more than the position of the first forward reader of what the loop
 * begins with by it; 0: there is none. */
static int32_t *first_readers(const sw_stage_finder *f, sw_arena *arena)
{
	int32_t *first = SW_NEW_N(arena, int32_t, f->program->values.len);
	for (uint32_t k = 0; k < f->n_inner; k++) {
		sw_position_span span = f->parameters[k];
		int32_t *of = &first[source_of(f, k)];
		if (span.last >= 0 && (*of == 0 || span.first + 1 < *of))
			*of = span.first + 1;
	}
	return first;
}

typedef struct placed_pin {
	const sw_stage_pin *pin;
	int32_t at; /* its position */
} placed_pin;

/* Of the pins that are in stage k or before (`low`), or behind it, the one that leaves cut k least
 * room. */
static const placed_pin *tightest(const placed_pin *pins, size_t n, int32_t k, bool low)
{
	const placed_pin *best = NULL;
	for (size_t i = 0; i < n; i++)
		if ((pins[i].pin->stage <= k) == low &&
		    (!best || (low ? pins[i].at > best->at : pins[i].at < best->at)))
			best = &pins[i];
	return best;
}

static sw_status nothing_placed(const sw_stage_pin *pin, sw_error *err)
{
	return sw_fail_at(err, SW_ERR_INPUT, "", pin->line, 0,
	                  pin->op == SW_NO_ID
	                          ? "'%s' is read by no op of the forward pass: it goes where its "
	                            "readers are; leave it out"
	                          : "'%s' needs no state and data, or is not in the loop over "
	                            "microbatches: it is computed wherever it is read; leave it out",
	                  pin->pattern);
}

/* Find the positions of what is pinned; each pattern has some. */
static sw_status find_pins(const sw_stage_finder *f, const int32_t *readers, placed_pin *placed,
                           size_t *n, sw_error *err)
{
	const sw_stage_pin *pins = f->options.pins;
	bool found = false;
	*n = 0;
	for (size_t i = 0; i < f->options.n_pins; i++) {
		int32_t at = pins[i].op != SW_NO_ID ? f->position[pins[i].op]
		                                    : readers[pins[i].input] - 1;
		bool last = i + 1 == f->options.n_pins || pins[i + 1].pattern != pins[i].pattern;
		found |= at >= 0;
		if (at >= 0)
			placed[(*n)++] = (placed_pin){&pins[i], at};
		if (last && !found)
			return nothing_placed(&pins[i], err);
		found &= !last;
	}
	return SW_OK;
}

/* Pins between which cut k has no place: one behind it, `high`, comes before one before it. */
static sw_status no_place(const placed_pin *low, const placed_pin *high, sw_error *err)
{
	const placed_pin *one = high ? high : low;
	if (low && high)
		return sw_fail_at(err, SW_ERR_INPUT, "", high->pin->line, 0,
		                  "'%s' of stage %d comes %s '%s' of stage %d: stages ascend along "
		                  "the forward pass",
		                  high->pin->name, high->pin->stage,
		                  low->at == high->at ? "with" : "before", low->pin->name,
		                  low->pin->stage);
	return sw_fail_at(err, SW_ERR_INPUT, "", one->pin->line, 0,
	                  "'%s' in stage %d leaves nothing to the stages %s it", one->pin->name,
	                  one->pin->stage, low ? "behind" : "before");
}

/* Set where each cut may be. */
static sw_status place_pins(stage_cutter *c, sw_arena *arena, sw_error *err)
{
	size_t n;
	placed_pin *pins = SW_NEW_N(arena, placed_pin, c->f->options.n_pins + 1);
	c->f->out->low = c->low = SW_NEW_N(&c->f->out->arena, int32_t, c->d);
	c->f->out->high = c->high = SW_NEW_N(&c->f->out->arena, int32_t, c->d);
	SW_TRY(find_pins(c->f, first_readers(c->f, arena), pins, &n, err));
	for (int32_t k = 0; k + 1 < c->d; k++) {
		const placed_pin *low = tightest(pins, n, k, true),
				 *high = tightest(pins, n, k, false);
		c->low[k] = low ? low->at : -1;
		c->high[k] = high ? high->at - 1 : c->n - 2;
		if ((low && c->low[k] > c->high[k]) || (high && c->high[k] < 0))
			return no_place(low, high, err);
	}
	return SW_OK;
}

/* ---- the whole -------------------------------------------------------------------------- */

sw_status sw_stage_cut(sw_stage_finder *f, sw_error *err)
{
	stage_cutter c = {.f = f,
	                  .n = f->n_positions,
	                  .d = f->options.n_stages,
	                  .speed = f->options.speed,
	                  .most_bytes = INFINITY};
	double *ones = SW_NEW_N(&f->arena, double, c.d);
	for (int32_t k = 0; k < c.d; k++)
		ones[k] = 1;
	c.speed = c.speed ? c.speed : ones;
	int32_t *cuts = SW_NEW_N(&f->out->arena, int32_t, c.d);
	c.before_s = SW_NEW_N(&f->arena, double, c.n + 1);
	for (int32_t i = 0; i < c.n; i++)
		c.before_s[i + 1] =
			c.before_s[i] + f->position_forward_s[i] + f->position_backward_s[i];
	if (!f->options.cuts)
		SW_TRY(check_balance(&c, err));
	SW_TRY(place_pins(&c, &f->arena, err));
	sw_status status = SW_OK;
	f->out->least_max_s = least_max(&c);
	if (f->options.cuts)
		status = take_cuts(&c, cuts, err);
	else if (!balanced_cuts(&c, f->out->least_max_s, cuts))
		status = sw_fail(err, f->options.n_pins ? SW_ERR_INPUT : SW_NO,
		                 "no stages: %d positions can't be cut into %d stages",
		                 c.n, c.d);
	else if (f->options.byte_s)
		try_narrow(&c, cuts);
	if (status)
		return status;
	f->out->cuts = cuts;
	fill_loads(&c, cuts);
	fill_stages(&c, cuts);
	return SW_OK;
}
