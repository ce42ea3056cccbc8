/* unpacked: one process for each layer, and the folder that it fills. */

#include "image/unpacked.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "image/layout.h"
#include "image/unpack.h"
#include "process/role.h"
#include "sandbox/outside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNPACK_ROLE "glovebox-unpack"
#define ABOUT       "about.json"
#define TREE        "tree"

enum {
	DIGEST_KIND = sizeof("sha256:") - 1,
	ROLE_ARGUMENTS = 5,
	PROGRESS_MS = 250, /* between two looks at the process */
	ABOUT_BYTES_MAX = 64 << 10,
	RANDOM_DIGITS = 12,
	TREE_S = 3600,     /* for a tree to be unpacked */
	ROLE_FAILED = 125, /* exit code: `err` of the shared memory says why */
};

/*
 * Shared by the front and the process. The front trusts none of it but the digests, which it
 * compares with those of the image.
 */
struct shared {
	struct unpack unpack;
	struct err err;
};

static const struct field about_fields[] = {
	FIELD(struct maker_counts, entries),
	FIELD(struct maker_counts, bytes),
	FIELD(struct maker_counts, files),
	FIELD(struct maker_counts, folders),
	FIELD(struct maker_counts, links),
	FIELD(struct maker_counts, removed),
	FIELD(struct maker_counts, devices),
	FIELD(struct maker_counts, set_id),
	FIELD(struct maker_counts, owners),
	FIELD(struct maker_counts, attributes),
	FIELD(struct maker_counts, outside),
	FIELD(struct maker_counts, across),
	{0},
};

/* The process. */

static int unpack_inside(void *context)
{
	struct shared *shared = context;

	shared->unpack.archive = OUTSIDE_FILE;
	shared->unpack.folder = OUTSIDE_FOLDER;
	return unpack_run(&shared->unpack, &shared->err) ? 0 : ROLE_FAILED;
}

static struct shared *map_shared(int fd)
{
	void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, 0);

	return at != MAP_FAILED ? at : NULL;
}

void unpacked_role(int argc, char **argv)
{
	struct pollfd front;
	struct shared *shared;
	int code;

	if (argc != ROLE_ARGUMENTS || strcmp(argv[0], UNPACK_ROLE) != 0)
		return;
	(void)prctl(PR_SET_NAME, UNPACK_ROLE);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	front = (struct pollfd){.fd = fd_of_text(argv[4]), .events = POLLIN};
	shared = map_shared(fd_of_text(argv[3]));
	if (shared == NULL || poll(&front, 1, 0) != 0)
		_exit(1);
	const struct outside_folder walls = {
		.work = OUTSIDE_BUILDS,
		.folder = fd_of_text(argv[2]),
		.file = fd_of_text(argv[1]),
	};
	if (!unpack_load(&shared->err))
		_exit(ROLE_FAILED);
	code = outside_run(&walls, unpack_inside, shared);
	if (code != 0 && code != ROLE_FAILED)
		(void)err_set(&shared->err, code, "the process that unpacks %s: %s",
			      code == EPERM ? "could not lock itself in" : "ended early",
			      strerror(code));
	_exit(code != 0 ? ROLE_FAILED : 0);
}

/* The front. */

struct work {
	struct unpacked *unpacked;
	struct buf aside, final; /* paths of the folder, until and from its rename */
	int tree, blob, memory;
	int64_t due_ms; /* when the process is ended; CLOCK_NEVER */
	struct shared *shared;
};

static bool start(const struct work *work, int *pidfd, struct err *err)
{
	char numbers[ROLE_ARGUMENTS - 1][ROLE_ARGUMENT];
	auto_close int self = -1;

	if (!role_self(&self, err))
		return false;
	const int fds[] = {work->blob, work->tree, work->memory, self};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
	char name[] = UNPACK_ROLE;
	char *argv[] = {name, numbers[0], numbers[1], numbers[2], numbers[3], NULL};
	const struct role role = {.argv = argv, .fds = fds, .fd_count = 4};
	return role_start(&role, pidfd, err);
}

/* Copy the counts, which another process writes at the same time. */
static struct maker_counts counts_now(const struct work *work)
{
	struct maker_counts counts;

	memcpy(&counts, &work->shared->unpack.counts, sizeof(counts));
	return counts;
}

/* *PIDFD becomes -1 when the process took too long. */
static bool wait_for(const struct work *work, int *pidfd, struct err *err)
{
	const struct unpacked *unpacked = work->unpacked;
	struct pollfd end = {.fd = *pidfd, .events = POLLIN};
	siginfo_t info = {0};

	while (poll(&end, 1, PROGRESS_MS) == 0 || (end.revents & POLLIN) == 0) {
		const struct maker_counts counts = counts_now(work);

		if (unpacked->progress != NULL)
			unpacked->progress(unpacked->context, work->shared->unpack.read,
					   &counts);
		if (clock_now_ms() >= work->due_ms) {
			role_end(pidfd, true);
			return err_set(err, ETIMEDOUT, "it did not end within %d seconds",
				       TREE_S);
		}
	}
	while (waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	if (info.si_code == CLD_EXITED && info.si_status == 0)
		return true;
	work->shared->err.text[ERR_TEXT_MAX - 1] = '\0';
	if (info.si_code == CLD_EXITED && info.si_status == ROLE_FAILED) {
		struct buf said;

		buf_init(&said, ERR_TEXT_MAX);
		text_add_name(&said, str_of(work->shared->err.text));
		(void)err_set(err, work->shared->err.code, "%s", said.data);
		buf_fini(&said);
		return false;
	}
	return err_set(err, EIO, "the process that unpacks was killed");
}

/* Are the bytes those of the image? */
static bool check_digests(const struct work *work, struct err *err)
{
	const struct unpack *unpack = &work->shared->unpack;
	const struct unpacked *unpacked = work->unpacked;

	if (memcmp(unpack->digest, unpacked->layer->digest + DIGEST_KIND, HASH_HEX) != 0 ||
	    unpack->read != unpacked->layer->size)
		return err_set(err, EBADMSG,
			       "its bytes are not those of its digest; remove the blob and pull "
			       "again");
	if (memcmp(unpack->plain_digest, unpacked->diff + DIGEST_KIND, HASH_HEX) != 0)
		return err_set(err, EBADMSG,
			       "its decompressed bytes are not those that the image names (%s)",
			       unpacked->diff);
	return true;
}

static bool write_about(const struct work *work, struct err *err)
{
	const struct maker_counts counts = counts_now(work);
	auto_value struct value *object = fields_print(about_fields, &counts);
	struct buf path, text;
	bool written;

	work->unpacked->counts = counts;
	buf_init(&path, PATH_MAX);
	buf_init(&text, ABOUT_BYTES_MAX);
	(void)buf_addf(&path, "%s/" ABOUT, work->aside.data);
	(void)value_print(object, VALUE_PRETTY, &text);
	written = fd_replace_file(path.data, buf_str(&text), err);
	buf_fini(&path);
	buf_fini(&text);
	return written;
}

/* A power cut must not leave a layer whose files are empty. */
static bool settle(const struct work *work, struct err *err)
{
	if (syncfs(work->tree) < 0 || rename(work->aside.data, work->final.data) < 0)
		return err_set(err, errno, "%s: %s", work->final.data, strerror(errno));
	return true;
}

/* Make the memory that the front and the process share. */
static bool share(struct work *work, struct err *err)
{
	static const struct shared empty;

	if (!fd_memory_file(UNPACK_ROLE,
			    (struct str){(const char *)(const void *)&empty, sizeof(empty)},
			    &work->memory, err))
		return false;
	work->shared = map_shared(work->memory);
	if (work->shared == NULL)
		return err_set(err, errno, "memory of the process that unpacks: %s",
			       strerror(errno));
	work->shared->unpack.rules = MAKER_LAYER;
	return true;
}

static bool prepare(struct work *work, struct err *err)
{
	const struct unpacked *unpacked = work->unpacked;
	char digits[RANDOM_DIGITS + 1];
	struct buf tree;

	work->blob = layout_open_blob(unpacked->layout, unpacked->layer->digest, err);
	if (work->blob < 0)
		return false;
	(void)text_random_hex(digits, RANDOM_DIGITS);
	(void)buf_addf(&work->aside, "%s/layers/.%s.%s", unpacked->store->path,
		       unpacked->diff + DIGEST_KIND, digits);
	buf_init(&tree, PATH_MAX);
	(void)buf_addf(&tree, "%s/" TREE, work->aside.data);
	if (mkdir(work->aside.data, S_IRWXU) == 0 &&
	    mkdir(tree.data, S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH) == 0)
		work->tree =
			open(tree.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Whatever the umask says: a cell of root is another user. */
	if (work->tree < 0 ||
	    fchmod(work->tree, S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH) < 0)
		(void)err_set(err, errno, "%s: %s", tree.data, strerror(errno));
	buf_fini(&tree);
	return work->tree >= 0 && share(work, err);
}

static bool unpack_one(struct work *work, struct err *err)
{
	auto_close int pidfd = -1;

	return prepare(work, err) && start(work, &pidfd, err) &&
	       wait_for(work, &pidfd, err) && check_digests(work, err) &&
	       write_about(work, err) && settle(work, err);
}

/* Remove a blob of the store that is damaged: skopeo fetches none whose name is there. */
static void remove_torn(const struct work *work, struct err *err)
{
	const struct unpacked *unpacked = work->unpacked;
	const char *digest = unpacked->layer->digest;

	if (unpacked->layout != unpacked->store->folder || work->blob < 0 ||
	    !layout_is_torn(work->blob, digest))
		return;
	auto_close int folder = fd_open_beneath(unpacked->store->folder, "blobs/sha256",
						O_RDONLY | O_DIRECTORY);
	if (folder >= 0 && unlinkat(folder, digest + DIGEST_KIND, 0) == 0)
		(void)err_set(err, EBADMSG,
			      "its bytes in the cache were damaged and are removed; pull "
			      "again");
}

/* Remove what killed processes have left of the layer DIFF, whose lock we have. */
static void remove_leftovers(const struct image_store *store, const char *diff)
{
	auto_close int folder =
		openat(store->folder, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = folder >= 0 ? fd_open_names(folder) : NULL;
	struct buf path;

	buf_init(&path, PATH_MAX);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		if (at->d_name[0] != '.' ||
		    strncmp(at->d_name + 1, diff + DIGEST_KIND, HASH_HEX) != 0)
			continue;
		buf_clear(&path);
		(void)buf_addf(&path, "%s/layers/%s", store->path, at->d_name);
		fd_folder_remove(path.data);
	}
	if (names != NULL)
		(void)closedir(names);
	buf_fini(&path);
}

struct unpacked_tree {
	struct unpacked alone;
	struct work work;
	int pidfd;
};

struct unpacked_tree *unpacked_tree_begin(int archive, int folder, struct err *err)
{
	struct unpacked_tree *tree = memory_alloc(sizeof(*tree));

	tree->pidfd = -1;
	tree->work = (struct work){.unpacked = &tree->alone,
				   .tree = folder,
				   .blob = archive,
				   .memory = -1,
				   .due_ms = clock_deadline(TREE_S)};
	if (share(&tree->work, err) && start(&tree->work, &tree->pidfd, err))
		return tree;
	unpacked_tree_stop(tree);
	return NULL;
}

int unpacked_tree_fd(const struct unpacked_tree *tree)
{
	return tree->pidfd;
}

bool unpacked_tree_end(struct unpacked_tree *take_tree, struct maker_counts *counts,
		       char digest[HASH_HEX + 1], struct err *err)
{
	const bool made = wait_for(&take_tree->work, &take_tree->pidfd, err);

	if (made) {
		*counts = counts_now(&take_tree->work);
		(void)snprintf(digest, HASH_HEX + 1, "%.*s", HASH_HEX,
			       take_tree->work.shared->unpack.plain_digest);
	}
	/* It was waited for. */
	fd_close(&take_tree->pidfd);
	unpacked_tree_stop(take_tree);
	return made;
}

void unpacked_tree_stop(struct unpacked_tree *take_tree)
{
	if (take_tree == NULL)
		return;
	role_end(&take_tree->pidfd, true);
	if (take_tree->work.shared != NULL)
		(void)munmap(take_tree->work.shared, sizeof(*take_tree->work.shared));
	fd_close(&take_tree->work.memory);
	free(take_tree);
}

bool unpacked_look(const struct image_store *store, const char *diff,
		   struct maker_counts *counts)
{
	char name[sizeof("layers//" ABOUT) + HASH_HEX];
	auto_value struct value *object = NULL;
	struct buf text;
	bool there;

	*counts = (struct maker_counts){0};
	(void)snprintf(name, sizeof(name), "layers/%.*s/" ABOUT, HASH_HEX,
		       diff + DIGEST_KIND);
	auto_close int fd = openat(store->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	buf_init(&text, ABOUT_BYTES_MAX);
	there = fd_read_all(fd, &text, name, NULL) &&
		value_parse(buf_str(&text), 0, &object, NULL) &&
		fields_read(object, about_fields, counts, NULL, NULL);
	buf_fini(&text);
	return there;
}

bool unpacked_make(struct unpacked *unpacked, struct err *err)
{
	struct work work = {.unpacked = unpacked,
			    .tree = -1,
			    .blob = -1,
			    .memory = -1,
			    .due_ms = CLOCK_NEVER};
	char name[sizeof("layer-") + HASH_HEX];
	bool waited, made;

	unpacked->was_there = true;
	if (unpacked_look(unpacked->store, unpacked->diff, &unpacked->counts))
		return true;
	(void)snprintf(name, sizeof(name), "layer-%.*s", HASH_HEX,
		       unpacked->diff + DIGEST_KIND);
	auto_close int lock = image_store_lock(unpacked->store, name, unpacked->waiting,
					       unpacked->context, &waited, err);
	if (lock < 0)
		return false;
	if (unpacked_look(unpacked->store, unpacked->diff, &unpacked->counts))
		return true;
	unpacked->was_there = false;
	remove_leftovers(unpacked->store, unpacked->diff);
	buf_init(&work.aside, PATH_MAX);
	buf_init(&work.final, PATH_MAX);
	(void)buf_addf(&work.final, "%s/layers/%s", unpacked->store->path,
		       unpacked->diff + DIGEST_KIND);
	/* A folder without its counts was never used. */
	fd_folder_remove(work.final.data);
	made = unpack_one(&work, err);
	if (made) {
		/* The process of a killed pull may have gone on writing while its folder was removed. */
		remove_leftovers(unpacked->store, unpacked->diff);
	} else {
		if (err->code == EBADMSG)
			remove_torn(&work, err);
		fd_folder_remove(work.aside.size > 0 ? work.aside.data : NULL);
		(void)err_while(err, "the layer %s", unpacked->layer->digest);
	}
	if (work.shared != NULL)
		(void)munmap(work.shared, sizeof(*work.shared));
	fd_close(&work.tree);
	fd_close(&work.blob);
	fd_close(&work.memory);
	buf_fini(&work.aside);
	buf_fini(&work.final);
	return made;
}
