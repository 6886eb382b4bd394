/* Private to base: unpack gzip data in memory. */
#ifndef SW_BASE_GUNZIP_H
#define SW_BASE_GUNZIP_H

#include "base/base.h"

bool sw_is_gzip(const char *data, size_t length);
/* Unpack all members of the file, one after the other. The result is followed by a zero that is not
 * counted. Zeros may follow the members (tape padding). More than `most` bytes are an
 * error. The caller frees *out with free(). */
sw_status sw_gunzip(const char *data, size_t length, size_t most, char **out, size_t *out_length,
                    sw_error *err);
/* Report that a file is larger than `most` bytes. */
sw_status sw_too_large(size_t most, sw_error *err);
/* Double the size of a buffer whose size comes from input. If the system refuses, free the buffer
 * and set it to NULL. */
void sw_try_double(char **buffer, size_t *capacity);

#endif
