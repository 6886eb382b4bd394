/* The file of trials: a list of mappings, the first of which says of which version it is. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tune/tune.h"

#define FORMAT "1"

uint64_t sw_tune_group(uint64_t program, uint64_t cluster, bool measured)
{
	return sw_hash_u64(sw_hash_u64(program, cluster), measured);
}

void sw_trials_init(sw_trials *trials)
{
	*trials = (sw_trials){0};
	sw_arena_init(&trials->arena);
}

void sw_trials_clear(sw_trials *trials)
{
	sw_vec_clear(&trials->list);
	sw_vec_clear(&trials->others);
	sw_arena_clear(&trials->arena);
}

/* What the features mean, in a number. */
static uint64_t hash_of_features(void)
{
	uint64_t hash = 0;
	for (size_t i = 0; sw_ways_feature_name(i); i++)
		hash = sw_hash_bytes(sw_ways_feature_name(i), strlen(sw_ways_feature_name(i)),
		                     hash);
	return hash;
}

/* ---- reading ---------------------------------------------------------------------------- */

static sw_status bad(const sw_yaml *node, sw_error *err, const char *what)
{
	return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column, "%s", what);
}

static bool read_number(const sw_yaml *node, double *value)
{
	char *end;
	if (node->kind != SW_YAML_SCALAR)
		return false;
	*value = strtod(node->text, &end);
	return end != node->text && !*end && isfinite(*value);
}

static bool read_hash(const sw_yaml *node, uint64_t *hash)
{
	char *end;
	if (node->kind != SW_YAML_SCALAR || strlen(node->text) != 16)
		return false;
	*hash = strtoull(node->text, &end, 16);
	return !*end && node->text[0] != '-' && node->text[0] != '+';
}

static sw_status read_seconds(const sw_yaml *node, const char *what, double *seconds, sw_error *err)
{
	if (node->kind == SW_YAML_SCALAR && strcmp(node->text, "none") == 0) {
		*seconds = INFINITY;
		return SW_OK;
	}
	return read_number(node, seconds) && *seconds > 0
	               ? SW_OK
	               : sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
	                            "%s: expected seconds above 0, or none", what);
}

static sw_status read_features(const sw_yaml *node, double *x, sw_error *err)
{
	bool ok = node->kind == SW_YAML_SEQUENCE && node->count == SW_WAYS_FEATURES;
	for (size_t i = 0; ok && i < node->count; i++)
		ok = read_number(node->items[i], &x[i]);
	return ok ? SW_OK
	          : sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
	                       "features: expected a list of %d numbers", SW_WAYS_FEATURES);
}

static sw_status read_ways(const sw_yaml *node, const char *path, sw_trials *trials,
                           sw_trial *trial, sw_error *err)
{
	sw_sync *sync = SW_NEW(&trials->arena, sw_sync);
	sync->file = path;
	/* the entries lie in the arena of the trials, which is lent */
	sync->arena = trials->arena;
	sw_status status = sw_sync_of_yaml(node, sync, err);
	trials->arena = sync->arena;
	sync->arena = (sw_arena){0};
	trial->sync = sync;
	return status;
}

static const sw_yaml *need(const sw_yaml *item, const char *key, sw_error *err)
{
	const sw_yaml *value = sw_yaml_get(item, key);
	if (!value)
		sw_fail_at(err, SW_ERR_INPUT, "", item->line, item->column, "a trial lacks %s",
		           key);
	return value;
}

static sw_status read_kind(const sw_yaml *node, bool *measured, sw_error *err)
{
	*measured = node->kind == SW_YAML_SCALAR && strcmp(node->text, "run") == 0;
	bool simulated = node->kind == SW_YAML_SCALAR && strcmp(node->text, "simulate") == 0;
	return *measured || simulated ? SW_OK : bad(node, err, "by: expected simulate or run");
}

static sw_status read_trial(const sw_yaml *item, const char *path, sw_trials *trials,
                            sw_trial *trial, sw_error *err)
{
	static const char *const keys[] = {"program", "cluster",    "by",       "seconds",
	                                   "model",   "predefined", "features", "ways"};
	const sw_yaml *value[SW_COUNT(keys)], *builder;
	*trial = (sw_trial){.builder = "", .old = true};
	if (item->kind != SW_YAML_MAPPING)
		return bad(item, err, "expected a trial: program, cluster, by, seconds, ...");
	for (size_t i = 0; i < SW_COUNT(keys); i++)
		if (!(value[i] = need(item, keys[i], err)))
			return SW_ERR_INPUT;
	if (!read_hash(value[0], &trial->program) || !read_hash(value[1], &trial->cluster))
		return bad(value[0], err, "program and cluster: expected 16 hexadecimal digits");
	SW_TRY(read_kind(value[2], &trial->measured, err));
	SW_TRY(read_seconds(value[3], keys[3], &trial->example.seconds, err));
	SW_TRY(read_seconds(value[4], keys[4], &trial->example.model_s, err));
	SW_TRY(read_seconds(value[5], keys[5], &trial->example.features.seconds, err));
	SW_TRY(read_features(value[6], trial->example.features.x, err));
	builder = sw_yaml_get(item, "builder");
	if (builder && builder->kind == SW_YAML_SCALAR)
		trial->builder = builder->text;
	trial->example.group = sw_tune_group(trial->program, trial->cluster, trial->measured);
	return read_ways(value[7], path, trials, trial, err);
}

static sw_status check_head(const sw_yaml *root, sw_error *err)
{
	const sw_yaml *head =
		root->kind == SW_YAML_SEQUENCE && root->count > 0 ? root->items[0] : NULL;
	bool mapping = head && head->kind == SW_YAML_MAPPING;
	const sw_yaml *format = mapping ? sw_yaml_get(head, "trials") : NULL,
		      *features = mapping ? sw_yaml_get(head, "features") : NULL;
	uint64_t hash = 0;
	if (!format || !features)
		return bad(root, err,
		           "this is no file of trials, which begins with - {trials: " FORMAT
		           ", ...}: name another file");
	if (format->kind != SW_YAML_SCALAR || strcmp(format->text, FORMAT) != 0 ||
	    !read_hash(features, &hash) || hash != hash_of_features())
		return bad(head, err,
		           "these trials are of another version of tune: begin another file");
	return SW_OK;
}

static sw_status keep_trial(const sw_ways_space *space, uint64_t group, sw_trials *trials,
                            sw_trial *trial, int line, sw_error *err)
{
	if (trial->example.group != group) {
		sw_vec_push(&trials->others, *trial);
		return SW_OK;
	}
	sw_status status = sw_ways_of_sync(space, trial->sync, &trials->arena, &trial->ways, err);
	if (status != SW_OK && err && err->line == 0)
		err->line = line;
	if (status == SW_OK)
		sw_vec_push(&trials->list, *trial);
	return status;
}

static sw_status read_all(const char *path, const sw_ways_space *space, bool measured,
                          sw_trials *trials, sw_error *err)
{
	const sw_yaml *root;
	uint64_t group = sw_tune_group(space->program_hash, space->setting, measured);
	SW_TRY(sw_yaml_read(path, &trials->arena, &root, err));
	SW_TRY(check_head(root, err));
	for (size_t i = 1; i < root->count; i++) {
		sw_trial trial;
		SW_TRY(read_trial(root->items[i], path, trials, &trial, err));
		SW_TRY(keep_trial(space, group, trials, &trial, root->items[i]->line, err));
	}
	return SW_OK;
}

sw_status sw_trials_read(const char *path, const sw_ways_space *space, bool measured,
                         sw_trials *trials, sw_error *err)
{
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return SW_OK;
	return sw_error_in_file(err, read_all(path, space, measured, trials, err), path);
}

/* ---- writing ---------------------------------------------------------------------------- */

static void add_seconds(sw_text *text, const char *key, double seconds)
{
	if (isfinite(seconds) && seconds > 0)
		sw_text_addf(text, "  %s: %.9g\n", key, seconds);
	else
		sw_text_addf(text, "  %s: none\n", key);
}

static void print_trial(const sw_ways_space *space, const sw_trial *trial, sw_text *text)
{
	sw_sync own;
	sw_text_addf(text, "- program: '%016llx'\n  cluster: '%016llx'\n  by: %s\n",
	             (unsigned long long)trial->program, (unsigned long long)trial->cluster,
	             trial->measured ? "run" : "simulate");
	if (*trial->builder)
		sw_text_addf(text, "  builder: '%s'\n", trial->builder);
	add_seconds(text, "seconds", trial->example.seconds);
	add_seconds(text, "model", trial->example.model_s);
	add_seconds(text, "predefined", trial->example.features.seconds);
	sw_text_add(text, "  features: [");
	for (size_t i = 0; i < SW_WAYS_FEATURES; i++)
		sw_text_addf(text, "%s%.6g", i ? ", " : "", trial->example.features.x[i]);
	sw_text_add(text, "]\n  ways:\n");
	if (trial->sync) {
		sw_sync_print(trial->sync, "  ", text);
		return;
	}
	sw_ways_to_sync(space, &trial->ways, &own);
	sw_sync_print(&own, "  ", text);
	sw_sync_clear(&own);
}

/* The texts of all trials, and which of them are left out. */
typedef struct trial_text {
	const sw_trial *trial;
	sw_text text;
	bool left_out;
} trial_text;

/* Leave one out: the first of the others; if there is none, the slowest. False: none is left. */
static bool leave_one_out(trial_text *list, size_t n, size_t n_others, size_t *bytes)
{
	size_t worst = n;
	for (size_t i = 0; i < n_others && worst == n; i++)
		worst = list[i].left_out ? n : i;
	for (size_t i = n_others; i < n && (worst == n || worst >= n_others); i++)
		if (!list[i].left_out && (worst == n || list[i].trial->example.seconds >
		                                                list[worst].trial->example.seconds))
			worst = i;
	if (worst == n)
		return false;
	list[worst].left_out = true;
	*bytes -= list[worst].text.len;
	return true;
}

sw_status sw_trials_write(const char *path, const sw_ways_space *space, const sw_trials *trials,
                          sw_error *err)
{
	size_t n_others = trials->others.len, n = n_others + trials->list.len, bytes = 0;
	trial_text *list = sw_alloc(sizeof(*list) * (n + 1));
	sw_text all = {0};
	sw_text_addf(&all,
	             "# What shardwright tune has tried (docs/tune.md): later runs learn from it.\n"
	             "- {trials: " FORMAT ", features: '%016llx'}\n",
	             (unsigned long long)hash_of_features());
	bytes = all.len;
	for (size_t i = 0; i < n; i++) {
		list[i].trial =
			i < n_others ? &trials->others.data[i] : &trials->list.data[i - n_others];
		print_trial(space, list[i].trial, &list[i].text);
		bytes += list[i].text.len;
	}
	while (bytes > SW_MAX_YAML_BYTES && leave_one_out(list, n, n_others, &bytes))
		;
	for (size_t i = 0; i < n; i++) {
		if (!list[i].left_out)
			sw_text_add_n(&all, list[i].text.data, list[i].text.len);
		sw_text_clear(&list[i].text);
	}
	sw_status status = sw_file_write(path, all.data, all.len, err);
	sw_text_clear(&all);
	free(list);
	return sw_error_in_file(err, status, path);
}
