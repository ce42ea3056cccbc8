/* counts: memory that two processes share, with a row of numbers for each host. */

#include "proxy/counts.h"

#include "base/err.h"
#include "base/fd.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char other_hosts[] = "other hosts";

bool counts_make(int *fd, struct counts **counts, struct err *err)
{
	auto_close int made =
		memfd_create("glovebox-counts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;

	/* A file that could become shorter would kill its readers. */
	if (made < 0 || ftruncate(made, sizeof(**counts)) < 0 ||
	    fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_set(err, errno, "memory for counts: %s", strerror(errno));
	memory = mmap(NULL, sizeof(**counts), PROT_READ, MAP_SHARED, made, 0);
	if (memory == MAP_FAILED)
		return err_set(err, errno, "memory for counts: %s", strerror(errno));
	*counts = memory;
	*fd = fd_take(&made);
	return true;
}

struct counts *counts_take(int *take_fd)
{
	void *memory = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE,
			    MAP_SHARED, *take_fd, 0);

	fd_close(take_fd);
	return memory != MAP_FAILED ? memory : NULL;
}

void counts_free(struct counts *counts)
{
	if (counts != NULL)
		(void)munmap(counts, sizeof(*counts));
}

void counts_add(struct counts *counts, const char *host, uint64_t in, uint64_t out)
{
	struct counts_row *row;
	size_t i = 0;

	if (counts == NULL || in + out == 0)
		return;
	while (i + 1 < COUNTS_HOSTS && counts->rows[i].host[0] != '\0' &&
	       strcmp(counts->rows[i].host, host) != 0)
		i++;
	row = &counts->rows[i];
	if (row->host[0] == '\0')
		(void)snprintf(row->host, sizeof(row->host), "%s",
			       i + 1 < COUNTS_HOSTS ? host : other_hosts);
	__atomic_store_n(&row->in, row->in + in, __ATOMIC_RELAXED);
	__atomic_store_n(&row->out, row->out + out, __ATOMIC_RELAXED);
}

static void row_tell(const char *host, uint64_t in, uint64_t out, struct value *list)
{
	struct value *row = value_new_object();

	value_set_text(row, "host", host);
	value_set_integer(row, "in", (int64_t)(in & INT64_MAX));
	value_set_integer(row, "out", (int64_t)(out & INT64_MAX));
	value_append(list, row);
}

void counts_tell(const struct counts *counts, struct value *list, uint64_t *in, uint64_t *out)
{
	for (size_t i = 0; counts != NULL && i < COUNTS_HOSTS; i++) {
		const struct counts_row *row = &counts->rows[i];
		const uint64_t came = __atomic_load_n(&row->in, __ATOMIC_RELAXED);
		const uint64_t went = __atomic_load_n(&row->out, __ATOMIC_RELAXED);
		char host[NETWORK_TEXT_MAX];

		if (came + went == 0)
			continue;
		*in += came;
		*out += went;
		/* The writer may change it meanwhile. */
		memcpy(host, row->host, sizeof(host));
		host[sizeof(host) - 1] = '\0';
		if (list != NULL)
			row_tell(text_is_utf8(str_of(host)) ? host : other_hosts, came,
				 went, list);
	}
}
