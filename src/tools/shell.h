/*
 * shell: one bash that waits for its text. It may wait for a moment (it was started for
 * this call) or for minutes (it was started ahead, in an idle worker): either way it is the
 * same program with the same wrapper, so that no text can tell the two apart.
 *
 * It waits for a line on a pipe, reads from a memory file first a line of ours (folder,
 * environment, where they differ from those it was started with) and then the text, closes
 * both, sets SECONDS to 0 and evals the text. An EXIT trap tells its last folder through a
 * descriptor of its own. A line before that one says that it will come soon: the shell then
 * looks for it without sleeping, a moment. A text that is one program is told with the words by
 * which the shell becomes it; its folder is then what it was.
 *
 * The cold shell is the prepared one without the wait. It becomes the program of a
 * text that is nothing but one, as `bash -c` does: a program that dies of a signal
 * then died of it.
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
	int text_fd;              /* the memory file */
	int go_fd;                /* write a line end: begin */
	int folder_fd;            /* read: the last folder, when it has ended */
	const char **environment; /* it was started with; the strings are borrowed */
	const char *folder;       /* likewise; NULL: exactly that of the text */
	struct stat folder_was;
};

/* The text that the shell is to run, and its folder. */
struct bash_text {
	struct str text;
	const char *folder;
	const char *const *environment; /* the call's, without what bash's own list adds */
	bool stays; /* the shell: it does not become the text's one program (shell_alone.h) */
};

void bash_shell_init(struct bash_shell *shell);
/* Also ends the program, unless it was taken. */
void bash_shell_fini(struct bash_shell *shell);

/*
 * Start one in FOLDER with the call's environment, for a text that is there already. TERMINAL
 * becomes its 0, 1 and 2, and that of a session of its own; -1: none, its input is empty.
 */
bool bash_shell_start(struct bash_shell *shell, const struct call *call,
		      const char *folder, int terminal, struct err *err);
/*
 * Start one for a text to come. False also when the environment has something that bash
 * would run or obey before the text is there.
 */
bool bash_shell_start_ahead(struct bash_shell *shell, const struct call *call,
			    struct err *err);
/* Move READY to SHELL if it still waits and can take TEXT's environment; else it is ended. */
bool bash_shell_take(struct bash_shell *ready, struct bash_shell *shell,
		     const struct bash_text *text);
/* A text comes probably. */
void bash_shell_rouse(const struct bash_shell *shell);
/* Give it the text. It then has to be followed. */
bool bash_shell_go(struct bash_shell *shell, const struct bash_text *text, struct err *err);
struct program_ahead bash_shell_take_program(struct bash_shell *shell);

/*
 * Is a text one program and nothing else? Then the shell that runs it can become it, as
 * `bash -c` does, instead of starting a copy of itself that does and waiting for that.
 * What is not sure is not alone: the answer changes how long it takes and who dies of a
 * signal, not what is run.
 */

/*
 * The words of TEXT are those of one program that is there and can be executed, found from FOLDER
 * by the PATH of ENVIRONMENT as bash would. *PATH is what bash would call it in $_.
 */
bool shell_alone(struct str text, const char *folder, const char *const *environment,
		 struct buf *path);

/* What the tools that start programs share: their variables. */

/*
 * The variables of CELL (NULL-ended, or NULL) with those that keep programs from asking,
 * paging, colouring and drawing progress, and those of MORE (likewise): each beats what is
 * named before it. The caller frees the list; the strings are borrowed.
 */
const char **shell_command_environment(const char *const *cell, const char *const *more);
