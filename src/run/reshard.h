/*
 * reshard: carries out a plan of src/crossmesh on ranks, which are the cluster's devices.
 *
 * Each rank makes its part of the tensor from counters (seed, number of the element, term), packs
 * the slices that it sends, does its messages in the order of the plan, unpacks, and checks every
 * element of its part of the target.
 *
 * The order on links is kept by tokens: the device that receives last on a link tells the head of
 * the next phase there, a message before it is through, so that the link does not rest.
 */
#ifndef SW_RUN_RESHARD_H
#define SW_RUN_RESHARD_H

#include "crossmesh/crossmesh.h"
#include "transport/transport.h"

/* Bytes of a message, at most: at 200 Mb/s one takes 2.6 ms, which is more than a token takes. */
#define SW_RESHARD_MESSAGE_BYTES 65536

typedef struct sw_reshard_options {
	int64_t repeat; /* transfers that are timed, at least 1 */
	uint64_t seed;  /* of the data */
} sw_reshard_options;

typedef struct sw_reshard_result {
	double seconds; /* median of what the slowest rank took */
	double least_s, most_s;
	int64_t wire_bytes; /* of all ranks, in one transfer, tokens included */
	int64_t checked;    /* elements, of all ranks */
} sw_reshard_result;

/* Collective over the transport's ranks; every rank has the same plan. SW_NO: an element is not
 * what it should be; SW_ERR_INPUT: not as many ranks as the cluster has devices, or terms that
 * can't be combined in this type. */
sw_status sw_run_reshard(const sw_cluster *cluster, const sw_crossmesh_plan *plan,
                         sw_transport *transport, const sw_reshard_options *options,
                         sw_reshard_result *result, sw_error *err);
/* The same on in-process ranks (threads), one per device of the cluster. */
sw_status sw_run_reshard_local(const sw_cluster *cluster, const sw_crossmesh_plan *plan,
                               const sw_reshard_options *options, sw_reshard_result *result,
                               sw_error *err);

#endif
