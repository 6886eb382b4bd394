/*
 * team: the threads of one interpreter. They wait between jobs, awake for some microseconds and
 * then asleep, so that a kernel of a tenth of a millisecond is worth sharing.
 */
#ifndef SW_INTERPRET_TEAM_H
#define SW_INTERPRET_TEAM_H

#include "base/base.h"

typedef struct sw_team sw_team;
typedef void sw_team_work(void *context, int member, int64_t i);

/* A team of n members, of which the caller is number 0. Threads that the system refuses are
 * missing. NULL is a team of one. */
sw_team *sw_team_new(int n);
void sw_team_free(sw_team *team);
int sw_team_size(const sw_team *team);
/* Call work(context, member, i) for i in [0, n), each i once, on any member; return when all calls
 * are over. Members take the next `grain` indices whenever they are free. */
void sw_team_run(sw_team *team, int64_t n, int64_t grain, sw_team_work *work, void *context);

#endif
