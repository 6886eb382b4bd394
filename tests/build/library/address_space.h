/* What the tests of refused memory share: the address space that is in use. */
#include <stdio.h>
#include <sys/resource.h>

#define MB ((rlim_t)1 << 20)

static rlim_t used(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (rlim_t)pages * 4096;
}
