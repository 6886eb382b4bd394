/* What the trials of one search share. */
#include "pipelined/stage_store.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* A program with a rematerialisation, in so many microbatches; 0: not in a loop. */
typedef struct stored_program {
	int32_t microbatches;
	const char *remat;
	sw_program *program;
	sw_status status;
	sw_error err;
	sw_stage_flow *flow; /* NULL: it was not cut yet */
} stored_program;

typedef struct stored_slice {
	int64_t first;
	sw_cluster *cluster;
	/* The grid of the first stage that was planned with a strategy that tries many: AxoNN's.
	 * Others have the same. "": none was. */
	char grid[48];
} stored_slice;

/* Paths within a slice, of which one search at a time makes use. */
typedef struct stored_paths {
	const sw_cluster *slice;
	sw_path_store *paths;
	bool taken;
} stored_paths;

typedef struct stored_seconds {
	const sw_program *looped;
	int64_t n_devices;
	double *op_s;
} stored_seconds;

struct sw_stage_store {
	const sw_pipelined_request *request;
	double start_s;
	sw_program *canonical; /* stacks of layers are taken apart */
	sw_sidecar apart;      /* of that; empty if there was none */
	const sw_sidecar *sidecar;
	SW_VEC(stored_program) programs;
	SW_VEC(stored_slice) slices;
	SW_VEC(stored_seconds) seconds;
	SW_VEC(sw_stored_plan *) plans;
	pthread_mutex_t taking_paths;
	SW_VEC(stored_paths) paths;
};

/* A stage has the layers that it reads, and no others. */
static sw_status take_apart(sw_stage_store *s, sw_error *err)
{
	sw_program *apart;
	SW_TRY(sw_rewrite_layers_apart(s->canonical, s->sidecar, &apart, &s->apart, err));
	if (apart) {
		sw_program_free(s->canonical);
		s->canonical = apart;
		s->sidecar = &s->apart;
	}
	return SW_OK;
}

sw_status sw_stage_store_new(const sw_pipelined_request *request, sw_stage_store **store,
                             sw_error *err)
{
	sw_stage_store *s = *store = sw_alloc(sizeof(*s));
	pthread_mutex_init(&s->taking_paths, NULL);
	s->request = request;
	s->start_s = sw_now_s();
	s->sidecar = request->sidecar;
	sw_status status = sw_rewrite_canonical(request->program, &s->canonical, err);
	if (status == SW_OK)
		status = take_apart(s, err);
	if (status) {
		sw_stage_store_free(s);
		*store = NULL;
	}
	return status;
}

void sw_stage_store_free(sw_stage_store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->plans.len; i++) {
		sw_plan_free(s->plans.data[i]->plan);
		free(s->plans.data[i]->op_s);
		free(s->plans.data[i]);
	}
	for (size_t i = 0; i < s->programs.len; i++) {
		sw_stage_flow_free(s->programs.data[i].flow);
		sw_program_free(s->programs.data[i].program);
	}
	for (size_t i = 0; i < s->slices.len; i++) {
		sw_cluster_clear(s->slices.data[i].cluster);
		free(s->slices.data[i].cluster);
	}
	for (size_t i = 0; i < s->seconds.len; i++)
		free(s->seconds.data[i].op_s);
	for (size_t i = 0; i < s->paths.len; i++)
		sw_path_store_free(s->paths.data[i].paths);
	sw_vec_clear(&s->paths);
	pthread_mutex_destroy(&s->taking_paths);
	sw_vec_clear(&s->seconds);
	sw_vec_clear(&s->plans);
	sw_vec_clear(&s->programs);
	sw_vec_clear(&s->slices);
	sw_program_free(s->canonical);
	sw_sidecar_clear(&s->apart);
	free(s);
}

const sw_program *sw_stage_store_canonical(const sw_stage_store *store)
{
	return store->canonical;
}

const sw_sidecar *sw_stage_store_sidecar(const sw_stage_store *store)
{
	return store->sidecar;
}

const double *sw_stage_store_seconds(sw_stage_store *s, const sw_program *looped, int64_t n_devices)
{
	for (size_t i = 0; i < s->seconds.len; i++)
		if (s->seconds.data[i].looped == looped &&
		    s->seconds.data[i].n_devices == n_devices)
			return s->seconds.data[i].op_s;
	double *op_s = sw_alloc(sizeof(double) * (looped->ops.len + 1));
	sw_fused_seconds(s->request->cluster, looped, n_devices, op_s);
	sw_vec_push(&s->seconds, ((stored_seconds){looped, n_devices, op_s}));
	return op_s;
}

double sw_stage_store_left_s(const sw_stage_store *store)
{
	double limit_s = store->request->options->plan.time_limit_s;
	return limit_s > 0 ? limit_s - (sw_now_s() - store->start_s) : INFINITY;
}

/* ---- programs ---------------------------------------------------------------------------- */

static bool same_policy(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static const stored_program *find_program(const sw_stage_store *s, int32_t microbatches,
                                          const char *remat)
{
	for (size_t i = 0; i < s->programs.len; i++)
		if (s->programs.data[i].microbatches == microbatches &&
		    same_policy(s->programs.data[i].remat, remat))
			return &s->programs.data[i];
	return NULL;
}

static sw_status rewrite(sw_stage_store *s, int32_t microbatches, const char *remat,
                         sw_program **out, sw_error *err)
{
	const sw_program *from = s->canonical;
	if (remat && microbatches) {
		sw_status status = sw_stage_store_looped(s, 0, remat, &from, err);
		if (status)
			return status;
	}
	if (!microbatches)
		return sw_rewrite_remat_policy(
			from, remat, sw_plan_remat_device(s->request->cluster, from), out, err);
	SW_TRY(sw_rewrite_microbatches(from, s->sidecar, microbatches, out, err));
	return sw_stages_part_sums(out, err);
}

sw_status sw_stage_store_looped(sw_stage_store *s, int32_t microbatches, const char *remat,
                                const sw_program **looped, sw_error *err)
{
	const stored_program *found = find_program(s, microbatches, remat);
	if (!found) {
		stored_program made = {.microbatches = microbatches, .remat = remat};
		made.status = rewrite(s, microbatches, remat, &made.program, &made.err);
		sw_vec_push(&s->programs, made);
		found = &s->programs.data[s->programs.len - 1];
	}
	*looped = found->program;
	if (found->status)
		*err = found->err;
	return found->status;
}

sw_status sw_stage_store_cut(sw_stage_store *s, const sw_program *looped,
                             const sw_stage_options *options, sw_stages *cut, sw_error *err)
{
	size_t i = 0;
	while (s->programs.data[i].program != looped)
		i++;
	stored_program *of = &s->programs.data[i];
	*cut = (sw_stages){0};
	if (!of->flow)
		SW_TRY(sw_stage_flow_new(looped, 1, &of->flow, err));
	return sw_stages_of(cut, of->flow, options, err);
}

/* ---- slices ------------------------------------------------------------------------------ */

sw_status sw_stage_store_slice(sw_stage_store *s, int64_t first, int64_t n,
                               const sw_cluster **slice, sw_error *err)
{
	const sw_cluster *cluster = s->request->cluster;
	for (size_t i = 0; i < s->slices.len; i++) {
		*slice = s->slices.data[i].cluster;
		if ((*slice)->n_devices == n &&
		    sw_cluster_first_unlike(cluster, s->slices.data[i].first, first, n) == first + n)
			return SW_OK;
	}
	sw_cluster *made = sw_alloc(sizeof(sw_cluster));
	sw_status status = sw_cluster_slice(cluster, first, n, made, err);
	if (status) {
		sw_cluster_clear(made);
		free(made);
		return status;
	}
	if (sw_cluster_meeting_level(cluster, 0, cluster->n_devices - 1) == 0)
		sw_cluster_become_stage(made);
	sw_vec_push(&s->slices, ((stored_slice){first, made, ""}));
	*slice = made;
	return SW_OK;
}

/* ---- paths ------------------------------------------------------------------------------- */

/* Take the paths within a slice that earlier searches found, as far as no other search makes use of
 * them at the moment. */
static sw_path_store *take_paths(sw_stage_store *s, const sw_cluster *slice)
{
	size_t i = 0;
	pthread_mutex_lock(&s->taking_paths);
	while (i < s->paths.len && (s->paths.data[i].taken || s->paths.data[i].slice != slice))
		i++;
	if (i == s->paths.len)
		sw_vec_push(&s->paths, ((stored_paths){slice, sw_path_store_new(slice), false}));
	s->paths.data[i].taken = true;
	sw_path_store *taken = s->paths.data[i].paths;
	pthread_mutex_unlock(&s->taking_paths);
	return taken;
}

static void give_back_paths(sw_stage_store *s, const sw_path_store *paths)
{
	pthread_mutex_lock(&s->taking_paths);
	for (size_t i = 0; i < s->paths.len; i++)
		s->paths.data[i].taken &= s->paths.data[i].paths != paths;
	pthread_mutex_unlock(&s->taking_paths);
}

/* ---- plans ------------------------------------------------------------------------------- */

static uint64_t nameless_key(const sw_stage_planning *how)
{
	uint64_t key = sw_program_hash(how->step->program);
	for (uint32_t i = 0; i < how->sidecar->n_inputs; i++)
		key = sw_hash_u64(key, (uint64_t)how->sidecar->inputs[i].role);
	key = sw_hash_u64(key, how->slice->hash);
	key = sw_hash_u64(key, (uint64_t)how->memory_bytes);
	key = sw_hash_u64(key, how->with_fixed);
	return how->mesh ? sw_hash_bytes(how->mesh, strlen(how->mesh), key) : key;
}

/* A plan's file names ops of its program. */
static uint64_t with_names(const sw_stage_step *step, uint64_t key)
{
	for (size_t i = 0; i < step->program->ops.len; i++)
		key = sw_hash_bytes(step->program->ops.data[i].name,
		                    strlen(step->program->ops.data[i].name), key);
	return key;
}

static sw_stored_plan keys_of(const sw_stage_planning *how)
{
	uint64_t nameless = nameless_key(how);
	return (sw_stored_plan){.nameless = nameless, .key = with_names(how->step, nameless)};
}

static const sw_stored_plan *find_plan(const sw_stage_store *s, const sw_stored_plan *like,
                                       bool any_names)
{
	for (size_t i = 0; i < s->plans.len; i++) {
		const sw_stored_plan *plan = s->plans.data[i];
		if (any_names ? plan->nameless == like->nameless : plan->key == like->key)
			return plan;
	}
	return NULL;
}

/* Where the grid of a slice is kept; NULL: the strategy has one mesh, or all are asked for. */
static char *grid_of(const sw_stage_store *s, const sw_cluster *slice)
{
	const sw_plan_strategy *strategy = &s->request->options->plan.strategy;
	bool is_free = strategy->kind == SW_PLAN_AXONN && strategy->size[0] == 0;
	for (size_t i = 0; i < s->slices.len && is_free; i++)
		if (s->slices.data[i].cluster == slice)
			return s->slices.data[i].grid;
	return NULL;
}

static void keep_grid(const sw_plan *plan, char *grid)
{
	const char *end = strstr(plan->chosen, ", ");
	sw_text_cut(plan->chosen, grid, sizeof(((stored_slice *)0)->grid));
	if (end && (size_t)(end - plan->chosen) < strlen(grid))
		grid[end - plan->chosen] = '\0';
}

/* A plan of a free mesh that is so far above the bound of that mesh, by the model, is one that the
 * search has not come away from. */
#define FAR_FROM_BOUND 1.5

/* Plan a step on the meshes that are asked for; where the plan is far from the bound, search again,
 * beginning with the plans of fixed strategies. Where many of a step's dimensions could be split, as
 * those of convolutions, no way leads from ops that are all whole to ops that are split alike. */
static sw_status make_plan(const sw_stage_store *s, const sw_stage_planning *how,
                           const sw_plan_options *options, sw_plan **plan, sw_error *err)
{
	const char *path = s->request->program_path;
	const sw_program *program = how->step->program;
	sw_plan_options again = *options;
	sw_plan *other = NULL;
	SW_TRY(sw_plan_make(program, path, how->sidecar, how->slice, options, plan, err));
	again.with_fixed = true;
	if (!options->mesh || options->with_fixed || (*plan)->model_s <= FAR_FROM_BOUND * (*plan)->model_bound_s ||
	    sw_plan_make(program, path, how->sidecar, how->slice, &again, &other, err) != SW_OK)
		return SW_OK;
	bool better = other->predicted.step_time_s < (*plan)->predicted.step_time_s;
	sw_plan_free(better ? *plan : other);
	*plan = better ? other : *plan;
	return SW_OK;
}

/* beside: how many are planned at once. */
static void plan_step(sw_stage_store *s, const sw_stage_planning *how, int beside,
                      sw_stored_plan *out)
{
	sw_plan_options own = s->request->options->plan;
	sw_search_limits limits = own.limits.search ? *own.limits.search : sw_search_default_limits;
	double left_s = sw_stage_store_left_s(s);
	own.microbatches = 1;
	own.remat = "none";
	own.sharing = SW_SHARES_EQUAL;
	own.last_apart = SW_APART_NEVER;
	own.least = NULL;
	own.memory_bytes = how->memory_bytes;
	own.mesh = own.strategy.kind == SW_PLAN_AUTO ? how->mesh : NULL;
	own.with_fixed = own.mesh && how->with_fixed;
	/* Variations take as long as the search of a mesh, and hardly ever make stages quicker. */
	limits.variation_ops = own.mesh ? 0 : limits.variation_ops;
	own.limits.search = &limits;
	if (beside > 1) {
		own.threads = SW_MAX(sw_thread_count(own.threads) / beside, 1);
		own.quiet = true;
	}
	char *grid = grid_of(s, how->slice);
	if (grid && *grid)
		own.mesh = grid;
	if (left_s <= 0) {
		out->status = sw_fail(&out->err, SW_NO, "the time limit left nothing for it");
		return;
	}
	own.time_limit_s = isfinite(left_s) ? left_s : 0;
	sw_map passes = {0};
	sw_stage_passes_by_name(how->step, how->cut, &passes);
	own.passes = &passes;
	own.paths = take_paths(s, how->slice);
	out->status = make_plan(s, how, &own, &out->plan, &out->err);
	give_back_paths(s, own.paths);
	sw_map_clear(&passes);
	if (grid && out->status == SW_OK && !*grid)
		keep_grid(out->plan, grid);
	out->op_s = sw_alloc(sizeof(double) * (how->step->program->ops.len + 1));
	if (out->status == SW_OK)
		out->status = sw_stage_times_of(out->plan, how->step, how->cut, &out->times,
		                                out->op_s, &out->err);
}

sw_status sw_stage_store_plan(sw_stage_store *s, const sw_stage_planning *how,
                              const sw_stored_plan **planned, sw_error *err)
{
	sw_stored_plan keys = keys_of(how);
	*planned = find_plan(s, &keys, how->any_names);
	if (!*planned) {
		sw_stored_plan *made = sw_alloc(sizeof(*made));
		*made = keys;
		plan_step(s, how, 1, made);
		sw_vec_push(&s->plans, made);
		*planned = made;
	}
	if ((*planned)->status)
		*err = (*planned)->err;
	return (*planned)->status;
}

typedef struct planning_ahead {
	sw_stage_store *store;
	const sw_stage_planning **how; /* [n] */
	sw_stored_plan **made;         /* [n] */
	int beside;
	double known_s;
	_Atomic bool stopped; /* one of them alone takes as long as known_s */
} planning_ahead;

static void plan_one(void *context, int64_t i)
{
	planning_ahead *a = context;
	if (a->stopped)
		return;
	sw_stored_plan *made = a->made[i] = sw_alloc(sizeof(*made));
	*made = keys_of(a->how[i]);
	plan_step(a->store, a->how[i], a->beside, made);
	if (made->status == SW_OK && made->times.step_s >= a->known_s)
		a->stopped = true;
}

void sw_stage_store_plan_ahead(sw_stage_store *s, const sw_stage_planning *how, size_t n,
                               double known_s)
{
	int threads = sw_thread_count(s->request->options->plan.threads);
	planning_ahead a = {.store = s,
	                    .how = sw_alloc(sizeof(*a.how) * (n + 1)),
	                    .made = sw_alloc(sizeof(*a.made) * (n + 1)),
	                    .known_s = known_s};
	size_t wanted = 0;
	/* The first grid that is found is that of all. */
	for (size_t i = 0; i < n && threads > 1 && !grid_of(s, how[i].slice); i++) {
		sw_stored_plan keys = keys_of(&how[i]);
		if (!find_plan(s, &keys, how[i].any_names))
			a.how[wanted++] = &how[i];
	}
	a.beside = SW_MIN(threads, (int)wanted);
	if (wanted > 1)
		sw_parallel_for((int64_t)wanted, threads, plan_one, &a);
	for (size_t i = 0; i < wanted; i++)
		if (a.made[i])
			sw_vec_push(&s->plans, a.made[i]);
	free(a.how);
	free(a.made);
}
