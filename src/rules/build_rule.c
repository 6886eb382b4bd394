/* Building one rule: factors, where they stand, linearities. */
#include "rules/row.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "program/number.h"

/* Return empty maps for the values, which are listed, or n consecutive ones from `first`. */
static sw_dim_map **new_maps(sw_rule_builder *builder, int32_t n, const sw_id *values, sw_id first,
                             const int32_t **ranks)
{
	sw_dim_map **maps = SW_NEW_N(builder->arena, sw_dim_map *, n);
	int32_t *rank = SW_NEW_N(builder->arena, int32_t, n);

	for (int32_t i = 0; i < n; i++) {
		rank[i] = sw_value_shape(builder->program, values ? values[i] : first + (sw_id)i)
		                  .rank;
		maps[i] = SW_NEW_N(builder->arena, sw_dim_map, rank[i]);
	}
	*ranks = rank;
	return maps;
}

void sw_rule_builder_init(sw_rule_builder *builder, const sw_program *program, sw_id op,
                          sw_arena *arena)
{
	const sw_op *o = sw_op_at(program, op);

	*builder = (sw_rule_builder){.program = program, .op = o, .arena = arena};
	builder->rule = SW_NEW(arena, sw_rule);
	sw_rule *rule = builder->rule;
	rule->n_operands = (int32_t)o->n_operands;
	rule->n_results = (int32_t)o->n_results;
	builder->operands =
		new_maps(builder, rule->n_operands, o->operands, 0, &rule->operand_ranks);
	builder->results =
		new_maps(builder, rule->n_results, NULL, o->first_result, &rule->result_ranks);
}

sw_shape sw_rule_operand_shape(const sw_rule_builder *builder, int32_t operand)
{
	return sw_value_shape(builder->program, builder->op->operands[operand]);
}

sw_shape sw_rule_result_shape(const sw_rule_builder *builder, int32_t result)
{
	return sw_value_shape(builder->program, builder->op->first_result + (sw_id)result);
}

/* ---- factors ---------------------------------------------------------------------------- */

static int32_t add_factor(sw_rule_builder *builder, sw_factor factor)
{
	if (factor.size < 2)
		return -1;
	if (builder->rule->n_factors == builder->factor_capacity) {
		int32_t capacity = SW_MAX(4, 2 * builder->factor_capacity);
		sw_factor *grown = SW_NEW_N(builder->arena, sw_factor, capacity);
		if (builder->factor_capacity)
			memcpy(grown, builder->factors,
			       sizeof(*grown) * (size_t)builder->factor_capacity);
		builder->factors = grown;
		builder->factor_capacity = capacity;
	}
	builder->factors[builder->rule->n_factors] = factor;
	return builder->rule->n_factors++;
}

int32_t sw_rule_add_parallel(sw_rule_builder *builder, int64_t size)
{
	return add_factor(builder, (sw_factor){.size = size, .kind = SW_FACTOR_PARALLEL});
}

int32_t sw_rule_add_reduced(sw_rule_builder *builder, int64_t size, sw_monoid monoid)
{
	assert(monoid != SW_MONOID_NONE);
	return add_factor(builder,
	                  (sw_factor){.size = size, .kind = SW_FACTOR_REDUCED, .monoid = monoid});
}

void sw_rule_exchanges(sw_rule_builder *builder, int32_t factor, sw_exchange exchange)
{
	if (factor >= 0)
		builder->factors[factor].exchange = exchange;
}

void sw_rule_streams(sw_rule_builder *builder, int32_t factor)
{
	if (factor >= 0)
		builder->factors[factor].streams = true;
}

void sw_rule_join(sw_rule_builder *builder, int32_t factor, int32_t first, int32_t n)
{
	if (factor < 0)
		return;
	int64_t *list = SW_NEW_N(builder->arena, int64_t, n);
	for (int32_t i = 0; i < n; i++)
		list[i] = first + i;
	builder->factors[factor].joins = (sw_ints){.n = n, .v = list};
}

/* Insert a factor, keeping strides descending. Nearly every dimension has one factor. */
static void place(sw_rule_builder *builder, sw_dim_map *map, sw_ref ref)
{
	if (ref.factor < 0)
		return;
	sw_ref *refs = SW_NEW_N(builder->arena, sw_ref, map->n + 1);
	int32_t at = 0;
	while (at < map->n && map->refs[at].stride > ref.stride)
		at++;
	if (map->n) {
		memcpy(refs, map->refs, sizeof(*refs) * (size_t)at);
		memcpy(refs + at + 1, map->refs + at, sizeof(*refs) * (size_t)(map->n - at));
	}
	refs[at] = ref;
	map->refs = refs;
	map->n++;
}

void sw_rule_place_operand(sw_rule_builder *builder, int32_t factor, int32_t operand, int32_t dim,
                           int64_t stride)
{
	place(builder, &builder->operands[operand][dim],
	      (sw_ref){.factor = factor, .stride = stride});
}

void sw_rule_place_result(sw_rule_builder *builder, int32_t factor, int32_t result, int32_t dim,
                          int64_t stride)
{
	place(builder, &builder->results[result][dim],
	      (sw_ref){.factor = factor, .stride = stride});
}

void sw_rule_whole(sw_rule_builder *builder, const char *why)
{
	if (!builder->rule->whole)
		builder->rule->whole = why;
}

/* ---- linearities ------------------------------------------------------------------------ */

static bool holds(sw_type type, double value)
{
	uint64_t data[2] = {0};

	sw_number_set(type, data, 0, value);
	return sw_number_get(type, data, 0) == value;
}

/* A device without a term holds the neutral element, so the type must have one. An f8 without
 * infinity has none for an order: its largest number grows to NaN in the next op, as does a term
 * that is not the least. A scale type has no zero. */
static uint32_t monoids_of_float(sw_type type)
{
	return (holds(type, 0) ? SW_PASS_SUM : 0) |
	       (holds(type, INFINITY) && holds(type, -INFINITY) ? SW_PASS_ORDER : 0);
}

static uint32_t monoids_of(sw_type type)
{
	switch (sw_type_kind_of(type)) {
	case SW_KIND_PRED:
		return SW_PASS_AND | SW_PASS_OR;
	case SW_KIND_SIGNED:
	case SW_KIND_UNSIGNED:
		return SW_PASS_ANY;
	case SW_KIND_FLOAT:
		return monoids_of_float(type);
	case SW_KIND_COMPLEX:
		return SW_PASS_SUM;
	case SW_KIND_TOKEN:
		break;
	}
	return 0;
}

static int64_t component_bytes(sw_type type)
{
	return sw_type_kind_of(type) == SW_KIND_COMPLEX ? sw_type_bytes(type) / 2
	                                                : sw_type_bytes(type);
}

static bool is_integer(sw_type_kind kind)
{
	return kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED;
}

static bool is_inexact(sw_type_kind kind)
{
	return kind == SW_KIND_FLOAT || kind == SW_KIND_COMPLEX;
}

static bool sum_survives(sw_type from, sw_type to)
{
	sw_type_kind f = sw_type_kind_of(from), t = sw_type_kind_of(to);

	if (from == to)
		return true;
	if (is_integer(f) && is_integer(t))
		return sw_type_bytes(to) <= sw_type_bytes(from);
	if (f == t)
		return component_bytes(to) > component_bytes(from);
	return is_inexact(f) && is_inexact(t) && component_bytes(to) == component_bytes(from);
}

static bool order_survives(sw_type from, sw_type to)
{
	sw_type_kind f = sw_type_kind_of(from), t = sw_type_kind_of(to);

	if (from == to || (f == SW_KIND_FLOAT && t == SW_KIND_FLOAT) ||
	    (is_integer(f) && t == SW_KIND_FLOAT))
		return true;
	return f == t && is_integer(f) && sw_type_bytes(to) > sw_type_bytes(from);
}

static bool is_order(sw_monoid monoid)
{
	return monoid == SW_MONOID_MAX || monoid == SW_MONOID_MIN;
}

/* Return whether P(m) of one type may become P(n) of the other. Between predicates and numbers, max
 * and min correspond to or and and: true is 1. */
static bool type_allows(sw_type from, sw_monoid m, sw_type to, sw_monoid n)
{
	if (!(monoids_of(from) & SW_MONOID_BIT(m)) || !(monoids_of(to) & SW_MONOID_BIT(n)))
		return false;
	if (m == SW_MONOID_SUM)
		return sum_survives(from, to);
	if (is_order(m) != is_order(n))
		return (is_order(m) ? to : from) == SW_PRED;
	return is_order(m) ? order_survives(from, to) : from == to;
}

static bool types_allow(const sw_rule_builder *builder, const bool *operands, sw_monoid m,
                        sw_monoid n)
{
	for (int32_t i = 0; i < builder->rule->n_operands; i++)
		for (int32_t r = 0; operands[i] && r < builder->rule->n_results; r++)
			if (!type_allows(sw_rule_operand_shape(builder, i).type, m,
			                 sw_rule_result_shape(builder, r).type, n))
				return false;
	return true;
}

sw_monoid sw_monoid_dual(sw_monoid monoid)
{
	static const sw_monoid duals[] = {
		[SW_MONOID_SUM] = SW_MONOID_SUM, [SW_MONOID_MAX] = SW_MONOID_MIN,
		[SW_MONOID_MIN] = SW_MONOID_MAX, [SW_MONOID_AND] = SW_MONOID_OR,
		[SW_MONOID_OR] = SW_MONOID_AND,  [SW_MONOID_PRODUCT] = SW_MONOID_NONE,
	};
	return duals[monoid];
}

static void append_linearity(sw_rule_builder *builder, sw_linearity linearity)
{
	sw_rule *rule = builder->rule;

	if (rule->n_linearities == builder->linearity_capacity) {
		int32_t capacity = SW_MAX(2, 2 * builder->linearity_capacity);
		sw_linearity *grown = SW_NEW_N(builder->arena, sw_linearity, capacity);
		if (builder->linearity_capacity)
			memcpy(grown, builder->linearities,
			       sizeof(*grown) * (size_t)builder->linearity_capacity);
		builder->linearities = grown;
		builder->linearity_capacity = capacity;
	}
	builder->linearities[rule->n_linearities++] = linearity;
}

void sw_rule_add_linearity_as(sw_rule_builder *builder, const bool *operands,
                              const sw_monoid becomes[SW_MONOID_OR + 1])
{
	sw_linearity linearity = {.operands = operands};

	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++) {
		if (!becomes[m] || !types_allow(builder, operands, (sw_monoid)m, becomes[m]))
			continue;
		linearity.monoids |= SW_MONOID_BIT(m);
		linearity.becomes[m] = (uint8_t)becomes[m];
	}
	if (!linearity.monoids)
		return;
	linearity.operands = sw_arena_copy(builder->arena, operands,
	                                   sizeof(bool) * (size_t)builder->rule->n_operands);
	append_linearity(builder, linearity);
}

void sw_rule_add_linearity(sw_rule_builder *builder, const bool *operands, uint32_t monoids)
{
	sw_monoid becomes[SW_MONOID_OR + 1] = {SW_MONOID_NONE};

	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
		becomes[m] = monoids >> m & 1 ? (sw_monoid)m : SW_MONOID_NONE;
	sw_rule_add_linearity_as(builder, operands, becomes);
}

void sw_rule_add_linearity_all(sw_rule_builder *builder, uint32_t monoids)
{
	bool *all = SW_NEW_N(builder->arena, bool, builder->rule->n_operands);

	for (int32_t i = 0; i < builder->rule->n_operands; i++)
		all[i] = true;
	sw_rule_add_linearity(builder, all, monoids);
}

void sw_rule_add_linearity_text(sw_rule_builder *builder, const char *pattern, uint32_t monoids)
{
	bool *operands = SW_NEW_N(builder->arena, bool, builder->rule->n_operands);

	assert(strlen(pattern) <= (size_t)builder->rule->n_operands);
	for (int32_t i = 0; pattern[i]; i++)
		operands[i] = pattern[i] == '1';
	sw_rule_add_linearity(builder, operands, monoids);
}

sw_monoid sw_rule_splittable(sw_type type, sw_monoid monoid)
{
	if (sw_type_kind_of(type) == SW_KIND_PRED && monoid == SW_MONOID_MAX)
		monoid = SW_MONOID_OR;
	if (sw_type_kind_of(type) == SW_KIND_PRED && monoid == SW_MONOID_MIN)
		monoid = SW_MONOID_AND;
	return (monoids_of(type) & SW_MONOID_BIT(monoid)) ? monoid : SW_MONOID_NONE;
}

sw_monoid sw_rule_combines(const sw_rule_builder *builder, int32_t computation, int32_t n)
{
	sw_monoid all = SW_MONOID_NONE;

	for (int32_t i = 0; i < n; i++) {
		sw_monoid monoid =
			sw_computation_monoid_of(builder->program, computation, (uint32_t)i);
		monoid = sw_rule_splittable(sw_rule_operand_shape(builder, i).type, monoid);
		if (monoid == SW_MONOID_NONE || (i > 0 && monoid != all))
			return SW_MONOID_NONE;
		all = monoid;
	}
	return all;
}

/* ---- the end ---------------------------------------------------------------------------- */

#ifndef NDEBUG
static bool maps_nest(const sw_rule_builder *builder, const sw_dim_map *maps, sw_shape shape)
{
	for (int32_t d = 0; d < shape.rank; d++) {
		int64_t above = shape.dims[d];
		for (int32_t i = 0; i < maps[d].n; i++) {
			sw_ref ref = maps[d].refs[i];
			if (above % (ref.stride * builder->factors[ref.factor].size) != 0)
				return false;
			above = ref.stride;
		}
	}
	return true;
}
#endif

const sw_rule *sw_rule_builder_finish(sw_rule_builder *builder)
{
	sw_rule *rule = builder->rule;

	for (int32_t i = 0; i < rule->n_operands; i++)
		assert(maps_nest(builder, builder->operands[i], sw_rule_operand_shape(builder, i)));
	for (int32_t i = 0; i < rule->n_results; i++)
		assert(maps_nest(builder, builder->results[i], sw_rule_result_shape(builder, i)));
	rule->factors = builder->factors;
	rule->linearities = builder->linearities;
	rule->operands = (const sw_dim_map *const *)builder->operands;
	rule->results = (const sw_dim_map *const *)builder->results;
	return rule;
}
