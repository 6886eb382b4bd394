/* V-Half and V-Min: "Pipeline Parallelism with Controllable Memory", section 3. One microbatch's
 * passes form a BUILDING BLOCK, a time slot for each; microbatch j's block is shifted by 6 j slots,
 * for a rank has six passes per microbatch. How long a microbatch is alive on a rank, divided by 6,
 * is how many the rank holds: the steps from stage to stage decide about memory.
 *
 * Slots of a rank must differ modulo 6; the gaps where the direction turns are chosen so, the
 * shortest first. Weight gradients take the slots that are left. */
#include <limits.h>
#include <string.h>

#include "pipeline/internal.h"

#define PERIOD 6

/* Steps of a block from stage to stage: forward down and up, backward down and up; and the gaps
 * where it turns from each to the next. */
typedef struct building_block {
	int32_t steps[4], gaps[3];
} building_block;

/* The slot of the passes of rank r: 0 and 1 forward of its first and second stage, 2 and 3 input
 * gradient of its second and first. */
static void slots_of(const building_block *b, int32_t p, int32_t r, int32_t slots[4])
{
	int32_t at = 0;
	for (int i = 0; i < 4; i++) {
		bool outwards = i % 2 == 0;
		slots[i] = at + b->steps[i] * (outwards ? r : p - 1 - r);
		at += b->steps[i] * (p - 1) + (i < 3 ? b->gaps[i] : 0);
	}
}

static bool slots_differ(const building_block *b, int32_t p)
{
	for (int32_t r = 0; r < SW_MIN(p, PERIOD); r++) {
		int32_t slots[4], used = 0;
		slots_of(b, p, r, slots);
		for (int i = 0; i < 4; i++)
			used |= 1 << (slots[i] % PERIOD);
		if (__builtin_popcount((unsigned)used) < 4)
			return false;
	}
	return true;
}

/* Find the shortest gaps with which the slots differ. */
static bool find_gaps(building_block *b, int32_t p)
{
	for (int32_t sum = 3; sum <= 3 * PERIOD; sum++)
		for (b->gaps[0] = 1; b->gaps[0] <= PERIOD; b->gaps[0]++)
			for (b->gaps[1] = 1; b->gaps[1] <= PERIOD; b->gaps[1]++) {
				b->gaps[2] = sum - b->gaps[0] - b->gaps[1];
				if (b->gaps[2] >= 1 && b->gaps[2] <= PERIOD && slots_differ(b, p))
					return true;
			}
	return false;
}

typedef struct slotted_action {
	int64_t slot;
	sw_action action;
} slotted_action;

static int compare_slots(const void *a, const void *b)
{
	const slotted_action *x = a, *y = b;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* The weight gradients' slots: the first free ones behind the input gradients. */
static void weight_slots(const int32_t slots[4], int32_t weights[2])
{
	int32_t used = 0;
	for (int i = 0; i < 4; i++)
		used |= 1 << (slots[i] % PERIOD);
	for (int i = 0; i < 2; i++) {
		int32_t at = slots[2 + i] + 1;
		while (used & 1 << (at % PERIOD))
			at++;
		used |= 1 << (at % PERIOD);
		weights[i] = at;
	}
}

static void write_block_rank(const building_block *b, sw_pipeline_schedule *s, int32_t r)
{
	int32_t slots[4], weights[2], stages[2] = {r, 2 * s->n_ranks - 1 - r};
	SW_VEC(slotted_action) all = {0};
	slots_of(b, s->n_ranks, r, slots);
	weight_slots(slots, weights);
	for (int32_t j = 0; j < s->n_microbatches; j++)
		for (int i = 0; i < 2; i++) {
			int64_t from = (int64_t)PERIOD * j;
			int32_t back = stages[1 - i];
			sw_vec_push(&all, ((slotted_action){from + slots[i],
			                                    {SW_FORWARD, stages[i], j}}));
			sw_vec_push(&all, ((slotted_action){from + slots[2 + i],
			                                    {SW_INPUT_GRADIENT, back, j}}));
			sw_vec_push(&all, ((slotted_action){from + weights[i],
			                                    {SW_WEIGHT_GRADIENT, back, j}}));
		}
	qsort(all.data, all.len, sizeof(slotted_action), compare_slots);
	for (size_t i = 0; i < all.len; i++)
		sw_vec_push(&s->lists[r], all.data[i].action);
	sw_vec_clear(&all);
}

void sw_block_schedule(int32_t pace, sw_pipeline_schedule *schedule)
{
	building_block block = {{1, 1, 1, 1}, {1, 1, 1}};
	if (pace == 3)
		block = (building_block){{1, 2, 1, 2}, {1, 1, 1}};
	if (!find_gaps(&block, schedule->n_ranks))
		memcpy(block.gaps, (int32_t[]){PERIOD, PERIOD, PERIOD}, sizeof(block.gaps));
	for (int32_t r = 0; r < schedule->n_ranks; r++)
		write_block_rank(&block, schedule, r);
}
