/*
 * What kernels read at least that compute given ops, and no products: a cut of least bytes.
 *
 * Inputs, products and results of loops are computed by none of these kernels. So on each way from
 * one of them to one of the ops some value is read, and the values that are read are a cut: no less
 * than the cheapest one, where each value weighs its bytes. By the theorem of max-flow and min-cut
 * (Ford and Fulkerson 1956) that is the greatest flow from these sources to the ops. Ways are those
 * on which each op needs all elements of its operands. They are followed for MAX_NETWORK values, the
 * nearest first: ways that are left out, or sources that are not reached, only lower the flow.
 */
#include "fuse/kernel_ends.h"

#include <math.h>
#include <string.h>

#define MAX_NETWORK 128
#define MAX_ARCS 1024

enum { SOURCE = 2 * MAX_NETWORK, SINK, N_NODES };

/* Value i is the arc from node 2 i to 2 i + 1. Arcs a and a ^ 1 are each other's reverse. */
typedef struct network {
	const end_finder *f;
	const sw_id *ops; /* the sinks */
	int32_t n_ops;
	int32_t n;
	sw_id values[MAX_NETWORK];
	int32_t n_arcs, first[N_NODES]; /* per node: its last arc + 1 */
	struct {
		int32_t to, next; /* next: another arc of the same node + 1 */
		double left;
	} arcs[MAX_ARCS];
} network;

static void add_arc(network *x, int32_t from, int32_t to, double capacity)
{
	const int32_t ends[2] = {from, to};
	if (x->n_arcs + 2 > MAX_ARCS)
		return;
	for (int i = 0; i < 2; i++) {
		x->arcs[x->n_arcs].to = ends[1 - i];
		x->arcs[x->n_arcs].left = i ? 0 : capacity;
		x->arcs[x->n_arcs].next = x->first[ends[i]];
		x->first[ends[i]] = ++x->n_arcs;
	}
}

/* Return the value behind reshapes. */
static sw_id value_behind(const end_finder *f, sw_id value)
{
	const sw_op *op = op_of(f, f->program->values.data[value].op);
	while ((op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST) && op->n_operands == 1) {
		value = op->operands[0];
		op = op_of(f, f->program->values.data[value].op);
	}
	return value;
}

/* Return the number of a value in the network; -1: it is that of a sink, has one element, or there is
 * no place. */
static int32_t number_of(network *x, sw_id value)
{
	sw_id op = x->f->program->values.data[value].op;
	if (elements_of(x->f, value) <= 1)
		return -1;
	for (int32_t i = 0; i < x->n_ops; i++)
		if (x->ops[i] == op)
			return -1;
	for (int32_t i = 0; i < x->n; i++)
		if (x->values[i] == value)
			return i;
	if (x->n == MAX_NETWORK)
		return -1;
	x->values[x->n] = value;
	add_arc(x, 2 * x->n, 2 * x->n + 1, bytes_of(x->f, value));
	return x->n++;
}

/* Let what the op reads flow to the node. */
static void add_operands(network *x, sw_id id, int32_t to)
{
	const sw_op *op = op_of(x->f, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		int32_t from = number_of(x, value_behind(x->f, op->operands[k]));
		if (from >= 0)
			add_arc(x, 2 * from + 1, to, INFINITY);
	}
}

static bool is_source(const end_finder *f, sw_id id)
{
	sw_opcode opcode = (sw_opcode)op_of(f, id)->opcode;
	return opcode == SW_OP_PARAMETER || opcode == SW_OP_WHILE ||
	       (is_product(f, id) && stays_product(f, id));
}

static bool needs_all(const end_finder *f, sw_id id)
{
	const sw_op *op = op_of(f, id);
	return sw_fuse_keeps_elements(f->program, op) || op->opcode == SW_OP_TRANSPOSE ||
	       op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_CONCATENATE ||
	       sw_fuse_role_of(f->program, id) == SW_FUSE_REDUCE;
}

static void build(network *x)
{
	for (int32_t i = 0; i < x->n_ops; i++)
		add_operands(x, x->ops[i], SINK);
	for (int32_t i = 0; i < x->n; i++) {
		sw_id id = x->f->program->values.data[x->values[i]].op;
		if (is_source(x->f, id))
			add_arc(x, SOURCE, 2 * i, INFINITY);
		else if (needs_all(x->f, id))
			add_operands(x, id, 2 * i);
	}
}

/* Find a shortest way from source to sink with capacity left; return it as the arc to each node, and
 * how much can flow; 0: there is none. */
static double find_flow(const network *x, int32_t arc_to[N_NODES])
{
	int32_t queue[N_NODES], n = 0;
	memset(arc_to, 0xff, sizeof(*arc_to) * N_NODES);
	queue[n++] = SOURCE;
	for (int32_t i = 0; i < n && arc_to[SINK] < 0; i++)
		for (int32_t a = x->first[queue[i]]; a; a = x->arcs[a - 1].next) {
			int32_t to = x->arcs[a - 1].to;
			if (to == SOURCE || arc_to[to] >= 0 || x->arcs[a - 1].left <= 0)
				continue;
			arc_to[to] = a - 1;
			queue[n++] = to;
		}
	double flow = arc_to[SINK] < 0 ? 0 : INFINITY;
	for (int32_t at = SINK; at != SOURCE && flow > 0; at = x->arcs[arc_to[at] ^ 1].to)
		flow = fmin(flow, x->arcs[arc_to[at]].left);
	return flow;
}

double least_read(const end_finder *f, const sw_id *ops, int32_t n)
{
	network x = {.f = f, .ops = ops, .n_ops = n};
	int32_t arc_to[N_NODES];
	double all = 0, flow;
	build(&x);
	while ((flow = find_flow(&x, arc_to)) > 0) {
		for (int32_t at = SINK; at != SOURCE; at = x.arcs[arc_to[at] ^ 1].to) {
			x.arcs[arc_to[at]].left -= flow;
			x.arcs[arc_to[at] ^ 1].left += flow;
		}
		all += flow;
	}
	return all;
}
