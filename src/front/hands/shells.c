/* shells: the folder of a run, the calls of the shims, and the end of the agent. */

#include "front/hands/shells.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "front/hands/hands.h"
#include "front/hands/shim.h"
#include "front/interrupt.h"
#include "front/wrap/profile.h"
#include "front/wrap/settings.h"
#include "process/frame.h"
#include "process/loop.h"
#include "session/session.h"
#include "tools/tools.h"
#include "tui/lent/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	READY_WORKERS = 2,
	STREAMS = 3,
	ASKED_MS = 10000, /* a shim sends its call at once */
	ANSWER_MS = 1000, /* an answer fits into the buffer of a socket that is still empty */
	TOLD_MAX = 64 << 10,
	BACKLOG = 128,
	PATH_VARIABLE_MAX = 1 << 20,
	URI_MAX = 3 * PATH_MAX + 8,
};

/* The life of a call, in its order. */
enum shell_state {
	SHELL_ASKED,   /* the shim is connected, and its call has not come yet */
	SHELL_RUNS,    /* its command is queued or runs */
	SHELL_RETURNS, /* the command has ended, and a file of `returns` is being read */
	SHELL_OVER,    /* it was answered, or nobody waits for the answer */
};

struct server;

/* A shim and its call. */
struct shell {
	struct shell *next;
	struct server *server;
	enum shell_state state;
	struct watch front; /* the socket */
	struct frame_reader reader;
	int64_t until_ms; /* in SHELL_ASKED */
	bool gone;        /* the shim has closed its socket, or has broken the protocol */
	bool cancelled;   /* the command has been told to end */
	int given[STREAMS]; /* closed once the cell has them */
	struct tool tool;
	struct value *carried;
	struct running *running;
	char *returns;        /* the path of the file; NULL: none */
	struct value *answer; /* once the command has ended */
};

struct server {
	const struct shells *shells;
	const struct policy_words *words;
	const struct exec_time *time;
	struct session *session;
	struct loop *loop;
	struct buf folder;
	int held; /* the folder, locked */
	struct watch listening, ended, stopping;
	struct shell *first;
	size_t count;
	struct interrupt *interrupt;
	pid_t agent;
	struct terminal *terminal; /* which the agent has */
	bool over;                 /* the agent has ended */
};

/* The folder of a run. */

static bool link_program(const struct server *server, struct err *err)
{
	char program[PATH_MAX];
	const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[size > 0 ? size : 0] = '\0';
	if (size < 0 || symlinkat(program, server->held, SHIM_NAME) < 0 ||
	    (server->shells->by_path && symlinkat(program, server->held, SHIM_PATH_NAME) < 0))
		return err_set(err, errno, "a link to this program: %s", strerror(errno));
	return true;
}

/* Listen in the folder, whose path may be longer than an address. */
static bool listen_there(struct server *server, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path),
		       "/proc/self/fd/%d/" SHIM_SOCKET, server->held);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_set(err, errno, "%s/" SHIM_SOCKET ": %s", server->folder.data,
			       strerror(errno));
	server->listening.fd = fd_take(&fd);
	return true;
}

static void remove_left(void *context, const char *path, int at)
{
	(void)context;
	(void)at;
	fd_folder_remove(path);
}

static bool open_folder(struct server *server, struct err *err)
{
	return hands_folder_open("wrap/shells", "run", remove_left, NULL, &server->folder,
				 &server->held, err) &&
	       link_program(server, err) && listen_there(server, err);
}

/* The variables of a command. */

/* The cell has its own ones, or a shell makes them. */
static const char not_passed[] =
	"PATH SHELL TMPDIR TMP TEMP PWD OLDPWD SHLVL _ BASH_ENV ENV";

static bool has_name(const struct policy_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], name) == 0)
			return true;
	return false;
}

/* Was ENTRY there before the agent was started? */
static bool is_persons(const char *entry)
{
	char **at = environ;

	while (at != NULL && *at != NULL && strcmp(*at, entry) != 0)
		at++;
	return at != NULL && *at != NULL;
}

static bool is_passed(const struct shells *shells, const char *entry)
{
	const struct str name = {entry, strcspn(entry, "=")};
	auto_free char *text = memory_copy_str(name);

	return entry[name.size] == '=' && policy_check_variable(entry, NULL) &&
	       !str_among(not_passed, name) && !has_name(shells->variables, text) &&
	       !has_name(shells->keys, text) && !wrap_settings_are_secret(text) &&
	       !is_persons(entry);
}

static struct value *variables_of(const struct shells *shells, const struct value *env)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < value_count(env); i++) {
		const char *entry = value_text(value_item(env, i));

		if (entry != NULL && is_passed(shells, entry))
			value_append(list, value_ref(value_item(env, i)));
	}
	return list;
}

/* Files that a command writes for the agent outside. */

/*
 * The size of the path at TEXT that fits PATTERN, whose wildcards are in its last name; 0:
 * there is none.
 */
static size_t fits(const char *text, const char *pattern)
{
	const size_t folder = (size_t)(path_base_name(pattern) - pattern);
	char name[NAME_MAX + 1];
	size_t size = 0;

	for (const char *at = text + folder;
	     size < NAME_MAX && strchr("/ \t\n\"'`;|&()<>$\\", at[size]) == NULL; size++)
		name[size] = at[size];
	name[size] = '\0';
	return size > 0 && fnmatch(pattern + folder, name, FNM_PERIOD) == 0 ? folder + size
									    : 0;
}

/*
 * The last path in the words ARGV that fits one of PATTERNS; NULL: none. An agent puts it
 * behind the command of its model.
 */
static char *find_last(const char *const *patterns, const struct value *argv)
{
	char *found = NULL;

	for (size_t i = 0; i < value_count(argv); i++) {
		const char *text = value_text(value_item(argv, i));

		for (const char *const *pattern = patterns; *pattern != NULL; pattern++) {
			const size_t folder = (size_t)(path_base_name(*pattern) - *pattern);
			auto_free char *beginning =
				memory_copy_str((struct str){*pattern, folder});

			for (const char *at = strstr(text, beginning); at != NULL;
			     at = strstr(at + 1, beginning)) {
				const size_t size = fits(at, *pattern);

				if (size == 0)
					continue;
				free(found);
				found = memory_copy_str((struct str){at, size});
			}
		}
	}
	return found;
}

/* Does PATH, or a folder above it, fit one of PATTERNS? */
static bool lies_in(const char *const *patterns, const char *path)
{
	while (*patterns != NULL &&
	       fnmatch(*patterns, path, FNM_PATHNAME | FNM_LEADING_DIR) != 0)
		patterns++;
	return *patterns != NULL;
}

/* The agent's own words have written such files: RESULT does not tell of them. */
static void forget_own(const struct shells *shells, const struct tool_result *result)
{
	static const char key[] = "cell_only";
	const struct value *told = value_member(result->details, key);
	struct value *list;

	if (told == NULL)
		return;
	list = value_new_array();
	for (size_t i = 0; i < value_count(told); i++) {
		const char *path = value_text(value_item(told, i));

		if (!lies_in(shells->returns, path) && !lies_in(shells->folders, path))
			value_append(list, value_new_text(path));
	}
	value_set(result->details, key, list);
	if (value_count(list) == 0)
		value_remove(result->details, key);
}

/* Does one of PATHS hold PATH? */
static bool holds(const struct policy_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++)
		if (paths->items[i].path != NULL && path_within(path, paths->items[i].path))
			return true;
	return false;
}

/* Would git, started in FOLDER, take it for a repository or a working tree? */
static bool is_repository(const char *folder)
{
	char path[PATH_MAX + sizeof("/objects")];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/.git", folder);
	if (lstat(path, &st) == 0)
		return true;
	(void)snprintf(path, sizeof(path), "%s/HEAD", folder);
	if (lstat(path, &st) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/objects", folder);
	return lstat(path, &st) == 0;
}

/*
 * Does FOLDER lie in a repository within TOP? A command that still runs may keep its settings
 * as it likes, and an agent outside runs git in its folder by itself.
 */
static bool is_in_repository(const char *folder, const char *top)
{
	auto_free char *at = memory_copy(folder);

	while (path_within(at, top) && strcmp(at, top) != 0) {
		if (is_repository(at))
			return true;
		*strrchr(at, '/') = '\0';
	}
	return false;
}

/*
 * Is TEXT, which a command has written, the path of a folder that is the same one in the
 * cell and outside? A folder that is reached by a link is another one outside.
 */
static bool is_shown_folder(const struct session *session, const char *text)
{
	const struct policy *policy = session_policy(session);
	auto_free char *real = NULL;
	struct stat st;

	if (text[0] != '/' || (!path_within(text, session_workspace(session)) &&
			       !holds(&policy->read, text) && !holds(&policy->write, text)))
		return false;
	real = realpath(text, NULL);
	return real != NULL && strcmp(real, text) == 0 &&
	       !holds(&policy->blocked, text) && stat(real, &st) == 0 &&
	       S_ISDIR(st.st_mode) && !is_in_repository(real, session_workspace(session));
}

/* Write TEXT to the file PATH outside, which is the person's own, or new. */
static void write_outside(const char *path, struct str text)
{
	auto_free char *above =
		memory_copy_str((struct str){path, (size_t)(path_base_name(path) - path)});
	auto_close int folder = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd =
		openat(folder, path_base_name(path),
		       O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && st.st_nlink == 1 && ftruncate(fd, 0) == 0)
		(void)fd_write_all(fd, text.data, text.size, NULL);
}

/* Begin to read the file of SHELL in the cell. */
static void read_inside(struct shell *shell)
{
	auto_value struct value *arguments = value_new_object();
	const struct request request = {.tool = fs_read_tool.name,
					.arguments = arguments,
					.by_front = true};
	struct buf uri;

	buf_init(&uri, URI_MAX);
	(void)path_add_uri(shell->returns, &uri);
	value_set_text(arguments, "what", "content");
	value_set_str(arguments, "uri", buf_str(&uri));
	value_set_integer(arguments, "size", SHELLS_FILE);
	buf_fini(&uri);
	running_free(shell->running);
	shell->running = session_start(shell->server->session, &request, NULL, NULL);
}

/* The file of SHELL was read: carry it out, when it says what it may say. */
static void carry_out(const struct shell *shell)
{
	const struct tool_result *result = running_result(shell->running);
	struct buf text;

	buf_init(&text, SHELLS_FILE);
	if (result->status == RESULT_DONE &&
	    !value_is_true(value_member(result->details, "isSymlink")) &&
	    value_integer(value_member(result->details, "size")) <= SHELLS_FILE &&
	    buf_base64_read(buf_str(&result->text), &text)) {
		const size_t size = strcspn(text.data, "\n");
		auto_free char *line = memory_copy_str((struct str){text.data, size});

		if (size + 1 >= text.size && strlen(text.data) == text.size &&
		    is_shown_folder(shell->server->session, line))
			write_outside(shell->returns, buf_str(&text));
	}
	buf_fini(&text);
}

/* The calls of the shims. */

static void close_given(struct shell *shell)
{
	for (size_t i = 0; i < STREAMS; i++)
		fd_close(&shell->given[i]);
}

static void shell_free(struct shell *shell)
{
	loop_remove(&shell->front);
	fd_close(&shell->front.fd);
	frame_reader_fini(&shell->reader);
	close_given(shell);
	running_free(shell->running);
	value_free(shell->carried);
	value_free(shell->answer);
	free(shell->returns);
	free(shell);
}

static void cancel(struct shell *shell)
{
	if (!shell->cancelled && shell->running != NULL && !running_is_done(shell->running))
		running_cancel(shell->running);
	shell->cancelled = true;
}

static void front_ready(struct watch *watch, short events)
{
	struct shell *shell = watch->context;

	(void)events;
	if (frame_fill(&shell->reader, watch->fd, NULL) && !shell->reader.ended &&
	    shell->reader.bytes.size <= SHIM_CALL_MAX + FRAME_HEADER)
		return;
	shell->gone = true;
	loop_remove(watch);
}

/* Send FRAME to the shim, which waits for it. */
static void answer(struct shell *shell, enum frame_kind kind, struct str payload)
{
	if (!shell->gone)
		(void)frame_send(shell->front.fd, kind, payload, NULL, 0,
				 clock_now_ms() + ANSWER_MS, NULL);
	shell->state = SHELL_OVER;
}

static void refuse(struct shell *shell, const char *sentence)
{
	answer(shell, FRAME_REFUSED, str_of(sentence));
}

static bool is_argv(const struct value *argv)
{
	for (size_t i = 0; i < value_count(argv); i++)
		if (value_text(value_item(argv, i)) == NULL)
			return false;
	return value_kind(argv) == VALUE_ARRAY && value_count(argv) > 0;
}

/* Words for the step: the first one behind the options, as in `bash -c -l TEXT`. */
static const char *title_of(const struct value *argv)
{
	size_t i = 1;

	while (i < value_count(argv) && value_text(value_item(argv, i))[0] == '-')
		i++;
	return value_text(value_item(argv, i < value_count(argv) ? i : 0));
}

/* Change ARGUMENTS so that a folder that the agent's words write to is there. */
static void make_folder_first(const struct shells *shells, struct value *arguments)
{
	const struct value *argv = value_member(arguments, "argv");
	auto_free char *folder = find_last(shells->folders, argv);
	struct value *list;

	if (folder == NULL)
		return;
	list = value_new_array();
	value_append(list, value_new_text(SHIM_PROGRAM));
	value_append(list, value_new_text("-c"));
	value_append(list, value_new_text("mkdir -p -- \"$0\"; exec \"$@\""));
	value_append(list, value_new_text(folder));
	for (size_t i = 0; i < value_count(argv); i++)
		value_append(list, value_copy(value_item(argv, i)));
	value_set(arguments, "argv", list);
}

/* Start the command of CALL. */
static void start_call(struct shell *shell, const struct value *call)
{
	struct server *server = shell->server;
	const struct value *arguments = value_member(call, "arguments");
	const struct value *argv = value_member(arguments, "argv");
	const char *folder = value_text(value_member(call, "folder"));
	struct request request = {
		.tool = exec_tool.name,
		.made = &shell->tool,
		.fd_count = STREAMS,
		.by_front = true,
		.timeout_s = server->time->seconds > 0 ? server->time->seconds : -1,
	};

	if (!is_argv(argv) || folder == NULL || folder[0] != '/') {
		refuse(shell, "a call has arguments and a folder");
		return;
	}
	for (size_t i = 0; i < STREAMS; i++) {
		/* Another descriptor would give the command more than its bytes. */
		if (shell->given[i] < 0 || !fd_is_pipe(shell->given[i])) {
			refuse(shell, "a call has three pipes");
			return;
		}
	}
	auto_value struct value *own = value_copy(arguments);
	value_set_text(own, "title", title_of(argv));
	shell->carried = value_new_object();
	value_set_text(shell->carried, "folder", folder);
	value_set(shell->carried, "env",
		  variables_of(server->shells, value_member(call, "env")));
	shell->tool = exec_tool;
	shell->tool.carrier = exec_tool.name;
	shell->tool.carried = shell->carried;
	shell->tool.is_step = true;
	shell->returns = find_last(server->shells->returns, argv);
	make_folder_first(server->shells, own);
	request.arguments = own;
	memcpy(request.fds, shell->given, sizeof(shell->given));
	shell->running = session_start(server->session, &request, NULL, NULL);
	shell->state = SHELL_RUNS;
}

/* Take the frames that have come from the shim. */
static void take_frames(struct shell *shell)
{
	struct frame frame;

	while (!shell->gone && shell->state != SHELL_OVER &&
	       frame_next(&shell->reader, &frame)) {
		auto_value struct value *call = NULL;

		for (size_t i = 0; i < frame.fd_count; i++) {
			if (i < STREAMS && shell->state == SHELL_ASKED)
				shell->given[i] = fd_take(&frame.fds[i]);
			fd_close(&frame.fds[i]);
		}
		if (frame.kind == FRAME_CALL && shell->state == SHELL_ASKED &&
		    value_parse(frame.payload, 0, &call, NULL))
			start_call(shell, call);
		else if (frame.kind == FRAME_CANCEL && shell->state != SHELL_ASKED)
			cancel(shell);
		else
			shell->gone = true;
	}
}

/* The command of SHELL has ended. */
static void end_call(struct shell *shell)
{
	const struct server *server = shell->server;
	const struct tool_result *result = running_result(shell->running);
	struct buf told;

	forget_own(server->shells, result);
	buf_init(&told, TOLD_MAX);
	exec_add_told(server->session, result, server->words, server->time, &told);
	shell->answer = value_new_object();
	value_set_integer(shell->answer, "code", exec_code(result));
	value_set_str(shell->answer, "told", buf_str(&told));
	buf_fini(&told);
	if (result->status != RESULT_DONE || shell->returns == NULL || shell->gone)
		return;
	shell->state = SHELL_RETURNS;
	read_inside(shell);
}

static void send_answer(struct shell *shell)
{
	struct buf text;

	buf_init(&text, SHIM_CALL_MAX);
	(void)value_print(shell->answer, 0, &text);
	answer(shell, FRAME_RESULT, buf_str(&text));
	buf_fini(&text);
}

/* Go on with SHELL after a turn of the loop. */
static void settle(struct shell *shell)
{
	take_frames(shell);
	if (shell->state == SHELL_ASKED &&
	    (shell->gone || clock_now_ms() >= shell->until_ms))
		shell->state = SHELL_OVER;
	if (shell->state == SHELL_OVER || shell->state == SHELL_ASKED)
		return;
	if (running_is_sent(shell->running) || running_is_done(shell->running))
		close_given(shell);
	if (shell->gone)
		cancel(shell);
	if (!running_is_done(shell->running))
		return;
	if (shell->state == SHELL_RUNS)
		end_call(shell);
	else
		carry_out(shell);
	if (shell->state == SHELL_RUNS || running_is_done(shell->running))
		send_answer(shell);
}

static void settle_all(struct server *server)
{
	struct shell **at = &server->first;

	while (*at != NULL) {
		struct shell *shell = *at;

		settle(shell);
		if (shell->state == SHELL_OVER) {
			*at = shell->next;
			shell_free(shell);
			server->count--;
		} else {
			at = &shell->next;
		}
	}
	if (server->count < SHELLS_MOST)
		loop_add(server->loop, &server->listening);
	else
		loop_remove(&server->listening);
}

static void listening_ready(struct watch *watch, short events)
{
	struct server *server = watch->context;
	auto_close int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	struct shell *shell;

	(void)events;
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    peer.uid != geteuid())
		return;
	shell = memory_alloc(sizeof(*shell));
	shell->server = server;
	shell->until_ms = clock_now_ms() + ASKED_MS;
	shell->given[0] = shell->given[1] = shell->given[2] = -1;
	frame_reader_init(&shell->reader);
	shell->front = (struct watch){.fd = fd_take(&fd),
				      .events = POLLIN,
				      .ready = front_ready,
				      .context = shell};
	shell->next = server->first;
	server->first = shell;
	server->count++;
	loop_add(server->loop, &shell->front);
}

/* When the next shim has taken too long to send its call. */
static int64_t next_ms(const struct server *server)
{
	int64_t next = CLOCK_NEVER;

	for (const struct shell *at = server->first; at != NULL; at = at->next)
		if (at->state == SHELL_ASKED && at->until_ms < next)
			next = at->until_ms;
	return next;
}

/* The agent. */

static void ended_ready(struct watch *watch, short events)
{
	struct server *server = watch->context;

	(void)events;
	server->over = true;
}

static void stopping_ready(struct watch *watch, short events)
{
	const struct server *server = watch->context;
	const int number = interrupt_signal(server->interrupt);

	(void)events;
	/* The terminal has sent SIGINT to the agent as well. */
	if (number == SIGINT) {
		interrupt_settle(server->interrupt);
		return;
	}
	(void)kill(server->agent, number);
	loop_remove(watch);
}

/* "NAME=VALUE" for everything that leads the agent to its shell. */
static struct value *leading_variables(const struct server *server)
{
	const struct shells *shells = server->shells;
	const char *path = getenv("PATH");
	struct value *list = value_new_array();
	struct buf entry;

	buf_init(&entry, PATH_VARIABLE_MAX);
	for (size_t i = 0; i < shells->variables->count; i++) {
		buf_clear(&entry);
		(void)buf_addf(&entry, "%s=%s/" SHIM_NAME, shells->variables->items[i],
			       server->folder.data);
		value_append(list, value_new_text(entry.data));
	}
	for (size_t i = 0; i < shells->temporary->count; i++) {
		buf_clear(&entry);
		(void)buf_addf(&entry, "%s=" WRAP_TEMPORARY, shells->temporary->items[i]);
		value_append(list, value_new_text(entry.data));
	}
	buf_clear(&entry);
	(void)buf_addf(&entry, "PATH=%s:%s", server->folder.data,
		       path != NULL ? path : "/usr/bin:/bin");
	if (shells->by_path)
		value_append(list, value_new_text(entry.data));
	buf_fini(&entry);
	return list;
}

static bool start_agent(struct server *server, struct err *err)
{
	auto_value struct value *set = leading_variables(server);

	if (!terminal_lend(&server->terminal, err))
		return false;
	server->agent = hands_start(server->shells->argv, set, err);
	if (server->agent < 0)
		return false;
	server->ended.fd = (int)syscall(SYS_pidfd_open, server->agent, 0);
	if (server->ended.fd >= 0 && interrupt_start(server->interrupt, err))
		return true;
	(void)kill(server->agent, SIGKILL);
	(void)hands_wait(server->agent);
	return err_set(err, errno, "waiting for the agent: %s", strerror(errno));
}

/* Serve the shims until the agent has ended. Returns its code. */
static int serve(struct server *server)
{
	loop_add(server->loop, &server->ended);
	loop_add(server->loop, &server->stopping);
	while (!server->over) {
		loop_turn(server->loop, next_ms(server));
		settle_all(server);
	}
	loop_remove(&server->ended);
	loop_remove(&server->stopping);
	loop_remove(&server->listening);
	/* All are cancelled before the first of them is waited for. */
	for (struct shell *at = server->first; at != NULL; at = at->next)
		if (at->running != NULL && !running_is_done(at->running))
			running_cancel(at->running);
	while (server->first != NULL) {
		struct shell *next = server->first->next;
		shell_free(server->first);
		server->first = next;
	}
	return hands_wait(server->agent);
}

static struct watch watch_of(struct server *server,
			     void (*ready)(struct watch *watch, short events))
{
	return (struct watch){.fd = -1, .events = POLLIN, .ready = ready, .context = server};
}

int shells_run(const void *context, struct setup *setup, const struct options *options,
	       const struct exec_time *time)
{
	const struct policy_words words = {setup->policy_file, setup->said, setup->wrapped};
	struct session_options wanted = {.ready_workers = READY_WORKERS, .cancel_fd = -1};
	struct server server = {.shells = context, .words = &words, .time = time, .held = -1};
	struct err err = {0};
	int code;

	(void)options;
	if (!interrupt_open(&setup->interrupt, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	code = setup_session(setup, &wanted, &server.session);
	if (code != CODE_DONE)
		return code == CODE_USAGE || code == CODE_DENIED ? code : CODE_EXEC_NO_CELL;
	buf_init(&server.folder, PATH_MAX);
	server.interrupt = setup->interrupt;
	server.loop = session_loop(server.session);
	server.listening = watch_of(&server, listening_ready);
	server.ended = watch_of(&server, ended_ready);
	server.stopping = watch_of(&server, stopping_ready);
	server.stopping.fd = interrupt_fd(setup->interrupt);
	if (open_folder(&server, &err) && start_agent(&server, &err)) {
		loop_add(server.loop, &server.listening);
		code = serve(&server);
	} else {
		code = verb_complain(CODE_EXEC_NO_CELL, "wrap: %s", err.text);
	}
	terminal_close(server.terminal);
	fd_close(&server.listening.fd);
	fd_close(&server.ended.fd);
	if (server.held >= 0)
		fd_folder_remove(server.folder.data);
	fd_close(&server.held);
	buf_fini(&server.folder);
	interrupt_close_session(setup->interrupt, server.session);
	return code;
}
