# shellcheck shell=bash disable=SC2034,SC2154
agent_name='Gemini CLI'
agent_version=0.61.0
agent_packages=("@google/gemini-cli@$agent_version")
# When Gemini CLI gives up waiting it goes on, so the entry has it wait for a day.
expected[hook-slow]=waits

agent_configure() {
    export GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL=http://$MODEL:$PORT
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

# It shortens what is before the last words of the user, so there must be such: a second run.
agent_tighten() {
    sed -i 's/^{$/{ "model": { "compressionThreshold": 0.00001 },/' "$HOME/.gemini/settings.json"
}

agent_again() {
    words=("$BIN/gemini" --resume latest -p 'Go on.' -m gemini-2.5-pro --approval-mode yolo --skip-trust)
}
