/*
 * A plan for a program that has changed since. Ops are matched by what the plan file says of each (its SIGNATURE: hashes of what it is and of
 * what lies around it, with sizes and without) and by name; names alone are not trusted, since readers number ops anew at every change:
 *
 *   name and surroundings           exactly, then of other sizes
 *   surroundings alone              the k-th of its like is the k-th, where there are as many
 *   name and kind                   the op itself was changed, or what is around it
 *   what stands behind a match      likewise, under other names
 *   surroundings, as far as there are any
 *   what stands behind a match, whatever it is: an op in the place of another
 *
 * What is left of the program is new. Decisions of a match are taken over, strides scaled with the sizes; a new op does as one that is alike does, or
 * as its largest operand lies; what does not fit is whole. Then it is a plan, or it is refused.
 */
#include "plan/carry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Uses around an op that its surroundings reach. */
#define RADIUS 4
/* Less than one part in so many of the contractions and states of the program has a match: it is another program. */
#define LEAST_PART 2

typedef struct signature {
	uint64_t own, kind, exact,
		form; /* the op with its sizes, without; with its surroundings with sizes, without */
} signature;

/* ---- signatures ----------------------------------------------------------------------------------------------------- */

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

/* Four hashes; then, where the op has a strategy, the sizes of its factors, by which strides are scaled. */
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
		sw_text_addf(&text, "%04" PRIx64 "%04" PRIx64 "%08" PRIx64 "%08" PRIx64, list[i].own,
		             list[i].kind, list[i].exact, list[i].form);
		for (int32_t f = 0;
		     f < plan->rules[i]->n_factors && !sw_strategy_is_none(&plan->strategies[i]); f++)
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
	       sscanf(text, "%4" SCNx64 "%4" SCNx64 "%8" SCNx64 "%8" SCNx64, &s->own, &s->kind, &s->exact,
	              &s->form) == 4;
}

/* ---- matching ------------------------------------------------------------------------------------------------------- */

typedef struct old_op {
	const char *name, *text;
	signature is;
	sw_id match; /* op of the program, SW_NO_ID */
} old_op;

typedef struct carrier {
	const json_t *decisions;
	sw_plan *plan;
	const sw_program *program;
	sw_arena arena;
	signature *is;      /* per op of the program */
	uint32_t *match;    /* per op: old op, SW_ABSENT */
	uint32_t *alike;    /* per op without a match: an op whose decisions it takes; SW_ABSENT */
	SW_VEC(old_op) old; /* in the order of the file, which is the program's */
	sw_map old_by_name;
	sw_plan_changes *changes;
	sw_error *err;
} carrier;

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
		if (c->match[id] == SW_ABSENT && old != SW_ABSENT && c->old.data[old].match == SW_NO_ID &&
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
	uint32_t fresh = (uint32_t)all->len, number = sw_map_intern(index, &key, sizeof(key), fresh);
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

/* What stands behind a match in both, one after the other: around an op that has changed all surroundings have. */
static void match_neighbours(carrier *c, part_of *part)
{
	uint32_t next = 0;
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		if (c->match[id] == SW_ABSENT && next < c->old.len && c->old.data[next].match == SW_NO_ID &&
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
		c->alike[id] =
			c->match[id] != SW_ABSENT ? c->match[id] : sw_map_get(&index, &form, sizeof(form));
	}
	sw_map_clear(&index);
}

/* ---- what changed --------------------------------------------------------------------------------------------------- */

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
	               " inputs, matrix products and convolutions of %s it has %" PRId64 "; plan it again",
	               all, c->plan->program_path, found);
}

/* ---- decisions ------------------------------------------------------------------------------------------------------ */

static void replaced(carrier *c, sw_id id)
{
	c->changes->replaced++;
	if (!c->changes->first_replaced)
		c->changes->first_replaced = sw_arena_text(&c->plan->arena, sw_op_at(c->program, id)->name);
}

/* Strides of the strategy of an op whose factors had these sizes, after the hashes of its signature. */
static bool scale(const char *sizes, const sw_rule *rule, const char *words, sw_text *scaled)
{
	int64_t was[64], n = 0;
	char *end;
	for (sizes += 24; *sizes && n < 64; sizes = end)
		was[n++] = strtoll(sizes, &end, 10);
	for (const char *c = words; *c;) {
		bool stride = *c == '@';
		long factor = 0;
		if (stride) {
			const char *digits = c;
			while (digits > words && strchr("0123456789", digits[-1]))
				digits--;
			factor = strtol(digits, NULL, 10);
		}
		sw_text_add_n(scaled, c, 1);
		c++;
		if (!stride)
			continue;
		int64_t old = strtoll(c, &end, 10);
		c = end;
		if (factor >= n || factor >= rule->n_factors || was[factor] < 1 ||
		    old > INT64_MAX / rule->factors[factor].size)
			return false;
		sw_text_addf(scaled, "%" PRId64, SW_MAX(old * rule->factors[factor].size / was[factor], 1));
	}
	return true;
}

/* The strategy of the old op, if it is one for this op. */
static bool take_strategy(carrier *c, sw_id id, const old_op *old, sw_strategy *strategy)
{
	const char *words =
		json_string_value(json_object_get(json_object_get(c->decisions, "strategies"), old->name));
	sw_text scaled = {0};
	*strategy = sw_strategy_none(&c->plan->cluster->atoms);
	bool ok = !words || (scale(old->text, c->plan->rules[id], words, &scaled) &&
	                     sw_plan_strategy_words(scaled.data, c->plan->rules[id], strategy));
	sw_text_clear(&scaled);
	return ok;
}

static bool is_possible(const carrier *c, sw_id id, const sw_strategy *strategy)
{
	const sw_op *op = sw_op_at(c->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	bool ok = sw_rule_layouts(c->program, id, c->plan->rules[id], &c->plan->cluster->atoms, strategy,
	                          layouts, layouts + op->n_operands);
	for (uint32_t k = 0; ok && k < op->n_results; k++)
		ok = sw_layout_valid(&c->plan->cluster->atoms,
		                     sw_value_shape(c->program, op->first_result + k),
		                     &layouts[op->n_operands + k]);
	free(layouts);
	return ok;
}

/* As its largest operand lies. */
static sw_strategy as_neighbour(const carrier *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	sw_strategy s = sw_strategy_none(&c->plan->cluster->atoms);
	uint32_t largest = 0, mask = (uint32_t)((UINT64_C(1) << c->plan->cluster->atoms.n) - 1);
	for (uint32_t k = 1; k < op->n_operands; k++)
		if (sw_shape_elements(sw_value_shape(c->program, op->operands[k])) >
		    sw_shape_elements(sw_value_shape(c->program, op->operands[largest])))
			largest = k;
	if (op->n_operands == 0 || c->plan->rules[id]->n_factors == 0)
		return s;
	const sw_layout *lies = sw_plan_layout(c->plan, c->plan->produced[op->operands[largest]]);
	sw_rule_match(c->plan->rules[id], &c->plan->cluster->atoms, false, (int32_t)largest, lies, &mask,
	              &s);
	return is_possible(c, id, &s) ? s : sw_strategy_none(&c->plan->cluster->atoms);
}

static void derive(carrier *c, sw_id id)
{
	sw_plan *plan = c->plan;
	const sw_op *op = sw_op_at(c->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	if (sw_plan_op_layouts(plan, id, layouts, layouts + op->n_operands))
		for (uint32_t k = 0; k < op->n_results; k++)
			plan->produced[op->first_result + k] =
				sw_layouts_id(&plan->layouts, &layouts[op->n_operands + k]);
	free(layouts);
}

/* Name in the file of a value that is there now; false: it is new. */
static bool old_name(const carrier *c, sw_id value, sw_text *name)
{
	const sw_value *v = &c->program->values.data[value];
	if (c->alike[v->op] == SW_ABSENT)
		return false;
	name->len = 0;
	sw_text_add(name, c->old.data[c->alike[v->op]].name);
	if (v->index > 0)
		sw_text_addf(name, ":%u", v->index);
	return true;
}

/* The layout that a section of the file has for a value; false: none that is one for this value. */
static bool take_layout(carrier *c, const char *section, sw_id value, uint32_t *number)
{
	const sw_value *v = &c->program->values.data[value];
	sw_text name = {0};
	sw_layout layout;
	sw_error ignored = {0};
	if (!old_name(c, value, &name))
		return false;
	const char *words =
		json_string_value(json_object_get(json_object_get(c->decisions, section), name.data));
	sw_text_clear(&name);
	if (!words ||
	    sw_layout_parse(&c->plan->cluster->atoms, v->shape, words, &layout, &ignored) != SW_OK ||
	    !sw_layout_valid(&c->plan->cluster->atoms, v->shape, &layout))
		return words == NULL;
	*number = sw_layouts_id(&c->plan->layouts, &layout);
	return true;
}

static void take_ports(carrier *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	bool all = true;
	for (uint32_t k = 0; k < op->n_results; k++)
		all = take_layout(c, "layouts", op->first_result + k,
		                  &c->plan->produced[op->first_result + k]) &&
		      all;
	if (!all)
		replaced(c, id);
}

/* In the order of the program, so that a new op sees how what it reads lies. */
static void take_ops(carrier *c)
{
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const sw_op *op = sw_op_at(c->program, id);
		sw_strategy *s = &c->plan->strategies[id];
		if (op->opcode == SW_OP_PARAMETER || sw_is_region(op)) {
			take_ports(c, id);
			continue;
		}
		bool taken = c->alike[id] != SW_ABSENT &&
		             take_strategy(c, id, &c->old.data[c->alike[id]], s) && is_possible(c, id, s);
		if (!taken)
			*s = as_neighbour(c, id);
		if (!taken && c->match[id] != SW_ABSENT)
			replaced(c, id);
		derive(c, id);
	}
}

/* What a loop carries lies as its results do. */
static void agree_loops(carrier *c)
{
	const sw_program *p = c->program;
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		for (uint32_t k = 0; op->opcode == SW_OP_WHILE && k < op->n_called; k++) {
			const sw_op *inside =
				sw_op_at(p, p->computations.data[op->called[k]].parameters.data[0]);
			memcpy(c->plan->produced + inside->first_result,
			       c->plan->produced + op->first_result, sizeof(uint32_t) * op->n_results);
		}
	}
}

static void take_kept(carrier *c)
{
	sw_plan *plan = c->plan;
	memcpy(plan->kept, plan->produced, sizeof(uint32_t) * c->program->values.len);
	for (sw_id v = 0; v < c->program->values.len; v++) {
		uint32_t kept = plan->produced[v];
		if (take_layout(c, "kept", v, &kept) &&
		    sw_plan_can_become(plan, v, sw_plan_layout(plan, plan->produced[v]),
		                       sw_plan_layout(plan, kept)))
			plan->kept[v] = kept;
	}
}

/* Names of ops that move anything anew. */
static void find_anew(const json_t *values, sw_map *readers)
{
	const char *name;
	json_t *list;
	json_object_foreach((json_t *)values, name, list) for (size_t i = 0; i < json_array_size(list); i++)
	{
		const char *reader = json_string_value(json_array_get(list, i));
		if (reader)
			sw_map_put(readers, reader, strlen(reader), 1);
	}
}

/* As before, and of what is new where its like moves something anew and what it reads is like what is moved anew. */
static void take_anew(carrier *c)
{
	const json_t *values = json_object_get(c->decisions, "anew");
	sw_map readers = {0};
	sw_text name = {0};
	find_anew(values, &readers);
	for (sw_id id = 0; readers.len > 0 && id < c->program->ops.len; id++) {
		const sw_op *op = sw_op_at(c->program, id);
		const char *old = c->alike[id] == SW_ABSENT ? "" : c->old.data[c->alike[id]].name;
		if (sw_map_get(&readers, old, strlen(old)) == SW_ABSENT)
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (old_name(c, op->operands[k], &name) && json_object_get(values, name.data))
				sw_vec_push(&c->plan->anew, ((sw_read){op->operands[k], id}));
	}
	sw_reads_sort(&c->plan->anew);
	sw_map_clear(&readers);
	sw_text_clear(&name);
}

static void take_outputs(carrier *c)
{
	sw_plan *plan = c->plan;
	const sw_computation *entry = sw_entry(c->program);
	const json_t *outputs = json_object_get(c->decisions, "outputs");
	const sw_id *inputs;
	sw_program_inputs(c->program, c->program->entry, &c->arena, &inputs);
	for (uint32_t i = 0; i < plan->n_outputs; i++) {
		sw_shape shape = sw_value_shape(c->program, entry->results.data[i]);
		const char *words = json_string_value(json_array_get(outputs, i));
		sw_layout layout;
		sw_error ignored = {0};
		if (words && json_array_size(outputs) == plan->n_outputs &&
		    sw_layout_parse(&plan->cluster->atoms, shape, words, &layout, &ignored) == SW_OK &&
		    sw_layout_valid(&plan->cluster->atoms, shape, &layout) &&
		    layout.monoid == SW_MONOID_NONE)
			plan->outputs[i] = sw_layouts_id(&plan->layouts, &layout);
	}
	for (size_t i = 0; i < c->program->aliases.len; i++)
		plan->outputs[c->program->aliases.data[i].output] =
			plan->produced[inputs[c->program->aliases.data[i].input]];
}

static void make_whole(carrier *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	c->plan->strategies[id] = sw_strategy_none(&c->plan->cluster->atoms);
	for (uint32_t k = 0; k < op->n_results; k++)
		c->plan->produced[op->first_result + k] = c->plan->kept[op->first_result + k] = 0;
	replaced(c, id);
}

/* What can't be read as it is kept now is made whole; what reads that can always. */
static void repair(carrier *c)
{
	for (sw_id id = 0; id < c->program->ops.len; id++) {
		const sw_op *op = sw_op_at(c->program, id);
		if (!sw_is_region(op) && op->opcode != SW_OP_PARAMETER && !sw_plan_op_fits(c->plan, id))
			make_whole(c, id);
	}
}

static sw_status take_all(carrier *c)
{
	sw_error why = {0};
	match_all(c);
	sw_status status = check_enough(c);
	if (status != SW_OK)
		return status;
	find_alike(c);
	count_changes(c);
	take_ops(c);
	agree_loops(c);
	take_kept(c);
	take_outputs(c);
	take_anew(c);
	repair(c);
	if (sw_plan_verify(c->plan, &why) == SW_OK)
		return SW_OK;
	return sw_fail(c->err, SW_ERR_INPUT,
	               "the program has changed too much since this plan was made (%s): plan it again",
	               why.message);
}

sw_status sw_plan_carry(const json_t *file, sw_plan *plan, sw_error *err)
{
	const json_t *ops = json_object_get(file, "ops");
	carrier c = {.decisions = json_object_get(file, "decisions"),
	             .plan = plan,
	             .program = plan->program,
	             .err = err};
	if (!json_is_object(ops))
		return sw_fail(err, SW_ERR_INPUT,
		               "this plan was made for another program, and does not say enough of it to "
		               "be carried over: plan it again");
	sw_arena_init(&c.arena);
	plan->changes = SW_NEW(&plan->arena, sw_plan_changes);
	plan->changes->program = true;
	c.changes = plan->changes;
	c.is = signatures_of(plan->program, &c.arena);
	c.match = SW_NEW_N(&c.arena, uint32_t, plan->program->ops.len + 1);
	c.alike = SW_NEW_N(&c.arena, uint32_t, plan->program->ops.len + 1);
	memset(c.match, 0xff, sizeof(uint32_t) * plan->program->ops.len);
	sw_status status = read_old(&c, ops);
	if (status == SW_OK)
		status = take_all(&c);
	sw_vec_clear(&c.old);
	sw_map_clear(&c.old_by_name);
	sw_arena_clear(&c.arena);
	return status;
}

/* ---- another cluster, and what all that costs ------------------------------------------------------------------------ */

static sw_plan_changes *changes_of(sw_plan *plan)
{
	if (!plan->changes) {
		plan->changes = SW_NEW(&plan->arena, sw_plan_changes);
		plan->changes->was = plan->predicted;
	}
	return plan->changes;
}

static void print_atoms(const sw_cluster *cluster, sw_text *text)
{
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		sw_text_addf(text, "%s%d", a ? "x" : "", cluster->atoms.size[a]);
	if (cluster->atoms.n == 0)
		sw_text_add(text, "1");
}

sw_status sw_plan_move(sw_plan *plan, const sw_cluster *cluster, sw_error *err)
{
	const sw_atoms *have = &plan->cluster->atoms, *want = &cluster->atoms;
	if (have->n == want->n &&
	    memcmp(have->size, want->size, sizeof(have->size[0]) * (size_t)have->n) == 0) {
		if (cluster->hash != plan->cluster->hash) {
			sw_plan_changes *changes = changes_of(plan);
			changes->cluster = true;
			changes->cluster_name = sw_arena_text(&plan->arena, plan->cluster->name);
			sw_text differs = {0};
			sw_cluster_print_differences(plan->cluster, cluster, &differs);
			changes->cluster_differs = sw_arena_text(&plan->arena, differs.data);
			sw_text_clear(&differs);
		}
		plan->cluster = cluster;
		return SW_OK;
	}
	sw_text a = {0}, b = {0};
	print_atoms(plan->cluster, &a);
	print_atoms(cluster, &b);
	sw_status status =
		sw_fail(err, SW_ERR_INPUT,
	                "the plan divides %" PRId64 " devices as %s, and cluster '%s' has %" PRId64
	                " as %s: take a part of that shape with --devices, or plan again with --cluster",
	                plan->cluster->n_devices, a.data, cluster->name, cluster->n_devices, b.data);
	sw_text_clear(&a);
	sw_text_clear(&b);
	return status;
}

sw_status sw_plan_measure_again(sw_plan *plan, sw_plan_measure_fn *measure, sw_plan_play_fn *play,
                                sw_error *err)
{
	sw_status status = measure(plan, &plan->predicted, err);
	if (status == SW_OK && play)
		status = play(plan, &plan->predicted, &plan->predicted.step_time_s, err);
	plan->model_s = plan->model_best_s = plan->model_bound_s = plan->lower_bound_s = 0;
	plan->gap = plan->step_gap = 0;
	plan->alternatives.len = 0;
	snprintf(plan->scope, sizeof(plan->scope),
	         "not for what it is used for now: plan again for a bound and alternatives");
	return status;
}

void sw_plan_changes_print(const sw_plan *plan, sw_text *text)
{
	const sw_plan_changes *x = plan->changes;
	if (x->program) {
		sw_text_addf(text,
		             "the program has changed since the plan was made: of %d ops %d differ, %d are "
		             "new, %d are gone",
		             x->n_ops, x->changed, x->added, x->gone);
		if (x->first)
			sw_text_addf(text, " (first '%s')", x->first);
		if (x->replaced)
			sw_text_addf(text, "; %d decisions no longer fit and were made anew (first '%s')",
			             x->replaced, x->first_replaced);
	}
	if (x->cluster)
		sw_text_addf(text, "%sthe plan was made for cluster '%s', not '%s' (%s)",
		             x->program ? "; " : "", x->cluster_name, plan->cluster->name,
		             x->cluster_differs);
	sw_text_add(text, "; predicted step ");
	sw_text_add_seconds(text, x->was.step_time_s);
	sw_text_add(text, " then, ");
	sw_text_add_seconds(text, plan->predicted.step_time_s);
	sw_text_add(text, " now");
}
