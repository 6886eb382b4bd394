/* array_data: functions of training on batches from .npy files. Private to src/run. */
#ifndef SW_RUN_ARRAY_DATA_H
#define SW_RUN_ARRAY_DATA_H

#include "run/ranks.h"

bool sw_arrays_has(const sw_arrays *arrays, uint32_t input); /* false for NULL */
/* A hash of the files: of their headers and some of their data; 0 for NULL. */
uint64_t sw_arrays_hash(const sw_arrays *arrays);
/* Items that are cut into batches; 0: all files have a value per step. */
int64_t sw_arrays_items(const sw_arrays *arrays);
/* Write a rank's part of the input of a step (counted from 0) into `tensor`. SW_ERR_INPUT, with
 * file and item, where a number is none that the input can have. */
sw_status sw_arrays_fill(const sw_arrays *arrays, const sw_held_value *value, int64_t rank,
                         uint64_t seed, int64_t step, const sw_tensor *tensor, sw_error *err);
/* Return the item at place `place` of pass `pass` over n items: a permutation of 0 to n-1 per
 * (seed, pass), computed at each place by itself: a Feistel network over the next even power of
 * two, walked until it hits a number below n (Black and Rogaway 2002). O(1) on average. */
int64_t sw_shuffled(uint64_t seed, uint64_t pass, int64_t n, int64_t place);

#endif
