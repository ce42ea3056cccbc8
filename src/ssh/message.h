/*
 * message: the messages of an ssh agent (draft-miller-ssh-agent), and the bytes that a
 * client of ssh has signed to sign in (RFC 4252, section 7). All of it comes from programs
 * of a cell, or from an agent, and is read strictly: a byte too many is as wrong as one
 * too few. Pure; all texts of the structs are views of what was read.
 *
 * On the socket, each message follows its length, a number of four bytes.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* As OpenSSH has it, AGENT_MAX_LEN. */
	SSH_MESSAGE_MAX = 256 << 10,
	SSH_MESSAGE_HEAD = 4,     /* the length before it */
	SSH_KEY_MAX = 16 << 10,   /* of a public key: RSA of 16,384 bits has 2 KiB */
	SSH_SIGNED_MAX = 4 << 10, /* of a signature */
	/* of the bytes that sign a user in: two keys and some names */
	SSH_USERAUTH_MAX = 48 << 10,
	/* Of a commit or a tag that is signed. One with many parents has some kilobytes. */
	SSH_TEXT_MAX = 128 << 10,
	SSH_KEYS_MAX = 64, /* of an agent; ssh itself tries six unless it is told which */
	/* All of them together; one has a hundred bytes, with RSA some hundreds. */
	SSH_KEYS_BYTES = 64 << 10,
	SSH_NAME_MAX = 64, /* of a key's or signature's kind */
	SSH_USER_MAX = 256,
};

/* The extension by which our own program of the cell asks for a commit's signature. */
#define SSH_GIT_EXTENSION "git-sign@glovebox"

enum ssh_message_kind {
	SSH_MESSAGE_OTHER = 0, /* not served: keys are added, removed, locked; unknown ones */
	SSH_MESSAGE_LIST,      /* the keys */
	SSH_MESSAGE_SIGN,      /* `key`, `data`, `flags` */
	SSH_MESSAGE_BIND,      /* session-bind@openssh.com: the next four */
	SSH_MESSAGE_GIT,       /* SSH_GIT_EXTENSION: `key` and `data`, a commit or tag */
};

struct ssh_message {
	enum ssh_message_kind kind;
	struct str key, data;
	uint32_t flags;
	struct str host_key, session, signature;
	bool forwarding;
};

/*
 * The first message of IN, bytes of a socket. *BODY becomes its body, a view of IN, when it
 * is WHOLE; SSH_MESSAGE_HEAD bytes stand before it, and others may follow it.
 */
enum ssh_frame {
	SSH_FRAME_CUT = 0, /* more bytes have to come */
	SSH_FRAME_WHOLE,
	SSH_FRAME_WRONG, /* its length is 0 or over SSH_MESSAGE_MAX */
};
enum ssh_frame ssh_message_first(struct str in, struct str *body);

/* Read the message BODY of a client. One that is not served or wrong is OTHER. */
void ssh_message_read(struct str body, struct ssh_message *message);

/* The answers; each appends a whole message with its length. */
void ssh_message_add_outcome(struct buf *out, bool done);
/* SIGNATURE answers SIGN, or GIT. */
void ssh_message_add_signed(struct buf *out, struct str signature);
/* A refusal of GIT, with a sentence for the person who reads git's messages. */
void ssh_message_add_reason(struct buf *out, const char *reason);

/* Requests to an agent: for its keys, and for a signature of DATA by KEY. */
void ssh_message_ask_keys(struct buf *out);
void ssh_message_ask_signed(struct buf *out, struct str key, struct str data,
			    uint32_t flags);

/* A request to our own door: to sign TEXT, a commit or tag, with KEY. */
void ssh_message_add_git(struct buf *out, struct str key, struct str text);

/*
 * Read BODY, the keys of an agent, and append a body to OUT that has only those by which
 * ssh signs in: no certificates, and no key whose kind has a wrong name. False: BODY is no
 * such answer.
 */
bool ssh_message_read_keys(struct str body, struct buf *out);
/* Is KEY among the keys of ANSWER, which ssh_message_read_keys has made? */
bool ssh_message_has_key(struct str answer, struct str key);
/*
 * Read BODY, the answer to a request of KEY's signature with FLAGS; *SIGNATURE is what
 * stands in it. False: it is a refusal, or a signature of another kind.
 */
bool ssh_message_read_signed(struct str body, struct str key, uint32_t flags,
			     struct str *signature);
/*
 * Read an answer of our own door to SSH_GIT_EXTENSION. True: *ANSWER is the signature;
 * false: it is the reason, perhaps empty.
 */
bool ssh_message_read_git(struct str body, struct str *answer);

/* The kind of KEY, a public key ("ssh-ed25519"); empty when KEY is none. */
struct str ssh_message_key_kind(struct str key);
/* The flags by which an agent signs with KEY in a way that is not weak. */
uint32_t ssh_message_key_flags(struct str key);
/* "SHA256:" and the fingerprint of KEY, as ssh-add -l prints it. Returns TEXT. */
enum { SSH_FINGERPRINT = 64 };
char *ssh_message_fingerprint(struct str key, char text[SSH_FINGERPRINT]);

/* The bytes that a client signs to sign in as USER. */
struct ssh_userauth {
	struct str session, user, key;
	struct str host_key; /* of publickey-hostbound-v00@openssh.com; empty: without it */
	uint32_t flags;      /* of the request for the signature */
};

/*
 * Read DATA. False: it is nothing by which ssh signs in to a session, or would be signed
 * in a weak way (ssh-rsa, which is SHA-1).
 */
bool ssh_message_read_userauth(struct str data, struct ssh_userauth *userauth);
