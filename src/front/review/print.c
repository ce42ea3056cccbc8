/* print: prints a review for people. */

#include "front/review/print.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "policy/autoexec.h"
#include "process/program.h"
#include "tui/lent/job.h"
#include "tui/paint.h"
#include "tui/screen.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PATHS_SHOWN = 500,   /* with more, folders are summed up */
	FOLDERS_SHOWN = 100, /* of these, in one section */
	COMMAND_SHOWN = 32,
	TEXT_MAX = 16 << 20,
	COMMIT_SHOWN = 12,
	NAME_ROOM = 4 * PATH_MAX, /* of a ref as it is shown, with its escapes */
	HOUR_AND_MINUTE = 11,     /* where they begin in a time of clock_text_local */
};

/* A line of a list. */

static void add_command(struct buf *line, const char *command)
{
	struct str rest = str_of(command), first = STR("");

	(void)str_next_line(&rest, &first);
	const size_t size = text_character_border(first, COMMAND_SHOWN);
	text_add_exact(line, str_part(first, 0, size));
	if (size < first.size || rest.size > 0)
		(void)buf_adds(line, " …");
}

void print_review_line(const struct review_item *item, FILE *out)
{
	char when[CLOCK_TEXT], size[32];
	struct buf line;

	buf_init(&line, TEXT_MAX);
	(void)buf_addf(&line, "%s  ", item->meta.id);
	if (item->damaged) {
		(void)buf_adds(&line, "damaged");
	} else {
		const struct review_counts *counts = &item->meta.counts;

		clock_text_local(item->meta.created_ms, when);
		(void)buf_addf(&line, "%-7s  %s  ",
			       item->used ? "in use" : review_state_name(item->meta.state),
			       when);
		add_command(&line, item->meta.command[0] != '\0' ? item->meta.command
								 : item->meta.agent);
		if (counts->partial &&
		    (counts->added | counts->changed | counts->removed) == 0)
			(void)buf_adds(&line, "  (not counted)");
		else
			(void)buf_addf(&line,
				       "  (%s+%" PRId64 " ~%" PRId64 " -%" PRId64 ", %s)",
				       counts->partial ? "at least " : "", counts->added,
				       counts->changed, counts->removed,
				       text_size((uint64_t)(counts->bytes > 0 ? counts->bytes
									      : 0),
						 size));
		if (item->meta.memory && !item->saved && !item->used &&
		    item->meta.state == REVIEW_OPEN)
			(void)buf_adds(&line, "  in memory, not saved");
		if (item->meta.over_count > 0)
			(void)buf_addf(&line, "  over %s", item->meta.over[0]);
	}
	(void)fprintf(out, "%s\n", line.data);
	buf_fini(&line);
}

/* Sentences. */

void print_review_counts(const struct review_report *report, struct buf *out)
{
	char size[32];
	const struct {
		int64_t count;
		const char *word;
	} parts[] = {{report->changed, "changed"},
		     {report->added, "added"},
		     {report->removed, "removed"}};
	bool first = true;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (parts[i].count == 0)
			continue;
		if (!first)
			(void)buf_addf(out, ", %" PRId64 " %s", parts[i].count,
				       parts[i].word);
		else {
			(void)text_add_count(out, (size_t)parts[i].count, "file");
			(void)buf_addf(out, " %s", parts[i].word);
		}
		first = false;
	}
	if (first)
		(void)buf_adds(out, "no file changed");
	if (report->bytes > 0)
		(void)buf_addf(out, " (%s)", text_size((uint64_t)report->bytes, size));
}

/* ", 14:10" of the time at which the user's file was changed. */
static void add_since(const struct review_change *change, struct buf *out)
{
	char when[CLOCK_TEXT];

	if (change->since_ms == 0)
		return;
	clock_text_local(change->since_ms, when);
	(void)buf_addf(out, "%.5s, ", when + HOUR_AND_MINUTE);
}

static void add_size(const struct review_side *side, struct buf *out)
{
	char size[32];

	if (side->folder)
		(void)buf_adds(out, "a folder");
	else if (side->link)
		(void)buf_adds(out, "a link");
	else if (side->size >= 0)
		(void)buf_adds(out, text_size((uint64_t)side->size, size));
	else
		(void)buf_adds(out, "?");
}

/* The path of CHANGE as a word of a shell: bytes that are not shown as they are become \xHH. */
static void add_path_word(const struct review_change *change, struct buf *out)
{
	auto_free char *path = path_of_key(change->key);

	if (path == NULL) {
		shell_token_add_word(change->path, out);
		return;
	}
	(void)buf_adds(out, "$'");
	for (const char *at = path; *at != '\0'; at++) {
		const unsigned char c = (unsigned char)*at;

		if (c < ' ' || c > '~' || c == '\'' || c == '\\')
			(void)buf_addf(out, "\\x%02X", c);
		else
			(void)buf_addc(out, *at);
	}
	(void)buf_adds(out, "'");
}

/* A person copies these words into a shell. */
static void add_choices(const struct review_change *change, struct buf *out)
{
	(void)buf_adds(out, ": --theirs ");
	add_path_word(change, out);
	(void)buf_adds(out, change->text ? ", --mine " : " or --mine ");
	add_path_word(change, out);
	(void)buf_adds(out, change->text ? ", or --markers" : "");
}

static void add_conflict(const struct review_change *change, struct buf *out)
{
	(void)buf_adds(out, change->path);
	if (change->class == REVIEW_HAS_NO_BASE) {
		(void)buf_adds(out, ": nobody kept what it held when the review began (");
		add_size(&change->before, out);
		(void)buf_adds(out, "): compare by hand, --theirs or --mine.\n");
		return;
	}
	if (!change->before.there)
		(void)buf_adds(out, " was removed from your folder since");
	else {
		(void)buf_adds(out, " was changed in your folder since (");
		add_since(change, out);
		if (change->text)
			(void)buf_addf(out, "+%" PRId64 " -%" PRId64,
				       change->ours.items[0], change->ours.items[1]);
		else
			add_size(&change->before, out);
		(void)buf_adds(out, ")");
	}
	if (!change->after.there)
		(void)buf_adds(out, " and removed by the review");
	else {
		(void)buf_adds(out, change->before.there ? " and by the review ("
							 : " and changed by the review (");
		if (change->text)
			(void)buf_addf(out, "+%" PRId64 " -%" PRId64,
				       change->theirs.items[0], change->theirs.items[1]);
		else
			add_size(&change->after, out);
		(void)buf_adds(out, ")");
	}
	if (change->overlap.items[0] > 0 &&
	    change->overlap.items[0] < change->overlap.items[1])
		(void)buf_addf(out, ", lines %" PRId64 "-%" PRId64 " overlap",
			       change->overlap.items[0], change->overlap.items[1]);
	else if (change->overlap.items[0] > 0)
		(void)buf_addf(out, ", line %" PRId64 " overlaps", change->overlap.items[0]);
	if (change->why != NULL)
		(void)buf_addf(out, " (%s)", change->why);
	add_choices(change, out);
	(void)buf_adds(out, ".\n");
}

void print_review_conflicts(const struct review_report *report, struct buf *out)
{
	for (size_t i = 0; i < report->count; i++) {
		if (report->changes[i].class == REVIEW_CONFLICTS ||
		    report->changes[i].class == REVIEW_HAS_NO_BASE)
			add_conflict(&report->changes[i], out);
	}
}

/* The folders that the session of META could write, as a person names them. */
static void add_writable(const struct review_meta *meta, struct buf *out)
{
	const struct value *roots = value_member(meta->rights, "roots");
	size_t count = 0;

	for (size_t i = 0; i < value_count(roots); i++) {
		const struct value *root = value_item(roots, i);
		auto_free char *path = path_of_key(value_text(value_member(root, "path")));

		if (path == NULL || !value_is_true(value_member(root, "writable")) ||
		    !path_within(path, meta->workspace) ||
		    strcmp(path, meta->workspace) == 0)
			continue;
		(void)buf_adds(out, count++ > 0 ? ", " : " only below ");
		text_add_exact(out, str_of(path_relative(path, meta->workspace)));
		(void)buf_adds(out, "/");
	}
	if (count == 0)
		(void)buf_adds(out, " elsewhere");
}

static void add_refused(const struct review_meta *meta,
			const struct review_change *change, struct buf *out)
{
	(void)buf_addf(out, "%s is not landed: ", change->path);
	if (change->refused == REFUSED_GIT)
		(void)buf_adds(out, "git would run it (protected). Copy it yourself if you "
				    "wrote it.\n");
	else if (change->refused == REFUSED_PROTECTED)
		(void)buf_adds(out,
			       "another program would run it, or takes its settings from "
			       "it (protected). Copy it yourself if you wrote it.\n");
	else if (change->refused == REFUSED_SESSION) {
		(void)buf_adds(out, "the review's agent \"");
		text_add_name(out, str_of(meta->agent));
		(void)buf_adds(out, "\" writes");
		add_writable(meta, out);
		(void)buf_adds(out, ".\n");
	} else if (change->refused == REFUSED_AGENT)
		(void)buf_adds(out, "this agent may not write there. Land it as the agent that "
				    "may: --agent NAME.\n");
	else if (change->refused == REFUSED_KIND)
		(void)buf_adds(out, "it is neither a file nor a folder nor a link.\n");
	else
		(void)buf_adds(out, "it cannot be read.\n");
}

void print_review_refused(const struct review_meta *meta,
			  const struct review_report *report, struct buf *out)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct review_change *change = &report->changes[i];

		if (change->class == REVIEW_REFUSED)
			add_refused(meta, change, out);
		else if (change->set_ids)
			(void)buf_addf(out, "%s: its set-id bits are not landed.\n",
				       change->path);
	}
}

void print_review_commits(const char *id, const struct review_report *report,
			  enum print_commits outcome, struct buf *out)
{
	const bool landed = outcome == PRINT_COMMITS_LANDED;

	for (size_t i = 0; i < report->branch_count; i++) {
		const struct review_branch *branch = &report->branches[i];

		(void)buf_addf(out, "%s: ", branch->name);
		if (branch->commits >= 0)
			(void)text_add_count(out, (size_t)branch->commits, "new commit");
		else
			(void)buf_adds(out, "new commits");
		(void)buf_addf(out, " (%.*s)", COMMIT_SHOWN, branch->commit);
		if (!branch->sound || report->trouble != NULL)
			(void)buf_addf(out, ", not landed: %s\n",
				       report->trouble != NULL ? report->trouble
							       : "they are not whole");
		else if (outcome == PRINT_COMMITS_STAY)
			(void)buf_adds(out, "; left in the review\n");
		else if (landed ? branch->moved : branch->moves)
			(void)buf_adds(out, landed ? "; your branch has them\n"
						   : "; your branch moves on\n");
		else {
			char ref[NAME_ROOM];

			(void)snprintf(ref, sizeof(ref), "refs/glovebox/%s/%s", id,
				       branch->name);
			(void)buf_adds(out,
				       landed ? "; your branch stays. Commit what was landed, "
						"then: git merge "
					      : "; your branch stays, and they come as ");
			shell_token_add_word(ref, out);
			(void)buf_adds(out, "\n");
		}
	}
	if (report->unread != NULL)
		(void)buf_addf(out,
			       "Not all branches of the review are known: %s. The review "
			       "stays open.\n",
			       report->unread);
	if (landed && review_report_lacks_commits(report))
		(void)buf_addf(out,
			       "Mend them in the review (glovebox exec --review=%s -- git …), "
			       "or do without them: glovebox drop --id %s\n",
			       id, id);
	for (size_t i = 0; i < report->tag_count; i++) {
		(void)buf_adds(out, "The tag ");
		(void)buf_adds(out, report->tags[i].name);
		(void)buf_adds(out, " is not landed. Make it yourself: git tag ");
		shell_token_add_word(report->tags[i].name, out);
		(void)buf_addf(out, " %.*s\n", COMMIT_SHOWN, report->tags[i].commit);
	}
	if (report->stash || report->notes || report->staged)
		(void)buf_addf(out, "%s%s%s%s%s of the review %s not landed.\n",
			       report->stash ? "Stashes" : "",
			       report->stash && report->notes ? " and " : "",
			       report->notes ? (report->stash ? "notes" : "Notes") : "",
			       (report->stash || report->notes) && report->staged ? " and "
										  : "",
			       report->staged ? (report->stash || report->notes
							 ? "what was only staged"
							 : "What was only staged")
					      : "",
			       report->staged && !report->stash && !report->notes ? "is"
										  : "are");
}

/* Sections. */

struct section {
	const char *title;
	bool (*has)(const struct review_change *change);
};

static bool is_put(const struct review_change *change)
{
	return change->class == REVIEW_APPLIES || change->class == REVIEW_MERGES;
}

static bool is_changed(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_CHANGED && change->type == NULL;
}

static bool is_added(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_ADDED;
}

static bool is_removed(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_REMOVED;
}

static bool is_renamed(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_RENAMED;
}

static bool has_other_mode(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_MODE;
}

static bool has_other_target(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_LINK;
}

static bool has_other_attributes(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_ATTRIBUTES;
}

static bool is_binary(const struct review_change *change)
{
	return is_put(change) && change->kind == REVIEW_CHANGED && change->type != NULL;
}

static bool stays(const struct review_change *change)
{
	return change->class == REVIEW_STAYS;
}

static const struct section sections[] = {
	{"Changed", is_changed},
	{"Added", is_added},
	{"Removed", is_removed},
	{"Renamed", is_renamed},
	{"Mode only", has_other_mode},
	{"Link targets", has_other_target},
	{"Attributes only", has_other_attributes},
	{"Binary", is_binary},
	{"Yours stay", stays},
};

/* Has the folder of CHANGE another row below it, which says all of it? */
static bool is_said_below(const struct review_report *report, size_t at)
{
	const struct review_change *change = &report->changes[at];
	const size_t size = strlen(change->path);

	/* A name that becomes a link or a file, or was one, has a row of its own. */
	return (change->before.folder || !change->before.there) &&
	       (change->after.folder || !change->after.there) && at + 1 < report->count &&
	       change->kind != REVIEW_MODE &&
	       strncmp(report->changes[at + 1].path, change->path, size) == 0 &&
	       report->changes[at + 1].path[size] == '/';
}

/* Is it a file of REPORT whose content a crash of the machine may have lost? */
static bool is_doubtful(const struct review_report *report,
			const struct review_change *change)
{
	return report->cut == REVIEW_SHORT && change->after.there &&
	       !change->after.folder && !change->after.link && change->after.size == 0;
}

void print_review_cut(const char *id, const struct review_report *report, struct buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		count += is_doubtful(report, &report->changes[i]);
	if (report->cut == REVIEW_WHOLE)
		return;
	if (report->cut == REVIEW_OLDER) {
		(void)buf_addf(out,
			       "The machine went down, or a login ended, while review %s was "
			       "written in memory: what came after it was saved is lost.\n",
			       id);
		return;
	}
	(void)buf_addf(out, "The machine went down while review %s was written: ", id);
	if (count > 0)
		(void)buf_addf(out, "%zu of its files %s empty. %s marked \"?\".\n",
			       count, count == 1 ? "is" : "are",
			       count == 1 ? "It is" : "They are");
	else
		(void)buf_adds(out, "its last files may be short.\n");
}

static void add_line(const struct review_report *report,
		     const struct review_change *change, struct buf *out)
{
	const struct autoexec *row;

	(void)buf_adds(out, is_doubtful(report, change) ? "? " : "  ");
	if (change->from != NULL)
		(void)buf_addf(out, "%s → ", change->from);
	(void)buf_adds(out, change->path);
	if (change->after.there ? change->after.folder : change->before.folder)
		(void)buf_adds(out, "/");
	if (change->target != NULL)
		(void)buf_addf(out, " -> %s", change->target);
	if (change->before.there && change->after.there &&
	    change->before.folder != change->after.folder)
		(void)buf_adds(out, change->before.folder ? "  (was a folder)"
							  : "  (was no folder)");
	if (change->type != NULL) {
		(void)buf_addf(out, "  %s, ", change->type);
		if (change->before.there) {
			add_size(&change->before, out);
			(void)buf_adds(out, change->after.there ? " → " : "");
		}
		if (change->after.there)
			add_size(&change->after, out);
	} else if (change->lines.count > 0 && change->kind != REVIEW_MODE) {
		(void)buf_addf(out, "  +%" PRId64 " -%" PRId64, change->lines.items[0],
			       change->lines.items[1]);
	}
	if (change->before.mode != NULL && change->after.mode != NULL &&
	    (change->kind == REVIEW_MODE ||
	     strcmp(change->before.mode, change->after.mode) != 0))
		(void)buf_addf(out, "  %s → %s", change->before.mode, change->after.mode);
	if (change->class == REVIEW_MERGES)
		(void)buf_adds(out, "  (merged with your change)");
	row = change->after.there ? autoexec_find(change->path) : NULL;
	if (row != NULL)
		(void)buf_addf(out, "  (%s reads it by itself)", row->reader);
	(void)buf_adds(out, "\n");
}

/* The length of the name of the folder of PATH; 0: the workspace itself. */
static size_t folder_size(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? (size_t)(slash - path) : 0;
}

/* One line for each folder, with the number of its paths. */
static void add_folders(const struct review_report *report, const struct section *section,
			struct buf *out)
{
	const char *folder = NULL;
	size_t size = 0, count = 0, lines = 0, unsaid = 0;

	for (size_t i = 0; i <= report->count; i++) {
		const struct review_change *change =
			i < report->count ? &report->changes[i] : NULL;

		if (change != NULL && (!section->has(change) || is_said_below(report, i)))
			continue;
		if (folder != NULL && (change == NULL || folder_size(change->path) != size ||
				       strncmp(change->path, folder, size) != 0)) {
			if (++lines <= FOLDERS_SHOWN) {
				(void)buf_addf(out, "  %.*s/  ", size > 0 ? (int)size : 1,
					       size > 0 ? folder : ".");
				(void)text_add_count(out, count, "path");
				(void)buf_adds(out, "\n");
			} else {
				unsaid += count;
			}
			count = 0;
		}
		if (change != NULL) {
			folder = change->path;
			size = folder_size(folder);
			count++;
		}
	}
	if (unsaid > 0)
		(void)buf_addf(out, "  … and %zu more\n", unsaid);
}

static void add_section(const struct review_report *report, const struct section *section,
			bool colour, struct buf *out)
{
	const bool sums = report->count > PATHS_SHOWN;
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		count += section->has(&report->changes[i]) && !is_said_below(report, i);
	if (count == 0)
		return;
	(void)buf_addf(out, colour ? "\033[1m%s\033[0m\n" : "%s\n", section->title);
	if (sums) {
		add_folders(report, section, out);
		return;
	}
	for (size_t i = 0; i < report->count; i++) {
		if (section->has(&report->changes[i]) && !is_said_below(report, i))
			add_line(report, &report->changes[i], out);
	}
}

static void add_stat(const struct review_report *report, struct buf *out)
{
	for (size_t i = 0; i < report->count; i++) {
		if (report->changes[i].class != REVIEW_REFUSED && !is_said_below(report, i))
			add_line(report, &report->changes[i], out);
	}
	(void)buf_adds(out, "  ");
	print_review_counts(report, out);
	(void)buf_adds(out, "\n");
}

static void add_block(const char *title, bool colour, const struct buf *text, struct buf *out)
{
	struct str rest = buf_str(text), line;

	if (text->size == 0)
		return;
	(void)buf_addf(out, colour ? "\033[1m%s\033[0m\n" : "%s\n", title);
	while (str_next_line(&rest, &line))
		(void)buf_addf(out, "  %.*s\n", (int)line.size, line.data);
}

static void add_head(const struct review_meta *meta, const struct review_report *report,
		     struct buf *out)
{
	char when[CLOCK_TEXT];

	clock_text_local(meta->created_ms, when);
	(void)buf_addf(out, "Review %s (%s), %s", meta->id,
		       review_state_name(meta->state), when);
	if (meta->command[0] != '\0') {
		(void)buf_adds(out, ": ");
		add_command(out, meta->command);
	}
	(void)buf_adds(out, "\n");
	if (report->log_damaged)
		(void)buf_adds(out, "Its log is damaged: what a file held before is known only "
				    "where nobody has touched it since.\n");
	print_review_counts(report, out);
	(void)buf_adds(out, "\n");
}

void print_review(const struct review_meta *meta, const struct review_report *report,
		  bool stat, bool colour, FILE *out)
{
	struct buf text, part;

	buf_init(&text, TEXT_MAX);
	buf_init(&part, TEXT_MAX);
	if (stat) {
		add_stat(report, &text);
	} else {
		add_head(meta, report, &text);
		for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
			add_section(report, &sections[i], colour, &text);
		print_review_conflicts(report, &part);
		add_block("In conflict", colour, &part, &text);
		buf_clear(&part);
		print_review_refused(meta, report, &part);
		add_block("Not landed", colour, &part, &text);
		buf_clear(&part);
		print_review_commits(meta->id, report, PRINT_COMMITS_COME, &part);
		add_block("Commits", colour, &part, &text);
		if (report->more > 0)
			(void)buf_addf(&text, "… and %" PRId64 " more changes\n",
				       report->more);
		(void)buf_addf(&text, "Hash %.*s.", HASH_SHOWN, report->hash);
		if (meta->state == REVIEW_OPEN)
			(void)buf_addf(&text,
				       " To put it there: glovebox land --id %s. To throw it "
				       "away: glovebox drop --id %s\n",
				       meta->id, meta->id);
		else
			(void)buf_addf(&text, " It is %s already.\n",
				       review_state_name(meta->state));
	}
	buf_clear(&part);
	paint_fold_for(fileno(out), buf_str(&text), &part);
	(void)fwrite(part.data, 1, part.size, out);
	buf_fini(&part);
	buf_fini(&text);
}

/* The diff. */

/* Show TEXT by the person's own pager, as git does. False: it could not be started. */
static bool page(const char *pager, struct str text)
{
	const char *const words[] = {"/bin/sh", "-c", pager, NULL};
	auto_free const char **environment = lent_job_pager_environment_new();
	struct program_start start = {
		.argv = words,
		.environment = environment,
		.fds = {-1, STDOUT_FILENO, STDERR_FILENO},
		.joins_group = true,
	};
	struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
	int ends[2] = {-1, -1};
	struct err err;
	pid_t pid = 0;

	if (!fd_pipe(ends, &err))
		return false;
	start.fds[0] = ends[0];
	const bool started = program_start(&start, &pid, &err);
	fd_close(&ends[0]);
	if (started) {
		/* A person who has seen enough ends the pager early. */
		(void)sigaction(SIGPIPE, &ignored, &before);
		(void)fd_write_all(ends[1], text.data, text.size, &err);
		fd_close(&ends[1]);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		(void)sigaction(SIGPIPE, &before, NULL);
	}
	fd_close(&ends[1]);
	return started;
}

bool print_review_diff(const struct review_report *report, const char *pager, FILE *out)
{
	struct buf text, painted;

	buf_init(&text, SCREEN_DIFF_MAX);
	buf_init(&painted, SCREEN_DIFF_MAX);
	const bool fine = report->diff >= 0 && lseek(report->diff, 0, SEEK_SET) == 0 &&
			  fd_read_all(report->diff, &text, "the diff", NULL);
	if (fine && isatty(STDOUT_FILENO)) {
		screen_add_diff(STR(""), buf_str(&text), &painted);
		(void)fflush(out);
		if (painted.size == 0 || pager[0] == '\0' || strcmp(pager, "cat") == 0 ||
		    !page(pager, buf_str(&painted)))
			(void)fwrite(painted.data, 1, painted.size, out);
	} else if (fine) {
		(void)fwrite(text.data, 1, text.size, out);
	}
	buf_fini(&painted);
	buf_fini(&text);
	return fine;
}
