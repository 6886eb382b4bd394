/* JSON: jansson's reader and values, our errors. */
#include "base/base.h"
#include "base/memory.h"

#include <string.h>

/* jansson leaves out a member whose memory is refused, and says nothing. */
static void *allocate(size_t bytes)
{
	void *data = malloc(bytes);
	if (!data)
		sw_memory_refused(bytes);
	return data;
}

void sw_json_never_short(void)
{
	json_set_alloc_funcs(allocate, free);
}

sw_status sw_json_parse(const char *text, size_t length, json_t **root, sw_error *err)
{
	json_error_t trouble;
	json_t *parsed = json_loadb(text, length, JSON_REJECT_DUPLICATES, &trouble);
	if (!parsed)
		return sw_fail_at(err, SW_ERR_INPUT, "", trouble.line, SW_MAX(trouble.column, 1),
		                  "bad JSON: %s", trouble.text);
	*root = parsed;
	return SW_OK;
}

sw_status sw_json_read(const char *path, json_t **root, sw_error *err)
{
	char *text = NULL;
	size_t length = 0;
	sw_status status = sw_file_read_most(path, SW_MAX_JSON_BYTES, &text, &length, err);
	if (status != SW_OK)
		return status;
	status = sw_json_parse(text, length, root, err);
	free(text);
	return sw_error_in_file(err, status, path);
}

static const char *kind_name(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		return "null";
	}
	return "an unknown kind";
}

/* Return the member, or NULL with the error "WHERE.KEY: missing, expected KIND". */
static json_t *member(const json_t *object, const char *key, const char *where, const char *kind,
                      sw_error *err)
{
	bool named = where && where[0];
	if (!json_is_object(object)) {
		sw_fail(err, SW_ERR_INPUT, "%s: expected an object with \"%s\", found %s",
		        named ? where : "top level", key, object ? kind_name(object) : "nothing");
		return NULL;
	}
	json_t *value = json_object_get(object, key);
	if (!value)
		sw_fail(err, SW_ERR_INPUT, "%s%s%s: missing, expected %s", named ? where : "",
		        named ? "." : "", key, kind);
	return value;
}

static sw_status wrong_kind(const json_t *value, const char *key, const char *where,
                            const char *kind, sw_error *err)
{
	bool named = where && where[0];
	return sw_fail(err, SW_ERR_INPUT, "%s%s%s: expected %s, found %s", named ? where : "",
	               named ? "." : "", key, kind, kind_name(value));
}

sw_status sw_json_get_int(const json_t *object, const char *key, const char *where, int64_t *value,
                          sw_error *err)
{
	const json_t *found = member(object, key, where, "an integer", err);
	if (!found)
		return SW_ERR_INPUT;
	if (!json_is_integer(found))
		return wrong_kind(found, key, where, "an integer", err);
	*value = json_integer_value(found);
	return SW_OK;
}

sw_status sw_json_get_real(const json_t *object, const char *key, const char *where, double *value,
                           sw_error *err)
{
	const json_t *found = member(object, key, where, "a number", err);
	if (!found)
		return SW_ERR_INPUT;
	if (!json_is_number(found))
		return wrong_kind(found, key, where, "a number", err);
	*value = json_number_value(found);
	return SW_OK;
}

sw_status sw_json_get_text(const json_t *object, const char *key, const char *where,
                           const char **value, sw_error *err)
{
	const json_t *found = member(object, key, where, "a string", err);
	if (!found)
		return SW_ERR_INPUT;
	if (!json_is_string(found))
		return wrong_kind(found, key, where, "a string", err);
	*value = json_string_value(found);
	return SW_OK;
}

sw_status sw_json_get_array(const json_t *object, const char *key, const char *where,
                            json_t **value, sw_error *err)
{
	json_t *found = member(object, key, where, "an array", err);
	if (!found)
		return SW_ERR_INPUT;
	if (!json_is_array(found))
		return wrong_kind(found, key, where, "an array", err);
	*value = found;
	return SW_OK;
}

sw_status sw_json_get_object(const json_t *object, const char *key, const char *where,
                             json_t **value, sw_error *err)
{
	json_t *found = member(object, key, where, "an object", err);
	if (!found)
		return SW_ERR_INPUT;
	if (!json_is_object(found))
		return wrong_kind(found, key, where, "an object", err);
	*value = found;
	return SW_OK;
}

sw_status sw_json_check_keys(const json_t *object, const char *where, const char *const *keys,
                             size_t n, sw_error *err)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		sw_nearest nearest = {.word = key};
		bool known = false;
		for (size_t i = 0; i < n && !known; i++)
			known = keys[i] && strcmp(keys[i], key) == 0;
		if (known)
			continue;
		for (size_t i = 0; i < n; i++)
			if (keys[i])
				sw_nearest_try(&nearest, keys[i]);
		return sw_fail(err, SW_ERR_INPUT, "%s%s%.60s: unknown key%s", where,
		               where[0] ? "." : "", key, sw_nearest_hint(&nearest).text);
	}
	return SW_OK;
}
