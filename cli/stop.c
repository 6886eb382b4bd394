/* Ctrl-C, for commands that end in good order. */
#include "cli.h"

#include <signal.h>

/* What a signal handler can reach has to be a variable. */
static atomic_bool stop_asked;

static void ask_to_stop(int signal_number)
{
	(void)signal_number;
	atomic_store(&stop_asked, true);
}

void cli_watch_signals(void)
{
	struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

const atomic_bool *cli_stop_asked(void)
{
	return &stop_asked;
}
