/* The peer: a Python process that runs XLA, one line of a pipe per step. */
#define _GNU_SOURCE /* prctl, pipes */
#include "kernels/kernels.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer {
	pid_t pid;
	FILE *to, *from;
	int64_t bytes;
};

static void become_python(const char *python, const char *name, const int to[2], const int from[2])
{
	char script[] = SW_SOURCE_DIR "/bench/kernels/peer.py";
	char *const arguments[] = {(char *)(uintptr_t)python, script, (char *)(uintptr_t)name,
	                           NULL};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(to[0], STDIN_FILENO);
	dup2(from[1], STDOUT_FILENO);
	close(to[1]);
	close(from[0]);
	execvp(python, arguments);
	_exit(127);
}

sw_status peer_open(const char *python, const char *name, peer **p, sw_error *err)
{
	int to[2], from[2];
	long long bytes = 0;
	*p = NULL;
	if (pipe(to) != 0 || pipe(from) != 0)
		return sw_fail(err, SW_ERR_IO, "no pipe to the peer");
	pid_t pid = fork();
	if (pid == 0)
		become_python(python, name, to, from);
	close(to[0]);
	close(from[1]);
	*p = sw_alloc(sizeof **p);
	**p = (peer){.pid = pid, .to = fdopen(to[1], "w"), .from = fdopen(from[0], "r")};
	if (pid < 0 || fscanf((*p)->from, " ready %lld", &bytes) != 1)
		return sw_fail(err, SW_ERR_IO,
		               "'%s bench/kernels/peer.py %s' does not run: it needs the packages "
		               "of tools/export_requirements.txt",
		               python, name);
	(*p)->bytes = (int64_t)bytes;
	return SW_OK;
}

void peer_close(peer *p)
{
	if (!p)
		return;
	fclose(p->to);
	fclose(p->from);
	if (p->pid > 0)
		waitpid(p->pid, NULL, 0);
	free(p);
}

sw_status peer_step(peer *p, bool cpu, double *seconds, sw_error *err)
{
	double wall_s, cpu_s;
	fputs("\n", p->to);
	fflush(p->to);
	bool told = fscanf(p->from, "%lf %lf", &wall_s, &cpu_s) == 2;
	*seconds = !told ? 0 : cpu ? cpu_s : wall_s;
	return told ? SW_OK : sw_fail(err, SW_ERR_IO, "the peer ended within a step");
}

int64_t peer_bytes(const peer *p)
{
	return p->bytes;
}
