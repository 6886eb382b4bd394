/*
 * The variables of the loop over tiles: which atoms are cut, and into ranges of which size.
 */
#include "interpret/tile_planner.h"

int64_t sw_tile_elements(const sw_tile_value *v)
{
	int64_t n = 1;
	for (int32_t i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

/* The value that the loop goes over: the largest. */
static const sw_tile_value *find_domain(const sw_tile_plan *plan)
{
	const sw_tile_value *best = NULL;
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		const sw_tile_step *step = &plan->steps[s];
		const sw_tile_value *v = &plan->values[step->out];
		if (step->kind == SW_TILE_GIVEN || !step->live)
			continue;
		if (step->kind == SW_TILE_REDUCE)
			v = &plan->values[step->in[0]];
		if (!best || sw_tile_elements(v) > sw_tile_elements(best))
			best = v;
	}
	return best;
}

/* Elements of a row of an operand or a result that a tile reads or writes together at least: some
 * cache lines, even if the rows of the domain lie across them (a transpose). */
enum { LEAST_ROW = 32 };

static bool is_minor(const sw_tile_plan *plan, int32_t atom)
{
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		const sw_tile_value *v = &plan->values[s];
		bool stored = plan->steps[s].op->opcode == SW_OP_PARAMETER && plan->steps[s].live;
		for (uint32_t i = 0; i < plan->n_results && !stored; i++)
			stored = plan->results[i].value == (int32_t)s;
		if (stored && v->rank && v->atoms[v->rank - 1] == atom)
			return true;
	}
	return false;
}

static void cut(sw_tile_plan *plan, int32_t atom, int64_t n, int64_t size)
{
	plan->variables[plan->n_variables++] = (sw_tile_variable){atom, n, size};
	plan->tiles *= (n + size - 1) / size;
}

/* Each atom that is innermost somewhere has a short row in the tile. Then, from the innermost atom
 * of the domain on, atoms are whole in a tile as long as they fit; the next one is cut, and the
 * outer ones are taken row by row. Forbidden atoms are always whole. */
bool sw_tile_choose_variables(sw_tile_planner *p, int64_t tile_elements)
{
	sw_tile_plan *plan = p->plan;
	const sw_tile_value *domain = find_domain(plan);
	int64_t inside = 1, least[SW_TILE_RANK];
	plan->n_variables = 0;
	plan->tiles = 1;
	for (int32_t i = 0; domain && i < domain->rank; i++) {
		int64_t n = domain->dims[i];
		least[i] = p->forbidden[domain->atoms[i]]     ? n
		           : is_minor(plan, domain->atoms[i]) ? SW_MIN(n, LEAST_ROW)
		                                              : 1;
		inside *= least[i];
	}
	for (int32_t i = domain ? domain->rank - 1 : -1; i >= 0; i--) {
		int64_t n = domain->dims[i];
		inside /= least[i];
		int64_t room = SW_MAX(tile_elements / SW_MAX(inside, 1), least[i]), size = n;
		if (n > room) {
			int64_t pieces = (n + room - 1) / room;
			size = (n + pieces - 1) / pieces;
			if (plan->n_variables == SW_TILE_VARIABLES)
				return false;
			cut(plan, domain->atoms[i], n, size);
		}
		inside *= size;
	}
	return true;
}
