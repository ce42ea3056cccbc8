/*
 * site: fetches by git and curl, as they are installed here, in cells. Our own process reads
 * no repository and unpacks nothing; of an archive it computes the hash and passes the bytes.
 */

#include "fleet/steps/site.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/client.h"
#include "fleet/steps/step.h"
#include "fleet/store.h"
#include "fleet/task.h"
#include "fleet/work.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ENTRY_MAX = 512, /* bytes of an entry of `network` */
	CLOSE_S = 30,
	NOT_FOUND = 127, /* exit code of a program that is not there */
};
/* An archive: as many bytes as the engine takes of a tar. */
#define ARCHIVE_MAX (INT64_C(4) << 30)

/*
 * Fetch $2 of $1 into the working folder: nothing of the history where the server can leave it
 * out. A full hash is asked for at once; a tag comes before a branch, as git has it; an
 * abbreviated hash needs all of the history.
 */
static const char fetch_text[] =
	"set -u\n"
	"url=$1 ref=${2-} commit=\n"
	"git -c init.defaultBranch=main init -q . && git remote add origin \"$url\" || exit 1\n"
	"tip() {\n"
	"  git fetch -q --depth 1 --no-tags origin \"$1\" 2>/tmp/fetch.log ||\n"
	"    git fetch -q --no-tags origin \"$1\" 2>/tmp/fetch.log || return 1\n"
	"  commit=$(git rev-parse -q --verify 'FETCH_HEAD^{commit}')\n"
	"}\n"
	"full=\n"
	"case $ref in *[!0-9a-f]*) ;; *) case ${#ref} in 40 | 64) full=1 ;; esac ;; esac\n"
	"[ -z \"$full\" ] || tip \"$ref\" || :\n"
	"if [ -z \"$commit\" ]; then\n"
	"  if ! refs=$(git ls-remote -q origin 2>/tmp/fetch.log); then\n"
	"    cat /tmp/fetch.log >&2\n"
	"    sed -n '/^fatal: /{s///p;q}' /tmp/fetch.log >&2\n"
	"    exit 1\n"
	"  fi\n"
	"  for name in ${ref:+\"$ref\" \"refs/tags/$ref\" \"refs/heads/$ref\"} "
	"\"${ref:-HEAD}\"; do\n"
	"    case \"$refs\n\" in *\"\t$name\n\"*) tip \"$name\" && break ;; esac\n"
	"  done\n"
	"fi\n"
	"if [ -z \"$commit\" ] && [ -n \"$ref\" ]; then\n"
	"  git fetch -q --tags origin '+refs/heads/*:refs/remotes/origin/*' || exit 1\n"
	"  commit=$(git rev-parse -q --verify \"$ref^{commit}\")\n"
	"fi\n"
	"if [ -z \"$commit\" ]; then\n"
	"  [ ! -s /tmp/fetch.log ] || cat /tmp/fetch.log >&2\n"
	"  echo \"$url has no commit, tag or branch ${ref:-HEAD}\" >&2; exit 1\n"
	"fi\n"
	"git checkout -q --detach \"$commit\"\n";

/*
 * Append to ENTRY the host of URL as an entry of `network`. A service on this machine itself is
 * reached at a port of the cell's loopback.
 */
static bool add_host(const char *url, struct buf *entry)
{
	const bool plain = strncmp(url, "http://", 7) == 0;
	const char *begin = strstr(url, "://") + 3;
	const struct str host = {begin, strcspn(begin, "/?#")};
	const bool has_port = memchr(host.data, ':', host.size) != NULL;
	const char *port = plain ? ":80" : ":443";

	if (str_starts(host, STR("localhost")) || str_starts(host, STR("127.0.0.1")))
		(void)buf_adds(entry, "tcp://");
	return buf_addf(entry, "%.*s%s", (int)host.size, host.data, has_port ? "" : port);
}

static bool is_remote(const char *from)
{
	return strncmp(from, "https://", 8) == 0 || strncmp(from, "http://", 7) == 0;
}

/*
 * Append the absolute path of FROM, which is file://PATH or a path, to PATH. Links are followed
 * here, once, so that what is looked at is what is used.
 */
static bool add_local(struct fleet_steps *steps, const char *from, struct buf *path)
{
	static const char scheme[] = "file://";
	auto_free char *folder = getcwd(NULL, 0), *real = NULL;

	if (strncmp(from, scheme, sizeof(scheme) - 1) == 0)
		from += sizeof(scheme) - 1;
	if (folder == NULL || !path_normal(folder, from, path))
		return fleet_steps_end(steps, FLEET_SET_UP, "workspace: %s is no path",
				       from);
	real = realpath(path->data, NULL);
	if (real == NULL)
		return fleet_steps_end(steps, FLEET_SET_UP, "workspace: %s: %s",
				       path->data, strerror(errno));
	buf_clear(path);
	return buf_adds(path, real) ||
	       fleet_steps_end(steps, FLEET_SET_UP, "workspace: %s is too long", real);
}

/* The policy of a cell that gets files: it writes its workspace, reads READS and reaches HOST. */
static struct value *fetching_policy(const char *reads, const char *host)
{
	struct value *policy = value_new_object();

	value_set(policy, "write", value_new_texts((const char *const[]){".", NULL}));
	if (reads != NULL)
		value_set(policy, "read",
			  value_new_texts((const char *const[]){reads, NULL}));
	if (host != NULL)
		value_set(policy, "network",
			  value_new_texts((const char *const[]){host, NULL}));
	return policy;
}

static bool open_cell(struct fleet_steps *steps, struct value *take_params, char **cell,
		      struct value **opened)
{
	if (!fleet_steps_call(steps, "cell/open", take_params, opened))
		return false;
	*cell = memory_copy(value_text(value_member(*opened, "cell")));
	return *cell != NULL ||
	       fleet_steps_end(steps, FLEET_SET_UP, "the engine has opened no cell");
}

/* Open a cell with a fresh workspace for files; *FOLDER becomes that workspace. */
static bool open_fresh(struct fleet_steps *steps, const char *reads, const char *host,
		       char **cell, char **folder)
{
	struct value *params = value_new_object();
	auto_value struct value *opened = NULL;

	value_set(params, "policy", fetching_policy(reads, host));
	value_set_text(params, "within", FLEET_BOUND);
	if (!open_cell(steps, params, cell, &opened))
		return false;
	*folder = memory_copy(value_text(value_member(opened, "workspace")));
	return *folder != NULL ||
	       fleet_steps_end(steps, FLEET_SET_UP, "the engine has opened no workspace");
}

static void close_cell(struct fleet_steps *steps, const char *cell)
{
	struct value *params, *closed = NULL;
	struct fleet_refusal refusal;

	if (cell == NULL)
		return;
	params = value_new_object();
	value_set_text(params, "cell", cell);
	(void)fleet_client_call(steps->work->client, "cell/close", params, CLOSE_S, NULL,
				&closed, &refusal);
	value_free(closed);
}

/* A cell that may read PATH by all but its bounds was REFUSED it: then they do not have it. */
static bool say_bounded(struct fleet_steps *steps, const char *path,
			const struct fleet_refusal *refused)
{
	static const char *const others[] = {"cancelled", "timed_out", "limit"};
	bool is_other = fleet_steps_is_loss(refused);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		is_other = is_other || strcmp(refused->kind, others[i]) == 0;
	if (is_other)
		return fleet_steps_refused(steps, refused);
	return fleet_steps_end(steps, FLEET_DENIED,
			       "workspace: %s cannot be read here; where the configuration has "
			       "an agent " FLEET_BOUND
			       ", its `read` or `write` names it: %s",
			       path, refused->err.text);
}

/* May a task here read PATH, which CELL is to show? */
static bool check_shown(struct fleet_steps *steps, const char *cell, const char *path)
{
	struct value *params = value_new_object();
	auto_value struct value *answer = NULL;
	struct fleet_refusal refusal;

	value_set_text(params, "cell", cell);
	value_set_text(params, "path", path);
	return fleet_client_call(steps->work->client, "file/stat", params,
				 fleet_steps_left(steps), steps->work->cancel, &answer,
				 &refusal) ||
	       say_bounded(steps, path, &refusal);
}

/* The same by a cell of its own. */
static bool check_readable(struct fleet_steps *steps, const char *path)
{
	auto_free char *cell = NULL, *folder = NULL;
	const bool ok = open_fresh(steps, path, NULL, &cell, &folder) &&
			check_shown(steps, cell, path);

	close_cell(steps, cell);
	return ok;
}

/* Run ARGV, a program that fetches, in CELL. WHAT names it, PACKAGE where it is from. */
static bool fetch_by(struct fleet_steps *steps, const char *cell, const char *const *argv,
		     const char *what, const char *package)
{
	struct fleet_ran ran;
	bool ok = fleet_steps_run(steps, cell, "workspace", argv, NULL, &ran);

	if (ok && ran.timed_out)
		ok = fleet_steps_end(steps, FLEET_TIMED_OUT,
				     "workspace: %s took all the time of the task", what);
	else if (ok && ran.code == NOT_FOUND)
		ok = fleet_steps_end(steps, FLEET_SET_UP,
				     "workspace: %s is not here: apt install %s", what,
				     package);
	else if (ok && ran.code != 0)
		ok = fleet_steps_end(steps, FLEET_SET_UP,
				     "workspace: %s ended with exit code %d: %s", what,
				     ran.code, ran.said.data);
	fleet_ran_fini(&ran);
	return ok;
}

static bool get_git(struct fleet_steps *steps, const struct fleet_task *task,
		    struct fleet_site *site, char **folder)
{
	const char *from = task->workspace.from, *ref = task->workspace.ref;
	struct buf host, path;
	bool ok;

	buf_init(&host, ENTRY_MAX);
	buf_init(&path, PATH_MAX);
	if (is_remote(from))
		ok = add_host(from, &host) ||
		     fleet_steps_end(steps, FLEET_SET_UP, "workspace: %.200s has no host",
				     from);
	else
		ok = add_local(steps, from, &path);
	ok = ok &&
	     open_fresh(steps, path.size > 0 ? path.data : NULL,
			host.size > 0 ? host.data : NULL, &site->from, folder) &&
	     (path.size == 0 || check_shown(steps, site->from, path.data));
	if (ok) {
		const char *const argv[] = {"bash",
					    "-c",
					    fetch_text,
					    "fetch",
					    path.size > 0 ? path.data : from,
					    ref != NULL ? ref : "",
					    NULL};

		ok = fetch_by(steps, site->from, argv, "git", "git");
	}
	site->repository = ok;
	buf_fini(&host);
	buf_fini(&path);
	return ok;
}

/* Download URL in a cell of its own, into FD. */
static bool download(struct fleet_steps *steps, const char *url, int fd)
{
	static const char name[] = "archive";
	const char *const argv[] = {"curl", "-fsSL", "--proto", "=http,https", "-o",
				    name,   "--",    url,       NULL};
	struct fleet_refusal refusal;
	auto_free char *cell = NULL, *folder = NULL;
	struct buf host;
	bool ok;

	buf_init(&host, ENTRY_MAX);
	ok = add_host(url, &host) ||
	     fleet_steps_end(steps, FLEET_SET_UP, "workspace: %.200s has no host", url);
	ok = ok && open_fresh(steps, NULL, host.data, &cell, &folder) &&
	     fetch_by(steps, cell, argv, "curl", "curl");
	ok = ok && (fleet_steps_fetch(steps, cell, name, ARCHIVE_MAX, fd, &refusal) ||
		    fleet_steps_refused(steps, &refusal));
	close_cell(steps, cell);
	buf_fini(&host);
	return ok;
}

/* Has the file FD the hash WANTED? */
static bool check_hash(struct fleet_steps *steps, int fd, const char *wanted)
{
	char hex[HASH_HEX + 1];
	uint64_t size;

	if (!hash_file(fd, UINT64_MAX, hex, &size))
		return fleet_steps_end(steps, FLEET_SET_UP,
				       "workspace: reading the archive: %s",
				       strerror(errno));
	return strcmp(hex, wanted) == 0 ||
	       fleet_steps_end(steps, FLEET_SET_UP,
			       "workspace: the archive has the SHA-256 %s, not %s", hex,
			       wanted);
}

/* Read the file PATH through a cell, which is what bounds it, into FD. */
static bool read_local(struct fleet_steps *steps, const char *path, int fd)
{
	auto_free char *cell = NULL, *folder = NULL;
	struct fleet_refusal refusal;
	struct stat st;
	bool ok = (stat(path, &st) == 0 && S_ISREG(st.st_mode)) ||
		  fleet_steps_end(steps, FLEET_SET_UP, "workspace: %s is no file", path);

	ok = ok && open_fresh(steps, path, NULL, &cell, &folder) &&
	     (fleet_steps_fetch(steps, cell, path, ARCHIVE_MAX, fd, &refusal) ||
	      (strcmp(refusal.kind, "limit") == 0 ? fleet_steps_refused(steps, &refusal)
						  : say_bounded(steps, path, &refusal)));
	close_cell(steps, cell);
	return ok;
}

/* Open the bytes of the archive FROM; -1: the task has ended. */
static int open_archive(struct fleet_steps *steps, const char *from)
{
	static const char blob[] = "blob:";
	auto_close int fd = -1;
	struct buf path;
	struct err err;
	bool ok;

	fd = fleet_steps_file(&err);
	if (fd < 0) {
		(void)fleet_steps_end(steps, FLEET_SET_UP, "workspace: %s", err.text);
		return -1;
	}
	if (is_remote(from)) {
		ok = download(steps, from, fd);
	} else if (strncmp(from, blob, sizeof(blob) - 1) != 0) {
		buf_init(&path, PATH_MAX);
		ok = add_local(steps, from, &path) && read_local(steps, path.data, fd);
		buf_fini(&path);
	} else {
		ok = fleet_store_fetch(steps->work->store, from + sizeof(blob) - 1, fd,
				       &err) ||
		     fleet_steps_end(steps, FLEET_SET_UP, "workspace: %s", err.text);
	}
	return ok ? fd_take(&fd) : -1;
}

static bool get_archive(struct fleet_steps *steps, const struct fleet_task *task,
			struct fleet_site *site, char **folder)
{
	auto_close int fd = open_archive(steps, task->workspace.from);

	return fd >= 0 &&
	       (task->workspace.sha256 == NULL ||
		check_hash(steps, fd, task->workspace.sha256)) &&
	       open_fresh(steps, NULL, NULL, &site->from, folder) &&
	       fleet_steps_put_tree(steps, site->from, fd);
}

/* The folder of the task is copied into a fresh workspace, through a cell that shows it. */
static bool get_copy(struct fleet_steps *steps, const char *shown,
		     struct fleet_site *site, char **folder)
{
	struct value *params = value_new_object(), *workspace = value_new_object();
	auto_value struct value *opened = NULL;
	auto_close int fd = -1;
	auto_free char *cell = NULL;
	struct err err;
	bool ok;

	value_set_text(workspace, "from", shown);
	value_set(params, "workspace", workspace);
	value_set(params, "policy", fetching_policy(NULL, NULL));
	value_set_text(params, "within", FLEET_BOUND);
	ok = open_cell(steps, params, &cell, &opened);
	if (ok)
		fd = fleet_steps_file(&err);
	ok = ok && (fd >= 0 || fleet_steps_end(steps, FLEET_SET_UP, "%s", err.text)) &&
	     fleet_steps_get_tree(steps, cell, fd) &&
	     open_fresh(steps, NULL, NULL, &site->from, folder) &&
	     fleet_steps_put_tree(steps, site->from, fd);
	close_cell(steps, cell);
	return ok;
}

/* The rights of the cell of TASK: its policy, which may write its workspace unless it says. */
static void add_rights(const struct fleet_task *task, struct value *params)
{
	struct value *policy;

	value_set_text(params, "within", FLEET_BOUND);
	if (task->base != NULL)
		value_set_text(params, "base", task->base);
	if (task->limits != NULL)
		value_set(params, "limits", value_ref(task->limits));
	if (task->policy == NULL) {
		if (task->run.agent != NULL)
			value_set_text(params, "agent", task->run.agent);
		return;
	}
	policy = value_copy(task->policy);
	if (value_member(policy, "write") == NULL)
		value_set(policy, "write",
			  value_new_texts((const char *const[]){".", NULL}));
	value_set(params, "policy", policy);
}

/* Open the cell of the task over FOLDER (NULL: a fresh workspace). */
static bool open_task(struct fleet_steps *steps, const struct fleet_task *task,
		      const char *folder, bool apart, struct fleet_site *site)
{
	struct value *params = value_new_object(), *workspace;

	add_rights(task, params);
	if (folder != NULL && apart) {
		value_set_text(params, "workspace", folder);
	} else if (folder != NULL) {
		workspace = value_new_object();
		value_set_text(workspace, "from", folder);
		value_set(params, "workspace", workspace);
	}
	site->apart = apart;
	if (!open_cell(steps, params, &site->cell, &site->opened))
		return false;
	site->workspace = memory_copy(value_text(value_member(site->opened, "workspace")));
	return site->workspace != NULL ||
	       fleet_steps_end(steps, FLEET_SET_UP, "the engine has opened no workspace");
}

bool fleet_site_open(struct fleet_steps *steps, bool apart, struct fleet_site *site)
{
	const struct fleet_task *task = steps->work->task;
	auto_free char *folder = NULL;
	struct buf path;
	bool ok = true;

	*site = (struct fleet_site){0};
	buf_init(&path, PATH_MAX);
	switch (task->workspace.kind) {
	case FLEET_EMPTY:
		break;
	case FLEET_GIT:
		ok = get_git(steps, task, site, &folder);
		break;
	case FLEET_ARCHIVE:
		ok = get_archive(steps, task, site, &folder);
		break;
	case FLEET_COPY:
		ok = add_local(steps, task->workspace.from, &path) &&
		     check_readable(steps, path.data);
		if (ok && apart)
			ok = get_copy(steps, path.data, site, &folder);
		else if (ok)
			folder = memory_copy(path.data);
		break;
	}
	ok = ok && open_task(steps, task, folder, apart, site);
	buf_fini(&path);
	return ok;
}

void fleet_site_close(struct fleet_steps *steps, struct fleet_site *site,
		      struct value **closed)
{
	const char *const cells[] = {site->cell, site->from};

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		struct value *params = value_new_object(), *answer = NULL;
		struct fleet_refusal refusal;

		if (cells[i] == NULL) {
			value_free(params);
			continue;
		}
		value_set_text(params, "cell", cells[i]);
		(void)fleet_client_call(steps->work->client, "cell/close", params,
					CLOSE_S, NULL, &answer, &refusal);
		if (i == 0)
			*closed = answer;
		else
			value_free(answer);
	}
	free(site->cell);
	free(site->from);
	free(site->workspace);
	value_free(site->opened);
	*site = (struct fleet_site){0};
}
