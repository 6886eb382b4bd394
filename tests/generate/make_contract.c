/* Contractions (dot, convolution) and linear algebra. */
#include "generate/maker.h"

#include <math.h>

#include "interpret/kernel.h"

/* A library sums f32 products in f32, in an order of its own: the errors grow like a random
 * walk. */
static value_facts contracted(sw_type type, value_facts a, value_facts b, double terms)
{
	value_facts k = facts_multiply(a, b);
	if (is_kind(type, KIND(COMPLEX)))
		k = (value_facts){-2 * size_of(k), 2 * size_of(k), 2 * k.error, k.integral};
	value_facts rounded = round_sum(type, facts_times(k, terms), terms);
	if (rounded.error > 0 && (type == SW_F32 || type == SW_C64))
		rounded.error += sqrt(terms) * unit_of(type) * size_of(k) * terms;
	return rounded;
}

/* Products of narrow numbers may be summed in a wider type. */
static sw_type wider(maker *m, sw_type type)
{
	if ((type == SW_BF16 || type == SW_F16) && chance(m, 50))
		return SW_F32;
	if ((type == SW_S8 || type == SW_S16) && chance(m, 50))
		return SW_S32;
	return type;
}

/* A draft of a product: the kind and the position of each dimension of the right operand. */
enum { BATCH, CONTRACTED, FREE };
typedef struct product {
	sw_shape left;
	int32_t n_batch, n_contracted, rank;
	int64_t left_batch[SW_MAX_RANK], left_contracted[SW_MAX_RANK];
	int64_t right_batch[SW_MAX_RANK], right_contracted[SW_MAX_RANK];
	int use[SW_MAX_RANK];
	int64_t sizes[SW_MAX_RANK],
		/* of the right operand, before and after they are put in order */
		dims[SW_MAX_RANK];
	double terms;
} product;

static void add_right(product *p, int use, int64_t size)
{
	p->use[p->rank] = use;
	p->sizes[p->rank++] = size;
}

/* Each dimension of the left operand is batch, contracted (at least one) or free; the right operand
 * has the batch and contracted ones, and free ones of its own. */
static void draft_left(maker *m, product *p)
{
	for (int32_t d = 0; d < p->left.rank; d++) {
		int64_t use = below(m, 10), size = p->left.dims[d];
		if (use < 2) {
			p->left_batch[p->n_batch++] = d;
			add_right(p, BATCH, size);
		} else if (use < 6 || (d + 1 == p->left.rank && p->n_contracted == 0)) {
			p->left_contracted[p->n_contracted++] = d;
			add_right(p, CONTRACTED, size);
			p->terms *= (double)size;
		}
	}
	for (int64_t n = between(m, 0, 2); n > 0; n--)
		add_right(p, FREE, random_size(m));
}

/* Put the dimensions of the right operand in a random order; the lists follow it. */
static void draft_right(maker *m, product *p)
{
	int64_t order[SW_MAX_RANK];
	int32_t batch = 0, contracted = 0;
	shuffle(m, order, p->rank);
	for (int32_t i = 0; i < p->rank; i++) {
		p->dims[order[i]] = p->sizes[i];
		if (p->use[i] == BATCH)
			p->right_batch[batch++] = order[i];
		else if (p->use[i] == CONTRACTED)
			p->right_contracted[contracted++] = order[i];
	}
}

static int32_t add_free(sw_ints batch, sw_ints contracted, const int64_t *dims, int32_t rank,
                        int64_t *out, int32_t n)
{
	for (int32_t d = 0; d < rank; d++)
		if (!sw_ints_has(batch, d) && !sw_ints_has(contracted, d))
			out[n++] = dims[d];
	return n;
}

/* Batch dimensions first, then the free ones of either side. */
static sw_shape product_shape(maker *m, const product *p, const sw_attrs *attrs, sw_type type)
{
	int64_t out[2 * SW_MAX_RANK];
	int32_t n = 0;
	for (int32_t i = 0; i < p->n_batch; i++)
		out[n++] = p->left.dims[p->left_batch[i]];
	n = add_free(attrs->dot.lhs_batch, attrs->dot.lhs_contracting, p->left.dims, p->left.rank,
	             out, n);
	n = add_free(attrs->dot.rhs_batch, attrs->dot.rhs_contracting, p->dims, p->rank, out, n);
	return make_shape(m, type, out, n);
}

static void make_dot(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = NUMBERS, .min_rank = 1, .max_rank = 4});
	product p = {.left = shape_of(m, x), .terms = 1};
	draft_left(m, &p);
	draft_right(m, &p);
	sw_attrs attrs = {
		.dot = {.lhs_batch = ints_of(m, p.left_batch, p.n_batch),
	                .rhs_batch = ints_of(m, p.right_batch, p.n_batch),
	                .lhs_contracting = ints_of(m, p.left_contracted, p.n_contracted),
	                .rhs_contracting = ints_of(m, p.right_contracted, p.n_contracted)}};
	sw_type type = wider(m, p.left.type);
	sw_shape shape = product_shape(m, &p, &attrs, type);
	if (elements(shape) > 4000 || shape.rank > 6)
		return;
	sw_id y = pick_like(m, make_shape(m, p.left.type, p.dims, p.rank), false);
	value_facts k = contracted(type, *fact(m, x), *fact(m, y), p.terms);
	add_to_pool(m, write_simple_op(m, SW_OP_DOT, (sw_id[]){x, y}, 2, &attrs, &shape), k);
}

/* Rows in groups, each with a matrix of its own; or columns in groups, each with a product of its
 * own. */
static void make_ragged_dot(maker *m)
{
	int64_t groups = between(m, 1, 4), rows = random_size(m), inner = random_size(m),
		columns = random_size(m);
	bool apart = chance(m, 40);
	sw_type type = random_type(m, KIND(FLOAT));
	if (!generate_can_compute(SW_OP_RAGGED_DOT) || sw_type_bits(type) < 16)
		return;
	sw_shape left = make_shape(m, type, (int64_t[]){rows, inner}, 2),
		 right = apart ? make_shape(m, type, (int64_t[]){inner, columns}, 2)
	                       : make_shape(m, type, (int64_t[]){groups, inner, columns}, 3),
		 sizes = make_shape(m, SW_S32, &groups, 1);
	sw_id three[] = {pick_like(m, left, false), pick_like(m, right, false),
	                 fresh_integers(m, sizes, 0, (apart ? inner : rows) / groups)};
	sw_attrs attrs = {.dot = {.lhs_contracting = ints_of(m, (int64_t[]){1}, 1),
	                          .rhs_contracting = ints_of(m, (int64_t[]){apart ? 0 : 1}, 1),
	                          .lhs_ragged = ints_of(m, (int64_t[]){apart ? 1 : 0}, 1),
	                          .rhs_group = ints_of(m, (int64_t[]){0}, apart ? 0 : 1)}};
	value_facts k = contracted(type, *fact(m, three[0]), *fact(m, three[1]), (double)inner);
	add_to_pool(m, write_simple_op(m, SW_OP_RAGGED_DOT, three, 3, &attrs, NULL), k);
}

/* Operands with one scale per block of elements. */
static void make_scaled_dot(maker *m)
{
	int64_t rows = random_size(m), inner = random_size(m), columns = random_size(m);
	int64_t part = inner % 2 == 0 ? inner / 2 : inner;
	sw_type type = chance(m, 60) ? SW_F32 : SW_BF16;
	if (!generate_can_compute(SW_OP_SCALED_DOT))
		return;
	sw_id four[] = {pick_like(m, make_shape(m, type, (int64_t[]){rows, inner}, 2), false),
	                pick_like(m, make_shape(m, type, (int64_t[]){columns, inner}, 2), false),
	                fresh_integers(m, make_shape(m, type, (int64_t[]){rows, part}, 2), 1, 2),
	                fresh_integers(m, make_shape(m, type, (int64_t[]){1, part}, 2), 1, 2)};
	sw_attrs attrs = {.dot = {.lhs_contracting = ints_of(m, (int64_t[]){1}, 1),
	                          .rhs_contracting = ints_of(m, (int64_t[]){1}, 1)}};
	value_facts x = round_facts(type, facts_multiply(*fact(m, four[0]), *fact(m, four[2]))),
		    y = round_facts(type, facts_multiply(*fact(m, four[1]), *fact(m, four[3])));
	add_to_pool(m, write_simple_op(m, SW_OP_SCALED_DOT, four, 4, &attrs, NULL),
	            contracted(type, x, y, (double)inner));
}

/* ---- convolution ------------------------------------------------------------------------ */

static bool space(maker *m, int64_t *size, sw_window_dim *w)
{
	*size = between(m, 2, 8);
	*w = (sw_window_dim){.size = between(m, 1, 4),
	                     .stride = chance(m, 35) ? between(m, 2, 3) : 1,
	                     .lhs_dilate = chance(m, 20) ? 2 : 1,
	                     .rhs_dilate = chance(m, 20) ? 2 : 1,
	                     .reversal = chance(m, 15)};
	int64_t reach = (w->size - 1) * w->rhs_dilate + 1, whole = (*size - 1) * w->lhs_dilate + 1;
	w->pad_low = chance(m, 60) ? (reach - 1) / 2 : between(m, -1, 3);
	w->pad_high = chance(m, 60) ? reach - 1 - (reach - 1) / 2 : between(m, -1, 3);
	return whole + w->pad_low + w->pad_high >= reach && whole + w->pad_low > 0 &&
	       whole + w->pad_high > 0;
}

/* Return the positions of two named dimensions and n spatial ones. */
static sw_ints labels(maker *m, int32_t n, int64_t *first, int64_t *second)
{
	int64_t order[SW_MAX_RANK];
	shuffle(m, order, n + 2);
	*first = order[0];
	*second = order[1];
	return ints_of(m, order + 2, n);
}

static sw_shape labelled(maker *m, sw_type type, int64_t first, int64_t first_size, int64_t second,
                         int64_t second_size, sw_ints spatial, const int64_t *sizes)
{
	int64_t dims[SW_MAX_RANK];
	dims[first] = first_size;
	dims[second] = second_size;
	for (int32_t i = 0; i < spatial.n; i++)
		dims[spatial.v[i]] = sizes[i];
	return make_shape(m, type, dims, spatial.n + 2);
}

static void make_convolution(maker *m)
{
	static const int64_t features[] = {1, 2, 3, 4, 4, 6, 8};
	int32_t n = (int32_t)between(m, 1, 2);
	int64_t sizes[2], kernel_sizes[2];
	double terms = 1;
	sw_window_dim *w = SW_NEW_N(&m->program->arena, sw_window_dim, n);
	for (int32_t i = 0; i < n; i++) {
		if (!space(m, &sizes[i], &w[i]))
			return;
		kernel_sizes[i] = w[i].size;
		terms *= (double)w[i].size;
	}
	sw_type type = random_type(m, INTEGERS | KIND(FLOAT));
	int64_t groups = chance(m, 35) ? between(m, 2, 4) : 1, in = features[below(m, 7)],
		out = features[below(m, 7)], batch = features[below(m, 7)];
	sw_attrs attrs;
	sw_attrs_init(SW_OP_CONVOLUTION, &attrs);
	attrs.convolution.window = (sw_window){n, w};
	attrs.convolution.feature_groups = attrs.convolution.batch_groups = 1;
	if (groups > 1 && chance(m, 60))
		attrs.convolution.feature_groups = groups;
	else
		attrs.convolution.batch_groups = groups;
	out *= groups;
	batch *= attrs.convolution.batch_groups;
	attrs.convolution.input_spatial =
		labels(m, n, &attrs.convolution.input_batch, &attrs.convolution.input_feature);
	attrs.convolution.kernel_spatial =
		labels(m, n, &attrs.convolution.kernel_input, &attrs.convolution.kernel_output);
	attrs.convolution.output_spatial =
		labels(m, n, &attrs.convolution.output_batch, &attrs.convolution.output_feature);
	sw_shape input = labelled(
		m, type, attrs.convolution.input_batch, batch, attrs.convolution.input_feature,
		in * attrs.convolution.feature_groups, attrs.convolution.input_spatial, sizes);
	sw_shape kernel = labelled(m, type, attrs.convolution.kernel_input, in,
	                           attrs.convolution.kernel_output, out,
	                           attrs.convolution.kernel_spatial, kernel_sizes);
	if (elements(input) > 4000 || elements(kernel) > 4000)
		return;
	sw_id two[] = {pick_like(m, input, false), pick_like(m, kernel, false)};
	value_facts k = contracted(type, *fact(m, two[0]), *fact(m, two[1]), terms * (double)in);
	add_to_pool(m, write_simple_op(m, SW_OP_CONVOLUTION, two, 2, &attrs, NULL), k);
}

/* ---- linear algebra --------------------------------------------------------------------- */

static int32_t batch_dims(maker *m, int64_t *dims)
{
	int32_t n = (int32_t)between(m, 0, 2);
	for (int32_t d = 0; d < n; d++)
		dims[d] = random_size(m) % 9 + 1;
	return n;
}

/* Make lower triangles with a strong diagonal: small entries, and 2 added to the diagonal. */
static sw_id well_conditioned(maker *m, sw_type type, const int64_t *batch, int32_t n, int64_t size)
{
	int64_t dims[SW_MAX_RANK];
	for (int32_t d = 0; d < n; d++)
		dims[d] = batch[d];
	dims[n] = dims[n + 1] = size;
	sw_shape shape = make_shape(m, type, dims, n + 2), index = shape;
	index.type = SW_S32;
	sw_id x = in_box(m, pick_like(m, shape, false), -0.25, 0.25);
	sw_id row = sw_emit_iota(m->program, m->scope->computation, index, n),
	      column = sw_emit_iota(m->program, m->scope->computation, index, n + 1);
	sw_id on = sw_emit_compare(m->program, m->scope->computation, SW_EQ, row, column);
	sw_id strong = constant_like(m, shape, 2);
	sw_id both = sw_emit_select(m->program, m->scope->computation, on, strong, x);
	return set_facts(m, both, facts_either(*fact(m, x), (value_facts){0, 2, 0, true}));
}

static void make_triangular_solve(maker *m)
{
	if (!sw_kernels[SW_OP_TRIANGULAR_SOLVE].run)
		return;
	int64_t batch[SW_MAX_RANK] = {0}, dims[SW_MAX_RANK], size = between(m, 1, 4);
	int32_t n = batch_dims(m, batch);
	sw_type type = chance(m, 50) ? SW_F32 : SW_F64;
	sw_id a = well_conditioned(m, type, batch, n, size);
	bool left = chance(m, 50);
	for (int32_t d = 0; d < n; d++)
		dims[d] = batch[d];
	dims[n] = left ? size : random_size(m);
	dims[n + 1] = left ? random_size(m) : size;
	sw_id b = pick_like(m, make_shape(m, type, dims, n + 2), false);
	sw_attrs attrs = {
		.triangular_solve = {.left_side = left,
	                             .lower = chance(m, 50),
	                             .unit_diagonal = chance(m, 20),
	                             .transpose_a = chance(m, 50) ? "NO_TRANSPOSE" : "TRANSPOSE"}};
	value_facts k = *fact(m, b);
	double size_b = 4 * size_of(k);
	k = (value_facts){-size_b, size_b,
	                  8 * (k.error + size_b * fact(m, a)->error) + 64 * unit_of(type) * size_b,
	                  false};
	add_to_pool(m, write_simple_op(m, SW_OP_TRIANGULAR_SOLVE, (sw_id[]){a, b}, 2, &attrs, NULL),
	            k);
}

static void make_cholesky(maker *m)
{
	if (!sw_kernels[SW_OP_CHOLESKY].run)
		return;
	int64_t batch[SW_MAX_RANK] = {0}, size = between(m, 1, 4), order[SW_MAX_RANK];
	int32_t n = batch_dims(m, batch);
	sw_type type = chance(m, 50) ? SW_F32 : SW_F64;
	sw_id a = well_conditioned(m, type, batch, n, size);
	for (int32_t d = 0; d < n + 2; d++)
		order[d] = d < n ? d : 2 * n + 1 - d;
	sw_id t = sw_emit_transpose(m->program, m->scope->computation, a, order);
	set_facts(m, t, *fact(m, a));
	sw_id s = binary(m, SW_OP_ADD, a, t);
	sw_attrs attrs = {.cholesky = {.lower = chance(m, 50)}};
	value_facts k = {-3, 3, 8 * fact(m, s)->error + 64 * unit_of(type), false};
	add_to_pool(m, write_simple_op(m, SW_OP_CHOLESKY, &s, 1, &attrs, NULL), k);
}

static void make_fft(maker *m)
{
	static const char *const kinds[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
	if (!sw_kernels[SW_OP_FFT].run)
		return;
	int64_t kind = below(m, 4), dims[SW_MAX_RANK], length[3];
	int32_t n = (int32_t)between(m, 1, 2), rank = (int32_t)between(m, n, n + 2);
	double terms = 1;
	for (int32_t d = 0; d < rank; d++)
		dims[d] = d < rank - n ? random_size(m) : between(m, 1, 6);
	for (int32_t i = 0; i < n; i++) {
		length[i] = dims[rank - n + i];
		terms *= (double)length[i];
	}
	if (kind == 3)
		dims[rank - 1] = length[n - 1] / 2 + 1;
	sw_type type = kind == 2       ? (chance(m, 50) ? SW_F32 : SW_F64)
	               : chance(m, 50) ? SW_C64
	                               : SW_C128;
	sw_shape shape = make_shape(m, type, dims, rank);
	if (too_large(m, shape))
		return;
	sw_id x = pick_like(m, shape, false);
	sw_attrs attrs = {.fft = {.kind = kinds[kind], .length = ints_of(m, length, n)}};
	value_facts k = *fact(m, x);
	double size = 2 * terms * size_of(k);
	k = (value_facts){-size, size, 2 * terms * k.error + 16 * unit_of(type) * size, false};
	add_to_pool(m, write_simple_op(m, SW_OP_FFT, &x, 1, &attrs, NULL), k);
}

static const make_row rows[] = {
	{"dot", 14, make_dot},
	{"ragged-dot", 1, make_ragged_dot},
	{"scaled-dot", 1, make_scaled_dot},
	{"convolution", 6, make_convolution},
	{"triangular-solve", 1, make_triangular_solve},
	{"cholesky", 1, make_cholesky},
	{"fft", 1, make_fft},
};
const make_table makers_contract = {rows, SW_COUNT(rows)};
