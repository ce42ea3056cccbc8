/* shell: starts a waiting shell, hands it its wrapper, and gives it the text. */

#include "tools/shell.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "process/program.h"
#include "tool/call.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Decides whether a text is one program: plain words, no feature of the shell, and a
 * file.
 */

/*
 * Words of bash 5.2 and later: those that bash runs itself, and those that begin a longer
 * construct.
 */
static const char *const own_words[] = {
	".",        ":",         "[",        "alias",   "bg",      "bind",     "break",
	"builtin",  "caller",    "cd",       "command", "compgen", "complete", "compopt",
	"continue", "declare",   "dirs",     "disown",  "echo",    "enable",   "eval",
	"exec",     "exit",      "export",   "false",   "fc",      "fg",       "fltexpr",
	"getopts",  "hash",      "help",     "history", "jobs",    "kill",     "let",
	"local",    "logout",    "mapfile",  "popd",    "printf",  "pushd",    "pwd",
	"read",     "readarray", "readonly", "return",  "set",     "shift",    "shopt",
	"source",   "strptime",  "suspend",  "test",    "times",   "trap",     "true",
	"type",     "typeset",   "ulimit",   "umask",   "unalias", "unset",    "wait",
	"if",       "then",      "else",     "elif",    "fi",      "case",     "esac",
	"for",      "select",    "while",    "until",   "do",      "done",     "in",
	"function", "time",      "{",        "}",       "!",       "[[",       "]]",
	"coproc",   "kv",
};

static bool is_own(struct str word)
{
	for (size_t i = 0; i < sizeof(own_words) / sizeof(own_words[0]); i++) {
		if (str_is(word, own_words[i]))
			return true;
	}
	return false;
}

/* Is TEXT one simple command of plain words, of which the first, FIRST, is a literal? */
static bool words_alone(struct str text, struct str *first)
{
	struct shell_lexer lexer;
	struct shell_token token;
	size_t words = 0;
	bool ended = false;

	shell_lexer_init(&lexer, text, NULL);
	for (;;) {
		shell_lexer_next(&lexer, &token);
		if (token.kind == SHELL_END)
			return words > 0 && lexer.outside == SHELL_LITERAL;
		if (token.kind == SHELL_NEWLINE && words > 0) {
			ended = true;
			continue;
		}
		if (token.kind != SHELL_WORD || ended)
			return false;
		/*
		 * Words of these kinds become one or more arguments; other kinds may have
		 * effects.
		 */
		if (token.reason != SHELL_LITERAL && token.reason != SHELL_PATTERN &&
		    token.reason != SHELL_BRACES && token.reason != SHELL_TILDE)
			return false;
		if (words++ == 0) {
			if (token.reason != SHELL_LITERAL || token.quoted ||
			    token.is_assignment ||
			    memchr(token.text.data, '\\', token.text.size) != NULL)
				return false;
			*first = token.text;
		}
	}
}

/* Is PATH a file that the kernel can start? Other files bash would run as a script. */
static bool is_program(const char *path)
{
	unsigned char begin[4];
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return false;
	auto_close int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	const ssize_t size = fd >= 0 ? read(fd, begin, sizeof(begin)) : -1;
	return size == sizeof(begin) &&
	       (memcmp(begin, "\177ELF", 4) == 0 || memcmp(begin, "#!", 2) == 0);
}

static bool find(struct str word, struct str search, struct buf *path)
{
	struct str folder;
	struct stat st;

	while (path_next_folder(&search, &folder)) {
		/* A relative folder of PATH depends on the shell's own folder. */
		if (folder.size == 0 || folder.data[0] != '/')
			return false;
		buf_clear(path);
		if (!buf_addstr(path, folder) || !buf_addc(path, '/') ||
		    !buf_addstr(path, word))
			return false;
		if (stat(path->data, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(path->data, X_OK) == 0)
			return is_program(path->data);
	}
	return false;
}

bool shell_alone(struct str text, const char *folder, const char *const *environment,
		 struct buf *path)
{
	struct str first, search = {0};
	struct buf whole;

	if (!words_alone(text, &first) || is_own(first) || first.size >= NAME_MAX)
		return false;
	for (; *environment != NULL; environment++) {
		if (strncmp(*environment, "PATH=", 5) == 0)
			search = str_of(*environment + 5);
	}
	if (memchr(first.data, '/', first.size) == NULL)
		return find(first, search, path);
	buf_init(&whole, PATH_MAX);
	if (first.data[0] != '/')
		(void)(buf_adds(&whole, folder) && buf_addc(&whole, '/'));
	(void)buf_addstr(&whole, first);
	const bool alone = !whole.overflowed && is_program(whole.data);
	buf_fini(&whole);
	buf_clear(path);
	return alone && buf_addstr(path, first);
}

/* These override the cell's own variables. */
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

/* Do the entries A and B ("NAME=value") set the same variable? */
static bool commands_same_variable(const char *a, const char *b)
{
	size_t size = strcspn(a, "=") + 1;

	return strncmp(a, b, size) == 0;
}

static bool is_named(const char *const *list, size_t count, const char *entry)
{
	for (size_t i = 0; i < count; i++) {
		if (commands_same_variable(list[i], entry))
			return true;
	}
	return false;
}

static size_t count_of(const char *const *list)
{
	size_t count = 0;

	while (list != NULL && list[count] != NULL)
		count++;
	return count;
}

const char **shell_command_environment(const char *const *cell, const char *const *more)
{
	const struct {
		const char *const *items;
		size_t count;
	} sources[] = {
		{cell, count_of(cell)},
		{quiet_environment,
		 sizeof(quiet_environment) / sizeof(quiet_environment[0])},
		{more, count_of(more)},
	};
	enum { SOURCES = sizeof(sources) / sizeof(sources[0]) };
	size_t used = 0, room = 1;
	const char **list;

	for (size_t i = 0; i < SOURCES; i++)
		room += sources[i].count;
	list = memory_array(room, sizeof(*list));
	for (size_t i = 0; i < SOURCES; i++) {
		for (size_t j = 0; j < sources[i].count; j++) {
			bool beaten = false;

			for (size_t k = i + 1; k < SOURCES && !beaten; k++)
				beaten = is_named(sources[k].items, sources[k].count,
						  sources[i].items[j]);
			if (!beaten)
				list[used++] = sources[i].items[j];
		}
	}
	return list;
}

enum {
	/*
	 * Our descriptors, above the numbers that scripts use (0-9) and away from those
	 * that bash uses (10 and 255, 63 downwards).
	 */
	BASH_TEXT_FD = 200,
	BASH_GO_FD = 201,
	BASH_FOLDER_FD = 230,
	BASH_FD_LIMIT = 256, /* the least limit of open files that has them all */
	WRAPPER_MAX = 1024,
	FIRST_LINE_MAX = 1 << 20, /* a folder and changed variables, quoted */
	REHEARSED_BYTES = 8 << 10,
};

/*
 * Append a rehearsal of the steps of the wrapper. When bash repeats them later, its heap
 * and its stack have grown already.
 */
static void add_rehearsal(struct buf *wrapper, int go_fd)
{
	(void)buf_addf(wrapper,
		       "eval \"eval '{ builtin pwd -P >/dev/null; } 2>&-'\"; "
		       "IFS= read -r -d '' GLOVEBOX_TEXT </dev/null; "
		       "eval -- \"$GLOVEBOX_TEXT\"; read -t 0 -u %d; "
		       "printf -v GLOVEBOX_TEXT %%%ds; GLOVEBOX_TEXT=; ",
		       go_fd, REHEARSED_BYTES);
}

/*
 * All on one line, so that the line numbers in bash's messages are those of the text. The
 * trap comes first, because it is the slowest step, and at this time nobody waits for it.
 */
static void add_wrapper(struct buf *wrapper, int text_fd, int go_fd, int folder_fd)
{
	buf_addf(wrapper,
		 "trap '{ builtin pwd -P >&%d; } 2>&-' EXIT; "
		 "IFS= read -r -u %d GLOVEBOX_TEXT || exit; "
		 "[[ -z $GLOVEBOX_TEXT ]] || "
		 "{ IFS= read -r -d '' -u %d GLOVEBOX_TEXT && eval -- \"$GLOVEBOX_TEXT\"; } || exit; "
		 "IFS= read -r -d '' -u %d GLOVEBOX_TEXT; exec %d<&- %d<&-; "
		 "SECONDS=0; eval -- \"$GLOVEBOX_TEXT\"",
		 folder_fd, go_fd, text_fd, text_fd, text_fd, go_fd);
}

void bash_shell_init(struct bash_shell *shell)
{
	*shell = (struct bash_shell){
		.program.pipes = {-1, -1},
		.text_fd = -1,
		.go_fd = -1,
		.folder_fd = -1,
	};
}

void bash_shell_fini(struct bash_shell *shell)
{
	program_ahead_end(&shell->program);
	fd_close(&shell->text_fd);
	fd_close(&shell->go_fd);
	fd_close(&shell->folder_fd);
	free(shell->environment);
	shell->environment = NULL;
}

/* Replace *FD by a copy with a number of AT or above, which scripts do not use. */
static bool lift(int *fd, int at)
{
	int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, at);

	if (lifted < 0)
		return false;
	fd_close(fd);
	*fd = lifted;
	return true;
}

static bool start(struct bash_shell *shell, const struct call *call, const char *folder,
		  int terminal, const int fds[2], struct err *err)
{
	const int go_fd = fds[0], folder_fd = fds[1];
	const int more[] = {shell->text_fd, go_fd, folder_fd, -1};
	struct buf wrapper;

	shell->environment = shell_command_environment(call->environment, NULL);
	buf_init(&wrapper, WRAPPER_MAX);
	if (shell->folder != NULL)
		add_rehearsal(&wrapper, go_fd);
	add_wrapper(&wrapper, shell->text_fd, go_fd, folder_fd);
	const char *const argv[] = {"bash", "--noprofile", "--norc",
				    "-c",   wrapper.data,  NULL};
	const struct program_start program = {
		.argv = argv,
		.environment = shell->environment,
		.folder = folder,
		.fds = {terminal, terminal, terminal},
		.terminal = terminal >= 0,
		.more_fds = more,
		.terms = call->terms,
	};
	bool ok = program_start_ahead(&program, &shell->program, err);
	buf_fini(&wrapper);
	return ok;
}

bool bash_shell_start(struct bash_shell *shell, const struct call *call,
		      const char *folder, int terminal, struct err *err)
{
	int go[2] = {-1, -1}, told[2] = {-1, -1};
	bool ok = fd_memory_file("command", (struct str){"", 0}, &shell->text_fd, err) &&
		  fd_pipe(go, err) && fd_pipe(told, err) &&
		  /*
		   * A command that fills the pipe must not block the shell's last step.
		   */
		  fd_set_blocking(told[0], false, err) &&
		  fd_set_blocking(told[1], false, err);

	if (ok && (!lift(&shell->text_fd, BASH_TEXT_FD) || !lift(&go[0], BASH_GO_FD) ||
		   !lift(&told[1], BASH_FOLDER_FD)))
		ok = err_set(err, errno,
			     "No descriptor %d to %d can be had (%s): start glovebox with "
			     "`ulimit -n %d` or more.",
			     BASH_TEXT_FD, BASH_FOLDER_FD, strerror(errno), BASH_FD_LIMIT);
	const int ends[] = {go[0], told[1]};
	ok = ok && start(shell, call, folder, terminal, ends, err);
	fd_close(&go[0]);
	fd_close(&told[1]);
	if (ok) {
		shell->go_fd = go[1];
		shell->folder_fd = told[0];
		return true;
	}
	fd_close(&go[1]);
	fd_close(&told[0]);
	bash_shell_fini(shell);
	return false;
}

/*
 * Is VARIABLE one that bash runs, obeys or keeps to itself? Only a new shell treats such
 * a variable as `bash -c` would.
 */
static bool is_the_shells_own(const char *variable)
{
	static const char *const own[] = {
		"SHELLOPTS", "POSIXLY_CORRECT",
		"PWD",       "OLDPWD",
		"SHLVL",     "IFS",
		"_",         "ENV",
		"PPID",      "UID",
		"EUID",      "PS4",
	};

	if (strncmp(variable, "BASH", 4) == 0)
		return true;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		size_t size = strlen(own[i]);
		if (strncmp(variable, own[i], size) == 0 && variable[size] == '=')
			return true;
	}
	return false;
}

bool bash_shell_start_ahead(struct bash_shell *shell, const struct call *call,
			    struct err *err)
{
	for (const char *const *at = call->environment; at && *at; at++) {
		if (is_the_shells_own(*at))
			return err_set(err, EINVAL, "%s is for a new shell", *at);
	}
	if (stat(call->folder, &shell->folder_was) < 0)
		return err_set(err, errno, "%s: %s", call->folder, strerror(errno));
	shell->folder = call->folder;
	if (!bash_shell_start(shell, call, call->folder, -1, err))
		return false;
	/*
	 * This allocates the first page of the file in advance. An empty text ends at the
	 * NUL.
	 */
	(void)!pwrite(shell->text_fd, "", 1, 0);
	return true;
}

static bool can_be_set(const char *variable)
{
	size_t size = strcspn(variable, "=");

	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)variable[i]) && variable[i] != '_')
			return false;
	}
	return size > 0 && !isdigit((unsigned char)variable[0]) &&
	       !is_the_shells_own(variable);
}

static const char *find_variable(const char *const *list, const char *variable)
{
	while (*list != NULL && !commands_same_variable(*list, variable))
		list++;
	return *list;
}

/*
 * Append the changes from WAS to NOW. False: only a new shell can have NOW as its
 * environment.
 */
static bool add_changes(struct buf *line, const char *const *was, const char *const *now)
{
	size_t same = 0;

	while (was[same] != NULL && now[same] != NULL && strcmp(was[same], now[same]) == 0)
		same++;
	if (was[same] == NULL && now[same] == NULL)
		return true;
	for (const char *const *at = now; *at != NULL; at++) {
		const char *old = find_variable(was, *at);
		if (old != NULL && strcmp(old, *at) == 0)
			continue;
		if (!can_be_set(*at))
			return false;
		(void)buf_addf(line, "export %.*s=", (int)strcspn(*at, "="), *at);
		shell_token_add_word(*at + strcspn(*at, "=") + 1, line);
		(void)buf_adds(line, "; ");
	}
	for (const char *const *at = was; *at != NULL; at++) {
		if (find_variable(now, *at) != NULL)
			continue;
		if (!can_be_set(*at))
			return false;
		(void)buf_addf(line, "unset -v %.*s; ", (int)strcspn(*at, "="), *at);
	}
	return true;
}

/* Is the shell in FOLDER already? It is not when the folder was made anew meanwhile. */
static bool stands_in(const struct bash_shell *shell, const char *folder)
{
	struct stat now;

	return shell->folder == NULL ||
	       (strcmp(shell->folder, folder) == 0 && stat(folder, &now) == 0 &&
		now.st_ino == shell->folder_was.st_ino &&
		now.st_dev == shell->folder_was.st_dev);
}

static bool add_first_line(const struct bash_shell *shell, const struct bash_text *text,
			   struct buf *line)
{
	auto_free const char **now = NULL;
	char room[PATH_MAX];

	if (shell->folder != NULL) {
		now = shell_command_environment(text->environment, NULL);
		if (!add_changes(line, shell->environment, now))
			return false;
	}
	if (!stands_in(shell, text->folder)) {
		(void)buf_adds(line, "builtin cd -P -- ");
		shell_token_add_word(program_folder(text->terms, text->folder, room), line);
		/* The same state as in a shell that began there. */
		(void)buf_adds(line, " && unset -v OLDPWD && declare -x OLDPWD");
	}
	return !line->overflowed;
}

/*
 * Is every variable of ENVIRONMENT an ordinary one for bash? Another one could be a
 * function with the name of a program.
 */
static bool is_plain(const char *const *environment)
{
	for (; *environment != NULL; environment++) {
		if (is_the_shells_own(*environment))
			return false;
	}
	return true;
}

/*
 * Append the words by which the shell becomes the program. They are on the line of the
 * text: bash then counts SHLVL down again, and sets _ to the program.
 */
static void add_becoming(const struct bash_text *text, struct buf *line)
{
	struct buf path;

	if (text->stays || !is_plain(text->environment))
		return;
	buf_init(&path, PATH_MAX);
	if (shell_alone(text->text, text->folder, text->environment, &path)) {
		(void)buf_adds(line, "((SHLVL++)); _=");
		shell_token_add_word(path.data, line);
		(void)buf_adds(line, " exec -- ");
	}
	buf_fini(&path);
}

bool bash_shell_take(struct bash_shell *ready, struct bash_shell *shell,
		     const struct bash_text *text)
{
	struct buf line;

	buf_init(&line, FIRST_LINE_MAX);
	bool ok = program_ahead_lives(&ready->program) &&
		  add_first_line(ready, text, &line);
	buf_fini(&line);
	if (ok) {
		*shell = *ready;
		bash_shell_init(ready);
		return true;
	}
	bash_shell_fini(ready);
	return false;
}

bool bash_shell_go(struct bash_shell *shell, const struct bash_text *text, struct err *err)
{
	struct buf line;

	buf_init(&line, FIRST_LINE_MAX);
	bool ok = add_first_line(shell, text, &line);
	/*
	 * Write at a fixed place, because a plain write would move the position from
	 * which the shell reads.
	 */
	const bool changes = ok && line.size > 0;
	ok = ok && (!changes || buf_addc(&line, '\0'));
	add_becoming(text, &line);
	const size_t begin = line.size;
	ok = ok && !line.overflowed &&
	     (begin == 0 || pwrite(shell->text_fd, line.data, begin, 0) == (ssize_t)begin);
	for (size_t done = 0; ok && done < text->text.size;) {
		ssize_t n = pwrite(shell->text_fd, text->text.data + done,
				   text->text.size - done, (off_t)(begin + done));
		ok = n > 0 || (n < 0 && errno == EINTR);
		done += n > 0 ? (size_t)n : 0;
	}
	buf_fini(&line);
	/* A line that is not empty says that the file begins with changes. */
	const struct str go = str_of(changes ? "1\n" : "\n");
	ok = ok && write(shell->go_fd, go.data, go.size) == (ssize_t)go.size;
	fd_close(&shell->text_fd);
	fd_close(&shell->go_fd);
	return ok || err_set(err, errno, "The shell could not be given its text: %s.",
			     strerror(errno));
}

struct program_ahead bash_shell_take_program(struct bash_shell *shell)
{
	struct program_ahead program = shell->program;

	shell->program = (struct program_ahead){.pipes = {-1, -1}};
	return program;
}
