/*
 * openai_family: what a model behind one of OpenAI's APIs takes, by its name: neither API
 * has a way to ask.
 */
#pragma once

enum openai_family {
	OPENAI_PLAIN, /* OpenAI's that do not reason: refuse what belongs to reasoning */
	OPENAI_REASONS, /* OpenAI's that do: refuse a temperature */
	OPENAI_OTHER,   /* of anybody else: take both */
};

/* The maker before a slash, as routers write it, may be there. */
enum openai_family openai_family_of(const char *model);
