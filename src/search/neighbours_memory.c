/*
 * Variants that take less memory and more time: rematerialisation (activations are computed again),
 * microbatches, or both.
 *
 * They are tried only where the quickest plan of the program as it is exceeds the memory. The
 * choices are a grid of policies and numbers of microbatches, ordered by predictions. Of the peak
 * that plan tells apart what it holds of the state, which does not shrink, and activations, which
 * are in proportion to those of one device by live ranges, over the microbatches. The predicted time
 * is the bound of the program as it is, plus the recomputation, plus the kernel overhead of each
 * further iteration; where the state as that plan holds it leaves no room, each iteration is expected
 * to send what the plan sends once. The search begins at the quickest choice, put off as far as it
 * should exceed the memory. Its peak corrects the predictions. Once a choice fits, its neighbours in
 * the grid are tried as long as that makes plans faster: a choice that takes more memory must split
 * more, one that takes less may split less. Then come the choices elsewhere whose predicted time is
 * below the incumbent's step, as long as the budget of work lasts. Meshes that were far behind in the
 * best variant are left out of the next.
 */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct saving_choice {
	sw_rewrites rewrites;
	double seconds;          /* predicted, of the kernels of one device of the cluster */
	double activation_bytes; /* predicted, likewise */
	double bytes;            /* with the state, divided as far as the mesh allows */
	double expected_s;       /* seconds, with what each further iteration may have to send */
	bool tried;
	size_t variant; /* if is_variant */
	bool is_variant;
} saving_choice;

/* What the choices are: the same for all searches that share a program. */
struct sw_saving_grid {
	sw_arena arena;
	sw_remat_points points;
	sw_remat_policy none; /* computes nothing again */
	sw_remat_policy_list
		policies; /* rows: each takes more time and less memory than the one before */
	sw_phases phases;
	SW_VEC(int32_t)
	counts; /* columns: numbers of microbatches, ascending; the first is 1 if allowed */
	double state_bytes, sum_bytes; /* inputs that stay live; the trained ones among them */
	double iteration_s;            /* time of one more iteration's kernels */
};

struct sw_grid_search {
	sw_search *search;
	sw_arena arena;
	const sw_saving_grid *grid;
	saving_choice *items; /* [row][column] */
	size_t n, last;       /* last: the choice tried last; n: none */
	double memory_bytes;
	struct {              /* of the first variant's quickest plan without a memory limit */
		double scale; /* its activations over those of one device that runs it all */
		double least_share; /* of the state that a device of its mesh holds at least */
		double held_bytes;  /* of inputs, gathered parameters and sums, if all stay there */
		double resend_s;    /* its collectives */
	} first;
	/* what activations took over what was predicted, of choices that compute nothing again and
	 * of those that do */
	double correction[2];
	int32_t searches;
	bool found; /* some choice fits: the search climbs to its neighbours */
};

/* ---- choices ---------------------------------------------------------------------------- */

static void count_state(const sw_search *s, sw_saving_grid *g)
{
	const sw_program *program = s->canonical;
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, &g->arena, &inputs);
	for (uint32_t i = 0; i < n; i++) {
		sw_role role = s->asked.sidecar->inputs[i].role;
		double bytes = (double)sw_shape_bytes(sw_value_shape(program, inputs[i]));
		g->state_bytes += bytes;
		g->sum_bytes += role == SW_ROLE_PARAMETER ? bytes : 0;
	}
}

/* Predict the bytes of activations of one device that runs the whole program. */
static double activations_of(const sw_saving_grid *g, const sw_remat_policy *policy,
                             int32_t microbatches)
{
	return SW_MAX((double)policy->peak_bytes - g->state_bytes, 0) / SW_MAX(microbatches, 1);
}

static bool is_asked_for(const sw_plan_options *options, const char *policy)
{
	return !options->remat || !strcmp(options->remat, policy);
}

static void choose_rows(const sw_search *s, sw_saving_grid *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->policies.len; i++)
		if (is_asked_for(s->asked.options, g->policies.data[i].name))
			g->policies.data[n++] = g->policies.data[i];
	g->policies.len = n;
}

/* Is the next policy at least as good? Computing weight gradients early costs nothing, so the
 * policy without it is tried only if it is the one asked for. */
static bool is_dominated(const sw_grid_search *x, size_t row)
{
	const sw_remat_policy *policies = x->grid->policies.data;
	return !policies[row].what.again && row + 1 < x->grid->policies.len &&
	       policies[row + 1].added_flops == 0;
}

/* Only powers of two are tried, unless the batch is odd. */
static bool is_column(const sw_search *s, int64_t batch, int64_t microbatches)
{
	int32_t asked = s->asked.options->microbatches;
	bool is_power = (microbatches & (microbatches - 1)) == 0;
	if (asked > 0)
		return microbatches == asked;
	return microbatches <= (int64_t)s->asked.limits->max_microbatches &&
	       (is_power || batch % 2 != 0);
}

static void choose_columns(const sw_search *s, sw_saving_grid *g)
{
	if (is_column(s, g->phases.batch, 1))
		sw_vec_push(&g->counts, 1);
	for (int32_t i = 0; i < g->phases.possible.n; i++)
		if (is_column(s, g->phases.batch, g->phases.possible.v[i]))
			sw_vec_push(&g->counts, (int32_t)g->phases.possible.v[i]);
}

/* Predict what a choice takes. The state is divided as far as the mesh allows if need be; but where
 * a device can't hold it as the quickest plan without a memory limit does, parameters as they are
 * read and sums of gradients included, each iteration may have to send what that plan sends once. */
static void predict(const sw_grid_search *x, saving_choice *c)
{
	const sw_saving_grid *g = x->grid;
	double more = SW_MAX(c->rewrites.microbatches - 1, 0),
	       activations = c->activation_bytes * x->correction[c->rewrites.remat != NULL];
	c->bytes = activations +
	           x->first.least_share * (g->state_bytes + (more > 0 ? g->sum_bytes : 0));
	bool resends = activations + x->first.held_bytes > x->memory_bytes;
	c->expected_s = c->seconds + (resends ? more * x->first.resend_s : 0);
}

static saving_choice saving_of(const sw_grid_search *x, const sw_remat_policy *policy,
                               int32_t microbatches)
{
	const sw_variant *first = sw_search_variant(x->search, 0);
	double devices = (double)x->search->asked.cluster->n_devices,
	       iterations_more = microbatches - 1;
	return (saving_choice){
		.rewrites = {.remat = policy->what.again ? policy->name : NULL,
	                     .microbatches = microbatches < 2 ? 0 : microbatches},
		.activation_bytes = x->first.scale * activations_of(x->grid, policy, microbatches),
		.seconds = first->kernels_s + policy->added_s / devices +
	                   iterations_more * x->grid->iteration_s};
}

static const sw_remat_policy *policy_of(const sw_saving_grid *g, const sw_rewrites *rewrites)
{
	for (size_t i = 0; rewrites->remat && i < g->policies.len; i++)
		if (!strcmp(g->policies.data[i].name, rewrites->remat))
			return &g->policies.data[i];
	return &g->none;
}

/* Measure the predictions by the first variant's plan. What it holds beside the state are activations:
 * an even share of them at least. */
static void measure_first(sw_grid_search *x)
{
	const sw_variant *first = sw_search_variant(x->search, 0);
	const sw_held_state *held = &first->unconstrained.held;
	const sw_saving_grid *g = x->grid;
	double whole = activations_of(g, policy_of(g, &first->rewrites), first->rewrites.microbatches),
	       peak = (double)first->unconstrained.cost.peak_bytes,
	       share = 1 / (double)x->search->asked.cluster->n_devices,
	       state = (double)(held->input_bytes + held->gathered_bytes),
	       least = (double)first->share_bytes - share * g->state_bytes;
	if (peak == 0)
		return;
	x->first.scale = SW_MAX(SW_MAX(peak - state, least), 0) / SW_MAX(whole, 1);
	x->first.least_share =
		(double)first->unconstrained.least_bytes / SW_MAX(g->state_bytes, 1);
	x->first.held_bytes = state + (double)held->sum_bytes;
	x->first.resend_s = first->unconstrained.cost.communication_s;
}

static void fill(sw_grid_search *x)
{
	const sw_saving_grid *g = x->grid;
	const sw_rewrites *first = &sw_search_variant(x->search, 0)->rewrites;
	size_t columns = g->counts.len;
	x->n = g->policies.len * columns;
	x->items = SW_NEW_N(&x->arena, saving_choice, x->n + 1);
	for (size_t i = 0; i < x->n; i++) {
		saving_choice *c = &x->items[i];
		*c = saving_of(x, &g->policies.data[i / columns], g->counts.data[i % columns]);
		predict(x, c);
		c->is_variant = sw_rewrites_save_alike(&c->rewrites, first);
		c->tried = c->is_variant || is_dominated(x, i / columns);
	}
}

static sw_status make_grid(const sw_search *s, sw_saving_grid *g, sw_error *err)
{
	const sw_program *program = s->canonical;
	sw_arena_init(&g->arena);
	g->iteration_s =
		s->asked.cluster->device.kernel_overhead_s * (double)sw_entry(program)->ops.len;
	count_state(s, g);
	sw_phases_init(&g->phases, program, s->asked.sidecar);
	sw_remat_points_init(&g->points, program);
	SW_TRY(sw_remat_policies(&g->points, sw_plan_remat_device(s->asked.cluster, program),
	                         &g->policies, err));
	g->none = g->policies.data[0];
	choose_rows(s, g);
	choose_columns(s, g);
	return SW_OK;
}

void sw_saving_grid_free(sw_saving_grid *g)
{
	if (!g)
		return;
	sw_vec_clear(&g->counts);
	sw_vec_clear(&g->policies);
	sw_remat_points_clear(&g->points);
	sw_phases_clear(&g->phases);
	sw_arena_clear(&g->arena);
	free(g);
}

sw_status sw_saving_begin(sw_search *s)
{
	sw_saving_grid **grid = &sw_search_owner(s)->saving_grid;
	if (!*grid) {
		*grid = sw_alloc(sizeof(**grid));
		**grid = (sw_saving_grid){0};
		SW_TRY(make_grid(s, *grid, s->err));
	}
	sw_grid_search *x = sw_alloc(sizeof(*x));
	*x = (sw_grid_search){
		.search = s,
		.grid = *grid,
		.memory_bytes = (double)sw_search_memory(s),
		.correction = {1, 1}};
	s->proposals.grid = x;
	sw_arena_init(&x->arena);
	measure_first(x);
	fill(x);
	x->last = x->n;
	return SW_OK;
}

void sw_saving_end(sw_search *s)
{
	sw_grid_search *x = s->proposals.grid;
	s->proposals.grid = NULL;
	if (!x)
		return;
	sw_arena_clear(&x->arena);
	free(x);
}

static const sw_variant *variant_of(const sw_grid_search *x, size_t i)
{
	const saving_choice *c = &x->items[i];
	return c->is_variant ? sw_search_variant(x->search, c->variant) : NULL;
}

/* ---- what can't fit --------------------------------------------------------------------- */

/* Was every mesh of the variant searched to its end? */
static bool was_searched_fully(const sw_variant *v)
{
	for (size_t i = 0; i < v->entries.len; i++)
		if (v->entries.data[i].line.bound_s > 0)
			return false;
	return true;
}

/* Does no plan of the variant fit? Meshes that were pruned as too slow might hold one, if the
 * smallest plan nearly fits. */
static bool is_too_large(const sw_search *s, const sw_variant *v)
{
	double limit = s->asked.limits->memory_doubt * (double)sw_search_memory(s);
	bool has_least = v->least.snapshot.strategies != NULL && !sw_variant_fits(v);
	return sw_variant_is_too_large(s, v) ||
	       (has_least && (was_searched_fully(v) || (double)v->least.cost.peak_bytes > limit));
}

/* Was a choice that needs no more memory than this one found not to fit? More microbatches need more
 * where the sums of gradients exceed the activations that they save. */
static bool cannot_fit(const sw_grid_search *x, size_t at)
{
	size_t columns = x->grid->counts.len;
	for (size_t i = 0; i < x->n; i++)
		if (i / columns >= at / columns && i % columns >= at % columns &&
		    x->items[i].bytes <= x->items[at].bytes && variant_of(x, i) &&
		    is_too_large(x->search, variant_of(x, i)))
			return true;
	return false;
}

/* ---- one that fits ---------------------------------------------------------------------- */

/* What a choice should take, and more the further its predicted bytes exceed the memory: that it may
 * fit all the same is worth a search only if it is much quicker than those that should fit. */
static double score(const sw_grid_search *x, const saving_choice *c)
{
	return c->expected_s *
	       pow(SW_MAX(c->bytes / x->memory_bytes, 1), x->search->asked.limits->misfit_power);
}

/* Return the untried choice of the best score, or the smallest one; n: there is none. */
static size_t most_promising(const sw_grid_search *x, bool smallest)
{
	size_t best = x->n;
	for (size_t i = 0; i < x->n; i++) {
		const saving_choice *c = &x->items[i], *b = best < x->n ? &x->items[best] : NULL;
		bool open = !c->tried && (smallest || !cannot_fit(x, i));
		if (open && (!b || (smallest ? c->bytes < b->bytes : score(x, c) < score(x, b))))
			best = i;
	}
	return best;
}

/* Return the choice that is predicted to need least. */
static size_t smallest_of(const sw_grid_search *x)
{
	size_t least = 0;
	for (size_t i = 1; i < x->n; i++)
		if (x->items[i].bytes < x->items[least].bytes)
			least = i;
	return least;
}

/* Correct the predictions by a choice that needed more memory than predicted. One that computes
 * nothing again tells of all; others tell how much of what they free is held by what is moved. */
static void correct(sw_grid_search *x, size_t at)
{
	const saving_choice *c = &x->items[at];
	const sw_variant *v = variant_of(x, at);
	bool again = c->rewrites.remat != NULL;
	if (!v || !v->least.snapshot.strategies || c->activation_bytes <= 0)
		return;
	double state = c->bytes - c->activation_bytes * x->correction[again],
	       factor = ((double)v->least.cost.peak_bytes - state) / c->activation_bytes;
	for (int k = again; k < 2; k++)
		x->correction[k] = SW_MAX(x->correction[k], factor);
	for (size_t i = 0; i < x->n; i++)
		predict(x, &x->items[i]);
}

/* Return the untried choice that is predicted to need least; n: none is left that may fit, by what
 * the smallest one needs of what was predicted. Predictions of different policies are apart by up
 * to the doubt in the model's bytes and the same again of the arena's. */
static size_t next_in_doubt(const sw_grid_search *x, size_t smallest)
{
	const sw_search_limits *limits = x->search->asked.limits;
	const sw_variant *v = variant_of(x, smallest);
	bool is_known = v && v->least.snapshot.strategies;
	double scale = is_known ? (double)v->least.cost.peak_bytes / x->items[smallest].bytes : 1,
	       memory = (double)sw_search_memory(x->search) * limits->memory_doubt *
	                limits->memory_doubt;
	size_t next = most_promising(x, true);
	return next < x->n && x->searches < (int32_t)limits->max_variants &&
	                       x->items[next].bytes * scale <= memory
	               ? next
	               : x->n;
}

static size_t next_that_may_fit(sw_grid_search *x)
{
	bool half = x->searches + 1 >= (int32_t)x->search->asked.limits->max_variants / 2;
	size_t smallest = smallest_of(x);
	if (x->last < x->n)
		correct(x, x->last);
	if (x->n > 0 && x->items[smallest].tried)
		return next_in_doubt(x, smallest);
	size_t next = most_promising(x, half);
	return next < x->n ? next : most_promising(x, true);
}

/* ---- a faster one ----------------------------------------------------------------------- */

/* Return the choice of the incumbent's variant; n: it is not in the grid. */
static size_t best_choice(const sw_grid_search *x)
{
	const sw_search *s = x->search;
	size_t i = 0;
	while (i < x->n && !(x->items[i].is_variant && sw_search_has_incumbent(s) &&
	                     x->items[i].variant == s->incumbent.variant))
		i++;
	return i;
}

/* Return the next neighbour to try: first the one with more recomputation and fewer iterations. n:
 * there is none. */
static size_t next_neighbour(const sw_grid_search *x, size_t at)
{
	static const int moves[][2] = {{1, -1}, {1, 0}, {0, -1}, {-1, 0}, {0, 1}, {-1, 1}};
	size_t columns = x->grid->counts.len;
	for (size_t k = 0; k < SW_COUNT(moves); k++) {
		size_t row = at / columns + (size_t)moves[k][0],
		       column = at % columns + (size_t)moves[k][1];
		if (row < x->grid->policies.len && column < columns &&
		    !x->items[row * columns + column].tried && !cannot_fit(x, row * columns + column))
			return row * columns + column;
	}
	return x->n;
}

/* Return the quickest untried choice, by the predictions, that should fit and might beat the
 * incumbent. The grid has valleys: fewer iterations with more recomputation may be faster where
 * each step between takes longer. n: there is none. */
static size_t next_elsewhere(const sw_grid_search *x)
{
	double work = (double)x->searches * (double)x->search->canonical->ops.len;
	if (work > x->search->asked.limits->elsewhere_work)
		return x->n;
	double step_s = sw_search_limit_s(x->search);
	size_t best = x->n;
	for (size_t i = 0; i < x->n; i++) {
		const saving_choice *c = &x->items[i];
		if (!c->tried && c->bytes <= x->memory_bytes && c->seconds < step_s &&
		    !cannot_fit(x, i) &&
		    (best == x->n || c->expected_s < x->items[best].expected_s))
			best = i;
	}
	return best;
}

static size_t next_that_may_be_faster(const sw_grid_search *x)
{
	size_t at = best_choice(x);
	if (at == x->n || x->searches >= (int32_t)x->search->asked.limits->max_variants)
		return x->n;
	size_t next = next_neighbour(x, at);
	return next < x->n ? next : next_elsewhere(x);
}

/* ---- a bound of them all --------------------------------------------------------------------- */

size_t sw_saving_choices(const sw_search *s, size_t *columns)
{
	*columns = s->proposals.grid->grid->counts.len;
	return s->proposals.grid->n;
}

sw_status sw_saving_bound(sw_search *s, size_t i, sw_rewrites *rewrites, int64_t *share_bytes,
                          double *kernels_s)
{
	const sw_grid_search *x = s->proposals.grid;
	const sw_variant *known = variant_of(x, i);
	sw_variant v = {.rewrites = x->items[i].rewrites};
	sw_error why;
	sw_status status = known ? SW_OK : sw_variant_write(s, &v, &why);
	if (status == SW_OK) {
		*share_bytes = known ? known->share_bytes : v.share_bytes;
		*kernels_s = known ? known->kernels_s : v.kernels_s;
		*rewrites = x->items[i].rewrites;
	}
	sw_variant_clear(s, &v);
	return status;
}

/* More microbatches of one policy only add kernels: the first that fits by its even share bounds
 * all. Where time is up, what is known is no bound of all. */
double sw_saving_bound_s(sw_search *s)
{
	const sw_grid_search *x = s->proposals.grid;
	double least_s = INFINITY;
	for (size_t i = 0; x && i < x->n; i++) {
		int64_t share_bytes;
		double kernels_s;
		sw_rewrites rewrites;
		if (sw_search_left_s(s) <= 0)
			return 0;
		if (sw_saving_bound(s, i, &rewrites, &share_bytes, &kernels_s) != SW_OK)
			continue;
		if (share_bytes <= sw_search_memory(s))
			least_s = fmin(least_s, kernels_s);
		if (share_bytes <= sw_search_memory(s) || kernels_s >= least_s)
			i = (i / x->grid->counts.len + 1) * x->grid->counts.len - 1; /* the next policy */
	}
	return isfinite(least_s) ? least_s : 0;
}

/* ---- trying them ------------------------------------------------------------------------ */

/* Open a wave of the variant, unless its kernels show that it can't win. */
static sw_status open_wave(sw_grid_search *x, size_t number)
{
	sw_search *s = x->search;
	sw_variant *v = sw_search_variant(s, number);
	if (sw_variant_prune(s, v, v->kernels_s))
		return SW_OK;
	x->searches++;
	return sw_wave_open(s, number, SW_MEMORY_LIMITED, sw_search_share_s(s, 1.0 / 3));
}

/* Return the step that the mesh's quickest plan without a memory limit is expected to take: less than
 * its plan that fits by as much as the model says. 0: no plan of the mesh fits. */
static double without_limit_s(const sw_mesh_entry *e)
{
	bool played = e->line.feasible && e->line.bound_s == 0;
	return played ? e->line.step_time_s * fmin(e->unconstrained.model_s / e->best_s, 1) : 0;
}

/* Add the meshes of the program as it is that would be behind the incumbent if they had all the memory
 * that they can use. A program that computes again, or in microbatches, is no quicker. */
static void add_behind(const sw_search *s, sw_mesh_set *behind)
{
	const sw_variant *first = sw_search_variant(s, 0);
	double limit_s = s->asked.limits->saving_behind * sw_search_best_s(s);
	for (size_t i = 0; i < first->entries.len; i++)
		if (without_limit_s(&first->entries.data[i]) > limit_s)
			sw_mesh_set_put(behind, first->entries.data[i].number, true);
}

/* Leave out the meshes that are far behind in the program as it is, or in the best variant. */
static void want_meshes(const sw_search *s, sw_mesh_set *wanted)
{
	sw_mesh_set behind = {0};
	sw_mesh_set_add(&behind, &sw_search_variant(s, 0)->meshes.behind);
	add_behind(s, &behind);
	if (sw_search_has_incumbent(s))
		sw_mesh_set_add(&behind,
		                &sw_search_variant(s, s->incumbent.variant)->meshes.behind);
	*wanted = (sw_mesh_set){.rest = true};
	for (size_t i = 0; i < behind.has.len; i++)
		sw_mesh_set_put(wanted, i, !behind.has.data[i]);
	sw_vec_clear(&behind.has);
}

/* Try a choice. One that a rewrite refuses counts as one that does not fit. */
static sw_status try_choice(sw_grid_search *x, size_t i)
{
	saving_choice *c = &x->items[i];
	sw_error why = {0};
	sw_mesh_set wanted;
	c->tried = true;
	x->last = i;
	want_meshes(x->search, &wanted);
	sw_status status = sw_variant_add(x->search, &c->rewrites, &wanted, &c->variant, &why);
	sw_vec_clear(&wanted.has);
	c->is_variant = status == SW_OK;
	if (status == SW_OK)
		return open_wave(x, c->variant);
	if (status != SW_NO && x->search->err)
		*x->search->err = why;
	return status == SW_NO ? SW_OK : status;
}

bool sw_saving_is_open(const sw_search *s)
{
	return !s->asked.options->remat || s->asked.options->microbatches == 0;
}

sw_status sw_propose_saving(sw_search *s)
{
	sw_status status = SW_OK;
	if (!sw_saving_is_open(s) || (!s->proposals.grid && sw_search_left_s(s) <= 0)) {
		s->timed_out = s->timed_out || sw_saving_is_open(s);
		return SW_OK;
	}
	if (!s->proposals.grid)
		status = sw_saving_begin(s);
	sw_grid_search *x = s->proposals.grid;
	while (status == SW_OK && !s->wave) {
		size_t next = sw_search_has_incumbent(s) ? next_that_may_be_faster(x)
		                                         : next_that_may_fit(x);
		if (next == x->n)
			break;
		status = try_choice(x, next);
	}
	return status;
}
