#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/planted.sh"

tree
mkdir -p docs
cat > program << 'E2'
#!/bin/sh
case "$*" in
    help) printf '  make     makes\n  eval     measures\n' ;;
    "help make") printf '  -n, --number N       a number\n      --quiet\n' ;;
    "help eval kl") printf '      --against FILE   what\n' ;;
esac
E2
chmod +x program
echo 'int known_name(int x);' > src/base/known.h
plant() { # LINE TEXT: the page with this line, and what must be said of it
    printf '%s\n' '# A Page' '## Two words' 'See [a](page.md#two-words), `base/alpha.c`, `ingot make --number 4`.' '```' \
        'ingot eval kl --against X   # --nothing' '```' > docs/page.md
    [ -z "$1" ] || printf '%s\n' "$1" >> docs/page.md
    git add -A
    expect "$([ "$2" = "docs ok" ] && echo 0 || echo 1)" "$2" scripts/check-docs program
}
plant '' "docs ok"
plant '[b](gone.md)' "docs/page.md:7: link to gone.md: no such file"
plant '[b](page.md#three-words)' "link to page.md#three-words: no such heading"
plant '[b](#three-words)' "link to #three-words: no such heading"
plant 'In `base/gone.c`.' "docs/page.md:7: names base/gone.c: no such file"
plant 'See `alpha_gone` and `ALPHA_GONE`.' "docs/page.md:7: names alpha_gone: nowhere in the tree"
plant 'The metric `gone_total{kind}`.' "names gone_total: nowhere in the tree"
plant 'See `known_name`, `known_name(int)`, `known_name{x}`.' "docs ok"
plant 'Type `ingot make --numbers 4`.' "docs/page.md:7: ingot make: no option --numbers"
plant 'Type `ingot make [--silent]`.' "no option --silent"
plant 'Type `echo | build/ingot eval kl --number 4`.' "ingot eval: no option --number"
plant 'http: [c](http://example.org/x), --loud alone, `other --loud`' "docs ok"
