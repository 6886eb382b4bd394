/*
 * A plan in the settings of four frameworks. Its axes are sorted into degrees of the parallelisms
 * that they know; what a framework can't say of the plan is listed.
 */
#include "export/explained.h"
#include "export/framework_settings.h"

#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* ---- what the axes are -------------------------------------------------------------------- */

/* Return how many ops of all its layers a block tells of; none if it says nothing of the axes, as
 * an embedding, which has no contraction. Layers in a loop stand there once, and outweigh a
 * head. */
static json_int_t block_ops(const json_t *block)
{
	const json_t *line;
	json_int_t ops = 0;
	size_t i;
	if (json_array_size(json_object_get(block, "as")) == 0)
		return 0;
	json_array_foreach(json_object_get(block, "lines"), i, line) ops +=
		json_integer_value(json_object_get(line, "count"));
	return ops * (json_int_t)json_array_size(json_object_get(block, "members"));
}

/* Return the block with the most ops, whose way is that of the model. */
static const json_t *main_block(const json_t *explained)
{
	const json_t *block, *best = NULL;
	size_t i;
	json_array_foreach(json_object_get(explained, "blocks"), i,
	                   block) if (!best || block_ops(block) > block_ops(best)) best = block;
	return best;
}

static const json_t *entry_of(const json_t *as, const char *axis)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(as, i,
	                   entry) if (strcmp(text_of(entry, "axis"), axis) == 0) return entry;
	return NULL;
}

/* Say which other blocks are not split as the main one is. A head or an embedding under tensor
 * parallelism has one contraction, which is split in one of the two ways. */
static void say_other_blocks(const json_t *explained, const json_t *main, const char *axis,
                             const char *kind, json_t *lost)
{
	const json_t *block;
	size_t i;
	json_array_foreach(json_object_get(explained, "blocks"), i, block)
	{
		const json_t *entry = entry_of(json_object_get(block, "as"), axis);
		const char *other = text_of(entry, "kind");
		bool half = strcmp(kind, "tensor") == 0 &&
		            (strcmp(other, "output") == 0 || strcmp(other, "contraction") == 0);
		if (block != main && entry && !half && strcmp(kind, other) != 0)
			sw_list_say(lost, "%s: %s over %s, not as the layers",
			            text_of(block, "name"), text_of(entry, "as"), axis);
	}
}

static void sort_axis(sw_framework_plan *f, const char *axis, int64_t size, const json_t *entry)
{
	static const struct {
		const char *kind;
		size_t degree;
	} degrees[] = {
		{"dp", offsetof(sw_framework_plan, replicate)},
		{"zero1", offsetof(sw_framework_plan, optimizer)},
		{"zero3", offsetof(sw_framework_plan, shard)},
		{"tensor", offsetof(sw_framework_plan, tensor)},
		{"rows", offsetof(sw_framework_plan, context)},
		{"expert", offsetof(sw_framework_plan, expert)},
	};
	for (size_t i = 0; i < SW_COUNT(degrees); i++)
		if (strcmp(text_of(entry, "kind"), degrees[i].kind) == 0) {
			*(int64_t *)((char *)f + degrees[i].degree) *= size;
			return;
		}
	sw_list_say(f->lost, "%s of %lld devices: %s, which none of them has", axis,
	            (long long)size, entry ? text_of(entry, "as") : "no layer is split over it");
}

/* Does a reduce-scatter of activations over the axes of tensor parallelism leave the sequence split
 * between the blocks? */
static bool splits_sequence(const json_t *explained, const char *axis)
{
	const json_t *c;
	size_t i;
	json_array_foreach(json_object_get(explained, "communication"), i,
	                   c) if (strcmp(text_of(c, "collective"), "reduce-scatter") == 0 &&
	                          strcmp(text_of(c, "over"), axis) == 0 &&
	                          strncmp(text_of(c, "what"), "gradient of", 11) != 0) return true;
	return false;
}

/* Megatron counts ranks with tensor parallelism fastest: say where the plan does not. */
static void say_order(sw_framework_plan *f, const json_t *mesh, const json_t *as)
{
	const json_t *axis;
	bool outer = false;
	size_t i;
	json_array_foreach(mesh, i, axis)
	{
		bool tensor =
			strcmp(text_of(entry_of(as, text_of(axis, "name")), "kind"), "tensor") == 0;
		if (outer && !tensor)
			sw_list_say(f->lost,
			            "order: %s lies inside of tensor parallelism, which the "
			            "frameworks put innermost",
			            text_of(axis, "name"));
		outer = outer || tensor;
	}
}

static void sort_axes(sw_framework_plan *f, const json_t *explained)
{
	const json_t *block = main_block(explained), *mesh = json_object_get(explained, "mesh");
	const json_t *as = json_object_get(block, "as"), *axis;
	size_t i;
	json_array_foreach(mesh, i, axis)
	{
		const char *name = text_of(axis, "name");
		const json_t *entry = entry_of(as, name);
		sort_axis(f, name, json_integer_value(json_object_get(axis, "size")), entry);
		say_other_blocks(explained, block, name, text_of(entry, "kind"), f->lost);
		if (strcmp(text_of(entry, "kind"), "tensor") == 0 &&
		    splits_sequence(explained, name))
			f->sequence = true;
	}
	say_order(f, mesh, as);
}

/* ---- the rest of the plan ----------------------------------------------------------------- */

/* The batch is the first dimension of the tokens. */
static void find_batch(sw_framework_plan *f, const sw_plan *plan, const sw_sidecar *sidecar)
{
	const sw_program *serial = sw_plan_serial(plan);
	const sw_id *inputs;
	sw_arena arena;
	sw_arena_init(&arena);
	sw_program_inputs(serial, serial->entry, &arena, &inputs);
	if (sidecar->tokens_input >= 0) {
		sw_shape shape = sw_value_shape(serial, inputs[sidecar->tokens_input]);
		f->batch = shape.rank > 0 ? shape.dims[0] : 0;
	}
	sw_arena_clear(&arena);
}

static void find_gathers(sw_framework_plan *f, const json_t *explained)
{
	json_t *gathers;
	const char *name;
	f->reshard = false;
	json_object_foreach(
		json_object_get(explained, "gathers"), name,
		gathers) if (json_integer_value(json_object_get(gathers, "layers_cached")) <
	                     json_integer_value(json_object_get(gathers, "layers"))) f->reshard =
		true;
}

static void find_nodes(sw_framework_plan *f, const sw_cluster *cluster)
{
	f->devices = cluster->n_devices;
	f->node_devices = 1;
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		if (cluster->atom_level[a] == cluster->n_levels - 1)
			f->node_devices *= cluster->atoms.size[a];
}

static void say_rewrites(sw_framework_plan *f, const sw_plan *plan)
{
	const char *remat = plan->rewrites.remat;
	f->microbatches = SW_MAX(plan->rewrites.microbatches, 1);
	f->full_recompute = remat && strcmp(remat, "blocks") == 0;
	if (remat && !f->full_recompute)
		sw_list_say(f->lost,
		            "recomputation '%s': the frameworks have whole layers, or the "
		            "core of attention",
		            remat);
	if (plan->padded.len > 0)
		sw_list_say(f->lost, "padding of dimensions that the devices don't divide");
}

sw_status sw_export_frameworks(const sw_plan *plan, const sw_sidecar *sidecar, json_t **json,
                               sw_error *err)
{
	sw_framework_plan f = {.replicate = 1,
	                       .optimizer = 1,
	                       .shard = 1,
	                       .tensor = 1,
	                       .context = 1,
	                       .expert = 1,
	                       .lost = json_array()};
	sw_explained_plan e;
	sw_status status = sw_explained_open(plan, sidecar, &e, err);
	if (status) {
		json_decref(f.lost);
		return status;
	}
	sort_axes(&f, e.json);
	find_batch(&f, plan, sidecar);
	find_gathers(&f, e.json);
	find_nodes(&f, plan->cluster);
	say_rewrites(&f, plan);
	*json = json_pack("{s:s, s:i, s:s, s:I, s:o, s:O, s:o, s:o, s:o, s:o}", "format",
	                  "shardwright-frameworks", "version", 1, "chosen", plan->chosen, "devices",
	                  (json_int_t)f.devices, "degrees", sw_framework_degrees(&f), "lost",
	                  f.lost, "megatron-lm", sw_settings_megatron(&f), "nemo",
	                  sw_settings_nemo(&f), "maxtext", sw_settings_maxtext(&f), "torchtitan",
	                  sw_settings_torchtitan(&f));
	json_decref(f.lost);
	sw_explained_close(&e);
	return SW_OK;
}
