/* Ctrl-C, for commands that end in good order. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* What a signal handler can reach has to be a variable. */
static atomic_bool stop_asked;
static const char *answer; /* NULL: none */

static void ask_to_stop(int signal_number)
{
	int before = errno;
	(void)signal_number;
	atomic_store(&stop_asked, true);
	if (answer && write(STDERR_FILENO, answer, strlen(answer)) < 0)
		answer = NULL;
	errno = before;
}

void cli_watch_signals(const cli *c, const char *told)
{
	answer = cli_speaks(c) && !c->values.quiet ? told : NULL;
	struct sigaction action = {.sa_handler = ask_to_stop,
	                           .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

const atomic_bool *cli_stop_asked(void)
{
	return &stop_asked;
}
