/*
 * The reader of plan files, on any bytes, run in the root of the source, where the first plans'
 * programs are: what it accepts is a plan that can be partitioned, and it is written and read
 * again.
 *
 * Bytes changed at random are hardly ever JSON: what is JSON is changed in one place of its tree.
 */
#include "partition/partition.h"

#include <stdlib.h>
#include <string.h>

#include "in_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

static void expect(sw_status status, const sw_error *err)
{
	if (status == SW_OK)
		return;
	fprintf(stderr, "%s: %s\n", sw_status_name(status), err->message);
	abort();
}

static void write_and_read_again(const sw_plan *plan)
{
	sw_cluster cluster;
	sw_plan *again = NULL;
	sw_error err = {0};
	fuzz_file file = fuzz_file_open((const uint8_t *)"", 0);
	expect(sw_plan_write(plan, file.path, &err), &err);
	expect(sw_plan_read(file.path, &cluster, &again, &err), &err);
	sw_plan_free(again);
	sw_cluster_clear(&cluster);
	fuzz_file_close(&file);
}

/* A plan that was read is partitioned without an error: impossible ones are refused before. */
static void use(sw_plan *plan)
{
	sw_program_cost cost;
	sw_error err = {0};
	expect(sw_plan_verify(plan, &err), &err);
	expect(sw_partition_measure(plan, &cost, &err), &err);
	write_and_read_again(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_cluster cluster;
	sw_plan *plan = NULL;
	sw_error err = {0};
	fuzz_file file = fuzz_file_open(data, size);
	sw_status status = sw_plan_read(file.path, &cluster, &plan, &err);
	fuzz_file_close(&file);
	if (status == SW_OK) {
		use(plan);
		sw_plan_free(plan);
		sw_cluster_clear(&cluster);
	} else if (!err.message[0] || err.code != status ||
	           (status != SW_ERR_INPUT && status != SW_ERR_IO)) {
		fprintf(stderr, "%s: %s\n", sw_status_name(status), err.message);
		abort();
	}
	return 0;
}

/* ---- changing a plan -------------------------------------------------------------------- */

/* Somewhere in the tree: the object or array that holds it, and its place in that. */
typedef struct spot {
	json_t *holder;
	const char *key;
	size_t index;
} spot;

static json_t *at_spot(const spot *s)
{
	return s->key ? json_object_get(s->holder, s->key) : json_array_get(s->holder, s->index);
}

typedef struct dice {
	uint64_t seed, rolled;
} dice;

static uint64_t roll(dice *d, uint64_t sides)
{
	return sw_random_bits(d->seed, 0, d->rolled++) % sides;
}

static spot pick(json_t *root, dice *d)
{
	spot s = {0};
	for (json_t *node = root; json_object_size(node) + json_array_size(node) > 0;
	     node = at_spot(&s)) {
		const char *key;
		json_t *value;
		size_t k = 0, index = roll(d, json_object_size(node) + json_array_size(node));
		s = (spot){.holder = node, .index = index};
		json_object_foreach(node, key, value) if (k++ == index) s.key = key;
		if (roll(d, 16) == 0)
			break;
	}
	return s;
}

static json_t *changed_text(const char *text)
{
	uint8_t room[256];
	size_t length = SW_MIN(strlen(text), sizeof(room) / 2);
	memcpy(room, text, length);
	length = LLVMFuzzerMutate(room, length, sizeof(room));
	return json_stringn((const char *)room, length);
}

static json_t *changed(const json_t *was, dice *d)
{
	static const json_int_t numbers[] = {0, 1,       -1,        2,         3,
	                                     7, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};
	if (json_is_string(was) && roll(d, 8))
		return changed_text(json_string_value(was));
	switch (roll(d, 6)) {
	case 0:
		return json_null();
	case 1:
		return json_array();
	case 2:
		return json_object();
	case 3:
		return json_string("");
	default:
		return json_integer(numbers[roll(d, SW_COUNT(numbers))]);
	}
}

static void put(const spot *s, json_t *value)
{
	if (!value || !s->holder)
		json_decref(value);
	else if (s->key)
		json_object_set_new(s->holder, s->key, value);
	else
		json_array_set_new(s->holder, s->index, value);
}

static void change(json_t *root, dice *d)
{
	spot s = pick(root, d), other = pick(root, d);
	uint64_t how = roll(d, 8);
	if (!s.holder)
		return;
	if (how == 0 && s.key)
		json_object_del(s.holder, s.key);
	else if (how == 0)
		json_array_remove(s.holder, s.index);
	else if (how < 3)
		put(&s, json_deep_copy(at_spot(&other)));
	else
		put(&s, changed(at_spot(&s), d));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	json_t *root = json_loadb((const char *)data, size, 0, NULL);
	dice d = {.seed = seed};
	if (!root || roll(&d, 16) == 0) {
		json_decref(root);
		return LLVMFuzzerMutate(data, size, room);
	}
	change(root, &d);
	char *text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	size_t length = text ? strlen(text) : 0;
	if (length > 0 && length <= room)
		memcpy(data, text, size = length);
	free(text);
	return size;
}
