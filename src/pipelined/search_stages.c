/* How many stages and microbatches, and what is computed again.
 *
 * A TRIAL is a number of stages, of microbatches and a rematerialisation. One stage of one trial of
 * each number of stages is planned, on one mesh; by it all its trials are estimated, and in that
 * order planned, on one mesh each, which a piece is quickest on, as far as the budget goes. The
 * quickest is cut again by the seconds of its plans, where that promises enough. */
#include "pipelined/stage_trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ops of the stages that are planned on one mesh, beyond the first trials, and how many those are.
 */
#define TRIAL_OPS 12000
#define FIRST_TRIALS 2
/* As long as none of them fits, or the best is above what others are estimated to take, so many times
 * as many ops. */
#define UNFIT_TRIALS 3
/* A trial whose estimate is that much above the best plan is not planned: estimates are within
 * about a tenth of the plans. */
#define HOPELESS 1.1
/* On unequal slices, which are estimated by a plan on one of other size, it is that much. So it is of
 * programs of up to so many ops, whose estimates are less certain, as what is done once for each
 * microbatch counts for more, and whose trials take little time. */
#define HOPELESS_PARTS 1.3
/* Of these the estimate of the first trial of each number of stages may be wrong by so much, and says
 * by its plan how much those of the others are. */
#define HOPELESS_KIND 4
#define SMALL_PROGRAM 3000
/* Stages are cut again by the seconds of their plans, at most so often, where the step should become
 * shorter by so much. */
#define RECUTS 3
#define RECUT_GAIN 0.005
/* Where nothing fits, stages that are too large are cut so often for these parts of the memory. */
static const double FITTING[] = {0.95, 0.85, 0.75};

static int by_estimate(const void *a, const void *b)
{
	const sw_stage_trial *x = a, *y = b;
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

/* Keep a planned trial, which is taken over, if it is better than the best one. */
static bool keep_better(sw_stage_search *s, sw_pipelined *p)
{
	bool better = is_better(p, s->best);
	sw_pipelined_free(better ? s->best : p);
	if (better)
		s->best = p;
	return better;
}

/* Plan all stages of an opened trial; it is freed if that fails. *step_s: its step if it fits, or one
 * that it is not below; else 0. */
static bool plan_opened(sw_stage_search *s, sw_pipelined *p, double than_s, double *step_s)
{
	sw_error err = {0};
	sw_status status = sw_pipelined_plan(p, s->store, s->options, than_s, step_s, &err);
	if (status) {
		sw_trials_note_failure(s, status, &err);
		sw_pipelined_free(p);
	} else if (p->fits) {
		*step_s = p->played.step_s;
	}
	return status == SW_OK;
}

/* Plan an opened trial, which is taken over; return the step, as plan_opened does. */
static double plan_trial(sw_stage_search *s, sw_pipelined *p, double than_s)
{
	double step_s = 0;
	if (plan_opened(s, p, than_s, &step_s))
		keep_better(s, p);
	return step_s;
}

/* ---- the mesh --------------------------------------------------------------------------- */

#define FREE_MESHES "search" /* how their names begin */
/* No mesh has this name: beside it there are fixed strategies alone. */
#define FIXED_ALONE "fixed strategies"
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
static void choose_mesh(sw_stage_search *s, sw_stage_trial *t)
{
	sw_pipelined_numbers cut = t->numbers;
	sw_pipelined_probe found;
	sw_error err = {0};
	sw_pipelined *p = t->opened, *pieces = NULL;
	if (!p->mesh || s->options->plan.strategy.kind != SW_PLAN_AUTO || sw_trials_late(s))
		return;
	cut.n_pieces = sw_trials_pieces(s, cut.n_ranks);
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

static bool is_small(const sw_stage_search *s)
{
	return sw_stage_store_canonical(s->store)->ops.len <= SMALL_PROGRAM;
}

/* Plan a trial by fixed strategies alone, which takes a fraction of the time that it takes to find
 * what fits on a mesh; true: it is the best one now. */
static bool plan_fixed_alone(sw_stage_search *s, sw_pipelined_numbers numbers, double *step_s)
{
	sw_status status;
	const sw_pipelined *before = s->best;
	sw_pipelined *p = sw_trials_late(s) ? NULL : sw_trials_open(s, numbers, &status);
	if (!p)
		return false;
	p->mesh = FIXED_ALONE;
	p->with_fixed = true;
	*step_s = plan_trial(s, p, sw_trials_known_s(s));
	return s->best != before && s->best->fits;
}

/* Plan a trial that does not fit on its mesh by fixed strategies, also with the policies behind its
 * own: until one fits, and from there on as long as steps become shorter. */
static void plan_unfit(sw_stage_search *s, sw_stage_trial *t)
{
	sw_pipelined_numbers numbers = t->numbers;
	bool tried = false, better = true;
	const char *remat;
	for (size_t i = 0; better && sw_trials_policy(s, i, &remat); i++) {
		tried |= remat == numbers.remat;
		if (!tried)
			continue;
		double step_s = 0;
		numbers.remat = remat;
		better = plan_fixed_alone(s, numbers, &step_s) || step_s <= 0;
		t->planned_s = step_s > 0 && t->planned_s > 0 ? fmin(t->planned_s, step_s)
		                                              : fmax(t->planned_s, step_s);
	}
}

/* Plan a trial on the mesh that is best for a piece; where that leads to nothing, on the first. Of
 * small programs, plan one that does not fit by fixed strategies. */
static void plan_entered(sw_stage_search *s, sw_stage_trial *t)
{
	const char *first;
	sw_status status;
	choose_mesh(s, t);
	sw_pipelined *p = t->opened;
	t->opened = NULL;
	first = sw_trials_first_mesh(p->slices[0], &p->arena);
	bool other = first && strcmp(p->mesh, first) != 0,
	     is_auto = s->options->plan.strategy.kind == SW_PLAN_AUTO;
	t->planned_s = plan_trial(s, p, s->best ? sw_trials_known_s(s) : INFINITY);
	if (other && !(s->best && s->best->fits) && !sw_trials_late(s)) {
		p = sw_trials_open(s, t->numbers, &status);
		if (p)
			t->planned_s = plan_trial(s, p, INFINITY);
	}
	if (t->planned_s <= 0 && first && is_auto && is_small(s))
		plan_unfit(s, t);
}

/* Write the steps of a trial; false: it has none, and is given up. */
static bool has_steps(sw_stage_search *s, const sw_stage_trial *t)
{
	sw_error err = {0};
	sw_status status = sw_pipelined_write_steps(t->opened, s->store, &err);
	if (status)
		sw_trials_note_failure(s, status, &err);
	return status == SW_OK;
}

/* Is a trial of the same kind: of as many slices, and of unequal ones of the same placement? */
static bool same_kind(const sw_pipelined_numbers *a, const sw_pipelined_numbers *b)
{
	return a->n_ranks == b->n_ranks && a->by_parts == b->by_parts &&
	       (!a->by_parts || a->placement == b->placement);
}

/* The least of what plans take of their estimates: of trials of the same kind, which are estimated by
 * one plan; where none of them is planned, in small programs of all, at most 1. */
static double least_ratio(const sw_stage_search *s, const sw_pipelined_numbers *of, bool *planned)
{
	double least = INFINITY, least_of_all = 1;
	for (size_t i = 0; i < s->trials.len; i++) {
		const sw_stage_trial *t = &s->trials.data[i];
		double ratio = t->planned_s > 0 && t->played_s > 0 ? t->planned_s / t->played_s
		                                                   : INFINITY;
		least = same_kind(&t->numbers, of) ? fmin(least, ratio) : least;
		least_of_all = fmin(least_of_all, ratio);
	}
	*planned = isfinite(least);
	return *planned ? least : is_small(s) ? least_of_all : 1;
}

/* A trial is not planned if its estimate is that much above what is known. */
static double hopeless_above(const sw_stage_search *s, const sw_stage_trial *t, bool of_kind)
{
	if (!is_small(s))
		return t->numbers.by_parts ? HOPELESS_PARTS : HOPELESS;
	if (!of_kind)
		return HOPELESS_KIND;
	/* It takes long to find whether it does. */
	return t->estimate_s > t->played_s ? 1 : HOPELESS_PARTS;
}

/* Is a trial not planned, since by its estimate it can't be quicker than what is known? Where no plan
 * with stages is, or the program is small, that it may not fit does not count. Of small programs
 * something is planned, and one trial of each kind unless its estimate is far above. */
static bool is_hopeless(const sw_stage_search *s, const sw_stage_trial *t)
{
	bool small = is_small(s), found = s->best && s->best->fits, of_kind;
	double ratio = least_ratio(s, &t->numbers, &of_kind),
	       estimate_s = (found && !small ? t->estimate_s : t->played_s) * ratio;
	return (found || !small) &&
	       estimate_s > hopeless_above(s, t, of_kind) * sw_trials_known_s(s);
}

/* The trial that is planned next, by the estimates as scaled by the plans of its kind; NULL: all are
 * planned or given up. */
static sw_stage_trial *next_trial(sw_stage_search *s)
{
	sw_stage_trial *next = NULL;
	double least_s = INFINITY;
	bool of_kind;
	for (size_t i = 0; i < s->trials.len; i++) {
		sw_stage_trial *t = &s->trials.data[i];
		double estimate_s = t->done ? INFINITY
		                            : t->estimate_s * least_ratio(s, &t->numbers, &of_kind);
		if (t->done || (next && estimate_s >= least_s))
			continue;
		next = t;
		least_s = estimate_s;
	}
	return next;
}

/* Is it one of those that are planned beyond the budget: the first of a kind, of unequal slices or of a
 * small program? Their estimates are less certain than those of others are among each other. */
static bool is_first_of_kind(const sw_stage_search *s, const sw_stage_trial *t)
{
	bool first = t->numbers.by_parts || is_small(s);
	for (size_t i = 0; i < s->trials.len; i++) {
		const sw_stage_trial *other = &s->trials.data[i];
		first &= other == t || !other->done || other->given_up ||
		         !same_kind(&other->numbers, &t->numbers);
	}
	return first;
}

static void plan_trials(sw_stage_search *s)
{
	size_t ops = 0, planned = 0;
	bool fitted = false, spent = false;
	sw_stage_trial *t;
	while ((t = next_trial(s)) != NULL && !(s->best && sw_trials_late(s))) {
		bool fits = s->best && s->best->fits, first = is_first_of_kind(s, t),
		     hopeless = is_hopeless(s, t);
		t->done = true;
		/* What was spent on trials that did not fit says nothing about the others. */
		if (fits && !fitted && planned > 1)
			ops = planned = 0;
		fitted = fits;
		s->gave_up |= hopeless;
		t->given_up = hopeless || (spent && !first) || !has_steps(s, t);
		if (t->given_up)
			continue;
		ops += ops_of(t->opened);
		bool good = fits && sw_trials_known_s(s) < t->estimate_s;
		size_t most = good ? TRIAL_OPS : TRIAL_OPS * (size_t)UNFIT_TRIALS;
		spent |= s->best && ops > most && planned >= FIRST_TRIALS;
		t->given_up = spent && !first;
		if (t->given_up)
			continue;
		sw_progress_update(&s->progress, (double)++planned / (double)(s->trials.len + 2),
		                   "%d stages, %d microbatches", t->opened->n_stages,
		                   t->numbers.microbatches);
		plan_entered(s, t);
	}
}

/* Where nothing fits on one mesh, stages are planned on all of them, which takes several times as
 * long: those of the first trials. */
#define TRIALS_ON_ALL_MESHES 2
static void plan_on_all_meshes(sw_stage_search *s)
{
	size_t n = SW_MIN(s->trials.len, (size_t)TRIALS_ON_ALL_MESHES);
	for (size_t i = 0; i < n && !(s->best && s->best->fits) && !sw_trials_late(s); i++) {
		sw_status status;
		sw_pipelined *p = is_hopeless(s, &s->trials.data[i])
		                          ? NULL
		                          : sw_trials_open(s, s->trials.data[i].numbers, &status);
		if (!p)
			continue;
		sw_progress_update(&s->progress, 0.8, "all meshes of %d stages", p->n_stages);
		p->mesh = NULL;
		plan_trial(s, p, INFINITY);
	}
}

/* ---- schedules --------------------------------------------------------------------------- */

/* Search for a quicker schedule of a plan, where it may be any. */
static sw_status order_again(sw_stage_search *s, sw_pipelined *p, sw_error *err)
{
	if (!p || !p->fits || s->options->schedule >= 0 || p->given || p->ordered)
		return SW_OK;
	p->ordered = true;
	sw_progress_update(&s->progress, 0.95, "other schedules");
	return sw_pipelined_search_order(p, sw_stage_store_left_s(s->store), err);
}

/* Plan an opened trial, whose schedule is searched for, too; NULL: that fails. */
static sw_pipelined *plan_ordered(sw_stage_search *s, sw_pipelined *p, double than_s)
{
	sw_error err;
	double step_s;
	if (!plan_opened(s, p, than_s, &step_s))
		return NULL;
	if (order_again(s, p, &err) == SW_OK)
		return p;
	sw_pipelined_free(p);
	return NULL;
}

/* ---- the best one, once more ------------------------------------------------------------- */

/* Seconds of one microbatch in a stage by its plan. */
static double planned_s(const sw_planned_stage *stage)
{
	const double *part_s = stage->times.part_s;
	return part_s[SW_STAGE_FORWARD] + part_s[SW_STAGE_INPUT_GRADIENT] + part_s[SW_STAGE_WEIGHT_GRADIENT];
}

static int32_t longest_stage(const sw_pipelined *p)
{
	int32_t longest = 0;
	for (int32_t i = 1; i < p->n_stages; i++)
		longest = planned_s(&p->stages[i]) > planned_s(&p->stages[longest]) ? i : longest;
	return longest;
}

/* The mesh of a stage. */
static const char *mesh_of_stage(const sw_pipelined *p, int32_t stage, sw_arena *arena)
{
	return mesh_of(p->stages[p->stages[stage].like].plan, arena);
}

typedef SW_VEC(const char *) mesh_names;

static void add_mesh(mesh_names *names, const char *mesh)
{
	for (size_t i = 0; i < names->len; i++)
		if (strcmp(names->data[i], mesh) == 0)
			return;
	sw_vec_push(names, mesh);
}

/* Is it a fixed strategy, and no grid? Of grids, which are many, stages are planned on none. */
static bool is_fixed(const char *name)
{
	sw_plan_strategy strategy;
	sw_error ignored;
	return sw_plan_strategy_parse(name, &strategy, &ignored) == SW_OK &&
	       strategy.kind != SW_PLAN_AXONN && strategy.kind != SW_PLAN_SUMMA &&
	       strategy.kind != SW_PLAN_2_5D;
}

/* The meshes of the stages, each once, that of the longest first; of a large program that alone. Of a
 * small one all fixed strategies behind them: the plan of a stage is chosen by its own step, and a
 * pipeline's is more than that of its stages. */
static void meshes_of_stages(const sw_stage_search *s, const sw_pipelined *p, sw_arena *arena,
                             mesh_names *names)
{
	int32_t first = longest_stage(p), n = is_small(s) ? p->n_stages : 1;
	for (int32_t i = 0; i < n; i++)
		add_mesh(names, mesh_of_stage(p, (first + i) % p->n_stages, arena));
	const sw_plan *longest = p->stages[p->stages[first].like].plan;
	for (size_t i = 0; i < longest->alternatives.len && is_small(s); i++) {
		const sw_alternative *row = &longest->alternatives.data[i];
		if (row->feasible && is_fixed(row->name))
			add_mesh(names, sw_arena_text(arena, row->name));
	}
}

/* Plan the best trial once more, on these meshes, or by fixed strategies beside them; NULL: there is no
 * time, or that fails. */
static sw_pipelined *plan_best_on(sw_stage_search *s, const char *mesh, bool with_fixed)
{
	sw_status status;
	sw_pipelined *p = sw_trials_late(s) ? NULL
	                                    : sw_trials_open(s, sw_pipelined_numbers_of(s->best), &status);
	if (!p)
		return NULL;
	sw_progress_update(&s->progress, 0.85, "fixed strategies of %d stages", p->n_stages);
	p->mesh = sw_arena_text(&p->arena, mesh);
	p->with_fixed = with_fixed;
	return plan_ordered(s, p, s->best->played.step_s);
}

/* Plan the best trial with fixed strategies beside its mesh: each of its stages may take one of them,
 * or what is found on the mesh from there. (Where it has no mesh, stages take the best of all.) Then
 * plan it with all stages on the mesh of one: stages that lie alike may send each other less. */
static void plan_with_fixed(sw_stage_search *s)
{
	sw_arena arena;
	if (!s->best || !s->best->fits || s->options->plan.strategy.kind != SW_PLAN_AUTO)
		return;
	sw_arena_init(&arena);
	const char *mesh = s->best->mesh ? sw_arena_text(&arena, s->best->mesh) : NULL;
	if (mesh && strcmp(mesh, FIXED_ALONE) == 0)
		mesh = sw_trials_first_mesh(s->best->slices[0], &arena);
	sw_pipelined *mixed = mesh ? plan_best_on(s, mesh, true) : NULL;
	mesh_names meshes = {0};
	meshes_of_stages(s, mixed ? mixed : s->best, &arena, &meshes);
	if (mixed)
		keep_better(s, mixed);
	for (size_t i = 0; i < meshes.len; i++) {
		bool planned = mesh && strcmp(meshes.data[i], mesh) == 0;
		sw_pipelined *alike = planned ? NULL : plan_best_on(s, meshes.data[i], false);
		if (alike)
			keep_better(s, alike);
	}
	sw_vec_clear(&meshes);
	sw_arena_clear(&arena);
}

/* What stages that are too large may have of the work that they have: as much as of their bytes fits.
 * [stages], of a mean of 1; the caller frees it. */
static double *fitting_shares(const sw_stage_search *s, const sw_pipelined *p, double fitting)
{
	double *share = sw_alloc(sizeof(double) * (size_t)p->n_stages), sum = 0,
	       memory_bytes = fitting * (double)sw_pipelined_memory(p, s->options);
	for (int32_t i = 0; i < p->n_stages; i++) {
		double bytes = p->played.ranks[p->stages[i].rank].peak_bytes;
		bool fits = bytes <= memory_bytes / fitting;
		share[i] = fits ? 1 : memory_bytes / bytes;
		sum += share[i];
	}
	for (int32_t i = 0; i < p->n_stages; i++)
		share[i] *= p->n_stages / sum;
	return share;
}

/* Plan the best trial with other cuts, which is taken over where it is better. */
static bool plan_again(sw_stage_search *s, sw_pipelined *again)
{
	const sw_pipelined *p = s->best;
	again->mesh = p->mesh ? sw_arena_text(&again->arena, p->mesh) : NULL;
	again->with_fixed = p->with_fixed;
	again = plan_ordered(s, again, p->fits ? p->played.step_s : INFINITY);
	return again && keep_better(s, again);
}

/* Cut the best trial, which does not fit, with less work where it is too large. */
static void cut_smaller(sw_stage_search *s, double fitting)
{
	const sw_pipelined *p = s->best;
	sw_pipelined *again = NULL;
	sw_error err = {0};
	if (!p || p->fits || p->n_stages == 1 || sw_trials_late(s))
		return;
	sw_pipelined_numbers numbers = sw_pipelined_numbers_of(p);
	double *op_s = sw_trials_planned_seconds(p), *share = fitting_shares(s, p, fitting);
	numbers.share = share;
	numbers.planned = p;
	sw_progress_update(&s->progress, 0.9, "smaller cuts of %d stages", p->n_stages);
	if (sw_pipelined_open(s->request, s->store, numbers, op_s, &again, &err) == SW_OK)
		plan_again(s, again);
	free(op_s);
	free(share);
}

/* Cut the best trial again, by the seconds of its plans; false: it is not better. */
static bool cut_again(sw_stage_search *s)
{
	const sw_pipelined *p = s->best;
	sw_pipelined *again = NULL;
	sw_error err = {0};
	if (!p || !p->fits || p->n_stages == 1 || sw_trials_late(s))
		return false;
	sw_pipelined_numbers numbers = sw_pipelined_numbers_of(p);
	double *op_s = sw_trials_planned_seconds(p);
	int32_t *cuts = sw_alloc(sizeof(int32_t) * (size_t)p->n_stages);
	numbers.planned = p;
	sw_progress_update(&s->progress, 0.9, "other cuts of %d stages", p->n_stages);
	sw_status status = sw_pipelined_open(s->request, s->store, numbers, op_s, &again, &err);
	double gain = sw_trials_move_cuts(s, p, op_s, status ? NULL : again->cut.cuts, cuts);
	sw_pipelined_free(again);
	numbers.cuts = cuts;
	bool better = gain >= RECUT_GAIN &&
	              sw_pipelined_open(s->request, s->store, numbers, op_s, &again, &err) == SW_OK &&
	              plan_again(s, again);
	free(op_s);
	free(cuts);
	return better;
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
	else if (!sw_trials_place(request, 0, &numbers))
		status = sw_fail_at(err, SW_ERR_INPUT, file->path, 0, 0,
		                    "stages: there are %d of them, and no --schedule and --chunks "
		                    "that are possible have so many on %d slices",
		                    file->n_stages, options->n_stages);
	return status;
}

/* Cut the program into as many stages as were asked for, in any number of microbatches that is tried
 * with them. */
static sw_status cut_as_asked(sw_stage_search *s, const sw_phases *phases, sw_error *err)
{
	int32_t d = s->options->n_stages, m[SW_TRIED_MICROBATCHES];
	int at, n = sw_trials_microbatches(s, phases, d, m, &at);
	sw_pipelined *opened = NULL;
	for (int i = 0; i < n && !opened; i++) {
		sw_pipelined_numbers numbers = {.n_ranks = d, .microbatches = m[i]};
		sw_status status;
		sw_trials_place(s->request, 0, &numbers);
		opened = sw_trials_open(s, numbers, &status);
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
	sw_stage_search s = {.request = &request, .options = options};
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

static sw_status answer(sw_stage_search *s, sw_pipelined **out, sw_error *err)
{
	if (!s->best) {
		sw_stage_store_free(s->store);
		if (s->gave_up)
			return sw_fail(err, SW_NO,
			               "by their estimates no number of stages can be quicker than "
			               "the plan without");
		if (!s->first_status)
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
	sw_stage_search s = {.request = &request, .options = options};
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
		sw_trials_enter(&s, &phases, options->n_stages);
	else
		sw_trials_enter_numbers(&s, &phases);
	sw_phases_clear(&phases);
	if (s.trials.len)
		qsort(s.trials.data, s.trials.len, sizeof(*s.trials.data), by_estimate);
	plan_trials(&s);
	if (options->plan.strategy.kind == SW_PLAN_AUTO)
		plan_on_all_meshes(&s);
	sw_status status = order_again(&s, s.best, err);
	if (status == SW_OK)
		plan_with_fixed(&s);
	for (size_t k = 0; k < SW_COUNT(FITTING) && status == SW_OK; k++)
		cut_smaller(&s, FITTING[k]);
	for (int k = 0; k < RECUTS && status == SW_OK && cut_again(&s); k++)
		;
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
