/*
 * Classes: splits (value, dim, top) that some rule maps to each other. They are found by flooding
 * from every dimension as a whole (top = N). A split stands for all digits just below `top`,
 * whatever the size of the axis.
 */
#include "model/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct flood {
	const sw_roles *roles;
	const sw_program *program;
	const sw_rule *const *rules;
	sw_users users;
	/* per value, and per op: the split of it that was found last; -1: none */
	int32_t *last[2];
	SW_VEC(int32_t) before;  /* per split: the split of its owner that was found before it */
	SW_VEC(sw_split) splits; /* class: union-find parent */
	SW_VEC(sw_id) owner;     /* value or op */
	SW_VEC(bool) of_op;
	SW_VEC(uint32_t) queue;         /* splits of values that are not propagated yet */
	const uint32_t *boundary_start; /* per value: into boundary_list */
	const uint32_t *boundary_list;
	sw_id *alias; /* per value: the output that replaces an input, and the reverse; SW_NO_ID:
	                 none */
	bool *cut;            /* per value: nothing passes through it */
} flood;

/* Number the reads of a boundary first, then its values. */
static sw_id boundary_value(const sw_boundary *boundary, uint32_t k)
{
	return k < boundary->n_reads ? boundary->reads[k].value
	                             : boundary->values[k - boundary->n_reads];
}

static int32_t find(flood *f, int32_t x)
{
	sw_split *s = f->splits.data;
	while (s[x].class != x) {
		s[x].class = s[s[x].class].class;
		x = s[x].class;
	}
	return x;
}

static void join(flood *f, uint32_t a, uint32_t b)
{
	int32_t x = find(f, (int32_t)a), y = find(f, (int32_t)b);
	f->splits.data[SW_MAX(x, y)].class = SW_MIN(x, y);
}

/* Find or add a split; search only those of the same owner, which are few. */
static uint32_t split_of(flood *f, bool of_op, sw_id id, int32_t where, int64_t top, bool *fresh)
{
	int32_t *last = &f->last[of_op][id], next = (int32_t)f->splits.len;
	*fresh = false;
	for (int32_t i = *last; i >= 0; i = f->before.data[i])
		if (f->splits.data[i].where == where && f->splits.data[i].top == top)
			return (uint32_t)i;
	*fresh = true;
	sw_split s = {.where = where, .class = next, .top = top};
	sw_vec_push(&f->splits, s);
	sw_vec_push(&f->before, *last);
	sw_vec_push(&f->owner, id);
	sw_vec_push(&f->of_op, of_op);
	if (!of_op)
		sw_vec_push(&f->queue, (uint32_t)next);
	*last = next;
	return (uint32_t)next;
}

/* Join a split of an op with the splits of its operands and results that have the factor. */
static void split_values_of_op(flood *f, sw_id op_id, uint32_t op_split)
{
	const sw_op *op = sw_op_at(f->program, op_id);
	const sw_rule *rule = f->rules[op_id];
	int32_t factor = f->splits.data[op_split].where, dim;
	int64_t factor_top = f->splits.data[op_split].top, top;
	bool fresh;
	for (int32_t i = 0; i < rule->n_operands; i++)
		if (!f->cut[op->operands[i]] &&
		    sw_rule_dim_of(rule, false, i, factor, factor_top, &dim, &top))
			join(f, op_split, split_of(f, false, op->operands[i], dim, top, &fresh));
	for (int32_t i = 0; i < rule->n_results; i++)
		if (!f->cut[op->first_result + (sw_id)i] &&
		    sw_rule_dim_of(rule, true, i, factor, factor_top, &dim, &top))
			join(f, op_split,
			     split_of(f, false, op->first_result + (sw_id)i, dim, top, &fresh));
}

static void propagate_to_op(flood *f, sw_id op_id, bool result, int32_t index, uint32_t from)
{
	const sw_rule *rule = f->rules[op_id];
	int32_t factor;
	int64_t top;
	bool fresh;
	if (index >= (result ? rule->n_results : rule->n_operands))
		return;
	if (!sw_rule_factor_at(rule, result, index, f->splits.data[from].where,
	                       f->splits.data[from].top, &factor, &top))
		return;
	uint32_t split = split_of(f, true, op_id, factor, top, &fresh);
	join(f, split, from);
	if (fresh)
		split_values_of_op(f, op_id, split);
}

/* All reads and values of a boundary have one layout. */
static void propagate_to_boundaries(flood *f, sw_id value, uint32_t from)
{
	bool fresh;
	for (uint32_t i = f->boundary_start[value]; i < f->boundary_start[value + 1]; i++) {
		const sw_boundary *boundary = &f->roles->boundaries.data[f->boundary_list[i]];
		for (uint32_t k = 0; k < boundary->n_reads + boundary->n_values; k++) {
			sw_split s = f->splits.data[from];
			sw_id other = boundary_value(boundary, k);
			if (!f->cut[other])
				join(f, from, split_of(f, false, other, s.where, s.top, &fresh));
		}
	}
}

/* A state's input and output have one layout. */
static void propagate_to_alias(flood *f, sw_id value, uint32_t from)
{
	bool fresh;
	if (f->alias[value] == SW_NO_ID)
		return;
	sw_split s = f->splits.data[from];
	join(f, from, split_of(f, false, f->alias[value], s.where, s.top, &fresh));
}

static void propagate(flood *f, uint32_t split)
{
	sw_id value = f->owner.data[split];
	const sw_value *v = &f->program->values.data[value];
	if (f->cut[value])
		return;
	propagate_to_op(f, v->op, true, (int32_t)v->index, split);
	sw_id last = SW_NO_ID;
	for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++) {
		sw_id user = f->users.ops[u];
		if (user == last)
			continue;
		last = user;
		const sw_op *op = sw_op_at(f->program, user);
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (op->operands[k] == value)
				propagate_to_op(f, user, false, (int32_t)k, split);
	}
	propagate_to_boundaries(f, value, split);
	propagate_to_alias(f, value, split);
}

static void add_whole_dims(flood *f)
{
	bool fresh;
	for (size_t v = 0; v < f->program->values.len; v++) {
		sw_shape shape = f->program->values.data[v].shape;
		if (!f->roles->planned[sw_op_at(f->program, f->program->values.data[v].op)
		                               ->computation])
			continue;
		for (int32_t d = 0; d < shape.rank; d++)
			if (shape.dims[d] > 1)
				split_of(f, false, (sw_id)v, d, shape.dims[d], &fresh);
	}
}

static void index_boundaries(flood *f, sw_arena *arena)
{
	size_t n = f->program->values.len, total = 0;
	uint32_t *start = SW_NEW_N(arena, uint32_t, n + 2), *list;
	for (size_t i = 0; i < f->roles->boundaries.len; i++) {
		const sw_boundary *boundary = &f->roles->boundaries.data[i];
		for (uint32_t k = 0; k < boundary->n_reads + boundary->n_values; k++, total++)
			start[boundary_value(boundary, k) + 2]++;
	}
	for (size_t v = 0; v < n; v++)
		start[v + 2] += start[v + 1];
	list = SW_NEW_N(arena, uint32_t, total + 1);
	for (size_t i = 0; i < f->roles->boundaries.len; i++) {
		const sw_boundary *boundary = &f->roles->boundaries.data[i];
		for (uint32_t k = 0; k < boundary->n_reads + boundary->n_values; k++)
			list[start[boundary_value(boundary, k) + 1]++] = (uint32_t)i;
	}
	f->boundary_start = start;
	f->boundary_list = list;
}

static void index_aliases(flood *f, sw_arena *arena)
{
	const sw_computation *entry = sw_entry(f->program);
	f->alias = SW_NEW_N(arena, sw_id, f->program->values.len + 1);
	for (size_t v = 0; v < f->program->values.len; v++)
		f->alias[v] = SW_NO_ID;
	for (size_t i = 0; i < entry->results.len; i++) {
		if (f->roles->output_input[i] < 0)
			continue;
		sw_id out = entry->results.data[i],
		      in = f->roles->inputs[f->roles->output_input[i]];
		f->alias[out] = in;
		f->alias[in] = out;
	}
}

static void propagate_all(flood *f, size_t *next)
{
	for (; *next < f->queue.len; ++*next)
		propagate(f, f->queue.data[*next]);
}

/* ---- values that are one number everywhere ---------------------------------------------- */

/* Let nothing pass through values that are one number, repeated. Canonical form makes equal ones
 * one, so that the zeros with which activations of 32 samples are compared may be those of a weight
 * with 32 rows, and the factor of all square weights' moments is one value. */
static void cut_uniform(flood *f, bool *uniform)
{
	const sw_program *program = f->program;
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = sw_op_at(program, (sw_id)i);
		sw_id value = op->first_result;
		if (op->n_results != 1 || op->n_operands == 0 || f->cut[value] ||
		    sw_value_shape(program, value).rank == 0)
			continue;
		bool is = sw_repeats_number(program, op);
		bool all = sw_opcode_is_elementwise((sw_opcode)op->opcode);
		for (uint32_t k = 0; k < op->n_operands; k++)
			all = all && uniform[op->operands[k]];
		f->cut[value] = uniform[value] = is || all;
	}
}

/* Has this split another class than the ones before? *class: theirs; -1: there were none. */
static bool is_another(flood *f, int32_t *class, uint32_t split)
{
	int32_t found = find(f, (int32_t)split);
	bool another = *class >= 0 && *class != found;
	*class = found;
	return another;
}

/* Would a split of the value make one of two classes of what reads it? What is made of uniform values
 * alone has no dimensions of its own. */
static bool confuses(flood *f, const bool *uniform, sw_id value, uint32_t split)
{
	int32_t class = -1, factor;
	int64_t top;
	bool fresh;
	sw_split own = f->splits.data[split];
	for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++) {
		sw_id user = f->users.ops[u];
		const sw_op *op = sw_op_at(f->program, user);
		const sw_rule *rule = f->rules[user];
		for (int32_t k = 0; k < rule->n_operands && k < (int32_t)op->n_operands; k++)
			if (op->operands[k] == value && !uniform[op->first_result] &&
			    sw_rule_factor_at(rule, false, k, own.where, own.top, &factor, &top) &&
			    is_another(f, &class, split_of(f, true, user, factor, top, &fresh)))
				return true;
	}
	for (uint32_t i = f->boundary_start[value]; i < f->boundary_start[value + 1]; i++) {
		const sw_boundary *boundary = &f->roles->boundaries.data[f->boundary_list[i]];
		if (is_another(f, &class,
		               split_of(f, false, boundary->values[0], own.where, own.top, &fresh)))
			return true;
	}
	return false;
}

/* Let splits pass through the uniform values, too, if they confuse nothing. Of the others each device
 * can make any part for itself. */
static void join_uniform(flood *f, const bool *uniform, size_t *next)
{
	for (size_t v = 0; v < f->program->values.len; v++) {
		bool confused = false;
		f->cut[v] = f->cut[v] && !uniform[v];
		for (int32_t k = uniform[v] ? f->last[false][v] : -1; k >= 0; k = f->before.data[k])
			if (confuses(f, uniform, (sw_id)v, (uint32_t)k))
				confused = true;
			else
				propagate(f, (uint32_t)k);
		f->cut[v] |= confused;
		propagate_all(f, next);
	}
}

/* ---- results ---------------------------------------------------------------------------- */

static void number_classes(flood *f, sw_classes *classes)
{
	int32_t *number = SW_NEW_N(&classes->arena, int32_t, f->splits.len + 1);
	for (size_t i = 0; i < f->splits.len; i++) {
		int32_t root = find(f, (int32_t)i);
		if ((size_t)root == i)
			number[i] = classes->n++;
	}
	for (size_t i = 0; i < f->splits.len;
	     /* A root has the least number of its class, so roots are numbered first. */
	     i++)
		number[i] = number[find(f, (int32_t)i)];
	for (size_t i = 0; i < f->splits.len; i++)
		f->splits.data[i].class = number[i];
}

static const sw_split *lists_of(flood *f, sw_classes *classes, bool of_op, size_t n,
                                const uint32_t **starts)
{
	uint32_t *start = SW_NEW_N(&classes->arena, uint32_t, n + 2);
	size_t count = 0;
	for (size_t i = 0; i < f->splits.len; i++)
		if (f->of_op.data[i] == of_op) {
			start[f->owner.data[i] + 2]++;
			count++;
		}
	for (size_t i = 0; i < n; i++)
		start[i + 2] += start[i + 1];
	sw_split *list = SW_NEW_N(&classes->arena, sw_split, count + 1);
	for (size_t i = 0; i < f->splits.len; i++)
		if (f->of_op.data[i] == of_op)
			list[start[f->owner.data[i] + 1]++] = f->splits.data[i];
	*starts = start;
	return list;
}

static void mark_inputs(sw_classes *classes, const sw_roles *roles)
{
	for (uint32_t i = 0; i < roles->n_inputs; i++) {
		sw_id value = roles->inputs[i];
		bool data = roles->input_role[i] == SW_ROLE_DATA;
		for (uint32_t k = classes->value_start[value]; k < classes->value_start[value + 1];
		     k++) {
			const sw_split *split = &classes->value_splits[k];
			bool stacked = roles->input_role[i] == SW_ROLE_RESIDUAL;
			if (split->where == (stacked ? 0 : roles->batch_dim[i]))
				classes->roles[split->class] |= SW_CLASS_DATA;
			classes->roles[split->class] |=
				SW_CLASS_HEAVY |
				(data || (stacked && split->where == 0) ? 0 : SW_CLASS_STATE);
		}
	}
}

/* Mark the batch where no input has it. */
static void mark_drawn(sw_classes *classes, const sw_roles *roles)
{
	if (roles->drawn == SW_NO_ID)
		return;
	uint32_t first = classes->value_start[roles->drawn];
	for (uint32_t k = first; k < classes->value_start[roles->drawn + 1]; k++)
		if (classes->value_splits[k].where == roles->drawn_dim)
			classes->roles[classes->value_splits[k].class] |=
				SW_CLASS_DATA | SW_CLASS_HEAVY;
}

/* Terms lie where the rows of the batch do. */
static void mark_terms(sw_classes *classes, const sw_program *program)
{
	for (sw_id op = 0; op < program->ops.len; op++) {
		if (sw_op_at(program, op)->opcode != SW_OP_TERMS)
			continue;
		sw_id value = sw_op_at(program, op)->first_result;
		for (uint32_t k = classes->value_start[value]; k < classes->value_start[value + 1];
		     k++)
			if (classes->value_splits[k].where == 0)
				classes->roles[classes->value_splits[k].class] |=
					SW_CLASS_DATA | SW_CLASS_HEAVY;
	}
}

static void mark_dot(sw_classes *classes, const sw_roles *roles, const sw_rule *rule, sw_id op)
{
	int32_t parameter = sw_roles_weight(roles, op);
	for (uint32_t k = classes->op_start[op]; k < classes->op_start[op + 1]; k++) {
		int32_t factor = classes->op_splits[k].where;
		uint8_t *bits = &classes->roles[classes->op_splits[k].class];
		*bits |= SW_CLASS_HEAVY;
		if (parameter < 0 || !sw_rule_has_factor(rule, true, 0, factor) ||
		    !sw_rule_has_factor(rule, false, 1 - parameter, factor))
			continue;
		*bits |= sw_rule_has_factor(rule, false, parameter, factor) ? SW_CLASS_EXPERT
		                                                            : SW_CLASS_ROWS;
	}
}

static void mark_dots(sw_classes *classes, const sw_roles *roles, const sw_rule *const *rules)
{
	for (sw_id op = 0; op < roles->program->ops.len; op++)
		if (sw_is_dot(sw_op_at(roles->program, op)))
			mark_dot(classes, roles, rules[op], op);
}

/* An op that meets neither dots nor inputs would never be split: it has its own classes. */
static void mark_others(sw_classes *classes, size_t n_ops)
{
	for (size_t op = 0; op < n_ops; op++) {
		uint32_t first = classes->op_start[op], end = classes->op_start[op + 1];
		bool heavy = false;
		for (uint32_t k = first; k < end; k++)
			heavy = heavy ||
			        (classes->roles[classes->op_splits[k].class] & SW_CLASS_HEAVY);
		for (uint32_t k = first; k < end && !heavy; k++)
			classes->roles[classes->op_splits[k].class] |= SW_CLASS_HEAVY;
	}
}

/* ---- partial sums ----------------------------------------------------------------------- */

typedef struct partial_flood {
	flood *flood;
	uint8_t *partial;
	SW_VEC(sw_id) queue; /* values whose monoids are not propagated yet */
} partial_flood;

static void raise_partial(partial_flood *t, sw_id value, uint32_t monoids)
{
	if ((t->partial[value] | monoids) == t->partial[value])
		return;
	t->partial[value] |= (uint8_t)monoids;
	sw_vec_push(&t->queue, value);
}

static void raise_results(partial_flood *t, const sw_op *op, uint32_t monoids)
{
	for (uint32_t k = 0; k < op->n_results; k++)
		raise_partial(t, op->first_result + k, monoids);
}

/* Splitting a reduced factor leaves partial sums. */
static void start_partial(partial_flood *t, const sw_classes *classes)
{
	for (size_t i = 0; i < t->flood->program->ops.len; i++)
		for (uint32_t k = classes->op_start[i]; k < classes->op_start[i + 1]; k++) {
			const sw_factor *factor =
				&t->flood->rules[i]->factors[classes->op_splits[k].where];
			if (factor->kind == SW_FACTOR_REDUCED)
				raise_results(t, &t->flood->program->ops.data[i],
				              1u << factor->monoid);
		}
}

static void propagate_partial_to_op(partial_flood *t, sw_id id, sw_id value)
{
	const sw_op *op = sw_op_at(t->flood->program, id);
	const sw_rule *rule = t->flood->rules[id];
	for (int32_t s = 0; s < rule->n_linearities; s++)
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (op->operands[k] == value && rule->linearities[s].operands[k])
				raise_results(t, op,
				              sw_linearity_becomes(&rule->linearities[s],
				                                   t->partial[value]));
}

static void propagate_partial_to_boundary(partial_flood *t, const sw_boundary *boundary,
                                          sw_id value)
{
	for (uint32_t k = 0; k < boundary->n_reads; k++)
		for (uint32_t i = 0; boundary->reads[k].value == value && i < boundary->n_values;
		     i++)
			raise_partial(t, boundary->values[i], t->partial[value]);
}

/* Find where partial sums may arise and how far they may be passed on: through linearities and
 * through boundaries. */
static const uint8_t *find_partial(flood *f, sw_classes *classes)
{
	partial_flood t = {.flood = f};
	t.partial = SW_NEW_N(&classes->arena, uint8_t, f->program->values.len + 1);
	start_partial(&t, classes);
	while (t.queue.len > 0) {
		sw_id value = t.queue.data[--t.queue.len];
		for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++)
			propagate_partial_to_op(&t, f->users.ops[u], value);
		for (uint32_t i = f->boundary_start[value]; i < f->boundary_start[value + 1]; i++)
			propagate_partial_to_boundary(
				&t, &f->roles->boundaries.data[f->boundary_list[i]], value);
	}
	sw_vec_clear(&t.queue);
	return t.partial;
}

static int32_t *new_minus_ones(size_t n, sw_arena *arena)
{
	int32_t *last = SW_NEW_N(arena, int32_t, n + 1);
	memset(last, 0xff, sizeof(*last) * n);
	return last;
}

void sw_classes_init(sw_classes *classes, const sw_roles *roles, const sw_rule *const *rules)
{
	*classes = (sw_classes){0};
	sw_arena_init(&classes->arena);
	flood f = {.roles = roles, .program = roles->program, .rules = rules};
	f.users = sw_program_users(roles->program, &classes->arena);
	f.cut = sw_shared_positions(roles->program, &classes->arena);
	f.last[false] = new_minus_ones(roles->program->values.len, &classes->arena);
	f.last[true] = new_minus_ones(roles->program->ops.len, &classes->arena);
	index_boundaries(&f, &classes->arena);
	index_aliases(&f, &classes->arena);
	add_whole_dims(&f);
	bool *uniform = SW_NEW_N(&classes->arena, bool, roles->program->values.len + 1);
	size_t next = 0;
	cut_uniform(&f, uniform);
	propagate_all(&f, &next);
	join_uniform(&f, uniform, &next);
	number_classes(&f, classes);
	classes->value_splits =
		lists_of(&f, classes, false, roles->program->values.len, &classes->value_start);
	classes->op_splits =
		lists_of(&f, classes, true, roles->program->ops.len, &classes->op_start);
	classes->roles = SW_NEW_N(&classes->arena, uint8_t, classes->n + 1);
	mark_inputs(classes, roles);
	mark_drawn(classes, roles);
	mark_terms(classes, roles->program);
	mark_dots(classes, roles, rules);
	mark_others(classes, roles->program->ops.len);
	classes->partial = find_partial(&f, classes);
	sw_vec_clear(&f.before);
	sw_vec_clear(&f.splits);
	sw_vec_clear(&f.owner);
	sw_vec_clear(&f.of_op);
	sw_vec_clear(&f.queue);
}

void sw_classes_clear(sw_classes *classes)
{
	sw_arena_clear(&classes->arena);
}
