/* stage_state: where the state of a plan with stages lies, and what of it is saved. Private to
 * src/run. */
#ifndef SW_RUN_STAGE_STATE_H
#define SW_RUN_STAGE_STATE_H

#include "pipelined/stage_programs.h"
#include "run/checkpoint.h"

/* Does a slice hold the input of the step? Then *held says how; it borrows from the programs. */
bool stage_state_find(const sw_stage_programs *programs, int32_t slice, uint32_t input,
                      sw_held_value *held);
/* How the slice holds it that makes its new value; of values that stay, the first that has it. All
 * slices that read a value have it anew when a step ends. False: no slice has it. */
bool stage_state_of(const sw_stage_programs *programs, uint32_t input, sw_held_value *held);
/* Fill s, but for the step, the seed and the data: what outlasts a step is saved. SW_ERR_INPUT: no
 * stage has a value, or it can't be saved. */
sw_status stage_state_saving(const sw_stage_programs *programs, const sw_sidecar *sidecar,
                             sw_saving *s, sw_error *err);

#endif
