/*
 * Which dimensions are padded together, and how far.
 *
 * Dimensions that an op links are one (pad_links.c). Loops, branches, barriers and aliases identify
 * the dimensions of the values that they equate. A union-find over all places; O(places).
 */
#include "base/sets.h"
#include "rewrite/internal.h"

/* ---- classes ---------------------------------------------------------------------------- */

typedef struct forest {
	sw_pad_classes *classes;
	const sw_program *program;
	uint32_t n_places;
	uint32_t *parent; /* per place (base/sets.h) */
	int64_t *true_size, *size;
	int32_t *number;
	bool *wanted, *fixed; /* per root */
	const sw_id *inputs;
	uint32_t n_inputs;
} forest;

static void join_values(forest *f, sw_id a, sw_id b)
{
	for (int32_t d = 0; d < sw_value_shape(f->program, a).rank; d++)
		sw_sets_join(f->parent, f->classes->first[a] + (uint32_t)d,
		             f->classes->first[b] + (uint32_t)d);
}

typedef struct linked {
	int32_t link;
	uint32_t place;
} linked;
typedef SW_VEC(linked) linked_list;

/* Join the place with an earlier one of the same link. */
static void add_linked(forest *f, linked_list *list, linked l)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i].link == l.link) {
			sw_sets_join(f->parent, list->data[i].place, l.place);
			return;
		}
	sw_vec_push(list, l);
}

static void join_op(forest *f, sw_id op_id, linked_list *list)
{
	const sw_op *op = sw_op_at(f->program, op_id);
	list->len = 0;
	for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
		bool result = i >= op->n_operands;
		uint32_t index = result ? i - op->n_operands : i;
		sw_id value = result ? op->first_result + index : op->operands[index];
		for (int32_t d = 0; d < sw_value_shape(f->program, value).rank; d++) {
			linked l = {sw_pad_link(f->classes, op_id, result, index, d),
			            f->classes->first[value] + (uint32_t)d};
			if (l.link >= 0)
				add_linked(f, list, l);
		}
	}
}

static void join_passed(forest *f, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		join_values(f, op->operands[k], op->first_result + k);
}

/* Join operands from `first` on with the leaves of the computation's parameter; return the number
 * of the operand after the last. */
static uint32_t join_parameter(forest *f, const sw_op *op, uint32_t first, int32_t computation)
{
	const sw_op *parameter =
		sw_op_at(f->program, f->program->computations.data[computation].parameters.data[0]);
	for (uint32_t k = 0; k < parameter->n_results; k++)
		join_values(f, op->operands[first + k], parameter->first_result + k);
	return first + parameter->n_results;
}

static void join_results(forest *f, const sw_op *op, int32_t computation)
{
	const sw_computation *callee = &f->program->computations.data[computation];
	for (uint32_t k = 0; k < op->n_results; k++)
		join_values(f, op->first_result + k, callee->results.data[k]);
}

static void join_loop(forest *f, const sw_op *op)
{
	join_passed(f, op);
	join_parameter(f, op, 0, op->called[0]);
	join_parameter(f, op, 0, op->called[1]);
	join_results(f, op, op->called[1]);
}

static void join_branches(forest *f, const sw_op *op)
{
	/* Operand 0 chooses the branch. */
	uint32_t next = 1;
	for (uint32_t k = 0; k < op->n_called; k++) {
		next = join_parameter(f, op, next, op->called[k]);
		join_results(f, op, op->called[k]);
	}
}

static void join_all(forest *f)
{
	linked_list list = {0};
	for (sw_id id = 0; id < f->program->ops.len; id++) {
		const sw_op *op = sw_op_at(f->program, id);
		if (!f->classes->planned[op->computation])
			continue;
		if (op->opcode == SW_OP_WHILE)
			join_loop(f, op);
		else if (op->opcode == SW_OP_CONDITIONAL)
			join_branches(f, op);
		else if (op->opcode == SW_OP_OPT_BARRIER)
			join_passed(f, op);
		else
			join_op(f, id, &list);
	}
	for (size_t i = 0; i < f->program->aliases.len; i++)
		join_values(f, f->inputs[f->program->aliases.data[i].input],
		            sw_entry(f->program)->results.data[f->program->aliases.data[i].output]);
	sw_vec_clear(&list);
}

/* ---- which classes are worth padding ---------------------------------------------------- */

static void want(forest *f, sw_id value, int32_t dim)
{
	f->wanted[sw_sets_root(f->parent, f->classes->first[value] + (uint32_t)dim)] = true;
}

static void want_contracted(forest *f)
{
	for (sw_id id = 0; id < f->program->ops.len; id++) {
		const sw_op *op = sw_op_at(f->program, id);
		bool heavy = op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION;
		for (uint32_t k = 0; heavy && f->classes->planned[op->computation] && k < 2; k++)
			for (int32_t d = 0; d < sw_value_shape(f->program, op->operands[k]).rank;
			     d++)
				want(f, op->operands[k], d);
	}
}

static bool has_multiple(sw_shape shape, int64_t multiple)
{
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] % multiple == 0)
			return true;
	return false;
}

static void want_inputs(forest *f, int64_t multiple)
{
	bool *state = SW_NEW_N(&f->classes->arena, bool, f->n_inputs + 1);
	for (size_t i = 0; i < f->program->aliases.len; i++)
		state[f->program->aliases.data[i].input] = true;
	for (uint32_t i = 0; i < f->n_inputs; i++) {
		sw_shape shape = sw_value_shape(f->program, f->inputs[i]);
		bool splits = state[i] && has_multiple(shape, multiple);
		for (int32_t d = 0; d < shape.rank && !splits && (state[i] || d == 0); d++)
			want(f, f->inputs[i], d);
	}
}

static void fix_value(forest *f, sw_id value)
{
	for (int32_t d = 0; d < sw_value_shape(f->program, value).rank; d++)
		f->fixed[sw_sets_root(f->parent, f->classes->first[value] + (uint32_t)d)] = true;
}

/* Fix the dimensions that have a bound instead of a size. */
static void fix_bounded(forest *f)
{
	for (sw_id v = 0; v < f->program->values.len; v++) {
		sw_shape shape = f->program->values.data[v].shape;
		for (int32_t d = 0; d < shape.rank; d++)
			if (shape.bounded >> d & 1)
				f->fixed[sw_sets_root(f->parent,
				                      f->classes->first[v] + (uint32_t)d)] = true;
	}
}

/* Fix the parameters and results of planned computations that ops other than loops and conditionals
 * call. */
static void fix_foreign(forest *f)
{
	for (sw_id id = 0; id < f->program->ops.len; id++) {
		const sw_op *op = sw_op_at(f->program, id);
		bool runs = f->classes->planned[op->computation] && sw_is_region(op);
		for (uint32_t k = 0; k < op->n_called && !runs; k++) {
			if (!f->classes->planned[op->called[k]])
				continue;
			const sw_computation *callee =
				&f->program->computations.data[op->called[k]];
			for (size_t i = 0; i < callee->parameters.len; i++) {
				const sw_op *parameter =
					sw_op_at(f->program, callee->parameters.data[i]);
				for (uint32_t r = 0; r < parameter->n_results; r++)
					fix_value(f, parameter->first_result + r);
			}
			for (size_t i = 0; i < callee->results.len; i++)
				fix_value(f, callee->results.data[i]);
		}
	}
}

static int64_t padded_size(int64_t size, sw_pad_rule rule)
{
	int64_t rest = size % rule.multiple, added = rest ? rule.multiple - rest : 0;
	bool pays = size >= 2 && added <= size / rule.share && size < INT64_MAX / 2;
	return pays ? size + added : size;
}

/* Choose the sizes of all places. Roots come first: a root is the least place of its class. */
static void choose_sizes(forest *f, sw_pad_rule rule)
{
	sw_pad_classes *classes = f->classes;
	want_contracted(f);
	want_inputs(f, rule.multiple);
	fix_bounded(f);
	fix_foreign(f);
	for (uint32_t p = 0; p < f->n_places; p++) {
		uint32_t root = sw_sets_root(f->parent, p);
		if (root == p) {
			bool pads = f->wanted[p] && !f->fixed[p];
			int64_t size = pads ? padded_size(f->true_size[p], rule) : f->true_size[p];
			f->number[p] = size != f->true_size[p] ? classes->n++ : -1;
			bool named = rule.classes.n == 0 || sw_ints_has(rule.classes, f->number[p]);
			f->size[p] = named ? size : f->true_size[p];
			classes->any = classes->any || f->size[p] != f->true_size[p];
		}
		f->number[p] = f->number[root];
		f->size[p] = f->size[root];
	}
}

/* ---- results ---------------------------------------------------------------------------- */

/* Return whether all padded values fit in memory, at 16 bytes an element, because the indices of a
 * mask may be larger than the masked elements. */
static bool fits_memory(const sw_pad_classes *classes)
{
	for (sw_id v = 0; v < classes->program->values.len; v++) {
		int64_t dims[SW_MAX_RANK], bytes = 16;
		sw_shape shape = sw_pad_shape(classes, v, dims);
		for (int32_t d = 0; d < shape.rank; d++)
			if (!sw_mul_i64(bytes, SW_MAX(dims[d], 1), &bytes))
				return false;
	}
	return true;
}

static void count_value(sw_padded_list *list, int64_t size, int64_t padded)
{
	size_t i = 0;
	while (i < list->len && list->data[i].size < size)
		i++;
	if (i < list->len && list->data[i].size == size) {
		list->data[i].values++;
		return;
	}
	sw_vec_push(list, ((sw_padded){0}));
	for (size_t k = list->len - 1; k > i; k--)
		list->data[k] = list->data[k - 1];
	list->data[i] = (sw_padded){.size = size, .padded = padded, .values = 1};
}

static void count_padded(const sw_pad_classes *classes, sw_padded_list *list)
{
	for (sw_id v = 0; v < classes->program->values.len; v++) {
		sw_shape shape = sw_value_shape(classes->program, v);
		for (int32_t d = 0; d < shape.rank; d++)
			if (sw_pad_is_padded(classes, v, d))
				count_value(list, shape.dims[d],
				            classes->size[classes->first[v] + (uint32_t)d]);
	}
}

static void number_places(forest *f)
{
	const sw_program *p = f->program;
	sw_arena *arena = &f->classes->arena;
	uint32_t *first = SW_NEW_N(arena, uint32_t, p->values.len + 1);
	for (sw_id v = 0; v < p->values.len; v++) {
		first[v] = f->n_places;
		f->n_places += (uint32_t)p->values.data[v].shape.rank;
	}
	f->classes->first = first;
	f->parent = SW_NEW_N(arena, uint32_t, f->n_places + 1);
	f->true_size = SW_NEW_N(arena, int64_t, f->n_places + 1);
	f->size = SW_NEW_N(arena, int64_t, f->n_places + 1);
	f->number = SW_NEW_N(arena, int32_t, f->n_places + 1);
	f->wanted = SW_NEW_N(arena, bool, f->n_places + 1);
	f->fixed = SW_NEW_N(arena, bool, f->n_places + 1);
	f->classes->size = f->size;
	f->classes->number = f->number;
	sw_sets_init(f->parent, f->n_places);
	for (sw_id v = 0; v < p->values.len; v++)
		for (int32_t d = 0; d < p->values.data[v].shape.rank; d++)
			f->true_size[first[v] + (uint32_t)d] = p->values.data[v].shape.dims[d];
}

bool sw_pad_classes_init(sw_pad_classes *classes, const sw_program *program, sw_pad_rule rule,
                         sw_padded_list *list)
{
	*classes = (sw_pad_classes){.program = program};
	sw_arena_init(&classes->arena);
	forest f = {.classes = classes, .program = program};
	classes->planned = SW_NEW_N(&classes->arena, bool, program->computations.len + 1);
	classes->rules = SW_NEW_N(&classes->arena, const sw_rule *, program->ops.len + 1);
	sw_mark_planned(program, program->entry, classes->planned);
	for (sw_id id = 0; id < program->ops.len; id++)
		if (classes->planned[sw_op_at(program, id)->computation])
			classes->rules[id] = sw_rule_make(program, id, &classes->arena);
	f.n_inputs = sw_program_inputs(program, program->entry, &classes->arena, &f.inputs);
	number_places(&f);
	join_all(&f);
	choose_sizes(&f, rule);
	if (!fits_memory(classes))
		return false;
	count_padded(classes, list);
	return true;
}

void sw_pad_classes_clear(sw_pad_classes *classes)
{
	sw_arena_clear(&classes->arena);
}

/* ---- queries ---------------------------------------------------------------------------- */

sw_shape sw_pad_shape(const sw_pad_classes *classes, sw_id value, int64_t dims[SW_MAX_RANK])
{
	sw_shape shape = sw_value_shape(classes->program, value);
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = classes->size[classes->first[value] + (uint32_t)d];
	shape.dims = dims;
	return shape;
}

bool sw_pad_is_padded(const sw_pad_classes *classes, sw_id value, int32_t dim)
{
	return classes->size[classes->first[value] + (uint32_t)dim] !=
	       sw_value_shape(classes->program, value).dims[dim];
}

uint32_t sw_pad_whole_dims(const sw_pad_classes *classes, sw_id op_id, bool result, uint32_t index)
{
	const sw_op *op = sw_op_at(classes->program, op_id);
	sw_id value = result ? op->first_result + index : op->operands[index];
	uint32_t mask = 0;
	for (int32_t d = 0; d < sw_value_shape(classes->program, value).rank; d++)
		if (sw_pad_is_padded(classes, value, d) &&
		    sw_pad_link(classes, op_id, result, index, d) == SW_PAD_WHOLE)
			mask |= 1u << d;
	return mask;
}
