/*
 * calibration: the parts of the cluster file that `shardwright calibrate` writes: device.kernels
 * and calibration. Private to src/cluster.
 */
#ifndef SW_CLUSTER_CALIBRATION_H
#define SW_CLUSTER_CALIBRATION_H

#include "cluster/cluster.h"

/* device.kernels: a fit for some of the families. */
sw_status kernels_read(const sw_yaml *node, sw_device *device, sw_error *err);
/* calibration. Requires the cluster's atoms; sorts the points, and refuses one that is there twice.
 */
sw_status calibration_read(const sw_yaml *node, sw_cluster *cluster, sw_error *err);

/* Nothing, where nothing was fitted. */
void kernels_print(const sw_device *device, sw_text *text);
void calibration_print(const sw_calibration *calibration, sw_text *text);

#endif
