/* The reader of safetensors, on any bytes: what it accepts, it writes and reads again, bit for bit.
 */
#include "interpret/interpret.h"

#include <stdlib.h>
#include <string.h>

#include "in_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const sw_tensor_file *a, const sw_tensor_file *b)
{
	if (a->tensors.len != b->tensors.len)
		abort();
	for (size_t i = 0; i < a->tensors.len; i++) {
		const sw_named_tensor *tensor = &a->tensors.data[i];
		const sw_tensor *other = sw_tensor_file_get(b, tensor->name);
		size_t bytes = (size_t)sw_shape_bytes(tensor->tensor.shape);
		if (!other || !sw_shape_equal(other->shape, tensor->tensor.shape) ||
		    (bytes &&
		     memcmp(sw_tensor_data(*other), sw_tensor_data(tensor->tensor), bytes)))
			abort();
	}
}

static void write_and_read_again(const sw_tensor_file *tensors)
{
	sw_tensor_file again;
	sw_error err = {0};
	fuzz_file file = fuzz_file_open((const uint8_t *)"", 0);
	if (sw_tensor_file_write(file.path, tensors->tensors.data, tensors->tensors.len,
	                         tensors->metadata, &err) != SW_OK ||
	    sw_tensor_file_read(file.path, &again, &err) != SW_OK) {
		fprintf(stderr, "%s\n", err.message);
		abort();
	}
	check_same(tensors, &again);
	sw_tensor_file_clear(&again);
	fuzz_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_tensor_file tensors;
	sw_error err = {0};
	fuzz_file file = fuzz_file_open(data, size);
	sw_status status = sw_tensor_file_read(file.path, &tensors, &err);
	fuzz_file_close(&file);
	if (status != SW_OK) {
		if (!err.message[0] || err.code != status || status != SW_ERR_INPUT)
			abort();
		return 0;
	}
	write_and_read_again(&tensors);
	sw_tensor_file_clear(&tensors);
	return 0;
}
