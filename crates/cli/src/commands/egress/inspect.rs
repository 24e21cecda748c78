//! TLS looked into: the authority, and how programs are told to trust it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;
use wardkeep_gateway::egress::{Inspection, Rule};

use crate::error::CliError;

/// Where systems keep the authorities that they trust, as one file.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Variables that programs find such a file by.
const VARIABLES: [&str; 9] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
];

/// An authority for these hosts; none where there are none.
pub(crate) fn inspection(hosts: Vec<Rule>) -> Result<Option<Arc<Inspection>>, CliError> {
    if hosts.is_empty() {
        return Ok(None);
    }
    let made = Inspection::with_native_roots(hosts).map_err(|error| {
        let hint = "leave --inspect out, or mend what the message says";
        CliError::refused(format!("TLS cannot be looked into: {error}"), hint)
    })?;
    Ok(Some(Arc::new(made)))
}

/// A file with what the machine trusts and with the authority, for the time of a run.
pub(crate) fn bundle(inspection: &Inspection) -> Result<NamedTempFile, CliError> {
    let failed = |error: std::io::Error| {
        CliError::io("write certificates to", Path::new("a temporary file"), &error)
    };
    let mut file = tempfile::Builder::new()
        .prefix("wardkeep-trust-")
        .suffix(".pem")
        .tempfile()
        .map_err(failed)?;
    let known = BUNDLES.iter().find_map(|path| std::fs::read(path).ok()).unwrap_or_default();
    file.write_all(&known)
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.write_all(inspection.certificate().as_bytes()))
        .and_then(|()| file.flush())
        .map_err(failed)?;
    Ok(file)
}

/// What tells programs of it.
pub(crate) fn variables(bundle: &Path) -> impl Iterator<Item = (OsString, OsString)> + '_ {
    VARIABLES.iter().map(move |name| (name.into(), bundle.into()))
}
