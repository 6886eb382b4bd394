/* Where the state of a plan with stages lies: of each input, the slices that hold it, and how. */
#include "run/stage_state.h"

#include "run/run_stages.h"

sw_run_trained sw_run_trained_by_stages(const sw_pipelined *plan, const sw_sidecar *sidecar)
{
	return (sw_run_trained){.cluster = plan->cluster,
	                        .serial = plan->canonical,
	                        .held = plan->looped,
	                        .sidecar = sidecar};
}

bool stage_state_find(const sw_stage_programs *programs, int32_t slice, uint32_t input,
                      sw_held_value *held)
{
	const sw_pipelined *plan = programs->plan;
	const sw_layout *layout = programs->layouts[slice][programs->inputs[input]];
	*held = (sw_held_value){.input = input,
	                        .shape = sw_value_shape(plan->looped, programs->inputs[input]),
	                        .atoms = &plan->slices[slice]->atoms,
	                        .layout = layout,
	                        .first = plan->first_device[slice]};
	return layout != NULL;
}

bool stage_state_of(const sw_stage_programs *programs, uint32_t input, sw_held_value *held)
{
	const sw_program *program = programs->plan->looped;
	for (size_t i = 0; i < program->aliases.len; i++)
		if (program->aliases.data[i].input == input &&
		    stage_state_find(programs,
		                     sw_slice_of_output(programs, program->aliases.data[i].output),
		                     input, held))
			return true;
	for (int32_t slice = 0; slice < programs->plan->n_ranks; slice++)
		if (stage_state_find(programs, slice, input, held))
			return true;
	return false;
}

sw_status stage_state_saving(const sw_stage_programs *programs, const sw_sidecar *sidecar,
                             sw_saving *s, sw_error *err)
{
	const sw_program *program = programs->plan->looped;
	s->n_ranks = programs->plan->cluster->n_devices;
	s->about.plan_hash =
		sw_hash_u64(sw_program_hash(program), (uint64_t)programs->plan->n_stages);
	for (uint32_t i = 0; i < programs->n_inputs; i++) {
		sw_held_value held;
		if (!sw_checkpoint_keeps(program, sidecar, i))
			continue;
		if (!stage_state_of(programs, i, &held))
			return sw_fail(err, SW_ERR_INPUT,
			               "the state can't be saved: no stage has input '%s'",
			               sidecar->inputs[i].name);
		sw_saving_add(s, &held, &sidecar->inputs[i]);
	}
	return sw_saving_check(s, err);
}
