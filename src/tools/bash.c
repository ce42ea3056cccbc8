/*
 * bash: run a shell text. One wrapper (tools.md): bash reads the text from a descriptor
 * and evals it, and tells its last folder through another; so texts of any length work
 * and `cd` carries over. What it printed becomes an answer in bash_text.c.
 */
#include "tools/bash_text.h"
#include "tools/interactive.h"
#include "tools/shown.h"
#include "tools/spill.h"
#include "tools/tools.h"

#include "base/fd.h"
#include "base/memory.h"
#include "runtime/files.h"
#include "runtime/limit_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASH_TIMEOUT_S   120
#define SHOWN_BYTES_TEXT SHOWN_NUMBER(BASH_SHOWN_BYTES)
/*
 * No caller waits longer for one answer: MCP clients and model loops give up between 5
 * and 10 minutes. What needs more runs in the background.
 */
#define BASH_TIMEOUT_MAX_S 600

enum {
	/*
	 * Ours, above what scripts number themselves (0-9) and where bash keeps its own
	 * (10 and 255, 63 downwards).
	 */
	BASH_TEXT_FD = 200,
	BASH_FOLDER_FD = 230,
};

static const struct tool_param bash_params[] = {
	{"command", PARAM_TEXT, true, "Shell text to run", .aliases = "cmd script code",
	 .min = 1, .max = INT32_MAX},
	/* No default here: it is the policy's. */
	{"timeout_s", PARAM_SECONDS, false,
	 "Seconds until it is ended; " SHOWN_NUMBER(BASH_TIMEOUT_S) " unless told otherwise",
	 .aliases = "timeout"},
	{"workdir", PARAM_FOLDER, false,
	 "Folder to run in; else where the last command's cd ended",
	 .aliases = "cwd working_directory directory"},
	{"description", PARAM_TEXT, false, "What it is for, in a few words",
	 .aliases = "reason"},
	{0},
};

/*
 * What keeps programs from asking, paging, colouring and drawing progress. These beat the
 * cell's own.
 */
static const char *const quiet_environment[] = {
	"NO_COLOR=1",
	"TERM=dumb",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"GH_PAGER=cat",
	"MANPAGER=cat",
	"SYSTEMD_PAGER=",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_EDITOR=true",
	"EDITOR=true",
	"VISUAL=true",
	"DEBIAN_FRONTEND=noninteractive",
	"PIP_PROGRESS_BAR=off",
	"PIP_NO_INPUT=1",
	"TQDM_DISABLE=1",
	"NPM_CONFIG_PROGRESS=false",
	"LC_ALL=C.UTF-8",
	"GLOVEBOX=1",
};
enum { QUIET_COUNT = sizeof(quiet_environment) / sizeof(quiet_environment[0]) };

static bool same_variable(const char *a, const char *b)
{
	size_t size = strcspn(a, "=") + 1;

	return strncmp(a, b, size) == 0;
}

/* The caller frees the list; the strings are borrowed. */
static const char **make_environment(const char *const *cell)
{
	size_t count = 0;
	size_t used = 0;
	const char **list;

	while (cell && cell[count])
		count++;
	list = memory_array(count + QUIET_COUNT + 1, sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		bool ours = false;

		for (size_t j = 0; j < QUIET_COUNT && !ours; j++)
			ours = same_variable(quiet_environment[j], cell[i]);
		if (!ours)
			list[used++] = cell[i];
	}
	memcpy(list + used, quiet_environment, sizeof(quiet_environment));
	return list;
}

static const char *spill_folder(const char *const *environment, struct buf *path)
{
	const char *base = "/tmp";

	for (; environment && *environment; environment++) {
		if (same_variable("TMPDIR=", *environment) && (*environment)[7] == '/')
			base = *environment + 7;
	}
	buf_addf(path, "%s/glovebox", base);
	return path->data;
}

struct shell {
	struct call *call;
	struct tool_result *result;
	struct str command;
	struct file folder; /* where it starts */
	struct buf spills;  /* folder of the spill files */
	struct buf wrapper;
	int text_fd; /* read by the shell */
	int folder_read_fd, folder_write_fd;
	struct program_run run;
	struct limit_watch limits;
	bool folder_was_gone;
};

static void shell_init(struct shell *shell, struct call *call, struct tool_result *result)
{
	memset(shell, 0, sizeof(*shell));
	shell->call = call;
	shell->result = result;
	shell->command = call_str(call, "command");
	shell->text_fd = shell->folder_read_fd = shell->folder_write_fd = -1;
	file_init(&shell->folder);
	buf_init(&shell->spills, PATH_MAX);
	buf_init(&shell->wrapper, 1024);
	program_run_init(&shell->run);
}

static void shell_fini(struct shell *shell)
{
	fd_close(&shell->text_fd);
	fd_close(&shell->folder_read_fd);
	fd_close(&shell->folder_write_fd);
	fd_close(&shell->run.spill_fd);
	file_fini(&shell->folder);
	buf_fini(&shell->spills);
	buf_fini(&shell->wrapper);
	program_run_fini(&shell->run);
}

/* Move *FD to a number of AT or above, out of the way of scripts. */
static bool lift(int *fd, int at)
{
	int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, at);

	if (lifted < 0)
		return false;
	fd_close(fd);
	*fd = lifted;
	return true;
}

static bool open_channels(struct shell *shell, struct err *err)
{
	int ends[2];

	if (!fd_memory_file("command", shell->command, &shell->text_fd, err))
		return false;
	/* Not blocking: a command that fills it must not hang the shell's last step. */
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(err, errno, "No pipe: %s.", strerror(errno));
	shell->folder_read_fd = ends[0];
	shell->folder_write_fd = ends[1];
	if (!lift(&shell->text_fd, BASH_TEXT_FD) ||
	    !lift(&shell->folder_write_fd, BASH_FOLDER_FD))
		return err_set(err, errno, "No free descriptor: %s.", strerror(errno));
	/* All on one line: the text's own line numbers stay true in bash's messages. */
	buf_addf(&shell->wrapper,
		 "IFS= read -r -d '' -u %d GLOVEBOX_TEXT; exec %d<&-; "
		 "trap '{ builtin pwd -P >&%d; } 2>/dev/null' EXIT; "
		 "SECONDS=0; eval \"$GLOVEBOX_TEXT\"",
		 shell->text_fd, shell->text_fd, shell->folder_write_fd);
	return true;
}

/*
 * Where to start: the argument, else where the last command ended, else (when that is
 * gone) the workspace.
 */
static bool find_folder(struct shell *shell, struct err *err)
{
	const char *wanted = call_text(shell->call, "workdir");
	struct files *files = shell->call->files;
	struct stat st;

	if (wanted)
		return files_reach(files, wanted, FILES_FOLDER, &shell->folder, err);
	if (shell->call->folder &&
	    files_reach(files, shell->call->folder, FILES_FOLDER, &shell->folder, err))
		return true;
	shell->folder_was_gone = shell->call->folder != NULL &&
				 strcmp(shell->call->folder, shell->call->workspace) != 0;
	if (files_reach(files, shell->call->workspace, FILES_FOLDER, &shell->folder, err))
		return true;
	/* Only parts of it may be read: it is the empty folder that holds them. */
	if (stat(shell->call->workspace, &st) < 0 || st.st_nlink == 0)
		return false;
	return buf_adds(&shell->folder.path, shell->call->workspace);
}

static bool shell_stopped(void *context)
{
	struct shell *shell = context;

	return call_stopped(shell->call) && shell->call->cancelled;
}

static void shell_output(void *context, int stream, struct str bytes)
{
	struct shell *shell = context;

	call_output(shell->call, stream == 1 ? CALL_STDOUT : CALL_STDERR, bytes);
}

static bool shell_run(struct shell *shell, struct err *err)
{
	const char *const argv[] = {"bash", "--noprofile",       "--norc",
				    "-c",   shell->wrapper.data, NULL};
	auto_free const char **environment = make_environment(shell->call->environment);
	const int more[] = {shell->text_fd, shell->folder_write_fd, -1};
	struct program_run *run = &shell->run;

	run->start.argv = argv;
	run->start.environment = environment;
	run->start.folder = shell->folder.path.data;
	run->start.more_fds = more;
	run->start.filter = shell->call->program_filter;
	run->deadline_ms = shell->call->deadline_ms;
	run->grace_s = shell->call->grace_s;
	run->stop_fd = shell->call->control_fd;
	run->stopped = shell_stopped;
	run->output = shell_output;
	run->context = shell;
	run->spill_fd = spill_open(spill_folder(shell->call->environment, &shell->spills));
	limit_watch_start(&shell->limits, shell->call, run);
	return program_follow(run, err);
}

/*
 * The folder the shell reported last. Its descriptor was open in every program the
 * command started, so this is no more than a claim: it counts only when it is a folder
 * inside the roots.
 */
static void take_folder(struct shell *shell, struct buf *next)
{
	char said[PATH_MAX + 1];
	ssize_t size = read(shell->folder_read_fd, said, sizeof(said) - 1);
	struct file file;
	struct err err;

	if (size < 2 || said[size - 1] != '\n' || said[0] != '/')
		return;
	said[size - 1] = '\0';
	if (strcmp(said, shell->folder.path.data) == 0)
		return;
	file_init(&file);
	if (files_reach(shell->call->files, said, FILES_FOLDER, &file, &err)) {
		call_set_folder(shell->call, shell->result, file.path.data);
		buf_addstr(next, buf_str(&file.path));
	}
	file_fini(&file);
}

static void answer(struct shell *shell)
{
	struct buf next;
	struct bash_answer told = {
		.run = &shell->run,
		.command = shell->command,
		.files = shell->call->files,
		.folder = shell->folder.path.data,
		.folder_was_gone = shell->folder_was_gone,
		.is_last = shell->call->is_last,
		.spill_folder = shell->spills.data,
		.timeout_max_s = BASH_TIMEOUT_MAX_S,
		.description = call_text(shell->call, "description"),
	};

	buf_init(&next, PATH_MAX);
	take_folder(shell, &next);
	if (next.size)
		told.next_folder = next.data;
	bash_tell(&told, shell->result);
	limit_watch_tell(&shell->limits, &shell->run, shell->result);
	buf_fini(&next);
}

static enum result_status run_shell(struct shell *shell)
{
	const char *wanted = call_text(shell->call, "workdir");
	struct tool_result *result = shell->result;
	struct err err = {0};

	if (memchr(shell->command.data, '\0', shell->command.size))
		return tool_fail(result,
				 "The command holds a NUL byte, which no shell takes. Use "
				 "printf '\\0' to make one.");
	if (interactive_refuses(shell->command, &result->text)) {
		result->status = RESULT_FAILED;
		return RESULT_FAILED;
	}
	if (!find_folder(shell, &err))
		return shown_fail(shell->call, result, wanted ? wanted : "The workspace",
				  &err);
	if (!open_channels(shell, &err) || !shell_run(shell, &err))
		return tool_fail(result, "The command did not run. %s", err.text);
	answer(shell);
	return result->status;
}

static enum result_status bash_execute(struct call *call, struct tool_result *result)
{
	struct shell shell;
	enum result_status status;

	shell_init(&shell, call, result);
	status = run_shell(&shell);
	shell_fini(&shell);
	return status;
}

const struct tool bash_tool = {
	.name = "bash",
	.description =
		"Run a shell command. No terminal and no input; the folder carries over "
		"between calls, variables do not. Shows " SHOWN_BYTES_TEXT
		" bytes of output; the rest is kept in a file.",
	.example = "{\"command\": \"make test\", \"timeout_s\": 300}",
	.aliases = "shell run_command execute_command",
	.params = bash_params,
	.effects = EFFECT_RUNS,
	.timeout_s = BASH_TIMEOUT_S,
	.timeout_max_s = BASH_TIMEOUT_MAX_S,
	.execute = bash_execute,
};
