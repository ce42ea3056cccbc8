/*
 * made: names and ignore rules made at random, odd ones preferred; the same row of them in
 * each run for the same seed. GLOVEBOX_TEST_SEED=NUMBER plays another row.
 */
#pragma once
#include "base/buf.h"

#include <stdint.h>

/* USUAL, or what GLOVEBOX_TEST_SEED says. Never 0. Printed, to play a failure again. */
uint64_t made_seed(uint64_t usual);

/* A number below LIMIT. */
unsigned made_random(uint64_t *seed, unsigned limit);

/* A file's name; the rules below are likely to meet it. */
const char *made_name(uint64_t *seed);

/* Letters of TEXT become large or small. */
void made_case(uint64_t *seed, char *text, size_t size);

/* Append the text of an ignore file: a few lines, each with its end, or the last without. */
void made_rules(uint64_t *seed, struct buf *rules);
