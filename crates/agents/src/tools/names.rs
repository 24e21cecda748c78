//! The names of tools, as agents spell them.

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// Nothing that reaches beyond the conversation.
    Nothing,
    /// It gives a text to a shell.
    Shell,
    /// It types into a shell that runs already.
    Type,
    /// It reads files.
    Read,
    /// It looks through folders.
    Look,
    /// It writes all of a file.
    Write,
    /// It changes parts of a file.
    Edit,
    /// It reads or writes, as its input says.
    Editor,
    /// It applies a patch.
    Patch,
    /// It removes files.
    Delete,
    /// It gives a file another name.
    Move,
    /// It fetches from the network.
    Fetch,
    /// It keeps something for later sessions.
    Remember,
    /// It changes what steers the agent.
    Steer,
    /// It brings something new into the agent.
    Install,
    /// Nobody knows.
    Unknown,
}

/// Compared without case and signs: `web_fetch` is `WebFetch`.
const NAMES: &[(Means, &[&str])] = &[
    (
        Means::Shell,
        &[
            "bash",
            "shell",
            "exec",
            "execcommand",
            "localshell",
            "containerexec",
            "unifiedexec",
            "runshellcommand",
            "executecommand",
            "runcommand",
            "runcommands",
            "runinterminal",
            "terminal",
            "powershell",
            "sh",
            "zsh",
            "runterminalcmd",
            "shellcommand",
            "monitor",
        ],
    ),
    (Means::Type, &["writebash", "writestdin", "writepowershell", "process"]),
    (
        Means::Read,
        &[
            "read",
            "readfile",
            "readfiles",
            "readmanyfiles",
            "view",
            "viewimage",
            "notebookread",
            "memoryget",
            "openfile",
            "image",
            "readimage",
        ],
    ),
    (
        Means::Look,
        &[
            "ls",
            "list",
            "listdir",
            "listdirectory",
            "listfiles",
            "glob",
            "grep",
            "rg",
            "grepsearch",
            "grepfiles",
            "searchfilecontent",
            "searchfiles",
            "find",
            "lsp",
            "listcodedefinitionnames",
            "codebasesearch",
        ],
    ),
    (Means::Write, &["write", "writefile", "create", "createfile", "writetofile"]),
    (
        Means::Edit,
        &[
            "edit",
            "multiedit",
            "replace",
            "strreplace",
            "replaceinfile",
            "notebookedit",
            "insert",
            "searchreplace",
            "editfile",
            "editnotebook",
        ],
    ),
    (Means::Editor, &["strreplaceeditor", "strreplacebasededittool", "editor"]),
    (Means::Patch, &["applypatch", "patch"]),
    (Means::Delete, &["delete", "deletefile", "remove", "removefile"]),
    (Means::Move, &["move", "movefile", "rename", "renamefile"]),
    (
        Means::Fetch,
        &["webfetch", "fetch", "browser", "browseraction", "openurl", "fetchurl", "urlfetch"],
    ),
    (Means::Remember, &["savememory", "storememory", "memory"]),
    (
        Means::Steer,
        &["cron", "croncreate", "crondelete", "gateway", "config", "configure", "schedule"],
    ),
    (Means::Install, &["installskill", "skillinstall", "installplugin"]),
    (
        Means::Nothing,
        &[
            "todowrite",
            "todoread",
            "writetodos",
            "updateplan",
            "exitplanmode",
            "enterplanmode",
            "planmoderespond",
            "actmoderespond",
            "askuserquestion",
            "askfollowupquestion",
            "askuser",
            "question",
            "attemptcompletion",
            "reportintent",
            "task",
            "agent",
            "spawnagent",
            "waitagent",
            "closeagent",
            "sendinput",
            "newtask",
            "bashoutput",
            "taskoutput",
            "readbash",
            "listbash",
            "stopbash",
            "killshell",
            "killbash",
            "taskstop",
            "websearch",
            "googlewebsearch",
            "toolsearch",
            "skill",
            "slashcommand",
            "memorysearch",
            "sessionslist",
            "sessionshistory",
            "sessionsspawn",
            "sessionssend",
            "sessionstatus",
            "agentslist",
            "taskcreate",
            "taskupdate",
            "tasklist",
            "taskget",
            "think",
            "sleep",
            "listmcpresources",
            "listmcpresourcestool",
            "cronlist",
            "invalid",
            "structuredoutput",
            "activateskill",
            "useskill",
            "submitplan",
        ],
    ),
];

pub(super) fn means(tool: &str) -> Means {
    // What a server offers can have any name.
    if is_foreign(tool) {
        return Means::Unknown;
    }
    let plain: String = tool
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|sign| sign.to_ascii_lowercase())
        .collect();
    // A name in other letters is another name.
    let same = tool.chars().all(|sign| sign.is_ascii_alphanumeric() || "_-. ".contains(sign));
    let found = NAMES.iter().find(|(_, names)| same && names.contains(&plain.as_str()));
    found.map_or(Means::Unknown, |(means, _)| *means)
}

/// Whether a tool belongs to a server, not to the agent.
pub(crate) fn is_foreign(tool: &str) -> bool {
    tool.starts_with("mcp__")
        || tool.starts_with("mcp_")
        || tool.contains('/')
        || tool.contains(':')
}
