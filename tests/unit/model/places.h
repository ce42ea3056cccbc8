/* places: where the data of the tests is. */
#pragma once

extern const char *const place_of_streams;
extern const char *const place_of_server;
