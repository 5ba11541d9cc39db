#!/usr/bin/env bash
# `make install` into a folder, used from there as a user would: the program finds its pair, a C program builds by
# pkg-config and gives the program's own tokens, pages and completions are well formed, `make uninstall` leaves nothing.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${INGOT_BUILD:?the build folder}
[ -f "$build/libingot.a" ] && [ -f "$build/manual/man1/ingot.1" ] || { echo "libingot or the manual is not built here"; exit 77; }
folder=$(mktemp -d)
notes="$build/install_manifest.txt $build/install_folders.txt" # of an installation that this one shall not forget
trap 'for note in $notes; do rm -f "$note"; [ ! -f "$folder/${note##*/}" ] || mv "$folder/${note##*/}" "$note"; done; rm -rf "$folder"' EXIT
for note in $notes; do [ ! -f "$note" ] || mv "$note" "$folder"; done
fail() { echo "FAILED: $*" >&2; exit 1; }

mkdir "$folder/usr"
"$root/scripts/install" "$build" "$folder/usr" > "$folder/log"
"$root/scripts/install" "$build" "$folder/usr" > "$folder/log" # the second finds the folders of the first
cd "$folder"
unset INGOT_KING INGOT_DRAFTER
export PATH=$folder/usr/bin:$PATH
export PKG_CONFIG_PATH=$(dirname "$(find "$folder/usr" -name ingot.pc)")

json=$(ingot generate --prompt 'What is 12 + 30?' --json --quiet --max-tokens 40 2> /dev/null)
hash=$(echo "$json" | sed -n 's/.*"sha256": *"\([0-9a-f]*\)".*/\1/p')
[ ${#hash} = 64 ] || fail "no hash in: $json"

pkg-config --define-variable=prefix="$folder/usr" --cflags --libs ingot > flags
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror "$folder"/usr/share/doc/ingot/examples/answer.c $(cat flags) -o answer
pair=$folder/usr/share/ingot/models/nugget
./answer "$pair/king" "$pair/drafter-q8" 'What is 12 + 30?' > said
# greedy both: the example's first tokens are the program's
wanted=$(ingot generate --prompt 'What is 12 + 30?' --json --quiet --max-tokens 256 2> /dev/null |
    sed -n 's/.*"sha256": *"\([0-9a-f]*\)".*/\1/p')
grep -q "sha256 ${wanted:0:16}" said || fail "the example says: $(cat said), the program $wanted"
leaked=$(nm -g --defined-only "$build/libingot.a" | awk 'NF == 3 && $3 !~ /^_?ingot_/ { print $3 }')
[ -z "$leaked" ] || fail "libingot.a shows: $leaked"

for command in $(ingot help | awk '/^  [a-z]/ { print $1 }'); do
    page=$folder/usr/share/man/man1/ingot-$command.1
    [ -f "$page" ] || fail "no page for $command"
    for option in $(ingot help "$command" | sed -n 's/^ \{2,6\}\(-., \)\{0,1\}--\([a-z0-9-]*\).*/\2/p'); do
        grep -q -- "\\\\-\\\\-${option//-/\\\\-}" "$page" || fail "$page says nothing of --$option"
    done
done
if command -v mandoc > /dev/null; then
    for page in "$folder"/usr/share/man/man1/*.1; do mandoc -T lint -W error "$page" || fail "$page"; done
fi
complete() { # WORDS...: what bash offers for the last of them
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ingot; printf "%s\n" "${COMPREPLY[@]}"' _ \
        "$folder/usr/share/bash-completion/completions/ingot" "$@"
}
[ "$(complete ingot gen)" = generate ] || fail "completion of gen: $(complete ingot gen)"
[ "$(complete ingot generate --max)" = --max-tokens ] || fail "completion of --max: $(complete ingot generate --max)"
[ "$(complete ingot generate --kv-type q)" = q8 ] || fail "completion of --kv-type q"
[ "$(complete ingot eval v)" = verify ] || fail "completion of eval v: $(complete ingot eval v)"
if command -v zsh > /dev/null; then zsh -n "$folder/usr/share/zsh/site-functions/_ingot"; fi
if command -v fish > /dev/null; then fish -n "$folder/usr/share/fish/vendor_completions.d/ingot.fish"; fi

mkdir "$folder/usr/share/zsh/of_others"
"$root/scripts/install" --remove "$build" > log
grep -qx "not empty, left: $folder/usr/share/zsh/" log || fail "a folder that is not empty: $(tail -5 log)"
left=$(cd usr && find . -mindepth 1 | sort | tr '\n' ' ')
[ "$left" = './share ./share/zsh ./share/zsh/of_others ' ] || fail "uninstall leaves: $left"
! "$root/scripts/install" --remove "$build" > log 2>&1 || fail "there was nothing left to remove"
