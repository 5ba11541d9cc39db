#!/usr/bin/env bash
# Commands that write are killed after 1, 2, 4, ... ms: what stands under the name asked for is whole or refused, never
# taken for what it is not, and the same command does its work afterwards.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${INGOT_BUILD:?the build folder}
ingot=$build/ingot
[ -x "$ingot" ] || { echo "the program is not built here"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $*" >&2; exit 1; }
king=$root/models/nugget/king
drafter=$root/models/nugget/drafter-q4
"$ingot" convert "$king" king.gguf --quiet > /dev/null
echo '[1, 2, 3, 4, 5, 6, 7, 8]' > tokens.json

# The bytes of a file or of all files of a folder, names included.
content() {
    if [ -d "$1" ]; then (cd "$1" && find . -type f -not -name '*.tmp*' | sort | xargs sha256sum | sha256sum)
    else sha256sum < "$1"; fi
}

# try TARGET COMMAND...: the last argument of the command is the target's name.
try() {
    local target=$1 whole delay=1 killed=0 pid
    shift
    "$@" --quiet > /dev/null || fail "$*"
    whole=$(content "$target")
    for _ in $(seq 14); do
        rm -rf "${target:?}"
        "$@" --quiet > /dev/null 2>&1 &
        pid=$!
        sleep "$(printf '0.%04d' $((delay * 10)))"
        if kill -9 $pid 2> /dev/null; then killed=$((killed + 1)); fi
        wait $pid 2> /dev/null || true
        delay=$((delay + 1 + delay / 3))
        [ -e "$target" ] || continue
        [ "$(content "$target")" != "$whole" ] || continue
        # not whole: never a file, and no folder that is taken for a model
        [ -d "$target" ] || fail "$*: half a file"
        ! "$ingot" inspect "$target" --verify > said 2>&1 || fail "$*: half of it is accepted: $(cat said)"
    done
    [ $killed -gt 0 ] || fail "$*: was never killed"
    rm -rf "${target:?}"
    "$@" --quiet > /dev/null || fail "$* after all"
    [ "$(content "$target")" = "$whole" ] || fail "$*: differs afterwards"
}

echo '{"kind": "king", "vocab_size": 512, "num_hidden_layers": 8, "hidden_size": 1024, "intermediate_size": 2048}' > shape.json
try a.gguf "$ingot" convert "$king" a.gguf
try pack "$ingot" convert king.gguf pack --text "$king"
try q8 "$ingot" quantize "$root/tests/golden/packs/drafter-tiny-bf16" q8 --bits 8
try synth "$ingot" synth synth --shape shape.json
try rows "$ingot" capture --king "$king" --tokens tokens.json --hidden all --out rows
try tables "$ingot" capture --king "$king" --tables tables

# Tiles: what a killed `prepare` leaves is nothing, or whole.
"$ingot" prepare "$king" --tiles whole --quiet > /dev/null
for delay in 002 004 006 009 012 016 020 025 030 040; do
    rm -rf tiles
    "$ingot" prepare "$king" --tiles tiles --quiet > /dev/null 2>&1 &
    pid=$!
    sleep "0.$delay"
    kill -9 $pid 2> /dev/null || true
    wait $pid 2> /dev/null || true
    for file in tiles/*.tiles; do
        [ ! -e "$file" ] || cmp -s "$file" "whole/${file#tiles/}" || fail "half of $file"
    done
done
