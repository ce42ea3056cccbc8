/* request: the rules for requests, and the way of answers. */

#include "broker/request.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "broker/scrub.h"
#include "policy/credentials/credential.h"
#include "policy/credentials/forge.h"
#include "policy/network.h"
#include "proxy/http.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	SHOWN_MAX = 128, /* bytes of a path in a sentence */
	ESCAPES_MAX = 8, /* a byte of a sentence becomes "\u0000", and there is a frame */
	STATUS_REFUSED = 403,
	STATUS_NO_SUCH_NAME = 404,
	STATUS_SWITCHES = 101,
	STATUS_NO_CONTENT = 204,
	STATUS_PART = 206,
	STATUS_UNCHANGED = 304,
};

/* Headers and parts of a query from which services take keys. */
static const char *const key_headers[] = {"Authorization",   "Proxy-Authorization",
					  "X-Api-Key",       "Api-Key",
					  "X-Goog-Api-Key",  "X-Auth-Token",
					  "X-Access-Token",  "X-Auth-Key",
					  "X-Vault-Token",   "X-Shopify-Access-Token",
					  "X-Authorization", "Ocp-Apim-Subscription-Key",
					  "ApiKey",          "Authentication",
					  "Cookie2",         "Private-Token",
					  "Job-Token",       "Deploy-Token",
					  "Cookie",          NULL};
static const char *const key_queries[] = {
	"key",          "api_key",       "access_token",
	"oauth_token",  "private_token", "job_token",
	"token",        "api-key",       "apikey",
	"bearer_token", "client_secret", "personal_access_token",
	"auth",         "$key",          NULL};

/* Refuse REQUEST, whose head is sound, with a sentence. Always false. */
#define refuse(request, code, err, ...) \
	((request)->status = (code), err_set(err, EACCES, __VA_ARGS__))

/* Paths. */

/* A slash that is a letter of a name, in a decoded path. */
#define ESCAPED_SLASH "%2F"

/* PATH begins with a slash. One that is escaped divides parts for some programs too. */
static const char *segments_are_wrong(struct str path)
{
	while (path.size > 0) {
		path = str_part(path, path.data[0] == '/' ? 1 : sizeof(ESCAPED_SLASH) - 1,
				path.size);
		size_t end = str_find(path, STR("/"), 0);
		const size_t escaped = str_find(path, STR(ESCAPED_SLASH), 0);

		end = escaped < end ? escaped : end;
		struct str name = str_part(path, 0, end);
		const bool last = end == (size_t)-1;

		path = str_part(path, name.size, path.size);
		/* Some servers cut parameters off before they look at dots. */
		name = str_part(name, 0, str_find(name, STR(";"), 0));
		if (name.size == 0 && !last)
			return "has an empty part";
		if (str_is(name, ".") || str_is(name, ".."))
			return "has a part . or ..";
	}
	return NULL;
}

static bool has_escape(struct str text)
{
	for (size_t at = 0; (at = str_find(text, STR("%"), at)) != (size_t)-1; at++) {
		if (at + 2 < text.size && text_hex_digit(text.data[at + 1]) >= 0 &&
		    text_hex_digit(text.data[at + 2]) >= 0)
			return true;
	}
	return false;
}

/*
 * Append PATH decoded to OUT. In its last ESCAPED bytes an escaped slash stays one, and
 * there is no other '%'. Returns what two programs could understand differently, or NULL.
 */
static const char *decode_path(struct str path, size_t escaped, struct buf *out)
{
	char c;

	if (path.size == 0)
		(void)buf_addc(out, '/');
	while (path.size > 0) {
		const bool is_escape = path.data[0] == '%', stays = path.size <= escaped;

		if (!text_percent_take(&path, &c))
			return "has a % that is no escape";
		if ((is_escape && c == '/' && !stays) || c == '\\')
			return "has a \\, or an escaped /";
		if ((unsigned char)c < 0x20 || c == 0x7f)
			return "has a control character";
		if (c == '%' && stays)
			return "has an escape that is escaped";
		if (is_escape && c == '/')
			(void)buf_adds(out, ESCAPED_SLASH);
		else
			(void)buf_addc(out, c);
	}
	if (escaped == 0 && has_escape(buf_str(out)))
		return "has an escape that is escaped";
	/* An overlong form of a dot is a dot for some programs. */
	if (!text_is_utf8(buf_str(out)))
		return "is no UTF-8";
	return segments_are_wrong(buf_str(out));
}

/* The part of TARGET before its query. */
static struct str path_of(struct str target)
{
	return str_part(target, 0, str_find(target, STR("?"), 0));
}

static bool rules_match(const struct credential_rules *rules, struct str method,
			struct str path)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct credential_rule *rule = &rules->items[i];

		if ((rule->method == NULL || strcmp(rule->method, "*") == 0 ||
		     str_is(method, rule->method)) &&
		    credential_path_matches(rule->path, path))
			return true;
	}
	return false;
}

/* Do RULES let every path through with METHOD? Then no path of it need be understood. */
static bool rules_match_all(const struct credential_rules *rules, struct str method)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct credential_rule *rule = &rules->items[i];

		if (strcmp(rule->path, "/**") == 0 &&
		    (strcmp(rule->method, "*") == 0 || str_is(method, rule->method)))
			return true;
	}
	return false;
}

/* TEXT goes to a person's terminal, so it is ASCII from here on. */
static void make_plain(struct buf *text)
{
	for (size_t i = 0; i < text->size; i++) {
		if ((unsigned char)text->data[i] > '~')
			text->data[i] = '?';
	}
}

/* The bytes of a path in a sentence. */
static int shown_size(const struct buf *path)
{
	return path->size < SHOWN_MAX ? (int)path->size : SHOWN_MAX;
}

/* Does the key of REQUEST hold for the repository that the request is for? */
static bool is_own(const struct request *request)
{
	const char *const *at = request->key->repositories;

	while (at != NULL && *at != NULL && strcmp(*at, request->forge.repository) != 0)
		at++;
	return at != NULL && *at != NULL;
}

/* May the key go with REQUEST, whose decoded path is PATH? */
static bool takes_key(const struct request *request, struct str path)
{
	const struct credential_rules *allow = &request->key->credential->allow;
	const bool listed = rules_match(allow, request->head.method, path);

	switch (request->forge.kind) {
	case FORGE_PAGE:
		return false;
	case FORGE_API:
		return listed;
	case FORGE_PROJECT:
		return is_own(request) && (listed || !allow->given);
	case FORGE_FETCH:
		return is_own(request) && (allow->fetch || !allow->given);
	case FORGE_PUSH:
	case FORGE_OBJECTS:
		return is_own(request) && (allow->push || !allow->given);
	}
	return false;
}

static bool is_get(struct str method)
{
	return str_is(method, "GET") || str_is(method, "HEAD");
}

/* Does REQUEST only read, with and without a key? */
static bool only_reads(const struct request *request)
{
	return request->forge.kind == FORGE_FETCH || request->forge.kind == FORGE_OBJECTS ||
	       (request->forge.kind != FORGE_PUSH && is_get(request->head.method));
}

/* REQUEST to PATH writes without the key: say how the person opens it. */
static bool refuse_writing(struct request *request, const struct buf *path, struct err *err)
{
	const char *name = request->key->credential->name;
	const struct str method = request->head.method;
	const bool pushes = request->forge.kind == FORGE_PUSH;

	if (request->forge.kind >= FORGE_PROJECT && !is_own(request))
		return refuse(request, STATUS_REFUSED, err,
			      "%s: its key does not hold for %.*s: it holds for the remotes that "
			      "the workspace had when the cell was made. Outside, add one with "
			      "git remote add, and start a new cell",
			      name, SHOWN_MAX,
			      request->forge.repository[0] != '\0' ? request->forge.repository
								   : "this repository");
	return refuse(request, STATUS_REFUSED, err,
		      "%s: %.*s %.*s is not allowed with this key: add %sto credentials.%s.allow in "
		      "the configuration",
		      name, (int)method.size, method.data, shown_size(path), path->data,
		      pushes ? "push " : "it ", name);
}

/*
 * Of a forge: does the key go with REQUEST, whose path is PATH? WRONG: why PATH could not be
 * decoded; NULL: it could.
 */
static bool check_repository(struct request *request, const char *wrong, struct buf *path,
			     struct err *err)
{
	const struct credential *credential = request->key->credential;
	const size_t mark = str_find(request->path, STR("?"), 0);
	const struct str query =
		mark == (size_t)-1 ? (struct str){0}
				   : str_part(request->path, mark + 1, request->path.size);

	/* A path that two programs could read differently is of no repository. */
	if (wrong == NULL)
		forge_read_request(credential->forge, request->host->host.text,
				   request->head.method, buf_str(path), query,
				   &request->forge);
	request->right = KEY_NEEDED;
	if (wrong != NULL || !takes_key(request, buf_str(path)))
		request->right = KEY_WITHHELD;
	else if (only_reads(request) || is_get(request->head.method))
		request->right = KEY_OPTIONAL;
	if (request->right != KEY_WITHHELD || only_reads(request))
		return true;
	make_plain(path);
	return wrong == NULL
		       ? refuse_writing(request, path, err)
		       : refuse(request, STATUS_REFUSED, err,
				"%s: the path %s, so that it names no repository for certain",
				credential->name, wrong);
}

/* Does `allow` let REQUEST through? OPEN: may other keys than the phantom pass there? */
static bool check_path(struct request *request, bool *open, struct err *err)
{
	const struct credential *credential = request->key->credential;
	const struct str method = request->head.method, path = path_of(request->path);
	struct buf decoded;
	const char *wrong;
	bool fine = true;

	buf_init(&decoded, REQUEST_HEAD_MAX);
	wrong = decode_path(path, forge_escaped_part(credential->forge, path).size,
			    &decoded);
	*open = wrong == NULL &&
		rules_match(&credential->foreign, method, buf_str(&decoded));
	if (wrong == NULL && rules_match(&credential->keyless, method, buf_str(&decoded)))
		request->right = KEY_OPTIONAL;
	if (credential->forge != FORGE_NONE) {
		fine = check_repository(request, wrong, &decoded, err);
	} else if (!credential->allow.given || rules_match_all(&credential->allow, method)) {
		fine = true;
	} else if (wrong != NULL) {
		fine = refuse(request, STATUS_REFUSED, err,
			      "%s: the path %s, so that `allow` of this credential cannot be "
			      "compared with it; only \"%.*s /**\" there lets it through",
			      credential->name, wrong, (int)method.size, method.data);
	} else if (!rules_match(&credential->allow, method, buf_str(&decoded))) {
		make_plain(&decoded);
		fine = refuse(request, STATUS_REFUSED, err,
			      "%s: %.*s %.*s is not allowed with this key: add it to "
			      "credentials.%s.allow in the configuration",
			      credential->name, (int)method.size, method.data,
			      shown_size(&decoded), decoded.data, credential->name);
	}
	buf_fini(&decoded);
	return fine;
}

/* Keys in a request. */

/* Is NAME the header ONE? Servers that make variables of names take "_" for "-". */
static bool is_header(struct str name, const char *one)
{
	if (name.size != strlen(one))
		return false;
	for (size_t i = 0; i < name.size; i++) {
		const char a = name.data[i] == '_' ? '-' : name.data[i];
		const char b = one[i] == '_' ? '-' : one[i];

		if (tolower((unsigned char)a) != tolower((unsigned char)b))
			return false;
	}
	return true;
}

static bool is_among(const char *const *names, struct str name,
		     bool (*same)(struct str name, const char *one))
{
	while (*names != NULL && !same(name, *names))
		names++;
	return *names != NULL;
}

/* The text behind the scheme in VALUE, which is "Bearer TEXT" or "token TEXT"; else empty. */
static struct str behind_scheme(struct str value)
{
	size_t blank = str_find(value, STR(" "), 0);
	struct str scheme = str_part(value, 0, blank);

	if (blank == (size_t)-1 ||
	    (!str_is_caseless(scheme, "Bearer") && !str_is_caseless(scheme, "token")))
		return (struct str){0};
	return str_trim(str_part(value, blank, value.size));
}

/* Is VALUE the Basic authorization of USER with PHANTOM? */
static bool is_basic(struct str value, const char *user, const char *phantom)
{
	size_t blank = str_find(value, STR(" "), 0);
	struct buf text, wanted;
	bool same = false;

	if (blank == (size_t)-1 || !str_is_caseless(str_part(value, 0, blank), "Basic"))
		return false;
	buf_init(&text, REQUEST_HEAD_MAX);
	buf_init(&wanted, REQUEST_HEAD_MAX);
	if (buf_base64_read(str_trim(str_part(value, blank, value.size)), &text) &&
	    buf_addf(&wanted, "%s:%s", user, phantom))
		same = str_equal(buf_str(&text), buf_str(&wanted));
	buf_fini(&wanted);
	buf_fini(&text);
	return same;
}

/* The name of the header of PLACE; NULL: it is in the query. */
static const char *header_of(const struct credential_place *place)
{
	return place->at == AT_QUERY    ? NULL
	       : place->at == AT_HEADER ? place->name
					: "Authorization";
}

/* Does the phantom stand in FIELD, as PLACE says? */
static bool stands_in(const struct http_field *field,
		      const struct credential_place *place, const char *phantom)
{
	switch (place->at) {
	case AT_HEADER:
		return str_is(field->value, phantom);
	case AT_BEARER:
		return str_is(behind_scheme(field->value), phantom);
	case AT_BASIC:
		return is_basic(field->value, place->name, phantom);
	case AT_QUERY:
		break;
	}
	return false;
}

/* Does VALUE, of a list of protocols, say that one of them is a key? */
static bool has_key_word(struct str value)
{
	static const char *const words[] = {"key", "token", "bearer", "auth"};

	for (size_t at = 0; at < value.size; at++) {
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			if (str_is_caseless(str_part(value, at, strlen(words[i])), words[i]))
				return true;
		}
	}
	return false;
}

/* The keys in the places of a request. */
struct found {
	size_t phantoms;
	struct str foreign; /* the name of the place that has another key; or empty */
};

static void find_in_field(const struct http_field *field, struct request *request,
			  struct found *found)
{
	const struct credential *credential = request->key->credential;
	const char *phantom = request->key->phantom;
	bool takes_keys = is_among(key_headers, field->name, is_header);

	for (size_t i = 0; i < credential->place_count; i++) {
		const struct credential_place *place = &credential->places[i];
		const char *header = header_of(place);

		if (header == NULL || !is_header(field->name, header))
			continue;
		takes_keys = true;
		/* By another spelling of the name the key could reach another program. */
		if (str_is_caseless(field->name, header) &&
		    stands_in(field, place, phantom)) {
			found->phantoms++;
			request->place = place;
			request->stands = field->value;
			return;
		}
	}
	/* OpenAI's browsers send a key as a protocol: "openai-insecure-api-key.KEY". */
	if (is_header(field->name, "Sec-WebSocket-Protocol"))
		takes_keys = has_key_word(field->value);
	if (takes_keys && field->value.size > 0 && !str_is(field->value, phantom) &&
	    !str_is(behind_scheme(field->value), phantom))
		found->foreign = field->name;
}

/* Is TEXT, a name or value of a query, WANTED once it is decoded? FOLD: in any case. */
static bool is_decoded(struct str text, const char *wanted, bool fold)
{
	char c;

	while (text.size > 0 && *wanted != '\0') {
		if (!text_percent_take(&text, &c))
			return false;
		if (fold ? tolower((unsigned char)c) != tolower((unsigned char)*wanted)
			 : c != *wanted)
			return false;
		wanted++;
	}
	return text.size == 0 && *wanted == '\0';
}

static bool is_query_name(struct str name, const char *one)
{
	return is_decoded(name, one, true);
}

/*
 * PART is "name=value" or "name". INNER: it stands behind a ";", where some services see a
 * part of its own and others the value of the part before it. So a key is foreign there,
 * and a phantom is text.
 */
static void find_in_part(struct str part, bool inner, struct request *request,
			 struct found *found)
{
	const struct credential *credential = request->key->credential;
	const char *phantom = request->key->phantom;
	size_t equals = str_find(part, STR("="), 0);
	struct str name = str_part(part, 0, equals);
	struct str value = equals == (size_t)-1 ? (struct str){0}
						: str_part(part, equals + 1, part.size);
	const bool is_phantom = is_decoded(value, phantom, false);
	bool takes_keys = is_among(key_queries, name, is_query_name);

	for (size_t i = 0; i < credential->place_count; i++) {
		const struct credential_place *place = &credential->places[i];

		if (place->at != AT_QUERY || !is_query_name(name, place->name))
			continue;
		takes_keys = true;
		if (is_phantom && !inner && is_decoded(name, place->name, false)) {
			found->phantoms++;
			request->place = place;
			request->stands = value;
			return;
		}
	}
	if (takes_keys && value.size > 0 && !is_phantom)
		found->foreign = name;
}

static void find_keys(struct request *request, struct found *found)
{
	size_t mark = str_find(request->path, STR("?"), 0);
	struct str query = mark == (size_t)-1
				   ? (struct str){0}
				   : str_part(request->path, mark + 1, request->path.size);

	*found = (struct found){0};
	for (size_t i = 0; i < request->head.count; i++)
		find_in_field(&request->head.fields[i], request, found);
	for (bool inner = false; query.size > 0;) {
		size_t end = 0;

		while (end < query.size && query.data[end] != '&' && query.data[end] != ';')
			end++;
		/* A part that a ";" ends is longer for other services. */
		const bool is_cut = end < query.size && query.data[end] == ';';
		find_in_part(str_part(query, 0, end), inner || is_cut, request, found);
		inner = is_cut;
		query = str_part(query, end + 1, query.size);
	}
}

/* Judge the keys that REQUEST has. OPEN: other keys than the phantom pass. */
static bool check_keys(struct request *request, bool open, struct err *err)
{
	const struct credential *credential = request->key->credential;
	struct found found;

	find_keys(request, &found);
	if (found.foreign.size > 0 && !open)
		return refuse(request, STATUS_REFUSED, err,
			      "%s: %.*s holds another key than this cell was given: use the "
			      "one in its environment, or list the path in credentials.%s.foreign",
			      credential->name, (int)found.foreign.size,
			      found.foreign.data, credential->name);
	if (found.phantoms > 1)
		return refuse(request, STATUS_REFUSED, err,
			      "%s: the key stands in the request more than once",
			      credential->name);
	if (found.phantoms == 0 && !open && !credential->anonymous &&
	    request->right == KEY_NEEDED)
		return refuse(request, STATUS_REFUSED, err,
			      "%s: the request has no key where this service wants it%s%s",
			      credential->name,
			      credential->variables.count > 0 ? "; send the text of " : "",
			      credential->variables.count > 0
				      ? credential->variables.items[0]
				      : "");
	request->verdict = found.phantoms == 1 && request->right != KEY_WITHHELD
				   ? REQUEST_KEYED
				   : REQUEST_BARE;
	return true;
}

/* Names and fields of a head. */

static bool check_connection(struct request *request, struct err *err)
{
	bool asks = false, connects = false;

	for (size_t i = 0; i < request->head.count; i++) {
		const struct http_field *field = &request->head.fields[i];
		struct str rest = field->value;

		if (str_is_caseless(field->name, "Upgrade")) {
			asks = asks || http_list_has(field->value, "websocket");
		} else if (str_is_caseless(field->name, "Expect")) {
			request->expects = true;
			if (!str_is_caseless(field->value, "100-continue"))
				return err_set(err, EPROTO, "Expect is not 100-continue");
		}
		/* A header that is named here would end here: a key could hide so. */
		while (str_is_caseless(field->name, "Connection") && rest.size > 0) {
			size_t comma = str_find(rest, STR(","), 0);
			struct str word = str_trim(str_part(rest, 0, comma));

			rest = comma == (size_t)-1 ? (struct str){0}
						   : str_part(rest, comma + 1, rest.size);
			request->closes = request->closes || str_is_caseless(word, "close");
			connects = connects || str_is_caseless(word, "upgrade");
			if (word.size > 0 && !str_is_caseless(word, "close") &&
			    !str_is_caseless(word, "keep-alive") && !http_is_hop(word))
				return err_set(err, EPROTO,
					       "Connection names an unknown header");
		}
	}
	request->upgrades = asks && connects;
	return true;
}

/* The rules of HTTP beside those of the reader. */
static bool check_head(struct request *request, struct err *err)
{
	const struct http_head *head = &request->head;

	if (head->old)
		return err_set(err, EPROTO, "only HTTP/1.1 is spoken here");
	if (!head->named)
		return err_set(err, EPROTO, "there is no Host");
	/* The first echoes the head, with the key in it. */
	if (str_is(head->method, "TRACE") || str_is(head->method, "CONNECT"))
		return err_set(err, EPROTO, "TRACE and CONNECT are not spoken here");
	if (head->target.data[0] != '/' || str_find(head->target, STR("#"), 0) != (size_t)-1)
		return err_set(err, EPROTO, "the target is no path");
	return check_connection(request, err);
}

static bool check_host(const struct request *request, const struct request_door *door,
		       struct err *err)
{
	struct network_host host;
	uint16_t port;
	bool same;

	if (!network_parse_authority(request->head.host,
				     door->host != NULL ? NETWORK_PORT_TLS : NETWORK_PORT_HTTP,
				     &host, &port, err))
		return err_while(err, "Host");
	if (door->host != NULL)
		same = network_same_host(&host, door->host);
	else
		same = strcmp(host.text, "127.0.0.1") == 0 ||
		       strcmp(host.text, "localhost") == 0 || strcmp(host.text, "::1") == 0;
	return (same && port == door->port) ||
	       err_set(err, EPROTO, "Host names another host than the connection");
}

/* Does REQUEST, whose key and host are found, renew a login? */
static bool is_renewal(const struct request *request)
{
	const struct credential_refresh *refresh = &request->key->credential->refresh;

	return request->key->renews && request->host->port == refresh->port &&
	       network_same_host(&request->host->host, &refresh->host) &&
	       str_is(request->path, refresh->path) &&
	       str_is(request->head.method, "POST") && !request->upgrades;
}

static bool check_renewal(struct request *request, struct err *err)
{
	struct found found;

	find_keys(request, &found);
	if (found.foreign.size > 0 || found.phantoms > 0)
		return refuse(request, STATUS_REFUSED, err,
			      "%s: a renewal of the login holds a key in its head",
			      request->key->credential->name);
	request->verdict = REQUEST_RENEWS;
	return true;
}

/* At the plain door: the first part of the path is the name of the credential. */
static bool find_named(struct request *request, const struct request_door *door,
		       struct err *err)
{
	struct str target = request->head.target, name;
	size_t end = 1;
	struct buf names;

	while (end < target.size && target.data[end] != '/' && target.data[end] != '?')
		end++;
	name = str_part(target, 1, end - 1);
	request->path = str_part(target, end, target.size);
	for (size_t i = 0; i < door->count; i++) {
		if (!str_is(name, door->keys[i].credential->name))
			continue;
		request->key = &door->keys[i];
		request->host = &door->keys[i].credential->hosts[0];
		return true;
	}
	buf_init(&names, ERR_TEXT_MAX / 2);
	for (size_t i = 0; i < door->count; i++)
		(void)buf_addf(&names, "%s/%s/", i > 0 ? ", " : "",
			       door->keys[i].credential->name);
	(void)refuse(request, STATUS_NO_SUCH_NAME, err,
		     "no credential of this cell has this path: its paths begin with %s",
		     names.size > 0 ? names.data : "nothing, as it has none");
	buf_fini(&names);
	return false;
}

/* At the TLS door: the credential for this host whose phantom is there, or the first. */
static bool find_for_host(struct request *request, const struct request_door *door,
			  struct err *err)
{
	const struct request_key *first = NULL;
	struct found found;

	request->path = request->head.target;
	for (size_t i = 0; i < door->count; i++) {
		const struct credential *credential = door->keys[i].credential;
		const struct network_entry *entry =
			network_find(credential->hosts, credential->host_count,
				     door->host, door->port);

		if (entry == NULL)
			continue;
		const struct network_entry *host = request->host;

		request->key = &door->keys[i];
		request->host = entry;
		find_keys(request, &found);
		const bool fits = found.phantoms > 0 || is_renewal(request);
		if (first == NULL || fits)
			first = request->key;
		else
			request->host = host;
		if (fits)
			break;
	}
	request->key = first;
	return first != NULL || refuse(request, STATUS_NO_SUCH_NAME, err,
				       "no credential of this cell is for this host");
}

static bool check_upgrade(struct request *request, struct err *err)
{
	const struct credential *credential = request->key->credential;

	if (!request->upgrades)
		return true;
	if (!credential->websocket)
		return refuse(request, STATUS_REFUSED, err,
			      "%s: a WebSocket is not allowed with this key: set "
			      "credentials.%s.websocket in the configuration",
			      credential->name, credential->name);
	return (str_is(request->head.method, "GET") && request->head.body == BODY_NONE) ||
	       refuse(request, STATUS_REFUSED, err,
		      "%s: a WebSocket begins with GET, without a body", credential->name);
}

enum request_answer request_read(struct str bytes, const struct request_door *door,
				 struct request *request, struct err *err)
{
	enum request_answer answer;
	bool open = false;

	*request = (struct request){0};
	answer = http_head_read(bytes, HTTP_REQUEST, &request->head, err);
	if (answer != REQUEST_READY)
		return answer;
	if (!check_head(request, err) || !check_host(request, door, err))
		return REQUEST_BAD;
	if (!(door->host == NULL ? find_named(request, door, err)
				 : find_for_host(request, door, err)) ||
	    (is_renewal(request)
		     ? !check_renewal(request, err)
		     : !check_path(request, &open, err) || !check_upgrade(request, err) ||
			       !check_keys(request, open, err)))
		request->verdict = REQUEST_REFUSED;
	return REQUEST_READY;
}

/* The head that the service gets. */

/*
 * Headers that end here, or that request_print writes itself. Some services take method
 * and path from a header, so that `allow` would have judged others.
 */
static bool ends_here(struct str name, const struct request *request)
{
	static const char *const names[] = {"Host",
					    "Accept-Encoding",
					    "Range",
					    "If-Range",
					    "Expect",
					    "Trailer",
					    "X-HTTP-Method-Override",
					    "X-HTTP-Method",
					    "X-Method-Override",
					    "X-Original-URL",
					    "X-Rewrite-URL",
					    "X-Forwarded-Uri",
					    "X-Forwarded-Prefix",
					    "Accept-Charset",
					    "A-IM",
					    NULL};

	return http_is_hop(name) || is_among(names, name, is_header) ||
	       (request->upgrades && str_is_caseless(name, "Sec-WebSocket-Extensions"));
}

/* Append the field where the phantom stands, with SECRET. */
static void print_key(const struct http_field *field, const struct credential_place *place,
		      struct str secret, struct buf *out)
{
	size_t scheme = str_find(field->value, STR(" "), 0);
	struct buf both;

	(void)buf_addstr(out, field->name);
	(void)buf_adds(out, ": ");
	if (place->at == AT_BASIC) {
		buf_init(&both, REQUEST_HEAD_MAX);
		(void)buf_reserve(&both, strlen(place->name) + 1 + secret.size);
		(void)buf_addf(&both, "%s:", place->name);
		(void)buf_addstr(&both, secret);
		(void)buf_adds(out, "Basic ");
		(void)buf_base64_add(buf_str(&both), out);
		explicit_bzero(both.data, both.size);
		buf_fini(&both);
	} else {
		if (place->at == AT_BEARER)
			(void)buf_addstr(out, str_part(field->value, 0, scheme + 1));
		(void)buf_addstr(out, secret);
	}
	(void)buf_adds(out, "\r\n");
}

static void print_first_line(const struct request *request, struct str secret,
			     struct buf *out)
{
	struct str path = request->path;
	char host[NETWORK_TEXT_MAX];

	(void)buf_addstr(out, request->head.method);
	(void)buf_adds(out, path.size > 0 && path.data[0] == '/' ? " " : " /");
	if (request->verdict == REQUEST_KEYED && request->place->at == AT_QUERY) {
		size_t before = (size_t)(request->stands.data - path.data);

		(void)buf_addstr(out, str_part(path, 0, before));
		(void)text_percent_add(secret, "", out);
		path = str_part(path, before + request->stands.size, path.size);
	}
	(void)buf_addstr(out, path);
	(void)network_print(&request->host->host, request->host->port, host);
	if (request->host->port == NETWORK_PORT_TLS)
		*strrchr(host, ':') = '\0';
	(void)buf_addf(out, " HTTP/1.1\r\nHost: %s\r\n", host);
}

/*
 * Does the field NAME of REQUEST go on? With a renewal only fields that say who asks and for
 * what: by others (DPoP) the new tokens could be bound to a key of the cell.
 */
static bool goes_on(struct str name, const struct request *request)
{
	static const char anthropic[] = "anthropic-";

	if (request->verdict != REQUEST_RENEWS)
		return !ends_here(name, request);
	return str_is_caseless(name, "Accept") || str_is_caseless(name, "User-Agent") ||
	       str_is_caseless(str_part(name, 0, sizeof(anthropic) - 1), anthropic);
}

/* Append what REQUEST, a renewal, has behind the fields that go on. */
static void print_renewal(const struct request *request, struct str body, struct buf *out)
{
	const struct str type = http_value(&request->head, "Content-Type");

	/* Without parameters: the body was read as UTF-8. */
	(void)buf_adds(out, "Content-Type: ");
	(void)buf_addstr(out, str_trim(str_part(type, 0, str_find(type, STR(";"), 0))));
	(void)buf_addf(out, "\r\nContent-Length: %zu\r\n\r\n", body.size);
	(void)buf_addstr(out, body);
}

bool request_print(const struct request *request, struct str secret, struct buf *out)
{
	print_first_line(request, secret, out);
	for (size_t i = 0; i < request->head.count; i++) {
		const struct http_field *field = &request->head.fields[i];

		const bool is_place = request->stands.data != NULL &&
				      field->value.data == request->stands.data;

		if (is_place && request->verdict == REQUEST_KEYED)
			print_key(field, request->place, secret, out);
		else if (!is_place && goes_on(field->name, request))
			http_field_print(field, out);
	}
	(void)buf_adds(out, "Accept-Encoding: identity\r\n");
	if (request->upgrades)
		(void)buf_adds(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	if (request->verdict == REQUEST_RENEWS)
		print_renewal(request, secret, out);
	else
		(void)buf_adds(out, "\r\n");
	return !out->overflowed;
}

/* Answers of our own. */

struct status {
	unsigned number;
	const char *reason, *anthropic, *google;
};

static const struct status statuses[] = {
	{400, "Bad Request", "invalid_request_error", "INVALID_ARGUMENT"},
	{403, "Forbidden", "permission_error", "PERMISSION_DENIED"},
	{404, "Not Found", "not_found_error", "NOT_FOUND"},
	{502, "Bad Gateway", "api_error", "UNAVAILABLE"},
	{504, "Gateway Timeout", "timeout_error", "DEADLINE_EXCEEDED"},
};

static const struct status *status_find(unsigned number)
{
	const size_t count = sizeof(statuses) / sizeof(statuses[0]);
	size_t i = 0;

	while (i + 1 < count && statuses[i].number != number)
		i++;
	return &statuses[i];
}

bool request_print_error(enum credential_errors errors, unsigned status,
			 const char *sentence, struct buf *out)
{
	const struct status *row = status_find(status);
	struct buf body;

	buf_init(&body, ESCAPES_MAX * ERR_TEXT_MAX);
	if (errors == ERRORS_TEXT)
		(void)buf_addf(&body, "%s\n", sentence);
	else if (errors == ERRORS_ANTHROPIC)
		(void)buf_addf(&body,
			       "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":",
			       row->anthropic);
	else if (errors == ERRORS_OPENAI)
		(void)buf_addf(&body,
			       "{\"error\":{\"type\":\"%s\",\"param\":null,\"code\":\"glovebox\","
			       "\"message\":",
			       row->anthropic);
	else if (errors == ERRORS_GOOGLE)
		(void)buf_addf(&body,
			       "{\"error\":{\"code\":%u,\"status\":\"%s\",\"message\":",
			       row->number, row->google);
	else
		(void)buf_adds(&body, "{\"message\":");
	if (errors != ERRORS_TEXT) {
		(void)value_quote(str_of(sentence), &body);
		(void)buf_adds(&body, errors == ERRORS_MESSAGE ? "}\n" : "}}\n");
	}
	(void)buf_addf(out,
		       "HTTP/1.1 %u %s\r\nContent-Type: %s\r\n"
		       "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		       row->number, row->reason,
		       errors == ERRORS_TEXT ? "text/plain" : "application/json",
		       body.size);
	(void)buf_addstr(out, buf_str(&body));
	buf_fini(&body);
	return !out->overflowed;
}

/* Answers of a service. */

/* May the bytes of the answer be searched for the secret? */
static bool check_searchable(const struct http_head *head, struct err *err)
{
	if (head->status == STATUS_PART)
		return err_set(err, EPROTO,
			       "the service answers with a part, which was not asked for");
	for (size_t i = 0; i < head->count; i++) {
		const struct http_field *field = &head->fields[i];

		if (str_is_caseless(field->name, "Content-Encoding") &&
		    field->value.size > 0 && !str_is_caseless(field->value, "identity"))
			return err_set(err, EPROTO,
				       "the service answers in an encoding, though it was "
				       "asked for none");
		if (str_is_caseless(field->name, "Sec-WebSocket-Extensions"))
			return err_set(err, EPROTO,
				       "the service uses an extension of WebSockets, though "
				       "none was offered");
	}
	return true;
}

static bool reply_check(const struct request *request, struct reply *reply, struct err *err)
{
	const struct http_head *head = &reply->head;
	bool closes = head->old, is_websocket = false;

	for (size_t i = 0; i < head->count; i++) {
		const struct http_field *field = &head->fields[i];

		if (str_is_caseless(field->name, "Connection"))
			closes = closes || http_list_has(field->value, "close");
		if (str_is_caseless(field->name, "Upgrade"))
			is_websocket = str_is_caseless(field->value, "websocket");
	}
	if (head->status == STATUS_SWITCHES && !(request->upgrades && is_websocket))
		return err_set(err, EPROTO,
			       "the service changes the protocol, which was not asked for");
	if (head->old && head->body == BODY_CHUNKED)
		return err_set(err, EPROTO, "the service sends chunks with HTTP/1.0");
	reply->upgraded = head->status == STATUS_SWITCHES;
	reply->interim = head->status < 200 && !reply->upgraded;
	reply->body = head->body;
	if (reply->upgraded)
		reply->body = BODY_TO_END;
	else if (reply->interim || str_is(request->head.method, "HEAD") ||
		 head->status == STATUS_NO_CONTENT || head->status == STATUS_UNCHANGED)
		reply->body = BODY_NONE;
	else if (head->body == BODY_NONE)
		reply->body = BODY_TO_END;
	reply->reusable = !closes && reply->body != BODY_TO_END;
	return reply->interim || !request->key->credential->scrub ||
	       check_searchable(head, err);
}

enum request_answer reply_read(struct str bytes, const struct request *request,
			       struct reply *reply, struct err *err)
{
	enum request_answer answer;

	*reply = (struct reply){0};
	answer = http_head_read(bytes, HTTP_ANSWER, &reply->head, err);
	if (answer == REQUEST_READY && !reply_check(request, reply, err))
		return REQUEST_BAD;
	return answer;
}

static void print_framing(const struct reply *reply, struct buf *out)
{
	const struct http_head *head = &reply->head;

	if (reply->upgraded)
		(void)buf_adds(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (reply->body == BODY_TO_END)
		(void)buf_adds(out, "Connection: close\r\n");
	else if (reply->body == BODY_CHUNKED)
		(void)buf_adds(out, "Transfer-Encoding: chunked\r\n");
	else if (head->body == BODY_COUNTED && head->status != STATUS_NO_CONTENT)
		(void)buf_addf(out, "Content-Length: %" PRIu64 "\r\n", head->body_bytes);
	(void)buf_adds(out, "\r\n");
}

bool reply_print(const struct reply *reply, const struct scrub *scrub, struct buf *out)
{
	static const char *const names[] = {"Content-Length", "Transfer-Encoding",
					    "Trailer",        "Set-Cookie",
					    "Alt-Svc",        NULL};
	const struct http_head *head = &reply->head;
	struct buf fields;

	(void)buf_addf(out, "HTTP/1.1 %u ", head->status);
	buf_init(&fields, 2 * REQUEST_HEAD_MAX);
	(void)buf_reserve(&fields, 2 * REQUEST_HEAD_MAX);
	(void)buf_addstr(&fields, head->reason);
	(void)buf_adds(&fields, "\r\n");
	for (size_t i = 0; i < head->count; i++) {
		const struct http_field *field = &head->fields[i];

		if (!http_is_hop(field->name) && !is_among(names, field->name, is_header))
			http_field_print(field, &fields);
	}
	bool fine = !fields.overflowed && scrub_whole(scrub, buf_str(&fields), out);
	explicit_bzero(fields.data, fields.size);
	buf_fini(&fields);
	print_framing(reply, out);
	return fine && !out->overflowed;
}

/* Bodies of answers. */

void reply_carry_init(struct reply_carry *carry, const struct reply *reply,
		      const struct scrub *scrub)
{
	body_begin(&carry->body, HTTP_ANSWER, reply->body, reply->head.body_bytes);
	scrub_stream_init(&carry->stream, scrub);
}

/* "0001f4a0\r\n": the size of a chunk, written when the chunk is there. */
enum { CHUNK_DIGITS = 8, CHUNK_HEAD = CHUNK_DIGITS + 2, CHUNK_MAX = 1 << 20 };

/* Append PIECE, or, where it has no data, what was held back. */
static bool carry_piece(struct reply_carry *carry, struct str piece, struct buf *out)
{
	static const char digits[] = "0123456789abcdef";
	const bool chunked = carry->body.kind == BODY_CHUNKED;
	const size_t at = out->size;
	bool fine = !chunked || buf_adds(out, "00000000\r\n");

	fine = fine && (piece.data == NULL ? scrub_end(&carry->stream, out)
					   : scrub_add(&carry->stream, piece, out));
	if (!fine || !chunked)
		return fine;
	size_t size = out->size - at - CHUNK_HEAD;
	if (size == 0) {
		buf_truncate(out, at);
		return true;
	}
	for (size_t i = CHUNK_DIGITS; i > 0; i--, size >>= 4)
		out->data[at + i - 1] = digits[size & 15];
	return buf_adds(out, "\r\n");
}

size_t reply_carry_take(struct reply_carry *carry, struct str bytes, struct buf *out)
{
	struct str rest = bytes, piece;
	bool fine = true;

	while (fine && rest.size > 0 && !carry->body.done && !carry->body.broken) {
		struct str some = str_part(rest, 0, CHUNK_MAX);
		const size_t size = some.size;

		body_next(&carry->body, &some, &piece);
		rest = str_part(rest, size - some.size, rest.size);
		if (piece.size > 0)
			fine = carry_piece(carry, piece, out);
		if (carry->body.done)
			fine = fine && carry_piece(carry, (struct str){0}, out) &&
			       (carry->body.kind != BODY_CHUNKED ||
				buf_adds(out, "0\r\n\r\n"));
	}
	carry->body.broken = carry->body.broken || !fine;
	return bytes.size - rest.size;
}

bool reply_carry_close(struct reply_carry *carry, struct buf *out)
{
	if (carry->body.kind == BODY_TO_END && !carry->body.broken)
		return scrub_end(&carry->stream, out);
	return carry->body.done;
}

void reply_carry_fini(struct reply_carry *carry)
{
	scrub_stream_fini(&carry->stream);
}
