/* Which server serves which owner's variables, and what ranks send each other (served.h). */
#include "partition/served.h"

#include "base/even_placement.h"

#include <stdlib.h>

/* What an owner has, of all staleness; or a variable, whose number is that of its device. */
typedef struct owned {
	int64_t device, bytes, group; /* group: the server's number */
} owned;

static int by_device(const void *a, const void *b)
{
	const owned *x = a, *y = b;
	return (x->device > y->device) - (x->device < y->device);
}

/* Write the owners into `list`, which has room for one per port; return how many there are. */
static size_t list_owners(const sw_served *served, owned *list)
{
	size_t n = 0;
	for (uint32_t p = 0; p < served->n_ports; p++) {
		const sw_port *port = &served->ports[p];
		size_t i = 0;
		while (i < n && list[i].device != port->owner)
			i++;
		if (i == n)
			list[n++] = (owned){.device = port->owner};
		list[i].bytes += port->value_bytes;
	}
	return n;
}

/* Number the groups by the first of each list's entries, which are ordered by devices. */
static void number_groups(owned *list, size_t n_owners, size_t n)
{
	int64_t *number = sw_alloc(sizeof(*number) * n), next = 0;
	for (size_t s = 0; s < n; s++)
		number[s] = -1;
	for (size_t i = 0; i < n_owners; i++) {
		if (number[list[i].group] < 0)
			number[list[i].group] = next++;
		list[i].group = number[list[i].group];
	}
	free(number);
}

/* Let n groups have what is in the list, about equal bytes each, and order it by devices. Each entry
 * counts as a byte more, so that no group has nothing. */
static void group(owned *list, size_t n_owners, size_t n)
{
	int64_t *bytes = sw_alloc(sizeof(*bytes) * (n_owners + 1)),
		*of = sw_alloc(sizeof(*of) * (n_owners + 1)), *load = sw_alloc(sizeof(*load) * n);
	qsort(list, n_owners, sizeof(*list), by_device);
	for (size_t i = 0; i < n_owners; i++)
		bytes[i] = list[i].bytes + 1;
	sw_place_evenly(bytes, n_owners, load, (int64_t)n, of);
	for (size_t i = 0; i < n_owners; i++)
		list[i].group = of[i];
	number_groups(list, n_owners, n);
	free(bytes);
	free(of);
	free(load);
}

void sw_served_share(const int64_t *bytes, size_t n_variables, size_t n, int64_t *server_of)
{
	owned *list = sw_alloc(sizeof(*list) * (n_variables + 1));
	for (size_t i = 0; i < n_variables; i++)
		list[i] = (owned){.device = (int64_t)i, .bytes = bytes[i]};
	group(list, n_variables, n);
	for (size_t i = 0; i < n_variables; i++)
		server_of[i] = list[i].group;
	free(list);
}

void sw_served_place(sw_served *served, int64_t n)
{
	owned *list = sw_alloc(sizeof(*list) * (served->n_ports + 1));
	size_t n_owners = list_owners(served, list);
	group(list, n_owners, (size_t)n);
	for (size_t i = 0; i < n_owners; i++)
		for (uint32_t p = 0; p < served->n_ports; p++)
			if (served->ports[p].owner == list[i].device)
				served->ports[p].server = list[i].group;
	free(list);
}

/* What devices own in a synchronous plan is part of the program that they run together. */
sw_status sw_served_check(const sw_plan *plan, int64_t servers, sw_error *err)
{
	return servers > 0 && !sw_forms_served(&plan->forms)
	               ? sw_fail(err, SW_ERR_INPUT,
	                         "the plan's variables are not served: what its devices own is part "
	                         "of the program that they run together: leave --servers out, or "
	                         "plan with --strategy ps:balanced,stale=S, or ps:balanced,served, "
	                         "for servers")
	               : SW_OK;
}

/* ---- traffic ---------------------------------------------------------------------------- */

bool sw_port_takes(const sw_port *port, uint32_t other)
{
	for (uint32_t k = 0; k < port->n_taken; k++)
		if (port->taken[k].port == other)
			return true;
	return false;
}

/* Return to how many ranks beside its own a port's digest goes. */
static int64_t digest_readers(const sw_served *served, uint32_t p, int64_t n)
{
	int64_t readers = 0, own = sw_port_rank(&served->ports[p], n);
	for (uint32_t i = 0; i < served->n_ports; i++) {
		int64_t rank = sw_port_rank(&served->ports[i], n);
		bool reads = rank != own && sw_port_takes(&served->ports[i], p);
		for (uint32_t k = 0; k < i && reads; k++)
			reads = sw_port_rank(&served->ports[k], n) != rank ||
			        !sw_port_takes(&served->ports[k], p);
		readers += reads;
	}
	return readers;
}

int64_t sw_served_payload(const sw_served *served, int64_t n)
{
	int64_t ranks = n, most = 0;
	for (uint32_t p = 0; p < served->n_ports; p++)
		ranks = SW_MAX(ranks, n + served->ports[p].server + 1);
	int64_t *bytes = sw_alloc(sizeof(*bytes) * (size_t)ranks);
	for (int64_t r = 0; r < n && served->in_step; r++)
		bytes[r] = served->worker_bytes[r];
	for (uint32_t p = 0; p < served->n_ports; p++) {
		const sw_port *port = &served->ports[p];
		int64_t own = sw_port_rank(port, n), readers = own < n ? n - 1 : n;
		for (int64_t r = 0; r < n; r++)
			bytes[r] += r == own ? 0 : port->sent_bytes;
		bytes[own] += readers * port->value_bytes +
		              digest_readers(served, p, n) * port->digest_bytes;
	}
	for (int64_t r = 0; r < ranks; r++)
		most = SW_MAX(most, bytes[r]);
	free(bytes);
	return most;
}
