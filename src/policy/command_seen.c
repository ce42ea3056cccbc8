/* command_seen: see command_seen.h. */
#include "policy/command_seen.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* One text while it is looked at. */
struct looking {
	const struct command_visit *visit;
	char *folders[COMMAND_FOLDERS_MAX]; /* of each subshell; NULL: not known */
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

/* COMMAND stands in subshells: their folder is that of the shell that begins them. */
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

/* `cd` and `pushd`, as far as they say where they lead. */
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

/* See the command that find starts for each file, up to its ";" or "+". */
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
	/* Each find within a find takes stack: a text can hold more of them than there is. */
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
