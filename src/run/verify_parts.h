/* verify_parts: what the verifications share. Private to src/run. */
#ifndef SW_RUN_VERIFY_PARTS_H
#define SW_RUN_VERIFY_PARTS_H

#include "run/run.h"

/* Sums over all devices' parts of one output. */
typedef struct verify_sums {
	double difference, reference; /* sums of squares */
	double worst, largest;        /* of a single element */
	double elements, unequal;
	int64_t not_compared;
} verify_sums;

/* Return the relative error that is allowed of a program: by its narrowest float type. */
double verify_tolerance(const sw_program *program);
/* Add n elements to the sums; those that are not `is_true` are padding, and are left out. */
void verify_elements(sw_type type, const void *got, const void *wanted, const uint8_t *is_true,
                     int64_t n, verify_sums *s);
double verify_relative(const verify_sums *s, sw_type type);
/* Judge an output by its sums; the row has no name yet. */
sw_verify_row verify_judge(const sw_sidecar *sidecar, uint32_t output, sw_type type,
                           const verify_sums *s, double tolerance);
/* Judge an output of two runs on one device. */
sw_verify_row verify_difference(const sw_sidecar *sidecar, uint32_t output, sw_tensor other,
                                sw_tensor one, double tolerance);

/* Run the program once on one device, its inputs drawn as the sidecar's tests have them: state from
 * one seed, data from another. The caller drops the outputs. */
sw_status verify_serial(const sw_program *program, const sw_sidecar *sidecar, uint64_t seed,
                        uint64_t data_seed, sw_tensor *outputs, sw_error *err);

#endif
