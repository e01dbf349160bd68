//! Whom a client's certificate is about.

use rustls::pki_types::CertificateDer;
use semel_tower::ShownCredential;
use std::io;
use webpki::EndEntityCert;

/// The names that an authority has vouched for: the subject, and the alternative names of hosts and workloads. They stay when a
/// certificate is renewed, with the same key or another. One without any name is known by its key.
pub(crate) fn identity_of(certificate: &CertificateDer<'_>) -> io::Result<ShownCredential> {
    let parsed = EndEntityCert::try_from(certificate)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut names: Vec<(&str, Vec<u8>)> = Vec::new();
    names.extend(parsed.valid_dns_names().map(|name| ("dns", name.to_ascii_lowercase().into_bytes())));
    names.extend(parsed.valid_uri_names().map(|name| ("uri", name.as_bytes().to_vec())));
    names.sort();
    if !parsed.subject().is_empty() {
        names.push(("subject", parsed.subject().to_vec()));
    }
    if names.is_empty() {
        names.push(("key", parsed.subject_public_key_info().to_vec()));
    }
    let mut identity = Vec::new();
    for (kind, name) in names {
        // With their lengths: no two lists of names are spelt the same.
        identity.extend_from_slice(format!("{kind}:{}:", name.len()).as_bytes());
        identity.extend_from_slice(&name);
    }
    Ok(ShownCredential(identity.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn identity(common_name: &str, names: &[&str], key: &KeyPair) -> ShownCredential {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !common_name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, common_name);
        }
        identity_of(params.self_signed(key).unwrap().der()).unwrap()
    }

    #[test]
    fn a_renewed_certificate_is_about_the_same() {
        let (key, renewed) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let shop = identity("shop", &["b.example", "a.example"], &key);
        assert!(shop == identity("shop", &["b.example", "a.example"], &key));
        assert!(shop == identity("shop", &["a.example", "b.example"], &renewed));
    }

    #[test]
    fn another_name_is_another() {
        let key = KeyPair::generate().unwrap();
        let all = [
            identity("shop", &[], &key),
            identity("shop2", &[], &key),
            identity("shop", &["a.example"], &key),
            identity("", &["a.example"], &key),
            identity("", &[], &key),
            identity("", &[], &KeyPair::generate().unwrap()),
        ];
        for (number, one) in all.iter().enumerate() {
            assert!(all[number + 1..].iter().all(|other| other != one), "{number}");
        }
    }
}
