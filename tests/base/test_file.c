#include "helpers.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

/* Compress as gzip; the caller frees the result. */
static unsigned char *gzip(const void *data, size_t length, size_t *packed_length)
{
	z_stream stream = {0};
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
	                 Z_OK);
	size_t capacity = deflateBound(&stream, length) + 64;
	unsigned char *packed = malloc(capacity);
	stream.next_in = (Bytef *)data;
	stream.avail_in = (uInt)length;
	stream.next_out = packed;
	stream.avail_out = (uInt)capacity;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	*packed_length = stream.total_out;
	deflateEnd(&stream);
	return packed;
}

static void expect_read(const char *name, const void *expected, size_t expected_length)
{
	char *data = NULL;
	size_t length = 0;
	sw_error err = {0};
	assert_int_equal(sw_file_read(scratch_path(name), &data, &length, &err), SW_OK);
	assert_int_equal(length, expected_length);
	assert_memory_equal(data, expected, expected_length);
	assert_int_equal(data[length], 0);
	free(data);
}

static void expect_read_error(const char *path, sw_status code, const char *message)
{
	char *data = NULL;
	size_t length = 0;
	sw_error err = {0};
	sw_status status = sw_file_read(path, &data, &length, &err);
	assert_error(status, &err, code, 0, 0, message);
	assert_string_equal(err.file, path);
	assert_null(data);
}

static void plain_files_are_read_whole(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 2, 3, 1000, 65535, 65536, 65537, 300000};
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		char *data = sw_alloc(sizes[i] + 1);
		for (size_t k = 0; k < sizes[i]; k++)
			data[k] = (char)(k * 7);
		scratch_write("plain", data, sizes[i]);
		expect_read("plain", data, sizes[i]);
		free(data);
	}
}

static void a_file_without_a_size_is_read_whole(void **state)
{
	(void)state;
	char *data = NULL;
	size_t length = 0;
	assert_int_equal(sw_file_read("/proc/self/maps", &data, &length, NULL), SW_OK);
	assert_true(length > 100);
	assert_int_equal(strlen(data), length);
	free(data);
}

static void gzip_is_unpacked(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 5000, 3000000};
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		char *data = sw_alloc(sizes[i] + 1);
		for (size_t k = 0; k < sizes[i]; k++)
			data[k] = (char)(sw_random_bits(1, i, k) >> (i == 3 ? 62 : 60));
		size_t packed_length;
		unsigned char *packed = gzip(data, sizes[i], &packed_length);
		scratch_write("data.gz", packed, packed_length);
		expect_read("data.gz", data, sizes[i]);
		free(packed);
		free(data);
	}
}

static void very_compressible_gzip_is_unpacked(void **state)
{
	(void)state;
	size_t length = (size_t)20 << 20, packed_length;
	char *data = sw_alloc(length);
	unsigned char *packed = gzip(data, length, &packed_length);
	assert_true(packed_length < length / 500);
	scratch_write("zeros.gz", packed, packed_length);
	expect_read("zeros.gz", data, length);
	free(packed);
	free(data);
}

/* Two members and tape padding, as `cat a.gz b.gz` and old tapes make them. */
static void members_are_joined(void **state)
{
	(void)state;
	size_t first, second;
	unsigned char *a = gzip("hello ", 6, &first), *b = gzip("world", 5, &second);
	unsigned char *both = sw_alloc(first + second + 512);
	memcpy(both, a, first);
	memcpy(both + first, b, second);
	scratch_write("two.gz", both, first + second);
	expect_read("two.gz", "hello world", 11);
	scratch_write("two.gz", both, first + second + 512);
	expect_read("two.gz", "hello world", 11);
	both[first + second] = 'x';
	scratch_write("two.gz", both, first + second + 512);
	expect_read_error(scratch_path("two.gz"), SW_ERR_INPUT,
	                  "corrupt gzip data: incorrect header check");
	free(a);
	free(b);
	free(both);
}

static void truncated_gzip_is_an_error_at_every_length(void **state)
{
	(void)state;
	char data[200];
	for (size_t k = 0; k < sizeof(data); k++)
		data[k] = (char)sw_random_bits(2, 0, k);
	size_t packed_length;
	unsigned char *packed = gzip(data, sizeof(data), &packed_length);
	for (size_t cut = 2; cut < packed_length; cut++) {
		scratch_write("cut.gz", packed, cut);
		expect_read_error(scratch_path("cut.gz"), SW_ERR_INPUT, "truncated gzip data");
	}
	free(packed);
}

static void corrupt_gzip_is_an_error(void **state)
{
	(void)state;
	static const struct {
		long at; /* offset from the end if negative */
		const char *message;
	} cases[] = {
		{2, "corrupt gzip data: unknown compression method"},
		{-8, "corrupt gzip data: incorrect data check"},
		{-1, "corrupt gzip data: incorrect length check"},
	};
	size_t packed_length;
	unsigned char *packed = gzip("some text, some text", 20, &packed_length);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		unsigned char *at =
			packed + (cases[i].at < 0 ? (long)packed_length : 0) + cases[i].at;
		*at ^= 0x55;
		scratch_write("bad.gz", packed, packed_length);
		expect_read_error(scratch_path("bad.gz"), SW_ERR_INPUT, cases[i].message);
		*at ^= 0x55;
	}
	free(packed);
}

static void an_unreadable_file_is_one_clear_line(void **state)
{
	(void)state;
	expect_read_error("no/such/file", SW_ERR_IO, "cannot read: No such file or directory");
	expect_read_error("/", SW_ERR_IO, "cannot read: Is a directory");
	expect_read_error("", SW_ERR_IO, "cannot read: No such file or directory");
}

static void written_files_read_back(void **state)
{
	(void)state;
	static const char text[] = "a\0b\n";
	assert_int_equal(sw_file_write(scratch_path("out"), text, sizeof(text), NULL), SW_OK);
	expect_read("out", text, sizeof(text));
	assert_int_equal(sw_file_write(scratch_path("out"), "", 0, NULL), SW_OK);
	expect_read("out", "", 0);
}

static void nothing_is_left_beside_the_target(void **state)
{
	(void)state;
	scratch_empty();
	assert_int_equal(sw_file_write(scratch_path("only"), "1", 1, NULL), SW_OK);
	assert_int_equal(scratch_entries(), 1);
}

static void a_failed_write_is_one_clear_line(void **state)
{
	(void)state;
	sw_error err;
	sw_status status = sw_file_write(scratch_path("none/out"), "x", 1, &err);
	assert_error(status, &err, SW_ERR_IO, 0, 0, "cannot write: No such file or directory");
	assert_string_equal(err.file, scratch_path("none/out"));
	status = sw_file_write(scratch_path("."), "x", 1, &err);
	assert_error(status, &err, SW_ERR_IO, 0, 0, "cannot write: Is a directory");
}

static sw_status write_with_too_small_a_limit(const char *name, sw_error *err)
{
	struct rlimit before, small;
	getrlimit(RLIMIT_FSIZE, &before);
	small = (struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	static const char data[100000];
	sw_status status = sw_file_write(scratch_path(name), data, sizeof(data), err);
	setrlimit(RLIMIT_FSIZE, &before);
	return status;
}

static void a_failed_write_keeps_the_old_file(void **state)
{
	(void)state;
	scratch_empty();
	scratch_write("kept", "old contents", 12);
	sw_error err;
	sw_status status = write_with_too_small_a_limit("kept", &err);
	assert_error(status, &err, SW_ERR_IO, 0, 0, "cannot write: File too large");
	expect_read("kept", "old contents", 12);
	assert_int_equal(scratch_entries(), 1);
}

static void a_link_stays_a_link(void **state)
{
	(void)state;
	scratch_write("target", "old", 3);
	unlink(scratch_path("link"));
	assert_int_equal(symlink("target", scratch_path("link")), 0);
	assert_int_equal(sw_file_write(scratch_path("link"), "new", 3, NULL), SW_OK);
	expect_read("target", "new", 3);
	struct stat info;
	assert_int_equal(lstat(scratch_path("link"), &info), 0);
	assert_true(S_ISLNK(info.st_mode));
}

static void a_device_is_written_and_stays(void **state)
{
	(void)state;
	struct stat info;
	assert_int_equal(sw_file_write("/dev/null", "x", 1, NULL), SW_OK);
	assert_int_equal(stat("/dev/null", &info), 0);
	assert_true(S_ISCHR(info.st_mode));
}

static void new_files_have_the_permissions_of_the_mask(void **state)
{
	(void)state;
	mode_t mask = umask(027);
	unlink(scratch_path("mode"));
	assert_int_equal(sw_file_write(scratch_path("mode"), "x", 1, NULL), SW_OK);
	umask(mask);
	struct stat info;
	assert_int_equal(stat(scratch_path("mode"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0640);
}

static void a_replaced_file_keeps_its_permissions(void **state)
{
	(void)state;
	struct stat info;
	scratch_write("private", "old", 3);
	assert_int_equal(chmod(scratch_path("private"), 0604), 0);
	assert_int_equal(sw_file_write(scratch_path("private"), "new", 3, NULL), SW_OK);
	expect_read("private", "new", 3);
	assert_int_equal(stat(scratch_path("private"), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0604);
}

static void a_read_only_file_is_not_replaced(void **state)
{
	(void)state;
	sw_error err;
	scratch_write("fixed", "old", 3);
	assert_int_equal(chmod(scratch_path("fixed"), 0444), 0);
	sw_status status = sw_file_write(scratch_path("fixed"), "new", 3, &err);
	assert_error(status, &err, SW_ERR_IO, 0, 0, "cannot write: Permission denied");
	expect_read("fixed", "old", 3);
}

static void all_names_of_a_file_stay_its_names(void **state)
{
	(void)state;
	scratch_write("one", "old contents", 12);
	unlink(scratch_path("two"));
	char *one = strdup(scratch_path("one"));
	assert_int_equal(link(one, scratch_path("two")), 0);
	free(one);
	assert_int_equal(sw_file_write(scratch_path("one"), "new", 3, NULL), SW_OK);
	expect_read("one", "new", 3);
	expect_read("two", "new", 3);
}

static void a_link_to_nothing_makes_what_it_names(void **state)
{
	(void)state;
	struct stat info;
	unlink(scratch_path("dangling"));
	unlink(scratch_path("made"));
	assert_int_equal(symlink("made", scratch_path("dangling")), 0);
	assert_int_equal(sw_file_write(scratch_path("dangling"), "x", 1, NULL), SW_OK);
	expect_read("made", "x", 1);
	assert_int_equal(lstat(scratch_path("dangling"), &info), 0);
	assert_true(S_ISLNK(info.st_mode));
}

/* A process that is killed while it writes leaves no temporary file. */
static void a_killed_writer_leaves_nothing(void **state)
{
	(void)state;
	int ready[2];
	char byte;
	scratch_empty();
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		sw_sink *sink;
		static const char data[100000];
		if (sw_sink_open(scratch_path("half"), &sink, NULL) != SW_OK)
			_exit(1);
		sw_sink_put(sink, data, sizeof(data));
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(scratch_entries(), 0);
}

static void what_never_ends_is_refused(void **state)
{
	(void)state;
	char *data = NULL, *text = sw_alloc(5000);
	size_t length = 0, packed_length;
	sw_error err;
	sw_status status = sw_file_read_most("/dev/zero", 1000, &data, &length, &err);
	assert_error(status, &err, SW_ERR_INPUT, 0, 0, "too large: at most 1000 B are read");
	unsigned char *packed = gzip(text, 5000, &packed_length);
	scratch_write("bomb.gz", packed, packed_length);
	assert_true(packed_length < 1000);
	status = sw_file_read_most(scratch_path("bomb.gz"), 4999, &data, &length, &err);
	assert_error(status, &err, SW_ERR_INPUT, 0, 0, "too large");
	assert_null(data);
	assert_int_equal(sw_file_read_most(scratch_path("bomb.gz"), 5000, &data, &length, &err),
	                 SW_OK);
	assert_int_equal(length, 5000);
	free(data);
	free(packed);
	free(text);
}

/* Nobody opens the first pipe for writing. The second has a writer who takes his time. */
static void a_pipe_without_a_writer_is_an_error(void **state)
{
	(void)state;
	unlink(scratch_path("pipe"));
	assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
	expect_read_error(scratch_path("pipe"), SW_ERR_IO, "cannot read: nobody has written");
	pid_t child = fork();
	if (child == 0) {
		sw_sleep_until(sw_now_s() + 0.3);
		FILE *file = fopen(scratch_path("pipe"), "w");
		sw_sleep_until(sw_now_s() + 0.3);
		_exit(!file || fputs("late", file) < 0 || fclose(file) != 0);
	}
	expect_read("pipe", "late", 4);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_dash_or_no_name_is_standard_output(void **state)
{
	(void)state;
	int saved = dup(STDOUT_FILENO);
	fflush(stdout);
	assert_non_null(freopen(scratch_path("stdout"), "w", stdout));
	sw_status first = sw_file_write("-", "one ", 4, NULL);
	sw_status second = sw_file_write("", "two", 3, NULL);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(first, SW_OK);
	assert_int_equal(second, SW_OK);
	expect_read("stdout", "one two", 7);
	assert_false(scratch_exists("-"));
}

static int remove_scratch(void **state)
{
	(void)state;
	scratch_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_files_are_read_whole),
		cmocka_unit_test(a_file_without_a_size_is_read_whole),
		cmocka_unit_test(gzip_is_unpacked),
		cmocka_unit_test(very_compressible_gzip_is_unpacked),
		cmocka_unit_test(members_are_joined),
		cmocka_unit_test(truncated_gzip_is_an_error_at_every_length),
		cmocka_unit_test(corrupt_gzip_is_an_error),
		cmocka_unit_test(an_unreadable_file_is_one_clear_line),
		cmocka_unit_test(written_files_read_back),
		cmocka_unit_test(nothing_is_left_beside_the_target),
		cmocka_unit_test(a_failed_write_is_one_clear_line),
		cmocka_unit_test(a_failed_write_keeps_the_old_file),
		cmocka_unit_test(a_link_stays_a_link),
		cmocka_unit_test(a_device_is_written_and_stays),
		cmocka_unit_test(new_files_have_the_permissions_of_the_mask),
		cmocka_unit_test(a_replaced_file_keeps_its_permissions),
		cmocka_unit_test(a_read_only_file_is_not_replaced),
		cmocka_unit_test(all_names_of_a_file_stay_its_names),
		cmocka_unit_test(a_link_to_nothing_makes_what_it_names),
		cmocka_unit_test(a_killed_writer_leaves_nothing),
		cmocka_unit_test(what_never_ends_is_refused),
		cmocka_unit_test(a_pipe_without_a_writer_is_an_error),
		cmocka_unit_test(a_dash_or_no_name_is_standard_output),
	};
	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
