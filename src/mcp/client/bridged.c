/* bridged: carries out what a bridge asks for. */
#include "mcp/client/bridged.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/bridge/bridge.h"
#include "mcp/bridge/oauth.h"
#include "mcp/bridge/steer.h"
#include "mcp/client/tokens.h"
#include "policy/address.h"
#include "policy/network.h"
#include "process/loop.h"
#include "session/session.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READ_SIZE = 4096,
	WORDS_MAX = 2 << 10,
	LOCK_TRY_MS = 50,
	LOCK_WAIT_MS = 40 * 1000, /* longer than a renewal takes */
};

struct bridged {
	struct bridged_options options;
	const char *url;
	bool here; /* the server is on this machine */
	struct session *session;
	struct watch watch;
	struct buf line, words, program;
	struct value *hosts;
	struct tokens *tokens;
	/* the lock that the bridge waits for */
	struct timer lock;
	int64_t lock_until_ms;
};

static void lock_due(struct timer *timer);
static void ready(struct watch *watch, short events);

static void add_host(struct bridged *bridged, const struct address *address)
{
	char text[NETWORK_TEXT_MAX];

	(void)oauth_host_print(address, text);
	if (!value_has_text(bridged->hosts, text))
		value_append(bridged->hosts, value_new_text(text));
}

struct bridged *bridged_new(const struct bridged_options *options)
{
	struct bridged *bridged = memory_alloc(sizeof(*bridged));
	const struct value *oauth = value_member(options->settings, "oauth");
	struct address address;

	bridged->options = *options;
	bridged->url = value_text(value_member(options->settings, "url"));
	bridged->hosts = value_new_array();
	bridged->watch =
		(struct watch){.fd = -1, .events = POLLIN, .ready = ready, .context = bridged};
	bridged->lock =
		(struct timer){.due_ms = CLOCK_NEVER, .due = lock_due, .context = bridged};
	buf_init(&bridged->line, STEER_LINE_MAX);
	buf_init(&bridged->words, WORDS_MAX);
	buf_init(&bridged->program, PATH_MAX);
	if (address_parse(str_of(bridged->url), &address, NULL)) {
		bridged->here = network_is_loopback(&address.host);
		add_host(bridged, &address);
	}
	if (options->tokens_folder)
		bridged->tokens = tokens_new(options->tokens_folder, bridged->url,
					     value_text(value_member(oauth, "client_id")));
	return bridged;
}

void bridged_close(struct bridged *bridged)
{
	loop_remove(&bridged->watch);
	loop_remove_timer(&bridged->lock);
	fd_close(&bridged->watch.fd);
	if (bridged->tokens)
		tokens_unlock(bridged->tokens);
	session_close(bridged->session);
	bridged->session = NULL;
	buf_clear(&bridged->line);
}

void bridged_free(struct bridged *bridged)
{
	if (!bridged)
		return;
	bridged_close(bridged);
	tokens_free(bridged->tokens);
	value_free(bridged->hosts);
	if (bridged->line.capacity > 0)
		explicit_bzero(bridged->line.data, bridged->line.capacity);
	buf_fini(&bridged->line);
	buf_fini(&bridged->words);
	buf_fini(&bridged->program);
	free(bridged);
}

/* Our end never waits: a bridge that does not read is ended. */
void bridged_tell(struct bridged *bridged, struct value *take_line)
{
	struct steer steer;

	steer_init(&steer, bridged->watch.fd);
	if (bridged->watch.fd < 0) {
		value_free(take_line);
	} else if (!steer_tell(&steer, take_line)) {
		loop_remove(&bridged->watch);
		fd_close(&bridged->watch.fd);
	}
	steer_fini(&steer);
}

static struct value *settings_of(const struct bridged *bridged)
{
	static const char *const passed[] = {"url", "headers", "oauth", NULL};
	const struct bridged_options *options = &bridged->options;
	struct value *settings = value_new_object();
	struct value *tokens = bridged->tokens ? tokens_read(bridged->tokens) : NULL;

	value_set_text(settings, "name", options->name);
	value_set_text(settings, "task", options->task);
	if (options->redirect)
		value_set_text(settings, "redirect", options->redirect);
	value_set_members(settings, options->settings, passed);
	value_set(settings, "hosts", value_copy(bridged->hosts));
	value_set(settings, "tokens", tokens ? tokens : value_new_null());
	return settings;
}

/* The hosts that are needed to renew the tokens, as far as they may be reached. */
static bool take_host(struct bridged *bridged, struct str text, struct err *err);

static void take_token_hosts(struct bridged *bridged)
{
	auto_value struct value *tokens =
		bridged->tokens ? tokens_read(bridged->tokens) : NULL;
	static const char *const addresses[] = {"token_endpoint", "revocation_endpoint"};
	char text[NETWORK_TEXT_MAX];

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const struct str url = value_str(value_member(tokens, addresses[i]));
		struct address address;

		if (address_parse(url, &address, NULL)) {
			(void)oauth_host_print(&address, text);
			(void)take_host(bridged, str_of(text), NULL);
		}
	}
	value_wipe(tokens);
}

bool bridged_open(struct bridged *bridged, struct session **session, int *fd, struct err *err)
{
	auto_close int theirs = -1;
	int ends[2];

	take_token_hosts(bridged);
	buf_clear(&bridged->words);
	buf_clear(&bridged->program);
	if (!bridged->options.open_cell(bridged->options.cells, bridged->hosts,
					&bridged->session, &bridged->program, err))
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "a socket: %s", strerror(errno));
	bridged->watch.fd = ends[0];
	theirs = ends[1];
	if (!fd_set_blocking(ends[0], false, err))
		return false;
	bridged_tell(bridged, settings_of(bridged));
	loop_add(bridged->options.loop, &bridged->watch);
	*session = bridged->session;
	*fd = fd_take(&theirs);
	return true;
}

struct value *bridged_arguments(const struct bridged *bridged)
{
	struct value *arguments = value_new_object(), *argv = value_new_array();

	value_append(argv, value_new_str(buf_str(&bridged->program)));
	value_append(argv, value_new_text(BRIDGE_WORD));
	value_set(arguments, "argv", argv);
	return arguments;
}

struct str bridged_words(const struct bridged *bridged)
{
	return str_trim(buf_str(&bridged->words));
}

/* The bridge asks. */

/* A server somewhere must not lead the bridge to this machine, or to an address at hand. */
static bool take_host(struct bridged *bridged, struct str text, struct err *err)
{
	struct network_host host;
	uint16_t port;
	char printed[NETWORK_TEXT_MAX];

	if (!network_parse_authority(text, 0, &host, &port, err))
		return false;
	network_print(&host, port, printed);
	if (value_has_text(bridged->hosts, printed))
		return true;
	if (!bridged->here && (host.kind != NETWORK_NAME || network_is_loopback(&host)))
		return err_set(err, EPERM,
			       "gets its tokens from %s, which is no name of another machine",
			       printed);
	if (value_count(bridged->hosts) > BRIDGED_HOSTS_MAX)
		return err_set(err, E2BIG, "needs more than %d other hosts for its tokens",
			       BRIDGED_HOSTS_MAX);
	value_append(bridged->hosts, value_new_text(printed));
	return true;
}

static void move(struct bridged *bridged, const struct value *hosts)
{
	const size_t before = value_count(bridged->hosts);
	struct err err = {0};

	for (size_t i = 0; i < value_count(hosts); i++) {
		if (!take_host(bridged, value_str(value_item(hosts, i)), &err)) {
			bridged->options.fails(bridged->options.owner, err.text);
			return;
		}
	}
	if (value_count(bridged->hosts) > before)
		bridged->options.moves(bridged->options.owner);
	else
		bridged->options.fails(bridged->options.owner,
				       "asks without an end for other hosts");
}

static void answer(struct bridged *bridged, const char *key, struct value *take_value)
{
	struct value *line = value_new_object();

	value_set(line, key, take_value);
	bridged_tell(bridged, line);
}

/* Try to lock the tokens, and answer the bridge when they are, or never will be. */
static void try_lock(struct bridged *bridged)
{
	struct err err = {0};
	struct value *tokens;

	if (!bridged->tokens) {
		answer(bridged, "tokens", value_new_null());
	} else if (tokens_lock(bridged->tokens, &err)) {
		tokens = tokens_read(bridged->tokens);
		answer(bridged, "tokens", tokens ? tokens : value_new_null());
	} else if (err.code == EAGAIN && clock_now_ms() < bridged->lock_until_ms) {
		bridged->lock.due_ms = clock_now_ms() + LOCK_TRY_MS;
		loop_add_timer(bridged->options.loop, &bridged->lock);
	} else {
		answer(bridged, "error", value_new_text(err.text));
	}
}

static void lock_due(struct timer *timer)
{
	loop_remove_timer(timer);
	try_lock(timer->context);
}

static void keep(struct bridged *bridged, const struct value *content)
{
	struct err err = {0};
	const bool changed = value_kind(content) == VALUE_OBJECT;
	bool ok = !changed || !bridged->tokens ||
		  (tokens_lock(bridged->tokens, &err) &&
		   tokens_write(bridged->tokens, content, &err));

	if (bridged->tokens)
		tokens_unlock(bridged->tokens);
	answer(bridged, "kept", ok ? value_new_boolean(true) : value_new_text(err.text));
}

static void take(struct bridged *bridged, const struct value *line)
{
	const char *phrase = value_text(value_member(line, "fails"));
	struct buf clean;

	if (phrase) {
		buf_init(&clean, STEER_LINE_MAX);
		(void)text_clean(str_of(phrase), &clean);
		bridged->options.fails(bridged->options.owner, clean.data);
		buf_fini(&clean);
	} else if (value_member(line, "hosts")) {
		move(bridged, value_member(line, "hosts"));
	} else if (value_member(line, "renew")) {
		bridged->lock_until_ms = clock_now_ms() + LOCK_WAIT_MS;
		try_lock(bridged);
	} else if (value_member(line, "keep")) {
		keep(bridged, value_member(line, "keep"));
	} else if (bridged->options.tells) {
		bridged->options.tells(bridged->options.owner, line);
	}
}

/* Keep the end of what is no line of the bridge. */
static void take_words(struct bridged *bridged, struct str text)
{
	const struct str kept =
		str_part(text, text.size > WORDS_MAX - 1 ? text.size - WORDS_MAX + 1 : 0,
			 text.size);

	if (bridged->words.size + kept.size + 1 > WORDS_MAX)
		buf_remove(&bridged->words, 0,
			   bridged->words.size + kept.size + 1 - WORDS_MAX);
	(void)buf_addstr(&bridged->words, kept);
	(void)buf_addc(&bridged->words, '\n');
}

static void ready(struct watch *watch, short events)
{
	struct bridged *bridged = watch->context;
	char bytes[READ_SIZE];
	const ssize_t size = read(watch->fd, bytes, sizeof(bytes));
	struct str rest = {bytes, size > 0 ? (size_t)size : 0};

	(void)events;
	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
		loop_remove(watch);
	while (watch->fd >= 0 && buf_take_line(&bridged->line, &rest)) {
		auto_value struct value *line = NULL;

		if (value_parse(buf_str(&bridged->line), 0, &line, NULL) &&
		    value_kind(line) == VALUE_OBJECT)
			take(bridged, line);
		else
			take_words(bridged, buf_str(&bridged->line));
		explicit_bzero(bridged->line.data, bridged->line.size);
		buf_clear(&bridged->line);
		value_wipe(line);
	}
	explicit_bzero(bytes, sizeof(bytes));
}

void bridged_hear(struct bridged *bridged)
{
	struct pollfd news = {.events = POLLIN};

	while (bridged->watch.loop) {
		news.fd = bridged->watch.fd;
		if (poll(&news, 1, 0) <= 0)
			return;
		ready(&bridged->watch, news.revents);
	}
}
