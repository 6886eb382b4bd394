/* Reads the index of a plan with stages. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pipelined/internal.h"
#include "plan/plan_file.h"

#define MOST_STAGES 65536

bool sw_pipelined_is_file(const char *path)
{
	char head[128] = {0};
	struct stat info;
	bool regular = stat(path, &info) == 0 && S_ISREG(info.st_mode);
	FILE *file = regular ? fopen(path, "r") : NULL; /* a pipe can be read only once */
	if (!file)
		return false;
	size_t n = fread(head, 1, sizeof(head) - 1, file);
	fclose(file);
	head[n] = '\0';
	return strstr(head, "\"" SW_STAGES_FORMAT "\"") != NULL;
}

typedef struct index_reader {
	sw_pipelined *p;
	json_t *root, *predicted;
	int64_t *devices; /* [n_stages]: of the slice of each */
	sw_error *err;
} index_reader;

static sw_status read_number(const index_reader *x, const char *key, int64_t least, int32_t *to)
{
	int64_t value;
	sw_status status = sw_json_get_int(x->predicted, key, "predicted", &value, x->err);
	if (status == SW_OK && (value < least || value > MOST_STAGES))
		return sw_fail(x->err, SW_ERR_INPUT,
		               "predicted.%s: expected a number from %lld to %d, found %lld", key,
		               (long long)least, MOST_STAGES, (long long)value);
	if (status == SW_OK)
		*to = (int32_t)value;
	return status;
}

/* The schedule that a file gave. */
static sw_status read_given(index_reader *x)
{
	sw_pipelined *p = x->p;
	const char *csv;
	SW_TRY(sw_json_get_text(x->root, "schedule_csv", "", &csv, x->err));
	SW_TRY(sw_pipeline_parse_csv(csv, strlen(csv), "schedule_csv", &p->given, x->err));
	if (p->given->n_ranks == p->n_ranks && p->given->n_stages == p->n_stages &&
	    p->given->n_microbatches == p->microbatches)
		return SW_OK;
	return sw_fail(x->err, SW_ERR_INPUT,
	               "schedule_csv: its ranks, stages or microbatches are not those of "
	               "\"predicted\"");
}

static sw_status read_head(index_reader *x, int32_t *schedule)
{
	const char *format, *name;
	int64_t version;
	sw_named_schedule which;
	SW_TRY(sw_json_get_text(x->root, "format", "", &format, x->err));
	SW_TRY(sw_json_get_int(x->root, "version", "", &version, x->err));
	if (strcmp(format, SW_STAGES_FORMAT) || version != SW_STAGES_VERSION)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "format %.40s, version %lld: expected %s, %d; make the plan again",
		               format, (long long)version, SW_STAGES_FORMAT, SW_STAGES_VERSION);
	SW_TRY(sw_json_get_text(x->root, "program", "", &name, x->err));
	x->p->program_path = sw_arena_text(&x->p->arena, name);
	SW_TRY(sw_json_get_object(x->root, "predicted", "", &x->predicted, x->err));
	SW_TRY(read_number(x, "n_stages", 1, &x->p->n_stages));
	SW_TRY(read_number(x, "n_slices", 1, &x->p->n_ranks));
	SW_TRY(read_number(x, "microbatches", 1, &x->p->microbatches));
	SW_TRY(sw_json_get_text(x->predicted, "schedule", "predicted", &name, x->err));
	x->p->searched = strcmp(name, SW_SEARCHED_SCHEDULE) == 0;
	if (!x->p->searched && strcmp(name, SW_GIVEN_SCHEDULE)) {
		SW_TRY(sw_pipeline_parse_name(name, &which, x->err));
		*schedule = (int32_t)which;
		x->p->placement = sw_pipeline_placement_of(which);
	} else {
		SW_TRY(read_given(x));
	}
	if (x->p->n_stages % x->p->n_ranks)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "predicted.n_stages: expected a multiple of n_slices, %d, found %d",
		               x->p->n_ranks, x->p->n_stages);
	const json_t *remat = json_object_get(x->predicted, "remat");
	if (json_is_string(remat))
		x->p->remat = sw_arena_text(&x->p->arena, json_string_value(remat));
	return sw_pipelined_check_schedule(*schedule, x->err);
}

static sw_status read_stage(index_reader *x, json_t *item, int32_t i)
{
	sw_planned_stage *s = &x->p->stages[i];
	char where[48];
	const char *text;
	int64_t devices, ops, like;
	const struct {
		const char *key;
		double *to;
	} seconds[] = {{"forward_s", &s->times.part_s[SW_STAGE_FORWARD]},
	               {"input_gradient_s", &s->times.part_s[SW_STAGE_INPUT_GRADIENT]},
	               {"weight_gradient_s", &s->times.part_s[SW_STAGE_WEIGHT_GRADIENT]},
	               {"update_s", &s->times.part_s[SW_STAGE_ONCE]},
	               {"send_forward_s", &s->send_forward_s},
	               {"send_backward_s", &s->send_backward_s}};
	snprintf(where, sizeof(where), "predicted.stages[%d]", i);
	if (!json_is_object(item))
		return sw_fail(x->err, SW_ERR_INPUT, "%s: expected an object", where);
	for (size_t k = 0; k < SW_COUNT(seconds); k++)
		SW_TRY(sw_json_get_real(item, seconds[k].key, where, seconds[k].to, x->err));
	SW_TRY(sw_json_get_int(item, "first_device", where, &s->first_device, x->err));
	SW_TRY(sw_json_get_int(item, "devices", where, &devices, x->err));
	SW_TRY(sw_json_get_int(item, "ops", where, &ops, x->err));
	SW_TRY(sw_json_get_int(item, "like", where, &like, x->err));
	SW_TRY(sw_json_get_text(item, "chosen", where, &text, x->err));
	s->chosen = sw_arena_text(&x->p->arena, text);
	SW_TRY(sw_json_get_text(item, "plan", where, &text, x->err));
	s->plan_path = sw_arena_text(&x->p->arena, text);
	if (like < 0 || like > i || devices < 1 || ops < 0)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s: expected an earlier stage in \"like\", and counts of devices "
		               "and ops",
		               where);
	x->devices[i] = devices;
	s->n_ops = (uint32_t)ops;
	s->like = (int32_t)like;
	return SW_OK;
}

static sw_status read_stages(index_reader *x)
{
	json_t *list;
	sw_pipelined *p = x->p;
	SW_TRY(sw_json_get_array(x->predicted, "stages", "predicted", &list, x->err));
	if (json_array_size(list) != (size_t)p->n_stages) {
		p->n_stages = 0;
		return sw_fail(x->err, SW_ERR_INPUT,
		               "predicted.stages: expected as many as n_stages, found %zu",
		               json_array_size(list));
	}
	p->stages = SW_NEW_N(&p->arena, sw_planned_stage, p->n_stages);
	x->devices = SW_NEW_N(&p->arena, int64_t, p->n_stages);
	for (int32_t i = 0; i < p->n_stages; i++)
		SW_TRY(read_stage(x, json_array_get(list, (size_t)i), i));
	return SW_OK;
}

/* The slices, of which only the numbers of devices are known. */
static void count_devices(index_reader *x)
{
	sw_pipelined *p = x->p;
	sw_cluster *slices = SW_NEW_N(&p->arena, sw_cluster, p->n_ranks);
	const sw_cluster **list = SW_NEW_N(&p->arena, const sw_cluster *, p->n_ranks);
	int64_t *first = SW_NEW_N(&p->arena, int64_t, p->n_ranks + 1);
	p->first_device = first;
	sw_pipelined_place_stages(p);
	for (int32_t i = 0; i < p->n_stages; i++)
		slices[p->stages[i].rank].n_devices = x->devices[i];
	for (int32_t r = 0; r < p->n_ranks; r++) {
		list[r] = &slices[r];
		first[r + 1] = first[r] + slices[r].n_devices;
	}
	p->slices = list;
	sw_pipelined_place_stages(p);
}

static sw_status read_costs(index_reader *x)
{
	json_t *costs;
	sw_pipelined *p = x->p;
	sw_pipeline_schedule *one = sw_pipeline_new(p->n_ranks, p->n_stages, p->microbatches, 1);
	sw_status status = sw_json_get_object(x->root, "costs", "", &costs, x->err);
	for (int32_t i = 0; i < p->n_stages; i++)
		one->rank_of_stage[i] = p->stages[i].rank;
	if (status == SW_OK)
		status = sw_pipeline_costs_of(costs, one, &p->arena, &p->costs, x->err);
	sw_pipeline_free(one);
	return status;
}

static sw_status read_index(index_reader *x)
{
	static const char *const keys[] = {"format", "version",   "program", "cluster",
	                                   "cuts",   "predicted", "costs",   "seal",
	                                   "schedule_csv"};
	int32_t schedule = -1;
	SW_TRY(sw_json_check_keys(x->root, "", keys, SW_COUNT(keys), x->err));
	SW_TRY(read_head(x, &schedule));
	SW_TRY(read_stages(x));
	count_devices(x);
	SW_TRY(read_costs(x));
	if (!sw_plan_is_sealed(x->root))
		return sw_fail(x->err, SW_ERR_INPUT,
		               "the file was edited since the plan was made: its figures are not "
		               "those of its stages; plan again");
	return sw_pipelined_find_schedule(x->p, schedule, x->err);
}

sw_status sw_pipelined_read(const char *path, sw_pipelined **plan, sw_error *err)
{
	index_reader x = {.err = err};
	*plan = NULL;
	SW_TRY(sw_json_read(path, &x.root, err));
	x.p = sw_alloc(sizeof(sw_pipelined));
	sw_arena_init(&x.p->arena);
	sw_status status = read_index(&x);
	json_decref(x.root);
	if (status) {
		if (!x.p->stages)
			x.p->n_stages = 0;
		sw_pipelined_free(x.p);
		return sw_error_in_file(err, status, path);
	}
	*plan = x.p;
	return SW_OK;
}
