#include "cli.h"

#include <math.h>
#include <string.h>

#include "run/run_stages.h"

#define MAX_SHOWN_OUTPUTS 10 /* number of outputs that are listed without -v */

/* An output is named of which an error of this share of what it has of the batch is not seen. */
#define BLIND 0.1

static bool is_blind(const sw_verify_row *row)
{
	return row->change * BLIND <= 1; /* not NAN */
}

/* Order by error relative to tolerance, descending; outputs that exceed it come first. */
static int compare_rows(const void *a, const void *b)
{
	const sw_verify_row *x = a, *y = b;
	double of_x = x->tolerance > 0 ? x->relative / x->tolerance : x->relative;
	double of_y = y->tolerance > 0 ? y->relative / y->tolerance : y->relative;
	if (x->ok != y->ok)
		return x->ok - y->ok;
	return (of_x < of_y) - (of_x > of_y);
}

static json_t *result_json(const sw_verify_result *result)
{
	json_t *outputs = json_array();
	for (size_t i = 0; i < result->rows.len; i++) {
		const sw_verify_row *row = &result->rows.data[i];
		json_array_append_new(
			outputs,
			json_pack("{s:s, s:o, s:f, s:s, s:I, s:b, s:b, s:o}", "name", row->name, "error",
		                  cli_json_real(row->relative), "tolerance", row->tolerance, "unit",
		                  row->in_lr_units ? "learning rate" : "norm", "not_compared",
		                  (json_int_t)row->not_compared, "noisy", row->noisy, "ok", row->ok,
		                  "change_by_data", cli_json_real(row->change)));
	}
	return json_pack("{s:b, s:o, s:I, s:o, s:I, s:I, s:I, s:b}", "ok", result->ok, "max_rel_error",
	                 cli_json_real(result->max_rel_error), "not_compared",
	                 (json_int_t)result->not_compared, "outputs", outputs, "payload_bytes",
	                 (json_int_t)result->payload_bytes, "predicted_payload_bytes",
	                 (json_int_t)result->predicted_payload_bytes, "coded_gradients",
	                 (json_int_t)result->n_coded, "stale", result->stale);
}

/* The least error that is seen, of what the output has of the batch. */
static void add_seen_cell(const sw_verify_row *row, sw_table *table)
{
	if (isnan(row->change))
		sw_table_cell(table, "-");
	else if (row->change < 1)
		sw_table_cell(table, "nothing");
	else
		sw_table_cell(table, "%.0e", 1 / row->change);
}

/* Say in which outputs a wrong gradient would not be seen. */
static void add_blind(const sw_verify_result *result, bool all, sw_text *text)
{
	size_t blind = 0, shown = all ? result->rows.len : MAX_SHOWN_OUTPUTS;
	for (size_t i = 0; i < result->rows.len; i++)
		blind += is_blind(&result->rows.data[i]);
	if (!blind)
		return;
	sw_text_addf(text,
	             "\nnot seen: with these random inputs %zu of %zu outputs hardly depend on the "
	             "batch, so that an error of %.0f %% of\ntheir gradients would pass:",
	             blind, result->rows.len, 100 * BLIND);
	for (size_t i = 0; i < result->rows.len && shown; i++)
		if (is_blind(&result->rows.data[i])) {
			sw_text_addf(text, " %s", result->rows.data[i].name);
			shown--;
		}
	sw_text_add(text, blind > MAX_SHOWN_OUTPUTS && !all ? " ...; -v names all\n" : "\n");
}

/* Say how many outputs were compared with what rounding does to them. */
static void add_noisy(const sw_verify_result *result, sw_text *text)
{
	size_t noisy = 0;
	double most = 0;
	for (size_t i = 0; i < result->rows.len; i++) {
		noisy += result->rows.data[i].noisy;
		most = fmax(most, result->rows.data[i].noisy ? result->rows.data[i].tolerance : 0);
	}
	if (noisy)
		sw_text_addf(text,
		             "\nnoise: rounding moves %zu of %zu outputs further than is allowed else: "
		             "taken in other groups, the sums of the\nserial program do, so that up to "
		             "%.1e is allowed to them.\n",
		             noisy, result->rows.len, most);
}

static void add_table(sw_verify_result *result, size_t shown, sw_text *text)
{
	static const char *const headings[] = {"output", "error", "allowed", "unit", "sees", ""};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	if (result->rows.len > 0)
		qsort(result->rows.data, result->rows.len, sizeof(*result->rows.data),
		      compare_rows);
	for (size_t i = 0; i < result->rows.len && (i < shown || !result->rows.data[i].ok); i++) {
		const sw_verify_row *row = &result->rows.data[i];
		sw_table_cell(&table, "%s", row->name);
		sw_table_cell(&table, "%.1e", row->relative);
		sw_table_cell(&table, "%.1e", row->tolerance);
		sw_table_cell(&table, "%s", row->in_lr_units ? "lr" : "norm");
		add_seen_cell(row, &table);
		if (row->not_compared)
			sw_table_cell(&table, "%lld NOT COMPARED%s", (long long)row->not_compared,
			              row->relative > row->tolerance ? ", WRONG" : "");
		else
			sw_table_cell(&table, "%s", !row->ok ? "WRONG" : row->noisy ? "noise" : "");
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	if (shown < result->rows.len)
		sw_text_addf(text, "... of %zu outputs; -v shows all\n", result->rows.len);
}

static void describe(sw_verify_result *result, bool all, sw_text *text)
{
	add_table(result, all ? result->rows.len : MAX_SHOWN_OUTPUTS, text);
	add_noisy(result, text);
	add_blind(result, all, text);
	if (result->n_coded > 0)
		sw_text_addf(text,
		             "\nlossy: %u gradients are sent in codes, so that training is not that "
		             "of the program. Compared are their\nsums before they are coded, and "
		             "the step of one device that codes the same terms.\n",
		             result->n_coded);
	if (result->stale)
		sw_text_add(text,
		            "\nlossy: devices compute with old values of variables, so that training "
		            "is not that of the program. Compared is\nthe step that all begin with the "
		            "same values: each gradient with the sum of its terms, and the updates.\n");
	sw_text_addf(text, "\n%s: largest relative error %.1e; payload of a step ",
	             result->ok ? "equal" : "NOT EQUAL", result->max_rel_error);
	sw_text_add_bytes(text, (double)result->payload_bytes);
	if (result->predicted_payload_bytes < 0)
		sw_text_add(text, "\n");
	else if (result->payload_bytes == result->predicted_payload_bytes)
		sw_text_add(text, ", as predicted\n");
	else if (result->payload_by_data)
		sw_text_addf(text,
		             ", %lld bytes predicted for one iteration of each loop of unknown "
		             "trip count and for the most expensive branches\n",
		             (long long)result->predicted_payload_bytes);
	else
		sw_text_addf(text, " (%lld bytes), NOT THE %lld BYTES PREDICTED\n",
		             (long long)result->payload_bytes,
		             (long long)result->predicted_payload_bytes);
}

static size_t count_wrong(const sw_verify_result *result)
{
	size_t wrong = 0;
	for (size_t i = 0; i < result->rows.len; i++)
		wrong += result->rows.data[i].relative > result->rows.data[i].tolerance;
	return wrong;
}

static sw_status judge(const cli *c, const sw_verify_result *result, sw_error *err)
{
	size_t wrong = count_wrong(result);
	if (result->ok)
		return SW_OK;
	if (wrong)
		return sw_fail_at(err, SW_NO, c->argument, 0, 0,
		                  "%zu of %zu outputs differ from the serial program's", wrong,
		                  result->rows.len);
	if (result->not_compared && result->payload_ok)
		return sw_fail_at(err, SW_NO, c->argument, 0, 0,
		                  "%lld elements are NaN or infinite in the serial run too, and "
		                  "were not compared; --allow-nan lets them pass",
		                  (long long)result->not_compared);
	return sw_fail_at(err, SW_NO, c->argument, 0, 0,
	                  "a step sends %lld bytes per rank, and the plan predicts %lld",
	                  (long long)result->payload_bytes,
	                  (long long)result->predicted_payload_bytes);
}

/* Print what came of it, and judge it. */
static sw_status report(cli *c, sw_verify_result *result, sw_error *err)
{
	sw_text text = {0};
	if (c->values.allow_nan)
		sw_verify_allow_nan(result);
	c->result = result_json(result);
	describe(result, c->values.verbose, &text);
	cli_print(c, &text);
	return judge(c, result, err);
}

/* Compare what was found with other runs of the serial program: what is noise, and what is seen. */
static sw_status compare_serial(const cli *c, const sw_program *serial, const sw_sidecar *sidecar,
                                sw_verify_result *result, sw_error *err)
{
	uint64_t seed = (uint64_t)c->values.seed;
	SW_TRY(sw_verify_allow_noise(serial, sidecar, seed, result, err));
	return sw_verify_measure(serial, sidecar, seed, result, err);
}

/* A plan with stages: all of them together. */
static sw_status verify_stages(cli *c, sw_error *err)
{
	sw_pipelined *plan;
	sw_verify_result result = {0};
	if (c->values.cluster)
		return sw_fail(err, SW_ERR_INPUT,
		               "--cluster: a plan with stages can't be moved; plan again");
	sw_status status = sw_pipelined_load(c->argument, &plan, err);
	if (status)
		return status;
	status = sw_run_verify_stages(plan, sw_pipelined_sidecar(plan), (uint64_t)c->values.seed,
	                              &result, err);
	if (status == SW_OK)
		status = compare_serial(c, plan->canonical, sw_pipelined_sidecar(plan), &result, err);
	if (status == SW_OK)
		status = report(c, &result, err);
	sw_verify_result_clear(&result);
	sw_pipelined_free(plan);
	return status;
}

static sw_status verify(cli *c, sw_error *err)
{
	cli_plan loaded;
	sw_verify_result result;
	if (c->values.random > 0)
		return cli_verify_random(c, err);
	if (c->values.ranks > 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "--ranks N goes with --random K: a plan says how many ranks it has");
	if (c->values.save)
		return sw_fail(err, SW_ERR_INPUT, "--save DIR goes with --random K");
	sw_status status = cli_check_move(c, err);
	if (status == SW_OK && sw_pipelined_is_file(c->argument))
		return verify_stages(c, err);
	if (status == SW_OK)
		status = cli_load_plan(c, c->argument, false, &loaded, err);
	if (status)
		return status;
	if (c->values.cluster)
		status = cli_move_plan(c, c->argument, &loaded, err);
	result = (sw_verify_result){0};
	if (status == SW_OK)
		status = sw_run_verify(loaded.plan, &loaded.sidecar, (uint64_t)c->values.seed,
		                       &result, err);
	if (status == SW_OK)
		status = compare_serial(c, sw_plan_serial(loaded.plan), &loaded.sidecar, &result,
		                        err);
	if (status == SW_OK)
		status = report(c, &result, err);
	sw_verify_result_clear(&result);
	cli_plan_clear(&loaded);
	return status;
}

static const char *const options[] = {"--ranks",   "--random",    "--seed", "--cluster",
                                      "--devices", "--allow-nan", "--save", NULL};
const cli_command cli_verify = {
	.name = "verify",
	.argument = "PLAN|PROGRAM",
	.summary = "run one step partitioned, on threads, beside the serial program, and compare "
		   "all outputs",
	.details = "Inputs are random, as the sidecar of the program says. Compared are each "
		   "device's part of each output, and\n"
		   "the bytes sent with those predicted. Parameters are compared in units of "
		   "the learning rate (lr).\n"
		   "Elements that are NaN or infinite in both runs are not compared, and fail "
		   "unless --allow-nan.\n"
		   "Where outputs differ by more, the serial program runs again with its sums in other "
		   "groups: what that does to\n"
		   "them is noise, and twice that is allowed.\n"
		   "SEES is the least error that would be seen, as a share of what the output has "
		   "of the batch (measured by a serial\n"
		   "step of other data); outputs are named where a tenth would pass.\n"
		   "With --ranks N --random K, a PROGRAM under K plans made by chance, each of "
		   "which is allowed.",
	.example = "shardwright verify gpt.plan",
	.options = options,
	.computes = true,
	.run = verify,
};
