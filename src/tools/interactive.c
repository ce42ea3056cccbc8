/*
 * interactive: a table of programs, their ways without a terminal, and the remedy; see
 * interactive.h.
 */
#include "tools/interactive.h"

#include "base/text/shell.h"

#include <string.h>

struct terminal_program {
	const char *names; /* blank-separated */
	const char *fine;  /* arguments that do without; "*" ends a beginning */
	bool only_bare;    /* needs one only without arguments and without input */
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
 * Is WORD among the blank-separated LIST? An entry that ends in "*" stands for all that
 * begin so.
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

bool interactive_refuses(struct str command, bool is_last, struct buf *sentence)
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

const char *interactive_meaning(struct str command, int code)
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
