/*
 * calibration: the parts of the cluster file that `shardwright calibrate` writes: device.kernels
 * and calibration. Private to src/cluster.
 */
#ifndef SW_CLUSTER_CALIBRATION_H
#define SW_CLUSTER_CALIBRATION_H

#include "cluster/cluster.h"

/* Read device.kernels: fits for some of the families. */
sw_status kernels_read(const sw_yaml *node, sw_device *device, sw_error *err);
/* Read calibration. Require the cluster's atoms; sort the points, and refuse a point that occurs
 * twice. */
sw_status calibration_read(const sw_yaml *node, sw_cluster *cluster, sw_error *err);

/* Print nothing where nothing was fitted. indent: of the device's keys, in blanks. */
void kernels_print(const sw_device *device, int indent, sw_text *text);
void calibration_print(const sw_calibration *calibration, sw_text *text);

#endif
