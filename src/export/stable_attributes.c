/* The attributes of ops that compute on one device. */
#include "export/stable_writer.h"

#include <stdlib.h>
#include <string.h>

#include "export/attention_calls.h"
#include "program/attributes.h"

void sw_stable_key(sw_stable_writer *w, const char *name)
{
	bool first = w->text->data[w->text->len - 1] == '{';
	sw_text_addf(w->text, "%s%s = ", first ? "" : ", ", name);
}

static void add_ints(sw_stable_writer *w, const int64_t *v, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		sw_text_addf(w->text, "%s%lld", i ? ", " : "", (long long)v[i]);
}

void sw_stable_array(sw_stable_writer *w, const char *name, sw_ints list)
{
	sw_stable_key(w, name);
	sw_text_add(w->text, list.n ? "array<i64: " : "array<i64");
	add_ints(w, list.v, list.n);
	sw_text_add(w->text, ">");
}

void sw_stable_int(sw_stable_writer *w, const char *name, int64_t value)
{
	sw_stable_key(w, name);
	sw_text_addf(w->text, "%lld : i64", (long long)value);
}

void sw_stable_flag(sw_stable_writer *w, const char *name, bool value)
{
	sw_stable_key(w, name);
	sw_text_add(w->text, value ? "true" : "false");
}

void sw_stable_matrix(sw_stable_writer *w, const char *name, const int64_t *v, int64_t rows,
                      int64_t columns)
{
	sw_stable_key(w, name);
	sw_text_add(w->text, rows && columns ? "dense<[" : "dense<");
	for (int64_t i = 0; i < rows && columns; i++) {
		sw_text_add(w->text, i ? ", [" : "[");
		add_ints(w, v + i * columns, columns);
		sw_text_add(w->text, "]");
	}
	sw_text_addf(w->text, "%s> : tensor<%lldx%lldxi64>", rows && columns ? "]" : "",
	             (long long)rows, (long long)columns);
}

/* ---- moves ------------------------------------------------------------------------------ */

sw_status sw_stable_constant(sw_stable_writer *w, const sw_op *op)
{
	if (!op->attrs->constant.data)
		return sw_stable_fail(w, op,
		                      "its elements are not in the program's text: export it with "
		                      "print_large_constants=True");
	sw_stable_key(w, "value");
	sw_stable_literal(w, op->attrs->constant);
	return SW_OK;
}

sw_status sw_stable_iota(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_int(w, "iota_dimension", op->attrs->iota.dimension);
	return SW_OK;
}

sw_status sw_stable_broadcast(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_array(w, "broadcast_dimensions", op->attrs->dims.dims);
	return SW_OK;
}

sw_status sw_stable_transpose(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_array(w, "permutation", op->attrs->dims.dims);
	return SW_OK;
}

sw_status sw_stable_dimensions(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_array(w, "dimensions", op->attrs->dims.dims);
	return SW_OK;
}

sw_status sw_stable_dimension(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_int(w, "dimension", op->attrs->dims.dims.v[0]);
	return SW_OK;
}

sw_status sw_stable_slice(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_array(w, "start_indices", op->attrs->slice.start);
	sw_stable_array(w, "limit_indices", op->attrs->slice.limit);
	sw_stable_array(w, "strides", op->attrs->slice.stride);
	return SW_OK;
}

sw_status sw_stable_dynamic_slice(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_array(w, "slice_sizes", op->attrs->dynamic_slice.sizes);
	return SW_OK;
}

sw_status sw_stable_pad(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_array(w, "edge_padding_low", op->attrs->pad.low);
	sw_stable_array(w, "edge_padding_high", op->attrs->pad.high);
	sw_stable_array(w, "interior_padding", op->attrs->pad.interior);
	return SW_OK;
}

/* ---- elementwise ------------------------------------------------------------------------ */

sw_status sw_stable_compare(sw_stable_writer *w, const sw_op *op)
{
	sw_type_kind kind = sw_type_kind_of(sw_value_shape(w->program, op->operands[0]).type);
	const char *type = op->attrs->compare.type;
	if (!type)
		type = kind == SW_KIND_SIGNED                             ? "SIGNED"
		       : kind == SW_KIND_UNSIGNED || kind == SW_KIND_PRED ? "UNSIGNED"
		                                                          : "FLOAT";
	sw_stable_key(w, "compare_type");
	sw_text_addf(w->text, "#stablehlo<comparison_type %s>", type);
	sw_stable_key(w, "comparison_direction");
	sw_text_addf(w->text, "#stablehlo<comparison_direction %s>",
	             sw_direction_name(op->attrs->compare.direction));
	return SW_OK;
}

sw_status sw_stable_precision(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_key(w, "exponent_bits");
	sw_text_addf(w->text, "%lld : i32", (long long)op->attrs->reduce_precision.exponent_bits);
	sw_stable_key(w, "mantissa_bits");
	sw_text_addf(w->text, "%lld : i32", (long long)op->attrs->reduce_precision.mantissa_bits);
	return SW_OK;
}

sw_status sw_stable_rng_bits(sw_stable_writer *w, const sw_op *op)
{
	static const char *const algorithms[][2] = {{"rng_default", "DEFAULT"},
	                                            {"rng_three_fry", "THREE_FRY"},
	                                            {"rng_philox", "PHILOX"}};
	for (size_t i = 0; i < SW_COUNT(algorithms); i++) {
		if (strcmp(op->attrs->rng.algorithm, algorithms[i][0]) != 0)
			continue;
		sw_stable_key(w, "rng_algorithm");
		sw_text_addf(w->text, "#stablehlo<rng_algorithm %s>", algorithms[i][1]);
		return SW_OK;
	}
	return sw_stable_fail(w, op, "the algorithm %s is not exported to StableHLO",
	                      op->attrs->rng.algorithm);
}

/* ---- calls ------------------------------------------------------------------------------ */

sw_status sw_stable_callee(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_key(w, "callee");
	sw_text_addf(w->text, "@called_%d", op->called[0]);
	return SW_OK;
}

/* Write the memory layouts of a call of LAPACK: matrices, which have as many dimensions as its
 * first operand, are column-major; lists of numbers per matrix are not. */
static void add_lapack_layouts(sw_stable_writer *w, const char *name, const sw_id *values,
                               uint32_t n, int32_t rank)
{
	sw_stable_key(w, name);
	for (uint32_t i = 0; i < n; i++) {
		int32_t have = sw_value_shape(w->program, values[i]).rank;
		int64_t order[SW_MAX_RANK];
		for (int32_t d = 0; d < have; d++)
			order[d] = have - 1 - d;
		if (have == rank) {
			order[0] = rank - 2;
			order[1] = rank - 1;
		}
		sw_text_add(w->text, i ? ", dense<" : "[dense<");
		sw_text_add(w->text, have ? "[" : "");
		add_ints(w, order, have);
		sw_text_addf(w->text, "%s> : tensor<%dxindex>", have ? "]" : "", have);
	}
	sw_text_add(w->text, "]");
}

/* Write a call of LAPACK by XLA's typed interface, as JAX has it on CPU; false: it is none. */
static bool add_lapack_call(sw_stable_writer *w, const sw_op *op)
{
	const char *config = sw_op_extra(op, "backend_config");
	int32_t rank = op->n_operands ? sw_value_shape(w->program, op->operands[0]).rank : 0;
	if (strncmp(op->attrs->custom.target, "lapack_", 7) != 0 || rank < 2 || !config ||
	    config[0] != '{')
		return false;
	sw_stable_key(w, "call_target_name");
	sw_text_addf(w->text, "\"%s\"", op->attrs->custom.target);
	sw_stable_key(w, "api_version");
	sw_text_add(w->text, "4 : i32");
	sw_stable_key(w, "backend_config");
	sw_text_add(w->text, config);
	add_lapack_layouts(w, "operand_layouts", op->operands, op->n_operands, rank);
	sw_id *results = sw_alloc(sizeof(*results) * op->n_results);
	for (uint32_t i = 0; i < op->n_results; i++)
		results[i] = op->first_result + i;
	add_lapack_layouts(w, "result_layouts", results, op->n_results, rank);
	free(results);
	return true;
}

/* Of other calls only those that this folder wrote have all that the text must say. */
sw_status sw_stable_custom_call(sw_stable_writer *w, const sw_op *op)
{
	const char *rest = sw_op_extra(op, SW_STABLE_CALL_ATTRIBUTES);
	if (!rest && add_lapack_call(w, op))
		return SW_OK;
	if (!rest)
		return sw_stable_fail(w, op, "a call of %s is not exported to StableHLO",
		                      op->attrs->custom.target);
	sw_stable_key(w, "call_target_name");
	sw_text_addf(w->text, "\"%s\", %s", op->attrs->custom.target, rest);
	return SW_OK;
}
