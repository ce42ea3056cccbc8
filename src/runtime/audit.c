/* audit: what appeared is moved aside, by a rename in its own folder. */
#include "runtime/audit.h"

#include "base/fd.h"
#include "base/memory.h"
#include "git/git_scan.h"
#include "runtime/audit_tell.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NAME_KEPT = 200, /* bytes of a name that keep, with our mark, below NAME_MAX */
	QUARANTINE_TRIES = 8, /* random names, all taken: somebody makes them */
};

struct opened {
	struct git_scan_root *roots;
	size_t count;
	struct git_scan scan;
};

static void opened_fini(struct opened *opened)
{
	git_scan_fini(&opened->scan);
	for (size_t i = 0; i < opened->count; i++) {
		fd_close(&opened->roots[i].fd);
		free((char *)(uintptr_t)opened->roots[i].path);
	}
	free(opened->roots);
}

/* The folders among ROOTS; a single file has nothing below it. */
static bool opened_init(struct opened *opened, const struct value *roots, struct err *err)
{
	size_t count = value_count(roots);
	bool fine = true;

	*opened = (struct opened){.roots = memory_array(count + 1, sizeof(*opened->roots))};
	for (size_t i = 0; fine && i < count; i++) {
		auto_free char *path = git_scan_path(value_text(value_item(roots, i)));
		int fd = open(path != NULL ? path : "", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0 && errno != ENOTDIR)
			fine = err_set(err, errno, "%s: %s",
				       path != NULL ? path : "a root", strerror(errno));
		if (fd >= 0) {
			opened->roots[opened->count++] = (struct git_scan_root){path, fd};
			path = NULL;
		}
	}
	git_scan_init(&opened->scan, opened->roots, opened->count);
	return fine;
}

static bool scan(struct opened *opened, const struct value *guard, struct err *err)
{
	return git_scan_run(&opened->scan, value_member(guard, "watched"),
			    value_member(guard, "files"), err);
}

bool audit_begin(struct value *guard, struct err *err)
{
	struct opened opened;
	bool fine = opened_init(&opened, value_member(guard, "roots"), err) &&
		    scan(&opened, guard, err);

	value_set(guard, "dangers", value_ref(opened.scan.dangers));
	value_set(guard, "indexes", value_ref(opened.scan.indexes));
	value_set(guard, "repositories", value_ref(opened.scan.repositories));
	value_set(guard, "pointers", value_ref(opened.scan.pointers));
	opened_fini(&opened);
	return fine;
}

static bool rename_away(int folder, const char *name, char *away, size_t size)
{
	uint32_t number;

	errno = EEXIST;
	for (int i = 0; i < QUARANTINE_TRIES && errno == EEXIST; i++) {
		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			return false;
		(void)snprintf(away, size, "%.*s" GIT_QUARANTINE "%08" PRIx32, NAME_KEPT,
			       name, number);
		if (renameat2(folder, name, folder, away, RENAME_NOREPLACE) == 0)
			return true;
	}
	return false;
}

/* Move PATH aside in its own folder. AWAY is the new last name. */
static bool put_away(const struct git_scan *scan, const char *path, char *away, size_t size)
{
	const char *name;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	struct stat st;

	if (folder < 0)
		return false;
	if (rename_away(folder, name, away, size))
		return true;
	/* A folder that its owner may not write is no shelter: he may change that. */
	if (errno != EACCES || fstat(folder, &st) < 0 ||
	    fchmod(folder, (st.st_mode & 07777) | S_IRWXU) < 0)
		return false;
	bool moved = rename_away(folder, name, away, size);
	int code = errno;
	(void)fchmod(folder, st.st_mode & 07777);
	errno = code;
	return moved;
}

static char *workspace_of(const struct value *guard)
{
	char *path = git_scan_path(value_text(value_member(guard, "workspace")));

	return path != NULL ? path : memory_copy("/");
}

static void judge(const struct value *guard, const struct git_scan *scan,
		  struct tool_result *result)
{
	const struct value *known = value_member(guard, "dangers");
	auto_free char *workspace = workspace_of(guard);
	char away[NAME_MAX + 1];

	for (void *at = value_first(scan->dangers); at != NULL;
	     at = value_next(scan->dangers, at)) {
		if (value_equal(value_member(known, value_key(at)), value_at(at)))
			continue;
		auto_free char *path = git_scan_path(value_key(at));
		if (path == NULL)
			audit_tell_failed(result, strerror(EILSEQ));
		else if (put_away(scan, path, away, sizeof(away)))
			audit_tell_moved(result, workspace, path, away);
		else if (errno != EBUSY && errno != EROFS && errno != ENOENT)
			/* Busy or read-only: a mount of the view, which no command could pass. */
			audit_tell_failed(result, strerror(errno));
	}
}

void audit_run(const struct value *guard, const struct timespec *since,
	       struct tool_result *result)
{
	struct opened opened;
	struct err err = {0};

	if (guard == NULL)
		return;
	bool fine = opened_init(&opened, value_member(guard, "roots"), &err);
	opened.scan.may_mend = true;
	opened.scan.known_indexes = value_member(guard, "indexes");
	opened.scan.wants_files = since != NULL;
	if (since != NULL)
		opened.scan.since = *since;
	fine = fine && scan(&opened, guard, &err);
	/* What was seen is put away even when not all was seen. */
	judge(guard, &opened.scan, result);
	if (!fine)
		audit_tell_failed(result, err.text);
	auto_free char *workspace = workspace_of(guard);
	audit_tell_files(opened.scan.files, workspace, result);
	opened_fini(&opened);
}
