/* notify.h - tells the service manager what state this service is in: the protocol of sd_notify(3),
 * a datagram to the socket named by NOTIFY_SOCKET. */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

/* "READY=1", "STOPPING=1"; does nothing without a service manager. */
void notify_send(const char *state);
#endif
