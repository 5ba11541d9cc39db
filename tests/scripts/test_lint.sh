#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/planted.sh"
for tool in clang-tidy cppcheck; do
    command -v $tool > /dev/null || { echo "skipped: $tool is missing"; exit 77; }
done

tree
cp "$root/.clang-tidy" .
mkdir build
entry='[{"directory": "%s", "command": "cc -I src -c src/base/alpha.c", "file": "src/base/alpha.c"}]'
# shellcheck disable=SC2059
printf "$entry" "$PWD" > build/compile_commands.json
expect 0 "lint ok" scripts/lint
printf '%s\n' 'int alpha_one(void)' '{' '    int *p = 0;' '    return *p;' '}' > src/base/alpha.c
expect 123 "null pointer" scripts/lint
expect 2 "no compile_commands.json" scripts/lint src
