/* http_plain: links to a server, and what is asked over them; see http_plain.h. */
#include "model/http_plain.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "model/http_answer.h"
#include "model/http_reader.h"

enum {
	/* One answer's events mostly come in one piece. */
	READ_SIZE = 16 << 10,
	/* So much is taken in before a stop is looked for again. */
	READS_MAX = 64,
	HEAD_ROOM = 4 << 10,
	HEAD_MAX = 256 << 10,
	PORT_DEFAULT = 80,
	PORT_DIGITS = 5,
	/* After the answer's end: time for the closing bytes, so that the link can be kept. */
	LINGER_MS = 50,
	/* The longest wait: a look at the clock when no deadline is nearer. */
	LOOK_MS = 60000,
};

/* Where a URL leads, as parts of it. */
struct where {
	struct str authority, path; /* the path is "" for "/" */
	uint16_t port;
	bool v4, v6; /* addresses that were not tried yet */
};

/* A request on its way and its answer. */
struct link {
	struct where where;
	int fd;
	bool connected, kept; /* kept: of an earlier request */
	struct buf head;
	struct str body;
	size_t sent;
	struct http_reader reader;
};

struct http_plain {
	int fd; /* kept; -1: none */
	char *authority;
};

enum progress { GOING, WHOLE, ENDED };

static bool where_host(struct str *rest, struct where *where)
{
	static const struct {
		const char *name;
		bool v4, v6;
	} hosts[] = {{"127.0.0.1", true, false},
		     {"[::1]", false, true},
		     {"localhost", true, true}};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		if (!str_starts(*rest, str_of(hosts[i].name)))
			continue;
		where->v4 = hosts[i].v4;
		where->v6 = hosts[i].v6;
		*rest = str_part(*rest, strlen(hosts[i].name), rest->size);
		return true;
	}
	return false;
}

static bool where_port(struct str *rest, struct where *where)
{
	unsigned port = 0;
	size_t at = 1;

	where->port = PORT_DEFAULT;
	if (rest->size == 0 || rest->data[0] != ':')
		return true;
	while (at < rest->size && at <= PORT_DIGITS && rest->data[at] >= '0' &&
	       rest->data[at] <= '9')
		port = port * 10 + (unsigned)(rest->data[at++] - '0');
	*rest = str_part(*rest, at, rest->size);
	where->port = (uint16_t)port;
	return port > 0 && port <= UINT16_MAX;
}

static bool where_read(const char *url, struct where *where)
{
	struct str rest = str_of(url);
	const char *begin;

	*where = (struct where){0};
	if (!str_starts(rest, STR("http://")))
		return false;
	rest = str_part(rest, strlen("http://"), rest.size);
	begin = rest.data;
	if (!where_host(&rest, where) || !where_port(&rest, where))
		return false;
	where->authority = (struct str){begin, (size_t)(rest.data - begin)};
	where->path = rest;
	/* What would not be a path as it stands, or end the line, is for libcurl to judge. */
	for (size_t i = 0; i < rest.size; i++) {
		if (rest.data[i] <= ' ' || rest.data[i] >= 0x7f || rest.data[i] == '#')
			return false;
	}
	return rest.size == 0 || rest.data[0] == '/';
}

bool http_plain_takes(const char *url)
{
	struct where where;

	return where_read(url, &where);
}

static bool link_connect_to(struct link *link, bool v6, struct err *err)
{
	const struct sockaddr_in here4 = {.sin_family = AF_INET,
					  .sin_port = htons(link->where.port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 here6 = {.sin6_family = AF_INET6,
					   .sin6_port = htons(link->where.port),
					   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const struct sockaddr *address =
		v6 ? (const struct sockaddr *)&here6 : (const struct sockaddr *)&here4;
	const socklen_t size = v6 ? sizeof(here6) : sizeof(here4);
	const int on = 1;

	fd_close(&link->fd);
	link->fd = socket(v6 ? AF_INET6 : AF_INET,
			  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (link->fd < 0)
		return err_set(err, EIO, "a socket: %s", strerror(errno));
	(void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	link->connected = connect(link->fd, address, size) == 0;
	return link->connected || errno == EINPROGRESS ||
	       err_set(err, errno == ECONNREFUSED ? ECONNREFUSED : EHOSTUNREACH, "%s",
		       strerror(errno));
}

/* To the next address there is. */
static bool link_connect(struct link *link, struct err *err)
{
	const bool v4 = link->where.v4;

	link->kept = false;
	link->sent = 0;
	http_reader_restart(&link->reader);
	link->where.v4 = false;
	if (v4 && link_connect_to(link, false, err))
		return true;
	if (!link->where.v6)
		return false;
	link->where.v6 = false;
	return link_connect_to(link, true, err);
}

/* The connection is made, or not: then the next. False with ERR when none is left. */
static bool link_connected(struct link *link, struct err *err)
{
	int code = 0;
	socklen_t size = sizeof(code);

	(void)getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &code, &size);
	if (code == 0) {
		link->connected = true;
		return true;
	}
	(void)err_set(err, code == ECONNREFUSED ? ECONNREFUSED : EHOSTUNREACH, "%s",
		      strerror(code));
	return link->where.v6 && link_connect(link, err);
}

/* Send what the kernel takes. False: the other end has closed; it may have said why. */
static bool link_send(struct link *link)
{
	const size_t whole = link->head.size + link->body.size;

	while (link->sent < whole) {
		const size_t of_head =
			link->sent < link->head.size ? link->sent : link->head.size;
		const size_t of_body = link->sent - of_head;
		struct iovec parts[2] = {
			{link->head.data + of_head, link->head.size - of_head},
			/* Only read, but the type is also that of reading into it. */
			{(void *)(uintptr_t)(link->body.data + of_body),
			 link->body.size - of_body},
		};
		const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
		ssize_t n = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		link->sent += (size_t)n;
	}
	return true;
}

/* The server had closed the kept connection before it got this request. */
static bool link_was_stale(const struct link *link)
{
	return link->kept && !link->reader.started;
}

static enum progress link_ended(struct link *link, bool whole, struct err *err)
{
	if (link_was_stale(link))
		return link_connect(link, err) ? GOING : ENDED;
	if (whole)
		return http_reader_end(&link->reader, err) == HTTP_READ_DONE ? WHOLE
									     : ENDED;
	(void)err_set(err, EPROTO, "the connection broke: %s", strerror(errno));
	return ENDED;
}

static enum progress link_read(struct link *link, struct err *err)
{
	char bytes[READ_SIZE];

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = recv(link->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		enum http_read read;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return GOING;
		if (n <= 0)
			return link_ended(link, n == 0, err);
		read = http_reader_feed(&link->reader, (struct str){bytes, (size_t)n}, err);
		if (read == HTTP_READ_DONE)
			return WHOLE;
		if (read != HTTP_READ_MORE)
			return ENDED;
		if ((size_t)n < sizeof(bytes))
			return GOING;
	}
	return GOING;
}

/* EVENTS are what poll said of the link. ENDED: with ERR, unless the reader was stopped. */
static enum progress link_step(struct link *link, short events, struct err *err)
{
	if (!link->connected) {
		if ((events & (POLLOUT | POLLERR | POLLHUP)) == 0)
			return GOING;
		if (!link_connected(link, err))
			return ENDED;
		if (!link->connected)
			return GOING;
	}
	/* Who has closed its end may have answered first. */
	if (!link_send(link))
		link->sent = link->head.size + link->body.size;
	return (events & (POLLIN | POLLERR | POLLHUP)) != 0 ? link_read(link, err) : GOING;
}

static short link_events(const struct link *link)
{
	bool sends = link->sent < link->head.size + link->body.size;

	if (!link->connected)
		return POLLOUT;
	return sends ? POLLIN | POLLOUT : POLLIN;
}

static void link_init(struct link *link, const char *method, const char *accept)
{
	const struct where *where = &link->where;

	link->fd = -1;
	http_reader_init(&link->reader);
	buf_init(&link->head, HEAD_MAX);
	(void)buf_addf(&link->head, "%s %.*s HTTP/1.1\r\nHost: %.*s\r\n", method,
		       (int)(where->path.size > 0 ? where->path.size : 1),
		       where->path.size > 0 ? where->path.data : "/",
		       (int)where->authority.size, where->authority.data);
	(void)buf_addf(&link->head, "User-Agent: glovebox\r\nAccept: %s\r\n", accept);
}

static void link_add_body(struct link *link, struct str body)
{
	(void)buf_addf(&link->head,
		       "Content-Type: application/json\r\nContent-Length: %zu\r\n",
		       body.size);
	link->body = body;
}

static void link_fini(struct link *link)
{
	fd_close(&link->fd);
	http_reader_fini(&link->reader);
	/* The key is in it. */
	if (link->head.data != NULL)
		explicit_bzero(link->head.data, link->head.size);
	buf_fini(&link->head);
}

struct http_plain *http_plain_new(void)
{
	struct http_plain *plain = memory_alloc(sizeof(*plain));

	plain->fd = -1;
	return plain;
}

void http_plain_free(struct http_plain *plain)
{
	if (plain == NULL)
		return;
	fd_close(&plain->fd);
	free(plain->authority);
	free(plain);
}

/* The kept connection, when it leads there and nothing has come over it since. */
static void plain_take(struct http_plain *plain, struct link *link)
{
	char byte;

	if (plain->fd >= 0 && str_is(link->where.authority, plain->authority) &&
	    recv(plain->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN) {
		link->fd = fd_take(&plain->fd);
		link->connected = link->kept = true;
	}
	fd_close(&plain->fd);
}

static void plain_keep(struct http_plain *plain, struct link *link)
{
	if (!link->reader.keeps || link->sent < link->head.size + link->body.size)
		return;
	free(plain->authority);
	plain->authority = memory_copy_str(link->where.authority);
	plain->fd = fd_take(&link->fd);
}

struct posting {
	struct link link;
	const struct http_request *request;
	struct http_answer *answer;
	enum http_more (*bytes)(void *context, const struct http_answer *answer,
				struct str bytes, struct err *err);
	void *context;
	struct err *err;
	enum http_more more;
	int64_t began_ms, last_ms, enough_ms;
};

static void posting_line(void *context, struct str line)
{
	struct posting *posting = context;

	/* A header line is no sign of life: of those a server has any number. */
	if (str_starts(line, STR("HTTP/"))) {
		http_answer_clear(posting->answer);
		posting->last_ms = clock_now_ms();
	}
	http_answer_line(posting->answer, line);
}

static bool posting_bytes(void *context, struct str bytes)
{
	struct posting *posting = context;

	posting->last_ms = clock_now_ms();
	posting->answer->status = posting->link.reader.status;
	posting->answer->has_bytes = true;
	if (posting->more == HTTP_MORE) {
		posting->more = posting->bytes(posting->context, posting->answer, bytes,
					       posting->err);
		posting->enough_ms = posting->last_ms;
	}
	return posting->more != HTTP_GIVE_UP;
}

/* Milliseconds until a deadline, 0 when one is over; TOO_LATE says which. */
static int posting_wait(const struct posting *posting, bool *connects)
{
	const struct http_request *request = posting->request;
	const int64_t now = clock_now_ms();
	int64_t wait = LOOK_MS, left;

	*connects = !posting->link.connected && request->connect_timeout_s > 0;
	if (*connects) {
		left = posting->began_ms + (int64_t)(request->connect_timeout_s * 1000) -
		       now;
		wait = left < wait ? left : wait;
		*connects = left <= 0;
	}
	if (request->idle_timeout_s > 0) {
		left = posting->last_ms + (int64_t)(request->idle_timeout_s * 1000) - now;
		wait = left < wait ? left : wait;
	}
	if (posting->more == HTTP_ENOUGH) {
		left = posting->enough_ms + LINGER_MS - now;
		wait = left < wait ? left : wait;
	}
	return wait > 0 ? (int)wait : 0;
}

static bool posting_late(const struct posting *posting, bool connects)
{
	if (posting->more == HTTP_ENOUGH)
		return true;
	if (connects)
		return err_set(posting->err, EHOSTUNREACH, "no connection in time");
	return err_set(posting->err, ETIMEDOUT, "nothing came for %.3g seconds",
		       posting->request->idle_timeout_s);
}

/* True: the answer is in. *WHOLE: so is all that belongs to it. */
static bool posting_run(struct posting *posting, bool *whole)
{
	struct link *link = &posting->link;
	struct pollfd ends[2] = {{.fd = link->fd},
				 {.fd = posting->request->stop_fd, .events = POLLIN}};
	enum progress progress = link_step(link, 0, posting->err);
	bool connects;

	while (progress == GOING) {
		const int wait_ms = posting_wait(posting, &connects);

		if (wait_ms == 0)
			return posting_late(posting, connects);
		ends[0] = (struct pollfd){.fd = link->fd, .events = link_events(link)};
		ends[1].revents = 0;
		if (poll(ends, 2, wait_ms) < 0 && errno != EINTR)
			return err_set(posting->err, EIO, "poll: %s", strerror(errno));
		if (ends[1].fd >= 0 && ends[1].revents != 0)
			return err_set(posting->err, ECANCELED, "stopped");
		if (ends[0].revents != 0)
			progress = link_step(link, ends[0].revents, posting->err);
	}
	*whole = progress == WHOLE;
	return *whole || posting->more == HTTP_ENOUGH;
}

static void posting_head(struct posting *posting)
{
	const struct http_request *request = posting->request;
	struct buf *head = &posting->link.head;
	const size_t key = request->key != NULL ? strlen(request->key) : 0;

	/* A key is copied once: what grows leaves copies. */
	(void)buf_reserve(head, HEAD_ROOM + key);
	link_add_body(&posting->link, request->body);
	for (const char *const *line = request->headers; line && *line; line++)
		(void)buf_addf(head, "%s\r\n", *line);
	if (key > 0) {
		(void)buf_adds(head, request->key_header);
		(void)buf_adds(head, request->key);
		(void)buf_adds(head, "\r\n");
	}
	(void)buf_adds(head, "\r\n");
}

bool http_plain_post(struct http_plain *plain, const struct http_request *request,
		     struct http_answer *answer,
		     enum http_more (*bytes)(void *context, const struct http_answer *answer,
					     struct str bytes, struct err *err),
		     void *context, struct err *err)
{
	const int64_t now = clock_now_ms();
	struct posting posting = {
		.request = request,
		.answer = answer,
		.bytes = bytes,
		.context = context,
		.err = err,
		.more = HTTP_MORE,
		.began_ms = now,
		.last_ms = now,
	};
	struct link *link = &posting.link;
	bool ok, whole = false;

	http_answer_clear(answer);
	if (!where_read(request->url, &link->where))
		return err_set(err, EINVAL, "%s is no address of this machine",
			       request->url);
	link_init(link, "POST", "text/event-stream, application/json");
	posting_head(&posting);
	link->reader.line = posting_line;
	link->reader.bytes = posting_bytes;
	link->reader.context = &posting;
	plain_take(plain, link);
	ok = (link->kept || link_connect(link, err)) && posting_run(&posting, &whole);
	if (ok)
		answer->status = link->reader.status;
	if (whole)
		plain_keep(plain, link);
	link_fini(link);
	return ok;
}

/* One of several short questions. */
struct asking {
	struct link link;
	struct http_question *question;
	bool going;
};

static void asking_line(void *context, struct str line)
{
	(void)context, (void)line;
}

static bool asking_bytes(void *context, struct str bytes)
{
	struct asking *asking = context;

	return buf_addstr(&asking->question->answer, bytes);
}

static void asking_begin(struct asking *asking)
{
	struct link *link = &asking->link;

	link_init(link, asking->question->body.size > 0 ? "POST" : "GET", "*/*");
	if (asking->question->body.size > 0)
		link_add_body(link, asking->question->body);
	(void)buf_adds(&link->head, "Connection: close\r\n\r\n");
	link->reader.line = asking_line;
	link->reader.bytes = asking_bytes;
	link->reader.context = asking;
	asking->question->status = 0;
	asking->going = link_connect(link, NULL);
}

static void asking_step(struct asking *asking, short events)
{
	const enum progress progress = link_step(&asking->link, events, NULL);

	asking->going = progress == GOING;
	if (progress == WHOLE)
		asking->question->status = asking->link.reader.status;
}

/* One wait for all that are under way. False: none is, or it is too late. */
static bool asking_turn(struct asking *asked, struct pollfd *ends, size_t count,
			int64_t deadline_ms)
{
	const int wait_ms = clock_poll_timeout(deadline_ms);
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		ends[i] = (struct pollfd){.fd = asked[i].going ? asked[i].link.fd : -1,
					  .events = link_events(&asked[i].link)};
		any = any || asked[i].going;
	}
	if (!any || wait_ms == 0 || (poll(ends, count, wait_ms) < 0 && errno != EINTR))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ends[i].fd >= 0 && ends[i].revents != 0)
			asking_step(&asked[i], ends[i].revents);
	}
	return true;
}

void http_plain_ask_all(struct http_question *questions, size_t count, int64_t deadline_ms)
{
	auto_free struct asking *asked = memory_array(count + 1, sizeof(*asked));
	auto_free struct pollfd *ends = memory_array(count + 1, sizeof(*ends));
	size_t mine = 0;

	for (size_t i = 0; i < count; i++) {
		if (!where_read(questions[i].url, &asked[mine].link.where))
			continue;
		asked[mine].question = &questions[i];
		asking_begin(&asked[mine++]);
	}
	while (asking_turn(asked, ends, mine, deadline_ms))
		continue;
	for (size_t i = 0; i < mine; i++)
		link_fini(&asked[i].link);
}
