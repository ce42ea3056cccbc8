/* counts: what one process counts, another one reads, and believes no nonsense of it. */
#include "../base/unit.h"

#include "base/fd.h"
#include "proxy/counts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The rows as text, and the sums. */
static void expect(const struct counts *counts, const char *rows, uint64_t in, uint64_t out)
{
	auto_value struct value *list = value_new_array();
	uint64_t came = 0, went = 0;
	struct buf text;

	counts_tell(counts, list, &came, &went);
	buf_init(&text, 64 << 10);
	assert_true(value_print(list, 0, &text));
	if (rows != NULL)
		assert_string_equal(text.data, rows);
	assert_true(came == in && went == out);
	buf_fini(&text);
}

static void another_process_counts(void **state)
{
	struct counts *mine, *theirs;
	struct err err;
	int fd = -1;
	pid_t pid;

	(void)state;
	assert_true(counts_make(&fd, &mine, &err));
	expect(mine, "[]", 0, 0);
	pid = fork();
	if (pid == 0) {
		theirs = counts_take(&fd);
		counts_add(theirs, "a:443", 10, 1);
		counts_add(theirs, "b:80", 0, 5);
		counts_add(theirs, "c:80", 0, 0);
		counts_add(theirs, "a:443", 100, 2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect(mine,
	       "[{\"host\":\"a:443\",\"in\":110,\"out\":3},{\"host\":\"b:80\",\"in\":0,\"out\":5}]",
	       110, 8);
	/* Nobody can make the memory of a reader shorter. */
	assert_int_equal(ftruncate(fd, 0), -1);
	fd_close(&fd);
	counts_free(mine);
	counts_free(NULL);
	counts_add(NULL, "a:443", 1, 1);
}

static void many_hosts_share_the_last_row(void **state)
{
	struct counts *mine, *theirs;
	char host[32];
	struct err err;
	int fd = -1;

	(void)state;
	assert_true(counts_make(&fd, &mine, &err));
	theirs = counts_take(&fd);
	assert_non_null(theirs);
	for (int i = 0; i < 3 * COUNTS_HOSTS; i++) {
		(void)snprintf(host, sizeof(host), "host-%d:443", i);
		counts_add(theirs, host, 1, 2);
	}
	expect(mine, NULL, 3 * COUNTS_HOSTS, 6 * COUNTS_HOSTS);
	assert_string_equal(mine->rows[0].host, "host-0:443");
	assert_string_equal(mine->rows[COUNTS_HOSTS - 1].host, "other hosts");
	assert_true(mine->rows[COUNTS_HOSTS - 1].in == 2 * COUNTS_HOSTS + 1);
	counts_free(theirs);
	counts_free(mine);
}

static void nonsense_of_a_writer_is_no_host(void **state)
{
	struct counts *mine, *theirs;
	struct err err;
	int fd = -1;

	(void)state;
	assert_true(counts_make(&fd, &mine, &err));
	theirs = counts_take(&fd);
	assert_non_null(theirs);
	memset(theirs->rows[0].host, 0xff, sizeof(theirs->rows[0].host));
	theirs->rows[0].in = 7;
	expect(mine, "[{\"host\":\"other hosts\",\"in\":7,\"out\":0}]", 7, 0);
	theirs->rows[0].in = UINT64_MAX;
	expect(mine, "[{\"host\":\"other hosts\",\"in\":9223372036854775807,\"out\":0}]",
	       UINT64_MAX, 0);
	counts_free(theirs);
	counts_free(mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_process_counts),
		cmocka_unit_test(many_hosts_share_the_last_row),
		cmocka_unit_test(nonsense_of_a_writer_is_no_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
