/* What each op of a score region is: keys and queries are found first, then the ops' roles follow
 * from the axes of what they read and compute. */
#include "fuse/scores.h"

#include <stdlib.h>
#include <string.h>

enum { KEY = 1, QUERY = 2, BATCH = 4 };

static const sw_op *op_at(const sw_scores *s, sw_id id)
{
	return sw_op_at(s->regions->f->program, id);
}

/* The axis that has the role. */
static sw_score_axis *axis_at(const sw_scores *s, uint32_t axis)
{
	const sw_axes *axes = &s->regions->axes;
	return &axes->list.data[sw_axes_kin(axes, axis)];
}

static bool is_in_region(const sw_scores *s, sw_id value)
{
	return sw_score_region_of(s->regions, value) == s->region;
}

static void refuse(sw_scores *s, sw_id op, const char *text)
{
	if (!s->refused.text)
		s->refused = (sw_fuse_note){op, text};
}

static char *name_op(const sw_scores *s, const char *format, sw_id op)
{
	return sw_arena_printf(&s->regions->f->kernels->arena, format, op_at(s, op)->name);
}

/* ---- looking up ops --------------------------------------------------------------------- */

static int compare_op(const void *key, const void *item)
{
	sw_id a = *(const sw_id *)key, b = ((const sw_score_op *)item)->op;
	return (a > b) - (a < b);
}

static sw_score_op *find_op(const sw_scores *s, sw_id op)
{
	return bsearch(&op, s->ops, s->n, sizeof(*s->ops), compare_op);
}

sw_id sw_score_uncombined(const sw_program *program, sw_id value)
{
	const sw_value *v = &program->values.data[value];
	const sw_op *op = sw_op_at(program, v->op);
	while (op->opcode == SW_OP_ALL_REDUCE) {
		value = op->operands[v->index];
		v = &program->values.data[value];
		op = sw_op_at(program, v->op);
	}
	return value;
}

const sw_score_op *sw_score_op_of(const sw_scores *s, sw_id value)
{
	const sw_score_op *op = is_in_region(s, value)
	                                ? find_op(s, s->regions->f->program->values.data[value].op)
	                                : NULL;
	return op && op->role != SW_SCORE_APART ? op : NULL;
}

/* Return the role of the op that computes a value, before all-reduces. */
static sw_score_role role_of(const sw_scores *s, sw_id value)
{
	sw_id source = sw_score_uncombined(s->regions->f->program, value);
	const sw_score_op *op = sw_score_op_of(s, source);
	if (!op || (source != value && op->role != SW_SCORE_ROW))
		return SW_SCORE_APART;
	return op->role;
}

/* ---- keys and queries ------------------------------------------------------------------- */

/* Split the axes of a value wherever an op divides them, so that they stay as they are from here on. */
static void settle_value(sw_scores *s, sw_id value)
{
	sw_axis_list axes;
	int32_t begin[SW_MAX_RANK + 1];
	if (is_in_region(s, value) && !s->regions->values[value - s->regions->first_value].sheared)
		sw_score_divide(s->regions, value, &axes, begin);
}

static void settle_axes(sw_scores *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const sw_op *op = op_at(s, s->ops[i].op);
		for (uint32_t k = 0; k < op->n_operands; k++)
			settle_value(s, op->operands[k]);
		settle_value(s, op->first_result);
	}
}

static bool sums_exponentials(const sw_scores *s, const sw_op *op)
{
	const sw_score_regions *r = s->regions;
	return op->opcode == SW_OP_REDUCE && op->n_operands == 2 &&
	       is_in_region(s, op->operands[0]) &&
	       r->values[op->operands[0] - r->first_value].exponential &&
	       sw_computation_monoid(r->f->program, op->called[0]) == SW_MONOID_SUM;
}

/* Count the axes of dimensions [first, end), of which those with all bits of `role`. */
typedef struct axis_count {
	int32_t n, with_role;
} axis_count;

static axis_count count_axes(const sw_scores *s, sw_axis_list axes, int32_t first, int32_t end,
                             uint8_t role)
{
	axis_count count = {end - first, 0};
	for (int32_t i = first; i < end; i++)
		count.with_role += (axis_at(s, axes.v[i])->role & role) != 0;
	return count;
}

static void set_role(sw_scores *s, sw_axis_list axes, int32_t first, int32_t end, uint8_t role)
{
	for (int32_t i = first; i < end; i++)
		axis_at(s, axes.v[i])->role |= role;
}

/* Take the dimensions that a sum of exponentials reduces for the keys. */
static void add_keys(sw_scores *s, sw_id id)
{
	const sw_op *op = op_at(s, id);
	sw_axis_list axes;
	int32_t begin[SW_MAX_RANK + 1], n = 0;
	if (!sw_score_divide(s->regions, op->operands[0], &axes, begin))
		return;
	int32_t known = 0;
	for (int32_t i = 0; i < op->attrs->dims.dims.n; i++) {
		int64_t d = op->attrs->dims.dims.v[i];
		axis_count keys = count_axes(s, axes, begin[d], begin[d + 1], KEY);
		n += keys.n;
		known += keys.with_role;
	}
	if (n == 0)
		return;
	if (s->n_keys == 0) {
		for (int32_t i = 0; i < op->attrs->dims.dims.n; i++) {
			int64_t d = op->attrs->dims.dims.v[i];
			set_role(s, axes, begin[d], begin[d + 1], KEY);
		}
		s->n_keys = n;
	} else if (known != n || n != s->n_keys) {
		refuse(s, id,
		       "it sums exponentials over other dimensions than an earlier softmax "
		       "of the same scores");
	}
}

static void find_keys(sw_scores *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (sums_exponentials(s, op_at(s, s->ops[i].op)))
			add_keys(s, s->ops[i].op);
	if (s->n_keys == 0)
		refuse(s, s->ops[0].op, "no exponentials are summed over its keys");
}

/* Set the role of the axes [first, end) that have none of `but`. */
static void set_role_but(sw_scores *s, sw_axis_list axes, int32_t first, int32_t end, uint8_t role,
                         uint8_t but)
{
	for (int32_t i = first; i < end; i++)
		if (!(axis_at(s, axes.v[i])->role & but))
			axis_at(s, axes.v[i])->role |= role;
}

/* Take a dot that computes scores for a beginning of the region: one of its sides has the keys, the
 * other the queries. Keys may have batches that the queries lack, as where the queries are learned, or
 * where each model of an ensemble has a vocabulary of its own; products whose keys have none are looked
 * at first (`pure`), and one without batches comes behind them only if what it has beside keys is a batch
 * of theirs, and its other side their queries (learned queries, a head of which all samples share). A
 * product one side of which has queries beside keys, as a projection of pairs has, is
 * a bias, and computed elsewhere. */
static void add_seed(sw_scores *s, uint32_t index, bool pure)
{
	const sw_op *op = op_at(s, s->ops[index].op);
	const sw_attrs *a = op->attrs;
	sw_axis_list axes;
	int32_t begin[SW_MAX_RANK + 1];
	if (!sw_score_divide(s->regions, op->first_result, &axes, begin) ||
	    count_axes(s, axes, 0, axes.n, KEY).with_role == 0)
		return;
	int32_t batch = begin[a->dot.lhs_batch.n],
		left = begin[sw_value_shape(s->regions->f->program, op->operands[0]).rank -
	                     a->dot.lhs_contracting.n];
	axis_count lhs = count_axes(s, axes, batch, left, KEY),
		   rhs = count_axes(s, axes, left, axes.n, KEY);
	int side = lhs.with_role == s->n_keys ? 0 : 1;
	axis_count keys = side ? rhs : lhs, others = side ? lhs : rhs;
	int32_t at = side ? left : batch, key_end = side ? axes.n : left,
		other = side ? batch : left, other_end = side ? left : axes.n;
	if (pure != (keys.n == s->n_keys) || count_axes(s, axes, at, key_end, QUERY).with_role)
		return;
	bool learned = count_axes(s, axes, at, key_end, BATCH).with_role == keys.n - s->n_keys &&
	               count_axes(s, axes, other, other_end, QUERY).with_role == others.n;
	if ((keys.n != s->n_keys && batch == 0 && s->n_seeds > 0 && !learned) || keys.with_role != s->n_keys ||
	    others.with_role || others.n == 0 ||
	    count_axes(s, axes, 0, batch, KEY).with_role || s->n_seeds == SW_MAX_SEEDS) {
		refuse(s, s->ops[index].op,
		       "the softmax is over other dimensions than those of one of its operands");
		return;
	}
	set_role(s, axes, 0, batch, BATCH);
	set_role_but(s, axes, at, key_end, BATCH, KEY);
	set_role(s, axes, other, other_end, QUERY);
	s->seeds[s->n_seeds++] = (sw_score_seed){.index = index, .key_side = side};
}

/* What is a batch of one product and a query of another, as the heads are where all share a part of
 * the keys, is no query: each batch has scores of its own. */
static void settle_queries(sw_scores *s, sw_axis_list axes)
{
	for (int32_t i = 0; i < axes.n; i++)
		if (axis_at(s, axes.v[i])->role & BATCH)
			axis_at(s, axes.v[i])->role &= (uint8_t)~QUERY;
}

/* Of the axes of scores: in how many more products an axis is of one side than a batch. */
typedef struct axis_votes {
	sw_axis_list axes;
	int32_t of[SW_MAX_RANK * 4];
} axis_votes;

static void vote(const sw_scores *s, axis_votes *votes, sw_axis_list axes, int32_t first,
                 int32_t end, int32_t change)
{
	const sw_axes *all = &s->regions->axes;
	for (int32_t i = first; i < end; i++)
		for (int32_t k = 0; k < votes->axes.n; k++)
			if (sw_axes_kin(all, votes->axes.v[k]) == sw_axes_kin(all, axes.v[i]))
				votes->of[k] += change;
}

/* Count a dot that multiplies scores over the keys. */
static void vote_reader(const sw_scores *s, axis_votes *votes, const sw_op *op, uint32_t which)
{
	sw_ints contracted = which ? op->attrs->dot.rhs_contracting : op->attrs->dot.lhs_contracting,
		batch = which ? op->attrs->dot.rhs_batch : op->attrs->dot.lhs_batch;
	sw_axis_list axes;
	int32_t begin[SW_MAX_RANK + 1], keys = 0;
	if (!is_in_region(s, op->operands[which]) ||
	    !sw_score_divide(s->regions, op->operands[which], &axes, begin))
		return;
	for (int32_t i = 0; i < contracted.n; i++)
		keys += count_axes(s, axes, begin[contracted.v[i]], begin[contracted.v[i] + 1], KEY)
				.with_role;
	int32_t rank = sw_value_shape(s->regions->f->program, op->operands[which]).rank;
	for (int32_t d = 0; d < rank && keys == s->n_keys; d++)
		if (!sw_ints_has(contracted, d))
			vote(s, votes, axes, begin[d], begin[d + 1],
			     sw_ints_has(batch, d) ? -1 : 1);
}

static void vote_seed(const sw_scores *s, axis_votes *votes, const sw_score_seed *seed)
{
	const sw_op *op = op_at(s, s->ops[seed->index].op);
	sw_axis_list axes;
	int32_t begin[SW_MAX_RANK + 1], batch = op->attrs->dot.lhs_batch.n,
		left = sw_value_shape(s->regions->f->program, op->operands[0]).rank -
	               op->attrs->dot.lhs_contracting.n;
	if (!sw_score_divide(s->regions, op->first_result, &axes, begin))
		return;
	vote(s, votes, axes, 0, begin[batch], -1);
	vote(s, votes, axes, begin[seed->key_side ? batch : left],
	     seed->key_side ? begin[left] : axes.n, 1);
}

/* Where each axis is a batch of some product, it is a query if it is one of most; of as many, if it is
 * one of the first. */
static void vote_queries(sw_scores *s, sw_axis_list axes)
{
	axis_votes votes = {.axes = axes};
	if (axes.n > (int32_t)SW_COUNT(votes.of))
		return;
	for (int32_t i = 0; i < s->n_seeds; i++)
		vote_seed(s, &votes, &s->seeds[i]);
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t which = 0; which < 2; which++)
			if (op_at(s, s->ops[i].op)->opcode == SW_OP_DOT)
				vote_reader(s, &votes, op_at(s, s->ops[i].op), which);
	for (int32_t i = 0; i < axes.n; i++)
		votes.of[i] *= 2;
	vote_seed(s, &votes, &s->seeds[0]);
	for (int32_t i = 0; i < axes.n; i++)
		if (votes.of[i] > 0 && !(axis_at(s, axes.v[i])->role & KEY)) {
			axis_at(s, axes.v[i])->role = QUERY;
			s->by_query = true;
		}
}

static void find_seeds(sw_scores *s)
{
	for (uint32_t i = 0; i < 2 * s->n; i++) {
		const sw_op *op = op_at(s, s->ops[i % s->n].op);
		if (op->opcode == SW_OP_DOT && is_in_region(s, op->first_result))
			add_seed(s, i % s->n, i < s->n);
	}
	if (s->n_seeds == 0) {
		refuse(s, s->ops[0].op, "no dot computes its scores");
		return;
	}
	sw_axis_list axes =
		sw_score_axes_of(s->regions, op_at(s, s->ops[s->seeds[0].index].op)->first_result);
	settle_queries(s, axes);
	if (count_axes(s, axes, 0, axes.n, QUERY).with_role == 0)
		vote_queries(s, axes);
	s->n_queries = count_axes(s, axes, 0, axes.n, QUERY).with_role;
	if (s->n_queries == 0)
		refuse(s, s->ops[s->seeds[0].index].op,
		       "of the products that are added to its scores none has queries that are no "
		       "batch of another");
}

/* ---- roles ------------------------------------------------------------------------------ */

/* What a value is by its axes alone. */
typedef enum axis_class { FOREIGN, SCORE, ROW } axis_class;

static axis_class class_of(const sw_scores *s, sw_id value)
{
	if (!is_in_region(s, value))
		return FOREIGN;
	sw_axis_list axes = sw_score_axes_of(s->regions, value);
	int32_t keys = count_axes(s, axes, 0, axes.n, KEY).with_role,
		queries = count_axes(s, axes, 0, axes.n, QUERY).with_role;
	if (count_axes(s, axes, 0, axes.n, KEY | QUERY | BATCH).with_role != axes.n)
		return FOREIGN;
	if (keys == s->n_keys && queries == s->n_queries)
		return SCORE;
	return keys == 0 && queries > 0 ? ROW : FOREIGN;
}

static bool reads_role(const sw_scores *s, const sw_op *op, bool row)
{
	for (uint32_t i = 0; i < op->n_operands; i++) {
		sw_score_role role = role_of(s, op->operands[i]);
		if (row ? role == SW_SCORE_ROW : role == SW_SCORE_FULL)
			return true;
	}
	return false;
}

/* Reductions of scores: over the keys alone they give row statistics. */
static sw_score_role role_of_reduce(const sw_scores *s, const sw_op *op)
{
	if (role_of(s, op->operands[0]) != SW_SCORE_FULL)
		return reads_role(s, op, true) && class_of(s, op->first_result) == ROW
		               ? SW_SCORE_ROW
		               : SW_SCORE_APART;
	if (class_of(s, op->first_result) != ROW)
		return SW_SCORE_SUM;
	int32_t before = sw_score_axes_of(s->regions, op->operands[0]).n,
		after = sw_score_axes_of(s->regions, op->first_result).n;
	return after == before - s->n_keys ? SW_SCORE_ROW : SW_SCORE_SUM;
}

/* A dot that reads scores must contract all keys, or all queries, and may contract batch with them;
 * the other side of scores must not have the dimensions that the scores keep. Where it has a vector per
 * query and key, keys are contracted for each query, or batch alone for both. */
static sw_score_role role_of_reader(sw_scores *s, sw_id id, uint32_t which)
{
	const sw_op *op = op_at(s, id);
	const sw_attrs *a = op->attrs;
	sw_ints contracted = which ? a->dot.rhs_contracting : a->dot.lhs_contracting,
		batch = which ? a->dot.rhs_batch : a->dot.lhs_batch;
	sw_axis_list axes;
	int32_t begin[SW_MAX_RANK + 1], keys = 0, queries = 0, batches = 0;
	bool aligned = false;
	if (!sw_score_divide(s->regions, op->operands[which], &axes, begin))
		return SW_SCORE_APART;
	for (int32_t i = 0; i < contracted.n; i++) {
		int32_t from = begin[contracted.v[i]], to = begin[contracted.v[i] + 1];
		keys += count_axes(s, axes, from, to, KEY).with_role;
		queries += count_axes(s, axes, from, to, QUERY).with_role;
		batches += count_axes(s, axes, from, to, BATCH).with_role;
	}
	for (int32_t i = 0; i < batch.n; i++)
		aligned |=
			count_axes(s, axes, begin[batch.v[i]], begin[batch.v[i] + 1], KEY | QUERY)
				.with_role > 0;
	if (s->by_query && aligned && queries == 0 && (keys == s->n_keys || keys == 0) &&
	    role_of(s, op->operands[1 - which]) != SW_SCORE_FULL)
		return keys > 0 ? SW_SCORE_KEYS : batches > 0 ? SW_SCORE_SUM : SW_SCORE_APART;
	if (aligned || role_of(s, op->operands[1 - which]) == SW_SCORE_FULL)
		return SW_SCORE_APART;
	if (keys == s->n_keys && queries == 0)
		return SW_SCORE_KEYS;
	return queries == s->n_queries && keys == 0 ? SW_SCORE_QUERIES : SW_SCORE_APART;
}

static bool is_seed(const sw_scores *s, uint32_t index)
{
	for (int32_t i = 0; i < s->n_seeds; i++)
		if (s->seeds[i].index == index)
			return true;
	return false;
}

/* Return whether an op may take one score of each row. */
static bool picks(const sw_op *op)
{
	return op->opcode == SW_OP_GATHER || op->opcode == SW_OP_SLICE;
}

static sw_score_role find_role(sw_scores *s, uint32_t index)
{
	sw_id id = s->ops[index].op;
	const sw_op *op = op_at(s, id);
	if (op->opcode == SW_OP_DOT) {
		for (uint32_t which = 0; which < 2; which++)
			if (role_of(s, op->operands[which]) == SW_SCORE_FULL)
				return role_of_reader(s, id, which);
		return is_seed(s, index) ? SW_SCORE_FULL : SW_SCORE_APART;
	}
	if (sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE)
		return SW_SCORE_APART;
	if (op->opcode == SW_OP_REDUCE)
		return role_of_reduce(s, op);
	bool row = reads_role(s, op, true), full = reads_role(s, op, false);
	if (picks(op) && full && class_of(s, op->first_result) == ROW)
		return SW_SCORE_ROW;
	switch (class_of(s, op->first_result)) {
	case SCORE:
		return row || full ? SW_SCORE_FULL : SW_SCORE_APART;
	case ROW:
		return row ? SW_SCORE_ROW : SW_SCORE_APART;
	default:
		return SW_SCORE_APART;
	}
}

/* ---- who reads -------------------------------------------------------------------------- */

typedef struct score_readers {
	bool inside;   /* an op with a role reads the value */
	sw_id outside; /* an op that has none; SW_NO_ID */
} score_readers;

static score_readers find_readers(const sw_scores *s, sw_id value)
{
	const sw_fuser *f = s->regions->f;
	score_readers found = {false, SW_NO_ID};
	for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++) {
		const sw_score_op *user = find_op(s, f->users.ops[u]);
		const sw_op *op = op_at(s, f->users.ops[u]);
		if (user && user->role != SW_SCORE_APART) {
			found.inside = true;
			continue;
		}
		found.outside = f->users.ops[u];
		for (uint32_t k = 0; op->opcode == SW_OP_ALL_REDUCE && k < op->n_operands; k++)
			if (op->operands[k] == value)
				found.inside |= find_readers(s, op->first_result + k).inside;
	}
	return found;
}

/* Drop what no other op with a role needs; refuse scores that are read elsewhere. */
static void settle_op(sw_scores *s, sw_score_op *x)
{
	const sw_op *op = op_at(s, x->op);
	if (x->role == SW_SCORE_APART)
		return;
	score_readers found = {false, SW_NO_ID};
	bool returned = false;
	for (uint32_t k = 0; k < op->n_results; k++) {
		score_readers of = find_readers(s, op->first_result + k);
		found.inside |= of.inside;
		found.outside = of.outside != SW_NO_ID ? of.outside : found.outside;
		returned |= s->regions->f->returned[op->first_result + k];
	}
	x->outside = returned || found.outside != SW_NO_ID;
	bool reads = op->opcode == SW_OP_REDUCE || picks(op);
	if (x->role == SW_SCORE_ROW && !(reads && x->outside) && !found.inside)
		x->role = SW_SCORE_APART;
	if (x->role != SW_SCORE_FULL)
		return;
	if (found.outside != SW_NO_ID)
		refuse(s, s->ops[s->seeds[0].index].op,
		       name_op(s, "its scores are read by %%%s, which is no part of the softmax",
		               found.outside));
	else if (returned)
		refuse(s, s->ops[s->seeds[0].index].op,
		       name_op(s, "its scores are returned as %%%s", x->op));
	else if (!found.inside)
		x->role = SW_SCORE_APART;
}

/* ---- the analysis ----------------------------------------------------------------------- */

static void find_roles(sw_scores *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->ops[i].role = find_role(s, i);
	for (uint32_t i = s->n; i-- > 0;)
		settle_op(s, &s->ops[i]);
}

static void begin(sw_scores *s, sw_score_regions *regions, uint32_t region)
{
	const sw_score_region *of = &regions->list.data[region];
	memset(s, 0, sizeof(*s));
	s->regions = regions;
	s->region = region;
	s->n = of->n_ops;
	s->ops = SW_NEW_N(&regions->arena, sw_score_op, of->n_ops);
	for (uint32_t i = 0; i < s->n; i++)
		s->ops[i].op = of->ops[i];
	if (of->conflict != SW_NO_ID)
		refuse(s, of->ops[0],
		       name_op(s, "%%%s joins its scores in two orders of their dimensions",
		               of->conflict));
}

void sw_scores_analyse(sw_scores *s, sw_score_regions *regions, uint32_t region)
{
	begin(s, regions, region);
	settle_axes(s);
	if (!s->refused.text)
		find_keys(s);
	if (!s->refused.text)
		find_seeds(s);
	if (!s->refused.text)
		find_roles(s);
	if (!s->refused.text)
		sw_scores_find_late(s);
}
