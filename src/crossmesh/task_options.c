/* The ways to do a unit task by a strategy: one per possible sender. */
#include "crossmesh/task_options.h"

#include <string.h>

typedef struct option_maker {
	phase_pricer pricer;
	const sw_unit_task *task;
	int64_t width; /* bytes of an element */
	int32_t chunks, n_terms;
	sw_arena *arena;
	SW_VEC(sw_crossmesh_phase) phases; /* of the option that is being made */
} option_maker;

/* ---- phases ----------------------------------------------------------------------------- */

static int32_t add_phase(option_maker *m, sw_phase_kind kind, const int64_t *members, int32_t n,
                         int32_t n_terms, int32_t chunks, int32_t after)
{
	sw_crossmesh_phase phase = {.kind = kind,
	                            .after = after,
	                            .n_members = n,
	                            .n_terms = n_terms,
	                            .chunks = 1,
	                            .members = members};
	phase_price(&m->pricer, m->task->elements, m->width, chunks, &phase);
	sw_vec_push(&m->phases, phase);
	return (int32_t)m->phases.len - 1;
}

static int64_t *join(sw_arena *arena, const int64_t *a, int32_t n, const int64_t *b, int32_t k)
{
	int64_t *both = SW_NEW_N(arena, int64_t, n + k);
	memcpy(both, a, (size_t)n * sizeof(*a));
	memcpy(both + n, b, (size_t)k * sizeof(*b));
	return both;
}

/* Add the chain that brings all terms to the head. Return its index, -1 if there is one term. */
static int32_t reduce(option_maker *m, const sender_chain *senders)
{
	if (senders->n == 1)
		return -1;
	return add_phase(m, SW_PHASE_CHAIN, senders->devices, senders->n, senders->n, m->chunks,
	                 -1);
}

static void send_one_by_one(option_maker *m, const sender_chain *senders)
{
	int32_t after = reduce(m, senders);
	const int64_t *head = &senders->devices[senders->n - 1];
	for (int32_t r = 0; r < m->task->n_receivers; r++)
		add_phase(m, SW_PHASE_CHAIN, join(m->arena, head, 1, &m->task->receivers[r], 1), 2,
		          1, 1, after);
}

/* Scatter to some receivers, which then gather. */
static void scatter_and_gather(option_maker *m, int64_t head, const int64_t *receivers, int32_t n,
                               int32_t after)
{
	if (n == 1) {
		add_phase(m, SW_PHASE_CHAIN, join(m->arena, &head, 1, receivers, 1), 2, 1, 1,
		          after);
		return;
	}
	int32_t scatter = add_phase(m, SW_PHASE_SCATTER, join(m->arena, &head, 1, receivers, n),
	                            n + 1, 1, 1, after);
	add_phase(m, SW_PHASE_GATHER, receivers, n, 1, 1, scatter);
}

static void gather_locally(option_maker *m, const sender_chain *senders)
{
	const sw_cluster *cluster = m->pricer.links->cluster;
	const sw_unit_task *task = m->task;
	int32_t after = reduce(m, senders);
	for (int32_t r = 0, n; r < task->n_receivers; r += n) {
		int32_t part = sw_cluster_part_at(cluster, task->receivers[r], task->level);
		n = 1;
		while (r + n < task->n_receivers &&
		       sw_cluster_part_at(cluster, task->receivers[r + n], task->level) == part)
			n++;
		scatter_and_gather(m, senders->devices[senders->n - 1], &task->receivers[r], n,
		                   after);
	}
}

static void gather_globally(option_maker *m, const sender_chain *senders)
{
	int32_t after = reduce(m, senders);
	scatter_and_gather(m, senders->devices[senders->n - 1], m->task->receivers,
	                   m->task->n_receivers, after);
}

static void broadcast(option_maker *m, const sender_chain *senders)
{
	const int64_t *members = join(m->arena, senders->devices, senders->n, m->task->receivers,
	                              m->task->n_receivers);
	add_phase(m, SW_PHASE_CHAIN, members, senders->n + m->task->n_receivers, senders->n,
	          m->chunks, -1);
}

static void (*const strategies[SW_CROSSMESH_STRATEGIES])(option_maker *, const sender_chain *) = {
	[SW_CROSSMESH_SEND_RECV] = send_one_by_one,
	[SW_CROSSMESH_LOCAL_ALL_GATHER] = gather_locally,
	[SW_CROSSMESH_GLOBAL_ALL_GATHER] = gather_globally,
	[SW_CROSSMESH_BROADCAST] = broadcast,
};

/* ---- options ---------------------------------------------------------------------------- */

static task_option take_option(option_maker *m)
{
	task_option option = {.n_phases = (int32_t)m->phases.len};
	option.phases =
		sw_arena_copy(m->arena, m->phases.data, m->phases.len * sizeof(*m->phases.data));
	option.work = 1;
	for (int32_t p = 0; p < option.n_phases; p++) {
		option.seconds += option.phases[p].seconds;
		option.work += option.phases[p].n_links / SW_CROSSMESH_WORK_LINKS;
	}
	m->phases.len = 0;
	return option;
}

static uint64_t hash_option(const task_option *option, uint64_t hash)
{
	for (int32_t p = 0; p < option->n_phases; p++) {
		const sw_crossmesh_phase *phase = &option->phases[p];
		uint64_t seconds;
		memcpy(&seconds, &phase->seconds, sizeof(seconds));
		hash = sw_hash_u64(sw_hash_u64(hash, seconds), (uint64_t)(uint32_t)phase->after);
		for (int32_t l = 0; l < phase->n_links; l++) {
			const sw_link_share *on = &phase->links[l];
			uint64_t numbers[3];
			memcpy(numbers, (double[]){on->share, on->begin_s, on->held_s},
			       sizeof(numbers));
			for (size_t k = 0; k < SW_COUNT(numbers); k++)
				hash = sw_hash_u64(hash, numbers[k]);
			hash = sw_hash_u64(hash, (uint64_t)on->link);
		}
	}
	return sw_hash_u64(hash, (uint64_t)option->n_phases);
}

static void number_kinds(ways_list *ways)
{
	sw_map kinds = {0};
	for (int32_t i = 0; i < ways->n; i++) {
		uint64_t hash = 0;
		for (int32_t o = 0; o < ways->tasks[i].n; o++)
			hash = hash_option(&ways->tasks[i].options[o], hash);
		ways->tasks[i].kind = (int32_t)sw_map_intern(&kinds, &hash, sizeof(hash),
		                                             (uint32_t)ways->n_kinds);
		ways->n_kinds = SW_MAX(ways->n_kinds, ways->tasks[i].kind + 1);
	}
	sw_map_clear(&kinds);
}

ways_list ways_make(const link_table *links, const slice_list *slices, const task_list *tasks,
                    sw_crossmesh_strategy strategy, int32_t chunks, sw_arena *arena)
{
	ways_list ways = {.n = tasks->n, .links = links};
	option_maker m = {.pricer = pricer_new(links, arena), .chunks = chunks, .arena = arena};
	sender_chains chains = {0};
	ways.tasks = SW_NEW_N(arena, task_ways, SW_MAX(tasks->n, 1));
	for (int32_t i = 0; i < tasks->n; i++) {
		task_ways *way = &ways.tasks[i];
		m.task = &tasks->tasks[i];
		m.width = m.task->bytes / SW_MAX(m.task->elements, 1);
		senders_list(links->cluster, m.task, slices->slices[m.task->slice].n_terms, i,
		             arena, &chains);
		way->n = (int32_t)chains.len;
		way->devices = m.task->n_receivers + 1;
		way->options = SW_NEW_N(arena, task_option, way->n);
		for (int32_t o = 0; o < way->n; o++) {
			strategies[strategy](&m, &chains.data[o]);
			way->options[o] = take_option(&m);
		}
	}
	number_kinds(&ways);
	sw_vec_clear(&chains);
	sw_vec_clear(&m.phases);
	return ways;
}
