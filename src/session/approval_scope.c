/* approval_scope: see approval_scope.h. */
#include "session/approval_scope.h"

#include "base/path.h"
#include "policy/command.h"

#include <string.h>

/*
 * Programs that run what their words, options or input say: what their first word is says nothing
 * about what would be run. Compared by the last part of the path, and by what it begins with for
 * those that end in a version (python3.11).
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

/* No blank, quote or operator: in a scope it can pass for nothing but this one word. */
static bool is_plain(const char *word)
{
	return word[0] != '\0' && word[0] != '-' &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_-./:@%+=,")] == '\0';
}

/*
 * Do its program and first word say what PART does? An option as the first word says it for a host,
 * where the host is what is granted, and never for a command: `git -c …` is any command.
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
