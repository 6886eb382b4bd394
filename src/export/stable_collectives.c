/*
 * The attributes of collectives. Groups are written out, device by device: the devices' numbers are
 * the partition ids of the module. Every collective has a channel of its own.
 */
#include "export/stable_writer.h"

static void add_channel(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_key(w, "channel_handle");
	sw_text_addf(w->text, "#stablehlo.channel_handle<handle = %lld, type = 1>",
	             (long long)SW_MAX(op->attrs->collective.channel, 1));
}

static void add_groups(sw_stable_writer *w, const sw_op *op)
{
	sw_groups groups = op->attrs->collective.groups;
	bool all = groups.n_groups == 0;
	int64_t rows = all ? 1 : groups.n_groups;
	int64_t columns = all ? w->program->num_partitions : groups.group_size;
	int64_t *members = SW_NEW_N(&w->arena, int64_t, rows * columns + 1);
	for (int64_t i = 0; i < rows * columns; i++)
		members[i] = all ? i : sw_groups_member(&groups, i / columns, i % columns);
	sw_stable_matrix(w, "replica_groups", members, rows, columns);
}

static void add_global_ids(sw_stable_writer *w)
{
	sw_text_add(w->text, ", use_global_device_ids");
}

sw_status sw_stable_all_gather(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_int(w, "all_gather_dim", op->attrs->collective.dimension);
	add_channel(w, op);
	add_groups(w, op);
	add_global_ids(w);
	return SW_OK;
}

/* XLA's collectives sum, multiply and take extremes; bits are joined of pred alone. */
static sw_status check_reduction(sw_stable_writer *w, const sw_op *op)
{
	sw_monoid monoid = sw_computation_monoid(w->program, op->called[0]);
	bool bits = monoid == SW_MONOID_AND || monoid == SW_MONOID_OR;
	sw_type type = sw_value_shape(w->program, op->operands[0]).type;
	if (bits && type != SW_PRED)
		return sw_stable_fail(w, op, "XLA has no collective '%s' of %s",
		                      sw_monoid_name(monoid), sw_type_name(type));
	return SW_OK;
}

sw_status sw_stable_all_reduce(sw_stable_writer *w, const sw_op *op)
{
	SW_TRY(check_reduction(w, op));
	add_channel(w, op);
	add_groups(w, op);
	add_global_ids(w);
	return SW_OK;
}

sw_status sw_stable_reduce_scatter(sw_stable_writer *w, const sw_op *op)
{
	SW_TRY(check_reduction(w, op));
	add_channel(w, op);
	add_groups(w, op);
	sw_stable_int(w, "scatter_dimension", op->attrs->collective.dimension);
	add_global_ids(w);
	return SW_OK;
}

sw_status sw_stable_all_to_all(sw_stable_writer *w, const sw_op *op)
{
	sw_groups groups = op->attrs->collective.groups;
	if (op->attrs->collective.dimension < 0)
		return sw_stable_fail(w, op, "an all-to-all of a tuple is not exported");
	add_channel(w, op);
	sw_stable_int(w, "concat_dimension", op->attrs->collective.dimension);
	add_groups(w, op);
	sw_stable_int(w, "split_count",
	              groups.n_groups ? groups.group_size : w->program->num_partitions);
	sw_stable_int(w, "split_dimension", op->attrs->collective.dimension);
	return SW_OK;
}

sw_status sw_stable_permute(sw_stable_writer *w, const sw_op *op)
{
	sw_ints pairs = op->attrs->collective.pairs;
	add_channel(w, op);
	sw_stable_matrix(w, "source_target_pairs", pairs.v, pairs.n / 2, 2);
	return SW_OK;
}

sw_status sw_stable_broadcast_from(sw_stable_writer *w, const sw_op *op)
{
	add_channel(w, op);
	add_groups(w, op);
	return SW_OK;
}
