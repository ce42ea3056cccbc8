/* git_said: from git's own words and the command's to lines for a person. */
#include "tools/git_said.h"

#include "base/buf.h"
#include "base/text/shell.h"
#include "tool/denial.h"

#include <string.h>

enum {
	LINE_MAX_BYTES = 400, /* a longer line nobody reads before he runs it */
	LINES_MAX = 4,
	REMEDY_MAX = 4096,
};

#define AND " && "

struct said {
	struct buf lines; /* joined by AND, which is in none of them */
	unsigned count;
};

/* Taken into a line as it stands: letters that mean nothing else to a shell or a reader. */
static bool is_literal(struct str word)
{
	for (size_t i = 0; i < word.size; i++) {
		unsigned char c = (unsigned char)word.data[i];
		if (c < ' ' || c == 0x7f || strchr("$`\\;&|<>(){}*?[]!", c) != NULL)
			return false;
	}
	return word.size > 0;
}

static bool is_said(const struct said *said, struct str line)
{
	struct str rest = buf_str(&said->lines);

	while (rest.size > 0) {
		const size_t end = str_find(rest, STR(AND), 0);

		if (str_equal(str_part(rest, 0, end), line))
			return true;
		if (end == (size_t)-1)
			break;
		rest = str_part(rest, end + strlen(AND), rest.size);
	}
	return false;
}

static void line_add(struct said *said, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void line_add(struct said *said, const char *format, ...)
{
	struct buf line;
	va_list arguments;

	buf_init(&line, LINE_MAX_BYTES);
	va_start(arguments, format);
	bool fits = buf_addv(&line, format, arguments);
	va_end(arguments);
	/* The same command twice is one line. */
	if (fits && said->count < LINES_MAX && !is_said(said, buf_str(&line))) {
		if (said->count++ > 0)
			(void)buf_adds(&said->lines, AND);
		(void)buf_addstr(&said->lines, buf_str(&line));
	}
	buf_fini(&line);
}

/* The part of TEXT between START and END, or the empty view. */
static struct str between(struct str text, const char *start, const char *end)
{
	size_t from = str_find(text, str_of(start), 0);

	if (from == (size_t)-1)
		return (struct str){"", 0};
	from += strlen(start);
	size_t to = str_find(text, str_of(end), from);
	return to == (size_t)-1 ? (struct str){"", 0} : str_part(text, from, to - from);
}

/* "branch 'x' set up to track 'origin/x'.": it is not. */
static void take_upstreams(struct said *said, struct str output)
{
	struct str line;

	while (str_next_line(&output, &line)) {
		struct str branch = between(line, "branch '", "' set up to track '");
		struct str upstream = between(line, "' set up to track '", "'");

		if (is_literal(branch) && is_literal(upstream))
			line_add(said, "git branch --set-upstream-to=%.*s %.*s",
				 (int)upstream.size, upstream.data, (int)branch.size,
				 branch.data);
	}
}

static bool has_word_from(const struct shell_command *command, size_t at, const char *words)
{
	for (size_t i = at; i < command->count; i++) {
		if (str_among(words, command->words[i]))
			return true;
	}
	return false;
}

static bool has_word(const struct shell_command *command, const char *words)
{
	return has_word_from(command, 2, words);
}

static void take_whole(struct said *said, const struct shell_command *command)
{
	struct buf line;
	bool literal = true;

	buf_init(&line, LINE_MAX_BYTES);
	for (size_t i = 0; i < command->count; i++) {
		literal = literal && is_literal(command->words[i]);
		(void)buf_addf(&line, "%s%.*s", i > 0 ? " " : "",
			       (int)command->words[i].size, command->words[i].data);
	}
	if (literal && !line.overflowed)
		line_add(said, "%s", line.data);
	buf_fini(&line);
}

/* A branch was renamed or removed; only its section was not. */
static void take_branch(struct said *said, const struct shell_command *command)
{
	struct str last = command->words[command->count - 1];
	struct str before = command->words[command->count - 2];

	if (has_word(command, "-m -M --move") && command->count >= 5 &&
	    is_literal(last) && is_literal(before))
		line_add(said, "git config --rename-section branch.%.*s branch.%.*s",
			 (int)before.size, before.data, (int)last.size, last.data);
	else if (has_word(command, "-d -D --delete") && is_literal(last))
		line_add(said, "git config --remove-section branch.%.*s", (int)last.size,
			 last.data);
	else if (!has_word(command, "-m -M --move"))
		take_whole(said, command);
}

/* `git checkout -q -b x origin/x` says nothing of what it wanted to record. */
static void take_start(struct said *said, const struct shell_command *command)
{
	for (size_t i = 2; i + 2 < command->count; i++) {
		struct str name = command->words[i + 1], start = command->words[i + 2];

		if (str_among("-b -B -c -C", command->words[i]) && is_literal(name) &&
		    is_literal(start) && str_find(start, STR("/"), 0) != (size_t)-1)
			line_add(said, "git branch --set-upstream-to=%.*s %.*s",
				 (int)start.size, start.data, (int)name.size, name.data);
	}
}

/* Does this `git config` (its subcommand is at AT) change settings of the repository? */
static bool config_records(const struct shell_command *command, size_t at)
{
	size_t operands = 0;

	if (has_word_from(command, at + 1,
			  "--get --get-all --get-regexp --get-urlmatch --get-color -l "
			  "--list --global --system -f --file") ||
	    str_among("get list", command->words[at + 1]))
		return false;
	for (size_t i = at + 1; i < command->count; i++)
		operands += !str_starts(command->words[i], STR("-"));
	return operands > 1 || has_word_from(command, at + 1,
					     "--unset --unset-all --remove-section -e "
					     "--edit edit");
}

/* Does it write settings of the repository, and do no more than that and what goes with it? */
static bool records(const struct shell_command *command, size_t at)
{
	static const struct {
		const char *name, *verbs;
	} kinds[] = {
		{"remote", "add rename remove rm set-url set-branches"},
		{"sparse-checkout", "set add init disable reapply"},
		{"submodule", "add init deinit update sync set-url set-branch "
			      "absorbgitdirs"},
		{"lfs", "install uninstall"},
		{"maintenance", "start stop register unregister"},
	};

	if (str_is(command->words[at], "config"))
		return config_records(command, at);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (str_is(command->words[at], kinds[i].name))
			return has_word_from(command, at + 1, kinds[i].verbs);
	}
	return false;
}

static void take_command(struct said *said, const struct shell_command *command)
{
	const size_t at = shell_command_git(command);

	if (command->count < at + 2 ||
	    !str_is(shell_words_program(command->words[0]), "git"))
		return;
	if (records(command, at))
		take_whole(said, command);
	else if (at > 1)
		return; /* a line made anew would lose the options before it */
	else if (str_is(command->words[1], "branch") &&
		 has_word(command, "-m -M --move -d -D --delete --edit-description"))
		take_branch(said, command);
	else if (str_among("checkout switch", command->words[1]))
		take_start(said, command);
}

static bool says_so(struct str output)
{
	static const struct str texts[] = {{"could not write config file ", 28},
					   {"could not lock config file ", 27},
					   {"Update of config-file failed", 28}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (str_find(output, texts[i], 0) != (size_t)-1)
			return true;
	}
	return false;
}

/*
 * The project's private home has no ~/.gitconfig of the person. A model that follows
 * git's advice would make up a name.
 */
static void tell_identity(struct tool_result *result)
{
	denial_add(result,
		   &(struct denial){
			   .kind = DENIAL_FS,
			   .target = "~/.gitconfig",
			   .rule = "private home",
			   .remedy = "the person's own is not shown; ask for name and "
				     "address, or see git log, and say them once: git "
				     "config --global, which stays for this project",
			   .guessed = true,
		   });
}

void git_said(struct str command, struct str output, struct tool_result *result)
{
	struct said said = {.count = 0};
	struct shell_command one;
	struct shell_scan scan;
	struct buf remedy;
	/* The output may be the result's own text, which moves when something is added to it. */
	const bool asks_identity =
		str_find(output, STR("Please tell me who you are"), 0) != (size_t)-1;

	if (!says_so(output)) {
		if (asks_identity)
			tell_identity(result);
		return;
	}
	buf_init(&said.lines, REMEDY_MAX);
	take_upstreams(&said, output);
	shell_scan_init(&scan, command);
	while (shell_scan_next(&scan, &one))
		take_command(&said, &one);
	shell_scan_fini(&scan);
	buf_init(&remedy, REMEDY_MAX);
	(void)buf_adds(&remedy,
		       "git's configuration is read-only here: what git wanted to record "
		       "in it was not recorded, even where git says it was");
	if (said.count > 0)
		(void)buf_addf(&remedy,
			       "; a person who wants it runs, outside in the repository: %s",
			       said.lines.data);
	denial_add(result, &(struct denial){.kind = DENIAL_FS,
					    .target = ".git/config",
					    .rule = "protected",
					    .remedy = remedy.data});
	if (asks_identity)
		tell_identity(result);
	buf_fini(&remedy);
	buf_fini(&said.lines);
}
