//! TLS to servers outside.

use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// Who is trusted: with `system`, the authorities of the system; and those that are named.
pub(crate) fn client(
    system: bool,
    authorities: &[CertificateDer<'static>],
) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if system {
        // Certificates of the system that cannot be read are passed over, as everywhere.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for authority in authorities {
        roots.add(authority.clone()).map_err(io::Error::other)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
