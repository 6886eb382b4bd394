/*
 * plan_module: the module of a plan, or of a piece of one with stages. Private to this folder.
 */
#ifndef SW_EXPORT_PLAN_MODULE_H
#define SW_EXPORT_PLAN_MODULE_H

#include "export/export.h"
#include "plan/device_mesh.h"

/* Append the module of a plan under this mesh of its devices. sidecar: for names; NULL: inputs and
 * results have none. placements: as sw_export_plan; NULL: they are not wanted. */
sw_status sw_export_plan_module(const sw_plan *plan, const sw_device_mesh *mesh,
                                const sw_sidecar *sidecar, sw_export_attention attention,
                                sw_text *text, json_t **placements, uint32_t *n_calls,
                                sw_error *err);

#endif
