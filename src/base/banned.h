/* banned.h - functions that lose bounds or errors do not compile. Include last. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H
#undef strcpy
#undef strcat
#undef sprintf
#undef strtok
#undef gets
#undef atoi
#define strcpy(d, s) banned_strcpy_
#define strcat(d, s) banned_strcat_
#define sprintf(...) banned_sprintf_
#define strtok(s, d) banned_strtok_
#define gets(s) banned_gets_
#define atoi(s) banned_atoi_
#endif
