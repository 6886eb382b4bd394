/*
 * How a rank waits, and whom it shares its processors with.
 *
 * A wait for messages can only ask again and again. While there is a core for everyone who wants
 * one, asking without a rest costs nothing and is quickest. Where ranks share cores, or kernels run
 * beside the wait (they use all cores that there are), each question is time that a kernel, or the
 * network stack that brings the answer, doesn't have. Then a wait yields for as long as it is
 * likely to be worth it, and sleeps from then on: a fraction of what it has waited, so that it ends
 * late by that fraction at most. Where there is only a kernel to yield to it never does: that would
 * hand the kernel a whole time slice, while a sleeper takes the core back when it wakes up.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "transport/worker.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* How long to yield before the first sleep, among ranks that share cores: what short messages take
 * with all of them at work, as who yields then lets the sender run. Beside kernels: what a message
 * takes that was on its way already. */
#define PATIENCE_S 200e-6
#define PATIENCE_BESIDE_KERNELS_S 10e-6
/* A sleep, as a fraction of the wait so far, and its bounds: a wake-up costs microseconds, and what
 * arrives meanwhile must fit into the buffers that the network has. */
#define SLEEP_SHARE 0.125
#define SLEEP_LEAST_S 10e-6
#define SLEEP_MOST_S 50e-6

bool sw_carrier_shares_cores(const sw_carrier *c)
{
	return c->base.neighbours > c->cores;
}

static double patience(const sw_carrier *c)
{
	bool shared = sw_carrier_shares_cores(c);
	if (!c->base.paced && sw_worker_leaves_core(c->worker))
		return shared ? PATIENCE_BESIDE_KERNELS_S : 0;
	return shared ? PATIENCE_S : INFINITY;
}

void sw_carrier_pause(const sw_carrier *c, double since_s)
{
	double waited = sw_now_s() - since_s;
	if (waited < patience(c)) {
		sched_yield();
		return;
	}
	double seconds = SW_MIN(SW_MAX(waited * SLEEP_SHARE, SLEEP_LEAST_S), SLEEP_MOST_S);
	sw_sleep_until(sw_now_s() + seconds);
}

/* ---- neighbours ------------------------------------------------------------------------- */

/* Where a rank runs: the kernel (not the name of the host: there may be several in containers), and
 * its processors there. */
typedef struct place {
	uint64_t machine;
	cpu_set_t processors;
} place;

static uint64_t name_machine(void)
{
	char name[256] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!file || !fgets(name, sizeof(name), file))
		gethostname(name, sizeof(name) - 1);
	if (file)
		fclose(file);
	return sw_hash_bytes(name, strlen(name), 0);
}

static bool meet(const place *a, const place *b)
{
	cpu_set_t both;
	CPU_AND(&both, &a->processors, &b->processors);
	return a->machine == b->machine && CPU_COUNT(&both) > 0;
}

static place own_place(void)
{
	place mine = {.machine = name_machine()};
	if (sched_getaffinity(0, sizeof(mine.processors), &mine.processors))
		memset(&mine.processors, 0xff, sizeof(mine.processors));
	return mine;
}

sw_status sw_carrier_meet_neighbours(sw_carrier *c, sw_error *err)
{
	int32_t size = c->base.size;
	place mine = own_place(), *all = sw_alloc((size_t)size * sizeof(*all));
	sw_status status =
		c->base.ops->all_gather(&c->base, c->everyone, size, &mine, all, sizeof(mine), err);
	c->cores = sw_cpu_count();
	c->base.neighbours = 0;
	for (int32_t r = 0; r < size && status == SW_OK; r++)
		c->base.neighbours += meet(&mine, &all[r]);
	c->base.traffic = (sw_traffic){0};
	free(all);
	return status;
}
