/*
 * The cost of a candidate of an op: its local op is written into a program of its own, which is
 * costed like a partitioned program. The collectives inside the local op and the ops around them
 * are counted here and nowhere else.
 */
#include "model/internal.h"

#include "interpret/interpret.h"

#include <stdlib.h>

typedef struct scratch {
	sw_program *program;
	sw_coordinates at;
	sw_id *values; /* operands, then results */
	/* computation of the analysed program -> of the scratch program; NULL: the op calls none */
	int32_t *computations;
} scratch;

static sw_id parameter(scratch *s, sw_shape shape, const int64_t *dims)
{
	sw_shape local = sw_build_shape(s->program, shape.type, dims, shape.rank);
	return sw_emit_parameter(s->program, s->at.computation, local, NULL);
}

static void copy_called(scratch *s, const sw_program *program, const sw_op *op)
{
	s->computations = sw_alloc(sizeof(int32_t) * program->computations.len);
	for (size_t c = 0; c < program->computations.len; c++)
		s->computations[c] = -1;
	for (uint32_t k = 0; k < op->n_called; k++)
		sw_build_copy_computation(s->program, program, op->called[k], s->computations);
}

/* Operands are parameters of the scratch program. So are the device's coordinates: all ops of a
 * computation share them, so no single op pays for them. */
static void scratch_init(scratch *s, const sw_analysis *analysis, const sw_op *op,
                         const sw_layout *operands)
{
	const sw_atoms *atoms = &analysis->cluster->atoms;
	*s = (scratch){.program = sw_program_new("local")};
	if (op->n_called > 0)
		copy_called(s, analysis->program, op);
	int32_t entry = sw_build_computation(s->program, "local");
	s->program->entry = entry;
	s->program->num_partitions = analysis->cluster->n_devices;
	s->program->library_kernels =
		sw_fusion_has_library_kernels(analysis->cluster->device.fusion);
	s->values = sw_alloc(sizeof(sw_id) * (op->n_operands + op->n_results + 1));
	sw_coordinates_init(&s->at, s->program, entry, atoms);
	for (int32_t a = 0; a < atoms->n; a++)
		s->at.atom[a] = parameter(s, (sw_shape){.type = SW_S32}, NULL);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_shape whole = sw_value_shape(analysis->program, op->operands[k]);
		int64_t dims[SW_MAX_RANK];
		sw_layout_local_dims(atoms, whole, &operands[k], dims);
		s->values[k] = parameter(s, whole, dims);
	}
}

static void scratch_clear(scratch *s)
{
	free(s->values);
	free(s->computations);
	sw_program_free(s->program);
}

/* Include the workspace of the kernels. */
static int64_t peak_bytes(const sw_program *program)
{
	sw_placement *placement = sw_placement_predict(program);
	int64_t bytes = placement->live_bytes;
	sw_placement_free(placement);
	return bytes;
}

/* Return among how many devices ops that have no other choice than an owner may be shared; 0: the
 * strategy makes another choice. */
static int64_t owners_of(const sw_atoms *atoms, const sw_strategy *strategy)
{
	int64_t owners = 1;
	for (int32_t a = 0; a < strategy->n; a++) {
		if (strategy->atom[a].kind == SW_CHOICE_OWN)
			owners *= atoms->size[a];
		else if (strategy->atom[a].kind != SW_CHOICE_NONE)
			return 0;
	}
	return owners;
}

bool sw_price_local(const sw_analysis *analysis, sw_id op_id, const sw_strategy *strategy,
                    const sw_layout *operands, sw_program_cost *cost)
{
	const sw_op *op = sw_op_at(analysis->program, op_id);
	scratch s;
	sw_error err = {0};
	/* A strategy that does nothing leaves the op as it is, which is always possible; so does
	 * one of owners, who share such work evenly at best. */
	int64_t owners = owners_of(&analysis->cluster->atoms, strategy);
	if (owners > 0) {
		*cost = (sw_program_cost){
			.step_time_s = sw_fused_share(analysis, op_id) *
		                       sw_cost_op(analysis->cluster, analysis->program, op_id) /
		                       (double)owners};
		return true;
	}
	scratch_init(&s, analysis, op, operands);
	sw_id *results = s.values + op->n_operands;
	sw_localize local = {.program = analysis->program,
	                     .op = op_id,
	                     .rule = analysis->rules[op_id],
	                     .strategy = strategy,
	                     .coordinates = &s.at,
	                     .computations = s.computations,
	                     .operands = s.values};
	bool possible = sw_rule_localize(&local, results, &err) == SW_OK;
	if (possible) {
		sw_build_results(s.program, s.program->entry, results, op->n_results, op->tuple);
		sw_cost_program(analysis->cluster, s.program, cost);
		cost->compute_s *= sw_fused_share(analysis, op_id);
		cost->step_time_s = cost->compute_s + cost->communication_s;
		cost->peak_bytes = peak_bytes(s.program);
	}
	scratch_clear(&s);
	return possible;
}
