/* Cluster files that are installed, by name. */
#include <string.h>
#include <unistd.h>

#include "cluster/cluster.h"

/* Append where a cluster file of this name is, in a folder beside the file `beside`. */
static bool find_installed(const char *name, const char *beside, const char *const *folders,
                           sw_text *path)
{
	const char *slash = strrchr(beside, '/');
	for (; slash && *folders; folders++) {
		sw_text_clear(path);
		sw_text_addf(path, "%.*s/%s/%s.yaml", (int)(slash - beside), beside, *folders,
		             name);
		if (access(path->data, R_OK) == 0)
			return true;
	}
	return false;
}

sw_status sw_cluster_read_named(const char *path, const char *beside, const char *const *folders,
                                sw_cluster *cluster, sw_error *err)
{
	sw_text installed = {0};
	bool is_name = *path && !strpbrk(path, "/.") && access(path, F_OK) != 0;
	if (is_name && find_installed(path, beside, folders, &installed))
		path = installed.data;
	sw_status status = sw_cluster_read(path, cluster, err);
	if (status && is_name && path != installed.data)
		status = sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
		                    "there is neither such a cluster file nor an installed one of "
		                    "that name");
	sw_text_clear(&installed);
	return status;
}
