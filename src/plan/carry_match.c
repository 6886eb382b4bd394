/*
 * Match the ops of a changed program to those of the plan's. Ops are matched by the SIGNATURE in
 * the plan file (hashes of the op and of its surroundings, with and without sizes) and by name;
 * names alone are not trusted, since frontends renumber ops at every change. In order:
 *
 * - same name and surroundings: with equal sizes, then with other sizes
 * - same surroundings: the k-th of a group matches the k-th, where the groups are equally large
 * - same name and kind: the op itself, or an op around it, has changed
 * - the op behind a match: the same under another name
 * - same surroundings, for as many ops of unequal groups as there are
 * - the op behind a match, of any kind: it replaces the old op
 *
 * The ops without a match are new.
 */
#include "plan/carry.h"

#include <inttypes.h>
#include <string.h>

/* number of uses around an op that its surroundings extend over */
#define RADIUS 4
/* It is another program if fewer than 1 / MATCHED_DIVISOR of the contractions and entry inputs
 * match. */
#define MATCHED_DIVISOR 2

/* ---- signatures ------------------------------------------------------------------------- */

static sw_op_signature *signatures_of(const sw_program *p, sw_arena *arena)
{
	sw_op_signature *list = SW_NEW_N(arena, sw_op_signature, p->ops.len + 1);
	const uint64_t *own = sw_program_colours(p, 0, true, arena),
		       *kind = sw_program_colours(p, 0, false, arena),
		       *exact = sw_program_colours(p, RADIUS, true, arena),
		       *form = sw_program_colours(p, RADIUS, false, arena);
	for (size_t i = 0; i < p->ops.len; i++)
		list[i] = (sw_op_signature){own[i] & 0xffff, kind[i] & 0xffff,
		                            exact[i] & 0xffffffff, form[i] & 0xffffffff};
	return list;
}

/* A signature: four hashes; then, where the op has a strategy, the sizes of its factors, by which
 * strides are scaled. */
json_t *sw_plan_signatures(const sw_plan *plan)
{
	const sw_program *p = plan->program;
	sw_arena arena;
	sw_text text = {0};
	json_t *ops = json_object();
	sw_arena_init(&arena);
	const sw_op_signature *list = signatures_of(p, &arena);
	for (size_t i = 0; i < p->ops.len; i++) {
		text.len = 0;
		sw_text_addf(&text, "%04" PRIx64 "%04" PRIx64 "%08" PRIx64 "%08" PRIx64,
		             list[i].own, list[i].kind, list[i].exact, list[i].form);
		for (int32_t f = 0;
		     f < plan->rules[i]->n_factors && !sw_strategy_is_none(&plan->strategies[i]);
		     f++)
			sw_text_addf(&text, " %" PRId64, plan->rules[i]->factors[f].size);
		json_object_set_new(ops, p->ops.data[i].name, json_string(text.data));
	}
	sw_text_clear(&text);
	sw_arena_clear(&arena);
	return ops;
}

static bool parse_signature(const char *text, sw_op_signature *s)
{
	return strspn(text, "0123456789abcdef") == 24 &&
	       sscanf(text, "%4" SCNx64 "%4" SCNx64 "%8" SCNx64 "%8" SCNx64, &s->own, &s->kind,
	              &s->exact, &s->form) == 4;
}

/* ---- matching --------------------------------------------------------------------------- */

static sw_status read_old(sw_plan_carrier *c, const json_t *ops)
{
	const char *name;
	json_t *text;
	json_object_foreach((json_t *)ops, name, text)
	{
		sw_plan_old_op old = {
			.name = name, .text = json_string_value(text), .match = SW_NO_ID};
		if (!old.text || !parse_signature(old.text, &old.signature))
			return sw_fail(c->err, SW_ERR_INPUT,
			               "ops.%s: expected a signature: make the plan again", name);
		sw_map_put(&c->old_by_name, name, strlen(name), (uint32_t)c->old.len);
		sw_vec_push(&c->old, old);
	}
	return SW_OK;
}

static void pair(sw_plan_carrier *c, uint32_t old, sw_id id)
{
	c->old.data[old].match = id;
	c->match[id] = old;
}

typedef uint64_t signature_key_fn(const sw_op_signature *s);
static uint64_t exact_key(const sw_op_signature *s)
{
	return s->exact << 16 | s->own;
}
static uint64_t form_key(const sw_op_signature *s)
{
	return s->form << 16 | s->kind;
}
static uint64_t any_key(const sw_op_signature *s)
{
	(void)s;
	return 0;
}
static uint64_t own_key(const sw_op_signature *s)
{
	return s->own;
}
static uint64_t kind_key(const sw_op_signature *s)
{
	return s->kind;
}

static void match_names(sw_plan_carrier *c, signature_key_fn *key_of)
{
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const char *name = sw_op_at(c->program, id)->name;
		uint32_t old = sw_map_get(&c->old_by_name, name, strlen(name));
		if (c->match[id] == SW_ABSENT && old != SW_ABSENT &&
		    c->old.data[old].match == SW_NO_ID &&
		    key_of(&c->old.data[old].signature) == key_of(&c->signatures[id]))
			pair(c, old, id);
	}
}

/* Ops without a match that have the same key. */
typedef struct unmatched_group {
	SW_VEC(uint32_t) old;
	SW_VEC(sw_id) now;
} unmatched_group;
typedef SW_VEC(unmatched_group) unmatched_groups;

static unmatched_group *group_of(unmatched_groups *all, sw_map *index, uint64_t key)
{
	uint32_t fresh = (uint32_t)all->len,
		 number = sw_map_intern(index, &key, sizeof(key), fresh);
	if (number == fresh)
		sw_vec_push(all, ((unmatched_group){0}));
	return &all->data[number];
}

/* Match the k-th unmatched op of each group to the k-th; with `even` only where a group has as many
 * old ops as new ones. */
static void match_order(sw_plan_carrier *c, signature_key_fn *key_of, bool even)
{
	unmatched_groups all = {0};
	sw_map index = {0};
	for (uint32_t i = 0; i < c->old.len; i++)
		if (c->old.data[i].match == SW_NO_ID)
			sw_vec_push(&group_of(&all, &index, key_of(&c->old.data[i].signature))->old,
			            i);
	for (sw_id id = 0; id < c->program->ops.len; id++)
		if (c->match[id] == SW_ABSENT)
			sw_vec_push(&group_of(&all, &index, key_of(&c->signatures[id]))->now, id);
	for (size_t g = 0; g < all.len; g++) {
		unmatched_group *x = &all.data[g];
		size_t n = SW_MIN(x->old.len, x->now.len);
		for (size_t k = 0; k < n && (!even || x->old.len == x->now.len); k++)
			pair(c, x->old.data[k], x->now.data[k]);
		sw_vec_clear(&x->old);
		sw_vec_clear(&x->now);
	}
	sw_vec_clear(&all);
	sw_map_clear(&index);
}

/* Match ops that directly follow a match in both programs: all ops around a changed op have changed
 * surroundings. */
static void match_neighbours(sw_plan_carrier *c, signature_key_fn *key_of)
{
	uint32_t next = 0;
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		if (c->match[id] == SW_ABSENT && next < c->old.len &&
		    c->old.data[next].match == SW_NO_ID &&
		    key_of(&c->old.data[next].signature) == key_of(&c->signatures[id]))
			pair(c, next, id);
		next = c->match[id] != SW_ABSENT ? c->match[id] + 1 : next + 1;
	}
}

static void match_all(sw_plan_carrier *c)
{
	match_names(c, exact_key);
	match_order(c, exact_key, true);
	match_names(c, form_key);
	match_order(c, form_key, true);
	match_names(c, kind_key);
	match_neighbours(c, own_key);
	match_neighbours(c, kind_key);
	match_order(c, exact_key, false);
	match_order(c, form_key, false);
	match_neighbours(c, any_key);
}

/* Let a new op that resembles an old one (one more layer) take that one's decisions. */
static void find_sources(sw_plan_carrier *c)
{
	sw_map index = {0};
	for (uint32_t i = 0; i < c->old.len; i++) {
		uint64_t form = form_key(&c->old.data[i].signature);
		sw_map_put(&index, &form, sizeof(form), i);
	}
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		uint64_t form = form_key(&c->signatures[id]);
		c->source[id] = c->match[id] != SW_ABSENT ? c->match[id]
		                                          : sw_map_get(&index, &form, sizeof(form));
	}
	sw_map_clear(&index);
}

/* ---- changes ---------------------------------------------------------------------------- */

static void count_change(sw_plan_carrier *c, const char *name, int32_t *count)
{
	(*count)++;
	if (!c->changes->first)
		c->changes->first = sw_arena_text(&c->plan->arena, name);
}

static void count_changes(sw_plan_carrier *c)
{
	c->changes->n_ops = (int32_t)c->program->ops.len;
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const char *name = sw_op_at(c->program, id)->name;
		if (c->match[id] == SW_ABSENT)
			count_change(c, name, &c->changes->added);
		else if (c->old.data[c->match[id]].signature.own != c->signatures[id].own)
			count_change(c, name, &c->changes->changed);
	}
	for (uint32_t i = 0; i < c->old.len; i++)
		if (c->old.data[i].match == SW_NO_ID)
			count_change(c, c->old.data[i].name, &c->changes->gone);
}

/* Contractions and entry inputs decide whether it is still the same program. */
static bool is_significant(const sw_plan_carrier *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	return op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION ||
	       op->opcode == SW_OP_RAGGED_DOT ||
	       (op->opcode == SW_OP_PARAMETER && op->computation == c->program->entry);
}

/* Does the op match by its surroundings or name, and not by its position alone? */
static bool is_confident_match(const sw_plan_carrier *c, sw_id id)
{
	const sw_plan_old_op *old = c->match[id] == SW_ABSENT ? NULL : &c->old.data[c->match[id]];
	return old && (form_key(&old->signature) == form_key(&c->signatures[id]) ||
	               strcmp(old->name, sw_op_at(c->program, id)->name) == 0);
}

static sw_status check_enough(const sw_plan_carrier *c)
{
	int64_t all = 0, found = 0;
	for (sw_id id = 0; id < c->program->ops.len; id++)
		if (is_significant(c, id)) {
			all++;
			found += is_confident_match(c, id);
		}
	if (found * MATCHED_DIVISOR >= all && found > 0)
		return SW_OK;
	return sw_fail(c->err, SW_ERR_INPUT,
	               "this plan was made for another program: of %" PRId64
	               " inputs, matrix products and convolutions of %s it has %" PRId64
	               "; plan it again",
	               all, c->plan->program_path, found);
}

sw_status sw_carry_match(sw_plan_carrier *c, const json_t *ops)
{
	size_t n = c->program->ops.len;
	c->signatures = signatures_of(c->program, &c->arena);
	c->match = SW_NEW_N(&c->arena, uint32_t, n + 1);
	c->source = SW_NEW_N(&c->arena, uint32_t, n + 1);
	memset(c->match, 0xff, sizeof(uint32_t) * n);
	sw_status status = read_old(c, ops);
	if (status == SW_OK)
		match_all(c);
	if (status == SW_OK)
		status = check_enough(c);
	if (status != SW_OK)
		return status;
	find_sources(c);
	count_changes(c);
	return SW_OK;
}
