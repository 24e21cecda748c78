#!/usr/bin/env bash
# inside.sh FOLDER AGENT CASE CACHE: one run, inside the namespaces that scripts/test-agents made.
# First as root in there (loopback, an /etc of its own), then again as a user without rights, or as
# root where the name of the agent ends so.
set -euo pipefail
FOLDER=$1 AGENT=${2%-root} CASE=$3 CACHE=$4
TOOLS=$FOLDER/tools
# shellcheck source=scripts/agents/cases.sh
source "$TOOLS/cases.sh"
USER_ID=4242

surround() {
    ip link set lo up
    mount -t tmpfs -o mode=755 tmpfs "$FOLDER/agents"
    mkdir "$FOLDER/agents/etc" "$FOLDER/agents/cache"
    cp -a /etc/. "$FOLDER/agents/etc" 2>/dev/null || true
    # Whoever it is, is at home in the run's own folder, also for programs that ask who they are.
    sed -i "s,^\(root:.*:\)[^:]*\(:[^:]*\)\$,\1$FOLDER/home\2," "$FOLDER/agents/etc/passwd"
    printf 'tester:x:%d:%d::%s:/bin/bash\n' "$USER_ID" "$USER_ID" "$FOLDER/home" >>"$FOLDER/agents/etc/passwd"
    printf 'tester:x:%d:\n' "$USER_ID" >>"$FOLDER/agents/etc/group"
    printf '127.0.0.1 model.test\n' >>"$FOLDER/agents/etc/hosts"
    mount --bind "$FOLDER/agents/etc" /etc
    mount --bind "$CACHE" "$FOLDER/agents/cache"
    # Agents leave things in /tmp: it is the run's own, with the run's folder in its old place.
    mount --rbind "$FOLDER" /mnt
    chmod 1777 /mnt/tmp
    mount --bind /mnt/tmp /tmp
    mkdir -p "$FOLDER"
    mount --rbind /mnt "$FOLDER"
    if [[ $FOLDER != /root/* ]]; then mount -t tmpfs tmpfs /root; fi
    # A user namespace of one id has no other to change to: there another namespace shows it as one.
    local become=()
    if [[ $2 == *-root ]]; then
        become=()
    elif chown -R "$USER_ID:$USER_ID" "$FOLDER"/{home,work,bin} 2>/dev/null; then
        chown "$USER_ID:$USER_ID" "$FOLDER"
        become=(setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups)
    else
        become=(unshare --user --map-user="$USER_ID" --map-group="$USER_ID" --)
    fi
    exec "${become[@]}" env -i \
        HOME="$FOLDER/home" USER=tester LOGNAME=tester SHELL=/bin/bash TERM=dumb LANG=C.UTF-8 \
        TMPDIR=/tmp NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost AS_USER=1 \
        PATH="$FOLDER/bin:$FOLDER/agents/cache/node/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
        "$BASH" "$TOOLS/inside.sh" "$@"
}

# serve_model LOG STEP…: sets PORT, and MODEL_PROCESS.
serve_model() {
    local log=$1
    shift
    : >"$FOLDER/port"
    "$TOOLS/fake-model" --log "$log" "$@" >"$FOLDER/port" &
    MODEL_PROCESS=$!
    for _ in {1..100}; do
        if PORT=$(cat "$FOLDER/port") && [[ -n $PORT ]]; then return; fi
        sleep 0.05
    done
    printf 'the model did not start\n'
    exit 1
}

start_model() {
    local steps=()
    script_for "$CASE" "$FOLDER/work"
    serve_model "$FOLDER/model.jsonl" "${steps[@]}"
}

# One session outside before anything protects it, with a model that asks for nothing: what the agent
# makes in a workspace that is new to it is there then, as for a user who has worked with it before.
first_start() {
    local status=0 words=()
    serve_model "$FOLDER/first.jsonl"
    agent_configure
    agent_command
    timeout --foreground --signal=KILL "$LIMIT" "${words[@]}" </dev/null >"$FOLDER/first.log" 2>&1 || status=$?
    kill "$MODEL_PROCESS"
    printf 'the first start outside ended with status %d\n' "$status"
}

protect() {
    wardkeep init .
    wardkeep daemon
    local said=$FOLDER/install.log
    if ! wardkeep install "$AGENT" >"$said" 2>&1; then
        cp -- "$said" "$FOLDER/not-installed"
        exit 1
    fi
    cat -- "$said"
    wardkeep doctor
    break_hook "$CASE" "$FOLDER"
}

session() {
    # shellcheck disable=SC2034,SC2154 # to and from the agent's own file
    BIN=$FOLDER/agents/cache/$AGENT-$agent_version/node_modules/.bin
    # As for a user who has installed it.
    export PATH=$BIN:$PATH
    cd "$FOLDER/work"
    git init --quiet . 2>/dev/null || true
    fill_workspace
    MODEL=127.0.0.1
    if [[ $CASE == confined && -n $first_outside ]]; then first_start; fi
    # Where a confined agent looks for 127.0.0.1 there is only itself.
    # shellcheck disable=SC2034 # for the agent's own file
    if [[ $CASE == confined ]]; then MODEL=model.test; fi
    start_model
    agent_configure
    if [[ $CASE != control ]]; then protect; fi
    local status=0 words=()
    agent_command
    if [[ $CASE == confined ]]; then
        printf '%s\n' "$SECRET" >"$FOLDER/secret.txt"
        printf '%s\necho %s\n' "$PLANTED" "$RAN" >"$SCRIPT"
        # As for a user who has worked with it before.
        mkdir -p "$HOME"/.local/{share,state}/opencode "$HOME/.config/opencode"
        touch "$HOME/.config/opencode/.gitignore"
        # The last are names of the test's own model.
        words=(wardkeep run --profile "$AGENT" --read "$FOLDER/agents/cache"
            --allow "model.test:$PORT@127.0.0.1/32" --env FAKE_KEY --env GOOGLE_GEMINI_BASE_URL -- "${words[@]}")
    fi
    if [[ $CASE == hook-slow ]]; then LIMIT=$SLOW_LIMIT; fi
    # Only the agent, and at once: a hook that is ended along with it would be another case.
    timeout --foreground --signal=KILL "$LIMIT" "${words[@]}" </dev/null >"$FOLDER/stdout" 2>"$FOLDER/stderr" || status=$?
    printf 'the agent ended with status %d\n' "$status"
    if [[ $CASE == confined ]]; then
        wardkeep log --json --limit 1000 >"$FOLDER/journal" || true
        wardkeep evidence verify || true
    fi
}

if [[ -z ${AS_USER-} ]]; then surround "$@"; fi
# shellcheck disable=SC2034 # for the agent's own file
declare -A expected=() proxied=()
first_outside=''
# shellcheck source=/dev/null
source "$TOOLS/$AGENT.sh"
session
