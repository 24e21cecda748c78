#!/bin/bash
# Inside of a guest, once, as root, when it has started and what the disk `wk-in` holds was unpacked: runs the checks, and
# leaves the folder `results` on the disk `wk-out`, a tar archive as the other; also while they run, in case they do not
# come to their end. Then the guest switches itself off.
set -u
leave() { tar -c -f /dev/disk/by-id/virtio-wk-out results 2>/dev/null && sync; }
cd /srv/wardkeep || exit
mkdir -p results
(while sleep 20; do leave; done) &
looks=$!
timeout "$(cat limit)" bash guest.sh >results/log 2>&1 </dev/null
echo "$?" >results/status
kill "$looks"
wait "$looks" 2>/dev/null
leave
systemctl poweroff --force
