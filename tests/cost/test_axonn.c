/* AxoNN's communication model, equations 1 to 10 (its section V), compared with what our model says
 * of the same collectives on the same grid. */
#include "cost/axonn_model.h"
#include "cost/clusters.h"

#include <string.h>

/* ---- the paper's equations, as printed -------------------------------------------------- */

/* Equations 1 to 3: G devices, m bytes in each one's input buffer, beta bytes per second between
 * peers. */
static double all_gather_s(double beta, double G, double m)
{
	return 1 / beta * (G - 1) * m;
}

static double reduce_scatter_s(double beta, double G, double m)
{
	return 1 / beta * ((G - 1) / G) * m;
}

static double all_reduce_s(double beta, double G, double m)
{
	return 2 / beta * ((G - 1) / G) * m;
}

enum { X = SW_AXONN_X, Y = SW_AXONN_Y, Z = SW_AXONN_Z, DATA = SW_AXONN_DATA, AXES = SW_AXONN_AXES };
typedef sw_axonn_grid grid;

typedef struct machine {
	sw_cluster cluster;
	int64_t per_node;
	double inter, intra;
} machine;

/* Equation 10, and the case before it of groups within a node. */
static double group_bandwidth(const machine *on, const grid *g, int i)
{
	int64_t preceding = 1;
	for (int j = 0; j < i; j++)
		preceding *= g->size[j];
	if (preceding * g->size[i] <= on->per_node)
		return on->intra;
	return on->inter / (double)SW_MIN(on->per_node, preceding);
}

/* A layer multiplies m rows by a k by n weight, with a byte per element. */
typedef struct layer {
	double m, k, n;
	bool transposed; /* x and y change roles, as in every second layer */
} layer;

enum { EQUATIONS = 5 };

/* Equations 4 to 8, in this order. */
static void layer_equations(const machine *on, const grid *g, const layer *l,
                            double seconds[EQUATIONS])
{
	int ax = l->transposed ? Y : X, ay = l->transposed ? X : Y;
	double gx = (double)g->size[ax], gy = (double)g->size[ay], gz = (double)g->size[Z];
	double gdata = (double)g->size[DATA];
	double bx = group_bandwidth(on, g, ax), by = group_bandwidth(on, g, ay);
	double bz = group_bandwidth(on, g, Z), bdata = group_bandwidth(on, g, DATA);
	seconds[0] = 1 / bz * (gz - 1) * (l->k * l->n / (gx * gy * gz));
	seconds[1] = 1 / bz * ((gz - 1) / gz) * (l->k * l->n / (gx * gy));
	seconds[2] = 2 / by * ((gy - 1) / gy) * (l->m * l->n / (gz * gx));
	seconds[3] = 2 / bx * ((gx - 1) / gx) * (l->m * l->k / (gz * gy));
	seconds[4] = 2 / bdata * ((gdata - 1) / gdata) * (l->k * l->n / (gx * gy * gz));
}

/* ---- the same by our model -------------------------------------------------------------- */

enum { COLLECTIVES = SW_AXONN_STEPS };
typedef sw_axonn_step step;

static sw_axonn_layer in_bytes(const layer *l)
{
	return (sw_axonn_layer){.mk = l->m * l->k,
	                        .kn = l->k * l->n,
	                        .mn = l->m * l->n,
	                        .transposed = l->transposed,
	                        .weights = 1,
	                        .results = 1,
	                        .inputs = 1};
}

/* The paper's m is the rows of a data-parallel group. */
static void layer_steps(const grid *g, const layer *l, step steps[COLLECTIVES])
{
	sw_axonn_layer whole = in_bytes(l);
	whole.mk *= (double)g->size[DATA];
	whole.mn *= (double)g->size[DATA];
	sw_axonn_steps(g, &whole, steps);
}

static double ring_s(const machine *on, const grid *g, const step *s)
{
	return sw_cost_algorithm(&on->cluster, SW_ALGORITHM_RING, s->kind, g->atoms[s->axis],
	                         (int64_t)s->operand_bytes);
}

static double chosen_s(const machine *on, const grid *g, const step *s)
{
	return sw_cost_choose(&on->cluster, s->kind, g->atoms[s->axis], (int64_t)s->operand_bytes).seconds;
}

/* ---- grids and machines ----------------------------------------------------------------- */

/* Assign atoms to x, y, z and data in this order, from the innermost outwards. Return false if the
 * sizes are not products of atoms. */
static bool grid_place(const sw_cluster *cluster, grid *g)
{
	int32_t a = cluster->atoms.n;
	for (int i = 0; i < AXES; i++) {
		int64_t size = 1;
		g->atoms[i] = 0;
		while (size < g->size[i] && a > 0) {
			size *= cluster->atoms.size[--a];
			g->atoms[i] |= UINT32_C(1) << a;
		}
		if (size != g->size[i])
			return false;
	}
	return a == 0;
}

typedef void grid_check(const machine *on, const grid *g);

/* Call `check` with every grid and return the number of grids. */
static int for_each_grid(const machine *on, grid_check *check)
{
	int n = 0;
	int64_t devices = on->cluster.n_devices;
	for (int64_t x = 1; x <= devices; x *= 2)
		for (int64_t y = 1; x * y <= devices; y *= 2)
			for (int64_t z = 1; x * y * z <= devices; z *= 2) {
				grid g = {.size = {x, y, z, devices / (x * y * z)}};
				if (!grid_place(&on->cluster, &g))
					continue;
				check(on, &g);
				n++;
			}
	return n;
}

/* Set all latencies to 0: assumption 3 of the paper is that there is no start-up. */
static void forget_latencies(sw_cluster *cluster)
{
	for (int32_t l = 0; l < cluster->n_levels; l++)
		cluster->levels[l].latency_s = 0;
}

static void made_machine(machine *on, const char *nodes, const char *devices, int64_t per_node)
{
	const level_text levels[] = {{nodes, 0, 25e9, 0}, {devices, 0, 300e9, 0}};
	make_cluster(&on->cluster, levels, 2);
	on->per_node = per_node;
	on->inter = 25e9;
	on->intra = 300e9;
}

/* Section VI: four NICs of 200 Gb/s per node. Inside a node a ring has the bandwidth that one flow
 * can use of the links. */
static void perlmutter(machine *on, const char *devices)
{
	sw_error err;
	if (sw_cluster_read(SW_SOURCE_DIR "/clusters/perlmutter.yaml", &on->cluster, &err) !=
	            SW_OK ||
	    sw_cluster_take(&on->cluster, devices, &err) != SW_OK)
		fail_msg("%s", err.message);
	forget_latencies(&on->cluster);
	on->per_node = 4;
	on->inter = 4 * 25e9;
	on->intra = on->cluster.levels[1].flow_bandwidth;
}

static const struct {
	const char *nodes, *devices;
	int64_t per_node;
	int grids;
} shapes[] = {
	{"1", "8", 8, 20},   {"2", "4", 4, 20}, {"8", "4", 4, 56},
	{"16", "8", 8, 120}, {"4", "1", 1, 10},
};

static void check_on_every_shape(grid_check *check)
{
	for (size_t i = 0; i < SW_COUNT(shapes); i++) {
		machine on;
		made_machine(&on, shapes[i].nodes, shapes[i].devices, shapes[i].per_node);
		assert_int_equal(for_each_grid(&on, check), shapes[i].grids);
		sw_cluster_clear(&on.cluster);
	}
}

/* ---- tests ------------------------------------------------------------------------------ */

static void our_rings_follow_equations_1_to_3(void **state)
{
	(void)state;
	const char *const sizes[] = {"2", "3", "4", "5", "7", "8"};
	const int64_t bytes = 840 * 1024;
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		const level_text levels[] = {{sizes[i], 0, 25e9, 0}};
		sw_cluster c;
		make_cluster(&c, levels, 1);
		uint32_t all = atoms_of_level(&c, 0);
		double G = (double)c.n_devices, m = (double)bytes;
		assert_seconds(sw_cost_algorithm(&c, SW_ALGORITHM_RING, SW_COLLECTIVE_ALL_GATHER,
		                                 all, bytes),
		               all_gather_s(25e9, G, m));
		assert_seconds(sw_cost_algorithm(&c, SW_ALGORITHM_RING,
		                                 SW_COLLECTIVE_REDUCE_SCATTER, all, bytes),
		               reduce_scatter_s(25e9, G, m));
		assert_seconds(sw_cost_algorithm(&c, SW_ALGORITHM_RING, SW_COLLECTIVE_ALL_REDUCE,
		                                 all, bytes),
		               all_reduce_s(25e9, G, m));
		sw_cluster_clear(&c);
	}
}

static const layer layers[] = {{4096, 1024, 2048, false}, {4096, 2048, 1024, true}};

static void check_layers(const machine *on, const grid *g)
{
	for (size_t i = 0; i < SW_COUNT(layers); i++) {
		double paper[COLLECTIVES];
		step steps[COLLECTIVES];
		layer_equations(on, g, &layers[i], paper);
		layer_steps(g, &layers[i], steps);
		for (int s = 0; s < COLLECTIVES; s++)
			assert_seconds(ring_s(on, g, &steps[s]), paper[s]);
	}
}

/* What the planner ranks by is equation 9, with the bandwidths of equation 10 or with one. */
static void check_seconds(const machine *on, const grid *g)
{
	machine flat = *on;
	flat.intra = flat.inter;
	flat.per_node = 1;
	for (size_t i = 0; i < SW_COUNT(layers); i++) {
		double paper[EQUATIONS], agnostic[EQUATIONS], aware_s = 0, agnostic_s = 0;
		sw_axonn_layer whole = in_bytes(&layers[i]);
		whole.mk *= (double)g->size[DATA];
		whole.mn *= (double)g->size[DATA];
		layer_equations(on, g, &layers[i], paper);
		layer_equations(&flat, g, &layers[i], agnostic);
		for (int k = 0; k < EQUATIONS; k++) {
			aware_s += paper[k];
			agnostic_s += agnostic[k];
		}
		assert_seconds(sw_axonn_layer_seconds(&on->cluster, g, &whole, SW_AXONN_PAPER),
		               aware_s);
		assert_seconds(sw_axonn_layer_seconds(&on->cluster, g, &whole, SW_AXONN_AGNOSTIC),
		               agnostic_s);
	}
}

static void the_planner_ranks_by_equation_9(void **state)
{
	(void)state;
	check_on_every_shape(check_seconds);
}

static void equations_4_to_8_hold_on_every_grid(void **state)
{
	(void)state;
	check_on_every_shape(check_layers);
}

/* Compute the bandwidth from the seconds in which a ring of the axis gathers. */
static void check_bandwidths(const machine *on, const grid *g)
{
	const int64_t bytes = 1 << 20;
	for (int i = 0; i < AXES; i++) {
		step gather = {SW_COLLECTIVE_ALL_GATHER, i, (double)bytes, 1};
		if (g->size[i] > 1)
			assert_seconds((double)(g->size[i] - 1) * (double)bytes /
			                       ring_s(on, g, &gather),
			               group_bandwidth(on, g, i));
	}
}

static void equation_10_is_the_bandwidth_of_every_group(void **state)
{
	(void)state;
	check_on_every_shape(check_bandwidths);
}

/* A block of GPT-20B (table I) on a microbatch of 32 sequences of 2048, half precision: its four
 * dense layers, every second one transposed. */
static void check_block(const machine *on, const grid *g)
{
	const double rows = 32 * 2048 / (double)g->size[DATA], h = 7168;
	const layer block[] = {{2 * rows, h, 3 * h, false},
	                       {2 * rows, h, h, true},
	                       {2 * rows, h, 4 * h, false},
	                       {2 * rows, 4 * h, h, true}};
	double paper_s = 0, ours_s = 0;
	for (size_t i = 0; i < SW_COUNT(block); i++) {
		double paper[COLLECTIVES];
		step steps[COLLECTIVES];
		layer_equations(on, g, &block[i], paper);
		layer_steps(g, &block[i], steps);
		for (int s = 0; s < COLLECTIVES; s++) {
			paper_s += paper[s]; /* equation 9 */
			ours_s += ring_s(on, g, &steps[s]);
		}
	}
	assert_seconds(ours_s, paper_s);
}

static void equation_9_adds_up_for_a_network_on_every_grid_of_perlmutter(void **state)
{
	(void)state;
	static const struct {
		const char *devices;
		int grids;
	} sizes[] = {{"16", 35}, {"32", 56}, {"64", 84}, {"1024", 286}};
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		machine on;
		perlmutter(&on, sizes[i].devices);
		assert_int_equal(for_each_grid(&on, check_block), sizes[i].grids);
		sw_cluster_clear(&on.cluster);
	}
}

/* The paper assumes rings (assumption 1); our model takes the fastest algorithm. */
static void check_choices(const machine *on, const grid *g)
{
	double paper[COLLECTIVES];
	step steps[COLLECTIVES];
	layer_equations(on, g, &layers[0], paper);
	layer_steps(g, &layers[0], steps);
	for (int s = 0; s < COLLECTIVES; s++)
		assert_true(chosen_s(on, g, &steps[s]) <= paper[s] * (1 + 1e-12));
}

static void the_choice_is_never_slower_than_the_equations(void **state)
{
	(void)state;
	check_on_every_shape(check_choices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_rings_follow_equations_1_to_3),
		cmocka_unit_test(equations_4_to_8_hold_on_every_grid),
		cmocka_unit_test(the_planner_ranks_by_equation_9),
		cmocka_unit_test(equation_10_is_the_bandwidth_of_every_group),
		cmocka_unit_test(equation_9_adds_up_for_a_network_on_every_grid_of_perlmutter),
		cmocka_unit_test(the_choice_is_never_slower_than_the_equations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
