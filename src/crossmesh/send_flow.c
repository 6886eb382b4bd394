/* The least seconds in which some hosts can send what they must (transfer_bound.h). */
#include "crossmesh/transfer_bound.h"

#include <math.h>
#include <string.h>

#define MAX_ROUNDS 64
#define ROUNDING 1e-12

/* A flow from demands to hosts: flow[d][i] bytes of demand d go through its i-th host. Nodes are
 * numbered demands first, then hosts. */
typedef struct send_flow {
	const send_demand *demands;
	const double *rates;
	int32_t n, n_hosts;
	double seconds;  /* hosts can send rates * seconds */
	double *sent;    /* [demands] */
	double *carried; /* [hosts] */
	double **flow;
	int32_t *before; /* [nodes]: the node before it on the path; -1: not reached, -2: a start */
	int32_t *queue;
} send_flow;

static double room(const send_flow *f, int32_t host)
{
	return f->rates[host] * f->seconds - f->carried[host];
}

static int32_t index_in(const send_demand *d, int32_t host)
{
	int32_t i = 0;
	while (i < d->n && d->hosts[i] != host)
		i++;
	return i < d->n ? i : -1;
}

static void reach(send_flow *f, int32_t node, int32_t from, int32_t *tail)
{
	if (f->before[node] != -1)
		return;
	f->before[node] = from;
	f->queue[(*tail)++] = node;
}

static void reach_hosts(send_flow *f, int32_t demand, int32_t *tail)
{
	for (int32_t i = 0; i < f->demands[demand].n; i++)
		reach(f, f->n + f->demands[demand].hosts[i], demand, tail);
}

/* From a host back to the demands that it carries something of. */
static void reach_demands(send_flow *f, int32_t host, int32_t *tail)
{
	for (int32_t d = 0; d < f->n; d++) {
		int32_t i = index_in(&f->demands[d], host);
		if (i >= 0 && f->flow[d][i] > ROUNDING * f->demands[d].bytes)
			reach(f, d, f->n + host, tail);
	}
}

/* Search from the demands that are not sent whole. Return a host with room, -1 if none is
 * reached. */
static int32_t find_path(send_flow *f)
{
	int32_t head = 0, tail = 0;
	for (int32_t v = 0; v < f->n + f->n_hosts; v++)
		f->before[v] = -1;
	for (int32_t d = 0; d < f->n; d++)
		if (f->sent[d] < f->demands[d].bytes * (1 - ROUNDING))
			reach(f, d, -2, &tail);
	while (head < tail) {
		int32_t node = f->queue[head++];
		if (node < f->n)
			reach_hosts(f, node, &tail);
		else if (room(f, node - f->n) > ROUNDING * f->rates[node - f->n] * f->seconds)
			return node - f->n;
		else
			reach_demands(f, node - f->n, &tail);
	}
	return -1;
}

/* Return what fits along the path to the host. */
static double width_of(const send_flow *f, int32_t host)
{
	double width = room(f, host);
	for (int32_t node = f->n + host; f->before[node] >= 0; node = f->before[node]) {
		int32_t from = f->before[node];
		if (from >=
		    f->n) /* the demand `node` takes back what goes through the host `from` */
			width = fmin(width,
			             f->flow[node][index_in(&f->demands[node], from - f->n)]);
		else if (f->before[from] == -2)
			width = fmin(width, f->demands[from].bytes - f->sent[from]);
	}
	return width;
}

static void push(send_flow *f, int32_t host, double width)
{
	int32_t node = f->n + host;
	f->carried[host] += width;
	for (; f->before[node] >= 0; node = f->before[node]) {
		int32_t from = f->before[node];
		bool back = from >= f->n;
		int32_t demand = back ? node : from, at = back ? from - f->n : node - f->n;
		f->flow[demand][index_in(&f->demands[demand], at)] += back ? -width : width;
	}
	f->sent[node] += width;
}

/* Return true if everything can be sent; else in_set is the set of hosts that are too slow. */
static bool saturates(send_flow *f, bool *in_set)
{
	memset(f->sent, 0, (size_t)f->n * sizeof(*f->sent));
	memset(f->carried, 0, (size_t)f->n_hosts * sizeof(*f->carried));
	for (int32_t d = 0; d < f->n; d++)
		memset(f->flow[d], 0, (size_t)f->demands[d].n * sizeof(**f->flow));
	for (int32_t host; (host = find_path(f)) >= 0;)
		push(f, host, width_of(f, host));
	bool all = true;
	for (int32_t d = 0; d < f->n; d++)
		all = all && f->sent[d] >= f->demands[d].bytes * (1 - 1e-9);
	for (int32_t h = 0; h < f->n_hosts && !all; h++)
		in_set[h] = f->before[f->n + h] != -1;
	return all;
}

/* Return the seconds that the hosts of a set need for what only they can send. */
static double seconds_of(const send_flow *f, const bool *in_set, double *bytes)
{
	double rate = 0;
	*bytes = 0;
	for (int32_t h = 0; h < f->n_hosts; h++)
		rate += in_set[h] ? f->rates[h] : 0;
	for (int32_t d = 0; d < f->n; d++) {
		bool inside = true;
		for (int32_t i = 0; i < f->demands[d].n; i++)
			inside = inside && in_set[f->demands[d].hosts[i]];
		*bytes += inside ? f->demands[d].bytes : 0;
	}
	return rate > 0 ? *bytes / rate : 0;
}

static void flow_init(send_flow *f, double **flow)
{
	f->sent = sw_alloc((size_t)f->n * sizeof(*f->sent));
	f->carried = sw_alloc((size_t)f->n_hosts * sizeof(*f->carried));
	f->before = sw_alloc((size_t)(f->n + f->n_hosts) * sizeof(*f->before));
	f->queue = sw_alloc((size_t)(f->n + f->n_hosts) * sizeof(*f->queue));
	f->flow = flow;
	for (int32_t d = 0; d < f->n; d++)
		flow[d] = sw_alloc((size_t)SW_MAX(f->demands[d].n, 1) * sizeof(**flow));
}

static void flow_clear(send_flow *f)
{
	for (int32_t d = 0; d < f->n; d++)
		free(f->flow[d]);
	free(f->sent);
	free(f->carried);
	free(f->before);
	free(f->queue);
}

double send_least_s(const send_demand *demands, int32_t n, const double *rates, int32_t n_hosts,
                    bool *in_set, double *bytes)
{
	send_flow f = {.demands = demands, .rates = rates, .n = n, .n_hosts = n_hosts};
	*bytes = 0;
	if (n == 0)
		return 0;
	double **flow = sw_alloc((size_t)n * sizeof(*flow)), next;
	bool *set = sw_alloc((size_t)n_hosts * sizeof(*set));
	flow_init(&f, flow);
	for (int32_t h = 0; h < n_hosts; h++)
		set[h] = true;
	for (int32_t round = 0; round < MAX_ROUNDS; round++) {
		double of_set;
		next = seconds_of(&f, set, &of_set);
		if (next <= f.seconds)
			break;
		f.seconds = next;
		*bytes = of_set;
		memcpy(in_set, set, (size_t)n_hosts * sizeof(*set));
		if (saturates(&f, set))
			break;
	}
	flow_clear(&f);
	free(set);
	free(flow);
	return f.seconds;
}
