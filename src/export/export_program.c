/* A program as a module of one function. */
#include "export/export.h"
#include "export/stable_writer.h"

/* Append ` {tf.aliasing_output = 3 : i32}` for an input whose buffer a result takes. */
static void add_alias(sw_stable_writer *w, uint32_t input)
{
	const sw_program *p = w->program;
	int64_t output = sw_output_of_input(p, input);
	if (output >= 0) {
		sw_text_addf(w->text, " {tf.aliasing_output = %lld : i32}", (long long)output);
		return;
	}
	for (size_t i = 0; i < p->donors.len; i++)
		if (p->donors.data[i] == input) {
			sw_text_add(w->text, " {jax.buffer_donor = true}");
			return;
		}
}

/* Append `(%v1: T) -> (U) {`. Only the entry's inputs have aliases. */
static sw_status add_signature(sw_stable_writer *w, int32_t computation)
{
	const sw_computation *c = &w->program->computations.data[computation];
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(w->program, computation, &w->arena, &inputs);
	sw_text_add(w->text, "(");
	for (uint32_t i = 0; i < n; i++) {
		const sw_value *v = &w->program->values.data[inputs[i]];
		SW_TRY(sw_stable_check_shape(w, sw_op_at(w->program, v->op), v->shape));
		sw_text_add(w->text, i ? ", " : "");
		sw_stable_name(w, inputs[i]);
		sw_text_add(w->text, ": ");
		sw_stable_type(w, v->shape);
		if (computation == w->program->entry)
			add_alias(w, i);
	}
	sw_text_add(w->text, ") -> (");
	sw_stable_types(w, c->results.data, c->results.len);
	sw_text_add(w->text, ") {");
	return SW_OK;
}

static sw_status add_function(sw_stable_writer *w, int32_t computation)
{
	const sw_computation *c = &w->program->computations.data[computation];
	sw_stable_line(w);
	if (computation == w->program->entry)
		sw_text_add(w->text, "func.func public @main");
	else
		sw_text_addf(w->text, "func.func private @called_%d", computation);
	SW_TRY(add_signature(w, computation));
	w->depth++;
	SW_TRY(sw_stable_body(w, computation));
	sw_stable_return(w, "func.return", c->results.data, c->results.len);
	w->depth--;
	sw_stable_line(w);
	sw_text_add(w->text, "}");
	return SW_OK;
}

static sw_status add_functions(sw_stable_writer *w)
{
	const sw_program *p = w->program;
	bool *called = SW_NEW_N(&w->arena, bool, p->computations.len + 1);
	for (size_t i = 0; i < p->ops.len; i++)
		if (p->ops.data[i].opcode == SW_OP_CALL)
			called[p->ops.data[i].called[0]] = true;
	SW_TRY(add_function(w, p->entry));
	for (size_t c = 0; c < p->computations.len; c++)
		if (called[c])
			SW_TRY(add_function(w, (int32_t)c));
	return SW_OK;
}

sw_status sw_export_program(const sw_program *program, sw_text *text, sw_error *err)
{
	sw_stable_writer w;
	sw_stable_open(&w, program, text, err);
	sw_text_addf(text,
	             "module @program attributes {mhlo.num_partitions = %lld : i32, "
	             "mhlo.num_replicas = %lld : i32} {",
	             (long long)program->num_partitions, (long long)program->replica_count);
	sw_status status = add_functions(&w);
	sw_text_add(text, "\n}\n");
	sw_stable_close(&w);
	return status;
}
