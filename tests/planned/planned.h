/* Programs, clusters and plans for the tests of the planner. */
#ifndef SW_TESTS_PLANNED_PLANNED_H
#define SW_TESTS_PLANNED_PLANNED_H

#include "test.h"

#include "partition/partition.h"
#include "search/search.h"

void check(sw_status status, const sw_error *err);

/* A program, its cluster, and its plan. */
typedef struct planned {
	char path[512];
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_plan *plan;
} planned;

/* Read HLO text, or a fixture by name, without planning it. `cluster` names a file of clusters/,
 * "NAME.yaml"; else it is the number of devices of one flat level whose memory is so fast that only
 * links and FLOPs cost time, so that bytes are those of the literature. */
void open_text(const char *hlo, const char *cluster, planned *p);
void open_fixture(const char *name, const char *cluster, planned *p);
/* The same on devices that run each op as a kernel of its own: what a test says of kernels' seconds,
 * or of values that are stored, is then said of ops. */
void open_fixture_op_by_op(const char *name, const char *cluster, planned *p);
/* Plan the program (again) without rewrites but padding. memory_bytes 0: the cluster's. make_plan
 * fails the test if there is no plan. */
sw_status try_plan(planned *p, const char *strategy, int64_t memory_bytes, sw_error *err);
void make_plan(planned *p, const char *strategy);
/* Plan the program (again) as the command does, under these options but for the strategy, and return
 * its step; fail the test if there is no plan. */
double plan_under(planned *p, sw_plan_options options, const char *strategy);
void close_planned(planned *p);

/* Print the plan as explain does, with whole tables if `whole`. The caller clears the text. */
void explain_plan(const planned *p, bool whole, sw_text *text);

/* The layout at rest of entry input i, and its whole shape. */
const sw_layout *input_layout(const planned *p, uint32_t input);
sw_shape input_shape(const planned *p, uint32_t input);
/* The bytes of all entry inputs of a role, unsplit. */
int64_t role_bytes(const planned *p, sw_role role);
const sw_op *find_op(const sw_program *program, const char *name);

/* Write a transformer's blocks without norms and softmax (attention is bilinear, so that its
 * backward pass is short): residual stream [batch, length, width], heads of width / heads, MLP of 4
 * * width, SGD on all weights. The caller frees the text. */
char *write_blocks(int layers, int batch, int length, int width, int heads);

/* Draw a layout without partial sums: the atoms in random order, and gaps between digits or not. */
sw_layout draw_layout(const sw_atoms *atoms, sw_shape shape, bool gaps, sw_rng *rng);

#endif
