/*
 * commit: a commit or a tag of git that is to be signed: who it says has made it, its
 * subject, and the signature that git keeps in it (PROTOCOL.sshsig of OpenSSH). The text
 * comes from a program of a cell. Only a text that git would have made for a signature is
 * taken, so that no other text gets a signature of the person. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

struct ssh_commit {
	bool tag;
	/* "Name <address>": of a tag its tagger is the author, and there is no committer */
	struct str author, committer;
	struct str name, type, object; /* of a tag */
	struct str subject; /* the first lines of the message, to an empty one */
};

/* Read TEXT. False: it is neither a commit nor a tag. */
bool ssh_commit_read(struct str text, struct ssh_commit *commit);

/*
 * Append the bytes that an agent signs for TEXT: its SHA-256, in the namespace "git", which
 * keeps the signature from being one of anything else.
 */
void ssh_commit_add_signed(struct str text, struct buf *out);
/* Append the whole signature: SIGNATURE, of those bytes by KEY, with what it is for. */
void ssh_commit_add_signature(struct str key, struct str signature, struct buf *out);
/* Append WHOLE as the text that git keeps. */
void ssh_commit_add_armour(struct str whole, struct buf *out);
