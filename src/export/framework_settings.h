/*
 * framework_settings: the settings of each framework for given degrees of parallelism. Private to
 * this folder.
 */
#ifndef SW_EXPORT_FRAMEWORK_SETTINGS_H
#define SW_EXPORT_FRAMEWORK_SETTINGS_H

#include "export/export.h"

/* Degrees count devices, and are 1 where there is no such axis. `replicate`: data parallelism with
 * all state whole; `optimizer`: with the optimizer's state split; `shard`: with parameters split,
 * too; `context`: the sequence of all activations split. */
typedef struct sw_framework_plan {
	int64_t replicate, optimizer, shard, tensor, context, expert;
	int64_t devices, node_devices; /* node_devices: of the innermost level of the cluster */
	int64_t batch;                 /* samples in a step; 0: not known */
	int64_t microbatches;
	bool sequence;       /* activations between blocks are split over `tensor` */
	bool full_recompute; /* whole layers are computed again */
	bool reshard;        /* gathered weights are gathered again for the backward pass */
	json_t *lost;        /* what none of the frameworks says, in words */
} sw_framework_plan;

json_t *sw_framework_degrees(const sw_framework_plan *f);
/* Each returns {"settings": {...}, "lost": [...]}: the settings that differ from the framework's
 * defaults or name a degree, and what of the plan they don't say. */
json_t *sw_settings_megatron(const sw_framework_plan *f);
json_t *sw_settings_nemo(const sw_framework_plan *f);
json_t *sw_settings_maxtext(const sw_framework_plan *f);
json_t *sw_settings_torchtitan(const sw_framework_plan *f);

#endif
