/*
 * joint: products, their ways and the messages of their flows, as one problem. Private to src/bound.
 */
#ifndef SW_BOUND_JOINT_H
#define SW_BOUND_JOINT_H

#include "bound/flows.h"
#include "bound/marks.h"
#include "bound/products.h"

/* How many messages an element takes, for all ways of a source's kind and of a sink's. */
typedef struct message_table {
	int32_t n[2];           /* different holdings of source and sink */
	const uint16_t *of[2];  /* per way: its holding */
	const double *messages; /* [source][sink] */
} message_table;

typedef struct channel {
	int32_t ends[2]; /* products: source, sink */
	bool may_read_copy;
	const message_table *table;
	double message_s; /* one message per element, as a mean over the parts */
} channel;

typedef struct joint_product {
	sw_id op;
	const sw_product_kind *kind;
	bool is_copied; /* a sink may read a copy of it */
	/* The ways that may be best, by number: of the others each is no better than one of these. */
	int32_t n_ways;
	const int32_t *ways;
} joint_product;

/* Some of the products, and of the channels between them; each counts by its share. */
typedef struct piece_product {
	int32_t product;
	double share;
} piece_product;
typedef struct piece_channel {
	int32_t channel;
	int32_t ends[2]; /* as numbers in the piece */
	double share;
} piece_channel;
typedef struct joint_piece {
	double times; /* so many pieces are like this one */
	int32_t n_products, n_channels;
	const piece_product *products;
	const piece_channel *channels;
} joint_piece;

typedef struct joint {
	sw_arena arena;
	const sw_cluster *cluster;
	double rest_s; /* the kernels of all ops but products */
	int32_t n_products, n_channels;
	joint_product *products;
	channel *channels;
	/* What is bounded by itself: the shares of a product add up to 1, those of a channel to at
	 * most 1, over all pieces and their times. */
	int32_t n_pieces;
	joint_piece *pieces;
} joint;

/* joint.c: find products and flows, cut into pieces where the whole is too large, and with fewer ways
 * where these are too many. Returns false where messages are not bounded, or there are none. j: to be
 * cleared in either case, by sw_joint_clear. */
bool sw_joint_find(joint *j, const sw_bound_marked *m);
void sw_joint_clear(joint *j);
/* joint_pieces.c: take all as one piece. */
void sw_joint_whole(joint *j);
/* Cut the problem into pieces, so that repeated layers give like ones. class_of: per product, which of
 * the classes of like products it is of. O(pieces * (products + channels)). */
void sw_joint_cut(joint *j, const int32_t *class_of, int32_t n_classes);
/* joint_ways.c: keep of each product the ways that may be best. O(products + ways^2 * holdings) for
 * each kind of product. */
void sw_joint_drop_dominated(joint *j);

#endif
