# shellcheck shell=bash disable=SC2004,SC2034,SC2154
agent_name=OpenCode
agent_version=1.18.33
# The second is what it would fetch itself at its first start with a plugin, without a network to do so.
agent_packages=("opencode-ai@$agent_version" "@opencode-ai/plugin@$agent_version")

agent_configure() {
    export OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1
    export OPENCODE_DISABLE_LSP_DOWNLOAD=1 OPENCODE_DISABLE_DEFAULT_PLUGINS=1
    local folder=$HOME/.config/opencode
    mkdir -p "$folder"
    printf '{"dependencies":{"@opencode-ai/plugin":"%s"}}\n' "$agent_version" >"$folder/package.json"
    # Without this it would fetch them all the same, and wait for that.
    printf '{"packages":{"":%s}}\n' "$(cat "$folder/package.json")" >"$folder/package-lock.json"
    ln -s "${BIN%/.bin}" "$folder/node_modules"
    cat >"$folder/opencode.json" <<END
{
  "autoupdate": false,
  "share": "disabled",
  "enabled_providers": ["anthropic"],
  "provider": {
    "anthropic": {
      "options": { "baseURL": "http://$MODEL:$PORT/v1", "apiKey": "none" },
      "models": {
        "claude-sonnet-4-5": { "name": "fake", "tool_call": true, "limit": { "context": 128000, "output": 4096 } }
      }
    }
  },
  "model": "anthropic/claude-sonnet-4-5",
  "small_model": "anthropic/claude-sonnet-4-5",
  "permission": { "bash": "allow", "edit": "allow" }
}
END
}

agent_command() {
    words=("$BIN/opencode" run 'Do what is to be done.' --model anthropic/claude-sonnet-4-5 --title test --auto)
}
