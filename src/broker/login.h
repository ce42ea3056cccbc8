/*
 * login: the file of a login, outside of every cell, while cells use it. It runs in the
 * front. A cell gets a copy with phantoms, and the file itself gets the tokens of each
 * renewal (broker/refresh.h).
 *
 * The copy has the places of `refresh.store`, each with its phantom, and those of
 * `refresh.keep` as they are, of at most LOGIN_KEPT_MAX bytes each. That list is closed:
 * nothing else of the file gets into a cell.
 *
 * A renewal uses the old token up at the service, so exactly one program may do it at a
 * time, and its answer must not get lost:
 *
 *	login_begin   locks the folder of the file (flock), so that other cells wait; reads
 *	              the tokens; makes the new file beside the old one and reserves its
 *	              room, so that a full or read-only disk is found before anything is sent
 *	login_keep    if the file still holds the token that was sent, writes the new ones:
 *	              fsync of the new file, rename, fsync of the folder. Only then the cell
 *	              gets its answer. Members that no rule names stay as they are. A file that
 *	              a program outside is half through writing is looked at again, for
 *	              LOGIN_KEEP_MS; then the new file stays beside it
 *	login_await   the service does not take the token any more: a login outside may have
 *	              used it up. Waits for LOGIN_AWAIT_MS until the file holds another one
 *	login_end     unlocks
 *
 * Where the file holds other tokens by then, it is left as it is, and the answer for the
 * cell is made from it. A crash leaves the old file or the new one. A new file that was
 * written whole and did not get its name yet is taken at the next start or renewal, unless
 * the file was written after it.
 *
 * These races remain. A program outside does not know the lock: when it renews in the same
 * moment, the service decides, and the loser reads the file again. When it reads the file
 * before a renewal here and writes all of it back afterwards, it brings the used token
 * back; login_begin then puts the tokens of the last renewal of this cell in place again,
 * and login_keep writes over a token that the renewal before it has used up.
 * When the front or the broker is killed between the service and the file, the tokens of
 * this renewal are lost, as they are when the agent itself is killed there.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "broker/refresh.h"
#include "broker/source.h"

#include <stdbool.h>

struct loop;

enum {
	LOGIN_KEPT_MAX = 4096,     /* of one place of `keep`: a number, a list of words */
	LOGIN_LOCK_MS = 15 * 1000, /* until another cell has ended its renewal */
	LOGIN_KEEP_MS = 5 * 1000,  /* until a program outside has written the file */
	LOGIN_AWAIT_MS = 3 * 1000, /* from an answer to a file: a program writes it at once */
	/* The broker ends a renewal sooner. */
	LOGIN_RENEW_MS = 30 * 1000,
};

struct login;

/* The file's tokens came, or WHY not: TOKENS is NULL then. They live for the call. */
typedef void login_tokens(void *context, const struct refresh_tokens *tokens,
			  const struct err *why);
/*
 * ANSWER is made from the file, for the cell in place of that of the service; it is empty
 * when the file holds no other token. WHY, unless NULL: the new tokens did not come in.
 */
typedef void login_answer(void *context, struct str answer, const struct err *why);

/* All is borrowed. Takes up a new file that a crash has left. */
struct login *login_new(const struct refresh *refresh, const struct source *source,
			struct loop *loop);
/* Tokens that came are written; unlocks; nobody is called any more. NULL is fine. */
void login_free(struct login *login);

/* Append the copy for the cell. ENOENT: the login does not come from a file now. */
bool login_copy(const struct login *login, struct buf *out, struct err *err);

/* Read the tokens into TOKENS, which is all zero, without the lock. */
bool login_look(const struct login *login, struct refresh_tokens *tokens);

/*
 * Lock, and read the tokens. Once, maybe before this returns, DONE is called, or FRESH,
 * unlocked again, where this cell has renewed the login a minute ago at most.
 */
void login_begin(struct login *login, login_tokens *done, login_answer *fresh,
		 void *context);
/* After login_begin: write *TAKE_FRESH. DONE is called once, maybe before this returns. */
void login_keep(struct login *login, struct refresh_tokens *take_fresh,
		login_answer *done, void *context);
/* After login_begin: wait for other tokens. DONE is called once. */
void login_await(struct login *login, login_answer *done, void *context);
void login_end(struct login *login);

/*
 * Are tokens at the service, or new ones not in the file yet? For an end without the loop:
 * does what is due.
 */
bool login_go_on(struct login *login);

/*
 * The texts of the file, for login.c and its tests: pure.
 */

/* Append the copy of TEXT, a file of a login. */
bool login_print_copy(const struct refresh *refresh, struct str text, struct buf *out,
		      struct err *err);
/* Append TEXT with FRESH, which came at NOW_MS (since 1970). */
bool login_print_renewed(const struct credential *credential, struct str text,
			 const struct refresh_tokens *fresh, int64_t now_ms,
			 struct buf *out, struct err *err);
/* Append the answer to a renewal that TEXT makes unnecessary. */
bool login_print_answer(const struct refresh *refresh, struct str text, int64_t now_ms,
			struct buf *out, struct err *err);
