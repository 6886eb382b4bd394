/* Whether two sides fit each other. */
#include "crossmesh/crossmesh.h"

static sw_status check_side(const sw_cluster *cluster, const sw_crossmesh_side *side,
                            sw_shape shape, const char *what, sw_error *err)
{
	int64_t n = sw_atoms_devices(&side->axes);
	for (int64_t i = 0; i < n; i++)
		if (side->devices[i] < 0 || side->devices[i] >= cluster->n_devices)
			return sw_fail(err, SW_ERR_INPUT,
			               "%s: device %lld is beyond the cluster, whose devices are 0 "
			               "to %lld",
			               what, (long long)side->devices[i],
			               (long long)cluster->n_devices - 1);
	for (int32_t d = 0; d < shape.rank; d++)
		if (side->dims[d] < shape.dims[d])
			return sw_fail(err, SW_ERR_INPUT,
			               "%s: dimension %d has %lld elements, and the layout holds "
			               "%lld",
			               what, d, (long long)shape.dims[d], (long long)side->dims[d]);
	shape.dims = side->dims;
	if (!sw_layout_valid(&side->axes, shape, &side->layout))
		return sw_fail(err, SW_ERR_INPUT,
		               "%s: the layout does not fit the mesh or the shape", what);
	return SW_OK;
}

static sw_status check_disjoint(const sw_cluster *cluster, const sw_crossmesh_side *from,
                                const sw_crossmesh_side *to, sw_error *err)
{
	sw_status status = SW_OK;
	bool *sends = sw_alloc((size_t)cluster->n_devices * sizeof(*sends));
	for (int64_t i = 0; i < sw_atoms_devices(&from->axes); i++)
		sends[from->devices[i]] = true;
	for (int64_t i = 0; i < sw_atoms_devices(&to->axes) && status == SW_OK; i++)
		if (sends[to->devices[i]])
			status =
				sw_fail(err, SW_ERR_INPUT,
			                "the meshes overlap: device %lld is in both; a tensor "
			                "that stays on its devices is redistributed, not resharded",
			                (long long)to->devices[i]);
	free(sends);
	return status;
}

sw_status sw_crossmesh_check(const sw_cluster *cluster, const sw_crossmesh_side *from,
                             const sw_crossmesh_side *to, sw_shape shape, sw_error *err)
{
	sw_monoid a = from->layout.monoid, b = to->layout.monoid;
	sw_status status = check_side(cluster, from, shape, "the source", err);
	if (status == SW_OK)
		status = check_side(cluster, to, shape, "the target", err);
	if (status == SW_OK)
		status = check_disjoint(cluster, from, to, err);
	if (status == SW_OK && a != b && a != SW_MONOID_NONE && b != SW_MONOID_NONE)
		status = sw_fail(err, SW_ERR_INPUT,
		                 "the source's terms are combined by %s and the target's by %s: "
		                 "expected one of them",
		                 sw_monoid_name(a), sw_monoid_name(b));
	return status;
}
