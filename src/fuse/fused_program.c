/* Writing the kernels: each kernel of several ops becomes a fusion op that calls a computation of
 * its own, which holds the ops. */
#include "fuse/internal.h"
#include "fuse/lean_order.h"
#include "fuse/score_blocks.h"
#include "rewrite/rewrite.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
	const sw_program *in;
	sw_program *out;
	const sw_kernels *kernels;
	int32_t *computation; /* of `in` -> of `out`; -1: not written yet */
	sw_id *value;         /* of `in` -> of `out`, outside of kernels */
	sw_id *inner;         /* the same, inside the kernel at hand */
	uint32_t *stamp;      /* per value: kernel + 1 for which `inner` is valid */
	SW_VEC(sw_id) operands;
	SW_VEC(int32_t) called;
	sw_error *err;
} writer;

static sw_id copy_op(writer *w, int32_t c, sw_id id, const sw_id *operands)
{
	const sw_op *op = sw_op_at(w->in, id);
	w->called.len = 0;
	for (uint32_t k = 0; k < op->n_called; k++)
		sw_vec_push(&w->called, w->computation[op->called[k]]);
	return sw_build_copy_op(w->out, c, w->in, id, operands, w->called.data);
}

/* ---- kernels ----------------------------------------------------------------------------- */

/* Return the value inside the kernel: computed there, or a parameter, which is made at its first
 * use. */
static sw_id inside(writer *w, int32_t c, uint32_t kernel, sw_id value)
{
	if (w->stamp[value] != kernel + 1) {
		w->stamp[value] = kernel + 1;
		w->inner[value] = sw_emit_parameter(w->out, c, sw_value_shape(w->in, value), NULL);
		sw_vec_push(&w->operands, w->value[value]);
	}
	return w->inner[value];
}

static bool write_inside(writer *w, int32_t c, uint32_t kernel, sw_id id)
{
	const sw_op *op = sw_op_at(w->in, id);
	sw_id *operands = sw_alloc(sizeof(sw_id) * (op->n_operands + 1));
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = inside(w, c, kernel, op->operands[k]);
	sw_id first = copy_op(w, c, id, operands);
	free(operands);
	for (uint32_t r = 0; r < op->n_results && first != SW_NO_ID; r++) {
		w->inner[op->first_result + r] = first + r;
		w->stamp[op->first_result + r] = kernel + 1;
	}
	return first != SW_NO_ID;
}

static sw_id emit_fusion(writer *w, int32_t c, int32_t body, const sw_kernel_ops *kernel,
                         sw_id root)
{
	sw_attrs attrs = {
		.fusion = {sw_fused_kernel_kind(kernel->kind), sw_fused_kernel_name(kernel->kind)}};
	sw_shape *shapes = SW_NEW_N(&w->out->arena, sw_shape, kernel->n_results + 1);
	for (uint32_t r = 0; r < kernel->n_results; r++) {
		sw_shape shape = sw_value_shape(w->in, kernel->results[r]);
		shapes[r] = sw_build_shape(w->out, shape.type, shape.dims, shape.rank);
	}
	const sw_op *op = sw_op_at(w->in, root);
	char *name = sw_arena_printf(&w->out->arena, "fused_%s", op->name);
	sw_op_spec spec = {.opcode = SW_OP_FUSION,
	                   .name = name,
	                   .operands = w->operands.data,
	                   .n_operands = (uint32_t)w->operands.len,
	                   .called = &body,
	                   .n_called = 1,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = kernel->n_results,
	                   .tuple = kernel->n_results != 1,
	                   .op_name = op->op_name,
	                   .line = op->line};
	sw_id first = SW_NO_ID;
	return sw_build_op(w->out, c, &spec, &first, w->err) == SW_OK ? first : SW_NO_ID;
}

static sw_status write_kernel(writer *w, int32_t c, uint32_t number, sw_id root)
{
	const sw_kernel_ops *kernel = &w->kernels->list.data[number];
	char *name = sw_arena_printf(&w->out->arena, "fused_computation_%s",
	                             sw_op_at(w->in, root)->name);
	int32_t body = sw_build_computation(w->out, name);
	w->operands.len = 0;
	for (uint32_t i = 0; i < kernel->n_ops; i++)
		if (!write_inside(w, body, number, kernel->ops[i]))
			return sw_fail(w->err, SW_ERR_INTERNAL, "fuse: op '%s' can't be copied",
			               sw_op_at(w->in, kernel->ops[i])->name);
	sw_id *results = sw_alloc(sizeof(sw_id) * (kernel->n_results + 1));
	for (uint32_t r = 0; r < kernel->n_results; r++)
		results[r] = w->inner[kernel->results[r]];
	sw_build_results(w->out, body, results, kernel->n_results, kernel->n_results != 1);
	free(results);
	sw_id first = emit_fusion(w, c, body, kernel, root);
	if (first == SW_NO_ID)
		return SW_ERR_INTERNAL;
	for (uint32_t r = 0; r < kernel->n_results; r++)
		w->value[kernel->results[r]] = first + r;
	return SW_OK;
}

/* ---- computations ------------------------------------------------------------------------ */

static sw_status write_single(writer *w, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(w->in, id);
	w->operands.len = 0;
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_vec_push(&w->operands, w->value[op->operands[k]]);
	sw_id first = copy_op(w, c, id, w->operands.data);
	for (uint32_t r = 0; r < op->n_results && first != SW_NO_ID; r++)
		w->value[op->first_result + r] = first + r;
	return first != SW_NO_ID ? SW_OK
	                         : sw_fail(w->err, SW_ERR_INTERNAL, "fuse: op '%s' can't be copied",
	                                   op->name);
}

static sw_status write_computation(writer *w, int32_t computation);

static sw_status write_callees(writer *w, const sw_computation *c)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < c->ops.len && status == SW_OK; i++) {
		const sw_op *op = sw_op_at(w->in, c->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called && status == SW_OK; k++) {
			if (w->computation[op->called[k]] < 0)
				status = write_computation(w, op->called[k]);
		}
	}
	return status;
}

/* Write a computation in the order of its kernels; one that is not cut into kernels, such as a
 * reducer, in its own. */
static sw_status write_computation(writer *w, int32_t computation)
{
	const sw_computation *c = &w->in->computations.data[computation];
	const sw_kernel_order *order = &w->kernels->order[computation];
	const sw_id *ops = order->len ? order->data : c->ops.data;
	sw_status status = write_callees(w, c);
	int32_t to = sw_build_computation(w->out, c->name);
	for (size_t i = 0; i < (order->len ? order->len : c->ops.len) && status == SW_OK; i++) {
		uint32_t kernel = w->kernels->owner[ops[i]];
		bool fused = kernel != SW_NO_ID && w->kernels->list.data[kernel].n_ops > 1;
		status = fused ? write_kernel(w, to, kernel, ops[i]) : write_single(w, to, ops[i]);
	}
	w->operands.len = 0;
	for (size_t i = 0; i < c->results.len && status == SW_OK; i++)
		sw_vec_push(&w->operands, w->value[c->results.data[i]]);
	if (status == SW_OK)
		sw_build_results(w->out, to, w->operands.data, (uint32_t)w->operands.len,
		                 c->root_tuple);
	w->computation[computation] = to;
	return status;
}

typedef void sw_kernel_finder(sw_kernels *kernels, const sw_program *program, sw_fusion device);

/* Return per value written the value of `in` that it is. */
static sw_id *invert(const writer *w)
{
	sw_id *origins = sw_alloc(sizeof(*origins) * (w->out->values.len + 1));
	memset(origins, 0xff, sizeof(*origins) * w->out->values.len);
	for (sw_id v = 0; v < w->in->values.len; v++)
		if (w->value[v] != SW_NO_ID)
			origins[w->value[v]] = v;
	return origins;
}

/* origins: NULL, or sw_fuse_with_origins's. */
static sw_status fuse(const sw_program *in, sw_fusion device, sw_kernel_finder *find,
                      sw_program **out, sw_id **origins, sw_error *err)
{
	sw_kernels kernels;
	sw_arena scratch;
	*out = NULL;
	find(&kernels, in, device);
	sw_arena_init(&scratch);
	writer w = {.in = in,
	            .out = sw_program_new(in->name),
	            .kernels = &kernels,
	            .computation = SW_NEW_N(&scratch, int32_t, in->computations.len + 1),
	            .value = SW_NEW_N(&scratch, sw_id, in->values.len + 1),
	            .inner = SW_NEW_N(&scratch, sw_id, in->values.len + 1),
	            .stamp = SW_NEW_N(&scratch, uint32_t, in->values.len + 1),
	            .err = err};
	memset(w.computation, 0xff, sizeof(int32_t) * in->computations.len);
	memset(w.value, 0xff, sizeof(sw_id) * in->values.len);
	sw_build_copy_frame(w.out, in);
	w.out->library_kernels = sw_fusion_has_library_kernels(device);
	sw_status status = write_computation(&w, in->entry);
	w.out->entry = w.computation[in->entry];
#ifdef SW_VERIFY_STAGES
	if (status == SW_OK)
		status = sw_program_verify(w.out, err);
#endif
	if (status == SW_OK && origins)
		*origins = invert(&w);
	sw_vec_clear(&w.operands);
	sw_vec_clear(&w.called);
	sw_kernels_clear(&kernels);
	sw_arena_clear(&scratch);
	if (status == SW_OK)
		*out = w.out;
	else
		sw_program_free(w.out);
	return status;
}

/* All ops alone, those of computations that run kernels in an order that frees memory soon. */
static void find_lean_order(sw_kernels *kernels, const sw_program *program, sw_fusion device)
{
	(void)device;
	*kernels = (sw_kernels){.program = program};
	sw_arena_init(&kernels->arena);
	kernels->owner = SW_NEW_N(&kernels->arena, uint32_t, program->ops.len + 1);
	memset(kernels->owner, 0xff, sizeof(uint32_t) * program->ops.len);
	kernels->order = SW_NEW_N(&kernels->arena, sw_kernel_order, program->computations.len + 1);
	bool *planned = SW_NEW_N(&kernels->arena, bool, program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	sw_lean_orders(program, planned, kernels->order);
}

/* On a device whose kernels are loops of this system, attention goes through blocks of heads; and
 * what stands around the products of a kernel, or of a block, is cut into kernels in turn. */
static sw_status fuse_inside(sw_program **program, int64_t elements, sw_error *err)
{
	sw_program *blocks = NULL, *out = NULL;
	SW_TRY(sw_fuse_block_scores(*program, elements, &blocks, err));
	sw_status status = fuse(blocks ? blocks : *program, SW_FUSION_XLA_CPU,
	                        sw_kernels_find_inside, &out, NULL, err);
	sw_program_free(blocks);
	if (status == SW_OK) {
		sw_program_free(*program);
		*program = out;
	}
	return status;
}

/* An op in a program and in its rewriting: by its name, which is kept, and its number of results.
 */
static void set_key(const sw_op *op, sw_text *key)
{
	key->len = 0;
	sw_text_addf(key, "%u %s", op->n_results, op->name);
}

/* Note the first result of each op by its key. */
static void note_names(const sw_program *program, sw_map *first_results)
{
	sw_text key = {0};
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		set_key(op, &key);
		sw_map_put(first_results, key.data, key.len, op->first_result);
	}
	sw_text_clear(&key);
}

/* Give the values of the rewritten program the origins of those that have their names. */
static sw_id *carry_over(const sw_program *rewritten, const sw_map *first_results,
                         const sw_id *origins)
{
	sw_id *carried = sw_alloc(sizeof(*carried) * (rewritten->values.len + 1));
	sw_text key = {0};
	memset(carried, 0xff, sizeof(*carried) * rewritten->values.len);
	for (sw_id id = 0; id < rewritten->ops.len; id++) {
		const sw_op *op = sw_op_at(rewritten, id);
		set_key(op, &key);
		uint32_t first = sw_map_get(first_results, key.data, key.len);
		for (uint32_t r = 0; first != SW_ABSENT && r < op->n_results; r++)
			carried[op->first_result + r] = origins[first + r];
	}
	sw_text_clear(&key);
	return carried;
}

/* Cut into kernels, those of attention into blocks of as many scores. origins: NULL, or of *out. */
static sw_status fuse_all(const sw_program *in, sw_fusion device, int64_t elements,
                          sw_program **out, sw_id **origins, sw_error *err)
{
	SW_TRY(fuse(in, device, sw_kernels_find, out, origins, err));
	if (device != SW_FUSION_LOOPS)
		return SW_OK;
	sw_map first_results = {0};
	if (origins)
		note_names(*out, &first_results);
	sw_status status = fuse_inside(out, elements, err);
	if (origins && status == SW_OK) {
		sw_id *carried = carry_over(*out, &first_results, *origins);
		free(*origins);
		*origins = carried;
	}
	sw_map_clear(&first_results);
	return status;
}

sw_status sw_fuse_in_blocks(const sw_program *in, sw_fusion device, int64_t elements,
                            sw_program **out, sw_error *err)
{
	return fuse_all(in, device, elements, out, NULL, err);
}

/* Scores of a block: 256 KiB of f32, a quarter of a second-level cache. */
#define BLOCK_ELEMENTS 65536

static sw_status fuse_in_order(const sw_program *in, sw_fusion device, sw_program **out,
                               sw_id **origins, sw_error *err)
{
	sw_program *fused;
	sw_id *before = NULL;
	*out = NULL;
	if (device == SW_FUSION_NONE)
		return fuse(in, device, sw_kernels_find, out, origins, err);
	sw_status status =
		fuse_all(in, device, BLOCK_ELEMENTS, &fused, origins ? &before : NULL, err);
	if (status == SW_OK)
		status = fuse(fused, device, find_lean_order, out, origins, err);
	for (sw_id v = 0; status == SW_OK && origins && v < (*out)->values.len; v++)
		if ((*origins)[v] != SW_NO_ID)
			(*origins)[v] = before[(*origins)[v]];
	free(before);
	sw_program_free(fused);
	return status;
}

sw_status sw_fuse(const sw_program *in, sw_fusion device, sw_program **out, sw_error *err)
{
	return fuse_in_order(in, device, out, NULL, err);
}

sw_status sw_fuse_with_origins(const sw_program *in, sw_fusion device, sw_program **out,
                               sw_id **origins, sw_error *err)
{
	*origins = NULL;
	return fuse_in_order(in, device, out, origins, err);
}
