/* The canonical form of small programs. */
#include "rewrite/programs.h"

#include <string.h>

typedef struct rewrite_case {
	const char *name, *text, *expected;
} rewrite_case;

#define SUM                                                                                        \
	"sum { sa = f32[] parameter(0)\n sb = f32[] parameter(1)\n ROOT ss = f32[] add(sa, sb) "   \
	"}\n"

static const rewrite_case cases[] = {
	{"a call that calls another is written out, however often it is called",
         "HloModule m\n"
         "inner { ia = f32[4] parameter(0)\n ROOT ib = f32[4] negate(ia) }\n"
         "outer { oa = f32[4] parameter(0)\n ob = f32[4] parameter(1)\n oc = f32[4] call(oa), "
         "to_apply=inner\n"
         "  od = f32[4] call(ob), to_apply=inner\n ROOT oe = f32[4] multiply(oc, od) }\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n p = f32[4] call(x, y), "
         "to_apply=outer\n"
         "  q = f32[4] call(y, p), to_apply=outer\n ROOT r = f32[4] subtract(p, q) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n nx = f32[4] negate(x)\n"
         "  ny = f32[4] negate(y)\n p = f32[4] multiply(nx, ny)\n np = f32[4] negate(p)\n q = "
         "f32[4] multiply(ny, np)\n"
         "  ROOT r = f32[4] subtract(p, q) }\n"},

	{"a call may take and return tuples, and return what it was given",
         "HloModule m\n"
         "swap { st = (f32[4], s32[]) parameter(0)\n s0 = f32[4] get-tuple-element(st), index=0\n"
         "  s1 = s32[] get-tuple-element(st), index=1\n sn = f32[4] negate(s0)\n"
         "  ROOT sr = (s32[], f32[4], f32[4]) tuple(s1, sn, s0) }\n"
         "ENTRY e { x = f32[4] parameter(0)\n i = s32[] parameter(1)\n t = (f32[4], s32[]) "
         "tuple(x, i)\n"
         "  c = (s32[], f32[4], f32[4]) call(t), to_apply=swap\n c0 = s32[] get-tuple-element(c), "
         "index=0\n"
         "  c1 = f32[4] get-tuple-element(c), index=1\n c2 = f32[4] get-tuple-element(c), index=2\n"
         "  s = f32[4] add(c1, c2)\n ROOT r = (f32[4], s32[]) tuple(s, c0) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n i = s32[] parameter(1)\n n = f32[4] negate(x)\n s = "
         "f32[4] add(n, x)\n"
         "  ROOT r = (f32[4], s32[]) tuple(s, i) }\n"},

	{"fusions are written out",
         "HloModule m\n"
         "fused { fa = f32[4] parameter(0)\n fb = f32[4] exponential(fa)\n ROOT fc = f32[4] "
         "add(fb, fa) }\n"
         "ENTRY e { x = f32[4] parameter(0)\n ROOT f = f32[4] fusion(x), kind=kLoop, calls=fused "
         "}\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] exponential(x)\n ROOT z = f32[4] add(y, "
         "x) }\n"},

	{"a product that is only read transposed is one of the other order",
         "HloModule m\n"
         "ENTRY e { x = f32[2,3,4,5] parameter(0)\n w = f32[2,7,5] parameter(1)\n"
         "  d = f32[2,3,4,7] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, "
         "lhs_contracting_dims={3}, rhs_contracting_dims={2}\n"
         "  ROOT t = f32[2,7,3,4] transpose(d), dimensions={0,3,1,2} }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[2,3,4,5] parameter(0)\n w = f32[2,7,5] parameter(1)\n"
         "  ROOT d = f32[2,7,3,4] dot(w, x), lhs_batch_dims={0}, rhs_batch_dims={0}, "
         "lhs_contracting_dims={2}, rhs_contracting_dims={3} }\n"},

	{"one that is read as it is, too, or turned otherwise, stays",
         "HloModule m\n"
         "ENTRY e { x = f32[3,4,5] parameter(0)\n w = f32[7,5] parameter(1)\n"
         "  d = f32[3,4,7] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
         "  t = f32[7,3,4] transpose(d), dimensions={2,0,1}\n"
         "  f = f32[3,4,7] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
         "  s = f32[7,4,3] transpose(f), dimensions={2,1,0}\n"
         "  ROOT r = (f32[3,4,7], f32[7,3,4], f32[7,4,3]) tuple(d, t, s) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[3,4,5] parameter(0)\n w = f32[7,5] parameter(1)\n"
         "  d = f32[3,4,7] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
         "  t = f32[7,3,4] transpose(d), dimensions={2,0,1}\n"
         "  s = f32[7,4,3] transpose(d), dimensions={2,1,0}\n"
         "  ROOT r = (f32[3,4,7], f32[7,3,4], f32[7,4,3]) tuple(d, t, s) }\n"},

	{"identities are forwarded",
         "HloModule m\n"
         "ENTRY e { x = f32[4,5] parameter(0)\n a = f32[4,5] broadcast(x), dimensions={0,1}\n"
         "  b = f32[4,5] transpose(a), dimensions={0,1}\n c = f32[4,5] copy(b)\n d = f32[4,5] "
         "convert(c)\n"
         "  f = f32[4,5] reshape(d)\n ROOT r = f32[4,5] add(f, x) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4,5] parameter(0)\n ROOT r = f32[4,5] add(x, x) }\n"},

	{"what only looks like an identity stays",
         "HloModule m\n"
         "ENTRY e { x = f32[4,4] parameter(0)\n a = f32[4,4] transpose(x), dimensions={1,0}\n"
         "  b = f32[4,4] broadcast(a), dimensions={1,0}\n c = bf16[4,4] convert(b)\n d = f32[4,4] "
         "convert(c)\n"
         "  ROOT r = f32[4,4] add(d, x) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4,4] parameter(0)\n a = f32[4,4] transpose(x), dimensions={1,0}\n"
         "  b = f32[4,4] broadcast(a), dimensions={1,0}\n c = bf16[4,4] convert(b)\n d = f32[4,4] "
         "convert(c)\n"
         "  ROOT r = f32[4,4] add(d, x) }\n"},

	{"a chain of reshapes is one, or none",
         "HloModule m\n"
         "ENTRY e { x = f32[4,6] parameter(0)\n a = f32[24] reshape(x)\n b = f32[2,12] reshape(a)\n"
         "  c = f32[3,8] reshape(b)\n d = f32[4,6] reshape(b)\n f = f32[24] reshape(c)\n n = "
         "f32[24] negate(f)\n"
         "  ROOT r = (f32[3,8], f32[4,6], f32[24]) tuple(c, d, n) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4,6] parameter(0)\n f = f32[24] reshape(x)\n c = f32[3,8] reshape(x)\n"
         "  n = f32[24] negate(f)\n ROOT r = (f32[3,8], f32[4,6], f32[24]) tuple(c, x, n) }\n"},

	{"equal ops are merged, those of equal reducers too",
         "HloModule m\n" SUM "sum2 { ta = f32[] parameter(0)\n tb = f32[] parameter(1)\n ROOT ts = "
         "f32[] add(tb, ta) }\n"
         "max { ma = f32[] parameter(0)\n mb = f32[] parameter(1)\n ROOT ms = f32[] maximum(ma, "
         "mb) }\n"
         "ENTRY e { x = f32[4,5] parameter(0)\n z1 = f32[] constant(0)\n z2 = f32[] constant(0)\n "
         "z3 = f32[] constant(-0)\n"
         "  a = f32[4] reduce(x, z1), dimensions={1}, to_apply=sum\n"
         "  b = f32[4] reduce(x, z2), dimensions={1}, to_apply=sum2\n"
         "  c = f32[4] reduce(x, z2), dimensions={1}, to_apply=max\n"
         "  d = f32[4] reduce(x, z3), dimensions={1}, to_apply=sum\n"
         "  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, d) }\n",
         "HloModule m\n" SUM "max { ma = f32[] parameter(0)\n mb = f32[] parameter(1)\n ROOT ms = "
         "f32[] maximum(ma, mb) }\n"
         "ENTRY e { x = f32[4,5] parameter(0)\n z1 = f32[] constant(0)\n"
         "  a = f32[4] reduce(x, z1), dimensions={1}, to_apply=sum\n"
         "  c = f32[4] reduce(x, z1), dimensions={1}, to_apply=max\n z3 = f32[] constant(-0)\n"
         "  d = f32[4] reduce(x, z3), dimensions={1}, to_apply=sum\n"
         "  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, a, c, d) }\n"},

	{"ops that differ in an attribute or in their type are not",
         "HloModule m\n"
         "ENTRY e { x = f32[4,4] parameter(0)\n a = pred[4,4] compare(x, x), direction=LT\n"
         "  b = pred[4,4] compare(x, x), direction=LE\n c = f32[2,4] slice(x), slice={[0:2], "
         "[0:4]}\n"
         "  d = f32[2,4] slice(x), slice={[2:4], [0:4]}\n f = s32[4,4] convert(x)\n g = u32[4,4] "
         "convert(x)\n"
         "  ROOT r = (pred[4,4], pred[4,4], f32[2,4], f32[2,4], s32[4,4], u32[4,4]) tuple(a, b, c, "
         "d, f, g) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4,4] parameter(0)\n a = pred[4,4] compare(x, x), direction=LT\n"
         "  b = pred[4,4] compare(x, x), direction=LE\n c = f32[2,4] slice(x), slice={[0:2], "
         "[0:4]}\n"
         "  d = f32[2,4] slice(x), slice={[2:4], [0:4]}\n f = s32[4,4] convert(x)\n g = u32[4,4] "
         "convert(x)\n"
         "  ROOT r = (pred[4,4], pred[4,4], f32[2,4], f32[2,4], s32[4,4], u32[4,4]) tuple(a, b, c, "
         "d, f, g) }\n"},

	{"random numbers and elided constants are each their own",
         "HloModule m\n"
         "ENTRY e { lo = f32[] constant(0)\n hi = f32[] constant(1)\n"
         "  a = f32[4] rng(lo, hi), distribution=rng_uniform\n b = f32[4] rng(lo, hi), "
         "distribution=rng_uniform\n"
         "  c = f32[4] constant({...})\n d = f32[4] constant({...})\n"
         "  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, d) }\n",
         "HloModule m\n"
         "ENTRY e { lo = f32[] constant(0)\n hi = f32[] constant(1)\n"
         "  a = f32[4] rng(lo, hi), distribution=rng_uniform\n b = f32[4] rng(lo, hi), "
         "distribution=rng_uniform\n"
         "  c = f32[4] constant({...})\n d = f32[4] constant({...})\n"
         "  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, b, c, d) }\n"},

	{"dead ops go, and the computations that only they called; parameters stay",
         "HloModule m\n" SUM "ENTRY e { x = f32[4] parameter(0)\n unused = f32[7] parameter(1)\n z "
         "= f32[] constant(0)\n"
         "  a = f32[] reduce(x, z), dimensions={0}, to_apply=sum\n b = f32[] negate(a)\n ROOT r = "
         "f32[4] negate(x) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n unused = f32[7] parameter(1)\n ROOT r = f32[4] "
         "negate(x) }\n"},

	{"a reducer that only a called computation uses stays",
         "HloModule m\n" SUM "total { ta = f32[4] parameter(0)\n tz = f32[] constant(0)\n"
         "  ROOT tr = f32[] reduce(ta, tz), dimensions={0}, to_apply=sum }\n"
         "ENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[] call(x), to_apply=total }\n",
         "HloModule m\n" SUM "ENTRY e { x = f32[4] parameter(0)\n z = f32[] constant(0)\n"
         "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum }\n"},

	{"each conditional has branches of its own",
         "HloModule m\n"
         "b { bp = f32[] parameter(0)\n ROOT br = f32[] negate(bp) }\n"
         "ENTRY e { i = pred[] parameter(0)\n x = f32[] parameter(1)\n"
         "  a = f32[] conditional(i, x, x), true_computation=b, false_computation=b\n"
         "  ROOT r = f32[] conditional(i, a, x), true_computation=b, false_computation=b }\n",
         "HloModule m\n"
         "b { bp = f32[] parameter(0)\n ROOT br = f32[] negate(bp) }\n"
         "c { cp = f32[] parameter(0)\n ROOT cr = f32[] negate(cp) }\n"
         "d { dp = f32[] parameter(0)\n ROOT dr = f32[] negate(dp) }\n"
         "f { fp = f32[] parameter(0)\n ROOT fr = f32[] negate(fp) }\n"
         "ENTRY e { i = pred[] parameter(0)\n x = f32[] parameter(1)\n"
         "  a = f32[] conditional(i, x, x), true_computation=b, false_computation=c\n"
         "  ROOT r = f32[] conditional(i, a, x), true_computation=d, false_computation=f }\n"},

	{"bodies of loops and branches become canonical as well",
         "HloModule m\n"
         "step { pa = f32[4] parameter(0)\n pb = f32[4] negate(pa)\n pc = f32[4] negate(pa)\n"
         "  ROOT pd = f32[4] add(pb, pc) }\n"
         "cond { ct = (s32[], f32[4]) parameter(0)\n ci = s32[] get-tuple-element(ct), index=0\n"
         "  cn = s32[] constant(5)\n ROOT cl = pred[] compare(ci, cn), direction=LT }\n"
         "body { bt = (s32[], f32[4]) parameter(0)\n bi = s32[] get-tuple-element(bt), index=0\n"
         "  bx = f32[4] get-tuple-element(bt), index=1\n b1 = s32[] constant(1)\n bn = s32[] "
         "add(bi, b1)\n"
         "  by = f32[4] call(bx), to_apply=step\n bz = f32[4] reshape(by)\n"
         "  ROOT br = (s32[], f32[4]) tuple(bn, bz) }\n"
         "yes { ya = f32[4] parameter(0)\n ROOT yb = f32[4] call(ya), to_apply=step }\n"
         "no { na = f32[4] parameter(0)\n ROOT nb = f32[4] copy(na) }\n"
         "ENTRY e { x = f32[4] parameter(0)\n p = pred[] parameter(1)\n i = s32[] constant(0)\n"
         "  t = (s32[], f32[4]) tuple(i, x)\n w = (s32[], f32[4]) while(t), condition=cond, "
         "body=body\n"
         "  y = f32[4] get-tuple-element(w), index=1\n"
         "  ROOT c = f32[4] conditional(p, y, y), true_computation=yes, false_computation=no }\n",
         "HloModule m\n"
         "cond { ct = (s32[], f32[4]) parameter(0)\n ci = s32[] get-tuple-element(ct), index=0\n"
         "  cn = s32[] constant(5)\n ROOT cl = pred[] compare(ci, cn), direction=LT }\n"
         "body { bt = (s32[], f32[4]) parameter(0)\n bi = s32[] get-tuple-element(bt), index=0\n"
         "  bx = f32[4] get-tuple-element(bt), index=1\n b1 = s32[] constant(1)\n bn = s32[] "
         "add(bi, b1)\n"
         "  bg = f32[4] negate(bx)\n by = f32[4] add(bg, bg)\n ROOT br = (s32[], f32[4]) tuple(bn, "
         "by) }\n"
         "yes { ya = f32[4] parameter(0)\n yg = f32[4] negate(ya)\n ROOT yb = f32[4] add(yg, yg) "
         "}\n"
         "no { ROOT na = f32[4] parameter(0) }\n"
         "ENTRY e { x = f32[4] parameter(0)\n p = pred[] parameter(1)\n i = s32[] constant(0)\n"
         "  t = (s32[], f32[4]) tuple(i, x)\n w = (s32[], f32[4]) while(t), condition=cond, "
         "body=body\n"
         "  y = f32[4] get-tuple-element(w), index=1\n"
         "  ROOT c = f32[4] conditional(p, y, y), true_computation=yes, false_computation=no }\n"},

	{"a loop stays for what its body does to the outside",
         "HloModule m\n"
         "cond { ct = s32[] parameter(0)\n cn = s32[] constant(5)\n ROOT cl = pred[] compare(ct, "
         "cn), direction=LT }\n"
         "body { bi = s32[] parameter(0)\n b1 = s32[] constant(1)\n bn = s32[] add(bi, b1)\n bt = "
         "token[] after-all()\n"
         "  bo = token[] outfeed(bi, bt), outfeed_shape=s32[]\n ROOT br = s32[] negate(bn) }\n"
         "quiet { qi = s32[] parameter(0)\n q1 = s32[] constant(1)\n ROOT qn = s32[] add(qi, q1) "
         "}\n"
         "ENTRY e { x = s32[] parameter(0)\n w = s32[] while(x), condition=cond, body=body\n"
         "  v = s32[] while(x), condition=cond, body=quiet\n ROOT r = s32[] negate(x) }\n",
         "HloModule m\n"
         "cond { ct = s32[] parameter(0)\n cn = s32[] constant(5)\n ROOT cl = pred[] compare(ct, "
         "cn), direction=LT }\n"
         "body { bi = s32[] parameter(0)\n b1 = s32[] constant(1)\n bn = s32[] add(bi, b1)\n bt = "
         "token[] after-all()\n"
         "  bo = token[] outfeed(bi, bt), outfeed_shape=s32[]\n ROOT br = s32[] negate(bn) }\n"
         "ENTRY e { x = s32[] parameter(0)\n w = s32[] while(x), condition=cond, body=body\n"
         "  ROOT r = s32[] negate(x) }\n"},

	{"aliases, donors, partitions and the order of results stay",
         "HloModule m, input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, must-alias) }, "
         "buffer_donor={ (2, {}) }, num_partitions=4\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n z = f32[2] parameter(2)\n "
         "a = f32[4] copy(y)\n"
         "  b = f32[4] negate(x)\n ROOT r = (f32[4], f32[4], f32[4]) tuple(a, b, a) }\n",
         "HloModule m, input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, must-alias) }, "
         "buffer_donor={ (2, {}) }, num_partitions=4\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n z = f32[2] parameter(2)\n"
         "  b = f32[4] negate(x)\n ROOT r = (f32[4], f32[4], f32[4]) tuple(y, b, y) }\n"},

	{"numbers that follow from constants are constants, of floats and lists too",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n two = f32[] constant(2)\n"
         "  root = f32[] sqrt(two)\n spread = f32[4] broadcast(root), dimensions={}\n"
         "  ones = f32[4] constant({1, 1, 1, 1})\n scale = f32[4] divide(ones, spread)\n"
         "  ROOT r = f32[4] multiply(scale, x) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n c = f32[] constant(0.707106769)\n"
         "  scale = f32[4] broadcast(c), dimensions={}\n"
         "  ROOT r = f32[4] multiply(x, scale) }\n"},

	{"short lists of whole numbers are, and a mask by positions is not",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n a = s32[2] constant({3, 1})\n"
         "  b = s32[2] constant({-5, 7})\n c = s32[2] maximum(a, b)\n"
         "  d = s32[4] concatenate(c, a), dimensions={0}\n f = f32[4] convert(d)\n"
         "  i = s32[4] iota(), iota_dimension=0\n j = s32[4] reverse(i), dimensions={0}\n"
         "  p = pred[4] compare(i, j), direction=LT\n"
         "  ROOT r = f32[4] select(p, x, f) }\n",
         "HloModule m\n"
         "ENTRY e { i = s32[4] iota(), iota_dimension=0\n"
         "  j = s32[4] reverse(i), dimensions={0}\n"
         "  p = pred[4] compare(i, j), direction=LT\n x = f32[4] parameter(0)\n"
         "  d = s32[4] constant({3, 7, 3, 1})\n f = f32[4] convert(d)\n"
         "  ROOT r = f32[4] select(p, x, f) }\n"},

	{"what changes nothing is left out, in integers by their bits",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n n = u32[4] parameter(1)\n"
         "  zero = f32[] constant(0)\n zeros = f32[4] broadcast(zero), dimensions={}\n"
         "  s = f32[4] add(zeros, x)\n p = pred[4] compare(s, s), direction=LT\n"
         "  same = f32[4] select(p, s, s)\n all = u32[] constant(4294967295)\n"
         "  bits = u32[4] broadcast(all), dimensions={}\n m = u32[4] and(bits, n)\n"
         "  ROOT r = (f32[4], u32[4]) tuple(same, m) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n n = u32[4] parameter(1)\n"
         "  ROOT r = (f32[4], u32[4]) tuple(x, n) }\n"},

	{"a branch that is known is taken, and an index out of range takes the last",
         "HloModule m\n"
         "a { x = f32[4] parameter(0)\n ROOT r = f32[4] negate(x) }\n"
         "b { x = f32[4] parameter(0)\n ROOT r = f32[4] tanh(x) }\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n"
         "  i = s32[] constant(7)\n t = pred[] constant(true)\n"
         "  p = f32[4] conditional(i, x, y), branch_computations={a, b}\n"
         "  q = f32[4] conditional(t, p, y), true_computation=a, false_computation=b\n"
         "  ROOT r = f32[4] add(p, q) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n p = f32[4] tanh(y)\n"
         "  q = f32[4] negate(p)\n ROOT r = f32[4] add(p, q) }\n"},

	{"a transposition that moves dimensions of size 1 is a reshape",
         "HloModule m\n"
         "ENTRY e { x = f32[4,1,3] parameter(0)\n"
         "  a = f32[1,4,3] transpose(x), dimensions={1,0,2}\n"
         "  b = f32[3,1,4] transpose(x), dimensions={2,1,0}\n"
         "  ROOT r = (f32[1,4,3], f32[3,1,4]) tuple(a, b) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4,1,3] parameter(0)\n a = f32[1,4,3] reshape(x)\n"
         "  b = f32[3,1,4] transpose(x), dimensions={2,1,0}\n"
         "  ROOT r = (f32[1,4,3], f32[3,1,4]) tuple(a, b) }\n"},

	{"what is one number, or a constant list, is so when its ones are moved, too",
         "HloModule m\n"
         "ENTRY e { v = f32[] parameter(0)\n s = f32[4,1,3] broadcast(v), dimensions={}\n"
         "  a = f32[1,4,3] transpose(s), dimensions={1,0,2}\n"
         "  l = s32[2,1] constant({{3}, {5}})\n b = s32[1,2] transpose(l), dimensions={1,0}\n"
         "  ROOT r = (f32[1,4,3], s32[1,2]) tuple(a, b) }\n",
         "HloModule m\n"
         "ENTRY e { v = f32[] parameter(0)\n a = f32[1,4,3] broadcast(v), dimensions={}\n"
         "  b = s32[1,2] constant({{3, 5}})\n"
         "  ROOT r = (f32[1,4,3], s32[1,2]) tuple(a, b) }\n"},

	{"nothing is put together with what is empty, or around it",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n none = f32[0] slice(x), slice={[0:0]}\n"
         "  a = f32[4] concatenate(none, x), dimensions={0}\n z = f32[] constant(3)\n"
         "  b = f32[4] pad(none, z), padding=1_3\n ROOT r = f32[4] multiply(b, a) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n z = f32[] constant(3)\n"
         "  b = f32[4] broadcast(z), dimensions={}\n ROOT r = f32[4] multiply(x, b) }\n"},

	{"a barrier of several values is one of each that is read",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = s32[2] parameter(1)\n"
         "  b = (f32[4], s32[2], f32[4]) opt-barrier(x, y, x)\n"
         "  u = f32[4] get-tuple-element(b), index=0\n"
         "  v = s32[2] get-tuple-element(b), index=1\n"
         "  ROOT r = (s32[2], f32[4], f32[4]) tuple(v, u, x) }\n",
         "HloModule m\n"
         "ENTRY e { x = f32[4] parameter(0)\n y = s32[2] parameter(1)\n"
         "  u = f32[4] opt-barrier(x)\n v = s32[2] opt-barrier(y)\n"
         "  ROOT r = (s32[2], f32[4], f32[4]) tuple(v, u, x) }\n"},

	{"loops that carry the same in another order are one",
         "HloModule m\n"
         "c { p = (f32[4], s32[], f32[4]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=1\n n = s32[] constant(3)\n"
         "  ROOT l = pred[] compare(i, n), direction=LT }\n"
         "b { p = (f32[4], s32[], f32[4]) parameter(0)\n"
         "  w = f32[4] get-tuple-element(p), index=0\n i = s32[] get-tuple-element(p), index=1\n"
         "  x = f32[4] get-tuple-element(p), index=2\n one = s32[] constant(1)\n"
         "  j = s32[] add(i, one)\n y = f32[4] multiply(x, w)\n"
         "  ROOT t = (f32[4], s32[], f32[4]) tuple(w, j, y) }\n"
         "ENTRY e { w = f32[4] parameter(0)\n x = f32[4] parameter(1)\n z = s32[] constant(0)\n"
         "  t = (f32[4], s32[], f32[4]) tuple(w, z, x)\n"
         "  l = (f32[4], s32[], f32[4]) while(t), condition=c, body=b\n"
         "  ROOT r = f32[4] get-tuple-element(l), index=2 }\n",
         "HloModule m\n"
         "c { p = (s32[], f32[4], f32[4]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(3)\n"
         "  ROOT l = pred[] compare(i, n), direction=LT }\n"
         "b { p = (s32[], f32[4], f32[4]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n x = f32[4] get-tuple-element(p), index=1\n"
         "  w = f32[4] get-tuple-element(p), index=2\n one = s32[] constant(1)\n"
         "  j = s32[] add(i, one)\n y = f32[4] multiply(x, w)\n"
         "  ROOT t = (s32[], f32[4], f32[4]) tuple(j, y, w) }\n"
         "ENTRY e { z = s32[] constant(0)\n x = f32[4] parameter(1)\n w = f32[4] parameter(0)\n"
         "  t = (s32[], f32[4], f32[4]) tuple(z, x, w)\n"
         "  l = (s32[], f32[4], f32[4]) while(t), condition=c, body=b\n"
         "  ROOT r = f32[4] get-tuple-element(l), index=1 }\n"},
};

static void small_programs_have_the_expected_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		print_message("%s\n", cases[i].name);
		sw_program *program = read_text(cases[i].text),
			   *expected = read_text(cases[i].expected);
		sw_program *actual = canonical(program);
		sw_program_order_constants(expected);
		assert_same_program(actual, expected);
		assert_int_equal(actual->donors.len, expected->donors.len);
		assert_int_equal(actual->num_partitions, expected->num_partitions);
		sw_program *again = canonical(actual);
		assert_same_program(again, actual);
		sw_program_free(again);
		sw_program_free(actual);
		sw_program_free(expected);
		sw_program_free(program);
	}
}

static bool has_op(const sw_program *program, const char *name)
{
	for (size_t o = 0; o < program->ops.len; o++)
		if (strcmp(program->ops.data[o].name, name) == 0)
			return true;
	return false;
}

static void surviving_ops_keep_their_names_and_trip_counts(void **state)
{
	(void)state;
	sw_program *program = NULL;
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		if (strncmp(cases[i].name, "bodies of loops", 15) == 0)
			program = read_text(cases[i].text);
	sw_program *out = canonical(program);
	const char *const names[] = {"ct", "cl", "bt", "bn", "pb", "pd", "x", "w", "c"};
	for (size_t i = 0; i < SW_COUNT(names); i++)
		if (!has_op(out, names[i]))
			fail_msg("no op is named %s", names[i]);
	assert_string_equal(sw_entry(out)->name, "e");
	for (size_t o = 0; o < out->ops.len; o++)
		if (out->ops.data[o].opcode == SW_OP_WHILE)
			assert_int_equal(out->ops.data[o].attrs->loop.trip_count, 5);
	sw_program_free(out);
	sw_program_free(program);
}

/* sw_emit_reduce makes its reducer while the entry is open: the callee's index is the larger
 * one. */
static void callees_may_stand_behind_their_callers(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("behind");
	const int64_t dims[] = {4}, all[] = {0};
	int32_t e = sw_build_computation(p, "e");
	sw_id x = sw_emit_parameter(p, e, sw_build_shape(p, SW_F32, dims, 1), "x");
	sw_id sum = sw_emit_reduce(p, e, SW_MONOID_SUM, x,
	                           sw_emit_identity(p, e, SW_F32, SW_MONOID_SUM), all, 1);
	sw_build_results(p, e, &sum, 1, false);
	p->entry = e;
	sw_program *out = canonical(p);
	assert_same_program(out, p);
	sw_program_free(out);
	sw_program_free(p);
}

/* In this chain c0 negates; each c(k) calls c(k-1) twice or, if not `doubling`, once. */
static sw_program *chain(int depth, bool doubling)
{
	sw_text text = {0};
	sw_text_add(&text,
	            "HloModule m\nc0 { p0 = f32[] parameter(0)\n ROOT r0 = f32[] negate(p0) }\n");
	for (int k = 1; k <= depth; k++) {
		sw_text_addf(&text, "%sc%d { p%d = f32[] parameter(0)\n",
		             k == depth ? "ENTRY " : "", k, k);
		if (doubling)
			sw_text_addf(&text, "q%d = f32[] call(p%d), to_apply=c%d\n", k, k, k - 1);
		sw_text_addf(&text, "ROOT r%d = f32[] call(%s%d), to_apply=c%d }\n", k,
		             doubling ? "q" : "p", k, k - 1);
	}
	sw_program *program = read_text(text.data);
	sw_text_clear(&text);
	return program;
}

/* In this staircase each computation calls the one before, and the entry calls all of them, the
 * shallowest first. */
static sw_program *staircase(int depth)
{
	sw_text text = {0};
	sw_text_add(&text,
	            "HloModule m\nc0 { p0 = f32[] parameter(0)\n ROOT r0 = f32[] negate(p0) }\n");
	for (int k = 1; k <= depth; k++)
		sw_text_addf(&text,
		             "c%d { p%d = f32[] parameter(0)\n ROOT r%d = f32[] call(p%d), "
		             "to_apply=c%d }\n",
		             k, k, k, k, k - 1);
	sw_text_add(&text, "ENTRY e { q0 = f32[] parameter(0)\n");
	for (int k = 1; k <= depth; k++)
		sw_text_addf(&text, "%sq%d = f32[] call(q%d), to_apply=c%d\n",
		             k == depth ? "ROOT " : "", k, k - 1, k);
	sw_text_add(&text, "}\n");
	sw_program *program = read_text(text.data);
	sw_text_clear(&text);
	return program;
}

static void check_refused(sw_program *program, const char *why)
{
	sw_program *out;
	sw_error err;
	assert_int_equal(sw_rewrite_canonical(program, &out, &err), SW_ERR_INPUT);
	assert_null(out);
	assert_non_null(strstr(err.message, why));
	sw_program_free(program);
}

static void calls_that_nest_too_deep_or_explode_are_refused(void **state)
{
	(void)state;
	sw_program *program = chain(900, false), *out = canonical(program);
	assert_int_equal(out->ops.len, 2);
	sw_program_free(out);
	sw_program_free(program);
	program = chain(10, true);
	out = canonical(program);
	assert_int_equal(out->ops.len, 1 + 1024);
	sw_program_free(out);
	sw_program_free(program);
	check_refused(chain(5000, false), "nest deeper");
	check_refused(staircase(2000), "nest deeper");
	check_refused(chain(60, true), "written out");
}

static void collectives_are_refused(void **state)
{
	(void)state;
	check_refused(
		read_text(
			"HloModule m\n" SUM "ENTRY e { x = f32[] parameter(0)\n"
			"  ROOT r = f32[] all-reduce(x), replica_groups={{0,1}}, to_apply=sum }\n"),
		"'r', all-reduce: this program is already written for several devices");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_programs_have_the_expected_form),
		cmocka_unit_test(surviving_ops_keep_their_names_and_trip_counts),
		cmocka_unit_test(callees_may_stand_behind_their_callers),
		cmocka_unit_test(calls_that_nest_too_deep_or_explode_are_refused),
		cmocka_unit_test(collectives_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
