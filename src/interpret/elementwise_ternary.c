/* The kernels of select and clamp. */
#include "interpret/vector.h"

#include "interpret/kernel.h"
#include "interpret/types.h"

/* select only moves elements, so there is one loop per element size. Each operand may be a
 * splat. */
#define SELECT(name, T)                                                                            \
	SW_CLONES static void name(int64_t n, const void *const in[3], const int stride[3],        \
	                           void *out)                                                      \
	{                                                                                          \
		const uint8_t *p = in[0];                                                          \
		const T *a = in[1], *b = in[2];                                                    \
		T *r = out;                                                                        \
		if (stride[1] && stride[2]) {                                                      \
			for (int64_t i = 0; i < n; i++) {                                          \
				const T x = a[i], y = b[i];                                        \
				r[i] = p[i] ? x : y;                                               \
			}                                                                          \
		} else if (stride[1]) {                                                            \
			const T y = b[0];                                                          \
			for (int64_t i = 0; i < n; i++) {                                          \
				const T x = a[i];                                                  \
				r[i] = p[i] ? x : y;                                               \
			}                                                                          \
		} else if (stride[2]) {                                                            \
			const T x = a[0];                                                          \
			for (int64_t i = 0; i < n; i++) {                                          \
				const T y = b[i];                                                  \
				r[i] = p[i] ? x : y;                                               \
			}                                                                          \
		} else {                                                                           \
			const T x = a[0], y = b[0];                                                \
			for (int64_t i = 0; i < n; i++)                                            \
				r[i] = p[i] ? x : y;                                               \
		}                                                                                  \
	}

typedef struct wide16 {
	uint64_t low, high;
} wide16;
SELECT(select_1, uint8_t)
SELECT(select_2, uint16_t)
SELECT(select_4, uint32_t)
SELECT(select_8, uint64_t)
SELECT(select_16, wide16)

bool sw_prepare_select(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	static sw_ternary_fn *const by_bytes[17] = {
		[1] = select_1, [2] = select_2, [4] = select_4, [8] = select_8, [16] = select_16,
	};
	plan->impl.ternary = by_bytes[sw_type_bytes(sw_value_shape(program, op->operands[1]).type)];
	return plan->impl.ternary != NULL;
}

static void describe(const sw_call *call, const void *in[3], int stride[3])
{
	for (int i = 0; i < 3; i++) {
		in[i] = sw_tensor_data(call->in[i]);
		stride[i] = sw_stride_of(call->in[i]);
	}
}

sw_status sw_kernel_select(sw_call *call, sw_error *err)
{
	const void *in[3];
	int stride[3];
	describe(call, in, stride);
	/* A single predicate for all elements selects one operand as a whole. */
	if (stride[0] == 0) {
		sw_result_forward(call, 0, *(const uint8_t *)in[0] ? 1 : 2);
		return SW_OK;
	}
	int64_t n = sw_shape_elements(call->shapes[0]);
	sw_status status = sw_result_in_place(call, 0, n, err);
	if (status == SW_OK)
		call->plan->impl.ternary(n, in, stride, sw_tensor_data(call->out[0]));
	return status;
}

bool sw_prepare_clamp(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->impl.binary = sw_find_binary(SW_OP_MAXIMUM, sw_operand_type(program, op, 1));
	return plan->impl.binary != NULL;
}

/* clamp(low, x, high) = minimum(maximum(x, low), high) */
sw_status sw_kernel_clamp(sw_call *call, sw_error *err)
{
	const void *in[3];
	int stride[3];
	describe(call, in, stride);
	int64_t n = stride[0] || stride[1] || stride[2] ? sw_shape_elements(call->shapes[0]) : 1;
	sw_binary_fn *minimum = sw_find_binary(SW_OP_MINIMUM, call->shapes[0].type);
	/* The result must not overwrite an operand: `high` is read after the result has been
	 * written. */
	sw_status status = sw_result_of(call, 0, n, err);
	if (status != SW_OK)
		return status;
	sw_tensor out = call->out[0];
	call->plan->impl.binary(n, in[1], stride[1], in[0], stride[0], sw_tensor_data(out));
	minimum(n, sw_tensor_data(out), n != 1, in[2], stride[2], sw_tensor_data(out));
	return SW_OK;
}
