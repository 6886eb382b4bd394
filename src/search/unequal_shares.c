/*
 * Unequal shares of the batch for devices of several kinds (plan/shares.c).
 *
 * The parts of the cluster that differ in kind are the outermost ones. One part is planned as a
 * cluster of its own, for the whole batch in M microbatches; of these each part then takes as many
 * as let all end together. How long a part takes is linear in how many it takes: two plays with
 * different shares give the two coefficients of each part.
 */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bound/bound.h"

/* ---- parts ------------------------------------------------------------------------------ */

/* Return how many parts differ in kind: those along the outermost atoms down to the last on which
 * kinds depend. Where one part is not divided as the rest of the cluster is, each device is one. */
static int64_t count_parts(const sw_cluster *cluster)
{
	uint32_t mask = sw_cluster_kind_atoms(cluster);
	int64_t parts = 1;
	for (int32_t a = 0; mask >> a; a++)
		parts *= cluster->atoms.size[a];
	return parts;
}

/* Is the part divided into atoms as the rest of the cluster is? */
static bool divides_alike(const sw_cluster *part, const sw_cluster *whole)
{
	const sw_atoms *atoms = &part->atoms;
	int32_t shift = whole->atoms.n - atoms->n;
	return shift >= 0 && memcmp(atoms->size, whole->atoms.size + shift,
	                            sizeof(*atoms->size) * (size_t)atoms->n) == 0;
}

static sw_status make_part(const sw_cluster *whole, int64_t *n_parts, sw_cluster *part,
                           sw_error *err)
{
	SW_TRY(sw_cluster_slice(whole, 0, whole->n_devices / *n_parts, part, err));
	if (divides_alike(part, whole))
		return SW_OK;
	sw_cluster_clear(part);
	*n_parts = whole->n_devices;
	return sw_cluster_slice(whole, 0, 1, part, err);
}

/* ---- shares ----------------------------------------------------------------------------- */

/* The seconds of a part: fixed + each times the microbatches that it takes. */
typedef struct part_time {
	double fixed_s, each_s;
} part_time;

/* Give each microbatch to the part that has then done first; each part gets one at least. Returns
 * the seconds of the part that ends last. O(total * parts). */
static double divide(const part_time *parts, int32_t n, int64_t total, int64_t *shares)
{
	double last_s = 0;
	for (int32_t p = 0; p < n; p++)
		shares[p] = 1;
	for (int64_t i = n; i < total; i++) {
		int32_t first = 0;
		double first_s = INFINITY;
		for (int32_t p = 0; p < n; p++) {
			double s = parts[p].fixed_s + parts[p].each_s * (double)(shares[p] + 1);
			if (s < first_s) {
				first = p;
				first_s = s;
			}
		}
		shares[first]++;
	}
	for (int32_t p = 0; p < n; p++)
		last_s = fmax(last_s, parts[p].fixed_s + parts[p].each_s * (double)shares[p]);
	return last_s;
}

static void guess_times(const sw_cluster *whole, int32_t n, part_time *parts)
{
	int64_t size = whole->n_devices / n;
	for (int32_t p = 0; p < n; p++)
		parts[p] = (part_time){
			0, 1 / sw_device_speed(sw_cluster_device_of(whole, p * size))};
}

/* ---- playing ---------------------------------------------------------------------------- */

/* Play the plan, and find the seconds for which the devices of each part compute. */
static sw_status play_parts(const sw_plan *plan, double *compute_s, sw_error *err)
{
	sw_simulation played;
	int64_t size = plan->cluster->n_devices / plan->shares.n;
	SW_TRY(sw_simulate_plan_ranks(plan, NULL, &played, err));
	for (int64_t d = 0; d < played.n_ranks; d++)
		compute_s[d / size] = d % size ? fmax(compute_s[d / size], played.ranks[d].compute_s)
		                               : played.ranks[d].compute_s;
	sw_simulation_clear(&played);
	return SW_OK;
}

/* Move a microbatch from each part to a neighbour, where it has more than one. */
static void disturb(int64_t *shares, int32_t n)
{
	for (int32_t p = 0; p + 1 < n; p += 2) {
		int64_t moved = shares[p] > 1 ? 1 : shares[p + 1] > 1 ? -1 : 0;
		shares[p] -= moved;
		shares[p + 1] += moved;
	}
	if (n % 2 && n > 2 && shares[n - 1] > 1) {
		shares[n - 1]--;
		shares[0]++;
	}
}

static void set_shares(sw_plan *plan, const int64_t *shares)
{
	plan->shares.v = sw_arena_copy(&plan->arena, shares,
	                               sizeof(*shares) * (size_t)plan->shares.n);
}

/* Find what each part takes of the microbatches, by two plays. */
static sw_status balance(sw_plan *plan, int64_t *shares, sw_error *err)
{
	int32_t n = plan->shares.n;
	part_time *parts = sw_alloc((size_t)n * sizeof(*parts));
	double *first_s = sw_alloc(2 * (size_t)n * sizeof(*first_s)), *second_s = first_s + n;
	int64_t *other = sw_alloc((size_t)n * sizeof(*other)), total = plan->rewrites.microbatches;
	memcpy(other, shares, (size_t)n * sizeof(*other));
	disturb(other, n);
	sw_status status = play_parts(plan, first_s, err);
	if (status == SW_OK) {
		set_shares(plan, other);
		status = play_parts(plan, second_s, err);
	}
	if (status == SW_OK) {
		for (int32_t p = 0; p < n; p++) {
			double moved = (double)(other[p] - shares[p]);
			if (moved != 0)
				parts[p].each_s = (second_s[p] - first_s[p]) / moved;
			else
				parts[p].each_s = first_s[p] / (double)shares[p];
			parts[p].fixed_s = first_s[p] - parts[p].each_s * (double)shares[p];
		}
		divide(parts, n, total, shares);
		set_shares(plan, shares);
	}
	free(parts);
	free(first_s);
	free(other);
	return status;
}

/* ---- one number of microbatches --------------------------------------------------------- */

typedef struct shares_search {
	const sw_program *program;
	const char *program_path;
	const sw_sidecar *sidecar;
	const sw_cluster *whole;
	sw_cluster part;
	int64_t n_parts;
	sw_plan_options options; /* of the part */
	bool is_list;            /* shares are what the user said */
	double limit_s;          /* plans that take longer are of no use */
	sw_error *err;
} shares_search;

static void name_shares(sw_plan *plan)
{
	sw_text words = {0};
	sw_shares_print(plan, &words);
	sw_plan_add_to_name(plan, words.data);
	sw_text_clear(&words);
}

/* Plan a part, and give all parts these shares of the batch; they are balanced unless the user said
 * them. */
static sw_status try_shares(shares_search *s, int64_t *shares, int64_t total, sw_plan **plan)
{
	sw_plan_options options = s->options;
	int32_t n = (int32_t)s->n_parts;
	double end_s = sw_search_end_s(&options);
	options.microbatches = (int32_t)total;
	options.last_apart = SW_APART_NEVER; /* whether it is quicker depends on all parts */
	SW_TRY(sw_plan_make(s->program, s->program_path, s->sidecar, &s->part, &options, plan,
	                    s->err));
	sw_status status = sw_plan_share(*plan, s->whole, (sw_ints){n, shares}, s->err);
	if (status == SW_OK && !s->is_list)
		status = balance(*plan, shares, s->err);
	if (status == SW_OK)
		status = sw_simulate_recost(*plan, !options.no_overlap, s->err);
	if (status == SW_OK && (*plan)->predicted.peak_bytes > options.memory_bytes)
		status = sw_fail(s->err, SW_NO, "shares: a plan takes %lld bytes of each device",
		                 (long long)(*plan)->predicted.peak_bytes);
	if (status != SW_OK) {
		sw_plan_free(*plan);
		*plan = NULL;
		return status;
	}
	name_shares(*plan);
	(*plan)->alternatives.len = 0;
	sw_plan_list_itself(*plan);
	sw_search_try_apart(*plan, &s->options, end_s);
	return SW_OK;
}

/* ---- numbers of microbatches ------------------------------------------------------------ */

/* Numbers are tried as long as each divides the work so much more evenly than those before. */
#define BETTER_BY 0.02
#define EVEN_ENOUGH 0.98
#define MOST_TRIED 4

/* Return the share of the time that devices compute, by what is guessed of their speeds. */
static double evenness(const part_time *parts, int32_t n, int64_t total, int64_t *shares)
{
	double speed = 0;
	for (int32_t p = 0; p < n; p++)
		speed += 1 / parts[p].each_s;
	return (double)total / speed / divide(parts, n, total, shares);
}

/* Try some of the possible numbers of microbatches, and return the quickest plan; NULL: none. */
static sw_plan *try_numbers(shares_search *s, const sw_ints possible)
{
	int32_t n = (int32_t)s->n_parts, tried = 0;
	part_time *parts = sw_alloc((size_t)n * sizeof(*parts));
	int64_t *shares = sw_alloc((size_t)n * sizeof(*shares));
	sw_plan *best = NULL;
	double most = 0;
	int64_t asked = s->options.microbatches;
	guess_times(s->whole, n, parts);
	for (int32_t i = 0; i < possible.n && tried < MOST_TRIED && most < EVEN_ENOUGH; i++) {
		int64_t total = possible.v[i];
		sw_plan *plan = NULL;
		if (total < n || (asked > 1 && total != asked) ||
		    (double)total > n * sw_search_limits_of(&s->options)->max_microbatches)
			continue;
		double even = evenness(parts, n, total, shares);
		if (even < most + BETTER_BY)
			continue;
		most = even;
		tried++;
		if (try_shares(s, shares, total, &plan) != SW_OK)
			continue;
		bool wins = !best || plan->predicted.step_time_s < best->predicted.step_time_s;
		sw_plan_free(wins ? best : plan);
		best = wins ? plan : best;
	}
	free(parts);
	free(shares);
	return best;
}

/* ---- the search ------------------------------------------------------------------------- */

/* Return the seconds in which what loops store, and not only sum up, is sent to all parts: such as
 * activations between the sums of a batch normalisation. */
static double stored_s(const sw_cluster *cluster, const sw_phases *phases)
{
	double bytes = 0;
	for (int32_t i = 0; i < phases->n; i++)
		bytes += (double)phases->phases[i].stored_bytes;
	return bytes / cluster->levels[0].bandwidth;
}

static sw_status try_all_numbers(shares_search *s, sw_plan **plan)
{
	sw_program *canonical;
	sw_phases phases;
	SW_TRY(sw_rewrite_canonical(s->program, &canonical, s->err));
	sw_phases_init(&phases, canonical, s->sidecar);
	if (phases.n > 0 && stored_s(s->whole, &phases) < s->limit_s)
		*plan = try_numbers(s, phases.possible);
	sw_phases_clear(&phases);
	sw_program_free(canonical);
	return SW_OK;
}

static sw_status try_list(shares_search *s, const sw_plan_options *options, sw_plan **plan)
{
	int64_t total = 0, *shares = sw_alloc((size_t)s->n_parts * sizeof(*shares));
	for (int32_t p = 0; p < options->n_shares; p++)
		total += shares[p] = options->shares[p];
	sw_status status = SW_OK;
	if (options->microbatches > 1 && options->microbatches != total)
		status = sw_fail(s->err, SW_ERR_INPUT,
		                 "--shares: they add up to %lld, and --microbatches is %d",
		                 (long long)total, options->microbatches);
	if (status == SW_OK)
		status = try_shares(s, shares, total, plan);
	free(shares);
	return status;
}

static sw_status make_listed_part(shares_search *s, sw_error *err)
{
	int64_t parts = s->n_parts, devices = s->whole->n_devices;
	if (parts > 1 && devices % parts == 0) {
		SW_TRY(make_part(s->whole, &s->n_parts, &s->part, err));
		if (s->n_parts == parts)
			return SW_OK;
		sw_cluster_clear(&s->part);
	}
	return sw_fail(err, SW_ERR_INPUT,
	               "--shares: %lld numbers, and the cluster of %lld devices does not divide into "
	               "so many equal parts from outside",
	               (long long)parts, (long long)devices);
}

sw_status sw_search_shares(const sw_plan_request *r, double limit_s, sw_plan **plan, sw_error *err)
{
	const sw_plan_options *options = r->options;
	const sw_cluster *cluster = r->cluster;
	shares_search s = {.program = r->program,
	                   .program_path = r->path,
	                   .sidecar = r->sidecar,
	                   .whole = cluster,
	                   .options = *options,
	                   .is_list = options->sharing == SW_SHARES_LISTED,
	                   .limit_s = limit_s,
	                   .err = err};
	*plan = NULL;
	s.options.sharing = SW_SHARES_EQUAL;
	s.options.allows_stale = false;
	s.options.least = NULL;
	s.options.paths = NULL; /* those of the part are others */
	s.options.time_limit_s /= s.is_list ? 1 : MOST_TRIED;
	if (options->strategy.kind == SW_PLAN_AUTO)
		s.options.strategy.owners = SW_OWNERS_NONE;
	else if (options->strategy.owners || options->codec.kind || options->sync)
		return sw_fail(err, SW_ERR_INPUT,
		               "--shares: not with variables that have owners, ways or codecs");
	if (s.options.memory_bytes == 0)
		s.options.memory_bytes = sw_cost_memory_bytes(&cluster->device);
	s.n_parts = s.is_list ? options->n_shares : count_parts(cluster);
	if (s.is_list)
		SW_TRY(make_listed_part(&s, err));
	else
		SW_TRY(make_part(cluster, &s.n_parts, &s.part, err));
	double begun_s = sw_now_s();
	sw_status status = s.is_list ? try_list(&s, options, plan) : try_all_numbers(&s, plan);
	sw_cluster_clear(&s.part);
	if (*plan) {
		(*plan)->strategy = options->strategy;
		(*plan)->memory_bytes = options->memory_bytes;
		(*plan)->planning_s = sw_now_s() - begun_s;
	}
	return status;
}
