/* outlet_tools: see outlet_tools.h. */
#include "outlet_tools.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "policy/network.h"
#include "tool/call.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAIT_MS = 30000, ANSWER_MAX = 512, CREDENTIALS = 42 };

/* Where the proxy is, and "glovebox:TOKEN", off the call's environment. */
static bool proxy_of(const struct call *call, uint16_t *port, char credentials[CREDENTIALS])
{
	for (const char *const *at = call->environment; *at != NULL; at++) {
		if (strncmp(*at, "HTTP_PROXY=http://", 18) != 0)
			continue;
		(void)snprintf(credentials, CREDENTIALS, "%.41s", *at + 18);
		return network_parse_port(str_of(strrchr(*at, ':') + 1), port);
	}
	return false;
}

static bool is_readable(int fd)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};

	return poll(&wanted, 1, WAIT_MS) > 0;
}

/* A tunnel to HOST by CREDENTIALS, and the proxy's answer. */
static int tunnel(uint16_t port, const char *credentials, const char *host,
		  char answer[ANSWER_MAX])
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons(port),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct buf text;
	ssize_t n;

	buf_init(&text, 4096);
	(void)buf_addf(&text, "CONNECT %s HTTP/1.1\r\nProxy-Authorization: Basic ", host);
	(void)buf_base64_add(str_of(credentials), &text);
	(void)buf_adds(&text, "\r\n\r\n");
	answer[0] = '\0';
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    write(fd, text.data, text.size) == (ssize_t)text.size && is_readable(fd)) {
		n = read(fd, answer, ANSWER_MAX - 1);
		answer[n > 0 ? n : 0] = '\0';
	}
	buf_fini(&text);
	return fd;
}

static enum result_status ask(struct call *call, struct tool_result *result)
{
	const char *given = call_text(call, "credentials");
	char own[CREDENTIALS], answer[ANSWER_MAX];
	uint16_t port;

	if (!proxy_of(call, &port, own))
		return tool_fail(result, "no proxy");
	auto_close int fd =
		tunnel(port, given != NULL ? given : own, call_text(call, "host"), answer);
	(void)buf_addf(&result->text, "%s %.12s", own, answer);
	return fd >= 0 ? tool_done(result) : tool_fail(result, "no socket");
}

static const struct sockaddr_un meeting = {.sun_family = AF_UNIX, .sun_path = "/tmp/.meet"};

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Open a tunnel, hand it to `take`, and end. */
static enum result_status give(struct call *call, struct tool_result *result)
{
	char own[CREDENTIALS], answer[ANSWER_MAX], byte = 'x';
	union rights rights = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	auto_close int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint16_t port;

	if (!proxy_of(call, &port, own))
		return tool_fail(result, "no proxy");
	auto_close int fd = tunnel(port, own, call_text(call, "host"), answer);
	while (connect(other, (const struct sockaddr *)&meeting, sizeof(meeting)) < 0) {
		if (call_stopped(call))
			return call_stop_result(call, result);
	}
	struct cmsghdr *first = CMSG_FIRSTHDR(&message);
	first->cmsg_level = SOL_SOCKET;
	first->cmsg_type = SCM_RIGHTS;
	first->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(first), &fd, sizeof(fd));
	if (sendmsg(other, &message, MSG_NOSIGNAL) != 1 || read(other, &byte, 1) != 1)
		return tool_fail(result, "nobody took it");
	(void)buf_addf(&result->text, "%.12s", answer);
	return tool_done(result);
}

static enum result_status take(struct call *call, struct tool_result *result)
{
	char byte = 0;
	union rights rights = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = -1;

	(void)call;
	if (bind(listener, (const struct sockaddr *)&meeting, sizeof(meeting)) < 0 ||
	    listen(listener, 1) < 0)
		return tool_fail(result, "%s", strerror(errno));
	auto_close int other = accept(listener, NULL, NULL);
	if (recvmsg(other, &message, MSG_CMSG_CLOEXEC) != 1 ||
	    CMSG_FIRSTHDR(&message) == NULL)
		return tool_fail(result, "nothing was given");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		(void)buf_adds(&result->text, "alive ");
	(void)!write(other, "k", 1);
	(void)buf_adds(&result->text,
		       is_readable(fd) && recv(fd, &byte, 1, 0) <= 0 ? "ended" : "goes on");
	(void)close(fd);
	return tool_done(result);
}

static const struct row ask_params[] = {
	{"host", ROW_TEXT, true, "host:port"},
	{"credentials", ROW_TEXT, false, "Others than one's own"},
	{0},
};
static const struct row no_params[] = {{0}};

static const struct tool ask_tool = {.name = "ask",
				     .description = "Ask the proxy.",
				     .example = "{\"host\": \"a.example:443\"}",
				     .params = ask_params,
				     .effects = EFFECT_RUNS,
				     .timeout_s = 60,
				     .execute = ask};
static const struct tool give_tool = {.name = "give",
				      .description = "Give a tunnel away.",
				      .example = "{\"host\": \"a.example:443\"}",
				      .params = ask_params,
				      .effects = EFFECT_RUNS,
				      .timeout_s = 60,
				      .execute = give};
static const struct tool take_tool = {.name = "take",
				      .description = "Take a tunnel.",
				      .example = "{}",
				      .params = no_params,
				      .effects = EFFECT_RUNS,
				      .timeout_s = 60,
				      .execute = take};
const struct tool *const outlet_tools[] = {&ask_tool, &give_tool, &take_tool, NULL};
