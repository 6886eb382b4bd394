/*
 * The tree becomes a program. A computation stands behind those that it calls, so the functions that
 * a region calls and the regions of its ops are written first, and then the region itself.
 */
#include "frontend/mlir.h"

#include <stdlib.h>
#include <string.h>

static bool is_terminator(const sw_mlir_op *op)
{
	static const char *const names[] = {"return", "func.return", "stablehlo.return",
	                                    "mhlo.return"};
	for (size_t i = 0; i < SW_COUNT(names); i++)
		if (sw_span_is(op->name, names[i]))
			return true;
	return false;
}

/* ---- parameters ------------------------------------------------------------------------- */

/* Build one parameter of n values, and give their ids. */
static sw_status build_parameter(sw_mlir *m, int32_t c, const uint32_t *values, uint32_t n,
                                 bool tuple, const sw_extra *extras)
{
	sw_attrs attrs = {
		.parameter = {.number = (int64_t)m->program->computations.data[c].parameters.len}};
	sw_shape *shapes = SW_NEW_N(&m->scratch, sw_shape, n + 1);
	sw_error trouble = {0};
	sw_id first;
	for (uint32_t i = 0; i < n; i++)
		shapes[i] = m->values.data[values[i]].shape;
	const char *place = n ? m->values.data[values[0]].place : m->lexer.begin;
	sw_span name = n && !tuple ? m->values.data[values[0]].name : (sw_span){"", 0};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = n,
	                   .tuple = tuple,
	                   .extras = extras};
	if (name.length)
		spec.name = sw_arena_text_n(&m->scratch, name.start, name.length);
	if (sw_build_op(m->program, c, &spec, &first, &trouble) != SW_OK)
		return sw_lex_fail(&m->lexer, place, "%s", trouble.message);
	for (uint32_t i = 0; i < n; i++)
		m->ids[values[i]] = first + i;
	return SW_OK;
}

/* Write a captured constant again, as computations of reductions and the like take nothing from
 * outside. */
static sw_status repeat_constant(sw_mlir *m, int32_t c, uint32_t value)
{
	const sw_mlir_value *v = &m->values.data[value];
	const sw_mlir_op *op = v->op == UINT32_MAX ? NULL : &m->ops.data[v->op];
	if (!op || !sw_span_is(op->name, "stablehlo.constant"))
		return sw_lex_fail(&m->lexer, v->place,
		                   "this value is used inside of a reducer, comparator or update, "
		                   "which can take only constants from outside");
	return sw_mlir_emit_op(m, c, op);
}

static sw_status build_parameters(sw_mlir *m, int32_t c, const sw_mlir_region *r, bool tuple)
{
	uint32_t n_arguments = (uint32_t)r->arguments.len, n = (uint32_t)r->captures.len;
	if (tuple) {
		uint32_t *all = SW_NEW_N(&m->scratch, uint32_t, n_arguments + n + 1);
		for (uint32_t i = 0; i < n_arguments + n; i++)
			all[i] = i < n_arguments ? r->arguments.data[i]
			                         : r->captures.data[i - n_arguments];
		return build_parameter(m, c, all, n_arguments + n, true, NULL);
	}
	bool entry = m->entry && r == &m->regions.data[m->entry->region];
	for (uint32_t i = 0; i < n_arguments; i++) {
		const sw_extra *extras = NULL;
		if (entry && i < m->entry->argument_attributes.len)
			extras = sw_mlir_sharding_of(m, m->entry->argument_attributes.data[i]);
		SW_TRY(build_parameter(m, c, &r->arguments.data[i], 1, false, extras));
	}
	for (uint32_t i = 0; i < n; i++)
		SW_TRY(repeat_constant(m, c, r->captures.data[i]));
	return SW_OK;
}

/* ---- calls ------------------------------------------------------------------------------ */

static sw_mlir_function *find_function(const sw_mlir *m, sw_span name)
{
	if (name.length && name.start[0] == '@')
		name = (sw_span){name.start + 1, name.length - 1};
	for (size_t i = 0; i < m->functions.len; i++) {
		sw_span other = m->functions.data[i].name;
		if (other.length == name.length &&
		    memcmp(other.start, name.start, name.length) == 0)
			return &m->functions.data[i];
	}
	return NULL;
}

/* Write the computation of a called function, once. */
static sw_status emit_callee(sw_mlir *m, const sw_mlir_op *op, sw_span name)
{
	sw_mlir_function *f = find_function(m, name);
	if (!f)
		return sw_mlir_fail(m, op, "there is no function %.*s",
		                    (int)SW_MIN(name.length, 100), name.start);
	if (f->state == SW_MLIR_PREPARING)
		return sw_mlir_fail(m, op, "the function %.*s calls itself",
		                    (int)SW_MIN(name.length, 100), name.start);
	if (f->state == SW_MLIR_PREPARED)
		return SW_OK;
	f->state = SW_MLIR_PREPARING;
	SW_TRY(sw_mlir_emit_region(m, f->region, false, false));
	f->state = SW_MLIR_PREPARED;
	return SW_OK;
}

sw_status sw_mlir_emit_call(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	const sw_mlir_function *f = find_function(m, sw_mlir_callee_of(m, op));
	if (!f) /* one with a name was found by emit_callee */
		return sw_mlir_fail(m, op, "the call says no function: expected callee = @NAME");
	const sw_mlir_region *r = &m->regions.data[f->region];
	const sw_computation *callee = &m->program->computations.data[r->computation];
	SW_TRY(sw_mlir_check_counts(m, op, (uint32_t)r->arguments.len,
	                            (uint32_t)callee->results.len));
	for (uint32_t i = 0; i < op->operands.n; i++)
		if (!sw_shape_equal(sw_mlir_operand_shape(m, op, i),
		                    m->values.data[r->arguments.data[i]].shape))
			return sw_mlir_fail(m, op, "argument %u has another type", i);
	for (uint32_t i = 0; i < op->results.n; i++)
		if (!sw_shape_equal(sw_value_shape(m->program, callee->results.data[i]),
		                    sw_mlir_result_shape(m, op, i)))
			return sw_mlir_fail(m, op, "result %u has another type", i);
	sw_op_spec spec = {.opcode = SW_OP_CALL,
	                   .called = &r->computation,
	                   .n_called = 1,
	                   .tuple = callee->root_tuple};
	return sw_mlir_build(m, computation, op, &spec);
}

/* ---- regions ---------------------------------------------------------------------------- */

static sw_status emit_callees(sw_mlir *m, uint32_t region)
{
	if (m->depth++ == SW_MLIR_MAX_NESTING)
		return sw_lex_fail(&m->lexer, m->lexer.begin,
		                   "regions and calls nest deeper than %d", SW_MLIR_MAX_NESTING);
	for (size_t i = 0; i < m->regions.data[region].ops.len; i++) {
		const sw_mlir_op *op = &m->ops.data[m->regions.data[region].ops.data[i]];
		sw_span callee = sw_mlir_callee_of(m, op);
		SW_TRY(sw_mlir_emit_regions(m, op));
		if (callee.length)
			SW_TRY(emit_callee(m, op, callee));
	}
	m->depth--;
	return SW_OK;
}

static sw_status terminator_of(sw_mlir *m, const sw_mlir_region *r, const sw_mlir_op **last)
{
	*last = r->ops.len ? &m->ops.data[r->ops.data[r->ops.len - 1]] : NULL;
	if (*last && is_terminator(*last))
		return SW_OK;
	return sw_lex_fail(&m->lexer, *last ? (*last)->place : m->lexer.begin,
	                   "this region does not end with a return");
}

static sw_status build_results(sw_mlir *m, int32_t c, const sw_mlir_region *r, bool carry)
{
	const sw_mlir_op *last;
	SW_TRY(terminator_of(m, r, &last));
	uint32_t n = last->operands.n, more = carry ? (uint32_t)r->captures.len : 0;
	sw_id *ids = SW_NEW_N(&m->scratch, sw_id, n + more + 1);
	bool entry = m->entry && r == &m->regions.data[m->entry->region];
	for (uint32_t i = 0; i < n; i++) {
		ids[i] = sw_mlir_operand(m, last, i);
		if (entry)
			SW_TRY(sw_mlir_constrain_result(m, c, m->entry, i, &ids[i]));
	}
	for (uint32_t i = 0; i < more; i++)
		ids[n + i] = m->ids[r->captures.data[i]];
	sw_build_results(m->program, c, ids, n + more, carry || n + more != 1);
	return SW_OK;
}

static sw_status emit_ops(sw_mlir *m, int32_t c, const sw_mlir_region *r)
{
	for (size_t i = 0; i < r->ops.len; i++) {
		const sw_mlir_op *op = &m->ops.data[r->ops.data[i]];
		if (m->program->ops.len > SW_MLIR_MAX_OPS)
			return sw_mlir_fail(m, op,
			                    "the program has more than %d ops",
			                    SW_MLIR_MAX_OPS);
		if (is_terminator(op) && i + 1 < r->ops.len)
			return sw_mlir_fail(m, op, "ops behind a return");
		if (!is_terminator(op))
			SW_TRY(sw_mlir_emit_op(m, c, op));
	}
	return SW_OK;
}

sw_status sw_mlir_emit_region(sw_mlir *m, uint32_t region, bool tuple, bool carry)
{
	char name[32];
	sw_mlir_region *r = &m->regions.data[region];
	SW_TRY(emit_callees(m, region));
	snprintf(name, sizeof(name), "region_%u", region);
	r->computation = sw_build_computation(m->program, name);
	SW_TRY(build_parameters(m, r->computation, r, tuple));
	SW_TRY(emit_ops(m, r->computation, r));
	return build_results(m, r->computation, r, carry);
}

/* ---- the entry ------------------------------------------------------------------------- */

static sw_status read_aliases(sw_mlir *m, const sw_mlir_function *f)
{
	size_t n = sw_entry(m->program)->results.len;
	for (uint32_t i = 0; i < f->argument_attributes.len; i++) {
		sw_span attributes = f->argument_attributes.data[i];
		sw_span output = sw_mlir_field_of(m, attributes, "tf.aliasing_output");
		sw_span donor = sw_mlir_field_of(m, attributes, "jax.buffer_donor");
		int64_t number;
		if (sw_mlir_flag_of(donor))
			sw_vec_push(&m->program->donors, i);
		if (!output.length)
			continue;
		SW_TRY(sw_mlir_int_of(m, output, -1, &number));
		if (number < 0 || number >= (int64_t)n)
			return sw_lex_fail(&m->lexer, output.start, "there is no result %lld",
			                   (long long)number);
		sw_vec_push(&m->program->aliases,
		            ((sw_alias){.output = (uint32_t)number, .input = i}));
	}
	return SW_OK;
}

sw_status sw_mlir_emit(sw_mlir *m)
{
	sw_mlir_function *f = find_function(m, (sw_span){"main", 4});
	if (!f && m->functions.len)
		f = &m->functions.data[0];
	if (!f)
		return sw_lex_fail(&m->lexer, m->lexer.begin, "the module has no function");
	m->ids = sw_alloc((m->values.len + 1) * sizeof(*m->ids));
	m->depth = 0;
	f->state = SW_MLIR_PREPARING;
	m->entry = f;
	SW_TRY(sw_mlir_emit_region(m, f->region, false, false));
	m->program->entry = m->regions.data[f->region].computation;
	return read_aliases(m, f);
}
