# Sourced by the tests here. `tree` makes a small clean tree with the scripts in it and goes there; `expect WANT TEXT
# COMMAND...` runs a command, compares its exit status with WANT and looks for TEXT in what it printed.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

tree() {
    rm -rf "$folder/tree"
    mkdir -p "$folder/tree/src/base" "$folder/tree/src/text" "$folder/tree/src/pack"
    cp -r "$root/scripts" "$root/LAYERS" "$root/.clang-format" "$folder/tree/"
    cd "$folder/tree"
    printf '%s\n' '/* a */' '#include <stdlib.h>' '#include "base/alpha.h"' \
        'int alpha_one(void)' '{' '    return 1;' '}' > src/base/alpha.c
    printf '%s\n' '/* a */' 'int alpha_one(void);' > src/base/alpha.h
    printf '%s\n' '/* b */' '#include "base/alpha.h"' 'int beta_two(void);' > src/text/beta.h
    git init -q .
}

expect() {
    local want=$1 text=$2 status=0
    shift 2
    printed=$("$@" 2>&1) || status=$?
    if [ "$status" != "$want" ]; then
        echo "$*: exit status $status, want $want; it printed:"
        echo "$printed"
        exit 1
    fi
    case $printed in
        *"$text"*) ;;
        *)
            echo "$*: \"$text\" is not in what it printed:"
            echo "$printed"
            exit 1
            ;;
    esac
}
