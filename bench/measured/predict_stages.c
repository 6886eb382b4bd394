/* What is predicted for a configuration with pipeline stages: stages on equal slices of the devices,
 * the outermost, cut as the framework cuts, else by the seconds of their ops; each planned with the
 * row's data and tensor parallelism; one forward, one backward, interleaved where ranks have several
 * stages. */
#include "measured.h"

/* Plans are made without regard to memory, and then held against it, as those without stages. */
#define AMPLE_BYTES (INT64_C(1) << 50)

static void add_rank(const configuration *c, int32_t rank, int64_t bytes, bool fits, prediction *p)
{
	if (rank == 0 || !c->first_rank)
		p->peak_bytes = SW_MAX(p->peak_bytes, bytes);
	p->fits = p->fits && fits;
}

/* Under Nanotron a rank has one stage. Add the ranks whose stages are like this one, of which `own` is the
 * program. */
static void add_alike(const sw_pipelined *plan, const configuration *c, int32_t like,
                      const sw_stage_program *own, prediction *p)
{
	const sw_planned_stage *s = &plan->stages[like];
	device_program d = {.program = own->program,
	                    .part = own->part,
	                    .loop = own->loop};
	add_weights(&d, &s->sidecar, &s->step);
	for (int32_t r = like; r < plan->n_ranks; r++) {
		if (plan->stages[r].like != like)
			continue;
		bool fits;
		d.in_flight = sw_pipelined_in_flight(plan, r);
		d.receives = r > 0;
		d.is_sent = r + 1 < plan->n_ranks;
		int64_t bytes = play_memory(c, &d, s->plan->cluster, &fits);
		add_rank(c, r, bytes, fits, p);
	}
	if (like == 0)
		p->seconds += zero1_seconds(c, &d, s->plan->cluster);
	sw_vec_clear(&d.weights);
}

static void take_figures(const sw_pipelined *plan, const configuration *c, prediction *p)
{
	const sw_device *device = &plan->cluster->device;
	p->seconds = plan->played.step_s;
	p->fits = true;
	for (int32_t r = 0; r < plan->n_ranks; r++) {
		const sw_planned_stage *s = &plan->stages[r];
		sw_stage_program own = {0};
		sw_error ignored;
		if (!c->nanotron) {
			int64_t bytes = (int64_t)plan->played.ranks[r].peak_bytes +
			                (int64_t)device->reserved_bytes;
			add_rank(c, r, bytes, bytes <= device->memory_bytes, p);
		} else if (s->like == r &&
		           sw_stage_schedule(s->plan, &s->step, &plan->cut, &own, &ignored) == SW_OK)
			add_alike(plan, c, r, &own, p);
		sw_stage_program_clear(&own);
	}
}

/* Megatron's stages have as many layers each. */
static void even_stages(const configuration *c, sw_stage_file *file)
{
	int64_t n = c->pp * c->chunks;
	*file = (sw_stage_file){.path = "Megatron's stages", .n_stages = (int32_t)n};
	sw_arena_init(&file->arena);
	file->entries = SW_NEW_N(&file->arena, sw_stage_file_entry, c->layers_again);
	for (int64_t i = 0; i < c->layers_again; i++)
		file->entries[file->n_entries++] = (sw_stage_file_entry){
			.pattern = sw_arena_printf(&file->arena, "params.blocks.%lld.*", (long long)i),
			.stage = (int32_t)(i * n / c->layers_again)};
}

void predict_stages(const subject *s, const sw_cluster *cluster, const configuration *c,
                    prediction *p)
{
	bool interleaved = c->chunks > 1;
	sw_pin list[MAX_VOCABULARY_PINS];
	const sw_pins pins = {.file = "vocabulary",
	                      .n = pin_vocabulary(s, c, list),
	                      .list = list,
	                      .of_parts = true};
	sw_pipelined_options options = {.n_stages = (int32_t)c->pp,
	                                .microbatches = (int32_t)c->microbatches,
	                                .schedule = interleaved ? SW_INTERLEAVED_1F1B : SW_1F1B,
	                                .n_chunks = interleaved ? (int32_t)c->chunks : 0,
	                                .plan = {.pins = &pins,
	                                         .no_overlap = true,
	                                         .memory_bytes = AMPLE_BYTES,
	                                         .remat = c->remat ? "blocks of 2" : "none",
	                                         .quiet = true}};
	sw_pipelined *plan = NULL;
	sw_stage_file file;
	sw_error err = {0};
	if (c->layers_again)
		even_stages(c, &file);
	else
		nanotron_stages(c, s, &file);
	options.file = file.n_entries > 0 ? &file : NULL;
	*p = (prediction){.interval = cluster->device.prediction_error};
	configuration_strategy(c, &options.plan.strategy);
	sw_status status = sw_pipelined_make(s->program, s->path, &s->sidecar, cluster, &options,
	                                     &plan, &err);
	p->supported = status == SW_OK;
	if (status == SW_OK)
		take_figures(plan, c, p);
	else
		sw_text_cut(err.message, p->note, sizeof(p->note));
	sw_pipelined_free(plan);
	sw_stage_file_clear(&file);
}
