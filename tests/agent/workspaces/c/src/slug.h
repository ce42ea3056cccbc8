#pragma once
#include <stddef.h>

/* TITLE as it stands in an address: small letters, digits, one dash between words. */
size_t slug(const char *title, char *out, size_t size);
