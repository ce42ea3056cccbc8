/* patches: reads, finds and prints records of patches. */

#include "front/patches.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/files.h"
#include "front/verb.h"
#include "store/patches.h"
#include "tool/call.h"
#include "tool/tool.h"
#include "tools/patches/patch.h"
#include "tools/tools.h"
#include "tui/paint.h"
#include "view/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text_of(const struct value *object, const char *key)
{
	const char *text = value_text(value_member(object, key));

	return text != NULL ? text : "";
}

static bool is_left_out(const struct value *file)
{
	return strcmp(text_of(file, "state"), "left_out") == 0;
}

static size_t lines_of(const struct value *file, const char *key)
{
	const int64_t lines = value_integer(value_member(file, key));

	return lines > 0 && lines < INT32_MAX ? (size_t)lines : 0;
}

static void read_details(struct patch_record *record, const struct value *details)
{
	const char *run = text_of(details, "run");
	const int64_t step = value_integer(value_member(details, "last_step"));

	record->title = text_of(details, "title");
	record->summary = text_of(details, "summary");
	record->run = run[0] != '\0' ? run : NULL;
	record->last_step = step > 0 && step <= UINT32_MAX ? (uint32_t)step : 0;
	record->files = value_member(details, "files");
	record->text = value_str(value_member(details, "patch"));
	hash_text(record->text, record->hash);
	record->caches = paint_count_caches(record->files);
	for (size_t i = 0; i < value_count(record->files); i++) {
		const struct value *file = value_item(record->files, i);

		if (!paint_is_cache(file)) {
			record->left_out += is_left_out(file);
			record->count += !is_left_out(file);
		}
		record->added += lines_of(file, "added");
		record->removed += lines_of(file, "removed");
	}
}

bool patch_record_read(const struct patch_row *row, struct patch_record *record)
{
	*record = (struct patch_record){
		.number = row->number,
		.wall_ms = row->wall_ms,
		.workspace = memory_copy_str(row->workspace),
		.agent = memory_copy_str(row->agent),
		.model = memory_copy_str(row->model),
		.title = "",
		.summary = "",
		.state = row->decision.state,
		.decided_ms = row->decision.wall_ms,
		.place = memory_copy_str(row->decision.place),
		.branch = memory_copy_str(row->decision.branch),
		.reason = memory_copy_str(row->decision.reason),
	};
	memcpy(record->id, row->id, sizeof(record->id));
	memcpy(record->session, row->session, sizeof(record->session));
	if (!value_parse(row->json, 0, &record->event, NULL) ||
	    strcmp(text_of(record->event, "tool"), "generate_patch") != 0 ||
	    strcmp(text_of(record->event, "status"), "done") != 0)
		return false;
	read_details(record, value_member(record->event, "details"));
	return record->count + record->left_out > 0;
}

void patch_record_fini(struct patch_record *record)
{
	value_free(record->event);
	free(record->workspace);
	free(record->agent);
	free(record->model);
	free(record->place);
	free(record->branch);
	free(record->reason);
	*record = (struct patch_record){0};
}

struct finding {
	struct patch_record *record;
	bool fine;
};

static void take_row(void *context, const struct patch_row *row)
{
	struct finding *finding = context;

	finding->fine = patch_record_read(row, finding->record);
}

static bool take_newest(void *context, const struct patch_row *row)
{
	struct finding *finding = context;

	patch_record_fini(finding->record);
	finding->fine = patch_record_read(row, finding->record);
	/* Skip runs that changed nothing: they have handed over no patch. */
	return !finding->fine;
}

static bool find_last(struct journal *journal, struct finding *finding, struct err *err)
{
	auto_free char *here = realpath(".", NULL);

	if (here == NULL)
		return err_set(err, errno, "the folder where you are: %s", strerror(errno));
	return patches_list(journal, here, false, SIZE_MAX, take_newest, finding, err) &&
	       (finding->fine ||
		err_set(err, ENOENT,
			"there is no patch of the folder %s; see: glovebox patch list --all",
			here));
}

bool patch_record_find(const char *id, struct patch_record *record, struct buf *path,
		       struct err *err)
{
	struct finding finding = {.record = record};
	struct journal *journal = NULL;
	bool found = journal_default_path(path, err) &&
		     journal_open(path->data, &journal, err) &&
		     (strcmp(id, "last") == 0
			      ? find_last(journal, &finding, err)
			      : patches_find(journal, id, take_row, &finding, err));

	journal_close(journal);
	return found && (finding.fine ||
			 err_set(err, ENOENT,
				 "%s is no patch: its run changed nothing, or its record "
				 "is damaged",
				 id));
}

bool patch_record_decide(const struct patch_record *record, const char *path,
			 const struct patch_decision *decision, struct err *err)
{
	struct journal *journal = NULL;
	bool done = journal_open(path, &journal, err) &&
		    patches_decide(journal, record->session, record->number, decision, err);

	journal_close(journal);
	return done;
}

static void set_unless_empty(struct value *object, const char *key, const char *text)
{
	if (text[0] != '\0')
		value_set_text(object, key, text);
}

struct value *patch_record_value(const struct patch_record *record, bool whole)
{
	struct value *object = value_new_object();

	value_set_text(object, "patch_id", record->id);
	value_set_text(object, "state", patch_state_name(record->state));
	value_set_text(object, "title", record->title);
	if (whole)
		value_set_text(object, "summary", record->summary);
	value_set_text(object, "hash", record->hash);
	value_set_text(object, "agent", record->agent);
	value_set_text(object, "model", record->model);
	value_set_text(object, "workspace", record->workspace);
	value_set_text(object, "session", record->session);
	value_set_integer(object, "event", record->number);
	value_set_integer(object, "time_ms", record->wall_ms);
	value_set(object, "files", value_copy(record->files));
	if (record->state != PATCH_OPEN)
		value_set_integer(object, "decided_ms", record->decided_ms);
	set_unless_empty(object, "place", record->place);
	set_unless_empty(object, "branch", record->branch);
	set_unless_empty(object, "reason", record->reason);
	if (whole)
		value_set_str(object, "patch", record->text);
	return object;
}

struct value *patch_record_files(const struct patch_record *record)
{
	static const char *const keys[] = {"path", "from", "state", "base_hash", "hash"};
	struct value *files = value_new_array();

	for (size_t i = 0; i < value_count(record->files); i++) {
		const struct value *file = value_item(record->files, i);
		struct value *row;

		if (is_left_out(file))
			continue;
		row = value_new_object();
		for (size_t j = 0; j < sizeof(keys) / sizeof(keys[0]); j++)
			set_unless_empty(row, keys[j], text_of(file, keys[j]));
		value_append(files, row);
	}
	return files;
}

static void add_decision(const struct patch_record *record, struct buf *out)
{
	char when[CLOCK_TEXT];

	(void)buf_adds(out, patch_state_name(record->state));
	if (record->state == PATCH_OPEN)
		return;
	clock_text_local(record->decided_ms, when);
	(void)buf_addf(out, " %s", when);
	if (record->branch[0] != '\0') {
		(void)buf_adds(out, " on branch ");
		text_add_exact(out, str_of(record->branch));
	}
	if (record->place[0] != '\0') {
		(void)buf_adds(out, " in ");
		text_add_exact(out, str_of(record->place));
	}
	if (record->reason[0] != '\0') {
		(void)buf_adds(out, ": ");
		text_add_exact(out, str_of(record->reason));
	}
}

static void add_file(const struct value *file, struct buf *out)
{
	const char *state = text_of(file, "state");

	(void)buf_adds(out, "  ");
	text_add_exact(out, str_of(text_of(file, "path")));
	(void)buf_adds(out, ": ");
	if (is_left_out(file)) {
		(void)buf_adds(out, "not in the patch");
		if (text_of(file, "why")[0] != '\0') {
			(void)buf_adds(out, " (");
			text_add_exact(out, str_of(text_of(file, "why")));
			(void)buf_addc(out, ')');
		}
	} else {
		text_add_exact(out, str_of(state));
		if (text_of(file, "from")[0] != '\0') {
			(void)buf_adds(out, " from ");
			text_add_exact(out, str_of(text_of(file, "from")));
		}
		(void)buf_addf(out, ", +%zu -%zu", lines_of(file, "added"),
			       lines_of(file, "removed"));
	}
	(void)buf_addc(out, '\n');
}

/*
 * The first line begins with a word of ours, and every other line with a blank, so that
 * each reader of patches takes the head for text before the patch.
 */
void patch_record_head(const struct patch_record *record, struct buf *out)
{
	struct str summary = str_trim(str_of(record->summary)), line;
	char when[CLOCK_TEXT];

	clock_text_local(record->wall_ms, when);
	(void)buf_addf(out, "Patch %.*s\n  title ", PATCH_ID_SHOWN, record->id);
	text_add_exact(out, str_of(record->title));
	(void)buf_adds(out, "\n  by ");
	text_add_exact(out, str_of(record->agent));
	(void)buf_addf(out, ", %s, in ", when);
	text_add_exact(out, str_of(record->workspace));
	(void)buf_adds(out, "\n  state ");
	add_decision(record, out);
	(void)buf_addf(out, "\n  hash %s\n\n", record->hash);
	while (str_next_line(&summary, &line)) {
		if (line.size > 0)
			(void)buf_adds(out, "    ");
		text_add_exact(out, line);
		(void)buf_addc(out, '\n');
	}
	(void)buf_addc(out, '\n');
	for (size_t i = 0; i < value_count(record->files); i++) {
		if (!paint_is_cache(value_item(record->files, i)))
			add_file(value_item(record->files, i), out);
	}
	if (record->caches > 0) {
		(void)buf_adds(out, "  not in the patch: ");
		(void)text_add_count(out, record->caches, "file");
		(void)buf_adds(out, " of Python's caches\n");
	}
	(void)buf_addc(out, '\n');
}

/* Makes sentences from the details of two tools. */

static int64_t number_in(const struct tool_result *result, const char *key)
{
	return value_integer(value_member(result->details, key));
}

static const char *text_in(const struct tool_result *result, const char *key)
{
	const char *text = value_text(value_member(result->details, key));

	return text != NULL ? text : "";
}

static void add_left_out(const struct patch_record *record, struct buf *text)
{
	if (record->left_out == 0)
		return;
	(void)buf_adds(text, "Not in the patch, and not applied: ");
	(void)text_add_count(text, record->left_out, "file");
	(void)buf_addf(text, "; see: glovebox patch show %.*s\n", PATCH_ID_SHOWN,
		       record->id);
}

void patches_tell_files(struct tool_result *result, const struct patch_record *record,
			const char *workspace, bool dry)
{
	struct buf *text = &result->text;
	const size_t already = (size_t)number_in(result, "already");
	const size_t done = (size_t)number_in(result, "to_do");

	buf_clear(text);
	if (done == 0) {
		(void)buf_addf(text, "Nothing to do: patch %.*s is in %.400s already.\n",
			       PATCH_ID_SHOWN, record->id, workspace);
	} else {
		(void)buf_addf(text, "%s patch %.*s to ", dry ? "Would apply" : "Applied",
			       PATCH_ID_SHOWN, record->id);
		(void)text_add_count(text, done, "file");
		(void)buf_addf(text, " in %.400s", workspace);
		if (already > 0)
			(void)buf_addf(text, "; %zu already as it leaves them", already);
		(void)buf_adds(text, dry ? ".\n" : ". glovebox undo takes it back.\n");
	}
	add_left_out(record, text);
}

void patches_tell_commit(struct tool_result *result, const struct patch_record *record,
			 bool dry)
{
	struct buf *text = &result->text;
	const bool known = value_is_true(value_member(result->details, "author_known"));

	buf_clear(text);
	if (dry) {
		(void)buf_addf(text,
			       "Would commit patch %.*s on branch %s, on top of %.12s.\n",
			       PATCH_ID_SHOWN, record->id, text_in(result, "branch"),
			       text_in(result, "base"));
	} else {
		(void)buf_addf(text,
			       "Committed patch %.*s as %.12s on branch %s, on top of %.12s.\n",
			       PATCH_ID_SHOWN, record->id, text_in(result, "commit"),
			       text_in(result, "branch"), text_in(result, "base"));
		if (!known)
			(void)buf_addf(text,
				       "Its author is Glovebox: the repository does not say who "
				       "you are. To change that: git config user.name and "
				       "user.email, then, on branch %s, git commit --amend "
				       "--reset-author.\n",
				       text_in(result, "branch"));
	}
	add_left_out(record, text);
}

/* The folders that may be written, and the call of the tool's function. */

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
		.fds = {[0 ... CALL_FDS_MAX - 1] = -1},
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

static int program_run(int argc, char **argv)
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

bool patches_program(int argc, char **argv, int *code)
{
	if (argc == 0 || strcmp(path_base_name(argv[0]), "apply_patch") != 0)
		return false;
	*code = program_run(argc, argv);
	return true;
}
