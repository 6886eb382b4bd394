#include "bound/programs.h"

#define ADD                                                                                        \
	"add.f32 {\n a.1 = f32[] parameter(0)\n b.1 = f32[] parameter(1)\n"                        \
	" ROOT s.1 = f32[] add(a.1, b.1)\n}\n"
#define MAX_CHAIN 256

/* Sizes that devices divide, that only some divide, and that none divides. */
static int size_of(sw_rng *rng)
{
	static const int sizes[] = {1,  2,  3,  4,  5,  6,  7,   8,   12,
	                            13, 16, 24, 60, 64, 97, 128, 509, 512};
	return sizes[sw_rng_below(rng, SW_COUNT(sizes))];
}

static int between(sw_rng *rng, int low, int high)
{
	return low + (int)sw_rng_below(rng, high - low + 1);
}

/* ---- dots ------------------------------------------------------------------------------- */

void write_chain(sw_text *text, int n, int rows, const int *sizes)
{
	sw_text_addf(text, "HloModule chain\nENTRY main {\n x0 = f32[%d,%d] parameter(0)\n", rows,
	             sizes[0]);
	for (int i = 0; i < n; i++)
		sw_text_addf(text,
		             " w%d = f32[%d,%d] parameter(%d)\n x%d = f32[%d,%d] dot(x%d, w%d), "
		             "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
		             i, sizes[i], sizes[i + 1], i + 1, i + 1, rows, sizes[i + 1], i, i);
	sw_text_addf(text, " ROOT r = f32[%d,%d] negate(x%d)\n}\n", rows, sizes[n], n);
}

static void write_dots(sw_rng *rng, sw_text *text)
{
	int sizes[MAX_CHAIN + 1], n = between(rng, 2, 9);
	for (int i = 0; i <= n; i++)
		sizes[i] = size_of(rng);
	write_chain(text, n, size_of(rng), sizes);
}

/* A layer's forward and backward pass, with its weight updated. */
static void write_layer(sw_rng *rng, sw_text *text)
{
	int b = size_of(rng), k = size_of(rng), n = size_of(rng);
	sw_text_addf(text,
	             "HloModule layer, input_output_alias={ {0}: (0, {}, may-alias) }\n" ADD
	             "ENTRY main {\n w = f32[%d,%d] parameter(0)\n x = f32[%d,%d] parameter(1)\n"
	             " y = f32[%d,%d] dot(x, w), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={0}\n"
	             " t = f32[%d,%d] tanh(y)\n zero = f32[] constant(0)\n"
	             " loss = f32[] reduce(t, zero), dimensions={0,1}, to_apply=add.f32\n"
	             " g = f32[%d,%d] dot(x, t), lhs_contracting_dims={0}, "
	             "rhs_contracting_dims={0}\n"
	             " v = f32[%d,%d] subtract(w, g)\n"
	             " ROOT r = (f32[%d,%d], f32[]) tuple(v, loss)\n}\n",
	             k, n, b, k, b, n, b, n, k, n, k, n, k, n);
}

/* A balanced tree of additions over dots with one shared operand. */
static void write_tree(sw_rng *rng, sw_text *text)
{
	int m = size_of(rng), k = size_of(rng), n = size_of(rng), leaves = 4;
	sw_text_addf(text, "HloModule tree\nENTRY main {\n w = f32[%d,%d] parameter(0)\n", k, n);
	for (int i = 0; i < leaves; i++)
		sw_text_addf(text,
		             " x%d = f32[%d,%d] parameter(%d)\n n%d = f32[%d,%d] dot(x%d, w), "
		             "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
		             i, m, k, i + 1, leaves + i, m, n, i);
	for (int i = leaves - 1; i > 0; i--)
		sw_text_addf(text, " %sn%d = f32[%d,%d] add(n%d, n%d)\n", i == 1 ? "ROOT " : "", i,
		             m, n, 2 * i, 2 * i + 1);
	sw_text_add(text, "}\n");
}

/* ---- training --------------------------------------------------------------------------- */

/* The layers of a training step: x[i + 1] = f(x[i] w[i]), where f is tanh, a product with another
 * layer's result, a residual sum, nothing, an exchange of the halves of two heads, or a shift by a
 * row. */
enum { TANH, GATE, RESIDUAL, PLAIN_LAYER, HALVES, SHIFT, N_LAYER_KINDS };
static const int ANY_SIZE[] = {TANH, PLAIN_LAYER, HALVES, SHIFT};
#define MAX_LAYERS 5

typedef struct net {
	int layers, rows, sizes[MAX_LAYERS + 1], kinds[MAX_LAYERS];
	bool squares; /* the update divides by the root of a mean of squares */
} net;

static net draw_net(sw_rng *rng)
{
	static const int sizes[] = {8, 12, 16, 24, 64, 128, 512};
	net n = {.layers = between(rng, 1, MAX_LAYERS),
	         .rows = sizes[sw_rng_below(rng, SW_COUNT(sizes))],
	         .squares = sw_rng_below(rng, 2)};
	for (int i = 0; i <= n.layers; i++) {
		n.sizes[i] = i > 0 && sw_rng_below(rng, 2)
		                     ? n.sizes[i - 1]
		                     : sizes[sw_rng_below(rng, SW_COUNT(sizes))];
		if (i > 0)
			n.kinds[i - 1] = n.sizes[i] == n.sizes[i - 1]
			                         ? (int)sw_rng_below(rng, N_LAYER_KINDS)
			                         : ANY_SIZE[sw_rng_below(rng, SW_COUNT(ANY_SIZE))];
	}
	return n;
}

/* Write x[i + 1], whose halves of each head are exchanged, one of them negated. */
static void write_halves(int i, int b, int m, sw_text *text)
{
	sw_text_addf(text,
	             " zh%d = f32[%d,2,%d] reshape(z%d)\n"
	             " za%d = f32[%d,2,%d] slice(zh%d), slice={[0:%d], [0:2], [0:%d]}\n"
	             " zb%d = f32[%d,2,%d] slice(zh%d), slice={[0:%d], [0:2], [%d:%d]}\n"
	             " zn%d = f32[%d,2,%d] negate(zb%d)\n"
	             " zc%d = f32[%d,2,%d] concatenate(zn%d, za%d), dimensions={2}\n"
	             " x%d = f32[%d,%d] reshape(zc%d)\n",
	             i, b, m / 2, i, i, b, m / 4, i, b, m / 4, i, b, m / 4, i, b, m / 4, m / 2, i, b,
	             m / 4, i, i, b, m / 2, i, i, i + 1, b, m, i);
}

/* Write x[i + 1], whose rows are those before of z[i]. */
static void write_shift(int i, int b, int m, sw_text *text)
{
	sw_text_addf(text,
	             " zo%d = f32[] constant(0)\n"
	             " zp%d = f32[%d,%d] pad(z%d, zo%d), padding=1_0x0_0\n"
	             " x%d = f32[%d,%d] slice(zp%d), slice={[0:%d], [0:%d]}\n",
	             i, i, b + 1, m, i, i, i + 1, b, m, i, b, m);
}

static void write_forward(const net *n, sw_text *text)
{
	for (int i = 0; i < n->layers; i++) {
		int m = n->sizes[i + 1], b = n->rows;
		sw_text_addf(text,
		             " z%d = f32[%d,%d] dot(x%d, w%d), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n",
		             i, b, m, i, i);
		if (n->kinds[i] == HALVES || n->kinds[i] == SHIFT) {
			(n->kinds[i] == HALVES ? write_halves : write_shift)(i, b, m, text);
			continue;
		}
		sw_text_addf(text, " x%d = f32[%d,%d] ", i + 1, b, m);
		if (n->kinds[i] == TANH)
			sw_text_addf(text, "tanh(z%d)\n", i);
		else if (n->kinds[i] == GATE)
			sw_text_addf(text, "multiply(z%d, x%d)\n", i, i);
		else if (n->kinds[i] == RESIDUAL)
			sw_text_addf(text, "add(z%d, x%d)\n", i, i);
		else
			sw_text_addf(text, "negate(z%d)\n", i);
	}
}

/* d[i]: the gradient of x[i]; e[i]: that of z[i]; g[i]: that of w[i]. The derivatives need not be
 * right. */
static void write_backward(const net *n, sw_text *text)
{
	int b = n->rows;
	sw_text_addf(text, " d%d = f32[%d,%d] exponential(x%d)\n", n->layers, b,
	             n->sizes[n->layers], n->layers);
	for (int i = n->layers - 1; i >= 0; i--) {
		int k = n->sizes[i], m = n->sizes[i + 1];
		if (n->kinds[i] == RESIDUAL)
			sw_text_addf(text, " e%d = f32[%d,%d] copy(d%d)\n", i, b, m, i + 1);
		else
			sw_text_addf(text, " e%d = f32[%d,%d] multiply(d%d, x%d)\n", i, b, m, i + 1,
			             n->kinds[i] == GATE ? i : i + 1);
		sw_text_addf(text,
		             " g%d = f32[%d,%d] dot(x%d, e%d), lhs_contracting_dims={0}, "
		             "rhs_contracting_dims={0}\n",
		             i, k, m, i, i);
		sw_text_addf(text,
		             " p%d = f32[%d,%d] dot(e%d, w%d), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={1}\n",
		             i, b, k, i, i);
		if (n->kinds[i] == RESIDUAL)
			sw_text_addf(text, " d%d = f32[%d,%d] add(p%d, d%d)\n", i, b, k, i, i + 1);
		else
			sw_text_addf(text, " d%d = f32[%d,%d] copy(p%d)\n", i, b, k, i);
	}
}

static void write_updates(const net *n, sw_text *text)
{
	for (int i = 0; i < n->layers; i++) {
		int k = n->sizes[i], m = n->sizes[i + 1];
		if (n->squares)
			sw_text_addf(text,
			             " q%d = f32[%d,%d] multiply(g%d, g%d)\n"
			             " s%d = f32[%d,%d] rsqrt(q%d)\n"
			             " u%d = f32[%d,%d] multiply(g%d, s%d)\n",
			             i, k, m, i, i, i, k, m, i, i, k, m, i, i);
		else
			sw_text_addf(text, " u%d = f32[%d,%d] negate(g%d)\n", i, k, m, i);
		sw_text_addf(text, " v%d = f32[%d,%d] add(w%d, u%d)\n", i, k, m, i, i);
	}
}

static void write_training(sw_rng *rng, sw_text *text)
{
	net n = draw_net(rng);
	sw_text_add(text, "HloModule training, input_output_alias={");
	for (int i = 0; i < n.layers; i++)
		sw_text_addf(text, "%s {%d}: (%d, {}, may-alias)", i ? "," : "", i, i);
	sw_text_add(text, " }\nENTRY main {\n");
	for (int i = 0; i < n.layers; i++)
		sw_text_addf(text, " w%d = f32[%d,%d] parameter(%d)\n", i, n.sizes[i],
		             n.sizes[i + 1], i);
	sw_text_addf(text, " x0 = f32[%d,%d] parameter(%d)\n", n.rows, n.sizes[0], n.layers);
	write_forward(&n, text);
	write_backward(&n, text);
	write_updates(&n, text);
	sw_text_add(text, " ROOT r = (");
	for (int i = 0; i < n.layers; i++)
		sw_text_addf(text, "f32[%d,%d], ", n.sizes[i], n.sizes[i + 1]);
	sw_text_addf(text, "f32[%d,%d]) tuple(", n.rows, n.sizes[n.layers]);
	for (int i = 0; i < n.layers; i++)
		sw_text_addf(text, "v%d, ", i);
	sw_text_addf(text, "x%d)\n}\n", n.layers);
}

/* ---- loops and branches ----------------------------------------------------------------- */

/* A loop whose iterations share a weight; it may run no iteration at all. */
static void write_loop(sw_rng *rng, sw_text *text)
{
	int b = size_of(rng), n = size_of(rng), trips = between(rng, 0, 4);
	sw_text_addf(text,
	             "HloModule loop\n"
	             "cond {\n p.1 = (s32[], f32[%d,%d], f32[%d,%d]) parameter(0)\n"
	             " i.1 = s32[] get-tuple-element(p.1), index=0\n n.1 = s32[] constant(%d)\n"
	             " ROOT l.1 = pred[] compare(i.1, n.1), direction=LT\n}\n"
	             "body {\n p.2 = (s32[], f32[%d,%d], f32[%d,%d]) parameter(0)\n"
	             " i.2 = s32[] get-tuple-element(p.2), index=0\n"
	             " x.2 = f32[%d,%d] get-tuple-element(p.2), index=1\n"
	             " w.2 = f32[%d,%d] get-tuple-element(p.2), index=2\n"
	             " y.2 = f32[%d,%d] dot(x.2, w.2), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={0}\n"
	             " t.2 = f32[%d,%d] tanh(y.2)\n one.2 = s32[] constant(1)\n"
	             " j.2 = s32[] add(i.2, one.2)\n"
	             " ROOT t.3 = (s32[], f32[%d,%d], f32[%d,%d]) tuple(j.2, t.2, w.2)\n}\n",
	             b, n, n, n, trips, b, n, n, n, b, n, n, n, b, n, b, n, b, n, n, n);
	sw_text_addf(text,
	             "ENTRY main {\n x = f32[%d,%d] parameter(0)\n w = f32[%d,%d] parameter(1)\n"
	             " i = s32[] constant(0)\n"
	             " t = (s32[], f32[%d,%d], f32[%d,%d]) tuple(i, x, w)\n"
	             " d = (s32[], f32[%d,%d], f32[%d,%d]) while(t), condition=cond, body=body\n"
	             " y = f32[%d,%d] get-tuple-element(d), index=1\n"
	             " ROOT r = f32[%d,%d] negate(y)\n}\n",
	             b, n, n, n, b, n, n, n, b, n, n, n, b, n, b, n);
}

/* Two branches: dots that need no communication, and additions of much data. */
static void write_branches(sw_rng *rng, sw_text *text)
{
	int n = size_of(rng), dots = between(rng, 1, 3), adds = between(rng, 1, 12);
	sw_text_addf(text, "HloModule branches\ndots {\n x0.1 = f32[%d,%d] parameter(0)\n", n, n);
	for (int i = 0; i < dots; i++)
		sw_text_addf(text,
		             " %sx%d.1 = f32[%d,%d] dot(x%d.1, x%d.1), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n",
		             i == dots - 1 ? "ROOT " : "", i + 1, n, n, i, i);
	sw_text_addf(text, "}\nadds {\n y0.2 = f32[%d,%d] parameter(0)\n", n, n);
	for (int i = 0; i < adds; i++)
		sw_text_addf(text,
		             " t%d.2 = f32[%d,%d] transpose(y%d.2), dimensions={1,0}\n"
		             " %sy%d.2 = f32[%d,%d] add(t%d.2, y%d.2)\n",
		             i, n, n, i, i == adds - 1 ? "ROOT " : "", i + 1, n, n, i, i);
	sw_text_addf(text,
	             "}\nENTRY main {\n x = f32[%d,%d] parameter(0)\n p = pred[] parameter(1)\n"
	             " c = f32[%d,%d] conditional(p, x, x), true_computation=dots, "
	             "false_computation=adds\n ROOT r = f32[%d,%d] negate(c)\n}\n",
	             n, n, n, n, n, n);
}

/* ---- windows ---------------------------------------------------------------------------- */

/* Convolutions with halos, strides and dilation, and the gradient of one. */
static void write_convolution(sw_rng *rng, sw_text *text)
{
	int b = size_of(rng) % 17 + 1, h = 2 * between(rng, 2, 12), c = between(rng, 1, 6),
	    f = between(rng, 1, 8), stride = between(rng, 1, 2), dilate = between(rng, 1, 2);
	int k = between(rng, 1, 4), pad = between(rng, 0, k), wide = (h - 1) * dilate + 1;
	int out = (wide + 2 * pad - k) / stride + 1;
	sw_text_addf(text,
	             "HloModule convolution\nENTRY main {\n x = f32[%d,%d,%d,%d] parameter(0)\n"
	             " w = f32[%d,%d,%d,%d] parameter(1)\n"
	             " ROOT y = f32[%d,%d,%d,%d] convolution(x, w), window={size=%dx%d "
	             "stride=%dx%d pad=%d_%dx%d_%d lhs_dilate=%dx%d}, "
	             "dim_labels=b01f_01io->b01f\n}\n",
	             b, h, h, c, k, k, c, f, b, out, out, f, k, k, stride, stride, pad, pad, pad,
	             pad, dilate, dilate);
}

/* A running total written as a window over everything before, as JAX writes it. */
static void write_running_total(sw_rng *rng, sw_text *text)
{
	int b = size_of(rng), n = 16 * size_of(rng) + between(rng, 0, 1) * 3;
	bool back = sw_rng_below(rng, 2);
	sw_text_addf(text,
	             "HloModule total\n" ADD "ENTRY main {\n x = f32[%d,%d] parameter(0)\n"
	             " zero = f32[] constant(0)\n"
	             " y = f32[%d,%d] reduce-window(x, zero), window={size=1x%d "
	             "pad=0_0x%d_%d}, to_apply=add.f32\n"
	             " ROOT r = f32[%d,%d] tanh(y)\n}\n",
	             b, n, b, n, n, back ? 0 : n - 1, back ? n - 1 : 0, b, n);
}

/* Attention of one head, whose products have no batch; half of the time it is causal. */
static void write_softmax(sw_rng *rng, sw_text *text)
{
	int t = 2048 * size_of(rng), d = 64 * between(rng, 1, 3);
	bool causal = sw_rng_below(rng, 2);
	sw_text_addf(text,
	             "HloModule softmax\nmax.f32 {\n a.3 = f32[] parameter(0)\n"
	             " b.3 = f32[] parameter(1)\n ROOT m.3 = f32[] maximum(a.3, b.3)\n}\n" ADD
	             "ENTRY main {\n q = f32[%d,%d] parameter(0)\n k = f32[%d,%d] parameter(1)\n"
	             " v = f32[%d,%d] parameter(2)\n low = f32[] constant(-inf)\n"
	             " zero = f32[] constant(0)\n"
	             " s = f32[%d,%d] dot(q, k), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={1}\n",
	             t, d, t, d, t, d, t, t);
	if (causal)
		sw_text_addf(text,
		             " i = s32[%d,%d] iota(), iota_dimension=0\n"
		             " j = s32[%d,%d] iota(), iota_dimension=1\n"
		             " c = pred[%d,%d] compare(i, j), direction=GE\n"
		             " n = f32[%d,%d] broadcast(low), dimensions={}\n"
		             " w = f32[%d,%d] select(c, s, n)\n",
		             t, t, t, t, t, t, t, t, t, t);
	sw_text_addf(text,
	             " r = f32[%d] reduce(%s, low), dimensions={1}, to_apply=max.f32\n"
	             " e = f32[%d,%d] broadcast(r), dimensions={0}\n"
	             " f = f32[%d,%d] subtract(%s, e)\n g = f32[%d,%d] exponential(f)\n"
	             " h = f32[%d] reduce(g, zero), dimensions={1}, to_apply=add.f32\n"
	             " l = f32[%d,%d] broadcast(h), dimensions={0}\n"
	             " p = f32[%d,%d] divide(g, l)\n"
	             " ROOT o = f32[%d,%d] dot(p, v), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={0}\n}\n",
	             t, causal ? "w" : "s", t, t, t, t, causal ? "w" : "s", t, t, t, t, t, t, t, t,
	             d);
}

/* ---- indices, slices, orders ------------------------------------------------------------ */

static void write_table(sw_rng *rng, sw_text *text)
{
	int rows = size_of(rng), width = size_of(rng), n = size_of(rng);
	sw_text_addf(text,
	             "HloModule table, input_output_alias={ {0}: (0, {}, may-alias) }\n" ADD
	             "ENTRY main {\n t = f32[%d,%d] parameter(0)\n i = s32[%d,1] parameter(1)\n"
	             " g = f32[%d,%d] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, "
	             "start_index_map={0}, index_vector_dim=1, slice_sizes={1,%d}\n"
	             " h = f32[%d,%d] tanh(g)\n"
	             " u = f32[%d,%d] scatter(t, i, h), update_window_dims={1}, "
	             "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
	             "index_vector_dim=1, to_apply=add.f32\n"
	             " ROOT r = (f32[%d,%d]) tuple(u)\n}\n",
	             rows, width, n, n, width, width, n, width, rows, width, rows, width);
}

/* Pieces at odd offsets, padded, turned and put together again. */
static void write_pieces(sw_rng *rng, sw_text *text)
{
	int m = size_of(rng), n = size_of(rng) + 6, from = between(rng, 1, 5), k = n - from;
	sw_text_addf(text,
	             "HloModule pieces\nENTRY main {\n x = f32[%d,%d] parameter(0)\n"
	             " a = f32[%d,%d] slice(x), slice={[0:%d], [%d:%d]}\n"
	             " b = f32[%d,%d] slice(x), slice={[0:%d], [0:%d]}\n"
	             " c = f32[%d,%d] reverse(a), dimensions={1}\n"
	             " d = f32[%d,%d] concatenate(b, c), dimensions={1}\n"
	             " zero = f32[] constant(0)\n"
	             " e = f32[%d,%d] pad(d, zero), padding=0_0x1_2\n"
	             " f = f32[%d,%d] transpose(e), dimensions={1,0}\n"
	             " ROOT g = f32[%d,%d] tanh(f)\n}\n",
	             m, n, m, k, m, from, n, m, from, m, from, m, k, m, n, m, n + 3, n + 3, m,
	             n + 3, m);
}

static void write_order(sw_rng *rng, sw_text *text)
{
	int m = size_of(rng), n = size_of(rng), k = between(rng, 1, n);
	sw_text_addf(text,
	             "HloModule order\nless {\n a.2 = f32[] parameter(0)\n"
	             " b.2 = f32[] parameter(1)\n"
	             " ROOT l.2 = pred[] compare(a.2, b.2), direction=LT\n}\n" ADD
	             "ENTRY main {\n x = f32[%d,%d] parameter(0)\n"
	             " s = f32[%d,%d] sort(x), dimensions={1}, to_apply=less\n"
	             " t = (f32[%d,%d], s32[%d,%d]) topk(s), k=%d, largest=true\n"
	             " v = f32[%d,%d] get-tuple-element(t), index=0\n"
	             " zero = f32[] constant(0)\n"
	             " c = f32[%d] reduce(v, zero), dimensions={1}, to_apply=add.f32\n"
	             " ROOT r = f32[] reduce(c, zero), dimensions={0}, to_apply=add.f32\n}\n",
	             m, n, m, n, m, k, m, k, k, m, k, m);
}

/* Values made of constants, and of a vector, whose sizes padding makes equal. */
static void write_sources(sw_rng *rng, sw_text *text)
{
	int n = size_of(rng), sizes[] = {n + 4, n + 5, n + 7};
	sw_text_add(text, "HloModule sources\nENTRY main {\n c = f32[] constant(3)\n"
	                  " v = f32[8] parameter(3)\n");
	for (int i = 0; i < 3; i++) {
		int m = sizes[i];
		sw_text_addf(text,
		             " x%d = f32[%d,8] parameter(%d)\n b%d = f32[%d,8] broadcast(c), "
		             "dimensions={}\n i%d = f32[%d,8] iota(), iota_dimension=0\n"
		             " v%d = f32[%d,8] broadcast(v), dimensions={1}\n",
		             i, m, i, i, m, i, m, i, m);
		sw_text_addf(
			text,
			" h%d = f32[%d,8] tanh(v%d)\n k%d = f32[%d,8] multiply(h%d, i%d)\n"
			" s%d = f32[%d,8] add(x%d, b%d)\n t%d = f32[%d,8] multiply(s%d, k%d)\n",
			i, m, i, i, m, i, i, i, m, i, i, i, m, i, i);
	}
	sw_text_addf(text, " ROOT r = (f32[%d,8], f32[%d,8], f32[%d,8]) tuple(t0, t1, t2)\n}\n",
	             sizes[0], sizes[1], sizes[2]);
}

const written_kind WRITTEN_KINDS[] = {
	{"dots", write_dots},
	{"layer", write_layer},
	{"training", write_training},
	{"normed", write_normed},
	{"tree", write_tree},
	{"loop", write_loop},
	{"branches", write_branches},
	{"convolution", write_convolution},
	{"running total", write_running_total},
	{"softmax", write_softmax},
	{"table", write_table},
	{"pieces", write_pieces},
	{"order", write_order},
	{"sources", write_sources},
};
const int32_t N_WRITTEN_KINDS = (int32_t)SW_COUNT(WRITTEN_KINDS);
