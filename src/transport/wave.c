/* Run the rounds of a wave in lanes. */
#include "transport/algorithm.h"

int32_t sw_wave_lanes(int64_t message_bytes)
{
	return (int32_t)SW_MAX(SW_MIN(message_bytes / SW_PIECE_BYTES, SW_LANES), 1);
}

static sw_status end_round(sw_carrier *c, const sw_wave *wave, int32_t round, int32_t lane,
                           sw_error *err)
{
	sw_status status = c->finish(c, lane, err);
	if (status)
		return status;
	for (size_t i = 0; i < c->lanes[lane].sends.len; i++)
		c->base.traffic.wire_bytes += c->lanes[lane].sends.data[i].bytes;
	if (wave->complete)
		wave->complete(wave->context, round, lane);
	return SW_OK;
}

static sw_status begin_round(sw_carrier *c, const sw_wave *wave, int32_t round, int32_t lane,
                             sw_error *err)
{
	wave->fill(wave->context, round, lane, sw_carrier_lane(c, lane));
	return c->begin(c, wave->call, lane, err);
}

/* All ranks execute the same sequence of steps. */
sw_status sw_wave_run(sw_carrier *c, const sw_wave *wave, sw_error *err)
{
	sw_status status = SW_OK;
	for (int32_t step = 0; step <= wave->rounds + wave->lag * (wave->lanes - 1); step++) {
		for (int32_t lane = 0; lane < wave->lanes && status == SW_OK; lane++) {
			int32_t round = step - wave->lag * lane;
			if (round > 0 && round <= wave->rounds)
				status = end_round(c, wave, round - 1, lane, err);
			if (status == SW_OK && round >= 0 && round < wave->rounds)
				status = begin_round(c, wave, round, lane, err);
		}
	}
	return status;
}
