/*
 * export: programs and plans as StableHLO, which JAX and other compilers of MLIR take.
 *
 * A program is written op by op in MLIR's generic form. A plan is written as the exact program of
 * one device inside of `sdy.manual_computation`, with all collectives and their groups; each input
 * and result has its PLACEMENT: how the global array is cut, so that each device gets what the
 * layout says.
 */
#ifndef SW_EXPORT_H
#define SW_EXPORT_H

#include "partition/partition.h"

/* Append a module of one function, @main, that sw_read_stablehlo reads back to the same program.
 * Refuses ops and types that StableHLO does not have, in one line that names the op. Linear. */
sw_status sw_export_program(const sw_program *program, sw_text *text, sw_error *err);

/* Append the module of a plan for several devices, and return its placements
 * (docs/commands.md, "export"). The sidecar is that of sw_plan_serial. The module's arguments and
 * results are global arrays in the form that `digits` of their placements say. */
sw_status sw_export_plan(const sw_plan *plan, const sw_sidecar *sidecar, sw_text *text,
                         json_t **placements, sw_error *err);

#endif
