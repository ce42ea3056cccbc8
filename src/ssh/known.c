/* known: finds the keys of a host in files of known hosts. */

#include "ssh/known.h"

#include "base/err.h"
#include "base/hash.h"
#include "ssh/message.h"
#include "ssh/wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	KEYS_BYTES = SSH_KNOWN_KEYS_MAX * (SSH_KEY_MAX + SSH_MESSAGE_HEAD),
	NAME_ROOM = NETWORK_TEXT_MAX,
	HASHED_MAX = 64, /* a salt, and a digest of SHA-1 */
};

void ssh_known_init(struct ssh_known *known)
{
	*known = (struct ssh_known){.port = SSH_PORT};
	buf_init(&known->keys, KEYS_BYTES);
	buf_init(&known->revoked, KEYS_BYTES);
}

void ssh_known_fini(struct ssh_known *known)
{
	buf_fini(&known->keys);
	buf_fini(&known->revoked);
}

bool ssh_known_set_host(struct ssh_known *known, struct str text, struct err *err)
{
	return network_parse_authority(text, SSH_PORT, &known->host, &known->port, err) &&
	       (known->host.kind == NETWORK_NAME || known->host.kind == NETWORK_IPV4 ||
		known->host.kind == NETWORK_IPV6);
}

/* The name under which ssh keeps the host: "host", or "[host]:port". */
static void kept_name(const struct ssh_known *known, char name[NAME_ROOM])
{
	if (known->port == SSH_PORT)
		(void)snprintf(name, NAME_ROOM, "%s", known->host.text);
	else
		(void)snprintf(name, NAME_ROOM, "[%s]:%u", known->host.text, known->port);
}

/* Is NAME the one of which TEXT, "|1|SALT|DIGEST", has the hash? */
static bool is_hashed_name(struct str text, const char *name)
{
	uint8_t digest[HASH_SHA1_BYTES];
	struct buf salt, wanted;
	const size_t middle = str_find(text, STR("|"), 3);
	bool same = false;

	buf_init(&salt, HASHED_MAX);
	buf_init(&wanted, HASHED_MAX);
	if (middle != (size_t)-1 && buf_base64_read(str_part(text, 3, middle - 3), &salt) &&
	    buf_base64_read(str_part(text, middle + 1, text.size), &wanted)) {
		hash_hmac_sha1(buf_str(&salt), str_of(name), digest);
		same = str_equal(buf_str(&wanted),
				 (struct str){(const char *)digest, sizeof(digest)});
	}
	buf_fini(&salt);
	buf_fini(&wanted);
	return same;
}

/* Does PATTERN, with '*' and '?', fit all of NAME? The case of letters does not matter. */
static bool fits(struct str pattern, const char *name)
{
	size_t at = 0, star = (size_t)-1, from = 0, i = 0;

	while (name[i] != '\0') {
		if (at < pattern.size && pattern.data[at] == '*') {
			star = at++;
			from = i;
		} else if (at < pattern.size && (pattern.data[at] == '?' ||
						 tolower((unsigned char)pattern.data[at]) ==
							 tolower((unsigned char)name[i]))) {
			at++;
			i++;
		} else if (star != (size_t)-1) {
			at = star + 1;
			i = ++from;
		} else {
			return false;
		}
	}
	while (at < pattern.size && pattern.data[at] == '*')
		at++;
	return at == pattern.size;
}

/* Is a line for NAME, whose first word is NAMES? */
static bool is_for(struct str names, const char *name)
{
	bool found = false;

	if (str_starts(names, STR("|1|")))
		return is_hashed_name(names, name);
	while (names.size > 0) {
		const size_t comma = str_find(names, STR(","), 0);
		const size_t size = comma != (size_t)-1 ? comma : names.size;
		struct str pattern = str_part(names, 0, size);
		const bool negated = str_starts(pattern, STR("!"));

		if (negated)
			pattern = str_part(pattern, 1, pattern.size);
		if (fits(pattern, name)) {
			if (negated)
				return false;
			found = true;
		}
		names = str_part(names, size + 1, names.size);
	}
	return found;
}

/* The kinds of keys whose signature verify.h checks. */
static bool is_checked(struct str kind)
{
	return kind.size > 0 && str_among("ssh-ed25519 ssh-rsa ecdsa-sha2-nistp256 "
					  "ecdsa-sha2-nistp384 ecdsa-sha2-nistp521",
					  kind);
}

static bool has(const struct buf *keys, struct str key)
{
	struct str rest = buf_str(keys), at;

	while (wire_take_string(&rest, &at)) {
		if (str_equal(at, key))
			return true;
	}
	return false;
}

/* Take the next word of *REST; tabs separate as well as blanks do. */
static bool next_word(struct str *rest, struct str *word)
{
	size_t size = 0;

	*rest = str_trim(*rest);
	while (size < rest->size && rest->data[size] != ' ' && rest->data[size] != '\t')
		size++;
	*word = str_part(*rest, 0, size);
	*rest = str_part(*rest, size, rest->size);
	return size > 0;
}

static void read_line(struct ssh_known *known, const char *name, struct str line)
{
	struct str word, marker = STR(""), kind;
	struct buf key;

	if (!next_word(&line, &word) || str_starts(word, STR("#")))
		return;
	if (str_starts(word, STR("@"))) {
		marker = word;
		if (!next_word(&line, &word))
			return;
	}
	if (!is_for(word, name) || !next_word(&line, &kind) || !next_word(&line, &word))
		return;
	if (str_is(marker, "@cert-authority"))
		known->authority = true;
	if (marker.size > 0 && !str_is(marker, "@revoked"))
		return;
	buf_init(&key, SSH_KEY_MAX);
	if (buf_base64_read(word, &key) &&
	    str_equal(ssh_message_key_kind(buf_str(&key)), kind)) {
		if (marker.size > 0)
			wire_add_string(&known->revoked, buf_str(&key));
		else if (is_checked(kind) && known->count < SSH_KNOWN_KEYS_MAX &&
			 !has(&known->keys, buf_str(&key))) {
			wire_add_string(&known->keys, buf_str(&key));
			known->count++;
		}
	}
	buf_fini(&key);
}

void ssh_known_read(struct ssh_known *known, struct str text)
{
	char name[NAME_ROOM];
	struct str line;

	kept_name(known, name);
	while (str_next_line(&text, &line))
		read_line(known, name, line);
}

bool ssh_known_has(const struct ssh_known *known, struct str key)
{
	/* When there was no room for all revoked keys, none of the others is certain. */
	return !known->revoked.overflowed && has(&known->keys, key) &&
	       !has(&known->revoked, key);
}

void ssh_known_print(const struct ssh_known *known, struct buf *out)
{
	struct str rest = buf_str(&known->keys), key;
	char name[NAME_ROOM];

	kept_name(known, name);
	while (wire_take_string(&rest, &key)) {
		const struct str kind = ssh_message_key_kind(key);

		if (!ssh_known_has(known, key))
			continue;
		(void)buf_addf(out, "%s %.*s ", name, (int)kind.size, kind.data);
		(void)buf_base64_add(key, out);
		(void)buf_addc(out, '\n');
	}
}

char *ssh_known_name(const struct ssh_known *known, char text[NETWORK_TEXT_MAX])
{
	if (known->port == SSH_PORT)
		(void)snprintf(text, NETWORK_TEXT_MAX, "%s", known->host.text);
	else
		(void)network_print(&known->host, known->port, text);
	return text;
}
