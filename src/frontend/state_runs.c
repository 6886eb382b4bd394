/*
 * Pairs of results and inputs by use.
 *
 * A step takes its state as trees of arrays and returns the trees: neighbours among the results
 * replace neighbours among the inputs. So a result is paired not by its own way back alone, but as
 * a member of a RUN: results o, o+1, ... that are made from inputs i, i+1, ..., of which each is
 * the nearest to its result of those that are free. A member that is d > 0 ops from its input
 * speaks for its run with the weight 1 / (1 + d)^2, and the run of the largest sum is paired first.
 * A loss that is divided by a loss scale is near to the scale, but the scale's own next value
 * stands within a long run.
 *
 * Members may be missing inside of a run, or at its ends: an optimizer returns zeros where it keeps
 * nothing, a learning rate from a schedule, the gradient that the next step compares with. They are
 * filled in when all results that are made from an input are paired. A result that IS an input
 * comes last: it may be a weight that is frozen, or the previous value that is kept beside the new
 * one.
 */
#include "frontend/state_pairs.h"

#include <math.h>
#include <stdlib.h>

#define LONGEST_GAP 256 /* missing members between two of a run */

typedef struct run_member {
	int64_t diagonal; /* input - output, which all members of a run have in common */
	uint32_t output, input, distance;
	double weight;
} run_member;
typedef SW_VEC(run_member) run_members;

typedef struct state_run {
	size_t first, end; /* of members, among which some may be paired already */
	double weight;     /* 0: there is none */
} state_run;

static bool is_free(const sw_state_pairing *x, uint32_t output, uint32_t input)
{
	return x->may_input[input] && x->may_output[output] && !x->taken[input] &&
	       x->of_output[output] < 0;
}

static int by_diagonal(const void *a, const void *b)
{
	const run_member *x = a, *y = b;
	if (x->diagonal != y->diagonal)
		return x->diagonal < y->diagonal ? -1 : 1;
	return (x->output > y->output) - (x->output < y->output);
}

/* Collect the ways from results to inputs that are no identities, or those that are. An input that
 * another result is may be a weight that is frozen, and others are made from it: that speaks a
 * little less for them. */
static void collect(const sw_state_pairing *x, bool identities, run_members *found)
{
	bool *returned = sw_alloc((x->n_inputs + 1) * sizeof(*returned));
	for (uint32_t i = 0; i <= x->n_inputs; i++)
		returned[i] = false;
	for (size_t u = 0; u < x->uses.len; u++)
		if (x->uses.data[u].distance == 0)
			returned[x->uses.data[u].input] = true;
	for (size_t u = 0; u < x->uses.len; u++) {
		sw_state_use use = x->uses.data[u];
		double root = 1.0 + use.distance;
		if ((use.distance == 0) != identities)
			continue;
		sw_vec_push(found,
		            ((run_member){(int64_t)use.input - use.output, use.output, use.input,
		                          use.distance,
		                          (returned[use.input] ? 0.99 : 1.0) / (root * root)}));
	}
	free(returned);
	if (found->len)
		qsort(found->data, found->len, sizeof(*found->data), by_diagonal);
}

/* Return whether all results between two of a diagonal could replace the inputs between them. */
static bool is_open(const sw_state_pairing *x, uint32_t from, uint32_t to, int64_t diagonal)
{
	if (to - from > LONGEST_GAP)
		return false;
	for (uint32_t o = from + 1; o < to; o++) {
		uint32_t input = (uint32_t)(o + diagonal);
		if (!is_free(x, o, input) || !sw_state_alike(x, o, input))
			return false;
	}
	return true;
}

/* Set nearest[o] to the least distance of result o from an input that is free. */
static void find_nearest(const sw_state_pairing *x, const run_members *all, uint32_t *nearest)
{
	for (uint32_t o = 0; o < x->n_outputs; o++)
		nearest[o] = UINT32_MAX;
	for (size_t i = 0; i < all->len; i++) {
		const run_member *m = &all->data[i];
		if (is_free(x, m->output, m->input))
			nearest[m->output] = SW_MIN(nearest[m->output], m->distance);
	}
}

/* Of runs of one weight the one that begins with the earlier result is taken. */
static bool is_heavier(const run_members *all, state_run a, state_run b)
{
	double difference = a.weight - b.weight;
	if (b.weight == 0 || fabs(difference) > 1e-9 * b.weight)
		return difference > 0;
	return all->data[a.first].output < all->data[b.first].output;
}

static state_run heaviest_run(const sw_state_pairing *x, const run_members *all,
                              const uint32_t *nearest)
{
	state_run best = {0}, now = {0};
	const run_member *last = NULL;
	for (size_t i = 0; i < all->len; i++) {
		const run_member *m = &all->data[i];
		if (m->distance != nearest[m->output] || !is_free(x, m->output, m->input))
			continue;
		if (!last || last->diagonal != m->diagonal ||
		    !is_open(x, last->output, m->output, m->diagonal))
			now = (state_run){.first = i};
		now.end = i + 1;
		now.weight += m->weight;
		last = m;
		if (is_heavier(all, now, best))
			best = now;
	}
	return best;
}

static void pair_runs(sw_state_pairing *x, bool identities)
{
	run_members all = {0};
	uint32_t *nearest = SW_NEW_N(&x->arena, uint32_t, x->n_outputs + 1);
	state_run r;
	collect(x, identities, &all);
	do {
		find_nearest(x, &all, nearest);
		r = heaviest_run(x, &all, nearest);
		for (size_t i = r.first; i < r.end; i++) {
			const run_member *m = &all.data[i];
			if (m->distance == nearest[m->output] && is_free(x, m->output, m->input))
				sw_state_take(x, m->output, m->input);
		}
	} while (r.weight > 0);
	sw_vec_clear(&all);
}

/* ---- members that are missing ----------------------------------------------------------- */

/* Return, per result, the input that it is, -1: it is none. */
static int32_t *find_identities(sw_state_pairing *x)
{
	int32_t *found = SW_NEW_N(&x->arena, int32_t, x->n_outputs + 1);
	for (uint32_t o = 0; o < x->n_outputs; o++)
		found[o] = -1;
	for (size_t u = 0; u < x->uses.len; u++)
		if (x->uses.data[u].distance == 0)
			found[x->uses.data[u].output] = (int32_t)x->uses.data[u].input;
	return found;
}

/* Pair what is missing between two pairs of a diagonal, unless a result there is an input that is
 * free. */
static void fill_gaps(sw_state_pairing *x, const int32_t *identities)
{
	uint32_t last = UINT32_MAX;
	for (uint32_t o = 0; o < x->n_outputs; o++) {
		if (x->of_output[o] < 0)
			continue;
		int64_t diagonal = (int64_t)x->of_output[o] - o;
		bool joins = last != UINT32_MAX && (int64_t)x->of_output[last] - last == diagonal &&
		             is_open(x, last, o, diagonal);
		for (uint32_t g = last + 1; joins && g < o; g++)
			if (identities[g] < 0 || !is_free(x, g, (uint32_t)identities[g]))
				sw_state_take(x, g, (uint32_t)(g + diagonal));
		last = o;
	}
}

/* Pair a result that is the old value of another state with the input behind that of the result
 * before it: histories hand their values on. */
static void pair_histories(sw_state_pairing *x, const int32_t *identities)
{
	for (uint32_t o = 1; o < x->n_outputs; o++) {
		if (x->of_output[o] >= 0 || x->of_output[o - 1] < 0 || identities[o] < 0)
			continue;
		uint32_t input = (uint32_t)x->of_output[o - 1] + 1;
		if (input < x->n_inputs && is_free(x, o, input) && sw_state_alike(x, o, input))
			sw_state_take(x, o, input);
	}
}

/* Return, per input, whether an op reads it, or it is a result. */
static bool *find_read(sw_state_pairing *x)
{
	const sw_program *p = x->program;
	bool *value_read = SW_NEW_N(&x->arena, bool, p->values.len + 1);
	bool *read = SW_NEW_N(&x->arena, bool, x->n_inputs + 1);
	for (size_t k = 0; k < p->ops.len; k++)
		for (uint32_t i = 0; i < p->ops.data[k].n_operands; i++)
			value_read[p->ops.data[k].operands[i]] = true;
	for (uint32_t o = 0; o < x->n_outputs; o++)
		value_read[x->outputs[o]] = true;
	for (uint32_t i = 0; i < x->n_inputs; i++)
		read[i] = value_read[x->inputs[i]];
	return read;
}

static bool is_real_scalar(const sw_state_pairing *x, uint32_t output)
{
	return sw_shape_is_real_scalar(sw_value_shape(x->program, x->outputs[output]));
}

static uint32_t count_unpaired_scalars(const sw_state_pairing *x)
{
	uint32_t n = 0;
	for (uint32_t o = 0; o < x->n_outputs; o++)
		n += x->of_output[o] < 0 && is_real_scalar(x, o);
	return n;
}

/* Go on with the run that `output` ends, towards `step`, while the next input is of the right type
 * and nobody reads it: figures that an optimizer only reports are replaced without being read. One
 * real scalar is left to be the loss. */
static void extend(sw_state_pairing *x, const bool *read, int64_t output, int step)
{
	int64_t diagonal = x->of_output[output] - output;
	for (int64_t o = output + step; o >= 0 && o < x->n_outputs; o += step) {
		int64_t input = o + diagonal;
		if (input < 0 || input >= x->n_inputs || read[input] ||
		    !is_free(x, (uint32_t)o, (uint32_t)input) ||
		    !sw_state_alike(x, (uint32_t)o, (uint32_t)input) ||
		    (is_real_scalar(x, (uint32_t)o) && count_unpaired_scalars(x) < 2))
			return;
		sw_state_take(x, (uint32_t)o, (uint32_t)input);
	}
}

static void extend_runs(sw_state_pairing *x)
{
	const bool *read = find_read(x);
	for (uint32_t o = 0; o < x->n_outputs; o++)
		for (int step = -1; step <= 1 && x->of_output[o] >= 0; step += 2)
			extend(x, read, o, step);
}

void sw_state_pair_by_use(sw_state_pairing *x)
{
	const int32_t *identities = find_identities(x);
	pair_runs(x, false);
	fill_gaps(x, identities);
	pair_runs(x, true);
	fill_gaps(x, identities);
	pair_histories(x, identities);
	extend_runs(x);
}

void sw_state_free_loss(sw_state_pairing *x)
{
	uint32_t scalars = 0, loss = 0, others = 0;
	for (uint32_t o = 0; o < x->n_outputs; o++) {
		bool scalar = is_real_scalar(x, o);
		scalars += scalar;
		others += !scalar && x->of_output[o] >= 0;
		loss = scalar ? o : loss;
	}
	if (scalars != 1 || !others || x->of_output[loss] < 0)
		return;
	int64_t diagonal = (int64_t)x->of_output[loss] - loss;
	for (int64_t o = (int64_t)loss - 1; o <= (int64_t)loss + 1; o += 2)
		if (o >= 0 && o < x->n_outputs && x->of_output[o] >= 0 &&
		    x->of_output[o] - o == diagonal)
			return;
	x->taken[x->of_output[loss]] = false;
	x->of_output[loss] = -1;
}
