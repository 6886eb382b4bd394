/* Move elements between two strided layouts: the engine of broadcast, transpose, slice, pad, ... */
#include "interpret/vector.h"

#include <string.h>

#include "interpret/kernel.h"

typedef struct strided_lanes {
	uint64_t low, high;
} strided_lanes;

/* Drop dimensions of size 1 and merge neighbouring dimensions that form one run in both layouts. */
void sw_strided_simplify(sw_strided *s)
{
	int rank = 0;
	for (int d = 0; d < s->rank; d++) {
		if (s->dims[d] == 1)
			continue;
		bool joins = rank > 0 && s->dst[rank - 1] == s->dst[d] * s->dims[d] &&
		             s->src[rank - 1] == s->src[d] * s->dims[d];
		int at = joins ? rank - 1 : rank;
		s->dims[at] = joins ? s->dims[at] * s->dims[d] : s->dims[d];
		s->dst[at] = s->dst[d];
		s->src[at] = s->src[d];
		rank = at + 1;
	}
	s->rank = rank;
}

/* The two innermost loops, per element size. Tiles keep both sides in the cache if one of them is
 * strided in the inner loop (a transpose). */
enum { TILE = 32 };
#define MOVE(name, T)                                                                              \
	SW_CLONES static void name(const int64_t dims[2], const int64_t dst[2],                    \
	                           const int64_t src[2], void *to, const void *from)               \
	{                                                                                          \
		const int64_t n0 = dims[0], n1 = dims[1];                                          \
		const int64_t d0 = dst[0], d1 = dst[1], s0 = src[0], s1 = src[1];                  \
		T *r = to;                                                                         \
		const T *a = from;                                                                 \
		if (d1 == 1 && s1 == 1 && n1 * (int64_t)sizeof(T) > 256) {                         \
			for (int64_t i = 0; i < n0; i++)                                           \
				memcpy(r + i * d0, a + i * s0, (size_t)n1 * sizeof(T));            \
		} else if (d1 == 1 && s1 == 1) {                                                   \
			for (int64_t i = 0; i < n0; i++)                                           \
				for (int64_t j = 0; j < n1; j++)                                   \
					r[i * d0 + j] = a[i * s0 + j];                             \
		} else if (d1 == 1 && s1 == 0) {                                                   \
			for (int64_t i = 0; i < n0; i++) {                                         \
				const T x = a[i * s0];                                             \
				for (int64_t j = 0; j < n1; j++)                                   \
					r[i * d0 + j] = x;                                         \
			}                                                                          \
		} else {                                                                           \
			for (int64_t i0 = 0; i0 < n0; i0 += TILE)                                  \
				for (int64_t j0 = 0; j0 < n1; j0 += TILE)                          \
					for (int64_t i = i0; i < SW_MIN(i0 + TILE, n0); i++)       \
						for (int64_t j = j0; j < SW_MIN(j0 + TILE, n1);    \
						     j++)                                          \
							r[i * d0 + j * d1] = a[i * s0 + j * s1];   \
		}                                                                                  \
	}
MOVE(move_1, uint8_t)
MOVE(move_2, uint16_t)
MOVE(move_4, uint32_t)
MOVE(move_8, uint64_t)
MOVE(move_16, strided_lanes)

typedef void move_fn(const int64_t dims[2], const int64_t dst[2], const int64_t src[2], void *to,
                     const void *from);

static move_fn *find_move(size_t element_bytes)
{
	switch (element_bytes) {
	case 1:
		return move_1;
	case 2:
		return move_2;
	case 4:
		return move_4;
	case 8:
		return move_8;
	default:
		return move_16;
	}
}

/* Move the dimension that is contiguous in the destination to the end, and before it the one that
 * is contiguous in the source, if there is one: these two loops are tiled. The order of the loops
 * does not change the result. */
static void order_loops(const sw_strided *s, int order[SW_MAX_RANK + 2])
{
	int contiguous = -1;
	for (int d = 0; d < s->rank; d++) {
		order[d] = d;
		if (s->src[d] == 1)
			contiguous = d;
	}
	if (contiguous >= 0 && contiguous < s->rank - 2) {
		for (int d = contiguous; d < s->rank - 2; d++)
			order[d] = d + 1;
		order[s->rank - 2] = contiguous;
	}
}

/* Count as sw_strided_move works: the two innermost loops are a call; where they are tiled, every
 * element is a run of its own. */
sw_loops sw_strided_loops(sw_strided *s)
{
	int order[SW_MAX_RANK + 2];
	sw_loops loops = {.calls = 1, .rows = 1};
	sw_strided_simplify(s);
	order_loops(s, order);
	for (int d = 0; d < s->rank; d++) {
		loops.calls *= d < s->rank - 2 ? (double)s->dims[order[d]] : 1;
		loops.rows *= d < s->rank - 1 ? (double)s->dims[order[d]] : 1;
	}
	int last = s->rank - 1;
	if (last >= 0 && (s->dst[last] != 1 || s->src[last] < 0 || s->src[last] > 1))
		loops.rows *= (double)s->dims[last];
	return loops;
}

void sw_strided_move(const sw_strided *s, size_t element_bytes, void *dst, const void *src)
{
	int order[SW_MAX_RANK + 2];
	int64_t dims[2] = {1, 1}, to[2] = {0, 0}, from[2] = {0, 0}, index[SW_MAX_RANK + 2] = {0};
	for (int d = 0; d < s->rank; d++) {
		if (s->dims[d] <= 0)
			return;
	}
	order_loops(s, order);
	for (int d = s->rank - 1, i = 1; d >= 0 && i >= 0; d--, i--) {
		dims[i] = s->dims[order[d]];
		to[i] = s->dst[order[d]];
		from[i] = s->src[order[d]];
	}
	if (s->rank == 0)
		to[1] = from[1] = 1;
	move_fn *move = find_move(element_bytes);
	const int64_t bytes = (int64_t)element_bytes;
	char *r = dst;
	const char *a = src;
	for (;;) {
		move(dims, to, from, r, a);
		int d = s->rank - 3;
		for (; d >= 0; d--) {
			int o = order[d];
			r += s->dst[o] * bytes;
			a += s->src[o] * bytes;
			if (++index[d] < s->dims[o])
				break;
			r -= s->dims[o] * s->dst[o] * bytes;
			a -= s->dims[o] * s->src[o] * bytes;
			index[d] = 0;
		}
		if (d < 0)
			return;
	}
}

void sw_fill_elements(void *dst, const void *element, size_t element_bytes, int64_t n)
{
	const int64_t dims[2] = {1, n}, to[2] = {0, 1}, from[2] = {0, 0};
	if (n > 0 && element_bytes > 0)
		find_move(element_bytes)(dims, to, from, dst, element);
}

void sw_dense_strides(sw_shape shape, int64_t strides[SW_MAX_RANK])
{
	int64_t stride = 1;
	for (int d = shape.rank - 1; d >= 0; d--) {
		strides[d] = stride;
		stride *= shape.dims[d];
	}
}

sw_status sw_transpose_tensor(sw_interpreter *interpreter, sw_tensor x, const int64_t *order,
                              sw_tensor *out, int64_t dims[SW_MAX_RANK], sw_error *err)
{
	int64_t strides[SW_MAX_RANK], to[SW_MAX_RANK];
	for (int d = 0; d < x.shape.rank; d++)
		dims[d] = x.shape.dims[order[d]];
	sw_shape shape = {.type = x.shape.type, .rank = x.shape.rank, .dims = dims};
	sw_status status = sw_scratch_new(interpreter, shape, out, err);
	if (status != SW_OK)
		return status;
	sw_dense_strides(x.shape, strides);
	sw_dense_strides(shape, to);
	sw_strided s = {.rank = shape.rank};
	for (int d = 0; d < shape.rank; d++) {
		s.dims[d] = dims[d];
		s.dst[d] = to[d];
		s.src[d] = strides[order[d]];
	}
	sw_strided_copy(&s, (size_t)sw_type_bytes(shape.type), sw_tensor_data(*out),
	                sw_tensor_data(x));
	return SW_OK;
}
