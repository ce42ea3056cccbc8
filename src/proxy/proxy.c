/*
 * proxy: the role from its start to its end. The proxy first reads the files it needs.
 * Then it locks itself in, reports that it is ready, and runs its loop until the front is
 * gone.
 */

#include "proxy/proxy.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/network.h"
#include "proxy/connection.h"
#include "sandbox/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROXY_ARGUMENTS = 4 };

/*
 * Prints and reads the messages between front and proxy, and the data that the proxy
 * gets at its start.
 */

bool proxy_send(int control, const struct proxy_message *message, int fd)
{
	return fd_message_send(control, message, sizeof(*message), &fd, fd >= 0 ? 1 : 0,
			       MSG_DONTWAIT);
}

bool proxy_receive(int control, struct proxy_message *message, int *fd, struct err *err)
{
	struct proxy_message read = {0};
	int came;

	if (!fd_message_receive(control, &read, sizeof(read), &came, 1, MSG_DONTWAIT))
		return errno == EAGAIN
			       ? err_set(err, EAGAIN, "no message yet")
			       : err_set(err, ECONNRESET, "the network proxy has ended");
	read.text[sizeof(read.text) - 1] = '\0';
	read.remedy[sizeof(read.remedy) - 1] = '\0';
	*message = read;
	*fd = came;
	return true;
}

bool proxy_print_spec(const struct proxy_spec *spec, struct buf *out)
{
	auto_value struct value *object = value_new_object();

	value_set(object, "network", value_new_texts(spec->network));
	value_set_text(object, "rule", spec->rule);
	value_set_boolean(object, "asks", spec->asks);
	if (spec->resolver != NULL)
		value_set_text(object, "resolver", spec->resolver);
	return value_print(object, 0, out);
}

/* Keeps the tokens of the commands that run now. */

static bool grants_add(struct proxy *proxy, uint64_t call, const char *token)
{
	if (proxy->grant_count >= GRANTS_MAX || strlen(token) != PROXY_TOKEN)
		return false;
	proxy->grants = memory_grow(proxy->grants, proxy->grant_count + 1,
				    sizeof(proxy->grants[0]));
	struct grant *grant = &proxy->grants[proxy->grant_count++];
	*grant = (struct grant){.call = call};
	memcpy(grant->token, token, PROXY_TOKEN);
	return true;
}

static void grants_remove(struct proxy *proxy, uint64_t call)
{
	struct grant *grant;

	/* A call that moved to a second worker had two grants. */
	while ((grant = proxy_grants_of(proxy, call)) != NULL)
		*grant = proxy->grants[--proxy->grant_count];
}

struct grant *proxy_grants_of(struct proxy *proxy, uint64_t call)
{
	for (size_t i = 0; i < proxy->grant_count; i++) {
		if (proxy->grants[i].call == call)
			return &proxy->grants[i];
	}
	return NULL;
}

/* Takes the same time however many bytes are equal. */
static bool is_same(const char *a, const char *b)
{
	unsigned different = 0;

	for (size_t i = 0; i < PROXY_TOKEN; i++)
		different |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return different == 0;
}

struct grant *proxy_grants_find(struct proxy *proxy, const char *token)
{
	if (strlen(token) != PROXY_TOKEN)
		return NULL;
	for (size_t i = 0; i < proxy->grant_count; i++) {
		if (is_same(proxy->grants[i].token, token))
			return &proxy->grants[i];
	}
	return NULL;
}

/* Two sockets a connection, two a lookup, and the listeners. */
enum { OPEN_FILES = 4 * CONNECTIONS_MAX + 64 };

static void listener_ready(struct source *source, uint32_t events)
{
	(void)events;
	connection_accept(source->context);
}

static const struct network_entry *entry_of_port(const struct proxy *proxy, uint16_t port)
{
	for (size_t i = 0; i < proxy->entry_count; i++) {
		if (proxy->entries[i].carried && proxy->entries[i].port == port)
			return &proxy->entries[i];
	}
	return NULL;
}

static void listener_add(struct proxy *proxy, uint16_t port, int fd)
{
	struct listener *listener = &proxy->listeners[proxy->listener_count];
	const struct network_entry *entry = port != 0 ? entry_of_port(proxy, port) : NULL;

	if (fd < 0 || (port != 0 && entry == NULL) ||
	    proxy->listener_count == sizeof(proxy->listeners) / sizeof(proxy->listeners[0])) {
		fd_close(&fd);
		return;
	}
	*listener = (struct listener){.proxy = proxy, .entry = entry};
	listener->source =
		(struct source){.fd = fd, .ready = listener_ready, .context = listener};
	proxy->listener_count++;
	(void)poller_want(&proxy->poller, &listener->source, EPOLLIN);
}

void proxy_hear(struct proxy *proxy)
{
	struct proxy_message message;
	struct err err;
	int fd;

	while (proxy_receive(proxy->control.fd, &message, &fd, &err)) {
		if (message.kind == PROXY_LISTENER) {
			listener_add(proxy, message.port, fd);
			continue;
		}
		fd_close(&fd);
		if (message.kind == PROXY_GRANT) {
			(void)grants_add(proxy, message.call, message.text);
		} else if (message.kind == PROXY_REVOKE) {
			grants_remove(proxy, message.call);
			connection_end_all(proxy, message.call);
		} else if (message.kind == PROXY_DECIDED) {
			connection_client_decided(proxy, message.connection,
						  message.port == 1);
		}
	}
	if (err.code != EAGAIN)
		_exit(0); /* the front is gone */
}

static void control_ready(struct source *source, uint32_t events)
{
	(void)events;
	proxy_hear(source->context);
}

static bool spec_read(struct proxy *proxy, int fd, struct value **object, struct err *err)
{
	struct buf text;
	bool ok;

	buf_init(&text, PROXY_SPEC_MAX);
	ok = fd_read_all(fd, &text, "the proxy's specification", err) &&
	     value_parse(buf_str(&text), 0, object, err);
	buf_fini(&text);
	if (!ok)
		return false;
	const struct value *network = value_member(*object, "network");
	const char *rule = value_text(value_member(*object, "rule"));
	proxy->asks = value_is_true(value_member(*object, "asks"));
	proxy->rule = memory_copy(rule != NULL ? rule : "network");
	proxy->entries = memory_array(value_count(network) + 1, sizeof(proxy->entries[0]));
	for (size_t i = 0; i < value_count(network); i++) {
		if (!network_parse_entry(value_str(value_item(network, i)),
					 &proxy->entries[proxy->entry_count++], err))
			return err_while(err, "%s", proxy->rule);
	}
	return true;
}

/* Missing and unreadable files count as empty. */
static void names_read(struct proxy *proxy, const char *resolver)
{
	struct names *names = &proxy->resolver.names;
	struct buf text;

	names_init(names);
	buf_init(&text, NAMES_FILE_MAX);
	if (resolver == NULL || !names_set_server(names, resolver)) {
		(void)fd_read_file("/etc/resolv.conf", NAMES_FILE_MAX, &text, NULL);
		names_read_servers(names, buf_str(&text));
	}
	buf_clear(&text);
	if (fd_read_file("/etc/hosts", NAMES_FILE_MAX, &text, NULL))
		names_read_hosts(names, buf_str(&text), proxy->entries, proxy->entry_count);
	buf_fini(&text);
}

static void fail(int control, const struct err *err)
{
	struct proxy_message message = {.kind = PROXY_FAILED};

	(void)snprintf(message.remedy, sizeof(message.remedy), "%.*s",
		       (int)sizeof(message.remedy) - 1, err->text);
	(void)proxy_send(control, &message, -1);
	_exit(1);
}

static void serve(struct proxy *proxy)
{
	for (;;) {
		poller_turn(&proxy->poller);
		connection_free_dead(proxy);
	}
}

void proxy_role(int argc, char **argv)
{
	struct proxy_message ready = {.kind = PROXY_READY};
	auto_value struct value *object = NULL;
	struct proxy *proxy;
	struct err err;
	int control;

	if (argc != PROXY_ARGUMENTS || strcmp(argv[0], PROXY_ROLE) != 0)
		return;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, PROXY_ROLE);
	proxy = memory_alloc(sizeof(*proxy));
	control = fd_of_text(argv[2]);
	proxy->resolver.poller = &proxy->poller;
	proxy->control =
		(struct source){.fd = control, .ready = control_ready, .context = proxy};
	if (!spec_read(proxy, fd_of_text(argv[1]), &object, &err))
		fail(control, &err);
	names_read(proxy, value_text(value_member(object, "resolver")));
	const struct sandbox_outside walls = {.parent_pidfd = fd_of_text(argv[3]),
					      .keep = control,
					      .open_files = OPEN_FILES};
	if (!outside_enter(&walls, &err))
		fail(control, &err);
	if (!poller_open(&proxy->poller) ||
	    !poller_want(&proxy->poller, &proxy->control, EPOLLIN)) {
		(void)err_set(&err, errno, "the proxy's loop: %s", strerror(errno));
		fail(control, &err);
	}
	(void)proxy_send(control, &ready, -1);
	serve(proxy);
	_exit(0);
}
