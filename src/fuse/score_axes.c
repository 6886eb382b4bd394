/* The axes of scores: union of equal ones, and splitting. */
#include "fuse/score_axes.h"

/* A value of 2^63 elements has at most that many axes of two elements or more. */
enum { MAX_AXES = 64 };

typedef struct axis_buffer {
	int32_t n;
	uint32_t v[MAX_AXES];
} axis_buffer;

void sw_axes_clear(sw_axes *axes)
{
	sw_vec_clear(&axes->list);
}

uint32_t sw_axes_add(sw_axes *axes, int64_t size)
{
	uint32_t axis = (uint32_t)axes->list.len;
	sw_score_axis added = {.size = size, .same = axis, .high = SW_NO_ID, .kin = axis};
	sw_vec_push(&axes->list, added);
	return axis;
}

uint32_t sw_axes_kin(const sw_axes *axes, uint32_t axis)
{
	sw_score_axis *list = axes->list.data;
	while (list[axis].kin != axis)
		axis = list[axis].kin = list[list[axis].kin].kin;
	return axis;
}

uint32_t sw_axes_add_kin(sw_axes *axes, int64_t size, uint32_t of)
{
	uint32_t axis = sw_axes_add(axes, size);
	axes->list.data[axis].kin = sw_axes_kin(axes, of);
	return axis;
}

/* Return what an axis was found to be, halving the way to it for the next search. */
static uint32_t find(const sw_axes *axes, uint32_t axis)
{
	sw_score_axis *list = axes->list.data;
	while (list[axis].same != axis)
		axis = list[axis].same = list[list[axis].same].same;
	return axis;
}

static void expand(const sw_axes *axes, uint32_t axis, axis_buffer *out)
{
	uint32_t root = find(axes, axis), high = axes->list.data[root].high;
	if (high == SW_NO_ID) {
		if (out->n < MAX_AXES)
			out->v[out->n++] = root;
		return;
	}
	expand(axes, high, out);
	expand(axes, high + 1, out);
}

static void resolve(const sw_axes *axes, sw_axis_list list, axis_buffer *out)
{
	out->n = 0;
	for (int32_t i = 0; i < list.n; i++)
		expand(axes, list.v[i], out);
}

static sw_axis_list keep(const sw_axes *axes, const axis_buffer *list)
{
	return (sw_axis_list){
		list->n, sw_arena_copy(axes->arena, list->v, sizeof(uint32_t) * (size_t)list->n)};
}

static bool is_resolved(const sw_axes *axes, sw_axis_list list)
{
	for (int32_t i = 0; i < list.n; i++) {
		const sw_score_axis *axis = &axes->list.data[list.v[i]];
		if (axis->same != list.v[i] || axis->high != SW_NO_ID)
			return false;
	}
	return true;
}

sw_axis_list sw_axes_resolve(const sw_axes *axes, sw_axis_list list)
{
	axis_buffer out;
	if (is_resolved(axes, list))
		return list;
	resolve(axes, list, &out);
	return keep(axes, &out);
}

bool sw_axes_have(sw_axis_list list, uint32_t axis)
{
	for (int32_t i = 0; i < list.n; i++)
		if (list.v[i] == axis)
			return true;
	return false;
}

/* Split a whole axis so that its minor part has `low` elements, which divide its size. */
static void split(sw_axes *axes, uint32_t axis, int64_t low)
{
	uint32_t high = sw_axes_add(axes, axes->list.data[axis].size / low);
	sw_axes_add(axes, low);
	axes->list.data[axis].high = high;
}

/* Split the larger one of two axes that begin at the same element. Return false if the smaller one
 * doesn't divide it. */
static bool split_larger(sw_axes *axes, uint32_t x, uint32_t y)
{
	int64_t a = axes->list.data[x].size, b = axes->list.data[y].size;
	if (a > b ? a % b : b % a)
		return false;
	if (a > b)
		split(axes, x, a / b);
	else
		split(axes, y, b / a);
	return true;
}

/* Split axes until both lists have the same sizes. */
static bool align(sw_axes *axes, sw_axis_list x, sw_axis_list y, axis_buffer *a, axis_buffer *b)
{
	int32_t i = 0;
	resolve(axes, x, a);
	resolve(axes, y, b);
	while (i < a->n && i < b->n) {
		if (axes->list.data[a->v[i]].size == axes->list.data[b->v[i]].size) {
			i++;
			continue;
		}
		if (!split_larger(axes, a->v[i], b->v[i]))
			return false;
		resolve(axes, x, a);
		resolve(axes, y, b);
	}
	return a->n == b->n;
}

bool sw_axes_unify(sw_axes *axes, sw_axis_list x, sw_axis_list y)
{
	axis_buffer a, b;
	if (!align(axes, x, y, &a, &b))
		return false;
	sw_axis_list as = {a.n, a.v}, bs = {b.n, b.v};
	for (int32_t i = 0; i < a.n; i++)
		if (a.v[i] != b.v[i] && (sw_axes_have(bs, a.v[i]) || sw_axes_have(as, b.v[i])))
			return false;
	for (int32_t i = 0; i < a.n; i++) {
		axes->list.data[sw_axes_kin(axes, b.v[i])].kin = sw_axes_kin(axes, a.v[i]);
		axes->list.data[b.v[i]].same = a.v[i];
	}
	return true;
}

bool sw_axes_divide(sw_axes *axes, sw_axis_list list, sw_shape shape, sw_axis_list *out,
                    int32_t begin[SW_MAX_RANK + 1])
{
	axis_buffer now;
	int32_t at = 0;
	resolve(axes, list, &now);
	for (int32_t d = 0; d < shape.rank; d++) {
		int64_t rest = shape.dims[d];
		begin[d] = at;
		while (rest > 1) {
			int64_t size = at < now.n ? axes->list.data[now.v[at]].size : 0;
			if (size == 0 || (size > rest ? size % rest : rest % size))
				return false;
			if (size > rest) {
				split(axes, now.v[at], size / rest);
				resolve(axes, list, &now);
				size = rest;
			}
			rest /= size;
			at++;
		}
	}
	begin[shape.rank] = at;
	*out = keep(axes, &now);
	return at == now.n;
}
