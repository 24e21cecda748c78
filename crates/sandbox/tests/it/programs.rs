//! Ordinary programs do their work inside.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::{Lab, is_root, skipped, users};

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

/// What a program prints, without the line's end.
fn told(program: &str, arguments: &[&str]) -> Option<String> {
    let told = Command::new(program).args(arguments).output().ok()?;
    told.status.success().then(|| String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

#[test]
fn cargo() {
    let Some(tools) = told("rustc", &["--print", "sysroot"]).map(PathBuf::from) else {
        return skipped("needs cargo");
    };
    let everybody = |folder: &Path| {
        folder.metadata().is_ok_and(|data| data.permissions().mode() & 0o005 == 0o005)
    };
    for uid in users() {
        if is_root() && uid != 0 && !tools.ancestors().all(everybody) {
            skipped("needs a Rust toolchain that every user may read");
            continue;
        }
        let lab = Lab::new(uid);
        std::fs::remove_dir_all(lab.at("ws/.git")).unwrap();
        let script = format!(
            "exec 2>&1; set -e; export PATH={tools}/bin:$PATH CARGO_HOME=/tmp/cargo
             cargo new -q --vcs none one; cd one; echo '#[test] fn two() {{ assert_eq!(1 + 1, 2) }}' >> src/main.rs
             cargo build -q --offline; ./target/debug/one; cargo test -q --offline; echo all-done",
            tools = tools.display(),
        );
        let read = [("WARDKEEP_TEST_READ", tools.to_str().unwrap())];
        let (code, out) = lab.run_with(&script, &read);
        assert!(code == 0 && out.ends_with("all-done\n"), "as {uid}: {code}\n{out}");
    }
}

#[test]
fn pip() {
    // The one that is found inside.
    let python = ["/usr/local/bin/python3", "/usr/bin/python3"];
    let python = python.into_iter().find(|one| Path::new(one).exists());
    if python.and_then(|python| told(python, &["-m", "pip", "--version"])).is_none() {
        return skipped("needs pip");
    }
    works(
        &["python3"],
        r#"python3 - <<'E'
import zipfile
with zipfile.ZipFile('one-1.0-py3-none-any.whl','w') as z:
    z.writestr('one.py','def two(): return 2\n')
    z.writestr('one-1.0.dist-info/METADATA','Metadata-Version: 2.1\nName: one\nVersion: 1.0\n')
    z.writestr('one-1.0.dist-info/WHEEL','Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    z.writestr('one-1.0.dist-info/RECORD','')
E
python3 -m pip install -q --no-index --no-input --disable-pip-version-check --target lib ./one-1.0-py3-none-any.whl
PYTHONPATH=lib python3 -c 'import one; assert one.two() == 2'"#,
    );
}

#[test]
fn an_editor_on_a_terminal() {
    works(
        &["vim", "python3"],
        r"echo before > text; python3 - <<'E'
import os,pty,select,time
pid,fd=pty.fork()
if pid==0:
    os.environ['TERM']='xterm'
    os.execvp('vim',['vim','-u','NONE','-n','text'])
seen=b''; end=time.monotonic()+60
while b'before' not in seen and time.monotonic()<end:
    if select.select([fd],[],[],0.1)[0]: seen+=os.read(fd,65536)
assert b'before' in seen,seen
os.write(fd,b'Ochanged\x1b:wq\r')
done=0; end=time.monotonic()+60
while not done and time.monotonic()<end:
    try:
        if select.select([fd],[],[],0.05)[0]: os.read(fd,65536)
    except OSError: time.sleep(0.02)
    done,status=os.waitpid(pid,os.WNOHANG)
assert done and status==0,(done,status)
E
grep -q changed text; grep -q before text",
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

/// As programs without `openat` do it.
#[test]
fn folders_by_their_descriptors() {
    works(
        &["python3"],
        r"mkdir -p d .github; python3 - <<'E'
import os
d=os.open('d',os.O_RDONLY|os.O_DIRECTORY)
for way in (f'/proc/self/fd/{d}',f'/dev/fd/{d}',f'/proc/thread-self/fd/{d}'):
    os.mkdir(way+'/sub'); open(way+'/sub/file','w').write('x'); os.rename(way+'/sub/file',way+'/file')
    os.symlink('file',way+'/link'); os.link(way+'/file',way+'/other'); os.stat('d/other')
    for name in ('sub','file','link','other'): (os.rmdir if name=='sub' else os.unlink)(way+'/'+name)
w=os.open('.',os.O_RDONLY|os.O_DIRECTORY); c=os.open('.github',os.O_RDONLY|os.O_DIRECTORY)
def refused(act,*words):
    try: act(*words)
    except OSError: return
    raise SystemExit(f'through: {words}')
for way in (f'/proc/self/fd/{w}/.mcp.json',f'/proc/self/fd/{d}/../.mcp.json',f'/proc/self/fd/{c}/workflows',
            f'/dev/fd/{c}/../.vscode/tasks.json',f'/proc/self/fd/{w}/./AGENTS.md',f'/proc/1/fd/{d}/x',f'/proc/1/root/{os.getcwd()}/.mcp.json'):
    refused(open,way,'w'); refused(os.mkdir,way); refused(os.symlink,'x',way)
os.symlink(f'/proc/self/fd/{c}','l')
for way in ('l/workflows','l/../.mcp.json'): refused(open,way,'w'); refused(os.mkdir,way)
E
test ! -e .mcp.json; test ! -e .github/workflows; test ! -e .vscode",
    );
}
