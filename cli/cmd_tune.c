#include "cli.h"

#include <math.h>
#include <string.h>

/* ---- options ---------------------------------------------------------------------------- */

static sw_status check_usage(const cli *c, sw_error *err)
{
	const cli_values *v = &c->values;
	if (!v->cluster)
		return sw_fail(
			err, SW_ERR_INPUT,
			"tune: which cluster? Add --cluster FILE, such as clusters/local-2x2.yaml");
	if (!v->measure && (v->launch || v->pace))
		return sw_fail(err, SW_ERR_INPUT, "%s says how trials are run: add --measure",
		               v->launch ? "--launch" : "--pace");
	if (v->measure && v->steps < 1)
		return sw_fail(err, SW_ERR_INPUT, "--steps 0: a trial has a step at least");
	const char *const written[] = {v->output, v->ways};
	for (size_t i = 0; i < SW_COUNT(written); i++) {
		if (written[i] && v->json && strcmp(written[i], "-") == 0)
			return sw_fail(err, SW_ERR_INPUT,
			               "a file on standard output and --json: leave one out");
		SW_TRY(cli_check_writable(c, written[i], err));
	}
	return cli_check_writable(c, v->trials_file, err);
}

static sw_status read_options(cli *c, sw_tune_options *options, sw_error *err)
{
	const cli_values *v = &c->values;
	options->plan = (sw_plan_options){.memory_bytes = v->memory,
	                                  .time_limit_s = v->time_limit,
	                                  .seed = (uint64_t)v->seed,
	                                  .quiet = v->quiet};
	options->trials = v->trials ? v->trials : SW_TUNE_TRIALS;
	options->ranker = v->measure ? SW_RANKER_BOTH : SW_TUNE_RANKER;
	options->file = v->trials_file;
	options->measure = v->measure ? cli_measure_plan : NULL;
	options->context = c;
	options->stop = cli_stop_asked();
	if (v->simulator)
		SW_TRY(sw_ranker_parse(v->simulator, &options->ranker, err));
	if (!v->measure && sw_ranker_asks_model(options->ranker))
		return sw_fail(
			err, SW_ERR_INPUT,
			"--simulator %s: our model is what trials are without --measure: add "
			"that, or take predefined, linear or trees",
			v->simulator);
	if (v->microbatches)
		SW_TRY(sw_plan_options_set(&options->plan, "microbatches", v->microbatches, err));
	if (v->remat)
		SW_TRY(sw_plan_options_set(&options->plan, "remat", v->remat, err));
	if (v->allow)
		SW_TRY(sw_plan_options_set(&options->plan, "--allow", v->allow, err));
	if (options->plan.allows_stale)
		return sw_fail(err, SW_ERR_INPUT,
		               "--allow %s: trials are synchronous: leave stale= out", v->allow);
	return SW_OK;
}

/* ---- the report ------------------------------------------------------------------------- */

static const sw_trial *quickest_builder(const sw_tuned *tuned)
{
	const sw_trial *best = NULL;
	for (size_t i = 0; i < tuned->trials.list.len; i++) {
		const sw_trial *trial = &tuned->trials.list.data[i];
		if (*trial->builder && (!best || trial->example.seconds < best->example.seconds))
			best = trial;
	}
	return best && isfinite(best->example.seconds) ? best : NULL;
}

/* Number of the trial, from 1, that is the first to be as quick as `share` times the best. */
static size_t trials_until(const sw_tuned *tuned, double share)
{
	const sw_trial *list = tuned->trials.list.data;
	double best_s = list[tuned->best].example.seconds;
	size_t i = 0;
	while (list[i].example.seconds > best_s * share)
		i++;
	return i + 1;
}

/* Share of the trials that are quicker than the best builder: the paper's hit rate. */
static double hit_rate(const sw_tuned *tuned, const sw_trial *builder)
{
	size_t hits = 0, n = 0;
	for (size_t i = 0; i < tuned->trials.list.len && builder; i++) {
		const sw_trial *trial = &tuned->trials.list.data[i];
		n += !*trial->builder;
		hits += !*trial->builder && trial->example.seconds < builder->example.seconds;
	}
	return n > 0 ? (double)hits / (double)n : NAN;
}

static void add_share(sw_table *table, const sw_ranking_accuracy *accuracy)
{
	if (accuracy->pairs > 0)
		sw_table_cell(table, "%.0f %%", 100 * accuracy->right);
	else
		sw_table_cell(table, "-");
}

static json_t *accuracy_json(const sw_tune_accuracy *accuracy)
{
	json_t *phases = json_array();
	for (int p = 0; p < SW_TUNE_PHASES; p++) {
		json_t *buckets = json_array();
		for (int b = 0; b < SW_TUNE_BUCKETS; b++)
			json_array_append_new(buckets,
			                      cli_json_real(accuracy->of[p][b].pairs > 0
			                                            ? accuracy->of[p][b].right
			                                            : NAN));
		json_array_append_new(phases, json_pack("{s:o, s:o}", "all",
		                                        cli_json_real(accuracy->all[p].right),
		                                        "buckets", buckets));
	}
	return phases;
}

/* Figure 4 of the paper: the accuracy in buckets of seconds, by the simulator, with lessons up to
 * each phase. */
static void report_accuracy(const cli *c, const sw_tuned *tuned, sw_text *text, json_t *json)
{
	static const char *const headings[] = {"simulator", "trials", "all pairs", "slowest",
	                                       "slower",    "faster", "fastest"};
	sw_table table;
	json_t *of = json_object();
	size_t n = tuned->trials.list.len;
	uint64_t group = n ? tuned->trials.list.data[0].example.group : 0;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (int k = SW_RANKER_PREDEFINED; k < SW_RANKER_COUNT; k++) {
		if (!c->values.measure && sw_ranker_asks_model((sw_ranker_kind)k))
			continue;
		sw_tune_accuracy a = sw_tune_accuracy_of(&tuned->trials, (sw_ranker_kind)k, group,
		                                         &sw_tune_default_limits);
		bool learns = k != SW_RANKER_PREDEFINED && k != SW_RANKER_ANALYTIC;
		json_object_set_new(of, sw_ranker_word((sw_ranker_kind)k), accuracy_json(&a));
		for (int p = learns ? 0 : SW_TUNE_PHASES - 1; p < SW_TUNE_PHASES; p++) {
			sw_table_cell(&table, "%s", sw_ranker_word((sw_ranker_kind)k));
			sw_table_cell(&table, "%zu",
			              learns ? n * (size_t)(p + 1) / SW_TUNE_PHASES : 0);
			add_share(&table, &a.all[p]);
			for (int b = 0; b < SW_TUNE_BUCKETS; b++)
				add_share(&table, &a.of[p][b]);
		}
	}
	sw_text_add(text, "\npairs of trials that simulators order as they came out, which have "
	                  "learned from so many of them, and not from those:\n");
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	json_object_set_new(json, "accuracy", of);
}

static void report(const cli *c, const sw_tuned *tuned, json_t *json, sw_text *text)
{
	const sw_trial *best = &tuned->trials.list.data[tuned->best],
		       *builder = quickest_builder(tuned);
	size_t first = trials_until(tuned, 1), near = trials_until(tuned, 1.01);
	double rate = hit_rate(tuned, builder);
	sw_text_addf(text, "trials     %zu, of which %zu of earlier runs; %s\n",
	             tuned->trials.list.len, tuned->trials.list.len - tuned->n_new,
	             best->measured ? "measured" : "simulated");
	sw_text_add(text, "best       ");
	sw_text_add_seconds(text, best->example.seconds);
	sw_text_addf(text, " a step, of trial %zu (%s); within 1 %% of it: trial %zu\n", first,
	             *best->builder ? best->builder : "sampled", near);
	if (builder) {
		sw_text_addf(text, "builders   %s, the best: ", builder->builder);
		sw_text_add_seconds(text, builder->example.seconds);
		sw_text_addf(text, ", %.3f times as long\n",
		             builder->example.seconds / best->example.seconds);
	}
	if (isfinite(rate))
		sw_text_addf(text, "hit rate   %.0f %% of the samples are quicker than it\n",
		             100 * rate);
	json_object_set_new(json, "trials", json_integer((json_int_t)tuned->trials.list.len));
	json_object_set_new(json, "new_trials", json_integer((json_int_t)tuned->n_new));
	json_object_set_new(json, "best_s", json_real(best->example.seconds));
	json_object_set_new(json, "best_trial", json_integer((json_int_t)first));
	json_object_set_new(json, "near_trial", json_integer((json_int_t)near));
	json_object_set_new(json, "rejected", json_integer((json_int_t)tuned->rejected));
	json_object_set_new(json, "hit_rate", cli_json_real(rate));
	json_object_set_new(json, "builder", builder ? json_string(builder->builder) : json_null());
	json_object_set_new(json, "builder_s",
	                    cli_json_real(builder ? builder->example.seconds : NAN));
	report_accuracy(c, tuned, text, json);
}

/* ---- the command ------------------------------------------------------------------------ */

static sw_status write_ways(cli *c, const sw_tuned *tuned, sw_error *err)
{
	sw_sync sync;
	sw_text text = {0};
	if (!c->values.ways)
		return SW_OK;
	sw_ways_to_sync(&tuned->space, &tuned->trials.list.data[tuned->best].ways, &sync);
	sw_sync_print(&sync, "", &text);
	sw_status status = sw_file_write(c->values.ways, text.data, text.len, err);
	sw_sync_clear(&sync);
	sw_text_clear(&text);
	return sw_error_in_file(err, status, c->values.ways);
}

static sw_status finish(cli *c, const sw_tuned *tuned, sw_error *err)
{
	sw_text text = {0};
	SW_TRY(write_ways(c, tuned, err));
	if (c->values.output) {
		sw_status status = sw_plan_write(tuned->plan, c->values.output, err);
		if (status)
			return sw_error_in_file(err, status, c->values.output);
	}
	c->result = json_object();
	report(c, tuned, c->result, &text);
	json_object_set_new(c->result, "plan", sw_plan_summary(tuned->plan));
	cli_print(c, &text);
	return SW_OK;
}

static sw_status tune_program(cli *c, sw_error *err)
{
	sw_program *program = NULL;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_tuned tuned;
	sw_tune_options options = {0};
	sw_memory_keep();
	SW_TRY(check_usage(c, err));
	SW_TRY(read_options(c, &options, err));
	SW_TRY(cli_load_program(c->argument, &program, &sidecar, err));
	sw_status status = cli_read_cluster(c, c->values.cluster, &cluster, err);
	if (status == SW_OK) {
		cli_watch_signals(c, "\nstopping after this trial; press again to end at once\n");
		status = sw_tune(program, c->argument, &sidecar, &cluster, &options, &tuned, err);
		if (status == SW_OK) {
			status = finish(c, &tuned, err);
			sw_tuned_clear(&tuned);
		}
		sw_cluster_clear(&cluster);
	}
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
	return status;
}

static const char *const options[] = {
	"--cluster",   "--devices",      "--trials",  "-o",       "--ways",       "--trials-file",
	"--simulator", "--allow",        "--measure", "--launch", "--steps",      "--pace",
	"--seed",      "--microbatches", "--remat",   "--memory", "--time-limit", NULL};
const cli_command cli_tune = {
	.name = "tune",
	.argument = "PROGRAM",
	.summary = "find by trials how each variable is best synchronised",
	.details = "AutoDist's optimiser: ways are sampled, ranked by a simulator that learns from "
		   "the "
		   "trials, and tried.\n"
		   "Exit code 1: none that was tried fits in memory.",
	.example = "shardwright tune tests/programs/gpt-tiny.hlo.gz --cluster "
		   "clusters/local-2x2.yaml --trials 64 --ways gpt-tiny.ways.yaml",
	.options = options,
	.run = tune_program,
};
