/*
 * A plan in the words of PyTorch: placements of DTensor, styles of tensor parallelism, and which
 * axes FSDP shards or replicates over.
 */
#include "export/explained.h"
#include "plan/shardings.h"

#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* ---- placements --------------------------------------------------------------------------- */

static int64_t axis_index(const json_t *mesh, const char *name)
{
	for (size_t i = 0; i < json_array_size(mesh); i++)
		if (strcmp(text_of(json_array_get(mesh, i), "name"), name) == 0)
			return (int64_t)i;
	return -1;
}

/* Give the axes of one dimension's spec to the placements, and say where they nest in an order that
 * DTensor, which cuts by the mesh's axes from the first on, has not. */
static void place_dim(const json_t *mesh, size_t dim, const json_t *axes, json_t *placements,
                      json_t *lost)
{
	int64_t before = -1;
	bool list = json_is_array(axes);
	for (size_t i = 0; i < (list ? json_array_size(axes) : 1) && !json_is_null(axes); i++) {
		const json_t *axis = list ? json_array_get(axes, i) : axes;
		int64_t index = axis_index(mesh, json_string_value(axis));
		json_array_set_new(placements, (size_t)index, json_integer((json_int_t)dim));
		if (index < before)
			sw_list_say(
				lost,
				"dimension %zu: %s cuts inside of the parts of an axis behind it "
				"in the mesh, and DTensor cuts by it first",
				dim, json_string_value(axis));
		before = index;
	}
}

static json_t *placed_json(const json_t *mesh, const json_t *entry)
{
	const json_t *spec = json_object_get(entry, "spec"), *axes;
	json_t *placements = json_array(), *lost = json_deep_copy(json_object_get(entry, "lost"));
	size_t dim;
	for (size_t i = 0; i < json_array_size(mesh); i++)
		json_array_append_new(placements, json_null());
	json_array_foreach(spec, dim, axes) place_dim(mesh, dim, axes, placements, lost);
	return json_pack("{s:s, s:O, s:O, s:o, s:o}", "name", text_of(entry, "name"), "shape",
	                 json_object_get(entry, "shape"), "type", json_object_get(entry, "type"),
	                 "placements", placements, "lost", lost);
}

static json_t *placed_list(const json_t *mesh, const json_t *entries)
{
	json_t *list = json_array();
	const json_t *entry;
	size_t i;
	json_array_foreach(entries, i, entry) json_array_append_new(list, placed_json(mesh, entry));
	return list;
}

/* ---- tensor parallelism and FSDP ---------------------------------------------------------- */

/* Return the module that a weight belongs to: its name without the last part. */
static json_t *module_of(const char *weight)
{
	const char *dot = strrchr(weight, '.');
	return json_stringn(weight, dot ? (size_t)(dot - weight) : strlen(weight));
}

static void add_style(json_t *styles, const char *axis, const char *kind, const json_t *line)
{
	const char *style = strcmp(kind, "output") == 0        ? "colwise"
	                    : strcmp(kind, "contraction") == 0 ? "rowwise"
	                                                       : NULL;
	if (!style || !json_object_get(line, "at_rest"))
		return;
	if (!json_object_get(styles, axis))
		json_object_set_new(styles, axis, json_object());
	json_t *module = module_of(text_of(line, "name"));
	json_object_set_new(json_object_get(styles, axis), json_string_value(module),
	                    json_string(style));
	json_decref(module);
}

static json_t *styles_of(const json_t *explained)
{
	json_t *styles = json_object(), *kind;
	const json_t *block, *line;
	const char *axis;
	size_t i, k;
	json_array_foreach(json_object_get(explained, "blocks"), i, block)
		json_array_foreach(json_object_get(block, "lines"), k, line)
			json_object_foreach(json_object_get(line, "splits"), axis, kind)
				add_style(styles, axis, json_string_value(kind), line);
	return styles;
}

/* Are the weights of some layer gathered again for the backward pass? */
static bool gathers_again(const json_t *explained)
{
	json_t *gathers;
	const char *name;
	json_object_foreach(
		json_object_get(explained, "gathers"), name,
		gathers) if (json_integer_value(json_object_get(gathers, "layers_cached")) <
	                     json_integer_value(json_object_get(gathers, "layers"))) return true;
	return false;
}

/* Append the axes of the mesh that an axis of the plan consists of: `x`, or `x_0` and others. */
static void add_axes(const json_t *mesh, const char *plan_axis, json_t *list)
{
	const json_t *axis;
	size_t i, length = strlen(plan_axis);
	json_array_foreach(mesh, i, axis)
	{
		const char *name = text_of(axis, "name");
		if (strncmp(name, plan_axis, length) == 0 && (!name[length] || name[length] == '_'))
			json_array_append_new(list, json_string(name));
	}
}

static json_t *fsdp_of(const json_t *explained, const json_t *mesh)
{
	json_t *shard = json_array(), *replicate = json_array();
	const json_t *axis;
	size_t i;
	json_array_foreach(json_object_get(explained, "parallelism"), i, axis)
	{
		const char *kind = text_of(axis, "kind");
		if (strcmp(kind, "zero3") == 0)
			add_axes(mesh, text_of(axis, "axis"), shard);
		else if (strcmp(kind, "dp") == 0 || strcmp(kind, "zero1") == 0)
			add_axes(mesh, text_of(axis, "axis"), replicate);
	}
	return json_pack("{s:o, s:o, s:b}", "shard", shard, "replicate", replicate,
	                 "reshard_after_forward", gathers_again(explained));
}

sw_status sw_export_torch(const sw_plan *plan, const sw_sidecar *sidecar, json_t **json,
                          sw_error *err)
{
	sw_explained_plan e;
	SW_TRY(sw_explained_open(plan, sidecar, &e, err));
	json_t *shardings = sw_plan_shardings(plan, sidecar);
	const json_t *mesh = json_object_get(shardings, "mesh");
	*json = json_pack("{s:s, s:i, s:s, s:O, s:o, s:o, s:o, s:o}", "format", "shardwright-torch",
	                  "version", 1, "chosen", plan->chosen, "mesh", mesh, "inputs",
	                  placed_list(mesh, json_object_get(shardings, "inputs")), "outputs",
	                  placed_list(mesh, json_object_get(shardings, "outputs")),
	                  "tensor_parallel", styles_of(e.json), "fsdp", fsdp_of(e.json, mesh));
	json_decref(shardings);
	sw_explained_close(&e);
	return SW_OK;
}

/* ---- Python ------------------------------------------------------------------------------- */

static const char *const functions =
	"\n\n"
	"def device_mesh(device_type=\"cuda\"):\n"
	"    \"\"\"The plan's devices: its numbers are the ranks, the last axis fastest.\"\"\"\n"
	"    from torch.distributed.device_mesh import init_device_mesh\n"
	"    return init_device_mesh(device_type, tuple(MESH.values()), "
	"mesh_dim_names=tuple(MESH))\n\n\n"
	"def placements(name):\n"
	"    \"\"\"The placements of an input of the step, one per axis of the mesh.\"\"\"\n"
	"    from torch.distributed.tensor import Replicate, Shard\n"
	"    return [Replicate() if d is None else Shard(d) for d in PLACEMENTS[name]]\n\n\n"
	"def distribute(name, tensor, mesh):\n"
	"    \"\"\"The input as a DTensor.\"\"\"\n"
	"    from torch.distributed.tensor import distribute_tensor\n"
	"    return distribute_tensor(tensor, mesh, placements(name))\n\n\n"
	"def tensor_parallel(axis, rename=lambda module: module):\n"
	"    \"\"\"A plan for parallelize_module(module, mesh[axis], ...). rename: from the "
	"program's name\n"
	"    of a module, in which * is any layer, to that of yours.\"\"\"\n"
	"    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel\n"
	"    styles = {\"colwise\": ColwiseParallel, \"rowwise\": RowwiseParallel}\n"
	"    return {rename(m): styles[s]() for m, s in TENSOR_PARALLEL.get(axis, "
        "{}).items()}\n\n\n"
	"def fsdp(module, layers, mesh):\n"
	"    \"\"\"Shard and replicate the module and its layers over the axes of FSDP.\"\"\"\n"
	"    from torch.distributed.fsdp import fully_shard\n"
	"    axes = FSDP[\"replicate\"] + FSDP[\"shard\"]\n"
	"    if len(FSDP[\"shard\"]) != 1 or len(FSDP[\"replicate\"]) > 1:\n"
	"        raise ValueError(\"the plan is no FSDP: shards over %s, replicates over %s\"\n"
	"                         % (FSDP[\"shard\"], FSDP[\"replicate\"]))\n"
	"    for part in [*layers, module]:\n"
	"        fully_shard(part, mesh=mesh[tuple(axes)],\n"
	"                    reshard_after_forward=FSDP[\"reshard_after_forward\"])\n"
	"    return module\n";

static void add_mesh(const json_t *mesh, sw_text *text)
{
	const json_t *axis;
	size_t i;
	sw_text_add(text, "MESH = {");
	json_array_foreach(mesh, i, axis)
	{
		sw_text_add(text, i ? ", " : "");
		sw_text_add_quoted(text, text_of(axis, "name"));
		sw_text_addf(text, ": %lld",
		             (long long)json_integer_value(json_object_get(axis, "size")));
	}
	sw_text_add(text, "}\n");
}

static void add_placement(const json_t *entry, sw_text *text)
{
	const json_t *dim, *lost;
	size_t i;
	json_array_foreach(json_object_get(entry, "lost"), i, lost)
		sw_text_addf(text, "    # not exact: %s\n", json_string_value(lost));
	sw_text_add(text, "    ");
	sw_text_add_quoted(text, text_of(entry, "name"));
	sw_text_add(text, ": (");
	const json_t *placements = json_object_get(entry, "placements");
	json_array_foreach(placements, i, dim)
	{
		sw_text_add(text, i ? ", " : "");
		if (json_is_null(dim))
			sw_text_add(text, "None");
		else
			sw_text_addf(text, "%lld", (long long)json_integer_value(dim));
	}
	sw_text_add(text, json_array_size(placements) == 1 ? ",),\n" : "),\n");
}

static void add_names(const json_t *names, sw_text *text)
{
	const json_t *name;
	size_t i;
	sw_text_add(text, "[");
	json_array_foreach(names, i, name)
	{
		sw_text_add(text, i ? ", " : "");
		sw_text_add_quoted(text, json_string_value(name));
	}
	sw_text_add(text, "]");
}

static void add_styles(const json_t *torch, sw_text *text)
{
	json_t *modules, *style;
	const char *axis, *module;
	sw_text_add(text, "TENSOR_PARALLEL = {");
	json_object_foreach(json_object_get(torch, "tensor_parallel"), axis, modules)
	{
		sw_text_add(text, "\n    ");
		sw_text_add_quoted(text, axis);
		sw_text_add(text, ": {\n");
		json_object_foreach(modules, module, style)
		{
			sw_text_add(text, "        ");
			sw_text_add_quoted(text, module);
			sw_text_addf(text, ": \"%s\",\n", json_string_value(style));
		}
		sw_text_add(text, "    },\n");
	}
	sw_text_add(text, "}\n");
}

static void add_fsdp(const json_t *fsdp, sw_text *text)
{
	sw_text_add(text, "FSDP = {\"shard\": ");
	add_names(json_object_get(fsdp, "shard"), text);
	sw_text_add(text, ", \"replicate\": ");
	add_names(json_object_get(fsdp, "replicate"), text);
	sw_text_addf(text, ", \"reshard_after_forward\": %s}\n",
	             json_is_true(json_object_get(fsdp, "reshard_after_forward")) ? "True"
	                                                                          : "False");
}

void sw_export_torch_print(const json_t *torch, sw_text *text)
{
	const json_t *entry;
	size_t i;
	sw_text_add(text,
	            "\"\"\"A plan of Shardwright for PyTorch. Inputs have the program's names "
	            "and shapes: a weight\nthat your module holds transposed is split over its "
	            "other dimension.\"\"\"\n\nCHOSEN = ");
	sw_text_add_quoted(text, text_of(torch, "chosen"));
	sw_text_add(text, "\n");
	add_mesh(json_object_get(torch, "mesh"), text);
	sw_text_add(text, "# Per input and axis of the mesh the dimension that is split; None: "
	                  "replicated.\nPLACEMENTS = {\n");
	json_array_foreach(json_object_get(torch, "inputs"), i, entry) add_placement(entry, text);
	sw_text_add(text,
	            "}\n# Per axis the modules whose weights are split by output (colwise) or "
	            "contraction (rowwise).\n");
	add_styles(torch, text);
	add_fsdp(json_object_get(torch, "fsdp"), text);
	sw_text_add(text, functions);
}
