# shellcheck shell=bash
# Shared by the scripts beside it: sections with timing, the skip log, tools of crates.io.
# Sourced, never run.

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
cd -- "$ROOT" || exit

TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
[[ $TARGET_DIR == /* ]] || TARGET_DIR=$ROOT/$TARGET_DIR
mkdir -p -- "$TARGET_DIR"

# Tests that cannot run here append one `skipped:` line each to this file, because cargo hides
# what a passing test prints. A caller that already set it gets the lines and shows them itself.
if [[ -z ${WARDKEEP_SKIP_LOG:-} ]]; then
    export WARDKEEP_SKIP_LOG=$TARGET_DIR/skipped.log
    : >"$WARDKEEP_SKIP_LOG"
fi

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
    BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' PLAIN=$'\e[0m'
else
    BOLD='' RED='' GREEN='' YELLOW='' PLAIN=''
fi

# A run that is ended from outside has not passed.
trap 'exit 130' INT
trap 'exit 143' TERM HUP

SECTION=''
SECTION_START=0
LAST_COMMAND=''
SECTIONS_DONE=()

duration() {
    if (($1 >= 60)); then printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); else printf '%d s' "$1"; fi
}

# Closes the section before it, if any, and opens the next.
begin() {
    close_section
    SECTION=$1
    SECTION_START=$SECONDS
    LAST_COMMAND=''
    printf '\n%s==> %s%s\n' "$BOLD" "$SECTION" "$PLAIN"
}

close_section() {
    [[ -n $SECTION ]] || return 0
    local took
    took=$(duration $((SECONDS - SECTION_START)))
    SECTIONS_DONE+=("$(printf '%-26s %s' "$SECTION" "$took")")
    printf '%s--- %s: done in %s%s\n' "$GREEN" "$SECTION" "$took" "$PLAIN"
    SECTION=''
}

# Shows a command, then runs it, so that a failure can be repeated by hand. What is shown goes to
# the script's own output even where the command's output is redirected.
exec 3>&1
run() {
    LAST_COMMAND=$*
    printf '$ %s\n' "$*" >&3
    "$@" 3>&-
}

skip() {
    printf '%sskipped: %s%s\n' "$YELLOW" "$*" "$PLAIN"
    printf 'skipped: %s\n' "$*" >>"$WARDKEEP_SKIP_LOG"
}

# For `trap 'summary NAME' EXIT`: what was skipped, how long each section took, one verdict line.
summary() {
    local status=$? name=$1
    if ((status == 0)); then close_section; fi

    printf '\n%s==> summary of %s%s\n' "$BOLD" "$name" "$PLAIN"
    if ((${#SECTIONS_DONE[@]})); then printf '    %s\n' "${SECTIONS_DONE[@]}"; fi
    local skipped=0
    if [[ -s $WARDKEEP_SKIP_LOG ]]; then
        skipped=$(sort -u -- "$WARDKEEP_SKIP_LOG" | wc -l)
        printf '%s' "$YELLOW"
        sort -u -- "$WARDKEEP_SKIP_LOG"
        printf '%s' "$PLAIN"
    fi

    local total
    total=$(duration "$SECONDS")
    if ((status == 0)); then
        printf '%s%s: ok, %d sections in %s, %d lines skipped%s\n' \
            "$GREEN" "$name" "${#SECTIONS_DONE[@]}" "$total" "$skipped" "$PLAIN"
    else
        printf '%s%s: FAILED in section "%s" with exit status %d after %s%s\n' \
            "$RED" "$name" "${SECTION:-start}" "$status" "$total" "$PLAIN"
        if [[ -n $LAST_COMMAND ]]; then printf 'to repeat only that: %s\n' "$LAST_COMMAND"; fi
    fi
    exit "$status"
}

DENY_VERSION=0.20.2
DENY=''

# Sets DENY to a cargo-deny of the pinned version, building it once per target folder.
find_deny() {
    local candidate
    for candidate in "$TARGET_DIR/tools/bin/cargo-deny" "$(command -v cargo-deny || true)"; do
        if [[ -x $candidate && $("$candidate" --version 2>/dev/null) == "cargo-deny $DENY_VERSION" ]]; then
            DENY=$candidate
            return 0
        fi
    done

    printf 'building cargo-deny %s, once, about three minutes on two cores\n' "$DENY_VERSION"
    local build=$TARGET_DIR/tools/build status=0
    CARGO_TARGET_DIR=$build cargo install --quiet --locked --force cargo-deny \
        --version "$DENY_VERSION" --root "$TARGET_DIR/tools" || status=$?
    rm -rf -- "$build"
    if ((status != 0)); then return 1; fi
    DENY=$TARGET_DIR/tools/bin/cargo-deny
}

TOOL=''

# Sets TOOL to a program of crates.io of the version given, building it once per target folder: find_tool NAME VERSION [OPTION…]
find_tool() {
    local name=$1 version=$2 candidate
    shift 2
    for candidate in "$TARGET_DIR/tools/bin/$name" "$(command -v "$name" || true)"; do
        if [[ -x $candidate && $("$candidate" --version 2>/dev/null || "$candidate" "${name#cargo-}" --version 2>/dev/null) =~ (^| |v)"$version"$ ]]; then
            TOOL=$candidate
            return 0
        fi
    done

    printf 'building %s %s, once, one to three minutes on two cores\n' "$name" "$version"
    local build=$TARGET_DIR/tools/build status=0
    CARGO_TARGET_DIR=$build cargo install --quiet --locked --force "$name" --version "$version" "$@" \
        --root "$TARGET_DIR/tools" || status=$?
    rm -rf -- "$build"
    if ((status != 0)); then return 1; fi
    TOOL=$TARGET_DIR/tools/bin/$name
}

# The advisory database comes from a git host that a closed network does not reach.
# Being unable to ask is a skip; an advisory that applies is a failure.
check_advisories() {
    if ! GIT_TERMINAL_PROMPT=0 timeout 120 "$DENY" --log-level off fetch db >/dev/null 2>&1; then
        skip 'advisories need the network'
        return 0
    fi
    run "$DENY" --locked "$@" check advisories
}
