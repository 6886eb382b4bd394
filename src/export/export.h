/*
 * export: programs and plans for others: as StableHLO, which JAX and other compilers of MLIR take;
 * as data; and as settings of frameworks.
 *
 * A program is written op by op in MLIR's generic form. A plan is written as the exact program of
 * one device inside of `sdy.manual_computation`, with all collectives and their groups; each input
 * and result has its PLACEMENT: how the global array is cut, so that each device gets what the
 * layout says.
 */
#ifndef SW_EXPORT_H
#define SW_EXPORT_H

#include "explain/explain.h"
#include "pipelined/stage_programs.h"

/* Append a module of one function, @main, that sw_read_stablehlo reads back to the same program.
 * Refuses ops and types that StableHLO does not have, in one line that names the op. Linear. */
sw_status sw_export_program(const sw_program *program, sw_text *text, sw_error *err);

/* How a module computes attention that the plan takes for one kernel. */
typedef enum sw_export_attention {
	SW_ATTENTION_AS_READ, /* as calls of cuDNN, if the program called it and the device has it */
	SW_ATTENTION_OPS,     /* in plain ops, which run anywhere */
	SW_ATTENTION_CUDNN,   /* as calls, wherever the formula and the type allow it */
} sw_export_attention;

/* Append the module of a plan, and return its placements (docs/commands.md, "export"). The sidecar
 * is that of sw_plan_serial. The module's arguments and results are global arrays in the form that
 * `digits` of their placements say. n_calls: how many calls of attention it has. */
sw_status sw_export_plan(const sw_plan *plan, const sw_sidecar *sidecar,
                         sw_export_attention attention, sw_text *text, json_t **placements,
                         uint32_t *n_calls, sw_error *err);

/* The module of a piece of a plan with stages. */
typedef struct sw_stage_module {
	const char *file; /* STEM.forward0.mlir */
	sw_text text;
} sw_stage_module;
typedef struct sw_stage_modules {
	sw_arena arena;
	SW_VEC(sw_stage_module) list;
	json_t *index; /* docs/export.md: the pieces, what they take and give, the calls of a step */
	uint32_t n_calls; /* of attention, in all modules */
} sw_stage_modules;
/* Write a loaded plan with stages: a module for each piece of its stages' programs, on the devices of its
 * slice, and the index, which says how a step is made of calls of them. What crosses between slices
 * is no partial sum: the piece that sends it has reduced it. Modules that are equal are one. Cleared
 * by the caller, also if this fails. O(ops + microbatches * ports). */
sw_status sw_export_stages(const sw_stage_programs *programs, sw_export_attention attention,
                           const char *stem, sw_stage_modules *modules, sw_error *err);
void sw_stage_modules_clear(sw_stage_modules *modules);

/* Numbers of values inside of the step: those that have a sharding, those that were left open since
 * they are partial sums, and those whose parts are runs dealt out in turn, not blocks. */
typedef struct sw_sharding_losses {
	int64_t values, partial_sums, dealt_out;
	bool padded; /* the module's arrays have the plan's padded shapes */
} sw_sharding_losses;
/* Append the plan's program for a compiler that partitions it itself: of all devices, without
 * collectives, with the layouts of all values as `sdy.sharding`, where a sharding can say them.
 * O(ops * atoms). */
sw_status sw_export_annotated(const sw_plan *plan, sw_text *text, sw_sharding_losses *lost,
                              sw_error *err);

/* The remaining forms are JSON objects, which docs/export.md describes. The sidecar is that of
 * sw_plan_serial; the caller owns *json. */

/* Everything that is known of the plan. O(ops * devices). */
sw_status sw_export_everything(const sw_plan *plan, const sw_sidecar *sidecar, json_t **json,
                               sw_error *err);
/* The placements of DTensor per input and result, and the styles of PyTorch's tensor parallelism
 * per weight. */
sw_status sw_export_torch(const sw_plan *plan, const sw_sidecar *sidecar, json_t **json,
                          sw_error *err);
/* Append the same as a module of Python, which needs PyTorch only when its functions are called. */
void sw_export_torch_print(const json_t *torch, sw_text *text);
/* The settings of Megatron-LM, NeMo, MaxText and TorchTitan that come nearest to the plan, each
 * with what of the plan they don't say. */
sw_status sw_export_frameworks(const sw_plan *plan, const sw_sidecar *sidecar, json_t **json,
                               sw_error *err);
/* Append the same for people: flags, YAML and TOML. */
void sw_export_frameworks_print(const json_t *frameworks, sw_text *text);

#endif
