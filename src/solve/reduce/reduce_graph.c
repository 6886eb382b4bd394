/* The driver of the exact reductions: queued nodes are reduced, first in, first out, until nothing
 * changes. */
#include "solve/graph/working_graph.h"
#include "solve/limits.h"

#include <string.h>

static const solve_reduce_limits *const limits = &default_limits.reduce;

/* The reductions of one node, in the order in which they are tried: those that remove a node first,
 * those that take most work last. Each returns whether it changed anything, and queues the nodes
 * that it changed. */
static const struct {
	graph_step step;
	bool (*apply)(graph *g, int32_t node);
} node_steps[] = {
	{REDUCE_FIXED, reduce_fixed},   {REDUCE_DEGREE, reduce_degree},
	{REDUCE_NORMAL, reduce_normal}, {REDUCE_SUPPORT, reduce_support},
	{REDUCE_MERGE, reduce_merge},   {REDUCE_DOMINANCE, reduce_dominance},
	{REDUCE_LEAF, reduce_leaf},
};

static void reduce_node(graph *g, int32_t node, unsigned steps)
{
	for (size_t s = 0; s < SW_COUNT(node_steps) && g->nodes[node].alive && !g->infeasible;
	     s++) {
		if (!(steps & node_steps[s].step))
			continue;
		if (node_steps[s].apply(g, node)) {
			graph_touch(g, node);
			return;
		}
	}
}

static void drain_queue(graph *g, unsigned steps)
{
	while (g->queue_head < g->queue.len && !g->infeasible) {
		int32_t node = g->queue.data[g->queue_head++];
		g->nodes[node].queued = false;
		if (g->queue_head > 4096 && g->queue_head * 2 > g->queue.len) {
			g->queue.len -= g->queue_head;
			memmove(g->queue.data, g->queue.data + g->queue_head,
			        g->queue.len * sizeof(int32_t));
			g->queue_head = 0;
		}
		reduce_node(g, node, steps);
	}
}

void graph_reduce(graph *g, unsigned steps)
{
	for (int round = 0; round < limits->max_rounds && !g->infeasible; round++) {
		if ((steps & REDUCE_POINTS) && g->usage_changed)
			reduce_points(g);
		if (g->queue_head == g->queue.len)
			break;
		drain_queue(g, steps);
	}
	reduce_settle(g); /* the nodes folded last may have left usages in capacity_left */
}
