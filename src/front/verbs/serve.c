/*
 * glovebox serve: the engine (serve/engine.h) behind standard input and output, or behind a
 * socket. The configuration is read for each cell, so that a change holds for the next one.
 */

#include "agent/delegate.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "build_config.h"
#include "cell/starter.h"
#include "front/agents.h"
#include "front/audit/recording.h"
#include "front/config_file.h"
#include "front/hands/based.h"
#include "front/interrupt.h"
#include "front/review/layered.h"
#include "front/review/writer.h"
#include "front/setup.h"
#include "front/verb.h"
#include "image/devcontainer/prepared.h"
#include "image/snapshot.h"
#include "policy/ceiling.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "serve/engine.h"
#include "session/session.h"
#include "view/review.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	BACKLOG = 1,       /* one caller; another one is refused by the kernel */
	STALE_SECONDS = 2, /* the least age of a socket at which nobody listens */
	FRESH_MODE = 0700, /* of a fresh workspace and its state */
	SWEEP_MAX = ENGINE_CELLS_MAX, /* folders that one start removes */
	SPARES = 3, /* descriptors by which a folder can be made, held and removed */
};

/* The things that all cells of the engine share. */
struct serving {
	const struct options *options;
	struct starter starter;
	int held; /* the locked file of the fresh workspaces; -1: none yet */
	/* Kept for the end of a fresh workspace, when the caller's cells have all others. */
	int spare[SPARES];
	struct recording *recording; /* of all cells; NULL: the configuration wants none */
};

/* The parts of a cell that live as long as its session. */
struct kept {
	struct setup setup;
	struct value *entry, *policy; /* that the setup refers to */
	/* the variables of this process, with the state beside a fresh workspace; or NULL */
	struct snapshot snapshot; /* that it works over, or that is made; its path NULL: none */
	bool copies; /* it only takes the files of another: no steps to undo, no guard */
};

/* The keys that the caller adds to the rights of an agent or policy. */
static struct value *entry_of(const struct engine_wish *wish)
{
	struct value *entry = value_new_object();

	if (value_count(wish->env) > 0)
		value_set(entry, "env", engine_variables(wish->env));
	if (wish->limits != NULL)
		value_set(entry, "limits", value_copy(wish->limits));
	if (wish->base != NULL)
		value_set_text(entry, "cell_base", wish->base);
	return entry;
}

/*
 * The folders of fresh workspaces that an engine leaves behind when it is killed. All that one
 * engine has made hold links to one file, HELD, which the engine has locked. The next engine
 * removes the folders whose file nobody has locked.
 */

#define HELD "held"

/* The name of the state in the folder of a fresh workspace, as in any folder of state. */
#define STATE "glovebox"

/* Append FOLDER/NAME to PATH, which is emptied before. */
static bool below(const char *folder, const char *name, struct buf *path)
{
	buf_clear(path);
	return buf_addf(path, "%s/%s", folder, name);
}

static bool spares_open(struct serving *serving)
{
	bool ok = true;

	for (size_t i = 0; i < SPARES; i++) {
		if (serving->spare[i] < 0)
			serving->spare[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ok = ok && serving->spare[i] >= 0;
	}
	return ok;
}

static void spares_close(struct serving *serving)
{
	for (size_t i = 0; i < SPARES; i++)
		fd_close(&serving->spare[i]);
}

/* Make the file that SERVING holds, in FOLDER. It is locked before it has its name. */
static bool make_held(struct serving *serving, const char *folder, struct buf *path)
{
	auto_free char *early = NULL;

	if (!below(folder, HELD ".new", path))
		return false;
	early = memory_copy(path->data);
	serving->held =
		open(early, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return serving->held >= 0 && flock(serving->held, LOCK_EX | LOCK_NB) == 0 &&
	       below(folder, HELD, path) && rename(early, path->data) == 0;
}

/* Hold FOLDER. One that cannot be held is not removed after a kill, and serves as well. */
static void hold(struct serving *serving, const char *folder)
{
	struct buf path;
	struct stat st;

	buf_init(&path, PATH_MAX);
	if (serving->held >= 0 && below(folder, HELD, &path) &&
	    !fd_link(serving->held, AT_FDCWD, path.data) &&
	    fstat(serving->held, &st) == 0 && st.st_nlink == 0)
		fd_close(&serving->held); /* no folder is left that has it */
	if (serving->held < 0 && !make_held(serving, folder, &path))
		fd_close(&serving->held);
	buf_fini(&path);
}

/* Is the folder FD one of this user's, of an engine that does not run any more? */
static bool is_left(int fd)
{
	auto_close int held =
		openat(fd, HELD, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat folder, file;

	return held >= 0 && fstat(fd, &folder) == 0 && fstat(held, &file) == 0 &&
	       folder.st_uid == geteuid() && file.st_uid == geteuid() &&
	       S_ISREG(file.st_mode) && flock(held, LOCK_EX | LOCK_NB) == 0;
}

/* Remove what killed engines of this user have left. */
static void sweep(void)
{
	static const char prefix[] = VERB_TEMP_PREFIX "serve-";
	const char *parent = verb_temp_parent();
	DIR *names = opendir(parent);
	size_t left = SWEEP_MAX;
	struct buf path;

	buf_init(&path, PATH_MAX);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && left > 0; at = readdir(names)) {
		auto_close int fd = -1;

		if (strncmp(at->d_name, prefix, sizeof(prefix) - 1) != 0)
			continue;
		fd = openat(dirfd(names), at->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || !is_left(fd) || !below(parent, at->d_name, &path))
			continue;
		fd_folder_remove(path.data);
		left--;
	}
	buf_fini(&path);
	if (names != NULL)
		(void)closedir(names);
}

/* Make the folder NAME of a fresh workspace, whose path gets appended to PATH. */
static bool make_part(const struct engine_place *place, const char *name,
		      struct buf *path, struct err *err)
{
	if (!buf_addf(path, "%s/%s", place->fresh, name))
		return err_set(err, ENAMETOOLONG, "TMPDIR: the path is too long");
	return mkdir(path->data, FRESH_MODE) == 0 ||
	       err_set(err, errno, "%s: %s", path->data, strerror(errno));
}

/*
 * Make the folder of a fresh workspace, with the work below it. Its home and what is kept to
 * undo its changes stand beside it, and go with it; they have a folder from the beginning, since
 * no cell is shown one that is there.
 */
static bool make_fresh(struct serving *serving, struct engine_place *place,
		       struct buf *work, struct err *err)
{
	struct buf folder;
	bool made;

	/* A folder that could not be removed again is not made. */
	if (!spares_open(serving))
		return err_set(err, errno, "a fresh workspace: %s", strerror(errno));
	buf_init(&folder, PATH_MAX);
	made = verb_temp_folder("serve", &folder, err);
	if (made) {
		place->fresh = memory_copy(folder.data);
		spares_close(serving);
		hold(serving, place->fresh);
		(void)spares_open(serving);
	}
	buf_clear(&folder);
	made = made && make_part(place, "work", work, err) &&
	       make_part(place, STATE, &folder, err);
	buf_fini(&folder);
	return made;
}

/* The layer of SETUP stays as KEEPS says. False: there is none, or it goes. */
static bool end_layer(struct setup *setup, bool keeps)
{
	struct review *review = setup->review;

	if (review == NULL)
		return false;
	if (keeps)
		return layered_end(setup, false, NULL);
	setup->review = NULL;
	if (review->life >= REVIEW_USED)
		review_remove(review);
	review_close(review);
	return false;
}

static bool forget(struct serving *serving, struct engine_place *place, bool keeps)
{
	struct kept *kept = place->kept;
	struct buf beside;
	bool stays;

	spares_close(serving);
	stays = end_layer(&kept->setup, keeps) || (keeps && place->fresh != NULL);
	setup_fini(&kept->setup);
	value_free(kept->entry);
	value_free(kept->policy);
	snapshot_close(&kept->snapshot);
	free(kept);
	if (!keeps) {
		fd_folder_remove(place->fresh);
	} else if (place->fresh != NULL) {
		buf_init(&beside, PATH_MAX);
		if (below(place->fresh, STATE, &beside))
			fd_folder_remove(beside.data);
		if (below(place->fresh, HELD, &beside))
			(void)unlink(beside.data);
		buf_fini(&beside);
	}
	free(place->fresh);
	*place = (struct engine_place){0};
	(void)spares_open(serving);
	return stays;
}

static bool closed(void *context, struct engine_place *place, bool keeps)
{
	return forget(context, place, keeps);
}

/*
 * Lay a layer over the workspace of KEPT, in which the steps of the session stand as well,
 * where WISH or the agent's `review` wants one.
 */
static bool lay(struct kept *kept, const struct engine_wish *wish, struct err *err)
{
	if (!wish->layered && wish->snapshot == NULL &&
	    (wish->workspace == NULL || !kept->setup.policy->review))
		return true;
	if (layered_go_on(&kept->setup, NULL, false, "glovebox serve", err))
		return true;
	if (err->code == EOPNOTSUPP)
		err->code = ECHILD;
	return false;
}

/* The folder of all snapshots of this user. */
static bool find_snapshots(struct buf *folder, struct err *err)
{
	return snapshot_place(getenv("XDG_DATA_HOME"), getenv("HOME"), folder) ||
	       err_set(err, ENOENT, "snapshots: set HOME or XDG_DATA_HOME");
}

/* Open the snapshot NAME for KEPT; its files are the workspace WORK. */
static bool take_snapshot(struct kept *kept, const char *name, struct buf *work,
			  struct err *err)
{
	struct buf folder;
	bool ok;

	buf_init(&folder, PATH_MAX);
	ok = find_snapshots(&folder, err) &&
	     snapshot_open(folder.data, name, &kept->snapshot, err) &&
	     buf_adds(work, kept->snapshot.tree);
	buf_fini(&folder);
	return ok;
}

/* The session is open, so that the layer of SETUP has its place. */
static void tell_layer(const struct setup *setup, struct engine_place *place)
{
	const struct review *review = setup->review;

	if (review == NULL)
		return;
	place->layer = review->meta.id;
	place->layer_lies = review_has_copy(review) ? "copy"
			    : review->meta.memory   ? "memory"
						    : "disk";
}

static bool open_session(struct serving *serving, const struct engine_wish *wish,
			 struct loop *loop, struct engine_place *place, struct err *err)
{
	struct kept *kept = place->kept;
	struct session_options wanted = {
		.loop = loop,
		.starter = &serving->starter,
		.ready_workers = wish->ready > 0 ? wish->ready : 1,
		.cancel_fd = -1,
		.dormant = wish->ready == 0,
		.unguarded = kept->copies,
		.counting = COUNTING_CELL,
	};
	struct setup_flags flags = {
		.agent = wish->agent != NULL ? wish->agent : POLICY_NAME_DEFAULT,
		.within = wish->within,
		.entry = kept->entry,
		.policy = kept->policy,
		.policy_file = kept->policy != NULL ? "policy" : NULL,
		.quiet_plugins = true,
		.recording = serving->recording,
	};
	struct buf work, root;
	bool opened;

	buf_init(&root, PATH_MAX);
	buf_init(&work, PATH_MAX);
	opened = wish->snapshot != NULL ? take_snapshot(kept, wish->snapshot, &work, err)
		 : wish->workspace != NULL ? buf_adds(&work, wish->workspace)
					   : make_fresh(serving, place, &work, err);
	flags.workspace = work.data;
	opened = opened && setup_init(&kept->setup, serving->options, &flags, err);
	/* In place of the person's state. */
	if (opened && place->fresh != NULL)
		setup_keep_state(&kept->setup, place->fresh);
	wanted.fresh = place->fresh != NULL;
	kept->setup.fresh_workspace = place->fresh != NULL && wish->at == NULL;
	if (opened)
		setup_set_at(&kept->setup, wish->at);
	wanted.caller_environment = kept->setup.environment;
	if (opened && kept->copies) {
		free(kept->setup.undo_folder);
		kept->setup.undo_folder = NULL;
	}
	/* A snapshot that has a root stands on it, unless the caller names another. */
	if (opened && kept->snapshot.base != NULL && wish->snapshot != NULL &&
	    kept->setup.policy->cell_base == NULL && wish->base == NULL) {
		(void)buf_addf(&root, SNAPSHOT_WORD "%s", wish->snapshot);
		setup_set_base(&kept->setup, root.data);
	}
	opened = opened && lay(kept, wish, err);
	opened = opened && setup_session_err(&kept->setup, &wanted, &place->session, err);
	buf_fini(&work);
	buf_fini(&root);
	if (!opened)
		return false;
	tell_layer(&kept->setup, place);
	if (wish->snapshot != NULL)
		place->snapshot = kept->snapshot.digest;
	if (kept->setup.fresh_workspace && kept->setup.based != NULL)
		place->folder = kept->setup.based->base.workdir;
	place->tools = setup_tools(&kept->setup);
	place->wall_s = kept->setup.wall_s;
	return true;
}

static bool open_place(void *context, const struct engine_wish *wish, struct loop *loop,
		       struct engine_place *place, struct err *err)
{
	struct kept *kept = memory_alloc(sizeof(*kept));

	kept->entry = entry_of(wish);
	kept->policy = wish->policy != NULL ? value_copy(wish->policy) : NULL;
	place->kept = kept;
	if ((kept->policy == NULL || config_check_entry(kept->policy, "policy", err)) &&
	    config_check_entry(kept->entry, NULL, err) &&
	    open_session(context, wish, loop, place, err))
		return true;
	if (err->code == CEILING_REFUSED)
		err->code = EACCES;
	(void)forget(context, place, false);
	return false;
}

/* Snapshots. */

static bool freeze(void *context, const char *name, const char *from, struct loop *loop,
		   struct engine_place *place, struct err *err)
{
	struct kept *kept = memory_alloc(sizeof(*kept));
	struct engine_wish wish = {0};
	struct buf folder;
	bool ok;

	place->kept = kept;
	kept->copies = true;
	kept->entry = value_new_object();
	kept->policy = value_new_object();
	value_set(kept->policy, "write", value_new_texts((const char *const[]){".", NULL}));
	buf_init(&folder, PATH_MAX);
	/* Cells with more rights than the caller's take such a snapshot by its name. */
	ok = !prepared_is_name(name) ||
	     err_set(err, EINVAL,
		     "the name %s is one for the commands of a devcontainer; choose another name",
		     name);
	ok = ok && find_snapshots(&folder, err) &&
	     snapshot_begin(folder.data, name, &kept->snapshot, err);
	buf_fini(&folder);
	if (ok) {
		kept->snapshot.from = memory_copy(from);
		wish.workspace = kept->snapshot.tree;
		ok = open_session(context, &wish, loop, place, err);
	}
	if (!ok)
		(void)forget(context, place, false);
	return ok;
}

static bool frozen(void *context, struct engine_place *place,
		   const struct engine_snapshot *made, int *waits, struct err *err)
{
	struct kept *kept = place->kept;
	struct snapshot *snapshot = &kept->snapshot;
	bool ok = true;

	if (made != NULL) {
		*waits = -1;
		if (snapshot_unpacks(snapshot) < 0) {
			(void)snprintf(snapshot->digest, sizeof(snapshot->digest), "%s",
				       made->digest);
			snapshot->entries = made->entries;
			snapshot->bytes = made->bytes;
			ok = made->layer < 0 || snapshot_add_layer(snapshot, made->layer,
								   made->base->lasting,
								   made->base->mark, err);
			*waits = ok ? snapshot_unpacks(snapshot) : -1;
			if (*waits >= 0)
				return true;
		}
		ok = ok && snapshot_finish(snapshot, err);
	}
	(void)forget(context, place, false);
	return ok;
}

/* Runs of our own agent. */

enum { LAYER_LINE_MAX = 4 << 20 };

struct engine_run {
	struct engine_run_wish wish; /* its functions and their context */
	struct setup *setup;         /* of the cell */
	struct session *session;
	struct delegate *delegate;
	char layer[REVIEW_ID]; /* in which it works, over that of the cell; "": it has none */
	bool asked;            /* to end */
	bool ended;
};

static void run_event(void *context, struct value *child)
{
	const struct engine_run *run = context;

	run->wish.event(run->wish.context, child);
}

/* The agent has done its work in a layer of its own: land that in the layer of the cell. */
static void land_run(const struct engine_run *run, struct value *told)
{
	auto_value struct value *landed = NULL;
	struct buf line;
	struct err err;

	buf_init(&line, LAYER_LINE_MAX);
	if (writer_land_in(run->session, run->setup->workspace, run->layer, &line) &&
	    value_parse(buf_str(&line), 0, &landed, &err))
		value_set(told, "landed", value_ref(landed));
	session_take_landed(run->session);
	buf_fini(&line);
}

/* Tell the engine how RUN has ended. */
static void tell_run(struct engine_run *run, const char *fault)
{
	const struct delegate_report *report = delegate_report_of(run->delegate);
	struct value *told = value_new_object();

	run->ended = true;
	value_set_text(told, "session", report->session);
	value_set_str(told, "text", buf_str(&report->said));
	value_set_integer(told, "answers", (int64_t)report->answers);
	if (report->ended != NULL)
		value_set(told, "ended", value_ref(report->ended));
	if (fault != NULL && report->ended == NULL)
		value_set_text(told, "failed",
			       report->notice.size > 0 ? report->notice.data : fault);
	if (delegate_has_left(run->delegate))
		land_run(run, told);
	else if (run->layer[0] != '\0' && writer_is_left(run->setup->workspace, run->layer))
		value_set_text(told, "left", run->layer);
	run->wish.ended(run->wish.context, told);
}

static void run_ended(void *context, struct delegate *delegate)
{
	tell_run(context, delegate_fault(delegate));
}

static struct value *run_request(const struct engine_run *run)
{
	const struct engine_run_wish *wish = &run->wish;
	const struct setup *setup = run->setup;
	struct value *request = orchestrate_request(setup, NULL);

	/* A policy has its rights in the name of no agent. */
	value_set_text(request, "agent",
		       wish->agent != NULL          ? wish->agent
		       : setup->policy_file != NULL ? POLICY_NAME_DEFAULT
						    : setup->agent);
	value_set_text(request, "task", wish->prompt);
	if (wish->model != NULL)
		value_set_text(request, "asked_model", wish->model);
	/* A program would take the recording for the work of a model. */
	value_set_boolean(request, "named_model", true);
	/* Those that work for it have the same pipe. */
	if (wish->pace != NULL)
		value_set_text(value_member(request, "environment"), "GLOVEBOX_PACE",
			       wish->pace);
	if (wish->budget != NULL)
		value_set(request, "budget", value_copy(wish->budget));
	value_set(request, "bounds", value_copy(setup->entries));
	if (setup->review != NULL) {
		value_set_text(request, "layer", run->layer);
		value_set(request, "over", layered_over(setup));
	}
	return request;
}

static struct engine_run *run_begin(void *context, struct engine_place *place,
				    const struct engine_run_wish *wish, struct loop *loop,
				    struct err *err)
{
	struct kept *kept = place->kept;
	struct engine_run *run = memory_alloc(sizeof(*run));
	auto_value struct value *request = NULL;
	bool ok;

	(void)context;
	run->wish = *wish;
	run->setup = &kept->setup;
	run->session = place->session;
	ok = kept->setup.review == NULL || review_new_id(run->layer) ||
	     err_set(err, errno, "no random number: %s", strerror(errno));
	request = run_request(run);
	const struct delegate_options options = {
		.loop = loop,
		.request = request,
		.show = run_event,
		.ended = run_ended,
		.context = run,
	};
	if (!ok || !delegate_start(&options, &run->delegate, err)) {
		free(run);
		return NULL;
	}
	/* Nobody works beside it. */
	if (run->layer[0] != '\0')
		delegate_tell_to_land(run->delegate);
	/* The texts of the caller's request are gone from now on. */
	run->wish.prompt = run->wish.model = run->wish.agent = run->wish.pace = NULL;
	run->wish.budget = NULL;
	return run;
}

static void run_end(struct engine_run *run)
{
	if (run->ended)
		return;
	if (!run->asked) {
		delegate_ask_to_end(run->delegate);
		run->asked = true;
		return;
	}
	delegate_end(run->delegate, 0);
	tell_run(run, "it was killed");
}

static void run_free(struct engine_run *run)
{
	delegate_free(run->delegate);
	free(run);
}

/* The caller at a socket. */

/*
 * Does nobody listen at ADDRESS any more? Such a socket of this user's is left by an engine that was
 * killed. Then it is removed, and true. FOLDER is the folder that it is in. A new socket may be
 * one of an engine that is about to listen.
 */
static bool clear_stale(const struct sockaddr_un *address, int folder)
{
	auto_close int fd = -1;
	struct stat st;

	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    st.st_uid != geteuid() || time(NULL) - st.st_ctime < STALE_SECONDS)
		return false;
	/* Two engines that find it take turns, so that none removes the other's new one. */
	if (flock(folder, LOCK_EX | LOCK_NB) < 0)
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 &&
	       connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	       errno == ECONNREFUSED && unlink(address->sun_path) == 0;
}

/* Bind FD to ADDRESS; a stale socket that is there is replaced. */
static bool bind_at(int fd, const struct sockaddr_un *address)
{
	const char *slash = strrchr(address->sun_path, '/');
	const size_t length = slash != NULL ? (size_t)(slash - address->sun_path) + 1 : 0;
	char name[sizeof(address->sun_path)] = ".";
	auto_close int folder = -1;
	bool bound;

	memcpy(name, address->sun_path, length);
	if (length > 0)
		name[length] = '\0';
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return true;
	if (errno != EADDRINUSE)
		return false;
	folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bound = folder >= 0 && clear_stale(address, folder) &&
		bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
	if (!bound)
		errno = EADDRINUSE;
	return bound;
}

/* Listen at PATH, where nobody but this user can connect; ST is the status of the socket. */
static bool listen_at(const char *path, int *listener, struct stat *st, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const mode_t before = umask(0177);
	bool listens;

	if (strlen(path) >= sizeof(address.sun_path)) {
		(void)umask(before);
		return err_set(err, ENAMETOOLONG,
			       "serve: --unix %s: a socket's path has at "
			       "most %zu bytes",
			       path, sizeof(address.sun_path) - 1);
	}
	(void)strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	*listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	listens = *listener >= 0 && bind_at(*listener, &address) &&
		  lstat(path, st) == 0 && listen(*listener, BACKLOG) == 0;
	(void)umask(before);
	return listens ||
	       err_set(err, errno, "serve: --unix %s: %s%s", path, strerror(errno),
		       errno == EADDRINUSE ? "; name another path, or remove what is there"
					   : "");
}

/* Remove the socket with the status ST from PATH, unless somebody has put another one there. */
static void unlisten(const char *path, const struct stat *st)
{
	struct stat now;

	if (lstat(path, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino)
		(void)unlink(path);
}

/* Wait for the caller at LISTENER; -1: STOP_FD was readable first, or ERR says why not. */
static int wait_for_caller(int listener, int stop_fd, struct err *err)
{
	struct pollfd waiting[] = {{.fd = listener, .events = POLLIN},
				   {.fd = stop_fd, .events = POLLIN}};
	int fd = -1;

	while (poll(waiting, 2, -1) < 0 && errno == EINTR)
		;
	if (waiting[1].revents != 0)
		return -1;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		(void)err_set(err, errno, "serve: accept: %s", strerror(errno));
	return fd;
}

/* Open what CONFIG wants of records, which all cells share. */
static bool record(struct serving *serving, const struct config *config, struct err *err)
{
	struct recorded recorded;
	bool ok;

	recorded_read(config_value(config, "service"), &recorded);
	ok = !recorded_is_wanted(&recorded) ||
	     recording_open(&recorded, true, &serving->recording, err);
	recorded_fini(&recorded);
	return ok;
}

static int serve(struct engine_options *engine, struct interrupt *interrupt)
{
	struct err err = {0};
	int code = CODE_DONE;

	engine->stop_fd = interrupt_fd(interrupt);
	if (!engine_run(engine, &err))
		code = verb_complain(CODE_FAILED, "serve: %s", err.text);
	if (code == CODE_DONE && interrupt_signal(interrupt) != 0)
		code = CODE_SIGNAL + interrupt_signal(interrupt);
	return code;
}

static int serve_unix(struct engine_options *engine, struct interrupt *interrupt,
		      const char *path)
{
	auto_close int listener = -1, caller = -1;
	struct err err = {0};
	struct stat st;

	if (!listen_at(path, &listener, &st, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	caller = wait_for_caller(listener, interrupt_fd(interrupt), &err);
	unlisten(path, &st);
	fd_close(&listener);
	if (err.text[0] != '\0')
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (caller < 0)
		return CODE_SIGNAL + interrupt_signal(interrupt);
	engine->input = engine->output = caller;
	return serve(engine, interrupt);
}

static int serve_verb(const struct options *options, FILE *out)
{
	const uint64_t cells = options_count(options, "max-cells", ENGINE_CELLS);
	struct serving serving = {.options = options, .held = -1, .spare = {-1, -1, -1}};
	struct engine_options engine = {
		.host = {open_place, closed, freeze, frozen, run_begin, run_end, run_free,
			 &serving},
		.program = "glovebox " GLOVEBOX_VERSION,
		.max_cells = (size_t)cells,
		.input = STDIN_FILENO,
		.output = STDOUT_FILENO,
	};
	const char *path = options_text(options, "unix");
	auto_config struct config *config = NULL;
	struct interrupt *interrupt = NULL;
	struct err err = {0};
	int code;

	(void)out;
	if (cells > ENGINE_CELLS_MAX)
		return verb_complain(CODE_USAGE, "serve: --max-cells: at most %d",
				     ENGINE_CELLS_MAX);
	if (path != NULL && options_given(options, "stdio"))
		return verb_complain(CODE_USAGE,
				     "serve: --stdio and --unix exclude each other");
	/* No cell could be opened with it. */
	if (!config_file_load(options_text(options, "config"), &config, &err))
		return verb_complain(setup_code(&err), "serve: %s", err.text);
	if (!record(&serving, config, &err))
		return verb_complain(CODE_FAILED, "serve: %s", err.text);
	sweep();
	if (!interrupt_open(&interrupt, &err) || !interrupt_start(interrupt, &err)) {
		interrupt_close(interrupt);
		recording_close(serving.recording);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	if (path == NULL && isatty(STDIN_FILENO))
		(void)fputs("glovebox: speaking JSON-RPC on standard input and output; see: "
			    "glovebox serve --help\n",
			    stderr);
	starter_init(&serving.starter, NULL);
	code = path != NULL ? serve_unix(&engine, interrupt, path)
			    : serve(&engine, interrupt);
	starter_fini(&serving.starter);
	interrupt_close(interrupt);
	recording_close(serving.recording);
	spares_close(&serving);
	fd_close(&serving.held);
	return code;
}

static const struct option_row serve_options[] = {
	{"stdio", 0, OPTION_FLAG, NULL,
	 "the caller is at standard input and output (the default)"},
	{"unix", 0, OPTION_TEXT, "PATH", "wait for the caller at a new socket PATH"},
	{"max-cells", 0, OPTION_COUNT, "N",
	 "cells at the same time (default: 1024; at most 4096)"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const char serve_help[] =
	"Serve many cells to one program, which opens and closes them, runs programs, reads\n"
	"and writes files and calls tools in them: JSON-RPC 2.0, one message a line\n"
	"(docs/serve.md has the methods). `hello` comes first.\n\n"
	"Ends at the end of its input, with its parent, or by TERM, INT, HUP; within two\n"
	"seconds nothing that the caller started runs any more. Another machine:\n"
	"ssh HOST glovebox serve.";

const struct verb verb_serve = {
	.name = "serve",
	.summary = "many cells for one program: JSON-RPC on standard input and output",
	.arguments = "",
	.help = serve_help,
	.example = "  glovebox serve --stdio\n"
		   "  glovebox serve --unix \"$XDG_RUNTIME_DIR/engine\" --max-cells 64",
	.options = serve_options,
	.run = serve_verb,
};
