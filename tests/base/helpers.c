#include "helpers.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *directory(void)
{
	static char path[512];
	if (!path[0]) {
		snprintf(path, sizeof(path), "%s/scratch-base-%ld", SW_BINARY_DIR, (long)getpid());
		mkdir(path, 0777);
	}
	return path;
}

const char *scratch_path(const char *name)
{
	static char path[1024];
	snprintf(path, sizeof(path), "%s/%s", directory(), name);
	return path;
}

void scratch_write(const char *name, const void *data, size_t length)
{
	FILE *file = fopen(scratch_path(name), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

bool scratch_exists(const char *name)
{
	return access(scratch_path(name), F_OK) == 0;
}

int scratch_entries(void)
{
	int count = 0;
	DIR *entries = opendir(directory());
	assert_non_null(entries);
	for (struct dirent *entry; (entry = readdir(entries));)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(entries);
	return count;
}

void scratch_empty(void)
{
	DIR *entries = opendir(directory());
	for (struct dirent *entry; entries && (entry = readdir(entries));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			remove(scratch_path(entry->d_name));
	if (entries)
		closedir(entries);
}

void scratch_remove(void)
{
	scratch_empty();
	rmdir(directory());
}

void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("expected \"%s\" in \"%s\"", part, text);
}

void assert_error(sw_status status, const sw_error *err, sw_status code, int line, int column,
                  const char *part_of_message)
{
	assert_contains(err->message, part_of_message);
	assert_string_equal(sw_status_name(status), sw_status_name(code));
	assert_string_equal(sw_status_name(err->code), sw_status_name(code));
	assert_int_equal(err->line, line);
	assert_int_equal(err->column, column);
}

static jmp_buf refused;

static void leave(size_t bytes)
{
	(void)bytes;
	longjmp(refused, 1);
}

bool runs_out_of_memory(void (*action)(void *context), void *context)
{
	sw_set_out_of_memory(leave);
	if (setjmp(refused) != 0) {
		sw_set_out_of_memory(NULL);
		return true;
	}
	action(context);
	sw_set_out_of_memory(NULL);
	return false;
}
