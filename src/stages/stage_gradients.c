/* Which sums over microbatches are gradients, which parameters they are of, and what they need. */
#include <string.h>

#include "stages/internal.h"

/* ---- parameters and their gradients ------------------------------------------------------ */

/* Per value of the entry: the largest sum of flow that it is computed from, and the largest state;
 * 1 + the number of the loop's element, and of the input. 0: none. */
typedef struct largest_sources {
	uint32_t *sum, *state;
} largest_sources;

static void take_larger(const sw_stage_finder *f, const sw_op *op, const uint32_t *of, uint32_t *to)
{
	int64_t most = -1;
	uint32_t best = 0;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		int64_t bytes = sw_bytes_of(f, op->operands[k]);
		if (of[op->operands[k]] && bytes > most) {
			best = of[op->operands[k]];
			most = bytes;
		}
	}
	for (uint32_t r = 0; r < op->n_results; r++)
		to[op->first_result + r] = best;
}

static largest_sources find_largest(sw_stage_finder *f)
{
	const sw_program *program = f->program;
	largest_sources s = {SW_NEW_N(&f->arena, uint32_t, program->values.len),
	                     SW_NEW_N(&f->arena, uint32_t, program->values.len)};
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, &f->arena, &inputs);
	for (uint32_t k = 0; k < n; k++)
		s.state[inputs[k]] = f->state_value[inputs[k]] ? k + 1 : 0;
	for (uint32_t k = 0; k < f->n_inner; k++)
		if (!sw_element_is_import(f, k) &&
		    sw_op_is_flow(f, sw_maker_of(program, f->body->results.data[k])))
			s.sum[f->loop->first_result + k] = k + 1;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		const sw_op *op = sw_op_at(program, f->entry->ops.data[i]);
		if (op == f->loop || op->opcode == SW_OP_PARAMETER)
			continue;
		take_larger(f, op, s.sum, s.sum);
		take_larger(f, op, s.state, s.state);
	}
	return s;
}

/* The sum of the gradient of an element's parameter: 1 + its element; 0: it has none. */
static uint32_t gradient_of(const sw_stage_finder *f, const largest_sources *s, uint32_t k)
{
	const sw_program *program = f->program;
	uint32_t input = s->state[f->loop->operands[k]];
	int64_t output = input ? sw_output_of_input(program, input - 1) : -1;
	return output < 0 ? 0 : s->sum[f->entry->results.data[output]];
}

static void link_parameters(sw_stage_finder *f)
{
	largest_sources sources = find_largest(f);
	f->gradient_of = SW_NEW_N(&f->arena, uint32_t, f->n_inner);
	for (uint32_t k = 0; k < f->n_inner; k++)
		if (sw_element_is_import(f, k) && f->state_value[f->inner + k])
			f->gradient_of[k] = gradient_of(f, &sources, k);
}

/* ---- what an export needs ---------------------------------------------------------------- */

/* Results of the entry that are new state can be reached from these values. */
static bool *reaches_state(sw_stage_finder *f)
{
	bool *reaches = SW_NEW_N(&f->arena, bool, f->program->values.len);
	for (size_t i = 0; i < f->program->aliases.len; i++)
		reaches[f->entry->results.data[f->program->aliases.data[i].output]] = true;
	for (size_t i = f->entry->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(f->program, f->entry->ops.data[i]);
		bool any = false;
		for (uint32_t r = 0; r < op->n_results && op != f->loop; r++)
			any |= reaches[op->first_result + r];
		for (uint32_t k = 0; k < op->n_operands && any; k++)
			reaches[op->operands[k]] = true;
	}
	return reaches;
}

/* The flow ops that each of up to 64 exports needs; ancestors[op] has a bit for each. */
static void mark_ancestors(const sw_stage_finder *f, const uint32_t *exports, int32_t n,
                           uint64_t *ancestors)
{
	for (size_t i = 0; i < f->body->ops.len; i++)
		ancestors[f->body->ops.data[i]] = 0;
	for (int32_t e = 0; e < n; e++)
		ancestors[sw_maker_of(f->program, f->body->results.data[exports[e]])] |= UINT64_C(1)
		                                                                         << e;
	for (size_t i = f->body->ops.len; i-- > 0;) {
		const sw_op *op = sw_body_op(f, i);
		uint64_t of_this = ancestors[f->body->ops.data[i]];
		for (uint32_t k = 0; k < op->n_operands && of_this; k++)
			ancestors[sw_maker_of(f->program, op->operands[k])] |= of_this;
	}
}

/* Call visit for 64 exports after the other. */
typedef void ancestor_fn(sw_stage_finder *f, const uint32_t *exports, int32_t n,
                         const uint64_t *ancestors, void *context);
static void for_ancestors(sw_stage_finder *f, const uint32_t *exports, size_t n, ancestor_fn *visit,
                          void *context)
{
	uint64_t *ancestors = SW_NEW_N(&f->arena, uint64_t, f->program->ops.len);
	for (size_t at = 0; at < n; at += 64) {
		int32_t some = (int32_t)SW_MIN(n - at, (size_t)64);
		mark_ancestors(f, exports + at, some, ancestors);
		visit(f, exports + at, some, ancestors, context);
	}
}

/* Per export: how many flow ops it needs, and how many parameters these read. */
typedef struct ancestor_counts {
	int32_t *ops, *parameters;
	/* [elements of the loop]: scratch; of the sum of a gradient a bit for each export that reads
	 * its parameter */
	uint64_t *readers;
} ancestor_counts;

/* A parameter may enter the loop in several forms, such as converted, and transposed for the
 * backward pass; it is counted once, by its gradient. */
static void count_parameters(const sw_stage_finder *f, const uint32_t *exports,
                             const uint64_t *ancestors, const ancestor_counts *counts)
{
	memset(counts->readers, 0, sizeof(uint64_t) * f->n_inner);
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = sw_body_op(f, i);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			bool element = sw_value_is_element(f, op->operands[k]);
			uint32_t gradient =
				element ? f->gradient_of[op->operands[k] - f->inner] : 0;
			if (gradient)
				counts->readers[gradient - 1] |= ancestors[f->body->ops.data[i]];
		}
	}
	for (uint32_t k = 0; k < f->n_inner; k++)
		for (uint64_t left = counts->readers[k]; left; left &= left - 1)
			counts->parameters[exports[__builtin_ctzll(left)]]++;
}

static void count_ancestors(sw_stage_finder *f, const uint32_t *exports, int32_t n,
                            const uint64_t *ancestors, void *context)
{
	const ancestor_counts *counts = context;
	for (size_t i = 0; i < f->body->ops.len; i++) {
		sw_id id = f->body->ops.data[i];
		if (!sw_op_is_flow(f, id))
			continue;
		for (uint64_t left = ancestors[id]; left; left &= left - 1)
			counts->ops[exports[__builtin_ctzll(left)]]++;
	}
	count_parameters(f, exports, ancestors, counts);
	(void)n;
}

/* ---- gradients -------------------------------------------------------------------------- */

/* Sums of tensors from which new state follows. */
static size_t find_exports(sw_stage_finder *f, uint32_t *exports)
{
	bool *reaches = reaches_state(f);
	size_t n = 0;
	for (uint32_t k = 0; k < f->n_inner; k++) {
		sw_id value = f->body->results.data[k];
		if (!sw_element_is_import(f, k) && reaches[f->loop->first_result + k] &&
		    sw_op_is_flow(f, sw_maker_of(f->program, value)) &&
		    sw_shape_elements(sw_value_shape(f->program, value)) > 1)
			exports[n++] = k;
	}
	return n;
}

static int32_t most_of(const int32_t *counts, const uint32_t *exports, size_t n)
{
	int32_t most = 0;
	for (size_t i = 0; i < n; i++)
		most = SW_MAX(most, counts[exports[i]]);
	return most;
}

/* Is a gradient of the last layers: of a parameter, and it needs nearly all parameters, because it
 * comes from the loss. It needs few ops beside the forward ones. */
#define NEARLY 0.9

uint32_t *sw_stage_find_gradients(sw_stage_finder *f, size_t *n, size_t *n_long)
{
	uint32_t *exports = SW_NEW_N(&f->arena, uint32_t, f->n_inner),
		 *chosen = SW_NEW_N(&f->arena, uint32_t, f->n_inner);
	bool *of_parameter = SW_NEW_N(&f->arena, bool, f->n_inner);
	ancestor_counts counts = {.ops = SW_NEW_N(&f->arena, int32_t, f->n_inner),
	                          .parameters = SW_NEW_N(&f->arena, int32_t, f->n_inner),
	                          .readers = SW_NEW_N(&f->arena, uint64_t, f->n_inner)};
	link_parameters(f);
	for (uint32_t k = 0; k < f->n_inner; k++)
		if (f->gradient_of[k])
			of_parameter[f->gradient_of[k] - 1] = true;
	size_t found = find_exports(f, exports);
	for_ancestors(f, exports, found, count_ancestors, &counts);
	int32_t most = most_of(counts.ops, exports, found),
		all = most_of(counts.parameters, exports, found);
	f->longest_gradient = most;
	*n = 0;
	for (size_t i = 0; i < found; i++)
		if (2 * counts.ops[exports[i]] >= most)
			chosen[(*n)++] = exports[i];
	*n_long = *n;
	for (size_t i = 0; i < found; i++) {
		uint32_t k = exports[i];
		if (2 * counts.ops[k] < most && of_parameter[k] &&
		    counts.parameters[k] >= NEARLY * all)
			chosen[(*n)++] = k;
	}
	return chosen;
}

static void intersect_ancestors(sw_stage_finder *f, const uint32_t *exports, int32_t n,
                                const uint64_t *ancestors, void *context)
{
	uint64_t all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	for (size_t i = 0; i < f->body->ops.len; i++)
		if (ancestors[f->body->ops.data[i]] != all)
			f->forward[f->body->ops.data[i]] = false;
	(void)exports;
	(void)context;
}

void sw_stage_keep_common(sw_stage_finder *f, const uint32_t *exports, size_t n)
{
	for_ancestors(f, exports, n, intersect_ancestors, NULL);
}

/* ---- heads ------------------------------------------------------------------------------ */

/* Sums of one number that become no state. */
static size_t find_losses(sw_stage_finder *f, uint32_t *losses)
{
	bool *reaches = reaches_state(f);
	size_t n = 0;
	for (uint32_t k = 0; k < f->n_inner; k++) {
		sw_id value = f->body->results.data[k];
		if (!sw_element_is_import(f, k) && !reaches[f->loop->first_result + k] &&
		    sw_op_is_flow(f, sw_maker_of(f->program, value)) &&
		    sw_shape_elements(sw_value_shape(f->program, value)) == 1)
			losses[n++] = k;
	}
	return n;
}

static bool reads_parameter(const sw_stage_finder *f, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (sw_value_is_element(f, op->operands[k]) &&
		    f->gradient_of[op->operands[k] - f->inner])
			return true;
	return false;
}

/* Of up to 64 losses: those that have a head, and need fewer ops than gradients do. */
static void add_heads_of(sw_stage_finder *f, const uint32_t *losses, int32_t n,
                         const uint64_t *ancestors, void *context)
{
	uint64_t with_head = 0;
	int32_t ops[64] = {0};
	for (size_t i = 0; i < f->body->ops.len; i++) {
		sw_id id = f->body->ops.data[i];
		if (!sw_op_is_flow(f, id))
			continue;
		for (uint64_t left = ancestors[id]; left; left &= left - 1)
			ops[__builtin_ctzll(left)]++;
		if (!f->forward[id] && reads_parameter(f, sw_body_op(f, i)))
			with_head |= ancestors[id];
	}
	for (int32_t e = 0; e < n; e++)
		if (2 * ops[e] >= f->longest_gradient)
			with_head &= ~(UINT64_C(1) << e);
	for (size_t i = 0; i < f->body->ops.len; i++) {
		sw_id id = f->body->ops.data[i];
		f->forward[id] |= sw_op_is_flow(f, id) && (ancestors[id] & with_head);
	}
	(void)losses;
	(void)context;
}

void sw_stage_add_heads(sw_stage_finder *f)
{
	uint32_t *losses = SW_NEW_N(&f->arena, uint32_t, f->n_inner);
	for_ancestors(f, losses, find_losses(f, losses), add_heads_of, NULL);
}
