/* dial: classifies addresses, and tries those of one host one after the other. */

#include "proxy/dial.h"

#include "base/clock.h"
#include "base/fd.h"
#include "policy/network.h"
#include "process/loop.h"
#include "proxy/resolver.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	/* Time for one retransmission; then the next address is tried. */
	DIAL_MS = 5000,
};

/*
 * The special ranges of RFC 6890 and its successors, and the well-known addresses at
 * which clouds answer without asking who is there.
 */

struct range {
	unsigned char bytes[NETWORK_ADDRESS];
	unsigned bits;
	enum address_kind kind;
};

/* The first range that contains the address decides. */
static const struct range ranges4[] = {
	{{169, 254, 169, 254}, 32, ADDRESS_METADATA},
	{{169, 254, 170, 2}, 32, ADDRESS_METADATA},
	{{168, 63, 129, 16}, 32, ADDRESS_METADATA},
	{{100, 100, 100, 200}, 32, ADDRESS_METADATA},
	{{192, 0, 0, 192}, 32, ADDRESS_METADATA},
	{{127}, 8, ADDRESS_LOOPBACK},
	{{10}, 8, ADDRESS_PRIVATE},
	{{172, 16}, 12, ADDRESS_PRIVATE},
	{{192, 168}, 16, ADDRESS_PRIVATE},
	{{100, 64}, 10, ADDRESS_PRIVATE},
	{{169, 254}, 16, ADDRESS_LINK_LOCAL},
	{{224}, 4, ADDRESS_MULTICAST},
	{{0}, 8, ADDRESS_SPECIAL},
	{{192, 0, 0}, 24, ADDRESS_SPECIAL},
	{{192, 0, 2}, 24, ADDRESS_SPECIAL},
	{{192, 88, 99}, 24, ADDRESS_WRAPPED},
	{{198, 18}, 15, ADDRESS_SPECIAL},
	{{198, 51, 100}, 24, ADDRESS_SPECIAL},
	{{203, 0, 113}, 24, ADDRESS_SPECIAL},
	{{240}, 4, ADDRESS_SPECIAL},
};

static const struct range ranges6[] = {
	{{0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54},
	 128,
	 ADDRESS_METADATA},
	{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, ADDRESS_LOOPBACK},
	{{0}, 128, ADDRESS_SPECIAL},
	{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, ADDRESS_WRAPPED},
	{{0}, 96, ADDRESS_WRAPPED},
	{{0, 0x64, 0xff, 0x9b}, 32, ADDRESS_WRAPPED},
	{{0x20, 0x02}, 16, ADDRESS_WRAPPED},
	{{0x20, 0x01, 0, 0}, 32, ADDRESS_WRAPPED},
	{{0x20, 0x01}, 23, ADDRESS_SPECIAL},
	{{0x20, 0x01, 0x0d, 0xb8}, 32, ADDRESS_SPECIAL},
	{{0x3f, 0xff}, 20, ADDRESS_SPECIAL},
	{{0xfc}, 7, ADDRESS_PRIVATE},
	{{0xfe, 0x80}, 10, ADDRESS_LINK_LOCAL},
	{{0xff}, 8, ADDRESS_MULTICAST},
	/* all public IPv6 addresses are allocated from this range */
	{{0x20}, 3, ADDRESS_PUBLIC},
	{{0}, 0, ADDRESS_SPECIAL},
};

static bool is_in(const unsigned char *address, const struct range *range)
{
	unsigned whole = range->bits / 8, rest = range->bits % 8;
	unsigned mask = (0xff00u >> rest) & 0xff;

	return memcmp(address, range->bytes, whole) == 0 &&
	       (rest == 0 || ((address[whole] ^ range->bytes[whole]) & mask) == 0);
}

enum address_kind address_kind(const struct network_host *host)
{
	bool four = host->kind == NETWORK_IPV4;
	const struct range *ranges = four ? ranges4 : ranges6;
	size_t count = four ? sizeof(ranges4) / sizeof(ranges4[0])
			    : sizeof(ranges6) / sizeof(ranges6[0]);

	for (size_t i = 0; i < count; i++) {
		if (is_in(host->address, &ranges[i]))
			return ranges[i].kind;
	}
	return ADDRESS_PUBLIC;
}

const char *address_kind_name(enum address_kind kind)
{
	switch (kind) {
	case ADDRESS_PUBLIC:
		return "an address of this machine";
	case ADDRESS_PRIVATE:
		return "a private address";
	case ADDRESS_LOOPBACK:
		return "a loopback address";
	case ADDRESS_LINK_LOCAL:
		return "a link-local address";
	case ADDRESS_METADATA:
		return "a metadata address";
	case ADDRESS_MULTICAST:
		return "a multicast address";
	case ADDRESS_SPECIAL:
		return "a special address";
	case ADDRESS_WRAPPED:
		return "an address that stands for another";
	}
	return "no address";
}

/* Does ADDRESS belong to this machine now? */
static bool socket_is_own(const struct network_host *host)
{
	/*
	 * Ask the routing table instead of reading a list, because addresses come and go:
	 * the source address of a packet to this machine is its destination. connect() on
	 * a UDP socket sends nothing.
	 */
	auto_close int fd = resolver_connect(host, 9, false);
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} source;
	socklen_t size = sizeof(source);

	if (fd < 0 || getsockname(fd, &source.any, &size) < 0)
		return false;
	if (host->kind == NETWORK_IPV4)
		return memcmp(&source.four.sin_addr, host->address, 4) == 0;
	return memcmp(&source.six.sin6_addr, host->address, NETWORK_ADDRESS) == 0;
}

static bool names(const struct network_entry *entry, const struct dial *dial,
		  const struct network_host *address)
{
	return !entry->suffix && entry->port == dial->port &&
	       network_same_host(&entry->host, address);
}

/* Does some entry name ADDRESS itself, with this port? */
static bool is_listed(const struct dial *dial, const struct network_host *address)
{
	for (size_t i = 0; i < dial->entry_count; i++) {
		if (names(&dial->entries[i], dial, address))
			return true;
	}
	return names(dial->entry, dial, address);
}

static bool is_allowed(const struct dial *dial, const struct network_host *address)
{
	const bool carried = dial->entry->carried;

	if (is_listed(dial, address))
		return true;
	switch (address_kind(address)) {
	case ADDRESS_PUBLIC:
		return carried || !socket_is_own(address);
	case ADDRESS_PRIVATE:
		return carried;
	case ADDRESS_LOOPBACK:
		return carried && dial->lookup.local;
	default:
		return false;
	}
}

static void end(struct dial *dial)
{
	dial->active = false;
	loop_remove(&dial->watch);
	loop_remove_timer(&dial->deadline);
	dial->done(dial);
}

static void address_refuse(struct dial *dial, const struct network_host *address)
{
	char text[NETWORK_TEXT_MAX];

	dial->refused = true;
	(void)snprintf(dial->why, sizeof(dial->why),
		       "the name leads to %s, %s: add \"%s\" to network as well if that is "
		       "what you want",
		       address->text, address_kind_name(address_kind(address)),
		       network_print(address, dial->port, text));
}

/* An address does not connect, because of WHY. */
static void address_failed(struct dial *dial, const char *why)
{
	(void)snprintf(dial->why, sizeof(dial->why), "%s", why);
	dial->refused = false;
}

/* Dial the next address that is allowed. */
static void dial_next(struct dial *dial)
{
	struct lookup *lookup = &dial->lookup;

	loop_remove(&dial->watch);
	fd_close(&dial->fd);
	while (dial->dialed < lookup->count) {
		const struct network_host *address = &lookup->addresses[dial->dialed++];

		if (!is_allowed(dial, address)) {
			address_refuse(dial, address);
			continue;
		}
		dial->fd = resolver_connect(address, dial->port, true);
		dial->watch.fd = dial->fd;
		if (dial->fd >= 0 && loop_want(dial->resolver->loop, &dial->watch, POLLOUT)) {
			dial->deadline.due_ms = clock_now_ms() + DIAL_MS;
			return;
		}
		address_failed(dial, strerror(errno));
		fd_close(&dial->fd);
	}
	end(dial);
}

static void dial_ready(struct watch *watch, short events)
{
	struct dial *dial = watch->context;
	int code = 0;
	socklen_t size = sizeof(code);

	(void)events;
	if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0) {
		end(dial);
		return;
	}
	address_failed(dial, strerror(code));
	dial_next(dial);
}

static void dial_due(struct timer *timer)
{
	struct dial *dial = timer->context;

	address_failed(dial, "it does not answer");
	dial_next(dial);
}

static void found(struct lookup *lookup, const char *why)
{
	struct dial *dial = lookup->context;

	if (lookup->count == 0)
		address_failed(dial, why);
	dial_next(dial);
}

void dial_start(struct dial *dial)
{
	struct lookup *lookup = &dial->lookup;

	dial->active = true;
	dial->fd = -1;
	dial->dialed = 0;
	dial->refused = false;
	dial->why[0] = '\0';
	dial->watch = (struct watch){.fd = -1, .ready = dial_ready, .context = dial};
	dial->deadline =
		(struct timer){.due_ms = CLOCK_NEVER, .due = dial_due, .context = dial};
	loop_add_timer(dial->resolver->loop, &dial->deadline);
	lookup->done = found;
	lookup->context = dial;
	if (dial->host.kind == NETWORK_NAME) {
		resolver_look_up(dial->resolver, lookup, dial->host.text);
		return;
	}
	lookup->local = false;
	lookup->addresses[0] = dial->host;
	lookup->count = 1;
	found(lookup, "");
}

void dial_cancel(struct dial *dial)
{
	if (!dial->active)
		return;
	dial->active = false;
	resolver_cancel(&dial->lookup);
	loop_remove(&dial->watch);
	loop_remove_timer(&dial->deadline);
	fd_close(&dial->fd);
}
