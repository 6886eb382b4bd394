/* --servers: ranks that serve variables and have no device (run/serve.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#include "partition/served.h"

#define MAX_SERVERS 4096

typedef struct host_name {
	char text[256];
} host_name;

/* A word of the option: ranks on a host. */
typedef struct server_host {
	const char *name;
	int64_t n; /* the last of them; 0: all */
} server_host;

static sw_status expected(const cli *c, sw_error *err)
{
	return sw_fail(
		err, SW_ERR_INPUT,
		"--servers %s: expected how many of the last ranks are servers, from 1 to %d, "
		"or, under mpirun, hosts: HOST or HOST:N, with commas between",
		c->values.servers, MAX_SERVERS);
}

/* Is the text a number from 1 to MAX_SERVERS? */
static bool read_count(const char *text, int64_t *n)
{
	char *end;
	*n = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : 0;
	return *n >= 1 && *n <= MAX_SERVERS && *end == 0;
}

/* Is it written as a number, whatever its size? Names of hosts are not. */
static bool is_number(const char *text)
{
	return strspn(text, "-+.0123456789") == strlen(text);
}

/* ---- hosts ------------------------------------------------------------------------------ */

static sw_status read_hosts(cli *c, server_host *hosts, size_t *n, sw_error *err)
{
	char *text = sw_arena_text(&c->arena, c->values.servers), *rest = text;
	for (*n = 0; rest; ++*n) {
		char *word = strsep(&rest, ","), *colon = strrchr(word, ':');
		hosts[*n] = (server_host){.name = word};
		if (colon)
			*colon = 0;
		if (!*word || (colon && !read_count(colon + 1, &hosts[*n].n)))
			return expected(c, err);
		for (size_t i = 0; i < *n; i++)
			if (strcmp(hosts[i].name, word) == 0)
				return sw_fail(
					err, SW_ERR_INPUT,
					"--servers: '%s' is there twice: give it once, as %s:N",
					word, word);
	}
	return SW_OK;
}

/* A host may be called by its name without the domain. */
static bool is_called(const host_name *host, const char *name)
{
	size_t length = strlen(name);
	return strncmp(host->text, name, length) == 0 &&
	       (host->text[length] == 0 || host->text[length] == '.');
}

static sw_status no_host(const cli *c, const host_name *names, const char *name, sw_error *err)
{
	sw_nearest nearest = {.word = name};
	sw_text list = {0};
	for (int32_t r = 0; r < c->transport->size; r++) {
		bool known = false;
		for (int32_t k = 0; k < r; k++)
			known = known || strcmp(names[k].text, names[r].text) == 0;
		if (known)
			continue;
		sw_nearest_try(&nearest, names[r].text);
		sw_text_addf(&list, "%s%s", r ? ", " : "", names[r].text);
	}
	sw_status status = sw_fail(err, SW_ERR_INPUT,
	                           "--servers: no rank is on a host '%s'%s; ranks are on %s", name,
	                           sw_nearest_hint(&nearest).text, list.data);
	sw_text_clear(&list);
	return status;
}

/* Mark the last n ranks on a host (0: all of them). */
static sw_status mark(const cli *c, const host_name *names, const server_host *host, bool *last,
                      sw_error *err)
{
	int64_t there = 0;
	for (int32_t r = c->transport->size - 1; r >= 0; r--)
		if (is_called(&names[r], host->name) && (!host->n || there < host->n)) {
			last[r] = true;
			there++;
		}
	if (there == 0)
		return no_host(c, names, host->name, err);
	return there < host->n
	               ? sw_fail(err, SW_ERR_INPUT,
	                         "--servers: %lld rank%s on %s, not %lld: start more there, "
	                         "or name fewer",
	                         (long long)there, there == 1 ? " is" : "s are", host->name,
	                         (long long)host->n)
	               : SW_OK;
}

/* Mark the ranks on the hosts that the option names. All ranks come here with good names. */
static sw_status mark_all(const cli *c, const server_host *hosts, size_t n, bool *last,
                          sw_error *err)
{
	sw_transport *t = c->transport;
	host_name mine = {0}, *names = sw_alloc(sizeof(*names) * (size_t)t->size);
	gethostname(mine.text, sizeof(mine.text) - 1);
	sw_status status =
		t->ops->all_gather(t, t->everyone, t->size, &mine, names, sizeof(mine), err);
	for (size_t i = 0; i < n && status == SW_OK; i++)
		status = mark(c, names, &hosts[i], last, err);
	free(names);
	return status;
}

/* Tell which ranks of mpirun's have other numbers here. */
static void note_order(const cli *c, const bool *last)
{
	sw_text text = {0};
	for (int32_t r = 0; r < c->transport->size; r++)
		if (last[r])
			sw_text_addf(&text, "%s%d", text.len ? ", " : "", r);
	cli_note(c, "servers are ranks %s of mpirun's; here they are numbered behind all others",
	         text.data);
	sw_text_clear(&text);
}

static sw_status place(cli *c, const bool *last, int32_t *servers, sw_error *err)
{
	bool in_order = true;
	for (int32_t r = 0; r < c->transport->size; r++) {
		*servers += last[r];
		in_order = in_order && (r == 0 || last[r] >= last[r - 1]);
	}
	if (in_order)
		return SW_OK;
	SW_TRY(sw_transport_mpi_reorder(c->transport, last, err));
	note_order(c, last);
	return SW_OK;
}

static sw_status place_hosts(cli *c, int32_t *servers, sw_error *err)
{
	server_host *hosts = SW_NEW_N(&c->arena, server_host, strlen(c->values.servers) + 1);
	size_t n = 0;
	sw_status status = read_hosts(c, hosts, &n, err);
	if (!c->transport)
		return status ? status
		              : sw_fail(err, SW_ERR_INPUT,
		                        "--servers %s: hosts are those of mpirun's ranks; without "
		                        "it "
		                        "say how many: --servers N",
		                        c->values.servers);
	SW_TRY(c->transport->ops->agree(c->transport, status, err));
	bool *last = SW_NEW_N(&c->arena, bool, c->transport->size);
	SW_TRY(c->transport->ops->agree(c->transport, mark_all(c, hosts, n, last, err), err));
	return place(c, last, servers, err);
}

/* ---- the option ------------------------------------------------------------------------- */

sw_status cli_place_servers(cli *c, int32_t *servers, sw_error *err)
{
	*servers = 0;
	if (!c->values.servers || is_number(c->values.servers))
		return cli_count_servers(c, servers, err);
	return place_hosts(c, servers, err);
}

sw_status cli_count_servers(const cli *c, int32_t *servers, sw_error *err)
{
	int64_t n = 0;
	*servers = 0;
	if (!c->values.servers)
		return SW_OK;
	if (!read_count(c->values.servers, &n))
		return expected(c, err);
	*servers = (int32_t)n;
	return SW_OK;
}

sw_status cli_check_served(const cli *c, const sw_plan *plan, int32_t servers, sw_error *err)
{
	return sw_error_in_file(err, sw_served_check(plan, servers, err), c->argument);
}
