/* The reader of checkpoints' indices, on any text, beside two files of tensors that are whole: what
 * it accepts is put together from its parts, and the file of that reads back the same. */
#include "run/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the process: libFuzzer hands nothing from the one function to the other. */
static char folder[] = "/tmp/shardwright-fuzz-XXXXXX";

static void need(sw_status status, const sw_error *err)
{
	if (status == SW_OK)
		return;
	fprintf(stderr, "%s\n", err->message);
	abort();
}

static const char *path_of(const char *name, sw_text *path)
{
	sw_text_clear(path);
	sw_text_addf(path, "%s/%s", folder, name);
	return path->data;
}

/* Elements count on, so that a part in the wrong place is another result. */
static sw_named_tensor numbered(const char *name, sw_type type, int32_t rank, const int64_t *dims)
{
	sw_error err = {0};
	sw_named_tensor tensor = {.name = name};
	sw_shape shape = {.type = type, .rank = rank, .dims = dims};
	need(sw_tensor_new(shape, true, &tensor.tensor, &err), &err);
	for (int64_t e = 0; e < sw_shape_elements(shape); e++)
		sw_element_set(type, sw_tensor_data(tensor.tensor), e, (double)(e + name[1]));
	return tensor;
}

static void write_tensors(const char *name, sw_named_tensor *tensors, size_t n)
{
	sw_error err = {0};
	sw_text path = {0};
	need(sw_tensor_file_write(path_of(name, &path), tensors, n, NULL, &err), &err);
	for (size_t i = 0; i < n; i++)
		sw_tensor_drop(&tensors[i].tensor);
	sw_text_clear(&path);
}

static void remove_all(void)
{
	static const char *const names[] = {"a.st", "b.st", "joined.st", SW_CHECKPOINT_INDEX};
	sw_text path = {0};
	for (size_t i = 0; i < SW_COUNT(names); i++)
		unlink(path_of(names[i], &path));
	rmdir(folder);
	sw_text_clear(&path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const int64_t square[] = {2, 2}, row[] = {2, 3}, three[] = {3}, two[] = {2},
			     none[] = {0};
	(void)argc;
	(void)argv;
	if (!mkdtemp(folder))
		abort();
	atexit(remove_all);
	sw_named_tensor a[] = {numbered("p0", SW_F32, 2, square), numbered("p1", SW_F32, 2, square),
	                       numbered("w0", SW_F32, 2, row)};
	sw_named_tensor b[] = {numbered("p2", SW_F32, 2, square), numbered("p3", SW_F32, 2, square),
	                       numbered("q0", SW_U8, 1, three), numbered("q1", SW_U8, 1, two),
	                       numbered("e0", SW_F32, 1, none)};
	write_tensors("a.st", a, SW_COUNT(a));
	write_tensors("b.st", b, SW_COUNT(b));
	return 0;
}

/* Digits say how an array that is not there is cut, so that only one with its elements is accepted.
 */
static void check_sizes(const sw_checkpoint *c)
{
	for (size_t i = 0; i < c->tensors.len; i++)
		if (sw_shape_bytes(c->tensors.data[i].shape) > 1000)
			abort();
}

static void join_and_read_again(const sw_checkpoint *c)
{
	sw_error err = {0};
	sw_text path = {0};
	sw_checkpoint again;
	const char *joined = path_of("joined.st", &path);
	need(sw_checkpoint_join(c, joined, &err), &err);
	need(sw_checkpoint_read(joined, &again, &err), &err);
	if (again.tensors.len != c->tensors.len || again.step != c->step || again.seed != c->seed)
		abort();
	for (size_t i = 0; i < c->tensors.len; i++) {
		const sw_saved_tensor *one = &c->tensors.data[i],
				      *other = sw_checkpoint_get(&again, one->name);
		char mine[1000], its[1000];
		if (!other || !sw_shape_equal(one->shape, other->shape))
			abort();
		sw_saved_whole(one, mine);
		sw_saved_whole(other, its);
		if (memcmp(mine, its, (size_t)sw_shape_bytes(one->shape)) != 0)
			abort();
	}
	sw_checkpoint_close(&again);
	sw_text_clear(&path);
}

/* Not by sw_file_write, which waits for the disk. */
static void write_index(const uint8_t *data, size_t size)
{
	sw_text path = {0};
	FILE *file = fopen(path_of(SW_CHECKPOINT_INDEX, &path), "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		abort();
	sw_text_clear(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_error err = {0};
	sw_checkpoint c;
	write_index(data, size);
	sw_status status = sw_checkpoint_read(folder, &c, &err);
	if (status != SW_OK) {
		if (!err.message[0] || err.code != status)
			abort();
		return 0;
	}
	check_sizes(&c);
	(void)sw_checkpoint_check_contents(&c, &err);
	join_and_read_again(&c);
	sw_checkpoint_close(&c);
	return 0;
}
