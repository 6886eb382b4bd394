/* Shardings in serialised HLO, in the words of HLO text. */
#include "frontend/proto.h"

#include <string.h>

static void add_listed(sw_proto *p, const char *open, sw_bytes m, uint32_t number,
                       const char *close)
{
	sw_proto_numbers list = {0};
	sw_proto_list(p, m, number, 0, &list);
	sw_text_add(p->text, open);
	for (size_t i = 0; i < list.len; i++)
		sw_text_addf(p->text, "%s%lld", i ? "," : "", (long long)list.data[i]);
	sw_text_add(p->text, close);
	sw_vec_clear(&list);
}

/* The last dimensions of the tiles are none of the array's. */
static void add_last_dims(sw_proto *p, sw_bytes m)
{
	static const char *const names[] = {[0] = "replicated", [4] = "manual"};
	sw_proto_numbers list = {0};
	if (sw_proto_int(p, m, 6))
		sw_text_add(p->text, " last_tile_dim_replicate");
	sw_proto_list(p, m, 8, 0, &list);
	for (size_t k = 0; k < list.len; k++) {
		bool known = list.data[k] < SW_COUNT(names) && names[list.data[k]];
		sw_text_addf(p->text, "%s%s", k ? ", " : " last_tile_dims={",
		             known ? names[list.data[k]] : "unknown");
	}
	sw_text_add(p->text, list.len ? "}" : "");
	sw_vec_clear(&list);
}

/* An OpSharding, in the words of HLO text. That of a tuple is none of an array. */
static void add_sharding(sw_proto *p, sw_bytes m)
{
	int64_t type = sw_proto_int(p, m, 1);
	if (!m.at || type == 2)
		return;
	if (type != 3) {
		sw_text_add(p->text, type == 0   ? ", sharding={replicated}"
		                     : type == 4 ? ", sharding={manual}"
		                                 : ", sharding={unknown}");
		return;
	}
	add_listed(p, ", sharding={devices=[", m, 3, "]");
	if (sw_proto_find(p, m, 9).number) {
		add_listed(p, "<=[", m, 9, "]");
		if (sw_proto_find(p, m, 10).number)
			add_listed(p, "T(", m, 10, ")");
	} else {
		add_listed(p, "", m, 4, "");
	}
	add_last_dims(p, m);
	sw_text_add(p->text, "}");
}

/* Append the value of a key, if a map of frontend attributes has it. */
static void add_frontend(sw_proto *p, sw_bytes attributes, const char *key)
{
	for (sw_proto_field f; (f = sw_proto_next(p, &attributes)).number;) {
		sw_bytes name = f.number == 1 ? sw_proto_bytes(p, f.bytes, 1) : (sw_bytes){0};
		size_t length = (size_t)(name.end - name.at);
		if (!name.at || length != strlen(key) || memcmp(name.at, key, length) != 0)
			continue;
		sw_text_addf(p->text, ", frontend_attributes={%s=", key);
		sw_proto_add_string(p, sw_proto_bytes(p, f.bytes, 2));
		sw_text_add(p->text, "}");
		return;
	}
}

void sw_proto_add_meshes(sw_proto *p, sw_bytes module)
{
	add_frontend(p, sw_proto_bytes(p, module, 19), "xla.sdy.meshes");
}

void sw_proto_add_sharding(sw_proto *p, sw_bytes instruction)
{
	add_sharding(p, sw_proto_bytes(p, instruction, 40));
	add_frontend(p, sw_proto_bytes(p, instruction, 68), "xla.sdy.sharding");
}
