#include "partition/coverage.h"

#include <stdlib.h>
#include <string.h>

#include "generate/generate.h"
#include "model/model.h"
#include "rules/row.h"

/* Opcodes that have a rule but can't occur in a plan, besides those that the interpreter does not
 * compute and those that communicate (a program for one device has none). */
static const struct {
	sw_opcode opcode;
	const char *why;
} NEVER_PLANNED[] = {
	{SW_OP_CALL, "the canonical form writes calls out"},
	{SW_OP_FUSION, "and fusions"},
	{SW_OP_BATCH_NORM_GRAD, "and batch normalisations"},
	{SW_OP_BATCH_NORM_INFERENCE, "and batch normalisations"},
	{SW_OP_BATCH_NORM_TRAINING, "and batch normalisations"},
	{SW_OP_COPY, "in the canonical form a copy is its operand"},
	{SW_OP_CUSTOM_CALL, "nothing outside the program is called"},
	{SW_OP_INFEED, "there is no host"},
	{SW_OP_OUTFEED, "there is no host"},
	{SW_OP_ASYNC_START, "nothing is scheduled yet"},
	{SW_OP_ASYNC_UPDATE, "nothing is scheduled yet"},
	{SW_OP_ASYNC_DONE, "nothing is scheduled yet"},
	{SW_OP_COPY_START, "nothing is scheduled yet"},
	{SW_OP_COPY_DONE, "nothing is scheduled yet"},
};

/* ---- counting --------------------------------------------------------------------------- */

static void add_choice(coverage *c, const sw_rule *rule, const sw_choice *choice)
{
	if (choice->kind == SW_CHOICE_PASS)
		c->passed[choice->monoid]++;
	if (choice->kind != SW_CHOICE_SPLIT)
		return;
	const sw_factor *factor = &rule->factors[choice->index];
	c->factors[factor->kind][factor->exchange]++;
	c->streamed += choice->stream_stride > 0;
	if (factor->kind == SW_FACTOR_REDUCED) {
		c->reduced[factor->monoid]++;
		c->joined += factor->joins.n > 0;
	}
}

static void add_op(coverage *c, const sw_plan *plan, sw_id id)
{
	const sw_op *op = sw_op_at(plan->program, id);
	bool shared = false;
	for (int32_t a = 0; a < plan->strategies[id].n; a++) {
		shared |= plan->strategies[id].atom[a].kind != SW_CHOICE_NONE;
		add_choice(c, plan->rules[id], &plan->strategies[id].atom[a]);
	}
	for (int32_t f = 0; f < plan->rules[id]->n_factors; f++)
		c->exchanges_offered[plan->rules[id]->factors[f].exchange]++;
	c->ops++;
	c->occurring[op->opcode]++;
	c->sharable[op->opcode] += plan->rules[id]->n_factors + plan->rules[id]->n_linearities > 0;
	c->shared[op->opcode] += shared;
}

/* Count the moves of one redistribution. The partitioner writes equal ones of a value once; here
 * each is counted. */
static void add_path(coverage *c, const trial *t, sw_id value, uint32_t from, const sw_layout *to)
{
	const sw_path *path = sw_path_cache_get(t->paths, sw_value_shape(t->plan->program, value),
	                                        sw_plan_layout(t->plan, from), to);
	c->steps[path->n]++;
	for (int32_t i = 0; i < path->n; i++)
		c->moves[path->moves[i].kind]++;
}

static void add_reading(coverage *c, const trial *t, sw_id value, const sw_layout *layout)
{
	uint32_t materialised = t->plan->materialised[value];
	if (materialised != t->plan->produced[value])
		add_path(c, t, value, t->plan->produced[value],
		         sw_plan_layout(t->plan, materialised));
	if (!sw_layout_equal(sw_plan_layout(t->plan, materialised), layout))
		add_path(c, t, value, materialised, layout);
}

static void add_readings(coverage *c, const trial *t, sw_id id)
{
	const sw_op *op = sw_op_at(t->plan->program, id);
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	sw_plan_op_layouts(t->plan, id, layouts, layouts + op->n_operands);
	for (uint32_t k = 0; k < op->n_operands; k++)
		add_reading(c, t, op->operands[k], &layouts[k]);
	free(layouts);
}

void coverage_add(coverage *c, const trial *t)
{
	const sw_program *p = t->plan->program;
	bool *planned = sw_alloc(p->computations.len + 1);
	sw_mark_planned(p, p->entry, planned);
	c->cases++;
	c->padded += t->plan->original != NULL;
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		if (!planned[op->computation])
			continue;
		add_op(c, t->plan, id);
		add_readings(c, t, id);
		for (uint32_t k = 0; op->opcode == SW_OP_WHILE && k < op->n_results; k++)
			c->carried_partial +=
				sw_layout_partial_atoms(sw_plan_layout(
					t->plan, t->plan->produced[op->first_result + k])) != 0;
	}
	for (uint32_t i = 0; i < t->plan->n_outputs; i++)
		add_reading(c, t, sw_entry(p)->results.data[i],
		            sw_plan_layout(t->plan, t->plan->outputs[i]));
	free(planned);
}

void coverage_sum(coverage *to, const coverage *from)
{
	int64_t *x = (int64_t *)to;
	const int64_t *y = (const int64_t *)from;
	for (size_t i = 0; i < sizeof(*to) / sizeof(*x); i++)
		x[i] += y[i];
}

/* ---- reporting -------------------------------------------------------------------------- */

static void add_count(sw_text *text, const char *name, const char *more, int64_t n)
{
	sw_text_addf(text, "  %s%s%s %lld", name, *more ? " " : "", more, (long long)n);
}

static const char *factor_name(int kind)
{
	return kind == SW_FACTOR_PARALLEL ? "parallel" : "reduced";
}

static void print_opcodes(const coverage *c, sw_text *text)
{
	sw_text_add(text, "ops (of which shared by atoms):\n");
	int on_line = 0;
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		if (c->occurring[o])
			sw_text_addf(text, "  %-24s%7lld (%lld)%s", sw_opcode_name((sw_opcode)o),
			             (long long)c->occurring[o], (long long)c->shared[o],
			             ++on_line % 3 ? "" : "\n");
	sw_text_add(text, on_line % 3 ? "\n" : "");
}

void coverage_print(const coverage *c, sw_text *text)
{
	sw_text_addf(text, "%lld cases (%lld padded), %lld ops\n", (long long)c->cases,
	             (long long)c->padded, (long long)c->ops);
	print_opcodes(c, text);
	sw_text_add(text, "atoms on factors:");
	for (int k = 0; k < 2; k++)
		for (int e = 0; e < SW_EXCHANGE_COUNT; e++)
			if (c->factors[k][e])
				add_count(text, factor_name(k), sw_exchange_name((sw_exchange)e),
				          c->factors[k][e]);
	add_count(text, "joined", "", c->joined);
	add_count(text, "streamed", "", c->streamed);
	sw_text_add(text, "\nreduced:");
	for (int m = 0; m <= SW_MONOID_OR; m++)
		if (c->reduced[m])
			add_count(text, sw_monoid_name((sw_monoid)m), "", c->reduced[m]);
	sw_text_add(text, "\npassed:");
	for (int m = 0; m <= SW_MONOID_OR; m++)
		if (c->passed[m])
			add_count(text, sw_monoid_name((sw_monoid)m), "", c->passed[m]);
	add_count(text, "carried partial", "", c->carried_partial);
	sw_text_add(text, "\nmoves:");
	for (int m = 0; m < SW_MOVE_COUNT; m++)
		add_count(text, sw_move_name((sw_move_kind)m), "", c->moves[m]);
	sw_text_add(text, "\nredistributions by moves:");
	for (int n = 1; n <= SW_MAX_MOVES; n++)
		if (c->steps[n])
			sw_text_addf(text, "  %d: %lld", n, (long long)c->steps[n]);
	sw_text_add(text, "\n");
}

static bool can_occur(sw_opcode opcode)
{
	for (size_t i = 0; i < SW_COUNT(NEVER_PLANNED); i++)
		if (NEVER_PLANNED[i].opcode == opcode)
			return false;
	return generate_can_compute(opcode) && sw_opcode_class(opcode) != SW_CLASS_COLLECTIVE;
}

static int missing_opcodes(const coverage *c, sw_text *text)
{
	int missing = 0;
	for (const sw_rule_family *const *f = sw_rule_families(); *f; f++)
		for (size_t i = 0; i < (*f)->n; i++) {
			sw_opcode opcode = (*f)->rows[i].opcode;
			bool met =
				c->occurring[opcode] && (c->shared[opcode] || !c->sharable[opcode]);
			if (met || !can_occur(opcode))
				continue;
			sw_text_addf(text, "%s is never %s\n", sw_opcode_name(opcode),
			             c->occurring[opcode] ? "shared" : "there");
			missing++;
		}
	return missing;
}

/* An exchange that no rule has is not missing. */
static bool is_missed(const coverage *c, int exchange)
{
	return c->exchanges_offered[exchange] && !c->factors[SW_FACTOR_PARALLEL][exchange] &&
	       !c->factors[SW_FACTOR_REDUCED][exchange];
}

static int missing_kinds(const coverage *c, sw_text *text)
{
	static const sw_monoid monoids[] = {SW_MONOID_SUM, SW_MONOID_MAX, SW_MONOID_MIN,
	                                    SW_MONOID_AND, SW_MONOID_OR};
	int missing = 0;
	for (size_t i = 0; i < SW_COUNT(monoids); i++) {
		if (!c->passed[monoids[i]] || !c->reduced[monoids[i]]) {
			sw_text_addf(text, "no %s is %s\n", sw_monoid_name(monoids[i]),
			             c->passed[monoids[i]] ? "reduced" : "passed");
			missing++;
		}
	}
	for (int m = 0; m < SW_MOVE_COUNT; m++)
		if (!c->moves[m]) {
			sw_text_addf(text, "no move is %s\n", sw_move_name((sw_move_kind)m));
			missing++;
		}
	for (int e = 1; e < SW_EXCHANGE_COUNT; e++)
		if (is_missed(c, e)) {
			sw_text_addf(text, "no factor with the exchange %s is split\n",
			             sw_exchange_name((sw_exchange)e));
			missing++;
		}
	for (int k = 0; k < 2; k++)
		if (!c->factors[k][SW_EXCHANGE_NONE]) {
			sw_text_addf(text, "no %s factor is split\n", factor_name(k));
			missing++;
		}
	return missing;
}

static int missing_rest(const coverage *c, sw_text *text)
{
	const struct {
		int64_t met;
		const char *what;
	} rest[] = {
		{c->joined, "nothing joins a reduction"},
		{c->carried_partial, "no loop carries partial sums"},
		{c->streamed, "no operand is gathered panel by panel"},
		{c->padded, "no program is padded"},
	};
	int missing = 0;
	for (size_t i = 0; i < SW_COUNT(rest); i++)
		if (!rest[i].met) {
			sw_text_addf(text, "%s\n", rest[i].what);
			missing++;
		}
	return missing;
}

int coverage_missing(const coverage *c, sw_text *text)
{
	return missing_opcodes(c, text) + missing_kinds(c, text) + missing_rest(c, text);
}
