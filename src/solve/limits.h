/*
 * Every constant of `solve` that changes which answer or which bound a problem gets, one struct per
 * stage. Private to solve.
 *
 * `work` is counted in table entries visited, as sw_solve_options.work_limit; a `sweep` is one pass
 * of message passing over all nodes forwards and one backwards; the `gap` is the incumbent's cost
 * less the bound. A share is a number from 0 to 1.
 */
#ifndef SW_SOLVE_LIMITS_H
#define SW_SOLVE_LIMITS_H

#include "base/base.h"

/* The budget of sw_solve when the caller sets neither a work limit nor a time limit. */
typedef struct solve_work_limits {
	/* Work, plus so many times the entries of all edges' tables: a few seconds for the largest
	 * problems of the planner. */
	int64_t base;
	double sweeps;
} solve_work_limits;

/* Exact reductions (reduce/). */
typedef struct solve_reduce_limits {
	/* Alternations of the reductions of points and those of nodes. A chain of strategies that
	 * prove not to fit one after the other takes one alternation each; the rest of a longer
	 * chain stays in the graph. */
	int max_rounds;
	/* A node of degree 2 is eliminated if the table that replaces its two edges has at most
	 * elimination_growth times their entries plus elimination_entries. */
	int64_t elimination_growth;  /* factor */
	int64_t elimination_entries; /* table entries */
	/* A node is merged into the neighbour that determines it if the tables of its other edges
	 * gain at most this factor times the entries of the edge that vanishes. */
	int64_t merge_growth;
} solve_reduce_limits;

/* Prices of the points and the schedule of sweeps (bound/point_prices.c). The `level` is how far
 * above the best bound the price steps aim. */
typedef struct solve_price_limits {
	/* Share that the mean excess of a point, and the mean frequency of a strategy, keep of
	 * their former values in each sweep. */
	double mean_decay;
	/* Sweeps without a price step at the start of message passing, since messages mean little
	 * before; and half of the sweeps before the first extrapolation. */
	int first_sweeps;
	/* Share of the gap that counts as progress of the bound. */
	double progress;
	/* Factor: the gap that `progress` refers to is at most so many levels. */
	double progress_levels;
	/* Sweeps without progress after which the level is lowered. */
	int patience;
	double first_level; /* the level at the start, as a share of the bound's magnitude */
	double level_raise; /* factor of the level after progress */
	double level_cut;   /* factor of the level without progress */
	/* Share of the gap, or of the bound if that is less: at a lower level the bound counts as
	 * settled. */
	double last_level;
	double overshoot;  /* levels: an estimate so far below the best shortens the step */
	double step_cut;   /* factor of the step after an overshoot */
	double step_raise; /* factor of the step after progress */
	/* Extrapolation of messages and prices, relative to their change since the last one:
	 * factors at the start, at least and at most; factors on it after success and failure. */
	double first_factor, min_factor, max_factor;
	double factor_raise, factor_cut;
	/* Sweeps between extrapolations, at least and at most. */
	int min_interval, max_interval;
} solve_price_limits;

/* Knapsacks: the capacity at single points as factors of the bound
 * (bound/capacity_knapsack.c). */
typedef struct solve_knapsack_limits {
	int32_t max_knapsacks; /* knapsacks of one bound */
	int32_t max_members;   /* nodes of one knapsack: those of largest usage */
	/* Usage units into which a capacity is divided: unit_budget divided by the members'
	 * strategies, but within min_units and max_units. With few units a combination that just
	 * does not fit seems to fit. */
	int64_t unit_budget, min_units, max_units;
	int units_tried;   /* unit sizes compared, of which the one that loses least is taken */
	double min_usage;  /* share of the capacity: nodes that use less are no members */
	double min_price;  /* share of the price of all points' capacity: cheaper points get none */
	double max_common; /* share of common members above which a second knapsack is left out */
} solve_knapsack_limits;

/* Rounds of bound, searches and fixing on one graph (steps/solve_rounds.c). */
typedef struct solve_round_limits {
	double first_sweeps;  /* work of the first round, in sweeps */
	double second_sweeps; /* work of the second */
	double growth;        /* factor from each round to the next */
	int64_t min_work;     /* work of a round, at least: below it a round's overhead dominates */
	int64_t min_rounds;   /* a round gets at most the work limit divided by this */
	int patience;         /* rounds in a row without a gain after which rounds end */
	double gain_fixed;    /* share of strategies and pairs ruled out that counts as a gain */
	double gain_gap;      /* share of the gap closed that counts as a gain */
	/* Share of the gap: knapsacks take part once the level of the prices is lower. Only then do
	 * prices tell which points matter; earlier, knapsacks slow the prices down. */
	double knapsack_level;
	/* Table entries: pairs are ruled out in graphs of no more, since edges share no tables
	 * afterwards. */
	int64_t max_pair_entries;
	/* Work of eliminating the whole graph: at most max_elimination, and the work limit divided
	 * by elimination_share, since nothing interrupts it. */
	int64_t max_elimination, elimination_share;
	/* Table entries: rounds on graphs of no more may end before the bound is settled, since
	 * branching on them is cheap. */
	int64_t small_entries;
} solve_round_limits;

/* Diving: fixing decided nodes bit by bit (steps/dive.c). */
typedef struct solve_dive_limits {
	int sweeps;        /* before each fixing */
	double max_fixed;  /* share of the nodes fixed at once, the most decided first */
	double decided;    /* frequency from which a node is fixed beyond that share */
	int max_stages;    /* fixings */
	double level;      /* factor of the level that the graph remembers */
	int32_t few_nodes; /* nodes: a graph of no more is searched */
	/* Work of that search: per table entry and strategy, and at least. */
	int64_t search_work, min_search;
} solve_dive_limits;

/* Branch and bound (steps/branch_and_bound.c, choose_branching.c). */
typedef struct solve_branch_limits {
	int batch; /* subproblems worked on side by side, whatever the number of threads */
	/* Table entries of all open subproblems' graphs from which the deepest come first. */
	int64_t max_entries;
	int sweeps;       /* of a subproblem before each fixing */
	int max_fixings;  /* fixings of a subproblem */
	double min_fixed; /* share of strategies and pairs ruled out that calls for one more */
	double level;     /* of the prices, as a share of the gap: the parent's may be too low */
	/* Work of a subproblem's search: per table entry and strategy, and at least. */
	int64_t search_work, min_search;
	int candidates;      /* nodes probed for branching */
	int probe_sweeps;    /* sweeps that probe each half of a candidate */
	int decision_sweeps; /* sweeps that count how often each strategy is decoded */
	double in_use;       /* share of decoded assignments from which a strategy is in use */
	double min_score;    /* per neighbour, of a node that is decided: below that of any other */
	double min_gain;     /* cost: least gain of a half, where candidates are compared */
	double usage_tolerance; /* share: usages of strategies that differ by less are equal */
	int64_t exact_work;     /* work of exact elimination, per table entry */
} solve_branch_limits;

/* Exact elimination of a whole graph (steps/bucket_elimination.c). */
typedef struct solve_elimination_limits {
	double max_table;   /* entries of one table */
	double max_choices; /* stored choices of all nodes, two bytes each */
} solve_elimination_limits;

/* Local search: points, forests and blocks (search/watched_points.c, tree_moves.c,
 * block_*.c). */
typedef struct solve_move_limits {
	int32_t watch_ranges;    /* ranges of points whose worst one each verification adds */
	int32_t forest_frontier; /* latest nodes of the frontier from which a forest grows */
	/* Neighbours: a region does not spread from nodes with more, which touch everything. */
	int32_t max_degree;
	int max_raises; /* doublings of the extra prices that bring a block within capacity */
	double max_block_entries; /* table entries of one block */
	double max_table_share;   /* one table has at most the entries left divided by this */
	/* Limits of a block, drawn at random: 2 << 0 .. choice_bits - 1 strategies per node; gap >>
	 * 0 .. gap_bits - 1 as the largest reduced cost; min_table << 0 .. table_bits - 1 entries
	 * of a table. */
	int choice_bits, gap_bits, table_bits;
	double min_table;
	double user_share; /* share of the largest usage, at most, that makes a node a large user */
} solve_move_limits;

/* Repair of an assignment that exceeds the capacity (search/repair_assignment.c). */
typedef struct solve_repair_limits {
	double max_excess; /* share of the target: a valid assignment further above is rebuilt */
	int min_rounds;    /* rounds of forests and blocks over everything, at least */
	double min_gain;   /* share of the priced cost: a smaller gain ends these rounds */
	int max_points;    /* points brought within the capacity one after the other */
	int attempts;      /* regions tried at each of them */
	int max_price_rounds, min_price_rounds; /* rounds with growing prices */
	double price_bits; /* bits: prices grow by two to this power over all those rounds */
	int final_rounds;  /* forests after the greedy repair, while pairs are forbidden */
	double gap_share;  /* typical cost difference, as a share of the assignment's cost */
	/* Nodes of a region at the worst point: region_min_nodes << 0 .. region_bits - 1. */
	int64_t region_min_nodes;
	int region_bits;
	double region_gaps;  /* typical differences: largest reduced cost offered in that region */
	double settle_share; /* first extra price, as a share of the typical difference */
	double unit_share;   /* first price of a unit, as a share of all cost per unit of usage */
} solve_repair_limits;

/* Improvement of a valid assignment (search/improve_assignment.c). */
typedef struct solve_improve_limits {
	int64_t cycle_work; /* work of one cycle per table entry and strategy of the core */
	/* Entries of a table when two assignments are merged, where nodes have two strategies. */
	double merge_table;
	/* Factors of the prices in the first attempt at a region, and of later attempts at a
	 * forest. 0 ignores the capacity. */
	double first_scales[5], later_scales[3];
	/* Nodes of a region: 1 << forest_min_bits .. + forest_bits - 1; likewise for blocks. */
	int forest_min_bits, forest_bits, block_min_bits, block_bits;
	int perturb_bits;    /* nodes of a perturbed region: all >> 0 .. perturb_bits - 1 */
	double settle_share; /* first extra price of a block, as a share of what it gained */
	double gap_share;    /* the gap where there is no bound, as a share of the cost */
	double merge_price;  /* first extra price of a merged assignment, as a share of the gap */
} solve_improve_limits;

/* Rhino's merging of segments (methods/segment_merging.c, method_segments.c). */
typedef struct solve_segment_limits {
	/* Entries of a table: all_entries divided by the nodes, but within min_table and
	 * max_table. */
	int64_t all_entries, min_table, max_table;
	size_t max_tables;   /* tables: nodes that touch more are eliminated last */
	size_t open_buckets; /* latest buckets that a table is tried in */
	/* Work of the search that repairs and improves: so many times that of the pass, and at
	 * least min_search. */
	int64_t search_share, min_search;
} solve_segment_limits;

/* The heuristics of the papers (methods/). */
typedef struct solve_method_limits {
	/* Share of the least cost so far that 1 / beta of the Metropolis chain is, divided by the
	 * number of nodes. */
	double metropolis_heat;
	/* Proposals per node without a better assignment after which the chain starts again:
	 * forbidden pairs may have cut it off from better ones. */
	int64_t metropolis_patience;
	/* Work of one table entry at a random place, which takes as long as so many entries in a
	 * row. */
	int64_t link_work;
	int64_t check_work; /* work between two looks at the clock and at the gap */
} solve_method_limits;

typedef struct solve_limits {
	solve_work_limits work;
	solve_reduce_limits reduce;
	solve_price_limits price;
	solve_knapsack_limits knapsack;
	solve_round_limits round;
	solve_dive_limits dive;
	solve_branch_limits branch;
	solve_elimination_limits elimination;
	solve_move_limits move;
	solve_repair_limits repair;
	solve_improve_limits improve;
	solve_segment_limits segment;
	solve_method_limits method;
} solve_limits;

static const solve_limits default_limits = {
	.work = {.base = 2000000000, .sweeps = 30},
	.reduce = {.max_rounds = 400,
                   .elimination_growth = 16,
                   .elimination_entries = 65536,
                   .merge_growth = 4},
	.price = {.mean_decay = 0.9,
                  .first_sweeps = 20,
                  .progress = 1e-4,
                  .progress_levels = 10,
                  .patience = 10,
                  .first_level = 0.1,
                  .level_raise = 1.02,
                  .level_cut = 0.7,
                  .last_level = 1e-5,
                  .overshoot = 1,
                  .step_cut = 0.5,
                  .step_raise = 1.1,
                  .first_factor = 4,
                  .min_factor = 0.5,
                  .max_factor = 100,
                  .factor_raise = 1.5,
                  .factor_cut = 0.5,
                  .min_interval = 2,
                  .max_interval = 64},
	.knapsack = {.max_knapsacks = 12,
                     .max_members = 32,
                     .unit_budget = 32768,
                     .min_units = 128,
                     .max_units = 1024,
                     .units_tried = 64,
                     .min_usage = 1.0 / 64,
                     .min_price = 1e-3,
                     .max_common = 0.75},
	.round = {.first_sweeps = 40,
                  .second_sweeps = 80,
                  .growth = 1.4,
                  .min_work = 10000000,
                  .min_rounds = 12,
                  .patience = 2,
                  .gain_fixed = 0.02,
                  .gain_gap = 0.1,
                  .knapsack_level = 0.05,
                  .max_pair_entries = 4000000,
                  .max_elimination = 500000000,
                  .elimination_share = 16,
                  .small_entries = 200000},
	.dive = {.sweeps = 24,
                 .max_fixed = 0.15,
                 .decided = 0.995,
                 .max_stages = 24,
                 .level = 4,
                 .few_nodes = 40,
                 .search_work = 60,
                 .min_search = 200000},
	.branch = {.batch = 8,
                   .max_entries = 1 << 25,
                   .sweeps = 60,
                   .max_fixings = 4,
                   .min_fixed = 0.03,
                   .level = 0.3,
                   .search_work = 6,
                   .min_search = 20000,
                   .candidates = 6,
                   .probe_sweeps = 10,
                   .decision_sweeps = 20,
                   .in_use = 0.01,
                   .min_score = 1e-9,
                   .min_gain = 1e-9,
                   .usage_tolerance = 1e-9,
                   .exact_work = 2000},
	.elimination = {.max_table = 1 << 22, .max_choices = 1 << 26},
	.move = {.watch_ranges = 64,
                 .forest_frontier = 8,
                 .max_degree = 32,
                 .max_raises = 12,
                 .max_block_entries = 1 << 22,
                 .max_table_share = 16,
                 .choice_bits = 8,
                 .gap_bits = 16,
                 .table_bits = 9,
                 .min_table = 256,
                 .user_share = 0.3},
	.repair = {.max_excess = 0.125,
                   .min_rounds = 3,
                   .min_gain = 0.001,
                   .max_points = 64,
                   .attempts = 8,
                   .max_price_rounds = 48,
                   .min_price_rounds = 4,
                   .price_bits = 32,
                   .final_rounds = 8,
                   .gap_share = 1.0 / 64,
                   .region_min_nodes = 16,
                   .region_bits = 8,
                   .region_gaps = 16,
                   .settle_share = 1.0 / 256,
                   .unit_share = 1.0 / 1024},
	.improve = {.cycle_work = 40,
                    .merge_table = 1 << 16,
                    .first_scales = {1, 0, 0.5, 1, 2},
                    .later_scales = {2, 5, 25},
                    .forest_min_bits = 3,
                    .forest_bits = 7,
                    .block_min_bits = 5,
                    .block_bits = 10,
                    .perturb_bits = 6,
                    .settle_share = 1.0 / 4,
                    .gap_share = 1.0 / 64,
                    .merge_price = 1.0 / 64},
	.segment = {.all_entries = 1 << 26,
                    .min_table = 1 << 8,
                    .max_table = 1 << 14,
                    .max_tables = 64,
                    .open_buckets = 8,
                    .search_share = 2,
                    .min_search = 4000000},
	.method = {.metropolis_heat = 0.1,
                   .metropolis_patience = 256,
                   .link_work = 4,
                   .check_work = 4096},
};

#endif
