# shellcheck shell=bash disable=SC2034,SC2154
agent_name=Codex
agent_version=0.166.0
agent_packages=("@openai/codex@$agent_version")
# A patch is not led elsewhere.
expected[rewrite]=denied
# When Codex gives up waiting it goes on, so the entry has it wait for a day.
expected[hook-slow]=waits

agent_configure() {
    export FAKE_KEY=none
    mkdir -p "$HOME/.codex"
    cat >"$HOME/.codex/config.toml" <<END
model = "gpt-5.5"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "http://$MODEL:$PORT/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
END
}

agent_command() {
    words=("$BIN/codex" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox
        'Do what is to be done.')
}
