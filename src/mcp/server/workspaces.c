/* workspaces: making, sweeping and removing the folders of cells. */

#include "mcp/server/workspaces.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	WORK_MODE = 0700,
	SWEEP_LOCK_MS =
		10000, /* another server sweeps meanwhile; later it is left to the next start */
	LINK_LOCK_MS = 2000, /* the same, for a cell: all others wait as well */
	DATE_ROOM = 16,
	TELL_ROOM = 128, /* of a sentence, beside a path */
};

#define OWN_FOLDER ".glovebox"
/* Names of tokens and cells, and parts of templates, do not begin with a dot. */
#define ARCHIVE ".archive"
#define GONE    ".gone-"
#define HOLDER  ".open-"
/* The two kinds of holders: the folders in it go with their cells (`delete`), or stay. */
#define HOLDER_GOES  HOLDER "goes-"
#define HOLDER_STAYS HOLDER "stays-"

/* A thread that removes a folder, which may take long. */
struct remover {
	struct remover *next;
	pthread_t thread;
	char *path;
	atomic_bool done;
};

static void complain(const struct workspaces *spaces, const char *sentence)
{
	if (spaces->complain != NULL)
		spaces->complain(spaces->context, sentence);
}

/* Removing folders beside the loop. */

static void *remove_folder(void *context)
{
	struct remover *remover = context;

	fd_folder_remove(remover->path);
	atomic_store(&remover->done, true);
	return NULL;
}

static void remover_start(struct workspaces *spaces, const char *path)
{
	struct remover *remover = memory_alloc(sizeof(*remover));

	remover->path = memory_copy(path);
	atomic_init(&remover->done, false);
	if (pthread_create(&remover->thread, NULL, remove_folder, remover) != 0) {
		fd_folder_remove(path);
		free(remover->path);
		free(remover);
		return;
	}
	remover->next = spaces->removers;
	spaces->removers = remover;
}

/* Free the removers that are done; ALL: wait for the others. */
static void removers_settle(struct workspaces *spaces, bool all)
{
	for (struct remover **at = &spaces->removers; *at != NULL;) {
		struct remover *remover = *at;

		if (!all && !atomic_load(&remover->done)) {
			at = &remover->next;
			continue;
		}
		(void)pthread_join(remover->thread, NULL);
		*at = remover->next;
		free(remover->path);
		free(remover);
	}
}

void workspaces_settle(struct workspaces *spaces)
{
	removers_settle(spaces, false);
}

/* The workspaces of cells, below the root. */

/*
 * Make the folder RELATIVE below the root, each part that is missing with mode 0700. A part
 * that is a link is refused: somebody else may have made it. PATH gets the whole path, and *FROM
 * (or NULL) the size of the part of it that was there before; it stays when all was there.
 */
static bool make_below(const struct workspaces *spaces, const char *relative,
		       struct buf *path, size_t *from, struct err *err)
{
	struct str rest = str_of(relative);
	auto_close int folder = open(spaces->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool made_one = false;

	(void)buf_adds(path, spaces->root);
	while (folder >= 0 && rest.size > 0) {
		const size_t slash = str_find(rest, STR("/"), 0);
		auto_free char *part = memory_copy_str(str_part(rest, 0, slash));
		const size_t before = path->size;
		int next = -1;

		if (!buf_addf(path, "/%s", part))
			return err_set(err, ENAMETOOLONG,
				       "the path of a workspace is too long");
		const bool made = mkdirat(folder, part, WORK_MODE) == 0;

		if (made && !made_one && from != NULL)
			*from = before;
		made_one = made_one || made;
		if (made || errno == EEXIST)
			next = openat(folder, part,
				      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd_close(&folder);
		folder = next;
		rest = slash == (size_t)-1 ? STR("") : str_part(rest, slash + 1, rest.size);
	}
	return folder >= 0 || err_set(err, errno, "%s: %s", path->data, strerror(errno));
}

/* Remove the folders of PATH that are longer than FROM, as far as nothing is in them. */
static void unmake_below(struct buf *path, size_t from)
{
	while (path->size > from && (rmdir(path->data) == 0 || errno == ENOENT)) {
		while (path->size > from && path->data[path->size - 1] != '/')
			buf_truncate(path, path->size - 1);
		if (path->size > from)
			buf_truncate(path, path->size - 1);
	}
}

/*
 * The folders of cells, which may go with them (`delete`). Each server has a holder, a folder which
 * it keeps locked while it lives, with a link for each cell: its name is the cell's id, and it leads
 * to the folder's place below the root. The name of the holder says whether the folders go. A holder
 * that nobody has locked is that of a server that was killed. While one server sweeps, another
 * one that starts waits, and so does a new cell of one that lives: the sweep has the lock of
 * OWN_FOLDER alone, and the makers of links share it.
 */

/*
 * Lock OWN_FOLDER, HOW as flock(2) has it (LOCK_SH makes it when it is missing). Waits at most
 * WAIT_MS. Returns the descriptor that holds the lock; -1: ERR says why.
 */
static int own_lock(const struct workspaces *spaces, int how, int64_t wait_ms,
		    struct err *err)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	const int64_t until_ms = clock_now_ms() + wait_ms;
	const mode_t makes = how == LOCK_SH ? WORK_MODE : 0;
	auto_close int root = open(spaces->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int own = -1;

	while (root >= 0 && (own = fd_hold(root, OWN_FOLDER, how | LOCK_NB, makes)) < 0 &&
	       errno == EWOULDBLOCK && clock_now_ms() < until_ms)
		(void)nanosleep(&moment, NULL);
	if (own < 0 && errno == EWOULDBLOCK)
		(void)err_set(err, errno,
			      "%s/" OWN_FOLDER ": another server has held its lock for %d s",
			      spaces->root, (int)(wait_ms / 1000));
	else if (own < 0)
		(void)err_set(err, errno, "%s/" OWN_FOLDER ": %s", spaces->root,
			      strerror(errno));
	return own;
}

/* Make our holder in OWN, which is locked, unless there is one. */
static bool holder_open(struct workspaces *spaces, int own, struct err *err)
{
	const bool goes = spaces->settings->on_close == SERVICE_DELETES;
	char name[sizeof(HOLDER_STAYS "XXXXXX")];
	struct buf path;

	if (spaces->lock >= 0)
		return true;
	(void)snprintf(name, sizeof(name), "%sXXXXXX", goes ? HOLDER_GOES : HOLDER_STAYS);
	spaces->lock = fd_hold_new(own, name, LOCK_EX, WORK_MODE);
	if (spaces->lock < 0)
		return err_set(err, errno, "%s/" OWN_FOLDER "/" HOLDER "…: %s",
			       spaces->root, strerror(errno));
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/" OWN_FOLDER "/%s", spaces->root, name);
	spaces->holder = memory_copy(path.data);
	buf_fini(&path);
	return true;
}

void workspaces_close(struct workspaces *spaces)
{
	if (spaces->lock >= 0) {
		/* With a folder that could not be removed it stays, for the next server. */
		(void)rmdir(spaces->holder);
		fd_close(&spaces->lock);
		free(spaces->holder);
		spaces->holder = NULL;
	}
	removers_settle(spaces, true);
}

/*
 * Note the folder RELATIVE of the cell ID, before it is made. A sweep comes before, or finds the
 * link in a holder that is locked.
 */
static bool holder_add(struct workspaces *spaces, const char *id, const char *relative,
		       struct err *err)
{
	auto_close int own = own_lock(spaces, LOCK_SH, LINK_LOCK_MS, err);

	return own >= 0 && holder_open(spaces, own, err) &&
	       (symlinkat(relative, spaces->lock, id) == 0 ||
		err_set(err, errno, "%s: %s", spaces->holder, strerror(errno)));
}

static void holder_remove(const struct workspaces *spaces, const char *id)
{
	if (spaces->lock >= 0)
		(void)unlinkat(spaces->lock, id, 0);
}

static void date_of_today(char date[DATE_ROOM])
{
	const time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm parts;

	if (gmtime_r(&now, &parts) == NULL ||
	    strftime(date, DATE_ROOM, "%Y-%m-%d", &parts) == 0)
		(void)snprintf(date, DATE_ROOM, "undated");
}

bool workspaces_make(struct workspaces *spaces, struct workspace *place,
		     struct service_names names, struct err *err)
{
	char date[DATE_ROOM];
	struct buf relative, own, path;
	bool made;

	*place = (struct workspace){.folder_from = SIZE_MAX, .state_from = SIZE_MAX};
	if (spaces->settings->workspace == NULL)
		return true;
	date_of_today(date);
	names.date = date;
	buf_init(&relative, PATH_MAX);
	buf_init(&own, PATH_MAX);
	buf_init(&path, PATH_MAX);
	made = (service_fill(spaces->settings->workspace, &names, &relative) &&
		buf_addf(&own, OWN_FOLDER "/%s", relative.data)) ||
	       err_set(err, ENAMETOOLONG, "the path of a workspace is too long");
	made = made && holder_add(spaces, names.id, relative.data, err);
	if (made) {
		made = make_below(spaces, relative.data, &path, &place->folder_from, err);
		place->folder = memory_copy(path.data);
		buf_clear(&path);
	}
	if (made) {
		made = make_below(spaces, own.data, &path, &place->state_from, err);
		place->state = memory_copy(path.data);
	}
	buf_fini(&path);
	buf_fini(&own);
	buf_fini(&relative);
	return made;
}

/* Move FROM to the folder FOLDER of the root, as NAME. *TO is its path there. */
static bool move_below(const struct workspaces *spaces, const char *from,
		       const char *folder, const char *name, struct buf *to, struct err *err)
{
	return make_below(spaces, folder, to, NULL, err) &&
	       (buf_addf(to, "/%s", name) ||
		err_set(err, ENAMETOOLONG, "the path of a workspace is too long")) &&
	       (rename(from, to->data) == 0 ||
		err_set(err, errno, "%s: %s", from, strerror(errno)));
}

/* Move FROM away and remove it: it is gone for a new cell at once. */
static bool drop(struct workspaces *spaces, const char *from, struct err *err)
{
	char id[WORKSPACES_ID + 1] = "", name[sizeof(GONE) + WORKSPACES_ID];
	struct buf to;
	bool moved;

	if (!text_random_hex(id, WORKSPACES_ID))
		abort();
	(void)snprintf(name, sizeof(name), GONE "%s", id);
	buf_init(&to, PATH_MAX);
	moved = move_below(spaces, from, OWN_FOLDER, name, &to, err);
	if (moved)
		remover_start(spaces, to.data);
	buf_fini(&to);
	return moved;
}

/*
 * Remove the folders of PATH that were made for a cell, which then could not be made. WHOLE: with
 * what is in them.
 */
static void unmake(struct workspaces *spaces, const char *path, size_t from, bool whole)
{
	struct buf rest;
	struct err err;

	if (path == NULL || from == SIZE_MAX)
		return;
	buf_init(&rest, PATH_MAX);
	(void)buf_adds(&rest, path);
	if (whole && rmdir(path) != 0 && (errno == ENOTEMPTY || errno == EEXIST) &&
	    !drop(spaces, path, &err))
		complain(spaces, err.text);
	unmake_below(&rest, from);
	buf_fini(&rest);
}

/* The cell ID at PLACE could not be made: nothing of it stays. */
static void forget(struct workspaces *spaces, const struct workspace *place, const char *id)
{
	unmake(spaces, place->state, place->state_from, true);
	unmake(spaces, place->folder, place->folder_from,
	       spaces->settings->on_close == SERVICE_DELETES);
	holder_remove(spaces, id);
}

/*
 * The processes of the cell ID at PLACE were never there: remove the folders that were made for it,
 * unless something is in its workspace. True: they are gone.
 */
static bool was_unused(struct workspaces *spaces, const struct workspace *place,
		       const char *id)
{
	if (place->folder_from == SIZE_MAX)
		return false;
	unmake(spaces, place->folder, place->folder_from, false);
	if (access(place->folder, F_OK) == 0)
		return false;
	unmake(spaces, place->state, place->state_from, true);
	holder_remove(spaces, id);
	return true;
}

/* The cell NAMES, whose processes are gone, has left PLACE: do with it as the settings say. */
static void put_away(struct workspaces *spaces, const struct workspace *place,
		     const struct service_names *names)
{
	char date[DATE_ROOM];
	struct buf name, to;
	struct err err;
	bool ok = true;

	buf_init(&name, NAME_MAX);
	buf_init(&to, PATH_MAX);
	date_of_today(date);
	(void)buf_addf(&name, "%s-%s-%s-%s", date, names->token, names->cell, names->id);
	if (spaces->settings->on_close == SERVICE_ARCHIVES)
		ok = move_below(spaces, place->folder, ARCHIVE, name.data, &to, &err);
	else
		ok = drop(spaces, place->folder, &err);
	if (!ok)
		complain(spaces, err.text);
	if (ok && place->state != NULL && !drop(spaces, place->state, &err))
		complain(spaces, err.text);
	if (ok)
		holder_remove(spaces, names->id);
	buf_fini(&to);
	buf_fini(&name);
}

/* Is RELATIVE the place of a workspace, whose parts do not begin with a dot? */
static bool is_place(struct str relative)
{
	for (size_t slash = 0; slash != (size_t)-1;) {
		if (relative.size == 0 || relative.data[0] == '.' || relative.data[0] == '/')
			return false;
		slash = str_find(relative, STR("/"), 0);
		if (slash != (size_t)-1)
			relative = str_part(relative, slash + 1, relative.size);
	}
	return true;
}

/* PLACE gets where the link NAME of HOLDER leads to. False: the link is none of ours. */
static bool read_place(int holder, const char *name, char place[PATH_MAX])
{
	const ssize_t size = readlinkat(holder, name, place, PATH_MAX - 1);

	if (size <= 0 || strlen(name) != WORKSPACES_ID)
		return false;
	place[size] = '\0';
	return is_place(str_of(place));
}

/*
 * The places that are taken: a member for each is true, and one for each folder above it is false.
 * A place is taken by another one that is above or below it, too.
 */
static void take_place(struct value *taken, const char *place)
{
	auto_free char *above = memory_copy(place);

	value_set_boolean(taken, place, true);
	for (char *slash; (slash = strrchr(above, '/')) != NULL;) {
		*slash = '\0';
		if (value_member(taken, above) == NULL)
			value_set_boolean(taken, above, false);
	}
}

static bool is_taken(const struct value *taken, const char *place)
{
	auto_free char *above = memory_copy(place);
	bool found = value_member(taken, place) != NULL;

	for (char *slash; !found && (slash = strrchr(above, '/')) != NULL;) {
		*slash = '\0';
		found = value_is_true(value_member(taken, above));
	}
	return found;
}

/* Say what becomes of the workspace at PLACE, which a server that was killed has left. */
static void tell(const struct workspaces *spaces, const char *place, const char *fate)
{
	struct buf sentence;

	buf_init(&sentence, PATH_MAX + strlen(fate) + TELL_ROOM);
	(void)buf_addf(&sentence,
		       "%s/%s: a server that was killed has left this workspace; %s",
		       spaces->root, place, fate);
	complain(spaces, sentence.data);
	buf_fini(&sentence);
}

/* The workspace at PLACE is not swept, and FATE says why: say so if it is there. */
static void leave_place(const struct workspaces *spaces, const char *place, const char *fate)
{
	auto_close int root = open(spaces->root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root >= 0 && faccessat(root, place, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		tell(spaces, place, fate);
}

/* A look at all holders. */
struct look {
	struct workspaces *spaces;
	int own; /* OWN_FOLDER, which is locked alone */
	/*
	 * The places of servers that live, and those that stay; also the names of the holders of
	 * servers that live, which begin with a dot and so are no places.
	 */
	struct value *taken;
	const char *into; /* below the root: gets the folders that go */
};

/* Move the folders of PLACE away. NAME: of the link to it. */
static bool sweep_place(const struct look *look, const char *place, const char *name,
			struct err *err)
{
	static const char *const above[] = {"", OWN_FOLDER "/"};
	struct buf relative, from, to, as;
	bool ok = true;

	buf_init(&relative, PATH_MAX);
	buf_init(&from, PATH_MAX);
	buf_init(&to, PATH_MAX);
	buf_init(&as, NAME_MAX);
	for (size_t i = 0; ok && i < sizeof(above) / sizeof(above[0]); i++) {
		size_t new = SIZE_MAX;

		buf_clear(&relative);
		buf_clear(&from);
		buf_clear(&to);
		buf_clear(&as);
		(void)buf_addf(&as, "%s-%zu", name, i);
		(void)buf_addf(&relative, "%s%s", above[i], place);
		/* This looks at each part for a link, too. */
		ok = make_below(look->spaces, relative.data, &from, &new, err);
		if (ok && new != SIZE_MAX) {
			unmake_below(&from, new);
		} else if (ok) {
			ok = move_below(look->spaces, from.data, look->into, as.data, &to,
					err);
			if (ok && i == 0)
				tell(look->spaces, place, "it is removed");
		}
	}
	buf_fini(&as);
	buf_fini(&to);
	buf_fini(&from);
	buf_fini(&relative);
	return ok;
}

/* Do what is to be done about the link NAME to PLACE. True: the link is no longer needed. */
static bool sweep_link(const struct look *look, const char *place, const char *name)
{
	struct err err;

	if (look->spaces->settings->on_close != SERVICE_DELETES) {
		leave_place(look->spaces, place,
			    "it stays, because on_close is not \"delete\" now");
	} else if (is_taken(look->taken, place)) {
		leave_place(look->spaces, place,
			    "it stays, because it is also that of another server");
	} else if (!sweep_place(look, place, name, &err)) {
		complain(look->spaces, err.text);
		return false;
	}
	return true;
}

static bool holder_goes(const char *name)
{
	return strncmp(name, HOLDER_GOES, strlen(HOLDER_GOES)) == 0;
}

/*
 * Note the places in the holder NAME that are taken, unless it is ours. False: ERR says why they are
 * not known, and so nothing may be swept.
 */
static bool note_holder(const struct look *look, const char *name, struct err *err)
{
	const char *ours = look->spaces->holder;
	auto_close int holder = -1;
	bool lives;
	DIR *names;

	if (ours != NULL && strcmp(strrchr(ours, '/') + 1, name) == 0)
		return true;
	holder = openat(look->own, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	lives = holder >= 0 && flock(holder, LOCK_EX | LOCK_NB) != 0;
	names = holder >= 0 ? fd_open_names(holder) : NULL;
	/* Its server has ended meanwhile. */
	if (holder < 0 && errno == ENOENT)
		return true;
	if (names == NULL)
		return err_set(err, errno, "%s/" OWN_FOLDER "/%s: %s", look->spaces->root,
			       name, strerror(errno));
	if (lives)
		value_set_boolean(look->taken, name, true);
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		char place[PATH_MAX];

		if ((lives || !holder_goes(name)) && read_place(holder, at->d_name, place))
			take_place(look->taken, place);
	}
	(void)closedir(names);
	return true;
}

/*
 * Sweep the holder NAME, if it is that of a server that was killed before all holders were noted. Of
 * one that was killed since then the places are taken, so they are left to the next start.
 */
static bool sweep_holder(const struct look *look, const char *name, struct err *err)
{
	auto_close int holder = -1;
	bool dead;
	DIR *names;

	if (value_member(look->taken, name) != NULL)
		return true;
	holder = openat(look->own, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dead = holder >= 0 && flock(holder, LOCK_EX | LOCK_NB) == 0;
	names = dead ? fd_open_names(holder) : NULL;
	if (!dead && errno != EWOULDBLOCK && errno != ENOENT)
		return err_set(err, errno, "%s/" OWN_FOLDER "/%s: %s", look->spaces->root,
			       name, strerror(errno));
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		char place[PATH_MAX];

		if (!holder_goes(name) || !read_place(holder, at->d_name, place) ||
		    sweep_link(look, place, at->d_name))
			(void)unlinkat(holder, at->d_name, 0);
	}
	if (names != NULL)
		(void)closedir(names);
	if (dead)
		(void)unlinkat(look->own, name, AT_REMOVEDIR);
	return true;
}

/* Call VISIT for each holder, until it returns false. */
static bool look_at_holders(const struct look *look,
			    bool (*visit)(const struct look *look, const char *name,
					  struct err *err),
			    struct err *err)
{
	DIR *names = fd_open_names(look->own);
	bool ok = names != NULL || err_set(err, errno, "%s/" OWN_FOLDER ": %s",
					   look->spaces->root, strerror(errno));

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     ok && at != NULL; at = readdir(names)) {
		if (strncmp(at->d_name, HOLDER, strlen(HOLDER)) == 0)
			ok = visit(look, at->d_name, err);
	}
	if (names != NULL)
		(void)closedir(names);
	return ok;
}

/*
 * Lock OWN_FOLDER, so that no other server makes a cell, and look whether one has the folder of PLACE,
 * or one above or below it. *OWN gets the lock. False: ERR says why it may not go.
 */
static bool is_ours_alone(struct workspaces *spaces, const struct workspace *place,
			  int *own, struct err *err)
{
	auto_value struct value *taken = value_new_object();
	struct look look = {.spaces = spaces, .taken = taken};

	*own = look.own =
		own_lock(spaces, LOCK_EX, spaces->locked_out ? 0 : LINK_LOCK_MS, err);
	spaces->locked_out = *own < 0 && err->code == EWOULDBLOCK;
	return *own >= 0 && look_at_holders(&look, note_holder, err) &&
	       (!is_taken(taken, place->folder + strlen(spaces->root) + 1) ||
		err_set(err, EEXIST, "it is also that of another server"));
}

void workspaces_leave(struct workspaces *spaces, struct workspace *place,
		      struct service_names names, enum workspace_use use, bool is_shared)
{
	const bool goes =
		place->folder != NULL && !is_shared &&
		(use != WORKSPACE_USED || spaces->settings->on_close != SERVICE_KEEPS);
	auto_close int own = -1;
	struct err err;

	if (!goes) {
		holder_remove(spaces, names.id);
	} else if (!is_ours_alone(spaces, place, &own, &err)) {
		(void)err_while(&err, "%s: the workspace stays", place->folder);
		complain(spaces, err.text);
		/* Where it is not known who has it, it is left to the next start. */
		if (err.code == EEXIST)
			holder_remove(spaces, names.id);
	} else if (use == WORKSPACE_FAILED) {
		forget(spaces, place, names.id);
	} else if (use == WORKSPACE_USED || !was_unused(spaces, place, names.id)) {
		if (spaces->settings->on_close == SERVICE_KEEPS)
			holder_remove(spaces, names.id);
		else
			put_away(spaces, place, &names);
	}
	free(place->folder);
	free(place->state);
	*place = (struct workspace){0};
}

/* Remove the folders in OWN that a service was removing when it was killed. */
static void sweep_gone(struct workspaces *spaces, int own)
{
	DIR *names = fd_open_names(own);
	struct buf path;

	buf_init(&path, PATH_MAX);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		if (strncmp(at->d_name, GONE, strlen(GONE)) != 0)
			continue;
		buf_clear(&path);
		(void)buf_addf(&path, "%s/" OWN_FOLDER "/%s", spaces->root, at->d_name);
		remover_start(spaces, path.data);
	}
	if (names != NULL)
		(void)closedir(names);
	buf_fini(&path);
}

void workspaces_sweep(struct workspaces *spaces)
{
	char id[WORKSPACES_ID + 1] = "", into[sizeof(OWN_FOLDER "/" GONE) + WORKSPACES_ID];
	auto_value struct value *taken = value_new_object();
	struct look look = {.spaces = spaces, .taken = taken, .into = into};
	auto_close int own = -1;
	struct err err;

	if (spaces->settings->workspace == NULL)
		return;
	if (!text_random_hex(id, WORKSPACES_ID))
		abort();
	(void)snprintf(into, sizeof(into), OWN_FOLDER "/" GONE "%s", id);
	own = look.own = own_lock(spaces, LOCK_EX, SWEEP_LOCK_MS, &err);
	if (own < 0 && err.code == ENOENT)
		return;
	if (own < 0 || !look_at_holders(&look, note_holder, &err) ||
	    !look_at_holders(&look, sweep_holder, &err)) {
		(void)err_while(&err,
				"what servers that were killed have left stays until the "
				"next start");
		complain(spaces, err.text);
	}
	if (own >= 0)
		sweep_gone(spaces, own);
}
