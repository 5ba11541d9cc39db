#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/planted.sh"
case $( (clang-format-14 --version || clang-format --version) 2> /dev/null) in
    *"version 14"*) ;;
    *) echo "skipped: clang-format 14 is missing"; exit 77 ;;
esac

tree
expect 0 "format ok" scripts/format --check
printf 'int alpha_one(void) { return 1; }\n' > src/base/alpha.c
expect 1 "src/base/alpha.c: not formatted" scripts/format --check
expect 0 "" scripts/format src/base/alpha.c
expect 0 "format ok" scripts/format --check
[ "$(sed -n 2p src/base/alpha.c)" = "{" ] || { echo "the brace is not in column 0"; exit 1; }
