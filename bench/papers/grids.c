/*
 * AxoNN's model of its grids (src/model/axonn_grids.h): equations 4 to 9 over all contractions with
 * weights that a program has, with the bandwidth of equation 10 for each group, or with one
 * bandwidth for all (its sections V-A and V-B). The first grids are planned as well, and compared
 * with our plan.
 */
#include "papers.h"

#include "model/axonn_grids.h"

#include <string.h>

enum { X = SW_AXONN_X, Y = SW_AXONN_Y, Z = SW_AXONN_Z, DATA = SW_AXONN_DATA };

typedef struct grid {
	int64_t size[SW_AXONN_AXES];
	double aware_s, agnostic_s;
	double planned_s; /* 0: not planned, or it does not fit */
} grid;
typedef SW_VEC(grid) grid_list;

/* ---- grids ------------------------------------------------------------------------------ */

/* Keep the grids whose devices hold their part of parameters, two moments and gradient in f32: 16
 * bytes each, and a weight in half precision with 2 bytes. */
static void list_grids(const subject *s, double fitting_bytes, grid_list *grids)
{
	sw_roles roles;
	sw_arena arena;
	sw_arena_init(&arena);
	sw_roles_init(&roles, s->program, &s->sidecar);
	sw_grids ranked = sw_grids_rank(&s->cluster, &roles, roles.batch, SW_AXONN_PAPER,
	                                &arena);
	for (int32_t i = 0; i < ranked.n; i++) {
		const sw_grid *from = &ranked.list[i];
		grid g = {.aware_s = from->seconds[SW_AXONN_PAPER],
		          .agnostic_s = from->seconds[SW_AXONN_AGNOSTIC]};
		memcpy(g.size, from->grid.size, sizeof(g.size));
		if (8 * ranked.weight_bytes / (double)(g.size[X] * g.size[Y] * g.size[Z]) <=
		    fitting_bytes)
			sw_vec_push(grids, g);
	}
	sw_roles_clear(&roles);
	sw_arena_clear(&arena);
}

static void print_grid(const grid *g, char *text, size_t size)
{
	snprintf(text, size, "%lld,%lld,%lld,%lld", (long long)g->size[X], (long long)g->size[Y],
	         (long long)g->size[Z], (long long)g->size[DATA]);
}

/* Rank grids by a figure: rank 1 is the quickest. */
static int rank_of(const grid_list *grids, size_t which, size_t offset)
{
	int rank = 1;
	double own, other;
	memcpy(&own, (const char *)&grids->data[which] + offset, sizeof(own));
	for (size_t i = 0; i < grids->len; i++) {
		memcpy(&other, (const char *)&grids->data[i] + offset, sizeof(other));
		rank += other > 0 && other < own;
	}
	return rank;
}

static int aware_rank(const grid_list *grids, size_t i)
{
	return rank_of(grids, i, offsetof(grid, aware_s));
}

static int agnostic_rank(const grid_list *grids, size_t i)
{
	return rank_of(grids, i, offsetof(grid, agnostic_s));
}

static int planned_rank(const grid_list *grids, size_t i)
{
	return rank_of(grids, i, offsetof(grid, planned_s));
}

/* ---- plans of the first grids ----------------------------------------------------------- */

/* Choose the first grids by rank with placement, and the first by that rank of those that are first
 * with one bandwidth. */
static bool is_planned(const experiment *e, const grid_list *grids, size_t i)
{
	if (i < (size_t)e->planned || e->planned == 0)
		return e->planned > 0;
	for (size_t k = 0; k < i; k++)
		if (agnostic_rank(grids, k) == 1)
			return false;
	return agnostic_rank(grids, i) == 1;
}

static void take_step(grid *g, const char *strategy, const json_t *plans)
{
	const json_t *plan;
	size_t i;
	json_array_foreach(plans, i, plan)
	{
		if (!strcmp(json_string_value(json_object_get(plan, "strategy")), strategy))
			g->planned_s = json_real_value(json_object_get(plan, "step_time_s"));
	}
}

/* The experiment's own strategies for comparison come first, then grids. */
static json_t *plan_grids(const settings *how, const experiment *e, grid_list *grids)
{
	sw_text list = {0};
	sw_text_addf(&list, "%s", e->beside ? e->beside : "");
	for (size_t i = 0; i < grids->len; i++)
		if (is_planned(e, grids, i)) {
			char name[64];
			print_grid(&grids->data[i], name, sizeof(name));
			sw_text_addf(&list, "%saxonn:%s", list.len ? " " : "", name);
		}
	json_t *result = run_beside(how, e, list.data);
	sw_text_clear(&list);
	for (size_t i = 0; i < grids->len; i++) {
		char strategy[80] = "axonn:";
		print_grid(&grids->data[i], strategy + strlen(strategy),
		           sizeof(strategy) - strlen(strategy));
		take_step(&grids->data[i], strategy, json_object_get(result, "plans"));
	}
	return result;
}

static json_t *grid_json(const grid_list *grids, size_t i)
{
	char name[64];
	const grid *g = &grids->data[i];
	print_grid(g, name, sizeof(name));
	json_t *json = json_pack("{s:s, s:f, s:f, s:i, s:i}", "grid", name, "aware_s", g->aware_s,
	                         "agnostic_s", g->agnostic_s, "aware_rank", aware_rank(grids, i),
	                         "agnostic_rank", agnostic_rank(grids, i));
	if (g->planned_s > 0) {
		json_object_set_new(json, "step_time_s", json_real(g->planned_s));
		json_object_set_new(json, "rank", json_integer(planned_rank(grids, i)));
	}
	return json;
}

typedef int rank_fn(const grid_list *grids, size_t i);

/* Count how many of the five quickest plans a model has among its first five. */
static int overlap(const grid_list *grids, rank_fn *rank)
{
	int n = 0;
	for (size_t i = 0; i < grids->len; i++)
		n += grids->data[i].planned_s > 0 && planned_rank(grids, i) <= 5 &&
		     rank(grids, i) <= 5;
	return n;
}

static void say_overlap(const grid_list *grids, json_t *lines)
{
	char line[200];
	int shared = 0;
	size_t quickest = 0;
	for (size_t i = 0; i < grids->len; i++) {
		shared += aware_rank(grids, i) <= 5 && agnostic_rank(grids, i) <= 5;
		if (grids->data[i].planned_s > 0 && planned_rank(grids, i) == 1)
			quickest = i;
	}
	snprintf(line, sizeof(line),
	         "%zu grids hold the state; the first five of both rankings share %d", grids->len,
	         shared);
	json_array_append_new(lines, json_string(line));
	if (grids->len == 0 || grids->data[quickest].planned_s <= 0)
		return;
	snprintf(line, sizeof(line),
	         "of the five quickest plans, %d are among the first five by place, %d with one "
	         "bandwidth; "
	         "the quickest "
	         "is number %d and %d",
	         overlap(grids, aware_rank), overlap(grids, agnostic_rank),
	         aware_rank(grids, quickest), agnostic_rank(grids, quickest));
	json_array_append_new(lines, json_string(line));
}

#define SHOWN 5

static json_t *rank_grids(const settings *how, const experiment *e, const subject *s)
{
	grid_list grids = {0};
	json_t *list = json_array();
	list_grids(s,
	           e->fitting_bytes > 0 ? e->fitting_bytes : (double)s->cluster.device.memory_bytes,
	           &grids);
	json_t *result = plan_grids(how, e, &grids);
	for (size_t i = 0; i < grids.len; i++)
		if (i < SHOWN || i < (size_t)e->planned || agnostic_rank(&grids, i) <= SHOWN)
			json_array_append_new(list, grid_json(&grids, i));
	say_overlap(&grids, json_object_get(result, "lines"));
	json_object_set_new(result, "grids", list);
	sw_vec_clear(&grids);
	return result;
}

json_t *run_grids(const settings *how, const experiment *e)
{
	subject s;
	sw_error err;
	json_t *result;
	sw_status status = subject_read_plain(&s, e, &err);
	if (status == SW_OK)
		result = rank_grids(how, e, &s);
	else
		result = json_pack("{s:[s]}", "lines", err.message);
	subject_clear(&s);
	return result;
}
