/*
 * Pieces: a problem that is too large for the solver is cut, and the bounds of its pieces are added
 * up.
 *
 * Layers that repeat become CELLS: each has one product of each class of alike products, or a few,
 * namely those that hang together by their heaviest channels. A piece is two cells between which
 * there are channels, with all between them; the products of a cell, and the channels within it, are
 * shared out evenly among its pieces. So the pieces of all layers but the outer ones are alike, and
 * one of them is solved. What is in no cell is a piece of its own; the channels between it and cells
 * are left out, which only lowers the bound.
 */
#include "bound/joint.h"

#include <string.h>

#define MIN_LAYERS 3 /* products of a class that repeats */

#define NO_CELL (-1)

typedef struct cutting {
	joint *j;
	int32_t n_classes;
	const int32_t *class_of; /* per product */
	int32_t *cell_of;        /* per product */
	int32_t *members;        /* per class */
	bool *placed;            /* per class: are its products in cells? */
	int32_t n_cells;
	int32_t *n_pairs; /* per cell: other cells with which it has channels */
} cutting;

/* ---- classes and cells ------------------------------------------------------------------ */

/* Return the class whose products begin the cells: of as many products as most products' classes
 * have, the first. Returns n_classes if nothing repeats. */
static int32_t first_class(const cutting *cut)
{
	int32_t *products = sw_alloc(sizeof(*products) * (size_t)(cut->j->n_products + 1));
	int32_t best = cut->n_classes;
	for (int32_t c = 0; c < cut->n_classes; c++)
		products[cut->members[c]] += cut->members[c];
	for (int32_t c = 0; c < cut->n_classes; c++)
		if (cut->members[c] >= MIN_LAYERS &&
		    (best == cut->n_classes ||
		     products[cut->members[c]] > products[cut->members[best]]))
			best = c;
	free(products);
	return best;
}

/* A way from products in cells to those of another class: along channels that are alike. */
typedef struct lead {
	int32_t from, to, end; /* classes; the channel's end that is in a cell */
	const message_table *table;
	double message_s;
} lead;

/* Set the lead along a channel; false: it does not lead from a class in cells to one that is in none
 * yet. */
static bool lead_along(const cutting *cut, const channel *c, int32_t end, lead *along)
{
	memset(along, 0, sizeof(*along));
	along->from = cut->class_of[c->ends[end]];
	along->to = cut->class_of[c->ends[1 - end]];
	along->end = end;
	along->table = c->table;
	along->message_s = c->message_s;
	return cut->placed[along->from] && !cut->placed[along->to] &&
	       cut->members[along->to] >= MIN_LAYERS;
}

/* Put each product at the far end of this lead into the cell of the near end. Returns whether each
 * has one such cell; those that have none stay outside. */
static bool follow(cutting *cut, const lead *chosen)
{
	joint *j = cut->j;
	bool unique = true;
	for (int32_t i = 0; i < j->n_channels && unique; i++) {
		const channel *c = &j->channels[i];
		lead along;
		if (!lead_along(cut, c, chosen->end, &along) ||
		    memcmp(&along, chosen, sizeof(along)) != 0)
			continue;
		int32_t cell = cut->cell_of[c->ends[chosen->end]],
			*other = &cut->cell_of[c->ends[1 - chosen->end]];
		unique = cell == NO_CELL || *other == NO_CELL || *other == cell;
		if (cell != NO_CELL)
			*other = cell;
	}
	for (int32_t p = 0; p < j->n_products && !unique; p++)
		if (cut->class_of[p] == chosen->to)
			cut->cell_of[p] = NO_CELL;
	cut->placed[chosen->to] = unique;
	return unique;
}

/* Find the lead with the heaviest channels that was not tried yet. Returns false if there is none. */
static bool heaviest_lead(const cutting *cut, const sw_map *tried, lead *heaviest)
{
	const joint *j = cut->j;
	sw_map number = {0};
	SW_VEC(double) weights = {0};
	double most = -1;
	for (int32_t i = 0; i < 2 * j->n_channels; i++) {
		const channel *c = &j->channels[i / 2];
		lead along;
		if (!lead_along(cut, c, i % 2, &along) ||
		    sw_map_get(tried, &along, sizeof(along)) != SW_ABSENT)
			continue;
		uint32_t k = sw_map_intern(&number, &along, sizeof(along), (uint32_t)weights.len);
		if (k == weights.len)
			sw_vec_push(&weights, 0);
		weights.data[k] += c->message_s;
		if (weights.data[k] > most) {
			most = weights.data[k];
			*heaviest = along;
		}
	}
	sw_map_clear(&number);
	sw_vec_clear(&weights);
	return most >= 0;
}

static void find_cells(cutting *cut)
{
	int32_t first = first_class(cut);
	for (int32_t p = 0; p < cut->j->n_products; p++)
		cut->cell_of[p] = cut->class_of[p] == first ? cut->n_cells++ : NO_CELL;
	if (first == cut->n_classes)
		return;
	cut->placed[first] = true;
	sw_map tried = {0};
	lead next;
	while (heaviest_lead(cut, &tried, &next)) {
		follow(cut, &next);
		sw_map_put(&tried, &next, sizeof(next), 1);
	}
	sw_map_clear(&tried);
}

/* ---- pieces ----------------------------------------------------------------------------- */

typedef struct cell_pair {
	int32_t a, b; /* a < b; equal for a cell without channels to others; NO_CELL: the rest */
} cell_pair;

/* Return the pair of cells between which the channel is; a NO_CELL alone where one end is in none. */
static cell_pair pair_of(const cutting *cut, const channel *c)
{
	int32_t x = cut->cell_of[c->ends[0]], y = cut->cell_of[c->ends[1]];
	return (cell_pair){SW_MIN(x, y), SW_MAX(x, y)};
}

static double share_in(const cutting *cut, int32_t cell)
{
	return cell == NO_CELL ? 1 : 1.0 / SW_MAX(cut->n_pairs[cell], 1);
}

/* List the products and channels of a pair of cells. number: of the products, in the piece. */
static joint_piece piece_of(const cutting *cut, cell_pair pair, int32_t *number)
{
	joint *j = cut->j;
	SW_VEC(piece_product) products = {0};
	SW_VEC(piece_channel) channels = {0};
	for (int32_t side = 0; side < 1 + (pair.a != pair.b); side++)
		for (int32_t p = 0, cell = side ? pair.b : pair.a; p < j->n_products; p++) {
			if (cut->cell_of[p] != cell)
				continue;
			number[p] = (int32_t)products.len;
			sw_vec_push(&products, ((piece_product){p, share_in(cut, cell)}));
		}
	for (int32_t i = 0; i < j->n_channels; i++) {
		const channel *c = &j->channels[i];
		cell_pair at = pair_of(cut, c);
		bool across = at.a != at.b && at.a == pair.a && at.b == pair.b,
		     within = at.a == at.b && (at.a == pair.a || at.a == pair.b);
		if (across || within)
			sw_vec_push(&channels,
			            ((piece_channel){.channel = i,
			                             .ends = {number[c->ends[0]], number[c->ends[1]]},
			                             .share = across ? 1 : share_in(cut, at.a)}));
	}
	joint_piece piece = {
		.times = 1,
		.n_products = (int32_t)products.len,
		.n_channels = (int32_t)channels.len,
		.products = sw_arena_copy(&j->arena, products.data,
	                                  sizeof(*products.data) * products.len),
		.channels = sw_arena_copy(&j->arena, channels.data,
	                                  sizeof(*channels.data) * channels.len)};
	sw_vec_clear(&products);
	sw_vec_clear(&channels);
	return piece;
}

/* What the bound of a piece follows from. */
static void describe(const joint *j, const joint_piece *piece, sw_text *key)
{
	key->len = 0;
	for (int32_t i = 0; i < piece->n_products; i++) {
		const joint_product *p = &j->products[piece->products[i].product];
		sw_text_addf(key, "%p %p %d %g;", (const void *)p->kind, (const void *)p->ways,
		             p->is_copied, piece->products[i].share);
	}
	for (int32_t i = 0; i < piece->n_channels; i++) {
		const piece_channel *at = &piece->channels[i];
		const channel *c = &j->channels[at->channel];
		sw_text_addf(key, "%d %d %p %d %.17g;", at->ends[0], at->ends[1],
		             (const void *)c->table, c->may_read_copy, c->message_s * at->share);
	}
}

/* Add the piece of a pair of cells, or count it to one that is like it. */
static void add_piece(const cutting *cut, cell_pair pair, int32_t *number, sw_map *known, sw_text *key)
{
	joint *j = cut->j;
	joint_piece piece = piece_of(cut, pair, number);
	describe(j, &piece, key);
	int32_t like = (int32_t)sw_map_intern(known, key->data, key->len, (uint32_t)j->n_pieces);
	if (like == j->n_pieces)
		j->pieces[j->n_pieces++] = piece;
	else
		j->pieces[like].times++;
}

static void add_pieces(cutting *cut)
{
	joint *j = cut->j;
	sw_map seen = {0}, known = {0};
	sw_text key = {0};
	SW_VEC(cell_pair) pairs = {0};
	for (int32_t i = 0; i < j->n_channels; i++) {
		cell_pair pair = pair_of(cut, &j->channels[i]);
		if (pair.a == NO_CELL || pair.a == pair.b ||
		    sw_map_intern(&seen, &pair, sizeof(pair), (uint32_t)pairs.len) < pairs.len)
			continue;
		sw_vec_push(&pairs, pair);
		cut->n_pairs[pair.a]++;
		cut->n_pairs[pair.b]++;
	}
	for (int32_t cell = NO_CELL; cell < cut->n_cells; cell++)
		if (cell == NO_CELL || cut->n_pairs[cell] == 0)
			sw_vec_push(&pairs, ((cell_pair){cell, cell}));
	int32_t *number = sw_alloc(sizeof(*number) * (size_t)(j->n_products + 1));
	j->pieces = SW_NEW_N(&j->arena, joint_piece, pairs.len + 1);
	j->n_pieces = 0;
	for (size_t i = 0; i < pairs.len; i++)
		add_piece(cut, pairs.data[i], number, &known, &key);
	free(number);
	sw_vec_clear(&pairs);
	sw_map_clear(&seen);
	sw_map_clear(&known);
	sw_text_clear(&key);
}

void sw_joint_cut(joint *j, const int32_t *class_of, int32_t n_classes)
{
	size_t n = (size_t)j->n_products + 1;
	cutting cut = {.j = j,
	               .n_classes = n_classes,
	               .class_of = class_of,
	               .cell_of = sw_alloc(sizeof(*cut.cell_of) * n),
	               .members = sw_alloc(sizeof(*cut.members) * n),
	               .placed = sw_alloc(sizeof(*cut.placed) * n),
	               .n_pairs = sw_alloc(sizeof(*cut.n_pairs) * n)};
	for (int32_t p = 0; p < j->n_products; p++)
		cut.members[class_of[p]]++;
	find_cells(&cut);
	add_pieces(&cut);
	free(cut.cell_of);
	free(cut.members);
	free(cut.placed);
	free(cut.n_pairs);
}

void sw_joint_whole(joint *j)
{
	piece_product *products = SW_NEW_N(&j->arena, piece_product, j->n_products + 1);
	piece_channel *channels = SW_NEW_N(&j->arena, piece_channel, j->n_channels + 1);
	for (int32_t p = 0; p < j->n_products; p++)
		products[p] = (piece_product){p, 1};
	for (int32_t i = 0; i < j->n_channels; i++)
		channels[i] = (piece_channel){
			i, {j->channels[i].ends[0], j->channels[i].ends[1]}, 1};
	j->pieces = SW_NEW_N(&j->arena, joint_piece, 1);
	j->n_pieces = 1;
	*j->pieces = (joint_piece){1, j->n_products, j->n_channels, products, channels};
}
