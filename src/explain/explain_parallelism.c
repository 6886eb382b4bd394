/*
 * The strategy that each axis resembles: what the forward contractions split over it, and how the
 * state rests.
 */
#include "explain/internal.h"

typedef struct split_counts {
	int count[SW_SPLIT_KIND_COUNT], all;
	sw_split_kind first; /* the first of output and contraction that occurs */
	/* bytes of the parameters that are read; bytes of those that are split over the axis at
	 * rest */
	int64_t parameter_bytes, split_bytes;
	bool moments_split;
} split_counts;

static bool rests_split(const sw_plan *plan, sw_id value, uint32_t atoms)
{
	return (sw_layout_split_atoms(sw_plan_layout(plan, plan->produced[value]), -1) & atoms) !=
	       0;
}

static void count_state(const sw_anatomy *a, const sw_plan *plan, int32_t parameter, uint32_t atoms,
                        split_counts *u)
{
	const sw_roles *roles = &a->roles;
	sw_id value = roles->inputs[parameter];
	int64_t bytes = sw_shape_bytes(sw_value_shape(a->program, value));
	u->parameter_bytes += bytes;
	u->split_bytes += rests_split(plan, value, atoms) ? bytes : 0;
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		if (a->parameter_of[i] == parameter && rests_split(plan, roles->inputs[i], atoms))
			u->moments_split = true;
}

/* Count the splits of forward contractions with a parameter; section -1: of the whole model. */
static split_counts count_splits(const sw_anatomy *a, const sw_plan *plan, int32_t section,
                                 int32_t axis)
{
	split_counts u = {0};
	for (size_t i = 0; i < a->program->ops.len && a->order[i] != SW_NO_ID; i++) {
		sw_id id = a->order[i];
		uint32_t weight;
		int32_t factor, parameter = -1;
		if (sw_is_contraction(sw_op_at(a->program, id)) &&
		    a->phase[id] == SW_PASS_FORWARD && (section < 0 || a->section[id] == section))
			parameter = sw_anatomy_parameter(a, id, &weight);
		if (parameter < 0)
			continue;
		sw_split_kind kind = sw_split_kind_of(a, plan, id, weight, axis, &factor);
		if (!u.first && (kind == SW_SPLITS_OUTPUT || kind == SW_SPLITS_CONTRACTION))
			u.first = kind;
		u.count[kind]++;
		u.all++;
		count_state(a, plan, parameter, plan->axes[axis].atoms, &u);
	}
	return u;
}

static void add_mixture(const split_counts *u, sw_text *text)
{
	for (int k = 0, any = 0; k < SW_SPLIT_KIND_COUNT; k++)
		if (u->count[k] > 0)
			sw_text_addf(text, "%s%s in %d", any++ ? ", " : "",
			             sw_split_kind_word((sw_split_kind)k), u->count[k]);
	sw_text_addf(text, " of %d contractions", u->all);
}

/* What an axis resembles: `word` is the key's value for other programs. */
typedef struct resemblance {
	const char *word, *sentence; /* sentence NULL: the counts are listed */
} resemblance;

static const resemblance ZERO3 = {"zero3", "as ZeRO-3 (batch split; parameters and optimizer state "
                                           "split at rest)"},
			 ZERO1 = {"zero1", "as ZeRO-1 (batch split; optimizer state split)"},
			 DP = {"dp", "as dp (batch split, parameters whole)"},
			 ROWS = {"rows",
                                 "rows other than the batch split, parameters whole at rest"},
			 SPLIT_ROWS = {"split rows", "rows other than the batch split, parameters "
                                                     "split at rest"},
			 EXPERT = {"expert", "as expert parallelism (weights of different groups "
                                             "on different devices)"},
			 EXPERT_AND_BATCH = {"expert",
                                             "as expert parallelism (weights of different "
                                             "groups on different devices, the batch "
                                             "split elsewhere)"},
			 MIXTURE = {"mixture", NULL},
			 OUTPUT = {"output", "output split (columns of weights)"},
			 CONTRACTION = {"contraction", "contraction split (rows of weights)"},
			 TENSOR = {"tensor", "as Megatron (output split, then contraction split)"},
			 REVERSE_TENSOR = {"reverse tensor",
                                           "contraction split, then output split"};

static const resemblance *resemblance_of(const split_counts *u)
{
	const int *n = u->count;
	bool mostly_split = u->split_bytes * 2 > u->parameter_bytes;
	if (n[SW_SPLITS_BATCH] == u->all)
		return mostly_split ? &ZERO3 : u->moments_split ? &ZERO1 : &DP;
	if (n[SW_SPLITS_ROWS] == u->all)
		return mostly_split ? &SPLIT_ROWS : &ROWS;
	if (n[SW_SPLITS_GROUP] == u->all)
		return &EXPERT;
	if (n[SW_SPLITS_GROUP] > 0 &&
	    n[SW_SPLITS_GROUP] + n[SW_SPLITS_BATCH] + n[SW_SPLITS_ROWS] == u->all)
		return &EXPERT_AND_BATCH;
	if (n[SW_SPLITS_OUTPUT] + n[SW_SPLITS_CONTRACTION] < u->all)
		return &MIXTURE;
	if (n[SW_SPLITS_OUTPUT] == u->all)
		return &OUTPUT;
	if (n[SW_SPLITS_CONTRACTION] == u->all)
		return &CONTRACTION;
	return u->first == SW_SPLITS_OUTPUT ? &TENSOR : &REVERSE_TENSOR;
}

/* The parts of the cluster that share the batch: an axis that splits no tensor. */
static json_t *shares_json(const sw_plan *plan, const sw_axis *axis)
{
	sw_text text = {0};
	sw_text_add(&text, "microbatches of its own in each part of the cluster: ");
	for (int32_t p = 0; p < plan->shares.n; p++)
		sw_text_addf(&text, "%s%lld", p ? ", " : "", (long long)plan->shares.v[p]);
	json_t *json = json_pack("{s:s, s:I, s:s, s:s}", "axis", axis->name, "size",
	                         (json_int_t)axis->size, "kind", "share", "as", text.data);
	sw_text_clear(&text);
	return json;
}

json_t *sw_explain_parallelism(const sw_anatomy *a, const sw_explained *what, int32_t section)
{
	const sw_plan *plan = what->plan;
	json_t *list = json_array();
	for (int32_t i = 0; i < plan->n_axes; i++) {
		split_counts u = count_splits(a, plan, section, i);
		sw_text text = {0};
		if (plan->axes[i].atoms == sw_plan_share_atoms(plan)) {
			if (section < 0)
				json_array_append_new(list, shares_json(plan, &plan->axes[i]));
			continue;
		}
		if (u.all == 0)
			continue;
		const resemblance *like = resemblance_of(&u);
		if (like->sentence)
			sw_text_add(&text, like->sentence);
		else
			add_mixture(&u, &text);
		json_array_append_new(list,
		                      json_pack("{s:s, s:I, s:s, s:s}", "axis", plan->axes[i].name,
		                                "size", (json_int_t)plan->axes[i].size, "kind",
		                                like->word, "as", text.data));
		sw_text_clear(&text);
	}
	return list;
}
