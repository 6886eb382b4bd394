/* Random search: the best of assignments that are drawn at random, each independently. */
#include "solve/methods/method_run.h"

sw_status method_random(method_run *r, sw_error *err)
{
	(void)err;
	do {
		walk_draw(&r->w, &r->rng);
		r->tried++;
		method_offer(r);
	} while (!method_stopped(r));
	return SW_OK;
}
