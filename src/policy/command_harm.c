/*
 * command_harm: the table of harmful commands, their checks, and the walk over the
 * commands of a text.
 */

#include "policy/command_harm.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/shell.h"
#include "policy/policy.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMMAND_INNER_MAX = 4,    /* depth of texts and finds inside others */
	COMMAND_FOLDERS_MAX = 16, /* depth of subshells whose folder is tracked */
};

#define UNDO_ALL_BUT_IGNORED                                                     \
	"glovebox undo brings back what it has kept of the workspace, which is " \
	"everything but the files that git ignores."

static struct str word_of(const struct command_seen *seen, size_t at)
{
	return shell_command_value(seen->command, at);
}

/*
 * Is WORD one of LONGS, or a beginning of one that is long enough for programs that
 * accept beginnings?
 */
static bool is_long(struct str word, const char *longs)
{
	enum { BEGINNING_MIN = sizeof("--xx") - 1 };
	struct str rest = str_of(longs), name;

	while (str_next_word(&rest, &name)) {
		if (word.size >= BEGINNING_MIN && str_starts(name, word))
			return true;
	}
	return false;
}

/*
 * Do the options contain one of LETTERS behind a single dash, or one of the words
 * LONGS?
 */
static bool has_option(const struct command_seen *seen, size_t from, const char *letters,
		       const char *longs)
{
	for (size_t i = from; i < seen->command->count; i++) {
		struct str word = word_of(seen, i);

		if (str_is(word, "--"))
			break;
		if (word.size < 2 || word.data[0] != '-')
			continue;
		if (word.data[1] == '-') {
			if (is_long(word, longs))
				return true;
			continue;
		}
		for (size_t j = 1; j < word.size; j++) {
			if (strchr(letters, word.data[j]) != NULL)
				return true;
		}
	}
	return false;
}

/* If *REST begins with one of TEXTS, remove that text from *REST. */
static bool take_first(struct str *rest, const char *const *texts)
{
	for (; *texts != NULL; texts++) {
		struct str text = str_of(*texts);

		if (str_starts(*rest, text) &&
		    (rest->size == text.size || rest->data[text.size] == '/')) {
			*rest = str_part(*rest, text.size, rest->size);
			return true;
		}
	}
	return false;
}

/*
 * Cut a pattern for all names in a folder: removing them is as harmful as removing the
 * folder.
 */
static void take_pattern(struct str *rest)
{
	static const char *const patterns[] = {"*", ".*", "**", ".[!.]*", "{*,.*}", NULL};

	for (size_t i = 0; patterns[i] != NULL; i++) {
		struct str pattern = str_of(patterns[i]);
		size_t before = rest->size - pattern.size;

		if (str_ends(*rest, pattern) &&
		    (before == 0 || rest->data[before - 1] == '/')) {
			rest->size = before;
			return;
		}
	}
}

enum place { PLACE_UNKNOWN, PLACE_HOME, PLACE_PATH };

/*
 * Find the place that the word AT of SEEN names: a PATH (absolute, normal), the home,
 * or unknown.
 */
static enum place place_of(const struct command_seen *seen, size_t at, struct buf *path)
{
	static const char *const homes[] = {"~", "$HOME", "${HOME}", NULL};
	static const char *const here[] = {"$PWD", "${PWD}", "$(pwd)", "`pwd`", NULL};
	struct str given = word_of(seen, at), rest;
	bool known = seen->command->values[at].data != NULL, home = false,
	     in_folder = false;
	struct buf plain;
	enum place place = PLACE_UNKNOWN;

	buf_init(&plain, PATH_MAX);
	for (size_t i = 0; i < given.size; i++) {
		if (known || given.data[i] != '"')
			(void)buf_addc(&plain, given.data[i]);
	}
	rest = buf_str(&plain);
	if (!known) {
		home = take_first(&rest, homes);
		in_folder = !home && take_first(&rest, here);
		take_pattern(&rest);
	}
	if (!plain.overflowed && (known || strcspn(rest.data, "$`*?[]{}~") >= rest.size)) {
		bool absolute = !in_folder && rest.size > 0 && rest.data[0] == '/';
		const char *base = absolute ? "/" : seen->folder;
		auto_free char *text = memory_copy_str(rest);
		const char *relative = in_folder ? text + strspn(text, "/") : text;

		if (home)
			place = strspn(text, "/.") == rest.size ? PLACE_HOME
								: PLACE_UNKNOWN;
		else if (base != NULL && (rest.size > 0 || !known) &&
			 path_normal(base, *relative != '\0' ? relative : ".", path))
			place = PLACE_PATH;
	}
	buf_fini(&plain);
	return place;
}

/*
 * Is PATH the workspace, a folder above it, its repository, or another whole folder of
 * `write`?
 */
static bool is_much(const char *path, const struct policy *policy)
{
	const char *workspace = policy->workspace;

	if (strcmp(path, "/") == 0)
		return true;
	if (workspace != NULL && (path_within(workspace, path) ||
				  (path_within(path, workspace) &&
				   strcmp(path_relative(path, workspace), ".git") == 0)))
		return true;
	for (size_t i = 0; i < policy->write.count; i++) {
		const char *root = policy->write.items[i].path;

		if (root != NULL && (workspace == NULL || !path_within(root, workspace)) &&
		    path_within(root, path))
			return true;
	}
	return false;
}

static bool removes_much(const struct command_seen *seen, const struct policy *policy)
{
	bool much = false, operands = false;

	if (!has_option(seen, 1, "rR", "--recursive"))
		return false;
	for (size_t i = 1; i < seen->command->count && !much; i++) {
		struct str word = word_of(seen, i);
		enum place place;
		struct buf path;

		if (!operands && str_starts(word, STR("-"))) {
			operands = str_is(word, "--");
			continue;
		}
		buf_init(&path, PATH_MAX);
		place = place_of(seen, i, &path);
		much = place == PLACE_HOME ||
		       (place == PLACE_PATH && is_much(path.data, policy));
		buf_fini(&path);
	}
	return much;
}

/* The index of the first option of git's SUBCOMMAND; 0: the subcommand is another one. */
static size_t behind_git(const struct command_seen *seen, const char *subcommand)
{
	size_t at = shell_command_git(seen->command);

	return at < seen->command->count && str_is(word_of(seen, at), subcommand) ? at + 1
										  : 0;
}

static bool cleans(const struct command_seen *seen, const char *letters)
{
	size_t at = behind_git(seen, "clean");

	return at > 0 && has_option(seen, at, "f", "--force") &&
	       has_option(seen, at, letters, "") && !has_option(seen, at, "n", "--dry-run");
}

static bool cleans_ignored(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	return cleans(seen, "xX");
}

static bool cleans_folders(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	return cleans(seen, "d");
}

static bool pushes_over(const struct command_seen *seen, const struct policy *policy)
{
	size_t at = behind_git(seen, "push");

	(void)policy;
	if (at == 0 || has_option(seen, at, "n", "--dry-run"))
		return false;
	if (has_option(seen, at, "f", "--force --mirror"))
		return true;
	for (; at < seen->command->count; at++) {
		if (str_starts(word_of(seen, at), STR("+")))
			return true;
	}
	return false;
}

static bool resets(const struct command_seen *seen, const struct policy *policy)
{
	size_t at = behind_git(seen, "reset");

	(void)policy;
	return at > 0 && has_option(seen, at, "", "--hard");
}

/* dd of=FILE, except for devices without content and files of the cell itself. */
static bool overwrites(const struct command_seen *seen, const struct policy *policy)
{
	static const char harmless[] =
		"/dev/null /dev/zero /dev/full /dev/stdout /dev/stderr "
		"/dev/tty";

	for (size_t i = 1; i < seen->command->count; i++) {
		struct str word = word_of(seen, i);
		struct str file = str_part(word, sizeof("of=") - 1, word.size);
		bool own = str_starts(file, STR("/tmp/")) ||
			   str_starts(file, STR("/dev/fd/")) ||
			   str_starts(file, STR("$TMPDIR/"));

		if (str_starts(word, STR("of=\"")))
			own |= str_starts(file, STR("\"$TMPDIR/")) ||
			       str_starts(file, STR("\"${TMPDIR}/"));
		/* A workspace below /tmp does not belong to the cell itself. */
		if (own && policy->workspace != NULL &&
		    seen->command->values[i].data != NULL &&
		    path_within(seen->command->values[i].data + sizeof("of=") - 1,
				policy->workspace))
			own = false;
		if (str_starts(word, STR("of=")) && !own && !str_among(harmless, file))
			return true;
	}
	return false;
}

static bool always(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	return seen->command->count > 1 && !has_option(seen, 1, "V", "--help --version");
}

/* chmod -R with a mode that lets everybody write. */
static bool opens_all(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	if (!has_option(seen, 1, "R", "--recursive"))
		return false;
	for (size_t i = 1; i < seen->command->count; i++) {
		if (str_among("777 0777 1777 2777 a+rwx a=rwx +rwx ugo+rwx ugo=rwx a+rwX "
			      "a=rwX ugo+rwX",
			      word_of(seen, i)))
			return true;
	}
	return false;
}

static const struct row {
	const char *programs; /* separated by blanks; a final "*" matches any rest */
	struct command_harm harm;
} rows[] = {
	{"rm",
	 {"rm -r", true, removes_much,
	  "removes a whole workspace, its repository, a folder above them, or the home",
	  UNDO_ALL_BUT_IGNORED " To empty a folder of a build, name that folder."}},
	{"git",
	 {"git clean -x", true, cleans_ignored,
	  "removes what git does not know, ignored files (.env, build trees, caches) as well",
	  "Ignored files are not in undo: they are gone. git clean -nd shows what it would take; "
	  "glovebox undo brings back the files that were not ignored."}},
	{"git",
	 {"git clean -d", false, cleans_folders,
	  "removes all files and folders that were never added to git",
	  "glovebox undo brings them back; git clean -nd shows what it would take."}},
	{"git",
	 {"git push --force", true, pushes_over,
	  "puts other commits in the place of those the remote has",
	  "Undo reaches no remote: the old commits come back by pushing their ids (git reflog, "
	  "or the remote's own log). --force-with-lease refuses where somebody else has pushed."}},
	{"git",
	 {"git reset --hard", false, resets,
	  "throws away every change of tracked files that was not committed",
	  "glovebox undo brings them back; git stash would have kept them."}},
	{"dd",
	 {"dd of=", true, overwrites, "writes over the file or device that of= names",
	  "glovebox undo brings back a file of the workspace that git does not ignore."}},
	{"mkfs mkfs.* mke2fs mkswap wipefs blkdiscard",
	 {"mkfs", true, always, "makes a file system (or none) of what its argument holds",
	  "glovebox undo brings back a file of the workspace that git does not ignore; devices are "
	  "not there in the cell."}},
	{"chmod",
	 {"chmod -R 777", true, opens_all,
	  "lets everybody write, and run, every file below its folders",
	  "glovebox undo puts the modes back. Give the one folder that needs it u+w or g+w."}},
};

static bool is_of(const struct row *row, struct str program)
{
	struct str rest = str_of(row->programs), name;

	while (str_next_word(&rest, &name)) {
		bool open = str_ends(name, STR("*"));

		name.size -= open;
		if (open ? str_starts(program, name) : str_equal(program, name))
			return true;
	}
	return false;
}

const struct command_harm *command_harm_find(const struct command_seen *seen,
					     const struct policy *policy)
{
	struct str program = shell_words_program(word_of(seen, 0));

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (is_of(&rows[i], program) && rows[i].harm.fits(seen, policy))
			return &rows[i].harm;
	}
	return NULL;
}

/* The state of the walk over one text. */
struct looking {
	const struct command_visit *visit;
	/* for each depth of subshells; NULL: not known */
	char *folders[COMMAND_FOLDERS_MAX];
	size_t depth;
	size_t inner;
	bool ended;
};

static void see_text(struct looking *looking, struct str text);

static void leave(struct looking *looking, size_t depth)
{
	for (; looking->depth > depth; looking->depth--) {
		free(looking->folders[looking->depth]);
		looking->folders[looking->depth] = NULL;
	}
}

/* Enter subshells up to DEPTH. Each begins in the folder of the shell around it. */
static void enter(struct looking *looking, size_t depth)
{
	leave(looking, depth);
	while (looking->depth < depth && looking->depth + 1 < COMMAND_FOLDERS_MAX) {
		looking->folders[looking->depth + 1] =
			memory_copy(looking->folders[looking->depth]);
		looking->depth++;
	}
}

static const char *folder_of(const struct looking *looking, size_t depth)
{
	return depth < COMMAND_FOLDERS_MAX ? looking->folders[depth] : NULL;
}

/* Follow `cd` and `pushd` when their target is known. */
static void take_folder(struct looking *looking, const struct shell_command *command)
{
	char **folder = &looking->folders[looking->depth];
	const char *to = command->count == 2 ? command->values[1].data : NULL;
	struct buf path;

	if (!str_among("cd pushd popd", command->words[0]))
		return;
	buf_init(&path, PATH_MAX);
	if (*folder != NULL || (to != NULL && to[0] == '/')) {
		const bool known = to != NULL && strcmp(to, "-") != 0 &&
				   str_among("cd pushd", command->words[0]) &&
				   path_normal(*folder ? *folder : "/", to, &path);

		free(*folder);
		*folder = known ? memory_copy(path.data) : NULL;
	}
	buf_fini(&path);
}

static void see_command(struct looking *looking, const struct shell_command *command);

/* Visit the commands that find starts, each up to its ";" or "+". */
static void see_find(struct looking *looking, const struct shell_command *command)
{
	for (size_t i = 1; i + 1 < command->count && !looking->ended; i++) {
		struct shell_command started = *command;

		if (!str_among("-exec -execdir -ok -okdir", command->words[i]))
			continue;
		started.words += i + 1;
		started.values += i + 1;
		for (started.count = 0; i + 1 < command->count &&
					!str_is(shell_command_value(command, i + 1), ";") &&
					!str_is(shell_command_value(command, i + 1), "+");
		     i++)
			started.count++;
		shell_command_strip(&started);
		if (started.count > 0)
			see_command(looking, &started);
	}
}

static void see_command(struct looking *looking, const struct shell_command *command)
{
	const struct command_seen seen = {command, folder_of(looking, command->depth)};
	struct str text;

	if (!looking->visit->visit(looking->visit->context, &seen)) {
		looking->ended = true;
		return;
	}
	/* Limit finds inside finds: each uses stack, and a text can hold too many. */
	if (looking->inner < COMMAND_INNER_MAX &&
	    str_is(shell_words_program(shell_command_value(command, 0)), "find")) {
		looking->inner++;
		see_find(looking, command);
		looking->inner--;
	}
	if (shell_command_inner(command, &text) && looking->inner < COMMAND_INNER_MAX) {
		struct looking inside = {.visit = looking->visit,
					 .inner = looking->inner + 1};

		inside.folders[0] = memory_copy(seen.folder);
		see_text(&inside, text);
		looking->ended = inside.ended;
	}
	if (command->depth < COMMAND_FOLDERS_MAX)
		take_folder(looking, command);
}

static void see_text(struct looking *looking, struct str text)
{
	struct shell_command command;
	struct shell_scan scan;

	shell_scan_init(&scan, text);
	while (!looking->ended && shell_scan_next(&scan, &command)) {
		enter(looking, command.depth);
		see_command(looking, &command);
	}
	shell_scan_fini(&scan);
	leave(looking, 0);
	free(looking->folders[0]);
}

void command_seen_text(struct str text, const char *folder, const struct command_visit *visit)
{
	struct looking looking = {.visit = visit};

	looking.folders[0] = memory_copy(folder);
	see_text(&looking, text);
}

void command_seen_argv(const char *const *argv, const char *folder,
		       const struct command_visit *visit)
{
	struct looking looking = {.visit = visit};
	struct shell_command command = {0};

	while (argv[command.count] != NULL)
		command.count++;
	auto_free struct str *words = memory_array(command.count + 1, sizeof(*words));
	for (size_t i = 0; i < command.count; i++)
		words[i] = str_of(argv[i]);
	command.words = command.values = words;
	shell_command_strip(&command);
	looking.folders[0] = memory_copy(folder);
	if (command.count > 0)
		see_command(&looking, &command);
	free(looking.folders[0]);
}
