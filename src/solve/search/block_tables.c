/* The tables of a block's elimination. A table's first node has the slowest digit. As all tables
 * list their nodes in the order of elimination, the entries of one strategy of the node being
 * eliminated are contiguous, and a run of neighbouring digits that a table has, or lacks, is
 * treated as one. */
#include "solve/search/block_moves.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FAST_LOOPS __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define FAST_LOOPS
#endif

/* ---- packing ---------------------------------------------------------------------------- */

static void add_factor(block_region *b, int32_t count, const int32_t *nodes, int64_t *cost)
{
	block_factor f = {b->bucket[nodes[0]], count, nodes, cost};
	b->bucket[nodes[0]] = (int32_t)b->factors.len;
	sw_vec_push(&b->factors, f);
}

/* List the edges among eliminated nodes, the earlier end first. */
static int64_t list_pairs(local_search *s)
{
	const core *c = s->c;
	block_region *b = s->block;
	int64_t entries = 0;
	b->ends.len = 0;
	for (int32_t n = 0; n < b->eliminated; n++) {
		int32_t v = b->order[n], in_core = b->nodes.data[v];
		for (int32_t k = c->edge_first[in_core]; k < c->edge_first[in_core + 1]; k++) {
			const core_edge *e = &c->edges[c->edge_list[k]];
			int32_t u = b->rank[e->a == in_core ? e->b : e->a];
			if (u < 0 || b->position[u] < n)
				continue;
			sw_vec_push(&b->ends, v);
			sw_vec_push(&b->ends, u);
			sw_vec_push(&b->ends, c->edge_list[k]);
			entries += (int64_t)block_choices(b, v) * block_choices(b, u);
		}
	}
	return entries;
}

/* Reserve memory for all tables at once, so that none moves. */
static void reserve_tables(block_region *b, int64_t pair_entries)
{
	int64_t made = 0, largest = 0;
	for (int32_t n = 0; n < b->eliminated; n++) {
		int64_t entries = block_entries(b, b->order[n]);
		made += entries;
		largest = SW_MAX(largest, entries);
	}
	sw_vec_reserve(&b->pool, 2 * b->offered.len + (size_t)(pair_entries + made + largest) + 1);
	b->own = b->pool.data;
	b->value = b->own + b->offered.len;
	b->made = b->value + b->offered.len + pair_entries;
	b->sum = b->made + made;
}

static void pack_pair(local_search *s, const int32_t *ends, int64_t *out)
{
	const core *c = s->c;
	block_region *b = s->block;
	int32_t v = ends[0], u = ends[1], in_core = b->nodes.data[v];
	const core_edge *e = &c->edges[ends[2]];
	table_view view = core_view(c, e, e->b == in_core);
	const int32_t *mine = b->offered.data + b->first.data[v],
		      *theirs = b->offered.data + b->first.data[u];
	int32_t rows = block_choices(b, v), columns = block_choices(b, u);
	int64_t *own_v = b->own + b->first.data[v], *own_u = b->own + b->first.data[u];
	for (int32_t i = 0; i < rows; i++)
		for (int32_t j = 0; j < columns; j++)
			out[i * columns + j] =
				search_penalised(s, view_at(&view, mine[i], theirs[j]));
	for (int32_t i = 0; i < rows; i++) /* the present strategy is offered first */
		own_v[i] -= out[i * columns];
	for (int32_t j = 0; j < columns; j++)
		own_u[j] -= out[j];
	add_factor(b, 2, ends, out);
}

void block_pack(local_search *s)
{
	block_region *b = s->block;
	int64_t pair_entries = list_pairs(s);
	reserve_tables(b, pair_entries);
	b->factors.len = 0;
	for (int32_t n = 0; n < b->eliminated; n++) {
		int32_t v = b->order[n];
		const int64_t *field = s->field + s->c->first[b->nodes.data[v]];
		for (int32_t k = b->first.data[v]; k < b->first.data[v + 1]; k++)
			b->own[k] = field[b->offered.data[k]];
	}
	int64_t *out = b->value + b->offered.len;
	for (size_t k = 0; k < b->ends.len; k += 3) {
		pack_pair(s, b->ends.data + k, out);
		out += (int64_t)block_choices(b, b->ends.data[k]) *
		       block_choices(b, b->ends.data[k + 1]);
	}
	b->n_pairs = b->factors.len;
	s->work += 2 * pair_entries + 8 * b->eliminated;
}

/* ---- sums ------------------------------------------------------------------------------- */

FAST_LOOPS static void add_row(int64_t *restrict out, const int64_t *restrict in, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		out[k] += in[k];
}

FAST_LOOPS static void add_one(int64_t *out, int64_t value, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		out[k] += value;
}

FAST_LOOPS static void take_less(int64_t *restrict out, const int64_t *restrict in, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		out[k] = in[k] < out[k] ? in[k] : out[k];
}

/* A run of digits of a scope that a table has, or lacks, all of. */
typedef struct digit_group {
	/* number of values; distance of two values in the table, and in the scope */
	int64_t extent, step, inner;
} digit_group;

static int group_digits(const block_region *b, const int_list *scope, const block_factor *f,
                        digit_group *groups)
{
	int count = 0;
	int64_t inner = 1, step = 1;
	int32_t at = f->count - 1;
	bool last_has = false;
	for (size_t k = scope->len; k-- > 0;) {
		int64_t extent = block_choices(b, scope->data[k]);
		bool has = at > 0 && f->nodes[at] == scope->data[k];
		if (count && has == last_has)
			groups[count - 1].extent *= extent;
		else
			groups[count++] = (digit_group){extent, has ? step : 0, inner};
		inner *= extent;
		if (has) {
			step *= extent;
			at--;
		}
		last_has = has;
	}
	return count;
}

/* Add a table to `out`. Groups are numbered from the fastest, 0. */
static void add_table(int64_t *out, const int64_t *in, const digit_group *groups, int group)
{
	const digit_group *g = &groups[group];
	if (group == 0 && g->step)
		add_row(out, in, g->extent);
	else if (group == 0)
		add_one(out, *in, g->extent);
	else
		for (int64_t k = 0; k < g->extent; k++)
			add_table(out + k * g->inner, in + k * g->step, groups, group - 1);
}

static void eliminate(local_search *s, int32_t v, int64_t *table)
{
	block_region *b = s->block;
	const int_list *scope = &b->neighbours[v];
	const int64_t *value = b->value + b->first.data[v];
	int64_t entries = block_entries(b, v), *sum = b->sum;
	int32_t choices = block_choices(b, v);
	digit_group groups[64];
	for (int32_t i = 0; i < choices; i++) {
		int64_t *out = i ? sum : table;
		for (int64_t k = 0; k < entries; k++)
			out[k] = value[i];
		for (int32_t n = b->bucket[v]; n >= 0; n = b->factors.data[n].next) {
			const block_factor *f = &b->factors.data[n];
			int count = group_digits(b, scope, f, groups);
			int64_t slice = 1;
			for (int32_t k = 1; k < f->count; k++)
				slice *= block_choices(b, f->nodes[k]);
			if (count)
				add_table(out, f->cost + i * slice, groups, count - 1);
			else
				out[0] += f->cost[i];
			s->work += entries / 2 + 8;
		}
		if (i)
			take_less(table, sum, entries);
	}
	s->work += entries * choices;
	if (scope->len)
		add_factor(b, (int32_t)scope->len, scope->data, table);
}

/* ---- choices ---------------------------------------------------------------------------- */

static int64_t entry_at(const block_region *b, const block_factor *f)
{
	int64_t at = 0;
	for (int32_t k = 0; k < f->count; k++)
		at = at * block_choices(b, f->nodes[k]) + b->chosen[f->nodes[k]];
	return f->cost[at];
}

/* Choose the cheapest strategy; a tie goes to the present one, which is offered first. */
static void choose(local_search *s, int32_t v)
{
	block_region *b = s->block;
	int64_t least = INT64_MAX;
	int32_t best = 0;
	for (int32_t i = 0; i < block_choices(b, v); i++) {
		int64_t sum = b->value[b->first.data[v] + i];
		b->chosen[v] = i;
		for (int32_t n = b->bucket[v]; n >= 0; n = b->factors.data[n].next)
			sum += entry_at(b, &b->factors.data[n]);
		if (sum < least) {
			least = sum;
			best = i;
		}
	}
	b->chosen[v] = best;
}

/* ---- all together ----------------------------------------------------------------------- */

static void price_choices(local_search *s, double scale)
{
	block_region *b = s->block;
	for (int32_t n = 0; n < b->eliminated; n++) {
		int32_t v = b->order[n], in_core = b->nodes.data[v];
		bool uses = s->c->span_first[in_core] < s->c->span_first[in_core + 1];
		for (int32_t k = b->first.data[v]; k < b->first.data[v + 1]; k++)
			b->value[k] =
				b->own[k] +
				(uses ? search_price(s, in_core, b->offered.data[k], scale) : 0);
	}
}

/* Sort the edges' factors into buckets, and drop the tables of the last sum. */
static void file_pairs(block_region *b)
{
	for (int32_t n = 0; n < b->eliminated; n++)
		b->bucket[b->order[n]] = -1;
	b->factors.len = b->n_pairs;
	for (size_t k = 0; k < b->n_pairs; k++) {
		int32_t *bucket = &b->bucket[b->factors.data[k].nodes[0]];
		b->factors.data[k].next = *bucket;
		*bucket = (int32_t)k;
	}
}

void block_sum(local_search *s, double scale)
{
	block_region *b = s->block;
	int64_t *table = b->made;
	price_choices(s, scale);
	file_pairs(b);
	for (int32_t n = 0; n < b->eliminated; n++) {
		eliminate(s, b->order[n], table);
		table += block_entries(b, b->order[n]);
	}
	for (int32_t n = b->eliminated; n-- > 0;)
		choose(s, b->order[n]);
	s->work += 16 * b->eliminated;
}
