/* check.h - numbers that a caller gives, held to their range: "n: found 9, want 0..8". */
#ifndef API_CHECK_H
#define API_CHECK_H
#include "base/error.h"

/* E_ARG outside [low, high]; NaN is outside. */
status check_range(const char *what, int found, int low, int high, error *e);
status check_real(const char *what, double found, double low, double high, error *e);
#endif
