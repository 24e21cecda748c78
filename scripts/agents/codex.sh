# shellcheck shell=bash disable=SC2034,SC2154
agent_name=Codex
agent_version=0.166.0
agent_packages=("@openai/codex@$agent_version")
agent_note=', trusted by hand'
# A patch is not led elsewhere.
expected[rewrite]=denied
# Codex has no switch for it: a hook that fails is passed over.
expected[hook-killed]=open
expected[hook-slow]=open
expected[malformed]=open
expected[binary-missing]=open

agent_configure() {
    export FAKE_KEY=none
    mkdir -p "$HOME/.codex"
    cat >"$HOME/.codex/config.toml" <<END
model = "gpt-5.5"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "http://127.0.0.1:$PORT/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
END
}

agent_command() {
    words=("$BIN/codex" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox
        'Do what is to be done.')
}

# Trusts the hooks, as a user does with `/hooks`: without that Codex skips them.
agent_left_to_user() {
    local answer keys hashes state='' number
    coproc SERVER { "$BIN/codex" app-server 2>/dev/null; }
    # shellcheck disable=SC2153
    ask() { printf '{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n' "$@" >&"${SERVER[1]}"; }
    answer_to() {
        while read -r -t 30 answer <&"${SERVER[0]}"; do
            [[ $answer != *"\"id\":$1,"* ]] || return 0
        done
        return 1
    }
    ask 1 initialize '{"clientInfo":{"name":"test","title":"test","version":"1"}}'
    answer_to 1 || return 1
    printf '{"jsonrpc":"2.0","method":"initialized"}\n' >&"${SERVER[1]}"
    ask 2 hooks/list "{\"cwds\":[\"$PWD\"]}"
    answer_to 2 || return 1
    mapfile -t keys < <(grep -o '"key":"[^"]*"' <<<"$answer" | cut -d'"' -f4)
    mapfile -t hashes < <(grep -o '"currentHash":"[^"]*"' <<<"$answer" | cut -d'"' -f4)
    ((${#keys[@]} > 0 && ${#keys[@]} == ${#hashes[@]})) || return 1
    for number in "${!keys[@]}"; do
        state+=",\"${keys[number]}\":{\"trusted_hash\":\"${hashes[number]}\"}"
    done
    ask 3 config/batchWrite "{\"edits\":[{\"keyPath\":\"hooks.state\",\"mergeStrategy\":\"upsert\",\"value\":{${state#,}}}]}"
    answer_to 3 || return 1
    kill "$SERVER_PID"
    printf 'the test has trusted %d hooks\n' "${#keys[@]}"
}
