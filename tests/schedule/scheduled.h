/* Scheduled programs for the tests of schedule: hand-written ones, and fixtures under plans. */
#ifndef SW_TESTS_SCHEDULE_SCHEDULED_H
#define SW_TESTS_SCHEDULE_SCHEDULED_H

#include "test.h"

#include "partition/partition.h"
#include "schedule/schedule.h"

void check(sw_status status, const sw_error *err);

typedef struct scheduled {
	sw_cluster cluster;
	sw_program *program;
	sw_sidecar sidecar;
	bool planned; /* else the program is the local one itself */
	sw_plan *plan;
	sw_program *local, *scheduled;
} scheduled;

/* A program on four devices with links of 1 GB/s and no latency; each kernel takes 10 us and the
 * time of its bytes at 100 GB/s. */
void open_local(const char *hlo, scheduled *s);
/* Open a fixture by name on clusters/CLUSTER.yaml, planned and partitioned. Returns false if no
 * plan fits. */
bool open_fixture(const char *name, const char *cluster, const char *strategy, scheduled *s);
/* The same with rematerialisation and microbatches, given as in the plan's options, on devices that
 * run each op as a kernel of its own, behind which more hides. */
bool open_op_by_op(const char *name, const char *cluster, const char *strategy, const char *remat,
                   int32_t microbatches, scheduled *s);
/* Schedule (again), and check what holds for every schedule: it is valid, it has the costs of the
 * local program, it is no slower, and it reads back as it was printed. */
void schedule(scheduled *s, const char *overlap, int64_t memory_bytes);
void close_scheduled(scheduled *s);

/* Print the names of the entry's ops in their order, without parameters and constants. */
void print_order(const sw_program *program, sw_text *text);

/* The entry of a scheduled program, for queries. */
typedef struct entry {
	const sw_program *program;
	sw_arena arena;
	int32_t *place; /* per op; -1: in another computation */
	sw_users users;
} entry;
void entry_init(entry *e, const sw_program *program);
void entry_clear(entry *e);
/* Return the op that made the operand of a start, seen through reshapes, transposes, converts,
 * copies and other collectives. */
sw_id maker_of(const entry *e, sw_id start);
sw_id done_of(const entry *e, sw_id start);
/* the collective that an op begins; SW_OP_UNKNOWN: none */
sw_opcode begun_by(const entry *e, sw_id op);
/* Return the seconds of the kernels between two ops. */
double kernels_between_s(const scheduled *s, const entry *e, sw_id from, sw_id to);
/* True if an op with this opcode depends on this one's results, directly or indirectly. */
bool leads_to(const entry *e, sw_id op, sw_opcode opcode);

#endif
