/*
 * address: the special ranges of RFC 6890 and its successors, and the well-known addresses
 * at which clouds answer without asking who is there.
 */
#include "proxy/address.h"

#include <arpa/inet.h>
#include <string.h>

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

void address_make(struct network_host *host, enum network_kind kind,
		  const unsigned char *bytes)
{
	*host = (struct network_host){.kind = kind};
	memcpy(host->address, bytes, kind == NETWORK_IPV4 ? 4 : NETWORK_ADDRESS);
	(void)inet_ntop(kind == NETWORK_IPV4 ? AF_INET : AF_INET6, host->address,
			host->text, sizeof(host->text));
}
