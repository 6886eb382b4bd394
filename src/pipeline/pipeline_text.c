/* What was played, in words and as a picture. */
#include <math.h>

#include "pipeline/internal.h"

/* Follow causes from the last action to the beginning. */
sw_pipeline_path sw_pipeline_find_path(const sw_pipeline_played *played)
{
	const sw_pipeline_schedule *s = played->schedule;
	sw_pipeline_path path = {0};
	double *of_rank = sw_alloc(sizeof(double) * (size_t)s->n_ranks);
	int32_t rank = 0, index = -1;
	for (int32_t r = 0; r < s->n_ranks; r++)
		for (size_t i = 0; i < s->lists[r].len; i++)
			if (index < 0 ||
			    played->actions[r][i].end_s > played->actions[rank][index].end_s) {
				rank = r;
				index = (int32_t)i;
			}
	while (index >= 0) {
		const sw_played_action *at = &played->actions[rank][index];
		sw_action_kind kind = s->lists[rank].data[index].kind;
		double seconds = at->end_s - at->start_s;
		if (sw_action_is_compute(kind)) {
			path.compute_s += seconds;
			of_rank[rank] += seconds;
		} else if (kind == SW_SEND_FORWARD || kind == SW_SEND_BACKWARD) {
			path.transfer_s += seconds;
			path.crossings++;
		} else {
			path.other_s += seconds;
		}
		index = at->cause;
		rank = at->cause_rank;
	}
	for (int32_t r = 0; r < s->n_ranks; r++)
		if (of_rank[r] > path.busiest_s) {
			path.busiest_s = of_rank[r];
			path.busiest = r;
		}
	free(of_rank);
	return path;
}

sw_status sw_pipeline_check_memory(const sw_pipeline_played *played, const sw_pipeline_costs *costs,
                                   sw_error *err)
{
	for (int32_t r = 0; r < played->schedule->n_ranks; r++) {
		const sw_played_rank *rank = &played->ranks[r];
		if (rank->excess_bytes <= 0)
			continue;
		sw_text text = {0};
		sw_text_addf(&text, "rank %d exceeds its memory at ", r);
		sw_action_print(rank->excess_at, &text);
		sw_text_add(&text, " by ");
		sw_text_add_bytes(&text, rank->excess_bytes);
		sw_text_add(&text, "; its limit is ");
		sw_text_add_bytes(&text, costs->limit_bytes[r]);
		sw_text_add(&text, ", and its peak ");
		sw_text_add_bytes(&text, rank->peak_bytes);
		sw_status status = sw_fail(err, SW_ERR_INPUT, "%s", text.data);
		sw_text_clear(&text);
		return status;
	}
	return SW_OK;
}

/* ---- the picture ------------------------------------------------------------------------ */

/* Of each stage on its rank: 0 for the rank's first one, 1 for its second, ... */
static int32_t *chunks_of(const sw_pipeline_schedule *s)
{
	int32_t *chunks = sw_alloc(sizeof(int32_t) * (size_t)s->n_stages),
		*next = sw_alloc(sizeof(int32_t) * (size_t)s->n_ranks);
	for (int32_t v = 0; v < s->n_stages; v++)
		chunks[v] = next[s->rank_of_stage[v]]++;
	free(next);
	return chunks;
}

static char letter_of(sw_action a, int32_t chunk)
{
	char letter = sw_action_is_compute(a.kind) ? sw_action_word(a.kind)[0]
	              : a.kind == SW_UPDATE        ? 'U'
	              : a.kind == SW_DROP_WEIGHTS || a.kind < SW_GATHER_WEIGHTS ? 0
	                                                                        : '+';
	bool later = letter >= 'A' && chunk % 2;
	return later ? (char)(letter - 'A' + 'a') : letter;
}

void sw_pipeline_draw(const sw_pipeline_played *played, int columns, sw_text *text)
{
	const sw_pipeline_schedule *s = played->schedule;
	char *row = sw_alloc((size_t)columns + 1);
	int32_t *chunks = chunks_of(s);
	double column_s = played->step_s / columns;
	for (int32_t r = 0; r < s->n_ranks && column_s > 0; r++) {
		for (int c = 0; c < columns; c++)
			row[c] = '.';
		for (size_t i = 0; i < s->lists[r].len; i++) {
			const sw_played_action *at = &played->actions[r][i];
			sw_action a = s->lists[r].data[i];
			char letter = letter_of(a, chunks[a.stage]);
			/* A column shows what runs in its middle. */
			int from = (int)ceil(at->start_s / column_s - 0.5 - 1e-9),
			    to = (int)ceil(at->end_s / column_s - 0.5 - 1e-9);
			for (int c = SW_MAX(from, 0); letter && c < SW_MIN(to, columns); c++)
				row[c] = letter;
		}
		sw_text_addf(text, "  %4d  ", r);
		sw_text_add_n(text, row, (size_t)columns);
		sw_text_add(text, "\n");
	}
	free(row);
	free(chunks);
}
