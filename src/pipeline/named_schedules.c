/* The named schedules, each as the phases of a rank: a pattern, and how often it is repeated.
 *
 * Letters: F forward, B backward, I input gradient, W weight gradient, of the next microbatch that
 * has not had it, of the rank's first virtual stage; f, b, i, w of its second one. A looped
 * placement has capitals only, which go through the rank's chunks in rounds of microbatches. What
 * is left when the phases are over follows by itself, and a letter whose microbatches are used up,
 * or do not have what precedes it yet, is skipped: so the phases hold for few microbatches as well.
 */
#include <string.h>

#include "pipeline/internal.h"
#include "pipeline/limits.h"

typedef struct phase_writer {
	sw_pipeline_schedule *schedule;
	int32_t rank, p, m, chunks;
	/* Of capitals and of small letters: forward, input gradient and weight gradient so far. A
	 * backward counts as both gradients. */
	int32_t done[2][3];
	int32_t total[2]; /* microbatches, times chunks where capitals go through chunks */
	int32_t stage[2]; /* of one chunk each; unused where looped */
} phase_writer;

/* Looped placements take microbatches in rounds, of at least as many as there are ranks where there
 * are so many; the first rounds are larger by one where they do not divide. */
static int32_t rounds_of(const phase_writer *w)
{
	return SW_MAX(w->m / w->p, 1);
}

static int32_t round_begins(const phase_writer *w, int32_t round)
{
	int32_t rounds = rounds_of(w);
	return round * (w->m / rounds) + SW_MIN(round, w->m % rounds);
}

/* The k-th forward, or backward, of a rank whose chunks are taken in turn, each for a round. */
static sw_action looped_action(const phase_writer *w, sw_action_kind kind, int32_t k)
{
	int32_t round = SW_MIN(k / w->chunks / SW_MAX(w->m / rounds_of(w), 1), rounds_of(w) - 1);
	while (round_begins(w, round) * w->chunks > k)
		round--;
	int32_t first = round_begins(w, round), size = round_begins(w, round + 1) - first,
		within = k - first * w->chunks, chunk = within / size;
	if (kind != SW_FORWARD)
		chunk = w->chunks - 1 - chunk;
	return (sw_action){kind, chunk * w->p + w->rank, first + within % size};
}

static sw_action action_of(const phase_writer *w, int side, sw_action_kind kind, int32_t k)
{
	const sw_pipeline_schedule *s = w->schedule;
	if (w->chunks > 1)
		return looped_action(w, kind, k);
	int32_t stage = w->stage[side], chain = stage / (s->n_stages / s->n_chains);
	return (sw_action){kind, stage, k * s->n_chains + (s->n_chains > 1 ? chain : 0)};
}

static void put(phase_writer *w, char letter)
{
	static const struct {
		char letter;
		sw_action_kind kind;
		int counter, follows; /* follows: the counter that must be ahead; -1: the total */
	} rows[] = {{'F', SW_FORWARD, 0, -1},
	            {'B', SW_BACKWARD, 1, 0},
	            {'I', SW_INPUT_GRADIENT, 1, 0},
	            {'W', SW_WEIGHT_GRADIENT, 2, 1}};
	int side = letter >= 'a';
	size_t row = 0;
	while (rows[row].letter != (side ? letter - 'a' + 'A' : letter))
		row++;
	int32_t *done = w->done[side], k = done[rows[row].counter];
	if (k >= (rows[row].follows < 0 ? w->total[side] : done[rows[row].follows]))
		return;
	/* A full backward leaves no weight gradient open, so none may be open before it. */
	bool full = rows[row].kind == SW_BACKWARD;
	if (full && done[2] < done[1])
		put(w, side ? 'w' : 'W');
	done[rows[row].counter]++;
	if (full)
		done[2]++;
	sw_vec_push(&w->schedule->lists[w->rank], action_of(w, side, rows[row].kind, k));
}

static void repeat(phase_writer *w, const char *pattern, int32_t times)
{
	for (int32_t i = 0; i < times; i++)
		for (const char *c = pattern; *c; c++)
			put(w, *c);
}

/* ---- the schedules: what a rank does ----------------------------------------------------- */

static void gpipe(phase_writer *w)
{
	repeat(w, "F", w->m);
	repeat(w, "B", w->m);
}

static void warm_up_then_pairs(phase_writer *w, int32_t warm_up)
{
	repeat(w, "F", SW_MIN(warm_up, w->total[0]));
	repeat(w, "FB", w->total[0]);
}

static void one_f_one_b(phase_writer *w)
{
	warm_up_then_pairs(w, w->p - 1 - w->rank);
}

static void eager(phase_writer *w)
{
	warm_up_then_pairs(w, 2 * (w->p - 1 - w->rank));
}

/* Megatron: two forwards per rank behind this one, and all chunks but one of a group. */
static void interleaved(phase_writer *w)
{
	warm_up_then_pairs(w, 2 * (w->p - 1 - w->rank) + (w->chunks - 1) * round_begins(w, 1));
}

/* `ahead` forwards per rank behind this one before the first backward. A rank leaves as many weight
 * gradients open as the ranks before it have more forwards, so that all hold equally much. */
static void zero_bubble(phase_writer *w, int32_t ahead)
{
	int32_t warm_up = ahead * (w->p - 1 - w->rank), open = ahead * w->rank;
	repeat(w, "F", warm_up);
	repeat(w, "FI", SW_MIN(open, SW_MAX(w->m - warm_up, 0)));
	repeat(w, "FIW", SW_MAX(w->m - warm_up - open, 0));
	repeat(w, "IW", SW_MIN(warm_up, w->m));
	repeat(w, "W", open);
}

static void zb_h1(phase_writer *w)
{
	zero_bubble(w, 1);
}

static void zb_2p(phase_writer *w)
{
	zero_bubble(w, 2);
}

static void zb_v(phase_writer *w)
{
	int32_t behind = w->p - w->rank;
	repeat(w, "F", 2 * behind - 1);
	repeat(w, "fF", w->rank);
	repeat(w, "fiw", behind);
	while (w->done[1][0] < w->m)
		repeat(w, "FIWfiw", 1);
	repeat(w, "Ii", w->rank);
	repeat(w, "IW", behind);
	repeat(w, "w", w->m);
}

/* Capitals are the direction in which the rank is nearer to the beginning. The technical report's
 * own order, with the weight gradients of the drain delayed. */
static void dualpipe(phase_writer *w)
{
	int32_t half = w->p / 2, h = SW_MIN(w->rank, w->p - 1 - w->rank), behind = half - 1 - h;
	repeat(w, "F", 2 * behind);
	repeat(w, "Ff", h + 1);
	repeat(w, "iwf", behind);
	repeat(w, "FbfB", SW_MAX(w->m / 2 - w->p + h + 1, 0));
	repeat(w, "bfB", behind);
	repeat(w, "bB", (h + 1) / 2);
	repeat(w, "iI", h + 1 - (h + 1) / 2);
	repeat(w, "WI", behind);
}

/* ---- the table --------------------------------------------------------------------------- */

typedef void phases_fn(phase_writer *w);
static const struct {
	const char *name, *summary;
	phases_fn *phases; /* NULL: a building block, blocks.c */
	sw_pipeline_placement placement;
	int32_t least_chunks, most_chunks; /* most 0: any number */
	int32_t n_chains;
	bool split;
} named[SW_NAMED_SCHEDULES] = {
	[SW_GPIPE] = {"gpipe", "all forwards, then all backwards", gpipe, SW_PLACE_STRAIGHT, 1, 1,
                      1, false},
	[SW_1F1B] = {"1f1b", "a backward as soon as there is one", one_f_one_b, SW_PLACE_STRAIGHT,
                     1, 1, 1, false},
	[SW_EAGER_1F1B] = {"eager-1f1b",
                           "twice the warm-up, so that sends hide behind computations", eager,
                           SW_PLACE_STRAIGHT, 1, 1, 1, false},
	[SW_INTERLEAVED_1F1B] = {"interleaved-1f1b", "several chunks of the model per rank",
                                 interleaved, SW_PLACE_LOOPED, 2, 0, 1, false},
	[SW_ZB_H1] = {"zb-h1", "weight gradients fill the drain; memory of 1f1b", zb_h1,
                      SW_PLACE_STRAIGHT, 1, 1, 1, true},
	[SW_ZB_2P] = {"zb-2p", "no bubble within a rank; twice the memory of 1f1b (ZB-H2)", zb_2p,
                      SW_PLACE_STRAIGHT, 1, 1, 1, true},
	[SW_ZB_V] = {"zb-v", "no bubble within a rank; memory of 1f1b", zb_v, SW_PLACE_V, 2, 2, 1,
                     true},
	[SW_V_HALF] = {"v-half", "about half the memory of 1f1b", NULL, SW_PLACE_V, 2, 2, 1, true},
	[SW_V_MIN] = {"v-min", "about a third of the memory of 1f1b", NULL, SW_PLACE_V, 2, 2, 1,
                      true},
	[SW_DUALPIPE] = {"dualpipe", "two directions at once, with two copies of the model",
                         dualpipe, SW_PLACE_V, 2, 2, 2, true},
};

const char *sw_pipeline_name(sw_named_schedule which)
{
	return named[which].name;
}

const char *sw_pipeline_summary(sw_named_schedule which)
{
	return named[which].summary;
}

sw_status sw_pipeline_parse_name(const char *name, sw_named_schedule *which, sw_error *err)
{
	sw_text names = {0};
	for (int i = 0; i < SW_NAMED_SCHEDULES; i++) {
		if (strcmp(name, named[i].name) == 0) {
			*which = (sw_named_schedule)i;
			sw_text_clear(&names);
			return SW_OK;
		}
		sw_text_addf(&names, "%s%s", i ? ", " : "", named[i].name);
	}
	sw_status status =
		sw_fail(err, SW_ERR_INPUT, "schedule %s: expected one of %s", name, names.data);
	sw_text_clear(&names);
	return status;
}

sw_pipeline_placement sw_pipeline_placement_of(sw_named_schedule which)
{
	return named[which].placement;
}

int32_t sw_pipeline_chunks_of(sw_named_schedule which)
{
	return named[which].least_chunks;
}

int32_t sw_pipeline_place(sw_pipeline_placement placement, int32_t n_ranks, int32_t stage)
{
	if (placement == SW_PLACE_V && (stage / n_ranks) % 2)
		return n_ranks - 1 - stage % n_ranks;
	return stage % n_ranks;
}

/* ---- making ------------------------------------------------------------------------------ */

static sw_status check_size(sw_named_schedule which, sw_pipeline_size size, sw_error *err)
{
	const char *name = named[which].name;
	int32_t chunks = size.n_chunks, least = named[which].least_chunks,
		most = named[which].most_chunks;
	if (size.n_ranks < 1 || size.n_ranks > SW_PIPELINE_RANKS || size.n_microbatches < 1 ||
	    size.n_microbatches > SW_PIPELINE_MICROBATCHES)
		return sw_fail(err, SW_ERR_INPUT,
		               "%d stages and %d microbatches: expected 1 to %d, and 1 to %d",
		               size.n_ranks, size.n_microbatches, SW_PIPELINE_RANKS,
		               SW_PIPELINE_MICROBATCHES);
	if (chunks < least || (most && chunks > most))
		return sw_fail(err, SW_ERR_INPUT,
		               "%s has %s%d chunk%s per stage, not %d: leave --chunks out", name,
		               most ? "" : "at least ", least, least == 1 ? "" : "s", chunks);
	if ((int64_t)chunks * size.n_ranks > SW_PIPELINE_STAGES ||
	    (int64_t)chunks * size.n_ranks * size.n_microbatches > SW_PIPELINE_PASSES)
		return sw_fail(err, SW_ERR_INPUT,
		               "%d stages of %d chunks, %d microbatches: that is more than %d "
		               "passes; take fewer",
		               size.n_ranks, chunks, size.n_microbatches, SW_PIPELINE_PASSES);
	if (which == SW_DUALPIPE &&
	    (size.n_ranks % 2 || size.n_microbatches % 2 || size.n_microbatches < 2 * size.n_ranks))
		return sw_fail(err, SW_ERR_INPUT,
		               "dualpipe needs an even number of stages and of microbatches, and "
		               "twice as many microbatches as stages, not %d and %d",
		               size.n_ranks, size.n_microbatches);
	return SW_OK;
}

static void write_rank(sw_named_schedule which, sw_pipeline_schedule *s, int32_t rank,
                       int32_t chunks)
{
	bool looped = named[which].placement == SW_PLACE_LOOPED,
	     two = named[which].placement == SW_PLACE_V;
	int32_t second = 2 * s->n_ranks - 1 - rank;
	bool swapped = s->n_chains == 2 && rank >= s->n_ranks / 2;
	phase_writer w = {.schedule = s,
	                  .rank = rank,
	                  .p = s->n_ranks,
	                  .m = s->n_microbatches,
	                  .chunks = looped ? chunks : 1};
	w.total[0] = s->n_microbatches * w.chunks / s->n_chains;
	w.total[1] = two ? w.total[0] : 0;
	w.stage[0] = swapped ? second : rank;
	w.stage[1] = swapped ? rank : second;
	named[which].phases(&w);
	repeat(&w, named[which].split ? "FfIiWw" : "FB", w.total[0]);
}

sw_status sw_pipeline_make(sw_named_schedule which, sw_pipeline_size size,
                           sw_pipeline_schedule **schedule, sw_error *err)
{
	*schedule = NULL;
	if (size.n_chunks == 0)
		size.n_chunks = named[which].least_chunks;
	sw_status status = check_size(which, size, err);
	if (status)
		return status;
	int32_t n_stages = size.n_ranks * size.n_chunks;
	sw_pipeline_schedule *s =
		sw_pipeline_new(size.n_ranks, n_stages, size.n_microbatches, named[which].n_chains);
	for (int32_t v = 0; v < n_stages; v++)
		s->rank_of_stage[v] = sw_pipeline_place(named[which].placement, size.n_ranks, v);
	if (!named[which].phases)
		sw_block_schedule(which == SW_V_HALF ? 3 : 2, s);
	for (int32_t r = 0; r < size.n_ranks && named[which].phases; r++)
		write_rank(which, s, r, size.n_chunks);
	*schedule = s;
	return SW_OK;
}
