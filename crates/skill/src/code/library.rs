//! Well-known functions by their names: what they read, run and send.

use super::super::facts::Holds;
use super::calls::{Args, variable};
use super::ir::{Call, Expr};
use super::run::Run;
use super::value::{Data, Value};

impl Run<'_> {
    /// What is asked of the machine.
    pub(super) fn surroundings(&mut self, path: &str, last: &str, args: &Args) -> Option<Value> {
        Some(match last {
            "getenv" => variable(&args.get(0).shown()),
            "home" | "homedir" => Value::text("~", Holds::NOTHING),
            "gethostname" | "getuser" | "hostname" | "userInfo" | "getlogin" | "uname"
            | "networkInterfaces" => Value::unknown(Holds::MACHINE),
            "input" | "raw_input" | "parse_args" if path == last || last == "parse_args" => {
                Value::unknown(Holds::INPUT)
            }
            "paste" if path.contains("clip") => Value::unknown(Holds::WATCHED),
            "grab" | "screenshot" if path.contains("mage") || path.contains("pyautogui") => {
                Value::unknown(Holds::WATCHED)
            }
            "get_password" | "get_credential" if path.starts_with("keyring") => {
                Value::unknown(Holds::TOKEN)
            }
            _ if path.starts_with("browser_cookie") || path.starts_with("browsercookie") => {
                Value::unknown(Holds::CREDENTIAL)
            }
            "walk" | "listdir" | "scandir" | "glob" | "rglob" | "iglob" | "readdirSync"
            | "readdir" => {
                Value::unknown(args.get(0).holds.without(Holds::INPUT) | Holds::SEARCHED)
            }
            _ => return None,
        })
    }

    /// Functions that run something; whether it is one.
    pub(super) fn runs(
        &mut self,
        path: &str,
        module: &str,
        last: &str,
        args: &Args,
        call: &Call,
    ) -> bool {
        let first = args.get(0);
        let shells = match module {
            "os" => {
                matches!(last, "system" | "popen")
                    || last.starts_with("exec")
                    || last.starts_with("spawn")
            }
            "subprocess" | "sp" => matches!(
                last,
                "run"
                    | "call"
                    | "Popen"
                    | "check_call"
                    | "check_output"
                    | "getoutput"
                    | "getstatusoutput"
            ),
            "child_process" => true,
            "asyncio" => last.starts_with("create_subprocess"),
            "pty" | "pexpect" => last == "spawn",
            "commands" => last == "getoutput",
            _ => matches!(
                path,
                "execa"
                    | "shelljs.exec"
                    | "Bun.spawn"
                    | "Deno.Command"
                    | "Deno.run"
                    | "execSync"
                    | "spawnSync"
                    | "execFileSync"
            ),
        };
        let file = self.file;
        if shells {
            if module == "pty" {
                self.marks[file].hands_over = true;
                self.marks[file].shell = true;
            }
            let named =
                args.named.iter().find(|(name, _)| name == "args").map(|(_, value)| value.clone());
            let rest = if last.starts_with("create_subprocess") {
                Value::list(args.values.iter().skip(1).cloned().collect())
            } else {
                args.get(1)
            };
            self.command(&named.unwrap_or(first), &rest, call);
            return true;
        }
        match path {
            "eval"
            | "exec"
            | "execfile"
            | "Function"
            | "AsyncFunction"
            | "vm.runInThisContext"
            | "vm.runInNewContext"
            | "vm.runInContext"
            | "vm.Script"
            | "constructor" => {
                let code = if path.ends_with("Function") {
                    args.values.last().cloned().unwrap_or_default()
                } else {
                    first
                };
                self.code(&code, call);
                true
            }
            "setTimeout" | "setInterval" if matches!(first.data, Data::Text(_)) => {
                self.code(&first, call);
                true
            }
            "os.dup2" => {
                self.marks[file].hands_over = true;
                true
            }
            "net.connect"
            | "net.createConnection"
            | "socket.create_connection"
            | "net.Socket"
            | "tls.connect" => {
                self.marks[file].connects = true;
                false
            }
            _ => false,
        }
    }

    /// Functions on files.
    pub(super) fn file_call(
        &mut self,
        path: &str,
        module: &str,
        last: &str,
        args: &Args,
        call: &Call,
    ) -> Option<Value> {
        let first = args.get(0);
        match (module, last) {
            (_, "open" | "fdopen")
                if matches!(
                    path,
                    "open"
                        | "io.open"
                        | "codecs.open"
                        | "os.open"
                        | "fs.open"
                        | "fs.openSync"
                        | "aiofiles.open"
                ) =>
            {
                let mode = args
                    .named
                    .iter()
                    .find(|(name, _)| name == "mode")
                    .map_or_else(|| args.get(1), |(_, value)| value.clone());
                let writes = mode
                    .as_text()
                    .is_some_and(|mode| mode.len() <= 4 && mode.contains(['w', 'a', 'x', '+']));
                let name = first.as_text();
                let holds = if writes { Holds::NOTHING } else { self.reading(&first, call) };
                Some(match name {
                    Some(name) => Value::new(Data::File(name), holds),
                    None => Value::unknown(holds),
                })
            }
            ("fs" | "fs/promises" | "fsp" | "fse" | "Deno" | "Bun", _) => match last {
                "readFile" | "readFileSync" | "createReadStream" | "readTextFile"
                | "readTextFileSync" | "file" | "readJson" | "readJsonSync" => {
                    Some(Value::unknown(self.reading(&first, call)))
                }
                "writeFile" | "writeFileSync" | "appendFile" | "appendFileSync"
                | "writeTextFile" | "outputFile" | "createWriteStream" => {
                    self.writing(&first.shown(), args.get(1).whole(), call);
                    Some(Value::default())
                }
                "copyFile" | "copyFileSync" | "cp" | "cpSync" => {
                    let holds = self.reading(&first, call);
                    self.writing(&args.get(1).shown(), holds, call);
                    Some(Value::default())
                }
                _ => None,
            },
            ("shutil", "copy" | "copy2" | "copyfile" | "copytree" | "move") => {
                let holds = self.reading(&first, call);
                self.writing(&args.get(1).shown(), holds, call);
                Some(Value::default())
            }
            ("sqlite3", "connect") => {
                Some(Value::unknown(self.reading(&first, call).without(Holds::FILE)))
            }
            ("json" | "yaml" | "toml" | "pickle", "dump") => {
                if let Data::File(path) = &args.get(1).data {
                    let path = path.to_string();
                    self.writing(&path, first.whole(), call);
                }
                Some(Value::default())
            }
            _ => None,
        }
    }

    /// Methods on a file or on a path.
    pub(super) fn file_method(
        &mut self,
        path: &str,
        name: &str,
        args: &Args,
        call: &Call,
    ) -> Option<Value> {
        let value = Value::text(path, Holds::NOTHING);
        match name {
            "read" | "readlines" | "readline" | "read_text" | "read_bytes" | "text" => {
                Some(Value::unknown(self.reading(&value, call)))
            }
            "write" | "writelines" | "write_text" | "write_bytes" => {
                self.writing(path, args.holds(), call);
                Some(Value::default())
            }
            "open" => {
                let writes =
                    args.get(0).as_text().is_some_and(|mode| mode.contains(['w', 'a', 'x', '+']));
                let holds = if writes { Holds::NOTHING } else { self.reading(&value, call) };
                Some(Value::new(Data::File(path.into()), holds))
            }
            "exists" | "is_file" | "is_dir" | "mkdir" | "unlink" | "stat" | "touch" => {
                Some(Value::default())
            }
            "glob" | "rglob" | "iterdir" => Some(Value::unknown(Holds::SEARCHED)),
            _ => None,
        }
    }

    /// Functions that talk to other machines.
    pub(super) fn network(
        &mut self,
        path: &str,
        module: &str,
        last: &str,
        args: &Args,
        call: &Call,
    ) -> Option<Value> {
        let client = matches!(
            module,
            "requests"
                | "httpx"
                | "urllib"
                | "urllib2"
                | "urllib3"
                | "aiohttp"
                | "axios"
                | "http"
                | "https"
                | "got"
                | "superagent"
                | "needle"
                | "ky"
                | "undici"
                | "request"
                | "wget"
                | "node-fetch"
        ) || matches!(
            path,
            "fetch"
                | "urlopen"
                | "urlretrieve"
                | "navigator.sendBeacon"
                | "$.post"
                | "$.get"
                | "$.ajax"
                | "jQuery.post"
        );
        if !client {
            return None;
        }
        let place = usize::from(last == "request" && matches!(module, "requests" | "httpx"));
        let named =
            args.named.iter().find(|(name, _)| name == "url").map(|(_, value)| value.clone());
        let target = named.unwrap_or_else(|| args.get(place));
        let url = target.as_text().or_else(|| {
            target.member("url").or_else(|| target.member("hostname")).and_then(|url| url.as_text())
        });
        let method = args.get(1).member("method").and_then(|method| method.as_text());
        let body = args.get(1).member("body").is_some();
        let sends =
            matches!(last, "post" | "put" | "patch" | "sendBeacon" | "request" | "delete" | "ajax")
                || body
                || method.is_some_and(|method| !method.eq_ignore_ascii_case("get"))
                || args
                    .named
                    .iter()
                    .any(|(name, _)| matches!(name.as_str(), "data" | "json" | "files"))
                || (last == "urlopen" && args.values.len() > 1);
        let quiet = matches!(
            last,
            "Session"
                | "Client"
                | "AsyncClient"
                | "ClientSession"
                | "create"
                | "quote"
                | "urlencode"
                | "createServer"
                | "Agent"
                | "urljoin"
                | "urlparse"
        );
        if quiet {
            return (last == "urlencode" || last == "quote").then(|| Value::unknown(args.holds()));
        }
        let mut holds = args.sent();
        if matches!(target.data, Data::Text(_)) {
            holds |= target.holds;
        }
        if sends {
            self.send(url, holds, call);
        } else {
            self.fetch(url, holds, call);
        }
        // A call that is given back to be called again, as `https.get(url, cb)`.
        if let Some(Expr::Function(index)) = call.args.last() {
            let file = self.file;
            let known = &mut self.functions[file][*index];
            known.called = true;
            known.parameters = vec![Value::unknown(Holds::FETCHED)];
        }
        Some(Value::unknown(Holds::FETCHED))
    }
}
