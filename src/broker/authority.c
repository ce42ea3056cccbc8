/* authority: DER of two kinds of certificates, and the two keys. */

#include "broker/authority.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"
#include "broker/tls.h"
#include "policy/network.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
	DAY_S = 24 * 60 * 60,
	AUTHORITY_S = 366 * DAY_S,
	LEAF_S = DAY_S,
	LEAF_RENEW_MS = LEAF_S * 1000 / 2,
	BEFORE_S = 60 * 60,
	SERIAL_BYTES = 16,
	IDENTIFIER_BYTES = 20, /* as long as the one of RFC 5280, section 4.2.1.2 */
	POINT_BYTES = 65,      /* of P-256, uncompressed: 4, x, y */
	NAME_BYTES = 64,       /* of a certificate's holder, as RFC 5280 limits it */
	PEM_LINE = 64,         /* RFC 7468, section 2 */
	/*
	 * OpenSSL takes all private keys from there, also those of each handshake that is
	 * under way: 32 bytes and some more, for 512 connections. It must be a power of 2.
	 */
	LOCKED_BYTES = 128 << 10,
	LOCKED_LEAST = 32, /* of one piece */
};

/* The first byte of an element of DER (X.690, section 8.1.2). */
enum {
	DER_TRUE = 0x01,
	DER_INTEGER = 0x02,
	DER_BITS = 0x03,
	DER_BYTES = 0x04,
	DER_OBJECT = 0x06,
	DER_TEXT = 0x0c,
	DER_TIME_SHORT = 0x17, /* until 2049 */
	DER_TIME_LONG = 0x18,
	DER_SEQUENCE = 0x30,
	DER_SET = 0x31,
	DER_CHOICE = 0x80, /* and a number: implicit */
	DER_TAGGED = 0xa0, /* and a number: constructed */
};

/* The forms of a GeneralName. */
enum { FORM_NAME = 2, FORM_ADDRESS = 7 };

/* Objects, and elements that are always the same. */
#define ECDSA_SHA256 "\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02"
#define P256 \
	"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
#define VERSION_3   "\xa0\x03\x02\x01\x02"
#define COMMON_NAME "\x06\x03\x55\x04\x03"

/* The last byte of the object of an extension; the others are 55 1d. */
enum {
	EXTENSION_SUBJECT_KEY = 0x0e,
	EXTENSION_USAGE = 0x0f,
	EXTENSION_NAMES = 0x11,
	EXTENSION_BASIC = 0x13,
	EXTENSION_CONSTRAINTS = 0x1e,
	EXTENSION_AUTHORITY_KEY = 0x23,
	EXTENSION_EXTENDED = 0x25,
};

#define LEAVES_ONLY  "\x30\x06\x01\x01\xff\x02\x01\x00" /* authority, path length 0 */
#define SIGNS_CERTS  "\x03\x02\x02\x04"
#define SIGNS_DATA   "\x03\x02\x07\x80"
#define SERVERS_ONLY "\x30\x0a\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01"

struct functions {
	typeof(OPENSSL_init_crypto) *init;
	typeof(CRYPTO_secure_malloc_init) *lock;
	typeof(CRYPTO_free) *free;
	typeof(EVP_PKEY_Q_keygen) *keygen;
	typeof(EVP_PKEY_get1_encoded_public_key) *public_key;
	typeof(EVP_MD_CTX_new) *digest_new;
	typeof(EVP_MD_CTX_free) *digest_free;
	typeof(EVP_DigestSignInit_ex) *sign_init;
	typeof(EVP_DigestSign) *sign;
};

/* A key, and what certificates say of it. */
struct key {
	EVP_PKEY *pair;
	unsigned char point[POINT_BYTES];
	unsigned char identifier[IDENTIFIER_BYTES];
};

struct leaf {
	struct network_host host;
	struct buf der;  /* empty: not made yet */
	int64_t made_ms; /* by the clock that certificates are checked with */
};

struct authority {
	struct functions call;
	struct key own, leaf_key;
	char name[NAME_BYTES + 1];
	struct buf der;
	struct leaf *leaves; /* one for each host */
	size_t count;
};

static bool load(struct functions *call, struct err *err)
{
	const struct library_function wanted[] = {
		{"OPENSSL_init_crypto", &call->init},
		{"CRYPTO_secure_malloc_init", &call->lock},
		{"CRYPTO_free", &call->free},
		{"EVP_PKEY_Q_keygen", &call->keygen},
		{"EVP_PKEY_get1_encoded_public_key", &call->public_key},
		{"EVP_MD_CTX_new", &call->digest_new},
		{"EVP_MD_CTX_free", &call->digest_free},
		{"EVP_DigestSignInit_ex", &call->sign_init},
		{"EVP_DigestSign", &call->sign},
	};

	return library_load(&tls_libcrypto, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

/* DER: an element is its kind, its length, and its content. */

/* All bytes of OUT from AT on become the content of one element of KIND. */
static void wrap(struct buf *out, size_t at, unsigned kind)
{
	const size_t size = out->size - at;
	unsigned char head[2 + sizeof(size)] = {(unsigned char)kind};
	size_t bytes = 2, more = 0;

	if (size < 0x80) {
		head[1] = (unsigned char)size;
	} else {
		while (more < sizeof(size) && size >> 8 * more > 0)
			more++;
		head[1] = (unsigned char)(0x80 | more);
		for (size_t i = more; i > 0; i--)
			head[bytes++] = (unsigned char)(size >> 8 * (i - 1));
	}
	if (!buf_add(out, head, bytes))
		return;
	memmove(out->data + at + bytes, out->data + at, size);
	memcpy(out->data + at, head, bytes);
}

static void add(struct buf *out, unsigned kind, const void *content, size_t size)
{
	const size_t at = out->size;

	(void)buf_add(out, content, size);
	wrap(out, at, kind);
}

/* Append an element that is always the same. */
#define ADD_FIXED(out, bytes) ((void)buf_add((out), (bytes), sizeof(bytes) - 1))

static void add_name(struct buf *out, const char *name)
{
	const size_t at = out->size;

	ADD_FIXED(out, COMMON_NAME);
	add(out, DER_TEXT, name, strlen(name));
	wrap(out, at, DER_SEQUENCE);
	wrap(out, at, DER_SET);
	wrap(out, at, DER_SEQUENCE);
}

static void add_time(struct buf *out, time_t at)
{
	char text[32] = "";
	struct tm utc;
	size_t size = 0;

	if (gmtime_r(&at, &utc) != NULL)
		size = strftime(text, sizeof(text), "%Y%m%d%H%M%SZ", &utc);
	if (utc.tm_year + 1900 < 2050 && size > 2)
		add(out, DER_TIME_SHORT, text + 2, size - 2);
	else
		add(out, DER_TIME_LONG, text, size);
}

static void add_key(struct buf *out, const struct key *key)
{
	const size_t at = out->size;
	size_t bits;

	ADD_FIXED(out, P256);
	bits = out->size;
	(void)buf_addc(out, 0); /* unused bits of the last byte */
	(void)buf_add(out, key->point, sizeof(key->point));
	wrap(out, bits, DER_BITS);
	wrap(out, at, DER_SEQUENCE);
}

/* The content of an extension begins at the result; extension_end makes it one. */
static size_t extension_begin(struct buf *out, unsigned char which, bool critical)
{
	const unsigned char object[] = {0x55, 0x1d, which};

	add(out, DER_OBJECT, object, sizeof(object));
	if (critical)
		add(out, DER_TRUE, "\xff", 1);
	return out->size;
}

static void extension_end(struct buf *out, size_t whole, size_t content)
{
	wrap(out, content, DER_BYTES);
	wrap(out, whole, DER_SEQUENCE);
}

static void add_extension(struct buf *out, unsigned char which, bool critical,
			  struct str content)
{
	const size_t whole = out->size;
	const size_t at = extension_begin(out, which, critical);

	(void)buf_addstr(out, content);
	extension_end(out, whole, at);
}

#define FIXED(bytes) ((struct str){(bytes), sizeof(bytes) - 1})

static size_t address_size(const struct network_host *host)
{
	return host->kind == NETWORK_IPV4 ? 4 : NETWORK_ADDRESS;
}

/* The parts of both certificates. */

/* Append the names that the authority may sign for. */
static void add_constraints(const struct authority *authority, struct buf *out)
{
	static const unsigned char mask[NETWORK_ADDRESS] = {255, 255, 255, 255, 255, 255,
							    255, 255, 255, 255, 255, 255,
							    255, 255, 255, 255};
	static const unsigned char nothing[2 * NETWORK_ADDRESS];
	const size_t whole = out->size;
	const size_t content = extension_begin(out, EXTENSION_CONSTRAINTS, true);
	bool names = false, addresses = false;
	size_t at;

	for (size_t i = 0; i < authority->count; i++) {
		const struct network_host *host = &authority->leaves[i].host;

		at = out->size;
		if (host->kind == NETWORK_NAME) {
			add(out, DER_CHOICE | FORM_NAME, host->text, strlen(host->text));
			names = true;
		} else {
			const size_t inner = out->size;

			(void)buf_add(out, host->address, address_size(host));
			(void)buf_add(out, mask, address_size(host));
			wrap(out, inner, DER_CHOICE | FORM_ADDRESS);
			addresses = true;
		}
		wrap(out, at, DER_SEQUENCE);
	}
	if (!names) {
		at = out->size;
		add(out, DER_CHOICE | FORM_NAME, "invalid", strlen("invalid"));
		wrap(out, at, DER_SEQUENCE);
	}
	wrap(out, content, DER_TAGGED | 0);
	if (!addresses) {
		const size_t excluded = out->size;

		add(out, DER_CHOICE | FORM_ADDRESS, nothing, 2 * 4);
		wrap(out, excluded, DER_SEQUENCE);
		at = out->size;
		add(out, DER_CHOICE | FORM_ADDRESS, nothing, sizeof(nothing));
		wrap(out, at, DER_SEQUENCE);
		wrap(out, excluded, DER_TAGGED | 1);
	}
	wrap(out, content, DER_SEQUENCE);
	extension_end(out, whole, content);
}

static void add_own_extensions(const struct authority *authority, struct buf *out)
{
	const size_t whole = out->size;
	size_t content;

	add_extension(out, EXTENSION_BASIC, true, FIXED(LEAVES_ONLY));
	add_extension(out, EXTENSION_USAGE, true, FIXED(SIGNS_CERTS));
	add_constraints(authority, out);
	const size_t key = out->size;
	content = extension_begin(out, EXTENSION_SUBJECT_KEY, false);
	add(out, DER_BYTES, authority->own.identifier, IDENTIFIER_BYTES);
	extension_end(out, key, content);
	wrap(out, whole, DER_SEQUENCE);
	wrap(out, whole, DER_TAGGED | 3);
}

static void add_leaf_extensions(const struct authority *authority,
				const struct network_host *host, struct buf *out)
{
	const size_t whole = out->size;
	size_t content;

	add_extension(out, EXTENSION_USAGE, true, FIXED(SIGNS_DATA));
	add_extension(out, EXTENSION_EXTENDED, false, FIXED(SERVERS_ONLY));
	const size_t key = out->size;
	content = extension_begin(out, EXTENSION_AUTHORITY_KEY, false);
	add(out, DER_CHOICE | 0, authority->own.identifier, IDENTIFIER_BYTES);
	wrap(out, content, DER_SEQUENCE);
	extension_end(out, key, content);
	const size_t names = out->size;
	content = extension_begin(out, EXTENSION_NAMES, false);
	if (host->kind == NETWORK_NAME)
		add(out, DER_CHOICE | FORM_NAME, host->text, strlen(host->text));
	else
		add(out, DER_CHOICE | FORM_ADDRESS, host->address, address_size(host));
	wrap(out, content, DER_SEQUENCE);
	extension_end(out, names, content);
	wrap(out, whole, DER_SEQUENCE);
	wrap(out, whole, DER_TAGGED | 3);
}

/* Append a signature by the authority of all that OUT holds, and make both one. */
static bool sign(const struct authority *authority, struct buf *out)
{
	const struct functions *call = &authority->call;
	unsigned char signature[1 + 128] = {0}; /* unused bits; 72 bytes at most */
	size_t size = sizeof(signature) - 1;
	EVP_MD_CTX *digest = call->digest_new();
	bool fine;

	fine = digest != NULL && !out->overflowed &&
	       call->sign_init(digest, NULL, "SHA256", NULL, NULL, authority->own.pair,
			       NULL) == 1 &&
	       call->sign(digest, signature + 1, &size, (const unsigned char *)out->data,
			  out->size) == 1;
	call->digest_free(digest);
	if (!fine)
		return false;
	ADD_FIXED(out, ECDSA_SHA256);
	add(out, DER_BITS, signature, 1 + size);
	wrap(out, 0, DER_SEQUENCE);
	return !out->overflowed;
}

/* Make OUT the certificate for HOST, or for the authority itself when HOST is NULL. */
static bool certificate_make(const struct authority *authority,
			     const struct network_host *host, struct buf *out)
{
	const time_t now = (time_t)(clock_wall_ms() / 1000);
	unsigned char serial[SERIAL_BYTES];
	size_t at;

	buf_clear(out);
	if (getrandom(serial, sizeof(serial), 0) != (ssize_t)sizeof(serial))
		return false;
	serial[0] = (unsigned char)((serial[0] & 0x3f) |
				    0x40); /* positive, and as short as can be */
	ADD_FIXED(out, VERSION_3);
	add(out, DER_INTEGER, serial, sizeof(serial));
	ADD_FIXED(out, ECDSA_SHA256);
	add_name(out, authority->name);
	at = out->size;
	add_time(out, now - BEFORE_S);
	add_time(out, now + (host == NULL ? AUTHORITY_S : LEAF_S));
	wrap(out, at, DER_SEQUENCE);
	/* A name with a blank is taken for no host by clients that still look there. */
	add_name(out, host == NULL ? authority->name : "Glovebox leaf");
	add_key(out, host == NULL ? &authority->own : &authority->leaf_key);
	if (host == NULL)
		add_own_extensions(authority, out);
	else
		add_leaf_extensions(authority, host, out);
	wrap(out, 0, DER_SEQUENCE);
	return sign(authority, out);
}

/* The authority. */

static bool key_make(const struct functions *call, struct key *key, struct err *err)
{
	uint8_t digest[HASH_BYTES];
	unsigned char *point = NULL;
	bool fine;

	key->pair = call->keygen(NULL, NULL, "EC", "P-256");
	fine = key->pair != NULL &&
	       call->public_key(key->pair, &point) == sizeof(key->point);
	if (fine) {
		memcpy(key->point, point, sizeof(key->point));
		/* RFC 7093, section 2: the first 160 bits. */
		hash_bytes((struct str){(const char *)key->point, sizeof(key->point)},
			   digest);
		memcpy(key->identifier, digest, sizeof(key->identifier));
	}
	call->free(point, __FILE__, __LINE__);
	return fine || err_set(err, EIO, "no key could be made for this cell's authority");
}

static struct leaf *leaf_find(struct authority *authority, const struct network_host *host)
{
	for (size_t i = 0; i < authority->count; i++) {
		if (network_same_host(&authority->leaves[i].host, host))
			return &authority->leaves[i];
	}
	return NULL;
}

bool authority_new(const struct network_entry *hosts, size_t count,
		   struct authority **authority, struct err *err)
{
	struct authority *made = memory_alloc(sizeof(*made));
	const struct functions *call = &made->call;
	uint32_t number;

	made->leaves = memory_array(count + 1, sizeof(made->leaves[0]));
	for (size_t i = 0; i < count; i++) {
		if (leaf_find(made, &hosts[i].host) == NULL) {
			made->leaves[made->count].host = hosts[i].host;
			buf_init(&made->leaves[made->count++].der, AUTHORITY_MAX);
		}
	}
	buf_init(&made->der, AUTHORITY_MAX);
	if (!load(&made->call, err))
		return false;
	/* Its configuration could switch algorithms off. */
	(void)call->init(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	/* An ordinary user may lock a part only. No core file is ever written anyway. */
	(void)call->lock(LOCKED_BYTES, LOCKED_LEAST);
	if (!key_make(call, &made->own, err) || !key_make(call, &made->leaf_key, err))
		return false;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return err_set(err, errno, "no chance for this cell's authority");
	(void)snprintf(made->name, sizeof(made->name), "Glovebox cell authority %08x",
		       number);
	if (!certificate_make(made, NULL, &made->der))
		return err_set(err, EIO, "this cell's authority could not be signed");
	*authority = made;
	return true;
}

bool authority_print(const struct authority *authority, struct buf *out)
{
	struct buf text;

	buf_init(&text, 2 * AUTHORITY_MAX);
	(void)buf_base64_add(buf_str(&authority->der), &text);
	(void)buf_adds(out, "-----BEGIN CERTIFICATE-----\n");
	for (size_t at = 0; at < text.size; at += PEM_LINE) {
		(void)buf_addstr(out, str_part(buf_str(&text), at, PEM_LINE));
		(void)buf_addc(out, '\n');
	}
	(void)buf_adds(out, "-----END CERTIFICATE-----\n");
	const bool fine = !text.overflowed && !out->overflowed;
	buf_fini(&text);
	return fine;
}

struct str authority_leaf(struct authority *authority, const struct network_host *host)
{
	struct leaf *leaf = leaf_find(authority, host);
	const int64_t now = clock_wall_ms();

	if (leaf == NULL)
		return (struct str){0};
	if (leaf->der.size == 0 || now - leaf->made_ms > LEAF_RENEW_MS ||
	    now < leaf->made_ms) {
		leaf->made_ms = now;
		if (!certificate_make(authority, host, &leaf->der))
			buf_clear(&leaf->der);
	}
	return buf_str(&leaf->der);
}

void *authority_leaf_key(const struct authority *authority)
{
	return authority->leaf_key.pair;
}
