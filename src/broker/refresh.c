/* refresh: phantoms become tokens in the request of a renewal, and tokens phantoms again. */

#include "broker/refresh.h"

#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "proxy/http.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOKEN_MIN = 8,          /* as a key has (broker/source.h) */
	SHAPE_MIN = 6,          /* bytes of a shape that tell a key from a word */
	TOKEN_LIKE_MIN = 16,    /* bytes of a text that a token-like member holds */
	EXPIRES_MAX = 10 << 25, /* ten years and more; a larger number is none */
	NAME_MAX_COMPARED = 32,
};

/* Tokens. */

bool refresh_tokens_are_any(const struct refresh_tokens *tokens)
{
	for (size_t i = 0; i < CREDENTIAL_TOKENS_MAX; i++)
		if (tokens->items[i] != NULL)
			return true;
	return false;
}

void refresh_tokens_fini(struct refresh_tokens *tokens)
{
	for (size_t i = 0; i < CREDENTIAL_TOKENS_MAX; i++) {
		if (tokens->items[i] != NULL)
			explicit_bzero(tokens->items[i], strlen(tokens->items[i]));
		free(tokens->items[i]);
	}
	*tokens = (struct refresh_tokens){0};
}

/* A token stands in headers and in JSON as it is. */
static bool is_token(struct str text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= 0x20 || text.data[i] >= 0x7f)
			return false;
	return text.size >= TOKEN_MIN && text.size <= REFRESH_TOKEN_MAX;
}

static void wipe(struct value **value)
{
	value_wipe(*value);
	value_free(*value);
}

#define auto_wipe __attribute__((cleanup(wipe)))

bool refresh_tokens_print(const struct credential *credential,
			  const struct refresh_tokens *tokens, struct buf *out)
{
	const struct credential_texts *names = &credential->refresh.answers;
	auto_wipe struct value *object = value_new_object();

	for (size_t i = 0; i < names->count; i++)
		if (tokens->items[i] != NULL)
			value_set_text(object, names->items[i], tokens->items[i]);
	value_set_integer(object, "expires_in", tokens->expires_s);
	return value_print(object, 0, out);
}

/* The seconds of EXPIRES, a number or its digits as a text; 0: it says none. */
static int64_t seconds_of(const struct value *expires)
{
	const char *text = value_text(expires);
	const double seconds = text != NULL && isdigit((unsigned char)text[0])
				       ? strtod(text, NULL)
				       : value_number(expires);

	return seconds > 0 && seconds <= EXPIRES_MAX ? (int64_t)seconds : 0;
}

/* Copy the members of OBJECT that CREDENTIAL stores to TOKENS. */
static bool take_tokens(const struct credential *credential, const struct value *object,
			struct refresh_tokens *tokens, struct err *err)
{
	const struct credential_texts *names = &credential->refresh.answers;
	bool fine = true;

	for (size_t i = 0; i < names->count; i++) {
		const struct value *member = value_member(object, names->items[i]);

		if (value_kind(member) == VALUE_NULL)
			continue;
		if (is_token(value_str(member)))
			tokens->items[i] = memory_copy_str(value_str(member));
		else
			fine = err_set(err, EPROTO, "%s is no token", names->items[i]);
	}
	tokens->expires_s = seconds_of(value_member(object, "expires_in"));
	return fine;
}

bool refresh_tokens_parse(const struct credential *credential, struct str text,
			  struct refresh_tokens *tokens, struct err *err)
{
	auto_wipe struct value *object = NULL;

	return value_parse(text, 0, &object, NULL)
		       ? take_tokens(credential, object, tokens, err)
		       : err_set(err, EPROTO, "no JSON object");
}

/* Members that hold tokens, by their names. */

/*
 * Is NAME that of a member which holds a token? Case, "_" and "-" do not count. The last
 * names are keys that some services make for the bearer of a token.
 */
static bool is_token_name(const char *name)
{
	static const char words[] =
		"accesstoken refreshtoken idtoken sessiontoken authtoken bearertoken "
		"sessionkey apikey rawkey secretkey";
	char plain[NAME_MAX_COMPARED];
	size_t size = 0;

	for (; *name != '\0' && size < sizeof(plain); name++)
		if (*name != '_' && *name != '-')
			plain[size++] = (char)tolower((unsigned char)*name);
	return str_among(words, (struct str){plain, size});
}

/* The index of the phantom that TEXT is; CREDENTIAL_TOKENS_MAX: it is none. */
static size_t phantom_find(const struct refresh *refresh, struct str text)
{
	const size_t count = refresh->credential->refresh.answers.count;

	for (size_t i = 0; refresh->phantoms != NULL && i < count; i++)
		if (str_is(text, refresh->phantoms[i]))
			return i;
	return CREDENTIAL_TOKENS_MAX;
}

/*
 * Is TEXT one word that begins as the keys of CREDENTIAL do, before the "*" of its shape? The
 * answer is no for a shape whose beginning is too short to tell keys from other words. A
 * text with stars is no key either, because the scrubber has put stars in place of one.
 */
static bool is_shaped(const struct credential *credential, struct str text)
{
	const struct str shape = str_of(credential->shape != NULL ? credential->shape : "");
	const size_t size = str_find(shape, STR("*"), 0);

	return size != (size_t)-1 && size >= SHAPE_MIN &&
	       str_starts(text, str_part(shape, 0, size)) && text.data[size] != '*' &&
	       is_token(text);
}

/*
 * The first token-like member at VALUE or below it, in which there is a text that is no
 * phantom; NULL: there is none. NAME, unless NULL, is such a member around VALUE.
 */
static const char *find_token(const struct refresh *refresh, const char *name,
			      const struct value *value)
{
	const struct str text = value_str(value);
	const char *found = NULL;

	if (text.size >= TOKEN_LIKE_MIN &&
	    phantom_find(refresh, text) == CREDENTIAL_TOKENS_MAX &&
	    (name != NULL || is_shaped(refresh->credential, text)))
		return name != NULL ? name : refresh->credential->shape;
	for (size_t i = 0;
	     value_kind(value) == VALUE_ARRAY && found == NULL && i < value_count(value);
	     i++)
		found = find_token(refresh, name, value_item(value, i));
	if (value_kind(value) != VALUE_OBJECT)
		return found;
	for (void *at = value_first(value); at != NULL && found == NULL;
	     at = value_next(value, at))
		found = find_token(refresh,
				   is_token_name(value_key(at)) ? value_key(at) : name,
				   value_at(at));
	return found;
}

/* The name of a token-like member is one of ours, in some spelling. */
static bool refuse_token(const struct refresh *refresh, const char *name, struct err *err)
{
	return err_set(err, EACCES,
		       "%s: the answer has a token, \"%.*s\", that no rule of this "
		       "credential names",
		       refresh->credential->name, NAME_MAX_COMPARED, name);
}

static bool is_json(struct str type)
{
	type = str_trim(str_part(type, 0, str_find(type, STR(";"), 0)));
	type = str_part(type, type.size > 5 ? type.size - 5 : 0, type.size);
	return str_is_caseless(type, "/json") || str_is_caseless(type, "+json");
}

enum refresh_field refresh_field(const struct http_field *field)
{
	const bool marked =
		str_starts(field->name, STR("X-")) || str_starts(field->name, STR("x-"));
	auto_free char *name =
		memory_copy_str(str_part(field->name, marked ? 2 : 0, field->name.size));

	if (str_is_caseless(field->name, "Content-Type"))
		return is_json(field->value) ? REFRESH_JSON : REFRESH_PLAIN;
	return is_token_name(name) || str_is_caseless(field->name, "Authorization")
		       ? REFRESH_TOKEN
		       : REFRESH_PLAIN;
}

/* Read TEXT, of a service, which may begin with the mark of UTF-8. */
static bool read_answer(struct str text, unsigned flags, struct value **value)
{
	static const struct str mark = STR("\xef\xbb\xbf");

	if (str_starts(text, mark))
		text = str_part(text, mark.size, text.size);
	return value_parse(text, flags | VALUE_SEARCHED, value, NULL);
}

bool refresh_check(const struct refresh *refresh, struct str text, struct err *err)
{
	auto_value struct value *value = NULL;
	const char *name;

	/* A member that stands twice would be searched once. */
	if (!read_answer(text, 0, &value))
		return err_set(err, EPROTO,
			       "%s: the answer is no sound JSON, and cannot be searched for "
			       "tokens",
			       refresh->credential->name);
	name = find_token(refresh, NULL, value);
	return name == NULL || refuse_token(refresh, name, err);
}

/* Requests. */

/*
 * May the token I stand in the member NAME of a request? Where the answer has a member of
 * that name, only that token: the token for access would not renew anything.
 */
static bool stands_in(const struct credential *credential, size_t i, const char *name)
{
	const struct credential_texts *names = &credential->refresh.answers;

	if (i >= names->count)
		return false;
	for (size_t j = 0; j < names->count; j++)
		if (strcmp(names->items[j], name) == 0)
			return i == j;
	return strcmp(names->items[i], "access_token") != 0;
}

enum body_form { FORM_NONE, FORM_JSON, FORM_URLENCODED };

static enum body_form form_of(struct str type)
{
	type = str_trim(str_part(type, 0, str_find(type, STR(";"), 0)));
	return str_is_caseless(type, "application/json") ? FORM_JSON
	       : str_is_caseless(type, "application/x-www-form-urlencoded")
		       ? FORM_URLENCODED
		       : FORM_NONE;
}

/* Append TEXT, a name or a value of a form, decoded. False: it has a broken escape. */
static bool add_decoded(struct str text, struct buf *out)
{
	while (text.size > 0) {
		const bool is_blank = text.data[0] == '+';
		char c;

		if (!text_percent_take(&text, &c))
			return false;
		(void)buf_addc(out, is_blank ? ' ' : c);
	}
	return text_is_utf8(buf_str(out)) && strlen(out->data) == out->size;
}

/* Read TEXT, a form, into OBJECT. */
static bool read_form(struct str text, struct value *object)
{
	struct buf name, value;
	bool fine = true;

	buf_init(&name, REFRESH_BODY_MAX);
	buf_init(&value, REFRESH_BODY_MAX);
	while (fine && text.size > 0) {
		const struct str pair = str_part(text, 0, str_find(text, STR("&"), 0));
		const size_t equals = str_find(pair, STR("="), 0);

		text = str_part(text, pair.size + 1, text.size);
		buf_clear(&name);
		buf_clear(&value);
		fine = equals != (size_t)-1 &&
		       add_decoded(str_part(pair, 0, equals), &name) &&
		       add_decoded(str_part(pair, equals + 1, pair.size), &value) &&
		       value_member(object, name.data) == NULL;
		if (fine)
			value_set_text(object, name.data, value.data);
	}
	explicit_bzero(value.data, value.size);
	buf_fini(&value);
	buf_fini(&name);
	return fine;
}

/* Read the flat object in BODY, which has FORM. */
static bool read_body(enum body_form form, struct str body, struct value **object)
{
	if (form == FORM_URLENCODED) {
		*object = value_new_object();
		return read_form(body, *object);
	}
	if (form != FORM_JSON || !value_parse(body, 0, object, NULL) ||
	    value_kind(*object) != VALUE_OBJECT)
		return false;
	for (void *at = value_first(*object); at != NULL; at = value_next(*object, at)) {
		const struct str text = value_str(value_at(at));
		const enum value_kind kind = value_kind(value_at(at));

		if (kind == VALUE_ARRAY || kind == VALUE_OBJECT ||
		    (text.size > 0 && strlen(text.data) != text.size))
			return false;
	}
	return true;
}

static void print_body(enum body_form form, const struct value *object, struct buf *out)
{
	const char *gap = "";

	if (form == FORM_JSON) {
		(void)value_print(object, 0, out);
		return;
	}
	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		(void)buf_adds(out, gap);
		(void)text_percent_add(str_of(value_key(at)), "", out);
		(void)buf_addc(out, '=');
		(void)text_percent_add(value_str(value_at(at)), "", out);
		gap = "&";
	}
}

/* May the member NAME, besides those of `send`, be in the request of a cell? */
static bool check_member(const struct refresh *refresh, const char *name,
			 const struct value *member, struct err *err)
{
	static const char others[] = "code code_verifier device_code password username "
				     "assertion client_assertion subject_token actor_token "
				     "token";

	if (strcmp(name, "grant_type") == 0 && !str_is(value_str(member), "refresh_token"))
		return err_set(err, EACCES,
			       "%s: only a renewal passes here: log in outside of the cell",
			       refresh->credential->name);
	if (str_among(others, str_of(name)) || is_token_name(name))
		return err_set(err, EACCES,
			       "%s: the request holds another token than this cell was given",
			       refresh->credential->name);
	return true;
}

/*
 * Judge OBJECT, and copy to PASSED what the service gets: nothing by which a cell could get
 * a lesser token, or bind it, because it would come into the file. With TOKENS these go
 * into the places of the phantoms.
 */
static bool put_tokens(const struct refresh *refresh, const struct value *object,
		       const struct refresh_tokens *tokens, struct value *passed,
		       struct err *err)
{
	const struct credential *credential = refresh->credential;
	const struct credential_texts *send = &credential->refresh.send;
	size_t sent = 0;

	for (void *at = value_first(object); at != NULL; at = value_next(object, at)) {
		bool sends = false;

		for (size_t i = 0; i < send->count; i++)
			sends = sends || strcmp(value_key(at), send->items[i]) == 0;
		if (!sends && !check_member(refresh, value_key(at), value_at(at), err))
			return false;
		if (sends &&
		    !stands_in(credential, phantom_find(refresh, value_str(value_at(at))),
			       value_key(at)))
			return err_set(err, EACCES,
				       "%s: the request holds another token than this cell was "
				       "given",
				       credential->name);
		if (sends || str_among("grant_type client_id", str_of(value_key(at))))
			value_set(passed, value_key(at), value_copy(value_at(at)));
	}
	for (size_t i = 0; i < send->count; i++) {
		const struct value *member = value_member(object, send->items[i]);
		const size_t index = phantom_find(refresh, value_str(member));

		if (member == NULL)
			continue;
		sent++;
		if (tokens != NULL && tokens->items[index] == NULL)
			return err_set(err, ENOENT, "%s: the login has no such token",
				       credential->name);
		if (tokens != NULL)
			value_set_text(passed, send->items[i], tokens->items[index]);
	}
	return sent > 0 ||
	       err_set(err, EACCES, "%s: only a renewal of this cell's login passes here",
		       credential->name);
}

bool refresh_request(const struct refresh *refresh, struct str type, struct str body,
		     const struct refresh_tokens *tokens, struct buf *out, struct err *err)
{
	const enum body_form form = form_of(type);
	auto_wipe struct value *object = NULL;
	auto_wipe struct value *passed = value_new_object();

	if (!read_body(form, body, &object))
		return err_set(err, EINVAL,
			       "%s: the request is neither a flat JSON object nor a form",
			       refresh->credential->name);
	if (!put_tokens(refresh, object, tokens, passed, err))
		return false;
	if (tokens != NULL)
		print_body(form, passed, out);
	return !out->overflowed || err_set(err, E2BIG, "%s: the request is too long",
					   refresh->credential->name);
}

/* Answers. */

/*
 * Does the service say with ERROR, as RFC 6749 (section 5.2), as GitHub or in an object, that a
 * token is dead?
 */
static bool is_stale(const struct value *error)
{
	static const char words[] = "invalid_grant bad_refresh_token";

	return str_among(words, value_str(error)) ||
	       str_among(words, value_str(value_member(error, "type"))) ||
	       str_among(words, value_str(value_member(error, "code")));
}

enum refresh_outcome refresh_answer(const struct refresh *refresh, unsigned status,
				    struct str body, struct refresh_tokens *fresh,
				    struct buf *out, struct err *err)
{
	const struct credential_texts *names = &refresh->credential->refresh.answers;
	auto_wipe struct value *object = NULL;
	const struct value *error;
	bool fine = status >= 200 && status < 300;
	const char *name;

	/* The tokens of an answer in a loose form would be lost, so it is read. */
	if (!read_answer(body, VALUE_LAST, &object) || value_kind(object) != VALUE_OBJECT) {
		(void)err_set(err, EPROTO, "%s: the answer to the renewal is no JSON object",
			      refresh->credential->name);
		return REFRESH_BAD;
	}
	error = value_member(object, "error");
	fine = fine && value_str(error).size == 0 && value_kind(error) != VALUE_OBJECT;
	if (fine && !take_tokens(refresh->credential, object, fresh, err)) {
		(void)err_while(err, "%s", refresh->credential->name);
		return REFRESH_BAD;
	}
	/* A refusal may say in such a member what is wrong with it. */
	for (size_t i = 0; i < names->count; i++) {
		if (fresh->items[i] != NULL)
			value_set_text(object, names->items[i], refresh->phantoms[i]);
		else if (!fine)
			value_remove(object, names->items[i]);
	}
	name = find_token(refresh, NULL, object);
	if (name != NULL) {
		(void)refuse_token(refresh, name, err);
		return REFRESH_BAD;
	}
	if (!value_print(object, 0, out)) {
		(void)err_set(err, E2BIG, "%s: the answer to the renewal is too long",
			      refresh->credential->name);
		return REFRESH_BAD;
	}
	if (refresh_tokens_are_any(fresh))
		return REFRESH_RENEWED;
	return is_stale(error) ? REFRESH_STALE : REFRESH_REFUSED;
}
