#!/bin/bash
# One check, inside of a guest, as the user that it is about: checks.sh NAME. It ends with 0 where it holds, with 77 where
# something is missing for it; what it prints last says why. PLACE is where its workspace is made (the home).
set -u
NAME=$1
PLACE=${PLACE:-$HOME}

fail() {
    printf '%s\n' "$*"
    exit 1
}
skip() {
    printf '%s\n' "$*"
    exit 77
}

W=$(mktemp -d "$PLACE/check-XXXXXX") || fail "no folder in $PLACE"
trap 'cd /; rm -rf "$W"' EXIT
cd "$W" || exit

export GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me@example.org GIT_COMMITTER_NAME=me GIT_COMMITTER_EMAIL=me@example.org

# Runs a script confined; options of `wardkeep run` come before `--`.
inside() {
    local -a options=()
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    wardkeep run "${options[@]}" --env GIT_AUTHOR_NAME --env GIT_AUTHOR_EMAIL --env GIT_COMMITTER_NAME \
        --env GIT_COMMITTER_EMAIL -- bash -c "$@"
}

# Attacks of which none may work: a name and a command in each line, NAME | COMMAND. Gives those that did, and those that
# came to no end, of which nothing is known.
attack() {
    local script
    script='while IFS="|" read -r name command; do
        timeout 120 bash -c "$command" >/dev/null 2>&1 </dev/null
        case $? in 0) echo "through: $name" ;; 124) echo "through or not, no end in 120 s: $name" ;; esac
    done; echo looked'
    # The runner and its options are the arguments; the list is the input.
    wardkeep run "$@" -- bash -c "$script" 2>>told
}

# What attack gave, judged.
none_through() {
    local found=$1
    [[ $found == *looked* ]] || fail "the attacks did not run: $found $(tail -n 3 told)"
    found=$(grep '^through' <<<"$found")
    [[ -z $found ]] || fail "${found//$'\n'/, }"
}

server() {
    python3 - >port <<'P' &
import http.server, sys
class One(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Length', '5'); self.end_headers(); self.wfile.write(b'there')
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), One)
print(server.server_address[1], flush=True)
server.serve_forever()
P
    SERVER=$!
    trap 'kill $SERVER 2>/dev/null; cd /; rm -rf "$W"' EXIT
    for _ in $(seq 600); do
        [[ -s port ]] && break
        sleep 0.1
    done
    PORT=$(cat port)
}

check_starts() {
    local told
    told=$(wardkeep run -- true 2>&1) || fail "$told"
    [[ $(wardkeep run -- id -u) == "$(id -u)" ]] || fail 'another user inside'
    told=$(wardkeep run -- sh -c 'exit 7' 2>&1)
    [[ $? == 7 ]] || fail "the exit code is lost: $told"
}

check_git() {
    local told
    told=$(inside -- 'set -e; git init -q r; cd r; echo hi >f; git add f; git commit -qm one; cd ..; git clone -q r c
        cd c; git worktree add -q ../t; echo more >>f; git commit -qam two; git push -q origin HEAD:refs/heads/other; test -f ../t/f' 2>&1) ||
        fail "$told"
    [[ $(git -C c log --oneline | wc -l) == 2 ]] || fail "not committed: $told"
}

check_python() {
    local told
    told=$(inside -- 'python3 - <<E
import socket, subprocess, threading, tempfile, multiprocessing
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); t = s.accept()[0]; t.sendall(b"x"); assert c.recv(1) == b"x"
u = socket.socket(socket.AF_UNIX); u.bind("s"); u.listen()
with tempfile.TemporaryDirectory() as d: open(d + "/x", "w").write("x")
assert subprocess.run(["true"]).returncode == 0
with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]
print("finished")
E' 2>&1)
    [[ $told == finished ]] || fail "$told"
}

check_files() {
    local told
    told=$(inside -- 'set -e; umask 027; echo x >a; mkdir -p d/e; mv a d/e/b; ln d/e/b d/c; rm d/c; ln -s e/b d/l; cat d/l >/dev/null
        sed -i s/x/y/ d/e/b; chmod 700 d/e/b; touch -d 2001-01-01 d/e/b; mkfifo d/p; cp -a d d2; truncate -s 1M d2/big; rm -r d2
        printf "#!/bin/sh\necho ran\n" >run; chmod +x run; ./run; cp --reflink=auto /bin/true own; ./own; stat -c %a d/e' 2>&1)
    [[ $told == $'ran\n750' ]] || fail "$told"
}

check_terminal() {
    local told
    told=$(script -qec 'wardkeep run -- bash -c "test -t 0 && tty && stty size >/dev/null && echo fine"' /dev/null </dev/null 2>&1)
    [[ $told == *fine* ]] || fail "$told"
}

NAMES='.claude/settings.json .mcp.json .vscode/tasks.json .git/hooks/pre-commit .git/config .envrc .github/workflows/ci.yml
    .bashrc .cursor/mcp.json CLAUDE.md AGENTS.md .husky/pre-commit sub/.git/hooks/post-checkout .npmrc .devcontainer/devcontainer.json'

check_names() {
    local told name
    git init -q . && git init -q sub && mkdir .vscode && echo '{}' >.mcp.json
    told=$(inside -- 'for name in '"${NAMES//$'\n'/ }"'; do mkdir -p "${name%/*}" 2>/dev/null
            echo EVIL >"$name"; echo EVIL >>"$name"; echo EVIL >other; mv -f other "$name"; ln -f other "$name"; ln -sf other "$name"; cp other "$name"; rm -f "$name"
        done; mv .git moved; mkdir -p x; echo EVIL >x/settings.json; mv x .claude; true' 2>&1)
    told=$(grep -rl EVIL . --include='*' | grep -v -E '^\./(other|x/settings.json|told)$')
    [[ -z $told ]] || fail "written: $told"
    [[ -d .git && -f .mcp.json && -f sub/.git/config ]] || fail 'moved away'
    for name in .claude .envrc .github AGENTS.md CLAUDE.md .bashrc .husky .npmrc; do
        [[ ! -e $name && ! -L $name ]] || [[ -d $name && -z $(find "$name" ! -type d) ]] || fail "$name came into being"
    done
}

check_reads() {
    local key=$HOME/.ssh/id_check told
    mkdir -p "$HOME/.ssh" "$HOME/.aws" && echo CANARY >"$key" && echo CANARY >"$HOME/.aws/credentials" && echo CANARY >"$HOME/notes"
    echo CANARY >.env
    told=$(inside -- "cat $key $HOME/.aws/credentials $HOME/notes .env /proc/self/root$key /etc/shadow; ln -s $key l; cat l; ls $HOME/.ssh; true" 2>/dev/null)
    [[ $told != *CANARY* && $told != *id_check* && $told != *root:* ]] || fail "seen: $told"
    [[ $(cat .env) == CANARY ]] || fail 'changed outside'
}

check_proxy() {
    local told
    server
    told=$(inside --allow "localhost:$PORT" -- "curl -sS -m 90 http://localhost:$PORT/" 2>&1)
    # Before it there may be a note, where the daemon takes long.
    [[ $(tail -n 1 <<<"$told") == there ]] || fail "not reached: $told"
    told=$(inside --allow "localhost:$((PORT + 1))" -- "curl -s -m 90 http://localhost:$PORT/; curl -s --noproxy '*' -m 30 http://127.0.0.1:$PORT/" 2>/dev/null)
    [[ $told != *there* ]] || fail 'reached although not allowed'
    told=$(inside -- "curl -s -m 30 http://localhost:$PORT/; curl -s --noproxy '*' -m 30 http://127.0.0.1:$PORT/" 2>/dev/null)
    [[ $told != *there* ]] || fail 'reached without a network'
}

check_audit() {
    local told code
    wardkeep sandbox audit >told 2>&1
    code=$?
    [[ $code == 20 ]] || fail "outside $code: $(head -n 1 told)"
    told=$(wardkeep run -- wardkeep sandbox audit 2>&1) || fail "inside: $told"
    [[ $told == *'score 100 of 100'* && $told == *'none is possible'* ]] || fail "inside: $(grep -E ' no  |^Conf' <<<"$told")"
}

# Two loops that never rest for five seconds: how long they had a processor.
check_cpus() {
    local told share
    busy='busy() { end=$((${EPOCHREALTIME/./} + 5000000)); while ((${EPOCHREALTIME/./} < end)); do :; done; }; busy & busy & wait; times >t; tail -n 1 t'
    told=$(inside --cpus 0.5 -- "$busy" 2>&1)
    share=$(sed -n -E 's/^([0-9]+)m([0-9.]+)s ([0-9]+)m([0-9.]+)s$/\1 \2 \3 \4/p' <<<"$told" | awk '{ print ($1 * 60 + $2 + $3 * 60 + $4) / 5 }')
    [[ $told != *'not limited'* ]] || skip "not kept, which is said: $(sed -n 's/^note: //p' <<<"$told" | cut -c -70)"
    awk -v share="$share" 'BEGIN { exit !(share > 0.3 && share < 0.62) }' || fail "had $share of the processors: $told"
    printf 'had %s of the processors\n' "$share"
}

# What is said where no part is delegated gives one.
check_scope() {
    local told
    told=$(systemd-run --user --scope --quiet -p Delegate=yes wardkeep run --cpus 0.5 --processes 77 -- true 2>&1) || fail "$told"
    [[ $told != *'not limited'* ]] || fail "$told"
}

check_processes() {
    local told
    told=$(inside --processes 30 -- 'for n in $(seq 60); do sleep 5 & done; echo through' 2>&1)
    [[ $told != *'is not limited'* ]] || skip 'not kept, which is said'
    [[ $told == *'Resource temporarily unavailable'* ]] || fail "sixty at once: $told"
}

check_memory() {
    local told
    told=$(inside --memory 200 -- 'python3 -c "x = bytearray(400 << 20); print(len(x))"' 2>&1)
    [[ $told == *MemoryError* ]] || fail "one process had 400 MB: $told"
}

# What the control group is told of all processes together.
check_group() {
    local group told
    inside --processes 77 --cpus 0.5 -- 'touch begun; for _ in $(seq 600); do [[ -e seen ]] && break; sleep 0.2; done' 2>told &
    for _ in $(seq 300); do
        [[ -e begun ]] && break
        sleep 0.2
    done
    group=$(find /sys/fs/cgroup -name 'wardkeep-run-*' -type d 2>/dev/null | head -n 1)
    [[ -n $group ]] && told=$(cat "$group"/pids.max "$group"/memory.max "$group"/cpu.max "$group"/memory.swap.max 2>&1 | tr '\n' ' ')
    [[ -n $group ]] && printf '%s ' "$(wc -l <"$group/cgroup.procs")" >count
    touch seen
    wait
    [[ -n $group ]] || skip "no group: $(cut -c -80 told)"
    [[ $told == '77 '*' 50000 100000 0 ' && $told != *max* && $(cat count) -ge 2 ]] || fail "$told with $(cat count) processes"
    [[ ! -d $group ]] || fail "$group is left"
    printf '%s\n' "$told"
}

check_killed() {
    local runner before after told
    before=$(wc -l </proc/mounts)
    wardkeep run -- bash -c 'exec -a wk-left-behind sleep 300' >told 2>&1 &
    runner=$!
    for _ in $(seq 600); do
        pgrep -f '^wk-left-behind' >/dev/null && break
        sleep 0.1
    done
    pgrep -f '^wk-left-behind' >/dev/null || fail "did not start: $(cat told)"
    kill -9 "$runner"
    wait "$runner" 2>/dev/null
    for _ in $(seq 300); do
        pgrep -f '^wk-left-behind' >/dev/null || break
        sleep 0.1
    done
    ! pgrep -f '^wk-left-behind' >/dev/null || fail 'a process is left'
    after=$(wc -l </proc/mounts)
    [[ $before == "$after" ]] || fail "mounts: $before before, $after after"
    # A group may wait for the next run.
    wardkeep run -- true 2>told || fail "$(cat told)"
    told=$(find /sys/fs/cgroup -name 'wardkeep-run-*' -type d 2>/dev/null)
    [[ -z $told ]] || fail "left: $told"
    told=$(find /tmp -maxdepth 1 -user "$(id -u)" -name 'wardkeep-*' 2>/dev/null)
    [[ -z $told ]] || fail "left: $told"
}

# Nothing is started where a layer cannot be had, and what is said names it and tells what to do.
check_refuses() {
    local told
    told=$(timeout 240 wardkeep run -- touch started 2>&1)
    [[ $? == 125 && ! -e started ]] || fail "started: $told"
    [[ $told == *"layer \`$LAYER\` is not available"* && $told == *"${WHY:-}"* && $told == *"--allow-degraded $LAYER"* ]] || fail "$told"
    head -n 1 <<<"$told"
}

# Names that nobody can watch over, done without.
check_unwatched() {
    local told
    told=$(wardkeep run --allow-degraded names -- bash -c 'echo x >plain && cat plain && cat ~/.ssh/id_check' 2>/dev/null)
    [[ $told == x ]] || fail "$told"
}

# Whatever is done without, it starts nothing, or says in a sentence why not; it neither hangs nor goes on half confined.
check_refuses_all() {
    local told layer code
    for layer in namespaces proc landlock seccomp names 'landlock seccomp names' 'namespaces proc landlock seccomp names'; do
        rm -f started
        # shellcheck disable=SC2046
        told=$(timeout 240 wardkeep run $(printf -- '--allow-degraded %s ' $layer) -- touch started 2>&1)
        code=$?
        [[ $code == 125 && ! -e started ]] || fail "with --allow-degraded $layer: $code $told"
        [[ $told == *'too old'* && $told == *5.14* ]] || fail "it does not say what is wrong: $told"
        printf '%s: %s\n' "$layer" "$told" >>"${RESULTS:-/dev/null}"
    done
}

# Shared memory that another program of the user has, with a key.
ipcmk_of() {
    python3 -c 'import ctypes, sys; ctypes.CDLL(None).shmget(int(sys.argv[1]), 4096, 0o1600)' "$1"
}

# Landlock and the filter alone.
check_degraded() {
    local told victim key=$HOME/.ssh/id_check
    mkdir -p "$HOME/.ssh" && echo CANARY >"$key" && echo CANARY >"$HOME/notes" && mkdir -p "$HOME/beside" && echo x >"$HOME/beside/file"
    rm -f "$HOME/beside/sock"
    git init -q .
    server
    ipcmk_of 4711
    python3 -c 'import socket, time, os
a = socket.socket(socket.AF_UNIX); a.bind("\0wk-abstract"); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind(os.environ["HOME"] + "/beside/sock"); b.listen()
os.setsid()
open("ready", "w")
time.sleep(1800)' &
    victim=$!
    for _ in $(seq 600); do
        [[ -e ready ]] && break
        sleep 0.1
    done
    chmod 644 "$HOME/beside/file" && touch -d 2020-02-02 "$HOME/beside/file"
    told=$(inside --allow-degraded namespaces -- 'echo hi >made && cat made && mkdir d && mv made d/x && git status -s >/dev/null && echo fine' 2>&1)
    [[ $told == *hi*fine* ]] || fail "does not work: $told"
    # Signals that programs send to what they have started.
    told=$(inside --allow-degraded namespaces -- 'sleep 60 & kill $! && wait $!; [[ $? == 143 ]] && timeout -s INT 1 sleep 60; [[ $? == 124 ]] &&
        set -m && { sleep 60 | sleep 60 & } && kill -- -$(jobs -p) && wait; python3 -c "import os, signal, threading
signal.signal(signal.SIGUSR1, lambda *_: print(1)); os.kill(os.getpid(), signal.SIGUSR1); signal.raise_signal(signal.SIGUSR1)
signal.pthread_kill(threading.get_ident(), signal.SIGUSR1); os.kill(0, 0); print(2)"; (setsid bash -c "exec -a wk-orphan sleep 60" &); sleep 0.5' 2>/dev/null)
    [[ $told == *$'1\n1\n1\n2' ]] || fail "signals do not work: $told"
    sleep 1
    ! pgrep -f '^wk-orphan' >/dev/null || fail 'a process is left'
    told=$(attack --allow-degraded namespaces --env "PORT=$PORT" --env "VICTIM=$victim" <<E
key|grep -q CANARY $key
home|grep -q CANARY $HOME/notes
list of the home|ls $HOME
file outside|echo x >$HOME/beside/new
written outside|echo x >>$HOME/beside/file
cut short outside|python3 -c 'import os; os.truncate("$HOME/beside/file", 0)'
cut short by opening|python3 -c 'import os; os.open("$HOME/beside/file", os.O_RDONLY | os.O_TRUNC)'
removed outside|rm $HOME/beside/file
moved outside|mv $HOME/beside/file $HOME/beside/moved
linked in|ln $HOME/beside/file l && grep -q x l
tmp|echo x >/tmp/wk-check-$$
shadow|head -c1 /etc/shadow
user namespace|unshare -U true
ptrace|python3 -c 'import ctypes, os, sys; sys.exit(ctypes.CDLL(None).ptrace(0x4206, int(os.environ["VICTIM"]), 0, 0) != 0)'
memory of another|head -c1 /proc/\$VICTIM/environ
udp|python3 -c 'import socket; socket.socket(2, 2)'
unix socket|python3 -c 'import socket; socket.socket(1, 1).connect("$HOME/beside/sock")'
abstract socket|python3 -c 'import socket; socket.socket(1, 1).connect("\\0wk-abstract")'
tcp out|python3 -c 'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 5)'
tcp listen|python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()'
tcp out by a first message|python3 -c 'import os, socket; s = socket.socket(); s.sendto(b"x", 0x20000000, ("127.0.0.1", int(os.environ["PORT"])))'
tcp of many ways|python3 -c 'import os, socket; s = socket.socket(2, 1, 262); s.connect(("127.0.0.1", int(os.environ["PORT"])))'
limits of another|python3 -c 'import os, resource; resource.prlimit(int(os.environ["VICTIM"]), resource.RLIMIT_CORE, (0, 0))'
signals by a descriptor|python3 -c 'import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, int(os.environ["VICTIM"]))'
signals by a descriptor, to a group|python3 -c 'import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, -int(os.environ["VICTIM"]))'
signals by a descriptor, with a kind|python3 -c 'import fcntl, os, struct; r, w = os.pipe(); fcntl.fcntl(r, 15, struct.pack("ii", 1, int(os.environ["VICTIM"])))'
signals by a socket|python3 -c 'import fcntl, os, socket, struct; a, b = socket.socketpair(); fcntl.ioctl(a, 0x8901, struct.pack("i", int(os.environ["VICTIM"])))'
turns of another|python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, int(os.environ["VICTIM"]), 19)'
processors of another|python3 -c 'import os; os.sched_setaffinity(int(os.environ["VICTIM"]), {0})'
mode outside|chmod 666 $HOME/beside/file
mode outside by a descriptor|python3 -c 'import os; os.fchmod(os.open("$HOME/beside/file", os.O_RDONLY), 0o666)'
mode of a folder outside|chmod 777 $HOME/beside
mode of the home|chmod 777 $HOME
time outside|touch -c -d 2001-01-01 $HOME/beside/file
owner outside|chown \$(id -u) $HOME/beside/file
attribute outside|python3 -c 'import os; os.setxattr("$HOME/beside/file", "user.x", b"x")'
mode of a protected name|chmod 777 .git/config
shared memory of System V, a new one|python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).shmget(0, 4096, 0o1600) < 0)'
shared memory of System V, of another|python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).shmget(4711, 4096, 0) < 0)'
semaphores of System V|python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).semget(0, 1, 0o1600) < 0)'
queue of System V|python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).msgget(0, 0o1600) < 0)'
queue of POSIX|python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).mq_open(b"/wk-check", 0o102, 0o600, None) < 0)'
tcp bind|python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))'
tcp out, version 6|python3 -c 'import socket; socket.socket(10, 1)'
signal by a descriptor of a process|python3 -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open(int(os.environ["VICTIM"])), 0)'
signal with words|python3 -c 'import ctypes, os, sys; sys.exit(ctypes.CDLL(None).sigqueue(int(os.environ["VICTIM"]), 0, 0) != 0)'
signal to a group|kill -0 -- -\$VICTIM
tcp listen without bind|python3 -c 'import socket; s = socket.socket(); s.listen()'
signal 0 to another|kill -0 \$VICTIM
hook|echo x >.git/hooks/pre-commit
settings|mkdir -p .claude && echo x >.claude/settings.json
git config|git config core.fsmonitor x
E
    )
    kill "$victim" 2>/dev/null
    [[ $(cat "$HOME/beside/file" 2>/dev/null) == x ]] || told+=$'\nthrough: the file outside has changed'
    [[ $(stat -c '%a %y' "$HOME/beside/file") == '644 2020-02-02'* ]] || told+=$'\nthrough: mode or time of the file outside have changed'
    none_through "$told"
}

# Without namespaces there is nobody but Landlock to keep signals inside.
check_signals() {
    local told victim
    sleep 600 &
    victim=$!
    # shellcheck disable=SC2016
    told=$(VICTIM=$victim timeout 240 wardkeep run --allow-degraded namespaces --env VICTIM -- bash -c 'kill -9 $VICTIM; kill -9 $PPID; kill -9 -1; sleep 1
        echo EVIL >.envrc; echo x >plain; echo on' 2>&1)
    sleep 0.5
    [[ ! -e .envrc ]] || fail "a protected name was made: $told"
    kill -0 "$victim" 2>/dev/null || fail "another process of the user was ended: ${told//$'\n'/; }"
    kill "$victim"
}

# What an attack on a name says that only looks like another one: nobody's, where names are told apart.
ALIKE='^through: .*(by a |in capitals|long s)'

# Names on a file system that is not the usual one; FOLDS where the folder folds them.
check_place() {
    local told name
    git init -q . || fail 'no repository'
    mkdir docs
    if [[ -n ${FOLDS:-} ]]; then
        touch docs/probe
        [[ -e docs/PROBE ]] || skip 'the folder does not fold names'
    fi
    told=$(attack <<'E'
hook|echo EVIL >.git/hooks/pre-commit
hook, in capitals|echo EVIL >.GIT/hooks/x
git config, in capitals|echo EVIL >>.Git/Config
repository moved|mv .git gone || mv .GIT gone
settings|mkdir -p .claude && echo EVIL >.claude/settings.json
settings, in capitals|mkdir -p .Claude && echo EVIL >.Claude/SETTINGS.JSON
tasks, long s|mkdir -p .vscode && echo EVIL >.vscode/taſks.json
servers, long s|echo EVIL >.mcp.jſon
instructions, Kelvin in capitals|python3 -c 'import os; os.makedirs(".hus\u212ay", exist_ok=True); open(".hus\u212ay/pre-commit", "w").write("EVIL")'
git by a sign without width|python3 -c 'import os; os.makedirs(".g\u200cit/hooks", exist_ok=True); open(".g\u200cit/hooks/post-checkout", "w").write("EVIL")'
git by a joiner of signs|python3 -c 'import os; os.makedirs(".g\u034fit/hooks", exist_ok=True); open(".g\u034fit/hooks/post-rewrite", "w").write("EVIL")'
git by a variation|python3 -c 'import os; os.makedirs(".git\ufe0f/hooks", exist_ok=True); open(".git\ufe0f/hooks/post-merge", "w").write("EVIL")'
settings by a variation|python3 -c 'import os; os.makedirs(".claude", exist_ok=True); open(".claude/settings\ufe0f.json", "w").write("EVIL")'
servers by a word joiner|python3 -c 'open(".mcp\u2060.json", "w").write("EVIL")'
servers by a wide blank|python3 -c 'open(".mcp\u200b.json", "w").write("EVIL")'
servers by a tag|python3 -c 'open(".mcp\U000e0061.json", "w").write("EVIL")'
start-up by a filler|python3 -c 'open(".envrc\u115f", "w").write("EVIL")'
workflow by a ligature|python3 -c 'import os; os.makedirs(".github/work\ufb02ows", exist_ok=True); open(".github/work\ufb02ows/ci.yml", "w").write("EVIL")'
git config by a ligature|python3 -c 'open(".git/con\ufb01g", "a").write("EVIL")'
shell by a ligature|python3 -c 'open(".zpro\ufb01le", "w").write("EVIL")'
instructions, in capitals|echo EVIL >agents.MD
instructions below, in capitals|echo EVIL >docs/Claude.md
E
    )
    # What counts is what somebody finds who looks for the name.
    told+=$'\n'$(for name in .git/hooks/{pre-commit,x,post-checkout,post-rewrite,post-merge} .git/config .claude/settings.json .vscode/tasks.json \
        .mcp.json .husky/pre-commit .github/workflows/ci.yml .zprofile .envrc AGENTS.md docs/CLAUDE.md; do
        if grep -qs EVIL "$name"; then echo "through: $name holds it"; fi
    done)
    [[ -d .git ]] || told+=$'\nthrough: .git has gone'
    if [[ -n ${FOLDS:-} ]]; then
        inside -- 'for name in docs/identity.md SOUL.MD docs/Soul.md; do echo EVIL >$name; done; python3 -c "open(\"docs/user\ufe0f.md\", \"w\").write(\"EVIL\")"' >/dev/null 2>&1
        for name in docs/IDENTITY.md SOUL.md docs/SOUL.md; do
            if grep -qs EVIL "$name"; then told+=$'\n'"through: $name holds it"; fi
        done
    else
        told=$(grep -v -E "$ALIKE" <<<"$told")
    fi
    none_through "$told"
    told=$(inside -- 'echo x >plain && mkdir -p a/b && mv plain a/b/c && git add a && git commit -qm one && cat a/b/c && ln -s b a/l && rm -r a' 2>&1)
    [[ $told == x || $told == $'x\n'* ]] || fail "does not work: $told"
}

# Requests of btrfs that make and remove names.
check_btrfs() {
    local told name
    git init -q . && mkdir src && echo EVIL >src/settings.json && btrfs -q subvolume create old >/dev/null && mkdir old/hooks
    told=$(inside -- 'btrfs subvolume create .claude; btrfs subvolume snapshot . .vscode; btrfs subvolume snapshot old .husky; btrfs subvolume delete old
        btrfs subvolume create plain; chattr +c src; btrfs property set src compression zstd
        cp --reflink=always src/settings.json src/copy && cmp src/settings.json src/copy && echo reflinked
        cp --reflink=always src/settings.json .mcp.json; cp --reflink=always src/settings.json .git/hooks/pre-commit' 2>&1)
    for name in .claude .vscode .husky plain .mcp.json .git/hooks/pre-commit; do
        [[ ! -e $name ]] || fail "$name came into being: $told"
    done
    [[ -d old ]] || fail 'a subvolume has gone'
    [[ $told == *reflinked* ]] || fail "no reflinks: $told"
}

"check_$NAME"
