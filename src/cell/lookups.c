/* lookups: reads datagrams to a name server, and the kernel's counters of a network. */
#include "cell/lookups.h"

#include "base/buf.h"
#include "base/fd.h"
#include "proxy/resolver.h"
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	IP_VERSION = 4,
	IP_HEADER_MIN = 20,
	UDP_HEADER = 8,
	/*
	 * A limit above the size of the socket buffer: a program may go on asking while
	 * we read.
	 */
	DATAGRAMS_MAX = 1024,
	FDINFO_MAX = 4 << 10,
	COUNTS_MAX = 64 << 10,
};

/*
 * Is HOST a name of the cell itself? A program that asks a name server for such a name
 * lacks no host.
 */
static bool is_cells_own(const struct network_host *host)
{
	return strcmp(host->text, "localhost") == 0 ||
	       str_ends(str_of(host->text), STR(".localhost")) ||
	       strcmp(host->text, SANDBOX_HOST_NAME) == 0;
}

bool lookups_parse(struct str packet, struct network_host *host)
{
	const unsigned char first =
		packet.size > 0 ? (unsigned char)packet.data[0] : (unsigned char)0;
	const size_t headers = 4 * (size_t)(first & 0x0f) + UDP_HEADER;

	return first >> 4 == IP_VERSION && headers >= IP_HEADER_MIN + UDP_HEADER &&
	       packet.size > headers &&
	       resolver_dns_read_question(str_part(packet, headers, packet.size), host) &&
	       !is_cells_own(host);
}

void lookups_read(int fd, void (*each)(void *context, const struct network_host *host),
		  void *context)
{
	char packet[SANDBOX_QUESTION_MAX];
	struct network_host host;

	for (int i = 0; i < DATAGRAMS_MAX; i++) {
		const ssize_t size = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

		if (size < 0)
			return;
		if (lookups_parse((struct str){packet, (size_t)size}, &host))
			each(context, &host);
	}
}

/* The pid behind PIDFD. 0: the process has ended or lies outside our pid namespace. */
static long pid_of(int pidfd)
{
	char path[64];
	struct buf text;
	long pid = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	buf_init(&text, FDINFO_MAX);
	if (fd_read_file(path, FDINFO_MAX, &text, NULL)) {
		const size_t at = str_find(buf_str(&text), STR("\nPid:\t"), 0);

		if (at != (size_t)-1)
			pid = strtol(text.data + at + sizeof("\nPid:\t") - 1, NULL, 10);
	}
	buf_fini(&text);
	return pid > 0 ? pid : 0;
}

/*
 * Find the count of NAME. "Ip: A B C" is a line of names, "Ip: 1 2 3" its line of
 * numbers.
 */
static bool count_named(struct str text, const char *name, uint64_t *count)
{
	struct str names, numbers, word, number;

	if (!str_next_line(&text, &names) || !str_next_line(&text, &numbers))
		return false;
	while (str_next_word(&names, &word) && str_next_word(&numbers, &number)) {
		if (str_is(word, name)) {
			*count = strtoull(number.data, NULL, 10);
			return true;
		}
	}
	return false;
}

/* "Ip6OutNoRoutes   7" on a line of its own. */
static uint64_t count_of_six(struct str text)
{
	struct str line, word;

	while (str_next_line(&text, &line)) {
		if (str_next_word(&line, &word) && str_is(word, "Ip6OutNoRoutes") &&
		    str_next_word(&line, &word))
			return strtoull(word.data, NULL, 10);
	}
	return 0;
}

bool lookups_count_unrouted(int pidfd, uint64_t *count)
{
	const long pid = pid_of(pidfd);
	uint64_t four = 0, six = 0;
	char path[64];
	struct buf text;

	if (pid == 0)
		return false;
	buf_init(&text, COUNTS_MAX);
	(void)snprintf(path, sizeof(path), "/proc/%ld/net/snmp", pid);
	bool ok = fd_read_file(path, COUNTS_MAX, &text, NULL) &&
		  count_named(buf_str(&text), "OutNoRoutes", &four);
	buf_clear(&text);
	/* A kernel without IPv6 has no such file. */
	(void)snprintf(path, sizeof(path), "/proc/%ld/net/snmp6", pid);
	if (ok && fd_read_file(path, COUNTS_MAX, &text, NULL))
		six = count_of_six(buf_str(&text));
	buf_fini(&text);
	*count = four + six;
	return ok;
}
