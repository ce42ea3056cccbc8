/* auth: discovery, registration, logins and renewals, one request after the other. */
#include "mcp/bridge/auth.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/bridge/headers.h"
#include "mcp/bridge/oauth.h"
#include "mcp/bridge/steer.h"
#include "mcp/bridge/web.h"
#include "mcp/message.h"
#include "policy/address.h"
#include "policy/network.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	BEFORE_END_MS = 60 * 1000, /* a token is renewed so long before its end */
	PAUSE_MS = 60 * 1000,      /* after a renewal that failed */
	FORM_MAX = 64 << 10,
	SCOPE_MAX = 4 << 10,
	PHRASE_MAX = 1 << 10,
	DEVICE_INTERVAL_S = 5, /* RFC 8628, section 3.2 */
	DEVICE_INTERVAL_MOST_S = 60,
	DEVICE_WAIT_S = 900,
	SESSION_ROOM = 1024,
};

#define DEVICE_GRANT "urn:ietf:params:oauth:grant-type:device_code"

/* The facts about the server of the tokens. */
struct found {
	struct value *resource_document, *server_document;
	const char *resource; /* of the first one, or the address of the MCP server */
	struct oauth_server server;
	char *issuer;
	struct buf scope;
};

/* Our identity at the server of the tokens. */
struct client {
	struct value *document; /* of a registration; or NULL */
	const char *id, *secret;
	const char *way; /* to prove it: "basic", "post" or "none" */
};

struct auth {
	struct web *web;
	struct steer *steer;
	const struct value *settings, *wishes;
	const char *name, *url;
	struct value *tokens; /* or NULL */
	int64_t pause_ms;     /* no renewal before this, unless a request needs it */
};

static const char *text_of(const struct value *object, const char *key)
{
	return value_text(value_member(object, key));
}

struct auth *auth_new(struct web *web, struct steer *steer, const struct value *settings)
{
	struct auth *auth = memory_alloc(sizeof(*auth));
	const struct value *tokens = value_member(settings, "tokens");

	auth->web = web;
	auth->steer = steer;
	auth->settings = settings;
	auth->wishes = value_member(settings, "oauth");
	auth->name = text_of(settings, "name");
	auth->url = text_of(settings, "url");
	if (value_kind(tokens) == VALUE_OBJECT)
		auth->tokens = value_copy(tokens);
	return auth;
}

static void set_tokens(struct auth *auth, struct value *take_tokens)
{
	value_wipe(auth->tokens);
	value_free(auth->tokens);
	auth->tokens = take_tokens;
}

void auth_free(struct auth *auth)
{
	if (!auth)
		return;
	set_tokens(auth, NULL);
	free(auth);
}

void auth_add_header(const struct auth *auth, struct value *list)
{
	const char *token = text_of(auth->tokens, "access_token");
	struct buf line;

	if (!token)
		return;
	buf_init(&line, FORM_MAX);
	(void)buf_addf(&line, "Bearer %s", token);
	headers_add(list, "Authorization", buf_str(&line));
	explicit_bzero(line.data, line.size);
	buf_fini(&line);
}

/* May a token be had without a person, by the secret of the client? */
static bool by_secret(const struct auth *auth)
{
	return str_is(value_str(value_member(auth->wishes, "grant")), "client_credentials");
}

bool auth_is_due(const struct auth *auth)
{
	const struct value *end = value_member(auth->tokens, "expires_ms");

	return end && clock_wall_ms() + BEFORE_END_MS >= value_integer(end) &&
	       clock_now_ms() >= auth->pause_ms &&
	       (text_of(auth->tokens, "refresh_token") || by_secret(auth));
}

/* Requests. */

/*
 * May URL be asked from this cell? If not, the front is told its host, and may start the
 * bridge again where it is reached.
 */
static bool is_reached(const struct auth *auth, const char *url, struct err *err)
{
	char text[NETWORK_TEXT_MAX];
	struct address address;
	struct value *line, *hosts;

	if (!oauth_url_fits(url, err) || !address_parse(str_of(url), &address, err))
		return false;
	(void)oauth_host_print(&address, text);
	if (value_has_text(value_member(auth->settings, "hosts"), text))
		return true;
	line = value_new_object();
	hosts = value_new_array();
	value_append(hosts, value_new_text(text));
	value_set(line, "hosts", hosts);
	steer_tell(auth->steer, line);
	/* The front ends this cell; nothing may happen before. */
	value_free(steer_hear(auth->steer));
	return err_set(err, EHOSTUNREACH, "needs %s, which is not reached from its cell",
		       text);
}

/* Ask for the JSON object at URL. NULL: there is none. STATUS: of the answer, or 0. */
static struct value *document_at(struct auth *auth, const char *url, long *status,
				 struct err *err)
{
	auto_value struct value *headers = value_new_array();
	const struct web_request request = {.method = WEB_GET, .url = url, .headers = headers};
	struct value *document = NULL;
	struct web_reply reply;

	*status = 0;
	if (!is_reached(auth, url, err))
		return NULL;
	headers_add(headers, "Accept", STR("application/json"));
	headers_add(headers, "MCP-Protocol-Version",
		    str_of(mcp_version_name(MCP_2025_11_25)));
	web_reply_init(&reply);
	if (web_ask(auth->web, &request, &reply, err)) {
		*status = reply.status;
		if (reply.status != 200 ||
		    !value_parse(buf_str(&reply.body), 0, &document, NULL) ||
		    value_kind(document) != VALUE_OBJECT) {
			value_free(document);
			document = NULL;
			(void)err_set(err, EIO, "%.200s has no document (HTTP status %ld)",
				      url, reply.status);
		}
	}
	web_reply_fini(&reply);
	return document;
}

/* Add the words of an answer with an error (RFC 6749, section 5.2). */
static void refused(const struct value *answer, long status, const char *what,
		    struct err *err)
{
	const char *error = text_of(answer, "error");
	struct buf words;

	buf_init(&words, PHRASE_MAX);
	text_add_name(&words, str_part(str_of(error), 0, 200));
	(void)err_set(err, error && strcmp(error, "invalid_grant") == 0 ? EACCES : EIO,
		      "%s was refused: %s (HTTP status %ld)", what,
		      error ? words.data : "no reason is given", status);
	buf_fini(&words);
}

/* POST BODY to URL. The answer is a JSON object, whatever the status; NULL: none came. */
static struct value *post(struct auth *auth, const char *url, const char *type,
			  struct str body, const char *authorization, long *status,
			  struct err *err)
{
	auto_value struct value *headers = value_new_array();
	const struct web_request request = {.method = WEB_POST,
					    .url = url,
					    .headers = headers,
					    .body = body,
					    .content_type = type};
	struct value *answer = NULL;
	struct web_reply reply;

	*status = 0;
	if (!is_reached(auth, url, err))
		return NULL;
	headers_add(headers, "Accept", STR("application/json"));
	if (authorization)
		headers_add(headers, "Authorization", str_of(authorization));
	web_reply_init(&reply);
	if (web_ask(auth->web, &request, &reply, err)) {
		*status = reply.status;
		if (!value_parse(buf_str(&reply.body), 0, &answer, NULL) &&
		    reply.status >= 200 && reply.status < 300)
			answer = value_new_object();
		if (!answer)
			(void)err_set(err, EIO, "%.200s answers with the HTTP status %ld",
				      url, reply.status);
	}
	web_reply_fini(&reply);
	return answer;
}

/* Discovery. */

static void found_init(struct found *found)
{
	*found = (struct found){0};
	buf_init(&found->scope, SCOPE_MAX);
}

static void found_fini(struct found *found)
{
	value_free(found->resource_document);
	value_free(found->server_document);
	free(found->issuer);
	buf_fini(&found->scope);
}

/* The metadata of the MCP server itself. True without it: older servers have none. */
static bool find_resource(struct auth *auth, struct str head, struct found *found,
			  struct err *err)
{
	struct buf place;
	long status = 0;
	bool named;

	buf_init(&place, OAUTH_URL_MAX);
	named = headers_challenge(head, "resource_metadata", &place);
	if (named)
		found->resource_document = document_at(auth, place.data, &status, err);
	for (size_t i = 0; !named && !found->resource_document &&
			   oauth_place(auth->url, "oauth-protected-resource", i, &place);
	     i++) {
		found->resource_document = document_at(auth, place.data, &status, err);
		if (status == 0)
			break;
	}
	buf_fini(&place);
	if (!found->resource_document && (named || status == 0))
		return false;
	found->resource = auth->url;
	if (!found->resource_document)
		return true;
	found->resource = text_of(found->resource_document, "resource");
	return oauth_resource_fits(found->resource, auth->url) ||
	       err_set(err, EPERM,
		       "has metadata for another address, so that a token for it could be "
		       "used elsewhere");
}

static bool find_server(struct auth *auth, struct found *found, struct err *err)
{
	static const char *const names[] = {"oauth-authorization-server",
					    "openid-configuration"};
	const struct value *servers =
		value_member(found->resource_document, "authorization_servers");
	const char *issuer = value_text(value_item(servers, 0));
	struct buf place;
	long status = 0;

	found->issuer =
		issuer ? memory_copy(issuer) : memory_copy_str(oauth_origin(auth->url));
	if (!oauth_url_fits(found->issuer, err))
		return err_while(err, "its authorization server");
	buf_init(&place, OAUTH_URL_MAX);
	for (size_t i = 0; i < 4 && !found->server_document; i++) {
		if (!oauth_place(found->issuer, names[i % 2], i / 2, &place))
			continue;
		found->server_document = document_at(auth, place.data, &status, err);
		if (!found->server_document && status == 0)
			break;
	}
	buf_fini(&place);
	if (!found->server_document)
		return err_while(err, "has no usable authorization server");
	return oauth_server_read(found->server_document, found->issuer, &found->server,
				 err) ||
	       err_while(err, "has the authorization server %.200s", found->issuer);
}

static void add_scopes(const struct value *list, struct buf *scope)
{
	for (size_t i = 0; i < value_count(list); i++)
		(void)buf_addf(scope, "%s%s", scope->size > 0 ? " " : "",
			       value_text(value_item(list, i))
				       ? value_text(value_item(list, i))
				       : "");
}

/* The rights to ask for: the person's, else the challenge's, else all that there are. */
static void find_scope(struct auth *auth, struct str head, struct found *found)
{
	const char *wished = text_of(auth->wishes, "scope");

	if (wished)
		(void)buf_adds(&found->scope, wished);
	else if (!headers_challenge(head, "scope", &found->scope))
		add_scopes(value_member(found->resource_document, "scopes_supported"),
			   &found->scope);
	/* A token that can be renewed is a right of its own at some servers. */
	if (found->scope.size > 0 && !by_secret(auth) &&
	    value_has_text(found->server.scopes, "offline_access") &&
	    !str_among(found->scope.data, STR("offline_access")))
		(void)buf_adds(&found->scope, " offline_access");
}

static bool discover(struct auth *auth, struct str head, struct found *found, struct err *err)
{
	if (!find_resource(auth, head, found, err) || !find_server(auth, found, err))
		return false;
	find_scope(auth, head, found);
	return true;
}

/* Clients. */

static struct str registration_of(const struct auth *auth, const struct found *found,
				  struct buf *out)
{
	const char *redirect = text_of(auth->settings, "redirect");
	auto_value struct value *body = value_new_object();
	struct value *list = value_new_array();

	value_set_text(body, "client_name", "Glovebox");
	value_set_text(body, "application_type", "native");
	value_set_text(body, "token_endpoint_auth_method",
		       found->server.takes_none    ? "none"
		       : found->server.takes_basic ? "client_secret_basic"
						   : "client_secret_post");
	if (redirect)
		value_append(list, value_new_text(redirect));
	value_set(body, "redirect_uris", list);
	list = value_new_array();
	value_append(list, value_new_text(redirect ? "authorization_code" : DEVICE_GRANT));
	value_append(list, value_new_text("refresh_token"));
	value_set(body, "grant_types", list);
	list = value_new_array();
	if (redirect)
		value_append(list, value_new_text("code"));
	value_set(body, "response_types", list);
	if (found->scope.size > 0)
		value_set_text(body, "scope", found->scope.data);
	(void)value_print(body, 0, out);
	return buf_str(out);
}

static bool register_client(struct auth *auth, const struct found *found,
			    struct client *client, struct err *err)
{
	struct buf body;
	long status;

	buf_init(&body, FORM_MAX);
	client->document = post(auth, found->server.registration, "application/json",
				registration_of(auth, found, &body), NULL, &status, err);
	buf_fini(&body);
	if (!client->document)
		return false;
	client->id = text_of(client->document, "client_id");
	client->secret = text_of(client->document, "client_secret");
	if (status < 200 || status > 299 || !client->id) {
		refused(client->document, status, "the registration of this client", err);
		return false;
	}
	return true;
}

/* How the client proves who it is: as its registration says, or as the server takes it. */
static const char *way_of(const struct found *found, const struct client *client)
{
	const struct str wished =
		value_str(value_member(client->document, "token_endpoint_auth_method"));

	if (!client->secret || str_is(wished, "none"))
		return "none";
	if (wished.size > 0)
		return str_is(wished, "client_secret_post") ? "post" : "basic";
	return found->server.takes_basic || !found->server.takes_post ? "basic" : "post";
}

/* Find our identity there: by configuration, by the address of a document, or by registration. */
static bool find_client(struct auth *auth, const struct found *found,
			struct client *client, struct err *err)
{
	const char *document = text_of(auth->wishes, "client_metadata_url");
	bool ok = true;

	*client = (struct client){.id = text_of(auth->wishes, "client_id"),
				  .secret = text_of(auth->wishes, "client_secret")};
	if (!client->id && document && found->server.takes_documents)
		client->id = document;
	else if (!client->id && found->server.registration)
		ok = register_client(auth, found, client, err);
	else if (!client->id)
		ok = err_set(err, ENOENT,
			     "takes no new clients at %.200s: register one there, and name it "
			     "in mcpServers.%s.oauth.client_id",
			     found->issuer, auth->name);
	client->way = way_of(found, client);
	return ok;
}

/* Tokens. */

static void add_basic(const char *id, const char *secret, struct buf *out)
{
	struct buf pair;

	buf_init(&pair, FORM_MAX);
	(void)text_percent_add(str_of(id), "", &pair);
	(void)buf_addc(&pair, ':');
	(void)text_percent_add(str_of(secret), "", &pair);
	(void)buf_adds(out, "Basic ");
	(void)buf_base64_add(buf_str(&pair), out);
	explicit_bzero(pair.data, pair.size);
	buf_fini(&pair);
}

/*
 * POST FORM to URL as the client that BINDING names. Returns the answer, an object; NULL:
 * none came.
 */
static struct value *post_form(struct auth *auth, const char *url, struct buf *form,
			       const struct value *binding, long *status, struct err *err)
{
	const char *id = text_of(binding, "client_id");
	const char *secret = text_of(binding, "client_secret");
	const char *way = text_of(binding, "client_way");
	const bool basic = secret && way && strcmp(way, "basic") == 0;
	struct value *answer;
	struct buf header;

	buf_init(&header, 2 * FORM_MAX);
	if (basic)
		add_basic(id, secret, &header);
	else
		oauth_form_add(form, "client_id", id);
	if (secret && way && strcmp(way, "post") == 0)
		oauth_form_add(form, "client_secret", secret);
	answer = post(auth, url, "application/x-www-form-urlencoded", buf_str(form),
		      basic ? header.data : NULL, status, err);
	if (header.size > 0)
		explicit_bzero(header.data, header.size);
	if (form->size > 0)
		explicit_bzero(form->data, form->size);
	buf_fini(&header);
	return answer;
}

/* The things that tokens are bound to, and needed to renew them. */
static struct value *binding_of(const struct auth *auth, const struct found *found,
				const struct client *client)
{
	struct value *binding = value_new_object();

	value_set_text(binding, "url", auth->url);
	value_set_text(binding, "resource", found->resource);
	value_set_text(binding, "issuer", found->issuer);
	value_set_text(binding, "client_id", client->id);
	if (client->secret)
		value_set_text(binding, "client_secret", client->secret);
	value_set_text(binding, "client_way", client->way);
	value_set_text(binding, "token_endpoint", found->server.token);
	if (found->server.revocation)
		value_set_text(binding, "revocation_endpoint", found->server.revocation);
	if (found->scope.size > 0)
		value_set_text(binding, "scope", found->scope.data);
	return binding;
}

/* Take tokens from ANSWER, for BINDING. What the answer leaves out stays as it was. */
static bool take_tokens(struct auth *auth, const struct value *answer,
			const struct value *binding, long status, struct err *err)
{
	static const char *const kept[] = {"access_token", "refresh_token", "scope"};
	const struct value *seconds = value_member(answer, "expires_in");
	const char *type = text_of(answer, "token_type");
	struct value *tokens;

	if (status != 200 || !text_of(answer, "access_token")) {
		refused(answer, status, "the token", err);
		return false;
	}
	if (type && strcasecmp(type, "bearer") != 0)
		return err_set(err, EPROTO, "gives tokens of a kind that is not known");
	tokens = value_copy(binding);
	value_remove(tokens, "expires_ms");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (text_of(answer, kept[i]))
			value_set_text(tokens, kept[i], text_of(answer, kept[i]));
	}
	if (value_is_number(seconds) && value_number(seconds) > 0 &&
	    value_number(seconds) < 1e9)
		value_set_integer(tokens, "expires_ms",
				  clock_wall_ms() + (int64_t)(1000 * value_number(seconds)));
	set_tokens(auth, tokens);
	return true;
}

/* Have the front keep the tokens. */
static bool keep_tokens(struct auth *auth, struct err *err)
{
	auto_value struct value *answer = NULL;
	struct value *line = value_new_object();

	value_set(line, "keep", value_copy(auth->tokens));
	steer_tell(auth->steer, line);
	answer = steer_hear(auth->steer);
	if (value_is_true(value_member(answer, "kept")))
		return true;
	return err_set(err, EIO, "has new tokens that could not be kept: %.500s",
		       text_of(answer, "kept") ? text_of(answer, "kept") : "no reason");
}

/* Unlock the tokens without a change. */
static void leave_tokens(struct auth *auth)
{
	struct value *line = value_new_object();

	value_set(line, "keep", value_new_null());
	steer_tell(auth->steer, line);
	value_free(steer_hear(auth->steer));
}

/* Ask for tokens with FORM, which has its grant. */
static bool ask_tokens(struct auth *auth, struct buf *form, const struct value *binding,
		       struct err *err)
{
	auto_value struct value *answer = NULL;
	long status = 0;

	oauth_form_add(form, "resource", text_of(binding, "resource"));
	answer = post_form(auth, text_of(binding, "token_endpoint"), form, binding,
			   &status, err);
	return answer && take_tokens(auth, answer, binding, status, err);
}

static bool renew(struct auth *auth, struct err *err)
{
	auto_value struct value *binding = value_copy(auth->tokens);
	struct buf form;
	bool ok;

	buf_init(&form, FORM_MAX);
	oauth_form_add(&form, "grant_type", "refresh_token");
	oauth_form_add(&form, "refresh_token", text_of(binding, "refresh_token"));
	ok = ask_tokens(auth, &form, binding, err);
	buf_fini(&form);
	return ok;
}

/* Tokens by the secret of the client. */
static bool ask_by_secret(struct auth *auth, struct str head, struct err *err)
{
	auto_value struct value *binding = NULL;
	struct client client = {0};
	struct found found;
	struct buf form;
	bool ok;

	found_init(&found);
	buf_init(&form, FORM_MAX);
	ok = discover(auth, head, &found, err) && find_client(auth, &found, &client, err);
	if (ok) {
		binding = binding_of(auth, &found, &client);
		oauth_form_add(&form, "grant_type", "client_credentials");
		oauth_form_add(&form, "scope",
			       found.scope.size > 0 ? found.scope.data : NULL);
		ok = ask_tokens(auth, &form, binding, err);
	}
	value_free(client.document);
	buf_fini(&form);
	found_fini(&found);
	return ok;
}

static bool wants_login(const struct auth *auth, struct err *err)
{
	return err_set(err, EACCES, "wants a login: glovebox servers login %s", auth->name);
}

/* With the tokens locked. */
static bool again_locked(struct auth *auth, struct str head, struct err *err)
{
	bool ok = false;

	if (text_of(auth->tokens, "refresh_token"))
		ok = renew(auth, err);
	if (!ok && by_secret(auth))
		ok = ask_by_secret(auth, head, err);
	if (ok)
		return keep_tokens(auth, err);
	leave_tokens(auth);
	if (!text_of(auth->tokens, "refresh_token") && !by_secret(auth))
		return wants_login(auth, err);
	if (err->code == EACCES && !by_secret(auth))
		return err_set(err, EACCES,
			       "does not take its login any more: glovebox servers login %s",
			       auth->name);
	return false;
}

bool auth_again(struct auth *auth, struct str head, struct err *err)
{
	const char *had = text_of(auth->tokens, "access_token");
	auto_value struct value *answer = NULL;
	struct value *line, *kept;
	const char *now;

	auth->pause_ms = clock_now_ms() + PAUSE_MS;
	/* A login may have come since, so look even without a way to renew. */
	line = value_new_object();
	value_set_text(line, "renew", had ? had : "");
	steer_tell(auth->steer, line);
	answer = steer_hear(auth->steer);
	if (!answer || text_of(answer, "error"))
		return err_set(err, EAGAIN, "cannot renew its tokens: %.500s",
			       text_of(answer, "error") ? text_of(answer, "error")
							: "the front has ended");
	kept = value_member(answer, "tokens");
	now = text_of(kept, "access_token");
	if (now && (!had || strcmp(now, had) != 0)) {
		set_tokens(auth, value_copy(kept));
		leave_tokens(auth);
		return true;
	}
	return again_locked(auth, head, err);
}

/* Tasks. */

static void tell_end(struct auth *auth, const char *key, const char *text)
{
	struct value *line = value_new_object();

	value_set_text(line, key, text);
	steer_tell(auth->steer, line);
}

/* Requests that a server may answer only with a token, in the order in which they are tried. */
static const char *const tried[] = {
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
	"\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{"
	"\"name\":\"glovebox\",\"version\":\"1\"}}}",
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{}}",
};

/* Send the message BODY without a token. */
static bool try_without(struct auth *auth, const char *body, const char *session,
			struct web_reply *reply, struct err *err)
{
	auto_value struct value *list = value_new_array();
	const struct web_request request = {.method = WEB_POST,
					    .url = auth->url,
					    .headers = list,
					    .body = str_of(body),
					    .content_type = "application/json"};

	headers_add(list, "Accept", STR("application/json, text/event-stream"));
	if (session[0])
		headers_add(list, "Mcp-Session-Id", str_of(session));
	return web_ask(auth->web, &request, reply, err) ||
	       err_while(err, "cannot be reached");
}

/* Put the head of the answer with 401 into HEAD; it stays empty when there is none. */
static bool challenge(struct auth *auth, struct buf *head, struct err *err)
{
	char session[SESSION_ROOM] = "";
	struct web_reply reply;
	struct str id;
	bool ok = true;

	for (size_t i = 0; ok && head->size == 0 && i < sizeof(tried) / sizeof(tried[0]);
	     i++) {
		web_reply_init(&reply);
		ok = try_without(auth, tried[i], session, &reply, err);
		if (ok && reply.status == 401)
			(void)buf_addstr(head, buf_str(&reply.head));
		else if (ok && headers_find(buf_str(&reply.head), "Mcp-Session-Id", &id))
			(void)snprintf(session, sizeof(session), "%.*s", (int)id.size,
				       id.data);
		web_reply_fini(&reply);
	}
	return ok;
}

/* Have the person log in at ADDRESS. The answer's query goes to QUERY. */
static bool ask_person(struct auth *auth, const char *address, const char *issuer,
		       struct buf *query, struct err *err)
{
	auto_value struct value *answer = NULL;
	struct value *line = value_new_object();

	value_set_text(line, "open", address);
	value_set_text(line, "issuer", issuer);
	steer_tell(auth->steer, line);
	answer = steer_hear(auth->steer);
	if (text_of(answer, "query"))
		return buf_adds(query, text_of(answer, "query"));
	return err_set(err, ECANCELED, "%.500s",
		       text_of(answer, "error") ? text_of(answer, "error")
						: "the login was not finished");
}

/* The address where the person logs in. */
static void add_address(const struct auth *auth, const struct found *found,
			const struct client *client, const char *state,
			const char *verifier, struct buf *address)
{
	struct buf form, proof;

	buf_init(&form, OAUTH_URL_MAX);
	buf_init(&proof, 2 * OAUTH_VERIFIER);
	oauth_challenge_add(verifier, &proof);
	oauth_form_add(&form, "response_type", "code");
	oauth_form_add(&form, "client_id", client->id);
	oauth_form_add(&form, "redirect_uri", text_of(auth->settings, "redirect"));
	oauth_form_add(&form, "state", state);
	oauth_form_add(&form, "code_challenge", proof.data);
	oauth_form_add(&form, "code_challenge_method", "S256");
	oauth_form_add(&form, "resource", found->resource);
	oauth_form_add(&form, "scope", found->scope.size > 0 ? found->scope.data : NULL);
	if (str_among(found->scope.data, STR("offline_access")))
		oauth_form_add(&form, "prompt", "consent");
	(void)buf_addf(address, "%s%c%s", found->server.authorization,
		       strchr(found->server.authorization, '?') ? '&' : '?', form.data);
	buf_fini(&proof);
	buf_fini(&form);
}

static bool login_by_code(struct auth *auth, const struct found *found,
			  const struct client *client, struct err *err)
{
	auto_value struct value *binding = binding_of(auth, found, client);
	char state[OAUTH_STATE + 1], verifier[OAUTH_VERIFIER + 1];
	const struct oauth_wanted wanted = {.state = state,
					    .issuer = found->issuer,
					    .names_itself = found->server.names_itself};
	struct buf address, query, code, form;
	bool ok;

	buf_init(&address, 2 * OAUTH_URL_MAX);
	buf_init(&query, FORM_MAX);
	buf_init(&code, OAUTH_URL_MAX);
	buf_init(&form, FORM_MAX);
	ok = found->server.authorization ||
	     err_set(err, EINVAL,
		     "has an authorization server without an address for logins");
	ok = ok && ((text_random_hex(state, OAUTH_STATE) &&
		     text_random_hex(verifier, OAUTH_VERIFIER)) ||
		    err_set(err, errno, "no random numbers: %s", strerror(errno)));
	if (ok)
		add_address(auth, found, client, state, verifier, &address);
	ok = ok && ask_person(auth, address.data, found->issuer, &query, err) &&
	     oauth_answer_read(buf_str(&query), &wanted, &code, err);
	if (ok) {
		oauth_form_add(&form, "grant_type", "authorization_code");
		oauth_form_add(&form, "code", code.data);
		oauth_form_add(&form, "redirect_uri", text_of(auth->settings, "redirect"));
		oauth_form_add(&form, "code_verifier", verifier);
		ok = ask_tokens(auth, &form, binding, err);
	}
	explicit_bzero(verifier, sizeof(verifier));
	buf_fini(&form);
	buf_fini(&code);
	buf_fini(&query);
	buf_fini(&address);
	return ok;
}

/* Login by a code that the person enters elsewhere (RFC 8628). */

/* Wait MS. False: the front has gone. */
static bool pause_for(struct auth *auth, int64_t ms)
{
	struct pollfd front = {.fd = auth->steer->fd, .events = POLLIN};

	return poll(&front, 1, (int)ms) == 0;
}

/* Ask for the tokens until the person has entered the code. */
static bool poll_device(struct auth *auth, const struct value *device,
			const struct value *binding, struct err *err)
{
	const struct value *interval = value_member(device, "interval");
	const struct value *life = value_member(device, "expires_in");
	int64_t every_s = interval ? value_integer(interval) : DEVICE_INTERVAL_S;
	const int64_t end_ms =
		clock_now_ms() + 1000 * (life && value_integer(life) < DEVICE_WAIT_S
						 ? value_integer(life)
						 : DEVICE_WAIT_S);

	every_s = every_s < 0 ? DEVICE_INTERVAL_S : every_s;
	while (clock_now_ms() < end_ms) {
		auto_value struct value *answer = NULL;
		const char *error;
		struct buf form;
		long status = 0;

		if (!pause_for(auth, 1000 * (every_s < DEVICE_INTERVAL_MOST_S
						     ? every_s
						     : DEVICE_INTERVAL_MOST_S)))
			return err_set(err, ECANCELED, "the login was not finished");
		buf_init(&form, FORM_MAX);
		oauth_form_add(&form, "grant_type", DEVICE_GRANT);
		oauth_form_add(&form, "device_code", text_of(device, "device_code"));
		oauth_form_add(&form, "resource", text_of(binding, "resource"));
		answer = post_form(auth, text_of(binding, "token_endpoint"), &form,
				   binding, &status, err);
		buf_fini(&form);
		error = text_of(answer, "error");
		if (!answer)
			return false;
		if (error && strcmp(error, "slow_down") == 0)
			every_s += DEVICE_INTERVAL_S;
		else if (!error || strcmp(error, "authorization_pending") != 0)
			return take_tokens(auth, answer, binding, status, err);
	}
	return err_set(err, ETIMEDOUT, "the code was not entered in time");
}

static bool login_by_device(struct auth *auth, const struct found *found,
			    const struct client *client, struct err *err)
{
	auto_value struct value *binding = binding_of(auth, found, client);
	auto_value struct value *device = NULL;
	const char *address;
	struct value *line;
	struct buf form;
	long status = 0;

	if (!found->server.device)
		return err_set(err, EINVAL,
			       "has an authorization server that knows no login by a code: "
			       "leave --device out");
	buf_init(&form, FORM_MAX);
	oauth_form_add(&form, "scope", found->scope.size > 0 ? found->scope.data : NULL);
	oauth_form_add(&form, "resource", found->resource);
	device = post_form(auth, found->server.device, &form, binding, &status, err);
	buf_fini(&form);
	if (!device)
		return false;
	address = text_of(device, "verification_uri");
	if (status != 200 || !text_of(device, "device_code") ||
	    !text_of(device, "user_code")) {
		refused(device, status, "the login by a code", err);
		return false;
	}
	if (!oauth_url_fits(address, err))
		return err_while(err, "names an address for the code");
	line = value_new_object();
	value_set_text(line, "code", text_of(device, "user_code"));
	value_set_text(line, "open", address);
	steer_tell(auth->steer, line);
	return poll_device(auth, device, binding, err);
}

static bool login(struct auth *auth, struct str head, bool by_device, struct err *err)
{
	struct client client = {0};
	struct found found;
	bool ok;

	if (by_secret(auth))
		return ask_by_secret(auth, head, err) && keep_tokens(auth, err);
	found_init(&found);
	ok = discover(auth, head, &found, err) && find_client(auth, &found, &client, err) &&
	     (by_device ? login_by_device(auth, &found, &client, err)
			: login_by_code(auth, &found, &client, err));
	value_free(client.document);
	found_fini(&found);
	return ok && keep_tokens(auth, err);
}

/* Tell the authorization server that the tokens are not used any more (RFC 7009). */
static bool revoke(struct auth *auth, struct err *err)
{
	static const char *const kinds[] = {"refresh_token", "access_token"};
	const char *url = text_of(auth->tokens, "revocation_endpoint");
	bool ok = true;

	for (size_t i = 0; url && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		auto_value struct value *answer = NULL;
		struct buf form;
		long status = 0;

		if (!text_of(auth->tokens, kinds[i]))
			continue;
		buf_init(&form, FORM_MAX);
		oauth_form_add(&form, "token", text_of(auth->tokens, kinds[i]));
		oauth_form_add(&form, "token_type_hint", kinds[i]);
		answer = post_form(auth, url, &form, auth->tokens, &status, err);
		ok = ok && answer && status >= 200 && status < 300;
		buf_fini(&form);
	}
	return ok;
}

void auth_run(struct auth *auth)
{
	const struct str task = value_str(value_member(auth->settings, "task"));
	struct err err = {0};
	struct buf head;

	buf_init(&head, HEADERS_MAX);
	if (str_is(task, "logout"))
		tell_end(auth, "done",
			 revoke(auth, &err)
				 ? "logged out"
				 : "the tokens are removed here; the service could not be told");
	else if (!challenge(auth, &head, &err))
		tell_end(auth, "fails", err.text);
	else if (head.size == 0)
		tell_end(auth, "done", "no login is needed");
	else if (login(auth, buf_str(&head), str_is(task, "device"), &err))
		tell_end(auth, "done", "logged in");
	else
		tell_end(auth, "fails", err.text);
	buf_fini(&head);
}
