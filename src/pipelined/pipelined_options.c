/* The words of the options of plans with stages, and which of them are refused. */
#include "pipelined/internal.h"

#include <stdlib.h>
#include <string.h>

static sw_status read_number(const char *name, const char *value, const char *expected,
                             int32_t *number, sw_error *err)
{
	char *end = NULL;
	long n = strtol(value, &end, 10);
	if (end == value || *end || n < 1 || n > SW_MAX_STAGES)
		return sw_fail(err, SW_ERR_INPUT, "--%s %s: expected %s from 1 to %d", name, value,
		               expected, SW_MAX_STAGES);
	*number = (int32_t)n;
	return SW_OK;
}

static sw_status read_schedule(const char *value, int32_t *schedule, sw_error *err)
{
	sw_named_schedule which;
	*schedule = -1;
	if (strcmp(value, "auto") == 0)
		return SW_OK;
	SW_TRY(sw_pipeline_parse_name(value, &which, err));
	*schedule = (int32_t)which;
	return SW_OK;
}

sw_status sw_pipelined_set(sw_pipelined_options *options, const char *name, const char *value,
                           sw_error *err)
{
	if (strcmp(name, "schedule") == 0)
		return read_schedule(value, &options->schedule, err);
	if (strcmp(name, "chunks") == 0)
		return read_number(name, value, "a number", &options->n_chunks, err);
	options->n_stages = 0;
	return strcmp(value, "auto")
	               ? read_number(name, value, "auto, or a number", &options->n_stages, err)
	               : SW_OK;
}

/* ---- refusals --------------------------------------------------------------------------- */

/* A schedule that a file gives says how many of everything there are. */
static sw_status check_given(const sw_pipelined_options *options, sw_error *err)
{
	const sw_pipeline_schedule *given = options->given;
	if (!given)
		return SW_OK;
	if (given->n_chains > 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--schedule: it has two copies of the model, and plans have one");
	if (given->n_stages % given->n_ranks)
		return sw_fail(err, SW_ERR_INPUT,
		               "--schedule: its %d stages are no multiple of its %d ranks",
		               given->n_stages, given->n_ranks);
	if (options->n_chunks)
		return sw_fail(err, SW_ERR_INPUT,
		               "--chunks: the file of --schedule says how many stages a slice has: "
		               "leave it out");
	if (options->n_stages == given->n_ranks && options->microbatches == given->n_microbatches)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT,
	               "--schedule: the file has %d ranks and %d microbatches: leave --stages and "
	               "--microbatches out, or give these",
	               given->n_ranks, given->n_microbatches);
}

sw_status sw_pipelined_check_words(const sw_pipelined_options *options, sw_error *err)
{
	if (options->given && options->given->n_microbatches == 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--schedule: the file has 1 microbatch, and plans with stages need 2 "
		               "or more");
	if (options->microbatches == 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--microbatches 1: stages need 2 microbatches or more");
	if (options->n_chunks && options->schedule >= 0 &&
	    options->schedule != (int32_t)SW_INTERLEAVED_1F1B)
		return sw_fail(err, SW_ERR_INPUT,
		               "--chunks %d: --schedule %s has as many stages on each slice as it "
		               "needs; leave one out, or take interleaved-1f1b",
		               options->n_chunks,
		               sw_pipeline_name((sw_named_schedule)options->schedule));
	if (options->n_chunks == 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--chunks 1: expected 2 stages or more on each slice");
	SW_TRY(check_given(options, err));
	return sw_pipelined_check_schedule(options->schedule, err);
}

sw_status sw_pipelined_check_kinds(const sw_pipelined_options *options, sw_error *err)
{
	if (options->plan.strategy.owners != SW_OWNERS_NONE)
		return sw_fail(err, SW_ERR_INPUT,
		               "plans with stages have no owners: leave --stages out, or take "
		               "another --strategy than ps, parallax, random or ways");
	if (options->plan.strategy.parts != SW_PARTS_NONE)
		return sw_fail(err, SW_ERR_INPUT,
		               "plans with stages divide no variables: leave --stages out, or "
		               "take allreduce without partitioned");
	if (options->plan.strategy.has_stale || options->plan.strategy.served ||
	    options->plan.allows_stale)
		return sw_fail(err, SW_ERR_INPUT,
		               "stages of a pipeline are not for stale variables: leave pp= out, or "
		               "stale");
	if (options->plan.codec.kind)
		return sw_fail(err, SW_ERR_INPUT,
		               "plans with stages send gradients as they are: leave --stages out, "
		               "or --codec");
	if (options->plan.pins && options->plan.pins->n && !options->plan.pins->of_parts)
		return sw_fail(err, SW_ERR_INPUT, "--pin: plans with stages take no pins");
	if (options->plan.pins && options->plan.pins->annotations.taken)
		return sw_fail(err, SW_ERR_INPUT,
		               "plans with stages take no pins, which the program's annotations "
		               "of shardings are: add --annotations ignore");
	return SW_OK;
}
