/* Is a schedule complete and consistent? Whether it deadlocks, the player finds. */
#include <string.h>

#include "pipeline/internal.h"

/* What was seen: the rank's position + 1 of each action of a microbatch. */
typedef struct seen_actions {
	const sw_pipeline_schedule *s;
	uint32_t *at; /* [kinds up to SW_RECEIVE_BACKWARD + 1, stages, microbatches] */
	bool *updated; /* [stages] */
} seen_actions;

static uint32_t seen(const seen_actions *x, sw_action_kind kind, int32_t stage, int32_t microbatch)
{
	return x->at[sw_action_key(x->s, kind, stage, microbatch)];
}

static sw_status fail_at_action(sw_action a, const char *what, sw_error *err)
{
	sw_text text = {0};
	sw_action_print(a, &text);
	sw_status status = sw_fail(err, SW_ERR_INPUT, "%s: %s", text.data, what);
	sw_text_clear(&text);
	return status;
}

static sw_status note_action(seen_actions *x, int32_t rank, uint32_t position, sw_action a,
                             sw_error *err)
{
	const sw_pipeline_schedule *s = x->s;
	if (a.stage < 0 || a.stage >= s->n_stages)
		return fail_at_action(a, "there is no such stage", err);
	if (s->rank_of_stage[a.stage] != rank)
		return fail_at_action(a, "another rank has this stage too", err);
	if ((a.kind == SW_SEND_FORWARD || a.kind == SW_RECEIVE_BACKWARD) && sw_stage_is_last(s, a.stage))
		return fail_at_action(a, "no stage follows this one", err);
	if ((a.kind == SW_SEND_BACKWARD || a.kind == SW_RECEIVE_FORWARD) && sw_stage_is_first(s, a.stage))
		return fail_at_action(a, "no stage is before this one", err);
	x->updated[a.stage] |= a.kind == SW_UPDATE;
	if (a.kind > SW_RECEIVE_BACKWARD)
		return SW_OK;
	if (x->updated[a.stage])
		return fail_at_action(a, "stands behind the update of its stage", err);
	if (a.microbatch < 0 || a.microbatch >= s->n_microbatches)
		return fail_at_action(a, "expected a microbatch", err);
	uint32_t *at = &x->at[sw_action_key(s, a.kind, a.stage, a.microbatch)];
	if (*at)
		return fail_at_action(a, "stands twice in its row", err);
	*at = position + 1;
	return SW_OK;
}

static sw_status check_passes(const seen_actions *x, int32_t stage, int32_t j, sw_error *err)
{
	uint32_t f = seen(x, SW_FORWARD, stage, j), b = seen(x, SW_BACKWARD, stage, j),
		 i = seen(x, SW_INPUT_GRADIENT, stage, j),
		 w = seen(x, SW_WEIGHT_GRADIENT, stage, j);
	if (!f)
		return fail_at_action((sw_action){SW_FORWARD, stage, j}, "is missing", err);
	if (b && (i || w))
		return fail_at_action((sw_action){SW_BACKWARD, stage, j},
		                      "has an input or weight gradient besides; expected B, or I "
		                      "and W",
		                      err);
	if (!b && !(i && w))
		return fail_at_action((sw_action){SW_BACKWARD, stage, j},
		                      "is missing; expected B, or I and W", err);
	if (i && i > w)
		return fail_at_action((sw_action){SW_WEIGHT_GRADIENT, stage, j},
		                      "stands before its input gradient", err);
	return SW_OK;
}

static bool hands_on(const sw_pipeline_schedule *s, int32_t from, int32_t to)
{
	return s->rank_of_stage[from] != s->rank_of_stage[to];
}

/* Of what goes from stage `from` to stage `to`: both halves are there, or neither is needed. */
static sw_status check_transfer(const seen_actions *x, int32_t from, int32_t to, int32_t j,
                                sw_error *err)
{
	sw_action_kind send = to > from ? SW_SEND_FORWARD : SW_SEND_BACKWARD,
		       receive = to > from ? SW_RECEIVE_FORWARD : SW_RECEIVE_BACKWARD;
	bool needed = hands_on(x->s, from, to);
	bool sent = seen(x, send, from, j), received = seen(x, receive, to, j);
	if (needed && !sent)
		return fail_at_action((sw_action){send, from, j}, "is missing", err);
	if (needed && !received)
		return fail_at_action((sw_action){receive, to, j}, "is missing", err);
	if (!needed && (sent || received))
		return fail_at_action((sw_action){sent ? send : receive, sent ? from : to, j},
		                      "both stages are on one rank, where nothing is sent", err);
	return SW_OK;
}

static sw_status check_stage(const seen_actions *x, int32_t stage, int32_t j, bool transfers,
                             sw_error *err)
{
	const sw_pipeline_schedule *s = x->s;
	if (!sw_stage_takes(s, stage, j)) {
		for (int kind = 0; kind <= SW_RECEIVE_BACKWARD; kind++)
			if (seen(x, (sw_action_kind)kind, stage, j))
				return fail_at_action((sw_action){(sw_action_kind)kind, stage, j},
				                      "the microbatch belongs to the other chain",
				                      err);
		return SW_OK;
	}
	sw_status status = check_passes(x, stage, j, err);
	if (status == SW_OK && transfers && !sw_stage_is_last(s, stage)) {
		status = check_transfer(x, stage, stage + 1, j, err);
		if (status == SW_OK)
			status = check_transfer(x, stage + 1, stage, j, err);
	}
	return status;
}

sw_status sw_pipeline_check(const sw_pipeline_schedule *schedule, sw_error *err)
{
	const sw_pipeline_schedule *s = schedule;
	seen_actions x = {.s = s};
	bool transfers = sw_pipeline_has_transfers(s);
	size_t cells = sw_action_key(s, SW_RECEIVE_BACKWARD + 1, 0, 0);
	sw_status status = SW_OK;
	x.at = sw_alloc(cells * sizeof(uint32_t));
	x.updated = sw_alloc((size_t)s->n_stages + 1);
	for (int32_t r = 0; r < s->n_ranks && status == SW_OK; r++)
		for (size_t i = 0; i < s->lists[r].len && status == SW_OK; i++)
			status = note_action(&x, r, (uint32_t)i, s->lists[r].data[i], err);
	for (int32_t v = 0; v < s->n_stages && status == SW_OK; v++)
		for (int32_t j = 0; j < s->n_microbatches && status == SW_OK; j++)
			status = check_stage(&x, v, j, transfers, err);
	free(x.updated);
	free(x.at);
	return status;
}
