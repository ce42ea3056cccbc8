/*
 * exec: the parts of `glovebox exec` that `glovebox wrap` and `glovebox exec-server` share,
 * so that a wrapped agent and the programs of a client take the same way as every other
 * program.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "front/setup.h"
#include "front/verb.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdio.h>

/* clang-format off */
#define EXEC_OPTION_ROWS \
	{"timeout", 't', OPTION_SECONDS, "S", \
	 "end the program after S seconds, 0: never (default: the policy's wall_s, if it says one)"}, \
	{"write", 'w', OPTION_TEXTS, "DIR", \
	 "DIR may be written, instead of what the policy says (may be repeated)"}, \
	{"read", 'r', OPTION_TEXTS, "DIR", "show DIR as well, read-only (may be repeated)"}, \
	{"env", 'e', OPTION_TEXTS, "NAME[=V]", \
	 "pass the variable NAME on, or set it to V (may be repeated)"}, \
	{"credential", 0, OPTION_TEXTS, "NAME", \
	 "use the key NAME (github, anthropic, …), which stays outside (may be repeated)"}, \
	{"ssh", 0, OPTION_TEXTS, "HOST", \
	 "let it sign in to HOST by your ssh agent; you are asked (may be repeated)"}, \
	{"no-credential", 0, OPTION_FLAG, NULL, "use no key, whatever the policy says"}, \
	{"memory", 'm', OPTION_TEXT, "SIZE", \
	 "memory of all its processes together: 512M, 2G"}, \
	{"pids", 'p', OPTION_COUNT, "N", \
	 "processes and threads at once (where no control group can be made: and up to 300 more)"}, \
	{"cpus", 0, OPTION_AMOUNT, "N", \
	 "processors that all of the cell may use, fractions allowed (needs a control group)"}, \
	{"io-write", 0, OPTION_TEXT, "RATE", \
	 "bytes a second that it may write to each disk: 10M (needs one of version 2)"}, \
	{"scope", 0, OPTION_TEXT, "WHEN", \
	 "auto or never: begin again in a scope of systemd when --cpus needs one (default: auto)"}, \
	{"tty", 0, OPTION_FLAG, NULL, "give it a terminal: vim, less, a shell to work in"}, \
	{"clipboard", 0, OPTION_FLAG, NULL, \
	 "let it set the clipboard of your terminal (OSC 52); reading it stays closed"}, \
	{"explain", 0, OPTION_FLAG, NULL, \
	 "print what the cell would show, and why; run nothing"}, \
	OPTION_ROW_WORKSPACE, \
	OPTION_ROW_CONFIG, \
	OPTION_ROW_ALLOW_HOST, \
	{"host-loopback", 0, OPTION_TEXTS, "PORT", \
	 "let it reach PORT of this machine, at the same port in the cell (may be repeated)"}, \
	{"publish", 0, OPTION_TEXTS, "PORT", \
	 "let this machine reach PORT of the cell; HOST:PORT: at port HOST, 0: any free one; " \
	 "own:PORT: at an address of the project (may be repeated)"}

/* Of the verbs that write no accounts. */
#define EXEC_ROW_JSON \
	{"json", 0, OPTION_FLAG, NULL, "with --explain: as one JSON object"}

/* Of the verbs in which a policy or an agent says what may be done. */
#define EXEC_POLICY_ROWS \
	{"policy", 'P', OPTION_TEXT, "FILE", \
	 "the policy (JSON) that holds instead of an agent's"}, \
	OPTION_ROW_AGENT, \
	OPTION_ROW_LEVEL
/* clang-format on */

/*
 * Turn those of OPTIONS that say something about the policy into keys of ENTRY (a policy).
 * VERB begins complaints in ERR.
 */
bool exec_read_flags(const char *verb, const struct options *options, struct value *entry,
		     struct err *err);

/*
 * Fill FLAGS and its ENTRY from all OPTIONS of VERB, which has both kinds of rows, and tell
 * of variables that are not set, or that go in as they are. Returns an exit code; complaints
 * have been printed.
 */
int exec_take_flags(const char *verb, const struct options *options, struct value *entry,
		    struct setup_flags *flags);

/* The time limit of a program (0: none), and where it comes from. */
struct exec_time {
	double seconds;
	const char *why;
};

/* Another use of a cell than one program. */
struct exec_use {
	/* Opens the session of SETUP, uses it, and returns the exit code. */
	int (*carry_out)(const void *context, struct setup *setup,
			 const struct options *options, const struct exec_time *time);
	const void *context;
};

/*
 * Make SETUP of OPTIONS and FLAGS, and use its cell by USE (NULL: run the words of
 * OPTIONS as a program); with flags.explain only print the cell on OUT. MORE: members for
 * the JSON form of that, or NULL. Returns the exit code of `exec`; complaints have been
 * printed. The caller calls setup_fini.
 */
int exec_in_cell(struct setup *setup, const struct options *options,
		 const struct setup_flags *flags, const struct value *more, FILE *out,
		 const struct exec_use *use);

/*
 * The arguments of the tool `exec` for the program and the arguments WORDS. JSON holds only
 * UTF-8, so where a word has other bytes all become hexadecimal digits.
 */
struct value *exec_arguments(const char *const *words, size_t count);

/*
 * Append a line to OUT for each refusal and limit that RESULT, of a call of SESSION, has
 * met: the program could only say that it failed. WORDS as in policy_words_add. With TIME
 * (or NULL) also why the program did not end by itself.
 */
void exec_add_told(const struct session *session, const struct tool_result *result,
		   const struct policy_words *words, const struct exec_time *time,
		   struct buf *out);
/* The same, without a time, on standard error. */
void exec_print_told(const struct session *session, const struct tool_result *result,
		     const struct policy_words *words);

/* The exit code of the program of RESULT. */
int exec_code(const struct tool_result *result);

/*
 * --scope of OPTIONS: may this program begin again in a scope of systemd, whose control group
 * is its own to divide?
 */
bool exec_scope(const struct options *options, bool *begins_again, struct err *err);
/*
 * Begin this program again, with the same words, in such a scope. Returns where there is no
 * systemd, and in the program that was begun again.
 */
void exec_begin_in_scope(void);
