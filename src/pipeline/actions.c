/* Actions and schedules as objects. */
#include "pipeline/pipeline.h"

#include <string.h>

static const char *const words[SW_ACTION_KINDS] = {
	[SW_FORWARD] = "F",
	[SW_BACKWARD] = "B",
	[SW_INPUT_GRADIENT] = "I",
	[SW_WEIGHT_GRADIENT] = "W",
	[SW_SEND_FORWARD] = "SEND_F",
	[SW_RECEIVE_FORWARD] = "RECV_F",
	[SW_SEND_BACKWARD] = "SEND_B",
	[SW_RECEIVE_BACKWARD] = "RECV_B",
	[SW_GATHER_WEIGHTS] = "UNSHARD",
	[SW_DROP_WEIGHTS] = "RESHARD",
	[SW_REDUCE_GRADIENT] = "REDUCE_GRAD",
	[SW_UPDATE] = "UPDATE",
};

const char *sw_action_word(sw_action_kind kind)
{
	return words[kind];
}

bool sw_action_is_compute(sw_action_kind kind)
{
	return kind <= SW_WEIGHT_GRADIENT;
}

void sw_action_print(sw_action action, sw_text *text)
{
	sw_text_addf(text, "%d%s", action.stage, words[action.kind]);
	if (action.microbatch >= 0)
		sw_text_addf(text, "%d", action.microbatch);
}

/* ---- schedules -------------------------------------------------------------------------- */

sw_pipeline_schedule *sw_pipeline_new(int32_t n_ranks, int32_t n_stages, int32_t n_microbatches,
                                      int32_t n_chains)
{
	sw_pipeline_schedule *s = sw_alloc(sizeof(*s));
	s->n_ranks = n_ranks;
	s->n_stages = n_stages;
	s->n_microbatches = n_microbatches;
	s->n_chains = n_chains;
	s->rank_of_stage = sw_alloc(sizeof(int32_t) * (size_t)SW_MAX(n_stages, 1));
	s->lists = sw_alloc(sizeof(sw_action_list) * (size_t)SW_MAX(n_ranks, 1));
	return s;
}

static sw_pipeline_schedule *copy_empty(const sw_pipeline_schedule *from)
{
	sw_pipeline_schedule *s = sw_pipeline_new(from->n_ranks, from->n_stages,
	                                          from->n_microbatches, from->n_chains);
	memcpy(s->rank_of_stage, from->rank_of_stage, sizeof(int32_t) * (size_t)from->n_stages);
	return s;
}

sw_pipeline_schedule *sw_pipeline_copy(const sw_pipeline_schedule *schedule)
{
	sw_pipeline_schedule *s = copy_empty(schedule);
	for (int32_t r = 0; r < s->n_ranks; r++)
		for (size_t i = 0; i < schedule->lists[r].len; i++)
			sw_vec_push(&s->lists[r], schedule->lists[r].data[i]);
	return s;
}

void sw_pipeline_free(sw_pipeline_schedule *schedule)
{
	if (!schedule)
		return;
	for (int32_t r = 0; r < schedule->n_ranks; r++)
		sw_vec_clear(&schedule->lists[r]);
	free(schedule->lists);
	free(schedule->rank_of_stage);
	free(schedule);
}

int64_t sw_pipeline_length(const sw_pipeline_schedule *schedule)
{
	int64_t length = 0;
	for (int32_t r = 0; r < schedule->n_ranks; r++)
		length += (int64_t)schedule->lists[r].len;
	return length;
}

static int32_t chain_length(const sw_pipeline_schedule *s)
{
	return s->n_stages / s->n_chains;
}

bool sw_stage_is_first(const sw_pipeline_schedule *schedule, int32_t stage)
{
	return stage % chain_length(schedule) == 0;
}

bool sw_stage_is_last(const sw_pipeline_schedule *schedule, int32_t stage)
{
	return (stage + 1) % chain_length(schedule) == 0;
}

bool sw_stage_takes(const sw_pipeline_schedule *schedule, int32_t stage, int32_t microbatch)
{
	return stage / chain_length(schedule) == microbatch % schedule->n_chains;
}

/* ---- transfers -------------------------------------------------------------------------- */

/* Is there an action of the kinds from `first` to `last`? */
static bool has_any(const sw_pipeline_schedule *schedule, sw_action_kind first, sw_action_kind last)
{
	for (int32_t r = 0; r < schedule->n_ranks; r++)
		for (size_t i = 0; i < schedule->lists[r].len; i++) {
			sw_action_kind kind = schedule->lists[r].data[i].kind;
			if (kind >= first && kind <= last)
				return true;
		}
	return false;
}

bool sw_pipeline_has(const sw_pipeline_schedule *schedule, sw_action_kind kind)
{
	return has_any(schedule, kind, kind);
}

bool sw_pipeline_has_transfers(const sw_pipeline_schedule *schedule)
{
	return has_any(schedule, SW_SEND_FORWARD, SW_RECEIVE_BACKWARD);
}

/* Does what the stage hands on, or back, leave its rank? */
static bool crosses(const sw_pipeline_schedule *s, int32_t stage, bool forward)
{
	if (forward ? sw_stage_is_last(s, stage) : sw_stage_is_first(s, stage))
		return false;
	return s->rank_of_stage[stage] != s->rank_of_stage[forward ? stage + 1 : stage - 1];
}

static void push_with_transfers(const sw_pipeline_schedule *s, sw_action a, sw_action_list *list)
{
	bool forward = a.kind == SW_FORWARD,
	     backward = a.kind == SW_BACKWARD || a.kind == SW_INPUT_GRADIENT;
	int32_t v = a.stage;
	if (forward && !sw_stage_is_first(s, v) && crosses(s, v - 1, true))
		sw_vec_push(list, ((sw_action){SW_RECEIVE_FORWARD, v, a.microbatch}));
	if (backward && !sw_stage_is_last(s, v) && crosses(s, v + 1, false))
		sw_vec_push(list, ((sw_action){SW_RECEIVE_BACKWARD, v, a.microbatch}));
	sw_vec_push(list, a);
	if (forward && crosses(s, v, true))
		sw_vec_push(list, ((sw_action){SW_SEND_FORWARD, v, a.microbatch}));
	if (backward && crosses(s, v, false))
		sw_vec_push(list, ((sw_action){SW_SEND_BACKWARD, v, a.microbatch}));
}

sw_pipeline_schedule *sw_pipeline_with_transfers(const sw_pipeline_schedule *schedule)
{
	if (sw_pipeline_has_transfers(schedule))
		return sw_pipeline_copy(schedule);
	sw_pipeline_schedule *s = copy_empty(schedule);
	for (int32_t r = 0; r < s->n_ranks; r++)
		for (size_t i = 0; i < schedule->lists[r].len; i++)
			push_with_transfers(s, schedule->lists[r].data[i], &s->lists[r]);
	return s;
}

sw_pipeline_schedule *sw_pipeline_without_transfers(const sw_pipeline_schedule *schedule)
{
	sw_pipeline_schedule *s = copy_empty(schedule);
	for (int32_t r = 0; r < s->n_ranks; r++)
		for (size_t i = 0; i < schedule->lists[r].len; i++) {
			sw_action a = schedule->lists[r].data[i];
			if (a.kind < SW_SEND_FORWARD || a.kind > SW_RECEIVE_BACKWARD)
				sw_vec_push(&s->lists[r], a);
		}
	return s;
}
