//! Whose a credential is: the hosts that it may be sent to.

use super::host::Host;

/// Who a credential is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nothing about it says so: it may be for any host that may be reached.
    Anyone,
    /// These hosts and all below them, and hosts of the owner's own that are named after the product.
    Hosts(&'static [&'static str], &'static [&'static str]),
    /// It is not sent to anyone as it is.
    Nobody,
}

/// Who credentials of a kind are for.
pub(super) fn owner_of(kind: &str) -> Owner {
    let (hosts, products): (&[&str], &[&str]) = match kind {
        // Their form does not say whose they are, or they are good for one address only.
        "jwt" | "bearer-authorization" | "basic-authorization" | "azure-sas-signature"
        // The name of a key, not the key; other stores than Amazon's know it, too.
        | "aws-access-key" => return Owner::Anyone,
        "github-token" | "github-fine-grained-token" => (
            &["github.com", "githubusercontent.com", "ghcr.io", "ghe.com", "github.ai", "githubcopilot.com"],
            &["github", "ghe"],
        ),
        "gitlab-token" => (&["gitlab.com"], &["gitlab"]),
        "npm-token" => (&["npmjs.org", "npmjs.com"], &[]),
        "pypi-token" => (&["pypi.org"], &[]),
        "rubygems-key" => (&["rubygems.org"], &[]),
        "docker-token" => (&["docker.com", "docker.io"], &[]),
        "huggingface-token" => (&["huggingface.co", "hf.co", "hf.space"], &[]),
        "anthropic-key" => (&["anthropic.com", "claude.ai", "claude.com"], &[]),
        "openai-key" => (&["openai.com"], &[]),
        "openrouter-key" => (&["openrouter.ai"], &[]),
        "groq-key" => (&["groq.com"], &[]),
        "perplexity-key" => (&["perplexity.ai"], &[]),
        "replicate-token" => (&["replicate.com"], &[]),
        "xai-key" => (&["x.ai"], &[]),
        "google-api-key" | "google-oauth-secret" => (&["googleapis.com", "google.com"], &[]),
        "google-oauth-token" => (
            &["googleapis.com", "google.com", "googleusercontent.com", "gcr.io", "pkg.dev"],
            &[],
        ),
        "slack-token" | "slack-webhook" => (&["slack.com"], &[]),
        "discord-bot-token" | "discord-webhook" => (&["discord.com", "discordapp.com"], &[]),
        "telegram-bot-token" => (&["telegram.org"], &[]),
        "stripe-secret-key" => (&["stripe.com"], &[]),
        "square-token" | "square-secret" => (&["squareup.com"], &[]),
        "shopify-token" => (&["shopify.com", "myshopify.com"], &[]),
        "shippo-token" => (&["goshippo.com"], &[]),
        "sendgrid-key" => (&["sendgrid.com"], &[]),
        "mailchimp-key" => (&["mailchimp.com"], &[]),
        "digitalocean-token" => (&["digitalocean.com"], &[]),
        "databricks-token" => (&["databricks.com", "azuredatabricks.net"], &[]),
        "pulumi-token" => (&["pulumi.com"], &[]),
        "terraform-token" => (&["terraform.io"], &[]),
        "fly-token" => (&["fly.io", "machines.dev"], &[]),
        "netlify-token" => (&["netlify.com"], &[]),
        "supabase-token" => (&["supabase.com", "supabase.co"], &[]),
        "planetscale-token" => (&["planetscale.com"], &[]),
        "tailscale-key" => (&["tailscale.com"], &[]),
        "doppler-token" => (&["doppler.com"], &[]),
        "vault-token" => (&["hashicorp.cloud"], &["vault"]),
        "grafana-token" => (&["grafana.com", "grafana.net"], &["grafana"]),
        "sentry-token" => (&["sentry.io"], &["sentry"]),
        "newrelic-key" => (&["newrelic.com", "nr-data.net"], &[]),
        "dynatrace-token" => (&["dynatrace.com"], &["dynatrace"]),
        "atlassian-token" => (&["atlassian.com", "atlassian.net", "bitbucket.org"], &[]),
        "linear-key" => (&["linear.app"], &[]),
        "notion-token" => (&["notion.com", "notion.so"], &[]),
        "figma-token" => (&["figma.com"], &[]),
        "postman-key" => (&["postman.com", "postman.co", "getpostman.com"], &[]),
        "contentful-token" => (&["contentful.com"], &[]),
        _ => return Owner::Nobody,
    };
    Owner::Hosts(hosts, products)
}

/// Whether a host is one of these names or below one of them.
pub(super) fn is_below(host: &Host, names: &[&str]) -> bool {
    let Host::Name(host) = host else { return false };
    names.iter().any(|name| {
        host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Whether a label of a host is the name of a product, or begins with it and a hyphen.
pub(super) fn is_named_after(host: &Host, products: &[&str]) -> bool {
    // Anyone's pages.
    if is_below(host, &["github.io", "gitlab.io"]) {
        return false;
    }
    let Host::Name(host) = host else { return false };
    host.split('.').any(|label| {
        products.iter().any(|product| {
            label.strip_prefix(product).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    })
}

/// Whether a host is this machine.
pub(super) fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Address(address) => address.to_canonical().is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_by_labels() {
        let name = |text: &str| Host::Name(text.to_owned());
        for (host, below) in [
            ("github.com", true),
            ("api.github.com", true),
            ("github.com.evil.test", false),
            ("notgithub.com", false),
            ("githubXcom", false),
        ] {
            assert_eq!(is_below(&name(host), &["github.com"]), below, "{host}");
        }
        for (host, after) in [
            ("gitlab.corp.example", true),
            ("gitlab-eu.corp.example", true),
            ("code.gitlab.corp.example", true),
            ("notgitlab.example", false),
            ("gitlabs.example", false),
            ("evil.gitlab.io", false),
        ] {
            assert_eq!(is_named_after(&name(host), &["gitlab"]), after, "{host}");
        }
        assert!(is_this_machine(&name("localhost")) && is_this_machine(&name("a.localhost")));
        assert!(is_this_machine(&Host::Address([127, 0, 0, 9].into())));
        assert!(!is_this_machine(&name("localhost.evil.test")));
        assert!(!is_this_machine(&Host::Address([10, 0, 0, 9].into())));
    }
}
