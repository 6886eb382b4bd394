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

typedef struct stage_cutter {
	const sw_stage_finder *f;
	int32_t n, d;
	double *before_s; /* [n + 1]: the load of the positions before each */
	double most_bytes; /* that may cross a cut */
} stage_cutter;

static double cut_bytes(const stage_cutter *c, int32_t behind)
{
	return (double)c->f->up_bytes[behind] + (double)c->f->down_bytes[behind];
}

/* Is there a cut into at most d stages with no load above `most_s`? Greedily: each ends at the last
 * place at which it may. */
static bool can_cut(const stage_cutter *c, double most_s)
{
	int32_t stages = 1, from = 0, place = 0;
	for (int32_t i = 0; i < c->n; i++) {
		if (c->before_s[i + 1] - c->before_s[from] > most_s) {
			if (place == from)
				return false;
			from = place;
			stages++;
			if (c->before_s[i + 1] - c->before_s[from] > most_s)
				return false;
		}
		if (cut_bytes(c, i) <= c->most_bytes)
			place = i + 1;
	}
	return stages <= c->d;
}

static double least_max(const stage_cutter *c)
{
	double low = 0, high = c->before_s[c->n];
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;
		if (can_cut(c, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

/* best[k][i]: the fewest bytes with k stages up to position i, the last of which ends there. The
 * first position of the last stage moves only on as i does, so a queue of candidates suffices. */
static void extend(const stage_cutter *c, double most_s, const double *best, double *next,
                   int32_t *from)
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
		while (tail > head && c->before_s[i + 1] - c->before_s[queue[head] + 1] > most_s)
			head++;
		if (tail > head) {
			from[i] = queue[head];
			next[i] = best[queue[head]] + cut_bytes(c, queue[head]);
		}
	}
	free(queue);
}

/* Returns false if there are no d stages within the load. */
static bool cheapest_cuts(const stage_cutter *c, double most_s, int32_t *cuts)
{
	size_t n = (size_t)c->n, d = (size_t)c->d;
	double *best = sw_alloc(sizeof(double) * n), *next = sw_alloc(sizeof(double) * n);
	int32_t *from = sw_alloc(sizeof(int32_t) * n * d);
	for (size_t i = 0; i < n; i++)
		best[i] = c->before_s[i + 1] <= most_s ? 0 : INFINITY;
	for (size_t k = 1; k < d; k++) {
		extend(c, most_s, best, next, from + k * n);
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

/* About what a step takes: in the steady state the longest stage with its transfers to the next one
 * and back, for each microbatch; and one microbatch goes through all transfers. Transfers count
 * though they run beside passes: with as few microbatches in flight as 1F1B has, two neighbours go
 * through a cycle of passes and transfers, in which one waits while the other one's is under way.
 */
static double step_s(const stage_cutter *c, const int32_t *cuts)
{
	double longest_s = 0, all_s = 0;
	for (int32_t k = 0, from = 0; k < c->d; k++) {
		int32_t last = k < c->d - 1 ? cuts[k] : c->n - 1;
		double transfers_s =
			k < c->d - 1 ? cut_bytes(c, last) * c->f->options.byte_s : 0;
		longest_s = SW_MAX(longest_s,
		                   c->before_s[last + 1] - c->before_s[from] + transfers_s);
		from = last + 1;
		all_s += transfers_s;
	}
	return longest_s * c->f->out->n_microbatches + all_s;
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

/* Replace the cuts by those at narrow places alone that have a shorter step: at the d - 1 narrowest
 * ones, and at ever more. */
static void try_narrow(stage_cutter *c, int32_t *cuts)
{
	int32_t *other = sw_alloc(sizeof(int32_t) * (size_t)c->d);
	double tolerance = SW_MAX(c->f->options.tolerance, 1e-9), before = -1;
	for (int64_t places = c->d - 1; places < c->n && c->d > 1; places *= 2) {
		c->most_bytes = narrowest(c, (int32_t)places);
		if (c->most_bytes > before &&
		    cheapest_cuts(c, least_max(c) * (1 + tolerance), other) &&
		    step_s(c, other) < step_s(c, cuts))
			memcpy(cuts, other, sizeof(int32_t) * (size_t)(c->d - 1));
		before = c->most_bytes;
	}
	free(other);
}

/* ---- refusals --------------------------------------------------------------------------- */

static sw_status check_balance(const stage_cutter *c, sw_error *err)
{
	const sw_stage_finder *f = c->f;
	double total_s = c->before_s[c->n], share_s = total_s / c->d;
	int32_t worst = 0;
	for (int32_t i = 0; i < c->n; i++)
		if (c->before_s[i + 1] - c->before_s[i] >
		    c->before_s[worst + 1] - c->before_s[worst])
			worst = i;
	double worst_s = c->before_s[worst + 1] - c->before_s[worst];
	const sw_op *op = sw_op_at(f->program, f->ops[worst]);
	if (c->d == 1 || op->opcode != SW_OP_WHILE || worst_s <= HUGE_SHARE * share_s)
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
		if (given[k] <= (k ? given[k - 1] : -1) || given[k] >= c->n - 1)
			return sw_fail(err, SW_ERR_INPUT,
			               "cuts[%d] is %d: expected ascending positions from 0 to %d", k,
			               given[k], c->n - 2);
		cuts[k] = given[k];
	}
	return SW_OK;
}

sw_status sw_stage_cut(sw_stage_finder *f, sw_error *err)
{
	stage_cutter c = {f, f->n_positions, f->options.n_stages, NULL, INFINITY};
	int32_t *cuts = SW_NEW_N(&f->out->arena, int32_t, c.d);
	c.before_s = SW_NEW_N(&f->arena, double, c.n + 1);
	for (int32_t i = 0; i < c.n; i++)
		c.before_s[i + 1] =
			c.before_s[i] + f->position_forward_s[i] + f->position_backward_s[i];
	sw_status status = check_balance(&c, err);
	if (status)
		return status;
	double most_s = f->out->least_max_s = least_max(&c);
	/* Greedy stages may be fewer than d; d stages then need no more than that load either,
	 * unless a stage would be empty, which more tolerance does not mend. */
	if (f->options.cuts)
		status = take_cuts(&c, cuts, err);
	else if (!cheapest_cuts(&c, most_s * (1 + SW_MAX(f->options.tolerance, 1e-9)), cuts))
		status = sw_fail(err, SW_NO, "no stages: %d positions can't be cut into %d stages",
		                 c.n, c.d);
	else if (f->options.byte_s > 0)
		try_narrow(&c, cuts);
	if (status)
		return status;
	f->out->cuts = cuts;
	fill_loads(&c, cuts);
	fill_stages(&c, cuts);
	return SW_OK;
}
