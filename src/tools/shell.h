/*
 * shell: one bash that waits for its text. It may wait for a moment (it was started for
 * this call) or for minutes (it was started ahead, in an idle worker). In both cases it
 * is the same program with the same wrapper, so that no text can tell the two apart.
 *
 * The shell waits for a line on a pipe. Then it reads a memory file: first a line of
 * ours (with the folder and the environment, where they differ from those that the
 * shell was started with), then the text. It closes both descriptors, sets SECONDS to 0
 * and evals the text. An EXIT trap reports the shell's last folder through a descriptor
 * of its own. An earlier line on the pipe may announce the text: the shell then looks
 * for it for a moment without sleeping. When the text is one program, the memory file
 * has the words by which the shell becomes this program, and the folder stays the same.
 *
 * A cold shell, which is started for this call, is the same without the wait. It too
 * becomes the program of a text that is only one program, as `bash -c` does, so that
 * the signal of which the program dies is reported as the command's own.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "process/program.h"
#include "tool/call.h"

#include <stdbool.h>
#include <sys/stat.h>

struct bash_shell {
	struct program_ahead program;
	int text_fd;   /* the memory file */
	int go_fd;     /* a line written here starts the text */
	int folder_fd; /* has the last folder when the shell has ended */
	/* with which it was started; the strings are borrowed */
	const char **environment;
	/* in which it was started; NULL: exactly that of the text */
	const char *folder;
	struct stat folder_was;
};

/* The text that the shell must run, and its folder. */
struct bash_text {
	struct str text;
	const char *folder;
	const struct program_terms *terms;
	/* the call's, without the variables that our list adds */
	const char *const *environment;
	bool stays; /* the shell does not become the text's one program */
};

void bash_shell_init(struct bash_shell *shell);
/* Also ends the shell's program, unless the program was taken. */
void bash_shell_fini(struct bash_shell *shell);

/*
 * Start a shell in FOLDER with the call's environment, for a text that exists already.
 * TERMINAL becomes its standard streams and the terminal of a new session; -1: there is
 * none, and its input is empty.
 */
bool bash_shell_start(struct bash_shell *shell, const struct call *call,
		      const char *folder, int terminal, struct err *err);
/*
 * Start a shell for a later text. False also when the environment has a variable that
 * bash would run or obey before the text comes.
 */
bool bash_shell_start_ahead(struct bash_shell *shell, const struct call *call,
			    struct err *err);
/*
 * Move READY to SHELL when it still waits and can take TEXT's environment. Otherwise
 * READY is ended.
 */
bool bash_shell_take(struct bash_shell *ready, struct bash_shell *shell,
		     const struct bash_text *text);
/* Give the text to the shell. The caller must then follow the shell to its end. */
bool bash_shell_go(struct bash_shell *shell, const struct bash_text *text, struct err *err);
struct program_ahead bash_shell_take_program(struct bash_shell *shell);

/*
 * Is a text one program and nothing else? Then the shell that runs the text can become
 * the program, as `bash -c` does, instead of starting a copy of itself for the program
 * and waiting for it. In doubt the answer is no. The answer changes only how long the
 * text takes and which process dies of a signal, not what runs.
 */

/*
 * Are the words of TEXT those of one existing, executable program, found from FOLDER by
 * the PATH of ENVIRONMENT as bash would find it? *PATH is the program's name in $_ of
 * bash.
 */
bool shell_alone(struct str text, const char *folder, const char *const *environment,
		 struct buf *path);

/* The variables that all tools give to the programs they start. */

/*
 * The variables of CELL (NULL-ended, or NULL), then those that keep programs from asking,
 * paging, colouring and drawing progress, then those of MORE (like CELL). A later
 * variable overrides an earlier one. The caller frees the list; the strings are borrowed.
 */
const char **shell_command_environment(const char *const *cell, const char *const *more);
