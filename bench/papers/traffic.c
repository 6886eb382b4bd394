/* The bytes that a partitioned program sends, by the dependences of a collective's operand and
 * result. */
#include "papers.h"

#include <string.h>

const char *const traffic_names[TRAFFIC_KINDS] = {"weights", "forward", "backward", "gradients"};

static traffic_kind kind_of(uint8_t marks)
{
	if (!(marks & FLOW_FROM_DATA))
		return TRAFFIC_WEIGHTS;
	if (marks & FLOW_TO_LOSS)
		return TRAFFIC_FORWARD;
	return marks & FLOW_TO_CONTRACTION ? TRAFFIC_BACKWARD : TRAFFIC_GRADIENTS;
}

typedef struct traffic {
	const sw_cluster *cluster;
	const sw_program *program;
	const uint8_t *marks;
	double *bytes; /* per kind */
} traffic;

static void count_computation(const traffic *t, int32_t c, double trips)
{
	const sw_computation *computation = &t->program->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(t->program, id);
		sw_collective_kind kind;
		uint32_t atoms;
		int64_t bytes;
		if (op->opcode == SW_OP_WHILE)
			count_computation(t, op->called[1], trips * (double)sw_op_trips(op));
		else if (op->opcode == SW_OP_CONDITIONAL)
			count_computation(
				t, op->called[sw_cost_dearest_branch(t->cluster, t->program, id)],
				trips);
		else if (sw_cost_collective_op(t->cluster, t->program, id, &kind, &atoms, &bytes))
			t->bytes[kind_of(t->marks[op->first_result])] +=
				trips * (double)sw_collective_payload_bytes(
						op->opcode, bytes,
						sw_atoms_group_size(&t->cluster->atoms, atoms));
	}
}

void traffic_count(const sw_cluster *cluster, const sw_program *local, double bytes[TRAFFIC_KINDS])
{
	sw_arena arena = {0};
	memset(bytes, 0, TRAFFIC_KINDS * sizeof(*bytes));
	const traffic t = {cluster, local, flow_marks(local, &arena), bytes};
	count_computation(&t, local->entry, 1);
	sw_arena_clear(&arena);
}
