/* message: reads and writes the messages of an ssh agent. */

#include "ssh/message.h"

#include "base/hash.h"
#include "ssh/wire.h"

#include <string.h>

/* The numbers of messages: draft-miller-ssh-agent, section 5. */
enum {
	FAILURE = 5,
	SUCCESS = 6,
	REQUEST_IDENTITIES = 11,
	IDENTITIES_ANSWER = 12,
	SIGN_REQUEST = 13,
	SIGN_RESPONSE = 14,
	EXTENSION = 27,
	EXTENSION_FAILURE = 28,
};

enum { RSA_SHA2_256 = 2, RSA_SHA2_512 = 4 }; /* flags of a request to sign */

enum {
	USERAUTH_REQUEST = 50, /* RFC 4252, section 6 */
	SESSION_ID_MIN = 20,   /* the shortest hash of a key exchange */
	SESSION_ID_MAX = 64,   /* the longest one */
};

/* Requests of a client. */

static bool read_sign(struct str rest, struct ssh_message *message)
{
	return wire_take_string(&rest, &message->key) &&
	       wire_take_string(&rest, &message->data) &&
	       wire_take_number(&rest, &message->flags) && rest.size == 0;
}

static bool read_bind(struct str rest, struct ssh_message *message)
{
	uint8_t forwarding;

	if (!wire_take_string(&rest, &message->host_key) ||
	    !wire_take_string(&rest, &message->session) ||
	    !wire_take_string(&rest, &message->signature) ||
	    !wire_take_byte(&rest, &forwarding) || rest.size != 0)
		return false;
	message->forwarding = forwarding != 0;
	return message->host_key.size <= SSH_KEY_MAX &&
	       message->signature.size <= SSH_SIGNED_MAX &&
	       message->session.size >= SESSION_ID_MIN &&
	       message->session.size <= SESSION_ID_MAX;
}

static bool read_git(struct str rest, struct ssh_message *message)
{
	return wire_take_string(&rest, &message->key) &&
	       wire_take_string(&rest, &message->data) && rest.size == 0 &&
	       message->data.size <= SSH_TEXT_MAX;
}

static bool read_extension(struct str rest, struct ssh_message *message)
{
	struct str name;

	if (!wire_take_string(&rest, &name))
		return false;
	if (str_is(name, "session-bind@openssh.com")) {
		message->kind = SSH_MESSAGE_BIND;
		return read_bind(rest, message);
	}
	message->kind = SSH_MESSAGE_GIT;
	return str_is(name, SSH_GIT_EXTENSION) && read_git(rest, message);
}

enum ssh_frame ssh_message_first(struct str in, struct str *body)
{
	uint32_t size;

	if (!wire_take_number(&in, &size))
		return SSH_FRAME_CUT;
	if (size == 0 || size > SSH_MESSAGE_MAX)
		return SSH_FRAME_WRONG;
	if (size > in.size)
		return SSH_FRAME_CUT;
	*body = str_part(in, 0, size);
	return SSH_FRAME_WHOLE;
}

void ssh_message_read(struct str body, struct ssh_message *message)
{
	uint8_t number = 0;
	bool fine = wire_take_byte(&body, &number);

	*message = (struct ssh_message){.kind = SSH_MESSAGE_OTHER};
	if (fine && number == REQUEST_IDENTITIES) {
		message->kind = SSH_MESSAGE_LIST;
		fine = body.size == 0;
	} else if (fine && number == SIGN_REQUEST) {
		message->kind = SSH_MESSAGE_SIGN;
		fine = read_sign(body, message);
	} else {
		fine = fine && number == EXTENSION && read_extension(body, message);
	}
	if (!fine || message->key.size > SSH_KEY_MAX)
		*message = (struct ssh_message){.kind = SSH_MESSAGE_OTHER};
}

/* Answers to a client. */

static void add_number_only(struct buf *out, uint8_t number)
{
	wire_add_number(out, 1);
	wire_add_byte(out, number);
}

void ssh_message_add_outcome(struct buf *out, bool done)
{
	add_number_only(out, done ? SUCCESS : FAILURE);
}

static void add_with(struct buf *out, uint8_t number, struct str text)
{
	wire_add_number(out, (uint32_t)(1 + SSH_MESSAGE_HEAD + text.size));
	wire_add_byte(out, number);
	wire_add_string(out, text);
}

void ssh_message_add_signed(struct buf *out, struct str signature)
{
	add_with(out, SIGN_RESPONSE, signature);
}

void ssh_message_add_reason(struct buf *out, const char *reason)
{
	add_with(out, EXTENSION_FAILURE, str_of(reason));
}

/* Requests to an agent, and its answers. */

void ssh_message_ask_keys(struct buf *out)
{
	add_number_only(out, REQUEST_IDENTITIES);
}

void ssh_message_ask_signed(struct buf *out, struct str key, struct str data, uint32_t flags)
{
	wire_add_number(out, (uint32_t)(1 + 3 * SSH_MESSAGE_HEAD + key.size + data.size));
	wire_add_byte(out, SIGN_REQUEST);
	wire_add_string(out, key);
	wire_add_string(out, data);
	wire_add_number(out, flags);
}

void ssh_message_add_git(struct buf *out, struct str key, struct str text)
{
	static const struct str name = STR(SSH_GIT_EXTENSION);

	wire_add_number(out, (uint32_t)(1 + 3 * SSH_MESSAGE_HEAD + name.size + key.size +
					text.size));
	wire_add_byte(out, EXTENSION);
	wire_add_string(out, name);
	wire_add_string(out, key);
	wire_add_string(out, text);
}

struct str ssh_message_key_kind(struct str key)
{
	struct str kind;

	if (key.size > SSH_KEY_MAX || !wire_take_string(&key, &kind) ||
	    kind.size > SSH_NAME_MAX)
		return STR("");
	for (size_t i = 0; i < kind.size; i++) {
		if (kind.data[i] <= ' ' || kind.data[i] > '~')
			return STR("");
	}
	return kind;
}

/* The kinds whose signature has the name of the key, and RSA. */
static bool is_served(struct str key)
{
	static const char kinds[] =
		"ssh-ed25519 ssh-rsa ecdsa-sha2-nistp256 ecdsa-sha2-nistp384 "
		"ecdsa-sha2-nistp521 sk-ssh-ed25519@openssh.com "
		"sk-ecdsa-sha2-nistp256@openssh.com";
	const struct str kind = ssh_message_key_kind(key);

	return kind.size > 0 && str_among(kinds, kind);
}

bool ssh_message_read_keys(struct str body, struct buf *out)
{
	struct buf keys;
	uint32_t count, served = 0;
	uint8_t number;
	bool fine = wire_take_byte(&body, &number) && number == IDENTITIES_ANSWER &&
		    wire_take_number(&body, &count);

	buf_init(&keys, SSH_KEYS_BYTES);
	while (fine && count-- > 0) {
		struct str key, comment;

		fine = wire_take_string(&body, &key) && wire_take_string(&body, &comment);
		if (!fine || !is_served(key) || served == SSH_KEYS_MAX ||
		    keys.size + key.size + 2 * (size_t)SSH_MESSAGE_HEAD > SSH_KEYS_BYTES)
			continue;
		wire_add_string(&keys, key);
		/* A comment is a path or an address of the person, and not for the cell. */
		wire_add_string(&keys, STR(""));
		served++;
	}
	fine = fine && body.size == 0;
	if (fine) {
		wire_add_byte(out, IDENTITIES_ANSWER);
		wire_add_number(out, served);
		(void)buf_addstr(out, buf_str(&keys));
	}
	buf_fini(&keys);
	return fine && !out->overflowed;
}

bool ssh_message_has_key(struct str answer, struct str key)
{
	struct str rest = str_part(answer, 1 + SSH_MESSAGE_HEAD, answer.size), at, comment;

	while (wire_take_string(&rest, &at) && wire_take_string(&rest, &comment)) {
		if (str_equal(at, key))
			return true;
	}
	return false;
}

/* The name of the signature that KEY makes with FLAGS; empty when it would be weak. */
static struct str signature_kind(struct str key, uint32_t flags)
{
	const struct str kind = ssh_message_key_kind(key);

	if (!str_is(kind, "ssh-rsa"))
		return flags == 0 ? kind : STR("");
	return flags == RSA_SHA2_512   ? STR("rsa-sha2-512")
	       : flags == RSA_SHA2_256 ? STR("rsa-sha2-256")
				       : STR("");
}

uint32_t ssh_message_key_flags(struct str key)
{
	return str_is(ssh_message_key_kind(key), "ssh-rsa") ? RSA_SHA2_512 : 0;
}

bool ssh_message_read_signed(struct str body, struct str key, uint32_t flags,
			     struct str *signature)
{
	struct str inside, kind;
	uint8_t number;

	if (!wire_take_byte(&body, &number) || number != SIGN_RESPONSE ||
	    !wire_take_string(&body, signature) || body.size != 0 ||
	    signature->size > SSH_SIGNED_MAX)
		return false;
	inside = *signature;
	return wire_take_string(&inside, &kind) && kind.size > 0 &&
	       str_equal(kind, signature_kind(key, flags));
}

bool ssh_message_read_git(struct str body, struct str *answer)
{
	uint8_t number = 0;
	const bool fine = wire_take_byte(&body, &number) &&
			  (number == SIGN_RESPONSE || number == EXTENSION_FAILURE) &&
			  wire_take_string(&body, answer) && body.size == 0;

	if (!fine)
		*answer = STR("");
	return fine && number == SIGN_RESPONSE;
}

char *ssh_message_fingerprint(struct str key, char text[SSH_FINGERPRINT])
{
	static const char head[] = "SHA256:";
	uint8_t digest[HASH_BYTES];
	struct buf made;

	hash_bytes(key, digest);
	buf_init(&made, SSH_FINGERPRINT - 1);
	(void)buf_adds(&made, head);
	(void)buf_base64_add((struct str){(const char *)digest, sizeof(digest)}, &made);
	while (made.size > 0 && made.data[made.size - 1] == '=')
		buf_truncate(&made, made.size - 1);
	memcpy(text, made.data, made.size + 1);
	buf_fini(&made);
	return text;
}

/* The bytes that are signed to sign in. */

/* The method, and what it has behind the key. */
static bool read_method(struct str method, struct str *rest, struct ssh_userauth *userauth)
{
	if (str_is(method, "publickey"))
		return true;
	return str_is(method, "publickey-hostbound-v00@openssh.com") &&
	       wire_take_string(rest, &userauth->host_key) && userauth->host_key.size > 0;
}

bool ssh_message_read_userauth(struct str data, struct ssh_userauth *userauth)
{
	struct str service, method, algorithm;
	uint8_t number, is_signed;

	*userauth = (struct ssh_userauth){.host_key = STR("")};
	if (data.size > SSH_USERAUTH_MAX || !wire_take_string(&data, &userauth->session) ||
	    !wire_take_byte(&data, &number) || number != USERAUTH_REQUEST ||
	    !wire_take_string(&data, &userauth->user) ||
	    !wire_take_string(&data, &service) || !str_is(service, "ssh-connection") ||
	    !wire_take_string(&data, &method) || !wire_take_byte(&data, &is_signed) ||
	    is_signed != 1 || !wire_take_string(&data, &algorithm) ||
	    !wire_take_string(&data, &userauth->key) ||
	    !read_method(method, &data, userauth) || data.size != 0)
		return false;
	if (str_is(algorithm, "rsa-sha2-256"))
		userauth->flags = RSA_SHA2_256;
	else if (str_is(algorithm, "rsa-sha2-512"))
		userauth->flags = RSA_SHA2_512;
	return userauth->session.size >= SESSION_ID_MIN &&
	       userauth->session.size <= SESSION_ID_MAX && userauth->user.size > 0 &&
	       userauth->user.size <= SSH_USER_MAX && is_served(userauth->key) &&
	       str_equal(algorithm, signature_kind(userauth->key, userauth->flags));
}
