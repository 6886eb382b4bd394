/* Ways of products that are left out never take the best choice of ways along. */
#include "test.h"

#include "bound/joint.h"

#include <math.h>

enum { PRODUCTS = 3, KINDS = 2, MOST_WAYS = 5, MOST_CHANNELS = 4 };

typedef struct drawing {
	uint64_t seed, drawn;
	sw_product_way ways[KINDS][MOST_WAYS];
	sw_product_kind kinds[KINDS];
	uint16_t holdings[MOST_CHANNELS][2][MOST_WAYS];
	double messages[MOST_CHANNELS][MOST_WAYS * MOST_WAYS];
	message_table tables[MOST_CHANNELS];
	channel channels[MOST_CHANNELS];
	joint_product products[PRODUCTS];
	joint j;
} drawing;

static int32_t below(drawing *d, int32_t n)
{
	return (int32_t)(sw_random_bits(d->seed, 0, d->drawn++) % (uint64_t)n);
}

static void draw_kinds(drawing *d)
{
	for (int32_t k = 0; k < KINDS; k++) {
		int32_t n = 1 + below(d, MOST_WAYS);
		for (int32_t w = 0; w < n; w++)
			d->ways[k][w].kernels_s = below(d, 4);
		d->kinds[k] = (sw_product_kind){.n_ways = n, .ways = d->ways[k]};
	}
	for (int32_t p = 0; p < PRODUCTS; p++)
		d->products[p] = (joint_product){.kind = &d->kinds[below(d, KINDS)]};
}

/* Draw a channel with a table of its own, of small whole numbers, so that many are equal. */
static void draw_channel(drawing *d, int32_t c)
{
	int32_t sink = 1 + below(d, PRODUCTS - 1), source = below(d, sink);
	channel *x = &d->channels[c];
	message_table *t = &d->tables[c];
	*x = (channel){.ends = {source, sink},
	               .may_read_copy = below(d, 3) == 0,
	               .table = t,
	               .message_s = below(d, 3)};
	d->products[source].is_copied |= x->may_read_copy;
	for (int e = 0; e < 2; e++) {
		t->n[e] = 1 + below(d, MOST_WAYS);
		t->of[e] = d->holdings[c][e];
		for (int32_t w = 0; w < MOST_WAYS; w++)
			d->holdings[c][e][w] = (uint16_t)below(d, t->n[e]);
	}
	for (int32_t i = 0; i < t->n[0] * t->n[1]; i++)
		d->messages[c][i] = below(d, 4);
	t->messages = d->messages[c];
}

static void draw(drawing *d, uint64_t seed)
{
	*d = (drawing){.seed = seed};
	draw_kinds(d);
	int32_t n = below(d, MOST_CHANNELS + 1);
	for (int32_t c = 0; c < n; c++)
		draw_channel(d, c);
	d->j = (joint){.n_products = PRODUCTS,
	               .n_channels = n,
	               .products = d->products,
	               .channels = d->channels};
	sw_arena_init(&d->j.arena);
}

/* Return the seconds of a choice: a way of each product, and one of what late readers read of it.
 */
static double cost_of(const drawing *d, double weight, const int32_t *way, const int32_t *read)
{
	double kernels_s = 0, messages_s = 0;
	for (int32_t p = 0; p < PRODUCTS; p++) {
		const sw_product_way *ways = d->products[p].kind->ways;
		kernels_s += ways[way[p]].kernels_s;
		kernels_s += read[p] != way[p] ? ways[read[p]].kernels_s : 0;
	}
	for (int32_t c = 0; c < d->j.n_channels; c++) {
		const channel *x = &d->channels[c];
		int32_t from = (x->may_read_copy ? read : way)[x->ends[0]];
		int32_t row = x->table->of[0][from], column = x->table->of[1][way[x->ends[1]]];
		messages_s += x->message_s * x->table->messages[row * x->table->n[1] + column];
	}
	return weight * kernels_s + (1 - weight) * messages_s;
}

/* Return the least cost of all choices of the products from number `at` on: of all ways, or of
 * those that were kept. */
static double least_of(const drawing *d, bool kept, double weight, int32_t at, int32_t *way,
                       int32_t *read)
{
	double least = INFINITY;
	if (at == PRODUCTS)
		return cost_of(d, weight, way, read);
	const joint_product *p = &d->products[at];
	int32_t n = kept ? p->n_ways : p->kind->n_ways;
	for (int32_t a = 0; a < n; a++)
		for (int32_t b = 0; b < n; b++) {
			way[at] = kept ? p->ways[a] : a;
			read[at] = kept ? p->ways[b] : b;
			if (p->is_copied || a == b)
				least = fmin(least, least_of(d, kept, weight, at + 1, way, read));
		}
	return least;
}

static void what_is_left_out_is_never_needed(void **state)
{
	(void)state;
	int dropped = 0;
	for (uint64_t seed = 0; seed < 400; seed++) {
		drawing d;
		int32_t way[PRODUCTS], read[PRODUCTS];
		draw(&d, seed);
		sw_joint_drop_dominated(&d.j);
		for (int32_t p = 0; p < PRODUCTS; p++) {
			assert_true(d.products[p].n_ways > 0);
			dropped += d.products[p].kind->n_ways - d.products[p].n_ways;
		}
		for (double weight = 0; weight <= 1; weight += 0.25) {
			double all = least_of(&d, false, weight, 0, way, read),
			       kept = least_of(&d, true, weight, 0, way, read);
			if (fabs(all - kept) > 1e-9)
				fail_msg("seed %d, weight %g: %g of all ways, %g of those kept",
				         (int)seed, weight, all, kept);
		}
		sw_joint_clear(&d.j);
	}
	assert_true(dropped > 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_out_is_never_needed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
