/*
 * verify: libcrypto behind one function; the only file of this folder that includes its
 * headers. A key is turned into the form that libcrypto reads for every kind
 * (SubjectPublicKeyInfo, RFC 5280), so one call serves them all.
 */

#include "ssh/verify.h"

#include "base/buf.h"
#include "base/library.h"
#include "ssh/message.h"
#include "ssh/wire.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <string.h>

enum {
	RSA_BITS_MIN = 2048,
	RSA_BITS_MAX = 16384, /* as OpenSSH; a larger one would take seconds */
	DER_MAX = SSH_KEY_MAX + 256,
	ED25519_BYTES = 32,
	ED25519_SIGNATURE = 64,
};

/* Tags of DER (X.690). */
enum { DER_INTEGER = 0x02, DER_BITS = 0x03, DER_SEQUENCE = 0x30 };

static const struct library libcrypto = LIBRARY_CRYPTO("checking the keys of hosts");

static struct {
	typeof(OPENSSL_init_crypto) *init;
	typeof(ERR_clear_error) *clear_error;
	typeof(d2i_PUBKEY) *read_key;
	typeof(EVP_PKEY_free) *free_key;
	typeof(EVP_PKEY_get_bits) *bits;
	typeof(EVP_MD_CTX_new) *context_new;
	typeof(EVP_MD_CTX_free) *context_free;
	typeof(EVP_DigestVerifyInit) *init_verify;
	typeof(EVP_DigestVerify) *verify;
	typeof(EVP_sha256) *sha256;
	typeof(EVP_sha384) *sha384;
	typeof(EVP_sha512) *sha512;
} call;

/* The parts of DER before the key of a curve: algorithm, curve, and the bits' head. */
static const struct kind {
	const char *key;       /* its kind */
	const char *signature; /* the kind of the signature; NULL: of `key` */
	struct str head;       /* NULL: RSA */
	size_t point;          /* bytes of the key itself */
	enum { BY_ED25519, BY_SHA256, BY_SHA384, BY_SHA512 } by;
} kinds[] = {
	{"ssh-ed25519", "ssh-ed25519",
	 STR("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00"), ED25519_BYTES, BY_ED25519},
	{"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256",
	 STR("\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce"
	     "\x3d\x03\x01\x07\x03\x42\x00"),
	 65, BY_SHA256},
	{"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384",
	 STR("\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00"
	     "\x22\x03\x62\x00"),
	 97, BY_SHA384},
	{"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521",
	 STR("\x30\x81\x9b\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04"
	     "\x00\x23\x03\x81\x86\x00"),
	 133, BY_SHA512},
	{"ssh-rsa", "rsa-sha2-256", {NULL, 0}, 0, BY_SHA256},
	{"ssh-rsa", "rsa-sha2-512", {NULL, 0}, 0, BY_SHA512},
};

/* Keys and signatures as libcrypto reads them. */

static void der_add(struct buf *out, uint8_t tag, struct str content)
{
	enum { SHORT_MAX = 0x7f, ONE_BYTE = 0x81, TWO_BYTES = 0x82 };

	wire_add_byte(out, tag);
	if (content.size > UINT8_MAX) {
		wire_add_byte(out, TWO_BYTES);
		wire_add_byte(out, (uint8_t)(content.size >> 8));
	} else if (content.size > SHORT_MAX) {
		wire_add_byte(out, ONE_BYTE);
	}
	wire_add_byte(out, (uint8_t)content.size);
	(void)buf_addstr(out, content);
}

/* Append two numbers of *REST as a sequence. The forms of a positive number are equal. */
static bool numbers_add(struct str *rest, struct buf *out)
{
	struct buf inside;
	bool fine = true;

	buf_init(&inside, DER_MAX);
	for (int i = 0; fine && i < 2; i++) {
		struct str number;

		fine = wire_take_string(rest, &number) && number.size > 0 &&
		       ((uint8_t)number.data[0] & 0x80) == 0;
		if (fine)
			der_add(&inside, DER_INTEGER, number);
	}
	fine = fine && !inside.overflowed;
	if (fine)
		der_add(out, DER_SEQUENCE, buf_str(&inside));
	buf_fini(&inside);
	return fine && !out->overflowed;
}

/* Append the RSA key in *REST, exponent and modulus, as a whole SubjectPublicKeyInfo. */
static bool rsa_add(struct str *rest, struct buf *out)
{
	static const struct str algorithm =
		STR("\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00");
	struct str exponent, modulus;
	struct buf swapped, bits, whole;
	struct str numbers;
	bool fine;

	buf_init(&swapped, DER_MAX);
	buf_init(&bits, DER_MAX);
	buf_init(&whole, DER_MAX);
	fine = wire_take_string(rest, &exponent) && wire_take_string(rest, &modulus);
	if (fine) {
		wire_add_string(&swapped, modulus);
		wire_add_string(&swapped, exponent);
		wire_add_byte(&bits, 0); /* no unused bits */
		numbers = buf_str(&swapped);
		fine = numbers_add(&numbers, &bits);
	}
	if (fine) {
		(void)buf_addstr(&whole, algorithm);
		der_add(&whole, DER_BITS, buf_str(&bits));
		der_add(out, DER_SEQUENCE, buf_str(&whole));
	}
	fine = fine && !whole.overflowed && !out->overflowed;
	buf_fini(&swapped);
	buf_fini(&bits);
	buf_fini(&whole);
	return fine;
}

/* Append the key in REST, behind its kind, in libcrypto's form. */
static bool key_add(const struct kind *kind, struct str rest, struct buf *out)
{
	struct str curve, point;

	if (kind->head.data == NULL)
		return rsa_add(&rest, out) && rest.size == 0;
	if (kind->by != BY_ED25519 &&
	    (!wire_take_string(&rest, &curve) || !str_ends(str_of(kind->key), curve) ||
	     curve.size != strlen("nistp256")))
		return false;
	return wire_take_string(&rest, &point) && rest.size == 0 &&
	       point.size == kind->point && buf_addstr(out, kind->head) &&
	       buf_addstr(out, point);
}

/* Append the bare SIGNATURE in libcrypto's form. */
static bool signature_add(const struct kind *kind, struct str signature, struct buf *out)
{
	if (kind->head.data == NULL)
		return buf_addstr(out, signature);
	if (kind->by == BY_ED25519)
		return signature.size == ED25519_SIGNATURE && buf_addstr(out, signature);
	return numbers_add(&signature, out) && signature.size == 0;
}

/* Checking. */

static const EVP_MD *digest_of(const struct kind *kind)
{
	switch (kind->by) {
	case BY_SHA256:
		return call.sha256();
	case BY_SHA384:
		return call.sha384();
	case BY_SHA512:
		return call.sha512();
	case BY_ED25519:
		break;
	}
	return NULL;
}

static bool is_strong(const struct kind *kind, const EVP_PKEY *key)
{
	const int bits = call.bits(key);

	return kind->head.data != NULL || (bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX);
}

static bool verify_with(const struct kind *kind, EVP_PKEY *key, struct str data,
			struct str signature)
{
	EVP_MD_CTX *context = call.context_new();
	const bool fine =
		context != NULL &&
		call.init_verify(context, NULL, digest_of(kind), NULL, key) == 1 &&
		call.verify(context, (const unsigned char *)signature.data, signature.size,
			    (const unsigned char *)data.data, data.size) == 1;

	call.context_free(context);
	return fine;
}

static bool verify(const struct kind *kind, struct str key, struct str data,
		   struct str signature)
{
	struct buf spki, plain;
	EVP_PKEY *read = NULL;
	bool fine = false;

	buf_init(&spki, DER_MAX);
	buf_init(&plain, DER_MAX);
	if (key_add(kind, key, &spki) && signature_add(kind, signature, &plain)) {
		const unsigned char *at = (const unsigned char *)spki.data;

		read = call.read_key(NULL, &at, (long)spki.size);
		fine = read != NULL && at == (const unsigned char *)spki.data + spki.size &&
		       is_strong(kind, read) &&
		       verify_with(kind, read, data, buf_str(&plain));
	}
	call.free_key(read);
	call.clear_error();
	buf_fini(&spki);
	buf_fini(&plain);
	return fine;
}

bool ssh_verify(struct str key, struct str data, struct str signature)
{
	struct str kind, signed_kind, bare;

	if (call.verify == NULL || key.size > SSH_KEY_MAX ||
	    signature.size > SSH_SIGNED_MAX || !wire_take_string(&key, &kind) ||
	    !wire_take_string(&signature, &signed_kind) ||
	    !wire_take_string(&signature, &bare) || signature.size != 0)
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (str_is(kind, kinds[i].key) && str_is(signed_kind, kinds[i].signature))
			return verify(&kinds[i], key, data, bare);
	}
	return false;
}

/* Loading. */

/* The second case of RFC 8032, section 7.1: a key, and its signature of the byte 0x72. */
static bool tells_apart(void)
{
	static const struct str key = STR(
		"\0\0\0\x0bssh-ed25519\0\0\0\x20"
		"\x3d\x40\x17\xc3\xe8\x43\x89\x5a\x92\xb7\x0a\xa7\x4d\x1b\x7e\xbc\x9c\x98\x2c\xcf"
		"\x2e\xc4\x96\x8c\xc0\xcd\x55\xf1\x2a\xf4\x66\x0c");
	static const struct str signature = STR(
		"\0\0\0\x0bssh-ed25519\0\0\0\x40"
		"\x92\xa0\x09\xa9\xf0\xd4\xca\xb8\x72\x0e\x82\x0b\x5f\x64\x25\x40\xa2\xb2\x7b\x54"
		"\x16\x50\x3f\x8f\xb3\x76\x22\x23\xeb\xdb\x69\xda\x08\x5a\xc1\xe4\x3e\x15\x99\x6e"
		"\x45\x8f\x36\x13\xd0\xf1\x1d\x8c\x38\x7b\x2e\xae\xb4\x30\x2a\xee\xb0\x0d\x29\x16"
		"\x12\xbb\x0c\x00");

	return ssh_verify(key, STR("r"), signature) &&
	       !ssh_verify(key, STR("s"), signature);
}

bool ssh_verify_load(struct err *err)
{
	const struct library_function functions[] = {
		{"OPENSSL_init_crypto", &call.init},
		{"ERR_clear_error", &call.clear_error},
		{"d2i_PUBKEY", &call.read_key},
		{"EVP_PKEY_free", &call.free_key},
		{"EVP_PKEY_get_bits", &call.bits},
		{"EVP_MD_CTX_new", &call.context_new},
		{"EVP_MD_CTX_free", &call.context_free},
		{"EVP_DigestVerifyInit", &call.init_verify},
		{"EVP_DigestVerify", &call.verify},
		{"EVP_sha256", &call.sha256},
		{"EVP_sha384", &call.sha384},
		{"EVP_sha512", &call.sha512},
	};

	if (!library_load(&libcrypto, functions, sizeof(functions) / sizeof(functions[0]),
			  err))
		return false;
	/* The configuration of OpenSSL could switch algorithms off. */
	if (call.init(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 && tells_apart())
		return true;
	return err_set(err, EIO, "%s does not check signatures as it should",
		       libcrypto.name);
}
