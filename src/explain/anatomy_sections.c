/*
 * The sections of a model: each op belongs to a layer or to another group of parameters. Sections
 * are found by the numbers in the names of parameters; where names have none, by the repetition in
 * the sequence of contractions.
 */
#include "explain/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- sections --------------------------------------------------------------------------- */

/* Return the end of the first component that is a number, unless it comes first; NULL if there is
 * none. */
static const char *number_end(const char *name)
{
	for (const char *c = name; *c;) {
		size_t length = strcspn(c, "."), digits = strspn(c, "0123456789");
		if (length == digits && length > 0 && c > name)
			return c + length;
		c += length + (c[length] == '.');
	}
	return NULL;
}

/* Is the name only a numbered placeholder, as "Arg_12.13" or "p3"? */
static bool is_anonymous(const char *name)
{
	static const char *const stems[] = {"Arg_", "arg", "param_", "parameter", "p", NULL};
	for (size_t i = 0; stems[i]; i++)
		if (strncmp(name, stems[i], strlen(stems[i])) == 0 &&
		    strspn(name + strlen(stems[i]), "0123456789._") ==
		            strlen(name + strlen(stems[i])))
			return true;
	return false;
}

static int32_t intern_section(sw_anatomy *a, sw_map *index, const char *name)
{
	uint32_t fresh = (uint32_t)a->sections.len;
	uint32_t section = sw_map_intern(index, name, strlen(name), fresh);
	if (section == fresh)
		sw_vec_push(&a->sections, ((sw_section){name, sw_anatomy_fold(a, name)}));
	return (int32_t)section;
}

/* Give each input the section in its name, in the order in which the forward pass reads the
 * parameters. */
static int32_t *sections_of_inputs(sw_anatomy *a)
{
	const sw_program *p = a->program;
	sw_map index = {0};
	int32_t *sections = SW_NEW_N(&a->arena, int32_t, a->roles.n_inputs + 1);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		sections[i] = -1;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		const sw_op *op = sw_op_at(p, a->order[i]);
		for (uint32_t k = 0; a->phase[a->order[i]] == SW_PASS_FORWARD && k < op->n_operands;
		     k++) {
			int32_t input = a->input[op->operands[k]];
			if (input < 0 || a->roles.input_role[input] != SW_ROLE_PARAMETER ||
			    sections[input] >= 0 || is_anonymous(a->input_name[input]))
				continue;
			const char *name = a->input_name[input], *end = number_end(name);
			size_t length = end ? (size_t)(end - name) : strcspn(name, ".");
			sections[input] =
				intern_section(a, &index, sw_arena_text_n(&a->arena, name, length));
		}
	}
	sw_map_clear(&index);
	return sections;
}

/* An op without a parameter takes a section from its operands: forward the latest one, backward the
 * earliest, since a gradient comes from later layers and belongs to an earlier one as soon as it
 * meets a value of that one. */
static int32_t section_of_op(const sw_anatomy *a, sw_id id, const int32_t *of_input)
{
	const sw_op *op = sw_op_at(a->program, id);
	bool forward = a->phase[id] == SW_PASS_FORWARD;
	int32_t section = -1;
	uint32_t operand;
	int32_t parameter = sw_is_contraction(op) ? sw_anatomy_parameter(a, id, &operand) : -1;
	if (op->n_results > 0 && a->gradient[op->first_result] >= 0)
		parameter = a->gradient[op->first_result];
	if (parameter >= 0 && of_input[parameter] >= 0)
		return of_input[parameter];
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id v = op->operands[k];
		int32_t other = a->input[v] >= 0 ? of_input[a->input[v]]
		                                 : a->section[a->program->values.data[v].op];
		bool better = section < 0 || (forward ? other > section : other < section);
		section = other >= 0 && better ? other : section;
	}
	return section;
}

/* ---- layers without names --------------------------------------------------------------- */

/* The longest run of contractions that repeats: from `start` on, `count` periods. */
typedef struct repetition {
	size_t start, period, count;
} repetition;

static repetition find_repetition(const uint32_t *kinds, size_t n)
{
	repetition best = {0};
	for (size_t period = 1; period * 2 <= n; period++)
		for (size_t i = 0, run = 0; i + period < n; i++) {
			run = kinds[i] == kinds[i + period] ? run + 1 : 0;
			size_t count = run / period + 1;
			if (count > 1 && count * period > best.count * best.period)
				best = (repetition){i + 1 - run, period, count};
		}
	return best;
}

static void find_unnamed_layers(sw_anatomy *a, int32_t *of_input)
{
	const sw_program *p = a->program;
	sw_equivalence repeats = sw_program_equivalence(p, 0, &a->arena);
	SW_VEC(sw_id) ops = {0};
	SW_VEC(uint32_t) kinds = {0};
	uint32_t operand;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		sw_id id = a->order[i];
		if (!sw_is_contraction(sw_op_at(p, id)) || a->phase[id] != SW_PASS_FORWARD ||
		    sw_anatomy_parameter(a, id, &operand) < 0)
			continue;
		sw_vec_push(&ops, id);
		sw_vec_push(&kinds, repeats.number[id]);
	}
	repetition r = find_repetition(kinds.data, kinds.len);
	sw_map index = {0};
	for (size_t i = 0; i < ops.len; i++) {
		int32_t input = sw_anatomy_parameter(a, ops.data[i], &operand);
		const char *name =
			r.count == 0 || i < r.start ? "before the layers" : "after the layers";
		if (r.count == 0)
			name = "the model";
		else if (i >= r.start && i < r.start + r.count * r.period)
			name = sw_arena_printf(&a->arena, "layers.%zu", (i - r.start) / r.period);
		if (of_input[input] < 0)
			of_input[input] = intern_section(a, &index, name);
	}
	sw_map_clear(&index);
	sw_vec_clear(&ops);
	sw_vec_clear(&kinds);
}

void sw_anatomy_find_sections(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->section = SW_NEW_N(&a->arena, int32_t, p->ops.len + 1);
	for (size_t i = 0; i < p->ops.len; i++)
		a->section[i] = -1;
	int32_t *of_input = sections_of_inputs(a);
	if (a->sections.len == 0)
		find_unnamed_layers(a, of_input);
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++)
		a->section[a->order[i]] = section_of_op(a, a->order[i], of_input);
}
