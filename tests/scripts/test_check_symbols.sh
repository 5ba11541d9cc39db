#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/planted.sh"

compile() { # MODULE/FILE.c TEXT
    mkdir -p "build/x.dir/src/${1%/*}"
    printf '%s\n' "$2" > "$folder/x.c"
    cc -w -O0 -c "$folder/x.c" -o "build/x.dir/src/$1.o"
}
clean() {
    tree
    compile base/alpha.c 'static int hidden(void) { return 1; } int alpha_one(void) { return hidden(); }'
    compile base/mem.c '#include <stdlib.h>
void *mem_alloc(void) { return malloc(1); }'
    compile cli/main.c '#include <stdio.h>
int main(void) { puts("x"); return 0; }'
}
clean
expect 0 "symbols ok" scripts/check-symbols build
expect 2 "build first" scripts/check-symbols src

plant() { # FILE TEXT WANT
    clean
    compile "$1" "$2"
    expect 1 "$3" scripts/check-symbols build
    expect 1 "1 symbol violation(s)" scripts/check-symbols build
}
plant base/gamma.c 'int gamma_ok(void) { return 1; } int other(void) { return 2; }' \
    'src/base/gamma.c: the global symbol other does not begin with gamma_'
plant base/gamma.c 'int gammaray;' 'the global symbol gammaray'
plant base/gamma.c '#include <stdlib.h>
void *gamma_a(void) { return calloc(1, 2); }' 'calls calloc, which belongs to: mem file'
plant text/gamma.c '#include <stdio.h>
void gamma_a(int x) { printf("%d", x); }' 'calls printf, which belongs to: log'
plant text/gamma.c '#include <stdlib.h>
void gamma_a(int x) { abort(); }' 'calls abort, which belongs to: error'
plant text/gamma.c '#include <pthread.h>
void gamma_a(void *(*f)(void *)) { pthread_t t; pthread_create(&t, 0, f, 0); }' 'calls pthread_create'
