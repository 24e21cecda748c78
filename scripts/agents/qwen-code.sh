# shellcheck shell=bash disable=SC2034,SC2154
agent_name='Qwen Code'
agent_version=0.24.4
agent_packages=("@qwen-code/qwen-code@$agent_version")
# That another input counts was not seen.
expected[rewrite]=denied
# It takes the tokens that the fake model counts for those of its own summary, and gives up.
proxied[compaction]='not reached'
# It gives up sooner than the entry's day, and goes on.
# The shell ends it after 20 s.

agent_configure() {
    export OPENAI_API_KEY=none OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_MODEL=fake-1
    mkdir -p "$HOME/.qwen"
    cat >"$HOME/.qwen/settings.json" <<END
{
  "security": { "auth": { "selectedType": "openai" } },
  "privacy": { "usageStatisticsEnabled": false }
}
END
}

agent_command() {
    words=("$BIN/qwen" -p 'Do what is to be done.' --approval-mode yolo)
}
