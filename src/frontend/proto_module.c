/* The driver of the protobuf reader: a module, its computations and instructions, as HLO text. */
#include "frontend/frontend.h"
#include "frontend/proto.h"

/* ---- instructions ------------------------------------------------------------------------- */

static void add_operands(sw_proto *p, sw_bytes i)
{
	sw_proto_numbers ids = {0};
	sw_proto_list(p, i, 36, 0, &ids);
	for (size_t k = 0; k < ids.len; k++) {
		sw_text_add(p->text, k ? ", " : "");
		sw_proto_add_name(p, &p->names, (int64_t)ids.data[k], i.at);
	}
	sw_vec_clear(&ids);
}

static bool is_word(sw_bytes word)
{
	for (const unsigned char *c = word.at; c < word.end; c++)
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && *c != '-')
			return false;
	return word.at < word.end;
}

/* Append what stands behind the opcode, `(...)`. */
static void add_parentheses(sw_proto *p, sw_opcode opcode, sw_bytes i)
{
	sw_text_add(p->text, "(");
	if (opcode == SW_OP_PARAMETER)
		sw_text_addf(p->text, "%lld", (long long)sw_proto_int(p, i, 9));
	else if (opcode == SW_OP_CONSTANT)
		sw_proto_add_literal(p, sw_proto_bytes(p, i, 8));
	else
		add_operands(p, i);
	sw_text_add(p->text, ")");
}

static void add_metadata(sw_proto *p, sw_bytes i)
{
	sw_bytes name = sw_proto_bytes(p, sw_proto_bytes(p, i, 7), 2);
	if (name.at == name.end)
		return;
	sw_text_add(p->text, ", metadata={op_name=");
	sw_proto_add_string(p, name);
	sw_text_add(p->text, "}");
}

static void add_instruction(sw_proto *p, sw_bytes i, int64_t root)
{
	sw_bytes word = sw_proto_bytes(p, i, 2);
	int64_t id = sw_proto_int(p, i, 35);
	sw_opcode opcode = SW_OP_UNKNOWN;
	if (!is_word(word)) {
		sw_proto_fail(p, i.at, "an instruction has no opcode");
		return;
	}
	sw_opcode_find((const char *)word.at, (size_t)(word.end - word.at), &opcode);
	sw_text_add(p->text, id == root ? "  ROOT " : "  ");
	sw_proto_name(p, &p->names, id, sw_proto_bytes(p, i, 1));
	sw_proto_add_name(p, &p->names, id, i.at);
	sw_text_add(p->text, " = ");
	sw_proto_add_shape(p, sw_proto_bytes(p, i, 3));
	sw_text_add(p->text, " ");
	sw_text_add_n(p->text, (const char *)word.at, (size_t)(word.end - word.at));
	add_parentheses(p, opcode, i);
	if (opcode == SW_OP_GET_TUPLE_ELEMENT)
		sw_text_addf(p->text, ", index=%lld", (long long)sw_proto_int(p, i, 13));
	sw_proto_add_attributes(p, opcode, i);
	add_metadata(p, i);
	sw_text_add(p->text, "\n");
}

static void add_computation(sw_proto *p, sw_bytes c, int64_t entry)
{
	int64_t id = sw_proto_int(p, c, 5), root = sw_proto_int(p, c, 6);
	sw_map_clear(&p->names);
	sw_proto_name(p, &p->computations, id, sw_proto_bytes(p, c, 1));
	sw_text_add(p->text, id == entry ? "\nENTRY " : "\n");
	sw_proto_add_name(p, &p->computations, id, c.at);
	sw_text_add(p->text, " {\n");
	for (sw_proto_field f; (f = sw_proto_next(p, &c)).number;)
		if (f.number == 2)
			add_instruction(p, f.bytes, root);
	sw_text_add(p->text, "}\n");
}

/* ---- the header --------------------------------------------------------------------------- */

static void add_aliases(sw_proto *p, sw_bytes aliases)
{
	int n = 0;
	if (!aliases.at)
		return;
	sw_text_add(p->text, ", input_output_alias={");
	for (sw_proto_field f; (f = sw_proto_next(p, &aliases)).number;) {
		if (f.number != 1)
			continue;
		sw_text_add(p->text, n++ ? ", " : " ");
		sw_proto_add_ints(p, f.bytes, 1);
		sw_text_addf(p->text, ": (%lld, ", (long long)sw_proto_int(p, f.bytes, 2));
		sw_proto_add_ints(p, f.bytes, 3);
		sw_text_add(p->text,
		            sw_proto_int(p, f.bytes, 4) == 2 ? ", must-alias)" : ", may-alias)");
	}
	sw_text_add(p->text, " }");
}

static void add_donors(sw_proto *p, sw_bytes donors)
{
	int n = 0;
	if (!donors.at)
		return;
	sw_text_add(p->text, ", buffer_donor={");
	for (sw_proto_field f; (f = sw_proto_next(p, &donors)).number;) {
		if (f.number != 1)
			continue;
		sw_text_addf(p->text, "%s(%lld, ", n++ ? ", " : " ",
		             (long long)sw_proto_int(p, f.bytes, 1));
		sw_proto_add_ints(p, f.bytes, 2);
		sw_text_add(p->text, ")");
	}
	sw_text_add(p->text, " }");
}

/* The numbers of partitions and replicas are not in the module but in its assignment of devices. */
static void add_devices(sw_proto *p, sw_bytes assignment)
{
	int64_t replicas = sw_proto_int(p, assignment, 1),
		partitions = sw_proto_int(p, assignment, 2);
	if (replicas > 1)
		sw_text_addf(p->text, ", replica_count=%lld", (long long)replicas);
	if (partitions > 1)
		sw_text_addf(p->text, ", num_partitions=%lld", (long long)partitions);
}

static void add_header(sw_proto *p, sw_bytes module)
{
	sw_bytes name = sw_proto_bytes(p, module, 1);
	sw_map map = {0};
	sw_text_add(p->text, "HloModule ");
	sw_proto_name(p, &map, 0, name);
	sw_proto_add_name(p, &map, 0, module.at);
	sw_map_clear(&map);
	add_aliases(p, sw_proto_bytes(p, module, 8));
	add_donors(p, sw_proto_bytes(p, module, 18));
	add_devices(p, sw_proto_bytes(p, module, 15));
	sw_proto_add_meshes(p, module);
	sw_text_add(p->text, "\n");
}

/* ---- the driver --------------------------------------------------------------------------- */

static void add_module(sw_proto *p, sw_bytes module)
{
	int64_t entry = sw_proto_int(p, module, 6);
	add_header(p, module);
	for (sw_proto_field f; (f = sw_proto_next(p, &module)).number;)
		if (f.number == 3)
			add_computation(p, f.bytes, entry);
}

/* An HloProto has the module in its first field, where the module has its name. */
static sw_bytes module_in(sw_proto *p, sw_bytes whole)
{
	bool has_computations =
		sw_proto_find(p, whole, 3).number != 0 && sw_proto_find(p, whole, 2).number != 0;
	return has_computations ? whole : sw_proto_bytes(p, whole, 1);
}

static sw_status write_text(const char *data, size_t length, const char *file, sw_text *text,
                            sw_error *err)
{
	const unsigned char *begin = (const unsigned char *)data;
	sw_proto p = {.begin = begin, .file = file ? file : "", .err = err, .text = text};
	add_module(&p, module_in(&p, (sw_bytes){begin, begin + length}));
	sw_map_clear(&p.names);
	sw_map_clear(&p.computations);
	sw_vec_clear(&p.spans);
	return p.status;
}

sw_status sw_read_hlo_proto(const char *data, size_t length, const char *file, sw_program **program,
                            sw_error *err)
{
	sw_text text = {0};
	sw_status status = write_text(data, length, file, &text, err);
	if (status == SW_OK) {
		status = sw_read_hlo(text.data, text.len, file, program, err);
		/* places in the text mean nothing to the user */
		if (status && err)
			err->line = err->column = 0;
	}
	sw_text_clear(&text);
	return status;
}
