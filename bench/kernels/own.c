/* This executor's step of a program: in its arena, state updated in place. */
#include "kernels/kernels.h"

#include "rewrite/rewrite.h"

#include "common/cpu.h"
#include "fuse/fuse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct own {
	sw_arena arena;
	sw_program *program;
	sw_sidecar sidecar;
	sw_placement *placement;
	sw_interpreter *interpreter;
	const sw_id *inputs;
	uint32_t n_inputs, n_outputs;
	sw_tensor *in, *out;
	/* seconds by opcode, then by fused kernel */
	double seconds[SW_OPCODE_COUNT + SW_FUSED_COUNT];
	bool clocked;
};

static void clock_op(void *context, sw_id id, double begin_s, double end_s)
{
	own *o = context;
	const sw_op *op = sw_op_at(o->program, id);
	sw_fused_kernel kernel = sw_fused_kernel_of(op);
	if (o->clocked)
		o->seconds[kernel < SW_FUSED_COUNT ? SW_OPCODE_COUNT + (int)kernel
		                                   : (int)op->opcode] += end_s - begin_s;
}

static double draw(const sw_fill *fill, uint64_t stream, uint64_t i)
{
	switch (fill->kind) {
	case SW_FILL_ZEROS:
		return 0;
	case SW_FILL_ONES:
		return 1;
	case SW_FILL_CONSTANT:
		return fill->a;
	case SW_FILL_NORMAL:
		return fill->a + fill->b * sw_random_normal(1, stream, i);
	case SW_FILL_UNIFORM:
		return fill->a + (fill->b - fill->a) * sw_random_unit(1, stream, i);
	default:
		return floor(fill->a + (fill->b - fill->a) * sw_random_unit(1, stream, i));
	}
}

static sw_status fill_inputs(own *o, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < o->n_inputs; i++) {
		sw_tensor t;
		status = sw_interpreter_input(o->interpreter, i, &t, err);
		for (int64_t e = 0; status == SW_OK && e < sw_shape_elements(t.shape); e++)
			sw_element_set(t.shape.type, sw_tensor_data(t), e,
			               draw(&o->sidecar.inputs[i].random, i, (uint64_t)e));
	}
	return status;
}

static sw_status prepare(own *o, int threads, sw_error *err)
{
	o->n_inputs = sw_program_inputs(o->program, o->program->entry, &o->arena, &o->inputs);
	o->n_outputs = (uint32_t)sw_entry(o->program)->results.len;
	o->in = SW_NEW_N(&o->arena, sw_tensor, o->n_inputs + 1);
	o->out = SW_NEW_N(&o->arena, sw_tensor, o->n_outputs + 1);
	o->placement = sw_placement_new(o->program);
	sw_interpret_options options = {.blas_threads = threads,
	                                .placement = o->placement,
	                                .timing = clock_op,
	                                .timing_context = o};
	sw_status status = sw_interpreter_new(o->program, &options, &o->interpreter, err);
	return status == SW_OK ? fill_inputs(o, err) : status;
}

sw_status own_open(const char *folder, const char *name, sw_fusion fusion, int threads, own **out,
                   sw_error *err)
{
	own *o = *out = sw_alloc(sizeof *o);
	char path[1024];
	sw_arena_init(&o->arena);
	snprintf(path, sizeof path, "%s/%s.hlo.gz", folder, name);
	sw_status status = sw_read_program(path, &o->program, err);
	if (status == SW_OK)
		status = sw_sidecar_find(path, o->program, &o->sidecar, err);
	if (status == SW_OK) {
		sw_program *read = o->program, *plain = NULL;
		o->program = NULL;
		status = sw_rewrite_canonical(read, &plain, err); /* as what is planned and run */
		sw_program_free(read);
		if (status == SW_OK)
			status = sw_fuse(plain, fusion, &o->program, err);
		sw_program_free(plain);
	}
	return status == SW_OK ? prepare(o, threads, err) : status;
}

/* The fusions that run op by op, with what stands against tiles. */
void own_list_frames(const own *o)
{
	for (size_t i = 0; i < o->program->ops.len; i++) {
		const sw_op *op = sw_op_at(o->program, (sw_id)i);
		const char *why;
		if (op->opcode == SW_OP_FUSION && !sw_tile_can_run(o->program, op, &why))
			fprintf(stderr, "%s (%s): %s\n", op->name,
			        sw_fused_kernel_name(sw_fused_kernel_of(op)), why);
	}
}

void own_close(own *o)
{
	if (!o)
		return;
	sw_interpreter_free(o->interpreter);
	sw_placement_free(o->placement);
	if (o->n_inputs)
		sw_sidecar_clear(&o->sidecar);
	sw_program_free(o->program);
	sw_arena_clear(&o->arena);
	free(o);
}

sw_status own_step(own *o, bool cpu, double *seconds, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < o->n_inputs; i++)
		status = sw_interpreter_input(o->interpreter, i, &o->in[i], err);
	double begin = cpu ? cpu_now_s() : sw_now_s();
	if (status == SW_OK)
		status =
			sw_interpret(o->interpreter, o->in, o->n_inputs, o->out, o->n_outputs, err);
	*seconds = (cpu ? cpu_now_s() : sw_now_s()) - begin;
	return status;
}

int64_t own_arena_bytes(const own *o)
{
	return o->placement->arena_bytes;
}

static const char *name_of(int i)
{
	return i < SW_OPCODE_COUNT ? sw_opcode_name((sw_opcode)i)
	                           : sw_fused_kernel_name((sw_fused_kernel)(i - SW_OPCODE_COUNT));
}

sw_status own_describe(own *o, sw_text *text, sw_error *err)
{
	enum { TOP = 8, ALL = SW_OPCODE_COUNT + SW_FUSED_COUNT };
	double total = 0, step;
	memset(o->seconds, 0, sizeof o->seconds);
	o->clocked = true;
	sw_status status = own_step(o, false, &step, err);
	o->clocked = false;
	for (int i = 0; i < ALL; i++)
		total += o->seconds[i];
	for (int top = 0; top < TOP; top++) {
		int best = 0;
		for (int i = 1; i < ALL; i++)
			best = o->seconds[i] > o->seconds[best] ? i : best;
		if (o->seconds[best] <= 0)
			break;
		sw_text_addf(text, "%s%s %.0f%%", top ? ", " : "", name_of(best),
		             100 * o->seconds[best] / total);
		o->seconds[best] = 0;
	}
	return status;
}
