/* Run every row under a sample of strategies. */
#include "rules/brute.h"

int main(void)
{
	return brute_run_families(24);
}
