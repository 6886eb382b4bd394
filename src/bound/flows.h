/*
 * flows: which products' results reach which products' operands, element by element. Private to
 * src/bound.
 *
 * A PRODUCT is a dot or a convolution of the entry. A PATH leads from the result of a product, the
 * SOURCE, through ops that keep elements apart (elementwise ops, converts, transposes, reshapes,
 * slices, concatenations, updates of slices, broadcasts) to an operand of a product, the SINK; it
 * may lead through a result of the program that replaces an input, and goes on from that input in
 * the next step. Whoever computes the sink has received the elements that reach it, as values of
 * the path, or has computed the source.
 */
#ifndef SW_BOUND_FLOWS_H
#define SW_BOUND_FLOWS_H

#include "frontend/sidecar.h"
#include "program/program.h"
#include "rules/rules.h"

/* A dimension of the operand that belongs to no class: the flow's elements are in each place of it,
 * or they are in one, with others beside them. */
#define SW_NO_CLASS (-1)
#define SW_PLACED (-2)

typedef struct sw_bound_flow {
	sw_id source, sink; /* ops */
	uint32_t operand;   /* of the sink */
	double bytes;       /* of the elements that reach it, in the smallest type on the path */
	double share; /* of these bytes that is this flow's: 1 / the number of the source's flows */
	bool through_state;
	bool may_read_copy; /* the sink may read a copy of the source, computed again */
	bool summed;        /* somewhere on the path the whole sum is read, too */
	/* Dimensions of the source's result that reshapes mix with each other are one CLASS; the
	 * dimensions of the operand that are made of them belong to it, or to none.
	 * n_classes is 0 where parts of several classes are cut out or joined. */
	int32_t n_classes;
	int8_t source_class[SW_MAX_RANK], sink_class[SW_MAX_RANK]; /* per dimension */
} sw_bound_flow;
typedef struct sw_bound_flow_list {
	size_t n;
	const sw_bound_flow *at; /* by sinks, in the order of the entry */
} sw_bound_flow_list;

/* Find the flows. Those are left out whose source may be computed again more than once. is_product:
 * per op, may it be a source or a sink? The list is in the arena. O(ops * rank). */
sw_bound_flow_list sw_bound_flows(const sw_program *program, const sw_sidecar *sidecar,
                                  const sw_rule *const *rules, const bool *is_product,
                                  sw_arena *arena);

#endif
