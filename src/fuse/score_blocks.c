/*
 * Blocks of scores (score_blocks.h). Each batch dimension of the product that begins a kernel is an
 * ATOM, whose coordinate counts blocks. The rules say what that means for all other ops, as they do
 * for devices: values get layouts on these atoms, ops strategies, and the loop's body consists of
 * local ops.
 */
#include "fuse/score_blocks.h"

#include "fuse/internal.h"

#include <stdlib.h>
#include <string.h>

#include "rules/rules.h"

typedef struct blocked_kernel {
	const sw_program *in;
	int64_t elements;           /* of a block, at least */
	const sw_computation *body; /* of in */
	sw_id first_op;             /* ids of its ops and values lie behind these */
	sw_id first_value;
	sw_arena arena;
	sw_atoms atoms;
	const sw_rule **rules; /* per op - first_op */
	sw_strategy *strategy; /* likewise */
	sw_layout *layout;     /* per value - first_value */
	bool *imported;        /* per value: the loop reads it whole */
	sw_program *out;
	int32_t *computation; /* of in -> of out, -1: not yet */
	sw_id *value;         /* of in -> of out, in the computation being written */
} blocked_kernel;

static const sw_op *op_at(const blocked_kernel *k, size_t i)
{
	return sw_op_at(k->in, k->body->ops.data[i]);
}

static sw_strategy *strategy_of(const blocked_kernel *k, sw_id op)
{
	return &k->strategy[op - k->first_op];
}

static sw_layout *layout_of(const blocked_kernel *k, sw_id value)
{
	return &k->layout[value - k->first_value];
}

/* ---- the atoms -------------------------------------------------------------------------- */

/* Return the dot that begins the kernel: the first one with batch dimensions. */
static const sw_op *seed_of(const blocked_kernel *k)
{
	for (size_t i = 0; i < k->body->ops.len; i++)
		if (op_at(k, i)->opcode == SW_OP_DOT && op_at(k, i)->attrs->dot.lhs_batch.n > 0)
			return op_at(k, i);
	return NULL;
}

/* Give each batch dimension, outermost first, as many blocks as leave enough of the scores; bit d
 * of `refused` leaves dimension d out. Return whether there is any block. */
static bool choose_atoms(blocked_kernel *k, const sw_op *seed, uint32_t refused)
{
	sw_shape scores = sw_value_shape(k->in, seed->first_result);
	int64_t left = sw_shape_elements(scores);
	k->atoms.n = 0;
	for (int32_t d = 0; d < seed->attrs->dot.lhs_batch.n && k->atoms.n < SW_MAX_ATOMS; d++) {
		int64_t parts = refused >> d & 1 ? 1 : scores.dims[d];
		while (parts > 1 && (scores.dims[d] % parts != 0 || left / parts < k->elements))
			parts--;
		left /= SW_MAX(parts, 1);
		k->atoms.size[k->atoms.n++] = (int32_t)SW_MAX(parts, 1);
	}
	return left < sw_shape_elements(scores);
}

/* ---- layouts ---------------------------------------------------------------------------- */

/* Take what an op's strategy says of an atom for the values that it reads and writes. */
static bool spread_layouts(blocked_kernel *k, sw_id id, int32_t atom, bool *changed)
{
	const sw_op *op = sw_op_at(k->in, id);
	uint32_t n = op->n_operands + op->n_results;
	sw_layout *layouts = SW_NEW_N(&k->arena, sw_layout, n + 1);
	if (!sw_rule_layouts(k->in, id, k->rules[id - k->first_op], &k->atoms, strategy_of(k, id),
	                     layouts, layouts + op->n_operands))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		sw_id value = i < op->n_operands ? op->operands[i]
		                                 : op->first_result + (i - op->n_operands);
		sw_state *has = &layout_of(k, value)->state[atom], given = layouts[i].state[atom];
		if (given.kind == SW_STATE_B)
			continue;
		if (given.kind != SW_STATE_S)
			return false;
		if (has->kind == SW_STATE_B) {
			*has = given;
			*changed = true;
		} else if (has->dim != given.dim || has->stride != given.stride) {
			return false;
		}
	}
	return true;
}

/* Give an op the choice that follows from one of its values. */
static bool choose(blocked_kernel *k, sw_id id, bool result, uint32_t index, sw_id value,
                   int32_t atom, bool *changed)
{
	sw_choice *choice = &strategy_of(k, id)->atom[atom];
	const sw_layout *layout = layout_of(k, value);
	if (layout->state[atom].kind != SW_STATE_S || choice->kind != SW_CHOICE_NONE)
		return true;
	sw_layout alone = sw_layout_replicated(&k->atoms);
	sw_strategy found = sw_strategy_none(&k->atoms);
	uint32_t mask = 1U << atom;
	alone.state[atom] = layout->state[atom];
	sw_rule_match(k->rules[id - k->first_op], &k->atoms, result, (int32_t)index, &alone, &mask,
	              &found);
	if (!mask || found.atom[atom].kind != SW_CHOICE_SPLIT)
		return false;
	*choice = found.atom[atom];
	*changed = true;
	return spread_layouts(k, id, atom, changed);
}

static bool visit(blocked_kernel *k, sw_id id, int32_t atom, bool *changed)
{
	const sw_op *op = sw_op_at(k->in, id);
	for (uint32_t i = 0; i < op->n_results; i++)
		if (op->opcode != SW_OP_PARAMETER &&
		    !choose(k, id, true, i, op->first_result + i, atom, changed))
			return false;
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (!choose(k, id, false, i, op->operands[i], atom, changed))
			return false;
	return true;
}

/* Follow an atom through the kernel. Return false if an op refuses it. */
static bool follow(blocked_kernel *k, const sw_op *seed, int32_t atom)
{
	sw_state state = {.kind = SW_STATE_S, .dim = (int8_t)atom};
	sw_shape scores = sw_value_shape(k->in, seed->first_result);
	bool changed = k->atoms.size[atom] > 1;
	state.stride = scores.dims[atom] / k->atoms.size[atom];
	if (changed)
		layout_of(k, seed->first_result)->state[atom] = state;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < k->body->ops.len; i++)
			if (!visit(k, k->body->ops.data[i], atom, &changed))
				return false;
	}
	return true;
}

/* Local ops run in one thread of control: none may ask another block for anything. Results must be
 * blocks of at most one atom in each dimension. */
static bool is_independent(const blocked_kernel *k)
{
	for (size_t i = 0; i < k->body->ops.len; i++) {
		sw_id id = k->body->ops.data[i];
		if (sw_strategy_exchanges(k->rules[id - k->first_op], strategy_of(k, id)))
			return false;
	}
	for (size_t i = 0; i < k->body->results.len; i++) {
		sw_id value = k->body->results.data[i];
		uint32_t dims = 0;
		for (int32_t a = 0; a < k->atoms.n; a++) {
			sw_state s = layout_of(k, value)->state[a];
			int64_t size = sw_value_shape(k->in, value).dims[s.dim];
			if (s.kind != SW_STATE_S)
				continue;
			if (dims >> s.dim & 1 || s.stride != size / k->atoms.size[a])
				return false;
			dims |= 1U << s.dim;
		}
	}
	return true;
}

/* Find atoms that all ops accept; return false if there are none. */
static bool find_blocks(blocked_kernel *k)
{
	const sw_op *seed = seed_of(k);
	uint32_t refused = 0;
	while (seed && choose_atoms(k, seed, refused)) {
		for (size_t i = 0; i < k->body->ops.len; i++)
			*strategy_of(k, k->body->ops.data[i]) = sw_strategy_none(&k->atoms);
		for (size_t i = 0; i < k->body->ops.len; i++)
			for (uint32_t r = 0; r < op_at(k, i)->n_results; r++)
				*layout_of(k, op_at(k, i)->first_result + r) =
					sw_layout_replicated(&k->atoms);
		int32_t atom = 0;
		while (atom < k->atoms.n && follow(k, seed, atom))
			atom++;
		if (atom == k->atoms.n)
			return is_independent(k);
		refused |= 1U << atom;
	}
	return false;
}

/* ---- writing ---------------------------------------------------------------------------- */

static bool is_in_loop(const blocked_kernel *k, sw_id id)
{
	return sw_op_at(k->in, id)->opcode != SW_OP_PARAMETER &&
	       !sw_strategy_is_none(strategy_of(k, id));
}

static int64_t blocks_of(const blocked_kernel *k)
{
	return sw_atoms_devices(&k->atoms);
}

/* Copy an op that is no part of the loop. */
static bool copy_op(blocked_kernel *k, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(k->in, id);
	sw_id *operands = SW_NEW_N(&k->arena, sw_id, op->n_operands + 1);
	int32_t *called = SW_NEW_N(&k->arena, int32_t, op->n_called + 1);
	for (uint32_t i = 0; i < op->n_operands; i++)
		operands[i] = k->value[op->operands[i]];
	for (uint32_t i = 0; i < op->n_called; i++)
		called[i] = k->computation[op->called[i]];
	sw_id first = sw_build_copy_op(k->out, c, k->in, id, operands, called);
	for (uint32_t r = 0; r < op->n_results; r++)
		k->value[op->first_result + r] = first + r;
	return first != SW_NO_ID;
}

typedef SW_VEC(sw_id) block_values;

/* List the values that the loop reads and that others compute. */
static void find_imports(blocked_kernel *k, block_values *imports)
{
	for (size_t i = 0; i < k->body->ops.len; i++) {
		const sw_op *op = op_at(k, i);
		for (uint32_t o = 0; is_in_loop(k, k->body->ops.data[i]) && o < op->n_operands;
		     o++) {
			sw_id value = op->operands[o];
			if (is_in_loop(k, k->in->values.data[value].op) ||
			    k->imported[value - k->first_value])
				continue;
			k->imported[value - k->first_value] = true;
			sw_vec_push(imports, value);
		}
	}
}

static void find_exports(const blocked_kernel *k, block_values *exports)
{
	for (size_t i = 0; i < k->body->results.len; i++) {
		sw_id value = k->body->results.data[i];
		bool seen = !is_in_loop(k, k->in->values.data[value].op);
		for (size_t e = 0; e < exports->len; e++)
			seen |= exports->data[e] == value;
		if (!seen)
			sw_vec_push(exports, value);
	}
}

/* Write a tuple parameter of the iteration, the imports and the exports; return its first value. */
static sw_id write_carried(blocked_kernel *k, int32_t c, const block_values *imports,
                           const block_values *exports)
{
	size_t n = 1 + imports->len + exports->len;
	sw_shape *shapes = SW_NEW_N(&k->out->arena, sw_shape, n);
	for (size_t i = 0; i < n; i++) {
		sw_shape shape = {.type = SW_S32};
		if (i > 0)
			shape = sw_value_shape(
				k->in, i <= imports->len ? imports->data[i - 1]
							 : exports->data[i - 1 - imports->len]);
		shapes[i] = sw_build_shape(k->out, shape.type, shape.dims, shape.rank);
	}
	sw_attrs attrs = {.parameter = {.number = 0}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = (uint32_t)n,
	                   .tuple = true};
	sw_id first = SW_NO_ID;
	sw_error ignored;
	return sw_build_op(k->out, c, &spec, &first, &ignored) == SW_OK ? first : SW_NO_ID;
}

static sw_id emit_s32(const blocked_kernel *k, int32_t c, int64_t value)
{
	return sw_emit_scalar(k->out, c, SW_S32, (double)value);
}

/* Set the coordinates of the block: the digits of the iteration, the last atom fastest. */
static void set_coordinates(const blocked_kernel *k, sw_coordinates *at, sw_id iteration)
{
	int32_t c = at->computation;
	int64_t inner = blocks_of(k);
	for (int32_t a = 0; a < k->atoms.n; a++) {
		inner /= k->atoms.size[a];
		sw_id digit = iteration;
		if (inner > 1)
			digit = sw_emit_binary(k->out, c, SW_OP_DIVIDE, digit,
			                       emit_s32(k, c, inner));
		if (a > 0)
			digit = sw_emit_binary(k->out, c, SW_OP_REMAINDER, digit,
			                       emit_s32(k, c, k->atoms.size[a]));
		at->atom[a] = digit;
	}
}

static uint32_t split_mask(const blocked_kernel *k, sw_id value)
{
	uint32_t mask = 0;
	for (int32_t a = 0; a < k->atoms.n; a++)
		if (layout_of(k, value)->state[a].kind == SW_STATE_S)
			mask |= 1U << a;
	return mask;
}

/* Write the block's part of an export into what is carried. */
static sw_id write_part(blocked_kernel *k, sw_coordinates *at, sw_id value, sw_id carried)
{
	int32_t c = at->computation;
	sw_shape shape = sw_value_shape(k->in, value);
	sw_shape part = sw_value_shape(k->out, k->value[value]);
	sw_id operands[SW_MAX_RANK + 2] = {carried, k->value[value]}, first = SW_NO_ID;
	sw_error ignored;
	if (!split_mask(k, value))
		return k->value[value];
	for (int32_t d = 0; d < shape.rank; d++)
		operands[2 + d] = emit_s32(k, c, 0);
	for (int32_t a = 0; a < k->atoms.n; a++) {
		sw_state s = layout_of(k, value)->state[a];
		if (s.kind == SW_STATE_S)
			operands[2 + s.dim] = sw_emit_binary(k->out, c, SW_OP_MULTIPLY, at->atom[a],
			                                     emit_s32(k, c, part.dims[s.dim]));
	}
	sw_op_spec spec = {.opcode = SW_OP_DYNAMIC_UPDATE_SLICE,
	                   .operands = operands,
	                   .n_operands = (uint32_t)(2 + shape.rank)};
	return sw_build_op(k->out, c, &spec, &first, &ignored) == SW_OK ? first : SW_NO_ID;
}

static sw_status write_block_op(blocked_kernel *k, sw_coordinates *at, sw_id id, sw_error *err)
{
	const sw_op *op = sw_op_at(k->in, id);
	sw_id *operands = SW_NEW_N(&k->arena, sw_id, op->n_operands + 1);
	for (uint32_t i = 0; i < op->n_operands; i++)
		operands[i] = k->value[op->operands[i]];
	sw_localize local = {.program = k->in,
	                     .op = id,
	                     .rule = k->rules[id - k->first_op],
	                     .strategy = strategy_of(k, id),
	                     .coordinates = at,
	                     .computations = k->computation,
	                     .operands = operands};
	return sw_rule_localize(&local, &k->value[op->first_result], err);
}

/* Write the loop's body. */
static sw_status write_block(blocked_kernel *k, const block_values *imports,
                             const block_values *exports, int32_t *to, sw_error *err)
{
	sw_coordinates at;
	sw_status status = SW_OK;
	int32_t c = *to = sw_build_computation(k->out, "block");
	sw_coordinates_init(&at, k->out, c, &k->atoms);
	sw_id first = write_carried(k, c, imports, exports);
	sw_id *whole = SW_NEW_N(&k->arena, sw_id, imports->len + 1); /* outside the loop */
	set_coordinates(k, &at, first);
	for (size_t i = 0; i < imports->len; i++) {
		sw_id value = imports->data[i], x = first + 1 + (sw_id)i;
		uint32_t mask = split_mask(k, value);
		whole[i] = k->value[value];
		k->value[value] = mask ? sw_emit_cut(&at, x, sw_value_shape(k->in, value),
		                                     layout_of(k, value), mask)
		                       : x;
	}
	for (size_t i = 0; i < k->body->ops.len && status == SW_OK; i++)
		if (is_in_loop(k, k->body->ops.data[i]))
			status = write_block_op(k, &at, k->body->ops.data[i], err);
	size_t n = 1 + imports->len + exports->len;
	sw_id *results = SW_NEW_N(&k->arena, sw_id, n);
	for (size_t i = 0; i < n && status == SW_OK; i++)
		results[i] = i == 0 ? sw_emit_binary(k->out, c, SW_OP_ADD, first, emit_s32(k, c, 1))
		             : i <= imports->len
		                     ? first + (sw_id)i
		                     : write_part(k, &at, exports->data[i - 1 - imports->len],
		                                  first + (sw_id)i);
	if (status == SW_OK)
		sw_build_results(k->out, c, results, (uint32_t)n, true);
	for (size_t i = 0; i < imports->len; i++)
		k->value[imports->data[i]] = whole[i];
	return status;
}

static int32_t write_condition(blocked_kernel *k, const block_values *imports,
                               const block_values *exports)
{
	int32_t c = sw_build_computation(k->out, "more_blocks");
	sw_id first = write_carried(k, c, imports, exports);
	sw_id more = sw_emit_compare(k->out, c, SW_LT, first, emit_s32(k, c, blocks_of(k)));
	sw_build_results(k->out, c, &more, 1, false);
	return c;
}

/* Write the loop into the kernel's computation c, whose values before it are in k->value. */
static sw_status write_loop(blocked_kernel *k, int32_t c, sw_error *err)
{
	block_values imports = {0}, exports = {0};
	int32_t called[2];
	sw_id first = SW_NO_ID;
	find_imports(k, &imports);
	find_exports(k, &exports);
	size_t n = 1 + imports.len + exports.len;
	sw_id *operands = SW_NEW_N(&k->arena, sw_id, n);
	operands[0] = emit_s32(k, c, 0);
	for (size_t i = 0; i < imports.len; i++)
		operands[1 + i] = k->value[imports.data[i]];
	for (size_t i = 0; i < exports.len; i++) {
		sw_shape shape = sw_value_shape(k->in, exports.data[i]);
		operands[1 + imports.len + i] = sw_emit_broadcast(
			k->out, c, sw_emit_scalar(k->out, c, shape.type, 0), shape, NULL);
	}
	called[0] = write_condition(k, &imports, &exports);
	sw_status status = write_block(k, &imports, &exports, &called[1], err);
	sw_attrs attrs = {.loop = {.trip_count = blocks_of(k)}};
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .name = "blocks",
	                   .operands = operands,
	                   .n_operands = (uint32_t)n,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs,
	                   .tuple = true};
	if (status == SW_OK)
		status = sw_build_op(k->out, c, &spec, &first, err);
	for (size_t i = 0; i < exports.len && status == SW_OK; i++)
		k->value[exports.data[i]] = first + (sw_id)(1 + imports.len + i);
	sw_vec_clear(&imports);
	sw_vec_clear(&exports);
	return status;
}

/* Write a computation; that of a kernel with a loop if `blocked`. */
static sw_status write_body(blocked_kernel *k, int32_t computation, bool blocked, sw_error *err)
{
	const sw_computation *from = &k->in->computations.data[computation];
	int32_t c = sw_build_computation(k->out, from->name);
	sw_status status = SW_OK;
	sw_id *results = sw_alloc(sizeof(sw_id) * (from->results.len + 1));
	for (size_t i = 0; i < from->ops.len && status == SW_OK; i++)
		if (!blocked || !is_in_loop(k, from->ops.data[i]))
			status = copy_op(k, c, from->ops.data[i])
			                 ? SW_OK
			                 : sw_fail(err, SW_ERR_INTERNAL,
			                           "score blocks: copying failed");
	if (status == SW_OK && blocked)
		status = write_loop(k, c, err);
	for (size_t i = 0; i < from->results.len; i++)
		results[i] = k->value[from->results.data[i]];
	if (status == SW_OK)
		sw_build_results(k->out, c, results, (uint32_t)from->results.len, from->root_tuple);
	k->computation[computation] = c;
	free(results);
	return status;
}

/* ---- the program ------------------------------------------------------------------------ */

bool sw_fuse_has_scores(const sw_op *op)
{
	sw_fused_kernel kernel = sw_fused_kernel_of(op);
	return kernel == SW_FUSED_ATTENTION || kernel == SW_FUSED_ATTENTION_GRADIENT;
}

/* Prepare the search for blocks in a computation. Ids of its ops are found by their extremes. */
static void begin_kernel(blocked_kernel *k, int32_t computation)
{
	sw_id last_op = 0, last_value = 0;
	k->body = &k->in->computations.data[computation];
	k->first_op = k->first_value = SW_NO_ID;
	for (size_t i = 0; i < k->body->ops.len; i++) {
		const sw_op *op = op_at(k, i);
		k->first_op = SW_MIN(k->first_op, k->body->ops.data[i]);
		last_op = SW_MAX(last_op, k->body->ops.data[i]);
		k->first_value = SW_MIN(k->first_value, op->first_result);
		last_value = SW_MAX(last_value, op->first_result + op->n_results);
	}
	k->rules = SW_NEW_N(&k->arena, const sw_rule *, last_op - k->first_op + 1);
	k->strategy = SW_NEW_N(&k->arena, sw_strategy, last_op - k->first_op + 1);
	k->layout = SW_NEW_N(&k->arena, sw_layout, last_value - k->first_value + 1);
	k->imported = SW_NEW_N(&k->arena, bool, last_value - k->first_value + 1);
	for (size_t i = 0; i < k->body->ops.len; i++)
		k->rules[k->body->ops.data[i] - k->first_op] =
			sw_rule_make(k->in, k->body->ops.data[i], &k->arena);
}

/* Write a computation, and before it those that it calls. */
static sw_status write_all(blocked_kernel *k, int32_t computation, bool kernel, sw_error *err)
{
	const sw_computation *from = &k->in->computations.data[computation];
	sw_status status = SW_OK;
	if (k->computation[computation] >= 0)
		return SW_OK;
	for (size_t i = 0; i < from->ops.len; i++) {
		const sw_op *op = sw_op_at(k->in, from->ops.data[i]);
		for (uint32_t c = 0; c < op->n_called && status == SW_OK; c++)
			status = write_all(k, op->called[c], sw_fuse_has_scores(op), err);
	}
	if (status != SW_OK)
		return status;
	sw_arena_init(&k->arena);
	if (kernel)
		begin_kernel(k, computation);
	status = write_body(k, computation, kernel && find_blocks(k), err);
	sw_arena_clear(&k->arena);
	return status;
}

sw_status sw_fuse_block_scores(const sw_program *in, int64_t elements, sw_program **out,
                               sw_error *err)
{
	blocked_kernel k = {.in = in, .elements = elements};
	bool any = false;
	*out = NULL;
	for (size_t i = 0; i < in->ops.len; i++)
		any |= sw_fuse_has_scores(&in->ops.data[i]);
	if (!any)
		return SW_OK;
	k.out = sw_program_new(in->name);
	k.value = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	k.computation = sw_alloc(sizeof(int32_t) * (in->computations.len + 1));
	memset(k.computation, 0xff, sizeof(int32_t) * (in->computations.len + 1));
	sw_build_copy_frame(k.out, in);
	sw_status status = write_all(&k, in->entry, false, err);
	k.out->entry = k.computation[in->entry];
	free(k.value);
	free(k.computation);
	if (status == SW_OK)
		*out = k.out;
	else
		sw_program_free(k.out);
	return status;
}
