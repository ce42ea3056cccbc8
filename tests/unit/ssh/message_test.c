/* message: requests of an ssh client, answers of an agent, and what signs a user in. */
#include "../base/unit.h"

#include "base/buf.h"
#include "ssh/message.h"
#include "ssh/wire.h"

enum { ROOM = 2 * SSH_MESSAGE_MAX };

#define KEY  STR("\0\0\0\x0bssh-ed25519\0\0\0\x04kkkk")
#define RSA  STR("\0\0\0\x07ssh-rsa\0\0\0\x01\x03\0\0\0\x01\x05")
#define CERT STR("\0\0\0\x1cssh-ed25519-cert-v01@openssh.com\0")
#define ID   STR("0123456789012345678901234567890x")

static struct ssh_message read_body(const struct buf *body)
{
	struct ssh_message message;

	ssh_message_read(buf_str(body), &message);
	return message;
}

/* BODY is read as KIND; cut anywhere, or with a byte more, it is not served. */
static void expect_only(const struct buf *body, enum ssh_message_kind kind)
{
	struct ssh_message message;
	struct buf more;

	assert_int_equal(read_body(body).kind, kind);
	for (size_t size = 0; size < body->size; size++) {
		ssh_message_read(str_part(buf_str(body), 0, size), &message);
		assert_int_equal(message.kind, SSH_MESSAGE_OTHER);
	}
	buf_init(&more, ROOM);
	(void)buf_addstr(&more, buf_str(body));
	(void)buf_addc(&more, 0);
	assert_int_equal(read_body(&more).kind, SSH_MESSAGE_OTHER);
	buf_fini(&more);
}

static void bind_make(struct buf *out, struct str id)
{
	wire_add_byte(out, 27);
	wire_add_string(out, STR("session-bind@openssh.com"));
	wire_add_string(out, KEY);
	wire_add_string(out, id);
	wire_add_string(out, STR("signature"));
	wire_add_byte(out, 1);
}

static void the_first_message_is_found_when_it_is_whole(void **state)
{
	const struct str two = STR("\0\0\0\2ab\0\0\0\1c");
	const struct str longest = STR("\0\x04\0\0"), longer = STR("\0\x04\0\x01");
	struct str body = {NULL, 0};

	(void)state;
	for (size_t size = 0; size < SSH_MESSAGE_HEAD + 2; size++)
		assert_int_equal(ssh_message_first(str_part(two, 0, size), &body),
				 SSH_FRAME_CUT);
	assert_null(body.data);
	assert_int_equal(ssh_message_first(two, &body), SSH_FRAME_WHOLE);
	assert_true(str_is(body, "ab"));
	assert_int_equal(ssh_message_first(STR("\0\0\0\0abc"), &body), SSH_FRAME_WRONG);
	assert_int_equal(ssh_message_first(longest, &body), SSH_FRAME_CUT);
	assert_int_equal(ssh_message_first(longer, &body), SSH_FRAME_WRONG);
}

static void requests_are_read_whole_or_not_at_all(void **state)
{
	struct ssh_message message;
	struct buf body;

	(void)state;
	buf_init(&body, ROOM);
	wire_add_byte(&body, 11);
	expect_only(&body, SSH_MESSAGE_LIST);
	buf_clear(&body);
	bind_make(&body, ID);
	expect_only(&body, SSH_MESSAGE_BIND);
	message = read_body(&body);
	assert_true(str_equal(message.host_key, KEY) && str_equal(message.session, ID));
	assert_true(str_is(message.signature, "signature") && message.forwarding);
	buf_clear(&body);
	bind_make(&body, STR("too short"));
	assert_int_equal(read_body(&body).kind, SSH_MESSAGE_OTHER);
	buf_clear(&body);
	wire_add_byte(&body, 27);
	wire_add_string(&body, STR(SSH_GIT_EXTENSION));
	wire_add_string(&body, KEY);
	wire_add_string(&body, STR("tree"));
	expect_only(&body, SSH_MESSAGE_GIT);
	buf_fini(&body);
}

static void a_request_to_sign_is_that_of_the_draft(void **state)
{
	struct ssh_message message;
	struct str rest, body;
	struct buf out;

	(void)state;
	buf_init(&out, ROOM);
	ssh_message_ask_signed(&out, KEY, STR("data"), 4);
	rest = buf_str(&out);
	assert_true(wire_take_string(&rest, &body) && rest.size == 0);
	ssh_message_read(body, &message);
	assert_int_equal(message.kind, SSH_MESSAGE_SIGN);
	assert_true(str_equal(message.key, KEY) && str_is(message.data, "data"));
	assert_int_equal(message.flags, 4);
	buf_fini(&out);
}

static void nothing_else_is_served(void **state)
{
	struct buf body;

	(void)state;
	buf_init(&body, ROOM);
	for (unsigned number = 0; number < 256; number++) {
		buf_clear(&body);
		wire_add_byte(&body, (uint8_t)number);
		assert_int_equal(read_body(&body).kind,
				 number == 11 ? SSH_MESSAGE_LIST : SSH_MESSAGE_OTHER);
		if (number == 13 || number == 27)
			continue;
		wire_add_string(&body, KEY);
		wire_add_string(&body, STR("data"));
		wire_add_number(&body, 0);
		assert_int_equal(read_body(&body).kind, SSH_MESSAGE_OTHER);
	}
	buf_clear(&body);
	wire_add_byte(&body, 27);
	wire_add_string(&body, STR("query"));
	assert_int_equal(read_body(&body).kind, SSH_MESSAGE_OTHER);
	buf_fini(&body);
}

static void keys_add(struct buf *body, uint32_t count)
{
	wire_add_byte(body, 12);
	wire_add_number(body, count);
}

static void only_plain_keys_without_comments_are_listed(void **state)
{
	struct buf body, out;
	struct str whole;

	(void)state;
	buf_init(&body, ROOM);
	buf_init(&out, ROOM);
	keys_add(&body, 3);
	wire_add_string(&body, KEY);
	wire_add_string(&body, STR("ann@laptop"));
	wire_add_string(&body, CERT);
	wire_add_string(&body, STR(""));
	wire_add_string(&body, RSA);
	wire_add_string(&body, STR("/home/ann/.ssh/id"));
	assert_true(ssh_message_read_keys(buf_str(&body), &out));
	whole = buf_str(&out);
	assert_int_equal(str_find(whole, STR("ann"), 0), (size_t)-1);
	assert_true(ssh_message_has_key(whole, KEY) && ssh_message_has_key(whole, RSA));
	assert_false(ssh_message_has_key(whole, CERT));
	assert_int_equal(whole.data[4], 2);
	for (size_t size = 0; size < body.size; size++) {
		struct buf none;

		buf_init(&none, ROOM);
		assert_false(
			ssh_message_read_keys(str_part(buf_str(&body), 0, size), &none));
		assert_int_equal(none.size, 0);
		buf_fini(&none);
	}
	buf_fini(&out);
	buf_fini(&body);
}

static void a_flood_of_keys_is_cut(void **state)
{
	struct buf body, out;

	(void)state;
	buf_init(&body, ROOM);
	buf_init(&out, ROOM);
	keys_add(&body, 500);
	for (unsigned i = 0; i < 500; i++) {
		wire_add_string(&body, KEY);
		wire_add_string(&body, STR(""));
	}
	assert_true(ssh_message_read_keys(buf_str(&body), &out));
	assert_int_equal((uint8_t)out.data[4], SSH_KEYS_MAX);
	buf_clear(&body);
	keys_add(&body, UINT32_MAX);
	buf_clear(&out);
	assert_false(ssh_message_read_keys(buf_str(&body), &out));
	buf_fini(&out);
	buf_fini(&body);
}

static void an_answer_must_be_a_signature_of_the_kind(void **state)
{
	static const struct {
		struct str key;
		uint32_t flags;
		const char *kind;
		bool fine;
	} rows[] = {
		{KEY, 0, "ssh-ed25519", true},  {KEY, 0, "ssh-rsa", false},
		{KEY, 2, "ssh-ed25519", false}, {RSA, 4, "rsa-sha2-512", true},
		{RSA, 2, "rsa-sha2-256", true}, {RSA, 4, "rsa-sha2-256", false},
		{RSA, 0, "ssh-rsa", false},     {KEY, 0, "", false},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct str got, rest, body_of;
		struct buf inside, out;

		buf_init(&inside, ROOM);
		buf_init(&out, ROOM);
		wire_add_string(&inside, str_of(rows[i].kind));
		wire_add_string(&inside, STR("bytes"));
		ssh_message_add_signed(&out, buf_str(&inside));
		rest = buf_str(&out);
		assert_true(wire_take_string(&rest, &body_of));
		assert_int_equal(ssh_message_read_signed(body_of, rows[i].key,
							 rows[i].flags, &got),
				 rows[i].fine);
		if (rows[i].fine)
			assert_true(str_equal(got, buf_str(&inside)));
		buf_fini(&out);
		buf_fini(&inside);
	}
}

static void a_refusal_of_a_commit_has_its_reason(void **state)
{
	struct str rest, body, answer;
	struct buf out;

	(void)state;
	buf_init(&out, ROOM);
	ssh_message_add_reason(&out, "no");
	rest = buf_str(&out);
	assert_true(wire_take_string(&rest, &body));
	assert_false(ssh_message_read_git(body, &answer));
	assert_true(str_is(answer, "no"));
	assert_false(ssh_message_read_git(STR("\x05"), &answer));
	assert_int_equal(answer.size, 0);
	buf_fini(&out);
}

struct signing {
	struct str id, user, service, method, algorithm, key, host_key;
	uint8_t number, is_signed;
};

static void userauth_make(struct buf *out, const struct signing *of)
{
	wire_add_string(out, of->id);
	wire_add_byte(out, of->number);
	wire_add_string(out, of->user);
	wire_add_string(out, of->service);
	wire_add_string(out, of->method);
	wire_add_byte(out, of->is_signed);
	wire_add_string(out, of->algorithm);
	wire_add_string(out, of->key);
	if (of->host_key.data != NULL)
		wire_add_string(out, of->host_key);
}

static const struct signing usual = {
	.id = ID,
	.user = STR("git"),
	.service = STR("ssh-connection"),
	.method = STR("publickey"),
	.algorithm = STR("ssh-ed25519"),
	.key = KEY,
	.number = 50,
	.is_signed = 1,
};

static bool is_userauth(const struct signing *of, struct ssh_userauth *userauth)
{
	struct buf data;
	bool fine;

	buf_init(&data, ROOM);
	userauth_make(&data, of);
	fine = ssh_message_read_userauth(buf_str(&data), userauth);
	if (fine)
		assert_true(str_equal(userauth->user, of->user));
	buf_fini(&data);
	return fine;
}

static void what_signs_a_user_in_is_read(void **state)
{
	struct signing of = usual;
	struct ssh_userauth userauth;

	(void)state;
	assert_true(is_userauth(&of, &userauth));
	assert_int_equal(userauth.flags, 0);
	assert_int_equal(userauth.host_key.size, 0);
	of.method = STR("publickey-hostbound-v00@openssh.com");
	of.host_key = KEY;
	assert_true(is_userauth(&of, &userauth));
	assert_int_equal(userauth.host_key.size, KEY.size);
	of = usual;
	of.key = RSA;
	of.algorithm = STR("rsa-sha2-512");
	assert_true(is_userauth(&of, &userauth));
	assert_int_equal(userauth.flags, 4);
	of.algorithm = STR("rsa-sha2-256");
	assert_true(is_userauth(&of, &userauth));
	assert_int_equal(userauth.flags, 2);
}

#define EXPECT_REFUSED(member, value)                              \
	do {                                                       \
		struct signing of = usual;                         \
		struct ssh_userauth read;                          \
                                                                   \
		of.member = value;                                 \
		if (is_userauth(&of, &read))                       \
			fail_msg("%s may be %s", #member, #value); \
	} while (0)

static void anything_else_is_not(void **state)
{
	struct ssh_userauth userauth;
	struct buf data;

	(void)state;
	EXPECT_REFUSED(id, STR("too short"));
	EXPECT_REFUSED(
		id,
		STR("0123456789012345678901234567890123456789012345678901234567890123x"));
	EXPECT_REFUSED(user, STR(""));
	EXPECT_REFUSED(service, STR("ssh-userauth"));
	EXPECT_REFUSED(method, STR("hostbased"));
	EXPECT_REFUSED(method, STR("publickey-hostbound-v00@openssh.com"));
	EXPECT_REFUSED(host_key, KEY);
	EXPECT_REFUSED(algorithm, STR("ssh-rsa"));
	EXPECT_REFUSED(key, RSA);
	EXPECT_REFUSED(key, CERT);
	EXPECT_REFUSED(key, STR(""));
	EXPECT_REFUSED(number, 51);
	EXPECT_REFUSED(is_signed, 0);
	EXPECT_REFUSED(is_signed, 2);
	/* An old signature by SHA-1. */
	struct signing weak = usual;
	weak.key = RSA;
	weak.algorithm = STR("ssh-rsa");
	assert_false(is_userauth(&weak, &userauth));
	/* The bytes that are signed for a commit, a challenge, and a text cut or too long. */
	assert_false(ssh_message_read_userauth(STR("SSHSIG\0\0\0\x04"
						   "file\0\0\0\0\0\0\0\x06sha256"),
					       &userauth));
	assert_false(ssh_message_read_userauth(ID, &userauth));
	buf_init(&data, ROOM);
	userauth_make(&data, &usual);
	for (size_t size = 0; size < data.size; size++)
		assert_false(ssh_message_read_userauth(str_part(buf_str(&data), 0, size),
						       &userauth));
	(void)buf_addc(&data, 0);
	assert_false(ssh_message_read_userauth(buf_str(&data), &userauth));
	buf_fini(&data);
}

static void a_fingerprint_is_that_of_ssh_add(void **state)
{
	char text[SSH_FINGERPRINT];

	(void)state;
	/* printf of KEY | sha256sum, in Base64 without padding */
	assert_string_equal(ssh_message_fingerprint(KEY, text),
			    "SHA256:x85fuTAP4c8PlmX1pnTwMWg3s5+H6PkcNKd8G31hOt4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_message_is_found_when_it_is_whole),
		cmocka_unit_test(requests_are_read_whole_or_not_at_all),
		cmocka_unit_test(a_request_to_sign_is_that_of_the_draft),
		cmocka_unit_test(nothing_else_is_served),
		cmocka_unit_test(only_plain_keys_without_comments_are_listed),
		cmocka_unit_test(a_flood_of_keys_is_cut),
		cmocka_unit_test(an_answer_must_be_a_signature_of_the_kind),
		cmocka_unit_test(a_refusal_of_a_commit_has_its_reason),
		cmocka_unit_test(what_signs_a_user_in_is_read),
		cmocka_unit_test(anything_else_is_not),
		cmocka_unit_test(a_fingerprint_is_that_of_ssh_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
