/*
 * Seconds and bytes of a program with collectives, per rank.
 *
 * Each computation has one tally, made when its first caller needs it, so that a body is visited
 * once, however often it runs. O(ops + pairs of permutes), and O(devices) for each computation with
 * a permute.
 */
#include "cost/cost.h"

#include <math.h>

typedef struct tally {
	bool done;
	double compute_s, communication_s, least_communication_s;
	int64_t collectives;
	int64_t all_ranks; /* payload bytes that every rank sends */
	/* [rank]: payload bytes that it sends in permutes, in addition; NULL: none */
	int64_t *permuted;
} tally;

typedef struct walker {
	const sw_cluster *cluster;
	const sw_device_classes *classes;
	int32_t class; /* of which devices are counted */
	const sw_program *program;
	int64_t ranks;
	sw_arena arena;
	tally *tallies;   /* per computation */
	sw_owners owners; /* of the entry's ops */
	/* per set of owners: seconds, and payload bytes, of the ops that only they run; NULL: none
	 */
	double *owned_s;
	int64_t *owned_bytes;
} walker;

/* ---- tallies ---------------------------------------------------------------------------- */

/* Return sum + a * times. Trip counts come from input: a sum too large to hold becomes
 * INT64_MAX. */
static int64_t add_times(int64_t sum, int64_t a, int64_t times)
{
	int64_t product;
	if (!sw_mul_i64(a, times, &product))
		return INT64_MAX;
	return product > INT64_MAX - sum ? INT64_MAX : sum + product;
}

static int64_t *payload_by_rank(walker *w, tally *t)
{
	if (!t->permuted)
		t->permuted = SW_NEW_N(&w->arena, int64_t, w->ranks);
	return t->permuted;
}

static void add_tally(walker *w, tally *to, const tally *from, int64_t times)
{
	to->compute_s += from->compute_s * (double)times;
	to->communication_s += from->communication_s * (double)times;
	to->least_communication_s += from->least_communication_s * (double)times;
	to->collectives = add_times(to->collectives, from->collectives, times);
	to->all_ranks = add_times(to->all_ranks, from->all_ranks, times);
	if (!from->permuted)
		return;
	int64_t *permuted = payload_by_rank(w, to);
	for (int64_t r = 0; r < w->ranks; r++)
		permuted[r] = add_times(permuted[r], from->permuted[r], times);
}

/* Raise each figure to the maximum of both tallies, because any branch may be taken. */
static void raise_tally(walker *w, tally *to, const tally *from)
{
	to->compute_s = fmax(to->compute_s, from->compute_s);
	to->communication_s = fmax(to->communication_s, from->communication_s);
	to->least_communication_s = fmax(to->least_communication_s, from->least_communication_s);
	to->collectives = SW_MAX(to->collectives, from->collectives);
	to->all_ranks = SW_MAX(to->all_ranks, from->all_ranks);
	if (!from->permuted)
		return;
	int64_t *permuted = payload_by_rank(w, to);
	for (int64_t r = 0; r < w->ranks; r++)
		permuted[r] = SW_MAX(permuted[r], from->permuted[r]);
}

/* Return what a rank sends beyond what all send: in permutes, and as an owner. */
static int64_t further_payload(const walker *w, const tally *t, int64_t rank)
{
	int64_t sum = t->permuted ? t->permuted[rank] : 0;
	for (int32_t k = 1; w->owned_bytes && k < w->owners.n; k++)
		if (w->owned_bytes[k] > 0 && sw_owner_is(&w->owners.sets[k], rank))
			sum = add_times(sum, w->owned_bytes[k], 1);
	return sum;
}

static int64_t max_payload(const walker *w, const tally *t)
{
	int64_t max = 0;
	for (int64_t r = 0; (t->permuted || w->owned_bytes) && r < w->ranks; r++)
		max = SW_MAX(max, further_payload(w, t, r));
	return add_times(t->all_ranks, max, 1);
}

/* ---- collectives ------------------------------------------------------------------------ */

static void tally_permute(walker *w, tally *t, sw_id id, const sw_op *op)
{
	sw_ints pairs = op->attrs->collective.pairs;
	int64_t bytes = 0, *permuted = payload_by_rank(w, t);
	for (uint32_t i = 0; i < op->n_operands; i++)
		bytes += sw_shape_bytes(sw_value_shape(w->program, op->operands[i]));
	const sw_owner *who = w->owned_s ? &w->owners.sets[w->owners.runs[id]] : NULL;
	for (int32_t i = 0; i + 1 < pairs.n; i += 2)
		if (pairs.v[i] != pairs.v[i + 1] && pairs.v[i] >= 0 && pairs.v[i] < w->ranks &&
		    (!who || sw_owner_is(who, pairs.v[i])))
			permuted[pairs.v[i]] = add_times(permuted[pairs.v[i]], bytes, 1);
}

/* Count the payload operand by operand, as the transport does. */
static void tally_grouped(walker *w, tally *t, sw_id id, const sw_op *op)
{
	bool owned = w->owned_bytes && w->owners.runs[id] > 0;
	int64_t *sum = owned ? &w->owned_bytes[w->owners.runs[id]] : &t->all_ranks;
	const sw_groups *groups = &op->attrs->collective.groups;
	int64_t members = groups->n_groups ? groups->group_size : w->ranks;
	for (uint32_t i = 0; i < op->n_operands; i++) {
		int64_t bytes = sw_shape_bytes(sw_value_shape(w->program, op->operands[i]));
		int64_t payload = sw_collective_payload_bytes(sw_op_counted_as(op), bytes, members);
		*sum = add_times(*sum, payload, 1);
	}
}

static void tally_collective(walker *w, tally *t, sw_id id)
{
	const sw_op *op = sw_op_at(w->program, id);
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
	if (!sw_cost_collective_op(w->cluster, w->program, id, &kind, &atoms, &bytes))
		return;
	if (kind == SW_COLLECTIVE_PERMUTE)
		tally_permute(w, t, id, op);
	else
		tally_grouped(w, t, id, op);
	t->communication_s += sw_cost_choose_said(w->cluster, sw_cost_sending(w->program, id).algorithm,
	                                          kind, atoms, bytes)
	                              .seconds;
	t->least_communication_s += sw_cost_share(w->cluster, kind, atoms, bytes);
	t->collectives = add_times(t->collectives, 1, 1);
}

/* ---- computations ----------------------------------------------------------------------- */

static const tally *tally_of(walker *w, int32_t computation);

static void tally_while(walker *w, tally *t, const sw_op *op)
{
	int64_t trips = sw_op_trips_on(op, w->classes->list[w->class].device);
	add_tally(w, t, tally_of(w, op->called[0]), trips == INT64_MAX ? trips : trips + 1);
	add_tally(w, t, tally_of(w, op->called[1]), trips);
}

static void tally_conditional(walker *w, tally *t, const sw_op *op)
{
	tally dearest = {0};
	for (uint32_t k = 0; k < op->n_called; k++)
		raise_tally(w, &dearest, tally_of(w, op->called[k]));
	add_tally(w, t, &dearest, 1);
}

/* Add the tallies of called computations. Reducers, comparators and similar computations are
 * counted with the op that calls them. */
static void tally_called(walker *w, tally *t, const sw_op *op)
{
	if (sw_fused_kernel_of(op) != SW_FUSED_COUNT)
		return; /* sw_cost_op has counted it as one kernel */
	switch (op->opcode) {
	case SW_OP_WHILE:
		tally_while(w, t, op);
		break;
	case SW_OP_CONDITIONAL:
		tally_conditional(w, t, op);
		break;
	case SW_OP_CALL:
	case SW_OP_FUSION:
	case SW_OP_ASYNC_START:
		add_tally(w, t, tally_of(w, op->called[0]), 1);
		break;
	default:
		break;
	}
}

/* Add what an op calls that only owners run: what they send and compute is theirs. */
static void tally_owned(walker *w, tally *t, sw_id id)
{
	uint32_t set = w->owners.runs[id];
	tally inner = {0};
	tally_called(w, &inner, sw_op_at(w->program, id));
	w->owned_s[set] += inner.compute_s;
	w->owned_bytes[set] = add_times(w->owned_bytes[set], inner.all_ranks, 1);
	for (int64_t r = 0; inner.permuted && r < w->ranks; r++)
		inner.permuted[r] *= sw_owner_is(&w->owners.sets[set], r);
	inner.compute_s = 0;
	inner.all_ranks = 0;
	add_tally(w, t, &inner, 1);
}

/* Where the seconds of an op's kernel are added: to all devices', or to those of its owners. */
static double *seconds_of(walker *w, tally *t, sw_id id)
{
	return w->owned_s && w->owners.runs[id] > 0 ? &w->owned_s[w->owners.runs[id]]
	                                            : &t->compute_s;
}

/* Return the most that a device of the class does of what only owners do. O(devices * sets). */
static double busiest_owner_s(const walker *w)
{
	double most = 0;
	for (int64_t d = 0; w->owned_s && d < w->ranks; d++) {
		double sum = 0;
		if (w->classes->of && w->classes->of[d] != w->class)
			continue;
		for (int32_t k = 1; k < w->owners.n; k++)
			sum += sw_owner_is(&w->owners.sets[k], d) ? w->owned_s[k] : 0;
		most = fmax(most, sum);
	}
	return most;
}

static const tally *tally_of(walker *w, int32_t c)
{
	const sw_computation *computation = &w->program->computations.data[c];
	tally *t = &w->tallies[c];
	for (size_t i = 0; !t->done && i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		if (sw_opcode_class((sw_opcode)sw_op_at(w->program, id)->opcode) ==
		    SW_CLASS_COLLECTIVE)
			tally_collective(w, t, id);
		*seconds_of(w, t, id) += sw_cost_op(&w->classes->list[w->class].cluster, w->program, id);
		if (w->owned_s && w->owners.runs[id] > 0)
			tally_owned(w, t, id);
		else
			tally_called(w, t, sw_op_at(w->program, id));
	}
	if (!t->done && c == w->program->entry)
		t->compute_s += busiest_owner_s(w);
	t->done = true;
	return t;
}

static walker new_walker(const sw_cluster *cluster, const sw_program *program,
                         const sw_device_classes *classes, int32_t class)
{
	walker w = {.cluster = cluster,
	            .classes = classes,
	            .class = class,
	            .program = program,
	            .ranks = cluster->n_devices};
	sw_arena_init(&w.arena);
	w.tallies = SW_NEW_N(&w.arena, tally, program->computations.len);
	return w;
}

/* The branch is one for all devices, and what they have in common decides. */
uint32_t sw_cost_dearest_branch(const sw_cluster *cluster, const sw_program *program, sw_id id)
{
	const sw_device_class all = {.cluster = *cluster};
	const sw_device_classes classes = {.n = 1, .list = &all};
	walker w = new_walker(cluster, program, &classes, 0);
	const sw_op *op = sw_op_at(program, id);
	uint32_t dearest = 0;
	double max_s = -1;
	for (uint32_t k = 0; k < op->n_called; k++) {
		const tally *t = tally_of(&w, op->called[k]);
		if (t->compute_s + t->communication_s > max_s) {
			max_s = t->compute_s + t->communication_s;
			dearest = k;
		}
	}
	sw_arena_clear(&w.arena);
	return dearest;
}

/* The owners of the program's values count, too. */
static walker new_owner_walker(const sw_cluster *cluster, const sw_program *program,
                               const sw_device_classes *classes, int32_t class)
{
	walker w = new_walker(cluster, program, classes, class);
	if (sw_program_has_owners(program)) {
		w.owners = sw_program_owners(program, &w.arena);
		w.owned_s = SW_NEW_N(&w.arena, double, w.owners.n);
		w.owned_bytes = SW_NEW_N(&w.arena, int64_t, w.owners.n);
	}
	return w;
}

static sw_program_cost cost_of_class(const sw_cluster *cluster, const sw_program *local,
                                     const sw_device_classes *classes, int32_t class)
{
	walker w = new_owner_walker(cluster, local, classes, class);
	const tally *entry = tally_of(&w, local->entry);
	sw_program_cost cost = {
		.compute_s = entry->compute_s,
		.communication_s = entry->communication_s,
		.least_communication_s = entry->least_communication_s,
		.step_time_s = entry->compute_s + entry->communication_s,
		.payload_bytes = max_payload(&w, entry),
		.collectives = entry->collectives,
	};
	sw_arena_clear(&w.arena);
	return cost;
}

void sw_cost_payloads(const sw_cluster *cluster, const sw_program *local, int64_t *bytes)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_device_classes classes = sw_device_classes_of(cluster, local, &arena);
	for (int32_t k = 0; k < classes.n; k++) {
		walker w = new_owner_walker(cluster, local, &classes, k);
		const tally *entry = tally_of(&w, local->entry);
		for (int64_t r = 0; r < w.ranks; r++)
			if (!classes.of || classes.of[r] == k)
				bytes[r] = add_times(entry->all_ranks,
				                     further_payload(&w, entry, r), 1);
		sw_arena_clear(&w.arena);
	}
	sw_arena_clear(&arena);
}

void sw_cost_program(const sw_cluster *cluster, const sw_program *local, sw_program_cost *cost)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_device_classes classes = sw_device_classes_of(cluster, local, &arena);
	int64_t payload_bytes = 0;
	for (int32_t k = 0; k < classes.n; k++) {
		sw_program_cost one = cost_of_class(cluster, local, &classes, k);
		payload_bytes = SW_MAX(payload_bytes, one.payload_bytes);
		if (k == 0 || one.step_time_s > cost->step_time_s)
			*cost = one;
	}
	cost->payload_bytes = payload_bytes;
	cost->peak_bytes = sw_program_peak_bytes(local, local->entry);
	sw_arena_clear(&arena);
}
