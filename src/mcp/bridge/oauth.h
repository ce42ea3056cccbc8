/*
 * oauth: the documents, addresses and forms of OAuth 2.1, as MCP uses it: metadata of a
 * protected resource (RFC 9728) and of an authorization server (RFC 8414, OpenID Connect
 * Discovery), PKCE (RFC 7636), the answer of a login (RFC 6749, RFC 9207) and its resource
 * (RFC 8707).
 *
 * Pure. All texts come from servers or from a browser.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/address.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	OAUTH_VERIFIER = 64,  /* hexadecimal digits: 256 bits */
	OAUTH_STATE = 32,     /* hexadecimal digits: 128 bits */
	OAUTH_URL_MAX = 4096, /* bytes of an address */
};

/*
 * An authorization server. The texts are borrowed from the document that it was read from;
 * an address that the server does not have is NULL.
 */
struct oauth_server {
	const char *issuer;
	const char *authorization, *token, *registration, *device, *revocation;
	const struct value *scopes; /* or NULL */
	bool names_itself;          /* its answer to a login names the issuer */
	bool takes_documents; /* the address of a document may be the name of a client */
	bool takes_none, takes_basic, takes_post; /* ways to prove who the client is */
};

/*
 * Read DOCUMENT, the metadata of ISSUER. It must name ISSUER itself, and PKCE by S256
 * unless it has no address for logins. Plain HTTP is taken on the loopback only.
 */
bool oauth_server_read(const struct value *document, const char *issuer,
		       struct oauth_server *server, struct err *err);

/* Is URL https, or http on the loopback, and otherwise an address we take? */
bool oauth_url_fits(const char *url, struct err *err);

/*
 * Print the host and port that a cell must reach for ADDRESS. Returns TEXT. In a cell
 * localhost is the cell's own, so that of this machine is 127.0.0.1 (bridge/web.c).
 */
char *oauth_host_print(const struct address *address, char text[NETWORK_TEXT_MAX]);

/* Does the token for RESOURCE belong to the server at URL: is it URL, or a part of its path? */
bool oauth_resource_fits(const char *resource, const char *url);

/* The scheme, host and port of URL, as they are written. */
struct str oauth_origin(const char *url);

/*
 * Where the document NAME of URL may be, the likeliest place first: INDEX counts from 0.
 * False: there is no such place.
 */
bool oauth_place(const char *url, const char *name, size_t index, struct buf *place);

/* Append NAME=VALUE to FORM, behind "&" unless it is the first. A NULL VALUE is left out. */
void oauth_form_add(struct buf *form, const char *name, const char *value);

/* Append the challenge of PKCE for VERIFIER. */
void oauth_challenge_add(const char *verifier, struct buf *out);

/* The form that an answer to a login must have. */
struct oauth_wanted {
	const char *state, *issuer;
	bool names_itself; /* the answer must name the issuer; else it may */
};

/* Read QUERY, the answer to a login, and put its code in CODE. */
bool oauth_answer_read(struct str query, const struct oauth_wanted *wanted,
		       struct buf *code, struct err *err);
