/* Trials, and their estimates: one piece of the program of one trial of each number of stages is
 * planned, on one mesh; by it all its trials are estimated. */
#include "pipelined/stage_trials.h"

#include <math.h>
#include <stdlib.h>

/* Of four stages; the first probe has START of them. */
static const int32_t of_four_stages[SW_TRIED_MICROBATCHES] = {1, 2, 4, 8, 16, 32, 64};
#define START 4
/* More stages are given up where their least estimate is that much above the best. */
#define FAR 1.25
/* More stages are given up where so many numbers of stages are estimated to be slower. */
#define WORSE_NUMBERS 2
/* ---- questions --------------------------------------------------------------------------- */

bool sw_trials_late(sw_stage_search *s)
{
	s->out_of_time |= sw_stage_store_left_s(s->store) <= 0;
	return s->out_of_time;
}

double sw_trials_known_s(const sw_stage_search *s)
{
	double known = s->options->known_s > 0 ? s->options->known_s : INFINITY;
	return s->best && s->best->fits ? fmin(known, s->best->played.step_s) : known;
}

void sw_trials_note_failure(sw_stage_search *s, sw_status status, const sw_error *err)
{
	if (s->first_status)
		return;
	s->first_status = status;
	s->first = *err;
}

const char *sw_trials_first_mesh(const sw_cluster *slice, sw_arena *arena)
{
	const sw_atoms *atoms = &slice->atoms;
	int64_t inner = 1;
	char name[64];
	if (atoms->n < 2)
		return NULL;
	for (int32_t a = 0; a < atoms->n; a++)
		if (slice->atom_level[a] == slice->atom_level[atoms->n - 1])
			inner *= atoms->size[a];
	if (inner == slice->n_devices || inner == 1)
		inner = slice->n_devices / atoms->size[0];
	snprintf(name, sizeof(name), "search x=%lld y=%lld", (long long)(slice->n_devices / inner),
	         (long long)inner);
	return sw_arena_text(arena, name);
}

/* How stages may be placed: as the schedule that was asked for has them; else one on each slice,
 * and two, V-shaped or looped. */
static const struct {
	sw_pipeline_placement placement;
	int32_t n_chunks;
} placements[] = {{SW_PLACE_STRAIGHT, 1}, {SW_PLACE_V, 2}, {SW_PLACE_LOOPED, 2}};

/* The i-th placement that options allow; false: there are no more. */
static bool next_placement(const sw_pipelined_options *options, size_t i,
                           sw_pipelined_numbers *numbers)
{
	sw_named_schedule which = (sw_named_schedule)options->schedule;
	bool any = options->schedule < 0 && !options->n_chunks && !options->given;
	if (i >= (any ? SW_COUNT(placements) : 1))
		return false;
	if (any) {
		numbers->placement = placements[i].placement;
		numbers->n_chunks = placements[i].n_chunks;
	} else if (options->given) {
		numbers->placement = SW_PLACE_STRAIGHT; /* its own: sw_pipelined_place_stages */
		numbers->n_chunks = options->given->n_stages / options->given->n_ranks;
	} else if (options->n_chunks) {
		numbers->placement = SW_PLACE_LOOPED;
		numbers->n_chunks = options->n_chunks;
	} else {
		numbers->placement = sw_pipeline_placement_of(which);
		numbers->n_chunks = sw_pipeline_chunks_of(which);
	}
	return true;
}

/* Can slices be equal, or be unequal parts of the cluster, unless the user's file says what they
 * are?
 */
static bool slices_may_be(const sw_pipelined_request *request, int32_t n, bool by_parts)
{
	const sw_stage_file *file = request->options->file;
	if (file && file->devices)
		return !by_parts;
	bool parts = sw_pipelined_has_parts(request->cluster, n);
	/* Where neither is possible, equal ones are, so that they are refused. */
	return by_parts ? parts : !parts || request->cluster->n_devices % n == 0;
}

bool sw_trials_place(const sw_pipelined_request *request, size_t i, sw_pipelined_numbers *numbers)
{
	const sw_stage_file *file = request->options->file;
	for (size_t k = 0; next_placement(request->options, k / 2, numbers); k++) {
		numbers->by_parts = k % 2;
		if ((!file || !file->n_stages ||
		     file->n_stages == numbers->n_ranks * numbers->n_chunks) &&
		    slices_may_be(request, numbers->n_ranks, numbers->by_parts) && i-- == 0)
			return true;
	}
	return false;
}

/* ---- estimates --------------------------------------------------------------------------- */

/* How many pieces are cut for a probe: of some 500 ops each, so that the probe of a large
 * program takes no longer. Stages are halved until they are so small: layers, whose number is often
 * a multiple of a power of two, then remain whole. */
#define PROBE_OPS 500
int32_t sw_trials_pieces(const sw_stage_search *s, int32_t n_stages)
{
	size_t ops = sw_stage_store_canonical(s->store)->ops.len;
	int32_t pieces = n_stages;
	while ((size_t)pieces * PROBE_OPS < ops && pieces < 1024)
		pieces *= 2;
	return pieces;
}

sw_pipelined *sw_trials_open(sw_stage_search *s, sw_pipelined_numbers numbers, sw_status *status)
{
	sw_pipelined *p = NULL;
	sw_error err = {0};
	*status = sw_pipelined_open(s->request, s->store, numbers, NULL, &p, &err);
	if (p)
		p->mesh = sw_trials_first_mesh(p->slices[0], &p->arena);
	else
		sw_trials_note_failure(s, *status, &err);
	return p;
}

/* Plan a piece of a trial within so much memory of a device. */
static sw_status probe(sw_stage_search *s, sw_pipelined_numbers numbers, int64_t memory_bytes,
                       sw_pipelined_probe *found)
{
	sw_status status;
	sw_error err = {0};
	numbers.n_pieces = sw_trials_pieces(s, numbers.n_ranks);
	sw_pipelined *p = sw_trials_open(s, numbers, &status);
	if (!p)
		return status;
	status = sw_pipelined_probe_stage(p, s->store, memory_bytes, found, &err);
	if (status)
		sw_trials_note_failure(s, status, &err);
	sw_pipelined_free(p);
	return status;
}

/* Open a trial and estimate its step, and whether it fits, by a piece of it or of a like one. NULL:
 * *status says why not. */
static sw_pipelined *estimate(sw_stage_search *s, sw_pipelined_numbers numbers,
                              const sw_pipelined_probe *found, sw_status *status)
{
	sw_error err = {0};
	sw_pipelined *p = sw_trials_open(s, numbers, status);
	if (!p)
		return NULL;
	*status = sw_pipelined_estimate(p, s->options, found, &err);
	if (*status == SW_OK)
		return p;
	sw_trials_note_failure(s, *status, &err);
	sw_pipelined_free(p);
	return NULL;
}

/* Plan a piece within so much memory, and estimate the trial by it: it takes the place of the one that
 * is given if it fits, and else if any_way. */
static sw_pipelined *estimate_again(sw_stage_search *s, sw_pipelined_numbers numbers,
                                    int64_t memory_bytes, bool any_way, sw_pipelined *unfit,
                                    sw_pipelined_probe *by)
{
	sw_status status = SW_OK;
	sw_pipelined_probe found;
	bool probed = probe(s, numbers, memory_bytes, &found) == SW_OK;
	sw_pipelined *p = probed ? estimate(s, numbers, &found, &status) : NULL;
	bool takes = p && (p->fits || any_way);
	sw_pipelined_free(takes ? unfit : p);
	if (takes)
		*by = found;
	return takes ? p : unfit;
}

/* Where a trial by its estimate does not fit, which may be that of a piece of other microbatches, plan
 * that of its own; and then with its share of what the microbatches in flight leave of the memory, as
 * stages are planned then. What is there for a while has no shares. Return the trial that fits, else
 * the one that was given, which is taken over. */
static sw_pipelined *estimate_within(sw_stage_search *s, sw_pipelined_numbers numbers,
                                     int32_t *probes, sw_pipelined *unfit, sw_pipelined_probe *by)
{
	if (by->microbatches != numbers.microbatches && --*probes >= 0)
		unfit = estimate_again(s, numbers, s->options->plan.memory_bytes, true, unfit, by);
	if (unfit->fits || by->microbatches != numbers.microbatches || *probes <= 0)
		return unfit;
	int64_t left = sw_pipelined_memory(unfit, s->options),
		passing = by->times.fixed_bytes - by->times.resting_bytes, beyond = 0;
	for (int32_t i = 0; i < unfit->n_stages; i++)
		beyond = SW_MAX(beyond, sw_pipelined_most_beyond(unfit, i));
	left -= beyond + passing;
	if (left <= 0)
		return unfit;
	--*probes;
	left = left / sw_trials_pieces(s, numbers.n_ranks) * numbers.n_ranks;
	return estimate_again(s, numbers, left + passing, false, unfit, by);
}

/* None, that of the plan without stages, the others. */
bool sw_trials_policy(const sw_stage_search *s, size_t i, const char **remat)
{
	const char *asked = s->options->plan.remat, *known = s->options->known_remat;
	*remat = asked && strcmp(asked, "none") ? asked : NULL;
	if (i == 0 || asked)
		return i == 0;
	*remat = known && i == 1 ? known : sw_remat_policy_name(i - 1 - (known != NULL));
	return *remat != NULL;
}

/* What is known of a policy with one number of stages. */
#define MAX_POLICIES 32
/* Pieces that are planned, of as many policies, to find one with which fewer microbatches fit. */
#define FEWER_PROBES 6
typedef struct policy_probe {
	sw_pipelined_probe found;
	sw_status status;     /* of the last probe */
	int32_t microbatches; /* of it; 0: there was none */
	int32_t unfit; /* microbatches with which it does not fit in its share, and so not with fewer */
} policy_probe;

/* The least number of microbatches that is possible and at least this; else the largest. */
static int32_t possible_at_least(const sw_phases *phases, int64_t wanted)
{
	for (int32_t i = 0; i < phases->possible.n; i++)
		if (phases->possible.v[i] >= wanted)
			return (int32_t)phases->possible.v[i];
	return phases->possible.n ? (int32_t)phases->possible.v[phases->possible.n - 1] : 2;
}

/* Where all numbers and the schedule are asked for, there is one trial, and nothing to estimate. */
static bool enter_only_trial(sw_stage_search *s, sw_pipelined_numbers numbers)
{
	sw_status status;
	if (!s->options->n_stages || !s->options->microbatches || !s->options->plan.remat ||
	    (s->options->schedule < 0 && !s->options->n_chunks && !s->options->given))
		return false;
	sw_trials_policy(s, 0, &numbers.remat);
	sw_trials_place(s->request, 0, &numbers);
	sw_pipelined *p = sw_trials_open(s, numbers, &status);
	if (p)
		sw_vec_push(&s->trials, ((sw_stage_trial){.numbers = numbers, .opened = p, .order = s->trials.len}));
	return true;
}

/* Enter a trial that is opened and estimated. */
static void add_trial(sw_stage_search *s, sw_pipelined_numbers numbers,
                      const sw_pipelined_probe *found, sw_pipelined *p)
{
	double step_s = p->played.step_s;
	sw_vec_push(&s->trials, ((sw_stage_trial){.numbers = numbers,
	                                          .opened = p,
	                                          .piece_s = found->times.step_s,
	                                          .played_s = step_s,
	                                          .estimate_s = step_s * (p->fits ? 1 : 2),
	                                          .order = s->trials.len}));
}

/* The least estimate of the trials that were entered from the first-th on. */
static double least_estimate_s(const sw_stage_search *s, size_t first)
{
	double least_s = INFINITY;
	for (size_t i = first; i < s->trials.len; i++)
		least_s = fmin(least_s, s->trials.data[i].estimate_s);
	return least_s;
}

/* Enter an opened and estimated trial, and those of its other placements. */
static void enter_placements(sw_stage_search *s, sw_pipelined_numbers numbers,
                             const sw_pipelined_probe *by, sw_pipelined *p)
{
	for (size_t c = 0; sw_trials_place(s->request, c, &numbers); c++) {
		sw_status status;
		if (c > 0)
			p = estimate(s, numbers, by, &status);
		if (p)
			add_trial(s, numbers, by, p);
	}
}

/* Plan the piece of a policy, unless that of other microbatches does, and estimate the trial. A piece
 * that did not fit is planned again where microbatches are smaller; `own`: each is. NULL: *status says
 * why. */
static sw_pipelined *estimate_policy(sw_stage_search *s, policy_probe *known, bool may_probe, bool own,
                                     sw_pipelined_numbers numbers, int32_t *probes,
                                     sw_pipelined_probe *by, sw_status *status)
{
	bool again = !known->microbatches || (own && known->microbatches != numbers.microbatches) ||
	             (known->status == SW_NO && known->microbatches < numbers.microbatches);
	if (again && may_probe && *probes > 0) {
		--*probes;
		known->status = probe(s, numbers, s->options->plan.memory_bytes, &known->found);
		known->microbatches = numbers.microbatches;
	}
	*status = known->microbatches ? known->status : SW_NO;
	*by = known->found;
	return *status == SW_OK ? estimate(s, numbers, by, status) : NULL;
}

/* Enter the trials with d stages and m microbatches: with the first rematerialisation with which all
 * stages should fit in any case; with an earlier one with which they may fit; where there is neither,
 * with the first with which a piece does. Of the policies behind one that may fit pieces are
 * planned in as many microbatches, so that they are compared. At most so many pieces are planned, and
 * only as long as the step is estimated to be shorter than than_s by a policy that computes less again.
 * True: stages should fit. */
static bool enter_number(sw_stage_search *s, policy_probe *known, double than_s, int32_t probes,
                         int32_t d, int32_t m)
{
	sw_pipelined_numbers trial = {.n_ranks = d, .microbatches = m};
	sw_trials_place(s->request, 0, &trial);
	sw_pipelined_numbers unfit_numbers = trial;
	sw_pipelined_probe by, unfit_by;
	sw_pipelined *unfit = NULL;
	double step_s = 0;
	bool fits = false, may_fit = false;
	sw_status status = SW_NO;
	for (size_t i = 0; i < MAX_POLICIES && !fits && sw_trials_policy(s, i, &trial.remat); i++) {
		bool may_probe = step_s < than_s && !(i && sw_trials_late(s));
		sw_pipelined *p = estimate_policy(s, &known[i], may_probe, may_fit, trial, &probes,
		                                  &by, &status);
		if (status != SW_OK && status != SW_NO)
			break;
		if (!p)
			continue;
		step_s = p->played.step_s;
		fits = p->fits;
		if (!fits && !may_fit && may_probe && probes > 0 && known[i].unfit < m &&
		    step_s < least_estimate_s(s, 0)) {
			p = estimate_within(s, trial, &probes, p, &by);
			known[i].unfit = p->fits ? known[i].unfit : m;
		}
		may_fit |= p->fits;
		if (p->fits) {
			enter_placements(s, trial, &by, p);
		} else if (!unfit) {
			unfit = p;
			unfit_numbers = trial;
			unfit_by = by;
		} else {
			sw_pipelined_free(p);
		}
	}
	if (unfit && !may_fit && (status == SW_OK || status == SW_NO))
		enter_placements(s, unfit_numbers, &unfit_by, unfit);
	else
		sw_pipelined_free(unfit);
	return may_fit;
}

/* Enter the trials with d stages and these numbers of microbatches, of which the one at `at` is
 * planned first. Where no policy fits with it, pieces are planned with more of them. Fewer are
 * larger, so that other policies may be needed for them, whose pieces are planned where that can
 * gain. */
static void enter_microbatches(sw_stage_search *s, const sw_phases *phases, int32_t d,
                               const int32_t *m, int n, int at)
{
	policy_probe *known = sw_alloc(sizeof(*known) * MAX_POLICIES);
	bool fits = false, more = !s->options->microbatches;
	size_t first = s->trials.len;
	for (int i = at; i < n && !(i > at && sw_trials_late(s)); i++)
		fits |= enter_number(s, known, INFINITY, MAX_POLICIES, d, m[i]);
	for (int i = at; i-- > 0 && !sw_trials_late(s);)
		enter_number(s, known,
		             fits ? fmin(sw_trials_known_s(s), least_estimate_s(s, first)) : 0,
		             FEWER_PROBES, d, m[i]);
	for (int32_t last = m[n - 1]; more && !fits && !sw_trials_late(s);) {
		int32_t next = possible_at_least(phases, 2 * (int64_t)last);
		more = next > last;
		last = next;
		fits = more && enter_number(s, known, INFINITY, MAX_POLICIES, d, next);
	}
	free(known);
}

int sw_trials_microbatches(const sw_stage_search *s, const sw_phases *phases, int32_t d,
                           int32_t m[SW_TRIED_MICROBATCHES], int *at)
{
	int n = 0;
	*at = 0;
	m[0] = s->options->microbatches;
	if (m[0])
		return 1;
	for (size_t i = 0; i < SW_COUNT(of_four_stages); i++) {
		int32_t next = possible_at_least(phases, ((int64_t)of_four_stages[i] * d + 3) / 4);
		if (!n || next > m[n - 1])
			m[n++] = next;
		if (i == START)
			*at = n - 1;
	}
	return n;
}

double sw_trials_enter(sw_stage_search *s, const sw_phases *phases, int32_t d)
{
	int32_t m[SW_TRIED_MICROBATCHES];
	int at, n = sw_trials_microbatches(s, phases, d, m, &at);
	sw_pipelined_numbers numbers = {.n_ranks = d, .microbatches = m[at]};
	sw_progress_update(&s->progress, 0, "%d stages, %d microbatches", d, m[at]);
	size_t first = s->trials.len;
	if (enter_only_trial(s, numbers))
		return 0;
	enter_microbatches(s, phases, d, m, n, at);
	return least_estimate_s(s, first);
}

size_t sw_pipelined_possible_stages(const sw_cluster *cluster, int32_t numbers[SW_STAGE_NUMBERS])
{
	size_t n = 0;
	for (int32_t d = 2; d <= SW_MIN(cluster->n_devices, SW_MAX_STAGES) && n < SW_STAGE_NUMBERS;
	     d++)
		if (cluster->n_devices % d == 0 || sw_pipelined_has_parts(cluster, d))
			numbers[n++] = d;
	return n;
}

void sw_trials_enter_numbers(sw_stage_search *s, const sw_phases *phases)
{
	int32_t numbers[SW_STAGE_NUMBERS];
	size_t n = sw_pipelined_possible_stages(s->request->cluster, numbers);
	double best_s = INFINITY;
	int worse = 0;
	for (size_t i = 0; i < n && worse < WORSE_NUMBERS && !sw_trials_late(s); i++) {
		if (s->options->bounds_s && s->options->bounds_s[i] >= sw_trials_known_s(s))
			continue;
		double least_s = sw_trials_enter(s, phases, numbers[i]);
		if (isinf(least_s))
			continue;
		worse += least_s > FAR * best_s ? WORSE_NUMBERS : least_s > best_s;
		best_s = fmin(best_s, least_s);
	}
}
