/* hello: records, the message in them, its extensions. Each length is checked once, here. */
#include "proxy/hello.h"

#include <errno.h>
#include <string.h>

enum {
	RECORD_HANDSHAKE = 22,
	RECORD_MAJOR = 3, /* of the version: SSL 3 and every TLS */
	RECORD_HEADER = 5,
	RECORD_MAX = 16 << 10,
	MESSAGE_HELLO = 1,
	MESSAGE_HEADER = 4,
	EXTENSION_NAME = 0, /* RFC 6066, section 3 */
	NAME_HOST = 0,
	RANDOM = 2 + 32, /* version and random */
	SESSION_MAX = 32,
};

bool hello_begins(struct str bytes)
{
	return bytes.size > 0 && bytes.data[0] == RECORD_HANDSHAKE &&
	       (bytes.size == 1 || bytes.data[1] == RECORD_MAJOR);
}

static unsigned byte_at(struct str text, size_t at)
{
	return (unsigned char)text.data[at];
}

static size_t number(struct str text, size_t at, size_t bytes)
{
	size_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | byte_at(text, at + i);
	return value;
}

static enum hello_answer bad(struct err *err, const char *what)
{
	(void)err_set(err, EPROTO, "the TLS greeting is malformed: %s", what);
	return HELLO_BAD;
}

/* Take a part off the front of *REST. The part begins with its length in BYTES bytes. */
static bool take(struct str *rest, size_t bytes, struct str *part)
{
	if (rest->size < bytes)
		return false;
	size_t size = number(*rest, 0, bytes);
	if (rest->size - bytes < size)
		return false;
	*part = str_part(*rest, bytes, size);
	*rest = str_part(*rest, bytes + size, rest->size);
	return true;
}

static bool read_name(struct str extension, char name[NETWORK_NAME_MAX + 1])
{
	struct str list, text;
	struct network_host host;

	/*
	 * Allow exactly one name, of a host. With more, client and server could choose
	 * different ones.
	 */
	if (!take(&extension, 2, &list) || extension.size != 0 || list.size < 1 ||
	    byte_at(list, 0) != NAME_HOST)
		return false;
	list = str_part(list, 1, list.size);
	if (!take(&list, 2, &text) || list.size != 0 ||
	    !network_parse_host(text, &host, NULL))
		return false;
	memcpy(name, host.text, sizeof(host.text));
	return true;
}

static enum hello_answer read_message(struct str rest, char name[NETWORK_NAME_MAX + 1],
				      struct err *err)
{
	struct str part, extensions;
	bool named = false;

	name[0] = '\0';
	if (rest.size < RANDOM)
		return bad(err, "it is too short");
	rest = str_part(rest, RANDOM, rest.size);
	if (!take(&rest, 1, &part) || part.size > SESSION_MAX)
		return bad(err, "its session");
	if (!take(&rest, 2, &part) || !take(&rest, 1, &part))
		return bad(err, "its ciphers");
	if (rest.size == 0)
		return HELLO_GOOD; /* TLS 1.0 had no extensions */
	if (!take(&rest, 2, &extensions) || rest.size != 0)
		return bad(err, "its extensions");
	while (extensions.size > 0) {
		if (extensions.size < 2)
			return bad(err, "an extension");
		size_t kind = number(extensions, 0, 2);
		extensions = str_part(extensions, 2, extensions.size);
		if (!take(&extensions, 2, &part))
			return bad(err, "an extension");
		if (kind != EXTENSION_NAME)
			continue;
		if (named || !read_name(part, name))
			return bad(err, "the name of the server");
		named = true;
	}
	return HELLO_GOOD;
}

enum hello_answer hello_read(struct str bytes, char name[NETWORK_NAME_MAX + 1],
			     struct err *err)
{
	char message[HELLO_MAX];
	size_t have = 0, want = MESSAGE_HEADER, at = 0;

	while (have < want) {
		if (bytes.size - at < RECORD_HEADER)
			return bytes.size < HELLO_MAX ? HELLO_MORE
						      : bad(err, "it is too long");
		size_t size = number(bytes, at + 3, 2);
		if (byte_at(bytes, at) != RECORD_HANDSHAKE ||
		    byte_at(bytes, at + 1) != RECORD_MAJOR)
			return bad(err, "no handshake");
		if (size == 0 || size > RECORD_MAX)
			return bad(err, "the length of a record");
		at += RECORD_HEADER;
		size_t here = bytes.size - at < size ? bytes.size - at : size;
		if (here > sizeof(message) - have)
			return bad(err, "it is too long");
		memcpy(message + have, bytes.data + at, here);
		have += here;
		at += here;
		if (have >= MESSAGE_HEADER) {
			if (message[0] != MESSAGE_HELLO)
				return bad(err, "it is no greeting");
			want = MESSAGE_HEADER + number((struct str){message, have}, 1, 3);
			if (want > sizeof(message))
				return bad(err, "it is too long");
		}
		if (here < size && have < want)
			return bytes.size < HELLO_MAX ? HELLO_MORE
						      : bad(err, "it is too long");
	}
	return read_message((struct str){message + MESSAGE_HEADER, want - MESSAGE_HEADER},
			    name, err);
}
