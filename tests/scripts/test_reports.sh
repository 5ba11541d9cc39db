#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/planted.sh"

expect 0 "reports ok" "$root/scripts/reports"

plant() { # LINE TEXT: with the line added, the list is wrong in this way alone
    mkdir -p tests/unit
    printf '%s\n' 'TEST(R001_R002_whole)' 'TEST(plain)' > tests/unit/test_alpha.c
    printf '%s\n' '    def test_R004_more(self):' > tests/unit/test_beta.py
    printf '%s\n' '# a note' 'R001 | a | x' 'R002 | a | x | benchmark: there' 'R003 | a | x | tests: plain' 'R004 | b | x' \
        'R005 | b | x | open: y' 'R006 | b | x | not applicable: z' > tests/reports.txt
    [ -z "$1" ] || echo "$1" >> tests/reports.txt
    expect "$([ "$2" = "reports ok" ] && echo 0 || echo 1)" "$2" scripts/reports
    [ "$2" = "reports ok" ] || expect 1 "1 report violation(s)" scripts/reports
}
tree
plant '' "reports ok"
expect 0 "R004 R004_more" scripts/reports
expect 0 "reports ok: 6 entries, 1 open" scripts/reports
plant 'R007 | b | x' "R007 has no test and no reason"
plant 'R007 | b | x | later' 'R007: found "later"'
plant 'R007 | b | x | tests: plain gone' "R007 names the test gone, which does not exist"
plant 'R007 | b' 'not "R000 | area | what holds"'
plant 'R004 | b | x' "R004 stands after R006"
plant 'R006 | b | x | tests: plain' "R006 stands after R006"
sed -i '/R004/d' tests/reports.txt && sed -i '$d' tests/reports.txt
expect 1 "R004 is no entry, but a test in tests/unit/test_beta.py" scripts/reports
plant '' "reports ok"
sed -i 's/R001_R002/R001_R005/' tests/unit/test_alpha.c # R002 has its reason, R005 is done
expect 0 "note: R005 is called open, but has a test" scripts/reports
expect 0 "reports ok: 6 entries, 0 open" scripts/reports
