/* The table of rules, and the queries that need only a rule. */
#include "rules/row.h"

#include <assert.h>

static const sw_rule_family *const families[] = {
	&sw_rules_elementwise,
	&sw_rules_contract,
	&sw_rules_dots,
	&sw_rules_reduce,
	&sw_rules_window,
	&sw_rules_shape,
	&sw_rules_affine,
	&sw_rules_index,
	&sw_rules_source,
	&sw_rules_random,
	&sw_rules_region,
	&sw_rules_linalg,
	NULL,
};

const sw_rule_family *const *sw_rule_families(void)
{
	return families;
}

const sw_rule_row *sw_rule_row_of(sw_opcode opcode)
{
	for (size_t f = 0; families[f]; f++)
		for (size_t i = 0; i < families[f]->n; i++)
			if (families[f]->rows[i].opcode == opcode)
				return &families[f]->rows[i];
	return NULL;
}

void sw_rule_describe_nothing(sw_rule_builder *builder)
{
	(void)builder;
}

void sw_rule_describe_replicated(sw_rule_builder *builder)
{
	sw_rule_whole(builder, sw_arena_printf(builder->arena, "every device does the whole %s",
	                                       sw_op_opcode_name(builder->op)));
}

static bool linearity_applies(const sw_rule_builder *builder, const sw_pass_row *pass)
{
	if (pass->when == SW_WHEN_ALWAYS)
		return true;
	sw_type_kind kind = sw_type_kind_of(sw_rule_operand_shape(builder, 0).type);
	if (pass->when == SW_WHEN_PRED)
		return kind == SW_KIND_PRED;
	return kind == SW_KIND_FLOAT || kind == SW_KIND_COMPLEX;
}

/* Return which operands a pattern names. */
static bool *pattern_operands(const sw_rule_builder *builder, const char *pattern)
{
	bool *operands = SW_NEW_N(builder->arena, bool, builder->rule->n_operands);

	for (int32_t i = 0; i < builder->rule->n_operands; i++)
		operands[i] = pattern[0] == '*' || pattern[i] == '1';
	return operands;
}

static void add_linearities(sw_rule_builder *builder, const sw_rule_row *row)
{
	for (size_t i = 0; i < SW_COUNT(row->passes) && row->passes[i].operands; i++) {
		const sw_pass_row *pass = &row->passes[i];
		sw_monoid becomes[SW_MONOID_OR + 1] = {SW_MONOID_NONE};
		if (!linearity_applies(builder, pass))
			continue;
		for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
			if (pass->monoids >> m & 1)
				becomes[m] = pass->reverses ? sw_monoid_dual((sw_monoid)m)
				                            : (sw_monoid)m;
		sw_rule_add_linearity_as(builder, pattern_operands(builder, pass->operands),
		                         becomes);
	}
}

const sw_rule *sw_rule_make(const sw_program *program, sw_id op, sw_arena *arena)
{
	sw_rule_builder builder;
	const sw_rule_row *row = sw_rule_row_of((sw_opcode)sw_op_at(program, op)->opcode);

	sw_rule_builder_init(&builder, program, op, arena);
	if (row) {
		row->describe(&builder);
		add_linearities(&builder, row);
	} else {
		builder.rule->missing = true;
		sw_rule_whole(&builder, sw_arena_printf(arena, "no rule for %s",
		                                        sw_op_opcode_name(builder.op)));
	}
	return sw_rule_builder_finish(&builder);
}

const sw_rule *const *sw_rules_make(const sw_program *program, sw_arena *arena)
{
	const sw_rule **rules = SW_NEW_N(arena, const sw_rule *, program->ops.len + 1);
	for (sw_id id = 0; id < program->ops.len; id++)
		rules[id] = sw_rule_make(program, id, arena);
	return rules;
}

uint32_t sw_linearity_becomes(const sw_linearity *linearity, uint32_t monoids)
{
	uint32_t mask = 0;

	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
		if (linearity->monoids & monoids & SW_MONOID_BIT(m))
			mask |= SW_MONOID_BIT(linearity->becomes[m]);
	return mask;
}

/* ---- where a digit lies ----------------------------------------------------------------- */

static const sw_dim_map *maps_of(const sw_rule *rule, bool result, int32_t index)
{
	return result ? rule->results[index] : rule->operands[index];
}

bool sw_rule_factor_at(const sw_rule *rule, bool result, int32_t index, int32_t dim, int64_t top,
                       int32_t *factor, int64_t *factor_top)
{
	const sw_dim_map *map = &maps_of(rule, result, index)[dim];

	for (int32_t i = 0; i < map->n; i++) {
		sw_ref ref = map->refs[i];
		int64_t inner = top / ref.stride, size = rule->factors[ref.factor].size;
		if (top % ref.stride != 0 || inner < 2 || size % inner != 0)
			continue;
		*factor = ref.factor;
		*factor_top = inner;
		return true;
	}
	return false;
}

int32_t sw_rule_dim_with(const sw_rule *rule, bool result, int32_t index, int32_t factor,
                         int64_t *stride)
{
	const sw_dim_map *maps = maps_of(rule, result, index);
	int32_t rank = result ? rule->result_ranks[index] : rule->operand_ranks[index];

	for (int32_t d = 0; d < rank; d++)
		for (int32_t i = 0; i < maps[d].n; i++)
			if (maps[d].refs[i].factor == factor) {
				*stride = maps[d].refs[i].stride;
				return d;
			}
	return -1;
}

bool sw_rule_dim_of(const sw_rule *rule, bool result, int32_t index, int32_t factor,
                    int64_t factor_top, int32_t *dim, int64_t *top)
{
	int64_t stride;
	int32_t found = sw_rule_dim_with(rule, result, index, factor, &stride);

	if (found < 0)
		return false;
	*dim = found;
	*top = factor_top * stride;
	return true;
}
