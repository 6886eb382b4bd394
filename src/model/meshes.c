/*
 * Meshes of strategies. A mesh groups the atoms into axes and says how each may be used. The table
 * of fixed strategies (plan/fixed_strategy.c) gives the use of each axis; this file assigns the
 * atoms of a cluster to the axes.
 */
#include "model/axonn_grids.h"
#include "model/internal.h"

#include <math.h>
#include <string.h>

/* The use of a free axis: any split of a class that makes candidates. */
static const sw_axis_use SEARCHED = {.may = {SW_CLASS_HEAVY, 0}};

/* ---- axes ------------------------------------------------------------------------------- */

/* Add the atoms [first, last) as an axis, or nothing if there are none; name NULL: a letter. */
static void add_axis(sw_mesh *mesh, const sw_atoms *atoms, int32_t first, int32_t last,
                     const sw_axis_use *use, const char *name)
{
	static const char letters[] = "xyzw";
	if (first >= last)
		return;
	sw_axis *axis = &mesh->axes[mesh->n_axes];
	for (int32_t a = first; a < last; a++)
		axis->atoms |= 1u << a;
	axis->size = sw_atoms_group_size(atoms, axis->atoms);
	if (name)
		snprintf(axis->name, sizeof(axis->name), "%s", name);
	else
		snprintf(axis->name, sizeof(axis->name), "%c", letters[mesh->n_axes]);
	axis->coalesced = use && use->moments && !use->parameters;
	mesh->use[mesh->n_axes++] = use;
}

/* Return i, so that the batch divides by the devices of the outer atoms [first, i) of [first, last). */
static int32_t batch_atoms(const sw_atoms *atoms, int32_t first, int32_t last, int64_t batch)
{
	int32_t i = first;
	for (int64_t product = 1; i < last && batch % (product * atoms->size[i]) == 0; i++)
		product *= atoms->size[i];
	return i;
}

/* Use the atoms [first, last) for data parallelism, as far as the batch divides by them. */
static void add_data_axes(sw_mesh *mesh, const sw_atoms *atoms, int32_t first, int32_t last,
                          int64_t batch, const sw_strategy_axis *data)
{
	int32_t split = batch_atoms(atoms, first, last, batch);
	add_axis(mesh, atoms, first, split, data->use, NULL);
	add_axis(mesh, atoms, split, last, data->other, NULL);
}

/* Return i, so that the innermost atoms [i, n) have `size` devices; -1 if there is no i. */
static int32_t inner_atoms(const sw_atoms *atoms, int64_t size)
{
	int64_t product = 1;
	for (int32_t i = atoms->n; i >= 0; i--) {
		if (product == size)
			return i;
		product *= i > 0 ? atoms->size[i - 1] : 1;
	}
	return -1;
}

/* Use the innermost `size` devices for `use`, and data parallelism outside. */
static bool inner_mesh(const sw_atoms *atoms, int64_t batch, int64_t size,
                       const sw_strategy_axis *data, const sw_axis_use *use, sw_mesh *mesh)
{
	int32_t first_inner = inner_atoms(atoms, size);
	if (first_inner < 0)
		return false;
	add_data_axes(mesh, atoms, 0, first_inner, batch, data);
	add_axis(mesh, atoms, first_inner, atoms->n, use, NULL);
	return true;
}

/* Assign atoms to the axes of a strategy with these sizes, from the outside inwards; return false
 * if no adjacent atoms have them. */
static bool grid_mesh(const sw_atoms *atoms, int64_t batch, const sw_plan_strategy *strategy,
                      sw_mesh *mesh)
{
	const sw_fixed_strategy *fixed = sw_fixed_strategy_of(strategy->kind);
	int64_t outer = 1;
	int32_t first = 0;
	mesh->grid = true;
	for (int32_t i = 0; i < fixed->n_axes; i++) {
		const sw_strategy_axis *axis = &fixed->axes[i];
		int32_t last = first;
		int64_t size = 1, needed = strategy->size[axis->size];
		while (last < atoms->n && size < needed)
			size *= atoms->size[last++];
		if (size != needed)
			return false;
		outer *= size;
		bool other = axis->other && batch % outer != 0;
		add_axis(mesh, atoms, first, last, other ? axis->other : axis->use, axis->name);
		first = last;
	}
	return first == atoms->n;
}

/* ---- the sizes to split ----------------------------------------------------------------- */

typedef struct request {
	const sw_cluster *cluster;
	const sw_model_limits *limits;
	const sw_atoms *atoms;
	const sw_roles *roles;
	int64_t batch;   /* as sw_find_batch returns it */
	int64_t experts; /* greatest common divisor of the numbers of experts; 0: there are none */
	sw_meshes *meshes;
} request;

/* With no program there is nothing to split. */
static int64_t batch_of(const sw_roles *roles)
{
	return roles ? roles->batch : 1;
}

/* Count the experts by the dots in which each expert has a weight of its own. */
static int64_t experts_of(const sw_roles *roles)
{
	int64_t experts = 0;
	for (sw_id id = 0; roles && id < roles->program->ops.len; id++) {
		const sw_op *op = sw_op_at(roles->program, id);
		if (op->opcode != SW_OP_DOT || sw_roles_weight(roles, id) < 0)
			continue;
		sw_ints batch = op->attrs->dot.lhs_batch;
		for (int32_t i = 0; i < batch.n; i++)
			experts = sw_gcd(
				sw_value_shape(roles->program, op->operands[0]).dims[batch.v[i]],
				experts);
	}
	return experts;
}

/* ---- strategies ------------------------------------------------------------------------- */

static void add_mesh(const request *r, const sw_plan_strategy *strategy, sw_mesh mesh)
{
	sw_text name = {0};
	sw_plan_strategy_print(strategy, &name);
	snprintf(mesh.name, sizeof(mesh.name), "%s", name.data);
	sw_text_clear(&name);
	sw_vec_push(r->meshes, mesh);
}

/* Fail with the sizes that the strategy may have as the reason. */
static sw_status does_not_fit(const request *r, const sw_plan_strategy *strategy,
                              const char *reason, sw_error *err)
{
	sw_text name = {0}, factors = {0};
	sw_plan_strategy_print(strategy, &name);
	for (int32_t a = 0; a < r->atoms->n; a++)
		sw_text_addf(&factors, "%s%d", a ? " x " : "", r->atoms->size[a]);
	sw_status status =
		sw_fail(err, SW_ERR_INPUT, "%s does not fit cluster '%s' of %lld%s%s devices: %s",
	                name.data, r->cluster->name, (long long)r->cluster->n_devices,
	                r->atoms->n > 1 ? " = " : "", r->atoms->n > 1 ? factors.data : "", reason);
	sw_text_clear(&name);
	sw_text_clear(&factors);
	return status;
}

static sw_status add_data(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	(void)err;
	sw_mesh mesh = {0};
	add_data_axes(&mesh, r->atoms, 0, r->atoms->n, r->batch,
	              &sw_fixed_strategy_of(strategy->kind)->axes[0]);
	add_mesh(r, strategy, mesh);
	return SW_OK;
}

/* Return whether some input is a parameter with a dimension. */
static bool has_variables(const sw_roles *roles)
{
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		if (roles->input_role[i] == SW_ROLE_PARAMETER &&
		    sw_value_shape(roles->program, roles->inputs[i]).rank > 0)
			return true;
	return false;
}

static void add_axis_mesh(const request *r, const sw_strategy_axis *axis, const char *name)
{
	sw_mesh mesh = {0};
	add_data_axes(&mesh, r->atoms, 0, r->atoms->n, r->batch, axis);
	snprintf(mesh.name, sizeof(mesh.name), "%s", name);
	sw_vec_push(r->meshes, mesh);
}

/* Where the search has a choice of ways, one way for all that may have any is among what is played, since
 * the model does not see what a schedule merges: it is no slower than any of these. Without a file of ways
 * fixed strategies, which divide more, are, too. */
static void add_one_way_each(const request *r, bool of_file)
{
	static const struct {
		sw_strategy_kind kind;
		const char *name;
	} fixed[] = {{SW_PLAN_DP, "dp"}, {SW_PLAN_ZERO1, "zero1"}, {SW_PLAN_ZERO3, "zero3"}};
	static const struct {
		sw_axis_ways ways;
		const char *of_file, *name; /* name: where there is no file; NULL: it is a fixed strategy */
	} each[] = {{SW_WAYS_REDUCED, "any by all-reduce", NULL},
	            {SW_WAYS_MOMENTS, "any by zero1", "variables by zero1"},
	            {SW_WAYS_SPLIT, "any by zero3", "variables by zero3"},
	            {SW_WAYS_OWNED, "any by ps", "ps:balanced"},
	            {SW_WAYS_PROXY, "any by ps with proxies", "ps:balanced,proxy"},
	            {SW_WAYS_PARTITIONED, "any by zero3 or ps", "ps:partitioned"},
	            {SW_WAYS_SPARSE, "rows by ps", "parallax"},
	            {SW_WAYS_GATHERED, "any by gather", "variables by gather"},
	            {SW_WAYS_GATHERED_ROWS, "rows by gather", "rows by gather"}};
	for (size_t i = 0; i < SW_COUNT(fixed) && !of_file && r->atoms->n > 0; i++)
		add_axis_mesh(r, sw_fixed_strategy_of(fixed[i].kind)->axes, fixed[i].name);
	for (size_t i = 0; i < SW_COUNT(each) && r->atoms->n > 0; i++) {
		const char *name = of_file ? each[i].of_file : each[i].name;
		if (name)
			add_axis_mesh(r, sw_strategy_ways_axis(each[i].ways), name);
	}
}

static sw_status add_ways(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	if (r->roles && !has_variables(r->roles))
		return sw_fail(err, SW_ERR_INPUT,
		               "%s says how variables are synchronised, and the program has none: give "
		               "a training step, whose parameters are state",
		               sw_fixed_strategy_of(strategy->kind)->name);
	if (strategy->owners == SW_OWNERS_ANY)
		add_one_way_each(r, strategy->kind == SW_PLAN_SYNC);
	return add_data(r, strategy, err);
}

static sw_status add_megatron(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	sw_mesh mesh = {0};
	const sw_strategy_axis *axes = sw_fixed_strategy_of(strategy->kind)->axes;
	if (!inner_mesh(r->atoms, r->batch, strategy->size[0], sw_strategy_data_axis(strategy),
	                strategy->sequence ? axes[1].other : axes[1].use, &mesh))
		return does_not_fit(r, strategy, "K must be a product of its innermost factors",
		                    err);
	add_mesh(r, strategy, mesh);
	return SW_OK;
}

/* Return the ratio of the largest and the smallest size of a grid: 1 for a square or a cube. */
static double unevenness(const int64_t *sizes, int n)
{
	int64_t most = 1, least = INT64_MAX;
	for (int i = 0; i < n; i++) {
		most = SW_MAX(most, sizes[i]);
		least = SW_MIN(least, sizes[i]);
	}
	return (double)most / (double)least;
}

/* Choose the most even grid; of several, the one with the largest outer sizes. */
static void choose_even(const sw_atoms *atoms, int n, int64_t *sizes)
{
	double best = INFINITY;
	for (int32_t i = atoms->n; i >= 0; i--)
		for (int32_t k = n > 2 ? atoms->n : i; k >= i; k--) {
			const uint32_t all = (1u << atoms->n) - 1, outer = (1u << i) - 1,
				       both = (1u << k) - 1;
			const int64_t grid[] = {
				sw_atoms_group_size(atoms, outer),
				sw_atoms_group_size(atoms, n > 2 ? both & ~outer : all & ~outer),
				sw_atoms_group_size(atoms, n > 2 ? all & ~both : 0)};
			if (unevenness(grid, n) >= best)
				continue;
			best = unevenness(grid, n);
			memcpy(sizes, grid, sizeof(*sizes) * (size_t)n);
		}
}

static sw_status add_summa(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	sw_plan_strategy sized = *strategy;
	sw_mesh mesh = {0};
	if (sized.size[0] == 0)
		choose_even(r->atoms, sw_fixed_strategy_of(sized.kind)->n_axes, sized.size);
	if (!grid_mesh(r->atoms, r->batch, &sized, &mesh))
		return does_not_fit(
			r, strategy,
			"sizes must be products of adjacent factors, R of the outermost", err);
	add_mesh(r, &sized, mesh);
	return SW_OK;
}

static sw_status add_grid(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	sw_mesh mesh = {0};
	if (!grid_mesh(r->atoms, r->batch, strategy, &mesh))
		return does_not_fit(
			r, strategy,
			"X, Y, Z and D must be products of adjacent factors, X of the innermost",
			err);
	if (r->batch % strategy->size[3] != 0)
		return does_not_fit(r, strategy, "D must divide the batch", err);
	add_mesh(r, strategy, mesh);
	return SW_OK;
}

/* Add the grids that AxoNN's communication model ranks first. */
static sw_status add_axonn(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	if (strategy->size[0] > 0)
		return add_grid(r, strategy, err);
	sw_arena arena;
	sw_arena_init(&arena);
	sw_grids grids = sw_grids_rank(r->cluster, r->roles, r->batch,
	                               strategy->paper ? SW_AXONN_PAPER : SW_AXONN_OURS, &arena);
	for (int32_t i = 0; i < grids.n && i < strategy->top; i++)
		add_grid(r, &grids.list[i].grid, err);
	sw_arena_clear(&arena);
	return SW_OK;
}

/* Return the size of the largest group of innermost devices by which the number of experts divides.
 */
static int64_t largest_expert_group(const request *r)
{
	int64_t most = 1, size = 1;
	for (int32_t a = r->atoms->n - 1; a >= 0 && r->experts > 0; a--) {
		size *= r->atoms->size[a];
		if (r->experts % size == 0)
			most = size;
	}
	return most;
}

static sw_status add_expert(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	sw_plan_strategy sized = *strategy;
	sw_mesh mesh = {0};
	const sw_strategy_axis *axes = sw_fixed_strategy_of(strategy->kind)->axes;
	if (r->experts == 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "expert: the program has no dot with a weight per expert");
	if (sized.size[0] == 0)
		sized.size[0] = largest_expert_group(r);
	if (sized.size[0] < 2 || r->experts % sized.size[0] != 0 ||
	    !inner_mesh(r->atoms, r->batch, sized.size[0], &axes[0], axes[1].use, &mesh))
		return does_not_fit(
			r, strategy,
			"K must be a product of its innermost factors, more than 1, that divides "
			"the number of experts",
			err);
	add_mesh(r, &sized, mesh);
	return SW_OK;
}

static sw_status add_serial(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	(void)err;
	add_mesh(r, strategy, (sw_mesh){0});
	return SW_OK;
}

/* ---- auto ------------------------------------------------------------------------------- */

/* Return a mesh of free axes: atoms [from, first), [first, second), [second, n); an empty range is no
 * axis. */
static sw_mesh free_mesh(const request *r, int32_t from, int32_t first, int32_t second)
{
	sw_mesh mesh = {.search = true};
	sw_text name = {0};
	add_axis(&mesh, r->atoms, from, first, &SEARCHED, NULL);
	add_axis(&mesh, r->atoms, first, second, &SEARCHED, NULL);
	add_axis(&mesh, r->atoms, second, r->atoms->n, &SEARCHED, NULL);
	sw_text_add(&name, mesh.n_axes > 0 ? "search" : "one device");
	for (int32_t i = 0; i < mesh.n_axes; i++)
		sw_text_addf(&name, " %s=%lld", mesh.axes[i].name, (long long)mesh.axes[i].size);
	snprintf(mesh.name, sizeof(mesh.name), "%s", name.data);
	sw_text_clear(&name);
	return mesh;
}

static void add_search(const request *r, int32_t first, int32_t second)
{
	sw_vec_push(r->meshes, free_mesh(r, 0, first, second));
}

static void add_all_searches(const request *r)
{
	int32_t n = r->atoms->n;
	for (int32_t i = 1; i < n; i++)
		add_search(r, i, n);
	for (int32_t i = 1; i < n; i++)
		for (int32_t k = i + 1; k < n; k++)
			add_search(r, i, k);
	if (n < 2)
		add_search(r, 0, n);
}

/* Add the fixed strategies that are planned quickly and are often hard to beat. */
static void add_fixed(const request *r)
{
	static const sw_strategy_kind data[] = {SW_PLAN_DP, SW_PLAN_ZERO1, SW_PLAN_ZERO2,
	                                        SW_PLAN_ZERO3};
	for (size_t i = 0; i < SW_COUNT(data) && r->atoms->n > 0; i++)
		add_data(r, &(sw_plan_strategy){.kind = data[i]}, NULL);
	int64_t size = 1;
	for (int32_t a = r->atoms->n - 1; a >= 0; a--) {
		size *= r->atoms->size[a];
		for (int sequence = 0; sequence < 2; sequence++) {
			sw_plan_strategy megatron = {SW_PLAN_MEGATRON, .size = {size},
			                             .sequence = sequence};
			add_megatron(r, &megatron, NULL);
		}
	}
	if (largest_expert_group(r) > 1)
		add_expert(r, &(sw_plan_strategy){.kind = SW_PLAN_EXPERT}, NULL);
}

/* Return the number of grids that a budget of ops to be modelled affords. */
static int64_t affordable(const request *r, double work)
{
	return (int64_t)(work / (double)r->roles->program->ops.len);
}

static bool is_first_of_its_name(const sw_meshes *meshes, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(meshes->data[k].name, meshes->data[i].name))
			return false;
	return true;
}

/* Add Megatron within nodes with ZeRO-3 around it: often chosen by hand where neither alone fits.
 * Megatron on a whole node comes first, then on ever smaller parts of one; a node has few, so that
 * all are added to a program of any size. */
static void add_hybrids(const request *r)
{
	int64_t size = 1;
	int32_t a = 1;
	sw_meshes *meshes = r->meshes;
	while (a < r->atoms->n && r->cluster->atom_level[a] == 0)
		a++;
	for (int32_t inner = a; inner < r->atoms->n; inner++)
		size *= r->atoms->size[inner];
	for (; a < r->atoms->n; size /= r->atoms->size[a++]) {
		const sw_plan_strategy hybrid = {
			SW_PLAN_AXONN, .size = {size, 1, r->cluster->n_devices / size, 1}};
		if (add_grid(r, &hybrid, NULL) != SW_OK)
			continue;
		meshes->data[meshes->len - 1].saves_memory = true;
		meshes->len -= !is_first_of_its_name(meshes, meshes->len - 1);
	}
}

/* Add AxoNN's best grids, as many as their budget affords, and Megatron within ZeRO-3. The grids
 * stand last: which there are depends on the rewritten program, and the meshes before them must
 * have the same numbers in all variants. */
static void add_grids(const request *r)
{
	if (!r->roles || r->atoms->n == 0)
		return;
	int64_t top = SW_MAX(affordable(r, r->limits->grids_work), (int64_t)r->limits->least_grids);
	add_axonn(r, &(sw_plan_strategy){SW_PLAN_AXONN, .top = SW_MIN(top, SW_TOP_GRIDS)}, NULL);
	add_hybrids(r);
}

/* Add a mesh of the innermost atoms [first, n), over whose copies all is whole. */
static void add_copied(const request *r, sw_mesh mesh, int32_t first, const char *name)
{
	int64_t copies = 1;
	for (int32_t a = 0; a < first; a++)
		copies *= r->atoms->size[a];
	snprintf(mesh.name, sizeof(mesh.name), "%s, copied %lld times", name, (long long)copies);
	mesh.copied = true;
	sw_vec_push(r->meshes, mesh);
}

/* Add meshes of free axes of the innermost atoms [first, n), one axis or two: what fewer devices can
 * do, all can. */
static void add_part(const request *r, int32_t first, bool two)
{
	int32_t n = r->atoms->n;
	for (int32_t i = two ? first + 1 : n; i < n + !two; i++) {
		sw_mesh mesh = free_mesh(r, first, i, n);
		add_copied(r, mesh, first, mesh.name);
	}
}

/* Add data parallelism, ZeRO and Megatron on the innermost atoms [first, n). The steps of programs that
 * wait for launches and latencies are often shortest there, where the model sees no gain. */
static void add_fixed_part(const request *r, int32_t first)
{
	static const sw_strategy_kind data[] = {SW_PLAN_DP, SW_PLAN_ZERO1, SW_PLAN_ZERO2,
	                                        SW_PLAN_ZERO3};
	for (size_t i = 0; i < SW_COUNT(data); i++) {
		const sw_fixed_strategy *fixed = sw_fixed_strategy_of(data[i]);
		sw_mesh mesh = {0};
		add_data_axes(&mesh, r->atoms, first, r->atoms->n, r->batch, &fixed->axes[0]);
		add_copied(r, mesh, first, fixed->name);
	}
	sw_mesh mesh = {0};
	add_axis(&mesh, r->atoms, first, r->atoms->n,
	         sw_fixed_strategy_of(SW_PLAN_MEGATRON)->axes[1].use, NULL);
	char name[SW_NAME_BYTES];
	snprintf(name, sizeof(name), "megatron:tp=%lld", (long long)mesh.axes[0].size);
	add_copied(r, mesh, first, name);
}

/* Keep the meshes from `first` on that have new names, as many as the budget affords, as wide. */
static void keep_wide(const request *r, size_t first, double work)
{
	sw_meshes *meshes = r->meshes;
	size_t n = first, most = first + (size_t)affordable(r, work);
	for (size_t i = first; i < meshes->len && n < most; i++) {
		if (!is_first_of_its_name(meshes, i))
			continue;
		meshes->data[n] = meshes->data[i];
		meshes->data[n++].wide = true;
	}
	meshes->len = n;
}

/* Add all other grids of AxoNN, best first, and the grids of SUMMA; then parts of the cluster. Both
 * have a budget. They are for where the bound leaves something to gain. */
static void add_wide(const request *r)
{
	size_t first = r->meshes->len;
	if (!r->roles || r->atoms->n == 0)
		return;
	if (affordable(r, r->limits->wide_work) > 0) {
		add_summa(r, &(sw_plan_strategy){.kind = SW_PLAN_SUMMA}, NULL);
		add_summa(r, &(sw_plan_strategy){.kind = SW_PLAN_2_5D}, NULL);
		add_axonn(r, &(sw_plan_strategy){SW_PLAN_AXONN, .top = INT64_MAX}, NULL);
	}
	keep_wide(r, first, r->limits->wide_work);
	first = r->meshes->len;
	for (int32_t i = 1; i < r->atoms->n; i++)
		add_fixed_part(r, i);
	keep_wide(r, first, r->limits->parts_work);
	first = r->meshes->len;
	for (int32_t i = 1; i < r->atoms->n; i++)
		add_part(r, i, false);
	for (int32_t i = 1; i < r->atoms->n; i++)
		add_part(r, i, true);
	keep_wide(r, first, r->limits->parts_work);
}

static sw_status add_auto(const request *r, const sw_plan_strategy *strategy, sw_error *err)
{
	(void)strategy;
	(void)err;
	add_fixed(r);
	add_all_searches(r);
	add_grids(r);
	add_wide(r);
	return SW_OK;
}

typedef sw_status add_fn(const request *r, const sw_plan_strategy *strategy, sw_error *err);
static add_fn *const STRATEGIES[] = {
	[SW_PLAN_AUTO] = add_auto,     [SW_PLAN_DP] = add_data,
	[SW_PLAN_HOROVOD] = add_data,  [SW_PLAN_ALL_REDUCE] = add_data,
	[SW_PLAN_ZERO1] = add_data,    [SW_PLAN_ZERO2] = add_data,
	[SW_PLAN_ZERO3] = add_data,    [SW_PLAN_MEGATRON] = add_megatron,
	[SW_PLAN_SUMMA] = add_summa,   [SW_PLAN_2_5D] = add_summa,
	[SW_PLAN_AXONN] = add_axonn,   [SW_PLAN_EXPERT] = add_expert,
	[SW_PLAN_PS] = add_ways,       [SW_PLAN_PARALLAX] = add_ways,
	[SW_PLAN_RANDOM] = add_ways,   [SW_PLAN_SYNC] = add_ways,
	[SW_PLAN_WAYS] = add_ways, [SW_PLAN_SERIAL] = add_serial,
};

sw_status sw_meshes_of(const sw_cluster *cluster, const sw_plan_strategy *strategy,
                       const sw_model_limits *limits, const sw_roles *roles, int32_t microbatches,
                       sw_meshes *meshes, sw_error *err)
{
	const request r = {.cluster = cluster,
	                   .limits = limits,
	                   .atoms = &cluster->atoms,
	                   .roles = roles,
	                   .batch = SW_MAX(batch_of(roles) / SW_MAX(microbatches, 1), 1),
	                   .experts = experts_of(roles),
	                   .meshes = meshes};
	return STRATEGIES[strategy->kind](&r, strategy, err);
}

static bool searches_three(const sw_mesh *mesh)
{
	return mesh->n_axes > 2 && mesh->search;
}

int32_t sw_meshes_afford_three(const sw_meshes *meshes, sw_memo *memo)
{
	double left = memo->analysis->limits->three_axes_work;
	int32_t n = 0;
	for (size_t i = 0; i < meshes->len; i++) {
		if (!searches_three(&meshes->data[i]))
			continue;
		left -= sw_mesh_candidates(memo, &meshes->data[i]);
		if (left < 0)
			break;
		n++;
	}
	return n;
}

void sw_meshes_limit(sw_meshes *meshes, int32_t most, char *scope, size_t scope_bytes)
{
	int32_t three = 0;
	for (size_t i = 0; i < meshes->len; i++) {
		sw_mesh *mesh = &meshes->data[i];
		three += searches_three(mesh);
		mesh->spare = searches_three(mesh) && three > most;
	}
	snprintf(scope, scope_bytes, "plans on a mesh of at most %s axes",
	         three > 0 && three <= most ? "three" : "two");
}

uint32_t sw_mesh_atoms(const sw_mesh *mesh)
{
	uint32_t atoms = 0;
	for (int32_t i = 0; i < mesh->n_axes; i++)
		atoms |= mesh->axes[i].atoms;
	return atoms;
}

bool sw_mesh_refines(const sw_mesh *mesh, const sw_mesh *other)
{
	for (int32_t i = 0; i < mesh->n_axes; i++) {
		bool within = false;
		for (int32_t k = 0; k < other->n_axes; k++)
			within = within || !(mesh->axes[i].atoms & ~other->axes[k].atoms);
		if (!within)
			return false;
	}
	return true;
}

static bool divides_some(int64_t size, sw_shape shape)
{
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] % size == 0)
			return true;
	return false;
}

double sw_mesh_input_bytes(const sw_mesh *mesh, const sw_roles *roles)
{
	double sum = 0;
	for (uint32_t i = 0; i < roles->n_inputs; i++) {
		sw_shape shape = sw_value_shape(roles->program, roles->inputs[i]);
		double bytes = (double)sw_shape_bytes(shape);
		for (int32_t a = 0; a < mesh->n_axes; a++)
			if (divides_some(mesh->axes[a].size, shape))
				bytes /= (double)mesh->axes[a].size;
		sum += bytes;
	}
	return sum;
}
