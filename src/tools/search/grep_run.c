/*
 * grep_run: every file once, by all threads: how many lines match, and when it was
 * changed.
 */
#include "tools/search/grep.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/pattern.h"
#include "tools/search/search.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool grep_fits(const struct grep *grep, const struct walk_entry *entry)
{
	if (grep->type && !file_type_fits(grep->type, str_of(entry->name)))
		return false;
	return !grep->glob ||
	       pattern_set_match(grep->glob, entry->path) != grep->glob_excludes;
}

static struct grep_worker *grep_worker_of(struct grep *grep, unsigned number)
{
	struct grep_worker *worker = &grep->workers[number];

	if (!worker->begun) {
		grep_scan_init(&worker->scan, &grep->pattern);
		ranking_init(&worker->best, grep->keep, found_newer);
		worker->begun = true;
	}
	return worker;
}

/* Count the matching lines of the file FD, and keep it among the best when it has one. */
static void grep_count(struct grep *grep, struct grep_worker *worker, int fd, struct str path)
{
	struct grep_scan *scan = &worker->scan;
	struct grep_line line;
	struct found found = {.kind = WALK_FILE};
	struct stat st;

	grep_scan_begin(scan, fd, worker->short_is_end);
	while (grep_scan_next(scan, &line)) {
		found.count++;
		if (grep->first_only)
			break;
	}
	worker->searched++;
	worker->unreadable += scan->failed;
	worker->limited += scan->limited;
	worker->binary += scan->binary_hit;
	if (found.count == 0 || scan->binary || fstat(fd, &st) < 0)
		return;
	worker->files++;
	worker->lines += found.count;
	found.time_ns = clock_ns(&st.st_mtim);
	found.size = (uint64_t)st.st_size;
	found.path = memory_copy_str(path);
	ranking_add(&worker->best, found);
}

static bool stopped_by_walk(void *walker)
{
	return walker_stopped(walker);
}

static bool stopped_by_call(void *call)
{
	return call_stopped(call);
}

static void grep_visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct grep *grep = owner;
	struct grep_worker *worker;
	int fd;

	if (entry->kind != WALK_FILE)
		return;
	worker = grep_worker_of(grep, walker_number(walker));
	if (!grep_fits(grep, entry)) {
		worker->unfitting++;
		return;
	}
	/* Not a link, and whatever took the file's place meanwhile is not waited for. */
	fd = fd_bare_open(entry->folder_fd, entry->name,
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		worker->unreadable += errno != ENOENT && errno != ELOOP && errno != ENOTDIR;
		return;
	}
	if (worker->folder != entry->folder) {
		worker->folder = entry->folder;
		worker->short_is_end = grep_reads_are_whole(entry->folder_fd);
	}
	worker->scan.stopped = stopped_by_walk;
	worker->scan.stop_owner = walker;
	grep_count(grep, worker, fd, entry->path);
	fd_bare_close(fd);
	if (grep_scan_gave_up(&worker->scan))
		walker_give_up(walker);
}

/* All that the threads found into workers[0]. */
static void grep_gather(struct grep *grep)
{
	struct grep_worker *all = grep_worker_of(grep, 0);

	for (size_t i = 1; i < WALK_THREADS_MAX; i++) {
		struct grep_worker *worker = &grep->workers[i];

		if (!worker->begun)
			continue;
		ranking_take_all(&all->best, &worker->best);
		all->lines += worker->lines;
		all->files += worker->files;
		all->searched += worker->searched;
		all->unfitting += worker->unfitting;
		all->binary += worker->binary;
		all->unreadable += worker->unreadable;
		all->limited += worker->limited;
		grep_scan_fini(&worker->scan);
		*worker = (struct grep_worker){0};
	}
	ranking_sort(&all->best);
	all->scan.limits = 0; /* what was found is shown */
	all->scan.stopped = stopped_by_call;
	all->scan.stop_owner = grep->call;
}

void grep_run(struct grep *grep)
{
	struct walk_options options = {
		.call = grep->call,
		.visit = grep_visit,
		.owner = grep,
	};
	struct grep_worker *worker;

	if (grep->file_fd < 0) {
		walk_run(&grep->start, &options, &grep->summary);
	} else {
		worker = grep_worker_of(grep, 0);
		worker->scan.stopped = stopped_by_call;
		worker->scan.stop_owner = grep->call;
		grep_count(grep, worker, grep->file_fd, STR(""));
		if (call_stopped(grep->call))
			grep->summary.end = WALK_STOPPED;
		else if (grep_scan_gave_up(&worker->scan))
			grep->summary.end = WALK_GIVEN_UP;
	}
	grep_gather(grep);
}

void grep_run_ignored(struct grep *grep, struct walk_summary *summary)
{
	struct walk_options options = {
		.call = grep->call,
		.ignored_only = true,
		.until_ms = clock_now_ms() + SEARCH_IGNORED_MS,
		.visit = grep_visit,
		.owner = grep,
	};

	grep_forget(grep);
	grep->keep = SEARCH_IGNORED_SHOWN;
	grep->first_only = true;
	walk_run(&grep->start, &options, summary);
	grep_gather(grep);
}

void grep_forget(struct grep *grep)
{
	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		if (!grep->workers[i].begun)
			continue;
		grep_scan_fini(&grep->workers[i].scan);
		ranking_fini(&grep->workers[i].best);
		grep->workers[i] = (struct grep_worker){0};
	}
}
