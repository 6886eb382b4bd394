/* Barriers of one value that were one of several values when the program was read. */
#include "export/whole_barriers.h"

#include <stdlib.h>

#include "export/on_demand.h"

/* Barriers that were one: members[first] to members[first + n - 1]. */
typedef struct barrier_group {
	size_t first, n;
} barrier_group;

typedef struct group_joiner {
	sw_on_demand w;
	uint32_t *group; /* per value: 1 + the group that it is a member of; 0: of none */
	SW_VEC(barrier_group) groups;
	SW_VEC(sw_id) members; /* values of barriers, by group */
} group_joiner;

static bool reads_group(const group_joiner *x, const sw_op *op, uint32_t group)
{
	for (uint32_t k = 0; k < op->n_operands && group; k++)
		if (x->group[op->operands[k]] == group)
			return true;
	return false;
}

/* The group that is open has members up to the first op that reads one, so that no member needs
 * another one. */
static void find_groups(group_joiner *x, const sw_computation *c)
{
	int32_t line = 0; /* of the open group; 0: none is open */
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(x->w.in, c->ops.data[i]);
		bool single = op->opcode == SW_OP_OPT_BARRIER && op->n_operands == 1;
		if (reads_group(x, op, (uint32_t)x->groups.len))
			line = 0;
		if (!single || op->line == 0)
			continue;
		if (op->line != line)
			sw_vec_push(&x->groups, ((barrier_group){x->members.len, 0}));
		line = op->line;
		x->groups.data[x->groups.len - 1].n++;
		x->group[op->first_result] = (uint32_t)x->groups.len;
		sw_vec_push(&x->members, op->first_result);
	}
}

static sw_giving give_group(group_joiner *x, int32_t c, const barrier_group *g)
{
	const sw_program *in = x->w.in;
	const sw_id *members = x->members.data + g->first;
	const sw_op *op = sw_op_at(in, in->values.data[members[0]].op);
	sw_id *operands = sw_alloc(sizeof(sw_id) * g->n), first = SW_NO_ID;
	sw_error err = {0};
	for (size_t i = 0; i < g->n; i++)
		operands[i] = sw_op_at(in, in->values.data[members[i]].op)->operands[0];
	sw_giving giving = SW_GIVE_LATER;
	if (sw_on_demand_have(&x->w, operands, (uint32_t)g->n)) {
		for (size_t i = 0; i < g->n; i++)
			operands[i] = x->w.value[operands[i]];
		sw_op_spec spec = {.opcode = SW_OP_OPT_BARRIER,
		                   .name = op->name,
		                   .operands = operands,
		                   .n_operands = (uint32_t)g->n,
		                   .tuple = true,
		                   .op_name = op->op_name,
		                   .line = op->line};
		sw_status status = sw_build_op(x->w.out, c, &spec, &first, &err);
		for (size_t i = 0; i < g->n && status == SW_OK; i++)
			x->w.value[members[i]] = first + (sw_id)i;
		giving = status == SW_OK ? SW_GIVEN : SW_GIVE_FAILED;
	}
	free(operands);
	return giving;
}

static sw_giving give(sw_on_demand *w, int32_t c, sw_id value)
{
	group_joiner *x = (group_joiner *)w;
	uint32_t group = x->group[value];
	return group && x->groups.data[group - 1].n > 1
	               ? give_group(x, c, &x->groups.data[group - 1])
	               : sw_on_demand_copy(w, c, value);
}

sw_status sw_whole_barriers(const sw_program *in, sw_program **out, sw_error *err)
{
	group_joiner x = {0};
	sw_on_demand_open(&x.w, in, give);
	x.group = sw_alloc(sizeof(*x.group) * (in->values.len + 1));
	for (size_t c = 0; c < in->computations.len; c++)
		find_groups(&x, &in->computations.data[c]);
	sw_status status = sw_on_demand_close(&x.w, out, "barriers", err);
	sw_vec_clear(&x.groups);
	sw_vec_clear(&x.members);
	free(x.group);
	return status;
}
