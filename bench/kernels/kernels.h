/*
 * bench/kernels: what its parts share. `own` is this executor's step of a program, `peer` XLA's, in
 * a Python process that runs the same program through JAX.
 */
#ifndef SW_BENCH_KERNELS_H
#define SW_BENCH_KERNELS_H

#include "frontend/frontend.h"
#include "fuse/fuse.h"
#include "interpret/interpret.h"

typedef struct own own;
/* Read FOLDER/NAME.hlo.gz with its sidecar, and fill the inputs. threads: of a step. */
sw_status own_open(const char *folder, const char *name, sw_fusion fusion, int threads, own **o,
                   sw_error *err);
void own_close(own *o);
/* Run one step, which starts from the state that the last one left, and set its seconds; cpu: those
 * of all its threads on processors. */
sw_status own_step(own *o, bool cpu, double *seconds, sw_error *err);
int64_t own_arena_bytes(const own *o);
/* Print which fusions run op by op, and why. */
void own_list_frames(const own *o);
/* Append the opcodes, or fused kernels, that take most of a step. */
sw_status own_describe(own *o, sw_text *text, sw_error *err);

typedef struct peer peer;
/* Start `python peer.py NAME`, and wait until the program is compiled. */
sw_status peer_open(const char *python, const char *name, peer **p, sw_error *err);
void peer_close(peer *p);
sw_status peer_step(peer *p, bool cpu, double *seconds, sw_error *err);
/* The bytes of XLA's memory_analysis(): arguments, outputs and temporaries, aliased ones once. */
int64_t peer_bytes(const peer *p);

#endif
