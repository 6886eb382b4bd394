/* The interval in which a predicted time lies, from the errors of predictions that were held against
 * measurements (the device's prediction_error); the memory that is left to a program. */
#include "cost/cost.h"

int64_t sw_cost_memory_bytes(const sw_device *device)
{
	return SW_MAX(device->memory_bytes - (int64_t)device->reserved_bytes, 1);
}

sw_interval sw_cost_interval(const sw_device *device, double seconds)
{
	double factor = 1 + device->prediction_error;
	return (sw_interval){seconds / factor, seconds * factor};
}

void sw_cost_add_interval(const sw_device *device, double seconds, sw_text *text)
{
	const sw_interval interval = sw_cost_interval(device, seconds);
	if (device->prediction_error <= 0)
		return;
	sw_text_add(text, " (90 %: ");
	sw_text_add_seconds(text, interval.low_s);
	sw_text_add(text, " to ");
	sw_text_add_seconds(text, interval.high_s);
	sw_text_add(text, ")");
}
