/* Handle Ctrl-C, and a terminal that closes, for commands that stop in an orderly way. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A signal handler can only reach variables at file scope. */
static atomic_bool stop_requested;
static const char *stop_message; /* NULL: none */

static void request_stop(int signal_number)
{
	int before = errno;
	(void)signal_number;
	atomic_store(&stop_requested, true);
	if (stop_message && write(STDERR_FILENO, stop_message, strlen(stop_message)) < 0)
		stop_message = NULL;
	errno = before;
}

void cli_watch_signals(const cli *c, const char *message)
{
	stop_message = cli_speaks(c) && !c->values.quiet ? message : NULL;
	struct sigaction action = {.sa_handler = request_stop,
	                           .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* A terminal that closes; nohup, which ignores that, stays in force. */
	struct sigaction before;
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

const atomic_bool *cli_stop_asked(void)
{
	return &stop_requested;
}
