/* Names: HLO text has those of letters, digits, '_', '.' and '-'; what has another one, or a long
 * one that operands would repeat, is called by its id. */
#include "frontend/proto.h"

#define MOST_OF_A_NAME 128 /* bytes */

static bool is_name(sw_bytes name)
{
	if (name.at == name.end || name.end - name.at > MOST_OF_A_NAME)
		return false;
	for (const unsigned char *c = name.at; c < name.end; c++) {
		bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
		bool digit = (*c >= '0' && *c <= '9') || *c == '.' || *c == '-';
		if (!letter && !(digit && c > name.at))
			return false;
	}
	return true;
}

void sw_proto_name(sw_proto *p, sw_map *map, int64_t id, sw_bytes name)
{
	const sw_bytes none = {name.at, name.at};
	sw_vec_push(&p->spans, is_name(name) ? name : none);
	if (sw_map_put(map, &id, sizeof(id), (uint32_t)(p->spans.len - 1)) != SW_ABSENT)
		sw_proto_fail(p, name.at, "two things have the id %lld", (long long)id);
}

void sw_proto_add_name(sw_proto *p, const sw_map *map, int64_t id, const unsigned char *at)
{
	uint32_t number = sw_map_get(map, &id, sizeof(id));
	if (number == SW_ABSENT) {
		sw_proto_fail(p, at, "expected the id of something defined before, found %lld",
		              (long long)id);
		return;
	}
	sw_bytes name = p->spans.data[number];
	if (name.at == name.end)
		sw_text_addf(p->text, "id%llu", (unsigned long long)id);
	else
		sw_text_add_n(p->text, (const char *)name.at, (size_t)(name.end - name.at));
}

void sw_proto_add_string(sw_proto *p, sw_bytes string)
{
	sw_text_add(p->text, "\"");
	for (const unsigned char *c = string.at; c < string.end; c++)
		if (*c == '"' || *c == '\\' || *c < ' ' || *c == 127)
			sw_text_addf(p->text, "\\%03o", *c);
		else
			sw_text_add_n(p->text, (const char *)c, 1);
	sw_text_add(p->text, "\"");
}
