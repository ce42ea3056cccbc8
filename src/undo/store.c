/*
 * store: the folder of logs and descriptions, its tidying, and the space that the stores of all
 * workspaces take.
 */

#include "undo/store.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/record.h"
#include "files/rights.h"
#include "undo/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limit on all logs of a project: twice the most that one checkpoint copies. */
#define UNDO_STORE_MAX     ((uint64_t)2 << 30)

#define UNDO_LIST_ENDING   ".list"
#define UNDO_RIGHTS_ENDING ".rights"
#define UNDO_OBJECTS_NAME  "objects"

/* Digits of the hash of rights. So many digits make a deliberate collision infeasible. */
enum { UNDO_RIGHTS_DIGITS = 32 };

struct undo_store {
	int folder;                    /* -1: none, and the logs are only open */
	int *memory;                   /* these logs, by number from 1; -1: dropped */
	uint32_t last;                 /* the number that was given last */
	char list_name[UNDO_NAME_MAX]; /* of the list being written; "": none */
	ino_t list; /* the inode of the list that this session has last opened or taken */
	int used;   /* UNDO_STORE_USED, locked; -1: not locked */
	char *workspace;
	/* rights of the present session; NULL and "" until they are set */
	char *rights_text;
	char rights_hash[UNDO_RIGHTS_DIGITS + 1];
	struct rights *rights;
};

/* The numbers of the existing logs, ascending. `items` is freed by the caller. */
struct undo_numbers {
	uint32_t *items;
	size_t count;
};

/*
 * The files that the front stores beside the logs. NUMBER.step describes the log NUMBER.
 * HASH.rights holds the rights of a session to read and write, and NUMBER.step refers to
 * it by HASH.
 */

enum { RIGHTS_MAX = 8 << 20, REFUNDO_STORE_USEDD = 100 };

static const char *const work_names[] = {"checkpoint", "tool", "command", "undo", "mark"};

static void step_name(uint32_t number, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%08" PRIu32 ".step", number % 100000000);
}

static void rights_name(const char *hash, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%.*s.rights", UNDO_RIGHTS_DIGITS, hash);
}

void undo_store_set_rights(struct undo_store *store, const struct value *rights)
{
	char hex[HASH_HEX + 1];
	struct buf text;

	buf_init(&text, RIGHTS_MAX);
	(void)value_print(rights, 0, &text);
	hash_text(buf_str(&text), hex);
	(void)snprintf(store->rights_hash, sizeof(store->rights_hash), "%.*s",
		       UNDO_RIGHTS_DIGITS, hex);
	free(store->rights_text);
	store->rights_text = buf_take(&text);
	rights_free(store->rights);
	store->rights = rights_read(rights);
}

/* Write a file of the front so that it is complete or missing at every moment. */
static bool write_whole(const struct undo_store *store, const char *name, struct str text,
			struct err *err)
{
	char temp[2 * UNDO_NAME_MAX];

	(void)snprintf(temp, sizeof(temp), "%s.%d", name, (int)getpid());
	(void)unlinkat(store->folder, temp, 0);
	auto_close int fd =
		openat(store->folder, temp,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || !fd_write_all(fd, text.data, text.size, NULL) ||
	    renameat(store->folder, temp, store->folder, name) < 0) {
		int code = errno;
		(void)unlinkat(store->folder, temp, 0);
		return err_set(err, code, "the undo store: %s", strerror(code));
	}
	return true;
}

/*
 * Like write_whole, with a file that gets its name when it is complete, so that a kill leaves
 * nothing. False: there are no such files here, or NAME exists already.
 */
static bool write_nameless(const struct undo_store *store, const char *name, struct str text)
{
	auto_close int fd =
		openat(store->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	return fd >= 0 && fd_write_all(fd, text.data, text.size, NULL) &&
	       fd_link(fd, store->folder, name);
}

/*
 * Store the rights. An existing file gets a new time, so that undo_store_tidy keeps it.
 */
static bool keep_rights(const struct undo_store *store, struct err *err)
{
	struct str text = str_of(store->rights_text);
	char name[UNDO_NAME_MAX];
	struct stat st;

	rights_name(store->rights_hash, name);
	return (fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(size_t)st.st_size == text.size &&
		utimensat(store->folder, name, NULL, AT_SYMLINK_NOFOLLOW) == 0) ||
	       write_whole(store, name, text, err);
}

/* The description beside a log; its texts are borrowed. */
struct described {
	enum undo_work work;
	const char *run, *tool, *title, *rights, *agent;
	int64_t wall_ms, since_ms, turn_ms;
	unsigned undoes;
	bool above, alone;
	struct undo_beside beside;
};

static const struct field described_fields[] = {
	FIELD_CHOICE(struct described, work, "work", work_names),
	FIELD(struct described, run),
	FIELD(struct described, tool),
	FIELD(struct described, title),
	FIELD(struct described, wall_ms),
	FIELD(struct described, rights),
	FIELD(struct described, undoes, .optional = true),
	FIELD(struct described, above, .optional = true),
	FIELD(struct described, agent, .optional = true),
	FIELD(struct described, since_ms, .optional = true),
	FIELD(struct described, turn_ms, .optional = true),
	FIELD(struct described, alone, .optional = true),
	FIELD_NAMED(struct described, beside.within, "within", .optional = true),
	FIELD_NUMBERS(struct described, beside.tools, beside.count, "beside",
		      .optional = true),
	{0},
};

/* Write TOLD as the description of the log NUMBER, in place of one that is there. */
static bool described_write(const struct undo_store *store, uint32_t number,
			    const struct described *told, struct err *err)
{
	auto_value struct value *object = fields_print(described_fields, told);
	char name[UNDO_NAME_MAX];
	struct buf text;

	step_name(number, name);
	buf_init(&text, UNDO_META_MAX);
	bool fine = (value_print(object, 0, &text) || err_set(err, E2BIG, "a title")) &&
		    (write_nameless(store, name, buf_str(&text)) ||
		     write_whole(store, name, buf_str(&text), err));
	buf_fini(&text);
	return fine;
}

/* Write the description beside the log NUMBER. */
static bool undo_store_write_step(const struct undo_store *store, uint32_t number,
				  const struct undo_meta *meta, struct err *err)
{
	auto_free char *title =
		memory_copy_str(str_part(meta->title, 0, UNDO_META_MAX / 16));
	const struct described told = {.work = meta->work,
				       .run = meta->run,
				       .tool = meta->tool != NULL ? meta->tool : "",
				       .title = title,
				       .rights = store->rights_hash,
				       .agent = meta->agent,
				       .wall_ms = meta->wall_ms,
				       .since_ms = meta->since_ms,
				       .turn_ms = meta->turn_ms,
				       .undoes = meta->undoes,
				       .above = meta->above,
				       .alone = meta->alone};

	if (store->rights_text == NULL)
		return err_set(err, EINVAL, "the undo store: nobody's log");
	return keep_rights(store, err) && described_write(store, number, &told, err);
}

static void undo_store_drop_step(const struct undo_store *store, uint32_t number)
{
	char name[UNDO_NAME_MAX];

	step_name(number, name);
	(void)unlinkat(store->folder, name, 0);
}

/* The value in the file NAME; NULL: there is none. */
static struct value *read_value(const struct undo_store *store, const char *name, size_t max)
{
	auto_close int fd = openat(store->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct value *value = NULL;
	struct buf text;

	buf_init(&text, max);
	if (fd >= 0 && fd_read_all(fd, &text, name, NULL))
		(void)value_parse(buf_str(&text), 0, &value, NULL);
	buf_fini(&text);
	return value;
}

/*
 * Read the description of the log NUMBER into TOLD, which borrows from *OBJECT. False: there
 * is no complete one, and TOLD has what there is.
 */
static bool described_read(const struct undo_store *store, uint32_t number,
			   struct value **object, struct described *told)
{
	char name[UNDO_NAME_MAX];

	*told = (struct described){0};
	step_name(number, name);
	*object = read_value(store, name, UNDO_META_MAX);
	/* One odd member must not hide that a step is an undo, and what it has undone. */
	(void)fields_read(*object, described_fields, told, NULL, NULL);
	return told->run != NULL && told->tool != NULL && told->title != NULL;
}

/* False: there is no complete description. The caller calls undo_step_fini either way. */
static bool undo_store_read_step(const struct undo_store *store, uint32_t number,
				 struct undo_step *step)
{
	auto_value struct value *object = NULL;
	struct described told;
	const bool complete = described_read(store, number, &object, &told);

	step->work = told.work;
	step->undoes = told.undoes;
	step->above = told.above;
	step->wall_ms = told.wall_ms;
	step->since_ms = told.since_ms;
	step->turn_ms = told.turn_ms;
	step->alone = told.alone;
	step->run = memory_copy(told.run);
	step->tool = memory_copy(told.tool);
	step->title = memory_copy(told.title);
	step->agent = memory_copy(told.agent != NULL ? told.agent : "");
	return complete;
}

void undo_store_note_beside(const struct undo_store *store, uint32_t command,
			    const uint32_t *tools, size_t count, enum undo_work work)
{
	auto_value struct value *object = NULL;
	struct described told, tool;
	const bool described = described_read(store, command, &object, &told);

	told.work = work;
	told.beside.count = 0;
	for (size_t i = 0; i < count && i < UNDO_BESIDE_MAX; i++) {
		auto_value struct value *of_tool = NULL;

		told.beside.tools[told.beside.count++] = tools[i];
		if (described_read(store, tools[i], &of_tool, &tool)) {
			tool.beside.within = command;
			(void)described_write(store, tools[i], &tool, NULL);
		}
	}
	if (described)
		(void)described_write(store, command, &told, NULL);
}

void undo_store_read_beside(const struct undo_store *store, uint32_t number,
			    struct undo_beside *beside)
{
	auto_value struct value *object = NULL;
	struct described told = {0};

	if (store->folder >= 0)
		(void)described_read(store, number, &object, &told);
	*beside = told.beside;
}

/* The hash of the rights of the log NUMBER; "": the log has none. */
static void hash_of(const struct undo_store *store, uint32_t number,
		    char hash[UNDO_RIGHTS_DIGITS + 1])
{
	auto_value struct value *object = NULL;
	struct described told;

	(void)described_read(store, number, &object, &told);
	(void)snprintf(hash, UNDO_RIGHTS_DIGITS + 1, "%s",
		       told.rights != NULL ? told.rights : "");
}

bool undo_store_is_ours(const struct undo_store *store, uint32_t number)
{
	char hash[UNDO_RIGHTS_DIGITS + 1];

	hash_of(store, number, hash);
	return hash[0] != '\0' && strcmp(hash, store->rights_hash) == 0;
}

static void absolute(const struct undo_store *store, struct str path, struct buf *out)
{
	buf_clear(out);
	if (path.data[0] != '/')
		(void)buf_addf(out, "%s/", store->workspace);
	(void)buf_addstr(out, path);
}

bool undo_store_may_write(const struct undo_store *store, struct str path)
{
	struct buf full;

	if (store->rights == NULL)
		return store->folder < 0;
	buf_init(&full, 2 * PATH_MAX);
	absolute(store, path, &full);
	bool may = rights_may_write(store->rights, full.data);
	buf_fini(&full);
	return may;
}

bool undo_store_may_read(const struct undo_store *store, struct str path)
{
	struct buf full;

	if (store->rights == NULL)
		return store->folder < 0;
	buf_init(&full, 2 * PATH_MAX);
	absolute(store, path, &full);
	bool may = rights_may_read(store->rights, full.data);
	buf_fini(&full);
	return may;
}

struct sieve {
	const struct undo_store *store;
	struct undo_reader *reader;
	struct undo_refused *refused;
	struct rights *rights; /* of the session that wrote the log */
	bool own;
	uint32_t number;
	char hash[UNDO_RIGHTS_DIGITS + 1];
	uint32_t source; /* the last log that a change took its content from */
	bool source_fits;
	bool git_fits;
	struct buf full;
};

/* Could the writer of the log have read the content of STATE at its source? */
static bool content_fits(struct sieve *sieve, const struct undo_state *state)
{
	char hash[UNDO_RIGHTS_DIGITS + 1];

	if (state->source == UNDO_IN_GIT || state->source == UNDO_LINKED)
		return sieve->git_fits;
	if (state->source != UNDO_LOGGED || state->log == sieve->number)
		return true;
	if (state->log != sieve->source) {
		hash_of(sieve->store, state->log, hash);
		sieve->source = state->log;
		sieve->source_fits = hash[0] != '\0' && strcmp(hash, sieve->hash) == 0;
	}
	return sieve->source_fits;
}

static bool sift(void *context, const struct undo_change *change)
{
	struct sieve *sieve = context;
	struct undo_refused *refused = sieve->refused;
	struct buf name;

	absolute(sieve->store, change->path, &sieve->full);
	if ((sieve->own || rights_may_write(sieve->rights, sieve->full.data)) &&
	    content_fits(sieve, &change->before))
		return sieve->reader->change(sieve->reader->context, change);
	if (refused != NULL && refused->count++ < REFUNDO_STORE_USEDD) {
		if (refused->names == NULL)
			refused->names = value_new_array();
		buf_init(&name, 8 << 10);
		text_add_name(&name, change->path);
		value_append(refused->names, value_new_str(buf_str(&name)));
		buf_fini(&name);
	}
	return true;
}

bool undo_store_read_log(const struct undo_store *store, uint32_t number, bool own,
			 struct undo_reader *reader, struct undo_refused *refused,
			 struct err *err)
{
	auto_close int fd = undo_store_open_log(store, number, false);
	struct sieve sieve = {.store = store,
			      .own = own,
			      .reader = reader,
			      .refused = refused,
			      .number = number};
	struct undo_reader inner = {.change = sift, .context = &sieve};
	char name[UNDO_NAME_MAX];

	if (fd < 0)
		return err_set(err, errno, "there is no step %u", number);
	/* In a store without a folder, all logs are from this session. */
	if (store->folder < 0)
		return undo_log_read(reader, fd, err);
	hash_of(store, number, sieve.hash);
	rights_name(sieve.hash, name);
	auto_value struct value *rights =
		sieve.hash[0] != '\0' ? read_value(store, name, RIGHTS_MAX) : NULL;
	sieve.rights = rights_read(rights);
	if (refused != NULL && rights == NULL)
		refused->unknown = true;
	buf_init(&sieve.full, 2 * PATH_MAX);
	absolute(store, STR(".git/objects"), &sieve.full);
	sieve.git_fits = rights_may_read(sieve.rights, sieve.full.data);
	bool fine = undo_log_read(&inner, fd, err);
	buf_fini(&sieve.full);
	rights_free(sieve.rights);
	reader->ended = inner.ended;
	reader->sound = inner.sound;
	reader->changes = inner.changes;
	return fine;
}

enum {
	PROJECT_DIGITS = 16, /* of the workspace's hash, as for the name of its home */
	NUMBER_TRIES = 64,   /* other processes may take a number first */
};

static int open_folder(int at, const char *name, bool make)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && make &&
	    (mkdirat(at, name, 0700) == 0 || errno == EEXIST))
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd;
}

static bool log_number(const char *name, uint32_t *number)
{
	char *end;

	if (strlen(name) != 12 || strspn(name, "0123456789") != 8 ||
	    strcmp(name + 8, ".log") != 0)
		return false;
	*number = (uint32_t)strtoul(name, &end, 10);
	return *number > 0;
}

bool undo_store_is_log(const char *name)
{
	uint32_t number;

	return log_number(name, &number);
}

static void log_name(uint32_t number, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%08" PRIu32 ".log", number % 100000000);
}

static uint32_t last_number(int folder)
{
	DIR *names = fd_open_names(folder);
	uint32_t last = 0, number;

	if (names == NULL)
		return 0;
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (log_number(at->d_name, &number) && number > last)
			last = number;
	}
	(void)closedir(names);
	return last;
}

/*
 * Lock the store OWN for WORKSPACE, so that nobody prunes it. -1: it is just being
 * removed, or cannot be locked; the second case leaves the store usable but unprotected.
 */
static int hold(int own, const char *workspace)
{
	auto_close int fd = openat(own, UNDO_STORE_USED,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
		return -1;
	if (st.st_size == 0)
		(void)fd_write_all(fd, workspace, strlen(workspace), NULL);
	return fd_take(&fd);
}

static bool open_store(const char *folder, const char *workspace, bool make,
		       struct undo_store **store, struct err *err)
{
	char project[HASH_HEX + 1];

	*store = NULL;
	hash_text(str_of(workspace), project);
	project[PROJECT_DIGITS] = '\0';
	if (make && !fd_make_folders(folder, err))
		return false;
	auto_close int all = open_folder(AT_FDCWD, folder, make);
	auto_close int own = all >= 0 ? open_folder(all, project, make) : -1;
	if (own < 0)
		return (!make && errno == ENOENT) ||
		       err_set(err, errno, "%s/%s: %s", folder, project, strerror(errno));
	auto_close int used = make ? hold(own, workspace) : -1;
	/*
	 * Another process pruned the store between opening and locking it: make a new
	 * one.
	 */
	for (int i = 0; make && used < 0 && i < NUMBER_TRIES; i++) {
		fd_close(&own);
		own = open_folder(all, project, true);
		used = own >= 0 ? hold(own, workspace) : -1;
	}
	if (own < 0)
		return err_set(err, errno, "%s/%s: %s", folder, project, strerror(errno));
	*store = memory_alloc(sizeof(**store));
	(*store)->folder = fd_take(&own);
	(*store)->used = fd_take(&used);
	(*store)->last = last_number((*store)->folder);
	(*store)->workspace = memory_copy(workspace);
	return true;
}

bool undo_store_open(const char *folder, const char *workspace, struct undo_store **store,
		     struct err *err)
{
	return open_store(folder, workspace, true, store, err);
}

bool undo_store_open_old(const char *folder, const char *workspace,
			 struct undo_store **store, struct err *err)
{
	return open_store(folder, workspace, false, store, err);
}

struct undo_store *undo_store_in_memory(void)
{
	struct undo_store *store = memory_alloc(sizeof(*store));

	store->folder = -1;
	store->used = -1;
	return store;
}

bool undo_store_keep_log(struct undo_store *store, int fd, uint32_t *number, struct err *err)
{
	const int kept = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (kept < 0)
		return err_set(err, errno, "a log for undo: %s", strerror(errno));
	*number = ++store->last;
	store->memory = memory_grow(store->memory, store->last, sizeof(*store->memory));
	store->memory[store->last - 1] = kept;
	return true;
}

/*
 * The lists of a store. A session keeps its own list open and locked. When another session
 * puts a list in that place, the locked one stays under a name of its own, made of its
 * inode, because its session still refers to the contents in it.
 */

enum { SPARED_DIGITS = 16 };

/* How long to wait for another process's lock: of a list, of the whole store. */
enum { LIST_WAIT_MS = 1000, HOLD_MS = 10000, HOLD_PAUSE_MS = 20 };

static bool is_spared_list(const char *name)
{
	return strspn(name, "0123456789abcdef") == SPARED_DIGITS &&
	       strcmp(name + SPARED_DIGITS, UNDO_LIST_ENDING) == 0;
}

/* Open the list NAME and lock it when no session uses it. -1: one does, or it is gone. */
static int list_lock(const struct undo_store *store, const char *name)
{
	auto_close int fd = openat(store->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? fd_take(&fd) : -1;
}

/* Remove the list NAME unless a session uses it. */
static void drop_list(void *context, const char *name)
{
	const struct undo_store *store = context;
	auto_close int list = list_lock(store, name);
	struct stat locked, named;

	/* A session may have put another list in this place before this one was locked. */
	if (list >= 0 && fstat(list, &locked) == 0 &&
	    fstatat(store->folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    locked.st_ino == named.st_ino)
		(void)unlinkat(store->folder, name, 0);
}

static void spared_name(ino_t inode, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%0*" PRIxMAX "%s", SPARED_DIGITS,
		       (uintmax_t)inode, UNDO_LIST_ENDING);
}

/* This session does not use the list with INODE any more. */
static void list_forget(struct undo_store *store, ino_t inode)
{
	char name[UNDO_NAME_MAX];

	spared_name(inode, name);
	drop_list(store, name);
}

void undo_store_close(struct undo_store *store)
{
	if (store == NULL)
		return;
	for (uint32_t i = 0; store->memory != NULL && i < store->last; i++)
		fd_close(&store->memory[i]);
	if (store->list_name[0] != '\0')
		(void)unlinkat(store->folder, store->list_name, 0);
	list_forget(store, store->list);
	fd_close(&store->used);
	fd_close(&store->folder);
	free(store->workspace);
	free(store->rights_text);
	rights_free(store->rights);
	free(store->memory);
	free(store);
}

/* Make a log called NAME unless the name exists. */
static int named_log(const struct undo_store *store, const char *name)
{
	int fd = openat(store->folder, name,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* While a process holds this lock, undo_store_tidy does not remove the log. */
	if (fd >= 0)
		(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

static void list_name(const struct undo_store *store, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%s%s", store->rights_hash, UNDO_LIST_ENDING);
}

uint32_t undo_store_next_number(struct undo_store *store)
{
	char name[UNDO_NAME_MAX];
	struct stat st = {0};

	list_name(store, name);
	(void)!fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW);
	/*
	 * Another session has looked since. The numbers that it has given may lie above a
	 * free one: a look in which nothing was written uses none.
	 */
	if (st.st_ino != store->list) {
		const uint32_t last = last_number(store->folder);

		store->last = last > store->last ? last : store->last;
	}
	return ++store->last;
}

static int next_log(struct undo_store *store, uint32_t *number, struct err *err)
{
	char name[UNDO_NAME_MAX];
	int fd = -1;

	for (int i = 0; fd < 0 && i < NUMBER_TRIES; i++) {
		if (i > 0 && errno != EEXIST)
			break;
		/* Another process has used this number: look up the last one. */
		if (i == 1)
			store->last = last_number(store->folder);
		*number = i == 0 ? undo_store_next_number(store) : ++store->last;
		log_name(*number, name);
		fd = named_log(store, name);
	}
	if (fd < 0)
		(void)err_set(err, errno, "the undo store: %s", strerror(errno));
	return fd;
}

int undo_store_new_log(struct undo_store *store, const struct undo_meta *meta,
		       uint32_t *number, struct err *err)
{
	auto_close int fd = next_log(store, number, err);
	if (fd < 0)
		return -1;
	if (!undo_store_write_step(store, *number, meta, err)) {
		undo_store_drop_log(store, *number);
		return -1;
	}
	return fd_take(&fd);
}

int undo_store_blank_log(const struct undo_store *store)
{
	int fd = openat(store->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

bool undo_store_name_log(struct undo_store *store, int fd, uint32_t number,
			 const struct undo_meta *meta, struct err *err)
{
	char name[UNDO_NAME_MAX];

	log_name(number, name);
	/*
	 * The log gets its name first. With the name, the description beside it is ours
	 * to write.
	 */
	if (!fd_link(fd, store->folder, name)) {
		const int code = errno;
		if (code == EEXIST)
			store->last = last_number(store->folder);
		return err_set(err, code, "the undo store: %s", strerror(code));
	}
	if (undo_store_write_step(store, number, meta, err))
		return true;
	undo_store_drop_log(store, number);
	return false;
}

int undo_store_open_log(const struct undo_store *store, uint32_t number, bool writes)
{
	char name[UNDO_NAME_MAX];

	if (store->folder < 0) {
		errno = ENOENT;
		return number > 0 && number <= store->last
			       ? fcntl(store->memory[number - 1], F_DUPFD_CLOEXEC, 3)
			       : -1;
	}
	log_name(number, name);
	return openat(store->folder, name,
		      (writes ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
}

void undo_store_drop_log(const struct undo_store *store, uint32_t number)
{
	char name[UNDO_NAME_MAX];

	if (store->folder < 0 && number > 0 && number <= store->last)
		fd_close(&store->memory[number - 1]);
	if (store->folder < 0)
		return;
	undo_store_drop_step(store, number);
	log_name(number, name);
	(void)unlinkat(store->folder, name, 0);
}

bool undo_store_is_used(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_size > 0;
}

int undo_store_scratch(const struct undo_store *store, struct err *err)
{
	int fd = openat(store->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	/* When the file system has no nameless files, use memory. */
	if (fd < 0) {
		fd = memfd_create("glovebox-undo", MFD_CLOEXEC);
		if (fd < 0)
			(void)err_set(err, errno, "the undo store: %s", strerror(errno));
	}
	return fd;
}

/*
 * Another list is about to take the place of NAME. If a session uses NAME, it gets a name
 * of its own. Otherwise this is its lock, to be held until the place is taken, so that no
 * session begins to use it; -1 in the first case.
 */
static int list_spare(const struct undo_store *store, const char *name)
{
	auto_close int unused = list_lock(store, name);
	char spared[UNDO_NAME_MAX];
	struct stat st;

	if (unused >= 0 || fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fd_take(&unused);
	spared_name(st.st_ino, spared);
	(void)!linkat(store->folder, name, store->folder, spared, 0);
	return -1;
}

/*
 * The list NAME with a shared lock, and its state in ST; -1 with errno. Other processes hold
 * an exclusive lock only while they test, remove or replace a list. After LIST_WAIT_MS, and
 * where the file system has no locks, the list is used without a lock.
 */
static int list_open(const struct undo_store *store, const char *name, struct stat *st)
{
	const int64_t until = clock_now_ms() + LIST_WAIT_MS;

	for (;;) {
		auto_close int fd =
			openat(store->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			return -1;
		while (flock(fd, LOCK_SH | LOCK_NB) < 0 &&
		       (errno == EWOULDBLOCK || errno == EINTR) && clock_now_ms() < until)
			(void)poll(NULL, 0, HOLD_PAUSE_MS);
		/* Another process may have removed the list before it was locked. */
		if (fstat(fd, st) < 0 || st->st_nlink > 0)
			return fd_take(&fd);
	}
}

int undo_store_open_list(struct undo_store *store, struct err *err)
{
	char name[UNDO_NAME_MAX];
	struct stat st = {0};

	list_name(store, name);
	int fd = list_open(store, name, &st);
	store->list = st.st_ino;
	if (fd < 0 && errno != ENOENT)
		(void)err_set(err, errno, "the list of the workspace: %s", strerror(errno));
	else if (fd < 0)
		(void)fd_memory_file("glovebox-list", STR(""), &fd, err);
	return fd;
}

int undo_store_new_list(struct undo_store *store, struct err *err)
{
	(void)snprintf(store->list_name, sizeof(store->list_name), "%s%s.%d",
		       store->rights_hash, UNDO_LIST_ENDING, (int)getpid());
	(void)unlinkat(store->folder, store->list_name, 0);
	int fd = openat(store->folder, store->list_name,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		(void)err_set(err, errno, "the list of the workspace: %s", strerror(errno));
	else
		(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

bool undo_store_take_list(struct undo_store *store, int used, struct err *err)
{
	char name[UNDO_NAME_MAX];
	struct stat st;

	list_name(store, name);
	/* This session goes on with its new list; others may still use USED. */
	(void)flock(used, LOCK_UN);
	if (fstat(used, &st) == 0)
		list_forget(store, st.st_ino);
	int unused = list_spare(store, name);
	const bool fine =
		fstatat(store->folder, store->list_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		renameat(store->folder, store->list_name, store->folder, name) == 0;
	const int code = errno;
	fd_close(&unused);
	if (!fine)
		return err_set(err, code, "the list of the workspace: %s", strerror(code));
	store->list_name[0] = '\0';
	store->list = st.st_ino;
	return true;
}

static bool is_hex(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (strchr("0123456789abcdef", text.data[i]) == NULL || text.data[i] == '\0')
			return false;
	}
	return text.size > 0;
}

/*
 * Is NAME "ab/" with 38 or 62 digits, or "pack/pack-" with digits and an ending of
 * letters?
 */
static bool is_object_name(const char *name)
{
	struct str text = str_of(name);
	struct str pack = STR("pack/pack-");

	if (str_starts(text, pack)) {
		size_t dot = str_find(text, STR("."), pack.size);
		struct str ending =
			str_part(text, dot == (size_t)-1 ? text.size : dot + 1, text.size);
		if (dot == (size_t)-1 || ending.size == 0 || ending.size > 8)
			return false;
		for (size_t i = 0; i < ending.size; i++) {
			if (ending.data[i] < 'a' || ending.data[i] > 'z')
				return false;
		}
		return dot - pack.size <= 64 &&
		       is_hex(str_part(text, pack.size, dot - pack.size));
	}
	return (text.size == 41 || text.size == 65) && text.data[2] == '/' &&
	       is_hex(str_part(text, 0, 2)) && is_hex(str_part(text, 3, text.size));
}

/*
 * Open the folder of NAME in the store, making it when missing, and set *LAST to the last
 * name.
 */
static int open_kept(const struct undo_store *store, const char *name, const char **last)
{
	char first[8];
	auto_close int all = open_folder(store->folder, UNDO_OBJECTS_NAME, true);
	const char *slash = strchr(name, '/');

	*last = slash + 1;
	(void)snprintf(first, sizeof(first), "%.*s", (int)(slash - name), name);
	return all >= 0 ? open_folder(all, first, true) : -1;
}

bool undo_store_link(const struct undo_store *store, int objects, const char *name)
{
	const char *last;
	struct stat st;

	if (!is_object_name(name)) {
		errno = EINVAL;
		return false;
	}
	auto_close int folder = open_kept(store, name, &last);
	auto_close int file = fd_open_beneath(objects, name, O_PATH);
	if (folder < 0 || file < 0 || fstat(file, &st) < 0)
		return false;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return false;
	}
	return fd_link(file, folder, last) || errno == EEXIST;
}

int undo_store_linked(const struct undo_store *store, const char *name)
{
	const char *last;

	if (!is_object_name(name)) {
		errno = EINVAL;
		return -1;
	}
	auto_close int folder = open_kept(store, name, &last);
	return folder >= 0 ? openat(folder, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

bool undo_store_links_from(const struct undo_store *store, int objects)
{
	struct statx here, there;

	return statx(store->folder, "", AT_EMPTY_PATH, STATX_MNT_ID, &here) == 0 &&
	       statx(objects, "", AT_EMPTY_PATH, STATX_MNT_ID, &there) == 0 &&
	       here.stx_dev_major == there.stx_dev_major &&
	       here.stx_dev_minor == there.stx_dev_minor &&
	       (here.stx_mask & there.stx_mask & STATX_MNT_ID) != 0 &&
	       here.stx_mnt_id == there.stx_mnt_id;
}

/* Reads the steps of a store from its logs and their descriptions. */

static int compare_numbers(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static bool numbers_read(const struct undo_store *store, struct undo_numbers *numbers,
			 struct err *err)
{
	DIR *names = fd_open_names(store->folder);
	uint32_t number;

	*numbers = (struct undo_numbers){0};
	if (names == NULL)
		return err_set(err, errno, "the undo store: %s", strerror(errno));
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (!log_number(at->d_name, &number))
			continue;
		numbers->items =
			memory_more(numbers->items, numbers->count, sizeof(number));
		numbers->items[numbers->count++] = number;
	}
	(void)closedir(names);
	if (numbers->count > 0)
		qsort(numbers->items, numbers->count, sizeof(number), compare_numbers);
	return true;
}

/* The index of NUMBER; the count when it is not among them. */
static size_t numbers_find(const struct undo_numbers *numbers, uint32_t number)
{
	const uint32_t *found = numbers->count > 0
					? bsearch(&number, numbers->items, numbers->count,
						  sizeof(number), compare_numbers)
					: NULL;

	return found != NULL ? (size_t)(found - numbers->items) : numbers->count;
}

/*
 * The size of the log FD in bytes, 0 when unknown. Shared blocks and holes count in full.
 */
static uint64_t undo_store_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void count_file(struct undo_step *step, const struct undo_change *change)
{
	step->files++;
	step->added += change->before.kind == UNDO_ABSENT;
	step->removed += change->after.kind == UNDO_ABSENT;
}

static bool count_change(void *context, const struct undo_change *change)
{
	struct undo_step *step = context;

	if (change->before.kind != UNDO_FOLDER && change->after.kind != UNDO_FOLDER)
		count_file(step, change);
	else if (!record_is_gits(change->path))
		step->folders++;
	return true;
}

static void undo_step_fini(struct undo_step *step)
{
	free(step->run);
	free(step->tool);
	free(step->title);
	free(step->agent);
}

/*
 * The description of the log FD is lost: a power failure may take it, and a kill may come
 * before it is written. STEP says so and gets the time of the log.
 */
static void step_without_description(int fd, struct undo_step *step)
{
	struct stat st;

	undo_step_fini(step);
	step->work = UNDO_BY_TOOL;
	step->wall_ms = fstat(fd, &st) == 0 ? clock_ns(&st.st_mtim) / 1000000 : 0;
	step->run = memory_copy("");
	step->tool = memory_copy("");
	step->title = memory_copy("(its description is lost)");
	step->agent = memory_copy("");
}

/*
 * False: the log NUMBER is no step, or cannot be read. The caller calls undo_step_fini in
 * either case.
 */
static bool undo_step_read(const struct undo_store *store, uint32_t number,
			   struct undo_step *step)
{
	auto_close int fd = undo_store_open_log(store, number, false);
	struct undo_reader reader = {.change = count_change, .context = step};

	*step = (struct undo_step){.number = number};
	if (fd < 0)
		return false;
	step->bytes = undo_store_bytes(fd);
	const bool described = undo_store_read_step(store, number, step);
	if (!described)
		step_without_description(fd, step);
	/* A damaged log is shown with the part that could be read. */
	const bool fine = undo_log_read(&reader, fd, NULL);
	step->whole = reader.ended;
	/*
	 * An undo or a mark is listed as a step even when it changed nothing. A call that was killed
	 * is none when it changed nothing, or when its files were put back.
	 */
	return step->work == UNDO_BY_UNDO || step->work == UNDO_MARK ||
	       (step->work != UNDO_CHECKPOINT &&
		(reader.changes > 0 || (described && !fine)));
}

static struct undo_step *find_step(struct undo_steps *steps, uint32_t number)
{
	for (size_t i = 0; i < steps->count; i++) {
		if (steps->steps[i].number == number)
			return &steps->steps[i];
	}
	return NULL;
}

/*
 * The undo STEP has taken back all steps behind STEP->undoes. The undos among these that
 * undid a step before them are undone as well; those that undid others of them have no
 * effect any more.
 */
static void mark_above(struct undo_steps *steps, const struct undo_step *step)
{
	for (size_t i = 0; i < steps->count; i++) {
		struct undo_step *other = &steps->steps[i];

		if (other->number > step->undoes && other->number < step->number &&
		    (other->work != UNDO_BY_UNDO || undo_step_first(other) <= step->undoes))
			other->undone = true;
	}
}

/*
 * Go from the newest step to the oldest, because an undo that was undone has no effect.
 */
static void mark_undone(struct undo_steps *steps)
{
	for (size_t i = steps->count; i-- > 0;) {
		const struct undo_step *step = &steps->steps[i];
		if (step->work != UNDO_BY_UNDO || !step->whole || step->undone)
			continue;
		if (step->above) {
			mark_above(steps, step);
			continue;
		}
		struct undo_step *other = find_step(steps, step->undoes);
		if (other != NULL && other->number < step->number)
			other->undone = true;
	}
}

/* Call TAKE with each name in the store that has ENDING. */
static void undo_store_names(const struct undo_store *store, const char *ending,
			     void (*take)(void *context, const char *name), void *context)
{
	DIR *names = fd_open_names(store->folder);

	if (names == NULL)
		return;
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (str_ends(str_of(at->d_name), str_of(ending)))
			take(context, at->d_name);
	}
	(void)closedir(names);
}

struct adding {
	const struct undo_store *store;
	uint64_t *bytes;
};

static void add_bytes(void *context, const char *name)
{
	const struct adding *adding = context;
	struct stat st;

	if (fstatat(adding->store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*adding->bytes += (uint64_t)st.st_size;
}

bool undo_store_steps(const struct undo_store *store, struct undo_steps *steps,
		      struct err *err)
{
	struct undo_numbers numbers;

	*steps = (struct undo_steps){0};
	if (!numbers_read(store, &numbers, err))
		return false;
	steps->steps = memory_array(numbers.count + 1, sizeof(*steps->steps));
	undo_store_names(store, UNDO_LIST_ENDING, add_bytes,
			 &(struct adding){store, &steps->bytes});
	for (size_t i = 0; i < numbers.count; i++) {
		struct undo_step *step = &steps->steps[steps->count];
		bool is_step = undo_step_read(store, numbers.items[i], step);

		steps->bytes += step->bytes;
		if (is_step)
			steps->count++;
		else
			undo_step_fini(step);
	}
	free(numbers.items);
	mark_undone(steps);
	return true;
}

void undo_steps_fini(struct undo_steps *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		undo_step_fini(&steps->steps[i]);
	free(steps->steps);
	*steps = (struct undo_steps){0};
}

/* Finds the logs and objects of a store that are no longer needed, and removes them. */

/* The logs that must stay, because a step or list that stays refers to them. */
struct marks {
	int folder;
	const struct undo_numbers *numbers;
	bool *kept;
};

static void mark(struct marks *marks, uint32_t number)
{
	size_t at = numbers_find(marks->numbers, number);

	if (at < marks->numbers->count)
		marks->kept[at] = true;
}

static bool mark_change(void *context, const struct undo_change *change)
{
	if (change->before.source == UNDO_LOGGED)
		mark(context, change->before.log);
	return true;
}

static void mark_log(const struct undo_store *store, struct marks *marks, uint32_t number)
{
	auto_close int fd = undo_store_open_log(store, number, false);
	struct undo_reader reader = {.change = mark_change, .context = marks};

	if (fd >= 0)
		(void)undo_log_read(&reader, fd, NULL);
	mark(marks, number);
}

/* A tool's step may go back to what was there before the command that it lies within. */
static void mark_step(const struct undo_store *store, struct marks *marks, uint32_t number)
{
	struct undo_beside beside;

	mark_log(store, marks, number);
	undo_store_read_beside(store, number, &beside);
	if (beside.within != 0)
		mark_log(store, marks, beside.within);
}

static void mark_list(void *context, const char *name)
{
	struct marks *marks = context;
	auto_close int fd = openat(marks->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct undo_list list;

	undo_list_init(&list);
	if (fd >= 0 && undo_list_read(fd, &list, NULL)) {
		for (size_t i = 0; i < list.count; i++) {
			if (list.rows[i].state.source == UNDO_LOGGED)
				mark(marks, list.rows[i].state.log);
		}
	}
	undo_list_fini(&list);
}

/* Mark steps from the newest back, as many as the ceilings allow. */
static uint64_t mark_steps(const struct undo_store *store, struct marks *marks,
			   int64_t oldest_ms)
{
	uint64_t bytes = 0;
	size_t count = 0;

	for (size_t i = marks->numbers->count; i-- > 0;) {
		struct undo_step step;
		bool is_step = undo_step_read(store, marks->numbers->items[i], &step);

		bytes += step.bytes;
		if (is_step && count < UNDO_STEPS_MAX && bytes <= UNDO_STORE_MAX &&
		    step.wall_ms >= oldest_ms) {
			mark_step(store, marks, step.number);
			count++;
		}
		undo_step_fini(&step);
	}
	return bytes;
}

/*
 * Remove old objects that only the store still has, because the repository has deleted
 * them.
 */
static void tidy_objects_below(int folder)
{
	int64_t oldest_s = clock_wall_ms() / 1000 - UNDO_AGE_MAX_S;
	DIR *names = fd_open_names(folder);
	struct stat st;

	if (names == NULL)
		return;
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (fstatat(folder, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_ctim.tv_sec < oldest_s)
			(void)unlinkat(folder, at->d_name, 0);
		if (S_ISDIR(st.st_mode) && at->d_name[0] != '.') {
			auto_close int below =
				openat(folder, at->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (below >= 0)
				tidy_objects_below(below);
		}
	}
	(void)closedir(names);
}

static void tidy_objects(const struct undo_store *store)
{
	auto_close int fd = openat(store->folder, UNDO_OBJECTS_NAME,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		tidy_objects_below(fd);
}

enum { SPARED_S = 3600 };

/*
 * Remove the logs that nothing refers to. SPARES: not those of the last hour, to which
 * the list of a running session may refer that is not written yet.
 */
static uint64_t drop_unmarked(const struct undo_store *store, const struct marks *marks,
			      bool spares)
{
	const int64_t old_s = clock_wall_ms() / 1000 - SPARED_S;
	uint64_t left = 0;
	struct stat st;

	for (size_t i = 0; i < marks->numbers->count; i++) {
		uint32_t number = marks->numbers->items[i];
		auto_close int fd = undo_store_open_log(store, number, false);

		if (marks->kept[i] ||
		    (spares && fd >= 0 && fstat(fd, &st) == 0 && st.st_mtime > old_s))
			left += fd >= 0 ? undo_store_bytes(fd) : 0;
		else if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			undo_store_drop_log(store, number);
	}
	return left;
}

static void drop_name(void *context, const char *name)
{
	const struct undo_store *store = context;

	(void)unlinkat(store->folder, name, 0);
}

struct users {
	const struct undo_store *store;
	bool others;
};

static void note_use(void *context, const char *name)
{
	struct users *users = context;
	auto_close int list = list_lock(users->store, name);
	struct stat st;

	users->others = users->others || (list < 0 &&
					  fstatat(users->store->folder, name, &st,
						  AT_SYMLINK_NOFOLLOW) == 0 &&
					  st.st_ino != users->store->list);
}

/*
 * Every log renews the time of its rights, and every checkpoint that of its list. So a
 * file with an old time belongs to nothing that stays.
 */
static bool is_old(const struct undo_store *store, const char *name)
{
	struct stat st;

	return fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtim.tv_sec < clock_wall_ms() / 1000 - UNDO_AGE_MAX_S;
}

static void drop_old_rights(void *context, const char *name)
{
	const struct undo_store *store = context;

	if (is_old(store, name))
		(void)unlinkat(store->folder, name, 0);
}

/* A list with a name of its own serves only the session that has it open. */
static void drop_old_list(void *context, const char *name)
{
	if (is_spared_list(name) || is_old(context, name))
		drop_list(context, name);
}

bool undo_store_hold(const struct undo_store *store, int *held, struct err *err)
{
	const int64_t until = clock_now_ms() + HOLD_MS;

	*held = -1;
	if (store->folder < 0)
		return true;
	auto_close int fd = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "the undo store: %s", strerror(errno));
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(err, errno, "the undo store: %s", strerror(errno));
		if (clock_now_ms() >= until)
			return err_set(err, EBUSY,
				       "another undo of this workspace is at work; when it "
				       "has ended, run this one again");
		(void)poll(NULL, 0, HOLD_PAUSE_MS);
	}
	*held = fd_take(&fd);
	return true;
}

/*
 * Remove steps that began before OLDEST_MS or are over the ceilings, and contents that
 * nothing else refers to. FORGETS: no session uses the store; remove the lists too, so
 * that contents go to which only a list refers. False: it is still over the ceiling.
 */
static bool tidy_since(struct undo_store *store, int64_t oldest_ms, bool forgets)
{
	struct users users = {.store = store};
	struct undo_numbers numbers;
	uint64_t bytes = 0, left;

	/*
	 * Only one process tidies a store at a time. When the lock is taken, another one
	 * is doing it.
	 */
	if (flock(store->folder, LOCK_EX | LOCK_NB) < 0 ||
	    !numbers_read(store, &numbers, NULL))
		return true;
	for (size_t i = 0; i < numbers.count; i++) {
		auto_close int fd = undo_store_open_log(store, numbers.items[i], false);
		bytes += fd >= 0 ? undo_store_bytes(fd) : 0;
	}
	undo_store_names(store, UNDO_LIST_ENDING, drop_old_list, store);
	undo_store_names(store, UNDO_RIGHTS_ENDING, drop_old_rights, store);
	struct marks marks = {store->folder, &numbers,
			      memory_array(numbers.count + 1, sizeof(bool))};
	(void)mark_steps(store, &marks, oldest_ms);
	if (forgets)
		undo_store_names(store, UNDO_LIST_ENDING, drop_name, store);
	undo_store_names(store, UNDO_LIST_ENDING, mark_list, &marks);
	if (!forgets)
		undo_store_names(store, UNDO_LIST_ENDING, note_use, &users);
	const bool spares = !forgets && (bytes <= UNDO_STORE_MAX || users.others);
	left = drop_unmarked(store, &marks, spares);
	/*
	 * The lists still refer to contents in large old logs. Without the lists these
	 * logs can be removed, and the next checkpoint copies the present contents. A
	 * session that has such a list in use needs the contents.
	 */
	if (bytes > UNDO_STORE_MAX && left > UNDO_STORE_MAX) {
		undo_store_names(store, UNDO_LIST_ENDING, drop_list, store);
		memset(marks.kept, 0, numbers.count * sizeof(bool));
		(void)mark_steps(store, &marks, oldest_ms);
		undo_store_names(store, UNDO_LIST_ENDING, mark_list, &marks);
		left = drop_unmarked(store, &marks, spares);
	}
	tidy_objects(store);
	free(marks.kept);
	free(numbers.items);
	(void)flock(store->folder, LOCK_UN);
	return left <= UNDO_STORE_MAX;
}

bool undo_store_tidy(struct undo_store *store)
{
	return tidy_since(store, clock_wall_ms() - (int64_t)UNDO_AGE_MAX_S * 1000, false);
}

bool undo_store_forget(int folder, int64_t oldest_ms)
{
	struct undo_store store = {.folder = folder, .used = -1};
	struct undo_numbers left = {0};
	bool empty;

	(void)tidy_since(&store, oldest_ms, true);
	empty = numbers_read(&store, &left, NULL) && left.count == 0;
	free(left.items);
	return empty;
}
