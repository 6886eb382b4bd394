/* Pieces of a problem of repeated layers: shares add up, most pieces are alike, and the least of all
 * pieces is never above the least of the whole. */
#include "test.h"

#include "bound/joint.h"

#include <math.h>

enum { LAYERS = 5, CLASSES = 2, WAYS = 2, PRODUCTS = LAYERS * CLASSES + 1, MOST_LINKS = 8 };

/* A class's product in each layer, and one product more, behind the last layer. Links lead from a
 * class to the next one's product, or to a product of the next layer, in each layer alike. */
typedef struct layered {
	uint64_t seed, drawn;
	sw_product_way ways[CLASSES + 1][WAYS];
	sw_product_kind kinds[CLASSES + 1];
	uint16_t holdings[WAYS];
	double messages[MOST_LINKS][WAYS * WAYS];
	message_table tables[MOST_LINKS];
	channel channels[MOST_LINKS * LAYERS + 1];
	joint_product products[PRODUCTS];
	int32_t class_of[PRODUCTS], all[WAYS];
	joint j;
} layered;

static int32_t below(layered *d, int32_t n)
{
	return (int32_t)(sw_random_bits(d->seed, 0, d->drawn++) % (uint64_t)n);
}

static void draw_products(layered *d)
{
	for (int32_t c = 0; c <= CLASSES; c++) {
		for (int32_t w = 0; w < WAYS; w++)
			d->ways[c][w].kernels_s = below(d, 4);
		d->kinds[c] = (sw_product_kind){.n_ways = WAYS, .ways = d->ways[c]};
	}
	for (int32_t w = 0; w < WAYS; w++) {
		d->all[w] = w;
		d->holdings[w] = (uint16_t)w;
	}
	for (int32_t p = 0; p < PRODUCTS; p++) {
		d->class_of[p] = p < PRODUCTS - 1 ? p % CLASSES : CLASSES;
		d->products[p] = (joint_product){
			.kind = &d->kinds[d->class_of[p]], .n_ways = WAYS, .ways = d->all};
	}
}

static void add_channel(layered *d, int32_t link, int32_t source, int32_t sink, double message_s,
                        bool may_read_copy)
{
	d->channels[d->j.n_channels++] = (channel){.ends = {source, sink},
	                                           .may_read_copy = may_read_copy,
	                                           .table = &d->tables[link],
	                                           .message_s = message_s};
	d->products[source].is_copied |= may_read_copy;
}

static void draw(layered *d, uint64_t seed)
{
	*d = (layered){.seed = seed};
	draw_products(d);
	d->j = (joint){.n_products = PRODUCTS, .products = d->products, .channels = d->channels};
	sw_arena_init(&d->j.arena);
	int32_t n_links = 1 + below(d, MOST_LINKS);
	for (int32_t k = 0; k < n_links; k++) {
		int32_t from = below(d, CLASSES), to = below(d, CLASSES),
			next = from < to ? below(d, 2) : 1 + below(d, 2);
		double message_s = 1 + below(d, 3);
		bool may_read_copy = below(d, 4) == 0;
		for (int32_t i = 0; i < WAYS * WAYS; i++)
			d->messages[k][i] = below(d, 4);
		d->tables[k] = (message_table){
			{WAYS, WAYS}, {d->holdings, d->holdings}, d->messages[k]};
		for (int32_t layer = 0; layer + next < LAYERS; layer++)
			add_channel(d, k, layer * CLASSES + from, (layer + next) * CLASSES + to,
			            message_s, may_read_copy);
	}
	if (below(d, 2))
		add_channel(d, 0, PRODUCTS - 2, PRODUCTS - 1, 1, false);
}

/* Return the seconds of a choice of ways, and of what late readers read, for the products of a piece,
 * times the piece's shares. */
static double cost_of(const layered *d, const joint_piece *piece, const int32_t *way,
                      const int32_t *read)
{
	double seconds = 0;
	for (int32_t p = 0; p < piece->n_products; p++) {
		const sw_product_way *ways = d->products[piece->products[p].product].kind->ways;
		double copy_s = read[p] != way[p] ? ways[read[p]].kernels_s : 0;
		seconds += piece->products[p].share * (ways[way[p]].kernels_s + copy_s);
	}
	for (int32_t c = 0; c < piece->n_channels; c++) {
		const piece_channel *at = &piece->channels[c];
		const channel *x = &d->channels[at->channel];
		int32_t from = (x->may_read_copy ? read : way)[at->ends[0]];
		seconds += at->share * x->message_s *
		           x->table->messages[from * WAYS + way[at->ends[1]]];
	}
	return seconds;
}

static double least_from(const layered *d, const joint_piece *piece, int32_t at, int32_t *way,
                         int32_t *read)
{
	if (at == piece->n_products)
		return cost_of(d, piece, way, read);
	double least_s = INFINITY;
	bool is_copied = d->products[piece->products[at].product].is_copied;
	for (way[at] = 0; way[at] < WAYS; way[at]++)
		for (read[at] = 0; read[at] < WAYS; read[at]++)
			if (is_copied || read[at] == way[at])
				least_s = fmin(least_s, least_from(d, piece, at + 1, way, read));
	return least_s;
}

/* Return the least of all pieces together. */
static double least_of(const layered *d)
{
	double sum_s = 0;
	int32_t way[PRODUCTS], read[PRODUCTS];
	for (int32_t i = 0; i < d->j.n_pieces; i++)
		sum_s += d->j.pieces[i].times * least_from(d, &d->j.pieces[i], 0, way, read);
	return sum_s;
}

/* Add up the shares of each class's products, and of each link's channels. */
static void check_shares(const layered *d)
{
	double products[CLASSES + 1] = {0}, channels[MOST_LINKS] = {0}, there[MOST_LINKS] = {0};
	for (int32_t i = 0; i < d->j.n_pieces; i++) {
		const joint_piece *piece = &d->j.pieces[i];
		for (int32_t p = 0; p < piece->n_products; p++)
			products[d->class_of[piece->products[p].product]] +=
				piece->times * piece->products[p].share;
		for (int32_t c = 0; c < piece->n_channels; c++)
			channels[d->channels[piece->channels[c].channel].table - d->tables] +=
				piece->times * piece->channels[c].share;
	}
	for (int32_t c = 0; c < d->j.n_channels; c++)
		there[d->channels[c].table - d->tables]++;
	for (int32_t c = 0; c <= CLASSES; c++)
		assert_true(fabs(products[c] - (c < CLASSES ? LAYERS : 1)) < 1e-9);
	for (int32_t k = 0; k < MOST_LINKS; k++)
		assert_true(channels[k] <= there[k] + 1e-9);
}

static void pieces_are_never_above_the_whole(void **state)
{
	(void)state;
	double of_whole = 0, of_pieces = 0;
	int alike = 0;
	for (uint64_t seed = 0; seed < 200; seed++) {
		layered d;
		draw(&d, seed);
		sw_joint_whole(&d.j);
		double whole_s = least_of(&d);
		sw_joint_cut(&d.j, d.class_of, CLASSES + 1);
		check_shares(&d);
		double cut_s = least_of(&d);
		if (cut_s > whole_s + 1e-9)
			fail_msg("seed %d: the pieces take %g, the whole %g", (int)seed, cut_s, whole_s);
		for (int32_t i = 0; i < d.j.n_pieces; i++)
			alike += d.j.pieces[i].times > 1;
		of_whole += whole_s;
		of_pieces += cut_s;
		sw_joint_clear(&d.j);
	}
	assert_true(alike >= 70);
	assert_true(of_pieces > 0.75 * of_whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_never_above_the_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
