/* log.h - lines on stderr; the only place in the library that prints. Thread-safe, one write per
 * line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H
typedef enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;
void log_set_level(log_level most); /* default LOG_WARN */
void log_line(log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
