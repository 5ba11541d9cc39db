#!/usr/bin/env bash
# A machine of shell scripts: commands that exist or not, and a package manager that only notes what it was asked.
set -euo pipefail
source "$(dirname "$0")/planted.sh"
[ "$(uname)" = Linux ] || { echo "skipped: made for Linux"; exit 77; }

tree
fake=$folder/fake
mkdir -p "$fake"
for tool in bash env uname awk sort tr cut sed rm cat; do ln -s "$(command -v $tool)" "$fake/$tool"; done
command_that() { # NAME SCRIPT
    printf '#!%s\n%s\n' "$(command -v bash)" "$2" > "$fake/$1"
    chmod +x "$fake/$1"
}
export NOTES=$folder/notes
: > "$NOTES"
command_that id 'echo 0'
command_that apt-get 'echo "apt-get $*" >> "$NOTES"; [ "$1" != install ] || : > "$NOTES.installed"'

libraries="libcurl4-openssl-dev libedit-dev libevent-dev libjansson-dev libpcre2-dev libssl-dev libutf8proc-dev"
expect 1 "missing packages: cmake gcc $libraries ninja-build pkgconf" env PATH="$fake" DEPS=no scripts/deps
expect 1 "to install them: apt-get install -y --no-install-recommends cmake gcc" env PATH="$fake" DEPS=no scripts/deps
[ ! -s "$NOTES" ] || { echo "DEPS=no installed something"; exit 1; }

for tool in cc cmake ninja; do command_that $tool :; done
command_that pkg-config '[ "$2" != libevent ] || [ -f "$NOTES.installed" ]'
expect 0 "missing packages: libevent-dev" env PATH="$fake" scripts/deps
expect 0 "apt-get update
apt-get install -y --no-install-recommends libevent-dev" cat "$NOTES"
expect 0 "" env PATH="$fake" scripts/deps
[ -z "$printed" ] || { echo "with nothing missing it printed: $printed"; exit 1; }

# what packages are made with is asked for by those who make them
expect 1 "missing packages: dpkg-dev file" env PATH="$fake" DEPS=no scripts/deps --package

# a package that some releases lack is no reason to fail
for tool in clang clang-format clang-tidy cppcheck curl dpkg-source file gcovr git mandoc nginx node npm python3 zsh; do command_that $tool :; done
ln -s "$(command -v grep)" "$fake/grep"
echo > "$fake/libclang_rt.fuzzer.a"
command_that clang "echo $fake/libclang_rt.fuzzer.a"
command_that apt-get 'echo "apt-get $*" >> "$NOTES"; [ "$*" != "install -y --no-install-recommends chromium" ]'
: > "$NOTES"
expect 0 "no package chromium here: the tests that need it are skipped" env PATH="$fake" scripts/deps --dev
expect 0 "apt-get update
apt-get install -y --no-install-recommends chromium" cat "$NOTES"
expect 1 "install -y --no-install-recommends chromium" env PATH="$fake" DEPS=no scripts/deps --dev

rm "$NOTES.installed"
command_that apt-get 'exit 0'
expect 1 "still missing after the installation: libevent-dev" env PATH="$fake" scripts/deps
command_that id 'echo 1000'
expect 1 "to install them: sudo apt-get install" env PATH="$fake" DEPS=no scripts/deps
rm "$fake/apt-get"
expect 1 "no package manager that this script knows" env PATH="$fake" scripts/deps
command_that dnf 'exit 0'
expect 1 "to install them: sudo dnf install -y libevent-devel" env PATH="$fake" DEPS=no scripts/deps
