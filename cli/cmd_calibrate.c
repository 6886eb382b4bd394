#include "cli.h"

#include <string.h>

#include "calibrate_report.h"
#include "run/ranks.h"

#define TIME_LIMIT_S 60
#define BUSY_LOAD_PER_CORE 0.75 /* load average per core above which the machine counts as busy */

/* The context of a rank. Under mpirun there is one rank in the process, else one thread per
 * rank. */
typedef struct calibration_job {
	cli *c;
	sw_progress progress;
	sw_status status; /* of rank 0, or of the only rank of this process */
	sw_error err;
} calibration_job;

static void show_progress(void *context, double fraction, const char *what)
{
	calibration_job *j = context;
	sw_progress_update(&j->progress, fraction, "%s", what);
	if (j->c->values.verbose && !j->progress.active)
		cli_note(j->c, "%.0f %%: %s", 100 * fraction, what);
}

static sw_calibrate_options options_of(calibration_job *j)
{
	const cli_values *v = &j->c->values;
	return (sw_calibrate_options){
		.time_limit_s = v->time_limit > 0 ? v->time_limit : TIME_LIMIT_S,
		.links = !v->no_links,
		.kernels = !v->no_kernels,
		.paced = v->pace,
		.stop = cli_stop_asked(),
		.on_progress = show_progress,
		.context = j,
	};
}

/* ---- the answer ------------------------------------------------------------------------- */

static void add_header(const cli *c, const sw_calibrate_result *result, sw_text *text)
{
	const cli_values *v = &c->values;
	sw_text_add(text, "# Measured by\n#   ");
	if (c->transport)
		sw_text_addf(text, "mpirun -n %d ", c->transport->size);
	sw_text_add(text, "shardwright calibrate");
	if (v->cluster)
		sw_text_addf(text, " --cluster %s", v->cluster);
	sw_text_addf(text, " -o %s%s%s%s", v->output, v->no_links ? " --no-links" : "",
	             v->no_kernels ? " --no-kernels" : "", v->pace ? " --pace" : "");
	if (v->ranks)
		sw_text_addf(text, " --ranks %lld", (long long)v->ranks);
	if (v->time_limit > 0)
		sw_text_addf(text, " --time-limit %g", v->time_limit);
	sw_text_addf(text, "\n# in %.0f s.", result->seconds);
	if (result->link_fit.n_points)
		sw_text_addf(text, " Links: %d points, fitted within %.1f %% (median).",
		             result->link_fit.n_points, 100 * result->link_fit.median_error);
	if (result->kernel_fit.n_points)
		sw_text_addf(text, " Kernels: %d points, within %.1f %%.",
		             result->kernel_fit.n_points, 100 * result->kernel_fit.median_error);
	sw_text_add(text, "\n");
}

/* Read the text back before it is written, so that no file is left that the reader refuses. */
static sw_status write_cluster(const cli *c, const sw_calibrate_result *result, sw_error *err)
{
	sw_text text = {0};
	sw_cluster again;
	add_header(c, result, &text);
	sw_cluster_print(&result->cluster, &text);
	sw_status status = sw_cluster_parse(text.data, text.len, c->values.output, &again, err);
	if (status == SW_OK) {
		sw_cluster_clear(&again);
		status = sw_file_write(c->values.output, text.data, text.len, err);
	}
	sw_text_clear(&text);
	return status;
}

static sw_status write_plot(const cli *c, const sw_calibrate_result *result, sw_error *err)
{
	sw_text svg = {0};
	if (!c->values.plot)
		return SW_OK;
	calibrate_plot(result, &svg);
	sw_status status = sw_file_write(c->values.plot, svg.data, svg.len, err);
	sw_text_clear(&svg);
	return status;
}

static sw_status write_answer(cli *c, const sw_calibrate_result *result, sw_error *err)
{
	sw_text text = {0};
	sw_status status = write_cluster(c, result, err);
	if (status == SW_OK)
		status = write_plot(c, result, err);
	if (status != SW_OK)
		return status;
	c->result = calibrate_json(result);
	calibrate_describe(result, c->values.verbose, &text);
	if (strcmp(c->values.output, "-") != 0)
		cli_print(c, &text);
	sw_text_clear(&text);
	return SW_OK;
}

/* ---- one rank --------------------------------------------------------------------------- */

/* What kernels take is measured of one kind of device. */
static sw_status read_shape(const cli *c, sw_cluster *shape, sw_error *err)
{
	SW_TRY(cli_read_cluster_named(c->values.cluster, shape, err));
	if (!shape->n_kinds)
		return SW_OK;
	sw_status status =
		sw_fail_at(err, SW_ERR_INPUT, c->values.cluster, 0, 0,
	                   "devices of several kinds: calibrate each kind by itself, on a part "
	                   "of the cluster, and put the figures together");
	sw_cluster_clear(shape);
	return status;
}

static sw_status load_shape(const cli *c, sw_transport *transport, sw_cluster *shape, sw_error *err)
{
	if (!c->values.cluster)
		return sw_calibrate_shape(transport, shape, err);
	return transport->ops->agree(transport, read_shape(c, shape, err), err);
}

/* Read the load average before our own ranks are at work. */
static void note_load(const cli *c)
{
	double load;
	if (getloadavg(&load, 1) == 1 && load > BUSY_LOAD_PER_CORE * sw_cpu_count())
		cli_note(c,
		         "this machine is busy (load %.1f on %d cores): what is measured is in "
		         "part its scheduler",
		         load, sw_cpu_count());
}

static sw_status calibrate_agreed(calibration_job *j, sw_transport *transport, sw_error *err)
{
	sw_cluster shape = {0};
	sw_calibrate_result result = {0};
	const sw_calibrate_options options = options_of(j);
	sw_status status = load_shape(j->c, transport, &shape, err);
	if (status == SW_OK && transport->rank == 0)
		note_load(j->c);
	if (status == SW_OK) {
		status = sw_calibrate(transport, &shape, &options, &result, err);
		if (transport->rank == 0)
			sw_progress_end(&j->progress);
		if (status == SW_OK)
			status = transport->ops->agree(
				transport,
				transport->rank == 0 ? write_answer(j->c, &result, err) : SW_OK,
				err);
		sw_calibrate_result_clear(&result);
	}
	sw_cluster_clear(&shape);
	return status;
}

/* Ranks agree on the status before they return, and a rank that fails alone has failed the
 * transport by then. So this returns SW_OK, and the status of the job is kept in the context. */
static sw_status calibrate_rank(void *context, sw_transport *transport, sw_error *err)
{
	calibration_job *j = context;
	sw_status status = calibrate_agreed(j, transport, err);
	if (j->c->transport || transport->rank == 0) {
		j->status = status;
		j->err = *err;
	}
	return SW_OK;
}

/* ---- the command ------------------------------------------------------------------------ */

static sw_status check_options(const cli *c, sw_error *err)
{
	const cli_values *v = &c->values;
	if (!v->output)
		return sw_fail(err, SW_ERR_INPUT,
		               "calibrate: where is the cluster file to go? Give -o CLUSTER.yaml");
	if (v->no_links && v->no_kernels)
		return sw_fail(err, SW_ERR_INPUT,
		               "calibrate: --no-links and --no-kernels leave nothing to measure");
	if ((v->no_links || v->no_kernels) && !v->cluster)
		return sw_fail(
			err, SW_ERR_INPUT,
			"calibrate: what is left out keeps its figures: give --cluster FILE, which "
			"has them");
	if (c->transport && v->ranks)
		return sw_fail(err, SW_ERR_INPUT,
		               "--ranks is for one process without mpirun: leave it out");
	if (v->ranks > 4096)
		return sw_fail(err, SW_ERR_INPUT, "--ranks: at most 4096 threads");
	sw_status status = cli_check_writable(c, v->output, err);
	return status == SW_OK ? cli_check_writable(c, v->plot, err) : status;
}

static sw_status run(cli *c, sw_error *err)
{
	calibration_job j = {.c = c};
	sw_status status = check_options(c, err);
	if (status != SW_OK)
		return status;
	cli_watch_signals(c, NULL);
	sw_progress_start(&j.progress, "calibrating",
	                  c->values.quiet || c->values.verbose || !cli_speaks(c));
	status = c->transport ? calibrate_rank(&j, c->transport, err)
	                      : sw_ranks_run((int32_t)SW_MAX(c->values.ranks, 1), calibrate_rank,
	                                     &j, err);
	sw_progress_end(&j.progress);
	if (status == SW_OK && j.status != SW_OK)
		*err = j.err;
	return status == SW_OK ? j.status : status;
}

static const char *const options[] = {"--cluster",  "-o",           "--time-limit",
                                      "--no-links", "--no-kernels", "--pace",
                                      "--plot",     "--ranks",      NULL};
const cli_command cli_calibrate = {
	.name = "calibrate",
	.summary =
		"measure links and kernels of the ranks, fit the cost model, write a cluster file",
	.details =
		"Under mpirun each process is a rank. Alone, --ranks N makes N threads the ranks. "
		"Without --cluster, ranks that\n"
		"share a host are the devices of a node. Ctrl-C ends it, and nothing is written.",
	.example =
		"mpirun -n 8 shardwright calibrate --cluster clusters/local-2x4.yaml -o here.yaml "
		"--plot here.svg",
	.options = options,
	.computes = true,
	.run = run,
};
