/*
 * glovebox demo: plays a whole session on a small project without a model. The model's
 * words are recorded; tools, cell, compiler and tests are real.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/terminal/console.h"
#include "front/verb.h"
#include "front/verbs/find_program.h"
#include "front/verbs/temp_tree.h"

static const char demo_files[] = "examples/demo/";
static const char demo_replay[] = "examples/demo/replay.json";

static const struct option_row demo_options[] = {
	{"plain", 0, OPTION_FLAG, NULL, "no colours and no spinner"},
	{"json", 0, OPTION_FLAG, NULL, "print one event per line, as JSON"},
	{"keep", 0, OPTION_FLAG, NULL, "leave the project's folder there afterwards"},
	OPTION_ROW_HELP,
	{0},
};

static bool write_demo(const char *folder, struct err *err)
{
	auto_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t count = 0;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (strncmp(file->name, demo_files, strlen(demo_files)) != 0 ||
		    strcmp(file->name, demo_replay) == 0)
			continue;
		if (!temp_tree_write(fd, file->name + strlen(demo_files),
				     (struct str){file->data, file->size},
				     file->executable ? 0755 : 0644, err))
			return err_while(err, "writing the demo into %s", folder);
		count++;
	}
	if (count == 0)
		return err_set(err, ENOENT, "this program was built without its demo");
	return true;
}

static const char demo_prompt[] =
	"A test of this project fails. Find out why, mend it, and show me the change.";

static int play(const char *folder, const struct options *options)
{
	struct screen_options plain = screen_options_of(STDOUT_FILENO);
	const struct talk_options talk_options = {
		.json = options_given(options, "json"),
		.screen = options_given(options, "plain") ? &plain : NULL,
		.model =
			{
				.name = "replay",
				.embedded = embedded_text(demo_replay),
				.temperature = CONFIG_TEMPERATURE_ABSENT,
			},
	};
	struct agent_outcome outcome = {0};
	struct console *console = NULL;
	struct talk *talk = NULL;
	struct setup setup;
	struct err err = {0};
	int code;

	plain.terminal = plain.colour = false;
	/* The demo asks nothing, but Escape must end it. */
	if (!talk_options.json && !console_open_if_any(&console, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (!setup_init_shipped(&setup, folder, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = talk_open(&talk_options, &setup, &talk);
	if (code == CODE_DONE)
		code = talk_told(talk, talk_turn(talk, demo_prompt, &outcome));
	talk_close(talk);
	console_close(console);
	if (code == CODE_DONE && outcome.last_exit_code != 0)
		code = verb_complain(CODE_FAILED, "the last run of the tests was not green");
	setup_fini(&setup);
	return code;
}

/* Check that the programs which build the project exist: the demo really runs them. */
static bool check_programs(struct err *err)
{
	static const char *const names[] = {"bash", "make", "cc"};
	struct buf path;
	bool found = true;

	buf_init(&path, 4096);
	for (size_t i = 0; found && i < sizeof(names) / sizeof(names[0]); i++)
		found = find_program(names[i], &path) ||
			err_set(err, ENOENT,
				"the demo compiles a small C project and needs %s, which is not "
				"there; on Debian and Ubuntu: sudo apt install %s",
				names[i],
				strcmp(names[i], "bash") == 0 ? "bash" : "build-essential");
	buf_fini(&path);
	return found;
}

static int demo_run(const struct options *options, FILE *out)
{
	struct buf folder;
	struct err err = {0};
	int code;

	(void)out;
	if (!check_programs(&err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	buf_init(&folder, PATH_MAX);
	if (!setup_temp_folder("demo", &folder, &err)) {
		buf_fini(&folder);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	if (!write_demo(folder.data, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = play(folder.data, options);
	if (options_given(options, "keep"))
		(void)fprintf(stderr, "The project is in %s\n", folder.data);
	else
		folder_remove(folder.data);
	buf_fini(&folder);
	return code;
}

static const char demo_help[] =
	"Copy a small C project with a failing test to a temporary folder and let an\n"
	"agent mend it there. Only the model's words are recorded: files, compiler,\n"
	"tests and the cell around them are real, and a result that does not fit the\n"
	"recording ends the demo. It needs make and a C compiler, and some seconds.\n\n"
	"Exit codes: 0 the last run of the tests was green, 1 it was not, 5 the cell\n"
	"could not be built.";

const struct verb verb_demo = {
	.name = "demo",
	.summary = "watch a whole session, without a model",
	.arguments = "",
	.help = demo_help,
	.example = "  glovebox demo --plain",
	.options = demo_options,
	.run = demo_run,
};
