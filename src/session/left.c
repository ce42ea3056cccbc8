/*
 * left: what a killed session or a killed git left: writes without an end, and the files
 * of a git (guard.h). One worker finds these files, and another worker removes them. In
 * between the front decides which of them may go, because only the front sees the machine's
 * processes: a file stays that a process outside of the cell may hold. A wrong yes to that
 * question costs a line that a person reads. A wrong no would take a lock from a git that
 * works, so every doubt is a yes.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "cell/anchor.h"
#include "cell/cell.h"
#include "cell/pending.h"
#include "files/record.h"
#include "files/rights.h"
#include "guard/guard.h"
#include "guard/scan.h"
#include "process/loop.h"
#include "session/approval.h"
#include "session/session.h"
#include "tool/tool.h"
#include "view/shape.h"
#include "view/spec.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	COMM_MAX = 64,       /* a process's name has 15 bytes */
	WORDS_MAX = 1 << 20, /* bytes of its arguments or its environment */
	CLIMB_MAX = 256,     /* folders between its working folder and the root */
	ROOTS_MAX = 64,
	AGAIN_MS = 20,
	HELD_TEXT = 128,
	STAT_MAX = 4096,
	CLOCKS_NS = 50000000, /* tolerance between the clocks of processes and of files */
	LOOK_MS = 10000, /* enough to start a cell and two workers on a busy machine */
	/* A set of many files on a slow disk takes a while, and no call may begin before. */
	MEND_MS = 30000,
	MEND_TRIES = 3, /* each with another worker, when one is lost */
	/* The kernel ends the processes of a killed session one after the other. */
	DYING_MS = 2000,
	/*
	 * Most gits outside of the cell, which may hold a file, have ended before that.
	 */
	SHORT_MS = 300,
};

/* The processes of the machine. */

/* A folder below which the cell may write. */
struct root {
	dev_t device;
	ino_t inode;
};

struct holders {
	struct git_left *left;
	struct root roots[ROOTS_MAX];
	size_t root_count;
	bool all_roots; /* `roots` holds all roots */
	bool found;
};

/*
 * Read the file NAME of the process whose folder in /proc is PROCESS. Words in TEXT end
 * with NUL.
 */
static bool file_read(int process, const char *name, size_t max, struct buf *text)
{
	auto_close int fd = openat(process, name, O_RDONLY | O_CLOEXEC);

	buf_init(text, max);
	return fd >= 0 && fd_read_all(fd, text, name, NULL);
}

/*
 * Does the error CODE mean that the process has ended? A process that has ended holds
 * nothing; a process that we may not look at may hold anything.
 */
static bool has_ended(int code)
{
	return code == ENOENT || code == ESRCH;
}

static bool has_word(int process, const char *name, const char *const *words)
{
	struct buf text;
	bool has = !file_read(process, name, WORDS_MAX, &text) && !has_ended(errno);

	for (; !has && *words != NULL; words++)
		has = str_find(buf_str(&text), str_of(*words), 0) != (size_t)-1;
	buf_fini(&text);
	return has;
}

static bool is_git(const char *comm)
{
	return strncmp(comm, "git", 3) == 0 || strncmp(comm, "jgit", 4) == 0;
}

/* Does the git PROCESS serve others for as long as the machine runs, and hold no lock? */
static bool is_server(int process)
{
	static const char *const words[] = {"fsmonitor--daemon",
					    "credential-cache--daemon", NULL};
	struct buf text;
	bool server = false;

	if (file_read(process, "cmdline", WORDS_MAX, &text)) {
		for (size_t i = 0; words[i] != NULL; i++)
			server |= str_find(buf_str(&text), str_of(words[i]), 0) !=
				  (size_t)-1;
	}
	buf_fini(&text);
	return server;
}

static bool is_root(const struct holders *holders, const struct stat *st)
{
	for (size_t i = 0; i < holders->root_count; i++) {
		if (holders->roots[i].device == st->st_dev &&
		    holders->roots[i].inode == st->st_ino)
			return true;
	}
	return false;
}

/*
 * Is the working folder of PROCESS a root or below one? Names differ between mount
 * namespaces, so the files are compared.
 */
static bool stands_below(const struct holders *holders, int process)
{
	auto_close int at = openat(process, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, above;

	if (at < 0)
		return !has_ended(errno);
	for (int i = 0; i < CLIMB_MAX; i++) {
		if (at < 0 || fstat(at, &st) < 0 || is_root(holders, &st))
			return true;
		int next = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(&at);
		at = next;
		if (at >= 0 && fstat(at, &above) == 0 && above.st_dev == st.st_dev &&
		    above.st_ino == st.st_ino)
			return false;
	}
	return true;
}

/*
 * Git changes to the top of the worktree on which it works, unless it was told of another
 * worktree.
 */
static bool works_below(const struct holders *holders, int process)
{
	static const char *const options[] = {"--git-dir", "--work-tree", NULL};
	/*
	 * Git itself gives its children only a `.git` relative to their working folder,
	 * so only these values count.
	 */
	static const char *const variables[] = {"GIT_DIR=/",
						"GIT_DIR=..",
						"GIT_COMMON_DIR=/",
						"GIT_COMMON_DIR=..",
						"GIT_WORK_TREE=/",
						"GIT_WORK_TREE=..",
						NULL};

	return !holders->all_roots || stands_below(holders, process) ||
	       has_word(process, "cmdline", options) ||
	       has_word(process, "environ", variables);
}

/* The time when PROCESS began, by the clock of files; 0: unknown. */
static int64_t began_ns(int process)
{
	enum { BEHIND_NAME = 20 }; /* values of stat between the name and the time */
	const int64_t ticks = sysconf(_SC_CLK_TCK);
	struct timespec now;
	struct buf text;
	int64_t began = 0;

	if (file_read(process, "stat", STAT_MAX, &text) && ticks > 0 &&
	    clock_gettime(CLOCK_BOOTTIME, &now) == 0) {
		const char *at = strrchr(text.data, ')');
		for (int i = 0; i < BEHIND_NAME && at != NULL; i++)
			at = strchr(at + 1, ' ');
		if (at != NULL)
			began = clock_file_ns() - clock_ns(&now) +
				strtoll(at + 1, NULL, 10) * (CLOCK_SECOND_NS / ticks);
	}
	buf_fini(&text);
	return began;
}

/*
 * Was the file of ITEM made before PROCESS_NS, when a process began? Then that process
 * did not make the file.
 */
static bool is_older(const struct git_left_file *item, int64_t process_ns)
{
	const char *at = strrchr(item->file, ':');
	char *end;

	if (at == NULL || process_ns == 0)
		return false;
	/*
	 * The time comes from a worker: a value that cannot be a time is not multiplied.
	 */
	const int64_t seconds = strtoll(at + 1, &end, 10);
	return *end == '.' && seconds > 0 && seconds < UINT32_MAX &&
	       seconds * CLOCK_SECOND_NS + strtoll(end + 1, NULL, 10) <
		       process_ns - CLOCKS_NS;
}

static void held_set(struct holders *holders, struct git_left_file *item, const char *pid,
		     const char *comm)
{
	char text[HELD_TEXT];

	(void)snprintf(text, sizeof(text), "perhaps held by process %.16s, %.32s", pid,
		       comm);
	if (item->held == NULL)
		item->held = memory_copy(text);
	holders->found = true;
}

/* Does LINK, in FOLDER, lead to the file of ITEM? */
static bool is_open(int folder, const char *link, const struct git_left_file *item)
{
	char target[PATH_MAX], now[GIT_SCAN_FILE];
	ssize_t size = readlinkat(folder, link, target, sizeof(target));
	struct stat st;

	if (size <= 0)
		return false;
	/*
	 * Call fstatat only when the name matches, because a broken mount would not
	 * answer.
	 */
	const char *name = path_base_name(item->path);
	if (!str_ends((struct str){target, (size_t)size}, str_of(name)) ||
	    fstatat(folder, link, &st, 0) < 0)
		return false;
	git_scan_print_file(&st, now);
	/* Compare only device and inode: a process that writes changes the time. */
	const char *end = strchr(now, ':');
	end = end != NULL ? strchr(end + 1, ':') : NULL;
	return end != NULL && strncmp(now, item->file, (size_t)(end - now) + 1) == 0;
}

static void look_open(struct holders *holders, int process, const char *pid, const char *comm)
{
	int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;

	if (list == NULL) {
		fd_close(&fd);
		return;
	}
	for (const struct dirent *at; (at = readdir(list)) != NULL;) {
		for (size_t i = 0; at->d_name[0] != '.' && i < holders->left->count; i++) {
			struct git_left_file *item = &holders->left->items[i];

			if (is_open(dirfd(list), at->d_name, item))
				held_set(holders, item, pid, comm);
		}
	}
	(void)closedir(list);
}

static void look_process(struct holders *holders, int process, const char *pid)
{
	struct buf comm;

	if (!file_read(process, "comm", COMM_MAX, &comm)) {
		buf_fini(&comm);
		return; /* the process has ended */
	}
	char *end = strchr(comm.data, '\n');
	if (end != NULL)
		*end = '\0';
	look_open(holders, process, pid, comm.data);
	if (is_git(comm.data) && !is_server(process)) {
		const bool below = works_below(holders, process);
		const int64_t since_ns = began_ns(process);

		for (size_t i = 0; i < holders->left->count; i++) {
			struct git_left_file *item = &holders->left->items[i];

			if (!is_older(item, since_ns) && (below || item->shared))
				held_set(holders, item, pid, comm.data);
		}
	}
	buf_fini(&comm);
}

static void look_all(struct holders *holders)
{
	DIR *list = opendir("/proc");
	char own[16];

	(void)snprintf(own, sizeof(own), "%d", (int)getpid());
	for (const struct dirent *at; list != NULL && (at = readdir(list)) != NULL;) {
		if (at->d_name[0] < '1' || at->d_name[0] > '9' ||
		    strcmp(at->d_name, own) == 0)
			continue;
		auto_close int process =
			openat(dirfd(list), at->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (process >= 0)
			look_process(holders, process, at->d_name);
	}
	if (list != NULL)
		(void)closedir(list);
}

static void roots_take(struct holders *holders, const struct guard *guard)
{
	holders->all_roots = guard->root_count <= ROOTS_MAX;
	for (size_t i = 0; i < guard->root_count && i < ROOTS_MAX; i++) {
		const char *path = guard->roots[i].path;
		struct stat st;

		if (path != NULL && stat(path, &st) == 0)
			holders->roots[holders->root_count++] =
				(struct root){st.st_dev, st.st_ino};
	}
}

/*
 * Does this process see all processes of the machine? Not in a container, because others
 * may use its files, and not where processes of others are hidden.
 */
static bool sees_all(void)
{
	/* The kernel's name for its first pid namespace. */
	static const char first[] = "pid:[4026531836]";
	char name[sizeof(first)];

	return readlink("/proc/self/ns/pid", name, sizeof(name)) ==
		       (ssize_t)(sizeof(first) - 1) &&
	       strncmp(name, first, sizeof(first) - 1) == 0 &&
	       access("/proc/1/comm", R_OK) == 0;
}

static void held_forget(struct git_left *left)
{
	for (size_t i = 0; i < left->count; i++) {
		free(left->items[i].held);
		left->items[i].held = NULL;
	}
}

/*
 * Give each item of LEFT (scan.h) a `held` when a process has the
 * item's file open, or is a git that works below a root of GUARD or may do
 * so. While such a process is found, look again until DEADLINE_MS. ENDED: the cell has
 * ended processes of the call. When ENDED is false and this process does not see the
 * whole machine, every item counts as held.
 */
static void find_holders(struct git_left *left, const struct guard *guard, bool ended,
			 int64_t deadline_ms)
{
	struct holders holders = {.left = left};

	roots_take(&holders, guard);
	for (;;) {
		held_forget(left);
		holders.found = false;
		look_all(&holders);
		if (!holders.found || clock_now_ms() >= deadline_ms)
			break;
		(void)poll(NULL, 0, AGAIN_MS);
	}
	for (size_t i = 0; !ended && !sees_all() && i < left->count; i++) {
		if (left->items[i].held == NULL)
			left->items[i].held = memory_copy(
				"whether a git elsewhere holds it cannot be seen");
	}
}

/* The files, from one worker to the next. */

void running_take_left(struct running *running, struct tool_result *result)
{
	struct git_left left = {0};

	audit_take_left(result, &left);
	/*
	 * A file that is found while the others are removed was left by no process that
	 * this call ended.
	 */
	if (running->left.state != LEFT_UNSEEN) {
		git_left_fini(&left);
		return;
	}
	running->left.state = LEFT_SEEN;
	running->left.files = left;
}

/*
 * Were processes of the call ended by force, by its worker or together with its worker?
 */
static bool ended_some(const struct running *running)
{
	const struct tool_result *result = &running->result;

	return running->due != DUE_CALL || result->status == RESULT_TIMED_OUT ||
	       result->status == RESULT_CANCELLED ||
	       value_integer(value_member(result->details, "left_processes")) > 0;
}

/* Add ITEM to LEFT unless it is there. Whether somebody holds it is asked anew. */
static void item_copy(struct git_left *left, const struct git_left_file *item, bool told)
{
	const size_t before = left->count;
	struct git_left_file *copy = git_left_add(left, item->path, item->file);

	if (copy == NULL || left->count == before)
		return;
	copy->shared = item->shared;
	copy->told = told;
}

/* Files of LEFT that some process may hold are looked at again after the next call. */
static void held_keep(struct session *session, const struct git_left *left)
{
	for (size_t i = 0; i < left->count; i++) {
		if (left->items[i].held != NULL)
			item_copy(&session->held, &left->items[i], true);
	}
}

static void held_join(struct session *session, struct running *running)
{
	for (size_t i = 0; i < session->held.count; i++)
		item_copy(&running->left.files, &session->held.items[i],
			  session->held.items[i].told);
	git_left_fini(&session->held);
}

bool running_left_waits(struct running *running)
{
	const struct guard *guard = cell_spec(running->session->cell)->guard;

	if (running->left.state != LEFT_SEEN)
		return false;
	running->left.state = LEFT_JUDGED;
	held_join(running->session, running);
	if (running->left.files.count == 0 || guard == NULL)
		return false;
	find_holders(&running->left.files, guard, ended_some(running),
		     clock_now_ms() + (running->due == DUE_MEND ? DYING_MS : SHORT_MS));
	held_keep(running->session, &running->left.files);
	return true;
}

struct value *running_left_carried(const struct running *running)
{
	if (running->left.state != LEFT_JUDGED && running->busy.sent_ns == 0)
		return NULL;
	return audit_carry_left(running->left.state == LEFT_UNSEEN ? running->busy.sent_ns
								   : 0,
				&running->left.files);
}

/*
 * Queue RUNNING, a call of the session's own that deals with what a killed session left,
 * and turn the loop until it has ended, but no longer than DEADLINE_MS. Returns whether it
 * has ended. The caller frees RUNNING.
 */
static bool mend_wait(struct running *running, int64_t deadline)
{
	struct session *session = running->session;

	/* The audit itself is left to the session's first call. */
	running->due = DUE_MEND;
	running_step(running, HAPPENS_QUEUED);
	running_dispatch(session);
	while (!running_is_done(running) && clock_now_ms() < deadline)
		loop_turn(session->loop, deadline);
	return running_is_done(running);
}

/* No table lists this tool. A worker knows it by its name. */
static const struct tool left_tool = {
	.name = AUDIT_CALL,
	.description = "Look for what the gits of a killed session left.",
	.effects = EFFECT_READS,
	.internal = true,
};

/* The words for the first result of SESSION. */
static struct tool_result *said_of(struct session *session)
{
	if (session->said == NULL) {
		session->said = memory_alloc(sizeof(*session->said));
		tool_result_init(session->said);
	}
	return session->said;
}

/* The files of the gits of a killed session. */
static void put_left_away(struct session *session)
{
	const struct guard *guard = cell_spec(session->cell)->guard;
	struct running *running;

	if (!session->taken_over || guard == NULL)
		return;
	running = running_of_session(session, &left_tool);
	running->busy.sent_ns = guard->ticked_ns;
	if (mend_wait(running, clock_now_ms() + LOOK_MS) && running->result.text.size > 0)
		audit_take(said_of(session), &running->result);
	running_free(running);
}

/*
 * Puts back the writes that killed fronts have left without an end, before the session's
 * first call. No policy of this session shows the folders that a person had granted to such
 * a front. So the worker that puts back a write there sees these folders, and does nothing
 * else. A session whose workers could not try this does not begin: its calls would work on
 * a set of files of which some are old and some are new.
 */

/* How an attempt to put back the writes in a log has ended. */
enum mend_end {
	MEND_DONE,
	MEND_LEFT, /* a worker put back all that it could; a later session has the rest */
	MEND_LOST, /* no worker has answered */
};

static const struct tool mend_tool = {
	.name = "mend",
	.description = "Put back what a killed session had begun to write.",
	.effects = EFFECT_READS,
	.internal = true,
};

/*
 * The folder of ROOT, when it is still the folder that was granted and this cell may have
 * it; else NULL. *GONE: that folder will never be there again.
 */
static struct extra *extra_of(const struct cell_spec *cell, const struct value *root,
			      bool *gone)
{
	struct pending_root granted = {0};
	(void)fields_read(root, pending_root_fields, &granted, NULL, NULL);
	auto_free char *path = granted.path;
	struct extra *extra;
	struct stat st;
	char file[PENDING_FILE];
	struct err err;

	*gone = true;
	auto_close int fd =
		path != NULL ? open(path, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC)
			     : -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	pending_file(&st, file);
	if (!str_is(granted.file, file))
		return NULL;
	*gone = false;
	const struct shape_extra wanted = {.path = path, .fd = fd, .writable = true};
	if (!shape_judge_extra(cell, &wanted, &err))
		return NULL;
	extra = memory_alloc(sizeof(*extra));
	extra->root = (struct shape_extra){.path = memory_copy(path),
					   .fd = fd_take(&fd),
					   .writable = true};
	extra->granted = true;
	return extra;
}

/*
 * Add the folders of ROOTS that this cell may have now to *FIRST. Returns the keys of all
 * but those that will never be there again: what was written there stays as it is.
 */
static struct value *extras_take(const struct cell_spec *cell, const struct value *roots,
				 struct extra **first)
{
	struct value *granted = value_new_array();
	size_t count = 0;

	for (size_t i = 0; i < value_count(roots); i++) {
		struct value *root = value_item(roots, i);
		bool gone = false;
		struct extra *extra =
			count < ANCHOR_EXTRAS_MAX ? extra_of(cell, root, &gone) : NULL;

		if (!gone)
			value_append(granted, value_ref(value_member(root, "path")));
		if (extra == NULL)
			continue;
		extra->next = *first;
		*first = extra;
		count++;
	}
	return granted;
}

/* Put back the write in LOG, once. ERR is the reason of MEND_LOST. */
static enum mend_end mend(struct session *session, const struct pending_left_log *log,
			  int64_t deadline_ms, struct err *err)
{
	struct running *running = running_of_session(session, &mend_tool);
	struct value *rights =
		log->rights != NULL ? value_copy(log->rights) : value_new_object();

	value_set_boolean(rights, RIGHTS_LAYER, session->review != NULL);
	value_set(rights, RIGHTS_GRANTED,
		  extras_take(cell_spec(session->cell), log->granted,
			      &running->asking.extras));
	running->files.held.fd = log->fd;
	running->files.unfinished = rights;
	const bool ended = mend_wait(running, deadline_ms);
	const bool answered = ended && !audit_failed(&running->result);
	const char *broken = cell_broken(session->cell);
	if (!answered)
		(void)err_set(err, broken != NULL ? ECHILD : EIO, "%s",
			      !ended ? "it takes too long"
				     : (broken != NULL ? broken : "its worker ended"));
	/* The worker names the old files that had to stay where they are. */
	else if (running->result.text.size > 0)
		audit_take(said_of(session), &running->result);
	running_free(running);
	if (!undo_log_is_unfinished(log->fd))
		return MEND_DONE;
	return answered ? MEND_LEFT : MEND_LOST;
}

/* As mend, with another worker when one is lost. */
static enum mend_end mend_tried(struct session *session, const struct pending_left_log *log,
				int64_t deadline_ms, struct err *err)
{
	enum mend_end end = MEND_LOST;

	if (log->state == PENDING_BLOCKED)
		(void)err_set(err, EBUSY, "%s", log->why);
	for (int i = 0;
	     log->state != PENDING_BLOCKED && end == MEND_LOST && i < MEND_TRIES; i++) {
		end = mend(session, log, deadline_ms, err);
		if (clock_now_ms() >= deadline_ms || cell_broken(session->cell) != NULL)
			break;
	}
	return end;
}

/* Add the name FILE (NULL: unknown) to the sentence TEXT. */
static void add_file(const char *file, struct buf *text)
{
	if (file != NULL)
		text_add_name(text, str_of(file));
	else
		(void)buf_adds(text, "a file");
}

/* The text that says so, when files of a write may stay between old and new. */
static struct buf *said_writes_left(struct session *session)
{
	struct tool_result *said = said_of(session);

	value_set_boolean(tool_details(said), "writes_left", true);
	return &said->text;
}

/* The files of a write, of which FILE is one (NULL: unknown), stay between old and new. */
static void say_left(struct session *session, const char *file)
{
	struct buf *text = said_writes_left(session);

	(void)buf_adds(text, "[A process was killed that had begun to write ");
	add_file(file, text);
	(void)buf_adds(text,
		       ". This session may not put it and the files that were written "
		       "with it back, or could not: some of them may be old and others "
		       "new. A later session that may write all of them puts them "
		       "back.]\n");
}

/* Nobody puts the files of a killed write back: where their contents lie. */
static void add_temps(struct buf *text)
{
	(void)buf_adds(text,
		       " Files called .glovebox-*.tmp may lie beside them and hold what they "
		       "held before, or the new content (find . -name '.glovebox-*.tmp'). "
		       "Take out of these what you need, then remove them.");
}

/*
 * The log of a set of writes, of which FILE is one (NULL: unknown), is damaged. A worker has
 * told of the temporary files that the log still names. The log stays as KEPT (NULL: a later
 * session tells its name).
 */
static void say_damaged(struct session *session, const char *file, const char *kept)
{
	struct buf *text = said_writes_left(session);

	(void)buf_adds(text, "[A process was killed while it changed ");
	add_file(file, text);
	(void)buf_adds(text,
		       " and others, and the record of this is damaged. So nothing was put "
		       "back or removed: some of these files may be old and others new.");
	add_temps(text);
	if (kept != NULL) {
		(void)buf_adds(text, " The record is kept as ");
		text_add_name(text, str_of(kept));
		(void)buf_addc(text, '.');
	}
	(void)buf_adds(text, "]\n");
}

static bool is_damaged(int log)
{
	struct undo_reader reader = {0};

	(void)undo_log_read(&reader, log, NULL);
	return reader.damaged;
}

/* No later session would find the log of a call of SESSION. Said once. */
static void say_unheld(struct session *session)
{
	if (session->told_unheld)
		return;
	session->told_unheld = true;
	value_set_boolean(tool_details(said_of(session)), "no_record", true);
	(void)buf_adds(&session->said->text,
		       "[The folder glovebox/pending in your state folder cannot be used. If "
		       "glovebox is killed while it writes files, nobody puts them back.]\n");
}

/*
 * The session's own tool that writes (restore) takes the log as its last descriptor. Any
 * other call takes it as its first one.
 */
bool running_hold_log(struct running *running, struct err *err)
{
	struct running_files *files = &running->files;
	const struct sandbox_identity *cell = &cell_spec(running->session->cell)->identity;
	const bool is_ours = running_is_ours(running->tool) && files->fd_count > 0;
	const int log = is_ours ? files->fds[files->fd_count - 1] : files->log_fd;

	if (running->due != DUE_CALL || (running->tool->effects & EFFECT_WRITES) == 0 ||
	    files->held.fd >= 0)
		return true;
	const bool is_held = cell_hold_log(running->session->cell, log, &files->held);
	if (files->held.fd < 0)
		return err_set(err, errno,
			       "The log of this call could not be made (%s), so nothing "
			       "was written.",
			       strerror(errno));
	if (!is_held)
		say_unheld(running->session);
	/* The marks of the log (record.h) are set by its worker, and only an owner can. */
	if (cell->change)
		(void)!fchown(files->held.fd, cell->uid, cell->gid);
	if (log < 0)
		running_set_log(running, files->held.fd);
	return true;
}

void running_set_log(struct running *running, int fd)
{
	struct running_files *files = &running->files;

	assert(files->fd_count < CALL_FDS_MAX);
	memmove(files->fds + 1, files->fds, files->fd_count * sizeof(files->fds[0]));
	files->fds[0] = files->log_fd = fd;
	files->fd_count++;
}

/*
 * A write without an end of a call of this session: its worker was lost, and so was the one
 * that was to put it back. Another one tries that before any other call begins.
 */
struct unmended {
	struct unmended *next;
	struct pending_log held; /* its descriptor is ours */
	struct value *rights;
	struct extra *extras; /* the folders that were granted to the call */
	/* the call that puts it back, which the session frees when it closes; NULL: none */
	struct running *running;
	int tries;
};

/* RUNNING is over, and its write is not put back. False: nothing more can be done. */
static bool unmended_add(struct running *running)
{
	struct session *session = running->session;
	struct unmended *left;
	const int fd = fcntl(running->files.held.fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return false;
	left = memory_alloc(sizeof(*left));
	*left = (struct unmended){.next = session->unmended,
				  .held = running->files.held,
				  .rights = running->files.unfinished,
				  .extras = running->asking.extras};
	left->held.fd = fd;
	running->files.unfinished = NULL;
	running->asking.extras = NULL;
	session->unmended = left;
	(void)buf_adds(said_writes_left(session),
		       "[A process was killed that had begun to write a file, and so was the "
		       "one that was to put it back. Some of the files that were written with "
		       "it may be old and others new. They are put back before the next call "
		       "begins.]\n");
	return true;
}

/* Take LEFT out of its session. IS_OVER: no write in its log is without an end. */
static void unmended_remove(struct session *session, struct unmended *left, bool is_over)
{
	struct unmended **at = &session->unmended;

	while (*at != left)
		at = &(*at)->next;
	*at = left->next;
	struct running gone = {.session = session, .asking.extras = left->extras};
	extra_drop_all(&gone);
	int fd = left->held.fd;
	if (is_over)
		cell_drop_log(session->cell, &left->held);
	fd_close(&fd);
	value_free(left->rights);
	free(left);
}

/* The call that puts LEFT back is done. False: another one has to try. */
static bool unmended_ends(struct session *session, struct unmended *left)
{
	struct tool_result *result = &left->running->result;
	const bool answered = !audit_failed(result);

	if (answered && result->text.size > 0)
		audit_take(said_of(session), result);
	const bool is_over = !undo_log_is_unfinished(left->held.fd);
	if (!is_over && !answered && left->tries < MEND_TRIES &&
	    cell_broken(session->cell) == NULL)
		return false;
	if (!is_over && is_damaged(left->held.fd))
		say_damaged(session, NULL, NULL);
	else if (!is_over)
		say_left(session, NULL);
	unmended_remove(session, left, is_over);
	return true;
}

void session_mend_again(struct session *session, bool closes)
{
	for (struct unmended *next, *left = session->unmended; left != NULL; left = next) {
		next = left->next;
		if (closes) {
			unmended_remove(session, left, false);
			continue;
		}
		/* No call waits for it, or somebody is at it. */
		if (left->running == NULL ? session->first_queued == NULL
					  : !running_is_done(left->running) ||
						    unmended_ends(session, left))
			continue;
		left->tries++;
		left->running = running_of_session(session, &mend_tool);
		left->running->files.held.fd = left->held.fd;
		left->running->files.unfinished = value_ref(left->rights);
		left->running->asking.extras = left->extras;
		left->extras = NULL;
		left->running->due = DUE_MEND;
		/* The files of killed gits wait for another call. */
		left->running->left.state = LEFT_JUDGED;
		running_step(left->running, HAPPENS_QUEUED);
	}
}

/* The mender of a write of this session returns the folders that it was given. */
static void extras_return(struct running *running)
{
	for (struct unmended *at = running->session->unmended; at != NULL; at = at->next) {
		if (at->running != running)
			continue;
		at->extras = running->asking.extras;
		running->asking.extras = NULL;
	}
}

void running_drop_log(struct running *running)
{
	if (running->due == DUE_MEND)
		extras_return(running);
	else if (running->files.unfinished == NULL)
		cell_drop_log(running->session->cell, &running->files.held);
	else if (is_damaged(running->files.held.fd))
		say_damaged(running->session, NULL, NULL);
	else if (!unmended_add(running))
		say_left(running->session, NULL);
	value_free(running->files.unfinished);
	running->files.unfinished = NULL;
}

struct value *running_unfinished(const struct running *running)
{
	struct value *rights, *granted;

	if (!undo_log_is_unfinished(running->files.held.fd))
		return NULL;
	rights = spec_rights(cell_spec(running->session->cell));
	granted = value_new_array();
	for (const struct extra *at = running->asking.extras; at != NULL; at = at->next) {
		auto_free char *key = path_key(at->root.path);

		if (at->root.writable)
			value_append(granted, value_new_text(key));
	}
	value_set(rights, RIGHTS_GRANTED, granted);
	return rights;
}

/* Set ERR, the reason, to a sentence that names the file and the remedy. Returns false. */
static bool say_blocked(const struct pending_left_log *log, struct err *err)
{
	const struct err why = *err;
	struct buf file;

	buf_init(&file, PATH_MAX);
	add_file(log->file, &file);
	(void)err_set(err, why.code,
		      "A killed session had begun to write %.300s. This and its other files "
		      "could not be put back (%.200s), so nothing is done here. Try again. To "
		      "leave these files as they are, remove %.300s; the old ones may lie "
		      "beside them, as .glovebox-*.tmp.",
		      file.data, why.text, log->name);
	buf_fini(&file);
	return false;
}

static void say_foreign(struct session *session, const struct pending_left_log *log)
{
	struct buf *text = said_writes_left(session);

	(void)buf_adds(text,
		       "[Another version of glovebox was killed while it wrote files, of "
		       "which some may be old and others new.");
	add_temps(text);
	(void)buf_adds(text, " This version cannot read the record, which is kept as ");
	text_add_name(text, str_of(log->name));
	(void)buf_adds(text, ".]\n");
}

static bool mend_all(struct session *session, struct err *err)
{
	struct pending *pending = cell_pending(session->cell);
	const int64_t deadline_ms = clock_now_ms() + MEND_MS;
	const struct pending_left_log *log;
	bool all = true;

	if (pending_left(pending, 0) == NULL)
		return true;
	for (size_t i = 0; (log = pending_left(pending, i)) != NULL; i++) {
		if (log->state == PENDING_FOREIGN) {
			say_foreign(session, log);
			continue;
		}
		const enum mend_end end = mend_tried(session, log, deadline_ms, err);
		/* A person has to decide, and nothing waits for that. */
		if (log->state == PENDING_DAMAGED) {
			say_damaged(session, log->file, log->name);
			continue;
		}
		/* The locks stay with this session until it closes. */
		if (end == MEND_LOST)
			return say_blocked(log, err);
		if (end == MEND_LEFT && all)
			say_left(session, log->file);
		all = all && end == MEND_DONE;
	}
	pending_mended(pending, all);
	return true;
}

bool session_mend(struct session *session, struct err *err)
{
	if (!mend_all(session, err))
		return false;
	put_left_away(session);
	return true;
}
