/* The attributes of contractions, gathers, scatters, sorts, linear algebra and normalisations. */
#include "export/stable_writer.h"

#include <string.h>

/* A list of integers of a `#stablehlo.x<...>`. */
typedef struct number_field {
	const char *name;
	const sw_ints *list;
} number_field;

static void add_fields(sw_stable_writer *w, const number_field *fields, size_t n,
                       const char **comma)
{
	for (size_t i = 0; i < n; i++) {
		const sw_ints *list = fields[i].list;
		if (list->n == 0)
			continue;
		sw_text_addf(w->text, "%s%s = [", *comma, fields[i].name);
		for (int32_t k = 0; k < list->n; k++)
			sw_text_addf(w->text, "%s%lld", k ? ", " : "", (long long)list->v[k]);
		sw_text_add(w->text, "]");
		*comma = ", ";
	}
}

/* ---- contractions ----------------------------------------------------------------------- */

/* Append XLA's operand_precision={highest,default}, which stands among the extras. */
static void add_operand_precision(sw_stable_writer *w, const sw_op *op)
{
	static const char *const words[][2] = {
		{"default", "DEFAULT"}, {"high", "HIGH"}, {"highest", "HIGHEST"}};
	const char *text = sw_op_extra(op, "operand_precision"), *comma = "";
	if (!text)
		return;
	sw_stable_key(w, "precision_config");
	sw_text_add(w->text, "[");
	for (const char *at = strpbrk(text, "dh"); at; at = strpbrk(at, "dh")) {
		size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
		for (size_t i = 0; i < SW_COUNT(words); i++)
			if (strlen(words[i][0]) == length && memcmp(at, words[i][0], length) == 0)
				sw_text_addf(w->text, "%s#stablehlo<precision %s>", comma,
				             words[i][1]);
		comma = ", ";
		at += length;
	}
	sw_text_add(w->text, "]");
}

sw_status sw_stable_dot(sw_stable_writer *w, const sw_op *op)
{
	const number_field fields[] = {
		{"lhs_batching_dimensions", &op->attrs->dot.lhs_batch},
		{"rhs_batching_dimensions", &op->attrs->dot.rhs_batch},
		{"lhs_contracting_dimensions", &op->attrs->dot.lhs_contracting},
		{"rhs_contracting_dimensions", &op->attrs->dot.rhs_contracting}};
	const char *comma = "";
	sw_stable_key(w, "dot_dimension_numbers");
	sw_text_add(w->text, "#stablehlo.dot<");
	add_fields(w, fields, SW_COUNT(fields), &comma);
	sw_text_add(w->text, ">");
	add_operand_precision(w, op);
	return SW_OK;
}

/* ---- gather and scatter ----------------------------------------------------------------- */

/* Append `#stablehlo.gather<...>`; `names` are those of sw_index_dims' lists, in its order. */
static void add_index_dims(sw_stable_writer *w, const char *kind, const char *const names[5],
                           const sw_index_dims *dims)
{
	const number_field fields[] = {{names[0], &dims->offset},
	                               {names[1], &dims->collapsed},
	                               {names[2], &dims->operand_batch},
	                               {names[3], &dims->index_batch},
	                               {names[4], &dims->start_index_map}};
	const char *comma = "";
	sw_text_addf(w->text, "#stablehlo.%s<", kind);
	add_fields(w, fields, SW_COUNT(fields), &comma);
	sw_text_addf(w->text, "%sindex_vector_dim = %lld>", comma,
	             (long long)dims->index_vector_dim);
}

sw_status sw_stable_gather(sw_stable_writer *w, const sw_op *op)
{
	static const char *const names[] = {"offset_dims", "collapsed_slice_dims",
	                                    "operand_batching_dims", "start_indices_batching_dims",
	                                    "start_index_map"};
	sw_stable_key(w, "dimension_numbers");
	add_index_dims(w, "gather", names, &op->attrs->index);
	sw_stable_flag(w, "indices_are_sorted", op->attrs->index.sorted);
	sw_stable_array(w, "slice_sizes", op->attrs->index.slice_sizes);
	return SW_OK;
}

sw_status sw_stable_scatter(sw_stable_writer *w, const sw_op *op)
{
	static const char *const names[] = {"update_window_dims", "inserted_window_dims",
	                                    "input_batching_dims", "scatter_indices_batching_dims",
	                                    "scatter_dims_to_operand_dims"};
	sw_stable_flag(w, "indices_are_sorted", op->attrs->index.sorted);
	sw_stable_key(w, "scatter_dimension_numbers");
	add_index_dims(w, "scatter", names, &op->attrs->index);
	sw_stable_flag(w, "unique_indices", op->attrs->index.unique);
	return SW_OK;
}

/* ---- sorts ------------------------------------------------------------------------------ */

sw_status sw_stable_sort(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_int(w, "dimension", op->attrs->sort.dimension);
	sw_stable_flag(w, "is_stable", op->attrs->sort.stable);
	return SW_OK;
}

sw_status sw_stable_top_k(sw_stable_writer *w, const sw_op *op)
{
	if (!op->attrs->topk.largest)
		return sw_stable_fail(w, op, "the k smallest are not exported to StableHLO");
	sw_stable_int(w, "k", op->attrs->topk.k);
	return SW_OK;
}

/* ---- linear algebra --------------------------------------------------------------------- */

sw_status sw_stable_fft(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_array(w, "fft_length", op->attrs->fft.length);
	sw_stable_key(w, "fft_type");
	sw_text_addf(w->text, "#stablehlo<fft_type %s>", op->attrs->fft.kind);
	return SW_OK;
}

sw_status sw_stable_cholesky(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_flag(w, "lower", op->attrs->cholesky.lower);
	return SW_OK;
}

sw_status sw_stable_triangular_solve(sw_stable_writer *w, const sw_op *op)
{
	const char *transpose = op->attrs->triangular_solve.transpose_a;
	sw_stable_flag(w, "left_side", op->attrs->triangular_solve.left_side);
	sw_stable_flag(w, "lower", op->attrs->triangular_solve.lower);
	sw_stable_key(w, "transpose_a");
	sw_text_addf(w->text, "#stablehlo<transpose %s>", transpose ? transpose : "NO_TRANSPOSE");
	sw_stable_flag(w, "unit_diagonal", op->attrs->triangular_solve.unit_diagonal);
	return SW_OK;
}

/* ---- normalisations over a batch --------------------------------------------------------- */

sw_status sw_stable_batch_norm(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_key(w, "epsilon");
	sw_text_addf(w->text, "%.9e : f32", op->attrs->batch_norm.epsilon);
	sw_stable_int(w, "feature_index", op->attrs->batch_norm.feature);
	return SW_OK;
}
