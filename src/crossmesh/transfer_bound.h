/* transfer_bound: the flow problem of the lower bound. Private to src/crossmesh. */
#ifndef SW_CROSSMESH_TRANSFER_BOUND_H
#define SW_CROSSMESH_TRANSFER_BOUND_H

#include "base/base.h"

/* Bytes that some hosts must send together: any of those that are listed, in any division. */
typedef struct send_demand {
	double bytes;
	int32_t n;
	const int32_t *hosts;
} send_demand;

/*
 * Return the least seconds in which hosts with these rates (bytes/s) can send all demands, divided
 * at will; exact: by duality the maximum, over sets H of hosts, of the bytes that only H can send
 * over the rates of H. in_set[h]: whether h is in such a set; *bytes: what only it can send.
 * Newton's method on maximum flows (Dinkelbach 1967): each set that a flow can't satisfy is the
 * next guess. O(rounds * demands * (demands + hosts)^2), few rounds.
 */
double send_least_s(const send_demand *demands, int32_t n, const double *rates, int32_t n_hosts,
                    bool *in_set, double *bytes);

#endif
