/*
 * run_stages: execute a plan with pipeline stages (src/pipelined) on ranks, one per device of the
 * cluster: each runs the passes of its stage in the order of the schedule, and sends what other
 * stages read.
 */
#ifndef SW_RUN_STAGES_H
#define SW_RUN_STAGES_H

#include "pipelined/pipelined.h"
#include "run/eval.h"
#include "run/run.h"

/* What a plan with stages trains, for --eval. */
sw_run_trained sw_run_trained_by_stages(const sw_pipelined *plan, const sw_sidecar *sidecar);

/* Run the serial program and the stages, on in-process ranks, on random inputs; compare each
 * device's part of each output. Bytes are counted, and there is no prediction of them. */
sw_status sw_run_verify_stages(const sw_pipelined *plan, const sw_sidecar *sidecar, uint64_t seed,
                               sw_verify_result *result, sw_error *err);

/* Train; collective over the transport's ranks, as sw_run_train is. SW_ERR_INPUT for what plans with
 * stages can't do: traces. A checkpoint has the file of each rank, with the
 * parts of the values that its stage makes, and is read under any plan. */
sw_status sw_run_train_stages(const sw_pipelined *plan, const sw_sidecar *sidecar,
                              const sw_data *data, sw_transport *transport,
                              const sw_run_options *options, sw_run_result *result, sw_error *err);
/* The same on in-process ranks. */
sw_status sw_run_train_stages_local(const sw_pipelined *plan, const sw_sidecar *sidecar,
                                    const sw_data *data, const sw_run_options *options,
                                    sw_run_result *result, sw_error *err);

/* Write an opened checkpoint into `folder` as the plan's ranks would, one rank after the other. */
sw_status sw_checkpoint_recut_stages(const sw_checkpoint *checkpoint, const sw_pipelined *plan,
                                     const sw_sidecar *sidecar, const char *folder, sw_error *err);

#endif
