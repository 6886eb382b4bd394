/* Steady state of ranks that go on with old values (served_play.h). */
#include "simulate/served_play.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_STEPS 200 /* of each rank, besides those in which the fast ones get ahead */
#define MOST_EVENTS 20000000

typedef enum event_kind { COMPUTED, TERMS_CAME, DIGEST_CAME, UPDATED, VALUE_CAME } event_kind;
typedef struct event {
	double at;
	int64_t number; /* of equal times the first */
	event_kind kind;
	int32_t rank, port;
	int32_t from; /* of a digest: the port that gives it */
	/* terms: how many updates the value had that they were made of; value: how many it has */
	int64_t updates;
} event;

/* Per rank: with a bound, what is of the terms of all is rank 0's. */
typedef struct port_state {
	int64_t done;        /* updates */
	int64_t n_begun;     /* likewise */
	int64_t *came;       /* per rank: pieces of terms */
	int64_t *ready, *begun; /* per rank: updates whose terms are there; that are begun */
	int64_t *digests;    /* per port and rank: digests that have come */
	int64_t *bases;      /* per rank, a ring of the `updates` of those that wait */
	int64_t ring;
} port_state;

typedef struct player {
	const sw_cluster *cluster;
	const sw_served *served;
	const double *more_s;
	int64_t n, goal;            /* ranks of devices; steps of each */
	int64_t n_servers;          /* which are numbered behind them */
	double worker_s, *update_s, *digest_s; /* per port */
	SW_VEC(event) heap;
	int64_t n_events;
	bool *computing;
	int64_t n_waiting;    /* in step: ranks that have begun, and wait for all others */
	double last_begin_s;  /* of them */
	int64_t *steps;   /* per rank: done */
	int64_t *version; /* per rank and port: updates of its value; without a bound its replies */
	int64_t *seen;    /* likewise, updates of the value that the step under way has */
	double *middle, *last; /* per rank: when it had done half of the steps, and all so far */
	int64_t *n_middle;
	double *free_s;              /* per rank and server: its updates are done */
	/* per level and part, of the outermost also server: when the link is free */
	double **sends_s, **takes_s;
	port_state *ports;
	int64_t behind; /* ranks that have not done `goal` steps */
	int64_t oldest;
	double ages, n_ages;
} player;

/* ---- events ----------------------------------------------------------------------------- */

static bool before(const event *a, const event *b)
{
	return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static void push(player *p, event e)
{
	e.number = p->n_events++;
	sw_vec_push(&p->heap, e);
	size_t i = p->heap.len - 1;
	for (; i > 0 && before(&e, &p->heap.data[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap.data[i] = p->heap.data[(i - 1) / 2];
	p->heap.data[i] = e;
}

static event pop(player *p)
{
	event first = p->heap.data[0], e = p->heap.data[--p->heap.len];
	size_t n = p->heap.len, i = 0;
	for (size_t child = 1; child < n; child = 2 * i + 1) {
		if (child + 1 < n && before(&p->heap.data[child + 1], &p->heap.data[child]))
			child++;
		if (!before(&p->heap.data[child], &e))
			break;
		p->heap.data[i] = p->heap.data[child];
		i = child;
	}
	if (n > 0)
		p->heap.data[i] = e;
	return first;
}

/* ---- messages --------------------------------------------------------------------------- */

static double bandwidth_of(const sw_cluster *cluster, int32_t level, int32_t part)
{
	const sw_level *l = &cluster->levels[level];
	return l->part_bandwidth ? l->part_bandwidth[part] : l->bandwidth;
}

/* The link of a rank at a level. */
typedef struct rank_link {
	int64_t number;
	double bandwidth;
} rank_link;

static rank_link link_of(const player *p, int64_t rank, int32_t level)
{
	if (rank >= p->n)
		return (rank_link){sw_cluster_parts(p->cluster, 0) + rank - p->n,
		                   p->cluster->levels[0].bandwidth};
	int32_t part = sw_cluster_part_at(p->cluster, rank, level);
	return (rank_link){part, bandwidth_of(p->cluster, level, part)};
}

static double way_s(const player *p, int64_t from, int64_t to, int64_t bytes)
{
	return from < p->n && to < p->n
	               ? sw_cost_pair(p->cluster, from, to, bytes)
	               : sw_cost_pair_outside(p->cluster, SW_MIN(from, to), bytes);
}

/* Send from one rank to another; return when it arrives. Servers send nothing to each other. */
static double deliver(player *p, double now, int64_t from, int64_t to, int64_t bytes)
{
	bool inside = from < p->n && to < p->n;
	int32_t level = inside ? sw_cluster_meeting_level(p->cluster, from, to) : 0;
	if (level == p->cluster->n_levels)
		return now;
	rank_link a = link_of(p, from, level), b = link_of(p, to, level);
	double *sends = &p->sends_s[level][a.number], *takes = &p->takes_s[level][b.number];
	double begin = fmax(now, fmax(*sends, *takes));
	*sends = begin + (double)bytes / a.bandwidth;
	*takes = begin + (double)bytes / b.bandwidth;
	return begin + way_s(p, from, to, bytes);
}

/* ---- workers ---------------------------------------------------------------------------- */

static bool may_begin(const player *p, int64_t rank)
{
	for (uint32_t i = 0; i < p->served->n_ports; i++) {
		int64_t stale = p->served->ports[i].stale,
			version = p->version[rank * p->served->n_ports + i];
		if (version < p->steps[rank] - (stale == SW_STALE_ANY ? 0 : stale))
			return false;
	}
	return true;
}

/* Collectives of the worker end once the last rank has come to them. */
static void begin_worker(player *p, int32_t rank, double at)
{
	if (!p->served->in_step) {
		push(p, (event){.at = at + p->worker_s, .kind = COMPUTED, .rank = rank});
		return;
	}
	p->last_begin_s = fmax(p->last_begin_s, at);
	if (++p->n_waiting < p->n)
		return;
	p->n_waiting = 0;
	for (int64_t r = 0; r < p->n; r++)
		push(p, (event){.at = p->last_begin_s + p->worker_s,
		                .kind = COMPUTED,
		                .rank = (int32_t)r});
}

static void try_begin(player *p, int32_t rank, double now)
{
	if (p->computing[rank] || !may_begin(p, rank))
		return;
	p->computing[rank] = true;
	for (uint32_t i = 0; i < p->served->n_ports; i++) {
		int64_t at = rank * (int64_t)p->served->n_ports + i;
		if (p->served->ports[i].stale != SW_STALE_ANY)
			p->seen[at] = p->version[at];
	}
	begin_worker(p, rank, now + (p->more_s ? p->more_s[rank] : 0));
}

static void computed(player *p, const event *e)
{
	p->computing[e->rank] = false;
	p->steps[e->rank]++;
	p->last[e->rank] = e->at;
	p->behind -= p->steps[e->rank] == p->goal;
	if (p->steps[e->rank] == p->goal / 2) {
		p->middle[e->rank] = e->at;
		p->n_middle[e->rank] = p->steps[e->rank];
	}
	for (uint32_t i = 0; i < p->served->n_ports; i++) {
		const sw_port *port = &p->served->ports[i];
		int64_t to = sw_port_rank(port, p->n);
		push(p, (event){.at = deliver(p, e->at, e->rank, to, port->sent_bytes),
		                .kind = TERMS_CAME,
		                .rank = e->rank,
		                .port = (int32_t)i,
		                .updates = p->seen[e->rank * (int64_t)p->served->n_ports + i]});
	}
	try_begin(p, e->rank, e->at);
}

/* ---- owners ----------------------------------------------------------------------------- */

static void count_age(player *p, int64_t age)
{
	p->oldest = SW_MAX(p->oldest, age);
	p->ages += (double)age;
	p->n_ages++;
}

static void begin_update(player *p, int32_t port, int32_t rank, double now)
{
	double *free_s = &p->free_s[sw_port_rank(&p->served->ports[port], p->n)];
	*free_s = fmax(*free_s, now) + p->update_s[port];
	push(p, (event){.at = *free_s, .kind = UPDATED, .rank = rank, .port = port});
}

/* Begin the updates with a rank's terms (0: with those of all) that nothing is missing for. */
static void try_update(player *p, int32_t port, int32_t rank, double now)
{
	const sw_port *what = &p->served->ports[port];
	port_state *s = &p->ports[port];
	while (s->begun[rank] < s->ready[rank]) {
		for (uint32_t k = 0; k < what->n_taken; k++)
			if (s->digests[what->taken[k].port * p->n + rank] <= s->begun[rank])
				return;
		if (what->stale == SW_STALE_ANY)
			count_age(p, s->n_begun - s->bases[rank]);
		s->begun[rank]++;
		s->n_begun++;
		begin_update(p, port, what->stale == SW_STALE_ANY ? rank : -1, now);
	}
}

/* Make the digest of a rank's terms (0: of all), and send it to those who take something of it, to
 * each rank once. */
static void give_digest(player *p, int32_t port, int32_t rank, double now)
{
	const sw_port *what = &p->served->ports[port];
	int64_t from = sw_port_rank(what, p->n);
	double *free_s = &p->free_s[from], *arrival = sw_alloc(
					sizeof(*arrival) * (size_t)(p->n + p->n_servers));
	*free_s = fmax(*free_s, now) + p->digest_s[port];
	arrival[from] = *free_s;
	for (uint32_t i = 0; i < p->served->n_ports; i++) {
		int64_t to = sw_port_rank(&p->served->ports[i], p->n);
		if (!sw_port_takes(&p->served->ports[i], (uint32_t)port))
			continue;
		if (arrival[to] == 0)
			arrival[to] = deliver(p, *free_s, from, to, what->digest_bytes);
		push(p, (event){.at = arrival[to],
		                .kind = DIGEST_CAME,
		                .rank = rank,
		                .port = (int32_t)i,
		                .from = port});
	}
	free(arrival);
}

static void digest_came(player *p, const event *e)
{
	p->ports[e->port].digests[e->from * p->n + e->rank]++;
	try_update(p, e->port, e->rank, e->at);
}

/* The terms of an update are there. */
static void ready(player *p, int32_t port, int32_t rank, double now)
{
	p->ports[port].ready[rank]++;
	if (p->served->ports[port].digest)
		give_digest(p, port, rank, now);
	try_update(p, port, rank, now);
}

/* Bounded: update number k adds the k-th terms of all ranks, of which this is the last that came.
 */
static void terms_came(player *p, const event *e)
{
	port_state *s = &p->ports[e->port];
	int64_t round = ++s->came[e->rank];
	s->bases[e->rank * s->ring + (round - 1) % s->ring] = e->updates;
	if (p->served->ports[e->port].stale == SW_STALE_ANY) {
		ready(p, e->port, e->rank, e->at);
		return;
	}
	for (int64_t r = 0; r < p->n; r++)
		if (s->came[r] < round)
			return;
	for (int64_t r = 0; r < p->n; r++)
		count_age(p, round - 1 - s->bases[r * s->ring + (round - 1) % s->ring]);
	ready(p, e->port, 0, e->at);
}

static void send_value(player *p, const event *e, int32_t to, int64_t updates)
{
	const sw_port *port = &p->served->ports[e->port];
	push(p, (event){.at = deliver(p, e->at, sw_port_rank(port, p->n), to, port->value_bytes),
	                .kind = VALUE_CAME,
	                .rank = to,
	                .port = e->port,
	                .updates = updates});
}

static void updated(player *p, const event *e)
{
	port_state *s = &p->ports[e->port];
	s->done++;
	for (int64_t r = 0; r < p->n; r++)
		if (e->rank < 0 || e->rank == r)
			send_value(p, e, (int32_t)r, s->done);
}

static void value_came(player *p, const event *e)
{
	int64_t at = e->rank * (int64_t)p->served->n_ports + e->port;
	if (p->served->ports[e->port].stale == SW_STALE_ANY) {
		p->version[at]++;
		p->seen[at] = e->updates;
	} else {
		p->version[at] = SW_MAX(p->version[at], e->updates);
	}
	try_begin(p, e->rank, e->at);
}

/* ---- playing ---------------------------------------------------------------------------- */

/* Of a program without collectives, or with them, which then stand in line with the kernels. */
static double program_s(const sw_cluster *cluster, const sw_program *program)
{
	sw_program_cost cost;
	sw_cost_program(cluster, program, &cost);
	return cost.step_time_s;
}

/* Terms that are made of what was sent, and their sum: terms are read, and the sum is written, at the
 * memory's pace. */
static double sum_seconds(const sw_cluster *cluster, const sw_port *port)
{
	int64_t terms = port->stale == SW_STALE_ANY ? 1 : cluster->n_devices;
	double made_s = port->terms_of ? program_s(cluster, port->terms_of) : 0;
	return made_s * (double)terms +
	       (double)port->term_bytes * (double)(terms + 1) / cluster->device.memory_bandwidth;
}

static int64_t steps_to_play(const sw_served *served)
{
	int64_t most = 0;
	for (uint32_t i = 0; i < served->n_ports; i++)
		most = SW_MAX(most, served->ports[i].stale);
	return LEAST_STEPS + 4 * most;
}

static int64_t count_servers(const sw_served *served)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < served->n_ports; i++)
		n = SW_MAX(n, served->ports[i].server + 1);
	return n;
}

static void player_init(player *p, sw_arena *arena)
{
	const sw_cluster *cluster = p->cluster;
	uint32_t n_ports = p->served->n_ports;
	p->n = p->behind = cluster->n_devices;
	p->n_servers = count_servers(p->served);
	p->goal = steps_to_play(p->served);
	p->worker_s = program_s(cluster, p->served->worker);
	p->update_s = SW_NEW_N(arena, double, n_ports + 1);
	p->digest_s = SW_NEW_N(arena, double, n_ports + 1);
	p->computing = SW_NEW_N(arena, bool, p->n);
	p->steps = SW_NEW_N(arena, int64_t, p->n);
	p->version = SW_NEW_N(arena, int64_t, p->n * n_ports + 1);
	p->seen = SW_NEW_N(arena, int64_t, p->n * n_ports + 1);
	p->middle = SW_NEW_N(arena, double, p->n);
	p->last = SW_NEW_N(arena, double, p->n);
	p->n_middle = SW_NEW_N(arena, int64_t, p->n);
	p->free_s = SW_NEW_N(arena, double, p->n + p->n_servers);
	p->sends_s = SW_NEW_N(arena, double *, cluster->n_levels);
	p->takes_s = SW_NEW_N(arena, double *, cluster->n_levels);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		int64_t links = sw_cluster_parts(cluster, l) + (l == 0 ? p->n_servers : 0);
		p->sends_s[l] = SW_NEW_N(arena, double, links);
		p->takes_s[l] = SW_NEW_N(arena, double, links);
	}
	p->ports = SW_NEW_N(arena, port_state, n_ports + 1);
	for (uint32_t i = 0; i < n_ports; i++) {
		port_state *s = &p->ports[i];
		const sw_port *port = &p->served->ports[i];
		double sum_s = sum_seconds(cluster, port);
		p->update_s[i] = program_s(cluster, port->update) + (port->digest ? 0 : sum_s);
		p->digest_s[i] = port->digest ? program_s(cluster, port->digest) + sum_s : 0;
		s->ring = SW_MAX(port->stale, 0) + 1;
		s->came = SW_NEW_N(arena, int64_t, p->n);
		s->ready = SW_NEW_N(arena, int64_t, p->n);
		s->begun = SW_NEW_N(arena, int64_t, p->n);
		s->digests = SW_NEW_N(arena, int64_t, n_ports * p->n + 1);
		s->bases = SW_NEW_N(arena, int64_t, p->n * s->ring);
	}
}

static void play_all(player *p)
{
	for (int64_t r = 0; r < p->n; r++)
		try_begin(p, (int32_t)r, 0);
	while (p->behind > 0 && p->heap.len > 0 && p->n_events < MOST_EVENTS) {
		event e = pop(p);
		if (e.kind == COMPUTED)
			computed(p, &e);
		else if (e.kind == TERMS_CAME)
			terms_came(p, &e);
		else if (e.kind == DIGEST_CAME)
			digest_came(p, &e);
		else if (e.kind == UPDATED)
			updated(p, &e);
		else
			value_came(p, &e);
	}
}

static void report(const player *p, sw_served_play *play)
{
	double rates = 0, *busy = sw_alloc(sizeof(*busy) * (size_t)(p->n + p->n_servers));
	*play = (sw_served_play){.n_ranks = p->n,
	                         .step_s = sw_alloc(sizeof(double) * (size_t)p->n),
	                         .worker_s = p->worker_s,
	                         .oldest = p->oldest,
	                         .mean_age = p->n_ages > 0 ? p->ages / p->n_ages : 0};
	for (int64_t r = 0; r < p->n; r++) {
		play->step_s[r] =
			(p->last[r] - p->middle[r]) / (double)(p->steps[r] - p->n_middle[r]);
		rates += 1 / play->step_s[r];
	}
	for (uint32_t i = 0; i < p->served->n_ports; i++) {
		double *owner = &busy[sw_port_rank(&p->served->ports[i], p->n)];
		*owner += p->update_s[i] + p->digest_s[i];
		play->update_s = fmax(play->update_s, *owner);
	}
	play->step_time_s = (double)p->n / rates;
	play->payload_bytes = sw_served_payload(p->served, p->n);
	free(busy);
}

sw_status sw_served_play_steps(const sw_cluster *cluster, const sw_served *served,
                               const double *more_s, sw_served_play *play, sw_error *err)
{
	sw_arena arena;
	player p = {.cluster = cluster, .served = served, .more_s = more_s};
	sw_status status = SW_OK;
	*play = (sw_served_play){0};
	sw_arena_init(&arena);
	player_init(&p, &arena);
	play_all(&p);
	if (p.behind == 0)
		report(&p, play);
	else
		status = sw_fail(err, SW_NO,
		                 "%lld devices and %u owners send too many messages to be "
		                 "played",
		                 (long long)p.n, served->n_ports);
	sw_vec_clear(&p.heap);
	sw_arena_clear(&arena);
	return status;
}

void sw_served_play_clear(sw_served_play *play)
{
	free(play->step_s);
	*play = (sw_served_play){0};
}
