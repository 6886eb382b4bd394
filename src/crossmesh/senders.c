/* The possible senders of a unit task. */
#include "crossmesh/task_options.h"

/* While a chain is made: which terms it has, and the devices, the head's part first. */
typedef struct chain_maker {
	const sw_cluster *cluster;
	const sw_unit_task *task;
	int32_t n_terms, number, taken;
	bool *has;        /* [terms] */
	int64_t *devices; /* [terms], from the head backwards */
} chain_maker;

static int64_t holder(const sw_unit_task *task, int32_t term, int32_t i)
{
	return task->holders[(int64_t)term * task->n_holders + i];
}

/* Return one of a term's holders in a part, turn and turn about; -1: there is none. */
static int64_t holder_in(const chain_maker *m, int32_t term, int32_t part)
{
	int32_t n = 0, k = 0;
	for (int32_t i = 0; i < m->task->n_holders; i++)
		n += sw_cluster_part_at(m->cluster, holder(m->task, term, i), m->task->level) == part;
	for (int32_t i = 0; i < m->task->n_holders; i++)
		if (sw_cluster_part_at(m->cluster, holder(m->task, term, i), m->task->level) == part &&
		    k++ == m->number % n)
			return holder(m->task, term, i);
	return -1;
}

static int32_t count_missing_in(const chain_maker *m, int32_t part)
{
	int32_t n = 0;
	for (int32_t t = 0; t < m->n_terms; t++)
		n += !m->has[t] && holder_in(m, t, part) >= 0;
	return n;
}

static void take_part(chain_maker *m, int32_t part)
{
	for (int32_t t = 0; t < m->n_terms; t++) {
		int64_t device = m->has[t] ? -1 : holder_in(m, t, part);
		if (device < 0)
			continue;
		m->has[t] = true;
		m->devices[m->taken++] = device;
	}
}

/* Return the part with most of the terms that are missing; of several equal ones the first. */
static int32_t best_part(const chain_maker *m)
{
	int32_t best = -1, most = 0;
	for (int32_t t = 0; t < m->n_terms; t++) {
		for (int32_t i = 0; i < m->task->n_holders && !m->has[t]; i++) {
			int32_t part = sw_cluster_part_at(m->cluster, holder(m->task, t, i), m->task->level);
			int32_t n = part == best ? 0 : count_missing_in(m, part);
			if (n > most) {
				most = n;
				best = part;
			}
		}
	}
	return best;
}

static sender_chain make_chain(chain_maker *m, int32_t head_part, sw_arena *arena)
{
	m->taken = 0;
	for (int32_t t = 0; t < m->n_terms; t++)
		m->has[t] = false;
	take_part(m, head_part);
	while (m->taken < m->n_terms)
		take_part(m, best_part(m));
	int64_t *devices = SW_NEW_N(arena, int64_t, m->n_terms);
	for (int32_t i = 0; i < m->taken; i++)
		devices[m->taken - 1 - i] = m->devices[i];
	return (sender_chain){m->taken, devices};
}

void senders_list(const sw_cluster *cluster, const sw_unit_task *task, int32_t n_terms,
                  int32_t number, sw_arena *arena, sender_chains *chains)
{
	chain_maker m = {.cluster = cluster, .task = task, .n_terms = n_terms, .number = number};
	m.has = sw_alloc((size_t)n_terms * sizeof(*m.has));
	m.devices = sw_alloc((size_t)n_terms * sizeof(*m.devices));
	SW_VEC(int32_t) parts = {0};
	for (int32_t i = 0; i < n_terms * task->n_holders; i++) {
		int32_t part = sw_cluster_part_at(cluster, task->holders[i], task->level);
		size_t at = 0;
		while (at < parts.len && parts.data[at] != part)
			at++;
		if (at == parts.len)
			sw_vec_push(&parts, part);
	}
	chains->len = 0;
	for (size_t i = 0; i < parts.len; i++)
		sw_vec_push(chains, make_chain(&m, parts.data[i], arena));
	sw_vec_clear(&parts);
	free(m.has);
	free(m.devices);
}
