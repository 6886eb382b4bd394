/*
 * What rounding does to a program's outputs.
 *
 * Some steps amplify rounding: a batch norm over few elements, differences of large sums, values at
 * the kink of a maximum. Partitioned, their sums are taken in other groups, and their outputs
 * differ by more than any tolerance that fits other programs, though nothing is wrong. So where
 * outputs differ, the serial program runs again with its sums in other groups: what these runs
 * differ by is NOISE, and no comparison can see less. A fault of the plan is in none of these runs.
 */
#include <math.h>
#include <string.h>

#include "rewrite/rewrite.h"
#include "run/ranks.h"
#include "run/verify_parts.h"

/* The plan's groups are none of those that are tried. */
#define NOISE_FACTOR 2
/* Of what another batch does to an output, or of the output where it depends on none. Of one that
 * differs by more nothing can be said, whatever rounding does: it is not called equal. */
#define MOST_NOISE 0.25
/* Of the elements of a sum, those of the first group. Values at a kink fall to either side by
 * chance, so that one run may not show what another does. */
static const double shares[] = {1.0 / 3, 0.5, 0.7, 0.2};

static bool may_be_noise(const sw_verify_row *row)
{
	return row->relative > row->tolerance && row->tolerance > 0 && !row->not_compared;
}

static bool any_unexplained(const sw_verify_result *result, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < result->rows.len; i++)
		if (may_be_noise(&result->rows.data[i]))
			return true;
	return false;
}

typedef struct noise_runs {
	const sw_sidecar *sidecar;
	uint32_t n;
	/* outputs: of the program, of another run of it, and of a run with another batch */
	sw_tensor *one, *other, *batch;
} noise_runs;

static double difference(const noise_runs *x, const sw_tensor *other, uint32_t output)
{
	return verify_difference(x->sidecar, output, other[output], x->one[output], 0).relative;
}

/* Allow the rows what the outputs of another run of the same program differ by. */
static void allow(const noise_runs *x, sw_verify_result *result)
{
	for (uint32_t i = 0; i < x->n && i < result->rows.len; i++) {
		sw_verify_row *row = &result->rows.data[i];
		if (!may_be_noise(row))
			continue;
		double noise = difference(x, x->other, i), change = difference(x, x->batch, i),
		       most = MOST_NOISE * (change > 0 ? change : 1),
		       allowed = fmin(NOISE_FACTOR * noise, most);
		if (isnan(noise) || allowed <= row->tolerance)
			continue;
		row->noisy = true;
		row->tolerance = allowed;
		row->ok = row->relative <= row->tolerance;
	}
}

static void judge_again(sw_verify_result *result)
{
	result->ok = result->payload_ok;
	for (size_t i = 0; i < result->rows.len; i++)
		result->ok = result->ok && result->rows.data[i].ok;
}

static sw_status run_regrouped(const sw_program *serial, const sw_sidecar *sidecar, uint64_t seed,
                               double share, sw_tensor *outputs, sw_error *err)
{
	sw_program *regrouped = sw_rewrite_regroup(serial, share);
	sw_status status = verify_serial(regrouped, sidecar, seed, seed, outputs, err);
	sw_program_free(regrouped);
	return status;
}

static void drop(sw_tensor *outputs, uint32_t n)
{
	sw_tensors_drop(outputs, n);
	memset(outputs, 0, (n + 1) * sizeof(*outputs));
}

sw_status sw_verify_allow_noise(const sw_program *serial, const sw_sidecar *sidecar, uint64_t seed,
                                sw_verify_result *result, sw_error *err)
{
	uint32_t n = (uint32_t)sw_entry(serial)->results.len;
	if (!any_unexplained(result, n))
		return SW_OK;
	noise_runs x = {sidecar, n, sw_alloc((n + 1) * sizeof(sw_tensor)),
	                sw_alloc((n + 1) * sizeof(sw_tensor)),
	                sw_alloc((n + 1) * sizeof(sw_tensor))};
	sw_status status = verify_serial(serial, sidecar, seed, seed, x.one, err);
	if (status == SW_OK)
		status = verify_serial(serial, sidecar, seed, sw_hash_u64(seed, 1), x.batch, err);
	for (size_t k = 0; k < SW_COUNT(shares) && status == SW_OK && any_unexplained(result, n);
	     k++) {
		status = run_regrouped(serial, sidecar, seed, shares[k], x.other, err);
		if (status == SW_OK)
			allow(&x, result);
		drop(x.other, n);
	}
	drop(x.one, n);
	drop(x.batch, n);
	free(x.one);
	free(x.other);
	free(x.batch);
	judge_again(result);
	return status;
}
