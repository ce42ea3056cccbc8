/*
 * carry: a program in a cell of `glovebox start`, with the caller's descriptors 0-2 or terminal.
 * The bytes pass as they do for `glovebox exec` (front/hands/relay.h); this process stands where
 * the program's ends of the pipes are, and talks with the front behind the cell by the wire
 * (peer.h).
 */
#pragma once

#include "base/value.h"
#include "front/verb.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * `glovebox exec --in NAME`: run the words of OPTIONS in the cell. Returns the exit code of
 * `exec`; complaints have been printed.
 */
int cells_carry_exec(const struct options *options, const char *name);

/*
 * The parameters of exec/start for the words of OPTIONS, with --timeout and --tty, and with
 * OWN_VARIABLES those of --env. NULL: a complaint was printed. The caller owns the value.
 */
struct value *cells_carry_wish(const struct options *options, bool own_variables);

struct cells_attach {
	const char *name; /* of the cell */
	uint64_t job; /* 0: the newest one with a terminal that runs, else a new shell */
	bool looks;   /* never types */
	bool takes;   /* types though another one does, who looks from then on */
};

/*
 * Show the terminal of a job until the person lets go or it ends. Returns an exit code: that of
 * the job when it has ended.
 */
int cells_carry_attach(const struct cells_attach *attach);

enum { CELLS_REPLAY = 1 << 20 }; /* bytes of a job's output that are looked at */

/*
 * Append TEXT to OUT as a terminal may show it again: colours stay, and everything else that a
 * terminal obeys or answers is left out. REST keeps a sequence or a character that is not whole yet,
 * for the next piece; it has room for TEXT and CELLS_REST bytes, and begins empty. NULL: no piece
 * follows.
 */
enum { CELLS_REST = 1 << 10 };
void cells_carry_plain(struct buf *rest, struct str text, struct buf *out);
