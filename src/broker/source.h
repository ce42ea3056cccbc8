/*
 * source: the value of a credential, fetched outside of every cell. It runs in the front,
 * which alone has the person's environment and files. `from` of the credential lists the
 * places; the first that is there gives the value:
 *
 *	env:NAME           the variable, when it is set and not empty
 *	file:PATH          the file without its last line end. PATH is absolute or ~/…
 *	file:PATH#/a/b     the text at that JSON pointer (RFC 6901) of the file
 *	file:PATH#[A]b     the value of the line "b = …" or "b: …" below the line "[A]", as in
 *	                   .pypirc, with or without quotes; one with "${" is not there
 *	file:PATH#=b       the same before all such sections, as in .npmrc
 *	{"command": […]}   what the program prints: one line
 *	keyring:S/U        the same of `secret-tool lookup service S username U`
 *
 * A place that is not there (no variable, no file, no such member, no such program, a
 * keyring without the entry) leads to the next one. A place that is there and wrong ends
 * the search with a sentence: a file that is not the caller's, not regular or open to
 * others (mode 600 or 400 is asked for), a command that fails. So a mistake never makes
 * another key travel than the person meant.
 *
 * Files and programs are found once, in source_new, before anything of the cell runs. A
 * file may not lie in what the cell sees. No folder on the way to a file or to a program
 * may be one that the cell can write. The folder of a file is held; a program must be the
 * same file at each start. So the cell can put nothing in their place.
 *
 * A file is read at each question, so a login that was renewed outside is taken at the
 * next request. The output of a command is kept for keep_s and wiped then.
 *
 * A command is started without a shell, with the folders of PATH that the cell cannot
 * write, HOME, USER, LOGNAME, LANG, the directories of XDG, the session bus, the agents of
 * gpg and ssh and the display, and nothing else of the environment; with no input, and its
 * errors go nowhere. It has
 * SOURCE_COMMAND_S seconds, and it is ended with its process group then. The kernel ends it
 * when this process is killed. One that failed is not started again for SOURCE_RETRY_S, and
 * questions until then get its failure: requests of a cell must not be able to make a person's
 * password program ask again and again.
 *
 * A value is SOURCE_VALUE_MIN to SOURCE_VALUE_MAX bytes of visible ASCII: it stands in a
 * header. No sentence of this module contains a part of a value or of a file. The memory
 * of a value is wiped; copies that a JSON reader makes on its way are not.
 *
 * Nothing here waits: source_ask answers at once where no program is needed, and else by
 * the loop, when the program has ended.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/credentials/credential.h"

#include <stdbool.h>
#include <stddef.h>

struct loop;

enum {
	SOURCE_VALUE_MIN =
		8, /* a shorter text is no key, and scrubbing would find it anywhere */
	SOURCE_VALUE_MAX = 16 << 10, /* a header of servers has at most that */
	SOURCE_TEXT_MAX = 64 << 10,  /* of the output of a command */
	SOURCE_FILE_MAX = 1 << 20,   /* a file of logins holds more than one */
	SOURCE_COMMAND_S = 10,       /* a person may have to touch a device */
	SOURCE_RETRY_S = 5,          /* a person can unlock a keyring meanwhile */
};

/* All is borrowed, and outlives every source. */
struct source_terms {
	struct loop *loop;
	const char *home;               /* absolute */
	const char *const *environment; /* NULL-ended, of the caller */
	/*
	 * The folder or file of this machine, in the cell's view, that holds PATH (real): one
	 * that the cell may write when WRITABLE. NULL: PATH is outside of the view. Without
	 * this function there is no cell.
	 */
	const char *(*shown)(void *context, const char *path, bool writable);
	/* PATH is a file with a key: the view must not show it later; or NULL */
	void (*keep_hidden)(void *context, const char *path);
	void *context;
};

struct source;

/*
 * Called once for each source_ask. VALUE lives for the call only. Its `data` is NULL when
 * there is none, and then WHY says why, for a person.
 */
typedef void source_done(void *context, struct str value, const struct err *why);

/*
 * Which of its places would give CREDENTIAL its value? Appends it to SHOWN as a person may
 * read it ("env:ANTHROPIC_API_KEY", "command: pass"). Reads files, but starts nothing: a
 * command counts when its program is there. False with ENOENT when no place is there;
 * ERR names all of them: "ANTHROPIC_API_KEY is not set and ~/key is not there".
 */
bool source_look(const struct credential *credential, const struct source_terms *terms,
		 struct buf *shown, struct err *err);

/* CREDENTIAL and TERMS are borrowed. Finds files and programs, and asks nothing yet. */
struct source *source_new(const struct credential *credential,
			  const struct source_terms *terms);

/*
 * Fetch the value and call DONE with it, maybe before this returns. Questions that come
 * while a command runs get the answer of that command.
 */
void source_ask(struct source *source, source_done *done, void *context);

/* The file of a login that is in use. Its texts live as long as the source. */
struct source_login {
	int folder;          /* that holds the file; O_PATH, borrowed */
	const char *name;    /* of the file in there */
	const char *shown;   /* its name as the person writes it */
	const char *pointer; /* the place of the token in it */
};

/*
 * Open the file from which SOURCE takes its value now, to be read. -1 with ERR when the
 * value comes from another place, or when the file must not be used: it follows the same
 * rules as at a question. ENOENT: it is not there.
 */
int source_open_login(const struct source *source, struct source_login *login,
		      struct err *err);

/* Ends a command that runs; questions without an answer get none. */
void source_free(struct source *source);
