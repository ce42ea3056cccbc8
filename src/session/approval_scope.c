/* approval_scope: the words of a scope, made from the parts of a command. */
#include "session/approval_scope.h"

#include "base/path.h"
#include "policy/command.h"

#include <string.h>

/*
 * Programs that run other programs or code, named by their words, options or input: the
 * first word does not say what would be run. A program is compared by the last part of
 * its path. Programs whose names end in a version (python3.11) are compared by the
 * beginning of the name.
 */
static const char runners[] =
	"sh bash dash zsh ksh mksh fish ash busybox toybox env sudo doas su runuser setpriv "
	"xargs parallel nohup nice ionice chrt taskset timeout time stdbuf setsid setarch script "
	"watch strace ltrace gdb chroot unshare nsenter exec eval source . command builtin trap "
	"find awk gawk mawk sed ssh make ninja just npx bunx pipx uvx deno bun "
	"tclsh expect osascript java";
static const char *const runner_families[] = {"python", "pypy", "perl", "ruby", "node",
					      "nodejs", "php",  "lua",  "guile"};

static bool is_runner(const char *program)
{
	const struct str name = str_of(path_base_name(program));

	if (str_among(runners, name))
		return true;
	for (size_t i = 0; i < sizeof(runner_families) / sizeof(runner_families[0]); i++) {
		const struct str family = str_of(runner_families[i]);
		const struct str version = str_part(name, family.size, name.size);

		if (str_starts(name, family) &&
		    strspn(version.data, "0123456789.-") >= version.size)
			return true;
	}
	return false;
}

/*
 * WORD has no blank, quote or operator: in a scope nobody can take it for more than one
 * word.
 */
static bool is_plain(const char *word)
{
	return word[0] != '\0' && word[0] != '-' &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_-./:@%+=,")] == '\0';
}

/*
 * Do the program and the first word of PART say what PART does? An option as the first
 * word is fine for a host, because the host is what is granted. It is never fine for a
 * command: `git -c …` can be any command.
 */
static bool is_told_by_words(const struct command_part *part, bool network)
{
	if (!is_plain(part->argv[0]) || is_runner(part->argv[0]))
		return false;
	if (part->argc == 1 || part->argv[1][0] == '-')
		return network;
	return is_plain(part->argv[1]);
}

void approval_scope(struct str text, bool network, struct buf *words)
{
	struct command command;
	bool told = command_parse(&command, text);

	for (size_t i = 0; told && i < command.count; i++)
		told = is_told_by_words(&command.parts[i], network);
	for (size_t i = 0; told && i < command.count; i++) {
		const struct command_part *part = &command.parts[i];

		if (i > 0)
			(void)buf_addf(words, " %s ", command_joins[part->join]);
		(void)buf_adds(words, part->argv[0]);
		if (part->argc > 1 && part->argv[1][0] != '-')
			(void)buf_addf(words, " %s", part->argv[1]);
	}
	command_fini(&command);
	if (!told)
		(void)buf_adds(words, "exactly this text");
}
