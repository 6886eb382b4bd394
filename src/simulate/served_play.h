/*
 * served_play: steady state of ranks that go on with old values (partition/served.h).
 *
 * Played event by event, as run/serve.h does it: a worker computes, hands its terms to the owners
 * and begins the next step as soon as its values are fresh enough; an owner updates one port after
 * the other beside its worker, once the digests of others have come that the update reads; a
 * message holds the links of both parts at the level where they meet, for its bytes over their
 * bandwidth, and arrives after the seconds of sw_cost_pair. What owners take of a device is not
 * taken from its worker. A worker with collectives ends its step when all others do. Servers in
 * their place (sw_served_place) are hosts of their own beside the cluster, each with a link of the
 * outermost level and a device as the cluster's.
 */
#ifndef SW_SIMULATE_SERVED_PLAY_H
#define SW_SIMULATE_SERVED_PLAY_H

#include "partition/served.h"

typedef struct sw_served_play {
	int64_t n_ranks;
	double *step_s; /* [n_ranks], owned: seconds from one step to the next, in the second half
	                 */
	/* over the mean of all ranks' steps per second: each adds its share of the batch at its own
	 * pace */
	double step_time_s;
	double worker_s; /* of a worker's step */
	double update_s; /* of all updates of the owner or server that has most */
	int64_t payload_bytes; /* per step, of the rank that sends most (sw_served_payload) */
	/* updates that values lacked when their terms were added: at most; in the mean */
	int64_t oldest;
	double mean_age;
} sw_served_play;

/* more_s: seconds that each rank takes beside its worker in a step (NULL: none). SW_NO: so many
 * ranks and ports that playing takes too long. O(messages * log(messages under way)). The
 * caller clears the result. */
sw_status sw_served_play_steps(const sw_cluster *cluster, const sw_served *served,
                               const double *more_s, sw_served_play *play, sw_error *err);
void sw_served_play_clear(sw_served_play *play);

#endif
