//! Services that take data from anybody: data, not code.

/// What a service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// Shows its owner every request.
    Callback,
    /// Keeps texts.
    Paste,
    /// Keeps files.
    Upload,
    /// Leads to a machine behind a firewall.
    Tunnel,
    /// Hides where a link leads.
    Shortener,
    /// Names that resolve to the address inside them.
    Rebinding,
}

use std::sync::LazyLock;

use Service::{Callback, Paste, Rebinding, Shortener, Tunnel, Upload};

const SERVICES: &[(&str, Service)] = &[
    ("webhook.site", Callback),
    ("webhook.cool", Callback),
    ("webhookinbox.com", Callback),
    ("requestbin.com", Callback),
    ("requestbin.net", Callback),
    ("requestbin.io", Callback),
    ("requestcatcher.com", Callback),
    ("requestinspector.com", Callback),
    ("request.dog", Callback),
    ("rbndr.us", Callback),
    ("pipedream.net", Callback),
    ("pipedream.com", Callback),
    ("hookbin.com", Callback),
    ("hookdeck.com", Callback),
    ("hookb.in", Callback),
    ("beeceptor.com", Callback),
    ("mockbin.org", Callback),
    ("mockbin.io", Callback),
    ("ptsv2.com", Callback),
    ("ptsv3.com", Callback),
    ("postb.in", Callback),
    ("putsreq.com", Callback),
    ("typedwebhook.tools", Callback),
    ("canarytokens.com", Callback),
    ("canarytokens.org", Callback),
    ("interact.sh", Callback),
    ("interactsh.com", Callback),
    ("oast.pro", Callback),
    ("oast.live", Callback),
    ("oast.site", Callback),
    ("oast.online", Callback),
    ("oast.fun", Callback),
    ("oast.me", Callback),
    ("oastify.com", Callback),
    ("burpcollaborator.net", Callback),
    ("dnslog.cn", Callback),
    ("ceye.io", Callback),
    ("dnsbin.zhack.ca", Callback),
    ("requestrepo.com", Callback),
    ("bxss.me", Callback),
    ("xss.ht", Callback),
    ("smee.io", Callback),
    ("svix.com", Callback),
    ("httpdump.app", Callback),
    ("pastebin.com", Paste),
    ("paste.ee", Paste),
    ("hastebin.com", Paste),
    ("dpaste.org", Paste),
    ("dpaste.com", Paste),
    ("paste.rs", Paste),
    ("rentry.co", Paste),
    ("rentry.org", Paste),
    ("ghostbin.com", Paste),
    ("privatebin.net", Paste),
    ("controlc.com", Paste),
    ("ix.io", Paste),
    ("sprunge.us", Paste),
    ("termbin.com", Paste),
    ("pastie.org", Paste),
    ("justpaste.it", Paste),
    ("telegra.ph", Paste),
    ("paste.debian.net", Paste),
    ("bpa.st", Paste),
    ("pastes.io", Paste),
    ("nekobin.com", Paste),
    ("transfer.sh", Upload),
    ("file.io", Upload),
    ("0x0.st", Upload),
    ("bashupload.com", Upload),
    ("temp.sh", Upload),
    ("oshi.at", Upload),
    ("catbox.moe", Upload),
    ("gofile.io", Upload),
    ("anonfiles.com", Upload),
    ("tmpfiles.org", Upload),
    ("uguu.se", Upload),
    ("pixeldrain.com", Upload),
    ("wormhole.app", Upload),
    ("filebin.net", Upload),
    ("keep.sh", Upload),
    ("ufile.io", Upload),
    ("ngrok.io", Tunnel),
    ("ngrok.app", Tunnel),
    ("ngrok.dev", Tunnel),
    ("ngrok-free.app", Tunnel),
    ("ngrok-free.dev", Tunnel),
    ("trycloudflare.com", Tunnel),
    ("loca.lt", Tunnel),
    ("localtunnel.me", Tunnel),
    ("serveo.net", Tunnel),
    ("serveousercontent.com", Tunnel),
    ("localhost.run", Tunnel),
    ("lhr.life", Tunnel),
    ("lhr.rocks", Tunnel),
    ("pinggy.io", Tunnel),
    ("pinggy.link", Tunnel),
    ("bore.pub", Tunnel),
    ("telebit.io", Tunnel),
    ("pagekite.me", Tunnel),
    ("packetriot.net", Tunnel),
    ("tunnelmole.net", Tunnel),
    ("zrok.io", Tunnel),
    ("playit.gg", Tunnel),
    ("portmap.io", Tunnel),
    ("devtunnels.ms", Tunnel),
    ("localxpose.io", Tunnel),
    ("loclx.io", Tunnel),
    ("onion.ly", Tunnel),
    ("onion.ws", Tunnel),
    ("bit.ly", Shortener),
    ("tinyurl.com", Shortener),
    ("t.ly", Shortener),
    ("is.gd", Shortener),
    ("v.gd", Shortener),
    ("cutt.ly", Shortener),
    ("rb.gy", Shortener),
    ("shorturl.at", Shortener),
    ("tiny.cc", Shortener),
    ("ow.ly", Shortener),
    ("nip.io", Rebinding),
    ("sslip.io", Rebinding),
    ("xip.io", Rebinding),
    ("localtest.me", Rebinding),
    ("lvh.me", Rebinding),
    ("1u.ms", Rebinding),
    ("rebind.network", Rebinding),
];

/// No name of a service has more labels.
const LABELS: usize = 3;
/// Places for names; the most part of them stays free.
const PLACES: usize = 1024;

/// Numbers of services by the hash of their names, counted from one; the next place where one is taken.
static TABLE: LazyLock<[u8; PLACES]> = LazyLock::new(|| {
    let mut table = [0; PLACES];
    for (number, (name, _)) in (1..).zip(SERVICES) {
        let mut place = hash(name.as_bytes());
        while table[place] != 0 {
            place = (place + 1) % PLACES;
        }
        table[place] = number;
    }
    table
});

/// By the length and the last bytes.
fn hash(name: &[u8]) -> usize {
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(name.iter().rev()) {
        *to = *from;
    }
    let value = u64::from_le_bytes(last) ^ (name.len() as u64) << 58;
    (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

fn service(name: &str) -> Option<Service> {
    let mut place = hash(name.as_bytes());
    loop {
        let number = usize::from(TABLE[place]).checked_sub(1)?;
        if let Some((known, service)) = SERVICES.get(number)
            && *known == name
        {
            return Some(*service);
        }
        place = (place + 1) % PLACES;
    }
}

/// The service that a host belongs to, itself or as a subdomain.
pub fn service_of(host: &str) -> Option<Service> {
    let host = host.trim_end_matches('.');
    let mut dots = memchr::memrchr_iter(b'.', host.as_bytes());
    let start = dots.nth(LABELS - 1).map_or(0, |dot| dot + 1);
    let lower;
    let mut rest = &host[start..];
    if rest.bytes().any(|byte| byte.is_ascii_uppercase()) {
        lower = rest.to_ascii_lowercase();
        rest = &lower;
    }
    // Longest first: `a.b.c`, `b.c`, `c`.
    loop {
        if let Some(found) = service(rest) {
            return Some(found);
        }
        rest = &rest[memchr::memchr(b'.', rest.as_bytes())? + 1..];
    }
}

/// Names of services that take data, for finding them without a scheme.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SERVICES
        .iter()
        .filter(|(_, service)| matches!(service, Callback | Paste | Upload | Tunnel))
        .map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_last_labels() {
        assert!(SERVICES.len() < usize::from(u8::MAX));
        for (name, service) in SERVICES {
            assert!(name.split('.').count() <= LABELS, "{name}");
            assert_eq!(service_of(name), Some(*service));
            assert_eq!(service_of(&format!("a.b.{}.", name.to_ascii_uppercase())), Some(*service));
            assert_eq!(service_of(&format!("{name}.example")), None);
        }
        assert_eq!(service_of("notwebhook.site"), None);
        assert_eq!(service_of(""), None);
    }
}
