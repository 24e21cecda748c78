# shellcheck shell=bash disable=SC2034,SC2154
agent_name='Gemini CLI'
agent_version=0.61.0
agent_packages=("@google/gemini-cli@$agent_version")
agent_note=', entries by hand'
# A hook that ends well and says something else than JSON has nothing to say, to Gemini CLI.
expected[malformed]=open
expected[hook-slow]=waits

agent_configure() {
    export GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$PORT
    mkdir -p "$HOME/.gemini"
    cat >"$HOME/.gemini/settings.json" <<END
{
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  "privacy": { "usageStatisticsEnabled": false },
  "general": { "enableAutoUpdate": false }
}
END
}

agent_command() {
    words=("$BIN/gemini" -p 'Do what is to be done.' -m gemini-2.5-pro --approval-mode yolo --skip-trust)
}

# As long as `wardkeep install` does not know it: the entries, by hand. A hook that ends in any other
# way than well is a no, and one that does not end is waited for.
agent_left_to_user() {
    local event entries='' program=$FOLDER/bin/wardkeep
    for event in SessionStart BeforeAgent BeforeTool AfterTool SessionEnd; do
        entries+=",\"$event\":[{\"matcher\":\"*\",\"hooks\":[{\"type\":\"command\",\"name\":\"wardkeep\","
        entries+="\"timeout\":86400000,\"command\":\"$program hook gemini-cli $event || exit 2\"}]}]"
    done
    sed -i "1s/{/{ \"hooks\": {$(sed 's/[\/&]/\\&/g' <<<"${entries#,}")},/" "$HOME/.gemini/settings.json"
}
