/*
 * Dominated ways: what another way of the same product is no worse than, in its kernels and in the
 * messages of each of its flows whatever the other end's way is, can be left out for all weights.
 * What late readers read of a product as a copy may be that other way, too.
 */
#include "bound/joint.h"

/* A table of a product's flows, and which of its two sides the product is. */
typedef struct table_end {
	const message_table *table;
	int32_t end; /* 0: the source; 1: the sink */
} table_end;

typedef struct table_ends {
	int32_t n;
	table_end *at;
} table_ends;

/* Does an element never take more messages under way a than under way b, whatever the other end's
 * way is? */
static bool takes_no_more(const table_end *t, int32_t a, int32_t b)
{
	const message_table *x = t->table;
	int32_t from = x->of[t->end][a], to = x->of[t->end][b], n = x->n[1 - t->end];
	int32_t step = t->end ? x->n[1] : 1, stride = t->end ? 1 : x->n[1];
	for (int32_t i = 0; i < n && from != to; i++)
		if (x->messages[from * stride + i * step] > x->messages[to * stride + i * step])
			return false;
	return true;
}

static bool way_dominates(const sw_product_kind *kind, const table_ends *ends, int32_t a, int32_t b)
{
	bool no_worse = kind->ways[a].kernels_s <= kind->ways[b].kernels_s;
	for (int32_t t = 0; t < ends->n && no_worse; t++)
		no_worse = takes_no_more(&ends->at[t], a, b);
	return no_worse;
}

/* List the ways of a product that no other one dominates; of equal ones the first. */
static void list_ways(joint *j, joint_product *p, const table_ends *ends)
{
	int32_t *ways = SW_NEW_N(&j->arena, int32_t, p->kind->n_ways), n = 0;
	for (int32_t w = 0; w < p->kind->n_ways; w++) {
		bool dominated = false;
		for (int32_t k = 0; k < n && !dominated; k++)
			dominated = way_dominates(p->kind, ends, ways[k], w);
		if (dominated)
			continue;
		int32_t kept = 0;
		for (int32_t k = 0; k < n; k++)
			if (!way_dominates(p->kind, ends, w, ways[k]))
				ways[kept++] = ways[k];
		ways[kept++] = w;
		n = kept;
	}
	p->ways = ways;
	p->n_ways = n;
}

static void add_end(table_ends *ends, const message_table *table, int32_t end)
{
	for (int32_t i = 0; i < ends->n; i++)
		if (ends->at[i].table == table && ends->at[i].end == end)
			return;
	ends->at[ends->n++] = (table_end){table, end};
}

/* List for each product the tables of its flows, each once. */
static table_ends *list_ends(joint *j)
{
	table_ends *ends = SW_NEW_N(&j->arena, table_ends, j->n_products + 1);
	for (int32_t c = 0; c < j->n_channels; c++)
		for (int32_t e = 0; e < 2; e++)
			ends[j->channels[c].ends[e]].n++;
	for (int32_t p = 0; p < j->n_products; p++) {
		ends[p].at = SW_NEW_N(&j->arena, table_end, ends[p].n + 1);
		ends[p].n = 0;
	}
	for (int32_t c = 0; c < j->n_channels; c++)
		for (int32_t e = 0; e < 2; e++)
			add_end(&ends[j->channels[c].ends[e]], j->channels[c].table, e);
	return ends;
}

/* Products of one kind with the same tables have the same ways. */
static void describe_ends(const joint_product *p, const table_ends *ends, sw_text *key)
{
	key->len = 0;
	sw_text_addf(key, "%p", (const void *)p->kind);
	for (int32_t i = 0; i < ends->n; i++)
		sw_text_addf(key, " %p %d", (const void *)ends->at[i].table, ends->at[i].end);
}

void sw_joint_drop_dominated(joint *j)
{
	const table_ends *ends = list_ends(j);
	sw_map known = {0};
	sw_text key = {0};
	for (int32_t p = 0; p < j->n_products; p++) {
		joint_product *product = &j->products[p];
		describe_ends(product, &ends[p], &key);
		uint32_t like = sw_map_intern(&known, key.data, key.len, (uint32_t)p);
		if (like == (uint32_t)p)
			list_ways(j, product, &ends[p]);
		product->ways = j->products[like].ways;
		product->n_ways = j->products[like].n_ways;
	}
	sw_map_clear(&known);
	sw_text_clear(&key);
}
