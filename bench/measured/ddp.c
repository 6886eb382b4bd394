/*
 * How Nanotron sums gradients without ZeRO: in PyTorch's DistributedDataParallel, with its own hook
 * (gradient_accumulator.py of its branch bench2, run_multinode.sh; reducer.cpp of PyTorch 2.1), where a plan
 * sums each by itself, and in the type that it has.
 *
 * Gradients join a bucket in the order in which the last microbatch's backward pass has them ready, the
 * table of tokens when both of its uses have theirs. A bucket that has 25 MiB of them, in the type of the
 * weights, is all-reduced as one, in f32, after the bucket before it. The device has one queue of launches
 * (CUDA_DEVICE_MAX_CONNECTIONS=1): what is launched behind an all-reduce begins no sooner than that does,
 * hence not before the all-reduce of the bucket before has ended. Sums of norms over tensor parallelism
 * are made of all norms at once, behind all microbatches, and take no time here.
 */
#include "measured.h"

#include <math.h>

#define BUCKET_BYTES (INT64_C(25) << 20) /* bucket_cap_mb */
#define WEIGHT_BYTES 2                   /* per element */
#define SUM_BYTES 4

/* The last microbatch on the device: kernels, all-reduces behind one another, and the host that launches. */
typedef struct reducer {
	const sw_cluster *cluster;
	const sw_program *program;
	const configuration *c;
	uint32_t data;            /* the atoms of data parallelism */
	sw_id loop;               /* over the microbatches before; SW_NO_ID: there are none */
	sw_id last_use;           /* of the table: the second sum of its gradients; SW_NO_ID: it has one */
	double alone_s, host_s;   /* when the device is here without all-reduces; the host */
	double now_s, ends_s;     /* and with them; when the last one ends */
	int64_t elements;         /* of the bucket */
} reducer;

/* Let the device compute; beside an all-reduce it is slower. */
static void compute(reducer *r, double seconds)
{
	double speed = 1 - r->cluster->device.transfer_share;
	double beside = fmin(seconds, fmax(r->ends_s - r->now_s, 0) * speed);
	r->now_s += beside / speed + seconds - beside;
	r->alone_s += seconds;
}

/* The device waits for the host, which launches one after the other. */
static void launch(reducer *r)
{
	double waits = fmax(r->host_s - r->alone_s, 0);
	r->host_s += r->cluster->device.launch_interval_s;
	r->alone_s += waits;
	r->now_s += waits;
}

static void reduce_bucket(reducer *r)
{
	r->now_s = fmax(r->now_s, r->ends_s);
	r->ends_s = r->now_s + sw_cost_collective((void *)r->cluster, SW_MOVE_ALL_REDUCE, r->data,
	                                          SUM_BYTES * r->elements);
	r->elements = 0;
}

static int64_t table_elements(const configuration *c)
{
	return c->llama.vocab * c->llama.hidden / c->tp;
}

/* Return how many elements of gradients an op sums over data parallelism; 0: it does not. */
static int64_t summed_elements(const reducer *r, sw_id id)
{
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
	sw_id begun = sw_async_collective(r->program, sw_op_at(r->program, id));
	const sw_op *op = sw_op_at(r->program, begun == SW_NO_ID ? id : begun);
	if (!sw_cost_collective_op(r->cluster, r->program, id, &kind, &atoms, &bytes) ||
	    kind != SW_COLLECTIVE_ALL_REDUCE || !(atoms & r->data))
		return 0;
	return bytes / sw_type_bytes(sw_value_shape(r->program, op->operands[0]).type);
}

static void find_last_use(reducer *r, const sw_computation *entry)
{
	for (size_t i = 0; i < entry->ops.len && r->c->tied; i++)
		if (summed_elements(r, entry->ops.data[i]) == table_elements(r->c))
			r->last_use = entry->ops.data[i];
}

static void add_gradient(reducer *r, sw_id id, int64_t elements)
{
	bool first_use = r->last_use != SW_NO_ID && elements == table_elements(r->c) && id != r->last_use;
	r->elements += first_use ? 0 : elements;
	if (r->elements * WEIGHT_BYTES >= BUCKET_BYTES)
		reduce_bucket(r);
}

/* Run an op of the last microbatch. */
static void run(reducer *r, sw_id id)
{
	int64_t elements = summed_elements(r, id);
	double seconds = sw_cost_op(r->cluster, r->program, id) +
	                 sw_cost_collective_op_seconds(r->cluster, r->program, id);
	if (elements > 0) {
		launch(r);
		add_gradient(r, id, elements);
	} else if (seconds > 0) {
		launch(r);
		compute(r, seconds);
	}
}

/* Return how much longer a step takes with these all-reduces than without: what ends behind the backward
 * pass, and what its kernels wait for and lose. */
static double reduced_seconds(reducer *r)
{
	const sw_computation *entry = sw_entry(r->program);
	size_t first = 0, last = 0;
	find_last_use(r, entry);
	for (size_t i = 0; i < entry->ops.len; i++) {
		first = entry->ops.data[i] == r->loop ? i + 1 : first;
		last = summed_elements(r, entry->ops.data[i]) > 0 ? i : last;
	}
	for (size_t i = first; i <= last && i < entry->ops.len; i++)
		run(r, entry->ops.data[i]);
	if (r->elements > 0)
		reduce_bucket(r);
	return fmax(r->now_s, r->ends_s) - r->alone_s;
}

double ddp_seconds(const configuration *c, const device_program *d, const sw_cluster *cluster)
{
	if (!c->nanotron || !c->ddp)
		return 0;
	reducer r = {.cluster = cluster,
	             .program = d->program,
	             .c = c,
	             .data = data_atoms(c, &cluster->atoms),
	             .loop = d->loop,
	             .last_use = SW_NO_ID};
	return reduced_seconds(&r) - synchronising_seconds(d, cluster, r.data);
}
