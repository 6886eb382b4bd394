#include "layout/layouts.h"

#include <stdlib.h>
#include <string.h>

sw_atoms make_atoms(int32_t n, const int32_t *sizes)
{
	sw_atoms atoms = {.n = n};
	for (int32_t a = 0; a < n; a++)
		atoms.size[a] = sizes[a];
	return atoms;
}

sw_shape make_shape(int32_t rank, const int64_t *dims)
{
	return (sw_shape){.type = SW_F64, .rank = rank, .dims = dims};
}

static int32_t parse_list(const char *text, int64_t *numbers)
{
	int32_t n = 0;
	while (*text) {
		char *end;
		numbers[n++] = strtoll(text, &end, 10);
		text = *end ? end + 1 : end;
	}
	return n;
}

sw_shape parse_shape(const char *text, int64_t *dims)
{
	return make_shape(parse_list(text, dims), dims);
}

sw_atoms parse_atoms(const char *text)
{
	int64_t numbers[SW_MAX_ATOMS];
	sw_atoms atoms = {.n = parse_list(text, numbers)};
	for (int32_t a = 0; a < atoms.n; a++)
		atoms.size[a] = (int32_t)numbers[a];
	return atoms;
}

/* ---- all layouts ------------------------------------------------------------------------ */

static void list_from(const sw_atoms *atoms, sw_shape shape, sw_monoid monoid, sw_layout *layout,
                      int32_t atom, layout_list *list)
{
	if (atom == atoms->n) {
		layout->monoid = sw_layout_partial_atoms(layout) ? monoid : SW_MONOID_NONE;
		if (sw_layout_valid(atoms, shape, layout))
			sw_vec_push(list, *layout);
		return;
	}
	layout->state[atom] = (sw_state){.kind = SW_STATE_B};
	list_from(atoms, shape, monoid, layout, atom + 1, list);
	if (monoid != SW_MONOID_NONE) {
		layout->state[atom] = (sw_state){.kind = SW_STATE_P};
		list_from(atoms, shape, monoid, layout, atom + 1, list);
	}
	for (int32_t dim = 0; dim < shape.rank; dim++) {
		for (int64_t t = 1; t * atoms->size[atom] <= shape.dims[dim]; t++) {
			layout->state[atom] =
				(sw_state){.kind = SW_STATE_S, .dim = (int8_t)dim, .stride = t};
			if (shape.dims[dim] % (t * atoms->size[atom]) == 0)
				list_from(atoms, shape, monoid, layout, atom + 1, list);
		}
	}
	layout->state[atom] = (sw_state){.kind = SW_STATE_B};
}

void list_layouts(const sw_atoms *atoms, sw_shape shape, sw_monoid monoid, layout_list *list)
{
	sw_layout layout = {.n = atoms->n};
	list->len = 0;
	list_from(atoms, shape, monoid, &layout, 0, list);
}

char *describe(const sw_atoms *atoms, sw_shape shape, const sw_layout *from, const sw_layout *to)
{
	sw_text text = {0};
	sw_layout_print(atoms, shape, from, &text);
	sw_text_add(&text, " -> ");
	sw_layout_print(atoms, shape, to, &text);
	return text.data;
}

/* ---- the definition of a move ----------------------------------------------------------- */

static bool same_state(sw_state a, sw_state b)
{
	return a.kind == b.kind && a.dim == b.dim && a.stride == b.stride;
}

/* Return whether the digits of `before` nest with those that `after` gives to the mask. */
static bool digits_apart(const sw_layout *before, const sw_layout *after, uint32_t mask,
                         const sw_atoms *atoms)
{
	for (int32_t a = 0; a < atoms->n; a++) {
		if (!(mask >> a & 1))
			continue;
		sw_state x = after->state[a];
		for (int32_t b = 0; b < atoms->n; b++) {
			sw_state y = before->state[b];
			if (y.kind == SW_STATE_S && y.dim == x.dim &&
			    x.stride % (y.stride * atoms->size[b]) != 0 &&
			    y.stride % (x.stride * atoms->size[a]) != 0)
				return false;
		}
	}
	return true;
}

/* Assign the state of every changed atom to a changed atom of its size that ends with this
 * state. */
static bool match_states(const sw_atoms *atoms, const sw_layout *before, const sw_layout *after,
                         uint32_t mask, sw_move *move)
{
	uint32_t taken = 0;
	for (int32_t a = 0; a < atoms->n; a++) {
		int32_t to = -1;
		if (!(mask >> a & 1))
			continue;
		for (int32_t b = 0; b < atoms->n && to < 0; b++)
			if (mask >> b & 1 && !(taken >> b & 1) &&
			    atoms->size[a] == atoms->size[b] &&
			    same_state(before->state[a], after->state[b]))
				to = b;
		if (to < 0)
			return false;
		taken |= 1u << to;
		if (move)
			move->to_atom[a] = (int8_t)to;
	}
	return true;
}

uint32_t classify_move(const sw_atoms *atoms, sw_shape shape, const sw_layout *before,
                       const sw_layout *after, sw_move_kind kind, uint32_t partial, sw_move *move)
{
	static const uint8_t ends[SW_MOVE_COUNT][2] = {
		[SW_MOVE_SLICE] = {SW_STATE_B, SW_STATE_S},
		[SW_MOVE_TO_PARTIAL] = {SW_STATE_B, SW_STATE_P},
		[SW_MOVE_ALL_GATHER] = {SW_STATE_S, SW_STATE_B},
		[SW_MOVE_ALL_REDUCE] = {SW_STATE_P, SW_STATE_B},
		[SW_MOVE_REDUCE_SCATTER] = {SW_STATE_P, SW_STATE_S},
		[SW_MOVE_ALL_TO_ALL] = {SW_STATE_S, SW_STATE_S},
		[SW_MOVE_KEEP] = {SW_STATE_B, SW_STATE_O},
		[SW_MOVE_REDUCE] = {SW_STATE_P, SW_STATE_O},
		[SW_MOVE_SPREAD] = {SW_STATE_O, SW_STATE_B}};
	uint32_t mask = 0;
	(void)shape;
	for (int32_t a = 0; a < atoms->n; a++) {
		if (same_state(before->state[a], after->state[a]))
			continue;
		mask |= 1u << a;
		if (kind != SW_MOVE_PERMUTE && (before->state[a].kind != ends[kind][0] ||
		                                after->state[a].kind != ends[kind][1]))
			return 0;
	}
	if (!mask)
		return 0;
	if (kind == SW_MOVE_TO_PARTIAL && mask & ~partial)
		return 0;
	if (kind == SW_MOVE_ALL_TO_ALL && !digits_apart(before, after, mask, atoms))
		return 0;
	if (move)
		*move = (sw_move){.kind = kind, .atoms = mask, .after = *after};
	if (kind == SW_MOVE_PERMUTE && !match_states(atoms, before, after, mask, move))
		return 0;
	return mask;
}

/* ---- local data as factors -------------------------------------------------------------- */

#define MAX_FACTORS (SW_MAX_RANK * 5)

typedef struct factors {
	int32_t n;
	int64_t extent[MAX_FACTORS];
	int32_t atom[MAX_FACTORS];
} factors;

static factors list_factors(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                            const sw_layout *with, uint32_t extra)
{
	factors f = {0};
	for (int32_t dim = 0; dim < shape.rank; dim++)
		f.n += sw_layout_local_digits(atoms, shape, layout, with, extra, dim,
		                              f.extent + f.n, f.atom + f.n);
	return f;
}

static bool leads(const factors *f)
{
	int32_t last = -1, k = 0;
	for (; k < f->n && f->atom[k] > last; k++)
		last = f->atom[k];
	for (; k < f->n; k++)
		if (f->atom[k] >= 0)
			return false;
	return true;
}

touches local_touches(const sw_atoms *atoms, sw_shape shape, const sw_layout *before,
                      const sw_move *move)
{
	int64_t operand = sw_layout_local_bytes(atoms, shape, before);
	int64_t result = sw_layout_local_bytes(atoms, shape, &move->after);
	touches touched = {0};
	factors f;
	if (move->kind == SW_MOVE_SLICE || move->kind == SW_MOVE_TO_PARTIAL)
		return (touches){2 * result, 0, move->kind == SW_MOVE_SLICE};
	if (move->kind == SW_MOVE_REDUCE_SCATTER || move->kind == SW_MOVE_ALL_TO_ALL) {
		f = list_factors(atoms, shape, before, &move->after, move->atoms);
		touched.n += !leads(&f);
		touched.bytes += leads(&f) ? 0 : 2 * operand;
		touched.peak = leads(&f) ? 0 : 2 * operand;
	}
	if (move->kind == SW_MOVE_ALL_GATHER || move->kind == SW_MOVE_ALL_TO_ALL) {
		f = list_factors(atoms, shape, &move->after, before, move->atoms);
		touched.n += !leads(&f);
		touched.bytes += leads(&f) ? 0 : 2 * result;
		touched.peak = leads(&f) ? touched.peak : SW_MAX(touched.peak, 2 * result);
	}
	return touched;
}

/* ---- data ------------------------------------------------------------------------------- */

static double combine(sw_monoid monoid, double a, double b)
{
	return monoid == SW_MONOID_MAX ? SW_MAX(a, b) : a + b;
}

static double identity(sw_monoid monoid)
{
	return monoid == SW_MONOID_MAX ? -1e300 : 0;
}

/* Return term k of n of a value; all terms combine exactly to the value (small whole numbers). */
static double term(double value, int64_t k, int64_t n, uint64_t seed, uint64_t element,
                   sw_monoid monoid)
{
	double sum = 0;
	if (monoid == SW_MONOID_MAX)
		return (uint64_t)k == sw_random_bits(seed, 1, element) % (uint64_t)n
		               ? value
		               : value - (double)(sw_random_bits(seed, 2 + (uint64_t)k, element) %
		                                  100);
	if (k + 1 < n)
		return (double)(sw_random_bits(seed, 2 + (uint64_t)k, element) % 1000);
	for (int64_t j = 0; j + 1 < n; j++)
		sum += term(value, j, n, seed, element, monoid);
	return value - sum;
}

static int64_t member(const sw_atoms *atoms, uint32_t mask, int64_t device)
{
	int64_t number = 0;
	for (int32_t a = 0; a < atoms->n; a++)
		if (mask >> a & 1)
			number = number * atoms->size[a] + sw_atoms_coordinate(atoms, device, a);
	return number;
}

parts make_parts(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                 const double *whole, uint64_t seed, sw_monoid monoid)
{
	uint32_t partial = sw_layout_partial_atoms(layout);
	int64_t elements = sw_shape_elements(shape), terms = sw_atoms_group_size(atoms, partial);
	double *mine = sw_alloc((size_t)elements * sizeof(double));
	parts p = {.n = sw_atoms_devices(atoms),
	           .local = sw_layout_local_bytes(atoms, shape, layout) / 8};
	p.data = sw_alloc((size_t)p.n * sizeof(double *));
	for (int64_t d = 0; d < p.n; d++) {
		int64_t k = member(atoms, partial, d);
		for (int64_t i = 0; i < elements; i++)
			mine[i] = partial ? term(whole[i], k, terms, seed, (uint64_t)i, monoid)
			                  : whole[i];
		p.data[d] = sw_alloc((size_t)p.local * sizeof(double));
		sw_layout_cut(atoms, shape, layout, d, 8, mine, p.data[d]);
	}
	free(mine);
	return p;
}

void free_parts(parts *p)
{
	for (int64_t d = 0; d < p->n; d++)
		free(p->data[d]);
	free(p->data);
}

bool parts_match(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, const parts *p,
                 const double *whole, sw_monoid monoid)
{
	sw_arena arena;
	sw_arena_init(&arena);
	bool match = p->local == sw_layout_local_bytes(atoms, shape, layout) / 8;
	double *expected = sw_arena_alloc(&arena, (size_t)p->local * sizeof(double));
	sw_groups groups = sw_atoms_groups(atoms, sw_layout_partial_atoms(layout), &arena);
	for (int64_t g = 0; g < groups.n_groups && match; g++) {
		sw_layout_cut(atoms, shape, layout, sw_groups_member(&groups, g, 0), 8, whole,
		              expected);
		for (int64_t i = 0; i < p->local && match; i++) {
			double sum = identity(monoid);
			for (int64_t m = 0; m < groups.group_size; m++)
				sum = combine(monoid, sum,
				              p->data[sw_groups_member(&groups, g, m)][i]);
			match = sum == expected[i];
		}
	}
	sw_arena_clear(&arena);
	return match;
}

/* ---- moves on data ---------------------------------------------------------------------- */

/* Return the position in [member][rest] of every element of local data seen as factors: the factors
 * of the atoms come first, in the order of the atoms, and the rest follows unchanged. */
static int64_t *leading_positions(const factors *f, int64_t elements)
{
	int32_t order[MAX_FACTORS], n = 0;
	int64_t pitch[MAX_FACTORS], step = 1;
	for (int32_t a = 0; a < SW_MAX_ATOMS; a++)
		for (int32_t k = 0; k < f->n; k++)
			if (f->atom[k] == a)
				order[n++] = k;
	for (int32_t k = 0; k < f->n; k++)
		if (f->atom[k] < 0)
			order[n++] = k;
	for (int32_t i = n - 1; i >= 0; i--) {
		pitch[order[i]] = step;
		step *= f->extent[order[i]];
	}
	int64_t *position = sw_alloc((size_t)elements * sizeof(int64_t));
	for (int64_t e = 0; e < elements; e++) {
		int64_t rest = e;
		for (int32_t k = f->n - 1; k >= 0; k--) {
			position[e] += rest % f->extent[k] * pitch[k];
			rest /= f->extent[k];
		}
	}
	return position;
}

static double *bring_forward(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                             const sw_layout *with, uint32_t mask, const double *data,
                             int64_t elements)
{
	factors f = list_factors(atoms, shape, layout, with, mask);
	int64_t *position = leading_positions(&f, elements);
	double *out = sw_alloc((size_t)elements * sizeof(double));
	for (int64_t e = 0; e < elements; e++)
		out[position[e]] = data[e];
	free(position);
	return out;
}

static double *put_back(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                        const sw_layout *with, uint32_t mask, const double *data, int64_t elements)
{
	factors f = list_factors(atoms, shape, layout, with, mask);
	int64_t *position = leading_positions(&f, elements);
	double *out = sw_alloc((size_t)elements * sizeof(double));
	for (int64_t e = 0; e < elements; e++)
		out[e] = data[position[e]];
	free(position);
	return out;
}

static void permute_parts(const sw_atoms *atoms, const sw_move *move, double **operands,
                          double **results, int64_t local)
{
	sw_arena arena;
	const int64_t *pairs;
	sw_arena_init(&arena);
	int32_t n = sw_move_permute_pairs(atoms, move, &arena, &pairs);
	int64_t devices = sw_atoms_devices(atoms);
	for (int64_t d = 0; d < devices; d++)
		memcpy(results[d], operands[d], (size_t)local * sizeof(double));
	for (int32_t i = 0; i < n; i++)
		memcpy(results[pairs[2 * i + 1]], operands[pairs[2 * i]],
		       (size_t)local * sizeof(double));
	sw_arena_clear(&arena);
}

/* Compute the result of member m of a group from the data of all members (already brought forward
 * where digits are sent). */
static void exchange(sw_move_kind kind, sw_monoid monoid, double **group, int64_t size, int64_t m,
                     int64_t local, int64_t after, double *result)
{
	int64_t block = kind == SW_MOVE_ALL_GATHER ? local : local / size;
	for (int64_t i = 0; i < after; i++) {
		if (kind == SW_MOVE_ALL_GATHER) {
			result[i] = group[i / block][i % block];
		} else if (kind == SW_MOVE_ALL_TO_ALL) {
			result[i] = group[i / block][m * block + i % block];
		} else if (kind == SW_MOVE_SLICE) {
			result[i] = group[m][m * block + i];
		} else if (kind == SW_MOVE_TO_PARTIAL) {
			result[i] = m == 0 ? group[0][i] : identity(monoid);
		} else {
			int64_t from = kind == SW_MOVE_REDUCE_SCATTER ? m * block + i : i;
			result[i] = identity(monoid);
			for (int64_t j = 0; j < size; j++)
				result[i] = combine(monoid, result[i], group[j][from]);
		}
	}
}

void apply_move(const sw_atoms *atoms, sw_shape shape, const sw_layout *before, const sw_move *move,
                sw_monoid monoid, parts *p)
{
	sw_move_kind kind = move->kind;
	bool sends = kind == SW_MOVE_SLICE || kind == SW_MOVE_REDUCE_SCATTER ||
	             kind == SW_MOVE_ALL_TO_ALL;
	bool receives = kind == SW_MOVE_ALL_GATHER || kind == SW_MOVE_ALL_TO_ALL;
	int64_t after = sw_layout_local_bytes(atoms, shape, &move->after) / 8;
	double **operands = sw_alloc((size_t)p->n * sizeof(double *)),
	       **results = sw_alloc((size_t)p->n * sizeof(double *));
	sw_arena arena;
	sw_arena_init(&arena);
	for (int64_t d = 0; d < p->n; d++) {
		operands[d] = p->data[d];
		results[d] = sw_alloc((size_t)after * sizeof(double));
		if (sends)
			operands[d] = bring_forward(atoms, shape, before, &move->after, move->atoms,
			                            p->data[d], p->local);
	}
	if (kind == SW_MOVE_PERMUTE) {
		permute_parts(atoms, move, operands, results, after);
	} else {
		sw_groups groups = sw_atoms_groups(atoms, move->atoms, &arena);
		double **group =
			sw_arena_alloc(&arena, (size_t)groups.group_size * sizeof(double *));
		for (int64_t g = 0; g < groups.n_groups; g++) {
			for (int64_t m = 0; m < groups.group_size; m++)
				group[m] = operands[sw_groups_member(&groups, g, m)];
			for (int64_t m = 0; m < groups.group_size; m++)
				exchange(kind, monoid, group, groups.group_size, m, p->local, after,
				         results[sw_groups_member(&groups, g, m)]);
		}
	}
	for (int64_t d = 0; d < p->n; d++) {
		if (sends)
			free(operands[d]);
		free(p->data[d]);
		p->data[d] = results[d];
		if (receives) {
			p->data[d] = put_back(atoms, shape, &move->after, before, move->atoms,
			                      results[d], after);
			free(results[d]);
		}
	}
	p->local = after;
	sw_arena_clear(&arena);
	free(operands);
	free(results);
}
