# shellcheck shell=bash disable=SC2004,SC2016,SC2034,SC2154
agent_name=OpenClaw
agent_version=2026.9.6
agent_packages=("openclaw@$agent_version")
# It takes more than a minute to start where little is there to start it with.
SLOW_LIMIT=180
# At its first start it makes AGENTS.md and its like in the workspace, which nothing inside `wardkeep run` may.
first_outside=1

agent_configure() {
    export OPENCLAW_DISABLE_UPDATE_CHECK=1
    mkdir -p "$HOME/.openclaw"
    cat >"$HOME/.openclaw/openclaw.json" <<END
{
  "gateway": { "mode": "local" },
  "agents": { "defaults": { "workspace": "$PWD", "model": { "primary": "fake/fake-1" } } },
  "models": {
    "mode": "replace",
    "providers": {
      "fake": {
        "baseUrl": "http://$MODEL:$PORT",
        "apiKey": "none",
        "api": "anthropic-messages",
        "models": [
          {
            "id": "fake-1", "name": "fake-1", "reasoning": false, "input": ["text"],
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
            "contextWindow": 128000, "maxTokens": 4096
          }
        ]
      }
    }
  },
  "tools": { "exec": { "security": "full", "ask": "off" } }
}
END
}

agent_command() {
    words=("$BIN/openclaw" agent --local --session-id one --message 'Do what is to be done.' --timeout 200)
    # What is to be shortened there has to be said there.
    if [[ -n ${gateway-} ]]; then words=("$BIN/openclaw" agent --agent main --message 'Do what is to be done.'); fi
}

# It takes no `/compact` by --message: its gateway does it, on loopback only. The namespace ends it.
agent_tighten() {
    export OPENCLAW_GATEWAY_TOKEN=none
    "$BIN/openclaw" gateway run --bind loopback --port 18789 </dev/null >"$HOME/gateway.log" 2>&1 &
    gateway=$!
    for _ in {1..600}; do
        if (exec 3<>/dev/tcp/127.0.0.1/18789) 2>/dev/null; then return; fi
        sleep 0.2
    done
    printf 'the gateway did not start\n'
    exit 1
}

agent_again() {
    words=("$BASH" -c '"$0" sessions compact agent:main:main --json &&
        "$0" agent --agent main --message "Go on."' "$BIN/openclaw")
}
