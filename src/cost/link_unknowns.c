/*
 * The unknowns of a fit of links, and the figures and seconds that follow from their values.
 */
#include "cost/link_unknowns.h"

#include <math.h>

int64_t count_parts(const sw_cluster *cluster, int32_t level)
{
	return level < 0 ? 1 : sw_cluster_parts(cluster, level);
}

/* ---- unknowns --------------------------------------------------------------------------- */

static void add_unknown(link_fit *f, int32_t level, int32_t part, figure_kind figure, double guess)
{
	/* The priors of flow and contention are stronger: one flow fills the link, and groups share
	 * it fairly, unless points say otherwise. */
	static const double priors[] = {1e-6, 1e-6, 1e-2, 1e-3};
	static const double min[] = {-23, 7, -10, 0},
			    /* latency 1e-10 s to 150 s; bandwidth 1e3 to 1e15 B/s */
		max[] = {5, 35, 0, 10};
	f->unknowns[f->n] =
		(unknown){level, part, figure, min[figure], max[figure], 0, priors[figure]};
	f->unknowns[f->n++].guess = fmin(fmax(guess, min[figure]), max[figure]);
}

static void list_level(link_fit *f, int32_t l)
{
	const sw_level *level = &f->shape->levels[l];
	add_unknown(f, l, -1, LATENCY, log(fmax(level->latency_s, 1e-7)));
	for (int32_t p = 0; level->part_bandwidth && p < count_parts(f->shape, l); p++)
		add_unknown(f, l, p, BANDWIDTH, log(level->part_bandwidth[p]));
	if (!level->part_bandwidth)
		add_unknown(f, l, -1, BANDWIDTH, log(level->bandwidth));
	add_unknown(f, l, -1, FLOW, log(level->flow_bandwidth / level->bandwidth));
	add_unknown(f, l, -1, CONTENTION, level->contention);
}

void list_unknowns(link_fit *f, sw_arena *arena)
{
	int64_t capacity = 0;
	for (int32_t l = 0; l < f->shape->n_levels; l++)
		capacity += 3 + (f->shape->levels[l].part_bandwidth ? count_parts(f->shape, l) : 1);
	f->unknowns = SW_NEW_N(arena, unknown, capacity);
	f->x = SW_NEW_N(arena, double, capacity);
	for (int32_t l = 0; l < f->shape->n_levels; l++)
		if (count_parts(f->shape, l) > count_parts(f->shape, l - 1))
			list_level(f, l);
	for (int i = 0; i < f->n; i++)
		f->x[i] = f->unknowns[i].guess;
}

/* ---- the trial cluster ------------------------------------------------------------------ */

static void set_figure(link_fit *f, const unknown *u, double x)
{
	sw_level *level = &f->trial.levels[u->level];
	switch (u->figure) {
	case LATENCY:
		level->latency_s = exp(x);
		break;
	case BANDWIDTH:
		if (u->part >= 0)
			f->part_bandwidth[u->level][u->part] = exp(x);
		level->bandwidth = u->part > 0 ? fmin(level->bandwidth, exp(x)) : exp(x);
		break;
	case FLOW:
		level->flow_bandwidth = level->bandwidth * exp(x);
		break;
	case CONTENTION:
		level->contention = x;
	}
}

void set_figures(link_fit *f)
{
	for (int i = 0; i < f->n; i++)
		set_figure(f, &f->unknowns[i], f->x[i]);
}

double predict(const sw_cluster *cluster, const sw_link_point *point)
{
	if (point->atoms)
		return sw_cost_algorithm(cluster, point->algorithm, point->kind, point->atoms,
		                         point->bytes);
	return sw_cost_pair(cluster, point->from, point->to, point->bytes);
}

void fill_residuals(link_fit *f, double *residuals)
{
	set_figures(f);
	for (int32_t i = 0; i < f->n_points; i++)
		residuals[i] =
			log(fmax(predict(&f->trial, &f->points[i]), 1e-12) / f->points[i].seconds);
}
