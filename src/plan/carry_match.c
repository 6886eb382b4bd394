/*
 * Which op of a program that has changed is which of the plan's. Ops are matched by what the plan
 * file says of each (its SIGNATURE: hashes of what it is and of what lies around it, with sizes and
 * without) and by name; names alone are not trusted, since readers number ops anew at every change:
 *
 *   name and surroundings           exactly, then of other sizes
 *   surroundings alone              the k-th of its like is the k-th, where there are as many
 *   name and kind                   the op itself was changed, or what is around it
 *   what stands behind a match      likewise, under other names
 *   surroundings, as far as there are any
 *   what stands behind a match, whatever it is: an op in the place of another
 *
 * What is left of the program is new.
 */
#include "plan/carry.h"

#include <inttypes.h>
#include <string.h>

/* Uses around an op that its surroundings reach. */
#define RADIUS 4
/* Less than one part in so many of the contractions and states of the program has a match: it is
 * another program. */
#define LEAST_PART 2

typedef sw_carrier carrier;
typedef sw_old_op old_op;
typedef sw_signature signature;

/* ---- signatures ------------------------------------------------------------------------- */

static signature *signatures_of(const sw_program *p, sw_arena *arena)
{
	signature *list = SW_NEW_N(arena, signature, p->ops.len + 1);
	const uint64_t *own = sw_program_colours(p, 0, true, arena),
		       *kind = sw_program_colours(p, 0, false, arena),
		       *exact = sw_program_colours(p, RADIUS, true, arena),
		       *form = sw_program_colours(p, RADIUS, false, arena);
	for (size_t i = 0; i < p->ops.len; i++)
		list[i] = (signature){own[i] & 0xffff, kind[i] & 0xffff, exact[i] & 0xffffffff,
		                      form[i] & 0xffffffff};
	return list;
}

/* Four hashes; then, where the op has a strategy, the sizes of its factors, by which strides are
 * scaled. */
json_t *sw_plan_signatures(const sw_plan *plan)
{
	const sw_program *p = plan->program;
	sw_arena arena;
	sw_text text = {0};
	json_t *ops = json_object();
	sw_arena_init(&arena);
	const signature *list = signatures_of(p, &arena);
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

static bool parse_signature(const char *text, signature *s)
{
	return strspn(text, "0123456789abcdef") == 24 &&
	       sscanf(text, "%4" SCNx64 "%4" SCNx64 "%8" SCNx64 "%8" SCNx64, &s->own, &s->kind,
	              &s->exact, &s->form) == 4;
}

/* ---- matching --------------------------------------------------------------------------- */

static sw_status read_old(carrier *c, const json_t *ops)
{
	const char *name;
	json_t *text;
	json_object_foreach((json_t *)ops, name, text)
	{
		old_op old = {.name = name, .text = json_string_value(text), .match = SW_NO_ID};
		if (!old.text || !parse_signature(old.text, &old.is))
			return sw_fail(c->err, SW_ERR_INPUT,
			               "ops.%s: expected a signature: make the plan again", name);
		sw_map_put(&c->old_by_name, name, strlen(name), (uint32_t)c->old.len);
		sw_vec_push(&c->old, old);
	}
	return SW_OK;
}

static void pair(carrier *c, uint32_t old, sw_id id)
{
	c->old.data[old].match = id;
	c->match[id] = old;
}

typedef uint64_t part_of(const signature *s);
static uint64_t exact_of(const signature *s)
{
	return s->exact << 16 | s->own;
}
static uint64_t form_of(const signature *s)
{
	return s->form << 16 | s->kind;
}
static uint64_t nothing_of(const signature *s)
{
	(void)s;
	return 0;
}
static uint64_t own_of(const signature *s)
{
	return s->own;
}
static uint64_t kind_of(const signature *s)
{
	return s->kind;
}

static void match_names(carrier *c, part_of *part)
{
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const char *name = sw_op_at(c->program, id)->name;
		uint32_t old = sw_map_get(&c->old_by_name, name, strlen(name));
		if (c->match[id] == SW_ABSENT && old != SW_ABSENT &&
		    c->old.data[old].match == SW_NO_ID &&
		    part(&c->old.data[old].is) == part(&c->is[id]))
			pair(c, old, id);
	}
}

/* Those without a match, by what is looked at. */
typedef struct group {
	SW_VEC(uint32_t) old;
	SW_VEC(sw_id) now;
} group;
typedef SW_VEC(group) groups;

static group *group_of(groups *all, sw_map *index, uint64_t key)
{
	uint32_t fresh = (uint32_t)all->len,
		 number = sw_map_intern(index, &key, sizeof(key), fresh);
	if (number == fresh)
		sw_vec_push(all, ((group){0}));
	return &all->data[number];
}

/* The k-th of its like is the k-th; with `even` only where there are as many of them. */
static void match_order(carrier *c, part_of *part, bool even)
{
	groups all = {0};
	sw_map index = {0};
	for (uint32_t i = 0; i < c->old.len; i++)
		if (c->old.data[i].match == SW_NO_ID)
			sw_vec_push(&group_of(&all, &index, part(&c->old.data[i].is))->old, i);
	for (sw_id id = 0; id < c->program->ops.len; id++)
		if (c->match[id] == SW_ABSENT)
			sw_vec_push(&group_of(&all, &index, part(&c->is[id]))->now, id);
	for (size_t g = 0; g < all.len; g++) {
		group *x = &all.data[g];
		size_t n = SW_MIN(x->old.len, x->now.len);
		for (size_t k = 0; k < n && (!even || x->old.len == x->now.len); k++)
			pair(c, x->old.data[k], x->now.data[k]);
		sw_vec_clear(&x->old);
		sw_vec_clear(&x->now);
	}
	sw_vec_clear(&all);
	sw_map_clear(&index);
}

/* What stands behind a match in both, one after the other: around an op that has changed all
 * surroundings have. */
static void match_neighbours(carrier *c, part_of *part)
{
	uint32_t next = 0;
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		if (c->match[id] == SW_ABSENT && next < c->old.len &&
		    c->old.data[next].match == SW_NO_ID &&
		    part(&c->old.data[next].is) == part(&c->is[id]))
			pair(c, next, id);
		next = c->match[id] != SW_ABSENT ? c->match[id] + 1 : next + 1;
	}
}

static void match_all(carrier *c)
{
	match_names(c, exact_of);
	match_order(c, exact_of, true);
	match_names(c, form_of);
	match_order(c, form_of, true);
	match_names(c, kind_of);
	match_neighbours(c, own_of);
	match_neighbours(c, kind_of);
	match_order(c, exact_of, false);
	match_order(c, form_of, false);
	match_neighbours(c, nothing_of);
}

/* A new op that has its like among the old ones (one more layer) does as that. */
static void find_alike(carrier *c)
{
	sw_map index = {0};
	for (uint32_t i = 0; i < c->old.len; i++) {
		uint64_t form = form_of(&c->old.data[i].is);
		sw_map_put(&index, &form, sizeof(form), i);
	}
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		uint64_t form = form_of(&c->is[id]);
		c->alike[id] = c->match[id] != SW_ABSENT ? c->match[id]
		                                         : sw_map_get(&index, &form, sizeof(form));
	}
	sw_map_clear(&index);
}

/* ---- what changed ----------------------------------------------------------------------- */

static void note(carrier *c, const char *name, int32_t *count)
{
	(*count)++;
	if (!c->changes->first)
		c->changes->first = sw_arena_text(&c->plan->arena, name);
}

static void count_changes(carrier *c)
{
	c->changes->n_ops = (int32_t)c->program->ops.len;
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const char *name = sw_op_at(c->program, id)->name;
		if (c->match[id] == SW_ABSENT)
			note(c, name, &c->changes->added);
		else if (c->old.data[c->match[id]].is.own != c->is[id].own)
			note(c, name, &c->changes->changed);
	}
	for (uint32_t i = 0; i < c->old.len; i++)
		if (c->old.data[i].match == SW_NO_ID)
			note(c, c->old.data[i].name, &c->changes->gone);
}

/* Contractions, and what is kept between steps. */
static bool matters(const carrier *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	return op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION ||
	       op->opcode == SW_OP_RAGGED_DOT ||
	       (op->opcode == SW_OP_PARAMETER && op->computation == c->program->entry);
}

/* By more than its place. */
static bool is_sure(const carrier *c, sw_id id)
{
	const old_op *old = c->match[id] == SW_ABSENT ? NULL : &c->old.data[c->match[id]];
	return old && (form_of(&old->is) == form_of(&c->is[id]) ||
	               strcmp(old->name, sw_op_at(c->program, id)->name) == 0);
}

static sw_status check_enough(const carrier *c)
{
	int64_t all = 0, found = 0;
	for (sw_id id = 0; id < c->program->ops.len; id++)
		if (matters(c, id)) {
			all++;
			found += is_sure(c, id);
		}
	if (found * LEAST_PART >= all && found > 0)
		return SW_OK;
	return sw_fail(c->err, SW_ERR_INPUT,
	               "this plan was made for another program: of %" PRId64
	               " inputs, matrix products and convolutions of %s it has %" PRId64
	               "; plan it again",
	               all, c->plan->program_path, found);
}

sw_status sw_carry_match(sw_carrier *c, const json_t *ops)
{
	size_t n = c->program->ops.len;
	c->is = signatures_of(c->program, &c->arena);
	c->match = SW_NEW_N(&c->arena, uint32_t, n + 1);
	c->alike = SW_NEW_N(&c->arena, uint32_t, n + 1);
	memset(c->match, 0xff, sizeof(uint32_t) * n);
	sw_status status = read_old(c, ops);
	if (status == SW_OK)
		match_all(c);
	if (status == SW_OK)
		status = check_enough(c);
	if (status != SW_OK)
		return status;
	find_alike(c);
	count_changes(c);
	return SW_OK;
}
