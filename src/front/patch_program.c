/* patch_program: the folders that may be written, and the call of the tool's function. */
#include "front/patch_program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "front/verb.h"
#include "tool/call.h"
#include "tools/patches/patch.h"
#include "tools/tools.h"
#include "view/spec.h"

enum { ROOTS_MAX = 64, DEADLINE_S = 60 };

static const char help[] =
	"usage: apply_patch [--line-ends=file|given] [PATCH]\n\n"
	"Apply PATCH, or the one on standard input, to the working folder: the grammar of\n"
	"Codex (*** Begin Patch ... *** End Patch) or a unified diff. It is checked whole\n"
	"before anything is written; all files are changed or none. New lines get the line\n"
	"ends of their file, unless they are to keep those of the patch (given).\n\n"
	"Exit codes: 0 applied, 1 not applied (and why), 2 usage.\n\n"
	"Example\n"
	"  git diff HEAD~1 | apply_patch\n";

bool patch_program_is(const char *name)
{
	return name != NULL && strcmp(path_base_name(name), "apply_patch") == 0;
}

/*
 * Open the folders that the cell names as writable; without such a list, only the working
 * folder.
 */
static bool open_files(const char *folder, struct files **files, struct err *err)
{
	struct files_root roots[ROOTS_MAX];
	struct arena arena;
	struct str list = str_of(getenv(SPEC_WRITABLE)), entry;
	size_t count = 0;
	bool ok;

	arena_init(&arena);
	while (count < ROOTS_MAX && path_next_folder(&list, &entry)) {
		const char *path = arena_copy(&arena, entry);

		if (path[0] == '/' && access(path, W_OK) == 0)
			roots[count++] = (struct files_root){path, true, NULL};
	}
	if (count == 0)
		roots[count++] = (struct files_root){folder, true, NULL};
	ok = files_open(roots, count, folder, NULL, files, err);
	arena_fini(&arena);
	return ok;
}

static int apply(struct files *files, const char *folder, struct str patch, bool given_ends)
{
	auto_value struct value *arguments = value_new_object();
	struct call call = {
		.tool = &apply_patch_tool,
		.arguments = arguments,
		.files = files,
		.workspace = folder,
		.folder = folder,
		.deadline_ms = clock_deadline(DEADLINE_S),
		.control_fd = -1,
		.listener = -1,
		.fds = {-1, -1, -1},
	};
	struct tool_result result;
	int code;

	tool_result_init(&result);
	value_set_str(arguments, "patch", patch);
	value_set_text(arguments, "line_ends", given_ends ? "given" : "file");
	code = apply_patch_tool.execute(&call, &result) == RESULT_DONE ? CODE_DONE
								       : CODE_FAILED;
	(void)fprintf(code == CODE_DONE ? stdout : stderr, "%s\n", result.text.data);
	tool_result_fini(&result);
	return code;
}

static int complain(int code, const char *sentence)
{
	(void)fprintf(stderr, "apply_patch: %s\n", sentence);
	return code;
}

int patch_program_run(int argc, char **argv)
{
	char folder[PATH_MAX];
	struct files *files = NULL;
	struct buf input;
	struct err err = {0};
	int code = CODE_FAILED;
	bool given_ends = false;

	if (argc > 1 && str_starts(str_of(argv[1]), STR("--line-ends="))) {
		given_ends = strcmp(argv[1], "--line-ends=given") == 0;
		if (!given_ends && strcmp(argv[1], "--line-ends=file") != 0)
			return complain(CODE_USAGE, "--line-ends is file or given");
		argc--;
		argv++;
	}
	if (argc > 2)
		return complain(CODE_USAGE, "one patch at a time, as the argument or on "
					    "standard input");
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return fputs(help, stdout) < 0 ? CODE_FAILED : CODE_DONE;
	buf_init(&input, PATCH_BYTES_MAX);
	if (!getcwd(folder, sizeof(folder)))
		code = complain(CODE_FAILED, "the working folder is gone");
	else if (argc == 1 && !fd_read_all(STDIN_FILENO, &input, "standard input", &err))
		code = complain(CODE_FAILED, err.text);
	else if (!open_files(folder, &files, &err))
		code = complain(CODE_FAILED, err.text);
	else
		code = apply(files, folder, argc == 2 ? str_of(argv[1]) : buf_str(&input),
			     given_ends);
	files_close(files);
	buf_fini(&input);
	return code;
}
