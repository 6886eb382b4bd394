/* The algorithm and the seconds of a collective: as measured, else by formula. */
#include "cost/forms.h"

#include <math.h>

double sw_cost_algorithm(const sw_cluster *cluster, sw_algorithm algorithm, sw_collective_kind kind,
                         uint32_t atoms, int64_t operand_bytes)
{
	collective c = collective_of(cluster, kind, atoms, operand_bytes);
	return c.members > 1 ? collective_seconds(&c, algorithm) : 0;
}

bool sw_cost_goes_whole(const sw_cluster *cluster, sw_algorithm algorithm, uint32_t atoms,
                        int64_t operand_bytes)
{
	collective c = collective_of(cluster, SW_COLLECTIVE_ALL_REDUCE, atoms, operand_bytes);
	return c.members > 1 && collective_goes_whole(&c, algorithm);
}

static sw_collective_choice fastest(const collective *c)
{
	sw_collective_choice best = {SW_ALGORITHM_DIRECT, INFINITY, false};
	for (sw_algorithm a = 0; a < SW_ALGORITHM_COUNT; a++) {
		if (!sw_library_has(c->cluster->device.collectives, a, c->kind))
			continue;
		double seconds = collective_seconds(c, a);
		if (seconds < best.seconds)
			best = (sw_collective_choice){a, seconds, false};
	}
	return best;
}

/* ---- measured points -------------------------------------------------------------------- */

/* Return whether the point comes before (collective, atoms, bytes) in the order of the points. */
static bool is_before(const sw_measurement *point, sw_collective_kind kind, uint32_t atoms,
                      int64_t bytes)
{
	if (point->collective != kind)
		return point->collective < kind;
	return point->atoms != atoms ? point->atoms < atoms : point->bytes < bytes;
}

/* Return the first point that does not come before (kind, atoms, bytes). */
static int32_t find_point(const sw_calibration *calibration, sw_collective_kind kind,
                          uint32_t atoms, int64_t bytes)
{
	int32_t low = 0, high = calibration->n_points;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		if (is_before(&calibration->points[middle], kind, atoms, bytes))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const sw_measurement *point_of(const sw_calibration *calibration, int32_t i,
                                      sw_collective_kind kind, uint32_t atoms)
{
	const sw_measurement *point =
		i >= 0 && i < calibration->n_points ? &calibration->points[i] : NULL;
	return point && point->collective == kind && point->atoms == atoms ? point : NULL;
}

/* Extrapolate from a point, in proportion to the formula. */
static double extrapolate(const sw_cluster *cluster, const sw_measurement *point, int64_t bytes)
{
	double at_point = sw_cost_algorithm(cluster, point->algorithm, point->collective,
	                                    point->atoms, point->bytes);
	double at_bytes = sw_cost_algorithm(cluster, point->algorithm, point->collective,
	                                    point->atoms, bytes);
	return at_point > 0 ? point->seconds * at_bytes / at_point : point->seconds;
}

static double between(const sw_measurement *low, const sw_measurement *high, int64_t bytes,
                      double *position)
{
	*position = log((double)bytes / (double)low->bytes) /
	            log((double)high->bytes / (double)low->bytes);
	return low->seconds * pow(high->seconds / low->seconds, *position);
}

static bool measured(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                     int64_t bytes, sw_collective_choice *choice)
{
	const sw_calibration *calibration = &cluster->calibration;
	int32_t i = find_point(calibration, kind, atoms, bytes);
	const sw_measurement *low = point_of(calibration, i - 1, kind, atoms),
			     *high = point_of(calibration, i, kind, atoms);
	if (high && high->bytes == bytes)
		low = NULL;
	if (!low && !high)
		return false;
	choice->measured = true;
	if (!low || !high) {
		const sw_measurement *only = low ? low : high;
		*choice = (sw_collective_choice){only->algorithm, extrapolate(cluster, only, bytes),
		                                 true};
		return true;
	}
	double position;
	choice->seconds = between(low, high, bytes, &position);
	choice->algorithm = position < 0.5 ? low->algorithm : high->algorithm;
	return true;
}

sw_collective_choice sw_cost_choose(const sw_cluster *cluster, sw_collective_kind kind,
                                    uint32_t atoms, int64_t operand_bytes)
{
	sw_collective_choice choice = {SW_ALGORITHM_DIRECT, 0, false};
	if (sw_atoms_group_size(&cluster->atoms, atoms) <= 1 ||
	    (cluster->calibration.n_points &&
	     measured(cluster, kind, atoms, operand_bytes, &choice)))
		return choice;
	collective c = collective_of(cluster, kind, atoms, operand_bytes);
	choice = fastest(&c);
	choice.seconds += cluster->device.collective_overhead_s;
	return choice;
}

/* Of a collective that was measured the quickest algorithm is known, so that another takes no less. */
sw_collective_choice sw_cost_choose_said(const sw_cluster *cluster, uint32_t said,
                                         sw_collective_kind kind, uint32_t atoms,
                                         int64_t operand_bytes)
{
	sw_collective_choice quickest = sw_cost_choose(cluster, kind, atoms, operand_bytes);
	if (said == 0 || quickest.algorithm + 1 == said || quickest.seconds <= 0 ||
	    !sw_library_has(cluster->device.collectives, (sw_algorithm)(said - 1), kind))
		return quickest;
	double seconds = sw_cost_algorithm(cluster, (sw_algorithm)(said - 1), kind, atoms, operand_bytes) +
	                 cluster->device.collective_overhead_s;
	return (sw_collective_choice){(sw_algorithm)(said - 1), fmax(seconds, quickest.seconds), false};
}

bool sw_collective_combines(sw_collective_kind kind)
{
	return kind == SW_COLLECTIVE_ALL_REDUCE || kind == SW_COLLECTIVE_ALL_GATHER ||
	       kind == SW_COLLECTIVE_REDUCE_SCATTER;
}

/* Bytes of a collective so large that its latency is negligible. */
#define ASYMPTOTIC_BYTES (INT64_C(1) << 50)

static double rate_of(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                      int64_t bytes)
{
	return sw_cost_choose(cluster, kind, atoms, bytes).seconds / (double)bytes;
}

/* By formula, larger collectives are more efficient; the measured points may say otherwise, so each
 * of them is tried. */
double sw_cost_share(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                     int64_t operand_bytes)
{
	const sw_calibration *calibration = &cluster->calibration;
	if (operand_bytes <= 0 || !sw_collective_combines(kind))
		return sw_cost_choose(cluster, kind, atoms, operand_bytes).seconds;
	double least = fmin(rate_of(cluster, kind, atoms, operand_bytes),
	                    rate_of(cluster, kind, atoms, ASYMPTOTIC_BYTES));
	for (int32_t i = find_point(calibration, kind, atoms, operand_bytes);
	     point_of(calibration, i, kind, atoms); i++)
		least = fmin(least,
		             calibration->points[i].seconds / (double)calibration->points[i].bytes);
	return least * (double)operand_bytes;
}

double sw_cost_member_launches(const sw_device *device, const sw_atoms *all, uint32_t atoms)
{
	return device->collective_launches * (double)sw_atoms_group_size(all, atoms);
}

double sw_cost_collective(void *context, sw_move_kind kind, uint32_t atoms, int64_t operand_bytes)
{
	static const struct {
		bool communicates;
		sw_collective_kind kind;
	} moves[] = {
		[SW_MOVE_ALL_GATHER] = {true, SW_COLLECTIVE_ALL_GATHER},
		[SW_MOVE_ALL_REDUCE] = {true, SW_COLLECTIVE_ALL_REDUCE},
		[SW_MOVE_REDUCE_SCATTER] = {true, SW_COLLECTIVE_REDUCE_SCATTER},
		[SW_MOVE_ALL_TO_ALL] = {true, SW_COLLECTIVE_ALL_TO_ALL},
		[SW_MOVE_PERMUTE] = {true, SW_COLLECTIVE_PERMUTE},
		[SW_MOVE_REDUCE] = {true, SW_COLLECTIVE_BROADCAST},
		[SW_MOVE_SPREAD] = {true, SW_COLLECTIVE_BROADCAST},
		[SW_MOVE_KEEP] = {false, 0},
		[SW_MOVE_SLICE] = {false, 0},
		[SW_MOVE_TO_PARTIAL] = {false, 0},
	};
	if (!moves[kind].communicates)
		return 0;
	return sw_cost_choose(context, moves[kind].kind, atoms, operand_bytes).seconds;
}
