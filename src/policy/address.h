/*
 * address: an address of the Web, as a program of a cell wants it opened in the person's
 * browser. The grammar is strict: what it takes, every browser reads in the same way, and
 * no part of it looks like another one to a person.
 *
 *   http:// or https://, a host or an address as in policy/network.h, and what follows;
 *   printable ASCII without blanks, quotes, backslash, ^ ` { | } < and >; no user name; at
 *   most ADDRESS_MAX bytes
 *
 * A host of other letters is written in its ASCII form (xn--…), and is shown in that.
 *
 * Pure.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stdint.h>

enum { ADDRESS_MAX = 4096 };

struct address {
	char text[ADDRESS_MAX + 1]; /* as it was given */
	struct network_host host;
	uint16_t port; /* 80 and 443 when the address names none */
	bool plain;    /* http */
	/*
	 * The port of this machine to which a login comes back: that of the only
	 * `redirect_uri` in the query, when its host is localhost or 127.0.0.1. 0: none
	 */
	uint16_t back;
};

/* Read TEXT. ERR names the broken rule, without repeating TEXT. */
bool address_parse(struct str text, struct address *address, struct err *err);
