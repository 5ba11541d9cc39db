/* check.c - see check.h. */
#include "api/check.h"
#include "base/banned.h"

status check_range(const char *what, int found, int low, int high, error *e)
{
    if (found >= low && found <= high) return OK;
    return error_set(e, E_ARG, "%s: found %d, want %d..%d", what, found, low, high);
}

status check_real(const char *what, double found, double low, double high, error *e)
{
    if (found >= low && found <= high) return OK;
    return error_set(e, E_ARG, "%s: found %g, want %g..%g", what, found, low, high);
}
