/* Trials, and their estimates: one piece of the program of one trial of each number of stages is
 * planned, on one mesh; by it all its trials are estimated. */
#include "pipelined/stage_trials.h"

#include <math.h>
#include <stdlib.h>

/* Of two stages; the first probe has START of them. */
static const int32_t of_two_stages[SW_TRIED_MICROBATCHES] = {1, 2, 4, 8, 16, 32};
#define START 3
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

/* Plan a piece of a trial. */
static sw_status probe(sw_stage_search *s, sw_pipelined_numbers numbers, sw_pipelined_probe *found)
{
	sw_status status;
	sw_error err = {0};
	numbers.n_pieces = sw_trials_pieces(s, numbers.n_ranks);
	sw_pipelined *p = sw_trials_open(s, numbers, &status);
	if (!p)
		return status;
	status = sw_pipelined_probe_stage(p, s->store, s->options->plan.memory_bytes, found, &err);
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

/* Policies in the order in which they are tried: none, that of the plan without stages, the others.
 * False: there are no more. */
static bool policy(const sw_stage_search *s, size_t i, const char **remat)
{
	const char *asked = s->options->plan.remat, *known = s->options->known_remat;
	*remat = asked && strcmp(asked, "none") ? asked : NULL;
	if (i == 0 || asked)
		return i == 0;
	*remat = known && i == 1 ? known : sw_remat_policy_name(i - 1 - (known != NULL));
	return *remat != NULL;
}

/* What is known of the policies with one number of stages. */
#define MAX_POLICIES 32
/* Pieces that are planned, of as many policies, to find one with which fewer microbatches fit. */
#define FEWER_PROBES 3
typedef struct policy_probes {
	struct {
		sw_pipelined_probe found;
		sw_status status;     /* of the last probe */
		int32_t microbatches; /* of it; 0: there was none */
	} of[MAX_POLICIES];
} policy_probes;

/* Take the first rematerialisation with which all stages should fit; else the first with which a
 * piece does. A piece that was planned stands for those of other numbers of microbatches; one that
 * did not fit is planned again where microbatches are smaller. At most so many pieces are planned,
 * and only as long as the step is estimated to be shorter than than_s by a policy that computes
 * less again. Returns the trial, opened and estimated; NULL: there is none. */
static sw_pipelined *choose_remat(sw_stage_search *s, policy_probes *known, double than_s,
                                  int32_t probes, sw_pipelined_numbers *numbers,
                                  sw_pipelined_probe *found)
{
	sw_pipelined *best = NULL;
	double step_s = 0;
	sw_pipelined_numbers trial = *numbers;
	for (size_t i = 0; i < MAX_POLICIES && !(best && best->fits) && policy(s, i, &trial.remat);
	     i++) {
		bool probed = known->of[i].microbatches > 0,
		     again = !probed || (known->of[i].status == SW_NO &&
		                         known->of[i].microbatches < trial.microbatches);
		if (again && step_s < than_s && probes > 0 && !(i && sw_trials_late(s))) {
			probes--;
			known->of[i].status = probe(s, trial, &known->of[i].found);
			known->of[i].microbatches = trial.microbatches;
		}
		sw_status status = known->of[i].microbatches ? known->of[i].status : SW_NO;
		sw_pipelined *p =
			status == SW_OK ? estimate(s, trial, &known->of[i].found, &status) : NULL;
		bool takes = p && (p->fits || !best);
		step_s = p ? p->played.step_s : step_s;
		if (takes || (status != SW_OK && status != SW_NO)) {
			sw_pipelined_free(best);
			best = NULL;
		}
		if (status != SW_OK && status != SW_NO)
			break;
		if (takes) {
			*numbers = trial;
			*found = known->of[i].found;
			best = p;
		} else {
			sw_pipelined_free(p);
		}
	}
	return best;
}

/* Enter a trial that is opened and estimated. */
static void add_trial(sw_stage_search *s, sw_pipelined_numbers numbers,
                      const sw_pipelined_probe *found, sw_pipelined *p)
{
	sw_vec_push(&s->trials,
	            ((sw_stage_trial){numbers, p, found->times.step_s, p->played.step_s,
	                              p->played.step_s * (p->fits ? 1 : 2), s->trials.len}));
}

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
	policy(s, 0, &numbers.remat);
	sw_trials_place(s->request, 0, &numbers);
	sw_pipelined *p = sw_trials_open(s, numbers, &status);
	if (p)
		sw_vec_push(&s->trials, ((sw_stage_trial){numbers, p, 0, 0, 0, s->trials.len}));
	return true;
}

/* Enter the trials with d stages and this number of microbatches; true: stages should fit. */
static bool enter_number(sw_stage_search *s, policy_probes *known, double than_s, int32_t probes,
                         int32_t d, int32_t m)
{
	sw_pipelined_probe found;
	sw_pipelined_numbers numbers = {.n_ranks = d, .microbatches = m};
	sw_trials_place(s->request, 0, &numbers);
	sw_pipelined *p = choose_remat(s, known, than_s, probes, &numbers, &found);
	if (!p)
		return false;
	bool fits = p->fits;
	for (size_t c = 0; sw_trials_place(s->request, c, &numbers); c++) {
		sw_status status;
		if (c > 0)
			p = estimate(s, numbers, &found, &status);
		if (p)
			add_trial(s, numbers, &found, p);
	}
	return fits;
}

/* The least estimate of the trials that were entered from the first-th on. */
static double least_estimate_s(const sw_stage_search *s, size_t first)
{
	double least_s = INFINITY;
	for (size_t i = first; i < s->trials.len; i++)
		least_s = fmin(least_s, s->trials.data[i].estimate_s);
	return least_s;
}

/* Enter the trials with d stages and these numbers of microbatches, of which the one at `at` is
 * planned first. Where no policy fits with it, pieces are planned with more of them. Fewer are
 * larger, so that other policies may be needed for them, whose pieces are planned where that can
 * gain. */
static void enter_microbatches(sw_stage_search *s, const sw_phases *phases, int32_t d,
                               const int32_t *m, int n, int at)
{
	policy_probes *known = sw_alloc(sizeof(*known));
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
	for (size_t i = 0; i < SW_COUNT(of_two_stages); i++) {
		int32_t next = possible_at_least(phases, ((int64_t)of_two_stages[i] * d + 1) / 2);
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
