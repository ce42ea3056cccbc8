/*
 * access: what --ssh HOST opens for a cell: the hosts with the keys that the person's files
 * of known hosts have for them, and the person's ssh agent. All of it is read once, outside,
 * before the cell is made; what a program does later to these files changes nothing.
 *
 * The cell gets the lines of these hosts as a file of its own, and a configuration of ssh
 * that names that file before the system's. It gets no file of the person, and never the
 * socket of the person's agent.
 */
#pragma once

#include "base/err.h"
#include "ssh/door.h"
#include "view/shape.h"

#include <stdbool.h>
#include <stddef.h>

struct ssh_access {
	struct ssh_known hosts[DOOR_HOSTS_MAX];
	size_t count;
	char *agent; /* the real path of the socket of the person's agent */
	char *known_hosts, *config;
	struct shape_ssh shape; /* of these texts */
};

/* Prepare ACCESS, zeroed, for HOSTS (NULL-ended). Call ssh_access_fini in either case. */
bool ssh_access_init(struct ssh_access *access, const char *const *hosts, struct err *err);
void ssh_access_fini(struct ssh_access *access);
