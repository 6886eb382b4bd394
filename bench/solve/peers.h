/* The peers: solvers outside this program (solve/methods/external_solver.h). Private to
 * bench/solve. */
#ifndef BENCH_SOLVE_PEERS_H
#define BENCH_SOLVE_PEERS_H

#include "bench.h"
#include "solve/methods/external_solver.h"

extern const peer peer_toulbar2;

#endif
