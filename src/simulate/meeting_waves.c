/*
 * Waves: the meetings of the k-th start of all devices, opened by the first that comes and closed
 * when all have ended.
 */
#include "simulate/simulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const device_groups *groups_of(simulator *p, uint32_t number)
{
	device_groups *made = &p->groups[number];
	const code *c = p->code;
	if (!made->groups)
		*made = make_device_groups(c->cluster, c->program, &c->collectives.data[number],
		                           p->n_devices, &p->arena);
	return made;
}

static void open_wave(simulator *p, uint32_t what)
{
	const device_groups *who = groups_of(p, what);
	wave opened = {who->n_groups, sw_alloc((size_t)who->n_groups * sizeof(meeting))};
	for (int32_t g = 0; g < who->n_groups; g++)
		opened.meetings[g] = (meeting){.group = &who->groups[g],
		                               .collective = what,
		                               .wave = p->forgotten + (int64_t)p->waves.len};
	sw_vec_push(&p->waves, opened);
}

void close_waves(simulator *p)
{
	while (p->closed < p->waves.len && p->waves.data[p->closed].open == 0)
		free(p->waves.data[p->closed++].meetings);
	if (2 * p->closed <= p->waves.len)
		return;
	p->waves.len -= p->closed;
	memmove(p->waves.data, p->waves.data + p->closed, p->waves.len * sizeof(wave));
	p->forgotten += (int64_t)p->closed;
	p->closed = 0;
}

void arrive_at_meeting(simulator *p, int32_t number)
{
	collective_stream *s = &p->devices[number].stream;
	if (s->meeting || s->taken == s->given.len)
		return;
	double arrival_s = fmax(s->given.data[s->taken++], s->free);
	if (s->taken == s->given.len)
		s->taken = s->given.len = 0;
	wave *at = wave_at(p, s->ended);
	meeting *m = &at->meetings[groups_of(p, at->meetings->collective)->group_of[number]];
	s->meeting = true;
	m->begin = fmax(m->begin, arrival_s);
	if (++m->arrived == m->group->size)
		sw_vec_push(&p->ready, *m);
}

void start_collective(simulator *p, int32_t number, uint32_t what, double time)
{
	device *d = &p->devices[number];
	if (d->stream.started == p->forgotten + (int64_t)p->waves.len)
		open_wave(p, what);
	d->wave_of[what] = d->stream.started++;
	sw_vec_push(&d->stream.given, time);
	arrive_at_meeting(p, number);
}
