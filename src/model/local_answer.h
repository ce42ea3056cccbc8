/*
 * local_answer: what a model server's own answers say of it. Pure; the answers are
 * foreign bytes. For local.c and its tests.
 */
#pragma once
#include "model/local.h"

/* In the order in which answers are to be read: the first that fits names the program. */
enum local_question {
	LOCAL_ASK_PROPS,   /* llama.cpp's GET /props */
	LOCAL_ASK_STUDIO,  /* LM Studio's GET /api/v0/models */
	LOCAL_ASK_TAGS,    /* Ollama's GET /api/tags */
	LOCAL_ASK_MODELS,  /* GET /v1/models, which all have */
	LOCAL_ASK_RUNNING, /* Ollama's GET /api/ps */
	LOCAL_QUESTIONS,
};
const char *local_question_path(enum local_question question);

/* BODY answered QUESTION with STATUS. What does not fit says nothing. */
void local_read(struct local_server *server, enum local_question question, long status,
		struct str body);

/* BODY is Ollama's answer to POST /api/show for MODEL. */
void local_read_details(struct local_model *model, struct str body);

/* Leave out what cannot talk (Ollama says so in the details), and do so last. */
void local_drop_mute(struct local_server *server);
