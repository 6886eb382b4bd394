/*
 * inserter: what the insertion of collectives between kernels shares (insert_collectives.c).
 */
#ifndef SW_SCHEDULE_INSERTER_H
#define SW_SCHEDULE_INSERTER_H

#include "base/heap.h"
#include "schedule/internal.h"

typedef struct sw_placed_collective {
	uint32_t start, done;
	int32_t released, needed; /* slots */
	int32_t cheapest;         /* the slot at which it holds least */
	/* on the clock of kernels without waits; open_s: when a prefetch may begin */
	double deadline_s, open_s;
	double result_bytes, held_bytes; /* held: of operands that no kernel reads later */
	double landed_s;
	uint32_t n_unplaced;          /* predecessors of its start that are not placed yet */
	bool grows, feeds_collective; /* feeds: another collective reads its results */
	bool begun, ended, counted;
} sw_placed_collective;

typedef struct sw_inserter {
	const sw_tasks *graph;
	const uint32_t *kernels;
	int32_t n_kernels;
	sw_placed_collective *all; /* in program order */
	int32_t n;
	int32_t *number; /* per task: index of its collective */
	int32_t *slot;   /* per kernel: its slot */
	double *clock_s; /* per slot: seconds of the kernels before it */
	sw_profile profile;
	double lead;
	double max_bytes;
	/* operands of collectives that have not ended though they might have */
	double held_bytes;
	sw_streams streams;             /* when each is free */
	sw_heap due, growing, unopened; /* released: by deadline; by deadline; by open_s */
	SW_VEC(int32_t) in_flight;      /* in the order of starts */
	size_t landed;                  /* how many of those have been looked at */
	/* released at this slot: their operands count from the next slot on */
	SW_VEC(int32_t) released_now;
	uint32_t *order, n_order;
	int32_t at; /* the slot of the sweep */
} sw_inserter;

static inline const sw_schedule_task *sw_inserter_task(const sw_inserter *p, uint32_t t)
{
	return &p->graph->tasks[t];
}

/* ---- collective_slots.c ----------------------------------------------------------------- */

/* Number the slots of the kernels, and set the clock. */
void sw_inserter_list_slots(sw_inserter *p, sw_arena *arena);
/* List the collectives in program order, with the slots that bound them. */
void sw_inserter_list_collectives(sw_inserter *p, sw_arena *arena);
/* Find when each prefetch may begin: back from the end, by deadlines and the stream. */
void sw_inserter_find_times(sw_inserter *p, sw_arena *arena);
/* Return the bytes of the cheapest insertion, per slot. */
double *sw_inserter_list_bytes(sw_inserter *p, sw_arena *arena);

#endif
