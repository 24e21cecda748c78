//! Ordinary programs do their work inside.

use std::path::Path;

use crate::lab::{Lab, skipped, users};

fn works(needs: &[&str], script: &str) {
    for need in needs {
        let folders = ["/usr/bin", "/usr/local/bin", "/bin"];
        if !folders.iter().any(|folder| Path::new(folder).join(need).exists()) {
            return skipped(&format!("needs {need}"));
        }
    }
    for uid in users() {
        let lab = Lab::new(uid);
        std::fs::remove_dir_all(lab.at("ws/.git")).unwrap();
        let (code, out) = lab.run(&format!("exec 2>&1\nset -e\n{script}\necho all-done"));
        assert!(code == 0 && out.ends_with("all-done\n"), "as {uid}: {code}\n{out}");
    }
}

#[test]
fn a_shell() {
    works(
        &[],
        "echo a | grep a; cat <(echo sub); x=$(mktemp); echo y > $x; test -s $x; \
         ls / /etc /tmp ~ > /dev/null; echo z > /dev/stderr; test -c /dev/null; sleep 0.01; \
         mkdir -p d/e; mv d/e d/f; ln -s f d/l; rm -r d; printf '%s\\n' $((1+1)); id > /dev/null; \
         echo quiet > /dev/stdout",
    );
}

#[test]
fn git() {
    works(
        &["git"],
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
         git init -q r; cd r; echo x > x; git add x; git commit -qm one
         git branch other; git checkout -q other; echo y > y; git add y; git commit -qm two
         git worktree add -q ../tree HEAD~1; git -C ../tree status --short
         git clone -q . ../copy; git -C ../copy log --oneline | grep -c . ; git gc -q; git fsck",
    );
}

#[test]
fn python_with_a_server() {
    works(
        &["python3"],
        "python3 - <<'E'
import http.server,threading,urllib.request,tempfile,os,subprocess,multiprocessing
s=http.server.HTTPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever,daemon=True).start()
print(len(urllib.request.build_opener(urllib.request.ProxyHandler({})).open('http://127.0.0.1:%d/'%s.server_port).read())>0)
tempfile.NamedTemporaryFile(); subprocess.check_call(['true']); os.cpu_count()
with multiprocessing.Pool(2) as p: assert p.map(abs,[-1,-2])==[1,2]
E",
    );
}

#[test]
fn node_and_npm() {
    works(
        &["node", "npm"],
        "node -e 'const s=require(\"http\").createServer((q,r)=>r.end(\"ok\")).listen(0,\"127.0.0.1\",()=>\
         require(\"http\").get({port:s.address().port},r=>{r.on(\"data\",d=>console.log(\"\"+d));\
         r.on(\"end\",()=>process.exit(0))}))'
         mkdir -p p app; echo '{\"name\":\"p\",\"version\":\"1.0.0\"}' > p/package.json; (cd p; npm pack)
         cd app; echo '{\"name\":\"app\",\"version\":\"1.0.0\"}' > package.json
         npm install --offline --no-audit --no-fund ../p/p-1.0.0.tgz; test -f node_modules/p/package.json",
    );
}

#[test]
fn a_compiler() {
    works(
        &["gcc", "make"],
        "printf 'int main(){return 0;}' > m.c; printf 'm: m.c\\n\\tgcc -o m m.c\\n' > Makefile; make -s; ./m",
    );
}

#[test]
fn tmux() {
    works(
        &["tmux"],
        "export TERM=xterm SHELL=/bin/bash; tmux new-session -d -s w 'echo in-tmux > t; sleep 5'
         for i in $(seq 100); do test -s t && break; sleep 0.05; done; cat t; tmux kill-server",
    );
}

#[test]
fn what_was_just_written_can_be_run() {
    works(&[], "for i in $(seq 300); do cp /bin/true x$i; ./x$i; done");
}
