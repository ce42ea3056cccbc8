/*
 * outlet: the front's end of a cell's proxy (proxy/proxy.h): starts it, hands it the
 * listeners that were made inside the cell, gives each command the right to ask and takes
 * it back, and hears what was refused. A cell whose policy lists no host has none of it.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "process/loop.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct outlet;

struct outlet_options {
	struct loop *loop;
	const char *program; /* as session.h */
	const struct cell_spec *spec;
	/* it became ready, or has ended */
	void (*changed)(void *owner);
	void *owner;
	/* TARGET was refused to the command CALL (0: to no one's in particular) */
	void (*refused)(void *context, uint64_t call, const char *target,
			const char *remedy);
	/*
	 * The command CALL wants CONNECTION to TARGET, which no entry lists and BECAUSE tells of:
	 * outlet_decide, now or later. Only where the specification says that it is asked for.
	 */
	void (*asked)(void *context, uint64_t call, uint64_t connection,
		      const char *target, const char *because);
	void *context;
};

/* Start the proxy; it says in the loop when it is ready. */
bool outlet_open(const struct outlet_options *options, struct outlet **outlet,
		 struct err *err);
void outlet_close(struct outlet *outlet); /* with the proxy; NULL is fine */

bool outlet_is_ready(const struct outlet *outlet);
/* Why it is not there any more; NULL while it is. */
const char *outlet_broken(const struct outlet *outlet);

/* A listener of the cell: PORT as in a tcp:// entry, 0 for requests. */
void outlet_add_listener(struct outlet *outlet, uint16_t port, int *take_fd);

/*
 * The command CALL may ask: append to LIST the variables ("NAME=value") by which its
 * programs find the proxy and prove whose they are.
 */
void outlet_grant(struct outlet *outlet, uint64_t call, struct value *list);
/* CALL has ended, and its connections end with it. */
void outlet_revoke(struct outlet *outlet, uint64_t call);
/* What was asked of a CONNECTION. One that has ended meanwhile is none. */
void outlet_decide(struct outlet *outlet, uint64_t connection, bool yes);
/* Take what the proxy has said up to now. */
void outlet_hear(struct outlet *outlet);
