/* Sides as text: "S0RR@2x4:0-7" and "[S0 B]@2x4:0-7" (docs/reshard.md). */
#include "crossmesh/crossmesh.h"

#include <ctype.h>
#include <string.h>

/* ---- shapes ----------------------------------------------------------------------------- */

static bool read_number(const char **at, int64_t *number)
{
	if (!isdigit((unsigned char)**at))
		return false;
	*number = 0;
	for (; isdigit((unsigned char)**at); (*at)++) {
		if (*number > (INT64_MAX - 9) / 10)
			return false;
		*number = *number * 10 + (**at - '0');
	}
	return true;
}

static sw_status bad_shape(const char *text, sw_error *err)
{
	return sw_fail(err, SW_ERR_INPUT,
	               "shape \"%s\": expected an element type and at most %d sizes, such as "
	               "f32[1024,512]",
	               text, SW_MAX_RANK);
}

static sw_status check_size(const char *text, sw_shape shape, sw_error *err)
{
	int64_t bytes = SW_MAX(sw_type_bytes(shape.type), 1);
	for (int32_t d = 0; d < shape.rank; d++)
		if (!sw_mul_i64(bytes, SW_MAX(shape.dims[d], 1), &bytes) || bytes >> 60)
			return sw_fail(err, SW_ERR_INPUT,
			               "shape \"%s\": expected less than 2^60 bytes", text);
	return SW_OK;
}

sw_status sw_crossmesh_parse_shape(const char *text, sw_arena *arena, sw_shape *shape,
                                   sw_error *err)
{
	const char *at = strchr(text, '[');
	int64_t *dims = SW_NEW_N(arena, int64_t, SW_MAX_RANK);
	*shape = (sw_shape){.dims = dims};
	if (!at || !sw_type_find(text, (size_t)(at - text), &shape->type) ||
	    sw_type_bytes(shape->type) == 0)
		return bad_shape(text, err);
	for (at++; *at != ']'; at++) {
		if (shape->rank == SW_MAX_RANK || !read_number(&at, &dims[shape->rank++]))
			return bad_shape(text, err);
		if (*at == ']')
			break;
		if (*at != ',')
			return bad_shape(text, err);
	}
	if (at[1])
		return bad_shape(text, err);
	return check_size(text, *shape, err);
}

/* ---- meshes ----------------------------------------------------------------------------- */

typedef SW_VEC(int64_t) device_numbers;

static sw_status bad_mesh(const char *text, const char *why, sw_error *err)
{
	return sw_fail(err, SW_ERR_INPUT, "mesh \"%s\": %s", text, why);
}

static sw_status read_grid(const char *text, const char **at, sw_atoms *axes, sw_error *err)
{
	for (;; (*at)++) {
		int64_t size;
		if (axes->n == SW_MAX_ATOMS)
			return bad_mesh(text, "expected at most 20 axes", err);
		if (!read_number(at, &size) || size < 1 || size > INT32_MAX)
			return bad_mesh(text, "expected sizes of axes, such as 2x4", err);
		axes->size[axes->n++] = (int32_t)size;
		if (**at != 'x')
			break;
	}
	if (**at != ':')
		return bad_mesh(text, "expected : and devices after the grid, such as 2x4:0-7",
		                err);
	(*at)++;
	return SW_OK;
}

static sw_status read_devices(const char *text, const char *at, int64_t n_devices,
                              device_numbers *list, sw_error *err)
{
	for (;; at++) {
		int64_t first, last;
		if (!read_number(&at, &first))
			return bad_mesh(text, "expected devices, such as 0-7 or 0-2,4-6", err);
		last = first;
		if (*at == '-' && (at++, !read_number(&at, &last)))
			return bad_mesh(text, "expected a device after -, as in 0-7", err);
		if (last < first)
			return bad_mesh(text, "expected ranges that ascend, such as 0-7", err);
		if (last >= n_devices)
			return sw_fail(err, SW_ERR_INPUT,
			               "mesh \"%s\": device %lld is beyond the cluster, whose "
			               "devices are 0 to %lld",
			               text, (long long)last, (long long)n_devices - 1);
		for (int64_t d = first; d <= last && (int64_t)list->len <= n_devices; d++)
			sw_vec_push(list, d);
		if (*at != ',')
			break;
	}
	return *at ? bad_mesh(text, "expected a comma or the end after a range of devices", err)
	           : SW_OK;
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

static sw_status check_distinct(const char *text, const device_numbers *list, sw_error *err)
{
	sw_status status = SW_OK;
	int64_t *sorted = sw_alloc(list->len * sizeof(*sorted));
	memcpy(sorted, list->data, list->len * sizeof(*sorted));
	qsort(sorted, list->len, sizeof(*sorted), compare_numbers);
	for (size_t i = 1; i < list->len && status == SW_OK; i++)
		if (sorted[i] == sorted[i - 1])
			status = sw_fail(err, SW_ERR_INPUT, "mesh \"%s\": device %lld twice", text,
			                 (long long)sorted[i]);
	free(sorted);
	return status;
}

static sw_status check_count(const char *text, const sw_atoms *axes, const device_numbers *list,
                             sw_error *err)
{
	int64_t grid = 1;
	for (int32_t a = 0; a < axes->n && grid <= INT32_MAX; a++)
		grid *= axes->size[a];
	if (grid == (int64_t)list->len)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT, "mesh \"%s\": the grid has %lld places for %zu device%s",
	               text, (long long)grid, list->len, list->len == 1 ? "" : "s");
}

static sw_status read_mesh(const char *text, int64_t n_devices, sw_crossmesh_side *side,
                           device_numbers *list, sw_error *err)
{
	const char *at = text;
	sw_status status = SW_OK;
	if (strchr(text, ':'))
		status = read_grid(text, &at, &side->axes, err);
	if (status == SW_OK)
		status = read_devices(text, at, n_devices, list, err);
	if (status == SW_OK)
		status = check_distinct(text, list, err);
	if (status)
		return status;
	if (side->axes.n == 0)
		side->axes = (sw_atoms){1, {(int32_t)list->len}};
	return check_count(text, &side->axes, list, err);
}

/* ---- layouts as specs: S01RR+P2 --------------------------------------------------------- */

typedef struct spec_reader {
	const char *text, *at;
	sw_shape shape;
	sw_crossmesh_side *side;
	sw_error *err;
} spec_reader;

static sw_status bad_spec(const spec_reader *r, const char *why)
{
	return sw_fail(r->err, SW_ERR_INPUT, "layout \"%s\", character %d: %s", r->text,
	               (int)(r->at - r->text) + 1, why);
}

/* Read one digit, an axis that nothing has used yet. */
static sw_status read_axis(spec_reader *r, int32_t *axis)
{
	*axis = *r->at - '0';
	if (!isdigit((unsigned char)*r->at))
		return bad_spec(r, "expected the number of an axis of the mesh, as in S0");
	if (*axis >= r->side->axes.n)
		return bad_spec(r, "the mesh has no such axis");
	if (r->side->layout.state[*axis].kind != SW_STATE_B)
		return bad_spec(r, "this axis is used twice");
	r->at++;
	return SW_OK;
}

/* The first axis takes the largest blocks. An axis of one device divides nothing, wherever it is
 * written: it has the stride of the outermost one, so that no two have the same. */
static sw_status read_split(spec_reader *r, int32_t dim)
{
	sw_layout *layout = &r->side->layout;
	int32_t axes[10], n = 0;
	int64_t parts = 1;
	do {
		sw_status status = read_axis(r, &axes[n]);
		if (status)
			return status;
		layout->state[axes[n]] = (sw_state){.kind = SW_STATE_S, .dim = (int8_t)dim};
		parts *= r->side->axes.size[axes[n++]];
	} while (isdigit((unsigned char)*r->at));
	int64_t stride = sw_ceil_div(SW_MAX(r->shape.dims[dim], 1), parts), whole = stride * parts;
	while (n-- > 0) {
		int32_t size = r->side->axes.size[axes[n]];
		layout->state[axes[n]].stride = size == 1 ? whole : stride;
		stride *= size;
	}
	return SW_OK;
}

static bool read_monoid(spec_reader *r, sw_monoid *monoid)
{
	*monoid = SW_MONOID_SUM;
	if (*r->at != '(')
		return true;
	const char *end = strchr(r->at, ')');
	for (int m = SW_MONOID_SUM; end && m <= SW_MONOID_OR; m++) {
		const char *name = sw_monoid_name((sw_monoid)m);
		if (strlen(name) == (size_t)(end - r->at - 1) &&
		    strncmp(name, r->at + 1, strlen(name)) == 0) {
			*monoid = (sw_monoid)m;
			r->at = end + 1;
			return true;
		}
	}
	return false;
}

static sw_status read_partial(spec_reader *r)
{
	r->at += 2;
	do {
		int32_t axis;
		sw_status status = read_axis(r, &axis);
		if (status)
			return status;
		r->side->layout.state[axis].kind = SW_STATE_P;
	} while (isdigit((unsigned char)*r->at));
	return read_monoid(r, &r->side->layout.monoid)
	               ? SW_OK
	               : bad_spec(r, "expected (sum), (product), (max), (min), (and) or (or)");
}

static sw_status read_spec(spec_reader *r)
{
	sw_status status = SW_OK;
	for (int32_t d = 0; d < r->shape.rank && status == SW_OK; d++) {
		char letter = *r->at;
		if (letter != 'R' && letter != 'S')
			return bad_spec(r, "expected S or R for each dimension of the shape");
		r->at++;
		if (letter == 'S')
			status = read_split(r, d);
	}
	if (status == SW_OK && strncmp(r->at, "+P", 2) == 0)
		status = read_partial(r);
	if (status == SW_OK && *r->at)
		return bad_spec(r, "expected the end, or +P and axes that hold terms");
	return status;
}

/* ---- layouts as states: [S0 B P(sum)] --------------------------------------------------- */

/* Round the dims up to what the states ask for, so that they parse: S<dim> asks for a multiple of
 * all its axes, S<dim>/<stride> for a multiple of its stride times the axis. Whatever else is wrong
 * is left to the parser. */
static void pad_for_states(const char *text, sw_shape shape, sw_crossmesh_side *side)
{
	int64_t multiple[SW_MAX_RANK];
	int32_t axis = 0;
	for (int32_t d = 0; d < shape.rank; d++)
		multiple[d] = 1;
	for (const char *at = text; *at && axis < side->axes.n; at++) {
		bool begins = at == text || at[-1] == '[' || at[-1] == ' ';
		int64_t dim, stride, size = side->axes.size[axis];
		if (!begins || *at == ' ' || *at == '[')
			continue;
		axis++;
		const char *end = at + 1;
		if (*at != 'S' || !read_number(&end, &dim) || dim >= shape.rank)
			continue;
		if (*end == '/' && (end++, read_number(&end, &stride)) && stride < INT32_MAX)
			multiple[dim] = SW_MAX(multiple[dim], stride * size);
		else if (multiple[dim] < INT32_MAX)
			multiple[dim] *= size;
	}
	for (int32_t d = 0; d < shape.rank; d++)
		side->dims[d] =
			multiple[d] == 1
				? shape.dims[d]
				: sw_ceil_div(SW_MAX(shape.dims[d], 1), multiple[d]) * multiple[d];
}

static sw_status read_layout(const char *text, sw_shape shape, sw_crossmesh_side *side,
                             sw_error *err)
{
	side->layout = sw_layout_replicated(&side->axes);
	if (*text == '[') {
		pad_for_states(text, shape, side);
		shape.dims = side->dims;
		sw_status status = sw_layout_parse(&side->axes, shape, text, &side->layout, err);
		if (status && err) /* its place is in the text, not in a file */
			err->line = err->column = 0;
		return status;
	}
	spec_reader r = {.text = text, .at = text, .shape = shape, .side = side, .err = err};
	sw_status status = read_spec(&r);
	if (status == SW_OK)
		sw_crossmesh_pad(side, shape);
	return status;
}

sw_status sw_crossmesh_parse_side(const char *text, sw_shape shape, const sw_cluster *cluster,
                                  sw_arena *arena, sw_crossmesh_side *side, sw_error *err)
{
	const char *at = strchr(text, '@');
	device_numbers devices = {0};
	*side = (sw_crossmesh_side){0};
	if (!at)
		return sw_fail(err, SW_ERR_INPUT,
		               "\"%s\": expected a layout, @ and a mesh, such as S0RR@2x4:0-7",
		               text);
	sw_status status = read_mesh(at + 1, cluster->n_devices, side, &devices, err);
	if (status == SW_OK) {
		side->devices =
			sw_arena_copy(arena, devices.data, devices.len * sizeof(*devices.data));
		status = read_layout(sw_arena_text_n(arena, text, (size_t)(at - text)), shape, side,
		                     err);
	}
	sw_vec_clear(&devices);
	return status;
}

/* ---- printing --------------------------------------------------------------------------- */

void sw_crossmesh_print_side(const sw_crossmesh_side *side, sw_shape shape, sw_text *text)
{
	int64_t n = sw_atoms_devices(&side->axes);
	shape.dims = side->dims;
	sw_layout_print(&side->axes, shape, &side->layout, text);
	sw_text_add(text, "@");
	for (int32_t a = 0; a < side->axes.n; a++)
		sw_text_addf(text, "%s%d", a ? "x" : "", side->axes.size[a]);
	for (int64_t i = 0, last; i < n; i = last + 1) {
		last = i;
		while (last + 1 < n && side->devices[last + 1] == side->devices[last] + 1)
			last++;
		sw_text_addf(text, "%s%lld", i ? "," : ":", (long long)side->devices[i]);
		if (last > i)
			sw_text_addf(text, "-%lld", (long long)side->devices[last]);
	}
}
