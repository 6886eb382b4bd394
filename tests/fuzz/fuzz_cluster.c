/* The reader of cluster files, on any bytes: what it accepts, it prints and reads again as the same
 * cluster, and takes a part of. */
#include "cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_and_read_again(const sw_cluster *cluster)
{
	sw_text text = {0};
	sw_cluster again;
	sw_error err = {0};
	sw_cluster_print(cluster, &text);
	if (sw_cluster_parse(text.data, text.len, "printed", &again, &err) != SW_OK ||
	    again.hash != cluster->hash) {
		fprintf(stderr, "%s:%d:%d: %s\n%s", err.file, err.line, err.column, err.message,
		        text.data);
		abort();
	}
	sw_cluster_clear(&again);
	sw_text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_cluster cluster;
	sw_error err = {0};
	sw_status status = sw_cluster_parse((const char *)data, size, "input", &cluster, &err);
	if (status != SW_OK) {
		if (!err.message[0] || err.code != status || status != SW_ERR_INPUT)
			abort();
		return 0;
	}
	print_and_read_again(&cluster);
	if (sw_cluster_take(&cluster, "2", &err) == SW_OK)
		print_and_read_again(&cluster);
	sw_cluster_clear(&cluster);
	return 0;
}
