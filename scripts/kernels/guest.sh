#!/bin/bash
# All checks, inside of a guest, as root; see boot.sh. Each leaves a line in results/table: its name, `ok`, `FAILED` or
# `skipped`, and why. `wanted` says which: all, or only that nothing is started (refuses).
set -u
cd /srv/wardkeep || exit
HERE=$PWD
export RESULTS=$HERE/results/refusals
install -m 755 wardkeep /usr/local/bin/wardkeep
chmod 755 . && chmod 644 checks.sh
touch "$RESULTS" && chmod 666 "$RESULTS"
uname -r >results/kernel

note() {
    is_wanted "$1" || return 0
    printf '%s\t%s\t%s\n' "$1" "$2" "$(tr '\t\n' '  ' <<<"$3" | cut -c -600)" | tee -a results/table
    printf '%s: %s\n' "$2" "$1" >/dev/ttyS0
}

# Whether a line of the table is wanted.
is_wanted() {
    # shellcheck disable=SC2053
    [[ $1 == $(cat only) ]]
}

# judge CHECK STATUS WORDS
judge() {
    case $2 in
        0) note "$1" ok "$3" ;;
        77) note "$1" skipped "$3" ;;
        *) note "$1" FAILED "$2: $3" ;;
    esac
}

PASSED=(PLACE FOLDS LAYER WHY RESULTS)

# as WHO COMMAND… : `me` as a program of the user's own services has it, with a part of the control groups; `login` as a
# session has it that came over ssh; root as a service.
as() {
    local who=$1 name
    local -a options=(--pipe --wait --collect --quiet)
    shift
    for name in "${PASSED[@]}"; do
        [[ -z ${!name:-} ]] || options+=("--setenv=$name=${!name}")
    done
    case $who in
        me)
            runuser -u me -- env -i HOME=/home/me USER=me LOGNAME=me PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/1000 \
                DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus \
                systemd-run --user "${options[@]}" --working-directory=/home/me -- "$@"
            ;;
        login) systemd-run "${options[@]}" -p PAMName=login -p User=me --working-directory=/home/me -- "$@" ;;
        *) systemd-run "${options[@]}" --setenv=HOME=/root --working-directory=/root -- "$@" ;;
    esac
}

# check WHO NAME [AS] : one check of checks.sh, in the table as AS.
check() {
    local told code begin=$SECONDS
    is_wanted "${3:-$2, as $1}" || return 0
    told=$(timeout 1200 bash -c "$(declare -f as); $(declare -p PASSED); as $1 bash $HERE/checks.sh $2" 2>&1 </dev/null)
    code=$?
    printf '%s\n== %s as %s: %s after %s s\n%s\n' '' "$2" "$1" "$code" $((SECONDS - begin)) "$told" >>results/details
    judge "${3:-$2, as $1}" "$code" "$(tail -n 1 <<<"$told")"
}

export PLACE='' FOLDS='' LAYER='' WHY=''

if [[ $(cat wanted) == refuses ]]; then
    for who in me root; do
        check "$who" refuses_all "nothing is started, as $who"
    done
    exit
fi

# The user's services, which a check may have ended.
awaken() {
    systemctl is-active --quiet user@1000.service || systemctl restart user@1000.service
    for _ in $(seq 60); do
        [[ -S /run/user/1000/bus ]] && return
        sleep 1
    done
}

awaken

for who in me root; do
    for one in starts git python files terminal names reads proxy audit processes memory group cpus killed; do
        check "$who" "$one"
    done
done
for one in starts names cpus processes; do
    check login "$one"
done
check login scope 'a share by systemd-run --user --scope, as login'

# --- the project's own attacks ----------------------------------------------------------------

# suite WHO AS : the tests of crates/sandbox, a line for each module; what they skip is in results/skipped.
suite() {
    local told code module row
    [[ -x $HERE/suite ]] || {
        if is_wanted "$2"; then note "$2" skipped 'needs --tests FILE'; fi
        return
    }
    cp -r manifest/. / 2>/dev/null
    for module in $("$HERE/suite" --list 2>/dev/null | sed -n 's/^\([a-z]*\)::.*: test$/\1/p' | sort -u); do
        row="$2: $module"
        is_wanted "$row" || continue
        told=$(as "$1" env WARDKEEP_SKIP_LOG=/tmp/skipped-"$1" timeout 1500 "$HERE/suite" --test-threads 2 "$module::" 2>&1 </dev/null)
        code=$?
        printf '\n== %s\n%s\n' "$row" "$told" >>results/details
        sort -u /tmp/skipped-"$1" >>results/skipped 2>/dev/null
        rm -f /tmp/skipped-"$1"
        if ((code == 0)); then
            note "$row" ok "$(grep '^test result' <<<"$told" | tail -n 1)"
        else
            note "$row" FAILED "$code: $(grep -E '^test .*FAILED' <<<"$told" | sed 's/^test //; s/ \.\.\. FAILED//' | tr '\n' ' ')$(
                grep -A 2 'panicked at' <<<"$told" | tr '\n' ' ' | cut -c -400)"
        fi
    done
}

if [[ -f suite ]]; then chmod 755 suite; fi
suite me 'tests of crates/sandbox, as me'
suite root 'tests of crates/sandbox, as root'

# --- file systems -----------------------------------------------------------------------------

# place KIND SIZE COMMAND… : a file system in a file, made by COMMAND, on /mnt/KIND.
place() {
    local kind=$1 size=$2 image=/var/lib/wk-$1
    shift 2
    truncate -s "$size" "$image" && "$@" "$image" >/dev/null 2>&1 && mkdir -p "/mnt/$kind" && mount -o loop "$image" "/mnt/$kind" &&
        mkdir -p "/mnt/$kind/w" && chown me: "/mnt/$kind/w"
}

on() {
    local kind=$1 who
    for who in me root; do
        PLACE=/mnt/$kind/w check "$who" place "names on $kind, as $who"
    done
}

if place casefold 256M mkfs.ext4 -q -O casefold -E encoding=utf8 && chattr +F /mnt/casefold/w; then
    FOLDS=1 on casefold
    if [[ -f suite ]]; then
        mount --bind /mnt/casefold/w /var/tmp && chmod 1777 /var/tmp
        suite root 'tests of crates/sandbox where names are folded'
        umount /var/tmp
    fi
else
    note 'names on casefold' skipped 'no ext4 that folds names here'
fi
if place btrfs 512M mkfs.btrfs -q; then
    on btrfs
    for who in me root; do
        PLACE=/mnt/btrfs/w check "$who" btrfs "subvolumes and reflinks, as $who"
    done
else
    note 'names on btrfs' skipped 'no btrfs here'
fi
if place xfs 400M mkfs.xfs -q; then on xfs; else note 'names on xfs' skipped 'no xfs here'; fi
if place vfat 64M mkfs.vfat; then
    umount /mnt/vfat && mount -o loop,uid=1000,gid=1000,umask=022 /var/lib/wk-vfat /mnt/vfat
    FOLDS=1 PLACE=/mnt/vfat/w check me place 'names on vfat, as me'
else
    note 'names on vfat' skipped 'no vfat here'
fi
mkdir -p /mnt/overlay /var/lib/wk-overlay/{lower,upper,work}
if mount -t overlay -o lowerdir=/var/lib/wk-overlay/lower,upperdir=/var/lib/wk-overlay/upper,workdir=/var/lib/wk-overlay/work overlay /mnt/overlay; then
    mkdir /mnt/overlay/w && chown me: /mnt/overlay/w
    on overlay
else
    note 'names on overlay' skipped 'no overlay here'
fi

# --- what machines forbid ---------------------------------------------------------------------

# without SETTING : what holds where a setting forbids namespaces.
without() {
    local who
    export LAYER=namespaces
    for who in me root; do
        # Nothing but the first forbids them to root.
        if [[ $who == root && $1 != user.max_user_namespaces ]]; then continue; fi
        WHY="$1 is 0" check "$who" refuses "refuses where $1=0, as $who"
        check "$who" degraded "Landlock and the filter alone where $1=0, as $who"
    done
    WHY="$1 is 0" check me signals "signals without namespaces where $1=0, as me"
    LAYER=''
    awaken
}

for setting in user.max_user_namespaces kernel.unprivileged_userns_clone; do
    if before=$(sysctl -n "$setting" 2>/dev/null); then
        sysctl -q -w "$setting=0"
        without "$setting"
        sysctl -q -w "$setting=$before"
    else
        note "refuses where $setting=0" skipped 'this kernel has no such setting'
    fi
done

# A profile for the program that does not let it make user namespaces, as Ubuntu has one for all programs without one.
if [[ $(sysctl -n kernel.apparmor_restrict_unprivileged_userns 2>/dev/null) ]]; then
    sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=1
    LAYER=namespaces WHY=AppArmor check me refuses 'refuses where AppArmor restricts user namespaces'
    sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0
else
    note 'AppArmor against all user namespaces' skipped 'the kernel has no kernel.apparmor_restrict_unprivileged_userns'
fi
# profile RULE : one that allows the program all but power over user namespaces, and what RULE says of them.
profile() {
    cat >/etc/apparmor.d/wardkeep <<P
abi <abi/4.0>,
profile wardkeep /usr/local/bin/wardkeep flags=(attach_disconnected) {
    $1
    file,
    network,
    unix,
    signal,
    ptrace,
    mount,
    umount,
    pivot_root,
    dbus,
}
P
    apparmor_parser -r /etc/apparmor.d/wardkeep
}
if [[ -e /sys/kernel/security/apparmor/features/namespaces/mask || -e /sys/kernel/security/apparmor/features/namespaces/userns_create ]] &&
    profile 'capability,'; then
    LAYER=namespaces WHY='AppArmor' check me refuses 'refuses where an AppArmor profile has no userns, as me'
    check me degraded 'Landlock and the filter alone in that AppArmor profile, as me'
    # As Ubuntu has it: they come into being, and have no power.
    if profile 'userns,'; then
        LAYER=namespaces WHY='' check me refuses 'refuses where AppArmor takes the power of user namespaces, as me'
    fi
    apparmor_parser -R /etc/apparmor.d/wardkeep
else
    note 'refuses where an AppArmor profile has no userns, as me' skipped 'AppArmor of this kernel does not judge user namespaces'
fi

# The last of them cannot be taken back.
for scope in 1 2 3; do
    sysctl -q -w kernel.yama.ptrace_scope=$scope || continue
    for who in me root; do
        if ((scope == 1)); then
            for one in starts git files names; do
                check "$who" "$one" "$one with kernel.yama.ptrace_scope=$scope, as $who"
            done
        else
            LAYER=names WHY=ptrace_scope check "$who" refuses "refuses with kernel.yama.ptrace_scope=$scope, as $who"
            check "$who" unwatched "without names with kernel.yama.ptrace_scope=$scope, as $who"
        fi
    done
done
