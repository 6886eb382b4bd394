/* How many stages and microbatches, and what is computed again.
 *
 * A TRIAL is a number of stages, of microbatches and a rematerialisation. One stage of one trial of
 * each number of stages is planned, on one mesh; by it all its trials are estimated, and in that
 * order planned, on one mesh each, which a piece is quickest on, as far as the budget goes. The
 * quickest is cut again by the seconds of its plans, where that promises enough. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipelined/stage_store.h"

/* Microbatches of two stages that are tried: with fewer, stages are idle; with more, kernels are
 * small and what is done for each microbatch is done more often. The first probe has START of them.
 */
static const int32_t of_two_stages[] = {1, 2, 4, 8, 16, 32};
#define START 3
/* Ops of the stages that are planned on one mesh, beyond the first trials, and how many those are.
 */
#define TRIAL_OPS 12000
#define FIRST_TRIALS 2
/* As long as none of them fits, or the best is so far above what others are estimated to take, so
 * many times as many ops. */
#define UNFIT_TRIALS 3
#define FAR_ABOVE 1.3
/* A trial whose estimate is that much above the best plan is not planned: estimates are within
 * about a tenth of the plans. */
#define HOPELESS 1.1
/* On unequal slices, which are estimated by a plan on one of other size, it is that much. So it is of
 * programs of up to so many ops, whose estimates are less certain, as what is done once for each
 * microbatch counts for more, and whose trials take little time. */
#define HOPELESS_PARTS 1.3
#define SMALL_PROGRAM 3000
/* More stages are given up where their least estimate is that much above the best. */
#define FAR 1.25
/* More stages are given up where so many numbers of stages are estimated to be slower. */
#define WORSE_NUMBERS 2
/* Stages are cut again by the seconds of their plans, once, where the longest of them should become
 * shorter by so much: of what less promises, most does not come. */
#define RECUT_GAIN 0.05

typedef struct stage_trial {
	sw_pipelined_numbers numbers;
	sw_pipelined *opened; /* cut, without plans; NULL: it was planned, or failed */
	double piece_s;       /* the step of the piece by which it is estimated; 0: it is not */
	double played_s;      /* its step, estimated; 0: it is not */
	double estimate_s;    /* the same, twice where it should not fit */
	size_t order;
} stage_trial;

typedef struct stage_search {
	const sw_pipelined_request *request;
	const sw_pipelined_options *options;
	sw_stage_store *store;
	sw_pipelined *best; /* of those that fit, the quickest */
	SW_VEC(stage_trial) trials;
	bool out_of_time;
	double least_ratio; /* of the step of a plan to its estimate; at most 1 */
	bool gave_up; /* trials that should be slower than what is known */
	sw_error first; /* why the first one that failed did */
	sw_status first_status;
	sw_progress progress;
} stage_search;

/* ---- questions --------------------------------------------------------------------------- */

static bool is_late(stage_search *s)
{
	s->out_of_time |= sw_stage_store_left_s(s->store) <= 0;
	return s->out_of_time;
}

/* The step that is to be beaten. */
static double known_s(const stage_search *s)
{
	double known = s->options->known_s > 0 ? s->options->known_s : INFINITY;
	return s->best && s->best->fits ? fmin(known, s->best->played.step_s) : known;
}

static void note_failure(stage_search *s, sw_status status, const sw_error *err)
{
	if (s->first_status)
		return;
	s->first_status = status;
	s->first = *err;
}

/* The mesh on which stages are planned first: the outer levels of the slice, and the innermost one;
 * where there is one level, its outermost atom and the others. NULL: all meshes. */
static const char *first_mesh(const sw_cluster *slice, sw_arena *arena)
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

/* Set the i-th placement of those with as many stages as the user's file has; false: there are no
 * more. */
static bool place(const sw_pipelined_request *request, size_t i, sw_pipelined_numbers *numbers)
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
static int32_t pieces_of(const stage_search *s, int32_t n_stages)
{
	size_t ops = sw_stage_store_canonical(s->store)->ops.len;
	int32_t pieces = n_stages;
	while ((size_t)pieces * PROBE_OPS < ops && pieces < 1024)
		pieces *= 2;
	return pieces;
}

static sw_pipelined *open_trial(stage_search *s, sw_pipelined_numbers numbers, sw_status *status)
{
	sw_pipelined *p = NULL;
	sw_error err = {0};
	*status = sw_pipelined_open(s->request, s->store, numbers, NULL, &p, &err);
	if (p)
		p->mesh = first_mesh(p->slices[0], &p->arena);
	else
		note_failure(s, *status, &err);
	return p;
}

/* Plan a piece of a trial. */
static sw_status probe(stage_search *s, sw_pipelined_numbers numbers, sw_pipelined_probe *found)
{
	sw_status status;
	sw_error err = {0};
	numbers.n_pieces = pieces_of(s, numbers.n_ranks);
	sw_pipelined *p = open_trial(s, numbers, &status);
	if (!p)
		return status;
	status = sw_pipelined_probe_stage(p, s->store, s->options->plan.memory_bytes, found, &err);
	if (status)
		note_failure(s, status, &err);
	sw_pipelined_free(p);
	return status;
}

/* *fits: all stages of the trial are estimated to, by a piece of it or of a like one; *step_s: in
 * how much time, whether they fit or not. */
static sw_status estimate(stage_search *s, sw_pipelined_numbers numbers,
                          const sw_pipelined_probe *found, bool *fits, double *step_s)
{
	sw_status status;
	sw_error err = {0};
	place(s->request, 0, &numbers);
	*fits = false;
	sw_pipelined *p = open_trial(s, numbers, &status);
	if (!p)
		return status;
	status = sw_pipelined_estimate(p, s->options, found, &err);
	*fits = status == SW_OK && p->fits;
	if (status == SW_OK)
		*step_s = p->played.step_s;
	if (status)
		note_failure(s, status, &err);
	sw_pipelined_free(p);
	return status;
}

/* Policies in the order in which they are tried: none, that of the plan without stages, the others.
 * False: there are no more. */
static bool policy(const stage_search *s, size_t i, const char **remat)
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
 * did not fit is planned again where microbatches are smaller. At most so many pieces are planned, and
 * only as long as the step is estimated to be shorter than than_s by a policy that computes less
 * again. SW_OK: *fits says which it is. */
static sw_status choose_remat(stage_search *s, policy_probes *known, double than_s, int32_t probes,
                              sw_pipelined_numbers *numbers, sw_pipelined_probe *found, bool *fits)
{
	sw_status best = SW_NO;
	double step_s = 0;
	sw_pipelined_numbers trial = *numbers;
	*fits = false;
	for (size_t i = 0; i < MAX_POLICIES && !*fits && policy(s, i, &trial.remat); i++) {
		bool probed = known->of[i].microbatches > 0,
		     again = !probed || (known->of[i].status == SW_NO &&
		                         known->of[i].microbatches < trial.microbatches);
		if (again && step_s < than_s && probes > 0 && !(i && is_late(s))) {
			probes--;
			known->of[i].status = probe(s, trial, &known->of[i].found);
			known->of[i].microbatches = trial.microbatches;
		}
		sw_status status = known->of[i].microbatches ? known->of[i].status : SW_NO;
		if (status == SW_OK)
			status = estimate(s, trial, &known->of[i].found, fits, &step_s);
		if (status != SW_OK && status != SW_NO)
			return status;
		if (status == SW_OK && (*fits || best)) {
			*numbers = trial;
			*found = known->of[i].found;
			best = SW_OK;
		}
	}
	return best;
}

static void add_trial(stage_search *s, sw_pipelined_numbers numbers,
                      const sw_pipelined_probe *found)
{
	sw_status status;
	sw_error err = {0};
	sw_pipelined *p = open_trial(s, numbers, &status);
	if (!p)
		return;
	status = sw_pipelined_estimate(p, s->options, found, &err);
	if (status) {
		note_failure(s, status, &err);
		sw_pipelined_free(p);
		return;
	}
	sw_vec_push(&s->trials,
	            ((stage_trial){numbers, p, found->times.step_s, p->played.step_s,
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
static bool enter_only_trial(stage_search *s, sw_pipelined_numbers numbers)
{
	sw_status status;
	if (!s->options->n_stages || !s->options->microbatches || !s->options->plan.remat ||
	    (s->options->schedule < 0 && !s->options->n_chunks && !s->options->given))
		return false;
	policy(s, 0, &numbers.remat);
	place(s->request, 0, &numbers);
	sw_pipelined *p = open_trial(s, numbers, &status);
	if (p)
		sw_vec_push(&s->trials, ((stage_trial){numbers, p, 0, 0, 0, s->trials.len}));
	return true;
}

/* Enter the trials with d stages and this number of microbatches; true: stages should fit. */
static bool enter_number(stage_search *s, policy_probes *known, double than_s, int32_t probes,
                         int32_t d, int32_t m)
{
	sw_pipelined_probe found;
	sw_pipelined_numbers numbers = {.n_ranks = d, .microbatches = m};
	bool fits;
	place(s->request, 0, &numbers);
	if (choose_remat(s, known, than_s, probes, &numbers, &found, &fits) != SW_OK)
		return false;
	for (size_t c = 0; place(s->request, c, &numbers); c++)
		add_trial(s, numbers, &found);
	return fits;
}

/* The least estimate of the trials that were entered from the first-th on. */
static double least_estimate_s(const stage_search *s, size_t first)
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
static void enter_microbatches(stage_search *s, const sw_phases *phases, int32_t d,
                               const int32_t *m, int n, int at)
{
	policy_probes *known = sw_alloc(sizeof(*known));
	bool fits = false, more = !s->options->microbatches;
	size_t first = s->trials.len;
	for (int i = at; i < n && !(i > at && is_late(s)); i++)
		fits |= enter_number(s, known, INFINITY, MAX_POLICIES, d, m[i]);
	for (int i = at; i-- > 0 && !is_late(s);)
		enter_number(s, known,
		             fits ? fmin(known_s(s), least_estimate_s(s, first)) : 0, FEWER_PROBES,
		             d, m[i]);
	for (int32_t last = m[n - 1]; more && !fits && !is_late(s);) {
		int32_t next = possible_at_least(phases, 2 * (int64_t)last);
		more = next > last;
		last = next;
		fits = more && enter_number(s, known, INFINITY, MAX_POLICIES, d, next);
	}
	free(known);
}

/* Write the numbers of microbatches that are tried with d stages, ascending, and return how many they
 * are. *at: which is tried first. */
static int list_microbatches(const stage_search *s, const sw_phases *phases, int32_t d,
                             int32_t m[SW_COUNT(of_two_stages)], int *at)
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

/* Enter the trials with d stages; return the least estimate. */
static double enter_trials(stage_search *s, const sw_phases *phases, int32_t d)
{
	int32_t m[SW_COUNT(of_two_stages)];
	int at, n = list_microbatches(s, phases, d, m, &at);
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

/* Numbers of stages into which the devices are cut, and whose bound is not above what is known,
 * until the estimates have grown twice, or by far. */
static void enter_numbers(stage_search *s, const sw_phases *phases)
{
	int32_t numbers[SW_STAGE_NUMBERS];
	size_t n = sw_pipelined_possible_stages(s->request->cluster, numbers);
	double best_s = INFINITY;
	int worse = 0;
	for (size_t i = 0; i < n && worse < WORSE_NUMBERS && !is_late(s); i++) {
		if (s->options->bounds_s && s->options->bounds_s[i] >= known_s(s))
			continue;
		double least_s = enter_trials(s, phases, numbers[i]);
		if (isinf(least_s))
			continue;
		worse += least_s > FAR * best_s ? WORSE_NUMBERS : least_s > best_s;
		best_s = fmin(best_s, least_s);
	}
}

static int by_estimate(const void *a, const void *b)
{
	const stage_trial *x = a, *y = b;
	if (x->estimate_s != y->estimate_s)
		return x->estimate_s < y->estimate_s ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* ---- plans ------------------------------------------------------------------------------- */

static bool is_better(const sw_pipelined *plan, const sw_pipelined *than)
{
	if (!than || plan->fits != than->fits)
		return !than || plan->fits;
	return plan->played.step_s < than->played.step_s;
}

/* Plan all stages of an opened trial, which is taken over. */
static bool plan_trial(stage_search *s, sw_pipelined *p, double than_s)
{
	sw_error err = {0};
	double least_s = 0;
	sw_status status = sw_pipelined_plan(p, s->store, s->options, than_s, &least_s, &err);
	bool better = status == SW_OK && is_better(p, s->best);
	if (status)
		note_failure(s, status, &err);
	sw_pipelined_free(better ? s->best : p);
	if (better)
		s->best = p;
	return better;
}

/* ---- the mesh --------------------------------------------------------------------------- */

#define FREE_MESHES "search" /* how their names begin */
/* Another mesh than the first is taken where a piece is quicker on it by so much. */
#define MESH_GAIN 0.01

/* The mesh of a plan: its name without what follows a comma, such as its rewrites. */
static const char *mesh_of(const sw_plan *plan, sw_arena *arena)
{
	sw_text name = {0};
	sw_text_addf(&name, "%.*s", (int)strcspn(plan->chosen, ","), plan->chosen);
	const char *mesh = sw_arena_text(arena, name.data);
	sw_text_clear(&name);
	return mesh;
}

/* Plan the piece by which a trial was estimated on all free meshes, with its share of the memory,
 * and set the mesh on which the trial's stages are planned. */
static void choose_mesh(stage_search *s, stage_trial *t)
{
	sw_pipelined_numbers cut = t->numbers;
	sw_pipelined_probe found;
	sw_error err = {0};
	sw_pipelined *p = t->opened, *pieces = NULL;
	if (!p->mesh || s->options->plan.strategy.kind != SW_PLAN_AUTO || is_late(s))
		return;
	cut.n_pieces = pieces_of(s, cut.n_ranks);
	sw_status status = sw_pipelined_open(s->request, s->store, cut, NULL, &pieces, &err);
	if (status)
		return;
	pieces->mesh = FREE_MESHES;
	int64_t memory = sw_pipelined_memory(p, s->options) / cut.n_pieces * cut.n_ranks;
	sw_progress_update(&s->progress, 0.5, "all free meshes of a stage");
	status = sw_pipelined_probe_stage(pieces, s->store, memory, &found, &err);
	for (int32_t i = 0; i < cut.n_pieces && status == SW_OK; i++)
		if (pieces->stages[i].plan &&
		    (t->piece_s <= 0 || found.times.step_s < (1 - MESH_GAIN) * t->piece_s))
			p->mesh = mesh_of(pieces->stages[i].plan, &p->arena);
	sw_pipelined_free(pieces);
}

/* ---- the trials ------------------------------------------------------------------------- */

static size_t ops_of(const sw_pipelined *p)
{
	size_t ops = 0;
	for (int32_t i = 0; i < p->n_stages; i++)
		ops += p->stages[i].like == i ? p->stages[i].step.program->ops.len : 0;
	return ops;
}

/* Plan a trial on the mesh that is best for a piece; where that leads to nothing, on the first. */
static void plan_entered(stage_search *s, stage_trial *t)
{
	const char *first;
	const sw_pipelined *before = s->best;
	sw_status status;
	choose_mesh(s, t);
	sw_pipelined *p = t->opened;
	t->opened = NULL;
	first = first_mesh(p->slices[0], &p->arena);
	bool other = first && strcmp(p->mesh, first) != 0;
	plan_trial(s, p, s->best ? known_s(s) : INFINITY);
	if (other && !(s->best && s->best->fits) && !is_late(s)) {
		p = open_trial(s, t->numbers, &status);
		if (p)
			plan_trial(s, p, INFINITY);
	}
	if (s->best != before && s->best->fits && t->estimate_s > 0)
		s->least_ratio = fmin(s->least_ratio, s->best->played.step_s / t->estimate_s);
}

/* Write the steps of a trial; false: it has none, and is given up. */
static bool has_steps(stage_search *s, const stage_trial *t)
{
	sw_error err = {0};
	sw_status status = sw_pipelined_write_steps(t->opened, s->store, &err);
	if (status)
		note_failure(s, status, &err);
	return status == SW_OK;
}

/* Is a trial not planned, since by its estimate it can't be quicker than what is known? Where no plan
 * with stages is, that it may not fit does not count; and something is planned of small programs, by
 * which the other estimates are scaled. */
static bool is_hopeless(const stage_search *s, const stage_trial *t)
{
	bool small = sw_stage_store_canonical(s->store)->ops.len <= SMALL_PROGRAM,
	     found = s->best && s->best->fits;
	double above = t->numbers.by_parts || small ? HOPELESS_PARTS : HOPELESS,
	       estimate_s = (found ? t->estimate_s : t->played_s) * (small ? s->least_ratio : 1);
	return (found || !small) && estimate_s > above * known_s(s);
}

/* Of trials on unequal slices the first of each placement is planned beyond the budget, too: their
 * estimates are less certain than those of others are among each other. */
static void plan_trials(stage_search *s)
{
	size_t ops = 0, planned = 0;
	bool fitted = false, spent = false, parts_planned[SW_PLACE_V + 1] = {false};
	for (size_t i = 0; i < s->trials.len && !(s->best && is_late(s)); i++) {
		stage_trial *t = &s->trials.data[i];
		bool fits = s->best && s->best->fits;
		/* What was spent on trials that did not fit says nothing about the others. */
		if (fits && !fitted && planned > 1)
			ops = planned = 0;
		fitted = fits;
		bool first_parts = t->numbers.by_parts && !parts_planned[t->numbers.placement],
		     hopeless = is_hopeless(s, t);
		s->gave_up |= hopeless;
		if (hopeless || (spent && !first_parts) || !has_steps(s, t))
			continue;
		ops += ops_of(t->opened);
		bool good = fits && known_s(s) < FAR_ABOVE * t->estimate_s;
		size_t most = good ? TRIAL_OPS : TRIAL_OPS * (size_t)UNFIT_TRIALS;
		spent |= s->best && ops > most && planned >= FIRST_TRIALS;
		if (spent && !first_parts)
			continue;
		sw_progress_update(&s->progress, (double)(i + 1) / (double)(s->trials.len + 2),
		                   "%d stages, %d microbatches", t->opened->n_stages,
		                   t->numbers.microbatches);
		plan_entered(s, t);
		parts_planned[t->numbers.placement] |= t->numbers.by_parts;
		planned++;
	}
}

/* Where nothing fits on one mesh, stages are planned on all of them, which takes several times as
 * long: those of the first trials. */
#define TRIALS_ON_ALL_MESHES 2
static void plan_on_all_meshes(stage_search *s)
{
	size_t n = SW_MIN(s->trials.len, (size_t)TRIALS_ON_ALL_MESHES);
	for (size_t i = 0; i < n && !(s->best && s->best->fits) && !is_late(s); i++) {
		sw_status status;
		sw_pipelined *p = is_hopeless(s, &s->trials.data[i])
		                          ? NULL
		                          : open_trial(s, s->trials.data[i].numbers, &status);
		if (!p)
			continue;
		sw_progress_update(&s->progress, 0.8, "all meshes of %d stages", p->n_stages);
		p->mesh = NULL;
		plan_trial(s, p, INFINITY);
	}
}

/* ---- the best one, once more ------------------------------------------------------------- */

/* Seconds of the looped program's ops in the plans of the best trial. */
static double *planned_seconds(const sw_pipelined *p)
{
	double *op_s = sw_alloc(sizeof(double) * (p->looped->ops.len + 1));
	for (int32_t i = 0; i < p->n_stages; i++) {
		const sw_planned_stage *stage = &p->stages[i];
		for (size_t k = 0; k < stage->step.program->ops.len; k++)
			if (stage->step.origins[k] != SW_NO_ID)
				op_s[stage->step.origins[k]] += stage->op_s[k];
	}
	return op_s;
}

/* Seconds of a microbatch in the longest stage: of the plans, and as the cut has it. */
static double longest_planned_s(const sw_pipelined *p)
{
	double longest_s = 0;
	for (int32_t i = 0; i < p->n_stages; i++) {
		const double *part_s = p->stages[i].times.part_s;
		longest_s =
			fmax(longest_s, part_s[SW_STAGE_FORWARD] + part_s[SW_STAGE_INPUT_GRADIENT] +
		                                part_s[SW_STAGE_WEIGHT_GRADIENT]);
	}
	return longest_s;
}

static double longest_cut_s(const sw_pipelined *p)
{
	double longest_s = 0;
	for (int32_t i = 0; i < p->n_stages; i++)
		longest_s = fmax(longest_s, p->cut.loads[i].forward_s + p->cut.loads[i].backward_s);
	return longest_s;
}

/* Cut the best trial again by the seconds of its plans. */
static void cut_again(stage_search *s)
{
	const sw_pipelined *p = s->best;
	sw_pipelined *again = NULL;
	sw_error err = {0};
	if (!p || p->n_stages == 1 || is_late(s))
		return;
	sw_pipelined_numbers numbers = sw_pipelined_numbers_of(p);
	double *op_s = planned_seconds(p);
	sw_progress_update(&s->progress, 0.9, "other cuts of %d stages", p->n_stages);
	sw_status status = sw_pipelined_open(s->request, s->store, numbers, op_s, &again, &err);
	free(op_s);
	if (status)
		return;
	again->mesh = p->mesh ? sw_arena_text(&again->arena, p->mesh) : NULL;
	if (longest_cut_s(again) > (1 - RECUT_GAIN) * longest_planned_s(p))
		sw_pipelined_free(again);
	else
		plan_trial(s, again, p->played.step_s);
}

/* Its schedule is searched for, where it may be any. */
static sw_status order_again(stage_search *s, sw_error *err)
{
	if (!s->best || !s->best->fits || s->options->schedule >= 0 || s->best->given)
		return SW_OK;
	sw_progress_update(&s->progress, 0.95, "other schedules");
	return sw_pipelined_search_order(s->best, sw_stage_store_left_s(s->store), err);
}

/* ---- the whole --------------------------------------------------------------------------- */

void sw_pipelined_split_strategy(sw_plan_strategy *strategy, int32_t *n_stages, int32_t *schedule)
{
	*n_stages = strategy->stages == SW_STAGES_AUTO ? 0 : strategy->stages;
	*schedule = strategy->kind == SW_PLAN_AUTO ? -1 : (int32_t)SW_1F1B;
	strategy->stages = 0;
}

/* A user's file of stages says how many of them there are, and how many devices each slice has. */
static sw_status check_file(const sw_pipelined_request *request, sw_error *err)
{
	const sw_pipelined_options *options = request->options;
	const sw_stage_file *file = options->file;
	sw_pipelined_numbers numbers = {.n_ranks = options->n_stages};
	int64_t sum = 0, n = request->cluster->n_devices;
	sw_status status = SW_OK;
	if (!file)
		return SW_OK;
	for (int32_t i = 0; i < file->n_slices && sum <= n; i++)
		sum += SW_MIN(file->devices[i], n + 1);
	if (file->devices && file->n_slices != options->n_stages)
		status = sw_fail_at(err, SW_ERR_INPUT, file->path, 0, 0,
		                    "devices has %d slices: --stages and --schedule say %d",
		                    file->n_slices, options->n_stages);
	else if (file->devices && sum != n)
		status = sw_fail_at(err, SW_ERR_INPUT, file->path, 0, 0,
		                    "devices: expected numbers whose sum is the cluster's %lld "
		                    "devices; found %s",
		                    (long long)n, sum < n ? "fewer" : "more");
	else if (!place(request, 0, &numbers))
		status = sw_fail_at(err, SW_ERR_INPUT, file->path, 0, 0,
		                    "stages: there are %d of them, and no --schedule and --chunks "
		                    "that are possible have so many on %d slices",
		                    file->n_stages, options->n_stages);
	return status;
}

/* Cut the program into as many stages as were asked for, in any number of microbatches that is tried
 * with them. */
static sw_status cut_as_asked(stage_search *s, const sw_phases *phases, sw_error *err)
{
	int32_t d = s->options->n_stages, m[SW_COUNT(of_two_stages)];
	int at, n = list_microbatches(s, phases, d, m, &at);
	sw_pipelined *opened = NULL;
	for (int i = 0; i < n && !opened; i++) {
		sw_pipelined_numbers numbers = {.n_ranks = d, .microbatches = m[i]};
		sw_status status;
		place(s->request, 0, &numbers);
		opened = open_trial(s, numbers, &status);
	}
	if (!opened)
		*err = s->first;
	sw_pipelined_free(opened);
	return opened ? SW_OK : s->first_status;
}

/* Is the number of microbatches that was asked for one that does not divide the batch? */
static sw_status check_microbatches(const sw_pipelined_request *request, sw_error *err)
{
	const sw_program *looped;
	sw_stage_store *store;
	sw_error why;
	if (!request->options->microbatches)
		return SW_OK;
	SW_TRY(sw_stage_store_new(request, &store, err));
	sw_status status = sw_stage_store_looped(store, request->options->microbatches, NULL,
	                                         &looped, &why);
	sw_stage_store_free(store);
	/* Of other programs there are no stages. */
	if (status != SW_ERR_INPUT)
		return SW_OK;
	*err = why;
	return status;
}

sw_status sw_pipelined_check(const sw_program *program, const char *program_path,
                             const sw_sidecar *sidecar, const sw_cluster *cluster,
                             const sw_pipelined_options *options, sw_error *err)
{
	sw_pipelined_request request = {program, program_path, sidecar, cluster, options};
	stage_search s = {.request = &request, .options = options};
	sw_phases phases;
	SW_TRY(sw_pipelined_check_words(options, err));
	SW_TRY(check_file(&request, err));
	if (!options->n_stages)
		return check_microbatches(&request, err);
	SW_TRY(sw_pipelined_check_kinds(options, err));
	SW_TRY(sw_stage_store_new(&request, &s.store, err));
	sw_phases_init(&phases, sw_stage_store_canonical(s.store), sw_stage_store_sidecar(s.store));
	sw_status status = cut_as_asked(&s, &phases, err);
	sw_phases_clear(&phases);
	sw_stage_store_free(s.store);
	return status;
}

static sw_status answer(stage_search *s, sw_pipelined **out, sw_error *err)
{
	if (!s->best) {
		sw_stage_store_free(s->store);
		if (!s->first_status || s->gave_up)
			return sw_fail(err, SW_NO,
			               "no number of stages can be quicker than the plan without, "
			               "or there is but one device");
		if (s->out_of_time && s->first_status == SW_NO)
			return sw_fail(err, SW_NO,
			               "no plan with stages was found within the time limit: %s",
			               s->first.message);
		*err = s->first;
		return s->first_status;
	}
	s->best->store = s->store;
	s->best->out_of_time = s->out_of_time;
	*out = s->best;
	return SW_OK;
}

sw_status sw_pipelined_make(const sw_program *program, const char *program_path,
                            const sw_sidecar *sidecar, const sw_cluster *cluster,
                            const sw_pipelined_options *options, sw_pipelined **out, sw_error *err)
{
	sw_pipelined_request request = {program, program_path, sidecar, cluster, options};
	stage_search s = {.request = &request, .options = options, .least_ratio = 1};
	double start_s = sw_now_s();
	sw_phases phases;
	*out = NULL;
	SW_TRY(sw_pipelined_check_words(options, err));
	SW_TRY(check_file(&request, err));
	SW_TRY(sw_pipelined_check_kinds(options, err));
	SW_TRY(sw_stage_store_new(&request, &s.store, err));
	sw_progress_start(&s.progress, "stages", options->plan.quiet);
	sw_phases_init(&phases, sw_stage_store_canonical(s.store), sw_stage_store_sidecar(s.store));
	if (options->n_stages)
		enter_trials(&s, &phases, options->n_stages);
	else
		enter_numbers(&s, &phases);
	sw_phases_clear(&phases);
	if (s.trials.len)
		qsort(s.trials.data, s.trials.len, sizeof(*s.trials.data), by_estimate);
	plan_trials(&s);
	if (options->plan.strategy.kind == SW_PLAN_AUTO)
		plan_on_all_meshes(&s);
	cut_again(&s);
	sw_status status = order_again(&s, err);
	for (size_t i = 0; i < s.trials.len; i++)
		sw_pipelined_free(s.trials.data[i].opened);
	sw_vec_clear(&s.trials);
	sw_progress_end(&s.progress);
	if (s.best)
		s.best->planning_s = sw_now_s() - start_s;
	if (status) {
		sw_pipelined_free(s.best);
		sw_stage_store_free(s.store);
		return status;
	}
	return answer(&s, out, err);
}
