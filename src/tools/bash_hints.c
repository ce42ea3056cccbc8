/*
 * bash_hints: a table of programs, their options for use without a terminal, and the
 * remedies.
 */

#include "tools/bash.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "tool/denial.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <string.h>

struct terminal_program {
	const char *names; /* blank-separated */
	/* arguments with which no terminal is needed; "*" ends a beginning */
	const char *fine;
	/* it needs a terminal only without arguments and without input */
	bool only_bare;
	const char *remedy;
};

static const struct terminal_program programs[] = {
	{"vi vim view vimdiff nvim", "-e -E -es -Es -s --headless", false,
	 "Change files with edit_file or write_file, or with sed -i."},
	{"emacs", "--batch -batch --script* -Q--batch", false,
	 "Change files with edit_file or write_file, or with emacs --batch."},
	{"nano pico micro joe mcedit", "", false,
	 "Change files with edit_file or write_file, or with sed -i."},
	{"less more most", "", false,
	 "Output needs no pager here: leave it away, or use read_file, head or tail."},
	{"top", "-b*", false, "Use top -b -n 1 | head -40, or ps aux --sort=-%cpu."},
	{"iotop", "-b*", false, "Use iotop -b -n 1."},
	{"htop btop atop nvtop", "", false,
	 "Use top -b -n 1 | head -40, or ps aux --sort=-%cpu."},
	{"watch", "", false, "Run the command once, or in a loop with a fixed count."},
	{"ssh", "-oBatchMode=yes BatchMode=yes -V -G -Q*", false,
	 "Use ssh -o BatchMode=yes HOST COMMAND, which fails instead of asking."},
	{"sftp", "-b*", false, "Use sftp -b FILE HOST."},
	{"telnet ftp", "", false, "Use curl, or nc with its input from a file."},
	{"mc ranger lazygit tig ncdu", "", false,
	 "Use list_files, du -sh, git log or git diff instead."},
	{"python python2 python3 ipython bpython node irb ghci lua julia", "", true,
	 "Without arguments it waits for typed input: use -c 'CODE' (node: -e), a script, or a "
	 "here-document."},
};

static const struct {
	const char *names, *meaning;
} ones[] = {
	{"grep egrep fgrep rg zgrep pgrep", "no match"},
	{"diff cmp", "the files differ"},
	{"test [ [[", "false"},
};

/*
 * Is WORD among the blank-separated LIST? An entry that ends in "*" fits every word with
 * its beginning.
 */
static bool is_in(struct str word, const char *list)
{
	struct str rest = str_of(list), entry;

	while (str_next_word(&rest, &entry)) {
		bool open = entry.size > 1 && str_ends(entry, STR("*"));

		entry.size -= open;
		if (open ? str_starts(word, entry) : str_equal(word, entry))
			return true;
	}
	return false;
}

static bool needs_terminal(const struct terminal_program *program,
			   const struct shell_command *command)
{
	if (program->only_bare)
		return command->count == 1 && !command->input_given;
	for (size_t i = 1; i < command->count; i++) {
		if (is_in(command->words[i], program->fine) ||
		    is_in(command->words[i], "--help --version"))
			return false;
	}
	return true;
}

bool bash_hints_interactive_refuses(struct str command, bool is_last, struct buf *sentence)
{
	struct shell_command simple;
	struct shell_scan scan;
	bool refuses = false;

	shell_scan_init(&scan, command);
	while (!refuses && shell_scan_next(&scan, &simple)) {
		struct str name = shell_words_program(simple.words[0]);

		for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
			if (!is_in(name, programs[i].names) ||
			    !needs_terminal(&programs[i], &simple))
				continue;
			buf_addf(sentence,
				 "%.*s needs a person at a terminal, and there is none here, so "
				 "nothing was run. %s",
				 (int)name.size, name.data, programs[i].remedy);
			if (!is_last)
				buf_adds(sentence,
					 " To type step by step: \"tty\": true with "
					 "\"background\": true, then the tool job with "
					 "\"action\": \"input\".");
			refuses = true;
			break;
		}
	}
	shell_scan_fini(&scan);
	return refuses;
}

static const char *meaning_of_1(const struct shell_command *command)
{
	if (command->count > 1 && str_is(command->words[0], "git") &&
	    is_in(command->words[1], "grep diff"))
		return str_is(command->words[1], "grep") ? "no match"
							 : "there are differences";
	for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
		if (is_in(shell_words_program(command->words[0]), ones[i].names))
			return ones[i].meaning;
	}
	return NULL;
}

static const char *meaning_of_127(const struct shell_command *command)
{
	return is_in(shell_words_program(command->words[0]), "apply_patch applypatch")
		       ? "no program here: give the patch to the tool apply_patch"
		       : NULL;
}

const char *bash_hints_interactive_meaning(struct str command, int code)
{
	const char *meaning = NULL;
	struct shell_command simple;
	struct shell_scan scan;

	if (code != 1 && code != INTERACTIVE_NOT_FOUND)
		return NULL;
	shell_scan_init(&scan, command);
	while (shell_scan_next(&scan, &simple))
		meaning = code == 1 ? meaning_of_1(&simple) : meaning_of_127(&simple);
	shell_scan_fini(&scan);
	return meaning;
}

/* Makes lines for a person from git's own words and the words of the command. */

enum {
	LINE_MAX_BYTES = 400, /* nobody would read a longer line before running it */
	LINES_MAX = 4,
	REMEDY_MAX = 4096,
};

#define AND " && "

struct said {
	struct buf lines; /* joined by AND, which none of them contains */
	unsigned count;
};

/*
 * Can WORD stand in a line without quotes? Its characters have no special meaning for a
 * shell or a reader.
 */
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
	/* A command that occurs twice gives one line. */
	if (fits && said->count < LINES_MAX && !is_said(said, buf_str(&line))) {
		if (said->count++ > 0)
			(void)buf_adds(&said->lines, AND);
		(void)buf_addstr(&said->lines, buf_str(&line));
	}
	buf_fini(&line);
}

/* The part of TEXT between START and END; empty when there is none. */
static struct str between(struct str text, const char *start, const char *end)
{
	size_t from = str_find(text, str_of(start), 0);

	if (from == (size_t)-1)
		return (struct str){"", 0};
	from += strlen(start);
	size_t to = str_find(text, str_of(end), from);
	return to == (size_t)-1 ? (struct str){"", 0} : str_part(text, from, to - from);
}

/* Git says "branch 'x' set up to track 'origin/x'." although it could not record this. */
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

/* Git renamed or removed a branch, but not the branch's section in the configuration. */
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

/*
 * `git checkout -q -b x origin/x` prints nothing about the setting that it could not
 * record.
 */
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

/*
 * Does COMMAND write settings of the repository, and do nothing else except what belongs
 * to this?
 */
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
		/*
		 * a line made from the arguments would lose the options before the
		 * subcommand
		 */
		return;
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

void bash_hints_git_said(struct str command, struct str output, struct tool_result *result)
{
	struct said said = {.count = 0};
	struct shell_command one;
	struct shell_scan scan;
	struct buf remedy;
	/*
	 * OUTPUT may be the text of RESULT, which moves when text is added to it, so look
	 * first.
	 */
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
