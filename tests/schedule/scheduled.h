/* Scheduled programs for the tests of schedule: hand-written ones, and fixtures under plans. */
#ifndef SW_TESTS_SCHEDULE_SCHEDULED_H
#define SW_TESTS_SCHEDULE_SCHEDULED_H

#include "test.h"

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

/* Four devices on links of 1 GB/s, no latency; each kernel takes 10 us and what its bytes take at
 * 100 GB/s. */
void open_local(const char *hlo, scheduled *s);
/* A fixture by name on clusters/CLUSTER.yaml, planned and partitioned. False: no plan fits. */
bool open_fixture(const char *name, const char *cluster, const char *strategy, scheduled *s);
/* The same with activations computed again and in microbatches, as plan's options say it. */
bool open_rewritten(const char *name, const char *cluster, const char *strategy, const char *remat,
                    int32_t microbatches, scheduled *s);
/* Schedules (again), and checks what every schedule keeps: it is valid, costs what it cost, is no
 * slower, and reads back as it was. */
void schedule(scheduled *s, const char *overlap, int64_t memory_bytes);
void close_scheduled(scheduled *s);

/* Names of the entry's ops in their order, without parameters and constants. */
void print_order(const sw_program *program, sw_text *text);

/* The entry of a scheduled program, for questions. */
typedef struct entry {
	const sw_program *program;
	sw_arena arena;
	int32_t *place; /* per op; -1: elsewhere */
	sw_users users;
} entry;
void entry_init(entry *e, const sw_program *program);
void entry_clear(entry *e);
/* The op that made what a start reads, looked for through reshapes, transposes, converts, copies
 * and other collectives. */
sw_id maker_of(const entry *e, sw_id start);
sw_id done_of(const entry *e, sw_id start);
sw_opcode begun_by(const entry *e, sw_id op); /* the collective; SW_OP_UNKNOWN: nothing */
/* Seconds of the kernels between two ops; does any op that needs this one's results, however
 * indirectly, have this opcode? */
double kernels_between_s(const scheduled *s, const entry *e, sw_id from, sw_id to);
bool leads_to(const entry *e, sw_id op, sw_opcode opcode);

#endif
