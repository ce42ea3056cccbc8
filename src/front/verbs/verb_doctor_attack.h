/* verb_doctor_attack: `glovebox doctor --attack`, the score of the shipped attacks. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

/*
 * Play the attacks (ONLY: of this group; NULL: all), print the score (JSON: as one
 * object), and return an exit code.
 */
int doctor_attack(const char *only, bool json, FILE *out);
