/* The table of attributes, and functions that read it. */
#include "program/attributes.h"

#include <string.h>

#define AT(member) offsetof(sw_attrs, member)
#define REQ SW_ATTRIBUTE_REQUIRED
#define OPT SW_ATTRIBUTE_OPTIONAL
#define ALW SW_ATTRIBUTE_ALWAYS
#define ALIAS SW_ATTRIBUTE_ALIAS
#define ROW(name, kind, use, offset, fallback)                                                     \
	{                                                                                          \
		name, SW_ATTRIBUTE_##kind, use, offset, fallback                                   \
	}
/* A called computation, at `index` of op->called. */
#define CALL(name, use, index)                                                                     \
	{                                                                                          \
		name, SW_ATTRIBUTE_COMPUTATION, use, index, 0                                      \
	}
#define CALLS(name, use)                                                                           \
	{                                                                                          \
		name, SW_ATTRIBUTE_COMPUTATIONS, use, 0, 0                                         \
	}

static const sw_attribute iota[] = {ROW("iota_dimension", INT, REQ, AT(iota.dimension), 0)};
static const sw_attribute compare[] = {
	ROW("direction", DIRECTION, REQ, AT(compare.direction), 0),
	ROW("type", WORD, OPT, AT(compare.type), 0),
};
static const sw_attribute dims[] = {ROW("dimensions", INTS, REQ, AT(dims.dims), 0)};
static const sw_attribute slice[] = {ROW("slice", SLICE, REQ, AT(slice), 0)};
static const sw_attribute dynamic_slice[] = {
	ROW("dynamic_slice_sizes", INTS, REQ, AT(dynamic_slice.sizes), 0),
};
static const sw_attribute pad[] = {ROW("padding", PADDING, REQ, AT(pad), 0)};
static const sw_attribute dot[] = {
	ROW("lhs_batch_dims", INTS, OPT, AT(dot.lhs_batch), 0),
	ROW("lhs_contracting_dims", INTS, ALW, AT(dot.lhs_contracting), 0),
	ROW("rhs_batch_dims", INTS, OPT, AT(dot.rhs_batch), 0),
	ROW("rhs_contracting_dims", INTS, ALW, AT(dot.rhs_contracting), 0),
};
static const sw_attribute ragged_dot[] = {
	ROW("lhs_batch_dims", INTS, OPT, AT(dot.lhs_batch), 0),
	ROW("lhs_contracting_dims", INTS, ALW, AT(dot.lhs_contracting), 0),
	ROW("rhs_batch_dims", INTS, OPT, AT(dot.rhs_batch), 0),
	ROW("rhs_contracting_dims", INTS, ALW, AT(dot.rhs_contracting), 0),
	ROW("lhs_ragged_dims", INTS, REQ, AT(dot.lhs_ragged), 0),
	ROW("rhs_group_dims", INTS, OPT, AT(dot.rhs_group), 0),
};
static const sw_attribute convolution[] = {
	ROW("window", WINDOW, OPT, AT(convolution.window), 0),
	ROW("dim_labels", DIM_LABELS, REQ, AT(convolution), 0),
	ROW("feature_group_count", INT, OPT, AT(convolution.feature_groups), 1),
	ROW("batch_group_count", INT, OPT, AT(convolution.batch_groups), 1),
};
static const sw_attribute reduce[] = {
	ROW("dimensions", INTS, REQ, AT(dims.dims), 0),
	CALL("to_apply", REQ, 0),
};
static const sw_attribute reduce_window[] = {
	ROW("window", WINDOW, OPT, AT(window.window), 0),
	CALL("to_apply", REQ, 0),
};
static const sw_attribute select_and_scatter[] = {
	ROW("window", WINDOW, OPT, AT(window.window), 0),
	CALL("select", REQ, 0),
	CALL("scatter", REQ, 1),
};
static const sw_attribute gather[] = {
	ROW("offset_dims", INTS, REQ, AT(index.offset), 0),
	ROW("collapsed_slice_dims", INTS, REQ, AT(index.collapsed), 0),
	ROW("start_index_map", INTS, REQ, AT(index.start_index_map), 0),
	ROW("operand_batching_dims", INTS, OPT, AT(index.operand_batch), 0),
	ROW("start_indices_batching_dims", INTS, OPT, AT(index.index_batch), 0),
	ROW("index_vector_dim", INT, REQ, AT(index.index_vector_dim), 0),
	ROW("slice_sizes", INTS, REQ, AT(index.slice_sizes), 0),
	ROW("indices_are_sorted", BOOL, OPT, AT(index.sorted), 0),
};
static const sw_attribute scatter[] = {
	ROW("update_window_dims", INTS, REQ, AT(index.offset), 0),
	ROW("inserted_window_dims", INTS, REQ, AT(index.collapsed), 0),
	ROW("scatter_dims_to_operand_dims", INTS, REQ, AT(index.start_index_map), 0),
	ROW("input_batching_dims", INTS, OPT, AT(index.operand_batch), 0),
	ROW("scatter_indices_batching_dims", INTS, OPT, AT(index.index_batch), 0),
	ROW("index_vector_dim", INT, REQ, AT(index.index_vector_dim), 0),
	ROW("indices_are_sorted", BOOL, OPT, AT(index.sorted), 0),
	ROW("unique_indices", BOOL, OPT, AT(index.unique), 0),
	CALL("to_apply", REQ, 0),
};
static const sw_attribute sort[] = {
	ROW("dimensions", INT_LIST1, REQ, AT(sort.dimension), 0),
	ROW("is_stable", BOOL, OPT, AT(sort.stable), 0),
	CALL("to_apply", REQ, 0),
};
static const sw_attribute topk[] = {
	ROW("k", INT, REQ, AT(topk.k), 0),
	ROW("largest", BOOL, ALW, AT(topk.largest), 1),
};
static const sw_attribute reduce_precision[] = {
	ROW("exponent_bits", INT, REQ, AT(reduce_precision.exponent_bits), 0),
	ROW("mantissa_bits", INT, REQ, AT(reduce_precision.mantissa_bits), 0),
};
static const sw_attribute rng[] = {ROW("algorithm", WORD, REQ, AT(rng.algorithm), 0)};
static const sw_attribute rng_old[] = {ROW("distribution", WORD, REQ, AT(rng_old.distribution), 0)};
static const sw_attribute rng_state[] = {ROW("delta", INT, REQ, AT(rng_state.delta), 0)};
static const sw_attribute scan[] = {
	ROW("dimensions", INT_LIST1, REQ, AT(scan.dimension), 0),
	ROW("num_carries", INT, REQ, AT(scan.carries), 0),
	ROW("is_reverse", BOOL, OPT, AT(scan.reverse), 0),
	ROW("is_associative", BOOL, OPT, AT(scan.associative), 0),
	CALL("to_apply", REQ, 0),
};
static const sw_attribute loop[] = {CALL("condition", REQ, 0), CALL("body", REQ, 1)};
static const sw_attribute conditional[] = {
	CALLS("branch_computations", ALW),
	CALL("true_computation", OPT, 0),
	CALL("false_computation", OPT, 1),
};
static const sw_attribute call[] = {CALL("to_apply", REQ, 0)};
static const sw_attribute fusion[] = {
	ROW("kind", WORD, OPT, AT(fusion.kind), 0),
	ROW("kernel", WORD, OPT, AT(fusion.kernel), 0),
	CALL("calls", REQ, 0),
};
static const sw_attribute calls_optional[] = {CALL("calls", OPT, 0)};
static const sw_attribute custom_call[] = {
	ROW("custom_call_target", STRING, REQ, AT(custom.target), 0),
	ROW("signature", STRING, OPT, AT(custom.signature), 0),
	CALLS("called_computations", OPT),
	CALL("to_apply", ALIAS, 0),
	CALL("calls", ALIAS, 0),
};
static const sw_attribute unknown[] = {
	CALLS("called_computations", OPT),
	CALL("to_apply", ALIAS, 0),
	CALL("calls", ALIAS, 0),
};
static const sw_attribute batch_norm[] = {
	ROW("epsilon", REAL, REQ, AT(batch_norm.epsilon), 0),
	ROW("feature_index", INT, REQ, AT(batch_norm.feature), 0),
};
static const sw_attribute fft[] = {
	ROW("fft_type", WORD, REQ, AT(fft.kind), 0),
	ROW("fft_length", INTS, REQ, AT(fft.length), 0),
};
static const sw_attribute triangular_solve[] = {
	ROW("left_side", BOOL, OPT, AT(triangular_solve.left_side), 0),
	ROW("lower", BOOL, OPT, AT(triangular_solve.lower), 0),
	ROW("unit_diagonal", BOOL, OPT, AT(triangular_solve.unit_diagonal), 0),
	ROW("transpose_a", WORD, OPT, AT(triangular_solve.transpose_a), 0),
};
static const sw_attribute cholesky[] = {ROW("lower", BOOL, OPT, AT(cholesky.lower), 0)};

#define CHANNEL ROW("channel_id", INT, OPT, AT(collective.channel), 0)
#define GROUPS ROW("replica_groups", GROUPS, ALW, AT(collective.groups), 0)
#define GLOBAL ROW("use_global_device_ids", BOOL, OPT, AT(collective.global_ids), 0)
#define DIMENSION(use) ROW("dimensions", INT_LIST1, use, AT(collective.dimension), -1)

static const sw_attribute all_gather[] = {CHANNEL, GROUPS, DIMENSION(REQ), GLOBAL};
static const sw_attribute all_reduce[] = {CHANNEL, GROUPS, GLOBAL, CALL("to_apply", REQ, 0)};
static const sw_attribute reduce_scatter[] = {
	CHANNEL, GROUPS, GLOBAL, DIMENSION(REQ), CALL("to_apply", REQ, 0),
};
static const sw_attribute all_to_all[] = {CHANNEL, GROUPS, DIMENSION(OPT), GLOBAL};
static const sw_attribute grouped[] = {CHANNEL, GROUPS, GLOBAL};
static const sw_attribute permute[] = {
	CHANNEL,
	ROW("source_target_pairs", PAIRS, REQ, AT(collective.pairs), 0),
};
static const sw_attribute channel[] = {CHANNEL};

typedef struct list {
	const sw_attribute *rows;
	size_t n;
} list;
#define LIST(opcode, rows) [SW_OP_##opcode] = {rows, SW_COUNT(rows)}

static const list lists[SW_OPCODE_COUNT] = {
	LIST(IOTA, iota),
	LIST(REDUCE_PRECISION, reduce_precision),
	LIST(COMPARE, compare),
	LIST(BROADCAST, dims),
	LIST(CONCATENATE, dims),
	LIST(DYNAMIC_SLICE, dynamic_slice),
	LIST(GATHER, gather),
	LIST(GET_DIMENSION_SIZE, dims),
	LIST(PAD, pad),
	LIST(REVERSE, dims),
	LIST(SET_DIMENSION_SIZE, dims),
	LIST(SLICE, slice),
	LIST(TRANSPOSE, dims),
	LIST(CONVOLUTION, convolution),
	LIST(DOT, dot),
	LIST(RAGGED_DOT, ragged_dot),
	LIST(SCALED_DOT, dot),
	LIST(REDUCE, reduce),
	LIST(REDUCE_WINDOW, reduce_window),
	LIST(SCATTER, scatter),
	LIST(SELECT_AND_SCATTER, select_and_scatter),
	LIST(SORT, sort),
	LIST(TOPK, topk),
	LIST(BATCH_NORM_GRAD, batch_norm),
	LIST(BATCH_NORM_INFERENCE, batch_norm),
	LIST(BATCH_NORM_TRAINING, batch_norm),
	LIST(CALL, call),
	LIST(CONDITIONAL, conditional),
	LIST(FUSION, fusion),
	LIST(MAP, reduce),
	LIST(SCAN, scan),
	LIST(WHILE, loop),
	LIST(RNG, rng_old),
	LIST(RNG_BIT_GENERATOR, rng),
	LIST(RNG_GET_AND_UPDATE_STATE, rng_state),
	LIST(CHOLESKY, cholesky),
	LIST(FFT, fft),
	LIST(TRIANGULAR_SOLVE, triangular_solve),
	LIST(ALL_GATHER, all_gather),
	LIST(ALL_GATHER_START, all_gather),
	LIST(ALL_REDUCE, all_reduce),
	LIST(ALL_REDUCE_START, all_reduce),
	LIST(ALL_TO_ALL, all_to_all),
	LIST(RAGGED_ALL_TO_ALL, grouped),
	LIST(COLLECTIVE_BROADCAST, grouped),
	LIST(COLLECTIVE_PERMUTE, permute),
	LIST(COLLECTIVE_PERMUTE_START, permute),
	LIST(REDUCE_SCATTER, reduce_scatter),
	LIST(SEND, channel),
	LIST(SEND_DONE, channel),
	LIST(RECV, channel),
	LIST(RECV_DONE, channel),
	LIST(ASYNC_START, calls_optional),
	LIST(ASYNC_UPDATE, calls_optional),
	LIST(ASYNC_DONE, calls_optional),
	LIST(CUSTOM_CALL, custom_call),
	LIST(UNKNOWN, unknown),
};

const sw_attribute *sw_attributes_of(sw_opcode opcode, size_t *n)
{
	*n = lists[opcode].n;
	return lists[opcode].rows;
}

const sw_attribute *sw_attribute_find(sw_opcode opcode, const char *name, size_t length)
{
	for (size_t i = 0; i < lists[opcode].n; i++) {
		const sw_attribute *row = &lists[opcode].rows[i];
		if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
			return row;
	}
	return NULL;
}

bool sw_opcode_has_attrs(sw_opcode opcode)
{
	switch (opcode) {
	case SW_OP_PARAMETER:
	case SW_OP_CONSTANT:
	case SW_OP_WHILE:
	case SW_OP_UNKNOWN:
		return true;
	default:
		break;
	}
	for (size_t i = 0; i < lists[opcode].n; i++) {
		if (!sw_attribute_is_call(&lists[opcode].rows[i]))
			return true;
	}
	return false;
}

void sw_attrs_init(sw_opcode opcode, sw_attrs *attrs)
{
	memset(attrs, 0, sizeof(*attrs));
	if (opcode == SW_OP_WHILE)
		attrs->loop.trip_count = -1;
	if (sw_opcode_class(opcode) == SW_CLASS_COLLECTIVE)
		attrs->collective.dimension = -1;
	for (size_t i = 0; i < lists[opcode].n; i++) {
		const sw_attribute *row = &lists[opcode].rows[i];
		void *member = sw_attribute_member(row, attrs);
		if (row->kind == SW_ATTRIBUTE_INT || row->kind == SW_ATTRIBUTE_INT_LIST1)
			*(int64_t *)member = row->fallback;
		else if (row->kind == SW_ATTRIBUTE_BOOL)
			*(bool *)member = row->fallback != 0;
	}
}

static const char *find_extra(const sw_extra *extras, const char *name)
{
	for (const sw_extra *e = extras; e; e = e->next)
		if (strcmp(e->name, name) == 0)
			return e->text;
	return NULL;
}

const char *sw_op_extra(const sw_op *op, const char *name)
{
	return find_extra(op->extras, name);
}

bool sw_program_is_scheduled(const sw_program *program)
{
	const char *text = find_extra(program->extras, "is_scheduled");
	return text && strcmp(text, "true") == 0;
}

void sw_program_set_scheduled(sw_program *program)
{
	if (sw_program_is_scheduled(program))
		return;
	sw_extra *extra = SW_NEW(&program->arena, sw_extra);
	*extra = (sw_extra){
		.name = "is_scheduled", .text = "true", .next = (sw_extra *)program->extras};
	program->extras = extra;
}
