/*
 * vault: the front's end of a cell's broker (broker/broker.h). A vault chooses the
 * credentials that a cell uses, those whose key is there outside; makes a phantom for
 * each; starts the broker and sends it the listener that was made inside the cell; and
 * fetches a key whenever the broker needs one (broker/source.h). A cell that uses no
 * credential has no vault, and with it no authority.
 *
 * The variables of a credential (directions.h) are the same for all programs of the cell. So
 * a request belongs to no particular call, and a
 * refusal is told of in the result of each call that runs programs at that moment, as one
 * of a tcp:// entry is (outlet.h).
 */
#pragma once

#include "base/err.h"
#include "policy/credentials/credential.h"
#include "process/loop.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct counts;
struct vault;

struct vault_options {
	struct loop *loop;
	const char *program;    /* as in session.h */
	struct cell_spec *spec; /* gets the directions; its `closed` the files of keys */
	/* borrowed; they outlive the vault */
	const struct credential *credentials;
	size_t count;
	const char *home;               /* of the person; NULL: unknown */
	const char *const *environment; /* of the person, NULL-ended */
	/* the broker became ready, or has ended */
	void (*changed)(void *owner);
	void *owner;
	/* as in outlet.h */
	void (*refused)(void *context, uint64_t call, const char *target,
			const char *rule, const char *remedy);
	void *context;
};

/*
 * Start a broker. *VAULT becomes NULL when no credential has its key there. `changed` is
 * called from the loop when the broker is ready.
 */
bool vault_open(const struct vault_options *options, struct vault **vault, struct err *err);
void vault_close(struct vault *vault); /* ends the broker as well; NULL is fine */
/*
 * Are new tokens of a login on their way into its file? vault_close waits for them. NULL is
 * fine.
 */
bool vault_is_renewing(const struct vault *vault);

/* The bytes that the broker has carried so far (proxy/counts.h). */
const struct counts *vault_counts(const struct vault *vault);
bool vault_is_ready(const struct vault *vault);
/* The reason why the broker has ended; NULL while it runs. */
const char *vault_broken(const struct vault *vault);

/* Send the listener of the cell to the broker. */
void vault_add_listener(struct vault *vault, int *take_fd);

/* Give the broker the socket by which the proxy hands clients over. */
void vault_add_proxy(struct vault *vault, int *take_fd);

/* Handle all messages that the broker has sent so far. */
void vault_hear(struct vault *vault);
