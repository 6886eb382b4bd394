/* calibrate_report: the result of `calibrate` as tables, as JSON, and as a picture. */
#ifndef SW_CLI_CALIBRATE_REPORT_H
#define SW_CLI_CALIBRATE_REPORT_H

#include "run/calibrate.h"

/* Append the fitted figures with their standard errors, the errors by collective and family, and
 * the worst points; with `all`, every point. */
void calibrate_describe(const sw_calibrate_result *result, bool all, sw_text *text);
json_t *calibrate_json(const sw_calibrate_result *result);
/* Draw fitted against measured seconds, links and kernels side by side, as SVG. */
void calibrate_plot(const sw_calibrate_result *result, sw_text *svg);

#endif
