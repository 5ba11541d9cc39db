/* page.c - see page.h. The build turns page.html into the bytes below. */
#include "server/page.h"

#include "base/banned.h"

static const char html[] = {
#include "server/page_html.inc"
};

str page_html(void)
{
    return (str){ html, sizeof html };
}
