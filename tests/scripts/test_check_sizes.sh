#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/planted.sh"

lines() { # N TEXT
    awk -v n="$1" -v t="$2" 'BEGIN { for (i = 0; i < n; i++) print t }'
}
function_of() { # a function with so many lines between its braces
    echo 'int alpha_long(void)'
    echo '{'
    lines "$1" '    ;'
    echo '}'
}
plant() { # WANT: what the tree now holds is wrong
    expect 1 "$1" scripts/check-sizes
    expect 1 "1 size violation(s)" scripts/check-sizes
    tree
}
tree
expect 0 "sizes ok" scripts/check-sizes
function_of 61 > src/base/long.c
expect 0 "warning: src/base/long.c:alpha_long: the function has 61 lines" scripts/check-sizes
function_of 150 > src/base/long.c
expect 0 "sizes ok" scripts/check-sizes
function_of 151 > src/base/long.c
plant 'src/base/long.c:alpha_long: the function has 151 lines, at most 150'
lines 1201 '/* x */' > src/base/long.c
plant 'src/base/long.c: 1201 lines, at most 1,200'
lines 801 '/* x */' > src/base/long.c
expect 0 "warning: src/base/long.c: 801 lines" scripts/check-sizes
printf '/* %099d */\n' 0 > src/base/wide.h
plant 'src/base/wide.h: line 1 has 105 columns'
printf '/* %093d\xc3\xa9 */\n' 0 > src/base/wide.h # 100 columns in 101 bytes
expect 0 "sizes ok" scripts/check-sizes
lines 301 x > page.md
plant 'page.md: 301 lines, at most 300'
lines 21 x > src/base/README.md
plant 'src/base/README.md: 21 lines, at most 20'
head -c 1048577 /dev/zero > big
plant 'big: 1048577 bytes'
mkdir -p tests/golden && head -c 1048577 /dev/zero > tests/golden/big
expect 0 "sizes ok" scripts/check-sizes
mkdir build && head -c 8400000 /dev/zero > "$folder/pad"
printf '%s\n' '__asm__(".section .data\n.incbin \"'"$folder/pad"'\"\n");' 'int main(void) { return 0; }' > "$folder/big.c"
cc "$folder/big.c" -o build/ingot
expect 1 "ingot: the stripped program has" scripts/check-sizes build

tree
function_of 151 > src/base/long.c
echo "src/base/long.c:alpha_long a table in disguise" >> scripts/sizes.allow
expect 0 "sizes ok" scripts/check-sizes
echo "src/base/other.c" >> scripts/sizes.allow
expect 1 "src/base/other.c has no reason" scripts/check-sizes
