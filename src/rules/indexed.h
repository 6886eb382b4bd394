/*
 * indexed: what the files of indexed reads and writes share. A gather or scatter has an OPERAND,
 * INDICES, and SLICES (gather's result, scatter's updates).
 */
#ifndef SW_RULES_INDEXED_H
#define SW_RULES_INDEXED_H

#include "rules/row.h"

/* ---- index_rules.c: which dimensions correspond ----------------------------------------- */

typedef struct sw_index_map {
	int32_t operand_rank, index_rank;
	/* -1: collapsed, inserted, or a batching dimension */
	int32_t slice_of_operand[SW_MAX_RANK];
	/* which entry of the index vector addresses it; -1: none */
	int32_t component[SW_MAX_RANK];
	int64_t window[SW_MAX_RANK]; /* extent of a slice along the operand's dimension */
	bool batching[SW_MAX_RANK];
	int32_t slice_of_index[SW_MAX_RANK];   /* -1: the index vector */
	int32_t operand_of_index[SW_MAX_RANK]; /* the operand's batching dimension; -1: none */
} sw_index_map;
sw_index_map sw_index_map_of(const sw_index_dims *x, sw_shape operand, sw_shape indices,
                             sw_shape slices);

/* ---- rebase_indices.c: global indices -> local indices and ownership -------------------- */

/* An indexed op being written: its attributes, and the index vectors taken apart. */
typedef struct sw_rebase {
	sw_local_op *local;
	int32_t operand; /* number of the operand that is indexed */
	sw_shape operand_whole, slices_whole;
	sw_index_dims dims; /* those of the op, changed as windows are taken apart */
	sw_index_map c;     /* of `dims` */
	/* scatter: an index that is not owned, or out of bounds, becomes one out of bounds; gather
	 * clamps it */
	bool drop;
	sw_type type; /* in which indices are computed: every index and every extent fits */
	int32_t n;
	/* entries of the index vectors: dims of the indices, the vector's of size 1 */
	sw_id part[SW_MAX_RANK];
	sw_id owned; /* pred of the same dims; SW_NO_ID: all elements are owned */
} sw_rebase;

/* Return the index vectors with local entries for split dimensions; unchanged if no indexed
 * dimension is split. Where an element is not owned, scatter's entry is the local extent (out of
 * bounds: dropped), gather's is arbitrary. */
sw_id sw_rebase_indices(sw_rebase *r, sw_id indices);
/* Return the type in which indices of this type are computed. */
sw_type sw_rebase_type(const sw_rebase *r, sw_type type);
sw_id sw_rebase_as_type(sw_rebase *r, sw_id x, sw_type type);
/* Clamp x to [0, last]. */
sw_id sw_rebase_clamp(sw_rebase *r, sw_id x, int64_t last);

/* ---- index_local_ops.c ------------------------------------------------------------------ */

sw_status sw_local_gather(sw_local_op *local, sw_id *results, sw_error *err);
sw_status sw_local_scatter(sw_local_op *local, sw_id *results, sw_error *err);
sw_status sw_local_dynamic_slice(sw_local_op *local, sw_id *results, sw_error *err);
sw_status sw_local_dynamic_update_slice(sw_local_op *local, sw_id *results, sw_error *err);

#endif
