#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/planted.sh"

tree
mkdir -p src/compute/cpu
printf '%s\n' '#include "compute/cpu/lanes.h"' '#include "pack/t.h"' > src/compute/cpu/ref.c
printf '%s\n' '#include <jansson.h>' > src/base/json.c
printf '%s\n' '#include "cli/main.h"' > src/base/notes.txt
expect 0 "layers ok" scripts/check-layers

plant() { # FILE LINE WANT: one violation in a clean tree
    tree
    mkdir -p "$(dirname "$1")"
    printf '/* x */\n%s\n' "$2" > "$1"
    expect 1 "$3" scripts/check-layers
    expect 1 "1 layer violation(s)" scripts/check-layers
}
plant src/base/x.c '#include "text/beta.h"' 'src/base/x.c:2: base may not include text'
plant src/pack/x.c '#include "text/beta.h"' 'src/pack/x.c:2: pack may not include text'
plant src/pack/x.c '#include "x.h"' '"x.h": write "module/file.h"'
plant src/model/x.c '  #  include "compute/cpu/ref.h"' '"compute/cpu/ref.h" is private to compute'
plant src/text/x.c '#include <jansson.h>' '<jansson.h> belongs to base/json.c'
plant src/text/x.c '#include <openssl/evp.h>' '<openssl/evp.h> belongs to base/digest.c'
plant src/odd/x.c '' 'odd is not in LAYERS'
plant src/text/alpha.c '' 'the stem alpha is taken by src/base/alpha.c'
plant src/base/alpha.inc '' 'the stem alpha is taken by src/base/alpha.c'
plant src/server/x.inc '#include "engine/engine.h"' 'server may not include engine'

tree # an order with a cycle
sed 's/^base:.*/base: text/' "$root/LAYERS" > LAYERS
expect 1 "base stands on text, which is not on an earlier line" scripts/check-layers
