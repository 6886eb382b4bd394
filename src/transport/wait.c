/*
 * How a rank waits, and which ranks share its processors.
 *
 * A wait for messages can only poll. While every thread has a core, polling without pauses costs
 * nothing and is fastest. If ranks share cores, or kernels run beside the wait (they use all
 * cores), each poll takes time from a kernel, or from the network stack that delivers the message.
 * Then a wait yields for as long as a message is likely to arrive soon, and afterwards sleeps for a
 * fraction of the time waited so far, so that it ends late by at most that fraction. If only a
 * kernel could run meanwhile, the wait never yields: yielding would give the kernel a whole time
 * slice, while a sleeping thread gets the core back as soon as it wakes up.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "transport/worker.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* Seconds of yielding before the first sleep, for ranks that share cores. Without kernels beside
 * it, the time that short messages take while all ranks work, as yielding lets the sender run;
 * beside kernels, the time of a message that was already on its way. */
#define MAX_YIELD_S 200e-6
#define MAX_YIELD_BESIDE_KERNELS_S 10e-6
/* Length of a sleep, as a fraction of the wait so far, and its bounds in seconds: a wake-up costs
 * microseconds, and data that arrive meanwhile must fit into the network's buffers. */
#define SLEEP_FRACTION 0.125
#define MIN_SLEEP_S 10e-6
#define MAX_SLEEP_S 50e-6

bool sw_carrier_shares_cores(const sw_carrier *c)
{
	return c->base.neighbours > c->cores;
}

static double max_yield_s(const sw_carrier *c)
{
	bool shared = sw_carrier_shares_cores(c);
	if (!c->base.paced && sw_worker_leaves_core(c->worker))
		return shared ? MAX_YIELD_BESIDE_KERNELS_S : 0;
	return shared ? MAX_YIELD_S : INFINITY;
}

void sw_carrier_pause(const sw_carrier *c, double since_s)
{
	double waited = sw_now_s() - since_s;
	if (waited < max_yield_s(c)) {
		sched_yield();
		return;
	}
	double seconds = SW_MIN(SW_MAX(waited * SLEEP_FRACTION, MIN_SLEEP_S), MAX_SLEEP_S);
	sw_sleep_until(sw_now_s() + seconds);
}

/* ---- neighbours ------------------------------------------------------------------------- */

/* Where a rank runs: the machine, identified by its operating system kernel (a machine may have
 * several host names, in containers), and the processors that the rank may use. */
typedef struct rank_place {
	uint64_t machine;
	cpu_set_t processors;
} rank_place;

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

static bool share_processors(const rank_place *a, const rank_place *b)
{
	cpu_set_t both;
	CPU_AND(&both, &a->processors, &b->processors);
	return a->machine == b->machine && CPU_COUNT(&both) > 0;
}

static rank_place find_place(void)
{
	rank_place mine = {.machine = name_machine()};
	if (sched_getaffinity(0, sizeof(mine.processors), &mine.processors))
		memset(&mine.processors, 0xff, sizeof(mine.processors));
	return mine;
}

sw_status sw_carrier_find_neighbours(sw_carrier *c, sw_error *err)
{
	int32_t size = c->base.size;
	rank_place mine = find_place(), *all = sw_alloc((size_t)size * sizeof(*all));
	sw_status status =
		c->base.ops->all_gather(&c->base, c->everyone, size, &mine, all, sizeof(mine), err);
	c->cores = sw_cpu_count();
	c->base.neighbours = 0;
	for (int32_t r = 0; r < size && status == SW_OK; r++)
		c->base.neighbours += share_processors(&mine, &all[r]);
	c->base.traffic = (sw_traffic){0};
	free(all);
	return status;
}
