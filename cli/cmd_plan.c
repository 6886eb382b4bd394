#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include "frontend/sharding.h"
#include "interpret/interpret.h"
#include "run/ranks.h"
#include "search/search.h"

/* ---- printing programs instead of planning ---------------------------------------------- */

static const char *const stages[] = {"read", "canonical", "partition", "schedule"};

static sw_status check_stage(const cli *c, sw_error *err)
{
	const char *stage = c->values.dump_after;
	for (size_t i = 0; stage && i < SW_COUNT(stages); i++)
		if (strcmp(stage, stages[i]) == 0)
			return c->values.json
			               ? sw_fail(err, SW_ERR_INPUT,
			                         "--dump-after prints a program: leave --json out")
			               : SW_OK;
	return stage ? sw_fail(err, SW_ERR_INPUT,
	                       "--dump-after %s: expected read, canonical, partition or schedule",
	                       stage)
	             : SW_OK;
}

static bool dumps(const cli *c, const char *stage)
{
	return c->values.dump_after && strcmp(c->values.dump_after, stage) == 0;
}

static sw_status dump(const cli *c, const sw_program *program)
{
	sw_text text = {0};
	sw_program_print(program, &text);
	cli_print(c, &text);
	return SW_OK;
}

static sw_status dump_canonical(const cli *c, const sw_program *program, sw_error *err)
{
	sw_program *canonical = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	if (status == SW_OK)
		dump(c, canonical);
	sw_program_free(canonical);
	return status;
}

static sw_status dump_partition(const cli *c, const sw_plan *plan, sw_error *err)
{
	sw_program *local = NULL;
	sw_status status = sw_partition(plan, &local, err);
	if (status == SW_OK)
		dump(c, local);
	sw_program_free(local);
	return status;
}

/* With -v, print the times at which ops run, too. */
static sw_status dump_schedule(const cli *c, const sw_plan *plan, sw_error *err)
{
	sw_program *scheduled = NULL;
	sw_text text = {0};
	sw_status status = sw_ranks_program(plan, SW_OVERLAP_ALL, &scheduled, err);
	if (status == SW_OK)
		dump(c, scheduled);
	if (status == SW_OK && c->values.verbose) {
		sw_text_add(&text, "\n");
		sw_schedule_print_times(plan->cluster, scheduled, &text);
		cli_print(c, &text);
	}
	sw_program_free(scheduled);
	return status;
}

/* ---- planning --------------------------------------------------------------------------- */

static sw_status check_usage(const cli *c, sw_error *err)
{
	sw_status status = check_stage(c, err);
	if (status || dumps(c, "read") || dumps(c, "canonical"))
		return status;
	if (!c->values.cluster)
		return sw_fail(
			err, SW_ERR_INPUT,
			"plan: which cluster? Add --cluster FILE, such as clusters/local-2x2.yaml");
	if (!c->values.output && !c->values.dump_after)
		return sw_fail(err, SW_ERR_INPUT, "plan: where should the plan go? Add -o PLAN");
	if (c->values.json && c->values.output && strcmp(c->values.output, "-") == 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "-o - and --json both need standard output: leave one out");
	return cli_check_writable(c, c->values.output, err);
}

/* Say what a step loses that writes attention in plain ops, for a device that runs only calls of
 * it as one kernel. */
static void note_attention(const cli *c, const sw_plan *plan)
{
	sw_kernels kernels;
	size_t n = 0;
	if (plan->cluster->device.fusion != SW_FUSION_XLA_GPU_CALLS || c->values.quiet)
		return;
	sw_kernels_find(&kernels, plan->program, plan->cluster->device.fusion);
	for (size_t i = 0; i < kernels.notes.len; i++)
		n += strcmp(kernels.notes.data[i].text, SW_FUSE_NOT_CALLED) == 0;
	if (n > 0)
		cli_note(c, "%zu times %s", n, SW_FUSE_NOT_CALLED);
	sw_kernels_clear(&kernels);
}

/* What `run` takes is said where it is more than the plan's peak by this factor. */
#define SAID_ABOVE 1.01

/* The bytes of a device that `run` takes; 0: the plan is not for it. Results and operands of collectives
 * are held while kernels run beside them, which the plan's own peak does not count. */
static int64_t run_bytes(const sw_plan *plan)
{
	sw_program *scheduled = NULL;
	sw_error ignored = {0};
	if (sw_ranks_program(plan, SW_OVERLAP_ALL, &scheduled, &ignored) != SW_OK)
		return 0;
	int64_t bytes = sw_placement_bytes(scheduled);
	sw_program_free(scheduled);
	return bytes;
}

static void add_peak(const sw_plan *plan, int64_t when_run_bytes, sw_text *text)
{
	sw_text_add(text, "), payload ");
	sw_text_add_bytes(text, (double)plan->predicted.payload_bytes);
	sw_text_add(text, ", peak ");
	sw_text_add_bytes(text, (double)plan->predicted.peak_bytes);
	sw_text_add(text, " per device");
	if ((double)when_run_bytes > SAID_ABOVE * (double)plan->predicted.peak_bytes) {
		sw_text_add(text, ", ");
		sw_text_add_bytes(text, (double)when_run_bytes);
		sw_text_add(text, " with collectives beside kernels");
	}
}

static void summarise(const cli *c, const sw_plan *plan, int64_t when_run_bytes)
{
	sw_text text = {0};
	note_attention(c, plan);
	for (size_t i = 0; i < plan->warnings.len; i++)
		cli_note(c, "warning: %s", plan->warnings.data[i]);
	sw_text_addf(&text, "%s on %lld devices: step ", plan->chosen,
	             (long long)plan->cluster->n_devices);
	sw_text_add_seconds(&text, plan->predicted.step_time_s);
	sw_cost_add_interval(&plan->cluster->device, plan->predicted.step_time_s, &text);
	if (plan->stale_step_s > 0) {
		sw_text_add(&text, ", and ");
		sw_text_add_seconds(&text, plan->stale_step_s);
		sw_text_add(&text, sw_forms_stale(&plan->forms)
		                           ? " in the long run with old values of variables, which is "
		                             "not the program's training"
		                           : " in the long run as owners serve variables");
	}
	sw_text_add(&text, "; without overlap ");
	sw_text_add_seconds(&text, plan->predicted.compute_s + plan->predicted.communication_s);
	sw_text_add(&text, " (compute ");
	sw_text_add_seconds(&text, plan->predicted.compute_s);
	sw_text_add(&text, ", communication ");
	sw_text_add_seconds(&text, plan->predicted.communication_s);
	add_peak(plan, when_run_bytes, &text);
	sw_text_add(&text, "; planned in ");
	sw_text_add_seconds(&text, plan->planning_s);
	cli_note(c, "%s", text.data);
	text.len = 0;
	sw_plan_add_certificate(plan, &text);
	if (c->values.verbose && plan->model_bound_s > 0)
		sw_text_addf(&text,
		             "; of the mesh that is best by the model, the solver's gap is "
		             "%.2f %%",
		             100 * (1 - plan->model_bound_s / plan->model_best_s));
	cli_note(c, "%s", text.data);
	sw_text_clear(&text);
}

static sw_status finish(cli *c, const sw_plan *plan, sw_error *err)
{
	if (dumps(c, "partition"))
		return dump_partition(c, plan, err);
	if (dumps(c, "schedule"))
		return dump_schedule(c, plan, err);
	sw_status status = sw_plan_write(plan, c->values.output, err);
	if (status)
		return sw_error_in_file(err, status, c->values.output);
	int64_t when_run_bytes = run_bytes(plan);
	summarise(c, plan, when_run_bytes);
	c->result = sw_plan_summary(plan);
	json_object_set_new(c->result, "run_peak_bytes",
	                    when_run_bytes ? json_integer(when_run_bytes) : json_null());
	return SW_OK;
}

/* Effort 2 stands for a method, so --effort and --method exclude each other. */
static sw_status read_words(const cli *c, sw_plan_options *options, sw_error *err)
{
	const cli_values *v = &c->values;
	const struct {
		const char *name, *value;
	} words[] = {{"--strategy", v->strategy},
	             {"--effort", v->effort},
	             {"--method", v->method},
	             {"--microbatches", v->microbatches},
	             {"--shares", v->shares},
	             {"--last-apart", v->last_apart},
	             {"--remat", v->remat},
	             {"--codec", v->codec},
	             {"--allow", v->allow}};
	if (v->effort && v->method)
		return sw_fail(
			err, SW_ERR_INPUT,
			"--effort and --method both say how problems are solved: leave one out");
	for (size_t i = 0; i < SW_COUNT(words); i++)
		if (words[i].value)
			SW_TRY(sw_plan_options_set(options, words[i].name, words[i].value, err));
	options->trials = v->trials;
	return SW_OK;
}

/* Trials are of ways, without stages; so are shares that are listed, and a program that is
 * printed. */
static sw_status check_alone(const cli *c, const sw_plan_options *options, int32_t n_stages,
                              sw_error *err)
{
	const cli_values *v = &c->values;
	if (!options->autodist && v->trials)
		return sw_fail(err, SW_ERR_INPUT, "--trials is of --method autodist: add it");
	if ((dumps(c, "partition") || dumps(c, "schedule")) && n_stages != 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--dump-after %s prints one program, and each stage has its own: "
		               "leave --stages out",
		               v->dump_after);
	if (options->sharing == SW_SHARES_LISTED && n_stages != 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--shares %s plans without stages: leave --stages out", v->shares);
	if (options->autodist && n_stages != 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--method autodist plans without stages: leave --stages out");
	return SW_OK;
}

/* Say which annotations are pins, and which are not. */
static void note_annotations(const cli *c, const sw_annotations *found)
{
	if (found->taken)
		cli_note(c,
		         "annotations: %u of the program's shardings are pins (--annotations "
		         "ignore plans without them)",
		         found->taken);
	if (found->open)
		cli_note(c,
		         "annotations: %u of them leave the layout open, or are not "
		         "understood: they are no pins",
		         found->open);
	if (found->lost)
		cli_note(c,
		         "annotations: %u of them stand at ops that are neither inputs, "
		         "results nor constraints: they are no pins",
		         found->lost);
}

/* Read --annotations, and take the annotations out where it says so. */
static sw_status drop_annotations(const cli *c, sw_program *program, sw_error *err)
{
	const char *how = c->values.annotations;
	if (how && strcmp(how, "ignore") == 0)
		sw_sharding_drop(program);
	else if (how && strcmp(how, "pin"))
		return sw_fail(err, SW_ERR_INPUT, "--annotations %s: expected pin or ignore", how);
	return SW_OK;
}

static sw_status make_plan(cli *c, const sw_program *program, const sw_sidecar *sidecar,
                           sw_error *err)
{
	sw_cluster cluster;
	sw_plan *plan = NULL, *least = NULL;
	sw_pins pins = {0};
	sw_sync sync = {0};
	int64_t least_share = 0;
	double uncertified = -1;
	double start_s = sw_now_s();
	sw_plan_options options = {
		.memory_bytes = c->values.memory,
		.time_limit_s = c->values.time_limit,
		.untied = c->values.untied,
		.seed = (uint64_t)c->values.seed,
		.quiet = c->values.quiet,
		.pins = &pins,
		.least = &least,
	};
	cli_stages_asked asked = {
		.program = program, .sidecar = sidecar, .cluster = &cluster, .options = &options};
	sw_plan_options whole;
	bool wins = false;
	sw_status status = read_words(c, &options, err);
	if (status == SW_OK)
		status = cli_read_stages(c, &options.strategy, &asked, err);
	if (status == SW_OK)
		status = check_alone(c, &options, asked.n_stages, err);
	if (status == SW_OK)
		status = cli_read_cluster(c, c->values.cluster, &cluster, err);
	if (status) {
		cli_clear_stages(&asked);
		return status;
	}
	status = sw_plan_options_sync(&options, "--", c->values.strategy, c->values.sync, &sync, err);
	if (status == SW_OK && c->values.pin)
		status = sw_pins_read(c->values.pin, &pins, err);
	if (status == SW_OK)
		status = sw_pins_annotate(&pins, program, &cluster, err);
	whole = options;
	whole.least_share = &least_share;
	sw_pipelined_rival rival = {0};
	if (status == SW_OK && asked.n_stages != 1)
		status = cli_begin_stages(c, &asked, &rival, err);
	const sw_plan_rival asks = sw_pipelined_as_rival(&rival);
	/* Without stages, as many microbatches as are best for it, in half of the time. */
	if (asked.n_stages != 1) {
		whole.rival = &asks;
		whole.microbatches = 0;
		whole.time_limit_s = options.time_limit_s / 2;
		/* Of a plan that is only compared, the step counts. */
		whole.uncertified = c->values.json ? NULL : &uncertified;
	}
	if (status == SW_OK)
		status = sw_plan_make_any(program, c->argument, sidecar, &cluster, &whole, &plan,
		                          err);
	if (options.time_limit_s > 0)
		asked.how.plan.time_limit_s = SW_MAX(options.time_limit_s - (sw_now_s() - start_s), 0.1);
	if (rival.options && (status == SW_OK || status == SW_NO))
		status = cli_plan_stages(c, &asked, &rival, plan, &wins, err);
	if (wins)
		goto done;
	if (status == SW_OK && plan && whole.uncertified)
		sw_plan_certify(plan, sidecar, &whole);
	if (status == SW_OK || status == SW_NO)
		note_annotations(c, &pins.annotations);
	if (status == SW_OK)
		status = finish(c, plan, err);
	else if (least)
		status = cli_plan_shortage(c, program, sidecar, &cluster, &options, least,
		                           sw_now_s() - start_s, least_share, err);
done:
	sw_pipelined_free(rival.plan);
	sw_plan_free(plan);
	sw_pins_clear(&pins);
	sw_sync_clear(&sync);
	sw_plan_free(least);
	cli_clear_stages(&asked);
	sw_cluster_clear(&cluster);
	return status;
}

static sw_status plan_program(cli *c, sw_error *err)
{
	sw_program *program = NULL;
	sw_sidecar sidecar;
	sw_memory_keep();
	sw_status status = check_usage(c, err);
	if (status == SW_OK)
		status = cli_load_program(c->argument, &program, &sidecar, err);
	if (status)
		return status;
	status = drop_annotations(c, program, err);
	if (status)
		;
	else if (dumps(c, "read"))
		status = dump(c, program);
	else if (dumps(c, "canonical"))
		status = dump_canonical(c, program, err);
	else
		status = make_plan(c, program, &sidecar, err);
	if (program->state_note && (status == SW_OK || status == SW_NO))
		cli_note(c, "%s", program->state_note);
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
	return status;
}

static const char *const options[] = {"--cluster",
                                      "-o",
                                      "--devices",
                                      "--strategy",
                                      "--method",
                                      "--effort",
                                      "--trials",
                                      "--seed",
                                      "--memory",
                                      "--microbatches",
                                      "--shares",
                                      "--last-apart",
                                      "--remat",
                                      "--time-limit",
                                      "--pin",
                                      "--sync",
                                      "--codec",
                                      "--allow",
                                      "--annotations",
                                      "--untied",
                                      "--stages",
                                      "--schedule",
                                      "--chunks",
                                      "--stage-file",
                                      "--dump-after",
                                      NULL};
const cli_command cli_plan_command = {
	.name = "plan",
	.argument = "PROGRAM",
	.summary = "choose how a program runs on a cluster, and write the plan",
	.details = "PROGRAM is HLO text, plain or gzip. Exit code 1: nothing fits in memory.",
	.example = "shardwright plan tests/programs/gpt.hlo.gz --cluster clusters/local-2x2.yaml "
		   "-o gpt.plan",
	.options = options,
	.run = plan_program,
};
