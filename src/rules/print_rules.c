/* Rules and strategies as text. */
#include "rules/row.h"

static void print_maps(const sw_dim_map *maps, int32_t rank, sw_text *text)
{
	for (int32_t d = 0; d < rank; d++) {
		sw_text_add(text, " [");
		for (int32_t i = 0; i < maps[d].n; i++) {
			sw_text_addf(text, "%sf%d", i ? " " : "", maps[d].refs[i].factor);
			if (maps[d].refs[i].stride != 1)
				sw_text_addf(text, "*%lld", (long long)maps[d].refs[i].stride);
		}
		sw_text_add(text, "]");
	}
}

static void print_factors(const sw_rule *rule, sw_text *text)
{
	for (int32_t i = 0; i < rule->n_factors; i++) {
		const sw_factor *factor = &rule->factors[i];
		sw_text_addf(text, "  f%d = %lld ", i, (long long)factor->size);
		sw_text_add(text, factor->kind == SW_FACTOR_REDUCED ? sw_monoid_name(factor->monoid)
		                                                    : "parallel");
		if (factor->exchange != SW_EXCHANGE_NONE)
			sw_text_addf(text, " %s", sw_exchange_name(factor->exchange));
		if (factor->streams)
			sw_text_add(text, " streams");
		for (int32_t k = 0; k < factor->joins.n; k++)
			sw_text_addf(text, "%s%lld", k ? "," : " joins ",
			             (long long)factor->joins.v[k]);
		sw_text_add(text, "\n");
	}
}

/* Print "sum"; "max>min" where the monoid becomes another. */
static void print_passing(const sw_linearity *linearity, sw_monoid m, sw_text *text)
{
	if (!(linearity->monoids >> m & 1))
		return;
	sw_text_addf(text, " %s", sw_monoid_name(m));
	if (linearity->becomes[m] != m)
		sw_text_addf(text, ">%s", sw_monoid_name((sw_monoid)linearity->becomes[m]));
}

static void print_linearities(const sw_rule *rule, sw_text *text)
{
	for (int32_t i = 0; i < rule->n_linearities; i++) {
		const char *comma = "";
		sw_text_add(text, "  passes {");
		for (int32_t k = 0; k < rule->n_operands; k++) {
			if (!rule->linearities[i].operands[k])
				continue;
			sw_text_addf(text, "%s%d", comma, k);
			comma = ",";
		}
		sw_text_add(text, "}");
		for (int32_t m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
			print_passing(&rule->linearities[i], (sw_monoid)m, text);
		sw_text_add(text, "\n");
	}
}

/* Print one line for the op, and one per factor, value and linearity: "operand 0 f32[8,6] [f0]
 * [f1*2]". */
void sw_rule_print(const sw_program *program, sw_id op, const sw_rule *rule, sw_text *text)
{
	const sw_op *o = sw_op_at(program, op);

	sw_text_addf(text, "%s %s\n", sw_op_opcode_name(o), o->name);
	print_factors(rule, text);
	for (int32_t i = 0; i < rule->n_operands; i++) {
		sw_text_addf(text, "  operand %d ", i);
		sw_shape_print(sw_value_shape(program, o->operands[i]), text);
		print_maps(rule->operands[i], rule->operand_ranks[i], text);
		sw_text_add(text, "\n");
	}
	for (int32_t i = 0; i < rule->n_results; i++) {
		sw_text_addf(text, "  result %d ", i);
		sw_shape_print(sw_value_shape(program, o->first_result + (sw_id)i), text);
		print_maps(rule->results[i], rule->result_ranks[i], text);
		sw_text_add(text, "\n");
	}
	print_linearities(rule, text);
	if (rule->whole)
		sw_text_addf(text, "  whole: %s\n", rule->whole);
}

static void print_linearity_choice(const sw_rule *rule, const sw_choice *choice, sw_text *text)
{
	const char *comma = "";

	sw_text_addf(text, "pass-%s{", sw_monoid_name((sw_monoid)choice->monoid));
	for (int32_t k = 0; k < rule->n_operands; k++) {
		if (!rule->linearities[choice->index].operands[k])
			continue;
		sw_text_addf(text, "%s%d", comma, k);
		comma = ",";
	}
	sw_text_add(text, "}");
}

static void print_digit(int32_t factor, int64_t stride, sw_text *text)
{
	sw_text_addf(text, stride == 1 ? "f%d" : "f%d/%lld", factor, (long long)stride);
}

/* Print one word per atom: "[f0/4 f1<f2/8 pass-sum{0,1} own3 -]"; "/t" is the digit's stride within
 * the factor where it is not 1, "<" precedes the digit that is streamed. */
void sw_strategy_print(const sw_atoms *atoms, const sw_rule *rule, const sw_strategy *strategy,
                       sw_text *text)
{
	sw_text_add(text, "[");
	for (int32_t a = 0; a < atoms->n; a++) {
		const sw_choice *choice = &strategy->atom[a];
		sw_text_add(text, a ? " " : "");
		if (choice->kind == SW_CHOICE_NONE)
			sw_text_add(text, "-");
		else if (choice->kind == SW_CHOICE_PASS)
			print_linearity_choice(rule, choice, text);
		else if (choice->kind == SW_CHOICE_OWN)
			sw_text_addf(text, "own%lld", (long long)choice->stride);
		else
			print_digit(choice->index, choice->stride, text);
		if (choice->kind == SW_CHOICE_SPLIT && choice->stream_stride > 0) {
			sw_text_add(text, "<");
			print_digit(choice->stream, choice->stream_stride, text);
		}
	}
	sw_text_add(text, "]");
}
