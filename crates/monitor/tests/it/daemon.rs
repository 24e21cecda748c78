//! The socket: who may ask what, and those who try to break it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardkeep_monitor::daemon::{
    About, Doors, DoorsError, Handler, Hello, Keeper, Limits, Nothing, Office, Options, Peer,
    PeerPolicy, Request, Response, Status, Stop, Tally, run,
};
use wardkeep_monitor::index::Index;
use wardkeep_monitor::wire::{
    Client, Code, Door, Frame, MAX_FRAME_BYTES, PROTOCOL, WireError, read_frame,
};

use crate::approvals::Lab;
use crate::shared::skip;

const PATIENCE: Duration = Duration::from_secs(20);

fn owner() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Echoes, and does what a bad handler does.
struct Echo;

impl Handler for Echo {
    fn handle(&self, peer: &Peer, request: Request) -> Response {
        match request.op.as_str() {
            "ping" => Response::of(&json!({ "uid": peer.uid })),
            "hook.echo" => Response::Answer(request.body),
            "hook.panic" => panic!("a handler that panics"),
            "hook.huge" => Response::of(&"x".repeat(MAX_FRAME_BYTES)),
            _ => Response::unknown(&request),
        }
    }
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn socket(&self) -> PathBuf {
        Door::Monitor.path(self.path())
    }

    fn open(&self) -> Result<Doors, DoorsError> {
        Doors::open(self.path(), None, None)
    }

    fn client(&self) -> Client {
        Client::connect(self.path(), PATIENCE).unwrap()
    }

    /// Runs `work` beside a daemon.
    fn with<T>(
        &self,
        options: &Options,
        handler: &dyn Handler,
        work: impl FnOnce(&Tally) -> T,
    ) -> T {
        let doors = self.open().unwrap();
        let (stop, tally) = (Stop::new().unwrap(), Tally::default());
        std::thread::scope(|scope| {
            let daemon = scope.spawn(|| run(&doors, handler, &mut || {}, options, &tally, &stop));
            let _guard = SetOnDrop(&stop);
            let done = work(&tally);
            stop.set();
            daemon.join().unwrap().unwrap();
            done
        })
    }

    fn serve<T>(&self, work: impl FnOnce(&Tally) -> T) -> T {
        self.with(&options(), &Echo, work)
    }
}

/// A test that fails must not wait for its daemon.
struct SetOnDrop<'a>(&'a Stop);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

fn options() -> Options {
    let mut options = Options::new(owner());
    options.limits.frame = Duration::from_secs(4);
    options
}

fn code(result: Result<wardkeep_monitor::wire::Answer, WireError>) -> Code {
    match result {
        Err(WireError::Refused(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    }
}

/// Sends bytes and gives what comes back until the connection is closed.
fn send(path: &Path, bytes: &[u8]) -> Vec<Frame> {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut frames = Vec::new();
    while let Ok(bytes) = read_frame(&mut stream) {
        frames.push(Frame::parse(&bytes).unwrap());
    }
    frames
}

fn refusal(frames: &[Frame]) -> Code {
    let [frame] = frames else { panic!("{frames:?}") };
    assert_eq!(frame.op, "refusal");
    let told: wardkeep_monitor::wire::Refusal = frame.read().unwrap();
    assert_eq!(told.protocol, PROTOCOL);
    told.code
}

#[test]
fn questions_are_answered_in_turn() {
    let place = Place::new();
    place.serve(|tally| {
        let mut client = place.client();
        for number in 0..100 {
            let body = json!({ "n": number, "text": "\u{1b}\u{0}é" });
            let answer = client.call("hook.echo", &body).unwrap();
            assert_eq!(answer.read::<Value>().unwrap(), body);
        }
        let large = "x".repeat(MAX_FRAME_BYTES - 300);
        let answer = client.call("hook.echo", &large).unwrap();
        assert_eq!(answer.read::<String>().unwrap(), large);
        assert_eq!(tally.answered(), 101);
        let error = client.call("hook.echo", &"x".repeat(MAX_FRAME_BYTES)).unwrap_err();
        assert!(matches!(error, WireError::TooLong(_)), "{error}");
        client.call("ping", &()).unwrap();
    });
    assert!(!place.socket().exists(), "the socket goes with the daemon");
}

#[test]
fn what_is_not_known_is_refused_with_what_is_spoken() {
    let place = Place::new();
    place.serve(|_| {
        let mut client = place.client();
        assert_eq!(code(client.call("nothing", &())), Code::UnknownOp);
        client.call("ping", &()).unwrap();
        let later = r#"{"v":7,"id":5,"op":"ping","body":null,"extra":true}"#;
        let mut bytes = u32::try_from(later.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend_from_slice(later.as_bytes());
        let frames = send(&place.socket(), &bytes);
        assert_eq!((refusal(&frames), frames[0].id), (Code::Version, 5));
    });
}

#[test]
fn a_handler_that_fails_is_a_denial_and_not_the_end() {
    let place = Place::new();
    place.serve(|_| {
        let mut client = place.client();
        assert_eq!(code(client.call("hook.panic", &())), Code::Failed);
        assert_eq!(code(client.call("hook.huge", &())), Code::TooLong);
        client.call("ping", &()).unwrap();
        place.client().call("ping", &()).unwrap();
    });
}

#[test]
fn what_is_no_frame_closes_the_connection_and_nothing_else() {
    let place = Place::new();
    place.serve(|_| {
        let path = place.socket();
        let framed = |text: &[u8]| {
            let mut bytes = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
            bytes.extend_from_slice(text);
            bytes
        };
        let started = Instant::now();
        assert_eq!(refusal(&send(&path, &u32::MAX.to_le_bytes())), Code::TooLong);
        let over = u32::try_from(MAX_FRAME_BYTES + 1).unwrap();
        assert_eq!(refusal(&send(&path, &over.to_le_bytes())), Code::TooLong);
        assert_eq!(refusal(&send(&path, &[0; 4])), Code::Malformed);
        for text in
            [&b"x"[..], b"{}", b"\xff\xfe", b"[[[[[[", br#"{"v":1,"id":1,"op":"A","body":1}"#]
        {
            assert_eq!(refusal(&send(&path, &framed(text))), Code::Malformed);
        }
        // Cut off: nobody is there to answer.
        assert!(send(&path, &[1, 0]).is_empty());
        assert!(send(&path, &framed(b"{}")[..5]).is_empty());
        assert!(send(&path, b"").is_empty());
        assert!(send(&path, b"GET / HTTP/1.1\r\n\r\n").len() <= 1);
        assert!(started.elapsed() < PATIENCE);
        place.client().call("ping", &()).unwrap();
    });
}

#[test]
fn announced_bytes_that_do_not_come_hold_nothing_for_long() {
    let place = Place::new();
    place.serve(|tally| {
        // As many as the door lets in, each announcing the most that there is.
        let announced = u32::try_from(MAX_FRAME_BYTES).unwrap().to_le_bytes();
        let before = resident();
        let mut slow: Vec<UnixStream> = (0..60)
            .map(|_| {
                let mut stream = UnixStream::connect(place.socket()).unwrap();
                stream.write_all(&announced).unwrap();
                stream
            })
            .collect();
        std::thread::sleep(Duration::from_millis(150));
        let grown = resident().saturating_sub(before);
        // Other tests of this process allocate, too; what was announced are 480 MiB.
        assert!(grown < 240 << 20, "{grown} bytes for nothing but lengths");
        // More than may be held at a time are turned away at once; the others when their time is up.
        let mut codes = Vec::new();
        for stream in &mut slow {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let frame = Frame::parse(&read_frame(stream).unwrap()).unwrap();
            codes.push(refusal(&[frame]));
        }
        assert!(codes.iter().all(|code| matches!(code, Code::Busy | Code::TooSlow)), "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == Code::TooSlow).count(), 8, "{codes:?}");
        while tally.open() > 0 {
            std::thread::yield_now();
        }
        place.client().call("hook.echo", &"x".repeat(1 << 20)).unwrap();
    });
}

/// Bytes of memory that this process uses.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_byte_now_and_then_is_too_slow() {
    let place = Place::new();
    place.serve(|_| {
        let mut stream = UnixStream::connect(place.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let started = Instant::now();
        stream.write_all(&10_000u32.to_le_bytes()).unwrap();
        while started.elapsed() < PATIENCE && stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(started.elapsed() < Duration::from_secs(15));
        let frame = Frame::parse(&read_frame(&mut stream).unwrap()).unwrap();
        assert_eq!(refusal(&[frame]), Code::TooSlow);
    });
}

#[test]
fn who_does_not_read_the_answer_holds_nobody_up() {
    let place = Place::new();
    place.serve(|tally| {
        let frame = Frame::new(1, "hook.echo", &"x".repeat(4 << 20)).unwrap();
        let mut stream = UnixStream::connect(place.socket()).unwrap();
        stream.write_all(&frame.to_bytes().unwrap()).unwrap();
        place.client().call("ping", &()).unwrap();
        let started = Instant::now();
        while tally.open() > 0 {
            assert!(started.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn a_thousand_connections_are_borne() {
    let place = Place::new();
    let mut options = options();
    options.limits.crowded = Duration::from_millis(100);
    place.with(&options, &Echo, |tally| {
        // They say nothing and stay.
        let idle: Vec<UnixStream> =
            (0..1000).filter_map(|_| UnixStream::connect(place.socket()).ok()).collect();
        let most = AtomicUsize::new(0);
        let started = Instant::now();
        // Those who ask come through, if not at once.
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut answered = 0;
                    while answered < 25 {
                        assert!(started.elapsed() < PATIENCE);
                        let Ok(mut client) = Client::connect(place.path(), PATIENCE) else {
                            continue;
                        };
                        most.fetch_max(tally.open(), Ordering::SeqCst);
                        match client.call("ping", &()) {
                            Ok(_) => answered += 1,
                            Err(WireError::Refused(refusal)) => {
                                assert_eq!(refusal.code, Code::Busy);
                                std::thread::sleep(Duration::from_millis(5));
                            }
                            // Too late to ask: sent away like those who say nothing.
                            Err(WireError::Closed | WireError::Io { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= Limits::default().connections, "{most:?}");
        assert!(idle.len() > 100);
    });
}

#[test]
fn the_door_for_hooks_is_not_the_owners() {
    let place = Place::new();
    place.serve(|_| {
        let mut hook = Client::connect_to(place.path(), Door::Hooks, PATIENCE).unwrap();
        hook.call("ping", &()).unwrap();
        hook.call("hook.echo", &1).unwrap();
        for op in ["approvals.approve", "approvals.list", "status", "stop", "identity.apply"] {
            assert_eq!(code(hook.call(op, &())), Code::Forbidden, "{op}");
        }
    });
}

/// Runs `work` in a thread with the rights of another user; `None` where that is not possible.
fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> Option<T> {
    use rustix::thread::set_thread_uid;
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            set_thread_uid(rustix::process::Uid::from_raw(uid)).unwrap();
            work()
        });
        Some(thread.join().unwrap())
    })
}

/// Opens the place to everybody, as a careless hand might.
fn expose(place: &Place) {
    for (path, mode) in [
        (place.path().to_owned(), 0o755),
        (place.path().join("run"), 0o755),
        (place.socket(), 0o666),
        (Door::Hooks.path(place.path()), 0o666),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn another_user_is_refused_and_the_agents_own_approves_nothing() {
    let place = Place::new();
    let mut options = options();
    options.peers = PeerPolicy::new(owner()).with_agent(Some(12_345));
    let ran = place.with(&options, &Echo, |_| {
        expose(&place);
        for door in Door::ALL {
            let state = place.path();
            let stranger = || Client::connect_to(state, door, PATIENCE).unwrap().call("ping", &());
            assert_eq!(code(as_user(65_534, stranger)?), Code::Forbidden);
            as_user(12_345, || {
                let mut agent = Client::connect_to(state, door, PATIENCE).unwrap();
                let hello = agent.call("ping", &()).unwrap().read::<Value>().unwrap();
                assert_eq!(hello["uid"], 12_345);
                agent.call("hook.echo", &1).unwrap();
                for op in ["approvals.approve", "approvals.deny", "approvals.list", "stop"] {
                    assert_eq!(code(agent.call(op, &())), Code::Forbidden, "{op}");
                }
            })?;
        }
        Some(())
    });
    if ran.is_none() {
        skip("root", "another_user_is_refused_and_the_agents_own_approves_nothing");
    }
}

#[test]
fn a_socket_of_another_user_is_not_asked() {
    let place = Place::new();
    drop(place.open().unwrap());
    let run = place.path().join("run");
    let served = as_user(65_534, || {
        // Someone who can write the folder puts up a socket that says yes to everything.
        let other = tempfile::tempdir().unwrap();
        fs::set_permissions(other.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = other.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        (other, listener, path)
    });
    let Some((_folder, _listener, path)) = served else {
        skip("root", "a_socket_of_another_user_is_not_asked");
        return;
    };
    symlink(path, place.socket()).unwrap();
    let error = Client::connect(place.path(), PATIENCE).unwrap_err();
    assert!(matches!(error, WireError::Unsafe { .. }), "{error}");
    fs::remove_file(place.socket()).unwrap();
    rustix::fs::chown(&run, Some(rustix::process::Uid::from_raw(65_534)), None).unwrap();
    let error = Client::connect(place.path(), PATIENCE).unwrap_err();
    assert!(matches!(error, WireError::Unsafe { .. }), "{error}");
    assert!(matches!(place.open(), Err(DoorsError::Unsafe { .. })));
}

#[test]
fn sockets_are_private() {
    let place = Place::new();
    let _doors = place.open().unwrap();
    let mode = |path: PathBuf| fs::symlink_metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(place.path().join("run")), 0o700);
    for door in Door::ALL {
        assert_eq!(mode(door.path(place.path())), 0o600);
    }
    let shared = Place::new();
    let group = rustix::process::getgid().as_raw();
    let _doors = Doors::open(shared.path(), Some(group), None).unwrap();
    assert_eq!(mode(shared.path().join("run")), 0o710);
    assert_eq!(mode(shared.socket()), 0o660);
    assert_eq!(fs::metadata(shared.socket()).unwrap().gid(), group);
}

#[test]
fn one_daemon_at_a_time_and_a_dead_ones_socket_is_replaced() {
    let place = Place::new();
    let first = place.open().unwrap();
    let error = place.open().unwrap_err();
    let own = i32::try_from(std::process::id()).unwrap();
    assert!(matches!(error, DoorsError::Running { pid: Some(pid), .. } if pid == own), "{error}");
    drop(first);
    // What a daemon leaves that was killed: a socket that nobody listens on.
    drop(UnixListener::bind(place.socket()).unwrap());
    assert!(place.socket().exists());
    assert!(matches!(Client::connect(place.path(), PATIENCE), Err(WireError::Absent(_))));
    let second = place.open().unwrap();
    // Even without the lock's file a daemon that lives is not replaced.
    fs::remove_file(place.path().join("run/daemon.lock")).unwrap();
    assert!(matches!(place.open(), Err(DoorsError::Running { .. })));
    drop(second);
    place.open().unwrap();
}

#[test]
fn what_is_no_socket_of_ours_stays_where_it_is() {
    for door in Door::ALL {
        let place = Place::new();
        drop(place.open().unwrap());
        let path = door.path(place.path());
        fs::write(&path, "mine").unwrap();
        assert!(matches!(place.open(), Err(DoorsError::Unsafe { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
        let target = place.path().join("target");
        drop(UnixListener::bind(&target).unwrap());
        symlink(&target, &path).unwrap();
        assert!(matches!(place.open(), Err(DoorsError::Unsafe { .. })));
        assert!(target.exists());
    }
    let place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), place.path().join("run")).unwrap();
    assert!(matches!(place.open(), Err(DoorsError::Unsafe { .. })));
    let error = Client::connect(place.path(), PATIENCE).unwrap_err();
    assert!(matches!(error, WireError::Unsafe { .. }), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    let place = Place::new();
    drop(place.open().unwrap());
    fs::remove_file(place.path().join("run/daemon.lock")).unwrap();
    symlink("/dev/null", place.path().join("run/daemon.lock")).unwrap();
    assert!(matches!(place.open(), Err(DoorsError::Unsafe { .. })));
}

#[test]
fn a_long_path_is_no_hindrance() {
    let place = Place::new();
    let deep = place.path().join("x".repeat(100)).join("y".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    let doors = Doors::open(&deep, None, None).unwrap();
    let (stop, tally) = (Stop::new().unwrap(), Tally::default());
    std::thread::scope(|scope| {
        scope.spawn(|| run(&doors, &Echo, &mut || {}, &options(), &tally, &stop));
        let _guard = SetOnDrop(&stop);
        Client::connect(&deep, PATIENCE).unwrap().call("ping", &()).unwrap();
    });
}

#[test]
fn a_daemon_that_nobody_asks_ends() {
    let place = Place::new();
    let mut options = options();
    options.idle_exit = Some(Duration::from_secs(2));
    let doors = place.open().unwrap();
    let (stop, tally) = (Stop::new().unwrap(), Tally::default());
    std::thread::scope(|scope| {
        let daemon = scope.spawn(|| run(&doors, &Echo, &mut || {}, &options, &tally, &stop));
        let _guard = SetOnDrop(&stop);
        // While someone is connected it stays, even if they say nothing.
        let mut client = place.client();
        std::thread::sleep(Duration::from_secs(3));
        client.call("ping", &()).unwrap();
        assert!(!daemon.is_finished());
        drop(client);
        daemon.join().unwrap().unwrap();
    });
    assert!(!place.socket().exists());
}

#[test]
fn who_is_connected_when_it_ends_is_answered() {
    struct Slow<'a>(&'a AtomicBool);
    impl Handler for Slow<'_> {
        fn handle(&self, _: &Peer, request: Request) -> Response {
            self.0.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(200));
            Response::Answer(request.body)
        }
    }
    let place = Place::new();
    let doors = place.open().unwrap();
    let (stop, tally) = (Stop::new().unwrap(), Tally::default());
    let asked = AtomicBool::new(false);
    let slow = Slow(&asked);
    std::thread::scope(|scope| {
        let daemon = scope.spawn(|| run(&doors, &slow, &mut || {}, &options(), &tally, &stop));
        let _guard = SetOnDrop(&stop);
        let mut client = place.client();
        let asker = scope.spawn(move || client.call("hook.x", &1));
        while !asked.load(Ordering::SeqCst) && !asker.is_finished() {
            std::thread::yield_now();
        }
        stop.set();
        asker.join().unwrap().unwrap();
        daemon.join().unwrap().unwrap();
    });
}

#[test]
fn those_who_keep_coming_do_not_put_the_end_off() {
    let place = Place::new();
    let doors = place.open().unwrap();
    let (stop, tally) = (Stop::new().unwrap(), Tally::default());
    let over = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let daemon = scope.spawn(|| {
            let ended = run(&doors, &Echo, &mut || {}, &options(), &tally, &stop);
            // Whoever was never let in is not to wait for an answer.
            drop(doors);
            ended
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while over.load(Ordering::SeqCst) == 0 {
                    // One connection after the other, and one that asks without end.
                    let Ok(mut client) = Client::connect(place.path(), PATIENCE) else { continue };
                    while client.call("ping", &()).is_ok() {}
                }
            });
        }
        while tally.answered() < 100 {
            std::thread::yield_now();
        }
        let started = Instant::now();
        stop.set();
        while !daemon.is_finished() && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        over.store(1, Ordering::SeqCst);
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        daemon.join().unwrap().unwrap();
    });
}

fn office<'a>(
    lab: &'a Lab,
    keeper: &'a Keeper<'a>,
    tally: &'a Tally,
    stop: &'a Stop,
) -> Office<'a> {
    Office {
        store: &lab.store,
        approvals: &lab.approvals,
        keeper,
        tally,
        about: About { started: lab.store.now(), idle_exit: None },
        stop,
        next: &Nothing,
    }
}

#[test]
fn the_owner_answers_requests_over_the_socket() {
    let lab = Lab::new();
    let state = lab.state();
    let (stop, tally) = (Stop::new().unwrap(), Tally::default());
    let keeper = Keeper::new(&lab.store, &lab.approvals, owner());
    let office = office(&lab, &keeper, &tally, &stop);
    let doors = Doors::open(&state, None, None).unwrap();
    std::thread::scope(|scope| {
        let daemon =
            scope.spawn(|| run(&doors, &office, &mut || keeper.tick(), &options(), &tally, &stop));
        let _guard = SetOnDrop(&stop);
        let mut client = Client::connect(&state, PATIENCE).unwrap();
        let hello: Hello = client.call("version", &()).unwrap().read().unwrap();
        assert_eq!(hello.protocol, PROTOCOL);
        let request = lab.ask("/w/\u{1b}a");
        let status: Status = client.call("status", &()).unwrap().read().unwrap();
        assert_eq!((status.pending, status.problems), (1, vec![]));
        let list: Value = client.call("approvals.list", &()).unwrap().read().unwrap();
        assert_eq!(list["pending"][0]["request"], request.as_str());
        let which = json!({ "request": request });
        let shown: Value = client.call("approvals.show", &which).unwrap().read().unwrap();
        assert_eq!(
            (&shown["subject"], &shown["status"]),
            (&json!("/w/\u{1b}a"), &json!("pending"))
        );
        // Only what is named in full is approved, and nothing is guessed.
        for body in [
            json!({ "request": &request[..10], "scope": "once" }),
            json!({ "request": request }),
            json!({ "request": request, "scope": "ever" }),
            json!({ "request": request, "scope": "once", "extra": 1 }),
            json!(null),
        ] {
            assert_eq!(code(client.call("approvals.approve", &body)), Code::Malformed, "{body}");
        }
        let mut hook = Client::connect_to(&state, Door::Hooks, PATIENCE).unwrap();
        let body = json!({ "request": request, "scope": "once", "seconds": 60 });
        assert_eq!(code(hook.call("approvals.approve", &body)), Code::Forbidden);
        let granted: Value = client.call("approvals.approve", &body).unwrap().read().unwrap();
        assert_eq!(granted["scope"], "once");
        assert_eq!(code(client.call("approvals.approve", &body)), Code::Refused);
        let shown: Value = client.call("approvals.show", &which).unwrap().read().unwrap();
        assert_eq!(shown["status"], "approved");
        let denied: Value = client.call("approvals.deny", &which).unwrap().read().unwrap();
        assert_eq!(denied["withdrawn"], true);
        client.call("stop", &()).unwrap();
        daemon.join().unwrap().unwrap();
    });
}

#[test]
fn after_many_questions_nobody_waits_for_the_index() {
    let lab = Lab::new();
    let state = lab.state();
    let (stop, tally) = (Stop::new().unwrap(), Tally::default());
    let keeper = Keeper::new(&lab.store, &lab.approvals, owner());
    let office = office(&lab, &keeper, &tally, &stop);
    let doors = Doors::open(&state, None, None).unwrap();
    let record = lab.ask("/w/a").parse().unwrap();
    // As it is, without being brought up to date.
    let is_indexed = || {
        let index = Index::open_existing(&state);
        index.is_some_and(|index| index.location(record).is_ok_and(|place| place.is_some()))
    };
    let ask = |door: Door, times: usize| {
        let mut client = Client::connect_to(&state, door, PATIENCE).unwrap();
        (0..times).for_each(|_| drop(client.call("ping", &()).unwrap()));
    };
    std::thread::scope(|scope| {
        let daemon = scope.spawn(|| run(&doors, &office, &mut || {}, &options(), &tally, &stop));
        let _guard = SetOnDrop(&stop);
        let until = Instant::now() + PATIENCE;
        // Few questions are not worth it, and whoever is confined cannot have it done.
        ask(Door::Monitor, 63);
        ask(Door::Hooks, 200);
        while tally.open() > 0 && Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!is_indexed());
        ask(Door::Monitor, 64);
        while !is_indexed() {
            assert!(Instant::now() < until, "the index is not brought up to date");
            std::thread::yield_now();
        }
        stop.set();
        daemon.join().unwrap().unwrap();
    });
}

#[test]
fn a_server_that_lies_is_noticed() {
    let place = Place::new();
    drop(place.open().unwrap());
    let listener = UnixListener::bind(place.socket()).unwrap();
    let answers: Vec<Vec<u8>> = vec![
        Frame::answer(99, serde_json::value::to_raw_value(&1).unwrap()).to_bytes().unwrap(),
        b"\x02\0\0\0{}".to_vec(),
        u32::MAX.to_le_bytes().to_vec(),
        vec![5, 0, 0],
        Vec::new(),
        br#"2   {"v":3,"id":1,"op":"answer","body":{},"more":true}"#.to_vec(),
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for answer in &answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = [0; 8];
                stream.read_exact(&mut question).unwrap();
                let mut answer = answer.clone();
                if answer.first() == Some(&b'2') {
                    let length = u32::try_from(answer.len() - 4).unwrap();
                    answer[..4].copy_from_slice(&length.to_le_bytes());
                }
                stream.write_all(&answer).unwrap();
            }
            // One that never answers, as long as somebody waits for it.
            let (mut kept, _) = listener.accept().unwrap();
            kept.read_to_end(&mut Vec::new()).unwrap();
        });
        for number in 0..answers.len() {
            let error = place.client().call("ping", &()).unwrap_err();
            let expected = match number {
                3 | 4 => matches!(error, WireError::Closed),
                5 => matches!(error, WireError::Version { .. }),
                _ => matches!(error, WireError::Malformed(_)),
            };
            assert!(expected, "{number}: {error}");
        }
        let started = Instant::now();
        let mut client = Client::connect(place.path(), Duration::from_millis(100)).unwrap();
        assert!(matches!(client.call("ping", &()), Err(WireError::Deadline(_))));
        assert!(started.elapsed() < Duration::from_secs(15));
    });
}

#[test]
fn a_full_queue_does_not_hold_a_client_beyond_its_deadline() {
    let place = Place::new();
    drop(place.open().unwrap());
    let listener = UnixListener::bind(place.socket()).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _first = Client::connect(place.path(), PATIENCE).unwrap();
    let mut waiting = Vec::new();
    let started = Instant::now();
    let error = loop {
        match Client::connect(place.path(), Duration::from_millis(100)) {
            Ok(client) => waiting.push(client),
            Err(error) => break error,
        }
        assert!(waiting.len() < 10);
    };
    assert!(matches!(error, WireError::Deadline(_)), "{error}");
    assert!(started.elapsed() < Duration::from_secs(15));
}
