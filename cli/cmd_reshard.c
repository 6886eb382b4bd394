/* reshard: a tensor from one mesh to another. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include "run/reshard.h"

/* rows of the table of phases, and columns of the timeline, without -v */
#define ROWS 24
#define COLUMNS 64

/* All that a transfer is about. */
typedef struct transfer {
	cli *c;
	sw_cluster cluster;
	sw_shape shape;
	sw_crossmesh_side from, to;
	sw_crossmesh_options options;
	sw_crossmesh_plan *plan;
	/* of each strategy alone, in the same order */
	sw_crossmesh_plan *each[SW_CROSSMESH_STRATEGIES];
	sw_reshard_result measured;
	bool executed;
} transfer;

/* ---- input ------------------------------------------------------------------------------ */

static sw_status need(const char *value, const char *option, const char *example, sw_error *err)
{
	return value ? SW_OK
	             : sw_fail(err, SW_ERR_INPUT, "%s is missing, such as %s %s", option, option,
	                       example);
}

static sw_status check_given(const cli_values *v, sw_error *err)
{
	const struct {
		const char *value, *option, *example;
	} needed[] = {{v->from, "--from", "S0RR@2x4:0-7"},
	              {v->to, "--to", "RS0R@2x4:8-15"},
	              {v->shape, "--shape", "f32[1024,1024,512]"},
	              {v->cluster, "--cluster", "clusters/aws-p3-8xlarge.yaml"}};
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(needed) && status == SW_OK; i++)
		status = need(needed[i].value, needed[i].option, needed[i].example, err);
	if (status == SW_OK && !v->execute && (v->ranks || v->repeat))
		status = sw_fail(err, SW_ERR_INPUT, "--ranks and --repeat go with --execute");
	return status;
}

static sw_status read_side(transfer *t, const char *option, const char *text,
                           sw_crossmesh_side *side, sw_error *err)
{
	sw_error own = {0};
	sw_status status =
		sw_crossmesh_parse_side(text, t->shape, &t->cluster, &t->c->arena, side, &own);
	return status ? sw_fail(err, status, "%s: %s", option, own.message) : SW_OK;
}

static sw_status read_options(transfer *t, sw_error *err)
{
	const cli_values *v = &t->c->values;
	sw_status status = SW_OK;
	t->options = sw_crossmesh_defaults();
	if (v->strategy)
		status = sw_crossmesh_parse_strategy(v->strategy, &t->options.strategy, err);
	if (status == SW_OK && v->order)
		status = sw_crossmesh_parse_order(v->order, &t->options.order, err);
	if (status == SW_OK && (v->chunks > INT32_MAX || v->pieces > 4096))
		status = sw_fail(err, SW_ERR_INPUT,
		                 "--chunks and --pieces: expected at most %d and 4096", INT32_MAX);
	t->options.chunks = (int32_t)v->chunks;
	t->options.pieces = (int32_t)v->pieces;
	t->options.work_limit = v->work_limit;
	t->options.time_limit_s = v->time_limit;
	t->options.seed = (uint64_t)v->seed;
	return status;
}

static sw_status read_transfer(transfer *t, sw_error *err)
{
	const cli_values *v = &t->c->values;
	sw_error own = {0};
	sw_status status = sw_crossmesh_parse_shape(v->shape, &t->c->arena, &t->shape, &own);
	if (status)
		return sw_fail(err, status, "--shape: %s", own.message);
	status = read_options(t, err);
	if (status == SW_OK)
		status = read_side(t, "--from", v->from, &t->from, err);
	if (status == SW_OK)
		status = read_side(t, "--to", v->to, &t->to, err);
	return status;
}

/* ---- plans ------------------------------------------------------------------------------ */

static sw_status plan(transfer *t, sw_error *err)
{
	sw_crossmesh_options options = t->options;
	sw_status status = sw_crossmesh_plan_make(&t->cluster, &t->from, &t->to, t->shape, &options,
	                                          &t->plan, err);
	for (int s = 0; s < SW_CROSSMESH_STRATEGIES && status == SW_OK; s++) {
		options.strategy = (sw_crossmesh_strategy)s;
		status = sw_crossmesh_plan_make(&t->cluster, &t->from, &t->to, t->shape, &options,
		                                &t->each[s], err);
	}
	return status;
}

static sw_status execute(transfer *t, sw_error *err)
{
	const cli_values *v = &t->c->values;
	sw_reshard_options options = {.repeat = SW_MAX(v->repeat, 1), .seed = (uint64_t)v->seed};
	t->executed = true;
	if (t->c->transport)
		return sw_run_reshard(&t->cluster, t->plan, t->c->transport, &options, &t->measured,
		                      err);
	if (v->ranks != t->cluster.n_devices)
		return sw_fail(err, SW_ERR_INPUT,
		               "--execute: the cluster has %" PRId64
		               " devices: start it with mpirun -n %" PRId64
		               ", or add --ranks %" PRId64 " for threads",
		               t->cluster.n_devices, t->cluster.n_devices, t->cluster.n_devices);
	return sw_run_reshard_local(&t->cluster, t->plan, &options, &t->measured, err);
}

/* ---- results ---------------------------------------------------------------------------- */

static void add_gap(const sw_crossmesh_plan *p, sw_text *text)
{
	if (p->bound.seconds > 0)
		sw_text_addf(text, ", %.1f %% over the bound", 100 * sw_crossmesh_gap(p));
}

static void describe_transfer(const transfer *t, sw_text *text)
{
	const sw_crossmesh_plan *p = t->plan;
	sw_text_add(text, "transfer  ");
	sw_shape_print(t->shape, text);
	sw_text_add(text, ", ");
	sw_text_add_bytes(text, (double)sw_shape_bytes(t->shape));
	sw_text_add(text, ": ");
	sw_crossmesh_print_side(&t->from, t->shape, text);
	sw_text_add(text, " -> ");
	sw_crossmesh_print_side(&t->to, t->shape, text);
	sw_text_addf(text, "\nplan      %s, %s order, %d slice%s, %d task%s: ",
	             sw_crossmesh_strategy_name(p->strategy), sw_crossmesh_order_name(p->order),
	             p->n_slices, p->n_slices == 1 ? "" : "s", p->n_tasks,
	             p->n_tasks == 1 ? "" : "s");
	sw_text_add_seconds(text, p->seconds);
	add_gap(p, text);
	sw_text_add(text, "\nbound     ");
	sw_text_add_seconds(text, p->bound.seconds);
	sw_text_add(text, ": ");
	sw_crossmesh_print_bound(&t->cluster, &p->bound, text);
	sw_text_add(text, "\n");
}

static void describe_strategies(const transfer *t, sw_text *text)
{
	static const char *const heads[] = {"strategy", "order",          "tasks",
	                                    "time",     "over the bound", "of the plan"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(heads), heads);
	for (int s = 0; s < SW_CROSSMESH_STRATEGIES; s++) {
		const sw_crossmesh_plan *p = t->each[s];
		sw_table_cell(&table, "%s", sw_crossmesh_strategy_name(p->strategy));
		sw_table_cell(&table, "%s", sw_crossmesh_order_name(p->order));
		sw_table_cell(&table, "%d", p->n_tasks);
		sw_table_cell_number(&table, sw_text_add_seconds, p->seconds);
		sw_table_cell(&table, "%.1f %%", 100 * sw_crossmesh_gap(p));
		sw_table_cell(&table, "%.2f",
		              t->plan->seconds > 0 ? p->seconds / t->plan->seconds : 1);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static void describe_measured(const transfer *t, sw_text *text)
{
	const sw_reshard_result *m = &t->measured;
	sw_text_add(text, "\nmeasured  ");
	sw_text_add_seconds(text, m->seconds);
	if (t->c->values.repeat > 1) {
		sw_text_add(text, " (");
		sw_text_add_seconds(text, m->least_s);
		sw_text_add(text, " to ");
		sw_text_add_seconds(text, m->most_s);
		sw_text_addf(text, ", median of %" PRId64 ")", t->c->values.repeat);
	}
	sw_text_addf(text, "; all %" PRId64 " elements of the target are right; ", m->checked);
	sw_text_add_bytes(text, (double)m->wire_bytes);
	sw_text_add(text, " were sent\n");
}

static void describe(const transfer *t, sw_text *text)
{
	bool all = t->c->values.verbose;
	describe_transfer(t, text);
	if (t->executed)
		describe_measured(t, text);
	sw_text_add(text, "\n");
	sw_crossmesh_print_phases(t->plan, all ? 0 : ROWS, text);
	sw_text_add(text, "\nlinks, with the last digit of the task that uses them:\n");
	sw_crossmesh_print_timeline(&t->cluster, t->plan, all ? 2 * COLUMNS : COLUMNS, text);
	sw_text_add(text, "\n");
	describe_strategies(t, text);
}

static json_t *phase_json(const sw_crossmesh_plan *p, const sw_crossmesh_phase *phase)
{
	static const char *const kinds[] = {"chain", "scatter", "gather"};
	const sw_unit_task *task = &p->tasks[phase->task];
	json_t *members = json_array();
	for (int32_t m = 0; m < phase->n_members; m++)
		json_array_append_new(members, json_integer(phase->members[m]));
	return json_pack("{s:f, s:f, s:i, s:i, s:s, s:I, s:i, s:i, s:o}", "start_s", phase->start_s,
	                 "end_s", sw_crossmesh_phase_end(phase), "task", phase->task, "slice",
	                 task->slice, "kind", kinds[phase->kind], "bytes", (json_int_t)task->bytes,
	                 "chunks", phase->chunks, "terms", phase->n_terms, "devices", members);
}

static json_t *result_json(const transfer *t)
{
	const sw_crossmesh_plan *p = t->plan;
	json_t *phases = json_array(), *strategies = json_object();
	for (int32_t i = 0; i < p->n_phases; i++)
		json_array_append_new(phases, phase_json(p, &p->phases[i]));
	for (int s = 0; s < SW_CROSSMESH_STRATEGIES; s++)
		json_object_set_new(strategies,
		                    sw_crossmesh_strategy_name((sw_crossmesh_strategy)s),
		                    json_real(t->each[s]->seconds));
	json_t *object =
		json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:o, s:o}", "strategy",
	                  sw_crossmesh_strategy_name(p->strategy), "order",
	                  sw_crossmesh_order_name(p->order), "slices", p->n_slices, "tasks",
	                  p->n_tasks, "seconds", p->seconds, "bound_s", p->bound.seconds, "gap",
	                  sw_crossmesh_gap(p), "strategies", strategies, "phases", phases);
	if (t->executed)
		json_object_set_new(object, "measured",
		                    json_pack("{s:f, s:f, s:f, s:I, s:I}", "seconds",
		                              t->measured.seconds, "least_s", t->measured.least_s,
		                              "most_s", t->measured.most_s, "wire_bytes",
		                              (json_int_t)t->measured.wire_bytes, "checked",
		                              (json_int_t)t->measured.checked));
	return object;
}

/* ---- the command ------------------------------------------------------------------------ */

static sw_status agree(const cli *c, sw_status status, sw_error *err)
{
	return c->transport ? c->transport->ops->agree(c->transport, status, err) : status;
}

static sw_status reshard(cli *c, sw_error *err)
{
	transfer t = {.c = c};
	sw_text text = {0};
	sw_status status = check_given(&c->values, err);
	if (status == SW_OK)
		status = cli_read_cluster(c, c->values.cluster, &t.cluster, err);
	bool have_cluster = status == SW_OK;
	if (status == SW_OK)
		status = read_transfer(&t, err);
	if (status == SW_OK)
		status = plan(&t, err);
	status = agree(c, status, err);
	if (status == SW_OK && c->values.execute)
		status = execute(&t, err);
	if (status == SW_OK) {
		c->result = result_json(&t);
		describe(&t, &text);
		cli_print(c, &text);
	}
	sw_crossmesh_plan_free(t.plan);
	for (int s = 0; s < SW_CROSSMESH_STRATEGIES; s++)
		sw_crossmesh_plan_free(t.each[s]);
	if (have_cluster)
		sw_cluster_clear(&t.cluster);
	return status;
}

static const char *const options[] = {"--from",    "--to",         "--shape",      "--cluster",
                                      "--devices", "--strategy",   "--order",      "--chunks",
                                      "--pieces",  "--work-limit", "--time-limit", "--seed",
                                      "--execute", "--ranks",      "--repeat",     NULL};
const cli_command cli_reshard = {
	.name = "reshard",
	.argument = NULL,
	.summary = "a tensor from one mesh of devices to another: who sends what to whom, and when",
	.details =
		"The paper's strategies and orders for cross-mesh resharding beside a lower "
		"bound (docs/reshard.md). Under mpirun,\n"
		"--execute moves the bytes, rank r for device r; alone, --ranks N makes N threads "
		"the ranks.",
	.example = "shardwright reshard --from RS0R@2x4:0-7 --to S0RR@2x4:8-15 --shape "
		   "f32[1024,1024,512] --cluster clusters/aws-p3-8xlarge.yaml",
	.options = options,
	.run = reshard,
};
