/*
 * walk: the threads of a walk, the folders that they still have to read, and the rules of
 * ignore files. Each thread has a stack of folders of its own and walks depth first, so
 * that few folders wait. When another thread has nothing to do, a thread gives away its
 * oldest folders, or half of a large folder's entries. Thread 0 is the caller's: only
 * this thread asks the call whether to stop.
 */

#include "tools/search/walk.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "files/files.h"
#include "guard/readers.h"
#include "tool/call.h"
#include "tools/shown.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * Git's own files have a few KiB. A larger file is taken for something else, and not
 * read.
 */
enum { RULES_FILE_MAX = 1 << 20 };

struct rules_git {
	bool ignores_case;
	struct buf user, exclude; /* texts, empty: there is no such file */
};

/* A tree of more entries is better searched in parts. */
#define WALK_ENTRIES_MAX UINT64_C(20000000)

enum {
	/*
	 * The kernel fills the buffer with some 2,000 entries in one call. A larger one
	 * is not measurably faster.
	 */
	WALK_FOLDER_BUFFER = 64 << 10,
	/*
	 * The most bytes of folders that wait to be read: far more than in any tree in
	 * which people work.
	 */
	WALK_PENDING_MAX = 64 << 20,
};

/* A folder to be read, or a part of one that was read already. */
struct walk_item {
	/* that hold around the folder; for a part of a folder: inside it */
	struct rules *rules;
	size_t depth;    /* of the folder; the start is 0 */
	bool ignored;    /* the folder is ignored, with all its content */
	bool named;      /* and the folder around it is not */
	bool count_only; /* it lies below the wanted depth */
	char *part;      /* directory entries; NULL: they must be read */
	size_t part_size;
	size_t path_size;
	char path[]; /* relative to the start */
};

struct walk_stack {
	struct walk_item **items;
	size_t count, room;
};

struct walker {
	struct walk *walk;
	unsigned number;
	pthread_t thread;
	struct walk_stack stack;
	char *buffer; /* WALK_FOLDER_BUFFER */
	/* relative to the root of all rules; an entry's own begins at path_at */
	char *path;
	size_t path_at;
	uint64_t folder; /* number of the one being read */
	uint64_t entries, folders, ignored, unreadable, too_long;
	char apart[WALK_APART];
};

struct walk {
	const struct walk_start *start;
	const struct walk_options *options;
	struct str under;
	uint64_t entries_max;
	unsigned threads_max;
	int64_t begun_us;
	struct walker walkers[WALK_THREADS_MAX];
	unsigned walker_count; /* running, thread 0 included */
	/* This member is read for each entry and seldom written. */
	atomic_int end; /* enum walk_end, set once */
	atomic_uint idle;
	char apart[WALK_APART];
	atomic_size_t pending; /* bytes of all items */
	/* sum of all threads, updated from time to time */
	atomic_uint_least64_t entries;

	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	struct walk_stack shared;
	bool finished;
	struct buf *example;
};

/* The signs of rules that a folder is known to hold before its rules are read. */
struct rules_signs {
	bool git;       /* an entry .git: a repository of its own */
	bool gitignore; /* there may be a .gitignore */
};

/* Reads the settings of git about ignoring, from the system's to the worktree's. */

/*
 * Read the file at PATH when the cell shows it. A link that stays inside is followed, as
 * in git.
 */
static bool read_file(const struct rules_place *place, const char *path, size_t max,
		      struct buf *text)
{
	struct file file;
	struct err err;
	bool ok;

	file_init(&file);
	buf_init(text, max);
	ok = files_reach(place->files, path, FILES_READ, &file, &err) &&
	     fd_read_all(file.fd, text, path, &err);
	file_fini(&file);
	/* A part of a file of rules would mean something else than the whole file. */
	if (!ok)
		buf_clear(text);
	return ok;
}

static const char *variable(const struct rules_place *place, const char *name)
{
	size_t size = strlen(name);

	for (const char *const *at = place->environment; at != NULL && *at != NULL; at++) {
		if (strncmp(*at, name, size) == 0 && (*at)[size] == '=')
			return *at + size + 1;
	}
	return NULL;
}

/* The path of NAME among the user's settings. */
static bool user_file(const struct rules_place *place, const char *name, struct buf *path)
{
	buf_init(path, PATH_MAX);
	return path_xdg(variable(place, "XDG_CONFIG_HOME"), variable(place, "HOME"),
			".config", name, path);
}

static void add_config(const struct rules_place *place, const char *path,
		       struct git_config *config)
{
	struct buf text;

	if (read_file(place, path, GIT_CONFIG_MAX, &text))
		git_config_read(buf_str(&text), config);
	buf_fini(&text);
}

/* FOLDER/NAME, or NAME when that is absolute. */
static void join(struct buf *path, const char *folder, struct str name)
{
	buf_clear(path);
	if (name.size == 0 || name.data[0] != '/')
		(void)buf_addf(path, "%s/", folder);
	(void)buf_addstr(path, name);
}

/*
 * The folder of the repository itself (GIT), and the one that its worktrees share (COMMON),
 * for the worktree TOP. A pointer in place of the folder is followed once.
 */
static void find_folders(const struct rules_place *place, const char *top,
			 struct buf *git, struct buf *common)
{
	struct buf text, file;
	struct str path;

	buf_init(&file, PATH_MAX);
	join(git, top, STR(".git"));
	if (read_file(place, git->data, GIT_POINTER_MAX, &text) &&
	    readers_text_pointer(buf_str(&text), &path))
		join(git, top, path);
	buf_fini(&text);
	(void)buf_addstr(common, buf_str(git));
	join(&file, git->data, STR("commondir"));
	if (read_file(place, file.data, GIT_POINTER_MAX, &text) &&
	    readers_text_line(buf_str(&text), &path))
		join(common, git->data, path);
	buf_fini(&text);
	buf_fini(&file);
}

/* The later setting counts: system, user, repository, worktree. */
static void read_config(const struct rules_place *place, const char *git,
			const char *common, struct git_config *config)
{
	struct buf path;

	if (variable(place, "GIT_CONFIG_NOSYSTEM") == NULL)
		add_config(place, "/etc/gitconfig", config);
	if (user_file(place, "git/config", &path))
		add_config(place, path.data, config);
	buf_clear(&path);
	if (variable(place, "HOME") != NULL &&
	    buf_addf(&path, "%s/.gitconfig", variable(place, "HOME")))
		add_config(place, path.data, config);
	join(&path, common, STR("config"));
	add_config(place, path.data, config);
	join(&path, git, STR("config.worktree"));
	if (config->of_worktrees)
		add_config(place, path.data, config);
	buf_fini(&path);
}

/*
 * Read the file that core.excludesFile names; without that setting, git/ignore among the
 * user's settings.
 */
static void read_user(const struct rules_place *place, const char *top,
		      const struct git_config *config, struct buf *text)
{
	struct str name = buf_str(&config->excludes_file);
	struct buf path;

	if (!config->has_excludes_file) {
		if (!user_file(place, "git/ignore", &path))
			buf_clear(&path);
	} else {
		buf_init(&path, PATH_MAX);
		if (!str_starts(name, STR("~/")))
			join(&path, top, name);
		else if (variable(place, "HOME") != NULL)
			join(&path, variable(place, "HOME"), str_part(name, 2, SIZE_MAX));
	}
	if (path.size > 0 && (!config->has_excludes_file || name.size > 0))
		(void)read_file(place, path.data, RULES_FILE_MAX, text);
	buf_fini(&path);
}

/*
 * Read the settings of the repository that begins in FOLDER, relative to the root. Call
 * rules_git_fini afterwards.
 */
static void rules_git_read(const struct rules_place *place, struct str folder,
			   struct rules_git *git)
{
	struct git_config config;
	struct buf top, own, common, path;

	*git = (struct rules_git){0};
	buf_init(&top, PATH_MAX);
	buf_init(&own, PATH_MAX);
	buf_init(&common, PATH_MAX);
	buf_init(&path, PATH_MAX);
	git_config_init(&config);
	(void)buf_addstr(&top, buf_str(&place->root));
	if (folder.size > 0) {
		(void)buf_addc(&top, '/');
		(void)buf_addstr(&top, folder);
	}
	find_folders(place, top.data, &own, &common);
	read_config(place, own.data, common.data, &config);
	git->ignores_case = config.ignore_case;
	read_user(place, top.data, &config, &git->user);
	join(&path, common.data, STR("info/exclude"));
	(void)read_file(place, path.data, RULES_FILE_MAX, &git->exclude);
	git_config_fini(&config);
	buf_fini(&top);
	buf_fini(&own);
	buf_fini(&common);
	buf_fini(&path);
}

static void rules_git_fini(struct rules_git *git)
{
	buf_fini(&git->user);
	buf_fini(&git->exclude);
}

/*
 * The ignore files that hold in a folder of a walk, shared between its folders and
 * counted by references. They are git's own: .gitignore of the folder and of those above
 * it, info/exclude of its repository, and the file that core.excludesFile names. Ignore
 * files hold with or without a repository around them; a nested repository starts anew.
 * Git's index is not read, so a tracked file that a rule names is ignored here.
 */

struct rules {
	atomic_uint references;
	/* keeps the rules alive to which `ignore` is chained; NULL at the top */
	struct rules *parent;
	unsigned flags; /* PATTERN_IGNORE_CASE, when the repository sets this */
	/* of a repository that begins here: core.excludesFile, then info/exclude before it */
	struct ignore *user, *exclude;
	struct ignore *ignore; /* .gitignore */
};

/* In each of these functions NULL means "no rules". */
static struct rules *rules_ref(struct rules *rules)
{
	if (rules)
		atomic_fetch_add_explicit(&rules->references, 1, memory_order_relaxed);
	return rules;
}

static void rules_unref(struct rules *rules)
{
	while (rules && atomic_fetch_sub_explicit(&rules->references, 1,
						  memory_order_acq_rel) == 1) {
		struct rules *parent = rules->parent;

		ignore_free(rules->ignore);
		ignore_free(rules->exclude);
		ignore_free(rules->user);
		free(rules);
		rules = parent;
	}
}

static const struct ignore *rules_chain(const struct rules *rules)
{
	if (!rules)
		return NULL;
	return rules->ignore    ? rules->ignore
	       : rules->exclude ? rules->exclude
				: rules->user;
}

/* The path has no link, because git does not follow one here either. */
static struct ignore *rules_read(int folder_fd, const char *name, struct str folder,
				 const struct ignore *parent, unsigned flags)
{
	auto_close int fd = fd_open_beneath(folder_fd, name, O_RDONLY);
	struct ignore *ignore = NULL;
	struct buf text;

	if (fd < 0)
		return NULL;
	buf_init(&text, RULES_FILE_MAX);
	if (fd_read_all(fd, &text, name, NULL) && text.size > 0)
		ignore = ignore_new(buf_str(&text), folder, parent, flags);
	buf_fini(&text);
	return ignore;
}

static struct rules *rules_new(struct rules *parent, unsigned flags)
{
	struct rules *rules = memory_alloc(sizeof(*rules));

	atomic_init(&rules->references, 1);
	rules->parent = rules_ref(parent);
	rules->flags = flags;
	return rules;
}

static struct ignore *ignore_of(const struct buf *text, struct str folder,
				const struct ignore *parent, unsigned flags)
{
	return text->size > 0 ? ignore_new(buf_str(text), folder, parent, flags) : NULL;
}

/* The rules of a repository besides its ignore files; NULL: there are none. */
static struct rules *rules_of_repository(const struct rules_place *place, struct str folder)
{
	struct rules_git git;
	struct rules *rules = NULL;

	rules_git_read(place, folder, &git);
	if (git.ignores_case || git.user.size > 0 || git.exclude.size > 0) {
		rules = rules_new(NULL, git.ignores_case ? PATTERN_IGNORE_CASE : 0);
		rules->user = ignore_of(&git.user, folder, NULL, rules->flags);
		rules->exclude = ignore_of(&git.exclude, folder, rules->user, rules->flags);
	}
	rules_git_fini(&git);
	return rules;
}

/*
 * The rules inside the folder FOLDER_FD, named FOLDER relative to the root of all rules
 * ("" for the root), where PARENT holds around it. The caller gets a reference.
 */
static struct rules *rules_enter(struct rules *parent, const struct rules_place *place,
				 int folder_fd, struct str folder, struct rules_signs signs)
{
	struct rules *outer =
		signs.git ? rules_of_repository(place, folder) : rules_ref(parent);
	const unsigned flags = outer != NULL ? outer->flags : 0;
	struct ignore *ignore = NULL;
	struct rules *rules;

	if (signs.gitignore)
		ignore = rules_read(folder_fd, ".gitignore", folder, rules_chain(outer),
				    flags);
	if (ignore == NULL)
		return outer;
	rules = rules_new(outer, flags);
	rules->ignore = ignore;
	rules_unref(outer);
	return rules;
}

/* The same, but the function itself looks for the signs. */
static struct rules *rules_enter_unseen(struct rules *parent,
					const struct rules_place *place, int folder_fd,
					struct str folder)
{
	struct rules_signs signs = {
		.git = faccessat(folder_fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0,
		.gitignore = true,
	};

	return rules_enter(parent, place, folder_fd, folder, signs);
}

/* PATH is relative to the root of all rules. */
static bool rules_ignore(const struct rules *rules, struct str path, bool is_folder)
{
	return rules && ignore_decide(rules_chain(rules), path, is_folder) == IGNORE_YES;
}

enum {
	/*
	 * A walk below both limits stays in one thread, because starting a thread costs
	 * as much as 100 entries.
	 */
	ALONE_ENTRIES = 512,
	ALONE_US = 1000,
	/* Thread 0 wakes when it has no work, to ask the call whether to stop. */
	STOP_POLL_MS = 5,
	/* PCRE2's JIT has a stack of its own; patterns and paths need the rest. */
	THREAD_STACK = 512 << 10,
};

static void walk_stack_push(struct walk_stack *stack, struct walk_item *item)
{
	if (stack->count == stack->room) {
		stack->room = stack->room ? stack->room * 2 : 64;
		stack->items =
			memory_grow(stack->items, stack->room, sizeof(*stack->items));
	}
	stack->items[stack->count++] = item;
}

/* Set why the walk ends; the first reason stays. */
static void walk_end_with(struct walk *walk, enum walk_end end)
{
	int complete = WALK_COMPLETE;

	(void)atomic_compare_exchange_strong(&walk->end, &complete, (int)end);
}

void walker_give_up(struct walker *walker)
{
	walk_end_with(walker->walk, WALK_GIVEN_UP);
}

unsigned walker_number(const struct walker *walker)
{
	return walker->number;
}

bool walker_stopped(struct walker *walker)
{
	struct walk *walk = walker->walk;
	const struct walk_options *options = walk->options;

	if (walker->number == 0) {
		if (call_stopped(options->call))
			walk_end_with(walk, WALK_STOPPED);
		else if (options->until_ms > 0 && clock_now_ms() >= options->until_ms)
			walk_end_with(walk, WALK_LATE);
	}
	return atomic_load_explicit(&walk->end, memory_order_relaxed) != WALK_COMPLETE;
}

static size_t item_bytes(const struct walk_item *item)
{
	return sizeof(*item) + item->path_size + 1 + item->part_size;
}

static struct walk_item *walk_item_new(struct walk *walk, struct rules *rules,
				       struct str path, struct str part)
{
	struct walk_item *item = memory_alloc(sizeof(*item) + path.size + 1);

	item->rules = rules_ref(rules);
	item->path_size = path.size;
	memcpy(item->path, path.data, path.size);
	if (part.size > 0) {
		item->part = memory_alloc(part.size);
		memcpy(item->part, part.data, part.size);
		item->part_size = part.size;
	}
	atomic_fetch_add_explicit(&walk->pending, item_bytes(item), memory_order_relaxed);
	return item;
}

static void item_free(struct walk *walk, struct walk_item *item)
{
	atomic_fetch_sub_explicit(&walk->pending, item_bytes(item), memory_order_relaxed);
	rules_unref(item->rules);
	free(item->part);
	free(item);
}

static void walker_run(struct walker *walker);

static void *walker_main(void *argument)
{
	walker_run(argument);
	return NULL;
}

static void walker_init(struct walk *walk, unsigned number)
{
	struct walker *walker = &walk->walkers[number];
	struct str rules_path = buf_str(&walk->start->rules_path);

	walker->walk = walk;
	walker->number = number;
	walker->buffer = memory_grow(NULL, WALK_FOLDER_BUFFER, 1);
	walker->path = memory_alloc(rules_path.size + 1 + PATH_MAX + 1);
	memcpy(walker->path, rules_path.data, rules_path.size);
	walker->path_at = rules_path.size;
	if (rules_path.size > 0)
		walker->path[walker->path_at++] = '/';
}

static void walker_fini(struct walker *walker)
{
	while (walker->stack.count > 0)
		item_free(walker->walk, walker->stack.items[--walker->stack.count]);
	free(walker->stack.items);
	free(walker->buffer);
	free(walker->path);
}

/*
 * Start more threads when the walk is large enough. When none can be started, one thread
 * is enough.
 */
static void walk_spread(struct walk *walk)
{
	pthread_attr_t attributes;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, THREAD_STACK);
	(void)pthread_mutex_lock(&walk->lock);
	while (walk->walker_count < walk->threads_max) {
		struct walker *walker = &walk->walkers[walk->walker_count];

		walker_init(walk, walk->walker_count);
		if (pthread_create(&walker->thread, &attributes, walker_main, walker) != 0) {
			walker_fini(walker);
			walk->threads_max = walk->walker_count;
			break;
		}
		walk->walker_count++;
	}
	(void)pthread_mutex_unlock(&walk->lock);
	(void)pthread_attr_destroy(&attributes);
}

/* Is a thread, or a thread that could still be started, without work? */
static bool walker_others_idle(struct walker *walker)
{
	struct walk *walk = walker->walk;

	if (atomic_load_explicit(&walk->idle, memory_order_relaxed) > 0)
		return true;
	if (walker->number != 0 || walk->walker_count >= walk->threads_max)
		return false;
	if (walker->entries < ALONE_ENTRIES && clock_now_us() - walk->begun_us < ALONE_US)
		return false;
	walk_spread(walk);
	return walk->walker_count > 1;
}

/* Give ITEMS to the threads without work. */
static void walk_share(struct walk *walk, struct walk_item *const *items, size_t count)
{
	(void)pthread_mutex_lock(&walk->lock);
	for (size_t i = 0; i < count; i++)
		walk_stack_push(&walk->shared, items[i]);
	(void)pthread_cond_broadcast(&walk->changed);
	(void)pthread_mutex_unlock(&walk->lock);
}

/*
 * Give the oldest folders, which hold the largest trees, to threads without work; keep
 * KEPT.
 */
static void walker_share_folders(struct walker *walker, size_t kept)
{
	struct walk_stack *stack = &walker->stack;
	size_t count = (stack->count + 1 - kept) / 2;

	if (count == 0 || !walker_others_idle(walker))
		return;
	walk_share(walker->walk, stack->items, count);
	stack->count -= count;
	memmove(stack->items, stack->items + count, stack->count * sizeof(*stack->items));
}

/*
 * Wait for work from other threads, with the lock held. Meanwhile thread 0 asks its call
 * whether to stop.
 */
static void walker_wait(struct walker *walker)
{
	struct walk *walk = walker->walk;
	struct timespec until;

	if (walker->number != 0) {
		(void)pthread_cond_wait(&walk->changed, &walk->lock);
		return;
	}
	until = clock_after(STOP_POLL_MS);
	(void)pthread_cond_timedwait(&walk->changed, &walk->lock, &until);
	(void)walker_stopped(walker);
}

/* The next item, or NULL when the walk is over for all threads. */
static struct walk_item *walker_take(struct walker *walker)
{
	struct walk *walk = walker->walk;
	struct walk_item *item = NULL;

	if (walker->stack.count > 0)
		return walker->stack.items[--walker->stack.count];
	(void)pthread_mutex_lock(&walk->lock);
	atomic_fetch_add(&walk->idle, 1);
	while (!walk->finished && walk->shared.count == 0) {
		if (atomic_load(&walk->idle) == walk->walker_count) {
			walk->finished = true;
			(void)pthread_cond_broadcast(&walk->changed);
		} else {
			walker_wait(walker);
		}
	}
	if (!walk->finished) {
		item = walk->shared.items[--walk->shared.count];
		atomic_fetch_sub(&walk->idle, 1);
	}
	(void)pthread_mutex_unlock(&walk->lock);
	return item;
}

static void walker_read(struct walker *walker, const struct walk_item *item);

static void walker_run(struct walker *walker)
{
	struct walk_item *item = walker_take(walker);

	while (item) {
		/* After a stop waiting items are dropped, so that all threads end. */
		if (!walker_stopped(walker)) {
			walker_read(walker, item);
			walker_share_folders(walker, 1);
		}
		item_free(walker->walk, item);
		item = walker_take(walker);
	}
}

static unsigned walk_cores(void)
{
	unsigned count = clock_cores_usable();

	return count > WALK_THREADS_MAX ? WALK_THREADS_MAX : count;
}

static void walk_sum(struct walk *walk, struct walk_summary *summary)
{
	for (unsigned i = 0; i < walk->walker_count; i++) {
		struct walker *walker = &walk->walkers[i];

		if (i > 0)
			(void)pthread_join(walker->thread, NULL);
		summary->entries += walker->entries;
		summary->folders += walker->folders;
		summary->ignored += walker->ignored;
		summary->unreadable += walker->unreadable;
		summary->too_long += walker->too_long;
		walker_fini(walker);
	}
	summary->end = (enum walk_end)atomic_load(&walk->end);
}

void walk_run(const struct walk_start *start, const struct walk_options *options,
	      struct walk_summary *summary)
{
	struct walk *walk = memory_alloc(sizeof(*walk));
	pthread_condattr_t attributes;

	assert(options->threads <= WALK_THREADS_MAX);
	walk->start = start;
	walk->options = options;
	walk->under = str_of(options->under);
	walk->entries_max = options->entries_max ? options->entries_max : WALK_ENTRIES_MAX;
	walk->threads_max = options->threads ? options->threads : walk_cores();
	walk->begun_us = clock_now_us();
	walk->example = &summary->example;
	walk->walker_count = 1;
	(void)pthread_mutex_init(&walk->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&walk->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);

	walker_init(walk, 0);
	walk_stack_push(&walk->walkers[0].stack,
			walk_item_new(walk, start->rules, STR(""), STR("")));
	walker_run(&walk->walkers[0]);
	walk_sum(walk, summary);
	free(walk->shared.items);
	(void)pthread_cond_destroy(&walk->changed);
	(void)pthread_mutex_destroy(&walk->lock);
	free(walk);
}

/*
 * One folder of a walk: it is opened from the start by its whole path and read. The rules
 * decide about its entries, and the visitor gets the rest.
 */

enum {
	/* Largest directory entry: its header and NAME_MAX with NUL, rounded up. */
	ENTRY_BYTES_MAX = 280,
	/* Entries between two looks whether to stop: some 50 us of listing. */
	STOP_EVERY = 64,
};

static const struct dirent64 *entry_at(const char *entries, size_t at)
{
	return (const struct dirent64 *)(const void *)(entries + at);
}

/* A folder while it is read. */
struct reading {
	const struct walk_item *item;
	struct rules *rules; /* that hold inside the folder */
	int fd;
	uint64_t folders, files, ignored;
};

/*
 * Give work away when a thread has none: waiting folders, else the second half of the
 * entries from AT to SIZE, so that all threads read the files of one large folder.
 * Returns the new SIZE.
 */
static size_t walker_share_entries(struct walker *walker, const struct reading *reading,
				   const char *entries, size_t at, size_t size)
{
	const struct walk_item *item = reading->item;
	struct walk *walk = walker->walk;
	size_t middle = at;
	struct walk_item *part;

	if (at == size || !walker_others_idle(walker))
		return size;
	if (walker->stack.count > 0) {
		walker_share_folders(walker, 0);
		return size;
	}
	/* A folder whose entries are counted stays in one piece. */
	if (walk->options->with_folders)
		return size;
	while (middle < size && middle - at < (size - at) / 2)
		middle += entry_at(entries, middle)->d_reclen;
	if (middle == size)
		return size;
	part = walk_item_new(walk, reading->rules,
			     (struct str){item->path, item->path_size},
			     (struct str){entries + middle, size - middle});
	part->depth = item->depth;
	part->ignored = item->ignored;
	walk_share(walk, &part, 1);
	return middle;
}

static enum walk_kind entry_kind(int folder_fd, const struct dirent64 *entry)
{
	mode_t mode = (mode_t)DTTOIF(entry->d_type);
	struct stat st;

	if (entry->d_type == DT_UNKNOWN) {
		if (fstatat(folder_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return WALK_OTHER;
		mode = st.st_mode;
	}
	if (S_ISREG(mode))
		return WALK_FILE;
	if (S_ISDIR(mode))
		return WALK_FOLDER;
	return S_ISLNK(mode) ? WALK_LINK : WALK_OTHER;
}

/* Does PATH lead to UNDER, or lie in it? */
static bool path_leads(struct str path, struct str under)
{
	size_t common = path.size < under.size ? path.size : under.size;

	if (memcmp(path.data, under.data, common) != 0)
		return false;
	if (path.size == under.size)
		return true;
	return path.size < under.size ? under.data[common] == '/'
				      : path.data[common] == '/';
}

static void walker_found_folder(struct walker *walker, struct reading *reading,
				struct str path, bool ignored)
{
	struct walk *walk = walker->walk;
	const struct walk_options *options = walk->options;
	size_t depth = reading->item->depth + 1;
	struct walk_item *item;

	if (ignored && !options->ignored_only) {
		walker->ignored++;
		reading->ignored++;
		return;
	}
	reading->folders++;
	if (reading->item->count_only)
		return;
	if (options->depth > 0 && depth >= options->depth && !options->with_folders)
		return;
	if (walk->under.size > 0 && !path_leads(path, walk->under))
		return;
	if (atomic_load_explicit(&walk->pending, memory_order_relaxed) > WALK_PENDING_MAX) {
		walk_end_with(walk, WALK_FULL);
		return;
	}
	item = walk_item_new(walk, reading->rules, path, STR(""));
	item->depth = depth;
	item->ignored = ignored;
	item->named = ignored && !reading->item->ignored;
	item->count_only = options->depth > 0 && depth >= options->depth;
	walk_stack_push(&walker->stack, item);
}

static void walker_found(struct walker *walker, struct reading *reading,
			 const struct dirent64 *entry)
{
	const struct walk_options *options = walker->walk->options;
	const struct walk_item *item = reading->item;
	size_t name_size = strlen(entry->d_name);
	size_t slash = item->path_size > 0 ? 1 : 0;
	struct str path = {walker->path + walker->path_at,
			   item->path_size + slash + name_size};
	struct str rules_path = {walker->path, walker->path_at + path.size};
	enum walk_kind kind;
	bool ignored;

	walker->entries++;
	if (path.size >= PATH_MAX) {
		walker->too_long++;
		return;
	}
	memcpy(walker->path + walker->path_at + item->path_size + slash, entry->d_name,
	       name_size + 1);
	kind = entry_kind(reading->fd, entry);
	ignored = item->ignored ||
		  rules_ignore(reading->rules, rules_path, kind == WALK_FOLDER);
	if (kind == WALK_FOLDER) {
		walker_found_folder(walker, reading, path, ignored);
	} else if (ignored != options->ignored_only) {
		walker->ignored += ignored;
		reading->ignored += ignored;
	} else {
		struct walk_entry found = {
			.kind = kind,
			.folder_fd = reading->fd,
			.folder = walker->folder,
			.name = walker->path + walker->path_at + item->path_size + slash,
			.path = path,
			.depth = item->depth + 1,
			.named = ignored && !item->ignored,
		};

		reading->files++;
		if (!item->count_only)
			options->visit(options->owner, walker, &found);
	}
}

static bool name_is_passed(const char *name)
{
	return name[0] == '.' &&
	       (name[1] == '\0' || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0);
}

static void walker_visit_entries(struct walker *walker, struct reading *reading,
				 const char *entries, size_t size)
{
	struct walk *walk = walker->walk;
	size_t passed = 0;

	for (size_t at = 0; at < size;) {
		const struct dirent64 *entry = entry_at(entries, at);

		at += entry->d_reclen;
		if (name_is_passed(entry->d_name))
			continue;
		walker_found(walker, reading, entry);
		size = walker_share_entries(walker, reading, entries, at, size);
		if (++passed % STOP_EVERY == 0) {
			if (atomic_fetch_add(&walk->entries, STOP_EVERY) > walk->entries_max)
				walk_end_with(walk, WALK_FULL);
			if (walker_stopped(walker))
				return;
		}
	}
	(void)atomic_fetch_add(&walk->entries, passed % STOP_EVERY);
}

/*
 * Is LAST the last entry of its folder? ext4, btrfs and others set the highest position
 * behind the last entry. There the call that would return no more entries can be saved.
 */
static bool entry_is_last(const struct dirent64 *last)
{
	return last->d_off == INT64_MAX;
}

/* Fill the buffer as far as possible. *END: there are no more entries. */
static size_t walker_fill(struct walker *walker, int fd, bool *end)
{
	size_t used = 0;
	size_t last;

	*end = false;
	while (WALK_FOLDER_BUFFER - used >= ENTRY_BYTES_MAX) {
		ssize_t n =
			getdents64(fd, walker->buffer + used, WALK_FOLDER_BUFFER - used);

		if (n <= 0) {
			/*
			 * EINVAL: the next entry does not fit. Other errors: the folder
			 * was removed meanwhile.
			 */
			*end = n == 0 || errno != EINVAL || used == 0;
			break;
		}
		last = used;
		used += (size_t)n;
		while (last + entry_at(walker->buffer, last)->d_reclen < used)
			last += entry_at(walker->buffer, last)->d_reclen;
		*end = entry_is_last(entry_at(walker->buffer, last));
		if (*end)
			break;
	}
	return used;
}

static struct rules_signs entries_signs(const char *entries, size_t size, bool all)
{
	struct rules_signs signs = {.gitignore = !all};

	for (size_t at = 0; at < size; at += entry_at(entries, at)->d_reclen) {
		const char *name = entry_at(entries, at)->d_name;

		if (strncmp(name, ".git", 4) != 0)
			continue;
		signs.git = signs.git || name[4] == '\0';
		signs.gitignore = signs.gitignore || strcmp(name, ".gitignore") == 0;
	}
	return signs;
}

static struct rules *walker_enter(struct walker *walker, const struct walk_item *item,
				  int fd, size_t size, bool all)
{
	const struct walk_start *start = walker->walk->start;
	struct rules_signs signs = entries_signs(walker->buffer, size, all);
	struct str folder = {walker->path, walker->path_at + item->path_size};

	if (start->ignored)
		return NULL;
	if (item->path_size == 0)
		folder = buf_str(&start->rules_path);
	/* A folder that is too large for one buffer may have its .git in a later one. */
	if (!all)
		return rules_enter_unseen(item->rules, &start->rules_place, fd, folder);
	return rules_enter(item->rules, &start->rules_place, fd, folder, signs);
}

/* Open the whole path from the start, so that only the start must stay open. */
static int walker_open_path(const struct walker *walker, const char *path, int flags)
{
	return fd_open_beneath(walker->walk->start->fd, path, flags | O_DIRECTORY);
}

void walk_mend_folder(int folder)
{
	char name[FD_NAME_ROOM];
	struct stat st;

	if (fstat(folder, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU)
		(void)!chmod(fd_name(folder, name), folder_mode_opened(st.st_mode, S_IRWXU));
}

static void walker_mend(const struct walker *walker, const char *path)
{
	auto_close int fd = walker_open_path(walker, path, O_PATH);

	if (fd >= 0)
		walk_mend_folder(fd);
}

static int walker_open(struct walker *walker, const struct walk_item *item)
{
	const char *path = item->path_size > 0 ? item->path : ".";
	int fd = walker_open_path(walker, path, O_RDONLY);

	if (fd >= 0 || errno != EACCES || !walker->walk->options->opens)
		return fd;
	auto_free char *above = memory_copy(path);
	for (char *slash = strchr(above, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		walker_mend(walker, above);
		*slash = '/';
	}
	walker_mend(walker, path);
	return walker_open_path(walker, path, O_RDONLY);
}

/* Does the folder still exist, and cannot be read? Then count it. */
static bool walker_cannot_open(struct walker *walker, const struct walk_item *item)
{
	struct walk *walk = walker->walk;

	/* The folder was removed or replaced after its name was read. */
	if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
		return false;
	walker->unreadable++;
	(void)pthread_mutex_lock(&walk->lock);
	if (walk->example->size == 0)
		(void)buf_addstr(walk->example,
				 item->path_size > 0 ? str_of(item->path) : STR("."));
	(void)pthread_mutex_unlock(&walk->lock);
	return true;
}

static void walker_visit_folder(struct walker *walker, const struct reading *reading)
{
	const struct walk_options *options = walker->walk->options;
	const struct walk_item *item = reading->item;
	const char *slash = strrchr(item->path, '/');
	struct walk_entry found = {
		.kind = WALK_FOLDER,
		.folder_fd = reading->fd,
		.name = slash ? slash + 1 : item->path,
		.path = {item->path, item->path_size},
		.depth = item->depth,
		.named = item->named,
		.folders = reading->folders,
		.files = reading->files,
		.ignored = reading->ignored,
	};

	if (options->with_folders)
		options->visit(options->owner, walker, &found);
}

/* Read one folder, or continue with a part of one, and visit its entries. */
static void walker_read(struct walker *walker, const struct walk_item *item)
{
	auto_close int fd = walker_open(walker, item);
	struct reading reading = {.item = item, .fd = fd};
	bool first = true;
	bool end = false;

	if (fd < 0) {
		if (walker_cannot_open(walker, item))
			walker_visit_folder(walker, &reading);
		return;
	}
	memcpy(walker->path + walker->path_at, item->path, item->path_size);
	if (item->path_size > 0)
		walker->path[walker->path_at + item->path_size] = '/';
	walker->folder++;
	if (walker->walk->options->enter != NULL && item->part == NULL)
		walker->walk->options->enter(walker->walk->options->owner, fd,
					     (struct str){item->path, item->path_size},
					     item->ignored);
	if (item->part) {
		reading.rules = rules_ref(item->rules);
		walker_visit_entries(walker, &reading, item->part, item->part_size);
		rules_unref(reading.rules);
		return;
	}
	walker->folders++;
	while (!end && !walker_stopped(walker)) {
		size_t size = walker_fill(walker, fd, &end);

		if (first)
			reading.rules = walker_enter(walker, item, fd, size, end);
		first = false;
		walker_visit_entries(walker, &reading, walker->buffer, size);
	}
	walker_visit_folder(walker, &reading);
	rules_unref(reading.rules);
}

/* The folder in which a walk begins, with the rules that hold around it. */

/*
 * Collect the rules from the workspace down to the folder above BELOW, and ask them
 * about BELOW. There are none where only parts of the workspace may be read.
 */
static void walk_start_rules(struct walk_start *start, struct files *files, const char *below)
{
	struct str path = str_of(below);
	struct file workspace;
	struct err err;
	size_t at = 0;

	file_init(&workspace);
	if (!files_reach(files, files_workspace(files), FILES_FOLDER, &workspace, &err)) {
		file_fini(&workspace);
		return;
	}
	while (at < path.size && !start->ignored) {
		struct str folder = str_part(path, 0, at > 0 ? at - 1 : 0);
		size_t slash = str_find(path, STR("/"), at);
		size_t end = slash == (size_t)-1 ? path.size : slash;
		auto_close int fd = -1;
		char name[PATH_MAX];

		(void)snprintf(name, sizeof(name), "%.*s", (int)folder.size, folder.data);
		fd = fd_open_beneath(workspace.fd, name[0] ? name : ".",
				     O_PATH | O_DIRECTORY);
		if (fd >= 0) {
			struct rules *outer = start->rules;

			start->rules =
				rules_enter_unseen(outer, &start->rules_place, fd, folder);
			rules_unref(outer);
		}
		start->ignored = rules_ignore(start->rules, str_part(path, 0, end), true);
		at = end + 1;
	}
	file_fini(&workspace);
}

bool walk_start_open(struct walk_start *start, const struct call *call, const char *path,
		     struct err *err)
{
	struct files *files = call->files;
	const char *workspace = files_workspace(files);
	struct file folder;
	bool reached;

	*start = (struct walk_start){
		.fd = -1,
		.rules_place = {.files = files, .environment = call->environment},
	};
	buf_init(&start->rules_place.root, PATH_MAX);
	buf_init(&start->shown, PATH_MAX);
	buf_init(&start->rules_path, PATH_MAX);
	file_init(&folder);
	reached = files_reach(files, path, FILES_FOLDER, &folder, err);
	if (reached) {
		const char *real = folder.path.data;

		start->fd = fd_take(&folder.fd);
		(void)buf_adds(&start->shown, files_shown(files, real));
		(void)buf_adds(&start->rules_place.root,
			       path_within(real, workspace) ? workspace : real);
		if (path_within(real, workspace) && strcmp(real, workspace) != 0) {
			(void)buf_adds(&start->rules_path, path_relative(real, workspace));
			walk_start_rules(start, files, start->rules_path.data);
		}
	}
	file_fini(&folder);
	return reached;
}

void walk_start_fini(struct walk_start *start)
{
	fd_close(&start->fd);
	buf_fini(&start->shown);
	buf_fini(&start->rules_path);
	buf_fini(&start->rules_place.root);
	rules_unref(start->rules);
	rules_unref(start->inside);
	start->rules = start->inside = NULL;
}

bool walk_start_ignores(struct walk_start *start, const char *name, bool is_folder)
{
	struct buf path;

	if (start->ignored)
		return true;
	if (!start->has_inside)
		start->inside = rules_enter_unseen(start->rules, &start->rules_place,
						   start->fd, buf_str(&start->rules_path));
	start->has_inside = true;
	buf_init(&path, 2 * PATH_MAX);
	if (start->rules_path.size > 0)
		(void)buf_addf(&path, "%s/", start->rules_path.data);
	(void)buf_adds(&path, name);
	const bool ignored = rules_ignore(start->inside, buf_str(&path), is_folder);
	buf_fini(&path);
	return ignored;
}

void walk_start_name(const struct walk_start *start, struct str path, struct buf *out)
{
	if (!str_is(buf_str(&start->shown), ".")) {
		shown_add(buf_str(&start->shown), out);
		if (path.size > 0 && !str_ends(buf_str(&start->shown), STR("/")))
			(void)buf_addc(out, '/');
	} else if (path.size == 0) {
		(void)buf_addc(out, '.');
	}
	shown_add(path, out);
}
