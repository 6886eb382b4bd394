/*
 * quantity: numbers with units, as the cluster file has them. Private to src/cluster.
 *
 * "25 GB/s", "100 Gb/s", "20 us", "16 GiB", "312 TFLOP/s", or a plain number in the base unit:
 * bytes, bytes per second, seconds, floating-point operations per second. B is a byte, b a bit; k M
 * G T are powers of 1000, Ki Mi Gi Ti of 1024. A blank between number and unit is optional.
 */
#ifndef SW_CLUSTER_QUANTITY_H
#define SW_CLUSTER_QUANTITY_H

#include "cluster/cluster.h"

/* Return NULL, or the error in words that end a sentence "levels[0].latency: ...", which are in
 * `message`. */
const char *quantity_parse(const char *text, sw_quantity kind, double *value, char message[256]);

/* Add the shortest text that quantity_parse reads back to the same double. */
void quantity_print(double value, sw_quantity kind, sw_text *text);

/* Round to this many digits in the unit in which the value is printed, so that it prints as short
 * as that. */
double quantity_round(double value, sw_quantity kind, int digits);

/* Return "a time such as 20 us": for messages. */
const char *quantity_example(sw_quantity kind);

#endif
