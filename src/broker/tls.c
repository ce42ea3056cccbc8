/* tls: OpenSSL behind a few functions; the only file that includes its headers. */

#include "broker/tls.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"
#include "broker/authority.h"
#include "policy/network.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ROOTS_MAX = 8 << 20, /* a bundle is 200 KiB; some add those of a company */
	SESSIONS_MAX = 32,   /* hosts whose session is kept */
	PREPARE_US = 1000,
	READ_AHEAD = 64 << 10, /* four records a system call */
	WHY_MAX = 200,
};

const struct library tls_libcrypto = LIBRARY_CRYPTO("keeping a key outside of the cell");
static const struct library libssl = {"libssl.so.3", "3.0", "libssl3",
				      "keeping a key outside of the cell"};

struct functions {
	typeof(OPENSSL_init_ssl) *init;
	typeof(TLS_client_method) *method;
	typeof(TLS_server_method) *server_method;
	typeof(SSL_CTX_new) *ctx_new;
	typeof(SSL_CTX_ctrl) *ctx_ctrl;
	typeof(SSL_CTX_set_verify) *ctx_set_verify;
	typeof(SSL_CTX_get_cert_store) *ctx_get_cert_store;
	typeof(SSL_CTX_set_default_read_buffer_len) *ctx_set_read_buffer;
	typeof(SSL_CTX_callback_ctrl) *ctx_callback_ctrl;
	typeof(SSL_CTX_set_options) *ctx_set_options;
	typeof(SSL_CTX_set_num_tickets) *ctx_set_num_tickets;
	typeof(SSL_CTX_set_alpn_select_cb) *ctx_set_alpn_select;
	typeof(SSL_CTX_use_PrivateKey) *ctx_use_key;
	typeof(SSL_new) *new;
	typeof(SSL_free) *free;
	typeof(SSL_ctrl) *ctrl;
	typeof(SSL_set_fd) *set_fd;
	typeof(SSL_get0_param) *get0_param;
	typeof(SSL_set_hostflags) *set_hostflags;
	typeof(SSL_set1_host) *set1_host;
	typeof(SSL_set_alpn_protos) *set_alpn_protos;
	typeof(SSL_get1_session) *get1_session;
	typeof(SSL_set_session) *set_session;
	typeof(SSL_SESSION_free) *session_free;
	typeof(SSL_SESSION_is_resumable) *session_is_resumable;
	typeof(SSL_set_ex_data) *set_data;
	typeof(SSL_get_ex_data) *get_data;
	typeof(SSL_get_servername) *get_name;
	typeof(SSL_use_certificate_ASN1) *use_certificate;
	typeof(SSL_set_connect_state) *set_connect;
	typeof(SSL_set_accept_state) *set_accept;
	typeof(SSL_do_handshake) *handshake;
	typeof(SSL_read) *read;
	typeof(SSL_write) *write;
	typeof(SSL_shutdown) *shutdown;
	typeof(SSL_has_pending) *has_pending;
	typeof(SSL_get_error) *get_error;
	typeof(SSL_get_verify_result) *get_verify_result;
	typeof(ERR_clear_error) *clear_error;
	typeof(ERR_peek_error) *peek_error;
	typeof(ERR_reason_error_string) *reason;
	typeof(X509_verify_cert_error_string) *verify_reason;
	typeof(X509_VERIFY_PARAM_set1_ip_asc) *set1_ip;
	typeof(X509_STORE_add_cert) *store_add;
	typeof(X509_free) *x509_free;
	typeof(PEM_read_bio_X509) *read_x509;
	typeof(BIO_new_mem_buf) *bio_new;
	typeof(BIO_free) *bio_free;
};

/* The session of the last connection to a host. */
struct kept {
	char name[NETWORK_TEXT_MAX]; /* host:port */
	SSL_SESSION *session;
};

struct tls {
	struct functions call;
	SSL_CTX *context;
	struct authority *authority; /* NULL: the side of the client */
	struct buf roots;            /* PEM, of all files */
	BIO *rest;                   /* of `roots`; NULL: all are parsed */
	struct kept kept[SESSIONS_MAX];
	size_t kept_count, kept_next;
};

struct tls_connection {
	struct tls *tls;
	SSL *ssl;
	char name[NETWORK_TEXT_MAX];
	struct network_host host; /* of the side of the server: what a greeting must name */
	bool is_open;             /* the handshake is done */
	bool is_kept;             /* its session was looked at */
	bool is_ended;            /* the good-bye was said */
	bool is_cut;
	short wants;
	char why[WHY_MAX];
};

static bool load(struct functions *call, struct err *err)
{
	const struct library_function of_crypto[] = {
		{"ERR_clear_error", &call->clear_error},
		{"ERR_peek_error", &call->peek_error},
		{"ERR_reason_error_string", &call->reason},
		{"X509_verify_cert_error_string", &call->verify_reason},
		{"X509_VERIFY_PARAM_set1_ip_asc", &call->set1_ip},
		{"X509_STORE_add_cert", &call->store_add},
		{"X509_free", &call->x509_free},
		{"PEM_read_bio_X509", &call->read_x509},
		{"BIO_new_mem_buf", &call->bio_new},
		{"BIO_free", &call->bio_free},
	};
	const struct library_function of_ssl[] = {
		{"OPENSSL_init_ssl", &call->init},
		{"TLS_client_method", &call->method},
		{"TLS_server_method", &call->server_method},
		{"SSL_CTX_new", &call->ctx_new},
		{"SSL_CTX_ctrl", &call->ctx_ctrl},
		{"SSL_CTX_set_verify", &call->ctx_set_verify},
		{"SSL_CTX_get_cert_store", &call->ctx_get_cert_store},
		{"SSL_CTX_set_default_read_buffer_len", &call->ctx_set_read_buffer},
		{"SSL_CTX_callback_ctrl", &call->ctx_callback_ctrl},
		{"SSL_CTX_set_options", &call->ctx_set_options},
		{"SSL_CTX_set_num_tickets", &call->ctx_set_num_tickets},
		{"SSL_CTX_set_alpn_select_cb", &call->ctx_set_alpn_select},
		{"SSL_CTX_use_PrivateKey", &call->ctx_use_key},
		{"SSL_new", &call->new},
		{"SSL_free", &call->free},
		{"SSL_ctrl", &call->ctrl},
		{"SSL_set_fd", &call->set_fd},
		{"SSL_get0_param", &call->get0_param},
		{"SSL_set_hostflags", &call->set_hostflags},
		{"SSL_set1_host", &call->set1_host},
		{"SSL_set_alpn_protos", &call->set_alpn_protos},
		{"SSL_get1_session", &call->get1_session},
		{"SSL_set_session", &call->set_session},
		{"SSL_SESSION_free", &call->session_free},
		{"SSL_SESSION_is_resumable", &call->session_is_resumable},
		{"SSL_set_ex_data", &call->set_data},
		{"SSL_get_ex_data", &call->get_data},
		{"SSL_get_servername", &call->get_name},
		{"SSL_use_certificate_ASN1", &call->use_certificate},
		{"SSL_set_connect_state", &call->set_connect},
		{"SSL_set_accept_state", &call->set_accept},
		{"SSL_do_handshake", &call->handshake},
		{"SSL_read", &call->read},
		{"SSL_write", &call->write},
		{"SSL_shutdown", &call->shutdown},
		{"SSL_has_pending", &call->has_pending},
		{"SSL_get_error", &call->get_error},
		{"SSL_get_verify_result", &call->get_verify_result},
	};

	return library_load(&tls_libcrypto, of_crypto,
			    sizeof(of_crypto) / sizeof(of_crypto[0]), err) &&
	       library_load(&libssl, of_ssl, sizeof(of_ssl) / sizeof(of_ssl[0]), err);
}

/* The roots. */

const char *const tls_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch, Gentoo */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", /* openSUSE */
	"/etc/ssl/cert.pem",      /* Alpine */
	NULL,
};

static bool read_roots(const char *ca_file, struct buf *roots, struct err *err)
{
	struct buf text;
	bool fine = true;

	buf_init(&text, ROOTS_MAX);
	for (size_t i = 0; tls_bundles[i] != NULL; i++) {
		if (fd_read_file(tls_bundles[i], ROOTS_MAX / 2, roots, NULL))
			break;
	}
	if (ca_file != NULL)
		fine = fd_read_file(ca_file, ROOTS_MAX / 2, &text, err) &&
		       (str_find(buf_str(&text), STR("-----BEGIN "), 0) != (size_t)-1 ||
			err_set(err, EINVAL, "%s holds no certificate (PEM)", ca_file)) &&
		       buf_end_line(roots) && buf_addstr(roots, buf_str(&text));
	buf_fini(&text);
	return fine &&
	       (roots->size > 0 ||
		err_set(err, ENOENT,
			"this system has no certificates of roots: install ca-certificates"));
}

bool tls_prepare(struct tls *tls)
{
	const int64_t end_us = clock_now_us() + PREPARE_US;
	const struct functions *call = &tls->call;
	X509 *root;

	if (tls->rest == NULL)
		return false;
	while ((root = call->read_x509(tls->rest, NULL, NULL, NULL)) != NULL) {
		(void)call->store_add(call->ctx_get_cert_store(tls->context), root);
		call->x509_free(root);
		if (clock_now_us() >= end_us)
			return true;
	}
	call->clear_error();
	(void)call->bio_free(tls->rest);
	tls->rest = NULL;
	buf_fini(&tls->roots);
	return false;
}

/* The sessions. */

static struct kept *kept_find(struct tls *tls, const char *name)
{
	for (size_t i = 0; i < tls->kept_count; i++) {
		if (strcmp(tls->kept[i].name, name) == 0)
			return &tls->kept[i];
	}
	return NULL;
}

/*
 * Keep the session of CONNECTION for the next one to the same server. With TLS 1.3 the
 * ticket comes behind the handshake, together with the first bytes.
 */
static void session_keep(struct tls_connection *connection)
{
	struct tls *tls = connection->tls;
	SSL_SESSION *session = tls->call.get1_session(connection->ssl);
	struct kept *kept = kept_find(tls, connection->name);

	connection->is_kept = true;
	if (session == NULL)
		return;
	if (!tls->call.session_is_resumable(session)) {
		tls->call.session_free(session);
		return;
	}
	if (kept == NULL && tls->kept_count < SESSIONS_MAX)
		kept = &tls->kept[tls->kept_count++];
	if (kept == NULL)
		kept = &tls->kept[tls->kept_next++ % SESSIONS_MAX];
	tls->call.session_free(kept->session);
	memcpy(kept->name, connection->name, sizeof(kept->name));
	kept->session = session;
}

/* The contexts, and connections. */

/* Make the context of TLS, for the side of METHOD. */
static bool context_make(struct tls *tls, const SSL_METHOD *method)
{
	const struct functions *call = &tls->call;

	tls->context = call->ctx_new(method);
	if (tls->context == NULL)
		return false;
	(void)call->ctx_ctrl(tls->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION,
			     NULL);
	(void)call->ctx_ctrl(tls->context, SSL_CTRL_MODE,
			     SSL_MODE_ENABLE_PARTIAL_WRITE |
				     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				     SSL_MODE_RELEASE_BUFFERS,
			     NULL);
	return true;
}

bool tls_open(const char *ca_file, struct tls **tls, struct err *err)
{
	struct tls *made = memory_alloc(sizeof(*made));
	struct functions *call = &made->call;
	bool fine;

	buf_init(&made->roots, ROOTS_MAX);
	/* The configuration of OpenSSL could switch algorithms and checks off. */
	fine = load(call, err) && read_roots(ca_file, &made->roots, err) &&
	       ((call->init(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 &&
		 context_make(made, call->method()) &&
		 (made->rest = call->bio_new(made->roots.data, (int)made->roots.size)) !=
			 NULL) ||
		err_set(err, EIO, "%s could not be started", libssl.name));
	if (!fine) {
		buf_fini(&made->roots);
		free(made);
		return false;
	}
	call->ctx_set_verify(made->context, SSL_VERIFY_PEER, NULL);
	(void)call->ctx_ctrl(made->context, SSL_CTRL_SET_READ_AHEAD, 1, NULL);
	call->ctx_set_read_buffer(made->context, READ_AHEAD);
	*tls = made;
	return true;
}

/* OpenSSL asks: does the greeting name the host of the connection? */
static int name_asked(SSL *ssl, int *alert, void *context)
{
	const struct functions *call = &((struct tls *)context)->call;
	struct tls_connection *connection = call->get_data(ssl, 0);
	const char *name = call->get_name(ssl, TLSEXT_NAMETYPE_host_name);
	struct network_host asked;

	if (name == NULL ? connection->host.kind == NETWORK_NAME
			 : !network_parse_host(str_of(name), &asked, NULL) ||
				   !network_same_host(&asked, &connection->host)) {
		*alert = SSL_AD_UNRECOGNIZED_NAME;
		(void)snprintf(connection->why, sizeof(connection->why),
			       name == NULL ? "its greeting names no host (SNI)"
					    : "its greeting names another host (SNI)");
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	return SSL_TLSEXT_ERR_OK;
}

/* OpenSSL asks: which of the protocols in OFFERED, each behind its length, is spoken? */
static int protocol_asked(SSL *ssl, const unsigned char **chosen, unsigned char *size,
			  const unsigned char *offered, unsigned offered_size, void *context)
{
	static const struct str ours = STR("http/1.1");
	struct tls_connection *connection = ((struct tls *)context)->call.get_data(ssl, 0);

	for (unsigned at = 0; at < offered_size; at += 1U + offered[at]) {
		const struct str one =
			str_part((struct str){(const char *)offered, offered_size},
				 at + 1, offered[at]);

		if (str_equal(one, ours)) {
			*chosen = offered + at + 1;
			*size = offered[at];
			return SSL_TLSEXT_ERR_OK;
		}
	}
	(void)snprintf(connection->why, sizeof(connection->why),
		       "it speaks HTTP/2 only, and not HTTP/1.1 (ALPN)");
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool tls_open_server(struct authority *authority, struct tls **tls, struct err *err)
{
	struct tls *made = memory_alloc(sizeof(*made));
	struct functions *call = &made->call;

	if (!load(call, err)) {
		free(made);
		return false;
	}
	if (call->init(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 ||
	    !context_make(made, call->server_method()) ||
	    call->ctx_use_key(made->context, authority_leaf_key(authority)) != 1) {
		free(made);
		return err_set(err, EIO, "%s could not be started", libssl.name);
	}
	made->authority = authority;
	(void)call->ctx_set_options(made->context, SSL_OP_NO_RENEGOTIATION |
							   SSL_OP_NO_TICKET |
							   SSL_OP_NO_COMPRESSION);
	(void)call->ctx_set_num_tickets(made->context, 0);
	(void)call->ctx_ctrl(made->context, SSL_CTRL_SET_SESS_CACHE_MODE,
			     SSL_SESS_CACHE_OFF, NULL);
	call->ctx_set_alpn_select(made->context, protocol_asked, made);
	(void)call->ctx_callback_ctrl(made->context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
				      (void (*)(void))name_asked);
	(void)call->ctx_ctrl(made->context, SSL_CTRL_SET_TLSEXT_SERVERNAME_ARG, 0, made);
	*tls = made;
	return true;
}

/* Set what the certificate must name, and what the server is told of it. */
static bool name_set(struct tls_connection *connection, const struct network_host *host)
{
	const struct functions *call = &connection->tls->call;
	SSL *ssl = connection->ssl;

	if (host->kind != NETWORK_NAME)
		return call->set1_ip(call->get0_param(ssl), host->text) == 1;
	call->set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
					 X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return call->set1_host(ssl, host->text) == 1 &&
	       call->ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
			  (void *)(uintptr_t)host->text) == 1;
}

struct tls_connection *tls_begin(struct tls *tls, int fd, const struct network_host *host,
				 uint16_t port)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	struct tls_connection *made = memory_alloc(sizeof(*made));
	const struct functions *call = &tls->call;
	const struct kept *kept;

	made->tls = tls;
	made->wants = POLLOUT;
	(void)network_print(host, port, made->name);
	made->ssl = call->new (tls->context);
	if (made->ssl == NULL || call->set_fd(made->ssl, fd) != 1 || !name_set(made, host) ||
	    call->set_alpn_protos(made->ssl, protocols, sizeof(protocols) - 1) != 0) {
		/* Out of memory, as everywhere: no half-made check may go on. */
		abort();
	}
	call->set_connect(made->ssl);
	kept = kept_find(tls, made->name);
	if (kept != NULL)
		(void)call->set_session(made->ssl, kept->session);
	return made;
}

struct tls_connection *tls_accept(struct tls *tls, int fd, const struct network_host *host)
{
	const struct functions *call = &tls->call;
	const struct str leaf = authority_leaf(tls->authority, host);
	struct tls_connection *made;

	if (leaf.size == 0)
		return NULL;
	made = memory_alloc(sizeof(*made));
	made->tls = tls;
	made->wants = POLLIN;
	made->is_kept = true;
	made->host = *host;
	made->ssl = call->new (tls->context);
	if (made->ssl == NULL || call->set_fd(made->ssl, fd) != 1 ||
	    call->set_data(made->ssl, 0, made) != 1 ||
	    call->use_certificate(made->ssl, (const unsigned char *)leaf.data,
				  (int)leaf.size) != 1)
		abort(); /* out of memory, as above */
	call->set_accept(made->ssl);
	return made;
}

void tls_say_end(struct tls_connection *connection)
{
	const struct functions *call = &connection->tls->call;

	if (connection->is_ended || !connection->is_open || connection->wants == 0)
		return;
	connection->is_ended = true;
	call->clear_error();
	(void)call->shutdown(connection->ssl);
	call->clear_error();
}

void tls_end(struct tls_connection *connection)
{
	if (connection == NULL)
		return;
	/* OpenSSL does not resume a session whose connection was not ended properly. */
	tls_say_end(connection);
	if (connection->is_ended && !connection->is_kept)
		session_keep(connection);
	connection->tls->call.clear_error();
	connection->tls->call.free(connection->ssl);
	free(connection);
}

/* The end of an operation that returned CODE; says what is waited for, or why not. */
static void settle(struct tls_connection *connection, int code, int saved)
{
	const struct functions *call = &connection->tls->call;
	const long verified = call->get_verify_result(connection->ssl);
	const unsigned long error = call->peek_error();
	const char *reason = call->reason(error);

	switch (call->get_error(connection->ssl, code)) {
	case SSL_ERROR_WANT_READ:
		connection->wants = POLLIN;
		return;
	case SSL_ERROR_WANT_WRITE:
		connection->wants = POLLOUT;
		return;
	case SSL_ERROR_SYSCALL:
		connection->is_cut = true;
		reason = saved != 0 ? strerror(saved) : "the connection was cut";
		break;
	case SSL_ERROR_ZERO_RETURN:
		reason = "the server has ended the connection";
		break;
	default:
		connection->is_cut =
			ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
		break;
	}
	connection->wants = 0;
	if (connection->why[0] != '\0')
		return; /* a callback of ours has said why */
	if (!connection->is_open && verified != X509_V_OK)
		reason = call->verify_reason(verified);
	(void)snprintf(connection->why, sizeof(connection->why), "%s%s",
		       !connection->is_open && verified != X509_V_OK
			       ? "its certificate is not good: "
			       : "",
		       reason != NULL ? reason : "TLS failed");
}

bool tls_handshake(struct tls_connection *connection)
{
	const struct functions *call = &connection->tls->call;
	int code;

	while (tls_prepare(connection->tls))
		;
	call->clear_error();
	code = call->handshake(connection->ssl);
	if (code == 1) {
		connection->is_open = true;
		return true;
	}
	settle(connection, code, errno);
	return false;
}

ssize_t tls_read(struct tls_connection *connection, void *data, size_t size)
{
	const struct functions *call = &connection->tls->call;
	int code;

	call->clear_error();
	code = call->read(connection->ssl, data, size < INT_MAX ? (int)size : INT_MAX);
	if (code > 0) {
		if (!connection->is_kept)
			session_keep(connection);
		return code;
	}
	if (call->get_error(connection->ssl, code) == SSL_ERROR_ZERO_RETURN)
		return 0;
	settle(connection, code, errno);
	return -1;
}

ssize_t tls_write(struct tls_connection *connection, const void *data, size_t size)
{
	const struct functions *call = &connection->tls->call;
	int code;

	call->clear_error();
	code = call->write(connection->ssl, data, size < INT_MAX ? (int)size : INT_MAX);
	if (code > 0)
		return code;
	settle(connection, code, errno);
	return -1;
}

short tls_wants(const struct tls_connection *connection)
{
	return connection->wants;
}

const char *tls_why(const struct tls_connection *connection)
{
	return connection->why;
}

bool tls_is_cut(const struct tls_connection *connection)
{
	return connection->is_cut;
}

bool tls_is_filled(const struct tls_connection *connection)
{
	return connection->tls->call.has_pending(connection->ssl) == 1;
}
