/*
 * A file of ways (docs/sync.md): users say how variables are synchronised, by patterns of their
 * names. sync_apply.c finds the variables.
 */
#include <stdlib.h>
#include <string.h>

#include "model/ways.h"

/* ---- the file --------------------------------------------------------------------------- */

static const char *const WAY_WORDS[SW_WAY_COUNT] = {
	[SW_WAY_ALL_REDUCE] = "all-reduce", [SW_WAY_OWNED] = "ps", [SW_WAY_SPLIT] = "zero3",
	[SW_WAY_MOMENTS] = "zero1",         [SW_WAY_ANY] = "any",
	[SW_WAY_GATHER] = "gather",
};

const char *sw_way_word(sw_way_kind kind)
{
	return WAY_WORDS[kind];
}

static bool is_merge_key(const char *key)
{
	return strcmp(key, "merge") == 0 || strcmp(key, "chunk") == 0;
}

static sw_status bad_key(const sw_yaml *key, sw_error *err)
{
	static const char *const keys[] = {"variable", "way",  "owner", "proxy",
	                                   "stale",    "served", "parts", "axis", "codec", "merge",
	                                   "algorithm", "order", "chunk"};
	sw_nearest nearest = {.word = key->text};
	if (strcmp(key->text, "chunk") == 0)
		return sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
		                  "'chunk' is for all variables, and an entry of its own: give it "
		                  "a line '- chunk: ...' without other keys, or this entry merge: "
		                  "NAME");
	for (size_t i = 0; i < SW_COUNT(keys); i++)
		sw_nearest_try(&nearest, keys[i]);
	return sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
	                  "'%s': an entry has variable, way, merge, algorithm, order, codec, parts and "
	                  "axis; of way: ps also owner, proxy, stale and served; or merge, or chunk, "
	                  "alone%s",
	                  key->text, sw_nearest_hint(&nearest).text);
}

static sw_status read_way(const sw_yaml *value, sw_sync_entry *entry, sw_error *err)
{
	sw_text words = {0};
	sw_nearest nearest = {.word = value->text};
	for (int k = 0; k < SW_WAY_COUNT; k++) {
		if (strcmp(value->text, WAY_WORDS[k]) == 0) {
			entry->way.kind = (sw_way_kind)k;
			entry->has_way = true;
			sw_text_clear(&words);
			return SW_OK;
		}
		sw_text_addf(&words, "%s%s", k ? ", " : "", WAY_WORDS[k]);
		sw_nearest_try(&nearest, WAY_WORDS[k]);
	}
	sw_status status = sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                              "way: %s: expected one of %s%s", value->text, words.data,
	                              sw_nearest_hint(&nearest).text);
	sw_text_clear(&words);
	return status;
}

static sw_status read_owner(const sw_yaml *value, sw_sync_entry *entry, sw_error *err)
{
	entry->balanced = strcmp(value->text, "balanced") == 0;
	if (entry->balanced || sw_parse_count(value->text, &entry->way.owner))
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                  "owner: %s: expected the number of a device, from 0, or balanced",
	                  value->text);
}

static sw_status read_bool(const sw_yaml *key, const sw_yaml *value, bool *yes, sw_error *err)
{
	*yes = strcmp(value->text, "true") == 0;
	if (*yes || strcmp(value->text, "false") == 0)
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                  "%s: %s: expected true or false", key->text, value->text);
}

static sw_status read_proxy(const sw_yaml *key, const sw_yaml *value, sw_sync_entry *entry,
                            sw_error *err)
{
	SW_TRY(read_bool(key, value, &entry->way.proxy, err));
	entry->no_proxy = !entry->way.proxy;
	return SW_OK;
}

/* One variable can't be left out: what has owners is served, or nothing is. */
static sw_status read_served(const sw_yaml *key, const sw_yaml *value, sw_sync_entry *entry,
                             sw_error *err)
{
	SW_TRY(read_bool(key, value, &entry->served, err));
	return entry->served
	               ? SW_OK
	               : sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                            "served: false: all variables with way: ps are served where one "
	                            "is, or may be stale: leave it out, or give this one another "
	                            "way");
}

static sw_status read_stale(const sw_yaml *value, sw_sync_entry *entry, sw_error *err)
{
	entry->has_stale = sw_stale_parse(value->text, &entry->stale);
	return entry->has_stale
	               ? SW_OK
	               : sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                            "stale: %s: expected a number of steps from 0 to %d, or any",
	                            value->text, SW_MAX_STALE);
}

static sw_status bad_parts(const sw_yaml *value, sw_error *err)
{
	return sw_fail_at(
		err, SW_ERR_INPUT, "", value->line, value->column,
		"parts: expected a number from 2 to %d, or the sizes of the parts: [3, 5]",
		SW_MAX_VARIABLE_PARTS);
}

/* Read the number of parts, or a list of their sizes. */
static sw_status read_parts(const sw_yaml *value, sw_arena *arena, sw_sync_entry *entry,
                            sw_error *err)
{
	if (value->kind == SW_YAML_SCALAR)
		return sw_parse_count(value->text, &entry->parts) && entry->parts >= 2 &&
		                       entry->parts <= SW_MAX_VARIABLE_PARTS
		               ? SW_OK
		               : bad_parts(value, err);
	if (value->kind != SW_YAML_SEQUENCE || value->count < 2 ||
	    value->count > SW_MAX_VARIABLE_PARTS)
		return bad_parts(value, err);
	int64_t *sizes = SW_NEW_N(arena, int64_t, value->count);
	for (size_t i = 0; i < value->count; i++) {
		const sw_yaml *size = value->items[i];
		if (size->kind != SW_YAML_SCALAR || !sw_parse_count(size->text, &sizes[i]) ||
		    sizes[i] < 1)
			return bad_parts(size, err);
	}
	entry->sizes = (sw_ints){(int32_t)value->count, sizes};
	return SW_OK;
}

static sw_status read_axis(const sw_yaml *value, sw_sync_entry *entry, sw_error *err)
{
	int64_t axis;
	if (!sw_parse_count(value->text, &axis) || axis >= SW_MAX_RANK)
		return sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
		                  "axis: %s: expected the number of a dimension, from 0",
		                  value->text);
	entry->axis = (int32_t)axis;
	entry->has_axis = true;
	return SW_OK;
}

/* A group's name, or bytes: numbers are no names. */
static sw_status read_group(const sw_yaml *key, const sw_yaml *value, sw_sync_entry *entry,
                            sw_error *err)
{
	bool number = strchr("+-.0123456789", value->text[0]) != NULL; /* or empty */
	entry->of_group = key->line;
	entry->group = value->text;
	if (!number)
		return SW_OK;
	if (sw_parse_bytes(value->text, &entry->group_bytes) && entry->group_bytes >= 1)
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                  "merge: %s: expected the name of a group, or bytes of gradients, such as "
	                  "64MiB",
	                  value->text);
}

static sw_status read_algorithm(const sw_yaml *key, const sw_yaml *value, sw_sync_entry *entry,
                                sw_error *err)
{
	sw_algorithm algorithm;
	sw_nearest nearest = {.word = value->text};
	entry->of_algorithm = key->line;
	if (sw_algorithm_of(value->text, &algorithm)) {
		entry->algorithm = 1 + (uint32_t)algorithm;
		return SW_OK;
	}
	sw_text words = {0};
	for (int k = 0; k < SW_ALGORITHM_COUNT; k++) {
		sw_text_addf(&words, "%s%s", k ? ", " : "", sw_algorithm_name((sw_algorithm)k));
		sw_nearest_try(&nearest, sw_algorithm_name((sw_algorithm)k));
	}
	sw_status status = sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                              "algorithm: %s: expected one of %s%s", value->text, words.data,
	                              sw_nearest_hint(&nearest).text);
	sw_text_clear(&words);
	return status;
}

static sw_status read_order(const sw_yaml *key, const sw_yaml *value, sw_sync_entry *entry,
                            sw_error *err)
{
	int64_t order;
	entry->of_order = key->line;
	if (!sw_parse_count(value->text, &order) || order < 1 || order > SW_MAX_ORDER)
		return sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
		                  "order: %s: expected a number from 1 to %d: gradients of lower ones "
		                  "are summed first",
		                  value->text, SW_MAX_ORDER);
	entry->order = (uint32_t)order;
	return SW_OK;
}

static sw_status read_pair(const sw_yaml *key, const sw_yaml *value, sw_arena *arena,
                           sw_sync_entry *entry, sw_error *err)
{
	if (strcmp(key->text, "parts") == 0) {
		entry->of_parts = key->line;
		return read_parts(value, arena, entry, err);
	}
	if (value->kind != SW_YAML_SCALAR)
		return sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
		                  "%s: expected a single word", key->text);
	if (strcmp(key->text, "variable") == 0) {
		entry->pattern = value->text;
		return SW_OK;
	}
	if (strcmp(key->text, "way") == 0)
		return read_way(value, entry, err);
	if (strcmp(key->text, "axis") == 0)
		return read_axis(value, entry, err);
	if (strcmp(key->text, "merge") == 0)
		return read_group(key, value, entry, err);
	if (strcmp(key->text, "algorithm") == 0)
		return read_algorithm(key, value, entry, err);
	if (strcmp(key->text, "order") == 0)
		return read_order(key, value, entry, err);
	if (strcmp(key->text, "codec") == 0) {
		entry->has_codec = true;
		return sw_codec_parse(value->text, &entry->codec)
		               ? SW_OK
		               : sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
		                            "codec: %s: expected " SW_CODEC_WORDS, value->text);
	}
	entry->of_owner = entry->of_owner ? entry->of_owner : key->line;
	if (strcmp(key->text, "owner") == 0)
		return read_owner(value, entry, err);
	if (strcmp(key->text, "stale") == 0)
		return read_stale(value, entry, err);
	if (strcmp(key->text, "served") == 0)
		return read_served(key, value, entry, err);
	return strcmp(key->text, "proxy") == 0 ? read_proxy(key, value, entry, err)
	                                        : bad_key(key, err);
}

/* An algorithm, and an order, are of sums of gradients as they are, in the program of all devices. */
static sw_status check_sending(const sw_sync_entry *entry, sw_error *err)
{
	int line = entry->of_algorithm ? entry->of_algorithm : entry->of_order;
	const char *what = entry->of_algorithm ? "algorithm" : "order";
	if (!line)
		return SW_OK;
	if (entry->way.kind == SW_WAY_GATHER)
		return sw_fail_at(err, SW_ERR_INPUT, "", line, 0,
		                  "%s and way: gather: no gradient is summed: leave one out", what);
	if (entry->has_codec && entry->codec.kind)
		return sw_fail_at(err, SW_ERR_INPUT, "", line, 0,
		                  "%s and codec: codes are sent as is quickest: leave one out", what);
	if (entry->has_stale || entry->served)
		return sw_fail_at(err, SW_ERR_INPUT, "", line, 0,
		                  "%s and %s: terms go to the owner one by one: leave one out", what,
		                  entry->has_stale ? "stale" : "served");
	return SW_OK;
}

static sw_status read_entry(const sw_yaml *node, sw_arena *arena, sw_sync_entry *entry,
                            sw_error *err)
{
	*entry = (sw_sync_entry){.line = node->line, .balanced = true};
	if (node->kind != SW_YAML_MAPPING)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "expected an entry, such as {variable: \"*.w\", way: ps}");
	for (size_t i = 0; i < node->count; i++)
		SW_TRY(read_pair(node->keys[i], node->items[i], arena, entry, err));
	if (!entry->pattern || !entry->has_way)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "an entry lacks %s: give variable: PATTERN and way: WAY",
		                  entry->pattern ? "way" : "variable");
	if (entry->of_owner && entry->way.kind != SW_WAY_OWNED)
		return sw_fail_at(err, SW_ERR_INPUT, "", entry->of_owner, 0,
		                  "owner, proxy, stale and served are for way: ps, and this entry has "
		                  "way: %s",
		                  WAY_WORDS[entry->way.kind]);
	const char *key = entry->has_stale ? "stale" : entry->served ? "served" : NULL;
	if (key && entry->has_codec && entry->codec.kind)
		return sw_fail_at(err, SW_ERR_INPUT, "", entry->line, 0,
		                  "%s and codec: the owner adds up gradients as they are: leave "
		                  "one out",
		                  key);
	if (key && entry->no_proxy)
		return sw_fail_at(err, SW_ERR_INPUT, "", entry->of_owner, 0,
		                  "%s and proxy: false: each device computes with a copy of its "
		                  "own: leave one out",
		                  key);
	bool all_reduced =
		entry->way.kind == SW_WAY_ALL_REDUCE || entry->way.kind == SW_WAY_ANY;
	if (entry->of_group && !all_reduced)
		return sw_fail_at(err, SW_ERR_INPUT, "", entry->of_group, 0,
		                  "merge is for way: all-reduce, and this entry has way: %s",
		                  WAY_WORDS[entry->way.kind]);
	if (entry->of_group && entry->has_codec && entry->codec.kind)
		return sw_fail_at(err, SW_ERR_INPUT, "", entry->of_group, 0,
		                  "merge and codec: codes are sent apart: leave one out");
	SW_TRY(check_sending(entry, err));
	if (entry->group_bytes > 0)
		entry->group = sw_arena_printf(arena, "%s by %lldB", entry->pattern,
		                               (long long)entry->group_bytes);
	if (entry->way.kind == SW_WAY_GATHER &&
	    (entry->of_parts || (entry->has_codec && entry->codec.kind)))
		return sw_fail_at(err, SW_ERR_INPUT, "", entry->line, 0,
		                  "way: gather and %s: what the gradient is made of is sent, and all of "
		                  "it: leave one out",
		                  entry->of_parts ? "parts" : "codec");
	if (entry->has_axis && !entry->of_parts)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "axis is that along which a variable has parts: add parts: N");
	return SW_OK;
}

/* Is this an entry about all variables: how many all-reduces are one? */
static bool is_merge(const sw_yaml *node)
{
	return node->kind == SW_YAML_MAPPING && node->count == 1 &&
	       is_merge_key(node->keys[0]->text);
}

static sw_status read_merge(const sw_yaml *node, sw_sync *sync, sw_error *err)
{
	const sw_yaml *value = node->items[0];
	bool bytes = strcmp(node->keys[0]->text, "merge") == 0,
	     scalar = value->kind == SW_YAML_SCALAR;
	if (sync->merges)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "%s: an earlier entry says how many all-reduces are one: give "
		                  "merge or chunk once",
		                  node->keys[0]->text);
	sync->merges = true;
	sync->merge = (sw_merge){0};
	if (scalar &&
	    (bytes ? sw_parse_bytes(value->text, &sync->merge.bytes)
	           : sw_parse_count(value->text, &sync->merge.ops)) &&
	    sync->merge.bytes + sync->merge.ops >= 1)
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", value->line, value->column,
	                  bytes ? "merge: expected bytes of gradients, such as 64MiB"
	                        : "chunk: expected a number of variables from 1, such as 128");
}

sw_status sw_sync_of_yaml(const sw_yaml *root, sw_sync *sync, sw_error *err)
{
	if (root->kind != SW_YAML_SEQUENCE || root->count == 0)
		return sw_fail_at(err, SW_ERR_INPUT, "", root->line, root->column,
		                  "expected a list of entries, a line with '- ' each");
	sync->list = SW_NEW_N(&sync->arena, sw_sync_entry, root->count + 1);
	for (size_t i = 0; i < root->count; i++)
		SW_TRY(is_merge(root->items[i]) ? read_merge(root->items[i], sync, err)
		                                : read_entry(root->items[i], &sync->arena,
		                                             &sync->list[sync->n++], err));
	return SW_OK;
}

sw_status sw_sync_read(const char *path, sw_sync *sync, sw_error *err)
{
	const sw_yaml *root;
	*sync = (sw_sync){.file = path};
	sw_arena_init(&sync->arena);
	sw_status status = sw_yaml_read(path, &sync->arena, &root, err);
	if (status == SW_OK)
		status = sw_sync_of_yaml(root, sync, err);
	if (status != SW_OK)
		sw_sync_clear(sync);
	return sw_error_in_file(err, status, path);
}

void sw_sync_clear(sw_sync *sync)
{
	sw_arena_clear(&sync->arena);
	*sync = (sw_sync){0};
}

sw_merge sw_sync_merge(const sw_sync *sync, const sw_plan_strategy *strategy)
{
	return sync && sync->merges ? sync->merge : strategy->merge;
}

/* ---- printing --------------------------------------------------------------------------- */

static void add_quoted(const char *pattern, sw_text *text)
{
	sw_text_add(text, "\"");
	for (const char *c = pattern; *c; c++)
		sw_text_addf(text, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	sw_text_add(text, "\"");
}

static void print_entry(const sw_sync_entry *entry, sw_text *text)
{
	sw_text_add(text, "{variable: ");
	add_quoted(entry->pattern, text);
	sw_text_addf(text, ", way: %s", WAY_WORDS[entry->way.kind]);
	if (entry->way.kind == SW_WAY_OWNED && !entry->balanced)
		sw_text_addf(text, ", owner: %lld", (long long)entry->way.owner);
	if (entry->way.proxy)
		sw_text_add(text, ", proxy: true");
	if (entry->has_stale) {
		sw_text_add(text, ", stale: ");
		sw_stale_print(entry->stale, text);
	}
	if (entry->served)
		sw_text_add(text, ", served: true");
	if (entry->of_parts && entry->parts > 0)
		sw_text_addf(text, ", parts: %lld", (long long)entry->parts);
	for (int32_t i = 0; i < entry->sizes.n; i++)
		sw_text_addf(text, "%s%lld", i ? ", " : ", parts: [", (long long)entry->sizes.v[i]);
	sw_text_add(text, entry->sizes.n > 0 ? "]" : "");
	if (entry->axis > 0)
		sw_text_addf(text, ", axis: %d", entry->axis);
	if (entry->has_codec) {
		sw_text_add(text, ", codec: ");
		sw_codec_print(entry->codec, text);
	}
	if (entry->group_bytes)
		sw_text_addf(text, ", merge: %lldB", (long long)entry->group_bytes);
	else if (entry->group) {
		sw_text_add(text, ", merge: ");
		add_quoted(entry->group, text);
	}
	if (entry->algorithm)
		sw_text_addf(text, ", algorithm: %s",
		             sw_algorithm_name((sw_algorithm)(entry->algorithm - 1)));
	if (entry->order)
		sw_text_addf(text, ", order: %u", entry->order);
	sw_text_add(text, "}");
}

void sw_sync_print(const sw_sync *sync, const char *indent, sw_text *text)
{
	if (sync->merges && sync->merge.bytes > 0)
		sw_text_addf(text, "%s- merge: %lldB\n", indent, (long long)sync->merge.bytes);
	else if (sync->merges)
		sw_text_addf(text, "%s- chunk: %lld\n", indent, (long long)sync->merge.ops);
	for (size_t i = 0; i < sync->n; i++) {
		sw_text_addf(text, "%s- ", indent);
		print_entry(&sync->list[i], text);
		sw_text_add(text, "\n");
	}
}
