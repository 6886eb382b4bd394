/* The collectives that carry tensors: choose the algorithm, and fill in its task. */
#include "transport/algorithm.h"

#include <string.h>

sw_algorithm_fn *sw_algorithm_function(sw_algorithm algorithm, sw_collective_kind kind)
{
#define ROW(NAME, name, serves) [SW_ALGORITHM_##NAME] = sw_##name##_functions,
	static sw_algorithm_fn *const *const functions[SW_ALGORITHM_COUNT] = {SW_ALGORITHMS(ROW)};
#undef ROW
	return functions[algorithm][kind];
}

/* ---- shared by algorithms --------------------------------------------------------------- */

void sw_task_combine(const sw_task *task, const void *a, const void *b, void *out, int64_t elements)
{
	sw_reduce(task->call.monoid, task->call.type, (const void *const[]){a, b}, 2, out, elements,
	          NULL);
}

void sw_task_place_own(const sw_task *task)
{
	sw_element_span own = sw_task_block(task, task->position);
	if (own.length)
		memcpy(task->out + own.begin * task->width, task->in,
		       (size_t)(own.length * task->width));
}

sw_status sw_scratch_refused(int64_t bytes, sw_error *err)
{
	return sw_fail(err, SW_ERR_IO, "no memory for a buffer of %lld bytes of a collective",
	               (long long)bytes);
}

/* ---- choice of algorithm ---------------------------------------------------------------- */

/* Return the atoms in which members differ; all atoms, if the group does not contain all ranks that
 * differ only in these (the cost model makes the same assumption). */
static uint32_t atoms_of(const sw_task *task)
{
	const sw_atoms *atoms = &task->cluster->atoms;
	uint32_t mask = 0, all = (uint32_t)((UINT64_C(1) << atoms->n) - 1);
	for (int32_t i = 1; i < task->n; i++)
		for (int32_t a = 0; a < atoms->n; a++)
			if (sw_atoms_coordinate(atoms, task->ranks[i], a) !=
			    sw_atoms_coordinate(atoms, task->ranks[0], a))
				mask |= UINT32_C(1) << a;
	return sw_atoms_group_size(atoms, mask) == task->n ? mask : all;
}

static int64_t operand_bytes(const sw_task *task)
{
	int64_t whole = task->total * task->width;
	return task->kind == SW_COLLECTIVE_ALL_GATHER ? whole / task->n : whole;
}

typedef struct choice {
	sw_algorithm algorithm;
	bool goes_whole;
} choice;

/* Return the algorithm that is forced, or that the op says; SW_ALGORITHM_COUNT: it is free. */
static sw_algorithm given(const sw_carrier *c, const sw_task *task)
{
	if (c->force != SW_ALGORITHM_COUNT && sw_algorithm_serves(c->force, task->kind))
		return c->force;
	sw_algorithm said = c->said ? (sw_algorithm)(c->said - 1) : SW_ALGORITHM_COUNT;
	return c->said && sw_algorithm_serves(said, task->kind) ? said : SW_ALGORITHM_COUNT;
}

static choice choose_by_cost(const sw_carrier *c, const sw_task *task, uint32_t atoms)
{
	sw_algorithm algorithm = given(c, task);
	int64_t bytes = operand_bytes(task);
	if (algorithm == SW_ALGORITHM_COUNT)
		algorithm = sw_cost_choose(c->cluster, task->kind, atoms, bytes).algorithm;
	bool reduces = task->kind == SW_COLLECTIVE_ALL_REDUCE;
	return (choice){algorithm,
	                reduces && sw_cost_goes_whole(c->cluster, algorithm, atoms, bytes)};
}

/* Choose by cost, and cache the choice for each kind of call. */
static choice choose_cached(sw_carrier *c, const sw_task *task)
{
	const struct {
		uint64_t kind, atoms, bytes, said;
	} key = {task->kind, atoms_of(task), (uint64_t)operand_bytes(task), c->said};
	uint32_t cached = sw_map_get(&c->choices, &key, sizeof(key));
	if (cached == SW_ABSENT) {
		choice made = choose_by_cost(c, task, (uint32_t)key.atoms);
		cached = (uint32_t)made.algorithm * 2 + made.goes_whole;
		sw_map_put(&c->choices, &key, sizeof(key), cached);
	}
	return (choice){(sw_algorithm)(cached / 2), cached % 2};
}

/* Without a cluster use direct algorithms, and halving for broadcasts. An all-reduce exchanges
 * whole operands if a rank then sends at most SMALL_BYTES bytes, or no more than otherwise. */
#define SMALL_BYTES 16384

static choice choose_by_size(const sw_carrier *c, const sw_task *task)
{
	sw_algorithm algorithm = given(c, task);
	if (algorithm == SW_ALGORITHM_COUNT || algorithm == SW_ALGORITHM_HIERARCHICAL)
		algorithm = task->kind == SW_COLLECTIVE_BROADCAST ? SW_ALGORITHM_HALVING
		                                                  : SW_ALGORITHM_DIRECT;
	return (choice){algorithm,
	                task->n == 2 || task->total * task->width * (task->n - 1) <= SMALL_BYTES};
}

void sw_transport_tune(sw_transport *transport, const sw_cluster *cluster, sw_algorithm force)
{
	sw_carrier *c = (sw_carrier *)transport;
	c->cluster = cluster && cluster->n_devices == transport->size ? cluster : NULL;
	c->force = force;
	sw_map_clear(&c->choices);
}

/* ---- tasks ------------------------------------------------------------------------------ */

static sw_status find_position(sw_task *task, int32_t rank, sw_error *err)
{
	for (task->position = 0; task->position < task->n; task->position++)
		if (task->ranks[task->position] == rank)
			return SW_OK;
	return sw_fail(err, SW_ERR_INTERNAL,
	               "rank %d calls a collective of a group that it is not in", rank);
}

/* Order the members by vrank. Ranks are devices, which are numbered by place. */
static void find_order(const sw_carrier *c, sw_task *task)
{
	int32_t n = 0;
	for (int32_t p = 0; p < task->n; p++) {
		int32_t at = n++;
		for (; at > 0 && task->ranks[c->order[at - 1]] > task->ranks[p]; at--)
			c->order[at] = c->order[at - 1];
		c->order[at] = p;
	}
	for (task->vrank = 0; c->order[task->vrank] != task->position; task->vrank++)
		continue;
	task->order = c->order;
}

/* In a group of one rank the result is the operand. */
static void copy_operand(const sw_task *task)
{
	if (task->total && task->out != task->in)
		memcpy(task->out, task->in, (size_t)(task->total * task->width));
}

static sw_status perform(sw_transport *t, sw_task *task, sw_error *err)
{
	sw_carrier *c = (sw_carrier *)t;
	sw_status status = find_position(task, t->rank, err);
	if (status)
		return status;
	if (task->call.monoid && !sw_can_reduce(task->call.monoid, task->call.type))
		return sw_reduce(task->call.monoid, task->call.type, NULL, 0, NULL, 0, err);
	if (task->n == 1) {
		copy_operand(task);
		return SW_OK;
	}
	task->cluster = c->cluster;
	find_order(c, task);
	choice chosen = c->cluster ? choose_cached(c, task) : choose_by_size(c, task);
	task->goes_whole = chosen.goes_whole;
	return sw_algorithm_function(chosen.algorithm, task->kind)(c, task, err);
}

/* ---- the table's entries ---------------------------------------------------------------- */

sw_status sw_carrier_all_reduce(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
                                sw_type type, const void *in, void *out, int64_t elements,
                                sw_error *err)
{
	sw_task task = {.kind = SW_COLLECTIVE_ALL_REDUCE,
	                .call = {"all-reduce", monoid, type, elements, n},
	                .ranks = ranks,
	                .n = n,
	                .total = elements,
	                .width = sw_type_bytes(type),
	                .in = in,
	                .out = out};
	return perform(t, &task, err);
}

sw_status sw_carrier_all_gather(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
                                void *out, int64_t bytes, sw_error *err)
{
	sw_task task = {.kind = SW_COLLECTIVE_ALL_GATHER,
	                .call = {.what = "all-gather", .amount = bytes, .ranks = n},
	                .ranks = ranks,
	                .n = n,
	                .total = n * bytes,
	                .width = 1,
	                .in = in,
	                .out = out};
	return perform(t, &task, err);
}

sw_status sw_carrier_reduce_scatter(sw_transport *t, const int32_t *ranks, int32_t n,
                                    sw_monoid monoid, sw_type type, const void *in, void *out,
                                    int64_t elements, sw_error *err)
{
	sw_task task = {.kind = SW_COLLECTIVE_REDUCE_SCATTER,
	                .call = {"reduce-scatter", monoid, type, elements, n},
	                .ranks = ranks,
	                .n = n,
	                .total = n * elements,
	                .width = sw_type_bytes(type),
	                .in = in,
	                .out = out};
	return perform(t, &task, err);
}

sw_status sw_carrier_all_to_all(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
                                void *out, int64_t bytes, sw_error *err)
{
	sw_task task = {.kind = SW_COLLECTIVE_ALL_TO_ALL,
	                .call = {.what = "all-to-all", .amount = bytes, .ranks = n},
	                .ranks = ranks,
	                .n = n,
	                .total = n * bytes,
	                .width = 1,
	                .in = in,
	                .out = out};
	return perform(t, &task, err);
}

sw_status sw_carrier_group_broadcast(sw_transport *t, const int32_t *ranks, int32_t n,
                                     const void *in, void *out, int64_t bytes, sw_error *err)
{
	sw_task task = {.kind = SW_COLLECTIVE_BROADCAST,
	                .call = {.what = "broadcast to a group", .amount = bytes, .ranks = n},
	                .ranks = ranks,
	                .n = n,
	                .total = bytes,
	                .width = 1,
	                .in = in,
	                .out = out};
	if (n > 0 && ranks[0] == t->rank)
		copy_operand(&task);
	return perform(t, &task, err);
}

sw_status sw_carrier_group_reduce(sw_transport *t, const int32_t *ranks, int32_t n,
                                  sw_monoid monoid, sw_type type, const void *in, void *out,
                                  int64_t elements, sw_error *err)
{
	sw_task task = {.kind = SW_COLLECTIVE_BROADCAST,
	                .call = {"reduce to a rank", monoid, type, elements, n},
	                .ranks = ranks,
	                .n = n,
	                .total = elements,
	                .width = sw_type_bytes(type),
	                .in = in,
	                .out = out};
	copy_operand(&task);
	return perform(t, &task, err);
}

sw_status sw_carrier_permute(sw_transport *t, int32_t target, int32_t source, const void *in,
                             void *out, int64_t bytes, sw_error *err)
{
	sw_carrier *c = (sw_carrier *)t;
	sw_carrier_call call = {.what = "permute", .amount = bytes, .ranks = t->size};
	sw_lane *lane = sw_carrier_lane(c, 0);
	if (source < 0 && bytes)
		memset(out, 0, (size_t)bytes);
	else if (source == t->rank && bytes)
		memcpy(out, in, (size_t)bytes);
	if (target >= 0 && target != t->rank)
		sw_lane_send(lane, target, in, bytes);
	if (source >= 0 && source != t->rank)
		sw_lane_receive(lane, source, out, bytes);
	sw_status status = sw_carrier_exchange(c, &call, err);
	if (status == SW_OK && lane->sends.len)
		t->traffic.wire_bytes += bytes;
	return status;
}
