/*
 * Padding makes sizes equal, and so does a loop over microbatches. Broadcasts of one value to 5 and
 * to 7 rows are then one broadcast to 8, and so are all ops whose operands have become the same.
 *
 * Two different ops may become equal only if they have the same opcode, type and rank, operands
 * that are equal or twins one by one, and the same called computations; if their results may get
 * the same sizes; and if they differ in nothing else, which means that their sizes differ now or
 * one of their operands is a twin, as sizes in the attributes may follow from its own. Starts of
 * slices, dimensions and directions are never rewritten: three slices of one value at different
 * places remain three.
 */
#include "bound/twins.h"

#include "base/sets.h"

typedef struct twins {
	const sw_program *program;
	const bool *looped; /* per op */
	sw_id *class;       /* per op: an op of its class with a smaller or the same number */
	uint32_t *number;   /* per op that is the first of its class: ops in it */
	sw_id *before; /* per op: the op of its kind before it in this round; SW_ABSENT: none */
	sw_map kinds;  /* what twins share -> the last such op */
	sw_text key;
	bool changed;
} twins;

static sw_id class_of(twins *t, sw_id id)
{
	return sw_sets_root(t->class, id);
}

static void join(twins *t, sw_id a, sw_id b)
{
	if (class_of(t, a) == class_of(t, b))
		return;
	sw_id other = sw_sets_join(t->class, a, b);
	t->number[class_of(t, a)] += t->number[other];
	t->changed = true;
}

/* ---- sizes ------------------------------------------------------------------------------ */

/* Padding at most doubles a size (sw_pad_rule). A loop divides one dimension of each op in its body
 * by the number of microbatches: the same one of both, or one here and another there. */
#define MAX_PADDING 2

static bool may_be_padded_alike(double ratio, double doubt)
{
	return ratio <= doubt && ratio * doubt >= 1;
}

static bool may_get_one_size(sw_shape a, sw_shape b, bool looped)
{
	double apart = 1; /* the product of the ratios that padding can't explain */
	int32_t n = 0;
	for (int32_t i = 0; i < a.rank; i++) {
		double ratio = (double)SW_MAX(a.dims[i], 1) / (double)SW_MAX(b.dims[i], 1);
		if (may_be_padded_alike(ratio, MAX_PADDING))
			continue;
		apart *= ratio;
		n++;
	}
	return n == 0 ||
	       (looped && n == 2 && may_be_padded_alike(apart, MAX_PADDING * MAX_PADDING));
}

/* ---- kinds ------------------------------------------------------------------------------ */

/* The canonical form never merges these. */
static bool is_unique(const sw_op *op)
{
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	return op->opcode == SW_OP_PARAMETER || class == SW_CLASS_RANDOM ||
	       class == SW_CLASS_OTHER || class == SW_CLASS_REGION || op->n_results != 1;
}

/* Set the key to all that twins share. */
static void key_of_kind(twins *t, const sw_op *op)
{
	sw_shape shape = sw_value_shape(t->program, op->first_result);
	const int32_t numbers[] = {op->computation, op->opcode, (int32_t)shape.type, shape.rank,
	                           (int32_t)op->n_operands};
	t->key.len = 0;
	sw_text_add_n(&t->key, (const char *)numbers, sizeof(numbers));
	for (uint32_t k = 0; k < op->n_operands; k++) {
		const sw_value *value = &t->program->values.data[op->operands[k]];
		const uint32_t operand[] = {class_of(t, value->op), (uint32_t)value->index};
		sw_text_add_n(&t->key, (const char *)operand, sizeof(operand));
	}
	for (uint32_t k = 0; k < op->n_called; k++)
		sw_text_add_n(&t->key, (const char *)&op->called[k], sizeof(op->called[k]));
}

static bool has_twin_operand(twins *t, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (t->number[class_of(t, t->program->values.data[op->operands[k]].op)] > 1)
			return true;
	return false;
}

static void visit(twins *t, sw_id id)
{
	const sw_op *op = sw_op_at(t->program, id);
	if (is_unique(op))
		return;
	sw_shape shape = sw_value_shape(t->program, op->first_result);
	bool twin_operand = has_twin_operand(t, op);
	key_of_kind(t, op);
	t->before[id] = sw_map_put(&t->kinds, t->key.data, t->key.len, id);
	for (sw_id other = t->before[id]; other != SW_ABSENT; other = t->before[other]) {
		sw_shape its =
			sw_value_shape(t->program, sw_op_at(t->program, other)->first_result);
		if ((twin_operand || !sw_shape_equal(shape, its)) &&
		    may_get_one_size(shape, its, t->looped[id] && t->looped[other]))
			join(t, other, id);
	}
}

/* Classes only grow, so there are at most as many rounds as ops. */
static void one_round(twins *t)
{
	t->changed = false;
	sw_map_clear(&t->kinds);
	for (size_t c = 0; c < t->program->computations.len; c++) {
		const sw_computation *computation = &t->program->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++)
			visit(t, computation->ops.data[i]);
	}
}

const sw_id *sw_bound_twins(const sw_program *program, const bool *looped, sw_arena *arena)
{
	size_t n = program->ops.len + 1;
	twins t = {.program = program,
	           .looped = looped,
	           .class = SW_NEW_N(arena, sw_id, n),
	           .number = SW_NEW_N(arena, uint32_t, n),
	           .before = SW_NEW_N(arena, sw_id, n),
	           .changed = true};
	sw_sets_init(t.class, n);
	for (sw_id id = 0; id < program->ops.len; id++)
		t.number[id] = 1;
	while (t.changed)
		one_round(&t);
	for (sw_id id = 0; id < program->ops.len; id++)
		t.class[id] = class_of(&t, id);
	sw_map_clear(&t.kinds);
	sw_text_clear(&t.key);
	return t.class;
}
