/* oauth: reads and writes single documents. */
#include "mcp/bridge/oauth.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/address.h"
#include "policy/network.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	WORDS_MAX = 300,    /* bytes of a server's words in a sentence */
	VALUE_MAX = 4 << 10 /* bytes of a value of a query */
};

bool oauth_url_fits(const char *url, struct err *err)
{
	struct address address;

	if (!url)
		return err_set(err, EINVAL, "an address is missing");
	if (!address_parse(str_of(url), &address, err))
		return false;
	return !address.plain || network_is_loopback(&address.host) ||
	       err_set(err, EPERM, "http is taken on the loopback only: %s is another host",
		       address.host.text);
}

char *oauth_host_print(const struct address *address, char text[NETWORK_TEXT_MAX])
{
	if (strcmp(address->host.text, "localhost") != 0)
		return network_print(&address->host, address->port, text);
	(void)snprintf(text, NETWORK_TEXT_MAX, "127.0.0.1:%u", address->port);
	return text;
}

struct str oauth_origin(const char *url)
{
	const struct str text = str_of(url);
	const size_t scheme = str_find(text, STR("://"), 0);
	size_t end = scheme == (size_t)-1 ? text.size : scheme + 3;

	end += strcspn(url + end, "/?#");
	return str_part(text, 0, end);
}

/* The path of URL, without a slash at its end. */
static struct str path_of(const char *url)
{
	const struct str origin = oauth_origin(url);
	struct str path = str_of(url + origin.size);

	path.size = strcspn(path.data, "?#");
	while (str_ends(path, STR("/")))
		path.size--;
	return path;
}

bool oauth_resource_fits(const char *resource, const char *url)
{
	struct str wanted, given;

	if (!resource || !str_equal(oauth_origin(resource), oauth_origin(url)))
		return false;
	wanted = path_of(resource);
	given = path_of(url);
	return str_starts(given, wanted) &&
	       (given.size == wanted.size || given.data[wanted.size] == '/');
}

bool oauth_place(const char *url, const char *name, size_t index, struct buf *place)
{
	const struct str origin = oauth_origin(url), path = path_of(url);
	const bool openid = strcmp(name, "openid-configuration") == 0;

	/* Without a path the places are the same. */
	if (path.size == 0 && index > 0)
		return false;
	buf_clear(place);
	if (!buf_addstr(place, origin))
		return false;
	if (index == 0)
		return buf_addf(place, "/.well-known/%s", name) && buf_addstr(place, path);
	if (index == 1 && openid)
		return buf_addstr(place, path) && buf_addf(place, "/.well-known/%s", name);
	/* Only the metadata of a resource may be at the root when the resource is not. */
	return index == 1 && strcmp(name, "oauth-protected-resource") == 0 &&
	       buf_addf(place, "/.well-known/%s", name);
}

/* An address in DOCUMENT. False: it is there, and cannot be used. */
static bool take_url(const struct value *document, const char *name, const char **url,
		     struct err *err)
{
	*url = value_text(value_member(document, name));
	return !*url || oauth_url_fits(*url, err) || err_while(err, "its %s", name);
}

static bool has(const struct value *document, const char *name, const char *text)
{
	return value_has_text(value_member(document, name), text);
}

bool oauth_server_read(const struct value *document, const char *issuer,
		       struct oauth_server *server, struct err *err)
{
	const struct value *methods =
		value_member(document, "token_endpoint_auth_methods_supported");

	*server = (struct oauth_server){
		.issuer = value_text(value_member(document, "issuer")),
		.scopes = value_member(document, "scopes_supported"),
		.names_itself = value_is_true(
			value_member(document,
				     "authorization_response_iss_parameter_supported")),
		.takes_documents = value_is_true(
			value_member(document, "client_id_metadata_document_supported")),
		.takes_none = !methods || value_has_text(methods, "none"),
		/* This way is the default one (RFC 8414, section 2). */
		.takes_basic = !methods || value_has_text(methods, "client_secret_basic"),
		.takes_post = value_has_text(methods, "client_secret_post"),
	};
	if (!server->issuer || strcmp(server->issuer, issuer) != 0)
		return err_set(err, EPERM, "its metadata is that of another issuer");
	if (!take_url(document, "authorization_endpoint", &server->authorization, err) ||
	    !take_url(document, "token_endpoint", &server->token, err) ||
	    !take_url(document, "registration_endpoint", &server->registration, err) ||
	    !take_url(document, "device_authorization_endpoint", &server->device, err) ||
	    !take_url(document, "revocation_endpoint", &server->revocation, err))
		return false;
	if (!server->token)
		return err_set(err, EINVAL, "its metadata has no token_endpoint");
	return !server->authorization ||
	       has(document, "code_challenge_methods_supported", "S256") ||
	       err_set(err, EPERM,
		       "its metadata does not offer PKCE by S256, without which no login is "
		       "safe");
}

/* Forms and queries. */

void oauth_form_add(struct buf *form, const char *name, const char *value)
{
	if (!value)
		return;
	(void)buf_addf(form, "%s%s=", form->size > 0 ? "&" : "", name);
	(void)text_percent_add(str_of(value), "", form);
}

void oauth_challenge_add(const char *verifier, struct buf *out)
{
	uint8_t digest[HASH_BYTES];
	struct buf text;

	hash_bytes(str_of(verifier), digest);
	buf_init(&text, 4 * HASH_BYTES);
	(void)buf_base64_add((struct str){(const char *)digest, sizeof(digest)}, &text);
	/* Base64 for addresses (RFC 4648, section 5), without padding. */
	for (size_t i = 0; i < text.size && text.data[i] != '='; i++)
		(void)buf_addc(out, text.data[i] == '+'   ? '-'
				    : text.data[i] == '/' ? '_'
							  : text.data[i]);
	buf_fini(&text);
}

/* Append the value of a field of a form, decoded. */
static bool decode(struct str text, struct buf *value)
{
	for (size_t i = 0; i < text.size; i++) {
		const bool escape = text.data[i] == '%' && i + 2 < text.size;
		const int high = escape ? text_hex_digit(text.data[i + 1]) : -1;
		const int low = escape ? text_hex_digit(text.data[i + 2]) : -1;
		const char c = text.data[i] == '+' ? ' '
			       : escape            ? (char)(16 * high + low)
						   : text.data[i];

		if ((text.data[i] == '%' && (high < 0 || low < 0)) || c == '\0' ||
		    !buf_addc(value, c))
			return false;
		i += escape ? 2 : 0;
	}
	return true;
}

/*
 * Find NAME in QUERY ("a=b&c=d"), and put its value in VALUE. False: it is not there, or
 * not only once.
 */
static bool query_find(struct str query, const char *name, struct buf *value)
{
	const size_t size = strlen(name);
	unsigned count = 0;
	bool fits = true;

	buf_clear(value);
	while (query.size > 0) {
		const char *end = memchr(query.data, '&', query.size);
		const size_t part = end ? (size_t)(end - query.data) : query.size;

		if (part > size && query.data[size] == '=' &&
		    memcmp(query.data, name, size) == 0 && count++ == 0)
			fits = decode(str_part(query, size + 1, part - size - 1), value);
		query = str_part(query, part + (end != NULL), query.size);
	}
	return count == 1 && fits;
}

/* The server refuses the login: say so in its words. */
static bool login_refused(struct str query, const struct buf *error, struct err *err)
{
	struct buf words, clean;

	buf_init(&words, VALUE_MAX);
	buf_init(&clean, 4 * WORDS_MAX);
	text_add_name(&clean, str_part(buf_str(error), 0, WORDS_MAX));
	if (query_find(query, "error_description", &words)) {
		(void)buf_adds(&clean, ", ");
		text_add_name(&clean,
			      str_part(buf_str(&words), 0,
				       text_character_border(buf_str(&words), WORDS_MAX)));
	}
	(void)err_set(err, EACCES, "the login was refused: %s", clean.data);
	buf_fini(&clean);
	buf_fini(&words);
	return false;
}

static bool answer_fits(struct str query, const struct oauth_wanted *wanted,
			struct buf *value, struct err *err)
{
	/* The state first: an answer without it is not ours, whatever it says. */
	if (!query_find(query, "state", value) || strcmp(value->data, wanted->state) != 0)
		return err_set(err, EPERM,
			       "the answer belongs to another login: its state "
			       "is not ours");
	if (query_find(query, "iss", value)) {
		if (strcmp(value->data, wanted->issuer) != 0)
			return err_set(err, EPERM,
				       "the answer comes from another authorization server");
	} else if (wanted->names_itself || str_find(query, STR("iss="), 0) == 0 ||
		   str_find(query, STR("&iss="), 0) != (size_t)-1) {
		return err_set(err, EPERM,
			       "the answer does not name the authorization server");
	}
	if (query_find(query, "error", value))
		return login_refused(query, value, err);
	return true;
}

bool oauth_answer_read(struct str query, const struct oauth_wanted *wanted,
		       struct buf *code, struct err *err)
{
	struct buf value;
	bool ok;

	buf_init(&value, VALUE_MAX);
	ok = answer_fits(query, wanted, &value, err);
	buf_fini(&value);
	return ok && ((query_find(query, "code", code) && code->size > 0) ||
		      err_set(err, EINVAL, "the answer has no code"));
}
