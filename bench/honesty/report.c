/* Rank correlation, regret, and the plans whose ranks by model and by simulator differ most. */
#include "honesty.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Plans shown whose ranks differ most. */
#define SHOWN 6
static const size_t tops[] = {1, 5};
static const double shares[] = {1, 0.25};

static double *steps_of(const verdicts *all, int judge)
{
	double *steps = sw_alloc(sizeof(double) * (all->len + 1));
	for (size_t i = 0; i < all->len; i++)
		steps[i] = all->data[i].step_s[judge];
	return steps;
}

typedef struct place {
	size_t plan;
	double key;
} place;
static int by_key(const void *a, const void *b)
{
	const place *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->plan < y->plan ? -1 : x->plan > y->plan;
}

/* List the plans in the order of a judge. */
static place *order_by(const verdicts *all, int judge)
{
	place *places = sw_alloc(sizeof(*places) * (all->len + 1));
	for (size_t i = 0; i < all->len; i++)
		places[i] = (place){i, all->data[i].step_s[judge]};
	qsort(places, all->len, sizeof(*places), by_key);
	return places;
}

/* Return the rank correlation of the judge's and the simulator's steps over the best plans by the
 * simulator, which are this share of all. */
static double correlation(const verdicts *all, int judge, double share)
{
	size_t n = (size_t)ceil(share * (double)all->len);
	place *best = order_by(all, SIMULATOR);
	double *steps = sw_alloc(sizeof(double) * (2 * n + 1));
	for (size_t i = 0; i < n; i++) {
		steps[i] = all->data[best[i].plan].step_s[judge];
		steps[n + i] = best[i].key;
	}
	double result = sw_spearman(steps, steps + n, n);
	free(steps);
	free(best);
	return result;
}

double rank_correlation(const verdicts *all, int judge)
{
	return correlation(all, judge, 1);
}

/* Return how much slower the best of the judge's first n plans is than the best of all, both
 * simulated. */
static double regret(const verdicts *all, int judge, size_t n)
{
	place *places = order_by(all, judge);
	double best = INFINITY, chosen = INFINITY;
	for (size_t i = 0; i < all->len; i++) {
		double step_s = all->data[places[i].plan].step_s[SIMULATOR];
		best = fmin(best, step_s);
		if (i < n)
			chosen = fmin(chosen, step_s);
	}
	free(places);
	return chosen / best - 1;
}

/* Find by how many ranks the additive model puts a plan behind (positive) or before its rank by the
 * simulator; list the plans with the largest difference first. */
static place *order_by_difference(const verdicts *all, double *behind)
{
	double *x = steps_of(all, ADDITIVE), *y = steps_of(all, SIMULATOR);
	double *ranks = sw_alloc(sizeof(double) * (all->len + 1));
	place *places = sw_alloc(sizeof(*places) * (all->len + 1));
	sw_ranks(x, all->len, behind);
	sw_ranks(y, all->len, ranks);
	for (size_t i = 0; i < all->len; i++) {
		behind[i] -= ranks[i];
		places[i] = (place){i, -fabs(behind[i])};
	}
	qsort(places, all->len, sizeof(*places), by_key);
	free(x);
	free(y);
	free(ranks);
	return places;
}

static double hidden_share(const verdict *v)
{
	return v->communication_s > 0 ? 1 - v->exposed_s / v->communication_s : 0;
}

/* ---- tables ----------------------------------------------------------------------------- */

static void add_judges(const verdicts *all, sw_text *text)
{
	static const char *const headings[] = {"by", "rank correlation", "of the best quarter",
	                                       "first is slower by", "best of 5 is"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (int j = 0; j < SIMULATOR; j++) {
		sw_table_cell(&table, "%s", judge_names[j]);
		for (size_t k = 0; k < SW_COUNT(shares); k++)
			sw_table_cell(&table, "%.4f", correlation(all, j, shares[k]));
		for (size_t k = 0; k < SW_COUNT(tops); k++)
			sw_table_cell(&table, "%.2f %%", 100 * regret(all, j, tops[k]));
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static void add_row(sw_table *table, const verdict *v, double behind)
{
	const double seconds[] = {v->step_s[SIMULATOR], v->step_s[ADDITIVE], v->compute_s,
	                          v->communication_s};
	sw_table_cell(table, "%+.0f", behind);
	for (size_t k = 0; k < SW_COUNT(seconds); k++)
		sw_table_cell_number(table, sw_text_add_seconds, seconds[k]);
	sw_table_cell(table, "%.0f %%", 100 * hidden_share(v));
	sw_table_cell(table, "%s", v->choice);
}

static void add_differences(const verdicts *all, sw_text *text)
{
	static const char *const headings[] = {"differs by",    "simulated", "additive", "compute",
	                                       "communication", "hidden",    "plan"};
	double *behind = sw_alloc(sizeof(double) * (all->len + 1));
	place *places = order_by_difference(all, behind), *best = order_by(all, SIMULATOR),
	      *first = order_by(all, ADDITIVE);
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	add_row(&table, &all->data[best[0].plan], behind[best[0].plan]);
	add_row(&table, &all->data[first[0].plan], behind[first[0].plan]);
	for (size_t i = 0; i < all->len && i < SHOWN; i++)
		add_row(&table, &all->data[places[i].plan], behind[places[i].plan]);
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	free(behind);
	free(places);
	free(best);
	free(first);
}

void report_text(const subject *s, const verdicts *all, sw_text *text)
{
	sw_text_addf(text, "%s on %lld devices of %s: %zu different plans\n", s->name,
	             (long long)s->cluster.n_devices, s->cluster.name, all->len);
	if (all->len == 0)
		return;
	add_judges(all, text);
	sw_text_add(text, "the simulator's first, the additive model's first, and the largest "
	                  "differences:\n");
	add_differences(all, text);
}

/* ---- JSON ------------------------------------------------------------------------------- */

json_t *report_json(const subject *s, const verdicts *all)
{
	json_t *judges = json_object();
	for (int j = 0; j < SIMULATOR && all->len > 1; j++)
		json_object_set_new(judges, judge_keys[j],
		                    json_pack("{s:f, s:f, s:f, s:f}", "spearman",
		                              correlation(all, j, shares[0]), "spearman_best",
		                              correlation(all, j, shares[1]), "regret_1",
		                              regret(all, j, tops[0]), "regret_5",
		                              regret(all, j, tops[1])));
	return json_pack("{s:s, s:s, s:I, s:I, s:o}", "program", s->name, "cluster",
	                 s->cluster.name, "devices", (json_int_t)s->cluster.n_devices, "plans",
	                 (json_int_t)all->len, "judges", judges);
}
