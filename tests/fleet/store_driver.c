/*
 * store_driver WHERE r|w: opens a store, and does what the lines of its input say, one answer a line:
 *
 *   put new|replace NAME FILE     done | there
 *   blob FILE                     done HASH SIZE
 *   fetch HASH FILE, get NAME FILE, remove NAME     done
 *   list FOLDER                   done NAME NAME …
 *   race NAME COUNT TEXT          done N: create NAME-0 to NAME-COUNT, and count those that were new
 *   many NAME COUNT THREADS       done N: the same by several threads
 *   fill NAME COUNT               done MICROSECONDS: create so many, each with 1 KiB
 *   turn NAME FILE FILE           turned, for ever: replace NAME by the second and the first in turn
 *
 * Anything that fails is "failed ERRNO TEXT".
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "fleet/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 8, THREADS_MAX = 64, FILL_BYTES = 1024 };

static bool read_input(const char *path, struct buf *bytes, struct err *err)
{
	buf_init(bytes, FLEET_OBJECT_MAX);
	return fd_read_file(path, FLEET_OBJECT_MAX, bytes, err);
}

static const char *put_name(enum fleet_put put)
{
	return put == FLEET_PUT_DONE ? "done" : "there";
}

static bool do_put(struct fleet_store *store, char **words, struct err *err)
{
	struct buf bytes;
	enum fleet_put put = FLEET_PUT_FAILED;

	if (read_input(words[3], &bytes, err))
		put = fleet_store_put(store, words[2], buf_str(&bytes),
				      strcmp(words[1], "new") == 0 ? FLEET_IF_NEW
								   : FLEET_REPLACE,
				      err);
	buf_fini(&bytes);
	if (put == FLEET_PUT_FAILED)
		return false;
	printf("%s\n", put_name(put));
	return true;
}

static bool do_blob(struct fleet_store *store, char **words, struct err *err)
{
	auto_close int fd = open(words[1], O_RDONLY | O_CLOEXEC);
	char hash[FLEET_HASH_BYTES];
	uint64_t size;

	if (fd < 0)
		return err_set(err, errno, "%s", words[1]);
	if (!fleet_store_blob(store, fd, hash, &size, err))
		return false;
	printf("done %s %llu\n", hash, (unsigned long long)size);
	return true;
}

static bool do_fetch(struct fleet_store *store, char **words, struct err *err)
{
	auto_close int fd = open(words[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(err, errno, "%s", words[2]);
	if (!fleet_store_fetch(store, words[1], fd, err))
		return false;
	puts("done");
	return true;
}

static bool do_get(struct fleet_store *store, char **words, struct err *err)
{
	struct buf bytes;
	bool got;

	buf_init(&bytes, FLEET_OBJECT_MAX);
	got = fleet_store_get(store, words[1], &bytes, err) &&
	      fd_replace_file(words[2], buf_str(&bytes), err);
	buf_fini(&bytes);
	if (got)
		puts("done");
	return got;
}

static bool add_name(void *context, const char *name)
{
	struct buf *names = context;

	return buf_addf(names, " %s", name);
}

static bool do_list(struct fleet_store *store, char **words, struct err *err)
{
	struct buf names;
	bool listed;

	buf_init(&names, 64 << 20);
	listed = fleet_store_list(store, words[1] != NULL ? words[1] : "", add_name,
				  &names, err);
	if (listed)
		printf("done%s\n", names.data);
	buf_fini(&names);
	return listed;
}

/* One of several threads that create the same names. */
struct creator {
	pthread_t thread;
	struct fleet_store *store;
	const char *name;
	int count, new;
	struct err err;
	char text[64];
};

static void *create(void *context)
{
	struct creator *creator = context;

	for (int i = 0; i < creator->count && creator->new >= 0; i++) {
		char name[FLEET_NAME_BYTES];

		(void)snprintf(name, sizeof(name), "%s-%d", creator->name, i);
		switch (fleet_store_put(creator->store, name, str_of(creator->text),
					FLEET_IF_NEW, &creator->err)) {
		case FLEET_PUT_DONE:
			creator->new ++;
			break;
		case FLEET_PUT_THERE:
			break;
		case FLEET_PUT_FAILED:
			creator->new = -1;
			break;
		}
	}
	return NULL;
}

static bool do_race(struct fleet_store *store, char **words, struct err *err)
{
	struct creator creator = {.store = store,
				  .name = words[1],
				  .count = (int)strtol(words[2], NULL, 10)};

	(void)snprintf(creator.text, sizeof(creator.text), "%s", words[3]);
	(void)create(&creator);
	if (creator.new < 0)
		return err_set(err, creator.err.code, "%s", creator.err.text);
	printf("done %d\n", creator.new);
	return true;
}

static bool do_many(struct fleet_store *store, char **words, struct err *err)
{
	static struct creator creators[THREADS_MAX];
	const long threads = strtol(words[3], NULL, 10);
	int new = 0;
	bool fine = true;

	for (long i = 0; i < threads && i < THREADS_MAX; i++) {
		creators[i] = (struct creator){.store = store,
					       .name = words[1],
					       .count = (int)strtol(words[2], NULL, 10)};
		(void)snprintf(creators[i].text, sizeof(creators[i].text), "%ld", i);
		if (pthread_create(&creators[i].thread, NULL, create, &creators[i]) != 0)
			abort();
	}
	for (long i = 0; i < threads && i < THREADS_MAX; i++) {
		(void)pthread_join(creators[i].thread, NULL);
		if (creators[i].new < 0)
			fine = err_set(err, creators[i].err.code, "%s",
				       creators[i].err.text);
		new += creators[i].new;
	}
	if (fine)
		printf("done %d\n", new);
	return fine;
}

static bool do_fill(struct fleet_store *store, char **words, struct err *err)
{
	const long count = strtol(words[2], NULL, 10);
	const int64_t begin = clock_now_us();
	char bytes[FILL_BYTES];

	memset(bytes, 'x', sizeof(bytes));
	for (long i = 0; i < count; i++) {
		char name[FLEET_NAME_BYTES];

		(void)snprintf(name, sizeof(name), "%s%ld.json", words[1], i);
		if (fleet_store_put(store, name, (struct str){bytes, sizeof(bytes)},
				    FLEET_IF_NEW, err) != FLEET_PUT_DONE)
			return err_while(err, "%s", name);
	}
	printf("done %lld\n", (long long)(clock_now_us() - begin));
	return true;
}

static bool do_turn(struct fleet_store *store, char **words, struct err *err)
{
	struct buf bytes[2];

	if (!read_input(words[2], &bytes[0], err) || !read_input(words[3], &bytes[1], err))
		return false;
	for (int i = 1;; i = !i) {
		if (fleet_store_put(store, words[1], buf_str(&bytes[i]), FLEET_REPLACE,
				    err) != FLEET_PUT_DONE)
			return false;
		puts("turned");
	}
}

static bool do_remove(struct fleet_store *store, char **words, struct err *err)
{
	if (!fleet_store_remove(store, words[1], err))
		return false;
	puts("done");
	return true;
}

static const struct {
	const char *name;
	int words;
	bool (*run)(struct fleet_store *store, char **words, struct err *err);
} commands[] = {
	{"put", 4, do_put},       {"blob", 2, do_blob}, {"fetch", 3, do_fetch},
	{"get", 3, do_get},       {"list", 1, do_list}, {"race", 4, do_race},
	{"many", 4, do_many},     {"fill", 3, do_fill}, {"turn", 4, do_turn},
	{"remove", 2, do_remove},
};

static bool run_line(struct fleet_store *store, char *line, struct err *err)
{
	char *words[WORDS_MAX + 1] = {NULL};
	char *rest = line;
	int count = 0;

	while (count < WORDS_MAX && (words[count] = strtok_r(rest, " \n", &rest)) != NULL)
		count++;
	for (size_t i = 0; count > 0 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, words[0]) == 0 && count >= commands[i].words)
			return commands[i].run(store, words, err);
	return err_set(err, EINVAL, "no such command");
}

int main(int argc, char **argv)
{
	struct fleet_store *store = NULL;
	struct err err = {0};
	char line[4096];

	if (argc != 3)
		return 2;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (!fleet_store_open(argv[1], argv[2][0] == 'w', &store, &err)) {
		printf("failed %d %s\n", err.code, err.text);
		return 1;
	}
	printf("open %s\n", fleet_store_where(store));
	while (fgets(line, sizeof(line), stdin) != NULL)
		if (!run_line(store, line, &err))
			printf("failed %d %s\n", err.code, err.text);
	fleet_store_close(store);
	return 0;
}
