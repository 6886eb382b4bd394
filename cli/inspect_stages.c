/* The part of inspect about stages: how a step would be cut into a pipeline. */
#include "cli.h"

#include <stdlib.h>

#include "stages/stages.h"

/* By which an op's seconds are estimated: only their ratio moves the cuts. */
static const sw_remat_device device = {.flops_per_s = 100e12, .bytes_per_s = 2e12};
/* A stage may have this much more than the least possible maximum, where fewer bytes cross then. */
#define TOLERANCE 0.05

static void add_stages(const sw_stages *s, sw_text *text)
{
	static const char *const heads[] = {"stage", "work",        "forward",
	                                    "FLOP",  "to the next", "back from it"};
	double total_s = 0;
	sw_table table;
	for (int32_t i = 0; i < s->n_stages; i++)
		total_s += s->loads[i].forward_s + s->loads[i].backward_s;
	sw_text_addf(text,
	             "\n%d stages, %d microbatches: cut at %d places of %d; %d of %d parameters in "
	             "several stages; %d round%s of the optimizer\n",
	             s->n_stages, s->n_microbatches, s->n_stages - 1, s->n_positions - 1,
	             s->n_shared, s->n_parameters, s->n_rounds, s->n_rounds == 1 ? "" : "s");
	sw_table_init(&table, SW_COUNT(heads), heads);
	for (int32_t i = 0; i < s->n_stages; i++) {
		const sw_stage_load *load = &s->loads[i];
		double seconds = load->forward_s + load->backward_s;
		sw_table_cell(&table, "%d", i);
		sw_table_cell(&table, "%.1f %%", total_s > 0 ? 100 * seconds / total_s : 0);
		sw_table_cell(&table, "%.1f %%", seconds > 0 ? 100 * load->forward_s / seconds : 0);
		sw_table_cell_number(&table, sw_text_add_count, load->flops);
		sw_table_cell_number(&table, sw_text_add_bytes, (double)load->forward_bytes);
		sw_table_cell_number(&table, sw_text_add_bytes, (double)load->backward_bytes);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static json_t *stages_json(const sw_stages *s)
{
	json_t *loads = json_array();
	for (int32_t i = 0; i < s->n_stages; i++)
		json_array_append_new(
			loads,
			json_pack("{s:f, s:f, s:f, s:I, s:I}", "forward_s", s->loads[i].forward_s,
		                  "backward_s", s->loads[i].backward_s, "flops", s->loads[i].flops,
		                  "forward_bytes", (json_int_t)s->loads[i].forward_bytes,
		                  "backward_bytes", (json_int_t)s->loads[i].backward_bytes));
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o}", "microbatches", s->n_microbatches,
	                 "positions", s->n_positions, "parameters", s->n_parameters, "shared",
	                 s->n_shared, "rounds", s->n_rounds, "stages", loads);
}

/* The number of --microbatches, or the least that is possible. */
static sw_status find_microbatches(const cli *c, const sw_program *canonical,
                                   const sw_sidecar *sidecar, int32_t *microbatches, sw_error *err)
{
	const char *text = c->values.microbatches;
	char *end = NULL;
	long n = text ? strtol(text, &end, 10) : 0;
	if (text && (end == text || *end || n < 2 || n > INT32_MAX))
		return sw_fail(err, SW_ERR_INPUT, "--microbatches %s: expected a number from 2",
		               text);
	if (text) {
		*microbatches = (int32_t)n;
		return SW_OK;
	}
	sw_phases phases;
	sw_phases_init(&phases, canonical, sidecar);
	*microbatches = SW_MAX(phases.microbatches, 2);
	sw_phases_clear(&phases);
	return SW_OK;
}

static sw_status inspect_stages(cli *c, const sw_program *canonical, const sw_sidecar *sidecar,
                                sw_text *text, json_t *json, sw_error *err)
{
	sw_stage_options options = {.device = device, .tolerance = TOLERANCE};
	sw_program *looped = NULL;
	sw_stages stages;
	int32_t microbatches = 0;
	if (c->values.stages < 1 || c->values.stages > 65536)
		return sw_fail(err, SW_ERR_INPUT, "--stages: expected a number from 1 to 65536");
	options.n_stages = (int32_t)c->values.stages;
	sw_status status = find_microbatches(c, canonical, sidecar, &microbatches, err);
	if (status == SW_OK)
		status = sw_rewrite_microbatches(canonical, sidecar, microbatches, &looped, err);
	if (status == SW_OK)
		status = sw_stages_init(&stages, looped, &options, err);
	if (status == SW_OK) {
		add_stages(&stages, text);
		json_object_set_new(json, "pipeline", stages_json(&stages));
		sw_stages_clear(&stages);
	}
	sw_program_free(looped);
	return status;
}

/* Plans with stages take stacks of layers apart. */
sw_status cli_inspect_stages(cli *c, const sw_program *canonical, const sw_sidecar *sidecar,
                             sw_text *text, json_t *json, sw_error *err)
{
	sw_program *apart;
	sw_sidecar own = {0};
	SW_TRY(sw_rewrite_layers_apart(canonical, sidecar, &apart, &own, err));
	sw_status status = inspect_stages(c, apart ? apart : canonical, apart ? &own : sidecar,
	                                  text, json, err);
	sw_program_free(apart);
	sw_sidecar_clear(&own);
	return status;
}
