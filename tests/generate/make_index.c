/* Indexed reads and writes, some of them out of range. */
#include "generate/maker.h"

#include <math.h>
#include <string.h>

/* ---- dynamic slices --------------------------------------------------------------------- */

static void some_starts(maker *m, sw_shape shape, const int64_t *sizes, sw_id *starts)
{
	sw_type type = chance(m, 60) ? SW_S32 : random_type(m, INTEGERS);
	int64_t low = is_kind(type, KIND(SIGNED)) ? -1 : 0;
	for (int32_t d = 0; d < shape.rank; d++) {
		double room = (double)(shape.dims[d] - sizes[d] + 1),
		       far = chance(m, 8) ? 0x1p40 : room;
		sw_shape one = make_shape(m, type, NULL, 0);
		starts[d] = chance(m, 30)
		                    ? pick_like(m, one, true)
		                    : fresh_integers(m, one, low,
		                                     (int64_t)fmin(largest_integer(type), far));
	}
}

static void part_sizes(maker *m, sw_shape shape, int64_t *sizes)
{
	for (int32_t d = 0; d < shape.rank; d++) {
		sizes[d] = shape.dims[d];
		if (shape.dims[d] > 1 && chance(m, 55))
			sizes[d] = chance(m, 40) ? 1 : between(m, 1, shape.dims[d]);
	}
}

static void make_dynamic_slice(maker *m)
{
	sw_id in[1 + SW_MAX_RANK] = {
		pick(m, (operand_need){.kinds = ANY_KIND, .min_rank = 1, .max_rank = 5})};
	sw_shape shape = shape_of(m, in[0]);
	int64_t sizes[SW_MAX_RANK];
	part_sizes(m, shape, sizes);
	some_starts(m, shape, sizes, in + 1);
	sw_attrs attrs = {.dynamic_slice = {ints_of(m, sizes, shape.rank)}};
	add_to_pool(
		m,
		write_simple_op(m, SW_OP_DYNAMIC_SLICE, in, 1 + (uint32_t)shape.rank, &attrs, NULL),
		*fact(m, in[0]));
}

static void make_dynamic_update_slice(maker *m)
{
	sw_id in[2 + SW_MAX_RANK] = {
		pick(m, (operand_need){.kinds = ANY_KIND, .min_rank = 1, .max_rank = 5})};
	sw_shape shape = shape_of(m, in[0]);
	int64_t sizes[SW_MAX_RANK];
	part_sizes(m, shape, sizes);
	in[1] = pick_like(m, make_shape(m, shape.type, sizes, shape.rank), false);
	some_starts(m, shape, sizes, in + 2);
	add_to_pool(m,
	            write_simple_op(m, SW_OP_DYNAMIC_UPDATE_SLICE, in, 2 + (uint32_t)shape.rank,
	                            NULL, NULL),
	            facts_either(*fact(m, in[0]), *fact(m, in[1])));
}

/* ---- gather and scatter ----------------------------------------------------------------- */

/* A way to index an operand. Each of its dimensions is in windows (whole or in part), collapsed
 * (inserted), or batching; and indexed or not. The indices have batch dimensions, some of which are
 * the operand's, and the index vector at any position. Slices have both kinds, mixed. */
typedef struct indexing {
	sw_index_dims dims;
	sw_shape operand, indices, slices;
	int64_t largest; /* the largest start that is in range in some dimension */
	double updates;  /* number of slices */
} indexing;

typedef struct draft {
	int64_t window[SW_MAX_RANK], collapsed[SW_MAX_RANK], map[SW_MAX_RANK],
		operand_batch[SW_MAX_RANK], sizes[SW_MAX_RANK], offset_sizes[SW_MAX_RANK];
	int32_t n_window, n_collapsed, n_map, n_batch;
} draft;

static void draft_operand(maker *m, sw_shape shape, draft *d, int64_t *largest)
{
	int64_t order[SW_MAX_RANK], map[SW_MAX_RANK];
	for (int32_t i = 0; i < shape.rank; i++) {
		int64_t use = below(m, 10), size = shape.dims[i];
		bool indexed = chance(m, 60);
		d->sizes[i] = 1;
		if (use < 2) {
			d->operand_batch[d->n_batch++] = i;
			continue;
		}
		if (use < 5) {
			d->collapsed[d->n_collapsed++] = i;
			indexed = size != 1 || indexed;
		} else {
			d->sizes[i] = chance(m, 60)   ? size
			              : chance(m, 50) ? 1
			                              : between(m, 1, SW_MAX(size, 1));
			d->offset_sizes[d->n_window++] = d->sizes[i];
		}
		if (indexed)
			d->map[d->n_map++] = i;
		*largest = SW_MAX(*largest, size);
	}
	shuffle(m, order, d->n_map);
	memcpy(map, d->map, sizeof(map));
	for (int32_t i = 0; i < d->n_map; i++)
		d->map[i] = map[order[i]];
}

/* Draft the indices: the operand's batch dimensions in some order among free ones; then the index
 * vector at any position. */
static int32_t draft_indices(maker *m, sw_shape shape, const draft *d, int64_t *sizes,
                             int64_t *batch_at)
{
	int64_t order[SW_MAX_RANK], all[SW_MAX_RANK];
	int32_t free_dims = (int32_t)between(m, 0, 2), rank = d->n_batch + free_dims;
	for (int32_t i = 0; i < rank; i++)
		all[i] = i < d->n_batch ? shape.dims[d->operand_batch[i]] : random_size(m);
	shuffle(m, order, rank);
	for (int32_t i = 0; i < rank; i++) {
		sizes[order[i]] = all[i];
		if (i < d->n_batch)
			batch_at[i] = order[i];
	}
	return rank;
}

/* Window dimensions keep their order and stand anywhere among the batch dimensions. */
static int32_t draft_slices(maker *m, const draft *d, const int64_t *batch, int32_t n_batch,
                            int64_t *dims, int64_t *offset)
{
	int32_t rank = 0, w = 0, b = 0;
	bool last = chance(m, 50);
	while (w < d->n_window || b < n_batch) {
		bool window = b == n_batch || (w < d->n_window && !last && chance(m, 50));
		if (window)
			offset[w] = rank;
		dims[rank++] = window ? d->offset_sizes[w++] : batch[b++];
	}
	return rank;
}

static bool random_indexing(maker *m, sw_shape operand, indexing *x)
{
	draft d = {.n_map = 0};
	int64_t sizes[SW_MAX_RANK], at[SW_MAX_RANK], dims[SW_MAX_RANK], offset[SW_MAX_RANK],
		largest = 0;
	draft_operand(m, operand, &d, &largest);
	int32_t n = draft_indices(m, operand, &d, sizes, at),
		rank = draft_slices(m, &d, sizes, n, dims, offset);
	x->updates = 1;
	for (int32_t i = 0; i < n; i++)
		x->updates *= (double)sizes[i];
	int64_t where = d.n_map == 1 && chance(m, 30) ? n : between(m, 0, n);
	bool scalars = where == n && d.n_map == 1 && chance(m, 50);
	if (rank > 6)
		return false;
	if (!scalars) {
		memmove(sizes + where + 1, sizes + where, sizeof(*sizes) * (size_t)(n - where));
		sizes[where] = d.n_map;
		for (int32_t i = 0; i < d.n_batch; i++)
			at[i] += at[i] >= where;
		n++;
	}
	x->operand = operand;
	x->indices = make_shape(m, chance(m, 60) ? SW_S32 : random_type(m, INTEGERS), sizes, n);
	x->slices = make_shape(m, operand.type, dims, rank);
	x->largest = largest;
	x->dims = (sw_index_dims){.offset = ints_of(m, offset, d.n_window),
	                          .collapsed = ints_of(m, d.collapsed, d.n_collapsed),
	                          .start_index_map = ints_of(m, d.map, d.n_map),
	                          .operand_batch = ints_of(m, d.operand_batch, d.n_batch),
	                          .index_batch = ints_of(m, at, d.n_batch),
	                          .index_vector_dim = where,
	                          .slice_sizes = ints_of(m, d.sizes, operand.rank)};
	return elements(x->slices) <= 3000 && elements(x->indices) <= 3000;
}

/* Make indices that are mostly in range, or next to it; sometimes anywhere. */
static sw_id indices_for(maker *m, const indexing *x)
{
	sw_type type = x->indices.type;
	bool is_signed = is_kind(type, KIND(SIGNED));
	if (chance(m, 15))
		return pick_like(m, x->indices, true);
	if (chance(m, 10)) {
		int64_t far = (int64_t)fmin(largest_integer(type), 0x1p40);
		return fresh_integers(m, x->indices, is_signed ? -far : 0, far);
	}
	return fresh_integers(m, x->indices, is_signed ? -1 : 0,
	                      (int64_t)fmin((double)x->largest, largest_integer(type)));
}

static void make_gather(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .min_rank = 1, .max_rank = 4});
	indexing how;
	if (!random_indexing(m, shape_of(m, x), &how))
		return;
	sw_attrs attrs = {.index = how.dims};
	sw_id two[] = {x, indices_for(m, &how)};
	add_to_pool(m, write_simple_op(m, SW_OP_GATHER, two, 2, &attrs, NULL), *fact(m, x));
}

/* (x, y) -> y */
static int32_t second(maker *m, const sw_type *types, uint32_t n)
{
	scope s;
	sw_id results[2];
	scope_open(m, &s, "second");
	for (uint32_t i = 0; i < 2 * n; i++) {
		sw_shape shape = {.type = types[i % n]};
		value_facts k = {0};
		sw_id id = scope_parameter(m, &shape, &k, 1, false);
		if (i >= n)
			results[i - n] = id;
	}
	return scope_close(m, &s, results, n, n > 1);
}

static value_facts scattered(sw_type type, sw_monoid monoid, const indexing *x, value_facts a,
                             value_facts u)
{
	if (type == SW_PRED)
		return (value_facts){0, 1, 0, true};
	if (monoid == SW_MONOID_SUM)
		return round_chain(type, facts_add(a, facts_times(u, x->updates)), x->updates);
	if (monoid == SW_MONOID_AND || monoid == SW_MONOID_OR)
		return round_facts(type, (value_facts){-INFINITY, INFINITY, 0, true});
	return facts_either(a, u);
}

static void make_scatter(maker *m)
{
	static const sw_monoid monoids[] = {SW_MONOID_SUM,  SW_MONOID_SUM,  SW_MONOID_SUM,
	                                    SW_MONOID_NONE, SW_MONOID_NONE, SW_MONOID_MAX,
	                                    SW_MONOID_MIN,  SW_MONOID_AND,  SW_MONOID_OR};
	sw_id in[5] = {pick(m, (operand_need){.kinds = ANY_KIND, .min_rank = 1, .max_rank = 4})};
	sw_shape shape = shape_of(m, in[0]);
	uint32_t kinds_of_all = is_kind(shape.type, KIND(COMPLEX)) ? 5
	                        : is_kind(shape.type, KIND(FLOAT)) ? 7
	                                                           : 9;
	sw_monoid monoid = monoids[below(m, kinds_of_all)];
	indexing how;
	if (shape.type == SW_PRED && monoid == SW_MONOID_SUM)
		monoid = SW_MONOID_OR;
	if (!random_indexing(m, shape, &how))
		return;
	sw_attrs attrs = {.index = how.dims};
	attrs.index.slice_sizes = (sw_ints){0};
	sw_type types[2] = {shape.type};
	bool once = !m->options->portable || how.updates <= 1;
	uint32_t n = monoid == SW_MONOID_NONE && chance(m, 30) && once ? 2 : 1;
	if (n == 2) {
		types[1] = random_type(m, ANY_KIND);
		in[1] = pick_like(m, make_shape(m, types[1], shape.dims, shape.rank), false);
	}
	in[n] = indices_for(m, &how);
	for (uint32_t i = 0; i < n; i++)
		in[n + 1 + i] = pick_like(
			m, make_shape(m, types[i], how.slices.dims, how.slices.rank), false);
	int32_t called =
		monoid == SW_MONOID_NONE ? second(m, types, n) : reducer(m, monoid, shape.type);
	sw_op_spec spec = {.opcode = SW_OP_SCATTER,
	                   .operands = in,
	                   .n_operands = 2 * n + 1,
	                   .attrs = &attrs,
	                   .called = &called,
	                   .n_called = 1};
	sw_id first = write_op(m, &spec);
	for (uint32_t i = 0; i < n; i++)
		add_to_pool(m, first + i,
		            scattered(types[i], monoid, &how, *fact(m, in[i]),
		                      *fact(m, in[n + 1 + i])));
}

static const make_row rows[] = {
	{"dynamic-slice", 5, make_dynamic_slice},
	{"dynamic-update-slice", 5, make_dynamic_update_slice},
	{"gather", 9, make_gather},
	{"scatter", 9, make_scatter},
};
const make_table makers_index = {rows, SW_COUNT(rows)};
