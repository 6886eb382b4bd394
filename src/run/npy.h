/* npy: one-dimensional .npy files of integers (NumPy's format, versions 1 to 3). */
#ifndef SW_RUN_NPY_H
#define SW_RUN_NPY_H

#include "base/base.h"

typedef struct sw_npy {
	int64_t count;
	const uint8_t *data; /* borrowed from the text that was read */
	int bytes;           /* of one item: 1, 2, 4, 8 */
	bool is_signed;
} sw_npy;

bool sw_npy_recognise(const char *text, size_t length);
/* Error messages say what is wrong and how to repair it; they do not name the file. */
sw_status sw_npy_parse(const char *text, size_t length, sw_npy *npy, sw_error *err);
/* Return item i; values above the largest int64_t are clamped to it. */
int64_t sw_npy_get(const sw_npy *npy, int64_t i);

#endif
