/*
 * Equality of two programs, and the hash of what it compares.
 *
 * Computations are compared in pairs, starting at the entries; ops by their place in the list,
 * operands by the place of their op. Attributes are compared by the key that the table gives them.
 */
#include <string.h>

#include "program/attributes.h"
#include "program/internal.h"

/* Return the place of each op in its computation's list. */
static uint32_t *op_places(const sw_program *program, sw_arena *arena)
{
	uint32_t *places = SW_NEW_N(arena, uint32_t, program->ops.len + 1);
	for (size_t c = 0; c < program->computations.len; c++) {
		const sw_computation *computation = &program->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++)
			places[computation->ops.data[i]] = (uint32_t)i;
	}
	return places;
}

/* ---- comparing -------------------------------------------------------------------------- */

typedef struct pair {
	int32_t a, b;
} pair;

typedef struct comparison {
	const sw_program *a, *b;
	const uint32_t *places_a, *places_b;
	sw_error *difference;
	sw_arena arena;
	sw_map seen; /* pairs of computations that were or will be compared */
	SW_VEC(pair) todo;
	sw_text key_a, key_b;
} comparison;

static bool differ(const comparison *c, const sw_op *a, const sw_op *b, const char *what)
{
	sw_fail(c->difference, SW_NO, "%s '%s' and %s '%s': %s", sw_op_opcode_name(a), a->name,
	        sw_op_opcode_name(b), b->name, what);
	return false;
}

static void add_pair(comparison *c, int32_t a, int32_t b)
{
	pair key = {a, b};
	if (sw_map_put(&c->seen, &key, sizeof(key), 1) == SW_ABSENT)
		sw_vec_push(&c->todo, key);
}

static bool same_value(const comparison *c, sw_id a, sw_id b)
{
	const sw_value *x = &c->a->values.data[a], *y = &c->b->values.data[b];
	return x->index == y->index && c->places_a[x->op] == c->places_b[y->op];
}

static bool same_extras(const sw_extra *a, const sw_extra *b)
{
	for (; a && b; a = a->next, b = b->next) {
		if (strcmp(a->name, b->name) != 0 || strcmp(a->text, b->text) != 0)
			return false;
	}
	return !a && !b;
}

static bool same_attributes(comparison *c, const sw_op *a, const sw_op *b)
{
	c->key_a.len = c->key_b.len = 0;
	sw_attributes_key((sw_opcode)a->opcode, a->attrs, &c->key_a);
	sw_attributes_key((sw_opcode)b->opcode, b->attrs, &c->key_b);
	return c->key_a.len == c->key_b.len &&
	       (c->key_a.len == 0 || memcmp(c->key_a.data, c->key_b.data, c->key_a.len) == 0);
}

static bool same_control(const comparison *c, const sw_id *a, const sw_id *b)
{
	static const sw_id none = SW_NO_ID;
	a = a ? a : &none;
	b = b ? b : &none;
	for (; *a != SW_NO_ID && *b != SW_NO_ID; a++, b++) {
		if (c->places_a[*a] != c->places_b[*b])
			return false;
	}
	return *a == *b;
}

static bool same_results(const comparison *c, const sw_op *a, const sw_op *b)
{
	if (a->n_results != b->n_results || sw_op_is_tuple(a) != sw_op_is_tuple(b))
		return differ(c, a, b, "number of results");
	for (uint32_t r = 0; r < a->n_results; r++) {
		if (!sw_shape_equal(sw_value_shape(c->a, a->first_result + r),
		                    sw_value_shape(c->b, b->first_result + r)))
			return differ(c, a, b, "shapes");
	}
	return true;
}

static bool same_references(comparison *c, const sw_op *a, const sw_op *b)
{
	if (a->n_operands != b->n_operands || a->n_called != b->n_called)
		return differ(c, a, b, "number of operands or called computations");
	for (uint32_t i = 0; i < a->n_operands; i++) {
		if (!same_value(c, a->operands[i], b->operands[i]))
			return differ(c, a, b, "operands");
	}
	for (uint16_t k = 0; k < a->n_called; k++)
		add_pair(c, a->called[k], b->called[k]);
	return same_control(c, a->control, b->control) || differ(c, a, b, "control predecessors");
}

static bool same_op(comparison *c, const sw_op *a, const sw_op *b)
{
	if (a->opcode != b->opcode || strcmp(sw_op_opcode_name(a), sw_op_opcode_name(b)) != 0)
		return differ(c, a, b, "opcodes");
	if (!same_results(c, a, b) || !same_references(c, a, b))
		return false;
	if (!same_attributes(c, a, b) || !same_extras(a->extras, b->extras))
		return differ(c, a, b, "attributes");
	return true;
}

static bool same_computation(comparison *c, pair p)
{
	const sw_computation *a = &c->a->computations.data[p.a], *b = &c->b->computations.data[p.b];
	for (size_t i = 0; i < SW_MIN(a->ops.len, b->ops.len); i++) {
		if (!same_op(c, sw_op_at(c->a, a->ops.data[i]), sw_op_at(c->b, b->ops.data[i])))
			return false;
	}
	bool same = a->ops.len == b->ops.len && a->results.len == b->results.len &&
	            a->root_tuple == b->root_tuple && same_extras(a->extras, b->extras);
	for (size_t i = 0; same && i < a->results.len; i++)
		same = same_value(c, a->results.data[i], b->results.data[i]);
	if (!same)
		sw_fail(c->difference, SW_NO,
		        "computations '%s' and '%s': number of ops, or results", a->name, b->name);
	return same;
}

static bool same_aliases(const sw_program *a, const sw_program *b)
{
	if (a->aliases.len != b->aliases.len || a->donors.len != b->donors.len)
		return false;
	for (size_t i = 0; i < a->aliases.len; i++) {
		const sw_alias *x = &a->aliases.data[i], *y = &b->aliases.data[i];
		if (x->output != y->output || x->input != y->input || x->must != y->must)
			return false;
	}
	return a->donors.len == 0 ||
	       memcmp(a->donors.data, b->donors.data, sizeof(*a->donors.data) * a->donors.len) == 0;
}

static bool same_paddings(const sw_program *a, const sw_program *b)
{
	if (a->paddings.len != b->paddings.len)
		return false;
	for (size_t i = 0; i < a->paddings.len; i++) {
		const sw_padding *x = &a->paddings.data[i], *y = &b->paddings.data[i];
		if (x->output != y->output || x->leaf != y->leaf || x->dim != y->dim ||
		    x->size != y->size)
			return false;
	}
	return true;
}

static bool same_header(const sw_program *a, const sw_program *b, sw_error *difference)
{
	const char *what = NULL;
	if (a->num_partitions != b->num_partitions || a->replica_count != b->replica_count)
		what = "num_partitions or replica_count";
	else if (!same_aliases(a, b))
		what = "input_output_alias or buffer_donor";
	else if (!same_paddings(a, b))
		what = "paddings of inputs or outputs";
	else if (!same_extras(a->extras, b->extras))
		what = "attributes of the module";
	else if ((a->entry < 0) != (b->entry < 0))
		what = "one has no entry computation";
	if (what)
		sw_fail(difference, SW_NO, "programs '%s' and '%s': %s", a->name, b->name, what);
	return !what;
}

bool sw_program_equal(const sw_program *a, const sw_program *b, sw_error *difference)
{
	if (!same_header(a, b, difference))
		return false;
	comparison c = {.a = a, .b = b, .difference = difference};
	sw_arena_init(&c.arena);
	c.places_a = op_places(a, &c.arena);
	c.places_b = op_places(b, &c.arena);
	if (a->entry >= 0)
		add_pair(&c, a->entry, b->entry);
	bool same = true;
	while (same && c.todo.len > 0)
		same = same_computation(&c, c.todo.data[--c.todo.len]);
	sw_vec_clear(&c.todo);
	sw_map_clear(&c.seen);
	sw_text_clear(&c.key_a);
	sw_text_clear(&c.key_b);
	sw_arena_clear(&c.arena);
	return same;
}

/* ---- hashing ---------------------------------------------------------------------------- */

typedef struct hasher {
	const sw_program *program;
	const uint32_t *places;
	uint64_t *computations; /* hashes of the computations that were visited */
	sw_text key;
} hasher;

static uint64_t hash_text(uint64_t h, const char *text)
{
	return sw_hash_bytes(text, strlen(text), h);
}

static uint64_t hash_shape(uint64_t h, sw_shape shape)
{
	h = sw_hash_u64(h, (uint64_t)shape.type << 32 | shape.bounded);
	return shape.rank ? sw_hash_bytes(shape.dims, sizeof(*shape.dims) * (size_t)shape.rank, h)
	                  : h;
}

static uint64_t hash_value(const hasher *s, uint64_t h, sw_id value)
{
	const sw_value *v = &s->program->values.data[value];
	return sw_hash_u64(h, (uint64_t)s->places[v->op] << 32 | v->index);
}

static uint64_t hash_extras(uint64_t h, const sw_extra *extras)
{
	for (const sw_extra *e = extras; e; e = e->next)
		h = hash_text(hash_text(h, e->name), e->text);
	return h;
}

static uint64_t hash_op(hasher *s, uint64_t h, const sw_op *op)
{
	h = hash_text(h, sw_op_opcode_name(op));
	h = sw_hash_u64(h, (uint64_t)op->n_results << 32 | op->n_operands);
	h = sw_hash_u64(h, sw_op_is_tuple(op));
	for (uint32_t r = 0; r < op->n_results; r++)
		h = hash_shape(h, sw_value_shape(s->program, op->first_result + r));
	for (uint32_t i = 0; i < op->n_operands; i++)
		h = hash_value(s, h, op->operands[i]);
	for (uint16_t k = 0; k < op->n_called; k++)
		h = sw_hash_u64(h, s->computations[op->called[k]]);
	for (const sw_id *c = op->control; c && *c != SW_NO_ID; c++)
		h = sw_hash_u64(h, s->places[*c]);
	s->key.len = 0;
	sw_attributes_key((sw_opcode)op->opcode, op->attrs, &s->key);
	h = s->key.len ? sw_hash_bytes(s->key.data, s->key.len, h) : h;
	return hash_extras(h, op->extras);
}

static uint64_t hash_computation(hasher *s, const sw_computation *c)
{
	uint64_t h = c->root_tuple;
	for (size_t i = 0; i < c->ops.len; i++)
		h = hash_op(s, h, sw_op_at(s->program, c->ops.data[i]));
	for (size_t i = 0; i < c->results.len; i++)
		h = hash_value(s, h, c->results.data[i]);
	return hash_extras(h, c->extras);
}

static uint64_t hash_header(const sw_program *p, uint64_t h)
{
	h = sw_hash_u64(sw_hash_u64(h, (uint64_t)p->num_partitions), (uint64_t)p->replica_count);
	for (size_t i = 0; i < p->aliases.len; i++) {
		h = sw_hash_u64(h, (uint64_t)p->aliases.data[i].output << 32 |
		                           p->aliases.data[i].input);
		h = sw_hash_u64(h, p->aliases.data[i].must);
	}
	for (size_t i = 0; i < p->donors.len; i++)
		h = sw_hash_u64(h, p->donors.data[i]);
	for (size_t i = 0; i < p->paddings.len; i++) {
		const sw_padding *padding = &p->paddings.data[i];
		h = sw_hash_u64(h, (uint64_t)padding->leaf << 1 | padding->output);
		h = sw_hash_u64(sw_hash_u64(h, (uint64_t)padding->dim), (uint64_t)padding->size);
	}
	return hash_extras(h, p->extras);
}

uint64_t sw_program_hash(const sw_program *program)
{
	sw_arena arena;
	sw_arena_init(&arena);
	hasher s = {.program = program, .places = op_places(program, &arena)};
	s.computations = SW_NEW_N(&arena, uint64_t, program->computations.len + 1);
	int32_t *order;
	sw_program_order(program, &arena, &order);
	for (size_t c = 0; c < program->computations.len; c++)
		s.computations[order[c]] =
			hash_computation(&s, &program->computations.data[order[c]]);
	uint64_t h = hash_header(program, program->entry < 0 ? 0 : s.computations[program->entry]);
	sw_text_clear(&s.key);
	sw_arena_clear(&arena);
	return h;
}
