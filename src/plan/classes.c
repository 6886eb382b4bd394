/*
 * Classes: splits (value, dim, top) that some rule carries into each other, found by flooding from every dimension
 * as a whole (top = N). A split stands for all digits that lie just below `top`, whatever the axis' size.
 */
#include "plan/internal.h"

#include <stdlib.h>

typedef struct flood {
	const sw_roles *roles;
	const sw_program *program;
	const sw_rule *const *rules;
	sw_users users;
	sw_map index;            /* (is op, id, where, top) -> split */
	SW_VEC(sw_split) splits; /* class: union-find parent */
	SW_VEC(sw_id) owner;     /* value or op */
	SW_VEC(bool) of_op;
	SW_VEC(uint32_t) queue;      /* splits of values still to be carried on */
	const uint32_t *carry_start; /* per value: into carry_list */
	const uint32_t *carry_list;
	sw_id *alias; /* per value: the output that replaces an input, and back; SW_NO_ID */
} flood;

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

static uint32_t split_of(flood *f, bool of_op, sw_id id, int32_t where, int64_t top, bool *fresh)
{
	const int64_t key[] = {(int64_t)id << 1 | of_op, where, top};
	uint32_t next = (uint32_t)f->splits.len;
	uint32_t split = sw_map_intern(&f->index, key, sizeof(key), next);
	*fresh = split == next;
	if (*fresh) {
		sw_split s = {.where = where, .class = (int32_t)next, .top = top};
		sw_vec_push(&f->splits, s);
		sw_vec_push(&f->owner, id);
		sw_vec_push(&f->of_op, of_op);
		if (!of_op)
			sw_vec_push(&f->queue, next);
	}
	return split;
}

/* The op's factor reaches all its operands and results. */
static void spread(flood *f, sw_id op_id, uint32_t op_split)
{
	const sw_op *op = sw_op_at(f->program, op_id);
	const sw_rule *rule = f->rules[op_id];
	int32_t factor = f->splits.data[op_split].where, dim;
	int64_t factor_top = f->splits.data[op_split].top, top;
	bool fresh;
	for (int32_t i = 0; i < rule->n_operands; i++)
		if (sw_rule_dim_of(rule, false, i, factor, factor_top, &dim, &top))
			join(f, op_split, split_of(f, false, op->operands[i], dim, top, &fresh));
	for (int32_t i = 0; i < rule->n_results; i++)
		if (sw_rule_dim_of(rule, true, i, factor, factor_top, &dim, &top))
			join(f, op_split,
			     split_of(f, false, op->first_result + (sw_id)i, dim, top, &fresh));
}

static void enter_op(flood *f, sw_id op_id, bool result, int32_t index, uint32_t from)
{
	const sw_rule *rule = f->rules[op_id];
	int32_t factor;
	int64_t top;
	bool fresh;
	if (index >= (result ? rule->n_results : rule->n_operands))
		return;
	if (!sw_rule_factor_at(rule, result, index, f->splits.data[from].where, f->splits.data[from].top,
	                       &factor, &top))
		return;
	uint32_t split = split_of(f, true, op_id, factor, top, &fresh);
	join(f, split, from);
	if (fresh)
		spread(f, op_id, split);
}

/* The values that a loop makes one: the initial one, the parameter's, the body's result, the loop's result. */
static void enter_carries(flood *f, sw_id value, uint32_t from)
{
	bool fresh;
	for (uint32_t i = f->carry_start[value]; i < f->carry_start[value + 1]; i++) {
		const sw_carry *c = &f->roles->carries.data[f->carry_list[i]];
		const sw_id same[] = {c->init, c->result, c->in_body, c->in_condition, c->next};
		for (size_t k = 0; k < SW_COUNT(same); k++) {
			sw_split s = f->splits.data[from];
			join(f, from, split_of(f, false, same[k], s.where, s.top, &fresh));
		}
	}
}

/* A state's input and output lie alike. */
static void enter_alias(flood *f, sw_id value, uint32_t from)
{
	bool fresh;
	if (f->alias[value] == SW_NO_ID)
		return;
	sw_split s = f->splits.data[from];
	join(f, from, split_of(f, false, f->alias[value], s.where, s.top, &fresh));
}

static void carry_on(flood *f, uint32_t split)
{
	sw_id value = f->owner.data[split];
	const sw_value *v = &f->program->values.data[value];
	enter_op(f, v->op, true, (int32_t)v->index, split);
	sw_id last = SW_NO_ID;
	for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++) {
		sw_id user = f->users.ops[u];
		if (user == last)
			continue;
		last = user;
		const sw_op *op = sw_op_at(f->program, user);
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (op->operands[k] == value)
				enter_op(f, user, false, (int32_t)k, split);
	}
	enter_carries(f, value, split);
	enter_alias(f, value, split);
}

static void seed(flood *f)
{
	bool fresh;
	for (size_t v = 0; v < f->program->values.len; v++) {
		sw_shape shape = f->program->values.data[v].shape;
		if (!f->roles->planned[sw_op_at(f->program, f->program->values.data[v].op)->computation])
			continue;
		for (int32_t d = 0; d < shape.rank; d++)
			if (shape.dims[d] > 1)
				split_of(f, false, (sw_id)v, d, shape.dims[d], &fresh);
	}
}

static void index_carries(flood *f, sw_arena *arena)
{
	size_t n = f->program->values.len;
	uint32_t *start = SW_NEW_N(arena, uint32_t, n + 2);
	uint32_t *list = SW_NEW_N(arena, uint32_t, f->roles->carries.len * 5 + 1);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t c = 0; c < f->roles->carries.len; c++) {
			const sw_carry *carry = &f->roles->carries.data[c];
			const sw_id same[] = {carry->init, carry->result, carry->in_body,
			                      carry->in_condition, carry->next};
			for (size_t k = 0; k < SW_COUNT(same); k++) {
				if (pass == 0)
					start[same[k] + 2]++;
				else
					list[start[same[k] + 1]++] = (uint32_t)c;
			}
		}
		for (size_t v = 0; pass == 0 && v < n; v++)
			start[v + 2] += start[v + 1];
	}
	f->carry_start = start;
	f->carry_list = list;
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
		sw_id out = entry->results.data[i], in = f->roles->inputs[f->roles->output_input[i]];
		f->alias[out] = in;
		f->alias[in] = out;
	}
}

/* ---- results -------------------------------------------------------------------------------------------- */

static void number_classes(flood *f, sw_classes *classes)
{
	int32_t *number = SW_NEW_N(&classes->arena, int32_t, f->splits.len + 1);
	for (size_t i = 0; i < f->splits.len; i++) {
		int32_t root = find(f, (int32_t)i);
		if ((size_t)root == i)
			number[i] = classes->n++;
	}
	for (size_t i = 0; i < f->splits.len; i++) /* roots come first: a root is the least of its class */
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
		for (uint32_t k = classes->value_start[value]; k < classes->value_start[value + 1]; k++) {
			const sw_split *split = &classes->value_splits[k];
			sw_shape shape = sw_value_shape(roles->program, value);
			if (data && split->where == 0 && split->top == shape.dims[0])
				classes->data[split->class] = true;
			classes->state[split->class] = classes->state[split->class] || !data;
			classes->heavy[split->class] = true;
		}
	}
}

static void mark_heavy(sw_classes *classes, const sw_program *program)
{
	for (size_t op = 0; op < program->ops.len; op++) {
		uint8_t opcode = program->ops.data[op].opcode;
		if (opcode != SW_OP_DOT && opcode != SW_OP_CONVOLUTION)
			continue;
		for (uint32_t k = classes->op_start[op]; k < classes->op_start[op + 1]; k++)
			classes->heavy[classes->op_splits[k].class] = true;
	}
}

/* Where partial sums may arise (a reduced factor that is split) and how far they may travel. */
static const uint8_t *find_partial(sw_classes *classes, const sw_roles *roles, const sw_rule *const *rules)
{
	const sw_program *program = roles->program;
	uint8_t *partial = SW_NEW_N(&classes->arena, uint8_t, program->values.len + 1);
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		const sw_rule *rule = rules[i];
		uint32_t mask = 0;
		for (uint32_t k = classes->op_start[i]; k < classes->op_start[i + 1]; k++) {
			const sw_factor *factor = &rule->factors[classes->op_splits[k].where];
			if (factor->kind == SW_FACTOR_REDUCED)
				mask |= 1u << factor->monoid;
		}
		for (int32_t s = 0; rule && s < rule->n_passages; s++)
			for (uint32_t k = 0; k < op->n_operands; k++)
				if (rule->passages[s].operands[k])
					mask |= rule->passages[s].monoids & partial[op->operands[k]];
		for (uint32_t k = 0; k < op->n_results; k++)
			partial[op->first_result + k] = (uint8_t)mask;
	}
	return partial;
}

void sw_classes_init(sw_classes *classes, const sw_roles *roles, const sw_rule *const *rules)
{
	*classes = (sw_classes){0};
	sw_arena_init(&classes->arena);
	flood f = {.roles = roles, .program = roles->program, .rules = rules};
	f.users = sw_program_users(roles->program, &classes->arena);
	index_carries(&f, &classes->arena);
	index_aliases(&f, &classes->arena);
	seed(&f);
	for (size_t i = 0; i < f.queue.len; i++)
		carry_on(&f, f.queue.data[i]);
	number_classes(&f, classes);
	classes->value_splits =
		lists_of(&f, classes, false, roles->program->values.len, &classes->value_start);
	classes->op_splits = lists_of(&f, classes, true, roles->program->ops.len, &classes->op_start);
	classes->data = SW_NEW_N(&classes->arena, bool, classes->n + 1);
	classes->state = SW_NEW_N(&classes->arena, bool, classes->n + 1);
	classes->heavy = SW_NEW_N(&classes->arena, bool, classes->n + 1);
	mark_inputs(classes, roles);
	mark_heavy(classes, roles->program);
	classes->partial = find_partial(classes, roles, rules);
	sw_map_clear(&f.index);
	sw_vec_clear(&f.splits);
	sw_vec_clear(&f.owner);
	sw_vec_clear(&f.of_op);
	sw_vec_clear(&f.queue);
}

void sw_classes_clear(sw_classes *classes)
{
	sw_arena_clear(&classes->arena);
}
