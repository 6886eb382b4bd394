/*
 * Owners: values of a program of many devices that some of them hold and the others do not.
 *
 * Four kinds of ops say who holds their results, by attributes that the text form has too: an entry
 * parameter and a reshape (`owner`), an all-reduce whose sum only its root gets, and a broadcast
 * from its root (`root`, and `owner` where not all of the others hold its result either).
 * Everything else follows: an op runs on the devices that hold all of its operands, and they hold
 * its results; a fusion, on those of what was fused. Only the entry computation has owners.
 *
 *     p = f32[512,512] parameter(0), owner={{2,2,1}}          the devices d with d / 2 mod 2 == 1
 *     w = f32[512,512] collective-broadcast(p), replica_groups={{0,2},{1,3}}, root={{2,2,1}}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/internal.h"

/* ---- who, as text ----------------------------------------------------------------------- */

static const sw_extra *find_extra(const sw_op *op, const char *name)
{
	const sw_extra *extra = op->extras;
	while (extra && strcmp(extra->name, name) != 0)
		extra = extra->next;
	return extra;
}

/* Read {{stride,size,coordinate},...}; what is not of that form names nobody, hence all devices. */
static sw_owner parse(const char *text)
{
	sw_owner owner = {0};
	const char *at = text ? text + 1 : NULL;
	while (at && owner.n < SW_MAX_OWNER_DIGITS) {
		sw_owner_digit digit;
		long long numbers[3];
		at = strchr(at, '{');
		if (!at ||
		    sscanf(at, "{%lld,%lld,%lld}", &numbers[0], &numbers[1], &numbers[2]) != 3)
			break;
		digit = (sw_owner_digit){numbers[0], numbers[1], numbers[2]};
		if (digit.stride < 1 || digit.size < 1)
			break;
		owner.digit[owner.n++] = digit;
		at = strchr(at, '}');
	}
	return owner;
}

static sw_owner owner_in(const sw_op *op, const char *name)
{
	const sw_extra *extra = find_extra(op, name);
	return extra ? parse(extra->text) : (sw_owner){0};
}

sw_owner sw_op_root(const sw_op *op)
{
	return owner_in(op, "root");
}

bool sw_op_has_root(const sw_op *op)
{
	return find_extra(op, "root") != NULL;
}

sw_opcode sw_op_counted_as(const sw_op *op)
{
	return sw_op_has_root(op) ? SW_OP_COLLECTIVE_BROADCAST : (sw_opcode)op->opcode;
}

static void add_extra(sw_program *program, sw_op *op, const char *name, const sw_owner *owner)
{
	sw_text text = {0};
	sw_text_add(&text, "{");
	for (int32_t i = 0; i < owner->n; i++)
		sw_text_addf(&text, "%s{%lld,%lld,%lld}", i ? "," : "",
		             (long long)owner->digit[i].stride, (long long)owner->digit[i].size,
		             (long long)owner->digit[i].coordinate);
	sw_text_add(&text, "}");
	sw_extra *extra = SW_NEW(&program->arena, sw_extra);
	*extra = (sw_extra){.name = name,
	                    .text = sw_arena_text(&program->arena, text.data),
	                    .next = (sw_extra *)op->extras};
	op->extras = extra;
	sw_text_clear(&text);
}

void sw_build_owner(sw_program *program, sw_id value, const sw_owner *owner, const sw_owner *root)
{
	sw_op *op = &program->ops.data[program->values.data[value].op];
	if (owner->n > 0)
		add_extra(program, op, "owner", owner);
	if (root)
		add_extra(program, op, "root", root);
}

/* ---- who, as sets ----------------------------------------------------------------------- */

bool sw_owner_is(const sw_owner *owner, int64_t device)
{
	for (int32_t i = 0; i < owner->n; i++)
		if (device / owner->digit[i].stride % owner->digit[i].size !=
		    owner->digit[i].coordinate)
			return false;
	return true;
}

static void add_digit(sw_owner *to, sw_owner_digit digit)
{
	int32_t i = 0;
	while (i < to->n && to->digit[i].stride > digit.stride)
		i++;
	for (int32_t k = i; k < to->n && to->digit[k].stride == digit.stride; k++)
		if (to->digit[k].size == digit.size && to->digit[k].coordinate == digit.coordinate)
			return;
	if (to->n == SW_MAX_OWNER_DIGITS)
		return;
	memmove(&to->digit[i + 1], &to->digit[i], sizeof(digit) * (size_t)(to->n - i));
	to->digit[i] = digit;
	to->n++;
}

/* Leave of `to` the devices that are in both. */
static void intersect(sw_owner *to, const sw_owner *other)
{
	for (int32_t i = 0; i < other->n; i++)
		add_digit(to, other->digit[i]);
}

/* The sets that a program names, each once. */
typedef struct set_list {
	sw_map index;
	SW_VEC(sw_owner) sets;
} set_list;

static uint32_t number_of(set_list *list, const sw_owner *owner)
{
	uint32_t fresh = (uint32_t)list->sets.len;
	uint32_t number = sw_map_intern(&list->index, owner->digit,
	                                sizeof(*owner->digit) * (size_t)owner->n, fresh);
	if (number == fresh)
		sw_vec_push(&list->sets, *owner);
	return number;
}

static bool is_done(sw_opcode opcode)
{
	return opcode == SW_OP_ALL_REDUCE_DONE || opcode == SW_OP_ALL_GATHER_DONE ||
	       opcode == SW_OP_COLLECTIVE_PERMUTE_DONE || opcode == SW_OP_ASYNC_DONE ||
	       opcode == SW_OP_ASYNC_UPDATE;
}

/* Return the collective that the op performs or begins; the op itself if it is none. */
static const sw_op *performed(const sw_program *program, const sw_op *op)
{
	sw_id inside =
		op->opcode == SW_OP_ASYNC_START ? sw_async_collective(program, op) : SW_NO_ID;
	return inside == SW_NO_ID ? op : sw_op_at(program, inside);
}

static void find_sets(const sw_program *program, sw_id id, set_list *list, uint32_t *holds,
                      uint32_t *runs)
{
	const sw_op *op = sw_op_at(program, id), *does = performed(program, op);
	bool rooted = sw_op_has_root(does);
	sw_owner own = owner_in(does, "owner"), common = {0};
	for (uint32_t k = 0; k < op->n_operands; k++)
		intersect(&common,
		          &list->sets.data[holds[program->values.data[op->operands[k]].op]]);
	if (is_done((sw_opcode)op->opcode)) {
		sw_id start = program->values.data[op->operands[0]].op;
		holds[id] = holds[start];
		runs[id] = runs[start];
		return;
	}
	if (op->opcode == SW_OP_PARAMETER) {
		holds[id] = number_of(list, &own);
		runs[id] = 0;
		return;
	}
	if (rooted && does->opcode == SW_OP_COLLECTIVE_BROADCAST) {
		holds[id] = runs[id] = number_of(list, &own);
		return;
	}
	if (op->opcode == SW_OP_FUSION) {
		const sw_computation *kernel = &program->computations.data[op->called[0]];
		for (size_t i = 0; i < kernel->ops.len; i++) {
			sw_owner kept = owner_in(sw_op_at(program, kernel->ops.data[i]), "owner");
			intersect(&common, &kept);
		}
	}
	runs[id] = number_of(list, &common);
	intersect(&common, &own);
	holds[id] = number_of(list, &common);
	if (!rooted)
		runs[id] = holds[id];
}

bool sw_program_has_owners(const sw_program *program)
{
	const sw_computation *entry = sw_entry(program);
	for (size_t i = 0; i < entry->ops.len; i++)
		if (find_extra(performed(program, sw_op_at(program, entry->ops.data[i])), "owner"))
			return true;
	return false;
}

sw_owners sw_program_owners(const sw_program *program, sw_arena *arena)
{
	set_list list = {0};
	uint32_t *holds = SW_NEW_N(arena, uint32_t, program->ops.len + 1),
		 *runs = SW_NEW_N(arena, uint32_t, program->ops.len + 1);
	sw_owner everyone = {0};
	number_of(&list, &everyone);
	size_t n = sw_program_has_owners(program) ? sw_entry(program)->ops.len : 0;
	for (size_t i = 0; i < n; i++)
		find_sets(program, sw_entry(program)->ops.data[i], &list, holds, runs);
	sw_owners owners = {
		.n = (int32_t)list.sets.len,
		.sets = sw_arena_copy(arena, list.sets.data, sizeof(sw_owner) * list.sets.len),
		.holds = holds,
		.runs = runs};
	sw_map_clear(&list.index);
	sw_vec_clear(&list.sets);
	return owners;
}

/* ---- the program of one device ---------------------------------------------------------- */

static const int64_t NOTHING[SW_MAX_RANK]; /* the sizes of what a device does not hold */

typedef struct extract {
	const sw_program *in;
	sw_program *out;
	const sw_owners *owners;
	bool *is_in;         /* per set: the device is in it */
	bool *needed;        /* per op of the entry */
	sw_id *value;        /* value of `in` -> of `out` */
	const sw_id *inputs; /* the entry's values of `in` */
	int32_t *computations;
	SW_VEC(sw_id) origin; /* per op of `out` */
} extract;

static bool acts(const extract *x, const sw_op *op)
{
	return sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE ||
	       op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_ASYNC_START ||
	       is_done((sw_opcode)op->opcode) || op->opcode == SW_OP_WHILE ||
	       op->opcode == SW_OP_CONDITIONAL || op->opcode == SW_OP_CALL || x->owners->n == 1;
}

/* Mark the ops that this device runs and whose results it reads, or that act on others. */
static void find_needed(extract *x)
{
	const sw_computation *entry = sw_entry(x->in);
	for (size_t i = 0; i < entry->results.len; i++)
		x->needed[x->in->values.data[entry->results.data[i]].op] = true;
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(x->in, id);
		x->needed[id] = x->is_in[x->owners->runs[id]] && (x->needed[id] || acts(x, op));
		for (uint32_t k = 0; k < op->n_operands && x->needed[id]; k++)
			x->needed[x->in->values.data[op->operands[k]].op] = true;
	}
}

static bool holds(const extract *x, sw_id value)
{
	return x->is_in[x->owners->holds[x->in->values.data[value].op]];
}

/* Note that the ops written since the last note are those of `id`. */
static void note_origin(extract *x, sw_id id)
{
	while (x->origin.len < x->out->ops.len)
		sw_vec_push(&x->origin, id);
}

/* A parameter that the device does not hold is an empty one. */
static void copy_empty(extract *x, int32_t c, const sw_op *op)
{
	sw_attrs attrs = {.parameter = {.number = op->attrs->parameter.number}};
	sw_shape *shapes = SW_NEW_N(&x->out->arena, sw_shape, op->n_results);
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_shape whole = sw_value_shape(x->in, op->first_result + k);
		shapes[k] = sw_build_shape(x->out, whole.type, NOTHING, whole.rank);
	}
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .name = op->name,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = op->n_results,
	                   .tuple = op->tuple};
	sw_id first;
	sw_error err;
	sw_status status = sw_build_op(x->out, c, &spec, &first, &err);
	note_origin(x, (sw_id)(op - x->in->ops.data));
	if (status == SW_OK)
		for (uint32_t k = 0; k < op->n_results; k++)
			x->value[op->first_result + k] = first + k;
}

/* What takes part in a broadcast has room for what it gets; the contents do not matter. */
static sw_id room_for(extract *x, int32_t c, sw_id value)
{
	sw_shape shape = sw_value_shape(x->in, value);
	sw_id zero = sw_emit_scalar(x->out, c, shape.type, 0);
	shape = sw_build_shape(x->out, shape.type, shape.dims, shape.rank);
	return shape.rank ? sw_emit_broadcast(x->out, c, zero, shape, NULL) : zero;
}

/* The program of one device has no owners; who is the root of a collective is kept. */
static void forget_owner(sw_op *op)
{
	/* The copy is fresh, so that its links may be changed. */
	sw_extra **link = (sw_extra **)&op->extras;
	while (*link)
		if (strcmp((*link)->name, "owner") == 0)
			*link = (*link)->next;
		else
			link = &(*link)->next;
}

static void copy_op(extract *x, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id *operands = sw_alloc(sizeof(*operands) * (op->n_operands + 1));
	int32_t *called = sw_alloc(sizeof(*called) * (op->n_called + 1u));
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = holds(x, op->operands[k]) || is_done((sw_opcode)op->opcode)
		                      ? x->value[op->operands[k]]
		                      : room_for(x, c, op->operands[k]);
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = x->computations[op->called[k]];
	sw_id first = sw_build_copy_op(x->out, c, x->in, id, operands, called);
	note_origin(x, id);
	for (uint32_t k = 0; k < op->n_results; k++)
		x->value[op->first_result + k] = first + k;
	free(operands);
	free(called);
}

/* Return what the device has as a result: of what it does not hold the empty input, or nothing. */
static sw_id result_of(const extract *x, int32_t c, uint32_t output)
{
	sw_id value = sw_entry(x->in)->results.data[output];
	if (holds(x, value))
		return x->value[value];
	int64_t input = sw_input_of_output(x->in, output);
	if (input >= 0)
		return x->value[x->inputs[input]];
	sw_shape whole = sw_value_shape(x->in, value);
	if (whole.rank == 0)
		return sw_emit_scalar(x->out, c, whole.type, 0);
	return sw_emit_literal(
		x->out, c,
		(sw_literal){.shape = sw_build_shape(x->out, whole.type, NOTHING, whole.rank)});
}

static void copy_entry(extract *x)
{
	const sw_computation *entry = sw_entry(x->in);
	int32_t c = sw_build_computation(x->out, entry->name);
	x->out->computations.data[c].extras = sw_build_copy_extras(x->out, entry->extras);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(x->in, id);
		if (op->opcode == SW_OP_PARAMETER && !x->is_in[x->owners->holds[id]])
			copy_empty(x, c, op);
		else if (x->needed[id])
			copy_op(x, c, id);
	}
	sw_id *results = sw_alloc(sizeof(*results) * (entry->results.len + 1));
	for (uint32_t i = 0; i < entry->results.len; i++)
		results[i] = result_of(x, c, i);
	sw_build_results(x->out, c, results, (uint32_t)entry->results.len, entry->root_tuple);
	x->out->entry = c;
	free(results);
}

/* The ops of the computations that the entry calls are those of `in`, in their order. */
static void note_called(extract *x)
{
	while (x->origin.len < x->out->ops.len)
		sw_vec_push(&x->origin, SW_NO_ID);
	for (size_t c = 0; c < x->in->computations.len; c++) {
		int32_t copy = x->computations[c];
		for (size_t i = 0; copy >= 0 && i < x->in->computations.data[c].ops.len; i++)
			x->origin.data[x->out->computations.data[copy].ops.data[i]] =
				x->in->computations.data[c].ops.data[i];
	}
}

sw_program *sw_program_of_device(const sw_program *program, int64_t device, sw_id **origin)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_owners owners = sw_program_owners(program, &arena);
	extract x = {.in = program,
	             .out = sw_program_new(program->name),
	             .owners = &owners,
	             .is_in = SW_NEW_N(&arena, bool, owners.n),
	             .needed = SW_NEW_N(&arena, bool, program->ops.len + 1),
	             .value = SW_NEW_N(&arena, sw_id, program->values.len + 1),
	             .computations = SW_NEW_N(&arena, int32_t, program->computations.len + 1)};
	sw_build_copy_frame(x.out, program);
	sw_program_inputs(program, program->entry, &arena, &x.inputs);
	for (int32_t k = 0; k < owners.n; k++)
		x.is_in[k] = sw_owner_is(&owners.sets[k], device);
	sw_build_copy_called(x.out, program, x.computations);
	note_origin(&x, SW_NO_ID);
	find_needed(&x);
	copy_entry(&x);
	for (size_t i = 0; i < x.out->ops.len; i++)
		forget_owner(&x.out->ops.data[i]);
	note_called(&x);
	if (origin)
		*origin = x.origin.data;
	else
		sw_vec_clear(&x.origin);
	sw_arena_clear(&arena);
	return x.out;
}

/* ---- the memory of one device ----------------------------------------------------------- */

/* A parameter that the device does not hold has no elements, unless it is a single number; room for
 * what is not there is made where it is read. */
static bool has_value(const extract *x, sw_id value)
{
	const sw_value *v = &x->in->values.data[value];
	bool parameter = sw_op_at(x->in, v->op)->opcode == SW_OP_PARAMETER;
	if (parameter)
		return holds(x, value) || v->shape.rank == 0;
	return x->needed[v->op] && (holds(x, value) || x->is_in[x->owners->runs[v->op]]);
}

int64_t sw_program_device_bytes(const sw_program *program, const sw_owners *owners, int64_t device)
{
	sw_arena arena;
	sw_arena_init(&arena);
	extract x = {.in = program,
	             .owners = owners,
	             .is_in = SW_NEW_N(&arena, bool, owners->n),
	             .needed = SW_NEW_N(&arena, bool, program->ops.len + 1)};
	bool *has = SW_NEW_N(&arena, bool, program->values.len + 1);
	for (int32_t k = 0; k < owners->n; k++)
		x.is_in[k] = sw_owner_is(&owners->sets[k], device);
	find_needed(&x);
	const sw_computation *entry = sw_entry(program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(program, entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_results; k++)
			has[op->first_result + k] = has_value(&x, op->first_result + k);
	}
	int64_t bytes =
		sw_device_peak_bytes(program, &(sw_device_view){.runs = x.needed, .has = has});
	sw_arena_clear(&arena);
	return bytes;
}
