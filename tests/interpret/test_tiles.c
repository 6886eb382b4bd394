/*
 * Fusions that run tile by tile give what their ops give one after the other: on tables of cases
 * and on random computations, in a pool and in an arena, on one thread and on several.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/frontend.h"
#include "generate/generate.h"
#include "interpret/interpret.h"

enum { MAX_INPUTS = 8, MAX_RESULTS = 6 };

static void check(sw_status status, const sw_error *err, const char *text)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s\n%s", err->file, err->line, err->column, err->message, text);
}

/* ---- a program around a computation ----------------------------------------------------- */

/* A computation to fuse: `body` is its text, `parameters` and `result` are types of HLO text. */
typedef struct fused_case {
	const char *name, *body, *result;
	const char *parameters[MAX_INPUTS];
} fused_case;

static const char reducers[] = "add_f32 {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT "
                               "r = f32[] add(x, y)\n}\n"
			       "max_f32 {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT "
                               "r = f32[] maximum(x, y)\n}\n"
			       "mul_f32 {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT "
                               "r = f32[] multiply(x, y)\n}\n"
			       "add_bf16 {\n x = bf16[] parameter(0)\n y = bf16[] parameter(1)\n "
                               "ROOT r = bf16[] add(x, y)\n}\n"
			       "add_s32 {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT "
                               "r = s32[] add(x, y)\n}\n"
			       "or_pred {\n x = pred[] parameter(0)\n y = pred[] parameter(1)\n "
                               "ROOT r = pred[] or(x, y)\n}\n";

/* As a fusion, or as a call, whose ops run one by one. alias: the module's input_output_alias. */
static sw_program *program_of(const fused_case *c, bool fused, const char *alias)
{
	sw_text text = {0};
	sw_error err = {0};
	sw_program *program = NULL;
	sw_text_addf(&text, "HloModule m%s\n\n%sinner {\n%s}\n\nENTRY e {\n", alias, reducers,
	             c->body);
	int n = 0;
	for (; n < MAX_INPUTS && c->parameters[n]; n++)
		sw_text_addf(&text, "  p%d = %s parameter(%d)\n", n, c->parameters[n], n);
	sw_text_addf(&text, "  ROOT f = %s %s(", c->result, fused ? "fusion" : "call");
	for (int i = 0; i < n; i++)
		sw_text_addf(&text, "%sp%d", i ? ", " : "", i);
	sw_text_addf(&text, fused ? "), kind=kLoop, kernel=loop, calls=inner\n}\n"
	                          : "), to_apply=inner\n}\n");
	check(sw_read_hlo(text.data, text.len, "case", &program, &err), &err, text.data);
	sw_text_clear(&text);
	return program;
}

static void fill(sw_tensor t, uint64_t stream)
{
	for (int64_t e = 0; e < sw_shape_elements(t.shape); e++) {
		double x = sw_random_normal(5, stream, (uint64_t)e);
		if (sw_type_kind_of(t.shape.type) != SW_KIND_FLOAT)
			x = floor(3 * fabs(x));
		sw_element_set(t.shape.type, sw_tensor_data(t), e,
		               t.shape.type == SW_PRED ? (double)(x > 1) : x);
	}
}

typedef struct outcome {
	sw_arena arena;
	sw_program *program;
	sw_placement *placement;
	sw_interpreter *interpreter;
	sw_tensor out[MAX_RESULTS];
	uint32_t n;
} outcome;

static void run(outcome *o, sw_program *program, bool placed, int threads, const char *name)
{
	sw_error err = {0};
	const sw_id *inputs;
	sw_tensor in[MAX_INPUTS];
	sw_arena_init(&o->arena);
	o->program = program;
	o->placement = placed ? sw_placement_new(program) : NULL;
	o->n = (uint32_t)sw_entry(program)->results.len;
	sw_interpret_options options = {.blas_threads = threads, .placement = o->placement};
	check(sw_interpreter_new(program, &options, &o->interpreter, &err), &err, name);
	uint32_t n = sw_program_inputs(program, program->entry, &o->arena, &inputs);
	for (uint32_t i = 0; i < n; i++) {
		check(sw_interpreter_input(o->interpreter, i, &in[i], &err), &err, name);
		fill(in[i], i);
	}
	check(sw_interpret(o->interpreter, in, n, o->out, o->n, &err), &err, name);
}

static void outcome_clear(outcome *o)
{
	for (uint32_t i = 0; i < o->n && !o->placement; i++)
		sw_tensor_drop(&o->out[i]);
	sw_interpreter_free(o->interpreter);
	sw_placement_free(o->placement);
	sw_program_free(o->program);
	sw_arena_clear(&o->arena);
}

static const sw_op *fusion_of(const sw_program *program)
{
	const sw_computation *c = sw_entry(program);
	return sw_op_at(program, c->ops.data[c->ops.len - 1]);
}

/* Compare with the ops one by one. Return whether the fusion runs tile by tile. */
static bool compare(const fused_case *c, const char *alias, double tolerance)
{
	static const struct {
		bool placed;
		int threads;
	} ways[] = {{false, 1}, {true, 1}, {true, 3}};
	outcome want, got;
	const char *why;
	bool tiles = false;
	run(&want, program_of(c, false, alias), false, 1, c->name);
	for (size_t w = 0; w < SW_COUNT(ways); w++) {
		run(&got, program_of(c, true, alias), ways[w].placed, ways[w].threads, c->name);
		tiles = sw_tile_can_run(got.program, fusion_of(got.program), &why);
		assert_int_equal(got.n, want.n);
		for (uint32_t i = 0; i < want.n; i++) {
			sw_difference d = sw_tensor_compare(got.out[i], want.out[i]);
			if (!(d.relative <= tolerance))
				fail_msg("%s%s, way %zu: result %u differs by %g at element "
				         "%lld:\n%s",
				         c->name, alias, w, i, d.relative, (long long)d.first_bad,
				         c->body);
		}
		outcome_clear(&got);
	}
	outcome_clear(&want);
	return tiles;
}

/* ---- cases ------------------------------------------------------------------------------ */

static const fused_case cases[] = {
	{"elementwise",
         "  a = f32[300,70] parameter(0)\n  b = f32[70] parameter(1)\n"
         "  bb = f32[300,70] broadcast(b), dimensions={1}\n  s = f32[300,70] add(a, bb)\n"
         "  c = bf16[300,70] convert(s)\n  ROOT t = f32[300,70] tanh(s)\n",
         "f32[300,70]",
         {"f32[300,70]", "f32[70]"}},
	{"softmax",
         "  x = f32[6,50,90] parameter(0)\n  low = f32[] constant(-inf)\n  z = f32[] constant(0)\n"
         "  m = f32[6,50] reduce(x, low), dimensions={2}, to_apply=max_f32\n"
         "  mb = f32[6,50,90] broadcast(m), dimensions={0,1}\n  d = f32[6,50,90] subtract(x, mb)\n"
         "  e = f32[6,50,90] exponential(d)\n"
         "  s = f32[6,50] reduce(e, z), dimensions={2}, to_apply=add_f32\n"
         "  sb = f32[6,50,90] broadcast(s), dimensions={0,1}\n"
         "  ROOT r = f32[6,50,90] divide(e, sb)\n",
         "f32[6,50,90]",
         {"f32[6,50,90]"}},
	{"column sums and the array",
         "  x = f32[900,40] parameter(0)\n  y = f32[900,40] parameter(1)\n  z = f32[] constant(0)\n"
         "  p = f32[900,40] multiply(x, y)\n"
         "  s = f32[40] reduce(p, z), dimensions={0}, to_apply=add_f32\n"
         "  n = f32[] constant(900)\n  nb = f32[40] broadcast(n), dimensions={}\n"
         "  q = f32[40] divide(s, nb)\n  ROOT r = (f32[900,40], f32[40]) tuple(p, q)\n",
         "(f32[900,40], f32[40])",
         {"f32[900,40]", "f32[900,40]"}},
	{"sum of all",
         "  x = bf16[123,457] parameter(0)\n  z = f32[] constant(0)\n"
         "  c = f32[123,457] convert(x)\n  q = f32[123,457] multiply(c, c)\n"
         "  s = f32[] reduce(q, z), dimensions={0,1}, to_apply=add_f32\n"
         "  ROOT r = f32[] sqrt(s)\n",
         "f32[]",
         {"bf16[123,457]"}},
	{"transposed and reshaped",
         "  x = f32[8,30,4,16] parameter(0)\n  y = f32[240,64] parameter(1)\n"
         "  t = f32[8,4,30,16] transpose(x), dimensions={0,2,1,3}\n"
         "  n = f32[8,4,30,16] negate(t)\n"
         "  u = f32[8,30,4,16] transpose(n), dimensions={0,2,1,3}\n"
         "  v = f32[240,64] reshape(u)\n  ROOT r = f32[240,64] add(v, y)\n",
         "f32[240,64]",
         {"f32[8,30,4,16]", "f32[240,64]"}},
	{"halves turned",
         "  x = f32[40,6,64] parameter(0)\n  c = f32[40,32] parameter(1)\n"
         "  q = f32[40,6,64] multiply(x, x)\n"
         "  a = f32[40,6,32] slice(q), slice={[0:40],[0:6],[0:32]}\n"
         "  b = f32[40,6,32] slice(q), slice={[0:40],[0:6],[32:64]}\n"
         "  cb = f32[40,6,32] broadcast(c), dimensions={0,2}\n"
         "  ac = f32[40,6,32] multiply(a, cb)\n  bc = f32[40,6,32] multiply(b, cb)\n"
         "  d = f32[40,6,32] subtract(ac, bc)\n"
         "  ROOT r = f32[40,6,64] concatenate(d, ac), dimensions={2}\n",
         "f32[40,6,64]",
         {"f32[40,6,64]", "f32[40,32]"}},
	{"shifted rows",
         "  x = f32[500,48] parameter(0)\n  z = f32[] constant(7)\n  e = f32[500,48] "
         "exponential(x)\n"
         "  s = f32[499,48] slice(e), slice={[0:499],[0:48]}\n"
         "  p = f32[500,48] pad(s, z), padding=1_0x0_0\n  ROOT r = f32[500,48] subtract(e, p)\n",
         "f32[500,48]",
         {"f32[500,48]"}},
	{"a mask of counters",
         "  x = f32[5,70,70] parameter(0)\n  i = s32[70,70] iota(), iota_dimension=0\n"
         "  j = s32[70,70] iota(), iota_dimension=1\n  g = pred[70,70] compare(i, j), "
         "direction=GE\n"
         "  gb = pred[5,70,70] broadcast(g), dimensions={1,2}\n  z = f32[] constant(-1e9)\n"
         "  zb = f32[5,70,70] broadcast(z), dimensions={}\n"
         "  ROOT r = f32[5,70,70] select(gb, x, zb)\n",
         "f32[5,70,70]",
         {"f32[5,70,70]"}},
	{"a slice that moves",
         "  x = f32[20,30,64] parameter(0)\n  i = s32[] parameter(1)\n  z = s32[] constant(0)\n"
         "  d = f32[1,30,64] dynamic-slice(x, i, z, z), dynamic_slice_sizes={1,30,64}\n"
         "  m = f32[30,64] reshape(d)\n  ROOT r = f32[30,64] cosine(m)\n",
         "f32[30,64]",
         {"f32[20,30,64]", "s32[]"}},
	{"an optimizer's step",
         "  p = f32[333,65] parameter(0)\n  m = f32[333,65] parameter(1)\n"
         "  g = f32[333,65] parameter(2)\n  k = f32[] parameter(3)\n"
         "  c = f32[] constant(0.9)\n  cb = f32[333,65] broadcast(c), dimensions={}\n"
         "  cm = f32[333,65] multiply(cb, m)\n  n = f32[333,65] add(cm, g)\n"
         "  l = f32[] multiply(k, c)\n  lb = f32[333,65] broadcast(l), dimensions={}\n"
         "  u = f32[333,65] multiply(lb, n)\n  q = f32[333,65] subtract(p, u)\n"
         "  w = f32[333,65] multiply(q, m)\n"
         "  ROOT r = (f32[333,65], f32[333,65], f32[333,65]) tuple(q, n, w)\n",
         "(f32[333,65], f32[333,65], f32[333,65])",
         {"f32[333,65]", "f32[333,65]", "f32[333,65]", "f32[]"}},
	{"few terms and many sums",
         "  x = f32[4,90000] parameter(0)\n  z = f32[] constant(0)\n  q = f32[4,90000] multiply(x, "
         "x)\n"
         "  ROOT s = f32[90000] reduce(q, z), dimensions={0}, to_apply=add_f32\n",
         "f32[90000]",
         {"f32[4,90000]"}},
	{"backwards",
         "  x = f32[77,130] parameter(0)\n  e = f32[77,130] negate(x)\n"
         "  v = f32[77,130] reverse(e), dimensions={0}\n  ROOT r = f32[77,130] add(v, e)\n",
         "f32[77,130]",
         {"f32[77,130]"}},
};

static void fusions_give_what_their_ops_give(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		if (!compare(&cases[i], "", 1e-6))
			fail_msg("%s does not run tile by tile", cases[i].name);
}

/* Parameters and moments are updated in the buffers that they have. */
static void updates_are_made_in_place(void **state)
{
	(void)state;
	fused_case c = cases[9];
	static const char alias[] = ", input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, "
				    "must-alias) }";
	assert_string_equal(c.name, "an optimizer's step");
	assert_true(compare(&c, alias, 1e-6));
	sw_program *program = program_of(&c, true, alias);
	const int64_t array = 333 * 65 * 4;
	/* three inputs and one result that has no operand to lie over but the gradient */
	int64_t bytes = sw_placement_bytes(program);
	assert_true(bytes < 4 * array + (INT64_C(1) << 18));
	sw_program_free(program);
}

/* ---- random computations ---------------------------------------------------------------- */

enum { MAX_VALUES = 40, RANKS = 3 };

typedef struct made {
	int rank;
	int64_t dims[4];
} made;

typedef struct maker {
	sw_rng rng;
	sw_text body;
	made values[MAX_VALUES];
	int n, n_parameters;
	char parameters[MAX_INPUTS][64];
} maker;

static void add_type(sw_text *text, const made *m)
{
	sw_text_add(text, "f32[");
	for (int d = 0; d < m->rank; d++)
		sw_text_addf(text, "%s%lld", d ? "," : "", (long long)m->dims[d]);
	sw_text_add(text, "]");
}

static void begin_op(maker *m, made to)
{
	m->values[m->n] = to;
	sw_text_addf(&m->body, "  v%d = ", m->n++);
	add_type(&m->body, &to);
}

static void add_list(maker *m, const char *name, const int64_t *list, int n)
{
	sw_text_addf(&m->body, ", %s={", name);
	for (int i = 0; i < n; i++)
		sw_text_addf(&m->body, "%s%lld", i ? "," : "", (long long)list[i]);
	sw_text_add(&m->body, "}");
}

static int pick(maker *m)
{
	return (int)sw_rng_below(&m->rng, m->n);
}

static void add_parameter(maker *m)
{
	static const int64_t sizes[] = {1, 2, 3, 5, 8, 12, 31, 64, 130};
	made v = {.rank = 1 + (int)sw_rng_below(&m->rng, RANKS)};
	sw_text type = {0};
	for (int d = 0; d < v.rank; d++)
		v.dims[d] = sizes[sw_rng_below(&m->rng, SW_COUNT(sizes))];
	add_type(&type, &v);
	snprintf(m->parameters[m->n_parameters], sizeof m->parameters[0], "%s", type.data);
	sw_text_clear(&type);
	begin_op(m, v);
	sw_text_addf(&m->body, " parameter(%d)\n", m->n_parameters++);
}

static void add_unary(maker *m)
{
	static const char *const ops[] = {"negate", "tanh", "abs", "cosine"};
	int x = pick(m);
	begin_op(m, m->values[x]);
	sw_text_addf(&m->body, " %s(v%d)\n", ops[sw_rng_below(&m->rng, SW_COUNT(ops))], x);
}

static bool same_shape(const made *a, const made *b)
{
	return a->rank == b->rank &&
	       memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) == 0;
}

static void add_binary(maker *m)
{
	static const char *const ops[] = {"add", "subtract", "multiply", "maximum"};
	int x = pick(m), y = x;
	for (int tries = 0; tries < 20; tries++) {
		int other = pick(m);
		if (same_shape(&m->values[x], &m->values[other]))
			y = other;
	}
	begin_op(m, m->values[x]);
	sw_text_addf(&m->body, " %s(v%d, v%d)\n", ops[sw_rng_below(&m->rng, SW_COUNT(ops))], x, y);
}

static void add_transpose(maker *m)
{
	int x = pick(m);
	made from = m->values[x], to = from;
	int64_t order[4] = {0, 1, 2, 3};
	for (int d = from.rank - 1; d > 0; d--) {
		int e = (int)sw_rng_below(&m->rng, d + 1);
		int64_t swap = order[d];
		order[d] = order[e];
		order[e] = swap;
	}
	for (int d = 0; d < from.rank; d++)
		to.dims[d] = from.dims[order[d]];
	begin_op(m, to);
	sw_text_addf(&m->body, " transpose(v%d)", x);
	add_list(m, "dimensions", order, from.rank);
	sw_text_add(&m->body, "\n");
}

/* Merge two dimensions, or split one. */
static void add_reshape(maker *m)
{
	int x = pick(m);
	made from = m->values[x], to = {.rank = 0};
	int at = from.rank ? (int)sw_rng_below(&m->rng, from.rank) : 0;
	for (int d = 0; d < from.rank; d++) {
		int64_t n = from.dims[d];
		int64_t part = n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 1;
		if (d == at && from.rank < 4 && sw_rng_below(&m->rng, 2)) {
			to.dims[to.rank++] = part;
			to.dims[to.rank++] = n / part;
		} else if (d == at && d > 0 && to.rank) {
			to.dims[to.rank - 1] *= n;
		} else {
			to.dims[to.rank++] = n;
		}
	}
	begin_op(m, to);
	sw_text_addf(&m->body, " reshape(v%d)\n", x);
}

static void add_broadcast(maker *m)
{
	static const int64_t sizes[] = {1, 2, 5, 64};
	int x = pick(m);
	made from = m->values[x], to = {.rank = 0};
	int64_t dims[4];
	if (from.rank > 3 || (from.rank && from.dims[0] > 64))
		return;
	int at = (int)sw_rng_below(&m->rng, from.rank + 1);
	for (int d = 0, r = 0; d <= from.rank; d++) {
		if (d == at)
			to.dims[r++] = sizes[sw_rng_below(&m->rng, SW_COUNT(sizes))];
		if (d < from.rank) {
			dims[d] = r;
			to.dims[r++] = from.dims[d];
		}
		to.rank = r;
	}
	begin_op(m, to);
	sw_text_addf(&m->body, " broadcast(v%d)", x);
	add_list(m, "dimensions", dims, from.rank);
	sw_text_add(&m->body, "\n");
}

static void add_slice(maker *m)
{
	int x = pick(m);
	made from = m->values[x], to = from;
	int64_t start[4], limit[4], stride[4];
	for (int d = 0; d < from.rank; d++) {
		bool cut = sw_rng_below(&m->rng, 2) && from.dims[d] > 1;
		stride[d] = cut ? 1 + sw_rng_below(&m->rng, 2) : 1;
		start[d] = cut ? sw_rng_below(&m->rng, from.dims[d] - 1) : 0;
		limit[d] = cut ? start[d] + 1 + sw_rng_below(&m->rng, from.dims[d] - start[d])
		               : from.dims[d];
		to.dims[d] = (limit[d] - start[d] + stride[d] - 1) / stride[d];
	}
	begin_op(m, to);
	sw_text_addf(&m->body, " slice(v%d), slice={", x);
	for (int d = 0; d < from.rank; d++)
		sw_text_addf(&m->body, "%s[%lld:%lld:%lld]", d ? "," : "", (long long)start[d],
		             (long long)limit[d], (long long)stride[d]);
	sw_text_add(&m->body, "}\n");
}

static void add_pad(maker *m)
{
	int x = pick(m);
	made from = m->values[x], to = from;
	if (from.rank == 0)
		return;
	begin_op(m, (made){0});
	sw_text_addf(&m->body, " constant(%d)\n", (int)sw_rng_below(&m->rng, 5));
	int64_t low[4], high[4];
	for (int d = 0; d < from.rank; d++) {
		low[d] = sw_rng_below(&m->rng, 3) ? 0 : sw_rng_below(&m->rng, 4) - 1;
		high[d] = sw_rng_below(&m->rng, 3) ? 0 : sw_rng_below(&m->rng, 4) - 1;
		if (from.dims[d] + low[d] + high[d] < 1)
			low[d] = high[d] = 0;
		to.dims[d] += low[d] + high[d];
	}
	int value = m->n - 1;
	begin_op(m, to);
	sw_text_addf(&m->body, " pad(v%d, v%d), padding=", x, value);
	for (int d = 0; d < from.rank; d++)
		sw_text_addf(&m->body, "%s%lld_%lld", d ? "x" : "", (long long)low[d],
		             (long long)high[d]);
	sw_text_add(&m->body, "\n");
}

static void add_concatenate(maker *m)
{
	int x = pick(m), y = pick(m);
	made to = m->values[x];
	if (to.rank == 0 || !same_shape(&m->values[x], &m->values[y]))
		y = x;
	if (to.rank == 0)
		return;
	int64_t d = sw_rng_below(&m->rng, to.rank);
	to.dims[d] *= 2;
	begin_op(m, to);
	sw_text_addf(&m->body, " concatenate(v%d, v%d)", x, y);
	add_list(m, "dimensions", &d, 1);
	sw_text_add(&m->body, "\n");
}

static void add_reverse(maker *m)
{
	int x = pick(m);
	if (m->values[x].rank == 0)
		return;
	int64_t d = sw_rng_below(&m->rng, m->values[x].rank);
	begin_op(m, m->values[x]);
	sw_text_addf(&m->body, " reverse(v%d)", x);
	add_list(m, "dimensions", &d, 1);
	sw_text_add(&m->body, "\n");
}

static void add_reduce(maker *m)
{
	static const char *const by[] = {"add_f32", "max_f32"};
	int x = pick(m);
	made from = m->values[x], to = {.rank = 0};
	int64_t dims[4];
	int n = 0;
	for (int d = 0; d < from.rank; d++) {
		if (sw_rng_below(&m->rng, 2))
			dims[n++] = d;
		else
			to.dims[to.rank++] = from.dims[d];
	}
	begin_op(m, (made){0});
	sw_text_addf(&m->body, " constant(0)\n");
	int start = m->n - 1;
	begin_op(m, to);
	sw_text_addf(&m->body, " reduce(v%d, v%d)", x, start);
	add_list(m, "dimensions", dims, n);
	sw_text_addf(&m->body, ", to_apply=%s\n", by[sw_rng_below(&m->rng, 2)]);
}

static void add_counter(maker *m)
{
	made to = m->values[pick(m)];
	if (to.rank == 0)
		return;
	begin_op(m, to);
	sw_text_addf(&m->body, " iota(), iota_dimension=%d\n", (int)sw_rng_below(&m->rng, to.rank));
}

static void add_mask(maker *m)
{
	int x = pick(m), y = pick(m);
	made to = m->values[x];
	if (!same_shape(&m->values[x], &m->values[y]))
		y = x;
	sw_text type = {0};
	add_type(&type, &to);
	sw_text_addf(&m->body, "  g%d = pred%s compare(v%d, v%d), direction=LT\n", m->n,
	             type.data + 3, x, y);
	sw_text_clear(&type);
	int mask = m->n;
	begin_op(m, to);
	sw_text_addf(&m->body, " select(g%d, v%d, v%d)\n", mask, y, x);
}

static int64_t size_of(const made *m)
{
	int64_t n = 1;
	for (int d = 0; d < m->rank; d++)
		n *= m->dims[d];
	return n;
}

static void make(maker *m, int ops)
{
	static void (*const adders[])(maker *) = {
		add_unary,     add_unary,   add_binary,    add_binary,  add_binary,
		add_transpose, add_reshape, add_slice,     add_pad,     add_concatenate,
		add_reverse,   add_reduce,  add_broadcast, add_counter, add_mask,
	};
	int parameters = 1 + (int)sw_rng_below(&m->rng, 3);
	for (int i = 0; i < parameters; i++)
		add_parameter(m);
	while (m->n < ops) {
		adders[sw_rng_below(&m->rng, SW_COUNT(adders))](m);
		if (size_of(&m->values[m->n - 1]) > 200000)
			break;
	}
}

static void add_results(maker *m, sw_text *type)
{
	int n = 1 + (int)sw_rng_below(&m->rng, 3);
	sw_text list = {0};
	for (int i = 0; i < n; i++) {
		int v = i ? pick(m) : m->n - 1;
		sw_text_addf(&list, "%sv%d", i ? ", " : "", v);
		sw_text_add(type, i ? ", " : "(");
		add_type(type, &m->values[v]);
	}
	sw_text_add(type, ")");
	sw_text_addf(&m->body, "  ROOT r = %s tuple(%s)\n", type->data, list.data);
	sw_text_clear(&list);
}

static void random_fusions_give_what_their_ops_give(void **state)
{
	(void)state;
	enum { COMPUTATIONS = 400 };
	const char *from = getenv("SW_SEED");
	uint64_t first = from ? (uint64_t)strtoull(from, NULL, 10) : 1;
	int tiles = 0;
	for (uint64_t seed = first; seed < first + COMPUTATIONS; seed++) {
		maker m = {.rng = {.seed = seed}};
		sw_text type = {0};
		char name[32];
		make(&m, 4 + (int)sw_rng_below(&m.rng, 14));
		add_results(&m, &type);
		snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
		fused_case c = {name, m.body.data, type.data, {NULL}};
		for (int i = 0; i < m.n_parameters; i++)
			c.parameters[i] = m.parameters[i];
		tiles += compare(&c, "", 1e-5);
		sw_text_clear(&type);
		sw_text_clear(&m.body);
	}
	print_message("%d of %d random fusions run tile by tile\n", tiles, COMPUTATIONS);
	assert_true(tiles > COMPUTATIONS / 2);
}

/* ---- many results ----------------------------------------------------------------------- */

/* Of a fusion like an optimizer's, with many operands and results of one size, each pair is asked
 * for: the fusion is planned a few times, not once per pair, which would take minutes. */
enum { MANY_OPERANDS = 60, MANY_RESULTS = 500, MOST_S = 10 };

static void many_results_are_laid_over_operands_quickly(void **state)
{
	sw_text text = {0};
	sw_error err = {0};
	sw_program *program = NULL;
	sw_arena arena = {0};
	(void)state;
	sw_text_add(&text, "HloModule m\n\ninner {\n");
	for (int i = 0; i < MANY_OPERANDS; i++)
		sw_text_addf(&text, "  p%d = f32[64] parameter(%d)\n", i, i);
	for (int i = 0; i < MANY_RESULTS; i++)
		sw_text_addf(&text, "  r%d = f32[64] add(p%d, p%d)\n", i, i % MANY_OPERANDS,
		             (i + 7) % MANY_OPERANDS);
	sw_text_add(&text, "  ROOT t = (");
	for (int i = 0; i < MANY_RESULTS; i++)
		sw_text_addf(&text, "%sf32[64]", i ? ", " : "");
	sw_text_add(&text, ") tuple(");
	for (int i = 0; i < MANY_RESULTS; i++)
		sw_text_addf(&text, "%sr%d", i ? ", " : "", i);
	sw_text_add(&text, ")\n}\n\nENTRY e {\n");
	for (int i = 0; i < MANY_OPERANDS; i++)
		sw_text_addf(&text, "  q%d = f32[64] parameter(%d)\n", i, i);
	sw_text_add(&text, "  ROOT f = (");
	for (int i = 0; i < MANY_RESULTS; i++)
		sw_text_addf(&text, "%sf32[64]", i ? ", " : "");
	sw_text_add(&text, ") fusion(");
	for (int i = 0; i < MANY_OPERANDS; i++)
		sw_text_addf(&text, "%sq%d", i ? ", " : "", i);
	sw_text_add(&text, "), kind=kLoop, kernel=loop, calls=inner\n}\n");
	check(sw_read_hlo(text.data, text.len, "many", &program, &err), &err, text.data);
	clock_t before = clock();
	sw_buffers b = sw_buffers_of(program, &arena);
	assert_true((double)(clock() - before) / CLOCKS_PER_SEC < MOST_S);
	sw_id first = sw_entry(program)->results.data[0];
	const sw_op *fusion = sw_op_at(program, program->values.data[first].op);
	for (int i = 0; i < MANY_RESULTS; i++)
		assert_true(b.over[fusion->first_result + (sw_id)i] >> i % MANY_OPERANDS & 1);
	sw_arena_clear(&arena);
	sw_program_free(program);
	sw_text_clear(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fusions_give_what_their_ops_give),
		cmocka_unit_test(updates_are_made_in_place),
		cmocka_unit_test(random_fusions_give_what_their_ops_give),
		cmocka_unit_test(many_results_are_laid_over_operands_quickly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
