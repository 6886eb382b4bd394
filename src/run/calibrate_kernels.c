/*
 * Measure kernels: the interpreter runs small programs of a few equal ops, on all ranks at once,
 * which share cores and memory as in a training run.
 *
 * A kernel is a row of a table: its op as HLO text, in which %T is the element type and %N the
 * size, which takes several values. The measured time includes all of the interpreter's work on an
 * op, its walk and its buffers too; flops and bytes are counted as `cost` counts them.
 */
#include "run/calibrate_kernel_run.h"

#include <assert.h>

#define OPS_OF_LARGE 4  /* ops of a program with large tensors, which take long */
#define N_SMALL_SIZES 2 /* how many of a kernel's first sizes are small */
#define REPETITIONS 4   /* repetitions of a point for which there must be time */
#define GROWTH 8        /* largest expected growth of the time from one size to the next */

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

/* ---- a point ---------------------------------------------------------------------------- */

static sw_status measure(sampler *s, const kernel *k, sw_type type, int64_t size, int ops,
                         int blas_threads, double share_s, sw_calibrate_result *result,
                         sw_error *err)
{
	kernel_run r = {.ops = ops};
	sample taken = {0};
	sampler_report(s, "%s, size %lld, %s", k->what, (long long)size, sw_type_name(type));
	sw_status status = s->transport->ops->agree(
		s->transport, kernel_run_init(k, type, size, blas_threads, &r, err), err);
	if (status == SW_OK)
		status = sampler_measure(s, kernel_run_body, &r, (sample_rhythm){.in_row = true},
		                         share_s, &taken, err);
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
	kernel_run_clear(&r);
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
