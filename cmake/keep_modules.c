/* Linked into the programs of sanitizer builds: plug-ins stay loaded until the process ends, so
 * that the leak checker can tell by a module's name what is Open MPI's to free (cmake/lsan.supp). */
int dlclose(void *module);

int dlclose(void *module)
{
	(void)module;
	return 0;
}
