/*
 * glovebox exec: runs any program in the cell, with the streams and the exit code that it
 * would have without the cell.
 */

#include "front/verbs/exec.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "cell/groups.h"
#include "cell/layers/layer.h"
#include "front/ask/desk.h"
#include "front/ask/question.h"
#include "front/cells/carry.h"
#include "front/config_file.h"
#include "front/hands/based.h"
#include "front/hands/relay.h"
#include "front/interrupt.h"
#include "front/output/explain.h"
#include "front/review/layered.h"
#include "front/setup.h"
#include "front/ssh/signer.h"
#include "front/verb.h"
#include "guard/guard.h"
#include "policy/ceiling.h"
#include "policy/config.h"
#include "policy/credentials/credential.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/pty.h"
#include "process/usage.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "session/session.h"
#include "tool/denial.h"
#include "tool/tool.h"
#include "tui/lent/terminal.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Prints on standard error why a program of `exec` failed in its cell, when the program
 * itself could not know.
 */

/*
 * Is FOLDER a home, or does it hold the caller's home? Then it may not be a workspace
 * (shape_open_workspace).
 */
static bool holds_home(const char *folder)
{
	const char *home = getenv("HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;

	return policy_is_home(folder) || (real != NULL && path_within(real, folder));
}

/* For git: the repository may be above the workspace, outside the cell. */
static void hint_repository(const struct tool_result *result,
			    const struct session *session, const char *program)
{
	enum { GIT_FATAL = 128 };
	struct buf above;

	if (result->exit_code != GIT_FATAL || strcmp(path_base_name(program), "git") != 0)
		return;
	buf_init(&above, PATH_MAX);
	if (explain_repository_above(session_workspace(session), &above) &&
	    !holds_home(above.data))
		(void)fprintf(stderr,
			      "glovebox: the workspace is a part of the repository %s, which the "
			      "cell does not show; -C %s works on all of it\n",
			      above.data, above.data);
	buf_fini(&above);
}

/* For a command that destroys much: its effect, and the next step. */
static void hint_harm(const struct tool_result *result)
{
	const struct value *told = value_member(result->details, "destroys");

	if (told != NULL)
		(void)fprintf(stderr, "glovebox: %s %s. %s\n",
			      value_text(value_member(told, "command")),
			      value_text(value_member(told, "does")),
			      value_text(value_member(told, "next")));
}

/*
 * Print a hint, with WORDS, for each file or host that the program could not write or
 * reach, as it says in MESSAGES (the end of its output). A network that RESULT mentions
 * already is left out.
 */
static void hint_messages(const struct tool_result *result, const struct session *session,
			  const struct policy_words *words, struct str messages)
{
	const bool told = denial_has_network(result);
	struct tool_result said;
	struct buf line, worded;

	tool_result_init(&said);
	session_judge_messages(session, messages, &said);
	buf_init(&line, RESULT_TEXT_MAX);
	buf_init(&worded, RESULT_TEXT_MAX);
	const struct value *list = denial_list(&said);
	for (size_t i = 0; i < value_count(list); i++) {
		if (told && denial_is(value_item(list, i), DENIAL_NET))
			continue;
		buf_clear(&line);
		buf_clear(&worded);
		denial_print(value_item(list, i), &line);
		policy_words_add(words, line.data, &worded);
		(void)fprintf(stderr, "glovebox: %s\n", worded.data);
	}
	buf_fini(&worded);
	buf_fini(&line);
	tool_result_fini(&said);
}

static const struct option_row exec_options[] = {
	{"in", 0, OPTION_TEXT, "NAME",
	 "run it in the cell NAME of glovebox start, as that is", NAMES_CELLS},
	{"detach", 0, OPTION_FLAG, NULL,
	 "with --in: begin it as a job, print its number, and do not wait"},
	EXEC_OPTION_ROWS,
	{"json", 0, OPTION_EITHER, "FILE|FD",
	 "write how it ended, and what it used, as one JSON object to FILE or to the open "
	 "descriptor FD; without one: with --explain print that as JSON, with --review the layer, "
	 "on stderr",
	 .alone = "explain " REVIEW_OPTION},
	EXEC_POLICY_ROWS,
	OPTION_ROW_BASE,
	OPTION_ROW_AT,
	{"entrypoint", 0, OPTION_FLAG, NULL,
	 "run CMD by the entrypoint of the base's image; without CMD the image's own"},
	OPTION_ROW_REVIEW,
	OPTION_ROW_NO_REVIEW,
	OPTION_ROW_HELP,
	{0},
};

/*
 * The report of --json: how the program ended and what it used, in a place of the caller's
 * that is opened before the program runs. Standard output and error stay the program's.
 */

enum {
	REPORT_MAX = 1 << 20,
	REPORT_MS = 10000, /* a reader of a pipe takes so little in far less */
	/* a file made by others' words: as the shell makes one behind `>` */
	REPORT_MODE = 0666,
};

struct report {
	const char *place; /* as it was said; NULL: no report is wanted */
	int fd;
};

/* --json without a place: another thing that is printed is printed as JSON. */
static bool prints_json(const struct options *options)
{
	return options_given(options, "json") && options_text(options, "json") == NULL;
}

/* Take the descriptor that TEXT, digits only, names. */
static bool report_take_fd(const char *text, int *fd, struct err *err)
{
	const int given = strlen(text) < sizeof("999999") ? fd_of_text(text) : INT_MAX;
	int flags;

	if (given <= STDERR_FILENO)
		return err_set(err, EINVAL,
			       "descriptor %s belongs to the program; take one from 3 on "
			       "(--json 3 3>FILE), or ./%s for a file of that name",
			       text, text);
	flags = fcntl(given, F_GETFL);
	if (flags < 0)
		return err_set(err, EBADF,
			       "descriptor %s is not open; open it (%s>FILE), or write ./%s for "
			       "a file of that name",
			       text, text, text);
	if ((flags & O_ACCMODE) == O_RDONLY)
		return err_set(err, EBADF, "descriptor %s is open for reading only", text);
	*fd = fcntl(given, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return *fd >= 0 || err_set(err, errno, "descriptor %s: %s", text, strerror(errno));
}

/*
 * Open PATH for the report, and make it when it is not there. Below ROOT, where programs of
 * an earlier cell could have left links, no link is followed.
 */
static int report_open_path(const char *path, const char *root)
{
	const mode_t mask = umask(0);
	auto_close int folder = -1;
	struct stat st;
	int fd = -1;

	(void)umask(mask);
	if (!path_within(path, root) || strcmp(path, root) == 0)
		return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			    REPORT_MODE);
	folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0)
		fd = fd_open_beneath(folder, path_relative(path, root), O_WRONLY | O_CREAT);
	/* It was made with no rights at all. */
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & ALLPERMS) == 0)
		(void)fchmod(fd, REPORT_MODE & ~mask);
	return fd;
}

/* Open the place of REPORT, which is empty then. ROOT: the workspace of the cell. */
static bool report_open(struct report *report, const char *root, struct err *err)
{
	const char *place = report->place;
	auto_free char *here = NULL;
	struct buf path;

	report->fd = -1;
	if (place == NULL)
		return true;
	if (place[strspn(place, "0123456789")] == '\0')
		return report_take_fd(place, &report->fd, err) ||
		       err_while(err, "--json %s", place);
	here = getcwd(NULL, 0);
	buf_init(&path, PATH_MAX);
	if (here != NULL && path_normal(here, place, &path))
		report->fd = report_open_path(path.data, root);
	else
		errno = here != NULL ? ENAMETOOLONG : errno;
	buf_fini(&path);
	if (report->fd < 0)
		return err_set(err, errno, "--json %s: %s%s", place, strerror(errno),
			       errno == ELOOP
				       ? "; in the workspace no link is followed: name the file "
					 "itself"
			       : errno == ENXIO ? "; nobody reads this pipe"
						: "");
	/* Nothing of an earlier report stays. A pipe or a device has nothing. */
	(void)!ftruncate(report->fd, 0);
	return true;
}

static void report_close(struct report *report)
{
	if (report->place != NULL)
		fd_close(&report->fd);
}

/*
 * Write TEXT, and wait for a slow reader, but not for ever: the caller's descriptor may be one
 * that blocks, and takes PIPE_BUF bytes without that when it is ready.
 */
static bool report_send(int fd, struct str text)
{
	const int64_t until = clock_now_ms() + REPORT_MS;
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	while (text.size > 0) {
		const int64_t left = until - clock_now_ms();
		ssize_t n;

		if (left <= 0 || poll(&room, 1, (int)left) == 0) {
			errno = ETIMEDOUT;
			return false;
		}
		n = write(fd, text.data, text.size < PIPE_BUF ? text.size : PIPE_BUF);
		if (n > 0)
			text = str_part(text, (size_t)n, text.size);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return false;
	}
	return true;
}

static void set_number(struct value *object, const char *name, bool known, int number)
{
	value_set(object, name, known ? value_new_integer(number) : value_new_null());
}

/* The report of RESULT, or with NULL of a program that did not run; CODE is our own exit code. */
static struct value *report_value(const struct tool_result *result,
				  const struct exec_time *time, int code,
				  struct value *hosts)
{
	static const struct tool_result none = {.exit_code = -1};
	const struct tool_result *told = result != NULL ? result : &none;
	struct value *object = value_new_object();
	struct accounts accounts = told->accounts;
	const bool timed_out = told->status == RESULT_TIMED_OUT;

	accounts.limit = denial_limit(told);
	/* The time of --timeout is no key of `limits`. */
	if (accounts.limit != NULL && strcmp(accounts.limit, "wall_s") == 0 &&
	    strcmp(time->why, "limits.wall_s") != 0)
		accounts.limit = NULL;
	set_number(object, "exit", told->exit_code >= 0, told->exit_code);
	set_number(object, "signal", told->signal > 0, told->signal);
	value_set_boolean(object, "timed_out", timed_out);
	value_set_real(object, "seconds", told->seconds);
	value_set(object, "limit",
		  accounts.limit != NULL ? value_new_text(accounts.limit)
					 : value_new_null());
	value_set_text(object, "status",
		       result != NULL ? result_status_name(told->status) : "set_up");
	value_set_integer(object, "code", code);
	if (result != NULL)
		tool_set_strength(object, told->strength);
	value_set(object, "denials",
		  denial_list(told) != NULL ? value_copy(denial_list(told))
					    : value_new_array());
	value_set(object, "network", hosts);
	value_set(object, "accounts", accounts_value(&accounts));
	return object;
}

/* Write REPORT of RESULT; returns CODE, or 1 in place of 0 when that failed. */
static int report_write(const struct report *report, const struct session *session,
			const struct tool_result *result, const struct exec_time *time,
			int code)
{
	struct value *hosts;
	struct accounts of_cell;
	auto_value struct value *object = NULL;
	struct buf text;

	if (report->place == NULL)
		return code;
	hosts = value_new_array();
	if (session != NULL)
		session_accounts(session, &of_cell, hosts);
	object = report_value(result, time, code, hosts);
	if (session != NULL)
		session_tell_base(session, object);
	buf_init(&text, REPORT_MAX);
	errno = EFBIG;
	if (!value_print(object, 0, &text) || !buf_addc(&text, '\n') ||
	    !report_send(report->fd, buf_str(&text)))
		code = verb_complain(code == CODE_DONE ? CODE_FAILED : code,
				     "--json %s: the report could not be written: %s",
				     report->place, strerror(errno));
	buf_fini(&text);
	return code;
}

/*
 * Add the folders of option NAME as real paths. Links are followed, since the person
 * named them.
 */
static bool add_folders(const struct options *options, const char *name,
			struct value *entry, struct err *err)
{
	const char *const *folders = options_texts(options, name);
	struct value *list;

	if (*folders == NULL)
		return true;
	list = value_new_array();
	value_set(entry, name, list);
	for (; *folders != NULL; folders++) {
		auto_free char *real = realpath(*folders, NULL);

		if (real == NULL)
			return err_set(err, errno, "--%s %s: %s%s", name, *folders,
				       strerror(errno),
				       errno == ENOENT ? "; make it first: mkdir -p, or touch"
						       : "");
		if (!text_is_utf8(str_of(real)))
			return err_set(err, EILSEQ,
				       "--%s: the path has bytes that are not UTF-8, which no "
				       "policy can name; rename it, or make it the workspace (-C)",
				       name);
		value_append(list, value_new_text(real));
	}
	return true;
}

/* Add the variables of --env. */
static void add_variables(const struct options *options, struct value *entry)
{
	const char *const *variables = options_texts(options, "env");
	struct value *list;

	if (*variables == NULL)
		return;
	list = value_new_array();
	value_set(entry, "env", list);
	for (; *variables != NULL; variables++)
		value_append(list, value_new_text(*variables));
}

/* Does CREDENTIAL take its key from the variable NAME, or set it? */
static bool credential_has(const struct credential *credential, const char *name)
{
	for (size_t i = 0; i < credential->source_count; i++) {
		if (credential->sources[i].from == FROM_ENV &&
		    strcmp(credential->sources[i].text, name) == 0)
			return true;
	}
	for (size_t i = 0; i < credential->variables.count; i++) {
		if (strcmp(credential->variables.items[i], name) == 0)
			return true;
	}
	return false;
}

static bool is_named(const char *name, const char *const *said)
{
	while (*said != NULL && strcmp(*said, name) != 0)
		said++;
	return *said != NULL;
}

/* Tell of each variable of --env whose value a credential could keep outside. */
static void tell_passed(const struct options *options)
{
	const char *const *said = options_texts(options, "env");
	auto_config struct config *config = NULL;
	const struct value *entries;
	struct arena arena;
	const char **names;

	/* A wrong configuration is complained about later. */
	if (*said == NULL ||
	    !config_file_load(options_text(options, "config"), &config, NULL))
		return;
	entries = config_value(config, "credentials");
	arena_init(&arena);
	names = credential_names(entries, &arena);
	for (; *said != NULL; said++) {
		auto_free char *name =
			memory_copy_str((struct str){*said, strcspn(*said, "=")});

		for (size_t i = 0; names[i] != NULL; i++) {
			struct credential credential = {0};

			if (!is_named(names[i], options_texts(options, "credential")) &&
			    credential_find(entries, names[i], &credential, NULL) &&
			    credential_has(&credential, name))
				(void)verb_complain(CODE_DONE,
						    "%s goes in as it is; --credential %s keeps it "
						    "outside",
						    name, names[i]);
			credential_fini(&credential);
		}
	}
	arena_fini(&arena);
}

/*
 * Check ENTRY, which is made of the values of options. A complaint about a value begins
 * with its option.
 */
static bool check_flags(const char *verb, const struct value *entry, struct err *err)
{
	static const char limit[] = "/limits/", variable[] = "/env/";
	struct err why = {0};
	struct str text;

	if (config_check_entry(entry, NULL, &why))
		return true;
	text = str_of(why.text);
	if (str_starts(text, STR(limit)))
		text = str_part(text, sizeof(limit) - 1, text.size);
	if (str_starts(text, STR("io_write")))
		return err_set(err, EINVAL, "%s: --io-write%.*s", verb,
			       (int)(text.size - strlen("io_write")),
			       text.data + strlen("io_write"));
	/*
	 * Do not quote a variable, which may be a secret. The reason names it when its
	 * name is complete.
	 */
	if (str_starts(text, STR(variable)))
		return err_set(err, EINVAL, "%s: --env: %s", verb,
			       strstr(why.text, ": ") != NULL ? strstr(why.text, ": ") + 2
							      : why.text);
	return err_set(err, EINVAL, "%s: --%.*s", verb, (int)text.size, text.data);
}

/*
 * Name the variables of --env that are not set here: the name may be mistyped, or the
 * variable may be set in another shell only.
 */
static void tell_unset(const struct options *options)
{
	for (const char *const *at = options_texts(options, "env"); *at != NULL; at++) {
		if (strchr(*at, '=') == NULL && getenv(*at) == NULL)
			(void)verb_complain(CODE_DONE,
					    "--env %s: it is not set here, so the program does "
					    "not have it; --env %s=VALUE sets it",
					    *at, *at);
	}
}

bool exec_read_flags(const char *verb, const struct options *options, struct value *entry,
		     struct err *err)
{
	struct value *limits = value_new_object();

	if (options_given(options, "no-credential") &&
	    *options_texts(options, "credential") != NULL) {
		value_free(limits);
		return err_set(err, EINVAL,
			       "%s: --no-credential uses no key, and --credential uses one: give "
			       "one of both",
			       verb);
	}
	value_set(entry, "limits", limits);
	if (options_given(options, "memory"))
		value_set_text(limits, "memory", options_text(options, "memory"));
	if (options_given(options, "pids"))
		value_set_integer(limits, "pids",
				  (int64_t)options_count(options, "pids", 0));
	if (options_given(options, "cpus"))
		value_set_real(limits, "cpus", options_amount(options, "cpus", 0));
	if (options_given(options, "io-write"))
		value_set_text(limits, "io_write", options_text(options, "io-write"));
	add_variables(options, entry);
	if (!check_flags(verb, entry, err) || !add_folders(options, "write", entry, err) ||
	    !add_folders(options, "read", entry, err))
		return false;
	tell_unset(options);
	return true;
}

/* Append WORD to ARGV, with AS_HEX as hexadecimal digits. */
static void append_word(struct value *argv, const char *word, bool as_hex)
{
	static const char digits[] = "0123456789abcdef";
	struct buf hex;

	if (!as_hex) {
		value_append(argv, value_new_text(word));
		return;
	}
	buf_init(&hex, 2 * strlen(word));
	for (; *word != '\0'; word++) {
		(void)buf_addc(&hex, digits[(unsigned char)*word >> 4]);
		(void)buf_addc(&hex, digits[(unsigned char)*word & 15]);
	}
	value_append(argv, value_new_str(buf_str(&hex)));
	buf_fini(&hex);
}

struct value *exec_arguments(const char *const *words, size_t count)
{
	struct value *arguments = value_new_object();
	struct value *argv = value_new_array();
	bool as_hex = false;

	for (size_t i = 0; i < count; i++)
		as_hex = as_hex || !text_is_utf8(str_of(words[i]));
	for (size_t i = 0; i < count; i++)
		append_word(argv, words[i], as_hex);
	value_set(arguments, "argv", argv);
	if (as_hex)
		value_set_boolean(arguments, "hex", true);
	return arguments;
}

/* Append the reason why the program did not end by itself; nothing when it did. */
static void add_end(const struct tool_result *result, const struct exec_time *time,
		    struct buf *out)
{
	const struct str text = str_trim(buf_str(&result->text));

	if (result->status == RESULT_FAILED && text.size > 0)
		(void)buf_addf(out, "glovebox: %.*s\n", (int)text.size, text.data);
	if (result->status == RESULT_TIMED_OUT)
		(void)buf_addf(out, "glovebox: ended after %g s (%s)\n", time->seconds,
			       time->why);
}

/* Append LINE to OUT unless it is empty, and clear it. */
static void add_line(struct buf *line, struct buf *out)
{
	if (line->size > 0)
		(void)buf_addf(out, "glovebox: %s\n", line->data);
	buf_clear(line);
}

void exec_add_told(const struct session *session, const struct tool_result *result,
		   const struct policy_words *policy, const struct exec_time *time,
		   struct buf *out)
{
	/*
	 * A program that succeeds although a system call was refused has found another
	 * way.
	 */
	bool succeeded = result->status == RESULT_DONE && result->exit_code == 0;
	const struct value *list = denial_list(result);
	const struct str text = str_trim(buf_str(&result->text));
	struct buf line, words;

	buf_init(&line, RESULT_TEXT_MAX);
	buf_init(&words, RESULT_TEXT_MAX);
	if (time != NULL)
		add_end(result, time, out);
	for (size_t i = 0; i < value_count(list); i++) {
		if (succeeded && denial_is(value_item(list, i), DENIAL_PROC))
			continue;
		denial_print(value_item(list, i), &line);
		policy_words_add(policy, line.data, &words);
		add_line(&words, out);
		buf_clear(&line);
	}
	for (enum audit_line i = 0; i < AUDIT_LINES; i++) {
		audit_print_line(result, i, &line);
		add_line(&line, out);
	}
	layer_tell_print(result, &line);
	add_line(&line, out);
	session_print_own(session, result, &line);
	add_line(&line, out);
	/* The changes of the program stay. Say when not all of them could be examined. */
	if (audit_failed(result) && result->status != RESULT_FAILED && text.size > 0)
		(void)buf_addf(out, "glovebox: %.*s\n", (int)text.size, text.data);
	buf_fini(&line);
	buf_fini(&words);
}

void exec_print_told(const struct session *session, const struct tool_result *result,
		     const struct policy_words *words)
{
	struct buf told;

	buf_init(&told, RESULT_TEXT_MAX);
	exec_add_told(session, result, words, NULL, &told);
	(void)fputs(told.data, stderr);
	buf_fini(&told);
}

static struct exec_time time_of(const struct options *options, double wall_s)
{
	const double most = ceiling_wall_s(session_ceiling());
	struct exec_time time = {wall_s, wall_s > 0 ? "limits.wall_s" : "default"};

	if (options_given(options, "timeout"))
		time = (struct exec_time){options_seconds(options, "timeout", 0),
					  "--timeout"};
	if (most > 0 && (time.seconds <= 0 || time.seconds > most))
		time = (struct exec_time){most, "limits of " CEILING_FILE};
	return time;
}

int exec_code(const struct tool_result *result)
{
	switch (result->status) {
	case RESULT_DONE:
		return result->signal != 0 ? CODE_SIGNAL + result->signal
					   : result->exit_code;
	case RESULT_TIMED_OUT:
		return CODE_TIMED_OUT;
	case RESULT_CANCELLED:
		return CODE_SIGNAL + (result->signal != 0 ? result->signal : SIGTERM);
	case RESULT_DENIED:
		return CODE_EXEC_NOT_EXECUTABLE; /* exec_add_told says why */
	case RESULT_FAILED:
		break;
	}
	return result->exit_code == CODE_EXEC_NOT_EXECUTABLE ||
			       result->exit_code == CODE_EXEC_NOT_FOUND
		       ? result->exit_code
		       : CODE_EXEC_NO_CELL;
}

/* The code of RESULT for the caller, who is told why the program did not end by itself. */
static int tell_end(const struct tool_result *result, const struct exec_time *time,
		    const struct interrupt *interrupt)
{
	const int number = interrupt_signal(interrupt);
	struct buf told;

	if (result->status == RESULT_CANCELLED)
		return number != 0 ? CODE_SIGNAL + number : CODE_CANCELLED;
	buf_init(&told, 2 * RESULT_TEXT_MAX);
	add_end(result, time, &told);
	(void)fputs(told.data, stderr);
	buf_fini(&told);
	return exec_code(result);
}

/*
 * Questions of the cell to the person, on the terminal that the program has. Without a
 * terminal they are heard as well, and refused.
 */
static struct question *question_open(const struct setup *setup, struct relay *relay,
				      struct terminal *terminal)
{
	const struct question_place place = relay_place(relay, terminal);

	return setup->asks && terminal != NULL && isatty(STDIN_FILENO) &&
			       isatty(STDOUT_FILENO)
		       ? question_new(&place)
		       : NULL;
}

/* Start the ssh agent of the cell, where --ssh wants one. */
static bool ssh_open(const struct setup *setup, struct session *session,
		     struct question *question, struct signer **signer, struct err *err)
{
	const struct signer_options options = {.loop = session_loop(session),
					       .access = setup->ssh,
					       .question = question};

	return setup->ssh == NULL || signer_open(&options, signer, err);
}

/* Turn the loop until the program has ended and its last byte is delivered. */
static void wait_for_end(const struct setup *setup, struct session *session,
			 struct running *running, struct relay *relay,
			 struct question *question, struct signer *signer)
{
	struct desk_options options = {
		.loop = session_loop(session),
		.question = question,
		.opens = setup->opens,
		.profile = setup->wrapped,
		.ceiling = session_ceiling(),
		.environment = (const char *const *)(uintptr_t)environ,
	};
	struct desk *desk = NULL;
	bool given = false;

	while (!running_is_done(running)) {
		int listener = desk == NULL ? session_take_socket(session, SHAPE_ASK) : -1;

		if (listener >= 0)
			desk = desk_open(&options, &listener);
		listener = signer != NULL ? session_take_socket(session, SHAPE_SSH) : -1;
		if (listener >= 0)
			signer_listen(signer, &listener);
		if (!given && running_is_sent(running)) {
			relay_give(relay);
			given = true;
		}
		loop_turn(session_loop(session), CLOCK_NEVER);
	}
	desk_close(desk);
	signer_stop(signer);
	relay_drain(relay, interrupt_fd(setup->interrupt),
		    interrupt_signal(setup->interrupt) != 0 ||
			    running_result(running)->status == RESULT_TIMED_OUT);
}

static void ask_for_terminal(struct value *arguments)
{
	struct pty_size size = terminal_size();

	value_set_integer(arguments, "rows", size.rows);
	value_set_integer(arguments, "columns", size.columns);
}

static int follow(const struct setup *setup, struct session *session,
		  const struct options *options, const struct policy_words *words,
		  const struct exec_time *time, const struct report *report,
		  struct relay *relay)
{
	auto_value struct value *arguments =
		exec_arguments(options->words, options->word_count);
	struct request request = {
		.tool = "exec",
		.arguments = arguments,
		.by_front = true,
		.timeout_s = time->seconds > 0 ? time->seconds : -1,
	};
	const int *fds = relay_fds(relay, &request.fd_count);
	struct terminal *terminal = NULL;
	struct question *question;
	struct signer *signer = NULL;
	struct running *running;
	struct buf messages;
	struct err err = {0};
	int code;

	if (options_given(options, "tty")) {
		ask_for_terminal(arguments);
		if (!terminal_open(session_loop(session), relay_packets(relay), &terminal,
				   &err))
			return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	}
	memcpy(request.fds, fds, request.fd_count * sizeof(fds[0]));
	question = question_open(setup, relay, terminal);
	if (!ssh_open(setup, session, question, &signer, &err)) {
		question_free(question);
		terminal_close(terminal);
		return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	}
	running = session_start(session, &request, NULL, NULL);
	wait_for_end(setup, session, running, relay, question, signer);
	relay_leave(relay);
	terminal_close(terminal);
	signer_close(signer);
	question_free(question);
	exec_print_told(session, running_result(running), words);
	hint_harm(running_result(running));
	hint_repository(running_result(running), session, options->words[0]);
	buf_init(&messages, RELAY_TAIL);
	relay_tail(relay, &messages);
	hint_messages(running_result(running), session, words, buf_str(&messages));
	buf_fini(&messages);
	code = tell_end(running_result(running), time, setup->interrupt);
	/* The program wrote to our pipe, and could not know that its output was lost. */
	if (code == CODE_DONE && relay_lost(relay))
		code = CODE_FAILED;
	code = report_write(report, session, running_result(running), time, code);
	running_free(running);
	return code;
}

static int exec_with(struct setup *setup, const struct options *options,
		     const struct exec_time *time, const struct report *report)
{
	const struct policy_words words = {setup->policy_file, setup->said, setup->wrapped};
	bool tty = options_given(options, "tty");
	bool clipboard = options_given(options, "clipboard");
	struct session *session = NULL;
	struct relay *relay = NULL;
	struct err err = {0};
	const char *id;
	int code;

	if (tty)
		terminal_prepare();
	/* An exec is no step that can be undone. */
	free(setup->undo_folder);
	setup->undo_folder = NULL;
	if (layered_wanted(setup, options, &id) &&
	    !layered_begin(setup,
			   &(struct layered_wish){.id = id,
						  .by = "glovebox exec",
						  .words = options->words},
			   &err))
		return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	code = setup_session_once(setup, &session);
	if (code != CODE_DONE) {
		(void)layered_end(setup, false, NULL);
		return report_write(report, NULL, NULL, time,
				    code == CODE_USAGE || code == CODE_DENIED
					    ? code
					    : CODE_EXEC_NO_CELL);
	}
	if (relay_open(session_loop(session), tty ? RELAY_TERMINAL : RELAY_PLAIN,
		       clipboard, &relay, &err))
		code = follow(setup, session, options, &words, time, report, relay);
	else
		code = verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	relay_close(relay);
	interrupt_close_session(setup->interrupt, session);
	(void)layered_end(setup, prints_json(options), stderr);
	return code;
}

/* Begins this program again in a scope of systemd, whose control group it may divide. */

enum {
	COMMAND_LINE_MAX = 4 << 20, /* more than the kernel takes */
	SCOPE_WORDS = 16,           /* of systemd-run, and the end */
};

/* Set for the program that begins again, so that it does so once only. */
#define SCOPE_VARIABLE "GLOVEBOX_IN_SCOPE"

static bool systemd_is_here(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX];

	if (geteuid() == 0)
		return access("/run/systemd/system", F_OK) == 0;
	(void)snprintf(path, sizeof(path), "%s/systemd/private",
		       runtime != NULL ? runtime : "/nonexistent");
	return access(path, F_OK) == 0;
}

/* The words of our own command line in TEXT, each ended by a NUL byte, behind SCOPE_WORDS places. */
static const char **words_of(const struct buf *text, size_t *count)
{
	const char **words = NULL;

	*count = 0;
	for (size_t at = 0; at < text->size; at += strlen(text->data + at) + 1) {
		words = memory_grow(words, SCOPE_WORDS + *count + 2, sizeof(*words));
		words[SCOPE_WORDS + (*count)++] = text->data + at;
	}
	if (words != NULL)
		words[SCOPE_WORDS + *count] = NULL;
	return words;
}

void exec_begin_in_scope(void)
{
	static const char *const run[] = {"systemd-run", "--scope", "--quiet", "-p",
					  "Delegate=yes"};
	const char *begin[SCOPE_WORDS];
	auto_free const char **words = NULL;
	char program[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	size_t count = sizeof(run) / sizeof(run[0]), own;
	struct buf text;
	struct err err;

	if (getenv(SCOPE_VARIABLE) != NULL || !systemd_is_here() || size <= 0)
		return;
	program[size] = '\0';
	buf_init(&text, COMMAND_LINE_MAX);
	if (fd_read_file("/proc/self/cmdline", COMMAND_LINE_MAX, &text, &err))
		words = words_of(&text, &own);
	if (words != NULL) {
		memcpy(begin, run, sizeof(run));
		if (geteuid() != 0)
			begin[count++] = "--user";
		begin[count++] = "--";
		/* The program comes in place of its own name. */
		words[SCOPE_WORDS] = program;
		memcpy(words + SCOPE_WORDS - count, begin, count * sizeof(begin[0]));
		(void)setenv(SCOPE_VARIABLE, "1", 1);
		(void)execvp(begin[0],
			     (char *const *)(uintptr_t)(words + SCOPE_WORDS - count));
		(void)unsetenv(SCOPE_VARIABLE);
	}
	buf_fini(&text);
}

bool exec_scope(const struct options *options, bool *begins_again, struct err *err)
{
	const char *when = options_text(options, "scope");

	*begins_again = when == NULL || strcmp(when, "auto") == 0;
	return *begins_again || strcmp(when, "never") == 0 ||
	       err_set(err, EINVAL, "--scope: \"%.20s\" is neither auto nor never", when);
}

/*
 * Can this machine keep the limits of SETUP that need a control group? With --scope auto, and
 * when --cpus asks for one, begin this program again in a scope of systemd, which has one.
 */
static bool scope_settle(const struct setup *setup, const struct options *options,
			 struct err *err)
{
	static const char key[] = "limits.cpus";
	bool begins_again;
	struct err why;

	if (!exec_scope(options, &begins_again, err))
		return false;
	if (groups_cell_check(&setup->policy->limits, &why))
		return true;
	if (options_given(options, "cpus") && begins_again)
		exec_begin_in_scope();
	return options_given(options, "cpus") && str_starts(str_of(why.text), STR(key))
		       ? err_set(err, ENOTSUP, "--cpus%s", why.text + sizeof(key) - 1)
		       : err_set(err, ENOTSUP, "%s", why.text);
}

/*
 * Put the entrypoint of the image of SETUP's base before the words of OPTIONS, or before the
 * image's own command: WITH gets these options, and WORDS its list, which the caller frees.
 */
static bool add_entrypoint(struct setup *setup, const struct options *options,
			   struct options *with, const char ***words, struct err *err)
{
	const char *const *parts[2];
	const struct base *base;
	size_t count = 0;
	bool apart;

	*with = *options;
	if (options_find(options->rows, "--entrypoint", &apart) == NULL ||
	    !options_given(options, "entrypoint"))
		return true;
	if (!based_find(setup, err)) {
		/* A wrong word is no cell here, too, as it is without the option. */
		err->code = err->code == EINVAL ? ECHILD : err->code;
		return false;
	}
	if (setup->based == NULL)
		return err_set(err, EINVAL,
			       "--entrypoint: the root of the cell is this machine's, which has "
			       "none; name an image by --base image:NAME");
	base = &setup->based->base;
	parts[0] = base->entrypoint;
	parts[1] = options->word_count > 0 ? options->words : base->command;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		for (size_t j = 0; parts[i][j] != NULL; j++) {
			*words = memory_grow(*words, count + 2, sizeof(**words));
			(*words)[count++] = parts[i][j];
			(*words)[count] = NULL;
		}
	}
	if (count == 0)
		return err_set(err, EINVAL,
			       "--entrypoint: base %s names neither an entrypoint nor a command; "
			       "say what is to run: --entrypoint -- CMD",
			       base->word);
	with->words = *words;
	with->word_count = count;
	return true;
}

/* Like exec_with; the report is opened before the program runs, and written in any case. */
static int exec_reporting(struct setup *setup, const struct options *options,
			  const struct exec_time *time)
{
	struct report report = {.place = options_text(options, "json")};
	auto_free const char **words = NULL;
	struct options with;
	struct err err;
	int code;

	if (!add_entrypoint(setup, options, &with, &words, &err))
		return verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_EXEC_NO_CELL,
				     "%s", err.text);
	if (!report_open(&report, setup->policy->workspace, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	code = exec_with(setup, &with, time, &report);
	report_close(&report);
	return code;
}

/*
 * Refuse patterns in `write`: the kernel knows no patterns, so the whole folder of a
 * pattern would be open to the command.
 */
static bool has_no_pattern(const struct policy *policy, struct err *err)
{
	for (size_t i = 0; i < policy->write.count; i++) {
		const struct policy_path *entry = &policy->write.items[i];

		if (entry->pattern != NULL)
			return err_set(err, EINVAL,
				       "agents.%s.write: the pattern \"%s\" cannot hold for a "
				       "program, which the kernel keeps to folders only; name "
				       "them with --write",
				       policy->name, entry->text);
	}
	return true;
}

int exec_in_cell(struct setup *setup, const struct options *options,
		 const struct setup_flags *flags, const struct value *more, FILE *out,
		 const struct exec_use *use)
{
	const struct policy_words words = {flags->policy_file, flags->entry, flags->wrapped};
	struct exec_time time;
	struct err err = {0};
	int code = setup_open(setup, options, flags);

	if (code != CODE_DONE)
		return code == CODE_FAILED ? CODE_EXEC_NO_CELL : code;
	setup->publishes = true;
	setup->by_hand = true;
	/* Where something else carries the program out, nobody listens to questions. */
	setup->asks =
		use == NULL && (flags->wrapped != NULL || options_given(options, "tty"));
	if (use != NULL && setup->policy->review)
		(void)err_set(&err, EINVAL,
			      "agents.%s.review: what another program asks for here has no layer; "
			      "take an agent without `review`",
			      setup->policy->name);
	if (err.code != 0 || !has_no_pattern(setup->policy, &err))
		return policy_words_complain(CODE_EXEC_NO_CELL, &words, err.text);
	time = time_of(options, setup->wall_s);
	setup->prepare_s = time.seconds;
	if (flags->explain)
		return explain_print(setup, flags, time.seconds, time.why,
				     prints_json(options), more, out);
	if (setup->ssh != NULL && !(options_given(options, "tty") &&
				    isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return verb_complain(CODE_USAGE,
				     "--ssh asks you before each use of a key: it needs --tty, and "
				     "a terminal here");
	explain_repositories(setup);
	/* A control group counts the processes, too. */
	setup->exact = use == NULL && (options_text(options, "json") != NULL ||
				       options_given(options, "pids"));
	if (!scope_settle(setup, options, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (use != NULL)
		return use->carry_out(use->context, setup, options, &time);
	return exec_reporting(setup, options, &time);
}

int exec_take_flags(const char *verb, const struct options *options, struct value *entry,
		    struct setup_flags *flags)
{
	bool apart;
	struct err err = {0};

	*flags = (struct setup_flags){
		/* Standard error belongs to the program. */
		.quiet_plugins = true,
		.policy_file = options_text(options, "policy"),
		.entry = entry,
		.credentials = options_texts(options, "credential"),
		.no_credentials = options_given(options, "no-credential"),
		.explain = options_given(options, "explain"),
	};
	if (prints_json(options) && !flags->explain &&
	    (options_find(options->rows, "--" REVIEW_OPTION, &apart) == NULL ||
	     !options_given(options, REVIEW_OPTION)))
		return verb_complain(CODE_USAGE, "%s: --json %s", verb,
				     strcmp(verb, verb_exec.name) == 0
					     ? "needs a file or a descriptor for the report "
					       "(--json FILE, --json 3 3>FILE), or goes with "
					       "--explain or --review"
					     : "goes with --explain");
	if (options_text(options, "json") != NULL && flags->explain)
		return verb_complain(CODE_USAGE,
				     "%s: --explain runs nothing, so there is no report for "
				     "--json %s; --explain --json prints it as JSON",
				     verb, options_text(options, "json"));
	if (options_given(options, "agent") && flags->policy_file != NULL)
		return verb_complain(CODE_USAGE,
				     "%s: --agent and --policy each say what may be done: give one",
				     verb);
	if (!exec_read_flags(verb, options, entry, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	tell_passed(options);
	return CODE_DONE;
}

static int exec_run(const struct options *options, FILE *out)
{
	auto_value struct value *entry = value_new_object();
	struct setup_flags flags;
	struct setup setup = {0};
	int code;

	if (options_given(options, "in"))
		return cells_carry_exec(options, options_text(options, "in"));
	if (options_given(options, "detach"))
		return verb_complain(CODE_USAGE,
				     "exec: --detach goes with --in NAME; glovebox start -- CMD "
				     "makes a cell for it");
	if (options->word_count == 0 && !options_given(options, "explain") &&
	    !options_given(options, "entrypoint"))
		return verb_complain(CODE_USAGE, "exec: no command; usage: glovebox exec [--] "
						 "CMD [ARGS…]");
	code = exec_take_flags("exec", options, entry, &flags);
	if (code != CODE_DONE)
		return code;
	code = exec_in_cell(&setup, options, &flags, NULL, out, NULL);
	setup_fini(&setup);
	return code;
}

static const char exec_help[] =
	"Run CMD in the cell, in the workspace's folder. It sees the workspace and the\n"
	"system's programs, no other file of yours, no host but those of --allow-host and\n"
	"the policy's network, and of your environment TERM, LANG and TZ and what --env\n"
	"names only. When it ends, everything that it started ends too.\n\n"
	"What may be read, written and used is an agent's policy (default: the one of\n"
	"`default`), or that of --policy; options beat both. DIR of --write and --read\n"
	"starts where you are, not at the workspace. --explain prints what holds.\n\n"
	"With --base devcontainer the commands of that file run first, once for each of its\n"
	"contents: each has an hour, --timeout holds for all of them together, 1 MiB of the\n"
	"output of each is shown, and what they change of the root has at most 4 GiB.\n\n"
	"Pipes are handed on to it; a terminal, file, device or socket is relayed\n"
	"through a pipe. With --tty it has a terminal of the cell's own, behind yours, and\n"
	"every key goes to it. The exit code is the program's own, 128+N when signal N ended\n"
	"it, 124 after the timeout, 125 when the cell could not be built, 126 when CMD\n"
	"cannot be executed or is not in the agent's list of commands, 127 when there is\n"
	"none of that name, 2 when the command line or the configuration is wrong, 4 when a\n"
	"named credential has no key or the machine's policy forbids it, 1 instead of 0\n"
	"when its output could not be written.\n"
	"Ctrl+C and SIGTERM end the program first (130, 143).";

const struct verb verb_exec = {
	.name = "exec",
	.summary = "run a program in the cell",
	.arguments = "[--] CMD [ARGS…]",
	.help = exec_help,
	.example =
		"  glovebox exec --timeout 60 -- make -j4\n"
		"  glovebox exec --json used.json --cpus 1.5 -- make\n"
		"  mkdir out; glovebox exec --write out --memory 2G -- sh -c 'date > out/now'\n"
		"  glovebox exec --tty -- bash\n"
		"  glovebox exec -e CI=1 -e NPM_TOKEN -- npm test\n"
		"  glovebox exec --publish 3000 -- npm run dev\n"
		"  glovebox exec --base rootfs:./debian -- apt-get install -y ./tool.deb\n"
		"  glovebox exec -C repo --at /testbed -- git status\n"
		"  glovebox exec --tty --ssh github.com -- git push\n"
		"  echo '{\"write\": []}' > ci.json; glovebox exec --policy ci.json --explain\n"
		"  echo 'print(6 * 7)' | glovebox exec -- python3 -",
	.options = exec_options,
	.words_most = VERB_WORDS_ANY,
	.words_end_options = true,
	.run = exec_run,
};
