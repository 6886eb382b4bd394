/* A placement gives every device what the layout gives it. */
#include "export/array_placement.h"

#include <string.h>

#include "planned/planned.h"

/* Return which of the dimension's parts the device has: its coordinates on the axes. */
static int64_t part_of(const sw_device_mesh *mesh, const sw_placed_dim *dim, int64_t device)
{
	int64_t coordinates[SW_MAX_ATOMS], part = 0;
	for (int32_t i = mesh->n; i-- > 0;) {
		coordinates[i] = device % mesh->axes[i].size;
		device /= mesh->axes[i].size;
	}
	for (int32_t i = 0; i < dim->n_axes; i++)
		part = part * mesh->axes[dim->axes[i]].size + coordinates[dim->axes[i]];
	return part;
}

/* Write the numbers of the elements that the device has by the placement, in the order of its part,
 * as those of a row-major array. */
static void cut(const sw_device_mesh *mesh, const sw_array_placement *placement, int64_t device,
                int64_t *elements)
{
	int64_t n = 1;
	for (int32_t i = 0; i < placement->n; i++)
		n *= placement->dims[i].local_size;
	for (int64_t local = 0; local < n; local++) {
		int64_t rest = local, step = 1, element = 0;
		for (int32_t i = placement->n; i-- > 0;) {
			const sw_placed_dim *dim = &placement->dims[i];
			int64_t index = rest % dim->local_size;
			rest /= dim->local_size;
			element += step * (part_of(mesh, dim, device) * dim->local_size + index);
			step *= dim->size;
		}
		elements[local] = element;
	}
}

/* Return whether the layout needed more dimensions than the shape has. */
static bool check_value(const planned *p, const sw_device_mesh *mesh, sw_shape shape,
                        const sw_layout *layout)
{
	sw_array_placement placement;
	int64_t n = sw_shape_elements(shape);
	int64_t *whole = sw_alloc((size_t)n * 8 + 8), *a = sw_alloc((size_t)n * 8 + 8);
	int64_t *b = sw_alloc((size_t)n * 8 + 8);
	for (int64_t i = 0; i < n; i++)
		whole[i] = i;
	sw_array_placement_of(mesh, shape, layout, &placement);
	for (int64_t device = 0; device < sw_atoms_devices(&p->cluster.atoms); device++) {
		memset(a, 0, (size_t)n * 8);
		memset(b, 0, (size_t)n * 8);
		sw_layout_cut(&p->cluster.atoms, shape, layout, device, 8, whole, a);
		cut(mesh, &placement, device, b);
		assert_memory_equal(a, b, (size_t)n * 8);
	}
	free(whole);
	free(a);
	free(b);
	return placement.n > shape.rank;
}

static void placements_are_the_layouts(void **state)
{
	planned p;
	sw_arena arena;
	sw_device_mesh mesh;
	const sw_id *inputs;
	int longer = 0, values = 0;
	sw_rng rng = {.seed = 20240719};
	(void)state;
	sw_arena_init(&arena);
	open_fixture("mlp", "local-2x4.yaml", &p);
	make_plan(&p, "megatron:tp=2");
	uint32_t n = sw_program_inputs(p.plan->program, p.plan->program->entry, &arena, &inputs);
	for (int round = 0; round < 40; round++) {
		print_message("round %d of seed 20240719\n", round);
		for (uint32_t i = 0; i < n; i++) {
			sw_layout layout =
				draw_layout(&p.cluster.atoms, input_shape(&p, i), round % 2, &rng);
			if (round % 4 > 1 && i != (uint32_t)round % n)
				layout = sw_layout_replicated(&p.cluster.atoms);
			p.plan->produced[inputs[i]] = sw_layouts_id(&p.plan->layouts, &layout);
		}
		sw_device_mesh_of(&mesh, p.plan);
		for (uint32_t i = 0; i < n; i++, values++)
			longer += check_value(&p, &mesh, input_shape(&p, i), input_layout(&p, i));
	}
	assert_in_range(longer, values / 20, values / 2);
	close_planned(&p);
	sw_arena_clear(&arena);
}

static void check_digits(const sw_atoms *atoms, const sw_device_mesh *mesh, const char *layout_text,
                         const char *digits, const char *spec)
{
	const int64_t dims[] = {16, 24};
	sw_shape shape = {SW_F32, 2, 0, dims};
	sw_layout layout;
	sw_array_placement placement;
	sw_error err = {0};
	check(sw_layout_parse(atoms, shape, layout_text, &layout, &err), &err);
	sw_array_placement_of(mesh, shape, &layout, &placement);
	json_t *a = sw_array_placement_digits_json(&placement);
	json_t *b = sw_array_placement_spec_json(mesh, &placement);
	char *text_a = json_dumps(a, JSON_COMPACT), *text_b = json_dumps(b, JSON_COMPACT);
	assert_string_equal(text_a, digits);
	assert_string_equal(text_b, spec);
	free(text_a);
	free(text_b);
	json_decref(a);
	json_decref(b);
}

static void digits_are_those_written_by_hand(void **state)
{
	planned p;
	sw_device_mesh mesh;
	(void)state;
	open_fixture("mlp", "local-2x4.yaml", &p);
	make_plan(&p, "dp");
	sw_device_mesh_of(&mesh, p.plan);
	mesh.n = 3; /* an axis per atom */
	for (int32_t i = 0; i < 3; i++)
		mesh.axes[i] = (sw_mesh_axis){i, i + 1, 2, {(char)('a' + i), 0}};
	const sw_atoms *atoms = &p.cluster.atoms;
	check_digits(atoms, &mesh, "[B B B]", "[16,24]", "[[],[]]");
	check_digits(atoms, &mesh, "[S0 S1 B]", "[16,24]", "[[\"a\"],[\"b\"]]");
	check_digits(atoms, &mesh, "[S0/4 S0/8 B]", "[16,24]", "[[\"b\",\"a\"],[]]");
	check_digits(atoms, &mesh, "[S0/8 S0/2 S1]", "[4,4,24]", "[[\"a\"],[\"b\"],[\"c\"]]");
	check_digits(atoms, &mesh, "[S1/4 B B]", "[16,3,8]", "[[],[],[\"a\"]]");
	check_digits(atoms, &mesh, "[S0/1 B S0/4]", "[2,4,2,24]", "[[],[\"c\"],[\"a\"],[]]");
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placements_are_the_layouts),
		cmocka_unit_test(digits_are_those_written_by_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
