/* Run every row under nearly all strategies of three atoms. */
#include "rules/brute.h"

int main(void)
{
	return brute_run_families(2500);
}
