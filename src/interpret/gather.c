/* gather: read windows of the operand at start indices that are clamped so that each window is
 * inside. */
#include <string.h>

#include "interpret/indexing.h"

sw_status sw_kernel_gather(sw_call *call, sw_error *err)
{
	const sw_index_dims *dims = &call->op->attrs->index;
	sw_tensor operand = call->in[0], indices = call->in[1];
	sw_status status = sw_result_new(call, 0, err);
	if (status != SW_OK || call->out[0].buffer->bytes == 0)
		return status;
	sw_windows w;
	sw_windows_init(&w, dims, operand.shape, indices.shape, call->shapes[0],
	                dims->slice_sizes.v);
	size_t bytes = (size_t)sw_type_bytes(operand.shape.type);
	const char *x = sw_tensor_data(operand);
	char *r = sw_tensor_data(call->out[0]);
	sw_strided window = w.window; /* dst: the windowed array; src: the indexed array */
	sw_strided_simplify(&window);
	bool whole =
		window.rank == 0 || (window.rank == 1 && window.dst[0] == 1 && window.src[0] == 1);
	size_t run = (window.rank ? (size_t)window.dims[0] : 1) * bytes;
	int64_t batch[SW_MAX_RANK] = {0};
	do {
		int64_t start[SW_MAX_RANK], from = 0;
		sw_windows_start(&w, indices, batch, start);
		for (int d = 0; d < operand.shape.rank; d++) {
			int64_t last = operand.shape.dims[d] - w.sizes[d];
			from += SW_MAX(SW_MIN(start[d], last), 0) * w.operand_stride[d];
		}
		char *to = r + sw_windows_offset(&w, batch) * (int64_t)bytes;
		if (whole)
			memcpy(to, x + from * (int64_t)bytes, run);
		else
			sw_strided_move(&window, bytes, to, x + from * (int64_t)bytes);
	} while (sw_next_index(w.batch_rank, w.batch_dims, batch));
	return SW_OK;
}
