/* ledger: the files of a chain, their lock, and the thread that waits for the disk. */

#include "audit/ledger.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_NAME "lock"
#define HEAD_NAME "head"
#define HEAD_NEW  "head.new" /* until it has its content */

enum {
	SYNC_S = 1,      /* the longest that a line is in memory only */
	STUCK_MS = 5000, /* nobody waits for the lock again so soon after a wait for nothing */
	FILE_MODE = 0600,
	FOLDER_MODE = 0700,
	NUMBER_MAX = 999999,  /* of a file; with LEDGER_FILE_MAX these are 256 TB */
	LINE_USUAL = 4 << 10, /* a line without its arguments is shorter */
	LINE_LONG = 2 * CHAIN_LINE_MAX,
	/* The file of the head always has this size, so that a full disk takes it, too. */
	HEAD_SIZE = 512,
};

/* Lines that were gone when this writer began. */
struct gone {
	bool untold; /* no line of the chain says so yet */
	uint64_t lost;
	char head[CHAIN_HEAD_MAX];
};

struct ledger {
	char *folder_name;
	char *key; /* its bytes; NULL: none */
	size_t key_size;
	bool each;
	uint64_t file_max;

	int folder, lock, file; /* file: the one that grows */
	int head_file;
	bool head_is_new; /* it has not got its name yet */
	int64_t stuck_ms; /* until then nobody waits for the lock */
	unsigned number;  /* of that file */
	dev_t device;     /* these two are its status, too */
	ino_t inode;
	off_t size; /* of it, when we looked last */
	struct chain_check last;
	struct chain_head known; /* the place of that line */
	bool line_is_last;       /* `line` holds it */
	struct gone gone;

	struct buf waiting; /* bodies of lines, each with a line end */
	uint64_t lost;      /* records beyond the ceiling of `waiting` */
	uint64_t lost_ever; /* the same, with those that a line has told of */
	int64_t refused_ms; /* when the last record was refused; 0: the last one was not */
	size_t torn;        /* bytes that were cut off, and no line says so yet */
	struct buf line, body;

	/* Everything above is used under this lock, by callers and by the thread. */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread, ends;
	bool idle;       /* the thread waits for a line, and not for the next second */
	bool dirty;      /* the disk may lack lines */
	bool head_dirty; /* it may lack the last head */
	int sync_error;  /* errno of a sync that failed; 0: none did since */

	void (*head)(void *context, const char *sentence);
	void *context;
	int64_t head_ms, told_ms; /* between two heads; when the last one was told */
	uint64_t told;            /* its seq */
};

/* The files of the folder. */

static void place_of(unsigned number, char place[LEDGER_PLACE_MAX])
{
	(void)snprintf(place, LEDGER_PLACE_MAX, "audit-%06u.jsonl", number);
}

static int open_file(const struct ledger *ledger, unsigned number, int flags)
{
	char place[LEDGER_PLACE_MAX];

	place_of(number, place);
	return openat(ledger->folder, place,
		      O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags,
		      FILE_MODE);
}

static bool folder_open(struct ledger *ledger, struct err *err)
{
	const char *name = ledger->folder_name;
	struct stat st;

	if (mkdir(name, FOLDER_MODE) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %s", name, strerror(errno));
	ledger->folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ledger->folder < 0 || fstat(ledger->folder, &st) < 0)
		return err_set(err, errno, "%s: %s", name, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, EPERM,
			       "%s: %s; an audit needs a folder of its own: chmod go-w, or name "
			       "another one",
			       name,
			       st.st_uid != geteuid() ? "belongs to another user"
						      : "others may write to it");
	ledger->lock = openat(ledger->folder, LOCK_NAME,
			      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	return ledger->lock >= 0 ||
	       err_set(err, errno, "%s/" LOCK_NAME ": %s", name, strerror(errno));
}

/* The head for the writers to come. */

/* Print the last line of all as the head, with the digits of nothing where there is none. */
static bool print_head(const struct ledger *ledger, char text[HEAD_SIZE])
{
	struct chain_head head = ledger->known;
	struct buf line;
	bool ok;

	if (head.seq == 0)
		head = (struct chain_head){.file = 1};
	buf_init(&line, HEAD_SIZE);
	ok = chain_seal_head(&head, (struct str){ledger->key, ledger->key_size}, &line);
	if (ok) {
		memset(text, ' ', HEAD_SIZE);
		memcpy(text, line.data, line.size - 1);
		text[HEAD_SIZE - 1] = '\n';
	}
	buf_fini(&line);
	return ok;
}

/* NAME, the file of the head or the new one, stands in the way: it is no file, and not empty. */
static bool complain_of_folder(const struct ledger *ledger, const char *name, int code,
			       struct err *err)
{
	return err_set(err, code,
		       "%s/%s is no file of an audit, and stays there (%s): remove it",
		       ledger->folder_name, name, strerror(code));
}

static bool complain_of_head(const struct ledger *ledger, int code, struct err *err)
{
	return err_set(err, code, "%s/" HEAD_NAME ": %s", ledger->folder_name,
		       strerror(code));
}

/* Forget a new file of the head, which did not get its name. */
static void drop_new_head(struct ledger *ledger)
{
	if (!ledger->head_is_new)
		return;
	(void)unlinkat(ledger->folder, HEAD_NEW, 0);
	fd_close(&ledger->head_file);
	ledger->head_is_new = false;
}

/*
 * Open the file of the head: the one of that name, when it is one that a ledger has made and nobody
 * else has, or a new one, whose bytes the disk keeps free, until give_name.
 */
static bool open_head(struct ledger *ledger, struct err *err)
{
	auto_close int fd = openat(ledger->folder, HEAD_NAME,
				   O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	int code;

	fd_close(&ledger->head_file);
	ledger->head_is_new = false;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    st.st_size == HEAD_SIZE) {
		ledger->head_file = fd_take(&fd);
		return true;
	}
	fd_close(&fd);
	(void)unlinkat(ledger->folder, HEAD_NEW, 0);
	fd = openat(ledger->folder, HEAD_NEW, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
		    FILE_MODE);
	if (fd < 0 && errno == EEXIST)
		return complain_of_folder(ledger, HEAD_NEW, EEXIST, err);
	if (fd < 0)
		return complain_of_head(ledger, errno, err);
	ledger->head_file = fd_take(&fd);
	ledger->head_is_new = true;
	do
		code = posix_fallocate(ledger->head_file, 0, HEAD_SIZE);
	while (code == EINTR);
	if (code == 0)
		return true;
	drop_new_head(ledger);
	return complain_of_head(ledger, code, err);
}

/*
 * Give the new file of the head its name, in the place of whatever has it. The disk has the lines and
 * the content before, so that a machine that loses its power leaves a whole head of a line that is
 * there.
 */
static bool give_name(struct ledger *ledger, struct err *err)
{
	const int folder = ledger->folder;

	if (fdatasync(ledger->file) < 0 || fdatasync(ledger->head_file) < 0)
		return complain_of_head(ledger, errno, err);
	/* An empty folder makes room. */
	if (renameat(folder, HEAD_NEW, folder, HEAD_NAME) < 0) {
		if (errno != EISDIR)
			return complain_of_head(ledger, errno, err);
		if (unlinkat(folder, HEAD_NAME, AT_REMOVEDIR) < 0 ||
		    renameat(folder, HEAD_NEW, folder, HEAD_NAME) < 0)
			return complain_of_folder(ledger, HEAD_NAME, errno, err);
	}
	ledger->head_is_new = false;
	ledger->head_dirty = false;
	(void)fsync(folder);
	return true;
}

/* Keep the last line of all as the head, in the file of open_head. */
static bool keep_head(struct ledger *ledger, struct err *err)
{
	char text[HEAD_SIZE];
	ssize_t wrote;

	if (!print_head(ledger, text))
		return complain_of_head(ledger, EFBIG, err);
	wrote = pwrite(ledger->head_file, text, HEAD_SIZE, 0);
	if (wrote != HEAD_SIZE)
		return complain_of_head(ledger, wrote < 0 ? errno : ENOSPC, err);
	ledger->head_dirty = true;
	return !ledger->head_is_new || give_name(ledger, err);
}

/*
 * Is the file of the head still the one of that name? It may have been removed, or exchanged for
 * another one: a head that nobody finds protects no line.
 */
static bool head_is_named(const struct ledger *ledger)
{
	struct stat held, named;

	return ledger->head_file >= 0 && fstat(ledger->head_file, &held) == 0 &&
	       fstatat(ledger->folder, ledger->head_is_new ? HEAD_NEW : HEAD_NAME, &named,
		       AT_SYMLINK_NOFOLLOW) == 0 &&
	       held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/*
 * Have a file that takes the head of the next line. A new one says where the chain stands before it gets
 * that line, and the first line of a writer that was killed gets its head, so that no head is more than
 * one line behind.
 */
static bool ready_head(struct ledger *ledger, struct err *err)
{
	const uint64_t seq = ledger->last.seq;

	if (!head_is_named(ledger) && !open_head(ledger, err))
		return false;
	/* A head that was not right stays so, until a record says that. */
	if (ledger->gone.untold || ledger->known.seq != seq ||
	    (!ledger->head_is_new && (seq != 1 || ledger->line_is_last)))
		return true;
	if (keep_head(ledger, err))
		return true;
	drop_new_head(ledger);
	return false;
}

/*
 * Have the disk take the lines of FILE, then the head. False with errno: it lacks lines. A HEAD that
 * it does not take is the former one there.
 */
static bool sync_files(int file, int head)
{
	if (fdatasync(file) < 0)
		return false;
	if (head >= 0)
		(void)fdatasync(head);
	return true;
}

/* The head that a writer finds when it begins. */
enum head_state {
	HEAD_NONE,  /* there is no file */
	HEAD_EMPTY, /* its file has no byte */
	HEAD_CHANGED, /* its file holds something else, or it was not sealed with this key */
	HEAD_FOREIGN, /* what has its name is a link, a folder, …, or may not be read */
	HEAD_UNREADABLE, /* the machine cannot read it now: errno says why */
	HEAD_KEPT,
};

/* The words of a record CHAIN_CUT for those that name no line. */
static const char *const head_words[] = {
	[HEAD_NONE] = "none",
	[HEAD_EMPTY] = "empty",
	[HEAD_CHANGED] = "changed",
	[HEAD_FOREIGN] = "changed",
};

/* Is a file with MODE none that a ledger makes? *WHAT: what it is. */
static bool is_foreign(mode_t mode, const char **what)
{
	*what = S_ISLNK(mode)    ? "a symbolic link"
		: S_ISDIR(mode)  ? "a folder"
		: S_ISFIFO(mode) ? "a pipe"
				 : "no regular file";
	return !S_ISREG(mode);
}

/* Read the head. *WHAT: the words for one that is foreign, or NULL. */
static enum head_state read_head(const struct ledger *ledger, struct chain_head *head,
				 const char **what)
{
	auto_close int fd = -1;
	char text[HEAD_SIZE];
	struct stat st;
	ssize_t size;

	if (fstatat(ledger->folder, HEAD_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? HEAD_NONE : HEAD_UNREADABLE;
	if (is_foreign(st.st_mode, what))
		return HEAD_FOREIGN;
	fd = openat(ledger->folder, HEAD_NAME,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	*what = "a file that may not be read";
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? HEAD_FOREIGN : HEAD_UNREADABLE;
	size = pread(fd, text, sizeof(text), 0);
	if (size < 0)
		return HEAD_UNREADABLE;
	if (size == 0)
		return HEAD_EMPTY;
	while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\n'))
		size--;
	return chain_read_head((struct str){text, (size_t)size},
			       (struct str){ledger->key, ledger->key_size}, head, NULL)
		       ? HEAD_KEPT
		       : HEAD_CHANGED;
}

/*
 * Become the one writer. The loop of the front waits here: after a wait for nothing, further
 * records do not wait for some seconds.
 */
static bool lock_take(struct ledger *ledger, struct err *err)
{
	const struct timespec moment = {.tv_nsec = 500000};
	const int64_t now_ms = clock_now_ms();
	const int64_t until_ms =
		now_ms < ledger->stuck_ms ? now_ms : now_ms + LEDGER_LOCK_MS;

	while (flock(ledger->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(err, errno, "%s", strerror(errno));
		if (clock_now_ms() >= until_ms) {
			if (now_ms != until_ms)
				ledger->stuck_ms = until_ms + STUCK_MS;
			return err_set(err, EWOULDBLOCK,
				       "another process has held %s/" LOCK_NAME " for %d s",
				       ledger->folder_name, LEDGER_LOCK_MS / 1000);
		}
		(void)nanosleep(&moment, NULL);
	}
	ledger->stuck_ms = 0;
	return true;
}

static void lock_drop(const struct ledger *ledger)
{
	(void)flock(ledger->lock, LOCK_UN);
}

/* Finding the end of the chain. */

/*
 * Read the bytes of FD before SIZE into TAIL, as many as TAIL may have. A line and what is torn
 * behind it may take twice CHAIN_LINE_MAX. False with errno; 0: FD ends before SIZE.
 */
static bool read_tail(int fd, off_t size, struct buf *tail)
{
	const off_t from = size > (off_t)tail->max ? size - (off_t)tail->max : 0;
	size_t left = (size_t)(size - from);

	while (left > 0) {
		char *room = buf_reserve(tail, left);
		const ssize_t got =
			room != NULL ? pread(fd, room, left, from + (off_t)tail->size) : -1;

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			errno = 0;
		if (got <= 0)
			return false;
		buf_commit(tail, (size_t)got);
		left -= (size_t)got;
	}
	return true;
}

/*
 * Put the last line of the file FD, of SIZE bytes, into LAST, whose seq stays 0 when there is
 * none. *TORN: the bytes behind it that are no whole line.
 */
static bool find_last(const struct ledger *ledger, int fd, off_t size,
		      struct chain_check *last, size_t *torn, struct err *err)
{
	struct str text;
	struct buf tail;
	size_t end, begin;
	bool ok = true;

	buf_init(&tail, 2 * (size_t)CHAIN_LINE_MAX);
	*last = (struct chain_check){.key = {ledger->key, ledger->key_size}};
	*torn = 0;
	if (!read_tail(fd, size, &tail)) {
		buf_fini(&tail);
		return err_set(err, EIO, "its end cannot be read");
	}
	text = buf_str(&tail);
	for (end = text.size; end > 0 && text.data[end - 1] != '\n'; end--)
		(*torn)++;
	if (end > 0) {
		for (begin = end - 1; begin > 0 && text.data[begin - 1] != '\n'; begin--)
			;
		ok = chain_check_last(last, str_part(text, begin, end - 1 - begin), err) ||
		     err_while(err, "its last line");
	} else if ((off_t)text.size < size) {
		ok = err_set(err, EPROTO, "its last line is too long");
	}
	buf_fini(&tail);
	if (ok && ledger->key == NULL && last->has_hmac)
		ok = err_set(err, EPROTO,
			     "it was written with a key, and there is none (key_file)");
	return ok;
}

static bool complain_of(const struct ledger *ledger, unsigned number, struct err *err)
{
	char place[LEDGER_PLACE_MAX];

	place_of(number, place);
	return err_while(err, "%s/%s", ledger->folder_name, place);
}

/* The number of the last file; 0: there is none. */
static unsigned last_number(const struct ledger *ledger)
{
	DIR *names = fd_open_names(ledger->folder);
	unsigned last = 0;

	if (names == NULL)
		return 0;
	for (struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		char place[LEDGER_PLACE_MAX];
		unsigned number = 0;

		if (sscanf(at->d_name, "audit-%6u.jsonl", &number) != 1)
			continue;
		place_of(number, place);
		if (strcmp(place, at->d_name) == 0 && number > last)
			last = number;
	}
	(void)closedir(names);
	return last;
}

/* Write LEDGER.line, a whole line, behind the last one. False: nothing of it is there. */
static bool write_line(struct ledger *ledger, struct err *err)
{
	const struct str line = buf_str(&ledger->line);
	ssize_t wrote;
	int code;

	do
		wrote = write(ledger->file, line.data, line.size);
	while (wrote < 0 && errno == EINTR);
	code = wrote < 0 ? errno : ENOSPC;
	if (wrote == (ssize_t)line.size) {
		ledger->size += wrote;
		ledger->dirty = true;
		return true;
	}
	/* A torn line that stays is cut off by the next writer. */
	if (wrote > 0 && ftruncate(ledger->file, ledger->size) < 0)
		ledger->size = -1;
	return err_set(err, code, "%s", strerror(code));
}

/* Note the last line, whose end is that of the file, as the one that has to stay. */
static void know_last(struct ledger *ledger)
{
	struct chain_head *known = &ledger->known;

	*known = (struct chain_head){.file = ledger->number,
				     .end = ledger->size,
				     .seq = ledger->last.seq};
	memcpy(known->digits, ledger->last.prev, sizeof(known->digits));
}

/* Write the line with BODY; a BODY that stays in LEDGER.body is fine. */
static bool add_line(struct ledger *ledger, struct str body, struct err *err)
{
	const struct chain_check former = ledger->last;
	const struct chain_head known = ledger->known;
	const off_t size = ledger->size;
	struct chain_check *last = &ledger->last;
	struct buf first;
	bool ok;

	if (!ready_head(ledger, err))
		return false;
	ledger->line_is_last = false;
	buf_clear(&ledger->line);
	buf_init(&first, CHAIN_LINE_MAX);
	if (size == 0) {
		(void)buf_addstr(&first, body);
		(void)buf_adds(&first, CHAIN_KEEPS_HEAD);
		body = buf_str(&first);
	}
	ok = !first.overflowed &&
	     chain_seal(body, last->seq + 1, last->prev,
			(struct str){ledger->key, ledger->key_size}, &ledger->line);
	buf_fini(&first);
	if (!ok)
		(void)err_set(err, EFBIG, "a line is longer than %d bytes", CHAIN_LINE_MAX);
	if (!ok || !write_line(ledger, err)) {
		drop_new_head(ledger);
		return false;
	}
	last->seq++;
	last->has_hmac = ledger->key != NULL;
	hash_text(str_part(buf_str(&ledger->line), 0, ledger->line.size - 1), last->prev);
	know_last(ledger);
	ledger->line_is_last = keep_head(ledger, err);
	if (ledger->line_is_last)
		return true;
	/* A line that is no head could be cut off in silence: it does not stay. */
	drop_new_head(ledger);
	ledger->size = ftruncate(ledger->file, size) == 0 ? size : -1;
	ledger->last = former;
	ledger->known = known;
	/* A part of its head, which the file may have, goes, too. */
	if (ledger->head_file >= 0 && !ledger->gone.untold && known.seq == former.seq)
		(void)keep_head(ledger, NULL);
	return false;
}

/* Write a record of the ledger itself, with the further members MORE. */
static bool add_record(struct ledger *ledger, enum chain_event event,
		       const struct value *more, struct err *err)
{
	struct chain_record record = chain_record_of(event);
	struct buf body;
	bool ok;

	record.more = more;
	buf_init(&body, CHAIN_LINE_MAX);
	ok = chain_print(&record, &body) && add_line(ledger, buf_str(&body), err);
	buf_fini(&body);
	return ok;
}

/* The same with the one further member NAME, a number. */
static bool add_own(struct ledger *ledger, enum chain_event event, const char *name,
		    uint64_t number, struct err *err)
{
	auto_value struct value *more = value_new_object();

	value_set_integer(more, name, (int64_t)number);
	return add_record(ledger, event, more, err);
}

/* Go on in the file NUMBER, which is new with CREATE. LEDGER.last stays as it is. */
static bool use_file(struct ledger *ledger, unsigned number, int flags, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (number > NUMBER_MAX)
		return err_set(err, EFBIG, "there are %d files: move the folder away",
			       NUMBER_MAX);
	fd = open_file(ledger, number, flags);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if ((flags & O_CREAT) != 0 && fsync(ledger->folder) < 0 && errno != EINVAL)
		return err_set(err, errno, "%s", strerror(errno));
	fd_close(&ledger->file);
	ledger->file = fd_take(&fd);
	ledger->device = st.st_dev;
	ledger->inode = st.st_ino;
	ledger->number = number;
	ledger->size = 0;
	return true;
}

/* The file that grows has all the lines that it may have: the next one carries on. */
static bool next_file(struct ledger *ledger, struct err *err)
{
	const unsigned before = ledger->number;

	if (fdatasync(ledger->file) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (!use_file(ledger, before + 1, O_CREAT | O_EXCL, err))
		return false;
	if (add_own(ledger, CHAIN_NEXT, "behind_file", before, err))
		return true;
	/* The file is empty: the next writer finds it so, and begins it with that line. */
	ledger->size = -1;
	return false;
}

/*
 * Stand behind the last line of all, which another process may have written, and cut off what
 * is torn. A file without a whole line goes on from the one before.
 */
static bool find_end(struct ledger *ledger, struct err *err)
{
	unsigned number = last_number(ledger);
	struct chain_check last = {0};
	struct stat st = {0};
	size_t torn = 0, above = 0;

	if (number == 0) {
		ledger->last = (struct chain_check){0};
		return use_file(ledger, 1, O_CREAT, err);
	}
	if (!use_file(ledger, number, 0, err))
		return complain_of(ledger, number, err);
	if (fstat(ledger->file, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "is no regular file") ||
		       complain_of(ledger, number, err);
	if (!find_last(ledger, ledger->file, st.st_size, &last, &torn, err))
		return complain_of(ledger, number, err);
	if (torn > 0 && ftruncate(ledger->file, st.st_size - (off_t)torn) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	ledger->torn += torn;
	ledger->size = st.st_size - (off_t)torn;
	ledger->last = last;
	ledger->line_is_last = false;
	if (last.seq > 0)
		know_last(ledger);
	if (last.seq == 0 && number > 1) {
		auto_close int before = open_file(ledger, number - 1, 0);

		if (before < 0 || fstat(before, &st) < 0)
			return err_set(err, errno, "%s", strerror(errno)) ||
			       complain_of(ledger, number - 1, err);
		if (!find_last(ledger, before, st.st_size, &ledger->last, &above, err))
			return complain_of(ledger, number - 1, err);
		if (!add_own(ledger, CHAIN_NEXT, "behind_file", number - 1, err)) {
			ledger->size = -1;
			return false;
		}
	}
	return true;
}

/* Say that lines are gone, or that a torn one was cut off. */
static bool tell_cut(struct ledger *ledger, struct err *err)
{
	const struct gone *gone = &ledger->gone;
	auto_value struct value *more = NULL;

	if (ledger->torn == 0 && !gone->untold)
		return true;
	more = value_new_object();
	if (ledger->torn > 0)
		value_set_integer(more, "bytes", (int64_t)ledger->torn);
	if (gone->untold) {
		value_set_text(more, "head", gone->head);
		if (gone->lost > 0)
			value_set_integer(more, "lost", (int64_t)gone->lost);
	}
	if (!add_record(ledger, CHAIN_CUT, more, err))
		return false;
	ledger->torn = 0;
	ledger->gone.untold = false;
	return true;
}

/* Are the bytes of FD before END those of LINE, its line end included? */
static bool has_bytes(int fd, off_t end, struct str line)
{
	char piece[LINE_USUAL];
	off_t at = end - (off_t)line.size;
	bool same = at >= 0;

	while (same && line.size > 0) {
		const size_t size = line.size < sizeof(piece) ? line.size : sizeof(piece);

		same = pread(fd, piece, size, at) == (ssize_t)size &&
		       memcmp(piece, line.data, size) == 0;
		line = str_part(line, size, line.size);
		at += (off_t)size;
	}
	return same;
}

/*
 * Is the end of the chain where we left it, with the line that we wrote last? This is the look before
 * each line of a writer that writes alone: it reads that line again and hashes nothing.
 */
static bool end_is_known(const struct ledger *ledger)
{
	char place[LEDGER_PLACE_MAX], next[LEDGER_PLACE_MAX];
	struct stat named;

	place_of(ledger->number, place);
	place_of(ledger->number + 1, next);
	return ledger->file >= 0 && ledger->line_is_last &&
	       fstatat(ledger->folder, place, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == ledger->device && named.st_ino == ledger->inode &&
	       named.st_size == ledger->size &&
	       faccessat(ledger->folder, next, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       has_bytes(ledger->file, ledger->size, buf_str(&ledger->line));
}

/*
 * The digits of the line of FD that ends at END, if it has fewer than MAX bytes. False with errno;
 * 0: there is no such line.
 */
static bool line_digits(int fd, off_t end, size_t max, char digits[HASH_HEX + 1])
{
	struct buf tail;
	struct str text;
	size_t begin;
	bool was_read, found;

	buf_init(&tail, max);
	was_read = read_tail(fd, end, &tail);
	found = was_read && tail.size > 0 && tail.data[tail.size - 1] == '\n';
	text = buf_str(&tail);
	for (begin = found ? text.size - 1 : 0; begin > 0 && text.data[begin - 1] != '\n';)
		begin--;
	found = found && (begin > 0 || (off_t)text.size == end);
	if (found)
		hash_text(str_part(text, begin, text.size - 1 - begin), digits);
	buf_fini(&tail);
	if (was_read)
		errno = 0;
	return found;
}

/*
 * Is the line that KNOWN describes in its file, where it was? Lines may have come behind it. False
 * with errno; 0 or ENOENT: it is gone.
 */
static bool line_stands(const struct ledger *ledger, const struct chain_head *known)
{
	auto_close int file = open_file(ledger, known->file, 0);
	char digits[HASH_HEX + 1];
	struct stat st;

	if (file < 0)
		return false;
	errno = 0;
	return fstat(file, &st) == 0 && st.st_size >= known->end &&
	       (line_digits(file, known->end, LINE_USUAL, digits) ||
		line_digits(file, known->end, LINE_LONG, digits)) &&
	       strcmp(digits, known->digits) == 0;
}

static bool complain_unreadable(const struct ledger *ledger, const char *place, int code,
				struct err *err)
{
	return err_set(err, code,
		       "%s/%s cannot be read: %s; nothing is written until it can",
		       ledger->folder_name, place, strerror(code));
}

/*
 * Is the last line that this writer has seen still where it was? A chain that was cut must not go
 * on: the next line would hide the cut.
 */
static bool stands(const struct ledger *ledger, struct err *err)
{
	const struct chain_head *known = &ledger->known;
	char place[LEDGER_PLACE_MAX];

	if (known->seq == 0 || line_stands(ledger, known))
		return true;
	place_of(known->file, place);
	if (errno != 0 && errno != ENOENT)
		return complain_unreadable(ledger, place, errno, err);
	return err_set(err, EPROTO,
		       "%s/%s was cut or changed by another program: its line %" PRIu64
		       " is not the one that was written; move the folder away and start again",
		       ledger->folder_name, place, known->seq);
}

/* A writer that begins. */

/*
 * The sentence about what is gone, with the head that was KEPT, if STATE is HEAD_KEPT, or with WHAT its
 * file is, if that is foreign.
 */
static void print_gone(const struct ledger *ledger, enum head_state state, const char *what,
		       const struct chain_head *kept, uint64_t last, struct err *sentence)
{
	static const char *const becomes[] = {
		[HEAD_NONE] = "is missing, or the audit is older than heads",
		[HEAD_EMPTY] = "is empty",
		[HEAD_CHANGED] = "was changed, or written with another key",
	};
	const char *name = ledger->folder_name;

	if (state == HEAD_FOREIGN)
		(void)err_set(sentence, EPROTO,
			      "%s/" HEAD_NAME " is %s, and no file of an audit: lines behind "
			      "number %" PRIu64 ", the last one of the files, may be gone",
			      name, what, last);
	else if (state != HEAD_KEPT)
		(void)err_set(sentence, EPROTO,
			      "%s/" HEAD_NAME " %s: lines behind number %" PRIu64
			      ", the last one of the files, may be gone",
			      name, becomes[state], last);
	else if (kept->seq > last)
		(void)err_set(sentence, EPROTO,
			      "lines of %s are gone (%" PRIu64 ", up to number %" PRIu64
			      "): they were cut off, or the machine lost its power before the "
			      "disk had them",
			      name, kept->seq - last, kept->seq);
	else
		(void)err_set(sentence, EPROTO,
			      "lines of %s were cut off or changed: number %" PRIu64
			      " is not the one that was written",
			      name, kept->seq);
}

/*
 * Stand behind the last line, and compare it with the head that was kept. Where lines are gone, the
 * chain goes on behind a record of that, unless REFUSES.
 */
static bool begin(struct ledger *ledger, const struct ledger_options *options,
		  struct err *err)
{
	struct chain_head kept = {0};
	struct err sentence = {0};
	const char *what = NULL;
	enum head_state state = read_head(ledger, &kept, &what);
	char place[LEDGER_PLACE_MAX];
	uint64_t last;

	if (state == HEAD_UNREADABLE)
		return complain_unreadable(ledger, HEAD_NAME, errno, err);
	if (!find_end(ledger, err))
		return false;
	last = ledger->last.seq;
	if (state == HEAD_KEPT && kept.seq == 0 && last > 1)
		state = HEAD_CHANGED;
	/* A writer that was killed behind the first line of all has left the head from before it. */
	if (state == HEAD_KEPT ? kept.seq == 0 || line_stands(ledger, &kept)
			       : state <= HEAD_EMPTY && last == 0) {
		/* A full disk is no reason not to begin: no line passes until this is done. */
		(void)ready_head(ledger, NULL);
		return true;
	}
	if (state == HEAD_KEPT && errno != 0 && errno != ENOENT) {
		place_of(kept.file, place);
		return complain_unreadable(ledger, place, errno, err);
	}
	print_gone(ledger, state, what, &kept, last, &sentence);
	if (options->refuses_cut)
		return err_set(err, EPROTO,
			       "%s; %sput them back, or move the folder away (service.audit.on_cut "
			       "is \"refuse\"; with \"go_on\" the chain goes on behind a record "
			       "of that)",
			       sentence.text,
			       state == HEAD_FOREIGN ? "remove it, and " : "");
	ledger->gone = (struct gone){.untold = true};
	if (kept.seq > last)
		ledger->gone.lost = kept.seq - last;
	if (state == HEAD_KEPT)
		(void)snprintf(ledger->gone.head, sizeof(ledger->gone.head),
			       "%" PRIu64 ":%s", kept.seq, kept.digits);
	else
		(void)snprintf(ledger->gone.head, sizeof(ledger->gone.head), "%s",
			       head_words[state]);
	if (options->warn != NULL)
		options->warn(options->context, sentence.text);
	/* A record that finds no room is written before the next line. */
	(void)tell_cut(ledger, NULL);
	return true;
}

/* Adding records. */

/* Write the records that wait. */
static bool add_waiting(struct ledger *ledger, struct err *err)
{
	struct str rest = buf_str(&ledger->waiting), line;
	size_t done = 0;
	bool ok = true;

	while (ok && str_next_line(&rest, &line)) {
		ok = add_line(ledger, line, err);
		if (ok)
			done += line.size + 1;
	}
	buf_remove(&ledger->waiting, 0, done);
	if (ok && ledger->lost > 0) {
		ok = add_own(ledger, CHAIN_DROP, "records", ledger->lost, err);
		if (ok)
			ledger->lost = 0;
	}
	return ok;
}

/*
 * Have the disk take all lines. The thread has it take the head within a second: a head that is behind
 * the lines of a machine that has lost its power is no cut.
 */
static bool sync_now(struct ledger *ledger, struct err *err)
{
	if (fdatasync(ledger->file) < 0) {
		ledger->sync_error = errno;
		return err_set(err, errno, "%s", strerror(errno));
	}
	ledger->dirty = false;
	ledger->sync_error = 0;
	return true;
}

/* Does a line with BODY still belong into the file that grows? */
static bool has_room(const struct ledger *ledger, struct str body)
{
	return ledger->size == 0 ||
	       (uint64_t)ledger->size + body.size + CHAIN_WORD_MAX <= ledger->file_max;
}

/*
 * Write what waits, then BODY (empty: nothing more), as the one writer. *WRITTEN: BODY is in the
 * file, though perhaps not on the disk.
 */
static bool write_all(struct ledger *ledger, struct str body, bool *written, struct err *err)
{
	bool ok;

	*written = false;
	if (!lock_take(ledger, err))
		return false;
	ok = (end_is_known(ledger) || (stands(ledger, err) && find_end(ledger, err))) &&
	     (has_room(ledger, body) || next_file(ledger, err)) &&
	     tell_cut(ledger, err) && add_waiting(ledger, err);
	*written = ok && (body.size == 0 || add_line(ledger, body, err));
	lock_drop(ledger);
	return *written &&
	       ((!ledger->each && ledger->sync_error == 0) || sync_now(ledger, err));
}

/* BODY could not be written: it waits. */
static void let_wait(struct ledger *ledger, struct str body)
{
	struct buf *waiting = &ledger->waiting;

	if (waiting->size + body.size + 1 > waiting->max) {
		ledger->lost++;
		ledger->lost_ever++;
		return;
	}
	(void)buf_addstr(waiting, body);
	(void)buf_addc(waiting, '\n');
}

bool ledger_add(struct ledger *ledger, const struct chain_record *record, bool before,
		struct err *err)
{
	struct err why = {0};
	bool written = false, ok;

	(void)pthread_mutex_lock(&ledger->mutex);
	buf_clear(&ledger->body);
	ok = chain_print(record, &ledger->body) ||
	     err_set(&why, EFBIG, "a record is longer than %d bytes", CHAIN_LINE_MAX);
	ok = ok && write_all(ledger, buf_str(&ledger->body), &written, &why);
	if (!written && !before && !ledger->body.overflowed)
		let_wait(ledger, buf_str(&ledger->body));
	if (ok || before)
		ledger->refused_ms = ok ? 0 : clock_now_ms();
	/* A thread that rests for a second would be woken by each line for nothing. */
	if (ledger->idle)
		(void)pthread_cond_signal(&ledger->changed);
	(void)pthread_mutex_unlock(&ledger->mutex);
	return ok || !before ||
	       err_set(err, why.code,
		       "audit: cannot write (%s); calls are refused until it can",
		       why.text);
}

uint64_t ledger_lost(struct ledger *ledger)
{
	uint64_t lost;

	(void)pthread_mutex_lock(&ledger->mutex);
	lost = ledger->lost_ever;
	(void)pthread_mutex_unlock(&ledger->mutex);
	return lost;
}

bool ledger_is_stuck(struct ledger *ledger)
{
	int64_t refused_ms;

	(void)pthread_mutex_lock(&ledger->mutex);
	refused_ms = ledger->refused_ms;
	(void)pthread_mutex_unlock(&ledger->mutex);
	return refused_ms > 0 &&
	       clock_now_ms() - refused_ms < LEDGER_STUCK_S * INT64_C(1000);
}

void ledger_trim_key(struct buf *key)
{
	while (key->size > 0 &&
	       (key->data[key->size - 1] == '\n' || key->data[key->size - 1] == '\r'))
		buf_truncate(key, key->size - 1);
}

/* The thread that waits for the disk. */

static void tell_head(struct ledger *ledger)
{
	char sentence[256];

	if (ledger->head == NULL || ledger->last.seq == 0 || ledger->last.seq == ledger->told)
		return;
	ledger->told = ledger->last.seq;
	ledger->told_ms = clock_now_ms();
	(void)snprintf(sentence, sizeof(sentence), "audit head %" PRIu64 ":%s",
		       ledger->last.seq, ledger->last.prev);
	ledger->head(ledger->context, sentence);
}

/* Wait, without the mutex, until MS are over, or something has changed when MS is 0. */
static void rest(struct ledger *ledger, int64_t ms)
{
	const int64_t until_ms = clock_now_ms() + ms;
	const struct timespec until = {.tv_sec = until_ms / 1000,
				       .tv_nsec = until_ms % 1000 * 1000000};

	if (ms == 0) {
		ledger->idle = true;
		(void)pthread_cond_wait(&ledger->changed, &ledger->mutex);
		ledger->idle = false;
		return;
	}
	while (!ledger->ends && clock_now_ms() < until_ms)
		(void)pthread_cond_timedwait(&ledger->changed, &ledger->mutex, &until);
}

static void *thread_main(void *context)
{
	struct ledger *ledger = context;
	bool written;

	(void)pthread_mutex_lock(&ledger->mutex);
	while (!ledger->ends) {
		if (!ledger->dirty && !ledger->head_dirty && ledger->waiting.size == 0 &&
		    ledger->lost == 0 &&
		    (ledger->head == NULL || ledger->told == ledger->last.seq)) {
			rest(ledger, 0);
			continue;
		}
		rest(ledger, SYNC_S * INT64_C(1000));
		if (ledger->dirty || ledger->head_dirty) {
			auto_close int file = fcntl(ledger->file, F_DUPFD_CLOEXEC, 0);
			auto_close int head = fcntl(ledger->head_file, F_DUPFD_CLOEXEC, 0);

			/* A line that comes from now on may miss this sync. */
			ledger->dirty = ledger->head_dirty = false;
			(void)pthread_mutex_unlock(&ledger->mutex);
			const int code = file >= 0 && sync_files(file, head) ? 0 : errno;
			(void)pthread_mutex_lock(&ledger->mutex);
			if (code != 0)
				ledger->sync_error = code;
		}
		if (ledger->waiting.size > 0 || ledger->lost > 0)
			(void)write_all(ledger, (struct str){0}, &written, NULL);
		if (clock_now_ms() - ledger->told_ms >= ledger->head_ms)
			tell_head(ledger);
	}
	(void)pthread_mutex_unlock(&ledger->mutex);
	return NULL;
}

/* The thread gets no signals: they are for the loop of the program. */
static bool thread_start(struct ledger *ledger, struct err *err)
{
	sigset_t all, before;
	int code;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&ledger->thread, NULL, thread_main, ledger);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	ledger->has_thread = code == 0;
	return code == 0 || err_set(err, code, "starting a thread: %s", strerror(code));
}

static void init_mutex(struct ledger *ledger)
{
	pthread_condattr_t attributes;

	(void)pthread_mutex_init(&ledger->mutex, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&ledger->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

bool ledger_open(const struct ledger_options *options, struct ledger **made, struct err *err)
{
	struct ledger *ledger = memory_alloc(sizeof(*ledger));
	bool ok;

	ledger->folder_name = memory_copy(options->folder);
	ledger->folder = ledger->lock = ledger->file = ledger->head_file = -1;
	if (options->key.size > 0) {
		ledger->key = memory_alloc(options->key.size);
		memcpy(ledger->key, options->key.data, options->key.size);
		ledger->key_size = options->key.size;
	}
	ledger->each = options->each;
	ledger->file_max = options->file_max > 0 ? options->file_max : LEDGER_FILE_MAX;
	ledger->head = options->head;
	ledger->context = options->context;
	ledger->head_ms = (int64_t)(options->head_s * 1000);
	ledger->told_ms = clock_now_ms();
	buf_init(&ledger->waiting, LEDGER_WAITING_MAX);
	buf_init(&ledger->line, CHAIN_LINE_MAX);
	/* A body that fits here fits into a line with its sums. */
	buf_init(&ledger->body, CHAIN_LINE_MAX - CHAIN_WORD_MAX);
	init_mutex(ledger);
	ok = folder_open(ledger, err);
	if (ok) {
		ok = lock_take(ledger, err) && begin(ledger, options, err);
		lock_drop(ledger);
	}
	ledger->told = ledger->last.seq;
	if (!(ok && thread_start(ledger, err))) {
		ledger_close(ledger);
		return err_while(err, "audit");
	}
	*made = ledger;
	return true;
}

void ledger_close(struct ledger *ledger)
{
	bool written;

	if (ledger == NULL)
		return;
	if (ledger->has_thread) {
		(void)pthread_mutex_lock(&ledger->mutex);
		ledger->ends = true;
		(void)pthread_cond_signal(&ledger->changed);
		(void)pthread_mutex_unlock(&ledger->mutex);
		(void)pthread_join(ledger->thread, NULL);
		if (ledger->waiting.size > 0 || ledger->lost > 0)
			(void)write_all(ledger, (struct str){0}, &written, NULL);
		if (ledger->dirty || ledger->head_dirty)
			(void)sync_files(ledger->file, ledger->head_file);
		tell_head(ledger);
	}
	fd_close(&ledger->head_file);
	fd_close(&ledger->file);
	fd_close(&ledger->lock);
	fd_close(&ledger->folder);
	buf_fini(&ledger->waiting);
	buf_fini(&ledger->line);
	buf_fini(&ledger->body);
	(void)pthread_cond_destroy(&ledger->changed);
	(void)pthread_mutex_destroy(&ledger->mutex);
	if (ledger->key != NULL)
		explicit_bzero(ledger->key, ledger->key_size);
	free(ledger->key);
	free(ledger->folder_name);
	free(ledger);
}
