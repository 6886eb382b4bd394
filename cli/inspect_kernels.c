/*
 * What inspect says of kernels: which ops of a program a device runs as one, and why something that
 * looks like attention or a loss over a vocabulary is not one kernel.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* Kernels that are alike. */
typedef struct kernel_row {
	sw_fused_kernel kind;
	const char *example; /* the op of its last result */
	uint32_t ops;
	int64_t count;
	double flops, stored_bytes; /* of one */
} kernel_row;
typedef SW_VEC(kernel_row) kernel_rows;

static const char *name_kind(sw_fused_kernel kind)
{
	return kind == SW_FUSED_COUNT ? "one op" : sw_fused_kernel_name(kind);
}

static kernel_row row_of(const sw_kernels *kernels, const sw_kernel_ops *kernel)
{
	const sw_program *p = kernels->program;
	kernel_row row = {.kind = kernel->kind, .ops = kernel->n_ops, .count = 1};
	sw_id last = kernel->ops[kernel->n_ops - 1];
	for (uint32_t i = 0; i < kernel->n_ops; i++)
		row.flops += sw_op_flops(p, kernel->ops[i]);
	for (uint32_t i = 0; i < kernel->n_results; i++) {
		row.stored_bytes += (double)sw_shape_bytes(sw_value_shape(p, kernel->results[i]));
		last = p->values.data[kernel->results[i]].op;
	}
	row.example = sw_op_at(p, last)->name;
	return row;
}

/* Sorts by work, then by everything else that makes kernels alike. */
static int compare_kernels(const void *a, const void *b)
{
	const kernel_row *x = a, *y = b;
	if (x->flops != y->flops)
		return (x->flops < y->flops) - (x->flops > y->flops);
	if (x->stored_bytes != y->stored_bytes)
		return (x->stored_bytes < y->stored_bytes) - (x->stored_bytes > y->stored_bytes);
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->ops > y->ops) - (x->ops < y->ops);
}

static int compare_whole(const void *a, const void *b)
{
	const kernel_row *x = a, *y = b;
	int order = compare_kernels(a, b);
	return order ? order : strcmp(x->example, y->example);
}

static void join_alike(kernel_rows *rows)
{
	size_t n = 0;
	for (size_t i = 0; i < rows->len; i++) {
		if (n && compare_kernels(&rows->data[n - 1], &rows->data[i]) == 0)
			rows->data[n - 1].count++;
		else
			rows->data[n++] = rows->data[i];
	}
	rows->len = n;
}

static void add_row(const kernel_row *row, sw_table *table)
{
	sw_table_cell(table, "%s", name_kind(row->kind));
	sw_table_cell(table, "%lld", (long long)row->count);
	sw_table_cell(table, "%u", row->ops);
	sw_table_cell_number(table, sw_text_add_count, row->flops);
	sw_table_cell_number(table, sw_text_add_bytes, row->stored_bytes);
	sw_table_cell(table, "%s", row->example);
}

static void add_kernels(kernel_rows *rows, bool all, sw_text *text)
{
	static const char *const headings[] = {"kernel", "number",       "ops",
	                                       "FLOP",   "bytes stored", "such as"};
	enum { SHOWN = 30 };
	sw_table table;
	if (rows->len)
		qsort(rows->data, rows->len, sizeof(*rows->data), compare_whole);
	join_alike(rows);
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < rows->len && (all || i < SHOWN); i++)
		add_row(&rows->data[i], &table);
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	if (!all && rows->len > SHOWN)
		sw_text_addf(text, "and %zu kinds more, of less work: -v lists them\n",
		             rows->len - SHOWN);
}

static void add_notes(const sw_kernels *kernels, sw_text *text)
{
	for (size_t i = 0; i < kernels->notes.len; i++) {
		const sw_fuse_note *note = &kernels->notes.data[i];
		sw_text_addf(text, "%s  %s: %s\n", i ? "" : "\nnot recognised:\n",
		             sw_op_at(kernels->program, note->op)->name, note->text);
	}
}

/* ---- JSON ------------------------------------------------------------------------------- */

static json_t *results_json(const sw_kernels *kernels, const sw_kernel_ops *kernel)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < kernel->n_results; i++) {
		sw_id op = kernels->program->values.data[kernel->results[i]].op;
		json_array_append_new(list, json_string(sw_op_at(kernels->program, op)->name));
	}
	return list;
}

static json_t *kernels_json(const sw_kernels *kernels)
{
	json_t *list = json_array();
	for (size_t i = 0; i < kernels->list.len; i++) {
		const sw_kernel_ops *kernel = &kernels->list.data[i];
		kernel_row row = row_of(kernels, kernel);
		const char *in = kernels->program->computations.data[kernel->computation].name;
		json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:f, s:f, s:o}", "kind",
		                                      name_kind(row.kind), "computation", in, "ops",
		                                      (json_int_t)row.ops, "flops", row.flops,
		                                      "stored_bytes", row.stored_bytes, "results",
		                                      results_json(kernels, kernel)));
	}
	return list;
}

static json_t *notes_json(const sw_kernels *kernels)
{
	json_t *list = json_array();
	for (size_t i = 0; i < kernels->notes.len; i++) {
		const sw_fuse_note *note = &kernels->notes.data[i];
		json_array_append_new(list, json_pack("{s:s, s:s}", "op",
		                                      sw_op_at(kernels->program, note->op)->name,
		                                      "why", note->text));
	}
	return list;
}

/* ---- the section ------------------------------------------------------------------------ */

void cli_inspect_kernels(const sw_program *program, sw_fusion fusion, bool all, sw_text *text,
                         json_t *json)
{
	sw_kernels kernels;
	kernel_rows rows = {0};
	sw_kernels_find(&kernels, program, fusion);
	for (size_t i = 0; i < kernels.list.len; i++)
		sw_vec_push(&rows, row_of(&kernels, &kernels.list.data[i]));
	sw_text_addf(text, "\n%zu kernels, on a device with fusion: %s\n", kernels.list.len,
	             sw_fusion_name(fusion));
	add_kernels(&rows, all, text);
	add_notes(&kernels, text);
	json_object_set_new(json, "fusion", json_string(sw_fusion_name(fusion)));
	json_object_set_new(json, "kernels", kernels_json(&kernels));
	json_object_set_new(json, "not_recognised", notes_json(&kernels));
	sw_vec_clear(&rows);
	sw_kernels_clear(&kernels);
}

/* Return the fusion of --fusion, or of the device of --cluster; loops, where neither is given. */
sw_status cli_find_fusion(const cli *c, sw_fusion *fusion, sw_error *err)
{
	sw_cluster cluster;
	*fusion = SW_FUSION_LOOPS;
	if (c->values.fusion && c->values.cluster)
		return sw_fail(err, SW_ERR_INPUT,
		               "give --fusion or --cluster, whose device says how it fuses");
	if (c->values.cluster) {
		sw_status status = cli_read_cluster(c, c->values.cluster, &cluster, err);
		if (status)
			return status;
		*fusion = cluster.device.fusion;
		sw_cluster_clear(&cluster);
		return SW_OK;
	}
	for (int f = 0; c->values.fusion && f < SW_FUSION_COUNT; f++) {
		if (strcmp(c->values.fusion, sw_fusion_name((sw_fusion)f)) == 0) {
			*fusion = (sw_fusion)f;
			return SW_OK;
		}
	}
	if (!c->values.fusion)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT, "--fusion %s: expected " SW_FUSION_WORDS, c->values.fusion);
}
