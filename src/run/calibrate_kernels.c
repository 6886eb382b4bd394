/*
 * Measure kernels: the interpreter runs small programs of a few equal ops, on all ranks at once,
 * which share cores and memory as in a training run.
 *
 * A kernel is a row of a table: its op as HLO text, in which %T is the element type and %N the
 * size, which takes several values. The measured time includes all of the interpreter's work on an
 * op, its walk and its buffers too; flops and bytes are counted as `cost` counts them.
 */
#include <assert.h>
#include <string.h>

#include "frontend/frontend.h"
#include "run/calibrate_parts.h"
#include "run/ranks.h"

#define MAX_SIZES 7
#define MAX_OPERANDS 3
#define OPS_OF_SMALL 16 /* ops of a program with small tensors: they share the step's overhead */
#define OPS_OF_LARGE 4  /* ops of a program with large tensors, which take long */
#define N_SMALL_SIZES 2 /* how many of a kernel's first sizes are small */
#define REPETITIONS 4   /* repetitions of a point for which there must be time */
#define GROWTH 8        /* largest expected growth of the time from one size to the next */

typedef struct kernel {
	sw_family family;
	const char *what;
	const char *operands[MAX_OPERANDS]; /* shapes */
	/* %0, %1, ... are the operands; %P is the result of the previous op, and operand 0 in the
	 * first op, for ops that may work in place, as in a step */
	const char *result, *op;
	int64_t sizes[MAX_SIZES]; /* terminated by 0 */
} kernel;

/* Integer operands are row numbers below 256. */
static const kernel kernels[] = {
	{SW_FAMILY_MATMUL,
         "square dot",
         {"%T[%N,%N]", "%T[%N,%N]"},
         "%T[%N,%N]",
         "dot(%0, %1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
         {16, 64, 128, 256, 512, 1024}},
	{SW_FAMILY_MATMUL,
         "tall dot",
         {"%T[%N,64]", "%T[64,64]"},
         "%T[%N,64]",
         "dot(%0, %1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
         {64, 1024, 16384}},
	{SW_FAMILY_MATMUL,
         "contracted dot",
         {"%T[%N,128]", "%T[%N,128]"},
         "%T[128,128]",
         "dot(%0, %1), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
         {256, 4096}},
	{SW_FAMILY_MATMUL,
         "batched dot",
         {"%T[16,%N,64]", "%T[16,%N,64]"},
         "%T[16,%N,%N]",
         "dot(%0, %1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={2}",
         {32, 128, 256}},
	{SW_FAMILY_MATMUL,
         "small batched dot",
         {"%T[16,%N,16]", "%T[16,%N,16]"},
         "%T[16,%N,%N]",
         "dot(%0, %1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={2}",
         {8, 16, 32, 128}},
	{SW_FAMILY_MATMUL,
         "batched dot of few columns",
         {"%T[16,%N,%N]", "%T[16,%N,16]"},
         "%T[16,%N,16]",
         "dot(%0, %1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={1}",
         {16, 64, 128}},
	{SW_FAMILY_CONVOLUTION,
         "convolution of single features",
         {"%T[4,%N,32]", "%T[4,1,32]"},
         "%T[4,%N,32]",
         "convolution(%0, %1), window={size=4 pad=3_0}, dim_labels=b0f_0io->b0f, "
         "feature_group_count=32",
         {16, 128}},
	{SW_FAMILY_CONVOLUTION,
         "gradient of a 3x3 kernel",
         {"%T[16,%N,%N,16]", "%T[16,%N,%N,16]"},
         "%T[3,3,16,16]",
         "convolution(%0, %1), window={size=%Nx%N pad=1_1x1_1}, dim_labels=f01b_i01o->01bf",
         {4, 8, 16}},
	{SW_FAMILY_CONVOLUTION,
         "convolution of few features",
         {"%T[8,%N,%N,4]", "%T[3,3,4,8]"},
         "%T[8,%N,%N,8]",
         "convolution(%0, %1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
         {4, 8, 32}},
	{SW_FAMILY_CONVOLUTION,
         "convolution 3x3",
         {"%T[4,%N,%N,16]", "%T[3,3,16,32]"},
         "%T[4,%N,%N,32]",
         "convolution(%0, %1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
         {4, 8, 16, 32}},
	{SW_FAMILY_CONVOLUTION,
         "convolution 1x1",
         {"%T[2,%N,%N,64]", "%T[1,1,64,64]"},
         "%T[2,%N,%N,64]",
         "convolution(%0, %1), window={size=1x1}, dim_labels=b01f_01io->b01f",
         {4, 16, 32}},
	{SW_FAMILY_ELEMENTWISE,
         "add",
         {"%T[%N]", "%T[%N]"},
         "%T[%N]",
         "add(%P, %1)",
         {256, 4096, 16384, 65536, 1048576, 4194304}},
	{SW_FAMILY_ELEMENTWISE,
         "maximum",
         {"%T[%N]", "%T[%N]"},
         "%T[%N]",
         "maximum(%P, %1)",
         {1024, 262144}},
	{SW_FAMILY_ELEMENTWISE,
         "negate",
         {"%T[%N]"},
         "%T[%N]",
         "negate(%P)",
         {1024, 16384, 65536, 1048576}},
	{SW_FAMILY_TRANSCENDENTAL,
         "exponential",
         {"%T[%N]"},
         "%T[%N]",
         "exponential(%P)",
         {256, 4096, 65536, 1048576}},
	{SW_FAMILY_ELEMENTWISE,
         "select",
         {"%T[%N]", "pred[%N]", "%T[%N]"},
         "%T[%N]",
         "select(%1, %P, %2)",
         {4096, 65536, 1048576}},
	{SW_FAMILY_TRANSCENDENTAL,
         "divide",
         {"%T[%N]", "%T[%N]"},
         "%T[%N]",
         "divide(%P, %1)",
         {1024, 65536, 1048576}},
	{SW_FAMILY_TRANSCENDENTAL, "log", {"%T[%N]"}, "%T[%N]", "log(%P)", {1024, 65536}},
	{SW_FAMILY_TRANSCENDENTAL,
         "log-plus-one",
         {"%T[%N]"},
         "%T[%N]",
         "log-plus-one(%P)",
         {4096}},
	{SW_FAMILY_TRANSCENDENTAL, "tanh", {"%T[%N]"}, "%T[%N]", "tanh(%P)", {1024, 262144}},
	{SW_FAMILY_TRANSCENDENTAL, "rsqrt", {"%T[%N]"}, "%T[%N]", "rsqrt(%P)", {1024, 262144}},
	{SW_FAMILY_REDUCE,
         "reduce rows",
         {"%T[%N,256]", "%T[]"},
         "%T[%N]",
         "reduce(%0, %1), dimensions={1}, to_apply=sum",
         {4, 64, 1024, 8192}},
	{SW_FAMILY_REDUCE,
         "reduce columns",
         {"%T[%N,256]", "%T[]"},
         "%T[256]",
         "reduce(%0, %1), dimensions={0}, to_apply=sum",
         {16, 256, 4096}},
	{SW_FAMILY_REDUCE,
         "reduce short rows",
         {"%T[%N,16]", "%T[]"},
         "%T[%N]",
         "reduce(%0, %1), dimensions={1}, to_apply=sum",
         {64, 1024, 16384}},
	{SW_FAMILY_REDUCE,
         "reduce to few columns",
         {"%T[%N,16]", "%T[]"},
         "%T[16]",
         "reduce(%0, %1), dimensions={0}, to_apply=sum",
         {64, 1024, 16384}},
	{SW_FAMILY_REDUCE,
         "reduce of pairs",
         {"%T[%N,8,2]", "%T[]"},
         "%T[%N,2]",
         "reduce(%0, %1), dimensions={1}, to_apply=sum",
         {8, 128, 2048}},
	{SW_FAMILY_MOVE,
         "transpose",
         {"%T[%N,%N]"},
         "%T[%N,%N]",
         "transpose(%0), dimensions={1,0}",
         {16, 64, 256, 1024}},
	{SW_FAMILY_MOVE,
         "slice",
         {"%T[%N,512]"},
         "%T[%N,256]",
         "slice(%0), slice={[0:%N], [128:384]}",
         {4, 64, 2048}},
	{SW_FAMILY_MOVE,
         "concatenate",
         {"%T[%N,256]", "%T[%N,256]"},
         "%T[%N,512]",
         "concatenate(%0, %1), dimensions={1}",
         {4, 64, 2048}},
	{SW_FAMILY_MOVE,
         "broadcast",
         {"%T[%N]"},
         "%T[%N,256]",
         "broadcast(%0), dimensions={0}",
         {16, 256, 2048, 16384}},
	{SW_FAMILY_MOVE,
         "broadcast of a short row",
         {"%T[16]"},
         "%T[%N,16]",
         "broadcast(%0), dimensions={1}",
         {64, 1024, 16384}},
	{SW_FAMILY_MOVE,
         "transpose of short rows",
         {"%T[4,%N,4,16]"},
         "%T[4,4,%N,16]",
         "transpose(%0), dimensions={0,2,1,3}",
         {16, 128, 1024}},
	{SW_FAMILY_MOVE,
         "broadcast of pairs",
         {"%T[%N,2]"},
         "%T[%N,8,2]",
         "broadcast(%0), dimensions={0,2}",
         {8, 128, 2048}},
	{SW_FAMILY_INDEXED,
         "sort",
         {"%T[8,%N]"},
         "%T[8,%N]",
         "sort(%0), dimensions={1}, to_apply=less",
         {32, 512}},
	{SW_FAMILY_INDEXED,
         "choice and scatter",
         {"%T[4,%N,%N,8]", "%T[4,%N,%N,8]", "%T[]"},
         "%T[4,%N,%N,8]",
         "select-and-scatter(%0, %1, %2), window={size=1x2x2x1 pad=0_0x0_1x0_1x0_0}, "
         "select=not_less, scatter=sum",
         {4, 8, 16}},
	{SW_FAMILY_INDEXED,
         "gather short rows",
         {"%T[256,32]", "s32[%N]"},
         "%T[%N,32]",
         "gather(%0, %1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
         "index_vector_dim=1, slice_sizes={1,32}",
         {16, 256, 4096}},
	{SW_FAMILY_INDEXED,
         "scatter short rows",
         {"%T[256,32]", "s32[%N]", "%T[%N,32]"},
         "%T[256,32]",
         "scatter(%P, %1, %2), update_window_dims={1}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, "
         "index_vector_dim=1, to_apply=sum",
         {16, 256, 4096}},
	{SW_FAMILY_INDEXED,
         "gather rows",
         {"%T[256,256]", "s32[%N]"},
         "%T[%N,256]",
         "gather(%0, %1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
         "index_vector_dim=1, slice_sizes={1,256}",
         {4, 64, 1024, 4096}},
	{SW_FAMILY_INDEXED,
         "scatter rows",
         {"%T[256,256]", "s32[%N]", "%T[%N,256]"},
         "%T[256,256]",
         "scatter(%P, %1, %2), update_window_dims={1}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, "
         "index_vector_dim=1, to_apply=sum",
         {4, 64, 1024, 4096}},
};

/* ---- a kernel's program ----------------------------------------------------------------- */

static bool is_chained(const kernel *k)
{
	return strstr(k->op, "%P") != NULL;
}

/* Write the name of operand n of op i. */
static void add_operand(sw_text *text, const kernel *k, int i, int n)
{
	if (n == 0 && is_chained(k) && i > 0)
		sw_text_addf(text, "r%d", i - 1);
	else
		sw_text_addf(text, "p%d_%d", i, n);
}

static void substitute(sw_text *text, const kernel *k, const char *template, sw_type type,
                       int64_t size, int i)
{
	for (const char *c = template; *c; c++) {
		if (c[0] != '%') {
			sw_text_add_n(text, c, 1);
			continue;
		}
		if (*++c == 'T')
			sw_text_add(text, sw_type_name(type));
		else if (*c == 'N')
			sw_text_addf(text, "%lld", (long long)size);
		else
			add_operand(text, k, i, *c == 'P' ? 0 : *c - '0');
	}
}

static void write_inputs(const kernel *k, sw_type type, int64_t size, int ops, sw_text *text)
{
	int number = 0;
	for (int i = 0; i < ops; i++)
		for (int n = 0; n < MAX_OPERANDS && k->operands[n]; n++) {
			if (n == 0 && is_chained(k) && i > 0)
				continue;
			sw_text_add(text, "  ");
			add_operand(text, k, i, n);
			sw_text_add(text, " = ");
			substitute(text, k, k->operands[n], type, size, i);
			sw_text_addf(text, " parameter(%d)\n", number++);
		}
}

/* Results that no op reads are the program's outputs. */
static void write_root(const kernel *k, sw_type type, int64_t size, int ops, sw_text *text)
{
	int first = is_chained(k) ? ops - 1 : 0;
	sw_text_add(text, "  ROOT all = (");
	for (int i = first; i < ops; i++) {
		sw_text_add(text, i > first ? ", " : "");
		substitute(text, k, k->result, type, size, i);
	}
	sw_text_add(text, ") tuple(");
	for (int i = first; i < ops; i++)
		sw_text_addf(text, "%sr%d", i > first ? ", " : "", i);
	sw_text_add(text, ")\n}\n");
}

/* Write the same op several times. Each has operands and a result of its own, so that an operand
 * was last accessed some ops ago, as in a step. */
static void write_program(const kernel *k, sw_type type, int64_t size, int ops, sw_text *text)
{
	sw_text_add(text, "HloModule kernel\n");
	substitute(
		text, k,
		"sum {\n  a = %T[] parameter(0)\n  b = %T[] parameter(1)\n  ROOT c = %T[] add(a, "
		"b)\n}\n"
		"less {\n  d = %T[] parameter(0)\n  e = %T[] parameter(1)\n  ROOT f = pred[] "
		"compare(d, e), direction=LT\n}\n"
		"not_less {\n  g = %T[] parameter(0)\n  h = %T[] parameter(1)\n  ROOT i = pred[] "
		"compare(g, h), direction=GE\n}\nENTRY main {\n",
		type, size, 0);
	write_inputs(k, type, size, ops, text);
	for (int i = 0; i < ops; i++) {
		sw_text_addf(text, "  r%d = ", i);
		substitute(text, k, k->result, type, size, i);
		sw_text_add(text, " ");
		substitute(text, k, k->op, type, size, i);
		sw_text_add(text, "\n");
	}
	write_root(k, type, size, ops, text);
}

/* Repeat PERIOD numbers: drawing as many as a large tensor has would take longer than the
 * measurement. */
static void fill(sw_tensor tensor, uint64_t stream)
{
	enum { PERIOD = 4096 };
	sw_type type = tensor.shape.type;
	bool is_index = sw_type_kind_of(type) == SW_KIND_SIGNED;
	int64_t n = sw_shape_elements(tensor.shape), bytes = n * sw_type_bytes(type);
	int64_t done = SW_MIN(n, (int64_t)PERIOD) * sw_type_bytes(type);
	char *data = sw_tensor_data(tensor);
	for (int64_t i = 0; i < SW_MIN(n, (int64_t)PERIOD); i++) {
		double u = sw_random_unit(0, stream, (uint64_t)i);
		sw_element_set(type, data, i, is_index ? (double)(int)(256 * u) : 0.5 + u);
	}
	for (; done < bytes; done *= 2)
		memcpy(data + done, data, (size_t)SW_MIN(done, bytes - done));
}

typedef struct kernel_run {
	sw_program *program;
	int ops;
	sw_placement *placement;
	sw_interpreter *interpreter;
	sw_tensor inputs[OPS_OF_SMALL * MAX_OPERANDS];
	uint32_t n_inputs;
} kernel_run;

/* Set the program up as the executor does: all tensors are in one arena, inputs in their places. */
static sw_status set_up(const kernel *k, sw_type type, int64_t size, int blas_threads,
                        kernel_run *r, sw_error *err)
{
	sw_text text = {0};
	sw_arena arena;
	const sw_id *inputs;
	sw_interpret_options options = {.blas_threads = blas_threads};
	sw_arena_init(&arena);
	write_program(k, type, size, r->ops, &text);
	sw_status status = sw_read_hlo(text.data, text.len, k->what, &r->program, err);
	if (status == SW_OK)
		options.placement = r->placement = sw_placement_new(r->program);
	if (status == SW_OK)
		status = sw_interpreter_new(r->program, &options, &r->interpreter, err);
	r->n_inputs = status == SW_OK
	                      ? sw_program_inputs(r->program, r->program->entry, &arena, &inputs)
	                      : 0;
	for (uint32_t i = 0; i < r->n_inputs && status == SW_OK; i++) {
		status = sw_interpreter_input(r->interpreter, i, &r->inputs[i], err);
		if (status == SW_OK)
			fill(r->inputs[i], i);
	}
	sw_arena_clear(&arena);
	sw_text_clear(&text);
	return status;
}

static void tear_down(kernel_run *r)
{
	sw_tensors_drop(r->inputs, OPS_OF_SMALL * MAX_OPERANDS);
	sw_interpreter_free(r->interpreter);
	sw_placement_free(r->placement);
	if (r->program)
		sw_program_free(r->program);
}

static sw_status execute(void *context, sw_error *err)
{
	kernel_run *r = context;
	sw_tensor inputs[OPS_OF_SMALL * MAX_OPERANDS], outputs[OPS_OF_SMALL];
	uint32_t n = (uint32_t)sw_entry(r->program)->results.len;
	for (uint32_t i = 0; i < r->n_inputs; i++)
		inputs[i] = sw_tensor_keep(r->inputs[i]);
	sw_status status = sw_interpret(r->interpreter, inputs, r->n_inputs, outputs, n, err);
	for (uint32_t i = 0; i < n && status == SW_OK; i++)
		sw_tensor_drop(&outputs[i]);
	return status;
}

/* ---- a point ---------------------------------------------------------------------------- */

static sw_status measure(sampler *s, const kernel *k, sw_type type, int64_t size, int ops,
                         int blas_threads, double share_s, sw_calibrate_result *result,
                         sw_error *err)
{
	kernel_run r = {.ops = ops};
	sample taken = {0};
	sampler_report(s, "%s, size %lld, %s", k->what, (long long)size, sw_type_name(type));
	sw_status status = s->transport->ops->agree(
		s->transport, set_up(k, type, size, blas_threads, &r, err), err);
	if (status == SW_OK)
		status = sampler_measure(s, execute, &r, (sample_rhythm){.in_row = true}, share_s,
		                         &taken, err);
	if (status == SW_OK) {
		sw_id op = r.program->values.data[sw_entry(r.program)->results.data[0]].op;
		assert(sw_cost_family(r.program, op) == k->family);
		sw_kernel_point point = {.what = sw_arena_printf(&result->arena, "%s %lld", k->what,
		                                                 (long long)size),
		                         .family = k->family,
		                         .type = type,
		                         .work = sw_cost_work(r.program, op),
		                         .seconds = taken.seconds / ops,
		                         .deviation_s = taken.deviation_s / ops};
		sw_vec_push(&result->kernels, point);
	}
	tear_down(&r);
	return status;
}

/* Only matrix products have a peak rate of their own for each type. */
static bool is_measured(const kernel *k, const sw_device *device, sw_type type)
{
	return type == SW_F32 || (k->family == SW_FAMILY_MATMUL && device->flops[type] > 0 &&
	                          sw_type_kind_of(type) == SW_KIND_FLOAT);
}

/* ---- all kernels ------------------------------------------------------------------------ */

typedef struct kernel_job {
	size_t kernel;
	sw_type type;
	int64_t size;
	int ops;
} kernel_job;
typedef SW_VEC(kernel_job) job_list;

/* List the small sizes first. */
static void list_jobs(const sw_device *device, job_list *jobs)
{
	for (int i = 0; i < MAX_SIZES; i++)
		for (size_t k = 0; k < SW_COUNT(kernels); k++)
			for (int type = 0; type < SW_TYPE_COUNT; type++) {
				kernel_job j = {k, (sw_type)type, kernels[k].sizes[i],
				                i < N_SMALL_SIZES ? OPS_OF_SMALL : OPS_OF_LARGE};
				if (j.size && is_measured(&kernels[k], device, j.type))
					sw_vec_push(jobs, j);
			}
}

sw_status calibrate_kernels(sampler *s, const sw_device *device, int blas_threads, double until_s,
                            sw_calibrate_result *result, sw_error *err)
{
	double last_s[SW_COUNT(kernels)][SW_TYPE_COUNT] = {{0}};
	job_list jobs = {0};
	sw_status status = SW_OK;
	list_jobs(device, &jobs);
	for (size_t i = 0; i < jobs.len && status == SW_OK; i++) {
		const kernel_job *j = &jobs.data[i];
		double remaining_s = until_s - s->elapsed_s,
		       share_s = remaining_s / (double)(jobs.len - i);
		double *last = &last_s[j->kernel][j->type];
		if (*last > 0 && REPETITIONS * j->ops * GROWTH * *last > remaining_s) {
			result->left_out++;
			continue;
		}
		status = measure(s, &kernels[j->kernel], j->type, j->size, j->ops, blas_threads,
		                 share_s, result, err);
		if (status == SW_OK)
			*last = result->kernels.data[result->kernels.len - 1].seconds;
	}
	sw_vec_clear(&jobs);
	return status;
}
