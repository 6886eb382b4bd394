/* For targets of readers that take a path: the bytes in a file of their own. */
#ifndef SW_TESTS_FUZZ_IN_FILE_H
#define SW_TESTS_FUZZ_IN_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct fuzz_file {
	char path[40];
} fuzz_file;

static inline fuzz_file fuzz_file_open(const uint8_t *data, size_t size)
{
	fuzz_file file = {"/tmp/shardwright-fuzz-XXXXXX"};
	int fd = mkstemp(file.path);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0)
		abort();
	return file;
}

static inline void fuzz_file_close(const fuzz_file *file)
{
	unlink(file->path);
}

#endif
