/*
 * door: the process at which the programs of a cell find an ssh agent, and the messages by
 * which a front steers it. It is no agent: it holds no key and reaches none. It reads what
 * the cell sends, and hands on only what may be signed:
 *
 *   - what ssh signs to sign in (ssh/message.h), for the session to which the connection
 *     is bound. The session is bound when a host of --ssh has signed it with a key that
 *     the person's files of known hosts have for that host (session-bind@openssh.com), and
 *     not when the agent was forwarded to that host.
 *   - a commit or a tag of git (ssh/commit.h)
 *
 * The front then reads both again, checks the host's signature of the session again, asks the
 * person, and asks the person's agent. Keys are listed; nothing adds, removes or locks one.
 *
 * The door is a role of the same program, started as the proxy is (proxy/proxy.h), and has
 * neither network nor files. It serves a listener that was made in the view of the cell.
 * A program that breaks it has reached a process that can ask the front for the signature of
 * a user who signs in to a session of a host of --ssh, as any program of the cell can.
 *
 *   front → door   LISTENER, then KEYS for LIST, SIGNED or NO for SIGN and GIT
 *   door → front   READY or FAILED, then LIST, SIGN, GIT, GONE, REFUSED
 *
 * The control socket is a SOCK_SEQPACKET pair. The door exits when it closes.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "ssh/known.h"
#include "ssh/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* argv[0] of the role; its arguments: role_start_steered. */
#define DOOR_ROLE "glovebox-ssh"

enum {
	DOOR_HOSTS_MAX = 16,
	DOOR_TEXT_MAX = SSH_KEY_MAX + SSH_TEXT_MAX,
	DOOR_REASON_MAX = 512,
	DOOR_SPEC_MAX = 4 << 20,
};

enum door_kind {
	/* from the front */
	DOOR_LISTENER = 1, /* with the listener of the cell */
	DOOR_KEYS,         /* `text`: ssh_message_read_keys; empty: there are none */
	DOOR_SIGNED,       /* `text` is the signature for ID; of GIT the whole one */
	DOOR_NO,           /* none for ID: `text` says why */
	/* to the front */
	DOOR_READY,  /* locked in */
	DOOR_FAILED, /* `text` says why; it ends */
	DOOR_LIST,   /* the keys are wanted */
	/*
	 * ID wants something signed, to sign in to `host`. The first `key` bytes of `text` bind
	 * the session: they are two strings of ssh/wire.h, the key of the host and its
	 * signature. The bytes to sign follow.
	 */
	DOOR_SIGN,
	DOOR_GIT,  /* ID wants a commit signed: `text` is the key, `key` bytes, and it */
	DOOR_GONE, /* ID wants nothing any more */
	DOOR_REFUSED, /* a program was refused; `text` says why and what to do */
};

/* A message; its text follows it. */
struct door_head {
	uint32_t kind, id;
	uint32_t host; /* its number among those of the specification */
	uint32_t key;
	uint32_t size; /* of the text */
};

struct door_message {
	struct door_head head;
	char text[DOOR_TEXT_MAX + 1]; /* ends with NUL */
};

/* Send HEAD with TEXT, and with FD unless it is -1. FLAGS: of sendmsg(2). False with errno. */
bool door_send(int control, const struct door_head *head, struct str text, int fd,
	       int flags);
/*
 * Receive a message without waiting, with *FD (-1: none came). False with errno: EAGAIN
 * when there is none yet, ECONNRESET when the other end has gone, or sends what is no
 * message.
 */
bool door_receive(int control, struct door_message *message, int *fd);

/* The specification that a door reads at its start. HOSTS have keys. */
bool door_print_spec(const struct ssh_known *hosts, size_t count, struct buf *out);

/*
 * To be called in main() before anything else. When this process was started as a door,
 * the function runs the door and never returns.
 */
void door_role(int argc, char **argv);
