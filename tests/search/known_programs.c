/*
 * Programs whose best strategy is known, as HLO text.
 */
#include "search/known_programs.h"

#include "base/base.h"

char *write_residual_layers(int layers, int tokens, int width)
{
	int n = tokens, w = width;
	sw_text t = {0};
	sw_text_add(&t, "HloModule layers\nENTRY main {\n");
	sw_text_addf(&t, "  r0 = f32[%d,%d] parameter(0)\n", n, w);
	for (int l = 0; l < layers; l++) {
		sw_text_addf(&t, "  up%d = f32[%d,%d] parameter(%d)\n", l, w, 4 * w, 2 * l + 1);
		sw_text_addf(&t, "  down%d = f32[%d,%d] parameter(%d)\n", l, 4 * w, w, 2 * l + 2);
	}
	for (int l = 0; l < layers; l++) {
		sw_text_addf(&t, "  s%d = f32[%d,%d] sine(r%d)\n  t%d = f32[%d,%d] tanh(s%d)\n", l,
		             n, w, l, l, n, w, l);
		sw_text_addf(&t, "  in%d = f32[%d,%d] multiply(s%d, t%d)\n", l, n, w, l, l);
		sw_text_addf(&t,
		             "  h%d = f32[%d,%d] dot(in%d, up%d), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n",
		             l, n, 4 * w, l, l);
		sw_text_addf(&t, "  a%d = f32[%d,%d] tanh(h%d)\n", l, n, 4 * w, l);
		sw_text_addf(&t,
		             "  o%d = f32[%d,%d] dot(a%d, down%d), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n",
		             l, n, w, l, l);
		sw_text_addf(&t, "  %sr%d = f32[%d,%d] add(r%d, o%d)\n",
		             l + 1 == layers ? "ROOT " : "", l + 1, n, w, l, l);
	}
	sw_text_add(&t, "}\n");
	return t.data;
}

char *write_experts(int groups, int tokens, int experts, int width, int hidden)
{
	int g = groups, s = tokens, e = experts, c = 2 * tokens / experts, d = width, f = hidden;
	sw_text t = {0};
	sw_text_add(&t, "HloModule experts, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, "
	                "{}, may-alias), "
	                "{2}: (2, {}, may-alias) }\n"
	                "add.f32 {\n  a.1 = f32[] parameter(0)\n  b.1 = f32[] parameter(1)\n"
	                "  ROOT s.1 = f32[] add(a.1, b.1)\n}\nENTRY main {\n");
	sw_text_addf(&t, "  scale = f32[%d] parameter(0)\n  w1 = f32[%d,%d,%d] parameter(1)\n", d,
	             e, d, f);
	sw_text_addf(&t, "  w2 = f32[%d,%d,%d] parameter(2)\n  x0 = f32[%d,%d,%d] parameter(3)\n",
	             e, f, d, g, s, d);
	sw_text_addf(&t, "  dispatch = f32[%d,%d,%d,%d] parameter(4)\n", g, s, e, c);
	sw_text_addf(&t, "  combine = f32[%d,%d,%d,%d] parameter(5)\n  zero = f32[] constant(0)\n",
	             g, s, e, c);
	sw_text_addf(
		&t,
		"  scores = f32[%d,%d,%d] dot(x0, x0), lhs_batch_dims={0}, rhs_batch_dims={0}, "
		"lhs_contracting_dims={2}, rhs_contracting_dims={2}\n",
		g, s, s);
	sw_text_addf(&t,
	             "  attended = f32[%d,%d,%d] dot(scores, x0), lhs_batch_dims={0}, "
	             "rhs_batch_dims={0}, "
	             "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n",
	             g, s, d);
	sw_text_addf(&t, "  scales = f32[%d,%d,%d] broadcast(scale), dimensions={2}\n", g, s, d);
	sw_text_addf(&t, "  x = f32[%d,%d,%d] multiply(attended, scales)\n", g, s, d);
	sw_text_addf(
		&t,
		"  in = f32[%d,%d,%d,%d] dot(dispatch, x), lhs_batch_dims={0}, rhs_batch_dims={0}, "
		"lhs_contracting_dims={1}, rhs_contracting_dims={1}\n",
		g, e, c, d);
	sw_text_addf(&t,
	             "  h = f32[%d,%d,%d,%d] dot(in, w1), lhs_batch_dims={1}, rhs_batch_dims={0}, "
	             "lhs_contracting_dims={3}, rhs_contracting_dims={1}\n",
	             e, g, c, f);
	sw_text_addf(&t, "  none = f32[%d,%d,%d,%d] broadcast(zero), dimensions={}\n", e, g, c, f);
	sw_text_addf(&t, "  r = f32[%d,%d,%d,%d] maximum(h, none)\n", e, g, c, f);
	sw_text_addf(&t,
	             "  o = f32[%d,%d,%d,%d] dot(r, w2), lhs_batch_dims={0}, rhs_batch_dims={0}, "
	             "lhs_contracting_dims={3}, rhs_contracting_dims={1}\n",
	             e, g, c, d);
	sw_text_addf(&t,
	             "  y = f32[%d,%d,%d] dot(combine, o), lhs_batch_dims={0}, rhs_batch_dims={1}, "
	             "lhs_contracting_dims={2,3}, rhs_contracting_dims={0,2}\n",
	             g, s, d);
	sw_text_addf(&t, "  dy = f32[%d,%d,%d] tanh(y)\n", g, s, d);
	sw_text_add(&t, "  loss = f32[] reduce(dy, zero), dimensions={0,1,2}, to_apply=add.f32\n");
	sw_text_addf(
		&t,
		"  do = f32[%d,%d,%d,%d] dot(combine, dy), lhs_batch_dims={0}, rhs_batch_dims={0}, "
		"lhs_contracting_dims={1}, rhs_contracting_dims={1}\n",
		g, e, c, d);
	sw_text_addf(&t,
	             "  g2 = f32[%d,%d,%d] dot(r, do), lhs_batch_dims={0}, rhs_batch_dims={1}, "
	             "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,2}\n",
	             e, f, d);
	sw_text_addf(&t,
	             "  dr = f32[%d,%d,%d,%d] dot(do, w2), lhs_batch_dims={1}, rhs_batch_dims={0}, "
	             "lhs_contracting_dims={3}, rhs_contracting_dims={2}\n",
	             e, g, c, f);
	sw_text_addf(&t, "  on = pred[%d,%d,%d,%d] compare(h, none), direction=GT\n", e, g, c, f);
	sw_text_addf(&t, "  dh = f32[%d,%d,%d,%d] select(on, dr, none)\n", e, g, c, f);
	sw_text_addf(&t,
	             "  g1 = f32[%d,%d,%d] dot(in, dh), lhs_batch_dims={1}, rhs_batch_dims={0}, "
	             "lhs_contracting_dims={0,2}, rhs_contracting_dims={1,2}\n",
	             e, d, f);
	sw_text_addf(
		&t,
		"  din = f32[%d,%d,%d,%d] dot(dh, w1), lhs_batch_dims={0}, rhs_batch_dims={0}, "
		"lhs_contracting_dims={3}, rhs_contracting_dims={2}\n",
		e, g, c, d);
	sw_text_addf(
		&t,
		"  dx = f32[%d,%d,%d] dot(dispatch, din), lhs_batch_dims={0}, rhs_batch_dims={1}, "
		"lhs_contracting_dims={2,3}, rhs_contracting_dims={0,2}\n",
		g, s, d);
	sw_text_addf(&t, "  dscales = f32[%d,%d,%d] multiply(dx, attended)\n", g, s, d);
	sw_text_addf(&t,
	             "  g0 = f32[%d] reduce(dscales, zero), dimensions={0,1}, to_apply=add.f32\n",
	             d);
	sw_text_addf(
		&t,
		"  new0 = f32[%d] subtract(scale, g0)\n  new1 = f32[%d,%d,%d] subtract(w1, g1)\n",
		d, e, d, f);
	sw_text_addf(&t, "  new2 = f32[%d,%d,%d] subtract(w2, g2)\n", e, f, d);
	sw_text_addf(
		&t,
		"  ROOT result = (f32[%d], f32[%d,%d,%d], f32[%d,%d,%d], f32[]) tuple(new0, new1, "
		"new2, loss)\n}\n",
		d, e, d, f, e, f, d);
	return t.data;
}

char *write_vocabulary(int tokens, int words, int width)
{
	int n = tokens, v = words, d = width;
	sw_text t = {0};
	sw_text_add(&t, "HloModule vocabulary, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	                "add.f32 {\n  a.1 = f32[] parameter(0)\n  b.1 = f32[] parameter(1)\n"
	                "  ROOT s.1 = f32[] add(a.1, b.1)\n}\n"
	                "max.f32 {\n  a.2 = f32[] parameter(0)\n  b.2 = f32[] parameter(1)\n"
	                "  ROOT s.2 = f32[] maximum(a.2, b.2)\n}\nENTRY main {\n");
	sw_text_addf(&t, "  table = f32[%d,%d] parameter(0)\n  ids = s32[%d,1] parameter(1)\n", v,
	             d, n);
	sw_text_addf(&t, "  targets = s32[%d,1] parameter(2)\n  zero = f32[] constant(0)\n", n);
	sw_text_addf(&t,
	             "  rows = f32[%d,%d] gather(table, ids), offset_dims={1}, "
	             "collapsed_slice_dims={0}, "
	             "start_index_map={0}, index_vector_dim=1, slice_sizes={1,%d}\n",
	             n, d, d);
	sw_text_addf(&t,
	             "  logits = f32[%d,%d] dot(rows, table), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={1}\n",
	             n, v);
	sw_text_add(&t, "  low = f32[] constant(-inf)\n");
	sw_text_addf(&t,
	             "  largest = f32[%d] reduce(logits, low), dimensions={1}, to_apply=max.f32\n",
	             n);
	sw_text_addf(&t, "  largests = f32[%d,%d] broadcast(largest), dimensions={0}\n", n, v);
	sw_text_addf(&t, "  shifted = f32[%d,%d] subtract(logits, largests)\n", n, v);
	sw_text_addf(&t, "  exps = f32[%d,%d] exponential(shifted)\n", n, v);
	sw_text_addf(&t, "  sum = f32[%d] reduce(exps, zero), dimensions={1}, to_apply=add.f32\n",
	             n);
	sw_text_addf(
		&t,
		"  target = f32[%d] gather(shifted, targets), offset_dims={}, "
		"collapsed_slice_dims={1}, "
		"start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
		"index_vector_dim=1, slice_sizes={1,1}\n",
		n);
	sw_text_addf(&t, "  logs = f32[%d] log(sum)\n  losses = f32[%d] subtract(logs, target)\n",
	             n, n);
	sw_text_add(&t, "  loss = f32[] reduce(losses, zero), dimensions={0}, to_apply=add.f32\n");
	sw_text_addf(&t, "  sums = f32[%d,%d] broadcast(sum), dimensions={0}\n", n, v);
	sw_text_addf(&t, "  softmax = f32[%d,%d] divide(exps, sums)\n", n, v);
	sw_text_addf(&t,
	             "  words = s32[%d,%d] iota(), iota_dimension=1\n  target1 = s32[%d] "
	             "reshape(targets)\n",
	             n, v, n);
	sw_text_addf(&t, "  target2 = s32[%d,%d] broadcast(target1), dimensions={0}\n", n, v);
	sw_text_addf(&t, "  hit = pred[%d,%d] compare(words, target2), direction=EQ\n", n, v);
	sw_text_addf(&t,
	             "  hits = f32[%d,%d] convert(hit)\n  dlogits = f32[%d,%d] subtract(softmax, "
	             "hits)\n",
	             n, v, n, v);
	sw_text_addf(&t,
	             "  ghead = f32[%d,%d] dot(dlogits, rows), lhs_contracting_dims={0}, "
	             "rhs_contracting_dims={0}\n",
	             v, d);
	sw_text_addf(&t,
	             "  drows = f32[%d,%d] dot(dlogits, table), lhs_contracting_dims={1}, "
	             "rhs_contracting_dims={0}\n",
	             n, d);
	sw_text_addf(
		&t,
		"  gtable = f32[%d,%d] scatter(ghead, ids, drows), update_window_dims={1}, "
		"inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
		"to_apply=add.f32\n",
		v, d);
	sw_text_addf(&t, "  new = f32[%d,%d] subtract(table, gtable)\n", v, d);
	sw_text_addf(&t, "  ROOT result = (f32[%d,%d], f32[]) tuple(new, loss)\n}\n", v, d);
	return t.data;
}
