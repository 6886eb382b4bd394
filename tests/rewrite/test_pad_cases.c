/*
 * Padding: every kind of consumer of a padded dimension.
 */
#include "rewrite/padded.h"

#include <string.h>

#define SUM                                                                                        \
	"sum { sa = f32[] parameter(0)\n sb = f32[] parameter(1)\n ROOT ss = f32[] add(sa, sb) "   \
	"}\n"
#define MAX                                                                                        \
	"max { ma = f32[] parameter(0)\n mb = f32[] parameter(1)\n ROOT ms = f32[] maximum(ma, "   \
	"mb) }\n"
#define LAST "last { la = f32[] parameter(0)\n ROOT lb = f32[] parameter(1) }\n"

typedef struct pad_case {
	const char *name, *text;
	double tolerance;
	sw_opcode opcode; /* the padded program must have `count` ops of this opcode */
	size_t count;
} pad_case;

static const pad_case cases[] = {
	{"elementwise ops pass padding on and mask nothing",
         STATE "ENTRY e { x = f32[53] parameter(0)\n c = f32[] constant(2)\n b = f32[53] "
               "broadcast(c), dimensions={}\n"
               "  y = f32[53] exponential(x)\n z = f32[53] divide(y, b)\n ROOT t = (f32[53]) "
               "tuple(z) }\n",
         0, SW_OP_SELECT, 0},

	{"a sum masks what a state holds",
         STATE SUM "ENTRY e { x = f32[53] parameter(0)\n z = f32[] constant(0)\n s = f32[] "
                   "reduce(x, z), dimensions={0}, to_apply=sum\n"
                   "  ROOT t = (f32[53], f32[]) tuple(x, s) }\n",
         1e-6, SW_OP_SELECT, 1},

	{"a maximum masks with the lowest number",
         STATE MAX "ENTRY e { x = f32[53,6] parameter(0)\n z = f32[] constant(-inf)\n"
                   "  s = f32[6] reduce(x, z), dimensions={0}, to_apply=max\n r = f32[53] "
                   "reduce(x, z), dimensions={1}, to_apply=max\n"
                   "  a = f32[] reduce(x, z), dimensions={0,1}, to_apply=max\n"
                   "  ROOT t = (f32[53,6], f32[6], f32[53], f32[]) tuple(x, s, r, a) }\n",
         0, SW_OP_REDUCE, 3},

	{"minima, conjunctions and disjunctions",
         "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }\n"
         "min { na = s32[] parameter(0)\n nb = s32[] parameter(1)\n ROOT nm = s32[] minimum(na, "
         "nb) }\n"
         "and { aa = pred[] parameter(0)\n ab = pred[] parameter(1)\n ROOT am = pred[] and(aa, ab) "
         "}\n"
         "or { oa = pred[] parameter(0)\n ob = pred[] parameter(1)\n ROOT om = pred[] or(oa, ob) "
         "}\n"
         "ENTRY e { x = s32[53] parameter(0)\n p = pred[53] parameter(1)\n hi = s32[] "
         "constant(1000)\n yes = pred[] constant(true)\n"
         "  no = pred[] constant(false)\n a = s32[] reduce(x, hi), dimensions={0}, to_apply=min\n"
         "  b = pred[] reduce(p, yes), dimensions={0}, to_apply=and\n np = pred[53] not(p)\n"
         "  pp = pred[53] or(p, np)\n q = pred[] reduce(pp, yes), dimensions={0}, to_apply=and\n"
         "  c = pred[] reduce(p, no), dimensions={0}, to_apply=or\n pn = pred[53] and(p, np)\n"
         "  d = pred[] reduce(pn, no), dimensions={0}, to_apply=or\n"
         "  ROOT t = (s32[53], pred[53], s32[], pred[], pred[], pred[], pred[]) tuple(x, p, a, b, "
         "q, c, d) }\n",
         0, SW_OP_REDUCE, 5},

	{"what is known to be neutral is not masked",
         SUM
         "ENTRY e { x = f32[53,4] parameter(0)\n z = f32[] constant(0)\n n = f32[53,4] negate(x)\n"
         "  s = f32[4] reduce(x, z), dimensions={0}, to_apply=sum\n"
         "  k = f32[53] iota(), iota_dimension=0\n o = f32[53] constant({0, 1, 2, 3, 4, 5, 6, 7, "
         "8, 9, 10, 11, 12, 13, 14, 15, 16, 17,"
         "    18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,"
         "    37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52})\n"
         "  m = f32[53] multiply(o, o)\n d = f32[4] dot(x, m), lhs_contracting_dims={0}, "
         "rhs_contracting_dims={0}\n"
         "  ko = f32[53] subtract(k, o)\n ROOT t = (f32[4], f32[4], f32[53]) tuple(s, d, ko) }\n",
         1e-5, SW_OP_SELECT, 0},

	{"a product needs the true size",
         STATE "mul { ma = f32[] parameter(0)\n mb = f32[] parameter(1)\n ROOT ms = f32[] "
               "multiply(ma, mb) }\n"
               "ENTRY e { x = f32[53] parameter(0)\n z = f32[] constant(1)\n s = f32[] reduce(x, "
               "z), dimensions={0}, to_apply=mul\n"
               "  ROOT t = (f32[53], f32[]) tuple(x, s) }\n",
         1e-6, SW_OP_SLICE, 1},

	{"a contraction masks both sides",
         "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }\n"
         "ENTRY e { x = f32[6,53] parameter(0)\n w = f32[53,10] parameter(1)\n"
         "  d = f32[6,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         "  ROOT t = (f32[6,53], f32[53,10], f32[6,10]) tuple(x, w, d) }\n",
         1e-6, SW_OP_SELECT, 2},

	{"a softmax and its gradient over a padded vocabulary",
         STATE SUM MAX
         "ENTRY e { w = f32[53,10] parameter(0)\n x = f32[6,10] parameter(1)\n y = s32[6] "
         "parameter(2)\n"
         "  l = f32[6,53] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n low = "
         "f32[] constant(-inf)\n"
         "  m = f32[6] reduce(l, low), dimensions={1}, to_apply=max\n mb = f32[6,53] broadcast(m), "
         "dimensions={0}\n"
         "  s = f32[6,53] subtract(l, mb)\n ex = f32[6,53] exponential(s)\n zero = f32[] "
         "constant(0)\n"
         "  z = f32[6] reduce(ex, zero), dimensions={1}, to_apply=sum\n zb = f32[6,53] "
         "broadcast(z), dimensions={0}\n"
         "  p = f32[6,53] divide(ex, zb)\n i = s32[6,53] iota(), iota_dimension=1\n yb = s32[6,53] "
         "broadcast(y), dimensions={0}\n"
         "  h = pred[6,53] compare(i, yb), direction=EQ\n hf = f32[6,53] convert(h)\n g = "
         "f32[6,53] subtract(p, hf)\n"
         "  dw = f32[53,10] dot(g, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  dx = f32[6,10] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         "  lz = f32[6] log(z)\n hl = f32[6,53] multiply(hf, s)\n t = f32[6] reduce(hl, zero), "
         "dimensions={1}, to_apply=sum\n"
         "  nll = f32[6] subtract(lz, t)\n loss = f32[] reduce(nll, zero), dimensions={0}, "
         "to_apply=sum\n"
         "  nw = f32[53,10] subtract(w, dw)\n ROOT r = (f32[53,10], f32[6,10], f32[]) tuple(nw, "
         "dx, loss) }\n",
         1e-5, SW_OP_DOT, 3},

	{"an arg-max needs the true size",
         STATE "pick { a = f32[] parameter(0)\n ai = s32[] parameter(1)\n b = f32[] parameter(2)\n "
               "bi = s32[] parameter(3)\n"
               "  g = pred[] compare(a, b), direction=GE\n v = f32[] select(g, a, b)\n vi = s32[] "
               "select(g, ai, bi)\n"
               "  ROOT t = (f32[], s32[]) tuple(v, vi) }\n"
               "ENTRY e { x = f32[6,53] parameter(0)\n i = s32[6,53] iota(), iota_dimension=1\n "
               "low = f32[] constant(-inf)\n"
               "  z = s32[] constant(0)\n m = (f32[6], s32[6]) reduce(x, i, low, z), "
               "dimensions={1}, to_apply=pick\n"
               "  mi = s32[6] get-tuple-element(m), index=1\n ROOT t = (f32[6,53], s32[6]) "
               "tuple(x, mi) }\n",
         0, SW_OP_SLICE, 1},

	{"embedding rows, their indices in and out of range",
         STATE "ENTRY e { w = f32[53,10] parameter(0)\n i = s32[6] parameter(1)\n"
               "  g = f32[6,10] gather(w, i), offset_dims={1}, collapsed_slice_dims={0}, "
               "start_index_map={0}, index_vector_dim=1, slice_sizes={1,10}\n"
               "  ROOT t = (f32[53,10], f32[6,10]) tuple(w, g) }\n",
         0, SW_OP_SELECT, 0},

	{"a gather of pairs, and of windows",
         STATE "ENTRY e { w = f32[53,11] parameter(0)\n i = s32[6,2] parameter(1)\n"
               "  g = f32[6] gather(w, i), offset_dims={}, collapsed_slice_dims={0,1}, "
               "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}\n"
               "  h = f32[6,3,2] gather(w, i), offset_dims={1,2}, collapsed_slice_dims={}, "
               "start_index_map={1,0}, index_vector_dim=1, slice_sizes={3,2}\n"
               "  ROOT t = (f32[53,11], f32[6], f32[6,3,2]) tuple(w, g, h) }\n",
         0, SW_OP_GATHER, 2},

	{"a gather by small unsigned indices",
         STATE
         "ENTRY e { w = f32[300] parameter(0)\n i = s32[6] parameter(1)\n u = u8[6] convert(i)\n"
         "  g = f32[6] gather(w, u), offset_dims={}, collapsed_slice_dims={0}, "
         "start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
         "  ROOT t = (f32[300], f32[6]) tuple(w, g) }\n",
         0, SW_OP_GATHER, 1},

	{"gradients of embedding rows, out of range ones dropped",
         STATE SUM
         "ENTRY e { w = f32[53,10] parameter(0)\n i = s32[6,1] parameter(1)\n h = f32[6,10] "
         "parameter(2)\n g = f32[6,10] exponential(h)\n"
         "  s = f32[53,10] scatter(w, i, g), update_window_dims={1}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n"
         "  ROOT t = (f32[53,10]) tuple(s) }\n",
         0, SW_OP_SCATTER, 1},

	{"a scatter that overwrites, and one of pairs",
         STATE LAST SUM
         "ENTRY e { w = f32[53,11] parameter(0)\n i = s32[6,2] parameter(1)\n g = f32[6] "
         "parameter(2)\n j = s32[6] iota(), iota_dimension=0\n"
         "  b = f32[6,11] broadcast(g), dimensions={0}\n"
         "  o = f32[53,11] scatter(w, j, b), update_window_dims={1}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last\n"
         "  s = f32[53,11] scatter(o, i, g), update_window_dims={}, inserted_window_dims={0,1}, "
         "scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=sum\n"
         "  ROOT t = (f32[53,11]) tuple(s) }\n",
         0, SW_OP_SCATTER, 2},

	{"a scatter by unsigned indices keeps its updates",
         STATE SUM
         "ENTRY e { w = f32[53] parameter(0)\n i = s32[6] parameter(1)\n u = u8[6] convert(i)\n h "
         "= f32[6] parameter(2)\n"
         "  g = f32[6] exponential(h)\n"
         "  s = f32[53] scatter(w, u, g), update_window_dims={}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n"
         "  ROOT t = (f32[53]) tuple(s) }\n",
         0, SW_OP_SCATTER, 1},

	{"gathers and scatters with a batch",
         STATE SUM
         "ENTRY e { w = f32[6,53] parameter(0)\n i = s32[6,1] parameter(1)\n"
         "  g = f32[6] gather(w, i), offset_dims={}, collapsed_slice_dims={1}, "
         "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
         "index_vector_dim=1, slice_sizes={1,1}\n"
         "  s = f32[6,53] scatter(w, i, g), update_window_dims={}, inserted_window_dims={1}, "
         "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
         "scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=sum\n"
         "  ROOT t = (f32[6,53], f32[6]) tuple(s, g) }\n",
         0, SW_OP_GATHER, 1},

	{"a size that is asked for",
         STATE "ENTRY e { x = f32[53,6] parameter(0)\n n = s32[] get-dimension-size(x), "
               "dimensions={0}\n y = f32[53,6] negate(x)\n"
               "  ROOT t = (f32[53,6], s32[]) tuple(y, n) }\n",
         0, SW_OP_PAD, 0},

	{"parts by starts that are out of range",
         STATE "ENTRY e { x = f32[53,6] parameter(0)\n i = s32[] parameter(1)\n z = s32[] "
               "constant(0)\n far = s32[] constant(70)\n"
               "  d = f32[5,6] dynamic-slice(x, i, z), dynamic_slice_sizes={5,6}\n"
               "  f = f32[5,6] dynamic-slice(x, far, z), dynamic_slice_sizes={5,6}\n n = f32[5,6] "
               "negate(d)\n"
               "  u = f32[53,6] dynamic-update-slice(x, n, far, z)\n v = f32[53,6] "
               "dynamic-update-slice(u, f, i, far)\n"
               "  ROOT t = (f32[53,6], f32[5,6], f32[5,6]) tuple(v, d, f) }\n",
         0, SW_OP_PAD, 0},

	{"slices, pads, concatenations and reversals",
         STATE "ENTRY e { x = f32[53,6] parameter(0)\n one = f32[] constant(1)\n a = f32[20,6] "
               "slice(x), slice={[7:47:2], [0:6]}\n"
               "  b = f32[53,3] slice(x), slice={[0:53], [3:6]}\n p = f32[60,6] pad(x, one), "
               "padding=3_4x0_0\n"
               "  q = f32[50,6] pad(x, one), padding=-1_-2x0_0\n s = f32[53,6] pad(x, one), "
               "padding=53_-53x0_0\n"
               "  c = f32[53,9] concatenate(x, b), dimensions={1}\n r = f32[53,6] reverse(x), "
               "dimensions={0}\n"
               "  ROOT t = (f32[53,6], f32[20,6], f32[53,3], f32[60,6], f32[50,6], f32[53,6], "
               "f32[53,9], f32[53,6]) tuple(x, a, b, p, q, s, c, r) }\n",
         0, SW_OP_CONCATENATE, 1},

	{"what a pad adds is summed",
         SUM
         "ENTRY e { x = f32[50,6] parameter(0)\n z = f32[] constant(0)\n three = f32[] "
         "constant(3)\n"
         "  p = f32[53,6] pad(x, three), padding=0_3x0_0\n w = f32[53,4] iota(), iota_dimension=1\n"
         "  s = f32[6] reduce(p, z), dimensions={0}, to_apply=sum\n"
         "  d = f32[6,4] dot(p, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n ROOT t = "
         "(f32[6], f32[6,4]) tuple(s, d) }\n",
         1e-5, SW_OP_DOT, 1},

	{"what a pad cuts off is not summed",
         SUM "ENTRY e { x = f32[6,6] parameter(0)\n z = f32[] constant(0)\n p = f32[6,5] pad(x, "
             "z), padding=0_0x0_-1\n"
             "  w = f32[5,5] iota(), iota_dimension=1\n s = f32[6] reduce(p, z), dimensions={1}, "
             "to_apply=sum\n"
             "  d = f32[6,5] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT "
             "t = (f32[6], f32[6,5]) tuple(s, d) }\n",
         1e-5, SW_OP_DOT, 1},

	{"reshapes keep what stays whole and need the true size of what they merge",
         STATE "ENTRY e { x = f32[6,53,4] parameter(0)\n a = f32[6,53,2,2] reshape(x)\n b = "
               "f32[318,4] reshape(x)\n"
               "  c = f32[53,6,4] transpose(x), dimensions={1,0,2}\n d = f32[6,1,53,4] reshape(x)\n"
               "  ROOT t = (f32[6,53,4], f32[6,53,2,2], f32[318,4], f32[53,6,4], f32[6,1,53,4]) "
               "tuple(x, a, b, c, d) }\n",
         0, SW_OP_SLICE, 1},

	{"a sort along, and beside",
         STATE "less { la = f32[] parameter(0)\n lb = f32[] parameter(1)\n ROOT lc = pred[] "
               "compare(la, lb), direction=LT }\n"
               "ENTRY e { x = f32[6,53] parameter(0)\n a = f32[6,53] sort(x), dimensions={1}, "
               "to_apply=less\n"
               "  b = f32[6,53] sort(x), dimensions={0}, to_apply=less\n ROOT t = (f32[6,53], "
               "f32[6,53], f32[6,53]) tuple(x, a, b) }\n",
         0, SW_OP_SORT, 2},

	{"windows",
         STATE SUM "ENTRY e { x = f32[6,53] parameter(0)\n z = f32[] constant(0)\n"
                   "  a = f32[6,53] reduce-window(x, z), window={size=1x53 pad=0_0x52_0}, "
                   "to_apply=sum\n ROOT t = (f32[6,53], f32[6,53]) tuple(x, a) }\n",
         0, SW_OP_REDUCE_WINDOW, 1},

	{"a convolution's batch and features",
         STATE
         "ENTRY e { k = f32[3,3,5,7] parameter(0)\n x = f32[6,9,9,5] parameter(1)\n"
         "  c = f32[6,7,7,7] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f\n"
         "  ROOT t = (f32[3,3,5,7], f32[6,7,7,7]) tuple(k, c) }\n",
         1e-5, SW_OP_CONVOLUTION, 1},

	{"a loop carries padding",
         STATE SUM "body { b = (s32[], f32[6,53], f32[7,6]) parameter(0)\n i = s32[] "
                   "get-tuple-element(b), index=0\n"
                   "  x = f32[6,53] get-tuple-element(b), index=1\n k = f32[7,6] "
                   "get-tuple-element(b), index=2\n one = s32[] constant(1)\n"
                   "  z = f32[] constant(0)\n zi = s32[] constant(0)\n r = f32[6] reduce(x, z), "
                   "dimensions={1}, to_apply=sum\n"
                   "  row = f32[1,6] reshape(r)\n nk = f32[7,6] dynamic-update-slice(k, row, i, "
                   "zi)\n rb = f32[6,53] broadcast(r), dimensions={0}\n"
                   "  y = f32[6,53] sine(rb)\n w = f32[6,53] add(x, y)\n n = s32[] add(i, one)\n"
                   "  ROOT t = (s32[], f32[6,53], f32[7,6]) tuple(n, w, nk) }\n"
                   "cond { c = (s32[], f32[6,53], f32[7,6]) parameter(0)\n i = s32[] "
                   "get-tuple-element(c), index=0\n seven = s32[] constant(7)\n"
                   "  ROOT l = pred[] compare(i, seven), direction=LT }\n"
                   "ENTRY e { x = f32[6,53] parameter(0)\n z = s32[] constant(0)\n f = f32[] "
                   "constant(0)\n k = f32[7,6] broadcast(f), dimensions={}\n"
                   "  t = (s32[], f32[6,53], f32[7,6]) tuple(z, x, k)\n w = (s32[], f32[6,53], "
                   "f32[7,6]) while(t), condition=cond, body=body\n"
                   "  y = f32[6,53] get-tuple-element(w), index=1\n q = f32[7,6] "
                   "get-tuple-element(w), index=2\n"
                   "  ROOT r = (f32[6,53], f32[7,6]) tuple(y, q) }\n",
         1e-5, SW_OP_WHILE, 1},

	{"branches carry padding",
         STATE MAX
         "yes { ya = (f32[53], f32[6,53]) parameter(0)\n y0 = f32[53] get-tuple-element(ya), "
         "index=0\n y1 = f32[6,53] get-tuple-element(ya), index=1\n"
         "  yz = f32[] constant(-inf)\n ym = f32[6] reduce(y1, yz), dimensions={1}, to_apply=max\n "
         "yn = f32[53] negate(y0)\n"
         "  ROOT yr = (f32[53], f32[6]) tuple(yn, ym) }\n"
         "no { na = f32[53] parameter(0)\n nz = f32[] constant(-inf)\n nm = f32[] reduce(na, nz), "
         "dimensions={0}, to_apply=max\n"
         "  nb = f32[6] broadcast(nm), dimensions={}\n nr = f32[53] reverse(na), dimensions={0}\n "
         "ROOT nt = (f32[53], f32[6]) tuple(nr, nb) }\n"
         "ENTRY e { x = f32[53] parameter(0)\n y = f32[6,53] parameter(1)\n z = f32[] "
         "constant(-inf)\n far = f32[] constant(2)\n"
         "  t = (f32[53], f32[6,53]) tuple(x, y)\n my = f32[] reduce(y, z), dimensions={0,1}, "
         "to_apply=max\n"
         "  p = pred[] compare(my, far), direction=LT\n q = pred[] not(p)\n"
         "  a = (f32[53], f32[6]) conditional(p, t, x), true_computation=yes, "
         "false_computation=no\n"
         "  b = (f32[53], f32[6]) conditional(q, t, x), true_computation=yes, "
         "false_computation=no\n"
         "  a0 = f32[53] get-tuple-element(a), index=0\n a1 = f32[6] get-tuple-element(a), "
         "index=1\n"
         "  b0 = f32[53] get-tuple-element(b), index=0\n b1 = f32[6] get-tuple-element(b), "
         "index=1\n"
         "  ROOT r = (f32[53], f32[53], f32[6], f32[6]) tuple(a0, b0, a1, b1) }\n",
         /* one in each conditional's own branch */
         0, SW_OP_PAD, 2},

	{"random numbers are those of the true shape",
         "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
         "ENTRY e { x = u32[53] parameter(0)\n s = u64[2] parameter(1)\n"
         "  r = (u64[2], u32[53]) rng-bit-generator(s), algorithm=rng_three_fry\n b = u32[53] "
         "get-tuple-element(r), index=1\n"
         "  y = u32[53] xor(x, b)\n ROOT t = (u32[53]) tuple(y) }\n",
         0, SW_OP_PAD, 1},

	{"a convolution has as many groups as features, or rows, with padding",
         STATE "ENTRY e { x = f32[2,9,53] parameter(0)\n k = f32[3,1,53] parameter(1)\n y = "
               "f32[53,9,4] parameter(2)\n h = f32[3,4,53] parameter(3)\n"
               "  f = f32[2,7,53] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, "
               "feature_group_count=53\n"
               "  b = f32[1,7,53] convolution(y, h), window={size=3}, dim_labels=b0f_0io->b0f, "
               "batch_group_count=53\n"
               "  ROOT t = (f32[2,9,53], f32[2,7,53], f32[1,7,53]) tuple(x, f, b) }\n",
         1e-5, SW_OP_CONVOLUTION, 2},

	{"a dynamic-reshape to the sizes of its shape",
         STATE
         "ENTRY e { x = f32[6,53] parameter(0)\n a = s32[] constant(6)\n b = s32[] constant(53)\n"
         "  r = f32[6,53] dynamic-reshape(x, a, b)\n y = f32[6,53] sine(r)\n ROOT t = (f32[6,53]) "
         "tuple(y) }\n",
         0, SW_OP_DYNAMIC_RESHAPE, 1},

	{"a barrier, a clamp and a choice",
         STATE MAX "ENTRY e { x = f32[53] parameter(0)\n p = pred[] parameter(1)\n y = f32[53] "
                   "sine(x)\n b = (f32[53], f32[53]) tuple(x, y)\n"
                   "  o = (f32[53], f32[53]) opt-barrier(b)\n u = f32[53] get-tuple-element(o), "
                   "index=0\n v = f32[53] get-tuple-element(o), index=1\n"
                   "  low = f32[] constant(-0.5)\n high = f32[] constant(0.5)\n c = f32[53] "
                   "clamp(low, u, high)\n s = f32[53] select(p, c, v)\n"
                   "  inf = f32[] constant(-inf)\n m = f32[] reduce(s, inf), dimensions={0}, "
                   "to_apply=max\n ROOT t = (f32[53], f32[]) tuple(s, m) }\n",
         0, SW_OP_OPT_BARRIER, 2},
};

static void padded_programs_give_the_same_results(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		for (int64_t multiple = 2; multiple <= 8; multiple++) {
			const pad_case *c = &cases[i];
			sw_pad_rule rule = {.multiple = multiple, .share = multiple == 8 ? 2 : 1};
			sw_text text = {0};
			if (strncmp(c->text, "HloModule", 9))
				sw_text_add(&text, "HloModule m\n");
			sw_text_add(&text, c->text);
			sw_program *program = read_text(text.data);
			sw_program *padded =
				pad_and_compare(program, rule, NULL, c->tolerance, c->name);
			if (multiple == 8) {
				assert_non_null(padded);
				if (count_opcode(padded, c->opcode) != c->count)
					fail_msg("%s: %zu %s, expected %zu", c->name,
					         count_opcode(padded, c->opcode),
					         sw_opcode_name(c->opcode), c->count);
			}
			sw_program_free(padded);
			sw_program_free(program);
			sw_text_clear(&text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(padded_programs_give_the_same_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
