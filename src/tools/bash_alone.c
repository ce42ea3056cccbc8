/* bash_alone: words, nothing of the shell's own, and a file; see bash_alone.h. */
#include "tools/bash_alone.h"

#include "base/fd.h"
#include "base/path.h"
#include "base/text/shell.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of bash 5.2, and what later ones add: what it runs itself, or what begins something longer. */
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

/* One simple command of plain words, whose first is all literal; that is FIRST. */
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
		/* These kinds become one argument, or several; the others may do things. */
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

/* A file that the kernel starts; what else bash would run as a text of its own. */
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
		/* The shell's own folder decides where a relative folder of PATH is. */
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

bool bash_alone(struct str text, const char *folder, const char *const *environment,
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
