/*
 * commit_patch: the front's own tool behind `glovebox patch apply --branch`: a patch that was
 * handed over (handed.h) becomes a commit on a branch, on top of the newest commit in which its
 * files are what they were before the run. Nothing but git's objects and that one reference is
 * written: one run of git fast-import, which sets the branch at its very end.
 */
#include "tools/patches/commit_base.h"
#include "tools/tools.h"

#include "base/fd.h"
#include "base/text/text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
	BRANCH_MAX = 200,
	IDENT_MAX = 512,
	WORDS_MAX = 64 << 10, /* of a commit beside its files */
};

static const struct tool_param commit_patch_params[] = {
	{"patch", PARAM_TEXT, true, "The patch", .max = PATCH_BYTES_MAX},
	{"title", PARAM_TEXT, true, "First line of the message"},
	{"summary", PARAM_TEXT, false, "The rest of it"},
	{"files", PARAM_LIST, true, "The record of its files", .rows = handed_rows,
	 .max = PATCH_FILES_MAX},
	{"branch", PARAM_TEXT, true, "Name of the branch", .min = 1, .max = BRANCH_MAX},
	{"from", PARAM_TEXT, false, "The commit it starts at"},
	{"existing", PARAM_BOOLEAN, false, "The branch may be there", .initial = "false"},
	{"look", PARAM_BOOLEAN, false, "Only look", .initial = "false"},
	{0},
};

struct committing {
	struct call *call;
	struct tool_result *result;
	struct handed handed;
	struct commit_base base;
};

/* A folder of git's own in a tree would be written into its repository by a checkout. */
static bool has_git_folder(const char *path)
{
	for (const char *at = path; *at != '\0';) {
		size_t size = strcspn(at, "/");

		if ((size == 4 && strncasecmp(at, ".git", 4) == 0) ||
		    (size == 5 && strncasecmp(at, "git~1", 5) == 0))
			return true;
		at += size + (at[size] == '/');
	}
	return false;
}

static bool paths_are_allowed(struct committing *committing)
{
	for (size_t i = 0; i < committing->handed.count; i++) {
		const struct handed_file *file = &committing->handed.files[i];

		if (!has_git_folder(file->to) && !has_git_folder(file->file->path))
			continue;
		(void)tool_fail(committing->result,
				"%.300s lies in a git folder and is nothing to be committed. "
				"Nothing was changed.",
				file->to);
		return false;
	}
	return true;
}

/* "NAME <ADDRESS>" of the person as the cell knows them, else of the program. */
static void make_identity(struct committing *committing, struct buf *identity)
{
	static const char *const keys[] = {"user.name", "user.email"};
	struct buf found[2];
	bool known = true;

	for (size_t i = 0; i < 2; i++) {
		const char *const words[] = {"config", "--get", keys[i], NULL};

		buf_init(&found[i], IDENT_MAX);
		known = commit_git_line(committing->call, words, &found[i], NULL) &&
			found[i].size > 0 && strpbrk(found[i].data, "<>\n") == NULL &&
			known;
	}
	(void)buf_addf(identity, "%s <%s>", known ? found[0].data : "Glovebox",
		       known ? found[1].data : "glovebox@localhost");
	value_set_boolean(tool_details(committing->result), "author_known", known);
	buf_fini(&found[0]);
	buf_fini(&found[1]);
}

static bool import(struct committing *committing, const char *branch, struct err *err)
{
	static const char *const words[] = {"fast-import", "--quiet", "--done",
					    "--date-format=raw", NULL};
	struct str title = call_str(committing->call, "title");
	struct str summary = str_trim(call_str(committing->call, "summary"));
	auto_close int input = -1;
	struct buf text, message, identity, clean;
	bool fine;

	buf_init(&text, committing->base.stream.size + WORDS_MAX);
	buf_init(&clean, 4 * summary.size + 1);
	buf_init(&message, title.size + 16 * summary.size + 8); /* \xHH of what is not seen */
	buf_init(&identity, 2 * IDENT_MAX + 8);
	make_identity(committing, &identity);
	(void)buf_addf(&message, "%.*s\n", (int)title.size, title.data);
	(void)text_clean(summary, &clean);
	if (summary.size > 0) {
		(void)buf_addc(&message, '\n');
		text_add_paragraph(&message, buf_str(&clean));
		(void)buf_addc(&message, '\n');
	}
	(void)buf_addf(&text, "commit refs/heads/%s\nauthor %s %lld +0000\n", branch,
		       identity.data, (long long)time(NULL));
	(void)buf_addf(&text, "committer %s %lld +0000\ndata %zu\n", identity.data,
		       (long long)time(NULL), message.size);
	(void)buf_addstr(&text, buf_str(&message));
	(void)buf_addf(&text, "from %s\n", committing->base.commit);
	(void)buf_addstr(&text, buf_str(&committing->base.stream));
	(void)buf_adds(&text, "\ndone\n");
	fine = !text.overflowed || err_set(err, E2BIG, "the files are too large together");
	fine = fine && fd_memory_file("import", buf_str(&text), &input, err) &&
	       commit_git(committing->call, words, NULL, input, NULL, err);
	buf_fini(&text);
	buf_fini(&message);
	buf_fini(&clean);
	buf_fini(&identity);
	return fine;
}

/* May BRANCH be made, or, with `existing`, be gone on with? START: where to look from. */
static bool check_branch(struct committing *committing, const char *branch,
			 struct buf *start, bool *exists, struct err *err)
{
	const char *const sound[] = {"check-ref-format", "--branch", branch, NULL};
	const char *const known[] = {"rev-parse", "--verify", "-q", start->data, NULL};
	const char *from = call_text(committing->call, "from");
	struct buf line, format;
	bool fine;

	buf_init(&line, PATH_MAX);
	buf_init(&format, BRANCH_MAX + 64);
	fine = commit_git_line(committing->call, sound, &line, err) &&
	       (strcmp(line.data, branch) == 0 ||
		err_set(err, EINVAL, "%s is short for the branch %s", branch, line.data));
	*exists = fine && commit_git_line(committing->call, known, &line, NULL);
	if (fine && *exists) {
		(void)buf_addf(&format, "refs/heads/%s", branch);
		const char *const where[] = {"for-each-ref", "--format=%(worktreepath)",
					     format.data, NULL};

		if (!call_flag(committing->call, "existing"))
			fine = err_set(err, EEXIST,
				       "the branch %s exists already; --existing commits on "
				       "top of it",
				       branch);
		else
			fine = commit_git_line(committing->call, where, &line, err) &&
			       (line.size == 0 ||
				err_set(err, EBUSY,
					"the branch %s is checked out in %s, whose files would "
					"stay behind; apply it there without --branch",
					branch, line.data));
	} else if (fine) {
		buf_clear(start);
		(void)buf_addf(start, "%s^{commit}", from != NULL ? from : "HEAD");
	}
	buf_fini(&line);
	buf_fini(&format);
	return fine;
}

/* False without a sentence in ERR: none fits, and the result says so. */
static bool find_base(struct committing *committing, const char *start, unsigned most,
		      struct err *err)
{
	bool found = false;

	if (!commit_base_find(&committing->base, start, most, &found, err))
		return false;
	if (!found)
		(void)buf_addf(&committing->result->text,
			       "Nothing was committed: no commit at or before %s has the files "
			       "as they were before the run. In the newest:\n%s",
			       start, committing->base.differing.data);
	return found;
}

static bool commit_all(struct committing *committing, const char *branch, struct err *err)
{
	static const char *const where[] = {"rev-parse", "--show-prefix", NULL};
	struct value *details = tool_details(committing->result);
	struct buf start, made;
	bool exists = false, fine;

	buf_init(&start, BRANCH_MAX + PATH_MAX);
	buf_init(&made, PATH_MAX);
	(void)buf_addf(&start, "refs/heads/%s^{commit}", branch);
	fine = commit_git_line(committing->call, where, &committing->base.prefix, err) &&
	       check_branch(committing, branch, &start, &exists, err) &&
	       find_base(committing, start.data, exists ? 1 : COMMITS_LOOKED_AT, err);
	if (fine && !call_flag(committing->call, "look")) {
		buf_clear(&start);
		(void)buf_addf(&start, "refs/heads/%s", branch);
		const char *const tip[] = {"rev-parse", "--verify", "-q", start.data, NULL};

		fine = import(committing, branch, err) &&
		       commit_git_line(committing->call, tip, &made, err);
		value_set_text(details, "commit", made.data);
	}
	if (fine) {
		value_set_text(details, "base", committing->base.commit);
		value_set_text(details, "branch", branch);
		value_set_boolean(details, "existed", exists);
	}
	buf_fini(&start);
	buf_fini(&made);
	return fine;
}

static enum result_status commit_patch_execute(struct call *call, struct tool_result *result)
{
	struct committing committing = {.call = call, .result = result};
	struct err err = {0};

	result->status = RESULT_FAILED;
	if (handed_read(call_str(call, "patch"), value_member(call->arguments, "files"),
			&committing.handed, &result->text) &&
	    paths_are_allowed(&committing)) {
		commit_base_init(&committing.base, call, &committing.handed);
		if (commit_all(&committing, call_text(call, "branch"), &err))
			(void)tool_done(result);
		else if (call_stopped(call))
			(void)call_stop_result(call, result);
		else if (err.text[0] != '\0')
			(void)tool_fail(result, "Nothing was committed: %s", err.text);
		commit_base_fini(&committing.base);
	}
	handed_fini(&committing.handed);
	return result->status;
}

const struct tool commit_patch_tool = {
	.name = "commit_patch",
	.description = "Make a commit of a patch that was handed over, on a branch.",
	.example = "{\"patch\": \"...\", \"title\": \"...\", \"files\": [], \"branch\": \"fix\"}",
	.params = commit_patch_params,
	.effects = EFFECT_READS | EFFECT_RUNS,
	.timeout_s = 300,
	.internal = true,
	.execute = commit_patch_execute,
};
