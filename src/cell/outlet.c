/*
 * outlet: starts the proxy, handles its messages, and makes the variables that programs
 * read. It also reads datagrams to a name server, and the kernel's counters of a network.
 */
#include "cell/outlet.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "cell/publish.h"
#include "process/role.h"
#include "proxy/counts.h"
#include "proxy/proxy.h"
#include "proxy/resolver.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The names of all tcp:// entries, and a few more. */
enum { AROUND_MAX = (NETWORK_CARRIED_MAX + 1) * NETWORK_TEXT_MAX };

struct outlet {
	struct outlet_options options;
	int control, pidfd;
	struct watch watch;
	uint16_t port; /* the port in the cell that takes requests */
	bool ready;
	struct err broken;
	struct counts *counts; /* what the proxy carries */
};

static void tell_owner(struct outlet *outlet)
{
	outlet->options.changed(outlet->options.owner);
}

static void break_outlet(struct outlet *outlet, const char *why)
{
	if (outlet->broken.text[0] == '\0')
		(void)err_set(&outlet->broken, ECHILD, "%s", why);
	loop_remove(&outlet->watch);
	if (!outlet->ready)
		tell_owner(outlet);
}

void outlet_hear(struct outlet *outlet)
{
	struct proxy_message message;
	struct err err = {0};
	int fd;

	if (outlet->broken.text[0] != '\0')
		return;
	while (proxy_receive(outlet->control, &message, &fd, &err)) {
		fd_close(&fd);
		if (message.kind == PROXY_READY) {
			outlet->ready = true;
			tell_owner(outlet);
		} else if (message.kind == PROXY_FAILED) {
			break_outlet(outlet, message.remedy);
		} else if (message.kind == PROXY_REFUSED) {
			outlet->options.refused(outlet->options.context, message.call,
						message.text,
						outlet->options.spec->network_rule,
						message.remedy);
		} else if (message.kind == PROXY_ASKED) {
			outlet->options.asked(outlet->options.context, message.call,
					      message.connection, message.text,
					      message.remedy);
		}
	}
	if (err.code != EAGAIN)
		break_outlet(outlet, err.text);
}

static void control_ready(struct watch *watch, short events)
{
	(void)events;
	outlet_hear(watch->context);
}

static bool proxy_start(struct outlet *outlet, int control, struct err *err)
{
	const struct cell_spec *spec = outlet->options.spec;
	const struct proxy_spec told = {.network = spec->network.items,
					.rule = spec->network_rule,
					.asks = spec->asks_network,
					.brokered = spec->brokered.items,
					.resolver = spec->resolver};
	struct buf text;
	bool ok;

	buf_init(&text, PROXY_SPEC_MAX);
	ok = (proxy_print_spec(&told, &text) ||
	      err_set(err, E2BIG, "the list of hosts is too long")) &&
	     role_start_steered(outlet->options.program, PROXY_ROLE, buf_str(&text),
				control, &outlet->pidfd, err);
	buf_fini(&text);
	return ok;
}

static bool counts_begin(struct outlet *outlet, struct err *err)
{
	const struct proxy_message message = {.kind = PROXY_COUNTS};
	auto_close int fd = -1;

	return counts_make(&fd, &outlet->counts, err) &&
	       (proxy_send(outlet->control, &message, fd) ||
		err_set(err, errno, "telling the proxy where to count: %s",
			strerror(errno)));
}

bool outlet_open(const struct outlet_options *options, struct outlet **outlet,
		 struct err *err)
{
	struct outlet *made = memory_alloc(sizeof(*made));
	int ends[2];

	made->options = *options;
	made->control = -1;
	made->pidfd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		free(made);
		return err_set(err, errno, "the proxy's control socket: %s",
			       strerror(errno));
	}
	made->control = ends[0];
	bool ok = proxy_start(made, ends[1], err) && counts_begin(made, err);
	fd_close(&ends[1]);
	if (!ok) {
		outlet_close(made);
		return false;
	}
	made->watch = (struct watch){.fd = made->control,
				     .events = POLLIN,
				     .ready = control_ready,
				     .context = made};
	loop_add(options->loop, &made->watch);
	*outlet = made;
	return true;
}

void outlet_close(struct outlet *outlet)
{
	if (outlet == NULL)
		return;
	loop_remove(&outlet->watch);
	fd_close(&outlet->control);
	role_end(&outlet->pidfd, true);
	counts_free(outlet->counts);
	free(outlet);
}

const struct counts *outlet_counts(const struct outlet *outlet)
{
	return outlet->counts;
}

bool outlet_is_ready(const struct outlet *outlet)
{
	return outlet->ready;
}

const char *outlet_broken(const struct outlet *outlet)
{
	return outlet->broken.text[0] != '\0' ? outlet->broken.text : NULL;
}

static void tell(struct outlet *outlet, const struct proxy_message *message, int fd)
{
	/* The socket is full only when the proxy does not read any more. */
	if (outlet_broken(outlet) == NULL && !proxy_send(outlet->control, message, fd))
		break_outlet(outlet, "the network proxy does not listen any more");
}

void outlet_add_listener(struct outlet *outlet, uint16_t port, int *take_fd)
{
	const struct proxy_message message = {.kind = PROXY_LISTENER, .port = port};
	struct sockaddr_in address = {0};
	socklen_t size = sizeof(address);

	if (*take_fd < 0)
		return;
	if (port == 0 && getsockname(*take_fd, (struct sockaddr *)&address, &size) == 0)
		outlet->port = ntohs(address.sin_port);
	tell(outlet, &message, *take_fd);
	fd_close(take_fd);
}

void outlet_publish(struct outlet *outlet, struct publish *publish)
{
	/* All listeners and a policy's tcp:// ones may wait there while the proxy starts. */
	const int room = 512 << 10;

	(void)setsockopt(outlet->control, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	for (size_t i = 0; i < publish->count; i++) {
		const struct proxy_message message = {.kind = PROXY_PUBLISHED,
						      .port = publish->rows[i].port};

		tell(outlet, &message, publish->rows[i].fd);
	}
	publish_close(publish);
}

void outlet_add_inlet(struct outlet *outlet, int *take_fd)
{
	const struct proxy_message message = {.kind = PROXY_INLET};

	tell(outlet, &message, *take_fd);
	fd_close(take_fd);
}

void outlet_add_broker(struct outlet *outlet, int *take_fd)
{
	const struct proxy_message message = {.kind = PROXY_BROKER};

	tell(outlet, &message, *take_fd);
	fd_close(take_fd);
}

static void add_variable(struct value *list, const char *name, const char *text)
{
	struct buf variable;

	buf_init(&variable, AROUND_MAX + 64);
	(void)buf_addf(&variable, "%s=%s", name, text);
	value_append(list, value_new_text(variable.data));
	buf_fini(&variable);
}

/*
 * Print the hosts that programs reach without the proxy: the loopback, and the name of
 * each tcp:// host that no other entry covers.
 */
static void print_around(const struct cell_spec *spec, struct buf *out)
{
	auto_free struct network_entry *entries =
		memory_array(spec->network.count + 1, sizeof(entries[0]));
	size_t count = spec->network.count;

	(void)buf_adds(out, "localhost,127.0.0.1,::1");
	for (size_t i = 0; i < count; i++) {
		if (!network_parse_entry(str_of(spec->network.items[i]), &entries[i], NULL))
			return;
	}
	for (size_t i = 0; i < count; i++) {
		bool proxied = false;

		for (size_t j = 0; j < count && !proxied; j++)
			proxied = network_find(&entries[j], 1, &entries[i].host,
					       entries[j].port) != NULL;
		if (entries[i].carried && entries[i].host.kind == NETWORK_NAME &&
		    !proxied && strcmp(entries[i].host.text, "localhost") != 0)
			(void)buf_addf(out, ",%s", entries[i].host.text);
	}
}

void outlet_grant(struct outlet *outlet, uint64_t call, struct value *list)
{
	/*
	 * In lower and upper case: curl reads http_proxy only, others read the upper case
	 * names.
	 */
	static const char *const to_proxy[] = {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
					       "https_proxy"};
	struct proxy_message message = {.kind = PROXY_GRANT, .call = call};
	char token[PROXY_TOKEN + 1], url[128];
	struct buf around;

	if (outlet_broken(outlet) != NULL || !text_random_hex(token, PROXY_TOKEN))
		return;
	(void)snprintf(message.text, sizeof(message.text), "%s", token);
	tell(outlet, &message, -1);
	(void)snprintf(url, sizeof(url), "http://%s:%s@127.0.0.1:%u", PROXY_USER, token,
		       outlet->port);
	for (size_t i = 0; i < sizeof(to_proxy) / sizeof(to_proxy[0]); i++)
		add_variable(list, to_proxy[i], url);
	buf_init(&around, AROUND_MAX);
	print_around(outlet->options.spec, &around);
	add_variable(list, "NO_PROXY", around.data);
	add_variable(list, "no_proxy", around.data);
	buf_fini(&around);
	/* Node reads the other variables only when this one is set. */
	add_variable(list, "NODE_USE_ENV_PROXY", "1");
}

void outlet_revoke(struct outlet *outlet, uint64_t call)
{
	const struct proxy_message message = {.kind = PROXY_REVOKE, .call = call};

	tell(outlet, &message, -1);
}

void outlet_decide(struct outlet *outlet, uint64_t connection, bool yes)
{
	const struct proxy_message message = {.kind = PROXY_DECIDED,
					      .port = yes,
					      .connection = connection};

	tell(outlet, &message, -1);
}

/* Hosts that nobody reached: the questions for their names, and the lost packets. */

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

bool outlet_parse_lookup(struct str packet, struct network_host *host)
{
	const unsigned char first =
		packet.size > 0 ? (unsigned char)packet.data[0] : (unsigned char)0;
	const size_t headers = 4 * (size_t)(first & 0x0f) + UDP_HEADER;

	return first >> 4 == IP_VERSION && headers >= IP_HEADER_MIN + UDP_HEADER &&
	       packet.size > headers &&
	       resolver_dns_read_question(str_part(packet, headers, packet.size), host) &&
	       !is_cells_own(host);
}

void outlet_read_lookups(int fd,
			 void (*each)(void *context, const struct network_host *host),
			 void *context)
{
	char packet[SANDBOX_QUESTION_MAX];
	struct network_host host;

	for (int i = 0; i < DATAGRAMS_MAX; i++) {
		const ssize_t size = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

		if (size < 0)
			return;
		if (outlet_parse_lookup((struct str){packet, (size_t)size}, &host))
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

bool outlet_count_unrouted(int pidfd, uint64_t *count)
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
