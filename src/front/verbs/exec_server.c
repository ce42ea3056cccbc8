/*
 * glovebox exec-server: the cell as the exec server of an agent that stays outside. The
 * protocol is front/exec_server.h.
 */

#include "front/exec_server.h"
#include "base/err.h"
#include "base/value.h"
#include "front/interrupt.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "process/loop.h"
#include "session/session.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READY_WORKERS = 2 };

static int serve(const void *context, struct setup *setup, const struct options *options,
		 const struct exec_time *time)
{
	const struct policy_words words = {setup->policy_file, setup->said, setup->wrapped};
	struct session_options wanted = {.ready_workers = READY_WORKERS, .cancel_fd = -1};
	struct exec_server_options server = {
		.words = &words,
		.time = time,
		.input = STDIN_FILENO,
		.output = STDOUT_FILENO,
	};
	struct session *session = NULL;
	struct err err = {0};
	int code;

	(void)context;
	(void)options;
	if (!interrupt_open(&setup->interrupt, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	code = setup_session(setup, &wanted, &session);
	if (code != CODE_DONE)
		return code == CODE_USAGE || code == CODE_DENIED ? code : CODE_EXEC_NO_CELL;
	server.session = session;
	server.stop_fd = interrupt_fd(setup->interrupt);
	if (isatty(STDIN_FILENO))
		(void)fputs("glovebox: speaking the exec-server protocol on standard input "
			    "and output; see: glovebox exec-server --help\n",
			    stderr);
	if (!interrupt_start(setup->interrupt, &err) || !exec_server_run(&server, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	session_close(session);
	if (code == CODE_DONE && interrupt_signal(setup->interrupt) != 0)
		code = CODE_SIGNAL + interrupt_signal(setup->interrupt);
	return code;
}

static int exec_server_verb(const struct options *options, FILE *out)
{
	static const char *const refused[] = {"tty", "clipboard"};
	auto_value struct value *entry = value_new_object();
	const char *listen = options_text(options, "listen");
	const struct exec_use use = {serve, NULL};
	struct setup_flags flags;
	struct setup setup = {0};
	int code;

	if (listen != NULL && strcmp(listen, "stdio") != 0)
		return verb_complain(CODE_USAGE,
				     "exec-server: --listen %s: only stdio is offered, since "
				     "everybody on this machine could reach another place",
				     listen);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (options_given(options, refused[i]))
			return verb_complain(CODE_USAGE,
					     "exec-server: --%s is not for a server: the client "
					     "says which process has a terminal",
					     refused[i]);
	}
	if (options_given(options, "ssh"))
		return verb_complain(CODE_USAGE,
				     "exec-server: --ssh is not for a server: it has no terminal "
				     "to ask you on");
	code = exec_take_flags("exec-server", options, entry, &flags);
	if (code != CODE_DONE)
		return code;
	code = exec_in_cell(&setup, options, &flags, NULL, out, &use);
	setup_fini(&setup);
	return code;
}

static const struct option_row exec_server_options[] = {
	{"listen", 0, OPTION_TEXT, "PLACE",
	 "where the client is: stdio (standard input and output; the default)"},
	EXEC_OPTION_ROWS,
	EXEC_ROW_JSON,
	EXEC_POLICY_ROWS,
	OPTION_ROW_HELP,
	{0},
};

static const char exec_server_help[] =
	"Serve an agent that stays outside, as the exec server of Codex does: its commands,\n"
	"patches, pictures and file calls happen in one cell, made from the same options as\n"
	"those of `exec`. The agent keeps its login and its model; the cell has neither.\n\n"
	"The client speaks first, one JSON object a line. Commands see what `exec` would show\n"
	"them, and file calls the workspace, the folders of the policy and /tmp. What they\n"
	"change can be undone (glovebox undo). HTTP requests and other configuration are\n"
	"refused. --timeout ends each process after that time.\n\n"
	"Ends at the end of its input, or by TERM, INT, HUP; nothing that the client started\n"
	"stays behind. `glovebox wrap codex` starts Codex with this server.";

const struct verb verb_exec_server = {
	.name = "exec-server",
	.summary = "be the hands of an agent outside: commands and files in the cell",
	.arguments = "",
	.help = exec_server_help,
	.example =
		"  glovebox exec-server --listen stdio -C ~/project\n"
		"  glovebox exec-server --explain --allow-host pypi.org\n"
		"  # environments.toml of Codex: program = \"glovebox\", args = [\"exec-server\"]",
	.options = exec_server_options,
	.run = exec_server_verb,
};
