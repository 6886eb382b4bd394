/* Seconds of collectives: closed forms, monotonicity, sharing of links, unequal nodes. */
#include "cost/clusters.h"

#include <math.h>

static const sw_move_kind communicating[] = {
	SW_MOVE_ALL_GATHER, SW_MOVE_ALL_REDUCE, SW_MOVE_REDUCE_SCATTER, SW_MOVE_ALL_TO_ALL, SW_MOVE_PERMUTE,
};

static double seconds(const sw_cluster *cluster, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	return sw_cost_collective((void *)cluster, kind, atoms, bytes);
}

/* ---- one level ------------------------------------------------------------------------------------------- */

static void one_level_follows_the_closed_forms(void **state)
{
	(void)state;
	const level_text levels[] = {{"8", 1e-3, 1e6, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	uint32_t all = atoms_of_level(&c, 0);
	const double n = 8000, alpha = 1e-3, beta = 1e-6;
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, all, 8000), 3 * alpha + 7 * n * beta);
	assert_seconds(seconds(&c, SW_MOVE_REDUCE_SCATTER, all, 8000), 3 * alpha + 7. / 8 * n * beta);
	assert_seconds(seconds(&c, SW_MOVE_ALL_REDUCE, all, 8000), 6 * alpha + 2 * 7. / 8 * n * beta);
	assert_seconds(seconds(&c, SW_MOVE_ALL_TO_ALL, all, 8000), 3 * alpha + 7. / 8 * n * beta);
	assert_seconds(seconds(&c, SW_MOVE_PERMUTE, all, 8000), alpha + n * beta);
	sw_cluster_clear(&c);
}

static void local_moves_and_groups_of_one_are_free(void **state)
{
	(void)state;
	const level_text levels[] = {{"4", 1e-3, 1e6, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	assert_true(seconds(&c, SW_MOVE_SLICE, 3, 1000) == 0);
	assert_true(seconds(&c, SW_MOVE_TO_PARTIAL, 3, 1000) == 0);
	for (size_t k = 0; k < SW_COUNT(communicating); k++)
		assert_true(seconds(&c, communicating[k], 0, 1000) == 0);
	sw_cluster_clear(&c);
}

static void a_large_all_reduce_is_a_reduce_scatter_and_an_all_gather(void **state)
{
	(void)state;
	const level_text levels[] = {{"3", 1e-3, 1e6, 0}, {"4", 1e-4, 1e7, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	for (uint32_t mask = 1; mask < UINT32_C(1) << c.atoms.n; mask++) {
		int64_t members = sw_atoms_group_size(&c.atoms, mask), bytes = 12 * 1000000;
		double both = seconds(&c, SW_MOVE_REDUCE_SCATTER, mask, bytes) +
		              seconds(&c, SW_MOVE_ALL_GATHER, mask, bytes / members);
		if (members > 2)
			assert_seconds(seconds(&c, SW_MOVE_ALL_REDUCE, mask, bytes), both);
		else
			assert_true(seconds(&c, SW_MOVE_ALL_REDUCE, mask, bytes) <= both);
	}
	sw_cluster_clear(&c);
}

/* 3 nodes take ceil(log2 3) + 1 rounds, 4 devices in a node two. */
static void a_small_all_reduce_exchanges_whole_operands(void **state)
{
	(void)state;
	const level_text levels[] = {{"3", 1e-3, 1e6, 0}, {"4", 1e-4, 1e7, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	uint32_t all = (UINT32_C(1) << c.atoms.n) - 1;
	assert_seconds(seconds(&c, SW_MOVE_ALL_REDUCE, all, 4), 3 * (1e-3 + 4 * 4 / 1e6) + 2 * (1e-4 + 4 / 1e7));
	sw_cluster_clear(&c);
}

/* ---- two levels: AxoNN's model ----------------------------------------------------------------------------- */

typedef struct grid {
	int64_t size[4]; /* x (innermost), y, z, data */
	uint32_t atoms[4];
} grid;

/* Takes atoms from the innermost outwards for x, y, z and data in turn. False if the sizes do not fall on atoms. */
static bool grid_place(const sw_cluster *cluster, grid *g)
{
	int32_t a = cluster->atoms.n;
	for (int i = 0; i < 4; i++) {
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

/* Equation 10, and the case before it of groups within a node. */
static double axonn_bandwidth(const grid *g, int i, int64_t per_node, double inter, double intra)
{
	int64_t preceding = 1;
	for (int j = 0; j < i; j++)
		preceding *= g->size[j];
	if (preceding * g->size[i] <= per_node)
		return intra;
	return inter / (double)SW_MIN(per_node, preceding);
}

/* Equations 4 to 8 for a layer of m rows and a k by n weight, one byte per element. */
static void check_layer(const sw_cluster *c, const grid *g, int64_t per_node)
{
	const int64_t m = 4096, k = 1024, n = 2048;
	const int64_t x = g->size[0], y = g->size[1], z = g->size[2], data = g->size[3];
	const double rx = (double)(x - 1) / (double)x, ry = (double)(y - 1) / (double)y;
	const double rz = (double)(z - 1) / (double)z, rdata = (double)(data - 1) / (double)data;
	double beta[4];
	for (int i = 0; i < 4; i++)
		beta[i] = axonn_bandwidth(g, i, per_node, c->levels[0].bandwidth, c->levels[1].bandwidth);
	assert_seconds(seconds(c, SW_MOVE_ALL_GATHER, g->atoms[2], k * n / (x * y * z)),
	               (double)(z - 1) * (double)(k * n / (x * y * z)) / beta[2]); /* 4 */
	assert_seconds(seconds(c, SW_MOVE_REDUCE_SCATTER, g->atoms[2], k * n / (x * y)),
	               rz * (double)(k * n / (x * y)) / beta[2]); /* 5 */
	assert_seconds(seconds(c, SW_MOVE_ALL_REDUCE, g->atoms[1], m * n / (z * x)),
	               2 * ry * (double)(m * n / (z * x)) / beta[1]); /* 6 */
	assert_seconds(seconds(c, SW_MOVE_ALL_REDUCE, g->atoms[0], m * k / (z * y)),
	               2 * rx * (double)(m * k / (z * y)) / beta[0]); /* 7 */
	assert_seconds(seconds(c, SW_MOVE_ALL_REDUCE, g->atoms[3], k * n / (x * y * z)),
	               2 * rdata * (double)(k * n / (x * y * z)) / beta[3]); /* 8 */
}

static int check_grids(const sw_cluster *c, int64_t per_node)
{
	int checked = 0;
	for (int64_t x = 1; x <= c->n_devices; x *= 2)
		for (int64_t y = 1; x * y <= c->n_devices; y *= 2)
			for (int64_t z = 1; x * y * z <= c->n_devices; z *= 2) {
				grid g = {.size = {x, y, z, c->n_devices / (x * y * z)}};
				if (!grid_place(c, &g))
					continue;
				check_layer(c, &g, per_node);
				checked++;
			}
	return checked;
}

static void axonn_s_equations_hold_on_every_grid_of_two_levels(void **state)
{
	(void)state;
	const struct {
		const char *nodes, *devices;
		int64_t per_node;
		int grids;
	} cases[] = {{"1", "8", 8, 20},
	             {"2", "4", 4, 20},
	             {"8", "4", 4, 56},
	             {"16", "8", 8, 120},
	             {"4", "1", 1, 10}};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		const level_text levels[] = {{cases[i].nodes, 0, 25e9, 0}, {cases[i].devices, 0, 300e9, 0}};
		sw_cluster c;
		make_cluster(&c, levels, 2);
		assert_int_equal(check_grids(&c, cases[i].per_node), cases[i].grids);
		sw_cluster_clear(&c);
	}
}

/* ---- sharing of links ---------------------------------------------------------------------------------------- */

static void groups_of_one_member_per_node_share_its_link(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 0, 1e6, 0}, {"4", 0, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	uint32_t across = atoms_of_level(&c, 0), all = across | atoms_of_level(&c, 1), pairs = across | 4;
	assert_int_equal(sw_atoms_group_size(&c.atoms, pairs), 4);
	/* one group of all; two groups with two members in each node; four groups with one */
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, all, 1000), 7 * 1000 / 1e6);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, pairs, 1000), 3 * 1000 / (1e6 / 2));
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, across, 1000), 1000 / (1e6 / 4));
	/* each of four devices sends half of its data to the other node */
	assert_seconds(seconds(&c, SW_MOVE_ALL_TO_ALL, across, 1000), 4 * 500 / 1e6);
	assert_seconds(seconds(&c, SW_MOVE_ALL_TO_ALL, all, 1000), 4 * 500 / 1e6 + 3. / 8 * 1000 / 1e9);
	/* each of four devices sends all of it along one atom; half of them do where two atoms change places */
	assert_seconds(seconds(&c, SW_MOVE_PERMUTE, across, 1000), 4 * 1000 / 1e6);
	assert_seconds(seconds(&c, SW_MOVE_PERMUTE, pairs, 1000), 2 * 1000 / 1e6);
	sw_cluster_clear(&c);
}

static void a_single_flow_has_its_own_cap(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 0, 8e6, 1e6}, {"4", 0, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	uint32_t across = atoms_of_level(&c, 0), all = across | atoms_of_level(&c, 1);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, all, 1000), 7 * 1000 / 1e6);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, across, 1000),
	               1000 / 1e6); /* four flows of 1e6, of 8e6 */
	assert_seconds(seconds(&c, SW_MOVE_ALL_TO_ALL, across, 1000), 500 / 1e6);
	assert_seconds(seconds(&c, SW_MOVE_PERMUTE, across, 1000), 1000 / 1e6);
	sw_cluster_clear(&c);
}

static void only_crossed_levels_count(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1, 1e3, 0}, {"2", 1e-3, 1e6, 0}, {"2", 1e-6, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 3);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 4, 1000), 1e-6 + 1000 / 1e9);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 2, 1000), 1e-3 + 1000 / (1e6 / 2));
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 6, 1000), 1e-3 + 1e-6 + 3000 / 1e6);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 5, 1000), 1 + 1e-6 + 3000 / (1e3 / 2));
	assert_seconds(seconds(&c, SW_MOVE_PERMUTE, 6, 1000),
	               1e-3 + 1000 / 1e6); /* half of two ranks' data each */
	sw_cluster_clear(&c);
}

/* ---- monotonicity ---------------------------------------------------------------------------------------------- */

static void check_monotone(const sw_cluster *c)
{
	const uint32_t masks = UINT32_C(1) << c->atoms.n;
	for (size_t k = 0; k < SW_COUNT(communicating); k++)
		for (uint32_t mask = 1; mask < masks; mask++) {
			for (int64_t bytes = 1; bytes < INT64_C(1) << 40; bytes = 2 * bytes + 3)
				assert_true(seconds(c, communicating[k], mask, bytes) <=
				            seconds(c, communicating[k], mask, 2 * bytes));
			for (uint32_t more = mask; more < masks; more = (more + 1) | mask)
				assert_true(seconds(c, communicating[k], mask, 0) <=
				            seconds(c, communicating[k], more, 0) * (1 + 1e-12));
		}
}

static void more_bytes_and_more_members_are_never_cheaper(void **state)
{
	(void)state;
	const level_text levels[] = {{"4", 1e-4, 1e8, 5e7}, {"6", 1e-5, 1e9, 0}};
	const level_text unequal[] = {{"3", 1e-4, 1e8, 5e7}, {"[1, 4, 3]", 1e-5, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	check_monotone(&c);
	sw_cluster_clear(&c);
	make_cluster(&c, unequal, 2);
	check_monotone(&c);
	sw_cluster_clear(&c);
}

/* ---- unequal parts --------------------------------------------------------------------------------------------- */

static void nodes_of_one_and_four_are_one_group_of_five(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-3, 1e6, 0}, {"[1, 4]", 1e-4, 1e8, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	assert_int_equal(c.atoms.n, 1);
	const double latency = 1e-3 + 2 * 1e-4; /* two nodes, four devices */
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 1, 1000), latency + 4000 / 1e6);
	assert_seconds(seconds(&c, SW_MOVE_ALL_REDUCE, 1, 1000), 2 * latency + 1600 / 1e6);
	/* the single device sends four fifths across; so do, all together, the four with a fifth each; within a node 3 / 5 */
	assert_seconds(seconds(&c, SW_MOVE_ALL_TO_ALL, 1, 1000), latency + 800 / 1e6 + 600 / 1e8);
	assert_seconds(seconds(&c, SW_MOVE_PERMUTE, 1, 1000), 1e-3 + 1000 / 1e6);
	sw_cluster_clear(&c);
}

/* Nodes of 2 and 4 devices: six as atoms 3 and 2, so that pairs (0 1) (2 3) (4 5) lie within nodes, and the groups
 * (0 2 4), (1 3 5) have one member in the first node and two in the second. */
static void the_busiest_part_decides(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-3, 1e6, 0}, {"[2, 4]", 1e-4, 1e8, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	assert_int_equal(c.atoms.n, 2);
	assert_int_equal(c.atoms.size[0], 3);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 2, 1000), 1e-4 + 1000 / 1e8);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 1, 1000), 1e-3 + 1e-4 + 2000 / (1e6 / 2));
	/* the first node's two ranks send 2 / 3 each across, the second node's four 1 / 3 each; within the second 1 / 3 */
	assert_seconds(seconds(&c, SW_MOVE_ALL_TO_ALL, 1, 3000), 1e-3 + 1e-4 + 4000 / 1e6 + 1000 / 1e8);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 3, 1000), 1e-3 + 2e-4 + 5000 / 1e6);
	sw_cluster_clear(&c);
}

/* The same cluster, once with the counts as a list that happens to be of equal nodes. */
static void places_and_atoms_agree_where_parts_are_equal(void **state)
{
	(void)state;
	const level_text levels[] = {{"3", 1e-3, 1e6, 7e5}, {"2", 1e-4, 1e7, 0}, {"4", 1e-5, 1e8, 3e7}};
	sw_cluster c;
	make_cluster(&c, levels, 3);
	for (uint32_t mask = 1; mask < UINT32_C(1) << c.atoms.n; mask++)
		for (size_t k = 0; k < SW_COUNT(communicating); k++) {
			double from_atoms = seconds(&c, communicating[k], mask, 123456);
			int64_t count = c.levels[0].count;
			c.levels[0].count = 0; /* claims to be unequal: the places are looked at */
			assert_seconds(seconds(&c, communicating[k], mask, 123456), from_atoms);
			c.levels[0].count = count;
		}
	sw_cluster_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_level_follows_the_closed_forms),
		cmocka_unit_test(local_moves_and_groups_of_one_are_free),
		cmocka_unit_test(a_large_all_reduce_is_a_reduce_scatter_and_an_all_gather),
		cmocka_unit_test(a_small_all_reduce_exchanges_whole_operands),
		cmocka_unit_test(axonn_s_equations_hold_on_every_grid_of_two_levels),
		cmocka_unit_test(groups_of_one_member_per_node_share_its_link),
		cmocka_unit_test(a_single_flow_has_its_own_cap),
		cmocka_unit_test(only_crossed_levels_count),
		cmocka_unit_test(more_bytes_and_more_members_are_never_cheaper),
		cmocka_unit_test(nodes_of_one_and_four_are_one_group_of_five),
		cmocka_unit_test(the_busiest_part_decides),
		cmocka_unit_test(places_and_atoms_agree_where_parts_are_equal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
