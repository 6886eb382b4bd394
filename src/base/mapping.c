/* Files that are read where they lie, without a copy. */
#include "base/base.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_gzip(const char *data, size_t length)
{
	return length >= 2 && (uint8_t)data[0] == 0x1f && (uint8_t)data[1] == 0x8b;
}

/* Map a regular file that is not empty; false: it is none, or the system refuses. */
static bool map(int descriptor, sw_mapping *mapping)
{
	struct stat info;
	if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
		return false;
	void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
	if (data == MAP_FAILED)
		return false;
	*mapping = (sw_mapping){.data = data, .length = (size_t)info.st_size, .mapped = true};
	return true;
}

sw_status sw_mapping_open(const char *path, sw_mapping *mapping, sw_error *err)
{
	int descriptor;
	*mapping = (sw_mapping){0};
	sw_status status = sw_file_open(path, &descriptor, err);
	if (status)
		return sw_error_in_file(err, status, path);
	bool mapped = map(descriptor, mapping);
	struct stat info;
	bool is_pipe = fstat(descriptor, &info) == 0 && !S_ISREG(info.st_mode);
	close(descriptor);
	if (mapped && !is_gzip(mapping->data, mapping->length))
		return SW_OK;
	if (is_pipe)
		return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
		                  "it is no file, and must be one that can be mapped to memory");
	sw_mapping_close(mapping);
	char *data;
	status = sw_file_read(path, &data, &mapping->length, err);
	mapping->data = status ? NULL : data;
	return sw_error_in_file(err, status, path);
}

void sw_mapping_close(sw_mapping *mapping)
{
	if (mapping->mapped)
		munmap((void *)(uintptr_t)mapping->data, mapping->length);
	else
		free((void *)(uintptr_t)mapping->data);
	*mapping = (sw_mapping){0};
}
