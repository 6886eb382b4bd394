#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "run/ranks.h"
#include "simulate/served_play.h"

/* maximum number of ranks in a trace */
#define MAX_TRACED_RANKS 16
/* number of ranks whose bars are drawn without -v */
#define MAX_DRAWN_RANKS 16
#define BAR_WIDTH 60

/* The parts of a rank's time, in the order of the bar. */
static const struct {
	const char *label, *key;
	size_t offset;
	char mark; /* in the bar; 0: not drawn, since it runs beside kernels */
} PARTS[] = {
	{"compute", "compute_s", offsetof(sw_breakdown, compute_s), '#'},
	{"exposed communication", "exposed_comm_s", offsetof(sw_breakdown, exposed_comm_s), '='},
	{"idle", "idle_s", offsetof(sw_breakdown, idle_s), '.'},
	{"hidden communication", "hidden_comm_s", offsetof(sw_breakdown, hidden_comm_s), 0},
};

static double seconds_of(const sw_breakdown *breakdown, size_t part)
{
	double seconds;
	memcpy(&seconds, (const char *)breakdown + PARTS[part].offset, sizeof(seconds));
	return seconds;
}

/* ---- results ---------------------------------------------------------------------------- */

static void add_parts(json_t *object, const sw_breakdown *breakdown)
{
	for (size_t p = 0; p < SW_COUNT(PARTS); p++)
		json_object_set_new(object, PARTS[p].key, json_real(seconds_of(breakdown, p)));
}

static json_t *result_json(const sw_simulation *played)
{
	json_t *ranks = json_array();
	json_t *object = json_pack("{s:f, s:I}", "step_time_s", played->step_time_s, "peak_bytes",
	                           (json_int_t)played->peak_bytes);
	add_parts(object, &played->mean);
	for (int64_t r = 0; r < played->n_ranks; r++) {
		json_t *row = json_object();
		add_parts(row, &played->ranks[r]);
		json_array_append_new(ranks, row);
	}
	json_object_set_new(object, "ranks", ranks);
	return object;
}

/* Round the ends of the parts and not their lengths, so that all bars are equally long. */
static void draw_bar(const sw_breakdown *breakdown, double step_time_s, sw_text *text)
{
	double end = 0;
	int drawn = 0;
	sw_text_add(text, "|");
	for (size_t p = 0; p < SW_COUNT(PARTS); p++) {
		if (!PARTS[p].mark)
			continue;
		end += seconds_of(breakdown, p);
		for (; drawn < BAR_WIDTH && drawn + 0.5 < end / step_time_s * BAR_WIDTH; drawn++)
			sw_text_add_n(text, &PARTS[p].mark, 1);
	}
	for (; drawn < BAR_WIDTH; drawn++)
		sw_text_add(text, " ");
	sw_text_add(text, "|\n");
}

static bool ranks_differ(const sw_simulation *played)
{
	for (int64_t r = 1; r < played->n_ranks; r++)
		if (memcmp(&played->ranks[r], &played->ranks[0], sizeof(played->ranks[r])) != 0)
			return true;
	return false;
}

static void draw_ranks(const sw_simulation *played, bool all, sw_text *text)
{
	int64_t shown = all ? played->n_ranks : SW_MIN(played->n_ranks, MAX_DRAWN_RANKS);
	if (!ranks_differ(played)) {
		sw_text_add(text, "  every rank  ");
		draw_bar(&played->mean, played->step_time_s, text);
		return;
	}
	for (int64_t r = 0; r < shown; r++) {
		sw_text_addf(text, "  rank %5" PRId64 "  ", r);
		draw_bar(&played->ranks[r], played->step_time_s, text);
	}
	if (shown < played->n_ranks)
		sw_text_addf(text, "  ... and %" PRId64 " more: -v shows them\n",
		             played->n_ranks - shown);
}

static void describe(const sw_cluster *cluster, const sw_simulation *played, bool all,
                     sw_text *text)
{
	sw_text_add(text, "step time              ");
	sw_text_add_seconds(text, played->step_time_s);
	sw_cost_add_interval(&cluster->device, played->step_time_s, text);
	sw_text_addf(text, " on %" PRId64 " rank%s\n", played->n_ranks,
	             played->n_ranks == 1 ? "" : "s");
	for (size_t p = 0; p < SW_COUNT(PARTS); p++) {
		double seconds = seconds_of(&played->mean, p);
		sw_text_addf(text, "%-21s  ", PARTS[p].label);
		sw_text_add_seconds(text, seconds);
		if (played->step_time_s > 0)
			sw_text_addf(text, ", %.1f %%", 100 * seconds / played->step_time_s);
		if (PARTS[p].mark)
			sw_text_addf(text, "  %c", PARTS[p].mark);
		sw_text_add(text, "\n");
	}
	sw_text_add(text, "peak                   ");
	sw_text_add_bytes(text, (double)played->peak_bytes);
	sw_text_add(text, " of tensors per rank\n\n");
	if (played->step_time_s > 0)
		draw_ranks(played, all, text);
}

/* ---- the command ------------------------------------------------------------------------ */

static bool same_shape(const sw_cluster *a, const sw_cluster *b)
{
	return a->n_devices == b->n_devices && a->n_levels == b->n_levels &&
	       a->atoms.n == b->atoms.n &&
	       memcmp(a->atoms.size, b->atoms.size,
	              (size_t)a->atoms.n * sizeof(a->atoms.size[0])) == 0 &&
	       memcmp(a->place, b->place,
	              (size_t)(a->n_devices * a->n_levels) * sizeof(a->place[0])) == 0;
}

/* Read --cluster FILE: the plan is simulated with the figures of another cluster of the same
 * shape. */
static sw_status read_other(const cli *c, const sw_cluster *planned, sw_cluster *other,
                            sw_error *err)
{
	sw_status status = cli_read_cluster(c, c->values.cluster, other, err);
	if (status != SW_OK || same_shape(planned, other))
		return status;
	sw_cluster_clear(other);
	return sw_fail_at(err, SW_ERR_INPUT, c->values.cluster, 0, 0,
	                  "the plan is for a cluster of another shape: expected %" PRId64
	                  " devices on %d levels, divided as in '%s'",
	                  planned->n_devices, planned->n_levels, planned->name);
}

/* Build the program that `run` executes. */
static sw_status schedule(const cli *c, const sw_plan *plan, sw_program **scheduled, sw_error *err)
{
	uint32_t overlap = SW_OVERLAP_ALL;
	sw_status status = SW_OK;
	if (c->values.overlap)
		status = sw_overlap_parse(c->values.overlap, &overlap, err);
	return status == SW_OK ? sw_ranks_program(plan, overlap, scheduled, err) : status;
}

static sw_status play(cli *c, const sw_cluster *cluster, const sw_program *scheduled, sw_error *err)
{
	sw_trace trace = {0};
	sw_simulation played;
	sw_text text = {0};
	sw_status status = sw_simulate(cluster, scheduled, c->values.trace ? &trace : NULL,
	                               MAX_TRACED_RANKS, &played, err);
	if (status == SW_OK && c->values.trace)
		status = sw_trace_write(&trace, "simulated", c->values.trace, err);
	if (status == SW_OK) {
		c->result = result_json(&played);
		json_object_set_new(c->result, "flops",
		                    json_real(sw_program_flops(scheduled)));
		describe(cluster, &played, c->values.verbose, &text);
		cli_print(c, &text);
	}
	sw_simulation_clear(&played);
	sw_trace_clear(&trace);
	return status;
}

/* ---- old values ------------------------------------------------------------------------- */

static json_t *stale_json(const sw_served_play *played)
{
	json_t *ranks = json_array();
	for (int64_t r = 0; r < played->n_ranks; r++)
		json_array_append_new(ranks, json_real(played->step_s[r]));
	return json_pack("{s:f, s:o, s:f, s:f, s:I, s:I, s:f}", "step_time_s", played->step_time_s,
	                 "ranks", ranks, "worker_s", played->worker_s, "update_s",
	                 played->update_s, "payload_bytes", (json_int_t)played->payload_bytes,
	                 "oldest", (json_int_t)played->oldest, "mean",
	                 played->mean_age);
}

static void describe_stale(const sw_served_play *played, int32_t servers, sw_text *text)
{
	double least = played->step_s[0], most = played->step_s[0];
	for (int64_t r = 1; r < played->n_ranks; r++) {
		least = SW_MIN(least, played->step_s[r]);
		most = SW_MAX(most, played->step_s[r]);
	}
	sw_text_add(text, "\nas variables are served, in the long run\nstep time              ");
	sw_text_add_seconds(text, played->step_time_s);
	sw_text_add(text, " from step to step; of the quickest rank ");
	sw_text_add_seconds(text, least);
	sw_text_add(text, ", of the slowest ");
	sw_text_add_seconds(text, most);
	sw_text_add(text, "\n  of a worker          ");
	sw_text_add_seconds(text, played->worker_s);
	sw_text_add(text, "\n  updates              ");
	sw_text_add_seconds(text, played->update_s);
	sw_text_addf(text,
	             " in a step, of the %s that does most\nsent                   ",
	             servers ? "server" : "owner");
	sw_text_add_bytes(text, (double)played->payload_bytes);
	sw_text_addf(text,
	             " in a step, by the rank that sends most\nbehind                 %.2g "
	             "updates when gradients are added, %" PRId64 " at most\n",
	             played->mean_age, played->oldest);
}

static sw_status read_straggler(const cli *c, const sw_plan *plan, cli_straggler *straggler,
                                sw_error *err)
{
	SW_TRY(cli_read_straggler(c, plan->cluster->n_devices, straggler, err));
	return straggler->seconds > 0 && !sw_forms_served(&plan->forms)
	               ? sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
	                            "--straggler: no variable of the plan may be stale, so that "
	                            "every step is as much longer: plan with --strategy "
	                            "ps:stale=S")
	               : SW_OK;
}

/* The step of a plan whose variables are served, cut for owners or servers. */
typedef struct cut_step {
	bool is_served;
	int32_t servers;
	sw_served served;
} cut_step;

static void cut_clear(cut_step *cut)
{
	if (cut->is_served)
		sw_served_clear(&cut->served);
}

static sw_status cut_step_of(const cli *c, const cli_plan *loaded, cut_step *cut, sw_error *err)
{
	SW_TRY(cli_count_servers(c, &cut->servers, err));
	if (!sw_forms_served(&loaded->plan->forms))
		return cli_check_served(c, loaded->plan, cut->servers, err);
	cut->is_served = true;
	return sw_served_cut_for(loaded->plan, &loaded->sidecar, cut->servers, &cut->served, err);
}

/* Play the ranks of such a plan. */
static sw_status play_served(cli *c, const cut_step *cut, const sw_cluster *cluster,
                             const cli_straggler *straggler, sw_error *err)
{
	sw_served_play played = {0};
	sw_text text = {0};
	if (!cut->is_served)
		return SW_OK;
	double *more_s = sw_alloc(sizeof(*more_s) * (size_t)cluster->n_devices);
	more_s[straggler->rank] = straggler->seconds;
	sw_status status = sw_served_play_steps(cluster, &cut->served, more_s, &played, err);
	if (status == SW_OK) {
		json_object_set_new(c->result, "stale", stale_json(&played));
		if (cut->servers)
			json_object_set_new(c->result, "servers", json_integer(cut->servers));
		describe_stale(&played, cut->servers, &text);
		cli_print(c, &text);
	}
	sw_text_clear(&text);
	sw_served_play_clear(&played);
	free(more_s);
	return status;
}

static sw_status simulate(cli *c, sw_error *err)
{
	cli_plan loaded;
	sw_cluster other = {0};
	cli_straggler straggler = {0};
	sw_program *scheduled = NULL;
	sw_status status = cli_check_move(c, err);
	if (status == SW_OK)
		status = cli_check_writable(c, c->values.trace, err);
	if (status)
		return status;
	status = cli_load_plan(c, c->argument, false, &loaded, err);
	if (status)
		return status;
	cut_step cut = {0};
	status = read_straggler(c, loaded.plan, &straggler, err);
	if (status == SW_OK)
		status = cut_step_of(c, &loaded, &cut, err);
	if (status == SW_OK && c->values.cluster)
		status = read_other(c, loaded.plan->cluster, &other, err);
	bool have_other = c->values.cluster && status == SW_OK;
	if (status == SW_OK)
		status = schedule(c, loaded.plan, &scheduled, err);
	if (status == SW_OK)
		status = play(c, have_other ? &other : loaded.plan->cluster, scheduled, err);
	if (status == SW_OK)
		status = play_served(c, &cut, have_other ? &other : loaded.plan->cluster,
		                     &straggler, err);
	cut_clear(&cut);
	sw_program_free(scheduled);
	if (have_other)
		sw_cluster_clear(&other);
	cli_plan_clear(&loaded);
	return status;
}

static const char *const options[] = {"--overlap", "--trace",   "--cluster", "--devices",
                                      "--straggler", "--servers", NULL};
const cli_command cli_simulate = {
	.name = "simulate",
	.argument = "PLAN",
	.summary = "play one step on the cluster model: step time, where it goes, memory, timeline",
	.details = "Kernels run in order, collectives in the order of their starts beside them; "
		   "collectives that are\n"
		   "under way at once share links.",
	.example = "shardwright simulate gpt.plan --trace gpt.trace.json",
	.options = options,
	.run = simulate,
};
