/*
 * outlet: the front's end of a cell's network: of its proxy (proxy/proxy.h), and of the
 * questions for hosts that nobody in the cell answers. An outlet starts the proxy and
 * sends it the listeners that were made inside the cell, and those of published ports. It
 * gives each command the right to send requests, takes the right back, and receives the
 * refusals. A cell whose policy lists no host, does not ask for hosts and publishes no
 * port, and that uses no credential, has no `struct outlet`.
 *
 * The anchor makes the listeners inside the cell's network before it drops its rights
 * (sandbox_listen). Each command gets a token with the frame of its call
 * (outlet_grant, call_environment). A refusal comes back as PROXY_REFUSED before the
 * client hears of it and becomes a denial of the call. Each cell that lists a host has
 * a proxy of its own, which knows one list and the tokens of one cell only.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/network.h"
#include "process/loop.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct counts;
struct outlet;
struct publish;

struct outlet_options {
	struct loop *loop;
	const char *program; /* as in session.h */
	const struct cell_spec *spec;
	/* the proxy became ready, or has ended */
	void (*changed)(void *owner);
	void *owner;
	/*
	 * TARGET was refused to the command CALL (0: to no particular call), by RULE of
	 * the policy
	 */
	void (*refused)(void *context, uint64_t call, const char *target,
			const char *rule, const char *remedy);
	/*
	 * The command CALL wants CONNECTION to TARGET, which no entry lists; BECAUSE is
	 * the text of a refusal. Answer with outlet_decide, now or later. Called only
	 * when the specification says that hosts are asked for.
	 */
	void (*asked)(void *context, uint64_t call, uint64_t connection,
		      const char *target, const char *because);
	void *context;
};

/* Start the proxy. `changed` is called from the loop when the proxy is ready. */
bool outlet_open(const struct outlet_options *options, struct outlet **outlet,
		 struct err *err);
void outlet_close(struct outlet *outlet); /* ends the proxy as well; NULL is fine */

/* The bytes that the proxy has carried so far (proxy/counts.h). */
const struct counts *outlet_counts(const struct outlet *outlet);
bool outlet_is_ready(const struct outlet *outlet);
/* The reason why the proxy has ended; NULL while it runs. */
const char *outlet_broken(const struct outlet *outlet);

/* Send a listener of the cell to the proxy: PORT of a tcp:// entry, or 0 for requests. */
void outlet_add_listener(struct outlet *outlet, uint16_t port, int *take_fd);

/*
 * Published ports: give the proxy the listeners of PUBLISH, and the socket by which it asks
 * the anchor for sockets of the cell's network.
 */
void outlet_publish(struct outlet *outlet, struct publish *publish);
void outlet_add_inlet(struct outlet *outlet, int *take_fd);
/* Give the proxy the socket by which it hands clients to the broker. */
void outlet_add_broker(struct outlet *outlet, int *take_fd);

/*
 * Let the command CALL send requests: append to LIST the variables ("NAME=value") by
 * which its programs find the proxy and prove that they belong to CALL.
 */
void outlet_grant(struct outlet *outlet, uint64_t call, struct value *list);
/* CALL has ended, and its connections end with it. */
void outlet_revoke(struct outlet *outlet, uint64_t call);
/*
 * Answer the question about CONNECTION. Nothing happens when CONNECTION has ended
 * meanwhile.
 */
void outlet_decide(struct outlet *outlet, uint64_t connection, bool yes);
/* Handle all messages that the proxy has sent so far. */
void outlet_hear(struct outlet *outlet);

/*
 * The hosts that programs of a cell asked the addresses of, without finding a name server
 * (sandbox_overhear). The messages and the exit code of the program do not matter.
 * Programs do not ask for a name that is in the /etc/hosts of the cell.
 *
 * A question for a name goes to the loopback of the cell, where nobody answers. The
 * anchor has made a socket there that keeps a copy, and the front reads it at the end
 * of each call.
 */

/*
 * Read the host that PACKET, a datagram with its IP and UDP headers, asks for. False when
 * PACKET asks for no host that a policy could list. PACKET may come from anybody.
 */
bool outlet_parse_lookup(struct str packet, struct network_host *host);

/*
 * Read all datagrams that wait at FD and call EACH for every host. A host that was asked
 * for twice is reported twice.
 */
void outlet_read_lookups(int fd,
			 void (*each)(void *context, const struct network_host *host),
			 void *context);

/*
 * Count the packets that found no route out of the network of the process behind PIDFD. A
 * program that uses an address instead of a name asks no name server, and this count is
 * the only trace of it in the kernel. False when the count cannot be read.
 */
bool outlet_count_unrouted(int pidfd, uint64_t *count);
