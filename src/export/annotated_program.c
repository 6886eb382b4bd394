/*
 * A plan's program with shardings as annotations of Shardy: the program of all devices, for a
 * compiler that partitions it itself.
 */
#include "export/export.h"
#include "export/stable_writer.h"
#include "plan/device_mesh.h"

typedef struct annotator {
	const sw_plan *plan;
	sw_device_mesh mesh;
	sw_sharding_losses lost;
} annotator;

/* ---- the sharding of a value -------------------------------------------------------------- */

/* Append `<@plan, [{"x"}, {}]>`, or with `?` for each dimension: the compiler chooses. */
static void add_sharding(const annotator *a, sw_shape shape, const sw_layout *layout, sw_text *text)
{
	sw_text_add(text, "<@plan, [");
	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t axes[SW_MAX_ATOMS];
		int32_t n = layout ? sw_device_mesh_splits(&a->mesh, layout, d, axes) : 0;
		sw_text_add(text, d ? ", {" : "{");
		for (int32_t i = 0; i < n; i++)
			sw_text_addf(text, "%s\"%s\"", i ? ", " : "", a->mesh.axes[axes[i]].name);
		sw_text_add(text, layout ? "}" : "?}");
	}
	sw_text_add(text, "]>");
}

/* Are the parts of a layout not the blocks that its sharding cuts? */
static bool deals_out(const annotator *a, sw_shape shape, const sw_layout *layout)
{
	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t axes[SW_MAX_ATOMS], n = sw_device_mesh_splits(&a->mesh, layout, d, axes);
		int64_t block = shape.dims[d];
		for (int32_t i = 0; i < n; i++) {
			const sw_mesh_axis *axis = &a->mesh.axes[axes[i]];
			block /= axis->size;
			if (layout->state[axis->end - 1].stride != block)
				return true;
		}
	}
	return false;
}

/* Return the value's layout, or NULL where a sharding can't say it. */
static const sw_layout *sayable(annotator *a, sw_id value, uint32_t number)
{
	const sw_layout *layout = sw_plan_layout(a->plan, number);
	a->lost.values++;
	if (sw_layout_partial_atoms(layout)) {
		a->lost.partial_sums++;
		return NULL;
	}
	if (deals_out(a, sw_value_shape(a->plan->program, value), layout))
		a->lost.dealt_out++;
	return layout;
}

/* ---- remarks on ops ----------------------------------------------------------------------- */

static bool is_shaped(const sw_program *program, const sw_op *op)
{
	for (uint32_t r = 0; r < op->n_results; r++)
		if (sw_value_shape(program, op->first_result + r).rank > 0)
			return true;
	return false;
}

/* XLA counts the constants that it moves out of a loop's body as results of the loop, but not in the
 * sharding that the loop has (0.10): a loop has none, and its results are constrained. */
static bool has_attribute(const sw_op *op)
{
	return op->opcode != SW_OP_WHILE;
}

static void add_attributes(void *context, sw_stable_writer *w, const sw_op *op)
{
	annotator *a = context;
	if (!is_shaped(w->program, op) || !has_attribute(op))
		return;
	sw_text_add(w->text, " {sdy.sharding = #sdy.sharding_per_value<[");
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		sw_text_add(w->text, r ? ", " : "");
		add_sharding(a, sw_value_shape(w->program, value),
		             sayable(a, value, a->plan->produced[value]), w->text);
	}
	sw_text_add(w->text, "]>}");
}

/* Constrain the results that their readers take in another layout, and those of loops. */
static void follow_op(void *context, sw_stable_writer *w, const sw_op *op)
{
	annotator *a = context;
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		sw_shape shape = sw_value_shape(w->program, value);
		const sw_layout *held = sw_plan_layout(a->plan, a->plan->materialised[value]);
		bool said = a->plan->materialised[value] == a->plan->produced[value] &&
		            has_attribute(op);
		if (said || shape.rank == 0 ||
		    sw_layout_partial_atoms(held))
			continue;
		sw_stable_line(w);
		sw_text_addf(w->text, "%%h%u = \"sdy.sharding_constraint\"(", value);
		sw_stable_name(w, value);
		sw_text_add(w->text, ") <{sharding = #sdy.sharding");
		add_sharding(a, shape, held, w->text);
		sw_text_add(w->text, "}> : (");
		sw_stable_type(w, shape);
		sw_text_add(w->text, ") -> ");
		sw_stable_type(w, shape);
		w->held[value] = true;
	}
}

/* ---- the module --------------------------------------------------------------------------- */

static void add_boundary(annotator *a, sw_stable_writer *w, sw_id value, uint32_t layout,
                         uint32_t input)
{
	sw_shape shape = sw_value_shape(w->program, value);
	const sw_program *p = w->program;
	sw_stable_type(w, shape);
	sw_text_add(w->text, " {sdy.sharding = #sdy.sharding");
	add_sharding(a, shape, sw_plan_layout(a->plan, layout), w->text);
	for (size_t i = 0; i < p->aliases.len; i++)
		if (p->aliases.data[i].input == input)
			sw_text_addf(w->text, ", tf.aliasing_output = %u : i32",
			             p->aliases.data[i].output);
	sw_text_add(w->text, "}");
}

static sw_status add_main(annotator *a, sw_stable_writer *w)
{
	const sw_computation *entry = sw_entry(w->program);
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(w->program, w->program->entry, &w->arena, &inputs);
	sw_text_add(w->text, "  func.func public @main(");
	for (uint32_t i = 0; i < n; i++) {
		sw_text_add(w->text, i ? ", " : "");
		sw_stable_name(w, inputs[i]);
		sw_text_add(w->text, ": ");
		add_boundary(a, w, inputs[i], a->plan->produced[inputs[i]], i);
	}
	sw_text_add(w->text, ") -> (");
	for (uint32_t i = 0; i < a->plan->n_outputs; i++) {
		sw_text_add(w->text, i ? ", " : "");
		add_boundary(a, w, entry->results.data[i], a->plan->outputs[i], UINT32_MAX);
	}
	sw_text_add(w->text, ") {");
	w->depth++;
	for (uint32_t i = 0; i < n; i++)
		follow_op(a, w, sw_op_at(w->program, w->program->values.data[inputs[i]].op));
	SW_TRY(sw_stable_body(w, w->program->entry));
	sw_stable_return(w, "func.return", entry->results.data, entry->results.len);
	sw_text_add(w->text, "\n  }\n}\n");
	return SW_OK;
}

sw_status sw_export_annotated(const sw_plan *plan, sw_text *text, sw_sharding_losses *lost,
                              sw_error *err)
{
	annotator a = {.plan = plan};
	sw_stable_remarks remarks = {&a, add_attributes, follow_op};
	sw_stable_writer w;
	sw_device_mesh_of_all(&a.mesh, plan);
	sw_stable_open(&w, plan->program, text, err);
	w.remarks = &remarks;
	sw_stable_open_module(text, "planned", "plan", &a.mesh);
	sw_text_add(text, "\n");
	sw_status status = add_main(&a, &w);
	sw_stable_close(&w);
	a.lost.padded = plan->padded.len > 0;
	*lost = a.lost;
	return status;
}
