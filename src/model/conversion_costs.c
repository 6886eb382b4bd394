/*
 * Conversions between the layouts of an edge's ends, and what they cost: the seconds of their
 * paths, less what kernels hide, as cost tables of the problem. Equal conversions share one table.
 */
#include "model/internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- conversions ------------------------------------------------------------------------ */

/* From each layout of one list to each layout of another. */
typedef struct sw_conversion {
	uint32_t shape; /* number in the path cache */
	sw_layout_list from, to;
} sw_conversion;

static void key_list(sw_text *key, sw_layout_list l)
{
	sw_text_add_n(key, (const char *)&l.n, sizeof(l.n));
	for (int32_t i = 0; i < l.n; i++)
		sw_text_add_n(key, (const char *)&l.list[(uint32_t)i * l.step], sizeof(uint32_t));
}

/* Return the number of the conversion between these lists, which several pairs of strategy tables
 * may share. */
static uint32_t find_conversion(sw_model *m, uint32_t shape, sw_layout_list from, sw_layout_list to)
{
	sw_text key = {0};
	sw_text_add_n(&key, (const char *)&shape, sizeof(shape));
	key_list(&key, from);
	key_list(&key, to);
	uint32_t fresh = (uint32_t)m->index.conversions.len;
	uint32_t number = sw_map_intern(&m->index.conversion_of_lists, key.data, key.len, fresh);
	if (number == fresh)
		sw_vec_push(&m->index.conversions,
		            ((sw_conversion){.shape = shape, .from = from, .to = to}));
	sw_text_clear(&key);
	return number;
}

uint32_t sw_conversion_between(sw_model *m, sw_shape shape, sw_edge_end from, sw_edge_end to)
{
	uint32_t number = sw_path_cache_shape(m->paths, shape);
	const uint32_t key[] = {number,   (uint32_t)from.table, from.which,
	                        from.out, (uint32_t)to.table,   to.which,
	                        to.out};
	uint32_t conversion = sw_map_get(&m->index.conversion_of_ends, key, sizeof(key));
	if (conversion == SW_ABSENT) {
		conversion =
			find_conversion(m, number, sw_layouts_at(m, from), sw_layouts_at(m, to));
		sw_map_put(&m->index.conversion_of_ends, key, sizeof(key), conversion);
	}
	return conversion;
}

/* Return the seconds, [from][to], which the caller frees: looking them up again is quicker than keeping
 * them, for they are as many as the entries of all tables. */
static double *time_conversion(const sw_model *m, const sw_conversion *conversion)
{
	uint32_t *rows = sw_number_layouts(m, conversion->from),
		 *columns = sw_number_layouts(m, conversion->to);
	double *seconds = sw_alloc(sizeof(*seconds) * (size_t)conversion->from.n *
	                           (size_t)conversion->to.n);
	sw_path_cache_seconds(m->paths, conversion->shape, rows, conversion->from.n, columns,
	                      conversion->to.n, seconds);
	free(rows);
	free(columns);
	return seconds;
}

/* ---- cost tables ------------------------------------------------------------------------ */

/* Round as llround does, without a call: tables have hundreds of millions of entries. */
static int64_t rounded(double units)
{
	int64_t whole = (int64_t)units;
	double rest = units - (double)whole;
	return whole + (rest >= 0.5) - (rest <= -0.5);
}

int64_t sw_cost_from_seconds(double seconds)
{
	double units = seconds / SW_COST_UNIT_S;
	return isfinite(units) && units < 4e18 ? rounded(units) : SW_FORBIDDEN;
}

/* Does the conversion make partial sums (P) on an atom where the value was not partial? */
static bool makes_term(const sw_model *m, uint32_t from, uint32_t to)
{
	const sw_layout *a = &m->memo->layouts.items.data[from],
			*b = &m->memo->layouts.items.data[to];
	for (int32_t i = 0; b->monoid != SW_MONOID_NONE && i < b->n; i++)
		if (b->state[i].kind == SW_STATE_P && a->state[i].kind != SW_STATE_P)
			return true;
	return false;
}

/* A path includes a kernel or two around its collectives: one kernel overhead of it is never
 * hidden. */
static double movement_cost_s(const sw_model *m, sw_movement movement, double path_s)
{
	double overhead_s = m->analysis->cluster->device.kernel_overhead_s;
	double collectives_s = fmax(path_s - overhead_s, 0);
	double hidden_s = fmin(movement.trips * collectives_s, m->copies * movement.window_s);
	return isfinite(path_s) ? movement.count * (movement.trips * path_s -
	                                            (1 - movement.price) * hidden_s)
	                        : path_s;
}

/* Is it a move of what rests as it is? */
static bool leaves_rest(const sw_model *m, sw_movement movement, uint32_t from, uint32_t to)
{
	return movement.rests && from != to &&
	       m->memo->layouts.items.data[from].monoid == SW_MONOID_NONE;
}

/* Is nothing moved, since a device makes its part as the reader needs it? */
static bool is_made(const sw_model *m, sw_movement movement, uint32_t from, uint32_t to)
{
	const sw_layout *layouts = m->memo->layouts.items.data;
	return movement.made && sw_layout_is_on_all(&layouts[from]) &&
	       sw_layout_is_on_all(&layouts[to]);
}

static double move_s(const sw_model *m, sw_movement movement, uint32_t from, uint32_t to, double path_s)
{
	if (leaves_rest(m, movement, from, to))
		return INFINITY;
	return is_made(m, movement, from, to) ? 0 : movement_cost_s(m, movement, path_s);
}

int32_t sw_conversion_cost_table(sw_model *m, uint32_t number, sw_movement movement)
{
	struct {
		sw_movement movement;
		uint64_t conversion;
	} key = {movement, number};
	uint32_t table = sw_map_get(&m->index.cost_tables, &key, sizeof(key));
	if (table != SW_ABSENT)
		return (int32_t)table;
	const sw_conversion *conversion = &m->index.conversions.data[number];
	double *seconds = time_conversion(m, conversion);
	sw_layout_list rows = conversion->from, columns = conversion->to;
	int64_t *cost = sw_alloc(sizeof(*cost) * (size_t)rows.n * (size_t)columns.n), *at = cost;
	for (int32_t i = 0; i < rows.n; i++)
		for (int32_t k = 0; k < columns.n; k++, at++) {
			uint32_t from = rows.list[(uint32_t)i * rows.step],
				 to = columns.list[(uint32_t)k * columns.step];
			double term_s = movement.term_s > 0 && makes_term(m, from, to)
			                        ? movement.count * movement.trips * movement.term_s
			                        : 0;
			*at = sw_cost_from_seconds(
				move_s(m, movement, from, to, seconds[at - cost]) + term_s);
		}
	table = (uint32_t)sw_problem_add_table(&m->problem, rows.n, columns.n, cost);
	sw_map_put(&m->index.cost_tables, &key, sizeof(key), table);
	free(cost);
	free(seconds);
	return (int32_t)table;
}
