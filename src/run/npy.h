/* npy: .npy files (NumPy's format, versions 1 to 3) of little-endian numbers. */
#ifndef SW_RUN_NPY_H
#define SW_RUN_NPY_H

#include "program/program.h"

typedef struct sw_npy {
	sw_type type;
	int32_t rank;
	int64_t dims[SW_MAX_RANK];
	int64_t count;     /* of all numbers */
	bool column_major; /* Fortran's order: the first dimension is the quickest */
	const char *data;  /* borrowed from the text that was read */
} sw_npy;

bool sw_npy_recognise(const char *text, size_t length);
/* Error messages say what is wrong and how to repair it; they do not name the file. */
sw_status sw_npy_parse(const char *text, size_t length, sw_npy *npy, sw_error *err);
/* Copy the numbers at index `item` of the first dimension of a column-major array, in row-major
 * order. */
void sw_npy_copy_item(const sw_npy *npy, int64_t item, char *out);

#endif
