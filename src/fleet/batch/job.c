/* job: the objects of a store that belong to one file of tasks. */

#include "fleet/batch/job.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "build_config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	NAME_DIGITS = 8,      /* of the file's hash, in a name of ours */
	NAME_LETTERS = 64,    /* of the file's name */
	ABOUT_MAX = 64 << 10, /* bytes of a job.json */
	RESULT_MAX = 16 << 20,
	NAMES_MAX = 100000, /* jobs that are listed */
	TIME_ROOM = 32,
};

#define JOBS "jobs/"
struct fleet_job {
	struct fleet_store *store;
	char name[FLEET_NAME_MAX + 1];
	struct fleet_tasks *tasks;
	uint32_t *by_id; /* numbers of the tasks, in the order of their ids */
};

void fleet_job_name(const char *path, const char *hash, char name[FLEET_NAME_MAX + 1])
{
	const char *base = strcmp(path, "-") == 0 ? "tasks" : path_base_name(path);
	size_t size = 0;

	for (const char *at = base; *at != '\0' && *at != '.' && size < NAME_LETTERS; at++) {
		const bool plain = (*at >= 'a' && *at <= 'z') ||
				   (*at >= 'A' && *at <= 'Z') ||
				   (*at >= '0' && *at <= '9') || *at == '_' || *at == '-';

		name[size++] = plain ? *at : '-';
	}
	if (size == 0)
		name[size++] = 'j';
	(void)snprintf(name + size, FLEET_NAME_MAX + 1 - size, "-%.*s", NAME_DIGITS, hash);
}

static void object_name(const struct fleet_job *job, const char *rest,
			char name[FLEET_NAME_BYTES])
{
	(void)snprintf(name, FLEET_NAME_BYTES, JOBS "%s/%s", job->name, rest);
}

static void result_name(const struct fleet_job *job, size_t nth, char name[FLEET_NAME_BYTES])
{
	(void)snprintf(name, FLEET_NAME_BYTES, JOBS "%s/results/%s.json", job->name,
		       fleet_tasks_id(job->tasks, nth));
}

/* Making one. */

static int compare_ids(const void *one, const void *other, void *context)
{
	const struct fleet_tasks *tasks = context;
	const uint32_t *a = one, *b = other;

	return strcmp(fleet_tasks_id(tasks, *a), fleet_tasks_id(tasks, *b));
}

static struct fleet_job *make_job(struct fleet_store *store, const char *name,
				  struct fleet_tasks *take_tasks)
{
	const size_t count = fleet_tasks_count(take_tasks);
	struct fleet_job *job = memory_alloc(sizeof(*job));

	job->store = store;
	(void)snprintf(job->name, sizeof(job->name), "%s", name);
	job->tasks = take_tasks;
	job->by_id = memory_array(count + 1, sizeof(*job->by_id));
	for (size_t i = 0; i < count; i++)
		job->by_id[i] = (uint32_t)i;
	qsort_r(job->by_id, count, sizeof(*job->by_id), compare_ids, take_tasks);
	return job;
}

/* Read job.json of the job JOB of STORE. ENOTSUP: this program cannot read its lines. */
static bool read_about(struct fleet_store *store, const char *job, struct value **about,
		       struct err *err)
{
	auto_value struct value *read = NULL;
	char name[FLEET_NAME_BYTES];
	struct buf text;
	int64_t format;
	bool ok;

	(void)snprintf(name, sizeof(name), JOBS "%s/job.json", job);
	buf_init(&text, ABOUT_MAX);
	ok = fleet_store_get(store, name, &text, err) &&
	     (value_parse(buf_str(&text), 0, &read, err) || err_while(err, "%s", name));
	buf_fini(&text);
	if (!ok)
		return false;
	if (value_text(value_member(read, "sha256")) == NULL)
		return err_set(err, EINVAL, "%s of %s is no job", name,
			       fleet_store_where(store));
	format = value_integer(value_member(read, "format"));
	if (format > FLEET_LINE_FORMAT)
		return err_set(err, ENOTSUP,
			       "its lines have the format %" PRId64
			       ", and this is glovebox %s, which "
			       "reads %d: use the newer release here",
			       format, GLOVEBOX_VERSION, FLEET_LINE_FORMAT);
	*about = read;
	read = NULL;
	return true;
}

/* Is ABOUT that of the file of JOB? EEXIST: it is that of another one. */
static bool check_file(const struct fleet_job *job, const struct value *about,
		       struct err *err)
{
	const char *hash = value_text(value_member(about, "sha256"));

	return strcmp(hash, fleet_tasks_hash(job->tasks)) == 0 ||
	       err_set(err, EEXIST,
		       "the job %s of %s belongs to another file of tasks (%.12s, this one is "
		       "%.12s): give another --job, or the file as it was",
		       job->name, fleet_store_where(job->store), hash,
		       fleet_tasks_hash(job->tasks));
}

static bool put_about(const struct fleet_job *job, const char *path, struct err *err)
{
	auto_value struct value *about = value_new_object();
	auto_value struct value *there = NULL;
	const time_t now = (time_t)(clock_wall_ms() / 1000);
	char name[FLEET_NAME_BYTES], began[TIME_ROOM];
	enum fleet_put put;
	struct tm parts;
	struct buf text;

	(void)strftime(began, sizeof(began), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
	value_set_text(about, "job", job->name);
	value_set_text(about, "sha256", fleet_tasks_hash(job->tasks));
	value_set_integer(about, "format", FLEET_LINE_FORMAT);
	value_set_integer(about, "tasks", (int64_t)fleet_tasks_count(job->tasks));
	value_set_text(about, "file", strcmp(path, "-") == 0 ? NULL : path_base_name(path));
	value_set_text(about, "began", began);
	object_name(job, "job.json", name);
	buf_init(&text, ABOUT_MAX);
	(void)value_print(about, 0, &text);
	(void)buf_addc(&text, '\n');
	put = fleet_store_put(job->store, name, buf_str(&text), FLEET_IF_NEW, err);
	buf_fini(&text);
	return put == FLEET_PUT_THERE ? read_about(job->store, job->name, &there, err) &&
						check_file(job, there, err)
				      : put == FLEET_PUT_DONE;
}

/* The copy is the same for everybody who begins this job: that of the first one is right. */
static bool put_tasks(const struct fleet_job *job, struct err *err)
{
	const int fd = fleet_tasks_fd(job->tasks);
	char name[FLEET_NAME_BYTES];
	enum fleet_put put;
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "the file of tasks: %s", strerror(errno));
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_set(err, errno, "the file of tasks: %s", strerror(errno));
	object_name(job, "tasks.jsonl", name);
	put = fleet_store_put(job->store, name, (struct str){bytes, (size_t)st.st_size},
			      FLEET_IF_NEW, err);
	(void)munmap(bytes, (size_t)st.st_size);
	return put != FLEET_PUT_FAILED;
}

static bool check_size(const struct fleet_job *job, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fleet_tasks_fd(job->tasks), &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (fleet_tasks_count(job->tasks) == 0)
		return err_set(err, EINVAL, "%s: there is no task in it", path);
	return st.st_size <= FLEET_OBJECT_MAX ||
	       err_set(err, EFBIG,
		       "%s: a job has at most %d MiB of tasks; divide the file, and put long "
		       "texts into workspaces",
		       path, FLEET_OBJECT_MAX >> 20);
}

bool fleet_job_begin(struct fleet_store *store, const char *name,
		     struct fleet_tasks *take_tasks, const char *path,
		     struct fleet_job **job, struct err *err)
{
	struct fleet_job *made;

	if (!fleet_name_check(FLEET_JOB, name, err)) {
		fleet_tasks_free(take_tasks);
		return false;
	}
	made = make_job(store, name, take_tasks);
	if (check_size(made, path, err) && put_about(made, path, err) &&
	    put_tasks(made, err)) {
		*job = made;
		return true;
	}
	fleet_job_free(made);
	return false;
}

/* Read tasks that a store has given: by a file in memory. */
static bool read_tasks(const struct buf *text, struct fleet_tasks **tasks, struct err *err)
{
	auto_close int fd = -1;
	char path[FD_NAME_ROOM];

	return fd_memory_file("tasks", buf_str(text), &fd, err) &&
	       fleet_tasks_open(fd_name(fd, path), tasks, err);
}

bool fleet_job_open(struct fleet_store *store, const char *name, struct fleet_job **job,
		    struct err *err)
{
	auto_value struct value *about = NULL;
	char object[FLEET_NAME_BYTES];
	struct fleet_tasks *tasks = NULL;
	struct fleet_job *made;
	struct buf text;
	bool ok;

	if (!fleet_name_check(FLEET_JOB, name, err))
		return false;
	(void)snprintf(object, sizeof(object), JOBS "%s/tasks.jsonl", name);
	buf_init(&text, FLEET_OBJECT_MAX);
	/* Its format first: lines of a newer one would only be called wrong. */
	ok = read_about(store, name, &about, err) &&
	     fleet_store_get(store, object, &text, err);
	if (!ok && err->code == ENOENT)
		(void)err_set(err, ENOENT,
			      "%s has no job %s; `glovebox batch status %s` "
			      "lists its jobs",
			      fleet_store_where(store), name, fleet_store_where(store));
	ok = ok && read_tasks(&text, &tasks, err);
	buf_fini(&text);
	if (!ok)
		return false;
	made = make_job(store, name, tasks);
	if (check_file(made, about, err)) {
		*job = made;
		return true;
	}
	fleet_job_free(made);
	return false;
}

void fleet_job_free(struct fleet_job *job)
{
	if (job == NULL)
		return;
	fleet_tasks_free(job->tasks);
	free(job->by_id);
	free(job);
}

const char *fleet_job_name_of(const struct fleet_job *job)
{
	return job->name;
}

const struct fleet_tasks *fleet_job_tasks(const struct fleet_job *job)
{
	return job->tasks;
}

size_t fleet_job_find(const struct fleet_job *job, const char *id)
{
	size_t low = 0, high = fleet_tasks_count(job->tasks);

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const uint32_t nth = job->by_id[middle];
		const int order = strcmp(fleet_tasks_id(job->tasks, nth), id);

		if (order == 0)
			return nth;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return FLEET_JOB_NONE;
}

/* Its results. */

struct listing {
	const struct fleet_job *job;
	void (*take)(void *context, size_t nth);
	void *context;
};

static bool take_name(void *context, const char *name)
{
	static const char ending[] = ".json";
	const struct listing *listing = context;
	char id[FLEET_NAME_MAX + 1];
	const size_t size = strlen(name);
	size_t nth;

	/* Other names are of no concern: half-written files, and what people put there. */
	if (size < sizeof(ending) || size - (sizeof(ending) - 1) > FLEET_NAME_MAX ||
	    strcmp(name + size - (sizeof(ending) - 1), ending) != 0)
		return true;
	(void)snprintf(id, sizeof(id), "%.*s", (int)(size - (sizeof(ending) - 1)), name);
	nth = fleet_job_find(listing->job, id);
	if (nth != FLEET_JOB_NONE)
		listing->take(listing->context, nth);
	return true;
}

bool fleet_job_results(const struct fleet_job *job, void (*take)(void *context, size_t nth),
		       void *context, struct err *err)
{
	struct listing listing = {job, take, context};
	char folder[FLEET_NAME_BYTES];

	object_name(job, "results/", folder);
	return fleet_store_list(job->store, folder, take_name, &listing, err);
}

bool fleet_job_result(const struct fleet_job *job, size_t nth, struct value **result,
		      struct err *err)
{
	char name[FLEET_NAME_BYTES];
	struct buf text;
	bool ok;

	result_name(job, nth, name);
	buf_init(&text, RESULT_MAX);
	ok = fleet_store_get(job->store, name, &text, err) &&
	     (value_parse(buf_str(&text), 0, result, err) || err_while(err, "%s", name));
	buf_fini(&text);
	return ok;
}

bool fleet_job_forget(const struct fleet_job *job, size_t nth, struct err *err)
{
	char name[FLEET_NAME_BYTES];

	result_name(job, nth, name);
	return fleet_store_remove(job->store, name, err);
}

/* All jobs. */

struct names {
	char **items;
	size_t count;
};

static bool take_job(void *context, const char *name)
{
	struct names *names = context;
	const size_t size = strcspn(name, "/");
	char *job;

	if (size == 0 || size > FLEET_NAME_MAX || names->count >= NAMES_MAX)
		return names->count < NAMES_MAX;
	/* A bucket tells all objects of a job behind each other. */
	if (names->count > 0 && strlen(names->items[names->count - 1]) == size &&
	    memcmp(names->items[names->count - 1], name, size) == 0)
		return true;
	job = memory_copy_str((struct str){name, size});
	if (!fleet_name_check(FLEET_JOB, job, NULL)) {
		free(job);
		return true;
	}
	names->items = memory_grow(names->items, names->count + 1, sizeof(*names->items));
	names->items[names->count++] = job;
	return true;
}

bool fleet_job_names(struct fleet_store *store, struct value **found, struct err *err)
{
	struct names names = {0};
	const bool ok = fleet_store_list(store, JOBS, take_job, &names, err);
	struct value *sorted = value_new_array();

	str_sort(names.items, names.count);
	for (size_t i = 0; i < names.count; i++) {
		if (i == 0 || strcmp(names.items[i], names.items[i - 1]) != 0)
			value_append(sorted, value_new_text(names.items[i]));
	}
	for (size_t i = 0; i < names.count; i++)
		free(names.items[i]);
	free(names.items);
	if (ok)
		*found = sorted;
	else
		value_free(sorted);
	return ok;
}
