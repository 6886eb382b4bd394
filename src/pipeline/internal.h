/* internal: what the files of pipeline share. */
#ifndef SW_PIPELINE_INTERNAL_H
#define SW_PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"

/* Fill the lists of a V-shaped schedule by a building block (blocks.c): `pace` is the seconds, in
 * passes, that a microbatch takes per stage there and back, which is its memory in sixths. */
void sw_block_schedule(int32_t pace, sw_pipeline_schedule *schedule);

/* Where an action of a stage and a microbatch stands in tables of all of them. */
static inline size_t sw_action_key(const sw_pipeline_schedule *s, sw_action_kind kind,
                                   int32_t stage, int32_t microbatch)
{
	return ((size_t)kind * (size_t)s->n_stages + (size_t)stage) * (size_t)s->n_microbatches +
	       (size_t)microbatch;
}

/* What an action needs: `which` 0 and 1; kind SW_ACTION_KINDS: nothing (more). An input gradient
 * stands for a backward as well. */
sw_action sw_action_needs(const sw_pipeline_schedule *s, sw_action a, int which);

/* sw_pipeline_play of a schedule that was checked, without the critical path. */
sw_status sw_pipeline_play_checked(const sw_pipeline_schedule *schedule,
                                   const sw_pipeline_costs *costs, sw_pipeline_played *played,
                                   sw_error *err);
sw_pipeline_path sw_pipeline_find_path(const sw_pipeline_played *played);

#endif
