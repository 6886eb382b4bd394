/* Private to base: unpacking gzip data in memory. */
#ifndef SW_BASE_GUNZIP_H
#define SW_BASE_GUNZIP_H

#include "base/base.h"

bool sw_is_gzip(const char *data, size_t length);
/* All members of the file, one after the other, followed by a zero that is not counted. Zeros may
 * follow them (tape padding). *out is freed with free(). */
sw_status sw_gunzip(const char *data, size_t length, char **out, size_t *out_length, sw_error *err);
/* Doubles a buffer whose size comes from input: on refusal frees it and sets it to NULL. */
void sw_try_double(char **buffer, size_t *room);

#endif
