/* Roles of inputs and values, and the classes of splits that rules propagate into each other. */
#include "planned/planned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

typedef struct analysis {
	planned p;
	sw_program *program; /* canonical */
	sw_arena arena;
	const sw_rule **rules;
	sw_roles roles;
	sw_classes classes;
	bool *shared; /* per value: sw_shared_positions, or one number everywhere, which may be cut */
} analysis;

static void mark_uniform(analysis *a)
{
	bool *uniform = SW_NEW_N(&a->arena, bool, a->program->values.len + 1);
	for (size_t i = 0; i < a->program->ops.len; i++) {
		const sw_op *op = sw_op_at(a->program, (sw_id)i);
		bool all = op->n_operands > 0 && sw_opcode_is_elementwise((sw_opcode)op->opcode);
		for (uint32_t k = 0; k < op->n_operands; k++)
			all = all && uniform[op->operands[k]];
		uniform[op->first_result] = all || sw_repeats_number(a->program, op);
		a->shared[op->first_result] |= uniform[op->first_result];
	}
}

static void analyse(analysis *a)
{
	sw_error err = {0};
	check(sw_rewrite_canonical(a->p.program, &a->program, &err), &err);
	sw_arena_init(&a->arena);
	a->rules = SW_NEW_N(&a->arena, const sw_rule *, a->program->ops.len);
	for (size_t i = 0; i < a->program->ops.len; i++)
		a->rules[i] = sw_rule_make(a->program, (sw_id)i, &a->arena);
	sw_roles_init(&a->roles, a->program, &a->p.sidecar);
	sw_classes_init(&a->classes, &a->roles, a->rules);
	a->shared = sw_shared_positions(a->program, &a->arena);
	mark_uniform(a);
}

static void clear(analysis *a)
{
	sw_classes_clear(&a->classes);
	sw_roles_clear(&a->roles);
	sw_arena_clear(&a->arena);
	sw_program_free(a->program);
	close_planned(&a->p);
}

/* Return the class of a split of a value (dim, top) or of an op (factor, top); -1 if there is none.
 */
static int32_t class_of(const analysis *a, bool of_op, sw_id id, int32_t where, int64_t top)
{
	const uint32_t *start = of_op ? a->classes.op_start : a->classes.value_start;
	const sw_split *splits = of_op ? a->classes.op_splits : a->classes.value_splits;
	for (uint32_t i = start[id]; i < start[id + 1]; i++)
		if (splits[i].where == where && splits[i].top == top)
			return splits[i].class;
	return -1;
}

static sw_id value_of(const analysis *a, const char *name)
{
	return find_op(a->program, name)->first_result;
}

/* ---- roles ------------------------------------------------------------------------------ */

static void roles_come_from_aliases_and_sidecar(void **state)
{
	analysis a = {0};
	int64_t counts[SW_ROLE_OTHER + 1] = {0};
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &a.p);
	analyse(&a);
	assert_int_equal(a.roles.n_inputs, 89);
	for (uint32_t i = 0; i < a.roles.n_inputs; i++)
		counts[a.roles.input_role[i]]++;
	assert_int_equal(counts[SW_ROLE_PARAMETER], 29);
	assert_int_equal(counts[SW_ROLE_MOMENT], 58);
	assert_int_equal(counts[SW_ROLE_COUNTER], 1);
	assert_int_equal(counts[SW_ROLE_DATA], 1);
	for (size_t i = 0; i < a.program->aliases.len; i++)
		assert_int_equal(a.roles.output_input[a.program->aliases.data[i].output],
		                 a.program->aliases.data[i].input);
	assert_int_equal(a.roles.output_input[88], -1);
	clear(&a);
}

static void parameters_are_recognised_through_converts_and_loops(void **state)
{
	static const char *const fixtures[] = {"mlp-bf16", "gpt-tiny-scan"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		analysis a = {0};
		int with_parameter = 0;
		open_fixture(fixtures[f], "local-2x2.yaml", &a.p);
		analyse(&a);
		for (size_t i = 0; i < a.program->ops.len; i++) {
			const sw_op *op = &a.program->ops.data[i];
			if (op->opcode != SW_OP_DOT || !a.roles.planned[op->computation])
				continue;
			with_parameter += a.roles.from_parameter[op->operands[0]] ||
			                  a.roles.from_parameter[op->operands[1]];
		}
		assert_true(with_parameter >= 5);
		clear(&a);
	}
}

/* Boundaries list the values that regions read. */
static void check_reader(const analysis *a, sw_id id)
{
	const sw_op *op = sw_op_at(a->program, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id by = a->program->values.data[op->operands[k]].op;
		assert_true(a->roles.point[by] < a->roles.point[id]);
		if (!sw_is_region(op))
			assert_true(a->roles.last_use[op->operands[k]] > a->roles.point[id]);
	}
}

/* All values of a boundary have one shape, and the values that are read stay live until then. */
static void check_boundary(const analysis *a, const sw_boundary *boundary)
{
	for (uint32_t k = 0; k < boundary->n_reads; k++) {
		const sw_boundary_read *read = &boundary->reads[k];
		assert_true(a->roles.point[a->program->values.data[read->value].op] <= read->point);
		assert_true(a->roles.last_use[read->value] > read->point);
		for (uint32_t i = 0; i < boundary->n_values; i++)
			assert_true(
				sw_shape_equal(sw_value_shape(a->program, read->value),
			                       sw_value_shape(a->program, boundary->values[i])));
	}
	assert_int_equal(boundary->is_predicate, boundary->n_values == 0);
}

static void loops_multiply_executions_and_number_points(void **state)
{
	analysis a = {0};
	int64_t repeated = 0;
	(void)state;
	open_fixture("lstm-lm-tiny", "local-2x2.yaml", &a.p);
	analyse(&a);
	for (size_t i = 0; i < a.program->ops.len; i++) {
		if (!a.roles.planned[a.program->ops.data[i].computation])
			continue;
		assert_true(a.roles.point[i] >= 0 && a.roles.point[i] < a.roles.n_points);
		repeated += a.roles.trips[i] > 1;
		check_reader(&a, (sw_id)i);
	}
	assert_true(repeated > 50);
	assert_true(a.roles.boundaries.len > 20);
	for (size_t i = 0; i < a.roles.boundaries.len; i++)
		check_boundary(&a, &a.roles.boundaries.data[i]);
	clear(&a);
}

/* Ten iterations of a loop with a conditional: a branch of two products, and one that returns its
 * parameter. */
static const char branches[] =
	"HloModule branches\n"
	"work {\n"
	"  x.1 = f32[8,8] parameter(0)\n"
	"  y.1 = f32[8,8] dot(x.1, x.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  ROOT z.1 = f32[8,8] dot(y.1, x.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"}\n"
	"rest { ROOT x.2 = f32[8,8] parameter(0) }\n"
	"condition {\n"
	"  p.3 = (s32[], f32[8,8]) parameter(0)\n"
	"  i.3 = s32[] get-tuple-element(p.3), index=0\n"
	"  n.3 = s32[] constant(10)\n"
	"  ROOT less.3 = pred[] compare(i.3, n.3), direction=LT\n"
	"}\n"
	"body {\n"
	"  p.4 = (s32[], f32[8,8]) parameter(0)\n"
	"  i.4 = s32[] get-tuple-element(p.4), index=0\n"
	"  x.4 = f32[8,8] get-tuple-element(p.4), index=1\n"
	"  one.4 = s32[] constant(1)\n"
	"  j.4 = s32[] add(i.4, one.4)\n"
	"  odd.4 = s32[] and(i.4, one.4)\n"
	"  y.4 = f32[8,8] conditional(odd.4, x.4, x.4), branch_computations={work, rest}\n"
	"  ROOT t.4 = (s32[], f32[8,8]) tuple(j.4, y.4)\n"
	"}\n"
	"ENTRY e {\n"
	"  x = f32[8,8] parameter(0)\n"
	"  i = s32[] constant(0)\n"
	"  t = (s32[], f32[8,8]) tuple(i, x)\n"
	"  done = (s32[], f32[8,8]) while(t), condition=condition, body=body\n"
	"  ROOT y = f32[8,8] get-tuple-element(done), index=1\n"
	"}\n";

static void branches_are_weighted_by_their_work(void **state)
{
	analysis a = {0};
	(void)state;
	open_text(branches, "local-2x2.yaml", &a.p);
	analyse(&a);
	sw_id z = (sw_id)(find_op(a.program, "z.1") - a.program->ops.data);
	sw_id rest = (sw_id)(find_op(a.program, "x.2") - a.program->ops.data);
	assert_true(a.roles.trips[z] > 9.9 && a.roles.trips[z] < 10);
	assert_true(fabs(a.roles.trips[z] + a.roles.trips[rest] - 10) < 1e-9);
	assert_true(a.roles.point[z] < a.roles.point[rest]);
	for (size_t i = 0; i < a.roles.boundaries.len; i++)
		check_boundary(&a, &a.roles.boundaries.data[i]);
	/* the loop: two leaves and the condition; the conditional: two parameters, a result and the
	 * predicate */
	assert_int_equal(a.roles.boundaries.len, 3 + 4);
	clear(&a);
}

/* One class reaches from the entry's input through the loop, the conditional, the branch and back.
 */
static void classes_reach_through_nested_regions(void **state)
{
	static const char *const names[] = {"x", "x.1", "x.2"};
	analysis a = {0};
	(void)state;
	open_text(branches, "local-2x2.yaml", &a.p);
	analyse(&a);
	int32_t rows = class_of(&a, false, value_of(&a, "z.1"), 0, 8);
	assert_true(rows >= 0);
	for (size_t i = 0; i < SW_COUNT(names); i++)
		assert_int_equal(class_of(&a, false, value_of(&a, names[i]), 0, 8), rows);
	clear(&a);
}

/* ---- classes ---------------------------------------------------------------------------- */

/* No other dimension has size 24, so every dimension of that size must be the batch. */
static void the_batch_is_one_class_through_the_program(void **state)
{
	analysis a = {0};
	char *blocks = write_blocks(2, 24, 10, 16, 2);
	int32_t batch = -1;
	(void)state;
	open_text(blocks, "local-2x2.yaml", &a.p);
	analyse(&a);
	for (size_t v = 0; v < a.program->values.len; v++) {
		sw_shape shape = a.program->values.data[v].shape;
		for (int32_t d = 0; d < shape.rank; d++) {
			if (shape.dims[d] != 24)
				continue;
			int32_t class = class_of(&a, false, (sw_id)v, d, 24);
			assert_true(class >= 0 && (batch < 0 || class == batch));
			batch = class;
		}
	}
	assert_true(a.classes.roles[batch] & SW_CLASS_DATA);
	assert_true(a.classes.roles[batch] & SW_CLASS_HEAVY);
	assert_false(a.classes.roles[batch] & SW_CLASS_STATE);
	for (int32_t c = 0; c < a.classes.n; c++)
		assert_int_equal((a.classes.roles[c] & SW_CLASS_DATA) != 0, c == batch);
	clear(&a);
	free(blocks);
}

static void heads_reach_the_fused_matrix_as_an_inner_split(void **state)
{
	analysis a = {0};
	char *blocks = write_blocks(2, 24, 10, 16, 4);
	(void)state;
	open_text(blocks, "local-2x2.yaml", &a.p);
	analyse(&a);
	int32_t heads = class_of(&a, false, value_of(&a, "scores0"), 1, 4);
	assert_true(heads >= 0);
	assert_int_equal(class_of(&a, false, value_of(&a, "part0.0"), 2, 4), heads);
	assert_int_equal(class_of(&a, false, value_of(&a, "mixed0"), 2, 16), heads);
	assert_int_equal(class_of(&a, false, value_of(&a, "wout0"), 0, 16), heads);
	/* just below 16 in 48: a digit that deals out blocks of a head within q, within k and
	 * within v */
	assert_int_equal(class_of(&a, false, value_of(&a, "qkv0"), 2, 16), heads);
	assert_int_equal(class_of(&a, false, value_of(&a, "wqkv0"), 1, 16), heads);
	assert_int_equal(class_of(&a, false, value_of(&a, "newqkv0"), 1, 16), heads);
	/* the next layer's heads have another class, and so has the matrix by blocks */
	assert_int_not_equal(class_of(&a, false, value_of(&a, "scores1"), 1, 4), heads);
	assert_int_not_equal(class_of(&a, false, value_of(&a, "wqkv0"), 1, 48), heads);
	assert_int_equal(a.classes.roles[heads] & (SW_CLASS_STATE | SW_CLASS_HEAVY | SW_CLASS_DATA),
	                 SW_CLASS_STATE | SW_CLASS_HEAVY);
	clear(&a);
	free(blocks);
}

/* Check the definition of a class by the rules, but for vectors of positions that stand for several
 * dimensions: an op's split and the splits that the rule derives
 * of its operands and results have one class, and each split of a value that a factor covers is one
 * of the op's. */
static void check_op_classes(const analysis *a, sw_id id)
{
	const sw_op *op = sw_op_at(a->program, id);
	const sw_rule *rule = a->rules[id];
	int32_t where;
	int64_t top;
	for (uint32_t s = a->classes.op_start[id]; s < a->classes.op_start[id + 1]; s++) {
		const sw_split *split = &a->classes.op_splits[s];
		for (int32_t i = 0; i < rule->n_operands; i++)
			if (!a->shared[op->operands[i]] &&
			    sw_rule_dim_of(rule, false, i, split->where, split->top, &where, &top))
				assert_int_equal(class_of(a, false, op->operands[i], where, top),
				                 split->class);
		for (int32_t i = 0; i < rule->n_results; i++)
			if (!a->shared[op->first_result + (sw_id)i] &&
			    sw_rule_dim_of(rule, true, i, split->where, split->top, &where, &top))
				assert_int_equal(
					class_of(a, false, op->first_result + (sw_id)i, where, top),
					split->class);
	}
	for (int32_t i = 0; i < rule->n_operands; i++) {
		sw_id v = op->operands[i];
		for (uint32_t s = a->classes.value_start[v];
		     s < a->classes.value_start[v + 1] && !a->shared[v];
		     s++) {
			const sw_split *split = &a->classes.value_splits[s];
			if (sw_rule_factor_at(rule, false, i, split->where, split->top, &where,
			                      &top))
				assert_int_equal(class_of(a, true, id, where, top), split->class);
		}
	}
}

static void check_same(const analysis *a, sw_id x, sw_id y)
{
	for (uint32_t s = a->classes.value_start[x]; s < a->classes.value_start[x + 1]; s++) {
		const sw_split *split = &a->classes.value_splits[s];
		assert_int_equal(class_of(a, false, y, split->where, split->top), split->class);
	}
}

static void rules_aliases_and_loops_keep_classes(void **state)
{
	static const char *const fixtures[] = {"gpt-tiny", "gpt-tiny-scan", "bert-tiny"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		analysis a = {0};
		open_fixture(fixtures[f], "local-2x2.yaml", &a.p);
		analyse(&a);
		for (sw_id id = 0; id < a.program->ops.len; id++)
			if (a.roles.planned[sw_op_at(a.program, id)->computation])
				check_op_classes(&a, id);
		for (size_t i = 0; i < a.program->aliases.len; i++) {
			sw_alias alias = a.program->aliases.data[i];
			check_same(&a, a.roles.inputs[alias.input],
			           sw_entry(a.program)->results.data[alias.output]);
			check_same(&a, sw_entry(a.program)->results.data[alias.output],
			           a.roles.inputs[alias.input]);
		}
		for (size_t i = 0; i < a.roles.boundaries.len; i++) {
			const sw_boundary *boundary = &a.roles.boundaries.data[i];
			for (uint32_t k = 0; k < boundary->n_values; k++)
				for (uint32_t r = 0; r < boundary->n_reads; r++) {
					check_same(&a, boundary->values[k],
					           boundary->reads[r].value);
					check_same(&a, boundary->reads[r].value,
					           boundary->values[k]);
				}
		}
		clear(&a);
	}
}

/* Every dot of gpt-tiny has a batch: its own, or the one that a weight's gradient sums over. */
static void every_dot_has_the_batch(void **state)
{
	static const char *const fixtures[] = {"gpt-tiny", "gpt-tiny-scan", "bert-tiny", "t5-tiny"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		analysis a = {0};
		open_fixture(fixtures[f], "local-2x2.yaml", &a.p);
		analyse(&a);
		for (size_t i = 0; i < a.program->ops.len; i++) {
			const sw_op *op = &a.program->ops.data[i];
			bool has = op->opcode != SW_OP_DOT || !a.roles.planned[op->computation];
			for (uint32_t s = a.classes.op_start[i]; s < a.classes.op_start[i + 1]; s++)
				has = has ||
				      a.classes.roles[a.classes.op_splits[s].class] & SW_CLASS_DATA;
			if (!has)
				fail_msg("%s: '%s' has no batch", fixtures[f], op->name);
		}
		clear(&a);
	}
}

/* The positions 0 .. 7 of samples and of heads are one vector, which makes no class of the two. */
static void shared_positions_join_no_dimensions(void **state)
{
	static const char text[] = "HloModule m\n"
				   "ENTRY e {\n"
				   "  x = f32[8,8,16] parameter(0)\n"
				   "  i = f32[8] iota(), iota_dimension=0\n"
				   "  r = f32[8,8,16] broadcast(i), dimensions={0}\n"
				   "  c = f32[8,8,16] broadcast(i), dimensions={1}\n"
				   "  p = f32[8,8,16] add(r, c)\n"
				   "  ROOT y = f32[8,8,16] add(x, p)\n"
				   "}\n";
	analysis a = {0};
	(void)state;
	open_text(text, "local-2x2.yaml", &a.p);
	analyse(&a);
	sw_id y = value_of(&a, "y");
	assert_int_not_equal(class_of(&a, false, y, 0, 8), class_of(&a, false, y, 1, 8));
	clear(&a);
}

/* The zeros with which eight samples are compared are those of a parameter with eight rows. The batch is
 * a class of its own all the same, and classes pass through zeros that confuse nothing. */
static void zeros_do_not_make_rows_of_a_parameter_the_batch(void **state)
{
	static const char text[] =
		"HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }\n"
		"add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
		" ROOT c = f32[] add(a, b) }\n"
		"ENTRY e {\n"
		"  x = f32[8,4] parameter(0)\n"
		"  w = f32[8,4] parameter(1)\n"
		"  zero = f32[] constant(0)\n"
		"  zeros = f32[8,4] broadcast(zero), dimensions={}\n"
		"  up = f32[8,4] maximum(x, zeros)\n"
		"  down = f32[8,4] maximum(w, zeros)\n"
		"  one = f32[] constant(1)\n"
		"  ones = f32[8,4] broadcast(one), dimensions={}\n"
		"  more = f32[8,4] add(up, ones)\n"
		"  q = f32[4] reduce(more, zero), dimensions={0}, to_apply=add\n"
		"%s"
		"  next = f32[8,4] subtract(down, g)\n"
		"  ROOT out = (f32[8,4]) tuple(next)\n"
		"}\n";
	static const char *const sums[] = {
		"  g = f32[8,4] broadcast(q), dimensions={1}\n",
		/* taken apart into the devices' terms */
		"  s = f32[4,4] terms(q)\n"
		"  r = f32[4,8,4] broadcast(s), dimensions={0,2}\n"
		"  g = f32[8,4] reduce(r, zero), dimensions={0}, to_apply=add\n"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(sums); i++) {
		analysis a = {0};
		char whole[sizeof(text) + 256];
		snprintf(whole, sizeof(whole), text, sums[i]);
		open_text(whole, "local-2x2.yaml", &a.p);
		analyse(&a);
		int32_t batch = class_of(&a, false, value_of(&a, "up"), 0, 8),
			rows = class_of(&a, false, value_of(&a, "w"), 0, 8);
		assert_true(batch >= 0 && rows >= 0 && batch != rows);
		assert_int_equal(class_of(&a, false, value_of(&a, "x"), 0, 8), batch);
		assert_int_equal(class_of(&a, false, value_of(&a, "down"), 0, 8), rows);
		assert_int_equal(class_of(&a, false, value_of(&a, "ones"), 0, 8), batch);
		clear(&a);
	}
}

/* Two square weights, of which one takes what the other gives, are both multiplied by the same
 * constant. The dimensions of one are not those of the other all the same. */
static void weights_of_one_shape_stay_apart_beside_a_constant(void **state)
{
	static const char text[] =
		"HloModule m, input_output_alias={ {0}: (1, {}, may-alias), {1}: (2, {}, may-alias) }\n"
		"ENTRY e {\n"
		"  x = f32[8,16] parameter(0)\n"
		"  w = f32[16,16] parameter(1)\n"
		"  v = f32[16,16] parameter(2)\n"
		"  half = f32[] constant(0.5)\n"
		"  halves = f32[16,16] broadcast(half), dimensions={}\n"
		"  y = f32[8,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  z = f32[8,16] dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  w2 = f32[16,16] multiply(w, halves)\n"
		"  v2 = f32[16,16] multiply(v, halves)\n"
		"  ROOT out = (f32[16,16], f32[16,16], f32[8,16]) tuple(w2, v2, z)\n"
		"}\n";
	analysis a = {0};
	(void)state;
	open_text(text, "local-2x2.yaml", &a.p);
	analyse(&a);
	int32_t in = class_of(&a, false, value_of(&a, "w"), 0, 16),
		between = class_of(&a, false, value_of(&a, "w"), 1, 16),
		out = class_of(&a, false, value_of(&a, "v"), 1, 16);
	assert_int_equal(class_of(&a, false, value_of(&a, "v"), 0, 16), between);
	assert_true(in >= 0 && between >= 0 && out >= 0);
	assert_true(in != between && between != out && in != out);
	clear(&a);
}

/* ---- options ---------------------------------------------------------------------------- */

static bool same_option(const sw_option *x, const sw_option *y)
{
	return x->kind == y->kind && x->monoid == y->monoid && x->index == y->index &&
	       x->top == y->top;
}

static void check_options(const sw_analysis *of, const sw_mesh *mesh, sw_decision_kind kind,
                          uint32_t index)
{
	sw_decision_options o = sw_options_of(of, mesh, kind, index);
	for (int32_t axis = 0; axis < mesh->n_axes; axis++)
		for (int32_t i = 0; i < o.n[axis]; i++)
			for (int32_t k = 0; k < i; k++)
				assert_false(same_option(&o.list[axis][i], &o.list[axis][k]));
}

/* Two inner axes of one size leave an outer axis the same digit, which is one option. */
static void options_beside_equal_axes_are_different(void **state)
{
	planned p;
	sw_analysis of;
	sw_meshes meshes = {0};
	sw_error err = {0};
	(void)state;
	open_fixture("gpt-tiny", "local-2x4.yaml", &p);
	make_plan(&p, "axonn:2,2,2,1");
	sw_analysis_init(&of, p.plan, &p.sidecar, (sw_analysis_options){.no_overlap = true});
	check(sw_meshes_of(&p.cluster, &p.plan->strategy, &sw_model_default_limits, &of.roles,
	                   1, &meshes, &err),
	      &err);
	assert_true(meshes.len > 0 && meshes.data[0].n_axes == 3);
	for (sw_id op = 0; op < p.plan->program->ops.len; op++)
		if (of.roles.planned[sw_op_at(p.plan->program, op)->computation])
			check_options(&of, &meshes.data[0], SW_DECISION_OP, op);
	for (uint32_t i = 0; i < of.roles.n_inputs; i++)
		check_options(&of, &meshes.data[0], SW_DECISION_INPUT, i);
	sw_vec_clear(&meshes);
	sw_analysis_clear(&of);
	close_planned(&p);
}

/* A step may pick the rows of its batch out of tables, and make several updates in a loop: weights
 * that the loop trains are parameters, and the batch is the rows of what meets them. */
static void the_batch_is_found_where_the_step_draws_it(void **state)
{
	static const char *const hlo =
		"HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
		"%body (p: (s32[], f32[6,4], f32[64,6])) -> (s32[], f32[6,4], f32[64,6]) {\n"
		"  %p = (s32[], f32[6,4], f32[64,6]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%p), index=0\n"
		"  %w = f32[6,4] get-tuple-element(%p), index=1\n"
		"  %t = f32[64,6] get-tuple-element(%p), index=2\n"
		"  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n"
		"  %n = s32[16] iota(), iota_dimension=0\n"
		"  %b = s32[16] broadcast(%i), dimensions={}\n"
		"  %k = s32[16] multiply(%n, %b)\n"
		"  %x = f32[16,6] gather(%t, %k), offset_dims={1}, collapsed_slice_dims={0}, "
		"start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}\n"
		"  %y = f32[16,4] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  %g = f32[6,4] dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
		"  %v = f32[6,4] subtract(%w, %g)\n"
		"  ROOT %r = (s32[], f32[6,4], f32[64,6]) tuple(%j, %v, %t)\n}\n"
		"%test (q: (s32[], f32[6,4], f32[64,6])) -> pred[] {\n"
		"  %q = (s32[], f32[6,4], f32[64,6]) parameter(0)\n"
		"  %i = s32[] get-tuple-element(%q), index=0\n  %three = s32[] constant(3)\n"
		"  ROOT %c = pred[] compare(%i, %three), direction=LT\n}\n"
		"ENTRY %e (w: f32[6,4], t: f32[64,6]) -> (f32[6,4]) {\n"
		"  %w = f32[6,4] parameter(0)\n  %t = f32[64,6] parameter(1)\n"
		"  %z = s32[] constant(0)\n"
		"  %l = (s32[], f32[6,4], f32[64,6]) tuple(%z, %w, %t)\n"
		"  %m = (s32[], f32[6,4], f32[64,6]) while(%l), condition=%test, body=%body\n"
		"  %u = f32[6,4] get-tuple-element(%m), index=1\n"
		"  ROOT %o = (f32[6,4]) tuple(%u)\n}\n";
	analysis a = {0};
	(void)state;
	open_text(hlo, "local-2x2.yaml", &a.p);
	analyse(&a);
	assert_true(a.roles.from_parameter[find_op(a.program, "y")->operands[1]]);
	assert_int_equal(a.roles.batch, 16);
	int32_t class = class_of(&a, false, value_of(&a, "x"), 0, 16);
	assert_true(class >= 0 && (a.classes.roles[class] & SW_CLASS_DATA));
	assert_int_equal(class, class_of(&a, false, value_of(&a, "y"), 0, 16));
	clear(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_come_from_aliases_and_sidecar),
		cmocka_unit_test(parameters_are_recognised_through_converts_and_loops),
		cmocka_unit_test(loops_multiply_executions_and_number_points),
		cmocka_unit_test(branches_are_weighted_by_their_work),
		cmocka_unit_test(classes_reach_through_nested_regions),
		cmocka_unit_test(the_batch_is_one_class_through_the_program),
		cmocka_unit_test(heads_reach_the_fused_matrix_as_an_inner_split),
		cmocka_unit_test(rules_aliases_and_loops_keep_classes),
		cmocka_unit_test(every_dot_has_the_batch),
		cmocka_unit_test(shared_positions_join_no_dimensions),
		cmocka_unit_test(zeros_do_not_make_rows_of_a_parameter_the_batch),
		cmocka_unit_test(weights_of_one_shape_stay_apart_beside_a_constant),
		cmocka_unit_test(options_beside_equal_axes_are_different),
		cmocka_unit_test(the_batch_is_found_where_the_step_draws_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
