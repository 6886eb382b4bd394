/* Random transfers, and plans carried out on arrays (transfers.h). */
#include "crossmesh/transfers.h"

#include <math.h>
#include <string.h>

#include "test.h"

/* ---- clusters --------------------------------------------------------------------------- */

sw_cluster cluster_of(const cluster_shape *s)
{
	sw_text text = {0};
	sw_cluster cluster;
	sw_error err = {0};
	int64_t least = s->bandwidth_mb[0];
	for (int32_t i = 1; i < s->n; i++)
		least = SW_MIN(least, s->bandwidth_mb[i]);
	sw_text_addf(&text,
	             "version: 1\nname: t\nlevels:\n  - {name: node, count: %d, latency: ", s->n);
	sw_text_addf(&text, "%lld us, bandwidth: [", (long long)s->latency_us);
	for (int32_t i = 0; i < s->n; i++)
		sw_text_addf(&text, "%s%lld MB/s", i ? ", " : "", (long long)s->bandwidth_mb[i]);
	sw_text_addf(&text, "], flow_bandwidth: %.6f MB/s}\n  - {name: device, count: [",
	             (double)least / s->rails);
	for (int32_t i = 0; i < s->n; i++)
		sw_text_addf(&text, "%s%d", i ? ", " : "", s->devices[i]);
	sw_text_addf(&text, "], latency: %lld us, bandwidth: %lld MB/s}\n",
	             (long long)s->inner_latency_us, (long long)s->inner_mb);
	sw_text_add(&text, "device:\n  name: d\n  memory: 1 GiB\n  memory_bandwidth: 10 GB/s\n"
	                   "  kernel_overhead: 1 us\n  matmul_efficiency: 1\n"
	                   "  flops: {f32: 1 GFLOP/s}\n");
	if (sw_cluster_parse(text.data, text.len, "test", &cluster, &err))
		fail_msg("%s: %s", text.data, err.message);
	sw_text_clear(&text);
	return cluster;
}

sw_cluster plain_cluster(int32_t n, int32_t k)
{
	cluster_shape s = {.n = n, .rails = 1, .inner_mb = 25000};
	for (int32_t i = 0; i < n; i++) {
		s.devices[i] = k;
		s.bandwidth_mb[i] = 1000;
	}
	return cluster_of(&s);
}

/* ---- transfers -------------------------------------------------------------------------- */

transfer transfer_of(sw_cluster cluster, const char *shape, const char *from, const char *to)
{
	transfer t = {.cluster = cluster};
	sw_error err = {0};
	sw_arena_init(&t.arena);
	sw_text_addf(&t.text, "%s %s -> %s", shape, from, to);
	if (sw_crossmesh_parse_shape(shape, &t.arena, &t.shape, &err) ||
	    sw_crossmesh_parse_side(from, t.shape, &t.cluster, &t.arena, &t.from, &err) ||
	    sw_crossmesh_parse_side(to, t.shape, &t.cluster, &t.arena, &t.to, &err) ||
	    sw_crossmesh_check(&t.cluster, &t.from, &t.to, t.shape, &err))
		fail_msg("%s: %s", t.text.data, err.message);
	return t;
}

void transfer_clear(transfer *t)
{
	sw_cluster_clear(&t->cluster);
	sw_arena_clear(&t->arena);
	sw_text_clear(&t->text);
}

sw_crossmesh_plan *plan_of(const transfer *t, const sw_crossmesh_options *options)
{
	sw_crossmesh_plan *plan = NULL;
	sw_error err = {0};
	if (sw_crossmesh_plan_make(&t->cluster, &t->from, &t->to, t->shape, options, &plan, &err))
		fail_msg("%s: %s", t->text.data, err.message);
	return plan;
}

static sw_cluster draw_cluster(sw_rng *rng)
{
	cluster_shape s = {.n = 1 + (int32_t)sw_rng_below(rng, 5),
	                   .rails = 1 + (int32_t)sw_rng_below(rng, 3),
	                   .inner_mb = 500 + sw_rng_below(rng, 20000),
	                   .latency_us = sw_rng_below(rng, 50),
	                   .inner_latency_us = sw_rng_below(rng, 5)};
	bool equal = sw_rng_below(rng, 2);
	for (int32_t i = 0; i < s.n; i++) {
		s.devices[i] = 1 + (int32_t)sw_rng_below(rng, 4) + (s.n == 1);
		s.bandwidth_mb[i] = equal ? 100 : 50 * (1 + sw_rng_below(rng, 4));
	}
	return cluster_of(&s);
}

/* Divide n devices into at most three axes. */
static void draw_grid(sw_rng *rng, int64_t n, int64_t *axes, int32_t *n_axes)
{
	*n_axes = 0;
	for (; n > 1 && *n_axes < 2; n /= axes[(*n_axes)++]) {
		int64_t size = 2 + sw_rng_below(rng, n - 1);
		while (n % size)
			size--;
		if (size < 2)
			size = n;
		axes[*n_axes] = size;
	}
	axes[(*n_axes)++] = n;
}

/* Give each axis a dimension, terms, or nothing; splits of a dimension in any order of axes. */
static void draw_spec(sw_rng *rng, int32_t n_axes, int32_t rank, bool partial, const char *monoid,
                      sw_text *text)
{
	char dims[SW_MAX_RANK][8] = {{0}}, terms[8] = "";
	for (int32_t a = 0; a < n_axes; a++) {
		int64_t what = sw_rng_below(rng, rank + 2);
		char *list = what < rank ? dims[what] : what == rank && partial ? terms : NULL;
		size_t length = list ? strlen(list) : 0;
		if (!list)
			continue;
		bool front = length && sw_rng_below(rng, 2);
		memmove(list + front, list, length + 1);
		list[front ? 0 : length] = (char)('0' + a);
		list[length + 1] = 0;
	}
	for (int32_t d = 0; d < rank; d++)
		sw_text_addf(text, dims[d][0] ? "S%s" : "R", dims[d]);
	if (terms[0])
		sw_text_addf(text, "+P%s(%s)", terms, monoid);
}

/* Take devices first, first + 1, ... in a shuffled list. */
static void draw_side(sw_rng *rng, const int64_t *devices, int64_t n, int32_t rank, bool partial,
                      const char *monoid, sw_text *text)
{
	int64_t axes[4];
	int32_t n_axes;
	draw_grid(rng, n, axes, &n_axes);
	draw_spec(rng, n_axes, rank, partial, monoid, text);
	sw_text_add(text, "@");
	for (int32_t a = 0; a < n_axes; a++)
		sw_text_addf(text, "%s%lld", a ? "x" : "", (long long)axes[a]);
	for (int64_t i = 0; i < n; i++)
		sw_text_addf(text, "%s%lld", i ? "," : ":", (long long)devices[i]);
}

static void shuffle(sw_rng *rng, int64_t *list, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		list[i] = i;
	for (int64_t i = n - 1; i > 0 && sw_rng_below(rng, 3); i--) {
		int64_t j = sw_rng_below(rng, i + 1), at = list[i];
		list[i] = list[j];
		list[j] = at;
	}
}

transfer transfer_drawn(sw_rng *rng, bool partial)
{
	static const char *const monoids[] = {"sum", "max"};
	sw_cluster cluster = draw_cluster(rng);
	while (cluster.n_devices < 2) {
		sw_cluster_clear(&cluster);
		cluster = draw_cluster(rng);
	}
	sw_text shape = {0}, from = {0}, to = {0};
	int64_t devices[64], n = cluster.n_devices;
	int64_t sends = 1 + sw_rng_below(rng, n - 1), gets = 1 + sw_rng_below(rng, n - sends);
	int32_t rank = (int32_t)sw_rng_below(rng, 4);
	const char *monoid = monoids[sw_rng_below(rng, 2)];
	sw_text_add(&shape, "f64[");
	for (int32_t d = 0; d < rank; d++)
		sw_text_addf(&shape, "%s%lld", d ? "," : "",
		             (long long)(1 + sw_rng_below(rng, sw_rng_below(rng, 3) ? 9 : 24)));
	sw_text_add(&shape, "]");
	shuffle(rng, devices, n);
	draw_side(rng, devices, sends, rank, partial, monoid, &from);
	draw_side(rng, devices + sends, gets, rank, partial, monoid, &to);
	transfer t = transfer_of(cluster, shape.data, from.data, to.data);
	sw_text_clear(&shape);
	sw_text_clear(&from);
	sw_text_clear(&to);
	return t;
}

/* ---- arrays ----------------------------------------------------------------------------- */

#define UNTOUCHED (-12345.0)

/* Parts of one side, by index in the mesh. */
typedef struct side_arrays {
	int64_t n, elements;
	double **parts;
} side_arrays;

static side_arrays arrays_new(const sw_crossmesh_side *side, sw_shape shape)
{
	side_arrays a = {.n = sw_atoms_devices(&side->axes)};
	a.elements = sw_crossmesh_local_bytes(side, shape) / (int64_t)sizeof(double);
	a.parts = sw_alloc((size_t)a.n * sizeof(*a.parts));
	for (int64_t i = 0; i < a.n; i++) {
		a.parts[i] = sw_alloc((size_t)SW_MAX(a.elements, 1) * sizeof(double));
		for (int64_t e = 0; e < a.elements; e++)
			a.parts[i][e] = UNTOUCHED;
	}
	return a;
}

static void arrays_clear(side_arrays *a)
{
	for (int64_t i = 0; i < a->n; i++)
		free(a->parts[i]);
	free(a->parts);
}

/* Find the global number of a device's local element; -1: it is padding. */
static int64_t global_number(const sw_crossmesh_side *side, sw_shape shape, int64_t device,
                             int64_t local)
{
	int64_t dims[SW_MAX_RANK], index[SW_MAX_RANK], number = 0;
	sw_shape padded = shape;
	padded.dims = side->dims;
	sw_layout_local_dims(&side->axes, padded, &side->layout, dims);
	for (int32_t d = shape.rank - 1; d >= 0; d--) {
		index[d] = sw_layout_global_index(&side->axes, &side->layout, d, device,
		                                  local % dims[d]);
		local /= dims[d];
	}
	for (int32_t d = 0; d < shape.rank; d++) {
		if (index[d] >= shape.dims[d])
			return -1;
		number = number * shape.dims[d] + index[d];
	}
	return number;
}

/* The term that a device holds of an element; the value is their sum, or maximum. */
static double term_of(const sw_crossmesh_side *side, int64_t device, int64_t number)
{
	uint64_t term = 0;
	for (int32_t a = 0; a < side->axes.n; a++)
		if (side->layout.state[a].kind == SW_STATE_P)
			term = term * (uint64_t)side->axes.size[a] +
			       (uint64_t)sw_atoms_coordinate(&side->axes, device, a);
	return (double)(sw_random_bits(7, term, (uint64_t)number) % 100000);
}

static double combine(sw_monoid monoid, double a, double b)
{
	return monoid == SW_MONOID_MAX ? fmax(a, b) : a + b;
}

static double value_of(const transfer *t, int64_t number)
{
	const sw_crossmesh_side *from = &t->from;
	double value = 0;
	int64_t terms = sw_atoms_group_size(&from->axes, sw_layout_partial_atoms(&from->layout));
	for (int64_t k = 0; k < terms; k++)
		value = combine(
			from->layout.monoid, value,
			(double)(sw_random_bits(7, (uint64_t)k, (uint64_t)number) % 100000));
	return value;
}

/* ---- playing ---------------------------------------------------------------------------- */

/* What a device has of a task: NaN where it has nothing. */
typedef struct task_buffers {
	int64_t n_devices;
	double **data; /* [tasks * devices]; NULL: nothing */
} task_buffers;

static double *buffer_of(const task_buffers *b, const sw_crossmesh_plan *plan, int32_t task,
                         int64_t device)
{
	double **at = &b->data[task * b->n_devices + device];
	int64_t n = plan->tasks[task].elements;
	if (*at)
		return *at;
	*at = sw_alloc((size_t)n * sizeof(double));
	for (int64_t e = 0; e < n; e++)
		(*at)[e] = NAN;
	return *at;
}

static void pack(const transfer *t, const sw_crossmesh_plan *plan, const side_arrays *sources,
                 int32_t task, int64_t device, double *buffer)
{
	const sw_unit_task *u = &plan->tasks[task];
	int64_t index = sw_crossmesh_index_of(&t->from, device);
	assert_true(index >= 0);
	sw_crossmesh_pack(plan, &plan->slices[u->slice], u->first, u->elements,
	                  sources->parts[index], buffer);
}

static void play_chain(const transfer *t, const sw_crossmesh_plan *plan,
                       const sw_crossmesh_phase *p, const side_arrays *sources,
                       const task_buffers *buffers)
{
	int64_t n = plan->tasks[p->task].elements;
	double *own = sw_alloc((size_t)n * sizeof(*own));
	double *first = buffer_of(buffers, plan, p->task, p->members[0]);
	if (p->after < 0)
		pack(t, plan, sources, p->task, p->members[0], first);
	for (int32_t m = 0; m + 1 < p->n_members; m++) {
		const double *from = buffer_of(buffers, plan, p->task, p->members[m]);
		double *into = buffer_of(buffers, plan, p->task, p->members[m + 1]);
		if (m + 1 < p->n_terms)
			pack(t, plan, sources, p->task, p->members[m + 1], own);
		for (int64_t e = 0; e < n; e++)
			into[e] = m + 1 < p->n_terms
			                  ? combine(t->from.layout.monoid, own[e], from[e])
			                  : from[e];
	}
	free(own);
}

static void copy_part(const sw_crossmesh_plan *plan, int32_t task, const double *from, double *into,
                      int64_t n, int64_t i)
{
	sw_element_range part = sw_crossmesh_part(plan->tasks[task].elements, n, i);
	for (int64_t e = part.begin; e < part.begin + part.length; e++)
		into[e] = from[e];
}

static void play_phase(const transfer *t, const sw_crossmesh_plan *plan,
                       const sw_crossmesh_phase *p, const side_arrays *sources,
                       const task_buffers *buffers)
{
	if (p->kind == SW_PHASE_CHAIN) {
		play_chain(t, plan, p, sources, buffers);
		return;
	}
	double *head = buffer_of(buffers, plan, p->task, p->members[0]);
	if (p->kind == SW_PHASE_SCATTER && p->after < 0)
		pack(t, plan, sources, p->task, p->members[0], head);
	if (p->kind == SW_PHASE_SCATTER)
		for (int32_t m = 1; m < p->n_members; m++)
			copy_part(plan, p->task, head,
			          buffer_of(buffers, plan, p->task, p->members[m]),
			          p->n_members - 1, m - 1);
	for (int32_t i = 0; i < p->n_members && p->kind == SW_PHASE_GATHER; i++)
		for (int32_t m = 0; m < p->n_members; m++)
			copy_part(plan, p->task, buffer_of(buffers, plan, p->task, p->members[i]),
			          buffer_of(buffers, plan, p->task, p->members[m]), p->n_members,
			          i);
}

static void unpack_all(const transfer *t, const sw_crossmesh_plan *plan,
                       const task_buffers *buffers, side_arrays *targets)
{
	for (int32_t i = 0; i < plan->n_tasks; i++) {
		const sw_unit_task *u = &plan->tasks[i];
		for (int32_t r = 0; r < u->n_receivers; r++)
			sw_crossmesh_unpack(
				plan, &plan->slices[u->slice], u->first, u->elements,
				buffer_of(buffers, plan, i, u->receivers[r]),
				targets->parts[sw_crossmesh_index_of(&t->to, u->receivers[r])]);
	}
}

static void compare(const transfer *t, const side_arrays *targets)
{
	for (int64_t d = 0; d < targets->n; d++) {
		bool gets = sw_crossmesh_gets_value(&t->to, d);
		for (int64_t e = 0; e < targets->elements; e++) {
			int64_t number = global_number(&t->to, t->shape, d, e);
			double expected = number >= 0 && gets ? value_of(t, number) : UNTOUCHED;
			if (targets->parts[d][e] != expected)
				fail_msg("%s: device %lld, local element %lld: %g, not %g",
				         t->text.data, (long long)t->to.devices[d], (long long)e,
				         targets->parts[d][e], expected);
		}
	}
}

void check_plan(const transfer *t, const sw_crossmesh_plan *plan)
{
	side_arrays sources = arrays_new(&t->from, t->shape),
		    targets = arrays_new(&t->to, t->shape);
	task_buffers buffers = {.n_devices = t->cluster.n_devices};
	size_t n = (size_t)SW_MAX(plan->n_tasks * t->cluster.n_devices, 1);
	buffers.data = sw_alloc(n * sizeof(*buffers.data));
	for (int64_t d = 0; d < sources.n; d++)
		for (int64_t e = 0; e < sources.elements; e++) {
			int64_t number = global_number(&t->from, t->shape, d, e);
			sources.parts[d][e] = number < 0 ? NAN : term_of(&t->from, d, number);
		}
	for (int32_t p = 0; p < plan->n_phases; p++)
		play_phase(t, plan, &plan->phases[p], &sources, &buffers);
	unpack_all(t, plan, &buffers, &targets);
	compare(t, &targets);
	for (size_t i = 0; i < n; i++)
		free(buffers.data[i]);
	free(buffers.data);
	arrays_clear(&sources);
	arrays_clear(&targets);
}

/* ---- the model -------------------------------------------------------------------------- */

/* The share that a phase has on a link at a moment. */
static double share_on(const sw_crossmesh_phase *p, int32_t link, double moment)
{
	for (int32_t l = 0; l < p->n_links; l++) {
		const sw_link_share *on = &p->links[l];
		double begin = p->start_s + on->begin_s;
		if (on->link == link)
			return begin <= moment && begin + on->held_s > moment * (1 + 1e-9)
			               ? on->share
			               : 0;
	}
	return 0;
}

void check_model(const sw_crossmesh_plan *plan)
{
	double end = 0;
	for (int32_t i = 0; i < plan->n_phases; i++) {
		const sw_crossmesh_phase *p = &plan->phases[i];
		end = fmax(end, sw_crossmesh_phase_end(p));
		if (p->after >= 0) {
			assert_true(p->after < i);
			assert_true(p->start_s >=
			            sw_crossmesh_phase_end(&plan->phases[p->after]) - 1e-15);
		}
		/* Shares grow only where the data of a phase begin to pass, and all have passed
		 * before the phase ends. */
		for (int32_t l = 0; l < p->n_links; l++) {
			double sum = 0, moment = p->start_s + p->links[l].begin_s;
			for (int32_t k = 0; k < plan->n_phases; k++)
				sum += share_on(&plan->phases[k], p->links[l].link, moment);
			assert_true(sum <= 1 + 1e-6);
			assert_true(p->links[l].begin_s + p->links[l].held_s <=
			            p->seconds * (1 + 1e-9));
		}
	}
	assert_true(fabs(end - plan->seconds) <= 1e-12 * end);
}
