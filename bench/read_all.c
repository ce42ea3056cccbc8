/*
 * read_all FOLDER: list the tree and open, read and close every file in it with two threads,
 * and nothing else: the limit of any search. Prints how many bytes there were.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	THREADS = 2,
	FOLDERS_MAX = 1 << 20, /* waiting at once */
	LIST_BUFFER = 64 << 10,
	READ_BUFFER = 256 << 10,
};

/* The folders still to be read, as descriptors' paths; the newest is taken first. */
struct work {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char **folders;
	size_t count;
	unsigned idle;
	uint64_t bytes;
};

static void work_add(struct work *work, const char *folder, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		abort();
	(void)pthread_mutex_lock(&work->lock);
	if (work->count == FOLDERS_MAX)
		abort();
	work->folders[work->count++] = path;
	(void)pthread_cond_signal(&work->changed);
	(void)pthread_mutex_unlock(&work->lock);
}

/* NULL: all is read. */
static char *work_take(struct work *work)
{
	char *path = NULL;

	(void)pthread_mutex_lock(&work->lock);
	work->idle++;
	while (work->count == 0 && work->idle < THREADS)
		(void)pthread_cond_wait(&work->changed, &work->lock);
	if (work->count > 0) {
		path = work->folders[--work->count];
		work->idle--;
	} else {
		(void)pthread_cond_broadcast(&work->changed);
	}
	(void)pthread_mutex_unlock(&work->lock);
	return path;
}

static uint64_t read_file(int folder, const char *name, char *buffer)
{
	long fd = syscall(SYS_openat, folder, name, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = 0;
	long n;

	if (fd < 0)
		return 0;
	do {
		n = syscall(SYS_read, fd, buffer, (size_t)READ_BUFFER);
		bytes += n > 0 ? (uint64_t)n : 0;
	} while (n == READ_BUFFER);
	(void)syscall(SYS_close, fd);
	return bytes;
}

static uint64_t read_folder(struct work *work, const char *path, char *list, char *buffer)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t bytes = 0;
	ssize_t size;

	while (fd >= 0 && (size = getdents64(fd, list, LIST_BUFFER)) > 0) {
		for (ssize_t at = 0; at < size;) {
			const struct dirent64 *entry = (const void *)(list + at);

			at += entry->d_reclen;
			if (entry->d_type == DT_REG)
				bytes += read_file(fd, entry->d_name, buffer);
			else if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
				work_add(work, path, entry->d_name);
		}
	}
	(void)close(fd);
	return bytes;
}

static void *thread_main(void *argument)
{
	struct work *work = argument;
	char *list = malloc(LIST_BUFFER);
	char *buffer = malloc(READ_BUFFER);
	uint64_t bytes = 0;
	char *path;

	while (list && buffer && (path = work_take(work)) != NULL) {
		bytes += read_folder(work, path, list, buffer);
		free(path);
	}
	(void)pthread_mutex_lock(&work->lock);
	work->bytes += bytes;
	(void)pthread_mutex_unlock(&work->lock);
	free(list);
	free(buffer);
	return NULL;
}

int main(int argc, char **argv)
{
	struct work work = {.lock = PTHREAD_MUTEX_INITIALIZER,
			    .changed = PTHREAD_COND_INITIALIZER};
	pthread_t other;

	if (argc != 2) {
		(void)fprintf(stderr, "usage: read_all FOLDER\n");
		return 2;
	}
	work.folders = calloc(FOLDERS_MAX, sizeof(*work.folders));
	if (!work.folders)
		return EXIT_FAILURE;
	work.folders[work.count++] = strdup(argv[1]);
	if (pthread_create(&other, NULL, thread_main, &work) != 0)
		return EXIT_FAILURE;
	(void)thread_main(&work);
	(void)pthread_join(other, NULL);
	free(work.folders);
	(void)printf("%" PRIu64 "\n", work.bytes);
	return EXIT_SUCCESS;
}
