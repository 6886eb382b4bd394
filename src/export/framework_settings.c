/* The settings of Megatron-LM, NeMo, MaxText and TorchTitan, and their printed forms. */
#include "export/framework_settings.h"
#include "export/explained.h"

#include <stdlib.h>
#include <string.h>

json_t *sw_framework_degrees(const sw_framework_plan *f)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "replicate",
	                 (json_int_t)f->replicate, "optimizer", (json_int_t)f->optimizer, "shard",
	                 (json_int_t)f->shard, "tensor", (json_int_t)f->tensor, "context",
	                 (json_int_t)f->context, "expert", (json_int_t)f->expert, "microbatches",
	                 (json_int_t)f->microbatches);
}

static void set_int(json_t *settings, const char *key, int64_t value)
{
	json_object_set_new(settings, key, json_integer((json_int_t)value));
}

static void set_text(json_t *settings, const char *key, const char *value)
{
	json_object_set_new(settings, key, json_string(value));
}

static json_t *with_lost(json_t *settings, json_t *lost)
{
	return json_pack("{s:o, s:o}", "settings", settings, "lost", lost);
}

/* Return the samples of a microbatch on a device; 0: not known, or they don't divide. */
static int64_t micro_batch(const sw_framework_plan *f)
{
	int64_t parts = f->replicate * f->optimizer * f->shard * f->microbatches;
	return f->batch % parts == 0 ? f->batch / parts : 0;
}

/* In both of NVIDIA's the experts are spread over ranks of data parallelism. */
static void say_nvidia(const sw_framework_plan *f, json_t *lost)
{
	if (f->optimizer > 1 && f->shard > 1)
		sw_list_say(lost,
		            "ZeRO-1 over %lld and ZeRO-3 over %lld devices: one of them is "
		            "set for all of data parallelism",
		            (long long)f->optimizer, (long long)f->shard);
	else if (f->replicate > 1 && f->optimizer * f->shard > 1)
		sw_list_say(lost,
		            "state is split over %lld of the devices of data parallelism and "
		            "whole over %lld; it is split over all of them",
		            (long long)(f->optimizer * f->shard), (long long)f->replicate);
}

json_t *sw_settings_megatron(const sw_framework_plan *f)
{
	json_t *s = json_object(), *lost = json_array();
	set_int(s, "--tensor-model-parallel-size", f->tensor);
	set_int(s, "--pipeline-model-parallel-size", 1);
	set_int(s, "--context-parallel-size", f->context);
	if (f->expert > 1)
		set_int(s, "--expert-model-parallel-size", f->expert);
	if (f->sequence)
		json_object_set_new(s, "--sequence-parallel", json_true());
	if (f->optimizer > 1 || f->shard > 1)
		json_object_set_new(s, "--use-distributed-optimizer", json_true());
	if (f->shard > 1) {
		json_object_set_new(s, "--use-megatron-fsdp", json_true());
		set_text(s, "--data-parallel-sharding-strategy", "optim_grads_params");
		/* it runs with these alone */
		json_object_set_new(s, "--no-gradient-accumulation-fusion", json_true());
		set_text(s, "--ckpt-format", "fsdp_dtensor");
	}
	if (f->full_recompute) {
		set_text(s, "--recompute-granularity", "full");
		set_text(s, "--recompute-method", "uniform");
		set_int(s, "--recompute-num-layers", 1);
	}
	if (micro_batch(f) > 0) {
		set_int(s, "--micro-batch-size", micro_batch(f));
		set_int(s, "--global-batch-size", f->batch);
	}
	say_nvidia(f, lost);
	return with_lost(s, lost);
}

json_t *sw_settings_nemo(const sw_framework_plan *f)
{
	json_t *s = json_object(), *lost = json_array();
	set_int(s, "trainer.num_nodes", f->devices / f->node_devices);
	set_int(s, "trainer.devices", f->node_devices);
	set_int(s, "model.tensor_model_parallel_size", f->tensor);
	set_int(s, "model.pipeline_model_parallel_size", 1);
	set_int(s, "model.context_parallel_size", f->context);
	set_int(s, "model.expert_model_parallel_size", f->expert);
	json_object_set_new(s, "model.sequence_parallel", json_boolean(f->sequence));
	if (f->optimizer > 1)
		set_text(s, "model.optim.name", "distributed_fused_adam");
	if (f->shard > 1)
		json_object_set_new(s, "model.fsdp", json_true());
	if (f->full_recompute) {
		set_text(s, "model.activations_checkpoint_granularity", "full");
		set_text(s, "model.activations_checkpoint_method", "uniform");
		set_int(s, "model.activations_checkpoint_num_layers", 1);
	}
	if (micro_batch(f) > 0) {
		set_int(s, "model.micro_batch_size", micro_batch(f));
		set_int(s, "model.global_batch_size", f->batch);
	}
	say_nvidia(f, lost);
	return with_lost(s, lost);
}

json_t *sw_settings_maxtext(const sw_framework_plan *f)
{
	json_t *s = json_object(), *lost = json_array();
	set_int(s, "ici_data_parallelism", f->replicate * f->optimizer);
	set_int(s, "ici_fsdp_parallelism", f->shard);
	set_int(s, f->sequence ? "ici_tensor_sequence_parallelism" : "ici_tensor_parallelism",
	        f->tensor);
	set_int(s, "ici_context_parallelism", f->context);
	set_int(s, "ici_expert_parallelism", f->expert);
	if (f->optimizer > 1)
		json_object_set_new(s, "shard_optimizer_over_data", json_true());
	set_text(s, "remat_policy", f->full_recompute ? "full" : "minimal");
	set_int(s, "gradient_accumulation_steps", f->microbatches);
	if (f->batch > 0 && f->batch % (f->devices * f->microbatches) == 0)
		set_int(s, "per_device_batch_size", f->batch / (f->devices * f->microbatches));
	if (f->devices > f->node_devices)
		sw_list_say(lost,
		            "between slices: axes that cross nodes of %lld devices belong to "
		            "the settings dcn_*, if your nodes are slices",
		            (long long)f->node_devices);
	if (f->optimizer > 1 && f->replicate > 1)
		sw_list_say(lost, "the optimizer's state is split over all of data parallelism");
	return with_lost(s, lost);
}

json_t *sw_settings_torchtitan(const sw_framework_plan *f)
{
	json_t *s = json_object(), *lost = json_array();
	set_int(s, "parallelism.data_parallel_replicate_degree", f->replicate * f->optimizer);
	set_int(s, "parallelism.data_parallel_shard_degree", f->shard);
	set_int(s, "parallelism.tensor_parallel_degree", f->tensor);
	set_int(s, "parallelism.context_parallel_degree", f->context);
	set_int(s, "parallelism.expert_parallel_degree", f->expert);
	set_int(s, "parallelism.pipeline_parallel_degree", 1);
	if (f->shard > 1)
		set_text(s, "parallelism.fsdp_reshard_after_forward",
		         f->reshard ? "always" : "never");
	set_text(s, "activation_checkpoint.mode", f->full_recompute ? "full" : "none");
	if (micro_batch(f) > 0) {
		set_int(s, "training.local_batch_size", micro_batch(f));
		set_int(s, "training.global_batch_size", f->batch);
	}
	if (f->optimizer > 1)
		sw_list_say(lost, "ZeRO-1 over %lld devices: it has replication or FSDP",
		            (long long)f->optimizer);
	if (f->tensor > 1 && !f->sequence)
		sw_list_say(lost, "its tensor parallelism splits the sequence between blocks, the "
		                  "plan does not");
	return with_lost(s, lost);
}

/* ---- printed ------------------------------------------------------------------------------ */

static void add_value(const json_t *value, bool quoted, sw_text *text)
{
	if (json_is_integer(value))
		sw_text_addf(text, "%lld", (long long)json_integer_value(value));
	else if (json_is_boolean(value))
		sw_text_add(text, json_is_true(value) ? "true" : "false");
	else if (quoted)
		sw_text_add_quoted(text, json_string_value(value));
	else
		sw_text_add(text, json_string_value(value));
}

static void add_lost(const json_t *lost, sw_text *text)
{
	const json_t *item;
	size_t i;
	json_array_foreach(lost, i, item)
		sw_text_addf(text, "# not said: %s\n", json_string_value(item));
}

/* `--key value` on lines of a shell; a flag alone for true. */
static void add_flags(json_t *settings, sw_text *text)
{
	json_t *value;
	const char *key;
	size_t left = json_object_size(settings);
	json_object_foreach(settings, key, value)
	{
		sw_text_addf(text, "%s", key);
		if (!json_is_boolean(value)) {
			sw_text_add(text, " ");
			add_value(value, false, text);
		}
		sw_text_add(text, --left ? " \\\n" : "\n");
	}
}

/* `section.key` as sections of YAML or TOML; keys of a section stand together. */
static void add_sections(json_t *settings, bool toml, sw_text *text)
{
	json_t *value;
	const char *key, *section = "";
	size_t length = 0;
	json_object_foreach(settings, key, value)
	{
		const char *dot = strchr(key, '.');
		size_t n = dot ? (size_t)(dot - key) : 0;
		if (n != length || strncmp(section, key, n) != 0)
			sw_text_addf(text, toml ? "[%.*s]\n" : "%.*s:\n", (int)n, key);
		section = key;
		length = n;
		sw_text_addf(text, "%s%s", dot && !toml ? "  " : "", dot ? dot + 1 : key);
		sw_text_add(text, toml ? " = " : ": ");
		add_value(value, toml, text);
		sw_text_add(text, "\n");
	}
}

/* NeMo's keys have two dots in part: model.optim.name is a section of its own in YAML. */
static void add_overrides(json_t *settings, sw_text *text)
{
	json_t *value;
	const char *key;
	json_object_foreach(settings, key, value)
	{
		sw_text_addf(text, "%s=", key);
		add_value(value, false, text);
		sw_text_add(text, "\n");
	}
}

void sw_export_frameworks_print(const json_t *frameworks, sw_text *text)
{
	static const struct {
		const char *key, *title;
		int form; /* 0: flags; 1: overrides; 2: YAML; 3: TOML */
	} parts[] = {
		{"megatron-lm", "Megatron-LM, flags of pretrain_gpt.py", 0},
		{"nemo", "NeMo, overrides of its configuration", 1},
		{"maxtext", "MaxText, configuration in YAML", 2},
		{"torchtitan", "TorchTitan, configuration in TOML", 3},
	};
	json_t *degrees = json_object_get(frameworks, "degrees"), *value;
	const char *key;
	sw_text_addf(text, "# %s on %lld devices\n#",
	             json_string_value(json_object_get(frameworks, "chosen")),
	             (long long)json_integer_value(json_object_get(frameworks, "devices")));
	json_object_foreach(degrees, key, value)
		sw_text_addf(text, " %s %lld", key, (long long)json_integer_value(value));
	sw_text_add(text, "\n");
	add_lost(json_object_get(frameworks, "lost"), text);
	for (size_t i = 0; i < SW_COUNT(parts); i++) {
		const json_t *part = json_object_get(frameworks, parts[i].key);
		json_t *settings = json_object_get(part, "settings");
		sw_text_addf(text, "\n# ---- %s\n", parts[i].title);
		add_lost(json_object_get(part, "lost"), text);
		if (parts[i].form == 0)
			add_flags(settings, text);
		else if (parts[i].form == 1)
			add_overrides(settings, text);
		else
			add_sections(settings, parts[i].form == 3, text);
	}
}
