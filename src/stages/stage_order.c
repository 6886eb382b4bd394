/* The order of the forward ops, in which stages are cut.
 *
 * It is that of the program, unless a model is run several times, as on the two sides of a pair:
 * each parameter would then be read early and late, and be in several stages. The runs go side by
 * side instead: each op stands where the last of the parameters that it follows from is read first.
 */
#include "stages/internal.h"

typedef struct order_finder {
	const sw_stage_finder *f;
	const sw_id *ops;
	int32_t n;
	/* Per value: the gradient of the parameter that it comes from without being flow, as in
	 * gradient_of; 0: none. Of flow: the position behind which it is computed. */
	uint32_t *parameter;
	int32_t *key;
} order_finder;

/* What is no flow comes from the largest parameter among its operands'. */
static void find_parameters(order_finder *o)
{
	const sw_stage_finder *f = o->f;
	for (uint32_t k = 0; k < f->n_inner; k++)
		o->parameter[f->inner + k] = f->gradient_of[k];
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = sw_body_op(f, i);
		int64_t most = -1;
		uint32_t best = 0;
		if (op->opcode == SW_OP_PARAMETER || sw_op_is_flow(f, f->body->ops.data[i]))
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			int64_t bytes = sw_bytes_of(f, op->operands[k]);
			if (o->parameter[op->operands[k]] && bytes > most) {
				best = o->parameter[op->operands[k]];
				most = bytes;
			}
		}
		for (uint32_t r = 0; r < op->n_results; r++)
			o->parameter[op->first_result + r] = best;
	}
}

/* An op's key is the first position at which the last of the parameters that it follows from is
 * read. */
static void find_keys(order_finder *o, int32_t *key_of_op, sw_arena *arena)
{
	const sw_program *p = o->f->program;
	int32_t *first = SW_NEW_N(arena, int32_t, o->f->n_inner + 1); /* 1 + it; 0: not yet */
	for (int32_t i = 0; i < o->n; i++) {
		const sw_op *op = sw_op_at(p, o->ops[i]);
		int32_t key = 0;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			uint32_t parameter = o->parameter[op->operands[k]];
			if (parameter && !first[parameter])
				first[parameter] = i + 1;
			key = SW_MAX(key,
			             parameter ? first[parameter] - 1 : o->key[op->operands[k]]);
		}
		key_of_op[i] = key;
		for (uint32_t r = 0; r < op->n_results; r++)
			o->key[op->first_result + r] = key;
	}
}

/* Sort by keys; of equal ones, in the order of the program. Makers have no larger keys. */
static void sort_by_key(const order_finder *o, const int32_t *key_of_op, sw_id *sorted,
                        sw_arena *arena)
{
	int32_t *at = SW_NEW_N(arena, int32_t, o->n + 1);
	for (int32_t i = 0; i < o->n; i++)
		at[key_of_op[i] + 1]++;
	for (int32_t i = 0; i < o->n; i++)
		at[i + 1] += at[i];
	for (int32_t i = 0; i < o->n; i++)
		sorted[at[key_of_op[i]]++] = o->ops[i];
}

/* Bytes of parameters, each as often as there are positions between its first reader and its last.
 */
static double spans_of(const order_finder *o, const sw_id *ops, sw_arena *arena)
{
	const sw_program *p = o->f->program;
	sw_position_span *spans = SW_NEW_N(arena, sw_position_span, o->f->n_inner + 1);
	double sum = 0;
	for (int32_t i = 0; i < o->n; i++) {
		const sw_op *op = sw_op_at(p, ops[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_position_span *span = &spans[o->parameter[op->operands[k]]];
			if (!span->last)
				span->first = i;
			span->last = i + 1;
		}
	}
	for (uint32_t g = 1; g <= o->f->n_inner; g++)
		if (spans[g].last)
			sum += (double)(spans[g].last - 1 - spans[g].first) *
			       (double)sw_bytes_of(o->f, o->f->inner + g - 1);
	return sum;
}

/* The other order is taken where spans become shorter by so much. */
#define SHORTER 0.5

void sw_stage_order_forward(sw_stage_finder *f, sw_id *ops)
{
	sw_arena arena = {0};
	order_finder o = {.f = f, .ops = ops, .n = f->n_positions};
	size_t n = (size_t)f->n_positions;
	o.parameter = SW_NEW_N(&arena, uint32_t, f->program->values.len + 1);
	o.key = SW_NEW_N(&arena, int32_t, f->program->values.len + 1);
	int32_t *key_of_op = SW_NEW_N(&arena, int32_t, n + 1);
	sw_id *sorted = SW_NEW_N(&arena, sw_id, n + 1);
	find_parameters(&o);
	find_keys(&o, key_of_op, &arena);
	sort_by_key(&o, key_of_op, sorted, &arena);
	f->in_order = !(spans_of(&o, sorted, &arena) < SHORTER * spans_of(&o, ops, &arena));
	for (size_t i = 0; i < n && !f->in_order; i++)
		ops[i] = sorted[i];
	sw_arena_clear(&arena);
}
