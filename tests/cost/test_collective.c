/* Seconds of collectives: closed forms, monotonicity, sharing of links, unequal nodes. */
#include "cost/clusters.h"

#include <math.h>

static const sw_move_kind communicating[] = {
	SW_MOVE_ALL_GATHER, SW_MOVE_ALL_REDUCE, SW_MOVE_REDUCE_SCATTER,
	SW_MOVE_ALL_TO_ALL, SW_MOVE_PERMUTE,
};

static double seconds(const sw_cluster *cluster, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	return sw_cost_collective((void *)cluster, kind, atoms, bytes);
}

static double by(const sw_cluster *cluster, sw_algorithm algorithm, sw_collective_kind kind,
                 uint32_t atoms, int64_t bytes)
{
	return sw_cost_algorithm(cluster, algorithm, kind, atoms, bytes);
}

static double ring(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                   int64_t bytes)
{
	return by(cluster, SW_ALGORITHM_RING, kind, atoms, bytes);
}

static double direct(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                     int64_t bytes)
{
	return by(cluster, SW_ALGORITHM_DIRECT, kind, atoms, bytes);
}

static double levels_of(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                        int64_t bytes)
{
	return by(cluster, SW_ALGORITHM_HIERARCHICAL, kind, atoms, bytes);
}

/* ---- one level -------------------------------------------------------------------------- */

static void one_level_follows_the_closed_forms(void **state)
{
	(void)state;
	const level_text levels[] = {{"8", 1e-3, 1e6, 0}};
	const double n = 800000, a = 1e-3, posted = 1.12e-3, beta = 1e-6, crowded = 1.6e-6,
		     piece = 1.5;
	const struct {
		sw_algorithm algorithm;
		sw_collective_kind kind;
		double seconds;
	} cases[] = {
		{SW_ALGORITHM_DIRECT, SW_COLLECTIVE_ALL_GATHER, posted + 7 * n * crowded * piece},
		{SW_ALGORITHM_DIRECT, SW_COLLECTIVE_REDUCE_SCATTER,
	         posted + 7. / 8 * n * crowded * piece},
		{SW_ALGORITHM_DIRECT, SW_COLLECTIVE_ALL_REDUCE,
	         2 * (posted + 7. / 8 * n * crowded * piece)},
		{SW_ALGORITHM_DIRECT, SW_COLLECTIVE_ALL_TO_ALL,
	         posted + 7. / 8 * n * crowded * piece},
		{SW_ALGORITHM_DIRECT, SW_COLLECTIVE_BROADCAST, posted + 7 * n * beta * piece},
		{SW_ALGORITHM_DIRECT, SW_COLLECTIVE_PERMUTE, a + n * beta},
		{SW_ALGORITHM_RING, SW_COLLECTIVE_ALL_GATHER, 7 * a + 7 * n * beta},
		{SW_ALGORITHM_RING, SW_COLLECTIVE_REDUCE_SCATTER, 7 * a + 7. / 8 * n * beta},
		{SW_ALGORITHM_RING, SW_COLLECTIVE_ALL_REDUCE, 14 * a + 2 * 7. / 8 * n * beta},
		{SW_ALGORITHM_RING, SW_COLLECTIVE_ALL_TO_ALL, 7 * a + 7. / 8 * n * beta},
		{SW_ALGORITHM_HALVING, SW_COLLECTIVE_ALL_GATHER,
	         3 * a + (1 + 2 + 4) * n * beta * piece},
		{SW_ALGORITHM_HALVING, SW_COLLECTIVE_REDUCE_SCATTER,
	         3 * a + 7. / 8 * n * beta * piece},
		{SW_ALGORITHM_HALVING, SW_COLLECTIVE_ALL_REDUCE,
	         6 * a + 2 * 7. / 8 * n * beta * piece},
		{SW_ALGORITHM_HALVING, SW_COLLECTIVE_BROADCAST, 3 * (a + n * beta * piece)},
		{SW_ALGORITHM_HIERARCHICAL, SW_COLLECTIVE_ALL_REDUCE,
	         2 * (posted + 7. / 8 * n * crowded)},
		{SW_ALGORITHM_HIERARCHICAL, SW_COLLECTIVE_BROADCAST, 3 * (a + n * beta)},
		{SW_ALGORITHM_CHAIN, SW_COLLECTIVE_BROADCAST,
	         7 * a + (n + 6 * SW_PIECE_BYTES) * beta},
	};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		print_message("%s %s\n", sw_algorithm_name(cases[i].algorithm),
		              sw_collective_name(cases[i].kind));
		assert_true(sw_algorithm_serves(cases[i].algorithm, cases[i].kind));
		assert_seconds(
			by(&c, cases[i].algorithm, cases[i].kind, atoms_of_level(&c, 0), 800000),
			cases[i].seconds);
	}
	sw_cluster_clear(&c);
}

/* Five ranks: distances 1, 2 and 4, with 1, 2 and 1 blocks. */
static void halving_takes_any_number_of_ranks(void **state)
{
	(void)state;
	const level_text levels[] = {{"5", 1e-3, 1e6, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	assert_seconds(by(&c, SW_ALGORITHM_HALVING, SW_COLLECTIVE_ALL_GATHER, 1, 1000),
	               3e-3 + 1.5 * 4000 / 1e6);
	sw_cluster_clear(&c);
}

static void the_fastest_algorithm_is_chosen(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-4, 1e8, 0}, {"4", 1e-5, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	for (sw_collective_kind kind = 0; kind < SW_COLLECTIVE_COUNT; kind++)
		for (int64_t bytes = 0; bytes < INT64_C(1) << 32; bytes = 3 * bytes + 8) {
			sw_collective_choice choice = sw_cost_choose(&c, kind, 7, bytes);
			assert_true(sw_algorithm_serves(choice.algorithm, kind));
			assert_false(choice.measured);
			assert_seconds(by(&c, choice.algorithm, kind, 7, bytes), choice.seconds);
			for (sw_algorithm a = 0; a < SW_ALGORITHM_COUNT; a++)
				if (sw_algorithm_serves(a, kind))
					assert_true(choice.seconds <= by(&c, a, kind, 7, bytes));
		}
	assert_int_equal(sw_cost_choose(&c, SW_COLLECTIVE_PERMUTE, 7, 8).algorithm,
	                 SW_ALGORITHM_DIRECT);
	assert_int_equal(sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 7, 1 << 26).algorithm,
	                 SW_ALGORITHM_HIERARCHICAL);
	assert_int_equal(sw_cost_choose(&c, SW_COLLECTIVE_BROADCAST, 7, 1 << 26).algorithm,
	                 SW_ALGORITHM_CHAIN);
	sw_cluster_clear(&c);
}

/* An algorithm that is said takes what its formula says, and never less than the quickest; one that the
 * devices' library lacks is not taken. */
static void an_algorithm_that_is_said_is_no_quicker(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-4, 1e8, 0}, {"4", 1e-5, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	for (sw_algorithm a = 0; a < SW_ALGORITHM_COUNT; a++)
		for (int64_t bytes = 8; bytes < INT64_C(1) << 32; bytes = 3 * bytes + 8) {
			sw_collective_choice said = sw_cost_choose_said(&c, 1 + (uint32_t)a,
			                                                SW_COLLECTIVE_ALL_REDUCE, 7, bytes),
					     quickest = sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 7,
			                                               bytes);
			bool serves = sw_algorithm_serves(a, SW_COLLECTIVE_ALL_REDUCE);
			assert_int_equal(said.algorithm, serves ? a : quickest.algorithm);
			assert_seconds(said.seconds, by(&c, said.algorithm, SW_COLLECTIVE_ALL_REDUCE, 7, bytes));
			assert_true(said.seconds >= quickest.seconds);
		}
	c.device.collectives = SW_LIBRARY_NCCL;
	assert_int_equal(sw_cost_choose_said(&c, 1 + SW_ALGORITHM_HALVING, SW_COLLECTIVE_ALL_REDUCE, 7, 8)
	                         .algorithm,
	                 sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 7, 8).algorithm);
	sw_cluster_clear(&c);
}

/* NCCL's all-reduces: up and down a binary tree of 16 nodes and the chain of 4 devices in each, with
 * 2 (k - 1) / k of the operand over each link, and no more streams into a node than two. */
static void trees_of_nccl_are_binary(void **state)
{
	(void)state;
	const level_text levels[] = {{"16", 1e-4, 1e9, 0}, {"4", 1e-5, 1e10, 0}};
	static const sw_library libraries[] = {SW_LIBRARY_NCCL, SW_LIBRARY_TORCH};
	const double bytes = 1 << 26;
	sw_cluster c;
	make_cluster(&c, levels, 2);
	uint32_t all = (UINT32_C(1) << c.atoms.n) - 1;
	double own = levels_of(&c, SW_COLLECTIVE_ALL_REDUCE, all, 1 << 26);
	for (size_t i = 0; i < SW_COUNT(libraries); i++) {
		c.device.collectives = libraries[i];
		assert_seconds(levels_of(&c, SW_COLLECTIVE_ALL_REDUCE, all, 1 << 26),
		               2 * (4 * 1e-4 + 3 * 1e-5) + bytes * 2 * 15 / 16 / 1e9);
		assert_true(levels_of(&c, SW_COLLECTIVE_ALL_REDUCE, all, 1 << 26) < own / 2);
		assert_int_equal(sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, all, 1 << 26).algorithm,
		                 SW_ALGORITHM_HIERARCHICAL);
	}
	sw_cluster_clear(&c);
}

/* Whatever a collective sends, and to how many; but one that has no other member is none. */
static void a_collective_has_the_overhead_of_its_device(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-4, 1e8, 0}, {"4", 1e-5, 1e9, 0}};
	const uint32_t groups[] = {1, 2, 7};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	for (sw_collective_kind kind = 0; kind < SW_COLLECTIVE_COUNT; kind++)
		for (size_t i = 0; i < SW_COUNT(groups); i++) {
			c.device.collective_overhead_s = 0;
			double without_s = sw_cost_choose(&c, kind, groups[i], 80000).seconds;
			c.device.collective_overhead_s = 0.25;
			assert_seconds(sw_cost_choose(&c, kind, groups[i], 80000).seconds, without_s + 0.25);
		}
	assert_seconds(sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 0, 80000).seconds, 0);
	sw_cluster_clear(&c);
}

/* ---- measured points -------------------------------------------------------------------- */

static void measured_points_are_interpolated_in_logarithms(void **state)
{
	(void)state;
	const level_text levels[] = {{"4", 1e-4, 1e8, 0}};
	const sw_measurement points[] = {
		{SW_COLLECTIVE_ALL_REDUCE, 3, SW_ALGORITHM_HALVING, 1000, 1e-3, 0},
		{SW_COLLECTIVE_ALL_REDUCE, 3, SW_ALGORITHM_RING, 100000, 1e-2, 0},
		{SW_COLLECTIVE_ALL_GATHER, 1, SW_ALGORITHM_RING, 1000, 7, 0},
	};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	c.calibration = (sw_calibration){.n_points = 3, .points = points};
	sw_collective_choice choice = sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 10000);
	assert_true(choice.measured);
	assert_seconds(choice.seconds, 1e-3 * sqrt(10));
	choice = sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 9000);
	assert_int_equal(choice.algorithm, SW_ALGORITHM_HALVING);
	choice = sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 100000);
	assert_int_equal(choice.algorithm, SW_ALGORITHM_RING);
	assert_seconds(choice.seconds, 1e-2);
	/* beyond the last point, and before the first, in proportion to the formula */
	double beyond = ring(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 1 << 24) /
	                ring(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 100000);
	assert_seconds(sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 1 << 24).seconds,
	               1e-2 * beyond);
	double before = by(&c, SW_ALGORITHM_HALVING, SW_COLLECTIVE_ALL_REDUCE, 3, 0) /
	                by(&c, SW_ALGORITHM_HALVING, SW_COLLECTIVE_ALL_REDUCE, 3, 1000);
	assert_seconds(sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 0).seconds, 1e-3 * before);
	/* kinds and atoms that were not measured follow the formula */
	assert_false(sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 1, 1000).measured);
	assert_false(sw_cost_choose(&c, SW_COLLECTIVE_ALL_GATHER, 3, 1000).measured);
	assert_seconds(seconds(&c, SW_MOVE_ALL_GATHER, 1, 1000), 7);
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
	for (uint32_t mask = 1; mask < UINT32_C(1) << c.atoms.n; mask++)
		for (sw_algorithm a = 0; a < SW_ALGORITHM_CHAIN; a++) {
			int64_t members = sw_atoms_group_size(&c.atoms, mask), bytes = 12 * 1000000;
			if (members == 2) /* all of them exchange whole operands */
				continue;
			assert_seconds(
				by(&c, a, SW_COLLECTIVE_ALL_REDUCE, mask, bytes),
				by(&c, a, SW_COLLECTIVE_REDUCE_SCATTER, mask, bytes) +
					by(&c, a, SW_COLLECTIVE_ALL_GATHER, mask, bytes / members));
		}
	sw_cluster_clear(&c);
}

static void a_small_all_reduce_exchanges_whole_operands(void **state)
{
	(void)state;
	const level_text levels[] = {{"3", 1e-3, 1e6, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 1);
	assert_true(sw_cost_goes_whole(&c, SW_ALGORITHM_DIRECT, 1, 4));
	assert_false(sw_cost_goes_whole(&c, SW_ALGORITHM_DIRECT, 1, 1 << 20));
	assert_seconds(direct(&c, SW_COLLECTIVE_ALL_REDUCE, 1, 4),
	               1.02e-3 + 1.5 * 2 * 4 * 1.1 / 1e6);
	sw_cluster_clear(&c);
}

/* Two nodes of four ranks: a ring sends 7 / 4 of the operand over a node's link, the hierarchical
 * algorithm sends it once. */
static void hierarchical_algorithms_save_the_links_between_nodes(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 0, 1e6, 0}, {"4", 0, 1e9, 0}};
	const int64_t bytes = 64 << 20;
	const double n = 64 << 20;
	sw_cluster c;
	make_cluster(&c, levels, 2);
	double inside_s = 2 * 3. / 4 * n * 1.2 / 1e9 / 16;
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_REDUCE, 7, bytes), 2 * 7. / 8 * n / 1e6);
	assert_seconds(levels_of(&c, SW_COLLECTIVE_ALL_REDUCE, 7, bytes), n / 1e6 + inside_s);
	assert_seconds(levels_of(&c, SW_COLLECTIVE_ALL_GATHER, 7, bytes / 8),
	               n / 2 / 1e6 + inside_s / 2);
	/* each rank sends its block for the other node, once */
	assert_seconds(levels_of(&c, SW_COLLECTIVE_ALL_TO_ALL, 7, bytes),
	               1.5 * (4 * 4 * n / 8 / 1e6 + 3 * n / 4 * 1.2 / 1e9));
	assert_seconds(levels_of(&c, SW_COLLECTIVE_BROADCAST, 7, bytes), n / 1e6 + 2 * (n / 1e9));
	sw_cluster_clear(&c);
}

/* ---- sharing of links ------------------------------------------------------------------- */

static void groups_of_one_member_per_node_share_its_link(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 0, 1e6, 0}, {"4", 0, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	uint32_t across = atoms_of_level(&c, 0), all = across | atoms_of_level(&c, 1),
		 pairs = across | 4;
	assert_int_equal(sw_atoms_group_size(&c.atoms, pairs), 4);
	/* one group of all; two groups with two members in each node; four groups with one */
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, all, 1000), 7 * 1000 / 1e6);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, pairs, 1000), 3 * 1000 / (1e6 / 2));
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, across, 1000), 1000 / (1e6 / 4));
	/* each of four devices sends half of its data to the other node */
	assert_seconds(direct(&c, SW_COLLECTIVE_ALL_TO_ALL, across, 1000), 1.5 * (4 * 500 / 1e6));
	assert_seconds(direct(&c, SW_COLLECTIVE_ALL_TO_ALL, all, 1000), 1.5 * (4 * 500 / 1e6));
	/* each of four devices sends all of it along one atom; half of them do where two atoms
	 * change places */
	assert_seconds(direct(&c, SW_COLLECTIVE_PERMUTE, across, 1000), 4 * 1000 / 1e6);
	assert_seconds(direct(&c, SW_COLLECTIVE_PERMUTE, pairs, 1000), 2 * 1000 / 1e6);
	sw_cluster_clear(&c);
}

static void a_single_flow_has_its_own_cap(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 0, 8e6, 1e6}, {"4", 0, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	uint32_t across = atoms_of_level(&c, 0), all = across | atoms_of_level(&c, 1);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, all, 1000), 7 * 1000 / 1e6);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, across, 1000),
	               1000 / 1e6); /* four flows of 1e6 share a link of 8e6 */
	assert_seconds(direct(&c, SW_COLLECTIVE_ALL_TO_ALL, across, 1000), 1.5 * (500 / 1e6));
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_TO_ALL, all, 1000), 500 / 1e6);
	assert_seconds(direct(&c, SW_COLLECTIVE_PERMUTE, across, 1000), 1000 / 1e6);
	sw_cluster_clear(&c);
}

static void groups_that_share_a_link_contend(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 0, 1e6, 0}, {"4", 0, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	c.levels[0].contention = 0.1;
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 1, 1000), 4 * (1 + 0.1 * 3) * 1000 / 1e6);
	assert_seconds(direct(&c, SW_COLLECTIVE_PERMUTE, 1, 1000), 4 * (1 + 0.1 * 3) * 1000 / 1e6);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 7, 1000), 7000 / 1e6);
	sw_cluster_clear(&c);
}

static void only_crossed_levels_count(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1, 1e3, 0}, {"2", 1e-3, 1e6, 0}, {"2", 1e-6, 1e9, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 3);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 4, 1000), 1e-6 + 1000 / 1e9);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 2, 1000), 1e-3 + 1000 / (1e6 / 2));
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 6, 1000), 3 * 1e-3 + 3000 / 1e6);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 5, 1000), 3 * 1 + 3000 / (1e3 / 2));
	assert_seconds(direct(&c, SW_COLLECTIVE_PERMUTE, 6, 1000),
	               1e-3 + 1000 / 1e6); /* half of the data of each of two ranks */
	sw_cluster_clear(&c);
}

/* ---- monotonicity ----------------------------------------------------------------------- */

static void check_monotone(const sw_cluster *c)
{
	const uint32_t masks = UINT32_C(1) << c->atoms.n;
	for (size_t k = 0; k < SW_COUNT(communicating); k++)
		for (uint32_t mask = 1; mask < masks; mask++) {
			for (int64_t bytes = 1; bytes < INT64_C(1) << 40; bytes = 2 * bytes + 3)
				assert_true(
					seconds(c, communicating[k], mask, bytes) <=
					seconds(c, communicating[k], mask, bytes + bytes / 7 + 1));
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

/* ---- unequal parts ---------------------------------------------------------------------- */

static void nodes_of_one_and_four_are_one_group_of_five(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-3, 1e6, 0}, {"[1, 4]", 1e-4, 1e8, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	assert_int_equal(c.atoms.n, 1);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 1, 1000), 4e-3 + 4000 / 1e6);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_REDUCE, 1, 1000), 8e-3 + 1600 / 1e6);
	/* the single device sends four fifths across; the four together do so too, with a fifth
	 * each */
	assert_seconds(direct(&c, SW_COLLECTIVE_ALL_TO_ALL, 1, 1000), 1.06e-3 + 1.5 * 800 / 1e6);
	assert_seconds(direct(&c, SW_COLLECTIVE_PERMUTE, 1, 1000), 1e-3 + 1000 / 1e6);
	/* hierarchical: four fifths enter the single device's node; inside the other all goes
	 * round, 3 / 4 of it, not overlapped */
	assert_seconds(levels_of(&c, SW_COLLECTIVE_ALL_GATHER, 1, 1000),
	               1e-3 + 1.04e-4 + 4000 / 1e6 + 3750 * 1.2 / 1e8);
	sw_cluster_clear(&c);
}

/* Nodes of 2 and 4 devices. The six devices have atoms 3 and 2, so that pairs (0 1) (2 3) (4 5) are
 * within nodes, and the groups (0 2 4), (1 3 5) have one member in the first node and two in the
 * second. */
static void the_busiest_part_decides(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-3, 1e6, 0}, {"[2, 4]", 1e-4, 1e8, 0}};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	assert_int_equal(c.atoms.n, 2);
	assert_int_equal(c.atoms.size[0], 3);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 2, 1000), 1e-4 + 1000 / 1e8);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 1, 1000), 2e-3 + 2000 / (1e6 / 2));
	/* the first node's two ranks send 2 / 3 each across, the second node's four 1 / 3 each */
	assert_seconds(direct(&c, SW_COLLECTIVE_ALL_TO_ALL, 1, 3000), 1.02e-3 + 1.5 * 4000 / 1e6);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_GATHER, 3, 1000), 5e-3 + 5000 / 1e6);
	sw_cluster_clear(&c);
}

/* Three nodes of one device with links of 1, 2 and 3: the slowest combines least. */
static void slower_links_combine_less(void **state)
{
	(void)state;
	const level_text levels[] = {{"3", 0, 1e6, 0}};
	static const double links[] = {1e6, 2e6, 3e6};
	double shares[3];
	sw_cluster c;
	make_cluster(&c, levels, 1);
	c.levels[0].part_bandwidth = links;
	/* the first has no share; (1 + x) / 2 = (1 + 1 - x) / 3 */
	sw_cost_link_shares(links, 3, shares);
	assert_true(shares[0] == 0);
	assert_seconds(shares[1], 0.2);
	assert_seconds(shares[2], 0.8);
	assert_seconds(levels_of(&c, SW_COLLECTIVE_ALL_REDUCE, 1, 1 << 20), (1 << 20) * 1.1 / 1e6);
	assert_seconds(ring(&c, SW_COLLECTIVE_ALL_REDUCE, 1, 3 << 20), 4 * (1 << 20) / 1e6);
	const double equal[] = {5, 5, 5, 5};
	double same[4];
	sw_cost_link_shares(equal, 4, same);
	for (int i = 0; i < 4; i++)
		assert_seconds(same[i], 0.25);
	sw_cluster_clear(&c);
}

/* The same cluster, once with its counts given as a list in which all nodes are equal. */
static void places_and_atoms_agree_where_parts_are_equal(void **state)
{
	(void)state;
	const level_text levels[] = {
		{"3", 1e-3, 1e6, 7e5}, {"2", 1e-4, 1e7, 0}, {"4", 1e-5, 1e8, 3e7}};
	sw_cluster c;
	make_cluster(&c, levels, 3);
	for (uint32_t mask = 1; mask < UINT32_C(1) << c.atoms.n; mask++)
		for (size_t k = 0; k < SW_COUNT(communicating); k++) {
			double from_atoms = seconds(&c, communicating[k], mask, 123456);
			int64_t count = c.levels[0].count;
			/* marks the level as unequal, so that the places are used */
			c.levels[0].count = 0;
			assert_seconds(seconds(&c, communicating[k], mask, 123456), from_atoms);
			c.levels[0].count = count;
		}
	sw_cluster_clear(&c);
}

/* Check that combined collectives take no less than the sum of their shares, and that the share of
 * a kind that cannot be combined is its own seconds. */
static void assert_shares(const sw_cluster *c)
{
	for (sw_collective_kind kind = 0; kind < SW_COLLECTIVE_COUNT; kind++)
		for (int64_t bytes = 8; bytes < INT64_C(1) << 32; bytes *= 6) {
			int64_t most = sw_collective_combines(kind) ? 4096 : 1;
			for (int64_t many = 1; many <= most; many *= 2)
				assert_true((double)many * sw_cost_share(c, kind, 3, bytes) <=
				            sw_cost_choose(c, kind, 3, many * bytes).seconds *
				                    (1 + 1e-9));
			if (most == 1)
				assert_seconds(sw_cost_share(c, kind, 3, bytes),
				               sw_cost_choose(c, kind, 3, bytes).seconds);
		}
}

static void combined_collectives_take_no_less_than_their_shares(void **state)
{
	(void)state;
	const level_text levels[] = {{"2", 1e-4, 1e8, 0}, {"2", 1e-5, 1e9, 0}};
	const sw_measurement points[] = {
		/* 10 MB move at a rate that no formula reaches */
		{SW_COLLECTIVE_ALL_REDUCE, 3, SW_ALGORITHM_HALVING, 1000, 1e-3, 0},
		{SW_COLLECTIVE_ALL_REDUCE, 3, SW_ALGORITHM_RING, 10000000, 2e-3, 0},
		{SW_COLLECTIVE_ALL_REDUCE, 3, SW_ALGORITHM_RING, 100000000, 5e-1, 0},
	};
	sw_cluster c;
	make_cluster(&c, levels, 2);
	assert_shares(&c);
	assert_true(64 * sw_cost_share(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 8) <
	            sw_cost_choose(&c, SW_COLLECTIVE_ALL_REDUCE, 3, 8).seconds);
	c.calibration = (sw_calibration){.n_points = 3, .points = points};
	assert_shares(&c);
	c.calibration = (sw_calibration){0};
	sw_cluster_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(combined_collectives_take_no_less_than_their_shares),
		cmocka_unit_test(one_level_follows_the_closed_forms),
		cmocka_unit_test(halving_takes_any_number_of_ranks),
		cmocka_unit_test(the_fastest_algorithm_is_chosen),
		cmocka_unit_test(an_algorithm_that_is_said_is_no_quicker),
		cmocka_unit_test(trees_of_nccl_are_binary),
		cmocka_unit_test(a_collective_has_the_overhead_of_its_device),
		cmocka_unit_test(measured_points_are_interpolated_in_logarithms),
		cmocka_unit_test(local_moves_and_groups_of_one_are_free),
		cmocka_unit_test(a_large_all_reduce_is_a_reduce_scatter_and_an_all_gather),
		cmocka_unit_test(a_small_all_reduce_exchanges_whole_operands),
		cmocka_unit_test(hierarchical_algorithms_save_the_links_between_nodes),
		cmocka_unit_test(groups_of_one_member_per_node_share_its_link),
		cmocka_unit_test(a_single_flow_has_its_own_cap),
		cmocka_unit_test(groups_that_share_a_link_contend),
		cmocka_unit_test(only_crossed_levels_count),
		cmocka_unit_test(more_bytes_and_more_members_are_never_cheaper),
		cmocka_unit_test(nodes_of_one_and_four_are_one_group_of_five),
		cmocka_unit_test(the_busiest_part_decides),
		cmocka_unit_test(slower_links_combine_less),
		cmocka_unit_test(places_and_atoms_agree_where_parts_are_equal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
