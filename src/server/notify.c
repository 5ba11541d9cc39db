/* notify.c - see notify.h. */
#include "server/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/banned.h"

void notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (!path || !*path) return;
    const size_t n = strlen(path);
    if (n >= sizeof to.sun_path) {
        log_line(LOG_WARN, "NOTIFY_SOCKET is longer than %zu bytes", sizeof to.sun_path - 1);
        return;
    }
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') to.sun_path[0] = '\0'; /* Linux: a name that is no file */
    const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (fd < 0 || sendto(fd, state, strlen(state), 0, (const struct sockaddr *)&to, size) < 0)
        log_line(LOG_WARN, "the service manager could not be told: %s", state);
    if (fd >= 0) close(fd);
}
