#include "planned/planned.h"
#include "search/search.h"
#include "explain/explain.h"

#include <stdlib.h>
#include <string.h>

void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s (%s)", err->file, err->line, err->column, err->message,
		         sw_status_name(status));
}

static void open_flat_cluster(const char *count, planned *p)
{
	sw_error err = {0};
	sw_text text = {0};
	sw_text_addf(
		&text,
		"version: 1\nname: flat\nlevels:\n  - {name: device, count: %s, latency: 1 us, "
		"bandwidth: 1 GB/s}\n",
		count);
	sw_text_add(&text,
	            "device:\n  name: ideal\n  fusion: none\n  memory: 64 GiB\n  memory_bandwidth: 1000 TB/s\n  "
	            "kernel_overhead: 0 us\n"
	            "  matmul_efficiency: 1\n  flops: {f32: 1 TFLOP/s}\n");
	check(sw_cluster_parse(text.data, text.len, "flat.yaml", &p->cluster, &err), &err);
	sw_text_clear(&text);
}

static void open_cluster(const char *cluster, planned *p)
{
	char path[512];
	sw_error err = {0};
	if (!strstr(cluster, ".yaml")) {
		open_flat_cluster(cluster, p);
		return;
	}
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s", cluster);
	check(sw_cluster_read(path, &p->cluster, &err), &err);
}

void open_text(const char *hlo, const char *cluster, planned *p)
{
	sw_error err = {0};
	*p = (planned){.path = "test.hlo"};
	check(sw_read_hlo(hlo, strlen(hlo), "test.hlo", &p->program, &err), &err);
	sw_program_order_ops(p->program); /* as when a file is read */
	sw_sidecar_default(p->program, &p->sidecar);
	open_cluster(cluster, p);
}

void open_fixture(const char *name, const char *cluster, planned *p)
{
	sw_error err = {0};
	*p = (planned){0};
	snprintf(p->path, sizeof(p->path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", name);
	check(sw_read_program(p->path, &p->program, &err), &err);
	check(sw_sidecar_find(p->path, p->program, &p->sidecar, &err), &err);
	open_cluster(cluster, p);
}

void open_fixture_op_by_op(const char *name, const char *cluster, planned *p)
{
	open_fixture(name, cluster, p);
	p->cluster.device.fusion = SW_FUSION_NONE;
}

static sw_status try_plan_with(planned *p, sw_plan_options options, const char *strategy,
                               sw_error *err)
{
	sw_status status = sw_plan_strategy_parse(strategy, &options.strategy, err);
	sw_plan_free(p->plan);
	p->plan = NULL;
	return status == SW_OK ? sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster,
	                                      &options, &p->plan, err)
	                       : status;
}

sw_status try_plan(planned *p, const char *strategy, int64_t memory_bytes, sw_error *err)
{
	sw_plan_options options = {.no_overlap = true,
	                           .quiet = true,
	                           .memory_bytes = memory_bytes,
	                           .remat = "none",
	                           .microbatches = 1};
	return try_plan_with(p, options, strategy, err);
}

void make_plan(planned *p, const char *strategy)
{
	sw_error err = {0};
	check(try_plan(p, strategy, 0, &err), &err);
	check(sw_plan_verify(p->plan, &err), &err);
}

double plan_under(planned *p, sw_plan_options options, const char *strategy)
{
	sw_error err = {0};
	check(try_plan_with(p, options, strategy, &err), &err);
	return p->plan->predicted.step_time_s;
}

void close_planned(planned *p)
{
	sw_plan_free(p->plan);
	sw_cluster_clear(&p->cluster);
	sw_sidecar_clear(&p->sidecar);
	sw_program_free(p->program);
	*p = (planned){0};
}

void explain_plan(const planned *p, bool whole, sw_text *text)
{
	sw_program *local;
	sw_origins origins = {0};
	sw_error err = {0};
	check(sw_partition_with_origins(p->plan, &local, &origins, &err), &err);
	json_t *explained = sw_plan_explain(&(sw_explained){p->plan, local, &origins, &p->sidecar});
	sw_plan_explain_print(explained, whole, text);
	json_decref(explained);
	sw_origins_clear(&origins);
	sw_program_free(local);
}

static sw_id input_value(const planned *p, uint32_t input)
{
	sw_arena arena = {0};
	const sw_id *values;
	uint32_t n = sw_program_inputs(p->plan->program, p->plan->program->entry, &arena, &values);
	assert_true(input < n);
	sw_id value = values[input];
	sw_arena_clear(&arena);
	return value;
}

const sw_layout *input_layout(const planned *p, uint32_t input)
{
	return sw_plan_layout(p->plan, p->plan->produced[input_value(p, input)]);
}

sw_shape input_shape(const planned *p, uint32_t input)
{
	return sw_value_shape(p->plan->program, input_value(p, input));
}

int64_t role_bytes(const planned *p, sw_role role)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < p->sidecar.n_inputs; i++)
		if (p->sidecar.inputs[i].role == role)
			bytes += sw_shape_bytes(input_shape(p, i));
	return bytes;
}

const sw_op *find_op(const sw_program *program, const char *name)
{
	for (size_t i = 0; i < program->ops.len; i++)
		if (!strcmp(program->ops.data[i].name, name))
			return &program->ops.data[i];
	fail_msg("there is no op '%s'", name);
	return NULL;
}

/* ---- blocks ----------------------------------------------------------------------------- */

typedef struct sizes {
	int layers, batch, length, width, heads;
} sizes;

#define DOT_IN "lhs_contracting_dims={2}, rhs_contracting_dims={0}"    /* x w */
#define DOT_OUT "lhs_contracting_dims={2}, rhs_contracting_dims={1}"   /* dy w' */
#define DOT_W "lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}" /* x' dy */
#define BY_HEAD "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}"

/* Write the forward pass of attention in layer l. r(2l + k) is the residual stream before its
 * sublayer k. */
static void attention_forward(sw_text *t, sizes s, int l)
{
	int b = s.batch, n = s.length, w = s.width, h = s.heads, d = s.width / s.heads, r = 2 * l;
	sw_text_addf(t, "  qkv%d = f32[%d,%d,%d] dot(r%d, wqkv%d), " DOT_IN "\n", l, b, n, 3 * w, r,
	             l);
	for (int i = 0; i < 3; i++) {
		sw_text_addf(t,
		             "  flat%d.%d = f32[%d,%d,%d] slice(qkv%d), slice={[0:%d], [0:%d], "
		             "[%d:%d]}\n",
		             l, i, b, n, w, l, b, n, i * w, (i + 1) * w);
		sw_text_addf(t, "  part%d.%d = f32[%d,%d,%d,%d] reshape(flat%d.%d)\n", l, i, b, n,
		             h, d, l, i);
	}
	sw_text_addf(t,
	             "  scores%d = f32[%d,%d,%d,%d] dot(part%d.0, part%d.1), " BY_HEAD
	             ", lhs_contracting_dims={3}, rhs_contracting_dims={3}\n",
	             l, b, h, n, n, l, l);
	sw_text_addf(t,
	             "  heads%d = f32[%d,%d,%d,%d] dot(scores%d, part%d.2), lhs_batch_dims={0,1}, "
	             "rhs_batch_dims={0,2}, "
	             "lhs_contracting_dims={3}, rhs_contracting_dims={1}\n",
	             l, b, h, n, d, l, l);
	sw_text_addf(t, "  turned%d = f32[%d,%d,%d,%d] transpose(heads%d), dimensions={0,2,1,3}\n",
	             l, b, n, h, d, l);
	sw_text_addf(t, "  mixed%d = f32[%d,%d,%d] reshape(turned%d)\n", l, b, n, w, l);
	sw_text_addf(t, "  attended%d = f32[%d,%d,%d] dot(mixed%d, wout%d), " DOT_IN "\n", l, b, n,
	             w, l, l);
	sw_text_addf(t, "  r%d = f32[%d,%d,%d] add(r%d, attended%d)\n", r + 1, b, n, w, r, l);
}

static void mlp_forward(sw_text *t, sizes s, int l)
{
	int b = s.batch, n = s.length, w = s.width, r = 2 * l + 1;
	sw_text_addf(t, "  up%d = f32[%d,%d,%d] dot(r%d, wup%d), " DOT_IN "\n", l, b, n, 4 * w, r,
	             l);
	sw_text_addf(t, "  none%d = f32[%d,%d,%d] broadcast(zero), dimensions={}\n", l, b, n,
	             4 * w);
	sw_text_addf(t, "  relu%d = f32[%d,%d,%d] maximum(up%d, none%d)\n", l, b, n, 4 * w, l, l);
	sw_text_addf(t, "  down%d = f32[%d,%d,%d] dot(relu%d, wdown%d), " DOT_IN "\n", l, b, n, w,
	             l, l);
	sw_text_addf(t, "  r%d = f32[%d,%d,%d] add(r%d, down%d)\n", r + 1, b, n, w, r, l);
}

/* d(k) is the gradient of r(k). */
static void mlp_backward(sw_text *t, sizes s, int l)
{
	int b = s.batch, n = s.length, w = s.width, r = 2 * l + 1;
	sw_text_addf(t, "  gdown%d = f32[%d,%d] dot(relu%d, d%d), " DOT_W "\n", l, 4 * w, w, l,
	             r + 1);
	sw_text_addf(t, "  drelu%d = f32[%d,%d,%d] dot(d%d, wdown%d), " DOT_OUT "\n", l, b, n,
	             4 * w, r + 1, l);
	sw_text_addf(t, "  on%d = pred[%d,%d,%d] compare(up%d, none%d), direction=GT\n", l, b, n,
	             4 * w, l, l);
	sw_text_addf(t, "  dup%d = f32[%d,%d,%d] select(on%d, drelu%d, none%d)\n", l, b, n, 4 * w,
	             l, l, l);
	sw_text_addf(t, "  gup%d = f32[%d,%d] dot(r%d, dup%d), " DOT_W "\n", l, w, 4 * w, r, l);
	sw_text_addf(t, "  back%d = f32[%d,%d,%d] dot(dup%d, wup%d), " DOT_OUT "\n", r, b, n, w, l,
	             l);
	sw_text_addf(t, "  d%d = f32[%d,%d,%d] add(d%d, back%d)\n", r, b, n, w, r + 1, r);
}

static void heads_backward(sw_text *t, sizes s, int l)
{
	int b = s.batch, n = s.length, h = s.heads, d = s.width / s.heads;
	sw_text_addf(t, "  dturned%d = f32[%d,%d,%d,%d] reshape(dmixed%d)\n", l, b, n, h, d, l);
	sw_text_addf(t,
	             "  dheads%d = f32[%d,%d,%d,%d] transpose(dturned%d), dimensions={0,2,1,3}\n",
	             l, b, h, n, d, l);
	sw_text_addf(
		t,
		"  dscores%d = f32[%d,%d,%d,%d] dot(dheads%d, part%d.2), lhs_batch_dims={0,1}, "
		"rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}\n",
		l, b, h, n, n, l, l);
	static const char *const parts[] = {
		"dscores%d, part%d.1), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, "
		"lhs_contracting_dims={3}, rhs_contracting_dims={1}\n",
		"dscores%d, part%d.0), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, "
		"lhs_contracting_dims={2}, rhs_contracting_dims={1}\n",
		"scores%d, dheads%d), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
		"lhs_contracting_dims={2}, rhs_contracting_dims={2}\n"};
	for (int i = 0; i < 3; i++) {
		char number[16];
		snprintf(number, sizeof(number), "%d", l);
		sw_text_addf(t, "  dpart%d.%d = f32[%d,%d,%d,%d] dot(", l, i, b, h, n, d);
		for (const char *c = parts[i]; *c; c++) {
			bool here = c[0] == '%' && c[1] == 'd';
			sw_text_add_n(t, here ? number : c, here ? strlen(number) : 1);
			c += here;
		}
		sw_text_addf(t,
		             "  dback%d.%d = f32[%d,%d,%d,%d] transpose(dpart%d.%d), "
		             "dimensions={0,2,1,3}\n",
		             l, i, b, n, h, d, l, i);
		sw_text_addf(t, "  dflat%d.%d = f32[%d,%d,%d] reshape(dback%d.%d)\n", l, i, b, n,
		             s.width, l, i);
	}
}

/* The gradient of the first block's input is not needed. */
static void attention_backward(sw_text *t, sizes s, int l)
{
	int b = s.batch, n = s.length, w = s.width, r = 2 * l;
	sw_text_addf(t, "  gout%d = f32[%d,%d] dot(mixed%d, d%d), " DOT_W "\n", l, w, w, l, r + 1);
	sw_text_addf(t, "  dmixed%d = f32[%d,%d,%d] dot(d%d, wout%d), " DOT_OUT "\n", l, b, n, w,
	             r + 1, l);
	heads_backward(t, s, l);
	sw_text_addf(t,
	             "  dqkv%d = f32[%d,%d,%d] concatenate(dflat%d.0, dflat%d.1, dflat%d.2), "
	             "dimensions={2}\n",
	             l, b, n, 3 * w, l, l, l);
	sw_text_addf(t, "  gqkv%d = f32[%d,%d] dot(r%d, dqkv%d), " DOT_W "\n", l, w, 3 * w, r, l);
	if (l == 0)
		return;
	sw_text_addf(t, "  back%d = f32[%d,%d,%d] dot(dqkv%d, wqkv%d), " DOT_OUT "\n", r, b, n, w,
	             l, l);
	sw_text_addf(t, "  d%d = f32[%d,%d,%d] add(d%d, back%d)\n", r, b, n, w, r + 1, r);
}

static const struct {
	const char *name;
	int rows, columns; /* in units of the width */
} WEIGHTS[] = {{"qkv", 1, 3}, {"out", 1, 1}, {"up", 1, 4}, {"down", 4, 1}};

static void weights_and_update(sw_text *t, sizes s, bool update)
{
	for (int i = 0; i < 4 * s.layers; i++) {
		int l = i / 4, k = i % 4, rows = WEIGHTS[k].rows * s.width,
		    columns = WEIGHTS[k].columns * s.width;
		if (update)
			sw_text_addf(t, "  new%s%d = f32[%d,%d] subtract(w%s%d, g%s%d)\n",
			             WEIGHTS[k].name, l, rows, columns, WEIGHTS[k].name, l,
			             WEIGHTS[k].name, l);
		else
			sw_text_addf(t, "  w%s%d = f32[%d,%d] parameter(%d)\n", WEIGHTS[k].name, l,
			             rows, columns, i);
	}
}

static void results(sw_text *t, sizes s)
{
	sw_text_add(t, "  ROOT result = (");
	for (int i = 0; i < 4 * s.layers; i++)
		sw_text_addf(t, "f32[%d,%d], ", WEIGHTS[i % 4].rows * s.width,
		             WEIGHTS[i % 4].columns * s.width);
	sw_text_add(t, "f32[]) tuple(");
	for (int i = 0; i < 4 * s.layers; i++)
		sw_text_addf(t, "new%s%d, ", WEIGHTS[i % 4].name, i / 4);
	sw_text_add(t, "loss)\n}\n");
}

char *write_blocks(int layers, int batch, int length, int width, int heads)
{
	sizes s = {layers, batch, length, width, heads};
	sw_text t = {0};
	sw_text_add(&t, "HloModule blocks, input_output_alias={");
	for (int i = 0; i < 4 * layers; i++)
		sw_text_addf(&t, "%s {%d}: (%d, {}, may-alias)", i ? "," : "", i, i);
	sw_text_add(
		&t,
		" }\nadd.f32 {\n  a.1 = f32[] parameter(0)\n  b.1 = f32[] parameter(1)\n  ROOT s.1 "
		"= f32[] add(a.1, b.1)\n}\n"
		"ENTRY main {\n");
	weights_and_update(&t, s, false);
	sw_text_addf(&t, "  r0 = f32[%d,%d,%d] parameter(%d)\n  zero = f32[] constant(0)\n", batch,
	             length, width, 4 * layers);
	for (int l = 0; l < layers; l++) {
		attention_forward(&t, s, l);
		mlp_forward(&t, s, l);
	}
	int last = 2 * layers;
	sw_text_addf(&t, "  d%d = f32[%d,%d,%d] tanh(r%d)\n", last, batch, length, width, last);
	sw_text_addf(&t, "  loss = f32[] reduce(d%d, zero), dimensions={0,1,2}, to_apply=add.f32\n",
	             last);
	for (int l = layers - 1; l >= 0; l--) {
		mlp_backward(&t, s, l);
		attention_backward(&t, s, l);
	}
	weights_and_update(&t, s, true);
	results(&t, s);
	return t.data;
}

sw_layout draw_layout(const sw_atoms *atoms, sw_shape shape, bool gaps, sw_rng *rng)
{
	sw_layout layout = sw_layout_replicated(atoms);
	int64_t top[8];
	int32_t first = (int32_t)sw_rng_below(rng, atoms->n);
	for (int32_t d = 0; d < shape.rank; d++)
		top[d] = shape.dims[d];
	for (int32_t k = 0; k < atoms->n && shape.rank > 0; k++) {
		int32_t a = (first + k) % atoms->n;
		int32_t d = (int32_t)sw_rng_below(rng, shape.rank + 1);
		if (d == shape.rank)
			continue;
		if (gaps && sw_rng_below(rng, 3) == 0 && top[d] % 2 == 0)
			top[d] /= 2;
		if (sw_layout_split(atoms, &layout, 1u << a, d, top[d]))
			top[d] = layout.state[a].stride;
	}
	assert_true(sw_layout_valid(atoms, shape, &layout));
	return layout;
}
