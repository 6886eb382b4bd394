/*
 * Strategies: their names, and the meshes they search. A mesh groups the atoms into axes and says how each may be used.
 */
#include "plan/internal.h"

#include <stdlib.h>
#include <string.h>

/* Three axes have the cube of one's candidates: they are searched where there are few ways to group the atoms, and few ops. */
#define MOST_ATOMS_OF_THREE 4
#define MOST_OPS_OF_THREE 200

static const struct {
	const char *name;
	sw_strategy_kind kind;
} STRATEGIES[] = {
	{"auto", SW_PLAN_AUTO},
	{"dp", SW_PLAN_DP},
	{"zero1", SW_PLAN_ZERO1},
	{"zero3", SW_PLAN_ZERO3},
};

sw_status sw_plan_strategy_parse(const char *text, sw_plan_strategy *strategy, sw_error *err)
{
	static const char prefix[] = "megatron:tp=";
	*strategy = (sw_plan_strategy){0};
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++)
		if (!strcmp(text, STRATEGIES[i].name)) {
			strategy->kind = STRATEGIES[i].kind;
			return SW_OK;
		}
	if (!strncmp(text, prefix, sizeof(prefix) - 1)) {
		const char *digits = text + sizeof(prefix) - 1;
		size_t n = strspn(digits, "0123456789");
		long long tp = n < 10 ? strtoll(digits, NULL, 10) : 0;
		if (digits[n] == '\0' && tp >= 1) {
			*strategy = (sw_plan_strategy){.kind = SW_PLAN_MEGATRON, .tp = tp};
			return SW_OK;
		}
	}
	return sw_fail(err, SW_ERR_INPUT,
	               "unknown strategy '%s': use auto, dp, zero1, zero3 or megatron:tp=K", text);
}

void sw_plan_strategy_print(const sw_plan_strategy *strategy, sw_text *text)
{
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++)
		if (STRATEGIES[i].kind == strategy->kind) {
			sw_text_add(text, STRATEGIES[i].name);
			return;
		}
	if (strategy->kind == SW_PLAN_MEGATRON)
		sw_text_addf(text, "megatron:tp=%lld", (long long)strategy->tp);
	else
		sw_text_add(text, "serial");
}

/* Atoms [first, last) as an axis. */
static void add_axis(sw_mesh *mesh, const sw_atoms *atoms, int32_t first, int32_t last, sw_axis_use use)
{
	if (first >= last)
		return;
	sw_axis *axis = &mesh->axes[mesh->n_axes];
	for (int32_t a = first; a < last; a++)
		axis->atoms |= 1u << a;
	axis->size = sw_atoms_group_size(atoms, axis->atoms);
	snprintf(axis->name, sizeof(axis->name), "%c", 'x' + mesh->n_axes);
	mesh->use[mesh->n_axes++] = use;
}

/* The outer atoms [0, i) of [0, last) over which a batch can be split evenly. */
static int32_t outermost(const sw_atoms *atoms, int32_t last, int64_t batch)
{
	int32_t i = 0;
	for (int64_t product = 1; i < last && batch % (product * atoms->size[i]) == 0; i++)
		product *= atoms->size[i];
	return i;
}

/* Data parallelism over the atoms [0, last), as far as the batch goes. */
static void add_data_axes(sw_mesh *mesh, const sw_atoms *atoms, int32_t last, int64_t batch)
{
	int32_t split = outermost(atoms, last, batch);
	add_axis(mesh, atoms, 0, split, SW_AXIS_DATA);
	add_axis(mesh, atoms, split, last, SW_AXIS_STATE);
}

static sw_mesh data_mesh(const sw_atoms *atoms, int64_t batch, const char *name, bool split_moments,
                         bool split_parameters)
{
	sw_mesh mesh = {.split_parameters = split_parameters, .split_moments = split_moments};
	snprintf(mesh.name, sizeof(mesh.name), "%s", name);
	add_data_axes(&mesh, atoms, atoms->n, batch);
	return mesh;
}

/* The innermost atoms [i, n) whose product is tp; -1 if there are none. */
static int32_t innermost(const sw_atoms *atoms, int64_t tp)
{
	int64_t product = 1;
	for (int32_t i = atoms->n; i >= 0; i--) {
		if (product == tp)
			return i;
		product *= i > 0 ? atoms->size[i - 1] : 1;
	}
	return -1;
}

static sw_mesh megatron_mesh(const sw_atoms *atoms, int64_t batch, int32_t first_inner, int64_t tp)
{
	sw_mesh mesh = {0};
	snprintf(mesh.name, sizeof(mesh.name), "megatron:tp=%lld", (long long)tp);
	add_data_axes(&mesh, atoms, first_inner, batch);
	add_axis(&mesh, atoms, first_inner, atoms->n, SW_AXIS_TENSOR);
	return mesh;
}

/* Atoms [0, first), [first, second), [second, n) as axes; equal bounds: fewer. */
static sw_mesh free_mesh(const sw_atoms *atoms, int32_t first, int32_t second)
{
	sw_mesh mesh = {0};
	sw_text name = {0};
	add_axis(&mesh, atoms, 0, first, SW_AXIS_FREE);
	add_axis(&mesh, atoms, first, second, SW_AXIS_FREE);
	add_axis(&mesh, atoms, second, atoms->n, SW_AXIS_FREE);
	sw_text_add(&name, mesh.n_axes > 0 ? "search" : "one device");
	for (int32_t i = 0; i < mesh.n_axes; i++)
		sw_text_addf(&name, " %s=%lld", mesh.axes[i].name, (long long)mesh.axes[i].size);
	snprintf(mesh.name, sizeof(mesh.name), "%s", name.data);
	sw_text_clear(&name);
	return mesh;
}

static sw_status add_megatron(const sw_cluster *cluster, int64_t batch, int64_t tp, sw_meshes *meshes,
                              sw_error *err)
{
	int32_t first_inner = innermost(&cluster->atoms, tp);
	if (first_inner < 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "megatron:tp=%lld does not fit cluster '%s' of %lld devices: K must be a "
		               "product of its innermost factors",
		               (long long)tp, cluster->name, (long long)cluster->n_devices);
	sw_vec_push(meshes, megatron_mesh(&cluster->atoms, batch, first_inner, tp));
	return SW_OK;
}

static void add_auto(const sw_cluster *cluster, int64_t batch, sw_meshes *meshes)
{
	const sw_atoms *atoms = &cluster->atoms;
	if (atoms->n > 0) {
		sw_vec_push(meshes, data_mesh(atoms, batch, "dp", false, false));
		sw_vec_push(meshes, data_mesh(atoms, batch, "zero1", true, false));
		sw_vec_push(meshes, data_mesh(atoms, batch, "zero3", true, true));
	}
	for (int32_t i = atoms->n - 1; i >= 0; i--)
		add_megatron(cluster, batch,
		             sw_atoms_group_size(atoms, ((1u << atoms->n) - 1) & ~((1u << i) - 1)), meshes,
		             NULL);
	for (int32_t i = 1; i < atoms->n; i++)
		sw_vec_push(meshes, free_mesh(atoms, i, atoms->n));
	for (int32_t i = 1; i < atoms->n && atoms->n <= MOST_ATOMS_OF_THREE; i++)
		for (int32_t k = i + 1; k < atoms->n; k++)
			sw_vec_push(meshes, free_mesh(atoms, i, k));
	if (atoms->n < 2)
		sw_vec_push(meshes, free_mesh(atoms, 0, atoms->n));
}

sw_status sw_meshes_of(const sw_cluster *cluster, const sw_plan_strategy *strategy, int64_t batch,
                       sw_meshes *meshes, sw_error *err)
{
	const sw_atoms *atoms = &cluster->atoms;
	switch (strategy->kind) {
	case SW_PLAN_DP:
		sw_vec_push(meshes, data_mesh(atoms, batch, "dp", false, false));
		return SW_OK;
	case SW_PLAN_ZERO1:
		sw_vec_push(meshes, data_mesh(atoms, batch, "zero1", true, false));
		return SW_OK;
	case SW_PLAN_ZERO3:
		sw_vec_push(meshes, data_mesh(atoms, batch, "zero3", true, true));
		return SW_OK;
	case SW_PLAN_MEGATRON:
		return add_megatron(cluster, batch, strategy->tp, meshes, err);
	case SW_PLAN_SERIAL:
		sw_vec_push(meshes, ((sw_mesh){.name = "serial"}));
		return SW_OK;
	case SW_PLAN_AUTO:
		add_auto(cluster, batch, meshes);
		return SW_OK;
	}
	return SW_OK;
}

void sw_meshes_limit(sw_meshes *meshes, const sw_program *program, char *scope, size_t room)
{
	size_t n = 0;
	bool three = false;
	for (size_t i = 0; i < meshes->len; i++) {
		const sw_mesh mesh = meshes->data[i];
		bool searches_three = mesh.n_axes > 2 && mesh.use[0] == SW_AXIS_FREE;
		if (searches_three && program->ops.len > MOST_OPS_OF_THREE)
			continue;
		three = three || searches_three;
		meshes->data[n++] = mesh;
	}
	meshes->len = n;
	snprintf(scope, room, "plans on a mesh of at most %s axes", three ? "three" : "two");
}
