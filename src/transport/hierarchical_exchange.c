/*
 * Hierarchical all-to-all: few, large messages between parts.
 *
 * The parts are those of the outermost level that the group crosses. The blocks that a part sends
 * to one rank of another part are first collected by one of its members, the rank's SERVER (the
 * members serve in rotation), and then sent as one message that contains the block of every member:
 * a part of s members sends one message instead of s to each rank elsewhere, and no byte crosses
 * the link twice.
 */
#include "transport/hierarchy.h"

#include <string.h>

typedef struct exchange {
	const sw_task *task;
	sw_hierarchy hierarchy;
	int64_t bytes;       /* of a block */
	int32_t first, size; /* vranks of this rank's part */
	int32_t *served;     /* [n_served]: vranks in other parts that this rank serves */
	int32_t n_served;
	char *packed;    /* by server of this part: this rank's blocks for those it serves */
	char *collected; /* [size][n_served]: blocks received from the members */
	char *sorted;    /* [n_served][size] */
	char *arrived;   /* [n]: blocks for this rank, by vrank */
} exchange;

/* Return the member of the part beginning at `first` that serves a vrank of another part. */
static int32_t server_of(const sw_hierarchy *h, int32_t first, int32_t vrank)
{
	int32_t size = h->end[1][first] - first;
	return first + (vrank - h->begin[1][vrank]) % size;
}

static bool elsewhere(const exchange *m, int32_t vrank)
{
	return vrank < m->first || vrank >= m->first + m->size;
}

static void copy_block(const exchange *m, char *to, const char *from)
{
	if (m->bytes)
		memcpy(to, from, (size_t)m->bytes);
}

/* Pack this rank's blocks for the ranks that `server` serves, and return their number. */
static int32_t pack_for(const exchange *m, int32_t server, char *to)
{
	int32_t n = 0;
	for (int32_t t = 0; t < m->task->n; t++) {
		if (!elsewhere(m, t) || server_of(&m->hierarchy, m->first, t) != server)
			continue;
		copy_block(m, to + n * m->bytes, m->task->in + m->task->order[t] * m->bytes);
		n++;
	}
	return n;
}

/* Inside the part, send each member its own block and the blocks for the ranks that it serves. */
static void fill_inside(const exchange *m, sw_lane *messages)
{
	const sw_task *t = m->task;
	char *to = m->packed;
	for (int32_t peer = m->first; peer < m->first + m->size; peer++) {
		int32_t n = pack_for(m, peer, to), position = t->order[peer],
			rank = t->ranks[position];
		char *mine = m->collected + (int64_t)(peer - m->first) * m->n_served * m->bytes;
		if (peer == t->vrank) {
			copy_block(m, t->out + position * m->bytes, t->in + position * m->bytes);
			if (n && m->bytes)
				memcpy(mine, to, (size_t)(n * m->bytes));
		} else {
			sw_lane_send(messages, rank, t->in + position * m->bytes, m->bytes);
			sw_lane_send(messages, rank, to, n * m->bytes);
			sw_lane_receive(messages, rank, t->out + position * m->bytes, m->bytes);
			sw_lane_receive(messages, rank, mine, m->n_served * m->bytes);
		}
		to += n * m->bytes;
	}
}

/* Between the parts, send to each rank that this one serves, and receive from its server in each
 * other part. */
static void fill_between(const exchange *m, sw_lane *messages)
{
	const sw_task *t = m->task;
	const sw_hierarchy *h = &m->hierarchy;
	for (int32_t i = 0; i < m->n_served; i++)
		sw_lane_send(messages, sw_task_rank(t, m->served[i]),
		             m->sorted + (int64_t)i * m->size * m->bytes, m->size * m->bytes);
	for (int32_t first = 0; first < t->n; first = sw_hierarchy_next(h, 0, first))
		if (first != m->first)
			sw_lane_receive(messages, sw_task_rank(t, server_of(h, first, t->vrank)),
			                m->arrived + first * m->bytes,
			                (h->end[1][first] - first) * m->bytes);
}

static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	(void)lane;
	if (round == 0)
		fill_inside(context, messages);
	else
		fill_between(context, messages);
}

static void complete(const void *context, int32_t round, int32_t lane)
{
	const exchange *m = context;
	(void)lane;
	for (int32_t i = 0; i < m->n_served && round == 0; i++)
		for (int32_t a = 0; a < m->size; a++)
			copy_block(m, m->sorted + ((int64_t)i * m->size + a) * m->bytes,
			           m->collected + ((int64_t)a * m->n_served + i) * m->bytes);
	for (int32_t t = 0; t < m->task->n && round == 1; t++)
		if (elsewhere(m, t))
			copy_block(m, m->task->out + m->task->order[t] * m->bytes,
			           m->arrived + t * m->bytes);
}

static void find_served(exchange *m)
{
	m->served = sw_alloc((size_t)m->task->n * sizeof(*m->served));
	for (int32_t t = 0; t < m->task->n; t++)
		if (elsewhere(m, t) && server_of(&m->hierarchy, m->first, t) == m->task->vrank)
			m->served[m->n_served++] = t;
}

sw_status sw_hierarchical_all_to_all(sw_carrier *c, const sw_task *task, sw_error *err)
{
	exchange m = {.task = task, .bytes = task->total / task->n * task->width};
	sw_hierarchy_init(&m.hierarchy, task);
	m.first = m.hierarchy.begin[1][task->vrank];
	m.size = m.hierarchy.end[1][task->vrank] - m.first;
	find_served(&m);
	int64_t all = task->n * m.bytes, mine = (int64_t)m.n_served * m.size * m.bytes;
	sw_status status = SW_OK;
	m.packed = sw_carrier_scratch(c, 2 * all + 2 * mine);
	if (m.packed) {
		m.arrived = m.packed + all;
		m.collected = m.arrived + all;
		m.sorted = m.collected + mine;
		sw_wave wave = {&task->call, 2, 1, 1, &m, fill, complete};
		status = sw_wave_run(c, &wave, err);
	} else
		status = sw_scratch_refused(2 * all + 2 * mine, err);
	free(m.served);
	sw_hierarchy_clear(&m.hierarchy);
	return status;
}
