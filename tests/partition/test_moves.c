/*
 * Redistributions as programs, on ranks: random shapes, layouts and prices from a seed. The result
 * is compared, element by element, with the part that the target layout assigns to each device.
 * Many cases share one program, so that thousands run in seconds.
 *
 * SW_SEED=N runs other cases.
 */
#include "partition/execute.h"

#include <math.h>
#include <stdlib.h>

#define CASES_PER_PROGRAM 48

typedef struct one_case {
	sw_shape whole;
	sw_layout from, to;
	sw_monoid monoid;
	uint64_t seed; /* of its elements */
} one_case;

typedef struct batch {
	sw_arena arena;
	sw_cluster cluster;
	uint64_t seed;
	one_case cases[CASES_PER_PROGRAM];
	sw_path_cache *paths;
	int64_t memory_bytes; /* bound for every path; 0: none */
	sw_program *program;
	int64_t path_bytes; /* sum over the paths */
	bool permutes;
} batch;

/* The kinds of moves, types and cases that all batches used. */
typedef struct counts {
	int64_t kinds[SW_MOVE_COUNT], types[SW_TYPE_COUNT], cases, longest, empty, bounded;
} counts;

/* Random prices, so that every kind of move is the cheapest now and then. */
static double random_seconds(void *seed, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	if (kind == SW_MOVE_SLICE || kind == SW_MOVE_TO_PARTIAL || kind == SW_MOVE_KEEP)
		return 0;
	uint64_t stream = (uint64_t)kind << 32 | atoms;
	return 1e-6 * sw_random_unit(*(uint64_t *)seed, stream, 0) +
	       1e-8 * (double)bytes * sw_random_unit(*(uint64_t *)seed, stream, 1);
}

/* ---- random cases ----------------------------------------------------------------------- */

static double as_type(sw_type type, double number)
{
	char data[16] = {0};
	sw_element_set(type, data, 0, number);
	return sw_element_get(type, data, 0);
}

/* Does the interpreter compute with this type? */
static bool is_tried(sw_type type)
{
	return sw_type_bytes(type) > 0 && as_type(type, 1) == 1;
}

static sw_type random_type(sw_rng *rng)
{
	for (;;) {
		sw_type type = (sw_type)sw_rng_below(rng, SW_TYPE_COUNT);
		if (is_tried(type))
			return type;
	}
}

static sw_monoid random_monoid(sw_rng *rng, sw_type type)
{
	static const sw_monoid numbers[] = {SW_MONOID_SUM, SW_MONOID_SUM, SW_MONOID_MAX,
	                                    SW_MONOID_MIN};
	if (sw_rng_below(rng, 5) < 2)
		return SW_MONOID_NONE;
	if (sw_type_kind_of(type) == SW_KIND_PRED)
		return sw_rng_below(rng, 2) ? SW_MONOID_OR : SW_MONOID_AND;
	if (sw_type_kind_of(type) == SW_KIND_COMPLEX)
		return SW_MONOID_SUM;
	return sw_rule_splittable(type, numbers[sw_rng_below(rng, SW_COUNT(numbers))]);
}

static sw_shape random_shape(sw_rng *rng, sw_arena *arena)
{
	static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 6, 8, 8, 9, 10, 12, 12, 12, 24};
	int32_t rank = (int32_t)sw_rng_below(rng, 4);
	int64_t *dims = SW_NEW_N(arena, int64_t, rank + 1);
	for (int32_t d = 0; d < rank; d++)
		dims[d] =
			sw_rng_below(rng, 24) == 0 ? 0 : sizes[sw_rng_below(rng, SW_COUNT(sizes))];
	return (sw_shape){.type = random_type(rng), .rank = rank, .dims = rank ? dims : NULL};
}

static bool fits(const sw_atoms *atoms, sw_shape shape, sw_layout *layout, sw_monoid monoid)
{
	layout->monoid = sw_layout_partial_atoms(layout) ? monoid : SW_MONOID_NONE;
	return sw_layout_valid(atoms, shape, layout);
}

/* Choose any digit that fits, strided ones included; P if there is a monoid; O if there are owners.
 */
static sw_layout random_layout(sw_rng *rng, const sw_atoms *atoms, sw_shape shape, sw_monoid monoid,
                               bool owners)
{
	sw_layout layout = sw_layout_replicated(atoms);
	int32_t first = (int32_t)sw_rng_below(rng, atoms->n);
	for (int32_t i = 0; i < atoms->n; i++) {
		int32_t a = (first + i) % atoms->n;
		int64_t kind = sw_rng_below(rng, monoid ? 4 : 3);
		if (owners && sw_rng_below(rng, 3) == 0) {
			layout.state[a] = (sw_state){.kind = SW_STATE_O,
			                             .stride = sw_rng_below(rng, atoms->size[a])};
			continue;
		}
		if (kind == 3)
			layout.state[a] = (sw_state){.kind = SW_STATE_P};
		for (int attempt = 0; kind < 3 && kind > 0 && shape.rank > 0 && attempt < 8;
		     attempt++) {
			int32_t dim = (int32_t)sw_rng_below(rng, shape.rank);
			int64_t stride =
				1 + sw_rng_below(rng, SW_MAX(shape.dims[dim] / atoms->size[a], 1));
			layout.state[a] = (sw_state){
				.kind = SW_STATE_S, .dim = (int8_t)dim, .stride = stride};
			if (fits(atoms, shape, &layout, monoid))
				break;
			layout.state[a] = (sw_state){.kind = SW_STATE_B};
		}
		assert_true(fits(atoms, shape, &layout, monoid));
	}
	return layout;
}

/* Draw until a case has a path: within a memory bound not all have one. */
static one_case random_case(sw_rng *rng, batch *b)
{
	for (;;) {
		one_case c = {.whole = random_shape(rng, &b->arena)};
		c.monoid = random_monoid(rng, c.whole.type);
		bool owners = c.whole.rank > 0 && sw_rng_below(rng, 4) == 0;
		c.from = random_layout(rng, &b->cluster.atoms, c.whole, c.monoid, owners);
		c.to = random_layout(rng, &b->cluster.atoms, c.whole, c.monoid, owners);
		c.seed = sw_rng_bits(rng);
		if (isfinite(sw_path_cache_get(b->paths, c.whole, &c.from, &c.to)->seconds))
			return c;
	}
}

/* ---- numbers ---------------------------------------------------------------------------- */

/* A number that the type represents exactly. */
static double some_number(const one_case *c, uint64_t stream, int64_t element)
{
	double number = (double)(sw_random_bits(c->seed, stream, (uint64_t)element) % 201) - 100;
	number = as_type(c->whole.type, number);
	return isfinite(number) ? number : 1;
}

static double whole_value(const one_case *c, int64_t element)
{
	return some_number(c, 0, element);
}

static bool is_wide(sw_type type)
{
	return sw_type_bytes(type) >= 4;
}

static double combine(sw_monoid monoid, double a, double b)
{
	if (monoid == SW_MONOID_MAX || monoid == SW_MONOID_OR)
		return fmax(a, b);
	return monoid == SW_MONOID_MIN || monoid == SW_MONOID_AND ? fmin(a, b) : a + b;
}

/* Term k of n: all of them combined give the value exactly. For sums in narrow types one term holds
 * the whole value. */
static double term(const one_case *c, int64_t element, int64_t k, int64_t n)
{
	double value = whole_value(c, element), other = some_number(c, 2 + (uint64_t)k, element);
	bool decides = (uint64_t)k == sw_random_bits(c->seed, 1, (uint64_t)element) % (uint64_t)n;
	if (c->monoid == SW_MONOID_MAX || c->monoid == SW_MONOID_OR)
		return decides ? value : fmin(value, other);
	if (c->monoid == SW_MONOID_MIN || c->monoid == SW_MONOID_AND)
		return decides ? value : fmax(value, other);
	if (!is_wide(c->whole.type) || sw_type_kind_of(c->whole.type) == SW_KIND_UNSIGNED)
		return decides ? value : 0;
	if (k + 1 < n)
		return other;
	for (int64_t i = 0; i + 1 < n; i++)
		value -= term(c, element, i, n);
	return value;
}

/* The imaginary part is minus the real one; sums preserve that. */
static void set_element(sw_type type, void *data, int64_t e, double value)
{
	sw_element_set(type, data, e, value);
	if (type == SW_C64)
		((float *)data)[2 * e + 1] = (float)-value;
	else if (type == SW_C128)
		((double *)data)[2 * e + 1] = -value;
}

static double get_element(sw_type type, const void *data, int64_t e)
{
	double value = sw_element_get(type, data, e);
	if (type == SW_C64)
		assert_true(((const float *)data)[2 * e + 1] == (float)-value);
	else if (type == SW_C128)
		assert_true(((const double *)data)[2 * e + 1] == -value);
	return value;
}

static int64_t member(const sw_atoms *atoms, uint32_t mask, int64_t device)
{
	int64_t number = 0;
	for (int32_t a = 0; a < atoms->n; a++)
		if (mask >> a & 1)
			number = number * atoms->size[a] + sw_atoms_coordinate(atoms, device, a);
	return number;
}

/* What a device holds of a value that others own: an array of its rank without elements. */
static sw_tensor empty_part(const one_case *c, sw_tensor part)
{
	static const int64_t none[SW_MAX_RANK];
	sw_error err = {0};
	sw_tensor_drop(&part);
	sw_shape shape = {.type = c->whole.type, .rank = c->whole.rank, .dims = none};
	check(sw_tensor_new(shape, false, &part, &err), &err);
	return part;
}

/* A device's part before the move. `shape` is the local one. */
static sw_tensor device_part(const batch *b, const one_case *c, sw_shape shape, int64_t device)
{
	const sw_atoms *atoms = &b->cluster.atoms;
	sw_tensor part, whole;
	sw_error err = {0};
	uint32_t partial = sw_layout_partial_atoms(&c->from);
	int64_t terms = sw_atoms_group_size(atoms, partial), k = member(atoms, partial, device);
	check(sw_tensor_new(c->whole, false, &whole, &err), &err);
	check(sw_tensor_new(shape, false, &part, &err), &err);
	if (!sw_layout_has_part(atoms, &c->from, device)) {
		sw_tensor_drop(&whole);
		return empty_part(c, part);
	}
	for (int64_t e = 0; e < sw_shape_elements(c->whole); e++)
		set_element(c->whole.type, sw_tensor_data(whole), e,
		            partial ? term(c, e, k, terms) : whole_value(c, e));
	sw_layout_cut(atoms, c->whole, &c->from, device, sw_type_bytes(c->whole.type),
	              sw_tensor_data(whole), sw_tensor_data(part));
	sw_tensor_drop(&whole);
	return part;
}

static double combined(const execution *e, const one_case *c, uint32_t number,
                       const sw_groups *groups, int64_t group, int64_t element)
{
	double sum = 0;
	for (int64_t m = 0; m < groups->group_size; m++) {
		int64_t device = sw_groups_member(groups, group, m);
		sw_tensor part = e->outputs[device * e->n_outputs + number];
		double x = get_element(c->whole.type, sw_tensor_data(part), element);
		sum = m == 0 ? x : combine(c->monoid, sum, x);
	}
	return sum;
}

static void fail_case(const batch *b, const one_case *c, uint32_t number, int64_t element,
                      double got, double wanted)
{
	const sw_atoms *atoms = &b->cluster.atoms;
	sw_text text = {0};
	sw_shape_print(c->whole, &text);
	sw_text_add(&text, " over");
	for (int32_t a = 0; a < atoms->n; a++)
		sw_text_addf(&text, " %d", atoms->size[a]);
	sw_text_add(&text, ": ");
	sw_layout_print(atoms, c->whole, &c->from, &text);
	sw_text_add(&text, " -> ");
	sw_layout_print(atoms, c->whole, &c->to, &text);
	const sw_path *path = sw_path_cache_get(b->paths, c->whole, &c->from, &c->to);
	for (int32_t i = 0; i < path->n; i++) {
		sw_text_addf(&text, "\n  %s ", sw_move_name(path->moves[i].kind));
		sw_layout_print(atoms, c->whole, &path->moves[i].after, &text);
	}
	fail_msg("batch seed %llu, case %u, %s\nlocal element %lld is %g, not %g",
	         (unsigned long long)b->seed, number, text.data, (long long)element, got, wanted);
}

/* Compare every device's part of one result; devices that hold terms of the same elements are
 * combined. */
static void compare_case(const batch *b, const execution *e, uint32_t number)
{
	const one_case *c = &b->cases[number];
	const sw_atoms *atoms = &b->cluster.atoms;
	sw_arena arena = {0};
	sw_groups groups = sw_atoms_groups(atoms, sw_layout_partial_atoms(&c->to), &arena);
	int64_t n = sw_layout_local_bytes(atoms, c->whole, &c->to) / sw_type_bytes(c->whole.type);
	double *whole = SW_NEW_N(&arena, double, sw_shape_elements(c->whole) + 1),
	       *wanted = SW_NEW_N(&arena, double, n + 1);
	for (int64_t i = 0; i < sw_shape_elements(c->whole); i++)
		whole[i] = whole_value(c, i);
	for (int64_t g = 0; g < groups.n_groups; g++) {
		int64_t device = sw_groups_member(&groups, g, 0);
		if (!sw_layout_has_part(atoms, &c->to, device)) {
			assert_int_equal(
				sw_shape_elements(e->outputs[device * e->n_outputs + number].shape),
				0);
			continue;
		}
		int64_t held = sw_shape_elements(e->outputs[device * e->n_outputs + number].shape);
		if (held != n)
			fail_case(b, c, number, device, (double)held, (double)n);
		sw_layout_cut(atoms, c->whole, &c->to, device, sizeof(double), whole, wanted);
		for (int64_t i = 0; i < n; i++) {
			double got = combined(e, c, number, &groups, g, i);
			if (got != wanted[i])
				fail_case(b, c, number, i, got, wanted[i]);
		}
	}
	sw_arena_clear(&arena);
}

/* ---- programs --------------------------------------------------------------------------- */

static sw_id emit_case(batch *b, sw_program *p, sw_coordinates *at, const one_case *c)
{
	int64_t dims[SW_MAX_RANK];
	sw_error err = {0};
	sw_id result;
	sw_layout_local_dims(&b->cluster.atoms, c->whole, &c->from, dims);
	sw_id x = sw_emit_parameter(p, at->computation,
	                            sw_build_shape(p, c->whole.type, dims, c->whole.rank), NULL);
	sw_owner owner = sw_owner_of_layout(&b->cluster.atoms, &c->from, UINT32_MAX);
	sw_build_owner(p, x, &owner, NULL);
	check(sw_partition_redistribute(at, b->paths, c->whole, &c->from, &c->to, x, &result, &err),
	      &err);
	return result;
}

static sw_program *write_program(batch *b, const one_case *cases, uint32_t n)
{
	sw_program *p = sw_program_new("moves");
	sw_coordinates at;
	sw_id results[CASES_PER_PROGRAM];
	sw_error err = {0};
	int32_t entry = sw_build_computation(p, "main");
	sw_coordinates_init(&at, p, entry, &b->cluster.atoms);
	for (uint32_t i = 0; i < n; i++)
		results[i] = emit_case(b, p, &at, &cases[i]);
	sw_build_results(p, entry, results, n, true);
	p->entry = entry;
	p->num_partitions = b->cluster.n_devices;
	check(sw_program_verify(p, &err), &err);
	return p;
}

/* The bytes that an op reads and writes at once; a reshape moves nothing, and the operand that a
 * select does not choose is computed on the fly. */
static int64_t op_bytes(const sw_program *p, const sw_op *op)
{
	int64_t result = sw_shape_bytes(sw_value_shape(p, op->first_result));
	if (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BROADCAST)
		return result;
	return result + sw_shape_bytes(sw_value_shape(p, op->operands[op->opcode == SW_OP_SELECT]));
}

/* Is it where the device looks its coordinate up, in a table of all devices? */
static bool is_lookup(const sw_program *p, const sw_op *op)
{
	sw_id first = op->n_operands > 0 ? p->values.data[op->operands[0]].op : SW_NO_ID;
	return op->opcode == SW_OP_DYNAMIC_SLICE && sw_op_at(p, first)->opcode == SW_OP_CONSTANT;
}

/* No op needs more memory than the path says, and the path is within the bound. */
static void check_memory(const batch *b, const sw_program *p, const sw_path *path)
{
	assert_true(b->memory_bytes == 0 || path->peak_bytes <= b->memory_bytes);
	for (size_t i = 0; i < p->ops.len; i++) {
		const sw_op *op = sw_op_at(p, (sw_id)i);
		if (op->n_operands == 0 || op->n_results != 1 || is_lookup(p, op) ||
		    sw_value_shape(p, op->first_result).rank == 0)
			continue;
		if (op_bytes(p, op) > path->peak_bytes)
			fail_msg("%s takes %lld bytes, the path %lld", sw_opcode_name(op->opcode),
			         (long long)op_bytes(p, op), (long long)path->peak_bytes);
	}
}

/* Compare the path's payload with that of the program written for it. With several permutes a path
 * counts, for each, the rank that sends most; the program counts the rank that sends most in
 * total. */
static void check_payload(batch *b, const one_case *c, counts *all)
{
	const sw_path *path = sw_path_cache_get(b->paths, c->whole, &c->from, &c->to);
	sw_program_cost cost;
	int permutes = 0;
	sw_program *alone = write_program(b, c, 1);
	sw_cost_program(&b->cluster, alone, &cost);
	check_memory(b, alone, path);
	sw_program_free(alone);
	for (int32_t i = 0; i < path->n; i++) {
		all->kinds[path->moves[i].kind]++;
		permutes += path->moves[i].kind == SW_MOVE_PERMUTE;
	}
	all->types[c->whole.type]++;
	all->empty += sw_shape_elements(c->whole) == 0;
	all->bounded += b->memory_bytes > 0;
	if (permutes < 2)
		assert_int_equal(cost.payload_bytes, path->payload_bytes);
	assert_true(cost.payload_bytes <= path->payload_bytes);
	b->path_bytes += path->payload_bytes;
	b->permutes = b->permutes || permutes > 0;
	all->longest = SW_MAX(all->longest, path->n);
	all->cases++;
}

static void run_batch(batch *b)
{
	execution e;
	sw_program_cost cost;
	int64_t devices = b->cluster.n_devices;
	const sw_id *values;
	uint32_t n = sw_program_inputs(b->program, b->program->entry, &b->arena, &values);
	sw_tensor *inputs = sw_alloc(sizeof(*inputs) * (size_t)devices * n);
	for (int64_t d = 0; d < devices; d++)
		for (uint32_t i = 0; i < n; i++)
			inputs[d * n + i] = device_part(b, &b->cases[i],
			                                sw_value_shape(b->program, values[i]), d);
	execute(b->program, devices, inputs, n, &e);
	for (uint32_t i = 0; i < n; i++)
		compare_case(b, &e, i);
	sw_cost_program(&b->cluster, b->program, &cost);
	assert_int_equal(e.payload_bytes, cost.payload_bytes);
	assert_true(e.payload_bytes <= b->path_bytes);
	if (!b->permutes && !sw_program_has_owners(b->program))
		assert_int_equal(e.payload_bytes, b->path_bytes);
	execution_clear(&e);
	free(inputs);
}

static void try_batch(const char *levels, uint64_t seed, counts *all)
{
	batch b = {.seed = seed};
	sw_rng rng = {seed, 0};
	make_cluster(levels, &b.cluster);
	b.memory_bytes = sw_rng_below(&rng, 3) == 0 ? 64 << sw_rng_below(&rng, 8) : 0;
	sw_redistribution how = {.atoms = &b.cluster.atoms,
	                         .seconds = random_seconds,
	                         .context = &b.seed,
	                         .memory_bytes = b.memory_bytes,
	                         .local_bandwidth = sw_rng_below(&rng, 2) ? 8e9 : 0};
	b.paths = sw_path_cache_new(&how);
	for (int i = 0; i < CASES_PER_PROGRAM; i++) {
		b.cases[i] = random_case(&rng, &b);
		check_payload(&b, &b.cases[i], all);
	}
	b.program = write_program(&b, b.cases, CASES_PER_PROGRAM);
	run_batch(&b);
	sw_program_free(b.program);
	sw_path_cache_free(b.paths);
	sw_cluster_clear(&b.cluster);
	sw_arena_clear(&b.arena);
}

static void random_moves_give_every_device_its_part(void **state)
{
	static const struct {
		const char *levels;
		uint64_t programs;
	} clusters[] = {
		{"2", 10},
		{"3", 10},
		{"5", 10},
		{"2,[1, 4]", 6},
		{"2,[2, 4]", 10},
		{"2,2", 20},
		{"2,3", 20},
		{"3,2", 20},
		{"3,3", 10},
		{"2,5", 10},
		{"2,3,[1, 2, 1, 2, 1, 1]", 4},
		{"2,2,2", 20},
		{"2,3,2", 20},
		{"3,4", 10},
		{"2,2,2,2", 10},
		{"3,2,2,2", 6},
		{"2,2,3,2", 6},
	};
	counts all = {0};
	const char *given = getenv("SW_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 20240607;
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (size_t c = 0; c < SW_COUNT(clusters); c++)
		for (uint64_t i = 0; i < clusters[c].programs; i++)
			try_batch(clusters[c].levels, sw_hash_u64(seed, 100 * c + i), &all);
	print_message("%lld cases, %lld without elements, %lld within a memory bound, longest path "
	              "%lld\n",
	              (long long)all.cases, (long long)all.empty, (long long)all.bounded,
	              (long long)all.longest);
	assert_true(all.empty >= 100 && all.bounded >= 1000);
	int tried = 0;
	for (int type = 0; type < SW_TYPE_COUNT; type++) {
		tried += is_tried((sw_type)type);
		assert_true(all.types[type] >= 50 || !is_tried((sw_type)type));
	}
	print_message("%d types\n", tried);
	assert_true(tried >= 15);
	for (int kind = 0; kind < SW_MOVE_COUNT; kind++) {
		print_message("  %-16s %lld\n", sw_move_name((sw_move_kind)kind),
		              (long long)all.kinds[kind]);
		assert_true(all.kinds[kind] >= 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_moves_give_every_device_its_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
