/*
 * The attributes of an instruction: for each name in the opcode's table, where the protobuf has it
 * and in which form.
 */
#include "frontend/proto.h"

#include <string.h>

typedef void add_value(sw_proto *p, sw_bytes instruction, uint32_t field, uint32_t inner);

/* ---- lists -------------------------------------------------------------------------------- */

static void add_list(sw_proto *p, const char *open, const sw_proto_numbers *list, const char *close)
{
	sw_text_add(p->text, open);
	for (size_t i = 0; i < list->len; i++)
		sw_text_addf(p->text, "%s%lld", i ? "," : "", (long long)list->data[i]);
	sw_text_add(p->text, close);
}

static void add_listed(sw_proto *p, const char *open, sw_bytes m, uint32_t number,
                       const char *close)
{
	sw_proto_numbers list = {0};
	sw_proto_list(p, m, number, 0, &list);
	add_list(p, open, &list, close);
	sw_vec_clear(&list);
}

void sw_proto_add_ints(sw_proto *p, sw_bytes m, uint32_t number)
{
	add_listed(p, "{", m, number, "}");
}

/* Of the instruction itself (inner 0), or of the message in the field. */
static sw_bytes message_of(sw_proto *p, sw_bytes instruction, uint32_t field, uint32_t inner)
{
	return inner ? sw_proto_bytes(p, instruction, field) : instruction;
}

static void add_ints(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_proto_add_ints(p, message_of(p, i, field, inner), inner ? inner : field);
}

/* ---- single values ------------------------------------------------------------------------ */

static void add_int(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_bytes m = message_of(p, i, field, inner);
	sw_text_addf(p->text, "%lld", (long long)sw_proto_int(p, m, inner ? inner : field));
}

/* Groups count from 1 in HLO text, and an absent count is 0 in a protobuf. */
static void add_count(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	(void)inner;
	int64_t count = sw_proto_int(p, i, field);
	sw_text_addf(p->text, "%lld", (long long)(count ? count : 1));
}

static void add_first(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_proto_numbers list = {0};
	(void)inner;
	sw_proto_list(p, i, field, 0, &list);
	sw_text_addf(p->text, "%lld", list.len ? (long long)list.data[0] : 0);
	sw_vec_clear(&list);
}

static void add_bool(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_bytes m = message_of(p, i, field, inner);
	sw_text_add(p->text, sw_proto_int(p, m, inner ? inner : field) ? "true" : "false");
}

static void add_real(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	uint32_t bits = (uint32_t)sw_proto_find(p, i, field).value;
	float value;
	(void)inner;
	memcpy(&value, &bits, sizeof(value));
	sw_text_addf(p->text, "%.9g", (double)value);
}

static void add_word(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_bytes word = sw_proto_bytes(p, i, field);
	(void)inner;
	for (const unsigned char *c = word.at; c < word.end; c++)
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && *c != '_') {
			sw_proto_fail(p, c, "expected a word");
			return;
		}
	sw_text_add_n(p->text, (const char *)word.at, (size_t)(word.end - word.at));
}

static void add_string(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	(void)inner;
	sw_proto_add_string(p, sw_proto_bytes(p, i, field));
}

/* ---- words of enumerations ---------------------------------------------------------------- */

static void add_named(sw_proto *p, sw_bytes at, uint64_t number, const char *const *names, size_t n)
{
	if (number < n)
		sw_text_add(p->text, names[number]);
	else
		sw_proto_fail(p, at.at, "a value of an enumeration is not known: %llu",
		              (unsigned long long)number);
}

static void add_fft(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	static const char *const names[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
	(void)inner;
	add_named(p, i, sw_proto_find(p, i, field).value, names, SW_COUNT(names));
}

static void add_algorithm(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	static const char *const names[] = {"rng_default", "rng_three_fry", "rng_philox"};
	(void)inner;
	add_named(p, i, sw_proto_find(p, i, field).value, names, SW_COUNT(names));
}

static void add_distribution(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	static const char *const names[] = {"rng_invalid", "rng_uniform", "rng_normal"};
	(void)inner;
	add_named(p, i, sw_proto_find(p, i, field).value, names, SW_COUNT(names));
}

static void add_transposed(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	static const char *const names[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE",
	                                    "ADJOINT"};
	add_named(p, i, sw_proto_find(p, sw_proto_bytes(p, i, field), inner).value, names,
	          SW_COUNT(names));
}

/* ---- slices, paddings, windows, labels ---------------------------------------------------- */

static void add_slice(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	int n = 0;
	(void)inner;
	sw_text_add(p->text, "{");
	for (sw_proto_field f; (f = sw_proto_next(p, &i)).number;)
		if (f.number == field)
			sw_text_addf(p->text, "%s[%lld:%lld:%lld]", n++ ? ", " : "",
			             (long long)sw_proto_int(p, f.bytes, 1),
			             (long long)sw_proto_int(p, f.bytes, 2),
			             (long long)sw_proto_int(p, f.bytes, 3));
	sw_text_add(p->text, "}");
}

static void add_padding(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_bytes m = sw_proto_bytes(p, i, field);
	int n = 0;
	(void)inner;
	for (sw_proto_field f; (f = sw_proto_next(p, &m)).number;)
		if (f.number == 1)
			sw_text_addf(p->text, "%s%lld_%lld_%lld", n++ ? "x" : "",
			             (long long)sw_proto_int(p, f.bytes, 1),
			             (long long)sw_proto_int(p, f.bytes, 2),
			             (long long)sw_proto_int(p, f.bytes, 3));
}

static void add_window_row(sw_proto *p, const char *name, sw_bytes window, uint32_t field,
                           uint32_t second)
{
	int n = 0;
	sw_text_add(p->text, name);
	for (sw_proto_field f; (f = sw_proto_next(p, &window)).number;) {
		if (f.number != 1)
			continue;
		sw_text_addf(p->text, "%s%lld", n++ ? "x" : "",
		             (long long)sw_proto_int(p, f.bytes, field));
		if (second)
			sw_text_addf(p->text, "_%lld", (long long)sw_proto_int(p, f.bytes, second));
	}
}

static void add_window(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_bytes window = sw_proto_bytes(p, i, field);
	(void)inner;
	if (sw_proto_find(p, window, 1).number == 0) {
		sw_text_add(p->text, "{}");
		return;
	}
	add_window_row(p, "{size=", window, 1, 0);
	add_window_row(p, " stride=", window, 2, 0);
	add_window_row(p, " pad=", window, 3, 4);
	add_window_row(p, " lhs_dilate=", window, 6, 0);
	add_window_row(p, " rhs_dilate=", window, 5, 0);
	add_window_row(p, " rhs_reversal=", window, 7, 0);
	sw_text_add(p->text, "}");
}

/* Append the labels of an array's dimensions: the two given ones, and the numbers of the spatial
 * ones. */
static void add_labels(sw_proto *p, sw_bytes m, const char letters[2], uint32_t first,
                       uint32_t second, uint32_t spatial)
{
	sw_proto_numbers list = {0};
	sw_proto_list(p, m, spatial, 0, &list);
	int64_t places[2] = {sw_proto_int(p, m, first), sw_proto_int(p, m, second)};
	for (int64_t place = 0; place < (int64_t)list.len + 2; place++) {
		for (int k = 0; k < 2; k++)
			if (places[k] == place)
				sw_text_add_n(p->text, &letters[k], 1);
		for (size_t d = 0; d < list.len && d < 10; d++)
			if ((int64_t)list.data[d] == place)
				sw_text_addf(p->text, "%zu", d);
	}
	sw_vec_clear(&list);
}

static void add_dim_labels(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_bytes m = sw_proto_bytes(p, i, field);
	(void)inner;
	add_labels(p, m, "bf", 7, 8, 11);
	sw_text_add(p->text, "_");
	add_labels(p, m, "io", 3, 4, 6);
	sw_text_add(p->text, "->");
	add_labels(p, m, "bf", 9, 10, 12);
}

/* ---- groups of devices -------------------------------------------------------------------- */

static void add_iota_groups(sw_proto *p, sw_bytes m)
{
	sw_text_addf(p->text, "[%lld,%lld]<=", (long long)sw_proto_int(p, m, 1),
	             (long long)sw_proto_int(p, m, 2));
	add_listed(p, "[", m, 3, "]");
	if (sw_proto_find(p, m, 4).number)
		add_listed(p, "T(", m, 4, ")");
}

/* The groups stand in the instruction, in older files, or in its list of devices. */
static void add_groups(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	sw_bytes devices = sw_proto_bytes(p, i, inner);
	sw_bytes m = devices.at ? devices : i, iota = sw_proto_bytes(p, devices, 2);
	uint32_t number = devices.at ? 1 : field;
	int n = 0;
	if (iota.at) {
		add_iota_groups(p, iota);
		return;
	}
	sw_text_add(p->text, "{");
	for (sw_proto_field f; (f = sw_proto_next(p, &m)).number;)
		if (f.number == number) {
			sw_text_add(p->text, n++ ? "," : "");
			sw_proto_add_ints(p, f.bytes, 1);
		}
	sw_text_add(p->text, "}");
}

static void add_pairs(sw_proto *p, sw_bytes i, uint32_t field, uint32_t inner)
{
	int n = 0;
	(void)inner;
	sw_text_add(p->text, "{");
	for (sw_proto_field f; (f = sw_proto_next(p, &i)).number;)
		if (f.number == field)
			sw_text_addf(p->text, "%s{%lld,%lld}", n++ ? "," : "",
			             (long long)sw_proto_int(p, f.bytes, 1),
			             (long long)sw_proto_int(p, f.bytes, 2));
	sw_text_add(p->text, "}");
}

/* ---- the table ---------------------------------------------------------------------------- */

/* `field` of HloInstructionProto; `inner`: of the message in it. `absent`: leave the attribute out
 * where the instruction has no such field. */
typedef struct proto_attribute {
	const char *name;
	uint32_t field, inner;
	add_value *add;
	bool absent;
} proto_attribute;

static const proto_attribute table[] = {
	{"iota_dimension", 14, 0, add_first, false},
	{"direction", 63, 0, add_word, false},
	{"dimensions", 14, 0, add_ints, false},
	{"slice", 17, 0, add_slice, false},
	{"dynamic_slice_sizes", 20, 0, add_ints, false},
	{"padding", 21, 0, add_padding, false},
	{"lhs_contracting_dims", 30, 1, add_ints, false},
	{"rhs_contracting_dims", 30, 2, add_ints, false},
	{"lhs_batch_dims", 30, 3, add_ints, false},
	{"rhs_batch_dims", 30, 4, add_ints, false},
	{"lhs_ragged_dims", 90, 2, add_ints, false},
	{"rhs_group_dims", 90, 3, add_ints, false},
	{"window", 15, 0, add_window, true},
	{"dim_labels", 16, 0, add_dim_labels, false},
	{"feature_group_count", 50, 0, add_count, false},
	{"batch_group_count", 58, 0, add_count, false},
	{"collapsed_slice_dims", 33, 2, add_ints, false},
	{"start_index_map", 33, 3, add_ints, false},
	{"offset_dims", 33, 1, add_ints, false},
	{"operand_batching_dims", 33, 5, add_ints, false},
	{"start_indices_batching_dims", 33, 6, add_ints, false},
	{"slice_sizes", 34, 0, add_ints, false},
	{"update_window_dims", 48, 1, add_ints, false},
	{"inserted_window_dims", 48, 2, add_ints, false},
	{"scatter_dims_to_operand_dims", 48, 3, add_ints, false},
	{"input_batching_dims", 48, 5, add_ints, false},
	{"scatter_indices_batching_dims", 48, 6, add_ints, false},
	{"indices_are_sorted", 67, 0, add_bool, true},
	{"unique_indices", 69, 0, add_bool, true},
	{"is_stable", 60, 0, add_bool, true},
	{"k", 81, 0, add_int, false},
	{"largest", 85, 0, add_bool, false},
	{"exponent_bits", 18, 0, add_int, false},
	{"mantissa_bits", 19, 0, add_int, false},
	{"algorithm", 70, 0, add_algorithm, false},
	{"distribution", 23, 0, add_distribution, false},
	{"delta", 66, 0, add_int, false},
	{"kind", 11, 0, add_word, true},
	{"custom_call_target", 28, 0, add_string, false},
	{"epsilon", 24, 0, add_real, false},
	{"feature_index", 25, 0, add_int, false},
	{"fft_type", 31, 0, add_fft, false},
	{"fft_length", 32, 0, add_ints, false},
	{"left_side", 59, 1, add_bool, false},
	{"lower", 59, 2, add_bool, false},
	{"unit_diagonal", 59, 3, add_bool, false},
	{"transpose_a", 59, 4, add_transposed, false},
	{"channel_id", 26, 0, add_int, true},
	{"replica_groups", 49, 87, add_groups, false},
	{"use_global_device_ids", 71, 0, add_bool, true},
	{"source_target_pairs", 52, 0, add_pairs, false},
};

/* Gathers and scatters have one name at two places, and so have the options of two solvers. */
static bool find_special(sw_opcode opcode, const char *name, proto_attribute *found)
{
	if (strcmp(name, "index_vector_dim") == 0) {
		uint32_t field = opcode == SW_OP_GATHER ? 33 : 48;
		*found = (proto_attribute){name, field, 4, add_int, false};
		return true;
	}
	if (opcode == SW_OP_CHOLESKY && strcmp(name, "lower") == 0) {
		*found = (proto_attribute){name, 62, 1, add_bool, false};
		return true;
	}
	return false;
}

static bool find_row(const char *name, proto_attribute *found)
{
	for (size_t i = 0; i < SW_COUNT(table); i++)
		if (strcmp(table[i].name, name) == 0) {
			*found = table[i];
			return true;
		}
	return false;
}

/* The numbers of a ragged dot's dimensions lie one message deeper. */
static void add_ragged(sw_proto *p, const char *name, sw_bytes i, uint32_t inner)
{
	sw_bytes m = sw_proto_bytes(p, sw_proto_bytes(p, i, 90), 1);
	sw_text_addf(p->text, ", %s=", name);
	sw_proto_add_ints(p, m, inner);
}

static void add_plain(sw_proto *p, sw_opcode opcode, const sw_attribute *row, sw_bytes i)
{
	proto_attribute a;
	if (!find_special(opcode, row->name, &a) && !find_row(row->name, &a))
		return;
	if ((a.absent || row->kind == SW_ATTRIBUTE_INT_LIST1) &&
	    sw_proto_find(p, i, a.field).number == 0)
		return;
	if (opcode == SW_OP_RAGGED_DOT && a.field == 30) {
		add_ragged(p, row->name, i, a.inner);
		return;
	}
	sw_text_addf(p->text, ", %s=", row->name);
	a.add(p, i, a.field, a.inner);
}

/* ---- called computations ------------------------------------------------------------------ */

static void add_callee(sw_proto *p, const sw_proto_numbers *ids, size_t k, sw_bytes i)
{
	if (k < ids->len)
		sw_proto_add_name(p, &p->computations, (int64_t)ids->data[k], i.at);
}

/* A loop's protobuf has its body first, and its condition then. */
static void add_call(sw_proto *p, sw_opcode opcode, const sw_attribute *row,
                     const sw_proto_numbers *ids, sw_bytes i)
{
	size_t k = opcode == SW_OP_WHILE ? 1 - row->offset : row->offset;
	if (row->kind == SW_ATTRIBUTE_COMPUTATION) {
		if (k >= ids->len || row->use == SW_ATTRIBUTE_ALIAS || opcode == SW_OP_CONDITIONAL)
			return;
		sw_text_addf(p->text, ", %s=", row->name);
		add_callee(p, ids, k, i);
		return;
	}
	if (ids->len == 0)
		return;
	sw_text_addf(p->text, ", %s={", row->name);
	for (k = 0; k < ids->len; k++) {
		sw_text_add(p->text, k ? ", " : "");
		add_callee(p, ids, k, i);
	}
	sw_text_add(p->text, "}");
}

/* A comparison's type is written where it is not the usual one of the operands. */
static void add_comparison_type(sw_proto *p, sw_bytes i)
{
	sw_bytes type = sw_proto_bytes(p, i, 72);
	if (type.end - type.at == 10 && memcmp(type.at, "TOTALORDER", 10) == 0)
		sw_text_add(p->text, ", type=TOTALORDER");
}

static void add_precision(sw_proto *p, sw_bytes i)
{
	static const char *const names[] = {"default", "high", "highest"};
	sw_proto_numbers list = {0};
	uint64_t any = 0;
	sw_proto_list(p, sw_proto_bytes(p, i, 51), 1, 0, &list);
	for (size_t k = 0; k < list.len; k++)
		any |= list.data[k];
	for (size_t k = 0; k < list.len && any; k++) {
		sw_text_add(p->text, k ? "," : ", operand_precision={");
		add_named(p, i, list.data[k], names, SW_COUNT(names));
	}
	sw_text_add(p->text, any ? "}" : "");
	sw_vec_clear(&list);
}

/* What HLO text has besides the table's attributes, which no stage interprets. */
static void add_extras(sw_proto *p, sw_opcode opcode, sw_bytes i)
{
	if (opcode == SW_OP_TOPK && sw_proto_int(p, i, 60))
		sw_text_add(p->text, ", is_stable=true");
	sw_proto_add_sharding(p, i);
	if (sw_proto_int(p, sw_proto_bytes(p, i, 91), 1) == 1)
		sw_text_add(p->text, ", result_accuracy={mode=highest}");
	add_precision(p, i);
}

void sw_proto_add_attributes(sw_proto *p, sw_opcode opcode, sw_bytes i)
{
	sw_proto_numbers ids = {0};
	size_t n;
	const sw_attribute *rows = sw_attributes_of(opcode, &n);
	sw_proto_list(p, i, 38, 0, &ids);
	for (size_t k = 0; k < n; k++)
		if (sw_attribute_is_call(&rows[k]))
			add_call(p, opcode, &rows[k], &ids, i);
		else
			add_plain(p, opcode, &rows[k], i);
	if (opcode == SW_OP_COMPARE)
		add_comparison_type(p, i);
	add_extras(p, opcode, i);
	sw_vec_clear(&ids);
}
