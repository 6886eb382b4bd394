/* One plan with stages: cut, plan each stage, take its times, play the schedule. */
#include <math.h>
#include <string.h>

#include "pipelined/stage_store.h"

/* A stage may have this much more than the least possible maximum, where fewer bytes cross then. */
#define TOLERANCE 0.05
/* The same of pieces, which need not be equal. */
#define PIECE_TOLERANCE 0.25
/* How often stages that do not fit are planned again, with less memory. */
#define SHRINKS 3

static sw_status in_words(sw_error *err, sw_status status, const char *of, int32_t number)
{
	sw_error was = *err;
	char before[64];
	snprintf(before, sizeof(before), of, number);
	return sw_fail_at(err, status, was.file, was.line, was.column, "%s: %s", before,
	                  was.message);
}

/* ---- the cluster ------------------------------------------------------------------------- */

int32_t sw_pipelined_rank_of(const sw_pipelined *p, int64_t device)
{
	int32_t rank = 0;
	while (rank + 1 < p->n_ranks && p->first_device[rank + 1] <= device)
		rank++;
	return rank;
}

/* The outermost level that has n parts of unequal sizes; -1: there is none. largest: of them. */
static int32_t level_of_parts(const sw_cluster *cluster, int32_t n, int64_t *largest)
{
	for (int32_t level = 0; level < cluster->n_levels; level++) {
		int64_t parts = 0, size = 0, least = INT64_MAX;
		*largest = 0;
		for (int64_t d = 0; d < cluster->n_devices; d++) {
			size++;
			if (d + 1 < cluster->n_devices &&
			    sw_cluster_part_at(cluster, d + 1, level) == sw_cluster_part_at(cluster, d, level))
				continue;
			*largest = SW_MAX(*largest, size);
			least = SW_MIN(least, size);
			size = 0;
			parts++;
		}
		if (parts == n && least < *largest)
			return level;
	}
	return -1;
}

int64_t sw_pipelined_largest_part(const sw_cluster *cluster, int32_t n)
{
	int64_t largest;
	return level_of_parts(cluster, n, &largest) < 0 ? 0 : largest;
}

/* The devices of each of the n parts. */
static const int64_t *parts_of(sw_pipelined *p, int32_t n)
{
	int64_t largest, *devices = SW_NEW_N(&p->arena, int64_t, n);
	int32_t level = level_of_parts(p->cluster, n, &largest);
	for (int64_t d = 0; d < p->cluster->n_devices; d++)
		devices[sw_cluster_part_at(p->cluster, d, level) - sw_cluster_part_at(p->cluster, 0, level)]++;
	return devices;
}

/* The level at which the slices of two ranks meet. */
static int32_t level_between(const sw_pipelined *p, int32_t a, int32_t b)
{
	return sw_cluster_meeting_level(p->cluster, p->first_device[SW_MIN(a, b) + 1] - 1,
	                                p->first_device[SW_MAX(a, b)]);
}

double sw_pipelined_byte_s(const sw_pipelined *p, int32_t rank)
{
	int64_t parts = 0;
	int32_t level = level_between(p, rank, rank + 1);
	/* Parts of that level within the slice, each with a link of its own. */
	for (int64_t i = p->first_device[rank]; i < p->first_device[rank + 1]; i++)
		parts += i == p->first_device[rank] ||
		         sw_cluster_meeting_level(p->cluster, i - 1, i) <= level;
	return 1 / p->cluster->levels[level].bandwidth / (double)parts;
}

/* ---- the stages -------------------------------------------------------------------------- */

static bool roles_equal(const sw_sidecar *a, const sw_sidecar *b)
{
	for (uint32_t i = 0; i < a->n_inputs; i++)
		if (a->inputs[i].role != b->inputs[i].role)
			return false;
	return true;
}

/* The first stage with the same step on a slice that is alike. */
static int32_t find_like(const sw_pipelined *p, int32_t stage)
{
	const sw_planned_stage *s = &p->stages[stage];
	sw_error difference;
	for (int32_t i = 0; i < stage; i++) {
		const sw_planned_stage *other = &p->stages[i];
		if (other->like == i &&
		    sw_pipelined_slice_of(p, i) == sw_pipelined_slice_of(p, stage) &&
		    other->step.n_inputs == s->step.n_inputs &&
		    sw_program_equal(other->step.program, s->step.program, &difference) &&
		    roles_equal(&other->sidecar, &s->sidecar))
			return i;
	}
	return stage;
}

static uint32_t count_ops(const sw_pipelined *p, const sw_stage_step *step)
{
	uint32_t n = 0;
	for (size_t i = 0; i < step->program->ops.len; i++)
		n += step->origins[i] != SW_NO_ID && p->cut.stage[step->origins[i]] >= 0 &&
		     sw_op_at(p->looped, step->origins[i])->computation == p->cut.body;
	return n;
}

sw_status sw_pipelined_write_step(sw_pipelined *p, const sw_stage_store *store, int32_t stage,
                                  sw_error *err)
{
	sw_planned_stage *s = &p->stages[stage];
	SW_TRY(sw_stage_step_init(&s->step, &p->cut, stage, err));
	sw_stage_step_sidecar(&s->step, &p->cut, sw_stage_store_sidecar(store), &s->sidecar);
	s->like = stage;
	s->n_ops = count_ops(p, &s->step);
	return SW_OK;
}

sw_status sw_pipelined_write_steps(sw_pipelined *p, const sw_stage_store *store, sw_error *err)
{
	if (p->stages[0].step.program)
		return SW_OK;
	for (int32_t i = 0; i < p->n_stages; i++) {
		SW_TRY(sw_pipelined_write_step(p, store, i, err));
		p->stages[i].like = find_like(p, i);
	}
	return SW_OK;
}

int64_t sw_pipelined_crossing_bytes(const sw_pipelined *p, const sw_stage_port *ports, uint32_t n)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < n; i++)
		if (ports[i].kind == SW_PORT_MICROBATCHES)
			bytes += sw_shape_bytes(sw_value_shape(p->looped, ports[i].value));
	return bytes;
}

static sw_stage_planning planning_of(const sw_pipelined *p, int32_t stage, int64_t memory_bytes)
{
	const sw_planned_stage *s = &p->stages[stage];
	const sw_cluster *slice = sw_pipelined_slice_of(p, stage);
	return (sw_stage_planning){.step = &s->step,
	                           .sidecar = &s->sidecar,
	                           .cut = &p->cut,
	                           .slice = slice,
	                           .memory_bytes = memory_bytes,
	                           .mesh = slice == p->slices[0] ? p->mesh : NULL,
	                           .with_fixed = p->with_fixed,
	                           .any_names = p->in_pieces};
}

static sw_status plan_stage(sw_pipelined *p, sw_stage_store *store, int32_t stage,
                            int64_t memory_bytes, sw_error *err)
{
	sw_planned_stage *s = &p->stages[stage];
	const sw_stage_planning how = planning_of(p, stage, memory_bytes);
	const sw_stored_plan *planned;
	if (s->like != stage) {
		s->times = p->stages[s->like].times;
		s->op_s = p->stages[s->like].op_s;
		s->chosen = p->stages[s->like].chosen;
		return SW_OK;
	}
	sw_status status = sw_stage_store_plan(store, &how, &planned, err);
	/* plan_within lets it have more than the memory of a device. */
	if (status == SW_NO)
		return in_words(err, status, "stage %d, with what crosses of all its microbatches",
		                stage);
	if (status)
		return in_words(err, status, "stage %d", stage);
	s->plan = planned->plan;
	s->times = planned->times;
	s->op_s = planned->op_s;
	s->chosen = s->plan->chosen;
	return SW_OK;
}

/* What crosses is that large a part of memory where a plan that did not fit is tried again. */
#define LARGE_CROSSING 0.05
/* As often the program of a stage holds it at most, about. */
#define CROSSING_COPIES 2

/* The memory of a device for a stage (memory_bytes 0: what the cluster file says), of which stages of
 * one slice have equal parts; *crossing: bytes of what crosses of other microbatches, whole. */
static int64_t memory_of(const sw_pipelined *p, int32_t stage, int64_t memory_bytes,
                         int64_t *crossing)
{
	const sw_stage_step *step = &p->stages[stage].step;
	const sw_cluster *slice = sw_pipelined_slice_of(p, stage);
	int64_t whole = memory_bytes ? memory_bytes : sw_cost_memory_bytes(&slice->device);
	*crossing = (sw_pipelined_crossing_bytes(p, step->inputs, step->n_inputs) +
	             sw_pipelined_crossing_bytes(p, step->results, step->n_results)) *
	            (p->microbatches - 1);
	return whole / (p->n_stages / p->n_ranks);
}

/* The stage's program may take more than the stage: what crosses of other microbatches it holds, but
 * the stage does not; at least once and evenly divided. */
static int64_t first_memory(const sw_pipelined *p, int32_t stage, int64_t memory_bytes)
{
	int64_t crossing, memory = memory_of(p, stage, memory_bytes, &crossing);
	return memory + crossing / sw_pipelined_slice_of(p, stage)->n_devices;
}

/* Plan within the memory. Where nothing fits, layouts may be such that devices hold all of what
 * crosses: how much they do shows in the plan, which is held against the memory without it. */
static sw_status plan_within(sw_pipelined *p, sw_stage_store *store, int32_t stage,
                             int64_t memory_bytes, sw_error *err)
{
	int64_t crossing, memory = memory_of(p, stage, memory_bytes, &crossing);
	sw_status status =
		plan_stage(p, store, stage, first_memory(p, stage, memory_bytes), err);
	if (status != SW_NO || (double)crossing < LARGE_CROSSING * (double)memory)
		return status;
	return plan_stage(p, store, stage, memory + CROSSING_COPIES * crossing, err);
}

sw_status sw_pipelined_plan_stage(sw_pipelined *p, sw_stage_store *store, int32_t stage,
                                  int64_t memory_bytes, sw_error *err)
{
	int32_t like = p->stages[stage].like;
	return plan_within(p, store, like, memory_bytes, err);
}

/* Plan the stages that differ side by side, as far as plan_within begins with them. */
static void plan_ahead(sw_pipelined *p, sw_stage_store *store, int64_t memory_bytes, double known_s)
{
	sw_stage_planning *how = sw_alloc(sizeof(*how) * (size_t)p->n_stages);
	size_t n = 0;
	for (int32_t i = 0; i < p->n_stages; i++)
		if (p->stages[i].like == i)
			how[n++] = planning_of(p, i, first_memory(p, i, memory_bytes));
	sw_stage_store_plan_ahead(store, how, n, known_s);
	free(how);
}

/* Give up where a stage alone takes no less than a plan that is known. */
static sw_status plan_stages(sw_pipelined *p, sw_stage_store *store, int64_t memory_bytes,
                             double known_s, double *least_s, sw_error *err)
{
	sw_status status = SW_OK;
	plan_ahead(p, store, memory_bytes, known_s);
	for (int32_t i = 0; i < p->n_stages && status == SW_OK; i++) {
		status = plan_within(p, store, i, memory_bytes, err);
		if (status == SW_OK && p->stages[i].times.step_s >= known_s)
			status = sw_fail(err, SW_NO, "stage %d of %d alone takes %.3g s", i,
			                 p->n_stages, p->stages[i].times.step_s);
		if (status == SW_NO && p->stages[i].times.step_s >= known_s)
			*least_s = p->stages[i].times.step_s;
	}
	for (int32_t i = 0; i < p->n_stages && status == SW_OK; i++)
		status = sw_stage_transfers(p, i, err);
	return status;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* What a stage holds with one microbatch in flight. */
static int64_t own_bytes(const sw_pipelined *p, int32_t stage)
{
	return p->stages[stage].times.fixed_bytes + p->stages[stage].times.activation_bytes;
}

int64_t sw_pipelined_most_beyond(const sw_pipelined *p, int32_t stage)
{
	double most = 0;
	for (int32_t i = stage; i < p->n_stages; i++)
		if (p->stages[i].like == stage)
			most = SW_MAX(most, p->played.ranks[p->stages[i].rank].peak_bytes -
			                            (double)own_bytes(p, i));
	return (int64_t)most;
}

/* Plan again what does not fit, with less memory for its program: what is left beside the
 * microbatches in flight. Stages that nothing fits in any more keep their plans. */
static sw_status shrink_stages(sw_pipelined *p, sw_stage_store *store, int64_t memory_bytes,
                               bool *changed, sw_error *err)
{
	sw_status status = SW_OK;
	*changed = false;
	for (int32_t i = 0; i < p->n_stages && status == SW_OK; i++) {
		int64_t beyond = sw_pipelined_most_beyond(p, i), left = memory_bytes - beyond;
		if (p->stages[i].like != i || left <= 0 || own_bytes(p, i) + beyond <= memory_bytes)
			continue;
		/* The program holds what crosses of others as well. */
		left += p->stages[i].times.peak_bytes - own_bytes(p, i);
		status = plan_stage(p, store, i, left, err);
		*changed |= status == SW_OK;
		status = status == SW_NO ? SW_OK : status;
	}
	for (int32_t i = 0; i < p->n_stages && status == SW_OK; i++)
		if (p->stages[i].like != i)
			status = plan_stage(p, store, i, 0, err);
	for (int32_t i = 0; i < p->n_stages && status == SW_OK; i++)
		status = sw_stage_transfers(p, i, err);
	return status;
}

/* Find the schedule; where it does not fit, plan stages again within what it leaves them. */
static sw_status play_within(sw_pipelined *p, sw_stage_store *store,
                             const sw_pipelined_options *options, int32_t schedule, sw_error *err)
{
	int64_t memory_bytes = sw_pipelined_memory(p, options);
	sw_status status = SW_OK;
	bool again = true;
	for (int k = 0; k <= SHRINKS && again && status == SW_OK; k++) {
		if (k)
			status = shrink_stages(p, store, memory_bytes, &again, err);
		if (status || !again)
			break;
		sw_pipelined_fill_costs(p, memory_bytes);
		status = sw_pipelined_find_schedule(p, schedule, err);
		again = !p->fits;
	}
	return status;
}

/* What a plan has that is played another time. */
typedef struct played_stages {
	sw_planned_stage *stages;
	sw_named_schedule schedule;
	sw_pipeline_costs costs;
	sw_pipeline_played played;
	sw_pipeline_bound bound;
} played_stages;

static played_stages take_played(sw_pipelined *p)
{
	played_stages was = {sw_arena_copy(&p->arena, p->stages,
	                                   sizeof(*p->stages) * (size_t)p->n_stages),
	                     p->schedule, p->costs, p->played, p->bound};
	p->played = (sw_pipeline_played){0};
	return was;
}

static void put_played(sw_pipelined *p, const played_stages *was)
{
	sw_pipeline_played_free(&p->played);
	memcpy(p->stages, was->stages, sizeof(*p->stages) * (size_t)p->n_stages);
	p->schedule = was->schedule;
	p->costs = was->costs;
	p->played = was->played;
	p->bound = was->bound;
	p->fits = true;
}

/* A schedule that is quicker and holds more microbatches may be worth stages that take less memory. Take
 * it, with those, if the step is then shorter, and than known_s. */
static sw_status play_quicker(sw_pipelined *p, sw_stage_store *store,
                              const sw_pipelined_options *options, double known_s, sw_error *err)
{
	sw_error ignored;
	played_stages was = take_played(p);
	sw_pipelined_fill_costs(p, INT64_MAX);
	sw_status status = sw_pipelined_find_schedule(p, options->schedule, err);
	bool shorter = status == SW_OK && p->played.step_s < fmin(was.played.step_s, known_s) &&
	               play_within(p, store, options, (int32_t)p->schedule, &ignored) == SW_OK &&
	               p->fits && p->played.step_s < was.played.step_s;
	if (shorter)
		sw_pipeline_played_free(&was.played);
	else
		put_played(p, &was);
	return status;
}

static sw_status play_stages(sw_pipelined *p, sw_stage_store *store,
                             const sw_pipelined_options *options, double known_s, sw_error *err)
{
	SW_TRY(play_within(p, store, options, options->schedule, err));
	if (!p->fits || !p->limited || options->schedule >= 0 || p->given)
		return SW_OK;
	return play_quicker(p, store, options, known_s, err);
}

/* ---- the whole --------------------------------------------------------------------------- */

int64_t sw_pipelined_memory(const sw_pipelined *p, const sw_pipelined_options *options)
{
	int64_t asked = options->plan.memory_bytes;
	return asked ? asked : sw_cost_memory_bytes(&p->cluster->device);
}

/* Cut the looped program into pieces of as many ops each. By seconds they would all be as large as
 * what no cut divides, such as the logits of a large vocabulary. */
static sw_status cut_pieces(sw_pipelined *p, sw_stage_store *store, int32_t *cuts, sw_error *err)
{
	sw_stages by_ops;
	sw_stage_options how = {
		.n_stages = p->n_stages, .by_ops = true, .tolerance = PIECE_TOLERANCE};
	sw_status status = sw_stage_store_cut(store, p->looped, &how, &by_ops, err);
	if (status == SW_OK)
		memcpy(cuts, by_ops.cuts, sizeof(int32_t) * (size_t)(p->n_stages - 1));
	sw_stages_clear(&by_ops);
	return status;
}

double sw_pipelined_speed(const sw_pipelined *p, int32_t stage)
{
	return sw_cluster_speed(sw_pipelined_slice_of(p, stage)) * p->n_ranks /
	       sw_cluster_speed(p->cluster);
}

/* How quick each stage is. share: it may have that much more than its devices say, or NULL. */
static const double *speeds(sw_pipelined *p, const double *share)
{
	double *speed = SW_NEW_N(&p->arena, double, p->n_stages);
	for (int32_t i = 0; i < p->n_stages; i++)
		speed[i] = sw_pipelined_speed(p, i) * (share ? share[i] : 1);
	return speed;
}

double sw_pipelined_planned_byte_s(const sw_pipelined *p, int32_t stage)
{
	double bytes = sw_stage_load_bytes(&p->cut.loads[stage]);
	return bytes > 0 ? (p->stages[stage].send_forward_s + p->stages[stage].send_backward_s) / bytes : 0;
}

/* Set the seconds of a byte between the slices of each stage and the next one; 0 where that is one
 * slice. Cuts are chosen before it is known how what crosses is split: they must do where each device
 * gets all of it, so that a cut through the logits of a large vocabulary is no bargain, and where it
 * goes over all links, so that the skips of a U-Net do not drive all of it into one stage. */
static void set_prices(sw_pipelined *p, const sw_pipelined *planned, sw_stage_options *how)
{
	double *byte_s = SW_NEW_N(&p->arena, double, p->n_stages),
	       *split_byte_s = SW_NEW_N(&p->arena, double, p->n_stages);
	for (int32_t i = 0; i + 1 < p->n_stages; i++) {
		int32_t a = p->stages[i].rank, b = p->stages[i + 1].rank;
		if (a == b)
			continue;
		byte_s[i] = 1 / p->cluster->levels[level_between(p, a, b)].bandwidth;
		split_byte_s[i] = sw_pipelined_byte_s(p, SW_MIN(a, b));
		double known_s = planned ? sw_pipelined_planned_byte_s(planned, i) : 0;
		if (known_s > 0)
			byte_s[i] = split_byte_s[i] = known_s;
	}
	how->byte_s = byte_s;
	how->split_byte_s = split_byte_s;
}

static sw_status cut_program(sw_pipelined *p, sw_stage_store *store,
                             const sw_pipelined_request *request, const double *op_s,
                             const sw_pipelined_numbers *numbers, sw_error *err)
{
	bool in_pieces = numbers->n_pieces > 0;
	sw_stage_options how = {.n_stages = p->n_stages, .tolerance = TOLERANCE};
	int32_t *cuts = SW_NEW_N(&p->arena, int32_t, p->n_stages);
	int64_t devices = in_pieces ? p->slices[0]->n_devices : p->cluster->n_devices / p->n_ranks;
	const sw_stage_file *file = request->options->file;
	p->canonical = sw_stage_store_canonical(store);
	SW_TRY(sw_stage_store_looped(store, p->microbatches, p->remat, &p->looped, err));
	how.op_s = op_s ? op_s : sw_stage_store_seconds(store, p->looped, devices);
	if (in_pieces) {
		how.cuts = cuts;
		SW_TRY(cut_pieces(p, store, cuts, err));
	} else {
		set_prices(p, numbers->planned, &how);
		how.cuts = numbers->cuts;
		how.speed = speeds(p, numbers->share);
		if (file)
			SW_TRY(sw_stage_file_pins(file, p->looped, sw_stage_store_sidecar(store),
			                          &p->arena, &how.pins, &how.n_pins, err));
	}
	sw_status status = sw_stage_store_cut(store, p->looped, &how, &p->cut, err);
	return how.n_pins ? sw_error_in_file(err, status, file->path) : status;
}

/* Each rank has its slice; pieces, of which there are more, are all planned on the first one. */
sw_status sw_pipelined_take_slices(sw_pipelined *p, sw_stage_store *store, int32_t n_slices,
                                   const int64_t *devices, sw_error *err)
{
	int64_t n = p->cluster->n_devices, *first = SW_NEW_N(&p->arena, int64_t, p->n_ranks + 1);
	const sw_cluster **slices = SW_NEW_N(&p->arena, const sw_cluster *, p->n_ranks);
	if (!devices && n % n_slices)
		return sw_fail(err, SW_ERR_INPUT,
		               "--stages %d: expected a divisor of the %lld devices, or a "
		               "--stage-file that says how many each has",
		               n_slices, (long long)n);
	for (int32_t r = 0; r < p->n_ranks; r++) {
		int64_t size = devices ? devices[SW_MIN(r, n_slices - 1)] : n / n_slices;
		bool of_first = p->n_ranks != n_slices;
		if (of_first && r)
			slices[r] = slices[0];
		else
			SW_TRY(sw_stage_store_slice(store, first[r], size, &slices[r], err));
		first[r + 1] = of_first ? 0 : first[r] + size;
	}
	p->slices = slices;
	p->first_device = first;
	return SW_OK;
}

void sw_pipelined_place_stages(sw_pipelined *p)
{
	for (int32_t i = 0; i < p->n_stages; i++) {
		p->stages[i].rank = p->given ? p->given->rank_of_stage[i]
		                             : sw_pipeline_place(p->placement, p->n_ranks, i);
		p->stages[i].first_device = p->first_device[p->stages[i].rank];
	}
}

sw_pipelined_numbers sw_pipelined_numbers_of(const sw_pipelined *p)
{
	return (sw_pipelined_numbers){.n_ranks = p->n_ranks,
	                              .microbatches = p->microbatches,
	                              .remat = p->remat,
	                              .n_chunks = p->n_stages / p->n_ranks,
	                              .placement = p->placement,
	                              .by_parts = p->by_parts};
}

sw_status sw_pipelined_open(const sw_pipelined_request *request, sw_stage_store *store,
                            sw_pipelined_numbers numbers, const double *op_s, sw_pipelined **out,
                            sw_error *err)
{
	sw_pipelined *p = *out = sw_alloc(sizeof(sw_pipelined));
	const sw_stage_file *file = request->options->file;
	sw_arena_init(&p->arena);
	p->cluster = request->cluster;
	p->program_path = request->program_path;
	p->n_ranks = numbers.n_pieces ? numbers.n_pieces : numbers.n_ranks;
	p->n_stages = numbers.n_pieces ? numbers.n_pieces : numbers.n_ranks * numbers.n_chunks;
	p->placement = numbers.n_pieces ? SW_PLACE_STRAIGHT : numbers.placement;
	p->microbatches = numbers.microbatches;
	p->remat = numbers.remat;
	p->stages = SW_NEW_N(&p->arena, sw_planned_stage, p->n_stages);
	if (request->options->given && !numbers.n_pieces)
		p->given = sw_pipeline_copy(request->options->given);
	p->by_parts = numbers.by_parts;
	p->in_pieces = numbers.n_pieces > 0;
	sw_status status = sw_pipelined_take_slices(p, store, numbers.n_ranks,
	                                            p->by_parts ? parts_of(p, numbers.n_ranks)
	                                            : file      ? file->devices
	                                                        : NULL,
	                                            err);
	if (status == SW_OK) {
		sw_pipelined_place_stages(p);
		status = cut_program(p, store, request, op_s, &numbers, err);
		/* The program was asked for in stages, which it does not have. */
		status = status == SW_NO ? SW_ERR_INPUT : status;
	}
	if (status) {
		sw_pipelined_free(p);
		*out = NULL;
	}
	return status;
}

sw_status sw_pipelined_plan(sw_pipelined *p, sw_stage_store *store,
                            const sw_pipelined_options *options, double known_s, double *least_s,
                            sw_error *err)
{
	*least_s = 0;
	SW_TRY(sw_pipelined_write_steps(p, store, err));
	sw_status status = plan_stages(p, store, options->plan.memory_bytes, known_s, least_s, err);
	return status ? status : play_stages(p, store, options, known_s, err);
}

void sw_pipelined_free(sw_pipelined *p)
{
	if (!p)
		return;
	for (int32_t i = 0; i < p->n_stages; i++) {
		sw_sidecar_clear(&p->stages[i].sidecar);
		sw_stage_step_clear(&p->stages[i].step);
	}
	if (p->cut.program)
		sw_stages_clear(&p->cut);
	sw_pipeline_played_free(&p->played);
	sw_pipeline_free(p->given);
	sw_arena_clear(&p->arena);
	sw_stage_store_free(p->store);
	sw_pipelined_source_free(p->source);
	free(p);
}
